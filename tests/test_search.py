"""The search for a setting: keys of one set, BLURB's ranges, and cells that an earlier version has finished."""

import dataclasses

import pytest
from toy_sets import save_encoder, save_set, settings

from bioptimus_jax import config
from bioptimus_jax.errors import ConfigError
from bioptimus_jax.files import digest, read_json, read_jsonl
from bioptimus_jax.finetune import build
from bioptimus_jax.run import Run, execute
from bioptimus_jax.schema import Experiment, Finetune
from bioptimus_jax.sets.blurb import MEMBERS
from bioptimus_jax.stages import STAGES

TEN = ('biosses', 'bioasq', 'pubmedqa')
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


def test_cells_finished_before_there_were_more_keys_are_still_finished():
    """A digest that an earlier version has written."""
    before = 'b2ecd9de687930ac4b397ab2966d681846259b72a9cd22c6b675fdd448d37762'
    assert digest(build._deciding(Finetune().named('standard'))) == before
    with_sets = Finetune(of_set={'a': {'epochs': 3}}, seeds=(1,))
    assert digest(build._deciding(with_sets.on('b').named('standard'))) == before
    assert digest(build._deciding(with_sets.on('a').named('standard'))) != before


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
    counts = execute(run_of(tmp_path, sets, {'a': model}, **given), STAGES['finetune'])['counts']
    assert (counts['cells'], counts['kept']) == (6, 4)


@pytest.mark.parametrize(
    ('changes', 'message'),
    [
        ({'of_set': {'chemport': {}}}, r'of_set\.chemport: no such set .*; found: BC5CDR-chem-IOB, drugs'),
        ({'of_set': {'drugs': {'max_pieces': 512}}}, r'max_pieces: 512, but .* has 128 positions'),
        ({'of_set': {'drugs': {'freeze_layers': 2}}}, r'freeze_layers: 2, but .* has 1 layers'),
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
        ({'of_set': {'drugs': {'epochs': 0}}}, r'of_set\.drugs\.epochs: must be at least 1'),
        ({'of_set': {'drugs': {'max_pieces': 64}}}, r'of_set\.drugs\.overlap_pieces: must leave room'),
    ],
)
def test_keys_of_sets_are_checked_like_all_others(changes, message):
    given = config.defaults()
    given.finetune.update(**changes)
    with pytest.raises(ConfigError, match=r'^config\.finetune\.' + message):
        Experiment.from_config(given)
