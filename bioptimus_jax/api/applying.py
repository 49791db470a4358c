"""What a finished model says of texts, from Python."""

import os
import shutil
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bioptimus_jax.api.bars import counted, shown
from bioptimus_jax.api.finetuning import FineTuned
from bioptimus_jax.api.objects import (
    PLACE,
    TEXT,
    ModelOrFolder,
    TokenizerOrFolder,
    as_folder,
    undisturbed,
    whole_number,
    workplace,
)
from bioptimus_jax.errors import InputError
from bioptimus_jax.finetuning.kept import NAME as READING
from bioptimus_jax.progress.console import shortened

if TYPE_CHECKING:
    from bioptimus_jax.inference.given import Given


def predict(
    model: 'ModelOrFolder | FineTuned',
    texts: Iterable[str | Sequence[str] | Mapping[str, Any]],
    *,
    tokenizer: 'TokenizerOrFolder | None' = None,
    max_pieces: int = 0,
    progress: bool | None = None,
) -> list[dict[str, Any]]:
    """What a finished model says of each text, as `bioptimus predict --as=json` does.

    `model`: what `finetune` returned; the folder of a fine-tuned model that was kept, of a run with one such model, or
    of any tagger, classifier or masked language model of Hugging Face, also as ONNX; its id on the hub; or a model of
    transformers with `tokenizer`. It cuts words, sentences and windows as in its training, if the folder that it is
    in, or was loaded from, has reading.json. `texts`: one text each, or two that are read together, or rows of a
    data set with a column `text`; special tokens in them are text, but for the mask of a masked language model.
    `max_pieces`: the length of windows, 0 for that of the training. `progress`: a bar; by default on a terminal and
    in a notebook, where it takes over a second.

    Returns for each text 'id' (its number, from 1), 'text' or 'words', and for a tagger 'entities', as [start, end,
    type] in characters, with 'probabilities'; for a classifier 'answers' and 'probabilities' by label; for [MASK]
    'masks'. Raises InputError for a folder without a model and a text that cannot be read, ConfigError for an object
    that is no model with its tokenizer.
    """
    # Late: these import torch.
    from bioptimus_jax.inference.forms import answer_record
    from bioptimus_jax.inference.model import Settings, kind_of, load_for_answers, model_at

    longest, show = whole_number('max_pieces', max_pieces, 0), shown(progress)
    given = list(_given(texts))
    with workplace() as place, undisturbed():
        import torch

        model = model.folder if isinstance(model, FineTuned) else model
        if isinstance(model, PLACE) and tokenizer is None:
            folder = model_at(os.fspath(model))
        else:
            folder = as_folder(place / 'model', model, tokenizer)
            _bring_reading(model, folder)
        kind = kind_of(folder)
        loaded = load_for_answers(folder, kind, torch.get_num_threads())
        if loaded.reads.remark:
            warnings.warn(f'{folder}: on devel {loaded.reads.remark}; train it anew', stacklevel=2)
        found = kind.answers(loaded, given, Settings(longest, say=_warn))
        return [answer_record(answer) for answer in counted(found, 'predict', len(given), show)]


def _given(texts: Iterable[str | Sequence[str] | Mapping[str, Any]]) -> Iterator['Given']:
    from bioptimus_jax.inference.given import Given

    for number, row in enumerate(texts, 1):
        if isinstance(row, Mapping) and TEXT not in row:
            raise InputError(f'texts: number {number} is a row without {TEXT!r} ({shortened(row)})')
        text = row[TEXT] if isinstance(row, Mapping) else row
        parts = (text,) if isinstance(text, str) else tuple(text)
        if not parts or not all(isinstance(part, str) and part.strip() for part in parts):
            raise InputError(
                f'texts: number {number} is not a text, or texts that are read together: {text!r:.60}'
            )
        yield Given(str(number), parts, f'text {number}')


def _bring_reading(model: Any, folder: Path) -> None:
    """A model that was loaded from a folder reads texts as that folder says."""
    said = Path(model.name_or_path) / READING
    if said.is_file():
        shutil.copyfile(said, folder / READING)


def _warn(message: str) -> None:
    warnings.warn(message, stacklevel=3)
