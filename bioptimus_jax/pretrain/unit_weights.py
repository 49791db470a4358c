"""Weights of what a masking strategy draws: by token or by word, from a mapping or a file, resolved once.

Legend: L pieces a row, V entries of the vocabulary, E entries of a list, N pieces of one of them.

This file does without jax: a weighing gets the module that it computes with, numpy or jax.numpy.
"""

import dataclasses
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

import numpy as np

from bioptimus_jax.errors import InputError

if TYPE_CHECKING:  # `--help` lists the strategies, and does without tokenizers
    from bioptimus_jax.tokenizer.subwords import Subwords

LEAST, MOST = 1e-6, 1e6
Weighing: TypeAlias = Callable[[Any, Any, Any], Any]
"""`(tokens_L, words_L, xp) -> weights_L`: of every piece, given its id, and True where a word begins or none is."""


class Weights(Protocol):
    """What a strategy gives as its weights; another way to weigh than the two below is a class with these three."""

    @property
    def files(self) -> Sequence[Path]:
        """The files that decide the weights: their content is compared when a run is continued."""
        ...

    def check(self) -> None:
        """Raise InputError for a file that cannot be read, before anything is computed."""

    def of(self, subwords: 'Subwords') -> Weighing:
        """The weighing for a vocabulary: called once, outside of the step."""
        ...


@dataclasses.dataclass(frozen=True)
class _Listed:
    """Weights by text: of a mapping, or of a file with a text and its weight in each line, a tab between them.

    `listed`: the weight of lines without one; `others`: that of whatever is not in the list.
    """

    weights: Mapping[str, float] = dataclasses.field(default_factory=dict)
    file: Path | None = dataclasses.field(
        default=None, repr=False
    )  # its content is compared, its place is not
    listed: float = 0.0
    others: float = 1.0

    @property
    def files(self) -> tuple[Path, ...]:
        return (Path(self.file),) if self.file else ()

    def check(self) -> None:
        """Raise InputError for a file that is not such a list, ValueError for other weights than these may be."""
        self.read()

    def read(self) -> dict[str, float]:
        """Text -> weight. Raises InputError for a line of the file that has no such weight."""
        found = {text: float(weight) for text, weight in self.weights.items()}
        if wrong := [w for w in (*found.values(), self.listed, self.others) if not _may_be(w)]:
            raise ValueError(f'weight {wrong[0]:g}: a unit weighs 0 or from {LEAST:f} to {MOST:,.0f}')
        return {**found, **(dict(_lines(Path(self.file), self.listed)) if self.file else {})}


@dataclasses.dataclass(frozen=True)
class TokenWeights(_Listed):
    """Weights by token, as the vocabulary spells it (`##ine`): those of a list, and one for all others."""

    def of(self, subwords: 'Subwords') -> Weighing:
        """The weight of each token. Raises InputError where none of the list is in the vocabulary."""
        weights, numbers = self.read(), {token: i for i, token in enumerate(subwords.tokens)}
        table_V = np.full(len(numbers), self.others, np.float32)
        for token in weights.keys() & numbers.keys():
            table_V[numbers[token]] = weights[token]
        if weights and not weights.keys() & numbers.keys():
            raise InputError(
                f'{self.file or "weights"}: none of its {len(weights)} tokens ({next(iter(weights))} ...) is in the '
                'vocabulary; name tokens as vocab.txt has them, or give weights of words'
            )
        return lambda tokens_L, words_L, xp: xp.asarray(table_V)[tokens_L]


@dataclasses.dataclass(frozen=True)
class WordWeights(_Listed):
    """Weights by word, or by several words in a row: those of a list, and one for all others.

    A word counts where it stands as a whole: `the` says nothing of `therapy`. The longest entry at a place decides.
    `any_case`: also as a sentence's first word and in capitals, where the vocabulary has these.
    """

    any_case: bool = True

    def of(self, subwords: 'Subwords') -> Weighing:
        """The weights of the pieces of each entry, however it is spelled; entries with unknown pieces are left out."""
        entries = {
            pieces: weight for text, weight in self.read().items() for pieces in self._spelled(subwords, text)
        }
        lengths = sorted({len(pieces) for pieces in entries})
        multipliers_N, tables = _hashed(entries, lengths)

        def weigh(tokens_L: Any, words_L: Any, xp: Any) -> Any:
            index_L, tokens_L = np.arange(len(tokens_L)), xp.asarray(tokens_L).astype(np.int32)
            ends_L = xp.concatenate([words_L[1:], xp.ones(1, bool)])
            found_L, hash_L, window = (
                xp.full(len(index_L), self.others, np.float32),
                xp.zeros(len(index_L), np.uint32),
                [],
            )
            for size in range(1, 1 + max(lengths, default=0)):
                window.append(_later(tokens_L, size - 1, -1, xp))
                hash_L = hash_L + window[-1].astype(np.uint32) * multipliers_N[size - 1]
                if size not in tables:
                    continue
                hashes_E, ids_ExN, weights_E = map(xp.asarray, tables[size])
                at_L = xp.minimum(xp.searchsorted(hashes_E, hash_L), len(weights_E) - 1)
                # Equal hashes are candidates: the pieces themselves decide.
                same_L = (ids_ExN[at_L] == xp.stack(window, axis=1)).all(axis=1)
                here_L = same_L & words_L & _later(ends_L, size - 1, False, xp)
                start_L = xp.maximum.accumulate(xp.where(here_L, index_L, -size))
                of_start_L = weights_E[at_L][xp.maximum(start_L, 0)]
                found_L = xp.where(index_L - start_L < size, of_start_L, found_L)
            return found_L

        return weigh

    def _spelled(self, subwords: 'Subwords', text: str) -> Iterator[tuple[int, ...]]:
        """The pieces of an entry within a sentence and where no space precedes it, in every case that is asked for."""
        forms = {text, text.lower(), text.upper(), text[:1].upper() + text[1:]} if self.any_case else {text}
        for encodings in (subwords.encode_words(forms), subwords.encode(forms)):
            for encoding in encodings:
                if encoding.ids and subwords.unknown not in encoding.ids:
                    yield tuple(encoding.ids)


def _hashed(
    entries: Mapping[tuple[int, ...], float], lengths: Sequence[int]
) -> tuple[np.ndarray, dict[int, Any]]:
    """Multipliers of a hash that tells all entries apart, and by length their hashes, in order, pieces and weights."""
    longest = max(lengths, default=0)
    for seed in range(100):
        multipliers_N = np.random.default_rng(seed).integers(1, 2**32, longest, np.uint32) | np.uint32(1)
        tables = {}
        for size in lengths:
            ids_ExN = np.array([pieces for pieces in entries if len(pieces) == size], np.int32)
            weights_E = np.array([w for pieces, w in entries.items() if len(pieces) == size], np.float32)
            hashes_E = (ids_ExN.astype(np.uint32) * multipliers_N[:size]).sum(axis=1, dtype=np.uint32)
            order_E = np.argsort(hashes_E)
            tables[size] = hashes_E[order_E], ids_ExN[order_E], weights_E[order_E]
        if all(len(np.unique(hashes_E)) == len(hashes_E) for hashes_E, *_ in tables.values()):
            return multipliers_N, tables
    raise InputError(
        f'weights: a list of {len(entries):,} entries is too long to be looked up; give a shorter one'
    )


def _later(values_L: Any, by: int, filled: Any, xp: Any) -> Any:
    """The values so many places further on; behind the last one, `filled`."""
    count = len(values_L)
    return xp.concatenate([values_L[by:], xp.full(min(by, count), filled, values_L.dtype)])


def _lines(file: Path, listed: float) -> Iterator[tuple[str, float]]:
    """The text and the weight of each line that is not empty. Raises InputError."""
    try:
        lines = file.read_text('utf-8').splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(
            f'{file}: cannot be read ({error}); it lists texts for masking, one a line, in UTF-8'
        ) from error
    for number, line in enumerate(lines, 1):
        text, tab, weight = line.rstrip().partition('\t')
        if not text:
            continue
        try:
            found = float(weight) if tab else listed
        except ValueError:
            found = math.nan
        if not _may_be(found):
            raise InputError(
                f'{file}: line {number} has the weight {weight!r}; after the tab write 0 (never masked) or a '
                f'number from {LEAST:f} to {MOST:,.0f}'
            )
        yield text, found


def _may_be(weight: float) -> bool:
    return weight == 0 or LEAST <= weight <= MOST
