"""Fine-tuning as transformers' run_ner example does it (examples/pytorch/token-classification), written anew.

Its Trainer and DataCollatorForTokenClassification, random batches, labels on first pieces and -100 elsewhere, what is
longer than `max_seq_length` cut off, the last epoch's weights. Optimiser, schedule, clipping, batch, epochs, dropout
and seed are those of our settings; run_ner takes all of them as options, but for dropout, which the weights' own
configuration gives.

run_ner: with --pad_to_max_length, every sentence as wide as the maximum. run_ner_longest: without it, as is its
default: as wide as the longest of a random batch.

Shapes: B sentences, L pieces of the widest sentence of the set, C labels.
"""

import collections
import dataclasses
import os
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
import transformers

from bioptimus_jax.finetune import task
from bioptimus_jax.schema import Finetune
from bioptimus_jax.sets.corpora import Dataset
from bioptimus_jax.sets.sentences import Sentence

PADDED, LONGEST = 'run_ner', 'run_ner_longest'
IGNORED = -100
TRIED = 64  # sentences that decide between one thread and two
GPU = torch.cuda.is_available()


@dataclasses.dataclass(frozen=True)
class Encoded(torch.utils.data.Dataset):
    """Sentences as pieces and labels; `firsts` has (position of the first piece, word) for every word left."""

    rows: list[dict[str, list[int]]]
    firsts: list[list[tuple[int, int]]]

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, index: int) -> dict[str, list[int]]:
        return self.rows[index]


@dataclasses.dataclass(frozen=True)
class Trained:
    """What one fine-tuning gives: tags of the test set, and sentences per second without tokenising."""

    test: list[list[str]]
    train_sentences_per_second: float
    predict_sentences_per_second: float


class Recipe:
    """The example on one set, tokenised once, with the better of one thread and two (`threads`)."""

    def __init__(self, name: str, model_folder: Path, dataset: Dataset, settings: Finetune, scratch: Path):
        os.environ['TOKENIZERS_PARALLELISM'] = 'false'
        transformers.logging.set_verbosity_error()
        transformers.logging.disable_progress_bar()
        self.model_folder, self.dataset, self.settings, self.scratch = (
            model_folder,
            dataset,
            settings,
            scratch,
        )
        self.tokenizer = transformers.AutoTokenizer.from_pretrained(
            model_folder, use_fast=True, trust_remote_code=False, local_files_only=True
        )
        self.padding = 'max_length' if name == PADDED else False
        self.train, self.test = self.encode(dataset.train), self.encode(dataset.test)
        self.threads = 1 if GPU else self._better_threads()

    def encode(self, sentences: Sequence[Sentence]) -> Encoded:
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
        return Encoded(rows, firsts)

    def finetune(self, seed: int) -> Trained:
        """Train on train, predict test once."""
        trainer = self._trainer(seed, self.train)
        clock = trainer.clock
        trainer.train()
        started = time.perf_counter()
        logits_BxLxC = trainer.predict(self.test).predictions
        tags = self._tags(logits_BxLxC.argmax(-1))
        taken = time.perf_counter() - started
        sentences = len(self.train) * self.settings.epochs
        return Trained(tags, sentences / clock.seconds, len(self.test) / taken)

    def words_predicted(self) -> int:
        """Words of the test set that were not cut off."""
        return sum(map(len, self.test.firsts))

    def check_pieces(self, ours: task.Encoded) -> None:
        """SystemExit where a test sentence that ours need not cut has other pieces here, or other first ones."""
        counts = collections.Counter(window.example for window in ours.windows)
        for window in ours.windows:
            row, firsts = self.test.rows[window.example], self.test.firsts[window.example]
            pieces = tuple(row['input_ids'][: sum(row['attention_mask'])])
            same = pieces == window.pieces and firsts == list(zip(window.starts, window.words, strict=True))
            if counts[window.example] == 1 and not same:
                raise SystemExit(f'test sentence {window.example}: pieces differ; nothing was timed')

    def _tags(self, ids_BxL: np.ndarray) -> list[list[str]]:
        """One tag per word; O where a word was cut off."""
        tags = [['O'] * len(sentence.words) for sentence in self.dataset.test]
        for sentence, firsts, ids_L in zip(tags, self.test.firsts, ids_BxL, strict=True):
            for position, word in firsts:
                sentence[word] = self.dataset.labels[ids_L[position]]
        return tags

    def _trainer(self, seed: int, train: Encoded) -> Any:
        s = self.settings
        transformers.set_seed(seed)
        model = transformers.AutoModelForTokenClassification.from_pretrained(
            self.model_folder,
            num_labels=len(self.dataset.labels),
            hidden_dropout_prob=s.dropout,
            attention_probs_dropout_prob=s.dropout,
            trust_remote_code=False,
            local_files_only=True,
        )
        options = transformers.TrainingArguments(
            output_dir=str(self.scratch),
            seed=seed,
            num_train_epochs=s.epochs,
            per_device_train_batch_size=s.batch_sentences,
            per_device_eval_batch_size=s.batch_sentences,
            learning_rate=s.learning_rate,
            weight_decay=s.weight_decay,
            warmup_steps=s.warmup_fraction,  # below 1: a share of all steps
            bf16=GPU,
            save_strategy='no',
            logging_strategy='no',
            report_to='none',
            disable_tqdm=True,
            dataloader_pin_memory=GPU,
        )
        trainer = transformers.Trainer(
            model,
            options,
            train_dataset=train,
            data_collator=transformers.DataCollatorForTokenClassification(self.tokenizer),
            processing_class=self.tokenizer,
        )
        trainer.remove_callback(transformers.PrinterCallback)
        trainer.clock = Clock()
        trainer.add_callback(trainer.clock)
        return trainer

    def _better_threads(self) -> int:
        """One thread or two, whichever was faster in one epoch of a few sentences, after one to warm up."""
        part = Encoded(self.train.rows[:TRIED], self.train.firsts[:TRIED])
        taken = {}
        for threads in (2, 1):
            torch.set_num_threads(threads)
            trainer = self._trainer(0, part)
            trainer.args.num_train_epochs = 2
            trainer.train()
            taken[threads] = trainer.clock.epochs[-1]
        best = min(taken, key=lambda threads: taken[threads])
        torch.set_num_threads(best)
        return best


class Clock(transformers.TrainerCallback):
    """Seconds of each epoch; setting up the Trainer, the model and the optimiser is not in them, as with ours."""

    def __init__(self) -> None:
        self.epochs: list[float] = []
        self.started = 0.0

    @property
    def seconds(self) -> float:
        return sum(self.epochs)

    def on_epoch_begin(self, *_: Any, **__: Any) -> None:
        self.started = time.perf_counter()

    def on_epoch_end(self, *_: Any, **__: Any) -> None:
        if GPU:
            torch.cuda.synchronize()
        self.epochs.append(time.perf_counter() - self.started)
