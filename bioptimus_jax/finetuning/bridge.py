"""An encoder of transformers that JAX computes: its weights lie on JAX's devices, and heads of PyTorch read its states.

PyTorch's module stays as a shell with names and shapes: how layers are drawn, frozen, removed and adapted, which rate
each weight has, and how a model is written, is the same for both. Gradients by the states go over the bridge, and are
gradients by the weights beyond it.

Shapes: B windows, L pieces of the longest; R rows and P places that a program is compiled for; D hidden size.
"""

import dataclasses
import functools
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import torch
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from bioptimus_jax.errors import ConfigError, InputError
from bioptimus_jax.finetuning.config import Finetune
from bioptimus_jax.finetuning.heads import Head
from bioptimus_jax.finetuning.stability import EACH_LAYERS
from bioptimus_jax.model.architecture import Architecture
from bioptimus_jax.model.compute import Compute
from bioptimus_jax.model.config import FAMILIES
from bioptimus_jax.model.folder import config_values
from bioptimus_jax.model.tensors import encoder_parameters, read_architecture
from bioptimus_jax.model.trees import Params

LENGTHS = (32, 64, 96, 128, 192, 256, 384, 512, 768, 1024, 1536, 2048, 3072, 4096, 6144, 8192)
"""Places that programs are compiled for: a batch has the next of them, or as many as the model has positions."""
ROWS = 'rows'
REMEDY = "set config.finetune.encoder='torch', on a machine with a GPU"
BASE, DOWN, UP = '.base_layer.', '.lora_A.default.', '.lora_B.default.'
"""What the library peft puts into the names of a matrix that is adapted, and of the two of its adapter."""


class Program(NamedTuple):
    """What is compiled, beside shapes; `scale`: what the product of an adapter counts."""

    architecture: Architecture
    compute: Compute
    scale: float = 0.0


Tensors = dict[str, jax.Array]
"""transformers' tensors by their names in the encoder."""


class Bridge:
    """What takes the place of an encoder's `forward`.

    `trained` and `kept` are its tensors on JAX's devices. Only the first have gradients: `gradients`, the sum since
    `forget`.
    """

    def __init__(self, head: Head, program: Program, seed: int, devices: Sequence[Any]) -> None:
        self.program, self.encoder, self.above = program, head.encoder, head.above
        self.key, self.calls = jax.random.key(seed, impl='threefry2x32'), 0
        self.rows = {True: 0, False: 0}  # of the largest batch so far, with and without gradients
        mesh = Mesh(np.array(devices), (ROWS,))
        self.everywhere, self.split = (NamedSharding(mesh, PartitionSpec(*axes)) for axes in ((), (ROWS,)))
        self.devices = len(devices)
        self.trained: Tensors = {}
        self.kept: Tensors = {}
        self.gradients: Tensors | None = None
        self.read()
        self.encoder.forward = self

    def own(self) -> dict[str, torch.nn.Parameter]:
        """The shell's parameters that are computed with on the other side, by name: all that states depend on."""
        above = {id(parameter) for module in self.above for parameter in module.parameters()}
        plain = self.program.architecture.plain_name
        unused = {*map(plain, self.program.architecture.untouched())}
        named = self.encoder.named_parameters()
        return {name: p for name, p in named if id(p) not in above and plain(name) not in unused}

    def read(self) -> None:
        """Take the weights of the shell. Raises ValueError that names tensors which the architecture has not."""
        self.forget()
        # A copy: what shares memory with the shell would change when that does.
        put = functools.partial(jax.device_put, device=self.everywhere, may_alias=False)
        own = self.own()
        found = {name: put(p.detach().float().numpy()) for name, p in own.items()}
        self.trained = {name: found[name] for name, p in own.items() if p.requires_grad}
        self.kept = {name: value for name, value in found.items() if name not in self.trained}
        jax.eval_shape(functools.partial(_parameters, self.program), found)

    @torch.no_grad()
    def write(self) -> None:
        """Bring the shell up to date with what was trained."""
        own = self.own()
        for name, value in self.trained.items():
            own[name].copy_(torch.from_numpy(np.array(value)))

    def forget(self) -> None:
        """Begin with no gradient."""
        self.gradients = None

    def __call__(
        self,
        input_ids: torch.Tensor,
        attention_mask: torch.Tensor | None = None,
        token_type_ids: torch.Tensor | None = None,
        **others: Any,
    ) -> Any:
        """States [B, L, D], float32 on the CPU, as transformers gives them, and what the shell's pooler makes of them.

        Places of padding hold whatever is computed there. Raises ConfigError for what else a head may ask for.
        """
        from transformers.modeling_outputs import BaseModelOutputWithPooling

        if asked := [
            name
            for name, value in others.items()
            if not (value is None or value is False or name == 'return_dict')
        ]:
            raise ConfigError(
                f'config.finetune.encoder: jax gives the states of the last layer, and this head asks for {asked[0]}; '
                f'{REMEDY}'
            )
        mask_BxL = torch.ones_like(input_ids) if attention_mask is None else attention_mask
        learns = torch.is_grad_enabled() and bool(self.trained)
        given = {'tokens': input_ids, 'segments': mask_BxL, 'token_types': token_type_ids}
        batch = self._batch(learns, {name: of.numpy() for name, of in given.items() if of is not None})
        key = None
        if self.encoder.training and _drops(self.program.architecture):
            self.calls += 1
            key = jax.random.fold_in(self.key, self.calls)
        if learns:
            states_BxLxD = _Crossing.apply(
                torch.zeros((), requires_grad=True), self, batch, key, input_ids.shape
            )
        else:
            states_RxPxD = _states(self.program, self.trained, self.kept, batch, key)
            states_BxLxD = _over(states_RxPxD, input_ids.shape)
        pooler = getattr(self.encoder, 'pooler', None)
        return BaseModelOutputWithPooling(
            last_hidden_state=states_BxLxD, pooler_output=None if pooler is None else pooler(states_BxLxD)
        )

    def back(self, pull: Any, gradient_BxLxD: torch.Tensor, shape: tuple[int, int]) -> None:
        """Add what a gradient by the states is by the weights; `pull` goes back from all places of the program."""
        gradient_RxPxD = np.zeros(shape + gradient_BxLxD.shape[2:], np.float32)
        rows, length = gradient_BxLxD.shape[:2]
        gradient_RxPxD[:rows, :length] = gradient_BxLxD.numpy()
        pulled = _pulled(pull, jax.device_put(gradient_RxPxD, self.split), self.everywhere)
        self.gradients = pulled if self.gradients is None else _added(self.gradients, pulled)

    def _batch(self, learns: bool, arrays_BxL: Mapping[str, np.ndarray]) -> dict[str, jax.Array]:
        """The arrays of `Architecture.encode`, padded to a shape that there is a program for, with gradients or not."""
        rows, length = arrays_BxL['tokens'].shape
        # As many as any batch before had: the last one of an epoch needs no program of its own.
        padded = self.devices * (1 << (-(-rows // self.devices) - 1).bit_length())
        self.rows[learns] = padded = max(self.rows[learns], padded)
        places = places_for(length, self.program.architecture.positions)
        batch = {name: np.zeros((padded, places), np.int32) for name in arrays_BxL}
        for name, array_BxL in arrays_BxL.items():
            batch[name][:rows, :length] = array_BxL
        # One row for all: the gradient of a table of positions is then a plain sum.
        positions = np.arange(places, dtype=np.int32)[None]
        return jax.device_put(batch, self.split) | {'positions': jax.device_put(positions, self.everywhere)}


def cross(
    head: Head, folder: Path, settings: Finetune, seed: int, dtype: str, devices: Sequence[Any] = ()
) -> Bridge:
    """Let JAX compute the encoder of a head; `devices`: that share the rows of a batch, here all accelerators of this
    machine, or one CPU. Raises ConfigError for a model that our own code does not compute."""
    architecture = _of_settings(folder, settings, head.encoder.config)
    devices = devices or devices_here()
    # Where compiling is slow one layer is compiled for all, and where memory is small only products are kept.
    on_cpu = devices[0].platform == 'cpu'
    compute = Compute(dtype=jnp.dtype(dtype), scan_layers=not on_cpu, remat='none' if on_cpu else 'dots')
    program = Program(architecture, compute, settings.lora.scale if settings.lora else 0.0)
    try:
        return Bridge(head, program, seed, devices)
    except ValueError as error:
        raise ConfigError(
            f'config.finetune.encoder: jax does not compute {folder}, of which transformers has other weights '
            f'({error}); {REMEDY}'
        ) from error


def devices_here() -> list[Any]:
    """What an encoder is computed on: every accelerator of this machine, or one CPU."""
    found = jax.local_devices()
    return found[:1] if found[0].platform == 'cpu' else found


def computed_architecture(folder: Path) -> Architecture:
    """The architecture of a folder. Raises ConfigError for a model that our own code does not compute."""
    try:
        return read_architecture(folder).masked_lm()
    except InputError as error:
        raise ConfigError(
            f'config.finetune.encoder: jax does not compute this model: {error}; {REMEDY}'
        ) from error


def _of_settings(folder: Path, settings: Finetune, config: Any) -> Architecture:
    """The architecture of a folder with the layers and the dropout of a fine-tuning, which is where transformers'
    `config` of the family has one."""
    whole = computed_architecture(folder)
    layers = whole.layers - settings.remove_layers
    values = dict(config_values(folder))
    values[whole.config_keys['layers']] = layers
    values |= {key: values[key][:layers] for key in EACH_LAYERS if isinstance(values.get(key), list)}
    usual, own = type(config)().to_dict(), ('dropout', 'attention_dropout')
    rates = {name: settings.dropout if whole.config_keys.get(name) in usual else 0.0 for name in own}
    cut = FAMILIES.load(whole.model_type).from_config(values, folder / 'config.json').masked_lm()
    return dataclasses.replace(cut, **rates)


def places_for(length: int, positions: int) -> int:
    """The places that a batch of such a longest window is padded to."""
    return next((n for n in LENGTHS if length <= n < positions), max(length, positions))


class _Crossing(torch.autograd.Function):
    """The states of a batch, and the way back over the bridge."""

    @staticmethod
    def forward(ctx: Any, start: Any, bridge: Bridge, batch: Any, key: Any, shape: Any) -> torch.Tensor:
        del start  # torch goes back to what one of the arguments needs a gradient for
        states_RxPxD, ctx.pull = _with_pull(bridge.program, bridge.trained, bridge.kept, batch, key)
        ctx.bridge, ctx.shape = bridge, states_RxPxD.shape[:2]
        return _over(states_RxPxD, shape)

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor) -> tuple[None, ...]:
        ctx.bridge.back(ctx.pull, gradients[0], ctx.shape)
        ctx.pull = None  # it holds what the layers have kept
        return (None,) * 5


def _over(states_RxPxD: jax.Array, shape: Sequence[int]) -> torch.Tensor:
    """The states of the real rows and places, as torch's own memory: JAX's must not change."""
    rows, length = shape
    return torch.from_numpy(np.array(states_RxPxD)[:rows, :length])


def _drops(architecture: Architecture) -> bool:
    return bool(architecture.dropout or architecture.attention_dropout)


def _parameters(program: Program, tensors: Mapping[str, jax.Array]) -> Params:
    """Parameters of the architecture, an adapter's products added to its matrices."""
    plain: Tensors = {}
    for name, value in tensors.items():
        if DOWN in name or UP in name:
            continue
        if BASE in name and name.endswith('weight'):
            up, down = (tensors[name.replace(BASE, part)] for part in (UP, DOWN))
            value = value + program.scale * (up @ down)
        plain[program.architecture.plain_name(name.replace(BASE, '.'))] = value
    return encoder_parameters(plain, program.architecture)


def _encoded(program: Program, trained: Tensors, kept: Tensors, batch: Any, key: Any) -> jax.Array:
    parameters = _parameters(program, trained | kept)
    states = program.architecture.encode(parameters, batch, compute=program.compute, dropout_key=key)
    return jnp.asarray(states, jnp.float32)


# Of the module, not of a bridge: the cells of a stage share what is compiled.
_states = jax.jit(_encoded, static_argnums=0)


@functools.partial(jax.jit, static_argnums=0)
def _with_pull(program: Program, trained: Tensors, kept: Tensors, batch: Any, key: Any) -> Any:
    return jax.vjp(lambda tensors: _encoded(program, tensors, kept, batch, key), trained)


@functools.partial(jax.jit, static_argnums=2)
def _pulled(pull: Any, gradient_RxPxD: jax.Array, everywhere: Any) -> Tensors:
    return jax.lax.with_sharding_constraint(pull(gradient_RxPxD)[0], everywhere)


@functools.partial(jax.jit, donate_argnums=0)
def _added(before: Tensors, more: Tensors) -> Tensors:
    return jax.tree.map(jnp.add, before, more)
