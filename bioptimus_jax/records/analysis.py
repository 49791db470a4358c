"""What stage analyze writes of models: cloze.json, snapshots.json, geometry.json, frozen.json, new_tokens.json."""

import dataclasses
from collections.abc import Mapping
from typing import Any, ClassVar

from bioptimus_jax.records.record import Record, left_out, or_null


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

    def json(self) -> dict[str, Any]:
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


@dataclasses.dataclass(frozen=True)
class Shape(Record):
    """A model in geometry.json.

    `rows`: kind of row of the embedding table -> measures. `words`: embeddings and states of words by kind -> measure
    -> value and interval, beside facts of the words; or `skipped`, why they were not measured.
    """

    model: str
    rows: Mapping[str, Any]
    words: Mapping[str, Any]


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
