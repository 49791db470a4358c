"""Fine-tuning as transformers' run_classification example does it (examples/pytorch/text-classification).

Its Trainer and DataCollatorWithPadding without --pad_to_max_length: a batch is as wide as its longest text, which is
the faster way for texts of many lengths. What is longer than `max_seq_length` is cut off. The best epoch on devel is
taken, as with ours (--load_best_model_at_end).

Shapes: N texts of the test set, K labels.
"""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import transformers
from trainer_recipe import Rows, TrainerRecipe

from bioptimus_jax.finetuning.config import Finetune
from bioptimus_jax.finetuning.task import Encoded
from bioptimus_jax.sets.texts import Texts

ONE_LABEL, ANY_LABELS, NUMBER = 'single_label_classification', 'multi_label_classification', 'regression'


class Recipe(TrainerRecipe):
    """The example on one set of texts; `score` compares answers with a split's texts."""

    def __init__(
        self,
        model_folder: Path,
        dataset: Texts,
        settings: Finetune,
        scratch: Path,
        score: Callable[[Sequence[Any], list[Any]], float],
    ):
        self.dataset, self.labels, self.score = dataset, dataset.labels, score
        several = any(len(text.answers) != 1 for text in dataset.train)
        self.problem = ANY_LABELS if several else ONE_LABEL if self.labels else NUMBER
        super().__init__(model_folder, settings, scratch)
        self.devel = self._encode(dataset.devel)

    def devel_score(self, logits: Any) -> float:
        return self.score(self.dataset.devel, self.answers(logits))

    def encoded(self) -> tuple[Rows, Rows]:
        return self._encode(self.dataset.train), self._encode(self.dataset.test)

    def model(self, dropout: dict[str, float]) -> Any:
        return transformers.AutoModelForSequenceClassification.from_pretrained(
            self.model_folder,
            num_labels=max(len(self.labels), 1),
            problem_type=self.problem,
            trust_remote_code=False,
            local_files_only=True,
            **dropout,
        )

    def collator(self) -> Any:
        return transformers.DataCollatorWithPadding(self.tokenizer)

    def answers(self, logits: Any) -> list[tuple[Any, ...]]:
        """Answers from logits [N, K]."""
        if self.problem == NUMBER:
            return [(float(row.item()),) for row in logits]
        if self.problem == ANY_LABELS:
            return [
                tuple(x for x, logit in zip(self.labels, row, strict=True) if logit > 0) for row in logits
            ]
        return [(self.labels[at],) for at in logits.argmax(-1)]

    def check_pieces(self, ours: Encoded) -> None:
        """SystemExit where a test text that is not cut has other pieces here."""
        for window in ours.windows:
            if len(window.pieces) < self.settings.max_pieces:
                row = self.test.rows[window.example]
                if tuple(row['input_ids']) != window.pieces:
                    raise SystemExit(f'test text {window.example}: pieces differ; nothing was timed')

    def _encode(self, texts: Any) -> Rows:
        rows = []
        for text in texts:
            row = dict(self.tokenizer(*text.words, truncation=True, max_length=self.settings.max_pieces))
            if self.problem == NUMBER:
                answer: Any = float(text.answers[0])
            elif self.problem == ANY_LABELS:
                answer = [float(label in text.answers) for label in self.labels]
            else:
                answer = self.labels.index(text.answers[0])
            rows.append(row | {'labels': answer})
        return Rows(rows)
