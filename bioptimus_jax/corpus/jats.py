"""Articles of PubMed Central in JATS XML: one to a file, many in an archive as PMC gives them, or a set of articles.

An article is one document: its title, abstracts, paragraphs and boxes in the order of the text, each a line, so that
held-out articles are held out whole, and an article that quotes a benchmark is left out whole. What is given in several
languages is read in the article's, and of two abstracts that say the same one is read. `article_text` says what is left
out of the body; what comes behind it, and letters, reviews and translations that are printed with an article
(sub-article, response), are left out too.
"""

import io
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from lxml import etree

from bioptimus_jax.corpus import article_meta, tarred
from bioptimus_jax.corpus.article_text import Reading, in_language, once
from bioptimus_jax.corpus.config import Corpus
from bioptimus_jax.corpus.content import fields_asked
from bioptimus_jax.corpus.dates import cut_off, reason_of_dates
from bioptimus_jax.corpus.markup import LONGEST_RECORD, reason, root_of
from bioptimus_jax.corpus.pieces import elements
from bioptimus_jax.corpus.records import BadRecord, Record, made_id
from bioptimus_jax.corpus.stored import Advance, opened
from bioptimus_jax.errors import BrokenFile
from bioptimus_jax.storage.parsing import PARSING

ARTICLE = 'article'
# What holds articles: PMC's sets, Europe PMC's, and answers by OAI-PMH.
SETS = ('pmc-articleset', 'articles', 'OAI-PMH')
ENDINGS = ('.nxml', '.xml')
BEGINNING = re.compile(rb'<(?:[\w.-]+:)?article[\s>]')


def read_file(path: Path, prefix: str, settings: Corpus, advance: Advance) -> Iterator[Record]:
    """The record of a file that holds one article, or the records of several, one after the other.

    Raises BrokenFile where the file cannot be unpacked, and as `read_set` for several.
    """
    with opened(path, advance, LONGEST_RECORD) as source:
        content = source.stream.read()
        record = _record_of('the article', content, settings, path.name)
        if record.reason != 'bad_record' or len(BEGINNING.findall(content)) < 2:
            yield record
            source.report()
            return
    yield from read_set(path, prefix, settings, advance)


def read_packed(path: Path, prefix: str, settings: Corpus, advance: Advance) -> Iterator[Record]:
    """A record for every XML file in a tar archive; what else lies in it, as pictures, is passed over.

    Raises BrokenFile for a damaged archive, after the records before the damage, and for one without any XML.
    """
    number = 0
    with opened(path, advance) as source:
        for name, content in tarred.files(path, source, ENDINGS, LONGEST_RECORD):
            number += 1
            yield _record_of(name, content, settings, name)
            source.report()
    if not number:
        raise BrokenFile(f'{path}: holds no {" or ".join(ENDINGS)} file; take it out of the inputs')


def read_set(path: Path, prefix: str, settings: Corpus, advance: Advance) -> Iterator[Record]:
    """A record for every article of a set, or of articles one after the other.

    Raises BrokenFile for a set without any, and for damage, after the articles before it, or after all if broken files
    are skipped.
    """
    number = 0
    for number, article in enumerate(elements(path, settings, advance, (f'{{*}}{ARTICLE}',)), 1):
        try:
            if isinstance(article, BadRecord):
                raise article
            yield _record(article, settings, path.name)
        except BadRecord as error:
            yield _bad(f'article {number}', str(error))
    if not number:
        raise BrokenFile(
            f'{path}: holds no <{ARTICLE}>; ask for full texts in JATS, or take it out of the inputs'
        )


def _record_of(name: str, content: bytes | None, settings: Corpus, file: str) -> Record:
    """The record of a file in memory, None if it is too long for that; `name` is what a note calls it."""
    try:
        if content is None:
            raise BadRecord(f'is longer than {LONGEST_RECORD // 2**20} MiB')
        if (root := root_of(io.BytesIO(content))) != ARTICLE:
            raise BadRecord(f'is not an article (it begins with <{root}>)')
        *_, (_, article) = etree.iterparse(io.BytesIO(content), tag=f'{{*}}{ARTICLE}', **PARSING)
        return _record(article, settings, file)
    except etree.XMLSyntaxError as error:
        return _bad(name, f'is cut off or not well-formed XML ({reason(error)})')
    except BadRecord as error:
        return _bad(name, str(error))


def _bad(name: str, what: str) -> Record:
    return Record('', reason='bad_record', note=f'{name} {what}')


def _record(article: etree._Element, settings: Corpus, file: str) -> Record:
    # An article may be in a namespace; all paths here are written without one.
    space = article.tag.removesuffix(ARTICLE)
    for element in list(article.iter(f'{space}*')) if space else ():
        element.tag = element.tag.removeprefix(space)
    meta = article.find('front/article-meta')
    if meta is None:
        raise BadRecord('has no front/article-meta')
    lines, not_read = _lines(article, meta, settings)
    text = '\n'.join(lines)
    why = reason_of_dates(article_meta.spans(meta), cut_off(settings)) if text else 'no_text'
    id, version, revised = article_meta.identity(meta, file)
    kind = article_meta.kind(article, meta)
    kept = '' if why else text
    told = article_meta.fields(article) if fields_asked(settings.content) and not why else {}
    return Record(id or made_id(text), kept, version, why, '', revised, kind, not_read, told)


def _lines(
    article: etree._Element, meta: etree._Element, settings: Corpus
) -> tuple[list[str], Mapping[str, int]]:
    """What is read of an article, its title first, and how many words are not, by what they stand in.

    No line where there is only a title.
    """
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
    if 'title' in parts and lines:
        lines = [*reading.title(meta), *lines]
    return lines, +reading.not_read  # without zeros
