"""The training steps: loss, learning rate and the share of pieces that were masked."""

from typing import Any

from bioptimus_jax.report.drawing import SERIES, Figure, draw_svg, phase_spans, training_axis
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
    title = 'Realised masking rate'
    points = [(r['step'], 100 * r['realised_rate']) for r in m.training if r.get('realised_rate') is not None]
    if not points:
        return Figure('masking_rate', title, absent=NOT_TRAINED)
    wanted = {name: 100 * m.run.config.phase[name].rate for name in m.phases if name in m.run.config.phase}

    def draw(axes: Any) -> None:
        axes.plot(*zip(*points, strict=True), '.', color=SERIES[0], markersize=3)
        for name, start, stop in phase_spans(m):
            if name in wanted:
                axes.hlines(wanted[name], start, stop, color=SERIES[1], linewidth=1.5)
        axes.set_ylim(0, max(*(y for _, y in points), *wanted.values()) * 1.25)
        axes.set_ylabel('maskable pieces predicted, %')
        training_axis(axes, m)

    low, high = min(y for _, y in points), max(y for _, y in points)
    alt = f'Share of maskable pieces that were predicted: {low:.1f} to {high:.1f} percent over the run.'
    caption = 'Dots: realised in a batch. Lines: the rate that the phase asks for.'
    return Figure('masking_rate', title, caption, alt, draw_svg('masking_rate', draw))


SECTION = Section('Training', '', ('pretrain',), figures=(training_loss, masking_rate))
