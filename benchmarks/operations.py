"""Kills at every file operation of every stage: does the same command always end in the same bytes?

    python benchmarks/operations.py [--quick] [--stages A,B] [--every N] [--folder DIR]

Makes a tiny world and runs every stage in it twice undisturbed: the files that come out alike are compared below. Then,
for every stage and each of its file operations (open for writing, rename, unlink, mkdir, rmdir, chmod, link, fsync, as
Python's audit events report them, in all threads), the stage is killed with SIGKILL right before that operation, the
same command is given again, and the run folder is compared with the undisturbed one: every file bit by bit, but those
that hold times; their names, the stage's content digest, the losses in metrics.jsonl; and that nothing is left over.
Operations that change nothing in the folder (a mkdir of what is there, an fsync) leave what the one before them left:
of such a row the first is tried, and counts for all.
What native code does between two operations (safetensors, TensorStore, ArrayRecord) is not told apart; `faults.py`
kills there. Stages work in one process (workers=1). Every try is two forks of one process that has imported everything.

With --folder the work is kept there and the same command goes on from it. --every tries each N-th state. The full run
writes results/operations.json; --quick tries every sixth of stage vocab and writes nothing.
"""

import argparse
import contextlib
import importlib
import json
import os
import random
import re
import shutil
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from bioptimus_jax.cli.main import DONE
from bioptimus_jax.cli.main import main as bioptimus
from bioptimus_jax.experiment.schema import Experiment
from bioptimus_jax.run.manifests import MANIFEST
from bioptimus_jax.storage.files import read_json, sha256, write_json

STAGES = Experiment().stages
SECONDS = 600

CONFIG = """
from bioptimus_jax.experiment.config import defaults

def get_config(argument=''):
    c = defaults()
    c.source.path = {source!r}
    c.corpus.update(inputs=({corpus!r},), heldout_fraction=0.2, shards=2)
    c.corpus.audit.folder = c.finetune.folder = {ner!r}
    c.vocab.size = 200
    c.contexts.per_token = 2
    c.model.update(layers=1, hidden=16, heads=2, intermediate=32, max_positions=64)
    c.rows.update(row_pieces=64, max_document_pieces=64, shard_rows=8)
    c.pretrain.update(batch_rows=4, learning_rate=1e-3, max_word_pieces=4)
    c.phases = ('0.1', '0.2')
    for name in c.phases:
        c.phase[name].update(duration=4.0, duration_unit='steps')
    c.evaluation.update(rows=4, per_phase=2, snapshots_per_phase=1)
    c.finetune.update(models=('initial', '0.2'), seeds=(0,), epochs=1, max_pieces=32, overlap_pieces=8)
    c.analysis.update(cloze_documents=8, pairs=100, geometry_words=8, geometry_contexts=2, geometry_points=4)
    c.runtime.update(workers=1, devices=1, log_every_steps=2, checkpoint_every_steps=3)
    if argument == 'source':
        c.source.path, c.surgery.strategy, c.vocab.size = '', 'scratch', 120
        c.corpus.update(inputs=({general!r},), shards=1)
        c.corpus.audit.folder = ''
    return c
"""


class Operations:
    """Counts the file operations of this process within `root`, and kills it right before number `last`.

    The names of those that were counted go into `log`, a file outside of it.
    """

    def __init__(self, root: Path, last: int, log: Path):
        self.root, self.last, self.done = str(root), last, 0
        self.before: set[tuple] = set()
        self.log = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)

        def fsync(file: Any) -> None:
            self.count(
                'fsync', os.readlink(f'/proc/self/fd/{file if isinstance(file, int) else file.fileno()}')
            )

        os.fsync = fsync  # has no audit event; what is written outlives the process without it
        sys.addaudithook(self.hook)

    def hook(self, event: str, arguments: tuple) -> None:
        """Python's audit hook; it is called before the operation is done."""
        if event == 'open':
            path, _, flags = arguments
            if isinstance(flags, int) and flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT):
                self.count('open', path)
        elif event in ('os.remove', 'os.rmdir', 'os.mkdir', 'os.chmod'):
            self.count(event, arguments[0], arguments[-1])
        elif event in ('os.rename', 'os.link', 'os.symlink'):
            self.count(event, arguments[1], arguments[-1])

    def count(self, event: str, path: Any, folder: int = -1) -> None:
        """One more operation, if it is on a path of the run, or on a name in an open folder of it."""
        if isinstance(path, int):
            return
        name = os.fsdecode(path)
        if folder != -1:
            with contextlib.suppress(OSError):
                name = f'{os.readlink(f"/proc/self/fd/{folder}")}/{name}'
        if not name.startswith(self.root):
            return
        self.done += 1
        changed = '='
        if not self.last and (now := set(self.state(self.root))) != self.before:
            self.before, changed = now, '+'
        line = f'{changed} {event.removeprefix("os.")} {name[len(self.root) + 1 :]}\n'
        os.write(self.log, line.encode())
        if self.last and self.done >= self.last:  # two threads may count before either of them looks
            os.kill(os.getpid(), signal.SIGKILL)

    def state(self, folder: str) -> Iterator[tuple]:
        """The contents of the folder, in enough detail that any change shows."""
        with contextlib.suppress(FileNotFoundError), os.scandir(folder) as entries:
            for entry in entries:
                status = entry.stat(follow_symlinks=False)
                yield entry.path, status.st_ino, status.st_mode, status.st_size, status.st_mtime_ns
                if entry.is_dir(follow_symlinks=False):
                    yield from self.state(entry.path)


def main() -> None:
    plain = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=plain)
    parser.add_argument('--quick', action='store_true', help='every sixth of stage vocab; writes nothing')
    parser.add_argument('--stages', default=','.join(STAGES))
    parser.add_argument('--every', type=int, default=1, help='each N-th state that an operation leaves')
    parser.add_argument('--folder', help='keep the work here, and go on from it')
    options = parser.parse_args()
    stages, every = tuple(options.stages.split(',')), options.every
    if options.quick:
        stages, every = ('vocab',), 6
    with tempfile.TemporaryDirectory(prefix='bioptimus-operations-') as temporary:
        folder = Path(options.folder or temporary).resolve()
        surroundings(folder)
        record = measure(folder, stages, every)
    tries = [one for name in record for one in record[name]['tries']]
    bad = [one for one in tries if one['differs']]
    for one in bad:
        print(json.dumps(one))
    alike = len(tries) - len(bad)
    operations = sum(one['operations'] for one in tries)
    publish({'stages': record}, options.quick, operations=operations, tries=len(tries), identical=alike)
    sys.exit(bool(bad))


def surroundings(folder: Path) -> None:
    """What every fork works in: no network, one thread, and a memory of compiled steps in the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    os.environ |= {'JAX_PLATFORMS': 'cpu', 'HF_HUB_OFFLINE': '1', 'TOKENIZERS_PARALLELISM': 'false'}
    os.environ |= {'JAX_COMPILATION_CACHE_DIR': str(folder / 'compiled'), 'OMP_NUM_THREADS': '1'}
    os.environ |= {'JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS': '0', 'MPLBACKEND': 'agg'}


def publish(result: dict[str, Any], quick: bool, **headline: float) -> None:
    """Publish a result; without the module of benchmarks, which times things, a try begins sooner."""
    import protocol

    protocol.publish('operations', result, quick, **headline)


def measure(folder: Path, stages: tuple[str, ...], every: int) -> dict[str, Any]:
    """Stage -> the operations that it makes, and a record for each try; kept in `folder` as it grows."""
    config = prepare(folder)
    last = max(map(STAGES.index, stages))
    wanted = {name: undisturbed(folder, config, name) for name in STAGES[: last + 1]}
    record: dict[str, Any] = read_json(folder / 'record.json') or {}
    for name in stages:
        operations, alike, losses = wanted[name]
        facts = {'operations': len(operations), 'compared': sum(map(bool, alike.values())), 'tries': []}
        kept = record.setdefault(name, facts)
        done = {one['operation'] for one in kept['tries']}
        states = [n for n, line in enumerate(operations, 1) if n == 1 or line.startswith('+')]
        for number, after in list(zip(states, [*states[1:], len(operations) + 1], strict=True))[::every]:
            if number in done:
                continue
            one = attempt(folder, config, name, number, alike, losses)
            one['operations'] = after - number
            kept['tries'].append(one)
            write_json(folder / 'record.json', record)
            print(
                f'{name} {number}/{len(operations)}: {one["at"]}: {one["differs"] or "same bytes"}',
                flush=True,
            )
    return {name: record[name] for name in stages}


def prepare(folder: Path) -> Path:
    """General and special texts, a set of entities, and the config, in `folder/world`; and the source model."""
    world = folder / 'world'
    config = world / 'tiny.py'
    if not config.is_file():
        draw = random.Random(0)
        (world / 'ner' / 'drugs').mkdir(parents=True, exist_ok=True)
        words = [''.join(draw.choices('abcdeimnorst', k=draw.randint(2, 8))) for _ in range(120)]
        for name, known in (('general', words[:60]), ('special', words[40:])):
            with open(world / f'{name}.jsonl', 'w') as file:
                for number in range(60):
                    text = (
                        '. '.join(' '.join(draw.choices(known, k=draw.randint(4, 12))) for _ in range(3))
                        + '.'
                    )
                    file.write(json.dumps({'id': f'{name}-{number}', 'title': '', 'abstract': text}) + '\n')
        for split, count in (('train', 12), ('devel', 4), ('test', 4)):
            with open(world / 'ner' / 'drugs' / f'{split}.tsv', 'w') as file:
                for _ in range(count):
                    chosen = draw.choices(words[80:], k=6)
                    file.writelines(f'{w}\t{"B-Drug" if n == 2 else "O"}\n' for n, w in enumerate(chosen))
                    file.write('\n')
        places = {name: str(world / f'{name}.jsonl') for name in ('general', 'special')}
        source = str(folder / 'source' / 'surgery' / 'model')
        text = CONFIG.format(
            source=source, corpus=places['special'], general=places['general'], ner=str(world / 'ner')
        )
        temporary = config.with_suffix('.tmp')
        temporary.write_text(text)
        os.replace(temporary, config)
    for verb in ('corpus', 'vocab', 'surgery'):
        must([verb, f'--config={config}:source', f'--workdir={folder / "source"}'], folder)
    return config


def undisturbed(folder: Path, config: Path, stage: str) -> tuple[list[str], dict[str, str], list[Any]]:
    """The operations of a stage; name -> SHA-256 of the files that two runs write alike (else ''); its losses.

    What the run was before goes to `folder/before-STAGE`.
    """
    kept = folder / f'undisturbed-{stage}.json'
    if not kept.is_file():
        before, run = folder / f'before-{stage}', folder / 'run'
        number = STAGES.index(stage)
        after = folder / f'after-{STAGES[number - 1]}' if number else None
        copy(after, before)
        found = []
        for part in ('second', 'first'):
            copy(before, run)
            must([stage, f'--config={config}', f'--workdir={run}'], folder, log=folder / f'{part}.log')
            found.append(files_of(run))
        copy(run, folder / f'after-{stage}')
        alike = {n: s if found[0].get(n) == s else '' for n, s in found[1].items()}
        operations = (folder / 'first.log').read_text().splitlines()
        write_json(kept, [operations, alike, losses_of(run)])
    operations, alike, losses = read_json(kept)  # type: ignore[misc]
    return operations, alike, losses


def attempt(
    folder: Path, config: Path, stage: str, number: int, alike: dict[str, str], losses: list[Any]
) -> dict[str, Any]:
    """Kill the stage right before one operation, give the command again, and compare."""
    run, log = folder / 'run', folder / 'killed.log'
    command = [stage, f'--config={config}', f'--workdir={run}']
    for _ in range(
        5
    ):  # how many operations writing a checkpoint takes is a matter of chance: some have fewer
        copy(folder / f'before-{stage}', run)
        started = time.monotonic()
        code, _ = forked(command, folder, number, log)
        if code != DONE:
            break
    counted = log.read_text().splitlines()
    ended = code == DONE and len(counted) < number  # with fewer operations each time: nothing to kill
    at = 'not reached' if ended else counted[-1][2:]
    differs = [] if ended or code == -signal.SIGKILL else [f'the first command ended with {code}']
    code, said = forked(command, folder)
    if code != DONE:
        differs.append(f'the same command ended with {code}: {said.splitlines()[-1] if said else ""}')
    else:
        found = files_of(run)
        differs += [f'{name} is missing' for name in alike.keys() - found.keys()]
        differs += [f'{name} is left over' for name in found.keys() - alike.keys()]
        differs += [
            f'{name} differs' for name, wanted in alike.items() if wanted and found.get(name) != wanted
        ]
        differs += ['losses differ'] if losses_of(run) != losses else []
    return {
        'operation': number,
        'at': at,
        'differs': sorted(differs),
        'seconds': round(time.monotonic() - started, 1),
    }


def files_of(run: Path) -> dict[str, str]:
    """Name -> SHA-256 of every file of the run, hidden ones too; of a manifest, of what says nothing about times.

    TensorStore cuts what it writes into files by chance and names them so: the content digest counts in their place.
    """
    found = {}
    for path in sorted(p for p in run.rglob('*') if p.is_file()):
        name = re.sub('[0-9a-f]{32}', 'N', str(path.relative_to(run)))
        if path.name == MANIFEST and len(path.relative_to(run).parts) == 2:
            manifest = read_json(path)
            found[name] = json.dumps([manifest[part] for part in ('config', 'inputs', 'content')])
        elif name.endswith('/N') or path.name == 'commit_success.txt':  # names the folder
            found[name] = ''
        elif path.parent != run or not name.endswith('.tmp'):  # of .checksums.json: a memory, in nobody's way
            found[name] = sha256(path)
    return found


def losses_of(run: Path) -> list[Any]:
    """Step, phase and losses of every evaluation in metrics.jsonl, each step once, the last time."""
    found = {}
    path = run / 'metrics.jsonl'
    for line in path.read_text('utf-8', 'replace').splitlines() if path.exists() else ():
        with contextlib.suppress(ValueError):
            record = json.loads(line)
            if isinstance(record, dict) and record.get('kind') == 'evaluation':
                found[record['step']] = [record[key] for key in ('phase', 'frozen_loss', 'losses', 'tokens')]
    return sorted(([step, *values] for step, values in found.items()), key=lambda entry: entry[0])


def copy(origin: Path | None, to: Path) -> None:
    """A copy in which files keep their times."""
    shutil.rmtree(to, ignore_errors=True)
    if origin:
        shutil.copytree(origin, to)
    else:
        to.mkdir()


def must(command: list[str], folder: Path, log: Path | None = None) -> None:
    code, said = forked(command, folder, log=log)
    if code != DONE:
        raise SystemExit(f'{" ".join(command)}: ended with {code}:\n{said}')


def forked(command: list[str], folder: Path, last: int = 0, log: Path | None = None) -> tuple[int, str]:
    """The exit code of a command in a fork of this process, less than 0 for a signal, and what it said."""
    said, late = folder / 'said.txt', folder / 'modules.txt'
    late.write_text('')
    sys.stdout.flush()
    child = os.fork()
    if not child:
        code = 1
        try:
            with open(said, 'wb') as file:
                os.dup2(file.fileno(), 1)
                os.dup2(file.fileno(), 2)
            signal.alarm(SECONDS)
            if log:
                Operations(folder / 'run', last, log)
            known = set(sys.modules)
            code = bioptimus(command)
            late.write_text('\n'.join(sorted(set(sys.modules) - known)))
        except BaseException:
            traceback.print_exc()
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(code)
    status = os.waitpid(child, 0)[1]
    for name in late.read_text().split():
        with contextlib.suppress(Exception):  # what a command imports late, every fork after it has at once
            importlib.import_module(name)
    return os.waitstatus_to_exitcode(status), said.read_text(errors='replace')


if __name__ == '__main__':
    main()
