"""Seconds a step of every objective, beside masked language modelling and beside what its FLOPs predict.

    python benchmarks/objectives.py [--quick] [--rounds N]

One process per objective, one step at a time in random order; ratios within a round. Steps are the loop's own, as in
pretrain.py. `predicted` is the ratio of FLOPs a useful piece, `measured` that of seconds, `over it` their quotient.
FLOPs count matrix products alone: sampling, softmax and noise are left out. A teacher has the student's shape.
The full run takes real abstracts (BIOPTIMUS_DATA) and writes results/objectives.json; --quick writes nothing.
"""

import argparse
import dataclasses
import statistics
import tempfile
from pathlib import Path

import jax
from pretrain import our_step
from protocol import interleave, publish, ratio, serve, start
from workload import BASE, QUICK, Shape, prepare

MIDDLE = Shape(4, 256, 30522, 8, 2000)
CONTROL = 'mlm'
OF_OBJECTIVE: dict[str, dict] = {  # name -> what its shape has of its own
    CONTROL: {},
    'nsp': {'layout': 'pairs'},
    'rtd': {'family': 'electra'},
    'adversarial': {},
    'distil': {},
    'causal': {},
}


def main() -> None:
    plain = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=plain)
    parser.add_argument('--quick', action='store_true', help='small, generated, writes nothing')
    parser.add_argument('--rounds', type=int, default=9, help='timed rounds (default 9; --quick: 3)')
    parser.add_argument('--variant', help=argparse.SUPPRESS)
    parser.add_argument('--folder', help=argparse.SUPPRESS)
    options = parser.parse_args()
    shape = QUICK if options.quick else BASE if jax.default_backend() == 'gpu' else MIDDLE
    if options.variant:
        serve(*our_step(of(shape, options.variant), Path(options.folder)))
        return
    with tempfile.TemporaryDirectory(prefix='bioptimus-bench-') as folder:
        measure(shape, Path(folder), options.quick, 3 if options.quick else options.rounds)


def of(shape: Shape, name: str) -> Shape:
    """The shape with which that objective is timed."""
    return dataclasses.replace(shape, objective=name, **OF_OBJECTIVE[name])


def measure(shape: Shape, folder: Path, quick: bool, rounds: int) -> None:
    commands = {}
    for name in OF_OBJECTIVE:
        (folder / name).mkdir()
        prepare(of(shape, name), folder / name, real=not quick)
        arguments = [*(('--quick',) if quick else ()), f'--folder={folder / name}', f'--variant={name}']
        commands[name] = [__file__, *arguments]
    variants = start(commands)
    rows = interleave(variants, rounds)
    for variant in variants:
        variant.close()

    def a_piece(name: str, key: str) -> list[float]:
        return [row[name][key] / row[name]['useful'] for row in rows]

    table = {}
    print(f'{"":12}{"pieces/s":>10}{"measured":>10}{"predicted":>11}{"over it":>9}   range')
    for name in OF_OBJECTIVE:
        measured = ratio(a_piece(name, 'seconds'), a_piece(CONTROL, 'seconds'))
        predicted = ratio(a_piece(name, 'flops'), a_piece(CONTROL, 'flops'))['median']
        over = {key: value / predicted for key, value in measured.items()}
        speed = 1 / statistics.median(a_piece(name, 'seconds'))
        table[name] = {
            'pieces_per_second': speed,
            'measured': measured,
            'predicted': predicted,
            'over_it': over,
        }
        print(
            f'{name:12}{speed:10,.0f}{measured["median"]:10.2f}{predicted:11.2f}{over["median"]:9.2f}   '
            f'{over["min"]:.2f}-{over["max"]:.2f}'
        )
    headline = {name: entry['over_it']['median'] for name, entry in table.items() if name != CONTROL}
    publish('objectives', {'shape': vars(shape), 'table': table, 'rounds': rows}, quick, **headline)


if __name__ == '__main__':
    main()
