"""A search for the setting of every set: which of them go on after some epochs, and on which models it is chosen.

Every model gets the same settings, seeds and rungs. Test is read by the cells alone that are trained to the end.
"""

import dataclasses
import itertools
import statistics
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any

from bioptimus_jax.config.fields import meant
from bioptimus_jax.errors import ConfigError
from bioptimus_jax.finetuning.cells import Cell
from bioptimus_jax.finetuning.config import Finetune
from bioptimus_jax.finetuning.statistics import best_settings
from bioptimus_jax.finetuning.task import score_of, task_for
from bioptimus_jax.progress.console import numbered
from bioptimus_jax.records.finetune import FineTuning, Trained
from bioptimus_jax.records.statistics import StoppedSetting

FILE = 'search.json'
Train = Callable[[Sequence[Cell]], Mapping[str, Trained]]
"""Trains cells up to their rung; gives their records by name."""


@dataclasses.dataclass(frozen=True)
class Halved:
    """What successive halving leaves: cells that are trained to the end, settings that stopped, epochs of the rungs."""

    cells: list[Cell]
    stopped: list[StoppedSetting]
    epochs: int


def halved(cells: Sequence[Cell], halving: int, tuned_on: Collection[str], train: Train) -> Halved:
    """Successive halving (Jamieson and Talwalkar 2016): after a share of its epochs only the best settings go on.

    Only the models of `tuned_on` choose, all models where it is empty. Of n settings 1/halving
    are left after every rung; the last rung is at 1/halving of the epochs, the one before it
    at 1/halving^2, and so on for as many rungs as n has powers of `halving`. Settings are judged by their best epoch
    so far on devel, the mean over seeds and over `tuned_on`; the first of equals goes on. What goes on starts again
    from its beginning: so its cells are those of a search without halving, and nothing but scores has to be kept.
    Settings of a set that nothing is learned from all go on: they have neither epochs nor scores on devel.
    """
    groups: dict[Any, dict[str, list[Cell]]] = {}
    choosing = [cell for cell in cells if not tuned_on or cell.model in tuned_on]
    for cell in filter(_learns, choosing):
        judged = groups.setdefault(cell.dataset if tuned_on else (cell.model, cell.dataset), {})
        judged.setdefault(cell.setting, []).append(cell)
    rungs = {key: rungs_of(len(judged), halving) for key, judged in groups.items()}
    stopped, gone, epochs = [], set[str](), 0
    for rung in range(max(rungs.values(), default=0)):
        # Rungs that a group still has, with this one: a group of fewer settings begins at a larger share.
        due = {key: rungs[key] - rung for key in groups if rungs[key] > rung}
        part = {
            cell.name: dataclasses.replace(cell, until=-(-cell.settings.epochs // halving ** due[key]))
            for key in due
            for cell in itertools.chain(*groups[key].values())
        }
        records = train(list(part.values()))
        epochs += sum(cell.until for cell in part.values())
        for key in due:
            for name, devel in _stopping(groups[key], records, halving):
                of_setting = [part[cell.name] for cell in groups[key].pop(name)]
                stopped.append(_record(of_setting, devel))
                gone.update(cell.name for cell in of_setting)
    return Halved([cell for cell in choosing if cell.name not in gone], stopped, epochs)


def epochs_of(cells: Iterable[Cell]) -> int:
    """How many epochs cells have together."""
    return sum(cell.settings.epochs for cell in filter(_learns, cells))


def _learns(cell: Cell) -> bool:
    return task_for(cell.dataset).learns


def _stopping(
    judged: Mapping[str, Sequence[Cell]], records: Mapping[str, Trained], halving: int
) -> list[tuple[str, float]]:
    """The settings that do not go on after a rung, the best of them first, with their means on devel."""
    devel = {
        name: statistics.fmean(_best(cell, records[cell.name]) for cell in of_setting)
        for name, of_setting in judged.items()
    }
    # The sort keeps the order of equals, so that the setting that was named first goes on.
    ranked = sorted(devel.items(), key=lambda item: -item[1])
    return ranked[max(1, len(ranked) // halving) :]


def _record(of_setting: Sequence[Cell], devel: float) -> StoppedSetting:
    """What search.json says of a setting that stopped, from its cells."""
    first = of_setting[0]
    return StoppedSetting(
        models=tuple(dict.fromkeys(cell.model for cell in of_setting)),
        dataset=first.dataset.name,
        setting=first.setting,
        cells=len(of_setting),
        after=first.until,
        of=first.settings.epochs,
        devel=devel,
    )


def following(
    cells: Sequence[Cell], chosen_from: Sequence[Cell], records: Mapping[str, FineTuning]
) -> list[Cell]:
    """Cells of the models that choose nothing, under the setting that is best on devel over the models that choose.

    Where nothing is learned from a set its devel split chooses no setting, so these cells have every one of them.
    """
    best = best_settings(
        (cell.dataset, cell.setting, score_of(records[cell.name], 'devel'))
        for cell in chosen_from
        if _learns(cell)
    )
    models = {cell.model for cell in chosen_from}
    left = [cell for cell in cells if cell.model not in models]
    return [cell for cell in left if cell.setting == best.get(cell.dataset, cell.setting)]


def rungs_of(settings: int, halving: int) -> int:
    """How often so many settings can be cut to 1/halving."""
    rungs = 0
    while halving > 1 and settings >= halving ** (rungs + 1):
        rungs += 1
    return rungs


def check(settings: Finetune, models: Collection[str], tried: Mapping[str, Sequence[Finetune]]) -> None:
    """Raise ConfigError for a search that means nothing. `tried`: of every set that is learned from, its settings."""
    for name in settings.tuned_on:
        if name not in models:
            raise ConfigError(
                f'config.finetune.tuned_on: {name!r} is not one of the models that are scored; there are '
                f'{", ".join(models)}{meant(name, models)}'
            )
    most = max(map(len, tried.values()), default=0)
    for key, needed in (('tuned_on', 2), ('halving', max(2, settings.halving))):
        if getattr(settings, key) and most < needed:
            raise ConfigError(
                f'config.finetune.{key}: {getattr(settings, key)}, but no set that is learned from has {needed} '
                'settings to choose from; name more in config.finetune.settings, or leave it out'
            )
    for dataset, of_set in tried.items():
        searched = len(of_set) > 1 and (settings.tuned_on or rungs_of(len(of_set), settings.halving))
        for one in of_set if searched else ():
            [name] = one.settings
            if one.learn_devel:
                raise ConfigError(
                    f'config.finetune.setting.{name}: learns devel of {dataset}, so it cannot be chosen on it; try it '
                    'in another run, with the setting that this one chooses'
                )
            if one.epochs and one.epochs < settings.halving ** rungs_of(len(of_set), settings.halving):
                raise ConfigError(
                    f'config.finetune.halving: {settings.halving}, but setting {name!r} of {dataset} has '
                    f'{numbered(one.epochs, "epoch")}, too few for its rungs'
                )


def _best(cell: Cell, record: Trained) -> float:
    """The score on devel that the cell would have if it had ended at its rung."""
    return max(epoch[f'devel_{task_for(cell.dataset).metric.name}'] for epoch in record.history)
