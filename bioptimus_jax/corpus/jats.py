"""Articles of PubMed Central in JATS XML: one to a file, many in an archive as PMC gives them, or a set of articles.

An article is one document: its title, abstracts, paragraphs and boxes in the order of the text, each a line, so that
held-out articles are held out whole, and an article that quotes a benchmark is left out whole. Of what is given in
several languages, the article's is read, and of what is said in two abstracts, one. `article_text` says what is left
out of the body; what comes behind it, and letters, reviews and translations that are printed with an article
(sub-article, response), are left out too.
"""

import io
from collections.abc import Iterator
from pathlib import Path

from lxml import etree

from bioptimus_jax.corpus import tarred
from bioptimus_jax.corpus.article_text import Reading, in_language, once
from bioptimus_jax.corpus.dates import Date, cut_off, first_day, first_day_in, reason_of
from bioptimus_jax.corpus.markup import (
    LONGEST_RECORD,
    PARSING,
    elements,
    reason,
    root_of,
)
from bioptimus_jax.corpus.records import BadRecord, Record, is_number, made_id
from bioptimus_jax.corpus.stored import Advance, opened
from bioptimus_jax.errors import BrokenFile
from bioptimus_jax.schema import Corpus

ARTICLE, SET = 'article', 'pmc-articleset'
ENDINGS = ('.nxml', '.xml')


def read_file(path: Path, prefix: str, settings: Corpus, advance: Advance) -> Iterator[Record]:
    """The record of a file that holds one article. Raises BrokenFile where the file cannot be unpacked."""
    with opened(path, advance, LONGEST_RECORD) as source:
        yield _record_of('the article', source.stream.read(), settings)
        source.report()


def read_packed(path: Path, prefix: str, settings: Corpus, advance: Advance) -> Iterator[Record]:
    """A record for every XML file in a tar archive; what else lies in it, as pictures, is passed over.

    Raises BrokenFile for a damaged archive, after the records before the damage, and for one without any XML.
    """
    number = 0
    with opened(path, advance) as source:
        for name, content in tarred.files(path, source, ENDINGS, LONGEST_RECORD):
            number += 1
            yield _record_of(name, content, settings)
            source.report()
    if not number:
        raise BrokenFile(f'{path}: holds no {" or ".join(ENDINGS)} file; take it out of the inputs')


def read_set(path: Path, prefix: str, settings: Corpus, advance: Advance) -> Iterator[Record]:
    """A record for every article of a set. Raises BrokenFile, after the articles before the damage."""
    with opened(path, advance, LONGEST_RECORD) as source:
        for number, article in enumerate(elements(path, source, (f'{{*}}{ARTICLE}',)), 1):
            try:
                yield _record(article, settings)
            except BadRecord as error:
                yield _bad(f'article {number}', str(error))


def _record_of(name: str, content: bytes | None, settings: Corpus) -> Record:
    """The record of a file in memory, None if it is too long for that; `name` is what a note calls it."""
    try:
        if content is None:
            raise BadRecord(f'is longer than {LONGEST_RECORD // 2**20} MiB')
        if (root := root_of(io.BytesIO(content))) != ARTICLE:
            raise BadRecord(f'is not an article (it begins with <{root}>)')
        *_, (_, article) = etree.iterparse(io.BytesIO(content), tag=f'{{*}}{ARTICLE}', **PARSING)
        return _record(article, settings)
    except etree.XMLSyntaxError as error:
        return _bad(name, f'is cut off or not well-formed XML ({reason(error)})')
    except BadRecord as error:
        return _bad(name, str(error))


def _bad(name: str, what: str) -> Record:
    return Record('', reason='bad_record', note=f'{name} {what}')


def _record(article: etree._Element, settings: Corpus) -> Record:
    # An article may be in a namespace; all paths here are written without one.
    space = article.tag.removesuffix(ARTICLE)
    for element in list(article.iter(f'{space}*')) if space else ():
        element.tag = element.tag.removeprefix(space)
    meta = article.find('front/article-meta')
    if meta is None:
        raise BadRecord('has no front/article-meta')
    lines = _lines(article, meta, settings)
    text = '\n'.join(lines)
    why = (
        reason_of([_day(date) for date in meta.iterfind('pub-date')], cut_off(settings))
        if text
        else 'no_text'
    )
    id = _id(meta)
    return Record(id or made_id(text), '' if why else text, int(bool(id)), why)


def _id(meta: etree._Element) -> str:
    """The id in PMC, as PMC123; else the DOI, or nothing."""
    ids = {id.get('pub-id-type'): (id.text or '').strip() for id in meta.iterfind('article-id')}
    pmc = ids.get('pmcid') or ids.get('pmc')
    if not pmc:
        return ids.get('doi', '').lower()
    number = pmc.removeprefix('PMC')
    if not is_number(number):
        raise BadRecord(f'has a PMC id that is not a number ({pmc[:40]!r})')
    return f'PMC{int(number)}'


def _day(date: etree._Element) -> Date | None:
    """The first day of a date of publication; manuscripts are handed in before it."""
    if date.get('pub-type') == 'nihms-submitted':
        return None
    parts = (next(date.iter(name), None) for name in ('year', 'month', 'season', 'day'))
    found = first_day(*(None if part is None else part.text for part in parts))
    return found or first_day_in(date.get('iso-8601-date', '').replace('-', ' '))


def _lines(article: etree._Element, meta: etree._Element, settings: Corpus) -> list[str]:
    """What is read of an article, its title first; nothing where there is only a title."""
    parts = settings.article_parts
    reading = Reading(article, settings)
    lines: list[str] = []
    if 'abstract' in parts:
        abstracts = in_language(meta.findall('abstract'), reading.language)
        lines += once([reading.lines(abstract) for abstract in abstracts])
    read = reading.lines if 'paragraphs' in parts else reading.captions
    for name in ('body', 'floats-group', 'floats-wrap'):
        for element in article.iterfind(name):
            lines += read(element)
    return [*reading.title(meta), *lines] if 'title' in parts and lines else lines
