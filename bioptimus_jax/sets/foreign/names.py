"""What the numbers of labels mean, by a file beside those of a set."""

import re
from pathlib import Path
from typing import Any

from bioptimus_jax.sets.sentences import text_of
from bioptimus_jax.storage import tables
from bioptimus_jax.storage.files import read_json

FILE = re.compile(r'labels?\.(json|txt)|(label2id|id2label)\.json')
"""A list of names in the order of their numbers, an object of names and numbers, or a name a line."""
INFOS = (tables.INFO, 'dataset_infos.json')
"""What `datasets` leaves beside its files."""


def files_beside(path: Path) -> list[Path]:
    """The files beside one that name labels, or may do so."""
    every = sorted(file for file in path.parent.iterdir() if file != path and file.is_file())
    return [file for file in every if file.name in INFOS or FILE.fullmatch(file.name)]


def names_beside(path: Path) -> dict[str, list[str]]:
    """Column -> the names of its labels, '' for any column; nothing from a file that holds something else."""
    found: dict[str, list[str]] = {}
    for file in files_beside(path):
        if file.name not in INFOS:
            found[''] = _names(file)
            continue
        info = read_json(file, tables.REMEDY)
        for one in [info, *(info.values() if isinstance(info, dict) else ())]:
            if isinstance(one, dict):
                found |= tables.named_features(one.get('features'))
    return found


def _names(file: Path) -> list[str]:
    """The names in the order of their numbers; [] where the file does not say each number from 0 on."""
    if file.suffix == '.txt':
        return [line.strip() for line in text_of(file).split('\n') if line.strip()]
    given: Any = read_json(file, 'write a list of names, or {"O": 0, "B-Drug": 1}')
    if isinstance(given, list) and all(isinstance(name, str) for name in given):
        return given
    if isinstance(given, dict):
        pairs = given.items()
        if all(isinstance(value, int) for value in given.values()):
            numbered = {value: name for name, value in pairs}
        else:
            numbered = {int(key): str(name) for key, name in pairs if str(key).isdecimal()}
        if numbered and sorted(numbered) == list(range(len(given))):
            return [numbered[at] for at in range(len(given))]
    return []
