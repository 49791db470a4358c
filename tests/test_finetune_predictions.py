"""Predictions come back from their files as they were; standoff offsets fit the text."""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bioptimus_jax.errors import InputError
from bioptimus_jax.finetuning.entities.files import read_predictions, write_predictions, write_standoff
from bioptimus_jax.finetuning.predictions import Predicted, units
from bioptimus_jax.sets.corpora import read_iob2
from bioptimus_jax.sets.standoff import read_brat
from bioptimus_jax.sets.tags import spans

ODD = (
    '\x85',
    '\u2028',
    '\u200b',
    '"',
    '“quoted”',
    "'",
    ' ',
    '\xa0',
    '\r',
    'a b',
    '\ufeff',
    '𝛼',
    '-DOCSTART-x',
    '#',
    '\x1c',
)
TAGS = st.sampled_from(['O', 'B-Drug', 'I-Drug', 'B-gene-or-protein', 'I-gene-or-protein'])
CHARACTERS = st.characters(blacklist_categories=['Cs'], blacklist_characters='\t\n')
WORDS = (st.sampled_from(ODD) | st.text(CHARACTERS, min_size=1, max_size=6)).filter(
    lambda w: w != '-DOCSTART-'
)
ROWS = st.lists(st.tuples(WORDS, TAGS, TAGS), min_size=1, max_size=6)
IN_FOLDER = settings(max_examples=100, suppress_health_check=[HealthCheck.function_scoped_fixture])


@st.composite
def sentence_lists(draw):
    """Sentences of rising documents; documents may be missing in between, or be 0 throughout."""
    document, sentences = 0, []
    step = st.integers(0, 2) if draw(st.booleans()) else st.just(0)
    for rows in draw(st.lists(ROWS, min_size=1, max_size=5)):
        document += draw(step)
        sentences.append(Predicted(*zip(*rows, strict=True), document))
    return sentences


@IN_FOLDER
@given(sentence_lists())
def test_predictions_come_back_as_they_were(tmp_path, sentences):
    write_predictions(tmp_path / 'predictions.tsv', sentences)
    assert read_predictions(tmp_path / 'predictions.tsv') == sentences


@IN_FOLDER
@given(sentence_lists())
def test_standoff_offsets_fit_the_text(tmp_path, sentences):
    write_standoff(tmp_path, sentences)
    text = (tmp_path / 'predictions.txt').read_bytes().decode()
    lines = text.split('\n')
    assert lines.pop() == ''
    assert lines == [' '.join(s.words).replace('\r', ' ') for s in sentences]
    notes = (tmp_path / 'predictions.ann').read_bytes().decode().split('\n')[:-1]
    expected = [(s.words, m) for s in sentences for m in spans(s.predicted)]
    assert len(notes) == len(expected)
    for number, (note, (words, (kind, first, last))) in enumerate(zip(notes, expected, strict=True), 1):
        name, span, surface = note.split('\t')
        found, start, end = span.split(' ')
        assert (name, found) == (f'T{number}', kind)
        assert text[int(start) : int(end)] == surface == ' '.join(words[first : last + 1]).replace('\r', ' ')


def test_the_files_by_hand(tmp_path):
    first = Predicted(('Low', 'dose', 'aspirin'), ('O', 'O', 'B-Drug'), ('O', 'B-Drug', 'I-Drug'), 0)
    second = Predicted(('β-blockers', '.'), ('B-Drug', 'O'), ('B-Drug', 'O'), 1)
    write_predictions(tmp_path / 'p.tsv', [first, second])
    assert (tmp_path / 'p.tsv').read_text('utf-8') == (
        '-DOCSTART-\n\nLow\tO\tO\ndose\tO\tB-Drug\naspirin\tB-Drug\tI-Drug\n\n'
        '-DOCSTART-\n\nβ-blockers\tB-Drug\tB-Drug\n.\tO\tO\n\n'
    )
    write_standoff(tmp_path, [first, second])
    assert (tmp_path / 'predictions.txt').read_text('utf-8') == 'Low dose aspirin\nβ-blockers .\n'
    assert (tmp_path / 'predictions.ann').read_text('utf-8') == (
        'T1\tDrug 4 16\tdose aspirin\nT2\tDrug 17 27\tβ-blockers\n'
    )
    assert not [f.name for f in tmp_path.iterdir() if f.name.startswith('.')]


def test_shuffled_sentences_keep_their_documents(tmp_path):
    given = [
        Predicted((word,), ('O',), ('O',), at) for word, at in zip('abcde', (0, 2, 0, 1, 2), strict=True)
    ]
    write_predictions(tmp_path / 'p.tsv', given)
    assert read_predictions(tmp_path / 'p.tsv') == given
    assert [s.words for s in read_iob2(tmp_path / 'p.tsv')] == [s.words for s in given]


def test_standoff_of_any_type_is_read_again(tmp_path):
    """White space in a type, which tags may have and BRAT's types may not, becomes an underscore."""
    tags = ('B-Cell Type', 'I-Cell Type', 'O', 'B-Disease\u00a0or  Symptom', 'B-Drug')
    words = ('T', 'cells', 'and', 'fever', 'aspirin')
    write_standoff(tmp_path, [Predicted(words, ('O',) * 5, tags)])
    (sentence,) = read_brat(tmp_path).sentences
    assert sentence.words == words
    assert sentence.tags == ('B-Cell_Type', 'I-Cell_Type', 'O', 'B-Disease_or_Symptom', 'B-Drug')


def test_corpora_are_read_as_they_are_predicted(tmp_path, data):
    sentences = list(read_iob2(data / 'ner' / 'jnlpba' / 'devel.tsv'))
    predicted = [Predicted(s.words, s.tags, s.tags, s.document) for s in sentences]
    write_predictions(tmp_path / 'predictions.tsv', predicted)
    assert read_predictions(tmp_path / 'predictions.tsv') == predicted
    name, unit = units(predicted, 'sentence')
    assert name == 'documents'
    assert unit.max() + 1 == len({s.document for s in sentences}) > 1


def test_units_are_sentences_where_there_are_no_documents():
    one = Predicted(('a',), ('O',), ('O',))
    name, unit_N = units([one, one], 'sentence')
    assert (name, unit_N.tolist()) == ('sentences', [0, 1])
    others = [Predicted(('a',), ('O',), ('O',), d) for d in (0, 0, 2, 5)]
    name, unit_N = units(others, 'text')
    assert (name, unit_N.tolist()) == ('documents', [0, 0, 1, 2])


@pytest.mark.parametrize('word', ['', 'a\tb', 'a\nb', '-DOCSTART-'])
def test_a_word_that_would_break_the_file_is_refused_and_nothing_is_left(tmp_path, word):
    with pytest.raises(InputError, match=r'p\.tsv: the word'):
        write_predictions(tmp_path / 'p.tsv', [Predicted((word,), ('O',), ('O',))])
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ('content', 'message'),
    [
        (b'a\tO\tO\n\nb\tO\n\n', r'p\.tsv:3: expected token TAB gold TAB predicted, found 2 columns'),
        (b'a\tO\tO\tX\n\n', r"p\.tsv:1: unknown tag 'X'"),
        (b'\tO\tO\n\n', r'p\.tsv:1: expected'),
        (b'a\tO\tX\n\n', r"p\.tsv:1: unknown tag 'X'"),
        (b'a\tI-\tO\n\n', r"p\.tsv:1: unknown tag 'I-'"),
        (b'a\tO\tO\n\n\xff\tO\tO\n\n', r'p\.tsv:3: is not UTF-8'),
        (b'a\tO\tO\nb\tO\tO', r'p\.tsv:2: ends within a sentence'),
        (b'', r'p\.tsv: holds no sentence'),
        (b'-DOCSTART-\n\n', r'p\.tsv: holds no sentence'),
        (None, r'p\.tsv: no such file'),
    ],
)
def test_errors_name_file_and_line(tmp_path, content, message):
    if content is not None:
        (tmp_path / 'p.tsv').write_bytes(content)
    with pytest.raises(InputError, match=message):
        read_predictions(tmp_path / 'p.tsv')
