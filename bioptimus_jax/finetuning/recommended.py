"""Epochs, batch and learning rate where the keys are 0: by the width of the model and the number of training examples.

Small models need high rates and small sets many passes: at the rates of a BERT-base a model of 384 units says nothing
after the usual three epochs on 400 sentences. LOG.md has what was measured (2026-11-27, fine-tuning by its defaults).
"""

import dataclasses
from pathlib import Path

from bioptimus_jax.finetuning.config import Finetune
from bioptimus_jax.model.folder import config_values

VERSION = 1
"""Raised when one of the numbers below changes: cells that were trained with others are then trained again."""
BASE_RATE, BASE_WIDTH, HIGHEST_RATE = 5e-5, 768, 2e-3
"""BERT-base's rate (BLURB's search, Tinn et al.); that of another width is the inverse square of it."""
LORA_TIMES, HIGHEST_LORA_RATE = 10, 5e-3
"""An adapter's rate, as a multiple of that of all weights, and the highest."""
FEW, MANY = 200, 10_000
SMALL_BATCH, BATCH, LARGE_BATCH = 8, 16, 32
UPDATES = 600
"""Updates that a small set has to come to."""
FEWEST_EPOCHS, MOST_EPOCHS = 3, 30
FOLLOWS = {'epochs': 'examples', 'batch_sentences': 'examples', 'learning_rate': 'width'}
"""The keys that the rule decides, and what it decides each by."""
WIDTHS = ('hidden_size', 'dim', 'd_model', 'n_embd')
"""What families call their width in config.json."""


def open_keys(settings: Finetune) -> list[str]:
    """The keys that the rule decides: those that are 0."""
    return [key for key in FOLLOWS if not getattr(settings, key)]


def completed(settings: Finetune, width: int, examples: int) -> Finetune:
    """The settings with a number for every open key; `width`: hidden size of the model."""
    batch = settings.batch_sentences or (
        SMALL_BATCH if examples <= FEW else BATCH if examples <= MANY else LARGE_BATCH
    )
    passes = -(-UPDATES * batch // max(examples, 1))
    return dataclasses.replace(
        settings,
        batch_sentences=batch,
        epochs=settings.epochs or min(max(passes, FEWEST_EPOCHS), MOST_EPOCHS),
        learning_rate=settings.learning_rate or rate_for(width, lora=bool(settings.lora)),
    )


def rate_for(width: int, *, lora: bool = False) -> float:
    """The learning rate for a model of so many units, or for an adapter on it, in two digits."""
    rate = min(BASE_RATE * (BASE_WIDTH / width) ** 2, HIGHEST_RATE)
    return float(f'{min(LORA_TIMES * rate, HIGHEST_LORA_RATE) if lora else rate:.1e}')


def width_of(folder: Path) -> int:
    """The hidden size of the model in a folder; BERT-base's where its config.json names none."""
    values = config_values(folder)
    return next((int(values[name]) for name in WIDTHS if values.get(name)), BASE_WIDTH)


def words(settings: Finetune, width: int, examples: int) -> str:
    """What the rule has decided, for the terminal."""
    made = completed(settings, width, examples)
    said = {
        'epochs': f'{made.epochs} epochs',
        'batch_sentences': f'batches of {made.batch_sentences}',
        'learning_rate': f'learning rate {made.learning_rate:g}',
    }
    return (
        f'{", ".join(said[key] for key in open_keys(settings))} for {width} units and {examples:,} examples '
        f'(config.finetune.{", ".join(open_keys(settings))}: 0)'
    )
