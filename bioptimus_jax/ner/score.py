"""Entity-level precision, recall and F1: seqeval's default, strict IOB2 and relaxed overlap."""

import warnings
from collections import defaultdict
from collections.abc import Sequence
from typing import Any

Tags = Sequence[Sequence[str]]
Mention = tuple[str, int, int]  # type, first word, last word

MODES = ('default', 'strict', 'relaxed')


def score(gold: Tags, predicted: Tags, modes: Sequence[str] = MODES) -> dict[str, dict[str, float]]:
    """`{mode: {precision, recall, f1, gold, predicted}}`, micro-averaged over mentions.

    default: as conlleval reads tags, an orphan I- opens a mention; what the papers report.
    strict: only mentions that are valid IOB2 count, on both sides; can be higher or lower than default.
    relaxed: mentions as in default; right if types agree and spans overlap, matched one to one (Tinn et al.,
    Table 11; type and one-to-one are this project's reading).
    """
    measures = {'default': _default, 'strict': _strict, 'relaxed': _relaxed}
    return {mode: measures[mode](gold, predicted) for mode in modes}


def mentions(tags: Sequence[str]) -> list[Mention]:
    """The mentions of one sentence as seqeval's default mode reads them."""
    from seqeval.metrics.sequence_labeling import get_entities

    with warnings.catch_warnings():
        warnings.simplefilter('ignore')
        return get_entities(list(tags))


def overlapping_pairs(gold: Sequence[Mention], predicted: Sequence[Mention]) -> int:
    """Size of the largest one-to-one matching of mentions of the same type whose spans overlap.

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


def by_type(gold: Tags, predicted: Tags) -> dict[str, dict[str, float]]:
    """The default measure for every entity type of either side."""
    counts: dict[str, list[int]] = defaultdict(lambda: [0, 0, 0])
    for g, p in zip(gold, predicted, strict=True):
        left, right = set(mentions(g)), set(mentions(p))
        for at, group in enumerate((left & right, left, right)):
            for mention in group:
                counts[mention[0]][at] += 1
    return {kind: _rates(*counts[kind]) for kind in sorted(counts)}


def _default(gold: Tags, predicted: Tags) -> dict[str, float]:
    from seqeval.metrics.sequence_labeling import precision_recall_fscore_support

    return _quietly(precision_recall_fscore_support, gold, predicted)


def _strict(gold: Tags, predicted: Tags) -> dict[str, float]:
    # f1_score(mode='strict') without a scheme silently runs the default mode; this function takes no mode and
    # always uses its scheme.
    from seqeval.metrics.v1 import precision_recall_fscore_support
    from seqeval.scheme import IOB2

    return _quietly(precision_recall_fscore_support, gold, predicted, scheme=IOB2)


def _quietly(function: Any, gold: Tags, predicted: Tags, **options: Any) -> dict[str, float]:
    left, right = [list(s) for s in gold], [list(s) for s in predicted]
    with warnings.catch_warnings():
        warnings.simplefilter('ignore')
        if not any(tag != 'O' for s in (*left, *right) for tag in s):
            return _rates(0, 0, 0)  # seqeval cannot average over no types
        values = function(left, right, average='micro', zero_division=0, **options)
        swapped = function(right, left, average='micro', zero_division=0, **options)
    precision, recall, f1, in_gold = (float(v) for v in values)
    return _record(precision, recall, f1, int(in_gold), int(swapped[3]))


def _relaxed(gold: Tags, predicted: Tags) -> dict[str, float]:
    pairs = [(mentions(g), mentions(p)) for g, p in zip(gold, predicted, strict=True)]
    matched = sum(overlapping_pairs(g, p) for g, p in pairs)
    return _rates(matched, sum(len(g) for g, _ in pairs), sum(len(p) for _, p in pairs))


def _rates(correct: int, in_gold: int, in_predicted: int) -> dict[str, float]:
    precision = correct / in_predicted if in_predicted else 0.0
    recall = correct / in_gold if in_gold else 0.0
    f1 = 2 * correct / (in_gold + in_predicted) if correct else 0.0
    return _record(precision, recall, f1, in_gold, in_predicted)


def _record(precision: float, recall: float, f1: float, in_gold: int, in_predicted: int) -> dict[str, float]:
    return {'precision': precision, 'recall': recall, 'f1': f1, 'gold': in_gold, 'predicted': in_predicted}
