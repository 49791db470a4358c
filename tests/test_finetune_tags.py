"""Tag schemes: hand-made examples, the way there and back, and seqeval's readers as an independent opinion."""

import itertools
import warnings

import pytest
from hypothesis import given
from hypothesis import strategies as st
from seqeval import scheme as readers
from seqeval.metrics.sequence_labeling import get_entities

from bioptimus_jax.errors import ConfigError
from bioptimus_jax.sets import tags
from bioptimus_jax.sets.tags import (
    CLOSED,
    LEARNED,
    Scheme,
    count_broken,
    decode,
    encode,
    recognise,
    renamed,
    spans,
    to_iob2,
)

TYPES = ('Drug', 'cell-line', 'I')
KINDS = st.sampled_from(TYPES)


def sequences(letters, most=12):
    """Any tags of these letters, valid or not."""
    tag = st.one_of(st.just('O'), st.builds('{}-{}'.format, st.sampled_from(sorted(letters)), KINDS))
    return st.lists(tag, max_size=most)


@st.composite
def mentions(draw):
    """A sentence's length and mentions in it, often without a word between them."""
    found, at = [], 0
    for kind, gap, size in draw(st.lists(st.tuples(KINDS, st.integers(0, 1), st.integers(1, 3)), max_size=6)):
        found.append((kind, at + gap, at + gap + size - 1))
        at += gap + size
    return found, at + draw(st.integers(0, 2))


def written(found, words, scheme):
    """Mentions as a file of that scheme has them: an encoder of its own, tag by tag."""
    begin, inside, end, single = CLOSED.get(scheme, 'BIII' if scheme == 'IO' else 'BIIB')
    out = ['O'] * words
    for number, (kind, first, last) in enumerate(found):
        for at in range(first, last + 1):
            letter = (begin if at == first else inside) if at < last or first == last else end
            out[at] = f'{single if first == last else letter}-{kind}'
        before = found[number - 1] if number else None
        touches = before is not None and (before[0], before[2]) == (kind, first - 1)
        if scheme == 'IO' or (scheme == 'IOB1' and not touches):
            out[first] = f'I-{kind}'
    return out


def by_seqeval(sequence, reader):
    return sorted((e.tag, e.start, e.end - 1) for e in readers.Tokens(list(sequence), reader).entities)


def by_default(sequence):
    with warnings.catch_warnings():
        warnings.simplefilter('ignore')
        return get_entities(list(sequence))


EXAMPLE = [('X', 0, 0), ('X', 1, 3), ('Y', 5, 6)]
FILES = {
    'IOB2': 'B-X B-X I-X I-X O B-Y I-Y',
    'IOB1': 'I-X B-X I-X I-X O I-Y I-Y',
    'BILOU': 'U-X B-X I-X L-X O B-Y L-Y',
    'IOBES': 'S-X B-X I-X E-X O B-Y E-Y',
    'BMES': 'S-X B-X M-X E-X O B-Y E-Y',
    'BMEWO': 'W-X B-X M-X E-X O B-Y E-Y',
}


@pytest.mark.parametrize('name', FILES)
@pytest.mark.parametrize('typed', [True, False])
def test_the_same_mentions_in_every_scheme(name, typed):
    given_tags = FILES[name].split()
    expected = FILES['IOB2'].split()
    if not typed:
        given_tags = [tag[0] for tag in given_tags]
        expected = [tag if tag == 'O' else f'{tag[0]}-{tags.NAMELESS}' for tag in expected]
    scheme = recognise([['O'], given_tags])
    assert scheme == Scheme(name, typed)
    assert str(scheme) == (name if typed else f'{name} without types')
    assert to_iob2(given_tags, scheme) == tuple(expected)
    assert count_broken(given_tags, scheme) == 0
    if typed:
        assert spans(expected) == EXAMPLE
        assert written(EXAMPLE, 7, name) == given_tags


@pytest.mark.parametrize(
    ('sentences', 'name'),
    [
        ([['O', 'O'], []], 'IOB2'),
        ([['O', 'B-X']], 'IOB2'),
        ([['O', 'I-X'], ['I-Y']], 'IO'),
        ([['I-X', 'B-X'], ['O', 'I-X']], 'IOB1'),
        ([['I-X', 'B-X'], ['O', 'B-X']], 'IOB2'),  # the I- is an orphan
        ([['B-X', 'I-Y']], 'IOB2'),
        ([['O', 'S-X']], 'IOBES'),
        ([['O', 'U-X']], 'BILOU'),
    ],
)
def test_a_scheme_is_told_by_all_tags_together(sentences, name):
    assert recognise(sentences) == Scheme(name)


@pytest.mark.parametrize(
    ('sentence', 'message'),
    [
        ('B-X L-X E-X', 'no scheme has the tags B, E, L'),
        ('B-X M-X I-X', 'no scheme has the tags B, I, M'),
        ('U-X S-X', 'no scheme has the tags S, U'),
        ('B-X I O', "without one ('I') are mixed"),
    ],
)
def test_tags_that_no_scheme_has_together(sentence, message):
    with pytest.raises(ValueError, match=r'scheme|mixed') as error:
        recognise([sentence.split()])
    assert message in str(error.value)


def test_what_is_a_tag():
    assert all(map(tags.is_tag, ('O', 'B', 'W', 'B-X', 'I-cell-line', 'E-*', 'S--')))
    assert not any(map(tags.is_tag, ('', 'X', 'o', 'O-X', 'B-', 'BX', 'B_X', 'X-B', '-', 'b-X')))


@given(mentions(), st.sampled_from([*FILES, 'IO']))
def test_files_of_every_scheme_keep_their_mentions(sentence, name):
    found, words = sentence
    given_tags = written(found, words, name)
    result = to_iob2(given_tags, Scheme(name))
    assert count_broken(given_tags, Scheme(name)) == 0
    assert count_broken(result, Scheme('IOB2')) == 0
    if name != 'IO':
        assert spans(result) == found
        assert result == tags.from_spans(found, words)
    else:
        assert spans(result) == by_default(given_tags)
    readers_of = {'IOB1': readers.IOB1, 'IOB2': readers.IOB2, 'BILOU': readers.BILOU, 'IOBES': readers.IOBES}
    # seqeval's IOB1 overlooks a mention that begins right behind one of another type with B-, or ends so.
    if name in readers_of and name != 'IOB1':
        assert by_seqeval(given_tags, readers_of[name]) == sorted(found)
    if name == 'IOB1' and not any(a[2] + 1 == b[1] for a, b in itertools.pairwise(found)):
        assert by_seqeval(given_tags, readers.IOB1) == sorted(found)


@given(mentions(), st.sampled_from(list(FILES)))
def test_recognising_never_changes_the_mentions(sentence, name):
    found, words = sentence
    given_tags = written(found, words, name)
    assert spans(to_iob2(given_tags, recognise([given_tags]))) == found


@given(sequences('BI'))
def test_spans_are_those_of_seqeval_by_default(sequence):
    assert spans(sequence) == by_default(sequence)
    valid = tags.from_spans(spans(sequence), len(sequence))
    assert spans(valid) == spans(sequence)
    assert (count_broken(sequence, Scheme('IOB2')) == 0) == (tuple(sequence) == valid)
    assert by_seqeval(valid, readers.IOB2) == sorted(spans(sequence))


@given(mentions())
def test_there_and_back(sentence):
    found, words = sentence
    valid = tags.from_spans(found, words)
    for scheme, letters in LEARNED.items():
        encoded = encode(valid, scheme)
        assert {tag[0] for tag in encoded} <= {*letters, 'O'}
        assert set(encoded) <= set(tags.labels_of(TYPES, scheme))
        back = decode(encoded, scheme)
        if scheme != 'io':
            assert back == valid
        else:  # adjacent mentions of a type have merged, and nothing else has changed
            assert spans(back) == by_default(encoded)
            assert [tag[1:] for tag in back] == [tag[1:] for tag in valid]
    assert by_seqeval(encode(valid, 'bioul'), readers.BILOU) == sorted(found)


@given(sequences('BILU'), sequences('BI'), sequences('I'))
def test_any_prediction_is_decoded(bioul, bio, io):
    assert decode(bio, 'bio') == tuple(bio)
    as_iobes = [tag.replace('L-', 'E-', 1).replace('U-', 'S-', 1) if tag[0] in 'LU' else tag for tag in bioul]
    assert spans(decode(bioul, 'bioul')) == by_default(as_iobes)
    assert count_broken(decode(bioul, 'bioul'), Scheme('IOB2')) == 0
    assert spans(decode(io, 'io')) == by_default(io)
    assert count_broken(decode(io, 'io'), Scheme('IOB2')) == 0
    # strictly valid mentions, as seqeval's own reader has them, are all found
    assert set(by_seqeval(bioul, readers.BILOU)) <= set(spans(decode(bioul, 'bioul')))


@pytest.mark.parametrize('name', ['BILOU', 'IOBES'])
@given(data=st.data())
def test_broken_is_zero_for_valid_tags_only(name, data):
    sequence = data.draw(sequences(CLOSED[name]))
    valid = tuple(written(spans(to_iob2(sequence, Scheme(name))), len(sequence), name)) == tuple(sequence)
    assert (count_broken(sequence, Scheme(name)) == 0) == valid


@pytest.mark.parametrize(
    ('predicted', 'expected', 'count'),
    [
        ('B-X O', 'B-X O', 1),
        ('I-X L-X', 'B-X I-X', 1),
        ('L-X L-X', 'B-X B-X', 2),
        ('B-X I-Y L-X', 'B-X B-Y B-X', 2),
        ('U-X I-X', 'B-X B-X', 2),
        ('B-X B-X L-X', 'B-X B-X I-X', 1),
        ('B-X U-X', 'B-X B-X', 1),
    ],
)
def test_decoding_of_broken_tags_by_hand(predicted, expected, count):
    assert decode(predicted.split(), 'bioul') == tuple(expected.split())
    assert count_broken(predicted.split(), Scheme('BILOU')) == count


@given(
    sequences('BI'), st.sampled_from([{}, {'Drug': ''}, {'Drug': 'x', 'I': 'x'}, dict.fromkeys(TYPES, 'x')])
)
def test_renamed_types_lose_no_mention_and_join_none(sequence, names):
    name_of = lambda kind: names.get(kind, kind)  # noqa: E731
    wanted = [(name_of(kind), *place) for kind, *place in spans(sequence) if name_of(kind)]
    assert spans(renamed(sequence, name_of)) == wanted


def test_labels():
    assert tags.labels_of(('X', 'Y'), 'bio') == ('O', 'B-X', 'I-X', 'B-Y', 'I-Y')
    assert tags.labels_of(('X', 'Y'), 'io') == ('O', 'I-X', 'I-Y')
    assert tags.labels_of(('X',), 'bioul') == ('O', 'B-X', 'I-X', 'L-X', 'U-X')
    for function in (lambda: tags.labels_of((), 'x'), lambda: encode((), 'x'), lambda: decode((), 'x')):
        with pytest.raises(ConfigError, match=r"config\.finetune\.scheme: 'x' is none of bio, io, bioul"):
            function()
