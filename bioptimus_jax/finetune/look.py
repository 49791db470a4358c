"""What is worth knowing about sets before a model is trained on them, each as its task looks at it."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from bioptimus_jax.errors import InputError
from bioptimus_jax.finetune.task import task_for
from bioptimus_jax.schema import Finetune
from bioptimus_jax.sets import published
from bioptimus_jax.sets.corpora import is_dataset, set_at, set_folders


def look_through(
    folder: Path, tokenizers: Mapping[str, Any], task: str = Finetune.task
) -> tuple[list[list[str]], list[str]]:
    """Lines about a set, or about each of a folder and which do not compare, and a line for each that cannot be read.

    `task`: for sets that have no record. Raises InputError where there is no set.
    """
    if not folder.is_dir():
        raise InputError(f'{folder}: no such folder; give a set or a folder of sets')
    sets = [folder] if is_dataset(folder) else list(set_folders(folder))
    if not sets:
        raise InputError(f'{folder}: has no training split in it, and no folder with one')
    found, errors = [], []
    every = [set_at(path, task) for path in sets]
    for chosen in every:
        try:
            learned = task_for(chosen)
            found.append(learned.look(learned.read(chosen), tokenizers, Finetune().max_pieces)[2])
        except InputError as error:
            errors.append(str(error))
    return [*found, *filter(None, [published.clashes(one.name for one in every)])], errors
