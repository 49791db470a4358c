"""Surgery on a model that a caller holds: stages vocab, contexts and surgery in a temporary folder, in this process."""

import contextlib
import dataclasses
import warnings
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bioptimus_jax.api.bars import Bar, Barred, shown
from bioptimus_jax.api.objects import (
    OF_TEXTS,
    PLACE,
    Keys,
    ModelOrFolder,
    TokenizerOrFolder,
    as_folder,
    experiment,
    habits_of,
    keys_of,
    model_in,
    own_model,
    subwords_of,
    tokenizer_in,
    undisturbed,
    workplace,
    write_texts,
)
from bioptimus_jax.errors import ConfigError, InputError
from bioptimus_jax.experiment.stages import STAGES
from bioptimus_jax.records.counts import StageResult, VocabCounts
from bioptimus_jax.run.execute import execute
from bioptimus_jax.run.folder import Run
from bioptimus_jax.run.stage import Stage
from bioptimus_jax.storage.files import JsonObject
from bioptimus_jax.surgery.config import Surgery
from bioptimus_jax.tokenizer.subwords import Subwords
from bioptimus_jax.vocab import agreement, frequency
from bioptimus_jax.vocab.build import tokenizers_of, unreached_line, unreached_tokens, write_new_tokens

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

IN_CONTEXTS, ALONE = 'contextualized', 'spelled'
"""Strategies where none is named, with sentences and without."""


@dataclasses.dataclass(frozen=True)
class SurgeryOn:
    """A surgery on the model in the folder `source`, in a temporary folder `place`, as its caller wants it."""

    place: Path
    source: Path
    like: Any
    strategy: str
    seed: int
    keys: Keys
    progress: bool

    @property
    def positions(self) -> int:
        """The longest text that the model reads, in pieces."""
        return _positions_of(self.source)

    def give(
        self, file: Path, texts: Sequence[str], habits: Mapping[str, Any]
    ) -> tuple['PreTrainedModel', 'PreTrainedTokenizerBase']:
        """The model and the tokenizer with the vocabulary of a file. `habits`: of its tokenizer, where it has some."""
        place, source = self.place, self.source
        write_texts(place / 'sentences.jsonl', texts)
        known, positions = subwords_of(place, file), self.positions
        asked = {
            'seed': self.seed,
            'source.path': source,
            'surgery.strategy': self.strategy or (IN_CONTEXTS if texts else ALONE),
            'vocab.kind': 'file',
            'vocab.file': file,
            **keys_of(known),
            'rows.max_document_pieces': min(positions, 512),
            'corpus.inputs': (place / 'sentences.jsonl',),
            'corpus.heldout_fraction': 0.0,
            # Processes of their own would read the script again that has called this.
            'runtime.workers': 1,
        }
        run = Run(place / 'run', experiment(OF_TEXTS, asked, self.keys), quiet=True)
        surgery = run.config.surgery
        _check(surgery, source, known, bool(texts))
        stages = (
            *[STAGES['corpus']] * (surgery.reads_contexts or surgery.reads_corpus),
            _vocabulary_stage(source, positions, texts),
            *[STAGES['contexts']] * surgery.reads_contexts,
            STAGES['surgery'],
        )
        with Bar(self.progress) as bar:
            run.console = Barred(bar)
            for number, stage in enumerate(stages):
                bar.at(stage.name, number, len(stages), 'stages')
                execute(run, stage)
            made = run.folder('surgery') / 'model'
            grown = _positions_of(made) - positions
            return model_in(made, self.like), tokenizer_in(made, _habits(source, habits, positions, grown))


@contextlib.contextmanager
def surgery_on(
    model: ModelOrFolder,
    tokenizer: 'TokenizerOrFolder | None',
    strategy: str,
    seed: int,
    keys: Keys | None,
    progress: bool | None,
) -> Iterator[SurgeryOn]:
    """The surgery that a caller asks for, with the folders of its model and of its work as long as it lasts."""
    show = shown(progress)
    with workplace() as place, undisturbed():
        source = as_folder(place / 'model', model, tokenizer)
        like = own_model(source) if isinstance(model, PLACE) else model
        yield SurgeryOn(place, source, like, strategy, seed, keys or {}, show)


def _positions_of(folder: Path) -> int:
    from bioptimus_jax.model.tensors import read_architecture  # late: imports jax

    return read_architecture(folder).positions


def _habits(source: Path, new: Mapping[str, Any], positions: int, grown: int) -> JsonObject:
    """What the new tokenizer does beside cutting texts: as `new`, or as that of the source where that says nothing.

    A text may be as long as both tokenizers and the number of positions allow. A model that has `grown` more positions
    reads longer texts than its source, unless `new` asks for less than the source does.
    """
    several = [habits_of(source), new]
    first, second = (min(each.get('model_max_length', positions), positions) for each in several)
    longest = positions + grown if grown > 0 and second >= first else min(first, second)
    return {**several[0], **several[1], 'model_max_length': longest}


def _check(surgery: Surgery, source: Path, known: Subwords, sentences: bool) -> None:
    old = subwords_of(source, source)
    if surgery.initialisation.rows is None:
        raise ConfigError(f'strategy: {surgery.strategy} makes no rows for a new vocabulary; choose another')
    by_itself = surgery.initialisation.contexts or surgery.reads_corpus
    if (by_itself or surgery.reads_contexts) and not sentences:
        reader = surgery.strategy if by_itself else 'surgery.fit_steps'
        raise ConfigError(
            f'sentences: are missing, and {reader} reads new tokens in them; give some, or strategy={ALONE!r}'
            f'{" without surgery.fit_steps" * bool(surgery.fit_steps)}'
        )
    if surgery.counts_words and not sentences:
        raise ConfigError(
            f'sentences: are missing, and surgery.bias={surgery.bias} counts words in them; give some, or another '
            'surgery.bias'
        )
    if old.lowercase != known.lowercase:
        cased = {True: 'uncased', False: 'cased'}
        raise InputError(
            f'new: is {cased[known.lowercase]}, but the tokenizer of the model {cased[old.lowercase]}; take a '
            'vocabulary of its casing'
        )


def _vocabulary_stage(source: Path, positions: int, texts: Sequence[str]) -> Stage:
    """Stage vocab for a vocabulary that is given; words are counted in the texts, if there are any."""

    def build(run: Run, folder: Path) -> StageResult:
        old, known = tokenizers_of(run.config, source)
        assert known is not None, 'vocab.kind=file'
        known.save(folder, positions)
        agreement.check_written(folder, known)
        if texts:
            counts = known.kind.count_words(texts, known.lowercase, known.reader)
            frequency.write(folder, counts, {}, 1.0)
        if unreached := unreached_tokens(known, old):
            warnings.warn(unreached_line('new', unreached), stacklevel=2)
        new = write_new_tokens(folder, known, old)
        return StageResult(VocabCounts(size=len(known.tokens), new=len(new)))

    return dataclasses.replace(STAGES['vocab'], needs=lambda run: (), external=lambda e: [], build=build)
