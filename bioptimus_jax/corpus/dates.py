"""Dates of publication as PubMed and PMC write them, and the day that is too late.

A date without a day or a month can mean many days: it is read as a span, from the first of them to the last.
"""

import calendar
import datetime
import functools
import re
from collections.abc import Iterator, Sequence

from bioptimus_jax.corpus.config import Corpus
from bioptimus_jax.corpus.records import Record
from bioptimus_jax.errors import ConfigError

Date = tuple[int, int, int]
DateSpan = tuple[Date, Date]

# `1984-85` and `1999-00`, but not 2011-12-15.
YEARS = re.compile(r'\b([12]\d)(\d\d)[-/](\d\d)\b(?![-/]?\d)', re.ASCII)
YEAR = re.compile(r'[12]\d{3}', re.ASCII)
QUARTER = re.compile(r'\b([1-4])(?:st|nd|rd|th)\s+quarter', re.IGNORECASE)
WORD = re.compile(r'q[1-4]|[0-9]+|[^\W\d_]+')
# First and last month. Seasons are as long as any journal of the north means them; a winter may stand at either end of
# its year, so that it tells no more than the year.
UNITS = {name: (n, n) for n, name in enumerate('jan feb mar apr may jun jul aug sep oct nov dec'.split(), 1)}
UNITS |= {'win': (1, 12), 'spr': (3, 6), 'sum': (6, 9), 'aut': (9, 12), 'fal': (9, 12)}
UNITS |= {f'q{n}': (3 * n - 2, 3 * n) for n in range(1, 5)}
DIFFERENT = 2**14  # dates of a year, and then some


def cut_off(settings: Corpus) -> Date | None:
    """The first day that is too new, None where all are welcome. Raises ConfigError for anything but YYYY-MM-DD."""
    value = settings.published_before
    if not value:
        return None
    try:
        day = datetime.datetime.strptime(value, '%Y-%m-%d')
        if day.strftime('%Y-%m-%d') != value:
            raise ValueError
    except ValueError:
        raise ConfigError(
            f'config.corpus.published_before: {value!r} is not a date; write YYYY-MM-DD, as in 2023-01-01'
        ) from None
    return day.year, day.month, day.day


def reason_of_dates(spans: Sequence[DateSpan | None], too_new: Date | None) -> str:
    """Why the dates of a record leave it out: `undated`, `too_new`, `vague_date`, or empty.

    A record is published on the first of its dates. It is a document only where that is surely before the cut-off.
    """
    known = [span for span in spans if span]
    if too_new is None or (known and min(last for _, last in known) < too_new):
        return ''
    if not known:
        return 'undated'
    return 'vague_date' if min(first for first, _ in known) < too_new else 'too_new'


def undated(text: str, settings: Corpus) -> str:
    """The reason to leave out a text whose date is not known: `no_text`, `undated`, or empty to keep it."""
    return reason_of_dates((), cut_off(settings)) if text else 'no_text'


def without_dates(settings: Corpus) -> Iterator[Record]:
    """A record that says, where a cut-off is set, that a form has no dates that are read."""
    if cut_off(settings):
        note = (
            'config.corpus.published_before says nothing of these records, which have no dates that are read'
        )
        yield Record('', reason='form', note=note)


def span_of(year: str | None, month: str | None, season: str | None, day: str | None) -> DateSpan | None:
    """What a date in parts can mean, None where it names no year. A part that is none is left aside."""
    parts = (part.strip() if part else '' for part in (year, month, season, day))
    year, month, season, day = parts
    unit = month or season
    return span_in(f'{year} {unit} {day}' if unit else year)


@functools.lru_cache(DIFFERENT)
def span_in(text: str) -> DateSpan | None:
    """What a date in one text can mean, as in `1998 Dec-1999 Jan`, `Dec 2022`, `Winter 2000` and `2000-2001`."""
    text = YEARS.sub(_both_in_full, QUARTER.sub(r' q\1 ', text)).casefold()
    words = [
        word for word in WORD.findall(text) if YEAR.fullmatch(word) or len(word) < 3 or word[:3] in UNITS
    ]
    if words and not YEAR.fullmatch(words[0]):  # the year comes last, or day, month and year do
        words.reverse()
    spans = list(_spans(words))
    return (min(spans)[0], max(last for _, last in spans)) if spans else None


def _both_in_full(years: re.Match[str]) -> str:
    century, before, after = map(int, years.groups())
    if after == (before + 1) % 100 or after > max(before, 12):
        return f'{century}{before:02} {century + (after < before)}{after:02}'
    return years[0]


def _spans(words: Sequence[str]) -> Iterator[DateSpan]:
    """The span of every month, season or quarter, or of a year without one. A year stands before what is in it."""
    year, units, days = 0, list[tuple[int, int]](), list[int]()

    def ended() -> Iterator[DateSpan]:
        if year and not units and days and 1 <= days[0] <= 12:  # a date in numbers
            yield _span(year, (days[0], days[0]), days[1:])
        elif year:
            yield _span(year, units[-1] if units else (1, 12), days)

    for word in words:
        if YEAR.fullmatch(word):
            yield from ended()
            year, units, days = int(word), [], []
        elif unit := UNITS.get(word[:3]):
            if units:
                yield from ended()
                days = []
            units.append(unit)
        elif word.isdecimal():
            days.append(int(word))
    yield from ended()


def _span(year: int, months: tuple[int, int], days: Sequence[int]) -> DateSpan:
    first, last = months
    most = calendar.monthrange(year, last)[1]
    if first == last and (days := [day for day in days if 1 <= day <= most]):
        return (year, first, min(days)), (year, last, max(days))
    return (year, first, 1), (year, last, most)
