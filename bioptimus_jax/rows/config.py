"""The section `rows`."""

import dataclasses
from typing import NamedTuple, Protocol

from bioptimus_jax.config.bounds import LARGEST_SIZE, MOST_ROWS, WIDEST_ROW
from bioptimus_jax.config.fields import common_key, key
from bioptimus_jax.config.plugins import LazyText, meanings
from bioptimus_jax.rows.layouts import LAYOUTS, PAIRED
from bioptimus_jax.rows.words import WORD_RULES
from bioptimus_jax.vocab.config import HasVocab


@dataclasses.dataclass(frozen=True)
class Rows:
    """Tokenised documents, packed into rows of fixed width."""

    row_pieces: int = common_key(512, 'pieces a row', low=8, high=WIDEST_ROW)
    max_document_pieces: int = common_key(
        512, 'longer ones are cut; counts special tokens', low=8, high=WIDEST_ROW
    )
    block_documents: int = key(4096, 'documents packed together', low=1, high=MOST_ROWS)
    shard_rows: int = key(65536, 'rows a file', low=1, high=LARGEST_SIZE)
    layout: str = key(
        'documents',
        LazyText(lambda: 'what is packed; ' + meanings(LAYOUTS)),
        one_of=LAYOUTS,
    )
    words: str = key(
        'tokenizer',
        LazyText(
            lambda: (
                'what a word is where whole words are masked, and white space alone does not decide; '
                + meanings(WORD_RULES)
            )
        ),
        one_of=WORD_RULES,
    )
    short_pairs: float = key(
        0.1,
        'share of documents with pairs of a random length, not of max_document_pieces (BERT: 0.1)',
        low=0,
        high=1,
        active_if=('rows.layout', PAIRED),
    )


class RowShape(NamedTuple):
    """How wide the rows of a training split are, and how long the documents in them."""

    row_pieces: int
    max_document_pieces: int

    @classmethod
    def of(cls, settings: Rows) -> 'RowShape':
        """The shape that the section `rows` asks for."""
        return cls(settings.row_pieces, settings.max_document_pieces)

    def within(self, settings: Rows) -> Rows:
        """The section with this shape in place of its own."""
        return dataclasses.replace(settings, **self._asdict())

    def split(self, settings: Rows) -> str:
        """The name of the training split of this shape: `train`, or `train-1024-128` for a shape of some phases."""
        return 'train' if self == self.of(settings) else self.split_apart

    @property
    def split_apart(self) -> str:
        """The name of that split where it is not the run's own."""
        return f'train-{self.row_pieces}-{self.max_document_pieces}'


class HasRows(HasVocab, Protocol):
    """What stage rows reads of a configuration."""

    @property
    def rows(self) -> Rows: ...

    @property
    def row_shapes(self) -> tuple[RowShape, ...]:
        """The shapes of all training rows, each once: that of `rows` first, then those of phases."""
        ...
