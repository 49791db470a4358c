"""What the adaptation brought: the source against the model that devel chooses, and whether test tells them apart."""

import statistics
from collections.abc import Sequence

from bioptimus_jax.errors import InputError
from bioptimus_jax.finetune.finished import Model
from bioptimus_jax.finetune.verdict import Compared, compared, pairing_of, winner_of
from bioptimus_jax.report.entities import NOT_SCORED
from bioptimus_jax.report.layout import Cell, Table, fixed, missing, spread, words
from bioptimus_jax.report.measures import NO_PHASES, Measures
from bioptimus_jax.report.trained import Trained, cell_folder
from bioptimus_jax.schema import SOURCE

COLUMNS = (
    'set',
    'source',
    'best on devel',
    'its F1',
    'gain',
    '95 % from',
    'to',
    'p',
    'verdict',
    'other items',
    'seeds',
)
VERDICTS = {'B': 'better', 'A': 'worse', '': 'not distinguishable'}


def gain(m: Measures) -> Table:
    """Test F1 of the source and, for every set, of the model of this run that has the highest mean F1 on devel."""
    title = 'From the source to the best model'
    chosen = {d: best for d in m.datasets if m.scores(SOURCE, d) and (best := _best(m, d))}
    if not chosen:
        absent = (
            'the source was not scored; name it in config.finetune.models, as source.'
            if m.trains
            else NO_PHASES
        )
        absent = absent if m.finetuned else NOT_SCORED
        return Table(title, COLUMNS, [], absent=absent)
    pairings, problems = [], []
    for dataset, best in chosen.items():
        try:
            pairings.append(pairing_of(dataset, _model(m, SOURCE, dataset), _model(m, best, dataset)))
        except InputError as error:
            problems.append(f'{dataset} is not tested: {error}.')
    tested = {one.pairing.dataset: one for one in compared(pairings)}
    rows = []
    for dataset, best in chosen.items():
        before, after = m.scores(SOURCE, dataset), m.scores(best, dataset)
        by = Cell(f'{(change := statistics.fmean(after) - statistics.fmean(before)):+.2f}', change)
        names = words(dataset), spread(before), words(m.label(best)), spread(after), by
        rows.append([*names, *(_test(tested[dataset]) if dataset in tested else [missing()] * 6)])
    note = (
        'Test F1, percent, mean ± sd over fine-tunings. The best is chosen on devel for each set, so the source may'
        " well win on test. 95 %, p and verdict are over fine-tunings: Student's paired t, p corrected for"
        f' {len(tested)} sets (Holm), as `bioptimus compare --models` has them. Other items: 95 % of the gain of these'
        ' fine-tuned models on other test items, paired bootstrap. Neither knows of other pre-trainings.'
    )
    if any(len(pair.seeds) == 1 for pair in pairings):
        note += ' With one seed nothing says what another fine-tuning would give.'
    return Table(title, COLUMNS, rows, note=' '.join([note, *problems]))


def headlines(table: Table, most: int) -> list[tuple[str, str]]:
    """`40.24 → 76.86` and what it is, for so many of the table's sets."""
    found = []
    for row in table.rows[:most]:
        dataset, source, best, f1, by, low, high, p, verdict, items, _ = (cell.text for cell in row)
        said = f'{by}, not tested'
        if row[7].value is not None:
            said = f'{verdict}, {by} [{low}, {high}], p = {p}'
        elif row[-1].value:
            said = f'{by}, one seed; on other test items {items}'
        found.append((f'{_mean(source)} → {_mean(f1)}', f'test F1 on {dataset}, source to {best}: {said}'))
    return found


def _best(m: Measures, dataset: str) -> str:
    """The model of this run with the highest mean F1 on devel, the first of equals; '' where none was scored."""
    devel = {x: statistics.fmean(s) for x in m.on_the_way if (s := m.scores(x, dataset, 'devel'))}
    return max(devel, key=lambda x: devel[x], default='')


def _model(m: Measures, model: str, dataset: str) -> Model:
    """Its cells on one set, under the setting that devel chooses."""
    records = {r['seed']: {**r, 'history': m.history(r)} for r in m.cells(model, dataset)}
    cells = {seed: cell_folder(Trained(m, model), record) for seed, record in records.items()}
    return Model(model, model, m.chosen(model, dataset), {dataset: cells}, {dataset: records})


def _test(one: Compared) -> Sequence[Cell]:
    effect, seeds = one.effect, len(one.pairing.seeds)
    low, high = (f'{100 * end:+.2f}' for end in one.items.interval)
    items, many = words(f'[{low}, {high}]'), Cell(f'{seeds}', float(seeds))
    if effect.half is None or effect.p is None:
        return [missing(), missing(), missing(), words('one seed'), items, many]
    ends = (effect.observed - effect.half, effect.observed + effect.half)
    digits = 3 if effect.p >= 0.001 else 4
    return [
        *(Cell(f'{end:+.2f}', end) for end in ends),
        fixed(effect.p, digits),
        words(VERDICTS[winner_of(effect)]),
        items,
        many,
    ]


def _mean(spread_text: str) -> str:
    return spread_text.partition(' ')[0]
