"""Text out of marked-up XML: italics, sub- and superscripts and MathML as the characters a reader sees, in one line."""

import html

from lxml import etree

MATHML = '{http://www.w3.org/1998/Math/MathML}'
# White space of pretty-printed XML; authors' own in formulas is a no-break or thin space.
BLANK = ' \t\r\n'
NOT_SHOWN = ('annotation', 'annotation-xml')


def plain_text(element: etree._Element) -> str:
    """All text within an element in its order, white space squeezed to single spaces."""
    text = element.text or '' if not len(element) else ''.join(_pieces(element))
    return ' '.join(text.split())


def _pieces(element: etree._Element) -> list[str]:
    found = [element.text or '']
    for child in element:
        if not isinstance(child.tag, str):
            found.append(_entity(child))
        elif child.tag.startswith(MATHML):
            found.append(_math(child))
        elif child.tag == 'DispFormula':  # stands on a line of its own
            found += [' ', *_pieces(child), ' ']
        else:
            found += _pieces(child)
        found.append(child.tail or '')
    return found


def _entity(node: etree._Element) -> str:
    # An entity of the DTD, which is not loaded; those of HTML have the same names.
    return html.unescape(node.text or '')


def _math(element: etree._Element) -> str:
    """A formula as a line of text: fractions with a slash, brackets where MathML implies them."""
    kind = element.tag.rpartition('}')[2]
    if kind in NOT_SHOWN:
        return ''
    if kind == 'mspace':
        return ' '
    own = element.text or ''
    own = own if kind == 'mtext' and '\n' not in own else own.strip(BLANK)
    parts: list[str] = []
    before = None
    for child in element:
        if not isinstance(child.tag, str):
            own += _entity(child) + (child.tail or '').strip(BLANK)
            continue
        if child.tag.endswith('}mprescripts'):
            before = len(parts)
        parts.append(_math(child) + (child.tail or '').strip(BLANK))
    if before is not None:  # what comes last is set before the base, as the 3 of 3-He
        parts = parts[before:] + parts[:before]
    if kind == 'mfenced':
        separator = element.get('separators', ',').strip()[:1]
        return own + element.get('open', '(') + separator.join(parts) + element.get('close', ')')
    text = own + ('/' if kind == 'mfrac' else '').join(parts)
    if kind == 'msqrt':
        return '√' + text
    return text + ' ' if kind in ('mtr', 'mtd') else text
