"""Stage `report`: one self-contained page, and the tables as Markdown and CSV."""

import importlib.resources
import json
import os
import shlex
from pathlib import Path
from typing import Any

from bioptimus_jax.files import atomic
from bioptimus_jax.progress import clock
from bioptimus_jax.report.figures import Figure, all_figures
from bioptimus_jax.report.layout import Table
from bioptimus_jax.report.measures import PHASE_INITIAL, Measures, read_measures
from bioptimus_jax.report.tables import all_tables
from bioptimus_jax.run import Run, versions
from bioptimus_jax.schema import walk

SECTIONS = (
    (
        'Phases',
        'Does pre-training on the new corpus help, and which phase does?',
        ('phases',),
        ('heldout_loss',),
    ),
    ('Entity recognition', '', ('entities', 'paper'), ('entity_f1',)),
    ('Hidden words', 'The measure that compares models with different vocabularies.', ('cloze',), ()),
    (
        'Corpus',
        'What was read, what was left out and why, and which benchmark sentences stood in it.',
        ('documents', 'leaks', 'leaked_sentences'),
        (),
    ),
    (
        'Vocabulary',
        'Which words does the domain have, and how finely are they cut?',
        ('frequency', 'frequency_cross', 'pieces', 'whole_entities'),
        ('word_frequency', 'entity_pieces'),
    ),
    (
        'New tokens',
        'What surgery made of the tokens that the source does not have.',
        ('surgery', 'contexts', 'probe'),
        ('row_norms',),
    ),
    ('Training', '', (), ('training_loss', 'masking_rate')),
    ('Geometry', 'Are the embeddings spread out, or do they share one direction?', ('geometry',), ()),
    ('Stages', 'What was done, how long it took, and what was counted.', ('stages',), ()),
)
"""Heading, lead, tables and figures of each section, in the order of the page."""


def build(run: Run, folder: Path) -> dict[str, Any]:
    """Write index.html, tables.md and tables.csv into `folder`, from whatever the run has so far.

    Returns how many tables and figures have something to show. Raises InputError for damaged records.
    """
    m = read_measures(run)
    tables, figures = all_tables(m), {f.name: f for f in all_figures(m)}
    with atomic(folder / 'index.html') as file:
        file.write(page(m, tables, figures))
    with atomic(folder / 'tables.md') as file:
        file.write(f'# {run.workdir.name}\n\n' + '\n'.join(t.markdown() for t in tables.values()))
    with atomic(folder / 'tables.csv') as file:
        file.write('\n'.join(t.csv() for t in tables.values() if t.rows))
    run.say(f'report: {folder / "index.html"}')
    return {
        'tables': sum(bool(t.rows) for t in tables.values()),
        'figures': sum(bool(f.svg) for f in figures.values()),
        'bytes': (folder / 'index.html').stat().st_size,
    }


def page(m: Measures, tables: dict[str, Table], figures: dict[str, Figure]) -> str:
    """The page as HTML: no network access, styles, script and figures inside."""
    import jinja2

    text = importlib.resources.files('bioptimus_jax.report').joinpath('page.html.jinja').read_text('utf-8')
    environment = jinja2.Environment(
        autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    workdir = (
        os.path.relpath(m.run.workdir) if m.run.workdir.is_relative_to(Path.cwd()) else str(m.run.workdir)
    )
    sections = [
        {
            'title': title,
            'anchor': title.lower().replace(' ', '-'),
            'lead': lead,
            'tables': [tables[name].html() for name in shown],
            'figures': [
                (figures[name], f'python -m bioptimus_jax.report.figures {name} {shlex.quote(workdir)}')
                for name in drawn
            ],
        }
        for title, lead, shown, drawn in SECTIONS
    ]
    return environment.from_string(text).render(
        name=m.run.workdir.name,
        description=description(m),
        headlines=headlines(m),
        sections=sections,
        command=f'bioptimus report --config=… --workdir={shlex.quote(workdir)}',
        versions=', '.join(f'{name} {version}' for name, version in versions().items()),
        settings=[
            (name, _setting(value))
            for name, value, metadata in walk(m.run.config)
            if not name.startswith('runtime.')
        ],
    )


def description(m: Measures) -> str:
    """What this run is, in one sentence."""
    e = m.run.config
    if e.source.path:
        vocabulary = {
            'train': 'a vocabulary of its own',
            'file': 'a given vocabulary',
            'source': 'the vocabulary of the source',
            'append': 'the vocabulary of the source and new tokens',
        }
        begin = f'{e.source.path} adapted with {vocabulary[e.vocab.kind]}, rows {e.surgery.strategy}'
    else:
        begin = f'A BERT from scratch, {e.model.layers} layers of {e.model.hidden}'
    phases = ', '.join(
        f'{name} ({p.masking}, {p.rate:.0%}, {"-".join(f"{100 * c:.0f}" for c in p.corruption)})'
        for name in m.phases
        for p in [e.phase[name]]
    )
    return f'{begin}; curriculum {phases}.'


def headlines(m: Measures) -> list[tuple[str, str]]:
    """A few large numbers for the top of the page, `(value, what it is)`; only those that exist."""
    found = []
    first, ends = m.phase_end(PHASE_INITIAL), [e for p in m.phases if (e := m.phase_end(p))]
    if first and ends:
        best = min(ends, key=lambda e: e['frozen_loss'])
        found.append(
            (
                f'{first["frozen_loss"]:.2f} → {best["frozen_loss"]:.2f}',
                f'held-out loss, step 0 to {best["phase"]}',
            )
        )
    before, after = m.cloze_of(PHASE_INITIAL), m.cloze_of(m.phases[-1])
    if 'word_accuracy' in before and 'word_accuracy' in after:
        change = f'{before["word_accuracy"]:.1%} → {after["word_accuracy"]:.1%}'
        found.append((change, f'hidden words guessed right, step 0 to {m.phases[-1]}'))
    for dataset in m.datasets[:3]:
        means = {x: sum(s) / len(s) for x in m.models if (s := m.scores(x, dataset))}
        top = max(means, key=lambda x: means[x])
        found.append((f'{means[top]:.1f}', f'test F1 on {dataset}, best: {top}'))
    seconds = sum(manifest.get('seconds', 0) for manifest in m.manifests.values())
    if seconds:
        found.append((clock(seconds), 'for all finished stages'))
    return found


def _setting(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)
