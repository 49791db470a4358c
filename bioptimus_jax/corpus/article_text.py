"""Lines of text out of the elements of an article in JATS: what is read, what leaves a gap, and where a line ends.

Every word is read once. The exceptions are tables, displayed formulas, TeX, code, lists of references or terms,
footnotes, labels, supplements, and what is read on request only (`KINDS`); their words are counted. An element that is
not known here is read as a part of its line. No two blocks ever touch.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from lxml import etree

from bioptimus_jax.corpus import citations, mathml, scripts
from bioptimus_jax.corpus.config import Corpus
from bioptimus_jax.text.words import count_words

LANGUAGE = '{http://www.w3.org/XML/1998/namespace}lang'
# Their captions are read on request. They float: a sentence goes on behind a figure that is printed within it.
FLOATS = ('fig', 'fig-group', 'table-wrap', 'table-wrap-group')
LAST_FORM = 'textual-form'  # read where a thing has no other form
BREAK = '\1'  # between two lines; XML cannot hold it
PICTURE, APART = citations.GAP, f' {citations.GAP} '  # within a line, and printed apart from it
CLOSED_BY = {BREAK: BREAK, scripts.RAISED: scripts.END, scripts.LOWERED: scripts.END}
STOPS = tuple('.:;?!–—')  # at the end of a title: no colon has to follow
SHORTEST_REPEAT = 20  # letters and digits; what is shorter, as the title of a section, may stand twice
MOST_TEXTS = 20  # all are compared with all
# What is read for an element: a fixed text, its own text between marks, or what a method of Reading makes of it.
Kind = str | Callable[['Reading', etree._Element, list[str]], None]


def in_language(elements: list[etree._Element], language: str) -> list[etree._Element]:
    """The elements in this language, among some that say the same in several; without any, those in the first's."""
    codes = [element.get(LANGUAGE, '').lower().partition('-')[0] for element in elements]
    wanted = language.lower().partition('-')[0]
    if codes and wanted not in codes and '' not in codes:
        wanted = codes[0]
    return [element for element, code in zip(elements, codes, strict=True) if code in ('', wanted)]


def once(texts: Sequence[list[str]]) -> list[str]:
    """The lines of several texts without what stands in a longer one of them, as a teaser does in its abstract."""
    if not 1 < len(texts) < MOST_TEXTS:
        return [line for text in texts for line in text]
    letters = [_letters(' '.join(text)) for text in texts]
    kept = []
    for number, text in enumerate(texts):
        own = (len(letters[number]), -number)
        longer = [other for place, other in enumerate(letters) if (len(other), -place) > own]
        if any(letters[number] in other for other in longer):
            continue

        def is_new(line: str, longer: list[str] = longer) -> bool:
            short = _letters(line)
            return len(short) < SHORTEST_REPEAT or not any(short in other for other in longer)

        new = [line for line in text if is_new(line)]
        # Without its sentences, a title says nothing.
        if len(new) == len(text) or any(len(_letters(line)) >= SHORTEST_REPEAT for line in new):
            kept += new
    return kept


def _letters(text: str) -> str:
    return ''.join(filter(str.isalnum, text.casefold()))


class Reading:
    """Lines of text out of what an article is made of, with or without captions and titles of sections.

    `not_read`: how many words were met and are in no line, by what they stand in.
    """

    def __init__(self, article: etree._Element, settings: Corpus):
        self.not_read: Counter[str] = Counter()
        self.wants_captions = self.with_captions = 'captions' in settings.article_parts
        self.with_titles = settings.section_labels
        self.brackets = settings.script_brackets
        self.language = article.get(LANGUAGE, 'en')
        self.targets = citations.Targets(article)
        self.floating: list[str] | None = None  # captions that wait for the end of their paragraph

    def lines(self, element: etree._Element) -> list[str]:
        """The paragraphs within an element, at whatever depth, in their order."""
        found: list[str] = []
        self._read(element, found)
        return self._shown(found)

    def title(self, meta: etree._Element) -> list[str]:
        """The article's title, and what it goes on with in smaller type, in one line; empty where there is none."""
        title = ''
        for name in ('article-title', 'subtitle'):
            for part in filter(None, map(self._line, meta.iterfind(f'title-group/{name}'))):
                title += (' ' if title.endswith(STOPS) else ': ') * bool(title) + part
        return [title] if title else []

    def captions(self, element: etree._Element) -> list[str]:
        """The captions of the figures and tables within an element, each a line; none if they are not wanted."""
        found: dict[etree._Element, list[etree._Element]] = {}
        for caption in _captions_in(element) if self.with_captions else ():
            found.setdefault(caption.getparent(), []).append(caption)
        chosen = [caption for captions in found.values() for caption in in_language(captions, self.language)]
        with_captions, self.with_captions = self.with_captions, False  # one within another is among them
        lines = [text for text in map(self._line, chosen) if text]
        self.with_captions = with_captions
        return lines

    def _line(self, element: etree._Element) -> str:
        """All of an element in one line."""
        with_titles, self.with_titles = self.with_titles, True
        lines = self.lines(element)
        self.with_titles = with_titles
        return ' '.join(lines)

    def _shown(self, found: list[str]) -> list[str]:
        """The lines of the pieces that were read; what holds no letter or digit, as a stop after a list, is none."""
        lines = []
        for part in ''.join(found).split(BREAK):
            line = ' '.join(part.split())
            if citations.GAP in line:
                line, words = citations.without_gaps(line)
                if words:
                    self.not_read['citations'] += words
            if any(map(str.isalnum, line)):
                lines.append(scripts.shown(line, self.brackets))
        return lines

    def _read(self, element: etree._Element, found: list[str]) -> None:
        """Add the text of an element, in pieces."""
        if element.text:
            found.append(element.text)
        self._read_all(element, found)

    def _read_all(self, elements: Iterable[etree._Element], found: list[str]) -> None:
        """Add what stands for these elements, and what is behind each."""
        for element in elements:
            kind = KINDS.get(element.tag)
            if kind is None or kind in CLOSED_BY:
                if kind:
                    found.append(kind)
                if text := element.text:
                    found.append(text)
                if len(element):
                    self._read_all(element, found)
                if kind:
                    found.append(CLOSED_BY[kind])
            elif isinstance(kind, str):
                found.append(kind)
                self._leave_out(NAMES.get(element.tag, ''), element.itertext())
            else:
                kind(self, element, found)
            if tail := element.tail:
                found.append(tail)

    def _paragraph(self, element: etree._Element, found: list[str]) -> None:
        """A paragraph, and behind it the captions that float in it."""
        outer, self.floating = self.floating, []
        found.append(BREAK)
        self._read(element, found)
        found += (BREAK + caption for caption in self.floating)
        found.append(BREAK)
        self.floating = outer

    def _leave_out(self, name: str, texts: Iterable[str]) -> None:
        """Count the words of these texts as not read, under a name if there is one."""
        if name and (words := _words(texts)):
            self.not_read[name] += words

    def _float(self, element: etree._Element, found: list[str]) -> None:
        captions = self.captions(element)
        outermost: set[etree._Element] = set()
        for caption in _captions_in(element):
            if outermost.isdisjoint(caption.iterancestors('caption')):
                outermost.add(caption)
        in_captions = sum(_words(caption.itertext()) for caption in outermost)
        if beside := _words(element.itertext()) - in_captions:
            self.not_read['figures' if element.tag.startswith('fig') else 'tables'] += beside
        if in_captions and not self.wants_captions:
            self.not_read['captions'] += in_captions
        if self.floating is None:
            found.append(BREAK + ''.join(caption + BREAK for caption in captions))
        else:
            self.floating += captions
            found.append(' ')

    def _title(self, element: etree._Element, found: list[str]) -> None:
        found.append(BREAK)
        if self.with_titles:
            self._read(element, found)
            found.append(BREAK)
        else:
            self._leave_out('titles of sections', element.itertext())

    def _reference(self, element: etree._Element, found: list[str]) -> None:
        kind = element.get('ref-type', '')
        if kind in citations.UNTOLD:
            kind = self.targets.kind_of(element.get('rid', ''))
        is_note = kind in citations.NOTES or (not kind and citations.is_raised(element))
        if not is_note and kind not in citations.SOURCES:
            self._read(element, found)
            return
        text = ''.join(element.itertext())
        if is_note or citations.is_mark(element, text):
            found.append(citations.GAP if is_note else citations.gap_for(text))
            self._leave_out('citations', (text,))
        else:
            pieces: list[str] = []
            self._read(element, pieces)
            found.append(citations.without_numbers(''.join(pieces)))

    def _formula(self, element: etree._Element, found: list[str]) -> None:
        """What can be read of a formula; a gap where nothing can. TeX that says it again is not counted."""
        pieces: list[str] = []
        before = self.not_read['formulas']
        self._read(element, pieces)
        if _add(pieces, found):
            self.not_read['formulas'] = before

    def _alternatives(self, element: etree._Element, found: list[str]) -> None:
        """Keep the one form of several that can be read, MathML first."""
        readable = [child for child in element if KINDS.get(child.tag) != PICTURE and child.tag != LAST_FORM]
        formulas = [child for child in readable if KINDS.get(child.tag) is Reading._math]
        pieces: list[str] = []
        for child in [*formulas, *readable, *element.iterchildren(LAST_FORM)][:1]:
            self._read_all([child], pieces)
            if child.tail:  # is white space
                pieces.pop()
        if not pieces:
            for child in element:
                self._leave_out(NAMES.get(child.tag, ''), child.itertext())
        _add(pieces or [PICTURE], found)

    def _math(self, element: etree._Element, found: list[str]) -> None:
        found.append(mathml.formula(element))

    def _entity(self, node: etree._Element, found: list[str]) -> None:
        found.append(mathml.entity(node))


def _captions_in(element: etree._Element) -> Iterator[etree._Element]:
    """The captions of the figures and tables within an element, at whatever depth."""
    return (caption for caption in element.iter('caption') if caption.getparent().tag in FLOATS)


def _words(texts: Iterable[str]) -> int:
    return count_words(' '.join(' '.join(texts).split()))


def _add(pieces: list[str], found: list[str]) -> bool:
    """Add what was read of a thing, a gap where all of it is a picture; whether anything was read."""
    whole = ''.join(pieces)
    text = whole.replace(citations.GAP, '')
    is_read = bool(text.strip())
    found.append(text if is_read else whole)
    return is_read


# What is not read: its name where its words are counted, what stands for it, its tags.
_NOT_READ = (
    ('labels', '', 'label object-id alt-text long-desc index-term'),
    ('notes', '', 'fn'),
    ('notes', APART, 'fn-group table-wrap-foot attrib permissions sec-meta kwd-group'),
    ('formulas', PICTURE, 'tex-math private-char'),
    ('formulas', APART, 'disp-formula disp-formula-group chem-struct-wrap'),
    ('tables', APART, 'array table'),
    ('code', APART, 'preformat code'),
    ('supplements', PICTURE, 'inline-graphic graphic'),
    ('supplements', APART, 'supplementary-material media'),
    ('references', APART, 'ref-list citation mixed-citation element-citation nlm-citation'),
    ('lists of terms', APART, 'def-list'),
    ('verses', APART, 'verse-group'),
)
NAMES = {tag: name for name, _, tags in _NOT_READ for tag in tags.split()}
_BLOCKS = (
    'sec list list-item disp-quote boxed-text statement speech speaker caption question question-wrap answer '
    'answer-set explanation sig-block sig dateline address addr-line bio ack app-group app notes note glossary '
    'abstract trans-abstract body floats-group floats-wrap div ul ol li blockquote'
)
# By tag; that of an entity which the DTD declares is a function.
KINDS: dict[Any, Kind] = {
    **{tag: stands_for for _, stands_for, tags in _NOT_READ for tag in tags.split()},
    **dict.fromkeys(_BLOCKS.split(), BREAK),
    **dict.fromkeys(FLOATS, Reading._float),
    **dict.fromkeys(('break', 'hr', 'br'), ' '),
    'sup': scripts.RAISED,
    'sub': scripts.LOWERED,
    'p': Reading._paragraph,
    'title': Reading._title,
    'subtitle': Reading._title,
    'xref': Reading._reference,
    'inline-formula': Reading._formula,
    'alternatives': Reading._alternatives,
    'math': Reading._math,
    **{mathml.NAMESPACE + name: Reading._math for name in mathml.OUTERMOST},
    etree.Entity: Reading._entity,
}
