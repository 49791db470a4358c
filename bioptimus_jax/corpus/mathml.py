"""Formulas in MathML's presentation form, each as a line of text that says the same: `2 3/4`, `(a-b)/(c+d)`, `√(x+1)`.

Brackets stand where precedence asks for them. Superscripts and subscripts are marked as those of the text around a
formula are, so that `scripts.shown` decides about all of them alike.
"""

import html
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
LARGE = tuple('∑∏∐∫∬∭∮⋃⋂⨁⨂')  # whose scripts are limits
MARKS = RAISED + LOWERED + END
OPENING, CLOSING = '([{⟨' + RAISED + LOWERED, ')]}⟩' + END
SUMS = frozenset('+-−–±∓=<>≤≥≪≫≈≠≅≡∼~→←↔⇒⇔⟶∈∉⊂⊆∝,;:|∣∪∩∧∨&' + BLANK + '\xa0')
ROOTS = str.maketrans('0123456789n', '⁰¹²³⁴⁵⁶⁷⁸⁹ⁿ')
LONGEST = 2000  # characters of a part in which signs are looked for: beyond, it stands in brackets
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
    return _whole(element, kind, parts, before) if parts else NOTHING


def _whole(element: etree._Element, kind: str, parts: list[Part], before: int | None) -> Part:
    """What its parts make of an element; those behind `before` are set before its first."""
    if kind == 'mmultiscripts':
        return _prescripts(parts, before)
    if kind == 'mfrac' and len(parts) == 2:
        if (element.get('linethickness') or '1')[0] == '0':  # n over k
            return Part(f'{parts[0].text} {parts[1].text}', SUM)
        return Part(f'{_wrapped(parts[0], PRODUCT)}/{_wrapped(parts[1], ATOM)}', FRACTION)
    if kind in SCRIPTS and len(parts) > 1:
        return _scripted(kind, parts)
    if kind == 'mfenced':
        return _fenced(element, parts)
    if kind == 'mroot' and len(parts) == 2:
        index = parts[1].text.translate(ROOTS)
        shown = index if index.isdigit() or index == 'ⁿ' else f'({index})'
        return Part(f'{shown}√{_wrapped(parts[0], ATOM)}')
    if kind in ('semantics', 'maction'):
        chosen = element.get('selection', '1')
        return parts[min(int(chosen[:3]) if is_number(chosen) else 1, len(parts)) - 1]
    if kind in TABLES:  # the first cell of a labelled row is the formula's number
        parts = [Part(' '.join(part.text for part in parts[kind == 'mlabeledtr' :]), SUM)]
    row = _row(parts)
    if kind == 'msqrt' or (kind == 'menclose' and element.get('notation') == 'radical'):
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
    return Part(text, level, is_word=len(text) > 1 and text.isalpha())


def _row(parts: Sequence[Part]) -> Part:
    """Parts side by side: as they are, but for white space that keeps numbers, words and fractions apart."""
    shown: list[str] = []
    unseen, before = False, NOTHING
    for part in parts:
        if part.is_unseen:
            unseen = True
        elif part.text:
            if shown and _apart(before, part, unseen):
                shown.append(' ')
            shown.append(part.text)
            unseen, before = False, part
    text = ''.join(shown)
    return before if text == before.text else Part(text, _level(text, PRODUCT))


def _apart(before: Part, part: Part, unseen: bool) -> bool:
    """Whether white space has to stand between two parts; `unseen`: the operator between them cannot be seen."""
    last, first = before.text.rstrip(MARKS)[-1:], part.text.lstrip(MARKS)[:1]
    if FRACTION in (before.level, part.level):
        return (last.isalnum() or last in CLOSING) and (first.isalnum() or first in OPENING + '√')
    if not (last.isalnum() and first.isalnum()):
        return False
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


def _prescripts(parts: Sequence[Part], before: int | None) -> Part:
    """A base with what is set behind it and before it, as the 3 of 3-He."""
    base, *behind = parts[:before] or [NOTHING]
    ahead = [] if before is None else parts[before + 1 :]

    def shown(scripts: Sequence[Part]) -> str:
        return ''.join(_script(NOTHING, p, RAISED if n % 2 else LOWERED) for n, p in enumerate(scripts))

    return Part(shown(ahead) + _wrapped(base, ATOM) + shown(behind))
