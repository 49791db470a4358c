"""Nested dicts of parameters by path: flatten, cover with rules, merge strictly."""

import re
from collections.abc import Iterable, Mapping
from typing import Any, TypeAlias

from bioptimus_jax.errors import InputError

Params: TypeAlias = Mapping[str, Any]
"""The parameters of a model as nested dicts; each leaf is an array, or its shape or sharding."""
FlatParams: TypeAlias = dict[str, Any]
"""The leaves of `Params` by their path, `a/b/c`."""
LISTED = 8


def flatten(tree: Params, prefix: str = '') -> FlatParams:
    """The leaves of nested dicts as `{'a/b/c': leaf}`, in the dicts' order. An empty dict has no leaves."""
    flat: FlatParams = {}
    for name, value in tree.items():
        if isinstance(value, Mapping):
            flat.update(flatten(value, f'{prefix}{name}/'))
        else:
            flat[f'{prefix}{name}'] = value
    return flat


def unflatten(flat: Mapping[str, Any]) -> Params:
    """Nested dicts from `{'a/b/c': leaf}`. Raises ValueError where one path is both a leaf and a folder."""
    tree: dict[str, Any] = {}
    for path, leaf in flat.items():
        *folders, name = path.split('/')
        node = tree
        for folder in folders:
            node = node.setdefault(folder, {})
            if not isinstance(node, dict):
                raise ValueError(f'{path}: {folder!r} is a leaf already')
        if name in node:
            raise ValueError(f'{path}: is there already')
        node[name] = leaf
    return tree


def match_rules(tree: Params, rules: Iterable[tuple[str, Any]]) -> Params:
    """A tree of the same shape that holds, for every leaf, the value of the first rule that covers its path.

    A rule covers a path in which its regex is found; write `^` or `$` where the place matters. Raises
    ValueError that lists the parameters no rule covers, so that none falls through in silence.
    """
    compiled = [(re.compile(pattern), value) for pattern, value in rules]
    matched, uncovered = {}, []
    for path in flatten(tree):
        found = [value for pattern, value in compiled if pattern.search(path)][:1]
        if found:
            matched[path] = found[0]
        else:
            uncovered.append(path)
    if uncovered:
        raise ValueError(
            f'no rule covers {_some(uncovered)}; rules: {", ".join(p.pattern for p, _ in compiled)}'
        )
    return unflatten(matched)


def merge_strict(template: Params, loaded: Params, where: str) -> Params:
    """The leaves of `loaded` in the order of `template`, whose leaves need a `.shape` only.

    Raises InputError that names what is missing, unused or of another shape; `where` begins the message.
    """
    wanted, given = flatten(template), flatten(loaded)
    problems = []
    if missing := [path for path in wanted if path not in given]:
        problems.append(f'missing {_some(missing)}')
    if unused := [path for path in given if path not in wanted]:
        problems.append(f'not part of the model {_some(unused)}')
    shapes = [(p, tuple(wanted[p].shape), tuple(given[p].shape)) for p in wanted if p in given]
    if wrong := [f'{p} has shape {got}, expected {want}' for p, want, got in shapes if got != want]:
        problems.append(_some(wrong))
    if problems:
        raise InputError(f'{where}: {"; ".join(problems)}')
    return unflatten({path: given[path] for path in wanted})


def _some(names: list[str]) -> str:
    rest = len(names) - LISTED
    return ', '.join(names[:LISTED]) + (f' and {rest} more' if rest > 0 else '')
