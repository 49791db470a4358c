"""What lies in the folder of a fine-tuned model that no class of transformers holds alone: head.json, ensemble.json."""

import dataclasses
from collections.abc import Mapping
from pathlib import Path

from bioptimus_jax.errors import InputError
from bioptimus_jax.records.finetune import ModelOnSet
from bioptimus_jax.records.manifests import ConfigValues
from bioptimus_jax.records.record import Record
from bioptimus_jax.storage.files import read_json

HEAD, TENSORS, ENCODER = 'head.json', 'head.safetensors', 'encoder'
"""The record of a head, its tensors, and the folder of the encoder below it, as transformers has it."""
ENSEMBLE = 'ensemble.json'
"""The record of several seeds that answer together."""
ANEW = 'keep the model again'


@dataclasses.dataclass(frozen=True, kw_only=True)
class KeptHead(Record):
    """A head on an encoder that no class of transformers has.

    `hf_class`: the class of transformers that it was built on. `built`: the keys of config.finetune that decide what it
    is made of. `labels`: what it chooses from, in order. `tensors`: the shapes of its tensors, by name; `sha256`: the
    checksum of the file that holds them.
    """

    hf_class: str
    built: ConfigValues
    labels: tuple[str, ...]
    tensors: Mapping[str, tuple[int, ...]]
    sha256: str

    @property
    def described(self) -> str:
        """The values of `built` in words."""
        return ', '.join(f'{name}={value}' for name, value in self.built.items()) or 'of a plug-in'


@dataclasses.dataclass(frozen=True, kw_only=True)
class KeptEnsemble(ModelOnSet):
    """Seeds of a model on a set under a setting, which answer together; `members`: a folder each."""

    members: tuple[str, ...]


def read_head(folder: Path) -> KeptHead | None:
    """The record of the head in the folder of a model, None where transformers has all of it. Raises InputError."""
    said = read_json(folder / HEAD, ANEW)
    return None if said is None else KeptHead.read(said, str(folder / HEAD), ANEW)


def read_ensemble(folder: Path) -> KeptEnsemble | None:
    """The record of the seeds in a folder, None for that of one model. Raises InputError."""
    file = folder / ENSEMBLE
    if (said := read_json(file, ANEW)) is None:
        return None
    found = KeptEnsemble.read(said, str(file), ANEW)
    # Names from outside must not lead out of the folder.
    wrong = next((name for name in found.members if name != Path(name).name or name in ('', '.', '..')), None)
    if wrong is not None or len(found.members) < 2:
        what = 'fewer than two members' if wrong is None else f'{wrong!r:.60} among its members'
        raise InputError(f'{file}: is damaged ({what}); {ANEW}')
    return found
