"""A small model of every family, weights none of which is zero or one, and transformers' own of the same weights."""

import dataclasses
import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from bioptimus_jax.model import tensors
from bioptimus_jax.model.architecture import Architecture
from bioptimus_jax.model.config import FAMILIES
from bioptimus_jax.model.families.albert import Albert
from bioptimus_jax.model.families.bert import Bert
from bioptimus_jax.model.families.big_bird import BigBird
from bioptimus_jax.model.families.distilbert import DistilBert
from bioptimus_jax.model.families.electra import Electra
from bioptimus_jax.model.families.eurobert import EuroBert
from bioptimus_jax.model.families.gte import Gte
from bioptimus_jax.model.families.longformer import Longformer
from bioptimus_jax.model.families.modernbert import ModernBert
from bioptimus_jax.model.families.mpnet import MPNet
from bioptimus_jax.model.families.nomic_bert import NomicBert
from bioptimus_jax.model.families.roberta import Roberta
from bioptimus_jax.model.families.ultrabert import UltraBert
from bioptimus_jax.model.prenorm import FULL, SLIDING
from bioptimus_jax.model.rotary import Rope
from bioptimus_jax.model.trees import flatten, unflatten

# Their files' names are none that Python imports.
DebertaV2: Any = FAMILIES.load('deberta-v2')
MegatronBert: Any = FAMILIES.load('megatron-bert')
RobertaPreLayerNorm: Any = FAMILIES.load('roberta-prelayernorm')
ORIGINAL = 'original_max_position_embeddings'
# Vocabulary, hidden size, layers, heads, inner size, rows of the position table. 200 tokens are no multiple of 128.
SIZES = (200, 32, 2, 4, 64, 40)
RENAMED = ('camembert', 'xlm-roberta')
"""Families that are RoBERTa under another name."""
SMALL: dict[str, Architecture] = {
    'bert': Bert(*SIZES),
    'roberta': Roberta(*SIZES),
    'distilbert': DistilBert(*SIZES),
    'mpnet': MPNet(*SIZES),
    'deberta-v2': DebertaV2(*SIZES, buckets=6),
    'electra': Electra(*SIZES),
    'albert': Albert(*SIZES, embedding_size=16),
    'longformer': Longformer(*SIZES, attention_windows=(6,)),
    'megatron-bert': MegatronBert(*SIZES),
    'roberta-prelayernorm': RobertaPreLayerNorm(*SIZES),
    'gte': Gte(*SIZES),
    'nomic_bert': NomicBert(*SIZES),
    'modernbert': ModernBert(200, 32, 3, 4, 48, 40, global_every=2, local_attention=6),
    'eurobert': EuroBert(200, 32, 2, 4, 48, 40, key_heads=2, rope=Rope(500.0)),
    'ultrabert': UltraBert(200, 32, 3, 4, 48, 40, sliding_window=3, prediction_head=24),
}
YARN = (
    ('factor', 8.0),
    (ORIGINAL, 20),
    ('beta_fast', 4.0),
    ('beta_slow', 0.5),
    ('mscale', 0.7),
    ('mscale_all_dim', 0.4),
    ('truncate', False),
)
SHAPES: dict[str, Architecture] = {
    **SMALL,
    'bert, one layer, uneven, untied': Bert(
        131, 21, 1, 3, 37, 29, token_types=3, layer_norm_epsilon=1e-5, untied=True
    ),
    'roberta, one layer, uneven, untied': Roberta(131, 21, 1, 3, 37, 29, activation='relu', untied=True),
    'distilbert, one layer, uneven, untied': DistilBert(
        131, 21, 1, 3, 37, 29, activation='relu', untied=True
    ),
    **{name: FAMILIES.load(name)(131, 16, 1, 2, 20, 29) for name in RENAMED},
    'big_bird': BigBird(131, 16, 1, 2, 20, 29),
    'roberta, padded with 0': Roberta(*SIZES, pad=0),
    'roberta, padded with the last token': Roberta(64, 16, 1, 2, 20, 96, pad=63),
    'albert, two groups of layers, as wide as its table, untied': Albert(
        131, 21, 5, 3, 37, 29, embedding_size=21, groups=2, activation='relu', untied=True
    ),
    'longformer, a window for each layer, untied': Longformer(
        131, 21, 2, 3, 37, 160, attention_windows=(4, 16), activation='relu', untied=True
    ),
    'megatron-bert, one layer, uneven, untied': MegatronBert(
        131, 21, 1, 3, 37, 29, token_types=3, activation='relu', untied=True
    ),
    'roberta-prelayernorm, one layer, uneven, untied': RobertaPreLayerNorm(
        131, 21, 1, 3, 37, 29, activation='relu', untied=True
    ),
    'gte, one layer, uneven, no types, a longer context, untied': Gte(
        131,
        24,
        1,
        3,
        37,
        160,
        token_types=0,
        activation='relu',
        rope=Rope(500.0, 'yarn', (('factor', 8.0), (ORIGINAL, 20))),
        untied=True,
    ),
    'nomic_bert, one layer, uneven, untied': NomicBert(
        131, 24, 1, 3, 37, 29, token_types=3, activation='relu', untied=True
    ),
    'electra, narrow table': Electra(
        131, 24, 2, 3, 37, 29, embedding_size=10, activation='gelu_pytorch_tanh'
    ),
    'deberta-v2, one layer, a row for every distance, untied': DebertaV2(
        131, 21, 1, 3, 37, 29, activation='relu', untied=True
    ),
    'deberta-v2, its last bucket before its last position': DebertaV2(
        131, 16, 1, 2, 20, 29, buckets=6, farthest=9
    ),
    'deberta-v2, more buckets than positions': DebertaV2(131, 16, 1, 2, 20, 29, buckets=64),
    'mpnet, one layer, uneven, untied': MPNet(131, 21, 1, 3, 37, 29, activation='relu', untied=True),
    'modernbert, one layer, uneven, untied': ModernBert(
        131, 18, 1, 3, 37, 29, layer_norm_epsilon=1e-3, untied=True
    ),
    'modernbert, no global layer but the first': ModernBert(
        131, 24, 3, 2, 20, 29, global_every=9, local_attention=9, rope=Rope(500.0), local_rope=Rope(20.0)
    ),
    'modernbert, windows beyond the text': ModernBert(131, 24, 4, 2, 20, 29, local_attention=100),
    'modernbert, a longer context': ModernBert(
        131,
        24,
        3,
        2,
        20,
        160,
        global_every=2,
        local_attention=9,
        rope=Rope(500.0, 'yarn', (('factor', 8.0), (ORIGINAL, 20))),
        local_rope=Rope(20.0, 'linear', (('factor', 3.0),)),
    ),
    'ultrabert, one layer, grouped, tied': UltraBert(
        131,
        24,
        1,
        4,
        37,
        29,
        key_heads=2,
        untied=False,
        activation='gelu',
        sliding_window=4,
        prediction_head=40,
    ),
    'ultrabert, other layers, a longer context': UltraBert(
        131,
        24,
        4,
        2,
        20,
        160,
        pattern=(FULL, SLIDING, FULL, FULL),
        rope=Rope(500.0, 'yarn', (('factor', 8.0), (ORIGINAL, 20))),
        local_rope=Rope(20.0, 'linear', (('factor', 3.0),)),
        sliding_window=5,
    ),
    'eurobert, one layer, one head of keys, tied': EuroBert(
        131, 24, 1, 3, 37, 29, key_heads=1, untied=False, activation='gelu', layer_norm_epsilon=1e-3
    ),
    'eurobert, a longer context by linear': EuroBert(
        131, 24, 2, 2, 20, 29, rope=Rope(500.0, 'linear', (('factor', 4.0),))
    ),
    'eurobert, a longer context by yarn': EuroBert(
        131, 48, 2, 2, 20, 160, rope=Rope(500.0, 'yarn', (('factor', 8.0), (ORIGINAL, 20)))
    ),
    'eurobert, every setting of yarn': EuroBert(131, 48, 1, 2, 20, 160, rope=Rope(500.0, 'yarn', YARN)),
}
"""What is compared with transformers: more than one shape where a family's code branches."""
TOLERANCE: dict[str, float] = {'modernbert': 1e-4}
"""model_type -> the largest difference from transformers in float32; 1e-5 where nothing is said."""

PLACES, TYPES = (f'embeddings.{name}_embeddings.weight' for name in ('position', 'token_type'))
ELSEWHERE = {
    name: {f'{prefix}.{TYPES}': f'{prefix}.{PLACES}'}
    for prefix, names in (
        ('roberta', ('roberta', *RENAMED)),
        ('longformer', ('longformer',)),
        ('roberta_prelayernorm', ('roberta-prelayernorm',)),
    )
    for name in names
}
"""model_type -> a tensor that is not a parameter here, as it adds to every row of another."""
OWN_LAYERS = ('bert', 'megatron-bert', 'gte', 'deberta-v2', 'modernbert', 'eurobert')
"""Families with a layer of their own; the others have that of one of these, an MPNet a part of DeBERTa's."""
EVERY = [pytest.param(name, marks=[pytest.mark.slow] * (name not in OWN_LAYERS)) for name in SMALL]
"""Families as parameters of a test of layers: those that have the layer of another are slow."""


class Model(NamedTuple):
    """A shape and its weights."""

    architecture: Architecture
    params: dict[str, Any]

    @property
    def tolerance(self) -> float:
        return TOLERANCE.get(self.architecture.model_type, 1e-5)

    def changed(self, **fields: Any) -> 'Model':
        """The same with other fields, in the layers that are left."""
        architecture = dataclasses.replace(self.architecture, **fields)
        layers = {
            str(number): self.params['encoder']['layer'][str(number)] for number in architecture.own_layers
        }
        return Model(architecture, {**self.params, 'encoder': {**self.params['encoder'], 'layer': layers}})


def noisy(architecture: Architecture) -> Model:
    """Random parameters with nothing at zero or one, so that no bias or scale can be forgotten."""
    flat = flatten(architecture.initial_parameters(jax.random.key(3)))
    random = np.random.default_rng(0)
    made = {
        path: np.asarray(v) + random.normal(0, 0.1, v.shape).astype(np.float32) for path, v in flat.items()
    }
    for path in architecture.padded:
        made[path][architecture.vocab_size :] = 0
    return Model(architecture, unflatten(made))


@functools.partial(jax.jit, static_argnums=0)
def all_states(architecture: Architecture, params: Any, batch: Any, key: Any = None) -> tuple[jax.Array, ...]:
    """Every layer's states, with dropout where there is a key."""
    return architecture.encode(params, batch, dropout_key=key, all_layers=True)


def last_states(model: Model, batch: dict[str, np.ndarray]) -> np.ndarray:
    return np.asarray(all_states(*model, batch)[-1])


def pad_of(architecture: Architecture) -> int:
    """The id that transformers takes for padding."""
    return architecture.to_config().get('pad_token_id', 0)


def with_padding(tokens: list[str], architecture: Architecture) -> list[str]:
    """The tokens, with [PAD] where the family must have it."""
    if architecture.only_pad is None:
        return tokens
    others = [token for token in tokens if token != '[PAD]']
    return [*others[: architecture.only_pad], '[PAD]', *others[architecture.only_pad :]]


def padded_batch(architecture: Architecture, lengths=(17, 9, 24), width=24) -> dict[str, np.ndarray]:
    """A document a row, and padding behind it."""
    random = np.random.default_rng(1)
    real = np.arange(width)[None] < np.array(lengths)[:, None]
    tokens = np.where(real, random.integers(2, architecture.vocab_size, real.shape), pad_of(architecture))
    positions = np.broadcast_to(np.arange(width), real.shape)
    batch = {'tokens': tokens, 'segments': real, 'positions': positions}
    return {name: value.astype(np.int32) for name, value in batch.items()}


def packed_batch(architecture: Architecture) -> dict[str, np.ndarray]:
    """One row of three documents (10, 7 and 5 pieces) and two of padding."""
    lengths = [10, 7, 5]
    tokens = np.random.default_rng(5).integers(2, architecture.vocab_size, 24)
    segments = np.concatenate([np.full(n, i + 1) for i, n in enumerate(lengths)] + [np.zeros(2)])
    positions = np.concatenate([np.arange(n) for n in lengths] + [np.arange(2)])
    tokens = np.where(segments > 0, tokens, pad_of(architecture))
    batch = {'tokens': tokens, 'segments': segments, 'positions': positions}
    return {name: value.astype(np.int32)[None] for name, value in batch.items()}


def torch_model(model: Model):
    """The family's class in transformers with these weights, which must be all of its parameters but tied ones."""
    import torch
    import transformers

    architecture = model.architecture
    settings = transformers.AutoConfig.for_model(
        architecture.model_type,
        **{'pad_token_id': 0, **architecture.to_config(), 'tie_word_embeddings': not architecture.untied},
        attn_implementation='eager',
    )
    made = getattr(transformers, architecture.hf_class)(settings).eval()
    state = tensors.to_tensors(model.params, architecture)
    result = made.load_state_dict({name: torch.from_numpy(v) for name, v in state.items()}, strict=False)
    assert set(result.missing_keys) == (set() if architecture.untied else set(architecture.tied))
    assert not result.unexpected_keys
    return made


def torch_inputs(batch: dict[str, np.ndarray]) -> dict[str, Any]:
    import torch

    names = {'tokens': 'input_ids', 'segments': 'attention_mask', 'token_types': 'token_type_ids'}
    return {names[n]: torch.from_numpy(v.astype(np.int64)) for n, v in batch.items() if n in names}


@functools.partial(jax.jit, static_argnums=0)
def masked_lm(architecture: Architecture, params: Any, batch: Any, slots: Any, targets: Any) -> Any:
    """States of all layers, logits over the padded vocabulary, the mean loss of some slots, and its gradients."""

    def loss(params: Any) -> tuple[jax.Array, Any]:
        states = architecture.encode(params, batch, all_layers=True)
        logits = architecture.masked_lm_logits(params, states[-1])
        chosen = jnp.take_along_axis(logits, slots[:, :, None], axis=1)
        log_shares = jnp.take_along_axis(jax.nn.log_softmax(chosen), targets[:, :, None], axis=-1)
        return -log_shares.mean(), (states, logits)

    (value, (states, logits)), gradients = jax.value_and_grad(loss, has_aux=True)(params)
    return states, logits, value, gradients
