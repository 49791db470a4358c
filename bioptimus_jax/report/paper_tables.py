"""The paper's tables from the runs at hand, beside the paper's numbers: scores, differences, losses, geometry."""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence

from bioptimus_jax.report import paper
from bioptimus_jax.report.arms import SEED
from bioptimus_jax.report.beside_scores import geometry_of_words, losses
from bioptimus_jax.report.layout import Cell, Table, count, fixed, missing, shown_path, spread, words
from bioptimus_jax.report.questions import Question, Row, SetUp, chosen_rates, expected_of, pairs_of, set_ups
from bioptimus_jax.report.significance import AGREED, DOUBTED, MACRO, Compared, compare
from bioptimus_jax.report.trained import Trained, differing

PAPER = 'Paper: arXiv 2308.08625, BERT-base, 1.8 billion words, seeds not stated.'


def tables(question: Question, models: Sequence[Trained]) -> tuple[list[Table], list[Table]]:
    """Scores of every set-up, without a run the paper's numbers alone; and what stands beside them.

    Rows of different set-ups are never ranked or tested against each other.
    """
    found = set_ups(question, models) or [SetUp((), {})]
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
        compared, problems = compare(pairs, datasets)
        note = [_scores_note(question, set_up, compared, best), *(f'{problem}.' for problem in problems)]
        if several:
            note.append(_apart(letter, set_up, found[0] if number else None))
        note.append(_made_from(set_up))
        tested = _marks(compared, best)
        said = ' '.join(filter(None, note))
        scores.append(_scores(question, set_up, datasets, chosen, tested, title, said, not number))
        beside = [
            _differences(pairs, datasets, compared, title),
            _every_rate(set_up, datasets, chosen, title),
            losses(set_up, title),
        ]
        if question.name in ('orders', 'corruption'):
            beside.append(geometry_of_words(question, set_up, title))
        details += [table for table in beside if table.rows]
    return scores, details


def _scores(
    question: Question,
    set_up: SetUp,
    datasets: Sequence[str],
    chosen: Mapping[Row, str],
    tested: Mapping[tuple[str, str], str],
    title: str,
    note: str,
    first: bool,
) -> Table:
    """Test F1, here and in the paper, of the chosen rows; rows that are expected and that nobody has run are there too.

    The paper's columns are ranked in the first set-up alone, which has all of the paper's rows.
    """
    in_paper = [d for d in datasets if d in paper.DATASETS and any(map(question.paper, question.expected))]
    columns = ['model', 'words seen', 'seeds']
    columns += [name for d in datasets for name in ([f'{d}, here', f'{d}, paper'] if d in in_paper else [d])]
    lines = []
    for row, how in chosen.items():
        line = [words(row.label + how), *_size(row, datasets)]
        reported = question.paper(row.name)
        for d in datasets:
            cell = spread(row.scores(d))
            mark = tested.get((row.label, d), '')
            line.append(Cell(f'{cell.text} {mark}', cell.value) if mark else cell)
            line += [_reported(reported, d)] if d in in_paper else []
        lines.append(line)
    here = {expected_of(question, row.name) for row in set_up.rows}
    shown = first and (set_up.rows or in_paper)
    for name in question.expected if shown else ():
        reported = question.paper(name)
        if name not in here:
            cells = [
                c for d in datasets for c in (missing(), *([_reported(reported, d)] if d in in_paper else []))
            ]
            lines.append([words(f'{name}: no run'), missing(), missing(), *cells])
    papers = [] if first else [f'{d}, paper' for d in in_paper]
    better = {name: 'high' for name in columns[3:] if name not in papers}
    return Table(title, columns, lines, better, note=note, absent=_absent(question))


def _absent(question: Question) -> str:
    return f'no run answers this; `bioptimus sweep --config={question.made_by} --workdir=DIR` makes them.'


def _reported(reported: Sequence[float] | None, dataset: str) -> Cell:
    return fixed(reported[paper.DATASETS.index(dataset)], 2) if reported else missing()


def _size(row: Row, datasets: Sequence[str]) -> list[Cell]:
    seen = [t.words for t in row.models if t.own]
    return [count(sum(seen) / len(seen)) if seen else missing(), _seeds(row, datasets)]


def _seeds(row: Row, datasets: Sequence[str]) -> Cell:
    """Pre-trainings, and fine-tunings of each where there are several: 3, or 1 × 5."""
    counted = [Counter(seed for seed, _ in cells) for d in datasets if (cells := row.cells(d))]
    if not counted:
        return missing()
    of_each = [number for of_set in counted for number in of_set.values()]
    times = f' × {_range(of_each)}' if max(of_each) > 1 else ''
    return Cell(f'{_range(map(len, counted))}{times}', float(max(map(len, counted))))


def _range(numbers: Iterable[int]) -> str:
    known = sorted(numbers)
    return '-'.join(map(str, dict.fromkeys((known[0], known[-1]))))


def _scores_note(
    question: Question, set_up: SetUp, compared: Sequence[Compared], best: Collection[tuple[Row, Row]]
) -> str:
    papers = PAPER if any(map(question.paper, question.expected)) else ''
    if not set_up.rows:
        return f'— : {_absent(question)} {papers}'
    note = (
        'Test F1, percent, mean ± sd over pre-trainings, each the mean of its fine-tunings; of one pre-training over'
        ' its fine-tunings. Seeds: of pre-training; 1 × 5 is one, fine-tuned five times. Epoch and setting chosen on'
        ' devel. Best bold, second underlined. — : no run, or not scored.'
    )
    single = [c for c in compared if c.dataset != MACRO]
    if single:
        shown = {(row.label, reference.label) for row, reference in best}
        references = {c.reference for c in single if (c.row, c.reference) in shown}
        against = references.pop() if len(references) == 1 else 'the row that it is compared with'
        note += (
            f' {AGREED}: differs from {against}, p < .05 by paired randomisation over the test set, corrected for'
            f' {len(single)} comparisons (Holm), and so with every pre-training of several; {DOUBTED}: not so.'
        )
    return f'{note} {papers}'.strip()


def _marks(compared: Sequence[Compared], pairs: Collection[tuple[Row, Row]]) -> dict[tuple[str, str], str]:
    """(row, set) -> mark, of these pairs."""
    shown = {(row.label, reference.label) for row, reference in pairs}
    return {(c.row, c.dataset): c.mark for c in compared if (c.row, c.reference) in shown}


def _apart(letter: str, set_up: SetUp, first: SetUp | None) -> str:
    if first is None:
        return f'Set-up {letter}: the runs of the other set-ups differ in more than the question; see there in what.'
    names = differing(set_up.conditions, first.conditions)
    what = '; '.join(f'{n}: {set_up.conditions[n]}, in A {first.conditions[n]}' for n in names)
    return f'Set-up {letter} must not be compared with set-up A: {what}.'


def _made_from(set_up: SetUp) -> str:
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
        f'{n.replace("ner.", "fine-tuning: ").replace("_", " ")} {set_up.conditions[n]}'
        for n in ('words of phase 1', 'ner.epochs', 'ner.learning_rate')
        if n in set_up.conditions
    ]
    return f'Made from {made}. {"; ".join(settings)}.' if settings else f'Made from {made}.'


def _every_rate(set_up: SetUp, datasets: Sequence[str], chosen: Collection[Row], title: str) -> Table:
    """Devel and test F1 at every learning rate, where there are rows beside the chosen ones."""
    here = [d for d in datasets if d in set_up.datasets]
    lines = [
        [
            words(row.label),
            _seeds(row, here),
            *(spread(row.scores(d, split)) for d in here for split in ('devel', 'test')),
        ]
        for row in set_up.rows
        if len(chosen) < len(set_up.rows)
    ]
    columns = ['model', 'seeds', *(f'{d}, {split}' for d in here for split in ('devel', 'test'))]
    note = (
        'F1 as above. Devel chose the rows above: the highest mean over the sets that all rates of a model have. Test'
        ' has no say, so nothing is ranked here.'
    )
    return Table(f'{title}: learning rates', columns, lines, note=note)


def _differences(
    pairs: Sequence[tuple[Row, Row]], datasets: Sequence[str], compared: Sequence[Compared], title: str
) -> Table:
    """F1 of each row less that of its reference, 95 % interval of the paired bootstrap, corrected p."""
    cells = {(c.row, c.reference, c.dataset): c for c in compared}
    single = tuple(d for d in datasets if any(c.dataset == d for c in compared))
    shown = [d for d in (*datasets, MACRO) if any(c.dataset == d for c in compared)]
    lines = []
    for row, reference in pairs:
        found = [cells.get((row.label, reference.label, d)) for d in shown]
        if any(found):
            lines.append([words(row.label), words(reference.label), *(_difference(c, single) for c in found)])
    note = (
        'F1 of the row less that of the other. Brackets: 95 %, paired bootstrap over the test set, for these'
        ' fine-tuned models; behind them the corrected p, and the difference with each pre-training, which says how'
        ' far other seeds may move it.'
    )
    return Table(f'{title}: differences', ['model', 'less', *shown], lines, note=note)


def _difference(c: Compared | None, datasets: tuple[str, ...]) -> Cell:
    """Of a mean over fewer than all of these sets it says which."""
    if c is None:
        return missing()
    low, high = c.difference.interval
    seeds = ' '.join(f'{100 * d:+.1f}' for d in c.by_seed)
    text = f'{100 * c.difference.observed:+.2f} [{100 * low:+.2f}, {100 * high:+.2f}]'
    over = f'; over {", ".join(c.over)}' if c.over not in ((), datasets) else ''
    return Cell(f'{text} p = {c.p:.3g}; {seeds}{over}', 100 * c.difference.observed)
