"""BigBird (Zaheer et al. 2020, arXiv 2007.14062), as is Clinical-BigBird: a BERT of long documents, in full attention.

Its blocks of sparse attention are refused: they are drawn at random in training, and in evaluation transformers counts
the first block several times instead (findings/first-block-again.sh).
"""

import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar, Self

import numpy as np

from bioptimus_jax.errors import InputError
from bioptimus_jax.model.families.bert import Bert, judge, pooler
from bioptimus_jax.model.layers import LikeBert
from bioptimus_jax.storage.files import JsonObject

TYPE, FULL, SPARSE = 'attention_type', 'original_full', 'block_sparse'


@dataclasses.dataclass(frozen=True)
class BigBird(LikeBert):
    """A BigBird with its masked-language-model head."""

    activation: str = 'gelu_new'
    token_types: int = 2

    model_type: ClassVar = 'big_bird'
    title: ClassVar = 'BigBird'
    hf_class: ClassVar = 'BigBirdForMaskedLM'
    config_keys: ClassVar = Bert.config_keys
    supported: ClassVar = {**LikeBert.supported, 'rescale_embeddings': False, 'use_bias': True}
    token_keys: ClassVar = {
        'pad_token_id': 'pad',
        'bos_token_id': 'cls',
        'eos_token_id': 'sep',
        'sep_token_id': 'sep',
    }
    prefix: ClassVar = 'bert.'
    modules: ClassVar = Bert.modules
    ignored: ClassVar = Bert.ignored
    tied: ClassVar = Bert.tied

    @classmethod
    def from_config(cls, values: JsonObject, file: Path) -> Self:
        """The architecture of a config.json with full attention. Raises InputError for another."""
        if (given := values.get(TYPE, SPARSE)) != FULL:
            raise InputError(
                f'{file}: {TYPE} is {given!r}, which transformers computes otherwise in training than in evaluation; '
                f'set it to {FULL!r}, which counts every piece once'
            )
        return super().from_config(values, file)

    def to_config(self) -> JsonObject:
        return {**super().to_config(), TYPE: FULL}

    def untouched(self) -> Mapping[str, tuple[int, ...]]:
        """Pooler and head of next sentences."""
        return judge(self, 'pooler')

    def to_hf_tensors(self, tensors: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        """Tensors with a pooler, all zero, which transformers' class has and does not compute with."""
        zeros = {name: np.zeros(shape, np.float32) for name, shape in pooler(self, 'pooler').items()}
        return {**tensors, **zeros}


FAMILY = BigBird
