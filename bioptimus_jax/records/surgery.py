"""What stage surgery writes of tokens: tokens.jsonl."""

import dataclasses
from collections.abc import Mapping
from typing import Any

from bioptimus_jax.records.record import Record, left_out

COPIED = 'copied'
"""The kind of a row that is the source's."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class TokenRow(Record):
    """A token in order of ids, the `kind` of its row (copied, synthesised, fresh) and the norm; of new ones also more.

    `spelling`: in pieces of the source. `contexts`: how many were used. `cosine`: to the row without contexts.
    `fallback`: why it has none of its own, None where it has. `fit`: what the gradient fit reached. `neighbours`: the
    tokens of highest cosine, `[token, cosine]`.
    """

    token: str
    id: int
    kind: str
    norm: float
    spelling: tuple[str, ...] | None = left_out()
    contexts: int | None = left_out()
    cosine: float | None = left_out()
    fallback: str | None = None
    fit: Mapping[str, Any] | None = left_out()
    neighbours: tuple[Any, ...] | None = left_out()

    @property
    def is_new(self) -> bool:
        """Whether the source does not have it."""
        return self.spelling is not None

    def json(self) -> dict[str, Any]:
        """The JSON object; tokens of the source have no fallback."""
        return {n: x for n, x in super().json().items() if self.is_new or n != 'fallback'}
