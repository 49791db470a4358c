"""One figure of a run alone, as SVG, from the files of the run.

python -m bioptimus_jax.report.figures NAME WORKDIR [FILE.svg]
"""

import sys
from pathlib import Path

from bioptimus_jax.errors import InputError
from bioptimus_jax.files import atomic
from bioptimus_jax.report.measures import read_measures
from bioptimus_jax.report.page import FIGURES
from bioptimus_jax.report.resolved import experiment_of
from bioptimus_jax.run import Run


def main(arguments: list[str]) -> None:
    """Write the figure; ends the program with one line where there is none."""
    if len(arguments) not in (2, 3) or arguments[0] not in FIGURES:
        sys.exit(f'usage: python -m bioptimus_jax.report.figures {"|".join(FIGURES)} WORKDIR [FILE.svg]')
    name, workdir = arguments[0], Path(arguments[1])
    if not workdir.is_dir():
        sys.exit(f'{workdir}: no such run folder')
    try:
        figure = FIGURES[name](read_measures(Run(workdir, experiment_of(workdir), quiet=True)))
    except InputError as error:
        sys.exit(str(error))
    if figure.empty:
        sys.exit(f'{workdir}: {figure.absent}')
    with atomic(Path(arguments[2] if len(arguments) == 3 else f'{name}.svg')) as file:
        file.write(figure.svg + '\n')


if __name__ == '__main__':
    main(sys.argv[1:])
