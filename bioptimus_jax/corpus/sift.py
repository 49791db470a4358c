"""First pass over the input: every file is read, judged record by record, and stored as a part.

Files are independent of one another here; what takes all of them to tell (the newest version of a record, duplicates)
is decided in `resolve` from the parts' columns. A part is named after its file's content and the settings, so that work
that was cut off goes on by file.
"""

import dataclasses
import hashlib
import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import pyarrow
import pyarrow.parquet

from bioptimus_jax.config.fields import meant
from bioptimus_jax.corpus.audit import Auditor
from bioptimus_jax.corpus.config import SPECIAL_ARTICLES, Corpus, HasCorpus
from bioptimus_jax.corpus.content import ContentJudge, content_files
from bioptimus_jax.corpus.content import check as check_content
from bioptimus_jax.corpus.documents import document_key
from bioptimus_jax.corpus.near import signatures
from bioptimus_jax.corpus.readers import read_file
from bioptimus_jax.corpus.records import MADE_ID, Record, made_id
from bioptimus_jax.corpus.sameness import comparable
from bioptimus_jax.corpus.stored import check_md5
from bioptimus_jax.errors import BrokenFile, ConfigError
from bioptimus_jax.hosts.workers import versions_of_packages
from bioptimus_jax.storage.files import atomic, digest, sha256
from bioptimus_jax.storage.hashing import hash64
from bioptimus_jax.text.words import count_words

# Why a record is not a document of the corpus: by its reader, by itself, among others. Its code is its place here.
REASONS = (
    '',
    *'bad_record no_abstract undated too_new deletion too_short too_long language benchmark deleted'.split(),
    *'superseded duplicate_id duplicate_text near_duplicate not_chosen'.split(),
    *'no_text erroneous category'.split(),  # of articles and notes
    'vague_date',
    *SPECIAL_ARTICLES,
    *'unread form'.split(),  # of no record: that the rest of a broken file is not read, and how a file is read
    *'no_field condition no_weight'.split(),  # by config.corpus.content
)
CODE = {reason: number for number, reason in enumerate(REASONS)}
KIND_CODE = {kind: number for number, kind in enumerate(('', *SPECIAL_ARTICLES))}
COLUMNS = pyarrow.schema(
    [
        ('id', pyarrow.string()),
        ('text', pyarrow.string()),  # empty where the reason says that it is not needed
        ('reason', pyarrow.uint8()),
        ('note', pyarrow.string()),
        ('version', pyarrow.int64()),
        ('revised', pyarrow.int64()),
        ('kind', pyarrow.uint8()),
        ('words', pyarrow.int32()),
        ('key', pyarrow.uint64()),  # of the id
        ('letters', pyarrow.uint64()),  # hash of the text as duplicates are compared
        ('draw', pyarrow.uint64()),  # place in a random order of all documents
        ('heldout', pyarrow.bool_()),
        ('id_made', pyarrow.bool_()),
        ('content', pyarrow.binary(16)),  # hash of id and text
        ('sentences', pyarrow.string()),  # JSON: the benchmark sentences in it
        ('not_read', pyarrow.string()),  # JSON: how many words of an article are not in its text, by name
        ('preference', pyarrow.float64()),  # the larger, the earlier it is chosen
        ('weight', pyarrow.float32()),  # how often it is in the training split
    ]
)
Row: TypeAlias = dict[str, Any]
"""A row of a table: the values of some of `COLUMNS`, or of all, by name."""
# What a row has in the other columns where its reader gave a reason.
NOT_JUDGED: Row = dict.fromkeys(COLUMNS.names, 0) | {
    'text': '',
    'heldout': False,
    'id_made': False,
    'content': bytes(16),
    'sentences': '',
    'not_read': '',
}
BATCH_RECORDS, BATCH_CHARACTERS = 1000, 4_000_000
FORMAT = 6  # of parts: other readers, rules or columns need another number


class _Prepared:
    """What every file of this process needs, set by `prepare`."""

    settings: Corpus
    folder: Path
    judge: 'Judge'
    decisive: str


_prepared = _Prepared()


@dataclasses.dataclass(frozen=True)
class SiftedFile:
    """What one input file gave: `table` (Parquet, `COLUMNS`) and, of its records without a reason, `signatures`.

    `damage`: why the file is broken, of which `table` has what can be read.
    """

    source: str
    table: Path
    signatures: Path
    damage: str = ''


@dataclasses.dataclass(frozen=True)
class Broken:
    """An input file that cannot be read, and why."""

    source: str
    message: str


def prepare(settings: Corpus, folder: Path) -> None:
    """Load what every file of this process needs. Raises InputError for bad audit files."""
    if settings.languages:
        language('')
    auditor = Auditor(settings.audit)
    _prepared.settings, _prepared.folder = settings, folder
    _prepared.judge, _prepared.decisive = Judge(settings, auditor), _decisive(settings, auditor)


def sift(
    path: Path, checksum: str, prefix: str, advance: Callable[[int], None] = lambda stored_bytes: None
) -> SiftedFile | Broken:
    """The part of one file: the one that is there, or a new one. `advance` is told the stored bytes consumed.

    `checksum` is the file's SHA-256. If broken files are skipped, the part has what can be read of one. Raises
    InputError for what its reader does not call a broken file.
    """
    settings, folder = _prepared.settings, _prepared.folder
    skip = settings.on_broken_file == 'skip'
    name = digest([checksum, path.name, prefix, _prepared.decisive])[:32]
    part = SiftedFile(path.name, folder / f'{name}.parquet', folder / f'{name}.signatures')
    try:
        if _is_whole(part.table):
            check_md5(path)  # its .md5 may be newer than the part; whoever reads the file checks it, too
            advance(path.stat().st_size)
        else:
            records = read_file(path, prefix, settings, advance)
            _store(part, _up_to_damage(records) if skip else records)
    except BrokenFile as error:
        return Broken(path.name, str(error))
    damage = _damage(part.table)
    return Broken(path.name, damage) if damage and not skip else dataclasses.replace(part, damage=damage)


def _up_to_damage(records: Iterator[Record]) -> Iterator[Record]:
    """The records of a file, and at the end of a broken one a record that says why. Raises BrokenFile where nothing of
    the file can be read."""
    some = False
    try:
        for record in records:
            some |= record.reason != 'form'
            yield record
    except BrokenFile as error:
        if not some:
            raise
        yield Record('', reason='unread', note=str(error))


def _damage(table: Path) -> str:
    """Why the file of a part is broken, '' if it is not."""
    file = pyarrow.parquet.ParquetFile(table)
    if not file.metadata.num_rows:
        return ''
    rows = file.read_row_group(file.num_row_groups - 1, ['reason', 'note'])
    reason, note = (column[-1].as_py() for column in rows.columns)
    return note if reason == CODE['unread'] else ''


def _is_whole(table: Path) -> bool:
    try:
        return table.is_file() and pyarrow.parquet.read_metadata(table) is not None
    except (OSError, pyarrow.ArrowException):  # cut off by a power failure
        return False


def _store(part: SiftedFile, records: Iterator[Record]) -> None:
    settings = _prepared.settings
    with (
        atomic(part.table, 'wb') as stored,  # gets its name last, and says that the part is whole
        atomic(part.signatures, 'wb') as signed,
        pyarrow.parquet.ParquetWriter(stored, COLUMNS) as table,
    ):
        for rows in _batches(records, _prepared.judge):
            table.write_batch(pyarrow.RecordBatch.from_pylist(rows, COLUMNS))
            if settings.near.threshold:
                texts = [row['text'] for row in rows if not row['reason']]
                signed.write(signatures(texts, settings.near).tobytes())


def _decisive(settings: Corpus, auditor: Auditor) -> str:
    """Digest of what decides about a part beside its file."""
    kept = dataclasses.asdict(settings)
    # What is decided when all files are sifted, or counts by its content: files and audited sentences.
    for later in ('inputs', 'on_broken_file', 'max_words', 'shards', 'audit'):
        del kept[later]
    # It says here only whether there are signatures; how near is too near is decided in `resolve`.
    kept['near']['threshold'] = settings.near.threshold > 0
    for paths in ('terms', 'scores'):
        del kept['content'][paths]
    files = [sha256(path) for path in content_files(settings.content)]
    sentences = sorted(map(dataclasses.astuple, auditor.sentences()))
    return digest([FORMAT, versions_of_packages(), kept, settings.audit.min_letters, sentences, files])


def _batches(records: Iterator[Record], judge: 'Judge') -> Iterator[list[Row]]:
    """Rows of as many records at a time as memory should hold."""
    batch: list[Record] = []
    characters = 0
    for record in records:
        batch.append(record)
        characters += len(record.text)
        if len(batch) == BATCH_RECORDS or characters > BATCH_CHARACTERS:
            yield judge.rows(batch)
            batch, characters = [], 0
    if batch:
        yield judge.rows(batch)


class Judge:
    """Decides about a record by itself."""

    def __init__(self, settings: Corpus, auditor: Auditor):
        self.settings, self.auditor, self.content = settings, auditor, ContentJudge(settings.content)

    def rows(self, records: Sequence[Record]) -> list[Row]:
        """The records as rows of `COLUMNS`."""
        rows = [self._row(record) for record in records]
        judged = [i for i, record in enumerate(records) if not record.reason]
        for i, same in zip(judged, comparable([records[i].text for i in judged]), strict=True):
            rows[i]['letters'] = hash64(same.decode(), purpose=b'letters')
        return rows

    def _row(self, record: Record) -> Row:
        row = NOT_JUDGED | {
            'id': record.id,
            'reason': CODE[record.reason],
            'note': record.note,
            'version': record.version,
            'revised': record.revised,
            'kind': KIND_CODE[record.kind],
            'key': document_key(record.id),
        }
        if record.reason:
            return row
        words = count_words(record.text)
        found = [dataclasses.asdict(sentence) for sentence in self.auditor.found_in(record.text)]
        row.update(
            words=words,
            draw=hash64(f'{self.settings.choice_seed} {record.id}', purpose=b'draw'),
            heldout=is_heldout(record.id, self.settings.heldout_fraction),
            id_made=record.id.startswith(MADE_ID) and record.id == made_id(record.text),
            content=_content(record),
            sentences=json.dumps(found, ensure_ascii=False) if found else '',
            not_read=json.dumps(record.not_read) if record.not_read else '',
            reason=CODE['benchmark' if found else self._reason(record.text, words)],
        )
        if not row['reason']:
            judged = self.content.judge(record.fields, document_key(record.id), record.text, words)
            row.update(
                reason=CODE[judged.reason],
                preference=judged.preference,
                weight=judged.weight,
                text='' if judged.reason else record.text,
            )
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
    return hash64(id, purpose=b'heldout') < fraction * 2**64


def language(text: str) -> str:
    """The ISO 639-1 code of the language that a text most likely is in."""
    import py3langid  # late: its model takes memory, and few ask for it

    return py3langid.classify(text)[0]


def check(experiment: HasCorpus) -> None:
    """What `check_settings` does."""
    check_settings(experiment.corpus)


def check_settings(settings: Corpus) -> None:
    """Raise ConfigError for a language that no text can be in, and what `check_content` does."""
    check_content(settings.content)
    if not (asked := settings.languages):
        return
    import py3langid

    known = sorted(code for code, _ in py3langid.rank(''))
    for code in asked:
        if code not in known:
            raise ConfigError(
                f'config.corpus.languages: {code!r} is not a code of a known language; known: {", ".join(known)}'
                f'{meant(code, known)}'
            )


def _content(record: Record) -> bytes:
    id, text = record.id.encode(), record.text.encode()
    return hashlib.blake2b(len(id).to_bytes(8, 'little') + id + text, digest_size=16).digest()
