"""Distillation (Lewis et al. 2020, Bio-LM, section 7): a student learns what a teacher of the same vocabulary says.

Three terms: masked language modelling; the divergence from the teacher's softmax (KL); and the cosine between the last
states of both, the student's mapped linearly to the teacher's width. The map is thrown away at the end.

B rows, L pieces a row, M slots, D hidden size of the student, E that of the teacher.
"""

import dataclasses
import functools
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from bioptimus_jax.config.bounds import LARGEST_SIZE
from bioptimus_jax.config.fields import key
from bioptimus_jax.config.plugins import meanings
from bioptimus_jax.errors import ConfigError, InputError
from bioptimus_jax.hosts.remote.models import configuration, model_folder
from bioptimus_jax.model import loaded
from bioptimus_jax.model.architecture import Architecture, Rule
from bioptimus_jax.model.attention import attend
from bioptimus_jax.model.compute import Compute
from bioptimus_jax.model.folder import deciding_files, source_folder
from bioptimus_jax.model.layers import at_slots
from bioptimus_jax.model.loaded import Loaded
from bioptimus_jax.model.tensors import read_architecture
from bioptimus_jax.model.trees import Params, unflatten
from bioptimus_jax.pretrain.backends import scans
from bioptimus_jax.pretrain.config import HasTraining
from bioptimus_jax.pretrain.cross_entropy import Divergence, cross_entropy, in_chunks
from bioptimus_jax.pretrain.masking import MaskingParams
from bioptimus_jax.pretrain.objective import Example, Key, Records, Tensors, Told, means
from bioptimus_jax.pretrain.objectives.mlm import MaskedLM, MaskedRows, inputs, plain_evaluation
from bioptimus_jax.pretrain.throughput import forward_flops_per_token, training_flops_per_token
from bioptimus_jax.tokenizer import subwords
from bioptimus_jax.tokenizer.subwords import Subwords

MAP = 'map'  # the parameters that lead from the student's width to the teacher's
SHORTEST = 1e-12  # a vector with a smaller sum of squares has no direction
ROOM = 'config.objective.distil'
# What a term is called: by its weight in a step -> in Weights.
TERMS = {'slots': 'masked_lm', 'kl': 'kl', 'cosine': 'cosine'}
SHAPE = ('layers', 'hidden', 'heads', 'intermediate')


class Weights(NamedTuple):
    """What the mean of each term counts."""

    masked_lm: float
    kl: float
    cosine: float


READINGS = {
    'paper': Weights(masked_lm=5.0, kl=2.0, cosine=1.0),  # as Bio-LM prints them
    'distilbert': Weights(masked_lm=2.0, kl=5.0, cosine=1.0),  # as DistilBERT's own command has them
}
"""What `config.objective.distil.reading` may be."""


@dataclasses.dataclass(frozen=True)
class Positions:
    """`meaning` goes on with "the divergence counts". `all_pieces`: not in the slots alone."""

    meaning: str
    all_pieces: bool


POSITIONS = {
    'all': Positions('every piece, as DistilBERT', all_pieces=True),
    'masked': Positions('the pieces that are predicted', all_pieces=False),
}
"""What `config.objective.distil.kl_positions` may be."""


@dataclasses.dataclass(frozen=True)
class Settings:
    """Distillation: the teacher, and the weights of the terms (Lewis et al. 2020, section 7)."""

    teacher: str = key(
        '', 'Hugging Face folder or hub id of a masked language model with the same vocabulary', path=True
    )
    reading: str = key(
        'paper',
        'weights of masked LM, KL and cosine: '
        + '; '.join(f'{name}: {w.masked_lm:g}, {w.kl:g}, {w.cosine:g}' for name, w in READINGS.items()),
        one_of=READINGS,
    )
    weights: tuple[float, ...] = key(
        (), 'other weights of these three, 0: a term is left out; empty: those of the reading', low=0
    )
    temperature: float = key(2.0, 'number that logits of both are divided by', low=0.1, high=100)
    kl_positions: str = key(
        'all',
        'the divergence counts ' + meanings(POSITIONS),
        one_of=POSITIONS,
    )
    shape: tuple[int, ...] = key(
        (),
        'layers, hidden size, heads, feed-forward size of a teacher that is not a folder here, for a plan; empty: the '
        "student's",
        low=1,
        high=LARGEST_SIZE,
    )

    @property
    def counts(self) -> Weights:
        """The weights. Raises ConfigError for other than three."""
        if self.weights and len(self.weights) != len(Weights._fields):
            raise ConfigError(
                f'{ROOM}.weights: three are needed, of masked LM, KL, cosine, got {self.weights}'
            )
        return Weights(*self.weights) if self.weights else READINGS[self.reading]

    def folder(self) -> Path:
        """The teacher's folder. Raises ConfigError where none is named, InputError where there is none."""
        if not self.teacher:
            raise ConfigError(
                f'{ROOM}.teacher: is empty; name the Hugging Face folder of a model with the same vocabulary'
            )
        return model_folder(self.teacher, f'{ROOM}.teacher')


class Distillation(MaskedLM):
    """Masked language modelling (mean over slots), KL T^2 (over pieces or slots) and 1 - cosine (over pieces)."""

    Settings = Settings
    does = 'masked language modelling and distillation from a teacher'
    masking = staticmethod(MaskedLM.masking)
    heldout_loss = MaskedLM.heldout_loss
    last_in_slots = False  # the teacher is heard everywhere
    distributions = 2
    # The teacher is whole on every device, and the map too.
    rules = (
        Rule(r'^teacher/', ()),
        Rule(rf'^{MAP}/kernel$', (None, None)),
        Rule(rf'^{MAP}/bias$', (None,), False),
    )

    @classmethod
    def check(cls, config: HasTraining) -> None:
        """Check the weights and the teacher too: its folder and, where that of the run is known, its vocabulary."""
        super().check(config)
        settings: Settings = cls.settings_of(config)
        if not settings.counts.kl and not settings.counts.cosine:
            raise ConfigError(
                f'{ROOM}.weights: nothing of the teacher counts; set config.pretrain.objective=mlm'
            )
        folder = settings.folder()
        theirs, architecture = loaded.check_folder(folder), read_architecture(folder)
        if config.rows.max_document_pieces > architecture.positions:
            raise ConfigError(
                f'config.rows.max_document_pieces: {config.rows.max_document_pieces} pieces, but the teacher {folder} '
                f'has {architecture.positions} positions; set it to {architecture.positions} or less'
            )
        if architecture.heads % config.runtime.tensor:
            raise ConfigError(
                f'config.runtime.tensor: {config.runtime.tensor} does not divide the {architecture.heads} attention '
                f'heads of the teacher {folder}'
            )
        # A vocabulary that is yet to be trained is compared when training begins.
        known = {'file': lambda: Path(config.vocab.file), 'source': lambda: source_folder(config.source)}
        if where := known.get(config.vocab.kind, lambda: None)():
            check_tokens(subwords.load(where), theirs, folder)

    @classmethod
    def files(cls, config: HasTraining) -> list[Path]:
        """The teacher's files."""
        return deciding_files(cls.settings_of(config).folder())

    @classmethod
    def places(cls, config: HasTraining) -> int:
        """The slots, or all of a row."""
        settings: Settings = cls.settings_of(config)
        whole = settings.counts.kl and POSITIONS[settings.kl_positions].all_pieces
        return config.rows.row_pieces if whole else super().places(config)

    @functools.cached_property
    def teacher(self) -> Loaded:
        """The teacher, read and compared. Raises InputError for another vocabulary, or a head that is needed."""
        folder = self.settings.folder()
        found = loaded.load_model(folder)
        if isinstance(self.vocabulary, Subwords):
            check_tokens(self.vocabulary, found.subwords, folder)
        if self.settings.counts.kl and found.fresh:
            raise InputError(
                f'{folder}: the teacher has no head of a masked language model ({found.fresh[0]}); take one that has, '
                f'or set {ROOM}.weights=1,0,1'
            )
        if found.architecture.vocab_size != self.architecture.vocab_size:
            raise InputError(
                f'{folder}: the teacher has {found.architecture.vocab_size} rows for its tokens, the model '
                f'{self.architecture.vocab_size}; their softmax cannot be compared'
            )
        return found

    @functools.cached_property
    def planned_teacher(self) -> Architecture:
        """The shape of the teacher, or that which a plan assumes where its folder is not here."""
        path, size = self.settings.teacher, self.architecture.vocab_size
        if path and (folder := configuration(path)):
            return dataclasses.replace(read_architecture(folder).masked_lm(), vocab_size=size)
        shape = self.settings.shape
        if shape and len(shape) != len(SHAPE):
            raise ConfigError(f'{ROOM}.shape: four are needed, {", ".join(SHAPE)}, got {shape}')
        try:
            return dataclasses.replace(self.architecture, **dict(zip(SHAPE, shape)))
        except ValueError as error:
            raise ConfigError(f'{ROOM}.shape: {error}') from error

    @functools.cached_property
    def teacher_compute(self) -> Compute:
        """How the teacher is computed: as the student, but for what follows from its own shape."""
        shape = self.teacher.architecture
        # The kernel was checked for heads of this size, and none has a bias.
        fits = shape.head_size == self.architecture.head_size and not shape.biased_scores
        return dataclasses.replace(
            self.compute,
            attend=self.compute.attend if fits else attend,
            remat='none',
            scan_layers=scans(self.config.runtime, shape.layers),
        )

    def start(self, params: Params, key: jax.Array) -> Params:
        """The parameters with the map, where the cosine counts."""
        if not self.settings.counts.cosine:
            return params
        size = (self.architecture.hidden, self.planned_teacher.hidden)
        kernel_DxE = self.architecture.initializer_range * jax.random.normal(key, size)
        return {**params, MAP: {'kernel': kernel_DxE, 'bias': jnp.zeros(size[1:])}}

    @staticmethod
    def exported(params: Params) -> Params:
        """The parameters without the map."""
        return {name: part for name, part in params.items() if name != MAP}

    def frozen(self, params: Params) -> Params:
        """The teacher's parameters."""
        return {'teacher': self.teacher.parameters}

    def frozen_shapes(self, params: Params) -> Params:
        """Shapes of the teacher that a plan assumes; nothing is read."""
        shapes = self.planned_teacher.shapes().items()
        return {'teacher': unflatten({path: jax.ShapeDtypeStruct(s, jnp.float32) for path, s in shapes})}

    def example(self, batch: Tensors, setting: MaskingParams, keys_B: jax.Array) -> Example:
        """A masked batch, and the weights of the other terms that count."""
        found = super().example(batch, setting, keys_B)
        slots, pieces = found.weights['slots'], (found.rows.segments_BxL > 0).sum()
        weights = {'slots': slots, 'kl': pieces if self.kl_positions.all_pieces else slots, 'cosine': pieces}
        counts = self.settings.counts
        return found._replace(
            weights={n: w for n, w in weights.items() if n == 'slots' or getattr(counts, n)}
        )

    @property
    def kl_positions(self) -> Positions:
        """Where the divergence counts."""
        return POSITIONS[self.settings.kl_positions]

    def loss(self, params: Any, frozen: Any, rows: MaskedRows, dropout_key: Key) -> tuple[Tensors, Tensors]:
        """The terms, each by what it counts; their sums without that, and `slot_sums`."""
        counts, masked, student, compute = self.settings.counts, rows.masked, self.architecture, self.compute
        states_BxLxD = self.states(params, rows, dropout_key)
        output = self.output(params, at_slots(states_BxLxD, masked.slots_M))
        total, losses_BxM, correct_BxM = cross_entropy(*output, masked.targets_M, masked.weights_M, compute)
        found = {'slots': total}
        teacher, weights = self.teacher.architecture, frozen['teacher']
        # Without a dropout key, as in eval mode; on the same masked pieces.
        taught_BxLxE = teacher.encode(weights, inputs(rows), compute=self.teacher_compute)
        real_BxL = rows.segments_BxL > 0
        if counts.kl:
            counted_BxM, given_BxMxE = masked.weights_M, taught_BxLxE
            if self.kl_positions.all_pieces:
                output = student.output_layer(params, states_BxLxD, compute)
                counted_BxM = real_BxL.astype(jnp.float32)
            else:
                given_BxMxE = at_slots(taught_BxLxE, masked.slots_M)
            layers = (output, teacher.output_layer(weights, given_BxMxE, self.teacher_compute))
            loss = Divergence(self.settings.temperature)
            found['kl'], _ = in_chunks(loss, layers, (), counted_BxM, compute)
        if counts.cosine:
            kernel_DxE, bias_E = params[MAP]['kernel'], params[MAP]['bias']
            mapped_BxLxE = states_BxLxD.astype(jnp.float32) @ kernel_DxE + bias_E[None, None]
            away_BxL = 1 - cosine(mapped_BxLxE, taught_BxLxE.astype(jnp.float32))
            found['cosine'] = jnp.where(real_BxL, away_BxL, 0).sum()
        terms = {name: getattr(counts, TERMS[name]) * value for name, value in found.items()}
        sums = self.slot_sums(masked, losses_BxM, correct_BxM)
        return terms, {**sums, **jax.lax.stop_gradient(found)}

    def metrics(self, example: Example, sums: Tensors) -> Tensors:
        """Metrics, with the mean of each term, whatever it counts: `masked_lm`, `kl` (times T^2), `cosine` (1 less
        it)."""
        of_terms = {TERMS[name]: sums[name] / jnp.maximum(w, 1) for name, w in example.weights.items()}
        return {**super().metrics(example, sums), **of_terms}

    def record(self, steps: Records, finite: Records) -> Told:
        """The record of some steps, with these means."""
        counted = [term for term in TERMS.values() if term in finite[0]]
        return {**super().record(steps, finite), **means(finite, counted)}

    evaluation = plain_evaluation

    def flops_per_piece(self, attended: float, predicted: float) -> float:
        """Operations for one piece, with the forward pass of the teacher, the logits of both where they are compared,
        and the map."""
        counts, teacher = self.settings.counts, self.planned_teacher
        compared = (1.0 if self.kl_positions.all_pieces else predicted) if counts.kl else 0.0
        mapped = 6 * self.architecture.hidden * teacher.hidden if counts.cosine else 0
        student = training_flops_per_token(self.architecture, attended, predicted + compared)
        return student + forward_flops_per_token(teacher, attended, compared) + mapped


OBJECTIVE = Distillation


def check_tokens(ours: Subwords, theirs: Subwords, folder: Path) -> None:
    """Raise InputError where the teacher in a folder has another vocabulary than the model."""
    if (ours.tokens, ours.roles) == (theirs.tokens, theirs.roles):
        return
    both = zip([*ours.tokens, ''], [*theirs.tokens, ''], strict=False)
    at = next((n for n, (one, other) in enumerate(both) if one != other), 0)
    raise InputError(
        f'{folder}: the teacher has another vocabulary ({len(theirs.tokens)} tokens, and {len(ours.tokens)} here; the '
        f'first that differ have the id {at}); take one of the same, or its vocabulary with config.vocab.kind=file'
    )


def cosine(one: jax.Array, other: jax.Array) -> jax.Array:
    """The cosine of vectors along the last axis; of one of no length 0."""
    squares = ((x**2).sum(axis=-1) + SHORTEST for x in (one, other))
    return (one * other).sum(axis=-1) * jax.lax.rsqrt(next(squares)) * jax.lax.rsqrt(next(squares))
