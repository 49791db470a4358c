"""Rows of a table against the row that they are compared with, set by set: differences, intervals, corrected tests."""

import dataclasses
import functools
from collections.abc import Sequence
from pathlib import Path

from bioptimus_jax.errors import InputError
from bioptimus_jax.files import digest
from bioptimus_jax.ner.predictions import Predicted, counts_by_unit, read_predictions
from bioptimus_jax.ner.statistics import Difference, holm, macro, mean_f1
from bioptimus_jax.ner.verdict import ALPHA, Pairing, differences_of, same_text
from bioptimus_jax.report.questions import Row
from bioptimus_jax.report.trained import cell_folder

MACRO = 'mean of the sets'
AGREED, DOUBTED = '†', '(†)'


@dataclasses.dataclass(frozen=True)
class Compared:
    """A row less its reference on one set (or on MACRO): `p` is corrected for all comparisons of the table."""

    row: str
    reference: str
    dataset: str
    difference: Difference
    p: float
    by_seed: tuple[float, ...]

    @property
    def mark(self) -> str:
        """AGREED: the test says that they differ, and all of several seeds say so; DOUBTED: the test alone does."""
        if self.p >= ALPHA:
            return ''
        sign = 1 if self.difference.observed > 0 else -1
        return AGREED if all(sign * d > 0 for d in self.by_seed) and len(self.by_seed) > 1 else DOUBTED


def compare(pairs: Sequence[tuple[Row, Row]], datasets: Sequence[str]) -> tuple[list[Compared], list[str]]:
    """Every (row, reference) on every set that both have, and over the sets; and what could not be compared, in words.

    Cells are paired by seeds. Holm's correction counts all single sets of the table; the means over sets are a
    family of their own.
    """
    single: list[Compared] = []
    means: list[Compared] = []
    problems: list[str] = []
    for row, reference in pairs:
        pairings = []
        for dataset in datasets:
            try:
                pairing = _pairing(row, reference, dataset)
            except InputError as error:
                problems.append(f'{row.label} and {reference.label} on {dataset}: {error}')
                continue
            if pairing:
                pairings.append(pairing)
        found = differences_of(pairings)
        for pairing, difference in zip(pairings, found, strict=True):
            by_seed = _by_seed(pairing)
            single.append(
                Compared(row.label, reference.label, pairing.dataset, difference, difference.p, by_seed)
            )
        if len(found) > 1 and len({p.seeds for p in pairings}) == 1:
            over = macro(found)
            by_seed = tuple(sum(d) / len(d) for d in zip(*map(_by_seed, pairings), strict=True))
            means.append(Compared(row.label, reference.label, MACRO, over, over.p, by_seed))
    return [*_corrected(single), *_corrected(means)], problems


def _corrected(family: Sequence[Compared]) -> list[Compared]:
    p_values = holm([c.p for c in family])
    return [dataclasses.replace(c, p=p) for c, p in zip(family, p_values, strict=True)]


def _by_seed(pairing: Pairing) -> tuple[float, ...]:
    pairs = zip(pairing.a_SxUx3, pairing.b_SxUx3, strict=True)
    return tuple(mean_f1(b[None]) - mean_f1(a[None]) for a, b in pairs)


def _pairing(row: Row, reference: Row, dataset: str) -> Pairing | None:
    """Reference and row over common seeds, or None where there are none or their predictions are not at hand.

    A model that was given as a folder has no seed of pre-training: it is paired by that of fine-tuning alone.
    """
    sides = [side.cells(dataset) for side in (reference, row)]
    if any(None in {pre for pre, _ in side} for side in sides):
        sides = [{(None, fine): cell for (_, fine), cell in side.items()} for side in sides]
    common = [key for key in sides[0] if key in sides[1]]
    files = [[cell_folder(*side[key]) / 'predictions.tsv' for key in common] for side in sides]
    if not common or not all(file.is_file() for side in files for file in side):
        return None
    predictions = [[_read(file) for file in side] for side in files]
    one, text = files[0][0], predictions[0][0]
    for paths, sentences in zip(files, predictions, strict=True):
        for path, read in zip(paths, sentences, strict=True):
            same_text(one, text, path, read)
    (unit, a_SxUx3), (_, b_SxUx3) = map(counts_by_unit, predictions)
    seeds = tuple(range(len(common)))
    return Pairing(
        dataset, seeds, unit, digest([[s.words, s.document] for s in text]), a_SxUx3, b_SxUx3, (), ()
    )


@functools.lru_cache(64)
def _read(file: Path) -> list[Predicted]:
    """A reference is read once for all of its rows."""
    return read_predictions(file)
