"""PubMed XML, gzipped or not: every citation, book and deletion in the order of the file.

The tree is built and cleared record by record, so memory does not grow with the file. Nothing outside the file is
loaded, and a file that declares entities of its own is refused.
"""

import datetime
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, BinaryIO

from lxml import etree

from bioptimus_jax.corpus.markup import plain_text
from bioptimus_jax.corpus.records import BadRecord, Record
from bioptimus_jax.corpus.stored import opened
from bioptimus_jax.errors import BrokenFile, ConfigError, InputError
from bioptimus_jax.schema import Corpus

WRAPPERS = ('PubmedArticle', 'PubmedBookArticle')
CITATIONS = ('MedlineCitation', 'BookDocument')
DELETIONS = ('DeleteCitation', 'DeleteDocument')
SETS = ('PubmedArticleSet', 'PubmedBookArticleSet', 'BookDocumentSet', 'MedlineCitationSet')
# Comments are dropped while parsing, so that the text around them is one piece. Limits on depth and on the size
# of one text stay: no record comes near them.
PARSING: dict[str, Any] = dict(
    load_dtd=False,
    no_network=True,
    resolve_entities=False,
    huge_tree=False,
    remove_comments=True,
    remove_pis=True,
)
RECORDS_PER_REPORT = 256
LONGEST_RECORD = 2**25  # bytes; the longest of seven real files has 46 kB, five thousand authors make some MB
TRUNCATED = re.compile(r'\(\s*ABSTRACT TRUNCATED(?: AT \d+ WORDS)?\s*\)', re.IGNORECASE)
NO_TITLE = ('', 'not available', 'no title available', 'in process citation')
BRACKET = re.compile(r'[][]')
DATE = re.compile(r'\b([12]\d{3})\b(?:-\d{4}\b)?(?:\s+(\w+))?(?:\s+(\d{1,2})\b)?', re.ASCII)
# First months; a winter counts from January of the year it is given under. Also quarters, as in `1998 3rd Quarter`.
MONTHS = {name: n for n, name in enumerate('jan feb mar apr may jun jul aug sep oct nov dec'.split(), 1)}
MONTHS |= {'win': 1, 'spr': 3, 'sum': 6, 'aut': 9, 'fal': 9, '1st': 1, '2nd': 4, '3rd': 7, '4th': 10}

Date = tuple[int, int, int]


def cut_off(settings: Corpus) -> Date | None:
    """The first day that is too new, None where all are welcome. Raises ConfigError for anything but YYYY-MM-DD."""
    value = settings.published_before
    if not value:
        return None
    try:
        day = datetime.datetime.strptime(value, '%Y-%m-%d')
        if day.strftime('%Y-%m-%d') != value:
            raise ValueError
    except ValueError:
        raise ConfigError(
            f'config.corpus.published_before: {value!r} is not a date; write YYYY-MM-DD, as in 2023-01-01'
        ) from None
    return day.year, day.month, day.day


def read(
    path: Path, settings: Corpus, advance: Callable[[int], None] = lambda stored_bytes: None
) -> Iterator[Record]:
    """A record for every citation, with its PMID as id and title and abstract as text, or with a reason.

    Raises BrokenFile, after the good records before the damage; InputError for a bad record if those are not skipped.
    """
    too_new = cut_off(settings)
    number = 0
    try:
        with opened(path, longest=LONGEST_RECORD) as source:
            _require_pubmed(path, source.stream)
        with opened(path, advance, LONGEST_RECORD) as source:
            tags = WRAPPERS + CITATIONS + DELETIONS
            for _, element in etree.iterparse(source.stream, tag=tags, **PARSING):
                parent = element.getparent()
                if parent is not None and parent.tag in WRAPPERS:
                    continue
                number += 1
                for record in _records(element, number, settings.section_labels, too_new):
                    if record.reason == 'bad_record' and settings.on_bad_record == 'fail':
                        raise InputError(
                            f'{path}: {record.note}; correct it, or leave such records out with '
                            '--config.corpus.on_bad_record=skip'
                        )
                    yield record
                element.clear()
                source.whole()
                while element.getprevious() is not None:
                    del parent[0]
                if number % RECORDS_PER_REPORT == 0:
                    source.report()
            source.report()
    except etree.XMLSyntaxError as error:
        what = ' '.join(str(error.msg).split())
        raise BrokenFile(
            f'{path}: is cut off or not well-formed XML, after record {number} ({what}); fetch it again'
        ) from error


def _require_pubmed(path: Path, stream: BinaryIO) -> None:
    _, root = next(iter(etree.iterparse(stream, events=('start',), **PARSING)))
    declared = root.getroottree().docinfo.internalDTD
    if declared is not None and (names := [entity.name for entity in declared.iterentities()]):
        raise BrokenFile(
            f"{path}: declares entities of its own ({', '.join(names[:3])}), which PubMed's files never do and which "
            'can name other files or grow without end; take it out of the inputs'
        )
    if root.tag not in SETS + WRAPPERS + CITATIONS:
        raise BrokenFile(
            f"{path}: is XML, but not PubMed's (it begins with <{root.tag}>); take it out of the inputs"
        )


def _records(element: etree._Element, number: int, labels: bool, too_new: Date | None) -> Iterator[Record]:
    if element.tag in DELETIONS:
        for child in element.iterchildren('PMID'):
            try:
                pmid, version = _identity(child)
            except BadRecord as error:
                yield Record('', reason='bad_record', note=f'record {number}, a deletion, {error}')
            else:
                yield Record(pmid, version=version, reason='deletion')
        return
    pmid, version = '', 1
    try:
        citation = element
        if element.tag in WRAPPERS:
            citation = next(element.iterchildren(*CITATIONS), None)
            if citation is None:
                raise BadRecord('has no citation')
        pmid, version = _identity(citation.find('PMID'))
        version = version or 1
        yield _citation(pmid, version, citation, labels, too_new)
    except BadRecord as error:
        name = f'PMID {pmid}' if pmid else f'record {number}'
        yield Record(pmid, version=version, reason='bad_record', note=f'{name} {error}')


def _identity(element: etree._Element | None) -> tuple[str, int]:
    """PMID and version, 0 where none is given."""
    pmid = '' if element is None else (element.text or '').strip()
    if element is None or not pmid:
        raise BadRecord('has no PMID')
    version = element.get('Version', '0')
    for name, value in (('PMID', pmid), ('Version', version)):
        if not (value.isascii() and value.isdigit() and len(value) < 19):
            raise BadRecord(f'has a {name} that is no number ({value[:40]!r})')
    return str(int(pmid)), int(version)


def _citation(
    pmid: str, version: int, citation: etree._Element, labels: bool, too_new: Date | None
) -> Record:
    if citation.tag == 'BookDocument':
        article, book = citation, citation.find('Book')
        if book is None:
            raise BadRecord('has no Book')
        title = _title(article.find('ArticleTitle')) or _title(book.find('BookTitle'))
    else:
        article = citation.find('Article')
        if article is None:
            raise BadRecord('has no Article')
        title = _title(article.find('ArticleTitle'))
    abstract = _abstract(article.find('Abstract'), labels)
    if not abstract:
        return Record(pmid, version=version, reason='no_abstract')
    if too_new is not None:
        day = _published(citation, article)
        if day is None or day >= too_new:
            return Record(pmid, version=version, reason='undated' if day is None else 'too_new')
    return Record(pmid, f'{title}\n{abstract}' if title else abstract, version)


def _title(element: etree._Element | None) -> str:
    """The title without the brackets of a translated one; '' where there is none."""
    if element is None:
        return ''
    text = plain_text(element)
    bare = text.removesuffix('.')
    if bare.startswith('[') and _closing(bare) == len(bare) - 1:
        stop = text[len(bare) :]
        bare = bare[1:-1].strip()
        text = bare if bare.endswith(('.', '?', '!')) else bare + stop
    return '' if bare.removesuffix('.').casefold() in NO_TITLE else text


def _closing(text: str) -> int:
    """Where the bracket closes that a text begins with; -1 if it does not."""
    depth = 0
    for place in BRACKET.finditer(text):
        depth += 1 if place[0] == '[' else -1
        if not depth:
            return place.start()
    return -1


def _abstract(element: etree._Element | None, labels: bool) -> str:
    """The parts of an abstract, each a line of its own as in print, so that no sentence runs from one into the next."""
    parts = []
    for part in () if element is None else element.iterchildren('AbstractText'):
        text = plain_text(part)
        if 'TRUNCATED' in text.upper():
            text = TRUNCATED.sub(' ', text)
            text = ' '.join(text.split())
        label = ' '.join(part.get('Label', '').split()) if labels else ''
        if text:
            parts.append(f'{label}: {text}' if label and label.upper() != 'UNLABELLED' else text)
    return '\n'.join(parts)


def _published(citation: etree._Element, article: etree._Element) -> Date | None:
    """The earliest day that the record gives for its publication; of its way into PubMed if there is none."""
    paths = ('Book/PubDate', 'ContributionDate', 'Journal/JournalIssue/PubDate', 'ArticleDate')
    dates = [_day(found) for path in paths for found in article.iterfind(path)]
    entry = citation.getparent()
    if not any(dates) and entry is not None:
        dates = [_day(found) for found in entry.iterfind('*/History/PubMedPubDate')]
    return min((day for day in dates if day), default=None)


def _day(element: etree._Element) -> Date | None:
    """The first day of what a date says, None where it names no year. A month or day that is none is left aside."""
    parts = [element.findtext(name) for name in ('Year', 'Month', 'Season', 'Day')]
    year, month, season, day = (part.strip() if part else '' for part in parts)
    found = DATE.search(element.findtext('MedlineDate') or f'{year} {month or season or "-"} {day}')
    if not found:
        return None
    word, number = (found[2] or '').casefold(), int(found[3] or 1)
    first = int(word) if word.isdecimal() and len(word) < 3 else MONTHS.get(word[:3], 0)
    if not 1 <= first <= 12:
        return int(found[1]), 1, 1
    return int(found[1]), first, number if 1 <= number <= 31 else 1
