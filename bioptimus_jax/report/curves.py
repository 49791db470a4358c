"""Curves over pre-training, with steps and tokens below and phases above."""

from typing import Any

from bioptimus_jax.report.drawing import INK, SERIES, Figure, draw_svg
from bioptimus_jax.report.measures import PHASE_INITIAL, Measures
from bioptimus_jax.schema import SOURCE


def training_loss(m: Measures) -> Figure:
    """Loss (nats a piece) and learning rate against steps and tokens."""
    title = 'Training loss and learning rate'
    if not m.training:
        return Figure('training_loss', title, '', '', absent='stage pretrain has not been run.')
    steps = [r['step'] for r in m.training]
    losses = [r['loss'] for r in m.training]

    def draw(axes: Any) -> None:
        axes.plot(steps, losses, color=SERIES[0], linewidth=1.2, label='loss')
        axes.set_ylabel('loss, nats per piece')
        rate = axes.twinx()
        rate.plot(
            steps, [r['learning_rate'] for r in m.training], color=SERIES[1], linewidth=1.2, linestyle='--'
        )
        rate.set_ylabel('learning rate', color=SERIES[1])
        rate.ticklabel_format(axis='y', style='sci', scilimits=(0, 0), useMathText=False)
        rate.set_ylim(bottom=0)
        rate.grid(False)
        rate.tick_params(colors=SERIES[1])
        boundaries(axes, m)
        step_axis(axes, m)

    alt = (
        f'Training loss from {losses[0]:.2f} at step {steps[0]} to {losses[-1]:.2f} at step {steps[-1]},'
        f' with the learning rate; phase boundaries are marked.'
    )
    caption = 'The training loss jumps where the masking changes: it compares nothing between phases.'
    return Figure('training_loss', title, caption, alt, draw_svg('training_loss', draw))


def heldout_loss(m: Measures) -> Figure:
    """Held-out loss (nats a piece) against steps and tokens, with the one frozen mask and with every phase's."""
    title = 'Held-out loss'
    if not m.evaluations:
        return Figure('heldout_loss', title, '', '', absent='stage pretrain has not been run.')
    steps = [e['step'] for e in m.evaluations]
    settings = list(dict.fromkeys(name for e in m.evaluations for name in e.get('losses', {})))

    def draw(axes: Any) -> None:
        axes.plot(
            steps,
            [e['frozen_loss'] for e in m.evaluations],
            'o-',
            color=SERIES[0],
            markersize=3.5,
            label='frozen mask',
        )
        for name, colour in zip(settings, SERIES[1:] * 9, strict=False):
            points = [(e['step'], e['losses'][name]) for e in m.evaluations if name in e.get('losses', {})]
            axes.plot(
                *zip(*points, strict=True), '.--', color=colour, linewidth=1, label=f'masked as in {name}'
            )
        axes.set_ylabel('nats per [MASK]ed piece')
        step_axis(axes, m)
        boundaries(axes, m)
        axes.legend(ncols=2, loc='upper right')

    first, last = m.evaluations[0], m.evaluations[-1]
    alt = (
        f'Held-out loss on the frozen mask falls from {first["frozen_loss"]:.2f} at step {first["step"]} to'
        f' {last["frozen_loss"]:.2f} at step {last["step"]}; one further line for each masking setting.'
    )
    caption = 'The same held-out documents and masks at every point; [MASK]ed positions only.'
    return Figure('heldout_loss', title, caption, alt, draw_svg('heldout_loss', draw))


def masking_rate(m: Measures) -> Figure:
    """The share of pieces that were hidden, in per cent, against steps, beside what each phase asked for."""
    title = 'Realised masking rate'
    points = [(r['step'], 100 * r['realised_rate']) for r in m.training if r.get('realised_rate') is not None]
    if not points:
        return Figure('masking_rate', title, '', '', absent='stage pretrain has not been run.')
    wanted = {name: 100 * m.run.config.phase[name].rate for name in m.phases if name in m.run.config.phase}

    def draw(axes: Any) -> None:
        axes.plot(*zip(*points, strict=True), '.', color=SERIES[0], markersize=3)
        for name, start, stop in spans(m):
            if name in wanted:
                axes.hlines(wanted[name], start, stop, color=SERIES[1], linewidth=1.5)
        axes.set_ylim(0, max(*(y for _, y in points), *wanted.values()) * 1.25)
        axes.set_ylabel('maskable pieces predicted, %')
        step_axis(axes, m)
        boundaries(axes, m)

    low, high = min(y for _, y in points), max(y for _, y in points)
    alt = f'Share of maskable pieces that were predicted: {low:.1f} to {high:.1f} percent over the run.'
    caption = 'Dots: realised in a batch. Lines: the rate that the phase asks for.'
    return Figure('masking_rate', title, caption, alt, draw_svg('masking_rate', draw))


def spans(m: Measures) -> list[tuple[str, int, int]]:
    """`(phase, first step, last step)` from the records."""
    spans: dict[str, tuple[int, int]] = {}
    for record in (*m.training, *m.evaluations):
        if record['phase'] not in (PHASE_INITIAL, SOURCE):
            low, high = spans.get(record['phase'], (record['step'], record['step']))
            spans[record['phase']] = (min(low, record['step']), max(high, record['step']))
    return [(name, *span) for name, span in sorted(spans.items(), key=lambda item: item[1])]


def boundaries(axes: Any, m: Measures) -> None:
    """A dotted line at the end of every phase, and its name above."""
    start = 0
    for name, _, stop in spans(m):
        axes.axvline(stop, color=INK, alpha=0.5, linewidth=0.9, linestyle=':')
        axes.text(
            (start + stop) / 2,
            1.01,
            name,
            transform=axes.get_xaxis_transform(),
            ha='center',
            va='bottom',
            fontsize=9,
        )
        start = stop


def step_axis(axes: Any, m: Measures) -> None:
    """Steps below, and tokens below them: as many a step as the run has had on average."""
    axes.set_xlabel('step')
    last = max((*m.training, *m.evaluations), key=lambda r: r['step'], default={})
    if not last.get('tokens') or not last['step']:
        return
    unit, name = next(
        (u, n)
        for u, n in ((1e9, 'billion '), (1e6, 'million '), (1e3, 'thousand '), (1, ''))
        if last['tokens'] >= u
    )
    a_step = last['tokens'] / last['step'] / unit
    below = axes.secondary_xaxis(
        -0.19, functions=(lambda step: step * a_step, lambda tokens: tokens / a_step)
    )
    below.set_xlabel(f'{name}tokens')
    below.spines['bottom'].set_linewidth(0.8)
