"""A package outside of the program, as a user has it: each of its files is an extension, and works through commands.

Its files are in tests/outside/mine; those that a how-to writes are taken from there.
"""

import contextlib
import csv
import io
import json
import random
import re
import shutil
import statistics
import zipfile
from pathlib import Path

import jax
import numpy as np
import pytest
from sklearn.metrics import f1_score, matthews_corrcoef
from toy_plugins import plugged, shown

from bioptimus_jax.cli.main import main
from bioptimus_jax.ext import Inputs, load_folder
from bioptimus_jax.model import tensors
from bioptimus_jax.model.families.bert import Bert
from bioptimus_jax.storage.files import read_json, read_jsonl
from bioptimus_jax.tokenizer.kinds.wordpiece import SPECIAL_TOKENS, make

OUTSIDE = Path(__file__).with_name('outside') / 'mine'
OF_PAGES = {'add-backend.md': 'blocked.py', 'extend.md': 'square.py', 'add-metric.md': 'mcc.py'}
SYLLABLES = ['ka', 'lo', 'mi', 'nu', 'pe', 'ra', 'so', 'ti', 've', 'wo']
NAMESPACE = 'http://schemas.openxmlformats.org/wordprocessingml/2006/main'
DOCUMENT = f'<w:document xmlns:w="{NAMESPACE}"><w:body>{{}}</w:body></w:document>'
CONFIG = """
from bioptimus_jax.ext import defaults


def get_config(argument=''):
    c = defaults()
    c.source.path = {source!r}
    c.corpus.update(inputs=({texts!r},), min_words=1, heldout_fraction=0.2, shards=1)
    c.corpus.near.threshold = 0.0
    c.vocab.update(kind='file', file={vocabulary!r})
    c.surgery.update(strategy='edit_distance', scale='literal')
    c.rows.update(row_pieces=32, max_document_pieces=32)
    c.pretrain.update(batch_rows=8, optimizer='adopt', learning_rate=1e-3, warmup_fraction=0.0)
    c.phases = ('0.2',)
    c.phase['0.2'].update(duration=8.0, duration_unit='steps', fall='square')
    c.evaluation.update(rows=8, per_phase=1, settings=())
    c.runtime.update(workers=2, devices=1, attention='blocked', trackers=('lines',), log_every_steps=1)
    c.model.attention_dropout = 0.0
    c.finetune.update(folder={sets!r}, task='quotes', models=('a=' + {source!r},), epochs=2, seeds=(0, 1))
    c.finetune.update(max_pieces=24, overlap_pieces=4, learning_rate=1e-2)
    c.stages = ('corpus', 'vocab', 'surgery', 'rows', 'pretrain', 'finetune', 'report')
    return c
"""


def make_source(folder, vocabulary):
    """A BERT of one layer with random weights."""
    shape = dict(hidden=16, layers=1, heads=2, intermediate=24, max_positions=32, initializer_range=0.3)
    architecture = Bert(vocab_size=len(vocabulary), dropout=0.0, attention_dropout=0.0, **shape)
    make(vocabulary, lowercase=True).save(folder / 'tokenizer', 32)
    parameters = architecture.initial_parameters(jax.random.key(3))
    tensors.write_folder(folder / 'source', architecture, parameters, folder / 'tokenizer')


def write_sets(folder, draw, words):
    """`reviews`, described by its set.json, and `questions`."""
    for name in ('reviews', 'questions'):
        (folder / name).mkdir(parents=True)
    said = dict(texts=['sentence'], answer='verdict', header=True, measures=['mcc', 'macro_f1'])
    (folder / 'reviews' / 'set.json').write_text(json.dumps(said))
    for split, count in {'train': 24, 'devel': 12, 'test': 12}.items():
        rows, asked = ['id\tsentence\tverdict'], []
        for number in range(count):
            text, label = draw.sample(words, 4), draw.choice(['bad', 'good', 'mixed'])
            rows.append(f'{number}\t{" ".join(text)} {label[0]}\t{label}')
            asked.append(f'{text[0]}\t{" ".join(draw.sample(words, 9) + text)}\t{text[-1]}')
        (folder / 'reviews' / f'{split}.tsv').write_text('\n'.join(rows) + '\n')
        (folder / 'questions' / f'{split}.tsv').write_text('\n'.join(asked) + '\n')


@pytest.fixture(scope='module')
def run(tmp_path_factory):
    """The folder of a run with all of them, and what it printed."""
    folder, draw = tmp_path_factory.mktemp('outside'), random.Random(2)
    mine = shutil.copytree(OUTSIDE, folder / 'mine', ignore=shutil.ignore_patterns('__pycache__'))
    for page, file in OF_PAGES.items():
        (mine / file).write_text(shown(page, f'mine/{file}'))
    letters = sorted({*''.join(SYLLABLES), 'b', 'g'})
    pieces = [*SPECIAL_TOKENS, *letters, *(f'##{t}' for t in (*letters, *SYLLABLES))]
    words = sorted({''.join(draw.choices(SYLLABLES, k=draw.randint(2, 3))) for _ in range(60)})
    make_source(folder, [*pieces, *words[:40]])
    (folder / 'vocab.txt').write_text('\n'.join([*pieces, *words[30:]]))
    (folder / 'texts').mkdir()
    for number in range(60):
        lines = [' '.join(draw.choices(words, k=9)) for _ in range(2)]
        inside = DOCUMENT.format(''.join(f'<w:p><w:r><w:t>{line}</w:t></w:r></w:p>' for line in lines))
        with zipfile.ZipFile(folder / 'texts' / f'{number}.docx', 'w') as packed:
            packed.writestr('word/document.xml', inside)
    write_sets(folder / 'sets', draw, words[30:])
    places = {'source': 'source', 'texts': 'texts/*.docx', 'vocabulary': 'vocab.txt', 'sets': 'sets'}
    config = CONFIG.format(**{name: str(folder / place) for name, place in places.items()})
    (folder / 'own.py').write_text(config)
    out = io.StringIO()
    with plugged(mine):
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(out):
            code = main(['run', f'--config={folder / "own.py"}', f'--workdir={folder / "run"}'])
        assert code == 0, out.getvalue()[-3000:]
        yield folder / 'run', out.getvalue()


def test_documents_of_a_word_processor_are_read_in_worker_processes(run):
    manifest = read_json(run[0] / 'corpus' / 'manifest.json')
    [name] = [name for name in manifest['inputs'] if name.startswith('plug-in:')]
    assert name == 'plug-in:format .docx'
    assert '60 documents' in run[1]


def test_new_rows_are_those_of_the_tokens_spelled_most_alike(run):
    from mine.edit_distance import Settings, distances, rows

    assert distances('kitten', ['sitting', 'kitten', '', 'mitten']).tolist() == [3, 0, 6, 1]

    class Surgery:
        own_settings = Settings(most=1)

    names = {'vocabulary': ['ab', 'ac', 'xyz'], 'tokens': ['a', 'qqq']}
    given = Inputs(np.eye(3), [[]] * 2, np.zeros(2), Surgery(), 0, **names)
    np.testing.assert_allclose(rows(given), [[0.5, 0.5, 0], [np.nan] * 3])
    report = read_json(run[0] / 'surgery' / 'report.json')
    assert report['strategy'] == 'edit_distance'
    _, before, _ = load_folder(run[0].parent / 'source')
    _, after, _ = load_folder(run[0] / 'surgery' / 'model')
    old, new = (each['embeddings']['word_embeddings']['embedding'] for each in (before, after))
    known = (run[0].parent / 'source' / 'vocab.txt').read_text().split()
    made = [r for r in read_jsonl(run[0] / 'surgery' / 'tokens.jsonl') if r['kind'] == 'synthesised']
    assert len(made) > 10
    for record in made:
        away_V = distances(record['token'], known)
        if away_V.min() <= 2:
            expected_D = old[: len(known)][away_V == away_V.min()].mean(0)
            np.testing.assert_allclose(new[record['id']], expected_D, atol=1e-6)
        else:
            assert record['fallback']


def test_learning_rate_optimiser_attention_and_tracker_are_what_pre_training_has(run):
    trained = [r for r in read_jsonl(run[0] / 'metrics.jsonl') if r.get('kind') == 'train']
    rates = np.array([r['learning_rate'] for r in trained])
    np.testing.assert_allclose(rates, 1e-3 * (1 - (np.arange(8) / 8) ** 2), rtol=1e-4)
    assert all(np.isfinite(r['loss']) for r in trained)
    assert re.search(r'pretrain: computes on .* attention blocked', run[1])
    with open(run[0] / 'numbers.csv', newline='') as file:
        lines = [row for row in csv.reader(file) if row[2].endswith('/loss') and 'train' in row[2]]
    assert [float(row[3]) for row in lines] == [r['loss'] for r in trained]
    inputs = read_json(run[0] / 'pretrain' / 'manifest.json')['inputs']
    assert {'plug-in:fall square', 'plug-in:optimizer adopt'} <= inputs.keys()


def test_a_set_of_other_columns_is_scored_by_another_measure(run):
    folder = run[0] / 'finetune'
    records = [r for r in read_jsonl(folder / 'results.jsonl') if r['dataset'] == 'reviews']
    assert [(r['seed'], r['task'], r['set']['labels']) for r in records] == [
        (seed, 'classes', ['bad', 'good', 'mixed']) for seed in (0, 1)
    ]
    rows = (run[0].parent / 'sets' / 'reviews' / 'test.tsv').read_text().splitlines()[1:]
    for record in records:
        cell = folder / 'a' / 'reviews' / 'standard' / f'seed-{record["seed"]}'
        texts = read_jsonl(cell / 'predictions.jsonl')
        gold, said = ([text[name][0] for text in texts] for name in ('gold', 'predicted'))
        assert gold == [row.split('\t')[2] for row in rows]
        assert [text['words'] for text in texts] == [[row.split('\t')[1]] for row in rows]
        assert record['test']['default']['mcc'] == pytest.approx(matthews_corrcoef(gold, said))
        macro = f1_score(gold, said, labels=sorted({*gold, *said}), average='macro')
        assert record['test']['macro_f1']['f1'] == pytest.approx(macro)
    inputs = read_json(folder / 'manifest.json')['inputs']
    assert {'set reviews:set.json', 'plug-in:measure mcc'} <= inputs.keys()


def test_a_task_of_spans_has_windows_scores_and_a_page(run):
    folder = run[0] / 'finetune'
    [record, _] = [r for r in read_jsonl(folder / 'results.jsonl') if r['dataset'] == 'questions']
    texts = read_jsonl(folder / 'a' / 'questions' / 'standard' / 'seed-0' / 'predictions.jsonl')
    exact = statistics.fmean(text['gold'] == text['predicted'] for text in texts)
    assert record['test']['exact'] == {'exact': pytest.approx(exact)}
    assert all(text['predicted'][0] in text['words'][1] for text in texts)
    page = (run[0] / 'report' / 'index.html').read_text('utf-8')
    assert 'F1 of words in answers' in page
    assert 'Matthews correlation' in page


def test_a_section_of_the_page_comes_behind_ours(run):
    page = (run[0] / 'report' / 'index.html').read_text('utf-8')
    assert page.index('What took longest') > page.index('Goodput')
    rows = (run[0] / 'report' / 'csv' / 'slowest.csv').read_text().splitlines()[1:]
    seconds = [float(row.split(',')[1]) for row in rows]
    assert len(seconds) >= 5
    assert seconds == sorted(seconds, reverse=True)
