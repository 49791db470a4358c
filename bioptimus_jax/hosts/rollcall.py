"""The roll call: processes of a run meet where jax's are to meet, so that one that never comes is named in a line.

jax would wait for it in silence, and then abort all that are there, with a trace of its C++. Here the first process
listens at that address, all others say who they are, and when everybody is there jax gets the port.
"""

import contextlib
import errno
import selectors
import socket
import time
from collections.abc import Iterable

from bioptimus_jax.errors import LOST, ConfigError
from bioptimus_jax.hosts.clusters import KEY, Member
from bioptimus_jax.hosts.lifelines import end

SECONDS = 300.0  # a queue may start hosts one after the other
QUIET_SECONDS = 10.0  # before a person is told that somebody is waited for
RETRY_SECONDS = 0.5
HANDOVER_SECONDS = 0.2  # for jax's service to be there: where it is not, jax looks again only after a second
LINE_BYTES = 500
READY, MISSING = 'ready', 'missing '
REMEDY = 'start the same command on every host, each with its own number, and let the hosts reach each other'


def meet(group: Member) -> None:
    """Return once all processes of the group are there; else end this one with a line and exit code LOST.

    Raises ConfigError where the port is taken, two processes have one number, or their counts differ.
    """
    if group.count == 1:
        _bound(group).close()
    elif group.index == 0:
        _gather(group)
    else:
        _report(group)


def _bound(group: Member) -> socket.socket:
    """A socket that listens at the port of the group."""
    # One socket for both protocols, where the system can: a follower's resolver may prefer either.
    dual = socket.has_dualstack_ipv6()
    try:
        return socket.create_server(
            ('', group.port), family=socket.AF_INET6 if dual else socket.AF_INET, dualstack_ipv6=dual
        )
    except OSError as error:
        reason = 'is taken by another program' if error.errno == errno.EADDRINUSE else f'is refused ({error})'
        raise ConfigError(
            f'{KEY}: port {group.port} of this host {reason}; give another one: HOST:PORT,PROCESSES,INDEX, or set '
            'JAX_COORDINATOR_PORT on all hosts where it is auto'
        ) from error


def _gather(group: Member) -> None:
    """The leader's part: wait for all others, then let them go on together."""
    here: dict[int, tuple[socket.socket, str]] = {}
    deadline, spoken = time.monotonic() + SECONDS, time.monotonic() + QUIET_SECONDS
    with contextlib.ExitStack() as stack, selectors.DefaultSelector() as selector:
        server = stack.enter_context(_bound(group))
        # A connection may be gone between `select` and `accept`, which would wait for the next one.
        server.setblocking(False)
        selector.register(server, selectors.EVENT_READ)
        while missing := sorted(set(range(1, group.count)) - here.keys()):
            now = time.monotonic()
            if now > deadline:
                _tell((other for other, _ in here.values()), MISSING + _named(missing))
                _give_up(group, _named(missing))
            if now > spoken:
                print(f'waiting at {group.address} for {_named(missing)} of {group.count}', flush=True)
                spoken = deadline + 1
            for key, _ in selector.select(RETRY_SECONDS):
                if key.fileobj is server:
                    with contextlib.suppress(OSError):  # gone again before it was let in
                        connection, _ = server.accept()
                        stack.enter_context(connection)
                        connection.setblocking(False)
                        selector.register(connection, selectors.EVENT_READ)
                else:
                    _hear(group, key.fileobj, selector, here)  # type: ignore[arg-type]
        _tell((other for other, _ in here.values()), READY)
        for connection, _ in here.values():  # who is told closes first, so that the port is free at once
            connection.settimeout(RETRY_SECONDS)
            with contextlib.suppress(OSError):
                connection.recv(1)


def _hear(
    group: Member,
    connection: socket.socket,
    selector: selectors.BaseSelector,
    here: dict[int, tuple[socket.socket, str]],
) -> None:
    """Take down who speaks, or that it has gone away again; strangers are sent away. Raises ConfigError."""
    try:
        words = connection.recv(LINE_BYTES).decode(errors='replace').split()
    except OSError:
        words = []
    known = next((index for index, (other, _) in here.items() if other is connection), None)
    if words[:1] == ['bioptimus'] and len(words) == 4 and words[1].isdecimal() and words[2].isdecimal():
        index, count, host = int(words[1]), int(words[2]), words[3]
        wrong = ''
        if count != group.count:
            wrong = f'process {index} on {host} was started as one of {count}, the first one as one of {group.count}'
        elif index in here:
            wrong = f'two processes have number {index}, on {here[index][1]} and on {host}'
        elif not index:
            wrong = f'a second process with number 0 is on {host}'
        if wrong:
            _tell([*(other for other, _ in here.values()), connection], f'wrong {wrong}')
            raise ConfigError(f'{KEY}: {wrong}; {REMEDY}')
        here[index] = (connection, host)
        return
    selector.unregister(connection)
    connection.close()
    if known is not None:
        del here[known]  # it may be started again


def _tell(connections: Iterable[socket.socket], message: str) -> None:
    for connection in connections:
        with contextlib.suppress(OSError):
            connection.sendall(f'{message}\n'.encode())


def _report(group: Member) -> None:
    """A follower's part: say who this is as soon as the leader is there, and wait for its word."""
    deadline, spoken = time.monotonic() + SECONDS, time.monotonic() + QUIET_SECONDS
    reason = ''
    while time.monotonic() < deadline:
        if time.monotonic() > spoken:
            print(f'waiting for process 0 at {group.address}{reason}', flush=True)
            spoken = deadline + 1
        try:
            with socket.create_connection((group.host, group.port), QUIET_SECONDS) as connection:
                # The leader may wait that long itself, and then says who is missing.
                connection.settimeout(SECONDS + QUIET_SECONDS)
                greeting = f'bioptimus {group.index} {group.count} {socket.gethostname()}\n'
                connection.sendall(greeting.encode())
                told = connection.makefile(encoding='utf-8', errors='replace').readline(LINE_BYTES).strip()
        except OSError as error:
            # Not there yet, or ended: hosts start in any order, so it is tried again until the time is up.
            reason, told = f' ({error})', ''
        if told == READY:
            time.sleep(HANDOVER_SECONDS)
            return
        if told.startswith(MISSING):
            _give_up(group, told.removeprefix(MISSING))
        if told.startswith('wrong '):
            raise ConfigError(f'{KEY}: {told.removeprefix("wrong ")}; {REMEDY}')
        time.sleep(RETRY_SECONDS)
    _give_up(group, f'process 0{reason}')


def _named(indices: list[int]) -> str:
    return f'process{"es" * (len(indices) > 1)} {", ".join(map(str, indices))}'


def _give_up(group: Member, missing: str) -> None:
    end(
        LOST,
        f'{KEY}: {missing} of {group.count} did not come to {group.address} within {SECONDS:.0f} seconds; {REMEDY}',
    )
