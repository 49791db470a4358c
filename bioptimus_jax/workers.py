"""One pure function over many tasks, in processes of this machine or of a dask cluster; results in order of tasks.

Whoever maps a function says what every process has to prepare first (open its files, load its tokenizer); what is
prepared stands in module variables, so a process works on one task at a time.
"""

import collections
import contextlib
import os
import signal
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import get_context, parent_process
from typing import Any

from bioptimus_jax.errors import ConfigError, InputError
from bioptimus_jax.schema import Runtime

SECONDS_TO_CONNECT = 20


def ranges(total: int, size: int) -> list[tuple[int, int]]:
    """[start, stop) of consecutive blocks of `size` items."""
    return [(start, min(start + size, total)) for start in range(0, total, size)]


class Workers:
    """Processes that all begin with `prepare(*arguments)`; `map` gives results in the order of its tasks.

    A context manager. `number` counts the processes; 0 means that the work is done in this one.
    """

    number = 0

    def __init__(self, prepare: Callable[..., None], arguments: tuple):
        prepare(*arguments)

    def __enter__(self) -> 'Workers':
        return self

    def __exit__(self, *error: Any) -> None:
        pass

    def map(self, function: Callable[..., Any], tasks: Iterable[tuple]) -> Iterator[Any]:
        """`function(*task)` of every task, in their order. Tasks are drawn late, few results wait."""
        for task in tasks:
            yield function(*task)


class _Pool(Workers):
    """Processes of this machine. A killed one becomes an InputError with the remedy, never a hang."""

    def __init__(self, number: int, prepare: Callable[..., None], arguments: tuple):
        context = get_context('spawn')
        self.number = number
        self.abandoned = context.Event()
        self.pool = ProcessPoolExecutor(
            number, context, initializer=_begin, initargs=(self.abandoned, prepare, arguments)
        )

    def __exit__(self, *error: Any) -> None:
        if error[0] is not None:  # nobody waits for what is being done; whole files appear only when complete
            self.abandoned.set()
        self.pool.shutdown(wait=True, cancel_futures=True)

    def map(self, function: Callable[..., Any], tasks: Iterable[tuple]) -> Iterator[Any]:
        try:
            yield from _in_order(lambda task: self.pool.submit(function, *task), tasks, 2 * self.number)
        except BrokenProcessPool as error:
            raise InputError(
                'a worker process was killed (often: out of memory); give the same command again, '
                f'with --config.runtime.workers below {self.number} if it happens twice'
            ) from error


class _Cluster(Workers):
    """Workers of a dask.distributed cluster, which see the same files under the same paths."""

    def __init__(self, address: str, prepare: Callable[..., None], arguments: tuple):
        try:
            from distributed import Client
        except ModuleNotFoundError as error:
            raise ConfigError(
                "config.runtime.cluster: needs dask.distributed; install 'bioptimus-jax[distributed]'"
            ) from error
        try:
            self.client = Client(address, timeout=SECONDS_TO_CONNECT)
        except (OSError, ValueError) as error:
            raise ConfigError(
                f'config.runtime.cluster: no dask scheduler at {address!r} ({error}); give HOST:PORT of one that runs'
            ) from error
        threads = self.client.nthreads()
        self.number = len(threads)
        if not threads or max(threads.values()) > 1:
            self.client.close()
            raise ConfigError(
                f'config.runtime.cluster: {address} has {self.number} workers, with up to '
                f'{max(threads.values(), default=0)} threads; start it with `dask worker ... --nthreads=1`'
            )
        self.address = address
        self.prepared = self.client.scatter((os.urandom(8), prepare, arguments), broadcast=True, hash=False)

    def __exit__(self, *error: Any) -> None:
        self.client.close()

    def map(self, function: Callable[..., Any], tasks: Iterable[tuple]) -> Iterator[Any]:
        from distributed import CancelledError, KilledWorker

        def submit(task: tuple) -> Any:
            return self.client.submit(_on_cluster, self.prepared, function, task, pure=False)

        try:
            yield from _in_order(submit, tasks, 2 * self.number)
        except (KilledWorker, CancelledError) as error:
            raise InputError(
                f'the cluster at {self.address} gave up a task ({error}); see the logs of its workers, then give '
                'the same command again'
            ) from error


def open_workers(runtime: Runtime, most: int, prepare: Callable[..., None], arguments: tuple) -> Workers:
    """The workers that `runtime` asks for, at most `most` processes of this machine; a single one is this process.

    Raises ConfigError where the cluster cannot be used.
    """
    if runtime.cluster:
        return _Cluster(runtime.cluster, prepare, arguments)
    number = min(runtime.workers or os.cpu_count() or 1, most)
    return _Pool(number, prepare, arguments) if number > 1 else Workers(prepare, arguments)


def _in_order(submit: Callable[[tuple], Any], tasks: Iterable[tuple], ahead: int) -> Iterator[Any]:
    waiting: collections.deque[Future] = collections.deque()
    for task in tasks:
        waiting.append(submit(task))
        if len(waiting) > ahead:
            yield waiting.popleft().result()
    while waiting:
        yield waiting.popleft().result()


def _begin(abandoned: Any, prepare: Callable[..., None], arguments: tuple) -> None:
    # Both may be sent to the whole process group; the parent saves, and then ends its workers.
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, signal.SIG_IGN)
    parent = parent_process()
    assert parent is not None
    for wait in (parent.join, abandoned.wait):  # a killed parent must not leave workers behind
        threading.Thread(target=_leave_after, args=(wait,), daemon=True).start()
    _one_thread()
    prepare(*arguments)


def _leave_after(wait: Callable[[], Any]) -> None:
    with contextlib.suppress(OSError):
        wait()
    os._exit(1)


def _one_thread() -> None:
    os.environ['TOKENIZERS_PARALLELISM'] = 'false'  # one thread per worker, else scaling looks flat


_prepared: bytes = b''


def _on_cluster(prepared: tuple, function: Callable[..., Any], task: tuple) -> Any:
    """A task in a worker of the cluster, which prepares itself when it meets another map's tasks."""
    global _prepared
    name, prepare, arguments = prepared
    if name != _prepared:
        _one_thread()
        prepare(*arguments)
        _prepared = name
    return function(*task)
