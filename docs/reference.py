"""Pages that MkDocs makes from the code: commands, keys of the configuration, modules from their docstrings.

SECURITY.md, which stands where others look for it, is a page too.
"""

import argparse
import dataclasses
import importlib
import inspect
import re
import typing
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

import bioptimus_jax
from bioptimus_jax.cli.arguments import SYNOPSIS, make_parser
from bioptimus_jax.config.plugins import NoSettings
from bioptimus_jax.experiment.schema import Experiment
from bioptimus_jax.experiment.stages import STAGES
from bioptimus_jax.pretrain.config import OBJECTIVES, Phase
from bioptimus_jax.records.record import Record
from bioptimus_jax.surgery.config import Surgery
from bioptimus_jax.surgery.initialisations import INITIALISATIONS

PACKAGE = Path(__file__).resolve().parents[1] / 'bioptimus_jax'
TOP = 'experiment'  # the heading of keys that stand in no section

COMMANDS = f"""# Commands

Made from `bioptimus_jax/cli/arguments.py`; `bioptimus VERB --help` says the same.

```text
{SYNOPSIS}
```

Any key of the [configuration](configuration.md) can be given as `--config.KEY=VALUE`. Exit codes stand in
[Exit codes and resuming](../howto/resume.md#exit-codes).
"""
CONFIGURATION = """# Configuration

Made from `bioptimus_jax/experiment/schema.py`: every key with its type, its default, what is allowed and what it means.

| kind | what a change of it does |
|---|---|
| result | the stages that read its section are refused with what differs, or continued where that is possible |
| path | nothing by itself: the files that it names count by their content |
| runtime | nothing to the result; it says how the run is carried out |

On the command line a key is `--config.KEY=VALUE`; tuples are `a,b,c`. In a config file it is an attribute:

```text
config.corpus.min_words = 20        in a .py file
--config.corpus.min_words=20        on the command line
config.phase['0.1'].rate = 0.3      a phase has its name as a key
--config.phase.0.1.rate=0.3
```
"""
RECORDS = """
metrics manifests counts corpus vocabulary surgery curriculum attention export sets finetune statistics analysis runs
probe kept onnx
""".split()
"""Modules of records, in the order of the stages."""
FILES = """# Files of a run

Made from `bioptimus_jax/records/`: the JSON files that stages write and that are read again, by the report or by you.
One reader checks every key and its type; a file that is damaged is refused in one line. A record of a later version
than the first has it as the key `version`.

Keys stand in the order in which they are written. *Left out* keys are missing where nothing is known; others that may
be missing have a default.
"""
CODE = re.compile(r'\]\((?:\.\./)+(bioptimus_jax[\w/-]*(?:\.py)?|SECURITY\.md)(?:#([\w.]+))?\)')
MADE_FROM = {
    'bioptimus_jax': 'reference/python/program.md',
    'bioptimus_jax/cli/arguments.py': 'reference/commands.md',
    'bioptimus_jax/records': 'reference/files.md',
    'bioptimus_jax/experiment/schema.py': 'reference/configuration.md',
    'SECURITY.md': 'security.md',
}
"""Which page is made from a file of the repository."""
PYTHON = """# {title}

**Internal**: a module on this page may change with any version. What is for you is on [Public functions](api.md).

Made from the docstrings. Shapes stand in the names of arrays: `hidden_BxLxD` has the axes B, L and D of the legend at
the top of its module.
"""
PUBLIC = f"""# Public functions

What `import {PACKAGE.name} as bx` offers: documented, typed and stable. Every other module is internal. How they go
together: [From Python](../../howto/python.md). Besides there are two errors, whose message is one line with the remedy:
[`bx.ConfigError`](program.md#bioptimus_jax.errors.ConfigError) and
[`bx.InputError`](program.md#bioptimus_jax.errors.InputError).

"""


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages below reference/, and SECURITY.md, to those that lie in docs/."""
    security = (PACKAGE.parent / 'SECURITY.md').read_text('utf-8')
    files.append(File.generated(config, 'security.md', content=security))
    for path, content in pages().items():
        files.append(File.generated(config, f'reference/{path}', content=content))
    return files


def on_page_markdown(markdown: str, page: Page, **given: Any) -> str:
    """Links to files of the code, which a reader of the repository can follow, as links to what is made from them."""
    up = '../' * page.file.src_uri.count('/')
    return CODE.sub(lambda link: _made_from(link[1], link[2] or '', up), markdown)


def _made_from(path: str, named: str, up: str) -> str:
    if path in MADE_FROM and named.partition('.')[0] in ('', 'config'):
        fragment = '#' * bool(named) + named.partition('.')[2]
        return f']({up}{MADE_FROM[path]}{fragment})'
    if path.endswith('.py'):
        return f'][{".".join([*Path(path).with_suffix("").parts, *filter(None, [named])])}]'
    return f']({up}reference/python/{Path(path).name}.md)'


def pages() -> dict[str, str]:
    """Path below reference/ -> Markdown."""
    packages = sorted(
        folder.parent for folder in PACKAGE.glob('*/__init__.py') if folder.parent.name != 'api'
    )
    python = {f'python/{folder.name}.md': _modules(folder) for folder in packages}
    made = {'commands.md': _commands(), 'configuration.md': _configuration(), 'files.md': _files()}
    return {**made, 'python/api.md': _public(), 'python/program.md': _modules(PACKAGE), **python}


def _public() -> str:
    """One entry for mkdocstrings per public name, in the order of the data flow."""
    options = '    options:\n      heading_level: 2\n      show_root_full_path: false\n'
    offered = (getattr(bioptimus_jax, name) for name in bioptimus_jax.__all__)
    own = (f'{one.__module__}.{one.__name__}' for one in offered if f'{PACKAGE.name}.api.' in one.__module__)
    return PUBLIC + '\n'.join(f'::: {name}\n{options}' for name in own)


def _modules(folder: Path) -> str:
    """One entry for mkdocstrings per module of a folder; those of the package itself make up the program."""
    title = 'Program' if folder == PACKAGE else f'{PACKAGE.name}.{folder.name}'
    files = folder.glob('*.py') if folder == PACKAGE else folder.rglob('*.py')
    names = [
        '.'.join(f.relative_to(folder).with_suffix('').parts) for f in sorted(files) if f.stem != '__init__'
    ]
    package = '.'.join(folder.relative_to(PACKAGE.parent).parts)
    entries = [
        f'## {name} {{ #module-{name.replace(".", "-")} }}\n\n'
        f'::: {package}.{name}\n    options:\n      heading_level: 3\n'
        for name in names
    ]
    return '\n'.join([PYTHON.format(title=title), *entries])


def _files() -> str:
    """A heading for each module of records, and for each of its records the docstring and the keys."""
    parts = [FILES]
    for name in RECORDS:
        module = importlib.import_module(f'{PACKAGE.name}.records.{name}')
        parts.append(f'## {" ".join((module.__doc__ or "").split())}\n')
        for kind in vars(module).values():
            if isinstance(kind, type) and issubclass(kind, Record) and kind.__module__ == module.__name__:
                said = inspect.cleandoc(kind.__doc__ or '')
                parts.append(f'### {kind.__name__}\n\n{said}\n\nVersion {kind.VERSION}.\n\n{_keys_of(kind)}')
    return '\n'.join(parts)


def _keys_of(kind: type[Record]) -> str:
    fields = {field.name: field for field in dataclasses.fields(kind)}
    ordered = dict.fromkeys((*kind.FIRST, *fields))
    lines = ['| key | type | |', '|---|---|---|']
    for field in (fields[name] for name in ordered):
        shown = re.sub(r'(\w+\.)+', '', str(typing.get_type_hints(kind)[field.name]))
        shown = re.sub(r"<class '(\w+)'>", r'\1', shown).replace('|', '\\|')
        given = field.default is not dataclasses.MISSING or field.default_factory is not dataclasses.MISSING
        note = 'left out' if 'left_out' in field.metadata else 'may be missing' if given else ''
        note = 'all other keys' if 'others' in field.metadata else note
        lines.append(f'| `{field.metadata.get("key", field.name)}` | {shown} | {note} |')
    return '\n'.join(lines) + '\n'


def _commands() -> str:
    parser = make_parser()
    verbs = next(a for a in parser._actions if isinstance(a, argparse._SubParsersAction))
    return '\n'.join([COMMANDS, *(_verb(name, verb) for name, verb in verbs.choices.items())])


def _verb(name: str, verb: argparse.ArgumentParser) -> str:
    lines = [
        f'## {name}',
        '',
        '```text',
        verb.description or '',
        '```',
        '',
        '| flag | meaning |',
        '|---|---|',
    ]
    for action in verb._actions:
        if isinstance(action, argparse._HelpAction):
            continue
        shown = ', '.join(action.option_strings) or str(action.metavar or action.dest)
        if action.option_strings and action.nargs != 0:
            shown += f'={action.metavar or action.dest.upper()}'
        meaning = verb._get_formatter()._expand_help(action) if action.help else ''
        required = ' (required)' if action.required else ''
        lines.append(f'| `{shown}` | {_cell(meaning)}{required} |')
    if name in STAGES:
        keys = (*STAGES[name].sections, 'runtime', *(('source',) if 'source' in STAGES[name].reads else ()))
        links = dict.fromkeys(f'[{s}](configuration.md#{_anchor(s)})' for s in keys)
        lines += ['', f'Keys that it looks at: {", ".join(links)}.']
    return '\n'.join([*lines, ''])


def _anchor(section: str) -> str:
    alone = {'seed', 'stages', 'phases'}
    return TOP if section in alone else section


def _configuration() -> str:
    entries = (entry for entry in sections(Experiment, '') if entry[1] is not NoSettings)
    return '\n'.join([CONFIGURATION, *(_section(*entry) for entry in entries)])


def sections(record: type, prefix: str) -> Iterator[tuple[str, type]]:
    """A record and the records in it, each with its dotted name; '' is the experiment itself."""
    yield prefix, record
    for name, hint in typing.get_type_hints(record).items():
        if name == 'objective' and record is Experiment:
            yield from ((f'{name}.{one}', OBJECTIVES.settings(one)) for one in OBJECTIVES)
        if name == 'own' and record is Surgery:
            yield from ((f'{prefix}.{name}.{one}', each.settings) for one, each in INITIALISATIONS.items())
        inner = Phase if name == 'phase' else hint
        if dataclasses.is_dataclass(inner):
            yield from sections(typing.cast(type, inner), f'{prefix}.{name}'.lstrip('.'))


def _section(prefix: str, record: type) -> str:
    hints = typing.get_type_hints(record)
    name = prefix or TOP
    dotted = 'phase.NAME' if prefix == 'phase' else prefix
    lines = [f'## {name} {{ #{name.replace(".", "-")} }}', '', (record.__doc__ or '').strip(), '']
    root = prefix.split('.')[0]  # none: keys that stand alone are sections of their own
    readers = [f'[{s.name}](commands.md#{s.name})' for s in STAGES.values() if root and root in s.sections]
    if readers:
        lines += [f'Read by: {", ".join(readers)}.', '']
    lines += ['| key | type | default | allowed | kind | meaning |', '|---|---|---|---|---|---|']
    for field in dataclasses.fields(record):
        if 'doc' not in field.metadata:
            continue
        key = f'{dotted}.{field.name}'.lstrip('.')
        cells = (
            f'<a id="{key}"></a>`{key}`',
            _type(hints[field.name]),
            f'`{field.default!r}`' if field.default is not dataclasses.MISSING else '',
            _allowed(field.metadata),
            _kind(root or field.name, field.metadata),
            _cell(str(field.metadata['doc'])),
        )
        lines.append(f'| {" | ".join(cells)} |')
    return '\n'.join([*lines, ''])


def _kind(root: str, metadata: typing.Mapping) -> str:
    if metadata.get('path') or root == 'source':
        return 'path'
    return 'result' if any(root in stage.sections for stage in STAGES.values()) else 'runtime'


def _type(hint: typing.Any) -> str:
    if typing.get_origin(hint) is tuple:
        return f'tuple of {typing.get_args(hint)[0].__name__}'
    return hint.__name__ if isinstance(hint, type) else 'by name'


def _allowed(metadata: typing.Mapping) -> str:
    if metadata.get('one_of'):
        return ', '.join(f'`{choice}`' for choice in metadata['one_of'])
    low, high = metadata.get('low'), metadata.get('high')
    if low is not None and high is not None:
        return f'{low:g} to {high:g}' if high < 1e6 else f'{low:g} to {high}'
    return f'at least {low:g}' if low is not None else f'at most {high:g}' if high is not None else ''


def _cell(text: str) -> str:
    """Text for a cell of a table: one line, nothing outside of code that ends a cell or begins a tag or emphasis."""
    parts = ' '.join(text.split()).split('`')
    parts[::2] = [re.sub(r'([\\|*_\[])', r'\\\1', part).replace('<', '&lt;') for part in parts[::2]]
    return '`'.join(parts)
