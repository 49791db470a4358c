"""XML of PubMed and PMC: how it is parsed, and text out of its markup.

Nothing outside a file is loaded, and one that declares entities of its own is refused.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import BinaryIO

from lxml import etree

from bioptimus_jax.corpus import mathml, scripts
from bioptimus_jax.corpus.records import BadRecord, squeezed
from bioptimus_jax.errors import BrokenFile
from bioptimus_jax.storage.parsing import PARSING

LONGEST_RECORD = 2**25  # bytes; the longest of seven real files has 46 kB, five thousand authors make some MB
# What is put around the text of an element; a formula that is displayed stands on a line of its own.
AROUND = {
    'sup': (scripts.RAISED, scripts.END),
    'sub': (scripts.LOWERED, scripts.END),
    'DispFormula': (' ', ' '),
}


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


def plain_text(element: etree._Element, brackets: str) -> str:
    """All text within an element in its order, white space squeezed to single spaces.

    `brackets` says which superscripts and subscripts stand in brackets, as `corpus.script_brackets`.
    """
    if not len(element):
        return ' '.join((element.text or '').split())
    found: list[str] = []
    _read(element, found)
    return scripts.shown(' '.join(''.join(found).split()), brackets)


def _read(element: etree._Element, found: list[str]) -> None:
    if element.text:
        found.append(element.text)
    for child in element:
        tag = child.tag
        if around := AROUND.get(tag):
            found.append(around[0])
            _read(child, found)
            found.append(around[1])
        elif not isinstance(tag, str):
            found.append(mathml.entity(child))
        elif tag == 'math' or tag.startswith(mathml.NAMESPACE):
            found.append(mathml.formula(child))
        else:
            _read(child, found)
        if tail := child.tail:
            found.append(tail)


def texts_at(element: etree._Element, places: Mapping[str, Sequence[str]]) -> dict[str, tuple[str, ...]]:
    """Name -> the texts of all elements at its paths, in their order."""
    return {
        name: tuple(squeezed(''.join(one.itertext())) for path in paths for one in element.iterfind(path))
        for name, paths in places.items()
    }
