"""Short runs in place of first steps: each arm through its whole schedule, on a small share of its steps.

The first steps of a long run have a learning rate that the end does not have. A short run has seen the rate fall and
all settings of its arm, so short runs tell the ends better than first steps do. Their own order does not: the best rate
of a short run is lower (docs/lab/forecasts.md).
"""

import dataclasses
import math
from collections.abc import Mapping

from bioptimus_jax.errors import InputError
from bioptimus_jax.lab.forecast.curves import Curve, curves_of
from bioptimus_jax.report.measures import Measures
from bioptimus_jax.storage.files import JsonObject

ALIKE = 0.1
"""Shares of the steps that differ by less, relative to each other, are the same: steps are whole numbers."""
SECTIONS = ('seed', *'vocab surgery model rows pretrain objective phases phase curriculum evaluation'.split())
FREE = ('duration', 'duration_unit', 'per_phase', 'settings', 'snapshots_per_phase')
"""A short run has these sections in common with its long one, but for these keys of phases and of the evaluation."""


@dataclasses.dataclass(frozen=True)
class Shorts:
    """Short runs: `known` have the end of their long run, `candidates` have none yet; `steps` of a long run."""

    known: list[Curve]
    candidates: list[Curve]
    steps: int

    @property
    def share(self) -> float:
        """The share of a long run's steps that a short one has."""
        return len(self.known[0].rates_T) / self.steps


def shorts(long: Mapping[str, Measures], whole: Mapping[str, Curve], short: Mapping[str, Measures]) -> Shorts:
    """Finished short runs, by the names of their long ones; `whole`: the curves of long runs that are finished.

    Raises InputError where no name is in both, for a short run that differs in more than FREE keys,
    and where the shares of the steps differ from run to run.
    """
    ended = {name: one for name, one in curves_of(short).items() if one.finished}
    both = [name for name in ended if name in whole]
    if not both:
        raise InputError(
            f'no finished run has a finished short run of its name (short: {", ".join(ended) or "none"}); sweep the '
            'same arms with fewer words'
        )
    shares = {name: len(ended[name].rates_T) / len(whole[name].rates_T) for name in both}
    for name in both:
        if wrong := _difference(_settings(short[name]), _settings(long[name])):
            raise InputError(
                f'{name}: its short run has {wrong}; only the duration of phases and the number of evaluations may '
                'differ'
            )
        if not math.isclose(shares[name], shares[both[0]], rel_tol=ALIKE) or shares[name] >= 1:
            raise InputError(
                f'{name}: its short run has {shares[name]:.1%} of the steps of the long one, that of {both[0]} '
                f'{shares[both[0]]:.1%}; give all of them the same share, below 100 %'
            )
    known = [dataclasses.replace(ended[name], end=whole[name].final) for name in both]
    return Shorts(known, [ended[name] for name in ended if name not in both], len(whole[both[0]].rates_T))


def _settings(m: Measures) -> JsonObject:
    every = {key: value for manifest in m.manifests.values() for key, value in manifest.settings.items()}
    return {
        key: value
        for key, value in every.items()
        if key.split('.')[0] in SECTIONS and key.rpartition('.')[2] not in FREE
    }


def _difference(short: JsonObject, long: JsonObject) -> str:
    """The first setting of a short run that its long one does not have; empty if there is none.

    Of settings that both have on record: a record has those of the stages that the run has itself.
    """
    for key in sorted(short.keys() & long.keys()):
        if short[key] != long[key]:
            return f'config.{key}={short[key]}, and the long one {long[key]}'
    return ''
