"""The curriculum as data: phases become a table of steps, settings and learning rates, looked up by step.

The paper's curriculum (section 4): 0.1 tokens 15 % -> 0.2 whole words 15 % -> 0.3 whole words 20 % -> 0.4 all [MASK].
"""

import dataclasses
from typing import Any

import jax.numpy as jnp
import numpy as np

from bioptimus_jax.config import ConfigError, Experiment, Phase
from bioptimus_jax.pretrain.masking import Setting

KINDS = {bool: np.bool_, int: np.int32, float: np.float32}


@dataclasses.dataclass(frozen=True)
class Stretch:
    """A phase with its place on the step axis: steps start <= step < stop."""

    name: str
    phase: Phase
    start: int
    stop: int


@dataclasses.dataclass(frozen=True)
class RowCounts:
    """What durations in epochs, tokens and words are measured against."""

    rows: int
    tokens: int
    words: int


def stretches(experiment: Experiment, counts: RowCounts) -> tuple[Stretch, ...]:
    """Every phase in order with its first and last step."""
    placed, start = [], 0
    for name in experiment.phases:
        phase = experiment.phase[name]
        stop = start + phase_steps(phase, counts, experiment.pretrain.batch_rows, name)
        placed.append(Stretch(name, phase, start, stop))
        start = stop
    return tuple(placed)


def phase_steps(phase: Phase, counts: RowCounts, batch_rows: int, name: str = '') -> int:
    """The phase's duration in optimiser steps, rounded, at least one."""
    if phase.duration <= 0:
        raise ConfigError(f'config.phase.{name}.duration: must be above 0, got {phase.duration}')
    if phase.duration_unit == 'steps':
        return max(1, round(phase.duration))
    per_epoch = {'epochs': 1, 'tokens': counts.tokens, 'words': counts.words}[phase.duration_unit]
    return max(1, round(phase.duration / per_epoch * counts.rows / batch_rows))


def table(placed: tuple[Stretch, ...], experiment: Experiment) -> dict[str, np.ndarray]:
    """Arrays over the P phases: boundaries, masking setting, learning-rate path, optimiser resets."""
    columns: dict[str, list[Any]] = {}
    path_of, first = [], 0
    for number, stretch in enumerate(placed):
        if stretch.phase.schedule == 'restart':
            first = number
        path_of.append(first)
    base = experiment.pretrain.learning_rate
    for stretch, first in zip(placed, path_of, strict=True):
        members = [s for s, f in zip(placed, path_of, strict=True) if f == first]
        phase, length = stretch.phase, members[-1].stop - members[0].start
        values = {
            'start': stretch.start,
            **setting_values(phase),
            'peak': phase.learning_rate or base,
            'path_start': members[0].start,
            'path_steps': length,
            'path_warmup': round(experiment.pretrain.warmup_fraction * length),
            'reset': phase.optimizer == 'reset',
        }
        for name, value in values.items():
            columns.setdefault(name, []).append(value)
    return {name: np.array(values, KINDS[type(values[0])]) for name, values in columns.items()}


def setting_values(phase: Phase) -> dict[str, bool | float]:
    """A phase's masking setting, by the names of `Setting`'s fields."""
    return {
        'whole_words': phase.masking == 'words',
        'rate': phase.rate,
        'p_mask': phase.corruption[0],
        'p_random': phase.corruption[1],
        'draw_per_word': phase.corruption_unit == 'word',
    }


def setting_of(phase: Phase) -> Setting:
    """The masking setting of one phase, as scalars of the table's types."""
    return Setting(**{n: jnp.asarray(v, KINDS[type(v)]) for n, v in setting_values(phase).items()})


def setting_at(table: dict[str, Any], step: Any) -> Setting:
    """The masking setting of a step, as scalars."""
    at = phase_at(table, step)
    return Setting(*(jnp.asarray(table[name])[at] for name in Setting._fields))


def phase_at(table: dict[str, Any], step: Any) -> Any:
    """Number of the phase that a step belongs to."""
    return jnp.searchsorted(jnp.asarray(table['start']), step, side='right') - 1


def learning_rate_at(table: dict[str, Any], step: Any, end_fraction: float) -> Any:
    """Linear warm-up to the peak, then linear decay to `end_fraction` of it, continuous at the peak."""
    at = phase_at(table, step)
    peak, start, steps, warmup = (
        jnp.asarray(table[n])[at].astype(jnp.float32)
        for n in ('peak', 'path_start', 'path_steps', 'path_warmup')
    )
    done = step - start
    rising = (done + 1) / jnp.maximum(warmup, 1)
    falling = 1 - (1 - end_fraction) * (done - warmup) / jnp.maximum(steps - warmup, 1)
    return peak * jnp.where(done < warmup, rising, falling)


def check_continues(before: list[dict], placed: tuple[Stretch, ...], step: int) -> None:
    """Steps already taken must lie in the phases they were taken in. Raises ConfigError naming the phase."""
    for old, new in zip(before, placed, strict=False):
        unchanged = (old['name'], old['start'], old['stop']) == (new.name, new.start, new.stop)
        running = old['start'] <= step < old['stop'] or step == old['stop'] == before[-1]['stop']
        if (
            old['start'] < step
            and not unchanged
            and not (running and new.start == old['start'] and new.stop >= step)
        ):
            raise ConfigError(
                f'config.phase.{new.name}.duration: {step} steps are done, and phase {old["name"]} took steps '
                f'{old["start"]}-{old["stop"]}; only phases that are not over can be changed'
            )
