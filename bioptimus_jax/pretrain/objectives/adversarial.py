"""Adversarial pre-training (Liu et al. 2020, ALUM; PubMedBERT, Table 9): predictions that noise does not change.

Noise is added to what the embedding block gives to the first layer. It is moved once in the direction in which the
predictions change most; then the divergences between the predictions with and without it, in both directions, come to
the loss. In the released code the noise is not projected to a small ball but stretched: every piece has a largest
entry of 1. `projection` has both.

B rows, L pieces a row, M slots, D hidden size.
"""

import dataclasses
import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from bioptimus_jax.config.fields import key
from bioptimus_jax.config.plugins import meanings
from bioptimus_jax.errors import ConfigError
from bioptimus_jax.model.architecture import OutputLayer
from bioptimus_jax.pretrain.cross_entropy import Arrays, Divergence, Shares, in_chunks, kl, of_targets
from bioptimus_jax.pretrain.masking import MaskingParams
from bioptimus_jax.pretrain.objective import Example, Key, Records, Tensors, Told, means
from bioptimus_jax.pretrain.objectives.mlm import MaskedLM, MaskedRows, inputs, plain_evaluation
from bioptimus_jax.pretrain.throughput import forward_flops_per_token, training_flops_per_token

STREAM = 5  # of a row's key, for noise; masking takes those before
TOLD = ('kl_clean', 'kl_noisy', 'noise_largest', 'noise_norm', 'step_norm')

PROJECTIONS: dict[str, Callable[[jax.Array, float], jax.Array]] = {
    # ALUM's code: no projection, since noise of any length becomes as long as the states that it is added to.
    'unit_linf': lambda noise, epsilon: noise / (jnp.abs(noise).max(axis=-1, keepdims=True) + 1e-6),
    # The paper.
    'clip': lambda noise, epsilon: jnp.clip(noise, -epsilon, epsilon),
}
"""What `config.objective.adversarial.projection` may be: `(noise_BxLxD, epsilon) -> noise_BxLxD`."""


@dataclasses.dataclass(frozen=True)
class Perturbation:
    """`drawn`: there is noise. `moved`: by the inner gradient."""

    meaning: str
    drawn: bool
    moved: bool


PERTURBATIONS = {
    'worst': Perturbation('moved to change the predictions', drawn=True, moved=True),
    'noise_only': Perturbation('a random direction of the same length', drawn=True, moved=False),
    'dropout_only': Perturbation('none, so that other dropout is all that differs', drawn=False, moved=False),
}
"""What `config.objective.adversarial.noise` may be: the method and two controls."""


@dataclasses.dataclass(frozen=True)
class Settings:
    """Adversarial pre-training (ALUM): noise on the embeddings, and what it costs to heed it."""

    alpha: float = key(10.0, 'weight of the two divergences', low=0)
    noise: str = key(
        'worst',
        'the noise is ' + meanings(PERTURBATIONS),
        one_of=PERTURBATIONS,
    )
    deviation: float = key(1e-5, 'deviation of the noise before it is moved', low=0)
    step: float = key(1e-3, 'times the gradient: how far it is moved', low=0)
    projection: str = key(
        'unit_linf',
        'then unit_linf: the largest entry of a piece becomes 1, as in the released code; clip: no entry is beyond '
        'epsilon, as in the paper',
        one_of=PROJECTIONS,
    )
    epsilon: float = key(1e-5, 'bound of clip', low=0)


class NoisyRows(NamedTuple):
    """Masked rows with what their noise needs: a key, and what the divergence is divided by, the same for all."""

    clean: MaskedRows
    keys_B: Any
    divisor_B: Any


@dataclasses.dataclass(frozen=True)
class Smooth:
    """A `Loss` of clean and noisy logits: cross-entropy of the clean ones, and where `heeded` alpha times the
    divergences of each from the other. A divergence has gradients by its second distribution alone."""

    alpha: float

    def __call__(self, logits: Arrays, others: Arrays) -> tuple[Arrays, Arrays]:
        """The loss; whether the clean target is the most probable; KL(clean || noisy), KL(noisy || clean)."""
        targets_BxC, heeded_BxC = others
        (losses_BxC, correct_BxC), (change_BxCxV,) = of_targets(logits[:1], (targets_BxC,))
        clean, noisy = (Shares.of(x) for x in logits)
        both = heeded_BxC * kl(clean, noisy), heeded_BxC * kl(noisy, clean)
        pull_BxCxV = self.alpha * heeded_BxC[..., None] * (clean.shares_BxCxV - noisy.shares_BxCxV)
        total_BxC = losses_BxC + self.alpha * (both[0] + both[1])
        return (total_BxC, losses_BxC, correct_BxC, *both), (change_BxCxV + pull_BxCxV, -pull_BxCxV)


class Adversarial(MaskedLM):
    """The mean over slots of cross-entropy and alpha times both divergences."""

    Settings = Settings
    does = 'masked language modelling, with predictions that noise on the embeddings changes little'
    masking = staticmethod(MaskedLM.masking)
    heldout_loss = MaskedLM.heldout_loss
    passes = 2
    distributions = 3  # clean, noisy, and what pulls each towards the other

    def __post_init__(self) -> None:
        """Raise ConfigError for noise that is lost beside states of a size of 1 in the type of the products."""
        settings, kind = self.settings, jnp.dtype(self.compute.dtype)
        largest = float(PROJECTIONS[settings.projection](jnp.ones((1, 1, 1)), settings.epsilon).max())
        if self.perturbation.drawn and largest < float(jnp.finfo(kind).eps) / 2:
            raise ConfigError(
                f'config.objective.adversarial.epsilon: noise of at most {largest:g} is lost in {kind.name}; '
                'set config.pretrain.dtype=float32, or another projection'
            )

    @functools.cached_property
    def perturbation(self) -> Perturbation:
        """What the noise is."""
        return PERTURBATIONS[self.settings.noise]

    def example(self, batch: Tensors, setting: MaskingParams, keys_B: jax.Array) -> Example:
        """A masked batch with a key for each row."""
        found = super().example(batch, setting, keys_B)
        keys_B = jax.vmap(lambda key: jax.random.fold_in(key, STREAM))(keys_B)
        # The gradient that moves the noise is one of the mean over the whole batch, in every micro-batch.
        divisor_B = jnp.broadcast_to(jnp.maximum(found.weights['slots'], 1), keys_B.shape)
        return found._replace(rows=NoisyRows(found.rows, keys_B, divisor_B))

    def loss(self, params: Any, frozen: Any, rows: Any, dropout_key: Key) -> tuple[Tensors, Tensors]:
        """The sum over the slots, `slot_sums` of the clean pass, divergences, sizes of noise, and rows left out."""
        masked, compute = rows.clean.masked, self.compute
        # Every pass draws its own dropout; the noise is added to what the clean one began with.
        first, second, third = (None,) * 3 if dropout_key is None else jax.random.split(dropout_key, 3)
        embed = functools.partial(self.architecture.embed, compute=compute)
        embedded_BxLxD = embed(params, inputs(rows.clean), dropout_key=first)
        clean = self.predicted(params, rows, embedded_BxLxD, first)
        # The noisy pass begins with these as constants: embeddings learn from the clean pass alone, but the table
        # also as the output layer of both.
        given_BxLxD, given = jax.lax.stop_gradient((embedded_BxLxD, clean))
        before_BxLxD = self.drawn(rows, given_BxLxD)
        still = jax.lax.stop_gradient(params)
        gradient_BxLxD = jnp.zeros_like(before_BxLxD)
        if self.perturbation.moved:
            gradient_BxLxD = jax.grad(self.divergence)(before_BxLxD, still, rows, given_BxLxD, given, second)
        noise_BxLxD, heeded_B = self.moved(before_BxLxD, gradient_BxLxD)
        noisy = self.predicted(params, rows, given_BxLxD + noise_BxLxD.astype(given_BxLxD.dtype), third)
        heeded_BxM = jnp.broadcast_to(heeded_B.astype(jnp.float32)[:, None], masked.weights_M.shape)
        loss = Smooth(self.settings.alpha)
        total, (_, losses_BxM, correct_BxM, *both) = in_chunks(
            loss, (clean, noisy), (masked.targets_M, heeded_BxM), masked.weights_M, compute
        )
        real_BxL = (rows.clean.segments_BxL > 0).astype(jnp.float32)
        moved_BxLxD = jnp.where(heeded_B[:, None, None], self.settings.step * gradient_BxLxD, 0)
        sizes = {
            **{name: (x * masked.weights_M).sum() for name, x in zip(TOLD, both)},
            'noise_largest': (jnp.abs(noise_BxLxD).max(axis=-1) * real_BxL).sum(),
            'noise_norm': (jnp.linalg.norm(noise_BxLxD, axis=-1) * real_BxL).sum(),
            'step_norm': (jnp.linalg.norm(moved_BxLxD, axis=-1) * real_BxL).sum(),
            'pieces': real_BxL.sum(),
            'left_out': (~heeded_B).sum(),
        }
        sums = self.slot_sums(masked, losses_BxM, correct_BxM)
        return {'slots': total}, {**sums, **jax.lax.stop_gradient(sizes)}

    def predicted(self, params: Any, rows: NoisyRows, embedded_BxLxD: jax.Array, key: Key) -> OutputLayer:
        """What the logits of the slots are made of, from what the embedding block gave."""
        slots_BxM = rows.clean.masked.slots_M
        options: Any = dict(
            compute=self.compute, dropout_key=key, embedded_BxLxD=embedded_BxLxD, slots=slots_BxM
        )
        return self.output(params, self.architecture.encode(params, inputs(rows.clean), **options))

    def drawn(self, rows: NoisyRows, like_BxLxD: jax.Array) -> jax.Array:
        """The noise before it is moved, float32: by row, so that it depends on no sharding."""
        if not self.perturbation.drawn:
            return jnp.zeros(like_BxLxD.shape)
        shape = like_BxLxD.shape[1:]
        normal_BxLxD = jax.vmap(lambda key: jax.random.normal(key, shape))(rows.keys_B)
        return self.settings.deviation * self.compute.place(normal_BxLxD, 'rows', None, None)

    def divergence(
        self,
        noise_BxLxD: jax.Array,
        params: Any,
        rows: NoisyRows,
        given_BxLxD: jax.Array,
        given: OutputLayer,
        dropout_key: Key,
    ) -> jax.Array:
        """KL(given || with this noise), by the mean over the slots of the whole batch."""
        noisy_BxLxD = given_BxLxD + noise_BxLxD.astype(given_BxLxD.dtype)
        noisy = self.predicted(params, rows, noisy_BxLxD, dropout_key)
        weights_BxM = rows.clean.masked.weights_M
        total, _ = in_chunks(Divergence(), (noisy, given), (), weights_BxM, self.compute, tables=False)
        return total / rows.divisor_B[0]

    def moved(self, before_BxLxD: jax.Array, gradient_BxLxD: jax.Array) -> tuple[jax.Array, jax.Array]:
        """The noise after its step, and which rows are heeded: those of a finite gradient.

        Where it is not finite the noise is 0. ALUM's code then leaves out the whole step's divergence; a row at a time
        depends neither on micro-batches nor on devices.
        """
        finite_B = jnp.isfinite(gradient_BxLxD).all(axis=(1, 2))
        after_BxLxD = before_BxLxD + self.settings.step * gradient_BxLxD
        noise_BxLxD = PROJECTIONS[self.settings.projection](after_BxLxD, self.settings.epsilon)
        return jnp.where(finite_B[:, None, None], noise_BxLxD, 0), finite_B

    def metrics(self, example: Example, sums: Tensors) -> Tensors:
        """Metrics, with mean divergences; of a piece's noise the largest entry, the norm and its step's; rows left
        out."""
        counts = [sums['weight']] * 2 + [sums['pieces']] * 3
        of_each = {name: sums[name] / jnp.maximum(count, 1) for name, count in zip(TOLD, counts, strict=True)}
        return {**super().metrics(example, sums), **of_each, 'left_out': sums['left_out']}

    def record(self, steps: Records, finite: Records) -> Told:
        """The record of some steps, with these means."""
        left_out = sum(int(metrics['left_out']) for metrics in steps)
        return {**super().record(steps, finite), **means(finite, TOLD), 'left_out': left_out}

    evaluation = plain_evaluation

    def flops_per_piece(self, attended: float, predicted: float) -> float:
        """Two passes forward and backward; for the noise a third, whose backward pass has no gradients of weights, and
        the clean logits once more."""
        a, forward = self.architecture, functools.partial(forward_flops_per_token, self.architecture)
        per_piece = 2 * training_flops_per_token(a, attended, predicted, last=predicted)
        if self.perturbation.moved:
            # The backward pass of a product with weights has two products, of which one is needed; of attention both
            # are.
            logits = 2 * predicted * a.padded_vocab_size * a.width
            attention = forward(attended, 0.0) - forward(0.0, 0.0)
            per_piece += 2 * forward(0.0, predicted, last=predicted) + 3 * attention + logits
        return per_piece


OBJECTIVE = Adversarial
