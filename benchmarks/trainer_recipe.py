"""Fine-tuning as the examples of transformers do it: its Trainer, random batches, the last epoch or the best one.

Optimiser, schedule, clipping, batch, epochs, dropout and seed are those of our settings. The examples take all of them
as options, but for dropout, which the weights' own configuration gives.
"""

import abc
import dataclasses
import os
import time
from pathlib import Path
from typing import Any

import torch
import transformers

from bioptimus_jax.finetuning.config import Finetune

TRIED = 64  # examples that decide between one thread and two
GPU = torch.cuda.is_available()


@dataclasses.dataclass(frozen=True)
class Rows(torch.utils.data.Dataset):
    """Examples as the model's arguments, with `labels`."""

    rows: list[dict[str, Any]]

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, index: int) -> dict[str, Any]:
        return self.rows[index]


@dataclasses.dataclass(frozen=True)
class Trained:
    """What one fine-tuning gives: answers on the test set, and examples per second without tokenising."""

    test: list[Any]
    train_sentences_per_second: float
    predict_sentences_per_second: float


class TrainerRecipe(abc.ABC):
    """An example of transformers on one set, tokenised once, with the better of one thread and two (`threads`).

    `devel`: with --load_best_model_at_end, what the epoch is chosen on; else the last epoch is taken.
    """

    devel: Rows | None = None

    def __init__(self, model_folder: Path, settings: Finetune, scratch: Path) -> None:
        os.environ['TOKENIZERS_PARALLELISM'] = 'false'
        transformers.logging.set_verbosity_error()
        transformers.logging.disable_progress_bar()
        self.model_folder, self.settings, self.scratch = model_folder, settings, scratch
        self.tokenizer = transformers.AutoTokenizer.from_pretrained(
            model_folder, use_fast=True, trust_remote_code=False, local_files_only=True
        )
        self.train, self.test = self.encoded()
        self.threads = 1 if GPU else self._better_threads()

    @abc.abstractmethod
    def encoded(self) -> tuple[Rows, Rows]:
        """The training and the test set."""

    @abc.abstractmethod
    def model(self, dropout: dict[str, float]) -> Any:
        """The model with a new head."""

    @abc.abstractmethod
    def collator(self) -> Any:
        """What makes a batch of rows."""

    @abc.abstractmethod
    def answers(self, logits: Any) -> list[Any]:
        """Answers on the test set, from the logits that the Trainer gives."""

    def devel_score(self, logits: Any) -> float:
        """The score of the logits on `devel`; the epoch with the highest one is the best."""
        raise NotImplementedError

    def finetune(self, seed: int) -> Trained:
        """Train on train, predict test once."""
        trainer = self._trainer(seed, self.train, self.devel)
        clock = trainer.clock
        trainer.train()
        trainer.compute_metrics = None  # of devel alone
        started = time.perf_counter()
        answers = self.answers(trainer.predict(self.test).predictions)
        taken = time.perf_counter() - started
        return Trained(
            answers, len(self.train) * self.settings.epochs / clock.seconds, len(self.test) / taken
        )

    def _trainer(self, seed: int, train: Rows, devel: Rows | None = None) -> Any:
        s = self.settings
        best = dict(
            eval_strategy='epoch', save_strategy='epoch', save_total_limit=1, metric_for_best_model='score'
        )
        transformers.set_seed(seed)
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
            **(best | dict(load_best_model_at_end=True) if devel else dict(save_strategy='no')),
            logging_strategy='no',
            report_to='none',
            disable_tqdm=True,
            dataloader_pin_memory=GPU,
        )
        trainer = transformers.Trainer(
            self.model(dict(hidden_dropout_prob=s.dropout, attention_probs_dropout_prob=s.dropout)),
            options,
            train_dataset=train,
            eval_dataset=devel,
            compute_metrics=(lambda found: {'score': self.devel_score(found.predictions)}) if devel else None,
            data_collator=self.collator(),
            processing_class=self.tokenizer,
        )
        trainer.remove_callback(transformers.PrinterCallback)
        trainer.clock = Clock()
        trainer.add_callback(trainer.clock)
        return trainer

    def _better_threads(self) -> int:
        """One thread or two, whichever was faster in one epoch of a few examples, after one to warm up."""
        part = Rows(self.train.rows[:TRIED])
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
    """Seconds of each epoch; neither setting up the Trainer nor devel is in them, as with ours."""

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
