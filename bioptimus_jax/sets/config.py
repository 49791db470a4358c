"""What of a configuration says which sets are read, and how."""

import dataclasses
from collections.abc import Mapping
from typing import Any, ClassVar, Protocol, Self

from bioptimus_jax.records.manifests import ConfigValues

ENTITIES = 'entities'
"""The task of sets of mentions, which a set has unless its record or the configuration names another."""


class ChoosesSets(Protocol):
    """The section `finetune`, as far as it is about sets."""

    __dataclass_fields__: ClassVar[dict[str, dataclasses.Field[Any]]]

    @property
    def folder(self) -> str: ...

    @property
    def datasets(self) -> tuple[str, ...]: ...

    @property
    def task(self) -> str: ...

    @property
    def word_column(self) -> str: ...

    @property
    def tag_column(self) -> str: ...

    @property
    def of_set(self) -> Mapping[str, ConfigValues]: ...

    def on(self, dataset: str) -> Self:
        """The section as it is for a set."""
        ...
