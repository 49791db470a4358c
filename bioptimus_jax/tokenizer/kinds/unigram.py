"""SentencePiece's unigram model, as XLM-R, CamemBERT and DeBERTa-v3 have it: each piece has a score, its logarithmic
probability, and a word is cut where the scores of its pieces add up to most."""

import io
import json
import tempfile
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path

import sentencepiece
import tokenizers
from tokenizers import models

from bioptimus_jax.storage.files import JsonObject
from bioptimus_jax.tokenizer import spm
from bioptimus_jax.tokenizer.config import Vocab
from bioptimus_jax.tokenizer.metaspace import SPACE, Metaspace
from bioptimus_jax.tokenizer.rebuilt import rebuilt
from bioptimus_jax.tokenizer.subwords import Roles, Subwords
from bioptimus_jax.tokenizer.tokenizer_files import add_listed, listed_tokens

LONGEST_WORD = 100_000
"""Bytes; where scripts put no blanks between words, a sentence is a word."""
LONGEST_PIECE = 64
"""Characters; SentencePiece's own limit is 16, and immunohistochemistry has 20."""
DIGITS = 6
"""Digits of a score behind the point; SentencePiece computes with about as many."""
UNKNOWN_PENALTY = 10.0
"""The distance at which an unknown character scores below the lowest token: the library's own number."""
MARGIN = 0.001
"""The least distance at which a token that is added scores above the pieces that it replaces."""


class Unigram(Metaspace):
    """The kind of XLM-R's tokenizers."""

    model = 'Unigram'
    read_from = spm.FILES

    def holds(self, path: Path, described: JsonObject) -> bool:
        return spm.file_of(path) is not None or super().holds(path, described)

    def load(self, path: Path) -> Subwords:
        """The tokenizer of a folder with a tokenizer.json, else with SentencePiece's own file. Raises InputError."""
        if not (file := spm.file_of(path)):
            return super().load(path)
        tokenizer, roles = spm.read(file)
        add_listed(tokenizer, listed_tokens(path, roles), path)
        return self.kept(tokenizer, path, roles)

    def spaces(self, described: JsonObject) -> bool:
        return True  # there is no other way with this model

    def empty(self) -> tokenizers.Tokenizer:
        return tokenizers.Tokenizer(models.Unigram([(self.roles.unknown, 0.0)], unk_id=0))

    def without(self, tokenizer: tokenizers.Tokenizer, hidden: Collection[int]) -> tokenizers.Tokenizer:
        """The entries are renamed, since ids have no gaps: no word has a space in it."""
        state, gone = json.loads(tokenizer.to_str()), set(hidden)
        entries = enumerate(state['model']['vocab'])
        state['model']['vocab'] = [
            [f'hidden {i}' if i in gone else token, score] for i, (token, score) in entries
        ]
        return tokenizers.Tokenizer.from_str(json.dumps(state))

    def train(self, counts: Mapping[str, int], settings: Vocab, source: Subwords | None) -> Subwords:
        """Special tokens, pieces by their score, the mask last; the source's normalizer and pre-tokenizer are kept.

        Trained by SentencePiece in one thread, on words in a fixed order: the word counts alone decide, where the
        trainer of `tokenizers` gives other scores each time.
        """
        written, letters, first, last = self.counted(counts, settings, source)
        pieces = trained_pieces(written, letters, settings.size - len(first) - len(last))
        own = {token: score for token, score in pieces if token not in first and token not in last}
        scores = {**dict.fromkeys(first, 0.0), **own, **dict.fromkeys(last, 0.0)}
        roles, ends = (source.roles, source.ends) if source else (self.roles, None)
        like = source.tokenizer if source else self.blank(settings.lowercase)
        return self.of(like_scored(like, roles, scores), roles, ends)

    def append(self, source: Subwords, trained: Subwords) -> Subwords:
        """The source with trained tokens; see `_added`."""
        made = self._added(source, trained.tokens)
        if not (left := set(self.unreached(made, range(len(source.tokens), len(made.tokens))))):
            return made
        kept = [made.tokens[i] for i in range(len(source.tokens), len(made.tokens)) if i not in left]
        return self._added(source, kept)

    def with_words(self, source: Subwords, words: Iterable[str]) -> Subwords:
        return self._added(source, [token for word in words if (token := self.written(word))])

    def _added(self, source: Subwords, tokens: Iterable[str]) -> Subwords:
        """The source with more tokens, the order of which stays.

        Each scores a little more than the pieces that spelled it, so no text has these side by side any more, but not
        less than the lowest of the source: the library scores unknown characters by it. Pieces often add up to less.
        Then the token may also win where the source cut a word at other places. The shortest get theirs first, since
        longer ones may be spelled by them.
        """
        scores = scores_of(source)
        new = [token for token in dict.fromkeys(tokens) if token not in scores]
        lowest = min(scores.values())
        added = {token.content for token in source.tokenizer.get_added_tokens_decoder().values()}
        cut = Lattice({token: score for token, score in scores.items() if token not in added})
        for token in sorted(new, key=len):
            cut.add(token, max(round(cut.best(token) + MARGIN, DIGITS), lowest))
        scores |= {token: cut.scores[token] for token in new}
        return self.of(like_scored(source.tokenizer, source.roles, scores), source.roles, source.ends)


KIND = Unigram()


class Lattice:
    """Scores of tokens, and the best way to spell a text by them, as the library finds it."""

    def __init__(self, scores: Mapping[str, float]):
        self.scores = dict(scores)
        self.longest = max(map(len, scores))
        self.unknown = min(scores.values()) - UNKNOWN_PENALTY

    def add(self, token: str, score: float) -> None:
        """One more token."""
        self.scores[token], self.longest = score, max(self.longest, len(token))

    def best(self, text: str) -> float:
        """The highest sum of the scores of tokens that spell a text, unknown characters among them."""
        sums = [0.0]
        for end in range(1, len(text) + 1):
            begins = range(max(end - self.longest, 0), end)
            known = (sums[b] + s for b in begins if (s := self.scores.get(text[b:end])) is not None)
            sums.append(max(known, default=sums[-1] + self.unknown))
        return sums[-1]


def scores_of(subwords: Subwords) -> dict[str, float]:
    """The score of every token in order of the ids; that of a token that was only added is 0, as of special ones."""
    own = json.loads(subwords.tokenizer.to_str())['model']['vocab']
    return {**dict.fromkeys(subwords.tokens, 0.0), **dict(own)}


def like_scored(
    like: tokenizers.Tokenizer, roles: Roles, scores: Mapping[str, float]
) -> tokenizers.Tokenizer:
    """A tokenizer with the settings of another, and these tokens with their scores in order of the ids."""
    model: JsonObject = {'vocab': [[token, score] for token, score in scores.items()]}
    model['unk_id'] = list(scores).index(roles.unknown)
    return rebuilt(like, roles, list(scores), model)


def trained_pieces(
    written: Mapping[str, int], letters: Collection[str], size: int
) -> list[tuple[str, float]]:
    """About `size` pieces of counted words with their scores, the highest first; every letter is among them."""
    with tempfile.TemporaryDirectory(prefix='bioptimus-') as folder:
        file, model = Path(folder) / 'words.tsv', io.BytesIO()
        lines = (f'{word.replace(SPACE, " ")}\t{written[word]}\n' for word in sorted(written))
        file.write_text(''.join(lines), 'utf-8')
        sentencepiece.SentencePieceTrainer.train(
            input=str(file),
            input_format='tsv',
            model_writer=model,
            model_type='unigram',
            vocab_size=size + 1,  # its own unknown token is one of them
            hard_vocab_limit=False,
            max_sentencepiece_length=LONGEST_PIECE,
            max_sentence_length=LONGEST_WORD,
            character_coverage=1.0,
            normalization_rule_name='identity',
            add_dummy_prefix=False,
            remove_extra_whitespaces=False,
            unk_id=0,
            bos_id=-1,
            eos_id=-1,
            pad_id=-1,
            num_threads=1,
            minloglevel=2,
        )
    made = sentencepiece.SentencePieceProcessor(model_proto=model.getvalue())
    # Longer numbers do not come back from JSON as they were.
    pieces = [
        (made.id_to_piece(i), round(made.get_score(i), DIGITS)) for i in range(1, made.get_piece_size())
    ]
    lowest = min(score for _, score in pieces)
    missing = set(letters) - {piece for piece, _ in pieces}
    return [*pieces, *((letter, lowest) for letter in sorted(missing))]
