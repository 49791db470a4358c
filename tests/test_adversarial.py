"""Adversarial pre-training against torch: noise, divergences, gradients of every parameter; its controls; FLOPs."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from toy_families import noisy, torch_inputs, torch_model
from toy_objectives import LENGTHS, PIECES, example_of

from bioptimus_jax.errors import ConfigError
from bioptimus_jax.experiment import config
from bioptimus_jax.experiment.schema import Experiment
from bioptimus_jax.model.families.bert import Bert
from bioptimus_jax.model.tensors import to_tensors
from bioptimus_jax.model.trees import flatten
from bioptimus_jax.pretrain import cross_entropy
from bioptimus_jax.pretrain.objective import make_objective, planned_objective
from bioptimus_jax.pretrain.objectives.mlm import inputs
from bioptimus_jax.pretrain.sharding import make_mesh
from bioptimus_jax.tokenizer.kinds.wordpiece import SPECIAL_TOKENS, make

ROWS = len(LENGTHS)
SHAPE = Bert(200, 32, 1, 4, 64, 40)
WORDS = make([*SPECIAL_TOKENS, *(f't{n}' for n in range(195))], True)
# So large that the inner gradient decides the direction; the published ones leave that to the draw.
STRONG = {'deviation': 0.05, 'step': 1000.0, 'epsilon': 0.04}


@functools.cache
def made(**changes):
    c = config.defaults()
    c.pretrain.update(objective='adversarial', batch_rows=ROWS)
    c.rows.update(row_pieces=PIECES, max_document_pieces=PIECES)
    for dotted, value in changes.items():
        config.override(c, f'objective.adversarial.{dotted}', str(value))
    return make_objective(Experiment.from_config(c), SHAPE, WORDS, PIECES, make_mesh(1), print)


@functools.cache
def params():
    return noisy(SHAPE).params


@functools.cache
def compiled(**changes):
    """The term of the loss and the sums under these settings, and the term's gradients."""
    objective = made(**changes)

    def of(params, example):
        terms, sums = objective.loss(params, {}, example.rows, None)
        assert terms.keys() == example.weights.keys() == {'slots'}
        return terms['slots'], sums

    return jax.jit(jax.value_and_grad(of, has_aux=True))


def step_of(example, **changes):
    """Loss and sums, gradients."""
    (term, sums), gradients = compiled(**changes)(params(), example)
    weight = np.asarray(example.weights['slots'])
    return (term / weight, sums), jax.tree.map(lambda leaf: np.asarray(leaf) / weight, gradients)


@pytest.mark.parametrize('projection', ['unit_linf', 'clip'])
def test_loss_noise_and_gradients_equal_torch(projection, monkeypatch):
    import torch
    from torch.nn import functional

    monkeypatch.setitem(cross_entropy.POSITIONS_PER_CHUNK, 'cpu', 24)  # of 8 slots
    objective = made(projection=projection, **STRONG)
    example = example_of(objective)
    (found, sums), gradients = step_of(example, projection=projection, **STRONG)
    masked = example.rows.clean.masked
    batch = {'tokens': np.asarray(masked.inputs_L), 'segments': np.asarray(example.rows.clean.segments_BxL)}
    drawn = objective.drawn(example.rows, jnp.zeros((ROWS, PIECES, 32)))
    assert float(drawn.std()) == pytest.approx(0.05, rel=0.05)

    model = torch_model(noisy(SHAPE))
    weights, slots, targets = (np.asarray(x) for x in (masked.weights_M, masked.slots_M, masked.targets_M))
    rows, at = np.nonzero(weights)
    places = torch.from_numpy(rows), torch.from_numpy(slots[rows, at].astype(np.int64))
    answers = torch.from_numpy(targets[rows, at].astype(np.int64))
    mask = torch_inputs(batch)['attention_mask'][:, None, None, :] > 0

    def logits(states):
        for layer in model.bert.encoder.layer:
            states = layer(states, torch.where(mask, 0.0, torch.finfo(torch.float32).min))
            states = states[0] if isinstance(states, tuple) else states
        return functional.log_softmax(model.cls(states[places]), -1)

    def kl(of, to):
        return functional.kl_div(to, of.detach(), reduction='batchmean', log_target=True)

    embedded = model.bert.embeddings(torch_inputs(batch)['input_ids'])
    clean, given = logits(embedded), embedded.detach()
    noise = torch.from_numpy(np.array(drawn)).requires_grad_()
    [inner] = torch.autograd.grad(kl(clean, logits(given + noise)), noise)
    noise = (noise + STRONG['step'] * inner).detach()
    longest = noise.abs().amax(-1, keepdim=True)
    noise = noise.clamp(-0.04, 0.04) if projection == 'clip' else noise / (longest + 1e-6)
    perturbed = logits(given + noise)
    both = kl(clean, perturbed), kl(perturbed, clean)
    loss = functional.nll_loss(clean, answers) + 10 * sum(both)
    loss.backward()

    assert float(found) == pytest.approx(float(loss.detach()), rel=1e-4)
    told = objective.metrics(example, sums)
    for name, value in zip(('kl_clean', 'kl_noisy'), both):
        assert float(told[name]) == pytest.approx(float(value.detach()), rel=1e-3)
    real = torch.from_numpy(batch['segments'] > 0)
    step = STRONG['step'] * inner[real].norm(dim=-1).mean()
    assert float(told['noise_largest']) == pytest.approx(float(noise[real].abs().amax(-1).mean()), rel=1e-4)
    assert float(told['noise_norm']) == pytest.approx(float(noise[real].norm(dim=-1).mean()), rel=1e-4)
    assert float(told['step_norm']) == pytest.approx(float(step), rel=1e-3)
    assert step > 0.3 * float(jnp.linalg.norm(drawn, axis=-1).mean()), (
        'the inner gradient decides nothing here'
    )
    by_torch = {name: p.grad for name, p in model.named_parameters()}
    for name, gradient in to_tensors(gradients, SHAPE).items():
        scale = float(by_torch[name].abs().max())
        np.testing.assert_allclose(gradient, by_torch[name], atol=2e-4 * max(scale, 0.1), err_msg=name)


def test_the_noisy_side_gives_the_embeddings_no_gradient():
    """The first divergence alone is meant; the second one reaches them through the clean pass."""
    objective = made(**STRONG)
    rows = example_of(objective).rows

    def noisy_states(params):
        given = jax.lax.stop_gradient(objective.architecture.embed(params, inputs(rows.clean)))
        return objective.predicted(params, rows, given + 0.1, None).states_BxMxD.sum()

    gradients = flatten(jax.jit(jax.grad(noisy_states))(params()))
    tables = [path for path in gradients if path.startswith('embeddings/')]
    assert len(tables) == 5
    assert not any(np.any(gradients[path]) for path in tables)
    assert np.any(gradients['encoder/layer/0/attention/self/value/kernel'])
    example, whole_step = example_of(objective), {'projection': 'unit_linf', **STRONG}
    plain, whole = (
        flatten(step_of(example, **changes)[1]) for changes in ({**STRONG, 'alpha': 0}, whole_step)
    )
    path = 'embeddings/position_embeddings/embedding'
    assert np.abs(whole[path] - plain[path]).max() > 0.01 * np.abs(plain[path]).max()


def test_the_controls_leave_out_what_they_say():
    key = jax.random.key(5, impl='threefry2x32')
    told = {}
    for noise, dropped in (
        ('worst', False),
        ('noise_only', False),
        ('dropout_only', False),
        ('dropout_only', True),
    ):
        objective, own = made(noise=noise, **STRONG), key if dropped else None
        example = example_of(objective)
        sums = jax.jit(lambda p, e, o=objective, k=own: o.loss(p, {}, e.rows, k)[1])(params(), example)
        told[noise, dropped] = {
            n: float(v) for n, v in objective.metrics(example, sums).items() if np.ndim(v) == 0
        }
    worst, random, *without = told.values()
    assert worst['noise_largest'] == pytest.approx(1, abs=1e-4) == random['noise_largest']
    assert worst['step_norm'] > 0 == random['step_norm']
    assert all(none['step_norm'] == none['noise_norm'] == 0 for none in without)
    assert told['dropout_only', False]['kl_clean'] == pytest.approx(0, abs=1e-6)
    assert told['dropout_only', True]['kl_clean'] > 1e-3  # every pass draws its own
    assert told['worst', False]['kl_clean'] > told['noise_only', False]['kl_clean'] > 1e-3


def test_where_the_inner_gradient_is_not_finite_masked_lm_alone_counts():
    """The gradient is not finite in all rows, as if the mean were over no slots; then in one."""
    objective = made(**STRONG)
    example = example_of(objective)
    example = example._replace(rows=example.rows._replace(divisor_B=jnp.zeros(ROWS)))
    (found, sums), gradients = step_of(example, projection='unit_linf', **STRONG)
    clean = example.rows.clean

    @jax.jit
    def loss(params):
        states = objective.states(params, clean, slots_BxM=clean.masked.slots_M)
        return objective.slot_losses(params, states, clean.masked)[0]

    alone = loss(params()) / example.weights['slots']
    assert float(found) == pytest.approx(float(alone), rel=1e-6)
    assert (int(sums['left_out']), float(sums['noise_norm'])) == (ROWS, 0)
    assert all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(gradients))
    objective = made()
    before, bad = jnp.ones((2, 3, 4)), jnp.zeros((2, 3, 4)).at[1, 2, 0].set(jnp.nan)
    noise, heeded = objective.moved(before, bad)
    np.testing.assert_array_equal(heeded, [True, False])
    np.testing.assert_allclose(noise, before.at[1].set(0), atol=1e-5)


def test_a_batch_with_no_place_to_predict_has_no_loss_and_finite_gradients():
    """Every row of special tokens only."""
    objective = made(**STRONG)
    example = example_of(
        objective, np.where(np.arange(PIECES)[None] < LENGTHS, WORDS.sep, 0).astype(np.int32)
    )
    assert int(example.weights['slots']) == 0
    (found, _), gradients = compiled(projection='unit_linf', **STRONG)(params(), example)
    assert float(found) == 0
    assert not any(np.any(leaf) for leaf in jax.tree.leaves(gradients))


@pytest.mark.parametrize(
    ('key', 'value', 'refusal'),
    [
        (
            'objective.adversarial.projection',
            'ball',
            r"adversarial\.projection: 'ball' is not one of unit_linf, clip",
        ),
        (
            'objective.adversarial.noise',
            'none',
            r"adversarial\.noise: 'none' is not one of worst, noise_only",
        ),
        ('objective.adversarial.alpha', '-1', r'adversarial\.alpha: must be at least 0'),
        ('phase.0.1.rate', '0', r'config\.phase\.0\.1\.rate: must be at least 0\.01'),  # no place to predict
    ],
)
def test_what_is_wrong_is_one_line(key, value, refusal):
    c = config.defaults()
    c.pretrain.objective = 'adversarial'
    config.override(c, key, value)
    with pytest.raises(ConfigError, match=refusal) as caught:
        Experiment.from_config(c)
    assert '\n' not in str(caught.value)


@pytest.mark.parametrize('own', ['adversarial', 'mlm'])
def test_held_out_texts_are_scored_by_the_masks_of_all_phases_that_mask(own):
    c = config.defaults()
    c.update(phases=('0.1', '0.2', '0.3'))
    c.pretrain.objective = own
    for phase, objective in {'0.1': 'mlm', '0.2': 'adversarial', '0.3': 'causal'}.items():
        c.phase[phase].objective = objective
    assert planned_objective(Experiment.from_config(c), SHAPE, 'mlm').scored == ('0.1', '0.2')
    c.evaluation.settings = ('0.4', '0.2')
    assert planned_objective(Experiment.from_config(c), SHAPE, 'mlm').scored == ('0.4', '0.2')


def test_noise_that_its_type_cannot_hold_is_refused_in_one_line():
    """Clipped to 1e-5, as in the paper, it is less than bfloat16 tells apart; stretched, or in float32, it is not."""
    c = config.defaults()
    c.pretrain.update(objective='adversarial', batch_rows=ROWS, dtype='bfloat16')
    c.rows.update(row_pieces=PIECES, max_document_pieces=PIECES)

    def make(**changes):
        for dotted, value in changes.items():
            config.override(c, dotted.replace('__', '.'), value)
        return make_objective(Experiment.from_config(c), SHAPE, WORDS, PIECES, make_mesh(1), print)

    assert make().compute.dtype == jnp.bfloat16
    with pytest.raises(
        ConfigError, match=r'adversarial\.epsilon: noise of at most 1e-05 is lost in bfloat16.*float32'
    ) as caught:
        make(objective__adversarial__projection='clip')
    assert '\n' not in str(caught.value)
    make(objective__adversarial__epsilon='0.01')
    make(objective__adversarial__epsilon='1e-5', pretrain__dtype='float32')
    make(objective__adversarial__noise='dropout_only', pretrain__dtype='bfloat16')


def test_flops_by_hand():
    # A piece that attends to 10, of 16 columns and two layers: weights 2 x 2 x 16^2 x (4 + 2 x 2) = 8,192,
    # attention 2 x 4 x 10 x 16 = 1,280; head 2 x 16^2 + 2 x 16 x 1,024 = 33,280 for 0.15 of the pieces = 4,992.
    # The last layer leaves out 0.85 of its 2 x 16^2 x (1 + 2 x 2) = 2,560 behind attention: weights 6,016.
    # Two passes forward and backward: 6 x (6,016 + 1,280 + 4,992). For the noise: weights forward and backward to the
    # states alone, 2 x (6,016 + 4,992); attention 3 x 1,280; clean logits again, 0.15 x 2 x 16 x 1,024 = 4,915.2.
    shape = Bert(1000, 16, 2, 2, 32, 64)
    plain = 6 * (6016 + 1280 + 4992)
    inner = 2 * (6016 + 4992) + 3 * 1280 + 4915.2
    for noise, expected in (('worst', plain + inner), ('noise_only', plain), ('dropout_only', plain)):
        e = made(noise=noise).config
        found = type(made())(e, shape, WORDS, PIECES).flops(1, 10, 0.15)
        assert found == pytest.approx(expected), noise
