"""What the trainers of `tokenizers` are fed with: counted words, in a fixed order, and no more than they can count."""

import itertools
from collections import Counter
from collections.abc import Mapping

import tokenizers
from tokenizers import models, pre_tokenizers, trainers

WORDS_PER_TEXT = 10_000
LARGEST_PAIR_COUNT = 2**31 - 1
"""The trainer of `tokenizers` sums in 32 bits, and beyond them drops the commonest pairs in silence (issue 2058)."""


def train_model(
    model: models.Model, trainer: trainers.Trainer, counts: dict[str, int]
) -> tokenizers.Tokenizer:
    """A tokenizer with that model, trained on the words, each as often as `within_trainer` has it."""
    fitting = within_trainer(counts, LARGEST_PAIR_COUNT)
    words = itertools.chain.from_iterable(itertools.repeat(w, fitting[w]) for w in sorted(fitting))
    tokenizer = tokenizers.Tokenizer(model)
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    tokenizer.train_from_iterator(
        iter(lambda: ' '.join(itertools.islice(words, WORDS_PER_TEXT)), ''), trainer
    )
    return tokenizer


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


def alphabet(counts: Mapping[str, int], limit: int) -> list[str]:
    """The commonest characters of counted words, as many as `limit`, sorted."""
    seen: Counter[str] = Counter()
    for word, count in counts.items():
        for character in word:
            seen[character] += count
    return sorted(sorted(seen, key=lambda c: (-seen[c], c))[:limit])
