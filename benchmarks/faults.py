"""Kills and damaged checkpoints: does training always end in the same parameters?

    python benchmarks/faults.py [--quick] [--kills N] [--damages N] [--folder DIR]

Trains a tiny model through four phases once undisturbed. Then again and again from the start, each time killed with
SIGKILL (2 to 4 times a run), and compares every parameter bit by bit. One kill in five comes within ten seconds of a
start (--quick: four); the others up to half a second after a step drawn over all phases is on record, in which some
steps and often the writing of a checkpoint fall: one is written every three steps. Then damages the newest checkpoint
of unfinished runs, in a different way each time, and goes on. With --folder the work is kept there and the same command
goes on from it. The full run makes 50 kills and damages 10 checkpoints and writes results/faults.json. --quick makes 2
and 1 in 24 steps, with programs that are compiled once, in haste, and kept for all starts; it takes about 50 s and
writes nothing.
"""

import argparse
import dataclasses
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from protocol import publish

from bioptimus_jax.experiment.config import load
from bioptimus_jax.experiment.schema import Experiment
from bioptimus_jax.experiment.stages import STAGES
from bioptimus_jax.model.trees import flatten
from bioptimus_jax.pretrain.checkpoint import load_phase
from bioptimus_jax.run.execute import execute
from bioptimus_jax.run.folder import Run
from bioptimus_jax.storage.files import read_json, write_json

CONFIG = """
from bioptimus_jax.experiment.config import defaults

def get_config(argument=''):
    c = defaults()
    c.corpus.update(inputs=({corpus!r},), heldout_fraction=0.1, shards=1)
    c.vocab.update(size=300)
    c.model.update(layers=2, hidden=32, heads=2, intermediate=64, max_positions=64)
    c.surgery.strategy = 'scratch'
    c.rows.update(row_pieces=64, max_document_pieces=64)
    c.pretrain.update(batch_rows=8, learning_rate=1e-3, max_word_pieces=4)
    for name in c.phases:
        c.phase[name].update(duration={steps}, duration_unit='steps')
    c.evaluation.update(rows=8, per_phase=2)
    c.runtime.update(workers=1, devices=1, log_every_steps=2, checkpoint_every_steps=3)
    return c
"""
LAST = '0.4'
DAMAGES = (
    'flip one byte',
    'flip many',
    'truncate',
    'empty',
    'delete a file',
    'delete metadata',
    'wrong checksums',
)


@dataclasses.dataclass(frozen=True)
class Size:
    """Kills, damaged checkpoints, steps of each of the four phases, and seconds within which an early kill comes."""

    kills: int
    damages: int
    steps: int
    early: float


FULL, QUICK = Size(50, 10, 40, 10.0), Size(2, 1, 6, 4.0)
HASTY = '--xla_backend_optimization_level=0 --xla_llvm_disable_expensive_passes=true'
"""XLA's options with --quick: programs that run for a moment."""


def main() -> None:
    plain = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=plain)
    parser.add_argument('--quick', action='store_true', help='2 kills, 1 damage, writes nothing')
    parser.add_argument('--kills', type=int, default=FULL.kills)
    parser.add_argument('--damages', type=int, default=FULL.damages)
    parser.add_argument('--folder', help='keep the work here, and go on from it')
    options = parser.parse_args()
    full = dataclasses.replace(FULL, kills=options.kills, damages=options.damages)
    with tempfile.TemporaryDirectory(prefix='bioptimus-faults-') as temporary:
        folder = Path(options.folder or temporary)
        folder.mkdir(parents=True, exist_ok=True)
        if options.quick:  # for every process that is started
            kept = {'JAX_COMPILATION_CACHE_DIR': str(folder / 'compiled')}
            os.environ |= {**kept, 'JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS': '0', 'XLA_FLAGS': HASTY}
        measure(folder, QUICK if options.quick else full, options.quick)


def measure(folder: Path, size: Size, quick: bool) -> None:
    config = prepare(folder, size.steps)
    undisturbed = folder / 'undisturbed'
    if not (undisturbed / 'pretrain' / 'manifest.json').is_file():
        train(config, copied(folder, undisturbed))
    wanted = flatten(load_phase(undisturbed / 'pretrain', LAST))
    record: dict[str, Any] = read_json(folder / 'record.json') or {'killed': [], 'damaged': []}
    while sum(run['kills'] for run in record['killed']) < size.kills:
        number = len(record['killed'])
        left = size.kills - sum(run['kills'] for run in record['killed'])
        record['killed'].append(kill(config, folder, number, min(left, 2 + number % 3), size.early, wanted))
        write_json(folder / 'record.json', record)
        print(f'run {number}: {record["killed"][-1]}', flush=True)
    while len(record['damaged']) < size.damages:
        number = len(record['damaged'])
        record['damaged'].append(damage(config, folder, number, wanted))
        write_json(folder / 'record.json', record)
        print(f'damage {number}: {record["damaged"][-1]}', flush=True)
    runs, damaged = record['killed'], record['damaged']
    publish(
        'faults',
        record,
        quick,
        kills=sum(run['kills'] for run in runs),
        identical=sum(run['kills'] for run in runs if run['identical']),
        corrupted=len(damaged),
        survived=sum(entry['identical'] for entry in damaged),
    )


def prepare(folder: Path, steps: int) -> Path:
    """A corpus of made-up words, and everything that pre-training reads, in `folder/prepared`."""
    config = folder / 'tiny.py'
    draw = random.Random(0)
    words = [''.join(draw.choices('abcdeimnorst', k=draw.randint(2, 9))) for _ in range(150)]
    if not config.is_file():
        with open(folder / 'corpus.jsonl', 'w') as file:
            for number in range(300):
                text = ' '.join(draw.choices(words, k=draw.randint(6, 60))) + '.'
                file.write(json.dumps({'id': str(number), 'title': '', 'abstract': text}) + '\n')
        config.write_text(CONFIG.format(corpus=str(folder / 'corpus.jsonl'), steps=float(steps)))
    run = Run(folder / 'prepared', Experiment.from_config(load(str(config))), quiet=True)
    for stage in ('corpus', 'vocab', 'surgery', 'rows'):
        execute(run, STAGES[stage])
    return config


def copied(folder: Path, workdir: Path) -> Path:
    shutil.rmtree(workdir, ignore_errors=True)
    shutil.copytree(folder / 'prepared', workdir)
    return workdir


def start(config: Path, workdir: Path) -> subprocess.Popen:
    command = ['-m', 'bioptimus_jax.cli.main', 'pretrain', f'--config={config}', f'--workdir={workdir}']
    return subprocess.Popen(
        [sys.executable, *command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )


def train(config: Path, workdir: Path) -> None:
    """Train to the end; what it says goes into the message if it fails."""
    process = start(config, workdir)
    text = process.communicate()[0]
    if process.returncode:
        raise SystemExit(f'training ended with code {process.returncode}:\n{text}')


def kill(
    config: Path, folder: Path, number: int, times: int, early: float, wanted: dict[str, np.ndarray]
) -> dict[str, Any]:
    """One run, killed `times` times, then finished and compared."""
    workdir, draw, moments = copied(folder, folder / 'killed'), random.Random(number), []
    last = 4 * steps_of(config) - 1
    targets = sorted(draw.randrange(last) if draw.random() < 0.8 else -1 for _ in range(times))
    while len(moments) < times:
        process = start(config, workdir)
        target = targets[len(moments)]
        if target >= 0:
            while process.poll() is None and last_step(workdir) < target:
                time.sleep(0.01)
        time.sleep(draw.uniform(0, 0.5 if target >= 0 else early))
        if process.poll() is None:
            process.kill()
            moments.append({'target': target, 'step': last_step(workdir), 'writing': being_written(workdir)})
        elif process.returncode:
            raise SystemExit(f'training ended with code {process.returncode}:\n{process.communicate()[0]}')
        else:  # it came to its end before the moment did: begin this run again
            copied(folder, workdir)
            moments.clear()
        process.communicate()
    train(config, workdir)
    return {'kills': times, 'moments': moments, 'identical': identical(workdir, wanted)}


def steps_of(config: Path) -> int:
    """Steps of each of the four phases."""
    return int(load(str(config)).phase[LAST].duration)


def being_written(workdir: Path) -> bool:
    """Whether a checkpoint is half written: it has a temporary name until it is complete."""
    folder = workdir / 'pretrain' / 'checkpoints'
    return any('tmp' in path.name for path in folder.glob('*')) if folder.is_dir() else False


def damage(config: Path, folder: Path, number: int, wanted: dict[str, np.ndarray]) -> dict[str, Any]:
    """A finished run whose newest checkpoint is damaged and which then trains again from the one before."""
    workdir, draw = folder / 'damaged', random.Random(number)
    shutil.rmtree(workdir, ignore_errors=True)
    shutil.copytree(folder / 'undisturbed', workdir)
    pretrain = workdir / 'pretrain'
    os.replace(pretrain / 'manifest.json', pretrain / '.started.json')
    newest = max((pretrain / 'checkpoints').iterdir(), key=lambda path: int(path.name))
    kind = DAMAGES[number % len(DAMAGES)]
    spoil(newest, kind, draw)
    train(config, workdir)
    return {'kind': kind, 'checkpoint': int(newest.name), 'identical': identical(workdir, wanted)}


def spoil(checkpoint: Path, kind: str, draw: random.Random) -> None:
    files = sorted(
        path for path in (checkpoint / 'state').rglob('*') if path.is_file() and path.stat().st_size
    )
    largest = max(files, key=lambda path: path.stat().st_size)
    content = bytearray(largest.read_bytes())
    if kind == 'wrong checksums':
        metadata = checkpoint / 'checksums' / 'metadata'
        sums = {name: (value + 1) % 2**32 for name, value in json.loads(metadata.read_text()).items()}
        metadata.write_text(json.dumps(sums))
    elif kind == 'delete metadata':
        for path in files:
            if 'metadata' in path.name.lower():
                path.unlink()
    elif kind == 'delete a file':
        largest.unlink()
    elif kind in ('truncate', 'empty'):
        largest.write_bytes(content[: len(content) // 2 if kind == 'truncate' else 0])
    else:
        # One byte may fall into what no array uses; a checkpoint that still agrees with its sums is no damage.
        for at in [draw.randrange(len(content))] if kind == 'flip one byte' else range(0, len(content), 512):
            content[at] ^= 0x10
        largest.write_bytes(content)


def last_step(workdir: Path) -> int:
    metrics = workdir / 'metrics.jsonl'
    lines = metrics.read_text().splitlines() if metrics.exists() else []
    return max((json.loads(line)['step'] for line in lines if line.endswith('}')), default=0)


def identical(workdir: Path, wanted: dict[str, np.ndarray]) -> bool:
    found = flatten(load_phase(workdir / 'pretrain', LAST))
    return found.keys() == wanted.keys() and all(np.array_equal(found[name], wanted[name]) for name in wanted)


if __name__ == '__main__':
    main()
