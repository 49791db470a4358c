"""The paper's tables from the runs at hand, beside the paper's numbers: scores, differences, losses, geometry."""

import os
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from bioptimus_jax.report import paper
from bioptimus_jax.report.arms import SEED
from bioptimus_jax.report.beside_scores import geometry_of_words, losses
from bioptimus_jax.report.layout import Cell, Table, count, fixed, missing, spread, words
from bioptimus_jax.report.questions import Question, Row, SetUp, pairs_of, set_ups
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
        compared, problems = compare(pairs_of(question, set_up), datasets)
        note = [_scores_note(question, set_up, compared), *problems]
        if several:
            note.append(_apart(letter, set_up, found[0] if number else None))
        note.append(_made_from(set_up))
        scores.append(
            _scores(question, set_up, datasets, compared, title, ' '.join(filter(None, note)), not number)
        )
        beside = [_differences(question, set_up, datasets, compared, title), losses(set_up, title)]
        if question.name in ('orders', 'corruption'):
            beside.append(geometry_of_words(question, set_up, title))
        details += [table for table in beside if table.rows]
    return scores, details


def _scores(
    question: Question,
    set_up: SetUp,
    datasets: Sequence[str],
    compared: Sequence[Compared],
    title: str,
    note: str,
    first: bool,
) -> Table:
    """Test F1, here and in the paper, of every row; rows of the paper that nobody has run are there too."""
    marks = {(c.row, c.dataset): c.mark for c in compared}
    in_paper = [d for d in datasets if d in paper.DATASETS and any(map(question.paper, question.expected))]
    columns = ['model', 'words seen', 'seeds']
    columns += [name for d in datasets for name in ([f'{d}, here', f'{d}, paper'] if d in in_paper else [d])]
    chosen = _chosen(set_up, datasets)
    lines = []
    for row in set_up.rows:
        line = [words(row.label + chosen.get(row.label, '')), *_size(row, datasets)]
        reported = question.paper(row.name)
        for d in datasets:
            cell = spread(row.scores(d))
            mark = marks.get((row.label, d), '')
            line.append(Cell(f'{cell.text} {mark}', cell.value) if mark else cell)
            line += [_reported(reported, d)] if d in in_paper else []
        lines.append(line)
    here = [row.name for row in set_up.rows]
    for name in question.expected if first else ():
        reported = question.paper(name)
        if reported and not any(n == name or n.startswith(f'{name},') for n in here):
            cells = [
                c for d in datasets for c in (missing(), *([_reported(reported, d)] if d in in_paper else []))
            ]
            lines.append([words(f'{name}: no run'), missing(), missing(), *cells])
    better = dict.fromkeys(columns[3:], 'high')
    return Table(title, columns, lines, better, note=note, absent=_absent(question))


def _absent(question: Question) -> str:
    return f'no run answers this; `bioptimus sweep --config={question.made_by}` makes them.'


def _reported(reported: Sequence[float] | None, dataset: str) -> Cell:
    return fixed(reported[paper.DATASETS.index(dataset)], 2) if reported else missing()


def _size(row: Row, datasets: Sequence[str]) -> list[Cell]:
    seen = [t.words for t in row.models if t.own]
    numbers = {len(row.cells(d)) for d in datasets} - {0}
    text = '-'.join(str(n) for n in sorted({min(numbers), max(numbers)})) if numbers else ''
    return [
        count(sum(seen) / len(seen)) if seen else missing(),
        Cell(text, float(max(numbers))) if numbers else missing(),
    ]


def _chosen(set_up: SetUp, datasets: Sequence[str]) -> dict[str, str]:
    """Of rows that differ in the learning rate alone, the one with the highest mean devel F1 over the sets."""
    groups: dict[str, list[Row]] = {}
    for row in set_up.rows:
        groups.setdefault(row.label.partition(', learning rate')[0], []).append(row)
    found = {}
    for group in groups.values():
        means = {}
        for row in group:
            scores = [np.mean(s) for d in datasets if (s := row.scores(d, 'devel'))]
            if scores:
                means[row.label] = float(np.mean(scores))
        if len(means) > 1:
            found[max(means, key=lambda label: means[label])] = ', chosen on devel'
    return found


def _scores_note(question: Question, set_up: SetUp, compared: Sequence[Compared]) -> str:
    if not set_up.rows:
        return f'— : no run. {_absent(question).capitalize()} {PAPER if question.expected else ""}'
    note = (
        'Test F1, percent, mean ± sd over seeds, each with its own pre-training and fine-tuning; epoch and setting'
        ' chosen on devel. Best bold, second underlined. — : no run, or not scored.'
    )
    single = [c for c in compared if c.dataset != MACRO]
    if single:
        references = {c.reference for c in single}
        against = references.pop() if len(references) == 1 else 'the row that it is compared with'
        note += (
            f' {AGREED}: differs from {against}, p < .05 by paired randomisation over the test set, corrected for'
            f' {len(single)} comparisons (Holm), and so with every seed of several; {DOUBTED}: not so.'
        )
    return f'{note} {PAPER}' if any(map(question.paper, question.expected)) else note


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
        arms.setdefault((_shown(folder.parent), name), []).append(seed)
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


def _shown(folder: Path) -> str:
    return os.path.relpath(folder) if folder.resolve().is_relative_to(Path.cwd()) else str(folder)


def _differences(
    question: Question, set_up: SetUp, datasets: Sequence[str], compared: Sequence[Compared], title: str
) -> Table:
    """F1 of each row less that of its reference, 95 % interval of the paired bootstrap, corrected p."""
    cells = {(c.row, c.dataset): c for c in compared}
    shown = [d for d in (*datasets, MACRO) if any(c.dataset == d for c in compared)]
    lines = []
    for row, reference in pairs_of(question, set_up):
        found = [cells.get((row.label, d)) for d in shown]
        if any(found):
            lines.append([words(row.label), words(reference.label), *map(_difference, found)])
    note = (
        'F1 of the row less that of the other. Brackets: 95 %, paired bootstrap over the test set, for these'
        ' fine-tuned models; behind them the corrected p, and the difference with each seed, which says how far other'
        ' seeds may move it.'
    )
    return Table(f'{title}: differences', ['model', 'less', *shown], lines, note=note)


def _difference(c: Compared | None) -> Cell:
    if c is None:
        return missing()
    low, high = c.difference.interval
    seeds = ' '.join(f'{100 * d:+.1f}' for d in c.by_seed)
    text = f'{100 * c.difference.observed:+.2f} [{100 * low:+.2f}, {100 * high:+.2f}]'
    return Cell(f'{text} p = {c.p:.3g}; {seeds}', 100 * c.difference.observed)
