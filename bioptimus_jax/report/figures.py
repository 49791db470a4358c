"""The figures of a run as inline SVG that follows the page's colours, light or dark.

    python -m bioptimus_jax.report.figures NAME WORKDIR [FILE.svg]

draws one of them alone, from the files of the run.
"""

import dataclasses
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from bioptimus_jax.errors import InputError
from bioptimus_jax.files import atomic
from bioptimus_jax.manifests import STARTED, read_record
from bioptimus_jax.report import (
    curves,
    difficulty,
    finetune_figures,
    geometry,
    slice_figures,
    vocabulary_figures,
)
from bioptimus_jax.report.drawing import SERIES, Figure, draw_svg
from bioptimus_jax.report.measures import Measures, read_measures
from bioptimus_jax.run import Run
from bioptimus_jax.schema import Experiment, Finetune, Phase


def all_figures(m: Measures) -> list[Figure]:
    """Every figure, in the order of the page."""
    return [draw(m) for draw in FIGURES.values()]


def row_norms(m: Measures) -> Figure:
    """How long the embedding rows of shared and of new tokens are after surgery."""
    title = 'Norms of shared and new rows'
    shared = [t['norm'] for t in m.tokens if t.get('kind') == 'copied' and t.get('norm') is not None]
    new = [t['norm'] for t in m.tokens if t.get('kind') != 'copied' and t.get('norm') is not None]
    if not shared and not new:
        return Figure('row_norms', title, '', '', absent='stage surgery has not been run.')

    def draw(axes: Any) -> None:
        low, high = min(shared + new), max(shared + new)
        edges = [low + (high - low or 1) * i / 48 for i in range(49)]
        for norms, colour, label in ((shared, SERIES[0], 'shared'), (new, SERIES[1], 'new')):
            axes.hist(norms, edges, color=colour, alpha=0.65, label=f'{label}, {len(norms):,} rows')
        axes.set_xlabel('norm of the row at step 0')
        axes.set_ylabel('rows')
        axes.legend(loc='upper right')

    means = [f'{label} {sum(x) / len(x):.2f}' for label, x in (('shared', shared), ('new', new)) if x]
    caption = 'Literal last-layer states may be longer than the rows they join; see config.surgery.scale.'
    return Figure(
        'row_norms',
        title,
        caption,
        f'Histogram of row norms; means: {", ".join(means)}.',
        draw_svg('row_norms', draw),
    )


FIGURES: dict[str, Callable[[Measures], Figure]] = {
    f.__name__: f
    for f in (
        curves.heldout_loss,
        *finetune_figures.DRAWN,
        *slice_figures.DRAWN,
        curves.training_loss,
        curves.masking_rate,
        row_norms,
        *vocabulary_figures.DRAWN,
        *difficulty.DRAWN,
        *geometry.DRAWN,
    )
}


def _made_with(workdir: Path) -> Experiment:
    """What the run was made with, as far as it decides a figure: the phases trained, the models scored."""
    models = (read_record(workdir / 'finetune') or {}).get('config', {}).get('finetune.models', ())
    experiment = dataclasses.replace(
        Experiment(), finetune=dataclasses.replace(Finetune(), models=tuple(models))
    )
    if not (workdir / 'pretrain').exists():
        return dataclasses.replace(experiment, stages=('finetune',))
    manifest = read_record(workdir / 'pretrain') or read_record(workdir / 'pretrain', STARTED) or {}
    settings = manifest.get('config', {})
    names = settings.get('phases')
    if not names or any(f'phase.{name}.rate' not in settings for name in names):
        return experiment
    phases = {name: Phase(rate=settings[f'phase.{name}.rate']) for name in names}
    return dataclasses.replace(experiment, phases=tuple(names), phase=phases)


def main(arguments: list[str]) -> None:
    """One figure of a run as SVG: `python -m bioptimus_jax.report.figures NAME WORKDIR [FILE.svg]`."""
    if len(arguments) not in (2, 3) or arguments[0] not in FIGURES:
        sys.exit(f'usage: python -m bioptimus_jax.report.figures {"|".join(FIGURES)} WORKDIR [FILE.svg]')
    name, workdir = arguments[:2]
    if not Path(workdir).is_dir():
        sys.exit(f'{workdir}: no such run folder')
    try:
        figure = FIGURES[name](read_measures(Run(workdir, _made_with(Path(workdir)), quiet=True)))
    except InputError as error:
        sys.exit(str(error))
    if not figure.svg:
        sys.exit(f'{workdir}: {figure.absent}')
    with atomic(Path(arguments[2] if len(arguments) == 3 else f'{name}.svg')) as file:
        file.write(figure.svg + '\n')


if __name__ == '__main__':
    main(sys.argv[1:])
