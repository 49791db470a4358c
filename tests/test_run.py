"""Run folders: skip, refuse, replace, resume, base runs; files that are never half-written; metrics after a kill."""

import contextlib
import dataclasses
import functools
import itertools
import json
import os
import shutil
import stat
import sys
import time
import types
from pathlib import Path

import pytest
from toy_stages import CALLS, NOTHING_COUNTED, count_to_three, experiment, make_stage

from bioptimus_jax.config.fields import default_of
from bioptimus_jax.errors import ConfigError, InputError, Stopped
from bioptimus_jax.experiment.schema import Experiment
from bioptimus_jax.experiment.stages import STAGES, run_all
from bioptimus_jax.hosts.devices import AFRESH
from bioptimus_jax.hosts.workers import WorkerKilled
from bioptimus_jax.pretrain.config import PAPER_PHASES, Phase
from bioptimus_jax.progress.tracker import TRACKERS
from bioptimus_jax.records.manifests import Claim, Manifest
from bioptimus_jax.records.metrics import Resumed
from bioptimus_jax.run.execute import execute
from bioptimus_jax.run.fingerprint import result_keys
from bioptimus_jax.run.folder import Run
from bioptimus_jax.run.manifests import FolderOutcome, StageState, differences, read_manifest
from bioptimus_jax.storage import files
from bioptimus_jax.storage.files import atomic, read_json


@pytest.fixture(autouse=True)
def _no_calls():
    CALLS.clear()


def test_a_matching_stage_is_skipped_and_a_changed_one_is_refused_with_the_key(tmp_path):
    stage = make_stage()
    manifest = execute(Run(tmp_path, experiment(), quiet=True), stage)
    assert manifest.counts == {'numbers': 3}
    assert set(manifest.files) == {'numbers.txt'}
    execute(Run(tmp_path, experiment(), quiet=True), stage)
    assert CALLS == [5]
    with pytest.raises(ConfigError, match=r'config\.corpus\.min_words: 5 -> 9.*--replace'):
        execute(Run(tmp_path, experiment(corpus__min_words=9), quiet=True), stage)
    execute(Run(tmp_path, experiment(corpus__min_words=9), quiet=True), stage, replace=True)
    assert CALLS == [5, 9]


def test_runtime_keys_and_paths_do_not_enter_the_fingerprint(tmp_path):
    stage = make_stage(sections=('corpus', 'runtime', 'finetune'))
    execute(Run(tmp_path, experiment(), quiet=True), make_stage())
    execute(Run(tmp_path, experiment(corpus__inputs='elsewhere.txt'), quiet=True), make_stage())
    assert CALLS == [5]
    keys = result_keys(experiment(), stage.sections)
    assert 'finetune.epochs' in keys
    assert 'finetune.folder' not in keys


def test_a_key_that_the_program_has_learned_since_changes_nothing_at_its_default():
    changes = functools.partial(differences, default=functools.partial(default_of, Experiment))
    old = Claim(config={'evaluation.seed': 1729})
    new = {**old.config, 'evaluation.snapshots_per_phase': 1, 'phase.late.rate': 0.15, 'phases': ['0.1']}
    assert changes(old, Claim(config=new)) == ["config.phases: ['0.1', '0.2… -> ['0.1']"]
    new |= {'evaluation.snapshots_per_phase': 4, 'phase.late.rate': 0.2}
    found = changes(old, Claim(config=new))
    assert [change.split(':')[0] for change in found] == [
        'config.evaluation.snapshots_per_phase',
        'config.phase.late.rate',
        'config.phases',
    ]
    assert changes(Claim(config=new), old)  # a key that is gone


def test_inputs_count_by_content_not_by_name(tmp_path):
    first = tmp_path / 'a.txt'
    first.write_text('same')
    stage = make_stage(external=lambda e: [first])
    execute(Run(tmp_path / 'run', experiment(), quiet=True), stage)
    os.utime(first)
    execute(Run(tmp_path / 'run', experiment(), quiet=True), stage)
    assert len(CALLS) == 1
    first.write_text('other')
    with pytest.raises(ConfigError, match=r'a\.txt'):
        execute(Run(tmp_path / 'run', experiment(), quiet=True), stage)


@pytest.mark.parametrize(
    ('changes', 'stage', 'error', 'message'),
    [
        ({}, {'external': lambda e: [Path('b.txt')]}, InputError, r'b\.txt: no such file'),
        ({}, {'needs': lambda run: ('vocab',)}, InputError, 'run `bioptimus vocab` first'),
        ({'runtime__base_run': 'nowhere'}, {}, ConfigError, 'nowhere: no such run folder'),
    ],
)
def test_what_a_stage_needs_and_is_not_there_is_named(tmp_path, changes, stage, error, message):
    with pytest.raises(error, match=message):
        execute(Run(tmp_path, experiment(**changes), quiet=True), make_stage(**stage))


def test_a_corrected_input_needs_no_flag_where_nothing_was_made(tmp_path):
    def refuse(run, folder):
        (folder / 'documents').mkdir()
        raise InputError('bad')

    path = tmp_path / 'input.txt'
    path.write_text('bad')
    with pytest.raises(InputError, match='bad'):
        execute(Run(tmp_path, experiment(), quiet=True), make_stage(refuse, external=lambda e: [path]))
    path.write_text('good')
    execute(Run(tmp_path, experiment(), quiet=True), make_stage(external=lambda e: [path]))
    assert CALLS == [5]


def test_replace_that_keeps_what_matches_can_be_given_again(tmp_path):
    execute(Run(tmp_path, experiment(), quiet=True), make_stage())
    for _ in range(2):
        changed = Run(tmp_path, experiment(corpus__min_words=9), quiet=True)
        execute(changed, make_stage(), replace=True, keep_matching=True)
    assert CALLS == [5, 9]
    extended = Run(tmp_path, experiment(corpus__min_words=7), quiet=True)
    manifest = execute(extended, make_stage(changeable_keys=('min_words',)), replace=True, keep_matching=True)
    assert manifest.config['corpus.min_words'] == 7
    assert sorted(p.name for p in tmp_path.iterdir()) == ['corpus']


def test_lines_of_several_stages_say_which_one_it_is_and_the_time(tmp_path, capsys, monkeypatch):
    second = dataclasses.replace(make_stage(needs=lambda run: ('corpus',)), name='vocab')
    for stage in (make_stage(), second):
        monkeypatch.setitem(STAGES, stage.name, stage)
    run = Run(tmp_path, experiment(stages='corpus,vocab'))
    run.started -= 3725
    execute(run, make_stage())
    run_all(run)
    lines = capsys.readouterr().out.splitlines()
    assert lines[:2] == ['corpus: counts', 'corpus: done in 0 s']  # of one alone there is nothing to count
    of_both = [
        'corpus: up to date (stage 1 of 2, 1 h 2 min in all)',
        'vocab: counts (stage 2 of 2, 1 h 2 min in all)',
        'vocab: done in 0 s (stage 2 of 2, 1 h 2 min in all)',
    ]
    assert lines[2:] == of_both
    monkeypatch.setenv(AFRESH, f'{os.getpid()} {time.time() - 50}')  # given again in its own place
    assert 50 <= time.time() - Run(tmp_path, experiment(), quiet=True).started < 60


def refused_with(error, saves=False):
    """A stage that writes a record of its data, and in the end is refused."""

    def refuse(run, folder):
        (folder / 'lint.json').write_text(f'{run.config.corpus.min_words}')
        if saves:
            run.saved()
        raise error

    return refuse


@pytest.mark.parametrize(
    ('manifest', 'claim', 'error', 'saved', 'killed', 'left'),
    [
        (Manifest(), None, ConfigError('x'), False, False, FolderOutcome.FINISHED),
        (Manifest(), None, ConfigError('x'), True, False, FolderOutcome.FINISHED),
        (Manifest(), None, InputError('x'), False, False, FolderOutcome.FINISHED),
        (Manifest(), None, InputError('x'), False, True, FolderOutcome.FINISHED),
        (Manifest(), None, InputError('x'), True, False, FolderOutcome.PART),
        (None, Claim(config={}), InputError('x'), False, False, FolderOutcome.PART),
        (None, None, InputError('x'), True, False, FolderOutcome.PART),
        (None, None, InputError('x'), False, True, FolderOutcome.PART),
        (None, None, InputError('x'), False, False, FolderOutcome.NOTHING),
        (None, None, ConfigError('x'), False, False, FolderOutcome.NOTHING),
    ],
)
def test_how_a_refusal_leaves_the_folder(manifest, claim, error, saved, killed, left):
    assert StageState(manifest, claim).after_refusal(error, saved, killed) is left


@pytest.mark.parametrize(
    ('found', 'replace', 'keep_matching', 'empty', 'unwanted'),
    [
        (StageState(), True, False, True, False),
        (StageState(refusal=ConfigError('strange')), True, False, False, False),
        (StageState(Manifest()), True, False, False, True),
        (StageState(Manifest()), True, True, False, False),
        (StageState(Manifest(), refusal=ConfigError('x')), True, True, False, True),
        (StageState(Manifest(), refusal=ConfigError('x')), False, False, True, False),
        (StageState(None, Claim(config={})), True, False, False, False),
        (StageState(None, Claim(config={}), ('x: 1 -> 2',)), True, False, False, True),
        (StageState(None, Claim(config={}), refusal=ConfigError('x')), False, False, True, True),
        (StageState(None, Claim(config={}), refusal=ConfigError('x')), False, False, False, False),
    ],
)
def test_what_is_removed_to_be_made_anew(found, replace, keep_matching, empty, unwanted):
    assert found.is_unwanted(replace, keep_matching, empty) is unwanted


@pytest.mark.parametrize('error', [ConfigError('no'), InputError('bad')])
def test_a_refused_command_leaves_no_claim(tmp_path, error):
    with pytest.raises(type(error)):
        execute(Run(tmp_path, experiment(), quiet=True), make_stage(refused_with(error)))
    assert not list(tmp_path.iterdir())  # no folder, no lock
    execute(Run(tmp_path, experiment(corpus__min_words=9), quiet=True), make_stage())
    assert [p.name for p in tmp_path.iterdir()] == ['corpus']
    assert CALLS == [9]


@pytest.mark.parametrize(
    ('error', 'saves'), [(Stopped(), False), (InputError('bad'), True), (WorkerKilled('memory'), False)]
)
def test_what_was_saved_before_an_end_is_gone_on_from_with_the_same_configuration(tmp_path, error, saves):
    with pytest.raises(type(error)):
        execute(Run(tmp_path, experiment(), quiet=True), make_stage(refused_with(error, saves)))
    assert read_json(tmp_path / 'corpus' / 'manifest.json') is None
    with pytest.raises(ConfigError, match='min_words'):
        execute(Run(tmp_path, experiment(corpus__min_words=9), quiet=True), make_stage())
    assert 'lint.json' in execute(Run(tmp_path, experiment(), quiet=True), make_stage()).files


def test_what_kills_have_left_is_in_nobodys_way(tmp_path):
    folder = tmp_path / 'corpus'
    folder.mkdir()
    (folder / '..started.json.host-77.tmp').write_text('{')  # a kill at the rename of the claim
    (tmp_path / '.corpus.removed').mkdir()
    with pytest.raises(Stopped):
        execute(Run(tmp_path, experiment(), quiet=True), make_stage(stopped))
    (folder / '.part.a-host-1.tmp').write_text('half')
    (folder / '.model.host-77.tmp' / 'below').mkdir(parents=True)
    execute(Run(tmp_path, experiment(), quiet=True), make_stage())
    assert sorted(p.name for p in tmp_path.rglob('*')) == ['corpus', 'manifest.json', 'numbers.txt', 'part']
    (folder / '.started.json').write_text('{}')  # a kill right after the manifest
    execute(Run(tmp_path, experiment(), quiet=True), make_stage())
    assert not (folder / '.started.json').exists()


def stopped(run, folder):
    (folder / 'part').write_text('1')
    raise Stopped


DAMAGES = {
    'flipped': lambda content: bytes([content[0] ^ 1]) + content[1:],
    'cut': lambda content: content[: len(content) // 2],
    'empty': lambda content: b'',
    'other JSON': lambda content: b'[1]',
    'other encoding': lambda content: content.decode().encode('utf-16'),
}


@pytest.mark.parametrize('damage', DAMAGES)
def test_a_damaged_file_is_noticed_by_its_stage_and_by_later_ones(tmp_path, damage):
    stage = make_stage()
    execute(Run(tmp_path, experiment(), quiet=True), stage)
    path = tmp_path / 'corpus' / 'numbers.txt'
    whole = path.read_bytes()
    path.write_bytes(DAMAGES[damage](whole))
    said = r'corpus/numbers\.txt: is not what was written.*delete it and run `bioptimus corpus`'
    for read in (lambda run: run.folder('corpus'), lambda run: execute(run, stage)):
        with pytest.raises(InputError, match=said):
            read(Run(tmp_path, experiment(), quiet=True))
    path.unlink()
    with pytest.raises(InputError, match=r'numbers\.txt: is missing.*run `bioptimus corpus`'):
        Run(tmp_path, experiment(), quiet=True).folder('corpus')
    execute(Run(tmp_path, experiment(), quiet=True), stage)  # what is missing is made again without a flag
    assert path.read_bytes() == whole
    path.write_bytes(DAMAGES[damage](whole))
    execute(Run(tmp_path, experiment(), quiet=True), stage, replace=True, keep_matching=True)
    assert (path.read_bytes(), CALLS) == (whole, [5, 5, 5])


def test_files_are_compared_once_and_cards_and_checkpoints_not(tmp_path, monkeypatch):
    def build(run, folder):
        for name in ('large.bin', '0.1/README.md', 'checkpoints/10/state'):
            with atomic(folder / name, 'wb') as file:
                file.write(bytes(files.REMEMBERED_BYTES if name == 'large.bin' else 1))
        return NOTHING_COUNTED

    execute(Run(tmp_path, experiment(), quiet=True), make_stage(build))
    (tmp_path / 'corpus' / '0.1' / 'README.md').write_text('of my own')
    (tmp_path / 'corpus' / 'checkpoints' / '10' / 'state').unlink()
    monkeypatch.setattr(files, 'sha256', lambda path: pytest.fail(f'{path} read again'))
    later = Run(tmp_path, experiment(), quiet=True)
    assert later.folder('corpus') == later.folder('corpus')
    monkeypatch.undo()
    (tmp_path / 'corpus' / 'large.bin').write_bytes(b'1' + bytes(files.REMEMBERED_BYTES - 1))
    with pytest.raises(InputError, match=r'large\.bin'):
        Run(tmp_path, experiment(), quiet=True).folder('corpus')


RECORDS = (
    '{',
    '[]',
    '3',
    '{"a": 1}',
    '{"config": []}',
    '{"content": "x", "files": {"a": 1}}',
    '\x00',
    '[' * 10**5,
)


@pytest.mark.parametrize('name', ['manifest.json', '.started.json'])
def test_a_damaged_record_is_one_line(tmp_path, name):
    execute(Run(tmp_path, experiment(), quiet=True), make_stage())
    path = tmp_path / 'corpus' / name
    whole = json.loads((tmp_path / 'corpus' / 'manifest.json').read_text())
    flipped = json.dumps(whole | {'counts': {'numbers': 4}})
    (tmp_path / 'corpus' / 'manifest.json').unlink()
    stages = [make_stage()]
    if name == 'manifest.json':
        stages.append(dataclasses.replace(make_stage(needs=lambda run: ('corpus',)), name='vocab'))
    for text, stage in itertools.product((*RECORDS, flipped), stages):
        path.write_text(text)
        with pytest.raises(InputError, match=rf'corpus/{name}: is damaged .* remove .*corpus'):
            execute(Run(tmp_path, experiment(), quiet=True), stage)
    path.unlink()
    with pytest.raises(ConfigError, match=r'manifest\.json is gone: restore it'):
        execute(Run(tmp_path, experiment(), quiet=True), make_stage())


def test_a_folder_of_somebody_else_is_refused(tmp_path):
    (tmp_path / 'corpus').mkdir()
    (tmp_path / 'corpus' / 'thesis.doc').write_text('precious')
    for replace in (False, True):
        with pytest.raises(ConfigError, match='no stage of this program'):
            execute(Run(tmp_path, experiment(), quiet=True), make_stage(), replace=replace)
    assert (tmp_path / 'corpus' / 'thesis.doc').exists()


def test_a_base_run_lends_what_matches(tmp_path):
    execute(Run(tmp_path / 'base', experiment(), quiet=True), make_stage())
    arm = Run(tmp_path / 'arm', experiment(runtime__base_run=tmp_path / 'base'), quiet=True)
    execute(arm, make_stage())
    assert arm.folder('corpus') == tmp_path / 'base' / 'corpus'
    other = experiment(runtime__base_run=tmp_path / 'base', corpus__min_words=7)
    execute(Run(tmp_path / 'other', other, quiet=True), make_stage())
    assert CALLS == [5, 7]


def test_a_folder_of_runs_lends_the_stage_of_whichever_matches(tmp_path):
    execute(Run(tmp_path / 'runs' / 'a', experiment(corpus__min_words=7), quiet=True), make_stage())
    execute(Run(tmp_path / 'runs' / 'b', experiment(), quiet=True), make_stage())
    arm = Run(tmp_path / 'runs' / 'c', experiment(runtime__base_run=tmp_path / 'runs'), quiet=True)
    assert execute(arm, make_stage()).folder == str(tmp_path / 'runs' / 'b' / 'corpus')
    other = experiment(runtime__base_run=tmp_path / 'runs', corpus__min_words=9)
    assert execute(Run(tmp_path / 'runs' / 'd', other, quiet=True), make_stage()).folder is None


def test_a_base_run_lends_nothing_damaged_and_is_told_from_afterwards(tmp_path):
    execute(Run(tmp_path / 'base', experiment(), quiet=True), make_stage())
    arm = experiment(runtime__base_run=tmp_path / 'base')
    execute(Run(tmp_path / 'arm', arm, quiet=True), make_stage())
    (tmp_path / 'base' / 'corpus' / 'numbers.txt').unlink()
    with pytest.raises(
        InputError, match=r'base/corpus/numbers\.txt: is missing; .*run `bioptimus corpus` again'
    ):
        execute(Run(tmp_path / 'arm', arm, quiet=True), make_stage())
    other = Run(tmp_path / 'other', arm, quiet=True)
    execute(other, make_stage())
    assert other.folder('corpus') == tmp_path / 'other' / 'corpus'


def test_a_stage_of_a_base_run_that_grows_is_copied_with_its_lines(tmp_path):
    """Lines of an own attempt of before are not among them; a growth that is refused leaves a finished stage."""

    def make(folder, words, step, error=None, **more):
        def build(run, into):
            run.metrics.write('corpus', step, kind='words', words=words)
            run.metrics.write('clock', step, kind='spans')
            if not (into / 'numbers.txt').exists():
                (into / 'numbers.txt').write_text(str(words))
            if error:
                (into / 'more.txt').write_text('more')
                raise error
            return NOTHING_COUNTED

        stage = make_stage(build, changeable_keys=('min_words',), lines=('clock',))
        run = Run(folder, experiment(corpus__min_words=words, **more), quiet=True)
        execute(run, stage, replace=not more)
        return [(r['step'], r.get('words')) for r in run.metrics.of('corpus')], len(run.metrics.of('clock'))

    arm, base = tmp_path / 'arm', {'runtime__base_run': tmp_path / 'base'}
    assert make(tmp_path / 'base', 5, 2) == ([(2, 5)], 1)
    assert make(arm, 7, 1) == ([(1, 7)], 1)
    shutil.rmtree(arm / 'corpus')
    make(arm, 5, 0, **base)  # taken
    assert read_manifest(arm / 'corpus').folder
    with pytest.raises(InputError, match='bad'):
        make(arm, 6, 3, InputError('bad'), **base)
    assert read_manifest(arm / 'corpus').folder is None
    assert make(arm, 9, 4, **base) == ([(2, 5), (3, 6), (4, 9)], 3)
    assert (arm / 'corpus' / 'numbers.txt').read_text() == '5'
    assert (tmp_path / 'base' / 'corpus' / 'numbers.txt').read_text() == '5'


def test_a_base_run_lends_no_stage_that_reads_whatever_is_there(tmp_path):
    execute(Run(tmp_path / 'base', experiment(), quiet=True), make_stage(always=True))
    arm = Run(tmp_path / 'arm', experiment(runtime__base_run=tmp_path / 'base'), quiet=True)
    execute(arm, make_stage(always=True))
    assert arm.folder('corpus') == tmp_path / 'arm' / 'corpus'


def test_extendable_keys_continue(tmp_path):
    stage = make_stage(changeable_keys=('min_words',))
    execute(Run(tmp_path, experiment(), quiet=True), stage)
    execute(Run(tmp_path, experiment(corpus__min_words=9), quiet=True), stage)
    assert CALLS == [5, 9]
    with pytest.raises(ConfigError, match='shards'):
        execute(Run(tmp_path, experiment(corpus__min_words=9, corpus__shards=2), quiet=True), stage)


@pytest.mark.parametrize(('always', 'seconds'), [(False, 10 + 15 + 15 + 15), (True, 15)])
def test_a_stage_took_the_time_of_all_its_attempts(always, seconds, tmp_path, monkeypatch):
    """An attempt that is killed counts until it saved; one that is stopped, one that ends and an extension count whole.

    What is made anew each time has the time of the last one alone.
    """
    now = [0.0]
    clocks = types.SimpleNamespace(time=time.time, monotonic=lambda: now[0])
    monkeypatch.setattr('bioptimus_jax.run.execute.time', clocks)

    def attempt(error=None, **changes):
        def build(run, folder):
            now[0] += 10
            run.saved()
            now[0] += 5
            if error:
                raise error
            return count_to_three(run, folder)

        stage = make_stage(build, changeable_keys=('min_words',), always=always)
        return execute(Run(tmp_path, experiment(**changes), quiet=True), stage)

    for error in (KeyboardInterrupt(), Stopped()):
        with pytest.raises(type(error)):
            attempt(error)
    attempt()
    assert attempt(corpus__min_words=9).seconds == seconds


@pytest.mark.parametrize('finished', [True, False])
def test_new_entries_continue_and_are_compared_from_then_on(finished, tmp_path):
    """They are compared where an attempt without them was refused in between, too."""

    def begin(build, **more):
        phases = dataclasses.replace(experiment(), phase={**PAPER_PHASES, **more})
        execute(
            Run(tmp_path, phases, quiet=True),
            make_stage(build, sections=('corpus', 'phase'), open_ended_inputs=('phase.',)),
        )

    last = count_to_three if finished else refused_with(Stopped())
    begin(count_to_three)
    with contextlib.nullcontext() if finished else pytest.raises(Stopped):
        begin(last, more=Phase(rate=0.3), plain=Phase())
    with contextlib.nullcontext() if finished else pytest.raises(ConfigError, match='no'):
        begin(count_to_three if finished else refused_with(ConfigError('no')), more=Phase(rate=0.3))
    for other, message in (
        ({'more': Phase(rate=0.3), 'plain': Phase(rate=0.3)}, r'phase\.plain\.rate: 0\.15 -> 0\.3'),
        ({}, r'phase\.more\.rate: 0\.3 -> 0\.'),
        ({'more': Phase(rate=0.2)}, r'phase\.more\.rate: 0\.3 -> 0\.'),
    ):
        with pytest.raises(ConfigError, match=message):
            begin(count_to_three, **other)


def test_atomic_leaves_the_old_file_when_writing_fails(tmp_path):
    path = tmp_path / 'file.json'
    path.write_text('old')

    def write_half():
        with atomic(path) as file:
            file.write('new')
            raise RuntimeError

    with pytest.raises(RuntimeError):
        write_half()
    assert path.read_text() == 'old'
    assert os.listdir(tmp_path) == ['file.json']


def test_a_file_has_the_mode_of_the_umask_whoever_wrote_it(tmp_path):
    before = os.umask(0o027)
    try:
        with files.complete(tmp_path / 'model') as hidden:
            hidden.unlink()
            os.close(os.open(hidden, os.O_WRONLY | os.O_CREAT, 0o600))
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / 'model').stat().st_mode) == 0o640
    assert os.listdir(tmp_path) == ['model']


def test_a_lock_is_gone_afterwards_and_another_one_does_not_count(tmp_path):
    lock = tmp_path / '.lock'
    with files.alone(lock, 'here'), pytest.raises(ConfigError, match='here'), files.alone(lock, 'here'):
        pass
    assert not lock.exists()
    with files.alone(lock, 'here'):
        lock.unlink()  # by hand: whoever comes makes one of its own
        with files.alone(lock, 'here'):
            assert lock.exists()


def test_lines_of_json_are_all_read_or_the_damaged_one_is_named(tmp_path):
    file, records = tmp_path / 'lines.jsonl', [{'a': '\u2028'}, {'b': [1]}, {}]
    assert files.intact_jsonl(file) == []
    files.write_jsonl(file, records)
    whole = file.read_bytes()
    file.write_bytes(b'\n' + whole.replace(b'\n', b'\r\n\n'))
    assert files.read_jsonl(file) == records
    assert [number for number, _ in files.numbered_jsonl(file)] == [2, 4, 6]
    for cut in range(len(whole)):  # as a kill would leave it
        file.write_bytes(whole[:cut])
        kept = files.intact_jsonl(file)
        assert kept == records[: len(kept)]
        begun = sum(bool(line) for line in whole[:cut].split(b'\n'))
        assert len(kept) in (begun, begun - 1)
        if len(kept) < begun:
            with pytest.raises(
                InputError, match=rf'lines.jsonl, line {len(kept) + 1}: is damaged .*; restore'
            ):
                files.read_jsonl(file)
    for damaged in (b'[1]', b'\xff', b'[' * 100_000):
        file.write_bytes(whole + damaged)
        assert files.intact_jsonl(file) == records
        with pytest.raises(InputError, match=r'line 4: is damaged .*; look'):
            files.read_jsonl(file, 'look')


def test_metrics_count_a_repeated_step_once_and_survive_a_cut_line(tmp_path):
    run = Run(tmp_path, experiment(), quiet=True)
    run.metrics.write('pretrain', 10, kind='train', loss=3.0)
    run.metrics.write('pretrain', 10, kind='evaluation', loss=9.0)
    run.metrics.write('finetune', 1, loss=0.0)
    with open(tmp_path / 'metrics.jsonl', 'a') as file:
        file.write(json.dumps({'stage': 'pretrain', 'step': 12})[:-4])
    run.metrics.write('pretrain', 10, kind='train', loss=2.0)
    assert [(r['kind'], r['loss']) for r in run.metrics.of('pretrain')] == [
        ('train', 2.0),
        ('evaluation', 9.0),
    ]


def test_damaged_lines_of_metrics_are_left_out(tmp_path):
    run = Run(tmp_path, experiment(), quiet=True)
    run.metrics.write('pretrain', 10, kind='train', loss=3.0)
    with open(tmp_path / 'metrics.jsonl', 'ab') as file:
        file.write(b'[1]\n3\n{"stage": "pretrain"}\n{"stage": "pretrain", "step": {}}\n\xff\xfe\n')
        file.write(b'{"stage": "pretrain", "step": 12, "kind": [1]}\n')
    assert [r['step'] for r in run.metrics.of('pretrain')] == [10, 12]


def test_metrics_of_a_stage_made_anew_are_its_own(tmp_path):
    run = Run(tmp_path, experiment(), quiet=True)
    run.metrics.write('pretrain', 30, kind='evaluation', loss=3.0)
    run.metrics.write('finetune', 1, kind='epoch', loss=1.0)
    run.metrics.write('pretrain', 0, kind='start')
    run.metrics.write('pretrain', 20, kind='evaluation', loss=2.0)
    assert [(r['step'], r['loss']) for r in run.metrics.of('pretrain')] == [(20, 2.0)]
    assert len(run.metrics.of('finetune')) == 1


def test_metrics_of_steps_after_the_one_that_a_stage_goes_on_from_are_lost(tmp_path):
    run = Run(tmp_path, experiment(), quiet=True)
    run.metrics.write('finetune', 30, kind='epoch', loss=1.0)
    for step in (10, 20, 30):
        run.metrics.write('pretrain', step, kind='train', loss=3.0)
    run.metrics.add('pretrain', Resumed(step=20))
    run.metrics.write('pretrain', 25, kind='train', loss=2.0)
    assert [(r['step'], r['loss']) for r in run.metrics.of('pretrain')] == [(10, 3.0), (20, 3.0), (25, 2.0)]
    assert len(run.metrics.of('finetune')) == 1


def test_two_processes_cannot_work_on_one_stage(tmp_path):
    def nested(run, folder):
        execute(Run(tmp_path, experiment(), quiet=True), make_stage())
        return NOTHING_COUNTED

    with pytest.raises(ConfigError, match='another process'):
        execute(Run(tmp_path, experiment(), quiet=True), make_stage(nested))


def events(folder):
    """(tag, step, value) of TensorBoard's records: length, its checksum, an Event, its checksum."""
    from tensorboardX.proto.event_pb2 import Event

    [file] = folder.glob('events*')
    data = file.read_bytes()
    while data:
        size = int.from_bytes(data[:8], 'little')
        event = Event.FromString(data[12 : 12 + size])
        yield from ((value.tag, event.step, value.simple_value) for value in event.summary.value)
        data = data[16 + size :]


@pytest.mark.parametrize('key', ['tensorboard=true', 'trackers=tensorboard'])
def test_tensorboard_has_the_numbers_of_the_metrics(key, tmp_path):
    name, _, value = key.partition('=')
    run = Run(tmp_path, experiment(**{f'runtime__{name}': value}), quiet=True)
    for step in (10, 20):
        run.metrics.write('pretrain', step, kind='train', loss=3.0 + step, phase='0.1', phase_end=True)
    assert [r['loss'] for r in run.metrics.of('pretrain')] == [13.0, 23.0]
    cells = [
        f'0.1/drugs/standard/seed-{seed}' for seed in (1, 2)
    ]  # a series each; processes are one together
    for cell in cells:
        run.metrics.write('finetune', 1, kind='epoch', name=cell, loss=0.5)
    for began in (4.0, 8.0):
        run.metrics.write('clock', 20, kind='spans', name=f'{began:.3f}', began=began, first=None)
    expected, deadline = (
        [
            *(('pretrain/train/loss', step, 3.0 + step) for step in (10, 20)),
            *((f'finetune/epoch/{cell}/loss', 1, 0.5) for cell in cells),
            *(('clock/spans/began', 20, began) for began in (4.0, 8.0)),
        ],
        time.monotonic() + 20,
    )
    while (found := list(events(tmp_path / 'tensorboard'))) != expected and time.monotonic() < deadline:
        time.sleep(0.05)  # a thread writes them
    assert found == expected


@pytest.mark.parametrize(
    ('name', 'left'),
    [('wandb', 'wandb/offline-run*/*.wandb'), ('trackio', 'trackio/*.db'), ('mlflow', 'mlflow.db')],
)
def test_a_tracker_goes_on_with_the_run_of_the_same_folder(name, left, tmp_path, monkeypatch):
    monkeypatch.setenv('WANDB_MODE', 'offline')
    monkeypatch.setenv('TRACKIO_DIR', str(tmp_path / 'trackio'))
    pytest.importorskip(TRACKERS.load(name).package)
    for step in (10, 20):
        run = Run(tmp_path, experiment(runtime__trackers=name))
        run.metrics.write('pretrain', step, kind='train', loss=3.0 + step)
        run.metrics.write('finetune', 1, kind='epoch', name='a+b@50/drugs/standard/seed-1', loss=0.5)
        assert run.metrics._trackers.names == [name]
    assert list(tmp_path.glob(left))


def test_a_tracker_that_lacks_its_package_is_refused_and_one_that_fails_holds_nothing_up(
    tmp_path, monkeypatch, capsys
):
    monkeypatch.setitem(sys.modules, 'wandb', None)
    with pytest.raises(ConfigError) as refused:
        execute(Run(tmp_path, experiment(runtime__trackers='wandb'), quiet=True), make_stage())
    assert str(refused.value) == (
        'config.runtime.trackers: wandb needs the package wandb, which is not installed; `pip install wandb`'
    )
    assert list(tmp_path.iterdir()) == []
    (tmp_path / 'tensorboard').touch()
    run = Run(tmp_path, experiment(runtime__trackers='tensorboard'))
    run.metrics.write('pretrain', 10, loss=1.0)
    run.metrics.write('pretrain', 20, loss=2.0)
    assert capsys.readouterr().out.count('WARNING: tensorboard writes no more (') == 1
    assert [r['loss'] for r in run.metrics.of('pretrain')] == [1.0, 2.0]


def test_a_refused_extension_leaves_the_stage_finished(tmp_path):
    execute(Run(tmp_path, experiment(), quiet=True), make_stage(changeable_keys=('min_words',)))
    for error in (ConfigError('no'), InputError('no')):
        with pytest.raises(type(error), match='no'):
            execute(
                Run(tmp_path, experiment(corpus__min_words=9), quiet=True),
                make_stage(refused_with(error), changeable_keys=('min_words',)),
            )
        execute(Run(tmp_path, experiment(), quiet=True), make_stage())
    assert CALLS == [5]


def test_checksums_are_remembered_until_a_file_changes(tmp_path, monkeypatch):
    large, memory = tmp_path / 'large', tmp_path / 'memory.json'
    large.write_bytes(bytes(files.REMEMBERED_BYTES))
    told: list[float] = []
    first = files.Checksums(memory)
    checksum = first.sha256(large, told.append)
    first.save()
    monkeypatch.setattr(files, 'sha256', lambda path: pytest.fail('read again'))
    assert files.Checksums(memory).sha256(large, told.append) == checksum
    assert told == [files.REMEMBERED_BYTES / 1e6]
    monkeypatch.undo()
    large.write_bytes(b'1' + bytes(files.REMEMBERED_BYTES))
    assert files.Checksums(memory).sha256(large) != checksum
    memory.write_text('{')
    assert files.Checksums(memory).sha256(large) == files.sha256(large)
