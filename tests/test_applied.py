"""A model's score on a set is that of `predict` on its bare texts, scored by `score`; the code on cards agrees."""

import contextlib
import io
import json
import random
import re

import pytest
import torch
from toy_sets import save_encoder, settings

import bioptimus_jax as bx
from bioptimus_jax.cli.main import main
from bioptimus_jax.finetuning.card import write_card
from bioptimus_jax.finetuning.kept import NAME, Reads, read_reads
from bioptimus_jax.finetuning.loading import load_head
from bioptimus_jax.finetuning.scoring import score
from bioptimus_jax.finetuning.stored import load_parts, save_model
from bioptimus_jax.finetuning.task import task_for
from bioptimus_jax.finetuning.training import predict
from bioptimus_jax.records.finetune import Details, FineTuning
from bioptimus_jax.sets.corpora import set_at
from bioptimus_jax.sets.cutting import CUTS, bare_text, count_cut_otherwise, cut_of_columns
from bioptimus_jax.sets.tags import spans
from bioptimus_jax.storage.files import read_json
from bioptimus_jax.vocab.agreement import load_for_words

WORDS = (
    'zolmipan',
    'IL-2',
    'p53mut',
    'antitumor',
    'the',
    'dose',
    'ERα',
    'of',
    'amlozine',
    'NLG-10',
    'x',
    '(',
    ')',
    ',',
)
HAN = '肝细胞癌是疾病的药物。'
KINDS = ('Drug', 'Gene')
READ_AT_ONCE = {'max_pieces': 24, 'overlap_pieces': 4}


def columns(folder, words, letters='BI'):
    """Documents of sentences, a word a line; `letters`: of a mention's first word and of the others."""
    draw = random.Random(1)
    folder.mkdir()
    for split, count in (('train', 60), ('devel', 5), ('test', 12)):
        lines = []
        for _ in range(count):
            lines += ['-DOCSTART-\tO', '']
            for _ in range(draw.randint(1, 3)):
                before = 'O'
                for word in (*draw.choices(words, k=draw.randint(1, 30)), '。' if words == HAN else '.'):
                    tag = draw.choice(['O', 'O', *(f'{letters[0]}-{k}' for k in KINDS)])
                    if before != 'O' and draw.random() < 0.5:
                        tag = f'{letters[1]}{before[1:]}'
                    lines.append(f'{word}\t{tag}')
                    before = tag
                lines.append('')
        (folder / f'{split}.tsv').write_text('\n'.join(lines) + '\n', 'utf-8')


def marked(draw, letters):
    """A text of several lines and mentions that begin and end anywhere, within words too."""
    sentences = [' '.join(draw.choices(letters, k=draw.randint(1, 25))) for _ in range(draw.randint(1, 4))]
    text = ''.join(f'{one}{draw.choice([". ", ".", chr(10)])}' for one in sentences).strip() + ' end'
    solid = [at for at, c in enumerate(text) if not c.isspace()]
    starts = draw.sample(solid, min(len(solid), draw.randint(0, 6)))
    ends = [min(len(text), at + draw.randint(1, 14)) for at in starts]
    return text, [
        (a, b, draw.choice(KINDS)) for a, b in zip(starts, ends, strict=True) if not text[b - 1].isspace()
    ]


def brat(folder, letters=WORDS):
    draw = random.Random(2)
    for split, count in (('train', 40), ('devel', 5), ('test', 15)):
        (folder / split).mkdir(parents=True)
        for number in range(count):
            text, mentions = marked(draw, letters)
            (folder / split / f'note ({number}).txt').write_text(text, 'utf-8')
            lines = (
                f'T{n}\t{kind} {a} {b}\t{" ".join(text[a:b].split())}\n'
                for n, (a, b, kind) in enumerate(mentions)
            )
            (folder / split / f'note ({number}).ann').write_text(''.join(lines), 'utf-8')


def pubtator(folder):
    draw = random.Random(3)
    folder.mkdir()
    for split, count in (('train', 40), ('devel', 5), ('test', 15)):
        lines = []
        for number in range(count):
            text, mentions = marked(draw, WORDS)
            title, _, abstract = (text := text.replace('\n', ' ').replace('. ', '.\n', 1)).partition('\n')
            lines += [f'{number}|t|{title}', f'{number}|a|{abstract}']
            lines += [
                f'{number}\t{a}\t{b}\t{text[a:b]}\t{kind}' for a, b, kind in mentions if '\n' not in text[a:b]
            ]
            lines.append('')
        (folder / f'{split}.pubtator').write_text('\n'.join(lines), 'utf-8')


LAYOUTS = {
    'columns': lambda folder: columns(folder, [w for w in WORDS if w.isalpha() or len(w) == 1]),
    'compounds': lambda folder: columns(folder, WORDS, 'IB'),
    'characters': lambda folder: columns(folder, HAN, 'BE'),
    'brat': brat,
    'han': lambda folder: brat(folder, HAN),
    'pubtator': pubtator,
}


@pytest.fixture(scope='module')
def encoders(tmp_path_factory):
    return {
        kind: save_encoder(tmp_path_factory.mktemp(kind), kind, layers=1, initializer_range=0.5)
        for kind in ('bert', 'roberta')
    }


def kept(folder, encoder, chosen, options):
    """A model that was not trained, and so answers at random, kept; the set, and the score of its answers on test."""
    task = task_for(chosen)
    dataset = task.read(chosen)
    tokenizer, head = load_head(task, encoder, task.labels(dataset, options), options, 3)
    for tensor in head.own_tensors.values():
        torch.nn.init.normal_(tensor, generator=torch.Generator().manual_seed(1))
    windows = task.windows(tokenizer, dataset.test, options).windows
    answers = predict(task, head, dataset.test, windows, options)
    save_model(task, tokenizer, head, task.reads(dataset, options), folder)
    return task, dataset, task.scores([task.answers(e) for e in dataset.test], answers), answers


def bare(file, dataset):
    """The texts of the test set without anything else: a line for each sentence, an object for each document."""
    documents = {}
    for sentence in dataset.test:
        documents.setdefault(sentence.document, []).append(bare_text(sentence.words))
    file.write_text(
        ''.join(json.dumps({'id': str(n), 'text': '\n'.join(x)}) + '\n' for n, x in documents.items())
    )
    return file


@pytest.mark.parametrize(
    ('layout', 'scheme', 'encoder', 'head'),
    [
        ('columns', 'bio', 'bert', 'linear'),
        ('columns', 'io', 'roberta', 'crf'),
        ('compounds', 'bioul', 'bert', 'linear'),
        ('compounds', 'bio', 'roberta', 'span'),
        ('characters', 'io', 'bert', 'linear'),
        ('brat', 'bio', 'bert', 'linear'),
        ('brat', 'bioul', 'roberta', 'bilstm_crf'),
        ('han', 'io', 'bert', 'linear'),
        ('pubtator', 'bio', 'bert', 'bilstm'),
        ('pubtator', 'io', 'roberta', 'linear'),
    ],
)
def test_the_score_on_a_set_is_that_of_predict_on_its_bare_texts(
    layout, scheme, encoder, head, encoders, tmp_path
):
    LAYOUTS[layout](tmp_path / 'set')
    chosen, model, out = set_at(tmp_path / 'set'), tmp_path / 'model', tmp_path / 'answers.jsonl'
    options = settings(scheme=scheme, head=head, **READ_AT_ONCE)
    _task, dataset, scores, _ = kept(model, encoders[encoder], chosen, options)
    assert read_json(model / NAME)['cut'] == {'brat': 'prose', 'han': 'prose', 'pubtator': 'prose'}.get(
        layout, layout
    )
    # Whatever head reads them: the words of the set are those that its text has by the rule.
    cut = Reads(cut=read_reads(model).cut).words
    if not dataset.test[0].marked:
        texts = [bare_text(sentence.words) for sentence in dataset.test]
        assert [[tuple(t[a:b] for a, b in words) for words in cut(t)] for t in texts] == [
            [sentence.words] for sentence in dataset.test
        ]
    given = tmp_path / 'set' / 'test'
    if layout in ('columns', 'compounds', 'characters'):
        given = bare(tmp_path / 'bare.jsonl', dataset)
    elif layout == 'pubtator':
        given = tmp_path / 'set' / 'test.pubtator'
    assert main(['predict', str(model), str(given), '--as=json', f'--to={out}']) == 0
    scored = score(tmp_path / 'set', out, 'entities', {})
    found = scored.measures()
    for mode in ('default', 'relaxed'):
        same = {name: found[mode][name] for name in scores[mode]}
        assert same == scores[mode], (mode, scored.notes)
    assert scores['default']['predicted'] > 20
    assert scores['relaxed']['f1'] > 0.02
    # Answers by characters have no orphan I- tags, which alone make strict another number.
    if scheme != 'bio':
        assert found['strict']['f1'] == scores['strict']['f1']
    if layout == 'brat':
        brat_out = tmp_path / 'tagged'
        assert main(['predict', str(model), str(given), '--as=brat', f'--to={brat_out}']) == 0
        assert score(tmp_path / 'set', brat_out, 'entities', {}).measures() == found


@pytest.mark.parametrize('words', [('zolmipan', 'i.e.', 'dose'), ('患者', '服用', '头痛')])
def test_words_that_the_text_does_not_give_back_have_a_second_score(words, encoders, tmp_path, capsys):
    """`i.e.` at the end of a line without a full stop of its own ends like running text; Chinese has no blanks between
    words."""
    columns(tmp_path / 'set', words)
    for file in (tmp_path / 'set').iterdir():
        file.write_text(re.sub(r'^\.\t.*\n', '', file.read_text(), flags=re.M))
    chosen, model, out = set_at(tmp_path / 'set'), tmp_path / 'model', tmp_path / 'answers.jsonl'
    options = settings(**READ_AT_ONCE)
    task, dataset, scores, _ = kept(model, encoders['bert'], chosen, options)
    head = load_parts(model, task.hf_class).head(task.head, options, 'float32').eval()
    second = task.applied(dataset, load_for_words(model), head, options)
    assert second != scores
    assert (
        main(['predict', str(model), str(bare(tmp_path / 'b.jsonl', dataset)), '--as=json', f'--to={out}'])
        == 0
    )
    assert ('put blanks between words' in capsys.readouterr().err) == (not words[0].isascii())
    found = score(tmp_path / 'set', out, 'entities', {}).measures()['default']
    assert {name: found[name] for name in second['default']} == second['default']
    [line] = task.remarks(Details(applied=second))
    assert line.endswith(f'and so has F1 {100 * found["f1"]:.2f}')


def test_classes_of_words_are_asked_of_whole_words(tmp_path):
    for split in ('train', 'devel', 'test'):
        brat_of = tmp_path / 'set' / split
        brat_of.mkdir(parents=True)
        (brat_of / 'd.txt').write_text('abcdefgh ij.No')
        (brat_of / 'd.ann').write_text('T1\tX 2 5\tcde\n')
    (tmp_path / 'p.jsonl').write_text(json.dumps({'text': 'abcdefgh ij.No', 'entities': [[1, 8, 'X']]}))
    found = score(tmp_path / 'set', tmp_path / 'p.jsonl', 'word_classes', {})
    assert [e.words for e in found.examples] == [('abcdefgh', 'ij', '.', 'No')]
    assert found.measures()['default']['f1'] == 1
    assert 'widened to whole words' in found.notes[0]
    assert not count_cut_otherwise(found.gold.examples, found.gold.dataset.cut)


def test_nothing_can_be_learned_from_where_mentions_lie(tmp_path, encoders):
    """Mentions at random places within random words: the words say nothing of them, and no tagger finds them."""
    draw, folder = random.Random(0), tmp_path / 'set'
    for split in ('train', 'devel', 'test'):
        (folder / split).mkdir(parents=True)
        for number in range(20):
            word = ''.join(draw.choices('abcdefghij', k=12))
            at = draw.randint(1, 8)
            (folder / split / f'{number}.txt').write_text(f'the {word} gene was low.')
            (folder / split / f'{number}.ann').write_text(f'T1\tX {4 + at} {7 + at}\t{word[at : at + 3]}\n')
    task = task_for(set_at(folder))
    dataset = task.read(set_at(folder))
    assert {s.words[0:1] + s.words[2:] for s in dataset.test} == {('the', 'gene', 'was', 'low', '.')}
    learned = [s.laid_out(s.tags) for s in dataset.test]
    assert task.scores([s.gold for s in dataset.test], learned)['default']['f1'] == 0
    assert dataset.repairs['test']
    assert 'within a word' in str(dataset.repairs['test'])


@pytest.mark.parametrize(
    ('sentences', 'rule'),
    [
        ([['DN-16', 'binds', '.']], 'compounds'),
        ([['non', '-', 'small', 'cell', '.'], ['IL-2']], 'columns'),
        ([list('肝细胞癌是疾病')], 'characters'),
        ([['肝细胞癌', '是', '疾病']], 'columns'),
        ([list('患者男,65岁,2019年CT示:CEA5.6ng/ml(+).')], 'characters'),
        ([['a', 'b', 'c']], 'columns'),
    ],
)
def test_the_rule_of_words_in_columns(sentences, rule):
    assert cut_of_columns(sentences) == rule


def test_the_bare_text_of_scripts_without_blanks_has_none():
    assert (
        bare_text(['患者', '服用', '5mg', '，', 'TNF', 'alpha', '后', '。']) == '患者服用5mg，TNF alpha后。'
    )
    assert bare_text(list('男,65岁CT')) == '男,65岁CT'
    assert bare_text(['the', '药', 'is', 'good']) == 'the 药 is good'


def test_words_of_columns_in_text_that_is_cut_and_in_running_text():
    def shown(rule, text):
        return [[text[a:b] for a, b in words] for words in Reads(cut=rule).words(text)]

    cut = 'we found that DN-16 and NLG-10 interact .'
    assert shown('compounds', cut) == shown('columns', cut) == [cut.split()]
    running = 'DN-16 (a drug) interacts with IL-2. It was seen.'
    assert shown('compounds', running) == [
        ['DN-16', '(', 'a', 'drug', ')', 'interacts', 'with', 'IL-2', '.'],
        ['It', 'was', 'seen', '.'],
    ]
    assert shown('columns', running)[0][:3] == ['DN', '-', '16']
    # One blank before a mark does not make a text cut, nor one abbreviation running; without marks the others tell.
    assert shown('columns', f'{running} So , too.\nNLG-10')[1:] == [
        'It was seen .'.split(),
        'So , too .'.split(),
        'NLG - 10'.split(),
    ]
    for rule in ('columns', 'compounds'):
        for cut in (
            'E. coli and E. coli ( non / small ) .',
            'A et al. , B et al. and C vs. Dr. X ( i.e. no sp. ) .',
            'non - small',
            '患者 服用 阿司匹林 5mg',
        ):
            assert shown(rule, cut) == [cut.split()], rule
        assert shown(rule, '患者服用IL2后，CT')[0] == ['患', '者', '服', '用', 'IL2', '后', '，', 'CT']
        assert shown(rule, '服用100mg药')[0] == ['服', '用', '100mg', '药']
        assert shown(rule, '服用药') == [['服', '用', '药']]
        assert len(shown(rule, 'ผู้ป่วยได้รับยา และมีอาการปวดหัว')[0]) > 20
    assert [shown(rule, 'TNF-positive cells')[0][0] for rule in ('columns', 'compounds')] == [
        'TNF',
        'TNF-positive',
    ]
    assert shown('characters', '肝癌\n 药') == [['肝', '癌'], ['药']]
    for rule in CUTS:
        assert shown(rule, 'a \0 b.')[0][0] == 'a', rule
    assert shown('prose', 'हिन्दी עִברִית') == [['हिन्दी', 'עִברִית']]


@pytest.mark.parametrize(
    ('content', 'said'),
    [
        ('{"cut": "magic"}', "'cut' is unknown"),
        ('{"max_pieces": "1"}', "'max_pieces' is unknown"),
        ('{"max_pieces": -1}', "'max_pieces' is unknown"),
        ('{"more": 1}', "'more' is unknown"),
        ('[', 'reading.json'),
        ('[]', 'reading.json'),
    ],
)
def test_a_damaged_record_of_how_a_model_reads_is_refused(content, said, tmp_path):
    from bioptimus_jax.errors import InputError

    (tmp_path / NAME).write_text(content)
    with pytest.raises(InputError) as error:
        read_reads(tmp_path)
    assert said in str(error.value)
    assert '\n' not in str(error.value)


TEXTS = {
    'one': ('topics', 1, ['yes', 'no', 'maybe']),
    'pair': ('pairs', 2, ['yes', 'no', 'maybe']),
    'number': ('alike', 2, None),
}


def save_texts(folder, texts, labels):
    draw = random.Random(4)
    folder.mkdir()
    for split, count in (('train', 30), ('devel', 5), ('test', 25)):
        lines = []
        for _ in range(count):
            given = [' '.join(draw.choices(WORDS[:11], k=draw.randint(2, 40))) for _ in range(texts)]
            lines.append('\t'.join([*given, draw.choice(labels) if labels else f'{draw.random():.3f}']))
        (folder / f'{split}.tsv').write_text('\n'.join(lines) + '\n', 'utf-8')


def run_card(folder, text=None):
    """What the Python block of a card prints, in the folder of its model."""
    code = re.search(r'```python\n(.*?)\n```', (folder / 'README.md').read_text('utf-8'), re.S)[1]
    printed = io.StringIO()
    with contextlib.chdir(folder), contextlib.redirect_stdout(printed):
        exec(code, {})
    return printed.getvalue().strip()


def a_record(task, dataset, name):
    scores = {key: {metric.name: 0.5} for key, metric in task.metrics.items()}
    shown = {'model': 'm', 'dataset': name, 'setting': 'standard', 'seed': 0, 'best_epoch': 1}
    return FineTuning(**shown, train_sentences=len(dataset.train), devel=scores, test=scores, **kind_of(task))


def kind_of(task):
    known = {'Classes': 'classes', 'Similarity': 'similarity'}
    return {'task': known[type(task).__name__]} if type(task).__name__ in known else {}


def answered(capsys, *command):
    capsys.readouterr()
    assert main(['predict', *map(str, command), '--as=json']) == 0
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


@pytest.mark.parametrize('kind', TEXTS)
@pytest.mark.filterwarnings('ignore:the end of')
def test_classifiers_read_as_in_training_and_the_card_says_their_answers(kind, encoders, tmp_path, capsys):
    name, texts, labels = TEXTS[kind]
    save_texts(tmp_path / name, texts, labels)
    chosen = set_at(tmp_path / name, 'classes' if labels else 'similarity')
    # A head of our own is read alike.
    own = {'head': 'mlp', 'features': 'first'} if kind == 'number' else {}
    options = settings(**READ_AT_ONCE, segment_ids='one', **own)
    model = tmp_path / 'model'
    task, dataset, _, answers = kept(model, encoders['bert'], chosen, options)
    items = [{'words': list(e.words)} if texts == 2 else {'text': e.words[0]} for e in dataset.test]
    (tmp_path / 'bare.jsonl').write_text(''.join(json.dumps(item) + '\n' for item in items))
    found = [one['answers'] for one in answered(capsys, model, tmp_path / 'bare.jsonl')]
    assert [one['answers'] for one in bx.predict(model, [e.words for e in dataset.test])] == found
    assert found == [pytest.approx(list(a), abs=1e-5) if labels is None else list(a) for a in answers]
    assert labels is None or len(set(map(tuple, answers))) > 1
    plain = settings(**READ_AT_ONCE | {'max_pieces': 64}, segment_ids='two' if kind == 'pair' else 'one')
    task, dataset, _, _ = kept(model, encoders['bert'], chosen, plain)
    write_card(model, encoders['bert'], task, dataset, plain, a_record(task, dataset, name))
    usage = task.usage(dataset, plain)
    text = re.search(r'model\(\[(\{.*?\}|\'.*?\')\], trunc', usage.code)[1]
    given = eval(text)
    one = {'words': [given['text'], given['text_pair']]} if texts == 2 else {'text': given}
    (tmp_path / 'one.jsonl').write_text(json.dumps(one))
    [expected] = answered(capsys, model, tmp_path / 'one.jsonl')
    if labels:
        assert run_card(model) == expected['answers'][0]
    else:
        assert float(run_card(model)) == pytest.approx(expected['answers'][0], abs=1e-5)


@pytest.mark.parametrize(
    ('layout', 'encoder', 'head'),
    [('brat', 'bert', 'linear'), ('compounds', 'roberta', 'crf'), ('columns', 'bert', 'linear')],
)
def test_the_card_of_a_tagger_says_the_tags_that_predict_finds(
    layout, encoder, head, encoders, tmp_path, capsys
):
    LAYOUTS[layout](tmp_path / 'set')
    chosen, model = set_at(tmp_path / 'set'), tmp_path / 'model'
    options = settings(max_pieces=96, overlap_pieces=4, head=head)
    task, dataset, *_ = kept(model, encoders[encoder], chosen, options)
    write_card(model, encoders[encoder], task, dataset, options, a_record(task, dataset, 'set'))
    assert 'two texts' not in (model / 'README.md').read_text('utf-8')
    text = task.usage(dataset, options).example
    [found] = answered(capsys, model, f'--text={text}')
    [from_python] = bx.predict(model, [text])
    assert from_python['entities'] == found['entities']
    if head != 'linear':
        assert eval(run_card(model)) == from_python
        return
    words, tags = zip(*eval(run_card(model)), strict=True)
    starts, at = [], 0
    for word in words:
        starts.append(text.index(word, at))
        at = starts[-1] + len(word)
    expected = [[starts[a], starts[b] + len(words[b]), kind] for kind, a, b in spans(tags)]
    assert found['entities'] == expected != []
