"""How `run` and `demo` end: the table of the phases, what adaptation brought, and where models and page are."""

from bioptimus_jax.finetuning.finished import models_asked_for
from bioptimus_jax.progress.console import clock
from bioptimus_jax.records.kept import ENSEMBLE
from bioptimus_jax.report import gain
from bioptimus_jax.report.measures import read_measures
from bioptimus_jax.report.sections.phases import phases
from bioptimus_jax.run.folder import Run

KEPT = (f'*/{ENSEMBLE}', 'seed-*/model/config.json')


def ending(run: Run, seconds: float) -> str:
    """The last lines of a run that took so long; of one without a report its models alone."""
    parts, last, stages = list[str](), '', run.config.stages
    if 'report' in stages:
        m = read_measures(run, details=False)
        table, brought = phases(m), gain.overall(m)
        parts += ['', table.text(), ''] if table.rows else []
        parts += [brought.sentence] if brought else []
        last = f'done in {clock(seconds)}; the report: {run.workdir / "report" / "index.html"}'
    if 'export' in stages:
        exported = sorted(run.stage_folder('export').glob('*/config.json'))
        parts.append(f'models: {", ".join(str(path.parent) for path in exported)}')
    kept = [
        path.parent for what in KEPT for path in sorted(run.stage_folder('finetune').glob(f'*/*/*/{what}'))
    ]  # of config.finetune.keep
    if 'finetune' in stages and (asked := models_asked_for(kept)):
        parts.append(f'fine-tuned models: {", ".join(map(str, asked))}')
    return '\n'.join([*parts, *filter(None, [last])])
