"""What stands beside the scores of a table: held-out losses, hidden words, geometry of rare and frequent words."""

from collections.abc import Sequence

from bioptimus_jax.lab import arms
from bioptimus_jax.lab.questions import ComparableGroup, Question, Row, pairs_of
from bioptimus_jax.lab.sections import geometry
from bioptimus_jax.lab.trained import Trained, losses_under
from bioptimus_jax.records.analysis import ShapeOfWords
from bioptimus_jax.report.layout import Cell, Column, Table, each, spread
from bioptimus_jax.report.sections.hidden_words import MEASURES, columns_of, value_of

FROZEN = 'one frozen mask'


def losses(set_up: ComparableGroup, title: str) -> Table:
    """Held-out losses at the end, under every setting that was scored; only rows of one vocabulary compare."""
    own = [row for row in set_up.rows if any(t.own for t in row.models)]
    found = {row.label: [x for t in row.by_seed.values() if (x := _losses_of(t))] for row in own}
    names = dict.fromkeys(name for by_seed in found.values() for losses in by_seed for name in losses)

    def loss(name: str, label: str) -> Cell:
        return spread([losses[name] for losses in found[label] if name in losses], 3)

    columns = [Column('model', lambda label: label), *each({n: n for n in names}, loss, 'low')]
    note = (
        'Nats per [MASK]ed piece on held-out documents, mean ± sd over seeds; masked as the column says, scored where'
        ' [MASK] stands. — : not scored.'
    )
    left_out = [r.label for r in own if all(t.config.vocab.kind == 'source' for t in r.models)]
    if left_out:
        note += f' Left out, since its pieces are others: {", ".join(left_out)}.'
    scored = [label for label, by_seed in found.items() if by_seed]
    return Table.of(f'{title}: held-out loss', columns, scored, note=note)


def _losses_of(t: Trained) -> dict[str, float]:
    end = t.measures.phase_end(t.model) if t.own and t.config.vocab.kind != 'source' else None
    if not end or end.frozen_loss is None:
        return {}
    return {FROZEN: end.frozen_loss, **losses_under(t.measures, t.model)}


def hidden_words(set_up: ComparableGroup, title: str) -> Table:
    """Held-out words hidden whole, scored by each row's models; rows of different vocabularies compare."""
    scored = {
        row.label: own
        for row in set_up.rows
        if (own := [t for t in row.by_seed.values() if (r := t.measures.cloze_of(t.model)) and r.mask])
    }

    def cell(measure: str, label: str) -> Cell:
        values = [value_of(t.measures.cloze_of(t.model), measure) for t in scored[label]]
        return spread([x for x in values if x is not None], MEASURES[measure].decimals)

    note = (
        'Held-out words, each hidden whole; mean ± sd over seeds. One-piece words: those that are one piece in every'
        ' vocabulary.'
        + arms.other_words(t.measures.cloze_of(t.model) for own in scored.values() for t in own)
    )
    columns = [Column('model', lambda label: label), *columns_of(cell)]
    return Table.of(f'{title}: hidden words', columns, scored, note=note)


def geometry_of_words(question: Question, set_up: ComparableGroup, title: str) -> Table:
    """Rare and frequent words after the last phase, and each row less its reference, seed by seed."""
    pairs = pairs_of(question, set_up.rows)
    differences = {f'{row.label} less {other.label}': [(row.label, other.label)] for row, other in pairs}
    if question.matched:
        differences |= _pooled(pairs)
    measured = {row.label: _geometry_of(row) for row in set_up.rows}
    return arms.of_words(f'{title}: {geometry.TITLE.lower()}', measured, differences, 'model')


def _pooled(compared: Sequence[tuple[Row, Row]]) -> dict[str, list[tuple[str, str]]]:
    """Each corruption less 80-10-10, over the rates of [MASK]: the factor's own effect.

    Every initialisation and learning rate has its own.
    """
    groups: dict[tuple[str, str], list[tuple[str, str]]] = {}
    for row, reference in compared:
        if row.suffix == reference.suffix:
            group = groups.setdefault((row.name.rpartition(', ')[2], row.suffix), [])
            group.append((row.label, reference.label))
    return {
        f'{corruption} less 80-10-10, mean over {len(pairs)} rates of [MASK]{suffix}': pairs
        for (corruption, suffix), pairs in groups.items()
        if len(pairs) > 1
    }


def _geometry_of(row: Row) -> dict[int | None, ShapeOfWords]:
    found = {seed: geometry.by_model(t.measures).get(t.model) for seed, t in row.by_seed.items()}
    return {seed: record for seed, record in found.items() if record}
