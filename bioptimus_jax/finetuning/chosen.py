"""The one rule for the fine-tuned model of a set that is for use: of those that are kept the best one on devel."""

import math
import statistics
from collections.abc import Iterable
from pathlib import Path

from bioptimus_jax.finetuning.cells import MODEL
from bioptimus_jax.finetuning.config import TOGETHER
from bioptimus_jax.finetuning.kept import read_reads
from bioptimus_jax.finetuning.task import devel_chooses, score_of, task_of
from bioptimus_jax.records.finetune import FineTuning
from bioptimus_jax.storage.files import shown_path


def best_seed(cells: Iterable[tuple[FineTuning, Path]]) -> tuple[FineTuning, Path] | None:
    """The kept model that is best on devel, the first of equals, with its fine-tuning; None where none is kept."""
    kept = [(record, folder / MODEL) for record, folder in cells if (folder / MODEL).is_dir()]
    return max(kept, key=lambda one: _devel(one[0]), default=None)


def best_setting(cells: Iterable[tuple[FineTuning, Path]]) -> list[tuple[FineTuning, Path]]:
    """The fine-tunings, one a seed, of the model and setting with the highest mean on devel, the first of equals; empty
    where no model is kept."""
    groups: dict[tuple[str, str], list[tuple[FineTuning, Path]]] = {}
    for record, folder in cells:
        groups.setdefault((record.model, record.setting), []).append((record, folder))
    kept = filter(best_seed, groups.values())
    return max(kept, key=lambda seeds: statistics.fmean(_devel(record) for record, _ in seeds), default=[])


def model_for_use(cells: Iterable[tuple[FineTuning, Path]]) -> Path | None:
    """The folder of the kept model, from the fine-tunings of a set and their folders; None where none is kept.

    Of the `best_setting` all seeds together, where they are kept so, else the seed that is best on devel.
    """
    if not (best := best_seed(best_setting(cells))):
        return None
    together = best[1].parents[1] / TOGETHER
    return together if together.is_dir() else best[1]


def command_for_use(cells: Iterable[tuple[FineTuning, Path]]) -> str:
    """The command that applies the `model_for_use` to as many texts as it reads at once; '' where none is kept."""
    cells = list(cells)
    if not (folder := model_for_use(cells)):
        return ''
    return task_of(cells[0][0]).command(shown_path(folder), read_reads(folder).shown['command'])


def _devel(record: FineTuning) -> float:
    """The score on devel; fine-tunings of which it says nothing come last."""
    return score_of(record, 'devel') if devel_chooses(record) else -math.inf
