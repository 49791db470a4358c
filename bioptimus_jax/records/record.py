"""The one way from the JSON of a file to a frozen record, with every key checked, and back.

A field is a key of the JSON object, of the same name unless it is made with `named`, and the order of the fields is the
order of the keys in the file. The type of a field says what its value may be. How a key may be absent is said by what
the field is made with: nothing (it must be there), a default or `or_null` (it may be missing in a file and is always
written), `left_out` (it is not written where it is None), `others` (this field has all keys that no other field has).
"""

import collections.abc
import dataclasses
import functools
import types
import typing
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, ClassVar, Self

from bioptimus_jax.errors import InputError
from bioptimus_jax.storage.files import JsonObject, numbered_jsonl

REMEDY = 'rerun the stage that made it'
VERSION = 'version'
"""The key of a record of another version than the first."""
Check = Callable[[Any], Any]
"""JSON -> the value of a field. Raises _Wrong."""
SCALARS: Mapping[Any, tuple[Any, str]] = {
    bool: (bool, 'true or false'),
    int: (int, 'a whole number'),
    float: (int | float, 'a number'),
    str: (str, 'a text'),
}


class _Wrong(Exception):
    """What is wrong with a value, without where it stands."""


def left_out() -> Any:
    """A field that is not written where it is None, and is None where it is missing."""
    return dataclasses.field(default=None, metadata={'left_out': True})


def or_null() -> Any:
    """A field that is written as null where it is None, and is None where it is missing."""
    return dataclasses.field(default=None)


def named(key: str) -> Any:
    """A field, which must be there, whose key is another than its name."""
    return dataclasses.field(metadata={'key': key})


def others() -> Any:
    """The field that has all keys that no other field has, at its place among them."""
    return dataclasses.field(default_factory=dict, metadata={'others': True})


@dataclasses.dataclass(frozen=True)
class Record:
    """A JSON object with known keys. A subclass is a frozen dataclass; see the top of this file for its fields.

    `VERSION` rises when a key changes its meaning, or goes; a file of another version is refused. The first version is
    not written.
    """

    VERSION: ClassVar[int] = 1
    FIRST: ClassVar[tuple[str, ...]] = ()
    """Keys that are written before those of the class that a record extends."""

    @classmethod
    def read(cls, value: Any, where: str, remedy: str = REMEDY) -> Self:
        """The record of a JSON object; `where`: its file, and its line or entry there.

        Raises InputError, which names `where`, the key and the `remedy`, for another value, a key that is missing or
        has a value of another type, and another version. Unknown keys are passed over.
        """
        return _read(cls._checked, value, where, remedy)

    @classmethod
    def read_all(cls, values: Any, where: str, remedy: str = REMEDY) -> list[Self]:
        """The records of a JSON list. Raises InputError as `read` does, with the number of the entry."""
        return list(_read(_check(tuple[cls, ...]), values, where, remedy))  # type: ignore[valid-type]

    @classmethod
    def read_by_name(cls, values: Any, where: str, remedy: str = REMEDY) -> dict[str, Self]:
        """The records of a JSON object by their names. Raises InputError as `read` does."""
        return dict(_read(_check(Mapping[str, cls]), values, where, remedy))  # type: ignore[valid-type]

    @classmethod
    def read_lines(cls, path: Path, remedy: str = REMEDY) -> list[Self]:
        """The records of a file of JSON lines. Raises InputError with the number of the line, FileNotFoundError."""
        return [
            cls.read(line, f'{path}, line {number}', remedy) for number, line in numbered_jsonl(path, remedy)
        ]

    @classmethod
    def _checked(cls, value: Any) -> Self:
        if not isinstance(value, dict):
            raise _Wrong('no record')
        plan: _Plan = _plan(cls)
        known: dict[str, Any] = {}
        if VERSION not in plan.keys.values() and (version := value.get(VERSION, 1)) != cls.VERSION:
            raise _Wrong(f'of version {version}, and this program reads version {cls.VERSION}')
        for name, check in plan.checks.items():
            key = plan.keys[name]
            if key in value:
                known[name] = _at(key, check, value[key])
            elif name in plan.needed:
                raise _Wrong(f'without the key {key!r}')
        if plan.others:
            known[plan.others] = {key: x for key, x in value.items() if key not in plan.keys.values()}
        return cls(**known)

    def json(self) -> JsonObject:
        """The JSON object, with the keys in the order in which they are written."""
        plan = _plan(type(self))
        found: JsonObject = {VERSION: self.VERSION} if self.VERSION > 1 else {}
        for name in plan.order:
            value = getattr(self, name)
            if name == plan.others:
                found |= value
            elif not (value is None and name in plan.left_out):
                found[plan.keys[name]] = plain(value)
        return found


def _read(check: Check, value: Any, where: str, remedy: str) -> Any:
    try:
        return check(value)
    except _Wrong as error:
        raise InputError(f'{where}: is damaged ({error}); {remedy}') from None


def plain(value: Any) -> Any:
    """A value of a field as JSON has it."""
    match value:
        case Record():
            return value.json()
        case tuple() | list():
            return [plain(x) for x in value]
        case Mapping():
            return {name: plain(x) for name, x in value.items()}
    return value


@dataclasses.dataclass(frozen=True)
class _Plan:
    """How a kind of record is read and written: worked out once, as files have many lines."""

    order: tuple[str, ...]
    keys: Mapping[str, str]
    checks: Mapping[str, Check]
    needed: frozenset[str]
    left_out: frozenset[str]
    others: str


_PLANS: dict[type, _Plan] = {}


def _plan(kind: type[Record]) -> _Plan:
    if kind not in _PLANS:
        _PLANS[kind] = _planned(kind)
    return _PLANS[kind]


def _planned(kind: type[Record]) -> _Plan:
    fields, hints = dataclasses.fields(kind), typing.get_type_hints(kind)
    rest = next((f.name for f in fields if 'others' in f.metadata), '')
    missing = dataclasses.MISSING
    return _Plan(
        tuple(dict.fromkeys((*kind.FIRST, *(f.name for f in fields)))),
        {f.name: f.metadata.get('key', f.name) for f in fields if f.name != rest},
        {f.name: _check(hints[f.name]) for f in fields if f.name != rest},
        frozenset(f.name for f in fields if f.default is missing and f.default_factory is missing),
        frozenset(f.name for f in fields if 'left_out' in f.metadata),
        rest,
    )


def _check(hint: Any) -> Check:
    """How a value of this type is read. Raises TypeError for a type that no JSON has."""
    origin, of = typing.get_origin(hint), typing.get_args(hint)
    if hint is Any:
        return lambda value: value
    if hint in SCALARS:
        return functools.partial(_scalar, *SCALARS[hint])
    if isinstance(hint, type) and issubclass(hint, Record):
        return hint._checked
    if origin is types.UnionType:
        [one] = [x for x in of if x is not types.NoneType]
        inner = _check(one)
        return lambda value: None if value is None else inner(value)
    if origin is tuple and ... not in of:
        checks = [_check(x) for x in of]
        return lambda value: tuple(
            _at(f'entry {n}', checks[n - 1], x) for n, x in enumerate(_several(value, len(checks)), 1)
        )
    if origin is tuple and of[1:] == (...,):
        inner = _check(of[0])
        return lambda value: tuple(
            _at(f'entry {n}', inner, x) for n, x in enumerate(_kind(value, list, 'a list'), 1)
        )
    if origin in (collections.abc.Mapping, dict) and of[0] is str:
        inner = _check(of[1])
        return lambda value: {n: _at(n, inner, x) for n, x in _kind(value, dict, 'an object').items()}
    raise TypeError(f'a record has no field of type {hint}')


def _scalar(kind: Any, said: str, value: Any) -> Any:
    # To Python true is a whole number.
    if isinstance(value, bool) and kind is not bool:
        raise _Wrong(f'not {said}')
    return _kind(value, kind, said)


def _kind(value: Any, kind: Any, said: str) -> Any:
    if not isinstance(value, kind):
        raise _Wrong(f'not {said}')
    return value


def _several(value: Any, number: int) -> list[Any]:
    found = _kind(value, list, 'a list')
    if len(found) != number:
        raise _Wrong(f'not {number} entries')
    return found


def _at(name: str, check: Check, value: Any) -> Any:
    try:
        return check(value)
    except _Wrong as error:
        raise _Wrong(f'{name}: {error}') from None
