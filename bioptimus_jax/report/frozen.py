"""Entities from frozen states: their F1 without fine-tuning."""

from bioptimus_jax.report.layout import Column, Table, each, fixed
from bioptimus_jax.report.measures import Measures

ABSENT = (
    'stage analyze has not scored frozen states; it does with config.finetune.folder and'
    ' config.analysis.frozen_sentences, in a finished run with --replace.'
)


def frozen(m: Measures) -> Table:
    """The F1 from the frozen states of each model on each set."""
    sets = list(dict.fromkeys(r.set for r in m.frozen))
    columns = [
        Column('model', m.label),
        *each({d: d for d in sets}, lambda dataset, model: fixed(m.frozen_f1(model, dataset), 2), 'high'),
    ]
    most = max((r.sentences for r in m.frozen), default=0)
    note = (
        f'Entity F1 in percent, without fine-tuning, on up to {most:,} training sentences of each set, from a linear'
        ' tagger of the states of words fitted on other training sentences. It compares models; it is not test F1.'
    )
    models = m.in_order(r.model for r in m.frozen)
    return Table.of('Entities from frozen states', columns, models, note=note, absent=ABSENT)
