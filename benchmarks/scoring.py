"""Scoring entities and bootstrapping their F1: 10,000 sentences, five seeds, against seqeval and another checkout.

    python benchmarks/scoring.py [--quick] [--rounds N] [--other=CHECKOUT]

Each variant is a process; in every round each makes one step, in random order, and seconds are of its CPU. A step
scores five seeds in all modes and by type (`score`), adds up the default mode by sentence (`counts`), draws 10,000
resamples for an interval (`bootstrap`) and for a paired test (`paired`). seqeval scores the default mode alone, which
is held against `counts`; the F1 of both agree to the digit. `--other`: a checkout of an earlier version.
The full run writes results/scoring.json; --quick takes 1,000 sentences and writes nothing.
"""

import argparse
import os
import random
import statistics
import time
import warnings
from collections.abc import Callable
from typing import Any

from protocol import Variant, interleave, publish, ratio, serve, start, versions_of

SENTENCES, SEEDS, TYPES = 10_000, 5, 'XYZ'
PARTS = ('score', 'counts', 'bootstrap', 'paired')
OURS, PEER, OTHER = 'ours', 'seqeval', 'other'


def main() -> None:
    plain = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=plain)
    parser.add_argument('--quick', action='store_true', help='1,000 sentences, writes nothing')
    parser.add_argument('--rounds', type=int, default=9, help='timed rounds (default 9; --quick: 2)')
    parser.add_argument('--other', default='', metavar='CHECKOUT', help='a checkout of an earlier version')
    parser.add_argument('--variant', help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.variant:
        run_variant(options.variant, options.quick)
        return
    names = [OURS, PEER, *([OTHER] if options.other else [])]
    common = [__file__, *(('--quick',) if options.quick else ())]
    one_thread = dict.fromkeys(('OMP_NUM_THREADS', 'OPENBLAS_NUM_THREADS'), '1')
    there = {'PYTHONPATH': os.path.abspath(options.other)} if options.other else {}
    variants = start(
        {name: [*common, f'--variant={name}'] for name in names},
        environments={name: one_thread | (there if name == OTHER else {}) for name in names},
    )
    rows = interleave(variants, 2 if options.quick else options.rounds, warmups=1)
    report(variants, rows, options.quick)


def report(variants: list[Variant], rows: list[dict[str, dict[str, Any]]], quick: bool) -> None:
    assert len({variant.facts['f1'] for variant in variants}) == 1, {v.name: v.facts for v in variants}
    table = {}
    for variant in variants:
        variant.close()
        parts = [part for part in PARTS if part in rows[0][variant.name]]
        seconds = {part: [row[variant.name][part] for row in rows] for part in parts}
        ours = {part: [row[OURS][part] for row in rows] for part in parts}
        table[variant.name] = {
            part: {
                'seconds': statistics.median(seconds[part]),
                'ours_over_it': ratio(ours[part], seconds[part]),
            }
            for part in parts
        }
        shown = ', '.join(
            f'{part} {entry["seconds"]:.3f} s (ours / it {entry["ours_over_it"]["median"]:.2f})'
            for part, entry in table[variant.name].items()
        )
        print(f'{variant.name}: {shown}')
    against = OTHER if OTHER in table else PEER
    found = {part: entry['ours_over_it']['median'] for part, entry in table[against].items()}
    publish('scoring', {'peers': versions_of('seqeval'), 'table': table, 'rounds': rows}, quick, **found)


def run_variant(name: str, quick: bool) -> None:
    gold, seeds = made(SENTENCES // 10 if quick else SENTENCES)
    f1, parts = seqevals(gold, seeds) if name == PEER else ours(gold, seeds)

    def step() -> dict[str, Any]:
        seconds = {}
        for part, make in parts.items():
            started = time.process_time()
            make()
            seconds[part] = time.process_time() - started
        return seconds

    serve(step, {'f1': f1})


def ours(gold: list[list[str]], seeds: list[list[list[str]]]) -> tuple[float, dict[str, Callable[[], Any]]]:
    """The F1 of the first seed, and what is timed, of the package that this process imports."""
    from bioptimus_jax.finetuning.predictions import Predicted, counts_by_unit
    from bioptimus_jax.scoring.resampling import bootstrap, paired, percentile_interval
    from bioptimus_jax.scoring.score import METRICS, by_type, score

    metric = METRICS['default']
    predictions = [
        [Predicted(tuple(g), tuple(g), tuple(p)) for g, p in zip(gold, seed, strict=True)] for seed in seeds
    ]
    _, counts_SxUxC = counts_by_unit(metric, predictions, 'sentence')
    parts = {
        'score': lambda: [(score(gold, seed), by_type(gold, seed)) for seed in seeds],
        'counts': lambda: counts_by_unit(metric, predictions, 'sentence'),
        'bootstrap': lambda: percentile_interval(bootstrap(metric, counts_SxUxC)),
        'paired': lambda: paired(metric, [counts_SxUxC[:2]], [counts_SxUxC[2:4]]),
    }
    return round(score(gold, seeds[0])['default']['f1'], 12), parts


def seqevals(
    gold: list[list[str]], seeds: list[list[list[str]]]
) -> tuple[float, dict[str, Callable[[], Any]]]:
    """The same of seqeval, which has neither other modes nor intervals."""
    from seqeval.metrics import f1_score

    warnings.simplefilter('ignore')
    return round(float(f1_score(gold, seeds[0])), 12), {
        'counts': lambda: [f1_score(gold, seed) for seed in seeds]
    }


def made(sentences: int) -> tuple[list[list[str]], list[list[list[str]]]]:
    """Gold tags of random sentences, and those of each seed, a tenth of which is O."""
    draw = random.Random(0)
    gold = []
    for _ in range(sentences):
        tags, before = [], 'O'
        for _ in range(draw.randint(5, 40)):
            if draw.random() < 0.8:
                before = 'O'
            elif before != 'O' and draw.random() < 0.5:
                before = f'I{before[1:]}'
            else:
                before = f'B-{draw.choice(TYPES)}'
            tags.append(before)
        gold.append(tags)
    return gold, [[[t if draw.random() < 0.9 else 'O' for t in tags] for tags in gold] for _ in range(SEEDS)]


if __name__ == '__main__':
    main()
