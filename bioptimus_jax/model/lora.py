"""A low-rank adapter (LoRA, Hu et al. 2021, arXiv 2106.09685): its size, and the matrices of a layer that it is for."""

import dataclasses
import re
from collections.abc import Collection, Iterable
from typing import Any

from bioptimus_jax.config.fields import key
from bioptimus_jax.errors import ConfigError

ATTENTION, FEED_FORWARD = 'attention', 'feed_forward'
TARGETS = (ATTENTION, FEED_FORWARD)
MOST_RANK = 1024
SCALE = 2.0  # of an adapter whose alpha is not given
OF_ATTENTION = re.compile(r'(^|[./_])(self_)?att(n|ention)([./_]|$)')
"""What families call attention, in paths of parameters here and in names of modules in transformers."""


@dataclasses.dataclass(frozen=True)
class Lora:
    """An adapter adds `alpha / rank` times the product of two matrices of that rank to each of its targets."""

    rank: int
    alpha: float
    targets: tuple[str, ...]

    @property
    def scale(self) -> float:
        """What the product is multiplied by."""
        return self.alpha / self.rank

    def chosen(self, names: Iterable[str], asked: str) -> list[str]:
        """The matrices that are targets, of those with these names within their layers.

        A target is `attention`, `feed_forward`, or a part of a name, as `query`. Raises ConfigError, which names the
        key that was `asked`, for one that no matrix has.
        """
        every = list(names)
        of_target = {target: [name for name in every if is_target(name, target)] for target in self.targets}
        if missing := [target for target, found in of_target.items() if not found]:
            known = sorted({part for name in every for part in parts_of(name)[-1:]})
            raise ConfigError(
                f'{asked}: no matrix of a layer of this model is called {missing[0]!r}; known: {", ".join(TARGETS)}, '
                f'{", ".join(known)}'
            )
        wanted = {name for found in of_target.values() for name in found}
        return [name for name in every if name in wanted]


def alpha_key(active_if: tuple[str, Any]) -> Any:
    """The key of a section that says how much an adapter counts."""
    return key(
        0.0, 'lora: its product counts alpha / rank; 0: twice the rank', low=0, high=1e6, active_if=active_if
    )


def targets_key(active_if: tuple[str, Any]) -> Any:
    """The key of a section that names the targets of an adapter."""
    return key(
        TARGETS,
        'lora: matrices of every layer that get one: attention, feed_forward, or names of matrices, as query',
        active_if=active_if,
    )


def is_target(name: str, target: str) -> bool:
    """Whether a matrix of a layer belongs to what a target names."""
    if target in TARGETS:
        return bool(OF_ATTENTION.search(name)) == (target == ATTENTION)
    return target in parts_of(name)


def parts_of(name: str) -> list[str]:
    """The modules that a matrix is in, its own last."""
    return re.split(r'[./]', name)


def lora_of(rank: int, alpha: float, targets: Collection[str]) -> Lora:
    """The adapter that keys of a configuration ask for; alpha 0 is SCALE times the rank."""
    return Lora(rank, alpha or SCALE * rank, tuple(targets))
