"""Texts as the pieces that an encoder reads, one window an example. Shapes: L pieces."""

import dataclasses
from collections.abc import Sequence
from typing import Any

from bioptimus_jax.finetune.task import Encoded
from bioptimus_jax.sets.texts import Text

CUT = 'texts that were cut'


@dataclasses.dataclass(frozen=True)
class Window:
    """An example's pieces, special tokens included, and which of the two texts each is from (empty: no such ids)."""

    example: int
    pieces: tuple[int, ...]
    types: tuple[int, ...] = ()


def windows(tokenizer: Any, examples: Sequence[Text], max_pieces: int, question: bool) -> Encoded:
    """A window for each example. Of two texts that are too long the longer one is cut, of a question and a text the
    text. `tokenizer`: a fast one of transformers."""
    made, cut = [], 0
    for number, example in enumerate(examples):
        pair = len(example.words) == 2
        # A question fills half of a window at most, else there is no room to cut the text.
        keeps_first = question and pair and _length(tokenizer, example.words[0]) <= max_pieces // 2
        given = tokenizer(
            *example.words,
            truncation='only_second' if keeps_first else 'longest_first',
            max_length=max_pieces,
        )
        pieces = tuple(given['input_ids'])
        cut += len(pieces) == max_pieces and len(tokenizer(*example.words)['input_ids']) > max_pieces
        made.append(Window(number, pieces, tuple(given.get('token_type_ids', ()))))
    return Encoded(made, {CUT: cut})


def _length(tokenizer: Any, text: str) -> int:
    return len(tokenizer(text, add_special_tokens=False)['input_ids'])
