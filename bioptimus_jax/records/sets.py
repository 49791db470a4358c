"""What is known of sets before anything is trained on them: set.json; lint.json and labels.json of stage finetune."""

import dataclasses
from collections.abc import Mapping

from bioptimus_jax.records.record import Record, left_out


@dataclasses.dataclass(frozen=True, kw_only=True)
class SetDescription(Record):
    """A set of texts as its set.json describes it: what its columns, numbered from 0, hold, and how it is measured.

    `keys`: names of the columns, where the files have any. `document`: what of a name says which document a text is
    from. `several`: a text may have several labels. `uncounted`: labels that no measure counts. `found`: no file says
    this, its records do.
    """

    answer: int
    document: str | None = left_out()
    found: bool | None = left_out()
    header: bool | None = left_out()
    keys: tuple[str, ...] | None = left_out()
    labels: tuple[str, ...] | None = left_out()
    measures: tuple[str, ...] | None = left_out()
    name: int | None = left_out()
    several: bool | None = left_out()
    task: str
    texts: tuple[int, ...]
    uncounted: tuple[str, ...] | None = left_out()


@dataclasses.dataclass(frozen=True, kw_only=True)
class LintedSplit(Record):
    """Counts of a split.

    `mentions_not_strict`: those that are none in strict mode. `mentions_with_punctuation`: those whose last word ends
    in punctuation. `long_sentences`: those of more words than most windows have pieces. `blurb`: the published number
    of mentions, where the set is one of BLURB's, and `public_files`, what its public files have; `published`: of
    another public set. `mentions_in_file`: counted apart from the sentences; `mentions_left_out`: they overlap or
    repeat others. `repairs`: what had to be read differently, and how often.
    """

    documents: int
    sentences: int
    words: int
    mentions: int
    mentions_not_strict: int
    mentions_with_punctuation: int | None = left_out()
    mentions_by_type: Mapping[str, int]
    sentences_without_mention: int
    longest_sentence_words: int
    long_sentences: int
    blurb: int | None = left_out()
    public_files: int | None = left_out()
    published: int | None = left_out()
    mentions_in_file: int
    mentions_left_out: int
    repairs: Mapping[str, int]


@dataclasses.dataclass(frozen=True)
class Repeated(Record):
    """Sentences that are there before, and the mentions in them."""

    sentences: int
    mentions: int


@dataclasses.dataclass(frozen=True)
class TaggedDifferently(Record):
    """Different sentences that are there with several taggings; the most frequent of them as examples."""

    sentences: int
    examples: tuple[str, ...]


@dataclasses.dataclass(frozen=True, kw_only=True)
class SplitInPieces(Record):
    """A split in the pieces of a tokenizer, special tokens included in lengths.

    `words_without_piece`, `of_them_in_mentions`: words that give none; `examples` of them, as JSON.
    """

    words_without_piece: int
    of_them_in_mentions: int
    mentions_without_piece: int
    examples: tuple[str, ...]
    longest_sentence_pieces: int
    long_sentences: int


@dataclasses.dataclass(frozen=True, kw_only=True)
class SetInPieces(Record):
    """A set in the pieces of a tokenizer; sentences of more than `max_pieces` are long."""

    max_pieces: int
    train: SplitInPieces
    devel: SplitInPieces
    test: SplitInPieces

    @property
    def splits(self) -> tuple[SplitInPieces, ...]:
        """All of them."""
        return self.train, self.devel, self.test


@dataclasses.dataclass(frozen=True)
class TrainingMentions(Record):
    """The mentions that training has of a set, and the published number of them."""

    dataset: str
    mentions: int
    published: int


@dataclasses.dataclass(frozen=True, kw_only=True)
class LintedSet(Record):
    """An entry of lint.json: what is found in a set.

    `blurb`: its name in BLURB, '' for none. `form`, `scheme`: how its files are written. `columns`: which of several
    are word and tag, in words. `merged_types`: read as one type. `cut`: the rule that gives its words from text;
    `cut_otherwise`: test sentences with other words than it gives. `unseen_labels`: labels that training lacks.
    `repeated`: place -> sentences that occur earlier. `tokenizers`: by model.
    """

    dataset: str
    blurb: str
    form: str
    scheme: str
    columns: str
    types: tuple[str, ...]
    merged_types: tuple[str, ...]
    cut: str
    cut_otherwise: int
    unseen_labels: Mapping[str, int]
    splits: Mapping[str, LintedSplit]
    repeated: Mapping[str, Repeated]
    tagged_differently: TaggedDifferently
    tokenizers: Mapping[str, SetInPieces]

    @property
    def training(self) -> TrainingMentions | None:
        """The training mentions of a set; None where it is none of BLURB's."""
        train = self.splits['train']
        return TrainingMentions(self.dataset, train.mentions, train.blurb) if train.blurb else None


@dataclasses.dataclass(frozen=True, kw_only=True)
class LabelShares(Record):
    """A split in labels.json, set -> split: `tags` as shares of words, O included; `types` as shares of mentions."""

    words: int
    mentions: int
    tags: Mapping[str, float]
    types: Mapping[str, float]


LabelsOfSet = Mapping[str, LabelShares]
"""Split -> its labels."""
