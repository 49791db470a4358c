"""Fields between quotation marks, as pandas and the module csv write them: decided by a file as a whole.

Public sets have quotation marks in their texts and quote nothing. A file is quoted only where every field that has a
quotation mark begins and ends with one and has those within doubled, and where a writer would have had a reason to:
they are in need of it, or whole columns are quoted.
"""

import re
from collections.abc import Iterable, Sequence

FIELD = '"(?:[^"]|"")*+"|[^"\t]*'
LINE = re.compile(f'(?:{FIELD})(?:\t(?:{FIELD}))*+')
FIELDS = re.compile(f'(?:^|\t)({FIELD})')
DOUBLED = re.compile('"[^"\t]*+""(?:[^"\t]|"")*+"')
NUMBER = re.compile(r'[-+]?[\d.]+(?:[eE][-+]?\d+)?')


def unquoted(lines: Sequence[str]) -> list[list[str]] | None:
    """The columns of lines, apart by tabs, without the marks around them; None for a file that is not quoted."""
    if not any('"' in line for line in lines) or not all(map(LINE.fullmatch, lines)):
        return None
    rows = [FIELDS.findall(line) for line in lines]
    needed = all(_needs_it(field) for row in rows for field in row if field.startswith('"'))
    if not needed and not _by_columns(rows):
        return None
    return [[_plain(field) for field in row] for row in rows]


def is_quoted(lines: Iterable[str]) -> bool:
    """Whether the first lines of a file are quoted; a cell may go on in the next line."""
    return unquoted([row for _, row in whole_rows(enumerate(lines))]) is not None


def whole_rows(lines: Iterable[tuple[int, str]]) -> list[tuple[int, str]]:
    """Rows with the numbers of their first lines. A quoted field may go on in the next line; a last row that does not
    end is left out.
    """
    rows, parts = list[tuple[int, str]](), list[str]()
    begun, odd = 0, False
    for number, line in lines:
        begun = begun if parts else number
        parts.append(line)
        # Each line's marks are counted once. Counting the whole row at each line is slow if the row never ends.
        odd ^= line.count('"') % 2 == 1
        if not odd or (len(parts) == 1 and not is_open(line.split('\t'))):
            rows.append((begun, '\n'.join(parts)))
            parts, odd = [], False
    return rows


def count_quoted(lines: Sequence[str]) -> int:
    """How many fields look as if they were quoted, with quotation marks within that are doubled."""
    return sum(DOUBLED.fullmatch(field) is not None for line in lines for field in line.split('\t'))


def is_open(columns: Sequence[str]) -> bool:
    """Whether a quoted field begins in a line and does not end in it."""
    return any(field.startswith('"') and field.count('"') % 2 for field in columns)


def _needs_it(field: str) -> bool:
    inner = field[1:-1]
    return not {'"', '\t', '\n'}.isdisjoint(inner)


def _by_columns(rows: Sequence[Sequence[str]]) -> bool:
    """Whether every column is quoted in each line, or in none, and then holds numbers, perhaps below a name."""
    if len(rows) < 2 or len({len(row) for row in rows}) > 1:
        return False
    header = all(field.startswith('"') for field in rows[0])
    return all(
        all(field.startswith('"') for field in column) or all(map(NUMBER.fullmatch, column[header:]))
        for column in zip(*rows, strict=True)
    )


def _plain(field: str) -> str:
    return field[1:-1].replace('""', '"') if field.startswith('"') else field
