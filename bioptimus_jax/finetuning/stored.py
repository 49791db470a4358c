"""The folder of a fine-tuned model that is kept: as transformers has it, or its encoder and beside it our own head.

What lies in the folder of a head that no class of transformers holds:

  config.json, tokenizer files   as transformers has them; without weights, so that nothing can draw a head at random
  encoder/                       the encoder, complete for transformers' AutoModel
  head.json, head.safetensors    the head: what it is made of, and its tensors
  reading.json                   how texts are cut (`finetuning.kept`)

Several seeds that answer together are a folder with config.json, the tokenizer, reading.json and ensemble.json, and a
folder for each seed with the rest of these.
"""

import contextlib
import dataclasses
import os
import shutil
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import safetensors.torch
import torch

from bioptimus_jax.config.fields import record_from
from bioptimus_jax.errors import ConfigError, InputError
from bioptimus_jax.finetuning.card import NAME as CARD
from bioptimus_jax.finetuning.config import Finetune
from bioptimus_jax.finetuning.heads import Head
from bioptimus_jax.finetuning.kept import NAME as READING
from bioptimus_jax.finetuning.kept import Reads
from bioptimus_jax.finetuning.loading import load_weights
from bioptimus_jax.finetuning.task import Task
from bioptimus_jax.records.kept import (
    ANEW,
    ENCODER,
    ENSEMBLE,
    HEAD,
    TENSORS,
    KeptEnsemble,
    KeptHead,
    read_head,
)
from bioptimus_jax.storage.files import sha256, whole_folder, write_json
from bioptimus_jax.tokenizer.subwords import file_names

Tensors = Mapping[str, torch.Tensor]
Make = Callable[[Any, Sequence[str], Finetune, str], Head]
"""A model of transformers, labels, settings, type -> the head on it: a class of heads, or a task's `head`."""


def undrawn() -> contextlib.AbstractContextManager:
    """A context after which torch's generator is as before: what is drawn for layers that are filled is of no use."""
    return torch.random.fork_rng(devices=[])


@dataclasses.dataclass(frozen=True)
class Parts:
    """A kept model in parts: what transformers has loaded, and what has to be put on it, if anything."""

    folder: Path
    pretrained: Any
    record: KeptHead | None = None
    tensors: Tensors = dataclasses.field(default_factory=dict)

    @property
    def labels(self) -> tuple[str, ...]:
        """The labels in the order of the scores."""
        named = self.pretrained.config.id2label
        return tuple(str(named[at]) for at in range(len(named)))

    def head(self, make: Make, settings: Finetune, dtype: str) -> Head:
        """The head with its tensors, in the place of the model; `settings`: how it reads.

        Raises InputError for a head of other parts or shapes.
        """
        if self.record is None:
            return make(self.pretrained, self.labels, settings, dtype)
        with undrawn():
            made = _rebuilt(make, self, settings, dtype, self.record)
        return made.to(self.pretrained.device)


def load_parts(folder: Path, hf_class: str) -> Parts:
    """The parts of a model in a folder, by a class of transformers, on the CPU in float32.

    Raises InputError for a folder without some of them.
    """
    record = read_head(folder)
    if record is None:
        model, info = load_weights(folder, hf_class)
        lacking = [*info['missing_keys'], *info['mismatched_keys']]
    else:
        tensors = _tensors(folder, record)
        with undrawn():
            model, info = load_weights(folder / ENCODER, hf_class)
        inside = f'{model.base_model_prefix}.'
        lacking = [name for name in info['missing_keys'] if name.startswith(inside)]
        lacking += info['mismatched_keys']
    if lacking := sorted(map(str, lacking)):
        raise InputError(f'{folder}: lacks {", ".join(lacking[:3])}, so its answers would be random')
    return Parts(folder, model) if record is None else Parts(folder, model, record, tensors)


def save_model(task: Task, tokenizer: Any, head: Head, reads: Reads, folder: Path) -> None:
    """Write a head with its encoder and tokenizer, whole or not at all.

    The labels are those that the model was taught (config.finetune.scheme), in `id2label`; how it reads is beside it.
    """
    with whole_folder(folder) as hidden:
        reads.write(hidden)
        if head.is_plain:
            head.pretrained.save_pretrained(hidden)
        else:
            _save_apart(task.hf_class, tokenizer, head, hidden)
        tokenizer.save_pretrained(hidden)
        for path, values in head.beside(reads.max_pieces).items():
            (hidden / path).parent.mkdir(exist_ok=True)
            write_json(hidden / path, values)


def _save_apart(hf_class: str, tokenizer: Any, head: Head, hidden: Path) -> None:
    head.encoder.save_pretrained(hidden / ENCODER)
    tokenizer.save_pretrained(hidden / ENCODER)
    head.encoder.config.save_pretrained(hidden)
    tensors = {name: tensor.detach().cpu().contiguous() for name, tensor in head.own_tensors.items()}
    safetensors.torch.save_file(tensors, hidden / TENSORS)
    record = KeptHead(
        hf_class=hf_class,
        built=dict(head.built),
        labels=head.labels,
        tensors={name: tuple(tensor.shape) for name, tensor in tensors.items()},
        sha256=sha256(hidden / TENSORS),
    )
    write_json(hidden / HEAD, record.json())


def _tensors(folder: Path, record: KeptHead) -> Tensors:
    file = folder / TENSORS
    if not file.is_file():
        raise InputError(f'{file}: is missing; restore it, or {ANEW}')
    if sha256(file) != record.sha256:
        raise InputError(f'{file}: is not the file that {HEAD} was written for; restore it, or {ANEW}')
    try:
        return safetensors.torch.load_file(file)
    except Exception as error:  # of its reader in Rust
        raise InputError(f'{file}: is damaged ({error}); {ANEW}') from error


def _rebuilt(make: Make, parts: Parts, settings: Finetune, dtype: str, record: KeptHead) -> Head:
    file = parts.folder / HEAD
    if parts.labels != record.labels:
        raise InputError(f'{file}: has other labels than config.json of its encoder; {ANEW}')
    try:
        known = record_from(Finetune, {**dataclasses.asdict(Finetune()), **record.built}, 'finetune.')
    except ConfigError as error:
        raise InputError(f'{file}: is damaged (built: {error}); {ANEW}') from error
    built = {name: getattr(known, name) for name in record.built}
    made = make(parts.pretrained, record.labels, dataclasses.replace(settings, **built), dtype)
    wanted = {name: tuple(tensor.shape) for name, tensor in made.own_tensors.items()}
    given = {name: tuple(tensor.shape) for name, tensor in parts.tensors.items()}
    for name in sorted({*wanted, *given, *record.tensors}):
        if not wanted.get(name) == given.get(name) == record.tensors.get(name):
            raise InputError(
                f'{file}: {name} is not as a head ({record.described}) has it here; {ANEW}, or read it with the '
                'version that wrote it'
            )
    made.load_state_dict(dict(parts.tensors), strict=False)
    return made


def join(members: Mapping[str, Path], record: KeptEnsemble, reads: Reads, folder: Path) -> None:
    """Write the folder of several kept models that answer together; `members`: their folders by what they are called.

    Their weights are linked where the disk can, and so take no room twice.
    """
    shared = {*file_names(), 'config.json'}
    first = next(iter(members.values()))
    with whole_folder(folder) as hidden:
        for name in shared:
            if (first / name).is_file():
                shutil.copyfile(first / name, hidden / name)
        for name, member in members.items():
            for file in sorted(member.rglob('*')):
                within = file.relative_to(member)
                # One tokenizer serves all, also within the folders of encoders.
                if file.is_file() and (
                    within.name == 'config.json' or within.name not in {*shared, READING, CARD}
                ):
                    (hidden / name / within).parent.mkdir(parents=True, exist_ok=True)
                    _link(file, hidden / name / within)
        reads.write(hidden)
        write_json(hidden / ENSEMBLE, record.json())


def _link(file: Path, to: Path) -> None:
    """Weights alone: a small file may be edited in its place, and would change in both."""
    if file.suffix == '.safetensors':
        with contextlib.suppress(OSError):  # another disk, or one without links
            os.link(file, to)
            return
    shutil.copyfile(file, to)
