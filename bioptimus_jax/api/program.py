"""A verb of `bioptimus` in a process of its own, with the objects that it was asked for with in its run folder."""

import shutil
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from bioptimus_jax.api.objects import plain
from bioptimus_jax.errors import BAD_INPUT, USAGE, ConfigError, InputError
from bioptimus_jax.experiment.stages import STAGES
from bioptimus_jax.storage.files import atomic, sha256

GIVEN = 'given'
"""The folder, in a run's, with the objects that the run was asked for with, and config.py."""
CONFIG = '''"""What `bioptimus_jax` was asked for: `bioptimus {verb} --config=THIS --workdir=...` goes on with it."""

from bioptimus_jax.ext import defaults, load, override


def get_config(argument=''):
    wanted = {basis}
    for key, value in KEYS.items():
        override(wanted, key, str(value))
    return wanted


KEYS = {{
{keys}}}
'''


def run_verb(verb: str, place: Path, run: Path, basis: str, own: Mapping[str, Any], quiet: bool) -> None:
    """Run a verb of `bioptimus` in the run folder `run`. What is in `place` is copied there first, with a config.py.

    `basis`: what the configuration begins with, in Python; `own`: its keys. What is refused leaves nothing. Raises
    ConfigError, InputError, RuntimeError.
    """
    given = run / GIVEN
    lines = ''.join(f'    {key!r}: {plain(value)!r},\n' for key, value in own.items())
    with atomic(place / GIVEN / 'config.py') as file:
        file.write(CONFIG.format(verb=verb, basis=basis, keys=lines))
    new = not run.exists()
    _bring(place / GIVEN, run)
    try:
        _program([verb, f'--config={given / "config.py"}', f'--workdir={run}'], quiet)
    except (ConfigError, InputError):
        if not _begun(run):
            shutil.rmtree(run if new else given)
        raise


def _begun(run: Path) -> bool:
    return any((run / stage).is_dir() for stage in STAGES)


def _bring(place: Path, run: Path) -> None:
    """Put what is given into the run folder, in the place of the same. Raises ConfigError where it is another."""
    files = [path.relative_to(place) for path in sorted(place.rglob('*')) if path.is_file()]
    for name in files:
        old = run / GIVEN / name
        if _begun(run) and old.suffix != '.py' and old.is_file() and sha256(old) != sha256(place / name):
            raise ConfigError(
                f'{run}: was started with another {name.parts[0].partition(".")[0]}; choose another workdir'
            )
    # Only now, when all are known to be the same: what is refused must change nothing.
    for name in files:
        (run / GIVEN / name).parent.mkdir(parents=True, exist_ok=True)
        with atomic(run / GIVEN / name, 'wb') as file:
            file.write((place / name).read_bytes())


def _program(arguments: list[str], quiet: bool) -> None:
    """`bioptimus` with these arguments; its lines go on to where print writes. Raises what its exit code says."""
    command = [sys.executable, '-m', 'bioptimus_jax', *arguments]
    said = ''
    # In a session of its own: Ctrl-C comes here, and from here once to the program, which saves.
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, encoding='utf-8', start_new_session=True
    ) as program:
        assert program.stdout
        try:
            for line in program.stdout:
                said = line.strip() or said
                if not quiet:
                    print(line, end='', flush=True)
        except BaseException:
            program.send_signal(signal.SIGINT)
            program.communicate()
            raise
    if program.returncode < 0:  # what it said last is of its work
        raise RuntimeError(
            f'the run was ended by {signal.Signals(-program.returncode).name}, after it said: {said}'
        )
    if program.returncode:
        kind = {USAGE: ConfigError, BAD_INPUT: InputError}.get(program.returncode, RuntimeError)
        raise kind(said.removeprefix('bioptimus: '))
