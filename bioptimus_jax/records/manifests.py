"""manifest.json of a finished stage, and the claim of one that was begun (.started.json)."""

import dataclasses
from collections.abc import Mapping
from typing import Any, TypeAlias

from bioptimus_jax.records.record import Record, left_out, others
from bioptimus_jax.storage.files import JsonObject

ConfigValues: TypeAlias = Mapping[str, Any]
"""Keys of a configuration, or of a section, and their values as JSON has them; plug-ins add keys of their own."""


@dataclasses.dataclass(frozen=True)
class FileEntry(Record):
    """A file that a stage wrote: its size and its SHA-256."""

    bytes: int
    sha256: str


@dataclasses.dataclass(frozen=True)
class ComputedOn(Record):
    """The device that a stage computed on; `how`: the mesh, the attention, the type, the threads, by name."""

    on: str
    how: Mapping[str, str | int] = others()

    def __str__(self) -> str:
        return ', '.join([self.on, *(f'{name} {value}' for name, value in self.how.items())])


@dataclasses.dataclass(frozen=True, kw_only=True)
class Claim(Record):
    """What decides the result of a stage, written when it begins.

    `config`: key -> value, of all result keys that the stage reads. `inputs`: name -> SHA-256, of files outside the
    run, or the content of an earlier stage. `cells`: of stage finetune, the fine-tunings that were asked for, by
    folder, each with the digest of what decides it. `origins`: as of a manifest. `seconds`: that attempts have taken so
    far, until the last of them saved.
    """

    config: ConfigValues
    inputs: Mapping[str, str | None] = dataclasses.field(default_factory=dict)
    cells: Mapping[str, str] | None = left_out()
    origins: Mapping[str, tuple[str, ...]] | None = left_out()
    seconds: float | None = left_out()

    @property
    def settings(self) -> ConfigValues:
        """`config`, as of a manifest."""
        return self.config


@dataclasses.dataclass(frozen=True, kw_only=True)
class Manifest(Record):
    """What a finished stage was made of and has made. `config`, `inputs`: see `Claim`.

    `content`: digest of the result, an input of later stages. `counts`: what the stage counted, by name. `files`: by
    path within the folder. `metrics`: digest of its lines in metrics.jsonl. `versions`: of installed packages.
    `origins`: key -> addresses, at a commit, that files were fetched from. `seconds`: it took, over all attempts.
    `folder`: in which other run its files lie. The record of a run has only some of these.
    """

    stage: str | None = left_out()
    config: ConfigValues | None = left_out()
    inputs: Mapping[str, str | None] = dataclasses.field(default_factory=dict)
    content: str | None = left_out()
    counts: JsonObject = dataclasses.field(default_factory=dict)
    files: Mapping[str, FileEntry] = dataclasses.field(default_factory=dict)
    metrics: str | None = left_out()
    versions: Mapping[str, str] | None = left_out()
    computed: ComputedOn | None = left_out()
    origins: Mapping[str, tuple[str, ...]] | None = left_out()
    seconds: float | None = left_out()
    folder: str | None = left_out()

    @property
    def settings(self) -> ConfigValues:
        """`config`, empty where there is none."""
        return self.config or {}


Begun = Manifest | Claim
"""What is known of a stage that has begun."""
