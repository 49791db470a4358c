"""Adapt a general BERT to a domain: vocabulary, embedding surgery, curriculum pre-training, NER."""

__version__ = '0.1.0'
