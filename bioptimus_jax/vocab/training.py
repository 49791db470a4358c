"""WordPiece vocabularies trained on counted words.

The trainer of `tokenizers` breaks ties by the order in which it happens to meet characters, so two runs on
the same text differ in most ids. Here the words are counted first, and the trainer gets every single
character (alone and with "##") in a fixed order before it starts: only the word counts matter then.
"""

import itertools
from collections import Counter
from collections.abc import Iterator, Mapping

import tokenizers
from tokenizers import models, pre_tokenizers, trainers

from bioptimus_jax.errors import ConfigError, InputError
from bioptimus_jax.schema import Vocab
from bioptimus_jax.vocab.tokenizer_files import NAMED

CONTINUATION = '##'
MAX_WORD_CHARACTERS = 100  # longer words are unknown to BERT, so they teach nothing
WORDS_PER_TEXT = 10_000
LARGEST_PAIR_COUNT = 2**31 - 1
"""The trainer of `tokenizers` sums in 32 bits, and beyond them drops the commonest pairs in silence (issue 2058)."""


def train_from_counts(counts: Mapping[str, int], settings: Vocab) -> list[str]:
    """The vocabulary of a word count, by id.

    Shorter than `settings.size` where no more pairs are seen `settings.min_frequency` times, counted as
    `within_trainer` says. Raises InputError without any word, ConfigError where characters alone need more than
    `settings.size` entries.
    """
    alphabet = _alphabet(counts, settings.limit_alphabet)
    known = set(alphabet)
    usable = {w: n for w, n in counts.items() if len(w) <= MAX_WORD_CHARACTERS and known.issuperset(w)}
    if not usable:
        raise InputError('the corpus has no words to train a vocabulary on; check config.corpus.inputs')
    inside = set().union(*(w[1:] for w in usable))
    continued = [CONTINUATION + c for c in alphabet if c in inside]
    least = len(NAMED) + len(alphabet) + len(continued)
    if least > settings.size:
        raise ConfigError(
            f'config.vocab.size: {settings.size} is less than the {least} entries that single '
            'characters need; raise it, or lower config.vocab.limit_alphabet'
        )
    trainer = trainers.WordPieceTrainer(
        vocab_size=settings.size,
        min_frequency=settings.min_frequency,
        special_tokens=[*NAMED.values(), *continued],
        initial_alphabet=alphabet,
        limit_alphabet=len(alphabet),
        continuing_subword_prefix=CONTINUATION,
        show_progress=False,
    )
    tokenizer = tokenizers.Tokenizer(models.WordPiece(unk_token=NAMED['unk_token']))
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    tokenizer.train_from_iterator(_texts(within_trainer(usable, LARGEST_PAIR_COUNT)), trainer)
    ids = tokenizer.get_vocab()
    first = [*NAMED.values(), *alphabet, *continued]
    merged = sorted(ids.keys() - set(first), key=ids.__getitem__)
    return first + merged


def within_trainer(counts: dict[str, int], largest: int) -> dict[str, int]:
    """The counts; or, where a sum of the trainer could exceed `largest`, all divided by one whole number, rounded down.

    Two pieces side by side meet between two characters, and in what the trainer counts for a pair every such place is
    in once, whether it has merged the pair there or not. So no pair of pieces is ever counted more often than the two
    characters where it meets stand side by side in the words, and those are counted here.
    """
    pairs: Counter[tuple[str, str]] = Counter()
    for word, count in counts.items():
        for pair in itertools.pairwise(word):
            pairs[pair] += count
    divisor = -(-max(pairs.values(), default=0) // largest)
    return counts if divisor <= 1 else {w: n // divisor for w, n in counts.items() if n >= divisor}


def _alphabet(counts: Mapping[str, int], limit: int) -> list[str]:
    seen: Counter[str] = Counter()
    for word, count in counts.items():
        for character in word:
            seen[character] += count
    return sorted(sorted(seen, key=lambda c: (-seen[c], c))[:limit])


def _texts(counts: Mapping[str, int]) -> Iterator[str]:
    words = itertools.chain.from_iterable(itertools.repeat(w, counts[w]) for w in sorted(counts))
    while batch := list(itertools.islice(words, WORDS_PER_TEXT)):
        yield ' '.join(batch)
