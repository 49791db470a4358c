"""Whether lines of text are words with their tags, as CoNLL has them, whatever their file is called."""

import re
from collections.abc import Iterable, Sequence

from bioptimus_jax.sets.columns import DOCUMENT
from bioptimus_jax.sets.roles import ENOUGH, Columns
from bioptimus_jax.sets.tags import OUTSIDE, is_tag

NAME = re.compile(r'(?![BIMELSUW][_-])[A-Za-z][A-Za-z _-]*')
"""A column name in the first line; a mistyped tag, such as B_CHEM, does not match."""
TYPED = re.compile(r'[BIMELSUW]-\S+')
SPACES = re.compile(r'[ \t]+')
FEW = 3
"""Fewer lines of text may have tags in a column by chance: L-arginine looks like one."""


def tagged_columns(lines: Iterable[str]) -> Columns | None:
    """A column of tags, by its number or its name, where every line is a word with its tag; else None.

    A line above them may name the columns.
    """
    filled = [s for line in lines if (s := line.strip()) and not s.startswith(('#', DOCUMENT))]
    # A word may have a blank within, where tabs are between columns; some files have blanks between all but the last.
    return _in_rows([line.split('\t') for line in filled]) or _in_rows(
        [SPACES.split(line) for line in filled]
    )


def _in_rows(rows: Sequence[Sequence[str]]) -> Columns | None:
    if len({len(row) for row in rows}) != 1 or len(rows[0]) < 2:
        return None
    if 2 * sum(' ' in row[0].strip() for row in rows) > len(rows):
        return None  # texts, with a label that looks like a tag
    for number, column in enumerate(zip(*rows, strict=True), 1):
        cells = [cell.strip() for cell in column]
        if _are_tags(cells):
            return Columns(tag=str(number))
        if NAME.fullmatch(cells[0]) and _are_tags(cells[1:]):
            return Columns(tag=cells[0])
    return None


def _are_tags(column: Sequence[str]) -> bool:
    if len(column) < FEW:
        return False
    # Any line of a text may end with a capital letter.
    bare = len(column) >= ENOUGH and OUTSIDE in column and all(len(tag) == 1 for tag in column)
    return (bare or any(map(TYPED.fullmatch, column))) and all(map(is_tag, column))
