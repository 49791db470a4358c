"""Verb `merge`: average the weights of Hugging Face folders of one shape and one vocabulary."""

import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import Path

import jax
import numpy as np

from bioptimus_jax.errors import ConfigError, InputError
from bioptimus_jax.export.build import export
from bioptimus_jax.export.card import card_facts
from bioptimus_jax.export.mean_card import mean_card
from bioptimus_jax.model.architecture import Architecture
from bioptimus_jax.model.folder import deciding_files
from bioptimus_jax.model.pooling import files_for_sentence_transformers, pooling_in
from bioptimus_jax.model.tensors import load_folder
from bioptimus_jax.model.untouched import enumerated, untouched_in
from bioptimus_jax.progress.console import complain
from bioptimus_jax.records.export import Export, MergedModel
from bioptimus_jax.storage.files import sha256
from bioptimus_jax.tokenizer.subwords import load as load_subwords


def merge(folders: Sequence[Path], shares: Sequence[float], to: Path) -> dict[str, float]:
    """Write the weighted mean of the folders, with the tokenizer of the first one, behind the gate of an export.

    `shares`: how much each counts, empty: alike. Gives what the gate measured. Raises ConfigError, InputError.
    """
    shares = list(shares) or [1.0] * len(folders)
    if len(folders) < 2 or len(shares) != len(folders):
        raise ConfigError(
            f'merge: two folders or more are needed, and as many --weights; got {len(folders)} and {len(shares)}'
        )
    if to.exists():
        raise InputError(f'{to}: already exists; name a new folder')
    first = folders[0]
    architecture, total, _ = load_folder(first, masked_lm=False)
    known = load_subwords(first).tokens
    # In float64, so that the mean is rounded once.
    total = jax.tree.map(lambda leaf: np.zeros(leaf.shape, np.float64), total)
    for folder, share in zip(folders, shares, strict=True):
        other, params, fresh = load_folder(folder, masked_lm=False)
        _check_same(folder, other, first, architecture)
        if type(other) is not type(architecture) or fresh:
            what = f'has no {fresh[0]}' if fresh else f'is of the family {other.title}'
            raise InputError(f'{folder}: {what}, unlike {first}; merge models of one kind')
        tokens = load_subwords(folder).tokens
        if tokens != known:
            raise InputError(
                f'{folder}: has another vocabulary than {first}; only rows of equal tokens have a mean'
            )
        part = share / sum(shares)
        total = jax.tree.map(lambda sums, leaf, part=part: sums + part * leaf, total, params)
    mean = jax.tree.map(lambda leaf: leaf.astype(np.float32), total)
    untouched = _of_all([untouched_in(folder, architecture)[0] for folder in folders], shares)
    weights = dict.fromkeys(map(str, folders), 0.0)
    for folder, share in zip(folders, shares, strict=True):  # one that is named twice counts twice
        weights[str(folder)] += share
    pooled = [pooling_in(folder) for folder in folders]
    same = pooled[0] if len({*pooled}) == 1 else None
    files = files_for_sentence_transformers(same, architecture.hidden) if same else {}
    made_of = {name: _of_one(Path(name), weight) for name, weight in weights.items()}
    about = Export(phase=to.name, merged=made_of)
    return export(to, architecture, mean, first, (), about, untouched, files=files, card_of=mean_card)


def _of_one(folder: Path, weight: float) -> MergedModel:
    """What is recorded of one of the models."""
    sums = {path.name: sha256(path) for path in deciding_files(folder)}
    return MergedModel(weight, sums, card_facts(folder))


def _of_all(several: Sequence[Mapping[str, np.ndarray]], shares: Sequence[float]) -> dict[str, np.ndarray]:
    """The mean of tensors beside the parameters; a line names those that some of the models lack."""
    names = set.intersection(*({*each} for each in several))
    if lost := sorted(set().union(*several) - names):
        complain(f'merge: not all models have {enumerated(lost)}, so the mean has none')
    return {
        name: np.average([each[name] for each in several], 0, shares).astype(np.float32) for name in names
    }


def _check_same(folder: Path, other: Architecture, first: Path, architecture: Architecture) -> None:
    values, wanted = dataclasses.asdict(other), dataclasses.asdict(architecture)
    different = [name for name in values.keys() & wanted.keys() if values[name] != wanted[name]]
    # Rates of dropout are for training alone.
    if different := sorted(set(different) - {'dropout', 'attention_dropout'}):
        name = different[0]
        raise InputError(
            f'{folder / "config.json"}: {name} is {values[name]}, but {wanted[name]} in {first}; only models of one '
            'shape can be merged'
        )
