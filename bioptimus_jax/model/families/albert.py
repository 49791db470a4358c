"""ALBERT (Lan et al. 2020, arXiv 1909.11942), BioM-ALBERT and BioALBERT: a BERT whose layers share their weights.

The table of embeddings is narrower than the model. Layers of one group have the same weights, and the published models
have one group.
"""

import dataclasses
import re
from collections.abc import Mapping, Sequence
from typing import ClassVar

from bioptimus_jax.model.architecture import IN_LAYER, Rule
from bioptimus_jax.model.families.bert import Bert, judge
from bioptimus_jax.model.layers import RULES, LikeBert

THEIRS = {
    'attention/self/': 'attention/',
    'attention/output/': 'attention/',
    'intermediate/dense/': 'ffn/',
    'output/dense/': 'ffn_output/',
    'output/LayerNorm/': 'full_layer_layer_norm/',
}
"""Parts of our paths -> parts of theirs; the first that fits decides."""


@dataclasses.dataclass(frozen=True)
class Albert(LikeBert):
    """An ALBERT with its masked-language-model head; `groups` of layers, side by side, have the same weights."""

    dropout: float = 0.0
    attention_dropout: float = 0.0
    activation: str = 'gelu_new'
    token_types: int = 2
    embedding_size: int = 128
    groups: int = 1

    model_type: ClassVar = 'albert'
    title: ClassVar = 'ALBERT'
    hf_class: ClassVar = 'AlbertForMaskedLM'
    config_keys: ClassVar = {
        **Bert.config_keys,
        'embedding_size': 'embedding_size',
        'groups': 'num_hidden_groups',
    }
    supported: ClassVar = {**LikeBert.supported, 'inner_group_num': 1}
    token_keys: ClassVar = {'pad_token_id': 'pad', 'bos_token_id': 'cls', 'eos_token_id': 'sep'}
    prefix: ClassVar = 'albert.'
    modules: ClassVar = {
        'cls/predictions/transform/': 'predictions/',
        'cls/predictions/': 'predictions/',
        'embeddings/embeddings_project/': 'albert/encoder/embedding_hidden_mapping_in/',
        '': 'albert/',
    }
    ignored: ClassVar = re.compile(
        r'pooler\.|embeddings\.position_ids$|sop_classifier\.|predictions\.decoder\.|classifier\.|qa_outputs\.'
    )
    tied: ClassVar = {
        'predictions.decoder.weight': 'albert.embeddings.word_embeddings.weight',
        'predictions.decoder.bias': 'predictions.bias',
    }
    rules: ClassVar[Sequence[Rule]] = (
        Rule(r'^embeddings/embeddings_project/kernel$', (None, 'fsdp')),
        *RULES,
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.groups > self.layers:
            raise ValueError(f'num_hidden_groups is {self.groups}, but there are {self.layers} layers')

    @property
    def width(self) -> int:
        return self.embedding_size

    @property
    def projects(self) -> bool:
        return True

    @property
    def own_layers(self) -> tuple[int, ...]:
        return tuple(number * self.groups // self.layers for number in range(self.layers))

    @classmethod
    def tensor_name(cls, path: str) -> str:
        if in_group := IN_LAYER.match(path):
            group, inner = in_group.groups()
            ours = next(part for part in THEIRS if inner.startswith(part))
            inner = THEIRS[ours] + inner.removeprefix(ours)
            path = f'encoder/albert_layer_groups/{group}/albert_layers/0/{inner}'
        return super().tensor_name(path)

    def untouched(self) -> Mapping[str, tuple[int, ...]]:
        """Pooler and head of the order of sentences."""
        return judge(self, 'pooler', 'sop_classifier.classifier')


FAMILY = Albert
