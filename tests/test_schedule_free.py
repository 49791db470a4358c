"""An optimiser from outside that scores other weights than it trains: schedule-free AdamW, one record."""

import json

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from toy_pretraining import assert_same_bits, killed_copy, of_letters, pretrained

from bioptimus_jax.errors import ConfigError
from bioptimus_jax.experiment.stages import STAGES
from bioptimus_jax.model.architecture import Rule
from bioptimus_jax.model.families.bert import Bert
from bioptimus_jax.model.tensors import load_folder
from bioptimus_jax.model.trees import flatten
from bioptimus_jax.pretrain.checkpoint import Checkpoints, load_phase
from bioptimus_jax.pretrain.config import Pretrain
from bioptimus_jax.pretrain.memory import step_memory
from bioptimus_jax.pretrain.objectives.mlm import FrozenEvaluation
from bioptimus_jax.pretrain.optimizer import make_optimizer, moved, scored
from bioptimus_jax.pretrain.optimizers import OPTIMIZERS, Optimizer
from bioptimus_jax.run.execute import execute
from bioptimus_jax.run.folder import Run
from bioptimus_jax.tokenizer.kinds.wordpiece import SPECIAL_TOKENS

PIECES, LETTERS = 32, 'abcdefghij'


def updates(settings, decayed, matrices):
    """The updates of Defazio et al. 2024: y is trained, z takes the steps, and x, their average, is scored."""

    def made(rate):
        base = optax.chain(
            optax.scale_by_rms(settings.beta2, settings.epsilon, eps_in_sqrt=False, bias_correction=True),
            optax.add_decayed_weights(settings.weight_decay, mask=decayed),
            optax.scale_by_learning_rate(rate),
        )
        return optax.contrib.schedule_free(base, rate, settings.beta1)

    def update(gradients, state, params=None, *, learning_rate, **more):
        return made(learning_rate).update(gradients, state, params)

    return (optax.GradientTransformationExtraArgs(made(0.0).init, update),)


def evaluated(settings, states, params):
    return optax.contrib.schedule_free_eval_params(states[0], params)


SCHEDULE_FREE = Optimizer('schedule-free AdamW (arXiv 2405.15682)', updates, True, evaluated)


@pytest.fixture(scope='module', autouse=True)
def added():
    with pytest.MonkeyPatch.context() as patched:
        patched.setitem(OPTIMIZERS, 'schedule_free', SCHEDULE_FREE)
        yield


def experiment(folder, **changes):
    asked = {
        'pretrain.optimizer': 'schedule_free',
        'phase.0.1.fall': 'constant',
        'phase.0.2.fall': 'constant',
    }
    return of_letters(folder, PIECES, ('0.1', '0.2'), **{**asked, **changes})


@pytest.fixture(scope='module')
def trained(tmp_path_factory):
    """A run of two phases, a copy of which was killed before its end; by step what was saved; what was scored."""
    folder = tmp_path_factory.mktemp('schedule_free')
    (folder / 'vocab.txt').write_text('\n'.join([*SPECIAL_TOKENS, *LETTERS]))
    rng = np.random.default_rng(0)
    with open(folder / 'corpus.jsonl', 'w') as file:
        for number in range(60):
            text = ' '.join(rng.choice(list(LETTERS), rng.integers(5, 20)))
            file.write(json.dumps({'id': str(number), 'title': '', 'abstract': text}) + '\n')
    run = Run(folder / 'run', experiment(folder), quiet=True)
    for stage in ('corpus', 'vocab', 'surgery', 'rows'):
        execute(run, STAGES[stage])
    saved, scored_at, save, scores = {}, [], Checkpoints.save, FrozenEvaluation.scores

    def saving(checkpoints, step, state):
        saved[step] = jax.device_get(state)
        save(checkpoints, step, state)

    def scoring(evaluation, params, *rest):
        scored_at.append(flatten(jax.device_get(params)))
        return scores(evaluation, params, *rest)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(Checkpoints, 'save', saving)
        patched.setattr(FrozenEvaluation, 'scores', scoring)
        with killed_copy(run, folder / 'killed', lambda done: done > 6):
            return pretrained(run), saved, scored_at


def test_the_average_of_the_steps_is_scored_kept_and_exported(trained):
    run, saved, scored_at = trained
    params, state = flatten(load_phase(run.folder('pretrain'), '0.2')), saved[12]
    y, z, beta = flatten(state['params']), flatten(state['optimizer'][1].z), run.config.pretrain.beta1
    for name, value in params.items():
        np.testing.assert_allclose(value, (y[name] - (1 - beta) * z[name]) / beta, atol=1e-6, err_msg=name)
        np.testing.assert_array_equal(value, scored_at[-1][name], err_msg=name)
    assert max(np.abs(params[name] - y[name]).max() for name in y) > 1e-3
    execute(run, STAGES['export'])  # behind the gate
    _, exported, missing = load_folder(run.workdir / 'export' / '0.2')
    assert not missing
    for name, value in flatten(exported).items():
        np.testing.assert_array_equal(value, params[name], err_msg=name)
    assert 'those that schedule_free evaluates' in (run.workdir / 'export' / '0.2' / 'README.md').read_text()


def test_a_run_that_was_killed_ends_with_the_same_bits(trained):
    run, *_ = trained
    again = pretrained(Run(run.workdir.parent / 'killed', run.config, quiet=True))
    assert_same_bits(run, again, '0.1', '0.2')


def test_steps_and_what_is_scored_are_those_of_optax_alone():
    rng, rate = np.random.default_rng(1), 1e-2
    tree = {'kernel': jnp.asarray(rng.normal(size=(3, 4)), jnp.float32)}
    settings = Pretrain(optimizer='schedule_free', clip_norm=0.0)
    ours = make_optimizer(settings, tree, [Rule('', (None, None))])
    theirs = optax.contrib.schedule_free_adamw(
        rate, None, settings.beta1, settings.beta2, settings.epsilon, settings.weight_decay
    )
    own, other, average = (tree, ours.init(tree)), (tree, theirs.init(tree)), tree
    for step in range(4):
        gradients = {'kernel': jnp.asarray(rng.normal(size=(3, 4)), jnp.float32)}
        steps, state = ours.update(gradients, own[1], own[0], learning_rate=rate)
        own = moved(settings, own[0], steps, rate, step), state
        average = scored(settings, average, state, own[0])
        steps, state = theirs.update(gradients, other[1], other[0])
        other = optax.apply_updates(other[0], steps), state
    wanted = optax.contrib.schedule_free_eval_params(other[1], other[0])
    for found, expected in ((own[0], other[0]), (average, wanted)):
        np.testing.assert_allclose(found['kernel'], expected['kernel'], rtol=1e-5)
    assert np.abs(average['kernel'] - own[0]['kernel']).max() > 1e-4


def test_it_needs_room_for_both_and_has_no_moving_average(trained):
    folder, shape = trained[0].workdir.parent, Bert(100, 16, 1, 2, 16, PIECES)
    adam, own, averaged = (
        step_memory(experiment(folder, **changes), shape, 'cpu', 1).optimizer
        for changes in (
            {'pretrain.optimizer': 'adamw'},
            {},
            {'pretrain.optimizer': 'adamw', 'pretrain.ema': '0.9'},
        )
    )
    assert adam < own == averaged
    for key, value, said in (
        ('ema', '0.9', 'scores an average of its own'),
        ('head_steps', '5', 'applies its learning rate itself'),
    ):
        with pytest.raises(ConfigError, match=rf'config\.pretrain\.{key}: schedule_free {said}'):
            experiment(folder, **{f'pretrain.{key}': value})
