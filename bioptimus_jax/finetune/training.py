"""Fine-tune any Hugging Face encoder on one NER set: a plain loop, the best epoch on devel.

Shapes: B windows, L pieces of the longest window of a batch.
"""

import dataclasses
import math
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from bioptimus_jax.errors import ConfigError, InputError
from bioptimus_jax.finetune.align import Aligned, Window, align, piece_labels, tags_of_words, word_labels
from bioptimus_jax.finetune.batches import bucketed, collate
from bioptimus_jax.finetune.score import score
from bioptimus_jax.finetune.subset import chosen_sentences
from bioptimus_jax.schema import Finetune
from bioptimus_jax.sets.corpora import SPLITS, Dataset, Sentence
from bioptimus_jax.sets.tags import decode, encode

COUNTS = ('zero_piece_words', 'long_sentences', 'cut_words')
PREDICT_BATCHES = 4  # a prediction batch is this many training batches


def _nothing(*_: Any) -> None:
    pass


@dataclasses.dataclass(frozen=True)
class Outcome:
    """What one fine-tuning gives: predictions of the best epoch (IOB2), the curve on devel, speed and counts.

    `history`: epoch, its mean loss, default F1 on devel. To tell runs that failed: `first_loss` is the loss before any
    update, `chance_loss` what the shares of the labels alone would give (their entropy); both in nats, as the losses
    of `history` are. A run whose last loss is not well below it has learned nothing from the text.
    """

    devel: list[list[str]]
    test: list[list[str]]
    best_epoch: int
    history: list[dict[str, float]]
    train_sentences_per_second: float
    predict_sentences_per_second: float
    counts: dict[str, int]
    train_sentences: int
    updates: int
    trained_parameters: int
    first_loss: float
    chance_loss: float


def finetune(
    model_folder: Path,
    dataset: Dataset,
    settings: Finetune,
    seed: int,
    *,
    threads: int = 1,
    on_epoch: Callable[[dict[str, float]], None] = _nothing,
    check: Callable[[], None] = _nothing,
    save: Path | None = None,
) -> Outcome:
    """Train on train, choose the epoch by default F1 on devel (the earlier one of equals), predict test once.

    `save`: a folder for the model of that epoch, as transformers loads it; for linear heads.

    Deterministic on the CPU for a seed and a number of threads. `check` is called after every update and every batch
    of predictions, and may raise. Raises InputError for a folder that cannot be used, ConfigError where a key does not
    fit the model or the set, or the loss is not finite.
    """
    import torch

    from bioptimus_jax.finetune.loading import load_tagger, save_model

    torch.set_num_threads(threads)
    chosen = chosen_sentences(dataset.train, settings.train_sentences, settings.train_seed, dataset.name)
    dataset = dataclasses.replace(dataset, train=chosen)
    tokenizer, tagger = load_tagger(model_folder, sorted(dataset.types), settings, seed)
    splits = {}
    for name in SPLITS:
        splits[name] = align(tokenizer, getattr(dataset, name), settings.max_pieces, settings.overlap_pieces)
        check()
    training = _Training(tagger, dataset, splits['train'].windows, settings, seed)
    gold = [s.tags for s in dataset.devel]
    history: list[dict[str, float]] = []
    best: tuple[float, dict[str, Any], list[list[str]]] = (-1.0, {}, [])
    seconds = 0.0
    for loss, epoch_seconds in training.epochs(check):
        seconds += epoch_seconds
        epoch = len(history) + 1
        if not math.isfinite(loss):
            raise ConfigError(
                f'config.finetune.learning_rate: epoch {epoch} of {model_folder} has loss {loss}; lower it'
            )
        predicted = predict(tagger, dataset.devel, splits['devel'], settings, check)
        f1 = score(gold, predicted, modes=('default',))['default']['f1']
        history.append({'epoch': epoch, 'loss': round(loss, 5), 'devel_f1': f1})
        on_epoch(history[-1])
        if f1 > best[0]:
            best = (f1, {k: v.detach().clone() for k, v in tagger.state_dict().items()}, predicted)
    tagger.load_state_dict(best[1])
    started = time.monotonic()
    test = predict(tagger, dataset.test, splits['test'], settings, check)
    seconds_of_test = time.monotonic() - started
    if save:
        save_model(tokenizer, tagger, save)
    return Outcome(
        devel=best[2],
        test=test,
        best_epoch=1 + [h['devel_f1'] for h in history].index(best[0]),
        history=history,
        train_sentences_per_second=round(len(dataset.train) * settings.epochs / max(seconds, 1e-9), 1),
        predict_sentences_per_second=round(len(dataset.test) / max(seconds_of_test, 1e-9), 1),
        counts={n: sum(getattr(a, n) for a in splits.values()) for n in COUNTS},
        train_sentences=len(dataset.train),
        updates=training.updates,
        trained_parameters=sum(p.numel() for p in tagger.parameters() if p.requires_grad),
        first_loss=round(training.first_loss, 5),
        chance_loss=round(_entropy(Counter(tag for tags in training.tags for tag in tags)), 5),
    )


def predict(
    tagger: Any,
    sentences: Sequence[Sentence],
    aligned: Aligned,
    settings: Finetune,
    check: Callable[[], None] = _nothing,
) -> list[list[str]]:
    """One IOB2 tag for every word of every sentence."""
    windows = aligned.windows
    order = sorted(range(len(windows)), key=lambda i: len(windows[i].pieces))
    size = settings.batch_sentences * PREDICT_BATCHES
    predicted: list[Sequence[int]] = [()] * len(windows)
    tagger.eval()
    for start in range(0, len(order), size):
        part = order[start : start + size]
        ids_BxL = tagger.predict(_batch(tagger, [windows[i] for i in part])).cpu().numpy()
        for i, ids_L in zip(part, ids_BxL, strict=True):
            predicted[i] = ids_L.tolist()
        check()
    tags = tags_of_words(sentences, windows, predicted, tagger.labels)
    return [list(decode(sentence, settings.scheme)) for sentence in tags]


class _Training:
    """Updates of one tagger, an epoch at a time."""

    def __init__(
        self, tagger: Any, dataset: Dataset, windows: list[Window], settings: Finetune, seed: int
    ) -> None:
        if not windows:
            raise InputError(
                f'{dataset.name}: no training word has a piece; is this the tokenizer of the model?'
            )
        from bioptimus_jax.finetune.optimizer import optimizer_of
        from bioptimus_jax.finetune.used_rows import UsedRows

        self.tagger, self.windows, self.settings, self.seed = tagger, windows, settings, seed
        label_ids = {label: i for i, label in enumerate(tagger.labels)}
        self.tags = [encode(s.tags, settings.scheme) for s in dataset.train]
        self.labels = [
            word_labels(w, self.tags[w.sentence], label_ids)
            if tagger.chain is not None
            else piece_labels(w, self.tags[w.sentence], label_ids, settings.label_pieces)
            for w in windows
        ]
        self.lengths = [len(w.pieces) for w in windows]
        self.updates = settings.epochs * len(bucketed(self.lengths, settings.batch_sentences, (seed, 1)))
        self.first_loss = math.nan
        self.rows: UsedRows | None = None
        if UsedRows.applies(tagger):
            self.rows = UsedRows(tagger, {piece for w in windows for piece in w.pieces} | {_pad(tagger)})
            self.rows.install()
        self.optimizer, self.schedule = optimizer_of(tagger, settings, self.updates)
        self.trained = [p for p in tagger.parameters() if p.requires_grad]

    def epochs(self, check: Callable[[], None]) -> Iterator[tuple[float, float]]:
        """Train one epoch at a time; gives its mean loss and its seconds."""
        for epoch in range(1, self.settings.epochs + 1):
            started = time.monotonic()
            order = bucketed(self.lengths, self.settings.batch_sentences, (self.seed, epoch))
            self.tagger.train()
            if self.rows:
                self.rows.install()
            losses = []
            for batch in order:
                losses.append(self._update(batch))
                check()
            if self.rows:
                self.rows.restore()
            values = [loss.item() for loss in losses]
            if epoch == 1:
                self.first_loss = values[0]
            yield sum(values) / len(values), time.monotonic() - started

    def _update(self, batch: list[int]) -> Any:
        import torch

        chosen = _batch(self.tagger, [self.windows[i] for i in batch], [self.labels[i] for i in batch])
        loss = self.tagger.loss(chosen)
        self.optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self.trained, 1.0)
        self.optimizer.step()
        if self.rows:
            self.rows.after_update(self.optimizer)
        self.schedule.step()
        return loss.detach()  # read at the end of the epoch: reading it here would wait for the device


def _batch(tagger: Any, windows: Sequence[Window], labels: Sequence[Sequence[int]] | None = None) -> Any:
    chained = tagger.chain is not None
    return collate(windows, pad=_pad(tagger), device=tagger.device, chained=chained, labels=labels)


def _pad(tagger: Any) -> int:
    return tagger.encoder.config.pad_token_id or 0


def _entropy(counts: Counter[str]) -> float:
    shares = np.array(list(counts.values())) / max(sum(counts.values()), 1)
    return float(-(shares * np.log(shares)).sum())
