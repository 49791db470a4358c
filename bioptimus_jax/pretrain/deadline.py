"""Training that ends in time: once the speed of its steps is known, those that do not fit are taken away."""

import math
import time
from collections.abc import Mapping

from bioptimus_jax.pretrain.goodput import CHECKPOINT, EVALUATION, INPUT, TRAINING

FEWEST = 8
"""Steps that the speed is taken from, at least."""
TOLERATED = 0.03
"""Share of the steps left that may be too many: no measure is exact, and a schedule should not change all the time."""


def steps_in_time(
    left: int, taken: int, spans: Mapping[str, float], evaluations: tuple[int, int], until: float
) -> int:
    """How many of the steps that are `left` are done by `until`, in Unix time: all of them where that is not sure.

    `taken`: steps that this process has made, without those that compiled. `spans`: seconds of it by kind, as in
    goodput. `evaluations`: made by this process, and those to come.
    """
    if taken < FEWEST:
        return left
    each = sum(spans[span] for span in (TRAINING, INPUT, CHECKPOINT)) / taken
    made, to_come = evaluations
    of_evaluations = spans[EVALUATION] / max(made, 1) * to_come
    fitting = max((until - time.time() - of_evaluations) / each, 1)
    return left if fitting >= left * (1 - TOLERATED) else math.floor(fitting)
