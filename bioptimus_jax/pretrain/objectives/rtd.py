"""Replaced-token detection (ELECTRA, Clark et al. 2020): a generator fills slots, a discriminator judges every piece.

B rows, L pieces a row, M slots, C slots of a chunk, V padded vocabulary in G blocks of K.
"""

import dataclasses
import functools
import math
import re
import types
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from bioptimus_jax.config.fields import key
from bioptimus_jax.errors import ConfigError, InputError
from bioptimus_jax.hosts.remote.models import model_folder
from bioptimus_jax.model.architecture import COLUMN_MULTIPLE, HEAD, Architecture, Rule
from bioptimus_jax.model.attention import attend
from bioptimus_jax.model.folder import deciding_files, source_folder
from bioptimus_jax.model.tensors import load_folder, read_architecture
from bioptimus_jax.model.trees import Params, flatten, unflatten
from bioptimus_jax.pretrain.config import HasTraining
from bioptimus_jax.pretrain.cross_entropy import Arrays, in_chunks, of_targets
from bioptimus_jax.pretrain.evaluate import BATCH_ROWS, FROZEN, totals_of
from bioptimus_jax.pretrain.masking import Masked, MaskingParams
from bioptimus_jax.pretrain.objective import Example, Key, Objective, Records, Tensors, Told
from bioptimus_jax.pretrain.objectives.mlm import FrozenEvaluation, MaskedLM, MaskedRows, inputs
from bioptimus_jax.pretrain.throughput import training_flops_per_token
from bioptimus_jax.rows.stored import Rows
from bioptimus_jax.tokenizer import subwords

GENERATOR = 'generator'
DRAWS = 5  # folded into a row's key: masking uses those before
COLUMNS_PER_HEAD, WIDE = 64, 4


@dataclasses.dataclass(frozen=True)
class Settings:
    """What `config.objective.rtd` may say."""

    share: float = key(1 / 3, "width of the generator as a share of the discriminator's", low=0.01, high=1)
    layers: int = key(0, 'layers of the generator; 0: as many as the discriminator has', low=0)
    heads: int = key(0, f'heads of the generator; 0: one for {COLUMNS_PER_HEAD} columns', low=0)
    intermediate: int = key(0, 'feed-forward size of the generator; 0: four times its width', low=0)
    strength: float = key(
        50.0, "lambda: the weight of the discriminator's term beside the generator's", low=0
    )
    special: bool = key(True, 'the discriminator also judges special tokens, as in the published code')
    generator: str = key(
        '',
        'folder or hub id of the generator at step 0, trained with the source; empty: a random one',
        path=True,
    )


@dataclasses.dataclass(frozen=True)
class PublishedTraining:
    """A published pre-training: the generator's width, masking, batch of rows of 512 pieces, steps, learning rate."""

    share: float
    rate: float
    batch_rows: int
    steps: int
    learning_rate: float
    warmup_steps: int
    row_pieces: int = 512
    corruption: tuple[float, float, float] = (0.85, 0.0, 0.15)
    strength: float = 50.0


PUBLISHED: Mapping[str, PublishedTraining] = types.MappingProxyType(
    {
        'ft': PublishedTraining(1 / 3, 0.15, 8192, 62_500, 6e-4, 6250),
        'ft_large': PublishedTraining(1 / 4, 0.15, 8192, 62_500, 6e-4, 6250),
        'original_small': PublishedTraining(1 / 4, 0.15, 128, 1_000_000, 5e-4, 10_000, row_pieces=128),
        'original': PublishedTraining(1 / 3, 0.15, 256, 766_000, 2e-4, 10_000),
        'original_large': PublishedTraining(1 / 4, 0.25, 2048, 400_000, 2e-4, 10_000),
    }
)
"""`ft`: Tinn et al., who state the generator's share alone and "the same setting" as PubMedBERT. `original`: Clark et
al., Table 6. Corruption and lambda are those of the code of the latter."""


class SampledRows(NamedTuple):
    """Masked rows, the pieces that are judged, and of each row the data of the key that its tokens are drawn with."""

    masked: MaskedRows
    judged_BxL: Any
    keys_Bx2: Any


class Judged(NamedTuple):
    """What the discriminator says: logits BxL that a piece was replaced, and which pieces were."""

    logits_BxL: jax.Array
    replaced_BxL: jax.Array


class ReplacedTokens(Objective):
    """The generator's mean cross-entropy over its slots, and lambda times the discriminator's over the pieces.

    The model is the discriminator. The generator is a smaller masked language model that reads the same tables and
    LayerNorm of the embeddings, in `generator/`. What it draws is not a function of its parameters: no gradient of the
    discriminator's term reaches them but by what both share.
    """

    Settings = Settings
    does = (
        'replaced-token detection: a generator fills what is masked, the model tells which pieces it put in'
    )
    heldout_loss = f"the generator's: {MaskedLM.heldout_loss}"
    masking = staticmethod(MaskedLM.masking)
    columns = staticmethod(MaskedLM.columns)
    share = staticmethod(MaskedLM.share)
    places = staticmethod(MaskedLM.places)

    def __post_init__(self) -> None:
        """Raise ConfigError for a family without a discriminator, and for a generator that cannot be."""
        a = self.architecture
        if a.discriminator() is None:
            raise ConfigError(
                f'config.pretrain.objective: {self.config.pretrain.objective} needs the head of a discriminator, which '
                f'no {a.title} has; take an ELECTRA: config.model.family, or with a source config.source.path'
            )
        try:
            self._shape_of_generator  # noqa: B018
        except ValueError as error:
            raise ConfigError(f'config.objective.rtd.heads: of the generator, {error}') from error

    @classmethod
    def check(cls, config: HasTraining) -> None:
        """Check the folder of the generator too, as far as its config.json and its tokenizer tell."""
        super().check(config)
        given = cls.settings_of(config).generator
        if not given:
            return
        where, source = f'config.objective.rtd.generator: {given}', _source(config)
        if source is None:
            raise ConfigError(
                f'{where} reads the tables of the discriminator that it was trained with; name that one in '
                'config.source.path, with a config.surgery.strategy that takes its weights'
            )
        shape, tables = read_architecture(_folder(given)), read_architecture(source)
        if tables.discriminator() is None:
            return  # of no use, as every objective of this kind says
        planned, _ = _generator(tables, cls.settings_of(config))
        if shape.discriminator() in (None, shape):
            raise ConfigError(f'{where} holds {shape.hf_class}, which is not a generator; name one')
        different = [
            f'{name} is {getattr(shape, name)}, not {getattr(planned, name)}'
            for name in ('width', 'hidden', 'layers', 'heads', 'intermediate')
            if getattr(shape, name) != getattr(planned, name)
        ]
        if different:
            raise ConfigError(
                f'{where}: {"; ".join(different)}, as the source and the other keys of config.objective.rtd have it; '
                'set share, layers, heads and intermediate to what its config.json says'
            )
        if subwords.load(_folder(given)).tokens != subwords.load(source).tokens:
            raise ConfigError(f'{where} has another vocabulary than {source}; take both from one training')

    @classmethod
    def files(cls, config: HasTraining) -> list[Path]:
        """Files of the source, of which the head is read, and of the generator."""
        given, source = cls.settings_of(config).generator, _source(config)
        folders = [folder for folder in (source, given and _folder(given)) if folder]
        return [file for folder in folders for file in deciding_files(folder)]

    @functools.cached_property
    def _shape_of_generator(self) -> tuple[Architecture, re.Pattern[str]]:
        return _generator(self.architecture, self.settings)

    @functools.cached_property
    def discriminator(self) -> Architecture:
        """The model with its head."""
        found = self.architecture.discriminator()
        assert found is not None  # since there is this objective
        return found

    @functools.cached_property
    def generator(self) -> MaskedLM:
        """The objective of the generator: masked language modelling."""
        architecture, compute = self._shape_of_generator[0], self.compute
        if architecture.head_size != self.architecture.head_size:  # which the kernel was checked for
            compute = dataclasses.replace(compute, attend=attend)
        return MaskedLM(self.config, architecture, self.vocabulary, self.row_pieces, compute)

    @property
    def encoders(self) -> tuple[Architecture, ...]:
        """Both encoders."""
        return self.architecture, self._shape_of_generator[0]

    @property
    def all_rules(self) -> tuple[Rule, ...]:
        """Rules of the family, for the generator's own parameters too."""
        of_family = super().all_rules
        anchored = (rule for rule in of_family if rule.pattern.startswith('^'))
        own = (rule._replace(pattern=rule.pattern.replace('^', f'^{GENERATOR}/')) for rule in anchored)
        return (*own, *of_family)

    def start(self, params: Params, key: jax.Array) -> Params:
        """The model's tables and encoder, the head of a discriminator, and what the generator has of its own.

        The head is the source's if that is a discriminator, the generator that of its folder; else they are random.
        A folder's output bias is taken where the vocabulary is; for another vocabulary it begins at 0.
        """
        generator, shared = self._shape_of_generator
        of_head, of_generator = jax.random.split(key)
        head, made = _drawn(self.discriminator, of_head), flatten(_drawn(generator, of_generator))
        source = None if isinstance(key, jax.core.Tracer) else _source(self.config)
        if source:
            architecture, read, fresh = load_folder(source, masked_lm=False)
            if architecture == architecture.discriminator() and not fresh:
                head = read
            if given := self.settings.generator:
                made |= self._read(_folder(given), source, flatten(read))
        own = {path: value for path, value in made.items() if not shared.search(path)}
        return {**params, HEAD: head[HEAD], GENERATOR: unflatten(own)}

    def _read(self, folder: Path, source: Path, tables: Params) -> Params:
        """The parameters of a generator's folder. InputError where it was not trained with the source."""
        architecture, params, fresh = load_folder(folder)
        read, shared = flatten(params), self._shape_of_generator[1]
        if fresh:
            raise InputError(f'{folder}: has no head of a generator; name a folder with one')
        apart = [p for p in read if shared.search(p) and not np.array_equal(read[p], tables[p])]
        if apart:
            raise InputError(
                f'{folder}: its {apart[0]} is not that of {source}; take a generator that was trained with that '
                'discriminator'
            )
        kept = self.config.surgery.initialisation.keeps_vocabulary
        return {path: value for path, value in read.items() if kept or path != architecture.output_bias}

    def of_generator(self, params: Params) -> Params:
        """The parameters that the generator computes with, the shared ones among them."""
        shared = self._shape_of_generator[1]
        flat = {path: value for path, value in flatten(params).items() if shared.search(path)}
        return unflatten({**flat, **flatten(params[GENERATOR])})

    def exports(self, params: Params) -> dict[str, tuple[Architecture, Params]]:
        """The discriminator, and the generator beside it."""
        model = {name: part for name, part in params.items() if name != GENERATOR}
        generator = self.generator.architecture, self.of_generator(params)
        return {'': (self.discriminator, model), f'-{GENERATOR}': generator}

    def example(self, batch: Tensors, setting: MaskingParams, keys_B: jax.Array) -> Example:
        """Masked rows, and the number of pieces that are judged, whatever is drawn."""
        example = self.generator.example(batch, setting, keys_B)
        rows = self.sampled(example.rows, keys_B)
        return Example(rows, {**example.weights, 'pieces': rows.judged_BxL.sum()}, example.counts)

    def sampled(self, masked: MaskedRows, keys_B: jax.Array) -> SampledRows:
        """What is judged of masked rows, and keys to draw tokens with."""
        segments_BxL = jnp.asarray(masked.segments_BxL)
        judged_BxL = segments_BxL > 0
        if not self.settings.special:
            tokens_BxL = put_in(masked.masked.inputs_L, masked.masked, masked.masked.targets_M)
            judged_BxL = self.generator.masker.maskable(tokens_BxL, segments_BxL)
        keys_B = jax.vmap(lambda key: jax.random.fold_in(key, DRAWS))(keys_B)
        return SampledRows(masked, judged_BxL, jax.random.key_data(keys_B))

    def loss(self, params: Any, frozen: Any, rows: SampledRows, dropout_key: Key) -> tuple[Tensors, Tensors]:
        """Both terms and the sums of `both`."""
        loss, sums, _ = self.both(params, rows, dropout_key)
        terms = {'slots': loss, 'pieces': self.settings.strength * sums['discriminator_loss']}
        return terms, jax.lax.stop_gradient(sums)

    def both(self, params: Any, rows: SampledRows, dropout_key: Key) -> tuple[jax.Array, Tensors, Judged]:
        """The generator's loss; its sums as a masked language model, and those of the pieces; what was judged of each.

        `guessed` slots: the generator drew what had been there. Pieces `judged`, `replaced` by others, `flagged` as
        replaced by the discriminator, `caught`: flagged and replaced, `right`: judged as what they are.
        """
        of_generator, of_discriminator = (
            (None, None) if dropout_key is None else jax.random.split(dropout_key)
        )
        masked = rows.masked.masked
        loss, losses_BxM, correct_BxM, drawn_BxM = self.draw(params, rows, of_generator)
        logits_BxL, replaced_BxL = judged = self.judge(params, rows.masked, drawn_BxM, of_discriminator)
        losses_BxL = jnp.logaddexp(0.0, logits_BxL) - replaced_BxL * logits_BxL
        flagged_BxL, counts_BxL = logits_BxL > 0, rows.judged_BxL
        sums = {
            **self.generator.slot_sums(masked, losses_BxM, correct_BxM),
            'generator_loss': jax.lax.stop_gradient(loss),
            'guessed': (masked.weights_M * (drawn_BxM == masked.targets_M)).sum(),
            'discriminator_loss': (losses_BxL * counts_BxL).sum(),
            'judged': counts_BxL.sum(),
            'replaced': (replaced_BxL & counts_BxL).sum(),
            'flagged': (flagged_BxL & counts_BxL).sum(),
            'caught': (flagged_BxL & replaced_BxL & counts_BxL).sum(),
            'right': ((flagged_BxL == replaced_BxL) & counts_BxL).sum(),
        }
        return loss, sums, judged

    def draw(self, params: Any, rows: SampledRows, dropout_key: Key) -> tuple[jax.Array, ...]:
        """The generator's summed loss; of every slot its loss, whether it was right, and the token that it draws."""
        generator, masked, own = self.generator, rows.masked.masked, self.of_generator(params)
        states_BxMxD = generator.states(own, rows.masked, dropout_key, masked.slots_M)
        layers = (generator.output(own, states_BxMxD),)
        keys_B = jax.random.wrap_key_data(rows.keys_Bx2, impl='threefry2x32')
        slots_M = jnp.arange(masked.slots_M.shape[1])
        keys_BxM = jax.vmap(lambda key: jax.vmap(lambda slot: jax.random.fold_in(key, slot))(slots_M))(keys_B)
        # Keys as numbers: `in_chunks` pads what it is given, and jax cannot pad arrays of keys.
        others = (masked.targets_M, jax.random.key_data(keys_BxM))
        loss, values = in_chunks(targets_and_draws, layers, others, masked.weights_M, generator.compute)
        return loss, *values

    def judge(self, params: Any, rows: MaskedRows, drawn_BxM: jax.Array, dropout_key: Key) -> Judged:
        """The discriminator on the rows with what was drawn in the slots; a lucky guess replaces nothing."""
        masked = rows.masked
        tokens_BxL = put_in(masked.inputs_L, masked, drawn_BxM)
        none_BxL = jnp.zeros(tokens_BxL.shape, bool)
        replaced_BxL = put_in(none_BxL, masked, drawn_BxM != masked.targets_M)
        batch = {**inputs(rows), 'tokens': tokens_BxL}
        states = self.architecture.encode(params, batch, compute=self.compute, dropout_key=dropout_key)
        return Judged(self.discriminator.logits(params, states, self.compute), replaced_BxL)

    def metrics(self, example: Example, sums: Tensors) -> Tensors:
        """Metrics of the generator as a masked language model, and the sums of both."""
        return {**self.generator.metrics(example, sums), **sums}

    def record(self, steps: Records, finite: Records) -> Told:
        """The record of masked language modelling for the generator; and what tells a healthy run (`rates`)."""
        totals = {name: sum(float(metrics[name]) for metrics in finite) for name in SUMMED}
        return {**self.generator.record(steps, finite), **rates(totals)}

    def evaluation(self, rows: Rows, batch_rows: int = BATCH_ROWS) -> 'FrozenReplacements':
        """The generator on frozen masks, and the discriminator on what it draws there."""
        return FrozenReplacements(self, self.generator.evaluation(rows, batch_rows))

    def flops(self, tokens: int, attended: float, predicted: float) -> float:
        """Operations of both models; every piece goes through the discriminator's head, the slots through the
        generator's."""
        shapes = self.discriminator.shapes().items()
        kernels = (math.prod(of) for p, of in shapes if p.startswith(HEAD) and p.endswith('/kernel'))
        encoder = training_flops_per_token(self.architecture, attended / max(tokens, 1), 0.0)
        return self.generator.flops(tokens, attended, predicted) + tokens * (encoder + 6 * sum(kernels))

    @functools.partial(jax.jit, static_argnums=0)
    def judged(self, params: Any, masked: MaskedRows, first: Any) -> tuple[Tensors, Judged, jax.Array]:
        """Sums, and what was judged of each piece, of a batch that begins with that row; jitted, without dropout."""
        seed = jax.random.key(self.config.evaluation.seed, impl='threefry2x32')
        numbers_B = first + jnp.arange(len(masked.segments_BxL))
        rows = self.sampled(masked, jax.vmap(lambda n: jax.random.fold_in(seed, n))(numbers_B))
        _, sums, judged = self.both(params, rows, None)
        # Whole on every device, so that every process can read it.
        return sums, *jax.tree.map(lambda x: self.compute.place(x, None, None), (judged, rows.judged_BxL))


OBJECTIVE = ReplacedTokens
SUMMED = (
    *('generator_loss', 'discriminator_loss', 'weight', 'correct', 'guessed'),
    *('judged', 'replaced', 'flagged', 'caught', 'right'),
)


@dataclasses.dataclass(frozen=True)
class FrozenReplacements:
    """The generator's loss on frozen masks, and the discriminator on tokens drawn there with frozen noise."""

    objective: ReplacedTokens
    generator: FrozenEvaluation

    def save(self, folder: Path) -> None:
        """Write frozen_masks.npz."""
        self.generator.save(folder)

    def scores(self, params: Any, frozen: Any, every_setting: bool) -> Iterator[tuple[str, float]]:
        """What a masked language model gives, of the generator; and of the discriminator `frozen_` and each of `rates`,
        and `frozen_auc`: the area under its ROC curve."""
        yield from self.generator.scores(self.objective.of_generator(params), frozen, every_setting)
        every, first = [], 0
        of_pieces: list[list[np.ndarray]] = []  # of each batch: logits, and which were replaced
        for parts in self.generator.masks.batches(FROZEN):
            sums, judged, counts_BxL = self.objective.judged(params, MaskedRows(*parts), first)
            first += len(counts_BxL)
            every.append(sums)
            of_pieces.append([np.asarray(values)[np.asarray(counts_BxL)] for values in judged])
        if every:
            totals, area = totals_of(every), auc(*map(np.concatenate, zip(*of_pieces)))
            yield from ((f'frozen_{name}', value) for name, value in {**rates(totals), 'auc': area}.items())


def targets_and_draws(logits: Arrays, others: Arrays) -> tuple[Arrays, Arrays]:
    """A `Loss`: cross-entropy by the targets, whether they have the highest logit, and tokens drawn from the softmax.

    `others`: targets BxC, and the data of a key for each slot. The largest sum of a log-probability and Gumbel's noise
    wins: among blocks of tokens, by what each block has in all, and then within the block that won. That is the same
    distribution, with a hundredth of the random numbers. What is drawn does not depend on chunks or devices.
    """
    (logits_BxCxV,), (targets_BxC, keys_BxCx2) = logits, others
    values, changes = of_targets(logits, (targets_BxC,))
    blocks = logits_BxCxV.shape[-1] // COLUMN_MULTIPLE
    keys_BxC = jax.random.wrap_key_data(keys_BxCx2, impl='threefry2x32')
    noise_of = jax.vmap(jax.vmap(lambda key: jax.random.gumbel(key, (blocks + COLUMN_MULTIPLE,))))
    of_blocks_BxCxG, of_tokens_BxCxK = jnp.split(noise_of(keys_BxC), [blocks], axis=-1)
    blocks_BxCxGxK = logits_BxCxV.reshape(*targets_BxC.shape, blocks, COLUMN_MULTIPLE)
    block_BxC = (jax.nn.logsumexp(blocks_BxCxGxK, axis=-1) + of_blocks_BxCxG).argmax(-1)
    logits_BxCxK = jnp.take_along_axis(blocks_BxCxGxK, block_BxC[..., None, None], axis=2)[:, :, 0]
    place_BxC = (logits_BxCxK + of_tokens_BxCxK).argmax(-1)
    return (*values, (block_BxC * COLUMN_MULTIPLE + place_BxC).astype(jnp.int32)), changes


def put_in(values_BxL: jax.Array, masked: Masked, new_BxM: jax.Array) -> jax.Array:
    """The values with new ones in the slots that hold something."""
    # Empty slots name place 0: they are sent beyond the row, where `drop` leaves them out.
    places_BxM = jnp.where(masked.weights_M > 0, masked.slots_M, values_BxL.shape[1])
    put = jax.vmap(lambda values, at, new: values.at[at].set(new, mode='drop'))
    return put(values_BxL, places_BxM, new_BxM)


def rates(sums: Mapping[str, float]) -> dict[str, float]:
    """What tells a healthy run, from the sums of `ReplacedTokens.both` over steps: losses, and shares from 0 to 1.

    `replaced` begins near the masking rate and falls; saying "original" of every piece is right in 1 - `replaced`.
    """
    shares = {
        'generator_loss': ('generator_loss', 'weight'),
        'generator_accuracy': ('correct', 'weight'),
        'sampled_accuracy': ('guessed', 'weight'),
        'replaced': ('replaced', 'judged'),
        'discriminator_loss': ('discriminator_loss', 'judged'),
        'discriminator_accuracy': ('right', 'judged'),
        'precision': ('caught', 'flagged'),
        'recall': ('caught', 'replaced'),
    }
    return {name: float(sums[part]) / max(float(sums[whole]), 1.0) for name, (part, whole) in shares.items()}


def auc(scores: np.ndarray, positive: np.ndarray) -> float:
    """The probability that a positive has a higher score than a negative, ties half; 0.5 without either."""
    from scipy.stats import rankdata  # slow to import

    ranks = rankdata(scores)
    ones, zeros = int(positive.sum()), int((~positive).sum())
    return float((ranks[positive].sum() - ones * (ones + 1) / 2) / (ones * zeros)) if ones and zeros else 0.5


def _drawn(architecture: Architecture, key: jax.Array) -> Params:
    """Random parameters; zeros where the key is traced, since numpy draws the numbers."""
    if isinstance(key, jax.core.Tracer):
        return unflatten({path: jnp.zeros(shape) for path, shape in architecture.shapes().items()})
    return architecture.initial_parameters(key)


def _generator(architecture: Architecture, settings: Settings) -> tuple[Architecture, re.Pattern[str]]:
    """The generator's shape, and the paths that it shares. ValueError where heads do not divide its width."""
    hidden = max(1, round(architecture.hidden * settings.share))
    return architecture.generator(
        hidden=hidden,
        layers=settings.layers or architecture.layers,
        heads=settings.heads or max(1, hidden // COLUMNS_PER_HEAD),
        intermediate=settings.intermediate or WIDE * hidden,
    )


def _folder(given: str) -> Path:
    """The folder of the generator, or of its hub id. Raises InputError."""
    return model_folder(given, 'config.objective.rtd.generator')


def _source(config: HasTraining) -> Path | None:
    """The folder of the source whose weights are taken."""
    return source_folder(config.source) if config.surgery.initialisation.source else None
