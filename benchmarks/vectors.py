"""Vectors of texts before and after an adaptation: titles and their abstracts, and BIOSSES.

    python benchmarks/vectors.py --corpus RUN/corpus --sets FOLDER --to FILE.json NAME=MODEL [NAME=MODEL ...]

The title of every held-out document of the corpus, its first line, looks for its abstract among those of all of them;
no model of a run with that corpus has read them. The 100 pairs of BIOSSES, from FOLDER/biosses, have a number for
their similarity. Vectors are means of states, whatever the folder of a model says, of 256 pieces at most. All of it
takes two minutes for each model of MiniLM's size.
"""

import argparse
from collections.abc import Sequence
from pathlib import Path

import numpy as np

import bioptimus_jax as bx
from bioptimus_jax.corpus.documents import open_documents
from bioptimus_jax.finetuning.task import task_for
from bioptimus_jax.sets.corpora import set_at
from bioptimus_jax.storage.files import write_json

PIECES, DEPTH = 256, 10
SET = 'biosses'


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument('--corpus', type=Path, required=True, help='a finished stage corpus')
    parser.add_argument('--sets', type=Path, required=True, help=f'a folder with {SET}/')
    parser.add_argument(
        '--to', type=Path, required=True, help='file for the numbers, as docs/results/vectors.json'
    )
    parser.add_argument('models', nargs='+', help='names, and folders or hub ids')
    options = parser.parse_args()
    documents = open_documents(options.corpus, 'heldout')
    halves = [document.text.split('\n', 1) for document in documents.read(0, len(documents))]
    titles, abstracts = zip(*(both for both in halves if len(both) == 2), strict=True)
    chosen = set_at(options.sets / SET)
    splits = task_for(chosen).read(chosen)
    examples = [example for split in ('train', 'devel', 'test') for example in getattr(splits, split)]
    records = []
    for name, _, model in (given.partition('=') for given in options.models):
        rank_N = ranks(vectors(model, titles), vectors(model, abstracts))
        gain_N = np.where(rank_N < DEPTH, 1 / np.log2(rank_N + 2), 0)
        first, second = (vectors(model, [e.words[side] for e in examples]) for side in (0, 1))
        both = np.concatenate([first, second])
        cosines = (both @ both.T)[np.triu_indices(len(both), 1)]
        found = {
            'model': name,
            'titles': len(titles),
            'recall': float((rank_N == 0).mean()),
            'ndcg': float(gain_N.mean()),
            'pearson': float(np.corrcoef((first * second).sum(1), [e.answers[0] for e in examples])[0, 1]),
            'cosine': float(cosines.mean()),
        }
        print(found)
        records.append(found)
    write_json(options.to, records)


def vectors(model: str, texts: Sequence[str]) -> np.ndarray:
    return bx.embed(model, texts, pooling='mean', max_pieces=PIECES, progress=False)


def ranks(titles_NxD: np.ndarray, abstracts_NxD: np.ndarray) -> np.ndarray:
    """How many abstracts are nearer to each title than its own."""
    cosines_NxN = titles_NxD @ abstracts_NxD.T
    return (cosines_NxN > np.diag(cosines_NxN)[:, None]).sum(1)


if __name__ == '__main__':
    main()
