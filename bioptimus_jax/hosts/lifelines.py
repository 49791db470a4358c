"""Lifelines: a connection from every process of a run to the leader, by which each learns how another has ended.

A collective waits for ever for a process that was killed, or fails without saying whose fault it was; jax itself
notices after its heartbeat time-out and aborts with a trace of its C++. Here the kernel tells within a moment, for a
lost host within `config.runtime.lost_after_seconds`, and every process ends with one line and exit code LOST.

What is told, a line each: `stop` (a signal came here), `lost NAME`, `end EXIT_CODE` (said by who leaves in order).
"""

import contextlib
import dataclasses
import os
import secrets
import socket
import threading
import time
from typing import IO, NoReturn

from bioptimus_jax.errors import DONE, LOST, SAVED, ConfigError
from bioptimus_jax.progress.console import complain

GRACE_SECONDS = 10.0  # for the thread that knows more about an end to say it
HEAR_SECONDS = 1.0  # until what another has said last is heard here
STOP_SECONDS = 60.0  # for everybody to save
CONNECT_SECONDS = 60.0
_speaking = threading.Lock()


@dataclasses.dataclass
class Line:
    """The connection to one other process; `code` is its exit code once it has left in order."""

    name: str
    connection: socket.socket
    reader: IO[str]
    code: int | None = None
    ended: threading.Event = dataclasses.field(default_factory=threading.Event)

    def tell(self, message: str) -> None:
        with contextlib.suppress(OSError):  # gone: the listening thread says so
            self.connection.sendall(f'{message}\n'.encode())


class Lifelines:
    """All connections of this process, by `number`: the leader's (0) to everybody, a follower's to the leader."""

    def __init__(self, lines: list[Line], number: int):
        self.lines = lines
        self.number = number
        # Somebody was asked to stop: the leader saves, and all stop with it.
        self.stopping = threading.Event()
        for line in lines:
            threading.Thread(target=self._listen, args=(line,), daemon=True).start()

    @property
    def leader_code(self) -> int | None:
        """The exit code with which the leader has left, for a follower; None while it is there."""
        return self.lines[0].code

    def tell(self, message: str) -> None:
        for line in self.lines:
            line.tell(message)

    def wait(self) -> None:
        """Wait until everybody has left in order."""
        for line in self.lines:
            line.ended.wait()

    def give_way(self) -> None:
        """Wait after a failure that another process may have caused: where one has ended, its line ends this one."""
        time.sleep(HEAR_SECONDS)
        if any(line.ended.is_set() for line in self.lines):
            time.sleep(2 * GRACE_SECONDS)

    def _listen(self, line: Line) -> None:
        with contextlib.suppress(OSError):  # reset, or silent for too long
            for message in line.reader:
                self._heard(line, message.strip())
        if not line.ended.is_set():
            self._lost(line.name)

    def _heard(self, line: Line, message: str) -> None:
        kind, _, rest = message.partition(' ')
        if kind == 'stop':
            self.stopping.set()
        elif kind == 'lost':
            self._lost(rest)
        elif kind == 'end':
            line.code = int(rest)
            line.ended.set()
            if line.code in SAVED:
                self.stopping.set()
            if line.code != DONE:
                # Whatever ended the other is most often ending us too, with a better line; a collective would hang.
                time.sleep(STOP_SECONDS if line.code in SAVED else GRACE_SECONDS)
                self.tell(message)
                end(line.code, f'{line.name} ended with exit code {line.code}; its own last line says why')

    def _lost(self, name: str) -> NoReturn:
        self.tell(f'lost {name}')
        end(
            LOST,
            f'{name} is gone: it was killed, or its host or network failed; '
            'rerun the same command everywhere; it continues from the last checkpoint',
        )


def end(code: int, text: str) -> NoReturn:
    """Say one line and end this process at once, whatever its other threads wait for. The first caller speaks."""
    _speaking.acquire()  # and never released: of threads that end at once, the others wait here until the exit
    complain(text)
    os._exit(code)


def listen() -> tuple[socket.socket, str]:
    """The leader's socket, and what the others must know to connect: `PORT SECRET`."""
    dual = socket.has_dualstack_ipv6()
    family = socket.AF_INET6 if dual else socket.AF_INET
    server = socket.create_server(('', 0), family=family, dualstack_ipv6=dual)
    return server, f'{server.getsockname()[1]} {secrets.token_hex(16)}'


def accept(server: socket.socket, secret: str, others: int, lost_after: int) -> Lifelines:
    """The leader's lifelines, once all others have connected. Raises ConfigError when one does not."""
    lines: list[Line] = []
    server.settimeout(CONNECT_SECONDS)
    with server:
        while len(lines) < others:
            try:
                connection, _ = server.accept()
            except TimeoutError as error:
                raise ConfigError(
                    f'config.runtime.distributed: {others - len(lines)} of {others} processes do not reach the '
                    'leader; let the hosts connect to each other on all ports'
                ) from error
            line = _greeted(connection, secret)
            if line:
                _notice_silence(connection, lost_after)
                lines.append(line)
    return Lifelines(lines, number=0)


def _greeted(connection: socket.socket, secret: str) -> Line | None:
    """The line of a process that knows the secret; anybody else is sent away."""
    connection.settimeout(CONNECT_SECONDS)
    reader = connection.makefile(encoding='utf-8', errors='replace')
    with contextlib.suppress(OSError):
        told, _, name = reader.readline(500).strip().partition(' ')
        if secrets.compare_digest(told.encode(), secret.encode()):
            connection.settimeout(None)
            return Line(name, connection, reader)
    connection.close()
    return None


def connect(leader: str, told: str, index: int, lost_after: int) -> Lifelines:
    """A follower's lifeline to the host `leader`, where `told` is what `listen` gave. Raises ConfigError."""
    port, secret = told.split()
    try:
        connection = socket.create_connection((leader, int(port)), CONNECT_SECONDS)
    except OSError as error:
        raise ConfigError(
            f'config.runtime.distributed: process {index} does not reach the leader at {leader}:{port} ({error}); '
            'let the hosts connect to each other on all ports'
        ) from error
    connection.settimeout(None)
    _notice_silence(connection, lost_after)
    connection.sendall(f'{secret} process {index} on {socket.gethostname()}\n'.encode())
    line = Line(f'process 0 on {leader}', connection, connection.makefile(encoding='utf-8'))
    return Lifelines([line], number=index)


def _notice_silence(connection: socket.socket, seconds: int) -> None:
    """Let the kernel probe the other host: reading fails when it has not answered for so long."""
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    every = max(1, seconds // 6)
    for name, value in (('TCP_KEEPIDLE', 2 * every), ('TCP_KEEPINTVL', every), ('TCP_KEEPCNT', 4)):
        if hasattr(socket, name):
            connection.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)
