"""Word counts of the run's corpus and of a general one, in worker processes; counts of parts add up.

Only a sample of a large corpus is counted: more text changes a vocabulary at its rare end only, and costs a string in
memory for every misspelling. Which documents is decided by a hash of their ids alone.
"""

import dataclasses
import functools
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path

import numpy as np

from bioptimus_jax.corpus.config import Corpus
from bioptimus_jax.corpus.documents import DocumentSource
from bioptimus_jax.corpus.newest import Identities, standing
from bioptimus_jax.corpus.readers import documents_in, identities_in, input_files
from bioptimus_jax.hosts.workers import open_workers, ranges
from bioptimus_jax.progress.console import Console, Progress
from bioptimus_jax.storage.hashing import hash64
from bioptimus_jax.tokenizer.config import TOKENIZERS
from bioptimus_jax.tokenizer.subwords import Subwords
from bioptimus_jax.vocab.config import HasVocab

BLOCK = 8192  # documents


class _Prepared:
    """What every task of this process needs, set by `_prepare`."""

    documents: DocumentSource
    share: float
    seed: int
    count: Callable[[Iterable[str]], Counter[str]]
    general: Corpus


_prepared = _Prepared()


def general_files(experiment: HasVocab) -> list[Path]:
    """The files of `vocab.general`, in order; none where it is empty. Raises InputError."""
    return input_files(_general(experiment), 'vocab.general') if experiment.vocab.general else []


def count_corpora(
    console: Console, e: HasVocab, documents: DocumentSource, share: float, like: Subwords | None = None
) -> tuple[Counter[str], Counter[str]]:
    """Counts of words in a `share` of `documents`, and in the general corpus (all of it; empty without one).

    `like`: the tokenizer whose words they are; None: those of the kind and the casing of the configuration.
    """
    settings = e.vocab
    blocks, files = ranges(len(documents), BLOCK), general_files(e)
    kind, words_of = TOKENIZERS.load(settings.tokenizer), like.reader if like else None
    count = functools.partial(kind.count_words, lowercase=settings.lowercase, like=words_of)
    arguments = documents, share, settings.sample_seed, count, _general(e)
    with open_workers(e.runtime, len(blocks) + len(files), _prepare, arguments) as pool:
        progress = console.progress('vocab: counting words', len(documents), 'documents')
        sizes = [stop - start for start, stop in blocks]
        domain = _added(progress, sizes, pool.map(_count_block, blocks, console.check_stop))
        general: Counter[str] = Counter()
        if files:
            # Twice: which of several versions of a record stands is known when all files are read.
            identities = list(
                pool.map(_identities, [(file.absolute(),) for file in files], console.check_stop)
            )
            progress = console.progress('vocab: counting words of the general corpus', len(files), 'files')
            tasks = [(file.absolute(), one) for file, one in zip(files, standing(identities), strict=True)]
            general = _added(progress, [1] * len(files), pool.map(_count_file, tasks, console.check_stop))
    return domain, general


def share_counted(wanted: int, words: int) -> float:
    """The share of documents with so many `words` (between spaces) that has about `wanted`; 0 wants all of them."""
    return wanted / words if 0 < wanted < words else 1.0


def is_counted(id: str, share: float, seed: int) -> bool:
    """Whether a document is in the sample, by a hash of its id that no other choice of documents shares."""
    key = seed.to_bytes(8, 'little')
    return hash64(id, key=key, purpose=b'vocab') < share * 2**64


def _general(experiment: HasVocab) -> Corpus:
    return dataclasses.replace(experiment.corpus, inputs=experiment.vocab.general)


def _added(progress: Progress, sizes: Iterable[int], parts: Iterable[Counter[str]]) -> Counter[str]:
    counts: Counter[str] = Counter()
    for size, part in zip(sizes, parts, strict=True):
        counts.update(part)
        progress.update(size)
    return counts


def _prepare(documents: DocumentSource, share: float, seed: int, count: Callable, general: Corpus) -> None:
    _prepared.documents, _prepared.share, _prepared.seed = documents, share, seed
    _prepared.count, _prepared.general = count, general


def _count_block(start: int, stop: int) -> Counter[str]:
    documents, share, seed = _prepared.documents, _prepared.share, _prepared.seed
    chosen = (d.text for d in documents.read(start, stop) if is_counted(d.id, share, seed))
    return _prepared.count(chosen)


def _identities(path: Path) -> Identities:
    return identities_in(path, '', _prepared.general)


def _count_file(path: Path, stands: np.ndarray) -> Counter[str]:
    return _prepared.count(document.text for document in documents_in(path, '', _prepared.general, stands))
