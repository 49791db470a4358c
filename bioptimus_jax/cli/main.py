"""The `bioptimus` program: verbs, flags, exit codes.

0 done, 2 wrong usage or configuration, 3 bad input or a full disk, 75 stopped by SIGTERM or SIGHUP after saving, 130 by
Ctrl-C (start it again), 69 another process of the same run is gone or never came (start all again), 1 anything else.
"""

import contextlib
import os
import select
import signal
import sys
import time
import traceback
from collections.abc import Sequence
from typing import NoReturn

from bioptimus_jax.cli.arguments import check_flags, make_parser, take_overrides
from bioptimus_jax.cli.command import Command
from bioptimus_jax.config.fields import check_text
from bioptimus_jax.errors import (
    BAD_INPUT,
    DONE,
    FAILED,
    USAGE,
    Afresh,
    ConfigError,
    InputError,
    Paused,
    Stopped,
    of_the_system,
)
from bioptimus_jax.hosts import signals
from bioptimus_jax.hosts.devices import AFRESH
from bioptimus_jax.hosts.settled import settle_jax
from bioptimus_jax.progress.console import complain, crash_file
from bioptimus_jax.run import processes

UNREAD = 128 + signal.SIGPIPE  # what a shell says of others in such a pipe


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one verb; returns the exit code and prints one line for whatever went wrong."""
    if arguments is None:
        signals.listen()
    settle_jax()
    code = _outcome(list(sys.argv[1:] if arguments is None else arguments))
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        code = code or UNREAD
    return signals.leave(processes.leave(code))


def _outcome(arguments: list[str]) -> int:
    began = time.time()
    try:
        return _dispatch(arguments)
    except ConfigError as error:
        return _fail(str(error), USAGE)
    except InputError as error:
        return _fail(str(error), BAD_INPUT)
    except Afresh:
        _replace_this_process(began)
    except Paused as pause:
        print(pause)
        return DONE
    except Stopped as stop:
        return _fail(signals.last_words(str(stop)), signals.asked())
    except BrokenPipeError:
        return UNREAD if _reader_is_gone() else _crash()
    except Exception as error:
        processes.settle()
        refused = of_the_system(error)
        return _fail(refused, BAD_INPUT) if refused else _crash()


def _replace_this_process(began: float) -> NoReturn:
    """Give the same command again in the place of this process, which goes on where it is."""
    # Not a child: whoever started this process waits for it, signals it and reads its exit code. The driver takes back
    # what jax held of the devices when the program is replaced.
    sys.stdout.flush()
    os.environ[AFRESH] = f'{os.getpid()} {began}'
    os.execv(sys.executable, [sys.executable, *sys.orig_argv[1:]])


def _reader_is_gone() -> bool:
    """Whether what is printed has nowhere to go, as behind `| head`, and no other pipe is the broken one."""
    poll = select.poll()
    poll.register(sys.stdout, 0)
    return any(event & select.POLLERR for _, event in poll.poll(0))


def _dispatch(arguments: list[str]) -> int:
    for argument in arguments:
        check_text(argument, 'the command line')
    parser, (overrides, flags) = make_parser(), take_overrides(arguments)
    check_flags(flags)
    options = parser.parse_args(flags)
    if options.verb is None:
        parser.print_help()
        return USAGE
    if getattr(options, 'workdir', None) == '':
        raise ConfigError('--workdir is empty; name a folder')
    if overrides and options.chosen.keys is None:
        raise ConfigError(f'{options.verb} takes no --config keys; see `bioptimus {options.verb} --help`')
    command = Command(options, overrides, arguments)
    # Behind `Command`, which has kept the true stdout for the one document.
    with (
        contextlib.redirect_stdout(sys.stderr)
        if getattr(options, 'json', False)
        else contextlib.nullcontext()
    ):
        options.chosen.call(command)
    return DONE


def _fail(message: str, code: int) -> int:
    complain(message)
    return code


def _crash() -> int:
    """A defect of ours: one line, and the traceback where it can be found."""
    error, where = sys.exc_info()[1], ''
    with contextlib.suppress(OSError):
        where = f'; the details are in {crash_file(traceback.format_exc())}'
    return _fail(f'unexpected {type(error).__name__}: {error}{where}', FAILED)


if __name__ == '__main__':
    sys.exit(main())
