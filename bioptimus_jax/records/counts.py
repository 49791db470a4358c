"""What stages count, as `counts` of their manifest.json; and rows.json of stage rows."""

import dataclasses
from collections.abc import Mapping
from typing import ClassVar, Self

from bioptimus_jax.records.manifests import Manifest
from bioptimus_jax.records.record import Record, left_out, named, or_null, others

MANIFEST = 'manifest.json of stage {}'


@dataclasses.dataclass(frozen=True, kw_only=True)
class Counts(Record):
    """Counts of a stage."""

    STAGE: ClassVar[str]

    @classmethod
    def of(cls, manifest: Manifest | None) -> Self | None:
        """The counts of the stage's manifest; None where it is not finished. Raises InputError for other counts."""
        if manifest is None or not manifest.counts:
            return None
        return cls.read(manifest.counts, MANIFEST.format(cls.STAGE))


@dataclasses.dataclass(frozen=True)
class StageResult:
    """What a stage returns once its files are written.

    `content`: the digest of what later stages read; '': of all its files.
    """

    counts: Counts
    content: str = ''


@dataclasses.dataclass(frozen=True)
class AuditCounts(Record):
    """Benchmark sentences that were looked for in documents, those too short to be found, and matches."""

    sentences: int
    too_short: int = 0
    matches: int = 0


@dataclasses.dataclass(frozen=True, kw_only=True)
class CorpusCounts(Counts):
    """Files, and how many are broken, `read_in_part` of them; documents that were read; what became of them.

    `left_out`: reason -> documents. `kinds`: kind of article -> how many are among the documents. `words`: by split.
    `ids_made`: documents without an id of their own. `words_not_read`: of parts of articles that are left out.
    `copies`: documents of `train` that are there again, by their weight.
    """

    STAGE = 'corpus'
    files: int = 0
    broken_files: int = 0
    read_in_part: int = 0
    documents_read: int = named('read')
    deletions: int = 0
    left_out: Mapping[str, int]
    kinds: Mapping[str, int] = dataclasses.field(default_factory=dict)
    train: int
    heldout: int
    words: Mapping[str, int] = dataclasses.field(default_factory=dict)
    ids_made: int = 0
    words_not_read: Mapping[str, int] = dataclasses.field(default_factory=dict)
    copies: int = 0
    audit: AuditCounts | None = or_null()

    def documents(self, split: str) -> int:
        """The documents of a split, `train` or `heldout`."""
        return {'train': self.train, 'heldout': self.heldout}[split]


@dataclasses.dataclass(frozen=True, kw_only=True)
class VocabCounts(Counts):
    """Tokens of a vocabulary: `kept` of the source's, `new` and `lost` beside it; and the words that were counted."""

    STAGE = 'vocab'
    size: int
    kept: int | None = left_out()
    new: int | None = left_out()
    lost: int | None = left_out()
    words_counted: int = 0


@dataclasses.dataclass(frozen=True, kw_only=True)
class ContextCounts(Counts):
    """New tokens, by how many contexts they have; sentences that were searched; contexts, and their sentences.

    `not_located`: contexts that the search found, but not their place in the text. Where no token is new, only
    `tokens`, `occurrences` and `sentences` are counted.
    """

    STAGE = 'contexts'
    tokens: int
    tokens_without: int | None = left_out()
    tokens_with_some: int | None = left_out()
    tokens_with_all: int | None = left_out()
    sentences_searched: int | None = left_out()
    occurrences: int
    not_located: int | None = left_out()
    sentences: int


@dataclasses.dataclass(frozen=True, kw_only=True)
class SurgeryCounts(Counts):
    """Rows by their kind, sentences that were read and contexts that were used of them; why rows fell back."""

    STAGE = 'surgery'
    strategy: str
    copied: int = 0
    synthesised: int = 0
    fresh: int = 0
    windows: int = 0
    contexts: int = 0
    fallbacks: Mapping[str, int] = dataclasses.field(default_factory=dict)


@dataclasses.dataclass(frozen=True, kw_only=True)
class SplitRows(Record):
    """Rows of a split and what is in them.

    `documents_cut`: longer than a row may be; `tokens_dropped`: too short ends of them. `fill`: share of the places
    that hold tokens; `share_at_384_and_more`: of the tokens, by place. `pairs`: of texts; `share_random` of their
    second texts is from another document, None where none may be.
    """

    rows: int
    documents: int = 0
    documents_cut: int = 0
    tokens_dropped: int = 0
    words: int
    tokens: int
    special_tokens_quoted: int = 0
    fill: float = 0.0
    share_at_384_and_more: float = 0.0
    pairs: int | None = left_out()
    share_random: float | None = left_out()


@dataclasses.dataclass(frozen=True, kw_only=True)
class RowCountsOfSplits(Counts):
    """The rows of both splits; `more`: the training split packed in the shapes of phases, by folder."""

    STAGE = 'rows'
    train: SplitRows
    heldout: SplitRows | None = left_out()
    more: Mapping[str, SplitRows] | None = left_out()


@dataclasses.dataclass(frozen=True, kw_only=True)
class RowsFile(Record):
    """rows.json of a split: the pieces of a row, the most documents in one, the shards, and which arrays they have."""

    row_pieces: int
    segments: int
    shards: int
    counts: SplitRows
    cuts: bool | None = left_out()
    first_lengths: bool | None = left_out()
    labels: bool | None = left_out()


@dataclasses.dataclass(frozen=True, kw_only=True)
class PretrainCounts(Counts):
    """Steps and tokens that were trained on, and the steps at which phases ended and snapshots were kept.

    `slots`: places of a row that the output layer is computed for, at most.
    """

    STAGE = 'pretrain'
    steps: int
    phase_ends: Mapping[str, int]
    snapshots: Mapping[str, int]
    tokens: int
    slots: int


@dataclasses.dataclass(frozen=True, kw_only=True)
class ExportCounts(Counts):
    """The phases and snapshots that were exported; `gate`: what was measured of each model, by its name."""

    STAGE = 'export'
    phases: tuple[str, ...] = ()
    gate: Mapping[str, Mapping[str, float]] = dataclasses.field(default_factory=dict)


@dataclasses.dataclass(frozen=True, kw_only=True)
class FinetuneCounts(Counts):
    """Fine-tunings; `kept`: made by an earlier attempt; `failed`: seeds that learned nothing.

    `sums`: over all fine-tunings, what their tasks count.
    """

    STAGE = 'finetune'
    cells: int
    kept: int
    failed: int
    sums: Mapping[str, int] = others()


@dataclasses.dataclass(frozen=True, kw_only=True)
class AnalysisCounts(Counts):
    """Models that were analysed, and what they were analysed on; seconds of the sets that are read frozen."""

    STAGE = 'analyze'
    models: int
    documents: int
    hidden_words: int
    words: int
    geometry_words: int
    vocabularies: int
    snapshots: int | None = left_out()
    frozen_sets: int | None = left_out()
    frozen_seconds: float | None = left_out()


@dataclasses.dataclass(frozen=True, kw_only=True)
class ReportCounts(Counts):
    """Tables and figures that have something to show, model cards, and the bytes of the page."""

    STAGE = 'report'
    tables: int
    figures: int
    cards: int
    bytes: int
