"""An encoder of Hugging Face with what a task puts on it.

Shapes: B windows, L pieces of the longest window, D hidden size, H units.
"""

import abc
import contextlib
from collections.abc import Mapping, Sequence
from typing import Any

import torch

DTYPES = {'float32': torch.float32, 'bfloat16': torch.bfloat16}


def read_both_ways(lstm: torch.nn.LSTM, states_BxLxD: torch.Tensor, mask_BxL: torch.Tensor) -> torch.Tensor:
    """States [B, L, 2 H] of an LSTM in both directions over the pieces of each window, padding left out."""
    # torch takes the lengths from the CPU alone.
    packed = torch.nn.utils.rnn.pack_padded_sequence(
        states_BxLxD, mask_BxL.sum(1).cpu(), True, enforce_sorted=False
    )
    read, _ = lstm(packed)
    return torch.nn.utils.rnn.pad_packed_sequence(read, True, total_length=states_BxLxD.shape[1])[0]


def _in_float32(layer: torch.nn.Linear, given: tuple[torch.Tensor], output: torch.Tensor) -> torch.Tensor:
    """A forward hook: what a linear layer gives without autocast, as bfloat16 would leave 8 bits of a number."""
    with torch.autocast(output.device.type, enabled=False):
        return torch.nn.functional.linear(given[0].float(), layer.weight, layer.bias)


class Head(torch.nn.Module, abc.ABC):
    """What is fine-tuned: `pretrained`, which computes in `dtype`, and what a subclass adds. `adapter`: that of
    `finetuning.adapters`, until it is merged. `bridge`: that of `finetuning.bridge`, where JAX computes the encoder.

    Parameters whose names begin with one of `undecayed` have no weight decay; nor have biases and norms.

    How it is kept (`finetuning.stored`) follows from its tensors. Where `pretrained` holds them all, transformers loads
    the whole; otherwise encoder and `own_tensors` are kept apart, and the class makes it again by `built`.
    """

    undecayed: tuple[str, ...] = ()
    built: Mapping[str, Any] = {}
    """The keys of config.finetune by which it was made, with their values: a subclass that adds tensors says them."""

    def __init__(self, pretrained: Any, labels: Sequence[str], dtype: str) -> None:
        super().__init__()
        self.adapter: Any = None
        self.bridge: Any = None
        self.pretrained, self.labels, self.dtype = pretrained, tuple(labels), DTYPES[dtype]
        if self.dtype != torch.float32:
            of_encoder = set(self.encoder.modules())
            for layer in self.pretrained.modules():
                is_last = isinstance(layer, torch.nn.Linear) and layer.out_features == len(self.labels)
                if is_last and layer not in of_encoder:
                    layer.register_forward_hook(_in_float32)

    @property
    def encoder(self) -> Any:
        """The pre-trained part, without any head."""
        return self.pretrained.base_model

    @property
    def own_tensors(self) -> dict[str, torch.Tensor]:
        """The tensors that are not the encoder's, by their names here."""
        of_encoder = {id(tensor) for tensor in self.encoder.state_dict(keep_vars=True).values()}
        every = self.state_dict(keep_vars=True)
        return {name: tensor for name, tensor in every.items() if id(tensor) not in of_encoder}

    @property
    def is_plain(self) -> bool:
        """Whether `pretrained` holds every tensor, and so transformers' class is the whole of it."""
        return all(name.startswith('pretrained.') for name in self.own_tensors)

    def beside(self, max_pieces: int) -> Mapping[str, Any]:
        """The values of JSON files beside a kept model, by their paths. `max_pieces`: how much it reads of a text."""
        return {}

    @property
    def above(self) -> list[torch.nn.Module]:
        """What pre-training may have taught between the last layer and the labels: what transformers calls a pooler."""
        found = getattr(self.encoder, 'pooler', None)
        return [] if found is None else [found]

    @property
    def device(self) -> torch.device:
        return self.pretrained.device

    @property
    def on_cpu(self) -> bool:
        """Whether PyTorch computes the encoder on the CPU, where small batches with little padding are fastest."""
        return self.device.type == 'cpu' and self.bridge is None

    @property
    def pad(self) -> int:
        return self.encoder.config.pad_token_id or 0

    def computing(self) -> contextlib.AbstractContextManager:
        """A context in which the encoder computes in `dtype`."""
        return torch.autocast(self.device.type, self.dtype, enabled=self.dtype != torch.float32)

    @abc.abstractmethod
    def batch(self, windows: Sequence[Any], targets: Sequence[Any] | None = None) -> Any:
        """Tensors of some windows on the device; `targets`, in training alone, are those of `Task.target`."""

    @abc.abstractmethod
    def loss(self, batch: Any) -> torch.Tensor:
        """The mean over what is predicted of minus log-likelihood, in nats."""

    def predicted(self, windows: Sequence[Any], targets: Sequence[Any]) -> int:
        """How much the loss of these windows is the mean over; here the windows."""
        return len(windows)

    @abc.abstractmethod
    def predict(self, batch: Any) -> torch.Tensor:
        """What was found in every window, an entry each, for `Task.decode`. Without gradients."""
