"""What a finished model says of texts, from Python."""

import dataclasses
import os
import shutil
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bioptimus_jax.api.bars import counted, shown
from bioptimus_jax.api.finetuning import MODEL, FineTuned
from bioptimus_jax.api.objects import (
    PLACE,
    TEXT,
    ModelOrFolder,
    TokenizerOrFolder,
    as_folder,
    check_whole,
    loaded_from,
    undisturbed,
    whole_number,
    workplace,
)
from bioptimus_jax.errors import InputError
from bioptimus_jax.finetuning.kept import NAME as READING
from bioptimus_jax.progress.console import shortened

if TYPE_CHECKING:
    from bioptimus_jax.inference.given import Given


class Predictor:
    """A finished model that stays in memory and is asked again and again, as `predict` asks it once.

    `model`, `tokenizer`, `max_pieces`: as there. Raises InputError for a folder without a model, ConfigError for an
    object that is no model with its tokenizer, and for windows that are longer than the model can number.
    """

    def __init__(
        self,
        model: 'ModelOrFolder | FineTuned',
        *,
        tokenizer: 'TokenizerOrFolder | None' = None,
        max_pieces: int = 0,
    ) -> None:
        # Late: these import torch.
        from bioptimus_jax.inference.model import kind_of, load_for_answers, model_at

        self.max_pieces = whole_number('max_pieces', max_pieces, 0)
        with workplace() as place, undisturbed():
            import torch

            model = model.folder if isinstance(model, FineTuned) else model
            if isinstance(model, PLACE) and tokenizer is None:
                folder = named = model_at(os.fspath(model))
            else:
                folder = as_folder(place / MODEL, model, tokenizer)
                named = folder if isinstance(model, PLACE) else Path(MODEL)  # as it has no folder afterwards
                _bring_reading(model, folder)
            self._kind = kind_of(folder)
            loaded = load_for_answers(folder, self._kind, torch.get_num_threads())
            self._loaded = dataclasses.replace(loaded, folder=named)
            self._loaded.pieces(self.max_pieces, self._loaded.limit)  # raises for too many
        if self._loaded.reads.remark:
            warnings.warn(f'{named}: on devel {self._loaded.reads.remark}; train it anew', stacklevel=2)

    def __call__(
        self, texts: Iterable[str | Sequence[str] | Mapping[str, Any]], *, progress: bool | None = None
    ) -> list[dict[str, Any]]:
        """What the model says of each text. Raises InputError for a text that cannot be read."""
        return self._answers(list(_given(texts)), shown(progress))

    def _answers(self, given: Sequence['Given'], show: bool) -> list[dict[str, Any]]:
        from bioptimus_jax.inference.forms import answer_record
        from bioptimus_jax.inference.model import Settings

        with undisturbed():
            found = self._kind.answers(self._loaded, given, Settings(self.max_pieces, say=_warn))
            return [answer_record(answer) for answer in counted(found, 'predict', len(given), show)]


def predict(
    model: 'ModelOrFolder | FineTuned',
    texts: Iterable[str | Sequence[str] | Mapping[str, Any]],
    *,
    tokenizer: 'TokenizerOrFolder | None' = None,
    max_pieces: int = 0,
    progress: bool | None = None,
) -> list[dict[str, Any]]:
    """What a finished model says of each text, as `bioptimus predict --as=json` does.

    `model`: what `finetune` returned; the folder of a fine-tuned model or of several seeds that were kept, of a run
    with one such model, or of any tagger, classifier or masked language model of Hugging Face, also as ONNX; its id on
    the hub; or a model of transformers with `tokenizer`. It cuts words, sentences and windows as in its training, if
    the folder or hub id that it is in, or was loaded from, has reading.json. `texts`: one text each, or two that are
    read together, or rows of a data set with two, as `sentence1` and `sentence2`, else with a column `text`; special
    tokens in them are text, but for the mask of a masked language model. `max_pieces`: the length of windows, 0 for
    that of the training. `progress`: a bar; by default on a terminal and in a notebook, where it takes over a second.

    Returns for each text 'id' (its number, from 1), 'text' or 'words', and for a tagger 'entities', as [start, end,
    type] in characters, with 'probabilities'; for a classifier 'answers', which are texts ('1' for 1), and
    'probabilities' by label; for [MASK] 'masks'. Raises InputError for a folder without a model and a text that cannot
    be read, ConfigError for an object that is not a model with its tokenizer.
    """
    show, given = shown(progress), list(_given(texts))  # before anything is loaded
    return Predictor(model, tokenizer=tokenizer, max_pieces=max_pieces)._answers(given, show)


def _given(texts: Iterable[str | Sequence[str] | Mapping[str, Any]]) -> Iterator['Given']:
    from bioptimus_jax.inference.given import Given

    check_whole(texts)
    for number, row in enumerate(texts, 1):
        text = _texts_of_row(row, number) if isinstance(row, Mapping) else row
        parts = (text,) if isinstance(text, str) else tuple(text) if isinstance(text, Iterable) else ()
        if not parts or not all(isinstance(part, str) and part.strip() for part in parts):
            raise InputError(
                f'texts: number {number} is not a text, or texts that are read together: {text!r:.60}'
            )
        yield Given(str(number), parts, f'text {number}')


def _texts_of_row(row: Mapping[str, Any], number: int) -> Any:
    """The text of a row, or the two that are read together, by the keys of sets. Raises InputError."""
    from bioptimus_jax.sets.foreign.flat import ALONE, PAIRS, SECOND, pair_in, refuse_half_a_pair

    found = {str(key).strip().lower(): text for key, text in row.items()}
    # A column of second texts is empty where there is one text.
    seconds = (*SECOND, 'context') if 'question' in found else SECOND
    found = {key: text for key, text in found.items() if key not in seconds or _is_filled(text)}
    if pair := pair_in(found):
        return [found[name] for name in pair]
    refuse_half_a_pair(f'texts: number {number}', found)
    if alone := next((name for name in (*ALONE, *(first for first, _ in PAIRS)) if name in found), None):
        return found[alone]
    raise InputError(f'texts: number {number} is a row without {TEXT!r} ({shortened(row)})')


def _is_filled(text: Any) -> bool:
    return isinstance(text, str) and bool(text.strip())


def _bring_reading(model: Any, folder: Path) -> None:
    """A model that was loaded from a folder reads texts as that folder says."""
    origin = loaded_from(model, READING)
    if origin and (origin / READING).is_file():
        shutil.copyfile(origin / READING, folder / READING)


def _warn(message: str) -> None:
    warnings.warn(message, stacklevel=3)
