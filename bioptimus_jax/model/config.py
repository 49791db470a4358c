"""The sections `source` and `model`, and how models are named."""

import dataclasses
from typing import Protocol

from bioptimus_jax.config.bounds import LARGEST_SIZE, MOST_LAYERS
from bioptimus_jax.config.fields import common_key, key
from bioptimus_jax.config.plugins import Plugins

FAMILIES = Plugins('bioptimus_jax.model.families', 'FAMILY')


@dataclasses.dataclass(frozen=True)
class Source:
    """The encoder that is adapted. An empty path means: none, every weight starts at random."""

    path: str = common_key(
        '', 'local Hugging Face folder, or a hub id, as OWNER/NAME or OWNER/NAME@REVISION', path=True
    )
    adapter: str = key(
        '',
        'folder of an adapter of PEFT (LoRA) for this model; stage surgery merges it into the weights, in float32',
        path=True,
    )


@dataclasses.dataclass(frozen=True)
class Model:
    """Shape of a model without a source. With a source, only the dropout rates are read."""

    family: str = common_key('bert', 'model_type in config.json: a file of model/families', one_of=FAMILIES)
    layers: int = common_key(12, 'encoder layers', low=1, high=MOST_LAYERS)
    hidden: int = common_key(768, 'hidden size', low=8, high=LARGEST_SIZE)
    heads: int = common_key(12, 'attention heads', low=1, high=LARGEST_SIZE)
    intermediate: int = key(3072, 'feed-forward size', low=8, high=LARGEST_SIZE)
    max_positions: int = common_key(512, 'rows of the position table', low=8, high=LARGEST_SIZE)
    dropout: float = key(0.1, 'dropout of embeddings and layer outputs', low=0, high=0.9)
    attention_dropout: float = key(0.1, 'dropout of attention probabilities', low=0, high=0.9)
    initializer_range: float = key(0.02, 'standard deviation of random weights', low=0, high=1)


INITIAL, SOURCE = 'initial', 'source'  # models that are no phases
SNAPSHOT = '@'  # between a phase and the share of it that was done: 0.1@25


def phase_of(model: str) -> str:
    """The phase of an exported model: '0.1' for its end, '0.1', and for a snapshot on the way, '0.1@25'."""
    return model.partition(SNAPSHOT)[0]


class HasModel(Protocol):
    """A configuration with a source, the shape of a model without one, and names of models."""

    @property
    def source(self) -> Source: ...

    @property
    def model(self) -> Model: ...

    @property
    def phases(self) -> tuple[str, ...]: ...
