"""Classification of one text or two: one label, or any number of them."""

import collections
import contextlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from bioptimus_jax.finetuning.config import Finetune
from bioptimus_jax.finetuning.predictions import majority
from bioptimus_jax.finetuning.texts.task import TextTask, answer_shares, expected
from bioptimus_jax.sets.texts import Texts
from bioptimus_jax.storage.files import atomic

LOGITS = 'logits.npy'
"""File in a cell's folder: logits of the test texts."""


class Classes(TextTask):
    """Relations, answers to questions, topics: sets of `sets.texts` by their record, others by accuracy."""

    title = 'Text classification'
    hub = 'text-classification'
    own_measures = ('accuracy',)

    @property
    def several(self) -> bool:
        return bool(self.known and self.known.several)

    @property
    def answer_kind(self) -> str:
        return 'any' if self.several else 'one'

    def labels(self, dataset: Texts, settings: Finetune) -> Sequence[str]:
        return dataset.labels

    def head(self, pretrained: Any, labels: Sequence[str], settings: Finetune, dtype: str) -> Any:
        from bioptimus_jax.finetuning.texts.head import AnyLabels, OneLabel

        return (AnyLabels if self.several else OneLabel)(pretrained, labels, settings, dtype)

    def learned(self, example: Any, settings: Finetune) -> Sequence[Any]:
        return example.parts or example.answers

    def target(self, window: Any, learned: Sequence[Any], head: Any) -> Any:
        if self.several:
            given = learned[window.part] if self.apart else learned
            return [float(label in given) for label in head.labels]
        return head.labels.index(learned[0])

    def decode(
        self, examples: Sequence, windows: Sequence, found: Sequence, head: Any, settings: Finetune
    ) -> list[tuple[str, ...]]:
        answers = self._answers(found, head.labels)
        if not self.several:
            return answers
        said: list[set[str]] = [set() for _ in examples]
        for window, given in zip(windows, answers, strict=True):
            said[window.example].update(given)
        return [tuple(label for label in head.labels if label in given) for given in said]

    def _answers(self, logits: Any, labels: Sequence[str]) -> list[tuple[str, ...]]:
        """Answers from the logits of every window, lists or an array."""
        if self.several:
            return [tuple(label for label, logit in zip(labels, row) if logit > 0) for row in logits]
        return [(labels[max(range(len(row)), key=row.__getitem__)],) for row in logits]

    def vote(self, given: Sequence[Sequence[str]]) -> Sequence[str]:
        """The answers that the seeds agree on; of several labels those that more than half of the seeds give."""
        return tuple(sorted(majority(given))) if self.several else super().vote(given)

    @property
    def averages(self) -> bool:
        """Whether the mean of logits says it; where texts are classified one by one seeds vote on all of them."""
        return not self.apart

    def keep(self, folder: Path, found: Sequence[Any]) -> None:
        """The logits of every window, float32."""
        with atomic(folder / LOGITS, 'wb') as file:
            np.save(file, np.array(found, np.float32), allow_pickle=False)

    def mean(
        self, dataset: Texts, folders: Sequence[Path], labels: Sequence[str], settings: Finetune
    ) -> list[tuple[str, ...]] | None:
        """Answers of the mean logits over seeds; None for a set where a text has several windows.

        Logits that contradict the predictions beside them are skipped: they are left from another fine-tuning.
        """
        every = []
        for folder in folders:
            with contextlib.suppress(OSError, ValueError, EOFError):
                logits_NxK = np.load(folder / LOGITS, allow_pickle=False)
                if logits_NxK.shape == (len(dataset.test), len(labels)):
                    own = self._answers(logits_NxK, labels)
                    if own == [text.predicted for text in self.written(folder)]:
                        every.append(logits_NxK)
        return self._answers(np.mean(every, 0), labels) if len(every) == len(folders) else None

    def constant(self, dataset: Texts) -> tuple[str, ...]:
        """The most frequent answer; of several labels those that most texts have."""
        if not self.several:
            return max(answer_shares(dataset).items(), key=lambda item: item[1])[0]
        counts = collections.Counter(a for x in dataset.train for a in x.answers)
        return tuple(label for label in dataset.labels if 2 * counts[label] > len(dataset.train))

    def prior(self, dataset: Texts) -> float:
        return expected(self.metric, [x.answers for x in dataset.test], answer_shares(dataset))


TASK = Classes()
