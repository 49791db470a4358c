"""What of a run fits into hours on this machine: what is made smaller or left out, and what is left for training."""

import dataclasses
from collections.abc import Callable, Collection
from typing import Any

from bioptimus_jax.start.hours import Costs

KEPT_FREE = 0.05
"""Share of the hours that nothing is planned into."""
LEAST_TRAINING = 0.5
"""Share of the hours that everything beside the optimiser steps leaves to them, if it can be made small enough."""
LITTLE = 0.1
"""Share of the hours that training has in any case."""
WORTH_SAYING = 0.02
"""Share of the hours that must be saved for something to be made smaller."""


@dataclasses.dataclass(frozen=True)
class Leaner:
    """A key that takes less time with another value; and what is lost."""

    key: str
    value: Any
    lost: str

    def apply(self, loaded: Any) -> bool:
        """Change a ConfigDict; whether that changes anything."""
        section, name = self.key.split('.')
        changes: bool = loaded[section][name] != self.value and self.stage in loaded.stages
        if changes:
            loaded[section][name] = self.value
        return changes

    @property
    def stage(self) -> str:
        """The stage that it is about."""
        section = self.key.partition('.')[0]
        return {'evaluation': 'pretrain', 'analysis': 'analyze'}.get(section, section)

    @property
    def line(self) -> str:
        """The line of a config that does the same."""
        return f'config.{self.key} = {self.value!r}'


@dataclasses.dataclass(frozen=True)
class LeftOut:
    """A stage that a run does without."""

    stage: str
    lost: str
    key = 'stages'

    def apply(self, loaded: Any) -> bool:
        """Take the stage out of a ConfigDict; whether it was in."""
        changes = self.stage in loaded.stages
        loaded.stages = tuple(stage for stage in loaded.stages if stage != self.stage)
        return changes


LEANER: tuple[Leaner | LeftOut, ...] = (
    Leaner('evaluation.per_phase', 1, 'held-out loss at the start and the end alone'),
    Leaner('evaluation.rows', 8, 'held-out loss on few rows'),
    Leaner('analysis.geometry_words', 0, 'left out: words in context'),
    Leaner(
        'surgery.strategy', 'spelled', 'left out: contexts of new tokens, whose rows come from characters'
    ),
    Leaner('finetune.seeds', (0,), 'one seed, so no test over seeds'),
    Leaner('finetune.models', ('source', 'words'), 'left out: fine-tuning the model of step 0'),
    LeftOut('finetune', 'fine-tuning'),
    LeftOut('analyze', 'analysis'),
)
"""What is made leaner until training has its share, in this order, and each only if it saves enough."""


@dataclasses.dataclass(frozen=True)
class Budget:
    """`lines`: of a config, each with its why. `steps`: seconds for the optimiser steps. `beside`: for all else."""

    lines: tuple[tuple[str, str], ...]
    steps: float
    beside: float
    hours: float

    @property
    def too_few(self) -> bool:
        """Whether the hours do not suffice even for what cannot be left out."""
        return self.steps + self.beside > self.hours * 3600


def budget(loaded: Any, hours: float, costs: Callable[[Any], Costs], given: Collection[str] = ()) -> Budget:
    """Make a ConfigDict fit the hours, but for keys that are `given`. `costs` gives what a ConfigDict takes."""
    whole = hours * 3600 * (1 - KEPT_FREE)
    made = _made_lean(loaded, whole, costs, given)
    left = [(one, saved) for one, saved in made if isinstance(one, LeftOut)]
    lines = [
        (one.line, f'{one.lost}; it would take {minutes(saved)} more')
        for one, saved in made
        if isinstance(one, Leaner) and one.stage in loaded.stages
    ]
    if left:
        named = ' and '.join(f'{one.lost} ({minutes(saved)} more)' for one, saved in left)
        verbs = ' and '.join(f'`bioptimus {one.stage}`' for one, _ in left)
        lines.append((f'config.stages = {tuple(loaded.stages)!r}', f'left out: {named}; later by {verbs}'))
    beside = _beside(costs(loaded))
    return Budget(tuple(lines), max(whole - beside, LITTLE * whole), beside, hours)


def _made_lean(
    loaded: Any, whole: float, costs: Callable[[Any], Costs], given: Collection[str]
) -> list[tuple[Leaner | LeftOut, float]]:
    """What was made leaner, and the seconds that it saves."""
    made: list[tuple[Leaner | LeftOut, float]] = []
    for leaner in (one for one in LEANER if one.key not in given):
        before = _beside(costs(loaded))
        if before <= (1 - LEAST_TRAINING) * whole:
            break
        tried = loaded.copy_and_resolve_references()
        saved = before - _beside(costs(tried)) if leaner.apply(tried) else 0.0
        if saved > WORTH_SAYING * whole:
            leaner.apply(loaded)
            made.append((leaner, saved))
    return made


def _beside(costs: Costs) -> float:
    return sum(costs.seconds().values()) - costs.steps()


def minutes(seconds: float) -> str:
    """Seconds in words, with two digits."""
    value, unit = (seconds / 3600, 'h') if seconds > 5400 else (seconds / 60, 'min')
    return f'{float(f"{value:.2g}"):g} {unit}'
