"""`bioptimus show`: show masked rows as the model will see them.

What the objectives do, in words; then the first rows of a run as the model will see them: pieces, two spaces
where a word begins, new tokens marked, and what each phase hides of the same row, as its objective says. The
masks of the first phase are those of its first step.

reads:  RUN/rows, RUN/vocab, finished
writes: to the terminal

example:
  bioptimus show --config=small --workdir=runs/small --rows=3
"""

import os
from collections.abc import Iterable
from typing import Any

from bioptimus_jax.cli.command import BEFORE, Command, Verb, config_flag, count, described, needed
from bioptimus_jax.errors import InputError, printable
from bioptimus_jax.progress.console import coloured, complain, numbered
from bioptimus_jax.run.session import require_local

ROWS = 10
COLOURS = {'new': 32, 'hidden': 36, 'random': 31, 'kept': 33}
MARKS = {'new': ('{', '}'), 'hidden': ('', ''), 'random': ('<', '>'), 'kept': ('=', '=')}
"""Brackets around a piece where there are no colours; the mask token itself shows that something is hidden."""


def _call(command: Command) -> None:
    from bioptimus_jax.pretrain import mixture
    from bioptimus_jax.pretrain.objective import objective_in_words, words_of_phase
    from bioptimus_jax.run.folder import Run
    from bioptimus_jax.start.shown import LEGEND, first_rows  # imports jax

    options = command.options
    require_local('--workdir', options.workdir)
    if not os.path.isdir(options.workdir):
        raise InputError(
            f'{options.workdir}: no such run folder; `bioptimus rows` makes the rows that are shown'
        )
    in_colours = coloured()
    for kind, meaning in LEGEND.items():
        print(f'{_marked("the mask token" if kind == "hidden" else "piece", kind, in_colours)}: {meaning}')
    experiment = command.experiment_without_paths
    for name in experiment.all_objectives:
        print(objective_in_words(experiment, name))
    print('phases:', ', '.join(f'{name} ({words_of_phase(experiment, name)})' for name in experiment.phases))
    run = Run(options.workdir, experiment, quiet=True)
    rows = mixture.open_rows(experiment, run.folder('rows'), run.manifest('vocab'))
    of_step = list(first_rows(experiment, rows, run.folder('vocab'), options.rows or ROWS, options.pieces))
    for row in of_step:
        shown = f', the first {len(row.plain)} shown' * (row.pieces > len(row.plain))
        held = f'{numbered(row.documents, "document")}, {numbered(row.pieces, "piece")}'
        print(f'\nrow {row.number}: {held}{shown}')
        named = {'pieces': row.plain, **row.phases}
        width = max(map(len, named))
        for name, pieces in named.items():
            print(f'  {name:<{width}}  {_line(pieces, in_colours)}')
    if len(of_step) < (options.rows or 0):
        complain(f'show: the first step has {numbered(len(of_step), "row")}, and no others are shown')


def _line(pieces: Iterable[Any], in_colours: bool) -> str:
    """The pieces with a space between, and two where a word begins."""
    return ''.join(
        ('  ' if piece.begins else ' ') * (at > 0) + _marked(printable(piece.text), piece.marked, in_colours)
        for at, piece in enumerate(pieces)
    )


def _marked(text: str, kind: str, in_colours: bool) -> str:
    if not kind:
        return text
    if in_colours:
        return f'\x1b[{COLOURS[kind]};1m{text}\x1b[0m'
    before, after = MARKS[kind]
    return f'{before}{text}{after}'


VERB = Verb(
    *described(__doc__),
    (
        config_flag(),
        needed('--workdir', 'run folder', 'DIR'),
        count('--rows', f'number of rows, at most those of a step (default: {ROWS})', None),
        count('--pieces', 'most pieces of a row (default: %(default)s)', 60),
    ),
    _call,
    ('seed', 'rows', 'phases', 'phase', 'pretrain'),
    group=BEFORE,
)
