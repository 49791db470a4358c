"""Dates of publication as PubMed and PMC write them, and the day that is too late."""

import datetime
import re

from bioptimus_jax.errors import ConfigError
from bioptimus_jax.schema import Corpus

DATE = re.compile(r'\b([12]\d{3})\b(?:-\d{4}\b)?(?:\s+(\w+))?(?:\s+(\d{1,2})\b)?', re.ASCII)
# First months; a winter counts from January of the year it is given under. Also quarters, as in `1998 3rd Quarter`.
MONTHS = {name: n for n, name in enumerate('jan feb mar apr may jun jul aug sep oct nov dec'.split(), 1)}
MONTHS |= {'win': 1, 'spr': 3, 'sum': 6, 'aut': 9, 'fal': 9, '1st': 1, '2nd': 4, '3rd': 7, '4th': 10}

Date = tuple[int, int, int]


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


def reason_of(days: list[Date | None], too_new: Date | None) -> str:
    """Why the earliest of the days leaves a record out: `undated`, `too_new`, or empty."""
    if too_new is None:
        return ''
    day = min((day for day in days if day), default=None)
    return '' if day and day < too_new else 'too_new' if day else 'undated'


def first_day(year: str | None, month: str | None, season: str | None, day: str | None) -> Date | None:
    """The first day of what a date says, None where it names no year. A month or day that is none is left aside."""
    parts = (part.strip() if part else '' for part in (year, month, season, day))
    year, month, season, day = parts
    return first_day_in(f'{year} {month or season or "-"} {day}')


def first_day_in(text: str) -> Date | None:
    """The same for a date in one text, as in `1998 Dec-1999 Jan`."""
    found = DATE.search(text)
    if not found:
        return None
    word, number = (found[2] or '').casefold(), int(found[3] or 1)
    first = int(word) if word.isdecimal() and len(word) < 3 else MONTHS.get(word[:3], 0)
    if not 1 <= first <= 12:
        return int(found[1]), 1, 1
    return int(found[1]), first, number if 1 <= number <= 31 else 1
