"""What a person sees of training: one record for the steps since the last one, and a profiler's window."""

import dataclasses
import math
import time
from pathlib import Path
from typing import Any

import jax
import numpy as np

from bioptimus_jax.pretrain.objective import Objective, StepMetrics, Tensors
from bioptimus_jax.pretrain.throughput import peak_flops
from bioptimus_jax.progress.console import numbered
from bioptimus_jax.records.metrics import Training


@dataclasses.dataclass
class LogInterval:
    """The steps since the last record: their metrics, still on the device, and the time spent waiting for batches."""

    steps: list[tuple[int, Tensors]] = dataclasses.field(default_factory=list)
    started: float = dataclasses.field(default_factory=time.monotonic)
    waited: float = 0.0

    def add(self, done: int, metrics: Tensors, waited: float) -> None:
        self.steps.append((done, metrics))
        self.waited += waited

    def read(self) -> tuple[list[tuple[int, StepMetrics]], float]:
        """The metrics on the host, which waits for the steps, and the seconds since the interval opened."""
        values = [(step, jax.device_get(metrics)) for step, metrics in self.steps]
        return values, max(time.monotonic() - self.started, 1e-9)


def first_not_finite(values: list[tuple[int, StepMetrics]]) -> int | None:
    """The first step whose loss or gradient is not finite, or None."""
    return next((step for step, metrics in values if not metrics['finite']), None)


def summarise(
    interval: LogInterval,
    values: list[tuple[int, StepMetrics]],
    seconds: float,
    cells: int,
    objective: Objective,
    phase: str,
    tokens_before: int,
) -> Training:
    """One record: the mean loss of the interval's finite steps, the last learning rate, rates per second, what the
    objective has to tell; predicted pieces, FLOPs and seconds are of the interval alone, tokens since step 0.

    `cells`: places in a batch, padding included. MFU is left out where the device's peak is not known.
    """
    good = [metrics for _, metrics in values if metrics['finite']] or [values[-1][1]]
    last = values[-1][1]
    tokens = sum(int(metrics['tokens']) for _, metrics in values)
    attended, predicted = (sum(float(m[name]) for _, m in values) for name in ('attended', 'predicted'))
    flops, peak = objective.flops(tokens, attended, predicted), peak_flops()
    record = {
        'step': values[-1][0],
        'phase': phase,
        'tokens': tokens_before + tokens,
        'loss': float(np.mean([metrics['loss'] for metrics in good])),
        'learning_rate': float(last['learning_rate']),
        'gradient_norm': float(last['gradient_norm']),
        'skipped': sum(not metrics['finite'] for _, metrics in values),
        'tokens_per_second': round(tokens / seconds, 1),
        'padded_tokens_per_second': round(cells * len(values) / seconds, 1),
        'input_wait': round(interval.waited / seconds, 4),
        'fill': round(tokens / (cells * len(values)), 4),
        **objective.record([metrics for _, metrics in values], good),
        'predicted': predicted,
        'flops': flops,
        'seconds': seconds,
        **({'mfu': round(flops / seconds / (peak * jax.device_count()), 4)} if peak else {}),
    }
    return Training.read(record, f'pretrain: objective {type(objective).__name__}', 'correct what it records')


def line(record: Training) -> str:
    """A record in a few words, for the progress line."""
    parts = [f'loss {record.loss:.3f}', f'{record.tokens_per_second:,.0f} tokens/s']
    if record.mfu is not None:
        parts.append(f'MFU {record.mfu:.0%}')
    if record.skipped:
        parts.append(f'{numbered(record.skipped, "step")} skipped')
    return ', '.join(parts)


class Profiler:
    """A trace of the steps `first` to `last`, written to `folder`; does nothing without them."""

    def __init__(self, steps: tuple[int, ...], folder: Path):
        self.first: float = steps[0] if steps else math.inf
        self.last: float = steps[-1] if steps else math.inf
        self.folder, self.tracing = folder, False

    def before(self, step: int) -> None:
        if self.first <= step <= self.last and not self.tracing:
            jax.profiler.start_trace(str(self.folder))
            self.tracing = True

    def after(self, step: int, state: Any) -> None:
        if self.tracing and step >= self.last:
            jax.block_until_ready(state)
            self.close()

    def close(self) -> None:
        if self.tracing:
            jax.profiler.stop_trace()
            self.tracing, self.first = False, math.inf
