"""Stage `finetune`: models x sets x settings x seeds, each one a cell that is kept once finished."""

import dataclasses
import itertools
import statistics
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from bioptimus_jax.errors import ConfigError
from bioptimus_jax.files import digest, write_json, write_jsonl
from bioptimus_jax.finetune import lint
from bioptimus_jax.finetune.cells import MODEL, Cell, finished_cell, run_cells
from bioptimus_jax.finetune.kept import discard_others, kept_cells
from bioptimus_jax.finetune.loading import check_positions, torch_device
from bioptimus_jax.finetune.slices import label_distribution, slices
from bioptimus_jax.finetune.stability import check_layers
from bioptimus_jax.finetune.summary import (
    Group,
    Known,
    grouped,
    known_of_run,
    material_of,
    place,
    predictions_of,
    statistics_of,
)
from bioptimus_jax.model.folder import (
    files_for_transformers,
    is_computed_here,
    model_folders,
    named_model,
)
from bioptimus_jax.model.tensors import read_architecture
from bioptimus_jax.plan import architecture_of
from bioptimus_jax.pretrain.curriculum import kept_names
from bioptimus_jax.run import Run
from bioptimus_jax.schema import (
    INITIAL,
    NOT_OF_A_SETTING,
    STANDARD,
    Experiment,
    own_models,
)
from bioptimus_jax.sets import corpora
from bioptimus_jax.sets.corpora import Dataset
from bioptimus_jax.vocab.agreement import load_for_words

MODELS = 'config.finetune.models'
RECORD = (
    'model',
    'dataset',
    'setting',
    'seed',
    'devel',
    'test',
    'test_untyped',
    'test_by_type',
    'gold_in_file',
    'gold_scored',
    'sentences',
    'seconds',
    'history',
)
MERGED = 'merged into one'
SPEEDS = ('train_sentences_per_second', 'predict_sentences_per_second', 'best_epoch')


def external_inputs(experiment: Experiment) -> dict[str, Path | str]:
    """What decides the results outside the run: the files of the NER sets, and of models that it does not make.

    By set and by model, each of which may come and go without a change for the others.
    """
    found: dict[str, Path | str] = {}
    for chosen in corpora.chosen_sets(experiment.finetune):
        files = corpora.set_files(chosen.folder)
        found |= {f'set {chosen.name}:{file.relative_to(chosen.folder)}': file for file in files}
        if chosen.merged:
            found[f'set {chosen.name}:types'] = MERGED
    for name, folder in (named_model(experiment, entry, MODELS) for entry in experiment.finetune.models):
        if folder is not None:
            found |= {f'model {name}:{file.name}': file for file in files_for_transformers(folder)}
    return found


def build(run: Run, folder: Path) -> dict[str, Any]:
    """Fine-tune and score every cell into MODEL/SET/SETTING/seed-N, then write what they say together.

    lint.json and labels.json: of the sets, before anything is trained. results.jsonl: a record a cell. statistics.json:
    of every model, set and setting. slices.json: of the mentions, for the models of this run with their new tokens.
    """
    cells = _cells(run, folder)
    run.computes('finetune', torch_device(), threads=run.config.runtime.torch_threads)
    datasets = {
        chosen.name: corpora.read_dataset(chosen) for chosen in dict.fromkeys(c.dataset for c in cells)
    }
    folders = {cell.model: cell.model_folder for cell in cells}
    run.check_stop()  # what comes imports for seconds
    tokenizers = {model: load_for_words(path) for model, path in folders.items()}
    run.check_stop()
    _lint(run, folder, tokenizers, min(cell.settings.max_pieces for cell in cells), datasets)
    for chosen in dict.fromkeys(cell.dataset for cell in cells):
        corpora.require_all_mentions(chosen.folder, datasets[chosen.name])
    records = {cell.name: record for cell in cells if (record := finished_cell(cell))}
    waiting = [cell for cell in cells if cell.name not in records]
    run.say(f'finetune: {len(cells)} cells, {len(records)} of them done before')
    _train(run, cells, waiting, records)
    # Scored when no model was to be kept, or when another seed was the best.
    lacking = [
        dataclasses.replace(cell, again=True)
        for cell in kept_cells(cells, records, run.config.finetune.keep)
        if not (cell.target / MODEL).is_dir()
    ]
    if lacking:
        run.say(f'finetune: {len(lacking)} cells are fine-tuned again, for their models')
        _train(run, cells, lacking, records)
    discard_others(cells, records, run.config.finetune.keep)
    ordered = [records[cell.name] for cell in cells]
    write_jsonl(folder / 'results.jsonl', [{key: r[key] for key in RECORD + SPEEDS} for r in ordered])
    failed = _summarise(run, folder, grouped(cells, records), datasets, tokenizers)
    # Seconds differ from run to run; the scores and predictions decide whether a later stage is out of date.
    content = digest(
        [[r['model'], r['dataset'], r['setting'], r['seed'], r['devel'], r['test']] for r in ordered]
    )
    return {
        'cells': len(cells),
        'kept': len(cells) - len(waiting),
        'failed': failed,
        'gold_in_file': sum(r['gold_in_file'] for r in ordered),
        'gold_scored': sum(r['gold_scored'] for r in ordered),
        'content': content,
    }


def check(run: Run) -> None:
    """Raise what is wrong with the names of models, and with settings that a model's config.json does not allow."""
    e, made = run.config, run.manifest('export')
    for entry in e.finetune.models or e.phases:
        _, folder = named_model(e, entry, MODELS)
        if folder is None:
            if entry != INITIAL and not made and entry not in kept_names(e):
                raise ConfigError(
                    f'config.finetune.models: {entry!r} will not be exported with '
                    f'config.evaluation.snapshots_per_phase={e.evaluation.snapshots_per_phase}; '
                    f'there are {", ".join(kept_names(e))}'
                )
            shape, folder = architecture_of(run), Path(entry)
        else:
            files_for_transformers(folder)  # raises where there are none
            if not is_computed_here(folder):
                continue  # transformers knows its limits
            shape = read_architecture(folder)
        for settings in map(e.finetune.named, e.finetune.settings):
            check_positions(settings, shape.positions, folder)
            check_layers(settings, shape.layers, folder)


def state(cells: Sequence[Cell], records: Mapping[str, dict[str, Any]]) -> str:
    """A table for the terminal: models and settings against sets, how many seeds are done and their mean devel F1."""
    sets = list(dict.fromkeys(cell.dataset.name for cell in cells))
    rows = [['devel F1, seeds done', *sets]]
    for model, setting in dict.fromkeys((cell.model, cell.setting) for cell in cells):
        row = [model if setting == STANDARD else f'{model}, {setting}']
        for name in sets:
            own = [c for c in cells if (c.model, c.setting, c.dataset.name) == (model, setting, name)]
            done = [records[c.name]['devel']['default']['f1'] for c in own if c.name in records]
            row.append(
                f'{100 * statistics.fmean(done):.2f} {len(done)}/{len(own)}' if done else f'0/{len(own)}'
            )
        rows.append(row)
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    aligned = ([row[0].ljust(widths[0]), *map(str.rjust, row[1:], widths[1:])] for row in rows)
    return '\n'.join('  '.join(cells) for cells in aligned)


def _train(run: Run, cells: Sequence[Cell], waiting: Sequence[Cell], records: dict[str, Any]) -> None:
    """Fine-tune the cells that are waiting; adds to the records of all and keeps the models that are asked for."""
    progress = run.progress('finetune', len(cells), 'cells')
    progress.start_at(len(cells) - len(waiting))
    for cell, record in run_cells(run, waiting):
        records[cell.name] = record
        for epoch in record['history']:
            numbers = {'loss': epoch['loss'], 'devel_f1': epoch['devel_f1']}
            run.log('finetune', epoch['epoch'], kind='epoch', name=cell.name, **numbers)
        discard_others(cells, records, run.config.finetune.keep)
        run.say(f'finetune: {_line(cell.name, record)}')
        progress.update(1)
        run.saved()
        if _is_last(cell, cells):
            run.say(state(cells, records))


def _is_last(cell: Cell, cells: Sequence[Cell]) -> bool:
    """Whether it is the last seed of its model, set and setting."""
    return cell.name == [c for c in cells if place(c) == place(cell)][-1].name


def _lint(
    run: Run, folder: Path, tokenizers: Mapping[str, Any], max_pieces: int, datasets: Mapping[str, Dataset]
) -> None:
    """Look through the sets, with every tokenizer once, and keep and say what was found."""
    different: dict[str, tuple[str, Any]] = {}
    for model, tokenizer in tokenizers.items():
        different.setdefault(tokenizer.backend_tokenizer.to_str(), (model, tokenizer))
    found = [lint.lint_dataset(d, dict(different.values()), max_pieces) for d in datasets.values()]
    write_json(folder / 'lint.json', found)
    for line in (line for record in found for line in lint.lines(record)):
        run.say(line)
    tags = {
        d.name: {split: [s.tags for s in getattr(d, split)] for split in corpora.SPLITS}
        for d in datasets.values()
    }
    write_json(folder / 'labels.json', {name: label_distribution(splits) for name, splits in tags.items()})


def _summarise(
    run: Run,
    folder: Path,
    groups: Sequence[Group],
    datasets: Mapping[str, Dataset],
    tokenizers: Mapping[str, Any],
) -> int:
    """Write statistics.json and slices.json; gives the number of failed cells, and says which."""
    own = own_models(run.config)
    known = known_of_run(run) if own else Known()
    made, sliced = [], []
    progress = run.progress('finetune: slices', len(groups), 'models and sets')
    for group in groups:
        cell = group[0][0]
        dataset, predictions = datasets[cell.dataset.name], predictions_of(group)
        material = material_of(dataset, tokenizers[cell.model], known if cell.model in own else Known())
        made.append({**place(cell), **statistics_of(group, predictions)})
        sliced.append({**place(cell), 'slices': slices(predictions, material)})
        for seed, reason in made[-1]['failures'].items():
            run.say(f'finetune: {cell.model}/{dataset.name}/{cell.setting}, seed {seed}, failed: {reason}')
        progress.update(1)
        run.check_stop()
    write_json(folder / 'statistics.json', made)
    write_json(folder / 'slices.json', sliced)
    return sum(len(record['failures']) for record in made)


def _cells(run: Run, folder: Path) -> list[Cell]:
    """Every model with every set, setting and seed, as far as a setting goes with the model."""
    settings, runtime = run.config.finetune, run.config.runtime
    datasets = corpora.chosen_sets(settings)
    checksums = run.checksums()
    dataset_prints = {
        d: [checksums.sha256(f) for split in corpora.SPLITS for f in corpora.split_files(d.folder, split)]
        + [MERGED] * d.merged
        for d in datasets
    }
    named = {name: settings.named(name) for name in settings.settings}
    deciding = {
        n: {k: v for k, v in dataclasses.asdict(s).items() if k not in NOT_OF_A_SETTING}
        for n, s in named.items()
    }
    cells = []
    for model, model_folder in model_folders(
        run, run.config.finetune.models or run.config.phases, MODELS
    ).items():
        model_print = {file.name: checksums.sha256(file) for file in files_for_transformers(model_folder)}
        for dataset, setting, seed in itertools.product(datasets, settings.settings, settings.seeds):
            cells.append(
                Cell(
                    model=model,
                    model_folder=model_folder,
                    dataset=dataset,
                    setting=setting,
                    settings=named[setting],
                    seed=seed,
                    target=folder / model / dataset.name / setting / f'seed-{seed}',
                    threads=runtime.torch_threads,
                    quiet=run.quiet,
                    print_of=digest([model_print, dataset_prints[dataset], deciding[setting], seed]),
                    keep=settings.keep != 'none',
                )
            )
    checksums.save()
    return cells


def _line(name: str, record: dict[str, Any]) -> str:
    f1 = {mode: f'{100 * values["f1"]:.2f}' for mode, values in record['test'].items()}
    gold = f'gold mentions in file {record["gold_in_file"]} = scored {record["gold_scored"]}'
    return f'{name}: test F1 {f1["default"]} (strict {f1["strict"]}, relaxed {f1["relaxed"]}), {gold}'
