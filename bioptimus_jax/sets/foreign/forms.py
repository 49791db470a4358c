"""The table of foreign forms: how each is recognised, and how it is read. Training, lint, score and predict use it."""

import dataclasses
import functools
import gzip
import re
import zlib
from collections.abc import Callable
from pathlib import Path

from bioptimus_jax.errors import InputError
from bioptimus_jax.sets.foreign import bioc, csvs, jsons
from bioptimus_jax.sets.foreign.items import (
    CSV_ENDINGS,
    FOUND_KEYS,
    JSON_ENDINGS,
    XML_ENDINGS,
    Context,
    Item,
    Items,
    Keys,
    Source,
)
from bioptimus_jax.sets.foreign.names import names_beside
from bioptimus_jax.sets.foreign.refused import refuse_unread
from bioptimus_jax.sets.foreign.tabular import table_items
from bioptimus_jax.sets.sentences import GZIP_BEGINS, bytes_of, decoded, plain_suffix
from bioptimus_jax.storage import tables

Read = Callable[[Source, Context], tuple[str, list[Item]]]


@dataclasses.dataclass(frozen=True)
class FileForm:
    """A form of files. `endings`: what their names end with, without .gz; `holds`: whether the text of a file with any
    other ending is one; `read`: a file -> the form's exact name, and its items."""

    endings: tuple[str, ...]
    holds: Callable[[str], bool]
    read: Read


def _bioc(source: Source, context: Context) -> tuple[str, list[Item]]:
    return bioc.DIALECT.name, list(bioc.read_xml(source.place, source.text, context))


def _csv(source: Source, context: Context) -> tuple[str, list[Item]]:
    return CSV, list(csvs.items_of(source.place, source.text, context))


JSON, XML, CSV, TABLE = 'JSON', 'BioC', 'CSV', 'table'
COLLECTION = re.compile(r'\s*(<\?xml[^>]*>\s*)?(<!DOCTYPE[^>]*>\s*)?<collection[\s>]')
FORMS: dict[str, FileForm] = {
    JSON: FileForm(
        JSON_ENDINGS,
        jsons.is_json,
        lambda source, context: jsons.items_of(source.place, source.text, context),
    ),
    XML: FileForm(XML_ENDINGS, lambda text: COLLECTION.match(text) is not None, _bioc),
    CSV: FileForm(
        CSV_ENDINGS, lambda text: csvs.names_columns(text.lstrip('\n').split('\n', 1)[0]) != '', _csv
    ),
    TABLE: FileForm(tuple(tables.READERS), lambda text: False, table_items),
}
BEGINNING = 2**14
"""Bytes of a file that tell whether it may be in a foreign form."""
ENDINGS = tuple(end for form in FORMS.values() for end in form.endings)
"""Endings of the files that are in a foreign form."""


def form_of_name(path: Path) -> str:
    """The form that a file's ending names; '' for none."""
    return next((name for name, form in FORMS.items() if plain_suffix(path).lower() in form.endings), '')


def form_of_text(text: str) -> str:
    """The form of a text, whatever its file is called; '' for none of these."""
    return next((name for name, form in FORMS.items() if form.holds(text)), '')


def form_at(path: Path) -> str:
    """The form of a file, by its ending or by what it holds; '' where it is in none of these."""
    named = form_of_name(path)
    if named or not path.is_file():
        return named
    status = path.stat()
    return _form_again(path, status.st_mtime_ns, status.st_size)


@functools.lru_cache(maxsize=256)
def _form_again(path: Path, changed: int, size: int) -> str:
    # Sets are looked for again and again, and most files are lines of words, which their beginning tells.
    with open(path, 'rb') as file:
        packed = file.read(len(GZIP_BEGINS)) == GZIP_BEGINS
    with gzip.open(path, 'rb') if packed else open(path, 'rb') as stored:
        try:
            begin = stored.read(BEGINNING)
        except (OSError, EOFError, zlib.error):
            return ''  # whoever reads it says what is wrong
    head = begin.decode('utf-8', 'ignore').removeprefix('\ufeff')
    maybe = head.lstrip()[:1] in ('{', '[') or COLLECTION.match(head) or FORMS[CSV].holds(head)
    return form_of_text(decoded(path, bytes_of(path)).removeprefix('\ufeff')) if maybe else ''


def read_source(source: Source, form: str, keys: Keys = FOUND_KEYS) -> Items:
    """What a file, or standard input, holds in a form. Raises InputError with file and line."""
    context = Context(keys, names_beside(source.path) if source.path and form != TABLE else {})
    exact, items = FORMS[form].read(source, context)
    return Items(exact, tuple(items), +context.repairs, context.taken)


def read_items(path: Path, keys: Keys = FOUND_KEYS) -> Items:
    """What a file holds. Raises InputError with file and line, and for a file in no form of these."""
    status = path.stat()
    return _read_again(path, keys, status.st_mtime_ns, status.st_size)


@functools.lru_cache(maxsize=6)
def _read_again(path: Path, keys: Keys, changed: int, size: int) -> Items:
    # The labels of a set, its notes and its examples are asked for one after the other.
    form = form_at(path)
    if not form:
        refuse_unread(path)
        raise InputError(f'{path}: is in no form that is read here; JSON, CSV, BioC and tables are')
    return read_source(Source(str(path), path), form, keys)
