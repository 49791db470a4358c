"""Download: against a server that drops, corrupts, refuses and lies, every file is right or absent."""

import asyncio
import collections
import dataclasses
import email.utils
import errno
import hashlib
import json
import os
import random
import shlex
import shutil
import signal
import ssl
import subprocess
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bioptimus_jax.cli import main as cli
from bioptimus_jax.corpus import download, fetch, pubmed
from bioptimus_jax.corpus.download import Download
from bioptimus_jax.corpus.fetch import Patience
from bioptimus_jax.corpus.pubmed import linked_files
from bioptimus_jax.errors import ConfigError, InputError, Stopped
from bioptimus_jax.finetuning.entities import download as ner_download
from bioptimus_jax.sets import blurb
from bioptimus_jax.sets.sentences import SPLITS

FIRST = '/pubmed/baseline/pubmed26n0001.xml.gz'
SECOND = '/pubmed/baseline/pubmed26n0002.xml.gz'
UPDATE = '/pubmed/updatefiles/pubmed26n0003.xml.gz'
SIZE = 300_000
DATE = 'Sat, 10 Jan 2026 12:24:00 GMT'


class PubMed(ThreadingHTTPServer):
    """Files under /pubmed with .md5 and lists; `faults[path]` are used up, one per request of that path."""

    daemon_threads, block_on_close = True, False

    def __init__(self, files, port=0):
        super().__init__(('127.0.0.1', port), Handler)
        self.files = dict(files)
        self.faults = collections.defaultdict(list)
        self.always = {}
        self.requests = []
        self.sent = collections.Counter()
        self.release = threading.Event()
        self.url = f'http://127.0.0.1:{self.server_port}/pubmed'

    def serve(self):
        threading.Thread(target=self.serve_forever, args=(0.02,), daemon=True).start()
        return self

    def content(self, path):
        if path.endswith('.md5') and path[:-4] in self.files:
            name = path[:-4].rpartition('/')[2]
            return f'MD5({name})= {hashlib.md5(self.files[path[:-4]]).hexdigest()}\n'.encode()
        if path in ('/pubmed/baseline/', '/pubmed/updatefiles/'):
            names = sorted(f.rpartition('/')[2] for f in self.files if f.startswith(path))
            links = [
                f'<a href="{n}">{n}</a>  2026-01-10 12:24   19M\n' for f in names for n in (f, f + '.md5')
            ]
            head = '<html><head><title>Index</title></head><body><pre><a href="?C=N;O=D">Name</a>\n'
            return (head + ''.join(links) + '</pre><hr></body></html>\n').encode()
        return self.files.get(path)

    def asked(self, path):
        return [wanted for asked, wanted in self.requests if asked == path]

    def handle_error(self, request, client_address):
        pass  # clients are killed here


class Handler(BaseHTTPRequestHandler):
    protocol_version = 'HTTP/1.1'
    server: PubMed

    def log_message(self, *_):
        pass

    def do_GET(self):
        self.server.requests.append((self.path, self.headers.get('Range')))
        faults = self.server.faults[self.path]
        fault = faults.pop(0) if faults else self.server.always.get(self.path)
        kind, *details = fault or (None,)
        body = self.server.content(self.path)
        if kind == 'call':
            details[0]()
            body = self.server.content(self.path)
        if body is None or kind == 'status':
            return self.answer(*(details if kind == 'status' else (404,)))
        tag = f'"{hashlib.md5(body).hexdigest()}"'
        if kind == 'corrupt':
            body = bytes(byte ^ 1 if number == 1000 else byte for number, byte in enumerate(body))
        headers = {'ETag': tag, 'Last-Modified': DATE}
        if kind == 'unmarked':
            headers = {}
        start, status = 0, 200
        asked, valid = self.headers.get('Range'), self.headers.get('If-Range')
        if asked and valid in (tag, DATE) and kind != 'no range':
            start, status = int(asked.removeprefix('bytes=').removesuffix('-')), 206
            if kind == 'wrong range':
                start -= 1000
            headers['Content-Range'] = f'bytes {start}-{len(body) - 1}/{len(body)}'
        if kind == 'weak tag':
            headers['ETag'] = 'W/' + tag
        if kind == 'no length':
            headers['Connection'] = 'close'
        else:
            headers['Content-Length'] = str(len(body) - start)
        self.begin(status, headers)
        stop = start + details[0] if kind in ('drop', 'stall', 'unmarked', 'kill', 'cut') else len(body)
        tail = 10 if kind == 'stall' else 0  # a last piece too small to fill any buffer
        self.wfile.write(body[start : stop - tail])
        if tail:
            time.sleep(0.05)
            self.wfile.write(body[stop - tail : stop])
        self.server.sent[self.path] += len(body[start:stop])
        if kind == 'stall':
            self.server.release.wait(30)
        if kind == 'kill':
            self.server.shutdown()
            self.server.server_close()
        if fault and kind != 'call':  # after a whole answer the client would take the connection for open
            self.close_connection = True

    def begin(self, status, headers):
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()

    def answer(self, status, headers=()):
        self.begin(status, {'Content-Length': '0', **dict(headers)})


def content(seed, size=SIZE):
    return random.Random(seed).randbytes(size)


FILES = {FIRST: content(1), SECOND: content(2, 200_000), UPDATE: content(3, 1000)}


@pytest.fixture(autouse=True)
def _direct(monkeypatch):
    monkeypatch.setenv('NO_PROXY', '127.0.0.1,localhost')


@pytest.fixture
def server():
    running = PubMed(FILES).serve()
    yield running
    running.release.set()
    running.shutdown()
    running.server_close()


class Waits(list):
    async def __call__(self, seconds):
        self.append(seconds)
        await asyncio.sleep(0)


def patience_of(*, sleep=None, tries=4, timeout=10.0, first=0.0):
    return Patience(
        tries=tries,
        first_wait_seconds=first,
        timeout_seconds=timeout,
        sleep=Waits() if sleep is None else sleep,
    )


def make(
    server, to, *, what=tuple(pubmed.FOLDERS), files='*', parallel=4, check=False, quiet=True, **patience
):
    catalogue = pubmed.PubMed(server.url, what, files)
    return Download(to, catalogue, parallel, check=check, patience=patience_of(**patience), quiet=quiet)


def found(to):
    """Path at the server -> bytes, of all that has a final name."""
    visible = [p for p in to.rglob('*') if p.is_file() and not p.name.startswith('.')]
    return {f'/pubmed/{p.relative_to(to)}': p.read_bytes() for p in visible}


def complete(server):
    return {name: server.content(name) for file in server.files for name in (file, f'{file}.md5')}


def hidden(to):
    return sorted(p.name for p in to.rglob('.*') if p.name != '.checked.jsonl')


def test_everything_comes_once_and_the_next_start_asks_for_md5s_only(server, tmp_path, capsys):
    assert make(server, tmp_path, quiet=False).run() == {'files': 3, 'fetched': 3, 'there': 0}
    assert found(tmp_path) == complete(server)
    assert not hidden(tmp_path)
    assert all(server.asked(path) == [None] for path in FILES)
    text = capsys.readouterr().out
    assert (
        f'--config.corpus.inputs={tmp_path}/baseline/pubmed26n*.xml.gz,{tmp_path}/updatefiles/pubmed26n*'
        in text
    )
    server.requests.clear()
    again = make(server, tmp_path)
    assert again.run() == {'files': 3, 'fetched': 0, 'there': 3}
    assert not any(server.asked(path) for path in FILES)
    assert len(server.requests) == 2 + 3


def test_oldest_first_and_only_what_is_asked_for(server, tmp_path):
    server.files |= {f'/pubmed/baseline/pubmed26n{n:04}.xml.gz': b'x' for n in (10, 9, 11)}
    make(server, tmp_path / 'a', parallel=1).run()
    order = [path for path, _ in server.requests if path.endswith('.gz')]
    assert order == [*sorted(path for path in server.files if 'baseline' in path), UPDATE]
    make(server, tmp_path / 'b', what=('updates',)).run()
    assert set(found(tmp_path / 'b')) == {UPDATE, f'{UPDATE}.md5'}
    make(server, tmp_path / 'c', files='*n001?.xml.gz').run()
    assert {path[-11:-7] for path in found(tmp_path / 'c') if path.endswith('.gz')} == {'0010', '0011'}
    with pytest.raises(ConfigError, match='--files=nothing'):
        make(server, tmp_path / 'd', files='nothing').run()


def test_inputs_are_of_one_year_baseline_first(server, tmp_path):
    old = tmp_path / 'updatefiles' / 'pubmed25n1400.xml.gz'
    old.parent.mkdir()
    old.write_bytes(b'last year')
    make(server, tmp_path, what=('baseline',)).run()
    server.files['/pubmed/updatefiles/pubmed25n1401.xml.gz'] = b'not taken away yet'
    one = make(server, tmp_path, what=('updates',))
    assert one.run()['fetched'] == 2
    assert one.catalogue.inputs(one.to, one.wanted) == [
        f'{tmp_path}/{folder}/pubmed26n*.xml.gz' for folder in ('baseline', 'updatefiles')
    ]


def test_a_dropped_connection_is_continued_as_often_as_it_brings_something(server, tmp_path):
    server.faults[FIRST] = [('drop', 40_000)] * 7
    waits = Waits()
    make(server, tmp_path, tries=2, sleep=waits).run()
    assert found(tmp_path) == complete(server)
    assert server.asked(FIRST) == [None, *(f'bytes={40_000 * n}-' for n in range(1, 8))]
    assert server.sent[FIRST] == SIZE
    assert len(waits) == 7


def test_drops_that_bring_nothing_end_it(server, tmp_path):
    server.always[FIRST] = ('drop', 0)
    with pytest.raises(InputError, match=r'1 of 3 files .*pubmed26n0001\.xml\.gz \(.*, 4 times in a row\)'):
        make(server, tmp_path).run()
    assert len(server.asked(FIRST)) == 4
    assert FIRST not in found(tmp_path)
    assert {SECOND, UPDATE} <= set(found(tmp_path))
    del server.always[FIRST]
    assert make(server, tmp_path).run() == {'files': 3, 'fetched': 1, 'there': 2}


@pytest.mark.parametrize(
    'fault',
    [('no range',), ('wrong range',), ('status', 416)],
    ids=['answers 200', 'answers with other bytes', 'answers 416'],
)
def test_a_server_that_does_not_continue_is_asked_for_the_whole(fault, server, tmp_path):
    server.faults[FIRST] = [('drop', 100_000), fault]
    make(server, tmp_path).run()
    assert found(tmp_path) == complete(server)
    whole = [None, 'bytes=100000-'] + [None] * (fault != ('no range',))
    assert server.asked(FIRST) == whole


@pytest.mark.parametrize('fault', [('unmarked', 100_000), ('no length',)])
def test_without_a_validator_or_a_size_nothing_is_continued(fault, server, tmp_path):
    server.faults[FIRST] = [fault]
    make(server, tmp_path).run()
    assert found(tmp_path) == complete(server)
    assert server.asked(FIRST) == [None] * (2 if fault[0] == 'unmarked' else 1)


def test_a_weak_tag_is_no_validator_but_the_date_is(tmp_path):
    partial = fetch.Partial(tmp_path / 'x')
    for headers, expected in (
        ({'etag': 'W/"1"', 'last-modified': DATE}, DATE),
        ({'etag': '"1"', 'last-modified': DATE}, '"1"'),
        ({'etag': 'W/"1"'}, ''),
    ):
        partial.begin(fetch.httpx2.Headers({**headers, 'content-length': '5'}))
        assert partial.validator == expected
        assert partial.origin.exists() == bool(expected)


def interrupted(server, to, path=FIRST, at=100_000):
    """A download that was stopped in mid-file; returns what is on disk of it."""
    server.faults[path] = [('stall', at)]
    stopped = make(server, to)
    partial = to / path.removeprefix('/pubmed/').replace('pubmed26', '.pubmed26')
    partial = partial.with_name(f'{partial.name}.partial')

    def stop():
        wait_for(lambda: partial.exists() and partial.stat().st_size == at)
        stopped.stopping.set()

    threading.Thread(target=stop, daemon=True).start()
    with pytest.raises(Stopped):
        stopped.run()
    server.requests.clear()
    server.sent.clear()
    return partial


def wait_for(condition, seconds=20):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, 'nothing came'
        time.sleep(0.01)


def test_a_file_that_changed_meanwhile_is_not_glued_together(server, tmp_path):
    interrupted(server, tmp_path)
    server.files[FIRST] = content(4)
    make(server, tmp_path).run()
    assert found(tmp_path) == complete(server)
    assert server.asked(FIRST) == ['bytes=100000-']
    assert server.sent[FIRST] == SIZE


def test_a_file_that_changes_under_way_is_taken_with_its_new_md5(server, tmp_path):
    server.faults[FIRST] = [('call', lambda: server.files.update({FIRST: content(4)}))]
    make(server, tmp_path).run()
    assert found(tmp_path) == complete(server)
    assert found(tmp_path)[FIRST] == content(4)


@pytest.mark.parametrize('damage', ['longer', 'other bytes', 'no origin', 'broken origin', 'complete'])
def test_whatever_an_earlier_start_left_the_file_is_right(damage, server, tmp_path):
    partial = interrupted(server, tmp_path)
    origin = partial.with_name(partial.name.replace('.partial', '.origin'))
    assert json.loads(origin.read_text())['size'] == SIZE
    if damage in ('longer', 'other bytes'):
        partial.write_bytes(bytes(SIZE + 1 if damage == 'longer' else 50_000))
    if damage == 'no origin':
        origin.unlink()
    if damage == 'broken origin':
        origin.write_text('{"size"')
    if damage == 'complete':
        partial.write_bytes(FILES[FIRST])
    make(server, tmp_path).run()
    assert found(tmp_path) == complete(server)
    assert not hidden(tmp_path)
    expected = {'other bytes': ['bytes=50000-', None], 'complete': []}
    assert server.asked(FIRST) == expected.get(damage, [None])


def test_corrupt_bytes_are_thrown_away_and_fetched_again(server, tmp_path):
    server.faults[FIRST] = [('corrupt',), ('corrupt',)]
    make(server, tmp_path).run()
    assert found(tmp_path) == complete(server)
    assert server.asked(FIRST) == [None] * 3


def test_bytes_that_stay_corrupt_never_get_a_name(server, tmp_path, capsys):
    server.always[SECOND] = ('corrupt',)
    with pytest.raises(InputError, match=r'pubmed26n0002\.xml\.gz \(its bytes are not .* 3 times') as error:
        make(server, tmp_path).run()
    assert '\n' not in str(error.value)
    assert len(server.asked(SECOND)) == 3
    assert found(tmp_path) == {k: v for k, v in complete(server).items() if SECOND not in k}
    assert not hidden(tmp_path)


def test_the_pause_that_a_server_asks_for_is_kept(server, tmp_path):
    date = email.utils.formatdate(time.time() + 300, usegmt=True)
    server.faults[FIRST] = [('status', 503, {'Retry-After': '7'}), ('status', 429, {'Retry-After': date})]
    server.faults[f'{UPDATE}.md5'] = [('status', 500)]
    waits = Waits()
    make(server, tmp_path, sleep=waits).run()
    assert found(tmp_path) == complete(server)
    waited = sorted(waits)
    assert waited[:2] == [0, 7]
    assert 290 < waited[2] <= 300


def test_waits_double_with_jitter_up_to_a_limit():
    patience = Patience(first_wait_seconds=1, longest_wait_seconds=20)
    for failed, longest in ((1, 1), (2, 2), (3, 4), (6, 20), (1000, 20)):
        waits = [patience.wait_seconds(failed) for _ in range(200)]
        assert longest / 2 <= min(waits) < 0.6 * longest < 0.9 * longest < max(waits) <= longest
    assert patience.wait_seconds(1, 1e9) == patience.longest_asked_wait_seconds


@pytest.mark.parametrize('path', [FIRST, f'{FIRST}.md5'])
@pytest.mark.parametrize('status', [404, 403])
def test_a_refusal_is_not_repeated(status, path, server, tmp_path):
    server.always[path] = ('status', status)
    with pytest.raises(InputError, match=rf'pubmed26n0001\.xml\.gz \((\.md5: )?the server answers {status}'):
        make(server, tmp_path).run()
    assert len(server.asked(path)) == 1
    assert FIRST not in found(tmp_path)


def test_a_server_that_is_gone_is_not_asked_for_every_file(server, tmp_path):
    server.files = {f'/pubmed/baseline/pubmed26n{n:04}.xml.gz': b'x' for n in range(1, 31)}
    server.always = {f'{path}.md5': ('status', 500) for path in server.files}
    with pytest.raises(InputError, match=r'8 of 30 files.*another 22 were not tried') as error:
        make(server, tmp_path, what=('baseline',), parallel=1, tries=2).run()
    assert '0008' in str(error.value)
    assert len([path for path, _ in server.requests if path.endswith('.md5')]) == 16


def test_failures_here_and_there_stop_nothing(server, tmp_path):
    server.files = {f'/pubmed/baseline/pubmed26n{n:04}.xml.gz': b'x' for n in range(1, 21)}
    server.always = {path: ('status', 404) for number, path in enumerate(server.files) if number % 2}
    with pytest.raises(InputError, match=r'10 of 20 files') as error:
        make(server, tmp_path, what=('baseline',), parallel=1).run()
    assert 'not tried' not in str(error.value)
    assert len(found(tmp_path)) == 20


def test_a_stalled_connection_times_out_and_goes_on(server, tmp_path):
    server.faults[FIRST] = [('stall', 100_000)]
    make(server, tmp_path, timeout=0.3).run()
    assert found(tmp_path) == complete(server)
    assert server.asked(FIRST) == [None, 'bytes=100000-']


def test_a_server_that_is_killed_and_started_again(tmp_path):
    first = PubMed({FIRST: FILES[FIRST]}).serve()
    first.faults[FIRST] = [('kill', 120_000)]
    second = []

    async def start_again(_):
        if not second and len(waited) == 2:
            second.append(PubMed(first.files, port=first.server_port).serve())
        waited.append(1)
        await asyncio.sleep(0.05)

    waited = []
    make(first, tmp_path, what=('baseline',), sleep=start_again, tries=8).run()
    assert found(tmp_path) == complete(first)
    assert second[0].asked(FIRST) == ['bytes=120000-']
    second[0].shutdown()
    second[0].server_close()


@pytest.mark.parametrize('cut', [('cut', 150), ('call', lambda: None)])
def test_a_cut_off_list_is_asked_for_again(cut, server, tmp_path):
    page = '/pubmed/baseline/'
    if cut[0] == 'call':  # a proxy that cut it and says nothing: a whole answer, without its end
        server.files[page] = server.content(page)[:150]
        server.content, whole = (lambda path: server.files.get(path) or whole(path)), server.content
        cut = ('call', lambda: server.files.pop(page) if len(server.asked(page)) == 3 else None)
    server.faults[page] = [cut, cut, *([cut] if cut[0] == 'call' else [])]
    make(server, tmp_path).run()
    assert len(server.asked(page)) == 3
    assert len(found(tmp_path)) == 6


def test_a_list_that_stays_cut_off_or_names_nothing_ends_it(server, tmp_path):
    for always, files, message in (
        ({'/pubmed/baseline/': ('cut', 150)}, FILES, r'/pubmed/baseline/: .*, 4 times in a row; check --url'),
        ({}, {UPDATE: FILES[UPDATE]}, r'/pubmed/baseline/: links to no file'),
    ):
        server.always, server.files = always, files
        with pytest.raises(InputError, match=message):
            make(server, tmp_path).run()
    assert not found(tmp_path)


def test_links_are_found_however_they_are_written():
    page = """<!DOCTYPE html><A HREF=pubmed26n0002.xml.gz>x</A><a class=b href='/pubmed/pubmed26n0001.xml.gz?x=1'>
    <a href="https://h/p/pubmed26n0010.xml.gz#top">pubmed26n0004.xml.gz</a><a href="pubmed26n0002.xml.gz">
    <a href="pubmed26n0005.xml.gz.md5"><a href="pubmed26n0006_stats.html"><a href="README.txt"><a name="x"><a href>
    <!-- <a href="pubmed26n0007.xml.gz"> -->
    <link href="pubmed26n0008.xml.gz"><a href="//[x/../.pubmed26n0009.xml.gz">"""
    assert linked_files(page) == [f'pubmed26n{n:04}.xml.gz' for n in (1, 2, 10)]


@given(st.text(alphabet='<>a href="\'=pubmed26n0001.xml.gz/?#&;!-\n\x00é', max_size=200))
def test_no_page_breaks_the_reader(text):
    assert all(pubmed.NAME.fullmatch(name) for name in linked_files(text))


FAULTS = st.sampled_from(
    [
        ('drop', 0),
        ('drop', 1),
        ('drop', 70_000),
        ('no range',),
        ('wrong range',),
        ('status', 503),
        ('status', 416),
    ]
)


@settings(max_examples=12)
@given(st.lists(FAULTS, max_size=5), st.lists(st.just(('corrupt',)), max_size=2), st.integers(0, 10))
def test_any_series_of_faults_ends_in_the_right_bytes(tmp_path_factory, faults, corrupt, seed):
    to = tmp_path_factory.mktemp('pubmed')
    server = PubMed({FIRST: FILES[FIRST][:150_000]}).serve()
    server.faults[FIRST] = [*faults, *corrupt]
    random.Random(seed).shuffle(server.faults[FIRST])
    try:
        make(server, to, what=('baseline',), tries=20).run()
        assert found(to) == complete(server)
        assert not hidden(to)
    finally:
        server.shutdown()
        server.server_close()


def test_a_wrong_file_is_replaced_and_a_right_one_taken_over(server, tmp_path):
    (tmp_path / 'baseline').mkdir()
    mine = [tmp_path / 'baseline' / Path(path).name for path in (FIRST, SECOND)]
    mine[0].write_bytes(bytes(SIZE))
    mine[1].write_bytes(FILES[SECOND])  # brought by other means, without its .md5
    assert make(server, tmp_path).run() == {'files': 3, 'fetched': 2, 'there': 1}
    assert found(tmp_path) == complete(server)
    assert not server.asked(SECOND)


def test_a_file_is_read_again_when_it_changed_and_on_demand(server, tmp_path, monkeypatch):
    make(server, tmp_path).run()
    read = []
    checksum_of = download.checksum_of

    def watched(file, algorithm):
        read.append(Path(file.name).name)
        return checksum_of(file, algorithm)

    monkeypatch.setattr(download, 'checksum_of', watched)
    make(server, tmp_path).run()
    assert read == []
    file = tmp_path / 'baseline' / 'pubmed26n0001.xml.gz'
    os.utime(file, ns=(1, 1))
    make(server, tmp_path).run()
    assert read == [file.name]
    before = file.stat()
    file.write_bytes(content(9))  # rotten: other bytes, same size and time
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert make(server, tmp_path).run()['fetched'] == 0
    assert make(server, tmp_path, check=True).run() == {'files': 3, 'fetched': 1, 'there': 2}
    assert found(tmp_path) == complete(server)
    with open(tmp_path / '.checked.jsonl', 'a') as notes:
        notes.write('\n{"file": "base')  # cut off by a kill
    server.files[FIRST] = content(5)
    assert make(server, tmp_path).run() == {'files': 3, 'fetched': 1, 'there': 2}
    assert make(server, tmp_path).run()['there'] == 3


def test_progress_counts_every_byte_once_and_ends_at_all(server, tmp_path):
    server.faults[FIRST] = [('drop', 1000), ('no range',)]
    server.faults[SECOND] = [('corrupt',)]
    server.faults[UPDATE] = [('no length',)]
    one = make(server, tmp_path)
    one.run()
    mib = sum(map(len, FILES.values())) / 2**20
    assert (one.progress.done, one.progress.total, one.progress.first) == (
        mib,
        mib,
        0,
    )
    (tmp_path / 'baseline' / 'pubmed26n0001.xml.gz').unlink()
    two = make(server, tmp_path)
    two.run()
    assert (two.progress.done, two.progress.first) == (mib, mib - SIZE / 2**20)


def start(server, to):
    command = [
        sys.executable,
        '-m',
        'bioptimus_jax.cli.main',
        'download',
        f'--to={to}',
        f'--url={server.url}',
    ]
    root = Path(cli.__file__).parents[1]
    return subprocess.Popen(command, cwd=root, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


@pytest.mark.parametrize(
    ('number', 'code'), [(signal.SIGKILL, -9), (signal.SIGTERM, 75), (signal.SIGINT, 130)]
)
def test_a_process_that_is_ended_in_mid_file_goes_on_there(number, code, server, tmp_path, capsys):
    server.faults[FIRST] = [('stall', 100_000)]
    process = start(server, tmp_path)
    partial = tmp_path / 'baseline' / '.pubmed26n0001.xml.gz.partial'
    wait_for(lambda: partial.exists() and partial.stat().st_size == 100_000)
    assert cli.main(['download', f'--to={tmp_path}', f'--url={server.url}']) == 2
    assert 'another process is downloading into it' in capsys.readouterr().err
    wait_for(lambda: SECOND in found(tmp_path))
    process.send_signal(number)
    ended = time.monotonic()
    _, errors = process.communicate(timeout=20)
    assert time.monotonic() - ended < 15
    assert process.returncode == code
    assert code < 0 or 'rerun the same command' in errors
    assert FIRST not in found(tmp_path)
    assert cli.main(['download', f'--to={tmp_path}', f'--url={server.url}']) == 0
    assert found(tmp_path) == complete(server)
    assert server.asked(FIRST) == [None, 'bytes=100000-']
    assert server.sent[FIRST] == SIZE


@pytest.mark.parametrize(
    ('error', 'expected'),
    [
        (OSError(errno.ENOSPC, 'No space left on device'), 'no space left; free some'),
        (
            PermissionError(errno.EACCES, 'Permission denied', 'pubmed/baseline'),
            'Permission denied; check its rights',
        ),
    ],
)
def test_a_folder_that_takes_no_more_is_one_line(error, expected, server, tmp_path, capsys, monkeypatch):
    def full(*_):
        raise error

    monkeypatch.setattr(fetch, 'open', full, raising=False)
    assert cli.main(['download', f'--to={tmp_path}', f'--url={server.url}']) == 3
    line = capsys.readouterr().err.strip()
    assert expected in line
    assert '\n' not in line
    monkeypatch.undo()
    monkeypatch.setenv('NO_PROXY', '127.0.0.1')
    make(server, tmp_path).run()
    assert found(tmp_path) == complete(server)


def test_what_failed_exits_3_with_one_line(server, tmp_path, capsys):
    server.always[FIRST] = server.always[UPDATE] = ('status', 404)
    assert cli.main(['download', f'--to={tmp_path}', f'--url={server.url}']) == 3
    line = capsys.readouterr().err.strip()
    assert line.startswith(
        'bioptimus: 2 of 3 files could not be fetched: baseline/pubmed26n0001.xml.gz (the server answers 404'
    )
    assert 'pubmed26n0003.xml.gz (' in line
    assert '\n' not in line
    (tmp_path / 'file').write_text('')
    assert cli.main(['download', f'--to={tmp_path}/file']) == 3
    assert 'is a file; --to needs a folder' in capsys.readouterr().err


def test_certificates_are_verified(server, tmp_path, monkeypatch):
    if not shutil.which('openssl'):
        pytest.skip('no openssl program to make a certificate with')
    names = ['-keyout', str(tmp_path / 'key'), '-out', str(tmp_path / 'certificate')]
    made = '-x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=localhost -addext subjectAltName=DNS:localhost'
    subprocess.run(['openssl', 'req', *made.split(), *names], check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / 'certificate', tmp_path / 'key')
    secure = PubMed(FILES)
    secure.socket = context.wrap_socket(secure.socket, server_side=True)
    secure.url = secure.url.replace('http://127.0.0.1', 'https://localhost')
    secure.serve()
    waits = Waits()
    for said in (
        r'certificate verify failed.*SSL_CERT_FILE',
        r'pubmed26n0001\.xml\.gz \(is redirected to http:.*without encryption',
    ):
        with pytest.raises(InputError, match=said):
            make(secure, tmp_path / 'a', sleep=waits).run()
        assert not waits
        monkeypatch.setenv('SSL_CERT_FILE', str(tmp_path / 'certificate'))
        secure.faults[FIRST] = [('status', 302, {'Location': server.url.removesuffix('/pubmed') + FIRST})]
    secure.faults.clear()
    make(secure, tmp_path / 'a').run()
    assert found(tmp_path / 'a') == complete(server)
    secure.shutdown()
    secure.server_close()


# ---- the NER sets


def ner_address(server):
    return f'{server.url}/data'


def ner_files(table):
    """What the server has: bytes by path, and a table as `blurb.SETS` with their checksums."""
    files, made = {}, {}
    for number, (name, known) in enumerate(table.items()):
        contents = [f'{name}\tB-X\n{split}\tO\n\n'.encode() * (1000 + number) for split in SPLITS]
        files |= {
            f'/pubmed/data/{known.folder}/{split}.tsv': c for split, c in zip(SPLITS, contents, strict=True)
        }
        checksums = tuple(hashlib.sha256(c).hexdigest() for c in contents)
        made[name] = dataclasses.replace(known, checksums=checksums)
    return files, made


@pytest.fixture
def ner_server(server, monkeypatch):
    server.files, table = ner_files(blurb.SETS)
    monkeypatch.setattr(ner_download, 'SETS', table)
    return server


def ner_sets(server, to, *, files='*', check=False, quiet=True, **patience):
    catalogue = ner_download.NerSets(ner_address(server), files)
    return Download(to, catalogue, check=check, patience=patience_of(**patience), quiet=quiet)


def sets_in(to, table):
    """The files below `to` by their path at the server."""
    return {
        f'/pubmed/data/{table[p.parent.name].folder}/{p.name}': p.read_bytes()
        for p in to.rglob('*')
        if p.is_file() and not p.name.startswith('.')
    }


def test_finetune_sets_come_once_whatever_the_server_does(ner_server, tmp_path, capsys):
    path = '/pubmed/data/BC2GM-IOB/train.tsv'
    ner_server.faults[path] = [('drop', 500), ('corrupt',), ('status', 503)]
    assert ner_sets(ner_server, tmp_path, quiet=False).run() == {'files': 15, 'fetched': 15, 'there': 0}
    assert sets_in(tmp_path, blurb.SETS) == ner_server.files
    assert not hidden(tmp_path)
    assert ner_server.asked(path) == [None, 'bytes=500-', None, None]
    text = capsys.readouterr().out
    assert 'BC2GM-IOB/train.tsv: its bytes are not what was published (by SHA-256); discarded' in text
    assert f'--config.finetune.folder={tmp_path}' in text
    ner_server.requests.clear()
    assert ner_sets(ner_server, tmp_path).run() == {'files': 15, 'fetched': 0, 'there': 15}
    assert not ner_server.requests


def test_finetune_files_that_changed_on_either_side(ner_server, tmp_path):
    one = ner_sets(ner_server, tmp_path, files='ncbi-disease/*')
    assert one.run()['files'] == 3
    path = tmp_path / 'ncbi-disease' / 'devel.tsv'
    before, content = path.stat(), path.read_bytes()
    path.write_bytes(content[::-1])
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert ner_sets(ner_server, tmp_path, files='ncbi-disease/*').run()['there'] == 3
    assert ner_sets(ner_server, tmp_path, files='ncbi-disease/*', check=True).run()['fetched'] == 1
    assert path.read_bytes() == content
    ner_server.files['/pubmed/data/JNLPBA/test.tsv'] += b'more'
    with pytest.raises(
        InputError, match=r'1 of 15 files .*: jnlpba/test\.tsv \(its bytes are not what was published'
    ):
        ner_sets(ner_server, tmp_path).run()
    assert not (tmp_path / 'jnlpba' / 'test.tsv').exists()
    assert len(sets_in(tmp_path, blurb.SETS)) == 14


def test_finetune_sets_on_the_command_line(ner_server, tmp_path, capsys):
    flags = ['download', '--what=ner', f'--to={tmp_path}', f'--url={ner_address(ner_server)}']
    assert cli.main([*flags, '--files=nothing']) == 2
    assert '--files=nothing: no file has such a name; they are SET/train.tsv' in capsys.readouterr().err
    assert cli.main([*flags, '--files=*/train.tsv']) == 0
    assert len(sets_in(tmp_path, blurb.SETS)) == 5
    ner_server.always['/pubmed/data/JNLPBA/test.tsv'] = ('status', 404)
    assert cli.main(flags) == 3
    assert (
        '1 of 15 files could not be fetched: jnlpba/test.tsv (the server answers 404'
        in capsys.readouterr().err
    )
    del ner_server.always['/pubmed/data/JNLPBA/test.tsv']
    assert cli.main([*flags, '--check']) == 0
    assert sets_in(tmp_path, blurb.SETS) == ner_server.files


def test_the_checksums_are_those_of_the_real_files(data, server, tmp_path):
    server.files = {
        f'/pubmed/data/{known.folder}/{split}.tsv': (data / 'ner' / name / f'{split}.tsv').read_bytes()
        for name, known in blurb.SETS.items()
        for split in SPLITS
    }
    assert ner_sets(server, tmp_path).run() == {'files': 15, 'fetched': 15, 'there': 0}
    assert sets_in(tmp_path, blurb.SETS) == server.files


def test_the_advice_for_sets_in_a_folder_with_a_blank_in_its_name_can_be_typed():
    looked, used = ner_download.NerSets().advice(Path('my sets'), []).splitlines()
    assert shlex.split(looked)[-3:] == ['bioptimus', 'lint', '--sets=my sets']
    assert shlex.split(used)[-1] == '--config.finetune.folder=my sets'
