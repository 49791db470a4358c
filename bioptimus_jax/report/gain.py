"""What the adaptation brought: the source against the last phase; what was predicted elsewhere against the best model.

The first screen of the page has one rule, `before_and_after`. The table of gains has, for every set, the model of the
run that devel chooses, which may be an earlier phase.
"""

import dataclasses
import math
import shlex
import statistics
from collections.abc import Callable, Mapping, Sequence

from bioptimus_jax.errors import InputError
from bioptimus_jax.finetuning.differing import differences
from bioptimus_jax.finetuning.finished import BY_DEVEL, OUTSIDE, SCORES, FinishedModel, read_cell, read_model
from bioptimus_jax.finetuning.task import score_of
from bioptimus_jax.finetuning.verdict import (
    ModelComparison,
    compare_both,
    compared,
    on_items,
    paired_set,
    verdict,
    winner_of,
)
from bioptimus_jax.records.finetune import FineTuning
from bioptimus_jax.report.cells import cell_folder
from bioptimus_jax.report.layout import Cell, Column, Table, count, each, fixed, missing, spread
from bioptimus_jax.report.measures import NO_PHASES, NOT_SCORED, PHASE_INITIAL, Measures, score_names
from bioptimus_jax.scoring.comparison import Comparison
from bioptimus_jax.scoring.student import NO_RESIDUAL, ONE_SEED, OTHER_SEEDS, bracketed
from bioptimus_jax.storage.files import shown_path

VERDICTS = {'B': 'better', 'A': 'worse', '': 'not distinguishable'}
UNKNOWN = 'not known yet'
MODELS = 'beside the phases in config.finetune.models'
SOURCE_UNSCORED = f'the source was not scored; name source {MODELS}.'
NEITHER_SCORED = f'neither the source nor step 0 was scored; name source or initial {MODELS}.'
INITIAL_UNSCORED = f'step 0 was not scored; name initial {MODELS}.'
NO_SOURCE = 'this run begins without a source.'
UNTESTED = {
    ONE_SEED: 'Only one seed: another fine-tuning might change this.',
    NO_RESIDUAL: 'Every seed gives the same difference, so it is not tested over fine-tunings.',
    OTHER_SEEDS: 'No seed has all sets, so it is not tested over fine-tunings.',
}
NOTHING_LEARNED = 'nothing is learned'


@dataclasses.dataclass(frozen=True)
class Verdict:
    """What the adaptation brought, in a word and in a sentence, and the command that prints the same numbers.

    `worse`: the sets on which the last phase is worse than the source.
    """

    word: str
    sentence: str
    command: str = ''
    worse: tuple[str, ...] = ()


def before_and_after(m: Measures, dataset: str = '') -> tuple[str, str]:
    """The source, or step 0 where it was not scored, and the last phase that was, on a set or any; '' for none."""
    scored = [x for x in m.models if any(m.scores(x, d) for d in ([dataset] if dataset else m.datasets))]
    first = next((x for x in (m.source, PHASE_INITIAL) if x in scored), '')
    return first, next((x for x in reversed(m.phases) if x in scored), '')


def overall(m: Measures) -> Verdict | None:
    """The last phase against the source, the mean over all sets, as `bioptimus compare --models` has it.

    None of a run that trains nothing. Without the source it is against step 0, and says so.
    """
    if not m.trains:
        return None
    first, last = before_and_after(m)
    if not (first and last):
        return Verdict(UNKNOWN, f'What adaptation brought is {UNKNOWN}: {_lacking(m, last)}')
    named = {m.source: 'the source', PHASE_INITIAL: 'step 0'}[first]
    lacks_source = first != m.source and _has_source(m)
    more = f' {SOURCE_UNSCORED[0].upper()}{SOURCE_UNSCORED[1:]}' if lacks_source else ''
    try:
        before, after = (_on_all_sets(m, x) for x in (first, last))
        both = compare_both(before, after)
    except InputError as error:
        return Verdict(UNKNOWN, f'{last} against {named} is not tested: {error}.{more}')
    effect, items = both.overall.over_trainings, both.overall.on_items
    said, word = verdict(both.overall, both.label, named, last), VERDICTS[winner_of(effect)]
    of = f'mean over {both.sets}' if len(both.found) > 1 else both.of_sets[0].pairing.dataset
    if effect.p is None:
        moves = 'rises' if items and items.observed > 0 else 'changes'
        said, of = (
            f'from {named} to {last} the test score {moves} by {on_items(both.label, both.overall)}',
            f'95 % interval over test items; {of}',
        )
        learned = any(m.task(d).learns for d in m.datasets)
        word = ONE_SEED if learned and effect.untested == ONE_SEED else 'not tested'
        why = (
            UNTESTED[effect.untested]
            if learned
            else 'Nothing is learned of a set, so every seed says the same.'
        )
        more = f' {why}{more}'
    sentence = f'{said[0].upper()}{said[1:]} ({of}).{_by_set(both)}{more}'
    sentence = ' '.join([*differences(before, after, names=(named, last)), sentence])
    folders = [_finished(m, x) for x in (first, last)]
    command = shlex.join(['bioptimus', 'compare', '--models', *folders]) if all(folders) else ''
    return Verdict(word, sentence, command, _worse(both) if first == m.source else ())


def _worse(both: ModelComparison) -> tuple[str, ...]:
    """The sets on which B is worse than A: over fine-tunings, or over test items where that is all that is tested."""
    tested = {
        of_set.pairing.dataset: one.on_items if one.over_trainings.p is None else one.over_trainings
        for one, of_set in zip(both.found, both.of_sets, strict=True)
    }
    return tuple(dataset for dataset, effect in tested.items() if effect and winner_of(effect) == 'A')


def _lacking(m: Measures, last: str) -> str:
    """What has to be scored before the adaptation can be judged; `last`: the last phase that was scored, or ''."""
    if not m.datasets:
        return NOT_SCORED
    if not last:
        return 'no phase was scored.'
    return NEITHER_SCORED if _has_source(m) else INITIAL_UNSCORED


def _has_source(m: Measures) -> bool:
    """Whether the run begins with the weights of another model."""
    return m.run.config.surgery.initialisation.source


def _by_set(both: ModelComparison) -> str:
    """The difference on every set, where there are several."""
    if len(both.of_sets) < 2:
        return ''
    said = []
    for one, of_set in zip(both.found, both.of_sets, strict=True):
        effect = one.over_trainings
        word = 'not tested' if effect.p is None else VERDICTS[winner_of(effect)]
        said.append(f'{of_set.pairing.dataset} {effect.observed:+.2f} ({word})')
    return f' By set: {", ".join(said)}.'


def _finished(m: Measures, model: str) -> str:
    """Words on its folder, with what devel chooses where there are several settings; '' where these were chosen over
    other models too, or devel chooses none, and they differ.
    """
    sets = [d for d in m.datasets if m.settings(model, d)]
    setting, several = '', any(len(m.settings(model, d)) > 1 for d in sets)
    if several:
        chosen = {m.chosen(model, d) for d in sets}
        tuned_on = m.run.config.finetune.tuned_on
        if not tuned_on and all(m.scores(model, d, 'devel') for d in sets):
            setting = f':{BY_DEVEL}'
        elif len(chosen) > 1:
            return ''
        else:
            setting = f':{chosen.pop()}'
    return f'{shown_path(m.run.stage_folder("finetune") / model)}{setting}'


def _on_all_sets(m: Measures, model: str) -> FinishedModel:
    """A model's cells on every set, each under the setting that the page has chosen."""
    of_sets = [fine_tuned(m, model, d) for d in m.datasets if m.cells(model, d)]
    settings = {one.setting for one in of_sets}
    return FinishedModel(
        shown_path(m.run.stage_folder('finetune') / model),
        model,
        settings.pop() if len(settings) == 1 else BY_DEVEL,
        {d: cells for one in of_sets for d, cells in one.cells.items()},
        {d: records for one in of_sets for d, records in one.records.items()},
    )


def gain(m: Measures) -> Table:
    """Test F1 of the source and, for every set, of the model of this run that has the highest mean F1 on devel."""
    best = {d: best_on_devel(m, d, m.on_the_way) for d in m.datasets if m.scores(m.source, d)}
    return _gains(m, {d: model for d, model in best.items() if model})


def _gains(m: Measures, chosen: Mapping[str, str]) -> Table:
    """A row for every set: the source, and the model of this run that is chosen for it."""
    sides: dict[tuple[str, ...], tuple[FinishedModel, FinishedModel]] = {
        (d,): (fine_tuned(m, m.source, d), fine_tuned(m, best, d)) for d, best in chosen.items()
    }
    tested, problems = _tested(sides)
    differ = [
        line.replace(':', f' on {d}:', 1)
        for (d,), both in sides.items()
        for line in differences(*both, names=('source', m.label(chosen[d])))
    ]

    def gained(dataset: str) -> Cell:
        before, after = (statistics.fmean(m.scores(x, dataset)) for x in (m.source, chosen[dataset]))
        return _signed(after - before)

    columns = [
        Column('set', lambda dataset: dataset),
        Column('source', lambda dataset: spread(m.scores(m.source, dataset))),
        Column('best on devel', lambda dataset: m.label(chosen[dataset])),
        Column(f'its {score_names(m)}', lambda dataset: spread(m.scores(chosen[dataset], dataset))),
        Column('gain', gained),
        *_verdicts(m, tested),
    ]
    note = (
        f'Test {score_names(m)}, percent, mean ± sd over fine-tunings.'
        ' The best is chosen on devel for each set, so the source may'
        " well win on test. 95 %, p and verdict are over fine-tunings: Student's paired t, p corrected for"
        f' {len(tested)} sets (Holm), as `bioptimus compare --models` has them. Other items: 95 % of the gain of these'
        ' fine-tuned models on other test items, paired bootstrap. Neither accounts for other pre-trainings.'
    )
    if last := [d for d, best in chosen.items() if not m.scores(best, d, 'devel')]:
        note += f' Devel chooses nothing on {", ".join(last)}: there it is the last model.'
    if any(one.over_trainings.untested for one in tested.values()):
        note += (
            ' With one seed, or where every seed gives the same difference, nothing says what another fine-tuning'
            ' would give: it is not tested. A set of which nothing is learned has one score with every seed.'
        )
    unscored = SOURCE_UNSCORED if _has_source(m) else NO_SOURCE
    if any(m.scores(m.source, d) for d in m.datasets):
        unscored = 'no model of this run was scored beside the source.'
    absent = (unscored if m.trains else NO_PHASES) if m.finetuned else NOT_SCORED
    title = 'From the source to the best model'
    return Table.of(title, columns, chosen, note=' '.join([*differ, note, *problems]), absent=absent)


def headlines(m: Measures, best: Table, most: int) -> list[tuple[str, str]]:
    """`40.24 → 76.86` and what it is, for so many sets: the source and the last phase, as the verdict has them.

    `best`: what `gain` has, which is the same where devel chooses the last phase of every set.
    """
    last = {
        d: after for d in m.datasets if (ends := before_and_after(m, d))[0] == m.source and (after := ends[1])
    }
    shown = {d: m.label(model) for d, model in last.items()}
    table = best if {row[0].text: row[2].text for row in best.rows} == shown else _gains(m, last)
    found = []
    for row in table.rows[:most]:
        # The cells of `gain`, which end with those of OF_A_TEST.
        dataset, source, model, score, by, low, high, p, verdict, items, _ = (cell.text for cell in row)
        said = f'{by}, not tested'
        if row[7].value is not None:
            said = f'{verdict}, {by} [{low}, {high}], p = {p}'
        elif row[-1].value:
            said = f'{by}, not tested ({verdict}); on other test items {items}'
        means = [text.partition(' ')[0] for text in (source, score)]
        label = m.task(dataset).metric.label
        found.append((' → '.join(means), f'test {label} on {dataset}, source to {model}: {said}'))
    return found


def others(m: Measures) -> Table:
    """Predictions that were made elsewhere, in OUTSIDE of the run, beside its best model on devel."""
    folders = sorted(p for p in (m.run.workdir / OUTSIDE).glob('*') if p.is_dir())
    models = {folder.name: read_model(str(folder)) for folder in folders}
    rows = [(d, name) for d in m.datasets for name, model in models.items() if d in model.cells]
    best = {d: best_on_devel(m, d, m.models) for d, _ in rows}
    tested, problems = _tested({(d, name): (models[name], fine_tuned(m, best[d], d)) for d, name in rows})

    def score(dataset: str, name: str) -> Cell:
        of_name = models[name].records[dataset].values()
        return spread([100 * score_of(record, 'test') for record in of_name])

    columns = [
        Column('set', lambda dataset, name: dataset),
        Column('made elsewhere by', lambda dataset, name: name),
        Column('measure', lambda dataset, name: m.task(dataset).metric.title),
        Column('test', score),
        Column('best of this run on devel', lambda dataset, name: m.label(best[dataset])),
        Column('its test', lambda dataset, name: spread(m.scores(best[dataset], dataset))),
        *_verdicts(m, tested),
    ]
    note = (
        'Test, percent, by the scorer of this run on the same test items (`bioptimus score`). 95 %, p and verdict: the'
        " best model of this run less the other, Student's paired t over its seeds, p corrected for"
        f' {len(tested)} rows (Holm); predictions without a seed are paired with every seed. Other items: paired'
        ' bootstrap.'
    )
    absent = (
        f'none; `bioptimus score GOLD PREDICTIONS --to=RUN/{OUTSIDE} --name=NAME` puts some beside this run.'
    )
    return Table.of(
        'Predictions made elsewhere', columns, rows, note=' '.join([note, *problems]), absent=absent
    )


def best_on_devel(m: Measures, dataset: str, among: Sequence[str]) -> str:
    """The model with the highest mean score on devel, the first of equals; '' where none was scored.

    Where devel chooses none, as of sets that nothing is learned of, it is the last one that was scored.
    """
    devel = {x: statistics.fmean(s) for x in among if (s := m.scores(x, dataset, 'devel'))}
    last = next((x for x in reversed(among) if m.scores(x, dataset)), '')
    return max(devel, key=lambda x: devel[x], default=last)


def _tested(
    sides: Mapping[tuple[str, ...], tuple[FinishedModel, FinishedModel]],
) -> tuple[dict[tuple[str, ...], Comparison], list[str]]:
    """The test of every row, a set first, that can be tested, corrected for their number; why others cannot."""
    pairings, problems = {}, []
    for row, (first, second) in sides.items():
        try:
            pairing = paired_set(row[0], first, second).pairing
            pairings[row] = dataclasses.replace(pairing, dataset=', '.join(row))
        except InputError as error:
            problems.append(f'{", ".join(row)} is not tested: {error}.')
    return dict(zip(pairings, compared(list(pairings.values())), strict=True)), problems


def _verdicts(m: Measures, tested: Mapping[tuple[str, ...], Comparison]) -> list[Column]:
    """Columns of the second side less the first, by rows."""

    def cell(title: str, *row: str) -> Cell | str:
        if row not in tested:
            return missing()
        if title == VERDICT and not m.task(row[0]).learns:
            return NOTHING_LEARNED
        return OF_A_TEST[title](tested[row])

    return each({title: title for title in OF_A_TEST}, cell)


def fine_tuned(m: Measures, model: str, dataset: str) -> FinishedModel:
    """A model's cells on one set, under the setting that devel chooses."""
    records = {r.seed: r for r in m.cells(model, dataset)}
    cells = {seed: cell_folder(m, record) for seed, record in records.items()}
    for seed, cell in cells.items():
        whole = read_cell(cell / SCORES) if (cell / SCORES).is_file() else None
        if isinstance(whole, FineTuning):  # the results of a stage lack what cells were trained with
            records[seed] = dataclasses.replace(
                records[seed], settings=whole.settings, train_sentences=whole.train_sentences
            )
    return FinishedModel(model, model, m.chosen(model, dataset), {dataset: cells}, {dataset: records})


def _signed(value: float) -> Cell:
    return missing() if math.isnan(value) else Cell(f'{value:+.2f}', value)


def _p(one: Comparison) -> Cell:
    p = one.over_trainings.holm
    return fixed(p, 3 if p is None or p >= 0.001 else 4)


def _verdict(one: Comparison) -> str:
    return one.over_trainings.untested or VERDICTS[winner_of(one.over_trainings)]


def _items(one: Comparison) -> str:
    assert one.on_items is not None  # pairings are of predictions
    return bracketed(*one.on_items.ends, '+.2f')


VERDICT = 'verdict'
OF_A_TEST: Mapping[str, Callable[[Comparison], Cell | str]] = {
    '95 % from': lambda one: _signed(one.over_trainings.low),
    'to': lambda one: _signed(one.over_trainings.high),
    'p': _p,
    VERDICT: _verdict,
    'other items': _items,
    'seeds': lambda one: count(len(one.by_seed)),
}
"""What a row says of its test, by the titles of columns."""
