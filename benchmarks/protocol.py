"""How things are timed here: one process per variant, one step at a time, in random order, ratios within a round."""

import concurrent.futures
import contextlib
import dataclasses
import importlib.metadata
import json
import os
import platform
import random
import select
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from bioptimus_jax.run.manifests import versions
from bioptimus_jax.storage.files import write_json

RESULTS = Path(__file__).parent / 'results'
os.environ.setdefault('XLA_PYTHON_CLIENT_PREALLOCATE', 'false')  # several processes share a card
SHOWN_OF_LOG = 3000  # characters
ON_CPU = {'JAX_PLATFORMS': 'cpu'}
"""Settings of a process that computes with PyTorch: there JAX must not hold memory of the card."""


class Variant:
    """A process that makes one step whenever it is asked to, and says how long it took; `facts` came first.

    `environment` comes to that of this process. `patience`: seconds for an answer, any time where it is None; a process
    that needs more is ended. What it prints goes into the file `log`, if there is one. SystemExit, with the last line
    of that, where it ends.
    """

    def __init__(
        self,
        name: str,
        command: Sequence[str],
        environment: Mapping[str, str] | None = None,
        patience: float | None = None,
        log: Path | None = None,
    ):
        self.name, self.patience, self.log = name, patience, log
        with log.open('w') if log else contextlib.nullcontext() as file:
            self.process = subprocess.Popen(
                [sys.executable, *command],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=file,
                text=True,
                env={**os.environ, **(environment or {})},
            )
        self.facts = self._answer()

    def step(self) -> dict[str, Any]:
        assert self.process.stdin
        self.process.stdin.write('step\n')
        self.process.stdin.flush()
        return self._answer()

    def close(self) -> None:
        if self.process.stdin:
            self.process.stdin.close()
        self.process.wait(60)

    def _answer(self) -> dict[str, Any]:
        assert self.process.stdout
        if self.patience and not select.select([self.process.stdout], [], [], self.patience)[0]:
            self.process.kill()
            self.process.wait()
            raise SystemExit(f'variant {self.name}: no answer within {self.patience:.0f} s')
        line = self.process.stdout.readline()
        if not line:
            code = self.process.wait()
            said = last_line(self.log) if self.log else 'see its message above'
            if self.log:
                print(self.log.read_text('utf-8', 'replace')[-SHOWN_OF_LOG:], file=sys.stderr)
            raise SystemExit(f'variant {self.name} ended with code {code}; {said}')
        return json.loads(line)


def last_line(log: Path) -> str:
    """What a process that failed said last: the first line of the error that it ended with, or its last line."""
    lines = [line for line in log.read_text('utf-8', 'replace').splitlines() if line.strip()]
    traces = [at for at, line in enumerate(lines) if line.startswith('Traceback (most recent call last)')]
    after = lines[traces[-1] + 1 :] if traces else []
    raised = [line for line in after if not line.startswith((' ', '+'))]
    return (raised or lines[-1:] or ['it said nothing'])[0].strip()[:200]


@dataclasses.dataclass(frozen=True)
class Here:
    """A variant that makes its steps in this process."""

    name: str
    make: Callable[[], dict[str, Any]]

    def step(self) -> dict[str, Any]:
        started = time.perf_counter()
        measures = self.make()
        return {'seconds': time.perf_counter() - started, **measures}


def start(
    commands: dict[str, Sequence[str]],
    at_once: int = 1,
    environments: Mapping[str, Mapping[str, str]] | None = None,
) -> list[Variant]:
    """A process per name, ready for its first step; one starts alone where it chooses its threads then."""

    def begin(name: str) -> Variant:
        return Variant(name, commands[name], (environments or {}).get(name))

    with concurrent.futures.ThreadPoolExecutor(at_once) as starting:
        return list(starting.map(begin, commands))


def serve(step: Callable[[], dict[str, Any]], facts: dict[str, Any]) -> None:
    """A variant's side: the facts, then for every line read one step and its wall seconds and measures."""
    answers, sys.stdout = sys.stdout, sys.stderr  # whatever libraries print must not get between
    print(json.dumps(facts), file=answers, flush=True)
    variant = Here('', step)
    for _ in sys.stdin:
        print(json.dumps(variant.step()), file=answers, flush=True)


def interleave(
    variants: Sequence[Variant | Here], rounds: int, warmups: int = 2
) -> list[dict[str, dict[str, Any]]]:
    """Answers by round and variant, every round in another order; warm-up rounds are left out."""
    shuffled, answers = random.Random(0), []
    for number in range(warmups + rounds):
        order = shuffled.sample(list(variants), len(variants))
        answers.append({variant.name: variant.step() for variant in order})
        print(f'round {number + 1} of {warmups + rounds}', file=sys.stderr, flush=True)
    return answers[warmups:]


def ratio(over: Sequence[float], under: Sequence[float]) -> dict[str, float]:
    """Median and range of the paired ratios."""
    ratios = [a / b for a, b in zip(over, under, strict=True)]
    return {'median': statistics.median(ratios), 'min': min(ratios), 'max': max(ratios)}


def resident_mb(peak: bool = False) -> float:
    """Resident memory of this process now, or its peak (Linux; getrusage would begin with the parent's peak)."""
    status = Path('/proc/self/status').read_text()
    return int(status.split('VmHWM:' if peak else 'VmRSS:')[1].split()[0]) / 1024


def versions_of(*packages: str) -> dict[str, str]:
    """Versions of those that are installed."""
    return {d.name: d.version for d in map(_distribution, packages) if d}


def _distribution(name: str) -> importlib.metadata.Distribution | None:
    try:
        return importlib.metadata.distribution(name)
    except importlib.metadata.PackageNotFoundError:
        return None


def head() -> dict[str, Any]:
    """Date, machine and versions, as every file of results has them."""
    machine = {'processor': platform.processor() or platform.machine(), 'system': platform.platform()}
    return {'date': time.strftime('%Y-%m-%d'), 'machine': machine, 'versions': versions()}


def publish(name: str, result: dict[str, Any], quick: bool, **metrics: float) -> None:
    """Write `results/NAME.json` unless `quick`, and print the headline, last."""
    if not quick:
        write_json(RESULTS / f'{name}.json', head() | result | {'headline': metrics})
    print('headline: ' + ' '.join(f'{key}={value:.4g}' for key, value in metrics.items()))
