"""What is worth knowing about sets before a model is trained on them, each as its task looks at it."""

import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from bioptimus_jax.errors import InputError
from bioptimus_jax.finetuning.config import Finetune
from bioptimus_jax.finetuning.task import Look, task_for
from bioptimus_jax.records.record import plain
from bioptimus_jax.sets import published
from bioptimus_jax.sets.advice import no_set_in, rebuilt
from bioptimus_jax.sets.corpora import NamedSet, is_dataset, name_of, set_at, set_folders
from bioptimus_jax.sets.folders import holding
from bioptimus_jax.sets.roles import FOUND, Columns
from bioptimus_jax.sets.sentences import SPLITS
from bioptimus_jax.storage.files import JsonObject, write_json
from bioptimus_jax.tokenizer.quoted import quotation_note, quotations


@dataclasses.dataclass(frozen=True)
class Looked:
    """What is worth knowing of each set, by its name.

    `clashes`: lines on sets that do not compare; `errors`: of sets that cannot be read; `left_out`: of folders beside
    sets that are none.
    """

    sets: Mapping[str, Look]
    clashes: Sequence[str]
    errors: Sequence[str]
    left_out: Sequence[str] = ()

    @property
    def lines(self) -> list[Sequence[str]]:
        """Lines about each set, on sets that do not compare, and on folders that are none."""
        return [*(found.lines for found in self.sets.values()), *filter(None, [self.clashes, self.left_out])]

    def json(self) -> JsonObject:
        """What lint.json has of each set, with `labels` as labels.json, and all lines."""
        sets = {
            name: {
                **(found.lint.json() if found.lint else {}),
                'labels': plain(found.labels),
                'lines': list(found.lines),
            }
            for name, found in self.sets.items()
        }
        rest = {name: list(getattr(self, name)) for name in ('clashes', 'left_out', 'errors')}
        return {'sets': sets, **rest}


def look_through(
    folder: Path, tokenizers: Mapping[str, Any], task: str = Finetune.task, columns: Columns = FOUND
) -> Looked:
    """What is worth knowing of a set, or of each of a folder. `task`: for sets that have no record. `columns`: those of
    their files that are read.

    Raises InputError where there is no set.
    """
    if not folder.is_dir():
        what = 'is a file' if folder.exists() else 'no such folder'
        raise InputError(f'{folder}: {what}; give the folder of a set, or a folder of sets')
    sets = [folder] if is_dataset(folder) else list(set_folders(folder))
    if not sets:
        raise no_set_in(folder)
    found, errors = {}, []
    for path in sets:
        try:
            chosen = set_at(path, task, columns)
            learned = task_for(chosen)
            found[chosen.name] = _looked(chosen, learned.read(chosen), tokenizers, Finetune().max_pieces)
        except InputError as error:
            errors.append(str(error))
    return Looked(found, published.clashes(map(name_of, sets)), errors, _left_out(folder, sets))


def _left_out(root: Path, sets: Sequence[Path]) -> list[str]:
    """A line for each folder with files, beside sets, that is none."""
    read = {place for one in sets for place in (one, one.parent)}
    others = [p for p in sorted(root.iterdir()) if p.is_dir() and p not in read and root not in sets]
    return [
        f'{p.name}: left out, as it has no training split; it {holding(p)}{rebuilt(p)}'
        for p in others
        if not p.name.startswith('.') and any(p.iterdir())
    ]


def keep_looks(
    folder: Path,
    tokenizers: Mapping[str, Any],
    datasets: Mapping[NamedSet, Any],
    shortest: Mapping[NamedSet, int],
) -> list[str]:
    """Look through sets that were read; leaves lint.json and labels.json, and gives lines for a person.

    `tokenizers`: by model; equal ones are used once. `shortest`: the least `max_pieces` that a set is learned with.
    """
    different: dict[str, tuple[str, Any]] = {}
    for model, tokenizer in tokenizers.items():
        different.setdefault(tokenizer.backend_tokenizer.to_str(), (model, tokenizer))
    known = dict(different.values())
    found = {one.name: _looked(one, read, known, shortest[one]) for one, read in datasets.items()}
    write_json(folder / 'lint.json', [look.lint.json() for look in found.values() if look.lint])
    labels = {name: plain(look.labels) for name, look in found.items() if look.labels}
    write_json(folder / 'labels.json', labels)
    return [line for look in found.values() for line in look.lines]


def _looked(chosen: NamedSet, dataset: Any, tokenizers: Mapping[str, Any], max_pieces: int) -> Look:
    """What the task says of a set, and a line where texts quote special tokens of a model."""
    look = task_for(chosen).look(dataset, tokenizers, max_pieces)
    texts = [' '.join(example.words) for split in SPLITS for example in getattr(dataset, split)]
    for model, tokenizer in tokenizers.items():
        if count := quotations(texts, tokenizer.quoted):
            line = f'{chosen.name}: {quotation_note(count)} ({model})'
            look = dataclasses.replace(look, lines=[*look.lines, line])
    return look
