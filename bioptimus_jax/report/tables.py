"""The tables of a run: phases, entity F1, the paper's numbers, comparison of runs."""

import functools
import itertools
from collections.abc import Sequence

from bioptimus_jax.progress import clock
from bioptimus_jax.report import documents, inside, paper, surgery, vocabulary
from bioptimus_jax.report.layout import NOT_RUN, Cell, Table, count, fixed, missing, percent, spread, words
from bioptimus_jax.report.measures import LABELS, PHASE_INITIAL, Measures, read_measures
from bioptimus_jax.run import Run


def phase_table(run: Run) -> Table:
    """Phases against steps, tokens, held-out loss (frozen mask and every setting) and test F1 per dataset."""
    return phases(read_measures(run))


def comparison_table(runs: Sequence[Run]) -> Table:
    """Runs that differ in one thing (say, the initialisation) against the measures that may be compared.

    Rows are ranked within a phase. Per-token losses are left out: they compare only arms with one vocabulary.
    """
    arms = {_arm_name(run, runs): read_measures(run) for run in runs}
    every = list(arms.values())
    datasets = list(dict.fromkeys(d for m in every for d in m.datasets))
    models = list(dict.fromkeys(name for m in every for name in (PHASE_INITIAL, *m.phases)))
    columns = ['model', 'arm', 'nats / word', 'bits / character', 'words right', 'nats / one-piece word']
    columns += ['one-piece words right', *(f'F1 {d}' for d in datasets)]
    rows = []
    for model in models:
        for name, m in arms.items():
            scores = [spread(m.scores(model, d)) for d in datasets]
            rows.append(
                [words(LABELS.get(model, model)), words(name), *inside.cloze_cells(m, model), *scores]
            )
    better = dict.fromkeys(columns[2:], 'high') | {c: 'low' for c in columns if 'nats' in c or 'bits' in c}
    masks = {r['mask'] for m in every for r in m.cloze if 'mask' in r}
    note = 'Held-out words hidden whole. Best bold, second underlined, within a phase. — : not run.'
    if len(masks) > 1:
        note += (
            ' The arms did not score the same words: give them the same corpus and'
            ' config.analysis.reference_vocab before you compare the columns of words.'
        )
    return Table('Initialisations compared', columns, rows, better, rank_within='model', note=note)


def phases(m: Measures) -> Table:
    settings = list(dict.fromkeys(name for e in m.evaluations for name in e.get('losses', {})))
    datasets = m.datasets
    columns = ['phase', 'steps', 'tokens', 'held-out loss', 'accuracy', *(f'loss {s}' for s in settings)]
    columns += [f'F1 {d}' for d in datasets]
    rows = []
    planned = (PHASE_INITIAL, *m.phases)
    for model in m.models:
        if model not in planned and not any(m.scores(model, d) for d in datasets):
            continue  # known from other tables only
        record = m.phase_end(model) or {}
        losses = [fixed(record.get('losses', {}).get(s)) for s in settings]
        cells = [count(record.get('step')), count(record.get('tokens')), fixed(record.get('frozen_loss'))]
        rows.append(
            [words(LABELS.get(model, model)), *cells, percent(record.get('frozen_accuracy')), *losses]
            + [spread(m.scores(model, d)) for d in datasets]
        )
    better = {c: 'low' for c in columns if 'loss' in c} | {
        c: 'high' for c in columns if c.startswith(('F1', 'acc'))
    }
    note = 'Held-out loss: one frozen mask, nats per [MASK]ed piece.'
    note += ' Loss 0.1 …: masked as in that phase, [MASK]ed positions only.' if settings else ''
    note += ' F1: test, percent, mean ± sd over seeds.' if datasets else ' F1: stage ner has not been run.'
    return Table('Phases', columns, rows, better, note=note + ' — : not run.')


def entities(m: Measures) -> Table:
    """Every model on every dataset: precision, recall, F1 in three modes, and what was scored."""
    columns = [
        'dataset',
        'model',
        'precision',
        'recall',
        'F1',
        'strict F1',
        'relaxed F1',
        'devel F1',
        'seeds',
    ]
    columns += ['mentions scored', 'training time']
    rows = []
    several = any(len(m.settings(model, d)) > 1 for model in m.models for d in m.datasets)
    for dataset, model in itertools.product(m.datasets, m.models):
        for setting in m.settings(model, dataset) or ['']:
            cells = m.cells(model, dataset, setting)
            score = functools.partial(m.scores, model, dataset, setting=setting)
            modes = [spread(score(mode=mode)) for mode in ('default', 'strict', 'relaxed')]
            detail = [spread(score(what=w)) for w in ('precision', 'recall')]
            seconds = sum(r.get('seconds', 0) for r in cells)
            mark = ', chosen' if several and setting == m.chosen(model, dataset) else ''
            rows.append(
                [
                    words(dataset),
                    words(LABELS.get(model, model)),
                    *([words(f'{setting or NOT_RUN}{mark}')] if several else []),
                    *detail,
                    *modes,
                    spread(score('devel')),
                    count(len(cells)) if cells else missing(),
                    _scored(cells),
                    Cell(clock(seconds), seconds) if cells else missing(),
                ]
            )
    if several:
        columns.insert(2, 'setting')
    better = dict.fromkeys(columns[-9:-3], 'high')
    note = (
        'Test, percent, mean ± sd over seeds; epoch chosen on devel. F1 is default mode of seqeval,'
        ' strict needs exact IOB2,'
        ' relaxed counts an overlap of the same type. Chosen: the setting with the highest mean on devel, which other'
        ' tables show. Mentions scored / in the file. — : not run.'
    )
    absent = 'stage ner has not been run.'
    return Table('Entity recognition', columns, rows, better, rank_within='dataset', note=note, absent=absent)


def beside_paper(m: Measures) -> Table:
    """Test F1 of this run beside the paper's, for the five sets that the paper names."""
    strategy = m.run.config.surgery.strategy
    datasets = [d for d in paper.DATASETS if d in m.datasets]
    columns = ['model', *(f'{d}{who}' for d in datasets for who in (', here', ', paper'))]
    rows = []
    for model in m.models if datasets else ():
        pairs = [(spread(m.scores(model, d)), fixed(paper.reported(strategy, model, d), 2)) for d in datasets]
        rows.append(
            [words(f'{LABELS.get(model, model)}, {strategy}'), *(cell for pair in pairs for cell in pair)]
        )
    for name, scores in paper.RIVALS.items() if datasets else ():
        pairs = [(missing(), fixed(scores[paper.DATASETS.index(d)], 2)) for d in datasets]
        rows.append([words(name), *(cell for pair in pairs for cell in pair)])
    note = (
        'Paper: arXiv 2308.08625, Tables 2, 5 and 6; 12 layers, 1.8 billion words, seeds not stated. Best and'
        ' second per column. — : not run here, or not in the paper.'
    )
    absent = (
        'none of the sets scored here is one of the five in the paper.'
        if m.datasets
        else 'stage ner has not been run.'
    )
    better = dict.fromkeys(columns[1:], 'high')
    return Table('Beside the paper', columns, rows, better, note=note, absent=absent)


def all_tables(m: Measures) -> dict[str, Table]:
    """Every table of the page by its short name, in the order of the page."""
    return {
        'phases': phases(m),
        'entities': entities(m),
        'paper': beside_paper(m),
        'cloze': inside.cloze(m),
        'documents': documents.documents(m),
        'leaks': documents.leaks(m),
        'leaked_sentences': documents.leaked_sentences(m),
        'frequency': vocabulary.frequency(m),
        'frequency_cross': vocabulary.frequency_cross(m),
        'pieces': vocabulary.pieces(m),
        'whole_entities': vocabulary.whole_entities(m),
        'surgery': surgery.surgery_examples(m),
        'contexts': surgery.contexts(m),
        'probe': surgery.probe(m),
        'geometry': inside.geometry(m),
        'stages': inside.summary(m),
    }


def _arm_name(run: Run, runs: Sequence[Run]) -> str:
    strategy = _strategy(run)
    alone = sum(_strategy(other) == strategy for other in runs) == 1
    return strategy if alone else f'{run.workdir.name} ({strategy})'


def _strategy(run: Run) -> str:
    """What the run itself was made with: `compare` reads all arms under one configuration."""
    made_with = (run.manifest('surgery') or {}).get('config', {})
    return made_with.get('surgery.strategy', run.config.surgery.strategy)


def _scored(cells: list[dict]) -> Cell:
    if not cells:
        return missing()
    return Cell(f'{cells[0]["gold_scored"]:,} / {cells[0]["gold_in_file"]:,}', float(cells[0]['gold_scored']))
