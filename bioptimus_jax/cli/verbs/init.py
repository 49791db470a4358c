r"""`bioptimus init`: write a config for your model, texts and machine.

A config of some 25 lines for your source, texts, machine and hours, each line with its reason: keep,
append or replace the vocabulary, how long, in which batches. It builds on configs/recommended.py, which says
what our measurements recommend. What is not given is asked for on a terminal. On a CPU the hours are those of
all stages, whose speeds are measured here: what does not fit is left out, and named.
Keys (--config.KEY=VALUE) are copied into the file, all but phases: it has one, words. The other lines follow
from them.

reads:  config.json and tokenizer of the source; the beginning of up to four files of the texts
writes: FILE (default mine.py)

examples:
  bioptimus init
  bioptimus init mine.py --source=/models/bert --texts='texts/*.jsonl.gz' --sets=ner \
      --device=a100-80 --devices=8 --hours=10
"""

import argparse
import dataclasses
import re
import shlex
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from bioptimus_jax.cli.command import (
    START,
    Command,
    Verb,
    count,
    described,
    flag,
    positive,
    switch,
    task_flag,
)
from bioptimus_jax.errors import ConfigError, InputError, printable
from bioptimus_jax.hosts.devices import DEVICES, device_named
from bioptimus_jax.hosts.remote.models import model_folder
from bioptimus_jax.storage.files import atomic

SPLIT = re.compile(r"""[\s'"\\]""")
"""What would end or change the name of a file in --texts."""
SOURCE = 'model (Hugging Face folder, or hub id as bert-base-uncased or OWNER/NAME@REVISION)'


@dataclasses.dataclass(frozen=True)
class Question:
    """What is asked on a terminal where the flag is missing; `check` raises for an answer that cannot be right."""

    flag: str
    text: str
    check: Callable[[str], Any]
    needed: bool = False


def _texts(given: str) -> str:
    from bioptimus_jax.start.texts import local_texts  # imports the readers of all forms

    local_texts(given)
    return given


def _folder(given: str) -> str:
    if given and not Path(given).is_dir():
        raise InputError(f'{given}: no such folder')
    return given


def _source(given: str) -> str:
    model_folder(given, '--source')
    return given


def _device(given: str) -> str:
    return device_named(given).name if given and given.lower() != 'cpu' else given.lower()


QUESTIONS = (
    Question('source', f'{SOURCE} to adapt', _source, needed=True),
    Question('texts', 'Texts of the domain, files or globs with spaces between', _texts, needed=True),
    Question('sets', 'Folder of sets to score on, which stay out of the texts (empty: none)', _folder),
    Question('device', f'Where it will train: cpu, {", ".join(DEVICES)} (empty: here)', _device),
    Question('hours', 'Hours that it may take', positive, needed=True),
)


def _call(command: Command) -> None:
    options = command.options
    to = Path(options.file)
    if to.suffix != '.py':
        raise ConfigError(f'{to}: a config is Python; name a file that ends in .py')
    if to.exists() and not options.replace:
        raise ConfigError(f'{to}: already exists; name another file, or give --replace')
    _ask(options)
    from bioptimus_jax.start.recommend import UserWishes, config_text, recommend  # imports jax
    from bioptimus_jax.start.texts import local_texts

    asked = UserWishes(
        options.source,
        local_texts(options.texts),
        options.hours,
        options.sets,
        options.task,
        options.device,
        options.devices,
        options.vocabulary,
        command.overrides,
    )
    base, choices = recommend(asked)
    with atomic(to) as file:
        file.write(config_text(base, choices, _command_of(asked, options.file), options.file))
    print(printable('\n'.join(map(str, choices))))
    device = f' --device={options.device} --devices={options.devices or 1}' * bool(options.device)
    print(printable(written(to, device)))


def written(to: Path, device: str) -> str:
    """The commands for the config that was written; `device`: flags of `plan`."""
    config, workdir = (shlex.quote(flag) for flag in (f'--config={to}', f'--workdir=runs/{to.stem}'))
    return f'\nwritten: {to}. Next:\n  bioptimus plan {config}{device}\n  bioptimus run {config} {workdir}'


def _command_of(asked: Any, file: str) -> str:
    """The command that gives the same without a question."""
    texts = ' '.join(shlex.quote(each) if SPLIT.search(each) else each for each in asked.texts)
    given = dataclasses.asdict(asked) | {'texts': texts, 'hours': f'{asked.hours:g}'}
    keys = [f'--config.{key}={value}' for key, value in given.pop('keys')]
    usual = {field.name: field.default for field in dataclasses.fields(asked)}
    flags = [f'--{name}={value}' for name, value in given.items() if value != usual[name]]
    return shlex.join(['bioptimus', 'init', file, *flags, *keys])


def _ask(options: Any) -> None:
    """Ask on a terminal for what the flags do not say; elsewhere what is needed must be given."""
    for question in QUESTIONS:
        if getattr(options, question.flag):
            continue
        if sys.stdin.isatty():
            setattr(options, question.flag, _answer(question))
        elif question.needed:
            raise ConfigError(f'--{question.flag} is missing: {question.text}')


def _answer(question: Question) -> Any:
    """What is typed, asked for again as long as it cannot be right."""
    while True:
        try:
            given = input(f'{question.text}: ').strip()
        except EOFError as error:
            raise ConfigError(f'no answer; give --{question.flag}') from error
        try:
            if given or not question.needed:
                return question.check(given)
        except (ConfigError, InputError, argparse.ArgumentTypeError) as error:
            print(printable(f'  {error}'))


VERB = Verb(
    *described(__doc__),
    (
        flag('file', 'file for the config (default: %(default)s)', 'mine.py', nargs='?', metavar='FILE'),
        flag('--source', f'{SOURCE} to adapt', metavar='MODEL'),
        flag('--texts', 'files or globs, as config.corpus.inputs', metavar='GLOBS'),
        flag('--sets', 'folder of sets to score on, as config.finetune.folder', metavar='FOLDER'),
        task_flag(),
        flag(
            '--device',
            f'cpu of this machine, or {", ".join(DEVICES)} (default: what is here)',
            type=_device,
            metavar='NAME',
        ),
        count('--devices', 'number of devices (default: all that are here, or 1)', 0),
        flag('--hours', 'hours that the run may take', None, type=positive, metavar='N'),
        flag('--vocabulary', 'keep, append or replace (default: as the texts say)', metavar='WHAT'),
        switch('--replace', 'overwrite FILE'),
    ),
    _call,
    ('corpus',),
    group=START,
)
