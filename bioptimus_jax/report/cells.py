"""Predictions of a fine-tuning: the folder that has them, and the counts of their test items."""

import functools
from pathlib import Path

from bioptimus_jax.errors import InputError
from bioptimus_jax.finetuning.task import task_of
from bioptimus_jax.finetuning.units import Units, read_units, unpacked
from bioptimus_jax.records.finetune import FineTuning, ScoredCell
from bioptimus_jax.report.measures import Measures

read_once = functools.lru_cache(256)(read_units)


def cell_folder(m: Measures, cell: ScoredCell) -> Path:
    """The folder with the predictions of a fine-tuning."""
    parts = cell.model, cell.dataset, cell.setting, f'seed-{cell.seed}'
    return m.run.stage_folder('finetune').joinpath(*parts)


def units_of(m: Measures, cell: FineTuning) -> Units:
    """Counts of a fine-tuning. Raises InputError where neither its record nor its folder has them."""
    task = task_of(cell)
    file = cell_folder(m, cell) / task.files[0]
    if cell.units:
        return unpacked(cell.units, file, task)
    if not m.run.workdir.is_dir():
        raise InputError('the predictions are not on record, so nothing is said of other test items')
    if not file.is_file():
        raise InputError(
            f'{file}: is missing, so nothing is said of other test items; run stage finetune again with --replace'
        )
    return read_once(file, task)
