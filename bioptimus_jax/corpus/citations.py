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
# Kinds of what a reference leads to, by its element.
KINDS = {
    **dict.fromkeys(('ref', 'citation', 'mixed-citation', 'element-citation', 'nlm-citation'), 'bibr'),
    'fn': 'fn',
    'corresp': 'corresp',
}
DASH = r'\-\xad\u02d7\u2010-\u2015\u2043\u2053\u2212\u223c\u301c\ufe58\ufe63\uff0d\uff5e~'
BETWEEN_TWO = rf'[\s,;/&\uff0c\uff1b\u3001\u200b\u2060\ufeff{DASH}]'
WORDS = 'and|or|to|through|et|und'
JOIN = rf'(?:{BETWEEN_TWO}|\b(?:{WORDS})\b)'
# All repeats that end before a gap are possessive (`*+`): what they may take cannot be read in two ways.
# Numbers as 7, 4a, 12-15 or "7 and 8".
NUMBERS = re.compile(rf'(?:{JOIN}|[\[\]().*]|\brefs?\b|\d+[a-z]?\b|\b[a-z]\b)*+', re.IGNORECASE)
YEAR = re.compile(r'(?:1[6-9]|20)\d\d[a-z]?')
# Ids of references, for where what they lead to is not in the file.
CITED = re.compile(r'(?:b|bib|bibr|r|ref|c|cr|cit|bb)[-_.]?\d+', re.IGNORECASE)
# Several citations in a row: `and` joins them where it belongs to neither.
RUN = re.compile(rf'{GAP}(?:(?: (?:{WORDS}|y|e)(?= )|{BETWEEN_TWO})*+{GAP})+')
NAMED = re.compile(rf'[Rr](?<!\w.)efs?\.? ?{GAP}')  # ref. 5
DEEPEST = 5  # brackets within brackets around a citation
# Words that only lead to a citation, as in (for a review see also refs. 5 and 6).
LEADING = (
    r'e\.? ?g|i\.? ?e|cf|see|also|for(?: an?| the)?|recent|recently|reviews?|reviewed|in|by|from|refs?|references?'
    r'|therein|examples?|instance|details'
)
EITHER_CASE = re.sub(r'(?<![^|])[a-z]', lambda first: f'[{first[0]}{first[0].upper()}]', f'{LEADING}|{WORDS}')
SOFT = rf'(?:{BETWEEN_TWO}|\b(?:{EITHER_CASE})\b\.?)'
OTHERS = rf'(?:{JOIN}|\d+[a-z]?\b|[\[\]()*])'  # of a raised citation, without a reference of their own
# What is raised may begin with a power or a charge: behind a number, a letter or a length, a number is one.
IS_NO_POWER = rf'(?<!\d{RAISED})(?<!\b[^\W\d_]{RAISED})(?<!\b[cdkmnµμ]m{RAISED})'
# A citation in its brackets, or raised; perhaps a part of it has no reference.
LISTED = re.compile(
    rf'{RAISED}(?:{IS_NO_POWER}[\[(*]*\d+[a-z]?\b{OTHERS}*+|[\s,;&\[\]()*]*+){GAP}(?:{GAP}|{OTHERS})*+{END}'
    rf'|{GAP} ?{RAISED} ?(?:(?! ){JOIN}(?:{GAP}|{OTHERS})*+)?{END}'
    rf'|{RAISED}[\s,;]+{END} ?{GAP}'
    rf'|\[(?:{SOFT}|\d)*+{GAP}(?:{SOFT}|{GAP}|\d)*+\]'
    rf'|\({SOFT}*+{GAP}(?:{SOFT}|{GAP}|\d{{1,3}}[a-z]?\b)*+\)'
)
# A gap that begins or ends a bracket, or stands between two marks, takes one of the marks with it, and what led to it.
AND = r'(?:and|or|&)'
FIRST = re.compile(
    rf'([\[({RAISED}]) ?(?:{GAP} ?(?:[,;:] ?)?(?:{AND} )?|(?<![{RAISED} ]){SOFT}++{GAP} ?[,;:] ?)'
)
LAST = re.compile(rf'[,; ] ?(?:{AND} ?)?{GAP} ?(?=[,;:{END}]|\.(?!\w))')
ENDS = (f'{GAP})', f'{GAP}]', f'{GAP} )', f'{GAP} ]')
LAST_IN_BRACKETS = re.compile(rf'(?:[,;]| (?={AND} )){SOFT}{{0,30}}+{GAP} ?(?=[)\]])')
BETWEEN = re.compile(rf'{GAP}(?=[\w(\[])')
BEFORE_A_STOP = re.compile(rf'{GAP} (?=[,;:)\]]|\.(?!\w))')
# A number behind a name, in one reference with it.
BEHIND_A_NAME = re.compile(
    rf'{RAISED}(?:{JOIN}|\d+[a-z]?\b|[\[\]()*])++{END}|[\[(](?:{JOIN}|\d{{1,3}}[a-z]?\b)++[\])]'
)


def is_mark(xref: etree._Element, text: str) -> bool:
    """Whether a reference to a source, with this text, is a number, or raised, and so no part of its sentence."""
    return is_number(text) or is_raised(xref)


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
            found = ((element.get('id', ''), element.tag) for element in self.article.iter('*'))
            self._kinds = {id: KINDS.get(tag, '') for id, tag in found if id}
        first = ids.split()[0] if ids.split() else ''
        return self._kinds.get(first, 'bibr' if CITED.fullmatch(first) else '')


def gap_for(mark: str) -> str:
    """What stands for a citation or footnote that is a mark: a gap, with a bracket that is closed elsewhere and the
    stop of its sentence, where these are in the reference.
    """
    mark = mark.strip()
    if mark.isalnum() or not mark:
        return GAP
    gap = GAP
    for opening, closing in ('()', '[]'):
        more = mark.count(opening) - mark.count(closing)
        gap = opening * (more > 0) + gap + closing * (more < 0)
    return gap + mark[-1] * (mark[-1] in '.,;:')


def without_numbers(name: str) -> str:
    """What is read of a citation by name, without the number that stands behind it, raised or in brackets."""
    return BEHIND_A_NAME.sub(GAP, name)


def without_gaps(line: str) -> tuple[str, int]:
    """A line of squeezed white space without its gaps, the brackets around them, and what led to them or held them
    together; and how many words and numbers this was.
    """
    gone: list[str] = []

    def gap(found: re.Match[str]) -> str:
        gone.append(found[0])
        return GAP

    def bracket(found: re.Match[str]) -> str:
        gone.append(found[0])
        return found[1]

    for _ in range(DEEPEST):
        line, found = LISTED.subn(gap, NAMED.sub(gap, RUN.sub(gap, line)))
        if not found:
            break
    line = LAST.sub(gap, FIRST.sub(bracket, line))
    if any(end in line for end in ENDS):  # few lines
        line = LAST_IN_BRACKETS.sub(gap, line)
    # White space before a gap goes, and between it and a stop; no two words touch.
    line = BETWEEN.sub(f'{GAP} ', BEFORE_A_STOP.sub('', line.replace(f' {GAP}', GAP)))
    words = sum(any(map(str.isalnum, word)) for word in ' '.join(gone).replace(GAP, ' ').split())
    return line.replace(GAP, '').strip(), words
