"""The curriculum table: steps, settings, learning rates, and which changes may continue a run."""

import numpy as np
import pytest

from bioptimus_jax import config
from bioptimus_jax.pretrain import curriculum
from bioptimus_jax.pretrain.curriculum import RowCounts, Stretch


def experiment(durations=(10, 20, 30, 40), **changes):
    c = config.defaults()
    c.pretrain.batch_rows = 10
    c.pretrain.warmup_fraction = 0.1
    for name, duration in zip(c.phases, durations, strict=True):
        c.phase[name].duration, c.phase[name].duration_unit = float(duration), 'steps'
    for dotted, text in changes.items():
        config.override(c, dotted.replace('__', '.'), text)
    return config.Experiment.from_config(c)


COUNTS = RowCounts(rows=100, tokens=5000, words=4000)


def test_the_papers_table():
    e = experiment()
    table = curriculum.table(curriculum.stretches(e, COUNTS), e)
    wanted = {
        0: (False, 0.15, 0.8),
        10: (True, 0.15, 0.8),
        30: (True, 0.2, 0.8),
        60: (True, 0.2, 1.0),
        99: (True, 0.2, 1.0),
    }
    for step, (words, rate, p_mask) in wanted.items():
        s = curriculum.setting_at(table, step)
        assert (bool(s.whole_words), float(s.rate), float(s.p_mask)) == (
            words,
            pytest.approx(rate),
            pytest.approx(p_mask),
        )


@pytest.mark.parametrize(
    ('unit', 'duration', 'steps'),
    [('steps', 7, 7), ('epochs', 2, 20), ('tokens', 2500, 5), ('words', 1000, 2)],
)
def test_units(unit, duration, steps):
    phase = config.Phase(duration=float(duration), duration_unit=unit)
    assert curriculum.phase_steps(phase, COUNTS, 10) == steps  # 100 rows at 10 a batch: 10 steps an epoch


def test_learning_rate_rises_falls_and_is_continuous_at_the_peak():
    e = experiment(pretrain__learning_rate='1.0')
    table = curriculum.table(curriculum.stretches(e, COUNTS), e)
    rates = np.array([float(curriculum.learning_rate_at(table, s, 0.0)) for s in range(100)])
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
    table = curriculum.table(curriculum.stretches(e, COUNTS), e)
    rate = lambda s: float(curriculum.learning_rate_at(table, s, 0.0))  # noqa: E731
    assert rate(29) == pytest.approx(1 / 27, rel=1e-5)  # the first path covers 30 steps, 3 of warm-up
    assert rate(30) == pytest.approx(0.5 / 7)
    assert rate(37) == pytest.approx(0.5)


def test_only_phases_that_are_not_over_can_change():
    old = [{'name': '0.1', 'start': 0, 'stop': 10}, {'name': '0.2', 'start': 10, 'stop': 20}]
    longer = (Stretch('0.1', config.Phase(), 0, 10), Stretch('0.2', config.Phase(), 10, 35))
    changed = (Stretch('0.1', config.Phase(), 0, 12), Stretch('0.2', config.Phase(), 12, 22))
    curriculum.check_continues(old, longer, 15)
    curriculum.check_continues(old, longer, 20)
    with pytest.raises(config.ConfigError, match=r'phase\.0\.1\.duration'):
        curriculum.check_continues(old, changed, 15)


def test_any_other_table_a_ramp_from_5_to_25_percent():
    c = config.defaults()
    c.phases = tuple(f'ramp.{n}' for n in range(1, 6))
    for number, name in enumerate(c.phases, 1):
        c.phase[name] = config.phase(masking='words', rate=0.05 * number, duration=4.0, duration_unit='steps')
    e = config.Experiment.from_config(c)
    table = curriculum.table(curriculum.stretches(e, COUNTS), e)
    rates = [float(curriculum.setting_at(table, step).rate) for step in range(0, 20, 4)]
    assert rates == pytest.approx([0.05, 0.1, 0.15, 0.2, 0.25])
