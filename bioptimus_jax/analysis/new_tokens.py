"""Hidden words that are one new token: how well the models name them, and which they still name badly.

A model that knows only how often words occur in the corpus needs the logarithm of 1 / frequency for each. A new token
is still bad where the last model needs as much or more: the text around the word tells it nothing.
"""

import dataclasses
import functools
import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np

from bioptimus_jax.analysis.cloze import HiddenWord, Speller, measures
from bioptimus_jax.records.analysis import ByToken, NewToken, OneToken
from bioptimus_jax.records.record import plain
from bioptimus_jax.records.vocabulary import Frequency
from bioptimus_jax.storage.files import atomic, read_json, write_json
from bioptimus_jax.vocab import frequency, lists

RECORD, LIST = 'new_tokens.json', 'bad_tokens.txt'
LISTED = 'in config.analysis.tokens'
"""The class of words that are one of the tokens listed there, which are also of another class."""
KNOWN = 'known to the source'
"""The class of words that are one token of the source, beside those of new tokens by frequency."""


@dataclasses.dataclass(frozen=True)
class NewTokens:
    """The `new` tokens of the run's vocabulary, and those `listed`; `counts` of words among the `running` ones of its
    corpus."""

    speller: Speller
    new: frozenset[str]
    listed: frozenset[str]
    counts: Mapping[str, int]
    running: int

    @classmethod
    def of(cls, speller: Speller, new: frozenset[str], listed: str, vocab: Path) -> 'NewTokens':
        """The new tokens with the counts of stage vocab; `listed`: config.analysis.tokens. Raises InputError."""
        words, counts_W = frequency.read(vocab)
        counted = read_json(vocab / frequency.FILE)
        running = Frequency.read(counted, str(vocab / frequency.FILE)).domain.words if counted else 0
        tokens = frozenset(lists.read(listed) if listed else ())
        return cls(speller, new, tokens, dict(zip(words, counts_W.tolist(), strict=True)), running)

    def token(self, word: str) -> str | None:
        """The one token that a word is; None of words of several pieces."""
        pieces = self.speller(word)
        return self.speller.subwords.tokens[pieces[0]] if len(pieces) == 1 else None

    def of_frequency(self, word: str) -> float:
        """The nats that a word needs by its frequency alone; as one that occurs once where it was never counted."""
        return math.log(max(self.running, 1) / self._count(word))

    def by_class(self, scored: Sequence[HiddenWord]) -> dict[str, OneToken]:
        """`cloze.measures` of words that are one token, the number of different `tokens`, and `frequency_nats`, their
        mean by frequency alone: new ones by how often the word is in the corpus, those that the source knows, and those
        listed.
        """
        names = (*frequency.CLASSES, KNOWN, *([LISTED] if self.listed else ()))
        groups: dict[str, list[HiddenWord]] = {name: [] for name in names}
        for word in scored:
            if token := self.token(word.text):
                groups[self._class(word.text) if token in self.new else KNOWN].append(word)
                if token in self.listed:
                    groups[LISTED].append(word)
        return {name: self._measured(group) for name, group in groups.items()}

    def _measured(self, group: Sequence[HiddenWord]) -> OneToken:
        found, by_frequency = measures(group), [self.of_frequency(word.text) for word in group]
        return OneToken(
            **{field.name: getattr(found, field.name) for field in dataclasses.fields(found)},
            tokens=len({self.token(word.text) for word in group}),
            frequency_nats=float(np.mean(by_frequency)) if group else None,
        )

    def by_token(self, scored: Sequence[HiddenWord]) -> ByToken:
        """Scores by token, of the hidden words that are one new token."""
        found: dict[str, tuple[int, float, float]] = {}
        for word in scored:
            token = self.token(word.text)
            if token in self.new:
                words, nats, _ = found.get(token, (0, 0.0, 0.0))
                found[token] = words + 1, nats + word.nats, self.of_frequency(word.text)
        return found

    @functools.cached_property
    def _words_of(self) -> Callable[[str], list[str]]:
        known = self.speller.subwords
        return known.kind.words(known.reader)

    def _count(self, word: str) -> int:
        # Words that occur once in the corpus, or never, are not stored.
        own = self._words_of(word if self.speller.subwords.kind.carries_space else word.strip())
        return max(min((self.counts.get(one, 0) for one in own), default=0), 1)

    def _class(self, word: str) -> str:
        return frequency.class_of(self._count(word), self.running)


def write(folder: Path, by_model: Mapping[str, ByToken], last: str) -> None:
    """new_tokens.json: of each new token that is a hidden word, the nats a word of every model, worst first.

    `by_model`: of each model that has a masked-LM head. `frequency`: the nats of its frequency alone, and `behind`:
    those of the `last` model above them. Tokens where that is 0 or more are also lines of bad_tokens.txt, which
    config.surgery.fit_only takes.
    """
    records = [
        NewToken(
            token,
            words,
            {model: round(of_model[token][1] / words, 4) for model, of_model in by_model.items()},
            frequency=round(of_frequency, 4),
            behind=round(nats / words - of_frequency, 4),
        )
        for token, (words, nats, of_frequency) in by_model.get(last, {}).items()
    ]
    records.sort(key=lambda r: (-r.words * r.behind, r.token))
    write_json(folder / RECORD, plain(records))
    with atomic(folder / LIST) as file:
        file.writelines(f'{r.token}\n' for r in records if r.behind >= 0)
