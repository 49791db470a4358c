"""Articles of PubMed Central in JATS XML: one to a file, many in an archive as PMC gives them, or a set of articles.

An article is one document: its title, abstracts and paragraphs in the order of the text, each a line, so that held-out
articles are held out whole, and an article that quotes a benchmark is left out whole. Left out are tables, displayed
formulas, TeX, lists of references, footnotes, definition lists, what comes behind the body, and letters, reviews and
translations that are printed with an article (sub-article, response). Formulas within a line are read as in abstracts.
"""

import io
import re
from collections.abc import Iterator
from pathlib import Path

from lxml import etree

from bioptimus_jax.corpus import article_meta, tarred
from bioptimus_jax.corpus.dates import cut_off, reason_of
from bioptimus_jax.corpus.markup import (
    LONGEST_RECORD,
    PARSING,
    Instead,
    elements,
    plain_text,
    reason,
    root_of,
)
from bioptimus_jax.corpus.records import BadRecord, Record, made_id
from bioptimus_jax.corpus.stored import Advance, opened
from bioptimus_jax.errors import BrokenFile
from bioptimus_jax.schema import Corpus

ARTICLE, SET = 'article', 'pmc-articleset'
ENDINGS = ('.nxml', '.xml')
# Elements whose captions are read on request; they float, so the sentence that they are printed in goes on.
FLOATS = ('fig', 'fig-group', 'table-wrap', 'table-wrap-group')
# Of which nothing is read: within a line, and what is printed apart from it.
INLINE = tuple(
    'tex-math inline-graphic graphic private-char textual-form label object-id alt-text long-desc index-term fn'.split()
)
APART = tuple(
    'disp-formula disp-formula-group chem-struct-wrap array table preformat code supplementary-material media ref-list '
    'citation mixed-citation element-citation nlm-citation def-list fn-group table-wrap-foot attrib permissions '
    'sec-meta kwd-group verse-group'.split()
)
# What begins a new line within a paragraph.
BLOCKS = ('list', 'disp-quote', 'boxed-text', 'statement', 'speech')
MARKS = ('fn', 'table-fn', 'author-notes', 'corresp')  # kinds of <xref> that are a footnote's mark
GAP, BREAK = '\0', '\1'  # which XML cannot hold
GAPS = rf'{GAP}(?:(?:[\s,;–—-]|\band\b)*{GAP})*'
# Several gaps, the brackets around them, and the white space before them, or between them and a stop.
LEFT_OUT = re.compile(rf'\s*(?:\[\s*{GAPS}\s*\]|\(\s*{GAPS}\s*\)|{GAPS})(?:\s+(?=[,.;:]))?')


def read_file(path: Path, prefix: str, settings: Corpus, advance: Advance) -> Iterator[Record]:
    """The record of a file that holds one article. Raises BrokenFile where the file cannot be unpacked."""
    with opened(path, advance, LONGEST_RECORD) as source:
        yield _record_of('the article', source.stream.read(), settings, path.name)
        source.report()


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
    """A record for every article of a set. Raises BrokenFile, after the articles before the damage."""
    with opened(path, advance, LONGEST_RECORD) as source:
        for number, article in enumerate(elements(path, source, (f'{{*}}{ARTICLE}',)), 1):
            try:
                yield _record(article, settings, path.name)
            except BadRecord as error:
                yield _bad(f'article {number}', str(error))


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
    lines = _lines(article, meta, settings)
    title = meta.find('title-group/article-title')
    if 'title' in settings.article_parts and title is not None and lines:
        lines = [text for text in (_line(title),) if text] + lines
    text = '\n'.join(lines)
    why = reason_of(article_meta.spans(meta), cut_off(settings)) if text else 'no_text'
    id, version, revised = article_meta.identity(meta, file)
    kind = article_meta.kind(article, meta)
    return Record(id or made_id(text), '' if why else text, version, why, revised=revised, kind=kind)


def _lines(article: etree._Element, meta: etree._Element, settings: Corpus) -> list[str]:
    """What is read of an article beside its title."""
    parts = settings.article_parts
    reading = Reading('captions' in parts, settings.section_labels)
    lines: list[str] = []
    for abstract in meta.iterfind('abstract') if 'abstract' in parts else ():
        lines += reading.blocks(abstract)
    for body in article.iterfind('body'):
        lines += reading.blocks(body) if 'paragraphs' in parts else reading.captions(body)
    for name in ('floats-group', 'floats-wrap'):
        for floats in article.iterfind(name):
            lines += reading.captions(floats)
    return lines


class Reading:
    """Lines of text out of what articles are made of, with or without captions and titles of sections."""

    def __init__(self, with_captions: bool, with_titles: bool):
        self.with_captions, self.with_titles = with_captions, with_titles

    def blocks(self, element: etree._Element) -> list[str]:
        """The paragraphs within an element, at whatever depth, in their order."""
        lines: list[str] = []
        for child in element:
            if child.tag == 'p':
                lines += self._paragraph(child)
            elif child.tag == 'title':
                lines += [_line(child)] if self.with_titles else []
            elif child.tag in FLOATS:
                lines += self.captions(child)
            elif isinstance(child.tag, str) and child.tag not in INLINE + APART:
                lines += self.blocks(child)
        return [line for line in lines if line]

    def captions(self, element: etree._Element) -> list[str]:
        """The captions of the figures and tables within an element, each a line; none if they are not wanted."""
        found = element.iter('caption') if self.with_captions else ()
        texts = (
            [_line(part) for part in caption.iterchildren('title', 'p')]
            for caption in found
            if caption.getparent().tag in FLOATS
        )
        return [line for line in (' '.join(filter(None, parts)) for parts in texts) if line]

    def _paragraph(self, element: etree._Element) -> list[str]:
        """A paragraph, cut where a list or the like begins and ends, and behind it the captions that float in it."""
        captions: list[str] = []

        def instead(child: etree._Element) -> str | None:
            if child.tag in FLOATS:
                captions.extend(self.captions(child))
            if child.tag in BLOCKS:
                return BREAK + BREAK.join(self.blocks(child)) + BREAK
            return _unread(child)

        return [*_line(element, instead).split(BREAK), *captions]


def _line(element: etree._Element, instead: Instead | None = None) -> str:
    text = LEFT_OUT.sub('', plain_text(element, instead or _unread))
    # After a list may come no more than the sentence's stop.
    parts = (part.strip() for part in text.split(BREAK))
    return BREAK.join(part for part in parts if any(map(str.isalnum, part)))


def _unread(element: etree._Element) -> str | None:
    """What stands for an element that is not read: a gap where something is missing; None if it is read."""
    if element.tag in INLINE:
        return ''
    if element.tag in APART:
        return f' {GAP} '
    if element.tag in FLOATS or element.tag == 'break':
        return ' '
    if element.tag == 'xref':
        kind = element.get('ref-type')
        # The number of a reference, often raised behind a word, is not a part of the sentence; a name and a year are.
        if kind in MARKS or (kind == 'bibr' and not any(map(str.isalpha, ''.join(element.itertext())))):
            return GAP
    return None
