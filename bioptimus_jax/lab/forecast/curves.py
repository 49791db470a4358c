"""Held-out loss by step, and the learning rates and settings that a run has had and will have.

Legend: N evaluations after step 0, T steps of the whole budget.
"""

import dataclasses
from collections.abc import Mapping

import jax
import numpy as np

from bioptimus_jax.errors import InputError
from bioptimus_jax.pretrain import curriculum
from bioptimus_jax.pretrain.units import row_rates
from bioptimus_jax.records.metrics import Spent
from bioptimus_jax.report.measures import Measures

PIECES_A_WORD = 'pieces a word'
_rates = jax.jit(curriculum.learning_rate_at)


@dataclasses.dataclass(frozen=True, eq=False)
class Curve:
    """The held-out losses of a run after N steps, and the learning rate of each of its T steps, also those to come.

    `settings`: of the second half of the steps, the share under each objective and masking unit, and the shares of the
    pieces that are masked, replaced and kept; pieces a word. `seconds` of a step. `end`: of a short run, the final loss
    of the long one of its arm.
    """

    name: str
    steps_N: np.ndarray
    losses_N: np.ndarray
    rates_T: np.ndarray
    settings: Mapping[str, float]
    seconds: float = 0.0
    end: float | None = None

    @property
    def unit(self) -> float:
        """What a loss is multiplied by to be compared."""
        return self.settings.get(PIECES_A_WORD, 1.0)

    @property
    def share(self) -> float:
        """The share of the steps that lie before the last evaluation."""
        return float(self.steps_N[-1]) / len(self.rates_T)

    @property
    def finished(self) -> bool:
        return int(self.steps_N[-1]) == len(self.rates_T)

    @property
    def final(self) -> float:
        """The loss that a forecast learns to tell."""
        return float(self.losses_N[-1]) if self.end is None else self.end

    def at(self, share: float) -> float:
        """The loss after that share of the steps, between two evaluations on a line over the logarithm of the step."""
        return float(np.interp(np.log(share * len(self.rates_T)), np.log(self.steps_N), self.losses_N))

    def cut(self, share: float) -> 'Curve':
        """The curve as it was after that share of the steps. Raises InputError where nothing had been evaluated by
        then."""
        seen_N = self.steps_N <= share * len(self.rates_T)
        if not seen_N.any():
            raise InputError(
                f'{self.name}: was first evaluated after {self.steps_N[0] / len(self.rates_T):.1%} of its steps; '
                'raise config.evaluation.per_phase, or ask for a larger share'
            )
        return dataclasses.replace(self, steps_N=self.steps_N[seen_N], losses_N=self.losses_N[seen_N])


def curve_of(name: str, m: Measures) -> Curve | None:
    """The curve of a run; None before its first evaluation after step 0, and where its steps are not known."""
    ends = _ends(m)
    losses = {step: loss for step, loss in m.held_out.items() if step}
    if not losses or not ends:
        return None
    steps = sorted(losses)
    rates_T, settings = _path(m, ends)
    rows = m.rows_of('heldout')
    unit = rows.tokens / rows.words if rows and rows.words else 1.0
    last = m.spent[-1] if m.spent else Spent(step=0, tokens=0)
    seconds = (last.seconds or 0.0) / max(last.step, 1)
    settings[PIECES_A_WORD] = unit
    return Curve(name, np.array(steps), np.array([losses[s] for s in steps]), rates_T, settings, seconds)


def curves_of(runs: Mapping[str, Measures]) -> dict[str, Curve]:
    """The curves of runs by their names, of those that have one."""
    return {name: one for name, m in runs.items() if (one := curve_of(name, m))}


def _ends(m: Measures) -> Mapping[str, int]:
    """The last step of each phase, in order; empty where not all have ended and no curriculum says when they will.

    Older records have no curriculum.
    """
    if m.curriculum:
        return {r.name: r.stop for r in m.curriculum}
    ended = {name: step for name in m.phases if (step := m.step_of(name)) is not None}
    return ended if len(ended) == len(m.phases) else {}


def _path(m: Measures, ends: Mapping[str, int]) -> tuple[np.ndarray, dict[str, float]]:
    """The learning rate of each step, and the settings of the second half of the steps."""
    schedule, start = [], 0
    for name, stop in ends.items():
        schedule.append(curriculum.ScheduledPhase(name, m.run.config.phase[name], start, stop, stop))
        start = stop
    table = curriculum.table(tuple(schedule), m.run.config)
    # Up to a power of two, so that runs share lengths: JAX compiles the rates again for each length.
    steps = np.arange(2 ** int(start).bit_length())
    rates_T = np.asarray(_rates(table, steps), np.float64)[:start]
    settings: dict[str, float] = {}
    for scheduled in schedule:
        for name, value in late(scheduled, start, m.run.config.objective_in(scheduled.name)).items():
            settings[name] = settings.get(name, 0.0) + value
    return rates_T, settings


def late(scheduled: curriculum.ScheduledPhase, steps: int, objective: str) -> dict[str, float]:
    """What a phase adds to the settings of the second half of so many steps; nothing where it ends before."""
    first, phase = max(scheduled.start, steps / 2), scheduled.phase
    if first >= scheduled.stop:
        return {}
    share = (scheduled.stop - first) / (steps / 2)
    # The rate moves in a line, so its mean over these steps is the one in their middle.
    middle = ((first + scheduled.stop) / 2 - scheduled.start) / (scheduled.stop - scheduled.start)
    rate, _ = row_rates(phase.masking, (float(np.interp(middle, (0, 1), phase.rates)),))
    shown = zip(('masked', 'replaced', 'kept'), phase.corruption, strict=True)
    return {
        **{objective: share, phase.masking: share},
        **{f'pieces {name}': share * rate * part for name, part in shown},
    }
