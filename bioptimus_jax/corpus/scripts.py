"""Superscripts and subscripts: marked while markup is read, and shown as text when a whole line is known.

PubMed's own abstracts, before they had markup, put them in brackets, `10(-3)`, and today's keep the tags. In 54,864
abstracts powers of ten stand in brackets in 1,440 places and run into the number in 86; ions, formulas and units
(`Ca2+`, `CO2`, `kg-1`) more often stand without. So the default puts in brackets what would be another number.
"""

import re

RAISED, LOWERED, END = '\2', '\3', '\4'  # which XML cannot hold
SCRIPT = re.compile(f'([{RAISED}{LOWERED}])([^{RAISED}{LOWERED}{END}]*){END}')
MARKS = re.compile(f'[{RAISED}{LOWERED}{END}]')
# 1/2 as it is often typeset.
HALF = re.compile(rf'{RAISED}\s*(\d+)\s*{END}\s*[/⁄]\s*{LOWERED}\s*(\d+)\s*{END}')
SIGNS, POINTS = '+-−–±', '.·'
MARKS_OF_ONE = RAISED + LOWERED + END


def shown(text: str, brackets: str) -> str:
    """A text without its marks, its white space squeezed as before; `brackets` is `corpus.script_brackets`."""
    if not MARKS.search(text):  # one alone is left where a line ends within a script
        return text
    if brackets != 'none':
        text = _bracketed(text, brackets == 'all')
    return ' '.join(MARKS.sub('', text).split())


def _bracketed(text: str, every: bool) -> str:
    text = HALF.sub(_fraction, text)

    def script(found: re.Match[str]) -> str:
        inner = found[2]
        bare = inner.strip()
        if not any(map(str.isalnum, bare)) and not (every and bare and bare in SIGNS):
            return inner
        if not every and not _runs_into(found, bare):
            return inner
        return f'({bare})'

    # The innermost come first; what is around them then touches their brackets.
    found = 1
    while found:
        text, found = SCRIPT.subn(script, text)
    return text


def _runs_into(found: re.Match[str], bare: str) -> bool:
    """Whether a number would run into the number beside it, or into a bracket as its factor."""
    text, place = found.string, found.start() - 1
    while place >= 0 and text[place] in MARKS_OF_ONE:
        place -= 1
    before, after = text[place] if place >= 0 else ' ', text[found.end() : found.end() + 1]
    behind_a_number = before.isdigit() or (found[1] == RAISED and before in ')]')
    if behind_a_number and bare.lstrip(SIGNS + POINTS)[:1].isdigit():
        return True
    return bare[-1].isdigit() and after.isdigit()


def _fraction(found: re.Match[str]) -> str:
    before = found.string[max(found.start() - 1, 0) : found.start()]
    return f'{" " * before.isdigit()}{found[1]}/{found[2]}'
