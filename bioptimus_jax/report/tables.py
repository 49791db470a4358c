"""The tables of a run: phases, comparison of runs, and the list of all tables."""

from collections.abc import Sequence

from bioptimus_jax.report import (
    difficulty,
    documents,
    efficiency,
    entities,
    gain,
    geometry,
    inside,
    sets,
    slices,
    surgery,
    vocabulary,
)
from bioptimus_jax.report.layout import Table, count, fixed, percent, spread, words
from bioptimus_jax.report.measures import LABELS, NO_PHASES, PHASE_INITIAL, Measures, read_measures
from bioptimus_jax.run import Run
from bioptimus_jax.schema import SOURCE


def phase_table(run: Run) -> Table:
    """Phases against steps, tokens, held-out loss (frozen mask and every setting) and test F1 per dataset."""
    return phases(read_measures(run))


def comparison_table(runs: Sequence[Run]) -> Table:
    """Runs that differ in one thing (say, the initialisation) against the measures that may be compared.

    Rows are ranked within a phase. Per-token losses are left out: they compare only arms with one vocabulary.
    """
    arms = {_arm_name(run, runs): read_measures(run) for run in runs}
    every = list(arms.values())
    labels = {d: m.task(d).metric.label for m in every for d in m.datasets}
    datasets = list(labels)
    models = list(dict.fromkeys(name for m in every for name in (PHASE_INITIAL, *m.phases)))
    columns = ['model', 'arm', 'nats / word', 'bits / character', 'words right', 'nats / one-piece word']
    columns += ['one-piece words right', *(f'{labels[d]} {d}' for d in datasets)]
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
    note += ''.join(f' {name}: {m.gaps}' for name, m in arms.items() if m.gaps)
    return Table('Initialisations compared', columns, rows, better, rank_within='model', note=note)


def effort_table(runs: Sequence[Run]) -> Table:
    """What each of the runs took to reach what all of them reach."""
    return efficiency.arms({_arm_name(run, runs): [read_measures(run)] for run in runs})


def phases(m: Measures) -> Table:
    """A row for every phase: steps, tokens, held-out losses (nats a piece), accuracy, F1 of each set."""
    settings = list(dict.fromkeys(name for e in m.evaluations for name in e.get('losses', {})))
    datasets = m.datasets
    columns = ['phase', 'steps', 'tokens', 'held-out loss', 'accuracy', *(f'loss {s}' for s in settings)]
    scored = [f'{m.task(d).metric.label} {d}' for d in datasets]
    columns += scored
    rows = []
    planned = (PHASE_INITIAL, *m.phases)
    for model in m.models if m.trains else ():
        if model not in planned and not any(m.scores(model, d) for d in datasets):
            continue  # known from other tables only
        record = m.phase_end(model) or {}
        losses = [fixed(record.get('losses', {}).get(s)) for s in settings]
        cells = [count(m.step_of(model)), count(record.get('tokens')), fixed(record.get('frozen_loss'))]
        rows.append(
            [words(m.label(model)), *cells, percent(record.get('frozen_accuracy')), *losses]
            + [spread(m.scores(model, d)) for d in datasets]
        )
    better = {c: 'low' for c in columns if 'loss' in c} | {
        c: 'high' for c in columns if c in scored or c == 'accuracy'
    }
    note = 'Held-out loss: one frozen mask, nats per [MASK]ed piece.'
    note += ' Loss 0.1 …: masked as in that phase, [MASK]ed positions only.' if settings else ''
    note += (
        ' F1: test, percent, mean ± sd over seeds.' if datasets else ' F1: stage finetune has not been run.'
    )
    if any(row[0].text == LABELS[SOURCE] for row in rows):
        note += ' The source has another vocabulary, so its losses do not compare.'
    return Table('Phases', columns, rows, better, note=note + ' — : not run.', absent=NO_PHASES)


def all_tables(m: Measures) -> dict[str, Table]:
    """Every table of the page by its short name, in the order of the page."""
    return {
        'gain': gain.gain(m),
        'phases': phases(m),
        'entities': entities.scores(m),
        'other_tasks': entities.others(m),
        'types': entities.by_type(m),
        'paper': entities.beside_paper(m),
        **{f'recall_{slicing}': slices.table(m, slicing) for slicing in slices.TITLES},
        'sets': sets.counted(m),
        'sets_in_pieces': sets.in_pieces(m),
        'difficulty': difficulty.difficulty(m),
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
        'geometry': geometry.rows(m),
        'geometry_words': geometry.of_words(m),
        'geometry_changes': geometry.changes(m),
        'efficiency': efficiency.efficiency(m),
        'to_reach': efficiency.to_reach(m),
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
