"""Fine-tune any Hugging Face encoder on one set: a plain loop, the best epoch on devel.

What is learned, and how it is measured, is the task's: a window holds `pieces`, the rest of it only the task reads.
"""

import dataclasses
import math
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from bioptimus_jax.errors import ConfigError, InputError
from bioptimus_jax.finetuning.batches import by_length, drawn, parts
from bioptimus_jax.finetuning.config import Finetune
from bioptimus_jax.finetuning.recommended import completed, width_of
from bioptimus_jax.finetuning.subset import as_learned
from bioptimus_jax.finetuning.task import Encoded, Task
from bioptimus_jax.hosts.workers import cores
from bioptimus_jax.sets.sentences import SPLITS

if TYPE_CHECKING:
    import torch

PREDICT_BATCHES = 4  # a prediction batch is this many training batches
CPU_PIECES = 1536
"""Most pieces of a prediction batch on a CPU: more do not fit its cache, and take up to a fifth longer each."""


def _nothing(*_: Any) -> None:
    pass


@dataclasses.dataclass(frozen=True)
class Outcome:
    """What one fine-tuning gives: answers of the best epoch, the curve on devel, speed and counts.

    `found`: what the head found in every window of test. `history`: epoch, its mean loss, the score on devel.
    `alignment`: oddities of windows, see `Encoded`. To tell runs that failed: `first_loss` is the loss before any
    update, `chance_loss` what the shares of the answers alone would give (their entropy); both in nats, as the losses
    of `history` are. A run whose last loss is not well below it has learned nothing from the text. `sameness`: what
    `Task.sameness` says of the answers to devel.
    """

    devel: list[Any]
    test: list[Any]
    found: list[Any]
    best_epoch: int
    history: tuple[Mapping[str, float], ...]
    train_sentences_per_second: float
    predict_sentences_per_second: float
    alignment: Mapping[str, int]
    train_sentences: int
    updates: int
    trained_parameters: int
    first_loss: float
    chance_loss: float
    sameness: str | None = None


def finetune(
    task: Task,
    model_folder: Path,
    dataset: Any,
    settings: Finetune,
    seed: int,
    *,
    threads: int = 1,
    on_epoch: Callable[[dict[str, float]], None] = _nothing,
    check: Callable[[], None] = _nothing,
    warn: Callable[[str], None] = _nothing,
    save: Callable[[Any, Any], None] | None = None,
    until: int = 0,
    on_update: Callable[[int, int], None] = _nothing,
) -> Outcome:
    """Train on train, choose the epoch by the task's metric on devel (the earlier one of equals), predict test once.
    With `settings.learn_devel` both are trained on, and the last epoch is taken.

    `save`: is given the tokenizer and the head with the weights of that epoch. `until`: stop after so many of the
    epochs, without a look at test. `warn`: is told after a third of the epochs if the answers are all alike.
    `on_update`: is told after every update how many there were, of how many.

    Deterministic on the CPU for a seed and a number of threads. `check` is called after every update and every batch
    of predictions, and may raise. Raises InputError for a folder that cannot be used, ConfigError where a key does not
    fit the model or the set, or the loss is not finite.
    """
    import torch

    from bioptimus_jax.finetuning.adapters import merge
    from bioptimus_jax.finetuning.loading import load_head

    # Four threads on two cores take 1.7 times as long as two.
    torch.set_num_threads(min(threads, len(cores())))
    tokenizer, head = load_head(task, model_folder, task.labels(dataset, settings), settings, seed)
    dataset = as_learned(task, dataset, settings)
    settings = completed(settings, width_of(model_folder), len(dataset.train))
    if not task.learns:
        return _as_it_is(task, tokenizer, head, dataset, settings, check, save)
    splits = _encoded(task, tokenizer, dataset, settings, SPLITS[:-1] if until else SPLITS, check)
    learned = [task.learned(example, settings) for example in dataset.train]
    targets = [task.target(w, learned[w.example], head) for w in splits['train'].windows]
    training = _Training(head, splits['train'].windows, targets, settings, seed, on_update)
    best, history = _best_epoch(
        task, training, model_folder, dataset.devel, splits['devel'].windows, on_epoch, check, warn, until
    )
    head.load_state_dict(best.weights)
    trained = sum(p.numel() for p in head.parameters() if p.requires_grad)
    merge(head)
    if head.bridge:
        head.bridge.read()
    started = time.monotonic()
    found = [] if until else outputs(head, splits['test'].windows, settings, check)
    test = [] if until else task.decode(dataset.test, splits['test'].windows, found, head, settings)
    seconds_of_test = time.monotonic() - started
    if save:
        save(tokenizer, head)
    return Outcome(
        devel=best.answers,
        test=test,
        found=found,
        best_epoch=best.epoch,
        history=tuple(history),
        train_sentences_per_second=_rate(len(dataset.train) * len(history), training.seconds),
        predict_sentences_per_second=_rate(len(dataset.test), seconds_of_test),
        alignment={n: sum(split.counts[n] for split in splits.values()) for n in splits['train'].counts},
        train_sentences=len(dataset.train),
        updates=training.updates,
        trained_parameters=trained,
        first_loss=round(training.first_loss, 5),
        sameness=task.sameness([task.answers(example) for example in dataset.devel], best.answers) or None,
        chance_loss=round(_entropy(Counter(answer for answers in learned for answer in answers)), 5),
    )


def _as_it_is(
    task: Task,
    tokenizer: Any,
    head: Any,
    dataset: Any,
    settings: Finetune,
    check: Callable[[], None],
    save: Callable[[Any, Any], None] | None,
) -> Outcome:
    """What a model gives that nothing is trained of."""
    splits = _encoded(task, tokenizer, dataset, settings, ('devel', 'test'), check)
    started = time.monotonic()
    found = {name: outputs(head, split.windows, settings, check) for name, split in splits.items()}
    seconds = time.monotonic() - started
    answers = {
        name: task.decode(getattr(dataset, name), split.windows, found[name], head, settings)
        for name, split in splits.items()
    }
    if save:
        save(tokenizer, head)
    return Outcome(
        devel=answers['devel'],
        test=answers['test'],
        found=found['test'],
        best_epoch=0,
        history=(),
        train_sentences_per_second=0.0,
        predict_sentences_per_second=_rate(sum(len(split.windows) for split in splits.values()), seconds),
        alignment=splits['test'].counts,
        train_sentences=0,
        updates=0,
        trained_parameters=0,
        first_loss=0.0,
        chance_loss=0.0,
    )


def remedy(settings: Finetune) -> str:
    """What to do where a model answers everything alike."""
    return (
        f'raise config.finetune.learning_rate ({settings.learning_rate:g}) or config.finetune.epochs '
        f'({settings.epochs}), or leave them at 0, by model and set'
    )


def _encoded(
    task: Task, tokenizer: Any, dataset: Any, settings: Finetune, splits: Sequence[str], check: Callable
) -> dict[str, Encoded]:
    """The windows of every split. Raises InputError that names the set, and where no word has a piece."""
    found = {}
    for name in splits:
        try:
            found[name] = task.windows(tokenizer, getattr(dataset, name), settings)
        except InputError as error:
            raise InputError(f'{dataset.name}, {name}: {error}') from error
        check()
    if 'train' in found and not found['train'].windows:
        raise InputError(f'{dataset.name}: no training word has a piece; is this the tokenizer of the model?')
    return found


@dataclasses.dataclass(frozen=True)
class _Best:
    """The best epoch so far: its score on devel, its number, its weights, its answers to devel."""

    score: float
    epoch: int
    weights: 'dict[str, torch.Tensor]'
    answers: list[Any]


def _best_epoch(
    task: Task,
    training: '_Training',
    model_folder: Path,
    devel: Sequence[Any],
    windows: Sequence[Any],
    on_epoch: Callable[[dict[str, float]], None],
    check: Callable[[], None],
    warn: Callable[[str], None],
    until: int,
) -> tuple[_Best, list[dict[str, float]]]:
    """Train epoch by epoch; gives the best one and the curve on devel. Raises ConfigError for an infinite loss."""
    head, settings, measured = training.head, training.settings, task.metric.name
    gold = [task.answers(example) for example in devel]
    history: list[dict[str, float]] = []
    best = _Best(-math.inf, 0, {}, [])
    for epoch, loss in enumerate(training.epochs(check), 1):
        if not math.isfinite(training.first_loss):  # no learning rate has changed anything yet
            raise InputError(
                f'{model_folder}: has loss {training.first_loss} on the first batch of training; look at its weights, '
                'or set config.finetune.dtype=float32'
            )
        if not math.isfinite(loss):
            raise ConfigError(
                f'config.finetune.learning_rate: epoch {epoch} of {model_folder} has loss {loss}; lower it'
            )
        predicted = predict(task, head, devel, windows, settings, check)
        score = task.metric.scores(gold, predicted)[measured]
        history.append({'epoch': epoch, 'loss': round(loss, 5), f'devel_{measured}': score})
        if epoch == settings.epochs if settings.learn_devel else score > best.score:
            best = _Best(score, epoch, _kept(head, best.weights), predicted)
        on_epoch(history[-1])  # when all memory is in use that will be
        if epoch == -(-settings.epochs // 3) < settings.epochs and (said := task.sameness(gold, predicted)):
            warn(f'after epoch {epoch} of {settings.epochs} {said}; if it stays so, {remedy(settings)}')
        if epoch == until:
            break
    return best, history


def predict(
    task: Task,
    head: Any,
    examples: Sequence[Any],
    windows: Sequence[Any],
    settings: Finetune,
    check: Callable[[], None] = _nothing,
) -> list[Any]:
    """The answers of every example."""
    return task.decode(examples, windows, outputs(head, windows, settings, check), head, settings)


def outputs(
    head: Any, windows: Sequence[Any], settings: Finetune, check: Callable[[], None] = _nothing
) -> list[Any]:
    """What the head finds in every window, as lists."""
    most_pieces = CPU_PIECES if head.on_cpu else math.inf
    lengths, most = [len(w.pieces) for w in windows], settings.batch_sentences * PREDICT_BATCHES
    found: list[Any] = [()] * len(windows)
    head.eval()
    for batch in by_length(lengths, most, most_pieces):
        of_batch = head.predict(head.batch([windows[i] for i in batch])).cpu().numpy()
        for i, of_window in zip(batch, of_batch, strict=True):
            found[i] = of_window.tolist()
        check()
    return found


class _Training:
    """Updates of one head, an epoch at a time."""

    def __init__(
        self,
        head: Any,
        windows: Sequence[Any],
        targets: Sequence[Any],
        settings: Finetune,
        seed: int,
        on_update: Callable[[int, int], None],
    ) -> None:
        from bioptimus_jax.finetuning.updates import Updates

        self.head, self.settings, self.seed = head, settings, seed
        self.windows, self.targets = windows, targets
        self.done, self.on_update = 0, on_update
        self.lengths = [len(w.pieces) for w in windows]
        self.updates = settings.epochs * math.ceil(len(windows) / settings.batch_sentences)
        self.first_loss, self.seconds = math.nan, 0.0
        self.weights = Updates(head, settings, self.updates, {piece for w in windows for piece in w.pieces})

    def epochs(self, check: Callable[[], None]) -> Iterator[float]:
        """Train one epoch at a time, which `seconds` adds up; gives its mean loss."""
        for epoch in range(1, self.settings.epochs + 1):
            started = time.monotonic()
            order = drawn(len(self.windows), self.settings.batch_sentences, (self.seed, epoch))
            self.head.train()
            self.weights.begin_epoch()
            losses = []
            for batch in order:
                losses.append(self._update(batch))
                check()
                self.done += 1
                self.on_update(self.done, self.updates)
            self.weights.end_epoch()
            values = [loss.item() for loss in losses]
            if epoch == 1:
                self.first_loss = values[0]
            self.seconds += time.monotonic() - started
            yield sum(values) / len(values)

    def _update(self, batch: list[int]) -> Any:
        self.weights.begin()
        loss = self._backward(batch)
        self.weights.update()
        return loss  # read at the end of the epoch: reading it here would wait for the device

    def _backward(self, batch: list[int]) -> Any:
        """Add the gradient of a batch, and give its loss; on a CPU in parts, so that little of it is padding."""
        import torch

        cut = parts([self.lengths[i] for i in batch]) if self.head.on_cpu else [range(len(batch))]
        chosen = [[batch[i] for i in part] for part in cut]
        given = [([self.windows[i] for i in part], [self.targets[i] for i in part]) for part in chosen]
        # Weights by what each part's loss is the mean over make the sum the mean over the whole batch.
        predicted = [self.head.predicted(*part) for part in given]
        total = torch.zeros((), device=self.head.device)
        for (windows, targets), count in zip(given, predicted, strict=True):
            # The mean over nothing is NaN: a window may show words that its neighbours predict, and predict none.
            if count:
                loss = self.head.loss(self.head.batch(windows, targets)) * (count / sum(predicted))
                loss.backward()
                total += loss.detach()
        return total


def _kept(head: Any, before: 'dict[str, torch.Tensor]') -> 'dict[str, torch.Tensor]':
    """A copy of the weights, in the place of the one before: a second would be the most that training ever takes."""
    if head.bridge:
        head.bridge.write()
    state = {name: value.detach() for name, value in head.state_dict().items()}
    return {n: before[n].copy_(v) if before else v.clone() for n, v in state.items()}


def _rate(count: int, seconds: float) -> float:
    return round(count / max(seconds, 1e-9), 1)


def _entropy(counts: Counter[Any]) -> float:
    shares = np.array(list(counts.values())) / max(sum(counts.values()), 1)
    return float(-(shares * np.log(shares)).sum())
