"""Which model a folder holds, and the model, loaded as transformers has it, with every weight."""

import dataclasses
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from bioptimus_jax.config.plugins import Plugins
from bioptimus_jax.errors import ConfigError, InputError
from bioptimus_jax.finetuning.kept import Reads, read_reads
from bioptimus_jax.hosts.remote.models import ADAPTER, hub_model, model_folder
from bioptimus_jax.inference.answer import Answer
from bioptimus_jax.inference.given import Given
from bioptimus_jax.model.folder import config_values
from bioptimus_jax.progress.console import numbered

FINISHED = ('**/seed-*/model/config.json', '**/export/*/config.json')
"""Patterns of models in a run folder: fine-tuned models that were kept, and exports."""
NAMED = 6
"""Models that a message names."""


@dataclasses.dataclass(frozen=True)
class Settings:
    """What a user asks for. `max_pieces`: of a window, or 0 for that of the model's training; `lines`: sentences are
    lines and words end at white space, whatever the model was trained on; `best`: how many words are said for a
    [MASK]; `say`: is told what is worth knowing of all texts together."""

    max_pieces: int = 0
    lines: bool = False
    best: int = 5
    say: Callable[[str], None] = lambda message: None


@dataclasses.dataclass(frozen=True)
class LoadedModel:
    """A model with its tokenizer. `limit`: pieces that it can number; `reads`: how it was trained to read."""

    folder: Path
    tokenizer: Any
    model: Any
    limit: int
    reads: Reads = Reads()

    @property
    def labels(self) -> tuple[str, ...]:
        """The labels in the order of the logits."""
        named = self.model.config.id2label
        return tuple(str(named[at]) for at in range(len(named)))

    def pieces(self, wanted: int, usual: int) -> int:
        """How long a window is. Raises ConfigError for one that is longer than the model can number."""
        if wanted > self.limit:
            raise ConfigError(
                f'--max_pieces: {wanted}, but {self.folder} has {self.limit} positions; give {self.limit} or less'
            )
        return wanted or min(self.reads.max_pieces or usual, self.limit)


ANSWERS = Plugins('bioptimus_jax.inference.kinds', 'answers', closed=True)
Answers = Callable[[LoadedModel, Sequence[Given], Settings], Iterator[Answer]]


@dataclasses.dataclass(frozen=True)
class Kind:
    """What a class of models answers, by a file of kinds/. `by_line`: it answers to every line of a plain file.
    `of_words`: its tokenizer is given words. `hides`: the mask is no text in its texts."""

    file: str
    hf_class: str
    by_line: bool = True
    of_words: bool = False
    hides: bool = False
    brat: bool = False
    """Whether BRAT's files can hold what it answers."""

    @property
    def answers(self) -> Answers:
        return ANSWERS.load(self.file)


KINDS = {
    'ForTokenClassification': Kind(
        'tags', 'AutoModelForTokenClassification', by_line=False, of_words=True, brat=True
    ),
    'ForSequenceClassification': Kind('labels', 'AutoModelForSequenceClassification'),
    'ForMaskedLM': Kind('hidden', 'AutoModelForMaskedLM', hides=True),
    'ForPreTraining': Kind('hidden', 'AutoModelForMaskedLM', hides=True),
}
"""Kinds of models, by the end of what config.json says that a model is."""


def model_at(place: str) -> Path:
    """The folder of a model that answers: of a hub id, or as `model_in`. Raises InputError."""
    return model_in(model_folder(place, 'MODEL') if hub_model(place) else Path(place))


def model_in(folder: Path) -> Path:
    """The folder itself, or the model that was kept or exported in it. Raises InputError unless there is one."""
    if not folder.is_dir():
        raise InputError(
            f'{folder}: no such folder; give the folder of a model, or of a run that kept one, or a hub id'
        )
    if any((folder / name).is_file() for name in ('config.json', ADAPTER)):
        return folder
    for pattern in FINISHED:
        found = sorted(file.parent for file in folder.glob(pattern))
        if len(found) == 1:
            return found[0]
        if found:
            more = ' ...' if len(found) > NAMED else ''
            raise InputError(
                f'{folder}: has {numbered(len(found), "model")}; give one of {", ".join(map(str, found[:NAMED]))}{more}'
            )
    raise InputError(
        f'{folder}: has no model (config.json); fine-tune with --config.finetune.keep=best, or export one'
    )


def kind_of(folder: Path) -> Kind:
    """What the model of a folder answers, by the "architectures" of its config.json. Raises InputError."""
    named = config_values(folder).get('architectures') or ['nothing']
    for ending, kind in KINDS.items():
        if str(named[0]).endswith(ending):
            return kind
    raise InputError(
        f'{folder / "config.json"}: "architectures" names {named[0]}; a model that answers is one of '
        f'{", ".join(f"...{ending}" for ending in KINDS)}'
    )


def load_for_answers(folder: Path, kind: Kind, threads: int) -> LoadedModel:
    """The model on the GPU if there is one, one of ONNX on the CPU. Raises InputError for a folder without some of its
    weights."""
    import torch
    from transformers.utils import logging

    from bioptimus_jax.finetuning.loading import check_embedding_rows, device_here, load_weights, positions_of
    from bioptimus_jax.inference.onnx.session import load_onnx
    from bioptimus_jax.vocab.agreement import for_texts, load_for_words, load_in_transformers

    torch.set_num_threads(threads)
    if kind.of_words:
        tokenizer = load_for_words(folder)
    else:
        plain = load_in_transformers(folder)
        tokenizer = for_texts(plain, [plain.mask_token] if kind.hides and plain.mask_token else ())
    logging.disable_progress_bar()
    if found := load_onnx(folder, kind.hf_class, threads):
        return LoadedModel(folder, tokenizer, *found, read_reads(folder))
    model, info = load_weights(folder, kind.hf_class)
    if lacking := sorted(map(str, [*info['missing_keys'], *info['mismatched_keys']])):
        raise InputError(f'{folder}: lacks {", ".join(lacking[:3])}, so its answers would be random')
    check_embedding_rows(folder, tokenizer, model)
    limit = min(tokenizer.model_max_length, positions_of(model, tokenizer.model_max_length))
    return LoadedModel(folder, tokenizer, model.eval().to(device_here()), limit, read_reads(folder))
