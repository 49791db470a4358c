"""A model with its tokenizer, read from a Hugging Face folder. V tokens, D hidden size."""

import dataclasses
from pathlib import Path
from typing import Any

import jax
import numpy as np

from bioptimus_jax.errors import InputError
from bioptimus_jax.model.architecture import HEAD, Architecture
from bioptimus_jax.model.tensors import load_folder
from bioptimus_jax.trees import flatten
from bioptimus_jax.vocab import subwords


@dataclasses.dataclass(frozen=True)
class Loaded:
    """Architecture, nested parameters, tokenizer, and the paths of parameters that the folder lacked."""

    folder: Path
    architecture: Architecture
    parameters: dict[str, Any]
    subwords: subwords.Subwords
    fresh: list[str]

    @property
    def vocabulary(self) -> list[str]:
        """The tokens in order of their ids."""
        return self.subwords.tokens

    @property
    def capacity(self) -> int:
        """Pieces that a window holds beside the special tokens at its ends."""
        return self.architecture.positions - 2

    @property
    def encoder(self) -> dict[str, Any]:
        """The parameters that states depend on."""
        return {name: values for name, values in self.parameters.items() if name != HEAD}

    def table(self) -> np.ndarray:
        """Input rows of the tokens (the rows beyond the vocabulary left out): [V, D]."""
        return np.asarray(flatten(self.parameters)[self.architecture.table])[: len(self.vocabulary)]


def load(folder: Path, seed: int = 0) -> Loaded:
    """The model of a folder; a head that it lacks is drawn with the seed. Raises InputError for a bad folder."""
    known = subwords.load(folder)
    architecture, parameters, fresh = load_folder(folder, jax.random.key(seed, impl='threefry2x32'))
    if len(known.tokens) > architecture.vocab_size:
        raise InputError(
            f'{folder}: the vocabulary has {len(known.tokens)} tokens but the model {architecture.vocab_size} '
            'rows; these are not the weights of this tokenizer'
        )
    return Loaded(folder, architecture, parameters, known, fresh)
