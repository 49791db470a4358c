"""`bioptimus demo`: run the whole job on generated text.

The whole job on generated text: no data, no download. To change it, copy configs/demo.py and use
`bioptimus run`.

reads:  nothing
writes: WORKDIR (the run), WORKDIR/source (the source model), WORKDIR/world

example:
  bioptimus demo --workdir=runs/demo
"""

from pathlib import Path

from bioptimus_jax.cli.command import START, Command, Verb, described, flag
from bioptimus_jax.hosts import signals
from bioptimus_jax.run.session import require_local


def _call(command: Command) -> None:
    from bioptimus_jax.demo.main import run_demo  # imports every stage

    require_local('--workdir', command.options.workdir)
    with signals.watching() as watch:
        run_demo(Path(command.options.workdir), watch)


VERB = Verb(
    *described(__doc__),
    (flag('--workdir', 'run folder (default: %(default)s)', 'runs/demo'),),
    _call,
    group=START,
)
