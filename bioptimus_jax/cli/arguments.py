"""What can be said on the command line: every verb with its flags, keys and help."""

import argparse
import re
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from bioptimus_jax import __version__
from bioptimus_jax.cli.command import GROUPS, FlagSettings, Verb, all_verbs, described_keys
from bioptimus_jax.config.fields import meant, walk
from bioptimus_jax.errors import ConfigError
from bioptimus_jax.experiment.schema import Experiment

SYNOPSIS = 'bioptimus VERB --config=NAME_or_FILE[:argument] --workdir=DIR [--config.key=value ...]'
PROGRAM_HELP = """
Adapt a general encoder to a domain: corpus, vocabulary, embedding surgery, curriculum masked-LM
pre-training, Hugging Face export, scores on entities and on texts (classes, relations, questions,
similarity), report.

exit codes: 0 done, 2 wrong usage or configuration, 3 bad input, 75 stopped by SIGTERM or SIGHUP
after saving, 130 by Ctrl-C (start it again), 69 another process of the same run is gone (start all
of them again), 1 anything else

examples:
  bioptimus demo --workdir=runs/demo
  bioptimus run --config=small --workdir=runs/small --config.source.path=FOLDER
  bioptimus pretrain --help
"""


OTHERS = {
    **dict.fromkeys(('help', 'usage'), '--help'),
    'version': '--version',
    **dict.fromkeys(('tag', 'annotate', 'infer', 'inference', 'apply'), 'predict'),
    **dict.fromkeys(('eval', 'evaluate', 'test'), 'score (predictions) or finetune (models)'),
    **dict.fromkeys(('train', 'fit', 'adapt'), 'run (all stages) or pretrain (one)'),
    **dict.fromkeys(('tokenizer', 'tokenize', 'vocabulary'), 'vocab'),
    **dict.fromkeys(('start', 'resume', 'continue', 'all'), 'run'),
    **dict.fromkeys(('preprocess', 'prepare', 'data'), 'corpus'),
    **dict.fromkeys(('convert', 'save'), 'export'),
    **dict.fromkeys(('ablation', 'ablate', 'grid', 'search'), 'sweep'),
    **dict.fromkeys(('estimate', 'cost', 'memory'), 'plan'),
    **dict.fromkeys(('plot', 'figures', 'tables', 'page'), 'report'),
    **dict.fromkeys(('fetch', 'get'), 'download'),
    **dict.fromkeys(('average', 'soup'), 'merge'),
    **dict.fromkeys(('upload', 'publish'), 'push'),
    **dict.fromkeys(('check', 'validate'), 'lint (data sets) or doctor (this machine)'),
    **dict.fromkeys(('config', 'list', 'ls', 'info'), 'show or status'),
}
"""Verbs of other programs, and ours that do the same."""
CHOICE = re.compile(r"invalid choice: '(.*)' \(choose from (.*)\)")  # as argparse says it


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> None:  # type: ignore[override]
        wrong = CHOICE.search(message)
        if wrong and message.startswith('argument VERB'):
            said = meant_verb(wrong[1])
            raise ConfigError(f'{self.prog} has no verb {wrong[1]!r}; `{self.prog} --help` lists all{said}')
        near = meant(wrong[1], re.findall(r'[\w-]+', wrong[2])) if wrong else ''
        raise ConfigError(f'{message}; see `{self.prog} --help`{near}')


class _Help(argparse.Action):
    """`--help` and `--help-all`: the keys of the configuration are described when they are asked for."""

    def __call__(self, parser: argparse.ArgumentParser, options: argparse.Namespace, *_: Any) -> None:
        verb = parser.get_default('chosen')
        if verb.keys:
            name = parser.prog.split()[-1]
            parser.epilog = described_keys(name, verb, self.const).replace('%', '%%')
        parser.print_help()
        parser.exit()


def make_parser() -> argparse.ArgumentParser:
    """The parser of the whole command line. What it finds wrong it raises as ConfigError."""
    plain = argparse.RawDescriptionHelpFormatter
    verbs = all_verbs()
    parser = _Parser('bioptimus', SYNOPSIS, PROGRAM_HELP, epilog=grouped(verbs), formatter_class=plain)
    parser.add_argument('-V', '--version', action='version', version=f'bioptimus {__version__}')
    known = parser.add_subparsers(
        dest='verb', metavar='VERB', parser_class=_Parser, prog='bioptimus', help='one of those below'
    )
    for name, verb in verbs.items():
        one = known.add_parser(name, description=verb.text, add_help=False, formatter_class=plain)
        one.add_argument('-h', '--help', action=_Help, nargs=0, const=False, help='show this help and exit')
        if verb.keys:
            what = 'the same with every key of the configuration that it reads'
            one.add_argument('--help-all', action=_Help, nargs=0, const=True, help=what)
        for flag, settings in verb.flags:
            one.add_argument(flag, **settings)
        one.set_defaults(chosen=verb)
    return parser


def grouped(verbs: Mapping[str, Verb]) -> str:
    """Every verb with its line, in groups."""
    lines = []
    for group, what in GROUPS.items():
        members = {name: verb for name, verb in verbs.items() if verb.group == group}
        lines += [f'{group}: {what}'] if members else []
        for name, verb in members.items():
            lines += textwrap.wrap(verb.short, 96, initial_indent=f'  {name:<13}', subsequent_indent=15 * ' ')
        lines += [''] * bool(members)
    return '\n'.join(lines).rstrip().replace('%', '%%')


def check_flags(arguments: Sequence[str]) -> None:
    """Raise ConfigError for a flag or a word that the verb does not have, before argparse asks for what is missing."""
    name, *rest = arguments or ('',)
    verbs = all_verbs()
    if name == 'help' and rest and rest[0] in verbs:
        raise ConfigError(f'bioptimus has no verb {name!r}; did you mean `bioptimus {rest[0]} --help`?')
    if (verb := verbs.get(name)) is None:
        return
    flags = {flag: settings for flag, settings in verb.flags if flag.startswith('-')}
    words = [settings['metavar'] for flag, settings in verb.flags if flag not in flags]
    before = rest[: rest.index('--') if '--' in rest else None]
    for given in before:
        flag = given.partition('=')[0]
        every = ('--help', *('--help-all',) * bool(verb.keys), *flags)
        named = any(one.startswith(flag) for one in every)  # argparse takes beginnings
        if flag.startswith('--') and not named:
            said = _meant_flag(name, flag.removeprefix('--'), list(flags), words) or meant(flag, flags)
            raise ConfigError(f'{name} has no {flag}; see `bioptimus {name} --help`{said}')
    if not words and (word := next(_without_flag(before, flags), None)) is not None:
        raise ConfigError(
            f'{name} takes no {word!r} without a flag; see `bioptimus {name} --help`{_as_flag(word, flags)}'
        )


def _without_flag(arguments: Sequence[str], flags: Mapping[str, FlagSettings]) -> Iterator[str]:
    """The words of a command that are neither flags nor their values."""
    waiting = list(arguments)
    while waiting:
        word = waiting.pop(0)
        if not word.startswith('-'):
            yield word
        elif '=' not in word:
            named = [flags[flag] for flag in flags if flag.startswith(word)]
            settings: FlagSettings = named[0] if named else {'action': 'help'}
            if 'action' not in settings or settings['action'] == 'append':
                values = settings.get('nargs', 1)
                if values == '?':
                    values = sum(not word.startswith('-') for word in waiting[:1])
                del waiting[:values]


def _as_flag(word: str, flags: Mapping[str, FlagSettings]) -> str:
    """A hint for a word that looks like the value of a flag or key whose name was left out."""
    key, equals, value = word.removeprefix('config.').partition('=')
    if equals and ('.' in key or key in dict.fromkeys(name for name, *_ in walk(Experiment()))):
        return f'; did you mean --config.{key}={value}?'
    first = next((flag for flag, settings in flags.items() if settings.get('required')), '')
    return f'; did you mean {first}={word}?' if first else ''


def _meant_flag(verb: str, name: str, known: Sequence[str], words: Sequence[str]) -> str:
    """The end of a message about a flag that is a key without its beginning, or another verb's; else ''.

    `words`: what the verb takes without a flag.
    """
    called = 'RUN' if name == 'workdir' else name.upper().rstrip('S')
    if called in [word.rstrip('S') for word in words]:
        return f'; {" ".join(words)} {"stand" if len(words) > 1 else "stands"} without a flag'
    keys = [key for key, _, _ in walk(Experiment())]
    if name in keys or ('.' in name and name.partition('.')[0] in {key.partition('.')[0] for key in keys}):
        return f'; keys begin with --config.: --config.{name}{meant(name, keys) if name not in keys else ""}'
    if name == 'dry-run':
        return (
            f'; did you mean `bioptimus {verb} --status`?'
            if '--status' in known
            else '; `bioptimus run` has it'
        )
    return ''


def meant_verb(name: str) -> str:
    """The end of a message about a verb that is not known: the nearest, or those that other programs call so."""
    said, known = OTHERS.get(name.lower(), ''), all_verbs()
    if said.startswith('--') or said.partition(' ')[0] in known:
        return f'; did you mean {said}?'
    return meant(name, known)


def take_overrides(arguments: list[str]) -> tuple[list[tuple[str, str]], list[str]]:
    """Split off `--config.key=value` and `--config.key value`."""
    overrides, rest = [], []
    waiting = iter(arguments)
    for argument in waiting:
        if not argument.startswith('--config.'):
            rest.append(argument)
            continue
        name, equals, value = argument.removeprefix('--config.').partition('=')
        if not equals:
            value = next(waiting, '')
            if not value or value.startswith('--'):
                raise ConfigError(f'{argument}: a value is missing; write {argument}=VALUE')
        overrides.append((name, value))
    return overrides, rest
