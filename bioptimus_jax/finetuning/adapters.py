"""Low-rank adapters on an encoder of transformers, by the library peft: put on before training, merged after it."""

from collections.abc import Iterable
from typing import Any

import torch

from bioptimus_jax.errors import ConfigError
from bioptimus_jax.finetuning.heads import Head
from bioptimus_jax.finetuning.stability import distinct_layers
from bioptimus_jax.model.lora import Lora

KEY = 'config.finetune.lora_targets'


class Adapter:
    """peft's own object of an adapter. Not a module: the head would have every parameter of the encoder twice."""

    def __init__(self, tuner: Any) -> None:
        self._tuner = tuner

    def merge(self) -> None:
        """Add the products to the weights, in place, and take the adapter off."""
        self._tuner.merge_and_unload()


def put_on(head: Head, lora: Lora) -> Adapter:
    """Put an adapter on the layers of a head's encoder; beside it only what is above them stays trained.

    Raises ConfigError where peft is not installed, and for targets that the encoder does not have.
    """
    try:
        from peft import LoraConfig
        from peft.tuners.lora import LoraModel
    except ImportError as error:
        raise ConfigError(
            "config.finetune.lora_rank: needs the package peft; pip install 'bioptimus-jax[lora]', or set it to 0"
        ) from error
    encoder, above = head.encoder, [p for module in head.above for p in module.parameters()]
    # Its names, of modules in the layers: `all-linear` would take poolers too, and refuses taggers.
    wanted = _in_layers(head, lora, encoder.named_modules())
    alpha: Any = lora.alpha  # peft says int, and divides it
    config = LoraConfig(
        r=lora.rank, lora_alpha=alpha, target_modules=wanted, lora_dropout=0.0, init_lora_weights=True
    )
    tuner = LoraModel(encoder, config, 'default')
    for parameter in above:
        parameter.requires_grad_(True)
    return Adapter(tuner)


def _in_layers(head: Head, lora: Lora, modules: Iterable[tuple[str, torch.nn.Module]]) -> list[str]:
    """The names of the linear modules in layers that are targets; a module comes right before those in it."""
    layers = {id(layer) for layer in distinct_layers(head)}
    found: dict[str, str] = {}
    layer = None
    for name, module in modules:
        if id(module) in layers:
            layer = f'{name}.'
        if isinstance(module, torch.nn.Linear) and layer and name.startswith(layer):
            found[name] = name.removeprefix(layer)
    chosen = {*lora.chosen(dict.fromkeys(found.values()), KEY)}
    return [name for name, within in found.items() if within in chosen]


def merge(head: Head) -> None:
    """Merge a head's adapter, if it has one: what is left is the model that transformers loads."""
    if head.adapter is not None:
        head.adapter.merge()
        head.adapter = None
