"""A whole run from objects to objects, in a process of its own; and what a run has measured, as a table."""

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bioptimus_jax.api.objects import (
    PLACE,
    FilePath,
    Keys,
    ModelOrFolder,
    TokenizerOrFolder,
    as_folder,
    experiment,
    habits_of,
    keys_of,
    model_in,
    plain,
    subwords_of,
    texts_of,
    tokenizer_in,
    undisturbed,
    workplace,
    write_texts,
)
from bioptimus_jax.errors import BAD_INPUT, USAGE, ConfigError, InputError
from bioptimus_jax.experiment.schema import Experiment
from bioptimus_jax.experiment.stages import STAGES
from bioptimus_jax.hosts.remote.models import at_commit
from bioptimus_jax.storage.files import atomic, sha256

if TYPE_CHECKING:
    import pyarrow
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

GIVEN = 'given'
"""The folder, in a run's, with the objects that the run was asked for with, and config.py."""
CONFIG = '''"""What `bioptimus_jax.adapt` was asked for: `bioptimus run --config=THIS --workdir=...` goes on with it."""

from bioptimus_jax.ext import defaults, load, override


def get_config(argument=''):
    wanted = {basis}
    for key, value in KEYS.items():
        override(wanted, key, str(value))
    return wanted


KEYS = {{
{keys}}}
'''
TRAINING = tuple(Experiment().stages[: Experiment().stages.index('export') + 1])
"""The stages of `adapt`: what ends with a model."""


def adapt(
    model: 'ModelOrFolder | None',
    tokenizer: 'TokenizerOrFolder | None',
    texts: Iterable[str] | None,
    workdir: FilePath,
    *,
    config: str = '',
    keys: Keys | None = None,
    quiet: bool = False,
) -> tuple['PreTrainedModel', 'PreTrainedTokenizerBase']:
    """Adapt a model to texts: vocabulary, rows of new tokens, curriculum; returns the model of the last phase.

    `model`: of transformers with `tokenizer`, a Hugging Face folder or hub id with None, or None where the config names
    a source. `texts`: documents, or None where the config or `keys` name files (`{'corpus.inputs': ('a/*.gz',)}`).
    `workdir`: the run folder, which stays: exports, with a pooler where the model had one, what was measured, and
    `given/config.py`, with which `bioptimus` continues. `config`: a shipped config or a .py file; without one
    everything has its default, in the kind of tokenizer and the casing of the model. `keys`: values by their dotted
    names, as `{'vocab.size': 8000, 'phase.0.1.duration': 0.5}`. `quiet`: no lines of progress.

    It is `bioptimus run` in a process of its own, so that this one keeps its accelerators. The same call continues a
    run that was interrupted, and returns the finished model of one that was not. The last stage is export; to measure,
    run `bioptimus finetune --config=WORKDIR/given/config.py --workdir=WORKDIR`.

    Raises ConfigError, InputError as the program does, KeyboardInterrupt after saving, and RuntimeError for a crash.
    """
    run = Path(workdir).absolute()
    given = run / GIVEN
    with workplace() as place, undisturbed():
        (place / GIVEN).mkdir()
        own: dict[str, Any] = {'stages': TRAINING}
        if model is not None:
            source = as_folder(place / GIVEN / 'model', model, tokenizer)
            known = subwords_of(place, source)
            own['source.path'] = given / 'model'
            if isinstance(model, PLACE):
                own['source.path'] = source if Path(model).is_dir() else at_commit(os.fspath(model))
            if not config:
                own |= keys_of(known)
        if texts is not None:
            write_texts(place / GIVEN / 'texts.jsonl', texts_of(texts))
            own |= {'corpus.inputs': (given / 'texts.jsonl',), 'corpus.text_fields': ('text',)}
        own |= keys or {}
        phases = experiment(own, base=config).phases
        lines = ''.join(f'    {key!r}: {plain(value)!r},\n' for key, value in own.items())
        basis = f'load({config!r})' if config else 'defaults()'
        with atomic(place / GIVEN / 'config.py') as file:
            file.write(CONFIG.format(basis=basis, keys=lines))
        new = not run.exists()
        _bring(place / GIVEN, run)
        try:
            _program(['run', f'--config={given / "config.py"}', f'--workdir={run}'], quiet)
        except (ConfigError, InputError):
            if not _begun(run):  # what was refused leaves nothing
                shutil.rmtree(run if new else given)
            raise
    with undisturbed():
        made = run / 'export' / _last_phase(run, phases)
        habits = {} if model is None else habits_of(model if isinstance(model, PLACE) else tokenizer)
        habits.pop('model_max_length', None)  # an export says the positions of its model
        return model_in(made), tokenizer_in(made, habits)


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


def _last_phase(run: Path, phases: tuple[str, ...]) -> str:
    """The phase that was trained last: the order may have been computed."""
    from bioptimus_jax.pretrain.curriculum import read_phases  # late: imports jax

    trained = [placed.name for placed in read_phases(run / 'pretrain')]
    return (trained or list(phases))[-1]


def results(workdir: FilePath, what: str = 'scores') -> 'pyarrow.Table':
    """What a run, or each run of a sweep, has measured, as a table; `.to_pandas()` makes it a data frame.

    `what`: 'scores', a row for every fine-tuning, with columns as `test.default.f1`; 'training', a row for every line
    of the log; 'evaluations', a row for every scoring of held-out documents; 'phases', a row for every phase's end.
    Columns: `run`, the name of the run's folder, and what the records hold, nested ones as `a.b`; lists are left out.
    The table is empty where nothing has been measured yet.

    Raises ConfigError for another `what`, InputError for a folder that holds no run, or damaged files.
    """
    import pyarrow

    from bioptimus_jax.records.record import plain
    from bioptimus_jax.report.measures import flat
    from bioptimus_jax.report.resolved import read_runs

    found = {
        'scores': lambda m: plain(m.finetuned),
        'training': lambda m: [r.line('pretrain') for r in m.training] or plain(m.spent),
        'evaluations': lambda m: [e.line('pretrain') for e in m.evaluations],
        'phases': lambda m: [
            e.line('pretrain') for phase in ('initial', *m.phases) if (e := m.phase_end(phase))
        ],
    }
    if what not in found:
        raise ConfigError(f'what: {what!r} is not one of {", ".join(found)}')
    rows = [
        {'run': m.run.workdir.name, **flat(record)}
        for m in read_runs([Path(workdir).absolute()])
        for record in found[what](m)
    ]
    return pyarrow.table(dict(_columns(rows)))


def _columns(rows: Sequence[Mapping[str, Any]]) -> Iterator[tuple[str, Any]]:
    """Name and values of every column; as text where they are of several types."""
    import pyarrow

    for name in dict.fromkeys(name for row in rows for name in row):
        values = [row.get(name) for row in rows]
        try:
            yield name, pyarrow.array(values)
        except pyarrow.ArrowException:
            yield name, pyarrow.array([None if value is None else str(value) for value in values])
