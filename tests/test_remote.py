"""Runs and inputs in a bucket, with stages that take no time: nothing is sent twice, a kill at any moment leaves a
whole run, two machines do not write into one, inputs that change are seen, every failure is one line."""

import contextlib
import glob
import http.client
import os
import re
import shutil
import subprocess
import sys
import time
import urllib.parse
from pathlib import Path

import pytest
from toy_buckets import assert_whole, content_of, free_port
from toy_stages import NOTHING_COUNTED

from bioptimus_jax.cli.main import BAD_INPUT, USAGE, main
from bioptimus_jax.config.fields import walk
from bioptimus_jax.errors import ConfigError, InputError, Stopped
from bioptimus_jax.experiment import config
from bioptimus_jax.experiment.schema import Experiment
from bioptimus_jax.hosts.remote import lease, store
from bioptimus_jax.hosts.remote.inputs import READ_BY, local_place, with_local_inputs
from bioptimus_jax.hosts.remote.store import Store, _matches
from bioptimus_jax.run.execute import execute
from bioptimus_jax.run.session import open_run
from bioptimus_jax.run.stage import Stage
from bioptimus_jax.storage.files import atomic

pytest.importorskip('obstore')
PAGE = Path(__file__).resolve().parents[1] / 'docs' / 'howto' / 'bucket.md'


@pytest.fixture
def impatient(monkeypatch):
    """A lease that nobody renews is taken over at once."""
    monkeypatch.setattr(lease, 'STALE_SECONDS', 0.1)
    monkeypatch.setattr(lease, 'LOOK_SECONDS', 0.02)


def stage_of(files):
    """A stage `corpus` that writes these texts, and counts how often it did."""

    def build(run, folder):
        calls.append(dict(files))
        for name, text in files.items():
            with atomic(folder / name) as file:
                file.write(text)
        return NOTHING_COUNTED

    calls = []
    return Stage('corpus', 'texts', '', '', ('corpus',), lambda run: (), build), calls


def experiment(**changes):
    loaded = config.defaults()
    for dotted, text in changes.items():
        config.override(loaded, dotted.replace('__', '.'), str(text))
    return Experiment.from_config(loaded)


def plain_config(folder):
    """A config file of nothing but defaults."""
    text = 'from bioptimus_jax.ext import defaults\n\ndef get_config(argument=""):\n    return defaults()\n'
    (folder / 'plain.py').write_text(text)
    return folder / 'plain.py'


def opened(bucket, machine, **changes):
    """The run in `bucket` on a machine of its own."""
    e = experiment(runtime__staging=machine, runtime__push_seconds=0, **changes)
    return open_run(f'file://{bucket}', e, (), lambda run: None)


def test_replacing_and_deleting_are_mirrored_and_nothing_is_sent_twice(tmp_path, monkeypatch):
    sent = []
    upload = Store.upload

    def watched(self, files, advance=lambda size: None):
        files = list(files)
        sent.extend(name for _, name, _ in files)
        upload(self, files, advance)

    monkeypatch.setattr(Store, 'upload', watched)
    stage, calls = stage_of({'a': 'one', 'b/c': 'two', 'same': 'kept'})
    with opened(tmp_path / 'bucket', tmp_path / 'm1') as run:
        execute(run, stage)
    assert sorted(n for n in sent if '/a' in n or 'same' in n) == ['corpus/a', 'corpus/same']
    assert sent[-1] == 'corpus/manifest.json'
    sent.clear()
    with opened(tmp_path / 'bucket', tmp_path / 'm1') as run:
        execute(run, stage)
    assert sent == []
    assert len(calls) == 1
    changed, _ = stage_of({'a': 'three', 'same': 'kept'})
    with opened(tmp_path / 'bucket', tmp_path / 'm2', corpus__min_words=9) as run:
        with pytest.raises(ConfigError, match='min_words'):
            execute(run, changed)
        execute(run, changed, replace=True)
    assert_whole(tmp_path / 'bucket')
    assert sorted(content_of(tmp_path / 'bucket')) == ['corpus/a', 'corpus/manifest.json', 'corpus/same']
    assert (tmp_path / 'bucket' / 'corpus' / 'a').read_text() == 'three'
    # The first machine has the old files, and takes the new ones.
    with opened(tmp_path / 'bucket', tmp_path / 'm1', corpus__min_words=9) as run:
        execute(run, changed)
        assert (run.folder('corpus') / 'a').read_text() == 'three'
        assert not (run.folder('corpus') / 'b').exists()


class Killed(BaseException):
    pass


def count_writes(patched, left):
    """Count writes: from now on every write, upload, copy and deletion takes one of left['allowed']; the next one is a
    kill."""

    def spend():
        if left['allowed'] == 0:
            raise Killed
        left['allowed'] -= 1

    def counted(name):
        original = getattr(Store, name)

        def one_at_a_time(self, things, *rest):
            for thing in list(things):
                spend()
                original(self, [thing], *rest)

        def single(self, *arguments):
            if not str(arguments[0]).endswith('lease.json'):
                spend()
            original(self, *arguments)

        return one_at_a_time if name in ('upload', 'remove') else single

    for name in ('upload', 'remove', 'copy', 'write'):
        patched.setattr(Store, name, counted(name))


def test_a_kill_at_any_write_leaves_the_run_before_or_the_run_after(tmp_path, impatient, monkeypatch):
    """Every operation of a push that changes, adds and deletes is, in turn, the last one of a machine."""
    before, _ = stage_of({'a': 'one', 'gone': 'x', 'b': 'same'})
    after, _ = stage_of({'a': 'three', 'new': 'y', 'b': 'same'})
    with opened(tmp_path / 'start', tmp_path / 'm0') as run:
        execute(run, before)
    left = {'allowed': 0}
    outcomes = []
    for allowed in range(40):
        bucket = tmp_path / f'bucket-{allowed}'
        shutil.copytree(tmp_path / 'start', bucket)
        left['allowed'] = 10**9
        with monkeypatch.context() as patched:
            count_writes(patched, left)
            killed = False
            try:
                with opened(bucket, tmp_path / f'm-{allowed}', corpus__min_words=9) as run:
                    left['allowed'] = allowed
                    execute(run, after, replace=True)
                    left['allowed'] = 10**9
            except Killed:
                killed = True
        with opened(bucket, tmp_path / f'next-{allowed}', corpus__min_words=9) as run:
            finished = run.manifest('corpus')
            if finished:
                texts = {p.name: p.read_text() for p in run.folder('corpus').iterdir() if p.name[0] != '.'}
                del texts['manifest.json']
                old = finished.settings['corpus.min_words'] == 5
                assert texts == (
                    {'a': 'one', 'gone': 'x', 'b': 'same'} if old else {'a': 'three', 'new': 'y', 'b': 'same'}
                )
                outcomes.append('before' if old else 'after')
            else:
                outcomes.append('between')
            execute(run, after, replace=True, keep_matching=True)
        assert_whole(bucket)
        assert (bucket / 'corpus' / 'a').read_text() == 'three'
        if not killed:
            break
    assert outcomes[0] == 'before'
    assert outcomes[-1] == 'after'
    assert outcomes == sorted(outcomes, key=['before', 'between', 'after'].index)
    assert len(outcomes) > 10


def test_a_kill_while_files_change_in_place_leaves_all_of_them_old_or_all_new(
    tmp_path, impatient, monkeypatch
):
    """They are files such as the metrics, the record of phases and the checkpoints of a training that goes on: never
    some of each."""
    old = {'metrics.jsonl': '1', 'phases.json': '1', 'dropped': '1'}
    new = {'metrics.jsonl': '1 2', 'phases.json': '2', 'added': '2'}

    def become(run, files):
        for name in old.keys() | files.keys():
            if name in files:
                (run.workdir / name).write_text(files[name])
            else:
                (run.workdir / name).unlink(missing_ok=True)

    with opened(tmp_path / 'start', tmp_path / 'm0') as run:
        become(run, old)
    left, seen, killed, allowed = {'allowed': 10**9}, [], True, 0
    while killed:
        bucket = tmp_path / f'bucket-{allowed}'
        shutil.copytree(tmp_path / 'start', bucket)
        left['allowed'] = 10**9
        with monkeypatch.context() as patched:
            count_writes(patched, left)
            try:
                with opened(bucket, tmp_path / f'm-{allowed}') as run:
                    become(run, new)
                    left['allowed'] = allowed
                    run.saved(now=True)
                    left['allowed'], killed = 10**9, False
            except Killed:
                pass
        with opened(bucket, tmp_path / f'next-{allowed}') as run:
            seen.append({p.name: p.read_text() for p in run.workdir.iterdir() if p.name[0] != '.'})
        assert seen[-1] in (old, new), f'after {allowed} operations'
        assert_whole(bucket)
        allowed += 1
    assert seen[0] == old
    assert seen[-1] == new
    assert len(seen) > 8


# --- who may write, and what goes wrong ---


def test_two_machines_on_one_run_are_refused_and_a_silent_one_is_replaced(tmp_path, monkeypatch, capsys):
    stage, _ = stage_of({'a': 'one'})
    bucket = tmp_path / 'bucket'
    monkeypatch.setattr(lease, 'RENEW_SECONDS', 0.05)
    monkeypatch.setattr(lease, 'LOOK_SECONDS', 0.2)
    with opened(bucket, tmp_path / 'm1') as run:
        for machine, said in (
            ('m2', r'bucket: .* \(process \d+\) is working on it; wait for it or stop it'),
            ('m1', 'another process of this machine is working on it'),
        ):
            with pytest.raises(ConfigError, match=said), opened(bucket, tmp_path / machine):
                pass
        execute(run, stage)
    assert not (bucket / '.remote' / 'lease.json').exists()
    # One that no longer renews it, as if its network were away, comes back after another has taken over.
    monkeypatch.setattr(lease, 'RENEW_SECONDS', 100)
    monkeypatch.setattr(lease, 'STALE_SECONDS', 0.1)

    def beside_each_other():
        with (
            opened(bucket, tmp_path / 'm1', corpus__min_words=9) as slow,
            opened(bucket, tmp_path / 'm2', corpus__min_words=9) as quick,
        ):
            execute(quick, stage_of({'a': 'two'})[0], replace=True)
            execute(slow, stage_of({'a': 'lost'})[0], replace=True)

    with pytest.raises(InputError, match='having found this one silent; stop that one'):
        beside_each_other()
    assert 'taken over from' in capsys.readouterr().out
    assert (bucket / 'corpus' / 'a').read_text() == 'two'


def test_a_damaged_object_and_a_bucket_that_was_emptied_are_one_line(tmp_path):
    stage, _ = stage_of({'a': 'one'})
    with opened(tmp_path / 'bucket', tmp_path / 'm1') as run:
        execute(run, stage)
    part, theirs = tmp_path / 'bucket' / 'corpus' / 'a', tmp_path / 'bucket' / 'thesis.doc'
    for change, machine, error, said in (
        (
            *(lambda: part.write_text('eno'), 'm2', InputError),
            r'bucket/corpus/a: is not the 3 bytes that were put there; restore it',
        ),
        (
            *(lambda: shutil.rmtree(tmp_path / 'bucket'), 'm1', InputError),
            r'bucket: holds no run, but .* mirrors one that was there; remove',
        ),
        (
            *(lambda: theirs.write_text('precious'), 'm3', ConfigError),
            r'holds objects that no run put there \(thesis\.doc\); use another',
        ),
    ):
        change()
        with pytest.raises(error, match=said), opened(tmp_path / 'bucket', tmp_path / machine) as run:
            run.folder('corpus')
    assert theirs.read_text() == 'precious'


def test_work_that_was_not_put_there_is_kept_unless_another_machine_has_gone_on(tmp_path, monkeypatch):
    def cut_off(run, folder):
        (folder / 'part').write_text(run.config.runtime.staging)
        raise Stopped

    unfinished = Stage('corpus', '', '', '', ('corpus',), lambda run: (), cut_off)
    with monkeypatch.context() as patched:
        patched.setattr(
            'bioptimus_jax.hosts.remote.mirror.Mirror.__exit__', lambda self, *error: self._held.close()
        )
        with pytest.raises(Stopped), opened(tmp_path / 'bucket', tmp_path / 'm1') as run:
            execute(run, unfinished)
    assert 'corpus/part' not in content_of(tmp_path / 'bucket')
    with opened(tmp_path / 'bucket', tmp_path / 'm1') as run:
        assert (run.workdir / 'corpus' / 'part').exists()
    assert_whole(tmp_path / 'bucket')
    with pytest.raises(Stopped), opened(tmp_path / 'bucket', tmp_path / 'm2') as run:
        execute(run, unfinished)
    with opened(tmp_path / 'bucket', tmp_path / 'm1') as run:
        run.fetch('corpus')
        assert (run.workdir / 'corpus' / 'part').read_text() == str(tmp_path / 'm2')


def test_a_bucket_that_is_away_for_a_while_does_not_end_the_work(tmp_path, monkeypatch, capsys):
    def away(*arguments):
        raise InputError('no route')

    with opened(tmp_path / 'bucket', tmp_path / 'm1') as run:
        (run.workdir / 'metrics.jsonl').write_text('{}\n')
        with monkeypatch.context() as patched:
            patched.setattr(Store, 'upload', away)
            run.saved()
        assert 'no route; continuing: what is new stays here until later' in capsys.readouterr().out
        run.saved()
        assert content_of(tmp_path / 'bucket').keys() == {'metrics.jsonl'}
        (run.workdir / 'metrics.jsonl').write_text('{}\n{}\n')
        with monkeypatch.context() as patched:
            patched.setattr(Store, 'copy', away)  # after the index has said where the new one lies
            run.saved()
        (run.workdir / 'other').write_text('')
        run.saved()
        assert (tmp_path / 'bucket' / 'metrics.jsonl').read_text() == '{}\n{}\n'
    assert_whole(tmp_path / 'bucket')


@pytest.mark.parametrize(
    ('arguments', 'code', 'message'),
    [
        (
            ['run', '--workdir=gopher://b/r'],
            USAGE,
            r'gopher://b/r: not a known kind of storage; give gs://',
        ),
        (['run', '--workdir=gs://b/../r'], BAD_INPUT, r'"\." and "\.\." have no meaning in a bucket'),
        (
            ['corpus', '--workdir={}/w', '--config.corpus.inputs=file://{}/none*.txt'],
            BAD_INPUT,
            r'none\*\.txt: no such object, and none matches it; correct --config\.corpus\.inputs',
        ),
    ],
)
def test_what_cannot_be_is_one_line(arguments, code, message, tmp_path, capsys):
    given = [a.format(tmp_path) for a in arguments]
    flags = [f'--config={plain_config(tmp_path)}', f'--config.runtime.staging={tmp_path}/staging']
    assert main([*given, *flags]) == code
    error = capsys.readouterr().err
    assert re.search(message, error), error
    assert error.count('\n') == 1


def test_a_cluster_needs_a_staging_folder_that_all_see(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv('XDG_CACHE_HOME', str(tmp_path / 'cache'))
    place = f'file://{tmp_path}/runs/x'
    flags = [f'--config={plain_config(tmp_path)}', f'--workdir={place}', '--config.runtime.cluster=nowhere:1']
    assert main(['contexts', *flags]) == USAGE
    assert 'set config.runtime.staging to a folder that all machines see' in capsys.readouterr().err
    assert local_place(tmp_path / 'cache' / 'bioptimus' / 'runs', place).is_dir()
    assert content_of(tmp_path / 'runs' / 'x') == {}


# --- inputs ---


def test_inputs_are_fetched_once_and_again_when_they_change(tmp_path, monkeypatch):
    fetched = []
    download = Store.download

    def watched(self, files, advance=lambda size: None):
        files = list(files)
        fetched.extend(name.rpartition('/')[2] for name, *_ in files)
        download(self, files, advance)

    monkeypatch.setattr(Store, 'download', watched)
    texts = tmp_path / 'b' / 'texts'
    texts.mkdir(parents=True)
    for name in ('n10.txt', 'n9.txt', 'n9.txt.md5', 'c.md', '.hidden.txt'):
        (texts / name).write_text(name)
    given = experiment(
        corpus__inputs=f'file://{texts}/*.txt,{texts}/n10.txt,',
        corpus__audit__folder=f'file://{tmp_path}/b/ner',
    )
    with pytest.raises(InputError, match=r'b/ner: no such object.*config\.corpus\.audit\.folder'):
        with_local_inputs(given, ('corpus',), tmp_path / 's', True)
    for name in ('one/train.tsv', 'one/test.tsv'):
        (tmp_path / 'b' / 'ner' / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / 'b' / 'ner' / name).write_text(name)
    fetched.clear()
    local = with_local_inputs(given, ('corpus',), tmp_path / 's', True)
    assert [Path(p).name for p in local.corpus.inputs] == ['n9.txt', 'n10.txt', 'n10.txt']
    assert [Path(p).read_text() for p in local.corpus.inputs] == ['n9.txt', 'n10.txt', 'n10.txt']
    assert Path(local.corpus.inputs[0] + '.md5').read_text() == 'n9.txt.md5'
    ner = Path(local.corpus.audit.folder)
    assert {str(p.relative_to(ner)) for p in ner.rglob('*.tsv')} == {'one/train.tsv', 'one/test.tsv'}
    assert sorted(fetched) == ['test.tsv', 'train.tsv']  # the texts are there since the first attempt
    fetched.clear()
    (texts / 'n9.txt').write_text('N9.txt')  # the same size
    (tmp_path / 'b' / 'ner' / 'one' / 'test.tsv').unlink()
    again = with_local_inputs(given, ('corpus',), tmp_path / 's', True)
    assert again == local
    assert fetched == ['n9.txt']
    assert Path(again.corpus.inputs[0]).read_text() == 'N9.txt'
    assert not (ner / 'one' / 'test.tsv').exists()  # it would be read as part of the folder
    assert with_local_inputs(given, ('rows',), tmp_path / 's', True) == given


def test_a_model_keeps_its_name_and_every_path_key_is_known(tmp_path):
    (tmp_path / 'm').mkdir()
    (tmp_path / 'm' / 'config.json').write_text('{}')
    given = experiment(finetune__models=f'0.4,mine=file://{tmp_path}/m')
    local = with_local_inputs(given, ('finetune',), tmp_path / 's', True)
    folder = local_place(tmp_path / 's', f'file://{tmp_path}/m')
    assert local.finetune.models == ('0.4', f'mine={folder}')
    assert (folder / 'config.json').exists()
    paths = {name for name, _, metadata in walk(Experiment()) if metadata.get('path')}
    assert paths - READ_BY.keys() == {'runtime.base_run', 'runtime.staging'}
    listed = PAGE.read_text('utf-8').partition('## What may be a URL')[2].partition('\n## ')[0]
    assert {key for key in READ_BY if f'`{key}`' not in listed} == set()
    # Objectives read the source and the vocabulary where stage `pretrain` is made alone.
    model = f'file://{tmp_path}/m'
    given = experiment(source__path=model, vocab__kind='file', vocab__file=f'{model}/config.json')
    local = with_local_inputs(given, ('pretrain',), tmp_path / 's', True)
    assert (local.source.path, local.vocab.file) == (str(folder), str(folder / 'config.json'))
    # Sets are read there where evaluations score them.
    for named, there in (('', model), ('ncbi-disease,', str(folder))):
        given = experiment(finetune__folder=model, evaluation__entities=named)
        assert with_local_inputs(given, ('pretrain',), tmp_path / 's', True).finetune.folder == there


@pytest.mark.parametrize(
    ('pattern', 'path', 'matches'),
    [
        ('a/*.txt', 'a/b.txt', True),
        ('a/*.txt', 'a/b/c.txt', False),
        ('a/**/*.txt', 'a/b/c/d.txt', True),
        ('a/**/*.txt', 'a/d.txt', True),
        ('a/*', 'a/.hidden', False),
        ('a/pubmed26n00[01]?.xml.gz', 'a/pubmed26n0012.xml.gz', True),
        ('a/pubmed26n00[01]?.xml.gz', 'a/pubmed26n0022.xml.gz', False),
    ],
)
def test_patterns_are_those_of_files(pattern, path, matches, tmp_path):
    assert _matches(path, pattern) is matches
    (tmp_path / path).parent.mkdir(parents=True)
    (tmp_path / path).write_text('')
    assert bool(glob.glob(pattern, root_dir=tmp_path, recursive=True)) is matches


# --- S3, by an emulator ---


@pytest.fixture(scope='module')
def s3():
    """The environment of an S3 emulator with an empty bucket."""
    port = free_port()
    process = subprocess.Popen(
        [sys.executable, '-m', 'moto.server', '-H', '127.0.0.1', '-p', str(port)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    deadline = time.monotonic() + 60
    while True:
        with contextlib.closing(http.client.HTTPConnection('127.0.0.1', port)) as connection:
            try:
                connection.request('PUT', '/bucket')
                assert connection.getresponse().status == 200
                break
            except ConnectionRefusedError:
                assert process.poll() is None
                assert time.monotonic() < deadline
                time.sleep(0.2)
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv('AWS_ENDPOINT_URL', f'http://127.0.0.1:{port}')
        for name, value in AWS.items():
            patched.setenv(name, value)
        yield 's3://bucket'
    process.kill()
    process.wait()


AWS = {
    'AWS_ALLOW_HTTP': 'true',
    'AWS_ACCESS_KEY_ID': 'testing',
    'AWS_SECRET_ACCESS_KEY': 'testing',
    'AWS_REGION': 'us-east-1',
}


def test_a_run_and_its_inputs_on_s3(s3, tmp_path):
    Store(s3).write('texts/a.txt', b'one')
    given = experiment(corpus__inputs=f'{s3}/texts/*.txt,', runtime__staging=tmp_path / 'm1')

    def copied(run, folder):
        (folder / 'large').write_bytes(bytes(range(256)) * 50_000)  # of several parts
        (folder / 'text').write_text(Path(run.config.corpus.inputs[0]).read_text())
        return NOTHING_COUNTED

    stage = Stage(
        *('corpus', '', '', '', ('corpus',), lambda run: (), copied),
        external=lambda e: [Path(name) for name in e.corpus.inputs],
    )
    for text, replace in (('one', False), ('two', True)):  # the second changes objects and deletes one
        Store(s3).write('texts/a.txt', text.encode())
        with open_run(f'{s3}/runs/x', given, ('corpus',), lambda run: None) as run:
            execute(run, stage, replace)
            (run.workdir / f'{text}.json').write_text('{}')
            if replace:
                (run.workdir / 'one.json').unlink()
    names = set(Store(f'{s3}/runs/x').find())
    files = {'corpus/large', 'corpus/manifest.json', 'corpus/text', 'two.json'}
    assert names == {*files, '.remote/index.json'}
    other = experiment(corpus__inputs=f'{s3}/texts/*.txt,', runtime__staging=tmp_path / 'm2')
    with open_run(f'{s3}/runs/x', other, ('corpus',), lambda run: None) as run:
        execute(run, stage)  # up to date, else refused
        assert (run.folder('corpus') / 'text').read_text() == 'two'
        assert (run.folder('corpus') / 'large').stat().st_size == 256 * 50_000
    with (
        pytest.raises(InputError, match=r's3://nobody/x.*no such bucket or object \(.*make the bucket first'),
        open_run('s3://nobody/x', other, (), lambda run: None),
    ):
        pass


@pytest.mark.parametrize('place', ['', '/texts', '/texts/', '/texts/**', '/texts/**/*', '/empty'])
def test_a_folder_that_was_made_in_a_console_is_no_file(place, s3, tmp_path):
    """It is an empty object whose key ends in a slash; an empty file stays one."""
    bucket = tmp_path.name.replace('_', '-')
    address = urllib.parse.urlsplit(os.environ['AWS_ENDPOINT_URL']).netloc
    keys = (
        '/texts/',
        '/texts/a.txt',
        '/texts/none.txt',
        '/texts/sub/',
        '/texts/sub/b.txt',
        '/empty/',
        '/x_$folder$',
    )
    for key in ('', *keys):
        with contextlib.closing(http.client.HTTPConnection(address)) as connection:
            connection.request('PUT', f'/{bucket}{key}', 'text' if key.endswith(('a.txt', 'b.txt')) else '')
            assert connection.getresponse().status == 200
    url = f's3://{bucket}{place}'
    files = {'a.txt': 'text', 'none.txt': '', 'sub/b.txt': 'text'}
    for key, given in (
        ('corpus.inputs', experiment(corpus__inputs=f'{url},')),
        ('corpus.audit.folder', experiment(corpus__audit__folder=url)),
        ('source.path', experiment(source__path=url)),
    ):
        if place == '/empty':
            with pytest.raises(
                InputError, match=rf'{url}: no such object, and none matches it; correct --config\.{key}'
            ):
                with_local_inputs(given, ('corpus', 'surgery'), tmp_path / key, True)
            continue
        if '*' in place and key != 'corpus.inputs':
            continue
        with_local_inputs(given, ('corpus', 'surgery'), tmp_path / key, True)
        here = tmp_path / key / 's3' / bucket / 'texts'
        found = {
            str(f.relative_to(here)): f.read_text()
            for f in here.rglob('*')
            if f.is_file() and f.name[0] != '.'
        }
        assert found == files
    assert set(Store(f's3://{bucket}/texts').find()) == set(files)
    assert Store(f's3://{bucket}/empty').find() == {}


def test_no_network_and_no_credentials_are_one_line(tmp_path, monkeypatch):
    nobody = (
        f'http://127.0.0.1:{free_port()}/403'  # a number that says nothing where it is part of an address
    )
    for name, value in {**AWS, 'AWS_ENDPOINT_URL': nobody}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setitem(store.RETRIES, 'max_retries', 1)
    monkeypatch.setenv('GOOGLE_APPLICATION_CREDENTIALS', str(tmp_path / 'none.json'))
    for url, packages, error, said in (
        ('s3://b/r', {}, InputError, r's3://b/r/tokenizer.json: cannot be reached \(.*check URL and network'),
        ('gs://b/r', {}, InputError, r'gs://b/r: access is refused or credentials are missing .*gcloud auth'),
        ('gs://b/r', {'obstore.store': None}, ConfigError, r"pip install 'bioptimus-jax\[remote\]'"),
    ):
        for name, module in packages.items():
            monkeypatch.setitem(sys.modules, name, module)
        with pytest.raises(error, match=said) as raised:
            Store(url).read('tokenizer.json')
        assert '\n' not in str(raised.value)
