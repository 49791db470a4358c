"""Masked language modelling and next sentence prediction (Devlin et al. 2019): the two means are added, 1 : 1.

B rows, L pieces a row, G pairs a row, D hidden size.
"""

import functools
import zlib
from collections.abc import Mapping, Sequence
from typing import Any, cast

import jax
import jax.numpy as jnp
import numpy as np

from bioptimus_jax.errors import ConfigError
from bioptimus_jax.model.architecture import Architecture, Paired
from bioptimus_jax.model.folder import source_folder
from bioptimus_jax.model.tensors import parameters_in
from bioptimus_jax.pretrain.cross_entropy import cross_entropy
from bioptimus_jax.pretrain.layouts import LAYOUTS, layout_of
from bioptimus_jax.pretrain.objective import Example
from bioptimus_jax.pretrain.objectives.mlm import MaskedLM, MaskedRows, inputs
from bioptimus_jax.pretrain.rows import FOLLOWS, UNTOLD
from bioptimus_jax.schema import Experiment
from bioptimus_jax.trees import flatten, unflatten


class NextSentence(MaskedLM):
    """Whether the second text of a pair follows the first, from the state at [CLS], beside what is masked in both."""

    @classmethod
    def check(cls, config: Experiment) -> None:
        """Also refuse rows without pairs, and pairs that all follow."""
        super().check(config)
        if not layout_of(config.rows.layout).labelled:
            choices = ' or '.join(name for name, layout in LAYOUTS.items() if layout.labelled)
            raise ConfigError(
                f'config.pretrain.objective: {config.pretrain.objective} needs pairs of texts, some of them random, '
                f'but config.rows.layout={config.rows.layout} has none; set config.rows.layout={choices}'
            )

    def __post_init__(self) -> None:
        """Raise ConfigError for a family without a head for pairs."""
        if self.architecture.with_pairs() is None:
            raise ConfigError(
                f'config.pretrain.objective: {self.config.pretrain.objective} needs a head for pairs, which '
                f'{self.architecture.title} does not have; take a family that has one, as bert, or another objective'
            )

    @functools.cached_property
    def paired(self) -> Paired:
        """The model with that head and its pooler."""
        return cast(Paired, self.architecture.with_pairs())

    def exports(self, params: Mapping[str, Any]) -> dict[str, tuple[Architecture, Mapping[str, Any]]]:
        """The model with that head."""
        return {'': (self.paired, params)}

    @property
    def all_rules(self) -> tuple:
        """Those of the model with that head."""
        return tuple(self.paired.rules)

    def start(self, params: Mapping[str, Any], key: jax.Array) -> Mapping[str, Any]:
        """With pooler and head: the source's where the model goes on from its weights and it has them, else drawn."""
        given, deviation = flatten(params), self.paired.initializer_range
        added = {path: shape for path, shape in self.paired.shapes().items() if path not in given}
        traced = any(isinstance(leaf, jax.core.Tracer) for leaf in given.values())  # a plan: for shapes alone
        continues = self.config.surgery.initialisation.source and not traced
        source = source_folder(self.config.source) if continues else None
        found = parameters_in(source, self.paired, added) if source else {}
        for path, shape in added.items():
            drawn = deviation * jax.random.normal(jax.random.fold_in(key, zlib.crc32(path.encode())), shape)
            random = drawn if path.endswith('/kernel') else jnp.zeros(shape)
            given[path] = jnp.asarray(found[path]) if path in found else random
        return unflatten(given)

    def example(
        self, batch: dict[str, jax.Array], setting: dict[str, jax.Array], keys_B: jax.Array
    ) -> Example:
        """As masked, and the number of pairs."""
        example = super().example(batch, setting, keys_B)
        told_BxG = example.rows.pairs.labels_BxG > UNTOLD
        return example._replace(weights={**example.weights, 'pairs': told_BxG.sum()})

    def loss(
        self, params: Any, frozen: Any, rows: MaskedRows, dropout_key: jax.Array | None
    ) -> tuple[dict[str, jax.Array], dict[str, jax.Array]]:
        """Both terms; the sums also count pairs."""
        masked, pairs, compute = rows.masked, rows.pairs, self.compute
        assert pairs is not None  # `check` has seen that rows are of pairs
        states_BxLxD = self.architecture.encode(
            params, inputs(rows), compute=compute, dropout_key=dropout_key
        )
        output = self.in_slots(params, states_BxLxD, masked)
        masked_loss, *of_slots = cross_entropy(*output, masked.targets_M, masked.weights_M, compute)
        sums = self.slot_sums(masked, *of_slots)
        first_BxGxD = jnp.take_along_axis(states_BxLxD, pairs.begins_BxG[..., None], axis=1)
        logits_BxGx2 = self.paired.pair_logits(params, first_BxGxD)
        told_BxG, labels_BxG = pairs.labels_BxG > UNTOLD, jnp.maximum(pairs.labels_BxG - FOLLOWS, 0)
        likely_BxGx2 = jax.nn.log_softmax(logits_BxGx2)
        losses_BxG = -jnp.take_along_axis(likely_BxGx2, labels_BxG[..., None], axis=-1)[..., 0]
        loss = (losses_BxG * told_BxG).sum()
        right = ((logits_BxGx2.argmax(axis=-1) == labels_BxG) & told_BxG).sum()
        counted = {'pair_loss': jax.lax.stop_gradient(loss), 'pair_right': right, 'pairs': told_BxG.sum()}
        return {'slots': masked_loss, 'pairs': loss}, {**sums, **counted}

    def metrics(self, example: Example, sums: dict[str, jax.Array]) -> dict[str, jax.Array]:
        """Also loss and accuracy of pairs."""
        return {**super().metrics(example, sums), **_of_pairs(sums)}

    def record(
        self, steps: Sequence[Mapping[str, Any]], finite: Sequence[Mapping[str, Any]]
    ) -> dict[str, Any]:
        """Also loss and accuracy of pairs."""
        means = {name: float(np.mean([m[name] for m in finite])) for name in ('nsp_loss', 'nsp_accuracy')}
        return {**super().record(steps, finite), **means}

    def frozen_scores(self, totals: Mapping[str, float]) -> dict[str, float]:
        """Also those of pairs; `frozen_loss` is that of masked pieces alone."""
        of_pairs = {f'frozen_{name}': value for name, value in _of_pairs(totals).items()}
        return {**super().frozen_scores(totals), **of_pairs}


def _of_pairs(sums: Mapping[str, Any]) -> dict[str, Any]:
    pairs = sums['pairs'] + (sums['pairs'] == 0)
    return {'nsp_loss': sums['pair_loss'] / pairs, 'nsp_accuracy': sums['pair_right'] / pairs}


OBJECTIVE = NextSentence
