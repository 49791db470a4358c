"""Documents in pieces, cut into the parts that rows are packed of."""

import itertools
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from bioptimus_jax.corpus.documents import Document, document_key
from bioptimus_jax.rows.blocks import FOLLOWS, PAIRS, QUOTED, RANDOM, RANDOM_PAIRS, UNLABELLED, PackedSegment
from bioptimus_jax.rows.config import Rows as RowSettings
from bioptimus_jax.rows.layouts import fitting, layout_of, make_pairs
from bioptimus_jax.rows.words import WORD_RULES, begun_words, starts_of, white_space_starts
from bioptimus_jax.text.splitting import split_sentences
from bioptimus_jax.tokenizer.subwords import Subwords

DocumentBatches: TypeAlias = Iterable[Sequence[Document]]
PartsAndCounts: TypeAlias = tuple[list[PackedSegment], Counter[str]]
"""Parts, and what was counted."""
LENT = 4
"""Documents of other blocks that random texts are of, where a block has one document."""


class Tokenised(NamedTuple):
    """A document in pieces: ids, where white-space words start and, where a token does not say so, `rows.words`.

    `begun_words`: how many begin in each piece, where each letter of a script without blanks is one, as in the corpus.
    `bounds`: 0, and where each sentence or line ends, for layouts that ask for them.
    """

    key: int
    tokens: np.ndarray
    word_starts: np.ndarray
    begun_words: np.ndarray
    tokenizer_word_starts: np.ndarray | None
    bounds: list[int]


def document_parts(
    batches: DocumentBatches, subwords: Subwords, longest: int, words: str = 'tokenizer'
) -> PartsAndCounts:
    """Documents tokenised and cut into parts of at most `longest` pieces, and what was counted."""
    texts = map(subwords.text, range(len(subwords.tokens)))
    sentence_ends = np.array([text in ('.', '?', '!') for text in texts])
    parts: list[PackedSegment] = []
    counted = Counter[str]()
    for document in _tokenised(batches, subwords, counted, words):
        pieces = list(cut_points(document.tokens, document.word_starts, sentence_ends, longest - 2))
        counted['documents_cut'] += len(pieces) > 1
        counted['words'] += int(document.begun_words.sum())
        parts += (_part([(document, *span)], subwords) for span in pieces)
        counted['tokens_dropped'] += len(document.tokens) - sum(end - begin for begin, end in pieces)
    counted['tokens'] = sum(len(p.tokens) for p in parts)
    return parts, counted


def pair_parts(
    batches: DocumentBatches,
    subwords: Subwords,
    settings: RowSettings,
    block: int,
    beside: DocumentBatches = (),
) -> PartsAndCounts:
    """Pairs of texts of the documents of a block, which begins at that document, and what was counted.

    Random texts come from the same block, or from documents `beside` it where it has one alone. Dropped are pieces that
    no pair has where they stand in their document.
    """
    counted, parts, layout = Counter[str](), [], layout_of(settings.layout)
    assert layout.is_random
    documents = list(_tokenised(batches, subwords, counted, settings.words, split_sentences))
    lent: list[Tokenised] = []
    if len(documents) == 1:
        found = _tokenised(beside, subwords, Counter(), settings.words, split_sentences)
        # A document may be there several times, by its weight.
        others = (other for other in found if not np.array_equal(other.tokens, documents[0].tokens))
        lent = list(itertools.islice(others, LENT))
    # Seeded by the block, not by the process that makes it: the pairs are the same for any number of workers.
    generator = np.random.default_rng((0, block))
    bounds, longest = [document.bounds for document in documents], settings.max_document_pieces
    more, tokenised = [document.bounds for document in lent], [*documents, *lent]
    of_document: Counter[int] = Counter()
    for pair in make_pairs(bounds, longest, settings.short_pairs, layout.is_random, generator, more):
        texts = [(tokenised[pair.document], *pair.first), (tokenised[pair.other], *pair.second)]
        label = UNLABELLED if not layout.labelled else RANDOM if pair.random else FOLLOWS
        parts.append(_part(texts, subwords, label))
        of_document[pair.document] += 1
        counted[RANDOM_PAIRS] += pair.random
        counted['words'] += sum(int(text.begun_words[begin:end].sum()) for text, begin, end in texts)
        kept = texts[:1] if pair.random else texts
        counted['tokens_dropped'] -= sum(end - begin for _, begin, end in kept)
    counted['tokens_dropped'] += sum(len(document.tokens) for document in documents)
    counted['documents_cut'] = sum(pairs > 1 for pairs in of_document.values())
    counted['tokens'], counted[PAIRS] = sum(len(p.tokens) for p in parts), len(parts)
    return parts, counted


def apart_parts(batches: DocumentBatches, subwords: Subwords, settings: RowSettings) -> PartsAndCounts:
    """Texts of documents, each pair one behind the other, and what was counted.

    Dropped are pieces of a document that no text has; cut are documents with such pieces in a pair of theirs.
    """
    counted, parts, layout = Counter[str](), list[PackedSegment](), layout_of(settings.layout)
    assert layout.apart
    for document in _tokenised(batches, subwords, counted, settings.words, layout.cut or split_sentences):
        used = np.zeros(len(document.tokens), bool)
        cut = False
        for pair in layout.apart(document.bounds):
            texts = fitting(settings.max_document_pieces, layout.share, *pair)
            cut |= texts != pair
            counted[PAIRS] += 1
            for begin, end in texts:
                used[begin:end] = True
                counted['words'] += int(document.begun_words[begin:end].sum())
                parts.append(_part([(document, begin, end)], subwords))
        counted['documents_cut'] += cut
        counted['tokens_dropped'] += int((~used).sum())
    counted[PAIRS] += 0  # counted even where there are none
    counted['tokens'] = sum(len(p.tokens) for p in parts)
    return parts, counted


def _tokenised(
    batches: DocumentBatches,
    subwords: Subwords,
    counted: Counter[str],
    words: str,
    cut: Callable[[str], list[str]] | None = None,
) -> Iterator[Tokenised]:
    """Documents that have any pieces, `counted` with those that have none; `cut`: what `bounds` are the ends of."""
    tokens_show_words = WORD_RULES[words].by_tokenizer and not subwords.kind.words_in_rows
    for batch in batches:
        counted['documents'] += len(batch)
        counted[QUOTED] += subwords.quotations(d.text for d in batch)
        encodings = subwords.encode(d.text for d in batch)
        for document, encoding in zip(batch, encodings, strict=True):
            if encoding.ids:
                starts = white_space_starts(document.text, encoding.offsets)
                yield Tokenised(
                    document_key(document.id),
                    np.array(encoding.ids, np.uint32),
                    starts,
                    begun_words(document.text, encoding.offsets, starts),
                    None if tokens_show_words else starts_of(words, document.text, encoding),
                    part_bounds(document.text, encoding.offsets, cut) if cut else [],
                )


def part_bounds(
    text: str, offsets: list[tuple[int, int]], cut: Callable[[str], list[str]] = split_sentences
) -> list[int]:
    """0, and where each part of a text ends, in pieces: parts in a row are the pieces of the whole text.

    A part begins with the first piece that ends behind its first character, which may hold the space before it.
    """
    begins, at, plain = [], 0, text.replace('\0', ' ')  # as the splitter reads it
    for part in cut(plain):
        at = max(plain.find(part, at), at)
        begins.append(at)
        at += len(part)
    ended = np.maximum.accumulate(np.array(offsets, np.int64).reshape(-1, 2)[:, 1])
    return sorted({0, len(offsets), *np.searchsorted(ended, begins, side='right').tolist()})


def _part(
    texts: list[tuple[Tokenised, int, int]], subwords: Subwords, label: int | None = None
) -> PackedSegment:
    """Some pieces of a document or, with a label, of two; the second text may be empty."""
    texts = [text for text in texts if text[2] > text[1]]
    document, begin, end = texts[0]

    def closed(name: str, first: Any, behind: Any) -> np.ndarray:
        arrays = ((getattr(text, name)[begin:end], [behind]) for text, begin, end in texts)
        return np.concatenate([[first], *itertools.chain.from_iterable(arrays)])

    tokens, starts = closed('tokens', subwords.cls, subwords.sep), closed('word_starts', True, True)
    cuts = None if document.tokenizer_word_starts is None else closed('tokenizer_word_starts', True, True)
    paired = {} if label is None else {'first': end - begin + 2, 'label': label}
    return PackedSegment(tokens, starts, document.key, cuts, **paired)


def cut_points(
    tokens: np.ndarray, starts: np.ndarray, sentence_ends_V: np.ndarray, limit: int
) -> Iterator[tuple[int, int]]:
    """Spans of at most `limit` pieces: cut after a sentence end in the last half, else before a word, else hard."""
    begin = 0
    while len(tokens) - begin > limit:
        window = np.arange(begin + 1, begin + limit + 1)
        at_word = starts[window]
        at_sentence = at_word & sentence_ends_V[tokens[window - 1]] & (window > begin + limit // 2)
        candidates = window[at_sentence] if at_sentence.any() else window[at_word]
        end = int(candidates[-1]) if len(candidates) else begin + limit
        yield begin, end
        begin = end
    yield begin, len(tokens)
