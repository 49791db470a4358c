"""Byte-pair encoding: pieces are merged from letters, the pair of the lowest rank first."""

import itertools
import json
from abc import abstractmethod
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path

import tokenizers
from tokenizers import AddedToken, models, trainers

from bioptimus_jax.errors import InputError
from bioptimus_jax.storage.files import JsonObject
from bioptimus_jax.tokenizer.config import Vocab
from bioptimus_jax.tokenizer.rebuilt import rebuilt
from bioptimus_jax.tokenizer.spaced import Spaced
from bioptimus_jax.tokenizer.subwords import Roles, Subwords
from bioptimus_jax.tokenizer.training import train_model

LEFT_OUT = ('dropout', 'continuing_subword_prefix', 'end_of_word_suffix')
"""Settings of the library's model that no kind of ours has."""


class Pairs(Spaced):
    """A kind whose words are merged pair by pair."""

    refused: tuple[str, ...] = LEFT_OUT
    """Settings of the model that may not be set."""

    @abstractmethod
    def has_letters(self, token: str, known: Collection[str]) -> bool:
        """Whether the letters of a token are in a vocabulary; a single letter may be a new one."""

    def check(self, subwords: Subwords, where: Path) -> None:
        """Raises InputError, naming the setting, unless the tokenizer is a BPE of words that carry their space."""
        model = model_state(subwords.tokenizer)
        for name in self.refused:
            if model.get(name):
                raise InputError(
                    f'{where}: {name} of the tokenizer is {model[name]!r}; only none is supported'
                )
        super().check(subwords, where)

    def without(self, tokenizer: tokenizers.Tokenizer, hidden: Collection[int]) -> tokenizers.Tokenizer:
        """Merges with a token that is hidden go; the entries are renamed, since ids have no gaps."""
        state, gone = json.loads(tokenizer.to_str()), {tokenizer.id_to_token(i) for i in hidden}
        model = state['model']
        model['merges'] = [pair for pair in model['merges'] if not gone & {*pair, ''.join(pair)}]
        # A name with a space is found in no text: a space is written as a letter of its own.
        model['vocab'] = {f'hidden {i}' if t in gone else t: i for t, i in model['vocab'].items()}
        return tokenizers.Tokenizer.from_str(json.dumps(state))

    def merged(
        self,
        written: dict[str, int],
        letters: list[str],
        first: list[str],
        last: list[str],
        settings: Vocab,
        source: Subwords | None,
    ) -> Subwords:
        """A tokenizer with the special tokens that are `first`, letters, merges of counted words, and those that are
        `last`; with a source its normalizer, pre-tokenizer and post-processor are kept.

        The trainer breaks ties by the numbers of the letters, which have a fixed order: the counts alone decide.
        """
        roles, ends = (source.roles, source.ends) if source else (self.roles, None)
        like = source.tokenizer if source else self.blank(settings.lowercase)
        trainer = trainers.BpeTrainer(
            vocab_size=settings.size - len(last),
            min_frequency=settings.min_frequency,
            special_tokens=first,
            initial_alphabet=letters,
            limit_alphabet=len(letters),
            show_progress=False,
        )
        model = model_state(train_model(models.BPE(), trainer, written))
        tokens = [*dict.fromkeys((*sorted(model['vocab'], key=model['vocab'].__getitem__), *last))]
        return self.of(like_pairs(like, roles, tokens, model['merges']), roles, ends)

    def append(self, source: Subwords, trained: Subwords) -> Subwords:
        """A new token gets a merge behind all others, of the two pieces that those before it leave of it.

        So a text can have each token that is appended. One that is in more than two pieces when its turn comes, in
        order of the ids in `trained`, would never be reached, and is left out.
        """
        tokens, merges = list(source.tokens), model_state(source.tokenizer)['merges']
        known, rank = set(tokens), {tuple(pair): number for number, pair in enumerate(merges)}
        for token in trained.tokens:
            if token not in known and self.has_letters(token, known) and len(pair := merge(token, rank)) < 3:
                known.add(token)
                tokens.append(token)
                if len(pair) == 2:
                    rank[pair[0], pair[1]] = len(rank)
                    merges.append(pair)
        made = self._like(source, tokens, merges)
        if not (left := {tokens[i] for i in self.unreached(made, range(len(source.tokens), len(tokens)))}):
            return made
        # What holds an added token is cut there, and so is all that is merged of it.
        tokens = [token for token in tokens if token not in left]
        return self._like(source, tokens, [pair for pair in merges if not left & {*pair, ''.join(pair)}])

    def with_words(self, source: Subwords, words: Iterable[str]) -> Subwords:
        """The beginnings of a word are tokens too: each is merged of the one before it and the next piece.

        New merges come behind all others, so no text has other pieces but where a new token is.
        """
        tokens, merges = dict.fromkeys(source.tokens), model_state(source.tokenizer)['merges']
        rank = {tuple(pair): number for number, pair in enumerate(merges)}
        for word in map(self.written, words):
            tokens |= dict.fromkeys(letter for letter in word if letter not in tokens)
            while len(pieces := merge(word, rank)) > 1:
                rank[pieces[0], pieces[1]] = len(rank)
                merges.append(pieces[:2])
                tokens.setdefault(pieces[0] + pieces[1])
        return self._like(source, [*tokens], merges)

    def _like(self, source: Subwords, tokens: list[str], merges: list[list[str]]) -> Subwords:
        return self.of(like_pairs(source.tokenizer, source.roles, tokens, merges), source.roles, source.ends)


def model_state(tokenizer: tokenizers.Tokenizer) -> JsonObject:
    """The settings, the vocabulary and the merges of a tokenizer's model."""
    return json.loads(tokenizer.to_str())['model']


def like_pairs(
    like: tokenizers.Tokenizer,
    roles: Roles,
    tokens: list[str],
    merges: list[list[str]],
    added: Iterable[AddedToken] = (),
) -> tokenizers.Tokenizer:
    """A tokenizer with the settings of another, these tokens in order of their ids, and these merges."""
    model = {'vocab': {token: i for i, token in enumerate(tokens)}, 'merges': merges}
    return rebuilt(like, roles, tokens, model, added)


def merge(token: str, rank: Mapping[tuple[str, ...], int]) -> list[str]:
    """The pieces of a token by merges of that rank, the lowest first, as the library takes them."""
    pieces = list(token)
    while len(pieces) > 1:
        best = min(itertools.pairwise(pieces), key=lambda pair: rank.get(pair, len(rank)))
        if best not in rank:
            break
        at = 0
        while at < len(pieces) - 1:
            if (pieces[at], pieces[at + 1]) == best:
                pieces[at : at + 2] = [''.join(best)]
            at += 1
    return pieces
