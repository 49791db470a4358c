"""`python -m bioptimus_jax.lab.arm PARENT CORES ARGUMENT ...`: the program as a sweep starts it, on cores of its own.

A process of its own, and no function that runs between fork and exec: the sweep may have threads, which a fork breaks.
"""

import ctypes
import os
import signal
import sys

from bioptimus_jax.hosts import signals

PARENT_DEATH_SIGNAL = 1  # prctl's PR_SET_PDEATHSIG


def main(arguments: list[str]) -> int:
    """Take the cores (1,2,3), ask for SIGTERM when the parent dies, so that no arm goes on unseen, and do the rest."""
    signals.listen()
    parent, cores, *rest = arguments
    if sys.platform == 'linux':
        os.sched_setaffinity(0, [int(core) for core in cores.split(',')])
        ctypes.CDLL(None).prctl(PARENT_DEATH_SIGNAL, signal.SIGTERM)
        if os.getppid() != int(parent):  # it died before it could be watched
            return 1
    # Late: numerical libraries count the cores when they are imported.
    from bioptimus_jax.cli.main import main as program

    return program(rest)


if __name__ == '__main__':
    sys.exit(main(sys.argv[1:]))
