"""Models that were fine-tuned on one set, scored on the test of another that shares its labels.

Shapes: S seeds, U units, C counts of a metric.
"""

import dataclasses
import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from bioptimus_jax.errors import InputError
from bioptimus_jax.finetuning.cells import MODEL, Cell, place
from bioptimus_jax.finetuning.predictions import Predicted, Seeds, counts_by_unit
from bioptimus_jax.finetuning.task import Task, task_for
from bioptimus_jax.progress.console import Console
from bioptimus_jax.records.statistics import CrossedModel
from bioptimus_jax.scoring.comparison import Pairing, differences_on_items
from bioptimus_jax.scoring.resampling import bootstrap, mean_score, percentile_interval, recorded
from bioptimus_jax.sets.corpora import NamedSet
from bioptimus_jax.storage.files import digest, read_sealed, sha256, write_sealed

FOLDER = 'crossed'
"""Folder in a cell: a folder for each other set, with predictions as the cell has its own."""
RECORD = 'print.json'


def cross(console: Console, cells: Sequence[Cell], datasets: Mapping[NamedSet, Any]) -> list[CrossedModel]:
    """A record for every model, setting, set that was trained on and other set: scores, and the drop against models
    that were trained on the other set, with the same seeds or the best one of each. `cells`: those with a model.

    What was predicted before from the same cell for the same test is kept.
    """
    groups = [list(group) for _, group in itertools.groupby(cells, place)]
    pairs = [
        (own, other)
        for own, other in itertools.permutations(groups, 2)
        if own[0].model == other[0].model
        and own[0].setting == other[0].setting
        and own[0].dataset.task == other[0].dataset.task
    ]
    progress, found = console.progress('finetune: other sets', len(pairs), 'pairs of sets'), []
    for own, other in pairs:
        source, target = own[0].dataset, other[0].dataset
        task = task_for(target)
        if names := task.shared(datasets[source], datasets[target]):
            away, home = same_seeds(own, other)
            crossed = [
                _predicted(cell, datasets[source], target, datasets[target], console.check_stop)
                for cell in away
            ]
            at_home = [task.written(cell.target) for cell in home]
            found.append(_compared(own[0], other[0], task, names, crossed, at_home))
        progress.update(1)
    if not found:
        console.say(
            'finetune: no model is scored on another set (config.finetune.crossed): no two sets share labels'
        )
    return found


def same_seeds(own: Sequence[Cell], other: Sequence[Cell]) -> tuple[list[Cell], list[Cell]]:
    """Cells of the seeds that both have, or one of each: config.finetune.of_set may give each set its own."""
    common = {cell.seed for cell in own} & {cell.seed for cell in other}
    if not common:
        return [own[0]], [other[0]]
    return [c for c in own if c.seed in common], [c for c in other if c.seed in common]


def _predicted(
    cell: Cell, dataset: Any, other: NamedSet, of_other: Any, check: Callable[[], None]
) -> list[Predicted]:
    """What a kept model says of the test of another set; from its files where they are of the same."""
    from bioptimus_jax.finetuning.loading import computing_dtype, device_here
    from bioptimus_jax.finetuning.stored import load_parts
    from bioptimus_jax.finetuning.training import predict
    from bioptimus_jax.vocab.agreement import load_for_words

    task, target = task_for(other), cell.target / FOLDER / other.name
    gold = [task.answers(example) for example in of_other.test]
    now = digest(
        [cell.fingerprint, [[e.words, g, e.document] for e, g in zip(of_other.test, gold, strict=True)]]
    )
    try:
        before = read_sealed(target / RECORD)
        if before and before['print'] == now and before['file'] == sha256(target / task.files[0]):
            return task.written(target)
    except (InputError, OSError, KeyError):
        pass  # damaged: predicted again
    folder, settings = cell.target / MODEL, cell.settings
    tokenizer, parts = load_for_words(folder), load_parts(folder, task.hf_class)
    parts.pretrained.to(device_here())
    head = parts.head(task.head, settings, computing_dtype(settings, device_here()))
    windows = task.windows(tokenizer, of_other.test, settings).windows
    answers = predict(task, head, of_other.test, windows, settings, check)
    made = task.predicted(of_other.test, answers)
    task.write(target, made)
    write_sealed(target / RECORD, {'print': now, 'file': sha256(target / task.files[0])})
    return made


def _compared(
    own: Cell,
    other: Cell,
    task: Task,
    names: Mapping[str, str],
    crossed: Seeds,
    at_home: Seeds,
) -> CrossedModel:
    """The comparison of both on their shared labels alone."""
    theirs = dict.fromkeys(names.values(), '')
    same = {name: name for name in theirs}

    def counted(sides: Seeds, called: Mapping[str, str]) -> tuple[str, np.ndarray]:
        def narrowed(e: Predicted) -> Predicted:
            gold, predicted = task.restrict_labels(e.gold, same), task.restrict_labels(e.predicted, called)
            return dataclasses.replace(e, gold=tuple(gold), predicted=tuple(predicted))

        narrow = [list(map(narrowed, examples)) for examples in sides]
        return counts_by_unit(task.metric, narrow, task.unit)

    (unit, away_SxUxC), (_, home_SxUxC) = counted(crossed, names), counted(at_home, same)
    pairing = Pairing('', task.metric, tuple(range(len(crossed))), unit, '', away_SxUxC, home_SxUxC)
    [difference] = differences_on_items([pairing]).values()
    return CrossedModel(
        **vars(place(other)),
        trained_on=own.dataset.name,
        types=tuple(sorted(theirs)),
        seeds=len(crossed),
        test=mean_score(task.metric, away_SxUxC),
        interval=recorded(percentile_interval(bootstrap(task.metric, away_SxUxC))),
        in_corpus=mean_score(task.metric, home_SxUxC),
        drop=difference.observed,
        drop_interval=recorded(difference.interval),
    )
