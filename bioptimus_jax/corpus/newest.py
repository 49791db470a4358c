"""Which of several records with one id stands: the rule for versions, revisions and deletions, for all who read inputs.

Records are taken in the order of the inputs. Between two of one id decide

1. the version: the higher one stands;
2. where versions are equal, the date of revision: the later one stands; a record without one counts as revised when
   those before it were;
3. where these are equal, too, the order: the last one stands.

A deletion takes back what came before it under its id, in its version, or in all of them where it names none. What
comes behind it stands.
"""

import dataclasses
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from bioptimus_jax.corpus.documents import document_key
from bioptimus_jax.corpus.records import Record


@dataclasses.dataclass(frozen=True)
class Identities:
    """What decides which records stand, as columns: the hash of the id, version, revision, and whether it deletes.

    A record of version 0 that deletes nothing neither replaces others nor is replaced.
    """

    key_N: np.ndarray
    version_N: np.ndarray
    revised_N: np.ndarray
    deletes_N: np.ndarray

    @classmethod
    def of(cls, records: Iterable[Record]) -> 'Identities':
        """The identities of records in order; one that could not be read takes no part."""
        rows = [
            (
                document_key(record.id),
                0 if record.reason == 'bad_record' else record.version,
                record.revised,
                record.reason == 'deletion',
            )
            for record in records
        ]
        columns = zip(*rows, strict=True) if rows else ((), (), (), ())
        kinds = (np.uint64, np.int64, np.int64, np.bool_)
        return cls(*(np.array(column, kind) for column, kind in zip(columns, kinds, strict=True)))


class Replaced(NamedTuple):
    """Numbers of records that do not stand: those that a deletion took back, and those that a newer one replaces."""

    deleted: list[int]
    superseded: list[int]


def replaced(records: Identities) -> Replaced:
    """The records that do not stand."""
    found = Replaced([], [])
    taking_part = np.flatnonzero((records.version_N > 0) | records.deletes_N)
    for group in groups(records.key_N, taking_part):
        deletes = records.deletes_N[group].tolist()
        ranks = _ranks(records.version_N[group].tolist(), records.revised_N[group].tolist())
        standing, taken_back = -1, set()
        # Backwards: a deletion takes back what came before it, never the other way.
        for place in range(len(group) - 1, -1, -1):
            version, _ = ranks[place]
            if deletes[place]:
                taken_back.add(version)
            elif taken_back & {0, version}:
                found.deleted.append(int(group[place]))
            elif standing >= 0 and ranks[place] <= ranks[standing]:
                found.superseded.append(int(group[place]))
            else:
                if standing >= 0:
                    found.superseded.append(int(group[standing]))
                standing = place
    return found


def _ranks(versions: Sequence[int], revisions: Sequence[int]) -> list[tuple[int, int]]:
    """Version and revision of records in order; one without a date was revised when those before it were."""
    ranks, latest = list[tuple[int, int]](), dict[int, int]()
    for version, revised in zip(versions, revisions, strict=True):
        latest[version] = max(revised, latest.get(version, 0))
        ranks.append((version, revised or latest[version]))
    return ranks


def standing(files: Sequence[Identities]) -> list[np.ndarray]:
    """For every file, whether each of its records stands; deletions do not."""
    whole = Identities(*(np.concatenate(columns) for columns in zip(*map(dataclasses.astuple, files))))
    stands_N = ~whole.deletes_N
    stands_N[[number for numbers in replaced(whole) for number in numbers]] = False
    return np.split(stands_N, np.cumsum([len(file.key_N) for file in files])[:-1])


def groups(column_N: np.ndarray, records: np.ndarray) -> Iterator[np.ndarray]:
    """The records that share a value with others, group by group, each in order."""
    order = records[np.argsort(column_N[records], kind='stable')]
    values = column_N[order]
    edges = np.concatenate([[0], np.flatnonzero(values[1:] != values[:-1]) + 1, [len(order)]])
    several = np.flatnonzero(np.diff(edges) > 1)
    for start, stop in zip(edges[several].tolist(), edges[several + 1].tolist(), strict=True):
        yield order[start:stop]
