"""How many 5-grams of a text one other text has, of many at once, and the largest share that a document of the
pre-training corpus has.

Words are runs of letters and digits, case folded, without accents. Shapes: N texts that are asked about, W their
different 5-grams, P pairs of a text and one of its 5-grams, D documents.
"""

import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from bioptimus_jax.corpus.documents import DocumentSource, open_documents
from bioptimus_jax.corpus.near import ngram_hashes
from bioptimus_jax.hosts.config import Runtime
from bioptimus_jax.hosts.workers import open_workers, ranges
from bioptimus_jax.progress.console import Console
from bioptimus_jax.records.manifests import Manifest
from bioptimus_jax.run.manifests import finished_place, read_manifest
from bioptimus_jax.sets.inputs import searchable
from bioptimus_jax.storage.files import digest, read_json, write_json

WORD = re.compile(r'[^\W_]+')
WORDS = 5
"""Words of an n-gram; a shorter text is one."""
FILE = 'in_corpus.json'
DOCUMENTS, DOCUMENTS_PER_TASK, DOCUMENTS_PER_WORKER = 256, 4096, 20_000
"""Documents of one block, which bounds memory; of one task; and those below which no further process is started."""


class Grams:
    """The 5-grams of texts, each of which may be in several parts; `size_N` counts the different ones."""

    def __init__(self, texts: Sequence[Sequence[str]]):
        parts = [part for text in texts for part in text]
        hashes, bounds = ngram_hashes(parts, WORDS)
        of_part = np.repeat(np.arange(len(texts)), [len(text) for text in texts])
        of_gram = np.repeat(of_part, np.diff(bounds).astype(np.int64))
        self.gram_W, at = np.unique(hashes, return_inverse=True)
        # In the order of grams, so that the texts of each are in one run.
        pair_P = np.unique(at * len(texts) + of_gram)
        self.text_P = pair_P % max(1, len(texts))
        self.first_W = np.searchsorted(pair_P, np.arange(len(self.gram_W) + 1) * len(texts))
        self.size_N = np.bincount(self.text_P, minlength=len(texts))

    def shares(self, documents: Sequence[str]) -> np.ndarray:
        """The share of each text's 5-grams that one of the documents has, the largest of all; 0 for a text without."""
        best_N = np.zeros(len(self.size_N))
        for start, stop in ranges(len(documents), DOCUMENTS) if len(self.gram_W) else ():
            hashes, bounds = ngram_hashes(documents[start:stop], WORDS)
            of_gram = np.repeat(np.arange(stop - start), np.diff(bounds).astype(np.int64))
            # A hash above all others would point past the end; the comparison below drops it.
            at = np.minimum(np.searchsorted(self.gram_W, hashes), len(self.gram_W) - 1)
            found = self.gram_W[at] == hashes
            document, gram = np.divmod(
                np.unique(of_gram[found] * len(self.gram_W) + at[found]), len(self.gram_W)
            )
            # Every pair of a document and a 5-gram becomes as many as there are texts with that one.
            texts = self.first_W[gram + 1] - self.first_W[gram]
            within = np.arange(texts.sum()) - np.repeat(np.cumsum(texts) - texts, texts)
            text = self.text_P[np.repeat(self.first_W[gram], texts) + within]
            both, count = np.unique(np.repeat(document, texts) * len(best_N) + text, return_counts=True)
            # Several documents may share a text: an assignment would keep the last of them, not the largest.
            np.maximum.at(best_N, both % len(best_N), count / self.size_N[both % len(best_N)])
        return best_N


def in_corpus(
    folder: Path, tests: dict[str, Sequence[Any]], corpus: Path, runtime: Runtime, console: Console
) -> dict[str, list[float | None]]:
    """Set -> for each test item the largest share of its 5-grams that one training document of the run's corpus has.

    `folder` is that of stage finetune, and `corpus` that of stage corpus, both in the run.

    Names that replace entities (`@GENE$`) cut a text into parts. None: no part has five words. What is known of a set
    is kept in FOLDER/in_corpus.json; one pass over the corpus serves all others. Raises InputError for a corpus whose
    documents are gone or damaged.
    """
    content = (read_manifest(corpus) or Manifest()).content
    texts = {name: [_parts(example.words) for example in examples] for name, examples in tests.items()}
    keys = {name: digest([content, of_set]) for name, of_set in texts.items()}
    kept = read_json(folder / FILE) or {}
    known = {name: kept[name] for name, key in keys.items() if kept.get(name, {}).get('of') == key}
    new = [name for name in texts if name not in known]
    if new:
        grams = Grams([parts for name in new for parts in texts[name]])
        largest_N = _largest(console, runtime, finished_place(corpus), grams)
        shares = iter(np.where(grams.size_N > 0, largest_N, np.nan).round(4).tolist())
        for name in new:
            found = [next(shares) for _ in texts[name]]
            known[name] = {'of': keys[name], 'shares': [None if x != x else x for x in found]}
    write_json(folder / FILE, {name: known[name] for name in texts})
    return {name: known[name]['shares'] for name in texts}


def _parts(words: Iterable[str]) -> list[str]:
    parts = searchable(' '.join(words))
    # A part of fewer words would be one n-gram, which no document is.
    return [part for part in parts if len(WORD.findall(part)) >= WORDS]


def _largest(console: Console, runtime: Runtime, corpus: Path, grams: Grams) -> np.ndarray:
    """The largest shares over all training documents."""
    source = open_documents(corpus, 'train')
    progress = console.progress('finetune: test items in the corpus', len(source), 'documents')
    best_N, most = np.zeros(len(grams.size_N)), -(-len(source) // DOCUMENTS_PER_WORKER)
    spans = ranges(len(source), DOCUMENTS_PER_TASK)
    with open_workers(runtime, most, _prepare, (grams, source)) as workers:
        for span, share_N in zip(spans, workers.map(_of_span, spans, console.check_stop), strict=True):
            best_N = np.maximum(best_N, share_N)
            progress.update(span[1] - span[0])
    return best_N


_grams: Grams  # of this process: see _prepare
_source: DocumentSource


def _prepare(grams: Grams, source: DocumentSource) -> None:
    global _grams, _source
    _grams, _source = grams, source


def _of_span(start: int, stop: int) -> np.ndarray:
    return _grams.shares([document.text for document in _source.read(start, stop)])
