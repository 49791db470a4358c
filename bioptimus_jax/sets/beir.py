"""Sets for retrieval in BEIR's layout: corpus.jsonl, queries.jsonl and qrels/test.tsv, as its data sets come.

A line of corpus.jsonl is {"_id", "title", "text"}, of queries.jsonl {"_id", "text"}; qrels has a header and lines of
query-id TAB corpus-id TAB score. Only the judgements of test are read, as nothing is learned from such a set.
"""

import dataclasses
from collections.abc import Iterator, Mapping
from pathlib import Path

from bioptimus_jax.errors import InputError
from bioptimus_jax.progress.console import numbered
from bioptimus_jax.storage.files import numbered_jsonl

FORM, RETRIEVAL = 'BEIR', 'retrieval'
"""The form of the files, and the task of sets in it."""
CORPUS, QUERIES, JUDGED = 'corpus.jsonl', 'queries.jsonl', 'qrels/test.tsv'
REMEDY = 'correct the line, or fetch the set again'
COLUMNS = 3


@dataclasses.dataclass(frozen=True)
class Documents:
    """What is searched: ids and texts, in the order of the file."""

    ids: tuple[str, ...]
    texts: tuple[str, ...]


@dataclasses.dataclass(frozen=True)
class Query:
    """A query: `words` is its text alone, `answers` the judged documents with their grades, (id, grade) each.

    `documents`: those that are searched, the same for all queries of a set.
    """

    id: str
    words: tuple[str, ...]
    answers: tuple[tuple[str, int], ...]
    documents: Documents = dataclasses.field(repr=False, compare=False)
    document: int = 0


@dataclasses.dataclass(frozen=True)
class Retrieval:
    """A set: the queries of test that have a relevant document. `notes`: what was counted while reading."""

    name: str
    documents: Documents
    test: tuple[Query, ...]
    notes: tuple[str, ...]
    train: tuple[Query, ...] = ()
    devel: tuple[Query, ...] = ()


def is_one(folder: Path) -> bool:
    """Whether a folder has such a set."""
    return all((folder / name).is_file() for name in (CORPUS, QUERIES))


def files(folder: Path) -> list[Path]:
    """What it is read from."""
    return [folder / name for name in (CORPUS, QUERIES, JUDGED)]


def read(name: str, folder: Path) -> Retrieval:
    """The set. Raises InputError that names file and line."""
    texts, queries = _texts(folder / CORPUS), _texts(folder / QUERIES)
    documents = Documents(tuple(texts), tuple(texts.values()))
    judged: dict[str, dict[str, int]] = {}
    absent = 0
    for where, query, document, grade in _judgements(folder / JUDGED):
        if query not in queries:
            raise InputError(f'{where}: the query {query!r:.60} is not in {QUERIES}; {REMEDY}')
        if judged.setdefault(query, {}).setdefault(document, grade) != grade:
            raise InputError(
                f'{where}: {query!r:.60} and {document!r:.60} are judged twice, with other grades; {REMEDY}'
            )
        absent += document not in texts and grade > 0
    relevant = {query: found for query, found in judged.items() if max(found.values()) > 0}
    if not relevant:
        raise InputError(f'{folder / JUDGED}: no document is relevant to any query; {REMEDY}')
    test = tuple(
        Query(query, (queries[query],), tuple(sorted(found.items())), documents)
        for query, found in relevant.items()
    )
    notes = [
        f'{numbered(len(documents.ids), "document")}, {numbered(len(test), "query")} of test, '
        f'{numbered(sum(len(q.answers) for q in test), "judgement")}'
    ]
    if left_out := len(judged) - len(test):
        notes.append(f'{numbered(left_out, "query")} without a relevant document are left out')
    if absent:
        notes.append(
            f'{numbered(absent, "relevant document")} not in {CORPUS}; they count as not found, as in trec_eval'
        )
    return Retrieval(name, documents, test, tuple(notes))


def _texts(file: Path) -> dict[str, str]:
    """Id -> title and text. Raises InputError."""
    found: dict[str, str] = {}
    for number, record in _lines(file):
        values = [record.get(key, '') for key in ('_id', 'title', 'text')]
        if not all(isinstance(value, str) for value in values) or not values[0]:
            raise InputError(f'{file}, line {number}: needs an "_id" and a "text" that are strings; {REMEDY}')
        if values[0] in found:
            raise InputError(f'{file}, line {number}: the "_id" {values[0]!r:.60} is there twice; {REMEDY}')
        found[values[0]] = f'{values[1]} {values[2]}'.strip()
    if empty := next((name for name, text in found.items() if not text), None):
        raise InputError(f'{file}: {empty!r:.60} has neither a "title" nor a "text"; {REMEDY}')
    if not found:
        raise InputError(f'{file}: is empty; {REMEDY}')
    return found


def _lines(file: Path) -> Iterator[tuple[int, Mapping]]:
    try:
        yield from numbered_jsonl(file, REMEDY)
    except OSError as error:
        raise InputError(f'{file}: cannot be read ({error.strerror}); {REMEDY}') from error


def _judgements(file: Path) -> Iterator[tuple[str, str, str, int]]:
    """Where it stands, query, document and grade of each line. Raises InputError."""
    try:
        lines = file.read_text('utf-8').splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(
            f'{file}: cannot be read ({error}); a set in this layout has judgements there'
        ) from error
    for number, line in enumerate(lines, 1):
        where, cells = f'{file}, line {number}', line.split('\t')
        if not line.strip() or (number == 1 and cells[-1].strip() == 'score'):
            continue
        if len(cells) != COLUMNS or not cells[2].strip().lstrip('-').isdecimal():
            raise InputError(f'{where}: needs query-id TAB corpus-id TAB score, a whole number; {REMEDY}')
        yield where, cells[0], cells[1], int(cells[2])
