"""Marks of citations and footnotes within sentences: which references are marks, and a sentence without them.

The number of a reference, often raised behind a word, is not a part of the sentence, and would stick to the word; a
name and a year are. What cannot be shown, as a picture, leaves the same gap.
"""

import re

from lxml import etree

from bioptimus_jax.corpus.scripts import END, RAISED

GAP = '\0'  # which XML cannot hold
NOTES = ('fn', 'table-fn', 'author-notes', 'corresp')  # kinds of <xref> that are a footnote's mark
SOURCES = ('bibr', 'bib', 'ref', 'reference', 'citation')  # and those that cite
UNTOLD = ('', 'other')  # kinds that do not say which: what the reference leads to does
DASH = r'\-\u2010-\u2015\u2212\ufe58\ufe63\uff0d~'
JOIN = rf'(?:[\s,;/{DASH}]|\b(?:and|to|through|et|und|y)\b|&)'
# Numbers as 7, 4a, 12-15 or "7 and 8".
NUMBERS = re.compile(rf'(?:{JOIN}|[\[\]().*]|\brefs?\b|\d+[a-z]?\b|\b[a-z]\b)*', re.IGNORECASE)
YEAR = re.compile(r'(?:1[6-9]|20)\d\d[a-z]?')
# Ids of references, for where what they lead to is not in the file.
CITED = re.compile(r'(?:b|bib|bibr|r|ref|c|cr|cit|bb)[-_.]?\d+', re.IGNORECASE)
# Several citations in a row: `and` joins them where it belongs to neither.
RUN = re.compile(rf'{GAP}(?:(?:[\s,;/&{DASH}]| (?:and|to|through|et|und|y)(?= ))*{GAP})+')
NAMED = re.compile(rf'[Rr]efs?\.? ?{GAP}')  # ref. 5
DEEPEST = 5  # brackets within brackets around a citation
# A citation in its brackets, or raised; perhaps a part of it has no reference.
LISTED = re.compile(
    rf'{RAISED}(?:{JOIN}|\d+[a-z]?\b|[\[\]()*])*{GAP}(?:{JOIN}|{GAP}|\d+[a-z]?\b|[\[\]()*])*{END}'
    rf'|\[(?:{JOIN}|\d)*{GAP}(?:{JOIN}|{GAP}|\d)*\]'
    rf'|\({JOIN}*{GAP}(?:{JOIN}|{GAP}|(?<=[{DASH}])\d+)*\)'
)
# A gap that begins or ends a bracket, or stands between two marks, takes one of the marks with it.
FIRST = re.compile(rf'([\[({RAISED}]) ?{GAP} ?(?:[,;:] ?)?')
LAST = re.compile(rf' ?[,;] ?{GAP} ?(?=[,;:)\]{END}]|\.(?!\w))')
BETWEEN = re.compile(rf'{GAP}(?=[\w(\[])')
BEFORE_A_STOP = re.compile(rf'{GAP} (?=[,.;:)\]])')
# A number behind a name, in one reference with it.
BEHIND_A_NAME = re.compile(rf'{RAISED}(?:{JOIN}|\d+[a-z]?\b|[\[\]()*])+{END}')


def is_mark(xref: etree._Element) -> bool:
    """Whether a reference to a source is a number, or raised, and so no part of its sentence."""
    return is_number(''.join(xref.itertext())) or is_raised(xref)


def is_number(text: str) -> bool:
    """Whether a citation is made of numbers that are not all years."""
    if not NUMBERS.fullmatch(text):
        return False
    numbers = re.findall(r'\d+[a-z]?', text)
    if not numbers:
        return not any(map(str.isalnum, text))
    return not all(map(YEAR.fullmatch, numbers))


def is_raised(xref: etree._Element) -> bool:
    """Whether a reference is printed above its line."""
    around = xref.getparent()
    while around is not None and around.tag != 'p':
        if around.tag == 'sup':
            return True
        around = around.getparent()
    return len(xref) == 1 and xref[0].tag == 'sup' and not f'{xref.text or ""}{xref[0].tail or ""}'.strip()


class Targets:
    """The kinds of what the references of an article lead to; sought when a reference does not say it."""

    def __init__(self, article: etree._Element):
        self.article = article
        self._kinds: dict[str, str] | None = None

    def kind_of(self, ids: str) -> str:
        """The `ref-type` that an <xref> to these ids should have had; '' if it is none that leaves a gap."""
        if self._kinds is None:
            self._kinds = {
                found.get('id', ''): kind
                for tag, kind in (('ref', 'bibr'), ('fn', 'fn'), ('corresp', 'corresp'))
                for found in self.article.iter(tag)
            }
        first = ids.split()[0] if ids.split() else ''
        return self._kinds.get(first) or ('bibr' if CITED.fullmatch(first) else '')


def without_numbers(name: str) -> str:
    """What is read of a citation by name, without the number that is raised behind it."""
    return BEHIND_A_NAME.sub(GAP, name) if RAISED in name else name


def without_gaps(line: str) -> str:
    """A line of squeezed white space without its gaps, the brackets around them, and what held them together."""
    for _ in range(DEEPEST):
        line, found = LISTED.subn(GAP, NAMED.sub(GAP, RUN.sub(GAP, line)))
        if not found:
            break
    line = LAST.sub('', FIRST.sub(r'\1', line))
    # White space before a gap goes, and between it and a stop; no two words touch.
    line = BETWEEN.sub(f'{GAP} ', BEFORE_A_STOP.sub('', line.replace(f' {GAP}', GAP)))
    return line.replace(GAP, '').strip()
