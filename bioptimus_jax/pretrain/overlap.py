"""Counts the held-out documents of a run that another corpus of its phases contains.

A run holds documents out by their ids, and the same text may have another id there, or be held out nowhere.

Legend: N held-out documents, R rows, L pieces a row, G segments a row, S segments, K pieces at the beginning of a
segment, H different beginnings of held-out documents.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np

from bioptimus_jax.progress.console import Console
from bioptimus_jax.records.curriculum import HeldoutOverlap
from bioptimus_jax.records.record import plain
from bioptimus_jax.rows.stored import Rows
from bioptimus_jax.run.manifests import rerun_hint
from bioptimus_jax.storage.files import read_json, write_json

RECORD = 'heldout_overlap.json'
PIECES = 64
"""Documents count as the same where they begin with as many equal pieces, or are equal and shorter."""
BLOCK = 4096  # rows


def record(
    console: Console, heldout: Rows, corpora: Mapping[str, Rows], folder: Path
) -> list[HeldoutOverlap]:
    """How many held-out documents begin as one of the rows of each of those corpora; in heldout_overlap.json of
    `folder` and, where there are any, in a line. Raises Stopped."""
    numbers_N = of_documents(heldout)
    found = [
        HeldoutOverlap(name, len(numbers_N), found_in(console, numbers_N, rows))
        for name, rows in corpora.items()
    ]
    write_json(folder / RECORD, plain(found))
    for one in found:
        if one.found:
            console.say(f'pretrain: {in_words(one)}; the held-out loss is lower for it')
    return found


def read(folder: Path) -> list[HeldoutOverlap]:
    """What heldout_overlap.json of the folder says; empty without one. Raises InputError for a damaged one."""
    found = read_json(folder / RECORD, rerun_hint(folder))
    return [] if found is None else HeldoutOverlap.read_all(found, str(folder / RECORD), rerun_hint(folder))


def in_words(overlap: HeldoutOverlap) -> str:
    """A clause that says how many there are."""
    return (
        f'at least {overlap.found:,} of {overlap.heldout:,} held-out documents begin with the same {PIECES} pieces as '
        f'documents of corpus {overlap.corpus}, which is trained on'
    )


def of_documents(heldout: Rows) -> np.ndarray:
    """A number for the beginning of every held-out document, uint64 [N]."""
    numbers_S, keys_S = map(np.concatenate, zip(*beginnings(heldout), strict=True))
    # Later parts of a long document do not begin it; held-out rows are in the order of their documents.
    _, firsts_N = np.unique(keys_S, return_index=True)
    return numbers_S[firsts_N]


def found_in(console: Console, numbers_N: np.ndarray, trained: Rows) -> int:
    """How many of the documents with these beginnings begin as one that is trained on. Raises Stopped."""
    numbers_H, places_N = np.unique(numbers_N, return_inverse=True)
    seen_H = np.zeros(len(numbers_H), bool)
    for theirs_S, _ in beginnings(trained):
        console.check_stop()
        places = np.minimum(np.searchsorted(numbers_H, theirs_S), len(numbers_H) - 1)
        seen_H[places[numbers_H[places] == theirs_S]] = True
    return int(seen_H[places_N].sum())


def beginnings(rows: Rows) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """A number for the beginning of every segment, uint64 [S], and the keys of their documents, uint64 [S], by blocks.

    Equal beginnings have equal numbers, others but for a chance of about one in 2**63. The last piece of a segment, a
    special token, does not count.
    """
    factors_K = np.random.default_rng(PIECES).integers(2**64, size=PIECES, dtype=np.uint64) | np.uint64(1)
    for shard in rows.shards:
        for start in range(0, len(shard['tokens']), BLOCK):
            tokens_RxL, lengths_RxG, keys_RxG = (
                shard[name][start : start + BLOCK] for name in ('tokens', 'segment_lengths', 'documents')
            )
            ends_RxG = np.cumsum(lengths_RxG, axis=1, dtype=np.int64)
            of_rows_S, segments_S = np.nonzero(lengths_RxG)
            lengths_Sx1 = lengths_RxG[of_rows_S, segments_S].astype(np.int64)[:, None]
            places_SxK = ends_RxG[of_rows_S, segments_S][:, None] - lengths_Sx1 + np.arange(PIECES)
            places_SxK = np.minimum(places_SxK, tokens_RxL.shape[1] - 1)
            pieces_SxK = tokens_RxL[of_rows_S[:, None], places_SxK].astype(np.uint64) + np.uint64(1)
            pieces_SxK[np.arange(PIECES) >= lengths_Sx1 - 1] = 0
            yield pieces_SxK @ factors_K, keys_RxG[of_rows_S, segments_S]
