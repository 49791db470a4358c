"""Useful tokens per second of pre-training against transformers' PyTorch model on the same documents.

    python benchmarks/pretrain.py [--quick] [--rounds N] [--family NAME]

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
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from protocol import interleave, publish, ratio, serve, start
from workload import BASE, FAMILIES, QUICK, SMALL, Shape, architecture, opened, prepare

from bioptimus_jax.model.compute import PLAIN
from bioptimus_jax.pretrain import curriculum
from bioptimus_jax.pretrain.batches import Batches
from bioptimus_jax.pretrain.objective import Objective, make_objective
from bioptimus_jax.pretrain.sharding import batch_sharding, make_mesh
from bioptimus_jax.pretrain.step import example_at, sharded_step
from bioptimus_jax.pretrain.throughput import peak_flops, training_flops_per_token
from bioptimus_jax.pretrain.watch import Window, summarise
from bioptimus_jax.vocab import subwords

OURS = 'ours'
QUICK_PEERS = ('hf_padded', 'hf_packed_masked')  # every process takes ten seconds to start
WINDOW = 20  # steps between records, as in the loop


def main() -> None:
    plain = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=plain)
    parser.add_argument(
        '--quick', action='store_true', help='small, generated, writes nothing; under a minute'
    )
    parser.add_argument('--rounds', type=int, default=9, help='timed rounds (default 9; --quick: 3)')
    parser.add_argument('--family', default='bert', choices=FAMILIES, help='of the model (default bert)')
    parser.add_argument('--variant', help=argparse.SUPPRESS)
    parser.add_argument('--folder', help=argparse.SUPPRESS)
    options = parser.parse_args()
    shape = QUICK if options.quick else BASE if jax.default_backend() == 'gpu' else SMALL
    shape = dataclasses.replace(shape, family=options.family)
    if options.variant:
        run_variant(options.variant, shape, Path(options.folder))
        return
    with tempfile.TemporaryDirectory(prefix='bioptimus-bench-') as folder:
        measure(shape, Path(folder), options.quick, 3 if options.quick else options.rounds)


def measure(shape: Shape, folder: Path, quick: bool, rounds: int) -> None:
    from peers import PEERS

    run = prepare(shape, folder, real=not quick)
    fill = run.manifest('rows')['counts']['train']['fill']  # type: ignore[index]
    names = [OURS, *(name for name in PEERS if not quick or name in QUICK_PEERS)]
    gaps = gate(shape, folder)
    if max(gaps.values()) > 1e-4:
        raise SystemExit(f'the two models disagree on the same masked batch ({gaps}); nothing was timed')
    command = [__file__, *(('--quick',) if quick else ()), f'--family={shape.family}', f'--folder={folder}']
    variants = start({name: [*command, f'--variant={name}'] for name in names}, at_once=3 if quick else 1)
    rows = interleave(variants, rounds)
    for variant in variants:
        variant.close()
    speeds = {name: [row[name]['useful'] / row[name]['seconds'] for row in rows] for name in names}
    table = {
        name: {
            'useful_tokens_per_second': statistics.median(speeds[name]),
            'ours_over_it': ratio(speeds[OURS], speeds[name]),
            **variant.facts,
        }
        for name, variant in zip(names, variants, strict=True)
    }
    print(f'{"":18}{"tokens/s":>10}{"ours / it":>11}   range')
    for name, entry in table.items():
        over = entry['ours_over_it']
        print(
            f'{name:18}{entry["useful_tokens_per_second"]:10,.0f}{over["median"]:11.2f}   '
            f'{over["min"]:.2f}-{over["max"]:.2f}'
        )
    host = statistics.median(row[OURS]['host_ms'] for row in rows)
    wait = statistics.median(row[OURS]['input_wait'] for row in rows)
    estimate = None if quick else print_estimate()
    publish(
        'pretrain' if shape.family == 'bert' else f'pretrain-{shape.family}',
        {
            'shape': vars(shape),
            'table': table,
            'rounds': rows,
            'fill': fill,
            'gate': gaps,
            'estimate': estimate,
        },
        quick,
        useful_vs_hf_padded=table['hf_padded']['ours_over_it']['median'],
        useful_vs_hf_packed_masked=table['hf_packed_masked']['ours_over_it']['median'],
        host_ms=host,
        input_wait=wait,
        fill=fill,
    )


def run_variant(name: str, shape: Shape, folder: Path) -> None:
    """A variant's process."""
    if name == OURS:
        step, facts = our_step(shape, folder)
    else:
        from peers import make_step

        _, rows = opened(shape, folder)
        batches = Batches(rows, shape.batch_rows, 0, batch_sharding(make_mesh()))
        step, facts = make_step(name, shape, lambda number: rows.read(batches.row_numbers(number)))
    serve(step, facts)


def parts(shape: Shape, folder: Path) -> tuple[Objective, Any, Batches, Any, Any]:
    """Objective, table, batches, mesh and weights of our side."""
    from bioptimus_jax.model.tensors import load_folder

    run, rows = opened(shape, folder)
    model, params, _ = load_folder(run.folder('surgery') / 'model')
    mesh = make_mesh()
    words = subwords.load(run.folder('vocab'))
    objective = make_objective(
        run.config, model, words, rows.pieces, mesh, lambda text: print(text, file=sys.stderr)
    )
    counts = curriculum.RowCounts(len(rows), rows.counts['tokens'], rows.counts['words'])
    table = curriculum.table(curriculum.make_schedule(run.config, counts), run.config)
    batches = Batches(rows, shape.batch_rows, 0, batch_sharding(mesh), objective.reads)
    return objective, table, batches, mesh, params


def our_step(shape: Shape, folder: Path) -> tuple[Callable[[], dict[str, Any]], dict[str, Any]]:
    """One step of the loop, and what its records say."""
    objective, table, batches, mesh, params = parts(shape, folder)
    train_step, state = sharded_step(objective, mesh, params)
    stream = batches.stream(0, 10**6)
    window = Window()

    def step() -> dict[str, Any]:
        nonlocal state, window
        started = time.perf_counter()
        number, batch, waited = next(stream)
        called = time.perf_counter()
        state, metrics = train_step(state, batch, table)
        jax.block_until_ready(metrics)
        ended = time.perf_counter()
        window.add(number + 1, metrics, waited)
        if len(window.steps) == WINDOW:
            values, seconds = window.read()
            summarise(window, values, seconds, shape.batch_rows * shape.row_pieces, objective)
            window = Window()
        wall = time.perf_counter() - started
        spent = (float(metrics[name]) for name in ('attended', 'predicted'))
        return {
            'useful': int(metrics['tokens']),
            'flops': objective.flops(int(metrics['tokens']), *spent),
            'host_ms': 1e3 * (wall - (ended - called) - waited),
            'input_wait': waited / wall,
        }

    return step, {'attention': objective.compute.attention}


def gate(shape: Shape, folder: Path) -> dict[str, float]:
    """Largest relative differences of loss and gradients between the two models on one masked batch."""
    import torch
    from peers import model_of, packed

    from bioptimus_jax.model.tensors import to_tensors

    objective, table, batches, _, params = parts(shape, folder)
    batch = {name: value[:2] for name, value in batches.at(0).items()}
    rows = example_at(objective, batch, table, jnp.int32(0)).rows
    masked, segments, positions = rows
    plain = dataclasses.replace(objective, compute=PLAIN)

    @jax.jit
    def ours(params: Any) -> Any:
        def mean(params: Any) -> jax.Array:
            terms, sums = plain.loss(params, {}, rows, None)
            return terms['slots'] / sums['weight']

        return jax.value_and_grad(mean)(params)

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
