"""What to say of folders and files that are no set: what is there, what is read, and how to make one of the other."""

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

from bioptimus_jax.errors import InputError
from bioptimus_jax.sets import published
from bioptimus_jax.sets.folders import COLUMNS, holding
from bioptimus_jax.sets.foreign.items import TEXT_ENDINGS
from bioptimus_jax.sets.foreign.refused import remedy_for
from bioptimus_jax.sets.sentences import of_devel, plain_suffix

EXPECTED = (
    'train, devel (or dev, valid, validation) and test as .tsv, .conll and the like, .json, .jsonl, .csv, .parquet, '
    'BioC, PubTator or folders of BRAT'
)
READ = (*COLUMNS, *TEXT_ENDINGS, '.parquet', '.pubtator')
REBUILT = ('bioasq', 'chemprot', 'ddi', 'ebmnlp', 'gad', 'hoc', 'pubmedqa')
"""Public sets that `bioptimus rebuild` makes from their originals."""
ROLE = re.compile(r'(?<![a-z])(train|dev|valid|test)(?!s)', re.I)


def rebuilt(folder: Path) -> str:
    """How a public set is made of what may be its originals in a folder of its name; '' for another folder."""
    record = published.record_of(folder.name)
    name = record.name if record else ''
    if name not in REBUILT or not folder.is_dir() or not any(folder.iterdir()):
        return ''
    place = shlex.quote(f'--from={folder}')
    return f'; if these are its originals, `bioptimus rebuild --set={name} {place} --to=sets` makes the set'


def no_set_in(folder: Path) -> InputError:
    """What is wrong with a folder that is no set and has none in it, and the remedy."""
    said = f'; a set needs {EXPECTED}'
    if made := rebuilt(folder):
        return InputError(f'{folder}: has no training split in it: it {holding(folder)}{made}')
    splits = (p for p in sorted(folder.glob('*/*/train*')) if p.is_dir() or plain_suffix(p) in READ)
    if deeper := next((split.parents[1] for split in splits), None):
        return InputError(f'{folder}: has no set in it, but {deeper} has; give that folder')
    for file in _like_splits(folder):
        if remedy := remedy_for(file):
            said += f'; {file.relative_to(folder)} is {remedy}'
            break
        if plain_suffix(file) in READ:
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
    if made := rebuilt(folder):
        return InputError(f'{folder}: has no {split} split: it {holding(folder)}{made}')
    return InputError(
        f'{folder / split}: no such file (.tsv ...) or folder; {folder} {holding(folder)}, but a set needs '
        f'{EXPECTED}{of_devel(folder / split)}'
    )
