"""The training steps: loss, learning rate, the share of pieces that were masked, and what an objective adds."""

from typing import Any

import numpy as np

from bioptimus_jax.pretrain import adapter
from bioptimus_jax.pretrain.curriculum import RateRamp
from bioptimus_jax.pretrain.objective import masking_of
from bioptimus_jax.pretrain.units import row_rates
from bioptimus_jax.records.curriculum import PlacedPhase
from bioptimus_jax.records.metrics import Evaluation
from bioptimus_jax.report.drawing import (
    SERIES,
    Figure,
    curves,
    draw_panels,
    phase_spans,
    spanned,
    training_axis,
)
from bioptimus_jax.report.layout import Cell, Column, Table, count, each, fixed
from bioptimus_jax.report.measures import Measures
from bioptimus_jax.report.section import Section
from bioptimus_jax.report.sections.phases import NOT_TRAINED

HELD_OUT = 'frozen_'
OF_MASKED = ('word_accuracy',)
"""Scores of masked pieces: other sections show them."""
DRAWN = 100
"""Points of a rate that moves within a phase."""


def training_loss(m: Measures) -> Figure:
    """Loss (nats a piece) and learning rate against steps and tokens."""
    title = 'Training loss and learning rate'
    if not m.training:
        return Figure('training_loss', title, absent=NOT_TRAINED)
    steps, losses, rates = zip(*((r.step, r.loss, r.learning_rate) for r in m.training))

    def draw(panels: list[Any]) -> None:
        [axes] = panels
        axes.plot(steps, losses, color=SERIES[0], linewidth=1.2, label='loss')
        axes.set_ylabel('loss, nats per piece')
        rate = axes.twinx()
        rate.plot(steps, rates, color=SERIES[1], linewidth=1.2, linestyle='--', label='learning rate')
        rate.set_ylabel('learning rate', color=SERIES[1])
        rate.ticklabel_format(axis='y', style='sci', scilimits=(0, 0), useMathText=False)
        rate.set_ylim(bottom=0)
        rate.grid(False)
        rate.tick_params(colors=SERIES[1])
        training_axis(axes, m)

    alt = (
        f'Training loss from {losses[0]:.2f} at step {steps[0]} to {losses[-1]:.2f} at step {steps[-1]},'
        f' with the learning rate; phase boundaries are marked.'
    )
    caption = 'The training loss jumps where the masking changes: it does not compare phases.'
    if trained := adapter.words(m.run.config.pretrain):
        caption += f' {trained}.'
    return Figure('training_loss', title, caption, alt, draw_panels('training_loss', draw, height=3.6))


def masking_rate(m: Measures) -> Figure:
    """The share of pieces that were hidden, in per cent, against steps, beside what each phase asked for."""
    realised = [spanned(r.step, [100 * r.realised_rate]) for r in m.spent if r.realised_rate]
    asked = [
        spanned(step, [100 * rate])
        for span in phase_spans(m)
        if span[0] in m.run.config.phase and masking_of(m.run.config, span[0])
        for step, rate in asked_rates(m, *span)
    ]
    return curves(
        'masking_rate',
        'Realised masking rate',
        {'': {'realised in a batch': realised, 'asked for': asked}} if realised else {},
        'step',
        'maskable pieces predicted, %',
        finish=lambda axes, _: training_axis(axes, m),
        absent=NOT_TRAINED,
    )


def asked_rates(m: Measures, name: str, first: int, last: int) -> list[tuple[int, float]]:
    """The masking rate of the steps of a phase, from the first to the last of those given: what moves goes by the
    length that was planned, also where the phase ended early."""
    phase = m.run.config.phase[name]
    placed = next((p for p in m.curriculum if p.name == name), PlacedPhase(name, first - 1, last))
    length = (placed.planned_stop or placed.stop) - placed.start
    rate, rate_end = phase.rates
    ramp = RateRamp(rate, rate_end, phase.rate_parts)
    steps = np.unique(np.linspace(first, last, DRAWN if phase.rate_end else 2, dtype=int))
    # The step that makes `step` of them comes after one fewer.
    rates = np.asarray(ramp.at(steps - 1 - placed.start, length)).tolist()
    return [
        (int(x), row_rates(phase.masking, (round(rate, 6),))[0]) for x, rate in zip(steps, rates, strict=True)
    ]


def told(m: Measures) -> list[str]:
    """What the objective puts on record beyond masked language modelling: generators, pairs, divergences, noise."""
    names = (
        name.removeprefix(HELD_OUT)
        for scores in (*(r.told for r in m.spent), *(e.scores for e in m.evaluations))
        for name, value in scores.items()
        if isinstance(value, int | float) and not isinstance(value, bool)
    )
    return [name for name in dict.fromkeys(names) if name not in OF_MASKED]


def objective(m: Measures) -> Table:
    """A row for every evaluation: what is `told`, of held-out documents if it is measured there."""

    def value(name: str, e: Evaluation) -> Cell:
        before = [r.told[name] for r in m.spent if name in r.told and r.step <= e.step]
        return fixed(e.scores.get(f'{HELD_OUT}{name}', before[-1] if before else None))

    names = told(m)
    columns = [
        Column('phase', lambda e: m.label(e.phase)),
        Column('step', lambda e: count(e.step)),
        *each({name: name.replace('_', ' ') for name in names}, value),
    ]
    note = 'On held-out documents where that is measured, otherwise in training steps. Losses in nats, shares of 1.'
    rows = m.evaluations if names else []
    return Table.of('What the objective records', columns, rows, note=note, absent=ONLY_MASKED)


def objective_curves(m: Measures) -> Figure:
    """The same against steps, with the training steps between the evaluations."""
    panels = {
        name.replace('_', ' '): {
            'training': [spanned(r.step, [r.told[name]]) for r in m.spent if name in r.told],
            'held out': [
                spanned(e.step, [e.scores[f'{HELD_OUT}{name}']])
                for e in m.evaluations
                if f'{HELD_OUT}{name}' in e.scores
            ],
        }
        for name in told(m)
    }
    title = 'What the objective records, over the steps'
    return curves('objective_curves', title, panels, 'step', '', share_y=False, absent=ONLY_MASKED)


ONLY_MASKED = 'the objective has no measures beyond those of masked pieces.'
SECTION = Section(
    'Training', '', ('pretrain',), {'objective': objective}, (training_loss, masking_rate, objective_curves)
)
