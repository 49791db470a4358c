"""What the paper's tables ask, and which trained models answer: rows, and set-ups that must not be mixed."""

import dataclasses
import statistics
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from bioptimus_jax.finetuning.task import devel_chooses, score_of
from bioptimus_jax.lab import paper
from bioptimus_jax.lab.trained import PAPER_SETTINGS, Trained, curriculum_name, group_comparable
from bioptimus_jax.pretrain.config import PAPER_PHASES
from bioptimus_jax.records.finetune import FineTuning
from bioptimus_jax.report.measures import Measures, best_setting

FIRST = PAPER_SETTINGS[0]
VERSIONS = {f'0.{n}': PAPER_SETTINGS[:n] for n in range(1, len(PAPER_SETTINGS) + 1)}
WITHOUT = {f'no curriculum, as long as {name}': (FIRST,) * len(path) for name, path in VERSIONS.items()}
STATIC = tuple((name,) * len(PAPER_SETTINGS) for name in PAPER_SETTINGS)
ORDERS = {curriculum_name(path): path for path in (*STATIC, PAPER_SETTINGS, PAPER_SETTINGS[::-1])}
CONTEXTUALIZED = 'contextualized'
RATE = ', learning rate '
WHOLE_WORDS = list(PAPER_PHASES.values())[-1].masking
"""What the paper's last phase masks, the one without 80-10-10."""


@dataclasses.dataclass(frozen=True)
class Question:
    """One table: `label` names a model's row or gives '', `reference` the row that a row is compared with.

    `paper`: what the paper reports for a row; `expected`: rows that are shown without a run too.
    """

    name: str
    title: str
    lead: str
    label: Callable[[Trained], str]
    reference: Callable[[str], str]
    paper: Callable[[str], Sequence[float] | None] = lambda label: None
    expected: tuple[str, ...] = ()
    made_by: str = ''
    instead: str = ''  # how rows begin that stand for a reference that nobody has run
    matched: bool = False  # only rows that have one to be compared with


@dataclasses.dataclass(frozen=True, eq=False)
class Row:
    """Models of one name, one for each seed; a training that stands in several folders counts once."""

    name: str  # by the question
    suffix: str  # what else tells it from others of that name
    models: tuple[Trained, ...]

    @property
    def label(self) -> str:
        return self.name + self.suffix

    @property
    def without_rate(self) -> str:
        """Rows that share it differ in the learning rate alone."""
        return self.label.partition(RATE)[0]

    @property
    def by_seed(self) -> dict[int | None, Trained]:
        # Backwards, so that the first model of a seed stays.
        return {t.seed: t for t in reversed(self.models)}

    def cells(self, dataset: str) -> dict[tuple[int | None, int], tuple[Measures, FineTuning]]:
        """(seed of pre-training, of fine-tuning) -> the cell, under the setting that devel chooses for all of them."""
        setting = best_setting([(t.measures, t.model) for t in self.models], dataset)
        found: dict[tuple[int | None, int], tuple[Measures, FineTuning]] = {}
        for t in self.models:
            for record in t.cells(dataset, setting):
                found.setdefault((t.seed, record.seed), (t.measures, record))
        return dict(sorted(found.items(), key=lambda cell: (cell[0][0] or 0, cell[0][1])))

    def scores(self, *datasets: str, split: str = 'test') -> list[float]:
        """F1 in percent, the mean over the sets; one a pre-training, or of a single one, one a fine-tuning."""
        of_each = list(self._by_training(datasets, split).values())
        return of_each[0] if len(of_each) == 1 else [statistics.fmean(scores) for scores in of_each]

    def by_training(self, *datasets: str) -> dict[int | None, float]:
        """Test F1 in percent by seed of pre-training: the mean over the sets and over its fine-tunings."""
        return {seed: statistics.fmean(f1) for seed, f1 in self._by_training(datasets, 'test').items()}

    def _by_training(self, datasets: Sequence[str], split: str) -> dict[int | None, list[float]]:
        """Scores by the training's seed, of the pairs of seeds with which all of the sets were scored."""
        cells = [self.cells(dataset) for dataset in datasets]
        found: dict[int | None, list[float]] = {}
        for key in cells[0]:
            records = [of_set[key][1] for of_set in cells if key in of_set]
            if split == 'devel':
                records = list(filter(devel_chooses, records))
            if len(records) == len(cells):
                f1 = statistics.fmean(100 * score_of(record, split) for record in records)
                found.setdefault(key[0], []).append(f1)
        return found


@dataclasses.dataclass(frozen=True)
class ComparableGroup:
    """Rows whose scores compare, since everything is equal but what the table asks for."""

    rows: tuple[Row, ...]
    conditions: Mapping[str, str]

    @property
    def folders(self) -> list[Path]:
        return list(dict.fromkeys(t.folder for row in self.rows for t in row.models))

    @property
    def datasets(self) -> list[str]:
        return list(dict.fromkeys(d for row in self.rows for t in row.models for d in t.measures.datasets))


def comparable_groups(question: Question, models: Sequence[Trained]) -> list[ComparableGroup]:
    """The models that answer, parted where corpora, vocabularies, budgets or fine-tuning differ; largest first."""
    answers = [(label, t) for t in models if (label := question.label(t))]
    by_length = [{'phases': str(len(t.path))} if question.matched else {} for _, t in answers]
    conditions = [dict(t.conditions) | own for (_, t), own in zip(answers, by_length, strict=True)]
    parts = sorted(group_comparable(zip(conditions, answers, strict=True)), key=lambda part: -len(part[1]))
    found = [ComparableGroup(_rows(question, members), conditions) for conditions, members in parts]
    return [set_up for set_up in found if set_up.rows]


def reference_of(question: Question, row: Row, rows: Sequence[Row]) -> Row | None:
    """The row that this one is compared with: of the same kind if there are several; None for that row itself."""
    wanted = question.reference(row.name)
    fitting = [r for r in rows if r.name == wanted] or [
        r for r in rows if r.name.startswith((f'{wanted}, ', question.instead or f'{wanted}, '))
    ]
    if not fitting or row in fitting:
        return None

    def parts(r: Row) -> tuple[str, ...]:
        return r.suffix.partition(RATE)[0], r.name.partition(', ')[2], r.suffix

    def alike(r: Row) -> list[bool]:
        return [own == other for own, other in zip(parts(r), parts(row), strict=True)]

    # Lists are compared in order: the initialisation decides first, the learning rate last.
    return max(fitting, key=lambda r: (alike(r), len(r.models)))


def pairs_of(question: Question, rows: Sequence[Row]) -> list[tuple[Row, Row]]:
    """Every row with the one of them that it is compared with."""
    pairs = [(row, reference_of(question, row, rows)) for row in rows]
    return [(row, reference) for row, reference in pairs if reference]


def chosen_rates(rows: Sequence[Row], datasets: Sequence[str]) -> dict[Row, str]:
    """The row with the highest mean devel F1 among rows that differ in the learning rate alone; and what to say of it.

    The mean is over the sets for which all rows have a score on devel. Where there is no such set the first row stands
    for all.
    """
    groups: dict[str, list[Row]] = {}
    for row in rows:
        groups.setdefault(row.without_rate, []).append(row)
    found = {}
    for group in groups.values():
        scored = [row for row in group if any(map(row.cells, datasets))] or group
        common = [d for d in datasets if all(row.scores(d, split='devel') for row in scored)]
        best = max(scored, key=lambda r: sum(statistics.fmean(r.scores(d, split='devel')) for d in common))
        found[best] = ', chosen on devel' if common and len(scored) > 1 else ''
    return found


def expected_of(question: Question, name: str) -> str:
    """The expected row that one of this name is, or ''."""
    own, *wanted = (x.lower().removesuffix('-base') for x in (name, *question.expected))
    known = dict(zip(wanted, question.expected, strict=True))
    longer = (known[x] for x in wanted if own.startswith((f'{x},', f'{x}:')))
    return known[own] if own in known else next(longer, '')


def _rows(question: Question, members: Sequence[tuple[str, Trained]]) -> tuple[Row, ...]:
    """Initialisation and learning rate are named where there are several of them."""
    own = [t for _, t in members if t.own]
    several_rates = len({t.rate for t in own}) > 1
    several_starts = len({t.initialisation for t in own if question.name != 'table2'}) > 1
    groups: dict[tuple[str, str], list[Trained]] = {}
    for name, t in members:
        suffix = f' ({t.initialisation})' if t.own and several_starts else ''
        suffix += f'{RATE}{t.rate:g}' if t.own and several_rates else ''
        groups.setdefault((name, suffix), []).append(t)
    rows = [Row(*key, tuple(group)) for key, group in groups.items()]
    if question.matched:
        pairs = [(row, reference_of(question, row, rows)) for row in rows]
        rows = [row for pair in pairs for row in pair if pair[1] and row]
        rows = sorted(dict.fromkeys(rows), key=lambda row: row.name)

    def place(row: Row) -> int:
        known = expected_of(question, row.name)
        return question.expected.index(known) if known else len(question.expected)

    return tuple(sorted(rows, key=place))


def _is_end(t: Trained) -> bool:
    return t.own and not t.partial


def _is_papers(t: Trained) -> bool:
    """Whether it is the end of a phase, from rows that were made as in the paper."""
    return _is_end(t) and t.config.surgery.initialisation.is_paper_method


def _version(t: Trained, paths: Mapping[str, tuple[str, ...]]) -> str:
    return next((name for name, path in paths.items() if path == t.path), '') if _is_papers(t) else ''


def _order(t: Trained) -> str:
    known = t.path in ORDERS.values() or sorted(t.path) == sorted(PAPER_SETTINGS)
    return curriculum_name(t.path) if known and _is_papers(t) else ''


def _static_words(t: Trained) -> str:
    """Static whole-word settings at the end of their run, and the share of pieces that they show as [MASK]."""
    whole = _is_papers(t) and len(t.path) == len(t.measures.phases) and len(set(t.path)) == 1
    if not whole or not t.path[0].startswith(f'{WHOLE_WORDS} '):
        return ''
    phase = t.config.phase[t.measures.phases[-1]]
    if len(set(phase.rates)) > 1:
        return ''
    return f'{100 * (phase.rate * phase.corruption[0]):.3g} % shown, {t.path[0]}'


def same_shown(label: str) -> str:
    """The 80-10-10 setting with as many pieces shown as [MASK]."""
    shown = float(label.partition(' %')[0])
    return f'{shown:g} % shown, {WHOLE_WORDS} {shown / 0.8:.3g} %'


def _rival(label: str) -> Sequence[float] | None:
    rival = paper.rival(label)
    return paper.VERSIONS['0.4'] if label.startswith('0.4') else rival and rival[1]


QUESTIONS = (
    Question(
        'table2',
        'Table 2: initialisations after phase 0.1',
        'Where do the rows of new tokens come from, and does it matter after training?',
        lambda t: t.initialisation if _is_end(t) and t.path == (FIRST,) else '',
        lambda label: f'{CONTEXTUALIZED}, rescaled',
        lambda label: paper.INITIALISATIONS.get(label.partition(',')[0]),
        tuple(paper.INITIALISATIONS),
        'ablations:table2',
        instead=f'{CONTEXTUALIZED}, ',
    ),
    Question(
        'table3',
        'Table 3: masking settings after one phase',
        'Which masking setting is best, each on its own?',
        lambda t: _version(t, {name: (name,) for name in paper.STATIC}),
        lambda label: FIRST,
        paper.STATIC.get,
        tuple(paper.STATIC),
        'ablations:table3',
    ),
    Question(
        'table5',
        'Table 5: versions, the ends of the phases',
        'What does every further phase bring? It is also more steps: Table 7 tells the two apart.',
        lambda t: _version(t, VERSIONS),
        lambda label: '0.1',
        lambda label: paper.VERSIONS.get(label) or paper.INITIALISATIONS[CONTEXTUALIZED],
        tuple(VERSIONS),
        'ablations:table5',
    ),
    Question(
        'table6',
        'Table 6: rivals',
        'How does it compare with other models under the same fine-tuning?',
        lambda t: _version(t, {'0.4': PAPER_SETTINGS}) if t.own else t.measures.label(t.model),
        lambda label: '0.4',
        _rival,
        ('0.4', *paper.RIVALS),
        'ablations:table6,NAME=FOLDER',
    ),
    Question(
        'table7',
        'Table 7: with and without curriculum, the same words',
        'Is it the curriculum, or only more steps?',
        lambda t: _version(t, {n: p for n, p in (VERSIONS | WITHOUT).items() if len(p) > 1}),
        lambda label: f'no curriculum, as long as {label[:3]}',
        lambda label: {'0.4': paper.VERSIONS['0.4'], list(WITHOUT)[-1]: paper.NO_CURRICULUM}.get(label),
        tuple(n for pair in zip(VERSIONS, WITHOUT, strict=True) for n in pair if not n.endswith('0.1')),
        'ablations:table7',
    ),
    Question(
        'orders',
        'Orders: the same settings, words and learning rates',
        'Does the order of the settings matter? The fair test: equal words, equal learning rates.',
        _order,
        lambda label: curriculum_name(PAPER_SETTINGS),
        expected=(*ORDERS, 'shuffled'),
        made_by='ablations:orders',
    ),
    Question(
        'corruption',
        'Corruption: matched rates of [MASK]',
        'Does dropping the 80-10-10 rule reduce degeneration, once as many pieces are shown as [MASK]?',
        _static_words,
        same_shown,
        made_by='ablations:corruption',
        matched=True,
    ),
)
