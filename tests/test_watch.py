"""Records of training: hand-made windows, model FLOPs against published figures, the profiler's window, goodput."""

import json
import time

import jax.numpy as jnp
import numpy as np
import pytest

from bioptimus_jax.experiment.config import defaults
from bioptimus_jax.experiment.schema import Experiment
from bioptimus_jax.model.families.bert import Bert
from bioptimus_jax.pretrain import goodput, throughput, watch
from bioptimus_jax.pretrain.objectives.mlm import OBJECTIVE
from bioptimus_jax.records.metrics import Spans
from bioptimus_jax.report.measures import read_measures
from bioptimus_jax.report.sections.goodput import goodput as table_of
from bioptimus_jax.report.sections.goodput import starts
from bioptimus_jax.run.folder import Run
from bioptimus_jax.tokenizer.kinds.wordpiece import SPECIAL_TOKENS, make

BASE = Bert(30522, 768, 12, 12, 3072, 512)
LARGE = Bert(30522, 1024, 24, 16, 4096, 512)
MASKED_LM = OBJECTIVE(Experiment.from_config(defaults()), BASE, make([*SPECIAL_TOKENS, 'a'], True), 512)


@pytest.mark.parametrize(
    ('architecture', 'rate', 'gflops'), [(BASE, 0.15, 0.588), (BASE, 0.20, 0.595), (LARGE, 0.15, 1.99)]
)
def test_model_flops_are_those_of_the_usual_count(architecture, rate, gflops):
    """3 * [24 L H^2 + 4 L S H + r (2 H^2 + 2 H V)], S = 512, V = 30592."""
    found = throughput.training_flops_per_token(architecture, 512, rate) / 1e9
    assert found == pytest.approx(gflops, rel=2e-3)


def metrics(loss, tokens, finite=True):
    return {
        'loss': jnp.float32(loss),
        'accuracy': jnp.float32(0.5),
        'word_accuracy': jnp.float32(0.25),
        'learning_rate': jnp.float32(1e-4),
        'gradient_norm': jnp.float32(2.0),
        'finite': jnp.bool_(finite),
        'tokens': jnp.int32(tokens),
        'attended': jnp.float32(tokens * 100),
        'selected_by_length': jnp.array([0.0, 6.0, 4.0]),
        'maskable_by_length': jnp.array([0.0, 40.0, 20.0]),
        'units': jnp.float32(4),
        'predicted': jnp.float32(10),
    }


def summarised(steps, seconds=2.0, waited=0.5):
    window = watch.LogInterval()
    for number, step in enumerate(steps, 1):
        window.add(number, step, waited / len(steps))
    values, _ = window.read()
    return watch.summarise(window, values, seconds, 100, MASKED_LM, '0.1', 0), values


def test_a_record_counts_what_happened_between_two_of_them(monkeypatch):
    monkeypatch.setattr(watch, 'peak_flops', lambda: None)
    record, values = summarised([metrics(4, 90), metrics(2, 70)])
    assert watch.first_not_finite(values) is None
    assert (record.loss, record.skipped) == (3.0, 0)
    assert (record.tokens_per_second, record.padded_tokens_per_second) == (80.0, 100.0)
    assert (record.fill, record.input_wait) == (0.8, 0.25)
    assert record.realised_rate == pytest.approx(20 / 120, abs=1e-5)
    assert record.realised_rate_by_length == {1: 0.15, 2: 0.2}
    assert (record.unit_pieces, record.predicted) == (20 / 8, 20)
    assert record.flops == throughput.training_flops_per_token(BASE, 100, 20 / 160, last=20 / 160) * 160
    assert record.seconds == 2.0
    assert record.mfu is None
    assert watch.line(record) == 'loss 3.000, 80 tokens/s'


def test_a_step_that_is_not_finite_is_counted_and_left_out_of_the_means():
    record, values = summarised([metrics(4, 90), metrics(np.nan, 90, finite=False)])
    assert watch.first_not_finite(values) == 2
    assert (record.loss, record.skipped) == (4.0, 1)
    assert '1 step skipped' in watch.line(record)


def test_mfu_is_model_flops_over_the_peak_of_all_devices(monkeypatch):
    monkeypatch.setattr(watch, 'peak_flops', lambda: 1e10)
    monkeypatch.setattr(watch.jax, 'device_count', lambda: 4)
    record, _ = summarised([metrics(4, 90)])
    flops = throughput.training_flops_per_token(BASE, 100, 10 / 90, last=10 / 90) * 90
    assert record.mfu == pytest.approx(flops / 2.0 / 4e10, rel=1e-3)
    assert 'MFU' in watch.line(record)


def test_the_profiler_traces_its_steps_and_no_others(tmp_path, monkeypatch):
    called = []
    monkeypatch.setattr(watch.jax.profiler, 'start_trace', lambda folder: called.append(folder))
    monkeypatch.setattr(watch.jax.profiler, 'stop_trace', lambda: called.append('stop'))
    for steps, wanted in (((), []), ((3, 4), [(3, str(tmp_path)), (4, 'stop')])):
        called.clear()
        profiler, seen = watch.Profiler(steps, tmp_path), []
        for step in range(1, 8):
            profiler.before(step)
            profiler.after(step, jnp.zeros(()))
            seen += [(step, call) for call in called]
            called.clear()
        profiler.close()
        assert [(step, call) for step, call in seen if call == 'stop'] == wanted[1:]
        assert [call for _, call in seen][:1] == [call for _, call in wanted][:1]


def test_reading_a_window_says_how_long_it_was_open():
    window = watch.LogInterval()
    window.add(1, metrics(1, 1), 0.0)
    time.sleep(0.02)
    assert window.read()[1] >= 0.02


def clocked(began, step, *spans, first=None, ended=False, **more):
    """A line of metrics.jsonl: seconds of start, compile, training, input, evaluation, checkpoint."""
    told = {'stage': 'clock', 'step': step, 'kind': 'spans', 'name': str(began), 'time': began + sum(spans)}
    own = {
        'began': began,
        'first': first,
        'ended': ended,
        'spans': dict(zip(goodput.SPANS, spans, strict=True)),
    }
    return json.dumps({**told, **own, **more})


# Killed after step 30, whose checkpoint is that of 20; begun again twice, the second time after it was stopped.
TWICE = [
    json.dumps({'stage': 'clock', 'step': 0, 'kind': 'start', 'time': 1.0}),
    clocked(1000.0, 0, 8.0, 0, 0, 0, 0, 0),
    clocked(1000.0, 0, 10.0, 0, 0, 0, 5.0, 0, first=0, computed={'on': '2 cpu devices', 'attention': 'xla'}),
    clocked(1000.0, 10, 10.0, 20.0, 40.0, 1.0, 5.0, 0, first=0),
    clocked(1000.0, 20, 10.0, 20.0, 80.0, 2.0, 10.0, 6.0, first=0),
    clocked(1000.0, 30, 10.0, 20.0, 117.0, 5.0, 10.0, 6.0, first=0),  # 168 s; 40 s since the record before
    clocked(2000.0, 0, 7.0, 0, 0, 0, 0, 0),
    clocked(2000.0, 20, 9.0, 0, 0, 0, 0, 0, first=20),
    clocked(2000.0, 30, 9.0, 3.0, 38.0, 0, 0, 0, first=20),
    clocked(2000.0, 35, 9.0, 3.0, 58.0, 0, 0, 4.0, first=20, ended=True),  # 74 s
    clocked(2100.0, 35, 9.0, 0, 0, 0, 0, 0, first=35),
    clocked(2100.0, 40, 9.0, 3.0, 20.0, 1.0, 5.0, 2.0, first=35, ended=True),  # 40 s
]
ACCOUNT = {
    'start': 28.0,
    'compile': 26.0,
    'training': 80.0 + 58.0 + 20.0,
    'input': 2.0 + 1.0,
    'evaluation': 15.0,
    'checkpoint': 12.0,
    goodput.LOST: 37.0 + 3.0 + 40.0,  # steps 21 to 30, then an interval at the most
    goodput.IDLE: (2000 - 1168 - 40) + (2100 - 2074),
}


def test_all_of_the_time_is_accounted_for_over_restarts(tmp_path):
    """Two restarts by hand, beside a line cut off by a kill, and an attempt before that was replaced."""
    before = clocked(10.0, 50, 1.0, 1.0, 500.0, 0, 0, 0, first=0)
    (tmp_path / 'metrics.jsonl').write_text(
        '\n'.join([before, *TWICE[:6], '{"stage": "clo', *TWICE[6:]]) + '\n'
    )
    run = Run(tmp_path, Experiment.from_config(defaults()), quiet=True)
    records = Spans.among(run.metrics.of(goodput.STAGE))
    found = goodput.account(records)
    assert found == pytest.approx(ACCOUNT)
    assert sum(found.values()) == pytest.approx(2140 - 1000)
    assert goodput.line(records) == (
        '49.1 % of 5 min 22 s trained, 3 starts; start 8.7 %, compile 8.1 %, input 0.9 %, evaluation 4.7 %, '
        'checkpoint 3.7 %, lost to a kill 24.8 %; not running 13 min 38 s'.replace(' %', '%')
    )
    table = table_of(read_measures(run))
    assert [row[0].text for row in table.rows] == list(ACCOUNT)
    for column, shares in ((2, 1.0), (3, 1.0)):
        assert sum(row[column].value or 0 for row in table.rows) == pytest.approx(shares)
    assert table.rows[2][3].text == f'{100 * 158 / 1140:.1f} %'
    assert '3 starts' in table.note
    assert [[cell.text for cell in row] for row in starts(read_measures(run)).rows] == [
        [
            '1970-01-01 00:16:40',
            '0',
            '30',
            '2 min 48 s',
            '2 cpu devices, attention xla',
            'killed, or not yet',
        ],
        ['1970-01-01 00:33:20', '20', '35', '1 min 14 s', '', 'in order'],
        ['1970-01-01 00:35:00', '35', '40', '40 s', '', 'in order'],
    ]


def test_a_step_from_which_two_went_on_is_lost_to_both(tmp_path):
    """The checkpoint after step 10 was the last good one, twice; nobody killed the last."""
    lines = [
        clocked(0.0, 10, 1.0, 0, 10.0, 0, 0, 0, first=0),
        clocked(0.0, 30, 1.0, 0, 30.0, 0, 0, 0, first=0, ended=True),
        clocked(50.0, 0, 2.0, 0, 0, 0, 0, 0),
        clocked(50.0, 20, 2.0, 0, 12.0, 0, 0, 0, first=10, ended=True),
        clocked(80.0, 10, 1.0, 0, 0, 0, 0, 0, first=10),
        clocked(80.0, 20, 1.0, 0, 10.0, 0, 0, 0, first=10),
    ]
    found = goodput.account(Spans.among(json.loads(line) for line in lines))
    assert (found['training'], found['start'], found[goodput.LOST]) == (20.0, 4.0, 20.0 + 12.0)
    assert sum(found.values()) == 91.0
