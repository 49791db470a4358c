"""Rows of a table against the row that they are compared with, set by set: differences, intervals, corrected tests."""

import dataclasses
import functools
import itertools
import statistics
from collections.abc import Collection, Sequence
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
Key = tuple[int | None, int]
"""Seeds of pre-training and of fine-tuning."""


@dataclasses.dataclass(frozen=True)
class Compared:
    """A row less its reference on one set (or on MACRO): `p` is corrected for all comparisons of the table.

    `by_seed`: the difference with each pre-training, the mean of its fine-tunings. `over`: the sets of a mean.
    """

    row: str
    reference: str
    dataset: str
    difference: Difference
    p: float
    by_seed: tuple[float, ...]
    over: tuple[str, ...] = ()

    @property
    def mark(self) -> str:
        """AGREED: the test says that they differ, and so do all of several pre-trainings; DOUBTED: the test alone."""
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
        over = tuple(p.dataset for p in pairings)
        if len({p.seeds for p in pairings}) > 1:
            problems.append(f'{row.label} and {reference.label}: no mean over {", ".join(over)}: other seeds')
        elif len(found) > 1:
            mean = macro(found)
            by_seed = tuple(map(statistics.fmean, zip(*map(_by_seed, pairings), strict=True)))
            means.append(Compared(row.label, reference.label, MACRO, mean, mean.p, by_seed, over))
    return [*_corrected(single), *_corrected(means)], problems


def _corrected(family: Sequence[Compared]) -> list[Compared]:
    p_values = holm([c.p for c in family])
    return [dataclasses.replace(c, p=p) for c, p in zip(family, p_values, strict=True)]


def _by_seed(pairing: Pairing) -> tuple[float, ...]:
    found: dict[int | None, list[float]] = {}
    for (seed, _), a, b in zip(pairing.seeds, pairing.a_SxUx3, pairing.b_SxUx3, strict=True):
        found.setdefault(seed, []).append(mean_f1(b[None]) - mean_f1(a[None]))
    return tuple(map(statistics.fmean, found.values()))


def _pairing(row: Row, reference: Row, dataset: str) -> Pairing | None:
    """Reference and row over common seeds, or None where there are none. InputError where predictions lack."""
    sides = [side.cells(dataset) for side in (reference, row)]
    common = _common(*sides)
    files = [
        [cell_folder(*side[keys[n]]) / 'predictions.tsv' for keys in common.values()]
        for n, side in enumerate(sides)
    ]
    for file in itertools.chain(*files):
        if not file.is_file():
            raise InputError(f'{file}: is missing, so nothing is tested; run stage ner again with --replace')
    if not common:
        return None
    predictions = [[_read(file) for file in side] for side in files]
    one, text = files[0][0], predictions[0][0]
    for paths, sentences in zip(files, predictions, strict=True):
        for path, read in zip(paths, sentences, strict=True):
            same_text(one, text, path, read)
    (unit, a_SxUx3), (_, b_SxUx3) = map(counts_by_unit, predictions)
    sentences_read = digest([[s.words, s.document] for s in text])
    return Pairing(dataset, tuple(common), unit, sentences_read, a_SxUx3, b_SxUx3, (), ())


def _common(a: Collection[Key], b: Collection[Key]) -> dict[Key, tuple[Key, Key]]:
    """Seeds of pre-training and of fine-tuning -> those of both sides.

    A model that was given as a folder has no seed of pre-training: it is paired by that of fine-tuning alone, with
    every pre-training of the other.
    """
    found = {}
    for key in b if any(seed is None for seed, _ in a) else a:
        one, other = (key if key in side else (None, key[1]) for side in (a, b))
        if one in a and other in b:
            found[key] = one, other
    return found


@functools.lru_cache(64)
def _read(file: Path) -> list[Predicted]:
    """A reference is read once for all of its rows."""
    return read_predictions(file)
