"""Entity-level precision, recall and F1: seqeval's default, strict IOB2 and relaxed overlap, typed and untyped.

Counted from sets of mentions, several times faster than seqeval; the tests hold the numbers equal to its own.
Shapes: U sentences; the three counts are mentions that are right, in gold, and predicted.
"""

import functools
import heapq
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from bioptimus_jax.errors import InputError
from bioptimus_jax.progress.console import numbered
from bioptimus_jax.scoring.metrics import micro_f1, rates
from bioptimus_jax.sets.tags import Span, beside, spans

Tags = Sequence[Sequence[str]]

ANY_TYPE = 'entity'  # the type of every mention in untyped scores


def untyped(found: Sequence[Span]) -> list[Span]:
    """The same mentions without their types.

    Renaming the tags would not do: in B-Drug I-Gene the second tag opens a mention, in B-x I-x it continues one.
    """
    return [(ANY_TYPE, first, last) for _, first, last in found]


def overlapping_pairs(gold: Sequence[Span], predicted: Sequence[Span], beside: Sequence[Span] = ()) -> int:
    """How many mentions, at most, can be paired one to one with an overlapping mention of the same type.

    Mentions of gold do not overlap each other. So each gold mention, from the left, takes the free prediction that ends
    first of those that overlap it: one that ends later can still serve a later mention.
    """
    found = 0
    predicted = [*predicted, *beside] if beside else predicted
    for kind in {m[0] for m in gold} & {m[0] for m in predicted}:
        waiting = sorted((m for m in predicted if m[0] == kind), reverse=True)
        begun: list[int] = []  # last words of free predictions that begin before the end of this gold mention
        for _, first, last in sorted(m for m in gold if m[0] == kind):
            while waiting and waiting[-1][1] <= last:
                heapq.heappush(begun, waiting.pop()[2])
            while begun and begun[0] < first:
                heapq.heappop(begun)
            if begun:
                heapq.heappop(begun)
                found += 1
    return found


def equal_mentions(gold: Sequence[Span], predicted: Sequence[Span], beside: Sequence[Span]) -> int:
    """How many mentions both sides have; what is `beside` equals none (`outside.laid_on`)."""
    return len(set(gold) & set(predicted))


MODES: dict[str, tuple[Callable[[Sequence[str]], list[Span]], Callable[..., int]]] = {
    'default': (spans, equal_mentions),
    'strict': (functools.partial(spans, orphans_open=False), equal_mentions),
    'relaxed': (spans, overlapping_pairs),
}
"""Mode -> how mentions are read from tags, and how many of gold are right, given gold, predicted and `beside`."""


def score(
    gold: Tags, predicted: Tags, modes: Iterable[str] = MODES, *, typed: bool = True
) -> dict[str, dict[str, float]]:
    """`{mode: {precision, recall, f1, gold, predicted}}`, micro-averaged over mentions. Raises InputError.

    default: as conlleval reads tags, an orphan I- opens a mention; what the papers report.
    strict: only mentions that are valid IOB2 count, on both sides; can be higher or lower than default.
    relaxed: mentions as in default; right if types agree and spans overlap, matched one to one (Tinn et al.,
    Table 11; type and one-to-one are this project's reading).
    Not `typed`: only the place of a mention counts. Neighbours of different types stay two mentions.
    """
    found = _counts(gold, predicted, tuple(modes), typed)
    return {mode: rates(*counts_Ux3.sum(0).tolist()) for mode, counts_Ux3 in found.items()}


def counts(gold: Tags, predicted: Tags, mode: str = 'default', *, typed: bool = True) -> np.ndarray:
    """counts_Ux3: what `score` adds up, sentence by sentence. Raises InputError."""
    return _counts(gold, predicted, (mode,), typed)[mode]


def _counts(gold: Tags, predicted: Tags, modes: Sequence[str], typed: bool) -> dict[str, np.ndarray]:
    """Mode -> counts_Ux3. A sentence is read once for all modes that read alike."""
    found = {mode: np.zeros((len(gold), 3), np.int64) for mode in modes}
    uses: dict[Any, list[tuple[np.ndarray, Callable[..., int]]]] = {}
    for mode, counts_Ux3 in found.items():
        reader, matched = MODES[mode]
        uses.setdefault(reader, []).append((counts_Ux3, matched))
    for at, (left, right) in enumerate(zip(gold, predicted, strict=True)):
        for reader, of_modes in uses.items():
            sides = _read(left, right, reader)
            if not any(sides):
                continue
            ours, theirs, others = sides if typed else map(untyped, sides)
            for counts_Ux3, matched in of_modes:
                counts_Ux3[at] = matched(ours, theirs, others), len(ours), len(theirs) + len(others)
    return found


def _read(
    gold: Sequence[str], predicted: Sequence[str], reader: Callable[[Sequence[str]], list[Span]]
) -> tuple[list[Span], list[Span], list[Span]]:
    """Gold mentions of a sentence, predicted ones, and those beside them. Raises InputError."""
    if len(gold) != len(predicted):
        raise InputError(
            f'a sentence of {numbered(len(gold), "word")} has {numbered(len(predicted), "predicted tag")}'
        )
    return reader(gold), reader(predicted), beside(predicted)


def by_type(gold: Tags, predicted: Tags, mode: str = 'default') -> dict[str, dict[str, float]]:
    """The measure for every entity type of either side. Raises InputError."""
    found: dict[str, list[int]] = {}
    read, matched = MODES[mode]
    for left, right in zip(gold, predicted, strict=True):
        sides = _read(left, right, read)
        for kind in {m[0] for side in sides for m in side}:
            ours, theirs, others = [[m for m in side if m[0] == kind] if side else side for side in sides]
            sums = found.setdefault(kind, [0, 0, 0])
            sums[0] += matched(ours, theirs, others)
            sums[1] += len(ours)
            sums[2] += len(theirs) + len(others)
    return {kind: rates(*found[kind]) for kind in sorted(found)}


def check_with_seqeval(gold: Tags, predicted: Tags, scores: dict[str, float]) -> None:
    """Nothing, where the default mode of seqeval, which others publish, gives the same. Raises InputError."""
    import warnings

    from seqeval.metrics import f1_score, precision_score, recall_score

    left, right = [list(tags) for tags in gold], [list(tags) for tags in predicted]
    if any(map(beside, right)):
        return  # seqeval knows no mentions that overlap
    if not scores['gold'] and not scores['predicted']:
        return  # seqeval cannot average over no types
    with warnings.catch_warnings():
        warnings.simplefilter('ignore')
        measures = {'precision': precision_score, 'recall': recall_score, 'f1': f1_score}
        theirs = {name: float(measure(left, right)) for name, measure in measures.items()}
    for name, value in theirs.items():
        if abs(value - scores[name]) > 1e-9:
            raise InputError(
                f'{name} is {scores[name]:.6f} here but {value:.6f} by seqeval: report this as a defect'
            )


METRICS = {
    mode: micro_f1(
        'entity F1',
        'entities of the test sets, default mode of seqeval',
        functools.partial(counts, mode=mode),
    )
    for mode in MODES
}
"""Mode -> entity F1; the first is what the papers report."""
