"""Causal language modelling against transformers, document by document; and through the loop, before masking."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from toy_pretraining import assert_same_bits, copy_of, experiment, killed_copy, pretrained

from bioptimus_jax.experiment.config import defaults
from bioptimus_jax.experiment.schema import Experiment
from bioptimus_jax.experiment.stages import STAGES
from bioptimus_jax.model.families.bert import Bert
from bioptimus_jax.model.families.modernbert import ModernBert
from bioptimus_jax.model.tensors import load_folder, to_tensors
from bioptimus_jax.model.trees import flatten
from bioptimus_jax.pretrain import curriculum, loop
from bioptimus_jax.pretrain.checkpoint import Checkpoints
from bioptimus_jax.pretrain.objective import make_objective
from bioptimus_jax.pretrain.shape import RowCounts
from bioptimus_jax.pretrain.sharding import make_mesh
from bioptimus_jax.pretrain.step import sharded_step
from bioptimus_jax.run.execute import execute
from bioptimus_jax.run.folder import Run
from bioptimus_jax.tokenizer.kinds.wordpiece import SPECIAL_TOKENS, make

PIECES, VOCABULARY = 32, 40
LENGTHS = np.array([[32, 0, 0], [7, 20, 1], [2, 3, 9], [16, 16, 0]], np.int32)
FAMILIES = {
    'bert': Bert(VOCABULARY, 16, 1, 2, 24, PIECES, dropout=0.0, attention_dropout=0.0, initializer_range=0.3),
    # Layers with a window of 2 to the left, in one of which rows are cut into blocks.
    'modernbert': ModernBert(
        VOCABULARY, 16, 3, 2, 24, 64, 0.0, 0.0, initializer_range=0.3, global_every=3, local_attention=4
    ),
}


def settings(**changes):
    config = defaults()
    config.pretrain.update(objective='causal', batch_rows=4, clip_norm=0.0, **changes)
    for name in config.phases:
        config.phase[name].update(duration=1.0, duration_unit='steps')
    return Experiment.from_config(config)


def objective_of(family, pieces=PIECES, **changes):
    words = make([*SPECIAL_TOKENS, *(f't{n}' for n in range(VOCABULARY - 5))], True)
    return make_objective(settings(**changes), FAMILIES[family], words, pieces, make_mesh(1), print)


def rows(pieces=PIECES):
    """Documents of LENGTHS, then padding."""
    tokens = np.random.default_rng(0).integers(5, VOCABULARY, (len(LENGTHS), pieces)).astype(np.int32)
    tokens[np.arange(pieces)[None] >= LENGTHS.sum(1, keepdims=True)] = 0
    return {'tokens': tokens, 'segment_lengths': LENGTHS}


def documents(batch):
    for tokens_L, lengths in zip(batch['tokens'], batch['segment_lengths']):
        ends = np.cumsum(lengths)
        yield from (tokens_L[end - n : end] for n, end in zip(lengths, ends) if n > 1)


@functools.cache
def mean_loss(family):
    """A function of parameters and batch: the loss with the sums, and the gradients."""
    objective = objective_of(family)

    def mean(params, batch):
        example = objective.example(batch, {}, jnp.zeros(0))
        terms, sums = objective.loss(params, {}, example.rows, None)
        return terms['pieces'] / example.weights['pieces'], sums

    return jax.jit(jax.value_and_grad(mean, has_aux=True))


@pytest.fixture(scope='module')
def initial():
    return {name: model.initial_parameters(jax.random.key(1)) for name, model in FAMILIES.items()}


def test_packed_rows_are_what_transformers_makes_of_single_documents(initial):
    """Mean loss, and the gradient of every parameter."""
    import torch
    import transformers

    model, params = FAMILIES['bert'], initial['bert']
    batch = rows()
    (loss, sums), gradients = mean_loss('bert')(params, batch)
    config = transformers.BertConfig(
        **{**model.to_config(), 'is_decoder': True, 'attn_implementation': 'eager'}
    )
    theirs = transformers.BertLMHeadModel(config).eval()
    tensors = {name: torch.from_numpy(value.copy()) for name, value in to_tensors(params, model).items()}
    assert not theirs.load_state_dict(tensors, strict=False).unexpected_keys
    theirs.tie_weights()
    total, count, right = 0.0, 0, 0
    for document in documents(batch):
        ids = torch.from_numpy(document.astype(np.int64))[None]
        logits = theirs(input_ids=ids).logits[0, :-1]
        total = total + torch.nn.functional.cross_entropy(logits, ids[0, 1:], reduction='sum')
        count, right = count + len(document) - 1, right + int((logits.argmax(-1) == ids[0, 1:]).sum())
    (total / count).backward()
    assert count == LENGTHS.sum() - (LENGTHS > 0).sum()
    assert float(sums['weight']) == count
    assert float(sums['correct']) == right
    assert float(loss) == pytest.approx((total / count).item(), rel=1e-5)
    wanted = {n: p.grad for n, p in theirs.named_parameters() if p.grad is not None}
    found = to_tensors(gradients, model)
    largest = max(float(g.abs().max()) for g in wanted.values())
    assert len(found) == len(wanted)
    for name, gradient in found.items():
        np.testing.assert_allclose(gradient, wanted[name].numpy(), atol=1e-5 * largest, err_msg=name)


@pytest.mark.parametrize('family', FAMILIES)
def test_no_piece_sees_what_follows_it_or_another_document(family, initial):
    """The gradient of one position's loss by the embedding of every piece, to the last bit; and packed as alone."""
    objective, params, batch = objective_of(family), initial[family], rows()
    example = objective.example(batch, {}, jnp.zeros(0))
    inputs = {
        'tokens': batch['tokens'],
        'segments': example.rows.segments_BxL,
        'positions': example.rows.positions_BxL,
    }

    @jax.jit
    def states(delta):
        return objective.architecture.encode(params, inputs, compute=objective.compute, embedding_delta=delta)

    @jax.jit
    def reached(delta, row, place):
        gradient = jax.grad(lambda delta: (states(delta)[row, place] ** 3).sum())(delta)
        return jnp.abs(gradient).max(-1) > 0

    nothing = jnp.zeros((*batch['tokens'].shape, 16))
    for row, place, first in ((0, 20, 0), (1, 12, 7), (1, 26, 7), (3, 16, 16)):
        seen = np.asarray(reached(nothing, row, place))
        assert not np.delete(seen, row, axis=0).any()
        assert not seen[row, :first].any()
        assert not seen[row, place + 1 :].any()
        assert seen[row, place]
        assert seen[row, first : place + 1].all() or family == 'modernbert'
    packed = np.asarray(states(nothing))
    alone = {'tokens': batch['tokens'][1:2, 7:27]}
    alone |= {'segments': jnp.ones((1, 20), jnp.int32), 'positions': jnp.arange(20)[None]}
    single = jax.jit(lambda p: objective.architecture.encode(p, alone, compute=objective.compute))(params)
    np.testing.assert_allclose(packed[1, 7:27], single[0], atol=2e-5)


def test_micro_batches_are_one_batch(initial):
    """Whose documents have different numbers of pieces to tell. Adam's first moment is a tenth of the gradient."""
    objective = objective_of('bert', micro_batches=4, ema=0.75)
    e = objective.config
    table = curriculum.table(curriculum.make_schedule(e, RowCounts(4, 1, 1)), e)
    step, state = sharded_step(objective, make_mesh(1), initial['bert'])
    state, metrics = step(state, rows(), table)
    average, after, moments = (
        flatten(x) for x in (state['average'], state['params'], state['optimizer'][1].mu)
    )
    for name, before in flatten(initial['bert']).items():
        by_hand = 0.75 * before + 0.25 * np.asarray(after[name])
        np.testing.assert_allclose(average[name], by_hand, atol=1e-7, err_msg=name)
    (loss, _), gradients = mean_loss('bert')(initial['bert'], rows())
    assert float(metrics['loss']) == pytest.approx(float(loss), rel=1e-6)
    for name, gradient in flatten(gradients).items():
        np.testing.assert_allclose(moments[name], np.asarray(gradient) * 0.1, atol=1e-7, err_msg=name)


def test_flops_count_every_pair_that_is_seen():
    """Six for a weight and a piece, twelve for a column and a pair; the head for each piece that tells one."""
    objective, model = objective_of('bert'), FAMILIES['bert']
    n = LENGTHS[LENGTHS > 0].astype(float)
    pairs, told = (n * (n + 1) / 2).sum(), (n - 1).sum()
    weights = {p: np.prod(s) for p, s in model.shapes().items() if p.endswith('/kernel')}
    head = sum(w for p, w in weights.items() if p.startswith('cls/'))
    encoder = sum(weights.values()) - head
    by_hand = 6 * encoder * n.sum() + 12 * 16 * model.layers * pairs + 6 * told * (head + 128 * 16)
    assert objective.flops(int(n.sum()), (n**2).sum(), told) == pytest.approx(by_hand)


CHANGES = {
    'phases': '0.1,0.4',
    'phase__0__1__objective': 'causal',
    'pretrain__optimizer': 'muon',
    'pretrain__ema': '0.9',
    'model__dropout': '0',
    'model__attention_dropout': '0',
    'runtime__checkpoint_every_steps': '4',
}


def test_causal_then_masked_is_the_same_after_a_kill_in_the_first_phase(prepared, tmp_path):
    """The run's own objective masks: it scores held-out documents throughout, and its records begin in its phase.

    A mixture with a causal phase is killed in the phase behind it in test_objectives.py.
    """
    e = experiment(prepared, **CHANGES)
    whole = Run(copy_of(prepared, tmp_path), e, quiet=True)
    with killed_copy(whole, tmp_path / 'killed', lambda step: step > 4):
        pretrained(whole)
    assert_same_bits(whole, pretrained(Run(tmp_path / 'killed', e, quiet=True)), *e.phases)
    records = whole.metrics.of('pretrain')
    trained = [r for r in records if r['kind'] == 'train']
    assert {r['phase'] for r in trained if 'realised_rate' not in r} == {'0.1'}
    assert {r['phase'] for r in trained if 'realised_rate' in r} == {'0.4'}
    scored = [r for r in records if r['kind'] == 'evaluation']
    assert [r['phase'] for r in scored] == ['initial', '0.1', '0.4']
    assert all(set(r['losses']) == {'0.4'} for r in scored if r['phase_end'])


def test_evaluations_and_exports_take_the_running_average(prepared, tmp_path, monkeypatch):
    """The weights are far from it; neither may fall back on the weights themselves."""
    run = Run(copy_of(prepared, tmp_path), experiment(prepared, **CHANGES), quiet=True)
    saved, scored, save, watched = {}, [], Checkpoints.save, loop.with_entities

    def saving(checkpoints, step, state):
        saved[step] = {part: flatten(jax.device_get(state[part])) for part in ('params', 'average')}
        save(checkpoints, step, state)

    def watching(evaluation, *others):
        evaluation, own = watched(evaluation, *others), evaluation.scores

        def scores(params, *rest):
            scored.append(flatten(jax.device_get(params)))
            return own(params, *rest)

        object.__setattr__(evaluation, 'scores', scores)
        return evaluation

    monkeypatch.setattr(Checkpoints, 'save', saving)
    monkeypatch.setattr(loop, 'with_entities', watching)
    pretrained(run)
    execute(run, STAGES['export'])
    steps = curriculum.recorded_phases(run.folder('pretrain'))
    assert list(steps) == ['0.1', '0.4']
    at = {r['step']: weights for r, weights in zip(evaluations(run), scored, strict=True)}
    for phase, step in steps.items():
        exported = flatten(load_folder(run.folder('export') / phase)[1])
        for name, average in saved[step]['average'].items():
            np.testing.assert_array_equal(at[step][name], average, err_msg=f'evaluation, {phase} {name}')
            np.testing.assert_array_equal(exported[name], average, err_msg=f'export, {phase} {name}')
        moved = [np.abs(saved[step]['params'][n] - a).max() for n, a in saved[step]['average'].items()]
        assert max(moved) > 1e-3


def evaluations(run):
    return [r for r in run.metrics.of('pretrain') if r['kind'] == 'evaluation']


def test_a_causal_run_alone_is_scored_by_its_own_loss(prepared, tmp_path):
    e = experiment(prepared, **{**CHANGES, 'pretrain__objective': 'causal', 'evaluation__rows': '5'})
    run = pretrained(Run(copy_of(prepared, tmp_path), e, quiet=True))
    scored = [r['frozen_loss'] for r in run.metrics.of('pretrain') if r['kind'] == 'evaluation']
    assert scored[0] == pytest.approx(np.log(300), rel=0.05)  # of so many entries
    assert scored[-1] < scored[0]
    with np.load(run.folder('pretrain') / 'heldout.npz') as stored:
        assert stored['tokens'].shape == (1, 5, 32)
