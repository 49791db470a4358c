"""What follows the name of a config: `NAME:ARGUMENT`, or `NAME:ARGUMENT,OPTION=VALUE,...`."""

import dataclasses
import math
from collections.abc import Collection, Iterable
from typing import TYPE_CHECKING, TypeVar

from bioptimus_jax.config.fields import meant

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

Options = TypeVar('Options', bound='DataclassInstance')


def check_argument(argument: str, known: Collection[str]) -> None:
    """Raise ValueError unless the argument is one that the config takes; '' in `known` means that it needs none."""
    if argument not in known:
        names = ', '.join(filter(None, known))
        if not names:
            raise ValueError(f'takes no argument, got {argument!r}')
        raise ValueError(
            f'no argument {argument!r}; it takes {names}{" or none" * ("" in known)}{meant(argument, known)}'
        )


def read_options(given: Iterable[str], options: Options, names: Collection[str] = ()) -> Options:
    """A dataclass of options with those that are given as OPTION=VALUE; each is of its default's type.

    `names` are those that may be given, all by default. Raises ValueError for another option, for one that is given
    twice, for a number that is not above 0, and for an empty text.
    """
    defaults: dict[str, int | float | str] = {
        field.name: getattr(options, field.name) for field in dataclasses.fields(options)
    }
    known = names or defaults
    read = {}
    for option in given:
        name, _, value = option.partition('=')
        if name not in known:
            raise ValueError(f'no option {option!r}; there are {", ".join(known)}{meant(name, known)}')
        if name in read:
            raise ValueError(f'{name} is given twice; once is needed')
        read[name] = _read(option, value, type(defaults[name]))
    return dataclasses.replace(options, **read)


def _read(option: str, value: str, kind: type[int | float | str]) -> int | float | str:
    if kind is str:
        if not value:
            raise ValueError(f'{option}: a value is needed, as in {option.rstrip("=")}=VALUE')
        return value
    try:
        number = kind(value)
    except ValueError:
        number = 0
    assert not isinstance(number, str)
    if not 0 < number < math.inf:
        raise ValueError(f'{option}: a {"whole " * (kind is int)}number above 0 is needed')
    return number
