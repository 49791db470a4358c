"""Blocks of rows as arrays, and what a batch of them says: positions, segments, pairs.

Legend: R rows, B rows of a batch, L pieces a row, G segments a row.
"""

import dataclasses
from collections.abc import Mapping
from typing import Any, NamedTuple, TypeAlias

import numpy as np

Block: TypeAlias = dict[str, np.ndarray]
"""Rows as arrays by name, R first: some or all of FIELDS and MORE."""
TOKENIZER_WORD_STARTS, FIRSTS, LABELS = 'cuts', 'first_lengths', 'labels'
FIELDS = ('tokens', 'word_starts', 'segment_lengths', 'documents')
MORE = (TOKENIZER_WORD_STARTS, FIRSTS, LABELS)  # arrays that not all rows have
ARRAY_TYPES = {
    'tokens': np.uint32,
    'word_starts': bool,
    TOKENIZER_WORD_STARTS: bool,
    'documents': np.uint64,
    LABELS: np.uint8,
}
BITS = ('word_starts', TOKENIZER_WORD_STARTS)
WIDE = ('tokens', *BITS)  # a column a piece; others have one a segment
PAIRS, RANDOM_PAIRS, QUOTED = 'pairs', 'random_pairs', 'special_tokens_quoted'  # as counted
UNLABELLED, FOLLOWS, RANDOM = range(3)  # labels of a pair; UNLABELLED: its layout draws no random pairs


@dataclasses.dataclass(frozen=True)
class PackedSegment:
    """A document, a part of a long one or a pair, with the special tokens at its ends.

    For a pair `first` counts the pieces of the first text with [CLS] and [SEP], and `label` is UNLABELLED, FOLLOWS or
    RANDOM.
    """

    tokens: np.ndarray
    word_starts: np.ndarray
    document: int
    tokenizer_word_starts: np.ndarray | None = None
    first: int | None = None
    label: int = 0


def lay_out(parts: list[PackedSegment], rows: list[list[int]], width: int) -> Block:
    """The block of those rows, each of the parts by number, `width` pieces wide."""
    count, segments = len(rows), max(map(len, rows), default=1)
    # All parts of a vocabulary and a layout have the same: the first one tells.
    names = list(FIELDS)
    names += [TOKENIZER_WORD_STARTS] if parts and parts[0].tokenizer_word_starts is not None else []
    names += [FIRSTS, LABELS] if parts and parts[0].first is not None else []
    widths = {name: width if name in WIDE else segments for name in names}
    block = {name: np.zeros((count, widths[name]), ARRAY_TYPES.get(name, np.uint16)) for name in names}
    for row, members in enumerate(rows):
        at = 0
        for segment, part in enumerate(parts[member] for member in members):
            length = len(part.tokens)
            of_pieces = part.tokens, part.word_starts, part.tokenizer_word_starts
            of_segment = length, part.document, part.first, part.label
            for name, values in zip(WIDE, of_pieces, strict=True):
                if name in block:
                    block[name][row, at : at + length] = values
            for name, value in zip(('segment_lengths', 'documents', FIRSTS, LABELS), of_segment, strict=True):
                if name in block:
                    block[name][row, segment] = value
            at += length
    return block | {name: np.packbits(block[name], axis=1) for name in BITS if name in block}


def one_a_row(parts: list[PackedSegment], width: int) -> Block:
    """Rows of one part each, as `Rows.read` gives them."""
    block = lay_out(parts, [[number] for number in range(len(parts))], width)
    kinds = {'tokens': np.int32, 'segment_lengths': np.int32}
    return unpacked({n: array.astype(kinds.get(n, array.dtype)) for n, array in block.items()}, width)


def unpacked(block: Block, width: int) -> Block:
    """The block with bits as truth values, `width` a row."""
    bits = {n: np.unpackbits(block[n], axis=1, count=width).astype(bool) for n in BITS if n in block}
    return block | bits


def positions_and_segments(segment_lengths_BxG: Any, pieces: int, xp: Any = np) -> tuple[Any, Any]:
    """Positions [B, L] (from 0 in every document) and segments [B, L] (1, 2, ...; 0 is padding) of packed rows."""
    ends_BxG = xp.cumsum(segment_lengths_BxG, axis=1)
    index_L = xp.arange(pieces)
    # Segments that a row does not use end where its last one does: only padding is beyond them.
    over_BxLxG = index_L[None, :, None] >= ends_BxG[:, None, :]
    number_BxL = over_BxLxG.sum(axis=-1)
    real_BxL = index_L[None, :] < ends_BxG[:, -1:]
    begin_BxL = xp.max(xp.where(over_BxLxG, ends_BxG[:, None, :], 0), axis=-1)
    positions_BxL = xp.where(real_BxL, index_L[None, :] - begin_BxL, 0)
    return positions_BxL, xp.where(real_BxL, number_BxL + 1, 0)


class RowPairs(NamedTuple):
    """What rows of pairs have: the token type of every piece, and where every pair begins and its label."""

    types_BxL: Any
    begins_BxG: Any
    labels_BxG: Any

    @classmethod
    def of(
        cls, batch: Mapping[str, Any], positions_BxL: Any, segments_BxL: Any, xp: Any = np
    ) -> 'RowPairs | None':
        """The pairs of a batch as `Rows.read` gives it; None for rows without pairs."""
        if FIRSTS not in batch:
            return None
        lengths_BxG, last = batch['segment_lengths'], positions_BxL.shape[1] - 1
        first_BxL = xp.take_along_axis(batch[FIRSTS], xp.maximum(segments_BxL - 1, 0), axis=1)
        types_BxL = (segments_BxL > 0) & (positions_BxL >= first_BxL)
        begins_BxG = xp.minimum(xp.cumsum(lengths_BxG, axis=1) - lengths_BxG, last)  # some hold nothing
        return cls(types_BxL.astype(np.int32), begins_BxG, batch[LABELS])
