"""An adapter alone, in the form of PEFT, beside the merged model and the model that it is for."""

import dataclasses
import re
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from bioptimus_jax.export.card import NAME
from bioptimus_jax.export.gate import GateError
from bioptimus_jax.export.sums import write_sums
from bioptimus_jax.hosts.remote.models import ADAPTER
from bioptimus_jax.model.architecture import Architecture
from bioptimus_jax.model.lora import Lora
from bioptimus_jax.model.peft import OF_BASE, Pair, read_adapter, write_adapter
from bioptimus_jax.model.trees import Params, flatten
from bioptimus_jax.records.export import ABOUT, Export
from bioptimus_jax.run.manifests import versions
from bioptimus_jax.storage.files import (
    JsonObject,
    atomic,
    json_text,
    read_json,
    whole_folder,
    write_json,
)

BASE, ALONE = '-base', '-adapter'
"""Ends of the names of folders. The merged model has another: with these files beside it transformers would put the
adapter on again."""
CLOSE = 1e-5
USE = """---
library_name: peft
base_model: {base}
tags: [lora]
---

# An adapter for {base}

LoRA of rank {rank}, alpha {alpha:g}. The model that it is for, {base}, is the source with the rows of tokens that were
trained, and without the adapter.

```python
from peft import PeftModel
from transformers import {hf_class}

model = PeftModel.from_pretrained({hf_class}.from_pretrained('{base}'), '{phase}{alone}')
```
"""


@dataclasses.dataclass(frozen=True)
class Adapter:
    """The matrices of an adapter, by the paths of kernels, and the parameters of the model without and with it."""

    architecture: Architecture
    lora: Lora
    pairs: Mapping[str, tuple[np.ndarray, np.ndarray]]
    base: Params
    merged: Params


def export(folder: Path, adapter: Adapter, about: Export, base: str) -> dict[str, float]:
    """Write an adapter for the model in the folder called `base`, only if what is read back makes the merged model.

    Gives the largest difference of a weight, as `weights`. Raises GateError.
    """
    module_of = {
        path: adapter.architecture.tensor_name(path).removesuffix('.weight') for path in adapter.pairs
    }
    pairs = {module_of[path]: Pair(down.T, up.T) for path, (down, up) in adapter.pairs.items()}
    with whole_folder(folder) as hidden:
        write_adapter(hidden, pairs, adapter.lora, base)
        worst, read = 0.0, read_adapter(hidden)
        without, merged = flatten(adapter.base), flatten(adapter.merged)
        for path, module in module_of.items():
            difference = np.abs(without[path] + read.change(module).T - merged[path]).max()
            worst = max(worst, float(difference))
        if not worst <= CLOSE:
            raise GateError(
                f'{folder}: with the adapter that is read back, weights differ from the merged by {worst:.2e}'
            )
        measured = {'weights': worst}
        told = dataclasses.replace(about, gate=measured, versions=versions())
        write_json(hidden / ABOUT, told.json())
        names = dict(base=base, phase=about.phase, alone=ALONE, hf_class=adapter.architecture.hf_class)
        with atomic(hidden / NAME) as file:
            file.write(USE.format(rank=adapter.lora.rank, alpha=adapter.lora.alpha, **names))
        write_sums(hidden)
    return measured


def for_hub(folder: Path, base: str, name: str, revision: str = '') -> dict[str, str]:
    """The files of an exported adapter that are others on the hub, where it is `name`, for the model `base`."""
    config: JsonObject = read_json(folder / ADAPTER) or {}
    there = repr(name) + (f', revision={revision!r}' if revision else '')
    # In one pass: a name on the hub may hold the name that the other one has here.
    names = {repr(folder.resolve().name): there, config[OF_BASE]: base}
    card = re.sub(
        '|'.join(map(re.escape, names)), lambda found: names[found[0]], (folder / NAME).read_text('utf-8')
    )
    return {ADAPTER: json_text({**config, OF_BASE: base}), NAME: card}
