"""Texts that are published with marks, without the marks: PubTator, and words with their tags in columns."""

import collections
import itertools
import shlex
from collections.abc import Iterator
from pathlib import Path

from bioptimus_jax.corpus.config import Corpus
from bioptimus_jax.corpus.dates import undated, without_dates
from bioptimus_jax.corpus.lines import Lines, joined_documents, lines, peeked
from bioptimus_jax.corpus.records import Record, squeezed
from bioptimus_jax.corpus.stored import Advance
from bioptimus_jax.errors import BrokenFile, InputError
from bioptimus_jax.sets.columns import read_columns
from bioptimus_jax.sets.corpora import FORMS, is_dataset, split_source, texts_file
from bioptimus_jax.sets.cutting import bare_text
from bioptimus_jax.sets.folders import BESIDE_TEXTS, MARKS, WORDS
from bioptimus_jax.sets.roles import FOUND, Columns
from bioptimus_jax.sets.sentences import plain_suffix
from bioptimus_jax.sets.standoff import apart, document_parts
from bioptimus_jax.sets.tagged import tagged_columns

SAMPLE = 400  # lines
OF_COLUMNS = ('columns', WORDS)
OF_ENTITIES = (*OF_COLUMNS, 'PubTator', *MARKS)
"""Forms of entity sets that are read as text."""
SAID = 'words with tags in columns; its sentences are read, the tags are not'


def training_files(folder: Path) -> list[Path]:
    """The files of the train split, where the folder is a set of entities; its other splits are for scores alone.

    A folder of anything else has none. Raises InputError for a file in which not every line is a word with its tag.
    """
    if not is_dataset(folder):
        return []
    form, source = split_source(folder, 'train')
    if form not in OF_ENTITIES or texts_file(folder, 'train'):
        return []
    files = [file for file in FORMS[form].files(source, 'train') if plain_suffix(file) not in BESIDE_TEXTS]
    for file in files if form in OF_COLUMNS else ():
        sample, _ = peeked(lines(file, 'utf-8', lambda stored_bytes: None), SAMPLE)
        if not tagged_columns(line for _, line in sample):
            raise InputError(
                f'{file}: not every line is a word with its tag; `bioptimus lint '
                f'{shlex.quote(f"--sets={folder.parent}")}` says what is wrong in it'
            )
    return files


def pubtator(numbered: Lines, settings: Corpus) -> Iterator[Record]:
    """The title and the abstract of every document; mentions and relations are left out."""
    for block in apart(line for _, line in numbered):
        name, parts, strange = document_parts(block)
        if strange:
            note = (
                f'line {strange}: is neither a title (ID|t|...), an abstract (ID|a|...), nor a mention of it'
            )
            yield Record('', reason='bad_record', note=note)
            continue
        text = '\n'.join(filter(None, map(squeezed, parts.values())))
        reason = undated(text, settings)
        yield Record(name, '' if reason else text, reason=reason)


def sentences(path: Path, whole: Lines, asked: Columns, prefix: str, settings: Corpus) -> Iterator[Record]:
    """Documents as the file marks them, or of `words_per_document` words or more, with a line for each sentence.

    `whole`: the lines of the file; `asked`: which columns are read. Raises BrokenFile if the file is not a set.
    """
    # To the end: it counts what was read, and finds a file that is cut off.
    collections.deque(whole, maxlen=0)
    try:
        found = read_columns(path, asked).sentences
    except InputError as error:
        raise BrokenFile(str(error)) from error
    yield Record('', reason='form', note=SAID)
    yield from without_dates(settings)
    texts = [(sentence.document, bare_text(sentence.words)) for sentence in found]
    if not any(document for document, _ in texts):
        yield from joined_documents((text for _, text in texts), prefix, settings)
        return
    for document, own in itertools.groupby(texts, lambda text: text[0]):
        yield Record(f'{prefix}-{document}', '\n'.join(text for _, text in own))


def read(path: Path, prefix: str, settings: Corpus, advance: Advance) -> Iterator[Record]:
    """The documents of a file with an ending such as .conll. Raises BrokenFile if its lines are not words with tags."""
    sample, whole = peeked(lines(path, settings.encoding, advance), SAMPLE)
    asked = tagged_columns(line for _, line in sample) or FOUND
    return sentences(path, whole, asked, prefix, settings)
