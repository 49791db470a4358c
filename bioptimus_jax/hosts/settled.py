"""Settings of jax that decide draws and types: one value each, whatever the shell or a user's own code says of them."""

import contextlib
import os
import sys
from collections.abc import Iterator
from typing import Any

from bioptimus_jax.progress import complain

SETTLED: dict[str, Any] = {
    'jax_threefry_partitionable': True,
    'jax_random_seed_offset': 0,
    'jax_default_prng_impl': 'threefry2x32',
    'jax_high_dynamic_range_gumbel': False,
    'jax_enable_x64': False,
    'jax_explicit_x64_dtypes': 'warn',
    'jax_numpy_dtype_promotion': 'standard',
    'jax_default_matmul_precision': None,
}
"""The defaults of jax, which reads a variable of the same name in capitals when it is imported."""
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


@contextlib.contextmanager
def settled() -> Iterator[None]:
    """Have the settings of `SETTLED` in a process that is not ours, and give those back that were there."""
    if 'jax' not in sys.modules and not _differing():
        yield  # whoever imports it gets them
        return
    import jax

    before = {name: getattr(jax.config, name) for name in SETTLED if hasattr(jax.config, name)}
    # In all threads; and in this one, where the caller may have opened such a context.
    with jax.enable_x64(False), jax.threefry_partitionable(True):
        try:
            _update(SETTLED)
            yield
        finally:
            _update(before)


def _differing() -> list[str]:
    """Variables of the environment that say something else."""
    return [name.upper() for name, value in SETTLED.items() if not _says(os.environ.get(name.upper()), value)]


def _says(text: str | None, value: Any) -> bool:
    if text is None:
        return True
    if isinstance(value, bool):
        return (text.strip().lower() in YES) is value
    return text.strip().lower() == str(value)


def _update(values: dict[str, Any]) -> None:
    import jax

    for name, value in values.items():
        if hasattr(jax.config, name):  # a later jax may lack one
            jax.config.update(name, value)
