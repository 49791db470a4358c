"""Scores against an independent chunker, and the traps of seqeval pinned by hand."""

import itertools
import random
import warnings

import pytest
import seqeval.metrics
from seqeval.scheme import IOB2

from bioptimus_jax.ner.score import by_type, mentions, overlapping_pairs, score

TYPES = ('Drug', 'cell_type')


def chunks(tags):
    """conlleval's reading: a mention begins at B-, or at an I- of another type than before."""
    found, kind, start = [], None, 0
    for at, tag in enumerate([*tags, 'O']):
        prefix, _, this = tag.partition('-')
        inside = prefix == 'I' and this == kind
        if kind is not None and not inside:
            found.append((kind, start, at - 1))
            kind = None
        if prefix in ('B', 'I') and not inside:
            kind, start = this, at
    return found


def strict_chunks(tags):
    """Valid IOB2 only: B- begins, I- of the same type continues, an orphan I- belongs to nothing."""
    found = []
    for at, tag in enumerate(tags):
        if tag.startswith('B-'):
            end = at
            while end + 1 < len(tags) and tags[end + 1] == 'I-' + tag[2:]:
                end += 1
            found.append((tag[2:], at, end))
    return found


def f1(gold, predicted, chunker):
    left = {(n, *c) for n, tags in enumerate(gold) for c in chunker(tags)}
    right = {(n, *c) for n, tags in enumerate(predicted) for c in chunker(tags)}
    return 2 * len(left & right) / max(len(left) + len(right), 1), len(left), len(right)


def random_tags(generator, length):
    tags = ['O', *(f'{prefix}-{kind}' for kind in TYPES for prefix in 'BI')]
    return generator.choices(tags, weights=[4, 2, 3, 2, 3], k=length)


def largest_matching(left, right):
    """By trying every assignment."""
    if not left:
        return 0
    kind, start, end = left[0]
    best = largest_matching(left[1:], right)
    for i, (other, low, high) in enumerate(right):
        if other == kind and low <= end and start <= high:
            best = max(best, 1 + largest_matching(left[1:], right[:i] + right[i + 1 :]))
    return best


def test_thousand_random_taggings_agree_with_an_independent_scorer():
    generator = random.Random(0)
    for _ in range(1000):
        lengths = [generator.randint(1, 9) for _ in range(3)]
        gold, predicted = ([random_tags(generator, n) for n in lengths] for _ in range(2))
        result = score(gold, predicted)
        for mode, chunker in (('default', chunks), ('strict', strict_chunks)):
            expected = f1(gold, predicted, chunker)
            found = tuple(result[mode][key] for key in ('f1', 'gold', 'predicted'))
            assert found == pytest.approx(expected), (mode, gold, predicted)
        matched = sum(largest_matching(chunks(g), chunks(p)) for g, p in zip(gold, predicted, strict=True))
        relaxed = result['relaxed']
        assert relaxed['recall'] == pytest.approx(matched / max(relaxed['gold'], 1))
        assert relaxed['precision'] == pytest.approx(matched / max(relaxed['predicted'], 1))


def test_orphan_inside_tag_opens_a_mention_by_default_and_none_in_strict_mode():
    gold, predicted = [['B-Drug', 'I-Drug', 'O']], [['I-Drug', 'I-Drug', 'O']]
    result = score(gold, predicted)
    assert result['default']['f1'] == 1
    assert result['strict']['f1'] == 0
    # the trap: without a scheme, strict mode silently is the default mode
    assert seqeval.metrics.f1_score(gold, predicted, mode='strict') == 1
    assert seqeval.metrics.f1_score(gold, predicted, mode='strict', scheme=IOB2) == result['strict']['f1']


def test_strict_can_be_higher_than_default():
    gold, predicted = [['B-Drug', 'O', 'O']], [['B-Drug', 'O', 'I-Drug']]
    result = score(gold, predicted)
    assert result['strict']['f1'] == 1
    assert result['default']['f1'] == pytest.approx(2 / 3)


def test_relaxed_needs_type_and_overlap_and_matches_one_to_one():
    assert overlapping_pairs([('a', 0, 3)], [('a', 0, 1), ('a', 2, 3)]) == 1
    assert overlapping_pairs([('a', 0, 1), ('a', 2, 3)], [('a', 1, 2)]) == 1
    assert overlapping_pairs([('a', 0, 1)], [('b', 0, 1)]) == 0
    assert overlapping_pairs([('a', 0, 1)], [('a', 2, 3)]) == 0
    # a chain in which a careless greedy choice loses a pair
    assert overlapping_pairs([('a', 0, 2), ('a', 3, 6)], [('a', 2, 3), ('a', 5, 8)]) == 2


def test_mentions_agree_with_the_independent_chunker_on_every_short_tagging():
    tags = ['O', 'B-x', 'I-x', 'B-y', 'I-y']
    for sequence in itertools.product(tags, repeat=4):
        assert [tuple(m) for m in mentions(sequence)] == chunks(sequence)


def test_nothing_to_find_is_zero_without_warnings():
    with warnings.catch_warnings():
        warnings.simplefilter('error')
        empty = score([['O', 'O']], [['O', 'O']])
        missed = score([['B-x', 'O']], [['O', 'O']])
        odd = score(
            [['B-gene-or-protein', 'I-gene-or-protein']], [['B-gene-or-protein', 'I-gene-or-protein']]
        )
    for mode in ('default', 'strict', 'relaxed'):
        assert (empty[mode]['f1'], empty[mode]['gold']) == (0, 0)
        assert (missed[mode]['f1'], missed[mode]['gold'], missed[mode]['predicted']) == (0, 1, 0)
        assert odd[mode]['f1'] == 1


def test_by_type():
    result = by_type([['B-a', 'O', 'B-b']], [['B-a', 'O', 'B-a']])
    assert result['a'] == {
        'precision': 0.5,
        'recall': 1.0,
        'f1': pytest.approx(2 / 3),
        'gold': 1,
        'predicted': 2,
    }
    assert result['b']['recall'] == 0
