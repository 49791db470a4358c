"""The variations that this program ships; of those that somebody has added, the code, for the fingerprints of stages.

What is shipped is compared by its name alone, so that a new version goes on with the runs of an old one: whoever makes
it do something else raises the `format` of a stage. A plug-in has no versions, and whoever edits it wants a new result.
"""

import ast
import dataclasses
import inspect
import textwrap
import types
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from bioptimus_jax.config.extensions import Extension
from bioptimus_jax.config.fields import walk
from bioptimus_jax.config.plugins import Plugins, Variations
from bioptimus_jax.storage.files import digest

DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
PLUG_IN = 'plug-in:'
"""How the names of inputs begin that are the code of a plug-in."""
SHIPPED: Mapping[str, tuple[str, ...]] = types.MappingProxyType(
    {
        key: tuple(names.split())
        for key, names in {
            'decay': 'bert all',
            'fall': 'linear cosine constant sqrt',
            'family': 'albert bert big_bird camembert deberta-v2 distilbert electra eurobert gte longformer '
            'megatron-bert modernbert mpnet nomic_bert roberta roberta-prelayernorm ultrabert xlm-roberta',
            'features': 'family first mentions starts',
            'layout': 'documents first_line neighbours pairs pairs_exact_half twice two_segments',
            'map': 'none linear respelled spelled',
            'masking': 'tokens words',
            'objective': 'adversarial causal contrastive distil mlm nsp rtd',
            'optimizer': 'adamw lamb stable_adamw muon',
            'strategy': 'scratch copy averaged_input averaged_last contextualized random_rows gaussian mean_resizing '
            'similarity spelled focus omp',
            'table': 'copied interpolated',
            'task': 'classes entities retrieval similarity word_classes',
            'words': 'tokenizer unicode',
            'tokenizer': 'bytelevel sentencepiece_bpe unigram wordpiece',
        }.items()
    }
)
"""The names by the last part of the key that takes them; a name that is not here is a plug-in's."""


def variations(experiment: Any, sections: tuple[str, ...]) -> Iterator[tuple[str, str, Any]]:
    """(last part of the key, name, table) of every variation that those sections name."""
    for dotted, value, metadata in walk(experiment):
        section, key, table = dotted.partition('.')[0], dotted.rpartition('.')[2], metadata.get('one_of')
        # The tables of an objective's own settings are in its file.
        if section in sections and section != 'objective' and value and isinstance(table, Plugins | Mapping):
            yield key, value, table


def plug_ins(experiment: Any, sections: tuple[str, ...]) -> dict[str, str]:
    """`plug-in:KEY NAME` -> digest of the code of every variation that those sections name and that is not shipped."""
    return {
        f'{PLUG_IN}{key} {name}': code_of(table, name)
        for key, name, table in variations(experiment, sections)
        if name not in SHIPPED.get(key, ())
    }


def code_of(table: Plugins | Mapping[str, Any], name: str) -> str:
    """Digest of a plug-in's file; of a record's plain values and functions, with what these use of their own file.

    The other modules of a user's own package count as a whole where the file imports them. So does the file itself
    where a record holds something else than plain values and functions, whose code cannot be told from the rest.
    """
    extension = table.added.get(name) if isinstance(table, Variations) else None
    own, *others = sources(extension) if extension else [None]
    if isinstance(table, Plugins):
        return digest([normal(file.read_text('utf-8')) for file in (own or table.file(name), *others)])
    record = table[name]
    parts = [normal(file.read_text('utf-8')) for file in others if file]
    fields = dataclasses.fields(record) if dataclasses.is_dataclass(record) else ()
    values = [record] if not fields else [getattr(record, field.name) for field in fields]
    if own and any(callable(value) and not inspect.isfunction(value) for value in values):
        parts.append(normal(own.read_text('utf-8')))
    if not fields and inspect.isfunction(record):
        parts += _texts(record, set())
    for field in fields:
        value = getattr(record, field.name)
        if inspect.isfunction(value) and value is not field.default:
            parts += _texts(value, set())
        elif not callable(value) and field.name != 'meaning':
            parts += _value(field.name, value)
    return digest(parts)


def _value(name: str, value: Any) -> list[str]:
    """A plain value; of an object whose class is a plug-in's too, the class."""
    if type(value).__module__.partition('.')[0] in ('builtins', __package__.partition('.')[0]):
        return [f'{name}={value!r}']
    said = '' if ' object at 0x' in repr(value) else repr(value)  # a place in memory differs each time
    return [f'{name}={said}', normal(inspect.getsource(type(value)))]


def _texts(function: types.FunctionType, seen: set[str]) -> Iterator[str]:
    """The code of a function, then of functions and plain values of its own file that it names, each once."""
    try:
        yield normal(inspect.getsource(function))
    except (OSError, TypeError):  # typed in, not read from a file
        yield ''
    for name in sorted(_names(function.__code__) - seen):
        seen.add(name)
        value = function.__globals__.get(name)
        if inspect.isfunction(value) and value.__code__.co_filename == function.__code__.co_filename:
            yield from _texts(value, seen)
        elif inspect.isclass(value) and value.__module__ == function.__module__:
            yield normal(inspect.getsource(value))
        elif isinstance(value, int | float | str | tuple):
            yield f'{name}={value!r}'


def _names(code: types.CodeType) -> set[str]:
    inner = (part for part in code.co_consts if isinstance(part, types.CodeType))
    return set(code.co_names).union(*map(_names, inner))


def sources(extension: Extension) -> list[Path]:
    """The file of a plug-in, then those of its own package, or of its folder, that it imports, and these in turn."""
    parts = extension.module.split('.')
    inside = extension.file.stem == '__init__'
    root = extension.file.parents[len(parts) - 1 + inside]
    shared = not {'site-packages', 'dist-packages'}.isdisjoint(root.parts)
    found, waiting = [extension.file], [(extension.file, parts if inside else parts[:-1])]
    while waiting:
        file, package = waiting.pop()
        for name in sorted(_imported(file, package)):
            if shared and name.partition('.')[0] != parts[0]:
                continue
            place = root.joinpath(*name.split('.'))
            for one, its_package in (
                (place / '__init__.py', name),
                (place.with_suffix('.py'), name.rpartition('.')[0]),
            ):
                if one.is_file() and one not in found:
                    found.append(one)
                    waiting.append((one, its_package.split('.') if its_package else []))
    return [found[0], *sorted(found[1:])]


def _imported(file: Path, package: list[str]) -> Iterator[str]:
    """The modules that a file may import, in a package of that name; of `from a import b` both a and a.b."""
    for node in ast.walk(ast.parse(file.read_text('utf-8'))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            above = package[: len(package) - node.level + 1] if node.level else []
            base = '.'.join([*above, *([node.module] if node.module else [])])
            yield from filter(None, (base, *(f'{base}.{alias.name}'.lstrip('.') for alias in node.names)))


def normal(source: str) -> str:
    """Python without comments, docstrings and layout, which decide nothing."""
    try:
        tree = ast.parse(textwrap.dedent(source))
    except SyntaxError:  # the lines of a lambda within a table
        return ' '.join(source.split())
    for node in ast.walk(tree):
        if isinstance(node, DOCUMENTED) and ast.get_docstring(node, clean=False) is not None:
            node.body = node.body[1:]
    return ast.unparse(tree)
