"""Variations that are files: a module's name is a value of the configuration, and it holds one object."""

import dataclasses
import importlib
import importlib.util
import pkgutil
from collections.abc import Collection, Iterator
from importlib.machinery import ModuleSpec
from pathlib import Path
from typing import Any, cast


@dataclasses.dataclass(frozen=True)
class NoSettings:
    """What a variation without settings of its own declares."""


class Plugins(Collection[str]):
    """The names of the modules in a package, listed each time without importing any of them.

    `package`: its full name; `holds`: what each module calls the object that it is there for; `optional`: whether no
    name at all, an empty one, is allowed too.
    """

    def __init__(self, package: str, holds: str, optional: bool = False):
        self.package, self.holds, self.optional = package, holds, optional

    def __iter__(self) -> Iterator[str]:
        path = importlib.import_module(self.package).__path__
        return iter(sorted(module.name for module in pkgutil.iter_modules(path)))

    def __contains__(self, name: object) -> bool:
        return any(name == known for known in self) or (self.optional and name == '')

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def load(self, name: str) -> Any:
        """The object that the module of that name holds; imports it now."""
        return getattr(importlib.import_module(f'{self.package}.{name}'), self.holds)

    def file(self, name: str) -> Path:
        """The file of that name, which is not imported for it."""
        found = importlib.util.find_spec(f'{self.package}.{name}')
        return Path(cast(str, cast(ModuleSpec, found).origin))

    def settings(self, name: str) -> type:
        """The record of settings that the object of that name declares as its own, `Settings`."""
        return cast(type, self.load(name).Settings)
