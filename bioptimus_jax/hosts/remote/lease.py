"""Who works on a run in a bucket: one object that its holder renews, so that two machines never write into one run."""

import contextlib
import dataclasses
import json
import os
import socket
import threading
import time
import uuid
from collections.abc import Callable
from pathlib import Path

from bioptimus_jax.errors import ConfigError, InputError
from bioptimus_jax.hosts.remote.store import Store
from bioptimus_jax.records.record import Record, left_out

NAME = '.remote/lease.json'
RENEW_SECONDS = 20.0
STALE_SECONDS = 70.0  # not renewed for so long: the holder is dead; three renewals may fail
LOOK_SECONDS = 2.0
REMEDY = 'remove the object if no machine works on the run'


@dataclasses.dataclass(frozen=True)
class Holder(Record):
    """Who holds a lease: a process and the place where it works.

    `token`: another one each time that it is taken. `renewed`: when, by the clock of the holder.
    """

    host: str
    pid: int
    place: str
    token: str
    renewed: float | None = left_out()

    def __str__(self) -> str:
        return f'{self.host} (process {self.pid})'


class Taken(InputError):
    """Another machine has taken the lease: what this one has must not go there any more."""


class Lease:
    """The right to write into the run at `store`, renewed by a thread until `release`.

    `place` says where this process works: nobody else can there, so a lease of the same place is left by a kill.
    """

    def __init__(self, store: Store, place: str, say: Callable[[str], None], check: Callable[[], None]):
        self.store, self.say, self.check = store, say, check
        host = socket.gethostname()
        self.own = Holder(host, os.getpid(), f'{machine()}:{host}:{place}', uuid.uuid4().hex)
        self.ended = threading.Event()
        self.thread = threading.Thread(target=self._renew, daemon=True)

    def acquire(self) -> None:
        """Take the lease. Raises ConfigError while another machine renews it; one that nobody renews is taken over."""
        held = self._read()
        if held and held.place != self.own.place:
            self._wait_until_stale(held)
        self._write()
        # If two write at once the store keeps the last one, and the other sees it here.
        if (found := self._read()) is None or found.token != self.own.token:
            raise ConfigError(f'{self._held_by(found)}; it came first')
        self.thread.start()

    def _wait_until_stale(self, held: Holder) -> None:
        """Wait until the lease is abandoned: unchanged by this machine's clock, since clocks differ."""
        self.say(f'{self.store.url}: {held} holds it; looking for {STALE_SECONDS:.0f} s whether it is alive')
        until = time.monotonic() + STALE_SECONDS
        while time.monotonic() < until:
            self.check()
            time.sleep(LOOK_SECONDS)
            found = self._read()
            if found is None:
                return
            # A renewal changes the time in it, so a change means that the holder lives.
            if found != held:
                raise ConfigError(f'{self._held_by(found)}; wait for it or stop it, or use another --workdir')
        self.say(f'{self.store.url}: taken over from {held.host}, which is gone')

    def _held_by(self, held: Holder | None) -> str:
        return f'{self.store.url}: {held or "another machine"} is working on it'

    def require(self) -> None:
        """Raise Taken if another machine has the lease."""
        found = self._read()
        if found and found.token != self.own.token:
            raise Taken(
                f'{self._held_by(found)}, having found this one silent; stop that one, or use another --workdir'
            )

    def release(self) -> None:
        """Give it back, so that the next machine need not wait."""
        self.ended.set()
        if self.thread.is_alive():
            self.thread.join()
        with contextlib.suppress(InputError):
            if (found := self._read()) and found.token == self.own.token:
                self.store.remove([NAME])

    def _renew(self) -> None:
        while not self.ended.wait(RENEW_SECONDS):
            with contextlib.suppress(InputError):  # a network that is away for a while; `require` will tell
                # Only while it is this one's, or gone: to renew a lease that was taken over would take it back.
                if (self._read() or self.own).token == self.own.token:
                    self._write()

    def _read(self) -> Holder | None:
        content = self.store.read(NAME)
        return Holder.read(json.loads(content), f'{self.store.url}/{NAME}', REMEDY) if content else None

    def _write(self) -> None:
        renewed = dataclasses.replace(self.own, renewed=round(time.time(), 3))
        self.store.write(NAME, json.dumps(renewed.json()).encode())


def machine() -> str:
    """What tells this machine, since its last start, from every other of the same name."""
    with contextlib.suppress(OSError):
        return Path('/proc/sys/kernel/random/boot_id').read_text('utf-8').strip()
    return f'{uuid.getnode():x}'
