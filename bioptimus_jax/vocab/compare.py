"""A run's vocabulary beside its source's: what is kept, new, lost, and how finely each cuts real text."""

from collections import Counter
from collections.abc import Iterable
from typing import Any

from bioptimus_jax.vocab.subwords import Subwords

BATCH = 100
EXAMPLES = 10


def new_tokens(tokens: list[str], source_tokens: list[str] | None) -> list[str]:
    """The tokens that the source does not have, by string, in order of ids; none without a source."""
    if source_tokens is None:
        return []
    known = set(source_tokens)
    return [token for token in tokens if token not in known]


def compare(subwords: Subwords, source: Subwords | None, texts: Iterable[str]) -> dict[str, Any]:
    """Sizes, kept/new/lost tokens, and both tokenizers' `measure` on `texts`, as a JSON value.

    `examples` are the most frequent new whole words of `texts`, with the source's pieces for each.
    """
    texts = list(texts)
    tokens = subwords.tokens
    own, counts = measure(subwords, texts)
    report: dict[str, Any] = {'size': len(tokens), 'documents_measured': len(texts), 'vocabulary': own}
    if source is None:
        return report
    new, kind = new_tokens(tokens, source.tokens), subwords.kind
    report['source'], _ = measure(source, texts)
    report['source_size'] = len(source.tokens)
    report['kept'] = len(set(tokens) & set(source.tokens))
    report['new'] = len(new)
    report['lost'] = len(set(source.tokens) - set(tokens))
    words = [t for t in new if counts[t] and kind.begins(t) and kind.text(t).isalpha()]
    frequent = sorted(words, key=lambda t: (-counts[t], t))[:EXAMPLES]
    report['examples'] = [
        {'token': t, 'count': counts[t], 'source': [source.tokens[i] for i in pieces]}
        for t, pieces in ((t, source.kind.spell(source.tokenizer, kind.text(t), False)) for t in frequent)
    ]
    return report


def measure(subwords: Subwords, texts: list[str]) -> tuple[dict[str, float], Counter[str]]:
    """Words (of the tokenizer), pieces a word, one-piece and unknown words; piece counts."""
    pieces: Counter[str] = Counter()
    words = single = 0
    for start in range(0, len(texts), BATCH):
        for encoding in subwords.encode(texts[start : start + BATCH]):
            pieces.update(encoding.tokens)
            lengths = Counter(encoding.word_ids)
            words += len(lengths)
            single += sum(1 for n in lengths.values() if n == 1)
    total, unknown = sum(pieces.values()), pieces[subwords.tokens[subwords.unknown]]
    between_spaces = sum(len(text.split()) for text in texts)
    shares = {
        'words': words,
        'words_between_spaces': between_spaces,
        'pieces_per_word': round(total / max(words, 1), 4),
        'pieces_per_word_between_spaces': round(total / max(between_spaces, 1), 4),
        'one_piece_words': round((single - unknown) / max(words, 1), 4),
        'unknown_words': round(unknown / max(words, 1), 6),
    }
    return shares, pieces
