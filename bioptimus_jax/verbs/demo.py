"""`bioptimus demo`: the whole job on generated text."""

from pathlib import Path

from bioptimus_jax.command import Command, Verb, flag
from bioptimus_jax.hosts import signals
from bioptimus_jax.hosts.remote.session import require_local


def _call(command: Command) -> None:
    from bioptimus_jax.demo.main import run_demo  # imports every stage

    require_local('--workdir', command.options.workdir)
    with signals.watching() as watch:
        run_demo(Path(command.options.workdir), watch)


VERB = Verb(
    'the whole job on generated text',
    'The whole job on generated text: no data, no download. To change it, copy configs/demo.py and use\n'
    '`bioptimus run`.\n\n'
    'reads:  nothing\nwrites: WORKDIR (the run), WORKDIR/source (the source model), WORKDIR/world\n\n'
    'example:\n  bioptimus demo --workdir=runs/demo',
    (flag('--workdir', 'run folder (default: %(default)s)', 'runs/demo'),),
    _call,
)
