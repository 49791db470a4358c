"""Hidden words that are one new token: how well the models name them, and which they still name badly.

A new token is named badly where the last model needs more nats for its words than the source needs for them in pieces.
"""

import dataclasses
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from bioptimus_jax.analysis.cloze import HiddenWord, Speller, measures
from bioptimus_jax.files import atomic, read_json, write_json
from bioptimus_jax.schema import SOURCE
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
        """With what stage vocab counted; `listed`: config.analysis.tokens. Raises InputError."""
        words, counts_W = frequency.read(vocab)
        running = (read_json(vocab / 'frequency.json') or {}).get('domain', {}).get('words', 0)
        tokens = frozenset(lists.read(listed) if listed else ())
        return cls(speller, new, tokens, dict(zip(words, counts_W.tolist(), strict=True)), running)

    def token(self, word: str) -> str | None:
        """The one token that a word is; None of words of several pieces."""
        pieces = self.speller(word)
        return self.speller.subwords.tokens[pieces[0]] if len(pieces) == 1 else None

    def by_class(self, scored: Sequence[HiddenWord]) -> dict[str, dict[str, Any]]:
        """`cloze.measures` of words that are one token, and the number of different `tokens`: new ones by the frequency
        of the word in the corpus, those that the source knows, and those listed."""
        names = (*frequency.CLASSES, KNOWN, *([LISTED] if self.listed else ()))
        groups: dict[str, list[HiddenWord]] = {name: [] for name in names}
        for word in scored:
            if token := self.token(word.text):
                groups[self._class(word.text) if token in self.new else KNOWN].append(word)
                if token in self.listed:
                    groups[LISTED].append(word)
        return {
            name: {**measures(group), 'tokens': len({self.token(word.text) for word in group})}
            for name, group in groups.items()
        }

    def by_token(self, scored: Sequence[HiddenWord]) -> dict[str, tuple[int, float]]:
        """New token -> how many hidden words are it, and their nats in all."""
        found: dict[str, tuple[int, float]] = defaultdict(lambda: (0, 0.0))
        for word in scored:
            token = self.token(word.text)
            if token in self.new:
                words, nats = found[token]
                found[token] = words + 1, nats + word.nats
        return dict(found)

    def _class(self, word: str) -> str:
        # Words that occur once in the corpus, or never, are not stored: they are of the last class.
        own = word if self.speller.subwords.kind.carries_space else word.strip()
        return frequency.class_of(self.counts.get(own, 0) or 1, self.running)


def write(folder: Path, by_model: Mapping[str, Mapping[str, tuple[int, float]]], last: str) -> None:
    """new_tokens.json: of each new token that is a hidden word, the nats a word of every model, worst first.

    `by_model`: `NewTokens.by_token` of each model that has a masked-LM head. `behind`: nats a word of the `last` one
    above the source; with a source, tokens where it is above 0 are also lines of bad_tokens.txt, which
    config.surgery.fit_only takes.
    """
    source = by_model.get(SOURCE, {})
    records = [
        {
            'token': token,
            'words': words,
            'nats_per_word': {
                model: round(of_model[token][1] / words, 4) for model, of_model in by_model.items()
            },
            **({'behind': round((nats - source[token][1]) / words, 4)} if source else {}),
        }
        for token, (words, nats) in by_model.get(last, {}).items()
    ]
    records.sort(key=lambda r: (-r['words'] * r.get('behind', 0.0), r['token']))
    write_json(folder / RECORD, records)
    with atomic(folder / LIST) as file:
        file.writelines(f'{r["token"]}\n' for r in records if r.get('behind', 0.0) > 0)
