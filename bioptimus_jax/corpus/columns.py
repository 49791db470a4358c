"""Tables of text, .csv and .tsv: with the names of their columns in the first line, or a column of texts without."""

import csv
import re
import statistics
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from bioptimus_jax.corpus import notes
from bioptimus_jax.corpus.config import Corpus
from bioptimus_jax.corpus.content import fields_asked, values_of
from bioptimus_jax.corpus.dates import without_dates
from bioptimus_jax.corpus.lines import joined_documents, peeked
from bioptimus_jax.corpus.records import Record, joined, made_id, squeezed
from bioptimus_jax.corpus.rows import TEXT_NAMES
from bioptimus_jax.corpus.stored import LONGEST_LINE
from bioptimus_jax.errors import BrokenFile, InputError
from bioptimus_jax.progress.console import numbered
from bioptimus_jax.text.words import count_words

Cells = Iterable[tuple[int, list[str]]]
ID_NAMES = (
    'id note_id cord_uid pmid pubmed_id pmcid pmc_id document_id doc_id article_id row_id uid doi'.split()
)
NAME = re.compile(r'[^\W\d][\w .:/()#-]{0,39}')
SEPARATED = {',': 'comma-separated', ';': 'semicolon-separated', '\t': 'tab-separated'}
SAMPLE = 100  # rows that tell which column is the longest
FEWEST_WORDS, MOST_OF_A_NAME = 5, 3


def read(path: Path, cells: Cells, prefix: str, settings: Corpus, even: bool = False) -> Iterator[Record]:
    """Clinical notes where the first line names the columns of MIMIC-III's; the rows of another table whose first line
    names its columns; else a column of texts, joined to documents."""
    sample, rows = peeked(iter(cells), SAMPLE)
    first = sample[0][1] if sample else []
    if notes.are_named(first):
        next(rows)
        return notes.read(path, first, rows, settings)
    if names := _names(sample):
        next(rows)
        return _records(path, names, sample[1:], rows, settings)
    return _without_names(path, sample, rows, prefix, settings, even)


def _without_names(
    path: Path,
    sample: Sequence[tuple[int, list[str]]],
    rows: Cells,
    prefix: str,
    settings: Corpus,
    even: bool,
) -> Iterator[Record]:
    """Documents of a column of texts: the longest where the first one has no more than names or numbers.

    `even`: the mark between cells is one that texts have, too, so rows of other lengths are refused, unless a column is
    asked for.
    """
    yield from without_dates(settings)
    chosen, means = settings.tsv_column, _mean_words(len(sample[0][1]) if sample else 0, sample)
    if not chosen and means and means[0] <= MOST_OF_A_NAME and max(means) >= FEWEST_WORDS:
        chosen = means.index(max(means))
        yield Record('', reason='form', note=f'a table; its text is column {chosen} (the longest, from 0)')
    yield from joined_documents(
        column(path, rows, chosen, even and not settings.tsv_column), prefix, settings
    )


def delimiter_of(lines: Sequence[str]) -> tuple[str, bool]:
    """What separates the columns of a .csv, and whether it is guessed: another mark than a comma where the first line
    names columns by it, or, as a guess, where it cuts all rows into as many cells, and commas do not.
    """
    first = lines[0] if lines else ''
    for mark in ';\t':
        if ',' not in first and _known(names := first.split(mark)) and _are_names(names):
            return mark, False
    commas = {len(row) for row in _rows(lines, ',')}
    for mark in ';\t':
        rows = _rows(lines, mark)
        widths = {len(row) for row in rows}
        # In running text a blank follows the mark.
        apart = not any(cell[:1].isspace() for row in rows for cell in row[1:])
        if (
            apart
            and len(rows) > 1
            and len(widths) == 1
            and widths != {1}
            and (len(commas) > 1 or commas == {1})
        ):
            return mark, True
    return ',', False


def _rows(lines: Sequence[str], mark: str) -> list[list[str]]:
    """The rows of some lines but the last, which may be cut off; none if the lines are not a table."""
    csv.field_size_limit(LONGEST_LINE)
    try:
        return [row for row in csv.reader((line + '\n' for line in lines), delimiter=mark) if row][:-1]
    except csv.Error:
        return []  # who reads the file says what is wrong


def _are_names(cells: Sequence[str]) -> bool:
    # pandas writes an empty name before its index.
    plain = [cell.strip().casefold() for cell in (cells[1:] if cells and not cells[0].strip() else cells)]
    return bool(plain) and len({*plain}) == len(plain) and all(map(NAME.fullmatch, plain))


def _known(cells: Sequence[str]) -> bool:
    return any(cell.strip().casefold() in (*TEXT_NAMES, *ID_NAMES) for cell in cells)


def _names(sample: Sequence[tuple[int, list[str]]]) -> list[str]:
    """The names of the columns; none where the first line holds none: they are known, or short above long texts."""
    first = sample[0][1] if sample else []
    if not _are_names(first):
        return []
    longest = _longest(len(first), sample[1:])
    if _known(first) or (longest >= 0 and len(first) > 1 and len(first[longest].split()) <= MOST_OF_A_NAME):
        return [cell.strip() for cell in first]
    return []


def _longest(columns: int, rows: Sequence[tuple[int, list[str]]]) -> int:
    """The column whose cells have the most words; -1 where none has texts."""
    means = _mean_words(columns, rows)
    return means.index(max(means)) if max(means, default=0) >= FEWEST_WORDS else -1


def _mean_words(columns: int, rows: Sequence[tuple[int, list[str]]]) -> list[float]:
    """The mean number of words in the cells of every column, empty ones aside."""
    whole = [cells for _, cells in rows if len(cells) == columns]
    words = [[count_words(squeezed(cells[i])) for cells in whole if cells[i].strip()] for i in range(columns)]
    return [statistics.fmean(column) if column else 0 for column in words]


def _records(
    path: Path, names: list[str], sample: Sequence[tuple[int, list[str]]], rows: Cells, settings: Corpus
) -> Iterator[Record]:
    """A record that says how the table is read, then one for every row. Raises InputError where no column has texts."""
    texts, why = _text_columns(path, names, sample, settings)
    id, asked = _id_column(path, names, settings), fields_asked(settings.content)
    said = ' and '.join(names[i] for i in texts)
    yield Record(
        '', reason='form', note=f'a table; its text is {said} ({why}), its ids {_id_name(names, id)}'
    )
    yield from without_dates(settings)
    for number, cells in rows:
        if len(cells) != len(names):
            note = f'line {number}: has {len(cells)} columns, the first line {len(names)}'
            yield Record('', reason='bad_record', note=note)
            continue
        text = joined({names[i]: cells[i] for i in texts})
        own = squeezed(cells[id]) if id >= 0 else ''
        fields = values_of(dict(zip(names, cells, strict=True)), asked)
        yield Record(own or made_id(text), text, reason='' if text else 'no_text', fields=fields)


def _text_columns(
    path: Path, names: list[str], sample: Sequence[tuple[int, list[str]]], settings: Corpus
) -> tuple[list[int], str]:
    plain = [name.casefold() for name in names]
    if settings.tsv_column:
        _require_column(path, 1, names, settings.tsv_column)
        return [settings.tsv_column], 'by config.corpus.tsv_column'
    wanted = [name for name in map(str.casefold, settings.text_fields) if name in plain]
    if set(wanted) <= {'title'}:  # a title is not all of the text
        wanted += [name for name in TEXT_NAMES if name in plain and name not in wanted][:1]
    if wanted:
        return [plain.index(name) for name in wanted], 'by name'
    if (longest := _longest(len(names), sample)) >= 0:
        return [longest], 'the longest'
    raise InputError(
        f'{path}:1: names its columns ({", ".join(names)}), but none of them holds texts; name some in '
        'config.corpus.text_fields, or take the file out of the inputs'
    )


def _id_column(path: Path, names: list[str], settings: Corpus) -> int:
    """The column of ids, -1 for none. Raises InputError where another than the default was asked for in vain."""
    plain = [name.casefold() for name in names]
    asked = settings.id_field.casefold()
    if asked in plain or not asked:
        return plain.index(asked) if asked else -1
    if asked != ID_NAMES[0]:
        raise InputError(
            f'{path}:1: has no column {settings.id_field!r}; add it, or name another in config.corpus.id_field (empty: '
            'ids are made from the texts)'
        )
    return next((plain.index(name) for name in ID_NAMES if name in plain), -1)


def _id_name(names: list[str], id: int) -> str:
    return names[id] if id >= 0 else 'are made from the texts'


def tabbed(lines: Iterable[tuple[int, str]]) -> Iterator[tuple[int, list[str]]]:
    """The cells of lines that are not empty, between tabulators."""
    for number, line in lines:
        if line and not line.isspace():
            yield number, line.split('\t')


def quoted(
    path: Path, lines: Iterable[tuple[int, str]], delimiter: str = ','
) -> Iterator[tuple[int, list[str]]]:
    """The cells of rows, which quotation marks may spread over lines. Raises BrokenFile where these are wrong."""
    csv.field_size_limit(LONGEST_LINE)  # of this process; Python's own is shorter than many texts
    # `lines` has taken the line breaks, but one within quotation marks is a part of its cell.
    rows = csv.reader((line + '\n' for _, line in lines), strict=True, delimiter=delimiter)
    try:
        for cells in rows:
            if cells:
                yield rows.line_num, cells
    except csv.Error as error:
        raise BrokenFile(
            f'{path}:{rows.line_num}: is not {SEPARATED[delimiter]} text ({error}); correct its quotation marks'
        ) from error


def column(path: Path, rows: Cells, column: int, even: bool) -> Iterator[str]:
    """The texts of a column. Raises InputError for a row without it, and BrokenFile for one of another length where all
    have to be `even`."""
    width = 0
    for number, cells in rows:
        _require_column(path, number, cells, column)
        width = width or len(cells)
        if even and len(cells) != width:
            raise BrokenFile(
                f'{path}:{number}: has {numbered(len(cells), "cell")}, the lines before it {width}; quote '
                'texts that hold the mark between cells, or save them as .txt with an empty line behind each'
            )
        if text := squeezed(cells[column]):
            yield text


def _require_column(path: Path, line: int, cells: Sequence[str], column: int) -> None:
    if column >= len(cells):
        raise InputError(
            f'{path}:{line}: has {len(cells)} column(s), config.corpus.tsv_column={column} (from 0); '
            'correct one of them'
        )
