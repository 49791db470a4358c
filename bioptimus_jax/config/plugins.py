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
    name at all, an empty one, is allowed too; `more`: a package that may be absent, whose modules are there too, in
    the place of those of the same name.
    """

    def __init__(self, package: str, holds: str, optional: bool = False, more: str = ''):
        self.package, self.holds, self.optional, self.more = package, holds, optional, more

    def __iter__(self) -> Iterator[str]:
        return iter(sorted(self._packages()))

    def __contains__(self, name: object) -> bool:
        return any(name == known for known in self) or (self.optional and name == '')

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def load(self, name: str) -> Any:
        """The object that the module of that name holds; imports it now."""
        return getattr(importlib.import_module(self._module(name)), self.holds)

    def file(self, name: str) -> Path:
        """The file of that name, which is not imported for it."""
        found = importlib.util.find_spec(self._module(name))
        return Path(cast(str, cast(ModuleSpec, found).origin))

    def settings(self, name: str) -> type:
        """The record of settings that the object of that name declares as its own, `Settings`."""
        return cast(type, self.load(name).Settings)

    def _module(self, name: str) -> str:
        package = self._packages().get(name, self.package) if self.more else self.package
        return f'{package}.{name}'

    def _packages(self) -> dict[str, str]:
        """Name of a module -> the package that has it."""
        present = [self.package, *([self.more] if _is_there(self.more) else [])]
        return {
            module.name: package
            for package in present
            for module in pkgutil.iter_modules(importlib.import_module(package).__path__)
        }


def _is_there(package: str) -> bool:
    """Whether a package inside another one exists, which may be absent too."""
    within = package.rpartition('.')[0]
    there = bool(within) and importlib.util.find_spec(within) is not None
    return there and importlib.util.find_spec(package) is not None
