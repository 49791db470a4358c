"""What to say of folders and files that are no set: what is there, what is read, and how to make one of the other."""

import re
from collections.abc import Iterator
from pathlib import Path

from bioptimus_jax.errors import InputError
from bioptimus_jax.sets.folders import COLUMNS, holding
from bioptimus_jax.sets.sentences import of_devel

EXPECTED = (
    'train, devel (or dev, valid, validation) and test as .tsv, .conll and the like, .parquet, PubTator or folders of '
    'BRAT'
)
TABLE = "pyarrow.parquet.write_table({reader}('{name}'), '{stem}.parquet')"
REMEDIES = {
    **dict.fromkeys(('.json', '.jsonl', '.ndjson'), f'save it as a table: {TABLE}, an object a line'),
    '.csv': f'save it as a table: {TABLE}',
    '.xml': 'write its mentions as PubTator or BRAT; `bioptimus rebuild` makes public sets from their originals',
    **dict.fromkeys(('.gz', '.zip', '.tgz', '.tar', '.bz2', '.xz', '.7z'), 'unpack it'),
    **dict.fromkeys(('.xlsx', '.xls'), 'save it as .tsv'),
}
"""Ending of a file that is not read -> what to do."""
READERS = {'.csv': 'pyarrow.csv.read_csv'}
READ = (*COLUMNS, '.parquet', '.pubtator')
ROLE = re.compile(r'(?<![a-z])(train|dev|valid|test)(?!s)', re.I)


def remedy_for(file: Path) -> str:
    """What to do with a file in a form that is not read; '' for others."""
    reader, stem = READERS.get(file.suffix, 'pyarrow.json.read_json'), file.stem
    return REMEDIES.get(file.suffix.lower(), '').format(reader=reader, name=file.name, stem=stem)


def refuse_unread(file: Path) -> None:
    """Raise InputError for a file in a form that is not read, by its name."""
    if remedy := remedy_for(file):
        raise InputError(f'{file}: {file.suffix} is not read as a set; {remedy}')


def no_set_in(folder: Path) -> InputError:
    """What is wrong with a folder that is no set and has none in it, and the remedy."""
    said = f'; a set needs {EXPECTED}'
    splits = (p for p in sorted(folder.glob('*/*/train*')) if p.is_dir() or p.suffix in READ)
    if deeper := next((split.parents[1] for split in splits), None):
        return InputError(f'{folder}: has no set in it, but {deeper} has; give that folder')
    for file in _like_splits(folder):
        if remedy := remedy_for(file):
            said += f'; {file.relative_to(folder)} is not read: {remedy}'
            break
        if file.suffix in READ:
            said += f'; name {file.relative_to(folder)} and the others as the splits that they are'
            break
    return InputError(
        f'{folder}: has no training split in it, and no folder with one: it {holding(folder)}{said}'
    )


def _like_splits(folder: Path) -> Iterator[Path]:
    """Files in a folder and in those within whose names have a split in them."""
    for pattern in ('*', '*/*'):
        found = sorted(p for p in folder.glob(pattern) if p.is_file() and ROLE.search(p.name))
        yield from sorted(found, key=lambda p: 'train' not in p.name.lower())


def no_split(folder: Path, split: str) -> InputError:
    """What is wrong with a set that lacks a split, and the remedy."""
    return InputError(
        f'{folder / split}: no such file (.tsv ...) or folder; {folder} {holding(folder)}, but a set needs '
        f'{EXPECTED}{of_devel(folder / split)}'
    )
