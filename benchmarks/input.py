"""The input pipeline alone: rows per second against what a step needs, and memory over many batches.

    python benchmarks/input.py [--quick] [--batches N]

Reads batches of 256 rows of 512 pieces through the loop's own stream and does nothing with them. The need is that of
one H200 at 35 % of its peak on BERT-base (analytic). Resident memory is read after the first 1 % of the batches and at
the end. The full run reads 100,000 batches and writes results/input.json; --quick 2,000, and writes nothing.
"""

import argparse
import tempfile
import time
from pathlib import Path

from protocol import publish, resident_mb
from workload import BASE, QUICK, architecture, opened, prepare

from bioptimus_jax.pretrain.batches import Batches, stream
from bioptimus_jax.pretrain.sharding import batch_sharding, make_mesh
from bioptimus_jax.pretrain.throughput import training_flops_per_token

BATCH_ROWS = 256
H200_AT_35_PERCENT = 0.35 * 989e12


def main() -> None:
    plain = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=plain)
    parser.add_argument('--quick', action='store_true', help='2,000 batches, writes nothing')
    parser.add_argument('--batches', type=int, default=100_000)
    options = parser.parse_args()
    count = 2_000 if options.quick else options.batches
    with tempfile.TemporaryDirectory(prefix='bioptimus-input-') as folder:
        prepare(QUICK, Path(folder), real=False)
        _, rows = opened(QUICK, Path(folder))
        batches = Batches(rows, BATCH_ROWS, 0, batch_sharding(make_mesh()))
        started, early = time.perf_counter(), 0.0
        for number, batch, _ in stream(batches.at, 0, count):
            del batch
            if number == count // 100:
                early = resident_mb()
        seconds = time.perf_counter() - started
    late = resident_mb()
    speed = count * BATCH_ROWS / seconds
    need = H200_AT_35_PERCENT / training_flops_per_token(architecture(BASE), 340, 0.15) / rows.pieces
    print(f'{speed:,.0f} rows/s; BERT-base on an H200 at 35 % of its peak needs {need:,.0f}')
    print(f'resident memory: {early:,.0f} MB after 1 % of {count:,} batches, {late:,.0f} MB at the end')
    facts = {'batches': count, 'batch_rows': BATCH_ROWS, 'row_pieces': rows.pieces}
    metrics = {'rows_per_second': speed, 'over_need': speed / need, 'early_mb': early, 'late_mb': late}
    publish('input', facts, options.quick, **metrics)


if __name__ == '__main__':
    main()
