"""The test predictions of a fine-tuning as counts by unit, what the bootstrap draws: from a file, or from a record."""

import base64
import binascii
import dataclasses
import zlib
from collections.abc import Iterable, Sequence
from itertools import zip_longest
from pathlib import Path
from typing import Any

import numpy as np

from bioptimus_jax.errors import InputError
from bioptimus_jax.finetuning.predictions import Predicted, counts_by_unit
from bioptimus_jax.finetuning.task import Task
from bioptimus_jax.progress.console import plural
from bioptimus_jax.records.finetune import KeptUnits
from bioptimus_jax.scoring.comparison import Pairing
from bioptimus_jax.storage.files import digest

STORED: np.dtype[Any] = np.dtype('<u2')
EXACT: np.dtype[Any] = np.dtype('<f8')
"""Types of counts on record: small whole numbers; all others."""
MOST_UNITS = 10_000_000
"""Most units that a record may unpack to."""


@dataclasses.dataclass(frozen=True)
class Units:
    """Counts of a task's metric for every unit (`kind`: documents or examples) of a test set.

    `text`, `gold`: digests of words and documents, and of gold answers. `place`: the file; of a record it
    is not there.
    """

    place: Path
    kind: str
    text: str
    gold: str
    counts_UxC: np.ndarray
    task: Task

    def check_same_items(self, other: 'Units') -> None:
        """Raises InputError where the other was scored on another text or on other gold answers."""
        if (self.text, self.gold) == (other.text, other.gold):
            return
        if self.place.is_file() and other.place.is_file():
            ours, theirs = (self.task.written(place.parent) for place in (self.place, other.place))
            same_text(self.place, ours, other.place, theirs, self.task.unit)
        raise InputError(f'{other.place}: has another test file than {self.place}; score both on the same')

    def record(self) -> KeptUnits:
        """The record for results.jsonl: counts column after column, compressed, in base 64; 16 bits each if exact."""
        kind = STORED if np.array_equal(self.counts_UxC, self.counts_UxC.astype(STORED)) else EXACT
        packed = zlib.compress(np.ascontiguousarray(self.counts_UxC.T, kind).tobytes(), 9)
        counts = base64.b64encode(packed).decode()
        named = kind.str if kind is EXACT else None
        return KeptUnits(kind=self.kind, text=self.text, gold=self.gold, counts=counts, type=named)


def same_text(
    first: Path, ours: Sequence[Predicted], second: Path, theirs: Sequence[Predicted], unit: str
) -> None:
    """Nothing, where words, gold answers and documents are the same. Raises InputError naming the first difference.

    `unit`: what an example is called.
    """
    remedy = 'both models must be scored on the same test file'
    for number, (one, other) in enumerate(zip(ours, theirs, strict=False), 1):
        for what, left, right in (('word', one.words, other.words), ('gold answer', one.gold, other.gold)):
            if left != right:
                at = next(i for i, (x, y) in enumerate(zip_longest(left, right)) if x != y)
                shown = [repr(side[at]) if at < len(side) else 'missing' for side in (right, left)]
                raise InputError(
                    f'{second}: {unit} {number}, {what} {at + 1} is {shown[0]}, but {shown[1]} in {first}; {remedy}'
                )
        if one.document != other.document:
            raise InputError(
                f'{second}: {unit} {number} is of document {other.document}, but {one.document} in {first}; {remedy}'
            )
    if len(ours) != len(theirs):
        raise InputError(f'{second}: has {len(theirs)} {plural(unit)}, but {first} {len(ours)}; {remedy}')


def read_units(file: Path, task: Task) -> Units:
    """Counts of the test predictions that a task has left. Raises InputError."""
    examples = task.written(file.parent)
    kind, counts_1xUxC = counts_by_unit(task.metric, [examples], task.unit)
    text = digest([[e.words, e.document] for e in examples])
    return Units(file, kind, text, digest([e.gold for e in examples]), counts_1xUxC[0], task)


def pairing_of_units(
    dataset: str, seeds: Iterable[Any], reference: Sequence[Units], model: Sequence[Units]
) -> Pairing:
    """Both models' predictions by these seeds. Raises InputError unless all are of one text and gold standard."""
    first = reference[0]
    for units in (*reference, *model):
        first.check_same_items(units)
    sides = (np.stack([units.counts_UxC for units in side]) for side in (reference, model))
    return Pairing(dataset, first.task.metric, tuple(seeds), first.kind, first.text, *sides)


def unpacked(record: KeptUnits, place: Path, task: Task) -> Units:
    """The units that `Units.record` packed. Raises InputError for a record that is damaged, or unpacks to too much."""
    columns = len(task.metric.columns)
    try:
        unpacking = zlib.decompressobj()
        kind = {STORED.str: STORED, EXACT.str: EXACT}[record.type or STORED.str]
        packed = base64.b64decode(record.counts, validate=True)
        # A bound on what comes out: a small damaged or hostile record could unpack to more than memory holds.
        raw = unpacking.decompress(packed, columns * kind.itemsize * MOST_UNITS)
        if unpacking.unconsumed_tail or not unpacking.eof:
            raise ValueError('too long or cut off')
        counts_UxC = np.frombuffer(raw, kind).reshape(columns, -1).T
        counts_UxC = counts_UxC.astype(np.int64) if kind is STORED else counts_UxC
        return Units(place, record.kind, record.text, record.gold, counts_UxC, task)
    except (KeyError, ValueError, binascii.Error, zlib.error) as error:
        raise InputError(f'{place}: its counts by unit are damaged ({error}); restore the record') from error
