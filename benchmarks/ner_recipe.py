"""Fine-tuning as transformers' run_ner example does it (examples/pytorch/token-classification).

Its Trainer and DataCollatorForTokenClassification, labels on first pieces and -100 elsewhere, what is longer than
`max_seq_length` cut off.

run_ner: with --pad_to_max_length, every sentence as wide as the maximum. run_ner_longest: without it, as is its
default: as wide as the longest of a random batch.

Shapes: B sentences, L pieces of the widest sentence of the set, C labels.
"""

import collections
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import transformers
from trainer_recipe import Rows, TrainerRecipe

from bioptimus_jax.finetuning import task
from bioptimus_jax.finetuning.config import Finetune
from bioptimus_jax.sets.corpora import Dataset
from bioptimus_jax.sets.sentences import Sentence

PADDED, LONGEST = 'run_ner', 'run_ner_longest'
IGNORED = -100


class Recipe(TrainerRecipe):
    """The example on one set of entities."""

    def __init__(self, name: str, model_folder: Path, dataset: Dataset, settings: Finetune, scratch: Path):
        self.dataset = dataset
        self.padding = 'max_length' if name == PADDED else False
        self.firsts: list[list[tuple[int, int]]] = []
        """For every test sentence (position of the first piece, word) of every word left."""
        super().__init__(model_folder, settings, scratch)

    def encoded(self) -> tuple[Rows, Rows]:
        train, _ = self._encode(self.dataset.train)
        test, self.firsts = self._encode(self.dataset.test)
        return train, test

    def model(self, dropout: dict[str, float]) -> Any:
        return transformers.AutoModelForTokenClassification.from_pretrained(
            self.model_folder,
            num_labels=len(self.dataset.labels),
            trust_remote_code=False,
            local_files_only=True,
            **dropout,
        )

    def collator(self) -> Any:
        return transformers.DataCollatorForTokenClassification(self.tokenizer)

    def answers(self, logits: Any) -> list[list[str]]:
        """One tag per word, from logits [B, L, C]; O where a word was cut off."""
        tags = [['O'] * len(sentence.words) for sentence in self.dataset.test]
        for sentence, firsts, ids_L in zip(tags, self.firsts, logits.argmax(-1), strict=True):
            for position, word in firsts:
                sentence[word] = self.dataset.labels[ids_L[position]]
        return tags

    def words_predicted(self) -> int:
        """Words of the test set that were not cut off."""
        return sum(map(len, self.firsts))

    def check_pieces(self, ours: task.Encoded) -> None:
        """SystemExit where a test sentence that ours need not cut has other pieces here, or other first ones."""
        counts = collections.Counter(window.example for window in ours.windows)
        for window in ours.windows:
            row, firsts = self.test.rows[window.example], self.firsts[window.example]
            pieces = tuple(row['input_ids'][: sum(row['attention_mask'])])
            same = pieces == window.pieces and firsts == list(zip(window.starts, window.words, strict=True))
            if counts[window.example] == 1 and not same:
                raise SystemExit(f'test sentence {window.example}: pieces differ; nothing was timed')

    def _encode(self, sentences: Sequence[Sentence]) -> tuple[Rows, list[list[tuple[int, int]]]]:
        """Pieces, cut and padded as run_ner does, with a label on the first piece of each word."""
        ids = {label: number for number, label in enumerate(self.dataset.labels)}
        encoded = self.tokenizer(
            [list(s.words) for s in sentences],
            is_split_into_words=True,
            padding=self.padding,
            truncation=True,
            max_length=self.settings.max_pieces,
        )
        rows, firsts = [], []
        for number, sentence in enumerate(sentences):
            words = encoded.word_ids(number)
            at = [(i, w) for i, w in enumerate(words) if w is not None and w != words[i - 1]]
            labels = [IGNORED] * len(words)
            for position, word in at:
                labels[position] = ids[sentence.tags[word]]
            rows.append({name: values[number] for name, values in encoded.items()} | {'labels': labels})
            firsts.append(at)
        return Rows(rows), firsts
