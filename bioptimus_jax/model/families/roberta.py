"""RoBERTa (Liu et al. 2019): BERT without token types, and with positions that are counted from the padding's id.

The parameters hold rows of positions that a piece can have. transformers' table begins with a row for each id up to the
padding's, which none but padding reads, and it adds row 0 of a table of token types to every piece.
"""

import dataclasses
import re
from collections.abc import Mapping
from typing import ClassVar, Self

import jax
import numpy as np

from bioptimus_jax.model.families.bert import Bert, pooler
from bioptimus_jax.model.layers import LikeBert
from bioptimus_jax.storage.files import JsonObject

POSITIONS, TYPES = 'embeddings.position_embeddings.weight', 'embeddings.token_type_embeddings.weight'


def under(prefix: str, names: Mapping[str, str]) -> dict[str, str]:
    """RoBERTa's `modules` or `tied` for a family whose encoder has another name."""
    return {ours: re.sub('^roberta', prefix, theirs) for ours, theirs in names.items()}


@dataclasses.dataclass(frozen=True)
class Roberta(LikeBert):
    """A RoBERTa with its masked-language-model head; `max_positions` are the rows of transformers' table."""

    layer_norm_epsilon: float = 1e-5
    pad: int = 1

    model_type: ClassVar = 'roberta'
    title: ClassVar = 'RoBERTa'
    hf_class: ClassVar = 'RobertaForMaskedLM'
    config_keys: ClassVar = {
        **{field: key for field, key in Bert.config_keys.items() if field != 'token_types'},
        'pad': 'pad_token_id',
    }
    hf_defaults: ClassVar = {'layer_norm_eps': 1e-12, 'pad_token_id': 1}
    token_keys: ClassVar = {'pad_token_id': 'pad', 'bos_token_id': 'cls', 'eos_token_id': 'sep'}
    head_activation: ClassVar = 'gelu'
    prefix: ClassVar = 'roberta.'
    modules: ClassVar = {
        'cls/predictions/transform/dense/': 'lm_head/dense/',
        'cls/predictions/transform/LayerNorm/': 'lm_head/layer_norm/',
        'cls/predictions/': 'lm_head/',
        '': 'roberta/',
    }
    ignored: ClassVar = re.compile(
        r'pooler\.|embeddings\.(position|token_type)_ids$|lm_head\.decoder\.|classifier\.|qa_outputs\.'
    )
    tied: ClassVar = {
        'lm_head.decoder.weight': 'roberta.embeddings.word_embeddings.weight',
        'lm_head.decoder.bias': 'lm_head.bias',
    }

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.positions < 1:
            raise ValueError(
                f'{self.max_positions} positions are too few: they are counted from pad_token_id, {self.pad}, on'
            )

    @property
    def positions(self) -> int:
        return self.max_positions - self.pad - 1

    def padded_with(self, pad: int) -> Self:
        return dataclasses.replace(self, pad=pad, max_positions=self.max_positions + pad - self.pad)

    def to_config(self) -> JsonObject:
        return {**super().to_config(), 'type_vocab_size': 1}

    def untouched(self) -> Mapping[str, tuple[int, ...]]:
        """The pooler."""
        return pooler(self)

    def lost(self, tensors: Mapping[str, np.ndarray]) -> list[str]:
        """Names that are lost, with the rows of types that no piece has."""
        return [*super().lost(tensors), *[f'{TYPES}[1:]'] * (len(tensors.get(TYPES, ())) > 1)]

    def from_hf_tensors(self, tensors: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        """Tensors without rows that no piece reads; the type that every piece has is added to its position."""
        if POSITIONS not in tensors:
            return tensors
        rows, types = tensors[POSITIONS][self.pad + 1 :], tensors.get(TYPES)
        # Types of another shape stay: no parameter has their name, so that `merge_strict` refuses them.
        if (
            types is not None
            and types.ndim == rows.ndim == 2
            and types.shape[1] == rows.shape[1]
            and len(types)
        ):
            tensors = {name: tensor for name, tensor in tensors.items() if name != TYPES}
            rows = rows.astype(np.float32) + types[:1].astype(np.float32)
        return {**tensors, POSITIONS: rows}

    def to_hf_tensors(self, tensors: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        """Tensors with the rows that transformers wants and no piece reads, and a type, all zero."""
        rows = np.pad(tensors[self.prefix + POSITIONS], [(self.pad + 1, 0), (0, 0)])
        return {**tensors, self.prefix + POSITIONS: rows, self.prefix + TYPES: np.zeros_like(rows[:1])}

    def drawn_parameters(self, key: jax.Array) -> dict[str, np.ndarray]:
        """Random parameters; the row of padding is 0."""
        params = super().drawn_parameters(key)
        params[self.table][self.pad] = 0.0
        return params


FAMILY = Roberta
