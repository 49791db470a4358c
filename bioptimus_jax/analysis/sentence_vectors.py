"""Vectors of sentences, the means of their last-layer states: do they still tell sentences apart after an adaptation?

A model that was made for such vectors loses them where it is trained for words: all cosines come near 1. Nothing is
trained here. Two measures, the same texts for every model of a run: the mean cosine over all pairs of unlike sentences
of held-out documents; and, of every set of pairs with a number for their similarity, the correlation of cosine and
number.

Legend: N texts, B rows of a batch, L pieces a row, D hidden size.
"""

import dataclasses
import functools
import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
from scipy import stats

from bioptimus_jax.corpus.documents import Document
from bioptimus_jax.finetuning.config import Finetune
from bioptimus_jax.finetuning.task import task_for
from bioptimus_jax.finetuning.texts.task import TextTask
from bioptimus_jax.model.architecture import Architecture
from bioptimus_jax.model.pooling import POOLINGS
from bioptimus_jax.model.trees import Params
from bioptimus_jax.records.analysis import SentenceVectors, SimilarityOfPairs
from bioptimus_jax.sets.corpora import NamedSet, chosen_sets, set_files
from bioptimus_jax.sets.sentences import SPLITS
from bioptimus_jax.text.splitting import split_sentences
from bioptimus_jax.text.words import count_words
from bioptimus_jax.tokenizer.subwords import Subwords

SENTENCES = 100
FEWEST_WORDS = 8
"""Shorter ones are titles, or ends of sentences."""
WINDOW = 128
"""Pieces that are read of a text, special ones included."""
NARROWEST = 32
BATCH_PIECES = 2048
LEAST_SPREAD = 1e-6
"""Cosines that are nearer to one another than this differ by rounding."""
Pairs = Sequence[tuple[str, str, float]]


@dataclasses.dataclass(frozen=True)
class MeasuredTexts:
    """The held-out `sentences`, and set -> its pairs of texts with their number."""

    sentences: tuple[str, ...] = ()
    pairs: Mapping[str, Pairs] = dataclasses.field(default_factory=dict)

    @classmethod
    def of(cls, documents: Iterable[Document], settings: Finetune) -> 'MeasuredTexts':
        """Sentences of FEWEST_WORDS or more: the first of each document, then the second of each, until there are
        enough. Raises InputError."""
        of_documents = [
            [s for s in map(str.strip, split_sentences(document.text)) if count_words(s) >= FEWEST_WORDS]
            for document in itertools.islice(documents, SENTENCES)
        ]
        by_turns = itertools.chain.from_iterable(itertools.zip_longest(*of_documents))
        found = list(dict.fromkeys(filter(None, by_turns)))[:SENTENCES]
        pairs = {one.name: _pairs_of(one) for one in sets_of_pairs(settings)}
        return cls(tuple(found), {name: of_set for name, of_set in pairs.items() if of_set})

    def __len__(self) -> int:
        return len(self.sentences) + sum(2 * len(of_set) for of_set in self.pairs.values())

    def measure(
        self,
        model: str,
        subwords: Subwords,
        architecture: Architecture,
        params: Params,
        on_texts: Callable[[int], None] = lambda texts: None,
    ) -> SentenceVectors:
        """What similarity.json holds of a model."""
        vectors_NxD = text_vectors(self.sentences, subwords, architecture, params, on_texts)
        cosines_NxN = vectors_NxD @ vectors_NxD.T
        unlike = cosines_NxN[np.triu_indices(len(self.sentences), 1)]
        sets = {}
        for name, pairs in self.pairs.items():
            first, second, numbers = zip(*pairs, strict=True)
            both = [text_vectors(side, subwords, architecture, params, on_texts) for side in (first, second)]
            cosines = (both[0] * both[1]).sum(axis=1)
            sets[name] = SimilarityOfPairs(
                pairs=len(pairs), pearson=_correlation(cosines, numbers), cosine=_mean(cosines)
            )
        return SentenceVectors(
            model=model,
            sentences=len(self.sentences),
            cosine=_mean(unlike) if len(unlike) else None,
            sets=sets,
        )


def sets_of_pairs(settings: Finetune) -> list[NamedSet]:
    """The sets of config.finetune that have a number for pairs of texts; none without a folder. Raises InputError."""
    if not settings.folder:
        return []
    tasks = [(one, task_for(one)) for one in chosen_sets(settings)]
    return [one for one, task in tasks if isinstance(task, TextTask) and task.numbers]


def files_of_pairs(settings: Finetune) -> list[Path]:
    """The files that these pairs are read from. Raises InputError."""
    return [file for one in sets_of_pairs(settings) for file in set_files(one.folder)]


def _pairs_of(one: NamedSet) -> Pairs:
    """All pairs of a set, whatever split: nothing is learned from them, nor chosen by them."""
    dataset = task_for(one).read(one)
    examples = [example for split in SPLITS for example in getattr(dataset, split)]
    return [(*e.words, float(e.answers[0])) for e in examples if len(e.words) == 2]


def text_vectors(
    texts: Sequence[str],
    subwords: Subwords,
    architecture: Architecture,
    params: Params,
    on_texts: Callable[[int], None] = lambda texts: None,
    pooling: str = 'mean',
    window: int = WINDOW,
    dimensions: int | None = None,
) -> np.ndarray:
    """The vector of every text, of length 1: float64 NxD.

    `pooling`: a name of POOLINGS, by default the mean over all pieces, special ones too. `window`: how many are read,
    of longer texts the beginning. `dimensions`: how many numbers of a vector are taken, from the first; None: all.
    """
    window = min(window, architecture.positions)
    rows = [[subwords.cls, *e.ids[: window - 2], subwords.sep] for e in subwords.encode(texts)]
    by_width: dict[int, list[int]] = {}
    for number, row in enumerate(rows):
        by_width.setdefault(min(max(NARROWEST, 1 << (len(row) - 1).bit_length()), window), []).append(number)
    vectors_NxD = np.zeros((len(rows), architecture.hidden))
    on_device = jax.device_put(params)
    for width, numbers in sorted(by_width.items()):
        size = max(1, BATCH_PIECES // width)  # one shape a width, as each is compiled
        for start in range(0, len(numbers), size):
            part = numbers[start : start + size]
            batch = {name: np.zeros((size, width), np.int32) for name in ('tokens', 'segments', 'positions')}
            batch['segments'][:, 0] = 1  # no row without anything to attend to
            for at, number in enumerate(part):
                length = len(rows[number])
                batch['tokens'][at, :length] = rows[number]
                batch['segments'][at, :length] = 1
                batch['positions'][at, :length] = np.arange(length)
            found_BxD = _pooled(architecture, pooling, on_device, batch)
            vectors_NxD[part] = np.asarray(found_BxD)[: len(part)]
            on_texts(len(part))
    vectors_NxD = vectors_NxD[:, :dimensions]
    return vectors_NxD / np.linalg.norm(vectors_NxD, axis=1, keepdims=True)


@functools.partial(jax.jit, static_argnums=(0, 1))
def _pooled(
    architecture: Architecture, pooling: str, params: Params, batch: Mapping[str, jax.Array]
) -> jax.Array:
    states_BxLxD = jnp.asarray(architecture.encode(params, batch))
    used_BxL = (batch['segments'] > 0).astype(jnp.float32)
    return jnp.einsum('bld,bl->bd', states_BxLxD, POOLINGS[pooling].weights(used_BxL))


def _correlation(cosines: np.ndarray, numbers: Sequence[float]) -> float | None:
    """Pearson's r; None where one side is all the same."""
    if np.ptp(cosines) < LEAST_SPREAD or not np.ptp(numbers):
        return None
    return round(float(stats.pearsonr(cosines, numbers)[0]), 4)


def _mean(cosines: np.ndarray) -> float:
    return round(float(cosines.mean()), 4)
