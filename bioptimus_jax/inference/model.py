"""Which model a folder holds, and the model, loaded as transformers has it, with every weight."""

import dataclasses
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bioptimus_jax.config.bounds import SHORTEST_WINDOW
from bioptimus_jax.config.plugins import Plugins
from bioptimus_jax.errors import ConfigError, InputError
from bioptimus_jax.finetuning.config import Finetune
from bioptimus_jax.finetuning.kept import Reads, read_reads
from bioptimus_jax.hosts.remote.models import ADAPTER, hub_model, model_folder
from bioptimus_jax.inference.answer import Answer
from bioptimus_jax.inference.given import Given
from bioptimus_jax.model.folder import config_values
from bioptimus_jax.progress.console import numbered
from bioptimus_jax.records.kept import ANEW, ENSEMBLE, read_ensemble, read_head

if TYPE_CHECKING:  # they take seconds to import
    from bioptimus_jax.finetuning.heads import Head
    from bioptimus_jax.finetuning.stored import Make, Parts
    from bioptimus_jax.finetuning.task import Task

FINISHED = (f'**/{ENSEMBLE}', '**/seed-*/model/config.json', '**/export/*/config.json')
"""Patterns of models in a run folder: seeds that answer together, fine-tuned models that were kept, and exports."""
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
    """A model with its tokenizer. `limit`: pieces that it can number; `reads`: how it was trained to read.

    `members`: the parts of several seeds that answer together by `task`, the model among them; else of it alone.
    """

    folder: Path
    tokenizer: Any
    model: Any
    limit: int
    reads: Reads = Reads()
    members: Sequence['Parts'] = ()
    task: 'Task | None' = None

    def heads(self, make: 'Make', settings: Finetune) -> 'list[Head]':
        """The head of each member; `make`: the class of heads that transformers' linear ones are of.

        Raises InputError for a head that is kept and not of this class.
        """
        from bioptimus_jax.finetuning.loading import computing_dtype

        dtype = computing_dtype(settings, self.model.device.type)
        return [one.head(make, settings, dtype) for one in self.members]

    @property
    def labels(self) -> tuple[str, ...]:
        """The labels in the order of the logits."""
        named = self.model.config.id2label
        return tuple(str(named[at]) for at in range(len(named)))

    def pieces(self, wanted: int, usual: int) -> int:
        """How long a window is. Raises ConfigError for one that is too short, or longer than the model."""
        if 0 < wanted < SHORTEST_WINDOW:
            raise ConfigError(
                f'--max_pieces: {wanted} is too short for a window; give {SHORTEST_WINDOW} or more'
            )
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
    from bioptimus_jax.finetuning.finished import models_asked_for

    if not folder.is_dir():
        raise InputError(
            f'{folder}: no such folder; give the folder of a model, or of a run that kept one, or a hub id'
        )
    if any((folder / name).is_file() for name in ('config.json', ADAPTER)):
        return folder
    for pattern in FINISHED:
        found = models_asked_for(sorted(file.parent for file in folder.glob(pattern)))
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
    """What the model of a folder answers: by the record of its head, else by the "architectures" of its config.json.

    Raises InputError.
    """
    ensemble = read_ensemble(folder)
    head = read_head(folder / ensemble.members[0] if ensemble else folder)
    named = [head.hf_class] if head else config_values(folder).get('architectures') or ['nothing']
    for ending, kind in KINDS.items():
        if str(named[0]).endswith(ending):
            return kind
    raise InputError(
        f'{folder / "config.json"}: "architectures" names {named[0]}; a model that answers is one of '
        f'{", ".join(f"...{ending}" for ending in KINDS)}; vectors of texts are given by bx.embed in Python'
    )


def load_for_answers(folder: Path, kind: Kind, threads: int) -> LoadedModel:
    """The model, or all seeds of several, on the GPU if there is one; of ONNX on the CPU.

    Raises InputError for a folder without some of its weights.
    """
    import torch
    from transformers.utils import logging

    from bioptimus_jax.finetuning.loading import check_embedding_rows, device_here, positions_of
    from bioptimus_jax.finetuning.stored import Parts, load_parts
    from bioptimus_jax.finetuning.task import task_of
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
        return LoadedModel(folder, tokenizer, *found, read_reads(folder), [Parts(folder, found[0])])
    ensemble = read_ensemble(folder)
    task = task_of(ensemble) if ensemble else None
    places = [folder / name for name in ensemble.members] if ensemble else [folder]
    members = [load_parts(place, kind.hf_class) for place in places]
    limits = [tokenizer.model_max_length]
    for one in members:
        if one.labels != members[0].labels:
            raise InputError(
                f'{one.folder}: has other labels than {members[0].folder}, and they are to answer together; {ANEW}'
            )
        check_embedding_rows(folder, tokenizer, one.pretrained)
        limits.append(positions_of(one.pretrained, tokenizer.model_max_length))
        one.pretrained.eval().to(device_here())
    return LoadedModel(
        folder, tokenizer, members[0].pretrained, min(limits), read_reads(folder), members, task
    )
