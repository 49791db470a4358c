"""Adapt a general encoder to a domain: vocabulary, embedding surgery, curriculum pre-training, NER."""

__version__ = '0.1.0'
