"""The paper's tables from the runs at hand, beside the paper's numbers: scores, differences, losses, geometry."""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import partial
from typing import Any

from bioptimus_jax.lab import paper
from bioptimus_jax.lab.beside_scores import geometry_of_words, hidden_words, losses
from bioptimus_jax.lab.questions import (
    ComparableGroup,
    Question,
    Row,
    chosen_rates,
    comparable_groups,
    expected_of,
    pairs_of,
)
from bioptimus_jax.lab.significance import Pairs, compare
from bioptimus_jax.lab.trained import Trained, differing
from bioptimus_jax.report import layout
from bioptimus_jax.report.learned import PART, learned_part, parts_in_words
from bioptimus_jax.report.records import SEED
from bioptimus_jax.scoring.comparison import MACRO, Comparison
from bioptimus_jax.scoring.student import ALPHA
from bioptimus_jax.storage.files import shown_path

DIFFERS = '†'
PAPER = 'Paper: arXiv 2308.08625, BERT-base, 1.8 billion words, seeds not stated.'


def tables(question: Question, models: Sequence[Trained]) -> tuple[list[layout.Table], list[layout.Table]]:
    """Scores of every set-up, without a run the paper's numbers alone; and what stands beside them.

    Rows of different set-ups are never ranked or tested against each other.
    """
    found = comparable_groups(question, models) or [ComparableGroup((), {})]
    several = len(found) > 1
    scores, details = [], []
    for number, set_up in enumerate(found):
        letter = chr(ord('A') + number) if several else ''
        title = f'{question.title}{f" (set-up {letter})" if letter else ""}'
        # What was scored here comes first, in the paper's order; then what the paper alone has, once.
        datasets = [d for d in paper.DATASETS if d in set_up.datasets]
        datasets += [d for d in set_up.datasets if d not in paper.DATASETS]
        datasets += [d for d in paper.DATASETS if d not in datasets and not number]
        chosen = chosen_rates(set_up.rows, datasets)
        best = pairs_of(question, tuple(chosen))
        # At the same learning rate, and each at the one that devel chose for it.
        pairs = list(dict.fromkeys([*pairs_of(question, set_up.rows), *best]))
        compared, problems = compare(pairs, set_up.rows, datasets)
        note = [_scores_note(question, set_up, compared, best), *(f'{problem}.' for problem in problems)]
        note += [_apart(letter, set_up, found[0] if number else None)] if several else []
        said = ' '.join(filter(None, [*note, _made_from(set_up)]))
        tested = _marks(compared, best)
        scores.append(_scores(question, set_up, datasets, chosen, tested, not number, title, said))
        beside = [
            _over_seeds(pairs, datasets, compared, title),
            _on_items(pairs, datasets, compared, title),
            _every_rate(set_up, datasets, chosen, title),
            losses(set_up, title),
            hidden_words(set_up, title),
        ]
        if question.name in ('orders', 'corruption'):
            beside.append(geometry_of_words(question, set_up, title))
        details += [table for table in beside if table.rows]
    return scores, details


def _scores(
    question: Question,
    set_up: ComparableGroup,
    datasets: Sequence[str],
    chosen: Mapping[Row, str],
    tested: Mapping[tuple[str, str], str],
    first: bool,
    title: str,
    note: str,
) -> layout.Table:
    """Test F1, here and in the paper, of the chosen rows; rows that are expected and that nobody has run are there too.

    The paper's columns are ranked in the first set-up alone, which has all of the paper's rows.
    """
    in_paper = [d for d in datasets if d in paper.DATASETS and any(map(question.paper, question.expected))]
    together = set_up.datasets if len(set_up.datasets) > 1 else []

    def score(name: str, sets: Sequence[str], row: Row | None, *_: Any) -> layout.Cell:
        cell = layout.spread(row.scores(*sets) if row else [])
        mark = tested.get((row.label, name), '') if row else ''
        part = PART if row and any(learned_part(*one) for d in sets for one in row.cells(d).values()) else ''
        text = ' '.join(filter(None, (cell.text, mark, part if in_paper else '')))
        return layout.Cell(text, cell.value)

    def reported(dataset: str, _: Row | None, __: str, name: str) -> layout.Cell:
        found = question.paper(name)
        return layout.fixed(found[paper.DATASETS.index(dataset)] if found else None, 2)

    columns = [
        layout.Column('model', lambda row, label, name: label),
        layout.Column('words seen', lambda row, *_: _words(row)),
        layout.Column('seeds', lambda row, *_: _seeds(row, datasets)),
        layout.Column(MACRO, partial(score, MACRO, together), 'high', bool(together)),
    ]
    for d in datasets:
        columns += [
            layout.Column(f'{d}, here' if d in in_paper else d, partial(score, d, [d]), 'high'),
            layout.Column(f'{d}, paper', partial(reported, d), 'high' if first else '', d in in_paper),
        ]
    records: list[tuple[Row | None, str, str]] = [(r, r.label + how, r.name) for r, how in chosen.items()]
    here = {expected_of(question, row.name) for row in set_up.rows}
    if first and (set_up.rows or in_paper):
        records += [(None, f'{name}: no run', name) for name in question.expected if name not in here]
    return layout.Table.of(title, columns, records, note=note, absent=_absent(question))


def _absent(question: Question) -> str:
    return f'no run answers this; `bioptimus sweep --config={question.made_by} --workdir=DIR` makes them.'


def _words(row: Row | None) -> layout.Cell:
    seen = [t.words for t in row.models if t.own] if row else []
    return layout.count(sum(seen) / len(seen) if seen else None)


def _seeds(row: Row | None, datasets: Sequence[str]) -> layout.Cell:
    """Pre-trainings, and fine-tunings of each where there are several: 3, or 1 × 5."""
    counted = [Counter(seed for seed, _ in cells) for d in datasets if row and (cells := row.cells(d))]
    if not counted:
        return layout.missing()
    of_each = [number for of_set in counted for number in of_set.values()]
    times = f' × {_range(of_each)}' if max(of_each) > 1 else ''
    return layout.Cell(f'{_range(map(len, counted))}{times}', float(max(map(len, counted))))


def _range(numbers: Iterable[int]) -> str:
    known = sorted(numbers)
    return '-'.join(map(str, dict.fromkeys((known[0], known[-1]))))


def _scores_note(
    question: Question, set_up: ComparableGroup, compared: Sequence[Comparison], best: Pairs
) -> str:
    papers = PAPER if any(map(question.paper, question.expected)) else ''
    if not set_up.rows:
        return f'— : {_absent(question)} {papers}'
    note = (
        'Test F1, percent, mean ± sd over pre-trainings, each the mean of its fine-tunings; of one pre-training over'
        ' its fine-tunings. Seeds: of pre-training; 1 × 5 is one, fine-tuned five times. Epoch and setting chosen on'
        ' devel. Best bold, second underlined. — : no run, or not scored.'
    )
    if papers:
        cells = (one for row in set_up.rows for d in set_up.datasets for one in row.cells(d).values())
        learned = parts_in_words(cells)
        note += f' {PART}: {learned}' * bool(learned)
    if any(c.name != MACRO for c in compared):
        shown = {(row.label, reference.label) for row, reference in best}
        references = {c.reference for c in compared if c.pair in shown}
        against = references.pop() if len(references) == 1 else 'the row that it is compared with'
        note += f' {_tested(compared, against)}'
    return f'{note} {papers}'.strip()


def _tested(compared: Sequence[Comparison], against: str) -> str:
    """What the mark means, or that there is no test that could give one."""
    tests = [c for c in compared if c.over_trainings.p is not None]
    if not tests:
        return (
            'Not tested over pre-trainings: that needs two of a row and of what it is compared with, and differences'
            ' that are not all the same.'
        )
    means = sum(c.name == MACRO for c in tests)
    families = [f'{means} differences of the {MACRO}'] if means else []
    families += [f'{len(tests) - means} differences on single sets'] if len(tests) > means else []
    return (
        f"{DIFFERS}: differs from {against} over pre-trainings, p < {ALPHA}: arms and seeds in two ways, Student's t"
        f' with the residual, corrected after Holm for {" and, apart, for ".join(families)}.'
    )


def _marks(compared: Sequence[Comparison], pairs: Pairs) -> dict[tuple[str, str], str]:
    """(row, set) -> mark, of these pairs."""
    shown = {(row.label, reference.label) for row, reference in pairs}
    return {(c.model, c.name): DIFFERS for c in compared if c.over_trainings.sign and c.pair in shown}


def _apart(letter: str, set_up: ComparableGroup, first: ComparableGroup | None) -> str:
    if first is None:
        return (
            f'Set-up {letter}: the runs of the other set-ups differ in more than the question; their notes say in '
            'what.'
        )
    names = differing(set_up.conditions, first.conditions)
    what = '; '.join(f'{n}: {set_up.conditions[n]}, in A {first.conditions[n]}' for n in names)
    return f'Set-up {letter} must not be compared with set-up A: {what}.'


def _made_from(set_up: ComparableGroup) -> str:
    """Which folders, in short, and what they have in common."""
    if not set_up.rows:
        return ''
    arms: dict[tuple[str, str], list[str]] = {}
    for folder in set_up.folders:
        name, _, seed = folder.name.partition(SEED)
        arms.setdefault((shown_path(folder.parent), name), []).append(seed)
    parents: dict[str, list[str]] = {}
    for (parent, name), seeds in arms.items():
        known = ', '.join(seed for seed in seeds if seed)
        parents.setdefault(parent, []).append(f'{name} (seed {known})' if known else name)
    made = '; '.join(f'{parent}: {", ".join(names)}' for parent, names in parents.items())
    settings = [
        f'{n} {set_up.conditions[n]}' for n in ('corpus', 'vocab', 'source') if n in set_up.conditions
    ]
    settings += [
        f'{n.replace("finetune.", "fine-tuning: ").replace("_", " ")} {set_up.conditions[n]}'
        for n in ('words of phase 1', 'finetune.epochs', 'finetune.learning_rate')
        if n in set_up.conditions
    ]
    return f'Made from {made}. {"; ".join(settings)}.' if settings else f'Made from {made}.'


def _every_rate(
    set_up: ComparableGroup, datasets: Sequence[str], chosen: Collection[Row], title: str
) -> layout.Table:
    """Devel and test F1 at every learning rate, where there are rows beside the chosen ones."""
    here = [d for d in datasets if d in set_up.datasets]
    places = {(d, split): f'{d}, {split}' for d in here for split in ('devel', 'test')}
    columns = [
        layout.Column('model', lambda row: row.label),
        layout.Column('seeds', lambda row: _seeds(row, here)),
        *layout.each(places, lambda place, row: layout.spread(row.scores(place[0], split=place[1]))),
    ]
    note = (
        'F1 as above. Devel chose the rows above: the highest mean over the sets that all rates of a model have. '
        'Test scores had no influence, so nothing is ranked here.'
    )
    rows = set_up.rows if len(chosen) < len(set_up.rows) else ()
    return layout.Table.of(f'{title}: learning rates', columns, rows, note=note)


def _over_seeds(
    pairs: Pairs, datasets: Sequence[str], compared: Sequence[Comparison], title: str
) -> layout.Table:
    """F1 of each row less that of its reference over pre-trainings: Student's interval, corrected p, each seed."""
    freedom = sorted({c.over_trainings.freedom for c in compared if c.over_trainings.freedom})
    note = (
        'F1 of the row less that of the other. Would other pre-trainings differ in the same way? Brackets: 95 % of'
        " each, Student's t with the residual of arms and seeds in two ways"
        + (f' ({_range(freedom)} degrees of freedom)' if freedom else '')
        + '; after them the corrected p, and the difference with each seed. Without brackets: not tested, as there is'
        ' one pre-training, or every seed gives the same difference. Test items are taken as they are.'
    )
    return _compared(pairs, datasets, compared, _difference, f'{title}: differences over pre-trainings', note)


def _on_items(
    pairs: Pairs, datasets: Sequence[str], compared: Sequence[Comparison], title: str
) -> layout.Table:
    """The same of these trained models on other test items: paired bootstrap and randomisation."""
    note = (
        'Would these trained models differ in the same way on more such text? Brackets: 95 %, paired bootstrap over'
        ' the test set; after them p by paired randomisation, corrected after Holm. It covers these models only:'
        ' other trainings vary more, so it does not show that a way of training is better.'
    )
    own = [c for c in compared if c.on_items]
    return _compared(pairs, datasets, own, _item_difference, f'{title}: these models, other test items', note)


def _compared(
    pairs: Pairs,
    datasets: Sequence[str],
    compared: Sequence[Comparison],
    shown: Callable[[Comparison], str],
    title: str,
    note: str,
) -> layout.Table:
    """A line for each pair that was compared; a mean over fewer than all of the sets says which."""
    cells = {(*c.pair, c.name): c for c in compared}
    known = [d for d in (MACRO, *datasets) if any(c.name == d for c in compared)]
    single = tuple(d for d in known if d in datasets)

    def cell(dataset: str, row: Row, reference: Row) -> layout.Cell:
        c = cells.get((row.label, reference.label, dataset))
        if c is None:
            return layout.missing()
        fewer = len(c.sets) > 1 and c.sets != single
        over = f'; over {", ".join(c.sets)}' if fewer else ''
        return layout.Cell(f'{shown(c)}{over}', c.over_trainings.observed)

    columns = [
        layout.Column('model', lambda row, reference: row.label),
        layout.Column('less', lambda row, reference: reference.label),
        *layout.each({d: d for d in known}, cell),
    ]
    tested = {c.pair for c in compared}
    records = [(row, other) for row, other in pairs if (row.label, other.label) in tested]
    return layout.Table.of(title, columns, records, note=note)


def _difference(c: Comparison) -> str:
    return f'{layout.tested(c.over_trainings)}; {" ".join(f"{d:+.1f}" for d in c.by_seed)}'


def _item_difference(c: Comparison) -> str:
    assert c.on_items is not None
    return layout.tested(c.on_items)
