"""Masked language modelling and next sentence prediction (Devlin et al. 2019): the two means are added, 1 : 1.

B rows, L pieces a row, G pairs a row, D hidden size.
"""

import functools
import zlib
from collections.abc import Mapping
from typing import Any, cast

import jax
import jax.numpy as jnp

from bioptimus_jax.errors import ConfigError
from bioptimus_jax.model.architecture import Architecture, Paired, Rule
from bioptimus_jax.model.folder import source_folder
from bioptimus_jax.model.tensors import parameters_in
from bioptimus_jax.model.trees import Params, flatten, unflatten
from bioptimus_jax.pretrain.config import HasTraining
from bioptimus_jax.pretrain.masking import MaskingParams
from bioptimus_jax.pretrain.objective import Example, Key, Records, Tensors, Told, means
from bioptimus_jax.pretrain.objectives.mlm import MaskedLM, MaskedRows
from bioptimus_jax.rows.blocks import FOLLOWS, UNLABELLED
from bioptimus_jax.rows.layouts import LAYOUTS, layout_of


class NextSentence(MaskedLM):
    """Whether the second text of a pair follows the first, from the state at [CLS], beside what is masked in both."""

    does = 'masked language modelling and next sentence prediction'
    masking = staticmethod(MaskedLM.masking)
    heldout_loss = MaskedLM.heldout_loss

    @classmethod
    def check(cls, config: HasTraining) -> None:
        """Refuse rows without pairs, and pairs that all follow, beside what every objective refuses."""
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

    def exports(self, params: Params) -> dict[str, tuple[Architecture, Params]]:
        """The model with that head."""
        return {'': (self.paired, params)}

    @property
    def all_rules(self) -> tuple[Rule, ...]:
        """Rules of every objective, and those of the model with that head."""
        return (*super().all_rules, *self.paired.rules)

    def start(self, params: Params, key: jax.Array) -> Params:
        """The parameters with pooler and head: the source's where the model goes on from its weights and it has them,
        else drawn."""
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

    def example(self, batch: Tensors, setting: MaskingParams, keys_B: jax.Array) -> Example:
        """A masked batch, and the number of pairs."""
        example = super().example(batch, setting, keys_B)
        labelled_BxG = example.rows.pairs.labels_BxG > UNLABELLED
        return example._replace(weights={**example.weights, 'pairs': labelled_BxG.sum()})

    def loss(self, params: Any, frozen: Any, rows: MaskedRows, dropout_key: Key) -> tuple[Tensors, Tensors]:
        """Both terms; the sums also count pairs."""
        pairs = rows.pairs
        assert pairs is not None  # `check` has seen that rows are of pairs
        slots_BxM = rows.masked.slots_M
        read = jnp.concatenate([slots_BxM, pairs.begins_BxG], axis=1)
        states_BxMxD, first_BxGxD = jnp.split(
            self.states(params, rows, dropout_key, read), [slots_BxM.shape[1]], axis=1
        )
        masked_loss, *of_slots = self.slot_losses(params, states_BxMxD, rows.masked)
        sums = self.slot_sums(rows.masked, *of_slots)
        logits_BxGx2 = self.paired.pair_logits(params, first_BxGxD)
        # FOLLOWS and RANDOM become 0 and 1, the order of the logits; UNLABELLED also becomes 0, without weight.
        labelled_BxG, labels_BxG = pairs.labels_BxG > UNLABELLED, jnp.maximum(pairs.labels_BxG - FOLLOWS, 0)
        likely_BxGx2 = jax.nn.log_softmax(logits_BxGx2)
        losses_BxG = -jnp.take_along_axis(likely_BxGx2, labels_BxG[..., None], axis=-1)[..., 0]
        loss = (losses_BxG * labelled_BxG).sum()
        right = ((logits_BxGx2.argmax(axis=-1) == labels_BxG) & labelled_BxG).sum()
        counted = {'pair_loss': jax.lax.stop_gradient(loss), 'pair_right': right, 'pairs': labelled_BxG.sum()}
        return {'slots': masked_loss, 'pairs': loss}, {**sums, **counted}

    def metrics(self, example: Example, sums: Tensors) -> Tensors:
        """Metrics, with loss and accuracy of pairs."""
        return {**super().metrics(example, sums), **_of_pairs(sums)}

    def record(self, steps: Records, finite: Records) -> Told:
        """The record of some steps, with loss and accuracy of pairs."""
        return {**super().record(steps, finite), **means(finite, ('nsp_loss', 'nsp_accuracy'))}

    def frozen_scores(self, totals: Mapping[str, float]) -> dict[str, float]:
        """Scores, with those of pairs; `frozen_loss` is that of masked pieces alone."""
        of_pairs = {f'frozen_{name}': value for name, value in _of_pairs(totals).items()}
        return {**super().frozen_scores(totals), **of_pairs}


def _of_pairs(sums: Mapping[str, Any]) -> dict[str, Any]:
    pairs = sums['pairs'] + (sums['pairs'] == 0)
    return {'nsp_loss': sums['pair_loss'] / pairs, 'nsp_accuracy': sums['pair_right'] / pairs}


OBJECTIVE = NextSentence
