"""Formulas in MathML's presentation form, each as a line of text that says the same: `2 3/4`, `(a-b)/(c+d)`, `√(x+1)`.

Brackets stand where precedence asks for them. Superscripts and subscripts are marked as those of the text around a
formula are, so that `scripts.shown` decides about all of them alike.
"""

import html
import re
from collections.abc import Sequence
from typing import NamedTuple

from lxml import etree

from bioptimus_jax.corpus.records import is_number
from bioptimus_jax.corpus.scripts import END, LOWERED, RAISED

NAMESPACE = '{http://www.w3.org/1998/Math/MathML}'
# White space of pretty-printed XML; authors' own in formulas is a no-break or thin space.
BLANK = ' \t\r\n'
TOKENS = ('mi', 'mn', 'mo', 'mtext', 'ms')
NOT_SHOWN = ('annotation', 'annotation-xml', 'mphantom', 'none', 'mprescripts', 'maligngroup', 'malignmark')
TABLES = ('mtable', 'mtr', 'mlabeledtr')
SCRIPTS = ('msub', 'msup', 'msubsup', 'munder', 'mover', 'munderover')
OUTERMOST = ('math', 'mrow', 'mstyle', 'mpadded', 'mfrac', 'msqrt', 'mroot', 'mfenced', *TOKENS, *SCRIPTS)
INVISIBLE = '\u2061\u2062\u2063\u2064'  # function application, times, comma, plus
LARGE = tuple('∑∏∐∫∬∭∮⋃⋂⋁⋀⨁⨂')  # whose scripts are limits
MARKS = RAISED + LOWERED + END
OPENING, CLOSING = '([{⟨' + RAISED + LOWERED, ')]}⟩' + END
SUMS = frozenset('+-−–±∓=<>≤≥≪≫≈≠≅≡∼~→←↔⇒⇔⟶∈∉⊂⊆∝,;:|∣∪∩∧∨&' + BLANK + '\xa0')
ROOTS = str.maketrans('0123456789n', '⁰¹²³⁴⁵⁶⁷⁸⁹ⁿ')
HATS = {'^': 'ˆ'}  # above a letter, where a caret behind it would be a power
DIVISION = ('/', '÷', '∕', '⁄')
SIGNS = re.compile(r'\W+|\d*[-+−–]')  # primes and stars, −/−, and the charge of an ion
ISOTOPE = re.compile(r'\d+m')
ORDINALS = ('st', 'nd', 'rd', 'th')
BARS = tuple('|∣‖}⟩⌉⌋')  # which close what a power may be of
# One symbol, though it is written as a product: dt, ∂x, Δx.
DIFFERENTIAL = re.compile(rf'[d∂δΔ∆][^\W\d_](?:[{RAISED}{LOWERED}][^{RAISED}{LOWERED}{END}]*{END})*')
NO_LINE = re.compile(r'[0.]+[a-z%]*')  # the thickness of the line of a fraction that has none
LONGEST = 2000  # characters of a part in which signs are looked for: beyond, it stands in brackets
# What is read, from what binds least to what binds most.
SUM, FRACTION, PRODUCT, ATOM = range(4)


class Part(NamedTuple):
    """What a part of a formula reads, and how strongly it binds.

    `is_word`: it is no single symbol; `is_operator`: it is a word that operates on what is behind it, as log and mod;
    `is_unseen`: it is an operator that is not printed.
    """

    text: str
    level: int = ATOM
    is_word: bool = False
    is_operator: bool = False
    is_unseen: bool = False


NOTHING = Part('')


def formula(element: etree._Element) -> str:
    """The text of a <math>; one that stands on a line of its own does not touch what is around it."""
    text = _read(element).text
    is_apart = element.get('display') == 'block' or element.get('mode') == 'display'
    return f' {text} ' if is_apart else text


def entity(node: etree._Element) -> str:
    """What an entity of the DTD, which is not loaded, stands for; those of HTML have the same names."""
    return html.unescape(node.text or '')


def _read(element: etree._Element) -> Part:
    kind = element.tag.rpartition('}')[2]
    if kind in TOKENS:
        return _token(element, kind)
    if kind in NOT_SHOWN:
        return NOTHING
    if kind == 'mspace':
        return Part(' ')
    parts, before = list(_stray(element.text)), None
    for child in element:
        if not isinstance(child.tag, str):
            parts.append(Part(entity(child)))
        else:
            if child.tag.endswith('mprescripts'):
                before = len(parts)
            parts.append(_read(child))
        parts += _stray(child.tail)
    return _whole(element, kind, parts, before) if parts or kind == 'mfenced' else NOTHING


def _whole(element: etree._Element, kind: str, parts: list[Part], before: int | None) -> Part:
    """What its parts make of an element; those behind `before` are set before its first."""
    if kind == 'mmultiscripts':
        return _prescripts(parts, before)
    if kind == 'mfrac' and len(parts) == 2:
        above, below = parts
        if NO_LINE.fullmatch(element.get('linethickness', '')):  # n over k
            return Part(f'{above.text} {below.text}', SUM)
        is_one = DIFFERENTIAL.fullmatch(below.text.strip())
        return Part(f'{_wrapped(above, PRODUCT)}/{_wrapped(below, PRODUCT if is_one else ATOM)}', FRACTION)
    if kind in SCRIPTS and len(parts) > 1:
        return _scripted(kind, parts)
    if kind == 'mfenced':
        return _fenced(element, parts)
    if kind == 'mroot' and len(parts) == 2:
        index = parts[1].text.translate(ROOTS)
        shown = index if not index or index.isdigit() or index == 'ⁿ' else f'({index})'
        return Part(f'{shown}√{_wrapped(parts[0], ATOM)}')
    if kind in ('semantics', 'maction'):
        chosen = element.get('selection', '1')
        return parts[min(int(chosen[:3]) if is_number(chosen) else 1, len(parts)) - 1]
    if kind in TABLES:  # the first cell of a labelled row is the formula's number
        parts = [Part(' '.join(part.text for part in parts[kind == 'mlabeledtr' :]), SUM)]
    row = _row(parts)
    if kind == 'msqrt' or (kind == 'menclose' and 'radical' in element.get('notation', '')):
        return Part('√' + _wrapped(row, ATOM))
    return row


def _stray(text: str | None) -> list[Part]:
    """What stands between the elements, where there should be nothing."""
    text = (text or '').strip(BLANK)
    return [Part(text, _level(text, PRODUCT if len(text) > 1 else ATOM))] if text else []


def _token(element: etree._Element, kind: str) -> Part:
    text = element.text or ''
    for node in element:  # an entity, or markup within words
        inner = ''.join(node.itertext()) if isinstance(node.tag, str) else entity(node)
        text += inner + (node.tail or '')
    if kind != 'mtext' or '\n' in text:
        text = text.strip(BLANK)
    if text and text in INVISIBLE:
        return Part('', is_unseen=True)
    level = ATOM if kind == 'mo' else _level(text, ATOM)
    is_word = len(text) > 1 and any(map(str.isalpha, text)) and (kind == 'mtext' or _is_letters(text))
    return Part(text, level, is_word, is_operator=is_word and kind == 'mo')


def _is_letters(text: str) -> bool:
    return ''.join(text.split()).isalpha()


def _row(parts: Sequence[Part]) -> Part:
    """Parts side by side: as they are, but for white space that keeps numbers, words and fractions apart."""
    seen = [part for part in parts if part.text.strip()]
    if len(seen) == 1:
        return seen[0]._replace(text=''.join(part.text for part in parts))
    shown: list[str] = []
    unseen, before = False, NOTHING
    for part in parts:
        if part.is_unseen:
            unseen = True
        elif part.text:
            if shown and _apart(before, part, unseen):
                shown.append(' ')
            is_divisor = part.level == FRACTION and before.text.strip() in DIVISION
            shown.append(_wrapped(part, ATOM) if is_divisor else part.text)
            unseen, before = False, part
    text = ''.join(shown)
    return Part(text, _level(text, PRODUCT))


def _apart(before: Part, part: Part, unseen: bool) -> bool:
    """Whether white space has to stand between two parts; `unseen`: the operator between them cannot be seen."""
    last, first = before.text.rstrip(MARKS)[-1:], part.text.lstrip(MARKS)[:1]
    if FRACTION in (before.level, part.level):
        return (last.isalnum() or last in CLOSING) and (first.isalnum() or first in OPENING + '√')
    if not (last.isalnum() and first.isalnum()):
        return False
    if before.is_operator or part.is_operator:
        return True
    if before.is_word or part.is_word:
        return unseen or (last.isalpha() and first.isalpha())
    return unseen and last.isdigit() and first.isdigit()


def _level(text: str, product: int) -> int:
    """How strongly a text binds; `product` where nothing in it, but for what is in brackets, adds or compares."""
    text = text.strip()
    if text.replace('.', '').replace(',', '').isdigit():
        return ATOM
    if len(text) > LONGEST:
        return SUM
    depth, whole = 0, text[:1] in OPENING
    for place, sign in enumerate(text):
        if sign in OPENING:
            depth += 1
        elif sign in CLOSING:
            depth -= 1
            whole = whole and (depth > 0 or place == len(text) - 1)
        elif not depth and sign in SUMS:
            return SUM
        elif not depth and sign == '/':
            product = min(product, FRACTION)
    return ATOM if whole else product


def _wrapped(part: Part, level: int) -> str:
    """A part as it stands where only what binds so strongly may stand without brackets."""
    return part.text if part.level >= level else f'({part.text.strip()})'


def _fenced(element: etree._Element, parts: Sequence[Part]) -> Part:
    opening, closing = element.get('open', '('), element.get('close', ')')
    separators = ''.join(element.get('separators', ',').split())
    shown = [part.text for part in parts[:1]]
    for number, part in enumerate(parts[1:]):
        shown += (separators[number : number + 1] or separators[-1:], part.text)
    text = ''.join(shown) if separators else _row(parts).text
    level = ATOM if opening.strip() and closing.strip() else _level(text, PRODUCT)
    return Part(opening + text + closing, level)


def _scripted(kind: str, parts: Sequence[Part]) -> Part:
    base, *scripts = parts
    is_function = base.is_operator or (
        len(base.text) > 1
        and base.text.islower()
        and (base.is_word or ' ' in base.text)
        and _is_letters(base.text)
    )
    if kind in ('munder', 'mover', 'munderover') or base.text in LARGE or (is_function and kind == 'msub'):
        return _limited(base, scripts, is_function)
    below = scripts[0] if kind != 'msup' else NOTHING
    above = scripts[-1] if kind != 'msub' else NOTHING
    # The power of a root is not the root of a power.
    is_root = '√' in base.text and _level(base.text, PRODUCT) < ATOM
    text = f'({base.text})' if is_root else _wrapped(base, PRODUCT)
    text += _script(text, below, LOWERED)
    return Part(text + _script(text, above, RAISED), is_word=is_function, is_operator=is_function)


def _limited(base: Part, scripts: Sequence[Part], is_function: bool) -> Part:
    """What is printed above and below: an accent, as a bar, stands behind its letter; limits stand in brackets."""
    limits = [part.text for part in scripts if part.text]
    accents = [text for text in limits if base.text not in LARGE and not any(map(str.isalnum, text))]
    marks = ''.join(HATS.get(text, text) for text in accents)
    limits = [text for text in limits if text not in accents]
    if is_function and len(limits) == 1 and limits[0].isdigit() and not marks:  # the base of a logarithm
        return Part(f'{base.text}{LOWERED}{limits[0]}{END}', is_word=True, is_operator=True)
    text = _wrapped(base, PRODUCT) if marks else base.text
    between = '..' if base.text in LARGE else ', '
    text += marks + (f'({between.join(limits)})' if limits else '')
    return Part(text, max(base.level, PRODUCT) if marks else base.level)


def _script(base: str, part: Part, mark: str) -> str:
    """A superscript or subscript: in brackets where it is an expression, or would be a factor of a number."""
    text = part.text.strip()
    if not text or (mark == RAISED and text == '∘'):
        return text and '°'
    if mark == LOWERED:
        needs = part.level < PRODUCT
    elif SIGNS.fullmatch(text) or (not base and ISOTOPE.fullmatch(text)):
        needs = False
    else:
        base = base.rstrip(MARKS)
        is_factor = base[-1:].isdigit() and text.isalpha() and text not in ORDINALS
        is_behind_a_bar = base.endswith(BARS) and text[:1].isdigit()
        is_nested = text[:1] not in OPENING and (RAISED in text or LOWERED in text)
        needs = part.level < ATOM or is_factor or is_behind_a_bar or is_nested
    return f'({text})' if needs else f'{mark}{text}{END}'


def _prescripts(parts: Sequence[Part], before: int | None) -> Part:
    """A base with what is set behind it and before it, as the 3 of 3-He."""
    base, *behind = parts[:before] or [NOTHING]
    ahead = [] if before is None else parts[before + 1 :]

    def shown(scripts: Sequence[Part]) -> str:
        return ''.join(_script('', p, RAISED if n % 2 else LOWERED) for n, p in enumerate(scripts))

    return Part(shown(ahead) + _wrapped(base, ATOM) + shown(behind))
