"""Formulas in MathML's presentation form, each as a line of text that says the same: `2 3/4`, `(a-b)/(c+d)`, `√(x+1)`.

Brackets stand where precedence asks for them. Superscripts and subscripts are marked as those of the text around a
formula are, so that `scripts.shown` decides about all of them alike.
"""

import html
from collections.abc import Sequence
from typing import NamedTuple

from lxml import etree

from bioptimus_jax.corpus.scripts import END, LOWERED, RAISED

NAMESPACE = '{http://www.w3.org/1998/Math/MathML}'
# White space of pretty-printed XML; authors' own in formulas is a no-break or thin space.
BLANK = ' \t\r\n'
TOKENS = ('mi', 'mn', 'mo', 'mtext', 'ms')
NOT_SHOWN = ('annotation', 'annotation-xml', 'mphantom', 'none', 'mprescripts', 'maligngroup', 'malignmark')
SCRIPTS = ('msub', 'msup', 'msubsup', 'munder', 'mover', 'munderover')
NAMES = (
    'math',
    'mrow',
    'mstyle',
    'mpadded',
    'mfrac',
    'msqrt',
    'mroot',
    'mfenced',
    *TOKENS,
    *SCRIPTS,
)  # outermost
INVISIBLE = '\u2061\u2062\u2063\u2064'  # function application, times, comma, plus
LARGE = tuple('∑∏∐∫∬∭∮⋃⋂⨁⨂')  # whose scripts are limits
MARKS = RAISED + LOWERED + END
OPENING, CLOSING = '([{⟨' + RAISED + LOWERED, ')]}⟩' + END
SUMS = frozenset('+-−–±∓=<>≤≥≪≫≈≠≅≡∼~→←↔⇒⇔⟶∈∉⊂⊆∝,;:|∣∪∩∧∨&' + BLANK + '\xa0')
ROOTS = str.maketrans('0123456789n', '⁰¹²³⁴⁵⁶⁷⁸⁹ⁿ')
# What is read, from what binds least to what binds most.
SUM, FRACTION, PRODUCT, ATOM = range(4)


class Part(NamedTuple):
    """What a part of a formula reads, how strongly it binds, and whether it is a word or an operator unseen."""

    text: str
    level: int = ATOM
    is_word: bool = False
    is_unseen: bool = False


NOTHING = Part('')


def formula(element: etree._Element) -> str:
    """The text of a <math>; one that stands on a line of its own does not touch what is around it."""
    text = _read(element).text
    return f' {text} ' if 'block' in (element.get('display'), element.get('mode')) else text


def _read(element: etree._Element) -> Part:
    kind = element.tag.rpartition('}')[2]
    if kind in TOKENS:
        return _token(element, kind)
    if kind in NOT_SHOWN:
        return NOTHING
    if kind == 'mspace':
        return Part(' ')
    parts, before = [], -1
    stray = _stray(element.text)
    if stray:
        parts.append(stray)
    for child in element:
        if not isinstance(child.tag, str):
            parts.append(Part(html.unescape(child.text or '')))
        else:
            if child.tag.endswith('mprescripts'):
                before = len(parts)
            parts.append(_read(child))
        if stray := _stray(child.tail):
            parts.append(stray)
    if kind == 'mmultiscripts' and parts:
        return _prescripts(parts, before)
    if kind == 'mfrac' and len(parts) == 2:
        if element.get('linethickness') in ('0', '0pt', '0em', '0px'):  # n over k
            return Part(' '.join(part.text for part in parts), SUM)
        return Part(f'{_wrapped(parts[0], PRODUCT)}/{_wrapped(parts[1], ATOM)}', FRACTION)
    if kind in SCRIPTS and len(parts) > 1:
        return _scripted(kind, parts)
    if kind == 'mfenced':
        return _fenced(element, parts)
    if kind == 'mroot' and len(parts) == 2:
        index = parts[1].text.translate(ROOTS)
        return Part(
            f'{index if index.isdigit() or index == "ⁿ" else f"({index})"}√{_wrapped(parts[0], ATOM)}'
        )
    if kind == 'semantics' or kind == 'maction':
        chosen = element.get('selection', '1')
        return parts[min(int(chosen) if chosen.isdecimal() else 1, len(parts)) - 1] if parts else NOTHING
    if kind in ('mtable', 'mtr', 'mtd', 'mlabeledtr'):  # the label is the formula's number
        row = ' '.join(part.text for part in parts[kind == 'mlabeledtr' :])
        return Part(row, SUM) if kind != 'mtd' or len(parts) != 1 else parts[0]
    row = _row(parts)
    if kind == 'msqrt' or (kind == 'menclose' and element.get('notation') == 'radical'):
        return Part('√' + _wrapped(row, ATOM))
    return row


def _stray(text: str | None) -> Part | None:
    """What stands between the elements, where there should be nothing."""
    text = (text or '').strip(BLANK)
    return Part(text, _level(text, PRODUCT if len(text) > 1 else ATOM)) if text else None


def _token(element: etree._Element, kind: str) -> Part:
    text = element.text or ''
    if len(element):  # an entity, or markup within words
        text = ''.join(
            html.unescape(node.text or '') + (node.tail or '') * (node is not element)
            if not isinstance(node.tag, str)
            else (node.text or '') + (node.tail or '') * (node is not element)
            for node in element.iter()
        )
    if kind != 'mtext' or '\n' in text:
        text = text.strip(BLANK)
    if kind == 'mo':
        return Part('', is_unseen=True) if text and text in INVISIBLE else Part(text)
    return Part(text, _level(text, ATOM), is_word=len(text) > 1 and text.isalpha())


def _row(parts: Sequence[Part]) -> Part:
    """Parts side by side: as they are, but for white space that keeps numbers, words and fractions apart."""
    if len(parts) == 1:
        return parts[0]
    text, unseen, count, before = '', False, 0, NOTHING
    for part in parts:
        if part.is_unseen:
            unseen = True
            continue
        if not part.text:
            continue
        if text and _apart(text.rstrip(MARKS)[-1:], part.text.lstrip(MARKS)[:1], before, part, unseen):
            text += ' '
        text, unseen, count, before = text + part.text, False, count + 1, part
    if count == 1:
        return before
    return Part(text, _level(text, PRODUCT if text else ATOM))


def _apart(last: str, first: str, before: Part, part: Part, unseen: bool) -> bool:
    if FRACTION in (before.level, part.level):
        return (last.isalnum() or last in CLOSING) and (first.isalnum() or first in OPENING + '√')
    if not (last.isalnum() and first.isalnum()):
        return False
    words = before.is_word or part.is_word
    return (words and last.isalpha() and first.isalpha()) or (
        unseen and (words or (last.isdigit() and first.isdigit()))
    )


def _level(text: str, product: int) -> int:
    """How strongly a text binds; `product` where nothing in it, but for what is in brackets, adds or compares."""
    text = text.strip()
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
    if whole or text.replace('.', '').isdigit():
        return ATOM
    return product


def _wrapped(part: Part, level: int) -> str:
    """A part as it stands where only what binds so strongly may stand without brackets."""
    return part.text if part.level >= level else f'({part.text.strip()})'


def _fenced(element: etree._Element, parts: Sequence[Part]) -> Part:
    opening, closing = element.get('open', '('), element.get('close', ')')
    separators = ''.join(element.get('separators', ',').split())
    text = ''
    for number, part in enumerate(parts):
        text += separators[min(number, len(separators)) - 1] if number and separators else ' ' * (number > 0)
        text += part.text
    level = ATOM if opening.strip() and closing.strip() else _level(text, PRODUCT)
    return Part(opening + text + closing, level)


def _scripted(kind: str, parts: Sequence[Part]) -> Part:
    base, *scripts = parts
    if kind.startswith('mu') or kind == 'mover' or base.text in LARGE:
        # An accent, as a bar, stands behind its letter; limits stand in brackets.
        marks = [part.text for part in scripts if part.text and not any(map(str.isalnum, part.text))]
        limits = '..'.join(part.text for part in scripts if any(map(str.isalnum, part.text)))
        return Part(base.text + ''.join(marks) + (f'({limits})' if limits else ''), base.level)
    below = scripts[0] if kind != 'msup' else NOTHING
    above = scripts[-1] if kind != 'msub' else NOTHING
    base = Part(_wrapped(base, PRODUCT))
    return Part(base.text + _script(base, below, LOWERED) + _script(base, above, RAISED))


def _script(base: Part, part: Part, mark: str) -> str:
    """A superscript or subscript: in brackets where it is an expression, or would be a factor of a number."""
    text = part.text.strip()
    if not text:
        return ''
    is_factor = (base.text[-1:].isdigit() and text.isalpha()) or part.level < ATOM
    if part.level < PRODUCT or (mark == RAISED and is_factor):
        return f'({text})'
    return f'{mark}{text}{END}'


def _prescripts(parts: Sequence[Part], before: int) -> Part:
    """A base with what is set behind it and before it, as the 3 of 3-He."""
    base, *behind = parts if before < 0 else parts[:before]
    ahead = [] if before < 0 else parts[before + 1 :]

    def shown(scripts: Sequence[Part]) -> str:
        return ''.join(_script(NOTHING, p, RAISED if n % 2 else LOWERED) for n, p in enumerate(scripts))

    return Part(shown(ahead) + _wrapped(base, ATOM) + shown(behind))
