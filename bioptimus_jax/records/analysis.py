"""What stage analyze writes of models.

cloze.json, snapshots.json, geometry.json, points.json, similarity.json, frozen.json, new_tokens.json.
"""

import dataclasses
from collections.abc import Mapping
from typing import ClassVar

from bioptimus_jax.records.record import Record, left_out, or_null
from bioptimus_jax.storage.files import JsonObject


@dataclasses.dataclass(frozen=True, kw_only=True)
class Words(Record):
    """Measures of hidden words; only their number where it is 0.

    `nats_per_word_error`: standard error over documents, None of one document. `word_accuracy`: share of the words of
    which all pieces are right.
    """

    words: int | None = left_out()
    pieces: int | None = left_out()
    characters: int | None = left_out()
    nats_per_word: float | None = left_out()
    nats_per_word_error: float | None = or_null()
    bits_per_character: float | None = left_out()
    word_accuracy: float | None = left_out()
    nats_per_piece: float | None = left_out()

    def json(self) -> JsonObject:
        """The JSON object; without an error where there is no mean."""
        absent = self.nats_per_word is None
        return {n: x for n, x in super().json().items() if not (absent and n == 'nats_per_word_error')}


@dataclasses.dataclass(frozen=True, kw_only=True)
class OneToken(Words):
    """Hidden words of a class that are one token: of how many `tokens`, and the mean nats by frequency alone."""

    tokens: int | None = left_out()
    frequency_nats: float | None = or_null()


@dataclasses.dataclass(frozen=True, kw_only=True)
class HiddenWords(Words):
    """A model in cloze.json, or in snapshots.json.

    `skipped`: why it was not scored. `mask`: digest of the words hidden. `one_piece`: those that are one piece in every
    vocabulary. `new_tokens`: those that are one token, by class.
    """

    FIRST: ClassVar[tuple[str, ...]] = ('model', 'skipped', 'mask')
    model: str
    skipped: str | None = left_out()
    mask: str | None = left_out()
    one_piece: Words | None = left_out()
    new_tokens: Mapping[str, OneToken] | None = left_out()

    @property
    def by_class(self) -> Mapping[str, OneToken]:
        """`new_tokens`, empty where they were not measured."""
        return self.new_tokens or {}


@dataclasses.dataclass(frozen=True, kw_only=True)
class ShapeOfRows(Record):
    """Rows of the embedding table: cosines of random pairs, also of differences from the mean, with standard errors.

    `top_component_share`: of the variance around the mean. `norm_quantiles`: of 5, 25, 50, 75 and 95 %.
    """

    count: int
    cosine: float
    cosine_error: float
    cosine_centred: float
    cosine_centred_error: float
    top_component_share: float
    norm_mean: float
    norm_sd: float
    norm_quantiles: Mapping[str, float]


@dataclasses.dataclass(frozen=True, kw_only=True)
class WordMeasure(Record):
    """A measure of words with its 95 % interval over words, and the replicates behind that."""

    value: float
    low: float
    high: float
    replicates: tuple[float, ...] | None = left_out()


@dataclasses.dataclass(frozen=True)
class WordClass(Record):
    """Rare or frequent words: the median of their counts, and the share that is one new token."""

    median_count: float
    new: float


WordMeasures = Mapping[str, WordMeasure]
"""Measure -> its value and interval."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class ShapeOfWords(Record):
    """Rare (`low`) and frequent (`high`) words of a model, or `skipped`, why they were not measured.

    `digest`: of the words. `contexts`: places of each in texts of the `split`. `one_piece`: share that is one piece.
    `embeddings`: by their rows; `contextual`: by their states in texts.
    """

    skipped: str | None = left_out()
    digest: str | None = left_out()
    count: int | None = left_out()
    split: str | None = left_out()
    contexts: int | None = left_out()
    one_piece: float | None = left_out()
    low: WordClass | None = left_out()
    high: WordClass | None = left_out()
    embeddings: WordMeasures | None = left_out()
    contextual: WordMeasures | None = left_out()

    def of(self, kind: str) -> WordMeasures:
        """The measures of a kind of vector, `embeddings` or `contextual`; empty where there are none."""
        return {'embeddings': self.embeddings, 'contextual': self.contextual}[kind] or {}

    def without_replicates(self) -> 'ShapeOfWords':
        """The same without what is behind intervals, which says nothing across runs."""

        def bare(measures: WordMeasures | None) -> WordMeasures | None:
            return measures and {n: dataclasses.replace(x, replicates=None) for n, x in measures.items()}

        return dataclasses.replace(self, embeddings=bare(self.embeddings), contextual=bare(self.contextual))


@dataclasses.dataclass(frozen=True)
class Shape(Record):
    """A model in geometry.json: its embedding table by kind of row, and its words."""

    model: str
    rows: Mapping[str, ShapeOfRows]
    words: ShapeOfWords


@dataclasses.dataclass(frozen=True, kw_only=True)
class DrawnWords(Record):
    """Where t-SNE puts words of a model: by their rows and by their states."""

    model: str
    embeddings: tuple[tuple[float, ...], ...] | None = left_out()
    contextual: tuple[tuple[float, ...], ...] | None = left_out()

    def of(self, kind: str) -> tuple[tuple[float, ...], ...]:
        """The points of a kind of vector, `embeddings` or `contextual`."""
        return {'embeddings': self.embeddings, 'contextual': self.contextual}[kind] or ()


@dataclasses.dataclass(frozen=True)
class Points(Record):
    """points.json: some of the words, whether they are frequent, and their points in every model."""

    words: tuple[str, ...]
    high: tuple[bool, ...]
    models: tuple[DrawnWords, ...]


@dataclasses.dataclass(frozen=True, kw_only=True)
class SimilarityOfPairs(Record):
    """Pairs of texts of a set, without training: the mean cosine, and the correlation of cosine and number.

    `pearson`: None where all cosines or all numbers are the same.
    """

    pairs: int
    pearson: float | None = or_null()
    cosine: float


@dataclasses.dataclass(frozen=True, kw_only=True)
class SentenceVectors(Record):
    """A model in similarity.json: the mean `cosine` over pairs of so many unlike held-out sentences; pairs of sets.

    `for_sentences`: of the source, whether it was made for vectors of sentences.
    """

    model: str
    sentences: int
    cosine: float | None = or_null()
    sets: Mapping[str, SimilarityOfPairs]
    for_sentences: bool | None = left_out()


@dataclasses.dataclass(frozen=True)
class FrozenScore(Record):
    """A model and a set in frozen.json: entities from frozen states, on so many training sentences."""

    model: str
    set: str
    precision: float
    recall: float
    f1: float
    gold: float
    predicted: float
    sentences: int


ByToken = Mapping[str, tuple[int, float, float]]
"""New token -> how many hidden words are it, their nats in all, and those of one word by its frequency alone."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class AnalysedModel(Record):
    """All that is measured of a model, as an attempt that is cut off leaves it.

    A snapshot has neither geometry nor points nor similarity. `points`: None where no words are drawn. `similarity`:
    None without a source. `export`: the content of stage export that the model was measured with.
    """

    model: str
    cloze: HiddenWords
    by_token: ByToken
    frozen: tuple[FrozenScore, ...]
    frozen_seconds: float
    geometry: Shape | None = left_out()
    points: DrawnWords | None = left_out()
    similarity: SentenceVectors | None = left_out()
    export: str | None = ''


@dataclasses.dataclass(frozen=True)
class NewToken(Record):
    """A new token in new_tokens.json that is `words` hidden words: nats a word by model.

    `frequency`: the nats of its frequency alone. `behind`: how far the last model is above them.
    """

    token: str
    words: int
    nats_per_word: Mapping[str, float]
    frequency: float
    behind: float
