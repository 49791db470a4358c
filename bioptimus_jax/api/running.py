"""A whole run from objects to objects, in a process of its own; and what a run has measured, as a table."""

import os
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
    subwords_of,
    texts_of,
    tokenizer_in,
    undisturbed,
    workplace,
    write_texts,
)
from bioptimus_jax.api.program import GIVEN, run_verb
from bioptimus_jax.errors import ConfigError
from bioptimus_jax.experiment.schema import Experiment
from bioptimus_jax.hosts.remote.models import at_commit

if TYPE_CHECKING:
    import pyarrow
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

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
        basis = f'load({config!r})' if config else 'defaults()'
        run_verb('run', place, run, basis, own, quiet)
    with undisturbed():
        made = run / 'export' / _last_phase(run, phases)
        habits = {} if model is None else habits_of(model if isinstance(model, PLACE) else tokenizer)
        habits.pop('model_max_length', None)  # an export says the positions of its model
        return model_in(made), tokenizer_in(made, habits)


def _last_phase(run: Path, phases: tuple[str, ...]) -> str:
    """The phase that was trained last: the order may have been computed."""
    from bioptimus_jax.pretrain.curriculum import read_phases  # late: imports jax

    trained = [placed.name for placed in read_phases(run / 'pretrain')]
    return (trained or list(phases))[-1]


def results(workdir: FilePath, what: str = 'scores') -> 'pyarrow.Table':
    """What a run, or each run of a sweep, has measured, as a table.

    `.to_pandas()` makes it a data frame; pandas is not among our dependencies: `pip install pandas`.

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
