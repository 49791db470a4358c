"""Reading NER sets: columns in every scheme, BRAT, PubTator, TFDS; what is damaged is an error or is counted."""

import dataclasses
import itertools
import random
import re
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from toy_prepared import prepare

from bioptimus_jax.corpus.audit import searched_texts
from bioptimus_jax.errors import ConfigError, InputError
from bioptimus_jax.finetuning.config import Finetune
from bioptimus_jax.finetuning.look import look_through
from bioptimus_jax.inference.given import read_given
from bioptimus_jax.sets import blurb, characters, columns, corpora, folders, standoff
from bioptimus_jax.sets.characters import Marked, Mention
from bioptimus_jax.sets.columns import count_mentions
from bioptimus_jax.sets.corpora import NamedSet, read_dataset, read_iob2
from bioptimus_jax.sets.prepared import read_prepared
from bioptimus_jax.sets.roles import Columns
from bioptimus_jax.sets.sentences import SPLITS, Sentence
from bioptimus_jax.sets.tags import encode, from_spans, spans

LETTERS = {'BILOU': 'BILU', 'IOBES': 'BIES', 'BMES': 'BMES', 'BMEWO': 'BMEW'}


def write(path, content):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def files_of(train='a\tB-X\n\n', devel='a\tO\n\n', test='a\tO\n\n', ending='.tsv'):
    return {f'train{ending}': train, f'devel{ending}': devel, f'test{ending}': test}


def write_set(folder, *texts, **named):
    for name, content in files_of(*texts, **named).items():
        write(folder / name, content)
    return folder


# ---- columns


def test_byte_order_mark_crlf_documents_and_odd_spaces_are_put_right_and_counted(tmp_path):
    first = '\ufeff-DOCSTART-\tO\r\n\r\na\u2028b\tB-X\r\nc\u0085\tI-X \r\nd\tI-X\u00a0\r\n \t\r\n\r\n'
    path = write(tmp_path / 'a.tsv', f'{first}-DOCSTART-\tO\r\n\r\n\u00a0\tO')
    assert read_iob2(path) == (
        Sentence(('a\u2028b', 'c\u0085', 'd'), ('B-X', 'I-X', 'I-X'), 0),
        Sentence(('\u00a0',), ('O',), 1),
    )
    reading = columns.read_columns(path)
    assert reading.mentions == count_mentions(path) == 1
    assert reading.repairs == {
        'byte-order mark': 1,
        'carriage returns at line ends': 9,
        'blanks around tags': 2,
        'blank lines with spaces': 1,
        'blank lines too many': 1,
        'no blank line at the end': 1,
        'words with white space in them': 3,
    }


def test_a_clean_file_needs_no_repair(tmp_path):
    for name, content in (
        ('a', '-DOCSTART-\tO\n\na\tB-X\n\n-DOCSTART-\tO\n\n-\tO\n\n'),
        ('b', '-DOCSTART- -X- O O\n\na NN I-NP B-X\n\n-DOCSTART- -X- O O\n\n- NN O O\n\n'),
    ):
        reading = columns.read_columns(write(tmp_path / name, content))
        assert reading.repairs == {}
        assert reading.mentions == 1
        assert reading.sentences == (Sentence(('a',), ('B-X',), 0), Sentence(('-',), ('O',), 1))


def test_a_sentence_of_100000_words(tmp_path):
    path = write(tmp_path / 'a.tsv', 'w\tB-X\n' * 100_000)
    [sentence] = read_iob2(path)
    assert len(sentence.words) == len(spans(sentence.tags)) == count_mentions(path) == 100_000


WORDS = st.text(
    st.characters(exclude_characters='\t\n\r ', exclude_categories=('Cs',)), min_size=1, max_size=4
).filter(lambda w: not w.startswith(('-DOCSTART-', '\ufeff')))


@st.composite
def sentences(draw):
    found = []
    for _ in range(draw(st.integers(1, 4))):
        kinds = draw(st.lists(st.sampled_from(['', 'X', 'X', 'a-b']), min_size=1, max_size=5))
        tags = []
        for kind in kinds:
            tags += [f'B-{kind}', *[f'I-{kind}'] * draw(st.integers(0, 2))] if kind else ['O']
        words = draw(st.lists(WORDS, min_size=len(tags), max_size=len(tags)))
        found.append(Sentence(tuple(words), tuple(tags)))
    # In a column of its own a number or a tag is no word: some line has another.
    return [Sentence(('The',), ('O',)), *found]


def in_scheme(tags, name):
    if name not in LETTERS:
        return encode(tags, 'bio' if name == 'IOB2' else 'io')
    letters = dict(zip('BILU', LETTERS[name], strict=True))
    return [letters.get(tag[0], 'O') + tag[1:] for tag in encode(tags, 'bioul')]


@given(sentences(), st.sampled_from(['IOB2', 'IO', *LETTERS]), st.sampled_from(['\t', '\tNN\t', ' ', '  x ']))
def test_what_was_written_is_read(tmp_path_factory, expected, name, between):
    lines = [
        ''.join(f'{w}{between}{t}\n' for w, t in zip(s.words, in_scheme(s.tags, name), strict=True)) + '\n'
        for s in expected
    ]
    path = write(tmp_path_factory.mktemp('s') / 'a.tsv', ''.join(lines))
    found = read_iob2(path)
    assert [s.words for s in found] == [s.words for s in expected]
    reference = [s.tags for s in expected]
    if name == 'IO':  # adjacent mentions of a type have merged
        reference = [from_spans(spans(in_scheme(tags, 'IO')), len(tags)) for tags in reference]
    assert [s.tags for s in found] == reference
    assert count_mentions(path) == sum(len(spans(tags)) for tags in reference)


PLAIN = 'Zolmi\tB-Drug\ncures\tO\n12\tO\nrats\tO\n\n-\tO\nMild\tB-Disease\npain\tI-Disease\n\n'


def in_form(line, text=PLAIN, between='\t'):
    """Every line of `PLAIN` in another published form: `line` gives columns for word, tag, offsets and number."""
    lines, at = [], 0
    for number, row in enumerate(text.split('\n')[:-1]):
        word, _, tag = row.partition('\t')
        lines.append(between.join(line(word, tag, str(at), str(at + len(word)), number)) if row else '')
        at += len(word) + 1
    return '\n'.join(lines) + '\n'


def chunk(number):
    return ('B-NP', 'I-NP', 'B-VP', 'O')[number % 4]


PUBLISHED_FORMS = {
    'two columns': (lambda w, t, a, b, n: (w, t), ''),
    'tag first': (lambda w, t, a, b, n: (t, w), 'of 2 columns, 2 is the word and 1 the tag'),
    'offsets, parts of speech, chunks': (
        lambda w, t, a, b, n: (w, a, b, 'NN', chunk(n), t),
        'of 6 columns, 1 is the word and 6 the tag',
    ),
    'NERsuite': (
        lambda w, t, a, b, n: (t, a, b, w, w.lower() + 'x', 'NN', chunk(n)),
        'of 7 columns, 4 is the word and 1 the tag',
    ),
    'number of the line': (lambda w, t, a, b, n: (str(n), w, t), 'of 3 columns, 2 is the word and 3 the tag'),
    'number of the document': (
        lambda w, t, a, b, n: (f'10192393-{n}-{a}', w, 'NN', t),
        'of 4 columns, 2 is the word and 4 the tag',
    ),
    'name of the document': (
        lambda w, t, a, b, n: (f'PMC{n}_{a}', w, t),
        'of 3 columns, 2 is the word and 3 the tag',
    ),
    'CoNLL-2003': (lambda w, t, a, b, n: (w, 'NN', chunk(n), t), 'of 4 columns, 1 is the word and 4 the tag'),
    'chunks that are all O': (
        lambda w, t, a, b, n: (w, 'NN', 'O', t),
        'of 4 columns, 1 is the word and 4 the tag',
    ),
    'lemmas': (lambda w, t, a, b, n: (w, w.lower(), 'NN', t), 'of 4 columns, 1 is the word and 4 the tag'),
}


@pytest.mark.parametrize('name', PUBLISHED_FORMS)
def test_word_and_tag_are_found_in_every_published_form_and_said(tmp_path, name):
    line, said = PUBLISHED_FORMS[name]
    wanted = columns.read_columns(write(tmp_path / 'plain.tsv', PLAIN))
    for ending, between in (('tsv', '\t'), ('conll', ' ')):
        found = columns.read_columns(write(tmp_path / f'a.{ending}', in_form(line, between=between)))
        assert (found.sentences, found.mentions, found.repairs) == (wanted.sentences, 2, {})
        assert found.columns == said
    # Without a mention the tags are not those of chunks all the same.
    none = in_form(line, PLAIN.replace('B-Drug', 'O').replace('B-Disease', 'O').replace('I-Disease', 'O'))
    found = columns.read_columns(write(tmp_path / 'none.tsv', none))
    assert (found.mentions, found.columns) == (0, said)
    text = in_form(line)
    dataset = read_dataset(write_set(tmp_path / 'set', text, none, text))
    assert (dataset.types, dataset.columns) == (('Disease', 'Drug'), said)
    # A prediction has its tags in the last column, whatever is before it.
    beside = in_form(lambda *row: (*line(*row), row[1]))
    assert read_iob2(write(tmp_path / 'p.tsv', beside)) == wanted.sentences


def test_columns_apart_by_blanks_with_the_tag_behind_a_tab(tmp_path):
    mixed = in_form(lambda w, t, a, b, n: (f'{w} NN {chunk(n)}', t))
    found = columns.read_columns(write(tmp_path / 'a.tsv', mixed))
    assert found.sentences == columns.read_columns(write(tmp_path / 'plain.tsv', PLAIN)).sentences
    assert (found.mentions, found.columns) == (2, 'of 4 columns, 1 is the word and 4 the tag')
    few = in_form(lambda w, t, a, b, n: (f'{w} {w}', t))  # tokens with a blank within
    assert columns.read_columns(write(tmp_path / 'b.tsv', few)).sentences[0].words[0] == 'Zolmi Zolmi'


@pytest.mark.parametrize('name', PUBLISHED_FORMS)
def test_the_audit_looks_for_sentences_of_words_in_every_published_form(tmp_path, name):
    text = in_form(PUBLISHED_FORMS[name][0])
    write_set(tmp_path / 'own', text, text, text)
    mixed = in_form(lambda w, t, a, b, n: (f'{w} NN {chunk(n)}', t))
    write_set(tmp_path / 'mixed', mixed, mixed, mixed)
    for folder in ('own', 'mixed'):
        found = list(searched_texts(tmp_path / folder, 'test'))
        assert found == ['Zolmi cures 12 rats', '- Mild pain']


TEN = PLAIN + PLAIN


def test_columns_by_number_and_by_name(tmp_path):
    text = in_form(lambda w, t, a, b, n: (t.replace('Drug', 'Gene'), w, 'NN', t), TEN)
    path = write(tmp_path / 'a.tsv', text)
    named = write(tmp_path / 'b.tsv', f'\ufeffgenes\ttoken\tpos\tdrugs\n{text}')
    for asked, kinds in (
        (Columns(tag='4'), {'Drug', 'Disease'}),
        (Columns(tag='-4'), {'Gene', 'Disease'}),
        (Columns('2', '-1'), {'Drug', 'Disease'}),
        (Columns('token', 'genes'), {'Gene', 'Disease'}),
        (Columns('2', 'drugs'), {'Drug', 'Disease'}),
    ):
        file = named if {'genes', 'drugs'} & {asked.tag} else path
        found = columns.read_columns(file, asked)
        assert found.sentences[0].words == ('Zolmi', 'cures', '12', 'rats')
        assert {tag[2:] for s in found.sentences for tag in s.tags} == {'', *kinds}
        assert found.mentions == 4
    for file, asked, message in (
        (
            path,
            Columns(tag='5'),
            r'a\.tsv:1: has 4 columns, but tag_column is 5; the first is 1, the last -1',
        ),
        (path, Columns(tag='0'), r'but tag_column is 0'),
        (path, Columns('token'), r"a\.tsv:1: is the header, but names no one column 'token' \(word_column\)"),
        (path, Columns('1', '1'), r'column 1 cannot be both word and tag'),
        (path, Columns(tag='3'), r"a\.tsv:1: unknown tag 'NN'"),
        (named, Columns(), r"b\.tsv:1: unknown tag 'drugs'.* if the line is a header, set .* to drugs"),
    ):
        with pytest.raises(InputError, match=message):
            columns.read_columns(file, asked)
    # By key, for all sets or for one.
    write_set(tmp_path / 'sets' / 'own', text, text, text)
    write_set(tmp_path / 'sets' / 'other', PLAIN, PLAIN, PLAIN)
    asked = Finetune(folder=str(tmp_path / 'sets'), of_set={'own': {'tag_column': '1'}})
    assert [read_dataset(one).types for one in corpora.chosen_sets(asked)] == [
        ('Disease', 'Drug'),
        ('Disease', 'Gene'),
    ]


def test_a_scheme_is_that_of_all_three_splits(tmp_path):
    iob1 = write_set(tmp_path / 'a', 'a\tI-X\nb\tO\n\n', 'a\tI-X\nb\tI-X\nc\tB-X\n\n', 'a\tO\n\n')
    dataset = read_dataset(iob1)
    assert (dataset.scheme, dataset.form, dataset.types) == ('IOB1', 'columns', ('X',))
    assert dataset.train[0].tags == ('B-X', 'O')
    assert dataset.devel[0].tags == ('B-X', 'I-X', 'B-X')
    assert dataset.gold_in_file == {'train': 1, 'devel': 2, 'test': 0}
    untyped = read_dataset(write_set(tmp_path / 'b', 'a\tB\nb\tI\n\n'))
    assert (untyped.scheme, untyped.labels) == ('IOB2 without types', ('O', 'B-entity', 'I-entity'))
    orphan = read_dataset(write_set(tmp_path / 'c', 'a\tB-X\nb\tO\nc\tI-X\n\n'))
    assert orphan.repairs['train'] == {'orphan I- tags': 1}
    assert orphan.train[0].tags == ('B-X', 'O', 'I-X')
    open_end = read_dataset(write_set(tmp_path / 'd', 'a\tB-X\nb\tO\nc\tU-X\n\n'))
    assert open_end.repairs['train'] == {'tags that contradict BILOU': 1}
    assert open_end.gold_in_file['train'] == len(spans(open_end.train[0].tags)) == 2


def test_a_type_that_only_test_has_is_counted_and_stays_gold(tmp_path):
    dataset = read_dataset(write_set(tmp_path, test='a\tB-Y\nb\tI-Y\nc\tI-X\n\n'))
    assert dataset.labels == ('O', 'B-X', 'I-X')
    assert dataset.unseen_labels == {'B-Y': 1, 'I-Y': 1}
    assert dataset.gold_in_file['test'] == 2  # the orphan I-X is a mention, as conlleval reads it


@pytest.mark.parametrize('devel', ['devel', 'dev', 'valid', 'validation'])
@pytest.mark.parametrize('ending', ['.tsv', '.txt', '.conll', '.bio'])
def test_names_and_endings(tmp_path, devel, ending):
    write_set(tmp_path / 'set', ending=ending)
    (tmp_path / 'set' / f'devel{ending}').rename(tmp_path / 'set' / f'{devel}{ending}')
    assert read_dataset(tmp_path / 'set').name == 'set'
    ner = Finetune(folder=str(tmp_path))
    assert corpora.chosen_sets(ner) == [NamedSet('set', tmp_path / 'set')]
    names = ['train', devel, 'test']
    assert corpora.set_files(tmp_path / 'set') == [tmp_path / 'set' / f'{name}{ending}' for name in names]
    assert corpora.read_split(tmp_path / 'set', 'train') == (Sentence(('a',), ('B-X',)),)


def test_a_folder_of_sets_is_needed_and_is_no_set(tmp_path):
    for name in ('jnlpba', 'own', 'own-typed'):
        write_set(tmp_path / name)
    for folder, datasets, message in (
        (str(tmp_path / 'own'), (), 'is a set itself, not a folder of sets; give the folder around it'),
        (str(tmp_path), ('own-tied',), 'has no set own-tied; found: jnlpba, own, own-typed'),
        ('', (), r'config\.finetune\.folder'),
    ):
        with pytest.raises((InputError, ConfigError), match=message):
            corpora.chosen_sets(Finetune(folder=folder, datasets=datasets))


def test_types_are_merged_where_blurb_does_and_where_a_name_says_so(tmp_path, monkeypatch):
    text = 'a\tB-X\nb\tB-Y\nc\tI-Y\nd\tI-X\ne\tO\nf\tI-X\n\n'
    for name in ('jnlpba', 'own', 'own-typed'):
        write_set(tmp_path / name, text, text, text)

    def read(*names):
        found = [read_dataset(s) for s in corpora.chosen_sets(Finetune(folder=str(tmp_path), datasets=names))]
        return {d.name: d for d in found}

    assert {name: d.types for name, d in read().items()} == {
        'jnlpba': ('entity',),
        'own': ('X', 'Y'),
        'own-typed': ('X', 'Y'),
    }
    assert read_dataset(tmp_path / 'jnlpba').types == ('entity',)
    named = read('jnlpba', 'jnlpba-typed', 'own-merged')
    typed = named['jnlpba-typed']
    assert (typed.types, typed.merged_types) == (('X', 'Y'), ())
    assert typed.train[0].tags == ('B-X', 'B-Y', 'I-Y', 'I-X', 'O', 'I-X')
    for name in ('jnlpba', 'own-merged'):
        assert named[name].merged_types == ('X', 'Y')
        # The fourth word begins a mention, as it did; the last one stays an orphan.
        letters = ('B', 'B', 'I', 'B', 'O', 'I')
        assert named[name].test[0].tags == tuple(x if x == 'O' else f'{x}-entity' for x in letters)
        assert named[name].gold_in_file == typed.gold_in_file == dict.fromkeys(SPLITS, 4)
        corpora.require_all_mentions(tmp_path / 'jnlpba', named[name])
    (tmp_path / 'own' / 'within').mkdir()
    (tmp_path / 'linked').mkdir()
    (tmp_path / 'linked' / 'jnlpba').symlink_to(tmp_path / 'own')
    for here, path, name in (
        ('jnlpba', '.', 'jnlpba'),
        ('own/within', '..', 'own'),
        ('own', '../jnlpba', 'jnlpba'),
        ('own', '../linked/../linked/jnlpba', 'jnlpba'),
        ('linked/jnlpba', '../jnlpba', 'jnlpba'),
    ):
        monkeypatch.chdir(tmp_path / here)
        dataset = read_dataset(Path(path))
        assert (dataset.name, dataset.types) == (name, ('entity',) if name == 'jnlpba' else ('X', 'Y')), path


def test_a_tab_in_a_blank_line_does_not_make_a_file_one_of_tabs(tmp_path):
    folder = write_set(tmp_path / 'a', ending='.conll', test='a B-X\nb I-X\n \t\n\t\nc B-X\n')
    dataset = read_dataset(folder)
    assert dataset.gold_in_file['test'] == 2
    corpora.require_all_mentions(folder, dataset)
    counted = dataclasses.replace(dataset, gold_in_file={**dataset.gold_in_file, 'devel': 7})
    with pytest.raises(InputError, match=r'devel\.conll: marks 7 mentions, but 0 are read from it'):
        corpora.require_all_mentions(folder, counted)


def test_carriage_returns_twice_at_every_end_and_within_a_word(tmp_path):
    """They are odd, but lines all the same."""
    twice = write(tmp_path / 'twice.tsv', 'a\tB-X\r\r\nb\rb\tO\r\r\n\r\r\n')
    assert read_iob2(twice) == (Sentence(('a', 'b\rb'), ('B-X', 'O')),)


def test_published_mention_counts_of_the_five_sets(data):
    for name, known in blurb.SETS.items():
        expected = {
            split: known.in_files.get(split, count)
            for split, count in zip(SPLITS, known.mentions, strict=True)
        }
        dataset = read_dataset(data / 'ner' / name)
        assert dataset.gold_in_file == expected, name
        assert dataset.scheme == 'IOB2'
        assert not dataset.unseen_labels
        assert not any(dataset.repairs.values())
        assert len(dataset.types) == 1  # as BLURB's
        assert dataset.merged_types == (JNLPBA_TYPES if name == 'jnlpba' else ())
        for split in SPLITS:  # gold in the file = gold that is scored
            assert sum(len(spans(s.tags)) for s in getattr(dataset, split)) == expected[split]
            # BLURB's way from the files: of every tag the first letter, nothing else.
            lines = (data / 'ner' / name / f'{split}.tsv').read_text('utf-8').split('\n')
            letters = [x.split('\t')[1][0] for x in lines if x and not x.startswith('-DOCSTART-')]
            assert [tag[0] for s in getattr(dataset, split) for tag in s.tags] == letters


JNLPBA_TYPES = ('DNA', 'RNA', 'cell_line', 'cell_type', 'protein')


# ---- standoff

TEXT = 'Aspirin-induced asthma in BRCA1-mutant mice.\nThe naloxone (Narcan) group. Bone and breast cancer were seen.'


def brat(folder, name='1', text=TEXT, marks=''):
    write(folder / f'{name}.txt', text)
    write(folder / f'{name}.ann', marks)
    return folder


def mark(number, kind, quoted, start=None, text=TEXT):
    start = text.index(quoted) if start is None else start
    return f'T{number}\t{kind} {start} {start + len(quoted)}\t{quoted}\n'


def test_brat_by_hand(tmp_path):
    bone, cancer = TEXT.index('Bone'), TEXT.index('cancer')
    marks = (
        mark(1, 'Drug', 'Aspirin')
        + mark(2, 'Disease', 'Aspirin-induced asthma')
        + mark(3, 'Gene', 'BRCA1')
        + 'R1\tCauses Arg1:T1 Arg2:T2\n#1\tAnnotatorNotes T1\tfine\n\n'
        + mark(4, 'Drug', 'naloxone')
        + mark(5, 'Drug', 'Narcan')
        + mark(5, 'Drug', 'Narcan')
        + f'T6\tDisease {bone} {bone + 4};{cancer} {cancer + 6}\tBone cancer\n'
        + mark(7, 'Disease', 'breast cancer')
    )
    reading = standoff.read_brat(brat(tmp_path, marks=marks))
    assert [' '.join(s.words) for s in reading.sentences] == [
        'Aspirin - induced asthma in BRCA1 - mutant mice .',
        'The naloxone ( Narcan ) group .',
        'Bone and breast cancer were seen .',
    ]
    found = [(kind, ' '.join(s.words[a : b + 1])) for s in reading.sentences for kind, a, b in spans(s.tags)]
    assert found == [
        ('Disease', 'Aspirin - induced asthma'),
        ('Gene', 'BRCA1'),
        ('Drug', 'naloxone'),
        ('Drug', 'Narcan'),
        ('Disease', 'breast cancer'),
    ]
    assert (reading.mentions, reading.left_out) == (8, 3)
    assert reading.repairs == {'annotations that are not mentions': 2}


def test_a_discontinuous_mention_is_kept_with_what_lies_between_unless_it_hides_another(tmp_path):
    bone, cancer = TEXT.index('Bone'), TEXT.index('cancer')
    marks = f'T6\tDisease {bone} {bone + 4};{cancer} {cancer + 6}\tBone cancer\n'
    reading = standoff.read_brat(brat(tmp_path, marks=marks))
    [sentence] = [s for s in reading.sentences if set(s.tags) != {'O'}]
    assert sentence.words[:4] == ('Bone', 'and', 'breast', 'cancer')
    assert spans(sentence.tags) == [('Disease', 0, 3)]
    assert reading.repairs == {'discontinuous mentions kept with what lies between': 1}


def test_words_and_sentences_come_from_the_text_alone(tmp_path):
    """A mention within a word is learned as the word, one across a line as a part in each; both are scored whole."""
    text = 'It is seen. Type II. diabetes mellitus\nis common in p53-null and x5ABCy mice. Yes.'
    quoted = 'II. diabetes mellitus\nis'
    start = text.index(quoted)
    marks = f'T1\tDisease {start} {start + 21};{start + 22} {start + 24}\tII. diabetes mellitus is\n'
    marks += mark(2, 'Gene', 'ABC', text=text)
    reading = standoff.read_brat(brat(tmp_path / 'marked', text=text, marks=marks))
    bare = standoff.read_brat(brat(tmp_path / 'bare', text=text))
    assert [s.words for s in reading.sentences] == [s.words for s in bare.sentences]
    learned = [(k, s.words[a : b + 1]) for s in reading.sentences for k, a, b in spans(s.tags)]
    assert learned == [
        ('Disease', ('II', '.', 'diabetes', 'mellitus')),
        ('Disease', ('is',)),
        ('Gene', ('x5ABCy',)),
    ]
    scored = [(k, s.scored_words[a : b + 1]) for s in reading.sentences for k, a, b in spans(s.gold)]
    assert scored == [('Disease', ('II', '.', 'diabetes', 'mellitus', 'is')), ('Gene', ('ABC',))]
    assert reading.repairs == {
        f"{characters.CUT_OFF} (first: 'II. diabetes mellitus is' in 'II. diabetes mellitus is', 1)": 1,
        f"{characters.WITHIN} (first: 'ABC' in 'x5ABCy', 1)": 1,
    }
    # What is found of a word is found of all its parts, and nothing beyond the end of the sentence.
    [within] = [s for s in reading.sentences if 'x5ABCy' in s.words]
    found = within.laid_out([f'B-{word}' if word == 'x5ABCy' else 'O' for word in within.words])
    assert [x for x in zip(within.scored_words, found, strict=True) if x[1] != 'O'] == [
        ('x5', 'B-x5ABCy'),
        ('ABC', 'I-x5ABCy'),
        ('y', 'I-x5ABCy'),
    ]
    [across] = [s for s in reading.sentences if 'II' in s.words]
    assert across.laid_out(across.tags) == (*across.tags, 'O') != across.gold


def test_of_two_mentions_in_a_word_one_is_learned_and_both_are_scored(tmp_path):
    text = 'The TNFαIL2 fusion.'
    marks = mark(1, 'Gene', 'TNFα', text=text) + mark(2, 'Gene', 'IL2', text=text)
    reading = standoff.read_brat(brat(tmp_path, text=text, marks=marks))
    [sentence] = reading.sentences
    assert sentence.tags == ('O', 'B-Gene', 'O', 'O')
    assert (sentence.scored_words, sentence.gold) == (
        ('The', 'TNFα', 'IL2', 'fusion', '.'),
        ('O', 'B-Gene', 'B-Gene', 'O', 'O'),
    )
    assert reading.repairs[characters.SHARED] == 1


def test_scripts_without_blanks_are_read_letter_by_letter(tmp_path):
    text = '肝细胞癌是CT的疾病。'
    reading = standoff.read_brat(brat(tmp_path, text=text, marks=mark(1, 'Disease', '肝细胞癌', text=text)))
    assert [s.words for s in reading.sentences] == [(*'肝细胞癌是', 'CT', *'的疾病。')]
    assert spans(reading.sentences[0].tags) == [('Disease', 0, 3)]
    assert not reading.repairs


PUBTATOR = """1|t|Naloxone | reverses it
1|a|In mice, naloxone|x reversed hypertension.
1\t0\t8\tNaloxone\tChemical\tD009270
1\t32\t40\tnaloxone\tChemical\tD009270
1\t52\t64\thypertension\tDisease or Symptom\tD006973
1\tCID\tD009270\tD006973

2|t|No abstract.
2|a|

"""


def test_pubtator_by_hand(tmp_path):
    reading = standoff.read_pubtator(write(tmp_path / 'a', '\ufeff' + PUBTATOR.replace('\n', '\r\n')))
    assert reading.repairs == {'annotations that are not mentions': 1}
    assert reading.mentions == 3
    assert [(s.document, ' '.join(s.words)) for s in reading.sentences] == [
        (0, 'Naloxone | reverses it'),
        (0, 'In mice , naloxone | x reversed hypertension .'),
        (1, 'No abstract .'),
    ]
    assert reading.sentences[1].tags[3] == 'B-Chemical'
    assert reading.sentences[1].tags[7] == 'B-Disease_or_Symptom'
    assert standoff.read_pubtator(write(tmp_path / 'b', PUBTATOR.rstrip())) == reading


QUOTED = """7|t|The "familial  Mediterranean" fever.
7|a|
7\t5\t35\tfamilial  Mediterranean  fever\tDisease\tD1
"""


def test_an_annotation_may_quote_other_punctuation_than_the_text(tmp_path):
    """NCBI-disease's own file quotes blanks for the quotation marks of one of its 6,892 mentions."""
    reading = standoff.read_pubtator(write(tmp_path / 'a', f'{QUOTED}7\t0\t3\tThe\tDisease\tD1\n'))
    what = 'annotations that quote other punctuation, blanks or letters than their text has'
    assert (reading.mentions, reading.repairs) == (2, {what: 1})
    words = [w for s in reading.sentences for w, tag in zip(s.words, s.tags, strict=True) if tag != 'O']
    assert words == ['The', 'familial', 'Mediterranean', '"', 'fever']


def test_pubtator_needs_no_blank_line_between_documents(tmp_path):
    wanted = standoff.read_pubtator(write(tmp_path / 'a', PUBTATOR))
    close = re.sub('\n+', '\n', PUBTATOR)
    assert close.count('\n') < PUBTATOR.count('\n')
    assert standoff.read_pubtator(write(tmp_path / 'b', close)).sentences == wanted.sentences
    assert read_given([str(write(tmp_path / 'a.pubtator', close))], [], False) == [
        dataclasses.replace(one, place=str(tmp_path / 'a.pubtator'))
        for one in read_given([str(write(tmp_path / 'b.pubtator', PUBTATOR))], [], False)
    ]


PARTS = [
    'aspirin',
    'p53',
    'x',
    '-',
    '. ',
    ' ',
    '\n',
    ' (',
    ') ',
    'The',
    ', ',
    '\u00e9',
    '\u200b',
    '\u2028',
    'A.',
    '5',
]


@st.composite
def marked_documents(draw):
    text = ''.join(draw(st.lists(st.sampled_from(PARTS), min_size=1, max_size=40)))
    solid = [i for i, c in enumerate(text) if not c.isspace()]
    found = []
    for _ in range(draw(st.integers(0, 8)) if solid else 0):
        a, b = sorted((draw(st.sampled_from(solid)), draw(st.sampled_from(solid))))
        pieces = draw(st.sampled_from([1, 1, 1, 2]))
        found.append(Mention(draw(st.sampled_from('XY')), a, min(b, a + 12) + 1, pieces))
    found = [m for m in found if not text[m.end - 1].isspace()]
    return Marked(text, tuple(found))


@given(marked_documents())
def test_no_character_and_no_mention_is_lost(document):
    kept = characters.without_overlaps(document.mentions)
    assert kept == sorted(kept, key=lambda m: m.start)
    assert not any(a.end > b.start for a, b in itertools.pairwise(kept))
    for left_out in set(document.mentions) - set(kept):  # only for a better one that overlaps it
        better = [m for m in kept if m.start < left_out.end and left_out.start < m.end]
        assert min((m.pieces > 1, m.start - m.end, m.start) for m in better) <= (
            left_out.pieces > 1,
            left_out.start - left_out.end,
            left_out.start,
        )
    sentences_found = characters.sentences_of(document, kept, 0, 'prose', Counter(), {})
    bare = characters.sentences_of(document, [], 0, 'prose', Counter(), {})
    assert [s.words for s in sentences_found] == [s.words for s in bare]
    assert ''.join(''.join(s.words) for s in sentences_found) == ''.join(document.text.split())
    assert not any(word.split() != [word] for s in sentences_found for word in s.words)
    found = [(k, ''.join(s.scored_words[a : b + 1])) for s in sentences_found for k, a, b in spans(s.gold)]
    # Words with white space in them are what a mention has beyond its sentence.
    assert [(k, ''.join(x.split())) for k, x in found] == [
        (m.kind, ''.join(document.text[m.start : m.end].split())) for m in kept
    ]


def test_sets_in_standoff_form(tmp_path):
    for split in ('train', 'dev', 'test'):
        brat(tmp_path / 'brat' / split, marks=mark(1, 'Drug', 'Aspirin') + mark(2, 'Gene', 'BRCA1'))
        write(tmp_path / 'pubtator' / f'{split}.PubTator.txt', PUBTATOR)
    first, second = (read_dataset(tmp_path / name) for name in ('brat', 'pubtator'))
    assert (first.form, first.types, first.gold_in_file['test']) == ('BRAT', ('Drug', 'Gene'), 2)
    assert (second.form, second.gold_in_file['devel']) == ('PubTator', 3)
    assert second.repairs['train'] == {'annotations that are not mentions': 1}
    chosen = corpora.chosen_sets(Finetune(folder=str(tmp_path)))
    names = [str(p.relative_to(tmp_path)) for one in chosen for p in corpora.set_files(one.folder)]
    assert names[:2] == ['brat/train/1.ann', 'brat/train/1.txt']
    assert names[6:] == [f'pubtator/{split}.PubTator.txt' for split in ('train', 'dev', 'test')]


# ---- TFDS


@pytest.mark.parametrize('kind', ['label', 'text'])
def test_tfds_folders(tmp_path, kind):
    import tensorflow_datasets as tfds

    names = ['O', 'B-X', 'I-X']
    feature = tfds.features.ClassLabel(names=names) if kind == 'label' else tfds.features.Text()
    rows = [
        {'tokens': ['a\u2028', 'b', 'c'], 'ner_tags': ['B-X', 'I-X', 'O']},
        {'tokens': [], 'ner_tags': []},
    ]
    folder = prepare(tmp_path, {'train': rows, 'validation': rows[:1], 'test': rows[:1]}, feature)
    for place in (folder, folder / '1.0.0'):
        dataset = read_dataset(place)
        assert dataset.form == 'TFDS'
        assert dataset.train == (Sentence(('a\u2028', 'b', 'c'), ('B-X', 'I-X', 'O')),)
        assert dataset.gold_in_file == {'train': 1, 'devel': 1, 'test': 1}
        assert dataset.repairs['train'] == {'records without a word': 1}
    named = [rows[0] | {'pmid': number} for number in (7, 7, 9)]
    read = prepare(tmp_path / 'named', {'train': named}, feature, pmid=tfds.features.Scalar(np.int64))
    assert [s.document for s in read_prepared(read / '1.0.0', 'train').sentences] == [0, 0, 1]
    files = [p.name for p in corpora.set_files(folder)]
    assert {'dataset_info.json', 'made-validation.array_record-00000-of-00001'} <= set(files)
    info = folder / '1.0.0' / 'dataset_info.json'
    write(info, info.read_text().replace('array_record', 'tfrecord'))
    with pytest.raises(InputError, match='cannot be read as a TFDS folder'):
        read_dataset(folder)


def test_random_bytes_are_an_error_or_a_set_but_never_a_crash(tmp_path):
    generator = random.Random(0)
    for _ in range(300):
        content = bytes(generator.choices(b'aBIO-X\t\n \r\xc3\xa9\xff', k=generator.randint(0, 30)))
        try:
            found = read_iob2(write(Path(tmp_path) / 'a.tsv', content))
        except InputError as error:
            assert 'a.tsv' in str(error)  # noqa: PT017
        else:
            assert sum(len(spans(s.tags)) for s in found) == count_mentions(tmp_path / 'a.tsv')


def test_quotations_in_ascii_a_byte_order_mark_and_comments_are_read_and_counted(tmp_path):
    text = 'TNF-α and IL-2'
    quoted = 'annotations that quote other punctuation, blanks or letters than their text has'
    reading = standoff.read_brat(brat(tmp_path / 'a', text=text, marks='\ufeffT1\tGene 0 5\tTNF-a\n'))
    assert spans(reading.sentences[0].gold) == [('Gene', 0, 2)]
    assert reading.repairs == {quoted: 1}
    lines = '###MEDLINE:1\n\n# text = IL-2 binds\nIL-2\tB-X\n# within\nR\tI-X\n\n###MEDLINE:2\n\nno\tO\n\n'
    reading = columns.read_columns(write(tmp_path / 'x.tsv', lines))
    assert [(s.words, s.document) for s in reading.sentences] == [(('IL-2', 'R'), 0), (('no',), 1)]
    assert (reading.mentions, len(spans(reading.sentences[0].tags))) == (1, 1)
    assert reading.repairs == {
        'lines of comments left out': 2,
        '###MEDLINE: read as the start of a document': 2,
    }


TAGGED = 'Aspirin\tB-Drug\nhelps\tO\n\n'


def test_a_folder_of_files_of_columns_is_a_split_with_a_document_a_file(tmp_path):
    for split in SPLITS:
        write(tmp_path / 'tabs' / split / 'b.txt', TAGGED * 2)
        write(tmp_path / 'tabs' / split / 'a.txt', TAGGED)
        write(tmp_path / 'tabs' / split / 'README.txt', 'How these files were made.')
        write(tmp_path / 'blanks' / split / 'a.conll', TAGGED.replace('\t', ' '))
    read = read_dataset(tmp_path / 'tabs')
    assert (read.form, read.types, read.gold_in_file) == (
        'files of columns',
        ('Drug',),
        dict.fromkeys(SPLITS, 3),
    )
    assert read.repairs['train'] == {'notes for readers and files of macOS left out': 1}
    assert [(s.document, s.source) for s in read.train] == [(0, 'a'), (1, 'b'), (1, 'b')]
    assert [p.name for p in corpora.split_files(tmp_path / 'tabs', 'test')] == ['a.txt', 'b.txt']
    assert [s.words for s in read_dataset(tmp_path / 'blanks').train] == [('Aspirin', 'helps')]
    with pytest.raises(InputError, match='is read as files of columns, which has no texts with answers'):
        corpora.file_of_texts(tmp_path / 'tabs', 'train')


def test_texts_of_bionlp_have_their_mentions_in_two_files(tmp_path):
    text, given_marks = 'Aspirin inhibits COX-1.', mark(1, 'Drug', 'Aspirin', text='Aspirin inhibits COX-1.')
    event = mark(2, 'Regulation', 'inhibits', text=text) + 'E1\tRegulation:T2 Cause:T1\n'
    for split in SPLITS:
        write(tmp_path / 'set' / split / '1.txt', text)
        write(tmp_path / 'set' / split / '1.a1', given_marks)
        write(tmp_path / 'set' / split / '1.a2', event)
    read = read_dataset(tmp_path / 'set')
    assert (read.form, read.types) == ('BioNLP (.a1 and .a2)', ('Drug', 'Regulation'))
    assert read.repairs['train'] == {'annotations that are not mentions': 1, standoff.OF_A2: 1}
    assert [p.name for p in corpora.split_files(tmp_path / 'set', 'train')] == ['1.a1', '1.a2', '1.txt']
    for split in SPLITS:
        (tmp_path / 'set' / split / '1.a2').unlink()
    assert read_dataset(tmp_path / 'set').types == ('Drug',)


def brat_named(folder, *names):
    for name in names:
        write(folder / f'{name}.txt', 'x')
        write(folder / f'{name}.ann', '')
    return folder


def test_notes_for_readers_and_files_of_macos_are_no_documents_of_brat(tmp_path):
    folder = brat(tmp_path / 'b', marks=mark(1, 'Drug', 'Aspirin'))
    wanted = standoff.read_brat(folder)
    for name in ('README.txt', 'Licence-en.txt', '._1.txt', '._1.ann'):
        write(folder / name, 'x')
    found = standoff.read_brat(folder)
    assert found.sentences == wanted.sentences
    assert list(folders.documents_of(brat_named(tmp_path / 'order', 'a', 'a-b'), ('.ann',), Counter())) == [
        'a-b',
        'a',
    ]
    assert found.repairs == {**wanted.repairs, 'notes for readers and files of macOS left out': 3}
    assert [p.name for p in corpora.FORMS['BRAT'].files(folder, 'train')] == ['1.ann', '1.txt']


CONLL_U = """# newdoc id = d1
# text = Des Aspirins\twegen
1-2\tDes Aspirins\t_\t_\t_\t_\t_\t_\t_\t_
1\tDes\tder\tDET\t_\t_\t2\tdet\t_\tO
2\tAspirin\tAspirin\tNOUN\t_\t_\t0\troot\t_\tB-Drug
2.1\tist\tsein\tVERB\t_\t_\t_\t_\t_\t_

"""


def test_comments_and_conll_u(tmp_path):
    reading = columns.read_columns(write(tmp_path / 'a.conllu', CONLL_U * 2))
    assert [(s.words, s.tags) for s in reading.sentences] == [(('Des', 'Aspirin'), ('O', 'B-Drug'))] * 2
    assert reading.mentions == 2
    assert reading.repairs == {
        'lines of comments left out': 4,
        'lines of CoNLL-U for several words or none left out': 4,
    }
    # In a file of blanks, too; a token may be # itself.
    lines = '# id 1\nAspirin B-X\n# O\n\n# O\n5 I-X\n\n# text = 1 B-X\nnone O\n'
    reading = columns.read_columns(write(tmp_path / 'a.conll', lines))
    assert [s.words for s in reading.sentences] == [('Aspirin', '#'), ('#', '5'), ('none',)]
    assert (reading.mentions, reading.repairs['lines of comments left out']) == (2, 2)
    wide = '# O x\na B-X x\n\n# y\nb O z\n'
    found = columns.read_columns(write(tmp_path / 'b.conll', wide), Columns('1', '2'))
    assert [s.words for s in found.sentences] == [('#', 'a'), ('b',)]


# ---- what is refused

LONG = '9' * 5000  # of more than 4,300 digits Python makes no number


def read_marks(path):
    """Marks of BRAT beside their text, or without it."""
    if path.name == '1.ann':
        write(path.with_suffix('.txt'), f'{TEXT} TNF-α')
    return standoff.read_brat(path.parent)


BAD_FILES = {
    (read_iob2, 'a.tsv'): [
        (b'a\tO\nb\n', r'a\.tsv:2: expected token TAB tag, found 1 column \(lines before have 2\)'),
        (b'a\tO\nb O\n', r'a\.tsv:2: expected token TAB tag, found 1 column'),
        (b'a\tO\nb\tO\tO\n', r'a\.tsv:2: .*3 columns'),
        (b'a x O\nb O\n', r'a\.tsv:2: expected token and tag, found 2 columns \(lines before have 3\)'),
        (b'\tO\n', r'a\.tsv:1: .*the token is empty'),
        (b'a\tO\n\nb\tX\n', r"a\.tsv:3: unknown tag 'X'"),
        (b'a\tO\nb\tb-X\n', r"a\.tsv:2: unknown tag 'b-X'"),
        (b'a\tB-\n', r'a\.tsv:1: unknown tag'),
        (b'a\t\n', r"a\.tsv:1: unknown tag ''"),
        (b'Token\tTag\na\tO\n', r"a\.tsv:1: unknown tag 'Tag'"),
        (
            b'a\tB-X\n\nb\tL-X\nc\tE-X\n',
            r'a\.tsv: no scheme .* B, E, L together; first B- at .*a\.tsv:1, E-.*:4, L-',
        ),
        (b'a\tB-X\nb\tI\n', r"a\.tsv: .*without one \('I'\) are mixed; first .*I at .*a\.tsv:2"),
        (b'', r'a\.tsv: holds no sentence'),
        (b'-DOCSTART-\tO\n\n', r'a\.tsv: holds no sentence'),
        (b'a\tO\nb\xff\tO\n', r'a\.tsv:2: is not UTF-8'),
        ('a\tO\n'.encode('utf-16'), r'a\.tsv:1: is not UTF-8'),
        ('a\tB-X\rb\tO\r\rc\tO\r', r'a\.tsv: its lines end with carriage returns alone'),
    ],
    (columns.read_columns, 'a.tsv'): [
        (
            in_form(lambda w, t, a, b, n: (w, t.replace('Drug', 'Gene'), t), TEN),
            r'a\.tsv:1: columns 2 \(B-Gene\) and 3 \(B-Drug\) all read as tags; set config\.finetune\.tag_column '
            r'\(of lint and score --tag_column\) to its number or its name in a header, or leave one of them',
        ),
        (
            in_form(lambda w, t, a, b, n: (a, t), TEN),
            r'a\.tsv:1: columns 1 \(0\) hold tags or numbers in every line, and no words',
        ),
        (
            in_form(lambda w, t, a, b, n: (chunk(n), t), TEN),
            r'a\.tsv:1: columns 1 \(B-NP\) hold tags or numbers in every line',
        ),
        (
            in_form(lambda w, t, a, b, n: (a, b, chunk(n), t), TEN),
            r'columns 1 \(0\) and 2 .* no words; set .*word_column',
        ),
        (
            in_form(lambda w, t, a, b, n: ('NN', w, t), TEN),
            r'a\.tsv:1: columns 1 \(NN\) and 2 \(Zolmi\) may all be the words',
        ),
        (in_form(lambda w, t, a, b, n: (w, 'X', t.lower()), TEN), r"a\.tsv:1: unknown tag 'b-drug'"),
        (
            in_form(lambda w, t, a, b, n: (f'"{w}"', f'"{t}"'), TEN),
            r'a\.tsv:1: .*is quoted, as no token is; .*QUOTE_NONE',
        ),
        (
            CONLL_U.replace('\tB-Drug', '\tNER=B-Drug|SpaceAfter=No'),
            r'a\.tsv:5: unknown tag .* it is one of several attributes, as CoNLL-U has',
        ),
        ('a O\n# within\nb B-X\n', r"unknown tag 'within'"),  # not between the words of a sentence
    ],
    (standoff.read_pubtator, 'a'): [
        (
            PUBTATOR.replace('1\t32\t40', '1\t33\t41'),
            r"a:4: characters 33 to 41 of the text are 'aloxone\|', not 'naloxone'",
        ),
        (PUBTATOR.replace('\t52\t64\t', '\t52\t640\t'), r'a:5: characters 52 to 640'),
        (PUBTATOR.replace('1\t0\t8\tNaloxone', '1\t8\t9\t '), r"a:3: characters 8 to 9 of the text are ' '"),
        (PUBTATOR.replace('1\t0\t8', '2\t0\t8'), r'a:3: belongs to no document'),
        (PUBTATOR.replace('\tChemical\tD009270\n1\t32', '\n1\t32'), r'a:3: expected ID, start, end'),
        (PUBTATOR.replace('1\t0\t8', f'1\t0\t{LONG}'), r'a:3: expected ID, start, end'),
        (
            PUBTATOR.replace('D006973\n\n2|t|', 'D006973\n2|a|'),
            r'a:7: belongs to no document|a blank line is missing',
        ),
        (PUBTATOR.replace('1|a|', '3|a|'), r'a:2: a blank line is missing before document 3'),
        ('hello\n', r'a:1: belongs to no document'),
        ('\n\n', r'a: holds no text'),
        (
            f'{QUOTED}7\t4\t8\tThe\tDisease\tD1\n',
            r'a:4: characters 4 to 8 of the text are \'"fam\', not \'The\'',
        ),
        (
            f'{QUOTED}7\t4\t5\t-\tDisease\n',
            r"a:4: characters 4 to 5 of the text are '\"', not '-'",
        ),  # no letters
        (PUBTATOR.replace('\n', '\r'), r'a: its lines end with carriage returns alone'),
    ],
    (read_marks, '1.ann'): [
        ('T1\tDrug 1 8\tAspirin\n', r"1\.ann:1: characters 1 to 8 of the text are 'spirin-', not 'Aspirin'"),
        (f'T1\tGene {len(TEXT) + 1} {len(TEXT) + 6}\tTNF-β\n', "are 'TNF-α', not 'TNF-β'"),
        ('\nT1 Drug 0 7 Aspirin\n', r'1\.ann:2: expected ID TAB type start end TAB text'),
        ('T1\tDrug 0 0\t\n', r'1\.ann:1: characters 0 to 0'),
        (f'T1\tDrug 0 {LONG}\tAspirin\n', r'1\.ann:1: expected ID TAB type start end TAB text'),
        ('Aspirin is a drug\n1\n', r"1\.ann:2: no BRAT annotation begins with '1'"),
        (b'T1\xff', r'1\.ann:1: is not UTF-8'),
        (
            (mark(1, 'Drug', 'Aspirin') + mark(2, 'Gene', 'BRCA1')).replace('\n', '\r'),
            r'1\.ann: its lines end with carriage returns alone',
        ),
    ],
    (read_marks, '2.txt'): [('x', r'2\.txt: has no 2\.ann beside it')],
    (read_marks, '3.ann'): [('', r'3\.ann: has no 3\.txt beside it')],
    # Nothing is read as tags by chance, and nobody is told that nothing is marked.
    (lambda path: read_iob2(path.parent), 'a.txt'): [
        (text, rf'a\.txt: neither a text of BRAT, .* \({why}.*\.ann beside NAME\.txt')
        for text, why in (
            ('Aspirin helps.', r"1: unknown tag 'helps\.'"),
            ('vitamin B-12', 'no tags of types beside O'),
        )
    ],
    (lambda path: read_iob2(path.parent), 'a.docx'): [('{}', r': holds a\.docx; read are \.txt with \.ann')],
}


@pytest.mark.parametrize(
    ('read', 'name', 'content', 'message'), [(*by, *bad) for by, files in BAD_FILES.items() for bad in files]
)
def test_bad_files_are_named_with_their_line(tmp_path, read, name, content, message):
    with pytest.raises(InputError, match=message) as error:
        read(write(tmp_path / name, content))
    assert '\n' not in str(error.value)


MOVED = 'devel chooses the epoch and the setting, so of a set without one move a part of train there'
CUT = 'Aspirin inhibits COX-1.'
OF_BIONLP = {
    f'{split}/1.{ending}': CUT if ending == 'txt' else '' for split in SPLITS for ending in ('txt', 'a1')
}
BAD_SETS = [
    ({'a': ''}, r'train: no such file .* a set needs train, devel'),
    ({**files_of(), 'dev.conll': 'a O\n'}, r'devel is there twice \(devel\.tsv and dev\.conll\)'),
    (
        {'train.tsv': 'a\tB-X\n\n', 'devel.tsv': 'a\tO\n\n', 'test.pubtator': 'a\tO\n\n'},
        r'different forms \(PubTator, columns\)',
    ),
    # A test set without .a2 has other types, so it is not compared with models of both.
    (
        {**OF_BIONLP, 'train/1.a2': '', 'devel/1.a2': ''},
        r'different forms \(BioNLP \(\.a1 and \.a2\), BioNLP \(\.a1\)\)',
    ),
    (
        {**OF_BIONLP, 'train/2.txt': CUT},
        r'2\.txt: has no 2\.a1 beside it; fetch it again, or add an empty',
    ),
    (
        files_of(PLAIN, PLAIN, in_form(PUBLISHED_FORMS['CoNLL-2003'][0])),
        r'test\.tsv: of 4 columns, 1 is the word and 4 the tag, but in .*train',
    ),
    (
        files_of('a\tU-X\n\n', 'a\tO\n\n', 'a\tB-X\nb\tE-X\n\n'),
        r'no scheme has .*E- at .*test\.tsv:2, U- at .*train\.tsv:1',
    ),
    (files_of('a\tO\n\n'), r'train\.tsv: has no entity at all'),
    (files_of(devel=''), rf'devel\.tsv: holds no sentence; .*; {MOVED}'),
    (
        {'train.tsv': '', 'test.tsv': ''},
        rf'devel: no such file .* holds test\.tsv, train\.tsv, but .*; {MOVED}',
    ),
    (
        files_of(*['text\tlabel\nAspirin helps\tyes\nit does not\tno\n'] * 3),
        r'tsv:2: needs "tokens" .*it has text, label; .*task \(of lint and score --task\) to classes',
    ),
    (
        files_of(*['患者有高血压病史\t是\n无糖尿病和胸痛症状\t否\n'] * 3),
        r"unknown tag '是'; .*task \(of lint and score --task\) to classes",
    ),
    # Words with types.
    (files_of(*['Aspirin\tDrug\nhelps\tO\n'] * 3), r"unknown tag 'Drug'; [^;]*; if the line is a header"),
    (files_of(*['高血压\t病\n病史\tO\n'] * 3), r"unknown tag '病'; [^;]*; if the line is a header"),
]


@pytest.mark.parametrize(('files', 'message'), BAD_SETS)
def test_bad_sets_are_named_with_what_is_wrong(tmp_path, files, message):
    for name, content in files.items():
        write(tmp_path / name, content)
    with pytest.raises(InputError, match=message):
        read_dataset(tmp_path)


def test_what_is_no_set_says_what_is_there_and_what_is_read(tmp_path):
    refused = {
        'other': r'name bc5_train\.tsv and the others as the splits that they are',
        'data': r'data: has no set in it, but .*data/ner has; give that folder',
        'other/bc5_train.tsv': r'bc5_train\.tsv: is a file; give the folder of a set',
    }
    for name, said in (
        ('spacy', r'train\.spacy is a DocBin of spaCy; write each'),
        ('xlsx', r'train\.xlsx is a workbook of Excel; save it as \.csv'),
        ('pkl', r'train\.pkl is a pickle, which could run anything'),
        ('tar', r'train\.tar is an archive; unpack it'),
        ('tsv.xz', r'train\.tsv\.xz is compressed; unpack it, or use gzip'),
    ):
        for split in ('dev', 'train'):
            write(tmp_path / name / f'{split}.{name}', '')
        holds = rf'{name}: has no training split .*: it holds dev\.{name}, train\.{name}; a set needs train, '
        refused[name] = rf'{holds}.*{said}'
    write(tmp_path / 'other' / 'bc5_train.tsv', TAGGED)
    write_set(tmp_path / 'data' / 'ner' / 'drugs')
    for name, message in refused.items():
        of_sets = [corpora.sets_in] if 'no training split' in message else []
        for look in (lambda folder, _: look_through(folder, {}), *of_sets):
            with pytest.raises(InputError, match=message):
                look(tmp_path / name, ())
