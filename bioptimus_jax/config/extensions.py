"""Plug-ins from a user's own packages: which modules there are, and what each of them holds.

They come by entry points of the group `bioptimus_jax.plugins`, each of which names a module or a package, and by the
environment variable BIOPTIMUS_PLUGINS, which names modules, files or folders with commas between them. Both reach every
process that is started, so that workers and the arms of a sweep have the same plug-ins. A module is only read to see
what it assigns at its top; it is imported when something of it is used.
"""

import ast
import dataclasses
import functools
import importlib
import importlib.metadata
import importlib.util
import os
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import ModuleType

from bioptimus_jax.errors import ConfigError, reason_of

GROUP = 'bioptimus_jax.plugins'
VARIABLE = 'BIOPTIMUS_PLUGINS'


@dataclasses.dataclass(frozen=True)
class Extension:
    """A module of a user's own: its name, its file, the names that it assigns at its top, and who named it."""

    module: str
    file: Path
    holds: frozenset[str]
    named_by: str

    @property
    def name(self) -> str:
        """The value of the configuration that the module's object has."""
        return self.module.rpartition('.')[2]

    def __str__(self) -> str:
        return f'plug-in {self.module} ({self.file})'

    def load(self) -> ModuleType:
        """The module, imported. Raises ConfigError, in one line, where that fails in whatever way."""
        try:
            return importlib.import_module(self.module)
        except Exception as error:
            if isinstance(error, ConfigError):
                raise
            raise ConfigError(
                f'{self}: cannot be imported ({type(error).__name__}: {reason_of(error)}); correct it, or remove it '
                f'from {self.named_by}'
            ) from error

    def object(self, name: str) -> object:
        """What the module holds under a name. Raises ConfigError."""
        module = self.load()
        if not hasattr(module, name):
            raise ConfigError(
                f'{self}: {name} is asked for while the module is being imported; read settings and tables of '
                'bioptimus_jax in functions, not at the top of the module'
            )
        return getattr(module, name)


def not_there(name: object, known: Iterable[str]) -> str:
    """What to say of a variation that neither the program nor a plug-in has."""
    return str(NotInstalled('', name, ', '.join(known)))


class NotInstalled(ConfigError):
    """A variation that neither the program nor a plug-in has: what names it, the name, and what there is instead."""

    def __init__(self, where: str, name: object, known: str = ''):
        super().__init__(
            f'{where}plug-in {name!r} is not installed; install the package that brings it, or name its module, file '
            f'or folder in {VARIABLE}{known and f"; there are {known}"}'
        )


def extensions() -> tuple[Extension, ...]:
    """Every module of every plug-in, by its name. Raises ConfigError for one that is not there or cannot be read."""
    return _extensions(os.environ.get(VARIABLE, ''))


def holding(name: str) -> list[Extension]:
    """The modules that assign a name at their top."""
    return [extension for extension in extensions() if name in extension.holds]


@functools.cache
def _extensions(variable: str) -> tuple[Extension, ...]:
    found: dict[Path, Extension] = {}
    for point in importlib.metadata.entry_points(group=GROUP):
        by = f'the entry points of {point.dist.name if point.dist else "an installed package"}'
        for extension in _of_module(point.module, by):
            found.setdefault(extension.file, extension)
    importlib.invalidate_caches()  # a folder may be younger than the process
    for entry in filter(None, map(str.strip, variable.split(','))):
        place = Path(entry).expanduser()
        is_path = os.sep in entry or entry.endswith('.py') or place.is_dir()
        for extension in _of_path(place) if is_path else _of_module(entry, VARIABLE):
            found.setdefault(extension.file, extension)
    return tuple(sorted(found.values(), key=lambda extension: extension.module))


def _of_module(name: str, named_by: str) -> Iterator[Extension]:
    """A module, and all that are in it where it is a package."""
    try:
        spec = importlib.util.find_spec(name)
    except Exception as error:  # the package around it is imported, and may fail in any way
        raise ConfigError(
            f'plug-in {name}: cannot be found ({type(error).__name__}: {reason_of(error)}); correct it, or remove it '
            f'from {named_by}'
        ) from error
    if spec is None or not (spec.has_location or spec.submodule_search_locations):
        raise NotInstalled(f'{named_by}: ', name)
    files = [Path(spec.origin)] if spec.origin and spec.has_location else []
    inside = [path for folder in spec.submodule_search_locations or () for path in _files_in(Path(folder))]
    base = name.split('.')
    for file in files:
        yield _read(name, file, named_by)
    for folder in spec.submodule_search_locations or ():
        for file in inside:
            if file.is_relative_to(folder) and file not in files:
                yield _read('.'.join([*base, *_dotted(file.relative_to(folder))]), file, named_by)


def _of_path(place: Path) -> Iterator[Extension]:
    """A file, or all files of a folder, under the names that they are imported by once their folder is searched."""
    place = place.resolve()
    if not place.exists() or (place.is_file() and place.suffix != '.py'):
        raise ConfigError(
            f'{VARIABLE}: {place}: no such file or folder of Python; correct it, or leave it out'
        )
    for file in _files_in(place) if place.is_dir() else [place]:
        root = file.parent
        while (root / '__init__.py').is_file():
            root = root.parent
        if str(root) not in sys.path:
            sys.path.append(str(root))  # at the end, so that nothing that is installed is hidden
        name = '.'.join(_dotted(file.relative_to(root)))
        spec = importlib.util.find_spec(name)
        if spec is None or spec.origin is None or Path(spec.origin).resolve() != file:
            other = spec.origin if spec else 'nothing'
            raise ConfigError(f'plug-in {file}: its name {name!r} means {other}; rename the file')
        yield _read(name, file, VARIABLE)


def _files_in(folder: Path) -> list[Path]:
    """The modules of a package or of a plain folder; subfolders count where they are packages."""
    found = sorted(folder.glob('*.py'))
    packages = sorted(path.parent for path in folder.glob('*/__init__.py'))
    return [*found, *(file for package in packages for file in _files_in(package))]


def _dotted(file: Path) -> tuple[str, ...]:
    """The parts of a module's name, of its file within the folder that is searched."""
    parts = file.with_suffix('').parts
    return parts[:-1] if parts[-1] == '__init__' else parts


def _read(name: str, file: Path, named_by: str) -> Extension:
    try:
        tree = ast.parse(file.read_text('utf-8'))
    except (SyntaxError, ValueError, OSError) as error:
        raise ConfigError(
            f'plug-in {name} ({file}): cannot be read as Python ({reason_of(error)}); correct it, or remove it from '
            f'{named_by}'
        ) from error
    return Extension(name, file, frozenset(_assigned(tree.body)), named_by)


def _assigned(body: Iterable[ast.stmt]) -> Iterator[str]:
    for node in body:
        match node:
            case ast.Assign(targets=targets):
                yield from (target.id for target in targets if isinstance(target, ast.Name))
            case ast.AnnAssign(target=ast.Name(id=name), value=ast.expr()):
                yield name
            case ast.ClassDef(name=name):
                yield name
