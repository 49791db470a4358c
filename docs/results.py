"""Makes the tables of the pages in lab/ from the records in results/ alone: `python docs/results.py`.

Everything below TABLES in a page is replaced; the text above is written by hand.
"""

import dataclasses
import functools
import os
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from bioptimus_jax.experiment.schema import Experiment
from bioptimus_jax.lab import arms, comparison, last_models, paper_tables
from bioptimus_jax.lab.forecast.check import as_one_group
from bioptimus_jax.lab.forecast.curves import curves_of
from bioptimus_jax.lab.forecast.final import Forecast, forecast
from bioptimus_jax.lab.forecast.short import Shorts, shorts
from bioptimus_jax.lab.forecast.tables import checks
from bioptimus_jax.lab.questions import QUESTIONS
from bioptimus_jax.lab.sections import blurb, difficulty, papers, probe
from bioptimus_jax.lab.sections.followed import followed
from bioptimus_jax.lab.trained import trained_models
from bioptimus_jax.lab.ways import Way, ways_table
from bioptimus_jax.records.statistics import ArmVote
from bioptimus_jax.report.layout import NOT_RUN, Column, Table, each, fixed, spread
from bioptimus_jax.report.measures import Measures, read_measures, scored_sets
from bioptimus_jax.report.records import named
from bioptimus_jax.report.resolved import read_runs
from bioptimus_jax.report.sections import entities, phases, training
from bioptimus_jax.report.sections.efficiency import Effort, effort_at
from bioptimus_jax.run.folder import Run
from bioptimus_jax.storage.files import read_json

DOCS = Path(__file__).resolve().parent
LAB = DOCS / 'lab'
TABLES = '## The tables\n'
TABLE2, ORDERS = 'docs/results/table2.jsonl', 'docs/results/orders.jsonl'
CONTROLS, DEALT = 'docs/results/controls.jsonl', 'docs/results/dealt.jsonl'
OF_TABLE2 = (  # records, what a title adds; the table of effort is made of the first
    ((TABLE2, ORDERS), ''),
    ((CONTROLS, DEALT), ' (a second source: mapped and centred rows, and the controls)'),
)
LOSSES = (6.5,)
"""Held-out losses: the table of effort shows what each arm took to reach them."""
FAMILIES = 'docs/results/families.jsonl'
FIRST_STEPS = (  # records, what the title says about them, the arm that the others are compared with
    ('docs/results/curves.jsonl', 'small source', 'random_rows'),
    ('docs/results/curves-minilm.jsonl', 'MiniLM as source, one seed', 'random_rows'),
    ('docs/results/curves-spelled.jsonl', 'MiniLM as source, rows from spelling', 'mapped_centred'),
)
OBJECTIVES = (  # records, the arm that the others are compared with, what the title says
    ('docs/results/nsp.jsonl', 'single', 'Next sentence prediction'),
    ('docs/results/detour.jsonl', 'masked', 'A causal detour'),
    ('docs/results/distil.jsonl', 'longer', 'Distillation'),
)
CONTENT = ('docs/results/content.jsonl', 'random', 'Texts by content')
"""Records, the arm that the others are compared with, what the title says."""
FINE_TUNED = (  # records of fine-tuning alone, what the title says
    ('docs/results/entities.jsonl', 'the small source, five sets'),
    ('docs/results/stability.jsonl', 'stability techniques on 500 sentences'),
)
SCHEDULES = 'docs/results/forecast.jsonl'
MASKING = 'docs/results/masking'
# Records, a file an arm; the arms that the others are compared with; what the title says.
FITTED = ('docs/results/fitted', ('averaged_input', 'spelled'), 'From a fitted source')
WIDE = ('docs/results/wide', ('averaged_input', 'copy'), 'From a source of four layers')
MASKED = (MASKING, ('words_20',), 'Masking')
PACED = ('docs/results/pace', ('given',), 'Pace')
LONGER = {
    'docs/results/longer.jsonl': 'Four times the words',
    'docs/results/longest.jsonl': 'Twelve times the words',
}
"""Records of two arms of the fitted source with more words, and what the title says."""
LONGER_CONTROL = 'copy'
REFIT, REFIT_CONTROL = 'docs/results/refit.jsonl', 'spelled'
VOTES = '{}-votes.jsonl'
"""What the trainings of each arm say together."""
REFINED = 'docs/results/frozen.jsonl'
"""Of the third seed of MASKING three fine-tunings of each last model, and of all models of some arms, with frozen
states of 5,000 sentences."""
SHORT_OF_SCHEDULES = 'docs/results/forecast-short.jsonl'
SHORT = {
    SCHEDULES: [
        'docs/results/forecast-short-5.jsonl',
        SHORT_OF_SCHEDULES,
        'docs/results/forecast-short-20.jsonl',
    ],
    MASKING: [f'docs/results/masking-short{length}.jsonl' for length in ('-5', '')],
}
"""Runs through the same schedules on 5, 10 and 20 % of the words."""
FRESH_SHORT, FRESH = 'docs/results/fresh-short.jsonl', 'docs/results/fresh.jsonl'
"""Short runs of schedules of other kinds, and the long ones, which were forecast before they were trained."""
MORE_SHORT, MORE = 'docs/results/more-short.jsonl', 'docs/results/more'
"""The same of these kinds at other learning rates and of one more kind; records, a file an order."""
NEW_KIND = 'detour'
"""The order among these that no schedule before them resembles."""
SHARES = (0.05, 0.1, 0.2, 0.5)
"""Of the steps, after which the end is told."""
ELECTRA = 'docs/results/electra.jsonl'
THIRTEEN = (  # records of BLURB's sets, what the title says
    ('docs/results/blurb.jsonl', 'in small'),
    ('docs/results/blurb-minilm.jsonl', 'with MiniLM, fewer texts'),
)
FLAGSHIP = 'docs/results/flagship.jsonl'
"""MiniLM before and after: the sets of BLURB, three seeds of fine-tuning."""
VECTORS = 'docs/results/vectors.json'
"""The same two models, and both trained for vectors: titles that find their abstracts, and BIOSSES."""
PRACTICE = 'docs/results/practice.jsonl'
"""MiniLM itself, fine-tuned in other ways, and adapted to other words."""
WAYS = {  # arm of PRACTICE, setting -> what the row is called
    ('fine-tuned', 'longer'): 'twice the epochs',
    ('fine-tuned', 'lora'): 'an adapter of rank 16',
    ('words_220k', 'standard'): 'abstracts, 0.22 million words',
    ('words_880k', 'standard'): 'abstracts, 0.88 million words',
    ('task_880k', 'standard'): "the tasks' own texts, 0.88 million words",
}
WAYS_ON = ('ncbi-disease', 'bc5-chem')
PROBED = (  # the rows that are shown; the probe has more
    'contextualized layers=() shrinkage=1.0 map=spelled',
    'contextualized layers=() map=spelled scale=centred',
    'contextualized map=spelled',
    'spelled',
    'spelled scale=centred',
    'focus',
    'focus scale=centred',
    'omp',
    'omp scale=centred',
    'contextualized layers=() shrinkage=1.0 map=respelled',
    'contextualized layers=() shrinkage=1.0 map=respelled scale=centred',
    'contextualized map=respelled',
    'contextualized map=linear',
    'contextualized layers=()',
    'contextualized',
    'contextualized max_contexts=1',
    'contextualized pooling=last',
    'similarity',
    'averaged_input scale=centred',
    'averaged_input',
    'averaged_last',
    'random_rows',
    'mean_resizing',
    'gaussian',
)
MEASURED = (  # folders with probe.json and difficulty.json, laid out like run folders; what the title says
    ('docs/results', 'MiniLM'),
    ('docs/results/small-source', 'the small source'),
    ('docs/results/wide-source', 'four layers of 256'),
)


def flagship() -> Iterator[Table]:
    """A real model before and after."""
    [run] = on_record([FLAGSHIP])
    of_blurb = papers.table(papers.TABLES['pubmedbert-6'], {'': run})
    yield from (blurb.less_source(run), entities.scores(run), blurb.blurb(run), of_blurb, phases.phases(run))
    yield vectors()


def vectors() -> Table:
    """Means of states before and after, as `benchmarks/vectors.py` measures them."""
    columns = [
        Column('model', lambda found: found['model']),
        Column(
            'titles that find their abstract first', lambda found: fixed(100 * found['recall'], 2), 'high'
        ),
        Column('nDCG@10', lambda found: fixed(100 * found['ndcg'], 2), 'high'),
        Column('r on BIOSSES', lambda found: fixed(found['pearson'], 3), 'high'),
        Column('mean cosine of its sentences', lambda found: fixed(found['cosine'], 3)),
    ]
    records: Any = read_json(Path(VECTORS))
    note = (
        f'Means of states. {records[0]["titles"]} held-out titles among as many abstracts, which no run had read, '
        'percent; the 100 pairs of BIOSSES. Trained for vectors: 100 steps of 64 rows, titles find their abstracts. '
        'One seed.'
    )
    return Table.of('Vectors of texts', columns, [(found,) for found in records], note=note)


def practice() -> Iterator[Table]:
    """What a practitioner may do with the same hours."""
    [flagship_run] = on_record([FLAGSHIP])
    runs = {name.partition(arms.SEED)[0]: run for name, run in named(on_record([PRACTICE])).items()}
    others = [
        Way(name, runs[arm], runs[arm].source if arm == 'fine-tuned' else 'words', setting)
        for (arm, setting), name in WAYS.items()
    ]
    default = Way('MiniLM by default', flagship_run, flagship_run.source)
    longest = Way('abstracts, 2.7 million words', flagship_run, 'words')
    yield ways_table([default, *others, longest], WAYS_ON)
    yield dataclasses.replace(
        entities.scores(runs['fine-tuned']), title='MiniLM itself, fine-tuned in other ways'
    )


def source() -> Iterator[Table]:
    """Which source to begin with."""
    families = arms.scores(arms.grouped(named(on_record([FAMILIES]))))
    yield dataclasses.replace(families, title='Three families adapted alike')
    yield from last(*WIDE)


def initialisation() -> Iterator[Table]:
    """How the rows of new tokens begin."""
    for number, (files, of_which) in enumerate(OF_TABLE2):
        yield from of_paper('table2', files, of_which)
        if not number:
            yield comparison.effort(trained_models(on_record(files)), LOSSES)
    for file, title, control in FIRST_STEPS:
        compared = arms.grouped(named(on_record([file])))
        found = [arms.scores(compared), arms.against(compared, control), arms.held_out(compared, control)]
        yield from under(f'First steps ({title})', found)
    yield from last(*FITTED)
    compared = arms.grouped(named(on_record([REFIT])))
    told = (make(compared, REFIT_CONTROL) for make in (arms.ends, arms.held_out, arms.new_tokens))
    yield from under('Fitted rows', told)
    for folder, of_source in MEASURED:
        probed = probe.probe(measured(folder))
        shown = [row for row in probed.rows if row[0].text in PROBED]
        yield dataclasses.replace(probed, title=f'{probed.title}: {of_source}', rows=shown)


def vocabulary() -> Iterator[Table]:
    """The source's vocabulary beside a new one, with more and more words."""
    for file, title in LONGER.items():
        compared = arms.grouped(named(on_record([file])))
        differences = (f(compared, LONGER_CONTROL) for f in (arms.ends, last_models.less_control))
        told = arms.scores(compared), last_models.last_models(compared), *differences
        yield from under(title, told)


def masking() -> Iterator[Table]:
    """Which pieces are hidden, how many, and what stands in their place."""
    yield from of_paper('table3', [ORDERS])
    yield from last(*MASKED)
    for folder, _ in MEASURED:
        yield difficulty.difficulty(measured(folder))


def curriculum() -> Iterator[Table]:
    """The order of the phases, and when they end."""
    for name in ('table5', 'table7', 'orders'):
        yield from of_paper(name, [ORDERS])
    yield from last(*PACED)


def objectives() -> Iterator[Table]:
    """Objectives beside masked language modelling."""
    for file, control, title in OBJECTIVES:
        compared = arms.grouped(named(on_record([file])))
        yield from under(title, (arms.scores(compared), arms.ends(compared, control)))
        for arm, seeds in compared.items():
            recorded = f'{title}: what the objective of {arm} records, first seed'
            first = training.objective(next(iter(seeds.values())))
            yield dataclasses.replace(first, title=recorded)
    [electra] = on_record([ELECTRA])
    yield dataclasses.replace(training.objective(electra), title='ELECTRA: signs of a healthy run')


def content() -> Iterator[Table]:
    """As many words of other texts."""
    file, control, title = CONTENT
    compared = arms.grouped(named(on_record([file])))
    on_one_piece = arms.against(compared, control, 'one_piece.nats_per_word')
    told = arms.scores(compared), arms.ends(compared, control), last_models.less_control(compared, control)
    yield from under(title, (*told, on_one_piece))


def forecasts() -> Iterator[Table]:
    """The ends of trainings, told from their beginnings and from short runs."""
    schedules = named(on_record([SCHEDULES]))
    finished = curves_of(schedules)  # all of them have ended
    short = [shorts(schedules, finished, named(on_record([file]))) for file in SHORT[SCHEDULES]]
    checked = checks([*finished.values()], SHARES, short)
    fresh = named(on_record([FRESH]))
    every = schedules | fresh | named(on_record(sorted(Path(MORE).glob('*.jsonl'))))
    of_every = curves_of(every)
    short_runs = named(on_record([SHORT_OF_SCHEDULES, FRESH_SHORT, MORE_SHORT]))
    short_of_every = shorts(every, of_every, short_runs)
    told = (
        foretold(short_of_every, schedules, fresh, 'Schedules of other kinds'),
        foretold(short_of_every, schedules | fresh, every, 'More schedules'),
    )
    yield from under('Forecasts', (ended(schedules), *checked, *told))
    checked = checks([*of_every.values()], (0.1,), [short_of_every])
    yield from under(f'Forecasts, all {len(every)} schedules', checked[1:])
    runs = all_in(MASKING)  # these differ in what a forecast looks at
    finished = curves_of(runs)
    short = [shorts(runs, finished, named(on_record([file]))) for file in SHORT[MASKING]]
    yield from under('Masking', [checks([*finished.values()], SHARES, short)[1]])


def scores_of_entities() -> Iterator[Table]:
    """Fine-tuning on entities, and F1 from frozen states beside it."""
    for file, title in FINE_TUNED:
        [run] = on_record([file])
        yield dataclasses.replace(entities.scores(run), title=f'Fine-tuning: {title}')
    yield from under('Forecasts', [followed(arms.grouped(named(on_record([SCHEDULES]))))])
    runs = all_in(MASKING)
    yield from under('Masking', (followed(arms.grouped(runs)), *refined(runs)))


def texts() -> Iterator[Table]:
    """All thirteen sets of BLURB."""
    for file, title in THIRTEEN:
        [thirteen] = on_record([file])
        yield from under(f'All of BLURB {title}', (entities.scores(thirteen), blurb.blurb(thirteen)))


PAGES: dict[str, Callable[[], Iterator[Table]]] = {
    'flagship': flagship,
    'practice': practice,
    'source': source,
    'vocabulary': vocabulary,
    'initialisation': initialisation,
    'masking': masking,
    'curriculum': curriculum,
    'content': content,
    'objectives': objectives,
    'forecasts': forecasts,
    'entities': scores_of_entities,
    'texts': texts,
}
"""Page of lab/ -> what makes its tables, in the order of the page."""


def of_paper(name: str, files: Sequence[str], of_which: str = '') -> Iterator[Table]:
    """The tables that answer one of the paper's questions from records; what is added to their titles."""
    [question] = (question for question in QUESTIONS if question.name == name)
    scores, details = paper_tables.tables(question, trained_models(on_record(files)))
    for table in (*map(_of_sets_here, scores), *details):
        yield dataclasses.replace(table, title=f'{table.title}{of_which}')


def last(folder: str, controls: Sequence[str], title: str) -> list[Table]:
    """The last models of a folder of records, their scores, and what they differ by from the controls."""
    compared = arms.grouped(all_in(folder))
    told = (
        last_models.last_models(compared, ArmVote.read_lines(Path(VOTES.format(folder)))),
        last_models.less_control(compared, controls[0]),
        *(make(compared, arm) for arm in controls for make in (arms.ends, arms.held_out)),
    )
    return under(title, told)


def on_record(files: Iterable[str | Path]) -> list[Measures]:
    """The runs on record in these files."""
    return [run for file in files for run in _of_file(file)]


@functools.cache
def _of_file(file: str | Path) -> list[Measures]:
    return read_runs([file])


@functools.cache
def all_in(folder: str) -> dict[str, Measures]:
    """The runs of a folder with a file of records for each arm."""
    return named(on_record(sorted(Path(folder).glob('*.jsonl'))))


def measured(folder: str) -> Measures:
    """What lies in a folder that is laid out like that of a run."""
    return read_measures(Run(folder, Experiment(), quiet=True))


def under(title: str, tables: Iterable[Table]) -> list[Table]:
    """These tables, each with this before its title."""
    return [dataclasses.replace(table, title=f'{title}: {table.title}') for table in tables]


def refined(once: Mapping[str, Measures]) -> Iterator[Table]:
    """How frozen states follow three fine-tunings, and how those of the runs that were tuned `once` do: one mean of the
    layers, 1,000 sentences."""
    read = named(on_record([REFINED]))
    one_mean = {name: dataclasses.replace(m, frozen=once[name].frozen) for name, m in read.items()}
    for runs, how in ((read, ''), (one_mean, ', one mean of 1,000 sentences')):
        last = {name: only_last(m) for name, m in runs.items()}
        phases = {name: m for name, m in runs.items() if len(tuned(m)) > 1}
        for of, which in ((last, 'last models'), (phases, f'step 0 and the phases of {len(phases)} arms')):
            yield from under(f'three fine-tunings, {which}{how}', [followed(arms.grouped(of))])


def tuned(m: Measures) -> set[str]:
    """The models that were fine-tuned."""
    return {r.model for r in m.finetuned}


def only_last(m: Measures) -> Measures:
    """The fine-tunings of the last phase alone."""
    return dataclasses.replace(m, finetuned=[r for r in m.finetuned if r.model == m.phases[-1]])


def ended(runs: Mapping[str, Measures]) -> Table:
    """The last model of each run: held-out loss, hidden words, F1 after fine-tuning and from frozen states."""
    last = [(name, m, m.phases[-1]) for name, m in runs.items()]
    scored = scored_sets(runs.values())
    columns = [
        Column('run', lambda name, m, x: name),
        Column('held-out loss', lambda name, m, x: fixed((end := m.phase_end(x)) and end.frozen_loss), 'low'),
        Column(
            'nats / word',
            lambda name, m, x: fixed((words := m.hidden_words_of(x)) and words.nats_per_word),
            'low',
        ),
        *each(scored, lambda d, name, m, x: spread(m.scores(x, d)), 'high'),
        *each({d: f'frozen {d}' for d in scored}, lambda d, name, m, x: fixed(m.frozen_f1(x, d), 2), 'high'),
    ]
    spent = {name: effort_at(m, m.step_of(x) or 0) for name, m, x in last}
    columns += costs(lambda name, m, x: spent[name])
    note = (
        'F1 after fine-tuning on 1,500 sentences, one seed; frozen: from frozen states of 1,000 training sentences. '
        'Hours of one core, beside other work, surgery included.'
    )
    return Table.of('The ends of 25 schedules', columns, last, note=note)


def costs(spent: Callable[..., Effort]) -> list[Column]:
    """What a row's run took."""
    return [
        Column('TFLOP', lambda *row: fixed((spent(*row).flops or 0) / 1e12, 1)),
        Column('hours', lambda *row: fixed((spent(*row).seconds or 0) / 3600, 2)),
    ]


def foretold(found: Shorts, finished: Collection[str], later: Mapping[str, Measures], which: str) -> Table:
    """Those of the `later` schedules that were forecast from short runs of those `finished`, before they were trained,
    and their ends."""
    known = [one for one in found.known if one.name in finished]
    told = [forecast(one, known) for one in found.known if one.name in later and one.name not in finished]
    told.sort(key=lambda f: f.final)
    columns = [
        Column('run', lambda f: f.curve.name),
        Column('short run', lambda f: fixed(float(f.curve.losses_N[-1])), 'low'),
        Column('told', lambda f: fixed(f.final), 'low'),
        Column('low', lambda f: fixed(f.final - f.half)),
        Column('high', lambda f: fixed(f.final + f.half)),
        Column('at the end', lambda f: fixed(f.curve.final), 'low'),
        *costs(lambda f: effort_at(later[f.curve.name], found.steps)),
    ]
    note = f'From short runs of {found.share:.0%} of the steps, by {len(known)} schedules. {_judged(told, found.share)}'
    of_known_kinds = [f for f in told if not f.curve.name.startswith(NEW_KIND)]
    if len(of_known_kinds) < len(told):
        note += f' Without {NEW_KIND}: {_judged(of_known_kinds, found.share)}'
    return Table.of(f'{which}, forecast before they were trained', columns, told, note=note)


def _judged(told: Sequence[Forecast], share: float) -> str:
    of_all = as_one_group(told, share)
    return (
        f'Error {of_all.error:.2%}, within 1 % {of_all.within:.0%}, in the interval {of_all.inside:.0%}, '
        f"Kendall's tau {of_all.tau:.2f}; the arm told lowest ends {of_all.lost:.3f} nats a word above the lowest."
    )


def renewed(page: str, made: Iterable[Table]) -> str:
    """A page with these tables below its text, but for those without rows: some records have no evaluations."""
    written, _, _ = page.partition(TABLES)
    return f'{written}{TABLES}\n' + '\n'.join(table.markdown() for table in made if table.rows)


def _of_sets_here(table: Table) -> Table:
    """Without the columns of sets that no run was scored on."""
    texts = dict(
        zip(table.columns, zip(*([c.text for c in row] for row in table.rows), strict=True), strict=True)
    )
    unscored = {name.removesuffix(', here') for name, column in texts.items() if set(column) == {NOT_RUN}}
    kept = [i for i, name in enumerate(table.columns) if name.partition(',')[0] not in unscored]
    columns = [table.columns[i] for i in kept]
    better = {name: way for name, way in table.better.items() if name in columns}
    return dataclasses.replace(
        table, columns=columns, rows=[[row[i] for i in kept] for row in table.rows], better=better
    )


if __name__ == '__main__':
    os.chdir(DOCS.parent)  # paths are shown as seen from here
    for name, make in PAGES.items():
        page = LAB / f'{name}.md'
        page.write_text(renewed(page.read_text('utf-8'), make()), 'utf-8')
