"""Arms of a sweep against each other: seeds as intervals, differences to a control, and the steps that an arm saves.

An arm called NAME.seed-3 is one of several runs of NAME. At the phase ends all arms have seen the same words, so the
control's steps are the axis for every one of them.
"""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from bioptimus_jax.report import geometry
from bioptimus_jax.report.drawing import INK, SERIES, Figure, draw_panels, draw_svg, in_legend
from bioptimus_jax.report.layout import Cell, Table, missing, spread, words
from bioptimus_jax.report.measures import LABELS, PHASE_INITIAL, Measures
from bioptimus_jax.student import interval

SEED = '.seed-'
MEASURES = {
    'nats_per_word': 'nats / word',
    'bits_per_character': 'bits / character',
    'word_accuracy': 'words right, %',
    'one_piece.nats_per_word': 'nats / one-piece word',
    'one_piece.word_accuracy': 'one-piece words right, %',
}
LINEAR = 0.1
"""Up to here the axis of differences is linear."""
HIGH_IS_GOOD = ('word_accuracy', 'one_piece.word_accuracy')


@dataclasses.dataclass(frozen=True)
class Curve:
    """One measure of one arm: values [seed, model], NaN where a run has not been made."""

    name: str
    values: np.ndarray

    def at(self, model: int) -> np.ndarray:
        return _finite(self.values[:, model])

    def less(self, control: 'Curve') -> list[np.ndarray]:
        """For each model the differences to the control, seed by seed, of the seeds that both have."""
        return [_finite(column) for column in (self.values - control.values).T]


def grouped(arms: Mapping[str, Measures]) -> dict[str, dict[str, Measures]]:
    """Name -> seed -> measures, in the order given."""
    groups: dict[str, dict[str, Measures]] = {}
    for arm, measures in arms.items():
        name, _, seed = arm.partition(SEED)
        groups.setdefault(name, {})[seed] = measures
    return groups


def curves(arms: Mapping[str, Measures], measure: str) -> tuple[list[str], list[Curve]]:
    """The models (step 0 and every phase), and a curve per arm with a row for each seed of any arm."""
    groups = grouped(arms)
    models = list(dict.fromkeys(name for m in arms.values() for name in (PHASE_INITIAL, *m.phases)))
    seeds = list(dict.fromkeys(seed for group in groups.values() for seed in group))
    found = []
    for name, group in groups.items():
        rows = [
            [hidden(group[s], model, measure) if s in group else np.nan for model in models] for s in seeds
        ]
        found.append(Curve(name, np.array(rows)))
    return models, found


def all_tables(arms: Mapping[str, Measures], control: str = '') -> list[Table]:
    """Test F1, hidden words, geometry, differences to the control; only those with something in them."""
    tables = [entities(arms), *(table(arms, measure) for measure in MEASURES), of_words(arms, control)]
    tables += [
        against(arms, control, measure) for measure in MEASURES if control and measure not in HIGH_IS_GOOD
    ]
    return [made for made in tables if any(cell.value is not None for row in made.rows for cell in row)]


def entities(arms: Mapping[str, Measures]) -> Table:
    """Test F1 of every arm on every set after its last phase that was scored, mean ± standard deviation over seeds."""
    groups = grouped(arms)
    datasets = list(dict.fromkeys(d for m in arms.values() for d in m.datasets))
    rows = []
    for name, group in groups.items():
        scores = [[f1 for m in group.values() for f1 in m.scores(_last_scored(m), d)] for d in datasets]
        rows.append([words(name), *(spread(values) for values in scores)])
    note = 'Test F1, percent, mean ± sd over seeds, after the last phase that was scored. — : not run.'
    return Table('Entity recognition', ['arm', *datasets], rows, dict.fromkeys(datasets, 'high'), note=note)


def table(arms: Mapping[str, Measures], measure: str) -> Table:
    """A measure of every arm at step 0 and at the phase ends, mean ± half of the 95 % interval over seeds."""
    models, found = curves(arms, measure)
    columns = ['arm', *(LABELS.get(model, model) for model in models)]
    rows = [[words(c.name), *(_cell(c.at(i), measure) for i in range(len(models)))] for c in found]
    better = dict.fromkeys(columns[1:], 'high' if measure in HIGH_IS_GOOD else 'low')
    masks = {r['mask'] for m in arms.values() for r in m.cloze if 'mask' in r}
    note = 'Mean ± half of the 95 % interval over seeds (Student). — : not run.'
    if len(masks) > 1:
        note += ' The arms did not score the same words: set config.analysis.reference_vocab.'
    return Table(f'Hidden words: {MEASURES[measure]}', columns, rows, better, note=note)


def against(arms: Mapping[str, Measures], control: str, measure: str = 'nats_per_word') -> Table:
    """Differences to the control, seed by seed, and the steps that an arm saves to where the control ends."""
    models, found = curves(arms, measure)
    by_name = {c.name: c for c in found}
    title = f'{MEASURES[measure]}: differences to {control}'
    columns = ['arm', *(LABELS.get(model, model) for model in models), 'steps saved']
    steps = _steps(grouped(arms).get(control, {}), models)
    if control not in by_name or steps is None:
        return Table(title, columns, [], absent=f'{control} has not been trained.')
    rows = []
    base = by_name[control]
    for curve in found:
        if curve.name == control:
            continue
        saved = [
            steps_saved(steps, own, theirs) for own, theirs in zip(curve.values, base.values, strict=True)
        ]
        cells = [_cell(values, measure) for values in curve.less(base)]
        rows.append([words(curve.name), *cells, _cell(_finite(np.array(saved)), '', 0)])
    note = (
        f'Mean ± half of the 95 % interval over seeds, paired. Steps saved: how many fewer than {control} an arm needs'
        f" for {control}'s last value, between measured points on a straight line; negative: how many fewer the control"
        " needs for the arm's."
    )
    return Table(title, columns, rows, note=note)


def of_words(arms: Mapping[str, Measures], control: str = '') -> Table:
    """Geometry of rare and frequent words after every arm's last phase, and its differences to the control's."""
    last: dict[str, dict[str, dict[str, Any]]] = {}
    for name, seeds in grouped(arms).items():
        for seed, m in seeds.items():
            if m.phases and (record := geometry.by_model(m).get(m.phases[-1])):
                last.setdefault(name, {})[seed] = record
    rows = []
    for kind, shown in geometry.KINDS.items():
        for name, group in last.items():
            values = {x: [r[kind][x]['value'] for r in group.values()] for x in geometry.MEASURES}
            rows.append([words(shown), words(name), *(_cell(np.array(v), '') for v in values.values())])
            base = last.get(control, {})
            paired = [s for s in group if s in base and base[s]['digest'] == group[s]['digest']]
            if name != control and paired:
                change = {
                    x: [group[s][kind][x]['value'] - base[s][kind][x]['value'] for s in paired]
                    for x in values
                }
                cells = (_cell(np.array(v), '') for v in change.values())
                rows.append([words(shown), words(f'{name} less {control}'), *cells])
    note = (
        'After the last phase; mean ± half of the 95 % interval over seeds, differences paired by seed and over the'
        " same words. What the columns mean stands in each run's own report."
    )
    columns = ['vector', 'arm', *geometry.MEASURES.values()]
    return Table('Geometry of rare and frequent words', columns, rows, note=note)


def steps_saved(steps: Sequence[float], own: np.ndarray, control: np.ndarray) -> float:
    """Of two falling curves: the control's last step minus the one where `own` reaches its last value; negative where
    `own` ends higher, by as much as the control is ahead. NaN where a value is missing."""
    if np.isnan(own).any() or np.isnan(control).any():
        return float('nan')
    if own[-1] <= control[-1]:
        return steps[-1] - _reached(steps, own, control[-1])
    return _reached(steps, control, own[-1]) - steps[-1]


def figure(arms: Mapping[str, Measures], control: str, measure: str = 'nats_per_word') -> Figure:
    """The curves over the control's steps, a band for the 95 % interval over seeds where there are several."""
    models, found = curves(arms, measure)
    groups = grouped(arms)
    steps = _steps(groups.get(control) or next(iter(groups.values()), {}), models) if models else None
    title = f'{MEASURES[measure]} over the first steps'
    if steps is None:
        return Figure('arms', title, '', '', absent='no arm has been trained.')
    drawn: list[tuple[str, list[float], list[float], list[float]]] = []
    for curve in found:
        known = [i for i in range(len(models)) if len(curve.at(i))]
        means, halves = zip(*(interval(list(curve.at(i))) for i in known), strict=True) if known else ((), ())
        drawn.append((curve.name, [steps[i] for i in known], list(means), list(halves)))

    later = [mean for _, places, means, _ in drawn for x, mean in zip(places, means, strict=True) if x > 0]
    # One arm's step 0 may lie so high that nothing else is seen.
    top = max(later) + (max(later) - min(later)) if later else np.inf
    above = [f'{name} {means[0]:.2f}' for name, _, means, _ in drawn if means and means[0] > top]

    def draw(axes: Any) -> None:
        if above:
            axes.set_ylim(min(later) - 0.1 * (top - min(later)), top)
        for number, (name, places, means, halves) in enumerate(drawn):
            colour, line = SERIES[number % len(SERIES)], ('-', '--', ':')[number // len(SERIES) % 3]
            axes.plot(
                places,
                means,
                line,
                marker='o',
                markersize=3,
                color=colour,
                linewidth=1.3,
                label=in_legend(name),
            )
            low, high = ([m + sign * h for m, h in zip(means, halves, strict=True)] for sign in (-1, 1))
            axes.fill_between(places, low, high, color=colour, alpha=0.12, linewidth=0)
        axes.set_xlabel(f'steps of {control}; the same words for every arm')
        axes.set_ylabel(MEASURES[measure])
        axes.legend(loc='center left', bbox_to_anchor=(1, 0.5))

    ends = '; '.join(f'{name} {means[0]:.2f} to {means[-1]:.2f}' for name, _, means, _ in drawn if means)
    caption = 'Bands: 95 % intervals over seeds.'
    caption += f' At step 0 above the figure: {"; ".join(above)}.' if above else ''
    return Figure('arms', title, caption, f'{MEASURES[measure]}: {ends}.', draw_svg('arms', draw))


def differences(arms: Mapping[str, Measures], control: str, measure: str = 'nats_per_word') -> Figure:
    """Every arm's paired difference to the control at the end of each phase, with its interval over seeds."""
    models, found = curves(arms, measure)
    title = f'{MEASURES[measure]}: differences to {control}'
    base = next((c for c in found if c.name == control), None)
    others = [c for c in found if c.name != control]
    if base is None or not others or len(models) < 2:
        return Figure(
            'differences', title, '', '', absent=f'{control} has not been trained beside another arm.'
        )
    made = [curve.less(base) for curve in others]

    def draw(panels: list[Any]) -> None:
        for number, axes in enumerate(panels, 1):  # 0: step 0
            for row, values in enumerate(pairs[number] for pairs in made):
                if len(values):
                    mean, half = interval(list(values))
                    axes.errorbar(
                        mean, -row, xerr=half, fmt='o', markersize=4, color=SERIES[0], linewidth=1.4
                    )
            axes.axvline(0, color=INK, linewidth=0.9)
            axes.set_xscale('symlog', linthresh=LINEAR)
            axes.set_xticks([-1, -LINEAR, 0, LINEAR, 1], ['-1', f'-{LINEAR}', '0', f'{LINEAR}', '1'])
            axes.set_yticks([-row for row in range(len(others))], [c.name for c in others])
            axes.set_title(f'after {models[number]}', fontsize=10)
        panels[len(panels) // 2].set_xlabel(f'{MEASURES[measure]}, less {control}')

    caption = (
        f'Paired by seed, with 95 % intervals (Student); left of the line is better than {control}. The axis is linear'
        f' up to {LINEAR} and logarithmic beyond.'
    )
    said = '; '.join(
        f'{c.name} {_cell(pairs[-1], measure).text}' for c, pairs in zip(others, made, strict=True)
    )
    svg = draw_panels('differences', draw, len(models) - 1, height=0.8 + 0.2 * len(others))
    return Figure('differences', title, caption, f'After {models[-1]}, less {control}: {said}.', svg)


def hidden(m: Measures, model: str, measure: str) -> float:
    """One of MEASURES of a model, NaN where it was not measured."""
    record: Any = m.cloze_of(model)
    for part in measure.split('.'):
        record = record.get(part, {}) if isinstance(record, dict) else {}
    return (
        float(record) * (100 if measure in HIGH_IS_GOOD else 1) if isinstance(record, int | float) else np.nan
    )


def _last_scored(m: Measures) -> str:
    scored = [model for model in m.models if any(m.scores(model, d) for d in m.datasets)]
    return scored[-1] if scored else PHASE_INITIAL


def _steps(group: Mapping[str, Measures], models: Sequence[str]) -> list[float] | None:
    for m in group.values():
        ends = [m.phase_end(model) for model in models]
        if all(ends):
            return [float(end['step']) for end in ends if end]
    return None


def _reached(steps: Sequence[float], falling: np.ndarray, value: float) -> float:
    for i in range(1, len(steps)):
        if falling[i] <= value:
            drop = falling[i - 1] - falling[i]
            share = (falling[i - 1] - value) / drop if drop > 0 else 1.0
            return float(steps[i - 1] + min(max(share, 0.0), 1.0) * (steps[i] - steps[i - 1]))
    return float(steps[-1])


def _finite(values: np.ndarray) -> np.ndarray:
    return values[~np.isnan(values)]


def _cell(values: np.ndarray, measure: str, decimals: int = 3) -> Cell:
    if not len(values):
        return missing()
    mean, half = interval(list(values))
    decimals = 1 if measure in HIGH_IS_GOOD else decimals
    text = f'{mean:.{decimals}f}' + (f' ± {half:.{decimals}f}' if len(values) > 1 else '')
    return Cell(text, mean)
