"""The section `contexts`, and what stages vocab and contexts read."""

import dataclasses
from typing import Protocol

from bioptimus_jax.config.fields import common_key, key
from bioptimus_jax.corpus.config import HasCorpus
from bioptimus_jax.model.config import HasModel
from bioptimus_jax.tokenizer.config import Vocab

MOST_CONTEXTS = 10_000  # of a token: all of them are held at once (paper: 20)


@dataclasses.dataclass(frozen=True)
class Contexts:
    """Sentences of the corpus for every token that the source does not have (paper, section 3)."""

    per_token: int = common_key(
        20, 'distinct sentences per token, uniform over places', low=1, high=MOST_CONTEXTS
    )
    max_characters: int = key(1000, 'longer sentences are cut around the token', low=50)


class _TakesWeights(Protocol):
    @property
    def source(self) -> bool: ...


class HasInitialisation(Protocol):
    """The section `surgery`, as far as it says whether the source's weights are taken at all."""

    @property
    def initialisation(self) -> _TakesWeights: ...


class HasVocab(HasCorpus, HasModel, Protocol):
    """What stages vocab and contexts read of a configuration."""

    @property
    def seed(self) -> int: ...

    @property
    def vocab(self) -> Vocab: ...

    @property
    def contexts(self) -> Contexts: ...

    @property
    def surgery(self) -> HasInitialisation: ...
