"""One pure function over blocks of documents, in worker processes; results in the order of the blocks."""

import collections
import os
import signal
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import get_context, parent_process
from typing import Any

from bioptimus_jax.errors import InputError


def ranges(total: int, size: int) -> list[tuple[int, int]]:
    """[start, stop) of consecutive blocks of `size` documents."""
    return [(start, min(start + size, total)) for start in range(0, total, size)]


def count_workers(configured: int) -> int:
    """`runtime.workers`, where 0 means one per core."""
    return configured or os.cpu_count() or 1


class Workers:
    """Processes that all begin with `prepare(*arguments)`; a single worker is this process itself.

    A killed worker becomes an InputError with the remedy, never a hang.
    """

    def __init__(self, number: int, prepare: Callable[..., None], arguments: tuple):
        self.number = number
        self.pool: ProcessPoolExecutor | None = None
        if number > 1:
            self.pool = ProcessPoolExecutor(
                number, get_context('spawn'), initializer=_begin, initargs=(prepare, arguments)
            )
        else:
            prepare(*arguments)

    def __enter__(self) -> 'Workers':
        return self

    def __exit__(self, *error: Any) -> None:
        if self.pool:
            self.pool.shutdown(wait=True, cancel_futures=True)

    def map(self, function: Callable[..., Any], tasks: Iterable[tuple]) -> Iterator[Any]:
        """`function(*task)` of every task, in their order. Tasks are drawn late, few results wait."""
        if self.pool is None:
            for task in tasks:
                yield function(*task)
            return
        waiting: collections.deque[Future] = collections.deque()
        try:
            for task in tasks:
                waiting.append(self.pool.submit(function, *task))
                if len(waiting) > 2 * self.number:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        except BrokenProcessPool as error:
            raise InputError(
                'a worker process was killed (often: out of memory); give the same command again, '
                f'with --config.runtime.workers below {self.number} if it happens twice'
            ) from error


def _begin(prepare: Callable[..., None], arguments: tuple) -> None:
    # Both may be sent to the whole process group; the parent saves, and then ends its workers.
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, signal.SIG_IGN)
    threading.Thread(target=_follow_parent, daemon=True).start()
    os.environ['TOKENIZERS_PARALLELISM'] = 'false'  # one thread per worker, else scaling looks flat
    prepare(*arguments)


def _follow_parent() -> None:
    parent = parent_process()
    assert parent is not None
    parent.join()  # a killed parent must not leave workers behind
    os._exit(1)
