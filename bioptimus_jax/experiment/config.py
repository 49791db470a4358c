"""One `ConfigDict` per experiment: defaults, config files, overrides from the command line.

What the keys are stands in `schema`; `schema.Experiment.from_config` turns a ConfigDict into frozen records.
"""

import ast
import dataclasses
import importlib.util
import os
import typing
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from ml_collections import ConfigDict

from bioptimus_jax.config.fields import (
    as_config,
    begin,
    check_name,
    field_of,
    meant,
    put,
    walk,
)
from bioptimus_jax.errors import ConfigError
from bioptimus_jax.experiment.schema import Experiment
from bioptimus_jax.pretrain.config import OBJECTIVES, Phase

CONFIG_FOLDERS = tuple(folder / 'configs' for folder in Path(__file__).parents[1:3][::-1])

MISSING = {
    'get_config': 'a config file is Python that defines it',
    'get_arms': 'it is not an ablation, use `bioptimus run`',
}


def defaults() -> ConfigDict:
    """Every key with its default, to be changed by a config file and the command line."""
    return as_config(Experiment())


def environment(name: str) -> str:
    """The value of an environment variable for a config's paths; unset, its name, which `from_config` refuses."""
    return os.environ.get(name) or f'${name}'


def objective(name: str, **changes: Any) -> ConfigDict:
    """An objective's own settings for `config.objective[name]`, with every key that it has."""
    return as_config(OBJECTIVES.settings(name)(**changes))


def phase(**changes: Any) -> ConfigDict:
    """A curriculum phase for `config.phase[name]`, with every key of `Phase`."""
    return as_config(dataclasses.replace(Phase(), **changes))


def load(name: str) -> ConfigDict:
    """The `ConfigDict` of `NAME_or_FILE[:argument]`; names are looked up in the shipped configs."""
    loaded: ConfigDict = _call(name, 'get_config', ConfigDict, 'a ConfigDict')
    return loaded


def name_of_arm(name: str, arm: str) -> str:
    """The config of one arm of `NAME_or_FILE[:argument]`: NAME:ARM, or NAME:ARGUMENT/ARM."""
    joined = name if ':' in name else f'{name}:'
    return f'{joined}{arm}' if joined.endswith(':') else f'{joined}/{arm}'


def arms(name: str) -> tuple[str, ...]:
    """The names of the arms of `NAME_or_FILE[:argument]`. Raises ConfigError where the config has none."""
    named = _call(name, 'get_arms', list | tuple, 'a tuple of names')
    for arm in named:
        check_name(arm, f'--config={name}: an arm of its get_arms()')
    if not named or len(set(named)) != len(named):
        raise ConfigError(f'--config={name}: its get_arms() gives {named!r}, not one or more different names')
    return tuple(named)


def shipped() -> list[str]:
    """The names of the configs that come with the program."""
    return sorted({p.stem for folder in CONFIG_FOLDERS if folder.is_dir() for p in folder.glob('*.py')})


def _call(name: str, function: str, kind: Any, of_kind: str) -> Any:
    """What a function of a config file gives for the argument in the name, which must be of a kind."""
    target, _, argument = name.partition(':')
    candidates = [Path(target)] if target.endswith('.py') else [f / f'{target}.py' for f in CONFIG_FOLDERS]
    file = next((c for c in candidates if os.path.isfile(c)), None)  # False for what can be no path, too
    if file is None:
        known = shipped()
        raise ConfigError(
            f'--config={name}: no such config; shipped ones: {", ".join(known)}, or give a .py file'
            f'{meant(target, known)}'
        )
    specification = importlib.util.spec_from_file_location(f'config_{file.stem}', file)
    assert specification
    assert specification.loader
    module = importlib.util.module_from_spec(specification)
    try:
        specification.loader.exec_module(module)
        called = getattr(module, function, None)
        if called is None:
            raise ConfigError(f'--config={name}: has no {function}(); {MISSING[function]}')
        given = called(argument) if argument else called()
    except ConfigError:
        raise
    except (Exception, SystemExit) as error:  # a config is a program: it may fail in any way
        what = '' if isinstance(error, ValueError) else f'{type(error).__name__}: '
        raise ConfigError(f'--config={name}: {what}{error}') from error
    if not isinstance(given, kind):
        raise ConfigError(f'--config={name}: its {function}() gives {type(given).__name__}, not {of_kind}')
    return given


def experiment(name: str, overrides: Iterable[tuple[str, str]], paths: bool = True) -> Experiment:
    """The experiment of a config with keys from the command line; without `paths` environment variables may lack."""
    loaded = load(name)
    for dotted, text in overrides:
        override(loaded, dotted, text)
    return Experiment.from_config(loaded, paths)


def override(config: ConfigDict, dotted: str, text: str) -> None:
    """Set one key from the command line. Raises ConfigError for an unknown key or a value of the wrong type."""
    begin(config, Experiment, dotted)
    node, rest = config, dotted
    while isinstance(node, ConfigDict):
        # Names may hold dots, as phase 0.1 does, so the text cannot be cut at them: the longest name that fits counts.
        name = next((n for n in sorted(node, key=len, reverse=True) if f'{rest}.'.startswith(f'{n}.')), None)
        if name is None:
            here = dotted.removesuffix(rest)
            if keys := _keys_of_entry(dotted):
                here = f'{dotted.rpartition(".")[0]}.'
            known = sorted(keys or node)
            every = [*(f'{here}{n}' for n in known), *(key for key, *_ in walk(Experiment()))]
            raise ConfigError(
                f'--config.{dotted}: no such key; known here: {", ".join(known)}{meant(dotted, every)}'
            )
        if rest == name and isinstance(node[name], ConfigDict):
            known, of_entry = sorted(_keys_of_entry(f'{dotted}.NAME.KEY')), field_of(Experiment, dotted)
            inside = f'{dotted}.NAME.KEY, where KEY is one of' if known and of_entry else 'one of'
            raise ConfigError(
                f'--config.{dotted}: is a section; set {inside} {", ".join(known or sorted(node[name]))}'
            )
        node, rest = node[name], rest[len(name) + 1 :]
    found = field_of(Experiment, dotted)
    if rest or found is None:
        raise ConfigError(f'--config.{dotted}: no such key')
    put(config, Experiment, dotted, _parsed(text, found[1]))


def _keys_of_entry(dotted: str) -> set[str]:
    """The keys that may be beside this one in an entry that the user names and that has some keys only, as
    finetune.setting.NAME has; none for a key of anything else."""
    parts = dotted.split('.')
    for end in range(1, len(parts) - 1):
        found = field_of(Experiment, '.'.join(parts[:end]))
        if found and (without := found[0].metadata.get('without')) is not None:
            record = found[0].metadata['record']('')
            return {field.name for field in dataclasses.fields(record)} - {*without}
    return set()


def _parsed(text: str, kind: Any) -> Any:
    """The value that a text means for a key of this type; what it cannot mean stays text, for the schema to refuse."""
    several = typing.get_origin(kind) is tuple
    if kind is str:
        return text
    if kind is bool and text.lower() in ('true', 'false'):
        return text.lower() == 'true'
    # Phases are called 0.1, which is a name and no number.
    if several and typing.get_args(kind)[0] is str and text[:1] not in ('(', '[', '"', "'"):
        return tuple(part for part in text.split(',') if part)
    try:
        value = ast.literal_eval(text)
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):  # whatever Python makes of it
        value = tuple(part for part in text.split(',') if part) if several else text
    if several and not isinstance(value, list | tuple):
        return (value,)
    return value
