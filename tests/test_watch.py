"""Records of training: hand-made windows, model FLOPs against published figures, the profiler's window."""

import time

import jax.numpy as jnp
import numpy as np
import pytest

from bioptimus_jax.config import defaults
from bioptimus_jax.model.families.bert import Bert
from bioptimus_jax.pretrain import throughput, watch
from bioptimus_jax.pretrain.objectives.mlm import OBJECTIVE
from bioptimus_jax.schema import Experiment
from bioptimus_jax.vocab.kinds.wordpiece import SPECIAL_TOKENS, make

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
    window = watch.Window()
    for number, step in enumerate(steps, 1):
        window.add(number, step, waited / len(steps))
    values, _ = window.read()
    return watch.summarise(window, values, seconds, 100, MASKED_LM), values


def test_a_record_counts_what_happened_between_two_of_them(monkeypatch):
    monkeypatch.setattr(watch, 'peak_flops', lambda: None)
    record, values = summarised([metrics(4, 90), metrics(2, 70)])
    assert watch.first_not_finite(values) is None
    assert (record['loss'], record['skipped']) == (3.0, 0)
    assert (record['tokens_per_second'], record['padded_tokens_per_second']) == (80.0, 100.0)
    assert (record['fill'], record['input_wait']) == (0.8, 0.25)
    assert record['realised_rate'] == pytest.approx(20 / 120, abs=1e-5)
    assert record['realised_rate_by_length'] == {1: 0.15, 2: 0.2}
    assert record['unit_pieces'] == 20 / 8
    assert record['flops'] == throughput.training_flops_per_token(BASE, 100, 20 / 160) * 160
    assert record['seconds'] == 2.0
    assert 'mfu' not in record
    assert watch.line(record) == 'loss 3.000, 80 tokens/s'


def test_a_step_that_is_not_finite_is_counted_and_left_out_of_the_means():
    record, values = summarised([metrics(4, 90), metrics(np.nan, 90, finite=False)])
    assert watch.first_not_finite(values) == 2
    assert (record['loss'], record['skipped']) == (4.0, 1)
    assert '1 steps skipped' in watch.line(record)


def test_mfu_is_model_flops_over_the_peak_of_all_devices(monkeypatch):
    monkeypatch.setattr(watch, 'peak_flops', lambda: 1e10)
    monkeypatch.setattr(watch.jax, 'device_count', lambda: 4)
    record, _ = summarised([metrics(4, 90)])
    flops = throughput.training_flops_per_token(BASE, 100, 10 / 90) * 90
    assert record['mfu'] == pytest.approx(flops / 2.0 / 4e10, rel=1e-3)
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
    window = watch.Window()
    window.add(1, metrics(1, 1), 0.0)
    time.sleep(0.02)
    assert window.read()[1] >= 0.02
