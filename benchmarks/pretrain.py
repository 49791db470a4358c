"""Useful tokens per second of pre-training against transformers' PyTorch model on the same documents.

    python benchmarks/pretrain.py [--quick] [--rounds N] [--family NAME] [--size NAME] [--peers NAME ...]

First a gate: same weights, same masked batch, equal loss and equal gradient of every tensor. Then one process per
variant, one step at a time in random order; medians and ranges of ratios within a round. Our side runs the loop's own
pieces: memory-mapped rows, the prefetched stream of batches, the jitted step with optimiser, the records. The peers are
explained in peers.py; they get the better of one and two threads. `useful` leaves padding out. `host_ms` is Python time
per step outside the jitted call and outside waiting; `input_wait` the share of wall time spent waiting for a batch.
The full run takes real abstracts (BIOPTIMUS_DATA) and writes results/pretrain.json; --quick takes generated ones of the
same lengths, a smaller vocabulary and two peers, and writes nothing.
"""

import argparse
import dataclasses
import functools
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from protocol import ON_CPU, interleave, publish, ratio, resident_mb, serve, start
from workload import BASE, FAMILIES, Shape, architecture, opened, prepare, sized

from bioptimus_jax.hosts.devices import present
from bioptimus_jax.model.compute import PLAIN_COMPUTE
from bioptimus_jax.pretrain import curriculum
from bioptimus_jax.pretrain.backends import MeasuredAttention
from bioptimus_jax.pretrain.batches import Batches, stream
from bioptimus_jax.pretrain.memory import plain_fits
from bioptimus_jax.pretrain.objective import Objective, make_objective
from bioptimus_jax.pretrain.shape import RowCounts
from bioptimus_jax.pretrain.sharding import batch_sharding, make_mesh
from bioptimus_jax.pretrain.step import TrainStep, example_at, sharded_step
from bioptimus_jax.pretrain.throughput import peak_flops, training_flops_per_token
from bioptimus_jax.pretrain.watch import LogInterval, summarise
from bioptimus_jax.tokenizer import subwords

OURS, GATE = 'ours', 'gate'
ON_GPUS = ('hf_varlen', 'hf_varlen_compiled')  # fast attention there alone
QUICK_PEERS = ('hf_padded', 'hf_packed_masked')  # every process takes ten seconds to start
WINDOW = 20  # steps between records, as in the loop


def main() -> None:
    plain = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=plain)
    parser.add_argument(
        '--quick', action='store_true', help='small, generated, writes nothing; under a minute'
    )
    parser.add_argument('--rounds', type=int, default=9, help='timed rounds (default 9; --quick: 3)')
    parser.add_argument(
        '--family', default='bert', choices=FAMILIES, help='family of the model (default bert)'
    )
    parser.add_argument('--peers', nargs='*', default=[], metavar='NAME', help='some of those of peers.py')
    parser.add_argument('--variant', help=argparse.SUPPRESS)
    parser.add_argument('--folder', help=argparse.SUPPRESS)
    parser.add_argument('--size', default='', help='shape of workload.py (default small; on a GPU base)')
    parser.add_argument('--batch-rows', type=int, help=argparse.SUPPRESS)
    parser.add_argument('--steps', type=int, default=1, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.variant:
        shape = sized(options.size, options.family, options.batch_rows)
        run_variant(options.variant, shape, Path(options.folder), options.steps)
        return
    usual = 'base' if jax.default_backend() == 'gpu' else 'small'
    size = 'quick' if options.quick else options.size or usual
    record = '-'.join(['pretrain', *filter(None, [options.size, options.family.removeprefix('bert')])])
    with tempfile.TemporaryDirectory(prefix='bioptimus-bench-') as folder:
        rounds = 3 if options.quick else options.rounds
        measure(size, options.family, Path(folder), options.quick, rounds, record, options.peers)


def measure(
    size: str, family: str, folder: Path, quick: bool, rounds: int, record: str, asked: Sequence[str] = ()
) -> None:
    """Time every variant in turn, print the table and write the record."""
    from peers import PEERS

    shape = sized(size, family)
    run = prepare(shape, folder, real=not quick)
    fill = run.manifest('rows').counts['train']['fill']  # type: ignore[union-attr]
    wanted = asked or (QUICK_PEERS if quick else [name for name in PEERS if name not in ON_GPUS])
    names = [OURS, *wanted]
    gaps = gate(shape, folder)
    if max(gaps.values()) > 1e-4:
        raise SystemExit(f'the two models disagree on the same masked batch ({gaps}); nothing was timed')
    variants = start(
        {name: variant_command(name, size, shape, folder) for name in names},
        at_once=3 if quick else 1,
        environments=dict.fromkeys(wanted, ON_CPU),
    )
    rows = interleave(variants, rounds)
    for variant in variants:
        variant.close()
    speeds = {name: [row[name]['useful'] / row[name]['seconds'] for row in rows] for name in names}
    table = {
        name: {
            'useful_tokens_per_second': statistics.median(speeds[name]),
            'ours_over_it': ratio(speeds[OURS], speeds[name]),
            'peak_mb': rows[-1][name]['peak_mb'],
            **variant.facts,
        }
        for name, variant in zip(names, variants, strict=True)
    }
    print(f'{"":18}{"tokens/s":>10}{"peak MB":>9}{"ours / it":>11}   range')
    for name, entry in table.items():
        over = entry['ours_over_it']
        print(
            f'{name:18}{entry["useful_tokens_per_second"]:10,.0f}{entry["peak_mb"]:9,.0f}{over["median"]:11.2f}   '
            f'{over["min"]:.2f}-{over["max"]:.2f}'
        )
    host = statistics.median(row[OURS]['host_ms'] for row in rows)
    wait = statistics.median(row[OURS]['input_wait'] for row in rows)
    estimate = None if quick else print_estimate()
    publish(
        record,
        {
            'shape': vars(shape),
            'table': table,
            'rounds': rows,
            'fill': fill,
            'gate': gaps,
            'estimate': estimate,
        },
        quick,
        **{f'useful_vs_{name}': table[name]['ours_over_it']['median'] for name in wanted},
        host_ms=host,
        input_wait=wait,
        fill=fill,
    )


def variant_command(name: str, size: str, shape: Shape, folder: Path, steps: int = 1) -> list[str]:
    """The command of a variant's process, whose step is so many optimiser steps."""
    flags = {'variant': name, 'size': size, 'family': shape.family, 'batch-rows': shape.batch_rows}
    return [__file__, *(f'--{k}={v}' for k, v in (flags | {'folder': folder, 'steps': steps}).items())]


def run_variant(name: str, shape: Shape, folder: Path, steps: int) -> None:
    """A variant's process; that of the gate gives what it found."""
    if name == GATE:
        serve(lambda: gate(shape, folder), {})
    elif name == OURS:
        serve(*with_peak(*our_step(shape, folder, steps)))
    else:
        from peers import make_step

        _, rows = opened(shape, folder)
        batches = Batches(rows, shape.batch_rows, 0, batch_sharding(make_mesh()))
        step, facts = make_step(name, shape, lambda number: rows.read(batches.row_numbers(number)), steps)
        serve(*with_peak(step, facts))


def with_peak(step: Callable[[], dict[str, Any]], facts: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
    """The same step, which also says the peak of its process's memory, in MB."""
    return lambda: step() | {'peak_mb': resident_mb(peak=True)}, facts


@dataclasses.dataclass
class Training:
    """The loop's own pieces, at the next step."""

    shape: Shape
    objective: Objective
    table: Any
    batches: Batches
    mesh: Any
    train_step: TrainStep
    state: Any
    stream: Any
    interval: LogInterval = dataclasses.field(default_factory=LogInterval)

    @classmethod
    def begin(cls, shape: Shape, folder: Path, **runtime: Any) -> 'Training':
        """A training with keys of config.runtime that are other than the defaults."""
        objective, table, batches, mesh, params = parts(shape, folder, **runtime)
        train_step, state = sharded_step(objective, mesh, params)
        return cls(shape, objective, table, batches, mesh, train_step, state, stream(batches.at, 0, 10**6))

    def go_on(self, state: Any, done: int) -> None:
        """Take the state of so many steps, and their place in the stream."""
        self.state, self.stream = state, stream(self.batches.at, done, 10**6)

    def compiled(self) -> tuple[Any, float]:
        """The compiled step, to be looked at, and the seconds of its compilation."""
        arguments = self.state, self.train_step.frozen, self.batches.at(0), self.table
        lowered = self.train_step.compiled.lower(*arguments)
        started = time.perf_counter()
        return lowered.compile(), time.perf_counter() - started

    def steps(self, count: int = 1) -> dict[str, Any]:
        """What so many steps take as the loop makes them, the device waited for once, at their end.

        `host_ms` of a step: Python time outside the jitted call and outside waiting. `call_ms`: that of the call, which
        on a GPU returns before the step is made.
        """
        started, waiting, calls, made = time.perf_counter(), 0.0, [], []
        for _ in range(count):
            number, batch, waited = next(self.stream)
            called = time.perf_counter()
            self.state, metrics = self.train_step(self.state, batch, self.table)
            calls.append(time.perf_counter() - called)
            waiting += waited
            self.interval.add(number + 1, metrics, waited)
            made.append(metrics)
        blocked = time.perf_counter()
        jax.block_until_ready((made, self.state))
        inside = sum(calls) + time.perf_counter() - blocked
        if len(self.interval.steps) >= WINDOW:
            values, seconds = self.interval.read()
            cells = self.shape.batch_rows * self.shape.row_pieces
            summarise(self.interval, values, seconds, cells, self.objective, '0.1', 0)
            self.interval = LogInterval()
        wall = time.perf_counter() - started
        sums = [sum(float(m[name]) for m in made) for name in ('attended', 'predicted')]
        useful = sum(int(m['tokens']) for m in made)
        return {
            'useful': useful,
            'flops': self.objective.flops(useful, *sums),
            'host_ms': 1e3 * (wall - inside - waiting) / count,
            'call_ms': 1e3 * statistics.median(calls),
            'input_wait': waiting / wall,
            'loss': float(made[-1]['loss']),
        }


def parts(shape: Shape, folder: Path, **runtime: Any) -> tuple[Objective, Any, Batches, Any, Any]:
    """Objective, table, batches, mesh and weights of our side."""
    run, rows = opened(shape, folder)
    run.config = dataclasses.replace(run.config, runtime=dataclasses.replace(run.config.runtime, **runtime))
    model, mesh = architecture(shape), make_mesh()
    words = subwords.load(run.folder('vocab'))
    part = shape.batch_rows // shape.micro_batches
    # Measured, as in the loop.
    measured = MeasuredAttention(part, plain_fits(run.config, model, present(), mesh.size), rows.segments)

    def warn(text: str) -> None:
        print(text, file=sys.stderr)

    objective = make_objective(run.config, model, words, rows.pieces, mesh, warn, measured=measured)
    counts = RowCounts(len(rows), rows.counts.tokens, rows.counts.words)
    table = curriculum.table(curriculum.make_schedule(run.config, counts), run.config)
    batches = Batches(rows, shape.batch_rows, 0, batch_sharding(mesh), objective.reads)
    return objective, table, batches, mesh, model.initial_parameters(jax.random.key(0))


def our_step(
    shape: Shape, folder: Path, steps: int = 1
) -> tuple[Callable[[], dict[str, Any]], dict[str, Any]]:
    """A function that makes so many steps of the loop, and what its records say."""
    training = Training.begin(shape, folder)
    return functools.partial(training.steps, steps), {'attention': training.objective.compute.attention}


def gate(shape: Shape, folder: Path) -> dict[str, float]:
    """Largest relative differences of loss and gradients between the two models on one masked batch."""
    import torch
    from peers import model_of, packed

    from bioptimus_jax.model.tensors import to_tensors

    objective, table, batches, _, params = parts(shape, folder)
    batch = {name: value[:2] for name, value in batches.at(0).items()}
    rows = example_at(objective, batch, table, jnp.int32(0)).rows
    masked, segments, positions, *_ = rows
    plain = dataclasses.replace(objective, compute=PLAIN_COMPUTE)

    @jax.jit
    def ours(params: Any) -> Any:
        def mean(params: Any) -> jax.Array:
            terms, sums = plain.loss(params, {}, rows, None)
            return terms['slots'] / sums['weight']

        return jax.value_and_grad(mean)(params)

    with jax.default_matmul_precision('highest'):  # GPUs round factors to TF32 otherwise
        loss, gradients = ours(params)
    model = model_of(shape).eval()
    tensors = {
        name: torch.tensor(value) for name, value in to_tensors(params, objective.architecture).items()
    }
    model.load_state_dict(tensors, strict=False)
    labels = np.full(batch['tokens'].shape, -100)
    for row in range(len(labels)):
        real = np.asarray(masked.weights_M[row]) > 0
        labels[row, np.asarray(masked.slots_M[row])[real]] = np.asarray(masked.targets_M[row])[real]
    output = model(
        input_ids=torch.tensor(np.asarray(masked.inputs_L)),
        labels=torch.tensor(labels),
        **packed(np.asarray(positions), np.asarray(segments), model.config),
    )
    output.loss.backward()
    theirs = {name: p.grad.numpy() for name, p in model.named_parameters() if p.grad is not None}
    mine = to_tensors(gradients, objective.architecture)
    largest = max(np.abs(value).max() for value in theirs.values())
    # Of what transformers has besides, as RoBERTa's one type, the gradient is in that of another tensor here.
    own = map(objective.architecture.tensor_name, objective.architecture.shapes())
    return {
        'loss': abs(float(loss) - output.loss.item()) / output.loss.item(),
        'gradient': max(
            float(np.abs(mine[name] - theirs[name]).max() / largest) for name in own if name in theirs
        ),
    }


def print_estimate() -> list[dict[str, Any]]:
    """Analytic: minutes per billion useful pieces at 35 % of peak, attended length 340, 15 % predicted."""
    estimates = []
    for name, shape in (('base', BASE), ('large', Shape(24, 1024, 30522, 4, 4))):
        flops = training_flops_per_token(architecture(shape), 340, 0.15)
        for device, peak in (('A100', 312e12), ('H200', 989e12)):
            minutes = 1e9 * flops / (0.35 * peak) / 60
            estimates.append(
                {'model': name, 'device': device, 'gflops_per_piece': flops / 1e9, 'minutes': minutes}
            )
            print(
                f'estimate: {name:5} {device}  {flops / 1e9:.3f} GFLOP a piece, {minutes:4.0f} min per 1e9 at 35 %'
            )
    print(f'peak of this device: {peak_flops() or "unknown"}')
    return estimates


if __name__ == '__main__':
    main()
