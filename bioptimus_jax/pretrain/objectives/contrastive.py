"""Contrastive learning of the vectors of texts: of all texts of a batch, a text has to find the one that goes with it.

InfoNCE (van den Oord et al. 2018) with the other pairs of the global batch as negatives, over all devices and, by a
first pass that keeps vectors alone (Gao et al. 2021, arXiv 2101.06983), over all micro-batches. Which texts go together
is the layout of the rows: title and abstract, neighbours, or a text and itself under two dropouts (SimCSE, Gao et al.
2021, arXiv 2104.08821).

Shapes: B rows, L pieces a row, G texts of a row (2 k and 2 k + 1 go together), P = G / 2 pairs of a row, N = B P pairs
of the batch, D hidden size.
"""

import dataclasses
import functools
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from bioptimus_jax.config.bounds import LARGEST_SIZE
from bioptimus_jax.config.fields import key
from bioptimus_jax.config.plugins import meanings
from bioptimus_jax.errors import ConfigError
from bioptimus_jax.model.attention import mix_words
from bioptimus_jax.model.pooling import POOLINGS, files_for_sentence_transformers
from bioptimus_jax.pretrain.config import HasTraining, Phase
from bioptimus_jax.pretrain.evaluate import BATCH_ROWS, batches_of, chosen_rows
from bioptimus_jax.pretrain.objective import (
    Example,
    Key,
    Objective,
    OfPart,
    Records,
    Setting,
    Tensors,
    Told,
    means,
)
from bioptimus_jax.pretrain.throughput import forward_flops_per_token
from bioptimus_jax.rows.blocks import positions_and_segments
from bioptimus_jax.rows.layouts import APART, layout_of
from bioptimus_jax.rows.stored import Rows
from bioptimus_jax.storage.files import atomic

ROOM = 'config.objective.contrastive'
SHORTEST = 1e-12  # a vector with a smaller sum of squares has no direction
NEVER = -1e9  # the logit of what is no candidate
EXACT = jax.lax.Precision.HIGHEST  # accelerators would round to bfloat16 or TF32, and logits are 20 cosines
SEEDS = (0x9E3779B9, 0x85EBCA6B)
"""The seeds of the two halves of a text's mark."""


class Direction(NamedTuple):
    """`meaning` goes on with "what is found". `back`: also the first text from the second."""

    meaning: str
    back: bool


DIRECTIONS = {
    'both': Direction('each text of a pair from the other, their losses in the mean', back=True),
    'one_way': Direction('the second text from the first, as an abstract from its title', back=False),
}
"""What `config.objective.contrastive.direction` may be."""


@dataclasses.dataclass(frozen=True)
class Settings:
    """Contrastive learning: how vectors are made of texts, and what is found among what."""

    temperature: float = key(0.05, 'number that cosines are divided by', low=0.001, high=10)
    direction: str = key(
        'both',
        'what is found: ' + meanings(DIRECTIONS),
        one_of=DIRECTIONS,
    )
    pooling: str = key(
        'mean',
        'the vector of a text; ' + meanings(POOLINGS),
        one_of=POOLINGS,
    )
    dimensions: tuple[int, ...] = key(
        (),
        'lengths of beginnings of a vector that are to serve for the whole (Matryoshka): the loss is the mean of '
        'theirs and that of the whole',
        low=1,
        high=LARGEST_SIZE,
    )


class Pulled(NamedTuple):
    """What is known of a micro-batch once the vectors of all are: the gradient of the batch's loss by its vectors, and
    loss and rightness of its pairs."""

    gradient_BxGxD: Any
    losses_BxP: Any
    right_BxP: Any


class TextRows(NamedTuple):
    """Packed rows: tokens, which text a piece belongs to (0: padding), and its place there, BxL each; of every text its
    pieces and a mark that equal texts share. `pulled`: where the loss is of more rows than these."""

    tokens_BxL: Any
    segments_BxL: Any
    positions_BxL: Any
    lengths_BxG: Any
    marks_BxGx2: Any
    pulled: Pulled | None = None


class Contrastive(Objective):
    """The mean over pairs of InfoNCE."""

    Settings = Settings
    reads = ('tokens', 'segment_lengths')
    does = 'contrastive learning of texts in pairs (InfoNCE)'
    heldout_loss = 'InfoNCE among the held-out pairs, nats a pair'

    @classmethod
    def check(cls, config: HasTraining) -> None:
        """Refuse rows without texts in pairs, and a text with itself where nothing is dropped."""
        super().check(config)
        layout = layout_of(config.rows.layout)
        if not layout.apart:
            raise ConfigError(
                f'config.pretrain.objective: {cls.name()} needs texts in pairs, but config.rows.layout='
                f'{config.rows.layout} has none; set config.rows.layout to one of {", ".join(APART)}'
            )
        if layout.same and not config.model.dropout and not config.model.attention_dropout:
            raise ConfigError(
                f'config.model.dropout: is 0, so both vectors of a text are one under config.rows.layout='
                f'{config.rows.layout}; set it to 0.1, or take another layout'
            )

    def __post_init__(self) -> None:
        """Raise ConfigError for beginnings that are no shorter than the vectors."""
        hidden = self.architecture.hidden
        if wrong := [size for size in self.settings.dimensions if size >= hidden]:
            raise ConfigError(
                f'{ROOM}.dimensions: {wrong[0]} is no beginning of vectors of {hidden} numbers, the hidden size; the '
                'whole vector counts in any case'
            )

    @staticmethod
    def share(phase: Phase) -> float:
        """No piece goes through the output layer."""
        return 0.0

    @staticmethod
    def places(config: HasTraining) -> int:
        """One, as there is none."""
        return 1

    def beside(self) -> Mapping[str, Any]:
        """What sentence-transformers reads."""
        return files_for_sentence_transformers(self.settings.pooling, self.architecture.hidden)

    def example(self, batch: Tensors, setting: Setting, keys_B: jax.Array) -> Example:
        """The rows as they are, with a mark of every text."""
        tokens_BxL, lengths_BxG = batch['tokens'], batch['segment_lengths']
        positions_BxL, segments_BxL = positions_and_segments(lengths_BxG, tokens_BxL.shape[1], jnp)
        marks_BxGx2 = _marks(tokens_BxL, positions_BxL, segments_BxL, lengths_BxG.shape[1])
        rows = TextRows(tokens_BxL, segments_BxL, positions_BxL, lengths_BxG, marks_BxGx2)
        return Example(rows, {'pairs': (lengths_BxG[:, 1::2] > 0).sum()}, {})

    def vectors(self, params: Any, rows: TextRows, dropout_key: Key = None) -> jax.Array:
        """The vectors of all texts of these rows, BxGxD in float32, of any length."""
        batch = {
            'tokens': rows.tokens_BxL,
            'segments': rows.segments_BxL,
            'positions': rows.positions_BxL,
            'lengths': rows.lengths_BxG,
        }
        states_BxLxD = self.architecture.encode(params, batch, compute=self.compute, dropout_key=dropout_key)
        of_text_BxGxL = _of_texts(rows.segments_BxL, rows.lengths_BxG.shape[1]).astype(jnp.float32)
        weights_BxGxL = POOLINGS[self.settings.pooling].weights(of_text_BxGxL)
        states_BxLxD = states_BxLxD.astype(jnp.float32)
        return jnp.einsum('bgl,bld->bgd', weights_BxGxL, states_BxLxD, precision=EXACT)

    def of_pairs(self, vectors_BxGxD: jax.Array, rows: TextRows) -> tuple[jax.Array, jax.Array]:
        """Loss of every pair, BxP and 0 where there is none, and whether the second text is nearest to the first.

        All pairs of `rows` are candidates of one another.
        """
        there_BxP = rows.lengths_BxG[:, 1::2] > 0
        allowed_NxN = _allowed(rows.marks_BxGx2, there_BxP)
        first_NxD, second_NxD = (
            vectors_BxGxD[:, side::2].reshape(-1, vectors_BxGxD.shape[-1]) for side in (0, 1)
        )
        sizes = (vectors_BxGxD.shape[-1], *self.settings.dimensions)

        def logits(size: int) -> jax.Array:
            first, second = (_unit(side_NxD[:, :size]) for side_NxD in (first_NxD, second_NxD))
            cosines_NxN = jnp.matmul(first, second.T, precision=EXACT)
            return jnp.where(allowed_NxN, cosines_NxN / self.settings.temperature, NEVER)

        of_sizes = [logits(size) for size in sizes]
        losses_N = jnp.stack([self._losses(logits_NxN) for logits_NxN in of_sizes]).mean(axis=0)
        right_N = of_sizes[0].argmax(axis=1) == jnp.arange(len(first_NxD))
        shape = there_BxP.shape
        return losses_N.reshape(shape) * there_BxP, right_N.reshape(shape) & there_BxP

    def _losses(self, logits_NxN: jax.Array) -> jax.Array:
        own_N = jnp.diagonal(logits_NxN)
        losses_N = jax.nn.logsumexp(logits_NxN, axis=1) - own_N
        if not DIRECTIONS[self.settings.direction].back:
            return losses_N
        return (losses_N + jax.nn.logsumexp(logits_NxN, axis=0) - own_N) / 2

    def informed(self, params: Any, frozen: Any, parts: TextRows, each: Callable[[OfPart], Any]) -> TextRows:
        """Micro-batches with the gradient of the whole batch's loss by their vectors, so that all pairs are negatives.

        A single one needs no first pass: it has all of them.
        """
        if len(parts.tokens_BxL) == 1:
            return parts
        vectors_PxBxGxD = each(lambda rows, dropout_key: self.vectors(params, rows, dropout_key))

        def together(array: jax.Array) -> jax.Array:  # in the order of the batch, as the step has cut it
            return array.swapaxes(0, 1).reshape(-1, *array.shape[2:])

        def apart(array: jax.Array) -> jax.Array:
            return array.reshape(-1, len(parts.tokens_BxL), *array.shape[1:]).swapaxes(0, 1)

        whole = jax.tree.map(together, parts)

        def total(vectors_BxGxD: jax.Array) -> tuple[jax.Array, tuple[jax.Array, jax.Array]]:
            losses_BxP, right_BxP = self.of_pairs(vectors_BxGxD, whole)
            return losses_BxP.sum(), (losses_BxP, right_BxP)

        (_, found), gradient_BxGxD = jax.value_and_grad(total, has_aux=True)(together(vectors_PxBxGxD))
        return parts._replace(pulled=jax.tree.map(apart, Pulled(gradient_BxGxD, *found)))

    def loss(self, params: Any, frozen: Any, rows: TextRows, dropout_key: Key) -> tuple[Tensors, Tensors]:
        """Summed InfoNCE, and how many pairs there were and were right."""
        vectors_BxGxD = self.vectors(params, rows, dropout_key)
        if rows.pulled is None:
            losses_BxP, right_BxP = self.of_pairs(vectors_BxGxD, rows)
            loss = losses_BxP.sum()
        else:
            gradient_BxGxD, losses_BxP, right_BxP = rows.pulled
            pull = (vectors_BxGxD * gradient_BxGxD).sum()
            # The value of the loss, with the gradient of the pull.
            loss = pull + jax.lax.stop_gradient(losses_BxP.sum() - pull)
        pairs = (rows.lengths_BxG[:, 1::2] > 0).sum()
        sums = {'loss': losses_BxP.sum(), 'right': right_BxP.sum(), 'pairs': pairs}
        return {'pairs': loss}, jax.lax.stop_gradient(sums)

    def metrics(self, example: Example, sums: Tensors) -> Tensors:
        """The share of pairs whose second text is nearest to the first, and the pairs."""
        accuracy = sums['right'] / jnp.maximum(sums['pairs'], 1)
        return {'accuracy': accuracy, 'pairs': sums['pairs'], 'predicted': jnp.zeros((), jnp.int32)}

    def record(self, steps: Records, finite: Records) -> Told:
        """The accuracy, and the pairs of a step."""
        return means(finite, ['accuracy', 'pairs'])

    def flops_per_piece(self, attended: float, predicted: float) -> float:
        """Operations for one piece, with the first pass that micro-batches need."""
        twice = self.config.pretrain.micro_batches > 1
        again = forward_flops_per_token(self.architecture, attended, 0.0) if twice else 0.0
        return super().flops_per_piece(attended, predicted) + again

    def evaluation(self, rows: Rows, batch_rows: int = BATCH_ROWS) -> 'HeldOutPairs':
        """Held-out pairs, all of them candidates of one another."""
        read = rows.read(chosen_rows(rows, self.config.evaluation.rows))
        arrays = {name: read[name] for name in self.reads}
        names = [name for name in self.config.phases if self.trains(self.config, name)]
        return HeldOutPairs(self, batches_of(arrays, batch_rows, self.compute.row_shards), names)

    @functools.partial(jax.jit, static_argnums=0)
    def sums(self, params: Any, batches: Tensors) -> Tensors:
        """Sums over all pairs of some batches, which are candidates of one another; jitted, without dropout."""
        nothing = jnp.zeros(0)
        vectors_NxBxGxD = jax.lax.map(
            lambda batch: self.vectors(params, self.example(batch, {}, nothing).rows), batches
        )
        vectors_BxGxD, whole = jax.tree.map(
            lambda array: array.reshape(-1, *array.shape[2:]), (vectors_NxBxGxD, batches)
        )
        losses_BxP, right_BxP = self.of_pairs(vectors_BxGxD, self.example(whole, {}, nothing).rows)
        pairs = (whole['segment_lengths'][:, 1::2] > 0).sum()
        return {'loss': losses_BxP.sum(), 'right': right_BxP.sum(), 'pairs': pairs}


OBJECTIVE = Contrastive


@dataclasses.dataclass(frozen=True)
class HeldOutPairs:
    """Held-out rows in equal batches, NxBx...; the last one is filled with empty rows. `phases`: those to score."""

    objective: Contrastive
    arrays: Mapping[str, np.ndarray]
    phases: list[str]

    def save(self, folder: Path) -> None:
        """Write heldout.npz: the rows that are scored."""
        with atomic(folder / 'heldout.npz', 'wb') as file:
            np.savez_compressed(file, **self.arrays)  # type: ignore[arg-type]

    def scores(self, params: Any, frozen: Any, every_setting: bool) -> Iterator[tuple[str, float]]:
        """`frozen_loss` in nats a pair and `frozen_accuracy`, among all of them."""
        sums = {n: float(v) for n, v in self.objective.sums(params, dict(self.arrays)).items()}
        loss, accuracy = (sums[name] / max(sums['pairs'], 1) for name in ('loss', 'right'))
        yield 'frozen_loss', loss
        yield 'frozen_accuracy', accuracy
        for name in self.phases if every_setting else ():
            yield f'loss/{name}', loss


def _unit(vectors_NxD: jax.Array) -> jax.Array:
    return vectors_NxD * jax.lax.rsqrt((vectors_NxD**2).sum(axis=-1, keepdims=True) + SHORTEST)


def _allowed(marks_BxGx2: jax.Array, there_BxP: jax.Array) -> jax.Array:
    """Whether pair j is a candidate of pair i, NxN: itself, and any that has neither text in common with it.

    An equal text would be a right answer that counts as a wrong one, or the text itself as its own negative.
    """
    first_Nx2, second_Nx2 = (marks_BxGx2[:, side::2].reshape(-1, 2) for side in (0, 1))

    def equal(one_Nx2: jax.Array, other_Nx2: jax.Array) -> jax.Array:
        return (one_Nx2[:, None] == other_Nx2[None]).all(axis=-1)

    crossed_NxN = equal(first_Nx2, second_Nx2)
    shared_NxN = equal(first_Nx2, first_Nx2) | equal(second_Nx2, second_Nx2) | crossed_NxN | crossed_NxN.T
    there_N = there_BxP.reshape(-1)
    both_NxN = there_N[:, None] & there_N[None]
    return (~shared_NxN & both_NxN) | jnp.eye(len(shared_NxN), dtype=bool)


def _of_texts(segments_BxL: jax.Array, texts: int) -> jax.Array:
    """Whether a piece is of a text of its row, BxGxL."""
    return segments_BxL[:, None, :] == jnp.arange(1, texts + 1)[None, :, None]


def _marks(tokens_BxL: jax.Array, positions_BxL: jax.Array, segments_BxL: jax.Array, texts: int) -> jax.Array:
    """64 bits of every text, BxGx2 in uint32, from its pieces and their places: equal texts have equal ones."""
    place_BxL = positions_BxL.astype(jnp.uint32)
    of_text_BxGxL = _of_texts(segments_BxL, texts)

    def half(seed: int) -> jax.Array:
        mixed_BxL = mix_words(tokens_BxL.astype(jnp.uint32) ^ mix_words(place_BxL + jnp.uint32(seed)))
        return jnp.where(of_text_BxGxL, mixed_BxL[:, None, :], 0).sum(axis=-1, dtype=jnp.uint32)

    return jnp.stack([half(seed) for seed in SEEDS], axis=-1)
