"""Examples of sets of texts, from lines of columns and from records with names.

A line is an example, and its columns stand apart by tabs; nothing is quoted in public sets. One's own set has two or
three columns, or the forms of `foreign`.
"""

import functools
import math
import re
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from bioptimus_jax.errors import InputError
from bioptimus_jax.progress.console import numbered, some_labels
from bioptimus_jax.sets import own
from bioptimus_jax.sets.columns import BYTE_ORDER_MARK
from bioptimus_jax.sets.foreign.flat import OF_MODELS, texts_joined, without_role
from bioptimus_jax.sets.foreign.forms import JSON, form_at, form_of_name, read_items, read_source
from bioptimus_jax.sets.foreign.items import PREDICTED_KEYS, Item, Items, Keys, Source
from bioptimus_jax.sets.foreign.splits import by_characters
from bioptimus_jax.sets.own import ColumnLine
from bioptimus_jax.sets.quoting import unquoted
from bioptimus_jax.sets.roles import words_and_blanks
from bioptimus_jax.sets.sentences import of_devel, text_of
from bioptimus_jax.sets.tags import is_tag
from bioptimus_jax.sets.texts import DESCRIBED, FOUND, Layout, Published, Text, Texts, in_order
from bioptimus_jax.text.words import count_words

LARGEST_NUMBER = 1e6
LETTERS = 8
"""Letters of a script without blanks that are several words."""
NEEDED = '"text" (or two: "sentence1" and "sentence2") with "label"'
Answers = Callable[[str, str], tuple[str | float, ...]]
"""What an answer column says, and where it stands."""


def read_texts(name: str, files: Mapping[str, Path], numbers: bool, known: Published | None = None) -> Texts:
    """A set from the file of each split; `numbers`: its answers are numbers; `known`: its record.

    Raises InputError naming file and line.
    """
    train = read_split('train', files.__getitem__, known, numbers)
    labels: Sequence[str] = ()
    if not numbers:
        labels = known.labels if known else in_order(str(a) for x in train for a in x.answers)
        # Where a text may have no label either, one is enough.
        either = known is not None and known.several and len({x.answers for x in train}) > 1
        if len(labels) < 2 and not either:
            raise InputError(
                f'{files["train"]}: has one label, {some_labels(labels)}; there is nothing to learn'
            )
    later = {
        split: read_split(split, files.__getitem__, known, numbers, labels) for split in ('devel', 'test')
    }
    width = len(train[0].words)
    for split, read in later.items():
        if not known and len(read[0].words) != width:
            raise InputError(
                f'{files[split]}: has {numbered(len(read[0].words), "text")} a line, but {files["train"]} {width}; '
                'the splits of a set have the same columns'
            )
    return Texts(name, train, **later, labels=tuple(labels), notes=_notes(files, numbers, known))


def _notes(files: Mapping[str, Path], numbers: bool, known: Published | None) -> tuple[str, ...]:
    """How the files of one's own set were read, in words. Raises InputError where all of them have a header, of which
    no record speaks."""
    if items := named_items(files['train'], known, known.layout if known else None):
        return tuple(notes_of(items))
    if known:
        return tuple(own.notes_on_quotes(files)) if known.source == DESCRIBED else ()
    rows = {split: own_rows(file) for split, file in files.items()}
    if not numbers:
        own.refuse_same_header(rows)
    return tuple(own.notes(files, rows['train'], numbers))


def read_split(
    split: str,
    files: Callable[[str], Path],
    known: Published | None,
    numbers: bool,
    labels: Sequence[str] = (),
) -> tuple[Text, ...]:
    """The examples of a split; where its record holds devel out of train, both are cut from train's file.

    `files`: split -> its file, which for such a devel may be empty, or train's. `labels`: all that there are, where
    train has said so. Raises InputError with file and line.
    """
    held_out = known.held_out if known and split != 'test' else 0
    if not held_out:
        return read_file(files(split), known, numbers, labels)
    whole = read_file(files('train'), known, numbers, labels, known.train if known else None)
    if len(whole) <= held_out:
        raise InputError(
            f'{files("train")}: has {numbered(len(whole), "example")}, and the last {held_out:,} are devel'
        )
    if split == 'train':
        return whole[:-held_out]
    has_own = files(split) != files('train') and files(split).stat().st_size > 0
    own_examples = read_file(files(split), known, numbers, labels) if has_own else ()
    return (*own_examples, *whole[-held_out:])


def read_file(
    path: Path,
    known: Published | None,
    numbers: bool,
    labels: Sequence[str] = (),
    layout: Layout | None = None,
) -> tuple[Text, ...]:
    """The examples of one file: by the record of its set, or of text TAB answer, or two texts TAB answer.

    `labels`: all that an own set has; `layout`: if not that of the record. Raises InputError with file and line.
    """
    layout = layout or (known.layout if known else None)
    if items := named_items(path, known, layout):
        return _of_items(path, items, layout, known, numbers, labels)
    rows = own_rows(path) if not known or known.own else rows_of(path)
    layout = layout or _own_layout(rows)
    answers = functools.partial(answers_of, known=known, numbers=numbers, labels=labels)
    _check_header(rows, layout, known, answers)
    rows = rows[layout.header :]
    if not rows:
        raise InputError(f'{path}: holds no example{of_devel(path)}')
    documents: dict[str, int] = {}
    examples = [_example(*row, layout, answers, documents) for row in rows]
    return tuple(_joined(examples, layout.apart) if layout.joined else examples)


def holds_texts(path: Path) -> bool:
    """Whether a file without a record holds texts with answers, and not words with tags: as most of its lines do, or by
    the names of what it holds."""
    if form_at(path):
        items = read_items(path).items
        return bool(items) and not by_characters(items) and items[0].tags is None
    rows = _tabbed(path)
    # Not by one of them: a word may have white space in it, a text may be one word, and a file may have a header.
    if words_and_blanks(rows):
        return False
    of_texts = sum(_has_words(columns) or not any(is_tag(x.strip()) for x in columns) for columns in rows)
    return 2 * of_texts > len(rows)


def holds_prose(path: Path) -> bool:
    """Whether most lines of such a file have a column of several words; of named records, whether they have answers."""
    if form_at(path):
        try:
            items = read_items(path).items
        except InputError:
            return False
        return bool(items) and bool(items[0].texts) and items[0].answers is not None and items[0].tags is None
    rows = _tabbed(path)
    return not words_and_blanks(rows) and 2 * sum(map(_has_words, rows)) > len(rows)


def _tabbed(path: Path) -> list[list[str]]:
    lines = text_of(path).lstrip(BYTE_ORDER_MARK).split('\n')
    return [line.split('\t') for line in lines if '\t' in line and line.strip()]


def _has_words(columns: Sequence[str]) -> bool:
    """Whether a column has several words, or more letters of a script without blanks than a word of it has."""
    return any(len(x.split()) > 1 or count_words(x) >= LETTERS for x in columns)


def rows_of(path: Path) -> list[ColumnLine]:
    """The lines of a file that are not blank, in columns."""
    lines = enumerate(text_of(path).lstrip(BYTE_ORDER_MARK).split('\n'), 1)
    rows = [(f'{path}:{number}', number, line.rstrip('\r')) for number, line in lines if line.strip()]
    return [(where, number, line.split('\t')) for where, number, line in rows]


def own_rows(path: Path) -> list[ColumnLine]:
    """The same of one's own set, without the quotation marks around fields where the whole file is quoted."""
    rows = rows_of(path)
    plain = unquoted(['\t'.join(columns) for *_, columns in rows])
    return [(*row[:2], columns) for row, columns in zip(rows, plain, strict=True)] if plain else rows


def named_items(path: Path, known: Published | None, layout: Layout | None) -> Items | None:
    """The records of a file whose keys or columns have names; None for lines of columns. Raises InputError."""
    if layout and layout.keys:
        named = _keys_of(layout)
        return read_items(path, named) if form_at(path) else read_source(Source(str(path), path), JSON, named)
    if known and known.source != FOUND:
        if form_of_name(path):
            raise InputError(f'{path}: a public set is read from its own files; rename the folder')
        return None
    return read_items(path) if form_at(path) else None


def _keys_of(layout: Layout) -> Keys:
    """The names that a set has given to its keys."""
    name = '' if layout.name is None else layout.keys[layout.name]
    return Keys(tuple(layout.keys[at] for at in layout.texts), layout.keys[layout.answer], name)


def predicted_items(path: Path, layout: Layout | None) -> Items:
    """The records of predictions: by the usual names, and by those that the set has given to its keys where they are
    there. Raises InputError."""
    if not layout:
        return read_items(path, PREDICTED_KEYS)
    given = _keys_of(layout)
    try:
        found = read_items(path, PREDICTED_KEYS)
    except InputError:  # no usual name, or half a pair of them
        found = read_items(path, Keys(given.texts, predicted=True))
    there = {key.lower() for item in found.items[:1] for key in item.keys}
    # A model may say nothing of a text. The gold answer beside it is not the model's.
    unsaid = there.isdisjoint(OF_MODELS) and all(item.answers is None for item in found.items)
    named = Keys(
        given.texts if there.issuperset(text.lower() for text in given.texts) else (),
        given.answer if unsaid and given.answer.lower() in there else '',
        given.name if given.name.lower() in there else '',
        predicted=True,
    )
    return found if named == PREDICTED_KEYS else read_items(path, named)


def _of_items(
    path: Path,
    found: Items,
    layout: Layout | None,
    known: Published | None,
    numbers: bool,
    labels: Sequence[str],
) -> tuple[Text, ...]:
    """The examples of named records. Raises InputError with the record."""
    if not found.items:
        left = ''.join(f'; {what}: {count:,}' for what, count in found.repairs.items())
        raise InputError(f'{path}: holds no example{left}{of_devel(path)}')
    named = any(item.document for item in found.items)
    documents: dict[str, int] = {}
    examples = []
    for item in map(texts_joined, found.items):
        if _is_unsaid(item, found.taken.get('answer', '')):
            raise InputError(f'{item.place}: its label is not given; leave such rows out')
        if item.answers is None or not 1 <= len(item.texts) <= 2:
            raise without_role(item, NEEDED, 'name other keys in set.json')
        if not all(item.texts):
            raise InputError(f'{item.place}: a text is empty')
        if layout and layout.document:
            document = _document(item.place, item.name, layout, documents)
        elif named:
            document = documents.setdefault(item.document or item.place, len(documents))
        else:
            document = 0
        given = answers_of_item(item, known, numbers, labels)
        examples.append(Text(item.texts, given, document, line=item.line, name=item.name))
    return tuple(examples)


def _is_unsaid(item: Item, key: str) -> bool:
    """Whether a record has the key of the answer, and nothing under it, as tables have where a label is missing."""
    return item.answers is None and key in item.keys and key.strip().lower() not in item.others


def answers_of_item(
    item: Item, known: Published | None, numbers: bool, labels: Sequence[str] = ()
) -> tuple[str | float, ...]:
    """What a record says of its texts. Raises InputError for several answers where a text has one."""
    given = item.answers or ()
    if known and known.several and item.listed:
        said = [one for answer in given for one in answers_of_one(item.place, answer, known)]
        return tuple(label for label in known.labels if label in said)
    if len(given) > 1:
        raise InputError(
            f'{item.place}: has {len(given)} answers, {", ".join(given)!r:.40}, but a text of this set has one; give '
            'several to texts of train too, or say "several" in set.json'
        )
    return answers_of(item.place, given[0].strip() if given else '', known, numbers, labels)


def notes_of(found: Items) -> list[str]:
    """How a file of named records was read, in words."""
    said = ', '.join(
        f'{role} from {key!r}' for role, key in found.taken.items() if role in ('text', 'answer')
    )
    return [f'read as {found.form}: {said}', *(f'{what}: {count:,}' for what, count in found.repairs.items())]


def _check_header(
    rows: Sequence[ColumnLine], layout: Layout, known: Published | None, answers: Answers
) -> None:
    """Raises InputError where the first line is a header and should be none, or the other way round."""
    if not rows:
        return
    where, number, first = rows[0]
    if not known:
        own.refuse_header(rows)
    if not (known and layout.header):
        return
    try:
        _example(where, number, first, layout, answers, {})
    except InputError:
        return
    raise InputError(f'{where}: is an example; the first line of {known.name} is a header')


def _own_layout(rows: Sequence[ColumnLine]) -> Layout:
    """Two or three columns, the last of which is the answer. Raises InputError."""
    width = own.width_of(rows)
    return Layout(tuple(range(width - 1)), width - 1)


def _example(
    where: str, number: int, columns: list[str], layout: Layout, answers: Answers, documents: dict[str, int]
) -> Text:
    """The example of a line; `documents` gets the number of its document, where that is new."""
    if len(columns) != layout.columns:
        count = numbered(len(columns), 'column')
        raise InputError(f'{where}: has {count}, not {layout.columns}{own.across(columns)}')
    texts, given = tuple(columns[at].strip() for at in layout.texts), columns[layout.answer].strip()
    if not all(texts):
        raise InputError(f'{where}: a text is empty')
    name = '' if layout.name is None else columns[layout.name]
    document = _document(where, name, layout, documents)
    return Text(texts, answers(where, given), document, line=number, name=name)


def _document(where: str, name: str, layout: Layout | None, documents: dict[str, int]) -> int:
    """The number of the document that the name of an example says; 0 where names say none."""
    if not layout or not layout.document or layout.name is None:
        return 0
    found = re.match(layout.document, name)
    if not found:
        raise InputError(f'{where}: {name!r:.60} names no document')
    return documents.setdefault(found[found.lastindex or 0], len(documents))


def answers_of(
    where: str,
    given: str,
    known: Published | None,
    numbers: bool,
    labels: Sequence[str] = (),
) -> tuple[str | float, ...]:
    """What an answer column says: a number, or the labels of the set. Raises InputError that names `where`."""
    if numbers:
        try:
            value = float(given)
        except ValueError:
            value = math.nan
        # NaN is below nothing: so it is refused as well.
        if not abs(value) < LARGEST_NUMBER:
            raise InputError(f'{where}: {given!r:.60} is not a number')
        return (value,)
    if not known:
        if not given:
            raise InputError(f'{where}: has no label')
        if labels and given not in labels:
            raise InputError(
                f'{where}: has the label {given!r:.60}, which train does not have; known: {some_labels(labels)}'
            )
        return (given,)
    parts = [part.strip() for part in given.split(',')] if known.several else [given]
    said = [label for part in parts for label in answers_of_one(where, part, known)]
    return tuple(label for label in known.labels if label in said)


def answers_of_one(where: str, given: str, known: Published) -> tuple[str, ...]:
    """The label that a part of an answer means; none where it is empty and a text may have any number of them."""
    label = known.spelled.get(given, given)
    if label not in known.labels and (label or not known.several):
        shown = some_labels(known.labels)
        raise InputError(f'{where}: {(label or given)!r:.60} is not a label of {known.name}: {shown}')
    return (label,) if label else ()


def _joined(examples: Sequence[Text], apart: bool) -> list[Text]:
    """One example for each document: its texts in the order of the file, every label that one of them has."""
    parts: dict[int, list[Text]] = defaultdict(list)
    for example in examples:
        parts[example.document].append(example)
    found = []
    for of_one in parts.values():
        sentences = tuple(part.words[0] for part in of_one)
        answers = tuple(sorted({answer for part in of_one for answer in part.answers}, key=str))
        each = tuple(part.answers for part in of_one) if apart else ()
        words = sentences if apart else (' '.join(sentences),)
        found.append(Text(words, answers, parts=each, line=of_one[0].line))
    return found
