"""What of the last layer a text is classified by, and how (Gu et al. 2021, section 4 and Table 12).

Shapes: B windows, L pieces, D hidden size, 2 mentions with first piece and the one behind the last.
"""

import dataclasses
from collections.abc import Callable
from typing import Any

from bioptimus_jax.config.plugins import Table


@dataclasses.dataclass(frozen=True)
class Features:
    """`meaning` in words. `of`: states_BxLxD and spans_Bx2x2 -> [B, parts x D], so many vectors side by side.

    Without `of` it is transformers' own head of the family. `mentions`: whether two mentions are needed; `markers`:
    a mention that has markers begins and ends with them.
    """

    meaning: str
    parts: int = 0
    of: Callable[[Any, Any], Any] | None = None
    mentions: bool = False
    markers: bool = False


def first_piece(states_BxLxD: Any, spans_Bx2x2: Any) -> Any:
    """The state of [CLS]."""
    return states_BxLxD[:, 0]


def mention_maximum(states_BxLxD: Any, spans_Bx2x2: Any) -> Any:
    """The largest value of every column over the pieces of a mention."""
    place_L = spans_Bx2x2.new_tensor(range(states_BxLxD.shape[1]))
    inside_Bx2xL = (place_L >= spans_Bx2x2[..., :1]) & (place_L < spans_Bx2x2[..., 1:])
    apart_Bx2xLxD = states_BxLxD[:, None].masked_fill(~inside_Bx2xL[..., None], -float('inf'))
    return apart_Bx2xLxD.amax(2).flatten(1)


def mention_start(states_BxLxD: Any, spans_Bx2x2: Any) -> Any:
    """The state of the first piece of a mention."""
    at_Bx2xD = spans_Bx2x2[..., :1].expand(-1, -1, states_BxLxD.shape[-1])
    return states_BxLxD.gather(1, at_Bx2xD).flatten(1)


FEATURES: Table[Features] = Table(
    'FEATURES',
    {
        'family': Features("as transformers' own head of the family, for BERT the pooler"),
        'first': Features('the state of the first piece', 1, first_piece),
        'mentions': Features('the largest state of each of two mentions', 2, mention_maximum, mentions=True),
        'starts': Features(
            'the state of the first piece of each of two mentions, or of its marker',
            2,
            mention_start,
            mentions=True,
            markers=True,
        ),
    },
)
"""What config.finetune.features may be."""


@dataclasses.dataclass(frozen=True)
class Predictor:
    """What is between the features and the labels, beside a linear layer.

    `hidden`: a layer as wide as the encoder, with tanh. `recurrent`: an LSTM in both directions reads the states of all
    pieces, and the features are taken of its states.
    """

    hidden: bool = False
    recurrent: bool = False


PREDICTORS = {'linear': Predictor(), 'mlp': Predictor(hidden=True), 'bilstm': Predictor(recurrent=True)}
"""What config.finetune.head may be for texts."""
