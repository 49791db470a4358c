"""How runs will end: the regression by hand, curves of a known law, real runs that were paused."""

import copy
import dataclasses
import math
from pathlib import Path

import numpy as np
import pytest
import scipy.stats
from toy_commands import call, document
from toy_pretraining import copy_of, equal_programs, experiment, prepare, pretrained

from bioptimus_jax.cli import main as cli
from bioptimus_jax.errors import InputError
from bioptimus_jax.lab.forecast import check as check_module
from bioptimus_jax.lab.forecast import curves as curves_module
from bioptimus_jax.lab.forecast import final, tables
from bioptimus_jax.lab.forecast.check import (
    FORECAST,
    GROUP,
    OF_SHORTS,
    ORDER,
    ORDER_OF_SHORTS,
    OWN,
    as_one_group,
    check,
    check_shorts,
)
from bioptimus_jax.lab.forecast.curves import Curve, curve_of, late
from bioptimus_jax.lab.forecast.final import FEWEST, Forecast, chances, extrapolated, forecast
from bioptimus_jax.lab.forecast.short import Shorts
from bioptimus_jax.pretrain.config import Phase
from bioptimus_jax.pretrain.curriculum import ScheduledPhase
from bioptimus_jax.records.curriculum import PlacedPhase
from bioptimus_jax.report.records import named, records_of
from bioptimus_jax.report.resolved import read_runs
from bioptimus_jax.run.folder import Run
from bioptimus_jax.storage.files import write_jsonl

STEPS = 400
GROUPS = 20
"""Groups of runs that a check holds out where a fifth of the program's will do."""


@pytest.fixture
def few_groups(monkeypatch):
    monkeypatch.setattr(check_module, 'GROUPS', GROUPS)


def rates(peak, steps=STEPS):
    """A rise over 6 % of the steps, and a fall to 0."""
    at = np.arange(1, steps + 1)
    return peak * np.minimum(at / (0.06 * steps), (steps - at + 1) / (0.94 * steps))


def lawful(name, peak, gain=1.0, steps=STEPS, every=5):
    """A run with a loss that follows a power of the area under the learning rate, and falls as the rate falls."""
    rates_T = rates(peak, steps)
    area_T = np.cumsum(rates_T)
    fallen_T = np.maximum(rates_T.max() - rates_T, 0) * (np.arange(steps) > rates_T.argmax())
    losses_T = 3 + 2 * (1 + gain * area_T) ** -0.5 + 60 * peak - 60 * fallen_T
    steps_N = np.unique([*range(every, steps + 1, every), steps])
    return Curve(name, steps_N, losses_T[steps_N - 1], rates_T, {'one': 1.0})


def family(peaks=(0.0005, 0.001, 0.002, 0.004), gains=(1.0, 2.0, 3.0)):
    return [lawful(f'g{gain:g}.rate-{peak:g}', peak, gain) for gain in gains for peak in peaks]


def test_losses_between_evaluations_are_on_a_line_over_the_logarithm_of_the_step():
    curve = Curve('a', np.array([10, 40, 100]), np.array([5.0, 4.0, 3.0]), np.ones(100), {})
    assert curve.finished
    assert curve.at(0.2) == pytest.approx(4.5)
    assert curve.at(0.05) == 5
    assert curve.cut(0.5).share == 0.4
    assert not curve.cut(0.5).finished


def test_a_forecast_is_that_of_the_formulas_of_a_gaussian_process():
    """Rasmussen and Williams 2006, equations 2.25, 2.26 and 4.17, with the size, reach and noise that were fitted."""
    rng = np.random.default_rng(0)
    runs = [ending(f'{n}', {'masked': x}, 2 * x + rng.normal(0, 0.02)) for n, x in enumerate(rng.random(12))]
    finished, another_seed = runs[:11], dataclasses.replace(runs[11], settings=runs[10].settings)
    curve = another_seed.cut(0.3)
    told = forecast(curve, finished)
    size, reach_, noise = np.exp(final._regression(tuple(finished), curve.share).process.kernel_.theta)
    # All of them have one loss at that step, and one rate: the setting is the only feature.
    seen = np.array([run.at(0.3) for run in finished])
    assert np.ptp(seen) == 0
    root = np.sqrt([run.settings['masked'] for run in finished])
    x, own = ((r - root.mean()) / root.std() for r in (root, curve.settings['masked'] ** 0.5))
    gains = np.array([run.final for run in finished]) - seen

    def kernel(a, b):
        far = np.sqrt(5) * np.abs(a - b) / reach_
        return size * ((1 + far + far**2 / 3) * np.exp(-far) + a * b)

    known = kernel(x[:, None], x[None]) + noise * np.eye(11)
    weights = np.linalg.solve(known, kernel(x, own))
    mean = gains.mean() + weights @ (gains - gains.mean())
    deviation = gains.std() * np.sqrt(kernel(own, own) + noise - weights @ kernel(x, own))
    assert told.final == pytest.approx(curve.losses_N[-1] + mean, rel=1e-9)
    assert told.half == pytest.approx(scipy.stats.t.ppf(0.975, 10) * deviation, rel=1e-6)
    # Of another arm, in the middle of these: no less than where each of them is told from the others.
    middle = ending('middle', {'masked': (root.mean()) ** 2}, 0)
    centred = gains - gains.mean()
    rest = [np.delete(np.arange(11), n) for n in range(11)]
    left = [
        centred[n] - known[n, r] @ np.linalg.solve(known[np.ix_(r, r)], centred[r])
        for n, r in enumerate(rest)
    ]
    error = np.sqrt(np.square(left).mean())
    told = forecast(middle.cut(0.3), finished)
    assert told.half == pytest.approx(scipy.stats.t.ppf(0.975, 10) * error, rel=1e-6)


@pytest.mark.parametrize('groups', [range(9), [0, 0, 1, 1, 1, 2, 3, 4, 4]])
def test_errors_are_those_of_processes_that_do_not_know_the_group(groups):
    rng, groups = np.random.default_rng(0), np.array(groups)
    known, values = rng.normal(size=(9, 4)), rng.normal(size=9)
    covariance = known @ known.T + 0.1 * np.eye(9)
    left = final.left_out(covariance, values, groups)
    for group in range(groups.max() + 1):
        held, rest = groups == group, groups != group
        told = covariance[np.ix_(held, rest)] @ np.linalg.solve(covariance[np.ix_(rest, rest)], values[rest])
        assert left[held] == pytest.approx(values[held] - told)


def test_ends_are_told_where_the_order_at_that_step_is_the_wrong_one():
    runs = family()
    true = [run.losses_N[-1] for run in runs]
    of_one = [run.cut(0.1).losses_N[-1] for run in runs[:4]]
    assert of_one == sorted(of_one), 'a high rate is behind until it falls'
    assert true[:4] == sorted(true[:4], reverse=True)
    for at, run in enumerate(runs):
        told = forecast(run.cut(0.1), runs[:at] + runs[at + 1 :])
        assert told.final == pytest.approx(true[at], rel=0.025)
    found = {(r.share, r.way): r for share in (0.1, 0.3) for r in check(runs, share)}
    for share in (0.1, 0.3):
        assert found[share, FORECAST].error < found[share, OWN].error
        assert found[share, FORECAST].tau > max(0.84, found[share, ORDER].tau + 0.05)
        assert found[share, FORECAST].right > 0.9
        assert found[share, FORECAST].lost < found[share, ORDER].lost
        assert 0.8 <= found[share, FORECAST].inside <= 1
    assert found[0.3, FORECAST].within > 0.8
    assert found[0.1, ORDER].error is None


def test_short_runs_tell_the_end_where_first_steps_do_not(few_groups):
    runs, whole = family(), []
    for gain in (1.0, 2.0, 3.0):
        for peak in (0.0005, 0.001, 0.002, 0.004):
            brief = lawful(f'g{gain:g}.rate-{peak:g}', peak, gain, steps=STEPS // 10, every=4)
            whole.append(dataclasses.replace(brief, end=runs[len(whole)].final))
    found = Shorts(whole, [], STEPS)
    assert found.share == 0.1
    by = {r.way: r for r in check_shorts(found)}
    first = {r.way: r for r in check(runs, 0.1)}
    assert {r.share for r in by.values()} == {0.1}
    assert by[ORDER_OF_SHORTS].tau > first[ORDER].tau + 0.5
    assert by[OF_SHORTS].error < 0.015
    assert by[OF_SHORTS].right > 0.85
    assert 0.8 <= by[OF_SHORTS].inside <= 1
    assert by[ORDER_OF_SHORTS].error is None
    # By hand: what is known is the regression's, with the long end in place of the short run's own.
    told = forecast(found.known[0], found.known[1:])
    assert abs(told.final - runs[0].final) < abs(told.final - found.known[0].losses_N[-1])


def test_forecasts_of_arms_that_ended_since_are_judged_as_one_group():
    ended = {'a.seed-0': 4.0, 'a.seed-1': 4.2, 'b.seed-0': 5.0, 'c.seed-0': 6.0}
    told = {'a.seed-0': 5.0, 'a.seed-1': 5.2, 'b.seed-0': 5.025, 'c.seed-0': 5.5}
    forecasts = [
        Forecast(Curve(name, np.array([1]), np.array([7.0]), np.ones(1), {}, end=end), told[name], 0.5)
        for name, end in ended.items()
    ]
    judged = as_one_group(forecasts, 0.1)
    assert judged.error == pytest.approx(np.mean([1 / 4, 1 / 4.2, 0.025 / 5, 0.5 / 6]))
    assert (judged.share, judged.within, judged.inside, judged.right) == (0.1, 0.25, 0.5, False)
    assert judged.tau == pytest.approx(1 / 3), 'the mean of both seeds of a is told to be above b'
    assert judged.lost == pytest.approx(5.0 - 4.1)


def test_runs_that_are_level_at_a_step_tell_no_order(few_groups):
    """Kendall's formula would divide 0 by 0 there."""
    level = []
    for run in family():
        losses_N = np.where(run.steps_N <= 0.1 * STEPS, 5.0, run.losses_N)
        level.append(dataclasses.replace(run, losses_N=losses_N))
    [by_order] = (r for r in check(level, 0.1) if r.way == ORDER)
    assert by_order.tau == 0


def test_intervals_hold_what_they_promise():
    rng, inside = np.random.default_rng(1), []
    for _ in range(30):
        runs = [
            Curve(r.name, r.steps_N, r.losses_N + rng.normal(0, 0.02), r.rates_T, r.settings)
            for r in family(rng.uniform(0.0005, 0.004, 4), rng.uniform(1, 3, 3))
        ]
        noise = rng.normal(0, 0.02, len(runs))  # of the end alone
        ends = [
            dataclasses.replace(r, losses_N=np.r_[r.losses_N[:-1], r.losses_N[-1] + n])
            for r, n in zip(runs, noise)
        ]
        told = forecast(ends[0].cut(0.3), ends[1:])
        inside.append(abs(told.final - ends[0].losses_N[-1]) <= told.half)
    assert 0.88 <= np.mean(inside) <= 1


def test_seeds_of_an_arm_are_held_out_together(few_groups):
    """Ends that nothing tells, the same for both seeds: whoever knows one of them knows the other."""
    rng, runs = np.random.default_rng(2), []
    for n, end in enumerate(rng.normal(0, 0.3, 9)):
        for seed in (0, 1):
            run = lawful(f'a{n}.seed-{seed}', 0.001 * (n + 1))
            losses_N = np.r_[run.losses_N[:-1], run.losses_N[-1] + end]
            runs.append(dataclasses.replace(run, losses_N=losses_N))
    errors, draw = [], np.random.default_rng(0)
    for _ in range(GROUPS):
        held = [run for n in draw.choice(9, GROUP, replace=False) for run in runs[2 * n : 2 * n + 2]]
        known = [run for run in runs if run not in held]
        errors += [abs(forecast(run.cut(0.1), known).final / run.losses_N[-1] - 1) for run in held]
    assert check(runs, 0.1)[0].error == pytest.approx(np.mean(errors))
    lawful_runs = [lawful(f'a{n}.seed-{seed}', 0.001 * (n + 1)) for n in range(9) for seed in (0, 1)]
    assert check(lawful_runs, 0.1)[0].tau > 0.85


def ending(name, settings, more):
    """Once the same rate, other settings, and an end that is higher by so much."""
    run = lawful(name, 0.001)
    return dataclasses.replace(
        run, losses_N=np.r_[run.losses_N[:-1], run.losses_N[-1] + more], settings=settings
    )


def test_a_setting_between_those_of_finished_runs_is_told_from_them():
    """Ends that grow with the root of the share that is masked, and by 0.2 where words are masked."""

    def one(rate, words):
        settings = {'masked': rate, 'words' if words else 'tokens': 1.0}
        return ending(f'{rate}-{words}', settings, 2 * rate**0.5 + 0.2 * words)

    finished = [one(rate, words) for rate in (0.05, 0.15, 0.35) for words in (False, True)]
    for rate, words in ((0.1, True), (0.2, False), (0.3, True)):
        run = one(rate, words)
        told = forecast(run.cut(0.1), finished)
        assert told.final == pytest.approx(run.losses_N[-1], abs=0.02)
        assert final.outside([run], finished) == []
        assert told.half < forecast(one(0.9, words).cut(0.1), finished).half  # unlike any that is finished
    assert final.outside([one(0.4, True)], finished) == ['masked']
    assert final.outside([one(0.2, True)], [run for run in finished if 'tokens' in run.settings]) == [
        'tokens',
        'words',
    ]


def test_a_new_arm_has_a_wider_interval_than_another_seed_of_a_known_one():
    """Arms end apart by 0.3, their seeds by 0.01; a regression that knows a seed knows its arm."""
    rng, inside, widths = np.random.default_rng(3), [], []
    for _ in range(20):
        runs = [
            ending(f'a{n}.seed-{seed}', {f'unit {n}': 1.0}, arm + rng.normal(0, 0.01))
            for n, arm in enumerate(rng.normal(0, 0.3, 10))
            for seed in (0, 1, 2)
        ]
        new, known = (
            forecast(runs[15].cut(0.1), runs[:15] + runs[18:]),
            forecast(runs[15].cut(0.1), runs[:15] + runs[16:]),
        )
        inside.append(abs(new.final - runs[15].losses_N[-1]) <= new.half)
        widths.append(new.half / known.half)
    assert np.mean(inside) >= 0.85
    assert np.median(widths) > 3


def test_four_seeds_of_one_arm_say_nothing_about_another():
    seeds = [ending(f'a.seed-{n}', {'masked': 0.1}, 0.01 * n) for n in range(4)]
    assert forecast(ending('a.seed-4', {'masked': 0.1}, 0).cut(0.1), seeds).half > 0


def test_a_run_is_open_until_it_has_ended_however_narrow_its_interval_is():
    """Finished runs of which each gains a quarter at the same rates: the regression errs nowhere."""
    ended = [
        Curve(f'a.seed-{n}', np.array([1, 2, 4]), np.array([8.0, 7, 6.75]) + n, np.ones(4), {'one': 1.0})
        for n in range(4)
    ]
    candidate = Curve('a.seed-4', np.array([1, 2, 4]), np.array([7.0, 6, 5.75]), np.ones(4), {'one': 1.0})
    one = dataclasses.replace(candidate.cut(0.5), seconds=3600.0)
    told = forecast(one, ended)
    assert told.final == pytest.approx(5.75)
    assert told.half < 0.02
    found = tables._told(ended, [one], [], None)
    assert found.said == 'Continue a.seed-4: it ends lowest with a chance of 100%.'
    hours = {row['run']: row['hours to go'] for row in found.tables[0].records()}
    assert hours['a.seed-4'] == 2


def test_chances_are_those_of_normal_errors():
    def one(name, end, half, unit=1.0):
        curve = Curve(name, np.array([1]), np.array([5.0]), np.ones(2), {'pieces a word': unit})
        return Forecast(curve, end, half)

    far = chances([one('a', 3.0, 0.1), one('b', 5.0, 0.1)])
    assert far.tolist() == [1, 0]
    near = chances([one('a', 3.0, 1.96), one('b', 4.0, 1.96)])
    assert near[0] == pytest.approx(0.5 * (1 + math.erf(1 / 2)), abs=0.01)  # P(N(1, sqrt 2) > 0)
    # A vocabulary with fewer pieces a word has more to lose a piece.
    assert chances([one('a', 3.0, 0.01, 1.5), one('b', 4.0, 0.01, 1.0)]).tolist() == [0, 1]


def test_a_curve_alone_is_extrapolated_by_its_own_law():
    steps = np.arange(10, 101, 10)
    curve = Curve('a', steps, 2 + 3 * steps**-0.4, np.ones(1000), {})
    assert extrapolated(curve) == pytest.approx(2 + 3 * 1000**-0.4, rel=1e-3)
    assert extrapolated(curve.cut(0.02)) == curve.losses_N[1], 'too few points'


def test_settings_are_those_of_the_second_half_of_the_steps():
    """A committed record has four phases, words at 20 % and all [MASK] in the second half."""
    [run] = read_runs([Path(__file__).parents[1] / 'docs/results/families.jsonl'])[:1]
    curve = curve_of('x', run)
    assert len(curve.rates_T) == run.step_of('0.4') == curve.steps_N[-1]
    assert curve.rates_T.argmax() == pytest.approx(0.06 * len(curve.rates_T), abs=1)
    pieces = {'masked': 0.5 * 0.16 + 0.5 * 0.2, 'replaced': 0.01, 'kept': 0.01}
    expected = {'mlm': 1, 'words': 1, **{f'pieces {name}': share for name, share in pieces.items()}}
    assert curve.settings == pytest.approx({**expected, 'pieces a word': curve.unit}, abs=0.001)
    assert curve.unit == pytest.approx(1.3, abs=0.3)
    # Paused at the end of the second phase: unfinished by the curriculum, and without one nothing is known.
    stops = {name: run.step_of(name) for name in run.phases}
    seen = [e for e in run.evaluations if e.step <= stops['0.2']]
    paused = dataclasses.replace(run, evaluations=seen, kept_steps={})
    assert curve_of('x', paused) is None
    planned = [PlacedPhase(name, 0, stop) for name, stop in stops.items()]
    half = curve_of('x', dataclasses.replace(paused, curriculum=planned))
    assert half.share == pytest.approx(0.5, abs=0.01)
    np.testing.assert_array_equal(half.rates_T, curve.rates_T)


def test_a_rate_that_moves_counts_with_its_mean_in_the_second_half():
    phase = Phase('words', 0.3, rate_end=0.1)
    moving = ScheduledPhase('a', phase, 25, 125)  # the second half of 150 steps begins in its middle
    share, rate = 50 / 75, 0.15
    assert late(moving, 150, 'mlm') == pytest.approx(
        {'mlm': share, 'words': share, 'pieces masked': share * rate * 0.8}
        | {f'pieces {name}': share * rate * 0.1 for name in ('replaced', 'kept')}
    )
    assert late(dataclasses.replace(moving, start=0, stop=75), 150, 'mlm') == {}


@pytest.fixture(scope='module')
def sweep(tmp_path_factory):
    """Four runs to their end, and one paused half-way by the command line."""
    folder = prepare(tmp_path_factory.mktemp('prepared'))
    runs = tmp_path_factory.mktemp('runs')
    for number, rate in enumerate((3e-4, 1e-3, 2e-3, 4e-3)):
        train(folder, runs / f'rate-{number}', rate)
    for name in ('started', 'waiting'):
        copy_of(folder, runs / 'half').rename(runs / name)
    (runs / 'half').rmdir()
    return folder, runs


def train(prepared, folder, rate, **more):
    changes = {'pretrain.learning_rate': rate, 'phases': '0.1,', 'evaluation.per_phase': 6, **more}
    within = folder.with_suffix('.made')
    pretrained(Run(copy_of(prepared, within), experiment(prepared, **changes), quiet=True))
    (within / 'run').rename(folder)
    within.rmdir()


def test_runs_that_have_not_started_are_forecast_from_short_runs(sweep, tmp_path, capsys, monkeypatch):
    prepared, long = sweep
    brief = {'phase.0.1.duration': 3.0, 'evaluation.per_phase': 1}
    for number, rate in enumerate((3e-4, 1e-3, 2e-3, 4e-3, 8e-3)):
        train(prepared, tmp_path / f'short/rate-{number}', rate, **brief)
    command = ('forecast', str(long), f'--short={tmp_path / "short"}')
    path_of, drawn = curves_module._path, []
    monkeypatch.setattr(
        curves_module, '_path', lambda m, ends: drawn.append(m.run.workdir) or path_of(m, ends)
    )
    found = document(capsys, *command)
    assert len(drawn) == len({*drawn}) == 9, 'each curve is made once'
    [table] = found['tables']
    rows = {row['run']: row for row in table['rows']}
    assert set(rows) == {'rate-3', 'rate-4'}  # the lowest that has ended, and the one that has not started
    assert 'after 50.0% of the steps of a long run' in table['note']
    assert 'Outside' not in table['note']
    curves = [
        {n: curve_of(n, m) for n, m in named(read_runs([part])).items()}
        for part in (long, tmp_path / 'short')
    ]
    known = [dataclasses.replace(curves[1][f'rate-{n}'], end=curves[0][f'rate-{n}'].final) for n in range(4)]
    row, new = rows['rate-4'], curves[1]['rate-4']
    assert row['short run'] == pytest.approx(new.final)
    assert row['at the end'] == pytest.approx(forecast(new, known).final)
    assert row['hours to go'] == pytest.approx(6 * new.seconds / 3600)
    assert rows['rate-3']['hours to go'] == 0
    assert rows['rate-3']['at the end'] == curves[0]['rate-3'].final
    assert found['said'].startswith(('Train rate-4: it ends lowest', 'Take rate-3, which has ended'))
    # Records do for folders.
    write_jsonl(tmp_path / 'short.jsonl', records_of(read_runs([tmp_path / 'short'])))
    assert document(capsys, *command[:2], f'--short={tmp_path / "short.jsonl"}') == found
    (tmp_path / 'short/rate-4').rename(tmp_path / 'rate-4')
    code, said = call(capsys, *command)
    assert (code, 'every short run has a finished long one (4), so there' in said) == (3, True)
    records = records_of(read_runs([tmp_path / 'short']))

    def refused(at, change, message):
        changed = copy.deepcopy(records)
        change(changed[at])
        write_jsonl(tmp_path / 'wrong.jsonl', changed)
        code, said = call(capsys, *command[:2], f'--short={tmp_path / "wrong.jsonl"}')
        assert (code, message in said) == (3, True), said

    def cut(record):
        record['curriculum'][-1]['stop'] = record['evaluations'][-1]['step'] = 2

    def others(record):
        record['manifests']['pretrain']['config'].update({'phase.0.1.rate': 0.2, 'phase.0.1.duration': 9.0})

    refused(
        0,
        others,
        'rate-0: its short run has config.phase.0.1.rate=0.2, and the long one 0.15; only the duration of',
    )
    refused(
        1, cut, 'rate-1: its short run has 33.3% of the steps of the long one, that of rate-0 50.0%; give'
    )
    code, said = call(capsys, *command[:2], f'--short={tmp_path / "rate-4"}')
    assert (code, 'no finished run has a finished short run of its name (short: rate-4)' in said) == (3, True)


def test_runs_that_were_paused_are_told_from_those_that_ended(sweep, tmp_path, capsys):
    folder, runs = sweep
    command = ['pretrain', f'--config={folder / "tiny.py"}', f'--workdir={runs / "started"}']
    command += [
        '--config.pretrain.learning_rate=8e-3',
        '--config.phases=0.1,',
        '--config.evaluation.per_phase=6',
    ]
    with equal_programs():
        assert cli.main([*command, '--config.runtime.until=0.5']) == 0
    assert 'pretrain: 3 of 6 steps are done and saved; config.runtime.until=0.5' in capsys.readouterr().out
    assert cli.main(['forecast', str(runs)]) == 0
    printed = capsys.readouterr().out
    assert 'Continue started: it ends lowest with a chance of ' in printed
    found = document(capsys, 'forecast', str(runs))
    rows = {row['run']: row for row in found['tables'][0]['rows']}
    assert {name: row['of its steps'] for name, row in rows.items()} == {'started': 0.5, 'rate-3': 1}
    row = rows['started']
    assert found['tables'][0]['note'].endswith(
        'Without a planned path on record, as before a start: waiting.'
    )
    curves = {m.run.workdir.name: curve_of(m.run.workdir.name, m) for m in read_runs([runs])}
    assert curves.pop('waiting') is None
    started = curves['started']
    np.testing.assert_allclose(started.rates_T, 8 * curves['rate-1'].rates_T, rtol=1e-5)
    assert row['at the end'] == pytest.approx(
        forecast(started, [c for c in curves.values() if c.finished]).final
    )
    # Records say the same as the folders of the runs that they were made from.
    write_jsonl(tmp_path / 'results.jsonl', records_of(read_runs([runs])))
    recorded_runs = {m.run.workdir.name: m for m in read_runs([tmp_path / 'results.jsonl'])}
    assert curve_of('waiting', recorded_runs.pop('waiting')) is None
    for name, m in recorded_runs.items():
        recorded = curve_of(name, m)
        assert recorded.finished == (name != 'started')
        assert recorded.settings == curves[name].settings
        for field in ('steps_N', 'losses_N', 'rates_T'):
            np.testing.assert_array_equal(getattr(recorded, field), getattr(curves[name], field))
    assert document(capsys, 'forecast', str(tmp_path / 'results.jsonl')) == found


@pytest.mark.parametrize(
    ('runs', 'more', 'message'),
    [
        (
            4,
            (),
            'of 4 runs none is under way (finished: 4), so there is nothing to forecast',
        ),
        (4, ('--check=0.5',), 'a check holds out 5 arms and forecasts them from 4 or more, so it needs 9'),
        (0, (), 'is not a run and holds none; give the --workdir'),
        (4, ('--check=2',), "'2': must be a number above 0 and at most 1"),
        (4, ('--short=a,',), "--short: 'a,': has an empty name; take out the comma, or name a folder"),
        (4, ('--short=',), "--short: '': has an empty name"),
    ],
)
def test_what_cannot_be_told_is_one_line(runs, more, message, sweep, tmp_path, capsys):
    for number in range(runs):
        (tmp_path / f'rate-{number}').symlink_to(sweep[1] / f'rate-{number}')
    code, said = call(capsys, 'forecast', str(tmp_path), *more)
    assert code in (2, 3)
    assert message in said


def test_what_a_curve_and_a_forecast_need():
    runs, seeds = family(), [ending(f'a.seed-{n}', {'masked': 0.1}, 0.01 * n) for n in range(4)]
    pairs = [lawful(f'a{n}.seed-{seed}', 0.001 * (n + 1)) for n in range(8) for seed in (0, 1)]
    late = Curve('a', np.array([10, 40, 100]), np.array([5.0, 4.0, 3.0]), np.ones(100), {})
    for ask, given, message in (
        (late.cut, (0.05,), 'a: was first evaluated after 10.0% of its steps; raise config.eval'),
        (
            forecast,
            (runs[0].cut(0.1), runs[1:4]),
            rf'takes {FEWEST} finished runs or more, and here are 3; let more arms',
        ),
        (
            forecast,
            (ending('b', {'masked': 0.2}, 0).cut(0.1), seeds),
            r'4 finished runs have the same settings .*, and b has others; let another',
        ),
        (check, (pairs, 0.1), r'needs 9 finished ones, and here are 8'),
    ):
        with pytest.raises(InputError, match=message):
            ask(*given)
