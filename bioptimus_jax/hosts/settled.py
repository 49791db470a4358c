"""Settings of jax that decide draws and types: one value each, whatever the shell or a user's own code says of them."""

import concurrent.futures
import contextlib
import os
import sys
import threading
from collections.abc import Iterator

from bioptimus_jax.errors import ConfigError
from bioptimus_jax.progress.console import complain

SETTLED: dict[str, object] = {
    'jax_threefry_partitionable': True,
    'jax_random_seed_offset': 0,
    'jax_default_prng_impl': 'threefry2x32',
    'jax_high_dynamic_range_gumbel': False,
    'jax_enable_x64': False,
    'jax_explicit_x64_dtypes': 'warn',
    'jax_numpy_dtype_promotion': 'standard',
    'jax_default_matmul_precision': None,
}
"""The defaults of jax, which reads a variable of the same name in capitals when it is imported.

What says how a program is compiled, as XLA_FLAGS do, changes the rounding of sums at most, and is left to the user.
"""
YES = ('y', 'yes', 't', 'true', 'on', '1')


def settle_jax() -> None:
    """Take the settings as `SETTLED` has them in this process, which is ours, and in those that it starts.

    A variable of the environment that says something else is named in a line.
    """
    for name in _differing():
        complain(
            f'{name}={os.environ.pop(name)} is not used: what a run draws and computes with does not follow the shell'
        )
    if 'jax' in sys.modules:
        _update(SETTLED)


def require_settled() -> None:
    """Raise ConfigError where a file that was read since, as a config or a plug-in, has set one of them otherwise."""
    found = [(name.lower(), os.environ[name]) for name in _differing()]  # for a jax that is imported later
    for name, value in (*found, *(_values().items() if 'jax' in sys.modules else ())):
        if _plain(value) != _plain(SETTLED[name]):
            raise ConfigError(
                f'{name} is {_plain(value)}: a config file or plug-in has set it; what a run draws and computes with '
                f'would follow it, so take it out there (it stays {_plain(SETTLED[name])})'
            )


@contextlib.contextmanager
def settled() -> Iterator[None]:
    """Have the settings of `SETTLED` in a process that is not ours, and give those back that were there."""
    if 'jax' not in sys.modules and not _differing():
        yield  # whoever imports it gets them
        return
    import jax

    with contextlib.ExitStack() as own:
        # The caller may have opened such contexts, which come before what holds in all threads.
        for name, value in SETTLED.items():
            if hasattr(jax, public := name.removeprefix('jax_')):
                own.enter_context(getattr(jax, public)(value))
        own.enter_context(_IN_ALL_THREADS)
        yield


class _InAllThreads:
    """The settings for all threads, as long as one is within; the last one to leave gives back the caller's."""

    def __init__(self) -> None:
        self.lock, self.within, self.before = threading.Lock(), 0, dict[str, object]()

    def __enter__(self) -> None:
        with self.lock:
            if not self.within:
                # In a thread of its own no context of the caller counts.
                with concurrent.futures.ThreadPoolExecutor(1) as other:
                    self.before = other.submit(_values).result()
            self.within += 1
            _update(SETTLED)

    def __exit__(self, *error: object) -> None:
        with self.lock:
            self.within -= 1
            if not self.within:
                _update(self.before)


_IN_ALL_THREADS = _InAllThreads()


def _differing() -> list[str]:
    """Variables of the environment that say something else."""
    return [name.upper() for name, value in SETTLED.items() if not _says(os.environ.get(name.upper()), value)]


def _says(text: str | None, value: object) -> bool:
    if text is None:
        return True
    if isinstance(value, bool):
        return (text.strip().lower() in YES) is value
    return text.strip().lower() == str(value)


def _values() -> dict[str, object]:
    """The settings as they are; a later jax may lack one."""
    import jax

    return {name: getattr(jax.config, name) for name in SETTLED if hasattr(jax.config, name)}


def _plain(value: object) -> str:
    """A value as a variable of the environment has it, also where jax keeps a member of an enumeration."""
    return str(getattr(value, 'name', value)).lower()


def _update(values: dict[str, object]) -> None:
    import jax

    for name in values.keys() & _values().keys():
        jax.config.update(name, values[name])
