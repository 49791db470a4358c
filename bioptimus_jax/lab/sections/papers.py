"""The tables of other papers in their layout, with the scores at hand beside the printed ones."""

import dataclasses
import functools
import itertools
import math
import statistics
from collections.abc import Mapping, Sequence

from bioptimus_jax.finetuning.config import NOT_OF_A_SETTING, STANDARD, Finetune
from bioptimus_jax.finetuning.task import DEFAULT
from bioptimus_jax.lab import paper
from bioptimus_jax.lab.printed import PAPERS, WAY, Conditions, Printed, Scored, measure
from bioptimus_jax.records.finetune import BASELINES
from bioptimus_jax.report.layout import NOT_RUN, Cell, Column, Table, between, each, missing
from bioptimus_jax.report.learned import PART, learned_part
from bioptimus_jax.report.measures import NOT_SCORED, Measures
from bioptimus_jax.report.section import Section
from bioptimus_jax.sets.corpora import settings_on
from bioptimus_jax.sets.published import first_fold, record_of

TABLES: dict[str, Printed] = {name: t for known in PAPERS for name, t in PAPERS.load(known).items()}
HERE = 'here'
OTHERWISE, OTHER_FILES, MISPRINT = '*', '#', '‡'
AVERAGES = {statistics.fmean: 'mean', statistics.median: 'median'}
SEARCHED = (
    *('learning_rate', 'head_learning_rate', 'batch_sentences', 'warmup_fraction', 'weight_decay'),
    *('dropout', 'max_pieces', 'overlap_pieces', 'dtype', 'layer_decay_rule', 'lstm_hidden', 'train_seed'),
    *('train_choice', 'devel_sentences'),
)
"""What a search varies: a model is still fine-tuned in the same way. Longer training is another one."""
OF_A_WAY = {f.name for f in dataclasses.fields(Finetune)} - {*SEARCHED, *NOT_OF_A_SETTING}
EXAMPLES = 'train_sentences'
"""The key that a paper's way sets where it learns a part of a set, too."""
SIZES = ('mentions', 'examples', 'words')
"""What records of public sets say of their splits."""
ABSENT = 'none of its sets, or of its ways to fine-tune, has been scored.'
CellPlace = tuple[str, str]
"""A way and the title of a column."""


@dataclasses.dataclass(frozen=True)
class ScoredPart:
    """A model on a set under one setting: test scores by seed, in percent, of the metric with that key in records.

    `beside`: baseline -> its score by that metric. `learned`: how much of the set was, where the paper learned all.
    """

    dataset: str
    setting: str
    key: str
    scores: Sequence[float]
    beside: Mapping[str, float]
    learned: str = ''


@dataclasses.dataclass(frozen=True)
class TableNumber:
    """A number, what is shown for it, and what it is the mean of."""

    value: float
    text: str
    parts: Sequence[ScoredPart] = ()


@dataclasses.dataclass(frozen=True)
class PrintedRow:
    """A model under one of the ways of a table, with its cells under all of them."""

    label: str
    model: str
    way: str
    cells: Mapping[CellPlace, TableNumber]
    numbers: str

    @property
    def seeds(self) -> str:
        own = [made for (way, _), made in self.cells.items() if way == self.way]
        numbers = [len(part.scores) for made in own for part in made.parts]
        return '-'.join(map(str, sorted({min(numbers), max(numbers)}))) if numbers else NOT_RUN


def table(printed: Printed, runs: Mapping[str, Measures]) -> Table:
    """Rows of the runs, by name, above the printed ones; without rows where none of the runs answers it."""
    own, theirs, of_models = [], [], _as_printed(printed)
    for run, m in runs.items():
        for model in m.models:
            name, cells = m.label(model), _at_hand(printed, m, model)
            for way in dict.fromkeys(way for way, _ in cells):
                label = WAY.join(filter(None, (name, way)))
                own.append(PrintedRow(f'{run}: {label}' if run else label, name, way, cells, HERE))
    for label in printed.rows:
        model, _, way = label.partition(WAY)
        theirs.append(PrintedRow(label, model, way, of_models[model], 'paper'))
    records = [*own, *_of_baselines(own), *theirs] if own else []
    marked = {t: f'{t} {OTHERWISE}' if c.otherwise else t for t, c in printed.columns.items()}
    parts = dict.fromkeys(part.learned for row in own for x in row.cells.values() for part in x.parts)
    columns: list[Column] = [
        Column('model', lambda row: row.label),
        Column('numbers', lambda row: row.numbers),
        Column('seeds', lambda row: row.seeds),
        *each(marked, functools.partial(_cell, printed), 'high'),
    ]
    absent = ABSENT if any(m.finetuned for m in runs.values()) else NOT_SCORED
    further = {'rank_within': 'numbers', 'note': _note(printed, list(filter(None, parts))), 'absent': absent}
    return Table.of(printed.title, columns, records, **further)


def _of_baselines(rows: Sequence[PrintedRow]) -> list[PrintedRow]:
    """Answers that read nothing, scored beside the models of these rows; by single sets, since means have none."""
    found = []
    for baseline in BASELINES:
        cells = {
            ('', title): TableNumber(part.beside[baseline], f'{part.beside[baseline]:.2f}')
            for row in rows
            for (_, title), made in row.cells.items()
            for part in made.parts
            if baseline in part.beside and len(made.parts) == 1
        }
        found += [PrintedRow(baseline, baseline, '', cells, 'baseline')] if cells else []
    return found


def tables(runs: Mapping[str, Measures]) -> dict[str, Table]:
    """All of them by name, from these runs."""
    return {name: table(printed, runs) for name, printed in TABLES.items()}


def _as_printed(printed: Printed) -> dict[str, dict[CellPlace, TableNumber]]:
    """Model -> its numbers as printed."""
    found: dict[str, dict[CellPlace, TableNumber]] = {}
    for label, row in printed.rows.items():
        model, _, way = label.partition(WAY)
        for title, value in row.items():
            mark = f' {MISPRINT}' * ((label, title) in printed.misprints)
            found.setdefault(model, {})[way, title] = TableNumber(
                value, f'{value:.{printed.decimals}f}{mark}'
            )
    return found


def _at_hand(printed: Printed, m: Measures, model: str) -> dict[CellPlace, TableNumber]:
    """What a run has of a model. Of a table of ways nothing, where every column is of one setting."""
    scored = (d for d in m.datasets if m.settings(model, d))
    sets = {record.name if (record := record_of(d)) else d.lower().replace('_', '-'): d for d in scored}
    found: dict[CellPlace, TableNumber] = {}
    tried: dict[str, set[str]] = {}
    for (way, asked), (title, column) in itertools.product(printed.ways.items(), printed.columns.items()):
        ending = printed.endings.get(way, '')
        written = {name.removesuffix(ending): d for name, d in sets.items() if name.endswith(ending)}
        groups = [
            [_part(printed, m, model, written, name, asked, column) for name in group]
            for group in column.groups
        ]
        parts = list(filter(None, itertools.chain(*groups)))
        if parts and all(itertools.chain(*groups)):
            means = (column.within(printed.average(p.scores) for p in group if p) for group in groups)
            found[way, title] = _made(m, model, statistics.fmean(means), parts)
            tried.setdefault(str(column.groups), set()).add(str([(p.dataset, p.setting) for p in parts]))
    return found if not printed.compares or any(len(of_sets) > 1 for of_sets in tried.values()) else {}


def _part(
    printed: Printed,
    m: Measures,
    model: str,
    sets: Mapping[str, str],
    name: str,
    way: Conditions | None,
    column: Scored,
) -> ScoredPart | None:
    """Scores under the setting that devel chooses among those that do what the paper did, by the paper's metric."""
    dataset = sets.get(name, '')
    metrics = m.task(dataset).metrics.items() if dataset else ()
    alike = [(k, x) for k, x in metrics if x.title == measure(name) and column.mode in ('', k)]
    if not alike:
        return None
    setting = m.chosen(model, sets.get(first_fold(name), dataset))
    if way is not None or column.asked is not None:
        asked = {**(way or {}), **(column.asked or {})}
        given = settings_on(m.run.config.finetune, dataset)
        fitting = [s for s in m.settings(model, dataset) if _fits(printed, given, s, asked)]
        devel = {s: m.scores(model, dataset, 'devel', setting=s) or [-math.inf] for s in fitting}
        setting = max(devel, key=lambda s: statistics.fmean(devel[s]), default='')
    key, metric = alike[0]
    cells = m.cells(model, dataset, setting) if setting else []
    scores = [100 * r.test[key][metric.name] for r in cells if key in r.test]
    known = [(name, 100 * x) for r in cells[:1] for name, x in r.baselines.items() if key == DEFAULT]
    asked_for = EXAMPLES in (way or {}) or EXAMPLES in (column.asked or {})
    learned = '' if asked_for else ''.join(learned_part(m, r) for r in cells[:1])
    said = f'{dataset}, {learned}' if learned else ''
    return ScoredPart(dataset, setting, key, scores, dict(known), said) if scores else None


def _fits(printed: Printed, given: Finetune, name: str, asked: Conditions) -> bool:
    """Whether a setting does what is asked, nothing else that the table has, and is as `given` for the rest."""
    if name not in (STANDARD, *given.setting):
        return False
    settings, known = given.named(name), set()
    for one in (*printed.ways.values(), *(column.asked for column in printed.columns.values())):
        known |= set(one or ())
    plain = {k: getattr(Finetune if k in known else given, k) for k in OF_A_WAY | known if k not in asked}
    return all(getattr(settings, key) == value for key, value in plain.items()) and all(
        fits(getattr(settings, key)) for key, fits in asked.items()
    )


def _made(m: Measures, model: str, value: float, parts: Sequence[ScoredPart]) -> TableNumber:
    """The number with the interval of a single set, and a mark for a test split that is not as large as the public
    one."""
    text, one = f'{value:.2f}', parts[0]
    known = m.statistics_of(model, one.dataset, one.setting) if one.key == DEFAULT else None
    low, high = (known.interval if known else None) or (math.nan, math.nan)
    # NaN stands for an interval that is not on record; it compares as False.
    if len(parts) == 1 and low <= high:
        text = between(value, 100 * low, 100 * high, '.2f')
    for part in parts:
        cell = m.cells(model, part.dataset, part.setting)[0]
        tested = cell.gold_in_file or (cell.sentences or {}).get('test')
        published = (getattr(record_of(part.dataset), size, (0,))[-1] for size in SIZES)
        if any(tested and known not in (0, tested) for known in published):
            text += f' {OTHER_FILES}'
            break
    marks = f' {PART}' * any(part.learned for part in parts)
    return TableNumber(value, f'{text}{marks}', parts)


def _first(printed: Printed, place: CellPlace) -> CellPlace:
    """The cell of the same model that a cell is compared with; itself where it is the first."""
    way, title = place
    if len(printed.ways) > 1:
        return next(iter(printed.ways)), title
    kinds = {t: (c.groups, c.mode, c.otherwise) for t, c in printed.columns.items()}
    return way, next(t for t, kind in kinds.items() if kind == kinds[title])


def _cell(printed: Printed, title: str, row: PrintedRow) -> Cell:
    """A number; in brackets, what it is more than the first of a table of ways, or than that of the model's name."""
    place = row.way, title
    if place not in row.cells:
        return missing()
    made, beside = row.cells[place], None
    if printed.compares:
        first = _first(printed, place)
        beside = row.cells[first].value if first in row.cells and first != place else None
    elif row.numbers == HERE and not printed.columns[title].otherwise:
        same = (x for name, x in printed.rows.items() if paper.plain(name) == paper.plain(row.model))
        beside = next(same, {}).get(title)
    less = '' if beside is None else f' ({made.value - beside:+.2f})'
    return Cell(f'{made.text}{less}', made.value)


def _note(printed: Printed, learned: Sequence[str]) -> str:
    first = 'the first way' if len(printed.ways) > 1 else 'the first column of the set'
    less = first if printed.compares else 'the printed row of that name'
    said = [
        f'{printed.note} Here: test, percent, {AVERAGES[printed.average]} over seeds, setting chosen on devel. Square'
        f' brackets: 95 % over test items; of means over sets in table BLURB. Round brackets: less {less}.',
        *(f'{OTHERWISE} {title}: {c.otherwise}.' for title, c in printed.columns.items() if c.otherwise),
        f'{MISPRINT}: cannot be right as printed.' * bool(printed.misprints),
        f'{PART}: learned from a part of the set, so not comparable with the printed numbers: {"; ".join(learned)}.'
        * bool(learned),
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
    after='in_text',
)
