"""metrics.jsonl: the one record that the report is made from."""

import json
import os
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from bioptimus_jax.progress.tracker import Trackers
from bioptimus_jax.records.metrics import FILE, Line, Resumed, Start
from bioptimus_jax.run.manifests import place_of
from bioptimus_jax.storage.files import JsonObject, intact_jsonl


class MetricsLog:
    """The lines of a run's metrics.jsonl.

    `trackers` opens the other places that the numbers go to, once, with the first line. Without it nothing is written:
    of several processes one writes.
    """

    def __init__(self, workdir: Path, trackers: Callable[[], Trackers] | None = None):
        self.path = workdir / FILE
        self._open = trackers
        self._trackers: Trackers | None = None

    def write(self, stage: str, step: int, **values: Any) -> None:
        """Append one record."""
        if self._open is None:
            return
        self._append([{'stage': stage, 'step': step, 'time': round(time.time(), 3), **values}])
        self._trackers = self._trackers or self._open()
        self._trackers.write(stage, step, values)

    def take(self, stage: str, records: Iterable[JsonObject]) -> None:
        """Append records of the stage in another run as they are, in place of what this one has of it."""
        self._append([{'stage': stage, 'step': 0, 'kind': Start.KIND}, *records])

    def _append(self, records: Iterable[JsonObject]) -> None:
        with open(self.path, 'ab+') as file:
            if file.tell():
                file.seek(-1, os.SEEK_END)
                if file.read(1) != b'\n':  # the last line was cut off: the next one must not be lost with it
                    file.write(b'\n')
            file.writelines(json.dumps(record).encode() + b'\n' for record in records)

    def add(self, stage: str, line: Line) -> None:
        """Append a line of a known kind."""
        self.write(stage, line.step, kind=line.KIND, **line.values)

    def of(self, stage: str) -> list[JsonObject]:
        """The records of one stage in order of steps; a step done again after a kill counts once, the last time.

        What came before a `Start` is of another attempt, and what came before a `Resumed`, of later steps, is lost.
        """
        latest: dict[tuple, dict] = {}
        for record in intact_jsonl(self.path):
            step, kind = record.get('step'), str(record.get('kind', ''))
            if record.get('stage') != stage:
                continue
            if kind == Start.KIND:
                latest.clear()
            elif not isinstance(step, int):
                continue
            elif kind == Resumed.KIND:
                latest = {key: before for key, before in latest.items() if before['step'] <= step}
            else:
                latest[step, kind, str(record.get('name', ''))] = record
        return sorted(latest.values(), key=lambda r: r['step'])


def lines_of(folder: Path, name: str = '') -> list[JsonObject]:
    """The lines that the stage of a folder wrote, under its own or another `name`, from the run that made them."""
    return MetricsLog(place_of(folder).parent).of(name or folder.name)
