"""CSV, and TSV with the names of its columns: the first line names them, fields may be quoted.

A row is a text with its answer, or a word with its tag; then a column says which sentence it is in (as in the set of
Kaggle), or blank lines stand between sentences.
"""

import csv
import json
import re
from collections.abc import Iterator, Sequence
from typing import Any

from bioptimus_jax.errors import InputError
from bioptimus_jax.progress.console import shortened
from bioptimus_jax.sets.foreign import flat
from bioptimus_jax.sets.foreign.items import Context, Item
from bioptimus_jax.sets.prepared import DOCUMENTS, TAGS, TOKENS
from bioptimus_jax.sets.quoting import unquoted, whole_rows

MARKS = (',', ';', '\t')
LONGEST_FIELD = 2**28
WORDS, WORD_TAGS = ('word', 'token', *TOKENS), ('tag', *TAGS)
SENTENCES = ('sentence #', 'sentence_id', 'sentence', 'sent_id', 'sentence_number', 'sentence number')
NAME = re.compile(r'[^\W\d][\w .:/()#-]{0,39}')
LISTED = re.compile(r"\[\s*(['\"].*['\"]|[\[({].*[\])}])\s*\]", re.S)
Row = tuple[int, list[str]]
"""The number of the line where a row begins, and its cells; none of a blank line."""


def names_columns(line: str) -> str:
    """The mark between the columns of a first line that names a text and its answer; '' of another line."""
    for mark in MARKS:
        names = [cell.strip().strip('"').lower() for cell in line.split(mark)]
        plain = (
            len(names) > 1 and len({*names}) == len(names) and all(map(NAME.fullmatch, filter(None, names)))
        )
        texts = not {*flat.ALONE}.isdisjoint(names) or bool(flat.pair_in(names))
        if plain and texts and not {*flat.ANSWERS}.isdisjoint(names):
            return mark
    return ''


def items_of(place: str, text: str, context: Context) -> Iterator[Item]:
    """The rows, or the sentences. Raises InputError with the line."""
    first = text.split('\n', 1)[0]
    mark = names_columns(first) or next((m for m in MARKS if m in first), ',')
    rows = _tabbed(text) if mark == '\t' else _quoted(place, text, mark)
    number, names = next(((n, cells) for n, cells in rows if cells), (1, []))
    names = [name.strip() for name in names]
    if len({name.lower() for name in names}) != len(names) or not any(names):
        raise InputError(
            f'{place}:{number}: names no columns, or one of them twice ({shortened(names)}); {_needed(context)}'
        )
    known = {name.lower(): name for name in names}
    for asked in filter(None, (context.keys.word, context.keys.tag)):
        if asked.lower() not in known:
            raise InputError(f'{place}:{number}: has no column {asked!r}; it has {shortened(names)}')
    word, tag = (
        known.get(asked.lower()) or next((known[name] for name in usual if name in known), '')
        for asked, usual in ((context.keys.word, WORDS), (context.keys.tag, WORD_TAGS))
    )
    entries = _entries(place, names, rows)
    if word and tag and known.keys().isdisjoint(('text', *flat.ENTITIES)):
        entry = next(((n, one) for n, one in entries if one), None)
        if entry and not _holds_list(entry[1][word]):
            yield from _sentences(place, names, word, tag, entry, entries, context)
            return
        entries = _entries(
            place, names, iter([*([(entry[0], [*entry[1].values()])] if entry else ()), *rows])
        )
    elif known.keys().isdisjoint(flat.KNOWN) and not (context.keys.texts or context.keys.answer):
        raise InputError(f'{place}:{number}: names the columns {shortened(names, 3, 20)}; {_needed(context)}')
    for line, entry_of in entries:
        if entry_of:
            where = f'{place}:{line}'
            given = {name: _value(where, name, cell, context) for name, cell in entry_of.items()}
            yield flat.item_of(where, line, given, context)


def _needed(context: Context) -> str:
    """What the first line has to name."""
    if context.keys.texts_alone:
        return 'its first line has to name the texts: "text", or "sentence1" and "sentence2"'
    return (
        'its first line has to name them: "text" and "label", "sentence1", "sentence2" and "label", or "token", "tag" '
        'and "sentence_id"; name others in set.json'
    )


def _quoted(place: str, text: str, mark: str) -> Iterator[Row]:
    csv.field_size_limit(LONGEST_FIELD)
    reader = csv.reader(_lines(text), delimiter=mark, strict=True)
    line = 1
    while True:
        try:
            cells = next(reader, None)
        except csv.Error as error:
            raise InputError(
                f'{place}:{line}: is not comma-separated text ({error}); quote fields that hold quotation marks, and '
                'double those'
            ) from error
        if cells is None:
            return
        yield line, cells
        line = reader.line_num + 1


def _lines(text: str) -> list[str]:
    """Lines cut at line feeds only; str.splitlines also cuts at U+2028 and others, found in texts."""
    return [f'{line}\n' for line in text.split('\n')[: -1 if text.endswith('\n') else None]]


def _holds_list(cell: str) -> bool:
    """Whether a cell is a list, as JSON or as Python prints it, and not a word such as the bracket itself."""
    try:
        return isinstance(json.loads(cell), list)
    except (ValueError, RecursionError):
        return LISTED.fullmatch(cell) is not None


def _tabbed(text: str) -> Iterator[Row]:
    lines = [*enumerate((line.rstrip('\r') for line in text.split('\n')), 1)]
    rows = whole_rows(lines)
    whole = sum(row.count('\n') + 1 for _, row in rows) == len(lines)
    plain = unquoted([row for _, row in rows if row.strip()]) if whole else None
    if plain is None or any('\n' in field and '\t' in field for fields in plain for field in fields):
        # A text that only begins with a quotation mark would swallow lines, with the tabs in them.
        rows, plain = lines, unquoted([line for _, line in lines if line.strip()])
    cells = iter(plain or [row.split('\t') for _, row in rows if row.strip()])
    return ((number, next(cells) if row.strip() else []) for number, row in rows)


def _entries(place: str, names: Sequence[str], rows: Iterator[Row]) -> Iterator[tuple[int, dict[str, str]]]:
    """Rows by the names of their columns, {} for a blank line. Raises InputError for rows of another width."""
    for line, cells in rows:
        if not any(cell.strip() for cell in cells):
            yield line, {}
            continue
        if len(cells) != len(names):
            raise InputError(
                f'{place}:{line}: has {len(cells)} columns, but the first line names {len(names)}; quote fields that '
                'hold the mark between columns'
            )
        yield line, dict(zip(names, cells, strict=True))


def _value(where: str, name: str, cell: str, context: Context) -> Any:
    """A cell, or the list of JSON that stands in it. Raises InputError for a list as Python prints it."""
    lists = (
        *TOKENS,
        *TAGS,
        *flat.ENTITIES,
        *flat.ANSWERS,
        context.keys.answer,
        context.keys.word,
        context.keys.tag,
    )
    if not cell.startswith('[') or name.lower() not in {one.lower() for one in lists}:
        return cell
    try:
        return json.loads(cell)
    except (ValueError, RecursionError) as error:
        if LISTED.fullmatch(cell):
            raise InputError(
                f'{where}: column {name!r} holds a list as Python prints it, {cell[:40]!r}; save lists as JSON lines '
                "(pandas: to_json(orient='records', lines=True))"
            ) from error
        return cell


def _sentences(
    place: str,
    names: Sequence[str],
    word: str,
    tag: str,
    first: tuple[int, dict[str, str]],
    rest: Iterator[tuple[int, dict[str, str]]],
    context: Context,
) -> Iterator[Item]:
    """Sentences of rows that are words. Raises InputError where nothing says where one ends."""
    number = next((name for name in names if name.lower() in SENTENCES and name != word), None)
    context.taken |= {'words': word, 'tags': tag} | ({'sentences': number} if number else {})
    documents = [name for name in names if name.lower() in DOCUMENTS and name not in (word, tag)]
    # In some files the numbers of sentences begin again in each document.
    counted = [number, *documents] if number else documents
    groups: list[list[tuple[int, dict[str, str]]]] = [[]]
    blank, current = False, dict[str, str]()
    for line, entry in (first, *rest):
        own = {name: value for name in counted if (value := entry.get(name, '').strip())}
        if not entry or any(current.get(name, value) != value for name, value in own.items()):
            blank = blank or not entry
            groups.append([])
        current |= own
        if entry:
            groups[-1].append((line, entry))
    if not number and not blank and any(len(group) > 1 for group in groups):
        raise InputError(
            f'{place}: has a word in each row, but no column "sentence_id" and no blank line that says where '
            'sentences end'
        )
    for group in filter(None, groups):
        line = group[0][0]
        words, tags = ([entry[name].strip() for _, entry in group] for name in (word, tag))
        yield Item(
            f'{place}:{line}',
            line,
            words=tuple(words),
            tags=tuple(tags),
            keys=tuple(names),
            document=' '.join(group[0][1].get(name, '').strip() for name in documents).strip(),
        )
