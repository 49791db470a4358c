"""`bioptimus report RUN [RUN ...]`: one page, with the paper's tables from whatever the runs hold.

All that the own page of a single run has comes first.
"""

import dataclasses
import itertools
import json
import os
import re
import shlex
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from bioptimus_jax.config.fields import walk
from bioptimus_jax.lab import arms, comparison_figures, paper_tables, spending
from bioptimus_jax.lab.questions import QUESTIONS, Question
from bioptimus_jax.lab.sections import blurb, papers
from bioptimus_jax.lab.sections.followed import followed
from bioptimus_jax.lab.trained import (
    DIGITS,
    Trained,
    name_among,
    one_set_up,
    phase_name,
    trained_models,
    words_until,
)
from bioptimus_jax.report.drawing import write_figures
from bioptimus_jax.report.layout import NOT_RUN, Cell, Column, Table, count, each, write_tables
from bioptimus_jax.report.measures import Measures, read_measures
from bioptimus_jax.report.page import About, Block, Made, remove_parts, render
from bioptimus_jax.report.records import RECORDS, Recorded, named, records_of
from bioptimus_jax.report.resolved import read_runs
from bioptimus_jax.storage.files import atomic, shown_path, write_jsonl

FOLDER = 'tables'


def write(
    folders: Sequence[str], to: Path | None = None, losses: Sequence[float] = (), f1: Sequence[float] = ()
) -> Path:
    """Write index.html, tables.md, csv/NAME.csv and results.jsonl of these runs and sweeps into a folder, returned.

    A file of records stands for its runs, and gives the same tables.

    `to`: by default `tables` in the run or sweep, or in what several have in common. `losses`, `f1`: levels for
    `spending.arms`. Raises InputError where a folder holds no run.
    """
    runs = read_runs(folders)
    models = trained_models(runs)
    given = [f'--to={shown_path(to)}'] if to else []
    for flag, levels in (('--loss', losses), ('--f1', f1)):
        given += [f'{flag}={",".join(f"{level:g}" for level in levels)}'] if levels else []
    command = shlex.join(['bioptimus', 'report', *(shown_path(Path(f)) for f in folders), *given])
    answers = {question: paper_tables.tables(question, models) for question in QUESTIONS}
    grouped = arms.grouped(named(runs))
    beside, frozen = arms.scores(grouped), followed(grouped)
    reached, last = effort(models, losses, f1), inventory(runs)
    sections = [
        Block.of(question.title.partition(':')[0], question.lead, scores, folded=details)
        for question, (scores, details) in answers.items()
    ]
    figures = [comparison_figures.devel_f1(models), comparison_figures.heldout_losses(models)]
    sections += [
        Block.of('Curves', 'What happens on the way.', figures=figures),
        Block.of(
            'Side by side', 'Every run at step 0 and at the end of each phase; seeds together.', [beside]
        ),
        Block.of(
            'Frozen states', 'Do states without fine-tuning say what F1 fine-tuning will give?', [frozen]
        ),
        Block.of('Effort', 'What each arm took, surgery included.', [reached]),
        Block.of('Runs', 'What all of it was made from.', [last]),
    ]
    tables = {_name(q, table): table for q, both in answers.items() for table in itertools.chain(*both)}
    tables |= {'side-by-side': beside, 'frozen-states': frozen, 'effort': reached, 'runs': last}
    if len(runs) == 1 and not isinstance(runs[0].run, Recorded):  # all that its own page has comes first
        # Read again: many runs are read without audit, tokens and points.
        own = Made.of(read_measures(runs[0].run))
        about, title = own.about(), own.measures.run.workdir.name
        sections, tables = (
            own.blocks() + [dataclasses.replace(s, closed=True) for s in sections],
            own.tables | tables,
        )
        figures = [*own.figures.values(), *figures]
    else:
        others = {'blurb': blurb.of_runs(named(runs))} | papers.tables(named(runs))
        sections.append(Block.of(papers.SECTION.title, papers.SECTION.lead, folded=list(others.values())))
        tables |= {name: table for name, table in others.items() if table.rows}
        made = list({id(t.measures): t.measures for t in models}.values())
        about, title = _about(made, answers), f'Tables of the paper from {len(made)} runs'
    page = render(sections, about, command)
    if not to:  # a folder of its own, whereas a given one may hold files of others
        to = Path(os.path.commonpath([_folder(f) for f in folders])) / FOLDER
        remove_parts(to)  # after all that may fail
    to.mkdir(parents=True, exist_ok=True)
    with atomic(to / 'index.html') as file:
        file.write(page)
    write_figures(figures, to / 'figures')
    write_tables(f'{title}\n\nMade by `{command}`.', tables, to)
    write_jsonl(to / RECORDS, records_of(runs))
    return to


def _folder(given: str) -> Path:
    path = Path(given).resolve()
    return path.parent if path.is_file() else path


def _name(question: Question, table: Table) -> str:
    """table2, table2-differences, table2-set-up-b: of the file that it is written to."""
    name = f'{question.name} {table.title.removeprefix(question.title).lower()}'
    return re.sub(r'\W+', '-', name).strip('-')


def effort(models: Sequence[Trained], losses: Sequence[float] = (), f1: Sequence[float] = ()) -> Table:
    """What each arm took: the ends of runs that compare, by initialisation and curriculum, each seed once."""
    ends = [t for t in models if t.own and not t.partial and len(t.path) == len(t.measures.phases)]
    last, left_out = one_set_up(ends)
    groups: dict[str, dict[int | None, Measures]] = {}
    for t in last:
        groups.setdefault(name_among(t, last), {}).setdefault(t.seed, t.measures)
    table = spending.arms({arm: list(seeds.values()) for arm, seeds in groups.items()}, losses, f1)
    return dataclasses.replace(table, note=f'{table.note} {left_out}'.strip())


def inventory(runs: Sequence[Measures]) -> Table:
    """Every run that the page was made from: where it lies and how it was made."""
    trained = [m for m in runs if m.finetuned or any(m.phase_end(name) for name in m.phases)]

    def setting(of: Callable[[Measures], object], otherwise: str) -> Callable[[Measures], str]:
        return lambda m: str(of(m)) if m.trains else otherwise

    def seen(m: Measures) -> Cell:
        end = next((e for name in reversed(m.phases) if (e := m.phase_end(name))), None)
        return count(words_until(m, end.step) if end else None)

    def phases(m: Measures) -> str:
        return ' → '.join(phase_name(m.run.config, name) for name in m.phases) or 'none'

    def rate(m: Measures) -> str:
        return f'{m.run.config.phase[m.phases[0]].learning_rate or m.run.config.pretrain.learning_rate:g}'

    def rows(m: Measures) -> str:
        return f'{m.run.config.surgery.strategy}, {m.run.config.surgery.scale}'

    columns = [
        Column('run', lambda m: shown_path(m.run.workdir)),
        Column('initialisation', setting(rows, 'none')),
        Column('phases', phases),
        Column('words', seen),
        Column('seed', setting(lambda m: m.run.config.seed, NOT_RUN)),
        Column('learning rate', setting(rate, NOT_RUN)),
        *each(
            {'corpus': 'corpus', 'vocab': 'vocabulary'},
            lambda stage, m: (m.content_of(stage) or NOT_RUN)[:DIGITS],
        ),
        Column('models scored', lambda m: ', '.join(dict.fromkeys(r.model for r in m.finetuned)) or 'none'),
    ]
    note = 'Read from the manifests. Corpus and vocabulary: the first digits of their content.'
    if len(runs) > len(trained):
        note += f' {len(runs) - len(trained)} further folders hold no trained model and no scores yet.'
    gaps = ''.join(f' {shown_path(m.run.workdir)}: {m.gaps}' for m in runs if m.gaps)
    return Table.of('Runs', columns, trained, note=note + gaps)


def _about(runs: Sequence[Measures], answers: Mapping[Question, tuple[list[Table], list[Table]]]) -> About:
    """What the page says of several runs beside their sections."""
    answered = [q.title.partition(':')[0] for q, (_, details) in answers.items() if details]
    shown = '; '.join(answered) or 'none of them is answered by these runs'
    return About(
        kicker='BIOptimus runs compared',
        name=f'{len(runs)} runs',
        description=f'The tables of the paper from the results at hand: {shown}.',
        settings=_common_settings(runs),
    )


def _common_settings(runs: Sequence[Measures]) -> list[tuple[str, str]]:
    """Settings that are the same in every run that pre-trains."""
    flat = [
        {n: json.dumps(v, ensure_ascii=False) for n, v, _ in walk(m.run.config)} for m in runs if m.trains
    ]
    shared = [(k, v) for k, v in (flat[0] if flat else {}).items() if all(f.get(k) == v for f in flat)]
    return [(k, v) for k, v in shared if not k.startswith(('runtime.', 'phase.', 'stages', 'source.'))]
