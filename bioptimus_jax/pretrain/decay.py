"""What weight decay is on: one record each, and the table is all that names them.

This file does without jax, so that the schema can list the names.
"""

import dataclasses

from bioptimus_jax.config.plugins import Table


@dataclasses.dataclass(frozen=True)
class Decay:
    """`meaning` goes on with "on ...". `exempts`: whether parameters that a family's rules exempt are left out."""

    meaning: str
    exempts: bool


DECAYS: Table[Decay] = Table(
    'DECAYS',
    {
        'bert': Decay('matrices and tables, not on biases and norms, as in BERT', exempts=True),
        'all': Decay('every parameter, as in fairseq, so RoBERTa and Bio-LM', exempts=False),
    },
)
"""What `config.pretrain.decay` may be."""
