"""DeBERTa-v2 and DeBERTa-v3 (He et al. 2021, arXiv 2006.03654, 2111.09543): BERT's layers with disentangled attention.

Beside the product of query and key a score has two of a content and a distance: the query with a key for the distance,
and the key with a query for it. No piece has a position of its own. One table of distances, normalised, is read by all
layers, and made into keys and queries by the matrices of contents.

B rows, L places, O distances of two places of a row, R rows of the table of distances, H heads, K size of a head.
"""

import dataclasses
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Self

import flax.linen as nn
import jax
import jax.numpy as jnp

from bioptimus_jax.config.bounds import LARGEST_SIZE
from bioptimus_jax.errors import InputError
from bioptimus_jax.model.architecture import Context, Rule
from bioptimus_jax.model.compute import Compute
from bioptimus_jax.model.layers import RULES, SIZES, Dense, LikeBert, ModelPart, SelfAttention
from bioptimus_jax.model.relative import distances_O, log_buckets, spread
from bioptimus_jax.storage.files import JsonObject

ABSENT: Mapping[str, Any] = {
    'relative_attention': False,
    'share_att_key': False,
    'position_biased_input': True,
    'norm_rel_ebd': 'none',
    'pos_att_type': '',
}
"""What transformers takes for a key that config.json lacks, of those that may have one value here."""
BOTH, NORM = ('c2p', 'p2c'), 'layer_norm'
BUCKETS, FARTHEST = 'position_buckets', 'max_relative_positions'
PRODUCTS = 1 + len(BOTH)
OWN_HEAD = {
    'lm_predictions.lm_head.bias': 'cls.predictions.bias',
    'lm_predictions.lm_head.': 'cls.predictions.transform.',
}
"""Names of the head in the published files, and in transformers' class as it is by default: they compute the same."""


class Words(ModelPart):
    """Word rows, normalised."""

    @nn.compact
    def __call__(self, batch: Context, seed_2: jax.Array | None, delta_BxLxD: jax.Array | None) -> jax.Array:
        words_BxLxD = self.words(batch, delta_BxLxD)
        # No table ends here: NaN shows a position that the model was not made for, as a missing row does in BERT.
        known_BxLx1 = (batch['positions'] < self.architecture.positions)[:, :, None]
        return self.drop(self.normal(jnp.where(known_BxLx1, words_BxLxD, jnp.nan)), seed_2)


class Distances(ModelPart):
    """The table of distances, normalised: RxD."""

    @nn.compact
    def __call__(self, batch: Context) -> jax.Array:
        del batch
        a: Any = self.architecture
        rows_R = jnp.arange(2 * a.span)
        return self.normal(nn.Embed(2 * a.span, a.hidden, dtype=jnp.float32, name='rel_embeddings')(rows_R))


class DisentangledAttention(SelfAttention):
    """Self-attention with these products; each of the three is divided by the root of three times the head's size."""

    @nn.compact
    def __call__(self, hidden_BxLxD: jax.Array, batch: Context, seed_2: jax.Array | None) -> jax.Array:
        a: Any = self.architecture
        length, dtype = hidden_BxLxD.shape[1], self.compute.dtype
        to_query, to_key = (Dense(a.hidden, dtype=dtype, name=name) for name in ('query', 'key'))
        # The weights of attention take two numbers of the site, the first and the next one.
        table_RxD = self.drop(batch['of_all_layers'], seed_2, 2)
        query, key = self.heads_of(to_query(hidden_BxLxD)), self.heads_of(to_key(hidden_BxLxD))
        value = self.heads_of(self.dense(a.hidden, hidden_BxLxD, 'value'))
        rows_O = jnp.asarray(
            log_buckets(distances_O(length), a.buckets, a.farthest if a.buckets else a.max_positions)
        )
        query_OxHxK, key_OxHxK = (
            jnp.take(to(table_RxD), rows_O, axis=0).reshape(-1, a.heads, a.head_size)
            for to in (to_query, to_key)
        )
        products = {'preferred_element_type': jnp.float32}
        of_query_BxHxLxO = jnp.einsum('bqhk,ohk->bhqo', query, key_OxHxK, **products)
        # A key's distances run the other way, so that the same `spread` lays them out.
        of_key_BxHxLxO = jnp.einsum('bshk,ohk->bhso', key, query_OxHxK[::-1], **products)
        sum_BxHxLxL = spread(of_query_BxHxLxO) + jnp.swapaxes(spread(of_key_BxHxLxO), 2, 3)
        bias_BxHxLxL = sum_BxHxLxL * (PRODUCTS * a.head_size) ** -0.5
        query = (query.astype(jnp.float32) * PRODUCTS**-0.5).astype(dtype)
        return self.attended(query, key, value, batch['ranges'], seed_2, bias_BxHxLxL=bias_BxHxLxL)


@dataclasses.dataclass(frozen=True)
class DebertaV2(LikeBert):
    """A DeBERTa-v2 or -v3 with its masked-language-model head.

    `buckets`: rows of distances to each side; 0: a row for every distance below `max_positions`. `farthest`: where the
    last bucket begins, which stays where it is if the model gets more positions; 0: at `max_positions`.
    """

    layer_norm_epsilon: float = 1e-7
    buckets: int = 0
    farthest: int = 0

    model_type: ClassVar = 'deberta-v2'
    title: ClassVar = 'DeBERTa'
    hf_class: ClassVar = 'DebertaV2ForMaskedLM'
    biased_scores: ClassVar = True
    score_products: ClassVar = PRODUCTS
    config_keys: ClassVar = {
        **SIZES,
        'layer_norm_epsilon': 'layer_norm_eps',
        'dropout': 'hidden_dropout_prob',
        'attention_dropout': 'attention_probs_dropout_prob',
        'initializer_range': 'initializer_range',
        'activation': 'hidden_act',
    }
    supported: ClassVar = {
        'relative_attention': True,
        'share_att_key': True,
        'position_biased_input': False,
        'type_vocab_size': 0,
        'conv_kernel_size': 0,
        'is_decoder': False,
    }
    hf_defaults: ClassVar = {'layer_norm_eps': 1e-7}
    prefix: ClassVar = 'deberta.'
    modules: ClassVar = {'cls/': 'cls/', '': 'deberta/'}
    ignored: ClassVar = re.compile(
        r'embeddings\.position_(ids|embeddings\.weight)$|cls\.predictions\.decoder\.|mask_predictions\.|pooler\.|'
        r'classifier\.|qa_outputs\.'
    )
    tied: ClassVar = {
        'cls.predictions.decoder.weight': 'deberta.embeddings.word_embeddings.weight',
        'cls.predictions.decoder.bias': 'cls.predictions.bias',
    }
    rules: ClassVar[Sequence[Rule]] = (
        Rule(r'^encoder/rel_embeddings/embedding$', (None, 'fsdp')),
        *RULES,
    )
    self_attention: ClassVar = DisentangledAttention

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.farthest:
            object.__setattr__(self, 'farthest', self.max_positions)

    @classmethod
    def from_config(cls, values: JsonObject, file: Path) -> Self:
        """The architecture; what is written of its attention must be what is computed here."""
        given = {**ABSENT, **{name: value for name, value in values.items() if value is not None}}
        types = given['pos_att_type']
        named = types.lower().split('|') if isinstance(types, str) else types
        if not isinstance(named, list) or sorted(str(name).strip() for name in named) != [*BOTH]:
            raise InputError(f'{file}: pos_att_type is {types!r}; only {"|".join(BOTH)} is supported')
        if (norm := given['norm_rel_ebd']) != NORM:
            raise InputError(f'{file}: norm_rel_ebd is {norm!r}; only {NORM!r} is supported')
        made = super().from_config(given, file)
        for name, only in (('embedding_size', made.hidden), ('attention_head_size', made.head_size)):
            if given.get(name, only) != only:
                raise InputError(f'{file}: {name} is {given[name]!r}; only {only!r} is supported')
        for name in (BUCKETS, FARTHEST):
            number = given.get(name, -1)
            if not isinstance(number, int) or number == 1 or number > LARGEST_SIZE:
                raise InputError(f'{file}: {name} is {number!r}; -1 or a whole number from 2 is expected')
        buckets, farthest = (max(given.get(name, -1), 0) for name in (BUCKETS, FARTHEST))
        if not buckets and farthest not in (0, made.max_positions):
            raise InputError(
                f'{file}: {FARTHEST} is {farthest}, and there are no {BUCKETS}; only {made.max_positions}, a row for '
                'each distance in a text, is supported'
            )
        return dataclasses.replace(made, buckets=buckets, farthest=farthest or made.max_positions)

    @classmethod
    def plain_name(cls, name: str) -> str:
        """A tensor's name without the prefix; the head of published files has transformers' usual names."""
        for theirs, usual in OWN_HEAD.items():
            if name.startswith(theirs):
                return usual + name.removeprefix(theirs)
        return super().plain_name(name)

    @classmethod
    def tensor_name(cls, path: str) -> str:
        return re.sub(r'\.self\.(query|key|value)\.', r'.self.\1_proj.', super().tensor_name(path))

    def to_config(self) -> JsonObject:
        said = {'pos_att_type': [*BOTH], 'norm_rel_ebd': NORM}
        distances = {BUCKETS: self.buckets or -1, FARTHEST: self.farthest if self.buckets else -1}
        computed = {
            name: self.supported[name] for name in (*ABSENT, 'type_vocab_size') if name in self.supported
        }
        # The head that `legacy` names is the one that transformers resizes and ties.
        return {**super().to_config(), **computed, **said, **distances, 'legacy': True}

    @property
    def span(self) -> int:
        """Rows of distances to each side."""
        return self.buckets or self.max_positions

    def embeddings(self, compute: Compute) -> nn.Module:
        return Words(self, compute)

    def of_all_layers(self, compute: Compute) -> nn.Module:
        return Distances(self, compute)


FAMILY = DebertaV2
