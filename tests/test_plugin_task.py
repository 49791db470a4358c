"""A task is one file: one from a temporary folder goes through the whole stage, and nothing else has to know it."""

import ast
import dataclasses
import json
import random
import re
import shutil
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from toy_plugins import plugged, shown
from transformers import AutoModelForSequenceClassification, AutoTokenizer

from bioptimus_jax.errors import ConfigError, InputError
from bioptimus_jax.experiment import config
from bioptimus_jax.experiment.schema import Experiment
from bioptimus_jax.experiment.stages import STAGES
from bioptimus_jax.finetuning.build import build
from bioptimus_jax.finetuning.config import TASKS
from bioptimus_jax.finetuning.units import Units, unpacked
from bioptimus_jax.finetuning.verdict import compare_models
from bioptimus_jax.records.finetune import KeptUnits
from bioptimus_jax.run.execute import execute
from bioptimus_jax.run.folder import Run
from bioptimus_jax.scoring.metrics import Metric
from bioptimus_jax.scoring.resampling import bootstrap, paired
from bioptimus_jax.storage.files import read_json, read_jsonl

ROOT = Path(__file__).resolve().parents[1]
NAMES = {'drug': ('zolmipan', 'tercivir', 'amlozine'), 'gene': ('brca', 'egfr')}
OTHER = ('the', 'patient', 'got', 'with', 'dose', 'of')


@pytest.fixture
def topics(tmp_path):
    """The how-to's task as a file of another name, in a folder of a user's own."""
    file = tmp_path / 'topics_of_texts.py'
    file.write_text(shown('add-task.md', 'mine/topics.py'))
    with plugged(file):
        yield TASKS.load('topics_of_texts')


@pytest.fixture(scope='module')
def models(tmp_path_factory):
    """Two Hugging Face folders with random BERTs."""
    import torch
    from transformers import BertConfig, BertForMaskedLM

    from bioptimus_jax.tokenizer.kinds.wordpiece import make

    names = [name for of_label in NAMES.values() for name in of_label]
    letters = 'abcdefghijklmnopqrstuvwxyz'
    vocabulary = ['[PAD]', '[UNK]', '[CLS]', '[SEP]', '[MASK]', *OTHER, *names, *letters]
    folders = [tmp_path_factory.mktemp(f'bert{seed}') for seed in range(2)]
    for seed, folder in enumerate(folders):
        torch.manual_seed(seed)
        sizes = {'hidden_size': 32, 'intermediate_size': 64, 'max_position_embeddings': 64}
        shape = BertConfig(vocab_size=len(vocabulary), num_hidden_layers=1, num_attention_heads=2, **sizes)
        BertForMaskedLM(shape).save_pretrained(folder)
        make(vocabulary, True).save(folder, 64)
    return folders


@pytest.fixture(scope='module')
def sets(tmp_path_factory):
    """`topic`, texts with labels, and `ncbi-disease`, entities, as its record says, whatever the config."""
    root, generator = tmp_path_factory.mktemp('sets'), random.Random(0)
    for split, count in {'train': 80, 'devel': 20, 'test': 30}.items():
        texts, entities = [], []
        for _ in range(count):
            label = generator.choice(list(NAMES))
            words = generator.choices(OTHER, k=generator.randint(2, 6))
            words.insert(generator.randrange(len(words)), generator.choice(NAMES[label]))
            told = label if generator.random() < 0.85 else generator.choice(list(NAMES))  # some are wrong
            texts.append(f'{" ".join(words)}\t{told}')
            entities += [f'{w}\t{"O" if w in OTHER else "B-Name"}' for w in words] + ['']
        for name, lines in (('topic', texts), ('ncbi-disease', entities)):
            (root / name).mkdir(exist_ok=True)
            (root / name / f'{split}.tsv').write_text('\n'.join(lines) + '\n')
    return root


def experiment(sets, models, **changes):
    e = Experiment.from_config(config.defaults())
    settings = dataclasses.replace(
        e.finetune,
        folder=str(sets),
        models=tuple(f'{name}={folder}' for name, folder in zip('ab', models, strict=False)),
        seeds=(0, 1),
        epochs=6,
        learning_rate=5e-3,
        batch_sentences=8,
        max_pieces=32,
        overlap_pieces=4,
        **changes,
    )
    runtime = dataclasses.replace(e.runtime, workers=1)
    return dataclasses.replace(e, stages=('finetune', 'report'), finetune=settings, runtime=runtime)


def test_a_task_in_one_file_goes_through_the_whole_stage(topics, models, sets, tmp_path, capsys):
    e = experiment(sets, models, task='topics_of_texts', keep='best')
    run = Run(tmp_path / 'run', e)
    first = execute(run, STAGES['finetune'])
    folder = run.workdir / 'finetune'
    assert (first.counts['cells'], first.counts['kept']) == (8, 0)
    assert first.counts['gold_in_file'] == first.counts['gold_scored'] == 4 * 30  # of the entities
    out = capsys.readouterr().out
    assert re.search(r'a/topic/standard/seed-0 epoch 6/6: loss [\d.]+, devel accuracy [\d.]+\n', out)
    assert re.search(r'finetune: b/topic/standard/seed-1: test accuracy [\d.]+\n', out)
    assert re.search(r'^topic, accuracy +test +95 % interval +devel +seeds$', out, re.M)
    assert re.search(r'^finetune: use it for topic: bioptimus predict \S+/seed-\d/model --text=', out, re.M)

    # Scores: what the predictions say, counted here by hand, and as good as it can be learned.
    records = read_jsonl(folder / 'results.jsonl')
    assert [(r['dataset'], r.get('task')) for r in records[:4:2]] == [
        ('ncbi-disease', None),
        ('topic', 'topics_of_texts'),
    ]
    gold = [line.split('\t')[1] for line in (sets / 'topic' / 'test.tsv').read_text().splitlines()]
    by_cell = {}
    for record in (r for r in records if r['dataset'] == 'topic'):
        cell = folder / record['model'] / 'topic' / 'standard' / f'seed-{record["seed"]}'
        kept = read_jsonl(cell / 'predictions.jsonl')
        assert [text['gold'] for text in kept] == [[label] for label in gold]
        right = [text['predicted'] == text['gold'] for text in kept]
        by_cell[record['model'], record['seed']] = np.array(right)
        assert record['test'] == {'default': {'accuracy': np.mean(right)}}
        assert set(record['history'][0]) == {'epoch', 'loss', 'devel_accuracy'}
        assert 'test_by_type' not in record
    assert max(map(np.mean, by_cell.values())) > 0.7

    # Statistics: the bootstrap's interval is that of means over texts.
    made = {(r['model'], r['dataset']): r for r in read_json(folder / 'statistics.json')}
    of_b = made['b', 'topic']
    mean = np.mean([by_cell['b', seed] for seed in (0, 1)], 0)
    assert of_b['test']['default']['mean'] == pytest.approx(mean.mean())
    assert (of_b['unit'], made['b', 'ncbi-disease']['unit']) == ('texts', 'sentences')
    drawn = np.random.default_rng(1).choice(mean, (10_000, 30)).mean(1)
    np.testing.assert_allclose(of_b['interval'], np.quantile(drawn, (0.025, 0.975)), atol=0.02)

    # Compare: both sets, each by its own metric.
    lines = compare_models(str(folder / 'a'), str(folder / 'b'))
    shown = next(line for line in lines if line.startswith('topic: '))
    difference = np.mean([by_cell['b', s].mean() - by_cell['a', s].mean() for s in (0, 1)])
    assert f'{abs(100 * difference):.2f} accuracy' in shown
    assert any(line.startswith('ncbi-disease: ') and ' F1 ' in line for line in lines)
    assert lines[-1].startswith('F1: entities')
    assert 'accuracy: texts of the test sets' in lines[-1]

    # What is kept is of the class that the task says, and gives the same answers; each set has its own.
    kept = {model.parents[2].name: model for model in sorted(folder.glob('a/*/*/seed-*/model'))}
    assert read_json(kept['ncbi-disease'] / 'config.json')['architectures'] == ['BertForTokenClassification']
    chooser, tokenizer = (
        auto.from_pretrained(kept['topic']) for auto in (AutoModelForSequenceClassification, AutoTokenizer)
    )
    texts = read_jsonl(kept['topic'].parent / 'predictions.jsonl')
    given = tokenizer([' '.join(text['words']) for text in texts], padding=True, return_tensors='pt')
    found = chooser(**given).logits.argmax(-1).tolist()
    assert [[chooser.config.id2label[label]] for label in found] == [text['predicted'] for text in texts]

    # Resume: what is finished is kept, what is cut off is made again and gives the same.
    copy = shutil.copytree(run.workdir, tmp_path / 'copy') / 'finetune'
    (copy / 'a' / 'topic' / 'standard' / 'seed-0' / 'scores.json').unlink()
    again = build(Run(copy.parent, e, quiet=True), copy)
    assert (again.counts.kept, again.content) == (7, first.content)
    # The page shows both, and the score by its name.
    execute(run, STAGES['report'])
    page = (run.workdir / 'report' / 'index.html').read_text('utf-8')
    assert 'topic accuracy' in page
    tables = (run.workdir / 'report' / 'tables.md').read_text('utf-8')
    row = next(line for line in tables.splitlines() if 'topic accuracy' in line and '| a |' in line)
    of_a = [
        r['test']['default']['accuracy']
        for r in read_jsonl(folder / 'results.jsonl')
        if (r['dataset'], r['model']) == ('topic', 'a')
    ]
    assert f'{100 * np.mean(of_a):.2f}' in row

    # One more seed of one model on one set is all that is made of what is asked for then.
    fewer = dataclasses.replace(
        e.finetune, models=e.finetune.models[:1], datasets=('topic',), seeds=(0, 1, 2)
    )
    more = dataclasses.replace(e, finetune=fewer)
    counts = execute(Run(run.workdir, more, quiet=True), STAGES['finetune']).counts
    assert (counts['cells'], counts['kept']) == (3, 2)


def test_a_task_that_is_not_there_is_refused_in_one_line(topics):
    changed = config.defaults()
    changed.finetune.task = 'topics'
    with pytest.raises(
        ConfigError,
        match=r"'topics' is not one of .*similarity, topics_of_texts, word_classes; did you mean topics_of_texts",
    ):
        Experiment.from_config(changed)


def test_a_small_choice_of_texts_and_lines_that_do_not_fit(topics, models, sets, tmp_path):
    small = experiment(sets, models[:1], task='topics_of_texts', datasets=('topic',), train_sentences=16)
    run = Run(tmp_path / 'run', small, quiet=True)
    execute(run, STAGES['finetune'])
    record = read_json(run.workdir / 'finetune' / 'a' / 'topic' / 'standard' / 'seed-0' / 'scores.json')
    assert record['train_sentences'] == 16
    folder = tmp_path / 'broken' / 'topic'
    folder.mkdir(parents=True)
    for split in ('train', 'devel', 'test'):
        (folder / f'{split}.tsv').write_text('a text\tdrug\nno label\n')
    with pytest.raises(InputError, match=r'topic/train\.tsv:2: expected text TAB label'):
        execute(
            Run(tmp_path / 'other', experiment(folder.parent, models, task='topics_of_texts')),
            STAGES['finetune'],
        )


def correlation(sums_x6):
    """Pearson's r of sums of 1, x, y, xx, yy, xy."""
    n, x, y, xx, yy, xy = np.moveaxis(sums_x6, -1, 0)
    return (n * xy - x * y) / np.sqrt((n * xx - x * x) * (n * yy - y * y))


def test_a_correlation_is_bootstrapped_and_compared_by_the_same_code():
    """A correlation of six sums that add up, as similarity tasks want it, against numpy on the drawn pairs
    themselves."""

    def counts(gold, predicted):
        x, y = np.array(gold)[:, 0], np.array(predicted)[:, 0]
        return np.stack([np.ones_like(x), x, y, x * x, y * y, x * y], -1)

    metric = Metric('r', 'r', "Pearson's r", 'pairs', ('n', 'x', 'y', 'xx', 'yy', 'xy'), counts, correlation)
    generator = np.random.default_rng(0)
    x = generator.normal(size=40)
    close, far = ([[v] for v in x + generator.normal(0, s, 40)] for s in (0.3, 1.5))
    gold = [[v] for v in x]
    assert metric.scores(gold, close)['r'] == pytest.approx(np.corrcoef(x, np.ravel(close))[0, 1])
    a_1xUxC, b_1xUxC = (metric.counts(gold, each)[None] for each in (far, close))
    draws = bootstrap(metric, b_1xUxC, 2000)
    pairs = generator.integers(0, 40, (2000, 40))
    theirs = [np.corrcoef(x[at], np.ravel(close)[at])[0, 1] for at in pairs]
    np.testing.assert_allclose(
        np.quantile(draws, (0.1, 0.5, 0.9)), np.quantile(theirs, (0.1, 0.5, 0.9)), atol=0.01
    )
    [difference] = paired(metric, [a_1xUxC], [b_1xUxC], 2000)
    assert difference.observed == pytest.approx(
        correlation(b_1xUxC[0].sum(0)) - correlation(a_1xUxC[0].sum(0))
    )
    assert difference.p < 0.01
    # On record such sums are as they were, where counts of mentions take two bytes.
    task = SimpleNamespace(metric=metric)
    for counts_UxC in (b_1xUxC[0], np.arange(240).reshape(40, 6)):
        units = Units(Path('x'), 'pairs', 't', 'g', counts_UxC, task)
        written = json.loads(json.dumps(units.record().json()))
        again = unpacked(KeptUnits.read(written, 'x'), Path('x'), task)
        np.testing.assert_array_equal(again.counts_UxC, counts_UxC)
        assert again.counts_UxC.dtype == counts_UxC.dtype


ROOMS = ('bioptimus_jax/finetuning/tasks/', 'bioptimus_jax/finetuning/entities/', 'bioptimus_jax/sets/')


def compared(source, names):
    """Lines on which a string that is one of the names is compared, matched, or looked for."""
    found = []
    for node in ast.walk(ast.parse(source)):
        parts = [node.left, *node.comparators] if isinstance(node, ast.Compare) else []
        parts += [node.value] if isinstance(node, ast.MatchValue) else []
        strings = [c.value for part in parts for c in ast.walk(part) if isinstance(c, ast.Constant)]
        found += [node.lineno] if names & {s for s in strings if isinstance(s, str)} else []
    return found


def test_nobody_outside_its_room_compares_the_name_of_a_task():
    names = set(TASKS)
    every = {str(f.relative_to(ROOT)): f for f in sorted((ROOT / 'bioptimus_jax').rglob('*.py'))}
    files = {name: f for name, f in every.items() if not name.startswith(ROOMS)}
    wrong = {name: lines for name, f in files.items() if (lines := compared(f.read_text('utf-8'), names))}
    assert len(files) > 100
    assert not wrong


@pytest.mark.parametrize(
    'source',
    [
        "task == 'entities'",
        "'entities' != x",
        "x in ('a', 'entities')",
        "match x:\n    case 'entities':\n        pass",
    ],
)
def test_the_rule_sees_a_comparison(source):
    assert compared(source, {'entities'})
    assert not compared(source.replace('entities', 'others'), {'entities'})
