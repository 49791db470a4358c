"""`bioptimus report RUN [RUN ...]`: one page for several runs, with the paper's tables from whatever they hold."""

import json
import os
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path

from bioptimus_jax.files import atomic
from bioptimus_jax.report import comparison_figures, paper_tables
from bioptimus_jax.report.drawing import Figure
from bioptimus_jax.report.layout import Table, count, missing, words
from bioptimus_jax.report.measures import Measures
from bioptimus_jax.report.page import render
from bioptimus_jax.report.questions import QUESTIONS, Question
from bioptimus_jax.report.resolved import read_runs
from bioptimus_jax.report.trained import DIGITS, setting_name, trained_models, words_per_step
from bioptimus_jax.run import versions
from bioptimus_jax.schema import walk

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


def write(folders: Sequence[str], to: Path | None = None) -> Path:
    """Write index.html, tables.md and tables.csv of these runs and sweeps into a folder, which is returned.

    `to`: by default `tables` in the run or sweep, or in what several have in common. Raises InputError where a
    folder holds no run.
    """
    runs = read_runs(folders)
    models = trained_models(runs)
    made = list({id(t.measures): t.measures for t in models}.values())
    to = to or Path(os.path.commonpath([Path(f).resolve() for f in folders])) / FOLDER
    to.mkdir(parents=True, exist_ok=True)
    sections = {question: paper_tables.tables(question, models) for question in QUESTIONS}
    figures = [comparison_figures.devel_f1(models), comparison_figures.heldout_losses(models)]
    every = [table for both in sections.values() for part in both for table in part]
    names = ' '.join(shlex.quote(_short(Path(f))) for f in folders)
    command = f'bioptimus report {names}'
    last = inventory(runs)
    with atomic(to / 'index.html') as file:
        file.write(_page(command, made, sections, figures, last))
    with atomic(to / 'tables.md') as file:
        text = '\n'.join(table.markdown() for table in (*every, last))
        file.write(f'# Tables of the paper from {len(made)} runs\n\nMade by `{command}`.\n\n{text}')
    with atomic(to / 'tables.csv') as file:
        file.write('\n'.join(table.csv() for table in (*every, last) if table.rows))
    return to


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
    trained = [m for m in runs if m.ner or any(m.phase_end(name) for name in m.phases)]
    for m in trained:
        config = m.run.config
        end = next((e for name in reversed(m.phases) if (e := m.phase_end(name))), None)
        phases = ' → '.join(setting_name(config.phase[name]) for name in m.phases)
        digests = [m.manifests.get(stage, {}).get('content', '—')[:DIGITS] for stage in ('corpus', 'vocab')]
        lines.append(
            [
                words(_short(m.run.workdir)),
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
                words(', '.join(dict.fromkeys(r['model'] for r in m.ner)) or 'none'),
            ]
        )
    note = 'Read from the manifests. Corpus and vocabulary: the first digits of their content.'
    if len(runs) > len(trained):
        note += f' {len(runs) - len(trained)} further folders hold no trained model and no scores yet.'
    return Table('Runs', columns, lines, note=note)


def _page(
    command: str,
    runs: Sequence[Measures],
    tables: Mapping[Question, tuple[list[Table], list[Table]]],
    figures: Sequence[Figure],
    last: Table,
) -> str:
    blocks = []
    for question, (scores, details) in tables.items():
        html = [[table.html() for table in made] for made in (scores, details)]
        blocks.append(_block(question.title.partition(':')[0], LEADS[question.name], html[0], folded=html[1]))
    blocks.append(_block('Curves', 'What happens on the way.', [], [(f, command) for f in figures]))
    blocks.append(_block('Runs', 'What all of it was made from.', [last.html()]))
    answered = [q.title.partition(':')[0] for q, (_, details) in tables.items() if details]
    shown = '; '.join(answered) or 'none of them is answered by these runs'
    return render(
        kicker='BIOptimus runs compared',
        name=runs[0].run.workdir.name if len(runs) == 1 else f'{len(runs)} runs',
        description=f'The tables of the paper from the results at hand: {shown}.',
        headlines=[],
        sections=blocks,
        left_out='',
        stages='',
        command=command,
        versions=', '.join(f'{name} {version}' for name, version in versions().items()),
        settings=_common_settings(runs),
    )


def _block(
    title: str, lead: str, tables: list[str], figures: Sequence = (), folded: Sequence[str] = ()
) -> dict:
    return {
        'title': title,
        'anchor': title.lower().replace(' ', '-'),
        'lead': lead,
        'tables': tables,
        'figures': list(figures),
        'folded': list(folded),
        'absent': {},
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


def _short(folder: Path) -> str:
    inside = folder.resolve().is_relative_to(Path.cwd())
    return os.path.relpath(folder) if inside else str(folder)
