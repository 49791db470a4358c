"""Signals that ask this program to end: SIGTERM and SIGHUP (exit code 75), SIGINT, which is Ctrl-C (130).

One thread waits for them and all others block them. So nothing is interrupted where it stands, a signal is heard while
the main thread is inside a library, and child processes begin with them blocked: only their parent ends them.
"""

import contextlib
import errno
import io
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any, Protocol

from bioptimus_jax.errors import INTERRUPTED, STOPPED
from bioptimus_jax.progress.console import complain

ASKING = {signal.SIGTERM: STOPPED, signal.SIGHUP: STOPPED, signal.SIGINT: INTERRUPTED}
ELSE_SAVED, AGAIN = 'everything else is saved', 'rerun the same command'
GRACE_SECONDS = 0.3  # from the end of who reads our output to the signal that may have ended it

_listener: threading.Thread | None = None
_changing = threading.Lock()
_asked: list[int] = []
_watched: list['Watched'] = []
_outcome: int | None = None


class Watched(Protocol):
    """Work that saves and raises Stopped soon after its `stopping` was set."""

    stopping: threading.Event


def listen() -> None:
    """The first thing that the program does. Ctrl-C or hang-ups that it was started to ignore (nohup) stay ignored."""
    global _listener
    if _listener:
        return
    # Blocked before the thread begins, so that it and all later threads inherit the mask: only `sigwait` hears them.
    heard = {n for n in ASKING if n == signal.SIGTERM or signal.getsignal(n) is not signal.SIG_IGN}
    signal.pthread_sigmask(signal.SIG_BLOCK, heard)
    _listener = threading.Thread(target=_listen, args=(heard,), daemon=True)
    _listener.start()
    for number in heard:
        signal.signal(number, _pass_on)
    for name in ('stdout', 'stderr'):
        if stream := getattr(sys, name):
            setattr(sys, name, _reopened(stream))


def asked() -> int:
    """The exit code that the first signal asks for; STOPPED before any came."""
    return ASKING[signal.Signals(_asked[0])] if _asked else STOPPED


@contextlib.contextmanager
def watching() -> Iterator[Callable[[Watched], None]]:
    """A context in which signals do not end the program: they ask what was handed to the function it gives to save and
    stop.

    Only a second Ctrl-C ends it at once, as every signal does outside.
    """

    def watch(work: Watched) -> None:
        with _changing:
            _watched.append(work)
            if _asked:
                work.stopping.set()

    try:
        yield watch
    finally:
        with _changing:
            _watched.clear()


def leave(code: int) -> int:
    """The exit code, which signals do not change any more: what is left is the interpreter's own end."""
    global _outcome
    if _listener:
        _outcome = code
    return code


@contextlib.contextmanager
def held() -> Iterator[None]:
    """Processes that are started within it begin with these signals blocked, also where nobody listens."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, ASKING)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def ignore() -> None:
    """Ignore signals in a worker process: its parent is asked."""
    for number in ASKING:
        signal.signal(number, signal.SIG_IGN)


def last_words(lost: str = '') -> str:
    """What the program says when it ends by a signal once everything is saved but what is `lost`."""
    saved = f'{lost}; {ELSE_SAVED}' if lost else 'everything is saved'
    return f'{_word()}; {saved}; {AGAIN} to continue'


def _word() -> str:
    return 'interrupted' if asked() == INTERRUPTED else 'stopped'


def _pass_on(number: int, _: Any) -> None:
    """Pass on a signal that a library has let through to another thread."""
    if _listener and _listener.ident:
        signal.pthread_kill(_listener.ident, number)


def _listen(heard: set[signal.Signals]) -> None:
    while True:
        number = signal.sigwait(heard)
        with _changing:
            if _outcome is not None:
                os._exit(_outcome)
            # SIGTERM and SIGHUP may come several times for one wish to stop; only a second Ctrl-C means at once.
            again = number == signal.SIGINT and number in _asked
            _asked.append(number)
            # A later signal, with no work to watch any more: the program was asked before, and is ending by itself.
            at_once = again or not (_watched or _asked[1:])
            for work in _watched:
                work.stopping.set()
        if at_once:
            complain(f'{_word()}; {AGAIN}')
            os._exit(asked())
        if number == signal.SIGINT and sys.stderr.isatty():  # until the last line replaces it
            print(
                '\r\x1b[Ksaving; press Ctrl-C again to quit without saving',
                end='',
                file=sys.stderr,
                flush=True,
            )


class _Stream(io.FileIO):
    """Standard output or error. Its reader (tee) may be ended by the signal that asks us to save: we go on to do so."""

    told = False  # that nobody reads any more; once is enough

    def write(self, data: Any) -> int:
        try:
            return super().write(data)
        except OSError as error:
            if error.errno not in (errno.EPIPE, errno.EIO):  # of a pipe, of a terminal
                raise
            if not (_asked or self.told):
                time.sleep(GRACE_SECONDS)
            if not (_asked or self.told):
                self.told = True
                raise
            return len(data)


def _reopened(stream: Any) -> io.TextIOWrapper:
    return io.TextIOWrapper(
        io.BufferedWriter(_Stream(stream.fileno(), 'w', closefd=False)),
        stream.encoding,
        stream.errors,
        line_buffering=stream.line_buffering,
        write_through=stream.write_through,
    )
