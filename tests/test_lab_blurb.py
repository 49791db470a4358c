"""The BLURB score: weights by hand, its interval against draws of the items themselves, and what is missing."""

import dataclasses
import statistics
from pathlib import Path

import numpy as np
import pytest

from bioptimus_jax.experiment.schema import Experiment
from bioptimus_jax.finetuning.task import task_of
from bioptimus_jax.finetuning.units import Units
from bioptimus_jax.lab.sections.blurb import blurb, weight
from bioptimus_jax.records.finetune import FineTuning, ModelOnSet
from bioptimus_jax.report.measures import Measures
from bioptimus_jax.report.sections.entities import scores
from bioptimus_jax.run.folder import Run
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
