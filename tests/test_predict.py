"""What a finished model says of new text, held against transformers' own pipelines; forms; refusals."""

import gzip
import io
import json
import shutil
from collections import Counter

import numpy as np
import pytest
from toy_measures import cell

import bioptimus_jax as bx
from bioptimus_jax.api import bars
from bioptimus_jax.cli.main import main
from bioptimus_jax.errors import InputError
from bioptimus_jax.finetuning.kept import Reads
from bioptimus_jax.inference.answer import Answer, AnswerSpan
from bioptimus_jax.inference.forms import FORMS, file_name, write
from bioptimus_jax.inference.given import Given, read_given
from bioptimus_jax.inference.kinds.tags import scheme_of
from bioptimus_jax.inference.model import ANSWERS, KINDS, LoadedModel, model_in
from bioptimus_jax.records.kept import KeptEnsemble
from bioptimus_jax.sets import standoff
from bioptimus_jax.sets.cutting import CUTS, lines, prose
from bioptimus_jax.sets.standoff import read_brat
from bioptimus_jax.storage.files import read_json, write_json, write_jsonl
from bioptimus_jax.tokenizer.kinds.wordpiece import make

WORDS = 'aspirin causes severe headache in no patient'.split()
TEXT = 'Aspirin causes severe headache.\n No patient has it; aspirin!'
TAGS = ('O', 'B-Drug', 'I-Drug', 'B-Harm', 'I-Harm')
SHAPE = {
    'hidden_size': 32,
    'num_hidden_layers': 1,
    'num_attention_heads': 2,
    'intermediate_size': 64,
    'max_position_embeddings': 40,
    'initializer_range': 0.5,  # so that answers are many
}


@pytest.fixture(scope='module')
def models(tmp_path_factory):
    """Random BERTs that say different things."""
    import torch
    import transformers

    letters = 'abcdefghijklmnopqrstuvwxyz'
    specials = ['[PAD]', '[UNK]', '[CLS]', '[SEP]', '[MASK]']
    vocabulary = [*specials, *WORDS, *letters, *('##' + c for c in letters), '.', ';', '!']
    made = {}
    for kind, head, labels, more in (
        ('tagger', 'TokenClassification', TAGS, {}),
        ('one', 'SequenceClassification', ('yes', 'no', 'maybe'), {}),
        ('any', 'SequenceClassification', ('a', 'b', 'c'), {'problem_type': 'multi_label_classification'}),
        ('number', 'SequenceClassification', ('score',), {'problem_type': 'regression'}),
        ('masked', 'MaskedLM', (), {}),
    ):
        torch.manual_seed(1)
        named = {'id2label': dict(enumerate(labels)), 'label2id': {x: i for i, x in enumerate(labels)}}
        config = transformers.BertConfig(
            vocab_size=len(vocabulary), **SHAPE, **more, **(named if labels else {})
        )
        made[kind] = tmp_path_factory.mktemp(kind)
        getattr(transformers, f'BertFor{head}')(config).save_pretrained(made[kind])
        make(vocabulary, True).save(made[kind], 40)
    return made


def answered(capsys, *arguments):
    """The JSON lines of a command."""
    assert main(['predict', *map(str, arguments), '--as=json']) == 0
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


def test_entities_are_those_of_the_tags_of_transformers(models, capsys, tmp_path):
    """Long sentences are read in windows; here every word is seen in a window of its own length."""
    import torch
    from transformers import AutoModelForTokenClassification, AutoTokenizer

    (tmp_path / 'note.txt').write_text(TEXT)
    [found] = answered(capsys, models['tagger'], tmp_path / 'note.txt')
    assert (found['id'], found['text']) == ('note', TEXT)
    tagger = AutoModelForTokenClassification.from_pretrained(models['tagger'])
    tokenizer = AutoTokenizer.from_pretrained(models['tagger'])
    expected, sure = [], []
    sentences = prose(TEXT)
    assert [TEXT[a:b] for a, b in sentences[0]] == ['Aspirin', 'causes', 'severe', 'headache', '.']
    for places in sentences:
        given = tokenizer(
            [TEXT[a:b] for a, b in places], is_split_into_words=True, return_tensors='pt', truncation=True
        )
        rows = torch.softmax(tagger(**given).logits[0], -1).detach().numpy()
        ids = given.word_ids()
        tagged = [rows[ids.index(n)] for n in range(len(places))]
        before = 'O'
        for (start, end), row in zip(places, tagged, strict=True):
            tag = TAGS[row.argmax()]
            if tag[0] == 'B' or (tag != 'O' and tag[1:] != before[1:]):
                expected.append([start, end, tag[2:]])
                sure.append([row.max()])
            elif tag != 'O':
                expected[-1][1] = end
                sure[-1].append(row.max())
            before = tag
    assert len(expected) > 2
    assert found['entities'] == expected
    np.testing.assert_allclose(found['probabilities'], [np.mean(one) for one in sure], atol=6e-5)


def test_labels_and_numbers_are_those_of_the_pipeline(models, capsys, tmp_path):
    from transformers import pipeline

    lines = ['aspirin causes headache', 'no patient', 'severe ' * 50, 'aspirin\tno headache']
    (tmp_path / 'texts.txt').write_text('\n'.join(lines[:2]) + '\n\n' + '\n'.join(lines[2:]))
    for kind in ('one', 'any', 'number'):
        classify = pipeline('text-classification', str(models[kind]), top_k=None)
        given = [dict(zip(('text', 'text_pair'), line.split('\t'))) for line in lines]
        theirs = [{x['label']: x['score'] for x in classify([one], truncation=True)[0]} for one in given]
        ours = answered(capsys, models[kind], tmp_path / 'texts.txt')
        assert [x['id'] for x in ours] == ['texts-1', 'texts-2', 'texts-4', 'texts-5']
        assert ours[3]['words'] == ['aspirin', 'no headache']
        for mine, other in zip(ours, theirs, strict=True):
            if kind == 'number':
                assert mine['answers'] == pytest.approx([other['score']], abs=1e-5)
                continue
            assert mine['probabilities'] == pytest.approx(other, abs=1e-5)
            assert list(mine['probabilities']) == sorted(other, key=lambda x: -other[x])
            best = [max(other, key=other.get)]
            assert mine['answers'] == (best if kind == 'one' else [x for x in 'abc' if other[x] > 0.5])


def test_texts_of_a_row_are_those_that_a_set_would_have(models):
    rows = [
        {'text': 'whole', 'sentence1': 'no', 'sentence2': 'patient'},
        {'text': 'no', 'text_pair': 'patient'},
        {'text': 'no', 'text_pair': None},
        {'sentence1': 'no', 'sentence2': ' '},
        {'question': 'no', 'context': ''},
        {'Sentence': 'no'},
    ]
    said = bx.predict(models['one'], rows)
    assert (
        said
        == bx.predict(models['one'], [('no', 'patient')] * 2 + ['no'] * 4)
        != bx.predict(models['one'], ['no'] * 6)
    )


def test_how_many_texts_are_cut_is_said(models, capsys):
    from bioptimus_jax import predict

    texts = ['severe ' * 50, 'no patient', 'aspirin ' * 60]
    assert main(['predict', str(models['one']), *(f'--text={text}' for text in texts)]) == 0
    assert 'the end of 2 texts is not read: longer than 40 pieces\n' in capsys.readouterr().err
    assert (
        main(['predict', str(models['one']), *(f'--text={text}' for text in texts), '--max_pieces=16']) == 0
    )
    longer = 'the end of 2 texts is not read: longer than 16 pieces; --max_pieces reads up to 40\n'
    assert longer in capsys.readouterr().err
    with pytest.warns(UserWarning, match='the end of 2 texts is not read'):
        predict(models['one'], texts)


def test_words_for_masks_are_those_of_the_pipeline(models, capsys):
    from transformers import pipeline

    text = 'aspirin [MASK] severe [MASK] .'
    [found] = answered(capsys, models['masked'], f'--text={text}', '--best=3')
    theirs = pipeline('fill-mask', str(models['masked']))(text, top_k=3)
    assert [[text[m['start'] : m['end']] for m in found['masks']]] == [['[MASK]', '[MASK]']]
    for mask, best in zip(found['masks'], theirs, strict=True):
        assert [word for word, _ in mask['words']] == [one['token_str'] for one in best]
        assert [sure for _, sure in mask['words']] == pytest.approx([one['score'] for one in best], abs=1e-5)


def test_special_tokens_that_a_text_quotes_are_text(models, capsys, tmp_path):
    """They are read as other brackets, which these models do not know; a mask is asked for in a masked model alone."""
    texts = ['no [PAD] [MASK] severe [SEP] .\n', 'no {pad} [MASK] severe {sep} .\n']
    for number, text in enumerate(texts):
        (tmp_path / f'{number}.txt').write_text(text)
    assert main(['predict', str(models['masked']), str(tmp_path), '--as=json']) == 0
    said = capsys.readouterr()
    one, two = (json.loads(line)['masks'][0]['words'] for line in said.out.splitlines())
    assert one == two
    assert said.err.count('2 special tokens written in texts, read as text') == 1
    for name, key in (('one', 'probabilities'), ('number', 'answers'), ('tagger', 'probabilities')):
        quoted, other = (
            bx.predict(models[name], [text])[0]
            for text in (texts[0], texts[1].replace('[', '{').replace(']', '}'))
        )
        assert quoted[key] == other[key]


def test_an_object_answers_as_the_folder_that_it_was_loaded_from(models, tmp_path, capsys, monkeypatch):
    """Read as the folder says: by white space, so that a bracket is no word of its own."""
    from transformers import AutoModelForTokenClassification, AutoTokenizer

    folder = shutil.copytree(models['tagger'], tmp_path / 'tagger')
    Reads(cut='lines').write(folder)
    objects = AutoModelForTokenClassification.from_pretrained(folder), AutoTokenizer.from_pretrained(folder)
    rows = [{'text': TEXT}, {'text': f'({TEXT})'}]
    monkeypatch.setattr(bars, 'PATIENCE', 0.0)
    found = bx.predict(objects[0], rows, tokenizer=objects[1], progress=True)
    assert 'predict: 100%' in capsys.readouterr().err
    assert found == bx.predict(folder, [row['text'] for row in rows])
    assert found != bx.predict(models['tagger'], [row['text'] for row in rows])


def test_brat_is_read_back_and_other_forms_say_the_same(models, capsys, tmp_path):
    folder = tmp_path / 'notes'
    folder.mkdir()
    (folder / 'a b.txt').write_text(TEXT)
    (folder / 'c.jsonl').write_text(json.dumps({'id': '../c', 'text': TEXT.upper()}) + '\n')
    (folder / 'left.out').write_text('?')
    assert (
        main(['predict', str(models['tagger']), str(folder), '--as=brat', f'--to={tmp_path / "tagged"}']) == 0
    )
    assert '2 answered by ' in capsys.readouterr().err
    assert sorted(p.name for p in (tmp_path / 'tagged').iterdir()) == [
        '.._c.ann',
        '.._c.txt',
        'a b.ann',
        'a b.txt',
    ]
    found = answered(capsys, models['tagger'], folder)
    assert read_brat(tmp_path / 'tagged').mentions == sum(len(one['entities']) for one in found)
    assert (
        main(['predict', str(models['tagger']), str(folder), '--as=tsv', f'--to={tmp_path / "t.tsv"}']) == 0
    )
    rows = [line.split('\t') for line in (tmp_path / 't.tsv').read_text().splitlines()][1:]
    assert [[int(row[1]), int(row[2]), row[3]] for row in rows] == [
        x for one in found for x in one['entities']
    ]
    assert [row[5] for row in rows] == [one['text'][a:b] for one in found for a, b, _ in one['entities']]


def test_each_form_shows_what_was_found(capsys, tmp_path, monkeypatch):
    given = Given('a<b', ('x\x1b<i> 10 mg\nof it',), '')
    entity = AnswerSpan(2, 5, 'Drug', 0.875)
    for answer, text, tsv, page in (
        (
            Answer(given, (entity,)),
            r'x\x1b[<i> (Drug)]',
            'a<b\t2\t5\tDrug\t0.8750\t<i>',
            '&lt;i&gt; <small>Drug',
        ),
        (
            Answer(given, said=('yes',), labels=(('yes', 0.75), ('no', 0.25))),
            '  yes 0.75',
            '\tyes\t0.7500\t',
            'no 0.25',
        ),
        (
            Answer(given, said=(), labels=(('a', 0.25),)),
            '  none\n',
            '\na<b\t0\t17\t\t\tx',
            'a 0.25',
        ),
        (Answer(given, said=(2.5,)), '  2.5\n', '\t2.5\t\tx', '<p class="said">2.5'),
        (
            Answer(given, (AnswerSpan(2, 5, 'of', 0.5, (('of', 0.5), ('in', 0.25))),)),
            '[<i> (of 0.50 in 0.25)]',
            'in\t0.2500\t<i>',
            'title="of 0.50, in 0.25"',
        ),
    ):
        shown = {}
        for form in FORMS:
            write([answer], form, tmp_path / form)
            shown[form] = (tmp_path / form).read_text()
            write([answer], form, tmp_path / f'{form}.gz')  # what a name says that is compressed is
            assert gzip.decompress((tmp_path / f'{form}.gz').read_bytes()).decode() == shown[form]
            write([answer], form, None)
            assert capsys.readouterr().out == shown[form]
        assert text in shown['text']
        assert tsv in shown['tsv']
        assert page in shown['html']
        assert '\x1b' not in shown['text'] + shown['json']
        assert '<i>' not in shown['html']
        assert len(shown['json'].splitlines()) == 1
    terminal = io.StringIO()
    terminal.isatty = lambda: True
    monkeypatch.delenv('NO_COLOR', raising=False)
    monkeypatch.setattr('sys.stdout', terminal)
    write([Answer(given, (entity,))], 'text', None)
    assert 'x\\x1b\x1b[36;1m<i> (Drug)\x1b[0m 10 mg' in terminal.getvalue()
    terminal.truncate(0)
    write([Answer(given, said=('yes',), labels=(('yes', 1.0),))], 'tsv', None)
    assert 'x\\x1b<i> 10 mg' in terminal.getvalue()
    assert '\x1b' not in terminal.getvalue()


def test_texts_have_names_of_their_own(tmp_path, monkeypatch):
    (tmp_path / 'a.txt').write_text('one\n\ntwo\tthree\r\n')
    monkeypatch.setattr('sys.stdin', io.TextIOWrapper(io.BytesIO('ü'.encode())))
    given = read_given(['-', str(tmp_path / 'a.txt'), str(tmp_path)], ['four', 'five\tsix'], True)
    assert [(one.name, one.texts) for one in given] == [
        ('text-1', ('four',)),
        ('text-2', ('five', 'six')),
        ('stdin-1', ('ü',)),
        ('a-1', ('one',)),
        ('a-3', ('two', 'three')),
        ('a-1-2', ('one',)),
        ('a-3-2', ('two', 'three')),
    ]
    assert [one.texts for one in read_given([str(tmp_path / 'a.txt')], [], False)] == [
        ('one\n\ntwo\tthree\r\n',)
    ]


NAMES = ('note (1)', '病历\u3000一', 'note', 'Ärztin, 2. Brief', '.hidden', 'a' * 40)


def test_names_of_documents_and_their_order_are_kept(models, tmp_path, capsys):
    """Each form keeps them; and predict's own answers are scored against themselves, in whatever form."""
    for name in NAMES:
        (tmp_path / 'notes' / f'{name}.txt').parent.mkdir(exist_ok=True)
        (tmp_path / 'notes' / f'{name}.txt').write_text(f'{TEXT} {len(name)}')
    order = [file.stem for file in sorted((tmp_path / 'notes').iterdir())]
    assert sorted(order) == sorted(NAMES)
    found = answered(capsys, models['tagger'], tmp_path / 'notes')
    assert [one['id'] for one in found] == order
    assert main(['predict', str(models['tagger']), str(tmp_path / 'notes'), '--as=tsv']) == 0
    rows = [line.split('\t')[0] for line in capsys.readouterr().out.splitlines()[1:]]
    assert list(dict.fromkeys(rows)) == order
    to = tmp_path / 'tagged'
    assert main(['predict', str(models['tagger']), str(tmp_path / 'notes'), '--as=brat', f'--to={to}']) == 0
    assert {file.name for file in to.iterdir()} == {
        f'{name}.{end}' for name in NAMES for end in ('txt', 'ann')
    }
    (tmp_path / 'p.jsonl').write_text('\n'.join(map(json.dumps, found)))
    for other in (to, tmp_path / 'p.jsonl'):
        capsys.readouterr()
        assert main(['score', str(to), str(other)]) == 0
        assert 'entity F1, default: 100.00' in capsys.readouterr().out


def test_texts_of_one_name_are_told_apart_in_words(models, tmp_path, capsys):
    ids = ['a/b', 'a_b', 'a/b', '..', 'PMID:1', '\ud800', '']
    (tmp_path / 'x.jsonl').write_text('\n'.join(json.dumps({'id': x, 'text': TEXT}) for x in ids))
    given = read_given([str(tmp_path / 'x.jsonl')], [], False)
    assert [one.name for one in given] == ['a/b', 'a_b', 'a/b-2', '..', 'PMID:1', '?', 'x-7']
    assert main(['predict', str(models['tagger']), str(tmp_path / 'x.jsonl'), '--as=json']) == 0
    assert 'x.jsonl:3: is called a/b-2 here, as an earlier text is called a/b' in capsys.readouterr().err
    # As files two of them would be one.
    to = tmp_path / 'to'
    arguments = ['predict', str(models['tagger']), str(tmp_path / 'x.jsonl'), '--as=brat', f'--to={to}']
    assert main(arguments) == 3
    assert "x.jsonl:2: 'a_b' and 'a/b' (" in (said := capsys.readouterr().err)
    assert 'would both be written as a_b.txt' in said
    assert not to.exists()
    assert [file_name(x) for x in ('../../x', '..', 'a\nb', '', 'ä' * 300)] == [
        '.._.._x',
        '..',
        'a_b',
        'text',
        'ä' * 100,
    ]


PUBTATOR = '12|t|Gout and aspirin.\n12|a|Rats.\n12\t0\t4\tGout\tDisease\n\n13|t|None.\n13|a|\n'


@pytest.mark.parametrize('name', ['x.pubtator', 'x.PubTator.txt', 'x.txt', '-'])
def test_pubtator_is_read_without_its_annotations(tmp_path, monkeypatch, name):
    (tmp_path / name).write_text(PUBTATOR)
    monkeypatch.setattr('sys.stdin', io.TextIOWrapper(io.BytesIO(PUBTATOR.encode())))
    monkeypatch.chdir(tmp_path)
    for by_line in (False, True):
        given = read_given([name], [], by_line)
        assert [(one.name, one.texts) for one in given] == [
            ('12', ('Gout and aspirin.\nRats.',)),
            ('13', ('None.\n',)),
        ]
        monkeypatch.setattr('sys.stdin', io.TextIOWrapper(io.BytesIO(PUBTATOR.encode())))
    assert given[0].texts[0] == standoff.pubtator_documents(tmp_path / name, Counter())[0].text


CONLL = 'Gout\tB-Disease\nand\tO\n\naspirin\tB-Drug\n'


@pytest.mark.parametrize(
    ('name', 'content', 'message'),
    [
        ('x.txt', 'PMID- 1\nTI  - Gout.\n', 'x.txt: is in the MEDLINE format of PubMed'),
        ('x.txt', '<doc id="1">Gout</doc>', 'x.txt: is XML or HTML'),
        ('x.tsv', 'Gout\tyes\n', 'x.tsv: is a table, and which of its columns is the text is not known'),
        ('x.csv', 'a,b\nc,d\n', 'x.csv:1: names the columns a, b; its first line has to name the texts'),
        ('x.csv', 'text,label\na,b,c\n', 'x.csv:2: has 3 columns, but the first line names 2; quote'),
        ('x.ann', 'T1\tDrug 0 4\tGout\n', 'x.ann: holds annotations of BRAT; give the .txt beside it'),
        ('x.txt', 'T1\tDrug 0 4\tGout\nT2\tDrug 5 8;9 12\tand rat\n', 'x.txt: holds annotations of BRAT'),
        (
            'x.xml',
            '<?xml version="1.0"?><a>Gout</a>',
            'x.xml: is XML, but not BioC (it begins with <a>); save',
        ),
        ('x.nxml', '<article><p>Gout</p></article>', 'x.nxml: is XML or HTML'),
        ('x.html', ' <!DOCTYPE html>\n<p>Gout', 'x.html: is XML or HTML'),
        ('x.txt.gz', b'\x1f\x8b\x08\x00', 'x.txt.gz: is cut off or damaged gzip'),
        ('x.txt.bz2', b'BZh9', 'x.txt.bz2: is compressed; unpack it, or use gzip; read are text, CoNLL'),
        ('x.docx', b'PK\x03\x04\x14', 'x.docx: is an archive, as .zip, .docx and .xlsx are; save'),
        ('x.pdf', b'%PDF-1.4\n', 'x.pdf: is a PDF; save its text'),
        ('x.txt', b'a\x00b\x00', 'x.txt: is no text, but binary or UTF-16'),
        ('x.pubtator', '12|t|Gout\n13\t0\t4\tGout\tD\n', 'x.pubtator:2: belongs to no document of PubTator'),
        ('x.txt', 'a\tb\tyes\n', 'x.txt:1: has 3 columns; one text is expected, or two with a tab between'),
        ('x.txt', 'Gout hurts.\tyes\nRats.\tno\n', "x.txt:1: has the label 'yes' in place of a second text"),
    ],
)
def test_what_is_no_plain_text_is_refused_in_one_line(tmp_path, name, content, message):
    (tmp_path / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(InputError) as error:
        read_given([str(tmp_path / name)], [], True, ['yes', 'no'])
    assert str(error.value).removeprefix(f'{tmp_path}/').startswith(message)
    assert '\n' not in str(error.value)


@pytest.mark.parametrize(
    ('name', 'content', 'texts'),
    [
        ('x.tsv', CONLL, ['Gout and\naspirin']),
        ('x.txt', CONLL, ['Gout and\naspirin']),
        ('x.conll', f'-DOCSTART- -X- O O\n\n{CONLL}'.replace('\t', ' NN B-NP '), ['Gout and\naspirin']),
        ('x.txt', '# doc 1\n' + 'Gout\tB\nand\tO\n' * 6, ['Gout and ' * 5 + 'Gout and']),
        ('x.csv', 'text,label\n"a, b",c\n', ['a, b']),
        ('x.txt', '{"text": "Gout"}\n{"text": "Rats"}\n', ['Gout', 'Rats']),
        ('x.jsonl', '{"tokens": ["Gout", "."], "ner_tags": ["B-D", "O"]}', ['Gout .']),
        ('x.jsonl', '{"words": ["Gout", "and", "rats"], "predicted": ["B-D", "O", "O"]}', ['Gout and rats']),
    ],
)
def test_what_sets_are_read_in_is_answered_too_without_its_answers(tmp_path, name, content, texts):
    for packed in (False, True):
        file = tmp_path / (f'{name}.gz' if packed else name)
        file.write_bytes(gzip.compress(content.encode()) if packed else content.encode())
        assert [one.texts for one in read_given([str(file)], [], False)] == [(text,) for text in texts]


def test_folders_within_are_read_and_what_holds_nothing_is_left_out_in_words(tmp_path, capsys):
    for name, content in {
        'a.txt': 'Gout.',
        'empty.txt': '',
        'b/c.txt.gz': 'Rats.',
        'b/d/e.csv': 'text,label\n"x, y",\n ,\n',
        '.git/f.txt': 'no',
        'figure.png': '?',
        'a.ann': '',
        'labels.txt': 'no',
    }.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        plain = content.encode()
        (tmp_path / name).write_bytes(gzip.compress(plain) if name.endswith('.gz') else plain)
    given = read_given([str(tmp_path)], [], False)
    assert [(one.name, *one.texts) for one in given] == [
        ('a', 'Gout.'),
        ('b/c', 'Rats.'),
        ('b/d/e-1', 'x, y'),
    ]
    said = capsys.readouterr().err
    assert f'{tmp_path}: 1 file left out, as they are no texts: figure.png' in said
    assert f'left out, as nothing is in them: 1 text, the first is {tmp_path / "empty.txt"}' in said


@pytest.mark.parametrize(
    'content',
    [
        'vitamin B\nvitamin E\n',
        'blood type O\nblood type B\n',
        '[MASK] is a drug.\n',
        'Rats had L-arginine.\n',
        '<50 % of patients died.\n',
        'T1\tweighted images\nT2\tweighted images\n',
        'We saw B-lymphoma cells here.\nAnd nothing else at all.\n',
    ],
)
def test_prose_that_looks_like_something_else_is_read(tmp_path, content):
    (tmp_path / 'x.txt').write_text(content)
    assert [one.texts for one in read_given([str(tmp_path / 'x.txt')], [], False)] == [(content,)]


def test_lines_are_sentences_and_words_end_at_white_space():
    text = 'b.i.d. dose\n\n  10mg q.d.'
    assert [[text[a:b] for a, b in words] for words in lines(text)] == [
        ['b.i.d.', 'dose'],
        ['10mg', 'q.d.'],
    ]


@pytest.mark.parametrize('rule', CUTS)
@pytest.mark.parametrize(
    'text', ['a\0b c. D e.\nf \0 g', '\0', '\0\0abc\0', 'Hx: y\nab\0cd ef\n\n\0\nNext line.']
)
def test_a_nul_is_a_blank_by_every_rule(rule, text):
    assert CUTS[rule](text) == CUTS[rule](text.replace('\0', ' '))


@pytest.mark.parametrize('flags', [[], ['--lines']])
@pytest.mark.parametrize('kind', ['tagger', 'masked', 'one'])
def test_a_file_with_a_nul_is_answered_with_all_others(kind, flags, models, tmp_path, capsys):
    for name, text in (('one', 'Aspirin causes [MASK].'), ('two', 'The \0 dose\0of aspirin [MASK].\0\n')):
        (tmp_path / f'{name}.txt').write_text(text)
    found = answered(capsys, models[kind], tmp_path, *flags)
    assert [one['id'].partition('-')[0] for one in found] == ['one', 'two']


@pytest.mark.parametrize(
    ('labels', 'name'),
    [
        (('I-b', 'B-b', 'O', 'B-a', 'I-a'), 'IOB2'),
        (('O', 'I-b', 'I-a'), 'IO'),
        (('O', 'L-a', 'U-a', 'I-a', 'B-a'), 'BILOU'),
        (('E-a', 'S-a', 'O', 'I-a', 'B-a'), 'IOBES'),
    ],
)
def test_the_scheme_of_a_tagger_is_seen_in_its_labels(labels, name):
    config = type('Config', (), {'id2label': dict(enumerate(labels))})
    assert scheme_of(LoadedModel('f', None, type('Model', (), {'config': config}), 0)).name == name


def test_a_run_means_the_model_that_it_kept(tmp_path):
    kept = tmp_path / 'finetune' / 'm' / 's' / 'standard' / 'seed-1' / 'model'
    for folder in (tmp_path / 'export' / '0.1', tmp_path / 'export' / '0.2'):
        folder.mkdir(parents=True)
        (folder / 'config.json').write_text('{}')
    (tmp_path / 'empty').mkdir()
    for folder, message in (
        (tmp_path, r'has 2 models; give one of .*0\.1, .*0\.2$'),
        (tmp_path / 'empty', r'empty: has no model .*keep=best'),
    ):
        with pytest.raises(InputError, match=message):
            model_in(folder)
    kept.mkdir(parents=True)
    (kept / 'config.json').write_text('{}')
    assert model_in(tmp_path) == kept
    # Of an earlier configuration of the stage, alone or together with another seed, it is not meant any more.
    together = kept.parents[1] / 'ensemble'
    record = KeptEnsemble(model='m', dataset='s', setting='standard', members=('seed-1', 'seed-2'))
    together.mkdir()
    write_json(together / 'ensemble.json', record.json())
    assert model_in(tmp_path) == together
    stage = tmp_path / 'finetune'
    write_json(stage / 'manifest.json', {'stage': 'finetune'})
    now = stage / 'other' / 's' / 'standard' / 'seed-1' / 'model'
    now.mkdir(parents=True)
    (now / 'config.json').write_text('{}')
    for models, found in (((('m', 1), ('m', 2)), together), ((('m', 1),), kept), ((('other', 1),), now)):
        write_jsonl(
            stage / 'results.jsonl', [cell(m, 's', 'standard', seed, 0.5).json() for m, seed in models]
        )
        assert model_in(tmp_path) == found


@pytest.mark.parametrize(
    ('kind', 'arguments', 'code', 'message'),
    [
        ('tagger', [], 3, 'nothing to read; give files'),
        (
            'tagger',
            ['nowhere.txt'],
            3,
            'nowhere.txt: no such file or folder; a text itself is given with --text',
        ),
        ('tagger', ['empty.txt'], 3, 'empty.txt: holds no text'),
        ('tagger', ['nothing'], 3, 'nothing: holds no file that is read (text, CoNLL, PubTator, BRAT, BioC'),
        ('tagger', ['two.jsonl'], 3, 'two.jsonl:2: has two texts, but entities are looked for in one'),
        ('tagger', ['three.jsonl'], 3, 'three.jsonl:1: has no "text", and no "words" of one text or two'),
        ('tagger', ['--text=a', '--as=brat'], 2, '--as=brat needs --to'),
        ('one', ['--text=a', '--as=brat', '--to=x'], 2, 'holds entities alone'),
        ('one', ['--text=a', '--max_pieces=41'], 2, '--max_pieces: 41, but '),
        (
            'one',
            ['--text=a', '--max_pieces=2'],
            2,
            '--max_pieces: 2 is too short for a window; give 16 or more',
        ),
        ('masked', ['--text=a'], 3, '--text 1: has no [MASK] to be filled in'),
        (
            'masked',
            [f'--text=[MASK]{" a" * 50}'],
            3,
            '--text 1: has 53 pieces, but a text may have 40; shorten it',
        ),
        ('labels', ['--text=a'], 3, "config.json: 'LABEL_0' is not a tag; id2label must hold"),
        ('mixed', ['--text=a'], 3, 'no scheme has the tags'),
        (
            'headless',
            ['--text=a'],
            3,
            'lacks classifier.bias, classifier.weight, so its answers would be random',
        ),
        ('encoder', ['--text=a'], 3, '"architectures" names BertModel; a model that answers is one of '),
    ],
)
def test_what_cannot_be_answered_is_one_line(
    models, tmp_path, monkeypatch, capsys, kind, arguments, code, message
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / 'nothing').mkdir()
    (tmp_path / 'empty.txt').write_text(' \n')
    (tmp_path / 'two.jsonl').write_text('{"text": "a"}\n{"words": ["a", "b"]}')
    (tmp_path / 'three.jsonl').write_text('{"words": ["a", "b", "c"]}')
    changed = {
        'labels': ('tagger', {'id2label': {str(i): f'LABEL_{i}' for i in range(5)}}),
        'mixed': ('tagger', {'id2label': {'0': 'O', '1': 'B-a', '2': 'I-a', '3': 'L-a', '4': 'S-a'}}),
        'headless': ('masked', {'architectures': ['BertForTokenClassification']}),
        'encoder': ('masked', {'architectures': ['BertModel']}),
    }
    folder = models.get(kind)
    if folder is None:
        of, values = changed[kind]
        folder = tmp_path / kind
        shutil.copytree(models[of], folder)
        values = read_json(folder / 'config.json') | {'label2id': {}} | values
        write_json(folder / 'config.json', values)
    assert main(['predict', str(folder), *arguments]) == code
    printed = capsys.readouterr()
    assert message in printed.err
    assert len(printed.err.splitlines()) == 1
    assert not list(tmp_path.glob('x*'))


def test_every_kind_has_its_file():
    assert {kind.file for kind in KINDS.values()} == set(ANSWERS)
    assert all(callable(kind.answers) for kind in KINDS.values())
