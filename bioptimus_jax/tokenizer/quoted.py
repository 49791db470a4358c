"""Special tokens that texts quote, as in "peripheral arterial disease [PAD]": how they are read as text.

The special tokens of a tokenizer are those with a role: what pads, hides, begins, ends, or stands for the unknown. They
come from us alone, around a text or in place of a piece, and never from a text. Whatever else was added to a
tokenizer, such as [E1] and [/E1] around a mention, is there to be written into texts, and stays a token in them.
"""

import json
import re
from collections.abc import Collection, Iterable, Iterator

import tokenizers
from tokenizers import Regex, pre_tokenizers

from bioptimus_jax.progress.console import numbered

UNIGRAM = 'Unigram'
SPACES = ' ▁Ġ'
"""A space, and how pre-tokenizers write it."""


def reader_of_texts(tokenizer: tokenizers.Tokenizer, quoted: Collection[str]) -> tokenizers.Tokenizer:
    """The same tokenizer, but these special tokens are text where a text quotes them.

    Ids, what comes around a text, and all other added tokens are the same. A copy of it made by `pickle` or `to_str`
    lacks `encode_special_tokens`.
    """
    state = json.loads(tokenizer.to_str())
    own = tokenizer.get_vocab(with_added_tokens=False)
    # What is no added token is not looked for. Where it has an id by that alone it must stay one, as a special one.
    state['added_tokens'] = [
        {**token, 'special': token['content'] in quoted}
        for token in state['added_tokens']
        if token['content'] not in quoted or token['content'] not in own
    ]
    reader = tokenizers.Tokenizer.from_str(json.dumps(state))
    reader.encode_special_tokens = True
    if parted := sorted({part for token in quoted for part in _parted(reader, token)}):
        steps = [reader.pre_tokenizer] if reader.pre_tokenizer else []
        split = pre_tokenizers.Split(Regex('|'.join(parted)), 'merged_with_previous')
        reader.pre_tokenizer = pre_tokenizers.Sequence([*steps, split])
    return reader


def _parted(reader: tokenizers.Tokenizer, token: str) -> Iterator[str]:
    """Patterns of the first character of a token that the model itself would find in a text: it is cut behind that.

    A model of words looks up a word that is not cut, and Unigram prefers its special tokens to any other pieces.
    """
    cut = reader.pre_tokenizer
    words = [word for word, _ in cut.pre_tokenize_str(token)] if cut else [token]
    if len(words) != 1 or len(token) == 1:
        return
    number, texts = reader.token_to_id(token), (token, f' {token}', f'a{token}', f'{token}a', f'a {token} a')
    found = (reader.encode(text, add_special_tokens=False).ids for text in texts)
    if type(reader.model).__name__ == UNIGRAM or any(number in ids for ids in found):
        for written in {token, words[0].lstrip(SPACES)}:  # byte-level, letters are written in another way
            yield f'{re.escape(written[0])}(?={re.escape(written[1:])})'


def quotations(texts: Iterable[str], quoted: Collection[str]) -> int:
    """How often texts quote one of these special tokens."""
    return sum(text.count(token) for text in texts for token in quoted)


def quotation_note(count: int) -> str:
    """What is said of so many quotations."""
    return f'{numbered(count, "special token")} written in texts, read as text'
