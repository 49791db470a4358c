"""Texts in words that a source does not know, and a source that knows letters alone."""

import gzip
import json

import numpy as np
from toy_source import LETTERS, SPECIAL, make_source

from bioptimus_jax.model import tensors
from bioptimus_jax.tokenizer.kinds import wordpiece

WORDS = [f'{a}{b}{c}' for a in ('nephro', 'cardio', 'hepato') for b in 'aeio' for c in ('pathy', 'toxin')]


def texts_of(folder, documents=300, words=WORDS, ending=''):
    rng = np.random.default_rng(0)
    lines = (
        json.dumps({'id': str(n), 'title': '', 'abstract': ' '.join(rng.choice(words, 30)) + '.'}) + '\n'
        for n in range(documents)
    )
    file = folder / f'texts.jsonl{ending}'
    with gzip.open(file, 'wt') if ending else open(file, 'w') as stream:
        stream.writelines(lines)
    return file


def save_source(folder, more=()):
    """A BERT with a tokenizer that knows letters, and `more` words."""
    made = make_source([*SPECIAL, *LETTERS, '.', *more], max_positions=64)
    wordpiece.make(made.vocabulary, lowercase=True).save(folder / 'tokenizer', 64)
    tensors.write_folder(folder / 'model', made.architecture, made.parameters, folder / 'tokenizer')
    return folder / 'model'
