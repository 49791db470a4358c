"""A short gradient fit of new rows alone: one piece with the new row has to do what the source's pieces do.

Token distillation (Dobler, Elliott and de Melo, 2025, arXiv 2505.20133) for an encoder: the source reads a context in
its own spelling, and again with the spelling replaced by one piece whose input row is the new one; the states of all
other pieces, in the last layer or in another, are to agree. Only new rows move.

B: contexts in a batch, P: pieces of a window, N: new tokens, V: source tokens, padded, D: hidden size.
"""

import dataclasses
import functools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, cast

import jax
import jax.numpy as jnp
import numpy as np
import optax

from bioptimus_jax.model.architecture import Architecture, logits_of
from bioptimus_jax.model.loaded import Loaded
from bioptimus_jax.surgery.reading import TOKENIZER_BATCH, Occurrences, window_start
from bioptimus_jax.surgery.rows import seeded

PIECES = 64
BATCH = 32
RATE = 0.02  # Adam's first step, as a share of the mean size of an entry of the source's table


class Lessons(NamedTuple):
    """Contexts in both spellings, one a row: `source` and `own` pieces [X, P] with 0 behind their lengths [X].

    `slot` is the place of the new token in `own`, `target` its number, and `in_source` [X, P] says where each piece of
    `own` is in `source`; -1 for the slot and the padding.
    """

    source: np.ndarray
    own: np.ndarray
    source_length: np.ndarray
    own_length: np.ndarray
    slot: np.ndarray
    target: np.ndarray
    in_source: np.ndarray

    def chosen(self, wanted_X: np.ndarray) -> 'Lessons':
        """The lessons that a mask or numbers choose."""
        return Lessons(*(column[wanted_X] for column in self))


def lessons(source: Loaded, sentences: Sequence[str], occurrences: Occurrences) -> Lessons:
    """Every context in which the source spells a token in whole pieces, none of them unknown; first spans only.

    Each is cut to PIECES around the token.
    """
    rows: list[tuple] = []
    subwords = source.subwords
    spaces = (0, 1) if subwords.kind.carries_space else (0,)  # that a piece may have before its characters
    width = min(PIECES, source.capacity + 2)
    wanted = sorted(occurrences)
    for start in range(0, len(wanted), TOKENIZER_BATCH):
        chunk = wanted[start : start + TOKENIZER_BATCH]
        encodings = subwords.encode(sentences[s] for s in chunk)
        for sentence, encoding in zip(chunk, encodings, strict=True):
            offsets_Sx2 = np.array(encoding.offsets, np.int64).reshape(-1, 2)
            for target, spans in sorted(occurrences[sentence].items()):
                begin, end = spans[0]
                inside = np.flatnonzero((offsets_Sx2[:, 0] < end) & (offsets_Sx2[:, 1] > begin))
                # Its last piece reaches beyond the token: no whole pieces spell it here.
                if not len(inside) or offsets_Sx2[inside[-1], 1] != end:
                    continue
                a, b = int(inside[0]), int(inside[-1]) + 1
                # Its first piece begins before the token, by more than a space that it carries.
                if begin - offsets_Sx2[a, 0] not in spaces or subwords.unknown in encoding.ids[a:b]:
                    continue
                left = window_start(a, b, len(encoding.ids), width - 2)
                ids = encoding.ids[left : left + width - 2]
                # Where the window cuts a spelling off, one piece would stand for a part only.
                if b - left <= len(ids):
                    window = [subwords.cls, *ids, subwords.sep]
                    rows.append(_lesson(window, a - left + 1, b - left + 1, target, subwords.mask, width))
    return Lessons(*(np.array([row[i] for row in rows]) for i in range(len(Lessons._fields))))


def _lesson(spelled: list[int], a: int, b: int, target: int, slot_id: int, width: int) -> tuple:
    """One row of `Lessons` for a window whose pieces [a, b) spell the target."""
    own = [*spelled[:a], slot_id, *spelled[b:]]
    in_source = [*range(a), -1, *range(b, len(spelled))]

    def padded(values: list[int], empty: int) -> np.ndarray:
        return np.pad(np.array(values, np.int32), (0, width - len(values)), constant_values=empty)

    return padded(spelled, 0), padded(own, 0), len(spelled), len(own), a, target, padded(in_source, -1)


@dataclasses.dataclass(frozen=True)
class Aim:
    """What the fit makes smaller: the disagreement of the states of a `layer` (-1: the last, else 1 to the depth), and
    `cross_entropy` times the loss of naming the new token where it is hidden.

    That loss is first divided by its own value and multiplied by that of the disagreement, both as constants, so that
    1 gives both terms the same size: the weight alpha of the paper.
    """

    layer: int = -1
    cross_entropy: float = 0.0


def refine(
    source: Loaded,
    rows_NxD: np.ndarray,
    taught: Lessons,
    steps: int,
    seed: int,
    advance: Callable[[int], None] = lambda steps: None,
    aim: Aim = Aim(),
) -> np.ndarray:
    """The rows after so many steps of Adam on BATCH contexts each, drawn with the seed: float64 [N, D].

    A token without a context keeps its row. The rate falls linearly to 0. `advance` is called after each step.
    With a cross-entropy the source needs a masked-LM head.
    """
    if not steps or not len(taught.target):
        return rows_NxD
    table_VxD = source.table()
    slot_D = jnp.asarray(table_VxD[source.subwords.mask])
    # A step of Adam is as long as the rate whatever the gradient, so the rate is measured by what it moves.
    rate = RATE * float(np.abs(table_VxD).mean())
    optimizer = optax.adam(optax.linear_schedule(rate, 0.0, steps))
    new_NxD = jnp.asarray(rows_NxD, jnp.float32)
    state = optimizer.init(new_NxD)
    generator = seeded(seed, steps)
    # An argument of the step, on the device once: a constant would be compiled into the program.
    parameters = jax.device_put(source.parameters)

    @jax.jit
    def step(new_NxD: jax.Array, state: Any, batch: Any) -> tuple[jax.Array, Any]:
        gradient = jax.grad(_loss)(new_NxD, parameters, source.architecture, slot_D, batch, aim)
        updates, state = optimizer.update(gradient, state)
        return optax.apply_updates(new_NxD, updates), state

    drawn_N = np.zeros(len(rows_NxD), bool)
    for _ in range(steps):
        batch = taught.chosen(generator.integers(0, len(taught.target), BATCH))._asdict()
        if aim.cross_entropy:
            drawn_N[batch['target']] = True
            batch['drawn'] = drawn_N.copy()  # a step is dispatched, not done, when the next draw changes it
        new_NxD, state = step(new_NxD, state, batch)
        advance(1)
    # A row without a context keeps all of its digits, which float32 would round.
    found_N = np.bincount(taught.target, minlength=len(rows_NxD)) > 0
    return np.where(found_N[:, None], np.asarray(new_NxD, np.float64), rows_NxD)


def _loss(
    new_NxD: jax.Array,
    parameters: Any,
    architecture: Architecture,
    slot_D: jax.Array,
    batch: Any,
    aim: Aim,
) -> jax.Array:
    wanted_BxPxD = read_source(parameters, architecture, batch, aim.layer)
    squares_BxP, kept_BxP = differences(
        new_NxD, wanted_BxPxD, parameters, architecture, slot_D, batch, aim.layer
    )
    disagreement = (squares_BxP * kept_BxP).sum() / kept_BxP.sum()
    if not aim.cross_entropy:
        return disagreement
    naming = _naming(new_NxD, parameters, architecture, batch)
    return disagreement + aim.cross_entropy * jax.lax.stop_gradient(disagreement / naming) * naming


def read_source(parameters: Any, architecture: Architecture, batch: Any, layer: int) -> jax.Array:
    """States BxPxD of a layer for the source's own spelling: what a single piece should lead to."""
    encode = functools.partial(architecture.encode, parameters)
    return _states(encode, _batch(batch['source'], batch['source_length']), layer)


def differences(
    new_NxD: jax.Array,
    wanted_BxPxD: jax.Array,
    parameters: Any,
    architecture: Architecture,
    slot_D: jax.Array,
    batch: Any,
    layer: int,
) -> tuple[jax.Array, jax.Array]:
    """Mean squared difference of each piece's state to that of `read_source`, BxP, and which pieces have one there.

    `slot_D` is the input row of the token that `Lessons.own` has in the slot.
    """
    at_slot_BxP = jnp.arange(batch['own'].shape[1])[None, :] == batch['slot'][:, None]
    # Put [MASK] into the slot and add the difference to the new row there: so only new rows get gradients, and the
    # source's table has none to hold.
    delta_BxPxD = jnp.where(
        at_slot_BxP[:, :, None], (new_NxD[batch['target']] - slot_D[None, :])[:, None, :], 0.0
    )
    own_batch = _batch(batch['own'], batch['own_length'])
    encode = functools.partial(architecture.encode, parameters, embedding_delta=delta_BxPxD)
    own_BxPxD = _states(encode, own_batch, layer)
    # Pieces of the context stand in both spellings; only their states are compared, not that of the token itself.
    kept_BxP = batch['in_source'] >= 0
    places_BxPx1 = jnp.maximum(batch['in_source'], 0)[:, :, None]
    aligned_BxPxD = jnp.take_along_axis(wanted_BxPxD, places_BxPx1, axis=1)
    squares_BxP = ((own_BxPxD - aligned_BxPxD) ** 2).mean(axis=-1)
    return squares_BxP, kept_BxP


def _states(encode: Callable[..., Any], batch: Any, layer: int) -> jax.Array:
    # Only one layer's states are used, so under jit the layers above it are neither computed nor differentiated.
    return cast(jax.Array, encode(batch) if layer < 0 else encode(batch, all_layers=True)[layer])


def _naming(new_NxD: jax.Array, parameters: Any, architecture: Architecture, batch: Any) -> jax.Array:
    """Mean cross-entropy of the new token at its [MASK], among the source's tokens and all new ones (bias 0).

    Only output rows have a gradient here: with [MASK] in the slot no new row is read.
    """
    own_BxP = batch['own']
    slots_B = jnp.arange(len(own_BxP)) * own_BxP.shape[1] + batch['slot']
    hidden_BxD = architecture.encode(parameters, _batch(own_BxP, batch['own_length']), slots=slots_B)
    layer = architecture.output_layer(parameters, hidden_BxD[None])
    # Adam makes a small gradient as long as a large one. A row that no context has named so far would only be pushed
    # away from all of them, at the full rate.
    moving_NxD = jnp.where(batch['drawn'][:, None], new_NxD, jax.lax.stop_gradient(new_NxD))
    table_WxD = jnp.concatenate([layer.table_VxD, moving_NxD])
    bias_W = jnp.concatenate([layer.bias_V, jnp.zeros(len(new_NxD))])
    logits_BxW = logits_of(layer.states_BxMxD, table_WxD, bias_W)[0]
    return optax.softmax_cross_entropy_with_integer_labels(
        logits_BxW, len(layer.bias_V) + batch['target']
    ).mean()


def _batch(tokens_BxP: Any, lengths_B: Any) -> dict[str, jax.Array]:
    positions_BxP = jnp.broadcast_to(jnp.arange(tokens_BxP.shape[1], dtype=jnp.int32)[None], tokens_BxP.shape)
    segments_BxP = (positions_BxP < lengths_B[:, None]).astype(jnp.int32)
    return {'tokens': tokens_BxP, 'segments': segments_BxP, 'positions': positions_BxP}
