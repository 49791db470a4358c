"""Ways to spend the hours: one row each, differences by scipy's paired t-test, and sets that a way has no score on."""

import dataclasses

import numpy as np
import pytest
from scipy import stats
from toy_measures import fabricate

from bioptimus_jax.lab.ways import Way, ways_table
from bioptimus_jax.report.measures import read_measures

SETS = ('ncbi-disease', 'drugs')


@pytest.fixture
def measures(tmp_path):
    """Two models with three seeds; how the scores differ from seed to seed is drawn for each model."""
    m, noise = read_measures(fabricate(tmp_path / 'run')), np.random.default_rng(0)
    m.finetuned[:] = [
        dataclasses.replace(r, test={'default': r.test['default'] | {'f1': noise.uniform(0.4, 0.6)}})
        for r in m.finetuned
    ]
    return m


def rows_of(table):
    return {row[0].text: dict(zip(table.columns, (c.text for c in row), strict=True)) for row in table.rows}


def test_a_way_stands_beside_the_first_with_its_difference_words_and_time(measures):
    table = ways_table([Way('as it is', measures, 'initial'), Way('adapted', measures, '0.4')], SETS)
    rows = rows_of(table)
    scores = {model: np.array([measures.scores(model, d) for d in SETS]) for model in ('initial', '0.4')}
    for at, name in enumerate(SETS):
        before, after = (scores[model][at] for model in ('initial', '0.4'))
        assert rows['adapted'][name] == f'{after.mean():.2f} ± {after.std(ddof=1):.2f}'
        assert f'{(after - before).mean():+.2f} [' in rows['adapted'][f'{name}, difference']
    low, high = stats.ttest_rel(*(scores[m].mean(0) for m in ('0.4', 'initial'))).confidence_interval()
    assert f'[{low:+.2f}, {high:+.2f}]' in rows['adapted']['mean of the sets, difference']
    assert rows['adapted']['words read'] == f'{400 * 4096 * 0.75:,.0f}'  # three words in four tokens
    assert rows['adapted']['adaptation'] == '8 min 10 s'  # 360 s of steps, 65 s each of contexts and surgery
    assert rows['adapted']['a fine-tuning'] == '30 s'
    first = rows['as it is']
    assert (first['drugs, difference'], first['words read'], first['adaptation']) == ('—', '0', '2 min 10 s')


def test_a_way_without_one_of_the_sets_has_no_difference_in_their_mean(measures, tmp_path):
    other = read_measures(fabricate(tmp_path / 'other'))
    own = [r for r in other.finetuned if r.dataset != 'drugs']
    other.finetuned[:] = own
    ways = [
        Way('as it is', measures, 'initial'),
        Way('half', other, '0.4'),
        Way('adapted', measures, '0.4'),
    ]
    rows = rows_of(ways_table(ways, SETS))
    assert rows['half']['drugs'] == rows['half']['drugs, difference'] == '—'
    assert rows['half']['mean of the sets, difference'] == '—'
    assert rows['half']['ncbi-disease, difference'] != '—'
    assert rows['adapted']['mean of the sets, difference'] != '—'
