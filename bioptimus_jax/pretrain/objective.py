"""What an objective is: all that the step, the loop, the curriculum and the export ask of one.

Legend: B rows of the global batch, L pieces a row.
"""

import abc
import dataclasses
import functools
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, Protocol, TypeAlias, cast

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh

from bioptimus_jax.config.fields import walk
from bioptimus_jax.config.plugins import NoSettings
from bioptimus_jax.errors import ConfigError
from bioptimus_jax.model.architecture import Architecture, Rule
from bioptimus_jax.model.compute import PLAIN_COMPUTE, Compute
from bioptimus_jax.model.trees import Params, flatten, unflatten
from bioptimus_jax.pretrain import adapter
from bioptimus_jax.pretrain.backends import MeasuredAttention, make_compute
from bioptimus_jax.pretrain.config import BY_DIFFICULTY, OBJECTIVES, HasTraining, Phase, Pretrain
from bioptimus_jax.pretrain.disk import new_tokens
from bioptimus_jax.pretrain.evaluate import BATCH_ROWS
from bioptimus_jax.pretrain.throughput import training_flops_per_token
from bioptimus_jax.records.curriculum import OfSetting
from bioptimus_jax.rows.blocks import Block
from bioptimus_jax.rows.stored import Rows
from bioptimus_jax.surgery.made import Made
from bioptimus_jax.tokenizer.subwords import Vocabulary

Tensors: TypeAlias = dict[str, jax.Array]
"""Arrays by name: of a batch, a setting, the terms of a loss, sums or metrics."""
Key: TypeAlias = jax.Array | None
"""A random key; None: nothing is dropped."""
Setting: TypeAlias = Any
"""What an objective asks of a phase: a tree of numpy scalars, of the same form for every phase."""
OfPart: TypeAlias = Callable[[Any, Key], Any]
"""Arrays from the rows of a micro-batch and a dropout key."""
StepMetrics: TypeAlias = Mapping[str, np.ndarray]
"""What a step tells, on the host."""
Records: TypeAlias = Sequence[StepMetrics]
"""The metrics of several steps."""
Told: TypeAlias = Mapping[str, float | Mapping[int, float]]
"""What a training record tells of some steps: numbers by name, or by name and number."""
Advance: TypeAlias = Callable[[float], None]
"""A function that is told the share of the work that was done, and may raise."""


class Example(NamedTuple):
    """What a step is trained on, made of the whole batch.

    `rows`: a tree of arrays, all with the B rows as first axis, which the step cuts into micro-batches. `weights`: for
    every term of the loss the number that its sum is divided by, a scalar of the whole batch; the first is the one
    that gradients are divided by. `counts`: what is known without the model, for `metrics`.
    """

    rows: Any
    weights: Tensors
    counts: Tensors


USUAL = Pretrain().objective
STATEMENTS: Mapping[str, tuple[str, ...]] = {
    'does': ('example', 'loss'),
    'masking': ('example', 'columns', 'masker'),
    'heldout_loss': ('evaluation', 'frozen_scores'),
}
"""What an objective says of itself in words -> the methods that these are about."""


def means(finite: Records, names: Iterable[str]) -> dict[str, float]:
    """The mean of metrics over the steps that are finite."""
    return {name: float(np.mean([metrics[name] for metrics in finite])) for name in names}


class Evaluation(Protocol):
    """Held-out documents, prepared once and the same in every run."""

    def save(self, folder: Path) -> None:
        """Store what was drawn, so that anybody can score exactly the same."""

    def scores(self, params: Any, frozen: Any, every_setting: bool) -> Iterator[tuple[str, float]]:
        """(name, value) pairs, among them `frozen_loss`; with `every_setting` also `loss/PHASE` for every phase."""


@dataclasses.dataclass(frozen=True, eq=False)
class Objective(abc.ABC):
    """What training minimises. A file of `pretrain/objectives/` holds one subclass, called OBJECTIVE.

    A loss is a sum of terms, each divided by its own weight. `example` sees the whole batch and says the weights before
    any micro-batch is computed; `loss` gives the terms of some rows, undivided; the step adds them up and divides once.
    So terms with different denominators add up exactly, and one term keeps the bits that a single division gives.

    It was thought through for replaced-token detection (the generator's term by its slots, the discriminator's by all
    pieces, as each is judged whatever was sampled; the generator in `start`, keys to sample with in `rows`),
    distillation (terms by slots, pieces and documents; the teacher in `frozen`, its folder in `files`, the map of
    widths in `start`), sentence pairs (labels in `reads`, their number a weight), adversarial noise (an inner gradient
    in `loss`) and causal models (another `attend` in `compute`).
    """

    config: HasTraining
    architecture: Architecture
    vocabulary: Vocabulary
    row_pieces: int
    compute: Compute = PLAIN_COMPUTE

    Settings: ClassVar[type] = NoSettings
    """A frozen record of keys (`fields.key`): config.objective.NAME of the objective in the file NAME."""
    reads: ClassVar[tuple[str, ...]] = ('tokens', 'word_starts', 'segment_lengths')
    """The arrays of a row that `example` wants; the step itself wants `segment_lengths`."""
    causal: ClassVar[bool] = False
    """Whether a piece sees nothing behind it."""
    does: ClassVar[str] = ''
    """What it minimises, as cards, pages and `show` say it."""
    heldout_loss: ClassVar[str] = ''
    """What `frozen_loss` is, for tables and cards."""
    rules: ClassVar[Sequence[Rule]] = ()
    """Rules for parameters that `start` or `frozen` adds; those of the model follow the architecture's."""
    passes: ClassVar[int] = 1
    """Passes through the encoder that the backward pass needs all activations of, to estimate memory."""
    distributions: ClassVar[int] = 1
    """Distributions over the vocabulary that a slot has at once, to estimate memory."""
    last_in_slots: ClassVar[bool] = False
    """Whether the last layer is computed, behind its attention, for the places alone that are predicted."""

    def __post_init__(self) -> None:  # noqa: B027
        """Raise ConfigError for an architecture that this objective cannot train."""

    @classmethod
    def name(cls) -> str:
        """What the configuration calls it: the name of its file."""
        return cls.__module__.rpartition('.')[2]

    @classmethod
    def settings_of(cls, config: HasTraining) -> Any:
        """This objective's own settings, a `Settings`: what config.objective says of it, or the defaults."""
        return config.objective.get(cls.name()) or cls.Settings()

    @classmethod
    def phases_of(cls, config: HasTraining) -> tuple[Phase, ...]:
        """The phases that it is trained in; all of them for what is a part of another objective."""
        return tuple(config.phase[name] for name in config.phases if cls.trains(config, name))

    @classmethod
    def trains(cls, config: HasTraining, phase: str) -> bool:
        """Whether that is a phase of this objective, or of one that this is a part of."""
        return config.objective_in(phase) == cls.name() or not config.phases_under(cls.name())

    @functools.cached_property
    def settings(self) -> Any:
        """The settings of this objective in its configuration."""
        return self.settings_of(self.config)

    @property
    def all_rules(self) -> tuple[Rule, ...]:
        """How every parameter is split over the mesh, and whether it decays."""
        return (*adapter.RULES, *self.rules, *self.architecture.rules)

    @classmethod
    def check(cls, config: HasTraining) -> None:
        """Raise ConfigError for settings that this objective cannot do."""
        if config.curriculum.order in BY_DIFFICULTY and cls.difficulty is Objective.difficulty:
            raise ConfigError(
                f'config.curriculum.order: {config.curriculum.order} needs a perplexity under every setting, which '
                f'config.pretrain.objective={cls.name()} does not have; choose another order'
            )

    @staticmethod
    def files(config: HasTraining) -> list[Path]:
        """Files outside the run that decide the result (those of a teacher, say), for the fingerprint of the stage."""
        return []

    @staticmethod
    def masking(phase: Phase) -> tuple[str, ...]:
        """How it masks in a phase, in words: unit, rate (or its two ends), [MASK]-random-same. Empty: it does not."""
        return ()

    @classmethod
    def says(cls, statement: str) -> bool:
        """Whether `does`, `heldout_loss` or `masking` holds for this class too, not only for one that it extends.

        It does unless a class above the one that says it has another of the methods that it is about (STATEMENTS).
        """
        of_classes = [vars(one) for one in cls.__mro__]

        def place(name: str) -> int:
            return next((at for at, own in enumerate(of_classes) if name in own), len(of_classes))

        return place(statement) <= min(map(place, STATEMENTS[statement]))

    @staticmethod
    def columns(phase: Phase, config: HasTraining) -> Setting:
        """What the table of the curriculum holds of a phase where this is its objective; `example` reads it."""
        return {}

    @staticmethod
    def share(phase: Phase) -> float:
        """Share of the pieces that the output layer is computed for, to estimate FLOPs."""
        return 1.0

    @staticmethod
    def places(config: HasTraining) -> int:
        """Places of a row that the output layer is computed for, at most, to estimate memory."""
        return config.rows.row_pieces

    @staticmethod
    def exported(params: Params) -> Params:
        """The parameters of the model proper: trained ones without what `start` added."""
        return params

    def beside(self) -> Mapping[str, Any]:
        """What other programs read beside the exported model: values of JSON by the path of their file."""
        return {}

    @property
    def encoders(self) -> tuple[Architecture, ...]:
        """Encoders whose states a step keeps for the backward pass, each of which the mesh has to divide."""
        return (self.architecture,)

    def exports(self, params: Params) -> dict[str, tuple[Architecture, Params]]:
        """The models that a phase is exported as, by what is added to its name: '' for the model proper."""
        return {'': (self.architecture, self.exported(params))}

    def start(self, params: Params, key: jax.Array) -> Params:
        """The parameters at step 0, from the model's: heads or a generator may come to them.

        Also traced, with a traced `key`, where only shapes are asked for.
        """
        return params

    def frozen(self, params: Params) -> Params:
        """Arrays that `loss` reads and nothing trains, given the parameters at step 0. They are in no checkpoint."""
        return {}

    def frozen_shapes(self, params: Params) -> Params:
        """The shapes of `frozen`, to estimate memory before there is anything to read."""
        return cast(Params, jax.eval_shape(self.frozen, params))

    def keys(self, keys_B: jax.Array, name: str) -> jax.Array:
        """Keys of its own for `example`, one for each row, of that name.

        Masks, other names and other objectives draw from other keys. They go by the place of a row in the global batch,
        so that a row draws the same on any number of devices, in any micro-batch and after a resume.
        """
        # Beyond the small numbers that masking folds into the same keys.
        stream = np.uint32(zlib.crc32(f'{self.name()}/{name}'.encode()) | 2**31)
        return jax.vmap(lambda key: jax.random.fold_in(key, stream))(keys_B)

    @abc.abstractmethod
    def example(self, batch: Tensors, setting: Setting, keys_B: jax.Array) -> Example:
        """What is predicted from what: of a batch, the setting of its step, and a key for each row. Traced."""

    def informed(self, params: Any, frozen: Any, parts: Any, each: Callable[[OfPart], Any]) -> Any:
        """The rows of all micro-batches, PxBx..., with what the loss of each has to know of the others.

        `each(function)`: what `function(rows, dropout_key)` gives of every one, PxBx..., with the key that `loss` gets.
        By default nothing, as most losses are sums over rows.
        """
        return parts

    @abc.abstractmethod
    def loss(self, params: Any, frozen: Any, rows: Any, dropout_key: Key) -> tuple[Tensors, Tensors]:
        """The terms' sums over these rows, by the names of the weights, and other sums, for `metrics`."""

    @abc.abstractmethod
    def metrics(self, example: Example, sums: Tensors) -> Tensors:
        """What a step tells, still on the device; among it `predicted`, the places that the output layer was for."""

    def record(self, steps: Records, finite: Records) -> Told:
        """Entries of a training record beside the loss: from the metrics of its steps, and of those that are finite."""
        return {}

    @abc.abstractmethod
    def evaluation(self, rows: Rows, batch_rows: int = BATCH_ROWS) -> Evaluation:
        """The held-out documents, ready to be scored."""

    def flops(self, tokens: int, attended: float, predicted: float) -> float:
        """Model FLOPs of a training step, forward and backward.

        `attended`: the sum over its pieces of those that each attends to; `predicted`: as in `metrics`.
        """
        pieces = max(tokens, 1)
        of_piece, of_predicted = self.work_saved
        saved = self.passes * (of_piece * tokens + of_predicted * predicted)
        return self.flops_per_piece(attended / pieces, predicted / pieces) * tokens - saved

    @functools.cached_property
    def work_saved(self) -> tuple[float, float]:
        """FLOPs of a piece, and of one that is predicted, that an adapter saves; 0 without one."""
        settings = self.config.pretrain
        trained = arrays_of(self).trained if settings.lora else {}
        return adapter.work_saved(settings, trained, self.architecture, self.last_in_slots)

    def flops_per_piece(self, attended: float, predicted: float) -> float:
        """Operations for one piece, which attends to so many on average; `predicted`: the share of pieces that are."""
        last = predicted if self.last_in_slots else 1.0
        return training_flops_per_token(self.architecture, attended, predicted, last=last)

    def difficulty(self, params: Any, batch: Block, advance: Advance) -> dict[str, OfSetting]:
        """Phase -> `perplexity.of_setting` of those rows; `check` refuses orders by it for an objective without one."""
        raise ConfigError(
            f'config.pretrain.objective: {self.name()} has no perplexity under a masking setting'
        )


def objective_of(config: HasTraining, name: str = '') -> type[Objective]:
    """The class of that name, or the one that `config.pretrain.objective` names."""
    return cast(type[Objective], OBJECTIVES.load(name or config.pretrain.objective))


def masking_of(config: HasTraining, phase: str) -> tuple[str, ...]:
    """How a phase masks, in words, as its objective says; empty where it does not mask, or does not say how."""
    kind = objective_of(config, config.objective_in(phase))
    return kind.masking(config.phase[phase]) if kind.says('masking') else ()


def objective_in_words(config: HasTraining, name: str) -> str:
    """What an objective does and its settings, in words: `causal: every next piece; strength 0.5`."""
    kind = objective_of(config, name)
    does = kind.does if kind.says('does') else ''
    settings = walk(kind.settings_of(config))
    named = ', '.join(f'{key} {value}' for key, value, metadata in settings if not metadata.get('path'))
    return (
        f'{name}: {"; ".join(filter(None, (does or "an objective that does not say what it does", named)))}'
    )


def words_of_phase(config: HasTraining, phase: str) -> str:
    """Objective and masking of a phase, in few words: the name of the usual objective goes without saying."""
    return ': '.join(filter(None, (unusual_objective(config, phase), ', '.join(masking_of(config, phase)))))


def unusual_objective(config: HasTraining, phase: str) -> str:
    """The name of a phase's objective; '' of the one that is the default."""
    name = config.objective_in(phase)
    return '' if name == USUAL else name


def heldout_loss_of(config: HasTraining) -> str:
    """What the held-out loss of a run is, in words."""
    kind = objective_of(config)
    return (kind.says('heldout_loss') and kind.heldout_loss) or f'as objective {kind.name()} scores them'


def most_places(config: HasTraining) -> int:
    """Places of a row that the output layer is computed for, at most, under any objective that is trained."""
    return max(objective_of(config, name).places(config) for name in config.trained_objectives)


def planned_objective(config: HasTraining, architecture: Architecture, name: str = '') -> Objective:
    """The objective of a configuration without a vocabulary, for planning."""
    nothing = np.zeros(0, np.int32)
    vocabulary = Vocabulary(0, nothing > 0, nothing > 0, nothing)
    return objective_of(config, name)(config, architecture, vocabulary, config.rows.row_pieces)


class Arrays(NamedTuple):
    """Paths and shapes: of what is trained, of what an objective reads beside it, and of the weights that an adapter
    leaves as they are."""

    trained: dict[str, tuple[int, ...]]
    frozen: dict[str, tuple[int, ...]]
    base: dict[str, tuple[int, ...]]


def planned_made(objective: Objective) -> Made:
    """What surgery is likely to make: so many new tokens, and no parameter beside them."""
    entries = objective.architecture.vocab_size
    new = min(round(new_tokens(objective.config.vocab, entries)), entries)
    return Made(np.arange(new, dtype=np.int32))


def arrays_of(objective: Objective, made: Made | None = None) -> Arrays:
    """What a step with that objective has in memory; `made`: by surgery, by default what is likely."""
    o, shapes = objective, objective.architecture.shapes()
    params = unflatten({path: jax.ShapeDtypeStruct(shape, jnp.float32) for path, shape in shapes.items()})
    made = planned_made(o) if made is None else made

    def parts(params: Any) -> tuple[Any, Any, Any]:
        key = jax.random.key(0)
        started = o.start(params, key)
        return started, *adapter.split(o.config.pretrain, o.architecture, made, params, started, key)

    started, trained, kept = jax.eval_shape(parts, params)
    base = kept[adapter.BASE][adapter.WEIGHTS] if kept else {}
    return Arrays(*map(_shapes_in, (trained, objective.frozen_shapes(started), base)))


def _shapes_in(tree: Any) -> dict[str, tuple[int, ...]]:
    return {path: leaf.shape for path, leaf in flatten(tree).items()}


def check_objectives(config: HasTraining, architecture: Architecture) -> None:
    """Raise ConfigError for what one of the objectives cannot do, and where they train different parameters."""
    own, *others = config.all_objectives
    for name in (own, *others):
        objective_of(config, name).check(config)
    wanted = arrays_of(planned_objective(config, architecture, own)).trained if others else {}
    for name in others:
        found = arrays_of(planned_objective(config, architecture, name)).trained
        if different := sorted(p for p in found | wanted if found.get(p) != wanted.get(p)):
            raise ConfigError(
                f'config.phase.{config.phases_under(name)[0]}.objective: {name} and config.pretrain.objective={own} '
                f'train different parameters ({different[0]}), so no model can go through both; give all phases one'
            )


def make_objective(
    config: HasTraining,
    architecture: Architecture,
    vocabulary: Vocabulary,
    row_pieces: int,
    mesh: Mesh,
    warn: Callable[[str], None],
    name: str = '',
    measured: MeasuredAttention | None = None,
) -> Objective:
    """The objective of a configuration (of that name, or its own), computed as the mesh and the platform allow.

    `row_pieces`: those of its rows. `measured`: of attention, as `make_compute` takes them.
    """
    kind = objective_of(config, name)
    compute = make_compute(config, architecture, mesh, row_pieces, warn, kind.causal, measured)
    return kind(config, architecture, vocabulary, row_pieces, compute)
