"""A model with its tokenizer, read from a Hugging Face folder. V tokens, D hidden size."""

import dataclasses
from pathlib import Path

import jax
import numpy as np

from bioptimus_jax.errors import InputError
from bioptimus_jax.model.architecture import HEAD, Architecture
from bioptimus_jax.model.tensors import check_family, check_vocabulary, load_folder, read_architecture
from bioptimus_jax.model.trees import Params, flatten
from bioptimus_jax.model.weights import tensor_names
from bioptimus_jax.tokenizer import subwords


@dataclasses.dataclass(frozen=True)
class Loaded:
    """Architecture, nested parameters, tokenizer, and the paths of parameters that the folder lacked."""

    folder: Path
    architecture: Architecture
    parameters: Params
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
    def encoder(self) -> Params:
        """The parameters that states depend on."""
        return {name: values for name, values in self.parameters.items() if name != HEAD}

    def table(self) -> np.ndarray:
        """Input rows of the tokens (the rows beyond the vocabulary left out): [V, D]."""
        return np.asarray(flatten(self.parameters)[self.architecture.table])[: len(self.vocabulary)]


def check_folder(folder: Path) -> subwords.Subwords:
    """The tokenizer of a folder. Raises InputError where it or names of tensors do not fit config.json."""
    known, architecture = subwords.load(folder), read_architecture(folder)
    check_family(tensor_names(folder), architecture, str(folder))
    check_vocabulary(known, architecture, folder)
    if architecture.padded_with(known.pad) != architecture:
        raise InputError(
            f'{folder / "config.json"}: positions are counted from pad_token_id, but in the tokenizer '
            f'{known.tokens[known.pad]} is {known.pad}; give both the id that the model was trained with'
        )
    return known


def load_model(folder: Path, seed: int = 0) -> Loaded:
    """The model of a folder; a head that it lacks is drawn with the seed. Raises InputError for a bad folder."""
    known = check_folder(folder)
    architecture, parameters, fresh = load_folder(folder, jax.random.key(seed, impl='threefry2x32'))
    return Loaded(folder, architecture, parameters, known, fresh)
