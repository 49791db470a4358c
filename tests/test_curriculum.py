"""The curriculum table: steps, settings, learning rates, and which changes may continue a run."""

from types import SimpleNamespace

import jax
import numpy as np
import pytest

from bioptimus_jax.errors import ConfigError
from bioptimus_jax.experiment import config
from bioptimus_jax.experiment.schema import Experiment
from bioptimus_jax.pretrain import curriculum, deadline
from bioptimus_jax.pretrain.config import Phase, Pretrain
from bioptimus_jax.pretrain.curriculum import ScheduledPhase
from bioptimus_jax.pretrain.objectives.mlm import MaskedLM
from bioptimus_jax.pretrain.plan import Assumptions, make_plan
from bioptimus_jax.pretrain.shape import RowCounts
from bioptimus_jax.pretrain.units import number_of
from bioptimus_jax.records.curriculum import PlacedPhase
from bioptimus_jax.report.sections.training import asked_rates
from bioptimus_jax.rows.config import Rows


def experiment(durations=(10, 20, 30, 40), **changes):
    c = config.defaults()
    c.pretrain.batch_rows = 10
    c.pretrain.warmup_fraction = 0.1
    for name, duration in zip(c.phases, durations, strict=True):
        c.phase[name].duration, c.phase[name].duration_unit = float(duration), 'steps'
    for dotted, text in changes.items():
        config.override(c, dotted.replace('__', '.'), text)
    return Experiment.from_config(c)


COUNTS = RowCounts(rows=100, tokens=5000, words=4000)


def test_the_papers_table():
    e = experiment()
    table = curriculum.table(curriculum.make_schedule(e, COUNTS), e)
    wanted = {
        0: (False, 0.15, 0.8),
        10: (True, 0.15, 0.8),
        30: (True, 0.2, 0.8),
        60: (True, 0.2, 1.0),
        99: (True, 0.2, 1.0),
    }
    for step, (words, rate, p_mask) in wanted.items():
        s = curriculum.setting_at(table, step)
        assert (s.strategy == number_of('words'), float(s.rate), float(s.p_mask)) == (
            words,
            pytest.approx(rate),
            pytest.approx(p_mask),
        )


def test_the_learning_rate_ends_at_the_share_asked_for():
    e = experiment(pretrain__learning_rate='1.0', pretrain__end_fraction='0.2')
    table = curriculum.table(curriculum.make_schedule(e, COUNTS), e)
    ends = [float(curriculum.learning_rate_at(table, step)) for step in (10, 55, 100)]
    assert ends == pytest.approx([1.0, 0.6, 0.2])  # the peak after ten steps, half of the way, the end


@pytest.mark.parametrize(
    ('unit', 'duration', 'steps'),
    [('steps', 7, 7), ('epochs', 2, 20), ('tokens', 2500, 5), ('words', 1000, 2)],
)
def test_units(unit, duration, steps):
    phase = Phase(duration=float(duration), duration_unit=unit)
    e = SimpleNamespace(phase={'p': phase}, pretrain=Pretrain(batch_rows=10), rows=Rows())
    assert curriculum.phase_steps(e, 'p', COUNTS) == steps  # 100 rows at 10 a batch: 10 steps an epoch


def test_a_head_has_at_most_half_of_the_steps_to_itself():
    e = experiment((1, 2, 2, 3), pretrain__head_steps='4')
    assert curriculum.make_schedule(e, COUNTS)[-1].stop == 8
    e = experiment((1, 2, 2, 2), pretrain__head_steps='4')
    with pytest.raises(
        ConfigError, match=r'config\.pretrain\.head_steps: 4 of 7 steps; the encoder would never'
    ):
        curriculum.make_schedule(e, COUNTS)


def test_learning_rate_rises_falls_and_is_continuous_at_the_peak():
    e = experiment(pretrain__learning_rate='1.0')
    table = curriculum.table(curriculum.make_schedule(e, COUNTS), e)
    rates = np.array([float(curriculum.learning_rate_at(table, s)) for s in range(100)])
    assert rates[:10] == pytest.approx(np.arange(1, 11) / 10)
    assert rates[10] == pytest.approx(1.0)
    assert rates[10:] == pytest.approx(1 - np.arange(90) / 90, abs=1e-6)


def test_a_restarted_phase_warms_up_to_its_own_peak():
    e = experiment(
        **{
            'phase__0__3__schedule': 'restart',
            'phase__0__3__learning_rate': '0.5',
            'pretrain__learning_rate': '1.0',
        }
    )
    table = curriculum.table(curriculum.make_schedule(e, COUNTS), e)
    rate = lambda s: float(curriculum.learning_rate_at(table, s))  # noqa: E731
    assert rate(29) == pytest.approx(1 / 27, rel=1e-5)  # the first path covers 30 steps, 3 of warm-up
    assert rate(30) == pytest.approx(0.5 / 7)
    assert rate(37) == pytest.approx(0.5)


def test_a_stable_phase_and_one_that_falls_by_the_root():
    """Phases as ModernBERTs are adapted: no warm-up, then 1 - sqrt of the share of steps done, down to the end asked
    for."""
    falls = {'phase__0__1__fall': 'constant', 'phase__0__2__fall': 'sqrt', 'phase__0__2__schedule': 'restart'}
    others = {f'phase__0__{n}__schedule': 'restart' for n in (3, 4)}
    e = experiment(
        **falls,
        **others,
        pretrain__learning_rate='1.0',
        pretrain__warmup_fraction='0',
        pretrain__end_fraction='0.1',
    )
    schedule = curriculum.make_schedule(e, COUNTS)
    table = curriculum.table(schedule, e)
    stable, falling = (np.arange(s.start, s.stop) for s in schedule[:2])
    rate = lambda steps: np.array([curriculum.learning_rate_at(table, s) for s in steps])  # noqa: E731
    assert rate(stable) == pytest.approx(1.0)
    wanted = 1 - 0.9 * np.sqrt(np.arange(len(falling)) / len(falling))
    assert rate(falling) == pytest.approx(wanted, rel=1e-5)
    assert rate([schedule[2].start + 15]) == pytest.approx(
        1 - 0.9 * 15 / (schedule[2].stop - schedule[2].start)
    )


OWN_RATES = {'phase__0__1__warmup_fraction': '0.5', 'phase__0__2__schedule': 'restart'}


def test_an_order_that_is_computed_may_put_any_phase_behind_any_other():
    """A phase that goes on with the learning rate of another may have no path of its own, whichever comes first."""
    assert experiment(**OWN_RATES)


def test_warm_up_stable_decay_as_it_is_published():
    """Ettin: up to 8e-4, there, 1-sqrt to half of it, 1-sqrt from there to 0.04 of it; each number by hand."""
    keys = {
        '1': {'fall': 'constant', 'warmup_fraction': '0.2'},
        '2': {'fall': 'sqrt', 'schedule': 'restart', 'end_fraction': '0.5'},
        '3': {'fall': 'sqrt', 'schedule': 'restart', 'learning_rate': '4e-4', 'end_fraction': '0.04'},
        '4': {'fall': 'cosine', 'schedule': 'restart', 'learning_rate': '1.0', 'end_fraction': '0.2'},
    }
    changes = {f'phase__0__{n}__{name}': value for n, of in keys.items() for name, value in of.items()}
    e = experiment(**changes, pretrain__learning_rate='8e-4', pretrain__warmup_fraction='0')
    table = curriculum.table(curriculum.make_schedule(e, COUNTS), e)
    rate = lambda *steps: [float(curriculum.learning_rate_at(table, s)) for s in steps]  # noqa: E731
    assert rate(0, 1, 2, 9) == pytest.approx([4e-4, 8e-4, 8e-4, 8e-4])  # steps 0-9, two of warm-up
    assert rate(10, 15, 29) == pytest.approx([8e-4, 6e-4, 8e-4 * (1 - 0.5 * 0.95**0.5)])  # of 20 steps
    assert rate(30, 45) == pytest.approx([4e-4, 4e-4 * (1 - 0.96 * 0.5**0.5)])  # of 30
    cosine = [1, 1 - 0.8 * (1 - 0.5**0.5) / 2, 0.6, 0.2 + 0.8 * (1 - 0.5**0.5) / 2]
    assert rate(60, 70, 80, 90) == pytest.approx(cosine)  # of 40: a quarter, a half, three quarters


def test_the_detour_has_the_published_schedule(monkeypatch):
    """50 and 5 billion pieces in batches of 3.1 million, at 2e-4, the last phase by 1-sqrt to a tenth."""
    monkeypatch.setenv('BIOPTIMUS_DATA', '/data')
    monkeypatch.setenv('BIOPTIMUS_SOURCE', '/source')
    e = Experiment.from_config(config.load('detour'), paths=False)
    causal, decay = schedule = curriculum.make_schedule(e, COUNTS)
    assert [e.objective_in(s.name) for s in schedule] == ['causal', 'mlm']
    assert (causal.stop, decay.stop) == (15895, 15895 + 1589)
    assert e.pretrain.batch_rows * e.rows.row_pieces * causal.stop == pytest.approx(50e9, rel=1e-3)
    table = curriculum.table(schedule, e)
    rate = lambda step: float(curriculum.learning_rate_at(table, step))  # noqa: E731
    assert [rate(s) for s in (0, 317, 318, 15894, 15895)] == pytest.approx([2e-4 / 318, *[2e-4] * 4])
    assert rate(15895 + 397) == pytest.approx(2e-4 * (1 - 0.9 * (397 / 1589) ** 0.5), rel=1e-4)
    assert rate(15895 + 1588) == pytest.approx(2e-5, rel=3e-3)
    assert float(curriculum.setting_at(table, 16000).rate) == pytest.approx(0.15)
    of_causal, of_decay = (p.flops_per_piece for p in make_plan(e, Assumptions(words=4e9)).phases)
    assert 1.05 < of_causal / of_decay < 1.15  # all pieces through the head, half of the pairs
    control = Experiment.from_config(config.load('detour:masked'), paths=False)
    assert control.trained_objectives == ('mlm',)
    small = Experiment.from_config(config.load('small:detour'), paths=False)
    assert small.trained_objectives == ('causal', 'mlm')


def test_a_masking_rate_moves_within_its_phase():
    """The ramp from 5 to 25 % in fifths, a straight line from 30 to 5, and a rate that stays."""
    moving = {'1': ('0.05', '0.25', '5'), '2': ('0.3', '0.05', '0')}
    names = ('rate', 'rate_end', 'rate_parts')
    changes = {f'phase__0__{n}__{k}': v for n, of in moving.items() for k, v in zip(names, of)}
    e = experiment(**changes)
    table = curriculum.table(curriculum.make_schedule(e, COUNTS), e)
    rates = [float(curriculum.setting_at(table, step).rate) for step in range(40)]
    assert rates[:10] == pytest.approx(np.repeat([0.05, 0.1, 0.15, 0.2, 0.25], 2))
    assert rates[10:30] == pytest.approx(np.linspace(0.3, 0.05, 20))
    assert rates[30:] == [np.float32(0.2)] * 10
    assert MaskedLM.share(e.phase['0.1']) == pytest.approx(0.15)
    assert MaskedLM.places(e) == MaskedLM.places(experiment(phase__0__2__rate='0.3'))


def test_the_rate_that_is_drawn_is_that_of_the_steps_also_where_the_phase_ended_early():
    changes = {'phase__0__1__rate_end': '0.4', 'phase__0__2__rate_end': '0.3', 'phase__0__2__rate_parts': '2'}
    e = self_paced(**changes)
    planned = curriculum.make_schedule(e, COUNTS)
    moved = curriculum.after_evaluation(planned, 20, {10: 5.0, 20: 5.0}, e)
    assert moved[0].stop == 20 < moved[0].planned_stop
    table = curriculum.table(moved, e)
    record = [PlacedPhase('0.1', 0, 20, ended=True, planned_stop=40), PlacedPhase('0.2', 20, 60)]
    m = SimpleNamespace(run=SimpleNamespace(config=e), curriculum=record)
    for name, first, last in (('0.1', 1, 20), ('0.2', 21, 60)):
        drawn = asked_rates(m, name, first, last)
        assert [step for step, _ in drawn] == list(range(first, last + 1))
        rates = [float(curriculum.setting_at(table, step - 1).rate) for step, _ in drawn]
        assert [rate for _, rate in drawn] == pytest.approx(rates, abs=1e-6)


def test_only_phases_that_are_not_over_can_change():
    old = [PlacedPhase('0.1', 0, 10), PlacedPhase('0.2', 10, 20)]
    longer = (ScheduledPhase('0.1', Phase(), 0, 10), ScheduledPhase('0.2', Phase(), 10, 35))
    changed = (ScheduledPhase('0.1', Phase(), 0, 12), ScheduledPhase('0.2', Phase(), 12, 22))
    curriculum.check_continues(old, longer, 15)
    curriculum.check_continues(old, longer, 20)
    # What has trained would be left out, or be kept under another phase's name.
    without, renamed = longer[:1], (longer[0], ScheduledPhase('0.4', Phase(), 10, 35))
    refused = [(changed, 15, r'phase\.0\.1\.duration')]
    for step in (15, 20):
        said = rf'phases: .* phase 0\.2 took steps 10-{step}; keep it'
        refused += [(without, step, said), (renamed, step, said)]
    for schedule, step, said in refused:
        with pytest.raises(ConfigError, match=said):
            curriculum.check_continues(old, schedule, step)
    curriculum.check_continues(old, renamed, 10)
    curriculum.check_continues(old, without, 10)


def test_any_other_table_a_ramp_from_5_to_25_percent():
    c = config.defaults()
    c.phases = tuple(f'ramp.{n}' for n in range(1, 6))
    for number, name in enumerate(c.phases, 1):
        c.phase[name] = config.phase(masking='words', rate=0.05 * number, duration=4.0, duration_unit='steps')
    e = Experiment.from_config(c)
    table = curriculum.table(curriculum.make_schedule(e, COUNTS), e)
    rates = [float(curriculum.setting_at(table, step).rate) for step in range(0, 20, 4)]
    assert rates == pytest.approx([0.05, 0.1, 0.15, 0.2, 0.25])


@pytest.mark.parametrize(
    ('order', 'wanted'),
    [
        ('given', ('0.1', '0.2', '0.3', '0.4')),
        ('self_paced', ('0.1', '0.2', '0.3', '0.4')),
        ('easy_to_hard', ('0.3', '0.1', '0.2', '0.4')),  # 0.1 and 0.2 are equally hard: as given
        ('hard_to_easy', ('0.4', '0.1', '0.2', '0.3')),
    ],
)
def test_orders_by_a_hand_made_difficulty(order, wanted):
    e = experiment(curriculum__order=order)
    assert curriculum.ordered(e, {'0.1': 7.0, '0.2': 7.0, '0.3': 3.0, '0.4': 9.5}) == wanted


def test_shuffling_is_a_permutation_that_the_seed_decides():
    orders = {curriculum.ordered(experiment(curriculum__order='shuffled', seed=str(s)), {}) for s in range(9)}
    again = {curriculum.ordered(experiment(curriculum__order='shuffled', seed=str(s)), {}) for s in range(9)}
    assert orders == again
    assert len(orders) > 4
    assert all(sorted(order) == ['0.1', '0.2', '0.3', '0.4'] for order in orders)


def test_phases_keep_their_duration_and_setting_in_another_order():
    e = experiment()
    schedule = curriculum.make_schedule(e, COUNTS, ('0.4', '0.2', '0.1', '0.3'))
    assert [(s.name, s.start, s.stop) for s in schedule] == [
        ('0.4', 0, 40),
        ('0.2', 40, 60),
        ('0.1', 60, 70),
        ('0.3', 70, 100),
    ]
    assert all(s.phase == e.phase[s.name] for s in schedule)


def test_a_run_keeps_the_order_that_it_began_with_and_new_phases_come_last():
    e = experiment()
    assert curriculum.recorded_order(e, []) == ()
    record = [PlacedPhase(n, 0, 1) for n in ('0.3', '0.1', 'gone')]
    assert curriculum.recorded_order(e, record) == ('0.3', '0.1', '0.2', '0.4')


@pytest.mark.parametrize(
    ('losses', 'patience', 'least', 'flat'),
    [
        ([], 2, 0.01, False),
        ([5.0, 5.0], 2, 0.01, False),  # nothing before the last two
        ([5.0, 4.96, 4.96], 2, 0.01, True),  # 0.8 % in two evaluations
        ([5.0, 4.95, 4.96], 2, 0.01, False),  # exactly 1 %: enough, though one step up followed
        ([5.0, 4.0, 4.1, 4.2], 2, 0.0, True),  # worse than the best before
        ([5.0, 4.0, 4.0], 1, 0.0, False),  # no worse
        ([5.0, 4.0, 3.99], 1, 0.01, True),
    ],
)
def test_a_loss_is_flat_when_its_last_values_bring_too_little(losses, patience, least, flat):
    assert curriculum.flattened(losses, patience, least) is flat


def self_paced(**changes):
    return experiment(
        (40, 40, 40, 40),
        curriculum__order='self_paced',
        curriculum__patience='1',
        curriculum__min_improvement='0.1',
        **changes,
    )


def test_a_flat_phase_ends_early_and_the_last_one_takes_what_remains():
    e = self_paced()
    planned = curriculum.make_schedule(e, COUNTS)
    assert curriculum.evaluation_steps(planned, 4) == set(range(10, 161, 10))
    losses = {0: 9.0, 10: 5.0, 20: 4.0, 30: 3.9}
    assert curriculum.after_evaluation(planned, 10, losses, e) == planned  # step 0 is not of this phase
    assert curriculum.after_evaluation(planned, 20, losses, e) == planned
    moved = curriculum.after_evaluation(planned, 30, losses, e)
    assert [(s.name, s.start, s.stop, s.ended) for s in moved] == [
        ('0.1', 0, 30, True),
        ('0.2', 30, 70, False),
        ('0.3', 70, 110, False),
        ('0.4', 110, 160, False),
    ]
    assert {30, 40, 70, 110, 122, 160} <= curriculum.evaluation_steps(moved, 4)
    # Losses before the phase do not count, and the next phase ends at its bound.
    losses |= {40: 3.89, 50: 3.4, 60: 3.0, 70: 2.6}
    for done in (40, 50, 60):
        assert curriculum.after_evaluation(moved, done, losses, e) == moved
    over = curriculum.after_evaluation(moved, 70, losses, e)
    assert [(s.stop, s.ended) for s in over] == [(30, True), (70, True), (110, False), (160, False)]
    # The last one is never cut, and nothing moves where self-pacing was not asked for.
    flat = {122: 1.0, 135: 1.0, 148: 1.0}
    at_last = curriculum.make_schedule(e, COUNTS, record=[PlacedPhase('0.3', 80, 110, ended=True)])
    assert curriculum.after_evaluation(at_last, 148, flat, e) == at_last
    assert curriculum.after_evaluation(planned, 30, losses, experiment((40, 40, 40, 40))) == planned


def test_the_record_places_the_phases_as_they_were_decided(tmp_path):
    e = self_paced()
    moved = curriculum.after_evaluation(curriculum.make_schedule(e, COUNTS), 20, {10: 5.0, 20: 5.0}, e)
    curriculum.write_record(tmp_path, moved)
    record = curriculum.read_phases(tmp_path)
    assert record[0] == PlacedPhase('0.1', 0, 20, ended=True, planned_stop=40)
    assert record[1] == PlacedPhase('0.2', 20, 60)
    assert record[-1] == PlacedPhase('0.4', 100, 160, taken=20)
    assert curriculum.make_schedule(e, COUNTS, record=record) == moved
    longer = self_paced(**{'phase__0__4__duration': '50'})
    assert curriculum.make_schedule(longer, COUNTS, record=record)[-1].stop == 170
    # What the last one took stays its own where phases come behind it, in turn.
    e = self_paced(phases='0.1,0.2,0.3,0.4')
    first, *more = [
        PlacedPhase('0.1', 0, 20, ended=True),
        PlacedPhase('0.2', 20, 80, taken=20),
        PlacedPhase('0.3', 80, 120),
    ]
    for record, done in (([first, more[0]], 80), ([first, *more], 120), ([first, *more], 100)):
        added = curriculum.make_schedule(e, COUNTS, record=record, over=[r.name for r in record])
        assert [(s.start, s.stop) for s in added] == [(0, 20), (20, 80), (80, 120), (120, 160)]
        assert [s.taken for s in added] == [0, 20, 0, 0]
        curriculum.check_continues(record, added, done)
    shorter = self_paced(**{'phase__0__2__duration': '30'})
    with pytest.raises(ConfigError, match=r'phase\.0\.2\.duration'):
        curriculum.check_continues(record, curriculum.make_schedule(shorter, COUNTS, record=record), 120)
    # A phase that never was the last one has its own steps, also where it is made as much shorter as another gave up.
    record, halved = curriculum.read_phases(tmp_path), self_paced(**{'phase__0__2__duration': '20'})
    placed = curriculum.make_schedule(halved, COUNTS, record=record)
    assert [(s.start, s.stop) for s in placed] == [(0, 20), (20, 40), (40, 80), (80, 140)]
    assert curriculum.read_phases(tmp_path / 'nowhere') == []


def test_phases_that_lose_steps_lose_the_same_share_of_what_is_left(tmp_path):
    e = experiment((10, 20, 30, 40), runtime__train_hours='1')
    planned = curriculum.make_schedule(e, COUNTS)
    shorter = curriculum.without(planned, 20, 40)
    assert [(s.start, s.stop, s.reduced) for s in shorter] == [
        (0, 10, False),
        (10, 25, True),  # 10 steps were left of it, as of the others half is
        (25, 40, True),
        (40, 60, True),
    ]
    curriculum.write_record(tmp_path, shorter)
    record = curriculum.read_phases(tmp_path)
    assert curriculum.make_schedule(e, COUNTS, record=record) == shorter
    # Without a limit phases that are not over have all their steps again; with another duration they always have.
    unlimited = curriculum.make_schedule(
        experiment((10, 20, 30, 40)), COUNTS, (), record, ('0.1', '0.2@50', '0.2')
    )
    assert [(s.start, s.stop) for s in unlimited] == [(0, 10), (10, 25), (25, 55), (55, 95)]
    longer = experiment((10, 20, 30, 80), runtime__train_hours='1')
    assert [s.stop for s in curriculum.make_schedule(longer, COUNTS, (), record)] == [10, 25, 40, 120]
    # A snapshot whose place is behind the step that was done is taken there; one that there is stays.
    kept = curriculum.kept_steps(shorter, 4, {'0.2@25': 15}, 20)
    assert [kept[f'0.2@{share}'] for share in (25, 50, 75)] == [15, 20, 21]
    none = curriculum.without(planned, 30, 70)  # a step of each stays
    assert [(s.start, s.stop) for s in none] == [(0, 10), (10, 30), (30, 31), (31, 32)]
    rate = [float(curriculum.learning_rate_at(curriculum.table(shorter, e), step)) for step in (20, 59)]
    assert 0 < rate[1] < rate[0] / 10  # it falls to the end that there is now


def test_steps_that_do_not_fit_by_a_time_are_counted(monkeypatch):
    monkeypatch.setattr(deadline.time, 'time', lambda: 1000.0)
    spans = {'training': 15.0, 'input': 3.0, 'checkpoint': 2.0, 'evaluation': 4.0, 'compile': 99.0}

    def fitting(left, until, taken=10):
        return deadline.steps_in_time(
            left, taken, spans, (2, 3), until
        )  # 2 s a step, 6 s for three evaluations

    assert fitting(100, 1206.0) == 100
    assert fitting(100, 1202.0) == 100  # 98 steps: within what is tolerated
    assert fitting(100, 1106.0) == 50
    assert fitting(100, 1000.0) == 1
    assert fitting(100, 1000.0, taken=7) == 100  # too few to tell


def test_moved_phases_leave_the_learning_rate_and_the_shapes_of_the_table_alone():
    e = self_paced()
    planned = curriculum.make_schedule(e, COUNTS)
    moved = curriculum.after_evaluation(planned, 20, {10: 5.0, 20: 5.0}, e)
    before, after = curriculum.table(planned, e), curriculum.table(moved, e)
    shapes, shapes_after = (jax.tree.map(lambda v: (v.shape, v.dtype), table) for table in (before, after))
    assert shapes == shapes_after
    for step in (0, 19, 20, 90, 159):
        rate = [float(curriculum.learning_rate_at(t, step)) for t in (before, after)]
        assert rate[0] == rate[1]
    assert [int(curriculum.setting_at(t, 20).strategy) for t in (before, after)] == [
        number_of(masking) for masking in ('tokens', 'words')
    ]


def test_snapshots_are_named_by_the_share_of_the_plan():
    e = self_paced()
    planned = curriculum.make_schedule(e, COUNTS)
    assert curriculum.kept_steps(planned, 1, {}) == {'0.1': 40, '0.2': 80, '0.3': 120, '0.4': 160}
    kept = curriculum.kept_steps(planned, 4, {})
    assert list(kept.items())[:5] == [
        ('0.1@25', 10),
        ('0.1@50', 20),
        ('0.1@75', 30),
        ('0.1', 40),
        ('0.2@25', 50),
    ]
    moved = curriculum.after_evaluation(planned, 20, {10: 5.0, 20: 5.0}, e)
    kept = curriculum.kept_steps(moved, 4, {})
    assert [n for n in kept if n.startswith('0.1')] == ['0.1@25', '0.1@50', '0.1']  # it never got to 75 %
    assert (kept['0.1@50'], kept['0.1'], kept['0.2@25']) == (20, 20, 30)
    longer = curriculum.make_schedule(experiment((10, 20, 30, 80)), COUNTS)
    kept = curriculum.kept_steps(longer, 2, {'0.4@50': 80, '0.4': 100})
    assert (kept['0.4@50'], kept['0.4']) == (80, 140)  # taken before the phase was made longer


@pytest.mark.parametrize(
    ('changes', 'message'),
    [
        (
            {'phase__0__1__fall': 'sqrt'},
            r"phase\.0\.2\.fall: 'linear', but its learning rate continues that of 0\.1, which falls 's",
        ),
        (
            {'phase__0__2__warmup_fraction': '0'},
            r'phase\.0\.2\.warmup_fraction: 0\.0, but its .*continues that of 0\.1',
        ),
        (
            {**OWN_RATES, 'curriculum__order': 'hard_to_easy'},
            r'0\.1\.warmup_fraction: 0\.5, but its learning rate continues that of 0\.2',
        ),
        ({'phase__0__3__rate_parts': '5'}, r'config\.phase\.0\.3\.rate_parts'),
        ({'phase__0__3__rate_end': '0.001'}, r'config\.phase\.0\.3\.rate_end'),
        (
            {'curriculum__order': 'self_paced', 'curriculum__patience': '1', 'runtime__train_hours': '1'},
            r'train_hours: the last of self-paced phases',
        ),
        (
            {'evaluation__settings': '0.9,'},
            r"config\.evaluation\.settings: '0\.9' has no config\.phase entry",
        ),
        ({'curriculum__order': 'random'}, r'config\.curriculum\.order: \'random\' is not one of given, easy'),
        ({'curriculum__order': 'self_paced', 'evaluation__per_phase': '3'}, r'per_phase: 3 .* at least 4'),
        ({'evaluation__entities': 'a,b,a'}, r'evaluation\.entities: different ones are needed, got a, b, a'),
        (
            {'curriculum__pace': 'entities'},
            r"pace: 'entities', but config\.evaluation\.entities names no set",
        ),
    ],
)
def test_curricula_that_cannot_be_are_refused(changes, message):
    with pytest.raises(ConfigError, match=message):
        experiment(**changes)


def test_phase_names_leave_the_sign_of_snapshots_free():
    c = config.defaults()
    c.phases, c.phase['a@b'] = ('a@b',), config.phase()
    with pytest.raises(ConfigError, match=r"config\.phase: 'a@b'"):
        Experiment.from_config(c)
