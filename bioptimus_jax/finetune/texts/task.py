"""What sets of texts have in common, whatever is learned from them."""

import abc
import dataclasses
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np

from bioptimus_jax.finetune.metrics import Metric
from bioptimus_jax.finetune.task import DEFAULT, Encoded, Task
from bioptimus_jax.finetune.texts import windows
from bioptimus_jax.finetune.texts.measures import measure
from bioptimus_jax.schema import Finetune
from bioptimus_jax.sets import texts
from bioptimus_jax.sets.corpora import NamedSet, split_files
from bioptimus_jax.sets.sentences import SPLITS
from bioptimus_jax.sets.texts import Published, Text, Texts


@dataclasses.dataclass(frozen=True, eq=False)
class TextTask(Task):
    """A task on texts; `known`: the record of the set, None for one's own."""

    known: Published | None = None

    hf_class = 'AutoModelForSequenceClassification'
    unit = 'text'
    reported = ('majority', 'prior')
    own_measures: ClassVar[tuple[str, ...]] = ()
    """Of sets without a record."""
    numbers: ClassVar[bool] = False
    """Whether answers are numbers."""

    def of(self, dataset: str) -> 'TextTask':
        return dataclasses.replace(self, known=texts.published(dataset))

    @property
    def metrics(self) -> Mapping[str, Metric]:  # type: ignore[override]
        names = self.known.measures if self.known else self.own_measures
        counted = self.known.counted if self.known else ()
        return {name if at else DEFAULT: measure(name, counted) for at, name in enumerate(names)}

    def read(self, chosen: NamedSet) -> Texts:
        files = {split: split_files(chosen.folder, split)[0] for split in SPLITS}
        return texts.read_texts(chosen.name, files, self.numbers)

    def windows(self, tokenizer: Any, examples: Sequence[Text], settings: Finetune) -> Encoded:
        question = bool(self.known and self.known.layout.question)
        return windows.windows(tokenizer, examples, settings.max_pieces, question)

    def look(
        self, dataset: Texts, tokenizers: Mapping[str, Any], max_pieces: int
    ) -> tuple[dict[str, Any], dict[str, Any], list[str]]:
        """Counts that are other than the published ones."""
        found = tuple(len(getattr(dataset, split)) for split in SPLITS)
        lines = []
        if self.known and found != self.known.examples:
            shown = (' / '.join(f'{n:,}' for n in numbers) for numbers in (found, self.known.examples))
            lines.append(
                f'{dataset.name}: {" examples in train / devel / test; the public files have ".join(shown)}'
            )
        return {}, {}, lines

    def detail(self, dataset: Texts, predicted: Sequence[Any]) -> dict[str, Any]:
        """Test scores of two answers that read nothing: always the same, and drawn by the shares of training."""
        gold = [x.answers for x in dataset.test]
        return {
            'majority': float(
                self.metric.scores(gold, [self.constant(dataset)] * len(gold))[self.metric.name]
            ),
            'prior': self.prior(dataset),
        }

    @abc.abstractmethod
    def constant(self, dataset: Texts) -> tuple[Any, ...]:
        """The answers that training gives most often."""

    @abc.abstractmethod
    def prior(self, dataset: Texts) -> float:
        """The score of answers that are drawn by their shares in training, of their expected counts."""


def shares(dataset: Texts) -> Mapping[tuple[Any, ...], float]:
    """How often training gives these answers together."""
    counts = Counter(x.answers for x in dataset.train)
    return {answers: count / len(dataset.train) for answers, count in counts.items()}


def expected(
    metric: Metric, gold: Sequence[tuple[Any, ...]], drawn: Mapping[tuple[Any, ...], float]
) -> float:
    """The metric of the expected sums of counts, where every text gets answers with these probabilities."""
    of_each = [share * metric.counts(gold, [answers] * len(gold)).sum(0) for answers, share in drawn.items()]
    return float(metric.value(np.sum(of_each, 0)))
