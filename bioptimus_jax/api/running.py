"""What a run has measured, as a table."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bioptimus_jax.api.objects import FilePath
from bioptimus_jax.errors import ConfigError

if TYPE_CHECKING:
    import pyarrow


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
