"""A run's vocabulary beside its source's: what is kept, new, lost, and how finely each cuts real text."""

from collections import Counter
from collections.abc import Iterable
from typing import Any

import tokenizers

from bioptimus_jax.vocab.wordpiece import CONTINUATION, SPECIAL_TOKENS, UNK, spelled, vocabulary

BATCH = 100
EXAMPLES = 10


def new_tokens(tokens: list[str], source_tokens: list[str] | None) -> list[str]:
    """The tokens that the source does not have, by string, in order of ids; none without a source."""
    if source_tokens is None:
        return []
    known = {*source_tokens, *SPECIAL_TOKENS}
    return [token for token in tokens if token not in known]


def compare(
    tokenizer: tokenizers.Tokenizer, source_tokenizer: tokenizers.Tokenizer | None, texts: Iterable[str]
) -> dict[str, Any]:
    """Sizes, kept/new/lost tokens, and both tokenizers' `measure` on `texts`, as a JSON value.

    `examples` are the most frequent new whole words of `texts`, with the source's pieces for each.
    """
    texts = list(texts)
    tokens = vocabulary(tokenizer)
    own, counts = measure(tokenizer, texts)
    report: dict[str, Any] = {'size': len(tokens), 'documents_measured': len(texts), 'vocabulary': own}
    if source_tokenizer is None:
        return report
    source_tokens = vocabulary(source_tokenizer)
    new = new_tokens(tokens, source_tokens)
    report['source'], _ = measure(source_tokenizer, texts)
    report['source_size'] = len(source_tokens)
    report['kept'] = len(set(tokens) & set(source_tokens))
    report['new'] = len(new)
    report['lost'] = len(set(source_tokens) - set(tokens))
    words = [t for t in new if counts[t] and not t.startswith(CONTINUATION) and t.isalpha()]
    frequent = sorted(words, key=lambda t: (-counts[t], t))[:EXAMPLES]
    report['examples'] = [
        {'token': t, 'count': counts[t], 'source': spelling(t, source_tokenizer)} for t in frequent
    ]
    return report


def spelling(token: str, tokenizer: tokenizers.Tokenizer) -> list[str]:
    """The pieces into which a tokenizer cuts the characters of a token."""
    return tokenizer.encode(spelled(token), add_special_tokens=False).tokens


def measure(tokenizer: tokenizers.Tokenizer, texts: list[str]) -> tuple[dict[str, float], Counter[str]]:
    """Words (BERT's: punctuation apart), pieces a word, one-piece and unknown words; piece counts."""
    pieces: Counter[str] = Counter()
    words = single = 0
    for start in range(0, len(texts), BATCH):
        for encoding in tokenizer.encode_batch(texts[start : start + BATCH], add_special_tokens=False):
            pieces.update(encoding.tokens)
            lengths = Counter(encoding.word_ids)
            words += len(lengths)
            single += sum(1 for n in lengths.values() if n == 1)
    total = sum(pieces.values())
    between_spaces = sum(len(text.split()) for text in texts)
    shares = {
        'words': words,
        'words_between_spaces': between_spaces,
        'pieces_per_word': round(total / max(words, 1), 4),
        'pieces_per_word_between_spaces': round(total / max(between_spaces, 1), 4),
        'one_piece_words': round((single - pieces[UNK]) / max(words, 1), 4),
        'unknown_words': round(pieces[UNK] / max(words, 1), 6),
    }
    return shares, pieces
