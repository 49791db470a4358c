"""Seeds that answer together: a folder of their kept models for each model, set and setting."""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

from bioptimus_jax.finetuning.card import write_card_together
from bioptimus_jax.finetuning.cells import MODEL, place
from bioptimus_jax.finetuning.config import TOGETHER
from bioptimus_jax.finetuning.summary import Group
from bioptimus_jax.finetuning.task import task_for
from bioptimus_jax.records.kept import KeptEnsemble
from bioptimus_jax.records.statistics import ModelStatistics
from bioptimus_jax.sets.corpora import NamedSet
from bioptimus_jax.storage.files import remove_folder


def keep_together(
    groups: Sequence[Group],
    statistics: Sequence[ModelStatistics],
    datasets: Mapping[NamedSet, Any],
    keep: str,
) -> None:
    """Leave MODEL/SET/SETTING/ensemble for every group of several seeds where `keep` asks for it, and no other.

    Seeds of what learns nothing say the same, and have none.
    """
    from bioptimus_jax.finetuning.stored import join

    for group, of_group in zip(groups, statistics, strict=True):
        cell = group[0][0]
        task, folder = task_for(cell.dataset), cell.target.parent / TOGETHER
        if keep != TOGETHER or len(group) < 2 or not task.learns:
            remove_folder(folder)
            continue
        dataset, records = datasets[cell.dataset], [record for _, record in group]
        # What has to be said of the answers of some seeds need not hold for those of all.
        remarks = [record.sameness or '' for record in records]
        remark = remarks[0] if all(remarks) else ''
        reads = dataclasses.replace(task.reads(dataset, cell.settings), remark=remark)
        members = {one.target.name: one.target / MODEL for one, _ in group}
        join(members, KeptEnsemble(**vars(place(cell)), members=tuple(members)), reads, folder)
        write_card_together(folder, cell.model_folder, task, dataset, cell.settings, records, of_group)
