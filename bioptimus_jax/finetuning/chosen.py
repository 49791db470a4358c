"""The one rule for the fine-tuned model of a set that is for use: of those that are kept the best one on devel."""

import math
import statistics
from collections.abc import Iterable
from pathlib import Path

from bioptimus_jax.finetuning.cells import MODEL
from bioptimus_jax.finetuning.config import TOGETHER
from bioptimus_jax.finetuning.task import score_of
from bioptimus_jax.records.finetune import FineTuning


def model_for_use(cells: Iterable[tuple[FineTuning, Path]]) -> Path | None:
    """The folder of the kept model, from the fine-tunings of a set and their folders; None where none is kept.

    Model and setting with the highest mean on devel over seeds; of these all seeds together, where they are kept so,
    else the seed that is best there; the first of equals. A devel that was learned says nothing, so
    such fine-tunings come last.
    """
    groups: dict[tuple[str, str], list[tuple[float, Path]]] = {}
    for record, folder in cells:
        devel = -math.inf if record.learned_devel else score_of(record, 'devel')
        groups.setdefault((record.model, record.setting), []).append((devel, folder / MODEL))
    found = []
    for seeds in groups.values():
        kept = [seed for seed in seeds if seed[1].is_dir()]
        if kept:
            best = max(kept, key=lambda seed: seed[0])
            together = best[1].parents[1] / TOGETHER
            chosen = together if together.is_dir() else best[1]
            found.append((statistics.fmean(devel for devel, _ in seeds), chosen))
    return max(found, key=lambda one: one[0])[1] if found else None
