"""Fine-tunings that learned a part of a public set: their scores stand beside no published number."""

from collections.abc import Iterable

from bioptimus_jax.finetuning.config import STANDARD
from bioptimus_jax.records.finetune import FineTuning
from bioptimus_jax.report.measures import Measures
from bioptimus_jax.sets.corpora import settings_on
from bioptimus_jax.sets.published import texts_of

PART = '§'
"""The mark of a score of a model that learned a part of the set."""
NEAR = 0.9
"""Public files of entities have up to a tenth fewer mentions than papers count."""


def learned_part(m: Measures, cell: FineTuning) -> str:
    """`500 of 4,261 training examples`, where a fine-tuning learned fewer than the set has; '' for all of them."""
    given = settings_on(m.run.config.finetune, cell.dataset)
    known = cell.setting in (STANDARD, *given.setting)
    asked = given.named(cell.setting).train_sentences if known else 0
    here, public = (cell.sentences or {}).get('train', 0), texts_of(cell.dataset)
    every = max(here, public.examples[0] if public else 0)
    if asked and not every:
        return f'{asked:,} training examples'
    if 0 < (asked or here) < every:
        return f'{asked or here:,} of {every:,} training examples'
    for one in m.training_mentions:
        if one.dataset == cell.dataset and one.mentions < NEAR * one.published:
            return f'{one.mentions:,} of {one.published:,} training mentions'
    return ''


def parts_in_words(cells: Iterable[tuple[Measures, FineTuning]]) -> str:
    """The sentence that says what fine-tunings learned of each set; '' where all of them learned all of it."""
    found = dict.fromkeys((cell.dataset, learned_part(m, cell)) for m, cell in cells)
    said = '; '.join(f'{dataset}, {part}' for dataset, part in found if part)
    return said and f'Learned from a part of the set, so not comparable with published scores: {said}.'
