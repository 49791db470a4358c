"""What can be said on the command line: every verb with its flags, keys and help."""

import argparse

from bioptimus_jax import __version__
from bioptimus_jax.command import Verb, described_keys, stage_verb
from bioptimus_jax.errors import ConfigError
from bioptimus_jax.fields import now_called_in
from bioptimus_jax.plugins import Plugins
from bioptimus_jax.stages import STAGES

VERBS = Plugins('bioptimus_jax.verbs', 'VERB')
SYNOPSIS = 'bioptimus VERB --config=NAME_or_FILE[:argument] --workdir=DIR [--config.key=value ...]'
PROGRAM_HELP = """
Adapt a general encoder to a domain: corpus, vocabulary, embedding surgery, curriculum masked-LM
pre-training, Hugging Face export, NER scores, report.

exit codes: 0 done, 2 wrong usage or configuration, 3 bad input, 75 stopped by SIGTERM or SIGHUP
after saving, 130 by Ctrl-C (start it again), 69 another process of the same run is gone (start all
of them again), 1 anything else

examples:
  bioptimus demo --workdir=runs/demo
  bioptimus run --config=small --workdir=runs/small --config.source.path=FOLDER
  bioptimus pretrain --help
"""


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> None:  # type: ignore[override]
        raise ConfigError(f'{message}; see `{self.prog} --help`{now_called_in(message)}')


def all_verbs() -> dict[str, Verb]:
    """Every verb by its name: the stages in their order, then the files of verbs/, some of them stages with flags."""
    named = {name: stage_verb(stage) for name, stage in STAGES.items()}
    return named | {name: VERBS.load(name) for name in VERBS}


def make_parser() -> argparse.ArgumentParser:
    """The parser of the whole command line. What it finds wrong it raises as ConfigError."""
    plain = argparse.RawDescriptionHelpFormatter
    parser = _Parser('bioptimus', SYNOPSIS, PROGRAM_HELP, formatter_class=plain)
    parser.add_argument('-V', '--version', action='version', version=f'bioptimus {__version__}')
    known = parser.add_subparsers(dest='verb', metavar='VERB', parser_class=_Parser, prog='bioptimus')
    for name, verb in all_verbs().items():
        one = known.add_parser(
            name,
            help=verb.short.replace('%', '%%'),
            description=verb.text,
            epilog=described_keys(verb.keys) if verb.keys else None,
            formatter_class=plain,
        )
        for flag, settings in verb.flags:
            one.add_argument(flag, **settings)
        one.set_defaults(chosen=verb)
    return parser


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
