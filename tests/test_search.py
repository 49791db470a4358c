"""The search for a setting: keys of one set, BLURB's ranges."""

import dataclasses
import json
from types import SimpleNamespace

import pytest
from toy_plugins import plugged
from toy_sets import save_encoder, save_set, settings

from bioptimus_jax.errors import ConfigError
from bioptimus_jax.experiment import config
from bioptimus_jax.experiment.schema import Experiment
from bioptimus_jax.experiment.stages import STAGES
from bioptimus_jax.finetuning import build, cells, search
from bioptimus_jax.finetuning.config import TASKS, Finetune
from bioptimus_jax.records.finetune import FineTuning
from bioptimus_jax.report.measures import Measures, read_measures
from bioptimus_jax.report.sections.entities import scores
from bioptimus_jax.run.execute import execute
from bioptimus_jax.run.folder import Run
from bioptimus_jax.sets.blurb import MEMBERS
from bioptimus_jax.sets.corpora import NamedSet, settings_on
from bioptimus_jax.storage.files import read_json, read_jsonl, sha256

TWO = {'settings': ('standard', 'x'), 'setting': {'x': {'learning_rate': 1e-3}}}
TEN = ('biosses', 'bioasq', 'pubmedqa')
PLUG = """
from bioptimus_jax.ext import Features, Metric
def own_share(labels):
    return Metric('own_share', 'own', 'own', 'texts', ('right', 'all'), None, None)
MEASURES = {'own_share': own_share}
FEATURES = {'own_states': Features('own', 1, lambda states_BxLxD, spans_Bx2x2: states_BxLxD[:, 0] * FACTOR[0])}
"""
PIECES = {'gad': 128, 'chemprot': 256, 'ddi': 256, 'pubmedqa': 512, 'bioasq': 512}


@pytest.fixture(scope='module')
def model(tmp_path_factory):
    return save_encoder(tmp_path_factory.mktemp('model'), layers=1)


@pytest.fixture(scope='module')
def sets(tmp_path_factory):
    """Two sets of entities, one under the name that its authors give to a public set."""
    root = tmp_path_factory.mktemp('sets')
    for name in ('drugs', 'BC5CDR-chem-IOB'):
        save_set(root / name, (24, 10, 10))
    return root


def run_of(workdir, sets, models, **changes):
    e = Experiment.from_config(config.defaults())
    models = tuple(f'{name}={folder}' for name, folder in models.items())
    given = settings(folder=str(sets), models=models, **{'epochs': 1, **changes})
    e = dataclasses.replace(e, finetune=given, runtime=dataclasses.replace(e.runtime, workers=1))
    return Run(workdir, dataclasses.replace(e, stages=('finetune',)), quiet=True)


def test_blurb_is_searched_as_its_authors_state(monkeypatch):
    monkeypatch.setenv('BIOPTIMUS_DATA', '/data')
    monkeypatch.setenv('BIOPTIMUS_SOURCE', '/source')
    search, one = (Experiment.from_config(config.load(name)).finetune for name in ('blurb', 'blurb:one'))
    for name in MEMBERS:
        of_set = search.on(name)
        tried = [of_set.named(setting) for setting in of_set.settings]
        found = {(s.learning_rate, s.batch_sentences, s.epochs) for s in tried}
        assert found == {(rate, batch, 60) for rate in (1e-5, 3e-5, 5e-5) for batch in (16, 32)}
        assert len(of_set.seeds) == (10 if name in TEN else 5)
        assert {s.max_pieces for s in tried} == {PIECES.get(name, tried[0].max_pieces)}
        assert (len(one.on(name).settings), one.on(name).seeds) == (1, (0,))
        assert one.on(name).max_pieces == of_set.max_pieces


@pytest.mark.parametrize(
    ('folder', 'pieces'),
    [
        ('chemprot', 256),
        ('ChemProt', 256),
        ('chemprot-markers', 256),
        ('gad-fold2', 128),
        ('other', 128),
        ('HoC', 512),
    ],
)
def test_a_public_set_is_known_under_its_names(folder, pieces, monkeypatch):
    monkeypatch.setenv('BIOPTIMUS_DATA', '/data')
    monkeypatch.setenv('BIOPTIMUS_SOURCE', '/source')
    search = Experiment.from_config(config.load('blurb')).finetune
    assert settings_on(search, folder).max_pieces == pieces


def test_techniques_are_tried_on_the_sets_of_their_tables(monkeypatch):
    monkeypatch.setenv('BIOPTIMUS_DATA', '/data')
    monkeypatch.setenv('BIOPTIMUS_SOURCE', '/source')
    stability, low, small, removed = (
        Experiment.from_config(config.load(f'blurb:{name}')).finetune
        for name in ('stability', 'low', 'low_devel', 'removed')
    )
    tried = {name: set(stability.on(name).settings) - set(stability.settings) for name in stability.datasets}
    assert tried == {'biosses': {'with_devel'}, 'pubmedqa': {'one_id'}, 'bioasq': set()}
    found = [low.named(name) for name in low.settings]
    kinds = {(s.freeze_layers, s.layer_decay, s.reinit_layers) for s in found}
    assert kinds == {(0, 1.0, 0), (6, 1.0, 0), (0, 0.9, 0), (0, 1.0, 2)}
    assert {s.train_sentences for s in found} == {100, 500, 1000}
    assert {(s.train_choice, s.devel_sentences) for s in found} == {('stratified', 0)}
    assert all(s.devel_sentences == s.train_sentences for s in map(small.named, small.settings))
    assert [removed.named(name).remove_layers for name in removed.settings] == [0, 2, 4, 6]


def prints(folder, **keys):
    """The fingerprints of the cells of a model on the sets of a folder."""
    asked = Finetune(folder=str(folder / 'sets'), **keys)
    checksums = SimpleNamespace(sha256=sha256)
    return {x.fingerprint for x in build._cells(asked, {'m': folder / 'model'}, folder, checksums, 1, True)}


def test_cells_of_other_columns_are_other_cells(tmp_path):
    """Which columns are read decides what is learned; where none is named, cells are those of before."""
    for split in ('train', 'devel', 'test'):
        (tmp_path / 'sets' / 'own').mkdir(parents=True, exist_ok=True)
        (tmp_path / 'sets' / 'own' / f'{split}.tsv').write_text('a\tB-X\tB-Y\n')
    save_encoder(tmp_path / 'model')

    asked = {}, {'tag_column': '2'}, {'word_column': '1'}, {'word_column': '2'}
    found = [prints(tmp_path, **keys) for keys in asked]
    assert len(set.union(*found)) == 4
    assert prints(tmp_path, of_set={'own': {'tag_column': '2'}}) == found[1]
    assert prints(tmp_path, of_set={'other': {'tag_column': '2'}}) == found[0]


def test_cells_of_other_code_are_other_cells(tmp_path, model, monkeypatch):
    """A set, a setting or a plug-in may go and come back; what has the plug-in is then known by its code."""
    own, file = tmp_path / 'sets' / 'own', tmp_path / 'code_of_cells.py'
    own.mkdir(parents=True)
    (tmp_path / 'model').symlink_to(model)
    for split in ('train', 'devel', 'test'):
        (own / f'{split}.tsv').write_text('a text\ta\nanother\tb\n')

    def found(measures, factor, **keys):
        (own / 'set.json').write_text(json.dumps({'texts': [1], 'answer': 2, 'measures': measures}))
        file.write_text(f'{PLUG}FACTOR = {{0: {factor}}}\n')
        with plugged(file):
            e = dataclasses.replace(Experiment(), finetune=Finetune(folder=str(own.parent), **keys))
            names = {name for name in build.external_inputs(e) if name.startswith('plug-in:')}
            return prints(tmp_path, **keys), names

    featured = {'setting': {'x': {'features': 'own_states'}}, 'settings': ('x',)}
    for measures, keys, name in (
        (['own_share'], {}, 'measure own_share'),
        ([], featured, 'features own_states'),
    ):
        (one, named), (other, _) = (found(measures, factor, **keys) for factor in (1, 2))
        assert named == {f'plug-in:{name}'}
        assert not one & other
    assert found([], 1) == found([], 2)
    assert not found([], 1)[1]


def test_a_set_has_keys_settings_and_seeds_of_its_own(model, sets, tmp_path):
    given = {
        'settings': ('standard', 'slow'),
        'setting': {'slow': {'learning_rate': 1e-4}},
        'of_set': {
            'bc5-chem': {'seeds': (3, 4), 'settings': ('slow',), 'learning_rate': 0.5, 'max_pieces': 40},
            'drugs': {'epochs': 2, 'train_sentences': 20},
            'hoc': {'max_pieces': 512},  # public, and not here
        },
    }
    run = run_of(tmp_path, sets, {'a': model}, **given)
    manifest = execute(run, STAGES['finetune'])
    folder = run.workdir / 'finetune'
    cells = {(r['dataset'], r['setting'], r['seed']): r for r in read_jsonl(folder / 'results.jsonl')}
    wanted = [('BC5CDR-chem-IOB', 'slow', 3), ('BC5CDR-chem-IOB', 'slow', 4)]
    assert list(cells) == [*wanted, ('drugs', 'standard', 0), ('drugs', 'slow', 0)]
    assert [len(r['history']) for r in cells.values()] == [1, 1, 2, 2]
    kept = read_json(folder / 'a' / 'drugs' / 'slow' / 'seed-0' / 'scores.json')
    assert (kept['train_sentences'], kept['updates']) == (20, 6)
    longest = {r['dataset']: r['tokenizers']['a']['max_pieces'] for r in read_json(folder / 'lint.json')}
    assert longest == {'BC5CDR-chem-IOB': 40, 'drugs': 64}
    # A setting wins over its set: with the set's rate nothing is learned.
    alone = run_of(tmp_path / 'alone', sets, {'a': model}, learning_rate=1e-4, seeds=(3,), max_pieces=40)
    execute(alone, STAGES['finetune'])
    same = read_jsonl(alone.workdir / 'finetune' / 'results.jsonl')[0]
    assert same['history'] == cells[wanted[0]]['history']
    # Through the manifest, and with a seed more, nothing is made again.
    assert execute(run_of(tmp_path, sets, {'a': model}, **given), STAGES['finetune']) == manifest
    given['of_set'] = {**given['of_set'], 'drugs': {**given['of_set']['drugs'], 'seeds': (0, 1)}}
    counts = execute(run_of(tmp_path, sets, {'a': model}, **given), STAGES['finetune']).counts
    assert (counts['cells'], counts['kept']) == (6, 4)


@pytest.mark.parametrize(
    ('changes', 'message'),
    [
        ({'of_set': {'chemport': {}}}, r'of_set\.chemport: no such set .*; found: BC5CDR-chem-IOB, drugs'),
        ({'of_set': {'drugs': {'max_pieces': 512}}}, r'max_pieces: 512, but .* has 128 positions'),
        ({'of_set': {'drugs': {'freeze_layers': 2}}}, r'freeze_layers: 2, but .* has 1 layer'),
        ({'of_set': {'drugs': {'devel_sentences': 11}}}, r'devel_sentences: 11, but drugs has 10 of them'),
        (
            {**TWO, 'tuned_on': ('b',)},
            r"tuned_on: 'b' is not one of the models that are scored; there are a$",
        ),
        (
            {'tuned_on': ('a',)},
            r'tuned_on: .*, but no set that is learned from has 2 settings to choose from; name more',
        ),
        (
            {**TWO, 'halving': 3},
            r'halving: 3, but no set that is learned from has 3 settings to choose from; name more',
        ),
        ({**TWO, 'halving': 2}, r"halving: 2, but setting 'standard' of .* has 1 epoch, too few"),
        (
            {**TWO, 'halving': 2, 'epochs': 2, 'setting': {'x': {'learn_devel': True}}},
            r'setting\.x: learns devel of BC5CDR-chem-IOB, so it cannot be chosen on it; try it in another',
        ),
    ],
)
def test_what_a_set_cannot_have_is_refused_before_anything_is_made(model, sets, tmp_path, changes, message):
    run = run_of(tmp_path / 'run', sets, {'a': model}, **changes)
    with pytest.raises(ConfigError, match=r'^config\.finetune\.' + message) as error:
        execute(run, STAGES['finetune'])
    assert '\n' not in str(error.value)
    assert not (tmp_path / 'run' / 'finetune').exists()


@pytest.mark.parametrize(
    ('changes', 'message'),
    [
        ({'of_set': {'drugs': {'seeds': (1, 1)}}}, r'of_set\.drugs\.seeds: one or more different'),
        ({'of_set': {'drugs': {'settings': ('a',)}}}, r"of_set\.drugs\.settings: 'a' has no config\.fin"),
        ({'of_set': {'drugs': {'folder': 'a'}}}, r'of_set\.drugs\.folder: no such key; an entry may'),
        ({'halving': 1}, r'halving: 1 would stop nothing'),
        ({'of_set': {'drugs': {'halving': 2}}}, r'of_set\.drugs\.halving: no such key'),
        (
            {'keep': 'best', 'learn_devel': True},
            r"keep: 'best', but setting 'standard' learns devel, which then chooses none; set 'all'",
        ),
        ({'of_set': {'drugs': {'epochs': -1}}}, r'of_set\.drugs\.epochs: must be at least 0'),
    ],
)
def test_keys_of_sets_are_checked_like_all_others(changes, message):
    given = config.defaults()
    given.finetune.update(**changes)
    with pytest.raises(ConfigError, match=r'^config\.finetune\.' + message):
        Experiment.from_config(given)


def test_windows_that_overlap_must_leave_room_and_texts_have_none_that_do():
    settings = Finetune(max_pieces=64, settings=('standard',))
    with pytest.raises(
        ConfigError, match=r'overlap_pieces: 32 for drugs, but windows of .*=64 have room for at most 28'
    ):
        TASKS.load('entities').check_settings(settings, 'drugs')
    TASKS.load('entities').check_settings(dataclasses.replace(settings, overlap_pieces=28), 'drugs')
    for task in ('classes', 'similarity'):
        TASKS.load(task).check_settings(settings, 'opinions')
    given = config.defaults()
    given.finetune.update(max_pieces=64, task='classes')
    assert Experiment.from_config(given).finetune.max_pieces == 64


def test_the_command_line_gives_a_set_and_a_setting_any_key():
    given = config.load('finetune')
    for key, value in (
        ('of_set.gad.seeds', '3,4'),
        ('of_set.gad.epochs', '2'),
        ('setting.slow_0.1.learning_rate', '0.1'),
        ('settings', 'standard,slow_0.1'),
    ):
        config.override(given, f'finetune.{key}', value)
    found = Experiment.from_config(given, paths=False).finetune
    assert (found.on('gad').seeds, found.on('gad').epochs, found.on('hoc').epochs) == ((3, 4), 2, 0)
    assert found.on('gad').named('slow_0.1').learning_rate == 0.1
    for key in ('of_set.gad.nothing', 'of_set.gad.folder', 'of_set.seeds', 'setting.x.seeds'):
        with pytest.raises(ConfigError, match=f'config.finetune.{key}: '):
            config.override(given, f'finetune.{key}', '1')


RATES = {f'r{at}': {'learning_rate': rate} for at, rate in enumerate((1e-5, 5e-3, 1e-3, 2e-2))}
SEARCH = {'settings': tuple(RATES), 'setting': RATES, 'epochs': 4, 'datasets': ('drugs',)}


class Killed(BaseException):
    """An end that nothing but the end of the process is like."""


def results(run):
    folder = run.workdir / 'finetune'
    rows = {(r['model'], r['setting'], r['seed']): r for r in read_jsonl(folder / 'results.jsonl')}
    return {key: (r['devel'], r['test'], r['history']) for key, r in rows.items()}, folder


def test_halving_stops_the_worse_settings_and_leaves_the_rest_as_they_are(model, sets, tmp_path, monkeypatch):
    """Four settings by 2: two go on after one of four epochs, one after two of them; killed at every file it writes."""
    other = save_encoder(tmp_path / 'other', 'electra', layers=1)
    models = {'a': model, 'b': other}
    whole = run_of(tmp_path / 'whole', sets, models, **SEARCH)
    execute(whole, STAGES['finetune'])
    every, _ = results(whole)
    halved = run_of(tmp_path / 'halved', sets, models, **SEARCH, halving=2)
    # By hand, from the whole histories.
    left, stopped = {x: tuple(RATES) for x in models}, {}
    for epochs, number in ((1, 2), (2, 1)):
        for x, names in left.items():
            score = {n: max(e['devel_f1'] for e in every[x, n, 0][2][:epochs]) for n in names}
            ranked = sorted(names, key=lambda n: (-score[n], names.index(n)))
            left[x] = tuple(ranked[:number])
            stopped |= {(x, n): epochs for n in ranked[number:]}

    written, real, attempts = [], cells.write_sealed, 0

    def dies(path, record):
        if len(written) == limit:
            raise Killed
        if attempts % 2:  # before or behind the file
            real(path, record)
        written.append(path)
        if len(written) == limit:
            raise Killed
        if not attempts % 2:
            real(path, record)

    monkeypatch.setattr(cells, 'write_sealed', dies)
    for attempts, limit in enumerate((3, 7, 4)):  # noqa: B007
        written.clear()
        with pytest.raises(Killed):
            execute(halved, STAGES['finetune'])
    monkeypatch.undo()
    execute(halved, STAGES['finetune'])
    found, folder = results(halved)
    assert found == {key: every[key] for key in every if key[1] in left[key[0]]}
    assert len(found) == 2
    record = read_json(folder / 'search.json')
    assert {(r['models'][0], r['setting']): r['after'] for r in record['stopped']} == stopped
    assert (record['epochs'], record['epochs_of_all']) == (8 * 1 + 4 * 2 + 2 * 4, 8 * 4)
    read = {p.parts[-5:-1] for p in folder.rglob('scores.json')} | {
        p.parts[-5:-1] for p in folder.rglob('predictions.tsv')
    }
    assert {(x, n) for x, _, n, _ in read} == {(x, n) for x, names in left.items() for n in names}
    note = scores(read_measures(halved)).text()
    assert 'settings that stopped, 4 after 1 of 4 epochs, 2 after 2 of 4 epochs' in note
    assert '24 epochs were trained instead of 32' in note
    # Without halving the rest is trained, and what was is kept.
    counts = execute(run_of(halved.workdir, sets, models, **SEARCH), STAGES['finetune']).counts
    assert (counts['cells'], counts['kept']) == (8, 2)
    assert results(halved)[0] == every
    assert not (folder / 'search.json').exists()


def test_all_settings_of_a_set_that_nothing_is_learned_from_go_on(tmp_path):
    def cell(dataset, setting):
        place = {'model': 'a', 'model_folder': tmp_path, 'target': tmp_path, 'fingerprint': ''}
        of = {'setting': setting, 'settings': settings(epochs=4), 'seed': 0, 'threads': 1, 'quiet': True}
        return cells.Cell(dataset=dataset, **place, **of)

    def train(part):
        return {x.name: SimpleNamespace(history=[{'devel_f1': len(x.setting)}]) for x in part}

    kinds = NamedSet('drugs', tmp_path), NamedSet('mice', tmp_path, task='retrieval')
    every = [cell(one, setting) for one in kinds for setting in ('x', 'longer')]
    found = search.halved(every, 2, (), train)
    assert found.cells == every[1:]
    assert [(one.dataset, one.setting) for one in found.stopped] == [('drugs', 'x')]
    assert (found.epochs, search.epochs_of(found.cells)) == (2 * 2, 4)


def test_one_setting_for_all_models_is_chosen_on_some_of_them(model, sets, tmp_path):
    models = {'a': model, 'b': save_encoder(tmp_path / 'b', layers=2), 'c': model}
    run = run_of(tmp_path / 'run', sets, models, **SEARCH | {'epochs': 2}, tuned_on=('b', 'c'))
    execute(run, STAGES['finetune'])
    found, _ = results(run)
    means = {n: found['b', n, 0][0]['default']['f1'] + found['c', n, 0][0]['default']['f1'] for n in RATES}
    best = max(means, key=means.get)
    assert [key for key in found if key[0] == 'a'] == [('a', best, 0)]
    measures = read_measures(run)
    assert {measures.chosen(x, 'drugs') for x in models} == {best}
    assert (
        'chosen on devel over b, c; the other models have not been searched. 18 epochs'
        in scores(measures).text()
    )


def test_test_never_chooses_and_learned_devel_neither(tmp_path):
    def cell(setting, devel, test, **more):
        place = {'model': 'a', 'dataset': 'topic', 'task': 'classes', 'setting': setting, 'seed': 0}
        of = {split: {'default': {'accuracy': x}} for split, x in (('devel', devel), ('test', test))}
        return FineTuning(**place, **of, best_epoch=7, **more)

    rows = [cell('x', 0.7, 0.9), cell('y', 0.8, 0.4), cell('both', 1.0, 0.95, learned_devel=True)]
    m = Measures(Run(tmp_path, Experiment(), quiet=True), finetuned=rows)
    assert m.chosen('a', 'topic') == 'y'
    assert m.scores('a', 'topic') == [40]
    assert m.scores('a', 'topic', 'devel', setting='both') == []
    text = scores(m).text()
    assert 'y, chosen' in text
    assert 'nothing was chosen on it: topic (both, 7 epochs)' in text
    alone = Measures(m.run, finetuned=rows[2:])
    assert alone.scores('a', 'topic') == [95]  # what was decided before
