"""A large variation is a file of a package, and its name is the file's: listed without being imported."""

import importlib
import pkgutil
from types import ModuleType


def names_in(package: ModuleType) -> tuple[str, ...]:
    """The names of a package's files, sorted; none of them is imported."""
    return tuple(sorted(module.name for module in pkgutil.iter_modules(package.__path__)))


def load_from(package: ModuleType, name: str) -> ModuleType:
    """The file of that name, which must be one of `names_in`."""
    return importlib.import_module(f'{package.__name__}.{name}')
