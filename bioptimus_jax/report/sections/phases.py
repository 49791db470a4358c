"""Phases of pre-training: steps, held-out losses and scores at the end of each, and the loss on the way."""

from typing import Any

from bioptimus_jax.model.config import SOURCE
from bioptimus_jax.pretrain.objective import heldout_loss_of, masking_of
from bioptimus_jax.report.drawing import Figure, curves, spanned, training_axis
from bioptimus_jax.report.layout import Cell, Column, Table, count, each, fixed, percent, spread
from bioptimus_jax.report.measures import (
    NO_PHASES,
    NOT_SCORED,
    OF_BASELINES,
    PHASE_INITIAL,
    Measures,
    score_names,
    scored_sets,
)
from bioptimus_jax.report.section import Section

NOT_TRAINED = 'stage pretrain has not been run.'


def phases(m: Measures) -> Table:
    """A row for every phase: steps, tokens, held-out losses (nats a piece), accuracy, score of each set."""
    settings = list(dict.fromkeys(name for e in m.evaluations for name in e.losses))
    scored = [x for x in m.models if any(m.scores(x, d) for d in m.datasets)]
    shown = [x for x in m.models if x in (PHASE_INITIAL, *m.phases, *scored)] if m.trains else []
    shown = [*(m.baselines if shown else ()), *shown]
    ends = {x: end for x in shown if (end := m.phase_end(x))}
    followed = _followed(m)

    def of_end(model: str, name: str) -> Any:
        return getattr(ends.get(model), name, None)

    def loss(setting: str, model: str) -> Cell:
        return fixed(ends[model].losses.get(setting) if model in ends else None)

    def from_frozen(dataset: str, model: str) -> Cell:
        f1 = ends[model].entity_f1.get(dataset) if model in ends else None
        return fixed(None if f1 is None else 100 * f1, 2)

    columns = [
        Column('phase', m.label),
        Column('steps', lambda x: count(m.step_of(x))),
        Column('tokens', lambda x: count(of_end(x, 'tokens'))),
        Column('held-out loss', lambda x: fixed(of_end(x, 'frozen_loss')), 'low'),
        Column('accuracy', lambda x: percent(of_end(x, 'frozen_accuracy')), 'high'),
        *each({s: f'loss {s}' for s in settings}, loss, 'low'),
        *each({s: f'{s}, frozen' for s in followed}, from_frozen, 'high'),
        *each(scored_sets([m]), lambda d, x: spread(m.scores(x, d) or m.baseline(x, d)), 'high'),
    ]
    note = f'Held-out loss: {heldout_loss_of(m.run.config)}.'
    note += ' Loss 0.1 …: masked as in that phase, [MASK]ed positions only.' if settings else ''
    note += ' Frozen: F1 from frozen states on training sentences, percent.' if followed else ''
    note += f' {score_names(m)}: test, percent, mean ± sd over seeds.' if m.datasets else f' F1: {NOT_SCORED}'
    if SOURCE in shown and not m.keeps_vocabulary:
        note += ' The source has another vocabulary, so its losses are not comparable.'
    note += f' {OF_BASELINES}' * bool(m.baselines)
    return Table.of('Phases', columns, shown, note=f'{note} — : not run.', absent=NO_PHASES)


def heldout_loss(m: Measures) -> Figure:
    """Held-out loss against steps and tokens; of what is masked with the one frozen mask and with every phase's."""
    config = m.run.config
    masks = any(masking_of(config, name) for name in config.phases)
    lines = {'frozen mask' if masks else 'held-out texts': [spanned(e.step, [e.loss]) for e in m.evaluations]}
    for name in dict.fromkeys(name for e in m.evaluations for name in e.losses):
        lines[f'masked as in {name}'] = [
            spanned(e.step, [e.losses[name]]) for e in m.evaluations if name in e.losses
        ]
    return curves(
        'heldout_loss',
        'Held-out loss',
        {'': lines},
        'step',
        'nats per [MASK]ed piece' if masks else 'held-out loss, nats',
        finish=lambda axes, _: training_axis(axes, m),
        caption='The same held-out documents and masks at every point; [MASK]ed positions only.'
        if masks
        else f'The same held-out texts at every point: {heldout_loss_of(config)}.',
        absent=NOT_TRAINED,
    )


def entities_while_training(m: Measures) -> Figure:
    """F1 of entities from frozen states (percent) against steps and tokens, a line for each set."""
    scored = [(e.step, e.entity_f1) for e in m.evaluations]
    lines = {
        name: [spanned(step, [100 * f1[name]]) for step, f1 in scored if name in f1] for name in _followed(m)
    }
    return curves(
        'entities_while_training',
        'Entities while training',
        {'': lines},
        'step',
        'F1 from frozen states',
        finish=lambda axes, _: training_axis(axes, m),
        caption='Without fine-tuning, on training sentences of each set. It compares steps; it is not test F1.',
        absent='config.evaluation.entities names no set of entities to be scored while a model trains.',
    )


def _followed(m: Measures) -> list[str]:
    """The sets that evaluations scored."""
    return list(dict.fromkeys(name for e in m.evaluations for name in e.entity_f1))


SECTION = Section(
    'Phases',
    'Does pre-training on the new corpus help, and which phase does?',
    ('pretrain',),
    {'phases': phases},
    (heldout_loss, entities_while_training),
    for_users=True,
)
