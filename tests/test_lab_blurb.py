"""The BLURB score: weights by hand, its interval against draws of the items themselves, and what is missing."""

import dataclasses
import statistics
from pathlib import Path

import numpy as np
import pytest
import scipy.stats

from bioptimus_jax.experiment.schema import Experiment
from bioptimus_jax.finetuning.task import task_of
from bioptimus_jax.finetuning.units import Units
from bioptimus_jax.lab.sections.blurb import blurb, less_source, weight
from bioptimus_jax.records.finetune import FineTuning, ModelOnSet
from bioptimus_jax.report.measures import Measures
from bioptimus_jax.report.sections.entities import scores
from bioptimus_jax.run.folder import Run
from bioptimus_jax.scoring.comparison import holm
from bioptimus_jax.sets import texts, words
from bioptimus_jax.sets.blurb import GROUPS, MEMBERS, SETS, record_of

NAMES = {'bc5-chem': 'BC5CDR-chem-IOB', 'hoc': 'HoC', 'ebmnlp': 'EBM_PICO'}
TASKS = dict.fromkeys(MEMBERS, 'classes') | {'ebmnlp': 'word_classes', 'biosses': 'similarity'}
ITEMS = 40


def cell(name, seed, generator):
    """A fine-tuning with counts of 40 test items; the score is that of their sums."""
    kind = None if name in GROUPS['entities'] else TASKS[name]
    place = {'model': 'a', 'dataset': NAMES.get(name, name), 'setting': 'standard', 'task': kind}
    task = task_of(ModelOnSet(**place))
    columns = len(task.metric.columns)
    if name == 'biosses':
        x, y = generator.normal(2, 1, (2, ITEMS))
        counts = np.stack([np.ones(ITEMS), x, x + y, x * x, (x + y) ** 2, x * (x + y)], -1)
    else:
        counts = generator.integers(1, 5, (ITEMS, columns))
        counts[:, 0::3] = (
            np.minimum(counts[:, 0::3], counts[:, 1::3].min(1, keepdims=True)) if columns > 2 else 1
        )
    value = float(task.metric.value(counts.sum(0)))
    scores = {'default': {task.metric.name: value}}
    units = Units(Path('x'), 'texts', 't', 'g', counts, task).record()
    made = FineTuning(**place, seed=seed, devel=scores, test=scores, units=units)
    return made, counts, task.metric


@pytest.fixture
def made(tmp_path):
    generator = np.random.default_rng(0)
    cells = {name: [cell(name, seed, generator) for seed in (0, 1)] for name in MEMBERS}
    records = [record for of_set in cells.values() for record, _, _ in of_set]
    return Measures(Run(tmp_path, Experiment(), quiet=True), finetuned=records), cells


def test_thirteen_sets_in_six_tasks_under_whatever_name():
    assert [len(sets) for sets in GROUPS.values()] == [5, 1, 3, 1, 1, 2]
    assert sorted(MEMBERS) == sorted((*SETS, *texts.SETS, *words.SETS))
    assert [weight(name) for name in GROUPS] == ['1/30', '1/6', '1/18', '1/6', '1/6', '1/12']
    names = ('BC2GM-IOB', 'EBM-PICO', 'GAD', 'jnlpba-typed', 'other')
    assert [getattr(record_of(name), 'name', '') for name in names] == [
        'bc2gm',
        'ebmnlp',
        'gad',
        '',
        '',
    ]


def test_the_score_is_the_mean_of_tasks_with_an_interval_over_test_items(made):
    measures, cells = made
    [row] = blurb(measures).rows
    score = {
        name: statistics.fmean(100 * r.test['default'][m.name] for r, _, m in of_set)
        for name, of_set in cells.items()
    }
    tasks = [statistics.fmean(score[name] for name in sets) for sets in GROUPS.values()]
    assert [c.value for c in row[1:7]] == pytest.approx(tasks)
    assert row[7].value == pytest.approx(statistics.fmean(tasks))
    assert row[8].value == pytest.approx(
        statistics.fmean(t for t, g in zip(tasks, GROUPS) if g not in ('questions', 'similarity'))
    )
    # Drawn anew, item by item.
    generator, drawn = np.random.default_rng(1), []
    for _ in range(1500):
        of_set = {}
        for name, of_seeds in cells.items():
            at = generator.integers(0, ITEMS, ITEMS)
            of_set[name] = statistics.fmean(
                100 * float(m.value(counts[at].sum(0))) for _, counts, m in of_seeds
            )
        drawn.append(statistics.fmean(statistics.fmean(of_set[n] for n in sets) for sets in GROUPS.values()))
    low, high = (float(x) for x in row[7].text.partition('[')[2].rstrip(']').split(', '))
    np.testing.assert_allclose((low, high), np.quantile(drawn, (0.025, 0.975)), atol=0.35)


def test_without_a_set_there_is_no_score_and_without_predictions_no_interval(made):
    measures, _ = made
    measures.finetuned.remove(next(r for r in measures.finetuned if r.dataset == 'pubmedqa'))
    assert '[' in blurb(measures).rows[0][7].text  # of the other seed
    measures.finetuned[:] = [dataclasses.replace(r, units=None) for r in measures.finetuned]
    [row] = blurb(measures).rows
    assert '[' not in row[7].text
    measures.finetuned[:] = [r for r in measures.finetuned if r.dataset != 'pubmedqa']
    [row] = blurb(measures).rows
    assert [row[at].text for at in (6, 7)] == ['—', '—']
    assert row[8].value is not None
    measures.finetuned[:] = [r for r in measures.finetuned if not r.task]
    assert 'no set of BLURB beside entities' in blurb(measures).text()


def test_the_table_of_scores_says_which_sets_do_not_compare(made):
    measures, _ = made
    measures.finetuned[:] = [r for r in measures.finetuned if r.task]
    assert 'do not compare' not in scores(measures).note
    other = next(r for r in measures.finetuned if r.dataset == 'HoC')
    measures.finetuned.append(dataclasses.replace(other, dataset='HOC-BLUE'))
    assert 'HoC, HOC-BLUE: forms of one corpus with other examples' in scores(measures).note


def test_the_last_phase_less_the_source_by_fine_tunings(tmp_path):
    """Task by task and in the mean, as scipy's paired test has it; only seeds that all sets have, and whole tasks."""
    draw = np.random.default_rng(1)
    drawn = {name: draw.uniform(0.3, 0.9, (2, 4)) for name in MEMBERS}
    experiment = dataclasses.replace(Experiment(), phases=('w',))
    records = [
        dataclasses.replace(cell(name, seed, draw)[0], model=model, units=None)
        for name in MEMBERS
        for model in ('source', 'w')
        for seed in range(4)
        if (name, seed) != ('gad', 3)
    ]
    for at, r in enumerate(records):
        value = {task_of(r).metric.name: drawn[record_of(r.dataset).name][int(r.model == 'w'), r.seed]}
        records[at] = dataclasses.replace(r, test={'default': value})
    measures = Measures(Run(tmp_path, experiment, quiet=True), finetuned=records)

    def mean(side, sets, seeds=4):
        return np.mean([100 * drawn[name][side, :seeds] for name in sets], 0)

    rows = {row[0].text: row for row in less_source(measures).rows}
    several = {task: sets for task, sets in GROUPS.items() if len(sets) > 1}
    assert list(rows) == [*MEMBERS, *several, 'BLURB score']
    for family in ({name: [name] for name in MEMBERS}, several):
        p = []
        for name, sets in family.items():
            before, after = (mean(side, sets, 3 if 'gad' in sets else 4) for side in (0, 1))
            test = scipy.stats.ttest_rel(after, before)
            low, high = test.confidence_interval()
            said = f'{np.mean(after - before):+.2f} [{low:+.2f}, {high:+.2f}]'
            assert rows[name][3].text.startswith(said)
            p.append(test.pvalue)
        told = [rows[name][3].text.partition('p = ')[2] for name in family]
        assert told == [f'{min(1, x):.2g}' for x in holm(p)]
    score = rows['BLURB score']
    means = [np.mean([mean(side, sets, 3) for sets in GROUPS.values()], 0) for side in (0, 1)]
    assert score[1].value == pytest.approx(means[0].mean())
    assert score[3].text.endswith(f'p = {scipy.stats.ttest_rel(*means).pvalue:.2g}')
    measures.finetuned[:] = [r for r in records if r.dataset not in ('pubmedqa', 'HoC')]
    left = [row[0].text for row in less_source(measures).rows]
    kept = [name for name in MEMBERS if name not in ('pubmedqa', 'hoc')]
    assert left == [*kept, 'entities', 'relations', 'mean of these 4 tasks']
    measures.finetuned[:] = [r for r in records if r.model == 'w']
    assert less_source(measures).empty
