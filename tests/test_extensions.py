"""Objectives as somebody outside writes them, each in one file: randomness of its own, and a rate for each row."""

import dataclasses
import sys

import jax
import numpy as np
import pytest
from toy_pretraining import of_letters

from bioptimus_jax.model.families.bert import Bert
from bioptimus_jax.pretrain import curriculum, objectives, units
from bioptimus_jax.pretrain.masking import row_keys, seed_key
from bioptimus_jax.pretrain.memory import step_memory
from bioptimus_jax.pretrain.objective import make_objective, masking_of, most_places
from bioptimus_jax.pretrain.shape import RowCounts
from bioptimus_jax.pretrain.sharding import batch_sharding, make_mesh, replicated
from bioptimus_jax.pretrain.step import example_at
from bioptimus_jax.tokenizer.kinds.wordpiece import SPECIAL_TOKENS, make

PIECES, ROWS, LETTERS = 32, 8, 'abcdefghijklmnopqrst'
SUBWORDS = make([*SPECIAL_TOKENS, *LETTERS], True)
# Two views of each row differ in noise on the embeddings; each has to find the other among all rows of the batch.
TWO_VIEWS = '''
"""Contrastive learning of two views of a row (Gao et al. 2021), with noise in place of dropout."""

import jax
import jax.numpy as jnp

from bioptimus_jax.pretrain.objectives.mlm import MaskedLM, inputs


class TwoViews(MaskedLM):
    """Masked language modelling, and the cross-entropy of finding the other view of a row."""

    def example(self, batch, setting, keys_B):
        example = super().example(batch, setting, keys_B)
        views = {name: self.keys(keys_B, name) for name in ('first', 'second')}
        weights = {**example.weights, 'rows': jnp.float32(len(keys_B))}
        return example._replace(rows=(example.rows, views), weights=weights)

    def loss(self, params, frozen, rows, dropout_key):
        rows, views = rows
        terms, sums = super().loss(params, frozen, rows, dropout_key)
        batch, shape = inputs(rows), (rows.segments_BxL.shape[1], self.architecture.hidden)

        def view(keys_B):
            noise = jax.vmap(lambda key: jax.random.normal(key, shape))(keys_B)
            states = self.architecture.encode(params, batch, compute=self.compute, embedding_delta=noise)
            first_BxD = states[:, 0].astype(jnp.float32)
            return first_BxD / jnp.linalg.norm(first_BxD, axis=-1, keepdims=True)

        same_BxB = view(views['first']) @ view(views['second']).T / 0.05
        found_B = jnp.diagonal(jax.nn.log_softmax(same_BxB))
        return {**terms, 'rows': -found_B.sum()}, sums


OBJECTIVE = TwoViews
'''
# Of every row another share is hidden, and the loss of its pieces is divided by that share (Austin et al. 2021).
DIFFUSION = '''
"""Discrete diffusion by masking: each row draws its rate, and its loss is divided by it."""

from bioptimus_jax.pretrain.masking import MaskingParams
from bioptimus_jax.pretrain.objectives.mlm import MaskedLM


class Diffusion(MaskedLM):
    """An upper bound on the likelihood of a row."""

    def example(self, batch, setting, keys_B):
        example = super().example(batch, setting, keys_B)
        rates_B = self.masker.row_rates(setting, keys_B)
        pieces = (example.rows.segments_BxL > 0).sum()
        return example._replace(rows=(example.rows, rates_B), weights={'pieces': pieces})

    def loss(self, params, frozen, rows, dropout_key):
        rows, rates_B = rows
        masked = rows.masked._replace(weights_M=rows.masked.weights_M / rates_B[:, None])
        states_BxMxD = self.states(params, rows, dropout_key, masked.slots_M)
        bound, *_ = self.slot_losses(params, states_BxMxD, masked)
        _, sums = super().loss(params, frozen, rows, dropout_key)
        return {'pieces': bound}, sums


OBJECTIVE = Diffusion
'''


@pytest.fixture(scope='module', autouse=True)
def outside(tmp_path_factory):
    """A folder of somebody else's with the two files, where the package looks too."""
    folder = tmp_path_factory.mktemp('outside')
    (folder / 'two_views.py').write_text(TWO_VIEWS)
    (folder / 'diffusion.py').write_text(DIFFUSION)
    (folder / 'vocab.txt').write_text('\n'.join(SUBWORDS.tokens))
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(objectives, '__path__', [*objectives.__path__, str(folder)])
        rate = units.Strategy(
            units.MASKINGS['tokens'].unit_starts, pieces=1, rate=lambda rate, draw: 0.02 + 0.98 * draw
        )
        patched.setitem(units.MASKINGS, 'any_rate', rate)
        yield folder
    for name in ('two_views', 'diffusion'):
        sys.modules.pop(f'{objectives.__name__}.{name}', None)


def made(folder, objective, devices=1, scored=True, **changes):
    """The experiment, its objective, and what the first step predicts on so many devices, with its loss."""
    asked = {'pretrain.objective': objective, 'pretrain.batch_rows': ROWS, **changes}
    experiment, mesh = of_letters(folder, PIECES, ('0.1',), **asked), make_mesh(devices)
    model = Bert(len(SUBWORDS.tokens), 16, 1, 2, 16, PIECES, dropout=0.0, attention_dropout=0.0)
    objective = make_objective(experiment, model, SUBWORDS, PIECES, mesh, print)
    schedule = curriculum.make_schedule(experiment, RowCounts(ROWS, 1, 1))
    table = curriculum.table(schedule, experiment)
    tokens = np.random.default_rng(0).integers(5, len(SUBWORDS.tokens), (ROWS, PIECES)).astype(np.int32)
    batch = {
        'tokens': tokens,
        'word_starts': tokens > 0,
        'segment_lengths': np.full((ROWS, 1), PIECES, np.int32),
    }
    params = jax.device_put(model.initial_parameters(jax.random.key(0)), replicated(mesh))

    @jax.jit
    def first(params, batch):
        example = example_at(objective, batch, table, 0)
        if not scored:
            return example, {}
        terms, _ = objective.loss(params, {}, example.rows, None)
        return example, {name: terms[name] / weight for name, weight in example.weights.items()}

    return experiment, objective, *first(params, jax.device_put(batch, batch_sharding(mesh)))


def test_an_objective_draws_from_keys_of_its_own(outside):
    _, objective, example, one = made(outside, 'two_views')
    *_, four = made(outside, 'two_views', 4)
    assert one.keys() == {'slots', 'rows'}
    for name in one:
        np.testing.assert_allclose(four[name], one[name], rtol=1e-5, err_msg=name)
    rows, views = example.rows
    drawn = {name: np.asarray(jax.random.key_data(keys)).tolist() for name, keys in views.items()}
    assert len({str(keys) for of_name in drawn.values() for keys in of_name}) == 2 * ROWS
    # Every row by its place in the global batch, however many there are of it.
    keys_B = row_keys(seed_key(0), jax.numpy.int32(0), ROWS)
    part = objective.keys(keys_B[3:5], 'first')
    assert jax.random.key_data(part).tolist() == drawn['first'][3:5]
    _, _, plain, _ = made(outside, 'mlm', scored=False)
    for name, masked in plain.rows.masked._asdict().items():
        np.testing.assert_array_equal(masked, getattr(rows.masked, name), err_msg='masks are those of mlm')


def test_each_row_is_masked_and_weighed_at_its_own_rate(outside):
    chosen = {'phase.0.1.masking': 'any_rate'}
    experiment, objective, example, terms = made(outside, 'diffusion', **chosen)
    rows, rates_B = example.rows
    of_rows = np.asarray(rows.masked.weights_M).sum(axis=1) / PIECES
    np.testing.assert_allclose(of_rows, rates_B, atol=1 / PIECES)
    assert np.ptp(of_rows) > 0.4
    assert float(terms['pieces']) == pytest.approx(np.log(len(SUBWORDS.tokens)), rel=0.25)
    assert most_places(experiment) == rows.masked.slots_M.shape[1] == PIECES
    assert objective.share(experiment.phase['0.1']) == pytest.approx(0.51, abs=1e-3)
    plain = dataclasses.replace(
        experiment, phase={'0.1': dataclasses.replace(experiment.phase['0.1'], masking='tokens')}
    )
    shape = objective.architecture
    more, less = (step_memory(e, shape, 'cpu', 1).output_layer for e in (experiment, plain))
    assert more == pytest.approx(less * PIECES / most_places(plain))
    words = make_words(experiment)
    assert words == ('any_rate', 'a rate for each row, 51% on average', '80-10-10')


def make_words(experiment):
    """How the phase masks, as masked language modelling says it."""
    changed = dataclasses.replace(experiment.pretrain, objective='mlm')
    return masking_of(dataclasses.replace(experiment, pretrain=changed), '0.1')
