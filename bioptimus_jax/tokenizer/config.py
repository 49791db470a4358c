"""The section `vocab`, and the kinds of tokenizers."""

import dataclasses

from bioptimus_jax.config.bounds import LARGEST_SEED, LARGEST_SIZE
from bioptimus_jax.config.fields import common_key, key
from bioptimus_jax.config.plugins import Plugins

TOKENIZERS = Plugins('bioptimus_jax.tokenizer.kinds', 'KIND')
"""Kinds of tokenizers: each is a file of the package, and its name the value of a key."""


@dataclasses.dataclass(frozen=True)
class Vocab:
    """The tokenizer of the adapted model."""

    tokenizer: str = common_key(
        'wordpiece',
        'kind of tokenizer (where the source is kept, its own): a file in tokenizer/kinds/',
        one_of=TOKENIZERS,
    )
    kind: str = common_key(
        'train',
        "train one, take `file`, keep the source's, or append to the source's what a new one adds",
        one_of=('train', 'file', 'source', 'append'),
    )
    file: str = key(
        '',
        'the vocabulary for kind=file: a tokenizer.json, a vocab.txt of WordPiece, a vocab.json of byte-level pairs, a '
        'folder with one, or a hub id',
        path=True,
    )
    size: int = common_key(
        30522, 'entries of a vocabulary that is trained, special tokens included', low=100, high=LARGEST_SIZE
    )
    lowercase: bool = common_key(True, 'uncased (must agree with the source)')
    min_frequency: int = key(2, 'pairs seen less often are not merged', low=1)
    limit_alphabet: int = key(1000, 'distinct characters kept', low=30, high=LARGEST_SIZE)
    sample_words: int = key(
        200_000_000, 'about this many words are counted, documents chosen by hash of the id; 0: all', low=0
    )
    sample_seed: int = key(0, 'seed of that choice', low=0, high=LARGEST_SEED)
    general: tuple[str, ...] = key(
        (),
        'a general corpus for comparing word frequencies: files or globs as corpus.inputs; empty: none',
        path=True,
    )
