"""A verb of `bioptimus` in a process of its own, with the objects that it was asked for with in its run folder."""

import dataclasses
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self

from bioptimus_jax.api.bars import Bar, shown
from bioptimus_jax.api.objects import plain
from bioptimus_jax.errors import BAD_INPUT, USAGE, ConfigError, InputError
from bioptimus_jax.experiment.stages import STAGES
from bioptimus_jax.progress.console import OFTEN
from bioptimus_jax.storage.files import atomic, sha256

GIVEN = 'given'
"""The folder, in a run's, with the objects that the run was asked for with, and config.py."""
CONFIG = 'config.py'
OF_KEYS = '''"""What `bioptimus_jax` was asked for: `bioptimus {verb} --config=THIS --workdir=...` goes on with it."""

from bioptimus_jax.ext import defaults, load, override


def get_config(argument=''):
    wanted = {basis}
    for key, value in KEYS.items():
        override(wanted, key, str(value))
    return wanted


KEYS = {{
{keys}}}
'''


@dataclasses.dataclass(frozen=True)
class Shows:
    """What a person sees of a program that runs: lines, unless `quiet`; progress on a `bar`, in place of its lines."""

    quiet: bool
    bar: bool

    @classmethod
    def of(cls, quiet: bool, progress: bool | None) -> Self:
        """What a caller wants to see: for None a bar where one can be seen, unless `quiet`."""
        return cls(quiet, False if quiet and progress is None else shown(progress))


def config_text(verb: str, basis: str, own: Mapping[str, Any]) -> str:
    """A config file: `basis` is what it begins with, in Python, and `own` its keys."""
    lines = ''.join(f'    {key!r}: {plain(value)!r},\n' for key, value in own.items())
    return OF_KEYS.format(verb=verb, basis=basis, keys=lines)


def run_verb(verb: str, place: Path, run: Path, config: str, shows: Shows) -> None:
    """Run a verb of `bioptimus` in the run folder `run`. What is in `place` is copied there first, with a config file.

    What is refused leaves nothing. Raises ConfigError, InputError, RuntimeError.
    """
    given = run / GIVEN
    with atomic(place / GIVEN / CONFIG) as file:
        file.write(config)
    new = not run.exists()
    # Before any is written: what is refused must change nothing.
    check_same(place / GIVEN, run)
    _bring(place / GIVEN, run)
    try:
        run_program([verb, f'--config={given / CONFIG}', f'--workdir={run}'], shows)
    except (ConfigError, InputError):
        if not begun(run):
            shutil.rmtree(run) if new else _take_away(place / GIVEN, run)
        raise


def begun(run: Path) -> bool:
    """Whether a run has begun a stage."""
    return any((run / stage).is_dir() for stage in STAGES)


def check_same(place: Path, run: Path) -> None:
    """Raise ConfigError where a run began with other objects than those in `place`."""
    if not begun(run):
        return
    new, there = _files(place), _files(run / GIVEN)
    folders = {name.parent for name in new if len(name.parts) > 1}
    both = [name for name in new if name in there and name.suffix != '.py']
    others = [name for name in there if name.parent in folders and name not in new]
    others += [name for name in both if sha256(run / GIVEN / name) != sha256(place / name)]
    if others:
        raise ConfigError(
            f'{run}: was started with another {others[0].parts[0].partition(".")[0]}; choose another workdir'
        )


def _bring(place: Path, run: Path) -> None:
    """Put what is given into the run folder, in the place of the same, or of what no stage has read."""
    if not begun(run):
        _take_away(place, run)
    for name in _files(place):
        (run / GIVEN / name).parent.mkdir(parents=True, exist_ok=True)
        with atomic(run / GIVEN / name, 'wb') as file:
            file.write((place / name).read_bytes())


def _take_away(place: Path, run: Path) -> None:
    """Remove from the run folder what is called as what is given, folders as a whole; what others put there stays."""
    given = run / GIVEN
    cache = '__pycache__'  # of the config file
    for name in {cache, *(name.parts[0] for name in _files(place))}:
        if (given / name).is_dir():
            shutil.rmtree(given / name)
        (given / name).unlink(missing_ok=True)
    if given.is_dir() and not any(given.iterdir()):
        given.rmdir()


def _files(place: Path) -> list[Path]:
    return [path.relative_to(place) for path in sorted(place.rglob('*')) if path.is_file()]


def run_program(arguments: list[str], shows: Shows) -> None:
    """`bioptimus` with these arguments; its lines go on to where print writes. Raises what its exit code says."""
    command = [sys.executable, '-m', 'bioptimus_jax', *arguments]
    often = {OFTEN: '1'} if shows.bar else {}
    said = ''
    # In a session of its own: Ctrl-C comes here, and from here once to the program, which saves.
    with (
        Bar(shows.bar) as bar,
        subprocess.Popen(
            command,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            encoding='utf-8',
            start_new_session=True,
            env=os.environ | often,
        ) as program,
    ):
        assert program.stdout
        try:
            for line in program.stdout:
                said = line.strip() or said
                bar.line(line.rstrip('\n'), shows.quiet)
        except BaseException:
            program.send_signal(signal.SIGINT)
            for line in program.stdout:  # what it has saved, and how it goes on
                bar.line(line.rstrip('\n'), shows.quiet)
            raise
    if program.returncode < 0:  # what it said last is of its work
        raise RuntimeError(
            f'the run was ended by {signal.Signals(-program.returncode).name}, after it said: {said}'
        )
    if program.returncode:
        kind = {USAGE: ConfigError, BAD_INPUT: InputError}.get(program.returncode, RuntimeError)
        raise kind(said.removeprefix('bioptimus: '))
