"""The shipped ablations: every arm instantiates, budgets and learning rates are equal, what is the same is shared."""

import dataclasses
import functools
import itertools
import runpy
from pathlib import Path

import jax
import numpy as np
import pytest

from bioptimus_jax.errors import ConfigError
from bioptimus_jax.experiment import config
from bioptimus_jax.experiment.schema import Experiment
from bioptimus_jax.experiment.stages import STAGES
from bioptimus_jax.lab.trained import PAPER_SETTINGS, setting_name
from bioptimus_jax.pretrain import curriculum
from bioptimus_jax.pretrain.config import PAPER_PHASES
from bioptimus_jax.pretrain.plan import Assumptions, make_plan
from bioptimus_jax.pretrain.shape import RowCounts
from bioptimus_jax.run.fingerprint import result_keys

MODULE = runpy.run_path(str(Path(__file__).resolve().parents[1] / 'configs' / 'ablations.py'))
RIVALS = ',A=/models/a,B=/models/b'
OPTIONS = {'table6': RIVALS, 'refit': ',tokens=/lists/bad.txt'}
ABLATIONS = tuple(f'{name}{OPTIONS.get(name, "")}' for name in MODULE['ARMS'])
MASKED = ('table3', 'table5', 'table7', 'orders', 'corruption')
COUNTS = RowCounts(rows=68_222, tokens=16_782_230, words=12_501_757)
OF_COPY = RowCounts(rows=80_000, tokens=19_700_000, words=12_501_757)


@pytest.fixture(autouse=True)
def _environment(monkeypatch):
    monkeypatch.setenv('BIOPTIMUS_DATA', '/data')
    monkeypatch.setenv('BIOPTIMUS_SOURCE', '/source')


@functools.cache
def experiments(argument):
    """Arm -> experiment."""
    return {
        arm: Experiment.from_config(config.load(f'ablations:{argument}/{arm}'))
        for arm in config.arms(f'ablations:{argument}')
    }


def words(experiment):
    assert {experiment.phase[name].duration_unit for name in experiment.phases} == {'words'}
    return [experiment.phase[name].duration for name in experiment.phases]


def rates(experiment):
    """The learning rate of every step."""
    schedule = curriculum.make_schedule(experiment, COUNTS)
    table = curriculum.table(schedule, experiment)
    steps = np.arange(schedule[-1].stop)
    return np.asarray(curriculum.learning_rate_at(table, steps))


@pytest.mark.parametrize('argument', ABLATIONS)
def test_every_arm_is_an_experiment_with_three_seeds_of_its_own(argument):
    arms = experiments(argument)
    names = {arm.partition('.seed-')[0] for arm in arms}
    assert len(arms) == 3 * len(names)
    for arm, e in arms.items():
        assert e.seed == int(arm.partition('.seed-')[2])
        if argument != 'curves':
            assert e.finetune.seeds == (e.seed,)
        if not arm.startswith('rivals'):
            known = {'initial', *e.phases}
            assert {name.partition('@')[0] for name in e.finetune.models} <= known
            assert set(e.phases) <= set(e.phase)


@pytest.mark.parametrize('argument', ABLATIONS)
def test_arms_of_an_ablation_see_the_same_words(argument):
    seen = {arm: words(e) for arm, e in experiments(argument).items() if not arm.startswith('rivals')}
    assert len({tuple(lengths) for lengths in seen.values()}) == 1


def test_words_stay_equal_where_the_vocabulary_makes_more_pieces():
    arms = experiments('table2')
    steps = {}
    for arm in ('contextualized.seed-0', 'copy.seed-0'):
        counts = OF_COPY if arm.startswith('copy') else COUNTS
        schedule = curriculum.make_schedule(arms[arm], counts)
        steps[arm] = schedule[-1].stop
        seen = schedule[-1].stop * arms[arm].pretrain.batch_rows * counts.words / counts.rows
        assert seen == pytest.approx(350_000, rel=0.005)
    assert steps['copy.seed-0'] > steps['contextualized.seed-0']


@pytest.mark.parametrize('argument', ['orders', 'table7', 'corruption', 'table3', 'table2', 'masking'])
def test_every_arm_has_the_same_learning_rates_at_the_same_steps(argument):
    paths = [rates(e) for e in experiments(argument).values()]
    assert len(paths) > 2
    for path in paths[1:]:
        np.testing.assert_array_equal(path, paths[0])
    assert paths[0].max() == pytest.approx(2e-3, rel=0.01)


def test_orders_is_the_fair_test():
    arms = {arm: e for arm, e in experiments('orders').items() if e.seed == 0}
    paths = {
        arm.partition('.')[0]: tuple(setting_name(e.phase[name]) for name in e.phases)
        for arm, e in arms.items()
    }
    for setting, name in zip(PAPER_SETTINGS, ('tokens_15', 'words_15', 'words_20', 'masked_20'), strict=True):
        assert paths[name] == (setting,) * 4
    assert paths['easy_to_hard'] == PAPER_SETTINGS
    assert paths['hard_to_easy'] == PAPER_SETTINGS[::-1]
    assert sorted(paths['shuffled']) == sorted(PAPER_SETTINGS)
    assert paths['shuffled'] not in (paths['easy_to_hard'], paths['hard_to_easy'])
    assert len(set(paths.values())) == 7
    for e in arms.values():  # every checkpoint under all settings
        assert [e.phase[name] for name in e.evaluation.settings] != []
        assert tuple(setting_name(e.phase[name]) for name in e.evaluation.settings) == PAPER_SETTINGS


def test_corruption_is_a_factorial_at_matched_rates_of_mask():
    arms = [e for e in experiments('corruption').values() if e.seed == 0]
    found = {}
    for e in arms:
        phases = {e.phase[name] for name in e.phases}
        assert len({(p.masking, p.rate, p.corruption) for p in phases}) == 1
        [p, *_] = phases
        assert p.masking == 'words'
        shown = round(p.rate * p.corruption[0], 6)
        found.setdefault(shown, set()).add(p.corruption)
        assert e.analysis.geometry_words > 0
    all_four = {(0.8, 0.1, 0.1), (1.0, 0.0, 0.0), (0.9, 0.1, 0.0), (0.9, 0.0, 0.1)}
    assert found == {0.16: all_four, 0.2: all_four}
    assert {setting_name(PAPER_PHASES[n]) for n in ('0.3', '0.4')} <= {
        setting_name(e.phase[e.phases[0]]) for e in arms
    }


def test_masking_rises_falls_stays_is_shuffled_and_takes_a_detour():
    arms = experiments('masking')
    counts = RowCounts(rows=6_822, tokens=1_678_223, words=1_400_000)

    def path(name, seed=0):
        e = arms[f'{name}.seed-{seed}']
        schedule = curriculum.make_schedule(e, counts)
        steps = np.arange(schedule[-1].stop)
        table = curriculum.table(schedule, e)
        return np.asarray(jax.vmap(lambda step: curriculum.setting_at(table, step).rate)(steps))

    assert (np.diff(path('easy_to_hard')) >= 0).all()
    line, falling = path('falling_line'), path('falling_steps')
    assert (line[0], line[-1]) == (pytest.approx(0.3), pytest.approx(0.05, abs=0.001))
    assert (np.diff(line) <= 0).all()
    assert line.mean() == pytest.approx(0.175, abs=0.001)
    assert [round(float(r), 2) for r in dict.fromkeys(falling.tolist())] == [0.3, 0.2, 0.1, 0.05]
    for name, rate in (('tokens_15', 0.15), ('words_15', 0.15), ('words_20', 0.2), ('words_30', 0.3)):
        assert path(name) == pytest.approx(rate)
    shuffled = {
        tuple(setting_name(e.phase[n]) for n in e.phases) for arm, e in arms.items() if 'shuffled' in arm
    }
    assert len(shuffled) == 3
    assert {tuple(sorted(one)) for one in shuffled} == {tuple(sorted(PAPER_SETTINGS))}
    assert PAPER_SETTINGS not in shuffled
    detour = arms['detour.seed-0']
    assert [detour.phase[n].objective for n in detour.phases] == ['causal'] * 3 + ['']
    at_16 = [arms[f'{name}.seed-0'].phase for name in ('words_20', 'masked_16', 'replaced_16', 'kept_16')]
    shown = {round(p.rate * p.corruption[0], 6) for phases in at_16 for n, p in phases.items() if n[0] == '1'}
    assert shown == {0.16}
    for e in arms.values():
        assert tuple(setting_name(e.phase[name]) for name in e.evaluation.settings) == PAPER_SETTINGS


def test_versions_are_the_papers_and_no_curriculum_is_scored_at_each_end():
    both = {arm: e for arm, e in experiments('table7').items() if e.seed == 1}
    versions, without = both['easy_to_hard.seed-1'], both['tokens_15.seed-1']
    assert versions.finetune.models == versions.phases == tuple(PAPER_PHASES)
    assert without.finetune.models == without.phases
    assert len(without.phases) == 4
    settings = [
        (versions.phase[n].masking, versions.phase[n].rate, versions.phase[n].corruption)
        for n in PAPER_PHASES
    ]
    assert settings == [(p.masking, p.rate, p.corruption) for p in PAPER_PHASES.values()]


def keys(experiment, stages):
    return {stage: result_keys(experiment, STAGES[stage].sections) for stage in stages}


@pytest.mark.parametrize('seed', [0, 2])
def test_what_is_the_same_has_the_same_fingerprint(seed):
    """Corpus and the like in every ablation; all of it where arms of two ablations are one."""
    of_seed = {
        (argument, arm.partition('.')[0]): e
        for argument in ABLATIONS
        for arm, e in experiments(argument).items()
        if e.seed == seed and argument not in ('curves', 'content') and not arm.startswith('rivals')
    }
    plain = [e for (_, arm), e in of_seed.items() if arm != 'copy']
    for one, other in itertools.pairwise(plain):
        assert keys(one, ('corpus', 'vocab', 'contexts', 'rows')) == keys(
            other, ('corpus', 'vocab', 'contexts', 'rows')
        )
    masked = [e for (argument, _), e in of_seed.items() if argument in MASKED]
    for one, other in itertools.pairwise(masked):
        assert keys(one, ('surgery',)) == keys(other, ('surgery',))
    everything = ('surgery', 'pretrain', 'export', 'finetune', 'analyze')
    for argument, arm in (
        ('table5', 'easy_to_hard'),
        ('table7', 'easy_to_hard'),
        ('table7', 'tokens_15'),
        ('corruption', 'words_20'),
        ('corruption', 'masked_20'),
    ):
        assert keys(of_seed[argument, arm], everything) == keys(of_seed['orders', arm], everything)
    first = keys(of_seed['table2', 'contextualized'], everything)
    assert first == keys(of_seed['table3', 'tokens_15'], everything)
    rivals = [of_seed[f'table6{RIVALS}', 'easy_to_hard'], of_seed['orders', 'easy_to_hard']]
    assert keys(rivals[0], ('surgery', 'pretrain')) == keys(rivals[1], ('surgery', 'pretrain'))


def test_options_change_seeds_words_rates_and_snapshots():
    arms = experiments('table2,seeds=1,words=1000,batch=1,rates=3,snapshots=2')
    assert len(arms) == 3 * len(MODULE['INITIALISATIONS'])
    e = arms['averaged_input.rate-2.seed-0']
    assert words(e) == [1000]
    assert e.pretrain.learning_rate == e.phase['0.1'].learning_rate == pytest.approx(4e-3)
    assert (e.pretrain.batch_rows, e.pretrain.micro_batches) == (1, 1)
    assert e.finetune.models == ('initial', '0.1@50', '0.1')
    assert e.evaluation.snapshots_per_phase == 2


def test_rivals_are_any_folders_under_the_same_fine_tuning():
    arms = experiments(f'table6{RIVALS}')
    own, rivals = arms['easy_to_hard.seed-2'], arms['rivals.seed-2']
    assert rivals.stages == ('finetune',)
    assert rivals.finetune.models == ('A=/models/a', 'B=/models/b')
    assert len(own.finetune.settings) > 1
    changed = {
        k
        for k, v in keys(own, ('finetune',))['finetune'].items()
        if keys(rivals, ('finetune',))['finetune'][k] != v
    }
    assert changed == {'finetune.models'}
    assert 'rivals.seed-0' not in config.arms('ablations:table6')


def test_refit_differs_in_the_fit_alone():
    arms = {arm: e for arm, e in experiments(f'refit{OPTIONS["refit"]}').items() if e.seed == 0}
    fits = [(e.surgery.fit_steps, e.surgery.fit_only) for e in arms.values()]
    assert fits == [(0, ''), (150, ''), (150, '/lists/bad.txt')]
    plain = [dataclasses.replace(e, surgery=Experiment().surgery) for e in arms.values()]
    assert plain[0] == plain[1] == plain[2]
    assert plain[0].analysis.tokens == '/lists/bad.txt'
    assert config.arms('ablations:refit,seeds=1') == ('spelled.seed-0', 'fitted.seed-0')


@pytest.mark.parametrize(
    ('name', 'expected'),
    [
        ('ablations:table2,seeds=0', 'seeds=0: a whole number above 0 is needed'),
        ('ablations:table2,words=many', 'words=many: a number above 0 is needed'),
        ('ablations:orders,seed=3', "no option 'seed=3'; there are seeds, words, batch"),
        ('ablations:table2,A=/models/a', "no option 'A=/models/a'; there are seeds"),
        ('ablations:table6,seeds', 'seeds: a whole number above 0 is needed'),
        ('ablations:table2,seeds=3,seeds=5', 'seeds is given twice; once is needed'),
        ('practice:terms', 'terms: a value is needed, as in terms=VALUE'),
        ('objectives:nsp,seeds=0', 'seeds=0: a whole number above 0 is needed'),
        ('objectives:words', "no comparison 'words'; there are nsp, detour, distil"),
        ('objectives:nsp/elsewhere.seed-0', "no arm 'elsewhere.seed-0' in nsp; there are single.seed-0"),
    ],
)
def test_a_wrong_option_or_comparison_is_one_clear_line(name, expected):
    read = config.load if name.startswith('objectives') else config.arms
    with pytest.raises(ConfigError, match=expected) as error:
        read(name)
    assert '\n' not in str(error.value)


def of_objectives(argument):
    arms = config.arms(f'objectives:{argument}')
    return {arm: Experiment.from_config(config.load(f'objectives:{argument}/{arm}')) for arm in arms}


@pytest.mark.parametrize('comparison', ['nsp', 'detour', 'distil'])
def test_comparisons_of_objectives_differ_in_what_they_compare_alone(comparison, monkeypatch):
    monkeypatch.setenv('BIOPTIMUS_TEACHER', '/teacher')
    arms = of_objectives(f'{comparison},seeds=2,steps=330')
    assert len(arms) == 6
    control, *others = [e for arm, e in arms.items() if arm.endswith('.seed-1')]
    assert control.finetune.models[0] == 'source'
    assert control.seed == 1
    assert control.finetune.seeds == (1,)
    for e in others:
        stages = ('corpus', 'vocab', 'surgery', 'rows')
        ours, theirs = (keys(x, stages) for x in (e, control))
        changed = {k for stage in stages for k, v in ours[stage].items() if theirs[stage].get(k) != v}
        assert all(k.startswith('rows.') for k in changed) if comparison == 'nsp' else not changed
        assert e.finetune.models == e.phases[-1:]
        assert e.pretrain.learning_rate == control.pretrain.learning_rate


def test_a_detour_and_its_longer_control_take_the_same_flops():
    arms = {arm: make_plan(e, Assumptions()) for arm, e in of_objectives('detour,seeds=1').items()}
    flops = {arm: plan.flops for arm, plan in arms.items()}
    assert flops['detour.seed-0'] == pytest.approx(flops['masked_flops.seed-0'], rel=0.02)
    assert arms['detour.seed-0'].steps == arms['masked.seed-0'].steps == 440
