"""A class for every word: the F1 of each class over words, and their mean."""

import dataclasses
import functools
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from bioptimus_jax.errors import InputError
from bioptimus_jax.finetuning.config import Finetune
from bioptimus_jax.finetuning.outside import Submission
from bioptimus_jax.finetuning.summary import TokenStatistics
from bioptimus_jax.finetuning.task import DEFAULT, Task
from bioptimus_jax.finetuning.tasks.entities import Entities
from bioptimus_jax.records.finetune import Details
from bioptimus_jax.records.sets import SetDescription
from bioptimus_jax.records.statistics import MentionSlices
from bioptimus_jax.scoring.metrics import Answers, Metric, macro_f1, micro_f1, rates
from bioptimus_jax.sets import corpora, words
from bioptimus_jax.sets.columns import line_of
from bioptimus_jax.sets.corpora import Dataset, NamedSet
from bioptimus_jax.sets.sentences import SPLITS, Sentence
from bioptimus_jax.sets.tags import BESIDE, OUTSIDE, Span, decode, encode, spans

SCHEME = 'io'
"""The scheme of tags: where a mention of a class begins is not asked."""


def class_counts(types: Sequence[str], gold: Answers, predicted: Answers) -> np.ndarray:
    """Words of every sentence that are right, in gold and predicted, by class: int64 [N, K, 3]."""
    counts_NxKx3 = np.zeros((len(gold), len(types), 3), np.int64)
    place = {kind: at for at, kind in enumerate(types)}
    for of_one, left, right in zip(counts_NxKx3, gold, predicted, strict=True):
        for ours, theirs in zip(left, right, strict=True):
            for kind in classes_of(ours) & place.keys():
                of_one[place[kind], 1] += 1
                of_one[place[kind], 0] += kind in classes_of(theirs)
            for kind in classes_of(theirs) & place.keys():
                of_one[place[kind], 2] += 1
    return counts_NxKx3


def classes_of(tag: str) -> set[str]:
    """The classes of a word: one or none, or several where mentions that were predicted elsewhere overlap."""
    return {one[2:] for one in tag.split(BESIDE) if one != OUTSIDE} if tag != OUTSIDE else set()


@functools.cache
def macro(types: tuple[str, ...]) -> Metric:
    """The mean of the classes' F1 (BLURB, EBM PICO)."""
    counts = functools.partial(class_counts, types)
    return macro_f1(types, counts, 'F1', 'macro F1 of words', f'words of {", ".join(types)}')


def any_class(gold: Answers, predicted: Answers) -> np.ndarray:
    """Words of every sentence that have a class: right, in gold, predicted: int64 [N, 3]."""
    types = sorted(
        set[str]().union(*(classes_of(tag) for side in (gold, predicted) for tags in side for tag in tags))
    )
    return class_counts(types, gold, predicted).sum(1)


MICRO = micro_f1('micro F1 of words', 'words with a class', any_class)


@dataclasses.dataclass(frozen=True)
class WordClasses(Entities):
    """A class for each word, in files like those of entities.

    `types`: the classes that a set's record names; macro F1 is the mean of their F1.
    """

    types: tuple[str, ...] = ()

    title = 'Word classification'
    reported = ('test_by_type', 'majority', 'gold_in_file', 'gold_scored', 'applied')

    def of(self, dataset: str, said: SetDescription | None = None) -> 'WordClasses':
        known = words.published(dataset)
        return dataclasses.replace(self, types=known.types if known else ())

    def read(self, chosen: NamedSet) -> Dataset:
        """Raises InputError for a class too, which the record of the set does not have."""
        dataset = _by_words(super().read(chosen))
        for split in SPLITS if self.types else ():
            kinds = set(corpora.types_of(getattr(dataset, split)))
            for strange in sorted(kinds.difference(self.types)):
                file = corpora.columns_file(chosen.folder, split)
                where = line_of(file, strange, chosen.columns) if file else chosen.folder / split
                known = ', '.join(self.types)
                raise InputError(f'{where}: {strange!r} is not a class of {chosen.name}: {known}')
        return dataset

    def read_file(self, chosen: NamedSet, file: Path) -> tuple[Sequence[Sentence], Dataset]:
        dataset = _by_words(super().read_file(chosen, file)[1])
        return dataset.test, dataset

    def outside(self, chosen: NamedSet, asked: Submission) -> tuple[list[tuple[str, ...]], list[str]]:
        by_words = tuple(dataclasses.replace(sentence, marked=False) for sentence in asked.gold)
        return super().outside(chosen, dataclasses.replace(asked, gold=by_words))

    @property
    def metrics(self) -> Mapping[str, Metric]:  # type: ignore[override]
        return {DEFAULT: macro(self.types), 'micro': MICRO} if self.types else {DEFAULT: MICRO}

    def scheme(self, settings: Finetune) -> str:
        return SCHEME

    def detail(self, dataset: Dataset, predicted: Sequence[Sequence[str]]) -> Details:
        gold = [s.gold for s in dataset.test]
        types = self.types or sorted(dataset.types)
        sums_Kx3 = class_counts(types, gold, predicted).sum(0)
        return Details(
            test_by_type={kind: rates(*row.tolist()) for kind, row in zip(types, sums_Kx3, strict=True)},
            majority=0.0,  # no class for any word
            gold_in_file=sum(tag != OUTSIDE for tags in gold for tag in tags),
            gold_scored=int(sums_Kx3[:, 1].sum()),
        )

    def vote(self, given: Sequence[Sequence[str]]) -> tuple[str, ...]:
        """The class that most seeds give a word."""
        return decode(Task.vote(self, [encode(tags, SCHEME) for tags in given]), SCHEME)

    def mentions(self, answers: Sequence[str]) -> Sequence[Span]:
        """Runs of words of one class, as where a mention of it begins is not asked."""
        return spans(self.counted(answers))

    def counted(self, tags: Sequence[str]) -> tuple[str, ...]:
        """The class of each word, whatever the word before it is."""
        return encode(tags, SCHEME)

    def slices(self, dataset: Any, predictions: Any, tokenizer: Any, known: TokenStatistics) -> MentionSlices:
        return {}


def _by_words(dataset: Dataset) -> Dataset:
    """A set of which words are asked, and not characters: those that a mention touches have its class."""

    def plain(sentences: Sequence[Sentence]) -> tuple[Sentence, ...]:
        return tuple(dataclasses.replace(s, exact=None) for s in sentences)

    return dataclasses.replace(
        dataset, train=plain(dataset.train), devel=plain(dataset.devel), test=plain(dataset.test)
    )


TASK = WordClasses()
