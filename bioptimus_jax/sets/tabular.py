"""Sets as tables: the splits of a data set of the hub, or of a folder that `datasets` saved, in Parquet or Arrow.

A column of tokens beside one of tags, or one text or two beside an answer. Numbers become the names that the table
gives its labels.
"""

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow

from bioptimus_jax.errors import InputError
from bioptimus_jax.sets.prepared import TAGS, TOKENS, gathered_sentences
from bioptimus_jax.sets.sentences import NAMES, SplitReading
from bioptimus_jax.storage import tables

DATA = 'data'
"""The folder of a data set of the hub that holds its Parquet files, mostly."""
PAIRS = (
    ('sentence1', 'sentence2'),
    ('text1', 'text2'),
    ('premise', 'hypothesis'),
    ('question', 'context'),
    ('text', 'text_pair'),
)
"""Columns of two texts."""
ALONE = ('text', 'sentence', 'question')
ANSWERS = ('label', 'labels', 'gold_label', 'gold', 'answer', 'class', 'score')
UNKNOWN = -1  # how `datasets` writes a label that is not told


def candidates(folder: Path, split: str) -> list[Path]:
    """The first file of every table in a folder that may be this split."""
    found = [tables.first_of(folder, name) for name in NAMES[split]]
    return [path for path in found if path]


def files_of(first: Path) -> list[Path]:
    """The files that a split is read from, which begins with this one."""
    info = first.parent / tables.INFO
    return [*tables.shards(first), *([info] if info.is_file() else [])]


def has_tokens(path: Path) -> bool:
    """Whether the table of a file holds words with tags. Raises InputError."""
    with _opened(path) as (schema, _):
        return not {*schema.names}.isdisjoint(TOKENS)


def read_tables(first: Path) -> SplitReading:
    """The sentences of a split, tags as they stand there. Raises InputError with file and row."""

    def records() -> Iterator[tuple[str, Any, Any]]:
        for path in tables.shards(first):
            for number, row, names in _rows(path, TOKENS, TAGS):
                words, tags = row.values()
                where = f'{path}: row {number}'
                lists = isinstance(words, list) and isinstance(tags, list)
                if not lists or not all(isinstance(word, str) for word in words):
                    raise InputError(f'{where}: holds no list of words, or none of tags')
                yield where, words, [_named(where, tag, names[1]) for tag in tags]

    return gathered_sentences(first, records())


def read_rows(first: Path) -> list[tuple[str, int, list[str]]]:
    """For every row its file and number there, its number in the split, and one text or two with an answer, as strings.

    Raises InputError.
    """
    with _opened(first) as (schema, _):
        pair = next((pair for pair in PAIRS if {*pair} <= {*schema.names}), ())
    chosen: list[tuple[str, ...]] = [(name,) for name in pair] or [ALONE]
    found: list[tuple[str, int, list[str]]] = []
    for path in tables.shards(first):
        for number, row, names in _rows(path, *chosen, ANSWERS):
            where = f'{path}: row {number}'
            # Lists of one, as BigBio has them.
            *texts, answer = (x[0] if isinstance(x, list) and len(x) == 1 else x for x in row.values())
            if isinstance(answer, list):
                raise InputError(
                    f'{where}: has {len(answer)} answers, {answer!r:.40}; sets of your own have one each: keep such '
                    'rows out, or make a set for each label'
                )
            if not all(isinstance(text, str) for text in texts) or isinstance(answer, list | dict | None):
                raise InputError(f'{where}: needs texts and one answer; holds {row!r:.60}')
            answers = [_named(where, answer, names[-1])]
            found.append((where, len(found) + 1, [' '.join(text.split()) for text in (*texts, *answers)]))
    return found


def _named(where: str, value: Any, names: list[str]) -> str:
    """A label as a word. Raises InputError for a number that stands for none."""
    if not isinstance(value, int) or isinstance(value, bool) or not names:
        return str(value)
    if not 0 <= value < len(names):
        why = 'its label is not given' if value == UNKNOWN else f'label {value} has no name'
        raise InputError(f'{where}: {why}; leave such rows out')
    return names[value]


def _rows(path: Path, *choices: tuple[str, ...]) -> Iterator[tuple[int, dict[str, Any], list[list[str]]]]:
    """Number, the first column of each of the choices, and what their numbers mean. Raises InputError."""
    with _opened(path) as (schema, batches):
        columns = tables.require_columns(path, schema, *choices)
        known = tables.label_names(path, schema)
        number, names = 0, [known.get(column, []) for column in columns]
        for batch, _ in batches(columns):
            for row in batch.to_pylist():
                number += 1
                yield number, {column: row[column] for column in columns}, names


@contextlib.contextmanager
def _opened(path: Path) -> Iterator[tuple[pyarrow.Schema, tables.BatchReader]]:
    try:
        with open(path, 'rb') as stored:
            yield tables.opened(path, stored)
    except (pyarrow.ArrowException, OSError, UnicodeDecodeError) as error:
        what = ' '.join(str(error).split())
        raise InputError(f'{path}: cannot be read as a table ({what}); fetch or save it again') from error
