"""Stage `finetune`: models x sets x settings x seeds, each one a cell that is kept once finished."""

import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from bioptimus_jax.errors import ConfigError, InputError
from bioptimus_jax.finetuning import recommended, search
from bioptimus_jax.finetuning.bridge import computed_architecture
from bioptimus_jax.finetuning.cards import devices_of, encoder_here
from bioptimus_jax.finetuning.cells import MODEL, Cell, finished_cell, finished_rung, place, run_cells
from bioptimus_jax.finetuning.config import JAX, Finetune, HasFinetune, own_models
from bioptimus_jax.finetuning.crossed import cross
from bioptimus_jax.finetuning.ending import ending
from bioptimus_jax.finetuning.finished import RESULTS
from bioptimus_jax.finetuning.grams import in_corpus
from bioptimus_jax.finetuning.loading import check_positions
from bioptimus_jax.finetuning.look import keep_looks
from bioptimus_jax.finetuning.overlap import classes_of, overlap
from bioptimus_jax.finetuning.stability import check_layers
from bioptimus_jax.finetuning.subset import as_learned, as_seen
from bioptimus_jax.finetuning.summary import (
    Group,
    TokenStatistics,
    discard_others,
    grouped,
    kept_cells,
    result_line,
    statistics_of,
    token_statistics,
)
from bioptimus_jax.finetuning.task import task_for, task_of
from bioptimus_jax.finetuning.texts.measures import MEASURES
from bioptimus_jax.finetuning.together import keep_together
from bioptimus_jax.hosts.config import Runtime
from bioptimus_jax.model.config import INITIAL
from bioptimus_jax.model.folder import (
    files_for_transformers,
    is_computed_here,
    is_finetuned,
    model_folders,
    named_model,
)
from bioptimus_jax.model.tensors import read_architecture
from bioptimus_jax.model.weights import no_weights, tensor_names, weight_files
from bioptimus_jax.pretrain.curriculum import kept_names
from bioptimus_jax.pretrain.plan import architecture_of
from bioptimus_jax.progress.console import Console, numbered
from bioptimus_jax.records.counts import FinetuneCounts, StageResult, VocabCounts
from bioptimus_jax.records.finetune import FineTuning, Trained
from bioptimus_jax.records.record import plain
from bioptimus_jax.records.statistics import ModelStatistics, SettingSearch, SlicedModel
from bioptimus_jax.run.folder import Run
from bioptimus_jax.run.manifests import claim_cells, read_manifest
from bioptimus_jax.run.shipped import plug_ins, variations
from bioptimus_jax.sets import corpora
from bioptimus_jax.sets.corpora import NamedSet
from bioptimus_jax.sets.sentences import SPLITS
from bioptimus_jax.storage.files import Checksums, JsonObject, digest, write_json, write_jsonl
from bioptimus_jax.vocab.agreement import load_for_words

MODELS = 'config.finetune.models'
Sets = Mapping[NamedSet, Any]
Seen = tuple[NamedSet, bool]
"""A set, and whether its devel is learned, too."""


def external_inputs(experiment: HasFinetune) -> dict[str, Path | str]:
    """What decides the results outside the run: the files of the sets, and of models that it does not make.

    By set, by model and by plug-in, each of which may come and go without a change for the others.
    """
    found: dict[str, Path | str] = {}
    for chosen in corpora.chosen_sets(experiment.finetune):
        files = corpora.set_files(chosen.folder)
        found |= {f'set {chosen.name}:{file.relative_to(chosen.folder)}': file for file in files}
        if chosen.reading:
            found[f'set {chosen.name}:types'] = chosen.reading
        if rule := corpora.rule_of_words(chosen.folder):
            found[f'set {chosen.name}:words'] = rule
        for tried in corpora.settings_on(experiment.finetune, chosen.name).tried:
            found |= _code(chosen, tried)
    for name, folder in (named_model(experiment, entry, MODELS) for entry in experiment.finetune.models):
        if folder is not None:
            found |= {f'model {name}:{file.name}': file for file in files_for_transformers(folder)}
    return found


def build(run: Run[HasFinetune], folder: Path) -> StageResult:
    """Fine-tune and score every cell into MODEL/SET/SETTING/seed-N, then write what they say together.

    lint.json and labels.json: of the sets, before anything is trained. results.jsonl: a record a cell. statistics.json:
    of every model, set and setting. crossed.json: of kept models on the test of other sets. slices.json: of the
    mentions, for the models of this run with their new tokens. in_corpus.json: how much of each test item the corpus of
    this run has. search.json: which settings halving stopped, and what the search took.
    """
    settings, runtime, checksums = run.config.finetune, run.config.runtime, run.checksums()
    models = model_folders(run.config, run.folder, settings.models or run.config.phases, MODELS)
    cells = _cells(settings, models, folder, checksums, runtime.torch_threads, run.console.quiet)
    checksums.save()
    # Lets `compare` ignore stale cells of this folder until the stage is finished.
    claim_cells(folder, {cell.name: cell.fingerprint for cell in cells})
    cells = _computed_by(cells, runtime)
    by = dict.fromkeys(devices_of(runtime, cell.settings.encoder) for cell in cells)
    run.computes('finetune', '; '.join(by), threads=runtime.torch_threads)
    datasets = {one: task_for(one).read(one) for one in dict.fromkeys(cell.dataset for cell in cells)}
    cells = _completed(run.console, cells, datasets)
    run.console.check_stop()  # what comes imports for seconds
    tokenizers = {model: load_for_words(path) for model, path in models.items()}
    run.console.check_stop()
    shortest = {one: min(c.settings.max_pieces for c in cells if c.dataset == one) for one in datasets}
    for line in keep_looks(folder, tokenizers, datasets, shortest):
        run.console.say(line)
    for one, dataset in datasets.items():
        task_for(one).check(one, dataset)
    records: dict[str, FineTuning] = {}
    cells, done, searched = _search(run, cells, datasets, records)
    if lacking := _without_model(cells, records, settings.keep):
        run.console.say(f'finetune: fine-tunes {numbered(len(lacking), "cell")} again, to keep models')
        _train(run, cells, lacking, datasets, records)
    discard_others(cells, records, settings.keep)
    # The old file goes first: it must not outlive models that it does not describe if the stage is stopped here.
    crossed = folder / 'crossed.json'
    crossed.unlink(missing_ok=True)
    if settings.crossed:
        write_json(crossed, plain(cross(run.console, kept_cells(cells, records, settings.keep), datasets)))
    ordered = [records[cell.name] for cell in cells]
    results = _write_results(folder, ordered, searched)
    own, known = own_models(run.config), TokenStatistics()
    if own:
        vocab = VocabCounts.of(run.manifest('vocab'))
        words = vocab.words_counted if vocab else 0
        known = token_statistics(run.folder('surgery'), run.folder('vocab'), words)
    of_models = {n: (of, known if n in own else TokenStatistics()) for n, of in tokenizers.items()}
    shared = _shared(folder, run.workdir / 'corpus', cells, datasets, runtime, run.console)
    groups = grouped(cells, records)
    made = _summarise(folder, groups, datasets, of_models, shared, run.console)
    keep_together(groups, made, datasets, settings.keep)
    for line in ending(groups, made):
        run.console.say(line)
    failed = sum(len(one.failures) for one in made)
    sums, content = _sums(ordered, results)
    return StageResult(FinetuneCounts(cells=len(cells), kept=done, failed=failed, sums=sums), content)


def check(run: Run[HasFinetune]) -> None:
    """Raise what is wrong with models, with settings that a model's config.json does not allow, and with sets."""
    e, made = run.config, run.manifest('export')
    corpora.check_names_of_sets(e.finetune)
    chosen = corpora.chosen_sets(e.finetune)
    of_sets = {one.name: _tried(e.finetune, one) for one in chosen}
    tried = [each for of_set in of_sets.values() for each in of_set]
    bridged = JAX in {encoder_here(wanted, e.runtime) for wanted in {each.encoder for each in tried}}
    models = {entry: named_model(e, entry, MODELS) for entry in e.finetune.models or e.phases}
    learned = {one.name: of_sets[one.name] for one in chosen if task_for(one).learns}
    search.check(e.finetune, [name for name, _ in models.values()], learned)
    for entry, (_, folder) in models.items():
        if folder is None:
            if entry != INITIAL and not made and entry not in kept_names(e):
                raise ConfigError(
                    f'config.finetune.models: {entry!r} will not be exported with '
                    f'config.evaluation.snapshots_per_phase={e.evaluation.snapshots_per_phase}; '
                    f'there are {", ".join(kept_names(e))}'
                )
            shape, folder = architecture_of(e, run.workdir / 'surgery'), Path(entry)
        else:
            files_for_transformers(folder)  # raises where there are none
            if not weight_files(folder):
                raise no_weights(folder)
            tensor_names(folder)  # raises where they are damaged
            if bridged:
                computed_architecture(folder)  # raises where there is no code for it
            if not is_computed_here(folder):
                continue  # transformers knows its limits
            shape = read_architecture(folder)
        for settings in tried:
            check_positions(settings, shape.positions, folder)
            check_layers(settings, shape.layers, folder)
    for one in chosen:
        task_for(one).read(one)  # takes seconds: pre-training takes days


def _search(
    run: Run[HasFinetune], cells: Sequence[Cell], datasets: Sets, records: dict[str, FineTuning]
) -> tuple[list[Cell], int, SettingSearch | None]:
    """Train what the search leaves of the cells, to the end; adds to the records.

    Gives these cells, how many of them were finished before, and what search.json holds.
    """
    settings, done = run.config.finetune, 0

    def rung(part: Sequence[Cell]) -> dict[str, Trained]:
        found: dict[str, Trained] = {cell.name: stopped for cell in part if (stopped := finished_rung(cell))}
        waiting = [cell for cell in part if cell.name not in found]
        progress = run.console.progress('finetune: rung', len(part), 'cells')
        progress.start_at(len(found))
        for cell, record in run_cells(
            run.config.runtime, waiting, datasets, run.console.say, run.console.check_stop
        ):
            found[cell.name] = record
            progress.update(1)
            run.saved()
        return found

    def finish(part: Sequence[Cell]) -> None:
        nonlocal done
        before = {cell.name: record for cell in part if (record := finished_cell(cell))}
        records.update(before)
        done += len(before)
        run.console.say(f'finetune: {numbered(len(part), "cell")}, {len(before)} of them done before')
        _train(run, part, [cell for cell in part if cell.name not in before], datasets, records)

    first = search.halved(cells, settings.halving, settings.tuned_on, rung)
    for r in first.stopped:
        models, devel = ', '.join(r.models), f'{100 * r.devel:.2f}'
        run.console.say(
            f'finetune: {models} on {r.dataset}: {r.setting} stops after {r.after} epochs, devel {devel}'
        )
    finish(first.cells)
    left = first.cells
    if settings.tuned_on:
        followers = search.following(cells, first.cells, records)
        finish(followers)
        left = [*left, *followers]
    names = {cell.name for cell in left}
    trained = [cell for cell in cells if cell.name in names]
    if not (settings.halving or settings.tuned_on):
        return trained, done, None
    spent, every = first.epochs + search.epochs_of(trained), search.epochs_of(cells)
    return (
        trained,
        done,
        SettingSearch(
            halving=settings.halving,
            tuned_on=settings.tuned_on,
            stopped=tuple(first.stopped),
            epochs=spent,
            epochs_of_all=every,
        ),
    )


def _without_model(cells: Sequence[Cell], records: Mapping[str, FineTuning], keep: str) -> list[Cell]:
    """The cells to fine-tune again, as their models are wanted and missing: they were scored when no model was kept, or
    when another seed was the best."""
    return [
        dataclasses.replace(cell, again=True)
        for cell in kept_cells(cells, records, keep)
        if not (cell.target / MODEL).is_dir()
    ]


def _train(
    run: Run[HasFinetune],
    cells: Sequence[Cell],
    waiting: Sequence[Cell],
    datasets: Sets,
    records: dict[str, FineTuning],
) -> None:
    """Fine-tune the cells that are waiting; adds to the records of all and keeps the models that are asked for."""
    progress = run.console.progress('finetune', len(cells), 'cells')
    progress.start_at(len(cells) - len(waiting))
    for cell, record in run_cells(
        run.config.runtime, waiting, datasets, run.console.say, run.console.check_stop
    ):
        assert isinstance(record, FineTuning)  # it has no rung
        records[cell.name] = record
        for epoch in record.history:
            numbers = {name: value for name, value in epoch.items() if name != 'epoch'}
            run.metrics.write('finetune', int(epoch['epoch']), kind='epoch', name=cell.name, **numbers)
        discard_others(cells, records, run.config.finetune.keep)
        run.console.say(f'finetune: {result_line(cell.name, record)}')
        progress.update(1)
        run.saved()


def _write_results(
    folder: Path, ordered: Sequence[FineTuning], searched: SettingSearch | None
) -> list[JsonObject]:
    """Write search.json, or remove that of another search, and results.jsonl; gives the lines of the latter."""
    if searched:
        write_json(folder / search.FILE, searched.json())
    else:
        (folder / search.FILE).unlink(missing_ok=True)
    results = [record.result(task_of(record).reported).json() for record in ordered]
    write_jsonl(folder / RESULTS, results)
    return results


def _sums(ordered: Sequence[FineTuning], results: Sequence[JsonObject]) -> tuple[dict[str, int], str]:
    """What tasks sum up over cells, and the digest of their scores.

    Seconds differ from run to run; the scores and predictions decide whether a later stage is out of date.
    """
    summed = dict.fromkeys(key for record in ordered for key in task_of(record).summed)
    content = digest(
        [[r[key] for key in ('model', 'dataset', 'setting', 'seed', 'devel', 'test')] for r in results]
    )
    return {key: sum(r.get(key, 0) for r in results) for key in summed}, content


def _summarise(
    folder: Path,
    groups: Sequence[Group],
    datasets: Sets,
    of_models: Mapping[str, tuple[Any, TokenStatistics]],
    shared: Mapping[Seen, dict[str, list[str]]],
    console: Console,
) -> list[ModelStatistics]:
    """Write statistics.json and slices.json; gives the former, and says which cells failed.

    `of_models`: a tokenizer, and what is known of its tokens. `shared`: see `_shared`.
    """
    made, sliced = [], []
    progress = console.progress('finetune: slices', len(groups), 'models and sets')
    for group in groups:
        cell = group[0][0]
        task = task_for(cell.dataset)
        predictions = [task.written(each.target) for each, _ in group]
        made.append(statistics_of(group, predictions, datasets[cell.dataset]))
        seen = as_seen(datasets[cell.dataset], cell.settings)
        found = task.slices(seen, predictions, *of_models[cell.model])
        repeated = overlap(task, predictions, shared[cell.dataset, cell.settings.learn_devel])
        sliced.append(SlicedModel(**vars(place(cell)), slices=found, overlap=repeated))
        for seed, reason in made[-1].failures.items():
            console.say(
                f'finetune: {cell.model}/{cell.dataset.name}/{cell.setting}, seed {seed}, failed: {reason}'
            )
        progress.update(1)
        console.check_stop()
    write_json(folder / 'statistics.json', plain(made))
    write_json(folder / 'slices.json', plain(sliced))
    return made


def _shared(
    folder: Path, corpus: Path, cells: Sequence[Cell], datasets: Sets, runtime: Runtime, console: Console
) -> dict[Seen, dict[str, list[str]]]:
    """The classes of a set's test items by what of their text training has, and the corpus of the run where there is
    one and it is still at hand."""
    found: dict[str, list[float | None]] = {}
    if read_manifest(corpus):
        tests = {one.name: dataset.test for one, dataset in datasets.items()}
        try:
            found = in_corpus(folder, tests, corpus, runtime, console)
        except InputError as error:
            console.say(f'finetune: test items are not compared with the corpus: {error}')
    settings = {(cell.dataset, cell.settings.learn_devel): cell.settings for cell in cells}
    return {
        (one, with_devel): classes_of(as_seen(datasets[one], chosen), found.get(one.name, ()))
        for (one, with_devel), chosen in settings.items()
    }


def _cells(
    settings: Finetune,
    models: Mapping[str, Path],
    folder: Path,
    checksums: Checksums,
    threads: int,
    quiet: bool,
) -> list[Cell]:
    """Every model with every set, setting and seed."""
    datasets = {
        one: [
            f'{split} {checksums.sha256(f)}'  # a document that moves from one split to another is a change
            for split in SPLITS
            for f in corpora.split_files(one.folder, split)
        ]
        + [
            *filter(None, (one.reading, corpora.rule_of_words(one.folder), one.recorded_task)),
            *([one.described.json()] if one.described else []),
            *one.columns.asked,
        ]
        for one in corpora.chosen_sets(settings)
    }
    tried = {one: [(each, _code(one, each)) for each in _tried(settings, one)] for one in datasets}
    cells = []
    for model, model_folder in models.items():
        of_model = {file.name: checksums.sha256(file) for file in files_for_transformers(model_folder)}
        for dataset in datasets:
            for of_cell, code, seed in ((s, code, seed) for s, code in tried[dataset] for seed in s.seeds):
                [setting] = of_cell.settings
                cells.append(
                    Cell(
                        model=model,
                        model_folder=model_folder,
                        dataset=dataset,
                        setting=setting,
                        settings=of_cell,
                        seed=seed,
                        target=folder / model / dataset.name / setting / f'seed-{seed}',
                        fingerprint=digest(
                            [of_model, datasets[dataset], deciding(of_cell), seed, *([code] if code else [])]
                        ),
                        threads=threads,
                        quiet=quiet,
                        keep=settings.keep != 'none',
                    )
                )
    return cells


def _computed_by(cells: Sequence[Cell], runtime: Runtime) -> list[Cell]:
    """The cells with what computes their encoders on this machine, which no fingerprint knows."""
    by = {wanted: encoder_here(wanted, runtime) for wanted in {cell.settings.encoder for cell in cells}}
    settings = (dataclasses.replace(cell.settings, encoder=by[cell.settings.encoder]) for cell in cells)
    return [dataclasses.replace(cell, settings=made) for cell, made in zip(cells, settings, strict=True)]


def _completed(console: Console, cells: Sequence[Cell], datasets: Sets) -> list[Cell]:
    """The cells with numbers for the keys that follow model and set. Raises ConfigError for too few examples."""
    learned = {
        place: len(as_learned(task_for(cell.dataset), datasets[cell.dataset], cell.settings).train)
        for place, cell in {(cell.dataset, cell.setting): cell for cell in cells}.items()
    }
    widths = {cell.model_folder: recommended.width_of(cell.model_folder) for cell in cells}
    found, said = [], dict[str, None]()
    learning = dict.fromkeys(cell.model_folder for cell in cells if task_for(cell.dataset).learns)
    for folder in filter(is_finetuned, learning):
        console.say(f'finetune: {folder} was fine-tuned: its encoder is taken, its head is drawn again')
    for cell in cells:
        if recommended.open_keys(cell.settings):
            size = widths[cell.model_folder], learned[cell.dataset, cell.setting]
            where = cell.name.rpartition('/')[0]
            if task_for(cell.dataset).learns:
                said[f'finetune: {where}: {recommended.words(cell.settings, *size)}'] = None
            made, by_rule = recommended.completed(cell.settings, *size), recommended.open_keys(cell.settings)
            cell = dataclasses.replace(cell, settings=made, by_rule=tuple(by_rule))
        found.append(cell)
    for line in said:
        console.say(line)
    return found


def _tried(settings: Finetune, dataset: NamedSet) -> list[Finetune]:
    """The settings of a set. Raises ConfigError for those that it cannot be learned with."""
    found = corpora.settings_on(settings, dataset.name).tried
    for named in found:
        task_for(dataset).check_settings(named, dataset.name)
    return found


def _code(chosen: NamedSet, settings: Finetune) -> dict[str, str]:
    """The code of plug-ins by which a set is learned and measured under a setting."""
    measures = chosen.texts.measures if chosen.texts else ()
    named = variations(dataclasses.replace(settings, task=chosen.task))
    return plug_ins([*named, *(('measure', name, MEASURES) for name in measures if name in MEASURES.added)])


def deciding(settings: Finetune) -> JsonObject:
    """What of a setting decides a result."""
    return settings.deciding() | (
        {'recommended': recommended.VERSION} if recommended.open_keys(settings) else {}
    )
