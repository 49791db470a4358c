"""The figures of a run as inline SVG that follows the page's colours, light or dark.

    python -m bioptimus_jax.report.figures NAME WORKDIR [FILE.svg]

draws one of them alone, from the files of the run.
"""

import dataclasses
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from bioptimus_jax.errors import InputError
from bioptimus_jax.files import atomic, read_json
from bioptimus_jax.report import geometry, ner_figures, slice_figures
from bioptimus_jax.report.drawing import INK, SERIES, Figure, draw_svg
from bioptimus_jax.report.measures import PHASE_INITIAL, SOURCE, Measures, read_measures
from bioptimus_jax.report.vocabulary import OWNERS
from bioptimus_jax.run import MANIFEST, STARTED, Run
from bioptimus_jax.schema import Experiment, Ner, Phase


def all_figures(m: Measures) -> list[Figure]:
    """Every figure, in the order of the page."""
    return [draw(m) for draw in FIGURES.values()]


def training_loss(m: Measures) -> Figure:
    """Loss (nats a piece) and learning rate against steps."""
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
        _boundaries(axes, m)
        axes.set_xlabel('step')

    alt = (
        f'Training loss from {losses[0]:.2f} at step {steps[0]} to {losses[-1]:.2f} at step {steps[-1]},'
        f' with the learning rate; phase boundaries are marked.'
    )
    caption = 'The training loss jumps where the masking changes: it compares nothing between phases.'
    return Figure('training_loss', title, caption, alt, draw_svg('training_loss', draw))


def heldout_loss(m: Measures) -> Figure:
    """Held-out loss (nats a piece) against steps, with the one frozen mask and with every phase's masking."""
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
        axes.set_xlabel('step')
        _boundaries(axes, m)
        axes.legend(ncols=2)

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
        for name, start, stop in _spans(m):
            if name in wanted:
                axes.hlines(wanted[name], start, stop, color=SERIES[1], linewidth=1.5)
        axes.set_ylim(0, max(*(y for _, y in points), *wanted.values()) * 1.25)
        axes.set_ylabel('maskable pieces predicted, %')
        axes.set_xlabel('step')
        _boundaries(axes, m)

    low, high = min(y for _, y in points), max(y for _, y in points)
    alt = f'Share of maskable pieces that were predicted: {low:.1f} to {high:.1f} percent over the run.'
    caption = 'Dots: realised in a batch. Lines: the rate that the phase asks for.'
    return Figure('masking_rate', title, caption, alt, draw_svg('masking_rate', draw))


def row_norms(m: Measures) -> Figure:
    """How long the embedding rows of shared and of new tokens are after surgery."""
    title = 'Norms of shared and new rows'
    shared = [t['norm'] for t in m.tokens if t.get('kind') == 'copied' and t.get('norm') is not None]
    new = [t['norm'] for t in m.tokens if t.get('kind') != 'copied' and t.get('norm') is not None]
    if not shared and not new:
        return Figure('row_norms', title, '', '', absent='stage surgery has not been run.')

    def draw(axes: Any) -> None:
        low, high = min(shared + new), max(shared + new)
        edges = [low + (high - low or 1) * i / 48 for i in range(49)]
        for norms, colour, label in ((shared, SERIES[0], 'shared'), (new, SERIES[1], 'new')):
            axes.hist(norms, edges, color=colour, alpha=0.65, label=f'{label}, {len(norms):,} rows')
        axes.set_xlabel('norm of the row at step 0')
        axes.set_ylabel('rows')
        axes.legend()

    means = [f'{label} {sum(x) / len(x):.2f}' for label, x in (('shared', shared), ('new', new)) if x]
    caption = 'Literal last-layer states may be longer than the rows they join; see config.surgery.scale.'
    return Figure(
        'row_norms',
        title,
        caption,
        f'Histogram of row norms; means: {", ".join(means)}.',
        draw_svg('row_norms', draw),
    )


def word_frequency(m: Measures) -> Figure:
    """For every frequency class of this run's corpus: where its words are in general text (paper, Figure 1)."""
    title = 'Words of the corpus by their frequency in general text'
    cross = m.frequency.get('cross')
    if not cross:
        return Figure('word_frequency', title, '', '', absent='config.vocab.general names no general corpus.')
    classes = list(m.frequency['domain']['classes'])
    totals = {here: max(sum(cells[here] for cells in cross.values()), 1) for here in classes}

    def draw(axes: Any) -> None:
        floor = [0.0] * len(classes)
        for (there, cells), colour in zip(cross.items(), SERIES, strict=False):
            shares = [100 * cells[here] / totals[here] for here in classes]
            axes.bar(range(len(classes)), shares, 0.7, floor, color=colour, label=there)
            floor = [low + share for low, share in zip(floor, shares, strict=True)]
        axes.set_xticks(range(len(classes)), [f'{here}\n{totals[here]:,} words' for here in classes])
        axes.set_xlabel('occurrences in a million words of this corpus')
        axes.set_ylabel('different words, %')
        axes.grid(False, axis='x')
        axes.legend(title='in general text', loc='center left', bbox_to_anchor=(1, 0.5), reverse=True)

    top = classes[0]
    parts = [f'{100 * cells[top] / totals[top]:.0f} percent {there}' for there, cells in cross.items()]
    alt = f'Of the words that occur {top} times in a million here, in general text are: {", ".join(parts)}.'
    caption = 'A bar is a frequency class of this corpus, its colours the classes of the same words in general text.'
    return Figure('word_frequency', title, caption, alt, draw_svg('word_frequency', draw))


def entity_pieces(m: Measures) -> Figure:
    """Words of the benchmark's entities that are a single piece: the source's vocabulary against this run's."""
    title = 'Words of entities that are one piece'
    measured = m.entities.get('datasets', {})
    if not measured:
        reason = 'stage analyze has not cut the entities of config.ner.folder.'
        return Figure('entity_pieces', title, '', '', absent=reason)
    owners = [name for name in OWNERS if all(name in by_owner for by_owner in measured.values())]

    def draw(axes: Any) -> None:
        width = 0.8 / len(owners)
        for number, (owner, colour) in enumerate(zip(owners, SERIES, strict=False)):
            heights = [100 * by_owner[owner]['one_piece_words'] for by_owner in measured.values()]
            places = [i + (number - (len(owners) - 1) / 2) * width for i in range(len(measured))]
            bars = axes.bar(places, heights, width * 0.92, color=colour, label=OWNERS[owner])
            axes.bar_label(bars, fmt='%.0f', fontsize=9)
        axes.set_xticks(range(len(measured)), list(measured))
        axes.set_ylabel('one-piece words, %')
        axes.grid(False, axis='x')
        axes.set_ylim(0, 108)
        axes.legend(ncols=2, loc='lower left', bbox_to_anchor=(0, 1), title='vocabulary')

    parts = []
    for name, by_owner in measured.items():
        shares = ', '.join(f'{100 * by_owner[o]["one_piece_words"]:.0f} ({OWNERS[o]})' for o in owners)
        parts.append(f'{name} {shares}')
    alt = f'Percent of the words of entities that are one piece: {"; ".join(parts)}.'
    caption = "All mentions of the training splits; words are BERT's, punctuation apart."
    return Figure('entity_pieces', title, caption, alt, draw_svg('entity_pieces', draw))


FIGURES: dict[str, Callable[[Measures], Figure]] = {
    f.__name__: f
    for f in (
        heldout_loss,
        *ner_figures.DRAWN,
        *slice_figures.DRAWN,
        training_loss,
        masking_rate,
        row_norms,
        word_frequency,
        entity_pieces,
        *geometry.DRAWN,
    )
}


def _spans(m: Measures) -> list[tuple[str, int, int]]:
    """`(phase, first step, last step)` from the records."""
    spans: dict[str, tuple[int, int]] = {}
    for record in (*m.training, *m.evaluations):
        if record['phase'] not in (PHASE_INITIAL, SOURCE):
            low, high = spans.get(record['phase'], (record['step'], record['step']))
            spans[record['phase']] = (min(low, record['step']), max(high, record['step']))
    return [(name, *span) for name, span in sorted(spans.items(), key=lambda item: item[1])]


def _boundaries(axes: Any, m: Measures) -> None:
    start = 0
    for name, _, stop in _spans(m):
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


def _made_with(workdir: Path) -> Experiment:
    """What the run was made with, as far as it decides a figure: the phases trained, the models scored."""
    models = (read_json(workdir / 'ner' / MANIFEST) or {}).get('config', {}).get('ner.models', ())
    experiment = dataclasses.replace(Experiment(), ner=dataclasses.replace(Ner(), models=tuple(models)))
    if not (workdir / 'pretrain').exists():
        return dataclasses.replace(experiment, stages=('ner',))
    manifest = read_json(workdir / 'pretrain' / MANIFEST) or read_json(workdir / 'pretrain' / STARTED) or {}
    settings = manifest.get('config', {})
    names = settings.get('phases')
    if not names or any(f'phase.{name}.rate' not in settings for name in names):
        return experiment
    phases = {name: Phase(rate=settings[f'phase.{name}.rate']) for name in names}
    return dataclasses.replace(experiment, phases=tuple(names), phase=phases)


def main(arguments: list[str]) -> None:
    """One figure of a run as SVG: `python -m bioptimus_jax.report.figures NAME WORKDIR [FILE.svg]`."""
    if len(arguments) not in (2, 3) or arguments[0] not in FIGURES:
        sys.exit(f'usage: python -m bioptimus_jax.report.figures {"|".join(FIGURES)} WORKDIR [FILE.svg]')
    name, workdir = arguments[:2]
    if not Path(workdir).is_dir():
        sys.exit(f'{workdir}: no such run folder')
    try:
        figure = FIGURES[name](read_measures(Run(workdir, _made_with(Path(workdir)), quiet=True)))
    except InputError as error:
        sys.exit(str(error))
    if not figure.svg:
        sys.exit(f'{workdir}: {figure.absent}')
    with atomic(Path(arguments[2] if len(arguments) == 3 else f'{name}.svg')) as file:
        file.write(figure.svg + '\n')


if __name__ == '__main__':
    main(sys.argv[1:])
