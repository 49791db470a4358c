"""What a finished model says of texts, from Python."""

import os
import warnings
from collections.abc import Iterable, Sequence
from typing import Any

from bioptimus_jax.api.objects import PLACE, FilePath, undisturbed, whole_number
from bioptimus_jax.errors import ConfigError, InputError


def predict(
    model: FilePath, texts: Iterable[str | Sequence[str]], *, max_pieces: int = 0
) -> list[dict[str, Any]]:
    """What a finished model says of each text, as `bioptimus predict --as=json` does.

    `model`: the folder of a fine-tuned model that was kept, of a run with one such model, or of any tagger, classifier
    or masked language model of Hugging Face, or its id on the hub. It cuts words, sentences and windows as in its
    training, if its folder has reading.json. `texts`: one text each, or two that are read together; special tokens
    in them are text, but for the mask of a masked language model. `max_pieces`: the length of windows, 0 for that
    of the training.

    Returns for each text 'id' (its number, from 1), 'text' or 'words', and for a tagger 'entities', as [start, end,
    type] in characters, with 'probabilities'; for a classifier 'answers' and 'probabilities' by label; for [MASK]
    'masks'. Raises InputError for a folder without a model and a text that cannot be read.
    """
    if not isinstance(model, PLACE):
        raise ConfigError(
            f'model: got {type(model).__name__}; give the folder that it was saved in, or a hub id'
        )
    # Late: these import torch.
    from bioptimus_jax.inference.forms import answer_record
    from bioptimus_jax.inference.given import Given
    from bioptimus_jax.inference.model import Settings, kind_of, load_for_answers, model_at

    given, longest = [], whole_number('max_pieces', max_pieces, 0)
    for number, text in enumerate(texts, 1):
        parts = (text,) if isinstance(text, str) else tuple(text)
        if not parts or not all(isinstance(part, str) and part.strip() for part in parts):
            raise InputError(
                f'texts: number {number} is not a text, or texts that are read together: {text!r:.60}'
            )
        given.append(Given(str(number), parts, f'text {number}'))
    folder = model_at(os.fspath(model))
    kind = kind_of(folder)
    with undisturbed():
        import torch

        loaded = load_for_answers(folder, kind, torch.get_num_threads())
        if loaded.reads.remark:
            warnings.warn(f'{folder}: on devel {loaded.reads.remark}; train it anew', stacklevel=2)
        return [answer_record(answer) for answer in kind.answers(loaded, given, Settings(longest, say=_warn))]


def _warn(message: str) -> None:
    warnings.warn(message, stacklevel=3)
