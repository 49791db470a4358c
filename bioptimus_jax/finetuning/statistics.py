"""What the fine-tunings of one model on one set say: the best setting, which ones failed, means over seeds."""

import statistics
from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any

from bioptimus_jax.finetuning.task import score_of, task_of
from bioptimus_jax.records.finetune import FineTuning, ScoredCell
from bioptimus_jax.records.statistics import OverSeeds
from bioptimus_jax.scoring.resampling import TIE

FAILED_SHARE_OF_PEERS = 0.5


def best_settings(scores: Iterable[tuple[Hashable, str, float]]) -> dict[Any, str]:
    """Set -> setting with the highest mean, among equals the first, from (set, setting, score on devel)."""
    found: dict[Hashable, dict[str, list[float]]] = {}
    for of_set, setting, score in scores:
        found.setdefault(of_set, {}).setdefault(setting, []).append(score)
    return {one: max(tried, key=lambda name: statistics.fmean(tried[name])) for one, tried in found.items()}


def failure(record: FineTuning, peers: Sequence[float]) -> str:
    """Why a fine-tuning failed, in words, or ''; `peers` are the devel scores of the other seeds.

    Mosbach et al. (2021) call a run failed that is no better than the majority baseline: the best that one answer for
    everything gets on devel, which of entities is 0, and of numbers no correlation. Two rules: this one, and that the
    devel score is below half of its peers' median. Losses have no say: one that hardly falls may have begun low.
    """
    if not record.history:  # nothing was trained
        return ''
    score, same = score_of(record, 'devel'), record.devel_alike
    said = f'devel {task_of(record).metric.label} {100 * score:.2f} is'
    if score <= same + TIE:
        return f'{said} no better than one answer for everything, {100 * same:.2f}'
    if peers and score < FAILED_SHARE_OF_PEERS * (middle := statistics.median(peers)):
        return f'{said} below half of the median of its peers, {100 * middle:.2f}'
    return ''


def failures(cells: Mapping[int, ScoredCell]) -> dict[int, str]:
    """Seed -> reason, for the failed ones among the records of one model, set and setting that were trained here."""
    records = {seed: record for seed, record in cells.items() if isinstance(record, FineTuning)}
    scores = {seed: score_of(record, 'devel') for seed, record in records.items()}
    found = {
        seed: failure(record, [value for other, value in scores.items() if other != seed])
        for seed, record in records.items()
    }
    return {seed: reason for seed, reason in found.items() if reason}


def summary(values: Mapping[int, float], failed: Sequence[int] = ()) -> OverSeeds:
    """The mean and its like of one value a seed, with the failed seeds and without them."""
    left = [value for seed, value in values.items() if seed not in failed]
    mean, sd = _mean_and_sd(list(values.values()))
    mean_left, sd_left = _mean_and_sd(left)
    return OverSeeds(
        seeds=len(values),
        failed=len(values) - len(left),
        mean=mean,
        median=statistics.median(values.values()) if values else None,
        sd=sd,
        mean_without_failed=mean_left,
        sd_without_failed=sd_left,
    )


def _mean_and_sd(values: Sequence[float]) -> tuple[float | None, float | None]:
    return (
        statistics.fmean(values) if values else None,
        statistics.stdev(values) if len(values) > 1 else None,
    )
