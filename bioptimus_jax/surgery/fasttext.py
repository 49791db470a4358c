"""Word vectors by fastText (Bojanowski and others, 2017), as gensim trains it; the words are tokens.

W: tokens, E: size of a vector. This file does without jax.
"""

import logging
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from bioptimus_jax.storage.hashing import hash64

DIMENSIONS, EPOCHS, LEAST_COUNT = 300, 3, 10
"""Settings of the paper's word vectors."""
SETTINGS: dict[str, Any] = dict(sg=1, negative=10, window=5, alpha=0.05, sample=1e-4, min_n=3, max_n=6)
"""Skip-gram, as the paper has it; ten negative samples, as its program has; the rest are fastText's defaults."""
BUCKETS = 500_000
"""Buckets for parts of tokens, of which a vocabulary of 30,522 has 160,000; fastText has two million, of 1.2 kB
each."""


def facts() -> tuple:
    """What decides the vectors, besides the lines and the seed."""
    import gensim  # late: an extra

    return DIMENSIONS, EPOCHS, LEAST_COUNT, BUCKETS, SETTINGS, gensim.__version__


def word_vectors(
    lines: Sequence[np.ndarray],
    tokens: Sequence[str],
    seed: int,
    advance: Callable[[int], None] = lambda pieces: None,
) -> np.ndarray:
    """fastText's vectors of the tokens of which ids are in the lines: float32 [W, E], NaN for rare tokens.

    The same for the same lines and seed, in every process. `advance` is called with numbers of pieces, each EPOCHS
    times, and may raise to stop.
    """
    from gensim.models.fasttext import FastText  # late: an extra

    vectors_WxE = np.full((len(tokens), DIMENSIONS), np.nan, np.float32)
    counts_W = np.bincount(np.concatenate([*lines, np.zeros(0, np.int32)]), minlength=len(tokens))
    frequent = np.flatnonzero(counts_W >= LEAST_COUNT).tolist()
    if not frequent:
        return vectors_WxE
    logging.getLogger('gensim').setLevel(logging.ERROR)  # it warns of small corpora and of early ends
    # One worker: several race. Without a hash of its own gensim takes Python's, which differs between processes.
    model = FastText(
        vector_size=DIMENSIONS,
        min_count=LEAST_COUNT,
        bucket=BUCKETS,
        workers=1,
        seed=seed % 2**32,  # of numpy's RandomState
        hashfxn=hash64,
        **SETTINGS,
    )
    frequencies = {tokens[i]: int(counts_W[i]) for i in frequent}
    model.build_vocab_from_freq(frequencies, corpus_count=len(lines))
    text = _Text(lines, tokens, advance)
    model.train(text, total_examples=len(lines), total_words=int(counts_W.sum()), epochs=EPOCHS)
    if text.error is not None:
        raise text.error
    for i in frequent:
        vectors_WxE[i] = model.wv[tokens[i]]
    return vectors_WxE


class _Text:
    """The lines in tokens, for gensim. It reads them in a thread that must not raise: after an error they just end."""

    def __init__(self, lines: Sequence[np.ndarray], tokens: Sequence[str], advance: Callable[[int], None]):
        self.lines, self.tokens, self.advance = lines, tokens, advance
        self.error: BaseException | None = None

    def __iter__(self) -> Iterator[list[str]]:
        for line in self.lines:
            if self.error is None:
                try:
                    self.advance(len(line))
                except BaseException as error:
                    self.error = error
            if self.error is not None:
                return
            yield [self.tokens[i] for i in line.tolist()]
