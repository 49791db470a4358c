"""Entity recognition in tables: every model on every set, by entity type, and beside the paper."""

import functools
import itertools
from collections.abc import Sequence
from typing import Any

from bioptimus_jax.finetune.entities.score import METRICS
from bioptimus_jax.progress import clock
from bioptimus_jax.report import paper
from bioptimus_jax.report.layout import NOT_RUN, Cell, Table, count, fixed, missing, spread, words
from bioptimus_jax.report.measures import Measures
from bioptimus_jax.report.questions import named_path
from bioptimus_jax.report.trained import Trained, trained_models
from bioptimus_jax.schema import SNAPSHOT

NOT_SCORED = 'stage finetune has not been run.'
NAMED = 5
"""Failed seeds that the note names."""


def scores(m: Measures) -> Table:
    """Every model on every set: precision, recall, F1 in all modes, its interval, seeds, and what was scored."""
    datasets = [d for d in m.datasets if m.task(d).metric in METRICS.values()]
    several = any(len(m.settings(model, d)) > 1 for model in m.models for d in datasets)
    untyped = any('test_untyped' in r for r in m.finetuned)
    intervals = any('interval' in r for r in m.statistics)
    columns = ['set', 'model', *(['setting'] if several else []), 'F1', *(['95 %'] if intervals else [])]
    columns += ['strict F1', 'relaxed F1', *(['untyped F1'] if untyped else []), 'devel F1', 'seeds']
    columns += ['precision', 'recall', 'mentions scored', 'training time']
    better = {c: 'high' for c in columns if 'F1' in c or c in ('precision', 'recall')}
    rows = []
    for dataset, model in itertools.product(datasets, m.models):
        for setting in m.settings(model, dataset) or ['']:
            chosen = several and setting == m.chosen(model, dataset)
            name = [words(f'{setting or NOT_RUN}{", chosen" if chosen else ""}')] if several else []
            cells = _scores_of(m, model, dataset, setting, intervals, untyped)
            rows.append([words(dataset), words(m.label(model)), *name, *cells])
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
    return Table('Test scores', columns, rows, better, rank_within='set', note=note, absent=NOT_SCORED)


def others(m: Measures) -> Table:
    """Every model on every set of another task: what was measured, its interval, devel, seeds."""
    columns = ['set', 'model', 'setting', 'measure', 'test', '95 %', 'devel', 'seeds']
    rows = []
    datasets = [d for d in m.datasets if m.task(d).metric not in METRICS.values()]
    for dataset, model in itertools.product(datasets, m.models):
        for setting in m.settings(model, dataset):
            test, devel = (spread(m.scores(model, dataset, s, setting=setting)) for s in ('test', 'devel'))
            between = interval(m.statistics_of(model, dataset, setting).get('interval')) or NOT_RUN
            names = dataset, m.label(model), setting, m.task(dataset).metric.title
            seeds = count(len(m.cells(model, dataset, setting)))
            rows.append([*map(words, names), test, words(between), devel, seeds])
    note = 'Percent, mean ± sd over seeds; epoch chosen on devel. 95 %: over the test set drawn with replacement.'
    better = {'test': 'high', 'devel': 'high'}
    absent = 'every set is one of entities.' if m.finetuned else NOT_SCORED
    return Table('Scores of other tasks', columns, rows, better, rank_within='set', note=note, absent=absent)


def by_type(m: Measures) -> Table:
    """Test scores of every entity type, of sets with several; under the setting that devel chooses."""
    columns = ['entities', 'model', 'mentions', 'precision', 'recall', 'F1']
    rows = []
    for dataset in m.datasets:
        found = {model: [r['test_by_type'] for r in _typed(m, model, dataset)] for model in m.models}
        types = sorted({kind for records in found.values() for r in records for kind in r})
        for kind, (model, records) in itertools.product(types if len(types) > 1 else (), found.items()):
            known = [r[kind] for r in records if kind in r]
            rates = [spread([100 * r[what] for r in known]) for what in ('precision', 'recall', 'f1')]
            if known:
                gold = count(max(r['gold'] for r in known))
                rows.append([words(f'{dataset}: {kind}'), words(m.label(model)), gold, *rates])
    note = 'Test, percent, mean ± sd over seeds. Mentions: of that type in the gold standard.'
    absent = (
        'every set has one type of entity.' if any('test_by_type' in r for r in m.finetuned) else NOT_SCORED
    )
    if m.finetuned and not any('test_by_type' in r for r in m.finetuned):
        absent = 'these scores were made before types were counted; run stage finetune again.'
    better = dict.fromkeys(columns[3:], 'high')
    return Table('By entity type', columns, rows, better, rank_within='entities', note=note, absent=absent)


def beside_paper(m: Measures) -> Table:
    """Test F1 of this run beside the paper's, for the five sets that the paper names.

    A model is the paper's by its settings, not by the name of its phase; a rival by its name.
    """
    datasets = [d for d in paper.DATASETS if d in m.datasets]
    columns = ['model', *(f'{d}{who}' for d in datasets for who in (', here', ', paper'))]
    models = [t for t in trained_models([m]) if datasets and SNAPSHOT not in t.model]
    here = [paper.rival(m.label(t.model)) for t in models if not t.own]
    rows = []
    for t in models:
        pairs = [(spread(m.scores(t.model, d)), fixed(_reported(t, d), 2)) for d in datasets]
        rows.append([words(_name(t)), *(cell for pair in pairs for cell in pair)])
    for rival in paper.RIVALS if datasets else ():
        if (found := paper.rival(rival)) and found not in here:
            pairs = [(missing(), fixed(found[1][paper.DATASETS.index(d)], 2)) for d in datasets]
            rows.append([words(f'{rival}: no run'), *(cell for pair in pairs for cell in pair)])
    note = (
        'Paper: arXiv 2308.08625, Tables 2, 5 and 6; 12 layers, 1.8 billion words, seeds not stated. Best and'
        ' second per column. — : not run here, or not in the paper.'
    )
    absent = 'none of the sets scored here is one of the five in the paper.' if m.datasets else NOT_SCORED
    better = dict.fromkeys(columns[1:], 'high')
    return Table('Beside the paper', columns, rows, better, note=note, absent=absent)


def interval(values: Sequence[float] | None, decimals: int = 2) -> str:
    """Shares as '80.12-83.40' percent; empty where there is no interval."""
    if not values or any(value != value for value in values):
        return ''
    low, high = values
    return f'{100 * low:.{decimals}f}-{100 * high:.{decimals}f}'


def _reported(t: Trained, dataset: str) -> float | None:
    if t.own:
        return paper.reported(t.config.surgery.strategy, named_path(t), dataset)
    rival = paper.rival(t.measures.label(t.model))
    return rival[1][paper.DATASETS.index(dataset)] if rival else None


def _name(t: Trained) -> str:
    """With the settings where the paper has none of that name, and with the initialisation."""
    name = t.measures.label(t.model)
    if t.path and named_path(t) != t.model:
        name += f' ({"; ".join(t.path)})'
    return f'{name}, {t.initialisation}' if t.model in t.measures.on_the_way else name


def _scores_of(
    m: Measures, model: str, dataset: str, setting: str, intervals: bool, untyped: bool
) -> list[Cell]:
    cells = m.cells(model, dataset, setting)
    score = functools.partial(m.scores, model, dataset, setting=setting)
    statistics = m.statistics_of(model, dataset, setting)
    failed = len(statistics.get('failures', ()))
    between = [words(interval(statistics.get('interval')) or NOT_RUN)] if intervals else []
    any_type = [100 * r['test_untyped']['default']['f1'] for r in cells if 'test_untyped' in r]
    seconds = sum(r.get('seconds', 0) for r in cells)
    seeds = Cell(f'{len(cells)}, {failed} failed' if failed else f'{len(cells)}', float(len(cells)))
    return [
        spread(score()),
        *between,
        *(spread(score(mode=mode)) for mode in ('strict', 'relaxed')),
        *([spread(any_type)] if untyped else []),
        spread(score('devel')),
        seeds if cells else missing(),
        *(spread(score(what=what)) for what in ('precision', 'recall')),
        _scored(cells),
        Cell(clock(seconds), seconds) if cells else missing(),
    ]


def _interval_note(m: Measures) -> str:
    units = ' or '.join(dict.fromkeys(r['unit'] for r in m.statistics if 'unit' in r))
    return f'95 %: of F1 over {units} of the test set drawn with replacement, the seeds as they are. '


def _failures(m: Measures) -> str:
    """Which seeds failed and why, and the mean without them; empty where none did."""
    failed = [(r, seed, why) for r in m.statistics for seed, why in r.get('failures', {}).items()]
    named = []
    for r, seed, why in failed[:NAMED]:
        left = r['test']['default']['mean_without_failed']
        others = f'; F1 without failed seeds {100 * left:.2f}' if left is not None else ''
        named.append(f'{m.label(r["model"])} on {r["dataset"]} ({r["setting"]}), seed {seed}: {why}{others}')
    more = f'; and {len(failed) - NAMED:,} more in finetune/statistics.json' if len(failed) > NAMED else ''
    return f'Failed seeds, which the means include: {"; ".join(named)}{more}. ' if failed else ''


def _typed(m: Measures, model: str, dataset: str) -> list[dict[str, Any]]:
    return [r for r in m.cells(model, dataset) if 'test_by_type' in r]


def _scored(cells: list[dict]) -> Cell:
    if not cells:
        return missing()
    return Cell(f'{cells[0]["gold_scored"]:,} / {cells[0]["gold_in_file"]:,}', float(cells[0]['gold_scored']))
