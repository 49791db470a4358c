"""Alignment, windows, fine-tuning, the stage: on sets made here."""

import contextlib
import dataclasses
import itertools
import json
import math
import os
import random
import re
import shutil
import signal
import threading
import time
import types
from pathlib import Path

import pytest
import torch
import transformers
from toy_sets import DRUGS, OTHER, SPELLING, save_set, settings

from bioptimus_jax.cli.main import main
from bioptimus_jax.errors import ConfigError, InputError, Stopped
from bioptimus_jax.experiment import config
from bioptimus_jax.experiment.schema import Experiment
from bioptimus_jax.experiment.stages import STAGES
from bioptimus_jax.finetuning import begun, cells, loading, training
from bioptimus_jax.finetuning import build as stage
from bioptimus_jax.finetuning import cards as finetune_cards
from bioptimus_jax.finetuning.batches import PART_COST, by_length, drawn, parts
from bioptimus_jax.finetuning.cards import devices_of
from bioptimus_jax.finetuning.crossed import same_seeds
from bioptimus_jax.finetuning.entities.align import align, piece_labels, tags_of_words
from bioptimus_jax.finetuning.entities.files import read_predictions
from bioptimus_jax.finetuning.finished import read_model
from bioptimus_jax.finetuning.optimizer import slanted_triangle
from bioptimus_jax.finetuning.scoring import score
from bioptimus_jax.finetuning.tasks.entities import TASK as ENTITIES
from bioptimus_jax.finetuning.training import finetune, predict
from bioptimus_jax.finetuning.verdict import compare_models
from bioptimus_jax.hosts.config import Runtime
from bioptimus_jax.hosts.hardware import Hardware
from bioptimus_jax.model.folder import model_folders, name_of
from bioptimus_jax.progress.console import PROGRESS, Within
from bioptimus_jax.records.record import plain
from bioptimus_jax.report.measures import read_measures
from bioptimus_jax.run.execute import execute
from bioptimus_jax.run.folder import Run
from bioptimus_jax.sets import columns
from bioptimus_jax.sets.corpora import read_dataset, set_at
from bioptimus_jax.sets.sentences import Sentence
from bioptimus_jax.storage.files import (
    Checksums,
    read_json,
    read_jsonl,
    remove_folder,
    whole_folder,
    write_json,
    write_jsonl,
)
from bioptimus_jax.tokenizer.kinds.wordpiece import make


@pytest.fixture(scope='module')
def tiny_bert(tmp_path_factory):
    """A Hugging Face folder with a random BERT and a vocabulary of some words, letters and ##letters."""
    import torch
    from transformers import BertConfig, BertForMaskedLM

    folder = tmp_path_factory.mktemp('tiny')
    letters = 'abcdefghijklmnopqrstuvwxyz'
    specials = ['[PAD]', '[UNK]', '[CLS]', '[SEP]', '[MASK]']
    vocabulary = [*specials, *OTHER, *SPELLING, *letters, *('##' + c for c in letters), '.', '-']
    torch.manual_seed(0)
    shape = BertConfig(
        vocab_size=len(vocabulary),
        hidden_size=32,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=64,
        max_position_embeddings=128,
    )
    BertForMaskedLM(shape).save_pretrained(folder)
    make(vocabulary, True).save(folder, 128)
    return folder


@pytest.fixture(scope='module')
def tokenizer(tiny_bert):
    from transformers import AutoTokenizer

    return AutoTokenizer.from_pretrained(tiny_bert)


@pytest.fixture(scope='module')
def toy_sets(tmp_path_factory):
    """Two generated sets: drugs (two words with 'sodium'-like second word) among common words."""
    root = tmp_path_factory.mktemp('sets')
    generator = random.Random(1)
    for name in ('one', 'two'):
        save_set(root / name, generator=generator)
    return root


def folders_of(run):
    return model_folders(
        run.config, run.folder, run.config.finetune.models or run.config.phases, 'config.finetune.models'
    )


def experiment(sets, model, workers=1, **changes):
    e = Experiment.from_config(config.defaults())
    given = settings(folder=str(sets), models=(str(model),), **changes)
    return dataclasses.replace(e, finetune=given, runtime=dataclasses.replace(e.runtime, workers=workers))


# ---- alignment


def check_alignment(tokenizer, sentence, max_pieces, overlap):
    aligned = align(tokenizer, [sentence], max_pieces, overlap)
    plain = tokenizer(list(sentence.words), is_split_into_words=True, verbose=False)
    expected = {}
    for piece, word in zip(plain['input_ids'], plain.word_ids(), strict=True):
        if word is not None:
            expected.setdefault(word, []).append(piece)
    predicted = [w for window in aligned.windows for w in window.words]
    assert predicted == sorted(expected)  # each word with a piece exactly once, in order
    for window in aligned.windows:
        assert len(window.pieces) <= max_pieces
        assert window.pieces[0] == tokenizer.cls_token_id
        assert window.pieces[-1] == tokenizer.sep_token_id
        for word, start, end in zip(window.words, window.starts, window.ends, strict=True):
            assert list(window.pieces[start:end]) == expected[word]
    return aligned


def test_sentence_of_600_pieces_is_predicted_once_with_context(tokenizer):
    generator = random.Random(0)
    words, pieces = [], 0
    while pieces < 600:
        words.append(''.join(generator.choices('bcdfghjk', k=generator.randint(1, 6))))
        pieces += len(words[-1])
    sentence = Sentence(tuple(words), tuple(generator.choices(['O', 'B-X', 'I-X'], k=len(words))))
    aligned = check_alignment(tokenizer, sentence, 128, 32)
    assert aligned.counts['long_sentences'] == 1
    assert len(aligned.windows) > 5
    for n, window in enumerate(aligned.windows):  # about 32 pieces on either side, whole words apart
        assert n == 0 or window.starts[0] - 1 >= 32 - 6
        assert n == len(aligned.windows) - 1 or len(window.pieces) - 1 - window.ends[-1] >= 32 - 6
    # gold labels survive the way there and back
    ids = {'O': 0, 'B-X': 1, 'I-X': 2}
    labels = [piece_labels(w, sentence.tags, ids, 'first') for w in aligned.windows]
    assert sum(label != -100 for row in labels for label in row) == len(words)
    assert tags_of_words([sentence], aligned.windows, labels, list(ids)) == [list(sentence.tags)]


def test_random_sentences_and_window_sizes(tokenizer):
    generator = random.Random(3)
    for _ in range(60):
        lengths = [generator.choice([1, 1, 2, 3, 9]) for _ in range(generator.randint(1, 60))]
        words = tuple('b' * n if generator.random() < 0.9 else '\u200b' for n in lengths)
        overlap = generator.randint(0, 8)
        size = generator.randint(max(16, 2 * overlap + 8), 48)
        check_alignment(tokenizer, Sentence(words, ('O',) * len(words)), size, overlap)


def test_words_without_pieces_are_scored_as_o_and_counted(tokenizer):
    words = ('\u200b', 'zolmipan', '\u00ad', 'dose', '\u0096')
    sentence = Sentence(words, ('O', 'B-X', 'I-X', 'I-X', 'O'))
    aligned = align(tokenizer, [sentence, Sentence(('\u200b',), ('B-X',))], 64, 8)
    assert aligned.counts['zero_piece_words'] == 4
    ids = {'O': 0, 'B-X': 1, 'I-X': 2}
    labels = [piece_labels(w, sentence.tags, ids, 'first') for w in aligned.windows]
    tags = tags_of_words([sentence, sentence], aligned.windows, labels, list(ids))
    assert tags[0] == ['O', 'B-X', 'O', 'I-X', 'O']


def test_a_word_longer_than_a_window_is_cut_and_still_tagged(tokenizer):
    sentence = Sentence(('of', '-'.join('bcd' * 20), 'of'), ('O', 'B-X', 'O'))
    aligned = align(tokenizer, [sentence], 32, 4)
    assert aligned.counts['cut_words'] == 1
    assert [w for window in aligned.windows for w in window.words] == [0, 1, 2]


def test_all_pieces_of_a_word_carry_a_label_that_keeps_iob2(tokenizer):
    sentence = Sentence(('zolmipan', 'zolmipan'), ('B-X', 'O'))
    (window,) = align(tokenizer, [sentence], 64, 8).windows
    ids = {'O': 0, 'B-X': 1, 'I-X': 2}
    assert piece_labels(window, sentence.tags, ids, 'first') == [-100, 1, -100, 0, -100, -100]
    assert piece_labels(window, sentence.tags, ids, 'all') == [-100, 1, 2, 0, 0, -100]


def test_a_sentence_of_100_000_words(tokenizer):
    sentence = Sentence(('of',) * 100_000, ('O',) * 100_000)
    windows = align(tokenizer, [sentence], 128, 32).windows
    assert [w for window in windows for w in window.words] == list(range(100_000))


# ---- fine-tuning


def test_slanted_triangle_is_continuous_at_its_peak():
    rates = [slanted_triangle(i, 100, 0.1) for i in range(100)]
    assert rates[:10] == pytest.approx([(i + 1) / 10 for i in range(10)])
    assert max(rates) == rates[9] == 1
    steps = [a - b for a, b in itertools.pairwise(rates[9:])]
    assert steps == pytest.approx([1 / 91] * 90)
    assert rates[-1] == pytest.approx(1 / 91)


def test_batches_are_random_and_their_parts_cost_least():
    batches = drawn(1003, 8, (0, 1))
    assert sorted(i for b in batches for i in b) == list(range(1003))
    assert [len(b) for b in batches] == [8] * 125 + [3]
    assert batches != drawn(1003, 8, (0, 2))
    assert batches == drawn(1003, 8, (0, 1))
    generator = random.Random(0)
    for _ in range(50):
        lengths = [generator.randint(3, 100) for _ in range(generator.randint(1, 8))]
        cut = parts(lengths)
        assert sorted(i for part in cut for i in part) == list(range(len(lengths)))
        cost = sum(len(part) * max(lengths[i] for i in part) + PART_COST for part in cut)
        order = sorted(lengths)
        ways = itertools.product((False, True), repeat=len(order) - 1)
        ends = ([*(n for n, ends in enumerate(way, 1) if ends), len(order)] for way in ways)
        pairs = (list(zip([0, *at], at)) for at in ends)
        assert cost == min(sum((e - b) * order[e - 1] + PART_COST for b, e in way) for way in pairs)


def test_batches_of_predictions_are_of_similar_length_and_bounded():
    generator = random.Random(0)
    lengths = [generator.randint(3, 128) for _ in range(500)]
    for most, pieces in ((16, 400), (64, 1536), (8, math.inf), (4, 10)):
        batches = list(by_length(lengths, most, pieces))
        assert sorted(i for b in batches for i in b) == list(range(500))
        assert all(len(b) <= most for b in batches)
        assert all(len(b) == 1 or len(b) * max(lengths[i] for i in b) <= pieces for b in batches)
        ends = [[f(lengths[i] for i in b) for f in (min, max)] for b in batches]
        assert all(a[1] <= b[0] for a, b in itertools.pairwise(ends))
    assert [len(b) for b in by_length(lengths, 8)] == [8] * 62 + [4]
    assert list(by_length([], 8)) == []


def test_there_are_no_more_threads_than_cores(tiny_bert, toy_sets, monkeypatch):
    before, used = torch.get_num_threads(), []
    monkeypatch.setattr(training, 'cores', lambda: [0])
    dataset = read_dataset(toy_sets / 'one')
    look = lambda _: used.append(torch.get_num_threads())  # noqa: E731
    finetune(ENTITIES, tiny_bert, dataset, settings(epochs=1), 0, threads=4, on_epoch=look)
    torch.set_num_threads(before)
    assert used == [1]


def test_fine_tuning_learns_and_is_deterministic(tiny_bert, toy_sets, monkeypatch):
    dataset = read_dataset(toy_sets / 'one')
    first = finetune(ENTITIES, tiny_bert, dataset, settings(), 0)
    # The same again, and blindly: what test holds decides nothing, least of all the epoch.
    hidden = [dataclasses.replace(s, tags=('O',) * len(s.tags)) for s in dataset.test]
    again = finetune(ENTITIES, tiny_bert, dataclasses.replace(dataset, test=tuple(hidden)), settings(), 0)
    empty = tuple(dataclasses.replace(s, tags=('O',) * len(s.tags)) for s in dataset.devel)
    predicted = []
    monkeypatch.setattr(training, 'predict', lambda *a: predicted.append(predict(*a)) or predicted[-1])
    slow = dataclasses.replace(settings(), learning_rate=settings().learning_rate / 30)
    other = finetune(ENTITIES, tiny_bert, dataclasses.replace(dataset, devel=empty), slow, 1)
    assert {h['devel_f1'] for h in other.history} == {0.0}
    assert (other.best_epoch, other.devel) == (1, predicted[0])  # of equal epochs the first
    assert predicted[0] != predicted[-2]
    from bioptimus_jax.scoring.score import score

    assert score([s.tags for s in dataset.test], first.test)['strict']['f1'] > 0.95
    assert first.history == again.history
    assert (first.test, first.devel, first.best_epoch) == (again.test, again.devel, again.best_epoch)
    assert first.first_loss != other.first_loss
    assert first.history[first.best_epoch - 1]['devel_f1'] == max(h['devel_f1'] for h in first.history)


# ---- stage


def test_cores_that_have_nothing_to_do_are_named(monkeypatch):
    monkeypatch.setattr(cells, 'cores', lambda: list(range(8)))
    assert 'uses 1 of 8 cores; config.runtime.torch_threads=8' in cells.idle(1, Runtime())
    assert 'uses 4 of 8 cores; config.runtime.torch_threads=4' in cells.idle(2, Runtime(torch_threads=2))
    assert not cells.idle(5, Runtime())
    assert not cells.idle(1, Runtime(workers=1))
    assert not cells.idle(1, Runtime(cluster='tcp://a:1'))


def test_results_do_not_depend_on_workers_and_finished_cells_are_kept(tiny_bert, toy_sets, tmp_path):
    counts, records = [], []
    for workers in (1, 2):
        run = Run(tmp_path / str(workers), experiment(toy_sets, tiny_bert, workers), quiet=True)
        folder = run.workdir / 'finetune'
        folder.mkdir()
        counts.append(stage.build(run, folder))
        records.append(read_jsonl(folder / 'results.jsonl'))
    assert counts[0] == counts[1]
    assert counts[0].counts.sums['gold_in_file'] == counts[0].counts.sums['gold_scored'] > 0
    for a, b in zip(*records, strict=True):
        for key in ('model', 'dataset', 'seed', 'devel', 'test', 'best_epoch'):
            assert a[key] == b[key]
    assert {r['dataset'] for r in records[0]} == {'one', 'two'}
    assert len(run.metrics.of('finetune')) == 2 * 4
    cell = next(folder.glob('*/one/standard/seed-0'))
    rows = (cell / 'predictions.tsv').read_text().splitlines()
    tokens = [tuple(row.split('\t')[:2]) for row in rows if row]
    assert tokens == [tuple(line.split('\t')) for line in _lines(toy_sets / 'one/test.tsv')]
    # again: one cell was cut off, the other one stays
    times = {p: p.stat().st_mtime_ns for p in folder.glob('*/*/*/*/scores.json')}
    (cell / 'scores.json').unlink()
    again = stage.build(run, folder)
    assert again.content == counts[0].content
    assert again.counts.kept == 1
    kept = [p for p, t in times.items() if p.stat().st_mtime_ns == t]
    assert [p.parents[2].name for p in kept] == ['two']
    # other settings: nothing is taken for finished
    changed = Run(run.workdir, experiment(toy_sets, tiny_bert, 1, weight_decay=0.0), quiet=True)
    assert stage.build(changed, folder).counts.kept == 0


def test_cells_on_a_cluster_are_those_of_one_process_though_a_worker_is_killed(
    tiny_bert, toy_sets, tmp_path, cluster, monkeypatch
):
    """A worker dies with a cell, once another is finished. Paths are relative; workers have another folder."""
    import distributed

    monkeypatch.chdir(tmp_path)
    said, killed = [], []

    def cells_of(name, address):
        given = {'datasets': ('one',), 'seeds': (0, 1, 2), 'epochs': 2}
        e = experiment(os.path.relpath(toy_sets), os.path.relpath(tiny_bert), **given)
        run = Run(name, dataclasses.replace(e, runtime=dataclasses.replace(e.runtime, cluster=address)))
        monkeypatch.setattr(run.console, 'say', said.append)
        (run.workdir / 'finetune').mkdir(exist_ok=True)
        stage.build(run, run.workdir / 'finetune')
        return run.workdir / 'finetune'

    def kill():
        with distributed.Client(cluster) as client:
            while not list(Path('there').rglob('scores.json')):
                time.sleep(0.02)
            busy = [worker for worker, tasks in client.processing().items() if tasks]
            killed.append(client.run(os.getpid, workers=busy[:1])[busy[0]])
            os.kill(killed[0], signal.SIGKILL)

    thread = threading.Thread(target=kill)
    thread.start()
    there = cells_of('there', cluster)
    thread.join()
    assert killed
    assert f'finetune: computes on 2 workers of {cluster} (cpu), threads 1' in said
    here = cells_of('here', '')
    for folder in (here, there):
        assert len(list(folder.rglob('scores.json'))) == 3
    taken = ('seconds', 'train_sentences_per_second', 'predict_sentences_per_second')
    records = [read_jsonl(folder / 'results.jsonl') for folder in (here, there)]
    one, two = ([{k: v for k, v in record.items() if k not in taken} for record in of] for of in records)
    assert one == two
    for file in (f.relative_to(here) for f in here.rglob('predictions.tsv')):
        assert (here / file).read_bytes() == (there / file).read_bytes()
    assert read_json(here / 'statistics.json') == read_json(there / 'statistics.json')
    times = {p: p.stat().st_mtime_ns for p in there.rglob('scores.json')}
    cells_of('there', cluster)  # the same command again
    assert times == {p: p.stat().st_mtime_ns for p in there.rglob('scores.json')}


def test_workers_that_would_share_a_gpu_or_leave_one_idle_are_refused(monkeypatch):
    seen = {}
    monkeypatch.setattr(
        finetune_cards,
        'Cluster',
        lambda address, packages: contextlib.nullcontext(types.SimpleNamespace(ask=lambda function: seen)),
    )
    runtime = dataclasses.replace(Experiment.from_config(config.defaults()).runtime, cluster='there:1')
    several, one = 'cuda (8 x NVIDIA H100)', 'cuda (NVIDIA H100)'
    for workers, wanted in (
        ([('host', one, '0', False, ''), ('host', one, '1', False, '')], ''),
        ([('host', several, '', True, ''), ('other', several, '', True, '')], ''),
        (
            [('host', one, '0', False, ''), ('host', one, '0', False, '')],
            '',
        ),  # as was asked for
        (
            [('host', several, '', True, ''), ('host', several, '', True, '')],
            'worker 1 and 0 would both use the first',
        ),
        (
            [('host', one, '0', False, ''), ('host', 'cpu', '', False, '')],
            'worker 1 computes on cpu, another one on cuda',
        ),
        (
            [('host', 'cpu', '', False, 'on the CPU, although this machine has a GPU')],
            'worker 0: on the CPU, although',
        ),
    ):
        seen.clear()
        seen.update({str(n): worker for n, worker in enumerate(workers)})
        if wanted:
            with pytest.raises(ConfigError, match=wanted):
                devices_of(runtime)
        else:
            assert devices_of(runtime) == f'2 workers of there:1 ({workers[0][1]})'


def test_on_the_host_of_a_tpu_the_stage_says_what_to_do(tiny_bert, toy_sets, tmp_path, monkeypatch):
    monkeypatch.delenv('JAX_PLATFORMS')
    run = Run(tmp_path, experiment(toy_sets, tiny_bert))
    chips = Hardware('tpu', ('TPU chip',) * 4)
    monkeypatch.setattr(finetune_cards, 'accelerators', lambda: chips)
    with pytest.raises(
        ConfigError,
        match=r'finetune would be on the CPU, although this machine has 4 x TPU chip, which jax does not find; pip',
    ):
        execute(run, STAGES['finetune'])
    assert not (tmp_path / 'finetune').exists()
    for meant in ({'JAX_PLATFORMS': 'cpu'}, {'CUDA_VISIBLE_DEVICES': ''}):
        with monkeypatch.context() as patched:
            for name, value in meant.items():
                patched.setenv(name, value)
            assert finetune_cards.encoder_here('auto', run.config.runtime) == 'torch'
    chips = Hardware('cuda', ('H100',))
    assert finetune_cards.encoder_here('auto', run.config.runtime) == 'torch'


def test_stopping_loses_no_finished_cell(tiny_bert, toy_sets, tmp_path, monkeypatch):
    run = Run(tmp_path, experiment(toy_sets, tiny_bert, 2), quiet=True)
    run.console.stopping.set()
    with pytest.raises(Stopped):
        stage.build(run, tmp_path)
    run = Run(tmp_path, experiment(toy_sets, tiny_bert, 1), quiet=True)
    run.console.stopping.set()
    with pytest.raises(Stopped):
        stage.build(run, tmp_path)
    assert not list(tmp_path.rglob('results.jsonl'))
    # What is lost of the cell that is being trained is said, and nothing of it stays.
    run, noted = Run(tmp_path, experiment(toy_sets, tiny_bert, 1), quiet=True), cells.note_epochs

    def note(folder, epochs):
        noted(folder, epochs)
        if epochs == 2:
            run.console.stopping.set()

    monkeypatch.setattr(cells, 'note_epochs', note)
    with pytest.raises(Stopped, match=r'^the cell .+/one/standard/seed-0, 2 of 4 epochs, is trained anew$'):
        stage.build(run, tmp_path)
    assert not list(tmp_path.rglob('.begun*'))


def test_several_cells_that_are_lost_are_named_up_to_three(tmp_path):
    known = [(f'm/s/standard/seed-{n}', tmp_path / str(n), 8) for n in range(6)]
    assert begun.lost(known) == ''
    for n, (_, folder, _) in enumerate(known[:5]):
        begun.note_epochs(folder, 0)
        begun.note_epochs(folder, n)
    two = 'm/s/standard/seed-3, 3 of 8 epochs; m/s/standard/seed-4, 4 of 8 epochs'
    assert begun.lost(known[3:]) == f'the cells {two} are trained anew'
    assert begun.lost(known).endswith('seed-2, 2 of 8 epochs; 2 more are trained anew')
    begun.note_epochs(known[4][1], 0)  # another worker begins it again
    assert begun.lost(known[4:]) == 'the cell m/s/standard/seed-4, 0 of 8 epochs, is trained anew'


def test_external_inputs(tiny_bert, toy_sets):
    e = experiment(toy_sets, tiny_bert, datasets=('two',))
    names = list(stage.external_inputs(e))
    assert names[:3] == [f'set two:{split}.tsv' for split in ('train', 'devel', 'test')]
    assert f'model {name_of(str(tiny_bert))}:model.safetensors' in names
    assert json.dumps(dataclasses.asdict(e.finetune))


def test_mentions_are_counted_before_anything_is_trained(tiny_bert, toy_sets, tmp_path, monkeypatch):
    """Whatever a reader may come to overlook: the counts apart from it say so, and name the file."""
    count = columns.count_mentions
    monkeypatch.setattr(
        columns, 'count_mentions', lambda path, *of: count(path, *of) + (path.name == 'test.tsv')
    )
    run = Run(tmp_path, experiment(toy_sets, tiny_bert), quiet=True)
    with pytest.raises(InputError, match=r'one/test\.tsv: marks \d+ mentions, but \d+ are read from it'):
        stage.build(run, tmp_path)
    assert not [p for p in tmp_path.iterdir() if p.is_dir()]


def test_the_source_is_scored_by_its_name_whatever_lies_here(tiny_bert, toy_sets, tmp_path, monkeypatch):
    from transformers import BertModel

    headless = tmp_path / 'headless'  # a source needs no masked-language-model head
    shutil.copytree(tiny_bert, headless)
    BertModel.from_pretrained(tiny_bert).save_pretrained(headless)
    for name in ('source', 'initial', '0.4'):  # as in the folder of a demo
        (tmp_path / name).mkdir()
    monkeypatch.chdir(tmp_path)
    e = experiment(toy_sets, 'source', datasets=('one',))
    e = dataclasses.replace(e, source=dataclasses.replace(e.source, path='headless'))
    run = Run(tmp_path / 'run', e, quiet=True)
    assert folders_of(run) == {'source': Path('headless')}
    folders = {path.parent for path in stage.external_inputs(e).values()}
    assert folders == {toy_sets / 'one', Path('headless')}
    own = dataclasses.replace(e, finetune=dataclasses.replace(e.finetune, models=('initial', '0.4')))
    assert {path.parent for path in stage.external_inputs(own).values()} == {toy_sets / 'one'}
    (run.workdir / 'finetune').mkdir()
    stage.build(run, run.workdir / 'finetune')
    [record] = read_jsonl(run.workdir / 'finetune' / 'results.jsonl')
    assert record['model'] == 'source'


def test_folders_have_names_of_their_own(tmp_path):
    for path, name in {
        '/models/bert-base': 'bert-base',
        'runs/small/export/0.4': 'small_0.4',
        '/a/runs/small/export/0.1@50': 'small_0.1@50',
        'runs/small/surgery/model': 'small_initial',
        '/models/x y/': 'x_y',
    }.items():
        assert name_of(path) == name
    run = Run(tmp_path, experiment(tmp_path, '/models/a/bert'), quiet=True)
    settings = dataclasses.replace(run.config.finetune, models=('/models/a/bert', 'other=/models/b/bert'))
    run.config = dataclasses.replace(run.config, finetune=settings)
    assert folders_of(run) == {'bert': Path('/models/a/bert'), 'other': Path('/models/b/bert')}


def test_what_cannot_be_fine_tuned_is_said(tiny_bert, toy_sets, tmp_path):
    """Weights that are missing are named, not drawn at random; windows end where the table of positions ends."""
    import safetensors.numpy

    shutil.copytree(tiny_bert, tmp_path / 'model')
    state = safetensors.numpy.load_file(tmp_path / 'model' / 'model.safetensors')
    del state['bert.encoder.layer.0.output.dense.weight']
    safetensors.numpy.save_file(state, tmp_path / 'model' / 'model.safetensors', {'format': 'pt'})

    def trained(model, chosen):
        finetune(ENTITIES, model, read_dataset(toy_sets / 'one'), chosen, 0)

    def inputs(model, dataset):
        stage.external_inputs(experiment(toy_sets, model, datasets=(dataset,)))

    def named(*models):
        asked = experiment(toy_sets, models[0])
        asked = dataclasses.replace(asked, finetune=dataclasses.replace(asked.finetune, models=models))
        folders_of(Run(tmp_path, asked, quiet=True))

    def given(keys):
        asked = config.defaults()
        asked.finetune.update(keys)
        Experiment.from_config(asked)

    for message, (error, call, *of) in {
        r'encoder\.layer\.0\.output\.dense\.weight': (InputError, trained, tmp_path / 'model', settings()),
        r'config\.finetune\.max_pieces: 256': (ConfigError, trained, tiny_bert, settings(max_pieces=256)),
        'has no set three': (InputError, inputs, tiny_bert, 'three'),
        r'"source" needs config\.source\.path, which is empty': (ConfigError, inputs, 'source', 'one'),
        r"config\.finetune\.models: '0\.9' is not a phase": (ConfigError, named, '0.9'),
        r"two models are called 'bert'; name one of them as in bert-2=/models/b": (
            ConfigError,
            named,
            '/models/a/bert',
            '/models/b/bert',
        ),
        r'config\.finetune\.crossed: is for models that are kept': (ConfigError, given, {'crossed': True}),
        r"finetune\.keep: 'ensemble' needs several seeds; add some to config": (
            ConfigError,
            given,
            {'keep': 'ensemble'},
        ),
        **{
            rf'config\.finetune\.{said}': (ConfigError, given, keys)
            for said, keys in (
                ("label_pieces: 'all', but head='crf' reads", {'head': 'crf', 'label_pieces': 'all'}),
                ("label_pieces: 'all', but head='span' reads", {'head': 'span', 'label_pieces': 'all'}),
                ("scheme: 'io', but head='bilstm_span' finds", {'head': 'bilstm_span', 'scheme': 'io'}),
            )
        },
    }.items():
        with pytest.raises(error, match=message):
            call(*of)


def test_settings_are_cells_of_their_own_and_the_stage_says_what_they_gave(
    tiny_bert, toy_sets, tmp_path, capsys, monkeypatch
):
    monkeypatch.setattr(Within, 'SECONDS', 0.0)
    e = experiment(toy_sets, tiny_bert, datasets=('one',), seeds=(0, 1))
    two = dataclasses.replace(
        e.finetune,
        epochs=2,
        settings=('standard', 'frozen'),
        setting={'frozen': {'freeze_layers': 1, 'epochs': 1}},
    )
    run = Run(tmp_path, dataclasses.replace(e, finetune=two))
    folder = run.workdir / 'finetune'
    folder.mkdir()
    counts = stage.build(run, folder).counts
    assert (counts.cells, counts.kept) == (4, 0)
    out = capsys.readouterr().out
    name = name_of(str(tiny_bert))
    # Within an epoch it says how many updates are done, and of how many.
    every = [match for line in out.splitlines() if (match := PROGRESS.match(line))]
    within = [m for m in every if m['label'] == f'finetune: {name}/one/standard/seed-1']
    numbers = [int(m['done']) for m in within]
    assert numbers == list(range(1, int(within[0]['total'])))
    assert (within[0]['unit'], within[0].string.rpartition(' ')[2]) == ('updates', 'left')
    assert every[-1].groups() == ('finetune: slices', '2', '2', 'models and sets')
    last = out[out.rindex('one, F1 ') :].splitlines()
    assert last[0].split() == ['one,', 'F1', 'test', '95', '%', 'interval', 'devel', 'seeds']
    assert last[1].split()[0] == name
    assert last[2].startswith(f'{name}, frozen')
    assert last[1].endswith(' 2')
    assert re.search(r' \d+\.\d\d to \d+\.\d\d  ', last[2])
    assert 'train 120 sentences' in out.replace('  ', ' ')
    assert len(read_json(folder / name / 'one' / 'frozen' / 'seed-1' / 'scores.json')['history']) == 1
    made = read_json(folder / 'statistics.json')
    assert [(r['setting'], r['test']['default']['seeds'], r['unit']) for r in made] == [
        ('standard', 2, 'sentences'),
        ('frozen', 2, 'sentences'),
    ]
    assert all(r['interval'][0] <= r['test']['default']['mean'] <= r['interval'][1] for r in made)
    sliced = read_json(folder / 'slices.json')[0]['slices']
    assert set(sliced) == {
        'surface',
        'surface_and_type',
        'pieces',
        'words',
    }  # no run's tokens are known of a folder
    gold = counts.sums['gold_in_file'] // 4
    assert all(sum(c['gold'] for c in classes.values()) == gold for classes in sliced.values())
    assert read_json(folder / 'lint.json')[0]['dataset'] == 'one'
    assert set(read_json(folder / 'labels.json')['one']) == {'train', 'devel', 'test'}
    # Another setting is added: the others stay as they are.
    more = dataclasses.replace(
        two, settings=('standard', 'frozen', 'crf'), setting={**two.setting, 'crf': {'head': 'crf'}}
    )
    assert (
        stage.build(Run(tmp_path, dataclasses.replace(e, finetune=more), quiet=True), folder).counts.kept == 4
    )


def _ner(workdir, e, **changes):
    """The stage through the run folder's own machinery; gives the manifest."""
    run = Run(
        workdir, dataclasses.replace(e, finetune=dataclasses.replace(e.finetune, **changes)), quiet=True
    )
    return run, execute(run, STAGES['finetune'])


def test_what_is_added_keeps_finished_cells_and_a_changed_file_is_refused(
    tiny_bert, toy_sets, tmp_path, monkeypatch
):
    sets, model, work = tmp_path / 'sets', tmp_path / 'model', tmp_path / 'run'
    shutil.copytree(toy_sets, sets)
    shutil.copytree(tiny_bert, model)
    small = {'datasets': ('two',), 'epochs': 1, 'models': (f'a={model}',)}
    e = experiment(sets, model)
    _, manifest = _ner(work, e, **small)
    assert _ner(work, e, **small)[1] == manifest  # up to date
    beside = work / 'finetune' / 'a'
    assert list(read_model(str(beside)).cells) == ['two']
    done = 1
    for more in (
        {'datasets': ('one', 'two')},
        {'models': (f'b={tiny_bert}', f'a={model}')},
        {'seeds': (1, 0)},
        {'settings': ('frozen', 'standard'), 'setting': {'frozen': {'freeze_layers': 1}}},
    ):
        small |= more
        times = {p: p.stat().st_mtime_ns for p in work.rglob('scores.json')}
        _, manifest = _ner(work, e, **small)
        assert (manifest.counts['cells'], manifest.counts['kept']) == (2 * done, done), more
        assert {p: p.stat().st_mtime_ns for p in times} == times
        done *= 2
    # A set that is left out may change; one that stays may not, nor may it get another file.
    for path, text, asked, said in (
        (sets / 'one' / 'test.tsv', 'more\tO\n', small, r'set one:test\.tsv'),
        (model / 'config.json', ' ', small | {'datasets': ('two',)}, r'model a:config\.json'),
    ):
        with open(path, 'a', encoding='utf-8') as file:
            file.write(text)
        write_json(work / 'finetune' / 'manifest.json', manifest.json())
        with pytest.raises(ConfigError, match=rf'inputs\.{said}: '):
            _ner(work, e, **asked)
    assert len(list(work.rglob('scores.json'))) == done
    small |= {'datasets': ('two',), 'models': (f'b={tiny_bert}',), 'seeds': (1,)}
    counts = _ner(work, e, **small)[1].counts
    assert (counts['cells'], counts['kept']) == (2, 2)
    # In the stage's folder only the cells that it asks for are compared; in a copy elsewhere all are.
    _holds(f'{work}/finetune/b:frozen', {'two': [1]}, left_out=6)
    earlier = r'finetune/a: all its cells are of an earlier configuration; '
    with pytest.raises(InputError, match=rf'{earlier}add a to config\.finetune\.models and run .bioptimus'):
        read_model(f'{beside}:frozen')
    # So it is where the stage is stopped while it adds to them; `a` has another file since it was fine-tuned.
    more = small | {'models': (f'a={model}', f'b={tiny_bert}'), 'seeds': (0, 1)}
    _stop_in('_cells', monkeypatch, work, e, **more)
    with pytest.raises(InputError, match=r'/finetune: was stopped before it said which cells'):
        read_model(f'{work}/finetune/b:frozen')
    _stop_in('keep_looks', monkeypatch, work, e, **more)
    _holds(f'{work}/finetune/b:frozen', {'two': [0, 1]}, left_out=4)
    assert 'B: 4 cells in its folder left out, of an earlier configuration' in compare_models(
        f'{work}/finetune/b:standard', f'{work}/finetune/b:frozen'
    )
    with pytest.raises(InputError, match=f'{earlier}run .bioptimus finetune. again'):
        read_model(f'{beside}:frozen')
    shutil.copytree(beside, tmp_path / 'copied')
    assert list(read_model(f'{tmp_path}/copied:frozen').cells) == ['one', 'two']


def _stop_in(function, monkeypatch, *asked, **changes):
    """The stage is stopped when it calls the function, and leaves its claim."""

    def stop(*given):
        raise Stopped

    with monkeypatch.context() as patch:
        patch.setattr(stage, function, stop)
        with pytest.raises(Stopped):
            _ner(*asked, **changes)


def _holds(model, cells, left_out):
    found = read_model(model)
    assert {name: sorted(seeds) for name, seeds in found.cells.items()} == cells
    assert found.left_out == left_out


def test_merged_and_typed_scores_of_a_set_are_never_taken_for_each_other(tiny_bert, toy_sets, tmp_path):
    sets = tmp_path / 'sets'
    shutil.copytree(toy_sets / 'one', sets / 'jnlpba')
    for file in (sets / 'jnlpba').iterdir():
        lines = file.read_text('utf-8').replace('tercivir\tB-Drug', 'tercivir\tB-Protein').splitlines()
        pairs = zip(['', *lines], lines, strict=False)
        text = '\n'.join(
            x.replace('I-Drug', 'I-Protein') if 'Protein' in before else x for before, x in pairs
        )
        file.write_text(text + '\n', 'utf-8')
    e = experiment(sets, tiny_bert)
    run, _ = _ner(tmp_path / 'both', e, epochs=2, datasets=('jnlpba', 'jnlpba-typed'))
    merged, typed = read_measures(run).finetuned
    assert (merged.dataset, list(merged.test_by_type)) == ('jnlpba', ['entity'])
    assert (typed.dataset, list(typed.test_by_type)) == ('jnlpba-typed', ['Drug', 'Protein'])
    assert merged.gold_scored == typed.gold_scored == merged.gold_in_file
    tags = {
        name: {
            t
            for s in read_predictions(next((run.workdir / 'finetune').glob(f'*/{name}/*/*/predictions.tsv')))
            for t in s.gold
        }
        for name in ('jnlpba', 'jnlpba-typed')
    }
    assert tags['jnlpba'] == {'O', 'B-entity', 'I-entity'}
    assert {'B-Drug', 'I-Drug', 'B-Protein', 'I-Protein'} < tags['jnlpba-typed']
    slices = {
        r['dataset']: r['slices']['surface_and_type']
        for r in read_json(run.workdir / 'finetune' / 'slices.json')
    }
    assert set(slices) == {'jnlpba', 'jnlpba-typed'}
    counted = [r['blurb'] for r in read_json(run.workdir / 'finetune' / 'lint.json')]
    assert counted == ['jnlpba', '']
    (model,) = (p for p in (run.workdir / 'finetune').iterdir() if p.is_dir())
    assert list(read_model(str(model)).cells) == ['jnlpba', 'jnlpba-typed']
    with pytest.raises(InputError, match=r'has jnlpba-typed, but .* has jnlpba: no set in common'):
        compare_models(str(model / 'jnlpba-typed'), str(model / 'jnlpba'))


def test_kept_models_are_scored_on_other_sets_that_share_a_type(tiny_bert, tmp_path):
    """Two sets of drugs, in one of which the second half of them is never marked, and one of another type."""
    from seqeval.metrics import f1_score
    from transformers import AutoModelForTokenClassification, AutoTokenizer

    (tmp_path / 'sets').mkdir()
    for at, name in enumerate(('all', 'half', 'genes')):
        save_set(tmp_path / 'sets' / name, generator=random.Random(at))
    for file in (tmp_path / 'sets').glob('*/*.tsv'):
        text = file.read_text()
        if file.parent.name == 'half':
            text = re.sub(f'({"|".join(DRUGS[2:])})\tB-Drug(\ndose\tI-Drug)?', '\\1\tO', text)
        file.write_text(
            text.replace('-Drug', {'half': '-DRUG', 'genes': '-Gene'}.get(file.parent.name, '-Drug'))
        )
    e = experiment(tmp_path / 'sets', tiny_bert, keep='best')
    _, before = _ner(tmp_path, e)
    folder = tmp_path / 'finetune'
    assert not (folder / 'crossed.json').exists()
    run, after = _ner(tmp_path, e, keep='best', crossed=True)
    assert (after.counts['kept'], after.content) == (after.counts['cells'], before.content)
    found = {(r['trained_on'], r['dataset']): r for r in read_json(folder / 'crossed.json')}
    assert set(found) == {('all', 'half'), ('half', 'all')}
    for (own, other), record in found.items():
        (cell,) = folder.glob(f'*/{own}/standard/seed-*')
        (home,) = folder.glob(f'*/{other}/standard/seed-*')
        crossed, at_home = (read_predictions(x / 'predictions.tsv') for x in (cell / 'crossed' / other, home))
        assert [(s.words, s.gold) for s in crossed] == [(s.words, s.gold) for s in at_home]
        # Predicted as transformers does with the folder that was kept.
        tagger = AutoModelForTokenClassification.from_pretrained(cell / 'model')
        tokenizer = AutoTokenizer.from_pretrained(cell / 'model')
        for sentence in crossed:
            given = tokenizer(list(sentence.words), is_split_into_words=True, return_tensors='pt')
            labels = [tagger.config.id2label[i] for i in tagger(**given).logits[0].argmax(-1).tolist()]
            ids = given.word_ids()
            assert tuple(labels[ids.index(n)] for n in range(len(sentence.words))) == sentence.predicted
        one_name = [[t.replace('DRUG', 'Drug') for t in s.predicted] for s in crossed]
        theirs = f1_score([[t.replace('DRUG', 'Drug') for t in s.gold] for s in crossed], one_name)
        assert record['test'] == pytest.approx(theirs)
        assert record['in_corpus'] == pytest.approx(read_json(home / 'scores.json')['test']['default']['f1'])
        assert record['drop'] == pytest.approx(record['in_corpus'] - record['test'])
        assert record['drop_interval'][0] <= record['drop'] <= record['drop_interval'][1]
        assert record['types'] == ['Drug' if other == 'all' else 'DRUG']
    assert found['half', 'all']['drop'] > 0.2
    # What was predicted stays, unless it is damaged.
    (kept,) = folder.glob('*/all/standard/seed-*/crossed/half/predictions.tsv')
    time = kept.stat().st_mtime_ns
    _ner(tmp_path, e, keep='all', crossed=True)
    assert kept.stat().st_mtime_ns == time
    assert plain(read_measures(run).crossed) == [*found.values()]


def test_models_of_two_sets_are_compared_seed_by_seed():
    """`finetune.of_set` may give each set its own seeds."""
    cells = {seed: types.SimpleNamespace(seed=seed) for seed in range(5)}
    of = lambda *seeds: [cells[seed] for seed in seeds]  # noqa: E731
    assert same_seeds(of(0, 1, 2), of(1, 2)) == (of(1, 2), of(1, 2))
    assert same_seeds(of(3), of(4)) == (of(3), of(4)), 'the best of each'
    assert same_seeds(of(0, 1), of(2, 3, 4)) == (of(0), of(2))


def test_models_are_kept_as_transformers_loads_them(tiny_bert, toy_sets, tmp_path, monkeypatch):
    from transformers import AutoModelForTokenClassification, AutoTokenizer

    e = experiment(toy_sets, tiny_bert, datasets=('one',), seeds=(0, 1))
    cells = lambda: sorted((tmp_path / 'finetune').glob('*/*/*/seed-*'))  # noqa: E731
    kept = lambda: [cell for cell in cells() if (cell / 'model').exists()]  # noqa: E731
    _, first = _ner(tmp_path, e)
    assert kept() == []
    before = {
        cell: (read_json(cell / 'scores.json'), (cell / 'predictions.tsv').read_bytes()) for cell in cells()
    }
    # Asked for afterwards: the best seed on devel is fine-tuned again, and gives the same. A kill while its model is
    # there without a card leaves it unfinished.
    with monkeypatch.context() as patch:
        patch.setattr('bioptimus_jax.finetuning.cells.write_card', _stop)
        with pytest.raises(Stopped):
            _ner(tmp_path, e, keep='best')
    [unfinished] = kept()
    assert [cell for cell in cells() if not (cell / 'scores.json').exists()] == [unfinished]
    _, best = _ner(tmp_path, e, keep='best')
    (cell,) = kept()
    assert (cell, best.counts['kept']) == (unfinished, 1)
    assert (cell / 'model' / 'README.md').is_file()
    assert cell == max(before, key=lambda c: before[c][0]['devel']['default']['f1'])
    _, every = _ner(tmp_path, e, keep='all')
    assert kept() == cells()
    assert first.content == best.content == every.content
    for cell, (record, predictions) in before.items():
        again = read_json(cell / 'scores.json')
        assert {k: v for k, v in again.items() if k != 'seal' and 'second' not in k} == {
            k: v for k, v in record.items() if k != 'seal' and 'second' not in k
        }
        assert (cell / 'predictions.tsv').read_bytes() == predictions
        model = AutoModelForTokenClassification.from_pretrained(cell / 'model')
        tokenizer = AutoTokenizer.from_pretrained(cell / 'model')
        assert model.config.label2id == {'O': 0, 'B-Drug': 1, 'I-Drug': 2}
        for sentence in read_predictions(cell / 'predictions.tsv'):
            given = tokenizer(list(sentence.words), is_split_into_words=True, return_tensors='pt')
            labels = [model.config.id2label[i] for i in model(**given).logits[0].argmax(-1).tolist()]
            ids = given.word_ids()
            assert tuple(labels[ids.index(n)] for n in range(len(sentence.words))) == sentence.predicted
        assert len({file.stat().st_mode for file in (cell / 'model').iterdir()}) == 1
    # What the model says of the same text, a sentence a line, has the score on record.
    text = [' '.join(s.words) for s in read_dataset(set_at(toy_sets / 'one', 'entities')).test]
    write_jsonl(tmp_path / 'text.jsonl', ({'text': line} for line in text))
    options = ['--lines', '--as=json', f'--to={tmp_path / "said.jsonl"}']
    assert main(['predict', str(cell / 'model'), str(tmp_path / 'text.jsonl'), *options]) == 0
    scored = score(toy_sets / 'one', tmp_path / 'said.jsonl', 'entities', {})
    assert not scored.notes
    gold, predicted = ([getattr(one, side) for one in scored.examples] for side in ('gold', 'predicted'))
    assert ENTITIES.metric.scores(gold, predicted) == record['test']['default']
    # With another seed in between, one model is left; none keeps what is there.
    _ner(tmp_path, e, keep='best', seeds=(0, 1, 2))
    assert len(kept()) == 1
    assert not [p for p in tmp_path.rglob('.model*')]
    last = _ner(tmp_path, e, seeds=(0, 1, 2))[1].counts
    assert (len(kept()), last['kept']) == (1, 3)
    # Seeds that answer together, whose score is on record; another value takes their folder away.
    _, joined = _ner(tmp_path, e, keep='ensemble')
    [place] = (tmp_path / 'finetune').glob('*/*/*/ensemble')
    assert (joined.counts['kept'], len(kept())) == (2, 2)
    assert (place / 'seed-0' / 'model.safetensors').stat().st_nlink == 2, 'on disk once'
    assert main(['predict', str(tmp_path / 'finetune'), str(tmp_path / 'text.jsonl'), *options]) == 0
    scored = score(toy_sets / 'one', tmp_path / 'said.jsonl', 'entities', {})
    gold, predicted = ([getattr(one, side) for one in scored.examples] for side in ('gold', 'predicted'))
    [record] = read_json(tmp_path / 'finetune' / 'statistics.json')
    assert ENTITIES.metric.scores(gold, predicted) == record['ensemble']['test']['default']
    _ner(tmp_path, e, keep='all')
    assert not place.exists()
    # Nor is it left by a stop behind cells that were trained otherwise.
    _ner(tmp_path, e, keep='ensemble')
    shorter = {'keep': 'ensemble', 'of_set': {'one': {'epochs': 1}}}
    with monkeypatch.context() as patch:
        patch.setattr(stage, '_summarise', _stop)
        with pytest.raises(Stopped):
            _ner(tmp_path, e, **shorter)
    assert len(kept()) == 2
    assert not place.exists()
    _ner(tmp_path, e, **shorter)
    assert place.exists()


def _stop(*given, **more):
    raise Stopped


def test_a_folder_is_replaced_whole_or_not_at_all_and_removed_in_one_step(tmp_path, monkeypatch):
    folder = tmp_path / 'model'
    with whole_folder(folder) as hidden:
        (hidden / 'a').write_text('1')
    (tmp_path / '.model.host-1.tmp').mkdir()  # left by a kill
    with contextlib.suppress(Stopped), whole_folder(folder) as hidden:
        (hidden / 'a').write_text('2')
        raise Stopped
    assert [p.name for p in tmp_path.iterdir()] == ['model']
    assert (folder / 'a').read_text() == '1'
    with whole_folder(folder) as hidden:
        (hidden / 'b').write_text('3')
    assert [p.name for p in tmp_path.rglob('*')] == ['model', 'b']
    with monkeypatch.context() as patch:
        patch.setattr('bioptimus_jax.storage.files.shutil.rmtree', _stop)
        with pytest.raises(Stopped):
            remove_folder(folder)
    assert not folder.exists()
    remove_folder(folder)  # what is left of it, too
    assert not list(tmp_path.iterdir())


def _lines(path):
    return [line for line in path.read_text('utf-8').splitlines() if line]


def test_a_document_that_moves_to_another_split_makes_another_cell(tiny_bert, tmp_path):
    """The files in order are the same ones; what is learned is not."""
    for split, names in {'train': 'ab', 'devel': 'c', 'test': 'd'}.items():
        (tmp_path / 'sets' / 'own' / split).mkdir(parents=True)
        for name in names:
            save = tmp_path / 'sets' / 'own' / split / f'{name}.txt'
            save.write_text(f'{name} was given.')
            save.with_suffix('.ann').write_text(f'T1\tDrug 0 1\t{name}\n')
    chosen = settings(folder=str(tmp_path / 'sets'), datasets=('own',))

    def fingerprint():
        [cell, *_] = stage._cells(chosen, {'m': tiny_bert}, tmp_path, Checksums(tmp_path / 'known'), 1, True)
        return cell.fingerprint

    before = fingerprint()
    assert fingerprint() == before
    for ending in ('txt', 'ann'):
        (tmp_path / 'sets' / 'own' / 'train' / f'b.{ending}').rename(
            tmp_path / 'sets' / 'own' / 'devel' / f'b.{ending}'
        )
    assert fingerprint() != before


def test_a_dropout_that_is_written_as_a_whole_number_is_set():
    told = transformers.BertConfig(hidden_dropout_prob=0, attention_probs_dropout_prob=0, use_cache=False)
    loading._set_dropout(told, 0.1)
    assert (told.hidden_dropout_prob, told.attention_probs_dropout_prob) == (0.1, 0.1)
