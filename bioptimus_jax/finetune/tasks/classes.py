"""Classification of one text or two: one label, or any number of them."""

import collections
from collections.abc import Sequence
from typing import Any

from bioptimus_jax.finetune.predictions import majority
from bioptimus_jax.finetune.texts.task import TextTask, expected, shares
from bioptimus_jax.schema import Finetune
from bioptimus_jax.sets.texts import Texts


class Classes(TextTask):
    """Relations, answers to questions, topics: sets of `sets.texts` by their record, others by accuracy."""

    title = 'Text classification'
    hub = 'text-classification'
    own_measures = ('accuracy',)

    @property
    def several(self) -> bool:
        return bool(self.known and self.known.several)

    @property
    def apart(self) -> bool:
        """Whether the texts of an example are classified one by one."""
        return bool(self.known and self.known.layout.apart)

    def labels(self, dataset: Texts, settings: Finetune) -> Sequence[str]:
        return dataset.labels

    def head(self, pretrained: Any, labels: Sequence[str], settings: Finetune, dtype: str) -> Any:
        from bioptimus_jax.finetune.texts.head import AnyLabels, OneLabel

        return (AnyLabels if self.several else OneLabel)(pretrained, labels, settings, dtype)

    def learned(self, example: Any, settings: Finetune) -> Sequence[Any]:
        return example.parts or example.answers

    def target(self, window: Any, learned: Sequence[Any], head: Any) -> Any:
        if self.several:
            given = learned[window.part] if self.apart else learned
            return [float(label in given) for label in head.labels]
        return head.labels.index(learned[0])

    def decode(
        self,
        examples: Sequence[Any],
        windows: Sequence[Any],
        found: Sequence[Any],
        head: Any,
        settings: Finetune,
    ) -> list[tuple[str, ...]]:
        if self.several:
            said: list[set[str]] = [set() for _ in examples]
            for window, row in zip(windows, found, strict=True):
                said[window.example] |= {label for label, logit in zip(head.labels, row) if logit > 0}
            return [tuple(label for label in head.labels if label in given) for given in said]
        return [(head.labels[max(range(len(row)), key=row.__getitem__)],) for row in found]

    def vote(self, given: Sequence[Sequence[str]]) -> Sequence[str]:
        """Of several labels those that more than half of the seeds give."""
        return tuple(sorted(majority(given))) if self.several else super().vote(given)

    def constant(self, dataset: Texts) -> tuple[str, ...]:
        """Of several labels those that most texts have."""
        if not self.several:
            return max(shares(dataset).items(), key=lambda item: item[1])[0]
        counts = collections.Counter(a for x in dataset.train for a in x.answers)
        return tuple(label for label in dataset.labels if 2 * counts[label] > len(dataset.train))

    def prior(self, dataset: Texts) -> float:
        return expected(self.metric, [x.answers for x in dataset.test], shares(dataset))


TASK = Classes()
