"""What a model family decides: the interface that a file of `model/families` keeps.

B rows, L positions, M slots, D hidden size, V padded vocabulary.
"""

import abc
import dataclasses
import functools
import operator
import re
import zlib
from collections.abc import Callable, Hashable, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, Self, TypeAlias, cast

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np

from bioptimus_jax.config.bounds import LARGEST_SIZE, MOST_LAYERS
from bioptimus_jax.errors import InputError
from bioptimus_jax.model.attention import Ranges, layer_seed
from bioptimus_jax.model.compute import PLAIN_COMPUTE, REMAT, Compute
from bioptimus_jax.model.pointwise import gelu, silu
from bioptimus_jax.model.trees import Params, flatten, unflatten
from bioptimus_jax.storage.files import JsonObject

Context: TypeAlias = dict[str, Any]
"""What layers read: the arrays of a batch, and what is made of them once for all layers (ranges, rotations)."""
ACTIVATIONS: dict[str, Callable[[jax.Array], jax.Array]] = {
    'gelu': gelu,
    'gelu_new': functools.partial(jax.nn.gelu, approximate=True),
    'gelu_pytorch_tanh': functools.partial(jax.nn.gelu, approximate=True),
    'relu': jax.nn.relu,
    'silu': silu,
}
COLUMN_MULTIPLE = 128
HEAD = 'cls'  # above the parameters that the output layer alone reads
IN_LAYER = re.compile(r'^encoder/layer/(\d+)/(.*)$')  # a parameter's layer, and its path there
EXPECTED: dict[type, str] = {
    int: f'a whole number from 1 to {LARGEST_SIZE} ({MOST_LAYERS} for layers)',
    float: 'a number from 0 to 1',
    str: 'a name',
}


class Rule(NamedTuple):
    """How the parameters whose paths `pattern` is found in are split over the mesh, and whether their weights decay."""

    pattern: str
    axes: tuple[str | None, ...]
    decays: bool = True


class OutputLayer(NamedTuple):
    """What the logits are made of: `states @ table.T + bias`."""

    states_BxMxD: jax.Array
    table_VxD: jax.Array
    bias_V: jax.Array


def logits_of(states_BxMxD: jax.Array, table_VxD: jax.Array, bias_V: jax.Array) -> jax.Array:
    """Logits BxMxV in float32 of an output layer whose states and table have the type of the products."""
    logits_BxMxV = jnp.einsum('bmd,vd->bmv', states_BxMxD, table_VxD, preferred_element_type=jnp.float32)
    return logits_BxMxV + bias_V[None, None]


@dataclasses.dataclass(frozen=True)
class Architecture(abc.ABC):
    """Everything that decides the parameters and the function of an encoder; hashable, so static under jit.

    A family is a subclass that names three modules, or up to five; their parameters are under `embeddings/`,
    `encoder/layer/N/`, `cls/predictions/` and `encoder/`, in leaves called kernel, bias, embedding and scale. A source
    may lack all of `cls/`.
    """

    vocab_size: int
    hidden: int
    layers: int
    heads: int
    intermediate: int
    max_positions: int
    dropout: float = 0.1
    attention_dropout: float = 0.1
    layer_norm_epsilon: float = 1e-12
    initializer_range: float = 0.02
    activation: str = 'gelu'
    # Whether the output layer has a table of its own, which config.json calls tie_word_embeddings=false.
    untied: bool = False

    # The name in config.json, and that of the family's file.
    model_type: ClassVar[str]
    # What people call the family.
    title: ClassVar[str]
    # Whether matrices and norms have biases; `output_bias` is another matter.
    biases: ClassVar[bool] = True
    # Whether norms take the mean away (LayerNorm) or not (RMSNorm).
    centred: ClassVar[bool] = True
    # The class of transformers that loads what is exported, and that the gate compares with.
    hf_class: ClassVar[str]
    # Field -> key of config.json; needed where the field has no default.
    config_keys: ClassVar[Mapping[str, str]]
    # Keys of config.json that may have this one value, their default.
    supported: ClassVar[Mapping[str, Any]] = {}
    # What transformers takes for a key that config.json lacks, where it is not the field's default.
    hf_defaults: ClassVar[Mapping[str, Any]] = {}
    # Keys of config.json that are ids of the tokenizer -> the role of the token.
    token_keys: ClassVar[Mapping[str, str]] = {'pad_token_id': 'pad'}
    # The head's activation, where it is another one than `activation`.
    head_activation: ClassVar[str] = ''
    # What the encoder's tensors begin with, but for checkpoints of the encoder alone.
    prefix: ClassVar[str]
    # Beginning of a parameter's path -> the modules of its tensor in transformers; the first that fits decides.
    modules: ClassVar[Mapping[str, str]]
    # Tensors in checkpoints that the model does not have; without the prefix.
    ignored: ClassVar[re.Pattern[str]]
    # Second name of a tensor -> its first, in full: one tensor in transformers, written under the first name here.
    tied: ClassVar[Mapping[str, str]]
    # Path of the input embeddings: a row for every token, which surgery grafts.
    table: ClassVar[str]
    # Path of the table of learned positions, where there is one.
    position_table: ClassVar[str] = ''
    # Path of the output layer's own table, for `untied`; a family without one refuses that.
    own_output_table: ClassVar[str] = ''
    # Path of the output layer's bias, an entry for every token, where there is one.
    output_bias: ClassVar[str | None]
    # The id that padding must have, where transformers counts positions by that one whatever config.json says.
    only_pad: ClassVar[int | None] = None
    # Whether scores have another term than the product of query and key: plain attention computes it, and no kernel.
    biased_scores: ClassVar[bool] = False
    # Products as wide as a head that a score is the sum of.
    score_products: ClassVar[int] = 1
    # Whether the feed-forward block multiplies its columns with as many others.
    gated: ClassVar[bool] = False
    # Whether what layers add up stays float32, as norms are in front of blocks.
    float32_sum: ClassVar[bool] = False
    # What the head is for: a name in `export.card.PURPOSES`.
    purpose: ClassVar[str] = 'masked_lm'
    # The first that fits decides; every parameter must be covered.
    rules: ClassVar[Sequence[Rule]]

    def __post_init__(self) -> None:
        if self.hidden % self.heads:
            raise ValueError(f'{self.heads} attention heads do not divide the hidden size {self.hidden}')
        if self.activation not in ACTIVATIONS:
            raise ValueError(f'activation {self.activation!r} is not one of {", ".join(ACTIVATIONS)}')
        if self.untied and not self.own_output_table:
            raise ValueError(f'tie_word_embeddings is False; {self.title} is supported only with True')

    @property
    def padded_vocab_size(self) -> int:
        """Rows of the embedding table: a multiple of 128, which matrix units and sharding ask for."""
        return -(-self.vocab_size // COLUMN_MULTIPLE) * COLUMN_MULTIPLE

    @property
    def padded(self) -> tuple[str, ...]:
        """Paths of the parameters with one row per token, `padded_vocab_size` of them."""
        paths = (self.table, self.output_table, self.output_bias)
        return tuple(path for path in dict.fromkeys(paths) if path)

    @property
    def output_table(self) -> str:
        """Path of the table of the output layer: that of the input embeddings, unless this is `untied`."""
        return self.own_output_table if self.untied else self.table

    def second_names(self) -> dict[str, str]:
        """`tied`, but for a table that is not: there the second name is the only one."""
        return {second: first for second, first in self.tied.items() if second != self._output_tensor()}

    def _output_tensor(self) -> str:
        """The tensor of the output layer's own table, if it has one."""
        return self.tensor_name(self.own_output_table) if self.untied else ''

    def ignores(self, plain_name: str) -> bool:
        """Whether the model does not have the tensor of that plain name."""
        return bool(self.ignored.match(plain_name)) and plain_name != self._output_tensor()

    @property
    def head_size(self) -> int:
        return self.hidden // self.heads

    @property
    def positions(self) -> int:
        """Pieces that a document may have, [CLS] and [SEP] included."""
        return self.max_positions

    @property
    def width(self) -> int:
        """Columns of the table of input embeddings."""
        return self.hidden

    @property
    def projects(self) -> bool:
        """Whether embeddings are brought to the hidden size by a matrix."""
        return self.width != self.hidden

    def padded_with(self, pad: int) -> Self:
        """The same function for a tokenizer that pads with this id."""
        return self

    def masked_lm(self) -> 'Architecture':
        """The same encoder with the head of a masked language model."""
        return self

    def discriminator(self) -> 'Architecture | None':
        """The same encoder with a head of which `logits` [B, M] judge every piece; None: no such head."""
        return None

    def generator(self, **shape: int) -> tuple['Architecture', re.Pattern[str]]:
        """A masked language model of another `shape`, and the paths of what it shares with the discriminator."""
        raise NotImplementedError

    def with_pairs(self) -> 'Paired | None':
        """The same model with a head that judges pairs of texts beside its own, where the family has one."""
        return None

    @property
    def segment_types(self) -> int:
        """Token types that the embeddings tell apart."""
        return getattr(self, 'token_types', 1)

    @property
    def kinds(self) -> tuple[Hashable, ...]:
        """A key for each layer; layers with equal keys have parameters of equal shapes."""
        return (None,) * self.layers

    @property
    def own_layers(self) -> tuple[int, ...]:
        """The number under which the weights of each layer lie; layers with equal numbers share them."""
        return tuple(range(self.layers))

    @property
    def windows(self) -> tuple[int | None, ...]:
        """For each layer the places to either side that a piece attends to; None: all of its document."""
        return (None,) * self.layers

    @classmethod
    def from_config(cls, values: JsonObject, file: Path) -> Self:
        """The shape in the `values` of a config.json. Raises InputError that names `file` and the key."""
        for name, only in cls.supported.items():
            if values.get(name, only) != only:
                raise InputError(f'{file}: {name} is {values[name]!r}; only {only!r} is supported')
        fields = {f.name: f for f in dataclasses.fields(cls)}
        values = {**cls.hf_defaults, **values}
        settings: JsonObject = {'untied': _is_untied(values, file)}
        for field, name in cls.config_keys.items():
            if name in values:
                settings[field] = values[name]
            elif fields[field].default is dataclasses.MISSING:
                raise InputError(f'{file}: has no {name!r}; it is needed to build the model')
            kind: Any = fields[field].type
            if field in settings and not _is_plausible(settings[field], kind, field):
                shown = str(settings[field])[:40]
                raise InputError(f'{file}: {name} is {shown!r}; {EXPECTED[kind]} is expected')
        try:
            return cls(**settings)
        except (ValueError, TypeError, ZeroDivisionError) as error:
            raise InputError(f'{file}: {error}') from error

    def to_config(self) -> JsonObject:
        """What config.json says of the shape."""
        return {name: getattr(self, field) for field, name in self.config_keys.items()}

    @classmethod
    def tensor_name(cls, path: str) -> str:
        """The tensor of a parameter in transformers' state dict."""
        ours = next(start for start in cls.modules if path.startswith(start))
        *modules, leaf = (cls.modules[ours] + path.removeprefix(ours)).split('/')
        return '.'.join([*modules, 'bias' if leaf == 'bias' else 'weight'])

    @classmethod
    def plain_name(cls, name: str) -> str:
        """A tensor's name in a checkpoint as `tensor_name` gives it, without the prefix."""
        return name.removeprefix(cls.prefix)

    def from_hf_tensors(self, tensors: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        """Tensors of a checkpoint, by plain names, as the parameters have them."""
        return tensors

    def to_hf_tensors(self, tensors: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        """The reverse, by full names."""
        return tensors

    def untouched(self) -> Mapping[str, tuple[int, ...]]:
        """Shapes, by full names, of tensors that a source may have and no parameter is, and that exports keep."""
        return {}

    def lost(self, tensors: Mapping[str, np.ndarray]) -> list[str]:
        """Plain names of a checkpoint's tensors that neither parameters nor exports have: heads for labels, say."""
        kept = {self.plain_name(name) for name in (*self.tied, *self.untouched())}
        weights = (name for name, tensor in tensors.items() if not np.issubdtype(tensor.dtype, np.integer))
        return [name for name in weights if self.ignores(name) and name not in kept]

    @abc.abstractmethod
    def embeddings(self, compute: Compute) -> nn.Module:
        """`(batch, seed_2, delta_BxLxD) -> states BxLxD`, with batch as `context` gives it and delta as in `encode`.

        `seed_2` is that of `attention.dropout`; without one nothing is dropped.
        """

    @abc.abstractmethod
    def layer(self, compute: Compute) -> nn.Module:
        """`(hidden_BxLxD, batch, kind, seed_2, slots) -> states`: BxLxD, or in slots alone, as `at_slots` has them.

        `batch` is as `context` gives it, `kind` that of the layer in `kinds`.
        """

    def final_norm(self, compute: Compute) -> nn.Module | None:
        """`hidden_BxLxD -> states_BxLxD`: what follows the last layer, if anything, with parameters in `encoder/`."""
        del compute
        return None

    def of_all_layers(self, compute: Compute) -> nn.Module | None:
        """`(batch) -> arrays`: what every layer reads as `batch['of_all_layers']`, with parameters in `encoder/`."""
        del compute
        return None

    @abc.abstractmethod
    def predictions(self, compute: Compute) -> nn.Module:
        """`hidden_BxMxD -> (states_BxMxD, bias_V)` of the output layer, the bias lowest in columns that are padding."""

    def context(self, batch: Mapping[str, jax.Array]) -> Context:
        """The batch of `encode`, and what is made of it once for all layers: `ranges`, of whole documents."""
        return {**batch, 'ranges': Ranges.of(batch['segments'], lengths_BxG=batch.get('lengths'))}

    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Path and shape of every parameter."""
        return _shapes(self)

    def initial_parameters(self, key: jax.Array) -> Params:
        """The parameters of `drawn_parameters` on the device, as nested dicts."""
        # `jnp.asarray`, `jnp.ones` and `jnp.zeros` compile a program for every shape that they have not seen.
        drawn = self.drawn_parameters(key)
        return unflatten({path: jax.device_put(value) for path, value in drawn.items()})

    def drawn_parameters(self, key: jax.Array) -> dict[str, np.ndarray]:
        """Random float32 parameters by their paths, in numpy.

        Matrices and tables N(0, initializer_range), biases 0, LayerNorm scales 1; the rows that pad the
        vocabulary to `padded_vocab_size` are 0. A tensor depends on the key and on its own path only; it is drawn by
        numpy, alike on every platform.
        """
        words = np.asarray(jax.random.key_data(key)).ravel().tolist()
        params: dict[str, np.ndarray] = {}
        for path, shape in self.shapes().items():
            if path.endswith(('/kernel', '/embedding')):
                generator = np.random.Generator(np.random.Philox([*words, zlib.crc32(path.encode())]))
                drawn = generator.standard_normal(shape, np.float32) * np.float32(self.initializer_range)
                if path in self.padded:
                    drawn[self.vocab_size :] = 0
                params[path] = drawn
            else:
                params[path] = np.full(shape, float(path.endswith('/scale')), np.float32)
        return params

    def output_layer(
        self, params: Params, hidden_BxMxD: jax.Array, compute: Compute = PLAIN_COMPUTE
    ) -> OutputLayer:
        """What the masked-language-model head makes of states."""
        variables = {'params': params.get(HEAD, {}).get('predictions', {})}
        states_BxMxD, bias_V = cast(tuple, self.predictions(compute).apply(variables, hidden_BxMxD))
        return OutputLayer(states_BxMxD, _leaf(params, self.output_table), bias_V)

    def embed(
        self,
        params: Params,
        batch: Mapping[str, jax.Array],
        *,
        compute: Compute = PLAIN_COMPUTE,
        dropout_key: jax.Array | None = None,
        embedding_delta: jax.Array | None = None,
    ) -> jax.Array:
        """What the embedding block gives to the first layer, BxLxD: of tables, norm and dropout. As `encode`."""
        embeddings = {'params': params['embeddings']}
        module, context = self.embeddings(compute), self.context(batch)
        states_BxLxD = module.apply(embeddings, context, _seed_of(dropout_key), embedding_delta)
        return cast(jax.Array, compute.place(states_BxLxD, 'rows', None, None))

    def encode(
        self,
        params: Params,
        batch: Mapping[str, jax.Array],
        *,
        compute: Compute = PLAIN_COMPUTE,
        dropout_key: jax.Array | None = None,
        embedding_delta: jax.Array | None = None,
        embedded_BxLxD: jax.Array | None = None,
        all_layers: bool = False,
        slots: jax.Array | None = None,
    ) -> Any:
        """The last layer's states BxLxD in `compute.dtype`; with `all_layers` every layer's, embeddings first.

        With `slots` the last layer's states there alone, and most of that layer is computed for them only: places in
        each row, BxM, give BxMxD; places among all B * L pieces, K, give KxD.

        `batch` holds int32 BxL arrays: `tokens`; `segments`, 0 for padding, equal for the pieces of one document;
        `positions`, from 0 within each document; what a family reads besides. A position beyond the table gives NaN.
        Without `dropout_key` nothing is dropped; with one the masks do not depend on the sharding.
        `embedding_delta`, BxL and as wide as the table, is added to the word embeddings before they are normalised.
        `embedded_BxLxD`: what the layers begin with, in place of what `embed` gives.
        """
        if slots is not None and all_layers:
            raise ValueError('slots are for the last layer')
        seed_2, context, kinds = _seed_of(dropout_key), self.context(batch), self.kinds
        hidden_BxLxD = embedded_BxLxD
        if hidden_BxLxD is None:
            hidden_BxLxD = self.embed(
                params, batch, compute=compute, dropout_key=dropout_key, embedding_delta=embedding_delta
            )

        if common := self.of_all_layers(compute):
            context['of_all_layers'] = common.apply({'params': params['encoder']}, context)

        @functools.cache
        def layer(kind: Hashable) -> Callable[..., jax.Array]:
            @REMAT[compute.remat]
            def of_kind(hidden_BxLxD: jax.Array, number: Any, weights: Any, slots: Any = None) -> jax.Array:
                seed = None if seed_2 is None else layer_seed(seed_2, number)
                of_layer = compute.gather({'encoder': {'layer': {'0': weights}}}, self.rules)
                module, variables = self.layer(compute), {'params': of_layer['encoder']['layer']['0']}
                return cast(jax.Array, module.apply(variables, hidden_BxLxD, context, kind, seed, slots))

            return of_kind

        layers = [params['encoder']['layer'][str(number)] for number in self.own_layers]
        # A scan compiles one layer of each kind, but keeps no states between them. The last layer stands apart where it
        # is computed in slots.
        alike = self.layers - (slots is not None)
        scanned = compute.scan_layers and not all_layers
        first, period = repetition(kinds[:alike]) if scanned else (alike, 1)
        states = [hidden_BxLxD]
        for number, weights in enumerate(layers[:first]):
            states.append(layer(kinds[number])(states[-1], number, weights))
        last_BxLxD: Any = states[-1]
        if first < alike:
            repeated = [layer(kind) for kind in kinds[first : first + period]]
            last_BxLxD = _scanned(repeated, first, layers[:alike], last_BxLxD)
        if slots is not None:
            last_BxLxD = layer(kinds[-1])(last_BxLxD, alike, layers[-1], slots)
        if closing := self.final_norm(compute):
            last_BxLxD = closing.apply({'params': params['encoder']}, last_BxLxD)
        if slots is not None:
            return last_BxLxD[0] if slots.ndim == 1 else last_BxLxD
        return (*states[:-1], last_BxLxD) if all_layers else last_BxLxD

    def masked_lm_logits(
        self, params: Params, hidden_BxMxD: jax.Array, compute: Compute = PLAIN_COMPUTE
    ) -> jax.Array:
        """Logits BxMxV over the padded vocabulary, float32; padded columns hold about the lowest finite number."""
        states_BxMxD, table_VxD, bias_V = self.output_layer(params, hidden_BxMxD, compute)
        return logits_of(states_BxMxD, table_VxD.astype(compute.dtype), bias_V)

    def logits(self, params: Params, hidden_BxLxD: jax.Array, compute: Compute = PLAIN_COMPUTE) -> jax.Array:
        """What `hf_class` calls logits, which the gate compares: here those of every real token, BxLxV."""
        return self.masked_lm_logits(params, hidden_BxLxD, compute)[..., : self.vocab_size]

    def outputs(self, params: Params, hidden_BxLxD: jax.Array) -> dict[str, jax.Array]:
        """Outputs of `hf_class` other than hidden states, by its names. The gate compares all of them."""
        return {'logits': self.logits(params, hidden_BxLxD)}


class Paired(Architecture):
    """A model with a second head: whether a text follows another, judged by the state at their first piece."""

    @abc.abstractmethod
    def pair_logits(self, params: Params, first_xD: jax.Array) -> jax.Array:
        """Logits [..., 2] in float32, of: it follows, it was drawn at random."""


@functools.cache
def _shapes(architecture: Architecture) -> dict[str, tuple[int, ...]]:
    def trace() -> Params:  # never run: a process that only asks for shapes starts no device
        key, hidden_1x1xD = jax.random.key(0), jnp.zeros((1, 1, architecture.hidden))
        names = ('tokens', 'segments', 'positions')
        batch = architecture.context({name: jnp.zeros((1, 1), jnp.int32) for name in names})
        embeddings = architecture.embeddings(PLAIN_COMPUTE).init(key, batch, None, None)['params']
        module, closing = architecture.layer(PLAIN_COMPUTE), architecture.final_norm(PLAIN_COMPUTE)
        beside: Params = {}
        if common := architecture.of_all_layers(PLAIN_COMPUTE):
            batch['of_all_layers'], made = common.init_with_output(key, batch)
            beside = made['params']
        of_kind = {
            kind: module.init(key, hidden_1x1xD, batch, kind, None, None)['params']
            for kind in dict.fromkeys(architecture.kinds)
        }
        layers = {str(own): of_kind[kind] for own, kind in zip(architecture.own_layers, architecture.kinds)}
        closed = closing.init(key, hidden_1x1xD)['params'] if closing else {}
        head = architecture.predictions(PLAIN_COMPUTE).init(key, hidden_1x1xD).get('params', {})
        return {
            'embeddings': embeddings,
            'encoder': {'layer': layers, **beside, **closed},
            HEAD: {'predictions': head},
        }

    shapes = {path: leaf.shape for path, leaf in flatten(jax.eval_shape(trace)).items()}
    return {**shapes, architecture.output_table: shapes[architecture.table]}


def _scanned(
    repeated: Sequence[Callable[..., jax.Array]], first: int, layers: Sequence[Any], hidden_BxLxD: jax.Array
) -> jax.Array:
    """States behind the last layer: from layer `first` on the functions of `repeated` take turns, in one loop."""
    period = len(repeated)
    of_period = [layers[first + n :: period] for n in range(period)]
    stacked = [jax.tree.map(lambda *leaves: jnp.stack(leaves), *alike) for alike in of_period]
    # Layers keep their numbers, so that dropout is the same as in the unrolled stack.
    numbers = jnp.arange(first, len(layers)).reshape(-1, period)

    def some(hidden_BxLxD: jax.Array, numbered: Any) -> tuple[jax.Array, None]:
        for layer, number, weights in zip(repeated, *numbered):
            hidden_BxLxD = layer(hidden_BxLxD, number, weights)
        return hidden_BxLxD, None

    return jax.lax.scan(some, hidden_BxLxD, (numbers, stacked))[0]


@functools.cache
def repetition(kinds: tuple[Hashable, ...]) -> tuple[int, int]:
    """Where layers begin to repeat until the last one, and after how many: (0, 1) where all are alike.

    So chosen that the layers before it and those of one repetition are the fewest.
    """
    count = len(kinds)

    def repeats(first: int, period: int) -> bool:
        return not (count - first) % period and kinds[first : count - period] == kinds[first + period :]

    found = ((n, p) for n in range(count) for p in range(1, count - n + 1) if repeats(n, p))
    return min(found, key=lambda pair: (sum(pair), pair), default=(count, 1))


def _seed_of(dropout_key: jax.Array | None) -> jax.Array | None:
    """Two words and no key: dropout is drawn by place, so that masks depend neither on the sharding nor on remat."""
    return None if dropout_key is None else jax.random.key_data(dropout_key).ravel()[:2]


def _leaf(params: Any, path: str) -> Any:
    return functools.reduce(operator.getitem, path.split('/'), params)


def _is_untied(values: JsonObject, file: Path) -> bool:
    """Whether config.json says that the output layer has a table of its own."""
    tied = values.get('tie_word_embeddings', True)
    if not isinstance(tied, bool):
        raise InputError(f'{file}: tie_word_embeddings is {tied!r}; true or false is expected')
    return not tied


def _is_plausible(value: Any, kind: type, field: str) -> bool:
    """Whether a value of config.json can be that of a field of this type."""
    if kind is str:
        return isinstance(value, str)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    if kind is float:
        return 0 <= value <= 1
    lowest = 0 if field == 'pad' else 1
    return isinstance(value, int) and lowest <= value <= (MOST_LAYERS if field == 'layers' else LARGEST_SIZE)
