"""Kills at every file operation of a run folder: begun, extended, made anew, lent; the same bytes after all.

A stage that takes no time, in forks of a process of its own; `benchmarks/operations.py` does the same to the real ones.
"""

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

from bioptimus_jax.experiment import config
from bioptimus_jax.experiment.schema import Experiment
from bioptimus_jax.records.counts import Counts, StageResult
from bioptimus_jax.run.execute import execute
from bioptimus_jax.run.folder import Run
from bioptimus_jax.run.stage import Stage
from bioptimus_jax.storage.files import atomic, write_json

ROOT = Path(__file__).resolve().parents[1]


def numbers(run, folder):
    """A stage that keeps a record, a part in its scratch folder and a result."""
    run.scratch('corpus').mkdir(exist_ok=True)
    write_json(run.scratch('corpus') / 'part.json', [1])
    write_json(folder / 'lint.json', {'words': run.config.corpus.min_words})
    run.metrics.write('corpus', 1, kind='start')
    with atomic(folder / 'below' / 'numbers.txt') as file:
        file.write('1 2 3')
    return StageResult(Counts())


STAGE = Stage(
    'corpus', 'counts', '', '', ('corpus',), lambda run: (), numbers, changeable_keys=('corpus.min_words',)
)


def make(folder: Path, words: int, replace: bool = False, base: str = '') -> None:
    loaded = config.defaults()
    loaded.corpus.min_words = words
    loaded.runtime.base_run = (str(folder / base),) if base else ()
    execute(Run(folder / 'run', Experiment.from_config(loaded), quiet=True), STAGE, replace)


SCENES = {
    'begun': ([], dict(words=5)),
    'extended': ([dict(words=5)], dict(words=9)),
    'made anew': ([dict(words=5)], dict(words=5, replace=True)),
    'lent': ([dict(words=5)], dict(words=5, base='base')),
}


def scene(folder: Path, name: str) -> dict:
    """The folder as it is before the command of a scene, and the command."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    before, command = SCENES[name]
    for settings in before:
        make(folder, **settings)
        if name == 'lent':
            (folder / 'run').rename(folder / 'base')
    return command


def in_fork(folder: Path, command: dict, last: int = 0) -> int:
    from operations import Operations

    child = os.fork()
    if not child:
        code = 1
        try:
            Operations(folder / 'run', last, folder.with_suffix('.log'))
            make(folder, **command)
            code = 0
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def main(folder: Path) -> None:
    from operations import files_of

    for name in SCENES:
        command = scene(folder, name)
        assert in_fork(folder, command) == 0, name
        operations = folder.with_suffix('.log').read_text().splitlines()
        wanted = files_of(folder / 'run')
        assert not [file for file in wanted if '.tmp' in file or 'scratch' in file], wanted
        for number, operation in enumerate(operations, 1):
            if operation.startswith('='):  # has changed nothing: as the one before
                continue
            command = scene(folder, name)
            assert in_fork(folder, command, number) == -signal.SIGKILL, (name, operation)
            assert in_fork(folder, command) == 0, (name, operation)
            found = files_of(folder / 'run')
            for each in (found, wanted):
                each.pop('metrics.jsonl', None)  # holds times
            assert found == wanted, (name, operation)
        print(name, len(operations))


def test_a_kill_at_any_operation_of_a_run_folder_ends_in_the_same_bytes(tmp_path):
    environment = {**os.environ, 'PYTHONPATH': os.pathsep.join([str(ROOT), str(ROOT / 'benchmarks')])}
    ended = subprocess.run(
        [sys.executable, __file__, tmp_path / 'world'], env=environment, capture_output=True, text=True
    )
    assert ended.returncode == 0, ended.stderr
    counted = {
        name: int(number) for name, _, number in (x.rpartition(' ') for x in ended.stdout.splitlines())
    }
    assert counted.keys() == SCENES.keys()
    assert all(number > 10 for number in counted.values()), counted


if __name__ == '__main__':
    main(Path(sys.argv[1]))
