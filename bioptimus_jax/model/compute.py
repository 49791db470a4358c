"""How the model is computed, apart from what it computes."""

import dataclasses
import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax.typing import DTypeLike

from bioptimus_jax.model.attention import Attend, Causal, attend

REMAT: dict[str, Callable[[Callable], Callable]] = {
    'none': lambda layer: layer,
    # Keeps the results of the six matrix products of a layer, and computes scores and softmax anew.
    'dots': functools.partial(
        jax.checkpoint, policy=jax.checkpoint_policies.dots_with_no_batch_dims_saveable
    ),
    'full': jax.checkpoint,
}


def unplaced(values: jax.Array, *axes: str | None) -> jax.Array:
    """The values as they are: what `place` does without a mesh."""
    del axes
    return values


def undivided(params: Any, *_: Any) -> Any:
    """The parameters as they are: what `gather` does where each device has all of them."""
    return params


@dataclasses.dataclass(frozen=True)
class Compute:
    """Settings that change the speed, the memory and the rounding of a model, never its function.

    `dtype`: of matrix products; parameters, LayerNorm, softmax and logits are float32 throughout. `attend`: the
    attention kernel. `remat`: what the backward pass computes anew, by layer ('none', 'dots', 'full').
    `scan_layers`: one compiled layer in a loop instead of an unrolled stack. `place(values, *axes)`: says on which
    logical axes ('rows', 'heads', 'vocabulary' or None, one per dimension) an array is split, `row_shards`: into
    how many parts its rows are. `gather(params, rules)`: makes parameters whole of which each device keeps a part.
    `platform`: cpu, gpu or tpu; empty: the one that this process runs on. Hashable, so static under jit.
    """

    dtype: DTypeLike = jnp.float32
    attend: Attend = attend
    remat: str = 'none'
    scan_layers: bool = False
    place: Callable[..., Any] = unplaced
    row_shards: int = 1
    gather: Callable[..., Any] = undivided
    platform: str = ''

    @property
    def attention(self) -> str:
        """What the attention kernel is called: xla, or as in `kernels`."""
        inner: Any = self.attend.attend if isinstance(self.attend, Causal) else self.attend
        kernel: Any = getattr(inner, 'kernel', inner)
        return 'xla' if kernel is attend else kernel.__name__

    def words(self) -> dict[str, str]:
        """Attention and type, for who says what it computes with."""
        return {'attention': self.attention, 'type': jnp.dtype(self.dtype).name}

    def __post_init__(self) -> None:
        if self.remat not in REMAT:
            raise ValueError(f'remat {self.remat!r} is not one of {", ".join(REMAT)}')


PLAIN_COMPUTE = Compute()
