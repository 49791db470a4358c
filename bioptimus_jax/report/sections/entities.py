"""Fine-tuning: every model on every set, by entity type, over training and over epochs."""

import dataclasses
import itertools
from collections import Counter
from collections.abc import Callable, Mapping, Sequence

from bioptimus_jax.finetuning.task import DEFAULT, devel_chooses
from bioptimus_jax.progress.console import clock, numbered
from bioptimus_jax.records.finetune import FineTuning
from bioptimus_jax.records.statistics import ModelStatistics
from bioptimus_jax.report.drawing import GAP, Figure, Point, curves, shown, spanned, training_axis
from bioptimus_jax.report.gain import gain, others
from bioptimus_jax.report.layout import NOT_RUN, Cell, Column, Table, count, each, missing, percents, spread
from bioptimus_jax.report.learned import parts_in_words
from bioptimus_jax.report.measures import NO_PHASES, NOT_SCORED, OF_BASELINES, Measures, score_names
from bioptimus_jax.report.section import Section
from bioptimus_jax.scoring.score import METRICS
from bioptimus_jax.scoring.student import NO_INTERVAL
from bioptimus_jax.sets import published

VOTES = (
    'Vote of the seeds: one answer from all models of a row together (the entities that more than half of them '
    'find, or the mean of their numbers); it costs as many models as there are seeds, so no score of one model '
    'compares with it. '
)
NAMED = 5
"""Failed seeds that the note names."""
RATES = {'precision': 'precision', 'recall': 'recall'}


@dataclasses.dataclass(frozen=True)
class ModelScores:
    """A model on a set under one setting: what a row of `scores` shows."""

    measures: Measures
    dataset: str
    model: str
    setting: str

    @property
    def cells(self) -> list[FineTuning]:
        return self.measures.cells(self.model, self.dataset, self.setting)

    @property
    def statistics(self) -> ModelStatistics | None:
        return self.measures.statistics_of(self.model, self.dataset, self.setting)

    def name(self) -> str:
        by_devel = any(devel_chooses(record) for record in self.cells)
        chosen = by_devel and self.setting == self.measures.chosen(self.model, self.dataset)
        return f'{self.setting or NOT_RUN}{", chosen" if chosen else ""}'

    def test(self) -> Cell:
        return self.score() if self.cells else spread(self.measures.baseline(self.model, self.dataset))

    def score(self, split: str = 'test', mode: str = 'default', what: str = '') -> Cell:
        return spread(self.measures.scores(self.model, self.dataset, split, mode, what, self.setting))

    def of_any_type(self) -> Cell:
        return spread([100 * r.test_untyped[DEFAULT]['f1'] for r in self.cells if r.test_untyped])

    def ensemble(self, of_mean: bool = False) -> Cell:
        """What the seeds say together, by its interval and their number no single model."""
        seeds = self.statistics.ensemble if self.statistics else None
        found = seeds.mean_logits if seeds and of_mean else seeds
        if not seeds or not found:
            return missing()
        value = 100 * found.test[DEFAULT][self.measures.task(self.dataset).metric.name]
        ends = percents(found.interval) or NO_INTERVAL
        return Cell(f'{value:.2f} [{ends}], {numbered(seeds.seeds, "seed")}', value)

    def interval(self) -> str:
        """The interval over test items."""
        return percents(self.statistics.interval if self.statistics else None) or NOT_RUN

    def seeds(self) -> Cell:
        number, failed = len(self.cells), len(self.statistics.failures if self.statistics else ())
        return Cell(f'{number}, {failed} failed' if failed else f'{number}', float(number))

    def mentions(self) -> Cell:
        first = self.cells[0]
        text = f'{first.gold_scored:,} / {first.gold_in_file:,}'
        if first.gold_left_out:
            recall = spread([100 * r.recall_in_file for r in self.cells if r.recall_in_file is not None])
            text += f' ({first.gold_left_out:,} left out; recall over all {recall.text})'
        return Cell(text, float(first.gold_scored or 0))

    def of_bare_text(self) -> Cell:
        metric = self.measures.task(self.dataset).metric
        return spread([100 * r.applied[DEFAULT][metric.name] for r in self.cells if r.applied])

    def strict(self) -> Cell:
        if any(r.gold_not_strict for r in self.cells):
            return Cell('not defined')
        return self.score(mode='strict')

    def time(self) -> Cell:
        seconds = sum(r.seconds or 0 for r in self.cells)
        return Cell(clock(seconds), seconds)


def scores(m: Measures) -> Table:
    """Each scored model on each set: the score, of entities in all modes with precision and recall; interval, seeds."""
    of_others = [d for d in m.datasets if m.task(d).metric not in METRICS.values()]
    models = [x for x in m.models if any(m.settings(x, d) for d in m.datasets)]
    several = any(len(m.settings(model, d)) > 1 for model in models for d in m.datasets)
    applied = any(r.applied for r in m.finetuned)
    untyped = any(r.test_untyped for r in m.finetuned)
    votes = [r.ensemble for r in m.statistics if r.ensemble]
    records = [
        ModelScores(m, dataset, model, setting)
        for dataset, model in itertools.product(m.datasets, models)
        for setting in m.settings(model, dataset) or ['']
    ]
    read_nothing = [
        ModelScores(m, d, name, '') for d in m.datasets for name in m.baselines if m.baseline(name, d)
    ]
    # `sorted` keeps the order of equals: in each set the answers that read nothing come first.
    records = sorted([*read_nothing, *records], key=lambda r: m.datasets.index(r.dataset))

    def known(cell: Callable[[ModelScores], Cell]) -> Callable[[ModelScores], Cell]:
        return lambda r: cell(r) if r.cells else missing()

    def of_entities(cell: Callable[[ModelScores], Cell]) -> Callable[[ModelScores], Cell]:
        return lambda r: missing() if r.dataset in of_others else cell(r)

    columns = [
        Column('set', lambda r: r.dataset),
        Column('model', lambda r: m.label(r.model)),
        Column('setting', ModelScores.name, when=several),
        Column('measure', lambda r: m.task(r.dataset).metric.title, when=bool(of_others)),
        Column('test' if of_others else 'F1', ModelScores.test, 'high'),
        Column('95 %', ModelScores.interval, when=bool(m.statistics)),
        Column('vote of the seeds', ModelScores.ensemble, when=bool(votes)),
        Column(
            'mean of their logits', lambda r: r.ensemble(of_mean=True), when=any(v.mean_logits for v in votes)
        ),
        Column('strict F1', of_entities(lambda r: r.strict()), 'high'),
        Column('relaxed F1', of_entities(lambda r: r.score(mode='relaxed')), 'high'),
        Column('untyped F1', ModelScores.of_any_type, 'high', untyped),
        Column('F1 of bare text', ModelScores.of_bare_text, 'high', applied),
        Column('devel' if of_others else 'devel F1', lambda r: r.score('devel'), 'high'),
        Column('seeds', known(ModelScores.seeds)),
        *each(RATES, lambda what, r: of_entities(lambda r: r.score(what=what))(r), 'high'),
        Column('mentions scored', of_entities(known(ModelScores.mentions))),
        Column('training time', known(ModelScores.time)),
    ]
    note = (
        'Test, percent, mean ± sd over seeds; epoch chosen on devel. F1 is the default mode of seqeval, strict needs'
        ' exact IOB2 (and is not defined where gold mentions begin with I-), relaxed counts an overlap of the same type'
        + (', untyped any type' if untyped else '')
        + (
            ', of bare text is the score where `predict` cuts the text of a set into other words'
            if applied
            else ''
        )
        + '. '
        + (_interval_note(m) if m.statistics else '')
        + (VOTES if votes else '')
        + _chosen(m, models)
        + _searched(m)
        + _learned_devel(m)
        + f'{OF_BASELINES} ' * bool(m.baselines)
        + f'{parts_in_words((m, r) for r in m.finetuned)} '.lstrip()
        + _failures(m)
        + ''.join(f'{line}. ' for line in published.clashes(m.datasets))
        + 'Mentions scored / in the file. — : not run.'
    )
    return Table.of('Test scores', columns, records, rank_within='set', note=note, absent=NOT_SCORED)


def by_type(m: Measures) -> Table:
    """Test scores of every entity type, of sets with several; under the setting that devel chooses."""
    records = []
    for dataset in m.datasets:
        found = {x: [r.test_by_type for r in m.cells(x, dataset) if r.test_by_type] for x in m.models}
        types = sorted({kind for by_kind in found.values() for r in by_kind for kind in r})
        for kind, (model, by_kind) in itertools.product(types if len(types) > 1 else (), found.items()):
            if known := [r[kind] for r in by_kind if kind in r]:
                records.append((f'{dataset}: {kind}', model, known))

    def measured(what: str, entities: str, model: str, known: list[Mapping[str, float]]) -> Cell:
        return spread([100 * r[what] for r in known])

    columns = [
        Column('entities', lambda entities, model, known: entities),
        Column('model', lambda entities, model, known: m.label(model)),
        Column('mentions', lambda entities, model, known: count(max(int(r['gold']) for r in known))),
        *each({**RATES, 'f1': 'F1'}, measured, 'high'),
    ]
    note = 'Test, percent, mean ± sd over seeds. Mentions: of that type in the gold standard.'
    typed = any(r.test_by_type for r in m.finetuned)
    fewer = 'every set has one type of entity.' if typed else 'no set of entities was scored.'
    absent = fewer if m.finetuned else NOT_SCORED
    return Table.of('By entity type', columns, records, rank_within='entities', note=note, absent=absent)


def entity_f1(m: Measures) -> Figure:
    """Test F1 of every model, mean and spread over seeds; lines through models that follow one another in training."""
    models = [x for x in m.models if any(r.model == x for r in m.finetuned)]
    lines: dict[str, list[Point]] = {d: [] for d in m.datasets}
    for dataset, points in lines.items():
        for at, x in enumerate(models):
            # No line leads to a model that the others do not follow in training.
            apart = [GAP] * (x not in m.on_the_way)
            points += [*apart, spanned(at, f1), *apart] if (f1 := m.scores(x, dataset)) else []
    return curves(
        'entity_f1',
        f'Test {score_names(m)} {"after each phase" if m.trains else "of every model"}',
        {'': lines},
        '',
        f'test {score_names(m)}, %',
        ticks=[m.label(x).replace(' (step 0)', '') for x in models],
        caption='Means over fine-tuning seeds; upright lines from the lowest to the highest seed.',
        absent=NOT_SCORED,
    )


def checkpoint_f1(m: Measures) -> Figure:
    """Devel F1 over the steps of pre-training, at step 0, phase ends and snapshots (paper, Figure 3)."""
    steps = {x: step for x in m.on_the_way if (step := m.step_of(x)) is not None}
    lines = {
        d: [spanned(step, f1) for x, step in steps.items() if (f1 := m.scores(x, d, 'devel'))]
        for d in m.datasets
    }
    few = 'fewer than two checkpoints of this run were scored; config.evaluation.snapshots_per_phase keeps more.'
    return curves(
        'checkpoint_f1',
        f'Devel {score_names(m)} over pre-training',
        {'': {dataset: points for dataset, points in lines.items() if len(points) > 1}},
        'step',
        f'devel {score_names(m)}, %',
        finish=lambda axes, _: training_axis(axes, m),
        caption='Lines are means over seeds, bands from the lowest to the highest seed.',
        absent=(few if m.trains else NO_PHASES) if m.finetuned else NOT_SCORED,
    )


def epoch_f1(m: Measures) -> Figure:
    """Devel F1 after every fine-tuning epoch, a panel for each set, mean and spread over seeds."""
    models, left_out = shown(m)
    return curves(
        'epoch_f1',
        f'Devel {score_names(m)} while fine-tuning',
        {d: {m.label(x): _epochs(m, x, d) for x in models} for d in m.datasets},
        'epoch',
        f'devel {score_names(m)}, %',
        finish=lambda axes, _: axes.locator_params(axis='x', integer=True, nbins=6),
        caption=f'Lines are means over seeds, bands from the lowest to the highest seed. {left_out}',
        absent='no epochs were recorded.' if m.finetuned else NOT_SCORED,
    )


SECTION = Section(
    'Fine-tuning',
    'How good is each model after fine-tuning, and how sure is that?',
    ('finetune',),
    {
        'entities': scores,
        'others': others,
        'types': by_type,
    },
    (entity_f1, checkpoint_f1, epoch_f1),
    folded={'gain': gain},
    for_users=True,
)


def _interval_note(m: Measures) -> str:
    units = ' or '.join(dict.fromkeys(r.unit for r in m.statistics))
    return f'95 %: of {score_names(m)} over {units} of the test set drawn with replacement, the seeds as they are. '


def _searched(m: Measures) -> str:
    """How settings were searched, where not all of them were trained to the end with every model."""
    said, found = '', m.search
    if found is None:
        return said
    if found.tuned_on:
        said = (
            f'One setting for each set, chosen on devel over {", ".join(map(m.label, found.tuned_on))}; the other '
            'models have not been searched. '
        )
    if found.halving:
        at = Counter(f'{r.after} of {r.of}' for r in found.stopped)
        named = ', '.join(f'{count} after {epochs} epochs' for epochs, count in at.items())
        said += (
            f'Successive halving by {found.halving}, the same for every model: settings that stopped, {named}; '
            'they have no test score. '
        )
    return f'{said}{numbered(found.epochs, "epoch")} were trained instead of {found.epochs_of_all:,}. '


def _chosen(m: Measures, models: Sequence[str]) -> str:
    """The note that says which of several settings the other tables show."""
    several = [d for d in m.datasets if any(len(m.settings(x, d)) > 1 for x in models)]
    first = [d for d in several if not m.task(d).learns]
    said = 'Chosen: highest mean on devel, which the other tables show. ' * (len(first) < len(several))
    if first:
        said += f'Devel chooses nothing on {", ".join(first)}: the other tables show the first setting. '
    return said


def _learned_devel(m: Measures) -> str:
    """Which settings learned devel, and for how long: nothing chose their epoch."""
    found = {(r.dataset, r.setting, r.best_epoch): None for r in m.finetuned if r.learned_devel}
    named = ', '.join(f'{dataset} ({setting}, {epochs} epochs)' for dataset, setting, epochs in found)
    return f'Devel was learned with train, so nothing was chosen on it: {named}. ' if found else ''


def _failures(m: Measures) -> str:
    """Which seeds failed and why, and the mean without them; empty where none did."""
    failed = [(r, seed, why) for r in m.statistics for seed, why in r.failures.items()]
    named = []
    for r, seed, why in failed[:NAMED]:
        left = r.test[DEFAULT].mean_without_failed
        label = m.task(r.dataset).metric.label
        others = f'; {label} without failed seeds {100 * left:.2f}' if left is not None else ''
        named.append(f'{m.label(r.model)} on {r.dataset} ({r.setting}), seed {seed}: {why}{others}')
    more = f'; and {len(failed) - NAMED:,} more in finetune/statistics.json' if len(failed) > NAMED else ''
    return f'Failed seeds, which the means include: {"; ".join(named)}{more}. ' if failed else ''


def _epochs(m: Measures, model: str, dataset: str) -> list[Point]:
    """Devel F1 in percent after each epoch, over seeds, under the setting that devel chooses."""
    values: dict[int, list[float]] = {}
    for cell in m.cells(model, dataset):
        for epoch in cell.history:
            values.setdefault(int(epoch['epoch']), []).append(
                100 * epoch[f'devel_{m.task(dataset).metric.name}']
            )
    return [spanned(*of_epoch) for of_epoch in sorted(values.items())]
