"""PubMed XML, gzipped or not: every citation, book and deletion in the order of the file."""

import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from lxml import etree

from bioptimus_jax.corpus.config import SPECIAL_ARTICLES, Corpus
from bioptimus_jax.corpus.content import fields_asked
from bioptimus_jax.corpus.dates import Date, DateSpan, cut_off, reason_of_dates, span_in, span_of
from bioptimus_jax.corpus.markup import plain_text, texts_at
from bioptimus_jax.corpus.pieces import elements
from bioptimus_jax.corpus.records import BadRecord, Record, is_number
from bioptimus_jax.corpus.stored import Advance

WRAPPERS = ('PubmedArticle', 'PubmedBookArticle')
CITATIONS = ('MedlineCitation', 'BookDocument')
DELETIONS = ('DeleteCitation', 'DeleteDocument')
SETS = ('PubmedArticleSet', 'PubmedBookArticleSet', 'BookDocumentSet', 'MedlineCitationSet')
ROOTS = SETS + WRAPPERS + CITATIONS
TRUNCATED = re.compile(r'\(\s*ABSTRACT TRUNCATED(?: AT \d+ WORDS)?\s*\)', re.IGNORECASE)
# What indexers have written behind titles, and behind words that an erratum has corrected.
TRANSLATED = re.compile(
    r'[\s-]*(?:\(+|\[)author\W?s?\W?\s*transl(?:ation)?\.?\)?(?:\](?=\]))?(?=\W*$)', re.IGNORECASE
)
BEHIND_TITLE = re.compile(
    r'(?<=\S)\s*\[(?:proceedings|letter|editorial|news|comments?|see comments?|abstract|retracted)\](?=\W*$)',
    re.IGNORECASE,
)
CORRECTED = '[corrected]'
# Kinds of record by publication type and by what the record says of its bonds to others.
KIND_OF_TYPE = {
    'retracted publication': 'retracted',
    'retraction of publication': 'retraction',
    'retraction notice': 'retraction',
    'expression of concern': 'concern',
    'published erratum': 'correction',
}
KIND_OF_BOND = {
    'RetractionIn': 'retracted',
    'RetractedandRepublishedIn': 'retracted',
    'RetractionOf': 'retraction',
    'PartialRetractionOf': 'retraction',
    'ExpressionOfConcernFor': 'concern',
    'ErratumFor': 'correction',
}
Children = dict[Any, etree._Element]
DATES_OF_BOOKS = ('Book/PubDate', 'ContributionDate')
DATES_OF_ARTICLES = ('Journal/JournalIssue/PubDate', 'ArticleDate')
BEFORE_PUBLICATION = ('received', 'revised', 'accepted')
NO_TITLE = ('', 'not available', 'no title available', 'in process citation')
FIELDS = {
    'year': ('.//PubDate/Year', './/PubDate/MedlineDate', './/ArticleDate/Year'),
    'mesh': ('MeshHeadingList/MeshHeading/DescriptorName',),
    'journal': ('Article/Journal/Title', 'Article/Journal/ISOAbbreviation', 'MedlineJournalInfo/MedlineTA'),
    'type': ('.//PublicationTypeList/PublicationType', 'PublicationType'),
    'keyword': ('KeywordList/Keyword',),
}
"""What config.corpus.content may ask for -> where a citation says it."""
YEAR = re.compile(r'\b(1[5-9]|20)\d\d\b')
BRACKET = re.compile(r'[][]')
CLOSED = ('].', ']', ').', ')')


def read(path: Path, prefix: str, settings: Corpus, advance: Advance) -> Iterator[Record]:
    """A record for every citation, with its PMID as id and title and abstract as text, or with a reason.

    Raises BrokenFile for damage, after the good records before it, or after all if broken files are skipped.
    """
    too_new = cut_off(settings)
    tags = WRAPPERS + CITATIONS + DELETIONS
    for number, element in enumerate(elements(path, settings, advance, tags, WRAPPERS), 1):
        if isinstance(element, BadRecord):
            yield Record('', reason='bad_record', note=f'record {number} {element}')
        elif element.tag in DELETIONS:
            yield from _deletions(element, number)
        else:
            yield _record(element, number, settings, too_new)


def _deletions(element: etree._Element, number: int) -> Iterator[Record]:
    for child in element.iterchildren('PMID'):
        try:
            pmid, version = _identity(child)
        except BadRecord as error:
            yield Record('', reason='bad_record', note=f'record {number}, a deletion, {error}')
        else:
            yield Record(pmid, version=version, reason='deletion')


def _record(element: etree._Element, number: int, settings: Corpus, too_new: Date | None) -> Record:
    pmid, version = '', 1
    try:
        citation = element
        if element.tag in WRAPPERS:
            citation = next(element.iterchildren(*CITATIONS), None)
            if citation is None:
                raise BadRecord('has no citation')
        own = _children(citation)
        pmid, version = _identity(own.get('PMID'))
        version = version or 1
        return _citation(pmid, version, citation, own, settings, too_new)
    except BadRecord as error:
        name = f'PMID {pmid}' if pmid else f'record {number}'
        return Record(pmid, version=version, reason='bad_record', note=f'{name} {error}')


def _fields(citation: etree._Element) -> dict[str, tuple[str, ...]]:
    """What a citation says beside its text, by the names of `FIELDS`."""
    found = texts_at(citation, FIELDS)
    found['year'] = tuple(year[0] for year in map(YEAR.search, found['year']) if year)[:1]
    return {name: values for name, values in found.items() if any(values)}


def _identity(element: etree._Element | None) -> tuple[str, int]:
    """PMID and version, 0 where none is given."""
    pmid = '' if element is None else (element.text or '').strip()
    if element is None or not pmid:
        raise BadRecord('has no PMID')
    version = element.get('Version', '0')
    if not (is_number(pmid) and is_number(version)):
        name, value = ('Version', version) if is_number(pmid) else ('PMID', pmid)
        raise BadRecord(f'has a {name} that is not a number ({value[:40]!r})')
    return str(int(pmid)), int(version)


def _children(element: etree._Element) -> Children:
    """Tag -> the first child of that tag: one pass is faster than to look for each."""
    return {child.tag: child for child in reversed(element)}


def _citation(
    pmid: str, version: int, citation: etree._Element, own: Children, settings: Corpus, too_new: Date | None
) -> Record:
    brackets = settings.script_brackets
    if citation.tag == 'BookDocument':
        article, parts = citation, own
        if 'Book' not in own:
            raise BadRecord('has no Book')
    elif (article := own.get('Article')) is None:
        raise BadRecord('has no Article')
    else:
        parts = _children(article)
    revised = _revised(own.get('DateRevised'))
    kind = _kind(parts.get('PublicationTypeList'), own.get('CommentsCorrectionsList'))
    abstract = _abstract(parts.get('Abstract'), settings.section_labels, brackets)
    reason = '' if abstract else 'no_abstract'
    if abstract and too_new:
        reason = reason_of_dates(_spans(citation, article), too_new)
    if reason:
        return Record(pmid, '', version, reason, '', revised, kind)
    title = _title(parts.get('ArticleTitle'), brackets)
    if not title and 'Book' in parts:
        title = _title(parts['Book'].find('BookTitle'), brackets)
    told = _fields(citation) if fields_asked(settings.content) else {}
    text = f'{title}\n{abstract}' if title else abstract
    return Record(pmid, text, version, '', '', revised, kind, fields=told)


def _revised(date: etree._Element | None) -> int:
    """The day on which the record was revised, as 20240131; 0 where it says none."""
    if date is None:
        return 0
    try:
        year, month, day = [int(part.text or '') for part in date]
    except ValueError:
        return 0
    return min(max(10_000 * year + 100 * month + day, 0), 99_999_999)


def _kind(types: etree._Element | None, bonds: etree._Element | None) -> str:
    return kind_of(
        (one.text or '' for one in (() if types is None else types)),
        (KIND_OF_BOND.get(one.get('RefType', ''), '') for one in (() if bonds is None else bonds)),
    )


def kind_of(types: Iterable[str], by_bonds: Iterable[str] = ()) -> str:
    """The first of SPECIAL_ARTICLES that a record is, by its types of publication and its bonds to others; or ''."""
    found = {KIND_OF_TYPE.get(one.strip().lower(), '') for one in types} | {*by_bonds}
    return next((kind for kind in SPECIAL_ARTICLES if kind in found), '') if any(found) else ''


def _title(element: etree._Element | None, brackets: str) -> str:
    return '' if element is None else title_of(plain_text(element, brackets))


def title_of(text: str) -> str:
    """The title without the brackets of a translated one and indexers' notes; '' where there is none."""
    if text.endswith(CLOSED):
        text = BEHIND_TITLE.sub('', TRANSLATED.sub('', text))
    text = _without_corrected(text)
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
        text = abstract_of(plain_text(part, brackets))
        label = ' '.join(part.get('Label', '').split()) if labels else ''
        if text:
            parts.append(f'{label}: {text}' if label and label.upper() != 'UNLABELLED' else text)
    return '\n'.join(parts)


def abstract_of(text: str) -> str:
    """The abstract without the mark that it is cut off, and without indexers' notes."""
    if 'RUNCATED' in text or 'runcated' in text:
        text = ' '.join(TRUNCATED.sub(' ', text).split())
    return _without_corrected(text)


def _without_corrected(text: str) -> str:
    return text.replace(f' {CORRECTED}', '').replace(CORRECTED, '') if CORRECTED in text else text


def _spans(citation: etree._Element, article: etree._Element) -> list[DateSpan | None]:
    """The dates that the record gives for its publication; for its way into PubMed if there are none."""
    paths = DATES_OF_BOOKS if citation is article else DATES_OF_ARTICLES
    dates = [_span(found) for path in paths for found in article.iterfind(path)]
    entry = citation.getparent()
    if not any(dates) and entry is not None:
        history = entry.iterfind('*/History/PubMedPubDate')
        dates = [_span(found) for found in history if found.get('PubStatus') not in BEFORE_PUBLICATION]
    return dates


def _span(element: etree._Element) -> DateSpan | None:
    said = {part.tag: part.text for part in element}
    if written := said.get('MedlineDate'):
        return span_in(written)
    return span_of(said.get('Year'), said.get('Month'), said.get('Season'), said.get('Day'))
