"""Arms side by side: the comparer behind `compare`, `sweep` and `report RUN RUN`.

An arm is trainings under one name that differ in the seed; in a sweep NAME.seed-3 is one of NAME. At the phase ends all
arms of a sweep have seen the same words, so the control's steps are the axis for every one of them.
"""

import functools
import statistics
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from itertools import product
from typing import Any, TypeVar

import numpy as np

from bioptimus_jax.finetuning.differing import differences as differences_of
from bioptimus_jax.finetuning.finished import BY_DEVEL, FinishedModel, FoundCell
from bioptimus_jax.lab import spending
from bioptimus_jax.lab.sections import geometry
from bioptimus_jax.lab.sections.followed import followed
from bioptimus_jax.lab.trained import loss_measured_by, same_phases
from bioptimus_jax.model.config import SOURCE
from bioptimus_jax.records.analysis import HiddenWords, ShapeOfWords
from bioptimus_jax.report.drawing import INK, SERIES, Figure, curves, draw_panels
from bioptimus_jax.report.gain import fine_tuned
from bioptimus_jax.report.layout import Cell, Column, Table, count, each, fixed, over_seeds, spread
from bioptimus_jax.report.measures import (
    LABELS,
    NOT_ANALYZED,
    PHASE_INITIAL,
    Measures,
    score_names,
    scored_sets,
)
from bioptimus_jax.report.records import SEED, names_of
from bioptimus_jax.report.sections.hidden_words import MEASURES, columns_of, value_of
from bioptimus_jax.scoring.comparison import paired_differences
from bioptimus_jax.scoring.student import interval

OfRun = TypeVar('OfRun')
DRAWN = 'nats_per_word'
EVALUATIONS = 5
"""Evaluations that a table shows, the first and the last among them."""
LINEAR = 0.1
"""Bound up to which the axis of differences is linear."""
OTHER_WORDS = 'they did not score the same hidden words'
Arms = Mapping[str, Mapping[Any, Measures]]
"""Name -> seed -> run."""
Geometry = Mapping[str, Mapping[Any, ShapeOfWords]]
"""Name -> seed -> what was measured of the words of one model."""


def grouped(runs: Mapping[str, OfRun]) -> dict[str, dict[str, OfRun]]:
    """Runs of a sweep, or what is known of them, by arm and seed, in the order given."""
    groups: dict[str, dict[str, OfRun]] = {}
    for arm, of_run in runs.items():
        name, _, seed = arm.partition(SEED)
        groups.setdefault(name, {})[seed] = of_run
    return groups


def alone(runs: Sequence[Measures]) -> Arms:
    """Each run an arm, called after its initialisation, with the folder where several have the same."""
    # What the run itself was made with: `compare` reads all of them under one configuration.
    made_with = [m.manifest_of('surgery').settings for m in runs]
    names = [
        made.get('surgery.strategy', m.run.config.surgery.strategy)
        for m, made in zip(runs, made_with, strict=True)
    ]
    return {
        name if names.count(name) == 1 else f'{place} ({name})': {'': m}
        for m, name, place in zip(runs, names, names_of(runs), strict=True)
    }


def all_tables(arms: Arms, control: str = '') -> list[Table]:
    """Hidden words and test scores, geometry, what each arm took, whether frozen states say the scores; with a control
    the differences to it."""
    last = {
        name: {seed: words for seed, m in seeds.items() if (words := geometry.of_last_phase(m))}
        for name, seeds in arms.items()
    }
    pairs = [(name, control) for name in arms if control in arms and name != control]
    frozen = followed(arms)
    return [
        scores(arms),
        of_words(
            geometry.TITLE,
            last,
            {f'{a} less {b}': [(a, b)] for a, b in pairs},
            absent=next((geometry.reason(m) for m in _runs(arms) if m.geometry), NOT_ANALYZED),
        ),
        *([ends(arms, control)] if control else ()),
        *(against(arms, control, x) for x, y in MEASURES.items() if control and y.better == 'low'),
        *([held_out(arms, control), new_tokens(arms, control)] if control else ()),
        spending.arms({name: list(seeds.values()) for name, seeds in arms.items()}),
        *([] if frozen.empty else [frozen]),
    ]


def scores(arms: Arms) -> Table:
    """A row for the source of every arm, for step 0 and for each phase end: hidden words and test scores.

    Rows are ranked within a phase. Losses per piece are left out: they compare only arms with one vocabulary.
    """
    every = _runs(arms)
    scored = scored_sets(every)

    def score(dataset: str, model: str, arm: str) -> Cell:
        of_runs = [own for m in arms[arm].values() if (own := m.scores(model, dataset))]
        # With one pre-training the fine-tunings are what varies.
        return spread(of_runs[0] if len(of_runs) == 1 else [statistics.fmean(own) for own in of_runs])

    def of_words(measure: str, model: str, arm: str) -> Cell:
        return over_seeds(values(arms[arm], model, measure), MEASURES[measure].decimals)

    columns = [
        Column('model', lambda model, arm: str(LABELS.get(model, model))),
        Column('arm', lambda model, arm: arm),
        *columns_of(of_words),
        *each(scored, score, 'high'),
    ]
    note = (
        'Held-out words, each hidden whole: mean ± half of the 95 % interval over seeds (Student).'
        f' {score_names(*every)}: test, percent, mean ± sd over seeds.'
        ' Best bold, second underlined, within a phase. — : not run.'
        + other_words(r for m in every for r in m.cloze)
        + ''.join(f' {m.run.workdir.name}: {m.gaps}' for m in every if m.gaps)
        + ''.join(f' {sentence}' for sentence in _otherwise(arms, scored))
    )

    def known(model: str) -> bool:
        return any(m.cloze_of(model) or any(m.scores(model, d) for d in scored) for m in every)

    records = product(filter(known, (SOURCE, *_models(arms))), arms)
    absent = 'no model of these runs has been scored.'
    return Table.of('Arms compared', columns, records, rank_within='model', note=note, absent=absent)


def _otherwise(arms: Arms, scored: Collection[str]) -> list[str]:
    """Sentences on arms whose last models were fine-tuned with other settings than those of the first arm: over the
    seeds that both have, or over the first seed of each."""
    said = []
    for first, arm in product(list(arms)[:1], list(arms)[1:]):
        pairs = (
            _both(arms, first, arm) or list(zip(arms[first].values(), arms[arm].values(), strict=False))[:1]
        )
        one, other = (_last_tuned([pair[side] for pair in pairs], scored) for side in (0, 1))
        said += differences_of(one, other, names=(first, arm))
    return said


def _last_tuned(runs: Sequence[Measures], scored: Collection[str]) -> FinishedModel:
    """The fine-tunings, for every set, of the last model of each run that was scored; the source is before all others.

    They are numbered, as runs may have the same seeds of fine-tuning.
    """
    found: dict[str, list[FoundCell]] = {}
    for m, dataset in product(runs, scored):
        if last := next((x for x in reversed((SOURCE, *_ends(m))) if m.scores(x, dataset)), ''):
            own = fine_tuned(m, last, dataset)
            both = zip(own.cells[dataset].values(), own.records[dataset].values(), strict=True)
            found.setdefault(dataset, []).extend(both)
    cells = {dataset: {n: cell for n, (cell, _) in enumerate(own)} for dataset, own in found.items()}
    records = {dataset: {n: record for n, (_, record) in enumerate(own)} for dataset, own in found.items()}
    return FinishedModel('', '', BY_DEVEL, cells, records)


def ends(arms: Arms, control: str) -> Table:
    """Differences to the control at the end of the last phase, whatever its name: hidden words, test scores."""
    scored, base = scored_sets(_runs(arms)), arms.get(control, {})
    same_words = {
        arm: {s: m for s, m in seeds.items() if _same_words(m, s, base)} for arm, seeds in arms.items()
    }

    def less(of: Arms, arm: str, value: Callable[[Measures, str], float], decimals: int) -> Cell:
        ends = ({s: value(m, m.phases[-1]) for s, m in of[x].items() if m.phases} for x in (arm, control))
        return over_seeds(paired_differences(*ends), decimals, sign='+')

    def hidden(arm: str) -> Cell:
        return less(same_words, arm, lambda m, x: _hidden(m, x, DRAWN), 3)

    def score(dataset: str, m: Measures, model: str) -> float:
        return float(np.mean(m.scores(model, dataset) or np.nan))

    columns = [
        Column('arm', lambda arm: arm),
        Column(MEASURES[DRAWN].title, hidden),
        *each(scored, lambda dataset, arm: less(arms, arm, functools.partial(score, dataset), 2)),
    ]
    others = [arm for arm in arms if arm != control and base and _both(arms, arm, control)]
    note = (
        'Mean ± half of the 95 % interval over seeds (Student), paired by seed; an interval that contains 0 does '
        'not show a difference.'
        + _left_out(OTHER_WORDS, [x for x in others if len(same_words[x]) < len(arms[x])])
    )
    title = f'At the end of the last phase: differences to {control}'
    absent = f'{control} has not been trained beside another arm.'
    return Table.of(title, columns, others, note=note, absent=absent)


def of_words(
    title: str,
    measured: Geometry,
    differences: Mapping[str, Sequence[tuple[str, str]]],
    head: str = 'arm',
    absent: str = NOT_ANALYZED,
) -> Table:
    """Geometry of rare and frequent words: of every arm, and differences, each the mean over pairs of arms, by seed."""

    def own(kind: str, name: str, measure: str) -> Cell:
        return over_seeds([r.of(kind)[measure].value for r in measured[name].values()])

    def less(kind: str, name: str, measure: str) -> Cell:
        def value(arm: str, seed: Any) -> float:
            return measured[arm][seed].of(kind)[measure].value

        pairs = differences[name]
        by_seed = [[value(a, seed) - value(b, seed) for a, b in pairs] for seed in _paired(measured, pairs)]
        return over_seeds([float(np.mean(of_pairs)) for of_pairs in by_seed], sign='+')

    rows = [(name, own) for name, by_seed in measured.items() if by_seed]
    rows += [(name, less) for name, pairs in differences.items() if _paired(measured, pairs)]
    columns = [
        Column('vector', lambda kind, row: geometry.KINDS[kind]),
        Column(head, lambda kind, row: row[0]),
        *each(geometry.MEASURES, lambda measure, kind, row: row[1](kind, row[0], measure)),
    ]
    note = (
        'Mean ± half of the 95 % interval over seeds (Student); differences are paired by seed, over the same words.'
        ' Less anisotropy: cosine and top component fall, IsoScore rises.'
    )
    return Table.of(title, columns, product(geometry.KINDS, rows), note=note, absent=absent)


def against(arms: Arms, control: str, measure: str = 'nats_per_word') -> Table:
    """Differences to the control, seed by seed, and the steps that an arm saves to where the control ends."""
    alike = _alike(arms, control)
    # The control's steps: arms of another vocabulary need other numbers of steps for the same words.
    steps = _steps(alike.get(control, {}))

    def curve(m: Measures) -> np.ndarray:
        return np.array([_hidden(m, model, measure) for model in _ends(m)])

    curves = {
        arm: [(curve(own), curve(base)) for own, base in _both(alike, arm, control)]
        for arm in alike
        if arm != control and steps
    }
    shown = {at: LABELS.get(name, name) for at, name in enumerate(_end_names(alike))}
    absent = f'{control} has not been trained beside an arm with such phases.'
    left_out = _without(arms, alike, control)
    return _falling(MEASURES[measure].title, control, curves, steps, shown, left_out, absent)


def held_out(arms: Arms, control: str) -> Table:
    """Differences of the held-out loss to the control, seed by seed, at some of the evaluations, and the steps saved.

    A loss per piece compares arms of one vocabulary that were evaluated at the same steps, on the same documents under
    the same masks; others are left out, and named.
    """
    steps = sorted(next((m.held_out for m in arms.get(control, {}).values()), {}))

    def comparable(own: Measures, base: Measures) -> bool:
        same_steps = all(sorted(m.held_out) == steps for m in (own, base))
        return same_steps and loss_measured_by(own) == loss_measured_by(base)

    def curve(m: Measures) -> np.ndarray:
        return np.array([m.held_out[step] for step in steps])

    curves = {
        arm: [(curve(own), curve(base)) for own, base in _both(arms, arm, control) if comparable(own, base)]
        for arm in arms
        if arm != control and steps
    }
    points = map(round, np.linspace(0, len(steps) - 1, EVALUATIONS)) if steps else ()
    shown = {at: f'step {steps[at]}' for at in points}
    absent = f'no arm with the vocabulary and held-out texts of {control} was evaluated at its steps.'
    others = [arm for arm, both in curves.items() if _both(arms, arm, control) and not both]
    left_out = _left_out(
        'their vocabulary, held-out texts or masks, or the steps of their evaluations differ', others
    )
    return _falling('held-out nats / piece', control, curves, steps, shown, left_out, absent)


def new_tokens(arms: Arms, control: str) -> Table:
    """Hidden words that are one token of the control, at step 0 and at the end: new ones by frequency, those that the
    source knows, those listed; the differences of the other arms with its vocabulary, seed by seed."""
    base, when = arms.get(control, {}), {'step 0': 0, 'the end': -1}

    def by_seed(seeds: Mapping[Any, Measures], name: str, at: str) -> dict[Any, float]:
        models = {seed: m.cloze_of((PHASE_INITIAL, *m.phases)[when[at]]) for seed, m in seeds.items()}
        return {seed: _nats(found, name) for seed, found in models.items()}

    def less(arm: str, name: str, at: str) -> Cell:
        return over_seeds(paired_differences(*(by_seed(arms[x], name, at) for x in (arm, control))), sign='+')

    kinds = next((r.by_class for m in base.values() for r in m.cloze if r.by_class), {})
    vocabularies = {m.content_of('vocab') for m in base.values()}
    others = [
        a for a in arms if a != control and {m.content_of('vocab') for m in arms[a].values()} <= vocabularies
    ]
    columns = [
        Column('word in the corpus, per million', lambda name, at: name),
        Column('hidden words', lambda name, at: count(kinds[name].words)),
        Column('frequency alone', lambda name, at: fixed(kinds[name].frequency_nats)),
        Column('at', lambda name, at: at),
        Column(
            f'{control}, nats / word',
            lambda name, at: over_seeds(_finite(by_seed(base, name, at).values())),
        ),
        *each({arm: f'{arm} less {control}' for arm in others}, less),
    ]
    note = (
        'Mean ± half of the 95 % interval over seeds (Student); differences are paired by seed. Hidden words that are'
        ' one token. Frequency alone: what a model needs that knows only how often words occur in the corpus.'
        + _left_out('their vocabulary differs', [a for a in arms if a not in (*others, control) and arms[a]])
    )
    absent = f'stage analyze of {control} has not been run to its end.'
    records = product((name for name in kinds if kinds[name].words), when)
    return Table.of('New tokens as hidden words', columns, records, note=note, absent=absent)


def _falling(
    what: str,
    control: str,
    curves: Mapping[str, Sequence[tuple[np.ndarray, np.ndarray]]],
    steps: Sequence[float],
    shown: Mapping[int, str],
    left_out: str,
    absent: str,
) -> Table:
    """Curves of arms, each with that of the control: differences at the points `shown`, and the steps saved; a sentence
    on arms that are `left_out`."""
    paired = {arm: both for arm, both in curves.items() if any(not np.isnan(x - y).all() for x, y in both)}
    columns = [
        Column('arm', lambda arm: arm),
        *each(shown, lambda at, arm: over_seeds(_finite(own[at] - base[at] for own, base in paired[arm]))),
        Column(
            'steps saved',
            lambda arm: over_seeds(_finite(steps_saved(steps, own, base) for own, base in paired[arm]), 0),
        ),
    ]
    note = (
        f'Mean ± half of the 95 % interval over seeds, paired. Steps saved: how many fewer than {control} an arm needs'
        f" for {control}'s last value, interpolated linearly between measured points; negative: how many fewer the"
        " control needs for the arm's." + left_out
    )
    return Table.of(f'{what}: differences to {control}', columns, paired, note=note, absent=absent)


def steps_saved(steps: Sequence[float], own: np.ndarray, control: np.ndarray) -> float:
    """Steps that one falling curve saves over another: the control's last step minus the one where `own` reaches its
    last value; negative where `own` ends higher, by as much as the control is ahead. NaN where a value is missing."""
    if np.isnan(own).any() or np.isnan(control).any():
        return float('nan')
    if own[-1] <= control[-1]:
        return steps[-1] - _reached(steps, own, control[-1])
    return _reached(steps, control, own[-1]) - steps[-1]


def figure(arms: Arms, control: str) -> Figure:
    """The curves over the steps of the control, without one of the first arm, a band for the 95 % interval over seeds
    where there are several."""
    base, shown = control if arms.get(control) else next(iter(arms), ''), MEASURES[DRAWN].title
    alike = _alike(arms, base)
    steps = list(enumerate(_steps(alike.get(base, {}))))
    lines = {
        arm: [(s, *bounds(v)) for at, s in steps if (v := _finite(_at_end(seeds, at).values()))]
        for arm, seeds in alike.items()
    }
    later = [mean for points in lines.values() for step, _, mean, _ in points if step > 0]
    # One arm's step 0 may lie so high that nothing else is seen.
    top = max(later) + (max(later) - min(later)) if later else np.inf
    above = [f'{arm} {points[0][2]:.2f}' for arm, points in lines.items() if points and points[0][2] > top]

    def finish(axes: Any, _: str) -> None:
        if above:
            axes.set_ylim(min(later) - 0.1 * (top - min(later)), top)

    return curves(
        'arms',
        f'{shown} over the first steps',
        {'': lines},
        f'steps of {base}; the same words for every arm',
        shown,
        finish=finish,
        caption='Bands: 95 % intervals over seeds.'
        + (f' At step 0 above the figure: {"; ".join(above)}.' if above else '')
        + _without(arms, alike, base),
        absent='no arm has been trained.',
    )


def differences(arms: Arms, control: str) -> Figure:
    """Every arm's paired difference to the control at the end of each phase, with its interval over seeds."""
    alike, shown = _alike(arms, control), MEASURES[DRAWN].title
    title, names = f'{shown}: differences to {control}', _end_names(alike)
    others = [arm for arm in alike if arm != control and alike[arm]]
    if not others or len(names) < 2:
        absent = f'{control} has not been trained beside another arm with such phases.'
        return Figure('differences', title, absent=absent)

    def less(arm: str, at: int) -> list[float]:
        return paired_differences(*(_at_end(alike[x], at) for x in (arm, control)))

    def draw(panels: list[Any]) -> None:
        for at, axes in enumerate(panels, 1):  # 0 is step 0
            for row, arm in enumerate(others):
                if found := less(arm, at):
                    mean, half = interval(found)
                    look = dict(fmt='o', markersize=4, color=SERIES[0], linewidth=1.4)
                    axes.errorbar(mean, -row, xerr=half, **look)
            axes.axvline(0, color=INK, linewidth=0.9)
            axes.set_xscale('symlog', linthresh=LINEAR)
            axes.set_xticks([-1, -LINEAR, 0, LINEAR, 1], ['-1', f'-{LINEAR}', '0', f'{LINEAR}', '1'])
            axes.set_yticks([-row for row in range(len(others))], others)
            axes.set_title(f'after {names[at]}', fontsize=10)
        panels[len(panels) // 2].set_xlabel(f'{shown}, less {control}')

    caption = (
        f'Paired by seed, with 95 % intervals (Student); left of the line is better than {control}. The axis is linear'
        f' up to {LINEAR} and logarithmic beyond.' + _without(arms, alike, control)
    )
    last = len(names) - 1
    said = [f'{arm} {over_seeds(less(arm, last)).text}' for arm in others]
    alt = f'After {names[last]}, less {control}: {"; ".join(said)}.'
    svg = draw_panels('differences', draw, last, height=0.8 + 0.2 * len(others))
    return Figure('differences', title, caption, alt, svg)


def other_words(records: Iterable[HiddenWords | None]) -> str:
    """A warning where models were scored on different words, else ''."""
    several = len({r.mask for r in records if r and r.mask}) > 1
    return ' These models did not score the same words: set config.analysis.reference_vocab.' * several


def values(seeds: Mapping[Any, Measures], model: str, measure: str) -> list[float]:
    """One of MEASURES of a model, for each seed that has it."""
    return _finite(_hidden(m, model, measure) for m in seeds.values())


def bounds(values: Sequence[float]) -> tuple[float, float, float]:
    """Student's interval: its low end, the mean, its high end."""
    mean, half = interval(values)
    return mean - half, mean, mean + half


def _runs(arms: Arms) -> list[Measures]:
    return [m for seeds in arms.values() for m in seeds.values()]


def _models(arms: Arms) -> list[str]:
    """Step 0 and every phase."""
    return list(dict.fromkeys(name for m in _runs(arms) for name in _ends(m)))


def _ends(m: Measures) -> list[str]:
    """Step 0 and the phases of one run, in the order of training."""
    return [PHASE_INITIAL, *m.phases]


def _alike(arms: Arms, base: str) -> Arms:
    """The runs with phases as those of one arm, in number and length, whatever they are called, that scored the same
    hidden words; none where it has no run.

    At the ends of such phases, one after the other, they have seen as many words.
    """
    return {
        arm: {seed: m for seed, m in seeds.items() if not _unlike(m, seed, arms.get(base, {}))}
        for arm, seeds in arms.items()
    }


def _unlike(m: Measures, seed: Any, base: Mapping[Any, Measures]) -> str:
    """Why hidden words of a run do not compare with those of one arm, or ''."""
    if not any(same_phases(m, x) for x in list(base.values())[:1]):
        return 'their phases differ in number or length'
    return '' if _same_words(m, seed, base) else OTHER_WORDS


def _same_words(m: Measures, seed: Any, base: Mapping[Any, Measures]) -> bool:
    """Whether a run scored the hidden words of the run of one arm with its seed; or of the first one, without such."""
    other = base.get(seed, next(iter(base.values()), m))
    return not other_words([*m.cloze, *other.cloze])


def _without(arms: Arms, alike: Arms, base: str) -> str:
    """Sentences that name the arms which `_alike` has left out, or their seeds where it has kept others, or ''."""
    left: dict[str, dict[str, None]] = {}
    for arm, seeds in arms.items():
        for seed, m in seeds.items():
            if seed not in alike[arm]:
                name = f'{arm}{SEED}{seed}' if alike[arm] else arm
                left.setdefault(_unlike(m, seed, arms.get(base, {})), {})[name] = None
    return ''.join(_left_out(why, list(names)) for why, names in left.items())


def _left_out(why: str, names: Sequence[str]) -> str:
    """A sentence that names arms and why they are not compared, or '' without any."""
    return f' Not compared, as {why}: {", ".join(names)}.' if names else ''


def _end_names(alike: Arms) -> list[str]:
    """What step 0 and the ends of the phases are called in all of these runs; by number where that differs."""
    called = enumerate(zip(*map(_ends, _runs(alike)), strict=True))
    return [names[0] if len(set(names)) == 1 else f'phase {at}' for at, names in called]


def _at_end(seeds: Mapping[Any, Measures], at: int) -> dict[Any, float]:
    """What is drawn of each run at the end of its phase of that number; 0: at step 0."""
    return {seed: _hidden(m, _ends(m)[at], DRAWN) for seed, m in seeds.items()}


def _nats(found: HiddenWords | None, name: str) -> float:
    """Nats a word of one class of hidden words; NaN where the model has none."""
    value = found.by_class[name].nats_per_word if found and name in found.by_class else None
    return np.nan if value is None else value


def _both(arms: Arms, arm: str, control: str) -> list[tuple[Measures, Measures]]:
    """The runs of both, for each seed that both have."""
    return [(m, arms[control][seed]) for seed, m in arms[arm].items() if seed in arms[control]]


def _paired(measured: Geometry, pairs: Sequence[tuple[str, str]]) -> list[Any]:
    """The seeds that both arms of all pairs have, measured on the same words."""
    sides = [(measured[a], measured[b]) for a, b in pairs]
    return [
        seed
        for seed in sides[0][0]
        if all(seed in a and seed in b and a[seed].digest == b[seed].digest for a, b in sides)
    ]


def _steps(seeds: Mapping[Any, Measures]) -> list[float]:
    """The steps where the phases of the first run that is finished end; empty where none is."""
    every = ([m.phase_end(model) for model in _ends(m)] for m in seeds.values())
    return next(([float(end.step) for end in ends if end] for ends in every if all(ends)), [])


def _reached(steps: Sequence[float], falling: np.ndarray, value: float) -> float:
    if falling[0] <= value:
        return float(steps[0])
    for i in range(1, len(steps)):
        if falling[i] <= value:
            # Where the line from the point before crosses the value; a flat one is crossed at its end.
            drop = falling[i - 1] - falling[i]
            share = (falling[i - 1] - value) / drop if drop > 0 else 1.0
            return float(steps[i - 1] + min(max(share, 0.0), 1.0) * (steps[i] - steps[i - 1]))
    return float(steps[-1])


def _hidden(m: Measures, model: str, measure: str) -> float:
    found = value_of(m.cloze_of(model), measure)
    return np.nan if found is None else found


def _finite(values: Iterable[float]) -> list[float]:
    return [float(value) for value in values if not np.isnan(value)]
