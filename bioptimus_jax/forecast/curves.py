"""Held-out loss by step, and the learning rates and masking settings that a run has had and will have.

Legend: N evaluations after step 0, T steps of the whole budget.
"""

import dataclasses
from collections.abc import Mapping
from typing import Any

import numpy as np

from bioptimus_jax.errors import InputError
from bioptimus_jax.pretrain import curriculum
from bioptimus_jax.report.measures import Measures
from bioptimus_jax.run import stage_folder


@dataclasses.dataclass(frozen=True, eq=False)
class Curve:
    """The held-out losses of a run after N steps, and the learning rate of each of its T steps, also those to come.

    `masked`: each masking setting, and its share of the steps in the first and in the second half of the schedule.
    `unit`: what a loss is multiplied by to be compared, pieces a word. `seconds` of a step.
    """

    name: str
    steps_N: np.ndarray
    losses_N: np.ndarray
    rates_T: np.ndarray
    masked: Mapping[str, tuple[float, float]]
    unit: float = 1.0
    seconds: float = 0.0

    @property
    def share(self) -> float:
        """Of the steps, those before the last evaluation."""
        return float(self.steps_N[-1]) / len(self.rates_T)

    @property
    def finished(self) -> bool:
        return int(self.steps_N[-1]) == len(self.rates_T)

    def at(self, share: float) -> float:
        """The loss after that share of the steps, between two evaluations on a line over the logarithm of the step."""
        return float(np.interp(np.log(share * len(self.rates_T)), np.log(self.steps_N), self.losses_N))

    def cut(self, share: float) -> 'Curve':
        """As it was after that share of the steps. Raises InputError where nothing had been evaluated by then."""
        seen_N = self.steps_N <= share * len(self.rates_T)
        if not seen_N.any():
            raise InputError(
                f'{self.name}: was first evaluated after {self.steps_N[0] / len(self.rates_T):.1%} of its steps; '
                'raise config.evaluation.per_phase, or ask for a larger share'
            )
        return dataclasses.replace(self, steps_N=self.steps_N[seen_N], losses_N=self.losses_N[seen_N])


def curve_of(name: str, m: Measures) -> Curve | None:
    """The curve of a run; None before its first evaluation after step 0."""
    ends = _ends(m)
    losses = {e['step']: e['frozen_loss'] for e in m.evaluations if e['step']}
    if not losses or not ends:
        return None
    steps = sorted(losses)
    rows = m.rows_of('heldout')
    unit = rows['tokens'] / rows['words'] if rows.get('words') else 1.0
    last = m.training[-1] if m.training else {}
    seconds = (last.get('seconds') or 0.0) / max(last.get('step', 0), 1)
    return Curve(name, np.array(steps), np.array([losses[s] for s in steps]), *_path(m, ends), unit, seconds)


def _ends(m: Measures) -> Mapping[str, int]:
    """The last step of each phase, in order; where curriculum.json is gone, as with records, of those that ended."""
    record: list[dict[str, Any]] = curriculum.read_record(stage_folder(m.run, 'pretrain'))
    if record:
        return {r['name']: int(r['stop']) for r in record}
    return {name: step for name in m.phases if (step := m.step_of(name)) is not None}


def _path(m: Measures, ends: Mapping[str, int]) -> tuple[np.ndarray, dict[str, tuple[float, float]]]:
    """The learning rate of each step, and the share of each masking setting in both halves of the steps."""
    schedule, start = [], 0
    for name, stop in ends.items():
        schedule.append(curriculum.ScheduledPhase(name, m.run.config.phase[name], start, stop, stop))
        start = stop
    table = curriculum.table(tuple(schedule), m.run.config)
    rates_T = np.asarray(curriculum.learning_rate_at(table, np.arange(start)), np.float64)
    names = [_setting(m, s) for s in schedule]
    setting_T = np.repeat(np.arange(len(schedule)), [s.stop - s.start for s in schedule])
    halves = np.array_split(setting_T, 2)
    shares = [[float(np.mean(half == at)) for half in halves] for at in range(len(schedule))]
    masked = dict.fromkeys(names, (0.0, 0.0))
    for name, (first, second) in zip(names, shares, strict=True):
        masked[name] = masked[name][0] + first, masked[name][1] + second
    return rates_T, masked


def _setting(m: Measures, scheduled: curriculum.ScheduledPhase) -> str:
    """What a phase trains, in words."""
    phase = scheduled.phase
    rates = ' to '.join(f'{rate:.0%}' for rate in dict.fromkeys(phase.rates))
    shares = '-'.join(f'{100 * share:g}' for share in phase.corruption)
    return f'{m.run.config.objective_in(scheduled.name)} {phase.masking} {rates} {shares}'
