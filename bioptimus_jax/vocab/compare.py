"""A run's vocabulary beside its source's: what is kept, new, lost, and how finely each cuts real text."""

import dataclasses
from collections import Counter
from collections.abc import Iterable, Sequence

import numpy as np

from bioptimus_jax.records.vocabulary import Comparison, NewWord, PiecesOfCorpus
from bioptimus_jax.text.words import count_words
from bioptimus_jax.tokenizer import metaspace
from bioptimus_jax.tokenizer.subwords import Subwords

BATCH = 100
EXAMPLES = 10


def new_tokens(subwords: Subwords, source: Subwords | None) -> list[str]:
    """The tokens that the source does not have (`Subwords.shared_with`), in order of ids; none without a source."""
    if source is None:
        return []
    return [subwords.tokens[i] for i in np.flatnonzero(subwords.shared_with(source) < 0)]


def compare_vocabularies(subwords: Subwords, source: Subwords | None, texts: Iterable[str]) -> Comparison:
    """Sizes, kept/new/lost tokens, and both tokenizers' `measure` on `texts`.

    `examples` are the most frequent new whole words of `texts`, with the source's pieces for each.
    """
    texts = list(texts)
    tokens = subwords.tokens
    own, counts = measure_pieces(subwords, texts)
    alone = Comparison(size=len(tokens), documents_measured=len(texts), vocabulary=own)
    if source is None:
        return alone
    shared = subwords.shared_with(source)
    new = np.flatnonzero(shared < 0).tolist()
    words = [i for i in new if counts[tokens[i]] and subwords.begins_V[i] and subwords.text(i).isalpha()]
    frequent = sorted(words, key=lambda i: (-counts[tokens[i]], tokens[i]))[:EXAMPLES]
    spelled = {i: source.kind.spell(source.reader, subwords.text(i), False) for i in frequent}
    return dataclasses.replace(
        alone,
        source=measure_pieces(source, texts)[0],
        source_size=len(source.tokens),
        kept=len(tokens) - len(new),
        new=len(new),
        lost=len(source.tokens) - len(set(shared.tolist()) - {-1}),
        examples=tuple(
            NewWord(tokens[i], counts[tokens[i]], tuple(source.tokens[n] for n in pieces))
            for i, pieces in spelled.items()
        ),
    )


def measure_pieces(subwords: Subwords, texts: Sequence[str]) -> tuple[PiecesOfCorpus, Counter[str]]:
    """Words (of the tokenizer), pieces a word, one-piece and unknown words; piece counts."""
    pieces: Counter[str] = Counter()
    words = single = 0
    for start in range(0, len(texts), BATCH):
        for encoding in subwords.encode(texts[start : start + BATCH]):
            pieces.update(encoding.tokens)
            found, whole = metaspace.count_words(encoding, subwords.unknown)
            words, single = words + found, single + whole
    total, unknown = sum(pieces.values()), pieces[subwords.tokens[subwords.unknown]]
    between_spaces = sum(map(count_words, texts))
    shares = PiecesOfCorpus(
        words=words,
        words_between_spaces=between_spaces,
        pieces_per_word=round(total / max(words, 1), 4),
        pieces_per_word_between_spaces=round(total / max(between_spaces, 1), 4),
        one_piece_words=round(single / max(words, 1), 4),
        unknown_words=round(unknown / max(words, 1), 6),
    )
    return shares, pieces
