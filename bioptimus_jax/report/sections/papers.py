"""The tables of other papers in their layout, with the scores at hand beside the printed ones."""

import abc
import dataclasses
import functools
import itertools
import math
import statistics
from collections.abc import Mapping
from typing import ClassVar

from bioptimus_jax.finetune.task import DEFAULT
from bioptimus_jax.report import paper
from bioptimus_jax.report.layout import NOT_RUN, Cell, Column, Table, between, each, missing
from bioptimus_jax.report.measures import NOT_SCORED, Measures
from bioptimus_jax.report.printed import PAPERS, WAY, Asked, Printed, Scored
from bioptimus_jax.report.section import Section
from bioptimus_jax.schema import NOT_OF_A_SETTING, STANDARD, Finetune
from bioptimus_jax.sets.blurb import record_of

TABLES: dict[str, Printed] = {name: t for known in PAPERS for name, t in PAPERS.load(known).items()}
OTHERWISE, OTHER_FILES, MISPRINT = '*', '#', '‡'
AVERAGES = {statistics.fmean: 'mean', statistics.median: 'median'}
SEARCHED = (
    *('learning_rate', 'head_learning_rate', 'batch_sentences', 'epochs', 'warmup_fraction', 'weight_decay'),
    *('dropout', 'max_pieces', 'overlap_pieces', 'dtype', 'layer_decay_rule', 'lstm_hidden', 'train_seed'),
    *('train_choice', 'devel_sentences'),
)
"""What a search varies: a model is still fine-tuned in the same way."""
SIZES = ('mentions', 'examples', 'words')
"""What records of public sets say of their splits."""
ABSENT = 'none of its sets, or of its ways to fine-tune, has been scored.'
OF_A_WAY = {f.name for f in dataclasses.fields(Finetune)} - {*SEARCHED, *NOT_OF_A_SETTING}
Place = tuple[str, str]
"""A way and the title of a column."""


@dataclasses.dataclass(frozen=True, eq=False)
class Row(abc.ABC):
    """A model under one of the ways of a table."""

    printed: Printed
    model: str
    way: str
    of: ClassVar[str]

    @property
    def label(self) -> str:
        return WAY.join(filter(None, (self.model, self.way)))

    @property
    def seeds(self) -> str:
        return NOT_RUN

    @abc.abstractmethod
    def value(self, place: Place) -> float | None: ...

    def cell(self, title: str) -> Cell:
        value = self.value((self.way, title))
        if value is None:
            return missing()
        first = self.reference(title)
        less = '' if first is None else f' ({value - first:+.2f})'
        return Cell(f'{self.shown(title, value)}{less}', value)

    def reference(self, title: str) -> float | None:
        """What a cell is compared with: the same model in the first way."""
        first = first_of(self.printed, self.way, title)
        return self.value(first) if first != (self.way, title) else None

    @abc.abstractmethod
    def shown(self, title: str, value: float) -> str: ...


class Theirs(Row):
    """A row as it is printed."""

    of = 'paper'

    def value(self, place: Place) -> float | None:
        way, title = place
        return self.printed.rows.get(WAY.join(filter(None, (self.model, way))), {}).get(title)

    def shown(self, title: str, value: float) -> str:
        return f'{value:.2f}{f" {MISPRINT}" * ((self.label, title) in self.printed.misprints)}'


@dataclasses.dataclass(frozen=True, eq=False)
class Own(Row):
    """A row from a run; `known`: the name of the model in its records."""

    m: Measures
    known: str
    run: str
    of = 'here'

    @property
    def label(self) -> str:
        return ': '.join(filter(None, (self.run, super().label)))

    @functools.cached_property
    def sets(self) -> Mapping[str, str]:
        """Name of a public set, or of a folder in lower case -> the set of the run on which the model was scored."""
        scored = (d for d in self.m.datasets if self.m.settings(self.known, d))
        return {record.name if (record := record_of(d)) else d.lower(): d for d in scored}

    @property
    def seeds(self) -> str:
        numbers = {
            len(self.scores((self.way, t), s)) for t in self.printed.columns for s in self.sets_of(t)
        } - {0}
        return '-'.join(map(str, sorted({min(numbers), max(numbers)}))) if numbers else NOT_RUN

    def setting(self, place: Place, name: str) -> str:
        """Of the settings that are what the paper did, the one that devel chooses; empty where there is none."""
        way, column = self.printed.ways[place[0]], self.printed.columns[place[1]]
        if name not in self.sets or not self._metric(place, name):
            return ''
        dataset = self.sets[name]
        if way is None and column.asked is None:
            return self.m.chosen(self.known, dataset)
        asked = {**(way or {}), **(column.asked or {})}
        fitting = [s for s in self.m.settings(self.known, dataset) if self._fits(s, asked)]
        devel = {s: self.m.scores(self.known, dataset, 'devel', setting=s) or [-math.inf] for s in fitting}
        return max(devel, key=lambda setting: statistics.fmean(devel[setting]), default='')

    def scores(self, place: Place, name: str) -> list[float]:
        """On test by seed, in percent, as the paper measures."""
        if not (setting := self.setting(place, name)):
            return []
        key, score = self._metric(place, name)
        cells = [r for r in self.m.cells(self.known, self.sets[name], setting) if key in r['test']]
        return [100 * r['test'][key][score] for r in cells]

    def value(self, place: Place) -> float | None:
        groups = [[self.scores(place, s) for s in group] for group in self.groups(place)]
        if not groups or not all(itertools.chain(*groups)):
            return None
        return statistics.fmean(statistics.fmean(map(self.printed.average, group)) for group in groups)

    def groups(self, place: Place) -> list[list[str]]:
        """Names of the sets that a cell needs."""
        ending = self.printed.endings.get(place[0], '')
        return [[f'{name}{ending}' for name in group] for group in self.printed.columns[place[1]].groups]

    def sets_of(self, title: str) -> list[str]:
        """Those of a cell of this row."""
        return list(itertools.chain(*self.groups((self.way, title))))

    def reference(self, title: str) -> float | None:
        """Of tables of models, the printed row of the same name where it is measured alike."""
        if compares(self.printed) or self.printed.columns[title].otherwise:
            return super().reference(title)
        rows = (
            row for name, row in self.printed.rows.items() if paper.plain(name) == paper.plain(self.model)
        )
        return next(rows, {}).get(title)

    def shown(self, title: str, value: float) -> str:
        place, sets = (self.way, title), self.sets_of(title)
        chosen = [(self.sets[s], self.setting(place, s)) for s in sets]
        text, interval = f'{value:.2f}', None
        if len(sets) == 1 and self._metric(place, *sets)[0] == DEFAULT:
            interval = self.m.statistics_of(self.known, *chosen[0]).get('interval')
        if interval and all(end == end for end in interval):
            text = between(value, 100 * interval[0], 100 * interval[1], '.2f')
        return f'{text}{f" {OTHER_FILES}" * any(self._is_other(*one) for one in chosen)}'

    def _metric(self, place: Place, name: str) -> tuple[str, ...]:
        """Key and name of the metric that the paper has, in records; empty where the set is not measured so."""
        mode, wanted = self.printed.columns[place[1]].mode, self.printed.measure(name)
        metrics = self.m.task(self.sets[name]).metrics.items()
        alike = ((key, one.name) for key, one in metrics if one.title == wanted and mode in ('', key))
        return next(alike, ())

    def _fits(self, name: str, asked: Asked) -> bool:
        """Whether a setting does what is asked, nothing else that the table has, and is as the run's for the rest."""
        given = self.m.run.config.finetune
        if name not in (STANDARD, *given.setting):
            return False
        settings, known = given.named(name), keys_of(self.printed)
        plain = {k: getattr(Finetune if k in known else given, k) for k in OF_A_WAY | known if k not in asked}
        return all(getattr(settings, key) == value for key, value in plain.items()) and all(
            fits(getattr(settings, key)) for key, fits in asked.items()
        )

    def _is_other(self, dataset: str, setting: str) -> bool:
        """Whether the test split is not as large as the published one."""
        record, cell = record_of(dataset), self.m.cells(self.known, dataset, setting)[0]
        tested = cell.get('gold_in_file') or cell.get('sentences', {}).get('test')
        published = [getattr(record, size)[-1] for size in SIZES if hasattr(record, size)]
        return any(tested and known and tested != known for known in published)


def first_of(printed: Printed, way: str, title: str) -> Place:
    """With which way and column a cell of the same model is compared; its own where it is the first."""
    if len(printed.ways) > 1:
        return next(iter(printed.ways)), title

    def kind(column: Scored) -> tuple[object, ...]:
        return column.groups, column.mode, column.otherwise

    wanted = kind(printed.columns[title])
    return way, next(t for t, column in printed.columns.items() if kind(column) == wanted)


def compares(printed: Printed) -> bool:
    """Whether it is a table of ways to fine-tune, not of models."""
    return len(printed.ways) > 1 or any(first_of(printed, '', t)[1] != t for t in printed.columns)


def keys_of(printed: Printed) -> set[str]:
    """Keys of config.finetune that the ways and columns of a table differ in."""
    asked = [*printed.ways.values(), *(column.asked for column in printed.columns.values())]
    return {key for one in asked for key in one or ()}


def table(printed: Printed, runs: Mapping[str, Measures]) -> Table:
    """Rows of the runs, by name, above the printed ones; without rows where none of the runs answers it."""
    own = [row for name, m in runs.items() for model in m.models for row in _own(printed, m, name, model)]
    theirs = [Theirs(printed, *label.partition(WAY)[::2]) for label in printed.rows]
    marked = {t: f'{t} {OTHERWISE}' if c.otherwise else t for t, c in printed.columns.items()}
    columns: list[Column] = [
        Column('model', lambda row: row.label),
        Column('numbers', lambda row: row.of),
        Column('seeds', lambda row: row.seeds),
        *each(marked, lambda title, row: row.cell(title), 'high'),
    ]
    absent = ABSENT if any(m.finetuned for m in runs.values()) else NOT_SCORED
    further = {'rank_within': 'numbers', 'note': _note(printed), 'absent': absent}
    return Table.of(printed.title, columns, [*own, *theirs] if own else [], **further)


def tables(runs: Mapping[str, Measures]) -> dict[str, Table]:
    """All of them by name, from these runs."""
    return {name: table(printed, runs) for name, printed in TABLES.items()}


def _own(printed: Printed, m: Measures, run: str, model: str) -> list[Own]:
    """The rows of a model. A table of ways to fine-tune has none where all of its cells are of one setting."""
    rows = [Own(printed, m.label(model), way, m, model, run) for way in printed.ways]
    tried: dict[tuple[str, ...], set[tuple[str, ...]]] = {}
    for row, title in itertools.product(rows, printed.columns):
        if row.value((row.way, title)) is not None:
            of_sets = [f'{s}: {row.setting((row.way, title), s)}' for s in row.sets_of(title)]
            tried.setdefault(tuple(itertools.chain(*printed.columns[title].groups)), set()).add(
                tuple(of_sets)
            )
    if compares(printed) and all(len(of_column) < 2 for of_column in tried.values()):
        return []
    return [row for row in rows if any(row.value((row.way, title)) is not None for title in printed.columns)]


def _note(printed: Printed) -> str:
    first = 'the first way' if len(printed.ways) > 1 else 'the first column of the set'
    less = first if compares(printed) else 'the printed row of that name'
    said = [
        f'{printed.note} Here: test, percent, {AVERAGES[printed.average]} over seeds, setting chosen on devel. Square'
        f' brackets: 95 % over test items; of means over sets in table BLURB. Round brackets: less {less}.',
        *(f'{OTHERWISE} {title}: {c.otherwise}.' for title, c in printed.columns.items() if c.otherwise),
        f'{MISPRINT}: cannot be as it is printed.' * bool(printed.misprints),
        f'{OTHER_FILES}: the test split is not as large as the public one. — : not scored, or not printed.',
    ]
    return ' '.join(filter(None, said))


SECTION = Section(
    'Beside other papers',
    'What have others reported, on the same sets and in the same layout?',
    ('finetune',),
    folded={
        name: functools.partial(lambda printed, m: table(printed, {'': m}), one)
        for name, one in TABLES.items()
    },
)
