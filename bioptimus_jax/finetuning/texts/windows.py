"""Texts as the pieces that an encoder reads, one window an example. Shapes: L pieces."""

import dataclasses
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from bioptimus_jax.errors import InputError
from bioptimus_jax.finetuning.config import Finetune
from bioptimus_jax.finetuning.task import Encoded
from bioptimus_jax.sets.inputs import mentions_in
from bioptimus_jax.sets.texts import Text

CUT = 'texts that were cut'
SHOWN = 40
"""Letters of a text that a message names."""
SEGMENTS: dict[str, Callable[[Sequence[int]], tuple[int, ...]]] = {
    'two': tuple,
    'one': lambda types: (0,) * len(types),
}
"""What config.finetune.segment_ids may be."""
AT_ONCE = 1000
"""Texts that are encoded together."""


@dataclasses.dataclass(frozen=True)
class TextWindow:
    """The pieces of one example, special tokens included.

    `types`: 0 or 1, the text that each piece is from; empty where the model has no such ids. `mentions`: first piece
    and the one behind the last, of two mentions; empty where they are not asked for. `part`: which of the texts it is,
    where each is read alone.
    """

    example: int
    pieces: tuple[int, ...]
    types: tuple[int, ...] = ()
    mentions: tuple[tuple[int, int], ...] = ()
    part: int = 0


def tells_apart(config: Any) -> bool:
    """Whether a model with this config of transformers has more than one token type.

    A RoBERTa may have BERT's tokenizer, which gives the second text a type that the model has no row for.
    """
    return getattr(config, 'type_vocab_size', 0) > 1


def windows(
    tokenizer: Any,
    examples: Sequence[Text],
    max_pieces: int,
    question: bool = False,
    mentions: bool = False,
    markers: bool = False,
    segment_ids: str = Finetune.segment_ids,
) -> Encoded:
    """A window for each example, or each of its parts. The longer one of two texts is cut; a question is kept whole.

    `tokenizer`: a fast one of transformers. `mentions` are looked for, with their `markers` if these are wanted too.
    Raises InputError where an example has none, or loses them.
    """
    with_types = 'token_type_ids' in tokenizer.model_input_names
    made, cut = [], 0
    apart = list(_apart(examples))
    encoded = _encoded(tokenizer, [example for *_, example in apart])
    for (number, part, example), encoding in zip(apart, encoded, strict=True):
        if len(encoding.ids) > max_pieces:
            # A question that fills more than half of a window leaves no room to cut the text alone.
            short = question and encoding.sequence_ids.count(0) <= max_pieces // 2
            which = 'only_second' if short and len(example.words) == 2 else 'longest_first'
            [encoding] = tokenizer(*example.words, truncation=which, max_length=max_pieces).encodings
            cut += 1
        types = SEGMENTS[segment_ids](encoding.type_ids) if with_types else ()
        spans = _mentions(example, number, encoding, markers) if mentions else ()
        made.append(TextWindow(number, tuple(encoding.ids), types, spans, part))
    return Encoded(made, {CUT: cut})


def _apart(examples: Sequence[Text]) -> Iterator[tuple[int, int, Text]]:
    """Numbers of examples and of their parts, and what is read at once."""
    for number, example in enumerate(examples):
        for part, answers in enumerate(example.parts):
            yield number, part, Text(example.words[part : part + 1], answers)
        if not example.parts:
            yield number, 0, example


def _encoded(tokenizer: Any, examples: Sequence[Text]) -> Iterator[Any]:
    """Each example uncut, as an `Encoding` of the library tokenizers."""
    for start in range(0, len(examples), AT_ONCE):
        texts = [
            example.words if len(example.words) > 1 else example.words[0]
            for example in examples[start : start + AT_ONCE]
        ]
        yield from tokenizer(texts).encodings


def _mentions(example: Text, number: int, encoding: Any, markers: bool) -> tuple[tuple[int, int], ...]:
    """Pieces of the two mentions of the first text, as `mentions_in` finds them."""
    text = example.words[0]
    where = f'{f"line {example.line}" if example.line else f"text {number + 1}"}, {text[:SHOWN]!r}'
    found = mentions_in(text, markers)
    if not found:
        raise InputError(
            f'{where}: has no @NAME$ and no markers <e1> and <e2>; set config.finetune.features to one without mentions'
        )
    # Found by its last character: the one behind it may be a blank, which is in no piece.
    spans = [[encoding.char_to_token(at) for at in (start, end - 1)] for start, end in found]
    for (start, end), span in zip(found, spans, strict=True):
        if None in span:
            raise InputError(
                f'{where}: {text[start:end]} is cut off; raise config.finetune.max_pieces, or --max_pieces of predict'
            )
    return tuple((first, last + 1) for first, last in spans)
