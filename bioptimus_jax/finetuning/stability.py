"""The stability kit of Tinn et al.: frozen, re-initialised and removed layers, rates that fall with the depth.

For any encoder of Hugging Face that keeps its layers in one list, whatever it calls them: BERT, RoBERTa, ELECTRA,
DistilBERT, DeBERTa, ModernBERT ...
"""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, TypedDict

import torch

from bioptimus_jax.errors import ConfigError
from bioptimus_jax.finetuning.config import Finetune
from bioptimus_jax.finetuning.heads import Head
from bioptimus_jax.progress.console import numbered

HEAD = 'head'
EMBEDDINGS = -1
"""Depth of the embeddings, below layer 0. A pooler's is above the top layer."""
LISTED = 8
EACH_LAYERS = ('layer_types', 'attention_window')
"""Keys of config.json that may list something for each layer."""


def remove_layers(config: Any, settings: Finetune, folder: Path) -> None:
    """Let the configuration have `remove_layers` fewer; transformers then leaves the top ones out when it loads."""
    config.num_hidden_layers = check_layers(settings, config.num_hidden_layers, folder)
    # Where layers are of several kinds, those that stay keep theirs.
    for key in EACH_LAYERS:
        if isinstance(listed := getattr(config, key, None), list):
            setattr(config, key, listed[: config.num_hidden_layers])


def check_layers(settings: Finetune, layers: int, folder: Path) -> int:
    """The layers that are left of so many. Raises ConfigError where a setting wants more than there are."""
    if settings.remove_layers >= layers:
        raise ConfigError(
            f'config.finetune.remove_layers: {settings.remove_layers}, but {folder} has {numbered(layers, "layer")}, '
            'one must stay'
        )
    left = layers - settings.remove_layers
    for key in ('freeze_layers', 'reinit_layers'):
        if getattr(settings, key) > left:
            raise ConfigError(
                f'config.finetune.{key}: {getattr(settings, key)}, but {folder} has {numbered(left, "layer")}'
            )
    if settings.freeze_layers + settings.reinit_layers > left:
        raise ConfigError(
            f'config.finetune.reinit_layers: {settings.reinit_layers} of {numbered(left, "layer")} begin at random, '
            f'and freeze_layers={settings.freeze_layers} would keep some of them so'
        )
    return left


def encoder_layers(head: Head) -> torch.nn.ModuleList:
    """The list of the encoder's layers, lowest first. Raises ConfigError where there is no such list."""
    wanted = head.encoder.config.num_hidden_layers
    return _listed(head.encoder, wanted, 'freeze_layers, reinit_layers and layer_decay need')


def distinct_layers(head: Head) -> torch.nn.ModuleList:
    """The layers with weights of their own: in an ALBERT one per group. Raises as `encoder_layers`."""
    config = head.encoder.config
    wanted = getattr(config, 'num_hidden_groups', config.num_hidden_layers)
    return _listed(head.encoder, wanted, 'lora_rank needs')


def _listed(encoder: torch.nn.Module, wanted: int, needed: str) -> torch.nn.ModuleList:
    found = [m for m in encoder.modules() if isinstance(m, torch.nn.ModuleList) and len(m) == wanted]
    # `modules` gives a module before those in it, so the first list is the outermost.
    outer = [m for m in found if len({type(layer) for layer in m}) == 1][:1]
    if not outer:
        raise ConfigError(
            f'config.finetune: {type(encoder).__name__} has no list of {wanted} layers of one kind, which {needed}'
        )
    return outer[0]


def reinitialise(head: Head, count: int) -> None:
    """Draw the top `count` layers again, and the pooler or its like (`Head.above`), as before pre-training.

    That is how transformers draws the family's weights: mostly from N(0, initializer_range), not truncated, biases 0,
    norms 1 and 0; ModernBERT's are truncated, and narrower where a layer adds to its input. Zhang et al. (2021), who
    draw the pooler too. Draws from torch's generator.
    """
    layers = encoder_layers(head)
    draw([*layers[len(layers) - count :], *head.above], head.encoder)


def draw(modules: Iterable[torch.nn.Module], model: Any) -> None:
    """Draw the weights of modules as transformers draws those of the model's family, from torch's generator."""
    for module in modules:
        for parameter in module.parameters():
            # transformers marks what it has loaded, and draws no such tensor.
            parameter._is_hf_initialized = False
        module.apply(model._init_weights)


def freeze(head: Head, count: int) -> None:
    """Keep the embeddings and the lowest `count` layers as they are; nothing is computed backwards through them.

    Freezing takes their weights from the optimiser and changes nothing else: dropout goes on in them in training.
    """
    for name, parameter, place in _places(head, encoder_layers(head), _of_norms(head)):
        if place is None:
            raise _uncovered([name])
        if place != HEAD and place < count:
            parameter.requires_grad_(False)


class ParameterGroup(TypedDict):
    """Parameters with their peak rate and their weight decay, as torch's optimisers take them."""

    params: list[torch.nn.Parameter]
    lr: float
    weight_decay: float


def parameter_groups(head: Head, settings: Finetune) -> list[ParameterGroup]:
    """Every parameter that is trained, in exactly one group with its peak rate and its weight decay.

    Biases, layer norms and `undecayed` have no decay. With `layer_decay` d, the layer that is k below the top one has
    the rate times d^(k+1) (rule zhang; Zhang et al., 2021) or d^(k+2) (rule electra: ELECTRA's code counts the
    pooler that it does not use), and the embeddings, with their projection, the next power after the lowest layer's;
    a norm after the last layer goes with the top layer, and a pooler is one above it, with rule zhang without weight
    decay. The head has `head_learning_rate`. Raises ConfigError that lists the parameters which no rule covers.
    """
    # Without layer decay nothing asks for the list of layers, which some encoders lack.
    layers = encoder_layers(head) if settings.layer_decay < 1 else ()
    depth = len(layers)
    first = {'zhang': 1, 'electra': 2}[settings.layer_decay_rule]
    groups: dict[tuple[float, float], list[Any]] = {}
    uncovered = []
    norms = _of_norms(head)
    for name, parameter, place in _places(head, layers, norms):
        if not parameter.requires_grad:
            continue
        if place == HEAD:
            rate = settings.head_learning_rate or settings.learning_rate
        elif not depth:
            rate = settings.learning_rate
        elif place is None:
            uncovered.append(name)
            continue
        else:
            rate = settings.learning_rate * settings.layer_decay ** (depth - 1 - place + first)
        decays = not (_is_bias(name) or id(parameter) in norms or name.startswith(head.undecayed))
        # Zhang et al. let a pooler have none, which is above the top layer.
        decay = settings.weight_decay if decays and not (depth and place == depth and first == 1) else 0.0
        groups.setdefault((rate, decay), []).append(parameter)
    if uncovered:
        raise _uncovered(uncovered)
    return [{'params': p, 'lr': rate, 'weight_decay': decay} for (rate, decay), p in groups.items()]


def _places(
    head: Head, layers: torch.nn.ModuleList | tuple[()], norms: set[int]
) -> Iterator[tuple[str, Any, Any]]:
    """Name, parameter, and where it is: HEAD, EMBEDDINGS, a layer's number, or None where no rule knows."""
    stack = (*layers, *head.above) if layers else ()
    number = {id(p): at for at, module in enumerate(stack) for p in module.parameters()}
    inside = {id(p) for p in head.encoder.parameters()}
    table = {id(p) for p in head.encoder.get_input_embeddings().parameters()} | _of_distances(head.encoder)
    for name, parameter in head.named_parameters():
        if id(parameter) in number:
            yield name, parameter, number[id(parameter)]
        elif id(parameter) not in inside:
            yield name, parameter, HEAD
        elif id(parameter) in table or 'embedding' in name.lower():
            yield name, parameter, EMBEDDINGS
        else:
            # The norm after the last layer goes with the top layer.
            yield name, parameter, len(layers) - 1 if id(parameter) in norms else None


def _of_distances(encoder: Any) -> set[int]:
    """Ids of the parameters that lie beside the layers and hold no words: tables of distances, and their norms."""
    words, found = encoder.get_input_embeddings(), set()
    for module in encoder.modules():
        parts = [*module.children()]
        if any(isinstance(part, torch.nn.Embedding) and part is not words for part in parts):
            of_tables = (part for part in parts if isinstance(part, torch.nn.Embedding | torch.nn.LayerNorm))
            found |= {id(p) for part in of_tables for p in part.parameters()}
    return found


def _is_bias(name: str) -> bool:
    return name.rpartition('.')[2].startswith('bias')  # an LSTM's are bias_ih_l0 ...


def _of_norms(head: Head) -> set[int]:
    """Ids of the parameters of norms, by class: Megatron-BERT has them as `ln`, and a model's name may hold "norm"."""
    norms = (m for m in head.modules() if type(m).__name__.endswith('Norm'))
    return {id(p) for norm in norms for p in norm.parameters(recurse=False)}


def _uncovered(names: list[str]) -> ConfigError:
    more = f' and {len(names) - LISTED} more' if len(names) > LISTED else ''
    return ConfigError(
        f'config.finetune: no rule says which layer has {", ".join(names[:LISTED])}{more}; freeze_layers and '
        'layer_decay cannot be used with this model'
    )
