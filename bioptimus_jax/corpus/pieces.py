"""Records of XML one after the other; the tree is cleared record by record, so memory does not grow with the file.

A file may be several documents, as answers of a server saved one behind the other, or damaged. Then its records are cut
out by their tags and parsed one by one, so that a damaged one stands in nobody's way.
"""

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from lxml import etree

from bioptimus_jax.corpus.config import Corpus
from bioptimus_jax.corpus.markup import LONGEST_RECORD, broken, reason
from bioptimus_jax.corpus.records import BadRecord
from bioptimus_jax.corpus.stored import Advance, UnpackedFile, opened
from bioptimus_jax.errors import BrokenFile
from bioptimus_jax.storage.parsing import PARSING

RECORDS_PER_REPORT = 256
BYTES_PER_READ = 2**18
LONGEST_TAG = 2**16  # bytes
ENCODING = re.compile(rb'\s*<\?xml[^>]*encoding\s*=\s*["\']([\w.-]+)')
# What may stand between records: declarations, comments, and the tags of what holds the records.
MARKUP = re.compile(
    rb'\s+|\xef\xbb\xbf|<\?.*?\?>|<!--.*?-->|<!DOCTYPE[^>]*>|<(/?)([\w.:-]+)(?:\s[^>]*)?>', re.DOTALL
)
# Keeps names of characters (`&alpha;`) as they are, in a piece too; it is not loaded.
DOCTYPE = b'<!DOCTYPE record SYSTEM "record.dtd">'


def elements(
    path: Path, settings: Corpus, advance: Advance, tags: Sequence[str], wrappers: Sequence[str] = ()
) -> Iterator[etree._Element | BadRecord]:
    """The elements of these tags, but for children of `wrappers`; each is cleared when the next is asked for.

    Raises BrokenFile where the file is damaged. If broken files are skipped, it is raised behind all elements that can
    be read, and BadRecord stands for each that cannot.
    """
    number = 0
    with opened(path, advance, LONGEST_RECORD) as source:
        try:
            for _, element in etree.iterparse(source.stream, tag=tuple(tags), **PARSING):
                parent = element.getparent()
                if parent is not None and parent.tag in wrappers:
                    continue
                number += 1
                yield element
                element.clear()
                source.whole()
                # A cleared element stays in the tree, empty: without this, memory would still grow with the file.
                while element.getprevious() is not None:
                    del parent[0]
                if number % RECORDS_PER_REPORT == 0:
                    source.report()
            source.report()
        except etree.XMLSyntaxError as error:
            damage = broken(path, number, error)
            yield from _one_by_one(path, tags, number, damage, settings.on_broken_file == 'skip')
            source.finish()


def _one_by_one(
    path: Path, tags: Sequence[str], known: int, damage: BrokenFile, skip_damaged: bool
) -> Iterator[etree._Element | BadRecord]:
    """The elements behind the first `known` ones. Raises `damage` if there is any."""
    damaged = False
    with opened(path, longest=LONGEST_RECORD) as source:
        for found in _behind(source, tags, known):
            damaged |= isinstance(found, BadRecord)
            if damaged and not skip_damaged:
                raise damage
            yield found
    if damaged:
        raise damage


def _behind(source: UnpackedFile, tags: Sequence[str], known: int) -> Iterator[etree._Element | BadRecord]:
    encoding, number, damaged, open_tags = 'utf-8', 0, False, list[bytes]()
    for number, (between, piece) in enumerate(_cut_out(source, [tag.rpartition('}')[2] for tag in tags])):
        if number == 0 and (declared := ENCODING.match(between.removeprefix(b'\xef\xbb\xbf'))):
            encoding = declared[1].decode()
        other = _between(between, open_tags)
        if number >= known and other:
            damaged = True
            yield BadRecord(f'has text before it that is no record ({other[:40]!r})')
        if number >= known and piece:
            try:
                yield _parsed(piece, open_tags[-1] if open_tags else b'<records>', encoding)
            except etree.XMLSyntaxError as error:
                damaged = True
                yield BadRecord(f'is cut off or not well-formed XML ({reason(error)})')
    if number < known or (open_tags and not damaged):
        yield BadRecord('is missing: the file ends before its records do')


def _cut_out(source: UnpackedFile, names: Sequence[str]) -> Iterator[tuple[bytes, bytes]]:
    """What stands before a record, and the record: up to its end, to the next of its tag, or to the end of the file. At
    last what stands behind them all, without a record."""
    start = re.compile(rf'<(?:[\w.-]+:)?({"|".join(map(re.escape, names))})(?=[\s/>])'.encode())
    left = b''
    while True:
        found, left = _search(source, start, left, 0)
        if found is None:
            yield left, b''
            return
        before, left = left[: found.start()], left[found.start() :]
        name = found[1]
        end = re.compile(rb'(</(?:[\w.-]+:)?%b\s*>)|<(?:[\w.-]+:)?%b(?=[\s/>])' % (name, name))
        stop, left = _search(source, end, left, 1)
        length = len(left) if stop is None else stop.end() if stop[1] else stop.start()
        piece, left = left[:length], left[length:]
        source.whole()
        yield before, piece


def _search(
    source: UnpackedFile, pattern: re.Pattern[bytes], text: bytes, start: int
) -> tuple[re.Match[bytes] | None, bytes]:
    """The first place of a pattern in a text that grows as far as it has to."""
    while (found := pattern.search(text, start)) is None and (more := source.stream.read(BYTES_PER_READ)):
        start = max(start, len(text) - LONGEST_TAG)
        text += more
    return found, text


def _between(text: bytes, open_tags: list[bytes]) -> str:
    """What stands between two records and is neither a declaration nor a tag in its place. Tags that open something are
    added to `open_tags`, and leave it where they are closed."""
    place = 0
    while found := MARKUP.match(text, place):
        slash, name = found[1], found[2]
        if slash and (not open_tags or open_tags.pop().split()[0].strip(b'<>') != name):
            break
        if name and not slash and not found[0].endswith(b'/>'):
            open_tags.append(found[0])
        place = found.end()
    return text[place:].decode(errors='replace')


def _parsed(piece: bytes, around: bytes, encoding: str) -> etree._Element:
    # The tag around it declares prefixes of names that the record may use.
    whole = b'%b%b%b</%b>' % (DOCTYPE, around, piece, around.split()[0].strip(b'<>'))
    parser = etree.XMLParser(encoding=encoding, **PARSING)
    parser.feed(whole)
    return parser.close()[0]
