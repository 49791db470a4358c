"""The variations that this program ships; of those that somebody has added, the code, for the fingerprints of stages.

What is shipped is compared by its name alone, so that a new version goes on with the runs of an old one: whoever makes
it do something else raises the `format` of a stage. A plug-in has no versions, and whoever edits it wants a new result.
"""

import ast
import dataclasses
import functools
import inspect
import types
from collections.abc import Iterable, Iterator, Mapping, Sequence
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


def variations(record: Any, sections: Sequence[str] | None = None) -> Iterator[tuple[str, str, Any]]:
    """(last part of the key, name, table) of every variation that a record names, or those sections of it."""
    for dotted, value, metadata in walk(record):
        section, key, table = dotted.partition('.')[0], dotted.rpartition('.')[2], metadata.get('one_of')
        # The tables of an objective's own settings are in its file.
        if section == 'objective' or (sections is not None and section not in sections):
            continue
        if value and isinstance(table, Plugins | Mapping):
            yield key, value, table


def plug_ins(named: Iterable[tuple[str, str, Any]]) -> dict[str, str]:
    """`plug-in:KEY NAME` -> digest of the code of every (key, name, table) that is not shipped."""
    return {
        f'{PLUG_IN}{key} {name}': _code_of(table, name)
        for key, name, table in named
        if name not in SHIPPED.get(key, ())
    }


def _code_of(table: Plugins | Mapping[str, object], name: str) -> str:
    """Digest of a plug-in's file and of the modules of a user's own package that it imports, each as a whole; of a
    record also its plain values, which may come from elsewhere.

    What the functions of a record use is not told from the rest of its file: that may be a table, an instance, a
    decorator, a default. Of a record that no plug-in brings the file is where its functions and classes are written.
    """
    extension = table.added.get(name) if isinstance(table, Variations) else None
    files = sources(extension) if extension else []
    if isinstance(table, Plugins):
        return digest([normal(file.read_text('utf-8')) for file in files or [table.file(name)]])
    values = _values(table[name])
    texts = [file.read_text('utf-8') for file in files] or [*dict.fromkeys(map(_written, values.values()))]
    plain = [f'{key}={_said(value)}' for key, value in values.items() if not callable(value)]
    return digest([*map(normal, texts), *plain])


def _values(record: object) -> dict[str, object]:
    """What decides of a record, by its fields: neither its meaning nor functions that it has by default."""
    if not dataclasses.is_dataclass(record):
        return {'': record}
    fields = [(field, getattr(record, field.name)) for field in dataclasses.fields(record)]
    return {
        field.name: value
        for field, value in fields
        if field.name != 'meaning' and not (callable(value) and value is field.default)
    }


def _said(value: Any) -> str:
    """A plain value in words that are the same in every process."""
    if isinstance(value, set | frozenset):  # texts in it come in another order each time
        return f'{{{", ".join(sorted(map(_said, value)))}}}'
    if isinstance(value, tuple | list):
        return f'[{", ".join(map(_said, value))}]'
    if isinstance(value, Mapping):
        return f'{{{", ".join(f"{_said(key)}: {_said(one)}" for key, one in value.items())}}}'
    return '' if ' object at 0x' in repr(value) else repr(value)  # a place in memory differs each time


def _written(value: Any) -> str:
    """The whole text in which a function or a class is written, or the class of an object; '' of the program's own
    classes, and of what is typed in."""
    code = inspect.unwrap(value.func if isinstance(value, functools.partial) else value)
    if not inspect.isfunction(code):
        code = code if inspect.isclass(code) else type(code)
        if code.__module__.partition('.')[0] in ('builtins', __package__.partition('.')[0]):
            return ''
    try:
        return ''.join(inspect.findsource(code)[0])
    except (OSError, TypeError):
        return ''


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
        tree = ast.parse(source)
    except SyntaxError:  # a cell of a notebook
        return ' '.join(source.split())
    for node in ast.walk(tree):
        if isinstance(node, DOCUMENTED) and ast.get_docstring(node, clean=False) is not None:
            node.body = node.body[1:]
    return ast.unparse(tree)
