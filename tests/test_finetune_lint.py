"""The lint: every flaw of a made set by hand, the five real sets, the verb."""

import json
import shutil

import pytest
from toy_commands import document

from bioptimus_jax.cli import main as cli
from bioptimus_jax.errors import InputError
from bioptimus_jax.finetuning.entities import lint
from bioptimus_jax.records.record import plain
from bioptimus_jax.records.sets import LintedSet, TaggedDifferently
from bioptimus_jax.sets import blurb
from bioptimus_jax.sets.corpora import read_dataset, sets_in
from bioptimus_jax.sets.sentences import SPLITS
from bioptimus_jax.tokenizer.kinds.wordpiece import SPECIAL_TOKENS, make
from bioptimus_jax.vocab.agreement import load_for_words

LETTERS = 'abcdefghijklmnopqrstuvwxyz'
VOCABULARY = [*SPECIAL_TOKENS, 'drug', *LETTERS, *('##' + c for c in LETTERS)]


def sentence(text):
    """`word/TAG word ...` as lines; a word without a slash is tagged O."""
    rows = [word.rpartition('/') if '/' in word else (word, '/', 'O') for word in text.split(' ')]
    return ''.join(f'{word}\t{tag}\n' for word, _, tag in rows) + '\n'


SPLIT_TEXTS = {
    'train': ['the drug/B-Drug', 'a drug/B-Drug b/I-Drug c/I-Drug', 'the drug/B-Drug', 'the drug', 'x'],
    'devel': ['the drug/B-Drug', 'b a/I-Drug', 'y z'],
    'test': ['the drug', 'gene/B-Gene \u200b/B-Drug \u00ad', 'y z', ' '.join('abcde' * 30)],
}


def write_set(folder, texts=SPLIT_TEXTS):
    folder.mkdir(parents=True)
    for split in SPLITS:
        content = ''.join(map(sentence, texts[split]))
        (folder / f'{split}.tsv').write_text(content, 'utf-8')
    return folder


@pytest.fixture
def record(tmp_path):
    tokenizer = make(VOCABULARY, lowercase=True).tokenizer
    dataset = read_dataset(write_set(tmp_path / 'drugs'))
    return lint.lint_dataset(dataset, {'tiny': tokenizer}, max_pieces=128)


def test_counts_by_hand(record):
    train, devel, test = (record.splits[split] for split in SPLITS)
    assert [s.sentences for s in (train, devel, test)] == [5, 3, 4]
    assert [s.words for s in (train, devel, test)] == [11, 6, 157]
    assert [s.mentions for s in (train, devel, test)] == [3, 2, 2]
    assert all(s.mentions_in_file == s.mentions for s in (train, devel, test))
    assert test.mentions_by_type == {'Drug': 1, 'Gene': 1}
    assert train.sentences_without_mention == 2
    assert test.longest_sentence_words == 150
    assert (train.long_sentences, test.long_sentences) == (0, 1)
    assert (train.blurb, 'blurb' in train.json()) == (None, False)
    assert devel.repairs == {'orphan I- tags': 1}
    assert record.unseen_labels == {'B-Gene': 1}
    assert LintedSet.read(json.loads(json.dumps(record.json())), 'lint.json') == record


def test_repeated_sentences_by_hand(record):
    assert plain(record.repeated) == {
        'within train': {'sentences': 2, 'mentions': 1},
        'within devel': {'sentences': 0, 'mentions': 0},
        'within test': {'sentences': 0, 'mentions': 0},
        'devel from train': {'sentences': 1, 'mentions': 1},
        'test from train': {'sentences': 1, 'mentions': 0},
        'test from devel': {'sentences': 2, 'mentions': 0},
    }
    assert record.tagged_differently == TaggedDifferently(1, ('the drug',))


def test_pieces_by_hand(record):
    measured = record.tokenizers['tiny']
    assert measured.max_pieces == 128
    assert measured.train.words_without_piece == 0
    # 'the' is t ##h ##e; with [CLS] and [SEP]
    assert measured.train.longest_sentence_pieces == 6
    assert measured.test.json() == {
        'words_without_piece': 2,
        'of_them_in_mentions': 1,
        'mentions_without_piece': 1,
        'examples': ['"\\u200b"', '"\\u00ad"'],
        'longest_sentence_pieces': 152,
        'long_sentences': 1,
    }


def test_lines_say_what_matters(record):
    text = lint.lines(record)
    assert text[:4] == [
        'drugs: IOB2; Drug',
        '  train 5 sentences, 11 words, 3 mentions',
        '  devel 3 sentences, 6 words, 2 mentions',
        '  test  4 sentences, 157 words, 2 mentions',
    ]
    assert text[4:] == [
        '  devel: orphan I- tags: 1',
        '  devel: strict F1 is not defined, since 1 of 2 mentions begin with I- and are none in strict mode',
        '  not in train, cannot be learned from it: B-Gene 1',
        '  sentences that occur earlier (mentions in them): within train 2 (1), devel from train 1 (1), '
        'test from train 1 (0), test from devel 2 (0)',
        "  tagged in more than one way: 1 sentence, as 'the drug'",
        '  tiny: 1 sentence of more than 128 pieces, cut into windows (longest: 152)',
        '  tiny: 2 words without a piece, which count as O (1 in mentions; 1 mention cannot be found): '
        '"\\u200b", "\\u00ad"',
    ]


def test_a_clean_set_has_no_notes(tmp_path):
    texts = {'train': ['a/B-X'], 'devel': ['b/B-X'], 'test': ['c/B-X']}
    text = lint.lines(lint.lint_dataset(read_dataset(write_set(tmp_path / 'set', texts))))
    assert len(text) == 4
    texts['test'] = ['c']
    text = lint.lines(lint.lint_dataset(read_dataset(write_set(tmp_path / 'other', texts))))
    assert text[4:] == ['  test: has no mention at all']


def test_mentions_that_took_a_sign_of_the_sentence_along_are_said(tmp_path):
    """Label Studio writes such CoNLL; a sign that is a word of its own is not meant."""
    texts = {'train': ['a fever./B-X', 'a b/B-X ;/I-X c/B-X'], 'devel': ['b/B-X'], 'test': ['c/B-X']}
    record = lint.lint_dataset(read_dataset(write_set(tmp_path / 'set', texts)))
    assert record.splits['devel'].mentions_with_punctuation is None
    assert lint.notes(record)[0].startswith(
        'train: 1 of 3 mentions end in punctuation, as "fever."; `predict` cuts it off'
    )


def test_padding_and_truncation_of_a_tokenizer_do_not_count(tmp_path):
    tokenizer = make(VOCABULARY, lowercase=True).tokenizer
    dataset = read_dataset(write_set(tmp_path / 'drugs'))
    plain = lint.lint_dataset(dataset, {'t': tokenizer}).tokenizers
    tokenizer.enable_padding(length=16)
    assert lint.lint_dataset(dataset, {'t': tokenizer}).tokenizers == plain


def test_a_set_under_a_name_of_blurb_is_compared(tmp_path):
    texts = {'train': ['a/B-X'], 'devel': ['b/B-X'], 'test': ['c/B-X']}
    record = lint.lint_dataset(read_dataset(write_set(tmp_path / 'BC5CDR-disease-IOB', texts)))
    assert record.blurb == 'bc5-disease'
    assert lint.lines(record)[1] == '  train 1 sentence, 1 word, 1 mention (BLURB: 4,182; NOT the same)'
    names = {'NCBI-disease': 'ncbi-disease', 'JNLPBA': 'jnlpba', 'bc5cdr_chem': 'bc5-chem', 'bc5cdr': ''}
    assert {name: blurb.set_of(name) for name in names} == names


def test_real_sets_against_blurb(data):
    records = [lint.lint_dataset(read_dataset(data / 'ner' / name)) for name in ('bc5-disease', 'jnlpba')]
    shown = {f'{r.dataset} {line.split()[0]}': line for r in records for line in lint.lines(r)[1:4]}
    assert len(shown) == 6
    known = shown.pop('bc5-disease devel')
    assert known.endswith('4,246 mentions (BLURB: 4,244; known of the public files)')
    assert all('(BLURB: ' in line and ';' not in line for line in shown.values())
    by_name = {r.dataset: r for r in records}
    assert by_name['jnlpba'].splits['train'].documents == 1800
    assert by_name['jnlpba'].types == ('entity',)
    line = 'jnlpba: IOB2; DNA, RNA, cell_line, cell_type, protein as one type'
    assert lint.lines(by_name['jnlpba'])[0] == line
    assert by_name['jnlpba'].repeated['test from train'].json() == _shared(data / 'ner' / 'jnlpba')


def _shared(folder):
    blocks = {}
    for split in ('train', 'test'):
        text = (folder / f'{split}.tsv').read_text('utf-8').replace('-DOCSTART-\tO\n', '')
        blocks[split] = [block.strip('\n').split('\n') for block in text.split('\n\n') if block.strip('\n')]
    words = {split: [[row.split('\t')[0] for row in b] for b in found] for split, found in blocks.items()}
    train = {' '.join(w) for w in words['train']}
    again = [b for b, w in zip(blocks['test'], words['test'], strict=True) if ' '.join(w) in train]
    return {'sentences': len(again), 'mentions': sum('\tB-' in row for block in again for row in block)}


def test_the_verb(tmp_path, capsys):
    sets = tmp_path / 'sets'
    write_set(sets / 'drugs')
    write_set(sets / 'more')
    model = tmp_path / 'tiny'
    model.mkdir()
    make(VOCABULARY, lowercase=True).save(model, 128)
    assert cli.main(['lint', f'--sets={sets}', f'--model={model}']) == 0
    out = capsys.readouterr().out
    assert out.startswith('drugs: IOB2; Drug\n')
    assert '\nmore: IOB2; Drug\n' in out
    assert 'tiny: 2 words without a piece' in out
    assert cli.main(['lint', f'--sets={sets / "more"}']) == 0
    out = capsys.readouterr().out
    assert out.startswith('more: IOB2; Drug\n')
    again = tmp_path / 'again' / 'tiny'
    shutil.copytree(model, again)
    assert cli.main(['lint', f'--sets={sets / "more"}', f'--model={model}', f'--model={again}']) == 0
    assert f'{again}: 2 words without' in capsys.readouterr().out
    assert '1 sentence of more than 128 words (longest: 150)' in out
    found = document(capsys, 'lint', f'--sets={sets}', f'--model={model}')
    assert (list(found['sets']), found['clashes'], found['errors']) == (['drugs', 'more'], [], [])
    drugs = found['sets']['drugs']
    assert drugs['splits']['train']['sentences'] == len(SPLIT_TEXTS['train'])
    assert drugs['tokenizers']['tiny']['test']['words_without_piece'] == 2
    assert drugs['lines'][0] == 'drugs: IOB2; Drug'
    (sets / 'drugs' / 'devel.tsv').write_text('a\tO\nb\n', 'utf-8')
    assert cli.main(['lint', f'--sets={sets}', '--json']) == 3
    assert json.loads(capsys.readouterr().out)['errors'][0].startswith(f'{sets}/drugs/devel.tsv:2: ')
    # What is wrong with the description of a set hides no other set, either.
    write_set(sets / 'undescribed')
    (sets / 'undescribed' / 'set.json').write_text('{"task": "classes"}')
    assert cli.main(['lint', f'--sets={sets}', '--json']) == 3
    found = json.loads(capsys.readouterr().out)
    assert (list(found['sets']), len(found['errors'])) == (['more'], 2)
    assert (
        found['errors'][1]
        == f'{sets}/undescribed/set.json: texts: missing; name the column, or give its number from 1'
    )
    assert [one.name for one in sets_in(sets, ('more',))] == ['more']
    shutil.rmtree(sets / 'undescribed')
    assert cli.main(['lint', f'--sets={sets}']) == 3
    captured = capsys.readouterr()
    assert captured.out.startswith('more: IOB2')
    assert 'drugs/devel.tsv:2: expected token TAB tag' in captured.err
    assert captured.err.count('\n') == 1


def test_what_the_verb_cannot_use(tmp_path, capsys):
    (tmp_path / 'empty').mkdir()
    for folder, message in ((tmp_path / 'none', 'no such folder'), (tmp_path, 'has no training split')):
        assert cli.main(['lint', f'--sets={folder}']) == 3
        assert message in capsys.readouterr().err
    write_set(tmp_path / 'drugs')
    for model in ('none', 'empty'):
        with pytest.raises(InputError, match=f'{model}: (no such folder|holds no tokenizer)'):
            load_for_words(tmp_path / model)
        assert cli.main(['lint', f'--sets={tmp_path}', f'--model={tmp_path / model}']) == 3
        assert '\n' not in capsys.readouterr().err.strip()


def test_columns_are_said_and_chosen_by_flag(tmp_path, capsys):
    """Genes beside drugs: neither can be meant by itself; and CoNLL-2003's form, in which chunks are tags too."""
    rows = [('the', 'DT', 'B-NP', 'O', 'O'), ('sepril', 'NN', 'I-NP', 'B-Drug', 'O')]
    rows += [('and', 'CC', 'O', 'O', 'O'), ('BRCA1', 'NN', 'B-NP', 'O', 'B-Gene')]
    for name, width in (('both', 5), ('conll', 4)):
        (tmp_path / name).mkdir()
        for split in SPLITS:
            text = ''.join('\t'.join(row[:width]) + '\n' for row in rows)
            (tmp_path / name / f'{split}.tsv').write_text(f'{text}\n')
    assert cli.main(['lint', f'--sets={tmp_path / "conll"}']) == 0
    said = capsys.readouterr().out
    assert 'conll: IOB2; Drug\n' in said
    assert '  of 4 columns, 1 is the word and 4 the tag\n' in said
    assert cli.main(['lint', f'--sets={tmp_path / "both"}']) == 3
    assert 'train.tsv:2: columns 4 (B-Drug) and 5 (B-Gene) all read as tags' in capsys.readouterr().err
    found = document(capsys, 'lint', f'--sets={tmp_path / "both"}', '--tag_column=-2')['sets']['both']
    assert (found['types'], found['columns']) == (['Drug'], 'of 5 columns, 1 is the word and 4 the tag')
    # Nothing is said of two columns.
    write_set(tmp_path / 'plain')
    assert document(capsys, 'lint', f'--sets={tmp_path / "plain"}')['sets']['plain']['columns'] == ''
