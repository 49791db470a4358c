"""Rows on disk: shards of arrays, which are mapped into memory, and rows.json, which says what there is.

Legend: R rows, B rows of a batch, L pieces a row, G segments a row.
"""

import copy
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from bioptimus_jax.errors import InputError
from bioptimus_jax.records.counts import RowsFile, SplitRows
from bioptimus_jax.rows.blocks import BITS, FIELDS, MORE, PAIRS, QUOTED, RANDOM_PAIRS, WIDE, Block, unpacked
from bioptimus_jax.rows.config import Rows as RowSettings
from bioptimus_jax.storage.files import atomic, read_json, write_json


class Rows:
    """Memory-mapped rows of one split, read by row numbers."""

    def __init__(self, folder: Path, split: str):
        found = read_json(folder / split / 'rows.json')
        if found is None:
            raise InputError(f'{folder / split}: holds no rows; run `bioptimus rows` first')
        facts = RowsFile.read(found, str(folder / split / 'rows.json'))
        self.place, self.counts = folder / split, facts.counts
        self.pieces, self.segments = facts.row_pieces, facts.segments
        self.fields = (*FIELDS, *(name for name in MORE if getattr(facts, name)))
        self.shards = [
            {
                name: np.load(folder / split / f'{name}-{number:05d}.npy', mmap_mode='r', allow_pickle=False)
                for name in self.fields
            }
            for number in range(facts.shards)
        ]
        lengths = [len(shard['tokens']) for shard in self.shards]
        if sum(lengths) != self.counts.rows:
            raise InputError(f'{folder / split}: {sum(lengths)} rows, but rows.json says {self.counts.rows}')
        self.ends, self.parts = np.cumsum(lengths), [self]

    def concatenated(self, others: Sequence['Rows']) -> 'Rows':
        """The rows, and behind them those of other corpora, numbered through. Raises InputError for other arrays."""
        for part in others:
            if part.fields != self.fields:
                raise InputError(
                    f'{part.place}: has the arrays {", ".join(part.fields)}, but {self.place} has '
                    f'{", ".join(self.fields)}; make both with the same config.rows.layout and config.rows.words'
                )
        together = copy.copy(self)
        together.parts = [self, *others]
        together.shards = [shard for part in together.parts for shard in part.shards]
        together.ends = np.cumsum([len(shard['tokens']) for shard in together.shards])
        together.segments = max(part.segments for part in together.parts)
        return together

    def __len__(self) -> int:
        return sum(part.counts.rows for part in self.parts)

    def read(self, numbers_B: np.ndarray) -> Block:
        """The rows of those numbers: tokens [B, L] int32, word_starts [B, L] bool, segment_lengths [B, G] int32,
        documents [B, G].

        There is cuts [B, L] bool where a token does not say whether a word of the tokenizer begins, and for pairs there
        are first_lengths and labels, int32 [B, G].
        """
        shard_B = np.searchsorted(self.ends, numbers_B, side='right')
        batch = len(numbers_B)
        found = {'tokens': np.empty((batch, self.pieces), np.int32)}
        for name in self.fields[1:]:
            width, kind = ((self.pieces + 7) // 8, np.uint8) if name in BITS else (self.segments, np.int32)
            found[name] = np.zeros((batch, width), np.uint64 if name == 'documents' else kind)
        for shard in np.unique(shard_B):
            here = np.flatnonzero(shard_B == shard)
            local = numbers_B[here] - (self.ends[shard - 1] if shard else 0)
            for name, array in self.shards[shard].items():
                found[name][here, : array.shape[1]] = array[local]  # a shard is as wide as its fullest row
        return unpacked(found, self.pieces)


class ShardWriter:
    """Collects blocks in order and writes shards of fixed size; rows.json, written last, makes them valid."""

    def __init__(self, folder: Path, settings: RowSettings, pack: bool):
        self.folder, self.settings, self.pack = folder, settings, pack
        self.width = settings.row_pieces if pack else settings.max_document_pieces
        self.waiting: list[Block] = []
        self.shards = self.segments = self.rows = self.beyond_384 = 0
        self.counted = Counter[str]()
        self.fields: tuple[str, ...] = FIELDS

    def add(self, block: Block, counted: Counter[str]) -> None:
        """Take the next block, and write what fills a shard."""
        self.waiting.append(block)
        self.counted.update(counted)
        while sum(len(b['tokens']) for b in self.waiting) >= self.settings.shard_rows:
            self._write(self.settings.shard_rows)

    def _write(self, count: int) -> None:
        # `lay_out` asks the first part which arrays there are: a block without parts lacks those of MORE.
        full = [b for b in self.waiting if len(b['tokens'])] or self.waiting[:1]
        segments = max(b['documents'].shape[1] for b in full)
        self.fields = tuple(full[0])
        merged = {
            name: np.concatenate([b[name] if name in WIDE else _widen(b[name], segments) for b in full])
            for name in self.fields
        }
        # Half of the bytes on disk and through the cache. It goes by what is there: each shard has its own type.
        if merged['tokens'].max(initial=0) < 65536:
            merged['tokens'] = merged['tokens'].astype(np.uint16)
        for name in self.fields:
            with atomic(self.folder / f'{name}-{self.shards:05d}.npy', 'wb') as file:
                np.save(file, merged[name][:count])
        self.segments = max(self.segments, segments)
        self.beyond_384 += int(np.maximum(merged['segment_lengths'][:count].astype(int) - 384, 0).sum())
        self.rows += len(merged['tokens'][:count])
        self.shards += 1
        rest = {name: array[count:] for name, array in merged.items()}
        self.waiting = [rest] if len(rest['tokens']) else []

    def close(self) -> SplitRows:
        """Write the rest and rows.json; returns the counts in it."""
        if self.waiting:
            self._write(sum(len(b['tokens']) for b in self.waiting))
        tokens, pairs = self.counted['tokens'], self.counted[PAIRS]
        names = 'documents', 'documents_cut', 'tokens_dropped', 'words', 'tokens', QUOTED
        paired = PAIRS in self.counted
        counts = SplitRows(
            rows=self.rows,
            **{name: self.counted[name] for name in names},
            fill=round(tokens / max(self.rows * self.width, 1), 4),
            share_at_384_and_more=round(self.beyond_384 / max(tokens, 1), 4),
            pairs=pairs if paired else None,
            share_random=round(self.counted[RANDOM_PAIRS] / max(pairs, 1), 4)
            if RANDOM_PAIRS in self.counted
            else None,
        )
        facts = RowsFile(
            row_pieces=self.width,
            segments=max(self.segments, 1),
            shards=self.shards,
            counts=counts,
            **{name: name in self.fields or None for name in MORE},
        )
        write_json(self.folder / 'rows.json', facts.json())
        return counts


def _widen(array_RxG: np.ndarray, segments: int) -> np.ndarray:
    return np.pad(array_RxG, ((0, 0), (0, segments - array_RxG.shape[1])))
