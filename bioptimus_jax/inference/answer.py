"""What a model says of a text."""

import dataclasses

from bioptimus_jax.inference.given import Given


@dataclasses.dataclass(frozen=True)
class AnswerSpan:
    """Characters start..end of the text: an entity of the type `kind`, or a [MASK] that `kind` would fill.

    `probability`: of an entity, the mean of the model's for the tags of its words. `others`: what else would fill a
    [MASK], best first, `kind` included.
    """

    start: int
    end: int
    kind: str
    probability: float
    others: tuple[tuple[str, float], ...] = ()


@dataclasses.dataclass(frozen=True)
class Answer:
    """What was found in a text, by position, or what was said of all of it.

    `said`: the labels that hold, or a number. `labels`: every label with its probability, best first.
    """

    given: Given
    found: tuple[AnswerSpan, ...] = ()
    said: tuple[str | float, ...] = ()
    labels: tuple[tuple[str, float], ...] = ()
