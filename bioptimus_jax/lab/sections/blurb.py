"""The BLURB score: the mean over six tasks of the mean of their sets (Gu et al. 2021, section 5)."""

import contextlib
import dataclasses
import functools
import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence

import numpy as np

from bioptimus_jax.errors import InputError
from bioptimus_jax.progress.console import numbered
from bioptimus_jax.report.cells import units_of
from bioptimus_jax.report.gain import before_and_after
from bioptimus_jax.report.layout import Cell, Column, Table, between, each, fixed, missing, spread, tested
from bioptimus_jax.report.learned import parts_in_words
from bioptimus_jax.report.measures import Measures
from bioptimus_jax.report.section import Addition
from bioptimus_jax.scoring.comparison import Contrast, ScoresOfSet, SeedKey, compare
from bioptimus_jax.scoring.resampling import bootstrap, percentile_interval
from bioptimus_jax.sets import blurb as published
from bioptimus_jax.sets.blurb import GROUPS, MEMBERS

FEW = ('questions', 'similarity')
"""Groups with few test items: a score without them is shown too."""
RESAMPLES = 2000
SCORE = 'BLURB score'


@dataclasses.dataclass(frozen=True, eq=False)
class Scored:
    """A model's sets of BLURB. `named`: a set's name in BLURB -> in the run; `run`: what tells it from others."""

    measures: Measures
    model: str
    named: Mapping[str, str]
    run: str = ''

    @classmethod
    def of(cls, m: Measures, model: str, run: str = '') -> 'Scored':
        known = {d: published.record_of(d) for d in m.datasets if m.scores(model, d)}
        return cls(m, model, {record.name: d for d, record in known.items() if record}, run)

    def mean(self, name: str) -> float:
        """The mean over seeds, in percent."""
        return statistics.fmean(self.measures.scores(self.model, self.named[name]))

    def by_seed(self, name: str) -> dict[SeedKey, float]:
        """The score on a set with each seed, in percent; empty where it is not scored."""
        return self.measures.by_seed(self.model, self.named[name]) if name in self.named else {}

    def group(self, name: str) -> float | None:
        """The mean of a task's sets, None unless all of them are scored."""
        sets = GROUPS[name]
        return statistics.fmean(map(self.mean, sets)) if all(one in self.named for one in sets) else None

    @functools.cached_property
    def draws_R(self) -> Mapping[str, np.ndarray]:
        """The mean of a task on other test items, in percent; of whole tasks whose predictions are there."""
        found = {}
        for name, sets in GROUPS.items():
            if self.group(name) is not None:
                with contextlib.suppress(InputError):
                    found[name] = np.mean([self._of_set_R(one) for one in sets], 0)
        return found

    def _of_set_R(self, name: str) -> np.ndarray:
        m, dataset = self.measures, self.named[name]
        counts_SxUxC = np.stack([units_of(m, c).counts_UxC for c in m.cells(self.model, dataset)])
        # A seed for each set: its items are the same for every model, and drawn apart from those of other sets.
        return 100 * bootstrap(m.task(dataset).metric, counts_SxUxC, RESAMPLES, seed=MEMBERS.index(name))

    def score(self, groups: Sequence[str]) -> Cell:
        """The mean of tasks, with its interval over test items where predictions are there."""
        found = [x for x in map(self.group, groups) if x is not None]
        if len(found) < len(groups):
            return missing()
        mean = statistics.fmean(found)
        if not all(name in self.draws_R for name in groups):
            return fixed(mean, 2)
        drawn_R = np.mean([self.draws_R[name] for name in groups], 0)
        return Cell(between(mean, *percentile_interval(drawn_R), '.2f'), mean)


def blurb(m: Measures) -> Table:
    """BLURB's table of one run."""
    return of_runs({'': m})


def of_runs(runs: Mapping[str, Measures]) -> Table:
    """A row for every model: the mean of each task, the score, and the score without the tasks with few test items."""
    records = [Scored.of(m, model, run) for run, m in runs.items() for model in m.models]
    beyond = any(name not in published.SETS for r in records for name in r.named)
    shown = [r for r in records if r.named and beyond]
    titles = {name: f'{name} ({weight(name)})' for name in GROUPS}
    large = [name for name in GROUPS if name not in FEW]
    columns = [
        Column('model', lambda r: ': '.join(filter(None, (r.run, r.measures.label(r.model))))),
        *each(titles, lambda name, r: fixed(r.group(name), 2), 'high'),
        Column(SCORE, lambda r: r.score(list(GROUPS)), 'high'),
        Column(f'without {" and ".join(FEW)}', lambda r: r.score(large), 'high'),
    ]
    note = (
        'Test, percent: the mean of the sets of each task, each the mean over seeds; in brackets the weight of one'
        ' set in the score, which is the mean of the tasks. Intervals: 95 % over test items, drawn with replacement'
        ' in every set, the trained models as they are. — : not all sets of the task are scored.'
    )
    cells = (
        (r.measures, cell) for r in shown for d in r.named.values() for cell in r.measures.cells(r.model, d)
    )
    note = f'{note} {parts_in_words(cells)}'.strip()
    absent = 'no set of BLURB beside entities has been scored.'
    return Table.of('BLURB', columns, shown, note=note, absent=absent)


def mean_by_seed(scores: Sequence[Mapping[SeedKey, float]]) -> dict[SeedKey, float]:
    """The mean over several with each seed that all of them have."""
    seeds = [seed for seed in scores[0] if all(seed in one for one in scores)] if scores else []
    return {seed: statistics.fmean(one[seed] for one in scores) for seed in seeds}


def less_source(m: Measures) -> Table:
    """The last phase less the source, with an interval over fine-tunings: sets, tasks of several sets, the score."""
    ends = before_and_after(m)
    sides = {x: Scored.of(m, x) for x in ends} if ends[0] == m.source and ends[1] else {}
    scored = {name: {x: side.by_seed(name) for x, side in sides.items()} for name in MEMBERS}
    sets = {name: by for name, by in scored.items() if by and all(by.values())}

    def mean(parts: Iterable[ScoresOfSet]) -> ScoresOfSet:
        both = list(parts)
        return {x: mean_by_seed([part[x] for part in both]) for x in sides}

    whole = {name: own for name, own in GROUPS.items() if all(one in sets for one in own)}
    tasks = {name: mean(sets[one] for one in own) for name, own in whole.items()}
    score = SCORE if len(tasks) == len(GROUPS) else f'mean of these {len(tasks)} tasks'
    several = {name: tasks[name] for name, own in whole.items() if len(own) > 1}
    families = (sets, several, {score: mean(tasks.values())} if len(tasks) > 1 else {})
    found = [
        (one.name, family[one.name], one)
        for family in families
        for one in compare(family, [Contrast(ends[1], ends[0], (name,)) for name in family])
    ]

    def scores(at: int) -> Callable[..., Cell]:
        return lambda name, of_row, one: spread([*of_row[ends[at]].values()])

    columns = [
        Column('set or task', lambda name, of_row, one: name),
        *(Column(m.label(x) if x else 'source', scores(at)) for at, x in enumerate(ends)),
        Column('difference', lambda name, of_row, one: tested(one.over_trainings)),
    ]
    note = (
        'Test, percent, mean ± sd over fine-tunings; a task has the mean of its sets. Difference: paired by seed,'
        f" Student's 95 %. p is corrected after Holm over {numbered(len(sets), 'set')}, and apart from them over"
        f' {numbered(len(several), "task")} with several sets; that of a mean of tasks is not corrected. Other'
        ' pre-trainings may differ more.'
    )
    absent = 'no set of BLURB is scored of both the source and a phase.'
    return Table.of('BLURB: the last phase less the source', columns, found, note=note, absent=absent)


def weight(group: str) -> str:
    """The share of one set of a task in the score."""
    return f'1/{len(GROUPS) * len(GROUPS[group])}'


SECTION = Addition('entities', 'others', {'blurb': blurb, 'blurb_less_source': less_source})
