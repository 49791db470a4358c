"""The stages of a run: what was done, how long it took, and what was counted."""

from bioptimus_jax.progress.console import clock
from bioptimus_jax.records.manifests import Manifest
from bioptimus_jax.report.layout import Cell, Column, Table, missing
from bioptimus_jax.report.measures import Measures, flat
from bioptimus_jax.report.section import Section


def summary(m: Measures) -> Table:
    """Every stage: done or not, seconds, devices, and the counts of its manifest."""
    columns = [
        Column('stage', lambda stage: stage),
        Column('state', lambda stage: _state(stage, m.manifests.get(stage))),
        Column('time', lambda stage: _time(m.manifests.get(stage))),
        Column('computed on', lambda stage: str(m.manifest_of(stage).computed or '')),
        Column('counts', lambda stage: _counts(m.manifest_of(stage))),
    ]
    return Table.of('Stages', columns, m.run.config.stages)


SECTION = Section('Stages', 'What was done, how long it took, and what was counted.', (), {'stages': summary})


def _state(stage: str, manifest: Manifest | None) -> str:
    if manifest is None:
        return 'being written' if stage == 'report' else 'not finished'
    return f'taken from {manifest.folder}' if manifest.folder else 'done'


def _time(manifest: Manifest | None) -> Cell:
    seconds = float((manifest.seconds if manifest else None) or 0)
    return missing() if manifest is None else Cell(clock(seconds), seconds)


def _counts(manifest: Manifest) -> str:
    counts = flat(manifest.counts)
    return '; '.join(f'{name.replace("_", " ")} {_short(value)}' for name, value in counts.items())


def _short(value: object) -> str:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return str(value)
    return f'{value:,}' if isinstance(value, int) else f'{value:,.4g}'
