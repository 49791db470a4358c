"""Texts as the pieces that an encoder reads, one window an example. Shapes: L pieces."""

import dataclasses
from collections.abc import Sequence
from typing import Any

from bioptimus_jax.errors import InputError
from bioptimus_jax.finetune.task import Encoded
from bioptimus_jax.sets.texts import DUMMY, Text

CUT = 'texts that were cut'
SHOWN = 40
"""Letters of a text that a message names."""


@dataclasses.dataclass(frozen=True)
class Window:
    """An example's pieces, special tokens included, and which of the two texts each is from (empty: no such ids).

    `mentions`: of two mentions the first piece and the one behind the last, where they are asked for.
    """

    example: int
    pieces: tuple[int, ...]
    types: tuple[int, ...] = ()
    mentions: tuple[tuple[int, int], ...] = ()


def windows(
    tokenizer: Any, examples: Sequence[Text], max_pieces: int, question: bool = False, mentions: bool = False
) -> Encoded:
    """A window for each example. Of two texts that are too long the longer one is cut, of a question and a text the
    text. `tokenizer`: a fast one of transformers. Raises InputError for an example whose `mentions` are not there.
    """
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
        spans = _mentions(example, number, given) if mentions else ()
        made.append(Window(number, pieces, tuple(given.get('token_type_ids', ())), spans))
    return Encoded(made, {CUT: cut})


def _mentions(example: Text, number: int, given: Any) -> tuple[tuple[int, int], ...]:
    """Pieces of the first two names that stand for entities; of two entities that share one name (BLURB's
    `@CHEM-GENE$`) twice the same."""
    found = [found for text in example.words[:1] for found in DUMMY.finditer(text)][:2]
    if not found:
        raise InputError(
            f'text {number + 1}, {example.words[0][:SHOWN]!r}: has no @NAME$; set config.finetune.features to one '
            'without mentions'
        )
    spans = [
        [given.char_to_token(at) for at in (one.start(), one.end() - 1)] for one in (found[0], found[-1])
    ]
    if any(at is None for span in spans for at in span):
        raise InputError(
            f'text {number + 1}, {example.words[0][:SHOWN]!r}: {found[-1][0]} is cut off; raise'
            ' config.finetune.max_pieces'
        )
    return tuple((first, last + 1) for first, last in spans)


def _length(tokenizer: Any, text: str) -> int:
    return len(tokenizer(text, add_special_tokens=False)['input_ids'])
