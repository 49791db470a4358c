"""What an article in JATS says of itself: its id and version, the dates of its publication, and its kind."""

import re

from lxml import etree

from bioptimus_jax.corpus.dates import DateSpan, span_in, span_of
from bioptimus_jax.corpus.markup import texts_at
from bioptimus_jax.corpus.records import BadRecord, is_number

# A version is `2` or `1.10`; the same element may also hold words such as `preprint` or `Version of Record`.
VERSION = re.compile(r'[vV]?(\d{1,9})(?:\.(\d{1,9}))?', re.ASCII)
# DOIs of one version: Research Square, ChemRxiv, OSF and others with a v; F1000's platforms and eLife without.
VERSIONED_DOI = re.compile(
    r'(?P<doi>.+)[/._-]v(?P<version>\d{1,2})|(?P<bare>10\.12688/\w+\.\d+|10\.7554/elife\.\d+)\.(?P<last>\d{1,2})',
    re.ASCII,
)
# `2020.01.30.927871v10.full.xml`, `elife-94334-v1.xml`.
VERSION_IN_NAME = re.compile(r'(?<![A-Za-z])v(\d{1,3})(?=\.)', re.ASCII)
KIND_OF_TYPE = {
    'retracted-article': 'retracted',
    'retraction': 'retraction',
    'partial-retraction': 'retraction',
    'expression-of-concern': 'concern',
    'correction': 'correction',
    'erratum': 'correction',
    'corrigendum': 'correction',
}
FIELDS = {
    'year': ('front/article-meta/pub-date/year',),
    'journal': ('front/journal-meta//journal-title', 'front/journal-meta/journal-id'),
    'keyword': ('front/article-meta/kwd-group/kwd',),
}
# Publishers change the title of an article that is retracted more often than its markup.
RETRACTED_TITLE = re.compile(r'\W*retracted(?:\s+(?:article|paper|chapter))?\s*[:\]]', re.IGNORECASE)


def identity(meta: etree._Element, file: str) -> tuple[str, int, int]:
    """The id, `PMC123` or else the DOI, in both cases without a version; the version from 1, and the part of it behind
    the point. An article without an id has neither: empty, 0, 0.

    The version is that of the id in PMC, what the article calls its version, that of the DOI, or that in the name of
    its file; the first of these that is there. Raises BadRecord for an id in PMC that is none.
    """
    ids = {id.get('pub-id-type'): (id.text or '').strip() for id in meta.iterchildren('article-id')}
    doi = ids.get('doi', '').lower()
    number, _, of_pmc = ids.get('pmcid-ver', '').removeprefix('PMC').partition('.')
    pmc = ids.get('pmcid') or ids.get('pmc') or number
    if pmc and not is_number(pmc.removeprefix('PMC')):
        raise BadRecord(f'has a PMC id that is not a number ({pmc[:40]!r})')
    of_doi = VERSIONED_DOI.fullmatch(doi)
    if of_doi:
        doi = of_doi['doi'] or of_doi['bare']
    id = f'PMC{int(pmc.removeprefix("PMC"))}' if pmc else doi
    if not id:
        return '', 0, 0
    places = meta.iterchildren('article-version', 'article-version-alternatives')
    own = [(one.text or '').strip() for place in places for one in place.iter('article-version')]
    in_name = VERSION_IN_NAME.findall(file)
    for said in (of_pmc, *own, (of_doi['version'] or of_doi['last']) if of_doi else '', *in_name[-1:]):
        if (found := VERSION.fullmatch(said)) and int(found[1]):
            return id, int(found[1]), int(found[2] or 0)
    return id, 1, 0


def spans(meta: etree._Element) -> list[DateSpan | None]:
    """The dates that the article gives for its publication; manuscripts are handed in before it."""
    return [_span(date) for date in meta.iterfind('pub-date') if date.get('pub-type') != 'nihms-submitted']


def _span(date: etree._Element) -> DateSpan | None:
    parts = (next(date.iter(name), None) for name in ('year', 'month', 'season', 'day'))
    found = span_of(*(None if part is None else part.text for part in parts))
    return found or span_in(date.get('iso-8601-date', '').replace('-', ' '))


def kind(article: etree._Element, meta: etree._Element) -> str:
    """Which of KINDS the article is, or empty."""
    if found := KIND_OF_TYPE.get(article.get('article-type', '')):
        return found
    forward = any(
        one.get('related-article-type') == 'retraction-forward'
        for one in meta.iterchildren('related-article')
    )
    title = meta.find('title-group/article-title')
    named = '' if title is None else ''.join(title.itertext())
    return 'retracted' if forward or RETRACTED_TITLE.match(named) else ''


def fields(article: etree._Element) -> dict[str, tuple[str, ...]]:
    """What an article says beside its text, as far as config.corpus.content may ask for it: the first year of its
    publication, its journal, type and keywords."""
    found = texts_at(article, FIELDS)
    years = [year for year in found['year'] if is_number(year)]
    found |= {'year': (min(years),) if years else (), 'type': (article.get('article-type', ''),)}
    return {name: values for name, values in found.items() if any(values)}
