"""What stage corpus writes of benchmark sentences that it found in documents: audit.jsonl."""

import dataclasses

from bioptimus_jax.records.record import Record


@dataclasses.dataclass(frozen=True, order=True)
class AuditedSentence(Record):
    """A benchmark sentence: its set, split, and its tokens joined by spaces."""

    dataset: str
    split: str
    text: str


@dataclasses.dataclass(frozen=True)
class AuditedDocument(Record):
    """A document that was left out, the file that it is from, and the sentences that stand in it."""

    document: str
    source: str
    sentences: tuple[AuditedSentence, ...]
