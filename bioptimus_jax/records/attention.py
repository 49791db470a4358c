"""What a run has measured and chosen where its attention is `auto`: attention.json of stage pretrain."""

import dataclasses
from collections.abc import Mapping

from bioptimus_jax.records.record import Record


@dataclasses.dataclass(frozen=True)
class Measured(Record):
    """The name of the fastest attention ('': none could be used), what each took, and why others were left out."""

    chosen: str
    milliseconds: Mapping[str, float]
    left_out: Mapping[str, str]
