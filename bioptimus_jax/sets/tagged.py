"""Whether lines of text are words with their tags, as CoNLL has them, whatever their file is called."""

import re
from collections.abc import Iterable, Sequence

from bioptimus_jax.sets.columns import DOCUMENT
from bioptimus_jax.sets.roles import ENOUGH, FOUND, Columns
from bioptimus_jax.sets.tags import OUTSIDE, is_tag

TYPED = re.compile(r'[BIMELSUW]-\S+')
SPACES = re.compile(r'[ \t]+')
FEW = 3
"""Fewer lines of text may have tags in a column by chance: L-arginine looks like one."""


def tagged_columns(lines: Iterable[str]) -> Columns | None:
    """Which columns are words and tags where every line is a word with its tag; else None.

    A line above them may name the columns.
    """
    rows = [SPACES.split(s) for line in lines if (s := line.strip()) and not s.startswith(('#', DOCUMENT))]
    if len(rows) < FEW or len({len(row) for row in rows}) > 1 or len(rows[0]) < 2:
        return None
    for column in zip(*rows, strict=True):
        if _are_tags(column):
            return FOUND
        if _are_tags(column[1:]):
            return Columns(tag=column[0])
    return None


def _are_tags(column: Sequence[str]) -> bool:
    # Any line of a text may end with a capital letter.
    bare = len(column) >= ENOUGH and OUTSIDE in column and all(len(tag) == 1 for tag in column)
    return (bare or any(map(TYPED.fullmatch, column))) and all(map(is_tag, column))
