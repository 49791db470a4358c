"""Tokens of the source in sentences that are encoded anyway: what maps and similarities are fitted on.

V: source tokens, M: those that are used. Nothing else has to be searched: the sentences that were sampled for new
tokens hold thousands of tokens whose rows are known.
"""

from collections.abc import Sequence

import numpy as np

from bioptimus_jax.surgery.reading import TOKENIZER_BATCH, Occurrences
from bioptimus_jax.surgery.rows import seeded
from bioptimus_jax.tokenizer.subwords import Subwords

CONTEXTS_EACH = 10
TOKENS = 8192
RESPELLED_FOLDS, RESPELLED_TOKENS, RESPELLED_CONTEXTS = 2, 2000, 5
"""A fold hides its tokens from the tokenizer together: not so many that little is left of the sentences around them."""


def piece_occurrences(
    subwords: Subwords, sentences: Sequence[str], among: Sequence[int], seed: int
) -> Occurrences:
    """Where each token stands as a piece, special tokens left out: sentence -> id -> spans.

    At most CONTEXTS_EACH sentences a token, in a seeded order of the sentences `among`, for at most TOKENS tokens.
    """
    open_V = np.where(subwords.special_V, 0, CONTEXTS_EACH)
    open_V[subwords.unknown] = 0
    generator = seeded(seed, len(among))
    order = generator.permutation(np.asarray(among, np.int64))
    found: Occurrences = {}
    for start in range(0, len(order), TOKENIZER_BATCH):
        chunk = order[start : start + TOKENIZER_BATCH].tolist()
        encodings = subwords.encode(sentences[s] for s in chunk)
        for sentence, encoding in zip(chunk, encodings, strict=True):
            ids_S = np.array(encoding.ids, np.int64)
            spans_of: dict[int, list[tuple[int, int]]] = {}
            for place in np.flatnonzero(open_V[ids_S] > 0).tolist():
                spans_of.setdefault(int(ids_S[place]), []).append(encoding.offsets[place])
            # Sentences are counted, so once for each, however often a token stands in it.
            open_V[list(spans_of)] -= 1
            if spans_of:
                found[sentence] = spans_of
    different = sorted({i for spans_of in found.values() for i in spans_of})
    if len(different) > TOKENS:
        kept = generator.choice(np.array(different), TOKENS, replace=False).tolist()
        found = restricted(found, {i: i for i in kept})
    return found


def restricted(occurrences: Occurrences, number_of: dict[int, int], most: int = CONTEXTS_EACH) -> Occurrences:
    """The occurrences of some tokens under other numbers, at most `most` sentences each."""
    left = dict.fromkeys(number_of, most)
    kept: Occurrences = {}
    for sentence, spans_of in occurrences.items():
        for token, spans in spans_of.items():
            if left.get(token, 0) > 0:
                left[token] -= 1
                kept.setdefault(sentence, {})[number_of[token]] = spans
    return kept


def respelled_folds(subwords: Subwords, found: Occurrences, seed: int) -> list[list[int]]:
    """Disjoint seeded choices of tokens that occur and that other pieces can spell."""
    can = subwords.kind.respellable(subwords)
    usable = sorted({i for spans_of in found.values() for i in spans_of if i in can})
    order = seeded(seed, len(usable)).permutation(np.array(usable, np.int64)).tolist()
    size = min(RESPELLED_TOKENS, len(order) // RESPELLED_FOLDS)
    return [sorted(order[n * size : (n + 1) * size]) for n in range(RESPELLED_FOLDS)]
