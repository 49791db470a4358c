"""What sets of texts have in common, whatever is learned from them."""

import abc
import dataclasses
import textwrap
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from bioptimus_jax.config.extensions import not_there
from bioptimus_jax.errors import ConfigError, InputError
from bioptimus_jax.finetuning.config import Finetune
from bioptimus_jax.finetuning.kept import Reads
from bioptimus_jax.finetuning.outside import Submission
from bioptimus_jax.finetuning.predictions import Predicted
from bioptimus_jax.finetuning.task import DEFAULT, Encoded, Look, Task, Usage, of_setting
from bioptimus_jax.finetuning.texts import windows
from bioptimus_jax.finetuning.texts.features import FEATURES, PREDICTORS
from bioptimus_jax.finetuning.texts.measures import MEASURES, OF_NUMBERS, measure
from bioptimus_jax.finetuning.texts.outside import read_answers
from bioptimus_jax.finetuning.texts.usage import usage_of
from bioptimus_jax.progress.console import MANY, numbered, some_labels
from bioptimus_jax.records.finetune import BASELINES, Details, FineTuning
from bioptimus_jax.records.sets import SetDescription
from bioptimus_jax.scoring.metrics import Metric
from bioptimus_jax.sets import labelled
from bioptimus_jax.sets.corpora import NamedSet, file_of_texts, known_texts
from bioptimus_jax.sets.described import FILE
from bioptimus_jax.sets.foreign.flat import one_line
from bioptimus_jax.sets.sentences import SPLITS
from bioptimus_jax.sets.texts import Published, Text, Texts

LINE = 200
"""Letters of labels in a line."""


@dataclasses.dataclass(frozen=True)
class TextTask(Task):
    """A task on texts; `known`: the record of the set, None for one's own."""

    known: Published | None = dataclasses.field(default=None, hash=False)

    hf_class = 'AutoModelForSequenceClassification'
    unit = 'text'
    cuts = True
    heads = tuple(PREDICTORS)
    reported = BASELINES
    own_measures: ClassVar[tuple[str, ...]] = ()
    """Measures of sets without a record."""
    numbers: ClassVar[bool] = False
    """Whether answers are numbers."""

    def of(self, dataset: str, said: SetDescription | None = None) -> 'TextTask':
        """Raises InputError for a measure that is not there, or for answers of another kind."""
        known = known_texts(dataset, said)
        for name in known.measures if known and said else ():
            if name not in MEASURES:
                raise InputError(f'{FILE} of {dataset}: measures: {name!r}: {not_there(name, MEASURES)}')
            if name in MEASURES.own and (name in OF_NUMBERS) != self.numbers:
                raise InputError(
                    f'{FILE} of {dataset}: measures: {name} is for {"classes" if self.numbers else "numbers"}; choose '
                    f'among {", ".join(one for one in MEASURES if (one in OF_NUMBERS) == self.numbers)}'
                )
        return dataclasses.replace(self, known=known)

    @property
    def metrics(self) -> Mapping[str, Metric]:  # type: ignore[override]
        names = self.known.measures if self.known else self.own_measures
        counted = self.known.counted if self.known else ()
        return {name if at else DEFAULT: measure(name, counted) for at, name in enumerate(names)}

    def check_settings(self, settings: Finetune, dataset: str) -> None:
        super().check_settings(settings, dataset)
        added = PREDICTORS[settings.head] != PREDICTORS[Finetune.head]
        if added and not FEATURES[settings.features].of:
            others = ', '.join(name for name, features in FEATURES.items() if features.of)
            raise ConfigError(
                f'config.finetune.head: {settings.head!r}{of_setting(settings)}, but features={settings.features!r} of '
                f'{dataset} are a head of their own; set config.finetune.features to one of {others}'
            )

    def read(self, chosen: NamedSet) -> Texts:
        files = {split: file_of_texts(chosen.folder, split) for split in SPLITS}
        return labelled.read_texts(chosen.name, files, self.numbers, self.known)

    def read_file(self, chosen: NamedSet, file: Path) -> tuple[Sequence[Text], None]:
        return labelled.read_file(file, self.known, self.numbers), None

    @property
    def question(self) -> bool:
        """Whether the first of two texts is never cut."""
        return bool(self.known and self.known.layout.question)

    @property
    def apart(self) -> bool:
        """Whether the texts of an example are read one by one."""
        return bool(self.known and self.known.layout.apart)

    def asked_again(self, items: Sequence[Predicted], record: FineTuning) -> list[Text]:
        return [Text(i.words, i.gold, i.document, ((),) * len(i.words) * self.apart) for i in items]

    def outside(self, chosen: NamedSet, asked: Submission) -> tuple[list[tuple[Any, ...]], list[str]]:
        return read_answers(asked, self.known, self.numbers)

    def reads(self, dataset: Texts, settings: Finetune) -> Reads:
        numbers = {len(example.words) for example in dataset.train}
        return Reads(
            settings.max_pieces,
            segment_ids=settings.segment_ids,
            question=self.question,
            apart=self.apart,
            texts=max(numbers) if len(numbers) == 1 and not self.apart else 0,
            squeezed=all(text == one_line(text) for example in dataset.train for text in example.words),
        )

    def usage(self, dataset: Texts, settings: Finetune) -> Usage:
        return usage_of(self.answer_kind, 2 if self.pairs(dataset) else 1, settings, self.question)

    def pairs(self, dataset: Texts) -> bool:
        """Whether two texts are read together."""
        return len(dataset.test[0].words) > 1 and not dataset.test[0].parts

    def windows(self, tokenizer: Any, examples: Sequence[Text], settings: Finetune) -> Encoded:
        by = FEATURES[settings.features]
        return windows.windows(
            tokenizer,
            examples,
            settings.max_pieces,
            self.question,
            by.mentions,
            by.markers,
            settings.segment_ids,
        )

    def look(self, dataset: Texts, tokenizers: Mapping[str, Any], max_pieces: int) -> Look:
        """Counts beside the published ones, labels, texts of two splits, and with tokenizers texts that are cut."""
        name = dataset.name
        splits = [getattr(dataset, split) for split in SPLITS]
        public = self.known.examples if self.known else (0, 0, 0)
        lines = [f'{name}: {_beside([len(read) for read in splits], public, "texts")}']
        if self.known and any(self.known.positives):
            counted = set(self.known.counted)
            positives = [sum(not counted.isdisjoint(x.answers) for x in read) for read in splits]
            lines.append(f'{name}: {_beside(positives, self.known.positives, "texts with a relation")}')
        if dataset.labels:
            given = Counter(answer for text in dataset.train for answer in text.answers)
            lines += _labels(name, dataset.labels, given)
            if unlabelled := sum(not text.answers for text in dataset.train):
                lines.append(f'{name}: none of these labels: {numbered(unlabelled, "text")} of train')
        lines += [f'{name}: {note}' for note in dataset.notes] + self._unclear(dataset) + _repeated(dataset)
        for model, tokenizer in tokenizers.items():
            cut = sum(windows.windows(tokenizer, split, max_pieces).counts[windows.CUT] for split in splits)
            if cut:
                lines.append(
                    f'{name}: cut: {numbered(cut, "text")} of more than {max_pieces} pieces of {model}'
                )
        return Look(lines=lines)

    def _unclear(self, dataset: Texts) -> list[str]:
        """A line where texts stand in one split with several answers, as a dummy for each entity makes them alike."""
        counts, first = [], ''
        for split in SPLITS:
            same: dict[tuple[str, ...], dict[tuple[Any, ...], Text]] = {}
            for text in getattr(dataset, split):
                same.setdefault(text.words, {}).setdefault(text.answers, text)
            unclear = [tuple(x.values()) for x in same.values() if len(x) > 1]
            counts.append(len(unclear))
            if unclear and not first:
                one, other = unclear[0][:2]
                answers = ' and '.join(', '.join(map(str, x.answers)) or 'none' for x in (one, other))
                first = f'{split}, lines {one.line} and {other.line}: {answers}'
        if not first:
            return []
        said = ', as in the public files' if self.known and tuple(counts) == self.known.unclear else ''
        shown = ' / '.join(f'{n:,}' for n in counts)
        return [
            f'{dataset.name}: {shown} texts have several answers in one split{said}; the first in {first}'
        ]

    def detail(self, dataset: Texts, predicted: Sequence[Any]) -> Details:
        """Test scores of two answers that read nothing: always the same, and drawn by the shares of training."""
        gold = [x.answers for x in dataset.test]
        same = self.metric.scores(gold, [self.constant(dataset)] * len(gold))
        return Details(majority=float(same[self.metric.name]), prior=self.prior(dataset))

    def alike(self, dataset: Texts, examples: Sequence[Text]) -> float:
        """The best score of the answers that training gives most often, and of each label alone: a rarer one may have
        the best F1."""
        gold = [x.answers for x in examples]
        answers = dict.fromkeys([self.constant(dataset), *((label,) for label in dataset.labels)])
        scores = (self.metric.scores(gold, [one] * len(gold)) for one in answers)
        return max(float(of_one[self.metric.name]) for of_one in scores)

    @property
    @abc.abstractmethod
    def answer_kind(self) -> str:
        """What a text gets, in a word: a key of `usage.USAGES`."""

    @abc.abstractmethod
    def constant(self, dataset: Texts) -> tuple[Any, ...]:
        """The answers that training gives most often."""

    @abc.abstractmethod
    def prior(self, dataset: Texts) -> float:
        """The score of answers that are drawn by their shares in training, of their expected counts."""


def _labels(name: str, labels: Sequence[str], given: Mapping[Any, int]) -> list[str]:
    """Lines of the labels of train with their counts: all of some, of many the most frequent."""
    if len(labels) > MANY:
        ranked = sorted(labels, key=lambda label: -given[label])
        return [f'{name}: labels of train: {some_labels(ranked)}']
    # A label with its count stays in one line.
    shown = ', '.join(f'{label} {given[label]:,}'.replace(' ', '\0') for label in labels)
    wrapped = textwrap.wrap(shown, LINE, break_on_hyphens=False, break_long_words=False)
    return [f'{name}: labels of train: {line}'.replace('\0', ' ') for line in wrapped]


def _repeated(dataset: Texts) -> list[str]:
    """A line for each split with texts that an earlier split has."""
    lines, before = [], {text.words for text in dataset.train}
    for split, earlier in (('devel', 'train'), ('test', 'train or devel')):
        own = [text.words for text in getattr(dataset, split)]
        if repeated := sum(words in before for words in own):
            lines.append(f'{dataset.name}: also in {earlier}: {numbered(repeated, "text")} of {split}')
        before.update(own)
    return lines


def _beside(found: Sequence[int], published: Sequence[int], what: str) -> str:
    """Counts of the splits, and those of the public files, of which 0 is not known, where they are others."""
    said = ''
    if any(published):
        same = all(known in (0, count) for count, known in zip(found, published, strict=True))
        shown = ' / '.join(f'{known:,}' if known else '?' for known in published)
        said = ', as published' if same else f'; the public files have {shown}'
    return f'{" / ".join(f"{count:,}" for count in found)} {what} in train / devel / test{said}'


def answer_shares(dataset: Texts) -> Mapping[tuple[Any, ...], float]:
    """How often training gives these answers together."""
    counts = Counter(x.answers for x in dataset.train)
    return {answers: count / len(dataset.train) for answers, count in counts.items()}


def expected(
    metric: Metric, gold: Sequence[tuple[Any, ...]], drawn: Mapping[tuple[Any, ...], float]
) -> float:
    """The metric of the expected sums of counts, where every text gets answers with these probabilities."""
    of_each = [share * metric.counts(gold, [answers] * len(gold)).sum(0) for answers, share in drawn.items()]
    return float(metric.score(np.sum(of_each, 0)))
