"""The train state: what a step changes, and what a checkpoint holds."""

from typing import Any, Final, TypedDict

import jax

from bioptimus_jax.model.trees import Params

AVERAGE: Final = 'average'


class _Always(TypedDict):
    params: Params
    optimizer: Any
    step: jax.Array


class TrainState(_Always, total=False):
    """What is trained, the state of the optimiser, and the number of steps done, int32.

    `average`: what is scored and exported in place of the trained weights, where the settings ask for it.
    """

    average: Params
