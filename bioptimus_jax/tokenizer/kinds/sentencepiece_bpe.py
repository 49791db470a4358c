"""Byte-pair encoding of characters with ▁ for a space, as SentencePiece has it and as Gemma and mmBERT use it."""

from collections.abc import Collection, Mapping

import tokenizers
from tokenizers import models

from bioptimus_jax.tokenizer.config import Vocab
from bioptimus_jax.tokenizer.metaspace import Metaspace
from bioptimus_jax.tokenizer.pairs import Pairs
from bioptimus_jax.tokenizer.subwords import Subwords


class SentencePieceBPE(Metaspace, Pairs):
    """The kind of mmBERT's tokenizer."""

    model = 'BPE'

    def empty(self) -> tokenizers.Tokenizer:
        unknown = self.roles.unknown
        return tokenizers.Tokenizer(models.BPE(unk_token=unknown, fuse_unk=True))

    def has_letters(self, token: str, known: Collection[str]) -> bool:
        return len(token) == 1 or all(letter in known for letter in token)

    def train(self, counts: Mapping[str, int], settings: Vocab, source: Subwords | None) -> Subwords:
        """Special tokens, characters, merges, the mask last; the source's normalizer and pre-tokenizer are kept."""
        written, letters, first, last = self.counted(counts, settings, source)
        return self.merged(written, letters, first, last, settings, source)


KIND = SentencePieceBPE()
