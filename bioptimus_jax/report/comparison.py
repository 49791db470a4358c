"""`bioptimus report RUN [RUN ...]`: one page, with the paper's tables from whatever the runs hold.

Of one run all that its own page has comes first.
"""

import dataclasses
import itertools
import json
import os
import re
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from bioptimus_jax.fields import walk
from bioptimus_jax.files import atomic, write_jsonl
from bioptimus_jax.report import comparison_figures, efficiency, paper_tables
from bioptimus_jax.report.drawing import Figure
from bioptimus_jax.report.figures import all_figures
from bioptimus_jax.report.layout import Table, count, missing, shown_path, words, write_tables
from bioptimus_jax.report.measures import Measures, read_measures
from bioptimus_jax.report.page import about, blocks, render
from bioptimus_jax.report.questions import QUESTIONS, Question
from bioptimus_jax.report.records import RECORDS, Recorded, records_of
from bioptimus_jax.report.resolved import read_runs
from bioptimus_jax.report.tables import all_tables
from bioptimus_jax.report.trained import (
    DIGITS,
    Trained,
    curriculum_name,
    setting_name,
    trained_models,
    words_per_step,
)

FOLDER = 'tables'
LEADS = {
    'table2': 'Where do the rows of new tokens come from, and does it matter after training?',
    'table3': 'Which masking setting is best, each on its own?',
    'table5': 'What does every further phase bring? It is also more steps: Table 7 tells the two apart.',
    'table6': 'How does it compare with other models under the same fine-tuning?',
    'table7': 'Is it the curriculum, or only more steps?',
    'orders': 'Does the order of the settings matter? The fair test: equal words, equal learning rates.',
    'corruption': 'Does dropping the 80-10-10 rule reduce degeneration, once as many pieces are shown as [MASK]?',
}


def write(
    folders: Sequence[str], to: Path | None = None, losses: Sequence[float] = (), f1: Sequence[float] = ()
) -> Path:
    """Write index.html, tables.md, csv/NAME.csv and results.jsonl of these runs and sweeps into a folder, returned.

    A file of records stands for its runs, and gives the same tables.

    `to`: by default `tables` in the run or sweep, or in what several have in common. `losses`, `f1`: levels for
    `efficiency.arms`. Raises InputError where a folder holds no run.
    """
    runs = read_runs(folders)
    models = trained_models(runs)
    given = [f'--to={shown_path(to)}'] if to else []
    for flag, levels in (('--loss', losses), ('--f1', f1)):
        given += [f'{flag}={",".join(f"{level:g}" for level in levels)}'] if levels else []
    command = shlex.join(['bioptimus', 'report', *(shown_path(Path(f)) for f in folders), *given])
    to = to or Path(os.path.commonpath([_folder(f) for f in folders])) / FOLDER
    to.mkdir(parents=True, exist_ok=True)
    sections = {question: paper_tables.tables(question, models) for question in QUESTIONS}
    drawn = [comparison_figures.devel_f1(models), comparison_figures.heldout_losses(models)]
    reached, last = effort(models, losses, f1), inventory(runs)
    compared = _sections(command, sections, drawn, reached, last)
    every = {
        _name(question, table): table
        for question, both in sections.items()
        for table in itertools.chain(*both)
    }
    every |= {'effort': reached, 'runs': last}
    if len(runs) == 1 and not isinstance(runs[0].run, Recorded):
        m = read_measures(runs[0].run)
        own, figures = all_tables(m), {f.name: f for f in all_figures(m)}
        title, every = m.run.workdir.name, own | every
        page = _page_of_one(command, m, own, figures, compared)
    else:
        made = list({id(t.measures): t.measures for t in models}.values())
        title, page = f'Tables of the paper from {len(made)} runs', _page(command, made, sections, compared)
    with atomic(to / 'index.html') as file:
        file.write(page)
    write_tables(f'{title}\n\nMade by `{command}`.', every, to)
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
    last, left_out = comparison_figures.one_set_up(ends)
    groups: dict[str, dict[int | None, Measures]] = {}
    for t in last:
        groups.setdefault(_arm(t, last), {}).setdefault(t.seed, t.measures)
    table = efficiency.arms({arm: list(seeds.values()) for arm, seeds in groups.items()}, losses, f1)
    return dataclasses.replace(table, note=f'{table.note} {left_out}'.strip())


def _arm(t: Trained, among: Sequence[Trained]) -> str:
    """What tells it from the others: initialisation, settings, learning rate, words of the phases."""

    def parts(x: Trained) -> list[str]:
        lengths = [length for name, length in x.conditions.items() if name.startswith('words of')]
        alike = len(lengths) > 1 == len(set(lengths))
        return [
            x.initialisation,
            curriculum_name(x.path),
            f'learning rate {x.rate:g}',
            f'{f"{len(lengths)} × {lengths[0]}" if alike else "; ".join(lengths)} words',
        ]

    several = [len(set(column)) > 1 for column in zip(*map(parts, among), strict=True)]
    return ', '.join(itertools.compress(parts(t), several)) or t.initialisation


def inventory(runs: Sequence[Measures]) -> Table:
    """Every run that the page was made from: where it lies and how it was made."""
    columns = [
        'run',
        'initialisation',
        'phases',
        'words',
        'seed',
        'learning rate',
        'corpus',
        'vocabulary',
        'models scored',
    ]
    lines = []
    trained = [m for m in runs if m.finetuned or any(m.phase_end(name) for name in m.phases)]
    for m in trained:
        config = m.run.config
        end = next((e for name in reversed(m.phases) if (e := m.phase_end(name))), None)
        phases = ' → '.join(setting_name(config.phase[name]) for name in m.phases)
        digests = [m.manifests.get(stage, {}).get('content', '—')[:DIGITS] for stage in ('corpus', 'vocab')]
        lines.append(
            [
                words(shown_path(m.run.workdir)),
                words(f'{config.surgery.strategy}, {config.surgery.scale}' if m.trains else 'none'),
                words(phases or 'none'),
                count(end['step'] * words_per_step(m)) if end else missing(),
                words(config.seed if m.trains else '—'),
                words(
                    f'{config.phase[m.phases[0]].learning_rate or config.pretrain.learning_rate:g}'
                    if m.trains
                    else '—'
                ),
                *map(words, digests),
                words(', '.join(dict.fromkeys(r['model'] for r in m.finetuned)) or 'none'),
            ]
        )
    note = 'Read from the manifests. Corpus and vocabulary: the first digits of their content.'
    if len(runs) > len(trained):
        note += f' {len(runs) - len(trained)} further folders hold no trained model and no scores yet.'
    gaps = ''.join(f' {shown_path(m.run.workdir)}: {m.gaps}' for m in runs if m.gaps)
    return Table('Runs', columns, lines, note=note + gaps)


def _page_of_one(
    command: str,
    m: Measures,
    tables: dict[str, Table],
    figures: dict[str, Figure],
    compared: Sequence[dict[str, Any]],
) -> str:
    """All that the run's own page has, then what several runs have."""
    sections = [*blocks(m, tables, figures), *compared]
    return render(kicker='BIOptimus run', **about(m, tables, figures), sections=sections, command=command)


def _page(
    command: str,
    runs: Sequence[Measures],
    tables: Mapping[Question, tuple[list[Table], list[Table]]],
    compared: Sequence[dict[str, Any]],
) -> str:
    answered = [q.title.partition(':')[0] for q, (_, details) in tables.items() if details]
    shown = '; '.join(answered) or 'none of them is answered by these runs'
    return render(
        kicker='BIOptimus runs compared',
        name=f'{len(runs)} runs',
        description=f'The tables of the paper from the results at hand: {shown}.',
        headlines=[],
        sections=compared,
        left_out='',
        stages='',
        command=command,
        settings=_common_settings(runs),
    )


def _sections(
    command: str,
    tables: Mapping[Question, tuple[list[Table], list[Table]]],
    figures: Sequence[Figure],
    reached: Table,
    last: Table,
) -> list[dict[str, Any]]:
    sections = []
    for question, (scores, details) in tables.items():
        title = question.title.partition(':')[0]
        sections.append(_block(title, LEADS[question.name], scores, folded=details))
    drawn = [(figure, command) for figure in figures if figure.svg]
    absent = {figure.absent: figure.title for figure in figures if not figure.svg}
    sections.append(_block('Curves', 'What happens on the way.', figures=drawn, absent=absent))
    sections.append(_block('Effort', 'What each arm took, surgery included.', [reached]))
    sections.append(_block('Runs', 'What all of it was made from.', [last]))
    return sections


def _block(
    title: str,
    lead: str,
    tables: Sequence[Table] = (),
    figures: Sequence[tuple[Figure, str]] = (),
    folded: Sequence[Table] = (),
    absent: Mapping[str, str] | None = None,
) -> dict[str, Any]:
    return {
        'title': title,
        'anchor': title.lower().replace(' ', '-'),
        'lead': lead,
        'tables': [table.html() for table in tables],
        'figures': figures,
        'folded': [table.html() for table in folded],
        'absent': absent or {},
    }


def _common_settings(runs: Sequence[Measures]) -> list[tuple[str, str]]:
    """Settings that are the same in every run that pre-trains."""
    flat = [
        {name: json.dumps(value, ensure_ascii=False) for name, value, _ in walk(m.run.config)}
        for m in runs
        if m.trains
    ]
    shared = {k: v for k, v in (flat[0] if flat else {}).items() if all(f.get(k) == v for f in flat)}
    return [
        (k, v) for k, v in shared.items() if not k.startswith(('runtime.', 'phase.', 'stages', 'source.'))
    ]
