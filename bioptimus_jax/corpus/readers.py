"""Documents from jsonl, plain text, TSV and CSV files, gzipped or not, read as a stream with bounded memory.

Anything that cannot be read raises InputError with file, line and remedy: no record is skipped silently.
"""

import csv
import dataclasses
import glob
import gzip
import hashlib
import json
import re
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, BinaryIO, cast

from bioptimus_jax.corpus.documents import Document
from bioptimus_jax.errors import ConfigError, InputError
from bioptimus_jax.schema import Corpus

SUFFIXES = ('.jsonl', '.txt', '.tsv', '.csv')
BYTE_ORDER_MARK = b'\xef\xbb\xbf'
PARAGRAPH_END = re.compile(r'\n[^\S\n]*\n')
SURROGATE = re.compile('[\ud800-\udfff]')
LINES_PER_REPORT = 256
# Ids of records whose id is empty, as of abstracts from collections that kept none.
MADE_ID = 'text-'


def input_files(settings: Corpus, key: str = 'corpus.inputs') -> list[Path]:
    """The files of `settings.inputs`: patterns in their order, each expanded in sorted order, every file once.

    Raises ConfigError for an empty list; InputError for a pattern without a match, a folder, another ending;
    messages name the `key` that the patterns come from.
    """
    if not settings.inputs:
        raise ConfigError(
            f'config.{key}: is empty; give files or globs of .jsonl, .txt, .tsv or .csv, gzipped or not'
        )
    files: dict[Path, None] = {}
    for pattern in settings.inputs:
        expanded = Path(pattern).expanduser()
        if expanded.is_dir():
            raise InputError(f'{pattern}: is a folder; name its files in {key}, as in {pattern}/*.jsonl.gz')
        found = (
            [expanded] if expanded.is_file() else map(Path, sorted(glob.glob(str(expanded), recursive=True)))
        )
        matches = [path for path in found if path.is_file()]
        if not matches:
            raise InputError(f'{pattern}: no such file, and no file matches it; correct --config.{key}')
        for path in matches:
            if _suffix(path) not in SUFFIXES:
                endings = ', '.join(f'{s}[.gz]' for s in SUFFIXES)
                raise InputError(f'{path}: unknown kind of file; {key} takes {endings}')
            files[path] = None
    return list(files)


class BrokenFile(InputError):
    """A file that is cut off or damaged as a whole."""


@dataclasses.dataclass(frozen=True)
class Record:
    """What a file says: a document, or why it is none.

    `version` counts a PubMed record's versions from 1 and is 0 where a format knows none. `reason` is empty for a
    document; `deletion` takes back what came before under this id, in this version; `bad_record` explains itself
    in `note`.
    """

    id: str
    text: str = ''
    version: int = 0
    reason: str = ''
    note: str = ''


def read_inputs(settings: Corpus) -> Iterator[Document]:
    """The documents of all input files in order. Raises InputError, for a bad record too."""
    for path, prefix in named_files(input_files(settings)):
        for record in read_file(path, prefix, dataclasses.replace(settings, on_bad_record='fail')):
            if not record.reason:
                yield Document(record.id, record.text, path.name)


def named_files(paths: Iterable[Path]) -> Iterator[tuple[Path, str]]:
    """Files and the prefix of ids that their format does not give: the stem, numbered from the second of a name on.

    Files of the same name may lie in two folders; ids differ, whatever the folders are called.
    """
    stems: Counter[str] = Counter()
    for path in paths:
        stem = path.name.removesuffix('.gz').removesuffix(_suffix(path))
        stems[stem] += 1
        yield path, stem if stems[stem] == 1 else f'{stem}~{stems[stem]}'


def read_file(
    path: Path,
    prefix: str,
    settings: Corpus,
    advance: Callable[[int], None] = lambda stored_bytes: None,
) -> Iterator[Record]:
    """The records of one file in order; `advance` is told the stored bytes that were consumed.

    White space is squeezed; paragraphs and text fields stay apart by a line break. Raises InputError.
    """
    lines = _lines(path, settings.encoding, advance)
    suffix = _suffix(path)
    if suffix == '.jsonl':
        yield from _from_jsonl(path, lines, settings)
        return
    if suffix == '.txt':
        texts = _paragraphs(lines)
    else:
        cells = _tabbed(lines) if suffix == '.tsv' else _quoted(path, lines)
        texts = _column(path, cells, settings.tsv_column)
    for number, text in enumerate(_joined(texts, settings.words_per_document)):
        yield Record(f'{prefix}-{number}', text)


def lines_of(path: Path, encoding: str = 'utf-8') -> Iterator[tuple[int, str]]:
    """`(line number from 1, line without its end)` of a text file, gzipped or not. Raises InputError."""
    return _lines(path, encoding, lambda stored_bytes: None)


def squeezed(text: str) -> str:
    """Valid Unicode with runs of white space made one space, and a line break between paragraphs."""
    if '\n' in text:
        parts = (' '.join(part.split()) for part in PARAGRAPH_END.split(text.replace('\r\n', '\n')))
        text = '\n'.join(part for part in parts if part)
    else:
        text = ' '.join(text.split())
    # JSON escapes may spell half a character, which no encoding can store.
    return text if text.isascii() else SURROGATE.sub('\ufffd', text)


def _suffix(path: Path) -> str:
    return Path(path.name.removesuffix('.gz')).suffix


def _lines(path: Path, encoding: str, advance: Callable[[int], None]) -> Iterator[tuple[int, str]]:
    number, reported = 0, 0
    try:
        with open(path, 'rb') as stored:
            if not path.stat().st_size:
                raise InputError(f'{path}: is empty; fetch it again or take it out of the inputs')
            stream = cast(BinaryIO, gzip.GzipFile(fileobj=stored)) if path.name.endswith('.gz') else stored
            for line in stream:
                number += 1
                if number == 1 and encoding == 'utf-8':
                    line = line.removeprefix(BYTE_ORDER_MARK)
                yield number, line.decode(encoding).rstrip('\r\n')
                if number % LINES_PER_REPORT == 0:
                    advance(stored.tell() - reported)
                    reported = stored.tell()
            advance(stored.tell() - reported)
    except UnicodeDecodeError as error:
        raise InputError(
            f'{path}:{number}: is not UTF-8 (byte {error.object[error.start]:#04x} at {error.start}); '
            'convert the file, or set --config.corpus.encoding=latin-1 if that is what it holds'
        ) from error
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise InputError(
            f'{path}: is a cut-off or damaged gzip file, after line {number}; fetch it again'
        ) from error
    except OSError as error:
        raise InputError(
            f'{path}: cannot be read ({error.strerror or error}); check the file and its rights'
        ) from error


def _from_jsonl(path: Path, lines: Iterable[tuple[int, str]], settings: Corpus) -> Iterator[Record]:
    for number, line in lines:
        if not line or line.isspace():
            continue
        where = f'{path}:{number}'
        try:
            record = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise InputError(f'{where}: is not JSON ({error}); correct or remove the line') from error
        if not isinstance(record, dict):
            raise InputError(
                f'{where}: is JSON, but not an object; each line must hold one, as in {{"id": "1", ...}}'
            )
        text = _text_of(record, settings.text_fields, where)
        yield Record(_id_of(record, settings.id_field, text, where), text)


def _id_of(record: dict[str, Any], field: str, text: str, where: str) -> str:
    if field not in record:
        raise InputError(f'{where}: has no {field!r}; add it, or name its key in config.corpus.id_field')
    value = record[field]
    if isinstance(value, int) and not isinstance(value, bool):
        value = str(value)
    if value is not None and not isinstance(value, str):
        raise InputError(f'{where}: {field!r} is neither a string nor a whole number; correct it')
    # Made from the text, so that it stays the same when files are cut or ordered otherwise.
    return squeezed(value or '') or MADE_ID + hashlib.blake2b(text.encode(), digest_size=8).hexdigest()


def _text_of(record: dict[str, Any], fields: tuple[str, ...], where: str) -> str:
    present = [field for field in fields if field in record]
    if not present:
        wanted = ', '.join(fields)
        raise InputError(
            f'{where}: has none of the text fields ({wanted}); name its keys in config.corpus.text_fields'
        )
    texts = []
    for field in present:
        value = record[field]
        if value is not None and not isinstance(value, str):
            raise InputError(
                f'{where}: {field!r} is not a string; correct it, or take it out of config.corpus.text_fields'
            )
        texts.append(squeezed(value or ''))
    return '\n'.join(text for text in texts if text)


def _paragraphs(lines: Iterable[tuple[int, str]]) -> Iterator[str]:
    waiting: list[str] = []
    for _, line in lines:
        words = ' '.join(line.split())
        if words:
            waiting.append(words)
        elif waiting:
            yield ' '.join(waiting)
            waiting = []
    if waiting:
        yield ' '.join(waiting)


def _tabbed(lines: Iterable[tuple[int, str]]) -> Iterator[tuple[int, list[str]]]:
    for number, line in lines:
        if line and not line.isspace():
            yield number, line.split('\t')


def _quoted(path: Path, lines: Iterable[tuple[int, str]]) -> Iterator[tuple[int, list[str]]]:
    rows = csv.reader((line + '\n' for _, line in lines), strict=True)
    try:
        for cells in rows:
            if cells:
                yield rows.line_num, cells
    except csv.Error as error:
        raise InputError(
            f'{path}:{rows.line_num}: is not comma-separated text ({error}); correct its quotation marks'
        ) from error


def _column(path: Path, rows: Iterable[tuple[int, list[str]]], column: int) -> Iterator[str]:
    for number, cells in rows:
        if column >= len(cells):
            raise InputError(
                f'{path}:{number}: has {len(cells)} column(s), config.corpus.tsv_column={column} (from 0); '
                'correct one of them'
            )
        text = squeezed(cells[column])
        if text:
            yield text


def _joined(texts: Iterable[str], words_per_document: int) -> Iterator[str]:
    waiting: list[str] = []
    words = 0
    for text in texts:
        waiting.append(text)
        words += text.count(' ') + 1
        if words >= words_per_document:
            yield '\n'.join(waiting)
            waiting, words = [], 0
    if waiting:
        yield '\n'.join(waiting)
