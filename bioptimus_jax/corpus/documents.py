"""Document store: ArrayRecord shards with TFDS folder metadata, readable by `tfds.builder_from_directory`.

The shards of a split hold its documents one after the other, as evenly as whole documents allow, so that they can
be written side by side; a `DocumentSource` numbers the documents through.
"""

import contextlib
import dataclasses
import errno
import itertools
import os
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from array_record.python.array_record_module import ArrayRecordReader, ArrayRecordWriter
from tensorflow_datasets.proto import tf_example_pb2

from bioptimus_jax.errors import InputError
from bioptimus_jax.progress.console import numbered
from bioptimus_jax.records.manifests import Manifest
from bioptimus_jax.run.manifests import read_manifest
from bioptimus_jax.storage.files import complete, read_json
from bioptimus_jax.storage.hashing import hash64

FOLDER = 'documents'
CORPUS_SPLITS = ('train', 'heldout')
# Groups of one record: any document can be read without its neighbours.
WRITER_OPTIONS = 'group_size:1'
READER_OPTIONS = 'readahead_buffer_size:0,max_parallelism:0'
BLOCK = 512


@dataclasses.dataclass(frozen=True)
class Document:
    """A text with its id and the name of the file that it came from."""

    id: str
    text: str
    source: str = ''


def document_key(id: str) -> int:
    """Stable 64-bit hash of a document id, below 2**64."""
    return hash64(id)


def encoded(document: Document) -> bytes:
    """A document as the serialised `tf.train.Example` that TFDS expects; equal documents give equal bytes."""
    example = tf_example_pb2.Example()
    feature = example.features.feature
    for name in ('id', 'source', 'text'):
        feature[name].bytes_list.value.append(getattr(document, name).encode())
    return example.SerializeToString(deterministic=True)


def decoded(record: bytes) -> Document:
    """The document of a record made by `encoded`."""
    feature = tf_example_pb2.Example.FromString(record).features.feature
    return Document(*(feature[name].bytes_list.value[0].decode() for name in ('id', 'text', 'source')))


def write_shard(path: Path, documents: Iterable[Document]) -> int:
    """Write one shard of a split and return its number of documents.

    The file gets its name when it is complete and on disk, or never. Raises OSError (full disk).
    """
    count = 0
    with complete(path) as hidden:
        with _writing(path):
            writer = ArrayRecordWriter(str(hidden), WRITER_OPTIONS)
        try:
            for document in documents:
                with _writing(path):
                    writer.write(encoded(document))
                count += 1
        finally:
            with _writing(path):
                writer.close()
        if (stored := stored_count(hidden)) != count:
            raise OSError(
                errno.ENOSPC, f'holds {stored} of {numbered(count, "document")} after writing', str(path)
            )
    return count


def stored_count(path: Path) -> int:
    """How many documents a shard holds; -1 where there is none, or none that can be read."""
    try:
        return ArrayRecordReader(str(path), READER_OPTIONS).num_records() if path.is_file() else -1
    except (RuntimeError, ValueError):
        return -1


@contextlib.contextmanager
def _writing(path: Path) -> Iterator[None]:
    try:
        yield
    except (RuntimeError, ValueError) as error:
        raise OSError(f'{path}: cannot be written ({_first_line(error)})') from error


def write_documents(folder: Path, split: str, documents: Sequence[Document], shards: int) -> int:
    """Write one split of a corpus folder, add it to the metadata, and return the number of documents."""
    lengths = shard_lengths(len(documents), shards)
    ends = itertools.accumulate(lengths, initial=0)
    for shard, (start, end) in enumerate(itertools.pairwise(ends)):
        write_shard(shard_path(folder, split, shard, shards), documents[start:end])
    write_metadata(folder, {**stored_lengths(folder), split: lengths})
    return len(documents)


def write_metadata(folder: Path, lengths: Mapping[str, Sequence[int]]) -> None:
    """Write the TFDS metadata of `{split: documents of each shard}` beside the shards."""
    import tensorflow_datasets as tfds

    target = folder / FOLDER
    # TFDS writes its files in place: in a hidden folder first, so that none is half-written under its name.
    hidden = target / '.metadata.tmp'
    shutil.rmtree(hidden, ignore_errors=True)
    hidden.mkdir(parents=True)
    identity = tfds.core.dataset_info.DatasetIdentity(
        name=FOLDER, version=tfds.core.Version('1.0.0'), data_dir=str(target), module_name=''
    )
    features = tfds.features.FeaturesDict({n: tfds.features.Text() for n in ('id', 'source', 'text')})
    form = tfds.core.ShardedFileTemplate(data_dir=target, dataset_name=FOLDER, filetype_suffix='array_record')
    splits = []
    for split, counts in lengths.items():
        sizes = sum(shard_path(folder, split, s, len(counts)).stat().st_size for s in range(len(counts)))
        splits.append(
            tfds.core.SplitInfo(
                name=split,
                shard_lengths=list(counts),
                num_bytes=sizes,
                filename_template=form.replace(split=split),
            )
        )
    info = tfds.core.DatasetInfo(
        builder=identity, features=features, description='Documents of a pre-training corpus.'
    )
    info.set_file_format('array_record')
    info.set_splits(tfds.core.splits.SplitDict(splits))
    info.write_to_directory(str(hidden))
    for path in hidden.iterdir():
        os.replace(path, target / path.name)
    hidden.rmdir()


def stored_lengths(folder: Path) -> dict[str, list[int]]:
    """`{split: documents of each shard}` from the metadata of a corpus folder; empty without metadata."""
    info = read_json(folder / FOLDER / 'dataset_info.json') or {}
    return {s['name']: [int(n) for n in s.get('shardLengths', ())] for s in info.get('splits', ())}


def shard_path(folder: Path, split: str, shard: int, shards: int) -> Path:
    """Where one shard of a split lies in a corpus folder, by the naming of TFDS."""
    return folder / FOLDER / f'{FOLDER}-{split}.array_record-{shard:05d}-of-{shards:05d}'


def shard_lengths(count: int, shards: int) -> list[int]:
    """Documents of each shard when `count` of them are shared out evenly."""
    return [count * (s + 1) // shards - count * s // shards for s in range(shards)]


class DocumentSource:
    """The documents of one split by number; it can be pickled, so workers open their own files.

    `source[i]` reads one document, `source.read(start, stop)` a range, far faster; iterating reads
    ranges. Raises InputError for a shard that is missing, cut off or damaged.
    """

    def __init__(self, folder: Path, split: str, lengths: Sequence[int]):
        self.paths = [shard_path(folder, split, s, len(lengths)) for s in range(len(lengths))]
        self.lengths = list(lengths)
        self.ends = list(itertools.accumulate(lengths))
        self._readers: dict[int, Any] = {}

    def __len__(self) -> int:
        return sum(self.lengths)

    def __getitem__(self, index: int) -> Document:
        number = index + len(self) if index < 0 else index
        if not 0 <= number < len(self):
            raise IndexError(f'document {index} of {len(self)}')
        return self.read(int(number), int(number) + 1)[0]

    def __iter__(self) -> Iterator[Document]:
        for start in range(0, len(self), BLOCK):
            yield from self.read(start, start + BLOCK)

    def read(self, start: int, stop: int) -> list[Document]:
        """Documents start to stop - 1, fewer at the end."""
        documents: list[Document] = []
        for shard, (length, end) in enumerate(zip(self.lengths, self.ends, strict=True)):
            low, high = max(start - (end - length), 0), min(stop - (end - length), length)
            if low < high:
                documents += self._read_shard(shard, low, high)
        return documents

    def check(self) -> None:
        """Open every shard and compare its number of records with the metadata. Raises InputError."""
        for shard in range(len(self.paths)):
            self._reader(shard)

    def _read_shard(self, shard: int, low: int, high: int) -> list[Document]:
        reader = self._reader(shard)
        try:
            return [decoded(record) for record in reader.read(low, high)]
        except Exception as error:  # the library raises several kinds for damaged data
            raise _damaged(self.paths[shard], _first_line(error)) from error

    def _reader(self, shard: int) -> Any:
        if shard not in self._readers:
            path = self.paths[shard]
            if not path.is_file():
                raise _damaged(path, 'is missing')
            try:
                reader = ArrayRecordReader(str(path), READER_OPTIONS)
                count = reader.num_records()
            except Exception as error:
                raise _damaged(path, _first_line(error)) from error
            if count != self.lengths[shard]:  # a cut-off file opens as an empty one
                raise _damaged(path, f'holds {count} of {numbered(self.lengths[shard], "document")}')
            self._readers[shard] = reader
        return self._readers[shard]

    def __getstate__(self) -> dict[str, object]:
        # Open readers cannot be pickled, and a worker of a cluster has a working directory of its own.
        return {**self.__dict__, 'paths': [path.absolute() for path in self.paths], '_readers': {}}


def open_documents(folder: Path, split: str) -> DocumentSource:
    """The documents of a split of a corpus folder; their number agrees with shards, metadata, manifest.

    Raises InputError where something is missing, cut off or damaged.
    """
    lengths = stored_lengths(folder)
    if split not in lengths:
        known = ', '.join(lengths) or 'none'
        raise InputError(
            f'{folder / FOLDER}: has no split {split!r} (found: {known}); run `bioptimus corpus` first'
        )
    if lengths[split] != shard_lengths(sum(lengths[split]), len(lengths[split])):
        raise _damaged(folder / FOLDER / 'dataset_info.json', f'impossible shard lengths {lengths[split]}')
    counts = (read_manifest(folder) or Manifest()).counts
    source = DocumentSource(folder, split, lengths[split])
    if counts.get(split, len(source)) != len(source):
        raise _damaged(
            folder / FOLDER,
            f'{split}: {numbered(len(source), "document")}, but the manifest says {counts[split]}',
        )
    source.check()
    return source


def _damaged(path: Path, what: str) -> InputError:
    return InputError(f'{path}: {what}; rebuild the corpus with `bioptimus corpus --replace`')


def _first_line(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0][:200]
