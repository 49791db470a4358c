"""What a score owes to its training set: other sets with the same labels, test items that training has."""

import math
from collections.abc import Sequence

from bioptimus_jax.finetuning.overlap import SLICINGS
from bioptimus_jax.report.layout import Cell, Column, Table, between, each, missing, percents, spread
from bioptimus_jax.report.measures import NOT_SCORED, Measures, score_names
from bioptimus_jax.report.section import Addition
from bioptimus_jax.scoring.student import NO_INTERVAL

HEADINGS = {'text': '{}', 'parts': '5-grams: {}', 'corpus': '5-grams: {}'}
"""Headings of columns, by the slicings of `finetuning.overlap`."""


def crossed(m: Measures) -> Table:
    """Every test set under models that were trained on another one, beside those that were trained on it."""
    found = {(r.dataset, r.model, r.setting, r.trained_on): r for r in m.crossed}
    rows = list(dict.fromkeys(key[:3] for key in found))
    several = len({row[2] for row in rows}) > 1

    def own(dataset: str, model: str, setting: str) -> Cell:
        return spread(m.scores(model, dataset, setting=setting))

    def other(trained_on: str, *row: str) -> Cell:
        r = found.get((row[0], row[1], row[2], trained_on))
        if r is None:
            return missing()
        value, (low, high) = 100 * r.test, r.drop_interval or (math.nan, math.nan)
        return Cell(f'{value:.2f} ({between(-100 * r.drop, -100 * high, -100 * low, "+.2f")})', value)

    columns = [
        Column('tested on', lambda dataset, *_: dataset),
        Column('model', lambda _, model, __: m.label(model)),
        Column('setting', lambda *row: row[2], when=several),
        Column('trained on it', own),
        *each({d: f'trained on {d}' for d in dict.fromkeys(key[3] for key in found)}, other),
    ]
    types = {(r.trained_on, r.dataset): r.types for r in m.crossed}
    shared = '; '.join(f'{a} on {b}: {", ".join(kinds)}' for (a, b), kinds in types.items())
    note = (
        f'Test {score_names(m)}, percent, of the types that both sets have ({shared}); in brackets how far that is from'
        ' models that were trained on the tested set, on the same types and seeds, [95 % over test items,'
        ' paired]. Trained on it: all seeds and types. Of models that were kept.'
    )
    absent = (
        'config.finetune.crossed scores models that are kept on other sets with the same types of entities.'
    )
    return Table.of('On other sets', columns, rows, note=note, absent=absent)


def repeated(m: Measures) -> Table:
    """Scores of test items whose text training has, wholly or in part, and of the others."""
    note = (
        'Seen: a training item has the same words, letters and digits alone, case folded. 5-grams: the share of the'
        " test item's, by words, in the one training item that has most of them."
    )
    absent = 'stage finetune has not compared test items with training.'
    return _sliced(m, 'Overlap with the training set', ('text', 'parts'), note, absent)


def in_corpus(m: Measures) -> Table:
    """Scores of test items by how much of their text the pre-training corpus has."""
    note = (
        "The share of a test item's 5-grams, by words, in the one document of the pre-training corpus that has most of"
        ' them; without names that replace entities, and without items of fewer words. A model that was not trained on'
        ' the corpus shows what is due to difficulty. Of each item: finetune/in_corpus.json.'
    )
    absent = 'only scores of a run with a corpus have it.'
    return _sliced(m, 'Overlap with the corpus', ('corpus',), note, absent)


SECTION = Addition('entities', 'types', {'crossed': crossed, 'repeated': repeated, 'in_corpus': in_corpus})


def _sliced(m: Measures, title: str, slicings: Sequence[str], note: str, absent: str) -> Table:
    """Sets and models against the classes of test items that some of them has."""
    rows = [(d, x) for d in m.datasets for x in m.models if set(slicings) & set(m.overlap_of(x, d))]
    known = {(s, name) for d, x in rows for s in slicings for name in m.overlap_of(x, d).get(s, {})}
    classes = [(s, name) for s in slicings for name in SLICINGS[s] if (s, name) in known]

    def score(key: tuple[str, str], dataset: str, model: str) -> Cell:
        found = m.overlap_of(model, dataset).get(key[0], {}).get(key[1])
        if found is None or found.score is None:
            return missing()
        value = 100 * found.score
        ends = percents(found.interval, 1) or NO_INTERVAL
        return Cell(f'{value:.2f} [{ends}] of {found.items:,}', value)

    columns = [
        Column('set', lambda dataset, model: dataset),
        Column('model', lambda dataset, model: m.label(model)),
        Column('measure', lambda dataset, model: m.task(dataset).metric.title),
        *each({key: HEADINGS[key[0]].format(key[1]) for key in classes}, score),
    ]
    shown = (
        f'Test {score_names(m)}, percent, mean over seeds, [95 % over test items], of this many items. {note} The'
        ' classes are other items: a difference may be due to difficulty.'
    )
    return Table.of(title, columns, rows, note=shown, absent=absent if m.finetuned else NOT_SCORED)
