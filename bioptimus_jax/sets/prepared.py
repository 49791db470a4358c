"""NER sets that TFDS has prepared as ArrayRecord: a feature of tokens beside one of tags, read without TensorFlow."""

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from bioptimus_jax.errors import InputError
from bioptimus_jax.progress.console import numbered
from bioptimus_jax.sets.columns import count_beginnings
from bioptimus_jax.sets.sentences import NAMES, Sentence, SplitReading, of_devel
from bioptimus_jax.sets.tags import OUTSIDE, is_tag
from bioptimus_jax.storage.files import read_json

TOKENS = ('tokens', 'words')
TAGS = ('tags', 'ner_tags', 'ner', 'ner_labels', 'labels', 'label')
DOCUMENTS = ('doc_id', 'document_id', 'document', 'doc', 'pmid')
"""Keys and columns that name the document of a sentence; "id" numbers sentences."""

FEATURES = re.compile(r'tensorflow_datasets\.')


def read_prepared(folder: Path, split: str) -> SplitReading:
    """One split of a TFDS folder, tags as they stand there. Raises InputError with the number of the record."""
    import tensorflow_datasets as tfds

    _require_known_features(folder / 'features.json')
    try:
        builder = tfds.builder_from_directory(str(folder))
        name = next((n for n in NAMES[split] if n in builder.info.splits), '')
        records = builder.as_data_source(name) if name else []
    except Exception as error:  # the library raises whatever its readers do
        reason = (str(error).splitlines() or [type(error).__name__])[0]
        raise InputError(
            f'{folder}: cannot be read as a TFDS folder ({reason}); prepare it with file_format array_record'
        ) from error
    if not name:
        raise InputError(f'{folder}: has no split {" or ".join(NAMES[split])}')
    columns = [next((n for n in names if n in builder.info.features), '') for names in (TOKENS, TAGS)]
    if not all(columns):
        raise InputError(f'{folder}: needs a feature of {" or ".join(TOKENS)} and one of {" or ".join(TAGS)}')
    names = getattr(getattr(builder.info.features[columns[1]], 'feature', None), 'names', None)
    document = next((n for n in DOCUMENTS if n in builder.info.features), '')

    def given() -> Iterator[Tagged]:
        for number in range(len(records)):
            record = records[number]
            words, tags = (record[column] for column in columns)
            spelled = [names[tag] if names else tag.decode('utf-8') for tag in tags]
            source = record[document] if document else ''
            yield Tagged(
                f'{folder}: record {number} of {name}',
                [word.decode('utf-8') for word in words],
                spelled,
                source.decode('utf-8') if isinstance(source, bytes) else str(source),
            )

    return gathered_sentences(folder / name, given())


class Tagged(NamedTuple):
    """A sentence of a file: `where` is for messages, `source` the name of its document, '' where nothing says it."""

    where: str
    words: Sequence[str]
    tags: Sequence[str]
    source: str = ''


def gathered_sentences(place: Path, records: Iterable[Tagged]) -> SplitReading:
    """The sentences of records; one that names no document belongs to that before it. Records without a word are left
    out and counted. Raises InputError.
    """
    sentences = list[Sentence]()
    numbers, current = dict[str, int](), ''
    for where, words, tags, source in records:
        if flaw := _flaw(words, tags):
            raise InputError(f'{where}: {flaw}')
        current = source or current
        document = numbers.setdefault(current, len(numbers)) if current else 0
        sentences.append(Sentence(tuple(words), tuple(tags), document, source=current))
    repairs = {'records without a word': sum(not s.words for s in sentences)}
    whole = tuple(s for s in sentences if s.words)
    if not whole:
        raise InputError(f'{place}: holds no sentence{of_devel(place)}')
    return SplitReading(
        whole,
        count_beginnings(tag for s in whole for tag in (*s.tags, OUTSIDE)),
        {k: v for k, v in repairs.items() if v},
    )


def _flaw(words: Sequence[str], tags: Sequence[str]) -> str:
    """What is wrong with a sentence, '' where nothing is."""
    wrong = next((tag for tag in tags if not is_tag(tag)), None)
    if wrong is not None:
        number = '; it is a number, and the file does not say its name: write the tags' * wrong.isdecimal()
        return f'unknown tag {wrong[:60]!r}{number}'
    if len(words) != len(tags):
        return f'{numbered(len(words), "word")}, {numbered(len(tags), "tag")}'
    return '' if all(words) else 'an empty word'


def _require_known_features(file: Path) -> None:
    """Raise InputError for features of classes that TFDS would import from elsewhere, and so run."""

    def names(value: Any, key: str = '') -> Iterator[Any]:
        if isinstance(value, dict):
            for name, inner in value.items():
                yield from names(inner, name)
        elif isinstance(value, list):
            for inner in value:
                yield from names(inner)
        elif key in ('pythonClassName', 'python_class_name', 'type', 'proto_cls'):
            yield value
        elif key == 'json' and isinstance(value, str):  # JSON within JSON
            yield from names(json.loads(value))

    try:
        foreign = [name for name in names(read_json(file)) if not FEATURES.match(str(name))]
    except (ValueError, RecursionError) as error:
        raise InputError(f'{file}: is damaged ({error}); prepare the set again') from error
    if foreign:
        raise InputError(
            f'{file}: names the class {str(foreign[0])[:60]!r}; only features of TFDS itself are read'
        )


def prepared_files(folder: Path, split: str) -> list[Path]:
    """The files of a TFDS folder that decide a split: its records and the metadata."""
    marks: list[Any] = [f'-{name}.' for name in NAMES[split]]
    return sorted(p for p in folder.iterdir() if p.suffix == '.json' or any(m in p.name for m in marks))
