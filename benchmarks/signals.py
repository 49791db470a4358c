"""Signals to the whole process group, at any moment of a stage with worker processes: does each end as documented?

    python benchmarks/signals.py [--quick] [--tries N] [--jobs N] [--folder DIR]

Generates the demo's world and makes every stage once. Then starts a stage from its beginning, as the program in a
session of its own, and sends SIGTERM, SIGINT or SIGHUP in turn to the whole group, as `scancel`, Ctrl-C and a closed
terminal do, at a moment drawn over its length and a half, but not before the program's first line; up to three times
until it is done. Each try must end within five minutes with the signal's exit code and one line on stderr, and leave no
process. The same command must then go on to the content of the undisturbed stage. With --folder the work is kept
there and the same command goes on from it. The full run makes 200 tries and writes results/signals.json; --quick 10.
"""

import argparse
import concurrent.futures
import gzip
import itertools
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from pathlib import Path
from typing import Any

from protocol import publish

from bioptimus_jax.demo.generate import generate
from bioptimus_jax.experiment.config import load
from bioptimus_jax.experiment.schema import Experiment
from bioptimus_jax.experiment.stages import STAGES
from bioptimus_jax.run.execute import execute
from bioptimus_jax.run.folder import Run
from bioptimus_jax.storage.files import read_json, write_json

CONFIG = """
from bioptimus_jax.experiment.config import load

def get_config(argument=''):
    c = load('demo')
    c.source.path = {source!r}
    c.corpus.inputs = ({inputs!r},)
    c.corpus.audit.folder = c.finetune.folder = {ner!r}
    c.vocab.general = ({general!r},)
    c.rows.block_documents = 256
    c.finetune.update(models=('initial',), datasets=('drugs',), epochs=1, seeds=(0, 1))
    c.runtime.update(workers=2, torch_threads=1)
    return c
"""
INPUTS = 8  # files, so that the corpus has work for its processes
EARLIER = ('corpus', 'vocab', 'contexts', 'surgery', 'rows', 'finetune')
WITH_WORKERS = tuple(name for name in EARLIER if name != 'surgery')
ASKING = {signal.SIGTERM: 75, signal.SIGINT: 130, signal.SIGHUP: 75}
PER_RUN = 3
HANGS_AFTER, GONE_AFTER = 300.0, 10.0  # seconds


def main() -> None:
    plain = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=plain)
    parser.add_argument('--quick', action='store_true', help='10 tries, writes nothing')
    parser.add_argument('--tries', type=int, default=200)
    parser.add_argument('--jobs', type=int, default=1, help='stages side by side')
    parser.add_argument('--folder', help='keep the work here, and go on from it')
    options = parser.parse_args()
    for number in ASKING:  # what is started in the background ignores some, and so would the program
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, lambda *_: None)
    tries = 10 if options.quick else options.tries
    with tempfile.TemporaryDirectory(prefix='bioptimus-signals-') as temporary:
        folder = Path(options.folder or temporary).absolute()
        folder.mkdir(parents=True, exist_ok=True)
        measure(folder, tries, options.jobs, options.quick)


def measure(folder: Path, wanted: int, jobs: int, quick: bool) -> None:
    config = prepare(folder)
    record: dict[str, Any] = read_json(folder / 'record.json') or {'seconds': {}, 'runs': []}
    for stage in WITH_WORKERS:
        if stage not in record['seconds']:
            record['seconds'][stage] = undisturbed_seconds(config, folder, stage)
            write_json(folder / 'record.json', record)
    lock, numbers = threading.Lock(), itertools.count(len(record['runs']))

    def work(job: int) -> None:
        while tried(record) < wanted:
            with lock:
                number = next(numbers)
            stage = WITH_WORKERS[number % len(WITH_WORKERS)]
            workdir = before(folder, stage, f'disturbed-{job}')
            run = disturb(config, workdir, number, stage, 1.5 * record['seconds'][stage])
            run['identical'] = finish(config, workdir, stage) == content(folder / 'prepared', stage)
            with lock:
                record['runs'].append(run)
                write_json(folder / 'record.json', record)
                print(f'run {number}: {run}', flush=True)

    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        list(pool.map(work, range(jobs)))
    tries = [one for run in record['runs'] for one in run['tries']]
    codes = Counter(f'{one["signal"]} {one["code"]}' for one in tries)
    waits = sorted(one['seconds_to_end'] for one in tries if one['seconds_to_end'] is not None)
    publish(
        'signals',
        {'codes': dict(sorted(codes.items())), **record},
        quick,
        tries=len(tries),
        as_documented=sum(one['as_documented'] for one in tries),
        just_finished=sum(one['code'] == 0 for one in tries),
        hangs=sum(one['code'] is None for one in tries),
        orphans=sum(one['orphans'] for one in tries),
        more_than_one_line=sum(one['lines'] > 1 for one in tries),
        runs=len(record['runs']),
        identical=sum(run['identical'] for run in record['runs']),
        median_seconds_to_end=waits[len(waits) // 2],
        longest_seconds_to_end=waits[-1],
        median_seconds_of_interpreter=sorted(one['deaf_seconds'] for one in tries)[len(tries) // 2],
    )


def tried(record: dict[str, Any]) -> int:
    return sum(len(run['tries']) for run in record['runs'])


def prepare(folder: Path) -> Path:
    """The world, a source without training, and every stage made once, in `folder/prepared`."""
    config, world = folder / 'signals_config.py', folder / 'world'
    if not config.is_file():
        generate(world, 0)
        records = gzip.decompress((world / 'pubmed.jsonl.gz').read_bytes()).splitlines(keepends=True)
        for number in range(INPUTS):
            (world / f'abstracts-{number}.jsonl').write_bytes(b''.join(records[number::INPUTS]))
        config.write_text(
            CONFIG.format(
                source=str(folder / 'source' / 'surgery' / 'model'),
                inputs=f'{world}/abstracts-*.jsonl',
                ner=f'{world}/ner',
                general=f'{world}/general.txt',
            )
        )
    settings = load('demo:source')
    settings.corpus.inputs = (f'{world}/general.txt',)
    source = Run(folder / 'source', Experiment.from_config(settings), quiet=True)
    for name in ('corpus', 'vocab', 'surgery'):
        execute(source, STAGES[name])
    run = Run(folder / 'prepared', Experiment.from_config(load(str(config))), quiet=True)
    for name in EARLIER:
        execute(run, STAGES[name])
    return config


def before(folder: Path, stage: str, name: str) -> Path:
    """A run folder with everything that the stage reads, and nothing of it."""
    workdir = folder / name
    shutil.rmtree(workdir, ignore_errors=True)
    for name in EARLIER[: EARLIER.index(stage)]:
        shutil.copytree(folder / 'prepared' / name, workdir / name)
    workdir.mkdir(exist_ok=True)
    return workdir


def start(config: Path, workdir: Path, stage: str) -> subprocess.Popen:
    """The program, as the first process of a session and a group of its own."""
    command = [sys.executable, '-m', 'bioptimus_jax', stage, f'--config={config}', f'--workdir={workdir}']
    with open(workdir / 'stdout.txt', 'w') as output, open(workdir / 'stderr.txt', 'w') as errors:
        return subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=errors,
            start_new_session=True,
            env=os.environ | {'PYTHONFAULTHANDLER': '1'},
        )


def finish(config: Path, workdir: Path, stage: str) -> str:
    """Run to the end; gives the stage's content digest."""
    process = start(config, workdir, stage)
    if process.wait():
        raise SystemExit(
            f'{stage} ended with code {process.returncode}: {(workdir / "stderr.txt").read_text()}'
        )
    return content(workdir, stage)


def content(workdir: Path, stage: str) -> str:
    return (read_json(workdir / stage / 'manifest.json') or {})['content']


def undisturbed_seconds(config: Path, folder: Path, stage: str) -> float:
    workdir, began = before(folder, stage, 'undisturbed'), time.monotonic()
    finish(config, workdir, stage)
    return time.monotonic() - began


def disturb(config: Path, workdir: Path, number: int, stage: str, seconds: float) -> dict[str, Any]:
    """A stage from its beginning, signalled until it is done, but not too often."""
    draw, tries = random.Random(number), []
    while len(tries) < PER_RUN and not (workdir / stage / 'manifest.json').exists():
        with_signal = tuple(ASKING)[(number + len(tries)) % len(ASKING)]
        if done := attempt(config, workdir, stage, with_signal, draw.uniform(0, seconds)):
            tries.append(done)
    return {'number': number, 'stage': stage, 'tries': tries}


def attempt(
    config: Path, workdir: Path, stage: str, with_signal: signal.Signals, at: float
) -> dict[str, Any] | None:
    """One start of the program, and one signal `at` seconds after it, but not before the program's first line.

    None where it had ended before.
    """
    began = time.monotonic()
    process = start(config, workdir, stage)
    while process.poll() is None and not listens(process.pid, with_signal):
        time.sleep(0.001)
    deaf = time.monotonic() - began
    while process.poll() is None and time.monotonic() - began < at:
        time.sleep(0.005)
    sent, children = time.monotonic(), len(members(process.pid)) - 1
    if process.poll() is not None:
        return None
    os.killpg(process.pid, with_signal)
    code: int | None = None
    try:
        code = process.wait(HANGS_AFTER)
    except subprocess.TimeoutExpired:
        os.kill(process.pid, signal.SIGABRT)  # it says where it stands
        time.sleep(1)
    ended = time.monotonic()
    while members(process.pid) and time.monotonic() - ended < GONE_AFTER:
        time.sleep(0.02)
    orphans = len(members(process.pid)) if code is not None else 0
    if members(process.pid):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    said = (workdir / 'stderr.txt').read_text()
    allowed = (0, ASKING[with_signal])
    return {
        'signal': with_signal.name,
        'at_seconds': round(sent - began, 3),
        'deaf_seconds': round(deaf, 3),
        'children': children,
        'code': code,
        'as_documented': code in allowed and not orphans,
        'seconds_to_end': None if code is None else round(ended - sent, 3),
        'orphans': orphans,
        'lines': len(said.splitlines()),
        **({} if code in allowed and said.count('\n') <= 1 else {'said': said[-4000:]}),
    }


def listens(process: int, number: int) -> bool:
    """Whether the process has blocked the signal, with its first line."""
    try:
        status = Path(f'/proc/{process}/status').read_text()
    except FileNotFoundError:
        return False
    return bool(int(status.split('SigBlk:')[1].split()[0], 16) >> (number - 1) & 1)


def members(session: int) -> list[int]:
    """The processes of a session that are alive."""
    found = []
    for entry in Path('/proc').iterdir():
        if entry.name.isdigit():
            try:
                state, _, _, of = (entry / 'stat').read_text().rpartition(')')[2].split()[:4]
            except (FileNotFoundError, ProcessLookupError):
                continue
            if int(of) == session and state != 'Z':
                found.append(int(entry.name))
    return found


if __name__ == '__main__':
    main()
