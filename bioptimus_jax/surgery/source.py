"""The source BERT: its spelling of new tokens, and its last layer's states of the pieces that spell them.

V: source tokens, D: hidden size, B: windows in a batch, L: their padded length, N: new tokens, K: pieces.
"""

import dataclasses
import functools
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import tokenizers

from bioptimus_jax.errors import InputError
from bioptimus_jax.model import bert, hf
from bioptimus_jax.model.architecture import Architecture
from bioptimus_jax.schema import Experiment
from bioptimus_jax.surgery.reading import Reading, special_id
from bioptimus_jax.vocab import wordpiece

PADDED_LENGTHS = (8, 16, 32, 48, 64, 96, 128, 192, 256, 384, 512)


@dataclasses.dataclass(frozen=True)
class Source:
    """A loaded source: architecture, nested parameters, tokenizer, tokens by id, parameters it lacked."""

    folder: Path
    architecture: Architecture
    parameters: dict[str, Any]
    tokenizer: tokenizers.Tokenizer
    vocabulary: list[str]
    fresh: list[str]

    @property
    def capacity(self) -> int:
        """Pieces that a window holds beside [CLS] and [SEP]."""
        return self.architecture.max_positions - self.architecture.position_offset - 2

    def table(self) -> np.ndarray:
        """Input rows of the tokens (the rows beyond the vocabulary left out): [V, D]."""
        table = np.asarray(self.parameters['embeddings']['word_embeddings']['embedding'])
        return table[: len(self.vocabulary)]


def load(experiment: Experiment) -> Source | None:
    """The source of an experiment; None where `source.path` is empty. Raises InputError for a bad folder."""
    folder = hf.source_folder(experiment.source)
    if folder is None:
        return None
    tokenizer = wordpiece.load_tokenizer(folder)
    architecture, parameters, fresh = hf.load_folder(
        folder, jax.random.key(experiment.seed, impl='threefry2x32')
    )
    vocabulary = wordpiece.vocabulary(tokenizer)
    if len(vocabulary) > architecture.vocab_size:
        raise InputError(
            f'{folder}: the vocabulary has {len(vocabulary)} tokens but the model {architecture.vocab_size} '
            'rows; these are not the weights of this tokenizer'
        )
    return Source(folder, architecture, parameters, tokenizer, vocabulary, fresh)


def spell(source: Source, token: str) -> list[int]:
    """The source's pieces of a token without context, [UNK] left out; empty where it knows none.

    A "##" token is spelled as the inside of a word, "##nstriction" by ##nst ##ric ##tion: its pieces
    wherever the source's piece border and the new one agree. The longest match comes first, as in WordPiece.
    Where no continuation pieces spell it, the text without "##" is spelled like a word.
    """
    text = wordpiece.spelled(token)
    if text != token:
        pieces = _spell_continuation(source, text)
        if pieces:
            return pieces
    unknown = special_id(source.tokenizer, '[UNK]')
    encoding = source.tokenizer.encode(text, add_special_tokens=False)
    return [i for i in encoding.ids if i != unknown]


def _spell_continuation(source: Source, text: str) -> list[int]:
    normalizer = source.tokenizer.normalizer
    rest = normalizer.normalize_str(text) if normalizer else text
    pieces = []
    while rest:
        for end in range(len(rest), 0, -1):
            piece = source.tokenizer.token_to_id(wordpiece.CONTINUATION + rest[:end])
            if piece is not None:
                break
        else:
            return []
        pieces.append(piece)
        rest = rest[end:]
    return pieces


def batches(lengths: Sequence[int], batch_pieces: int, longest: int) -> list[tuple[np.ndarray, int, int]]:
    """Windows by falling length as `(window numbers, rows, padded length)`, with few different shapes.

    rows * padded length <= batch_pieces, except that a batch has one row at least. A batch takes the padded
    length of its longest window and is filled up with shorter ones: only the very last one has empty rows.
    """
    order = np.argsort(-np.asarray(lengths, np.int64), kind='stable')
    allowed = sorted({min(n, longest) for n in PADDED_LENGTHS} | {longest})
    planned, start = [], 0
    while start < len(order):
        length = next(n for n in allowed if n >= lengths[order[start]])
        rows = max(batch_pieces // length, 1)
        planned.append((order[start : start + rows], rows, length))
        start += rows
    return planned


def sum_states(
    source: Source,
    reading: Reading,
    batch_pieces: int,
    advance: Callable[[int], None] = lambda windows: None,
    layers: Sequence[int] = (),
) -> np.ndarray:
    """Per target the weighted sum of the last layer's states that `reading` names: float64 [N, D].

    Every window is encoded once, in float32; the sums are taken in float64 and in a fixed order. `advance` is
    called after each batch with the number of its windows, and may raise to stop.
    With `layers` (0: the embeddings) the states of those layers side by side: [N, len(layers) * D].
    """
    sums_NxD = np.zeros((len(reading.contexts), source.architecture.hidden * max(len(layers), 1)))
    encode = functools.partial(_encode_layers, layers=tuple(layers)) if layers else _encode
    parameters = jax.device_put(source.parameters)
    by_window = np.argsort(reading.window, kind='stable')
    edges = np.searchsorted(reading.window[by_window], np.arange(len(reading.windows) + 1))
    longest = source.capacity + 2
    for numbers, rows, length in batches([len(w) for w in reading.windows], batch_pieces, longest):
        tokens_BxL, lengths_B = np.zeros((rows, length), np.int32), np.zeros(rows, np.int32)
        for row, number in enumerate(numbers):
            window = reading.windows[number]
            tokens_BxL[row, : len(window)], lengths_B[row] = window, len(window)
        states_BxLxD = np.asarray(encode(parameters, source.architecture, tokens_BxL, lengths_B))
        entries_K = np.concatenate([by_window[edges[n] : edges[n + 1]] for n in numbers])
        rows_K = np.repeat(np.arange(len(numbers)), [edges[n + 1] - edges[n] for n in numbers])
        states_KxD = states_BxLxD[rows_K, reading.position[entries_K]].astype(np.float64)
        _add_by_target(sums_NxD, reading.target[entries_K], states_KxD * reading.weight[entries_K, None])
        advance(len(numbers))
    return sums_NxD


def _add_by_target(sums_NxD: np.ndarray, target_K: np.ndarray, values_KxD: np.ndarray) -> None:
    if len(target_K):
        order_K = np.argsort(target_K, kind='stable')
        targets, firsts = np.unique(target_K[order_K], return_index=True)
        sums_NxD[targets] += np.add.reduceat(values_KxD[order_K], firsts, axis=0)


@functools.partial(jax.jit, static_argnums=1)
def _encode(parameters: Any, architecture: Architecture, tokens_BxL: Any, lengths_B: Any) -> jax.Array:
    states_BxLxD = bert.encode(parameters, architecture, _batch(tokens_BxL, lengths_B))
    assert isinstance(states_BxLxD, jax.Array)
    return states_BxLxD


@functools.partial(jax.jit, static_argnums=1, static_argnames='layers')
def _encode_layers(
    parameters: Any, architecture: Architecture, tokens_BxL: Any, lengths_B: Any, layers: tuple[int, ...]
) -> jax.Array:
    states = bert.encode(parameters, architecture, _batch(tokens_BxL, lengths_B), all_layers=True)
    return jnp.concatenate([states[number] for number in layers], axis=-1)


def _batch(tokens_BxL: Any, lengths_B: Any) -> dict[str, Any]:
    positions_BxL = jnp.broadcast_to(
        jnp.arange(tokens_BxL.shape[1], dtype=jnp.int32)[None, :], tokens_BxL.shape
    )
    segments_BxL = (positions_BxL < lengths_B[:, None]).astype(jnp.int32)
    return {'tokens': tokens_BxL, 'segments': segments_BxL, 'positions': positions_BxL}
