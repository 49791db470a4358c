"""Scores against independent scorers (conlleval's rules, nervaluate, seqeval), and the traps of seqeval by hand."""

import itertools
import random
import warnings

import numpy as np
import pytest
import seqeval.metrics
import seqeval.metrics.v1
from hypothesis import given, settings
from hypothesis import strategies as st
from nervaluate import Evaluator
from seqeval.metrics import sequence_labeling
from seqeval.metrics.sequence_labeling import get_entities
from seqeval.scheme import IOB2

from bioptimus_jax.errors import InputError
from bioptimus_jax.scoring.score import by_type, counts, overlapping_pairs, score, untyped
from bioptimus_jax.sets.corpora import read_iob2
from bioptimus_jax.sets.tags import spans

TYPES = ('Drug', 'cell_type')
TAGS = ('O', *(f'{prefix}-{kind}' for kind in TYPES for prefix in 'BI'))
SENTENCES = st.lists(
    st.lists(st.tuples(st.sampled_from(TAGS), st.sampled_from(TAGS)), min_size=1, max_size=9),
    min_size=1,
    max_size=4,
)


def ends_chunk(before, tag):
    """conlleval's rule, as published, for the tags of IOB2."""
    if before == 'O':
        return False
    return tag == 'O' or tag[0] == 'B' or before[2:] != tag[2:]


def starts_chunk(before, tag):
    if tag == 'O':
        return False
    return tag[0] == 'B' or before == 'O' or before[2:] != tag[2:]


def chunks(tags):
    """conlleval's reading: a chunk runs from a tag that starts one to the tag before one that ends it."""
    found, start = [], None
    for at, (before, tag) in enumerate(itertools.pairwise(['O', *tags, 'O'])):
        if ends_chunk(before, tag):
            found.append((before[2:], start, at - 1))
        if starts_chunk(before, tag):
            start = at
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


def random_taggings(seed, number):
    """Pairs of gold and predicted tags for three sentences each; every second one is nearly right."""
    generator = random.Random(seed)
    for at in range(number):
        lengths = [generator.randint(1, 9) for _ in range(3)]
        gold, other = ([generator.choices(TAGS, [4, 2, 3, 2, 3], k=n) for n in lengths] for _ in range(2))
        if at % 2:
            keep = [[generator.random() < 0.7 for _ in tags] for tags in gold]
            merged = (zip(*three, strict=True) for three in zip(gold, other, keep, strict=True))
            other = [[g if k else o for g, o, k in sentence] for sentence in merged]
        yield gold, other


def largest_matching(left, right):
    """The largest matching, by trying every assignment."""
    if not left:
        return 0
    kind, start, end = left[0]
    best = largest_matching(left[1:], right)
    for i, (other, low, high) in enumerate(right):
        if other == kind and low <= end and start <= high:
            best = max(best, 1 + largest_matching(left[1:], right[:i] + right[i + 1 :]))
    return best


def test_thousand_random_taggings_agree_with_conllevals_rules_and_a_strict_scorer():
    for gold, predicted in random_taggings(0, 1000):
        result = score(gold, predicted)
        for mode, chunker in (('default', chunks), ('strict', strict_chunks)):
            expected = f1(gold, predicted, chunker)
            found = tuple(result[mode][key] for key in ('f1', 'gold', 'predicted'))
            assert found == pytest.approx(expected), (mode, gold, predicted)
        matched = sum(largest_matching(chunks(g), chunks(p)) for g, p in zip(gold, predicted, strict=True))
        relaxed = result['relaxed']
        assert relaxed['recall'] == pytest.approx(matched / max(relaxed['gold'], 1))
        assert relaxed['precision'] == pytest.approx(matched / max(relaxed['predicted'], 1))


def test_thousand_random_taggings_agree_with_nervaluate():
    """nervaluate's `ent_type` lets a prediction of another type use up a gold mention, so it may find fewer than
    relaxed."""
    for gold, predicted in random_taggings(1, 1000):
        theirs = Evaluator(gold, predicted, tags=list(TYPES), loader='list').evaluate()['overall']
        typed, without_types = score(gold, predicted), score(gold, predicted, typed=False)
        pairs = (('strict', typed['default']), ('exact', without_types['default']))
        for name, ours in pairs:
            assert (ours['gold'], ours['predicted']) == (theirs[name].possible, theirs[name].actual)
            assert ours['recall'] * ours['gold'] == pytest.approx(theirs[name].correct), name
        overlap = theirs['partial'].correct + theirs['partial'].partial
        assert without_types['relaxed']['recall'] * typed['default']['gold'] == pytest.approx(overlap)
        assert typed['relaxed']['recall'] * typed['default']['gold'] >= theirs['ent_type'].correct - 1e-9


@settings(max_examples=300)
@given(SENTENCES)
def test_default_and_strict_are_seqevals_to_the_last_count(sentences):
    gold, predicted = ([[pair[side] for pair in s] for s in sentences] for side in range(2))
    if not any(tag != 'O' for tags in (*gold, *predicted) for tag in tags):
        return  # seqeval cannot average over no types
    default = sequence_labeling.precision_recall_fscore_support
    strict = seqeval.metrics.v1.precision_recall_fscore_support
    with warnings.catch_warnings():
        warnings.simplefilter('ignore')
        for mode, function, more in (('default', default, {}), ('strict', strict, {'scheme': IOB2})):
            ours = score(gold, predicted)[mode]
            theirs = function(gold, predicted, average='micro', zero_division=0, **more)
            assert [ours[k] for k in ('precision', 'recall', 'f1', 'gold')] == pytest.approx(list(theirs))
            assert ours['predicted'] == function(predicted, gold, average='micro', zero_division=0, **more)[3]
            each = by_type(gold, predicted, mode)
            if not each:
                continue
            values = function(gold, predicted, average=None, zero_division=0, **more)
            for key, column in zip(('precision', 'recall', 'f1', 'gold'), values, strict=True):
                assert [rates[key] for rates in each.values()] == pytest.approx(list(column))


def test_every_set_is_read_as_seqeval_reads_it(data):
    for name in ('ncbi-disease', 'jnlpba'):
        for sentence in read_iob2(data / 'ner' / name / 'test.tsv'):
            assert spans(sentence.tags) == get_entities(list(sentence.tags))


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


def test_a_scheme_without_a_mode_is_ignored_by_seqeval_and_a_mode_cannot_be_forgotten_here():
    gold, predicted = [['B-Drug', 'I-Drug', 'O']], [['I-Drug', 'I-Drug', 'O']]
    assert seqeval.metrics.f1_score(gold, predicted, scheme=IOB2) == 1
    assert list(score(gold, predicted)) == ['default', 'strict', 'relaxed']
    with pytest.raises(KeyError):
        score(gold, predicted, modes=('exact',))


def test_untyped_joins_types_but_not_neighbours():
    gold, predicted = [['B-Drug', 'I-cell_type', 'O']], [['B-cell_type', 'B-Drug', 'O']]
    typed, without_types = score(gold, predicted), score(gold, predicted, typed=False)
    assert typed['default']['f1'] == 0
    assert without_types['default'] == {'precision': 1, 'recall': 1, 'f1': 1, 'gold': 2, 'predicted': 2}
    # Renamed tags would have made one mention of the two.
    renamed = [[tag if tag == 'O' else tag[:2] + 'x' for tag in tags] for tags in gold]
    assert len(spans(renamed[0])) == 1
    assert untyped(spans(gold[0])) == [('entity', 0, 0), ('entity', 1, 1)]
    # In strict mode the orphan is not a mention at all, of whatever type.
    assert without_types['strict']['gold'] == 1


@given(SENTENCES)
def test_untyped_never_finds_less_and_counts_add_up(sentences):
    gold, predicted = ([[pair[side] for pair in s] for s in sentences] for side in range(2))
    typed, without_types = score(gold, predicted), score(gold, predicted, typed=False)
    for mode, ours in typed.items():
        assert (ours['gold'], ours['predicted']) == tuple(
            without_types[mode][k] for k in ('gold', 'predicted')
        )
        assert without_types[mode]['f1'] >= ours['f1']
        correct, in_gold, in_predicted = counts(gold, predicted, mode).sum(0)
        assert ours['f1'] == pytest.approx(2 * correct / max(in_gold + in_predicted, 1))
        each = by_type(gold, predicted, mode).values()
        assert sum(e['gold'] for e in each) == in_gold
        assert sum(e['recall'] * e['gold'] for e in each) == pytest.approx(correct)
    assert typed['relaxed']['f1'] >= typed['default']['f1']


def test_counts_are_by_sentence():
    gold = [['B-Drug', 'O'], ['O'], ['B-Drug', 'I-Drug', 'B-Drug']]
    predicted = [['B-Drug', 'B-Drug'], ['O'], ['B-Drug', 'O', 'B-Drug']]
    np.testing.assert_array_equal(counts(gold, predicted), [[1, 1, 2], [0, 0, 0], [1, 2, 2]])
    np.testing.assert_array_equal(counts(gold, predicted, 'relaxed'), [[1, 1, 2], [0, 0, 0], [2, 2, 2]])


@pytest.mark.parametrize(
    ('read', 'given', 'message'),
    [
        *((spans, (['O', tag],), 'unknown tag') for tag in ('Drug', 'E-Drug', 'B', 'B-', 'i-Drug', '')),
        (score, ([['O', 'O', 'O']], [['O', 'O']]), '3 words has 2 predicted tags'),
    ],
)
def test_other_tags_and_missing_words_are_refused(read, given, message):
    with pytest.raises(InputError, match=message):
        read(*given)


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
        assert spans(sequence) == chunks(sequence) == get_entities(list(sequence))
        assert spans(sequence, orphans_open=False) == strict_chunks(sequence)


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
