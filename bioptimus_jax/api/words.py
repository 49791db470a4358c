"""Words that a tokenizer cuts: those that texts have often, and the tokenizer with some of them as one piece each."""

from collections.abc import Iterable, Mapping, Sequence

from bioptimus_jax.errors import ConfigError, InputError
from bioptimus_jax.progress.console import shortened
from bioptimus_jax.text.words import bare_counts
from bioptimus_jax.tokenizer.subwords import Subwords


def frequent(known: Subwords, counts: Mapping[str, int], most: int, fewest: int) -> list[str]:
    """The most frequent words of texts that are not one piece yet and can be, seen `fewest` times at least.

    Raises InputError where there is none.
    """
    seen = bare_counts(counts)
    often = sorted(seen, key=lambda word: (-seen[word], word))
    named = [word for word in often if seen[word] >= fewest]
    cut = [word for word in named if not is_one_piece(known, word)]
    # Few of them cannot be one piece: those that begin or end as an added token does.
    while wanted := cut[:most]:
        made = _appended(known, wanted)
        lost = {word for word in wanted if not is_one_piece(made, word)}
        if not lost:
            return wanted
        cut = [word for word in cut if word not in lost]
    raise InputError(
        f'texts: have no word that is seen {fewest} times and that the tokenizer cuts; give more texts, or words'
    )


def present(known: Subwords, words: Iterable[str]) -> list[str]:
    """The words that are one piece already."""
    return [word for word in dict.fromkeys(words) if is_one_piece(known, word)]


def present_line(there: Sequence[str], count: int) -> str:
    """What to say of words that are in the vocabulary already."""
    shown = shortened(there)
    return (
        f'words: the vocabulary already has {len(there):,} of {count:,}, which are left as they are: {shown}'
    )


def with_words(known: Subwords, words: Sequence[str]) -> Subwords:
    """The tokenizer with every word as one piece.

    Raises ConfigError for what is no text, and InputError for what is not one word or cannot be one piece.
    """
    for number, word in enumerate(words):
        if not isinstance(word, str):
            raise ConfigError(f'words: number {number} is not a word, but {type(word).__name__}')
    new = [word for word in words if not is_one_piece(known, word)]
    for word in new:
        found = _words_in(known, word)
        if len(found) != 1 or len(word.split()) != 1:
            shown = ', '.join(repr(part.strip()) for part in found) or 'nothing'
            raise InputError(
                f'words: {word!r} is not a single word of the tokenizer, which reads {shown}; leave it out'
            )
    made = _appended(known, new)
    for word in words:
        if not is_one_piece(made, word):
            raise InputError(f'words: {word!r} cannot be one piece: {_hindrance(made, word)}; leave it out')
    return made


def is_one_piece(known: Subwords, word: str) -> bool:
    """Whether a word is a single piece where it follows a space, and no unknown one."""
    ids = known.encode_words([word])[0].ids
    return len(ids) == 1 and ids[0] != known.unknown


def _appended(known: Subwords, words: Iterable[str]) -> Subwords:
    return known.kind.with_words(known, [part for word in words for part in _words_in(known, word)])


def _words_in(known: Subwords, word: str) -> list[str]:
    return known.kind.words(known.reader)(f' {word}' if known.kind.carries_space else word)


def _hindrance(known: Subwords, word: str) -> str:
    """Why a word with an entry of its own is not one piece."""
    ids = known.encode_words([word])[0].ids
    added = known.tokenizer.get_added_tokens_decoder()
    for number in ids:
        if number in added and number != known.unknown:
            return f'{added[number].content!r}, a token that was added, is taken out of a text first'
    if ids == [known.unknown]:
        return f'it has {len(word)} characters, and the tokenizer reads no word of that length'
    return f'the tokenizer reads {", ".join(known.text(i) for i in ids)}'
