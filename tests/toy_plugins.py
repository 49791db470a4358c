"""Plug-ins that a test names in BIOPTIMUS_PLUGINS, as a user does."""

import contextlib
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from bioptimus_jax.config import extensions
from bioptimus_jax.errors import ConfigError

HOWTOS = Path(__file__).resolve().parents[1] / 'docs' / 'howto'


@contextlib.contextmanager
def plugged(*places: Path | str) -> Iterator[None]:
    """Files, folders and modules are plug-ins meanwhile; what was imported of them is forgotten at the end."""
    path, modules = [*sys.path], {*sys.modules}
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv(extensions.VARIABLE, ','.join(map(str, places)))
        extensions._extensions.cache_clear()
        yield
        own = set[str]()
        with contextlib.suppress(ConfigError):
            own = {extension.module for extension in extensions.extensions()}
    sys.path[:] = path
    for name in {*sys.modules} - modules:
        if name in own or any(name.startswith(f'{one}.') or one.startswith(f'{name}.') for one in own):
            del sys.modules[name]
    extensions._extensions.cache_clear()


def shown(page: str, file: str) -> str:
    """The text of a file that a how-to writes."""
    [text] = re.findall(
        rf'```python title="{re.escape(file)}"\n(.*?)```', (HOWTOS / page).read_text('utf-8'), re.S
    )
    return text
