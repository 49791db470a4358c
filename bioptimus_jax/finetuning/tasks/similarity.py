"""A number for a pair of texts, as how similar they are; Pearson's correlation, beside it Spearman's."""

import statistics
from collections.abc import Sequence
from typing import Any

from bioptimus_jax.finetuning.config import Finetune
from bioptimus_jax.finetuning.task import SAME
from bioptimus_jax.finetuning.texts.task import TextTask
from bioptimus_jax.sets.texts import Text, Texts


class Similarity(TextTask):
    """Sets of text TAB text TAB number. Numbers are learned as they are, by squared error."""

    title = 'Similarity of texts'
    hub = 'sentence-similarity'
    own_measures = ('pearson', 'spearman')
    numbers = True

    answer_kind = 'number'

    def labels(self, dataset: Texts, settings: Finetune) -> Sequence[str]:
        return ['score']

    def head(self, pretrained: Any, labels: Sequence[str], settings: Finetune, dtype: str) -> Any:
        from bioptimus_jax.finetuning.texts.head import Number

        return Number(pretrained, labels, settings, dtype)

    def stratum(self, example: Text) -> int:
        """The whole number next to its own."""
        return round(float(example.answers[0]))

    def target(self, window: Any, learned: Sequence[float], head: Any) -> float:
        return learned[0]

    def decode(
        self, examples: Sequence, windows: Sequence, found: Sequence, head: Any, settings: Finetune
    ) -> list[tuple[float]]:
        return [(row[0],) for row in found]

    def sameness(self, gold: Sequence[Sequence[float]], answers: Sequence[Sequence[float]]) -> str:
        """What is said where all pairs have nearly the same number."""
        spread, true = (statistics.pstdev([value for (value,) in side]) for side in (answers, gold))
        return 'it gives all pairs nearly the same number' if spread < (1 - SAME) * true else ''

    def vote(self, given: Sequence[Sequence[float]]) -> tuple[float]:
        """The mean."""
        return (statistics.fmean(number for (number,) in given),)

    @property
    def together(self) -> str:
        return 'answer by the mean of their numbers'

    def constant(self, dataset: Texts) -> tuple[float]:
        """The mean of training: no correlation with anything."""
        return (statistics.fmean(float(x.answers[0]) for x in dataset.train),)

    def prior(self, dataset: Texts) -> float:
        """Numbers that are drawn correlate with nothing."""
        return 0.0


TASK = Similarity()
