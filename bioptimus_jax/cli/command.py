"""What a verb is: its help, its flags and what it does; and how a command works in a run folder."""

import argparse
import contextlib
import dataclasses
import functools
import itertools
import json
import math
import os
import shlex
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, TextIO, TypeAlias, TypeVar

from bioptimus_jax.config.fields import NamedKey, allowed, walk, walk_entries
from bioptimus_jax.config.plugins import Plugins
from bioptimus_jax.errors import ConfigError, printable
from bioptimus_jax.experiment import config
from bioptimus_jax.experiment.schema import Experiment
from bioptimus_jax.experiment.stages import STAGES, keys
from bioptimus_jax.finetuning.config import TASKS, Finetune
from bioptimus_jax.hosts import signals
from bioptimus_jax.hosts.settled import require_settled
from bioptimus_jax.pretrain.config import PAPER_PHASES
from bioptimus_jax.progress.console import numbered
from bioptimus_jax.run import processes
from bioptimus_jax.run.execute import execute
from bioptimus_jax.run.folder import Run
from bioptimus_jax.run.session import open_run
from bioptimus_jax.run.stage import Stage
from bioptimus_jax.storage.files import JsonObject

Number = TypeVar('Number', int, float)
FlagSettings: TypeAlias = Mapping[str, Any]
"""What `argparse.ArgumentParser.add_argument` takes beside the name of a flag."""
Flag: TypeAlias = tuple[str, FlagSettings]


OF_A_RUN = keys('runtime', 'base_run distributed lost_after_seconds staging push_seconds')
"""Keys that every verb reads which works in a run folder."""
VERBS = Plugins('bioptimus_jax.cli.verbs', 'VERB', more='bioptimus_jax.lab.verbs')
START, USE, BEFORE, LABORATORY, OF_STAGES = 'Start', 'Use', 'Before', 'Laboratory', 'Stages'
GROUPS = {
    START: 'from nothing to a first model',
    USE: 'with a model, or with what was made',
    BEFORE: 'what a run would take and see',
    LABORATORY: 'for research: comparisons over many runs, public sets, measurements',
    OF_STAGES: 'one at a time, as `run` does them all',
}
"""Groups of verbs, in the order of `--help`, and what each is for; the first two are what most people need."""
MOST_SHOWN = 10
"""Keys of a verb that `--help` shows; `--help-all` shows all of them."""
DETERMINISTIC = '--xla_gpu_deterministic_ops=true'


@dataclasses.dataclass(frozen=True)
class Command:
    """A command as it was given: its flags, its `--config.KEY=VALUE`, and all of its words."""

    options: argparse.Namespace
    overrides: Sequence[tuple[str, str]]
    words: Sequence[str]
    out: TextIO = dataclasses.field(default_factory=lambda: sys.stdout)

    @functools.cached_property
    def experiment(self) -> Experiment:
        """What --config and the keys ask for; a config file is run once."""
        return self._asked(paths=True)

    @property
    def experiment_without_paths(self) -> Experiment:
        """The same where nothing is read that a path names, so that environment variables in paths may be unset."""
        return self._asked(paths=False)

    def _asked(self, paths: bool) -> Experiment:
        asked = config.experiment(self.options.config, self.overrides, paths=paths)
        require_settled()
        return asked

    def answer(self, document: Callable[[], JsonObject], text: Callable[[], str]) -> None:
        """Print what the verb is asked for: its text, or with --json one document, all other lines going to stderr."""
        if self.options.json:
            print(json.dumps(as_json(document()), indent=1, ensure_ascii=False), file=self.out)
        elif said := text():
            print(printable(said), file=self.out, flush=True)


def as_documents(tables: Iterable[Any]) -> list[JsonObject]:
    """Tables (`report.layout.Table`) as a JSON document has them."""
    return [{'title': t.title, 'rows': t.records(), 'note': t.note or None} for t in tables]


def as_json(value: Any) -> Any:
    """The value as JSON has it: no NaN and no infinity, which become null."""
    if isinstance(value, Mapping):
        return {str(name): as_json(inner) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [as_json(inner) for inner in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


@dataclasses.dataclass(frozen=True)
class Verb:
    """`short` is its line among all verbs, `text` its help.

    `group` is one of GROUPS. `keys` are the sections and keys of the configuration that it reads; None: it takes no
    `--config.KEY=VALUE`.
    `call` raises ConfigError, InputError or Stopped.
    """

    short: str
    text: str
    flags: Sequence[Flag]
    call: Callable[[Command], object]
    keys: tuple[str, ...] | None = None
    group: str = LABORATORY
    every: bool = False
    """Whether it also reads the keys of all stages."""


def described(docstring: str | None) -> tuple[str, str]:
    """A verb's line among all verbs and its help, from its module's docstring: "`bioptimus VERB`: LINE. ... HELP".

    Raises ConfigError where there is none.
    """
    if docstring is None:
        raise ConfigError(
            'the help of the verbs is in docstrings, which python -OO leaves out; start it without -OO, and '
            'with PYTHONOPTIMIZE unset'
        )
    title, _, text = docstring.partition('\n\n')
    return title.partition(': ')[2].removesuffix('.'), text.rstrip('\n')


def stage_text(stage: Stage) -> str:
    """The help of a stage's verb."""
    example = f'bioptimus {stage.name} --config=small --workdir=runs/small'
    return f'{stage.summary}\n\nreads:  {stage.reads}\nwrites: {stage.writes}\n\nexample:\n  {example}'


def stage_keys(stage: Stage) -> tuple[str, ...]:
    """The sections and keys that a stage reads."""
    return (*stage.sections, *stage.also_reads, *OF_A_RUN)


def stage_verb(stage: Stage) -> Verb:
    """The verb of a stage that has no flags of its own."""
    group = USE if stage.name == 'finetune' else OF_STAGES
    return Verb(
        stage.summary,
        stage_text(stage),
        run_flags(),
        lambda c: make_stage(c, stage),
        stage_keys(stage),
        group,
    )


def all_verbs() -> dict[str, Verb]:
    """Every verb by its name: the stages in their order, then the files of verbs/, some of them stages with flags."""
    named = {name: stage_verb(stage) for name, stage in STAGES.items()}
    return named | {name: VERBS.load(name) for name in VERBS}


def make_stage(command: Command, stage: Stage) -> None:
    """Bring one stage of the run up to date."""
    in_run(command, (stage.name,), lambda run: execute(run, stage, command.options.replace))


def in_run(
    command: Command, stages: tuple[str, ...], lead: Callable[[Run], object], writes: bool = True
) -> None:
    """Open the run of `--workdir` for these stages, and `lead`; other processes of the same run follow.

    Without `writes` nothing is made, and other processes are not waited for.
    """
    # A stage that is made of the run alone needs nothing that paths name.
    inside = all(name in STAGES and STAGES[name].always for name in stages)
    experiment = command.experiment_without_paths if inside else command.experiment
    if experiment.runtime.deterministic:  # read by XLA when its first backend starts
        os.environ['XLA_FLAGS'] = f'{os.getenv("XLA_FLAGS", "")} {DETERMINISTIC}'.strip()
    others = processes.join(experiment.runtime) if experiment.runtime.distributed and writes else None
    with (
        signals.watching() as watch,
        open_run(command.options.workdir, experiment, stages, watch, others, writes) as run,
    ):
        run.command = shlex.join(['bioptimus', *(word for word in command.words if word != '--replace')])
        if getattr(command.options, 'replace', False) and run.mirror and others:
            raise ConfigError(
                '--replace: for a run in a bucket, give it to one process alone, then start all'
            )
        if run.leads:
            lead(run)
        else:
            processes.follow(run, [STAGES[name] for name in stages if name in STAGES])


def flag(name: str, what: str, default: Any = '', **others: Any) -> Flag:
    """One flag, or a list of folders, and its help, as `argparse.ArgumentParser.add_argument` takes them."""
    return name, {'help': what, 'default': default, **others}


def config_flag(what: str = 'shipped config or .py file', required: bool = True) -> Flag:
    """`--config`."""
    return flag('--config', what, None, required=required, metavar='NAME_or_FILE[:argument]')


def switch(name: str, what: str) -> Flag:
    """A flag without a value."""
    return flag(name, what, False, action='store_true')


def needed(name: str, what: str, metavar: str) -> Flag:
    """A flag that must be given."""
    return flag(name, what, None, required=True, metavar=metavar)


def several(name: str, what: str, metavar: str) -> Flag:
    """A flag that may be repeated; a list."""
    return flag(name, what, [], action='append', metavar=metavar)


def count(name: str, what: str, default: int | None) -> Flag:
    """A flag with a whole number, which must be above 0 where it is given."""
    return flag(name, what, default, type=positive_whole, metavar='N')


def run_flags(required: bool = True) -> tuple[Flag, ...]:
    """`--config`, `--workdir` and `--replace`."""
    where = 'run folder, created if missing; or s3://, gs://'
    replace = (
        'delete what a stage made and rebuild it (run: only where it differs); one that was cut off under the same '
        'settings continues'
    )
    return (
        config_flag(required=required),
        flag('--workdir', where, None, required=required, metavar='DIR'),
        switch('--replace', replace),
    )


def column_flags() -> tuple[Flag, ...]:
    """`--word_column` and `--tag_column`."""
    where = 'in files of words with tags: its number (1; -1 is the last), or its name in a header'
    return (
        flag('--word_column', f'the column of the word {where}; default: found', '', metavar='COLUMN'),
        flag('--tag_column', 'the same for the column of the tag', '', metavar='COLUMN'),
    )


def task_flag() -> Flag:
    """`--task`."""
    what = 'task of sets that are not public ones (default: %(default)s)'
    return flag('--task', what, Finetune.task, choices=TASKS)


def json_flag() -> Flag:
    """`--json`."""
    return switch('--json', 'print one JSON document; all other lines go to stderr')


def positive(text: str) -> float:
    """A flag's number above 0."""
    return _number(text, float, lambda value: 0 < value < float('inf'), 'a number above 0')


def positive_whole(text: str) -> int:
    """A flag's whole number above 0, also as 1e3."""
    return int(
        _number(text, float, lambda value: value > 0 and value.is_integer(), 'a whole number, at least 1')
    )


def share(text: str) -> float:
    """A flag's number above 0 and at most 1."""
    return _number(text, float, lambda value: 0 < value <= 1, 'a number above 0 and at most 1')


def levels(text: str) -> tuple[float, ...]:
    """A flag's numbers above 0, with commas."""
    return tuple(positive(level) for level in text.split(','))


def shares(text: str) -> tuple[float, ...]:
    """A flag's shares, with commas."""
    return tuple(share(one) for one in text.split(','))


def folders(text: str) -> tuple[str, ...]:
    """A flag's folders or files, with commas."""
    found = tuple(text.split(','))
    if not all(map(str.strip, found)):  # an empty path is the folder that the program is started in
        raise argparse.ArgumentTypeError(f'{text!r}: has an empty name; take out the comma, or name a folder')
    return found


def _number(text: str, kind: type[Number], fits: Callable[[Number], bool], needed: str) -> Number:
    with contextlib.suppress(ValueError):
        if fits(value := kind(text)):
            return value
    raise argparse.ArgumentTypeError(f'{text!r}: must be {needed}')


def keys_of(verb: Verb) -> Iterator[NamedKey]:
    """The keys that a verb reads beside those of stages."""
    read = tuple(f'{one}.' for one in verb.keys or ())
    every = itertools.chain(walk(Experiment()), walk_entries(Experiment()))
    return (one for one in every if f'{one.name}.'.startswith(read))


def described_keys(name: str, verb: Verb, every: bool) -> str:
    """The keys that a verb reads, with defaults and the values that are allowed.

    `every`: all of them; otherwise at most MOST_SHOWN, which many users set.
    """
    later_phases = tuple(f'phase.{name}.' for name in list(PAPER_PHASES)[1:])  # have the first one's keys
    known = [one for one in keys_of(verb) if not one.name.startswith(later_phases)]
    shown = known if every or len(known) <= MOST_SHOWN else _common(verb, known)
    left = len(known) - len(shown)
    lines = [f'{"" if left else "all "}keys (--config.KEY=VALUE), with their defaults:']
    for key, value, metadata in shown:
        lines += [f'  {key} = {value!r}', f'      {metadata["doc"]}']
        lines += [f'      {said}' for said in filter(None, [allowed(metadata)])]
    more = ['', f'and {numbered(left, "more key")}: `bioptimus {name} --help-all`'] * bool(left)
    more += ['', 'and the keys of every stage that it runs: `bioptimus STAGE --help`'] * verb.every
    return '\n'.join([*lines, *more])


def _common(verb: Verb, known: Iterable[NamedKey]) -> list[NamedKey]:
    """The keys that many users set, of at most MOST_SHOWN those that the verb names first."""
    read = [f'{one}.' for one in verb.keys or ()]
    common = [one for one in known if one.metadata.get('common')]

    def place(one: NamedKey) -> int:
        return next(at for at, start in enumerate(read) if f'{one.name}.'.startswith(start))

    first = sorted(common, key=place)[:MOST_SHOWN]
    return [one for one in common if one in first]
