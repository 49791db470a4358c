"""Epochs, batch and rate that follow model and set, and models that answer everything alike."""

import dataclasses
import json
import random

import numpy as np
import pytest
from toy_programs import begin_warm
from toy_sets import Frame, save_encoder, save_set

import bioptimus_jax as bx
from bioptimus_jax.api import finetuning
from bioptimus_jax.api.objects import experiment
from bioptimus_jax.cli import main as cli
from bioptimus_jax.errors import STOPPED, Stopped
from bioptimus_jax.finetuning import cells, recommended
from bioptimus_jax.finetuning.config import Finetune
from bioptimus_jax.finetuning.finished import BY_DEVEL, read_model
from bioptimus_jax.finetuning.tasks.classes import TASK as CLASSES
from bioptimus_jax.finetuning.tasks.entities import TASK as ENTITIES
from bioptimus_jax.finetuning.tasks.similarity import TASK as SIMILARITY
from bioptimus_jax.sets.corpora import chosen_sets


@pytest.mark.parametrize(
    ('width', 'examples', 'epochs', 'batch', 'rate'),
    [
        (128, 64, 30, 8, 1.8e-3),
        (384, 400, 24, 16, 2e-4),
        (768, 5_424, 3, 16, 5e-5),
        (768, 25_000, 3, 32, 5e-5),
        (1024, 2_000, 5, 16, 2.8e-5),
        (32, 1, 30, 8, 2e-3),
    ],
)
def test_the_rule_by_hand(width, examples, epochs, batch, rate):
    made = recommended.completed(Finetune(), width, examples)
    assert (made.epochs, made.batch_sentences, made.learning_rate) == (epochs, batch, rate)
    with_adapter = recommended.completed(Finetune(lora_rank=8), width, examples)
    assert with_adapter == dataclasses.replace(
        made, lora_rank=8, learning_rate=min(round(10 * rate, 6), 5e-3)
    )


def test_the_rule_leaves_what_is_given_and_moves_one_way():
    given = Finetune(epochs=2, batch_sentences=4, learning_rate=1e-3)
    assert not recommended.open_keys(given)
    assert recommended.completed(given, 768, 100) == given
    one = recommended.completed(Finetune(batch_sentences=4), 768, 10_000)
    assert one.epochs == recommended.FEWEST_EPOCHS  # by the batch that is given
    generator = random.Random(0)
    for _ in range(200):
        width, examples = generator.randint(16, 4096), generator.randint(1, 100_000)
        made = recommended.completed(Finetune(), width, examples)
        wider = recommended.completed(Finetune(), width + generator.randint(1, 2000), examples)
        larger = recommended.completed(Finetune(), width, examples + generator.randint(1, 100_000))
        assert 0 < wider.learning_rate <= made.learning_rate <= recommended.HIGHEST_RATE
        assert larger.batch_sentences >= made.batch_sentences
        updates = made.epochs * -(-examples // made.batch_sentences)
        assert updates >= recommended.UPDATES or made.epochs == recommended.MOST_EPOCHS


def test_widths_are_read_by_the_names_of_families(tmp_path):
    for name, value in {'hidden_size': 384, 'dim': 768, 'd_model': 512}.items():
        (tmp_path / 'config.json').write_text(json.dumps({'model_type': 'any', name: value}))
        assert recommended.width_of(tmp_path) == value
    (tmp_path / 'config.json').write_text('{"model_type": "any"}')
    assert recommended.width_of(tmp_path) == 768


def test_answers_that_are_all_alike_are_known():
    gold = [('yes',)] * 5 + [('no',)] * 5
    assert CLASSES.sameness(gold, [('yes',)] * 10) == '100% of its answers are yes'
    assert not CLASSES.sameness(gold, [('yes',)] * 9 + [('no',)])
    assert CLASSES.sameness(gold * 2, [('yes',)] * 19 + [('no',)]) == '95% of its answers are yes'
    lopsided = [('false',)] * 94 + [('effect',)] * 6
    assert not CLASSES.sameness(lopsided, [('false',)] * 96 + [('effect',)] * 4)
    assert CLASSES.sameness(lopsided, [('false',)] * 98 + [('effect',)] * 2)
    assert (
        CLASSES.sameness([('a', 'b')] * 3 + [()] * 7, [()] * 10) == '100% of its answers are no label at all'
    )
    assert ENTITIES.sameness([('O', 'B-Drug')], [('O', 'O')]) == 'it finds nothing'
    assert not ENTITIES.sameness([('O', 'O')], [('O', 'O')])  # there is nothing to find
    assert not ENTITIES.sameness([('O', 'B-Drug'), ('O',)], [('B-Drug', 'O'), ('O',)])
    assert SIMILARITY.sameness([(0.0,), (4.0,)], [(2.0,), (2.1,)])
    assert not SIMILARITY.sameness([(0.0,), (4.0,)], [(1.0,), (2.0,)])


@pytest.fixture(scope='module')
def places(tmp_path_factory):
    folder = tmp_path_factory.mktemp('recommended')
    (folder / 'ner').mkdir()
    save_set(folder / 'ner' / 'drugs', (40, 12, 12), random.Random(1))
    return folder, save_encoder(folder / 'model')


def finetuned(places, monkeypatch, capsys, name, *more):
    folder, model = places
    monkeypatch.setenv('BIOPTIMUS_DATA', str(folder))
    monkeypatch.setenv('BIOPTIMUS_SOURCE', str(model))
    keys = {'seeds': '0', 'keep': 'best', 'max_pieces': '64', 'overlap_pieces': '8'}
    asked = [f'--config.finetune.{key}={value}' for key, value in keys.items()]
    run = folder / name
    code = cli.main(['finetune', '--config=finetune', f'--workdir={run}', *asked, *more])
    said = capsys.readouterr()
    return code, said.out + said.err, run


def test_without_further_keys_a_small_set_is_learned(places, monkeypatch, capsys):
    code, out, run = finetuned(places, monkeypatch, capsys, 'learned')
    assert code == 0
    line = 'model/drugs/standard: 30 epochs, batches of 8, learning rate 0.002 for 32 units and 40 examples'
    assert f'{line} (config.finetune.epochs, batch_sentences, learning_rate: 0)' in out
    [record] = map(json.loads, (run / 'finetune' / 'results.jsonl').read_text().splitlines())
    assert len(record['history']) == 30
    assert record['test']['default']['f1'] > 0.5
    kept = json.loads((run / 'finetune/model/drugs/standard/seed-0/scores.json').read_text())['settings']
    assert (kept['by_rule'], kept['rule'], kept['width']) == (list(recommended.FOLLOWS), 1, 32)
    assert [kept['values'][key] for key in (*kept['by_rule'], 'max_pieces')] == [30, 8, 0.002, 64]
    assert 'WARNING: after epoch' not in out
    card = (run / 'finetune/model/drugs/standard/seed-0/model/README.md').read_text()
    assert 'epochs 30, batch_sentences 8, learning_rate 0.002' in card


def test_a_stop_within_a_cell_says_that_its_epochs_are_lost(places, monkeypatch, capsys):
    """The example of the issue: "everything is saved", and nine minutes were lost."""
    noted = cells.note_epochs

    def stop(folder, epochs):
        noted(folder, epochs)
        if epochs == 2:
            raise Stopped

    monkeypatch.setattr(cells, 'note_epochs', stop)
    code, out, _ = finetuned(places, monkeypatch, capsys, 'stopped')
    assert code == STOPPED
    lost = 'the cell model/drugs/standard/seed-0, 2 of 30 epochs, is trained anew; everything else is saved; '
    assert f'bioptimus: stopped; {lost}rerun the same command to continue' in out


def test_a_model_that_says_nothing_is_named_at_once_and_wherever_it_goes(places, monkeypatch, capsys):
    few = ('--config.finetune.learning_rate=2e-3', '--config.finetune.epochs=2')
    code, out, run = finetuned(places, monkeypatch, capsys, 'nothing', *few)
    assert code == 0
    said = 'after epoch 1 of 2 it finds nothing; if it stays so, raise config.finetune.learning_rate (0.002)'
    assert f'finetune: model/drugs/standard/seed-0: WARNING: {said}' in out
    assert 'test F1 0.00' in out
    assert '; WARNING: on devel it finds nothing' in out
    kept = run / 'finetune/model/drugs/standard/seed-0/model'
    assert 'On devel it finds nothing: do not use it.' in (kept / 'README.md').read_text()
    assert cli.main(['predict', str(kept), '--text=aspirin']) == 0
    assert f'{kept}: WARNING: on devel it finds nothing; train it anew' in capsys.readouterr().err


def rows_of(folder, split):
    sentences = (folder / f'{split}.tsv').read_text().strip().split('\n\n')
    pairs = [[line.split('\t') for line in sentence.splitlines()] for sentence in sentences]
    return [{'tokens': [w for w, _ in lines], 'ner_tags': [t for _, t in lines]} for lines in pairs]


def test_from_python_a_model_is_fine_tuned_on_rows_and_used(places, programs, monkeypatch, tmp_path, capfd):
    begin_warm(monkeypatch, programs)
    folder, model = places
    rows = {name: rows_of(folder / 'ner' / 'drugs', name) for name in ('train', 'test')}
    keys = {'finetune.max_pieces': 64, 'finetune.overlap_pieces': 8}
    without = dict(rows)
    rows['validation'] = rows_of(folder / 'ner' / 'drugs', 'devel')
    rows['train'] = Frame(rows['train'])
    rows['test'][0]['ner_tags'] = np.array(rows['test'][0]['ner_tags'])
    rows['test'][1]['places'] = [{'start': np.int64(0)}]
    made = bx.finetune(model, rows, workdir=tmp_path / 'run', keys=keys)
    assert 'model/data/standard: 30 epochs, batches of 8' in capfd.readouterr().out
    assert made.folder.is_relative_to(tmp_path / 'run')
    assert made.test['default']['f1'] > 0.5
    [answer] = bx.predict(made.folder, [' '.join(rows['test'][0]['tokens'])])
    assert answer['entities'] is not None
    again = bx.finetune(model, rows, workdir=tmp_path / 'run', keys=keys, quiet=True)
    assert again == made
    assert capfd.readouterr().out == ''
    for data, message in (
        (without, r'^data: has no devel; give train, .* and test: train_test_split\(\) of datasets, or of'),
        (
            [{'tokens': ['a'], 'ner_tags': ['O']}],
            r"data: is list; give the folder of a set, or \{'train': rows, ",
        ),
        (rows['train'], 'data: is a table; give the folder of a set, or'),
        (rows | {'test': []}, 'data: test has no row'),
        (rows | {'test': ['a']}, 'data: row 0 of test is str, not a dictionary'),
        (rows | {'test': 'a'}, 'data: test is str; give rows, each a dictionary'),
        (rows | {'dev': rows['test']}, 'data: has two splits for devel; give one of them'),
        (
            rows | {'test': [*rows['test'][:2], {'tokens': ['a'], 'ner_tags': []}]},
            'data: row 2 of test: 1 word, 0',
        ),
        (folder / 'ner', r'ner is a folder of sets \(drugs\); give one of them'),
        (folder / 'ner' / 'drugs' / 'train.tsv', 'is a file; give the folder of the set, '),
        (folder / 'none', 'none: no such folder'),
    ):
        with pytest.raises((bx.ConfigError, bx.InputError), match=message):
            bx.finetune(model, data, workdir=tmp_path / 'wrong', keys=keys)
    assert not (tmp_path / 'wrong').exists()
    several = {'finetune.seeds': (0, 1), 'finetune.settings': ('short', 'standard'), 'finetune.keep': 'all'}
    by_folder = bx.finetune(
        model,
        folder / 'ner' / 'drugs',
        workdir=tmp_path / 'other',
        keys={**keys, **several, 'finetune.epochs': 12, 'finetune.setting.short.epochs': 1},
        quiet=True,
    )
    [records] = read_model(f'{tmp_path}/other/finetune/model:{BY_DEVEL}').records.values()
    f1 = {seed: record.devel['default']['f1'] for seed, record in records.items()}
    best = max(f1, key=f1.__getitem__)
    assert (by_folder.seed, *by_folder.folder.parts[-4:-2]) == (best, 'drugs', records[best].setting)
    assert records[best].setting == 'standard'
    assert by_folder.devel['default']['f1'] == max(f1.values()) > 0


def test_a_fold_is_given_by_its_folder(tmp_path):
    fold = tmp_path / 'sets' / 'gad' / '1'
    fold.mkdir(parents=True)
    for split in ('train', 'devel', 'test'):
        (fold / f'{split}.tsv').write_text('@GENE$ and @DISEASE$ a\t1\n@GENE$ or @DISEASE$\t0\n')
    [chosen] = chosen_sets(experiment(finetuning._set_of(fold, tmp_path, tmp_path)).finetune)
    assert (chosen.name, chosen.folder) == ('gad-1', fold)
    for place, name in ((fold.parent, '1'), (fold.parent.parent, 'gad/1')):
        with pytest.raises(bx.InputError, match=rf'is a folder of sets \({name}\); give one of them'):
            finetuning._set_of(place, tmp_path, tmp_path)
