"""The last model of every arm: losses under every mask, hidden words, scores of one training, of a vote, on other sets.

A vote is what the trainings of an arm say together. It needs their predictions, which a record of a run does not have,
so votes have records of their own.
"""

import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from bioptimus_jax.errors import InputError
from bioptimus_jax.finetuning.predictions import Predicted
from bioptimus_jax.finetuning.summary import ensemble_of
from bioptimus_jax.lab.arms import Arms, other_words
from bioptimus_jax.lab.trained import loss_measured_by, losses_under
from bioptimus_jax.progress.console import numbered
from bioptimus_jax.records.statistics import ArmVote
from bioptimus_jax.report.cells import cell_folder
from bioptimus_jax.report.layout import Cell, Column, Table, each, fixed, missing, spread, tested
from bioptimus_jax.report.measures import Measures, score_names, scored_sets
from bioptimus_jax.report.sections.efficiency import effort_at
from bioptimus_jax.scoring.comparison import Contrast, compare
from bioptimus_jax.storage.files import digest

VOTES = 'votes.jsonl'
MILLION, TERA = 1e6, 1e12


def votes(arms: Arms) -> list[ArmVote]:
    """What the trainings of an arm say together of a test set, a record for each arm and set with several of them.

    All fine-tunings of the last models vote, under the setting that devel chooses. An arm has no record for a set
    that one of its runs has no predictions for, or has with another text or gold standard.
    """
    found = []
    for arm, seeds in arms.items():
        runs = [m for m in seeds.values() if m.phases]
        for dataset in scored_sets(runs):
            try:
                of_runs = [_predictions(m, dataset) for m in runs]
            except InputError:
                continue
            given = [predictions for of_run in of_runs for predictions in of_run]
            asked = {digest([[e.words, e.gold] for e in predictions]) for predictions in given}
            if len(runs) > 1 and all(of_runs) and len(asked) == 1:
                voted = ensemble_of(runs[0].task(dataset), given)
                found.append(ArmVote(arm=arm, dataset=dataset, **vars(voted)))
    return found


def last_models(arms: Arms, votes: Iterable[ArmVote] = ()) -> Table:
    """One row for every arm, its trainings together; `votes`: the records of these arms."""
    trained = {arm: own for arm, seeds in arms.items() if (own := [m for m in seeds.values() if _ended(m)])}
    runs = [m for own in trained.values() for m in own]
    voted = {(r.arm, r.dataset): r for r in votes}
    masks = dict.fromkeys(name for m in runs for name in losses_under(m, m.phases[-1]))
    pairs = {
        (r.trained_on, r.dataset): f'{r.trained_on} on {r.dataset}'
        for m in runs
        for r in m.crossed
        if r.model == m.phases[-1]
    }
    sets = scored_sets(runs)

    def of_runs(value: Callable[[Measures], float | None], decimals: int, arm: str) -> Cell:
        return spread([x for m in trained[arm] if (x := value(m)) is not None], decimals)

    def vote(dataset: str, arm: str) -> Cell:
        if (arm, dataset) not in voted:
            return missing()
        r = voted[arm, dataset]
        metric = trained[arm][0].task(dataset).metric.name
        return fixed(100 * r.test['default'][metric], 2)

    # Otherwise they do not compare.
    by_piece = 'low' if len(set(map(loss_measured_by, runs))) < 2 else ''
    by_word = '' if other_words(m.hidden_words_of(m.phases[-1]) for m in runs) else 'low'
    columns = [
        Column('arm', lambda arm: arm),
        Column('held-out loss', lambda arm: of_runs(_frozen_loss, 3, arm), by_piece),
        *each({n: n for n in masks}, lambda n, arm: of_runs(lambda m: _loss_under(m, n), 3, arm), by_piece),
        Column('nats / hidden word', lambda arm: of_runs(_nats, 3, arm), by_word),
        *each(sets, lambda d, arm: of_runs(lambda m: _score(m, d), 2, arm), 'high'),
        *each({d: f'vote {d}' for d in sets}, vote, 'high', when=bool(voted)),
        *each(pairs, lambda pair, arm: of_runs(lambda m: _elsewhere(m, pair), 2, arm), 'high'),
        Column('predicted pieces, million', lambda arm: of_runs(_predicted, 2, arm)),
        Column('TFLOP', lambda arm: of_runs(_teraflops, 2, arm)),
        Column('trainings', lambda arm: Cell(str(len(trained[arm])), len(trained[arm]))),
    ]
    note = (
        'After the last phase, mean ± sd over trainings. Losses: nats a piece on held-out documents, under the frozen'
        ' mask and under each setting at [MASK] alone; they compare arms with one vocabulary, and are ranked where the'
        ' documents and masks are the same.'
        f' {score_names(*runs)}: test, percent. Vote: what the trainings of the arm say together. A on B: trained on A,'
        ' tested on B. Predicted pieces: of pre-training. TFLOP: of pre-training and of reading contexts in surgery.'
    )
    if any(m.spent and m.spent[-1].predicted is None for m in runs):
        note += (
            ' Where predicted pieces were not counted, it is a share of all tokens, some per cent too many.'
        )
    return Table.of(
        'The last models', columns, trained, note=note, absent='no arm has come to the end of a phase.'
    )


def less_control(arms: Arms, control: str) -> Table:
    """Scores of the last models less those of the control, tested over trainings: the mean of the sets, and each."""
    ended = {arm: {s: m for s, m in seeds.items() if _ended(m)} for arm, seeds in arms.items()}
    sets = tuple(scored_sets(m for seeds in ended.values() for m in seeds.values()))
    scores = {d: {arm: _by_seed(seeds, d) for arm, seeds in ended.items()} for d in sets}
    families = [sets] * (len(sets) > 1) + [(name,) for name in sets]
    asked = [Contrast(arm, control, family) for family in families for arm in ended if arm != control]
    found = {(c.model, c.name): c.over_trainings for c in compare(scores, asked)}

    def less(name: str, arm: str) -> Cell:
        effect = found.get((arm, name))
        if effect is None:
            return missing()
        why = f' ({effect.untested})' if effect.untested else ''
        return Cell(f'{tested(effect)}{why}', effect.observed)

    names = dict.fromkeys(one.name for one in asked)
    rows = list(dict.fromkeys(arm for arm, _ in found))
    columns = [Column('arm', lambda arm: arm), *each({n: n for n in names}, less)]
    note = (
        "Test scores, percent, [95 %]: arms and seeds in two ways, Student's t with the residual; p corrected after"
        f' Holm for {numbered(len(rows), "arm")}, on single sets for all of them together. Test items are taken as they'
        ' are.'
    )
    absent = f'{control} has not been scored beside another arm.'
    return Table.of(f'The last models: scores less {control}', columns, rows, note=note, absent=absent)


def _ended(m: Measures) -> bool:
    return bool(m.phases) and m.phase_end(m.phases[-1]) is not None


def _predictions(m: Measures, dataset: str) -> list[Sequence[Predicted]]:
    """Predictions of the last model, one for each seed of fine-tuning. Raises InputError where a file is missing."""
    return [m.task(dataset).written(cell_folder(m, cell)) for cell in m.cells(m.phases[-1], dataset)]


def _frozen_loss(m: Measures) -> float | None:
    end = m.phase_end(m.phases[-1])
    return end.frozen_loss if end else None


def _loss_under(m: Measures, setting: str) -> float | None:
    return losses_under(m, m.phases[-1]).get(setting)


def _nats(m: Measures) -> float | None:
    hidden = m.hidden_words_of(m.phases[-1])
    return hidden.nats_per_word if hidden else None


def _score(m: Measures, dataset: str) -> float | None:
    found = m.scores(m.phases[-1], dataset) if dataset in m.datasets else []
    return statistics.fmean(found) if found else None


def _elsewhere(m: Measures, pair: tuple[str, str]) -> float | None:
    """The score on a set of the model that was fine-tuned on another."""
    for r in m.crossed:
        own = r.model == m.phases[-1] and r.setting == m.chosen(r.model, r.trained_on)
        if own and (r.trained_on, r.dataset) == pair:
            return 100 * r.test
    return None


def _predicted(m: Measures) -> float | None:
    """Pieces that were predicted in pre-training, in millions.

    Where they were not counted: of the tokens of each stretch between two records the share at the later one, special
    tokens among them.
    """
    if m.spent and m.spent[-1].predicted is not None:
        return m.spent[-1].predicted / MILLION
    rates = [r.realised_rate for r in m.spent if r.realised_rate is not None]
    if not rates or len(rates) < len(m.spent):
        return None
    before = [0, *(r.tokens for r in m.spent)]
    return sum((r.tokens - b) * rate for b, r, rate in zip(before, m.spent, rates)) / MILLION


def _teraflops(m: Measures) -> float | None:
    step = m.step_of(m.phases[-1])
    spent = None if step is None else effort_at(m, step).flops
    return None if spent is None else spent / TERA


def _by_seed(seeds: Mapping[Any, Measures], dataset: str) -> dict[tuple[Any], float]:
    """The score on a set by the seed of training."""
    return {(seed,): score for seed, m in seeds.items() if (score := _score(m, dataset)) is not None}
