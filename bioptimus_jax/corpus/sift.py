"""First pass over the input: every file is read, judged record by record, and stored as a part.

Files are independent of one another here; what takes all of them to tell (the newest version of a record, duplicates)
is decided in `resolve` from the parts' columns. A part is named after its file's content and the settings, so that work
that was cut off goes on by file.
"""

import dataclasses
import hashlib
import itertools
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow
import pyarrow.parquet

from bioptimus_jax.corpus.audit import Auditor, reduced
from bioptimus_jax.corpus.documents import document_key
from bioptimus_jax.corpus.near import signatures
from bioptimus_jax.corpus.readers import MADE_ID, read_file
from bioptimus_jax.corpus.records import Record
from bioptimus_jax.errors import BrokenFile
from bioptimus_jax.files import digest, sha256
from bioptimus_jax.schema import Corpus

# Why a record is no document of the corpus, in the order in which it is found out; its code is its place here.
REASONS = (
    '',
    'bad_record',
    'no_abstract',
    'undated',
    'too_new',
    'deletion',
    'too_short',
    'too_long',
    'language',
    'deleted',
    'superseded',
    'duplicate_id',
    'duplicate_text',
    'benchmark',
    'near_duplicate',
    'not_chosen',
)
CODE = {reason: number for number, reason in enumerate(REASONS)}
COLUMNS = pyarrow.schema(
    [
        ('id', pyarrow.string()),
        ('text', pyarrow.string()),  # empty where the reason says that it is not needed
        ('reason', pyarrow.uint8()),
        ('note', pyarrow.string()),
        ('version', pyarrow.int16()),
        ('words', pyarrow.int32()),
        ('key', pyarrow.uint64()),  # of the id
        ('letters', pyarrow.uint64()),  # hash of the text without punctuation, spaces and case
        ('draw', pyarrow.uint64()),  # place in a random order of all documents
        ('heldout', pyarrow.bool_()),
        ('id_made', pyarrow.bool_()),
        ('content', pyarrow.binary(16)),  # hash of id and text
        ('sentences', pyarrow.string()),  # JSON: the benchmark sentences in it
    ]
)
BATCH = 1000  # records

_state: dict[str, Any] = {}


@dataclasses.dataclass(frozen=True)
class Part:
    """What one input file gave: `table` (Parquet, `COLUMNS`) and, of its records without a reason, `signatures`."""

    source: str
    table: Path
    signatures: Path


@dataclasses.dataclass(frozen=True)
class Broken:
    """An input file that cannot be read, and why."""

    source: str
    message: str


def prepare(settings: Corpus, folder: Path) -> None:
    """Load what every file of this process needs. Raises InputError for bad audit files."""
    auditor = Auditor(settings.audit)
    _state.update(
        settings=settings,
        folder=folder,
        judge=Judge(settings, auditor),
        decisive=_decisive(settings, auditor),
    )


def sift(
    path: Path, prefix: str, advance: Callable[[int], None] = lambda stored_bytes: None
) -> Part | Broken:
    """The part of one file: the one that is there, or a new one. `advance` is told the stored bytes consumed.

    Raises InputError for what its reader does not call a broken file.
    """
    settings, folder = _state['settings'], _state['folder']
    name = digest([sha256(path), path.name, prefix, _state['decisive']])[:32]
    part = Part(path.name, folder / f'{name}.parquet', folder / f'{name}.signatures')
    if part.table.is_file():
        advance(path.stat().st_size)
        return part
    hidden = [p.with_name(f'.{p.name}.tmp') for p in (part.signatures, part.table)]
    try:
        with (
            open(hidden[0], 'wb') as signed,
            pyarrow.parquet.ParquetWriter(hidden[1], COLUMNS) as table,
        ):
            for rows in _batches(read_file(path, prefix, settings, advance), _state['judge']):
                table.write_batch(pyarrow.RecordBatch.from_pylist(rows, COLUMNS))
                if settings.near.threshold:
                    texts = [row['text'] for row in rows if not row['reason']]
                    signed.write(signatures(texts, settings.near).tobytes())
        for file, final in zip(hidden, (part.signatures, part.table), strict=True):
            file.replace(final)
    except BrokenFile as error:
        return Broken(path.name, str(error))
    finally:
        for file in hidden:
            file.unlink(missing_ok=True)
    return part


def _decisive(settings: Corpus, auditor: Auditor) -> str:
    """Digest of what decides about a part beside its file."""
    kept = dataclasses.asdict(settings)
    for later in ('inputs', 'on_broken_file', 'max_words', 'shards', 'audit'):
        del kept[later]
    kept['near']['threshold'] = settings.near.threshold > 0
    return digest([kept, settings.audit.min_letters, sorted(map(dataclasses.astuple, auditor.sentences()))])


def _batches(records: Iterator[Record], judge: 'Judge') -> Iterator[list[dict[str, Any]]]:
    while batch := list(itertools.islice(records, BATCH)):
        yield [judge.row(record) for record in batch]


class Judge:
    """Decides about a record by itself."""

    def __init__(self, settings: Corpus, auditor: Auditor):
        self.settings, self.auditor = settings, auditor

    def row(self, record: Record) -> dict[str, Any]:
        """The record as a row of `COLUMNS`."""
        row = dict.fromkeys(COLUMNS.names, 0) | {
            'id': record.id,
            'text': '',
            'reason': CODE[record.reason],
            'note': record.note,
            'version': record.version,
            'key': document_key(record.id),
            'heldout': False,
            'id_made': False,
            'content': bytes(16),
            'sentences': '',
        }
        if record.reason:
            return row
        words = len(record.text.split())
        letters = reduced(record.text)
        found = [dataclasses.asdict(sentence) for sentence in self.auditor.matches(letters)]
        row.update(
            words=words,
            # A text without letters or digits is compared as it is.
            letters=_hashed(letters or record.text, b'letters'),
            draw=_hashed(f'{self.settings.choice_seed} {record.id}', b'draw'),
            heldout=is_heldout(record.id, self.settings.heldout_fraction),
            id_made=record.id.startswith(MADE_ID),
            content=_content(record),
            sentences=json.dumps(found, ensure_ascii=False) if found else '',
            reason=CODE['benchmark' if found else self._reason(record.text, words)],
        )
        if not row['reason']:
            row['text'] = record.text
        return row

    def _reason(self, text: str, words: int) -> str:
        settings = self.settings
        if words < settings.min_words:
            return 'too_short'
        if settings.max_document_words and words > settings.max_document_words:
            return 'too_long'
        if settings.languages and language(text) not in settings.languages:
            return 'language'
        return ''


def is_heldout(id: str, fraction: float) -> bool:
    """Whether a document is held out, by a hash of its id that is independent of `document_key`."""
    return _hashed(id, b'heldout') < fraction * 2**64


def language(text: str) -> str:
    """The ISO 639-1 code of the language that a text most likely is in."""
    import py3langid  # late: its model takes memory, and few ask for it

    return py3langid.classify(text)[0]


def _hashed(text: str, purpose: bytes) -> int:
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8, person=purpose).digest(), 'little')


def _content(record: Record) -> bytes:
    id, text = record.id.encode(), record.text.encode()
    return hashlib.blake2b(len(id).to_bytes(8, 'little') + id + text, digest_size=16).digest()
