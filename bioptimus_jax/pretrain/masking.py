"""Masking on the device: a pure function of a row, a setting and a key, the same under every sharding.

Legend: B rows, L pieces a row, M prediction slots, S strategies, W pieces of the longest unit.

Every word gets a random score that its pieces inherit; a stable sort puts words in random order, intact.
A word is taken iff fewer than K pieces come before it, and then whole, so its own length plays no part
and long words are masked as often as short ones. What is a word here may be a piece or a span: `units.MASKINGS`.
Where a strategy weighs its units, the score is a waiting time: exponential, the shorter the more the unit weighs.
"""

import dataclasses
import functools
import math
from collections.abc import Collection, Mapping
from typing import Any, NamedTuple, cast

import jax
import jax.numpy as jnp
import numpy as np

from bioptimus_jax.pretrain.config import Phase, Pretrain
from bioptimus_jax.pretrain.unit_weights import Weighing
from bioptimus_jax.pretrain.units import (
    apart,
    begins_of,
    in_order,
    limited_starts,
    limits,
    longest_unit,
    number_of,
    overshoot,
    row_rates,
    strategy_of,
)
from bioptimus_jax.rows.blocks import TOKENIZER_WORD_STARTS
from bioptimus_jax.tokenizer.subwords import Subwords, Vocabulary

MASKED, REPLACED, UNCHANGED = 0, 1, 2
DRAWS_STREAM, RATE_STREAM = 4, 5
"""Folded into the key of a row for what only some strategies draw: whatever they draw, all others mask as before."""


class MaskingParams(NamedTuple):
    """One masking setting as scalars, traced in the step, so that one compiled step serves a whole curriculum.

    `strategy`: its number in `units.MASKINGS`; `part`, `parts`: its `limits`.
    """

    strategy: Any
    part: Any
    parts: Any
    rate: Any
    p_mask: Any
    p_random: Any
    draw_per_word: Any

    @classmethod
    def of(cls, phase: Phase, max_word_pieces: int) -> 'MaskingParams':
        """A phase's masking setting, as numpy's scalars."""
        part, parts = limits(phase.masking, max_word_pieces)
        return cls(
            strategy=np.int32(number_of(phase.masking)),
            part=np.int32(part),
            parts=np.int32(parts),
            rate=np.float32(phase.rate),
            p_mask=np.float32(phase.corruption[0]),
            p_random=np.float32(phase.corruption[1]),
            draw_per_word=np.bool_(phase.corruption_unit == 'word'),
        )


class Masked(NamedTuple):
    """A masked row: corrupted inputs, and for each slot its position, true token, weight, corruption kind and
    whether a unit (a word or a single piece) begins there; the slots of a unit lie side by side."""

    inputs_L: jax.Array
    slots_M: jax.Array
    targets_M: jax.Array
    weights_M: jax.Array
    kinds_M: jax.Array
    begins_M: jax.Array


@dataclasses.dataclass(frozen=True)
class Masker:
    """All that is static about masking, whoever asks: training, frozen evaluation, difficulty.

    `word`: where words begin, `config.pretrain.word`. `maskings`: the strategies of all phases, and no other is
    computed; `slots`: prediction slots a row, which suffice for all of them.
    """

    vocabulary: Vocabulary
    word: str
    maskings: tuple[str, ...]
    max_word_pieces: int
    slots: int

    @classmethod
    def of(
        cls, vocabulary: Vocabulary, settings: Pretrain, phases: Collection[Phase], row_pieces: int
    ) -> 'Masker':
        """The masker for rows of that many pieces under those phases."""
        maskings, slots = in_order(phase.masking for phase in phases), slots_of(settings, phases, row_pieces)
        return cls(vocabulary, settings.word, maskings, settings.max_word_pieces, slots)

    @property
    def longest(self) -> int:
        """Pieces of the longest unit under any of the strategies."""
        return max(longest_unit(masking, self.max_word_pieces) for masking in self.maskings)

    @property
    def joins(self) -> bool:
        """Whether a unit of any of the strategies may have several words, or several pieces wherever words begin."""
        return any(limits(masking, self.max_word_pieces)[1] > 1 for masking in self.maskings)

    @functools.cached_property
    def weighings(self) -> dict[str, Weighing]:
        """How the strategies that weigh their units do it with this vocabulary: looked up once, before the step."""
        given = {name: strategy_of(name).weights for name in self.maskings}
        return {
            name: weights.of(cast(Subwords, self.vocabulary)) for name, weights in given.items() if weights
        }

    def row_rates(self, setting: MaskingParams, keys_B: jax.Array) -> jax.Array:
        """The masking rate of each row, [B]: that of the setting, unless its strategy says another one."""
        return jax.vmap(self._row_rate, in_axes=(None, 0))(setting, keys_B)

    def _row_rate(self, setting: MaskingParams, key: jax.Array) -> jax.Array:
        draw = jax.random.uniform(jax.random.fold_in(key, RATE_STREAM))
        given = [strategy_of(masking).rate for masking in self.maskings]
        rates_S = jnp.stack([jnp.float32(of(setting.rate, draw) if of else setting.rate) for of in given])
        return self._chosen(rates_S, setting)

    def _chosen(self, values_Sx: jax.Array, setting: MaskingParams) -> jax.Array:
        """What is of the setting's strategy."""
        # The phase is a traced number, so all its run's strategies are computed and one is taken. A run has some of the
        # table's strategies, so their numbers have gaps; `searchsorted` needs them ascending (`in_order`).
        numbers_S = jnp.array([number_of(masking) for masking in self.maskings])  # ascending
        return values_Sx[jnp.searchsorted(numbers_S, setting.strategy)]

    def word_starts(self, batch: Mapping[str, Any]) -> Any:
        """True where a word begins, [B, L]: with white space before it (`whitespace`); or where the tokenizer has cut,
        as the rows say, or the tokens."""
        if self.word == 'whitespace':
            return batch['word_starts']
        cuts = batch.get(TOKENIZER_WORD_STARTS)
        return jnp.asarray(self.vocabulary.begins_V)[batch['tokens']] if cuts is None else cuts

    def maskable(self, tokens_BxL: Any, segments_BxL: Any) -> jax.Array:
        """False for special tokens and padding, [B, L]."""
        return (segments_BxL > 0) & ~jnp.asarray(self.vocabulary.special_V)[tokens_BxL]

    def mask(
        self,
        tokens_BxL: Any,
        starts_BxL: Any,
        maskable_BxL: jax.Array,
        setting: MaskingParams,
        keys_B: jax.Array,
    ) -> Masked:
        """Whole units up to the budget of each row, corrupted, each row by its own key.

        `starts_BxL` is True where a word begins; a maskable piece after one that is not always begins a word.
        """
        of_rows = jax.vmap(self._mask_row, in_axes=(0, 0, 0, None, 0))
        return of_rows(tokens_BxL, starts_BxL, maskable_BxL, setting, keys_B)

    def _mask_row(
        self,
        tokens_L: jax.Array,
        starts_L: jax.Array,
        maskable_L: jax.Array,
        setting: MaskingParams,
        key: jax.Array,
    ) -> Masked:
        length = tokens_L.shape[0]
        select_key, corrupt_key, replace_key, budget_key = jax.random.split(key, 4)
        draws_L = jax.random.uniform(jax.random.fold_in(key, DRAWS_STREAM), (length,))
        begins_SxL = jnp.stack([begins_of(masking, starts_L, draws_L) for masking in self.maskings])
        begins_L = self._chosen(begins_SxL, setting)
        maskable_count = maskable_L.sum()
        if self.weighings:
            weights_L = self._weights(tokens_L, starts_L, maskable_L, setting)
            maskable_L = maskable_L & (weights_L > 0)
        # A unit begins at every special token and behind it, so that none spans two texts or takes one in.
        apart_L = apart(maskable_L, jnp)
        # Known to be 1 without a strategy that joins words: `limited_starts` then compiles neither its sums nor its
        # second cut.
        parts = setting.parts if self.joins else 1
        unit_starts_L = limited_starts(begins_L, starts_L, apart_L, setting.part, parts, jax.lax.cummax)
        unit_L, offset_L, unit_length_L = _units(unit_starts_L)

        # The unit on the border is taken whole, and overshoots by half of its length, less one, on average. Long units
        # are on the border more often, hence the mean over pieces, not over units. The draw makes the mean of the
        # rounded budget the unrounded one.
        over = (jnp.where(maskable_L, unit_length_L, 0).sum() / jnp.maximum(maskable_count, 1) - 1) / 2
        scores_L = jax.random.uniform(select_key, (length,))[unit_L]
        rate = setting.rate
        if any(strategy_of(masking).rate for masking in self.maskings):
            rate = self._row_rate(setting, key)
        if self.weighings:
            weights_L = _sums(jnp.where(maskable_L, weights_L, 0), unit_L) / unit_length_L
            weighs = self._chosen(jnp.array([m in self.weighings for m in self.maskings]), setting)
            over = jnp.where(weighs, overshoot(weights_L, unit_length_L, rate * maskable_count, jnp), over)
            times_L = -jnp.log1p(-scores_L) / weights_L
            scores_L = jnp.where(weighs, times_L, scores_L)
        wanted = rate * maskable_count - over + jax.random.uniform(budget_key)
        budget = jnp.where(maskable_count > 0, jnp.maximum(1, jnp.floor(wanted)), 0).astype(jnp.int32)

        # One score a unit, and a stable sort: the pieces of a unit stay side by side and in order. What may not be
        # masked comes last. A piece is taken by the place of its unit's first piece, so that no unit is torn.
        order_L = jnp.argsort(jnp.where(maskable_L, scores_L, jnp.inf), stable=True)
        before_L = jnp.arange(length) - offset_L[order_L]
        taken_L = maskable_L[order_L] & (before_L < budget)

        draws_L = jax.random.uniform(corrupt_key, (length,))
        # The draw of the unit's number, the same for all of its pieces: the whole word is [MASK]ed, replaced or kept.
        draws_L = jnp.where(setting.draw_per_word, draws_L[unit_L], draws_L)
        replacements_N = jnp.asarray(self.vocabulary.drawn_N)
        replacement_L = replacements_N[jax.random.randint(replace_key, (length,), 0, replacements_N.shape[0])]
        is_mask_L = draws_L < setting.p_mask
        is_random_L = ~is_mask_L & (draws_L < setting.p_mask + setting.p_random)
        visible_L = jnp.where(is_random_L, replacement_L, tokens_L)
        corrupted_L = jnp.where(is_mask_L, self.vocabulary.mask, visible_L)
        kinds_L = jnp.where(is_mask_L, MASKED, jnp.where(is_random_L, REPLACED, UNCHANGED))

        taken_at_L = jnp.zeros(length, bool).at[order_L].set(taken_L)
        # Units are taken in order from the first on, and `slots` suffices: only the last slots of a row are empty,
        # as losses over the vocabulary need it.
        weights_M = taken_L[: self.slots]
        # Empty slots point at place 0, a valid index; their weight of 0 takes them out of every sum.
        slots_M = jnp.where(weights_M, order_L[: self.slots], 0)
        return Masked(
            inputs_L=jnp.where(taken_at_L, corrupted_L, tokens_L),
            slots_M=slots_M,
            targets_M=tokens_L[slots_M],
            weights_M=weights_M.astype(jnp.float32),
            kinds_M=kinds_L[slots_M],
            begins_M=weights_M & (offset_L[order_L[: self.slots]] == 0),
        )

    def _weights(
        self, tokens_L: jax.Array, starts_L: jax.Array, maskable_L: jax.Array, setting: MaskingParams
    ) -> jax.Array:
        """The weight of each piece; 0 throughout a word or of a piece that must not be taken, 1 where none is said."""
        words_L, none_L = starts_L | apart(maskable_L, jnp), jnp.ones(len(tokens_L), jnp.float32)

        def weighed(name: str) -> jax.Array:
            if name not in self.weighings:
                return none_L
            weights_L = self.weighings[name](tokens_L, words_L, jnp)
            if strategy_of(name).words:  # a word is taken whole or not at all
                word_L = jnp.cumsum(words_L) - 1
                weights_L = _sums(weights_L, word_L) / _sums(none_L, word_L)
            return weights_L

        return self._chosen(jnp.stack([weighed(masking) for masking in self.maskings]), setting)

    def by_length(self, masked: Masked, starts_BxL: Any, maskable_BxL: Any) -> dict[str, jax.Array]:
        """Selected and maskable pieces by length of their word, [W + 1] each, whatever the setting draws."""
        # Words are counted under every setting, so that the records of phases with other units can be compared.
        previous_BxL = jnp.pad(maskable_BxL[:, :-1], ((0, 0), (1, 0)))
        starts_BxL = starts_BxL | ~maskable_BxL | ~previous_BxL
        # Longer words are masked in parts of so many pieces, so they count there.
        length, longest = starts_BxL.shape[1], min(self.longest, self.max_word_pieces)
        word_BxL = jnp.cumsum(starts_BxL, axis=1) - 1
        count = jax.vmap(lambda w: jax.ops.segment_sum(jnp.ones(length, jnp.int32), w, length)[w])
        lengths_BxL = jnp.minimum(count(word_BxL), longest)
        chosen_BxM = jnp.take_along_axis(lengths_BxL, masked.slots_M, axis=1)
        one_hot = jax.nn.one_hot(jnp.where(maskable_BxL, lengths_BxL, -1), longest + 1)
        selected = (jax.nn.one_hot(chosen_BxM, longest + 1) * masked.weights_M[..., None]).sum((0, 1))
        return {'selected_by_length': selected, 'maskable_by_length': one_hot.sum((0, 1))}


def slots_of(settings: Pretrain, phases: Collection[Phase], row_pieces: int) -> int:
    """Slots that suffice for the longest unit and the largest rate of the phases."""
    longest = max(longest_unit(phase.masking, settings.max_word_pieces) for phase in phases)
    return slot_count(max(highest_rate(phase) for phase in phases), row_pieces, longest)


def highest_rate(phase: Phase) -> float:
    """The highest masking rate that a row of the phase may have."""
    return row_rates(phase.masking, phase.rates)[1]


def slot_count(max_rate: float, row_pieces: int, longest: int) -> int:
    """Static number of prediction slots M that no row can exceed, rounded up to a multiple of 8."""
    # The unit on the border is taken whole, so a row exceeds its budget by a unit less one piece at most.
    return min(math.ceil((math.ceil(max_rate * row_pieces - 1e-6) + longest - 1) / 8) * 8, row_pieces)


def _sums(values_L: jax.Array, unit_L: jax.Array) -> jax.Array:
    """For every piece the sum over its unit."""
    return jax.ops.segment_sum(values_L, unit_L, len(unit_L))[unit_L]


def seed_key(seed: int) -> jax.Array:
    """The key that everything random in training comes from."""
    return jax.random.key(seed, impl='threefry2x32')


def row_key(seed_key: jax.Array, step: jax.Array, position: jax.Array) -> jax.Array:
    """The key of one row: seed, then step, then position in the *global* batch."""
    # Keyed by the global row and not by the device's own, so that sharding and micro-batches cannot change masks.
    return jax.random.fold_in(jax.random.fold_in(seed_key, step), position)


def row_keys(seed_key: jax.Array, step: jax.Array, rows: int) -> jax.Array:
    """The keys of the first `rows` of the global batch at a step, [B]."""
    return jax.vmap(lambda position: row_key(seed_key, step, position))(jnp.arange(rows))


def _units(starts_L: jax.Array) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Unit number, offset within the unit and length of the unit, for every piece."""
    length = starts_L.shape[0]
    index_L, unit_L = jnp.arange(length), jnp.cumsum(starts_L) - 1
    offset_L = index_L - jax.lax.cummax(jnp.where(starts_L, index_L, 0))
    unit_length_L = jax.ops.segment_sum(jnp.ones(length, jnp.int32), unit_L, length)[unit_L]
    return unit_L, offset_L, unit_length_L
