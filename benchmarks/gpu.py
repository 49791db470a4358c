"""What one card does: rates, kernels, train steps, the same in PyTorch, costs, resuming, fine-tuning, surgery.

    python benchmarks/gpu.py [--quick] [--part NAME ...] [--minutes N] [--into FILE] [--list]

One command for one NVIDIA card and ten minutes, without a network and without data: texts and weights are generated.
Each part (gpu_parts.py has them, most valuable first) is a process of its own with its own limit of seconds, start and
compilation included. A part that crashes or hangs loses nothing of the others, and of its own rows only those that it
had not found yet; the table says in a line why. After every part results/gpu-CARD.json is written. The same command
goes on from there: parts that were measured with the same code, versions and card are not run again, unless `--part`
names them.

The processes take memory as they need it (XLA_PYTHON_CLIENT_PREALLOCATE=false), since some share the card with one of
PyTorch; only one of them works at a time. JAX compiles into a fresh cache: the first part that needs a step says how
long its compilation takes, and the others find it there.

--quick is the same command on the CPU with tiny shapes, without a compiled peer; its speeds say nothing. It writes
nothing without --into.
"""

import argparse
import contextlib
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from gpu_parts import PARTS, Part, Place, run_role
from protocol import ON_CPU, RESULTS, head, last_line, versions_of

from bioptimus_jax.hosts.hardware import accelerators
from bioptimus_jax.storage.files import digest, read_json, write_json

MEASURED, FAILED = 'measured', 'failed'
LEAST = 20
"""Seconds that must be left for a part to begin: it takes about as long to start."""
SOURCES = ('benchmarks/*.py', 'bioptimus_jax/**/*.py')


def main() -> None:
    plain = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=plain)
    parser.add_argument('--quick', action='store_true', help='tiny shapes on the CPU')
    names = [part.name for part in PARTS]
    parser.add_argument(
        '--part', action='append', choices=names, help='only that one, measured again; repeatable'
    )
    parser.add_argument(
        '--minutes', type=float, help='minutes for the whole command (default 10; --quick: 60)'
    )
    parser.add_argument('--into', type=Path, help='file of the results (default: results/gpu-CARD.json)')
    parser.add_argument('--list', action='store_true', help='the parts, their limits, and what is measured')
    for internal in ('--measure', '--role'):
        parser.add_argument(internal, help=argparse.SUPPRESS)
    parser.add_argument('--work', type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.role:
        run_role(options.role, Place(options.work, options.quick))
    elif options.measure:
        measure(options.measure, Place(options.work, options.quick), options.into)
    else:
        sys.exit(lead(options))


def measure(name: str, place: Place, into: Path) -> None:
    """A part's process: its rows so far, after each of them."""
    rows = []
    for row in _part(name).rows(place):
        rows.append(row)
        write_json(into, rows)


def lead(options: argparse.Namespace) -> int:
    """Run what is wanted and not yet measured; the exit code, 1 where something of it could not be."""
    found = accelerators()
    if not options.quick and (found is None or found.platform != 'cuda'):
        print('gpu.py: no NVIDIA GPU here; --quick is the same command on the CPU', file=sys.stderr)
        return 2
    card = 'cpu' if options.quick or found is None else found.names[0]
    file = options.into or (None if options.quick else RESULTS / f'gpu-{slug(card)}.json')
    known = (read_json(file) if file else None) or {}
    result = head() | {'card': card, 'driver': getattr(found, 'driver', ''), 'parts': known.get('parts', {})}
    key = fingerprint(card, options.quick)
    entries, wanted = result['parts'], options.part or [part.name for part in PARTS]
    fresh = {n for n, entry in entries.items() if entry['state'] == MEASURED and entry['key'] == key}
    if options.list:
        for part in PARTS:
            print(f'{part.name:10} {part.seconds:4} s  {part.what}{" [measured]" * (part.name in fresh)}')
        return 0
    deadline = time.monotonic() + 60 * (options.minutes or (60 if options.quick else 10))
    signal.signal(
        signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM)
    )  # so that processes end with this one
    try:
        with tempfile.TemporaryDirectory(prefix='bioptimus-gpu-', ignore_cleanup_errors=True) as work:
            for part in PARTS:
                if part.name not in wanted or (part.name in fresh and not options.part):
                    continue
                left = deadline - time.monotonic()
                if left < LEAST:  # what an earlier command found of it stays
                    continue
                place = Place(Path(work), options.quick)
                seconds = min(part.seconds * place.slow, left)
                print(f'{part.name}: at most {seconds:.0f} s', file=sys.stderr, flush=True)
                entry = run(part, place, seconds)
                entries[part.name] = {**entry, 'key': key, 'date': result['date']}
                if file:
                    write_json(file, result)
    finally:
        print_table(result, wanted, key)
    return int(any((e := entries.get(n, {})).get('state') != MEASURED or e['key'] != key for n in wanted))


def run(part: Part, place: Place, seconds: float) -> dict[str, Any]:
    """A part in a process of its own: state, seconds, rows, and why it ended early, with the end of what it said."""
    work, quick = place.work, place.quick
    into, log = work / f'{part.name}.json', work / f'{part.name}.log'
    command = [sys.executable, __file__, f'--measure={part.name}', f'--work={work}', f'--into={into}']
    started, reason = time.monotonic(), ''
    with log.open('w') as file:
        process = subprocess.Popen(
            [*command, *['--quick'] * quick],
            stdin=subprocess.DEVNULL,
            stdout=file,
            stderr=file,
            start_new_session=True,  # a group of its own: its variants end with it
            env=environment(work, quick),
        )
    try:
        if code := process.wait(seconds):
            ended = f'killed by {signal.Signals(-code).name}' if code < 0 else f'ended with {code}'
            reason = f'{ended}: {last_line(log)}'
    except subprocess.TimeoutExpired:
        reason = f'stopped after its {seconds:.0f} s'
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    entry = {
        'state': FAILED if reason else MEASURED,
        'seconds': round(time.monotonic() - started, 1),
        'rows': read_json(into) or [],
    }
    if not reason:
        return entry
    said = log.read_text('utf-8', 'replace')[-4000:]
    print(said, file=sys.stderr)
    return {**entry, 'reason': reason, 'log': said}


def environment(work: Path, quick: bool) -> dict[str, str]:
    """The environment of a part: one card, a cache of compiled programs, no network; with `quick` the CPU."""
    cache = {
        'JAX_COMPILATION_CACHE_DIR': str(work / 'compiled'),
        'JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS': '1',
    }
    first = os.environ.get('CUDA_VISIBLE_DEVICES', '0').split(',')[0]
    card = {**ON_CPU, 'CUDA_VISIBLE_DEVICES': ''} if quick else {'CUDA_VISIBLE_DEVICES': first}
    offline = {'HF_HUB_OFFLINE': '1', 'TOKENIZERS_PARALLELISM': 'false', 'PYTHONUNBUFFERED': '1'}
    root = Path(__file__).resolve().parents[1]
    paths = {'PYTHONPATH': os.pathsep.join(filter(None, [str(root), os.environ.get('PYTHONPATH', '')]))}
    return {**cache, **os.environ, **card, **offline, **paths}


def fingerprint(card: str, quick: bool) -> str:
    """What decides the numbers: code, versions and card. A part with another one is measured again."""
    root = Path(__file__).resolve().parents[1]
    code = {
        str(file.relative_to(root)): file.read_text('utf-8') for s in SOURCES for file in sorted(root.glob(s))
    }
    return digest(
        {'code': code, 'card': card, 'quick': quick, 'versions': head()['versions'] | versions_of('jaxlib')}
    )


def slug(card: str) -> str:
    return re.sub(r'[^a-z0-9]+', '-', card.lower()).removeprefix('nvidia-').strip('-')


def print_table(result: dict[str, Any], wanted: Sequence[str], key: str) -> None:
    """Every part's rows, or in a line why there are none; the headline last."""
    for name in wanted:
        entry = result['parts'].get(name)
        if entry is None:
            print(f'{name:10} not started: no time left; run the same command to continue')
            continue
        before = f', of {entry["date"]} with other code or versions' * (entry['key'] != key)
        print(f'{name:10} {entry["seconds"]:.0f} s{before}')
        for row in entry['rows']:
            print(f'  {row["what"]:28} {row["found"]}')
        if entry['state'] != MEASURED:
            print(f'  {"cannot go on":28} {entry["reason"]}')
    numbers = {
        'useful_tokens_per_second': ('base-512', 'useful_tokens_per_second'),
        'mfu': ('base-512', 'mfu'),
        'ours_over_best': ('peers', 'ours_over_best'),
        'host_ms': ('base-512', 'host_ms'),
    }
    found = {n: _number(result, *where) for n, where in numbers.items()}
    print(
        'headline: ' + ' '.join(f'{name}={value:.4g}' for name, value in found.items() if value is not None)
    )


def _number(result: dict[str, Any], part: str, name: str) -> float | None:
    rows = result['parts'].get(part, {}).get('rows', [])
    return next((row[name] for row in rows if row.get(name) is not None), None)


def _part(name: str) -> Part:
    return next(part for part in PARTS if part.name == name)


if __name__ == '__main__':
    main()
