"""What is counted of words and pieces: frequency.json and comparison.json of stage vocab, entities.json of analyze."""

import dataclasses
from collections.abc import Iterable, Mapping
from typing import ClassVar

from bioptimus_jax.records.record import Record, left_out


@dataclasses.dataclass(frozen=True)
class ClassOfWords(Record):
    """How many different words are in a class of frequency, and their share of the running words."""

    different: int
    share: float


@dataclasses.dataclass(frozen=True)
class CorpusWords(Record):
    """A corpus: its running `words`, how many are `different`, and both by class of frequency."""

    words: int
    different: int
    classes: Mapping[str, ClassOfWords]


@dataclasses.dataclass(frozen=True)
class WordCount(Record):
    """A word and how often it was counted."""

    word: str
    count: int


@dataclasses.dataclass(frozen=True, kw_only=True)
class Frequency(Record):
    """frequency.json: words of the run's corpus (`domain`), and of a general one where there is one, by class.

    `share_counted`: of the documents. `per_million`: the lower bounds of the classes. `cross[g][d]`: different words of
    class g in the general corpus and d in the domain. `examples`: the most frequent words that the general one lacks.
    """

    share_counted: float = 1.0
    per_million: tuple[float, ...]
    domain: CorpusWords
    general: CorpusWords | None = left_out()
    cross: Mapping[str, Mapping[str, int]] | None = left_out()
    examples: tuple[WordCount, ...] | None = left_out()


@dataclasses.dataclass(frozen=True, kw_only=True)
class Pieces(Record):
    """A text in the pieces of a vocabulary; words are those of its tokenizer, and shares are of words."""

    words: int
    pieces_per_word: float
    unknown_words: float
    one_piece_words: float


@dataclasses.dataclass(frozen=True, kw_only=True)
class PiecesOfCorpus(Pieces):
    """Documents in pieces; also for words between spaces, as `text.words` counts them: letters in scripts without."""

    FIRST: ClassVar[tuple[str, ...]] = (
        'words',
        'words_between_spaces',
        'pieces_per_word',
        'pieces_per_word_between_spaces',
        'one_piece_words',
    )
    words_between_spaces: int | None = left_out()
    pieces_per_word_between_spaces: float | None = left_out()


@dataclasses.dataclass(frozen=True, kw_only=True)
class PiecesOfMentions(Pieces):
    """Mentions of entities in pieces: their number, how many differ, and the share that is one piece."""

    FIRST: ClassVar[tuple[str, ...]] = ('mentions', 'different')
    mentions: int
    different: int
    one_piece_mentions: float

    @property
    def pieces_per_mention(self) -> float | None:
        """Mean pieces of a mention; None without any."""
        return self.pieces_per_word * self.words / self.mentions if self.mentions else None


def same_words(cuts: Iterable[Pieces]) -> bool:
    """Whether tokenizers cut one text into as many words: only then can what they need for a word be compared."""
    return len({cut.words for cut in cuts}) < 2


@dataclasses.dataclass(frozen=True)
class NewWord(Record):
    """A new token that is a whole word, how often the texts have it, and its pieces in the source."""

    token: str
    count: int
    source: tuple[str, ...]


@dataclasses.dataclass(frozen=True, kw_only=True)
class Comparison(Record):
    """comparison.json: the vocabulary of a run beside its source's; from `source` on only where there is one.

    `kept`, `new`, `lost`: tokens of both, of this one, of the source alone. `examples`: the most frequent new words.
    `unreached`: tokens that no text gives.
    """

    size: int
    documents_measured: int
    vocabulary: PiecesOfCorpus
    source: PiecesOfCorpus | None = left_out()
    source_size: int | None = left_out()
    kept: int | None = left_out()
    new: int | None = left_out()
    lost: int | None = left_out()
    examples: tuple[NewWord, ...] | None = left_out()
    unreached: tuple[str, ...] | None = left_out()


@dataclasses.dataclass(frozen=True)
class WholeEntity(Record):
    """An entity that the vocabulary keeps whole, how often it is mentioned, and its pieces in the source."""

    entity: str
    count: int
    source: tuple[str, ...]


@dataclasses.dataclass(frozen=True)
class Entities(Record):
    """entities.json: set -> `vocabulary`, and `source` where there is one, of its mentions in that split."""

    split: str
    datasets: Mapping[str, Mapping[str, PiecesOfMentions]]
    examples: tuple[WholeEntity, ...]
