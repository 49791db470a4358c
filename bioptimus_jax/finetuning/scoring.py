"""Predictions that were made elsewhere, scored as those of stage `finetune` are, and kept in the form of its cells."""

import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from bioptimus_jax.errors import ConfigError, InputError
from bioptimus_jax.finetuning.config import STANDARD
from bioptimus_jax.finetuning.finished import SCORES, read_cell
from bioptimus_jax.finetuning.outside import Submission
from bioptimus_jax.finetuning.predictions import Predicted, counts_by_unit
from bioptimus_jax.finetuning.task import Task, task_for
from bioptimus_jax.progress.console import numbered, plural
from bioptimus_jax.records.finetune import Details, OutsideCell
from bioptimus_jax.scoring.resampling import bootstrap, percentile_interval
from bioptimus_jax.scoring.student import bracketed
from bioptimus_jax.sets.advice import no_set_in, rebuilt
from bioptimus_jax.sets.corpora import NamedSet, has_a_split, is_dataset, set_at, split_source
from bioptimus_jax.sets.foreign.refused import refuse_unread
from bioptimus_jax.sets.roles import FOUND, Columns
from bioptimus_jax.sets.sentences import NAMES
from bioptimus_jax.storage.files import JsonObject, absolute, sha256, write_sealed


@dataclasses.dataclass(frozen=True)
class Gold:
    """The test items of a set, and the set for what a task says beside its metrics: whole where its other splits are
    in the same folder, of entities also the test items alone."""

    chosen: NamedSet
    task: Task
    file: Path
    examples: tuple[Any, ...]
    dataset: Any = None

    @property
    def labels(self) -> tuple[str, ...]:
        """What answers may be; none where nothing says so, as of a test file alone."""
        known = (getattr(one, 'labels', None) for one in (self.dataset, getattr(self.task, 'known', None)))
        return tuple(next(filter(None, known), ()))


@dataclasses.dataclass(frozen=True)
class ScoredPredictions:
    """Predictions beside their gold standard; `detail`: what the task has beside its metrics; `notes`: what is odd."""

    gold: Gold
    predictions: Path
    examples: tuple[Predicted, ...]
    detail: Details
    notes: tuple[str, ...]

    @property
    def drawn(self) -> tuple[str, int]:
        """What the intervals are over, in a word, and how many of them there are."""
        kind, counts_1xUxC = counts_by_unit(self.gold.task.metric, [self.examples], self.gold.task.unit)
        return kind, counts_1xUxC.shape[1]

    def measures(self) -> dict[str, dict[str, float]]:
        """Metric -> what a record holds of it, and `low` and `high`, the ends of its interval."""
        task, found = self.gold.task, {}
        for key, metric in task.metrics.items():
            _, counts_1xUxC = counts_by_unit(metric, [self.examples], task.unit)
            found[key] = metric.scores([e.gold for e in self.examples], [e.predicted for e in self.examples])
            found[key]['low'], found[key]['high'] = percentile_interval(bootstrap(metric, counts_1xUxC))
        return found

    def percents(self) -> dict[str, dict[str, float]]:
        """A metric's name for readers -> `score`, the ends `low` and `high` of its interval, and what it is made of."""
        task, found = self.gold.task, {}
        titles = [metric.title for metric in task.metrics.values()]
        for key, scores in self.measures().items():
            metric = task.metrics[key]
            name = f'{metric.title}, {key}' if titles.count(metric.title) > 1 else metric.title
            shown = {'score': scores[metric.name], 'low': scores['low'], 'high': scores['high']}
            shown |= {n: scores[n] for n in ('precision', 'recall') if n in scores}
            found[name] = {n: 100 * value for n, value in shown.items()}
        return found

    @property
    def reading_nothing(self) -> dict[str, float]:
        """What answers that read nothing would get, in percent."""
        return {name: 100 * score for name, score in self.detail.baselines.items()}

    def document(self) -> JsonObject:
        """Every metric with its interval, in percent; what answers that read nothing would get; what is odd.

        `drawn`: how many of which `unit` were drawn with replacement for the intervals.
        """
        task, (unit, drawn) = self.gold.task, self.drawn
        return {
            'set': self.gold.chosen.name,
            plural(task.unit): len(self.examples),
            'measures': [{'measure': name, **shown} for name, shown in self.percents().items()],
            'drawn': drawn,
            'unit': unit,
            'reading_nothing': self.reading_nothing,
            'gold': task.remarks(self.detail),
            'notes': list(self.notes),
        }

    def lines(self) -> list[str]:
        """What `document` has, for a terminal."""
        task, (unit, drawn) = self.gold.task, self.drawn
        said = [
            f'{self.gold.chosen.name}: {numbered(len(self.examples), task.unit)}, each scored once; test, percent, '
            f'[95 % over {numbered(drawn, unit.removesuffix("s"))} drawn with replacement]'
        ]
        for name, one in self.percents().items():
            beside = ''.join(f', {n} {one[n]:.2f}' for n in ('precision', 'recall') if n in one)
            said.append(f'  {name}: {one["score"]:.2f} {bracketed(one["low"], one["high"])}{beside}')
        if of_nothing := [f'{name} {score:.2f}' for name, score in self.reading_nothing.items()]:
            said.append(f'  of {task.metric.title}, answers that read nothing: {", ".join(of_nothing)}')
        return [
            *said,
            *(f'  {line}' for line in task.remarks(self.detail)),
            *(f'  note: {note}' for note in self.notes),
        ]

    def keep(self, folder: Path, name: str, seed: int | None) -> Path:
        """Leave a cell as stage finetune does, in FOLDER/NAME/SET/standard/seed-N. Raises ConfigError."""
        chosen, task = self.gold.chosen, self.gold.task
        cell = folder / name / chosen.name / STANDARD / f'seed-{seed or 0}'
        if (cell / SCORES).exists() and not isinstance(read_cell(cell / SCORES), OutsideCell):
            raise ConfigError(f'--to: {cell} holds a fine-tuning; choose another folder or another --name')
        _check_seeds(cell, seed)
        task.write(cell, self.examples)
        record = OutsideCell(
            model=name,
            dataset=chosen.name,
            task=chosen.recorded_task,
            set=chosen.described,
            setting=STANDARD,
            seed=seed or 0,
            seedless=seed is None,
            outside=self.predictions.name,
            test=task.scores([e.gold for e in self.examples], [e.predicted for e in self.examples]),
            **self.detail.details,
            files={file: sha256(cell / file) for file in task.files},
        )
        write_sealed(cell / SCORES, record.json())
        return cell


def _check_seeds(cell: Path, seed: int | None) -> None:
    """Raise ConfigError where a set would get predictions with a seed and others without one."""
    for file in sorted(cell.parent.glob(f'seed-*/{SCORES}')):
        before = read_cell(file)
        seedless = isinstance(before, OutsideCell) and before.seedless
        if seed is None and not seedless:
            raise ConfigError(
                f'--seed: is missing, but {file.parent} has one; give it, or choose another --name'
            )
        if seed is not None and seedless and file.parent != cell:
            raise ConfigError(
                f'--seed: {seed}, but {file.parent} holds predictions without one; remove it, or choose another --name'
            )


def gold_at(path: Path, task: str, columns: Columns = FOUND) -> Gold:
    """The test set in the folder of a set, in its test file, or in a file or BRAT folder alone.

    `task`: of sets without a record, which are named by their folder, or by a file that is not called test. `columns`:
    those of its files that are read.
    """
    if not path.exists():
        raise InputError(f'{path}: no such file or folder; give a set or its test file')
    inside, place = path.is_dir() and has_a_split(path), absolute(path)
    if path.is_dir() and not inside and rebuilt(place):
        raise no_set_in(path)
    plain, folder = place.name.partition('.')[0], path if inside else place.parent
    if not inside and plain not in NAMES['test']:
        folder /= plain
    chosen = set_at(folder, task, columns)
    learned = task_for(chosen)
    file = split_source(path, 'test')[1] if inside else path
    if not inside and not chosen.texts:
        refuse_unread(file)
    if is_dataset(folder) and split_source(folder, 'test')[1].samefile(file):
        dataset = learned.read(chosen)
        return Gold(chosen, learned, file, tuple(dataset.test), dataset)
    examples, dataset = learned.read_file(chosen, file)
    return Gold(chosen, learned, file, tuple(examples), dataset)


def score(
    path: Path, predictions: Path, task: str, types: Mapping[str, str], columns: Columns = FOUND
) -> ScoredPredictions:
    """Score a file or BRAT folder of predictions. Raises InputError unless every test item is there once."""
    gold = gold_at(path, task, columns)
    if not predictions.exists():
        raise InputError(f'{predictions}: no such file or folder of predictions')
    refuse_unread(predictions)
    asked = Submission(predictions, gold.file, gold.examples, gold.task.unit, types, gold.labels)
    answers, notes = gold.task.outside(gold.chosen, asked)
    examples = gold.task.predicted(gold.examples, answers)
    detail = gold.task.detail(gold.dataset, answers) if gold.dataset else Details()
    return ScoredPredictions(gold, predictions, tuple(examples), detail, tuple(notes))
