"""What is no plain text though it may be called so: PubTator and CoNLL are read, and all else that is known is refused.

Read as prose, markup, tags and gold annotations would be part of what a model answers to.
"""

import itertools
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from bioptimus_jax.errors import InputError
from bioptimus_jax.sets.columns import read_columns
from bioptimus_jax.sets.corpora import ENDINGS
from bioptimus_jax.sets.cutting import bare_text
from bioptimus_jax.sets.folders import OF_WORDS
from bioptimus_jax.sets.foreign.refused import MARKUP, READ
from bioptimus_jax.sets.roles import FOUND, Columns
from bioptimus_jax.sets.sentences import plain_name
from bioptimus_jax.sets.standoff import PUBTATOR_TEXT, apart, document_parts, title_and_abstract
from bioptimus_jax.sets.tagged import tagged_columns

STANDOFF = re.compile(r'(T\d+\t\S+ \d+ \d+[^\t]*\t.*|[REAMN*#]\S*\t.*)')
NamedText = tuple[str, str]
"""The name and the text of a document."""


def documents(path: Path | None, place: str, content: str) -> list[NamedText] | None:
    """The documents of a PubTator file, title and abstract as the one text that offsets refer to, or those of lines of
    words with tags, without these; None for plain text.

    Raises InputError for what is none of these, by its name or by what it holds.
    """
    name = plain_name(path) if path else ''
    lines = [line.rstrip('\r') for line in content.split('\n')]
    filled = [line for line in lines if line.strip()]
    if name.endswith(ENDINGS['PubTator']) or (filled and PUBTATOR_TEXT.fullmatch(filled[0])):
        return list(_pubtator(place, lines))
    if name.endswith('.ann') or (len(filled) > 1 and all(map(STANDOFF.fullmatch, filled))):
        raise InputError(f'{place}: holds annotations of BRAT; give the .txt beside it')
    columns = tagged_columns(lines)
    if columns or name.endswith(OF_WORDS):
        if path is None:
            number = lines.index(filled[0]) + 1
            raise InputError(
                f'{place}:{number}: holds a word with its tag in each line, as CoNLL has it; give it as a file'
            )
        return list(_of_words(path, columns or FOUND))
    if name.endswith('.tsv'):
        raise InputError(
            f'{place}: is a table, and which of its columns is the text is not known; name them in its first line '
            '("text"), or give the texts alone, as .txt or .csv'
        )
    if MARKUP.match(content):
        raise InputError(
            f'{place}: is XML or HTML, with tags in the text; save its text as .txt; read are {READ}'
        )
    if filled and filled[0].startswith('PMID- '):
        raise InputError(
            f'{place}: is in the MEDLINE format of PubMed; give the texts alone, as .jsonl with "text"; read are {READ}'
        )
    return None


def _of_words(path: Path, asked: Columns) -> Iterator[NamedText]:
    """The documents of a file of words with tags, a sentence a line, without the tags."""
    sentences = read_columns(path, asked).sentences
    stem = plain_name(path).rpartition('.')[0]
    for number, of_one in itertools.groupby(sentences, key=lambda sentence: sentence.document):
        name = f'{stem}-{number + 1}' if sentences[-1].document else stem
        yield name, '\n'.join(bare_text(sentence.words) for sentence in of_one)


def _pubtator(place: str, lines: Sequence[str]) -> Iterator[NamedText]:
    """Name, and title and abstract with a line feed between; annotations are not read."""
    for block in apart(lines):
        name, parts, strange = document_parts(block)
        if strange:
            raise InputError(
                f'{place}:{strange}: belongs to no document of PubTator (ID|t|title, ID|a|abstract) above it; a '
                'blank line is between documents'
            )
        yield name, title_and_abstract(parts)
