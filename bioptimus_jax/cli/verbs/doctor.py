"""`bioptimus doctor`: check devices, versions and speed of this machine, and say what to install.

What will jax and PyTorch compute on here, and what is missing? Devices, memory, drivers and versions; the
attention that a base model would get; the speed of a matrix product beside the peak; free disk; and the
command that installs what is missing. Ends with 2 where a GPU or TPU of this machine would not be used.

reads:  nothing
writes: a list to the terminal

example:
  bioptimus doctor --workdir=/scratch/runs
"""

from pathlib import Path

from bioptimus_jax.cli.command import START, Command, Verb, described, flag
from bioptimus_jax.errors import ConfigError, printable

WIDTH = 15


def _call(command: Command) -> None:
    from bioptimus_jax.start.doctor import examine  # imports jax and torch

    bad = []
    for finding in examine(Path(command.options.workdir).absolute()):
        remedy = f'\n{"":{WIDTH}} {"WRONG" if finding.bad else "note"}: {finding.remedy}' * bool(
            finding.remedy
        )
        print(printable(f'{finding.what:{WIDTH}} {finding.found}{remedy}'), flush=True)
        bad += [finding.what] * finding.bad
    if bad:
        raise ConfigError(f'{", ".join(bad)}: wrong, see above')


VERB = Verb(
    *described(__doc__),
    (flag('--workdir', 'folder for runs (default: %(default)s)', '.', metavar='DIR'),),
    _call,
    group=START,
)
