"""What a person sees of long work: lines, its rate and the time left, for a terminal or a log."""

import os
import re
import sys
import threading
import time
from collections.abc import Iterable
from typing import Any

from bioptimus_jax.errors import Stopped, printable

CLEARED = '\r\x1b[K'
"""What takes the line of a terminal away, so that another can stand there."""


class Console:
    """Where work says what it does, shows how far it is, and hears that it is to stop."""

    def __init__(self, quiet: bool = False):
        self.quiet = quiet
        self.stopping = threading.Event()

    def say(self, message: str) -> None:
        """One line for the person who watches."""
        if not self.quiet:
            print(printable(message), flush=True)

    def progress(self, label: str, total: float, unit: str) -> 'Progress':
        """A progress bar (terminal) or plain lines (elsewhere) with rate and ETA."""
        return Progress(label, total, unit, self.quiet)

    def check_stop(self) -> None:
        """Raise Stopped if a signal asked for it; call it where everything worth keeping is on disk."""
        if self.stopping.is_set():
            raise Stopped


class Progress:
    """Rate and ETA of long work; a bar that redraws on a terminal, a line every ten seconds elsewhere.

    `total`: 0 where nobody knows how much there is; then what is done and the rate are said alone.
    """

    def __init__(self, label: str, total: float, unit: str, quiet: bool):
        self.label, self.total, self.unit, self.quiet = label, total, unit, quiet
        self.done, self.started, self.shown = 0.0, time.monotonic(), 0.0
        self.first = 0.0
        self.terminal = sys.stdout.isatty()
        self.every = 0.2 if self.terminal else seconds_between(10)

    def start_at(self, done: float) -> None:
        """Resumed work: `done` units are there already and do not count for the rate."""
        self.done = self.first = done

    def update(self, amount: float, note: str = '') -> None:
        self.done += amount
        now = time.monotonic()
        finished = 0 < self.total <= self.done
        if self.quiet or (now - self.shown < self.every and not finished):
            return
        self.shown = now
        text = f'{self._line(now, finished)}, {note}' if note else self._line(now, finished)
        if self.terminal:
            print(CLEARED + text, end='\n' if finished else '', flush=True)
        else:
            print(text, flush=True)

    def _line(self, now: float, finished: bool) -> str:
        """What PROGRESS reads again."""
        seconds = max(now - self.started, 1e-9)
        rate = (self.done - self.first) / seconds
        left = (self.total - self.done) / rate if rate > 0 else 0
        if not self.total:
            return f'{self.label}: {self.done:,.0f} {self.unit}, {pace(rate)}'
        share = min(self.done / self.total, 1)
        text = f'{self.label}: {share:4.0%} {self.done:,.0f}/{self.total:,.0f} {self.unit}, {pace(rate)}'
        return text + (f', {clock(seconds)} in all' if finished else f', {clock(left)} left')


class Within(Progress):
    """Progress of a part of other work, which says itself when the part is done: a line each SECONDS, also on a
    terminal."""

    SECONDS = 30.0

    def __init__(self, label: str, total: float, unit: str, quiet: bool):
        super().__init__(label, total, unit, quiet)
        self.shown, self.every = self.started, seconds_between(self.SECONDS)

    def update(self, amount: float, note: str = '') -> None:
        self.done += amount
        now = time.monotonic()
        if not self.quiet and self.done < self.total and now - self.shown >= self.every:
            self.shown = now
            # Where a bar stands on a terminal the line takes its place.
            print(f'{CLEARED * self.terminal}{self._line(now, False)}', flush=True)


PROGRESS = re.compile(r'(?P<label>.+?): +\d+% (?P<done>[\d,]+)/(?P<total>[\d,]+) (?P<unit>[^,]+), ')
"""The beginning of a line of progress."""
OFTEN = 'BIOPTIMUS_PROGRESS_SECONDS'
"""An environment variable: seconds between such lines, where what starts this program makes bars of them."""


def seconds_between(usual: float) -> float:
    """Seconds between two lines of progress that are no bar."""
    return float(os.environ.get(OFTEN) or usual)


def coloured() -> bool:
    """Whether what is printed may have colours: on a terminal, unless NO_COLOR is set."""
    return sys.stdout.isatty() and not os.getenv('NO_COLOR')


def complain(message: str) -> None:
    """One line on stderr, in place of a progress bar that may stand there."""
    clear = CLEARED * sys.stderr.isatty()
    print(f'{clear}bioptimus: {printable(" ".join(message.split()))}', file=sys.stderr, flush=True)


def crash_file(details: str) -> str:
    """Keep what is too long for one line in a new file, secrets hidden; gives its path. Raises OSError."""
    import tempfile  # late: the program's first lines import this module

    # A name that nobody can have laid a link under.
    number, path = tempfile.mkstemp('.txt', 'bioptimus-crash-')
    with open(number, 'w', encoding='utf-8') as file:
        file.write(printable(details))
    return path


SHOWN, LETTERS = 5, 40
"""Names that a message lists, and letters of each."""
LONGEST_LIST, MANY = 160, 30
"""Letters of a list of labels that is shown whole, and labels that are more than a column of labels mostly has."""


def shortened(names: Iterable[Any], shown: int = SHOWN, letters: int = LETTERS) -> str:
    """The first names of a list, each cut to some letters, and how many more there are."""
    every = [str(name) for name in names]
    cut = [name if len(name) <= letters else f'{name[: letters - 3]}...' for name in every[:shown]]
    return ', '.join(cut) + (f' and {len(every) - shown:,} more' if len(every) > shown else '')


def some_labels(labels: Iterable[Any]) -> str:
    """Labels for a message: all of a few; of many the first five, how many there are, and whether that is meant."""
    every = [str(label) for label in labels]
    if len(', '.join(every)) <= LONGEST_LIST:
        return ', '.join(every)
    if len(every) <= MANY:
        return shortened(every, letters=LETTERS // 2)
    first = shortened(every[:SHOWN], letters=LETTERS // 2)
    return f'{first} ...; {len(every):,} different labels; is this the column?'


def numbered(number: int, noun: str) -> str:
    """A number and its noun: 1 cell, 2,000 cells, 3 entries."""
    return f'{number} {noun}' if number == 1 else f'{number:,} {plural(noun)}'


def plural(noun: str) -> str:
    """The plural of a noun: cells, entries, epochs, boxes."""
    if re.search('(s|x|z|(?<!epo)ch|sh)$', noun):
        return f'{noun}es'
    return f'{re.sub("(?<![aeiou])y$", "ie", noun)}s'


def in_units(number: float, base: int = 1000) -> str:
    """Bytes in a unit of which there is one at least, in three digits: `1.52 GB`; with base 1024 `1.41 GiB`."""
    prefixes, power = ' kMGTP' if base == 1000 else ' KMGTP', 0
    while number >= base - 0.5 and power < len(prefixes) - 1:
        number, power = number / base, power + 1
    if not power:
        return numbered(round(number), 'byte')
    shown = f'{number:,.0f}' if number >= 99.95 else f'{number:.3g}'
    return f'{shown} {prefixes[power]}{"i" * (base == 1024)}B'


def pace(rate: float) -> str:
    """A rate as a person reads it: 1,234/s, 2.5/s, 12 s each."""
    if rate >= 10:
        return f'{rate:,.0f}/s'
    return f'{rate:.1f}/s' if rate >= 0.5 or rate <= 0 else f'{1 / rate:,.0f} s each'


def clock(seconds: float) -> str:
    """Seconds as a person reads them: 7 s, 3 min 20 s, 2 h 5 min."""
    seconds = int(seconds)
    if seconds < 60:
        return f'{seconds} s'
    if seconds < 3600:
        return f'{seconds // 60} min {seconds % 60} s'
    return f'{seconds // 3600} h {seconds % 3600 // 60} min'
