"""Which fine-tuned models stay in their cells."""

import shutil
from collections.abc import Mapping, Sequence
from typing import Any

from bioptimus_jax.finetune.cells import MODEL, Cell
from bioptimus_jax.finetune.summary import grouped
from bioptimus_jax.finetune.task import score_of


def kept_cells(cells: Sequence[Cell], records: Mapping[str, dict[str, Any]], keep: str) -> list[Cell]:
    """Of the finished cells, those whose models `config.finetune.keep` asks for.

    best: of the seeds of a model, set and setting the one with the highest score on devel, the first of equals.
    """
    done = [cell for cell in cells if cell.name in records]
    if keep != 'best':
        return done if keep == 'all' else []
    return [max(group, key=lambda pair: score_of(pair[1], 'devel'))[0] for group in grouped(done, records)]


def discard_others(cells: Sequence[Cell], records: Mapping[str, dict[str, Any]], keep: str) -> None:
    """Remove the models of finished cells whose seed is not the best, where only that one is kept."""
    if keep != 'best':
        return
    kept = {cell.name for cell in kept_cells(cells, records, keep)}
    for cell in cells:
        if cell.name in records and cell.name not in kept:
            shutil.rmtree(cell.target / MODEL, ignore_errors=True)
