"""Stage `corpus`: sift every file, resolve what takes all of them, write the documents; a count for every reason."""

import contextlib
import dataclasses
import hashlib
import itertools
import json
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow.parquet

from bioptimus_jax.corpus.audit import Auditor, audit_files
from bioptimus_jax.corpus.config import SPECIAL_ARTICLES, Corpus, HasCorpus, enough_held_out
from bioptimus_jax.corpus.content import content_files
from bioptimus_jax.corpus.documents import (
    CORPUS_SPLITS,
    Document,
    shard_lengths,
    shard_path,
    stored_count,
    write_metadata,
    write_shard,
)
from bioptimus_jax.corpus.readers import FORMATS, ending_of, input_files, named_files
from bioptimus_jax.corpus.resolve import Verdicts, resolve
from bioptimus_jax.corpus.sift import CODE, KIND_CODE, REASONS, Broken, Row, SiftedFile, prepare, sift
from bioptimus_jax.corpus.stored import md5_beside
from bioptimus_jax.errors import InputError
from bioptimus_jax.hosts.config import Runtime
from bioptimus_jax.hosts.workers import open_workers
from bioptimus_jax.progress.console import Console, numbered
from bioptimus_jax.records.corpus import AuditedDocument, AuditedSentence
from bioptimus_jax.records.counts import AuditCounts, CorpusCounts, StageResult
from bioptimus_jax.run.folder import Run
from bioptimus_jax.run.shipped import plug_ins
from bioptimus_jax.storage.files import Checksums, JsonObject, read_json, write_json, write_jsonl

AUDIT_FILE, BAD_RECORDS_FILE, BROKEN_FILES_FILE = 'audit.jsonl', 'bad_records.jsonl', 'broken_files.jsonl'
NAMED_IN_MESSAGE = 5
AGAIN = '#'
"""What stands between the id of a document and the number of the time that it comes, from the second on."""
FEWEST_SHARDS, DOCUMENTS_PER_SHARD = 4, 100_000
DOCUMENTS_PER_WORKER = 10_000


def external_inputs(experiment: HasCorpus) -> dict[str, Path | str]:
    """What outside the run decides the corpus: the inputs, then the audited NER files, and the code of plug-ins that
    read inputs.

    A checksum beside an input decides, too, where a file that disagrees with it is left out.
    """
    inputs = input_files(experiment.corpus)
    checksums = [md5_beside(path) for path in inputs]
    skip = experiment.corpus.on_broken_file == 'skip'
    beside = [*audit_files(experiment.corpus.audit), *content_files(experiment.corpus.content)]
    files = [*inputs, *(p for p in checksums if skip and p.is_file()), *beside]
    plugged = sorted({ending_of(path) for path in inputs}.intersection(FORMATS.added))
    return {
        **{f'{number}:{path.name}': path for number, path in enumerate(files)},
        **plug_ins(('format', ending, FORMATS) for ending in plugged),
    }


def build(run: Run[HasCorpus], folder: Path) -> StageResult:
    """Write `documents/`, and lists of what was left out by the audit or could not be read; returns counts and the
    digest of the documents in order.

    The result depends on the inputs and the corpus settings only. Raises InputError where nothing is left.
    """
    settings, runtime = run.config.corpus, run.config.runtime
    console, scratch = run.console, run.scratch('corpus')
    parts, broken = _sift_all(settings, runtime, scratch, run.checksums(), console)
    if not parts:
        raise InputError(f'{", ".join(settings.inputs)}: none of the files can be read; see messages above')
    verdicts = resolve(console, settings, parts, scratch)
    _say_forms(console, parts, verdicts)
    in_part = [Broken(part.source, part.damage) for part in parts if part.damage]
    found = _count(verdicts, len(parts), len(broken), len(in_part))
    _require_documents(settings, found)
    written: dict[str, list[Shard]] = {}
    for split in CORPUS_SPLITS:
        planned = _planned(folder, scratch, split, verdicts.split(split), settings.shards)
        written[split] = _write_split(split, planned, parts, verdicts, runtime, console)
    write_metadata(folder, {split: [s.documents for s in shards] for split, shards in written.items()})
    not_read = sum((shard.not_read for shards in written.values() for shard in shards), Counter[str]())
    counts = dataclasses.replace(
        found,
        words={split: sum(shard.words for shard in shards) for split, shards in written.items()},
        ids_made=sum(shard.ids_made for shards in written.values() for shard in shards),
        words_not_read=dict(sorted(not_read.items())),
        audit=_write_audit(folder, settings, parts, verdicts),
    )
    bad = _rows(_left_out(parts, verdicts, 'bad_record'), ('id', 'note'))
    write_jsonl(folder / BAD_RECORDS_FILE, ({'file': part.source, **row} for part, row in bad))
    write_jsonl(
        folder / BROKEN_FILES_FILE, ({'file': b.source, 'message': b.message} for b in broken + in_part)
    )
    console.say(f'corpus: {_summary(counts)}')
    if settings.heldout_fraction and not counts.heldout:
        console.say(
            f'corpus: WARNING: pre-training cannot be evaluated, as none of {numbered(counts.train, "document")} is '
            f'held out; raise config.corpus.heldout_fraction to {enough_held_out(counts.train):.2g}, and give --replace'
        )
    content = [
        hashlib.sha256(b''.join(shard.contents for shard in written[split])) for split in CORPUS_SPLITS
    ]
    return StageResult(counts, hashlib.sha256(b''.join(one.digest() for one in content)).hexdigest())


def _absolute(settings: Corpus) -> Corpus:
    """The settings with paths that hold in a worker of a cluster, which has a working directory of its own."""

    def absolute(path: str) -> str:
        return path and str(Path(path).expanduser().absolute())

    content = dataclasses.replace(
        settings.content,
        terms=absolute(settings.content.terms),
        scores=tuple(map(absolute, settings.content.scores)),
    )
    audit = dataclasses.replace(settings.audit, folder=absolute(settings.audit.folder))
    return dataclasses.replace(settings, audit=audit, content=content)


def _sift_all(
    settings: Corpus, runtime: Runtime, scratch: Path, checksums: Checksums, console: Console
) -> tuple[list[SiftedFile], list[Broken]]:
    """The parts of all files in order, made in worker processes. Raises InputError with the list of broken files."""
    files = list(named_files(input_files(settings)))
    sizes = [path.stat().st_size for path, _ in files]
    progress = console.progress('corpus', sum(sizes) / 1000, 'kB')
    scratch.mkdir(exist_ok=True)
    found: list[SiftedFile | Broken] = []

    def advance(stored_bytes: int) -> None:
        progress.update(stored_bytes / 1000)
        console.check_stop()

    arguments = (_absolute(settings), scratch.absolute())
    with open_workers(runtime, len(files), prepare, arguments) as workers:
        # `advance` cannot be sent to another process; there, progress is told file by file.
        tasks = (
            (path.absolute(), checksums.sha256(path), prefix, *(() if workers.number else (advance,)))
            for path, prefix in files
        )
        for part, size in zip(workers.map(sift, tasks, console.check_stop), sizes, strict=True):
            found.append(part)
            if workers.number:
                advance(size)
    broken = [part for part in found if isinstance(part, Broken)]
    if settings.on_broken_file == 'fail':
        _require_whole(broken, len(found))
    for part in broken:
        console.say(f'corpus: left out: {part.message}')
    parts = [part for part in found if isinstance(part, SiftedFile)]
    for part in parts:
        if part.damage:
            console.say(f'corpus: read in part: {part.damage}')
    return parts, broken


def _say_forms(console: Console, parts: Sequence[SiftedFile], verdicts: Verdicts) -> None:
    """Say how files were read where their form leaves a choice, one line for all that were read alike."""
    files: dict[str, list[str]] = {}
    for part, row in _rows(_left_out(parts, verdicts, 'form'), ('note',)):
        files.setdefault(row['note'], []).append(part.source)
    for note, names in files.items():
        more = f' and {len(names) - 1:,} more' if len(names) > 1 else ''
        console.say(f'corpus: {names[0]}{more}: {note}')


def _require_whole(broken: Sequence[Broken], files: int) -> None:
    if not broken:
        return
    named = '; '.join(b.message for b in broken[:NAMED_IN_MESSAGE])
    more = f'; and {len(broken) - NAMED_IN_MESSAGE} more' if len(broken) > NAMED_IN_MESSAGE else ''
    raise InputError(
        f'{len(broken)} of {files} input files are broken: {named}{more}; repair them and rerun the same '
        'command (intact files are not read again), or leave them out with --config.corpus.on_broken_file=skip'
    )


@dataclasses.dataclass(frozen=True)
class Shard:
    """What a shard holds: counts, and the content hash of each document in order."""

    documents: int
    words: int
    ids_made: int
    contents: bytes
    not_read: Counter[str]
    """Words of articles that are not in their texts, by what they stand in."""


class PlannedShard(NamedTuple):
    """A shard that is to be written: its file and its note in the scratch folder, the numbers of its documents, and how
    often its first document was in the shard before."""

    path: Path
    note: Path
    numbers: np.ndarray
    before: int


def _planned(
    folder: Path, scratch: Path, split: str, numbers: np.ndarray, training_shards: int
) -> list[PlannedShard]:
    """The shards of a split, which holds the documents of these numbers; 0 `training_shards`: as many as they need."""
    shards, found = 1, []
    if split == 'train':
        shards = training_shards or max(FEWEST_SHARDS, -(-len(numbers) // DOCUMENTS_PER_SHARD))
    ends = itertools.accumulate(shard_lengths(len(numbers), shards), initial=0)
    for shard, (start, end) in enumerate(itertools.pairwise(ends)):
        # Absolute, as the workers of a cluster have a working directory of their own.
        path = shard_path(folder.absolute(), split, shard, shards)
        note = scratch.absolute() / f'{path.name}.json'
        before = int(start - np.searchsorted(numbers, numbers[start])) if start < end else 0
        found.append(PlannedShard(path, note, numbers[start:end], before))
    return found


def _write_split(
    split: str,
    planned: Sequence[PlannedShard],
    parts: Sequence[SiftedFile],
    verdicts: Verdicts,
    runtime: Runtime,
    console: Console,
) -> list[Shard]:
    """Write the shards of a split in worker processes."""
    documents, written = sum(len(one.numbers) for one in planned), list[Shard]()
    progress = console.progress(f'corpus: writing {split}', documents, 'documents')
    # Fewer are written before a process has started.
    most = min(len(planned), -(-documents // DOCUMENTS_PER_WORKER))
    with open_workers(runtime, most) as workers:
        tasks = ((one.path, one.note, _places(parts, verdicts, one.numbers), one.before) for one in planned)
        for shard in workers.map(_write_shard, tasks, console.check_stop):
            written.append(shard)
            progress.update(shard.documents)
    return written


def _places(
    parts: Sequence[SiftedFile], verdicts: Verdicts, numbers: np.ndarray
) -> list[tuple[SiftedFile, np.ndarray]]:
    return [(parts[part], rows.astype(np.uint32)) for part, rows in verdicts.places(numbers)]


def _left_out(
    parts: Sequence[SiftedFile], verdicts: Verdicts, reason: str
) -> list[tuple[SiftedFile, np.ndarray]]:
    return _places(parts, verdicts, np.flatnonzero(verdicts.reason_N == CODE[reason]))


def _write_shard(path: Path, note: Path, places: list[tuple[SiftedFile, np.ndarray]], before: int) -> Shard:
    """Write a shard, unless an attempt that was cut off later has written it with the same documents."""
    facts = [row for _, row in _rows(places, ('content', 'words', 'id_made', 'not_read'))]
    contents = b''.join(row['content'] for row in facts)
    not_read = Counter[str]()
    for counted in filter(None, (row['not_read'] for row in facts)):
        not_read.update(json.loads(counted))
    words, made = (sum(row[name] for row in facts) for name in ('words', 'id_made'))
    shard = Shard(len(facts), words, made, contents, not_read)
    content, known = hashlib.sha256(contents).hexdigest(), None
    with contextlib.suppress(InputError):  # damaged: the shard is written again
        known = read_json(note)
    if stored_count(path) != shard.documents or known != content:
        write_shard(path, _documents(places, before))
        # Last: a kill before it leaves a shard without its note, which is written again.
        write_json(note, content)
    return shard


def _documents(places: list[tuple[SiftedFile, np.ndarray]], before: int) -> Iterator[Document]:
    """The documents at these places; one that comes again has the number of the time in its id, the first one after so
    many times `before`."""
    last, times = None, before
    for part, row in _rows(places, ('id', 'text')):
        times = times + 1 if last in (None, row['id']) else 1
        last = row['id']
        yield Document(f'{last}{AGAIN}{times}' if times > 1 else last, row['text'], part.source)


def _rows(
    places: Iterable[tuple[SiftedFile, np.ndarray]], columns: tuple[str, ...]
) -> Iterator[tuple[SiftedFile, Row]]:
    """Rows of the parts, in order, one row group in memory at a time."""
    for part, rows in places:
        file, start = pyarrow.parquet.ParquetFile(part.table), 0
        for group in range(file.num_row_groups):
            stop = start + file.metadata.row_group(group).num_rows
            low, high = np.searchsorted(rows, (start, stop))
            if low < high:
                chosen = file.read_row_group(group, list(columns)).take(rows[low:high] - start)
                yield from ((part, row) for row in chosen.to_pylist())
            start = stop


def _count(verdicts: Verdicts, parts: int, broken: int, in_part: int) -> CorpusCounts:
    codes = np.bincount(verdicts.reason_N, minlength=len(REASONS)).tolist()
    no_records = ('deletion', 'unread', 'form')
    kinds = np.bincount(verdicts.kind_N[verdicts.documents()], minlength=len(KIND_CODE)).tolist()
    left_out = {r: codes[code] for r, code in CODE.items() if r not in ('', *no_records) and codes[code]}
    train = verdicts.split('train')
    return CorpusCounts(
        files=parts + broken,
        broken_files=broken + in_part,
        read_in_part=in_part,
        documents_read=len(verdicts.reason_N) - sum(codes[CODE[reason]] for reason in no_records),
        deletions=codes[CODE['deletion']],
        left_out=left_out,
        kinds={kind: count for kind, code in KIND_CODE.items() if kind and (count := kinds[code])},
        train=len(train),
        copies=len(train) - len(np.unique(train)),
        heldout=len(verdicts.split('heldout')),
    )


def _write_audit(
    folder: Path, settings: Corpus, parts: Sequence[SiftedFile], verdicts: Verdicts
) -> AuditCounts:
    """Write the benchmark sentences found, by document; returns how many were sought and found."""
    auditor, matches = Auditor(settings.audit), 0

    def entries() -> Iterator[JsonObject]:
        nonlocal matches
        for part, row in _rows(_left_out(parts, verdicts, 'benchmark'), ('id', 'sentences')):
            sentences = json.loads(row['sentences'])
            matches += len(sentences)
            found = tuple(AuditedSentence(**sentence) for sentence in sentences)
            yield AuditedDocument(row['id'], part.source, found).json()

    write_jsonl(folder / AUDIT_FILE, entries())
    return AuditCounts(auditor.searched, auditor.too_short, matches)


def _require_documents(settings: Corpus, counts: CorpusCounts) -> None:
    if not counts.documents_read:
        raise InputError(f'{", ".join(settings.inputs)}: hold no documents; correct --config.corpus.inputs')
    if not counts.train:
        reasons = ', '.join(f'{n} {reason}' for reason, n in counts.left_out.items()) or 'none left out'
        raise InputError(
            f'{", ".join(settings.inputs)}: of {numbered(counts.documents_read, "document")} none is left for training '
            f'({reasons}, {counts.heldout} held out); give more text, or change config.corpus.min_words or '
            'heldout_fraction'
        )


def _summary(counts: CorpusCounts) -> str:
    left_out = [f'{n:,} {reason}' for reason, n in counts.left_out.items() if n]
    if in_part := counts.read_in_part:
        left_out.append(f'what is damaged in {in_part:,} of {counts.files:,} files')
    if whole := counts.broken_files - in_part:
        left_out.append(f'{whole:,} of {counts.files:,} files')
    kept = ', '.join(f'{n:,} {SPECIAL_ARTICLES[kind]}' for kind, n in counts.kinds.items())
    kept = f'; of the documents {kept}, see config.corpus.leave_out' if kept else ''
    copies = f', {counts.copies:,} of them again,' if counts.copies else ''
    not_read = ', '.join(f'{n:,} of {name}' for name, n in counts.words_not_read.items())
    kept += f'; words not read: {not_read}' if not_read else ''
    return (
        f'{numbered(counts.documents_read, "document")} read, {counts.train:,} for training{copies} '
        f'({numbered(counts.words["train"], "word")}), {counts.heldout:,} held out; left out: '
        f'{", ".join(left_out) or "none"}{kept}'
    )
