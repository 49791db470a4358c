"""DistilBERT (Sanh et al. 2019): BERT's layers without token types, under names of its own."""

import dataclasses
import re
from typing import ClassVar

from bioptimus_jax.model.layers import LikeBert

THEIRS = {
    'encoder/': 'transformer/',
    'attention/self/query/': 'attention/q_lin/',
    'attention/self/key/': 'attention/k_lin/',
    'attention/self/value/': 'attention/v_lin/',
    'attention/output/dense/': 'attention/out_lin/',
    'attention/output/LayerNorm/': 'sa_layer_norm/',
    'intermediate/dense/': 'ffn/lin1/',
    'output/dense/': 'ffn/lin2/',
    'output/LayerNorm/': 'output_layer_norm/',
    'cls/predictions/transform/dense/': 'vocab_transform/',
    'cls/predictions/transform/LayerNorm/': 'vocab_layer_norm/',
    'cls/predictions/decoder/embedding': 'vocab_projector/embedding',
    'cls/predictions/bias': 'vocab_projector/bias',
}
"""Parts of our paths -> parts of theirs, the longer ones first."""


@dataclasses.dataclass(frozen=True)
class DistilBert(LikeBert):
    """A DistilBERT with its masked-language-model head."""

    model_type: ClassVar = 'distilbert'
    title: ClassVar = 'DistilBERT'
    hf_class: ClassVar = 'DistilBertForMaskedLM'
    config_keys: ClassVar = {
        'vocab_size': 'vocab_size',
        'hidden': 'dim',
        'layers': 'n_layers',
        'heads': 'n_heads',
        'intermediate': 'hidden_dim',
        'max_positions': 'max_position_embeddings',
        'dropout': 'dropout',
        'attention_dropout': 'attention_dropout',
        'initializer_range': 'initializer_range',
        'activation': 'activation',
    }
    supported: ClassVar = {'sinusoidal_pos_embds': False}
    prefix: ClassVar = 'distilbert.'
    ignored: ClassVar = re.compile(
        r'embeddings\.position_ids$|vocab_projector\.weight$|pre_classifier\.|classifier\.|qa_outputs\.'
    )
    tied: ClassVar = {'vocab_projector.weight': 'distilbert.embeddings.word_embeddings.weight'}

    @classmethod
    def tensor_name(cls, path: str) -> str:
        for ours, theirs in THEIRS.items():
            path = path.replace(ours, theirs)
        *modules, leaf = path.split('/')
        name = '.'.join([*modules, 'bias' if leaf == 'bias' else 'weight'])
        return name if name.startswith('vocab_') else cls.prefix + name


FAMILY = DistilBert
