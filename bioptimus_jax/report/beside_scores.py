"""What stands beside the scores of a table: held-out losses, geometry of rare and frequent words."""

import functools
from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from bioptimus_jax.report import arms, geometry
from bioptimus_jax.report.layout import Cell, Table, spread, words
from bioptimus_jax.report.questions import Question, Row, SetUp, pairs_of
from bioptimus_jax.report.trained import Trained, setting_name
from bioptimus_jax.student import interval

FROZEN = 'one frozen mask'


def losses(set_up: SetUp, title: str) -> Table:
    """Held-out losses at the end, under every setting that was scored; only rows of one vocabulary compare."""
    rows = [r for r in set_up.rows if any(t.own for t in r.models)]
    found: dict[str, dict[str, list[float]]] = {}
    for row in rows:
        for t in row.by_seed.values():
            for name, loss in _losses_of(t).items():
                found.setdefault(row.label, {}).setdefault(name, []).append(loss)
    names = list(dict.fromkeys(name for losses in found.values() for name in losses))
    lines = [
        [words(label), *(spread(losses.get(n, []), 3) for n in names)] for label, losses in found.items()
    ]
    note = (
        'Nats per [MASK]ed piece on held-out documents, mean ± sd over seeds; masked as the column says, scored where'
        ' [MASK] stands. — : not scored.'
    )
    left_out = [r.label for r in rows if all(t.config.vocab.kind == 'source' for t in r.models)]
    if left_out:
        note += f' Left out, since its pieces are others: {", ".join(left_out)}.'
    columns = ['model', *names]
    return Table(f'{title}: held-out loss', columns, lines, dict.fromkeys(names, 'low'), note=note)


def _losses_of(t: Trained) -> dict[str, float]:
    end = t.measures.phase_end(t.model) if t.own and t.config.vocab.kind != 'source' else None
    if not end:
        return {}
    settings = {setting_name(t.config.phase[n]): loss for n, loss in end.get('losses', {}).items()}
    return {FROZEN: end['frozen_loss'], **settings}


def hidden_words(set_up: SetUp, title: str) -> Table:
    """Held-out words hidden whole, scored by each row's models; rows of different vocabularies compare."""
    lines, masks = [], set()
    for row in set_up.rows:
        own = [t for t in row.by_seed.values() if 'mask' in t.measures.cloze_of(t.model)]
        masks |= {t.measures.cloze_of(t.model)['mask'] for t in own}
        values = [[arms.hidden(t.measures, t.model, measure) for t in own] for measure in arms.MEASURES]
        cells = [
            spread(found, 1 if measure in arms.HIGH_IS_GOOD else 3)
            for measure, found in zip(arms.MEASURES, values, strict=True)
        ]
        lines += [[words(row.label), *cells]] if own else []
    note = 'Held-out words, each hidden whole; mean ± sd over seeds. One-piece words: those that are one piece in every'
    note += ' vocabulary.'
    if len(masks) > 1:
        note += ' These models did not score the same words: set config.analysis.reference_vocab.'
    better = {shown: 'high' if m in arms.HIGH_IS_GOOD else 'low' for m, shown in arms.MEASURES.items()}
    return Table(f'{title}: hidden words', ['model', *arms.MEASURES.values()], lines, better, note=note)


def geometry_of_words(question: Question, set_up: SetUp, title: str) -> Table:
    """Rare and frequent words after the last phase, and each row less its reference, seed by seed."""
    measured = {row.label: _geometry_of(row) for row in set_up.rows}
    pairs = pairs_of(question, set_up.rows)
    lines = []
    for kind, shown in geometry.KINDS.items():
        for label, by_seed in measured.items():
            if by_seed:
                cells = [_interval(r[kind][x]['value'] for r in by_seed.values()) for x in geometry.MEASURES]
                lines.append([words(shown), words(label), *cells])
        for row, reference in pairs:
            own, base = measured[row.label], measured[reference.label]
            paired = [s for s in own if s in base and own[s]['digest'] == base[s]['digest']]
            if paired:
                change = functools.partial(_change, own, base, paired, kind)
                name = f'{row.label} less {reference.label}'
                lines.append([words(shown), words(name), *map(change, geometry.MEASURES)])
        if question.matched:
            lines += _pooled(measured, pairs, kind)
    note = (
        'Mean ± half of the 95 % interval over seeds (Student); differences are paired by seed, over the same words.'
        ' Less anisotropy: cosine and top component fall, IsoScore rises.'
    )
    columns = ['vector', 'model', *geometry.MEASURES.values()]
    return Table(f'{title}: geometry of rare and frequent words', columns, lines, note=note)


def _pooled(
    measured: Mapping[str, Mapping], compared: Sequence[tuple[Row, Row]], kind: str
) -> list[list[Cell]]:
    """Each corruption less 80-10-10, averaged over the rates of [MASK] within a seed: the factor's own effect.

    Of every initialisation and learning rate its own.
    """
    groups: dict[tuple[str, str], list[tuple[str, str]]] = {}
    for row, reference in compared:
        if row.suffix == reference.suffix:
            groups.setdefault((row.name.rpartition(', ')[2], row.suffix), []).append(
                (row.label, reference.label)
            )
    lines = []
    for (corruption, suffix), pairs in groups.items():
        seeds = [
            s
            for s in measured[pairs[0][0]]
            if all(s in measured[a] and s in measured[b] for a, b in pairs)
            and all(measured[a][s]['digest'] == measured[b][s]['digest'] for a, b in pairs)
        ]
        if len(pairs) < 2 or not seeds:
            continue
        cells = []
        for x in geometry.MEASURES:
            values = [
                float(
                    np.mean(
                        [
                            measured[a][s][kind][x]['value'] - measured[b][s][kind][x]['value']
                            for a, b in pairs
                        ]
                    )
                )
                for s in seeds
            ]
            cells.append(_interval(values, '+'))
        name = f'{corruption} less 80-10-10, mean over {len(pairs)} rates of [MASK]{suffix}'
        lines.append([words(geometry.KINDS[kind]), words(name), *cells])
    return lines


def _geometry_of(row: Row) -> dict[int | None, dict]:
    found = {seed: geometry.by_model(t.measures).get(t.model) for seed, t in row.by_seed.items()}
    return {seed: record for seed, record in found.items() if record}


def _change(own: Mapping, base: Mapping, seeds: Sequence, kind: str, measure: str) -> Cell:
    return _interval((own[s][kind][measure]['value'] - base[s][kind][measure]['value'] for s in seeds), '+')


def _interval(values: Iterable[float], sign: str = '') -> Cell:
    mean, half = interval(known := list(values))
    return Cell(f'{mean:{sign}.3f}' + (f' ± {half:.3f}' if len(known) > 1 else ''), mean)
