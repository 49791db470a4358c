"""The last models of arms: votes counted by loops, one table, tests over trainings against scipy's paired t-test."""

import dataclasses

import numpy as np
import pytest
from scipy import stats
from toy_measures import MASKED, SENTENCES, WORDS_20, experiment, f1, fine_tuned, make

from bioptimus_jax.lab import last_models
from bioptimus_jax.lab.arms import grouped
from bioptimus_jax.records.metrics import EncodedFlops, Spent
from bioptimus_jax.records.statistics import CrossedModel
from bioptimus_jax.report.measures import read_measures
from bioptimus_jax.run.folder import Run

FOUND = {'plain': (100, 110, 120), 'better': (131, 140, 152)}


@pytest.fixture
def arms(tmp_path):
    """Two arms, three trainings each of two phases, scored on two sets; `better` finds more, most on `drugs`."""
    runs = {}
    for arm, found in FOUND.items():
        for seed, right in enumerate(found):
            folder = make(
                tmp_path / f'{arm}.seed-{seed}',
                (WORDS_20, MASKED),
                {1: {'drugs': right, 'diseases': right - 60}},
                seed=seed,
                losses=5 + seed,
            )
            runs[folder.name] = read_measures(Run(folder, loaded(folder), quiet=True))
    return grouped(runs)


def loaded(folder):
    """The configuration that `make` wrote its run with, as far as its measures read it."""
    return dataclasses.replace(experiment((WORDS_20, MASKED)), seed=int(folder.name[-1]))


def shown(table):
    return {row[0].text: dict(zip(table.columns, (c.text for c in row), strict=True)) for row in table.rows}


def test_a_vote_finds_what_most_trainings_find(arms):
    made = last_models.votes(arms)
    assert [(r.arm, r.dataset, r.seeds) for r in made] == [
        (arm, dataset, 3) for arm in FOUND for dataset in ('drugs', 'diseases')
    ]
    for record in made:
        times = np.zeros(SENTENCES, int)
        for seed, right in enumerate(FOUND[record.arm]):
            right -= 60 * (record.dataset == 'diseases')
            times[np.random.default_rng(seed).permutation(SENTENCES)[:right]] += 1
        assert 100 * record.test['default']['f1'] == pytest.approx(f1(int((times > 1).sum())))


@pytest.mark.parametrize('damage', ['no predictions', 'other words', 'one training', 'not scored'])
def test_an_arm_without_predictions_of_one_test_set_has_no_vote(arms, damage):
    file = (
        arms['plain']['1'].run.workdir
        / 'finetune'
        / 'p1'
        / 'drugs'
        / 'standard'
        / 'seed-1'
        / 'predictions.tsv'
    )
    if damage == 'no predictions':
        file.unlink()
    elif damage == 'other words':
        file.write_text(file.read_text('utf-8').replace('drugs7\t', 'other\t'), 'utf-8')
    elif damage == 'one training':
        arms['plain'] = {'1': arms['plain']['1']}
    else:  # with as many cells as trainings, since another one was fine-tuned twice
        first, second, _ = arms['plain'].values()
        first.finetuned[:] = [cell for cell in first.finetuned if cell.dataset != 'drugs']
        second.finetuned.append(fine_tuned(second.run.workdir, 'p1', 'drugs', 'standard', 7, 100))
    kept = {(r.arm, r.dataset) for r in last_models.votes(arms)}
    assert ('plain', 'drugs') not in kept
    assert {('better', 'drugs'), ('better', 'diseases')} <= kept


def test_one_row_an_arm_with_losses_scores_votes_other_sets_and_cost(arms, tmp_path):
    runs = [m for seeds in arms.values() for m in seeds.values()]
    for m in runs:
        m.encoded.append(EncodedFlops(flops=5e12))
        place = {'setting': 'standard', 'trained_on': 'drugs', 'dataset': 'diseases'}
        ends = {'interval': None, 'in_corpus': 0.5, 'drop': 0.1, 'drop_interval': None}
        for model, score in (('p0', 0.9), ('p1', 0.25)):
            m.crossed.append(CrossedModel(model=model, test=score, types=('X',), seeds=1, **place, **ends))
        # 100 pieces of which 20 % are predicted, then 300 of which 10 % are.
        m.spent.extend(
            Spent(step=step, tokens=1_000_000 * tokens, flops=1e12 * step, realised_rate=rate)
            for step, tokens, rate in ((10, 1, 0.2), (20, 4, 0.1))
        )
    table = last_models.last_models(arms, last_models.votes(arms))
    row = shown(table)['plain']
    assert row['held-out loss'] == '4.000 ± 0.000'
    assert row['words 20 %, all [MASK]'] == '5.800 ± 1.000'  # 5, 6 and 7, less 0.1 for each phase
    scores = [f1(right) for right in FOUND['plain']]
    assert row['F1 drugs'] == f'{np.mean(scores):.2f} ± {np.std(scores, ddof=1):.2f}'
    assert row['drugs on diseases'] == '25.00 ± 0.00'
    assert row['predicted pieces, million'] == '0.50 ± 0.00'
    assert table.note.endswith('some per cent too many.')
    for m in runs:
        m.spent[-1] = dataclasses.replace(m.spent[-1], predicted=460_000.0)
    counted = last_models.last_models(arms)
    assert shown(counted)['plain']['predicted pieces, million'] == '0.46 ± 0.00'
    assert 'too many' not in counted.note
    assert row['TFLOP'] == '25.00 ± 0.00'  # 20 of the steps, and 5 of reading contexts
    assert 'TFLOP: of pre-training and of reading contexts' in table.note
    assert row['trainings'] == '3'
    assert float(row['vote drugs']) > 0
    assert table.better['F1 drugs'] == 'high'
    assert table.better['held-out loss'] == 'low'
    without = last_models.last_models(arms)
    # Losses a piece do not compare arms of several vocabularies.
    other = dict(vocab__kind='source', surgery__strategy='copy')
    folder = make(tmp_path / 'copy.seed-0', (WORDS_20, MASKED), {1: {'drugs': 150}}, **other)
    kept = {'': read_measures(Run(folder, loaded(folder), quiet=True))}
    mixed = last_models.last_models({**arms, 'copy': kept})
    assert 'held-out loss' not in mixed.better
    assert mixed.better['F1 drugs'] == 'high'
    assert [c for c in table.columns if c not in without.columns] == ['vote drugs', 'vote diseases']


def test_differences_over_trainings_are_scipys_paired_test_corrected_by_hand(arms):
    row = shown(last_models.less_control(arms, 'plain'))['better']
    sides = {
        dataset: [np.array([f1(right - less) for right in FOUND[arm]]) for arm in ('better', 'plain')]
        for dataset, less in (('drugs', 0), ('diseases', 60))
    }
    p = {dataset: stats.ttest_rel(*both).pvalue for dataset, both in sides.items()}
    mean = [np.mean([both[n] for both in sides.values()], 0) for n in (0, 1)]
    assert row['mean of the sets'].endswith(f'p = {stats.ttest_rel(*mean).pvalue:.2g}')
    low, high = sorted(p, key=p.get)
    assert row[low].endswith(f'p = {min(1, 2 * p[low]):.2g}')
    assert row[high].endswith(f'p = {max(2 * p[low], p[high]):.2g}')
    interval = stats.ttest_rel(*mean).confidence_interval()
    assert f'[{interval.low:+.2f}, {interval.high:+.2f}]' in row['mean of the sets']


def test_what_is_not_there_is_said(arms):
    assert 'nobody has not been scored' in last_models.less_control(arms, 'nobody').text()
    assert 'no arm has come to the end' in last_models.last_models({}).text()
    alone = {arm: {'0': seeds['0']} for arm, seeds in arms.items()}
    assert (
        '[' not in shown(last_models.less_control(alone, 'plain'))['better']['drugs']
    )  # one training says no interval
