"""A donor knows vectors for tokens that the source lacks, and for tokens that both have (anchors).

It is a model (`surgery.donor`), of which the input rows are taken; without one, word vectors are trained on this run's
own corpus, with this run's own tokens as the words, as FOCUS does it (Dobler and de Melo, arXiv 2305.14481).

W: the run's vocabulary, N: new tokens, M: anchors, E: size of a vector.
"""

import dataclasses
import hashlib
import importlib.util
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from bioptimus_jax.corpus.documents import DocumentSource, open_documents
from bioptimus_jax.errors import ConfigError, InputError
from bioptimus_jax.hosts.workers import ranges
from bioptimus_jax.model.config import Source
from bioptimus_jax.model.folder import source_folder
from bioptimus_jax.model.loaded import check_folder as check_tokenizer
from bioptimus_jax.model.loaded import load_model
from bioptimus_jax.model.tensors import read_architecture
from bioptimus_jax.progress.console import Console, numbered
from bioptimus_jax.records.manifests import Manifest
from bioptimus_jax.run.folder import Run
from bioptimus_jax.surgery import fasttext, partial
from bioptimus_jax.surgery.config import HasSurgery, Surgery
from bioptimus_jax.surgery.rows import seeded
from bioptimus_jax.surgery.source import watched
from bioptimus_jax.tokenizer import subwords
from bioptimus_jax.tokenizer.subwords import Subwords

KEY = 'config.surgery.donor'
MOST_PIECES = 10_000_000  # of the corpus: minutes, whatever its size
LONGEST = 1000  # pieces of a line; fastText cuts lines there
DOCUMENTS = 256  # read at a time
FILE = 'donor.npz'


@dataclasses.dataclass(frozen=True)
class Donated:
    """A donor's vectors of new tokens [N, E], NaN where it has none, and of anchors [M, E], with their source ids [M].

    `seconds`: what it took to train or load the donor.
    """

    vectors: np.ndarray
    anchors: np.ndarray
    ids: np.ndarray
    seconds: float


def folder_of(surgery: Surgery) -> Path | None:
    """The folder of the donor; None for word vectors of the corpus. Raises ConfigError, InputError."""
    return source_folder(Source(surgery.donor), KEY)


def check(surgery: Surgery) -> None:
    """Raise what can be known to be wrong with the donor before any work: ConfigError, InputError."""
    folder = folder_of(surgery)
    if folder is None and importlib.util.find_spec('gensim') is None:
        raise ConfigError(
            f'config.surgery.strategy: {surgery.strategy} trains word vectors, but gensim is not installed; '
            "pip install 'bioptimus-jax[donor]', or name a model in config.surgery.donor"
        )
    if folder is not None:
        check_tokenizer(folder)
    width = fasttext.DIMENSIONS if folder is None else read_architecture(folder).width
    if 'anchors' in surgery.initialisation.keys and surgery.anchors >= width:
        # As many anchors as dimensions give every vector exactly, and so choose nothing.
        raise ConfigError(
            f'config.surgery.anchors: {surgery.anchors}, but vectors of {folder or "the corpus"} have {width} '
            f'dimensions; set it below {width}'
        )


def donate(run: Run[HasSurgery], source: Subwords, tokens: Sequence[str]) -> Donated:
    """What the donor of a run knows of tokens of its vocabulary, which count as new; anchors are the other shared ones.

    Word vectors are trained once, even if the run is killed. Raises InputError where the donor knows no anchor, or none
    of the tokens.
    """
    if not tokens:
        return Donated(np.zeros((0, 1)), np.zeros((0, 1)), np.zeros(0, np.int64), 0.0)
    known, seed = subwords.load(run.folder('vocab')), run.config.seed
    folder, started = folder_of(run.config.surgery), time.monotonic()
    if folder is not None:
        vectors_WxE = _of_model(folder, known, seed)
        seconds = time.monotonic() - started
    else:
        contents = [(run.manifest(stage) or Manifest()).content for stage in ('corpus', 'vocab')]
        file, key = run.scratch('surgery') / FILE, _key(contents, known, seed)
        if saved := partial.load(file, key):
            vectors_WxE, seconds = saved['vectors'], float(saved['seconds'])
        else:
            documents = open_documents(run.folder('corpus'), 'train')
            vectors_WxE = _of_documents(documents, known, seed, run.console)
            seconds = time.monotonic() - started
            partial.save(file, key, vectors=vectors_WxE, seconds=seconds)
    number_of = {token: number for number, token in enumerate(known.tokens)}
    new_N = np.array([number_of[token] for token in tokens])
    shared_W, has_W = known.shared_with(source), ~np.isnan(vectors_WxE).any(axis=1)
    usable_W = (shared_W >= 0) & has_W & ~known.special_V
    usable_W[new_N] = usable_W[known.unknown] = False
    anchors_M, found = np.flatnonzero(usable_W), int(has_W[new_N].sum())
    name = folder or 'the corpus'
    if not found or not len(anchors_M):
        raise InputError(
            f'config.surgery.donor: vectors of {name} know {found:,} of {numbered(len(tokens), "new token")} and '
            f'{numbered(len(anchors_M), "token")} of the source; take a larger corpus, or a model of this domain as '
            'donor'
        )
    run.console.say(
        f'surgery: vectors of {name} know {found:,} of {numbered(len(tokens), "new token")}, and '
        f'{numbered(len(anchors_M), "anchor")}'
    )
    return Donated(vectors_WxE[new_N], vectors_WxE[anchors_M], shared_W[anchors_M], seconds)


def _of_model(folder: Path, known: Subwords, seed: int) -> np.ndarray:
    """The input rows of a model, [W, E]; NaN for tokens that it does not have."""
    model = load_model(folder, seed)
    shared_W, table_VxE = known.shared_with(model.subwords), model.table()
    return np.where((shared_W >= 0)[:, None], table_VxE[np.maximum(shared_W, 0)], np.nan)


def _key(contents: Sequence[str | None], known: Subwords, seed: int) -> str:
    """What word vectors are of: the contents of corpus and vocabulary, the seed, and how they are trained."""
    constants = fasttext.facts(), MOST_PIECES, LONGEST, DOCUMENTS
    return hashlib.sha256(repr((list(contents), seed, constants, known.tokens)).encode()).hexdigest()


def _of_documents(documents: DocumentSource, known: Subwords, seed: int, console: Console) -> np.ndarray:
    """Word vectors that are trained on documents, [W, E]."""
    lines = lines_of(documents, known, seed, console.check_stop)
    pieces = sum(map(len, lines))
    progress = console.progress('surgery, word vectors', fasttext.EPOCHS * pieces, 'pieces')
    return fasttext.word_vectors(lines, known.tokens, seed, watched(progress, console.check_stop))


def lines_of(
    documents: DocumentSource, known: Subwords, seed: int, check_stop: Callable[[], None]
) -> list[np.ndarray]:
    """Ids of the pieces of documents, in lines; a seeded choice of blocks where there are too many."""
    blocks, lines, pieces = ranges(len(documents), DOCUMENTS), [], 0
    for number in seeded(seed, len(blocks)).permutation(len(blocks)).tolist():
        for encoding in known.encode(document.text for document in documents.read(*blocks[number])):
            ids = np.array(encoding.ids, np.int32)
            lines += [ids[start : start + LONGEST] for start in range(0, len(ids), LONGEST)]
            pieces += len(ids)
        check_stop()
        if pieces >= MOST_PIECES:
            break
    return lines
