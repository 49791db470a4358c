"""Stage `report`: one self-contained page, and the tables as Markdown and CSV."""

import contextlib
import copy
import dataclasses
import importlib.resources
import json
import shutil
import statistics
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from bioptimus_jax.config.fields import walk
from bioptimus_jax.config.plugins import Plugins
from bioptimus_jax.errors import InputError
from bioptimus_jax.export import card
from bioptimus_jax.model.config import FAMILIES, phase_of
from bioptimus_jax.model.tensors import read_architecture
from bioptimus_jax.pretrain.objective import objective_in_words, unusual_objective, words_of_phase
from bioptimus_jax.progress.console import clock, numbered
from bioptimus_jax.records.counts import ReportCounts, StageResult
from bioptimus_jax.records.export import read_export
from bioptimus_jax.report import gain
from bioptimus_jax.report.drawing import Figure, write_figures
from bioptimus_jax.report.layout import Table, write_tables
from bioptimus_jax.report.measures import PHASE_INITIAL, Measures, read_measures
from bioptimus_jax.report.resolved import as_made, given_otherwise
from bioptimus_jax.report.section import Section, arranged
from bioptimus_jax.report.use import Use, use
from bioptimus_jax.run.folder import Run
from bioptimus_jax.run.manifests import outdated, versions
from bioptimus_jax.storage.files import atomic

CARDS = 'cards'
NAMED = 6
"""Models or sets that the description names, settings that the last lines name."""
ORDER = (
    *('phases', 'entities', 'in_text', 'mentions', 'sets', 'hidden_words', 'sentences', 'corpus'),
    *('vocabulary', 'new_tokens', 'training', 'efficiency', 'goodput', 'stages'),
)
"""Order of the sections on the page, by their files; others say themselves where they stand."""
SECTIONS = Plugins('bioptimus_jax.report.sections', 'SECTION', more='bioptimus_jax.lab.sections')


def sections() -> tuple[Section, ...]:
    """The sections of the page, in order, those of plug-ins among them. Raises ConfigError."""
    return tuple(arranged(ORDER, {name: SECTIONS.load(name) for name in SECTIONS}).values())


def drawn() -> dict[str, Callable[[Measures], Figure]]:
    """What draws each figure of the page, by the name of its file."""
    return {draw.__name__: draw for section in sections() for draw in section.figures}


class Live(NamedTuple):
    """What a page that is made again while its run goes on says of it: what is being done, when that was read, how
    often."""

    now: str
    time: str
    seconds: float


class About(NamedTuple):
    """What a page says beside its sections; `settings` and `headlines`: names or values, and what goes with them."""

    kicker: str
    name: str
    description: str
    settings: Sequence[tuple[str, str]]
    verdict: gain.Verdict | None = None
    headlines: Sequence[tuple[str, str]] = ()
    use: Use | None = None


@dataclasses.dataclass(frozen=True)
class Block:
    """A section as the template takes it; `tables` and `folded` are HTML.

    `absent`: reason -> titles of parts that have nothing to show. `filled`: whether some part has. `otherwise`: why the
    section is left out, if that is not what its parts say. `closed`: only its heading is seen until it is clicked.
    """

    title: str
    anchor: str
    lead: str
    closed: bool
    tables: Sequence[str]
    figures: Sequence[Figure]
    folded: Sequence[str]
    absent: Mapping[str, str]
    filled: bool
    otherwise: str

    @classmethod
    def of(
        cls,
        title: str,
        lead: str,
        tables: Sequence[Table] = (),
        figures: Sequence[Figure] = (),
        folded: Sequence[Table] = (),
        otherwise: str = '',
        closed: bool = False,
    ) -> 'Block':
        """The block of a section with these parts."""
        made: list[Table | Figure] = [*tables, *folded, *figures]
        absent: dict[str, dict[str, None]] = {}  # reason -> titles
        for one in made:
            if one.empty:
                absent.setdefault(one.absent, {})[one.title] = None
        return cls(
            title=title,
            anchor=title.lower().replace(' ', '-'),
            lead=lead,
            closed=closed,
            tables=[table.html() for table in tables if not table.empty],
            figures=[figure for figure in figures if not figure.empty],
            folded=[table.html() for table in folded if not table.empty],
            absent={reason: '; '.join(titles) for reason, titles in absent.items()},
            filled=not all(one.empty for one in made),
            otherwise=otherwise,
        )


@dataclasses.dataclass(frozen=True)
class Made:
    """All tables and figures of a run by their names, some of them without anything to show yet."""

    measures: Measures
    tables: dict[str, Table]
    figures: dict[str, Figure]

    @classmethod
    def of(cls, m: Measures) -> 'Made':
        """The sections in the order of the page."""
        tables = {name: make(m) for s in sections() for name, make in (s.tables | s.folded).items()}
        return cls(m, tables, {name: draw(m) for name, draw in drawn().items()})

    def blocks(self) -> list[Block]:
        """The sections of the page as the template takes them."""
        planned = self.measures.run.config.stages
        not_planned = f'not part of this run. Its stages are {", ".join(planned)}.'
        return [
            Block.of(
                section.title,
                section.lead,
                [self.tables[name] for name in section.tables],
                [self.figures[draw.__name__] for draw in section.figures],
                [self.tables[name] for name in section.folded],
                '' if not section.stages or set(section.stages) & set(planned) else not_planned,
                closed=not section.for_users,
            )
            for section in sections()
        ]

    def about(self) -> About:
        """What the page says of the run beside its sections."""
        m, verdict = self.measures, gain.overall(self.measures)
        settings = [
            (name, json.dumps(value, ensure_ascii=False))
            for name, value, metadata in walk(m.run.config)
            if not name.startswith('runtime.') and (value or not metadata.get('path'))
        ]
        return About(
            kicker='BIOptimus run',
            name=m.run.workdir.name,
            description=f'{description(m)} {m.gaps}'.strip(),
            settings=settings,
            verdict=verdict,
            headlines=headlines(m, self.tables['gain']),
            use=use(m, verdict),
        )

    def page(self, live: Live | None = None) -> str:
        """The page as HTML: no network access, styles, script and figures inside."""
        return render(self.blocks(), self.about(), self.measures.run.command, live)


def build(run: Run, folder: Path, live: Live | None = None) -> StageResult:
    """Write index.html, tables.md, csv/NAME.csv, figures/NAME.svg and cards into `folder`, from what there is so far.

    Its settings are those that the stages were made with; where the run has others since, a line says which.

    Returns how many tables and figures have something to show. Raises InputError for damaged records.
    """
    recorded = copy.copy(run)
    recorded.config = as_made(run.config, run.workdir)
    m = read_measures(recorded)
    made = Made.of(m)
    with atomic(folder / 'index.html') as file:
        file.write(made.page(live))
    remove_parts(folder)
    write_tables(run.workdir.name, made.tables, folder)
    write_figures(made.figures.values(), folder / 'figures')
    cards = write_cards(m, folder / CARDS)
    if m.gaps:
        run.console.say(f'report: {m.gaps}')
    if not live:
        if others := given_otherwise(recorded.config, run.config):
            more = f' (and {len(others) - NAMED} more)' * (len(others) > NAMED)
            run.console.say(
                'report: the page says the settings that the stages were made with; this command has others: '
                f'{"; ".join(others[:NAMED])}{more}'
            )
        run.console.say(f'report: {folder / "index.html"}')
    counts = ReportCounts(
        tables=sum(bool(t.rows) for t in made.tables.values()),
        figures=sum(bool(f.svg) for f in made.figures.values()),
        cards=cards,
        bytes=(folder / 'index.html').stat().st_size,
    )
    return StageResult(counts)


def remove_parts(folder: Path) -> None:
    """Remove tables, figures and cards of an earlier report from a folder of reports.

    Only what has something to show is written, so a file of an earlier one could stay.
    """
    for part in ('csv', 'figures', CARDS):
        shutil.rmtree(folder / part, ignore_errors=True)


def write_cards(m: Measures, folder: Path) -> int:
    """A model card with the scores for every exported model that has some: MODEL.md, to be put in place of the
    README.md that export wrote before there were any. Returns how many.

    None where the scores are not those of what is trained now: a card would say of one model what is true of another.
    """
    written = 0
    if outdated(m.manifests, m.begun).keys() & {'export', 'finetune'}:
        return written
    for model in m.models:
        exported = m.run.stage_folder('export') / model
        about = read_export(exported) if phase_of(model) in m.run.config.phases else None
        results = [
            card.scored(m.task(dataset), dataset, statistics.fmean(scores), len(scores))
            for dataset in m.datasets
            if (scores := m.scores(model, dataset))
        ]
        if about and results:
            with atomic(folder / f'{model}.md') as file:
                architecture = read_architecture(exported)
                history = card.History.of(m.run.config, m.run.workdir)
                file.write(card.model_card(history, model, architecture, about, results, exported))
            written += 1
    return written


def render(sections: Sequence[Block], about: About, command: str, live: Live | None = None) -> str:
    """The page's template, filled with the sections that have something to show; why the others lack is said below.

    The versions of what made it are added.
    """
    import jinja2

    folder = importlib.resources.files('bioptimus_jax.report')
    text, script = (folder.joinpath(name).read_text('utf-8') for name in ('page.html.jinja', 'figures.js'))
    left_out: dict[str, list[str]] = {}
    for section in sections:
        if not section.filled:
            reason = section.otherwise or next(iter(section.absent), 'nothing to show yet')
            left_out.setdefault(reason, []).append(section.title)
    environment = jinja2.Environment(
        autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    made_with = ', '.join(f'{name} {version}' for name, version in versions().items())
    return environment.from_string(text).render(
        **about._asdict(),
        sections=[section for section in sections if section.filled],
        left_out={reason: ', '.join(titles) for reason, titles in left_out.items()},
        script=script,
        command=command,
        live=live,
        versions=made_with,
    )


def description(m: Measures) -> str:
    """What this run is, in one sentence."""
    e = m.run.config
    if not m.trains:
        return _scoring(m) if 'finetune' in e.stages else f'Stages {", ".join(e.stages)}.'
    if e.surgery.initialisation.source:
        kinds = {
            'train': 'a vocabulary of its own',
            'file': 'a given vocabulary',
            'source': 'the vocabulary of the source',
            'append': 'the vocabulary of the source and new tokens',
        }
        source = e.source.path if '$' not in e.source.path else ''  # of a variable that is not set
        begin = f'{source or _family(m)} adapted with {kinds[e.vocab.kind]}, rows {e.surgery.strategy}'
    else:
        begin = f'{_family(m)} from scratch, {numbered(e.model.layers, "layer")} of {e.model.hidden}'
    phases = ', '.join(f'{name} ({words_of_phase(e, name)})' for name in m.phases)
    told = [
        objective_in_words(e, n) for n in dict.fromkeys(unusual_objective(e, name) for name in m.phases) if n
    ]
    return '. '.join([f'{begin}; curriculum {phases}', *told]) + '.'


def _family(m: Measures) -> str:
    """`A BERT`, of the family of the run's model; of that of the configuration where it is not here."""
    family: Any = FAMILIES.load(m.run.config.model.family)
    with contextlib.suppress(InputError):
        family = read_architecture(m.run.stage_folder('surgery') / 'model')
    return card.with_article(family.title)


def headlines(m: Measures, gained: Table) -> list[tuple[str, str]]:
    """A few large numbers for the top of the page, `(value, what it is)`; only those that exist.

    First what the adaptation brought: from the source to the last phase, as in the verdict.
    """
    gains = gain.headlines(m, gained, NAMED)
    found = list(gains)
    first, ends = m.phase_end(PHASE_INITIAL), [e for p in m.phases if (e := m.phase_end(p))]
    if first and ends:
        best = min(ends, key=lambda e: e.loss)
        fell = f'{first.loss:.2f} → {best.loss:.2f}'
        found.append((fell, f'held-out loss, step 0 to {best.phase}'))
    last = m.phases[-1] if m.phases else ''
    before, after = m.cloze_of(PHASE_INITIAL), m.cloze_of(last)
    right = [r.word_accuracy for r in (before, after) if r and r.word_accuracy is not None]
    if len(right) == 2:
        change = f'{right[0]:.1%} → {right[1]:.1%}'
        found.append((change, f'hidden words guessed right, step 0 to {last}'))
    for dataset in () if gains else m.datasets[:3]:
        last = gain.before_and_after(m, dataset)[1]
        if top := last or gain.best_on_devel(m, dataset, m.models):
            test, label = statistics.fmean(m.scores(top, dataset)), m.task(dataset).metric.label
            how = ', best on devel' * bool(not last and m.scores(top, dataset, 'devel'))
            found.append((f'{test:.1f}', f'test {label} on {dataset}{how}: {m.label(top)}'))
    seconds = sum(manifest.seconds or 0 for manifest in m.manifests.values())
    return [*found, (clock(seconds), 'for all finished stages')] if seconds else found


def _scoring(m: Measures) -> str:
    """What a run scores that fine-tunes models and trains none; before there are scores, what is planned."""
    settings = m.run.config.finetune
    names = [m.label(x) for x in m.models] or list(settings.models)
    sets = m.datasets or list(settings.datasets)
    parts = [_counted(len(names), 'model', names)]
    parts += [f'on {_counted(len(sets), "set", sets)}'] if sets else []
    every = [settings, *map(settings.on, settings.of_set)]
    for what in ('setting', 'seed'):
        numbers = [len(getattr(one, f'{what}s')) for one in every]
        fewest, most = min(numbers), max(numbers)
        parts.append(_counted(most, what) if fewest == most else f'{fewest} to {most} {what}s')
    tasks = ' and '.join(dict.fromkeys(m.task(dataset).title.lower() for dataset in m.datasets))
    return f'Fine-tuning{f" for {tasks}" * bool(tasks)}: {", ".join(parts)}. Nothing is pre-trained here.'


def _counted(number: int, what: str, names: Sequence[str] = ()) -> str:
    named = f' ({", ".join(names[:NAMED])}{", …" if len(names) > NAMED else ""})' if names else ''
    return f'{numbered(number, what)}{named}'
