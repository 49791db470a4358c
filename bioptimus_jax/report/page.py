"""Stage `report`: one self-contained page, and the tables as Markdown and CSV."""

import dataclasses
import importlib.resources
import json
import shlex
import shutil
import statistics
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bioptimus_jax.export import card
from bioptimus_jax.fields import walk
from bioptimus_jax.files import atomic, read_json
from bioptimus_jax.manifests import versions
from bioptimus_jax.model.tensors import read_architecture
from bioptimus_jax.progress import clock
from bioptimus_jax.report import gain
from bioptimus_jax.report.drawing import Figure
from bioptimus_jax.report.figures import all_figures
from bioptimus_jax.report.layout import Table, shown_path, write_tables
from bioptimus_jax.report.measures import PHASE_INITIAL, Measures, read_measures
from bioptimus_jax.report.slices import TITLES as SLICED
from bioptimus_jax.report.tables import all_tables
from bioptimus_jax.run import Run, stage_folder
from bioptimus_jax.schema import phase_of

CARDS = 'cards'
NAMED = 6
"""Models or sets that the description names."""


@dataclasses.dataclass(frozen=True)
class Section:
    """A heading with what stands under it; `folded` tables open on a click, `stages` are those that fill it."""

    title: str
    lead: str
    stages: tuple[str, ...]
    tables: tuple[str, ...] = ()
    figures: tuple[str, ...] = ()
    folded: tuple[str, ...] = ()

    @property
    def anchor(self) -> str:
        return self.title.lower().replace(' ', '-')


SECTIONS = (
    Section(
        'Phases',
        'Does pre-training on the new corpus help, and which phase does?',
        ('pretrain',),
        ('phases',),
        ('heldout_loss',),
    ),
    Section(
        'Entity recognition',
        'How well does each model find entities after fine-tuning, and how sure is that?',
        ('finetune',),
        ('gain', 'entities', 'other_tasks', 'types', 'paper'),
        ('entity_f1', 'checkpoint_f1', 'epoch_f1'),
    ),
    Section(
        'Mentions found and missed',
        'Is it memory or understanding: which mentions of the test sets does a model find?',
        ('finetune',),
        ('recall_surface',),
        ('seen_recall', 'piece_recall', 'context_recall'),
        tuple(f'recall_{name}' for name in SLICED if name != 'surface'),
    ),
    Section(
        'Entity sets',
        'What the models were fine-tuned and scored on, and what is wrong with it.',
        ('finetune',),
        ('sets', 'sets_in_pieces'),
        ('label_shares',),
    ),
    Section(
        'Hidden words',
        'The measure that compares models with different vocabularies.',
        ('analyze',),
        ('cloze',),
    ),
    Section(
        'Corpus',
        'What was read, what was left out and why, and which benchmark sentences stood in it.',
        ('corpus',),
        ('documents', 'leaks', 'leaked_sentences'),
    ),
    Section(
        'Vocabulary',
        'Which words does the domain have, and how finely are they cut?',
        ('vocab',),
        ('frequency', 'frequency_cross', 'pieces', 'whole_entities'),
        ('frequency_classes', 'word_frequency', 'entity_pieces'),
    ),
    Section(
        'New tokens',
        'What surgery made of the tokens that the source does not have.',
        ('surgery',),
        ('surgery', 'contexts', 'probe'),
        ('row_norms',),
    ),
    Section(
        'Difficulty',
        'Which masking setting is hard, and is a curriculum from easy to hard what its name says?',
        ('pretrain',),
        ('difficulty',),
        ('masking_difficulty',),
    ),
    Section('Training', '', ('pretrain',), figures=('training_loss', 'masking_rate')),
    Section(
        'Geometry',
        'Are words spread out, or do they share one direction? Do rare and frequent ones lie apart?',
        ('analyze',),
        ('geometry_words', 'geometry_changes', 'geometry'),
        ('anisotropy', 'words_in_the_plane'),
    ),
    Section(
        'Efficiency',
        'What a result cost: words, tokens, FLOPs, hours and energy, surgery included.',
        ('pretrain',),
        ('efficiency', 'to_reach'),
    ),
    Section('Stages', 'What was done, how long it took, and what was counted.', (), ('stages',)),
)
"""In the order of the page."""


def build(run: Run, folder: Path) -> dict[str, Any]:
    """Write index.html, tables.md, csv/NAME.csv and cards into `folder`, from whatever the run has so far.

    Returns how many tables and figures have something to show. Raises InputError for damaged records.
    """
    m = read_measures(run)
    tables, figures = all_tables(m), {f.name: f for f in all_figures(m)}
    with atomic(folder / 'index.html') as file:
        file.write(page(m, tables, figures))
    shutil.rmtree(folder / 'csv', ignore_errors=True)  # of tables that were there before
    (folder / 'tables.csv').unlink(missing_ok=True)  # all in one, as older versions wrote them
    write_tables(run.workdir.name, tables, folder)
    cards = write_cards(m, folder / CARDS)
    if m.gaps:
        run.say(f'report: {m.gaps}')
    run.say(f'report: {folder / "index.html"}')
    return {
        'tables': sum(bool(t.rows) for t in tables.values()),
        'figures': sum(bool(f.svg) for f in figures.values()),
        'cards': cards,
        'bytes': (folder / 'index.html').stat().st_size,
    }


def write_cards(m: Measures, folder: Path) -> int:
    """A model card with the scores for every exported model that has some: MODEL.md, to be put in place of the
    README.md that export wrote before there were any. Returns how many."""
    written = 0
    for model in m.models:
        exported = stage_folder(m.run, 'export') / model
        about = read_json(exported / 'export.json') if phase_of(model) in m.run.config.phases else None
        results = [
            card.scored(m.task(dataset), dataset, statistics.fmean(scores), len(scores))
            for dataset in m.datasets
            if (scores := m.scores(model, dataset))
        ]
        if about and results:
            with atomic(folder / f'{model}.md') as file:
                file.write(card.model_card(m.run, model, read_architecture(exported), about, results))
            written += 1
    return written


def page(m: Measures, tables: dict[str, Table], figures: dict[str, Figure]) -> str:
    """The page as HTML: no network access, styles, script and figures inside."""
    return render(
        kicker='BIOptimus run',
        **about(m, tables, figures),
        sections=blocks(m, tables, figures),
        command=m.run.command,
    )


def about(m: Measures, tables: dict[str, Table], figures: dict[str, Figure]) -> dict[str, Any]:
    """What the template says of one run beside its sections."""
    return {
        'name': m.run.workdir.name,
        'description': f'{description(m)} {m.gaps}'.strip(),
        'headlines': headlines(m, tables),
        'left_out': ', '.join(section.title for section in sections(m, tables, figures)[1]),
        'stages': ', '.join(m.run.config.stages),
        'settings': [
            (name, _setting(value))
            for name, value, metadata in walk(m.run.config)
            if not name.startswith('runtime.') and (value or not metadata.get('path'))
        ],
    }


def blocks(m: Measures, tables: dict[str, Table], figures: dict[str, Figure]) -> list[dict[str, Any]]:
    """The sections of a run as the template takes them."""
    workdir = shlex.quote(shown_path(m.run.workdir))
    return [
        {
            'title': section.title,
            'anchor': section.anchor,
            'lead': section.lead,
            'tables': [tables[name].html() for name in section.tables if tables[name].rows],
            'figures': [
                (figures[name], f'python -m bioptimus_jax.report.figures {name} {workdir}')
                for name in section.figures
                if figures[name].svg
            ],
            'folded': [tables[name].html() for name in section.folded if tables[name].rows],
            'absent': _absent(section, tables, figures),
        }
        for section in sections(m, tables, figures)[0]
    ]


def render(**values: Any) -> str:
    """The page's template, filled; the versions of what made it are added."""
    import jinja2

    text = importlib.resources.files('bioptimus_jax.report').joinpath('page.html.jinja').read_text('utf-8')
    environment = jinja2.Environment(
        autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    made_with = ', '.join(f'{name} {version}' for name, version in versions().items())
    return environment.from_string(text).render(versions=made_with, **values)


def sections(
    m: Measures, tables: dict[str, Table], figures: dict[str, Figure]
) -> tuple[list[Section], list[Section]]:
    """Those of the page, and those that are empty because their stages do not belong to this run."""

    def belongs(section: Section) -> bool:
        filled = [tables[x].rows for x in (*section.tables, *section.folded)]
        drawn = [figures[x].svg for x in section.figures]
        planned = not section.stages or bool(set(section.stages) & set(m.run.config.stages))
        return planned or any(filled) or any(drawn)

    return [s for s in SECTIONS if belongs(s)], [s for s in SECTIONS if not belongs(s)]


def _absent(section: Section, tables: dict[str, Table], figures: dict[str, Figure]) -> dict[str, str]:
    """Reason -> titles of the tables and figures that it keeps empty."""
    reasons: dict[str, dict[str, None]] = {}
    for table in (tables[name] for name in (*section.tables, *section.folded)):
        if not table.rows:
            reasons.setdefault(table.absent, {})[table.title] = None
    for figure in (figures[name] for name in section.figures):
        if not figure.svg:
            reasons.setdefault(figure.absent, {})[figure.title] = None
    return {reason: '; '.join(titles) for reason, titles in reasons.items()}


def description(m: Measures) -> str:
    """What this run is, in one sentence."""
    e = m.run.config
    if not m.trains:
        return _scoring(m) if 'finetune' in e.stages else f'Stages {", ".join(e.stages)}.'
    if e.source.path or e.surgery.initialisation.source:  # what manifests record has no paths
        vocabulary = {
            'train': 'a vocabulary of its own',
            'file': 'a given vocabulary',
            'source': 'the vocabulary of the source',
            'append': 'the vocabulary of the source and new tokens',
        }
        begin = (
            f'{e.source.path or "A BERT"} adapted with {vocabulary[e.vocab.kind]}, rows {e.surgery.strategy}'
        )
    else:
        begin = f'A BERT from scratch, {e.model.layers} layers of {e.model.hidden}'
    phases = ', '.join(
        f'{name} ({p.masking}, {p.rate:.0%}, {"-".join(f"{100 * c:.0f}" for c in p.corruption)})'
        for name in m.phases
        for p in [e.phase[name]]
    )
    return f'{begin}; curriculum {phases}.'


def headlines(m: Measures, tables: dict[str, Table]) -> list[tuple[str, str]]:
    """A few large numbers for the top of the page, `(value, what it is)`; only those that exist.

    First what the adaptation brought: from the source to the best model.
    """
    gains = gain.headlines(tables['gain'], NAMED)
    found = list(gains)
    first, ends = m.phase_end(PHASE_INITIAL), [e for p in m.phases if (e := m.phase_end(p))]
    if first and ends:
        best = min(ends, key=lambda e: e['frozen_loss'])
        found.append(
            (
                f'{first["frozen_loss"]:.2f} → {best["frozen_loss"]:.2f}',
                f'held-out loss, step 0 to {best["phase"]}',
            )
        )
    last = m.phases[-1] if m.phases else ''
    before, after = m.cloze_of(PHASE_INITIAL), m.cloze_of(last)
    if 'word_accuracy' in before and 'word_accuracy' in after:
        change = f'{before["word_accuracy"]:.1%} → {after["word_accuracy"]:.1%}'
        found.append((change, f'hidden words guessed right, step 0 to {last}'))
    for dataset in () if gains else m.datasets[:3]:
        devel = {x: statistics.fmean(s) for x in m.models if (s := m.scores(x, dataset, 'devel'))}
        top = max(devel, key=lambda x: devel[x])
        f1 = statistics.fmean(m.scores(top, dataset))
        found.append(
            (f'{f1:.1f}', f'test {m.task(dataset).metric.label} on {dataset}, best on devel: {m.label(top)}')
        )
    seconds = sum(manifest.get('seconds', 0) for manifest in m.manifests.values())
    if seconds:
        found.append((clock(seconds), 'for all finished stages'))
    return found


def _scoring(m: Measures) -> str:
    """Of a run that fine-tunes models and trains none; before there are scores, what is planned."""
    settings = m.run.config.finetune
    names = [m.label(x) for x in m.models] or list(settings.models)
    sets = m.datasets or list(settings.datasets)
    parts = [_counted(len(names), 'model', names)]
    parts += [f'on {_counted(len(sets), "set", sets)}'] if sets else []
    parts += [_counted(len(settings.settings), 'setting'), _counted(len(settings.seeds), 'seed')]
    return f'Fine-tuning for entity recognition: {", ".join(parts)}. Nothing is pre-trained here.'


def _counted(number: int, what: str, names: Sequence[str] = ()) -> str:
    named = f' ({", ".join(names[:NAMED])}{", …" if len(names) > NAMED else ""})' if names else ''
    return f'{number} {what}{"s" * (number != 1)}{named}'


def _setting(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)
