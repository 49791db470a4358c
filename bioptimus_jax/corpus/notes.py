"""Clinical notes in the layout of MIMIC-III's NOTEEVENTS.csv, from files that the user has the licence for.

A note is a document. Notes that were taken back (ISERROR) are left out, and those of other categories than asked for. A
mark such as `[**Hospital1 18**]`, which stands for what would tell who somebody is, is read without its numbers, so
that the sentence goes on: `Hospital`. Dates, which MIMIC has moved, and other numbers stay as they are.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from bioptimus_jax.corpus.config import Corpus
from bioptimus_jax.corpus.dates import without_dates
from bioptimus_jax.corpus.records import BadRecord, Record, is_number, squeezed
from bioptimus_jax.errors import InputError

# Columns that are read, and those that tell a table of notes from another.
ID, CATEGORY, ERROR, TEXT = 'ROW_ID', 'CATEGORY', 'ISERROR', 'TEXT'
NAMES = (ID, CATEGORY, TEXT)
# A mark is short, and closes on its line or, where the note was wrapped, on the next: what is behind one that is never
# closed is not taken for its words.
WITHIN, WRAPPED = (rf'(?:(?!\[\*\*|\*\*\])[^\r\n{other}])' for other in ('', ',;:=%'))
MARK = re.compile(rf'\[\*\*({WITHIN}{{0,80}}|{WRAPPED}{{1,40}}\r?\n{WRAPPED}{{0,40}})\*\*\]')
NUMBERING = re.compile(r'\([^()]*\)|\d+')
REASONS = {'': '', '0': '', '1': 'erroneous'}


def are_named(cells: Sequence[str]) -> bool:
    """Whether the first line of a table names the columns of notes."""
    return {cell.strip().upper() for cell in cells}.issuperset(NAMES)


def read(
    path: Path, names: Sequence[str], rows: Iterable[tuple[int, list[str]]], settings: Corpus
) -> Iterator[Record]:
    """A record for every note; `rows` are numbered by lines. Raises InputError for a table without all columns."""
    columns = [name.strip().upper() for name in names]
    if ERROR not in columns:
        raise InputError(
            f'{path}:1: has the columns of clinical notes, but no {ERROR}, which marks a note as wrong; add it, left '
            'empty where no error is known'
        )
    categories = {name.casefold() for name in settings.note_categories}
    yield from without_dates(settings)
    for number, cells in rows:
        try:
            if len(cells) != len(columns):
                raise BadRecord(f'has {len(cells)} columns, the first line {len(columns)}')
            yield _record(dict(zip(columns, cells, strict=True)), categories)
        except BadRecord as error:
            yield Record('', reason='bad_record', note=f'line {number}: {error}')


def _record(row: dict[str, str], categories: set[str]) -> Record:
    id, error = row[ID].strip(), row[ERROR].strip().removesuffix('.0')  # numbers that pandas has written
    if not is_number(id):
        raise BadRecord(f'has a {ID} that is not a number ({id[:40]!r})')
    if error not in REASONS:
        raise BadRecord(f'has an {ERROR} that is neither empty nor 0 nor 1 ({error[:40]!r})')
    why = REASONS[error]
    if not why and categories and row[CATEGORY].strip().casefold() not in categories:
        why = 'category'
    text = '' if why else squeezed(MARK.sub(_shown, row[TEXT]))
    return Record(f'note-{int(id)}', text, reason=why or ('' if text else 'no_text'))


def _shown(mark: re.Match[str]) -> str:
    words = ' '.join(NUMBERING.sub(' ', mark[1]).split())
    return words if any(map(str.isalpha, words)) else mark[1].strip()
