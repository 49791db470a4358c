"""F1 from frozen states beside F1 after fine-tuning: weighted correlations against scipy, tables of arms."""

import dataclasses
import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from toy_measures import PHASES, fabricate

from bioptimus_jax.lab.sections import followed as tables
from bioptimus_jax.records.analysis import HiddenWords
from bioptimus_jax.report import frozen
from bioptimus_jax.report.measures import read_measures
from bioptimus_jax.report.records import measures_of, read_record, record_of
from bioptimus_jax.storage.files import write_json

MODELS = ('initial', *PHASES)


@given(st.lists(st.tuples(*[st.integers(0, 5)] * 2, st.integers(1, 3)), min_size=4, max_size=12))
@settings(max_examples=40)
def test_weighted_correlations_are_scipys_of_repeated_models(triples):
    x_N, y_N, times_N = np.array(triples, np.float64).T
    x, y = (np.repeat(values, times_N.astype(int)) for values in (x_N, y_N))
    if len(set(x)) < 2 or len(set(y)) < 2:
        assert np.isnan(tables.weighted_kendall(x_N, y_N, times_N[None])[0])
        return
    assert tables.weighted_pearson(x_N, y_N, times_N[None])[0] == pytest.approx(
        stats.pearsonr(x, y)[0], abs=1e-9
    )
    assert tables.weighted_kendall(x_N, y_N, times_N[None])[0] == pytest.approx(
        stats.kendalltau(x, y)[0], abs=1e-9
    )
    once = np.ones((1, len(x_N)))
    assert tables.weighted_spearman(x_N, y_N, once)[0] == pytest.approx(
        stats.spearmanr(x_N, y_N)[0], abs=1e-9
    )


def arms_of(tmp_path, models=MODELS):
    """Two arms with two seeds each, and F1 from frozen states that follows fine-tuned F1 with noise."""
    rng = np.random.default_rng(0)
    arms = {}
    for arm, seed in itertools.product(('one', 'two'), (0, 1)):
        run = fabricate(tmp_path / f'{arm}-{seed}')
        m = read_measures(run)
        records = [
            {
                'model': x,
                'set': d,
                'precision': 0.5,
                'recall': 0.5,
                'gold': 9,
                'predicted': 9,
                'f1': 0.3 + 0.05 * models.index(x) + 0.03 * rng.normal() * (x != 'source'),
                'sentences': 50,
            }
            for x in models
            for d in m.datasets
        ]
        write_json(run.workdir / 'analyze' / 'frozen.json', records)
        arms.setdefault(arm, {})[seed] = read_measures(run)
    return arms


def test_the_table_of_correlations_against_scipy(tmp_path):
    arms = arms_of(tmp_path)
    table = tables.followed(arms)
    rows = {(r['set'], r['measure']): r for r in table.records()}
    assert {name for name, _ in rows} == {'ncbi-disease', 'drugs', tables.MEAN}
    every = [m for seeds in arms.values() for m in seeds.values()]
    pairs = [(m, x) for m in every for x in MODELS]
    tuned = np.array([[np.mean(m.scores(x, d)) for d in m.datasets] for m, x in pairs])
    states = np.array([[m.frozen_f1(x, d) for d in m.datasets] for m, x in pairs])
    nats = np.array([-m.cloze_of(x).nats_per_word for m, x in pairs])
    functions = {'Pearson': stats.pearsonr, 'Spearman': stats.spearmanr, 'Kendall': stats.kendalltau}
    for at, name in [*enumerate(every[0].datasets), (slice(None), tables.MEAN)]:
        f1, own = (np.reshape(x[:, at], (len(pairs), -1)).mean(1) for x in (tuned, states))
        for measure, values in ((tables.FROZEN, own), (tables.NATS, nats)):
            row = rows[name, measure]
            assert row['models'] == len(pairs) == 20
            for column, function in functions.items():
                assert row[column] == pytest.approx(function(values, f1)[0])
                assert '[' in row[f'{column}, as shown'], 'an interval over arms'
            without = {
                arm: stats.pearsonr(*(np.delete(x.reshape(2, 10), i, 0).ravel() for x in (values, f1)))[0]
                for i, arm in enumerate(arms)
            }
            weakest = min(without, key=lambda arm: without[arm] * np.sign(row['Pearson']))
            assert row['Pearson without one arm'] == pytest.approx(without[weakest])
            assert row['Pearson without one arm, as shown'] == f'{without[weakest]:.2f} ({weakest})'
        centred = [(x.reshape(4, 5) - x.reshape(4, 5).mean(1, keepdims=True)).ravel() for x in (own, f1)]
        within = rows[name, tables.FROZEN]['Pearson within runs']
        assert within == pytest.approx(stats.pearsonr(*centred)[0])
        sets = every[0].datasets if name == tables.MEAN else [name]
        noise = [
            np.mean([np.var(m.scores(x, d), ddof=1) / len(m.scores(x, d)) for d in sets]) / len(sets)
            for m, x in pairs
        ]
        most = np.sqrt(max(0, 1 - np.mean(noise) / np.var(f1, ddof=1)))
        assert rows[name, tables.FROZEN]['at most'] == pytest.approx(most)
        assert 0.5 < most < 1
    one = tables.followed({'one': {0: arms['one'][0]}}).records()
    assert not any('Pearson, as shown' in row for row in one), 'one arm has no interval over arms'
    assert tables.followed({'one': {0: dataclasses.replace(every[0], frozen=[])}}).empty


def test_snapshots_and_the_source_count_and_records_keep_all(tmp_path):
    arms = arms_of(tmp_path, ('source', *MODELS, '0.1@50'))
    first = arms['one'][0]
    for seeds in arms.values():
        for seed, m in seeds.items():
            more = [
                dataclasses.replace(r, model=x)
                for r in m.finetuned
                if r.model == '0.1'
                for x in ('source', '0.1@50')
            ]
            seeds[seed] = dataclasses.replace(
                m, finetuned=[*m.finetuned, *more], snapshots=[HiddenWords(model='0.1@50', nats_per_word=4.5)]
            )
    found = tables.points(arms, first.datasets)
    assert len(found) == 4 * (len(MODELS) + 1) + 1, 'the source is one model'
    assert sum(tables.NATS not in p.before for p in found) == 1
    assert sum(p.before.get(tables.NATS) == -4.5 for p in found) == 4
    kept = {
        arm: {
            seed: measures_of(
                read_record(record_of('a', m).json(), 'here'), tmp_path / f'{arm}-{seed}', m.run.config
            )
            for seed, m in seeds.items()
        }
        for arm, seeds in arms.items()
    }
    assert tables.followed(kept).rows == tables.followed(arms).rows
    shown = [row['model'] for row in frozen.frozen(first).records()]
    assert shown == ['source', 'initial (step 0)', '0.1@50', *PHASES]
