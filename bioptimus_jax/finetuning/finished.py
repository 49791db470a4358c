"""The finished fine-tunings of one model, found in its folder of stage `finetune`, which may be unfinished."""

import contextlib
import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from bioptimus_jax.config.fields import meant
from bioptimus_jax.errors import InputError
from bioptimus_jax.finetuning.statistics import best_settings
from bioptimus_jax.finetuning.task import devel_chooses, score_of
from bioptimus_jax.records.finetune import FineTuning, OutsideCell, ScoredCell
from bioptimus_jax.records.kept import read_ensemble
from bioptimus_jax.run.manifests import MANIFEST, STARTED, read_claim
from bioptimus_jax.sets.blurb import true_name
from bioptimus_jax.storage.files import read_json, read_sealed

BY_DEVEL = 'devel'
"""A word in place of a setting's name: for every set the one with the highest mean on devel."""
SCORES = 'scores.json'
"""The record of a cell."""
CELLS = f'*/*/*/seed-*/{SCORES}'
"""All of a stage: of models, sets, settings and seeds."""
RESULTS = 'results.jsonl'
"""The records of a stage: one for every cell of its last configuration."""
REMEDY = 'score the model again'
KEYS = ('models', 'datasets', 'settings', 'seeds')
"""Keys of config.finetune that the folders of a cell are named by."""
FoundCell = tuple[Path, ScoredCell]
"""The folder of a cell and its record."""
OUTSIDE = 'outside'
"""The key of a record of predictions that were made elsewhere, and a folder for them beside a run."""


@dataclasses.dataclass(frozen=True)
class FinishedModel:
    """The finished cells of one model under one setting: dataset -> seed -> folder, and the records beside.

    `left_out`: how many cells below its folder are of an earlier configuration.
    """

    folder: str
    name: str
    setting: str
    cells: Mapping[str, Mapping[int, Path]]
    records: Mapping[str, Mapping[int, ScoredCell]]
    left_out: int = 0

    def beside(self, dataset: str, seeds: Iterable[int]) -> Mapping[int, Path]:
        """Seed -> cell of a set; a single run stands beside every one of `seeds`."""
        own = self.cells[dataset]
        return dict.fromkeys(seeds, next(iter(own.values()))) if self.is_one_run(dataset) else own

    def is_one_run(self, dataset: str) -> bool:
        """Whether it has predictions from elsewhere that have no seed, or that are the same with several: of a program
        without chance. Fine-tunings are several runs, whatever they predict."""
        records = list(self.records[dataset].values())
        outside = [record for record in records if isinstance(record, OutsideCell)]
        alike = len(records) > 1 and all(each.files == outside[0].files for each in outside)
        return len(outside) == len(records) and (outside[0].seedless or alike)


def read_model(name: str) -> FinishedModel:
    """The finished cells of FOLDER or FOLDER:SETTING, with BY_DEVEL of a setting for each set.

    Of a finished stage those that its results.jsonl lists, of an unfinished one those that are as it would make them.
    Raises InputError unless of one model and setting.
    """
    folder, setting = Path(name), ''
    if not folder.is_dir() and ':' in name:
        head, _, setting = name.rpartition(':')
        folder = Path(head)
    if not folder.is_dir():
        raise InputError(
            f'{folder}: no such folder; give RUN/finetune/MODEL of a finished `bioptimus finetune`, whose '
            'config.finetune.models may be hub ids'
        )
    every: list[FoundCell] = [(file.parent, read_cell(file)) for file in sorted(folder.rglob(SCORES))]
    if not every:
        raise InputError(
            f'{folder}: holds no finished fine-tuning (seed-N/{SCORES}); run `bioptimus finetune` first'
        )
    found = _asked_for(folder, every)
    models = sorted({record.model for _, record in found})
    if len(models) > 1:
        raise InputError(f'{folder}: holds several models, {", ".join(models)}; give the folder of one')
    setting = _setting_of(folder, setting, sorted({record.setting for _, record in found}))
    cells: dict[str, dict[int, Path]] = {}
    records: dict[str, dict[int, ScoredCell]] = {}
    for cell, record in _under(folder, setting, found):
        dataset = true_name(record.dataset, len(record.test_by_type or ()))
        seed = record.seed
        if seed in cells.setdefault(dataset, {}):
            raise InputError(
                f'{cell}: is {dataset}, seed {seed}, and so is {cells[dataset][seed]}; remove one'
            )
        cells[dataset][seed] = cell
        records.setdefault(dataset, {})[seed] = record
    for dataset, of_seeds in records.items():
        _require_one_kind(dataset, [(cells[dataset][seed], record) for seed, record in of_seeds.items()])
    return FinishedModel(str(folder), models[0], setting, cells, records, len(every) - len(found))


def _require_one_kind(dataset: str, found: Sequence[FoundCell]) -> None:
    """Raise InputError where predictions without a seed, which are for every seed, are beside others of a set."""
    seedless = [cell for cell, record in found if isinstance(record, OutsideCell) and record.seedless]
    if seedless and len(found) > 1:
        raise InputError(
            f'{seedless[0]}: holds predictions without a seed, beside others of {dataset}; remove it, or what is '
            'beside it, and score predictions of several trainings with --seed=N'
        )


def asked_among(cells: Iterable[Path]) -> set[Path]:
    """The cells that their stage asks for now, and each outside of a stage.

    Cells of earlier models, settings and seeds stay in a stage's folder. One that was stopped before it said which
    cells it asks for asks for all.
    """
    listed: dict[Path, Mapping[Path, str | None] | None] = {}
    found = set()
    for cell in cells:
        whole = cell.resolve()
        stage = whole.parents[min(len(KEYS), len(whole.parents)) - 1]
        if stage not in listed:
            listed[stage] = None
            with contextlib.suppress(InputError):
                listed[stage] = cells_of(stage)
        asked = listed[stage]
        if asked is None or _is_of(asked.get(whole, ()), cell):
            found.add(cell)
    return found


def models_asked_for(places: Sequence[Path]) -> list[Path]:
    """The folders of kept models, of one seed or of several together, that their stages still ask for, and all models
    that are in no stage."""
    seeds = {}
    for place in places:
        ensemble = read_ensemble(place)
        seeds[place] = [place.parent / name for name in ensemble.members] if ensemble else [place.parent]
    asked = asked_among({cell for cells in seeds.values() for cell in cells})
    return [place for place, cells in seeds.items() if asked.issuperset(cells)]


def _is_of(asked: str | tuple[()] | None, cell: Path) -> bool:
    """Whether a cell is what a stage asks for, None for whatever is there, or by its fingerprint."""
    if not isinstance(asked, str):
        return asked is None
    record = read_cell(cell / SCORES) if (cell / SCORES).is_file() else None
    return isinstance(record, FineTuning) and record.print == asked


def _asked_for(folder: Path, found: list[FoundCell]) -> list[FoundCell]:
    """Cells that their stage asks for, and predictions from elsewhere; outside of a stage all of them.

    Cells of earlier models, settings and seeds stay in its folder. Raises InputError where nothing is left.
    """
    whole = folder.resolve()
    asked = next(filter(None, map(cells_of, (whole, *whole.parents))), None)
    if asked is None:
        return found
    left = [
        (cell, record)
        for cell, record in found
        if not isinstance(record, FineTuning) or asked.get(cell.resolve(), ()) in (None, record.print)
    ]
    if not left:
        raise InputError(f'{folder}: all its cells are of an earlier configuration; {_remedy(asked, found)}')
    return left


def cells_of(stage: Path) -> Mapping[Path, str | None] | None:
    """The cells that a stage lists, with their fingerprints if it is unfinished; None for another folder."""
    if _is_finished(stage):
        return {
            stage.joinpath(r.model, r.dataset, r.setting, f'seed-{r.seed}'): None
            for r in FineTuning.read_lines(stage / RESULTS)
        }
    if (asked := claimed(stage)) is None and (stage / STARTED).is_file():
        raise InputError(
            f'{stage}: was stopped before it said which cells it asks for; run `bioptimus finetune` again'
        )
    return asked


def claimed(stage: Path) -> dict[Path, str] | None:
    """The cells that an unfinished stage asks for, with their fingerprints; None unless it has said which."""
    claim = read_claim(stage)
    cells = claim.cells if claim else None
    return None if cells is None else {stage / name: fingerprint for name, fingerprint in cells.items()}


def _remedy(asked: Iterable[Path], found: Sequence[FoundCell]) -> str:
    """How to have cells in the stage again: by the first key that names none of them."""
    for key, at in zip(KEYS, range(-len(KEYS), 0), strict=True):
        names = {cell.resolve().parts[at] for cell, _ in found}
        if not names & {cell.parts[at] for cell in asked}:
            shown = ', '.join(sorted(name.removeprefix('seed-') for name in names))
            return (
                f'add {shown} to config.finetune.{key} and run `bioptimus finetune` again, which keeps the cells that '
                'still fit'
            )
    return 'run `bioptimus finetune` again, or give another folder'


def _is_finished(folder: Path) -> bool:
    """Whether a folder is that of a finished stage `finetune`."""
    manifest = read_json(folder / MANIFEST) if (folder / RESULTS).is_file() else None
    return isinstance(manifest, dict) and manifest.get('stage') == 'finetune'


def _setting_of(folder: Path, wanted: str, settings: Sequence[str]) -> str:
    """The setting that is meant, of those that there are; '' means the only one. Raises InputError."""
    if wanted and wanted not in (*settings, BY_DEVEL):
        raise InputError(
            f'{folder}: has no setting {wanted!r}; found: {", ".join(settings)}{meant(wanted, settings)}'
        )
    if not wanted and len(settings) > 1:
        raise InputError(
            f'{folder}: holds several settings, {", ".join(settings)}; choose one, as {folder}:{settings[0]}, or '
            f'{folder}:{BY_DEVEL} for what devel chooses on every set'
        )
    return wanted or settings[0]


def _under(folder: Path, setting: str, found: Sequence[FoundCell]) -> list[FoundCell]:
    """The cells under a setting, with BY_DEVEL under that which devel chooses for every set. Raises InputError."""
    if setting != BY_DEVEL or any(record.setting == BY_DEVEL for _, record in found):
        return [(cell, record) for cell, record in found if record.setting == setting]
    chosen = _chosen(folder, [record for _, record in found])
    return [(cell, record) for cell, record in found if record.setting == chosen[record.dataset]]


def _chosen(folder: Path, records: Sequence[ScoredCell]) -> dict[str, str]:
    """Set -> best setting on devel, among equals the first as they are sorted; a set with one setting has that one.

    Raises InputError for a set for which no score can choose: predictions from elsewhere, a devel that was
    learned, or a task that learns nothing.
    """
    ranked = filter(devel_chooses, records)
    found = best_settings((r.dataset, r.setting, score_of(r, 'devel')) for r in ranked)
    for dataset in dict.fromkeys(r.dataset for r in records):
        settings = list(dict.fromkeys(r.setting for r in records if r.dataset == dataset))
        if dataset not in found and len(settings) > 1:
            raise InputError(
                f'{folder}: {dataset} has no score on devel that chooses one of {", ".join(settings)}; name one, as '
                f'{folder}:{settings[0]}'
            )
        found.setdefault(dataset, settings[0])
    return found


def read_cell(file: Path) -> FineTuning | OutsideCell:
    """The record of a cell that was trained here, or predicted elsewhere. Raises InputError."""
    value = read_sealed(file, REMEDY)
    kind = OutsideCell if value and OUTSIDE in value else FineTuning
    return kind.read(value, str(file), REMEDY)
