"""BERT (Devlin et al. 2019) over packed rows, with parameter paths spelled like Hugging Face's."""

import dataclasses
import re
from collections.abc import Mapping, Sequence
from typing import ClassVar

import jax
import jax.numpy as jnp

from bioptimus_jax.model.architecture import HEAD, Paired, Rule
from bioptimus_jax.model.layers import RULES, SIZES, LikeBert
from bioptimus_jax.model.trees import Params


def pooler(architecture: LikeBert, module: str = 'pooler.dense') -> dict[str, tuple[int, ...]]:
    """Tensors of what transformers puts on the state of the first piece, and their shapes."""
    size, name = architecture.hidden, f'{architecture.prefix}{module}'
    return {f'{name}.weight': (size, size), f'{name}.bias': (size,)}


def judge(
    architecture: LikeBert, module: str = 'pooler.dense', head: str = 'cls.seq_relationship'
) -> dict[str, tuple[int, ...]]:
    """Tensors of what judges two texts, a pooler and a head of two classes, and their shapes."""
    shapes = {f'{head}.weight': (2, architecture.hidden), f'{head}.bias': (2,)}
    return {**pooler(architecture, module), **shapes}


@dataclasses.dataclass(frozen=True)
class Bert(LikeBert):
    """A BERT with its masked-language-model head, whose output matrix is the table of embeddings or one of its own."""

    token_types: int = 2

    model_type: ClassVar = 'bert'
    title: ClassVar = 'BERT'
    hf_class: ClassVar = 'BertForMaskedLM'
    config_keys: ClassVar = {
        **SIZES,
        'token_types': 'type_vocab_size',
        'layer_norm_epsilon': 'layer_norm_eps',
        'dropout': 'hidden_dropout_prob',
        'attention_dropout': 'attention_probs_dropout_prob',
        'initializer_range': 'initializer_range',
        'activation': 'hidden_act',
    }
    prefix: ClassVar = 'bert.'
    modules: ClassVar = {'cls/': 'cls/', '': 'bert/'}
    ignored: ClassVar = re.compile(
        r'pooler\.|embeddings\.position_ids$|cls\.seq_relationship\.|cls\.predictions\.decoder\.|classifier\.|'
        r'qa_outputs\.'
    )
    tied: ClassVar = {
        'cls.predictions.decoder.weight': 'bert.embeddings.word_embeddings.weight',
        'cls.predictions.decoder.bias': 'cls.predictions.bias',
    }

    @classmethod
    def plain_name(cls, name: str) -> str:
        """The name without the prefix; TensorFlow's LayerNorm names (gamma, beta) become PyTorch's."""
        name = re.sub(r'LayerNorm\.gamma$', 'LayerNorm.weight', name.removeprefix(cls.prefix))
        return re.sub(r'LayerNorm\.beta$', 'LayerNorm.bias', name)

    def untouched(self) -> Mapping[str, tuple[int, ...]]:
        """Pooler and head of next sentences."""
        return judge(self)

    def with_pairs(self) -> 'PairedBert':
        return PairedBert(**dataclasses.asdict(self))


@dataclasses.dataclass(frozen=True)
class PairedBert(Bert, Paired):
    """BERT as it was pre-trained: beside the masked-language-model head a pooler and the head of next sentences."""

    hf_class: ClassVar = 'BertForPreTraining'
    ignored: ClassVar = re.compile(
        Bert.ignored.pattern.replace(r'pooler\.|', '').replace(r'cls\.seq_relationship\.|', '')
    )
    rules: ClassVar[Sequence[Rule]] = (
        Rule(r'^pooler/dense/kernel$', ('fsdp', None)),
        Rule(r'^cls/seq_relationship/kernel$', ('fsdp', None)),
        *RULES,
    )

    def shapes(self) -> dict[str, tuple[int, ...]]:
        size = self.hidden
        pooler = {'pooler/dense/kernel': (size, size), 'pooler/dense/bias': (size,)}
        head = {'cls/seq_relationship/kernel': (size, 2), 'cls/seq_relationship/bias': (2,)}
        return {**super().shapes(), **pooler, **head}

    def untouched(self) -> Mapping[str, tuple[int, ...]]:
        """Nothing: both are trained."""
        return {}

    def pair_logits(self, params: Params, first_xD: jax.Array) -> jax.Array:
        pooler, head = params['pooler']['dense'], params[HEAD]['seq_relationship']
        first_NxD = first_xD.reshape(-1, self.hidden).astype(jnp.float32)
        pooled_NxD = jnp.tanh(first_NxD @ pooler['kernel'] + pooler['bias'][None])
        return (pooled_NxD @ head['kernel'] + head['bias'][None]).reshape(*first_xD.shape[:-1], 2)

    def outputs(self, params: Params, hidden_BxLxD: jax.Array) -> dict[str, jax.Array]:
        return {
            'prediction_logits': self.logits(params, hidden_BxLxD),
            'seq_relationship_logits': self.pair_logits(params, hidden_BxLxD[:, 0]),
        }


FAMILY = Bert
