"""Tasks on the accelerators of this machine: each process sees one card, and a card has as many as its memory takes.

What a task takes is measured: the first of a kind has a card for itself and tells its peak (`tell`); then others run
beside it, as long as all of them fit.
"""

import collections
import concurrent.futures
import contextlib
import dataclasses
import os
from collections.abc import Callable, Hashable, Iterator, Sequence
from concurrent.futures import Future
from concurrent.futures.process import BrokenProcessPool
from multiprocessing.connection import Connection
from multiprocessing.context import SpawnContext
from typing import Any

from bioptimus_jax.errors import InputError, lacks_memory, reason_of
from bioptimus_jax.hosts.workers import Check, Pool, WorkerKilled, WorkerTask

FILLED = 0.9
"""Share of a card's memory that is given away: other seeds draw other batches, whose peak can be somewhat higher."""
ATTEMPTS = 3
"""How often a task is begun whose process is killed."""
SECONDS_BETWEEN_LOOKS = 0.1


@dataclasses.dataclass(frozen=True)
class Card:
    """An accelerator: what CUDA_VISIBLE_DEVICES calls it, its kind, its memory in bytes."""

    visible: str
    name: str
    memory: int

    def __str__(self) -> str:
        return f'{self.name} ({self.memory / 2**30:.0f} GiB)'


@dataclasses.dataclass(frozen=True)
class Job:
    """Arguments of a task; those of the same `kind` take the same memory of the same card."""

    name: str
    kind: Hashable
    arguments: tuple


@dataclasses.dataclass
class _Running:
    card: Card
    alone: bool  # no other task was on the card meanwhile


class Placement:
    """Which task begins on which card, by what is known of the memory that it takes."""

    def __init__(self, kinds: Sequence[Hashable], cards: Sequence[Card]) -> None:
        self.kinds, self.cards = kinds, cards
        self.waiting = list(range(len(kinds)))
        self.running: dict[int, _Running] = {}
        self.peaks: dict[tuple[Hashable, str], int] = {}
        self.outside: dict[str, int] = {}
        self.by_itself: set[int] = set()

    def next(self) -> tuple[int, Card] | None:
        """A task that may begin now and its card, which counts as begun; the card with the fewest tasks comes first."""
        for card in sorted(self.cards, key=lambda card: len(self._on(card))):
            here = self._on(card)
            if (number := self._beside(card, here) if here else self._first(card)) is not None:
                for other in here:
                    self.running[other].alone = False
                self.waiting.remove(number)
                self.running[number] = _Running(card, alone=not here)
                return number, card
        return None

    def heard(self, number: int, peak: int, outside: int) -> None:
        """A running task has told what it takes at most, and what of its card's memory is in nobody's count.

        The latter is the context of CUDA in its process, once nobody else is on the card: part of what each task takes.
        """
        running = self.running[number]
        key = self.kinds[number], running.card.name
        self.peaks[key] = max(peak, self.peaks.get(key, 0))
        if running.alone:
            self.outside[running.card.name] = outside

    def ended(self, number: int) -> None:
        """A running task does not run any more."""
        del self.running[number]

    def again(self, number: int, by_itself: bool = False) -> None:
        """A running task has failed and waits again; with `by_itself` for a card that has no other."""
        self.ended(number)
        self.waiting = sorted([*self.waiting, number])
        if by_itself:
            self.by_itself.add(number)

    def _on(self, card: Card) -> list[int]:
        return [number for number, running in self.running.items() if running.card == card]

    def _takes(self, number: int, card: Card) -> int | None:
        peak = self.peaks.get((self.kinds[number], card.name))
        return None if peak is None else peak + self.outside.get(card.name, 0)

    def _first(self, card: Card) -> int | None:
        """The task for a card that has none: first of a kind that nobody knows or measures, so that all are soon
        known."""
        measured = {self.kinds[n] for n, running in self.running.items() if running.card.name == card.name}

        def known(number: int) -> bool:
            return self._takes(number, card) is not None or self.kinds[number] in measured

        return min(self.waiting, key=known, default=None)  # the first of equals

    def _beside(self, card: Card, here: Sequence[int]) -> int | None:
        """The first task that fits beside those on a card, unless one of those has to be alone."""
        taken = [None if number in self.by_itself else self._takes(number, card) for number in here]
        if None in taken:
            return None
        room = FILLED * card.memory - sum(filter(None, taken))
        fits = (n for n in self.waiting if n not in self.by_itself and _within(self._takes(n, card), room))
        return next(fits, None)


def _within(takes: int | None, room: float) -> bool:
    return takes is not None and takes <= room


class _Process:
    """A process that sees one card and does a task at a time."""

    def __init__(self, card: Card) -> None:
        self.card, self.future = card, Future[Any]()
        self.told, telling = SpawnContext().Pipe(duplex=False)
        self.pool = Pool(1, _see, (card.visible, telling))

    def begin(self, number: int, function: WorkerTask, job: Job) -> None:
        self.number: int = number
        self.future = self.pool.submit(function, job.arguments)

    def heard(self) -> Iterator[tuple[int, int]]:
        """What its task has told since the last call."""
        with contextlib.suppress(EOFError, OSError):  # it was killed, which its future says
            while self.told.poll():
                yield self.told.recv()

    def ended(self) -> bool:
        """Whether its task has ended, in order or not."""
        try:
            self.pool.require_workers()
        except BrokenProcessPool as error:
            if not self.future.done():
                self.future = Future()
                self.future.set_exception(error)
        return self.future.done()

    def end(self) -> None:
        self.pool.close(kill=True)
        self.told.close()


class OnCards:
    """`function(*job.arguments)` of every job, in at most `most` processes that see one card each.

    What runs out of memory beside others begins again with a card for itself; if that is too little, too, it is
    refused, with `remedy`, when all others are done. The task of a process that is killed begins again. After any other
    error nothing new begins, and what runs is done before it is raised.
    """

    def __init__(
        self,
        function: WorkerTask,
        jobs: Sequence[Job],
        cards: Sequence[Card],
        most: int,
        remedy: str,
        say: Callable[[str], None],
    ) -> None:
        self.function, self.jobs, self.most, self.remedy, self.say = function, jobs, most, remedy, say
        self.placement = Placement([job.kind for job in jobs], cards)
        self.processes: list[_Process] = []  # all of them work, but for a moment
        self.done: dict[int, Any] = {}
        self.refused: dict[int, InputError] = {}
        self.killed: collections.Counter[int] = collections.Counter()
        self.failure: Exception | None = None

    def results(self, check: Check) -> Iterator[tuple[int, Any]]:
        """The number of every job and its result, in their order; `check` may raise."""
        shown = 0
        try:
            while True:
                check()
                self._begin()
                while shown in self.done or shown in self.refused:
                    if shown in self.done:
                        yield shown, self.done.pop(shown)
                    shown += 1
                if not self.processes:
                    break
                futures = [process.future for process in self.processes]
                concurrent.futures.wait(futures, SECONDS_BETWEEN_LOOKS, 'FIRST_COMPLETED')
                for process in self.processes:
                    self._hear(process)
        finally:
            for process in self.processes:
                process.end()
        yield from sorted(self.done.items())  # those behind one that failed
        if error := self.failure or next(iter(self.refused.values()), None):
            raise error

    def _begin(self) -> None:
        """Take what has ended, and begin what may begin, in processes that are there as far as they see the card."""
        ended = [process for process in self.processes if process.ended()]
        idle = [process for process in ended if self._take(process)]
        for process in ended:
            if process not in idle:  # its card is free of it before another one begins
                self._end(process)
        while self.failure is None and len(self.placement.running) < self.most:
            if (begun := self.placement.next()) is None:
                break
            number, card = begun
            known = next((process for process in idle if process.card == card), None)
            if known:
                idle.remove(known)
            else:
                self.processes.append(_Process(card))
            (known or self.processes[-1]).begin(number, self.function, self.jobs[number])
        for process in idle:  # even so each holds some hundred megabytes of its card
            self._end(process)

    def _end(self, process: _Process) -> None:
        process.end()
        self.processes.remove(process)

    def _hear(self, process: _Process) -> None:
        for told in process.heard():
            self.placement.heard(process.number, *told)

    def _take(self, process: _Process) -> bool:
        """Keep what a task gave or how it failed; whether its process can be given another one."""
        self._hear(process)
        number, placement = process.number, self.placement
        name, alone = self.jobs[number].name, placement.running[number].alone
        error = process.future.exception()
        if not isinstance(error, Exception):
            self.done[number] = process.future.result()
            placement.ended(number)
        elif isinstance(error, BrokenProcessPool) and not isinstance(
            loss := process.pool.loss(), WorkerKilled
        ):
            placement.ended(number)
            self.failure = self.failure or InputError(f'{name}: {loss}')
        elif isinstance(error, BrokenProcessPool):
            self.killed[number] += 1
            placement.again(number)
            if self.killed[number] < ATTEMPTS:
                self.say(
                    f'{name}: its process was killed; it is started again ({self.killed[number]} of {ATTEMPTS - 1})'
                )
            else:
                self.failure = WorkerKilled(
                    f'{name}: its process was killed {ATTEMPTS} times (often because the host runs out of memory); '
                    f'rerun the same command with --config.runtime.workers below {len(placement.running) + 1}'
                )
        elif not lacks_memory(error):
            placement.ended(number)
            self.failure = self.failure or error
            if self.processes[1:]:
                self.say(f'{name}: failed; {len(self.processes) - 1} more are finished before the run ends')
        elif not alone:
            placement.again(number, by_itself=True)
            self.say(f'{name}: ran out of memory beside others; it is tried again with a card to itself')
        else:
            placement.ended(number)
            self.refused[number] = InputError(
                f'{name}: the memory of {process.card} is not enough for it alone ({reason_of(error)}); {self.remedy}'
            )
            self.say(f'{name}: the memory of {process.card} is not enough for it alone; the others continue')
        return error is None


def tell_memory(peak: int, outside: int) -> None:
    """Note what a process that sees one card knows: the most bytes of its task, and what of the card nobody counts."""
    if _telling is not None:
        _telling.send((peak, outside))


_telling: Connection | None = None


def _see(visible: str, telling: Connection) -> None:
    """What a process begins with, before any library looks for devices. jax, if it is asked, keeps off the card."""
    global _telling
    os.environ |= {'CUDA_VISIBLE_DEVICES': visible, 'JAX_PLATFORMS': 'cpu'}
    _telling = telling
