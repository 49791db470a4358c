"""XML of PubMed and PMC: how it is parsed, and text out of its markup.

Nothing outside a file is loaded, and one that declares entities of its own is refused.
"""

import html
from collections.abc import Callable
from pathlib import Path
from typing import Any, BinaryIO

from lxml import etree

from bioptimus_jax.corpus.records import BadRecord
from bioptimus_jax.errors import BrokenFile

# Comments are dropped while parsing, so that the text around them is one piece. Limits on depth and on the size
# of one text stay: no record comes near them.
PARSING: dict[str, Any] = dict(
    load_dtd=False,
    no_network=True,
    resolve_entities=False,
    huge_tree=False,
    remove_comments=True,
    remove_pis=True,
)
LONGEST_RECORD = 2**25  # bytes; the longest of seven real files has 46 kB, five thousand authors make some MB
MATHML = '{http://www.w3.org/1998/Math/MathML}'
# White space of pretty-printed XML; authors' own in formulas is a no-break or thin space.
BLANK = ' \t\r\n'
NOT_SHOWN = ('annotation', 'annotation-xml')
# What stands in the text for an element, None for its own text.
Instead = Callable[[etree._Element], str | None]


def root_of(stream: BinaryIO) -> str:
    """The name of the outermost element, without its namespace.

    Raises BadRecord where entities are declared, etree.XMLSyntaxError for what is not XML up to there.
    """
    _, root = next(iter(etree.iterparse(stream, events=('start',), **PARSING)))
    declared = root.getroottree().docinfo.internalDTD
    if declared is not None and (names := [entity.name for entity in declared.iterentities()]):
        raise BadRecord(
            f'declares entities of its own ({", ".join(names[:3])}), which the files of PubMed and PMC never do and '
            'which can name other files or grow without end'
        )
    return root.tag.rpartition('}')[2]


def broken(path: Path, number: int, error: etree.XMLSyntaxError) -> BrokenFile:
    """What to raise where a file is not XML after so many records."""
    return BrokenFile(
        f'{path}: is cut off or not well-formed XML, after record {number} ({reason(error)}); fetch it again'
    )


def reason(error: etree.XMLSyntaxError) -> str:
    """What the parser says, in one line."""
    return ' '.join(str(error.msg).split())


def plain_text(element: etree._Element, instead: Instead = lambda element: None) -> str:
    """All text within an element in its order, white space squeezed to single spaces."""
    text = element.text or '' if not len(element) else ''.join(_pieces(element, instead))
    return ' '.join(text.split())


def _pieces(element: etree._Element, instead: Instead) -> list[str]:
    found = [element.text or '']
    for child in element:
        if not isinstance(child.tag, str):
            found.append(_entity(child))
        elif child.tag.startswith(MATHML):
            found.append(_math(child))
        elif child.tag == 'DispFormula':  # stands on a line of its own
            found += [' ', *_pieces(child, instead), ' ']
        elif (text := instead(child)) is not None:
            found.append(text)
        else:
            found += _pieces(child, instead)
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
