"""What a tracker is, and the trackers of a run: they never hold it up."""

import dataclasses
import hashlib
import importlib.util
import json
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, TypeAlias

from bioptimus_jax.config.fields import walk
from bioptimus_jax.config.plugins import Plugins
from bioptimus_jax.errors import ConfigError
from bioptimus_jax.storage.files import JsonObject

PROJECT = 'bioptimus'
TRACKERS = Plugins('bioptimus_jax.progress.trackers', 'TRACKER')
Write: TypeAlias = Callable[[str, int, Mapping[str, float]], None]
"""A function that writes a stage's numbers, by name, at a step."""


@dataclasses.dataclass(frozen=True)
class Tracker:
    """The package that it needs, and what opens it for a run folder and its settings by name, imported when called."""

    package: str
    opened: Callable[[Path, Mapping[str, str]], Write]


class Trackers:
    """The trackers that a run was asked for, each opened with the first numbers that it is given."""

    def __init__(self, workdir: Path, names: Iterable[str], experiment: Any, say: Callable[[str], None]):
        self.workdir, self.experiment, self.say = workdir, experiment, say
        self.names = list(names)
        self.writers: dict[str, Write] = {}

    def write(self, stage: str, step: int, values: JsonObject) -> None:
        """Give all of them the numbers of a record. What cannot be written is said once, and the run goes on."""
        # A process is named by when it began: its numbers continue those of the process before.
        of = '' if 'began' in values else values.get('name', '')
        series = '/'.join(filter(None, (stage, values.get('kind', ''), of)))
        numbers = {
            f'{series}/{name}': float(value)
            for name, value in values.items()
            if isinstance(value, int | float) and not isinstance(value, bool)
        }
        for name in list(self.names):
            try:
                if name not in self.writers:
                    settings = {key: json.dumps(value) for key, value, _ in walk(self.experiment)}
                    self.writers[name] = TRACKERS.load(name).opened(self.workdir, settings)
                self.writers[name](stage, step, numbers)
            except Exception as error:  # of somebody else's package or server
                self.names.remove(name)
                self.say(f'WARNING: {name} writes no more ({error}); metrics.jsonl has all numbers')


def check_trackers(names: Iterable[str]) -> None:
    """Raise ConfigError for a tracker whose package is not installed."""
    for name in names:
        package = TRACKERS.load(name).package
        if importlib.util.find_spec(package) is None:
            raise ConfigError(
                f'config.runtime.trackers: {name} needs the package {package}, which is not installed; '
                f'`pip install {package}`'
            )


def identity(workdir: Path) -> str:
    """A name by which a tracker recognises a run folder."""
    return hashlib.sha256(str(workdir.resolve()).encode()).hexdigest()[:12]
