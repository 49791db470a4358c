"""The test predictions of a fine-tuning as counts by unit, what the bootstrap draws: from a file, or from a record."""

import base64
import binascii
import dataclasses
import functools
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from bioptimus_jax.errors import InputError
from bioptimus_jax.files import digest
from bioptimus_jax.finetune.predictions import counts_by_unit, read_predictions
from bioptimus_jax.finetune.verdict import same_text
from bioptimus_jax.report.trained import Trained, cell_folder

STORED = np.dtype('<u2')
MOST_BYTES = 3 * STORED.itemsize * 10_000_000
"""That a record may unpack to: ten million units."""


@dataclasses.dataclass(frozen=True)
class Units:
    """Correct, gold and predicted mentions of every unit (`kind`: documents or sentences) of a test set.

    `text`, `gold`: digests of words and documents, and of gold tags. `place`: the file, which of a record is not there.
    """

    place: Path
    kind: str
    text: str
    gold: str
    counts_Ux3: np.ndarray

    def check_same_items(self, other: 'Units') -> None:
        """Raises InputError where the other was scored on another text or on other gold tags."""
        if (self.text, self.gold) == (other.text, other.gold):
            return
        if self.place.is_file() and other.place.is_file():
            same_text(self.place, read_predictions(self.place), other.place, read_predictions(other.place))
        raise InputError(f'{other.place}: has another test file than {self.place}; score both on the same')

    def record(self) -> dict[str, str]:
        """What stands in results.jsonl; the counts as 16-bit numbers, column after column, compressed, in base 64."""
        packed = zlib.compress(np.ascontiguousarray(self.counts_Ux3.T, STORED).tobytes(), 9)
        counts = base64.b64encode(packed).decode()
        return {'kind': self.kind, 'text': self.text, 'gold': self.gold, 'counts': counts}


def units_of(model: Trained, cell: Mapping[str, Any]) -> Units:
    """Of a fine-tuning of a model. Raises InputError where neither its record nor its folder has them."""
    file = cell_folder(model, cell) / 'predictions.tsv'
    if 'units' in cell:
        return _unpacked(cell['units'], file)
    if not model.folder.is_dir():
        raise InputError('the predictions are not on record, so nothing is said of other test items')
    if not file.is_file():
        raise InputError(
            f'{file}: is missing, so nothing is said of other test items; run stage finetune again with --replace'
        )
    return _counted(file)


@functools.lru_cache(256)
def _counted(file: Path) -> Units:
    sentences = read_predictions(file)
    kind, counts_1xUx3 = counts_by_unit([sentences])
    text = digest([[s.words, s.document] for s in sentences])
    return Units(file, kind, text, digest([s.gold for s in sentences]), counts_1xUx3[0])


def _unpacked(record: Mapping[str, str], place: Path) -> Units:
    try:
        unpacking = zlib.decompressobj()
        raw = unpacking.decompress(base64.b64decode(record['counts'], validate=True), MOST_BYTES)
        if unpacking.unconsumed_tail or not unpacking.eof:
            raise ValueError('too long or cut off')
        counts_Ux3 = np.frombuffer(raw, STORED).reshape(3, -1).T.astype(np.int64)
        return Units(place, record['kind'], record['text'], record['gold'], counts_Ux3)
    except (KeyError, TypeError, ValueError, binascii.Error, zlib.error) as error:
        raise InputError(f'{place}: its counts by unit are damaged ({error}); restore the record') from error
