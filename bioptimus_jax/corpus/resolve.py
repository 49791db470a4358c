"""What takes all parts to tell: newest versions, deletions, duplicates, near duplicates, the random choice.

Works on the parts' columns: some 80 bytes a record in memory at the most, 3 GB for all of PubMed. The order of
records is that of the input files.
"""

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
import pyarrow.parquet

from bioptimus_jax.corpus.config import Corpus, Near
from bioptimus_jax.corpus.near import near_duplicates
from bioptimus_jax.corpus.newest import Identities, groups, replaced
from bioptimus_jax.corpus.sift import CODE, SiftedFile
from bioptimus_jax.progress.console import Console

COLUMNS = (
    'reason',
    'version',
    'revised',
    'kind',
    'words',
    'key',
    'letters',
    'draw',
    'heldout',
    'preference',
    'weight',
)


@dataclasses.dataclass(frozen=True)
class Verdicts:
    """The reason code of every record (0: a document of the corpus), the code of its kind, whether it is held out, how
    often it is in the training split, and where parts end."""

    reason_N: np.ndarray
    kind_N: np.ndarray
    heldout_N: np.ndarray
    copies_N: np.ndarray
    ends: np.ndarray

    def documents(self) -> np.ndarray:
        """Numbers of the documents, ascending."""
        return np.flatnonzero(self.reason_N == 0)

    def stands(self, number: int) -> bool:
        """Whether no later record took that one back or replaced it."""
        return int(self.reason_N[number]) not in (CODE['deletion'], CODE['deleted'], CODE['superseded'])

    def split(self, name: str) -> np.ndarray:
        """Numbers of the documents of a split, ascending; those of training as often as they are in it."""
        numbers = np.flatnonzero((self.reason_N == 0) & (self.heldout_N == (name == 'heldout')))
        return numbers if name == 'heldout' else np.repeat(numbers, self.copies_N[numbers])

    def times(self) -> np.ndarray:
        """How often every record is in the split that it would be in."""
        return np.where(self.heldout_N, 1, self.copies_N)

    def leave_out_without_copies(self) -> None:
        """Leave out documents that are in their split no time."""
        self.reason_N[(self.reason_N == 0) & (self.times() == 0)] = CODE['no_weight']

    def start(self, part: int) -> int:
        """The number of a part's first record."""
        return int(self.ends[part - 1]) if part else 0

    def places(self, numbers: np.ndarray) -> Iterator[tuple[int, np.ndarray]]:
        """`(part, rows in it)` of records given by ascending numbers."""
        bounds = np.searchsorted(numbers, self.ends)
        for part, (low, high) in enumerate(zip([0, *bounds[:-1]], bounds, strict=True)):
            if low < high:
                yield part, numbers[low:high] - self.start(part)


def resolve(console: Console, settings: Corpus, parts: Sequence[SiftedFile], scratch: Path) -> Verdicts:
    """The verdict on every record of the parts."""
    tables = [pyarrow.parquet.read_table(part.table, columns=list(COLUMNS)) for part in parts]
    column = {name: np.concatenate([table[name].to_numpy() for table in tables]) for name in COLUMNS}
    ends = np.cumsum([table.num_rows for table in tables])
    del tables
    verdicts = among_others(column, ends)
    reason_N = verdicts.reason_N
    if settings.near.threshold:
        near = _near_duplicates(console, settings.near, parts, verdicts, column['reason'] == 0, scratch)
        reason_N[near] = CODE['near_duplicate']
    if settings.max_words:
        words_N = column['words'] * verdicts.times()
        by = column['draw'], column['preference']
        _choose(reason_N, column['heldout'], *by, words_N, settings.max_words)
    verdicts.leave_out_without_copies()
    return verdicts


def among_others(column: Mapping[str, np.ndarray], ends: np.ndarray) -> Verdicts:
    """The verdicts on records by themselves and by others of one id or of one text; near duplicates still stand."""
    reason_N = column['reason'].copy()
    # One that could not be read takes no part.
    version_N = np.where(reason_N == CODE['bad_record'], 0, column['version'])
    deletes_N = reason_N == CODE['deletion']
    _keep_newest(reason_N, Identities(column['key'], version_N, column['revised'], deletes_N))
    _drop_duplicates(reason_N, column['key'], column['letters'])
    copies_N = _copies(column['weight'], column['draw'])
    return Verdicts(reason_N, column['kind'], column['heldout'], copies_N, ends)


def _keep_newest(reason_N: np.ndarray, records: Identities) -> None:
    """Mark the records of one id that a later deletion took back or that a newer one replaces.

    A newer one replaces others with or without an abstract. A record that could not be read replaces nothing.
    """
    not_standing = replaced(records)
    reason_N[not_standing.deleted] = CODE['deleted']
    reason_N[not_standing.superseded] = CODE['superseded']


def _drop_duplicates(reason_N: np.ndarray, key_N: np.ndarray, letters_N: np.ndarray) -> None:
    """Leave out, in order, whatever has the id or the text of a record that was not left out for that itself.

    Ids must be unique, as contexts and masks are keyed by them. Benchmark texts take part: a copy of one is one.
    """
    records = np.flatnonzero((reason_N == 0) | (reason_N == CODE['benchmark']))
    # Only records that share a value with another are looked at one by one: few of many millions.
    shared = [n for column in (key_N, letters_N) for group in groups(column, records) for n in group]
    keys, texts = set(), set()
    for number in np.unique(np.array(shared, np.int64)).tolist():
        key, letters = int(key_N[number]), int(letters_N[number])
        if letters in texts:
            reason_N[number] = CODE['duplicate_text']
        elif key in keys:
            reason_N[number] = CODE['duplicate_id']
        else:
            keys.add(key)
            texts.add(letters)


def _near_duplicates(
    console: Console,
    settings: Near,
    parts: Sequence[SiftedFile],
    verdicts: Verdicts,
    signed_N: np.ndarray,
    scratch: Path,
) -> np.ndarray:
    """Numbers of documents near to an earlier one; `signed_N` says which records have a signature in their part."""
    numbers = verdicts.documents()
    signed_before = np.concatenate([[0], np.cumsum(signed_N)])
    rows = [np.zeros(0, np.int64) for _ in parts]
    # Only records without a reason of their own have a signature: a row is counted among those of its part.
    for part, within in verdicts.places(numbers):
        start = verdicts.start(part)
        rows[part] = signed_before[start + within] - signed_before[start]
    progress = console.progress('corpus: near duplicates', len(numbers), 'documents')
    near = near_duplicates(
        [part.signatures for part in parts],
        rows,
        settings,
        scratch,
        progress.update,
        console.check_stop,
    )
    return numbers[near]


def _copies(weight_N: np.ndarray, draw_N: np.ndarray) -> np.ndarray:
    """How often each record is in the training split: the whole part of its weight, and once more by chance."""
    whole_N = np.floor(weight_N.astype(np.float64))
    # Another part of the hash than the one that says how early it is chosen.
    chance_N = (draw_N & np.uint64(2**32 - 1)) / 2**32
    return (whole_N + (chance_N < weight_N - whole_N)).astype(np.int64)


def _choose(
    reason_N: np.ndarray,
    heldout_N: np.ndarray,
    draw_N: np.ndarray,
    preference_N: np.ndarray,
    words_N: np.ndarray,
    max_words: int,
) -> None:
    """Keep the documents that come first in the random order, up to the one that brings `max_words`; for training the
    preferred ones with as many words.

    Held-out documents are those of the random choice in any case, so that choices are scored on the same texts.
    """
    documents = np.flatnonzero(reason_N == 0)
    chosen = _first(documents, (draw_N,), words_N, max_words)
    train = documents[~heldout_N[documents]]
    of_train = words_N[np.intersect1d(chosen, train)].sum()
    preferred = _first(train, (draw_N, -preference_N), words_N, of_train)
    kept = np.union1d(chosen[heldout_N[chosen]], preferred)
    reason_N[np.setdiff1d(documents, kept)] = CODE['not_chosen']


def _first(numbers: np.ndarray, by: Sequence[np.ndarray], words_N: np.ndarray, max_words: int) -> np.ndarray:
    """The first of these documents, in the order of the last key and, where it is equal, of the one before it."""
    order = numbers[np.lexsort([key[numbers] for key in by])]
    before = np.cumsum(words_N[order]) - words_N[order]
    return order[before < max_words]
