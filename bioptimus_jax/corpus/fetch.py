"""One file of a web server: asked for again after a failure, continued where it was cut off, given up in the end."""

import asyncio
import contextlib
import dataclasses
import email.utils
import random
import ssl
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TypeVar

import httpx2

from bioptimus_jax.errors import ConfigError, InputError
from bioptimus_jax.progress.console import clock
from bioptimus_jax.storage.files import read_json, write_json

TRY_AGAIN = (408, 425, 429)  # and everything from 500 on
LONGEST_PAGE = 2**24  # a list of the whole baseline is a fiftieth of it
T = TypeVar('T')


class PassingFailure(Exception):
    """A failure that may pass; the server may have asked for a pause of `seconds`."""

    def __init__(self, reason: str, seconds: float = 0):
        super().__init__(reason)
        self.seconds = seconds


class LastingFailure(Exception):
    """A failure that another try would only repeat, or that came too often; the message is the reason alone."""


@dataclasses.dataclass(frozen=True)
class Patience:
    """How long a weak server is borne: `tries` that bring no new byte, `fetches` of a file whose MD5 is wrong."""

    tries: int = 9
    fetches: int = 3
    first_wait_seconds: float = 1.0
    longest_wait_seconds: float = 120.0
    longest_asked_wait_seconds: float = 900.0
    timeout_seconds: float = 60.0  # to connect, and between two pieces of an answer
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep

    def wait_seconds(self, failed: int, asked: float = 0) -> float:
        """Doubles with each failure, by chance up to half of it shorter; what the server asks for, where longer."""
        wait = min(self.first_wait_seconds * 2 ** (failed - 1), self.longest_wait_seconds)
        return max(wait * random.uniform(0.5, 1), min(asked, self.longest_asked_wait_seconds))


class Partial:
    """What has come of a file so far: hidden beside its final `path`, with a note of the version it belongs to.

    `size` is None until the server tells it; `moved(found)` is called when `size` or `got` changed, where `found`
    says that the bytes were on disk before.
    """

    def __init__(self, path: Path, moved: Callable[[bool], None] = lambda found: None):
        self.path = path.with_name(f'.{path.name}.partial')
        self.origin = path.with_name(f'.{path.name}.origin')
        self.moved = moved
        self.size: int | None = None
        self.got = 0
        self.validator = ''

    def resume(self) -> None:
        """Take up what an earlier request left, or delete what cannot be continued."""
        origin = None
        with contextlib.suppress(InputError):  # damaged: begin again
            origin = read_json(self.origin) if self.path.exists() else None
        if not origin or self.path.stat().st_size > origin['size']:
            self.discard()
            return
        self.got, self.size, self.validator = self.path.stat().st_size, origin['size'], origin['validator']
        self.moved(True)

    def begin(self, headers: httpx2.Headers) -> None:
        """An answer from byte 0 on. Without a size and a validator in it, it cannot be continued later."""
        self.discard()
        length, tag = headers.get('content-length'), headers.get('etag', '')
        # A weak tag names what reads the same, not the same bytes.
        self.validator = tag if tag.startswith('"') else headers.get('last-modified', '')
        self.size = None if length is None else int(length)
        if self.validator and self.size is not None:
            write_json(self.origin, {'validator': self.validator, 'size': self.size})

    def discard(self) -> None:
        """Nothing has come."""
        self.path.unlink(missing_ok=True)
        self.origin.unlink(missing_ok=True)
        self.got, self.validator = 0, ''
        self.moved(False)


class Server:
    """Answers of a web server, asked for with patience. Every method raises LastingFailure in the end.

    Certificates are verified; a redirection from https to http is refused.
    """

    def __init__(self, client: httpx2.AsyncClient, patience: Patience, say: Callable[[str], None]):
        self.client, self.patience, self.say = client, patience, say

    async def text(self, url: str, flaw: Callable[[str], str]) -> str:
        """The text of a small answer. `flaw` says what is wrong with it, for another try; '' for a good one."""

        async def attempt() -> str:
            page = bytearray()
            async with self.client.stream('GET', url) as response:
                _accept(response, url)
                async for chunk in response.aiter_raw():
                    page += chunk
                    if len(page) > LONGEST_PAGE:
                        raise LastingFailure(f'the server answers with more than {LONGEST_PAGE // 2**20} MiB')
            text = page.decode('utf-8', 'replace')
            if wrong := flaw(text):
                raise PassingFailure(wrong)
            return text

        return await self._persist(url, attempt, lambda: 0)

    async def complete(self, url: str, partial: Partial) -> None:
        """Fetch what is missing of a file, in as many requests as it takes."""
        await self._persist(url, lambda: self._receive(url, partial), lambda: partial.got)

    async def _receive(self, url: str, partial: Partial) -> None:
        partial.resume()
        if partial.got and partial.got == partial.size:
            return
        # If-Range: of another version the server sends all, so bytes of two versions are never mixed.
        asked = {'Range': f'bytes={partial.got}-', 'If-Range': partial.validator} if partial.got else {}
        async with self.client.stream('GET', url, headers=asked) as response:
            # A 416 gives no range (`bytes */SIZE`), so it never equals `rest`: the whole file is fetched again.
            if response.status_code in (206, 416):
                rest = f'bytes {partial.got}-{(partial.size or 0) - 1}/{partial.size}'
                if not asked or response.headers.get('content-range') != rest:
                    partial.discard()
                    raise PassingFailure('the server does not continue where it was asked to')
            _accept(response, url)
            if response.status_code == 200:  # from the start: another version, or it cannot continue
                partial.begin(response.headers)
            with open(partial.path, 'ab') as file:
                async for chunk in response.aiter_raw():
                    file.write(chunk)
                    file.flush()  # what has come survives a kill
                    partial.got += len(chunk)
                    partial.moved(False)
        if partial.size not in (None, partial.got):
            raise PassingFailure(f'{partial.got:,} of {partial.size:,} bytes came')

    async def _persist(self, what: str, attempt: Callable[[], Awaitable[T]], got: Callable[[], int]) -> T:
        """The result of `attempt`, which is tried until it succeeds or too often brought no new byte."""
        failed, furthest = 0, 0
        while True:
            try:
                return await attempt()
            except (PassingFailure, httpx2.HTTPError, ssl.SSLError) as error:
                reason = ' '.join((str(error) or type(error).__name__).split())
                if _is_distrust(error):
                    raise LastingFailure(f'{reason}; SSL_CERT_FILE names certificates to trust') from error
                failed = 1 if got() > furthest else failed + 1
                furthest = max(furthest, got())
                if failed >= self.patience.tries:
                    raise LastingFailure(f'{reason}, {failed} times in a row') from error
                seconds = self.patience.wait_seconds(failed, getattr(error, 'seconds', 0))
            self.say(f'{what}: {reason}; again in {clock(seconds + 0.5)}')
            await self.patience.sleep(seconds)


def check_address(url: str, expected: str) -> None:
    """Raise ConfigError for a --url that is not an address of a folder on a web server."""
    try:
        parts = httpx2.URL(url)
        good = parts.scheme in ('http', 'https') and bool(parts.host) and not (parts.query or parts.fragment)
    except httpx2.InvalidURL:
        good = False
    if not good:
        raise ConfigError(f'--url={url}: give {expected}')


def _accept(response: httpx2.Response, url: str) -> None:
    """Raise PassingFailure or LastingFailure for an answer that is not the file."""
    if url.startswith('https:') and response.url.scheme != 'https':
        raise LastingFailure(f'is redirected to {response.url}, without encryption')
    if response.status_code in (200, 206):
        return
    reason = f'the server answers {response.status_code} {response.reason_phrase}'.strip()
    if response.status_code in TRY_AGAIN or response.status_code >= 500:
        raise PassingFailure(reason, _asked_seconds(response.headers.get('retry-after', '')))
    raise LastingFailure(reason)


def _asked_seconds(retry_after: str) -> float:
    """Retry-After in seconds: it is a number or a date; 0 for anything else."""
    if retry_after.strip().isdecimal():
        return float(retry_after)
    with contextlib.suppress(ValueError):
        return max(0.0, email.utils.parsedate_to_datetime(retry_after).timestamp() - time.time())
    return 0.0


def _is_distrust(error: BaseException | None) -> bool:
    """Whether the server's certificate was refused: trying again changes nothing."""
    while error is not None and not isinstance(error, ssl.SSLCertVerificationError):
        error = error.__cause__ or error.__context__
    return error is not None
