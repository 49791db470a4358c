"""Tables of Parquet or Arrow files, as the hub has them and as `datasets` saves them to disk, batch by batch.

A table may be in several files, its shards. `datasets` itself is not needed. Arrow files are streams: what its
`save_to_disk` writes, a folder a split.
"""

import json
import re
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, BinaryIO

import pyarrow
import pyarrow.ipc
import pyarrow.parquet

from bioptimus_jax.errors import InputError
from bioptimus_jax.storage.files import by_numbers, read_json, refuse_pointer

ROWS = 512
BUFFER_BYTES = 2**20  # of a column; without it whole row groups lie in memory
STATE, SPLITS, INFO = 'state.json', 'dataset_dict.json', 'dataset_info.json'
"""What `datasets` writes beside its files: their names, the names of splits, the types of columns."""
REMEDY = 'save the data set to disk again'
NUMBERED = re.compile(r'(?P<stem>.+)-\d{5}-of-(?P<count>\d{5})(?P<rest>.*\.parquet)')
ONLY_NUMBER = re.compile(r'\d+\.parquet')
END = b'\xff\xff\xff\xff\0\0\0\0'  # of an Arrow stream that was written to its end
BatchReader = Callable[[list[str]], Iterator[tuple[pyarrow.RecordBatch, int]]]
"""Batches of the named columns, each with the bytes of the file that are read."""


def opened(path: Path, stored: BinaryIO) -> tuple[pyarrow.Schema, BatchReader]:
    """The schema and the rows of an open file.

    Raises InputError for a pointer of Git LFS, and OSError and pyarrow's errors, then and while rows are read.
    """
    refuse_pointer(path)
    return READERS[path.suffix](path, stored)


def _parquet(path: Path, stored: BinaryIO) -> tuple[pyarrow.Schema, BatchReader]:
    file = pyarrow.parquet.ParquetFile(stored, buffer_size=BUFFER_BYTES, pre_buffer=False)

    def batches(columns: list[str]) -> Iterator[tuple[pyarrow.RecordBatch, int]]:
        size, total, number = path.stat().st_size, file.metadata.num_rows, 0
        for batch in file.iter_batches(ROWS, columns=columns, use_threads=False):
            number += batch.num_rows
            yield batch, size * number // max(total, 1)

    return file.schema_arrow, batches


def _arrow(path: Path, stored: BinaryIO) -> tuple[pyarrow.Schema, BatchReader]:
    # Mapped into memory, a length that lies is outside of the file and allocates nothing.
    mapped = pyarrow.memory_map(str(path))
    stream = pyarrow.ipc.open_stream(mapped)

    def batches(columns: list[str]) -> Iterator[tuple[pyarrow.RecordBatch, int]]:
        stored.seek(-len(END), 2)
        if stored.read() != END:
            raise pyarrow.ArrowInvalid('the end of the stream is missing')
        for whole in stream:
            batch = whole.select(columns)
            batch.validate(full=True)  # offsets that point elsewhere
            for start in range(0, batch.num_rows, ROWS):
                yield batch.slice(start, ROWS), mapped.tell()

    return stream.schema, batches


READERS = {'.parquet': _parquet, '.arrow': _arrow}


def is_table(path: Path) -> bool:
    """Whether a file is a table, by its name."""
    return path.suffix in READERS


def saved_files(folder: Path) -> list[Path]:
    """The files of a folder that `datasets` has saved, in order; none of another. Raises InputError."""
    if (splits := read_json(folder / SPLITS, REMEDY)) is not None:
        names = splits.get('splits') if isinstance(splits, dict) else None
        some = names[0] if isinstance(names, list) and names else 'train'
        raise InputError(f'{folder}: holds splits of a data set; name one of them, as in {folder}/{some}')
    state = read_json(folder / STATE, REMEDY)
    if state is None:
        return []
    try:
        names = [entry['filename'] for entry in state['_data_files']]
        strange = [name for name in names if Path(name).name != name]
    except (KeyError, TypeError) as error:
        raise InputError(f'{folder / STATE}: is damaged (no list of files); {REMEDY}') from error
    if strange:
        raise InputError(
            f'{folder / STATE}: names the file {strange[0]!r}, which is not in its folder; {REMEDY}'
        )
    files = [folder / name for name in names]
    missing = [file for file in files if not (is_table(file) and file.is_file())]
    if missing or not files:
        raise InputError(f'{missing[0] if missing else folder}: is not a file of a table; {REMEDY}')
    return files


def _numbered_files(folder: Path) -> list[Path]:
    found = (path for path in folder.glob('*.parquet') if ONLY_NUMBER.fullmatch(path.name))
    return sorted(found, key=by_numbers)


def first_of(folder: Path, name: str) -> Path | None:
    """The first file of the table NAME: folder NAME, saved or with numbered Parquet files, or NAME*.parquet."""
    inside = folder / name
    if (inside / STATE).is_file():
        return saved_files(inside)[0]
    found = _numbered_files(inside)
    found += [*sorted(folder.glob(f'{name}-00000-of-*.parquet')), folder / f'{name}.parquet']
    return next((path for path in found if path.is_file()), None)


def shards(first: Path) -> list[Path]:
    """All files of the table that begins with this one. Raises InputError where one of them is missing."""
    if (first.parent / STATE).is_file():
        return saved_files(first.parent)
    if ONLY_NUMBER.fullmatch(first.name):
        return _numbered_files(first.parent)
    found = NUMBERED.fullmatch(first.name)
    if not found:
        return [first]
    parts = [f'{found["stem"]}-{number:05}-of-{found["count"]}' for number in range(int(found['count']))]
    files = [first.with_name(f'{part}{found["rest"]}') for part in parts]
    if not all(file.is_file() for file in files):  # a checksum may stand behind the number
        files = sorted(first.parent.glob(f'{found["stem"]}-?????-of-{found["count"]}*.parquet'))
    there = Counter(file.name[: found.start('rest')] for file in files)
    if wrong := [part for part in parts if there[part] != 1]:
        raise InputError(
            f'{first.with_name(wrong[0])}: of this part of the table {there[wrong[0]]} files are there, not one; fetch '
            'the table again'
        )
    return files


def label_names(path: Path, schema: pyarrow.Schema) -> dict[str, list[str]]:
    """Column -> what its numbers mean, from the file beside a saved table or from the schema."""
    info = read_json(path.parent / INFO, REMEDY)
    if info is None:
        try:
            info = json.loads((schema.metadata or {})[b'huggingface'])['info']
        except (KeyError, ValueError, TypeError, RecursionError):
            return {}
    return named_features(info.get('features') if isinstance(info, dict) else None)


def named_features(features: Any) -> dict[str, list[str]]:
    """Column -> what its numbers mean, from the types that `datasets` gives columns."""
    found = {name: _names(features[name]) for name in features} if isinstance(features, dict) else {}
    return {name: names for name, names in found.items() if names}


def _names(feature: Any) -> list[str]:
    """Names of a label, or of the labels of a list, however that is written."""
    while isinstance(feature, list) and feature:
        feature = feature[0]
    if not isinstance(feature, dict):
        return []
    names = feature.get('names')
    return list(map(str, names)) if isinstance(names, list) else _names(feature.get('feature'))
