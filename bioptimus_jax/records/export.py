"""What stage export and verb merge write beside a model, and what is kept of its card: export.json."""

import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from bioptimus_jax.records.manifests import ConfigValues
from bioptimus_jax.records.record import Record, left_out
from bioptimus_jax.storage.files import read_json

ABOUT = 'export.json'
"""File of an exported model."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class CardFacts(Record):
    """What is known of a model by its card: its name on the hub, and licence and language as that card has them."""

    base_model: str | None = left_out()
    license: Any = left_out()
    language: Any = left_out()


@dataclasses.dataclass(frozen=True)
class MergedModel(Record):
    """One of the models that a mean is made of: its weight, checksums by file, and what its card says."""

    weight: float
    sha256: Mapping[str, str]
    card: CardFacts


@dataclasses.dataclass(frozen=True, kw_only=True)
class Export(Record):
    """export.json: where a model comes from, and what was measured when it was loaded back.

    `phase`: its phase or snapshot, or the name of a mean. `checkpoint`: digest of what it was made of. `setting`: of
    the phase. `beside`: ends of the names of models that were exported with it. `merged`: folder -> model of a mean.
    `gate`: what the gate measured, by name. `untouched`: tensors of the source beside the parameters.
    """

    phase: str
    checkpoint: str | None = left_out()
    setting: ConfigValues | None = left_out()
    beside: tuple[str, ...] | None = left_out()
    merged: Mapping[str, MergedModel] | None = left_out()
    gate: Mapping[str, float] = dataclasses.field(default_factory=dict)
    untouched: tuple[str, ...] | None = left_out()
    versions: Mapping[str, str] = dataclasses.field(default_factory=dict)


def read_export(folder: Path) -> Export | None:
    """The record of the model in a folder, None where it has none. Raises InputError."""
    said = read_json(folder / ABOUT)
    return None if said is None else Export.read(said, str(folder / ABOUT))
