"""Entity-level precision, recall and F1: seqeval's default, strict IOB2 and relaxed overlap, typed and untyped.

Counted from sets of mentions, several times faster than seqeval; the tests hold the numbers equal to its own.
Shapes: U sentences; the three counts are mentions that are right, in gold, and predicted.
"""

import functools
from collections.abc import Callable, Iterable, Sequence

import numpy as np

from bioptimus_jax.errors import InputError
from bioptimus_jax.finetune.metrics import micro_f1, rates
from bioptimus_jax.sets.tags import Span, spans

Tags = Sequence[Sequence[str]]

ANY_TYPE = 'entity'  # the type of every mention in untyped scores


def untyped(found: Sequence[Span]) -> list[Span]:
    """The same mentions without their types.

    Renaming the tags would not do: in B-Drug I-Gene the second tag opens a mention, in B-x I-x it continues one.
    """
    return [(ANY_TYPE, first, last) for _, first, last in found]


def overlapping_pairs(gold: Sequence[Span], predicted: Sequence[Span]) -> int:
    """How many mentions, at most, can be paired one to one with an overlapping mention of the same type.

    Mentions of one side do not overlap each other, so walking through both from the left and pairing at the
    first overlap is optimal: of two that overlap, at most one reaches a later mention of the other side.
    """
    found = 0
    for kind in {m[0] for m in gold} & {m[0] for m in predicted}:
        left = sorted(m[1:] for m in gold if m[0] == kind)
        right = sorted(m[1:] for m in predicted if m[0] == kind)
        i = j = 0
        while i < len(left) and j < len(right):
            if left[i][1] < right[j][0]:
                i += 1
            elif right[j][1] < left[i][0]:
                j += 1
            else:
                found, i, j = found + 1, i + 1, j + 1
    return found


def equal_mentions(gold: Sequence[Span], predicted: Sequence[Span]) -> int:
    """How many mentions both sides have."""
    return len(set(gold) & set(predicted))


MODES: dict[str, tuple[Callable[[Sequence[str]], list[Span]], Callable[..., int]]] = {
    'default': (spans, equal_mentions),
    'strict': (functools.partial(spans, orphans_open=False), equal_mentions),
    'relaxed': (spans, overlapping_pairs),
}
"""Mode -> how mentions are read from tags, and how many of gold are right."""


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
    return {mode: rates(*counts(gold, predicted, mode, typed=typed).sum(0).tolist()) for mode in modes}


def counts(gold: Tags, predicted: Tags, mode: str = 'default', *, typed: bool = True) -> np.ndarray:
    """counts_Ux3: what `score` adds up, sentence by sentence. Raises InputError."""
    read, matched = MODES[mode]
    counts_Ux3 = np.zeros((len(gold), 3), np.int64)
    for row, left, right in zip(counts_Ux3, gold, predicted, strict=True):
        if len(left) != len(right):
            raise InputError(f'a sentence of {len(left)} words has {len(right)} predicted tags')
        pair = read(left), read(right)
        if pair[0] or pair[1]:
            row[:] = matched(*(pair if typed else map(untyped, pair))), len(pair[0]), len(pair[1])
    return counts_Ux3


def by_type(gold: Tags, predicted: Tags, mode: str = 'default') -> dict[str, dict[str, float]]:
    """The measure for every entity type of either side. Raises InputError."""
    found: dict[str, list[int]] = {}
    read, matched = MODES[mode]
    for left, right in zip(map(read, gold), map(read, predicted), strict=True):
        for kind in {m[0] for m in (*left, *right)}:
            ours = [m for m in left if m[0] == kind]
            theirs = [m for m in right if m[0] == kind]
            new = matched(ours, theirs), len(ours), len(theirs)
            found[kind] = [a + b for a, b in zip(found.get(kind, (0, 0, 0)), new, strict=True)]
    return {kind: rates(*found[kind]) for kind in sorted(found)}


def check_with_seqeval(gold: Tags, predicted: Tags, scores: dict[str, float]) -> None:
    """Nothing, where the default mode of seqeval, which others publish, gives the same. Raises InputError."""
    import warnings

    from seqeval.metrics import f1_score, precision_score, recall_score

    left, right = [list(tags) for tags in gold], [list(tags) for tags in predicted]
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
