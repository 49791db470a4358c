"""No network and no waiting for the disk in tests, in every process that they start.

Python refuses to reach anything but this machine. A kill loses nothing that was written, only a power cut does, so
nothing that tests can see depends on os.fsync: a sixth of the time of some of them.

Python imports a module of this name by itself when it starts; conftest.py puts the folder on PYTHONPATH.
"""

import ipaddress
import os
import socket
import sys

CALLS = ('socket.connect', 'socket.sendto', 'socket.getaddrinfo', 'socket.gethostbyname')


def is_local(host: object) -> bool:
    """Whether a host is this machine: no host, localhost, a loopback address."""
    name = host.decode('ascii', 'replace') if isinstance(host, bytes) else host
    if name in (None, '', 'localhost', '0.0.0.0', '::'):
        return True
    try:
        return ipaddress.ip_address(str(name)).is_loopback
    except ValueError:
        return False


def refuse(event: str, arguments: tuple) -> None:
    """The hook: what it raises, the call raises."""
    if event not in CALLS:
        return
    # Sends nothing: dask asks the kernel in this way for the address of this machine.
    if event == 'socket.connect' and arguments[0].type == socket.SOCK_DGRAM:
        return
    # connect and sendto: (socket, address), where a Unix socket's address is a path; the others: (host, ...).
    place = arguments[1] if event in CALLS[:2] else arguments
    host = place[0] if isinstance(place, tuple) else None
    if not is_local(host):
        raise RuntimeError(f'tests reach no network: {event} to {host!r}')


def fsync(_descriptor: int) -> None:
    """Do nothing where os.fsync would wait for the disk."""


os.fsync = fsync
sys.addaudithook(refuse)
