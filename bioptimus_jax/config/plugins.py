"""Variations: values of the configuration that name a file or a record, the program's own or a plug-in's.

A file variation is a module that holds one object; its name is the value. A record is an entry of a table. A module of
a user's own (see `extensions`) brings the first by assigning the object, as `OBJECTIVE`, and the second by assigning a
dictionary under the name of the table, as `MASKINGS`.
"""

import abc
import dataclasses
import functools
import importlib
import importlib.util
import os
import pkgutil
from collections.abc import Callable, Collection, Iterator, Mapping, MutableMapping
from importlib.machinery import ModuleSpec
from pathlib import Path
from typing import Any, Protocol, TypeVar, cast

from bioptimus_jax.config.extensions import VARIABLE, Extension, NotInstalled, holding
from bioptimus_jax.errors import ConfigError

Record = TypeVar('Record')


@dataclasses.dataclass(frozen=True)
class NoSettings:
    """What a variation without settings of its own declares."""


class Variations(Collection[str]):
    """Names that plug-ins may add to."""

    @property
    @abc.abstractmethod
    def added(self) -> Mapping[str, Extension]:
        """The names that plug-ins bring. Raises ConfigError where two bring one name."""


class Plugins(Variations):
    """The names of the modules in a package and of plug-ins, listed each time without importing any of them.

    `package`: its full name; `holds`: what each module calls the object that it is there for; `optional`: whether no
    name at all, an empty one, is allowed too; `closed`: whether plug-ins cannot add to it; `more`:
    a package that may be absent, whose modules are there too, in the place of those of the same name.
    """

    def __init__(
        self, package: str, holds: str, optional: bool = False, closed: bool = False, more: str = ''
    ):
        self.package, self.holds, self.optional = package, holds, optional
        self.closed, self.more = closed, more

    @property
    def own(self) -> list[str]:
        """The names of the program's own modules."""
        return list(self._packages())

    @property
    def added(self) -> Mapping[str, Extension]:
        """The names that plug-ins bring. Raises ConfigError where two bring one name."""
        return self._listed()[1]

    def __iter__(self) -> Iterator[str]:
        own, added = self._listed()
        return iter(sorted([*own, *added]))

    def __contains__(self, name: object) -> bool:
        return any(name == known for known in self) or (self.optional and name == '')

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def load(self, name: str) -> Any:
        """The object that the module of that name holds; imports it now. Raises ConfigError."""
        own, added = self._listed()
        if extension := added.get(name):
            return extension.object(self.holds)
        if name not in own:
            raise NotInstalled('', name, ', '.join(self))
        return getattr(importlib.import_module(f'{own[name]}.{name}'), self.holds)

    def file(self, name: str) -> Path:
        """The file of that name, which is not imported for it."""
        own, added = self._listed()
        if extension := added.get(name):
            return extension.file
        found = importlib.util.find_spec(f'{own.get(name, self.package)}.{name}')
        return Path(cast(str, cast(ModuleSpec, found).origin))

    def settings(self, name: str) -> type:
        """The record of settings that the object of that name declares as its own, `Settings`."""
        return cast(type, self.load(name).Settings)

    def _listed(self) -> tuple[dict[str, str], Mapping[str, Extension]]:
        """The program's own names with their packages, and those of plug-ins: folders are read once for both."""
        own = self._packages()
        pairs = [] if self.closed else [(each.name, each) for each in holding(self.holds)]
        return own, _each_once(pairs, own, self.package)

    def _packages(self) -> dict[str, str]:
        """Name of a module -> the package that has it."""
        present = [self.package, *([self.more] if _is_there(self.more) else [])]
        return {
            name: package
            for package in present
            for folder in importlib.import_module(package).__path__
            for name in _modules_in(folder, os.stat(folder).st_mtime_ns)
        }


class Table(Variations, MutableMapping[str, Record]):
    """The program's own records by name, then those of plug-ins, whose modules are imported when a name is asked for.

    `name`: what plug-ins call the dictionary that they add. Modules of the program must not look into a table while
    they are imported, since a plug-in may import any of them; `tests/test_plugins.py` sees to it.
    """

    def __init__(self, name: str, own: Mapping[str, Record]):
        self.name, self.own = name, dict(own)
        self._read: tuple[str, dict[str, tuple[Extension, Record]]] | None = None

    @property
    def _of_plug_ins(self) -> dict[str, tuple[Extension, Record]]:
        variable = os.environ.get(VARIABLE, '')
        if self._read is None or self._read[0] != variable:
            found = [(name, (by, record)) for by, name, record in _records(self.name, self.own)]
            _each_once([(name, by) for name, (by, _) in found], self.own, f'the table {self.name}')
            self._read = variable, dict(sorted(found, key=lambda pair: pair[0]))
        return self._read[1]

    @property
    def added(self) -> Mapping[str, Extension]:
        """The names that plug-ins bring. Raises ConfigError where two bring one name."""
        return {name: extension for name, (extension, _) in self._of_plug_ins.items()}

    def __getitem__(self, name: str) -> Record:
        added = self._of_plug_ins
        return added[name][1] if name in added else self.own[name]

    def __setitem__(self, name: str, record: Record) -> None:
        self.own[name] = record

    def __delitem__(self, name: str) -> None:
        del self.own[name]

    def __iter__(self) -> Iterator[str]:
        return iter([*self.own, *self._of_plug_ins])

    def __len__(self) -> int:
        return len(self.own) + len(self._of_plug_ins)

    def those(self, condition: Callable[[Record], object]) -> Collection[str]:
        """The names of the records that fulfil a condition, looked up each time."""
        return Those(self, condition)


class Those(Collection[str]):
    """The names of some records of a table."""

    def __init__(self, table: Table[Any], condition: Callable[[Any], object]):
        self.table, self.condition = table, condition

    def __iter__(self) -> Iterator[str]:
        return (name for name, record in self.table.items() if self.condition(record))

    def __contains__(self, name: object) -> bool:
        return any(name == one for one in self)

    def __len__(self) -> int:
        return sum(1 for _ in self)


class Names(Variations):
    """Names of a table that lies in a room above: the program's own, and what plug-ins add to the table."""

    def __init__(self, table: str, *own: str):
        self.table, self.own = table, own

    @property
    def added(self) -> Mapping[str, Extension]:
        """The names that plug-ins bring. Raises ConfigError where two bring one name."""
        pairs = [(name, by) for by, name, _ in _records(self.table, {})]
        return _each_once(pairs, self.own, f'the table {self.table}')

    def __iter__(self) -> Iterator[str]:
        return iter([*self.own, *sorted(self.added)])

    def __contains__(self, name: object) -> bool:
        return name in self.own or name in self.added

    def __len__(self) -> int:
        return len(self.own) + len(self.added)


class HasMeaning(Protocol):
    """A record with a sentence for `--help`."""

    @property
    def meaning(self) -> str: ...


def meanings(records: Mapping[str, HasMeaning]) -> str:
    """What the records of a table mean, by their names."""
    return '; '.join(f'{name}: {one.meaning}' for name, one in records.items())


class LazyText:
    """Text that is made when it is shown, so that it can name what plug-ins add."""

    def __init__(self, make: Callable[[], str]):
        self.make = make

    def __str__(self) -> str:
        return self.make()


def _records(table: str, own: Mapping[str, object]) -> Iterator[tuple[Extension, str, Any]]:
    """The records that plug-ins add to a table. Raises ConfigError for what is not of the kind of its own ones."""
    kind = next((type(record) for record in own.values() if dataclasses.is_dataclass(record)), object)
    for extension in holding(table):
        records = extension.object(table)
        if not isinstance(records, Mapping):
            raise ConfigError(
                f'{extension}: {table} is a {type(records).__name__}; it has to be a dictionary of records by name'
            )
        for name, record in records.items():
            if not isinstance(name, str) or not isinstance(record, kind):
                raise ConfigError(
                    f'{extension}: {table}[{name!r}] is a {type(record).__name__}; it has to be a {kind.__name__}'
                )
            yield extension, name, record


def _each_once(
    pairs: Collection[tuple[str, Extension]], own: Collection[str], where: str
) -> Mapping[str, Extension]:
    """Name -> the plug-in that brings it. Raises ConfigError where another one brings it too, or the program has it."""
    found: dict[str, Extension] = {}
    for name, extension in pairs:
        if name in own or name in found:
            other = str(found[name]) if name in found else f'bioptimus_jax itself, in {where}'
            raise ConfigError(
                f'{extension}: {name!r} is also the name of {other}; rename one of them, or remove one from '
                f'{extension.named_by}'
            )
        found[name] = extension
    return found


@functools.cache
def _modules_in(folder: str, changed: int) -> tuple[str, ...]:
    """The names of the modules in a folder as it was changed last: a configuration asks for them a hundred times."""
    return tuple(module.name for module in pkgutil.iter_modules([folder]))


def _is_there(package: str) -> bool:
    """Whether a package inside another one exists, which may be absent too."""
    within = package.rpartition('.')[0]
    there = bool(within) and importlib.util.find_spec(within) is not None
    return there and importlib.util.find_spec(package) is not None
