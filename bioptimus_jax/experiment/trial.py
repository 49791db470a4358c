"""One batch of an experiment without a run, for tests of what a user adds to pre-training.

B rows, L pieces.
"""

import dataclasses
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from ml_collections import ConfigDict

from bioptimus_jax.experiment.schema import Experiment
from bioptimus_jax.model.attention import Attend
from bioptimus_jax.model.config import FAMILIES
from bioptimus_jax.pretrain import curriculum
from bioptimus_jax.pretrain.backends import Sharded, find_flaw
from bioptimus_jax.pretrain.objective import Tensors, make_objective
from bioptimus_jax.pretrain.sharding import make_mesh
from bioptimus_jax.pretrain.step import example_at, sharded_step
from bioptimus_jax.records.curriculum import RowCounts
from bioptimus_jax.tokenizer.config import TOKENIZERS

NEVER = 10**9  # pairs of pieces are merged when they are seen so often


class Trial:
    """A tiny model of the family of a configuration and one batch of words, trained by the configuration's objective.

    `config`: as `ext.defaults` gives it; its phases get a step each, and its batch has as many rows as `lengths`.
    `words`: what the batch is made of, drawn at random to fill the rows; every character is a piece. `lengths`: the
    pieces of the documents of every row. `params`: the parameters before the first step.
    """

    def __init__(
        self, config: ConfigDict, words: Sequence[str], lengths: Sequence[Sequence[int]], seed: int = 0
    ):
        rows, pieces = len(lengths), max(map(sum, lengths))
        config.pretrain.batch_rows = rows
        for name in config.phases:
            config.phase[name].update(duration=1.0, duration_unit='steps')
        experiment, mesh = Experiment.from_config(config), make_mesh(1)
        single = dataclasses.replace(experiment.vocab, min_frequency=NEVER)
        known = TOKENIZERS.load(single.tokenizer).train(dict.fromkeys(words, 1), single, None)
        family = FAMILIES.load(experiment.model.family)
        architecture = family(
            vocab_size=len(known.tokens),
            max_positions=pieces,
            hidden=16,
            layers=1,
            heads=2,
            intermediate=16,
            dropout=0.0,
            attention_dropout=0.0,
        )
        self.objective = make_objective(experiment, architecture, known, pieces, mesh, print)
        self._table = curriculum.table(
            curriculum.make_schedule(experiment, RowCounts(rows, 1, 1)), experiment
        )
        spelled = [encoding.ids for encoding in known.encode(words)]
        drawn, tokens_BxL = np.random.default_rng(seed), np.zeros((rows, pieces), np.int32)
        starts_BxL = np.zeros((rows, pieces), bool)
        for row in range(rows):
            filled = 0
            while filled < pieces:
                word = spelled[drawn.integers(len(words))][: pieces - filled]
                tokens_BxL[row, filled : filled + len(word)] = word
                starts_BxL[row, filled] = True
                filled += len(word)
        most = max(map(len, lengths))
        lengths_BxG = np.array([[*row, *[0] * (most - len(row))] for row in lengths], np.int32)
        self.batch: Tensors = jax.device_put(
            {'tokens': tokens_BxL, 'word_starts': starts_BxL, 'segment_lengths': lengths_BxG}
        )
        self._step, self._state = sharded_step(
            self.objective, mesh, architecture.initial_parameters(jax.random.key(seed))
        )
        self.params = jax.tree.map(np.asarray, self._state['params'])

    def example(self) -> Any:
        """What the first step predicts from what."""
        return example_at(self.objective, self.batch, self._table, jnp.int32(0))

    def masked(self) -> np.ndarray:
        """Where the first step predicts a piece: bool [B, L]. For objectives that mask."""
        masked = self.example().rows.masked
        taken_BxL = np.zeros(self.batch['tokens'].shape, bool)
        rows, slots = np.nonzero(np.asarray(masked.weights_M))
        taken_BxL[rows, np.asarray(masked.slots_M)[rows, slots]] = True
        return taken_BxL

    def terms(self, params: Any) -> dict[str, jax.Array]:
        """The mean of every term of the loss over the whole batch, under these parameters."""
        example = self.example()
        sums, _ = self.objective.loss(params, self._step.frozen, example.rows, None)
        return {name: sums[name] / weight for name, weight in example.weights.items()}

    def step(self, params: Any) -> tuple[Any, dict[str, jax.Array]]:
        """The gradient that the compiled step takes under these parameters, if nothing clips it; and its metrics."""
        state = {**self._state, 'params': jax.tree.map(jnp.array, params)}
        after, metrics = self._step(jax.tree.map(jnp.array, state), self.batch, self._table)
        beta = self.objective.config.pretrain.beta1
        return jax.tree.map(lambda moment: moment / (1 - beta), after['optimizer'][1].mu), metrics


def attention_flaw(attend: Attend, windows: Sequence[int | None] = (None, 5)) -> str | None:
    """What the check at the start of a run finds wrong with an attention; None for nothing."""
    flaws = (find_flaw(Sharded(attend, make_mesh(1)), 2, 8, 48, 'float32', window) for window in windows)
    return next(filter(None, flaws), None)
