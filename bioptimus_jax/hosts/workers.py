"""One pure function over many tasks, in processes of this machine or of a dask cluster; results in order of tasks.

Whoever maps a function says what every process has to prepare first (open its files, load its tokenizer); what is
prepared stands in module variables, so a process works on one task at a time.
"""

import collections
import contextlib
import functools
import importlib.metadata
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from multiprocessing.connection import Connection, wait
from multiprocessing.context import SpawnContext, SpawnProcess
from multiprocessing.reduction import ForkingPickler
from typing import Any, Self, TypeAlias, TypeVar

from bioptimus_jax.errors import ConfigError, InputError
from bioptimus_jax.hosts import signals
from bioptimus_jax.hosts.config import Runtime

SECONDS_TO_CONNECT = 20
SECONDS_BETWEEN_CHECKS = 0.5
SECONDS_TO_NOTICE = 5.0
# Silences resource_tracker's warnings of semaphores that this process had no time to close.
QUIET = 'ignore:resource_tracker'
WorkerTask: TypeAlias = Callable[..., Any]
Prepare: TypeAlias = Callable[..., None]
Check: TypeAlias = Callable[[], None]
Answer = TypeVar('Answer')
# Another release of these may give other bytes.
DECISIVE_PACKAGES = ('bioptimus-jax', 'blingfire', 'numpy', 'py3langid', 'rensa', 'tokenizers')


def cores() -> list[int]:
    """The cores that this process may use."""
    if hasattr(os, 'sched_getaffinity'):
        return sorted(os.sched_getaffinity(0))
    return list(range(os.cpu_count() or 1))


def ranges(total: int, size: int) -> list[tuple[int, int]]:
    """[start, stop) of consecutive blocks of `size` items."""
    return [(start, min(start + size, total)) for start in range(0, total, size)]


class WorkerKilled(InputError):
    """A process was killed by a signal; what it had finished is kept."""


def _nothing() -> None:
    pass


class _Parcel:
    """Functions and arguments that a worker unpacks when it can say what it cannot import, not before it lives."""

    def __init__(self, content: tuple, packed: bytes = b''):
        self.content, self.packed = content, packed

    def __reduce__(self) -> tuple:
        return _Parcel, ((), self.packed or bytes(ForkingPickler.dumps(self.content)))

    def unpacked(self) -> tuple:
        """Raises ImportError or AttributeError for what this process cannot import."""
        return ForkingPickler.loads(self.packed) if self.packed else self.content


@contextlib.contextmanager
def _said_what_cannot_be_imported() -> Iterator[None]:
    try:
        yield
    except (ImportError, AttributeError) as error:
        if isinstance(error, AttributeError) and "Can't get attribute" not in str(error):  # as pickle says it
            raise
        raise InputError(
            f'a worker process cannot import what its work needs ({type(error).__name__}: {error}); it imports anew, '
            'by name: put the file into the folder of its package, or its folder on PYTHONPATH. What a config or a '
            'script adds to a package or a table while it runs is not there'
        ) from error


class Workers:
    """Processes that all begin with `prepare(*arguments)`; `map` gives results in the order of its tasks.

    A context manager. `number` counts the processes; 0 means that the work is done in this one.
    """

    number = 0

    def __init__(self, prepare: Prepare, arguments: tuple):
        prepare(*arguments)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: Any) -> None:
        pass

    def map(
        self, function: WorkerTask, tasks: Iterable[tuple], check: Check = _nothing, ahead: int = 0
    ) -> Iterator[Any]:
        """`function(*task)` of every task, in their order. Tasks are drawn late, few results wait.

        `check` is called before each task and while a result is waited for, and may raise. `ahead`: how many tasks are
        begun before the first result is taken; 0: two for each process. Raises WorkerKilled.
        """
        for task in tasks:
            check()
            yield function(*task)


class _Process(SpawnProcess):
    """A worker, which ignores SIGTERM: the pool, which ends all when one was killed, would wait for it for ever."""

    def terminate(self) -> None:
        self.kill()


class _Context(SpawnContext):
    """Keeps what it has made for a pool."""

    def __init__(self) -> None:
        super().__init__()
        self.processes: list[_Process] = []

    def Process(self, *arguments: Any, **named: Any) -> _Process:  # type: ignore[override]
        self.processes.append(_Process(*arguments, **named))
        return self.processes[-1]

    def SimpleQueue(self) -> Any:
        """The one of the results, as no other is asked for."""
        self.results: Any = super().SimpleQueue()
        return self.results


class Pool(Workers):
    """Processes of this machine. A killed one becomes an InputError with the remedy, never a hang."""

    def __init__(self, number: int, prepare: Prepare, arguments: tuple):
        self.context = _Context()
        self.number = number
        self.seen_dead: float | None = None
        # Workers leave when the other end is closed, which the kernel does when we were killed.
        self.watched, self.lifeline = self.context.Pipe(duplex=False)
        if QUIET not in sys.warnoptions:
            sys.warnoptions.append(QUIET)  # which the processes below take over
        with signals.held():  # it starts the process that looks after semaphores
            self.pool = ProcessPoolExecutor(
                number,
                self.context,
                initializer=_begin,
                initargs=(self.watched, _Parcel((prepare, *arguments))),
            )

    def __exit__(self, *error: Any) -> None:
        self.close(kill=error[0] is not None)

    def close(self, kill: bool) -> None:
        """End the processes, with `kill` whatever they do."""
        if kill:  # nobody waits for what is being done; whole files appear only when complete
            for process in filter(lambda process: process.pid, self.context.processes):
                process.kill()
            # It may have been in the middle of a result, and the pool would wait for the rest of it for ever.
            self.context.results._writer.close()
        self.pool.shutdown(wait=True, cancel_futures=True)
        self.lifeline.close()
        self.watched.close()

    def submit(self, function: WorkerTask, task: tuple) -> Any:
        """The future of `function(*task)`."""
        with signals.held():  # it starts a process where none is idle
            return self.pool.submit(_work, _Parcel((function, *task)))

    def map(
        self, function: WorkerTask, tasks: Iterable[tuple], check: Check = _nothing, ahead: int = 0
    ) -> Iterator[Any]:
        def look() -> None:
            check()
            self.require_workers()

        submit = functools.partial(self.submit, function)
        try:
            yield from _in_order(submit, tasks, ahead or 2 * self.number, look)
        except BrokenProcessPool as error:
            check()  # whoever ended the worker may have asked us to stop
            raise self.loss() from error

    def loss(self) -> InputError:
        """What has ended a process, by its exit code: a WorkerKilled where it was a signal."""
        codes = list(map(_code_of, self._ended()))
        if (code := max(codes, default=0)) > 0:
            return InputError(
                f'a worker process ended with exit code {code} before its work was done; what it printed says why. A '
                "script that has several processes start needs `if __name__ == '__main__':` around its calls"
            )
        # The pool kills those that are left.
        number = next((-code for code in codes if code not in (0, -signal.SIGKILL)), signal.SIGKILL)
        why = ' (often out of memory)' * (number == signal.SIGKILL)
        return WorkerKilled(
            f'a worker process was killed by {signal.Signals(number).name}{why}; rerun the same command '
            f'with --config.runtime.workers below {self.number} if it happens twice'
        )

    def _ended(self) -> list[_Process]:
        """The processes that have ended, or are ending."""
        begun = {process.sentinel: process for process in self.context.processes if process.pid}
        return [begun[sentinel] for sentinel in wait(list(begun), 0) if isinstance(sentinel, int)]

    def require_workers(self) -> None:
        """Raises BrokenProcessPool where the pool does not: it waits for the rest of a result of who was killed."""
        if self.seen_dead is None:
            if self._ended():
                self.seen_dead = time.monotonic()
        elif time.monotonic() - self.seen_dead > SECONDS_TO_NOTICE:
            raise BrokenProcessPool


class Cluster(Workers):
    """Workers of a dask.distributed cluster, which see the same files under the same paths."""

    def __init__(
        self, address: str, prepare: Prepare = _nothing, arguments: tuple = (), packages: Sequence[str] = ()
    ):
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
        with contextlib.suppress(TimeoutError):  # they may be on their way, as in a job of many parts
            self.client.wait_for_workers(1, timeout=SECONDS_TO_CONNECT)
        threads = self.client.nthreads()
        self.number = len(threads)
        if not threads or max(threads.values()) > 1:
            self.client.close()
            raise ConfigError(
                f'config.runtime.cluster: {address} has {self.number} workers, with up to '
                f'{max(threads.values(), default=0)} threads; start it with `dask worker ... --nthreads=1`'
            )
        self._require_same_packages(address, (*DECISIVE_PACKAGES, *packages))
        self.address = address
        begin = os.urandom(8), _Parcel((prepare, *arguments))
        self.prepared = self.client.scatter(begin, broadcast=True, hash=False)

    def ask(self, function: Callable[[], Answer]) -> dict[str, Answer]:
        """What it gives in every worker, by their addresses."""
        return self.client.run(function)

    def _require_same_packages(self, address: str, packages: Sequence[str]) -> None:
        own = versions_of_packages(packages)
        for worker, found in self.client.run(versions_of_packages, packages).items():
            # What they were built for may differ, as in torch 2.9.0+cu130.
            wrong = {n: v for n, v in found.items() if v.partition('+')[0] != own[n].partition('+')[0]}
            if wrong:
                self.client.close()
                name, version = next(iter(wrong.items()))
                raise ConfigError(
                    f'config.runtime.cluster: worker {worker} of {address} has {name} {version}, this process '
                    f'{own[name]}; install the same packages there'
                )

    def __exit__(self, *error: Any) -> None:
        self.client.close()

    def map(
        self, function: WorkerTask, tasks: Iterable[tuple], check: Check = _nothing, ahead: int = 0
    ) -> Iterator[Any]:
        from distributed import CancelledError, KilledWorker

        def submit(task: tuple) -> Any:
            return self.client.submit(_on_cluster, self.prepared, _Parcel((function, *task)), pure=False)

        try:
            yield from _in_order(submit, tasks, ahead or 2 * self.number, check)
        except (KilledWorker, CancelledError) as error:
            raise WorkerKilled(
                f'the cluster at {self.address} gave up a task ({error}); see the logs of its workers, then give '
                'the same command again'
            ) from error


def open_workers(runtime: Runtime, most: int, prepare: Prepare = _nothing, arguments: tuple = ()) -> Workers:
    """The workers that `runtime` asks for, at most `most` processes of this machine; a single one is this process.

    Raises ConfigError where the cluster cannot be used.
    """
    if runtime.cluster:
        return Cluster(runtime.cluster, prepare, arguments)
    number = min(runtime.workers or len(cores()), most)
    return Pool(number, prepare, arguments) if number > 1 else Workers(prepare, arguments)


def _in_order(
    submit: Callable[[tuple], Any], tasks: Iterable[tuple], ahead: int, check: Check
) -> Iterator[Any]:
    # Tasks may hold much (a shard's places) and come from a generator: few are drawn ahead of the results.
    waiting: collections.deque[Any] = collections.deque()
    for task in tasks:
        check()
        waiting.append(submit(task))
        if len(waiting) > ahead:
            yield _result(waiting.popleft(), check)
    while waiting:
        yield _result(waiting.popleft(), check)


def _result(future: Any, check: Check) -> Any:
    check()
    while not future.done():
        with contextlib.suppress(TimeoutError):  # ours; the task's own comes again from the last line
            return future.result(SECONDS_BETWEEN_CHECKS)
        check()
    # Without an end: to bring a result that is done from a busy cluster may take longer than between two checks.
    return future.result()


def _code_of(process: SpawnProcess) -> int:
    """The exit code of a process that has ended, below 0 that of a signal."""
    process.join()
    # The pool joins it, too: who comes second learns the code only when the first has put it down.
    until = time.monotonic() + SECONDS_TO_NOTICE
    while (code := process.exitcode) is None and time.monotonic() < until:
        time.sleep(0.01)
    return code or 0


_failure: Exception | None = None  # of `prepare`, in a worker of a pool


def _begin(watched: Connection, parcel: _Parcel) -> None:
    global _failure
    signals.ignore()
    threading.Thread(target=_leave_with_parent, args=(watched,), daemon=True).start()
    _one_thread()
    try:
        _call(parcel)
    except Exception as error:  # raised here it would end the process, and the parent would not learn why
        _failure = error


def _call(parcel: _Parcel) -> Any:
    with _said_what_cannot_be_imported():
        function, *arguments = parcel.unpacked()
        return function(*arguments)


def _leave_with_parent(watched: Connection) -> None:
    with contextlib.suppress(EOFError, OSError):
        watched.recv_bytes()
    os._exit(1)


def _work(parcel: _Parcel) -> Any:
    if _failure is not None:
        raise _failure
    return _call(parcel)


def _one_thread() -> None:
    os.environ['TOKENIZERS_PARALLELISM'] = 'false'  # one thread per worker, else scaling looks flat


def versions_of_packages(packages: Sequence[str] = DECISIVE_PACKAGES) -> dict[str, str]:
    """Versions of packages; `none` where one is missing."""
    found = dict.fromkeys(packages, 'none')
    for package in packages:
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            found[package] = importlib.metadata.version(package)
    return found


def abandoned() -> bool:
    """Whether nobody waits for the result of this task on a cluster any more, as whoever asked for it has ended.

    dask drops what has not begun, but lets a task run on to its end: it has to look for itself.
    """
    from distributed import get_worker

    worker = get_worker()
    task = worker.state.tasks.get(worker.get_current_task())
    return task is None or task.state == 'cancelled'


_prepared: bytes = b''


def _on_cluster(prepared: tuple[bytes, _Parcel], parcel: _Parcel) -> Any:
    """A task in a worker of the cluster, which prepares itself when it meets another map's tasks."""
    global _prepared
    name, begin = prepared
    if name != _prepared:
        _one_thread()
        _call(begin)
        _prepared = name
    return _call(parcel)
