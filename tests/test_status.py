"""`bioptimus status`: what a folder says of a run, read without a change to it, also while somebody works in it."""

import dataclasses
import json
import os
import re
import subprocess
import sys

import pytest
from toy_commands import call, document, stamps
from toy_measures import ner_cell
from toy_stages import experiment, make_stage

from bioptimus_jax.cli import main as cli
from bioptimus_jax.errors import Stopped
from bioptimus_jax.experiment.stages import STAGES
from bioptimus_jax.pretrain.config import PAPER_PHASES
from bioptimus_jax.progress.console import Progress, numbered
from bioptimus_jax.records.record import plain
from bioptimus_jax.run.execute import execute
from bioptimus_jax.run.folder import Run
from bioptimus_jax.run.manifests import MANIFEST, STARTED, claim_cells, read_claim, read_manifest
from bioptimus_jax.storage.files import alone, is_held, write_json

TRAINED = [(20, 2.0), (40, 3.0), (60, 4.0)]  # step, seconds since step 0
SETS = ('drugs', 'genes')


def cut_off(run, folder):
    raise Stopped


@pytest.fixture
def run(tmp_path):
    """Corpus and vocabulary done, pre-training and fine-tuning cut off; what the others hold is of no concern."""
    e = experiment(finetune__models='0.1,0.4', finetune__seeds='1,2,3')
    e = dataclasses.replace(e, finetune=dataclasses.replace(e.finetune, of_set={'genes': {'seeds': (1,)}}))
    run = Run(tmp_path / 'run', e, quiet=True)
    execute(run, make_stage())
    files = {f'set {name}:train.tsv': tmp_path / name for name in SETS}
    for name in SETS:
        (tmp_path / name).write_text(name)
    for name in ('pretrain', 'finetune'):
        stage = dataclasses.replace(
            make_stage(
                cut_off, sections=(name,), external=lambda e, name=name: files if name == 'finetune' else []
            ),
            name=name,
        )
        with pytest.raises(Stopped):
            execute(run, stage)
    stops = [30 * number for number in range(1, 5)]
    phases = zip(PAPER_PHASES, [0, *stops], stops, strict=False)
    write_json(
        run.workdir / 'pretrain' / 'curriculum.json',
        [{'name': name, 'start': start, 'stop': stop} for name, start, stop in phases],
    )
    (run.workdir / 'pretrain' / 'checkpoints' / '60').mkdir(parents=True)
    run.metrics.write('pretrain', 0, kind='start', tokens=0)
    for step, seconds in TRAINED:
        speed = {'tokens_per_second': 1000.0, 'seconds': seconds, 'learning_rate': 1e-4}
        run.metrics.write('pretrain', step, kind='train', phase='0.2', tokens=50 * step, loss=2.5, **speed)
    run.metrics.write(
        'clock', 60, kind='spans', name='1.0', began=1.0, first=0, ended=False, spans={'train': 1.0}
    )
    for number, (model, dataset, seed) in enumerate(
        [('0.1', 'drugs', 1), ('0.1', 'drugs', 2), ('0.4', 'genes', 1)]
    ):
        scores = run.workdir / 'finetune' / model / dataset / 'standard' / f'seed-{seed}' / 'scores.json'
        write_json(scores, {})
        os.utime(scores, (0, 10 * number))
    return run


def test_a_run_says_what_is_done_and_how_long_it_will_take(run, capsys):
    before = stamps(run.workdir)
    found = document(capsys, 'status', str(run.workdir))
    state = {stage['stage']: stage['state'] for stage in found['stages']}
    assert list(state) == list(STAGES)
    begun = {'corpus': 'done', 'pretrain': 'unfinished', 'finetune': 'unfinished'}
    assert state == {**dict.fromkeys(STAGES, 'not begun'), **begun}
    assert found['pretrain'] == {
        'step': 60,
        'steps': 120,
        'phase': '0.2',
        'tokens': 3000,
        'loss': 2.5,
        'tokens_per_second': 1000.0,
        'seconds_left': 4,  # 60 steps took 4 s
    }
    # Two models; of drugs three seeds, of genes one.
    assert found['finetune'] == {'cells_done': 3, 'cells': 8, 'seconds_left': 50}  # one every ten seconds
    assert found['bytes'] == sum(p.stat().st_size for p in run.workdir.rglob('*') if p.is_file())
    assert found['last']['record']['step'] == 60
    assert 0 <= found['last']['seconds_ago'] < 600
    assert cli.main(['status', str(run.workdir)]) == 0
    text = capsys.readouterr().out
    lines = {line.split()[0]: re.split(r' {2,}', line.strip()) for line in text.splitlines() if line.strip()}
    assert set(lines) >= set(STAGES)  # in one line a stage
    assert len(text.splitlines()) == len(STAGES) + 6
    at = 'step 60 of 120, phase 0.2, loss 2.500, 1,000 tokens/s'
    assert lines['pretrain'][:4] == ['pretrain', 'unfinished', at, '4 s']
    assert lines['finetune'][:4] == ['finetune', 'unfinished', '3 of 8 cells', '50 s']
    assert lines['corpus'][1] == 'done'
    assert f'disk: {found["bytes"] / 1e3:.3g} kB\n' in text
    assert re.search(r'last record, .* ago: stage pretrain, step 60, kind train, ', text), text
    assert before == stamps(run.workdir)


def test_cells_of_another_configuration_are_not_done(run, capsys):
    claim = read_claim(run.workdir / 'finetune')
    cells = {f'0.1/drugs/standard/seed-{seed}': 'x' for seed in (1, 2, 3)}
    claim_cells(run.workdir / 'finetune', cells)
    assert claim
    assert document(capsys, 'status', str(run.workdir))['finetune']['cells_done'] == 0
    file = run.workdir / 'finetune' / '0.1' / 'drugs' / 'standard' / 'seed-1' / 'scores.json'
    write_json(file, plain(dataclasses.replace(ner_cell('0.1', 'drugs', 1, 0), print='x')))
    assert document(capsys, 'status', str(run.workdir))['finetune']['cells_done'] == 1


def test_cells_of_a_search_are_known_at_its_end_and_models_beside_those_of_phases_do_not_count(run, capsys):
    def cells(manifest=False, **config):
        finetune = {**asked['config'], **{f'finetune.{name}': value for name, value in config.items()}}
        (folder / STARTED).unlink(missing_ok=True)
        write_json(folder / (MANIFEST if manifest else STARTED), {**asked, 'config': finetune})
        return document(capsys, 'status', str(run.workdir))['finetune']['cells']

    folder, export = run.workdir / 'finetune', run.workdir / 'export'
    asked = read_claim(folder).json()
    for name in (
        '0.1',
        '0.1-generator',
        '0.1@50',
        '0.2',
        '0.2-generator',
    ):  # a model beside each of two phases
        write_json(export / name / 'config.json', {})
    export_done = {**read_manifest(run.workdir / 'corpus').json(), 'stage': 'export', 'files': {}}
    write_json(export / MANIFEST, {**export_done, 'counts': {'phases': ['0.1', '0.1@50', '0.2']}})
    assert cells(models=[]) == 8
    for search in ({'halving': 2}, {'tuned_on': ['0.1']}):
        assert cells(**search) is None
    assert cli.main(['status', str(run.workdir)]) == 0
    assert '  3 of ? cells  ' in capsys.readouterr().out
    assert cells(manifest=True, tuned_on=['0.1']) == 3
    moved = folder.rename(run.workdir.parent / 'finetune')  # taken from another run
    write_json(folder / MANIFEST, {**asked, 'folder': str(moved)})
    assert document(capsys, 'status', str(run.workdir))['finetune']['cells'] == 8


HOLD = """
import sys
from pathlib import Path
from bioptimus_jax.storage.files import alone
with alone(Path(sys.argv[1]), 'here'):
    print('held', flush=True)
    sys.stdin.read()
"""


def test_a_process_at_work_is_seen_and_not_disturbed(run, capsys):
    """A kill of it loses the steps after the checkpoint."""
    lock, checkpoints = run.lock('pretrain'), run.workdir / 'pretrain' / 'checkpoints'
    (checkpoints / '60').rename(checkpoints / '20')
    (checkpoints / '60.orbax-checkpoint-tmp').mkdir()  # not whole yet
    given = [sys.executable, '-c', HOLD, str(lock)]
    with subprocess.Popen(given, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline() == 'held\n'
        for _ in range(3):
            found = document(capsys, 'status', str(run.workdir))
            assert [s['stage'] for s in found['stages'] if s['state'] == 'at work'] == ['pretrain']
            assert (found['pretrain']['step'], found['pretrain']['seconds_left']) == (60, 4)
        process.kill()
        process.communicate()
    assert lock.exists()  # left by the kill; nobody holds it
    found = document(capsys, 'status', str(run.workdir))
    assert not [s for s in found['stages'] if s['state'] == 'at work']
    assert (found['pretrain']['step'], found['pretrain']['seconds_left']) == (20, 10)  # 20 steps took 2 s
    with alone(lock, 'here'):
        assert is_held(lock)


def test_whoever_takes_a_lock_waits_for_one_that_only_looks(tmp_path):
    import fcntl
    import threading

    lock = tmp_path / '.lock'
    with open(lock, 'w') as looking:
        fcntl.flock(looking, fcntl.LOCK_SH)
        threading.Timer(0.05, lambda: fcntl.flock(looking, fcntl.LOCK_UN)).start()
        with alone(lock, 'here'):
            assert lock.exists()


@pytest.mark.parametrize(
    ('place', 'code', 'expected'),
    [
        ('{tmp}/nowhere', 3, 'nowhere: no such run folder'),
        ('{tmp}', 3, 'holds no stage of a run; give the folder that was its --workdir'),
        ('s3://bucket/run', 2, 'RUN=s3://bucket/run: must be a folder of this machine'),
    ],
)
def test_what_is_no_run_here_is_one_line(place, code, expected, tmp_path, capsys):
    found, line = call(capsys, 'status', place.format(tmp=tmp_path))
    assert (found, '\n' in line) == (code, False)
    assert expected in line


def test_damaged_lines_and_a_run_without_numbers_do_no_harm(run, capsys):
    with open(run.workdir / 'metrics.jsonl', 'a') as file:
        file.write('{"stage": "pretrain", "st')
    assert document(capsys, 'status', str(run.workdir))['last']['record']['step'] == 60
    (run.workdir / 'metrics.jsonl').write_text('')
    (run.workdir / 'pretrain' / 'curriculum.json').unlink()
    found = document(capsys, 'status', str(run.workdir))
    assert (found['pretrain'], found['last']) == (None, None)
    assert json.dumps(found)


def test_one_is_not_called_several():
    assert [numbered(number, 'cell') for number in (0, 1, 2000)] == ['0 cells', '1 cell', '2,000 cells']


def test_progress_of_work_of_unknown_length_says_what_is_done_and_how_fast(monkeypatch, capsys):
    """And is no line for every step, as if each were the last."""
    clock = iter([0.0, 1.0, 2.0, 12.0])
    monkeypatch.setattr('bioptimus_jax.progress.console.time.monotonic', lambda: next(clock))
    monkeypatch.setattr('bioptimus_jax.progress.console.seconds_between', lambda usual: usual)
    progress = Progress('perplexity', 0, 'documents', False)
    for _ in range(3):
        progress.update(8)
    lines = capsys.readouterr().out.splitlines()
    assert lines == ['perplexity: 24 documents, 2.0/s']
