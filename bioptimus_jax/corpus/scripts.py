"""Superscripts and subscripts: marked while markup is read, and shown as text when a whole line is known.

PubMed's own abstracts, before they had markup, put them in brackets, `10(-3)`, and today's keep the tags. In 54,864
abstracts powers of ten stand in brackets in 1,440 places and run into the number in 86; ions, formulas and units
(`Ca2+`, `CO2`, `kg-1`) more often stand without. So the default puts in brackets what would be another number.
"""

import re

RAISED, LOWERED, END = '\2', '\3', '\4'  # which XML cannot hold
SCRIPT = re.compile(f'([{RAISED}{LOWERED}])([^{RAISED}{LOWERED}{END}]*){END}')
ANY = RAISED + LOWERED + END
# 1/2 as it is often typeset.
HALF = re.compile(rf'{RAISED}\s*(\d+)\s*{END}\s*[/⁄]\s*{LOWERED}\s*(\d+)\s*{END}')
SIGNS, POINTS = '+-−–±', '.·'
CUTS = (*ANY, *')]/⁄')  # beside a script, they may make it a part of something


def shown(text: str, brackets: str) -> str:
    """A text without its marks, its white space squeezed as before; `brackets` is `corpus.script_brackets`."""
    # An end alone is left where a line ends within a script.
    if RAISED not in text and LOWERED not in text and END not in text:
        return text
    if brackets == 'all' or (brackets == 'numbers' and _is_near_a_number(text)):
        text = _bracketed(text, brackets == 'all')
    text = text.replace(RAISED, '').replace(LOWERED, '').replace(END, '')
    return ' '.join(text.split()) if '  ' in text or text[:1] == ' ' or text[-1:] == ' ' else text


def _is_near_a_number(text: str) -> bool:
    """Whether a script may need brackets; a quick look, since few do."""
    for mark, beside in ((RAISED, -1), (LOWERED, -1), (END, 1)):
        place = text.find(mark)
        while place >= 0:
            near = text[place + beside : place + beside + 1]
            if near.isdigit() or near in CUTS:
                return True
            place = text.find(mark, place + 1)
    return False


def _bracketed(text: str, every: bool) -> str:
    text = HALF.sub(_fraction, text)

    def script(found: re.Match[str]) -> str:
        inner = found[2]
        if every:
            bare = inner.strip()
            return f'({bare})' if any(map(str.isalnum, bare)) or (bare and bare in SIGNS) else inner
        return f'({inner.strip()})' if not inner.isalpha() and _runs_into(found, inner.strip()) else inner

    # The innermost come first; what is around them then touches their brackets.
    found = 1
    while found and (RAISED in text or LOWERED in text):
        text, found = SCRIPT.subn(script, text)
    return text


def _runs_into(found: re.Match[str], bare: str) -> bool:
    """Whether a number would run into the number beside it, or into a bracket as its factor."""
    if not any(map(str.isdigit, bare)):
        return False
    text, place = found.string, found.start() - 1
    while place >= 0 and text[place] in ANY:
        place -= 1
    before, after = text[place] if place >= 0 else ' ', text[found.end() : found.end() + 1]
    behind_a_number = before.isdigit() or (found[1] == RAISED and before in ')]')
    if behind_a_number and bare.lstrip(SIGNS + POINTS)[:1].isdigit():
        return True
    return bare[-1].isdigit() and after.isdigit()


def _fraction(found: re.Match[str]) -> str:
    before = found.string[max(found.start() - 1, 0) : found.start()]
    return f'{" " * before.isdigit()}{found[1]}/{found[2]}'
