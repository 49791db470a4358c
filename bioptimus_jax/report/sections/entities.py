"""Entity recognition: every model on every set, by entity type, beside the paper, over training and over epochs."""

import dataclasses
import itertools
import statistics
from collections.abc import Callable, Sequence
from typing import Any

from bioptimus_jax.finetune.entities.score import METRICS
from bioptimus_jax.progress import clock
from bioptimus_jax.report import drawing, paper
from bioptimus_jax.report.gain import gain
from bioptimus_jax.report.layout import NOT_RUN, Cell, Column, Table, count, each, fixed, missing, spread
from bioptimus_jax.report.measures import NO_PHASES, NOT_SCORED, Measures, score_names
from bioptimus_jax.report.questions import named_path
from bioptimus_jax.report.section import Section
from bioptimus_jax.report.trained import Trained, trained_models
from bioptimus_jax.schema import SNAPSHOT

NAMED = 5
"""Failed seeds that the note names."""
RATES = {'precision': 'precision', 'recall': 'recall'}


@dataclasses.dataclass(frozen=True)
class Scored:
    """A model on a set under one setting: what a row of `scores` shows."""

    measures: Measures
    dataset: str
    model: str
    setting: str

    @property
    def cells(self) -> list[dict[str, Any]]:
        return self.measures.cells(self.model, self.dataset, self.setting)

    @property
    def statistics(self) -> dict[str, Any]:
        return self.measures.statistics_of(self.model, self.dataset, self.setting)

    def name(self) -> str:
        chosen = self.setting == self.measures.chosen(self.model, self.dataset)
        return f'{self.setting or NOT_RUN}{", chosen" if chosen else ""}'

    def score(self, split: str = 'test', mode: str = 'default', what: str = 'f1') -> Cell:
        return spread(self.measures.scores(self.model, self.dataset, split, mode, what, self.setting))

    def of_any_type(self) -> Cell:
        return spread([100 * r['test_untyped']['default']['f1'] for r in self.cells if 'test_untyped' in r])

    def seeds(self) -> Cell:
        number, failed = len(self.cells), len(self.statistics.get('failures', ()))
        return Cell(f'{number}, {failed} failed' if failed else f'{number}', float(number))

    def mentions(self) -> Cell:
        first = self.cells[0]
        return Cell(f'{first["gold_scored"]:,} / {first["gold_in_file"]:,}', float(first['gold_scored']))

    def time(self) -> Cell:
        seconds = sum(r.get('seconds', 0) for r in self.cells)
        return Cell(clock(seconds), seconds)


def scores(m: Measures) -> Table:
    """Every model on every set: precision, recall, F1 in all modes, its interval, seeds, and what was scored."""
    datasets = [d for d in m.datasets if m.task(d).metric in METRICS.values()]
    several = any(len(m.settings(model, d)) > 1 for model in m.models for d in datasets)
    untyped = any('test_untyped' in r for r in m.finetuned)
    intervals = any('interval' in r for r in m.statistics)
    records = [
        Scored(m, dataset, model, setting)
        for dataset, model in itertools.product(datasets, m.models)
        for setting in m.settings(model, dataset) or ['']
    ]

    def known(cell: Callable[[Scored], Cell]) -> Callable[[Scored], Cell]:
        return lambda r: cell(r) if r.cells else missing()

    columns = [
        Column('set', lambda r: r.dataset),
        Column('model', lambda r: m.label(r.model)),
        Column('setting', Scored.name, when=several),
        Column('F1', Scored.score, 'high'),
        Column('95 %', lambda r: interval(r.statistics.get('interval')) or NOT_RUN, when=intervals),
        Column('strict F1', lambda r: r.score(mode='strict'), 'high'),
        Column('relaxed F1', lambda r: r.score(mode='relaxed'), 'high'),
        Column('untyped F1', Scored.of_any_type, 'high', untyped),
        Column('devel F1', lambda r: r.score('devel'), 'high'),
        Column('seeds', known(Scored.seeds)),
        *each(RATES, lambda what, r: r.score(what=what), 'high'),
        Column('mentions scored', known(Scored.mentions)),
        Column('training time', known(Scored.time)),
    ]
    note = (
        'Test, percent, mean ± sd over seeds; epoch chosen on devel. F1 is the default mode of seqeval, strict needs'
        ' exact IOB2, relaxed counts an overlap of the same type'
        + (', untyped any type' if untyped else '')
        + '. '
        + (_interval_note(m) if intervals else '')
        + ('Chosen: highest mean on devel, which the other tables show. ' if several else '')
        + _failures(m)
        + 'Mentions scored / in the file. — : not run.'
    )
    return Table.of('Test scores', columns, records, rank_within='set', note=note, absent=NOT_SCORED)


def others(m: Measures) -> Table:
    """Every model on every set of another task: what was measured, its interval, devel, seeds."""
    datasets = [d for d in m.datasets if m.task(d).metric not in METRICS.values()]
    records = [
        Scored(m, dataset, model, setting)
        for dataset, model in itertools.product(datasets, m.models)
        for setting in m.settings(model, dataset)
    ]
    columns = [
        Column('set', lambda r: r.dataset),
        Column('model', lambda r: m.label(r.model)),
        Column('setting', lambda r: r.setting),
        Column('measure', lambda r: m.task(r.dataset).metric.title),
        Column('test', lambda r: r.score(what=''), 'high'),
        Column('95 %', lambda r: interval(r.statistics.get('interval')) or NOT_RUN),
        Column('devel', lambda r: r.score('devel', what=''), 'high'),
        Column('seeds', Scored.seeds),
    ]
    note = 'Percent, mean ± sd over seeds; epoch chosen on devel. 95 %: over the test set drawn with replacement.'
    absent = 'every set is one of entities.' if m.finetuned else NOT_SCORED
    return Table.of('Scores of other tasks', columns, records, rank_within='set', note=note, absent=absent)


def by_type(m: Measures) -> Table:
    """Test scores of every entity type, of sets with several; under the setting that devel chooses."""
    records = []
    for dataset in m.datasets:
        cells = {x: [r for r in m.cells(x, dataset) if 'test_by_type' in r] for x in m.models}
        found = {model: [r['test_by_type'] for r in of_model] for model, of_model in cells.items()}
        types = sorted({kind for by_kind in found.values() for r in by_kind for kind in r})
        for kind, (model, by_kind) in itertools.product(types if len(types) > 1 else (), found.items()):
            if known := [r[kind] for r in by_kind if kind in r]:
                records.append((f'{dataset}: {kind}', model, known))
    columns = [
        Column('entities', lambda entities, model, known: entities),
        Column('model', lambda entities, model, known: m.label(model)),
        Column('mentions', lambda entities, model, known: count(max(r['gold'] for r in known))),
        *each(
            {**RATES, 'f1': 'F1'},
            lambda what, entities, model, known: spread([100 * r[what] for r in known]),
            'high',
        ),
    ]
    note = 'Test, percent, mean ± sd over seeds. Mentions: of that type in the gold standard.'
    absent = 'every set has one type of entity.' if m.finetuned else NOT_SCORED
    if m.finetuned and not any('test_by_type' in r for r in m.finetuned):
        absent = 'these scores were made before types were counted; run stage finetune again.'
    return Table.of('By entity type', columns, records, rank_within='entities', note=note, absent=absent)


def beside_paper(m: Measures) -> Table:
    """Test F1 of this run beside the paper's, for the five sets that the paper names.

    A model is the paper's by its settings, not by the name of its phase; a rival by its name.
    """
    datasets = [d for d in paper.DATASETS if d in m.datasets]
    models = [t for t in trained_models([m]) if datasets and SNAPSHOT not in t.model]
    here = [paper.rival(m.label(t.model)) for t in models if not t.own]
    missed = [x for x in paper.RIVALS if datasets and paper.rival(x) not in here]
    records = [
        (_name(t), {d: m.scores(t.model, d) for d in datasets}, {d: _reported(t, d) for d in datasets})
        for t in models
    ]
    for x in missed:
        reported = {d: paper.of_rival(x, d) for d in datasets}
        records.append((f'{x}: no run', {d: [] for d in datasets}, reported))
    columns = [Column('model', lambda name, *_: name)]
    for d in datasets:
        columns += each({d: f'{d}, here'}, lambda d, name, own, papers: spread(own[d]), 'high')
        columns += each({d: f'{d}, paper'}, lambda d, name, own, papers: fixed(papers[d], 2), 'high')
    note = (
        'Paper: arXiv 2308.08625, Tables 2, 5 and 6; 12 layers, 1.8 billion words, seeds not stated. Best and'
        ' second per column. — : not run here, or not in the paper.'
    )
    absent = 'none of the sets scored here is one of the five in the paper.' if m.datasets else NOT_SCORED
    return Table.of('Beside the paper', columns, records, note=note, absent=absent)


def interval(values: Sequence[float] | None, decimals: int = 2) -> str:
    """Shares as '80.12-83.40' percent; empty where there is no interval."""
    if not values or any(value != value for value in values):
        return ''
    low, high = values
    return f'{100 * low:.{decimals}f}-{100 * high:.{decimals}f}'


def entity_f1(m: Measures) -> drawing.Figure:
    """Test F1 of every model and seed; lines through the models that follow one another in training."""
    title = f'Test {score_names(m)} ' + ('after each phase' if m.trains else 'of every model')
    models = [x for x in m.models if any(r['model'] == x for r in m.finetuned)]
    if not models:
        return drawing.Figure('entity_f1', title, absent=NOT_SCORED)
    labels = [m.label(x).replace(' (step 0)', '') for x in models]
    path = [i for i, x in enumerate(models) if x in m.on_the_way]

    def draw(axes: Any) -> None:
        for number, (dataset, colour) in enumerate(zip(m.datasets, drawing.SERIES * 9, strict=False)):
            shift = (number - (len(m.datasets) - 1) / 2) * 0.08
            scored = {i: f1 for i, x in enumerate(models) if (f1 := m.scores(x, dataset))}
            line = [i for i in path if i in scored]
            means = [statistics.fmean(scored[i]) for i in line]
            axes.plot([i + shift for i in line], means, '-', color=colour, linewidth=1.2)
            places = [i + shift for i, values in scored.items() for _ in values]
            every = list(itertools.chain(*scored.values()))
            axes.plot(
                places, every, 'o', color=colour, markersize=3.5, alpha=0.7, label=drawing.in_legend(dataset)
            )
        wide = sum(map(len, labels)) > 70
        slanted = {'rotation': 35, 'ha': 'right', 'rotation_mode': 'anchor'} if wide else {}
        axes.set_xticks(range(len(models)), labels, **slanted)
        axes.set_xlim(-0.5, len(models) - 0.5)
        axes.set_ylabel(f'test {score_names(m)}, %')
        axes.legend(loc='center left', bbox_to_anchor=(1, 0.5))

    parts = []
    for dataset in m.datasets:
        known = [(label, m.scores(x, dataset)) for x, label in zip(models, labels, strict=True)]
        parts.append(f'{dataset} ' + ', '.join(f'{statistics.fmean(v):.1f} ({x})' for x, v in known if v))
    caption = 'A dot per fine-tuning seed' + (', lines through the means.' if path else '.')
    alt = f'Test {score_names(m)}: {"; ".join(parts)}.'
    return drawing.Figure('entity_f1', title, caption, alt, drawing.draw_svg('entity_f1', draw))


def checkpoint_f1(m: Measures) -> drawing.Figure:
    """Devel F1 over the steps of pre-training, at step 0, phase ends and snapshots (paper, Figure 3)."""
    title = f'Devel {score_names(m)} over pre-training'
    steps = {x: step for x in m.on_the_way if (step := m.step_of(x)) is not None}
    lines = {
        d: _spans({step: f1 for x, step in steps.items() if (f1 := m.scores(x, d, 'devel'))})
        for d in m.datasets
    }
    lines = {dataset: points for dataset, points in lines.items() if len(points) > 1}
    if not lines:
        few = 'fewer than two checkpoints of this run were scored; config.evaluation.snapshots_per_phase keeps more.'
        absent = (few if m.trains else NO_PHASES) if m.finetuned else NOT_SCORED
        return drawing.Figure('checkpoint_f1', title, absent=absent)

    def draw(axes: Any) -> None:
        for number, (dataset, points) in enumerate(lines.items()):
            drawing.band(axes, points, number, dataset)
        drawing.training_axis(axes, m)
        axes.set_ylabel(f'devel {score_names(m)}, %')
        axes.legend(loc='center left', bbox_to_anchor=(1, 0.5))

    alt = '; '.join(
        f'{d} {points[0][2]:.1f} at step {points[0][0]:,}, {points[-1][2]:.1f} at {points[-1][0]:,}'
        for d, points in lines.items()
    )
    caption = 'Means over fine-tuning seeds, bands from the lowest to the highest seed.'
    alt = f'Devel {score_names(m)}: {alt}.'
    return drawing.Figure('checkpoint_f1', title, caption, alt, drawing.draw_svg('checkpoint_f1', draw))


def epoch_f1(m: Measures) -> drawing.Figure:
    """Devel F1 after every fine-tuning epoch, a panel for each set, mean and spread over seeds."""
    title = f'Devel {score_names(m)} while fine-tuning'
    models, left_out = drawing.shown(m)
    curves = {d: {x: _spans(_epochs(m, x, d)) for x in models} for d in m.datasets}
    curves = {d: lines for d, lines in curves.items() if any(lines.values())}
    if not curves:
        absent = 'no epochs were recorded.' if m.finetuned else NOT_SCORED
        return drawing.Figure('epoch_f1', title, absent=absent)

    def draw(panels: list[Any]) -> None:
        for axes, (dataset, lines) in zip(panels, curves.items(), strict=True):
            for number, (model, points) in enumerate(lines.items()):
                drawing.band(axes, points, number, m.label(model))
            axes.set_title(dataset, fontsize=10)
            axes.locator_params(axis='x', integer=True, nbins=6)
        drawing.name_axes(panels, 'epoch', f'devel {score_names(m)}, %')

    parts = []
    for dataset, lines in curves.items():
        best = {x: max(mean for _, _, mean, _ in points) for x, points in lines.items() if points}
        parts.append(f'{dataset} ' + ', '.join(f'{f1:.1f} ({m.label(x)})' for x, f1 in best.items()))
    caption = f'Lines are means over seeds, bands from the lowest to the highest seed. {left_out}'.strip()
    alt = f'Devel {score_names(m)} over epochs; highest mean: {"; ".join(parts)}.'
    return drawing.Figure('epoch_f1', title, caption, alt, drawing.draw_panels('epoch_f1', draw, len(curves)))


SECTION = Section(
    'Entity recognition',
    'How well does each model find entities after fine-tuning, and how sure is that?',
    ('finetune',),
    {'gain': gain, 'entities': scores, 'other_tasks': others, 'types': by_type, 'paper': beside_paper},
    (entity_f1, checkpoint_f1, epoch_f1),
)


def _reported(t: Trained, dataset: str) -> float | None:
    if t.own:
        return paper.reported(t.config.surgery.strategy, named_path(t), dataset)
    return paper.of_rival(t.measures.label(t.model), dataset)


def _name(t: Trained) -> str:
    """With the settings where the paper has none of that name, and with the initialisation."""
    name = t.measures.label(t.model)
    if t.path and named_path(t) != t.model:
        name += f' ({"; ".join(t.path)})'
    return f'{name}, {t.initialisation}' if t.model in t.measures.on_the_way else name


def _interval_note(m: Measures) -> str:
    units = ' or '.join(dict.fromkeys(r['unit'] for r in m.statistics if 'unit' in r))
    return f'95 %: of {score_names(m)} over {units} of the test set drawn with replacement, the seeds as they are. '


def _failures(m: Measures) -> str:
    """Which seeds failed and why, and the mean without them; empty where none did."""
    failed = [(r, seed, why) for r in m.statistics for seed, why in r.get('failures', {}).items()]
    named = []
    for r, seed, why in failed[:NAMED]:
        left = r['test']['default']['mean_without_failed']
        label = m.task(r['dataset']).metric.label
        others = f'; {label} without failed seeds {100 * left:.2f}' if left is not None else ''
        named.append(f'{m.label(r["model"])} on {r["dataset"]} ({r["setting"]}), seed {seed}: {why}{others}')
    more = f'; and {len(failed) - NAMED:,} more in finetune/statistics.json' if len(failed) > NAMED else ''
    return f'Failed seeds, which the means include: {"; ".join(named)}{more}. ' if failed else ''


def _epochs(m: Measures, model: str, dataset: str) -> dict[int, list[float]]:
    """Epoch -> devel F1 of every seed, in percent, under the setting that devel chooses."""
    values: dict[int, list[float]] = {}
    for cell in m.cells(model, dataset):
        for epoch in cell.get('history', ()):
            values.setdefault(epoch['epoch'], []).append(100 * epoch[f'devel_{m.task(dataset).metric.name}'])
    return values


def _spans(values: dict[int, list[float]]) -> list[tuple[float, float, float, float]]:
    """In order of places: the place, and the lowest, mean and highest of its values."""
    return [(at, min(v), statistics.fmean(v), max(v)) for at, v in sorted(values.items())]
