"""Entities from frozen states: how well they can be found from a model's states, without fine-tuning, in seconds.

Only sentences of the training split are read: devel and test choose and judge fine-tuned models. The sentences are cut
into PARTS in the order of the file, and each part is tagged by a tagger that is fitted on the other parts
(`discriminant`), so every sentence is scored, and none by a tagger that was fitted on it.

The state of a word is that of its first piece: the means over the lower and the upper half of the layers, side by side,
after each layer is scaled to mean 0 and variance 1. The last layer alone gives a lower F1, as it serves the objective
that it was trained with; one mean follows F1 after fine-tuning less closely (docs/lab/entities.md).

`Tagged` is made once for each vocabulary. `states` reads a model, and `scored` judges what was read.

Shapes: N words that have a piece, in the order of their sentences, M slots of a batch, B rows, L pieces, D size of a
state: the hidden size, for both halves twice.
"""

import dataclasses
import functools
from collections.abc import Callable, Iterator, Mapping, Sequence

import jax
import jax.numpy as jnp
import numpy as np

from bioptimus_jax.model.architecture import Architecture
from bioptimus_jax.model.trees import Params
from bioptimus_jax.scoring.config import HALVES, UPPER
from bioptimus_jax.scoring.discriminant import cross_fitted
from bioptimus_jax.scoring.score import METRICS
from bioptimus_jax.sets.sentences import Sentence
from bioptimus_jax.sets.tags import OUTSIDE
from bioptimus_jax.storage.hashing import hash64
from bioptimus_jax.surgery.layout import BatchLayout
from bioptimus_jax.surgery.reading import StateReading
from bioptimus_jax.tokenizer.subwords import Subwords

PARTS = 5
WINDOW = 128
"""Pieces that are read at once, special ones included; longer sentences are cut between words."""
BATCH_PIECES = 4096
METRIC = METRICS['default']
"""The metric, that of fine-tuned models too: type, first and last word must be right."""


@dataclasses.dataclass(frozen=True)
class Tagged:
    """Tagged sentences in the pieces of one vocabulary.

    `sentences`: as they were given, scored on their gold standard. `layout`: batches of the pieces; its entries are the
    words. `sentence_N`: the number of a word's sentence, `place_N`: its place there, `tags_N`: its tag, as a number in
    `tags`, `part_N`: its part.
    """

    sentences: tuple[Sentence, ...]
    tags: tuple[str, ...]
    layout: BatchLayout
    sentence_N: np.ndarray
    place_N: np.ndarray
    tags_N: np.ndarray
    part_N: np.ndarray

    @classmethod
    def of(
        cls,
        sentences: Sequence[Sentence],
        subwords: Subwords,
        window: int = WINDOW,
        batch_pieces: int = BATCH_PIECES,
    ) -> 'Tagged':
        """`window`: no more pieces than the model can read. Longer words are cut, words without a piece left out."""
        tags = tuple(dict.fromkeys((OUTSIDE, *(tag for s in sentences for tag in s.tags))))
        number = {tag: i for i, tag in enumerate(tags)}
        every = list(dict.fromkeys(word for s in sentences for word in s.words))
        pieces = {word: e.ids for word, e in zip(every, subwords.encode_words(every), strict=True)}
        windows: list[list[int]] = []
        words = []  # window, place in it, sentence, place in it, tag
        for at, sentence in enumerate(sentences):
            windows.append([subwords.cls])
            for place, (word, tag) in enumerate(zip(sentence.words, sentence.tags, strict=True)):
                spelled = pieces[word][: window - 2]
                if len(windows[-1]) + len(spelled) >= window:
                    windows.append([subwords.cls])
                if spelled:
                    words.append((len(windows) - 1, len(windows[-1]), at, place, number[tag]))
                windows[-1] += spelled
        window_N, position_N, sentence_N, place_N, tags_N = np.array(words, np.int64).reshape(-1, 5).T
        whole = [np.array([*pieces, subwords.sep], np.int32) for pieces in windows]
        word_N, once_N = np.arange(len(words)), np.ones(len(words))
        reading = StateReading(whole, window_N, position_N, word_N, once_N, once_N.astype(np.int64))
        part_N = np.array(parts_of(sentences), np.int64)[sentence_N]
        layout = BatchLayout(reading, batch_pieces, window, shards=1)
        return cls(tuple(sentences), tags, layout, sentence_N, place_N, tags_N, part_N)


def chosen(sentences: Sequence[Sentence], most: int) -> list[Sentence]:
    """A choice of at most `most` sentences, those with the lowest hashes of their words, in the order of the file.

    So they are the same for every model. Only the first of several sentences with the same words counts.
    """
    first: dict[str, int] = {}
    for at, sentence in enumerate(sentences):
        first.setdefault(' '.join(sentence.words), at)
    taken = sorted(first, key=hash64)[:most]
    return [sentences[at] for at in sorted(first[text] for text in taken)]


def parts_of(sentences: Sequence[Sentence]) -> list[int]:
    """The part of each sentence: neighbours share one, and so does a whole document where the file marks documents."""
    marked = len({s.document for s in sentences}) > 1
    first: dict[int, int] = {}
    begins = [first.setdefault(s.document, at) if marked else at for at, s in enumerate(sentences)]
    return [at * PARTS // len(sentences) for at in begins]


def states(
    tagged: Tagged,
    architecture: Architecture,
    params: Params,
    on_sentences: Callable[[float], None] = lambda sentences: None,
    layers: str = HALVES,
) -> np.ndarray:
    """The state of every word, float32 NxD, of both HALVES of the layers or the UPPER. `params`: on the device, too."""
    groups = tuple(_groups(architecture.layers, layers))
    states_NxD = np.zeros((len(tagged.tags_N), architecture.hidden * len(groups)), np.float32)
    share = len(tagged.sentences) / max(len(tagged.layout.reading.windows), 1)
    for number in range(len(tagged.layout)):
        batch = tagged.layout.batch(number)
        rows = {'tokens': batch.tokens_BxL, 'segments': batch.segments_BxL, 'positions': batch.positions_BxL}
        states_MxD = _states(architecture, groups, params, rows, batch.slots_SxK[0])
        states_NxD[batch.entries] = np.asarray(states_MxD)[batch.slot_of_entry]
        on_sentences(batch.windows * share)
    return states_NxD


def scored(tagged: Tagged, states_NxD: np.ndarray) -> dict[str, float]:
    """Precision, recall and F1 of entities, between 0 and 1, and the numbers of `gold` and `predicted` entities.

    `states_NxD`: of all words. Nothing is predicted where all sentences are in one part, as nothing can be fitted.
    """
    predicted = [[OUTSIDE] * len(sentence.words) for sentence in tagged.sentences]
    if len(set(tagged.part_N.tolist())) > 1:
        begins_N = np.diff(tagged.sentence_N, prepend=-1) > 0
        found_N = cross_fitted(states_NxD, tagged.tags_N, begins_N, tagged.part_N, len(tagged.tags))
        for sentence, place, tag in zip(tagged.sentence_N, tagged.place_N, found_N, strict=True):
            predicted[sentence][place] = tagged.tags[tag]
    answers = [one.laid_out(tags) for one, tags in zip(tagged.sentences, predicted, strict=True)]
    return METRIC.scores([sentence.gold for sentence in tagged.sentences], answers)


def _groups(layers: int, which: str) -> Iterator[range]:
    """The numbers of the layers that share a mean; the embeddings, number 0, never count."""
    if which == UPPER:
        yield range(max(layers // 2, 1), layers + 1)
        return
    if layers > 1:
        yield range(1, layers // 2 + 1)
    yield range(layers // 2 + 1, layers + 1)


@functools.partial(jax.jit, static_argnums=(0, 1))  # compiled once for all models of one shape
def _states(
    architecture: Architecture,
    groups: tuple[range, ...],
    params: Params,
    batch: Mapping[str, jax.Array],
    slots_M: jax.Array,
) -> jax.Array:
    layers = architecture.encode(params, batch, all_layers=True)

    def scaled(number: int) -> jax.Array:
        flat = layers[number].reshape(-1, architecture.hidden)
        return jax.nn.standardize(flat[slots_M].astype(jnp.float32), axis=-1)

    means = [sum(scaled(number) for number in group) / len(group) for group in groups]
    return jnp.concatenate(means, axis=-1)
