"""What tokenizers have in common whose pieces hold the space before them: byte-level pairs, and SentencePiece's two.

Each writes a space as a letter of its own, Ġ or ▁, so a word is cut from a text together with the space before it.
"""

import json
from abc import abstractmethod
from collections.abc import Callable, Collection, Mapping
from pathlib import Path

import tokenizers

from bioptimus_jax.errors import ConfigError, InputError
from bioptimus_jax.tokenizer.probes import PROBES
from bioptimus_jax.tokenizer.subwords import SETTINGS, Kind, Roles, Subwords, is_whole
from bioptimus_jax.tokenizer.tokenizer_files import check_roles, named_by, named_roles, plain_steps, said_ends

ROLES = Roles(pad='<pad>', unknown='<unk>', cls='<s>', sep='</s>', mask='<mask>')
"""The special tokens of RoBERTa, XLM-R and CamemBERT."""


class Spaced(Kind):
    """A kind whose pieces hold the space before them."""

    carries_space = words_in_rows = True
    roles = ROLES
    """The special tokens of a vocabulary that is trained without a source."""
    space: str
    """The letter that is written for a space."""

    @abstractmethod
    def written(self, text: str) -> str:
        """A text in the letters of the vocabulary."""

    @abstractmethod
    def read(self, word: str) -> str:
        """The text that such letters stand for."""

    @abstractmethod
    def is_byte(self, token: str) -> bool:
        """Whether a token stands for a byte, which no other tokens can spell."""

    def of(
        self, tokenizer: tokenizers.Tokenizer, roles: Roles, ends: Mapping[str, str] | None = None
    ) -> Subwords:
        """The subwords of a tokenizer of this kind. Special tokens and those kept free never stand in for others."""
        added = tokenizer.get_added_tokens_decoder().values()
        reserved = {t.content for t in added if t.special or t.content.startswith('[unused')}
        return Subwords.of(self, tokenizer, roles, reserved, ends)

    def around(self, tokenizer: tokenizers.Tokenizer) -> Roles:
        """The usual special tokens, but around a text those that the post-processor puts there."""
        around = tokenizer.encode('').tokens
        return ROLES._replace(cls=around[0], sep=around[-1]) if around else ROLES

    def named(
        self,
        tokenizer: tokenizers.Tokenizer,
        folder: Path,
        said: Mapping[str, tuple[str, Path]],
        usual: Roles,
    ) -> Roles:
        """The special tokens as `said` by a folder, else the `usual` ones. InputError for one that is no token."""
        roles = named_by(said, usual)
        unsaid = dict.fromkeys(named_roles(usual), ('', folder / SETTINGS))
        check_roles(tokenizer.get_vocab(), roles, {**unsaid, **said})
        return roles

    def kept(self, tokenizer: tokenizers.Tokenizer, folder: Path, roles: Roles) -> Subwords:
        """The subwords of the tokenizer of a folder, with the special tokens that it names beside the roles."""
        return self.of(tokenizer, roles, said_ends(folder, tokenizer, roles))

    def check(self, subwords: Subwords, where: Path) -> None:
        """Raises InputError, naming the setting, unless the tokenizer is one of words that carry their space."""
        tokenizer = subwords.tokenizer
        around, (cls, sep) = tokenizer.encode('').tokens, (subwords.roles.cls, subwords.roles.sep)
        if around != [cls, sep]:
            raise InputError(
                f'{where}: post_processor puts {" ".join(around) or "nothing"} around a text; only {cls} ... {sep} '
                'is supported'
            )
        added = (token.content for token in tokenizer.get_added_tokens_decoder().values())
        for text in (*PROBES, *(f'a {content} b' for content in added)):
            apart = [i for each in subwords.encode(self.stretches(text)) for i in each.ids]
            if subwords.encode([text])[0].ids != apart:
                raise InputError(
                    f'{where}: normalizer, pre_tokenizer or an added token cuts {text[:40]!r} otherwise than its parts '
                    'between spaces; only tokenizers whose words end at a space are supported'
                )

    def begins(self, token: str) -> bool:
        return token.startswith(self.space)

    def words(self, tokenizer: tokenizers.Tokenizer) -> Callable[[str], list[str]]:
        """Words as the text has them: with the space that their first piece holds."""
        cut = super().words(tokenizer)
        return lambda text: [self.read(word) for word in cut(text)]

    def spell(self, tokenizer: tokenizers.Tokenizer, text: str, inside: bool) -> list[int]:
        words = self.words(tokenizer)(text if inside else f' {text}')
        if inside and words and words[0].startswith(' ') and not text.startswith(' '):
            words[0] = words[0][1:]  # of a tokenizer that begins every text with a space
        return [i for word in words if word for i in self.pieces(tokenizer, word)]

    def spell_token(self, tokenizer: tokenizers.Tokenizer, token: str) -> list[int]:
        return [piece.id for piece in tokenizer.model.tokenize(token)]

    def pieces(self, tokenizer: tokenizers.Tokenizer, word: str) -> list[int]:
        return self.spell_token(tokenizer, self.written(word))

    def whole(self, subwords: Subwords, words_in: Callable[[str], list[str]], number: int) -> bool:
        """There is a token for each byte, reached or not. Parts of characters and punctuation stand beside others, so
        only the model is asked for them."""
        text, token = subwords.text(number), subwords.tokens[number]
        if self.is_byte(token):
            return True
        begun = f' {text}' if self.begins(token) else f'a{text}'
        if is_whole(text) and text.isalnum() and subwords.normalised(begun) != begun:
            return False
        if ' ' in text.strip() and len(words_in(begun)) > 1:
            return False
        return self.spell_token(subwords.tokenizer, token) == [number]

    def respellable(self, subwords: Subwords) -> set[int]:
        """Ids of all tokens that bytes or single characters spell and that were not added.

        Hidden, they are spelled by these at least, which are never hidden.
        """
        added = subwords.tokenizer.get_added_tokens_decoder()
        own = subwords.tokenizer.get_vocab(with_added_tokens=False)
        letters = {token for token in own if len(token) == 1 or self.is_byte(token)}
        return {
            number
            for token, number in own.items()
            if token not in letters and number not in added and self.is_spelled(token, letters)
        }

    def is_spelled(self, token: str, letters: Collection[str]) -> bool:
        """Whether those bytes and characters spell a token."""
        return all(letter in letters for letter in token)

    def fit(self, given: Subwords, source: Subwords, file: Path) -> Subwords:
        mine, other = (json.loads(each.tokenizer.to_str()) for each in (given, source))
        for name in ('normalizer', 'pre_tokenizer'):
            if plain_steps(mine[name]) != plain_steps(other[name]):
                raise ConfigError(
                    f'config.vocab.file: the {name} of {file} is another than that of the source, so its pieces are '
                    "not of the source's words; take a vocabulary that was trained with it"
                )
        return given
