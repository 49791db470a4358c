"""What is no plain text though it may be called so: PubTator is read, and everything else that is known is refused.

Read as prose, markup, tags and gold annotations would be part of what a model answers to.
"""

import json
import re
from collections.abc import Iterator, Sequence

from bioptimus_jax.errors import InputError
from bioptimus_jax.sets.corpora import PUBTATOR
from bioptimus_jax.sets.roles import ENOUGH
from bioptimus_jax.sets.standoff import apart, title_and_abstract
from bioptimus_jax.sets.tags import OUTSIDE, is_tag

PACKED = {
    b'\x1f\x8b': 'compressed with gzip; unpack it',
    b'BZh': 'compressed with bzip2; unpack it',
    b'\xfd7zXZ': 'compressed with xz; unpack it',
    b'\x28\xb5\x2f\xfd': 'compressed with zstd; unpack it',
    b'PK\x03\x04': 'an archive, as .zip, .docx and .xlsx are; save its text as .txt',
    b'%PDF': 'a PDF; save its text as .txt',
    b'\xd0\xcf\x11\xe0': 'a document of Office; save its text as .txt',
    b'{\\rtf': 'RTF; save its text as .txt',
    b'PAR1': 'a table in Parquet; give its texts as .txt or .jsonl',
    b'ARROW1': 'a table in Arrow; give its texts as .txt or .jsonl',
}
"""First bytes of a file, and what to say of it."""
TABLES = ('.tsv', '.csv')
MARKUP = re.compile(
    r'\s*<(\?xml|!doctype|(html|head|body|article|collection|document|doc|pubmedarticle|pmc)(\s+[\w:.-]+=|\s*/?>))',
    re.IGNORECASE,
)
STANDOFF = re.compile(r'(T\d+\t\S+ \d+ \d+[^\t]*\t.*|[REAMN*#]\S*\t.*)')
PUBTATOR_LINE = re.compile(r'([^\s|]+)\|([ta])\|(.*)')
TYPED = re.compile(r'[BIMELSUW]-\S+')
FEW = 3
SPACES = re.compile(r'[ \t]+')
NamedText = tuple[str, str]
"""The name and the text of a document."""


def refuse_packed(place: str, content: bytes) -> None:
    """Raises InputError for a file that holds no text."""
    for first, said in PACKED.items():
        if content.startswith(first):
            raise InputError(f'{place}: is {said}')
    begin = content[:4096]
    if 4 * begin.count(0) > len(begin):  # half of UTF-16; a few are read as blanks, wherever they stand
        raise InputError(f'{place}: is no text, but binary or UTF-16; save it as UTF-8')


def documents(name: str, place: str, content: str) -> list[NamedText] | None:
    """The documents of a PubTator file, title and abstract as the one text that offsets refer to; None for plain text.

    Raises InputError for what is neither, by its name or by what it holds.
    """
    lines = [line.rstrip('\r') for line in content.split('\n')]
    filled = [line for line in lines if line.strip()]
    if name.endswith(PUBTATOR) or (filled and PUBTATOR_LINE.fullmatch(filled[0])):
        return list(_pubtator(place, lines))
    if name.endswith('.ann') or (len(filled) > 1 and all(map(STANDOFF.fullmatch, filled))):
        raise InputError(f'{place}: holds annotations of BRAT; give the .txt beside it')
    if name.endswith(TABLES):
        raise InputError(
            f'{place}: is a table, and which of its columns is the text is not known; give the texts alone, as .txt or '
            'as .jsonl with "text"'
        )
    if MARKUP.match(content):
        raise InputError(f'{place}: is XML or HTML, with tags in the text; save its text as .txt')
    if filled and filled[0].startswith('PMID- '):
        raise InputError(
            f'{place}: is in the MEDLINE format of PubMed; give the texts alone, as .jsonl with "text"'
        )
    if filled and _is_json(filled):
        raise InputError(f'{place}: holds JSON, but is not called so; rename it to .json or .jsonl')
    if tagged := _tagged(lines):
        raise InputError(
            f'{place}:{tagged}: holds a word with its tag in each line, as CoNLL has it, and no text; give the words '
            'alone, as .jsonl with "text"'
        )
    return None


def _pubtator(place: str, lines: Sequence[str]) -> Iterator[NamedText]:
    """Name, and title and abstract with a line feed between; annotations are not read."""
    for block in apart(lines):
        parts: dict[str, str] = {}
        name = ''
        for number, line in block:
            match = PUBTATOR_LINE.fullmatch(line)
            if match and (not name or match[1] == name) and match[2] not in parts:
                name, parts[match[2]] = match[1], match[3]
            elif match or line.split('\t')[0] != name:
                raise InputError(
                    f'{place}:{number}: belongs to no document of PubTator (ID|t|title, ID|a|abstract) above it; a '
                    'blank line is between documents'
                )
        yield name, title_and_abstract(parts)


def _is_json(filled: Sequence[str]) -> bool:
    if filled[0].lstrip()[:1] not in ('{', '['):
        return False
    for text in (filled[0], '\n'.join(filled)):
        try:
            return isinstance(json.loads(text), dict | list)
        except (ValueError, RecursionError):
            continue
    return False


def _tagged(lines: Sequence[str]) -> int:
    """The number of the first line of a file in which every line is a word with its tag, 0 for another file."""
    rows = [
        (number, SPACES.split(line.strip()))
        for number, line in enumerate(lines, 1)
        if line.strip() and not line.startswith(('-DOCSTART-', '#'))
    ]
    width = len(rows[0][1]) if rows else 0
    # In few lines of text a column may be tags by chance, as of one line with L-arginine in it.
    if len(rows) < FEW or width < 2 or any(len(columns) != width for _, columns in rows):
        return 0
    for column in zip(*(columns for _, columns in rows), strict=True):
        # Any line of a text may end with a capital letter.
        bare = len(rows) >= ENOUGH and OUTSIDE in column and all(len(tag) == 1 for tag in column)
        typed = bare or any(map(TYPED.fullmatch, column))
        if typed and all(map(is_tag, column)):
            return rows[0][0]
    return 0
