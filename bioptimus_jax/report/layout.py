"""A table as data, and its four renderings: terminal, Markdown, HTML, CSV."""

import csv
import dataclasses
import html
import io
import itertools
import re
import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from bioptimus_jax.scoring.student import Effect, bracketed, interval
from bioptimus_jax.storage.files import atomic

NOT_RUN = '—'
"""What an empty cell shows; the table's note says why it is empty."""
TALL = 24
"""Rows above which a table scrolls within the page, under its head."""
WIDE, WIDEST = 9, 16
"""Columns above which a table is printed in smaller type, and in the smallest."""
NUMBER = re.compile(r'[-+]?[\d,]*\.?\d+(e[-+]?\d+)?')
MARK = '\ufeff'
"""The mark by which a spreadsheet knows that a file is UTF-8; pandas leaves it out."""
FORMULA = ('=', '+', '-', '@', '\t', '\r')
"""What a spreadsheet takes for the beginning of a formula."""


@dataclasses.dataclass(frozen=True)
class Cell:
    """What is shown, and the number behind it that is sorted and ranked (None: text).

    `html`: of running text, the same with its marks, on the page alone.
    """

    text: str
    value: float | None = None
    html: str = ''


def words(text: object) -> Cell:
    """A cell of plain text."""
    return Cell(str(text))


def missing() -> Cell:
    """A cell whose run has not been made."""
    return Cell(NOT_RUN)


def count(value: float | None) -> Cell:
    """A whole number with thousands set apart; a cell without a run for None."""
    return missing() if value is None else Cell(f'{value:,.0f}', float(value))


def fixed(value: float | None, decimals: int = 3) -> Cell:
    """A number with so many decimals; a cell without a run for None."""
    return missing() if value is None else Cell(f'{value:.{decimals}f}', float(value))


def percent(share: float | None, decimals: int = 1) -> Cell:
    """A share in [0, 1], shown as a percentage."""
    return missing() if share is None else Cell(f'{100 * share:.{decimals}f} %', float(share))


def spread(values: Sequence[float], decimals: int = 2) -> Cell:
    """Mean ± sample standard deviation; one value has no deviation and is shown alone."""
    if not values:
        return missing()
    mean = statistics.fmean(values)
    if len(values) == 1:
        return Cell(f'{mean:,.{decimals}f}', mean)
    return Cell(f'{mean:,.{decimals}f} ± {statistics.stdev(values):,.{decimals}f}', mean)


def over_seeds(values: Sequence[float], decimals: int = 3, sign: str = '') -> Cell:
    """Mean ± half of Student's 95 % interval; one value, or several that are alike, have none and are shown alone."""
    if not len(values):
        return missing()
    mean, half = interval(values)
    between = f' ± {half:.{decimals}f}' if half else ''
    return Cell(f'{mean:{sign}.{decimals}f}{between}', mean)


def between(value: float, low: float, high: float, form: str) -> str:
    """A value and its interval: `0.12 [0.10, 0.14]`; NaN where there is none."""
    return f'{value:{form}} {bracketed(low, high, form)}'


def tested(effect: Effect) -> str:
    """A difference, its interval and its corrected p: `+0.12 [+0.10, +0.14] p = 0.003`, or `+0.12, not tested`."""
    if effect.holm is None:
        return f'{effect.observed:+.2f}, not tested'
    p = f'p = {effect.holm:.2g}' if effect.holm >= 0.0001 else 'p < 0.0001'
    return f'{between(effect.observed, *effect.ends, "+.2f")} {p}'


def percents(values: Sequence[float] | None, decimals: int = 2) -> str:
    """Shares as '80.12-83.40' percent; empty where there is no interval."""
    if not values or any(value != value for value in values):
        return ''
    low, high = values
    return f'{100 * low:.{decimals}f}-{100 * high:.{decimals}f}'


@dataclasses.dataclass(frozen=True)
class Column:
    """One column of a table: its title, what makes the cell of a record, and whether 'low' or 'high' values are good.

    `cell` takes the record, of a tuple its parts; text is a cell too. `when`: whether the table has the column.
    """

    title: str
    cell: Callable[..., Cell | str]
    better: str = ''
    when: bool = True


def each(
    titles: Mapping[Any, str], cell: Callable[..., Cell | str], better: str = '', when: bool = True
) -> list[Column]:
    """A column for every key of `titles`; `cell` takes the key and then the record."""
    return [Column(title, partial(cell, key), better, when) for key, title in titles.items()]


@dataclasses.dataclass(frozen=True)
class Table:
    """Columns and rows of cells.

    `better` says for a column whether 'low' or 'high' values are good: best is bold, second underlined,
    within the rows that share the cell of the column `rank_within` (empty: all rows). Without rows, `absent`
    is shown.
    """

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[Cell]]
    better: Mapping[str, str] = dataclasses.field(default_factory=dict)
    rank_within: str = ''
    note: str = ''
    absent: str = 'nothing to show yet'

    @classmethod
    def of(cls, title: str, columns: Iterable[Column], records: Iterable[Any], **further: str) -> 'Table':
        """A row for every record, a cell for every column that is there; `further`: rank_within, note, absent."""
        shown = [column for column in columns if column.when]
        parts = [record if isinstance(record, tuple) else (record,) for record in records]
        rows = [[x if isinstance(x := c.cell(*part), Cell) else words(x) for c in shown] for part in parts]
        better = {column.title: column.better for column in shown if column.better}
        return cls(title, [column.title for column in shown], rows, better, **further)

    def __post_init__(self) -> None:
        for row in self.rows:
            if len(row) != len(self.columns):
                raise ValueError(f'{self.title}: a row of {len(row)} cells under {len(self.columns)} columns')

    @property
    def empty(self) -> bool:
        return not self.rows

    def marks(self) -> list[list[str]]:
        """'best', 'second' or '' for every cell; those that show one number share a mark, whatever it varies by, and a
        lone one gets none."""
        marks = [[''] * len(self.columns) for _ in self.rows]
        within = self.columns.index(self.rank_within) if self.rank_within else None
        groups: dict[str, list[int]] = {}
        for number, row in enumerate(self.rows):
            groups.setdefault('' if within is None else row[within].text, []).append(number)
        for (column, direction), members in itertools.product(self.better.items(), groups.values()):
            at = self.columns.index(column)
            cells = {n: self.rows[n][at] for n in members if self.rows[n][at].value is not None}
            order = sorted(cells.values(), key=lambda c: c.value or 0.0, reverse=direction == 'high')
            places = list(dict.fromkeys(_number_of(c) for c in order))
            named = dict(zip(places, ('best', 'second'), strict=False)) if len(places) > 1 else {}
            for number, cell in cells.items():
                marks[number][at] = named.get(_number_of(cell), '')
        return marks

    def text(self) -> str:
        """Aligned columns for a terminal; numbers to the right."""
        if not self.rows:
            return f'{self.title}: {self.absent}'
        widths = [max(len(c), *(len(r[i].text) for r in self.rows)) for i, c in enumerate(self.columns)]
        right = self._numeric()
        lines = [self.title, self._aligned(self.columns, widths, right), '  '.join('-' * w for w in widths)]
        lines += [self._aligned([cell.text for cell in row], widths, right) for row in self.rows]
        return '\n'.join(lines + ([self.note] if self.note else []))

    def markdown(self) -> str:
        title = f'### {_as_markdown(self.title)}'
        if not self.rows:
            return f'{title}\n\n{_as_markdown(self.absent)}\n'
        rule = ['--:' if numeric else ':--' for numeric in self._numeric()]
        lines = [title, '', _piped(map(_as_markdown, self.columns)), _piped(rule)]
        for row, marks in zip(self.rows, self.marks(), strict=True):
            lines.append(_piped([_markdown_cell(c, m) for c, m in zip(row, marks, strict=True)]))
        return '\n'.join(lines + (['', _as_markdown(self.note)] if self.note else [])) + '\n'

    def html(self) -> str:
        """A <figure> with a sortable table; the number behind a cell is in `data-value`."""
        title = html.escape(self.title)
        if not self.rows:
            return f'<p class="absent"><b>{title}</b>: {html.escape(self.absent)}</p>'
        numeric = self._numeric()
        head = ''.join(
            f'<th scope="col"{_class(n, c)}><button type="button">{html.escape(c)}</button></th>'
            for c, n in zip(self.columns, numeric, strict=True)
        )
        body = ''
        for row, marks in zip(self.rows, self.marks(), strict=True):
            cells = zip(row, marks, numeric, self.columns, strict=True)
            body += f'<tr>{"".join(_html_cell(*cell) for cell in cells)}</tr>\n'
        note = f'<p class="note">{html.escape(self.note)}</p>' if self.note else ''
        box = 'scroll' + ' tall' * (len(self.rows) > TALL) + ' wide' * (len(self.columns) > WIDE)
        box += ' widest' * (len(self.columns) > WIDEST)
        return (
            f'<figure class="table"><figcaption>{title}</figcaption>\n<div class="{box}"><table>\n'
            f'<thead><tr>{head}</tr></thead>\n<tbody>\n{body}</tbody></table></div>{note}</figure>'
        )

    def records(self) -> list[dict[str, str | float | None]]:
        """Rows by the names of columns: numbers unrounded, None where nothing is known.

        What is shown of a number is beside it where it says more, as in `csv`.
        """
        found = []
        for row in self.rows:
            record: dict[str, str | float | None] = {}
            for name, cell in zip(self.columns, row, strict=True):
                shown = None if cell.text == NOT_RUN else cell.text
                record[name] = shown if cell.value is None else cell.value
                if _says_more(cell):
                    record[f'{name}, as shown'] = cell.text
            found.append(record)
        return found

    def csv(self) -> str:
        """Columns and rows alone. Numbers are unrounded; what is shown of them stands beside them if it is more."""
        buffer = io.StringIO()
        writer = csv.writer(buffer, lineterminator='\n')
        more = [any(_says_more(row[i]) for row in self.rows) for i in range(len(self.columns))]
        heads = [[c, f'{c}, as shown'] if m else [c] for c, m in zip(self.columns, more, strict=True)]
        writer.writerow([_inert(name) for names in heads for name in names])
        for row in self.rows:
            values = [[_value(c), _csv_text(c)] if m else [_value(c)] for c, m in zip(row, more, strict=True)]
            writer.writerow([value for both in values for value in both])
        return buffer.getvalue()

    def _numeric(self) -> list[bool]:
        return [any(row[i].value is not None for row in self.rows) for i in range(len(self.columns))]

    @staticmethod
    def _aligned(texts: Iterable[str], widths: list[int], right: list[bool]) -> str:
        padded = (t.rjust(w) if r else t.ljust(w) for t, w, r in zip(texts, widths, right, strict=True))
        return '  '.join(padded).rstrip()


def write_tables(title: str, tables: Mapping[str, Table], folder: Path) -> None:
    """Write tables.md, and csv/NAME.csv for each of the tables, by name, that has rows.

    That of another is deleted: it is of an earlier call.
    """
    with atomic(folder / 'tables.md') as file:
        file.write(f'# {title}\n\n' + '\n'.join(table.markdown() for table in tables.values()))
    for name, table in tables.items():
        path = folder / 'csv' / f'{name}.csv'
        if not table.rows:
            path.unlink(missing_ok=True)
            continue
        with atomic(path) as file:
            file.write(MARK + table.csv())


def _piped(texts: Iterable[str]) -> str:
    return '| ' + ' | '.join(texts) + ' |'


def _as_markdown(text: str) -> str:
    """The text on one line, with nothing that is read as HTML or as the end of a cell."""
    return ' '.join(html.escape(text, quote=False).replace('|', '\\|').split())


def _markdown_cell(cell: Cell, mark: str) -> str:
    text = _as_markdown(cell.text)
    return {'best': f'**{text}**', 'second': f'<u>{text}</u>'}.get(mark, text)


def _says_more(cell: Cell) -> bool:
    """Whether a number is shown with more than its digits: a deviation, an interval, a mark, a unit."""
    return cell.value is not None and not NUMBER.fullmatch(cell.text)


def _value(cell: Cell) -> str | float:
    return _csv_text(cell) if cell.value is None else cell.value


def _csv_text(cell: Cell) -> str:
    return '' if cell.text == NOT_RUN else _inert(cell.text)


def _inert(text: str) -> str:
    """The text, escaped with an apostrophe where a spreadsheet would compute it."""
    return f"'{text}" if text.startswith(FORMULA) and not NUMBER.fullmatch(text) else text


def _class(numeric: bool, text: str) -> str:
    names = ['number'] * numeric + ['long'] * (len(text) > (16 if numeric else 32))
    return f' class="{" ".join(names)}"' if names else ''


def _html_cell(cell: Cell, mark: str, numeric: bool, column: str) -> str:
    if cell.html:  # on a phone its column has no head
        return f'<td class="text" data-column="{html.escape(column)}">{cell.html}</td>'
    text = html.escape(cell.text)
    text = {'best': f'<strong>{text}</strong>', 'second': f'<u>{text}</u>'}.get(mark, text)
    value = '' if cell.value is None else f' data-value="{cell.value!r}"'
    return f'<td{_class(numeric, cell.text)}{value}>{text}</td>'


def _number_of(cell: Cell) -> str:
    """What a cell shows, without the deviation behind it."""
    return cell.text.partition(' ±')[0].removesuffix(' †')
