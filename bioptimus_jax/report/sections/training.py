"""The training steps: loss, learning rate and the share of pieces that were masked."""

from typing import Any

from bioptimus_jax.report.drawing import SERIES, Figure, curves, draw_svg, phase_spans, spanned, training_axis
from bioptimus_jax.report.measures import Measures
from bioptimus_jax.report.section import Section
from bioptimus_jax.report.sections.phases import NOT_TRAINED


def training_loss(m: Measures) -> Figure:
    """Loss (nats a piece) and learning rate against steps and tokens."""
    title = 'Training loss and learning rate'
    if not m.training:
        return Figure('training_loss', title, absent=NOT_TRAINED)
    steps, losses, rates = ([r[key] for r in m.training] for key in ('step', 'loss', 'learning_rate'))

    def draw(axes: Any) -> None:
        axes.plot(steps, losses, color=SERIES[0], linewidth=1.2, label='loss')
        axes.set_ylabel('loss, nats per piece')
        rate = axes.twinx()
        rate.plot(steps, rates, color=SERIES[1], linewidth=1.2, linestyle='--')
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
    caption = 'The training loss jumps where the masking changes: it compares nothing between phases.'
    return Figure('training_loss', title, caption, alt, draw_svg('training_loss', draw))


def masking_rate(m: Measures) -> Figure:
    """The share of pieces that were hidden, in per cent, against steps, beside what each phase asked for."""
    realised = [spanned(r['step'], [100 * r['realised_rate']]) for r in m.training if r.get('realised_rate')]
    asked = [
        spanned(step, [100 * m.run.config.phase[name].rate])
        for name, *ends in phase_spans(m)
        if name in m.run.config.phase
        for step in ends
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


SECTION = Section('Training', '', ('pretrain',), figures=(training_loss, masking_rate))
