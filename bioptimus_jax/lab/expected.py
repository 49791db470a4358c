"""What another vocabulary does to the score of a set, expected from pairs of fine-tuned models.

One model of a pair keeps the source's vocabulary, the other has another. A mention is *respelled* where the two have
different pieces for it. The gain on a set is taken to be that of respelled mentions and that of the others, each by its
share; how well this does is measured by leaving out every set once.
"""

import dataclasses
import functools
import statistics
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from bioptimus_jax.errors import InputError
from bioptimus_jax.experiment.schema import Experiment
from bioptimus_jax.finetuning.finished import FinishedModel, read_model
from bioptimus_jax.finetuning.predictions import Predicted
from bioptimus_jax.finetuning.task import Task, task_of
from bioptimus_jax.run.folder import Run
from bioptimus_jax.scoring.score import METRICS
from bioptimus_jax.scoring.student import half_interval
from bioptimus_jax.tokenizer.subwords import Subwords
from bioptimus_jax.tokenizer.subwords import load as load_subwords

ALL, RESPELLED, SAME = 'all', 'respelled', 'same'
FEWEST_SETS = 3
"""Fewest sets: one is left out and two remain, for an interval."""


@dataclasses.dataclass(frozen=True)
class Observed:
    """What the other vocabulary did on a set: gains in F1, in percent, of all mentions and of both classes.

    `share`: of the gold mentions that are respelled. A class without a mention has no gain.
    """

    dataset: str
    share: float
    gain: float
    respelled: float | None
    same: float | None


@dataclasses.dataclass(frozen=True)
class Expected:
    """A gain in F1, in percent, and half of its 95 % interval for one more set; None from fewer than three sets."""

    gain: float
    half: float | None

    def __str__(self) -> str:
        if self.half is None:
            return f'{self.gain:+.1f}'
        return f'{self.gain:+.1f} [{self.gain - self.half:+.1f}, {self.gain + self.half:+.1f}]'


def observe(pairs: Sequence[tuple[str, str]]) -> list[Observed]:
    """What pairs say of every set of mentions that they have: RUN/finetune/MODEL that keeps the source's vocabulary,
    and another.

    Means over pairs and over the seeds that both models of a pair have. Raises InputError.
    """
    found: dict[str, list[Observed]] = {}
    for names in pairs:
        kept, other = map(read_model, names)
        common = {
            name: one for name in kept.cells if name in other.cells and (one := _observed(name, kept, other))
        }
        if not common:
            raise InputError(f'{kept.folder} and {other.folder} have no set of entities in common')
        for dataset, one in common.items():
            found.setdefault(dataset, []).append(one)
    return [_mean(dataset, of_pairs) for dataset, of_pairs in found.items()]


def expect(share: float, observed: Sequence[Observed]) -> Expected:
    """The gain on a set of which this share of the mentions is respelled."""
    errors = [error for _, error in left_out(observed)]
    half = half_interval(float(np.sqrt(np.mean(np.square(errors)))), len(errors) - 1) if errors else None
    return Expected(_combined(share, observed), half)


def left_out(observed: Sequence[Observed]) -> list[tuple[Observed, float]]:
    """Every set, and what the others expect of it less what was observed; none from fewer than FEWEST_SETS."""
    if len(observed) < FEWEST_SETS:
        return []
    others = [[*observed[:i], *observed[i + 1 :]] for i in range(len(observed))]
    return [(one, _combined(one.share, rest) - one.gain) for one, rest in zip(observed, others, strict=True)]


def _combined(share: float, observed: Sequence[Observed]) -> float:
    # A class that no set had gives no gain: there is nothing to expect it from.
    classes = {RESPELLED: share, SAME: 1 - share}
    gains = {name: [g for one in observed if (g := getattr(one, name)) is not None] for name in classes}
    return sum(part * statistics.fmean(gains[name] or [0.0]) for name, part in classes.items())


def _observed(dataset: str, kept: FinishedModel, other: FinishedModel) -> Observed | None:
    """What one pair says of a set; None of a set without mentions, or with another measure than their F1."""
    seeds = sorted(kept.cells[dataset].keys() & other.cells[dataset].keys())
    if not seeds:
        raise InputError(f'{dataset}: {kept.folder} and {other.folder} have no seed in common')
    task = task_of(kept.records[dataset][seeds[0]])
    if task.metric not in METRICS.values():
        return None
    vocabularies = _vocabulary(kept), _vocabulary(other)

    @functools.cache
    def spelling(words: tuple[str, ...]) -> str:
        one, two = (known.encode_words([' '.join(words)])[0].tokens for known in vocabularies)
        return SAME if one == two else RESPELLED

    counted = [
        [_counts(task, task.written(model.cells[dataset][seed]), spelling) for seed in seeds]
        for model in (kept, other)
    ]
    gold = counted[0][0]
    if not gold[ALL][1]:
        return None
    gains = {
        name: statistics.fmean(_f1(b[name]) - _f1(a[name]) for a, b in zip(*counted, strict=True))
        for name in gold
        if gold[name][1]
    }
    share = gold[RESPELLED][1] / gold[ALL][1]
    return Observed(dataset, share, gains[ALL], gains.get(RESPELLED), gains.get(SAME))


def _counts(
    task: Task, examples: Sequence[Predicted], spelling: Callable[[tuple[str, ...]], str]
) -> dict[str, list[int]]:
    """Correct, gold and predicted mentions, of all and of each class."""
    counts = {name: [0, 0, 0] for name in (ALL, RESPELLED, SAME)}
    for example in examples:
        gold, predicted = set(task.mentions(example.gold)), set(task.mentions(example.predicted))
        for column, mentions in enumerate((gold & predicted, gold, predicted)):
            for _, first, last in mentions:
                counts[ALL][column] += 1
                counts[spelling(example.words[first : last + 1])][column] += 1
    return counts


def _f1(counts: Sequence[int]) -> float:
    """F1 in percent."""
    correct, gold, predicted = counts
    return 200 * correct / (gold + predicted)


def _mean(dataset: str, of_pairs: Sequence[Observed]) -> Observed:
    """The mean over pairs."""

    def mean(name: str) -> Any:
        values = [value for one in of_pairs if (value := getattr(one, name)) is not None]
        return statistics.fmean(values) if values else None

    return Observed(dataset, *(mean(name) for name in ('share', 'gain', RESPELLED, SAME)))


def _vocabulary(model: FinishedModel) -> Subwords:
    """The vocabulary of a fine-tuned model: of a phase of its run, or of the folder that its name says."""
    folder = Path(model.folder)
    run = next((p.parent for p in (folder, *folder.parents) if p.name == 'finetune'), folder)
    exported = Run(run, Experiment(), quiet=True).stage_folder('export') / model.name
    for place in (exported, Path(model.name)):
        if place.is_dir():
            return load_subwords(place)
    raise InputError(
        f'{folder}: the tokenizer of {model.name} is neither in {exported} nor in a folder of that name; give the '
        'fine-tuning of a phase of its run'
    )
