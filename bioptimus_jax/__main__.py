"""The program from its first line on: `bioptimus`, or `python -m bioptimus_jax`."""

import signal
import sys

# Before any import that takes time: what comes from now on waits for `listen`.
signal.pthread_sigmask(signal.SIG_BLOCK, (signal.SIGTERM, signal.SIGHUP, signal.SIGINT))


def main() -> int:
    """Listen to signals, then import what takes seconds and run one verb; returns the exit code."""
    from bioptimus_jax.hosts import signals

    signals.listen()
    from bioptimus_jax.cli.main import main as program

    return program()


if __name__ == '__main__':
    sys.exit(main())
