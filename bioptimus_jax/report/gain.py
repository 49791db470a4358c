"""What the adaptation brought: the source against the model that devel chooses, and whether test tells them apart."""

import math
import statistics
from collections.abc import Callable

from bioptimus_jax.errors import InputError
from bioptimus_jax.finetune.finished import Model
from bioptimus_jax.finetune.verdict import Compared, compared, pairing_of, winner_of
from bioptimus_jax.report.layout import Cell, Column, Table, count, fixed, missing, spread
from bioptimus_jax.report.measures import NO_PHASES, NOT_SCORED, Measures, score_names
from bioptimus_jax.report.trained import Trained, cell_folder
from bioptimus_jax.schema import SOURCE

VERDICTS = {'B': 'better', 'A': 'worse', '': 'not distinguishable'}


def gain(m: Measures) -> Table:
    """Test F1 of the source and, for every set, of the model of this run that has the highest mean F1 on devel."""
    chosen = {d: best for d in m.datasets if m.scores(SOURCE, d) and (best := _best(m, d))}
    pairings, problems = [], []
    for dataset, best in chosen.items():
        try:
            pairings.append(pairing_of(dataset, _model(m, SOURCE, dataset), _model(m, best, dataset)))
        except InputError as error:
            problems.append(f'{dataset} is not tested: {error}.')
    tested = {one.pairing.dataset: one for one in compared(pairings)} if pairings else {}

    def of_test(cell: Callable[[Compared], Cell | str]) -> Callable[[str], Cell | str]:
        return lambda dataset: cell(tested[dataset]) if dataset in tested else missing()

    columns = [
        Column('set', lambda dataset: dataset),
        Column('source', lambda dataset: spread(m.scores(SOURCE, dataset))),
        Column('best on devel', lambda dataset: m.label(chosen[dataset])),
        Column(f'its {score_names(m)}', lambda dataset: spread(m.scores(chosen[dataset], dataset))),
        Column(
            'gain',
            lambda dataset: _signed(
                statistics.fmean(m.scores(chosen[dataset], dataset))
                - statistics.fmean(m.scores(SOURCE, dataset))
            ),
        ),
        Column('95 % from', of_test(lambda one: _signed(one.effect.ends[0]))),
        Column('to', of_test(lambda one: _signed(one.effect.ends[1]))),
        Column(
            'p', of_test(lambda x: fixed(x.effect.p, 3 if x.effect.p is None or x.effect.p >= 0.001 else 4))
        ),
        Column(
            'verdict',
            of_test(lambda one: 'one seed' if one.effect.p is None else VERDICTS[winner_of(one.effect)]),
        ),
        Column('other items', of_test(_items)),
        Column('seeds', of_test(lambda one: count(len(one.pairing.seeds)))),
    ]
    note = (
        f'Test {score_names(m)}, percent, mean ± sd over fine-tunings.'
        ' The best is chosen on devel for each set, so the source may'
        " well win on test. 95 %, p and verdict are over fine-tunings: Student's paired t, p corrected for"
        f' {len(tested)} sets (Holm), as `bioptimus compare --models` has them. Other items: 95 % of the gain of these'
        ' fine-tuned models on other test items, paired bootstrap. Neither knows of other pre-trainings.'
    )
    if any(len(pair.seeds) == 1 for pair in pairings):
        note += ' With one seed nothing says what another fine-tuning would give.'
    unscored = 'the source was not scored; name it in config.finetune.models, as source.'
    absent = (unscored if m.trains else NO_PHASES) if m.finetuned else NOT_SCORED
    title = 'From the source to the best model'
    return Table.of(title, columns, chosen, note=' '.join([note, *problems]), absent=absent)


def headlines(m: Measures, table: Table, most: int) -> list[tuple[str, str]]:
    """`40.24 → 76.86` and what it is, for so many of the table's sets."""
    found = []
    for row in table.rows[:most]:
        dataset, source, best, score, by, low, high, p, verdict, items, _ = (cell.text for cell in row)
        said = f'{by}, not tested'
        if row[7].value is not None:
            said = f'{verdict}, {by} [{low}, {high}], p = {p}'
        elif row[-1].value:
            said = f'{by}, one seed; on other test items {items}'
        means = [text.partition(' ')[0] for text in (source, score)]
        label = m.task(dataset).metric.label
        found.append((' → '.join(means), f'test {label} on {dataset}, source to {best}: {said}'))
    return found


def _best(m: Measures, dataset: str) -> str:
    """The model of this run with the highest mean F1 on devel, the first of equals; '' where none was scored."""
    devel = {x: statistics.fmean(s) for x in m.on_the_way if (s := m.scores(x, dataset, 'devel'))}
    return max(devel, key=lambda x: devel[x], default='')


def _model(m: Measures, model: str, dataset: str) -> Model:
    """Its cells on one set, under the setting that devel chooses."""
    records = {r['seed']: {'history': [], **r} for r in m.cells(model, dataset)}
    cells = {seed: cell_folder(Trained(m, model), record) for seed, record in records.items()}
    return Model(model, model, m.chosen(model, dataset), {dataset: cells}, {dataset: records})


def _signed(value: float) -> Cell:
    return missing() if math.isnan(value) else Cell(f'{value:+.2f}', value)


def _items(one: Compared) -> str:
    low, high = (f'{100 * end:+.2f}' for end in one.items.interval)
    return f'[{low}, {high}]'
