"""Fine-tune any Hugging Face encoder on one NER set: a linear head, a plain loop, the best epoch on devel.

Shapes: B windows, L pieces of the longest window of a batch, C labels.
"""

import dataclasses
import os
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from bioptimus_jax.errors import ConfigError, InputError
from bioptimus_jax.ner.align import IGNORED, Aligned, Window, align, piece_labels, tags_of_words
from bioptimus_jax.ner.corpora import SPLITS, Dataset, Sentence
from bioptimus_jax.ner.score import score
from bioptimus_jax.schema import Ner

BUCKET_BATCHES = 32  # batches of similar length are cut from pools of this many
COUNTS = ('zero_piece_words', 'long_sentences', 'cut_words')
PREDICT_BATCHES = 4  # a prediction batch is this many training batches


@dataclasses.dataclass(frozen=True)
class Outcome:
    """What one fine-tuning gives: predictions of the best epoch, the curve on devel, speed and counts."""

    devel: list[list[str]]
    test: list[list[str]]
    best_epoch: int
    history: list[dict[str, float]]
    train_sentences_per_second: float
    predict_sentences_per_second: float
    counts: dict[str, int]


def finetune(
    model_folder: Path,
    dataset: Dataset,
    settings: Ner,
    seed: int,
    *,
    threads: int = 1,
    on_epoch: Callable[[dict[str, float]], None] = lambda record: None,
    check: Callable[[], None] = lambda: None,
) -> Outcome:
    """Train on train, choose the epoch by default F1 on devel (the earlier one of equals), predict test once.

    Deterministic on the CPU for a seed and a number of threads. `check` is called after every update and may
    raise. Raises InputError for a folder that cannot be used, ConfigError where the loss is not finite.
    """
    import torch

    torch.set_num_threads(threads)
    tokenizer, model = load_model(model_folder, dataset.labels, settings, seed)
    model.to('cuda' if torch.cuda.is_available() else 'cpu')
    size = settings.max_pieces, settings.overlap_pieces
    splits = {name: align(tokenizer, getattr(dataset, name), *size) for name in SPLITS}
    gold = [s.tags for s in dataset.devel]
    history: list[dict[str, float]] = []
    best: tuple[float, dict[str, Any], list[list[str]]] = (-1.0, {}, [])
    seconds = 0.0
    for loss, epoch_seconds in _epochs(model, dataset, splits['train'].windows, settings, seed, check):
        seconds += epoch_seconds
        epoch = len(history) + 1
        if not np.isfinite(loss):
            raise ConfigError(
                f'config.ner.learning_rate: epoch {epoch} of {model_folder} has loss {loss}; lower it'
            )
        predicted = predict(model, dataset.devel, splits['devel'], dataset.labels, settings)
        f1 = score(gold, predicted, modes=('default',))['default']['f1']
        history.append({'epoch': epoch, 'loss': round(loss, 5), 'devel_f1': f1})
        on_epoch(history[-1])
        if f1 > best[0]:
            best = (f1, {k: v.detach().clone() for k, v in model.state_dict().items()}, predicted)
    model.load_state_dict(best[1])
    started = time.monotonic()
    test = predict(model, dataset.test, splits['test'], dataset.labels, settings)
    return Outcome(
        devel=best[2],
        test=test,
        best_epoch=1 + [h['devel_f1'] for h in history].index(best[0]),
        history=history,
        train_sentences_per_second=round(len(dataset.train) * settings.epochs / max(seconds, 1e-9), 1),
        predict_sentences_per_second=round(len(dataset.test) / max(time.monotonic() - started, 1e-9), 1),
        counts={n: sum(getattr(a, n) for a in splits.values()) for n in COUNTS},
    )


def load_model(folder: Path, labels: Sequence[str], settings: Ner, seed: int) -> tuple[Any, Any]:
    """Tokenizer and token-classification model of a Hugging Face folder; only the head may be new.

    transformers initialises whatever weight is missing at random without raising, so this checks.
    Raises InputError naming folder and weights, ConfigError where the windows do not fit.
    """
    import torch
    from transformers import AutoConfig, AutoModelForTokenClassification, AutoTokenizer
    from transformers.utils import logging

    os.environ['TOKENIZERS_PARALLELISM'] = 'false'
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    if not (folder / 'config.json').is_file():
        raise InputError(
            f'{folder}: is no Hugging Face folder (no config.json); run `bioptimus export`, or give its path'
        )
    try:
        config = AutoConfig.from_pretrained(folder)
        for name in ('hidden_dropout_prob', 'attention_probs_dropout_prob', 'classifier_dropout'):
            if hasattr(config, name):
                setattr(config, name, settings.dropout)
        config.id2label = dict(enumerate(labels))
        config.label2id = {label: i for i, label in enumerate(labels)}
        tokenizer = AutoTokenizer.from_pretrained(folder, use_fast=True)
        torch.manual_seed(seed)
        model, info = AutoModelForTokenClassification.from_pretrained(
            folder, config=config, dtype=torch.float32, output_loading_info=True
        )
    except (OSError, ValueError) as error:
        raise InputError(
            f'{folder}: cannot be loaded by transformers ({str(error).splitlines()[0]})'
        ) from error
    missing = sorted(k for k in info['missing_keys'] if not k.startswith('classifier.'))
    if missing or info['mismatched_keys']:
        wrong = ', '.join(map(str, [*missing, *info['mismatched_keys']][:4]))
        raise InputError(
            f'{folder}: weights are missing or have another shape: {wrong}; export the model again'
        )
    limit = min(tokenizer.model_max_length, getattr(config, 'max_position_embeddings', settings.max_pieces))
    if settings.max_pieces > limit:
        raise ConfigError(f'config.ner.max_pieces: {settings.max_pieces}, but {folder} has {limit} positions')
    return tokenizer, model


def bucketed(lengths: Sequence[int], batch: int, seed: tuple[int, ...]) -> list[list[int]]:
    """All indices once, in random batches of similar length; the order is decided by the seed alone."""
    generator = np.random.default_rng(seed)
    order = generator.permutation(len(lengths))
    pool = batch * BUCKET_BATCHES
    batches = []
    for start in range(0, len(order), pool):
        part = sorted(order[start : start + pool].tolist(), key=lambda i: lengths[i])
        batches += [part[i : i + batch] for i in range(0, len(part), batch)]
    return [batches[i] for i in generator.permutation(len(batches))]


def _epochs(
    model: Any, dataset: Dataset, windows: list[Window], settings: Ner, seed: int, check: Callable[[], None]
) -> Iterator[tuple[float, float]]:
    """Train one epoch at a time; gives its mean loss and its seconds."""
    label_ids = {label: i for i, label in enumerate(dataset.labels)}
    tags = [dataset.train[w.sentence].tags for w in windows]
    labels = [
        piece_labels(w, t, label_ids, settings.label_pieces) for w, t in zip(windows, tags, strict=True)
    ]
    lengths = [len(w.pieces) for w in windows]
    updates = settings.epochs * len(bucketed(lengths, settings.batch_sentences, (seed, 1)))
    optimizer, schedule = _optimizer(model, settings, updates)
    for epoch in range(1, settings.epochs + 1):
        started, loss = time.monotonic(), 0.0
        order = bucketed(lengths, settings.batch_sentences, (seed, epoch))
        model.train()
        for batch in order:
            loss += _update(
                model, optimizer, schedule, [windows[i] for i in batch], [labels[i] for i in batch]
            )
            check()
        yield loss / len(order), time.monotonic() - started


def predict(
    model: Any, sentences: Sequence[Sentence], aligned: Aligned, labels: Sequence[str], settings: Ner
) -> list[list[str]]:
    """One tag for every word of every sentence."""
    import torch

    windows = aligned.windows
    order = sorted(range(len(windows)), key=lambda i: len(windows[i].pieces))
    size = settings.batch_sentences * PREDICT_BATCHES
    predicted: list[Sequence[int]] = [()] * len(windows)
    model.eval()
    with torch.inference_mode():
        for start in range(0, len(order), size):
            part = order[start : start + size]
            ids_BxL = model(**_inputs([windows[i] for i in part], model)).logits.argmax(-1).cpu().numpy()
            for i, ids_L in zip(part, ids_BxL, strict=True):
                predicted[i] = ids_L.tolist()
    return tags_of_words(sentences, windows, predicted, labels)


def slanted_triangle(update: int, updates: int, warmup_fraction: float) -> float:
    """Share of the peak learning rate at `update` = 0 ..: linear up, then down, never quite zero."""
    warmup = max(1, round(updates * warmup_fraction))
    at = update + 1
    return at / warmup if at <= warmup else (updates + 1 - at) / (updates + 1 - warmup)


def _optimizer(model: Any, settings: Ner, updates: int) -> tuple[Any, Any]:
    import torch

    decayed: list[Any] = []
    free: list[Any] = []
    for name, parameter in model.named_parameters():
        (free if name.endswith('bias') or 'norm' in name.lower() else decayed).append(parameter)
    groups: list[dict[str, Any]] = [{'params': decayed}, {'params': free, 'weight_decay': 0.0}]
    # AdamW with bias correction: without it the first steps are several times too large (Tinn et al.).
    optimizer = torch.optim.AdamW(
        groups, settings.learning_rate, weight_decay=settings.weight_decay, fused=True
    )
    rate = lambda update: slanted_triangle(update, updates, settings.warmup_fraction)  # noqa: E731
    return optimizer, torch.optim.lr_scheduler.LambdaLR(optimizer, rate)


def _update(
    model: Any, optimizer: Any, schedule: Any, windows: list[Window], labels: list[list[int]]
) -> float:
    import torch

    inputs = _inputs(windows, model)
    labels_BxL = np.full(inputs['input_ids'].shape, IGNORED, np.int64)
    for row, ids in zip(labels_BxL, labels, strict=True):
        row[: len(ids)] = ids
    logits_BxLxC = model(**inputs).logits
    target = torch.from_numpy(labels_BxL).to(logits_BxLxC.device)
    loss = torch.nn.functional.cross_entropy(
        logits_BxLxC.flatten(0, 1), target.flatten(), ignore_index=IGNORED
    )
    optimizer.zero_grad()
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    schedule.step()
    return loss.item()


def _inputs(windows: Sequence[Window], model: Any) -> dict[str, Any]:
    import torch

    width = max(len(w.pieces) for w in windows)
    ids_BxL = np.full((len(windows), width), model.config.pad_token_id or 0, np.int64)
    mask_BxL = np.zeros((len(windows), width), np.int64)
    for ids, mask, window in zip(ids_BxL, mask_BxL, windows, strict=True):
        ids[: len(window.pieces)] = window.pieces
        mask[: len(window.pieces)] = 1
    tensors = {'input_ids': ids_BxL, 'attention_mask': mask_BxL}
    return {name: torch.from_numpy(array).to(model.device) for name, array in tensors.items()}
