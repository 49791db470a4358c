"""Fields of a configuration: what a key is, and how frozen records come from what a config file gives.

A record is a frozen dataclass. Each field is a key, a section (another record), or a section whose names the user
chooses: each entry a record, or some keys of one.
"""

import dataclasses
import difflib
import functools
import re
import types
import typing
from collections.abc import Callable, Collection, Container, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from ml_collections import ConfigDict

from bioptimus_jax.config.extensions import NotInstalled
from bioptimus_jax.config.plugins import LazyText, Table, Variations
from bioptimus_jax.errors import ConfigError

MOST = 10**15  # of whatever has no bound of its own: above all words ever written, and exact in a float
EVERY_BOUND = (('low', -MOST), ('high', MOST))
LONGEST_NAME = 100  # bytes: a file system takes 255, and names are put together
NAME = re.compile(r'[\w+][\w.+-]*')
ENDINGS = ('.json', '.jsonl', '.md', '.svg', '.tmp')  # of our own files, next to which named folders are
ELSEWHERE = types.MappingProxyType(
    {
        **dict.fromkeys(('ner', 'token-classification', 'token_classification', 'tagging'), ('entities',)),
        **dict.fromkeys(('classification', 'text-classification', 'text_classification', 're'), ('classes',)),
        **dict.fromkeys(('relations', 'qa', 'multilabel', 'sentiment', 'nli'), ('classes',)),
        **dict.fromkeys(('sts', 'regression', 'sentence-similarity'), ('similarity',)),
        **dict.fromkeys(('--output', '--output_dir', '--output-dir', '--outdir'), ('--workdir', '--to')),
        **dict.fromkeys(('--out', '--dir', '--run', '--run_dir', '--logdir'), ('--workdir', '--to')),
        **dict.fromkeys(('--data', '--dataset', '--datasets', '--folder'), ('--sets', '--texts')),
        **dict.fromkeys(('--overwrite', '--force', '--overwrite_output_dir', '--restart'), ('--replace',)),
        **dict.fromkeys(('--dryrun', '--dry_run', '--plan'), ('--dry-run',)),
        **dict.fromkeys(('--gpus', '--num_gpus', '--gpu'), ('--devices',)),
        '--cfg': ('--config',),
        '--format': ('--as',),
    }
)
"""What other programs call a flag or a value, and our names, of which those count that there are in a place."""


class _NotEmpty(Container):
    """Every value that is not empty."""

    def __contains__(self, value: object) -> bool:
        return bool(value)


NOT_EMPTY = _NotEmpty()


def key(
    default: Any,
    doc: str | LazyText,
    *,
    one_of: Collection = (),
    low: float | None = None,
    high: float | None = None,
    path: bool = False,
    active_if: tuple[str, Container] | None = None,
    common: bool = False,
) -> Any:
    """A key: its default, what it means, the values allowed, and whether it holds a path.

    `active_if`: another key, and with which of its values this one decides a result. `common`: whether many users set
    it, so that `--help` shows it.
    """
    metadata = dict(doc=doc, one_of=one_of, low=low, high=high, path=path, active_if=active_if, common=common)
    return dataclasses.field(default=default, metadata=metadata)


common_key = functools.partial(key, common=True)
"""A key that many users set."""


def section(record: type) -> Any:
    """A section, with the defaults of its record."""
    return dataclasses.field(default_factory=record)


def named(
    record: Callable[[str], type],
    entries: Mapping[str, object],
    doc: str = '',
    without: Collection[str] | None = None,
    names: Collection[str] | None = None,
) -> Any:
    """A section whose names the user chooses: each entry a `record`, or if `without`, any of its other keys.

    `names`: those that there may be, if not any; what is not given has its defaults.
    """
    metadata = {'doc': doc, 'record': record, 'without': without, 'names': names}
    # What is compared still; a dictionary has no hash.
    return dataclasses.field(default_factory=lambda: dict(entries), metadata=metadata, hash=False)


def default_of(record: type, dotted: str) -> Any:
    """The default of a key, by its dotted name, as a manifest has it; None for what is not a key."""
    found = field_of(record, dotted)
    if found is None:
        return None
    factory = found[0].default_factory
    default = found[0].default if factory is dataclasses.MISSING else factory()
    return list(default) if isinstance(default, tuple) else default


def field_of(record: type, dotted: str) -> tuple[dataclasses.Field, Any] | None:
    """The field of a key by its dotted name, and its type; None for what is not a key, or a section."""
    name, _, rest = dotted.partition('.')
    field, kind = _fields(record).get(name, (None, None))
    if field is None:
        return None
    if entry := field.metadata.get('record'):  # names that the user chooses may have dots, keys have none
        chosen, _, last = rest.rpartition('.')
        if not rest:
            return field, kind
        return field_of(entry(chosen), last) if _may_be(field.metadata, chosen) else None
    if dataclasses.is_dataclass(kind):
        return field_of(typing.cast(type, kind), rest)
    return None if rest else (field, kind)


def allowed(metadata: Mapping) -> str:
    """The values that a key may have, as its help says them; '' where nothing is said."""
    low, high = metadata.get('low'), metadata.get('high')
    if values := metadata.get('one_of'):
        return f'one of: {", ".join(map(str, values))}'
    if low is not None and high is not None:
        return f'from {low:,} to {high:,}'
    return f'at least {low:,}' if low is not None else f'at most {high:,}' if high is not None else ''


class NamedKey(NamedTuple):
    """A key of a record: its dotted name, its value, and what `key` says of it."""

    name: str
    value: Any
    metadata: Mapping


def walk(record: Any, prefix: str = '') -> Iterator[NamedKey]:
    """Every key of a record; entries with some keys only are one value."""
    for field in dataclasses.fields(record):
        value = getattr(record, field.name)
        if dataclasses.is_dataclass(value):
            yield from walk(value, f'{prefix}{field.name}.')
        elif 'record' in field.metadata and field.metadata['without'] is None:
            for name, entry in value.items():
                yield from walk(entry, f'{prefix}{field.name}.{name}.')
        else:
            yield NamedKey(f'{prefix}{field.name}', value, field.metadata)


def walk_entries(record: Any, prefix: str = '') -> Iterator[NamedKey]:
    """The keys of the entries that the sections of records of a table may have, with their defaults."""
    for field in dataclasses.fields(record):
        value, names = getattr(record, field.name), field.metadata.get('names')
        if dataclasses.is_dataclass(value):
            yield from walk_entries(value, f'{prefix}{field.name}.')
        elif isinstance(names, Table):
            for name in names:
                yield from walk(field.metadata['record'](name)(), f'{prefix}{field.name}.{name}.')


def as_config(record: Any) -> ConfigDict:
    """The ConfigDict of a record, for config files and the command line to change."""
    # The schema checks types, and takes 1e6 for a whole number.
    config = ConfigDict(type_safe=False)
    for field in dataclasses.fields(record):
        value = getattr(record, field.name)
        if 'record' in field.metadata:
            whole = {n: as_config(e) if dataclasses.is_dataclass(e) else dict(e) for n, e in value.items()}
            config[field.name] = ConfigDict(whole, type_safe=False, allow_dotted_keys=True)
        else:
            config[field.name] = as_config(value) if dataclasses.is_dataclass(value) else value
    return config


def begin(config: ConfigDict, record: type, dotted: str) -> None:
    """Begin the entry that a key names, with its defaults, where there may be such an entry and is none yet."""
    name, _, rest = dotted.partition('.')
    chosen, (field, kind) = rest.partition('.')[0], _fields(record).get(name, (None, None))
    if dataclasses.is_dataclass(kind):
        begin(config[name], typing.cast(type, kind), rest)
    elif field and field.metadata.get('without') is not None:
        entry, _, last = rest.rpartition('.')
        found = field_of(field.metadata['record'](entry), last)
        if entry and found and last not in field.metadata['without']:
            keys = config[name].get(entry, ConfigDict(type_safe=False))
            keys[last] = keys.get(last, found[0].default)
            config[name][entry] = keys
    elif field and chosen in (field.metadata.get('names') or ()) and chosen not in config[name]:
        config[name][chosen] = as_config(field.metadata['record'](chosen)())


def put(config: ConfigDict, record: type, dotted: str, value: Any) -> None:
    """Set a key of the ConfigDict of a `record`, whatever its type; an entry that is not there begins as by default.

    What is not a key of the record is left out.
    """
    found = field_of(record, dotted)
    if found is None:
        return
    name, _, rest = dotted.partition('.')
    field, kind = _fields(record)[name]
    if not rest:
        if 'record' in field.metadata:
            value = ConfigDict(value, type_safe=False, allow_dotted_keys=True)
        config[name] = tuple(value) if isinstance(value, list) else value
    elif entry := field.metadata.get('record'):
        chosen, _, rest = rest.rpartition('.')
        if chosen not in config[name]:
            config[name][chosen] = as_config(entry(chosen)())
        put(config[name][chosen], entry(chosen), rest, value)
    else:
        put(config[name], typing.cast(type, kind), rest, value)


def require_installed(record: type, dotted: str, value: Any) -> None:
    """Raise NotInstalled where a value that was allowed when it was recorded names a plug-in that is not there now."""
    name, _, rest = dotted.partition('.')
    field, _ = _fields(record).get(name, (None, None))
    if field and (names := field.metadata.get('names')) is not None:
        chosen, known = rest.partition('.')[0], names
    else:
        found = field_of(record, dotted)
        chosen, known = value, found[0].metadata.get('one_of') if found else ()
    for one in chosen if isinstance(chosen, list | tuple) else (chosen,):
        if isinstance(known, Variations) and one and one not in known:
            raise NotInstalled(f'config.{dotted}: ', one)


def record_from(record: type, values: Any, where: str = '') -> Any:
    """The record of what a config file gives. Raises ConfigError, naming the key, for anything unknown or wrong."""
    _require_section(values, where.rstrip('.'))
    fields = _fields(record)
    _require_known(values, fields, f'config.{where}', 'no such key; known here:')
    filled = {}
    for name, (field, kind) in fields.items():
        if name not in values:
            raise ConfigError(
                f'config.{where}{name}: missing; begin your config with bioptimus_jax.experiment.config.defaults()'
            )
        value, full = values[name], f'{where}{name}'
        if 'record' in field.metadata:
            _require_section(value, full)
            for chosen in value:
                check_name(chosen, f'config.{full}')
                if (names := field.metadata['names']) is not None:
                    if isinstance(names, Variations) and chosen not in names and not meant(chosen, names):
                        raise NotInstalled(f'config.{full}.{chosen}: ', chosen)
                    _require_known([chosen], names, f'config.{full}.', 'no such entry; possible ones:')
            filled[name] = {n: _entry(field.metadata, n, value[n], f'{full}.{n}') for n in value}
        elif dataclasses.is_dataclass(kind):
            filled[name] = record_from(typing.cast(type, kind), value, f'{full}.')
        else:
            filled[name] = _checked(value, kind, field.metadata, full)
    return record(**filled)


def _entry(metadata: Mapping, name: str, values: Any, where: str) -> Any:
    record, without = metadata['record'](name), metadata['without']
    if without is None:
        return record_from(record, values, f'{where}.')
    _require_section(values, where)
    fields = {name: field for name, field in _fields(record).items() if name not in without}
    _require_known(values, fields, f'config.{where}.', 'no such key; an entry may have')
    return {
        n: _checked(values[n], fields[n][1], fields[n][0].metadata, f'{where}.{n}') for n in sorted(values)
    }


def _may_be(metadata: Mapping, name: str) -> bool:
    """Whether an entry of a section may have that name."""
    return metadata['names'] is None or name in metadata['names']


def _require_section(values: Any, where: str) -> None:
    if not isinstance(values, Mapping | ConfigDict):
        raise ConfigError(f'config.{where}: is a section, got {_shown(values)}')


def _require_known(names: Iterable[Any], known: Collection[str], where: str, said: str) -> None:
    for name in names:
        if name not in known:
            raise ConfigError(f'{where}{name}: {said} {", ".join(sorted(known))}{meant(name, known)}')


@functools.cache
def _fields(record: type) -> dict[str, tuple[dataclasses.Field, Any]]:
    """The fields of a record by name, each with its type."""
    kinds = typing.get_type_hints(record)
    return {field.name: (field, kinds[field.name]) for field in dataclasses.fields(record)}


def _checked(value: Any, expected: Any, metadata: Mapping, full: str) -> Any:
    """The value as its type. Raises ConfigError for another type, and for a value that is not allowed."""
    if typing.get_origin(expected) is tuple:
        if not isinstance(value, list | tuple):
            raise ConfigError(f'config.{full}: expected a tuple, got {_shown(value)}')
        kind = typing.get_args(expected)[0]
        return tuple(_checked(v, kind, metadata, f'{full}[{i}]') for i, v in enumerate(value))
    if expected is int and isinstance(value, float) and value.is_integer():  # 1e6
        value = int(value)
    # In Python True is an int: as a number it would pass for 1.
    whole = isinstance(value, int) and not isinstance(value, bool)
    if not (isinstance(value, expected) or (whole and expected is float)) or (
        isinstance(value, bool) and expected is not bool
    ):
        hint = '; write it as 1000000 or 1e6' if expected is int and isinstance(value, str | tuple) else ''
        raise ConfigError(f'config.{full}: expected {expected.__name__}, got {_shown(value)}{hint}')
    known = metadata['one_of']
    if value not in (known or (value,)):
        names, near = ', '.join(map(str, known)), meant(value, known)
        if isinstance(known, Variations) and not near:
            raise NotInstalled(f'config.{full}: ', value, names)
        raise ConfigError(f'config.{full}: {_shown(value)} is not one of {names}{near}')
    if isinstance(value, str):
        check_text(value, f'config.{full}')
        return value
    low, high = (bound if metadata[name] is None else metadata[name] for name, bound in EVERY_BOUND)
    if not low <= value <= high:  # so of NaN, too
        word, bound = ('at least', low) if value < low else ('at most', high)
        raise ConfigError(f'config.{full}: must be {word} {bound}, got {_shown(value)}')
    return expected(value)


def check_name(name: Any, where: str, also: str = '') -> None:
    """Raise ConfigError, which begins with `where`, for what no file or folder of a run may be called.

    One check for names of phases, settings, models, sets and arms; `also`: one more letter that is allowed.
    """
    plain = name.replace(also, '_') if also and isinstance(name, str) else name
    if not isinstance(plain, str) or not NAME.fullmatch(plain):
        raise ConfigError(
            f'{where}: {_shown(name)} is not a name; a name has only letters, digits and . _ + '
            f'-{also and " " + also}, and does not begin with . or -'
        )
    if len(name.encode()) > LONGEST_NAME or name.endswith(ENDINGS):
        raise ConfigError(
            f'{where}: {_shown(name)} is too long, or ends as our own files do; a name has at most '
            f'{LONGEST_NAME} bytes and none of the endings {", ".join(ENDINGS)}'
        )


def check_text(text: str, where: str) -> None:
    """Raise ConfigError, which begins with `where`, for what no file's name and no JSON can hold."""
    if '\0' in text or any('\ud800' <= letter <= '\udfff' for letter in text):
        raise ConfigError(f'{where}: {_shown(text)} is not UTF-8 text; rename what it names, or correct it')


SEVERAL = range(1, 4)
"""How many names are offered where several begin as what was given."""


def meant(name: Any, known: Iterable[Any]) -> str:
    """The end of a message about a name that is not known: the known one that is nearest, if any is."""
    names = [str(one) for one in known if one != '']
    if elsewhere := [one for one in ELSEWHERE.get(str(name).lower(), ()) if one in names]:
        return f'; did you mean {" or ".join(elsewhere)}?'
    # People remember the last part of a dotted key.
    same = [one for one in names if one.endswith(f'.{name}')]
    longer = [one for one in dict.fromkeys(names) if name and one.startswith(str(name))]
    if not same and len(longer) in SEVERAL:  # each of them is as likely as the other
        return f'; did you mean {" or ".join(longer)}?'
    near = sorted(same, key=len) or difflib.get_close_matches(str(name), names, 1)
    return f'; did you mean {near[0]}?' if near else ''


def _shown(value: Any) -> str:
    """A wrong value as a message shows it."""
    try:
        text = repr(value)
    except ValueError:  # more digits than Python writes
        text = f'{type(value).__name__} with very many digits'
    return text if len(text) <= 80 else f'{text[:76]} ...'
