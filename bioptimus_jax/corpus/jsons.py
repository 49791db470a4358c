"""Files of JSON: lines, an array of records, a collection in BioC, or an article as CORD-19 gives it."""

import codecs
import itertools
import json
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from bioptimus_jax.corpus import bioc
from bioptimus_jax.corpus.config import Corpus
from bioptimus_jax.corpus.dates import undated
from bioptimus_jax.corpus.lines import BYTE_ORDER_MARK, byte_lines, undecodable
from bioptimus_jax.corpus.records import BadRecord, Record, made_id, squeezed
from bioptimus_jax.corpus.rows import Numbered, from_rows, parsed
from bioptimus_jax.corpus.stored import Advance, opened
from bioptimus_jax.errors import BrokenFile
from bioptimus_jax.storage.files import JsonObject

CHARACTERS_PER_READ, LONGEST_WORD = 2**16, 8
BLANK = re.compile(r'[\s,\ufeff]*')
SPACE_BEFORE_STOP = re.compile(r'\s+(?=[.,;:])')
BIOC, CORD19 = 'documents', 'body_text'
FORMS = 'lines of JSON, an array of records, BioC (documents), and articles of CORD-19 (body_text)'


def read(path: Path, prefix: str, settings: Corpus, advance: Advance) -> Iterator[Record]:
    """The records of a file of JSON, by its beginning. Raises BrokenFile for an object of another form, and for damage
    after the records before it."""
    beginning, second = _first_lines(path)
    if _is_array(path, beginning, second):
        return _array(path, settings, advance)
    try:
        first = json.loads(beginning.decode(settings.encoding))
    except (ValueError, RecursionError):
        # A damaged line of many, or the first line of an object of many lines.
        as_lines = beginning != b'{' and '.jsonl' in path.suffixes
    else:
        as_lines = not _is_article(first)
    if as_lines:
        return from_rows(path, 'line', parsed(byte_lines(path, advance), settings.encoding), settings)
    return _articles(path, _values(path, settings.encoding, advance), settings)


def _first_lines(path: Path) -> tuple[bytes, bytes]:
    """The first two lines that are not empty; empty where there are fewer."""
    filled = (line.strip() for _, line in byte_lines(path, lambda stored_bytes: None) if line.strip())
    return next(filled, b''), next(filled, b'')


def _is_array(path: Path, first: bytes, second: bytes) -> bool:
    """Whether a file begins as an array does; in one of lines, a line may be an array that has no place there."""
    if '.jsonl' not in path.suffixes or not second:
        return first.startswith(b'[')
    goes_on = second.endswith((b',', b'{'))
    return (first == b'[' and goes_on) or (first.startswith(b'[') and first.endswith((b',', b'{')))


def _is_article(value: Any) -> bool:
    """Whether it is a collection in BioC, or an article as CORD-19 gives it."""
    return isinstance(value, dict) and any(isinstance(value.get(key), list) for key in (BIOC, CORD19))


def _articles(path: Path, values: Iterable[tuple[int, Any]], settings: Corpus) -> Iterator[Record]:
    number = itertools.count(1)
    for place, value in values:
        if isinstance(value, BadRecord):
            yield Record('', reason='bad_record', note=f'record {place}: {value}')
        elif _is_article(value):
            documents = value.get(BIOC)
            if isinstance(documents, list):
                yield from (bioc.of_json(next(number), document, settings) for document in documents)
            else:
                yield _article(place, value, settings)
        elif place == 1:
            raise BrokenFile(f'{path}: is JSON of another form; what is read are {FORMS}')
        else:
            yield Record('', reason='bad_record', note=f'record {place} is no article')


def _array(path: Path, settings: Corpus, advance: Advance) -> Iterator[Record]:
    values = _values(path, settings.encoding, advance)
    first = next(values, None)
    whole = itertools.chain([] if first is None else [first], values)
    if first and _is_article(first[1]):
        return _articles(path, whole, settings)
    return from_rows(path, 'record', _objects(whole), settings)


def _objects(values: Iterable[tuple[int, Any]]) -> Iterator[Numbered]:
    for number, value in values:
        good = isinstance(value, dict | BadRecord)
        yield number, value if good else BadRecord('is JSON, but not an object')


def _values(path: Path, encoding: str, advance: Advance) -> Iterator[tuple[int, Any]]:
    """The values of a file, those of arrays too, one by one and from 1; BadRecord for what is none, at last.

    Files are put together with `cat`, so one array may follow another. Raises BrokenFile where one has no end.
    """
    decoder, parse = codecs.getincrementaldecoder(encoding)(), json.JSONDecoder().raw_decode
    with opened(path, advance) as source:
        text, ended, number, in_array = '', False, 0, False

        def more() -> bool:
            nonlocal text, ended
            # Each piece doubles the text, so that a long value is not parsed from its beginning for every small piece.
            piece = source.stream.read(max(CHARACTERS_PER_READ, len(text)))
            ended = not piece
            try:
                text += decoder.decode(piece if number else piece.removeprefix(BYTE_ORDER_MARK), ended)
            except UnicodeDecodeError as error:
                raise BrokenFile(f'{path}: after record {number}, {undecodable(error)}') from error
            return not ended

        while True:
            text = text[BLANK.match(text).end() :]  # type: ignore[union-attr]
            if not text and not ended:
                more()
                continue
            if not text:
                break
            if text[0] == (']' if in_array else '['):
                text, in_array = text[1:], not in_array
                continue
            try:
                value, end = parse(text)
            except (ValueError, RecursionError) as error:
                # What is wrong well before the end of what was read is no value that goes on.
                place = error.pos if isinstance(error, json.JSONDecodeError) else -1
                goes_on = place >= len(text) - CHARACTERS_PER_READ - LONGEST_WORD
                if (goes_on or 'Unterminated' in str(error)) and more():
                    continue
                yield number + 1, BadRecord(f'is not JSON ({error})')
                raise BrokenFile(
                    f'{path}: is cut off or not JSON after record {number}; fetch it again'
                ) from error
            if end == len(text) and more():  # a number may go on
                continue
            number, text = number + 1, text[end:]
            source.whole()
            source.report()
            yield number, value
        if in_array:
            raise BrokenFile(f'{path}: is cut off after record {number}; fetch it again')
        source.report()


def _article(number: int, article: JsonObject, settings: Corpus) -> Record:
    """An article as CORD-19 gives it: what is read is that of an article in JATS."""
    try:
        lines = _lines(article, settings)
        title = squeezed(str((article.get('metadata') or {}).get('title') or '')).replace('\n', ' ')
    except (AttributeError, KeyError, TypeError):
        return Record('', reason='bad_record', note=f'record {number} is no article as CORD-19 gives it')
    if title and lines and 'title' in settings.article_parts:
        lines.insert(0, title)
    text = '\n'.join(lines)
    id = str(article.get('paper_id') or '').strip() or made_id(text)
    reason = undated(text, settings)  # the dates are in metadata.csv
    return Record(id, '' if reason else text, 1, reason)


def _lines(article: JsonObject, settings: Corpus) -> list[str]:
    parts, lines = settings.article_parts, list[str]()
    for part, key in (('abstract', 'abstract'), ('paragraphs', CORD19)):
        section = None
        for paragraph in article.get(key) or () if part in parts else ():
            if settings.section_labels and paragraph.get('section') != section:
                section = paragraph.get('section')
                lines.append(squeezed(str(section or '')))
            lines.append(_without_references(paragraph))
    if 'captions' in parts:
        figures = (article.get('ref_entries') or {}).values()
        lines += [squeezed(str(entry.get('text') or '')).replace('\n', ' ') for entry in figures]
    return [line for line in lines if line]


def _without_references(paragraph: JsonObject) -> str:
    """A paragraph without the numbers of references; a name and a year stay, as in JATS."""
    text = str(paragraph.get('text') or '')
    for span in sorted(paragraph.get('cite_spans') or (), key=lambda span: -span['start']):
        if not any(map(str.isalpha, text[span['start'] : span['end']])):
            text = SPACE_BEFORE_STOP.sub('', f'{text[: span["start"]]} {text[span["end"] :]}')
    return squeezed(text).replace('\n', ' ')
