"""Entities in test sentences: gold, found and missed, before adaptation and after it."""

import dataclasses
import html
import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from bioptimus_jax.errors import InputError
from bioptimus_jax.finetuning.predictions import Predicted
from bioptimus_jax.report.cells import cell_folder
from bioptimus_jax.report.gain import before_and_after, best_on_devel
from bioptimus_jax.report.layout import Cell, Column, Table, count
from bioptimus_jax.report.measures import NOT_SCORED, Measures
from bioptimus_jax.report.section import Section
from bioptimus_jax.sets.tags import Span

EACH = 2
"""Sentences of a set that gained most, that lost most, and that stayed most wrong."""
LONGEST = 60
"""Words of a sentence that is shown."""
NOT_KEPT = 'no predictions of entities are kept in this run.'


@dataclasses.dataclass(frozen=True)
class Shown:
    """A test sentence with the gold mentions, and those that each model predicts."""

    dataset: str
    number: int
    words: tuple[str, ...]
    gold: frozenset[Span]
    predicted: tuple[frozenset[Span], ...]

    @property
    def errors(self) -> list[int]:
        """Mentions missed and mentions that are not gold, of each model."""
        return [len(self.gold ^ found) for found in self.predicted]

    @property
    def gained(self) -> int:
        """How many errors the last model has less than the first."""
        return self.errors[0] - self.errors[-1]

    def change(self) -> str:
        """`2 errors → 0`."""
        return ' → '.join(f'{n}' for n in self.errors)

    def marked(self, which: int) -> Cell:
        """The sentence with the mentions of gold and of one model, as text in brackets and as HTML."""
        texts, marks = [], []
        for words, kind, label in _stretches(self.words, self.gold, self.predicted[which]):
            text = ' '.join(words)
            texts.append(f'[{text}]({label})' if kind else text)
            shown, said = html.escape(text), html.escape(label)
            marks.append(f'<mark class="{kind}">{shown} <small>{said}</small></mark>' if kind else shown)
        return Cell(' '.join(texts), html=' '.join(marks))


def in_text(m: Measures) -> Table:
    """Sentences that changed most, and some that stayed wrong, with the mentions of both models in them."""
    sides = {d: [x for x in dict.fromkeys(_models(m, d)) if x] for d in m.datasets}
    read = {d: list(_sentences(m, d, models)) for d, models in sides.items()}
    chosen = [one for sentences in read.values() for one in _chosen(sentences)]
    used = [sides[d] for d in dict.fromkeys(one.dataset for one in chosen)]

    def title(which: int) -> str:
        return ', '.join(dict.fromkeys(m.label(models[which]) for models in used if len(models) > which))

    def marked(which: int) -> Callable[[Shown], Cell]:
        return lambda one: one.marked(min(which, len(one.predicted) - 1))

    columns = [
        Column('set', lambda one: one.dataset),
        Column('sentence', lambda one: count(one.number)),
        Column('errors', Shown.change),
        Column(title(0), marked(0)),
        Column(title(1), marked(1), when=any(len(models) > 1 for models in used)),
    ]
    note = (
        'Test sentences, first seed. Found: as in gold. Missed: gold alone. Not gold: predicted alone. In part: both,'
        ' with other ends. Errors: mentions missed and mentions that are not gold.'
    )
    note += ''.join(
        _tally(d, sentences) for d, sentences in read.items() if any(one.gold for one in sentences)
    )
    absent = NOT_KEPT if m.finetuned else NOT_SCORED
    return Table.of('Entities in test sentences', columns, chosen, note=note, absent=absent)


SECTION = Section(
    'Entities in text',
    'Example test sentences, before and after: those that changed most, either way.',
    ('finetune',),
    {'in_text': in_text},
    for_users=True,
)


def _models(m: Measures, dataset: str) -> Sequence[str]:
    """Before and after adaptation; of a run that trains nothing the best on devel."""
    return before_and_after(m, dataset) if m.trains else (best_on_devel(m, dataset, m.models),)


def _sentences(m: Measures, dataset: str, models: Sequence[str]) -> Iterator[Shown]:
    """The test sentences of models that were scored on the same, of their first seeds; none where they are not kept."""
    task = m.task(dataset)
    try:
        read = [task.written(cell_folder(m, m.cells(x, dataset)[0])) for x in models]
    except InputError:
        return

    def mentions(answers: Sequence[Any]) -> frozenset[Span]:
        return frozenset(task.mentions(answers))

    for number, sides in enumerate(zip(*read, strict=False), 1):
        first: Predicted = sides[0]
        if all((one.words, one.gold) == (first.words, first.gold) for one in sides):
            found = tuple(mentions(one.predicted) for one in sides)
            yield Shown(dataset, number, first.words, mentions(first.gold), found)


def _chosen(sentences: Sequence[Shown]) -> list[Shown]:
    """Sentences that gained most, lost most and stayed most wrong, in the order of the file among equals."""
    left, chosen = [one for one in sentences if len(one.words) <= LONGEST], []
    for rank in (lambda one: one.gained, lambda one: -one.gained, lambda one: one.errors[-1]):
        most = sorted((one for one in left if rank(one) > 0), key=lambda one: (-rank(one), one.number))[:EACH]
        chosen += most
        left = [one for one in left if one not in most]
    return chosen


def _tally(dataset: str, sentences: Sequence[Shown]) -> str:
    more, less = (sum(sign * one.gained > 0 for one in sentences) for sign in (1, -1))
    wrong = sum(bool(one.errors[-1]) for one in sentences)
    changed = (
        f'{more:,} have fewer errors after it, {less:,} more, and ' if len(sentences[0].predicted) > 1 else ''
    )
    return f' {dataset}: of {len(sentences):,} sentences {changed}{wrong:,} have some.'


def _stretches(
    words: Sequence[str], gold: frozenset[Span], predicted: frozenset[Span]
) -> Iterator[tuple[list[str], str, str]]:
    """Words that lie in the same mentions, the class of the stretch ('' for none) and what is said of it."""
    places = [(_around(gold, at), _around(predicted, at)) for at in range(len(words))]
    for (truth, found), group in itertools.groupby(enumerate(words), key=lambda pair: places[pair[0]]):
        yield [word for _, word in group], *_said(truth, found)


def _around(mentions: frozenset[Span], at: int) -> Span | None:
    return next((span for span in mentions if span[1] <= at <= span[2]), None)


def _said(truth: Span | None, found: Span | None) -> tuple[str, str]:
    if truth and found:
        if truth == found:
            return 'found', truth[0]
        return 'part-found', f'{truth[0]}, in part' if truth[0] == found[0] else f'{truth[0]}, not {found[0]}'
    if truth:
        return 'missed', f'{truth[0]}, missed'
    return ('wrong', f'{found[0]}, not gold') if found else ('', '')
