"""The fastest of several ways to compute the same: measured once, within a bound, with one answer for all processes."""

import dataclasses
import math
import queue
import threading
import time
from collections.abc import Callable, Mapping

import jax
import numpy as np
from jax.experimental import multihost_utils

from bioptimus_jax.records.attention import Measured

SECONDS = 60.0
"""Time for all candidates together, with their checks and their compiling."""
REPEATS = 5
"""Measurements of which the shortest counts; one more before them compiles."""


@dataclasses.dataclass(frozen=True)
class Candidate:
    """`check`: what is wrong with it, in words, or None; `work`: does it once, and waits until it is done."""

    check: Callable[[], str | None]
    work: Callable[[], object]


def fastest(candidates: Mapping[str, Candidate], seconds: float = SECONDS) -> Measured:
    """Check and measure one after the other, each for no longer than what is left of the time.

    All processes must ask at the same place. What one of them cannot use none uses; the first one's times decide.
    """
    until, found, left_out = time.monotonic() + seconds, dict[str, float](), dict[str, str]()
    for name, candidate in candidates.items():
        # One clock decides for all: a candidate that only some processes begin would wait for ever in its collectives.
        left = agreed(until - time.monotonic())
        if left <= 0:
            left_out[name] = f'not measured, {seconds:g} s had passed'
            continue
        taken, flaw = _within(left, candidate)
        if (taken := agreed(taken)) < math.inf:
            found[name] = round(1000 * taken, 4)
        else:
            left_out[name] = flaw or 'not in another process'
    return Measured(min(found, key=lambda name: found[name], default=''), found, left_out)


def agreed(number: float) -> float:
    """The first process's number in all of them; infinite where that of any is. All must ask at the same place."""
    if jax.process_count() == 1:
        return number
    numbers = multihost_utils.process_allgather(np.float32(number))
    return math.inf if np.isinf(numbers).any() else float(numbers[0])


def flaw_of(check: Callable[[], str | None]) -> str | None:
    """What a check finds, or its own end, since errors of compilers and drivers have no common type."""
    try:
        return check()
    except Exception as error:
        lines = str(error).strip().splitlines() or ['']
        return f'{type(error).__name__}: {lines[0][:200]}'


def _within(seconds: float, candidate: Candidate) -> tuple[float, str | None]:
    """The seconds that it takes; infinite, with the reason, where it cannot be used or is not done in time.

    It has a thread of its own, which nobody can end: what hangs goes on behind.
    """
    answers: queue.SimpleQueue[tuple[float, str | None]] = queue.SimpleQueue()
    threading.Thread(target=lambda: answers.put(_timed(candidate)), daemon=True).start()
    try:
        return answers.get(timeout=seconds)
    except queue.Empty:
        return math.inf, f'not measured within the {seconds:.0f} s that were left'


def _timed(candidate: Candidate) -> tuple[float, str | None]:
    taken: list[float] = []

    def check() -> str | None:
        if flaw := candidate.check():
            return flaw
        for _ in range(1 + REPEATS):
            started = time.perf_counter()
            candidate.work()
            taken.append(time.perf_counter() - started)
        return None

    flaw = flaw_of(check)
    return (math.inf, flaw) if flaw else (min(taken[1:]), None)
