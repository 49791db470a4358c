"""A set of texts of your own whose files are described beside them, in NAME/set.json: columns, labels, measures.

What is described is turned into the record that public sets have, so that all else reads both alike. Where the records
of a set give texts several labels, or none, there is such a description without a file.
"""

import dataclasses
import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from bioptimus_jax.config.fields import meant
from bioptimus_jax.errors import InputError
from bioptimus_jax.progress.console import shortened
from bioptimus_jax.records.sets import SetDescription
from bioptimus_jax.sets import own
from bioptimus_jax.sets.foreign.forms import form_at, form_of_name, read_items
from bioptimus_jax.sets.foreign.items import Keys
from bioptimus_jax.sets.labelled import own_rows
from bioptimus_jax.sets.sentences import SPLITS, text_of
from bioptimus_jax.sets.texts import CLASSES, DESCRIBED, FOUND, SIMILARITY, Layout, Published, in_order
from bioptimus_jax.storage.files import JsonObject

FILE = DESCRIBED
KEYS: Mapping[str, type | tuple[type, ...]] = {
    'task': str,
    'texts': list,
    'answer': (str, int),
    'name': (str, int),
    'document': str,
    'header': bool,
    'labels': list,
    'uncounted': list,
    'measures': list,
    'several': bool,
}
USUAL = {CLASSES: ('accuracy',), SIMILARITY: ('pearson', 'spearman')}
"""The measures of a set that names none."""
SEPARATOR = ','
"""What stands between several labels of a text."""
ZERO_OR_ONE = {'0', '1', '0.0', '1.0', 'False', 'True'}
OF_SEVERAL = ('micro_f1', 'macro_f1', 'example_f1')
"""The measures of a set whose texts are found to have several labels."""


def file_in(folder: Path) -> Path | None:
    """The description of the set in a folder; None where it has none."""
    file = folder / FILE
    return file if file.is_file() else None


def described(folder: Path, split: Callable[[str], Path]) -> SetDescription | None:
    """The description of the set in a folder, as records keep it; None where there is none.

    Columns that it names are numbers from 0, and labels that it does not name are those of train. `split`: name -> its
    file, asked only for what the description does not say. Raises InputError that names the file and the key.
    """
    file = file_in(folder)
    if not file:
        return _of_several(split) if folder.is_dir() else None
    values = _values(file)
    if form_of_name(split('train')):
        columns = [*values['texts'], values['answer'], *([values['name']] if 'name' in values else [])]
        if wrong := next((column for column in columns if not isinstance(column, str)), None):
            raise InputError(
                f'{file}: {split("train")} has columns or keys with names, and none is {wrong!r}'
            )
        values['keys'] = columns
        places = {name: at for at, name in enumerate(columns)}
    else:
        places = _columns(file, values, split)
    for key in ('answer', 'name'):
        if key in values:
            values[key] = _place(file, key, values[key], places)
    values['texts'] = [_place(file, 'texts', column, places) for column in values['texts']]
    said = SetDescription.read(values, str(file), 'correct it')
    if said.task == CLASSES and said.labels is None:
        said = dataclasses.replace(said, labels=tuple(_labels(said, split('train'))))
    if wrong := {*(said.uncounted or ())}.difference(said.labels or ()):
        raise InputError(f'{file}: uncounted: {sorted(wrong)[0]!r:.60} is not among labels')
    return said


def _of_several(split: Callable[[str], Path]) -> SetDescription | None:
    """The description of a set whose records have lists of labels, some with several or none; None for other sets."""
    try:
        train = split('train')
        if not form_at(train):
            return None
        items = read_items(train).items
    except InputError:
        return None  # whoever reads the set says what is wrong
    listed = [
        item for item in items if item.listed and item.texts and not item.mentions and item.tags is None
    ]
    given = [item.answers or () for item in listed]
    if len(listed) < len(items) or all(len(answers) == 1 for answers in given) or not any(given):
        return None
    labels = in_order(answer for answers in given for answer in answers)
    if len(sizes := {len(answers) for answers in given}) == 1 and {*labels} <= ZERO_OR_ONE:
        raise InputError(
            f'{train}: its labels are lists of {sizes.pop()} zeros and ones; give the names of the labels that hold, '
            'as in ["A", "C"]'
        )
    texts = len(items[0].texts)
    return SetDescription(
        task=CLASSES,
        texts=tuple(range(texts)),
        answer=texts,
        labels=tuple(labels),
        several=True,
        measures=OF_SEVERAL,
        found=True,
    )


def published(name: str, said: SetDescription) -> Published:
    """The record of a set from its description."""
    return Published(
        name,
        said.task,
        _layout(said),
        (0, 0, 0),
        said.measures or USUAL[said.task],
        FOUND if said.found else FILE,
        '',
        said.labels or (),
        said.uncounted or (),
        bool(said.several),
    )


def _layout(said: SetDescription) -> Layout:
    return Layout(
        said.texts, said.answer, said.name, bool(said.header), said.document or '', keys=said.keys or ()
    )


def _values(file: Path) -> JsonObject:
    """What the file says, each key of its kind."""
    try:
        values = json.loads(text_of(file))
    except (ValueError, RecursionError) as error:
        raise InputError(f'{file}: is not JSON ({error}); correct it') from error
    if not isinstance(values, dict):
        raise InputError(f'{file}: has to be one object, with {", ".join(KEYS)}')
    values.setdefault('task', CLASSES)
    for key, value in values.items():
        if key not in KEYS:
            raise InputError(f'{file}: {key}: no such key; known are {", ".join(KEYS)}{meant(key, KEYS)}')
        kinds = known if isinstance(known := KEYS[key], tuple) else (known,)
        if type(value) not in kinds:
            raise InputError(
                f'{file}: {key}: is {value!r:.40}, and has to be a {" or ".join(k.__name__ for k in kinds)}'
            )
    if values['task'] not in USUAL:
        raise InputError(f'{file}: task: {values["task"]!r} is not one of {", ".join(USUAL)}')
    for key in ('texts', 'answer'):
        if key not in values:
            raise InputError(f'{file}: {key}: missing; name the column, or give its number from 1')
    if not 1 <= len(values['texts']) <= 2:
        raise InputError(f'{file}: texts: has {len(values["texts"])} columns; a set has one text or two')
    for name in values.get('measures', ()):
        if not isinstance(name, str):
            raise InputError(
                f'{file}: measures: {name!r:.60} is no name; give names, such as {USUAL[values["task"]][0]!r}'
            )
    if values['task'] == SIMILARITY and (wrong := {'labels', 'uncounted', 'several'} & values.keys()):
        raise InputError(
            f'{file}: {sorted(wrong)[0]}: is for task {CLASSES}; answers of {SIMILARITY} are numbers'
        )
    for label in (*values.get('labels', ()), *values.get('uncounted', ())):
        if not isinstance(label, str) or not label:
            raise InputError(f'{file}: labels: {label!r:.60} is no label')
    return values


def _columns(file: Path, values: JsonObject, split: Callable[[str], Path]) -> dict[str, int]:
    """Name -> place of the columns of a header that all splits share; empty without a header.

    Raises InputError, also for a label that could not be told from several in a column: records may have lists.
    """
    for label in values.get('labels', ()) if values.get('several') else ():
        if SEPARATOR in label:
            raise InputError(
                f'{file}: labels: {label!r:.60} is no label; with several, it has no {SEPARATOR!r} in it'
            )
    if not values.get('header'):
        return {}
    headers: dict[Path, list[str]] = {}
    for name in SPLITS:
        path = split(name)
        rows = own_rows(path)
        headers[path] = [column.strip() for column in rows[0][2]] if rows else []
    train, *others = headers
    for path in others:
        if headers[path] != headers[train]:
            raise InputError(
                f'{path}:1: has the header {shortened(headers[path])}, but {train} has {shortened(headers[train])}'
            )
    return {column: at for at, column in enumerate(headers[train])}


def _place(file: Path, key: str, column: Any, places: Mapping[str, int]) -> int:
    if isinstance(column, int) and not isinstance(column, bool) and column >= 1:
        return column - 1
    if column not in places:
        there = (
            f'there are {shortened(places, 12, 16)}{meant(column, places)}'
            if places
            else 'without a header give its number'
        )
        raise InputError(f'{file}: {key}: no column {column!r}; {there}')
    return places[column]


def _labels(said: SetDescription, train: Path) -> list[str]:
    """The labels of the training file. Raises InputError where its first line looks like a header."""
    layout, several = _layout(said), bool(said.several)
    if layout.keys:
        keys = Keys(tuple(layout.keys[at] for at in layout.texts), layout.keys[layout.answer])
        items = read_items(train, keys).items
        listed = [answer for item in items if item.listed for answer in item.answers or ()]
        single = [answer for item in items if not item.listed for answer in item.answers or ()]
        return in_order([*_apart(listed, False), *_apart(single, several)])
    rows = own_rows(train)
    if not layout.header and rows:
        wide = [row for row in rows if len(row[2]) > max(layout.answer, *layout.texts)]
        own.refuse_header([(*row[:2], [row[2][at] for at in (*layout.texts, layout.answer)]) for row in wide])
    answers = [
        columns[layout.answer].strip()
        for *_, columns in rows[layout.header :]
        if len(columns) > layout.answer
    ]
    return _apart(answers, several)


def _apart(answers: Sequence[str], several: bool) -> list[str]:
    """The labels of answers, sorted."""
    parts: Sequence[Sequence[str]] = [x.split(SEPARATOR) if several else [x] for x in answers]
    return in_order(label.strip() for each in parts for label in each if label.strip())
