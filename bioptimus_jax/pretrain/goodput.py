"""Goodput: the share of wall time that trained, and where the rest went, over all processes that worked on a run.

The clock of a process is in one span at a time, so its spans add up to all of its time. Every record of training puts
them into metrics.jsonl: a kill leaves at most one interval without a record.
"""

import contextlib
import time
from collections.abc import Iterator, Sequence

from bioptimus_jax.progress.console import clock as in_words
from bioptimus_jax.progress.console import numbered
from bioptimus_jax.records.manifests import ComputedOn
from bioptimus_jax.records.metrics import Spans, Start
from bioptimus_jax.run.metrics import MetricsLog

STAGE = 'clock'
"""What these lines of metrics.jsonl have for a stage: they are of processes, and no later one replaces them."""
SPANS = ('start', 'compile', 'training', 'input', 'evaluation', 'checkpoint')
START, COMPILE, TRAINING, INPUT, EVALUATION, CHECKPOINT = SPANS
LOST, IDLE = 'lost to a kill', 'not running'
REPEATED = (TRAINING, INPUT, EVALUATION, CHECKPOINT)
"""What is done again after a kill. A start and its compiling count as such, whatever came of them."""


class Clock:
    """Where the time of this process goes, from the moment at which it began with the stage.

    `began`: that moment, by the wall clock. `anew`: records that are there are of an attempt that was replaced.
    """

    def __init__(self, metrics: MetricsLog, began: float, anew: bool):
        self.metrics, self.began, self.anew, self.step = metrics, began, anew, 0
        self.first: int | None = None  # the step that it goes on from, once that is known
        self.computed: ComputedOn | None = None  # once that is known
        self.spans, self.span = dict.fromkeys(SPANS, 0.0), START
        # The wall clock may be set while we work: only the start is taken from it.
        self.since = time.monotonic() - (time.time() - began)
        self.silent = True  # what is refused at its start leaves nothing behind

    def enter(self, span: str) -> None:
        """The time from now on belongs to this span."""
        now = time.monotonic()
        self.spans[self.span] += now - self.since
        self.span, self.since = span, now

    @contextlib.contextmanager
    def within(self, span: str) -> Iterator[None]:
        """The time of what is done within belongs to this span."""
        before = self.span
        self.enter(span)
        try:
            yield
        finally:
            self.enter(before)

    def waited(self, seconds: float) -> None:
        """Count seconds of this span that were spent waiting for input."""
        self.spans[INPUT] += seconds
        self.spans[self.span] -= seconds

    def record(self, step: int, ended: bool = False) -> None:
        """Put the spans on record; `ended`: this process has no more to say, so nothing killed it."""
        if self.silent and self.anew:
            self.metrics.add(STAGE, Start(step=0))
        self.silent, self.step = False, step
        self.enter(self.span)
        spans = {span: round(seconds, 3) for span, seconds in self.spans.items()}
        record = Spans(
            step=step,
            name=f'{self.began:.3f}',
            began=round(self.began, 3),
            first=self.first,
            ended=ended,
            spans=spans,
            computed=self.computed if step == (self.first or 0) else None,
        )
        self.metrics.add(STAGE, record)


def account(records: Sequence[Spans]) -> dict[str, float]:
    """Seconds by span, LOST and IDLE among them, of the records of all processes; they add up to all of the time.

    Lost is what a process did beyond the step from which a later one went on, and, where it was killed, the time after
    its last record up to the length of its last interval: nobody knows when in there it ended.
    """
    found, own = dict.fromkeys((*SPANS, LOST, IDLE), 0.0), processes(records)
    for number, of_process in enumerate(own):
        last, later = of_process[-1], own[number + 1 :]
        again = min((r.first for rs in later for r in rs if r.first is not None), default=last.step)
        kept = [r for r in of_process if r.step <= again][-1]  # its first record is at step 0
        for span in SPANS:
            repeated = last.spans[span] - kept.spans[span] if span in REPEATED else 0.0
            found[span] += last.spans[span] - repeated
            found[LOST] += repeated
        if later:
            idle = max(0.0, later[0][0].began - last.began - ran(last))
            before = of_process[-2] if len(of_process) > 1 else last
            unrecorded = 0.0 if last.ended else min(idle, ran(last) - ran(before))
            found[LOST] += unrecorded
            found[IDLE] += idle - unrecorded
    return found


def processes(records: Sequence[Spans]) -> list[list[Spans]]:
    """The records of each process that worked on it, in the order of the log, whatever the clocks of their machines
    say; of several at a time the leader's.
    """
    found: dict[str, list[Spans]] = {}
    for record in records:
        found.setdefault(record.name, []).append(record)
    return list(found.values())


def ran(record: Spans) -> float:
    """Seconds from the start of a process to a record of its own."""
    return sum(record.spans.values())


def line(records: Sequence[Spans]) -> str:
    """The account in one line: shares of the time in which a process ran."""
    found, number = account(records), len(processes(records))
    time_ran = sum(found.values()) - found[IDLE]
    others = ', '.join(
        f'{span} {found[span] / time_ran:.1%}' for span in (*SPANS, LOST) if span != TRAINING and found[span]
    )
    idle = f'; not running {in_words(found[IDLE])}' if found[IDLE] else ''
    counted = f', {numbered(number, "start")}' if number > 1 else ''
    return f'{found[TRAINING] / time_ran:.1%} of {in_words(time_ran)} trained{counted}; {others}{idle}'
