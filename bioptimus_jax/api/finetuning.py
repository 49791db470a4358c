"""Fine-tuning on a set, from Python."""

import contextlib
import dataclasses
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from bioptimus_jax.api.objects import (
    PLACE,
    FilePath,
    Keys,
    ModelOrFolder,
    TokenizerOrFolder,
    as_folder,
    as_json,
    experiment,
    is_table,
    undisturbed,
    workplace,
)
from bioptimus_jax.api.program import GIVEN, Shows, config_text, run_verb
from bioptimus_jax.errors import ConfigError, InputError
from bioptimus_jax.experiment.schema import Experiment
from bioptimus_jax.hosts.remote.models import at_commit
from bioptimus_jax.hosts.workers import cores
from bioptimus_jax.progress.console import shortened
from bioptimus_jax.storage.files import JsonObject, write_jsonl

if TYPE_CHECKING:
    from bioptimus_jax.finetuning.config import Finetune
    from bioptimus_jax.records.finetune import Scores

NAME, MODEL = 'data', 'model'
"""Names of a set and of a model that are given as objects."""
SPLITS = {'train': 'train', 'devel': 'devel', 'dev': 'devel', 'validation': 'devel', 'test': 'test'}
Rows: TypeAlias = Iterable[Mapping[str, Any]]
"""Examples as dictionaries, with the keys of a set in JSON: `tokens` and `ner_tags`, `text` and `label` ..."""


@dataclasses.dataclass(frozen=True)
class FineTuned:
    """A model that was fine-tuned: its `folder`, for `predict` and transformers, and its scores on devel and test.

    Scores: metric -> its numbers by their names, as `{'default': {'f1': 0.83, ...}}`; `default` chooses the seed.
    """

    folder: Path
    seed: int
    devel: 'Scores'
    test: 'Scores'


def finetune(
    model: 'ModelOrFolder',
    data: FilePath | Mapping[str, Rows],
    task: str = Experiment().finetune.task,
    *,
    tokenizer: 'TokenizerOrFolder | None' = None,
    workdir: FilePath = 'runs/finetuned',
    keys: Keys | None = None,
    quiet: bool = False,
    progress: bool | None = None,
) -> FineTuned:
    """Fine-tune a model on a set, and keep the seed that is best on devel; with `finetune.keep` others, too.

    `model`: of transformers with `tokenizer`, a Hugging Face folder or a hub id. `data`: the folder of a set, in any
    form that `bioptimus lint` reads, or its splits by name, train, devel (or validation) and test: rows as
    dictionaries, tables of pandas, or all of them as a `DatasetDict` of datasets. `task`: entities, classes,
    similarity, word_classes; of a public set it is known.
    `workdir`: the run folder, which stays. `keys`: values by their dotted names, as `{'finetune.seeds': (0, 1, 2)}`.
    Without others epochs, batch and learning rate follow the model and the set. Labels are texts ('1' for 1), and the
    ids of a model follow their order, not that of a `ClassLabel`: compare names. `quiet`: no lines.
    `progress`: a bar; by default on a terminal and in a notebook, unless `quiet`.

    It is `bioptimus finetune` in a process of its own, on all cores, unless `keys` has some of runtime. The same call
    continues what was interrupted.

    Raises ConfigError, InputError as the program does, KeyboardInterrupt after saving, and RuntimeError for a crash.
    """
    run = Path(workdir).absolute()
    given, shows = run / GIVEN, Shows.of(quiet, progress)
    with workplace() as place, undisturbed():
        (place / GIVEN).mkdir()
        if isinstance(model, PLACE):
            name = os.fspath(model)
            name = str(Path(name).absolute()) if Path(name).exists() else at_commit(name)
        else:
            as_folder(place / GIVEN / MODEL, model, tokenizer)
            name = str(given / MODEL)
        own: dict[str, Any] = {'stages': ('finetune',), 'finetune.models': (f'{MODEL}={name}',)}
        own |= {'finetune.keep': 'best', 'finetune.task': task, **_set_of(data, place, given)}
        own |= keys or {}
        asked = experiment(own).finetune
        if (sets := place / GIVEN / 'sets').is_dir():
            _check_rows(dataclasses.replace(asked, folder=str(sets)))
        if not any(name.startswith('runtime.') for name in keys or ()):
            # Cells stand side by side, and share the cores.
            own['runtime.torch_threads'] = max(len(cores()) // (len(asked.seeds) * len(asked.settings)), 1)
        run_verb('finetune', place, run, config_text('finetune', 'defaults()', own), shows)
    return _best(run)


def _set_of(data: FilePath | Mapping[str, Rows], place: Path, given: Path) -> Keys:
    """The keys that name the set. Rows are written below `place`, which later lies at `given`."""
    if isinstance(data, PLACE):
        return _set_in(Path(data))
    if not isinstance(data, Mapping):
        kind = 'a table' if is_table(data) else type(data).__name__
        raise ConfigError(
            f"data: is {kind}; give the folder of a set, or {{'train': rows, 'devel': rows, 'test': rows}}"
        )
    splits: dict[str, Rows] = {}
    for name, rows in data.items():
        if (split := SPLITS.get(name, name)) in splits:
            raise ConfigError(f'data: has two splits for {split}; give one of them')
        splits[split] = rows
    if lacking := sorted({*SPLITS.values()} - splits.keys()):
        raise ConfigError(
            f'data: has no {", ".join(lacking)}; give train, devel (or validation) and test: train_test_split() of '
            'datasets, or of scikit-learn, takes them from the rest'
        )
    target = place / GIVEN / 'sets' / NAME
    target.mkdir(parents=True)
    if hasattr(data, 'save_to_disk'):  # a DatasetDict keeps the names of its labels
        with _no_bars_of_datasets():
            data.save_to_disk(str(target))
    else:
        for split in ('train', 'devel', 'test'):
            if not (rows := list(_rows(split, splits[split]))):
                raise ConfigError(f'data: {split} has no row')
            write_jsonl(target / f'{split}.jsonl', rows)
    return {'finetune.folder': str(given / 'sets'), 'finetune.datasets': (NAME,)}


def _check_rows(settings: 'Finetune') -> None:
    """Read the set that was written for the given rows. Raises InputError, which names the row, and not its file."""
    from bioptimus_jax.finetuning.task import task_for
    from bioptimus_jax.sets.corpora import chosen_sets

    try:
        for one in chosen_sets(settings):
            task_for(one).read(one)
    except InputError as error:
        splits = '|'.join(sorted({*SPLITS.values()}))
        of_split = rf'{re.escape(settings.folder)}/{NAME}/({splits})\.jsonl(?::(\d+))?'
        error.args = (re.sub(of_split, _name_of_row, str(error)).replace(f'{settings.folder}/{NAME}', NAME),)
        raise


def _name_of_row(found: re.Match[str]) -> str:
    split, line = found.groups()
    return f'data: row {int(line) - 1} of {split}' if line else f'data: {split}'


def _set_in(place: Path) -> Keys:
    """The keys that name the set in a folder. Raises InputError for a file, a folder of sets, and what is not there."""
    from bioptimus_jax.sets.corpora import is_dataset, name_of, set_folders

    folder = Path(os.path.abspath(place))
    if not folder.exists():
        raise InputError(f'data: {place}: no such folder')
    if folder.is_file():
        raise InputError(f'data: {place} is a file; give the folder of the set, {place.parent}')
    if not is_dataset(folder) and (found := [str(one.relative_to(folder)) for one in set_folders(folder)]):
        raise InputError(f'data: {place} is a folder of sets ({shortened(found)}); give one of them')
    return {'finetune.folder': str(folder.parent), 'finetune.datasets': (name_of(folder),)}


def _rows(split: str, rows: Any) -> Iterator[JsonObject]:
    """The rows of a split as JSON can hold them. Raises ConfigError for what is none."""
    if is_table(rows):  # of polars, or of pandas
        rows = rows.to_dicts() if hasattr(rows, 'to_dicts') else rows.to_dict('records')
    if not isinstance(rows, Iterable) or isinstance(rows, str | bytes | Mapping):
        raise ConfigError(f'data: {split} is {type(rows).__name__}; give rows, each a dictionary')
    for number, row in enumerate(rows):
        if not isinstance(row, Mapping):
            raise ConfigError(f'data: row {number} of {split} is {type(row).__name__}, not a dictionary')
        yield as_json(row)


@contextlib.contextmanager
def _no_bars_of_datasets() -> Iterator[None]:
    import datasets

    shown = not datasets.are_progress_bars_disabled()
    datasets.disable_progress_bars()
    try:
        yield
    finally:
        if shown:
            datasets.enable_progress_bars()


def _best(run: Path) -> FineTuned:
    """The kept model of a run; of several that of the setting, and then the seed, that is best on devel."""
    from bioptimus_jax.finetuning.chosen import best_seed, best_setting
    from bioptimus_jax.finetuning.finished import SCORES, cells_of, read_cell
    from bioptimus_jax.records.finetune import FineTuning

    found = ((read_cell(folder / SCORES), folder) for folder in cells_of(run / 'finetune') or ())
    cells = ((record, folder) for record, folder in found if isinstance(record, FineTuning))
    if not (best := best_seed(best_setting(cells))):
        raise InputError(f'{run}: has kept no model; leave finetune.keep=best')
    record, folder = best
    return FineTuned(folder, record.seed, record.devel, record.test)
