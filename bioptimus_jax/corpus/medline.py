"""PubMed XML, gzipped or not: every citation, book and deletion in the order of the file."""

import re
from collections.abc import Iterator
from pathlib import Path

from lxml import etree

from bioptimus_jax.corpus.dates import Date, cut_off, first_day, first_day_in, reason_of
from bioptimus_jax.corpus.markup import LONGEST_RECORD, plain_text
from bioptimus_jax.corpus.pieces import elements
from bioptimus_jax.corpus.records import BadRecord, Record, is_number
from bioptimus_jax.corpus.stored import Advance, opened
from bioptimus_jax.schema import Corpus

WRAPPERS = ('PubmedArticle', 'PubmedBookArticle')
CITATIONS = ('MedlineCitation', 'BookDocument')
DELETIONS = ('DeleteCitation', 'DeleteDocument')
SETS = ('PubmedArticleSet', 'PubmedBookArticleSet', 'BookDocumentSet', 'MedlineCitationSet')
ROOTS = SETS + WRAPPERS + CITATIONS
TRUNCATED = re.compile(r'\(\s*ABSTRACT TRUNCATED(?: AT \d+ WORDS)?\s*\)', re.IGNORECASE)
NO_TITLE = ('', 'not available', 'no title available', 'in process citation')
BRACKET = re.compile(r'[][]')


def read(path: Path, prefix: str, settings: Corpus, advance: Advance) -> Iterator[Record]:
    """A record for every citation, with its PMID as id and title and abstract as text, or with a reason.

    Raises BrokenFile for damage, after the good records before it, or after all if broken files are skipped.
    """
    too_new = cut_off(settings)
    tags = WRAPPERS + CITATIONS + DELETIONS
    with opened(path, advance, LONGEST_RECORD) as source:
        skip = settings.on_broken_file == 'skip'
        for number, element in enumerate(elements(path, source, tags, WRAPPERS, skip), 1):
            if isinstance(element, BadRecord):
                yield Record('', reason='bad_record', note=f'record {number} {element}')
                continue
            yield from _records(element, number, settings, too_new)


def _records(
    element: etree._Element, number: int, settings: Corpus, too_new: Date | None
) -> Iterator[Record]:
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
        yield _citation(pmid, version, citation, settings, too_new)
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
        if not is_number(value):
            raise BadRecord(f'has a {name} that is not a number ({value[:40]!r})')
    return str(int(pmid)), int(version)


def _citation(
    pmid: str, version: int, citation: etree._Element, settings: Corpus, too_new: Date | None
) -> Record:
    brackets = settings.script_brackets
    if citation.tag == 'BookDocument':
        article, book = citation, citation.find('Book')
        if book is None:
            raise BadRecord('has no Book')
        title = _title(article.find('ArticleTitle'), brackets) or _title(book.find('BookTitle'), brackets)
    else:
        article = citation.find('Article')
        if article is None:
            raise BadRecord('has no Article')
        title = _title(article.find('ArticleTitle'), brackets)
    abstract = _abstract(article.find('Abstract'), settings.section_labels, brackets)
    if not abstract:
        return Record(pmid, version=version, reason='no_abstract')
    if reason := reason_of(_days(citation, article) if too_new else [], too_new):
        return Record(pmid, version=version, reason=reason)
    return Record(pmid, f'{title}\n{abstract}' if title else abstract, version)


def _title(element: etree._Element | None, brackets: str) -> str:
    return '' if element is None else title_of(plain_text(element, brackets))


def title_of(text: str) -> str:
    """The title without the brackets of a translated one; '' where there is none."""
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


def _abstract(element: etree._Element | None, labels: bool, brackets: str) -> str:
    """The parts of an abstract, each a line of its own as in print, so that no sentence runs from one into the next."""
    parts = []
    for part in () if element is None else element.iterchildren('AbstractText'):
        text = untruncated(plain_text(part, brackets))
        label = ' '.join(part.get('Label', '').split()) if labels else ''
        if text:
            parts.append(f'{label}: {text}' if label and label.upper() != 'UNLABELLED' else text)
    return '\n'.join(parts)


def untruncated(text: str) -> str:
    """The abstract without the mark that it is cut off."""
    return ' '.join(TRUNCATED.sub(' ', text).split()) if 'TRUNCATED' in text.upper() else text


def _days(citation: etree._Element, article: etree._Element) -> list[Date | None]:
    """The days that the record gives for its publication; for its way into PubMed if there are none."""
    paths = ('Book/PubDate', 'ContributionDate', 'Journal/JournalIssue/PubDate', 'ArticleDate')
    dates = [_day(found) for path in paths for found in article.iterfind(path)]
    entry = citation.getparent()
    if not any(dates) and entry is not None:
        dates = [_day(found) for found in entry.iterfind('*/History/PubMedPubDate')]
    return dates


def _day(element: etree._Element) -> Date | None:
    written = element.findtext('MedlineDate')
    parts = (element.findtext(name) for name in ('Year', 'Month', 'Season', 'Day'))
    return first_day_in(written) if written else first_day(*parts)
