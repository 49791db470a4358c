"""BERT's tokenizers: words apart from punctuation, and pieces that go on inside a word marked with "##"."""

import dataclasses
import itertools
import json
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping
from pathlib import Path
from typing import Any

import tokenizers
from tokenizers import AddedToken, decoders, models, normalizers, pre_tokenizers, processors, trainers

from bioptimus_jax.errors import ConfigError, InputError
from bioptimus_jax.storage.files import JsonObject, atomic, refuse_pointer
from bioptimus_jax.tokenizer.config import Vocab
from bioptimus_jax.tokenizer.probes import PROBES
from bioptimus_jax.tokenizer.subwords import READY, SETTINGS, Kind, Roles, Subwords
from bioptimus_jax.tokenizer.tokenizer_files import (
    INPUTS,
    SWITCHES,
    UNTYPED,
    add_listed,
    check_ids,
    check_roles,
    extra_tokens,
    listed_tokens,
    named_by,
    named_roles,
    normalizer_settings,
    read_ready,
    said_ends,
    said_roles,
    special_tokens,
    write_settings,
)
from bioptimus_jax.tokenizer.training import alphabet, train_model

PAD, UNK, CLS, SEP, MASK = SPECIAL_TOKENS = Roles('[PAD]', '[UNK]', '[CLS]', '[SEP]', '[MASK]')
TYPE = 'WordPiece'
VOCABULARY = 'vocab.txt'
CONTINUATION = '##'
MAX_WORD_CHARACTERS = 100  # longer words are unknown to BERT, so they teach nothing


class WordPiece(Kind):
    """The kind of BERT's tokenizers."""

    files = (VOCABULARY,)

    def holds(self, path: Path, described: JsonObject) -> bool:
        if path.is_dir() and (path / READY).is_file():
            model = described.get('model')
            return isinstance(model, dict) and model.get('type') == TYPE
        return path.is_file() or (path / VOCABULARY).is_file()

    def load(self, path: Path) -> Subwords:
        """The tokenizer of a folder (tokenizer.json, else vocab.txt) or a vocab.txt; truncation and padding off.

        Settings and added tokens of a folder are those of its other files too (tokenizer_files); of a vocab.txt the
        settings of the tokenizer_config.json beside it. Casing that nothing gives is that of the vocabulary: whether
        any token has a capital letter. Special tokens are those that a folder's files name, else BERT's. Raises
        InputError for a damaged file, and where a special token is missing.
        """
        folder = path if path.is_dir() else path.parent
        said = said_roles(folder) if path.is_dir() else {}
        roles = named_by(said, SPECIAL_TOKENS)
        if path.is_dir() and (folder / READY).is_file():
            tokenizer = read_ready(folder)
            _check_special_tokens(tokenizer.get_vocab(), folder / READY, roles, said)
            check_ids(tokenizer, folder)
        else:
            file = path / VOCABULARY if path.is_dir() else path
            entries = _read_vocabulary(file)
            _check_special_tokens(entries, file, roles, said)
            capitals = any(re.search('[A-Z]', e) for e in entries if not re.fullmatch(r'\[.*\]', e))
            settings: dict[str, Any] = {'lowercase': not capitals, **normalizer_settings(folder)}
            tokenizer = tokenizer_from_vocabulary(entries, without_vocabulary(**settings), roles=roles)
        if path.is_dir():
            add_listed(tokenizer, listed_tokens(folder, roles), folder)
        return self.of(tokenizer, said_ends(folder, tokenizer, roles), roles)

    def of(
        self,
        tokenizer: tokenizers.Tokenizer,
        ends: Mapping[str, str] | None = None,
        roles: Roles = SPECIAL_TOKENS,
    ) -> Subwords:
        """The subwords of a tokenizer of this kind. Special tokens and those kept free never stand in for others."""
        added = tokenizer.get_added_tokens_decoder().values()
        # A vocabulary that was made of BERT's may have BERT's special tokens beside its own.
        free = {t for t in tokenizer.get_vocab() if t.startswith('[unused') or t in SPECIAL_TOKENS}
        reserved = free | {token.content for token in added if token.special}
        return Subwords.of(self, tokenizer, roles, reserved, ends)

    def made(
        self,
        tokens: list[str],
        lowercase: bool = True,
        like: Subwords | None = None,
        added: Iterable[AddedToken] = (),
    ) -> Subwords:
        """The tokenizer of these tokens, in order of ids, in that casing or with the words (and casing) of `like`.

        Added tokens, as far as they are among the tokens: those of `like`, with the flags of `added` where that has
        them, and `added`. Special tokens are those of `like`, or BERT's.
        """
        blank, roles = (like.tokenizer, like.roles) if like else (self.blank(lowercase), SPECIAL_TOKENS)
        made = tokenizer_from_vocabulary(tokens, blank, added, roles)
        return self.of(made, like.ends if like else None, roles)

    def save(self, subwords: Subwords, folder: Path, model_max_length: int) -> None:
        """Write vocab.txt, tokenizer.json and tokenizer_config.json as transformers' AutoTokenizer reads them.

        transformers reads the settings of BERT's own tokenizer in tokenizer_config.json; any other it takes from
        tokenizer.json as it stands.
        """
        tokenizer = subwords.tokenizer
        folder.mkdir(parents=True, exist_ok=True)
        with atomic(folder / VOCABULARY, 'wb') as file:
            file.write(''.join(token + '\n' for token in subwords.tokens).encode('utf-8'))
        normal = tokenizer.normalizer
        own = isinstance(normal, normalizers.BertNormalizer) and normal.clean_text
        doubled = _is_doubled(tokenizer)
        if own and isinstance(tokenizer.pre_tokenizer, pre_tokenizers.BertPreTokenizer) and not doubled:
            switches = ('do_lower_case', 'tokenize_chinese_chars', 'strip_accents')
            settings: JsonObject = {'tokenizer_class': 'BertTokenizer'}
            settings |= {key: getattr(normal, SWITCHES[key]) for key in switches}
        else:
            settings = {'tokenizer_class': 'PreTrainedTokenizerFast'}
        if doubled:  # of models without token types
            settings[INPUTS] = UNTYPED
        settings |= {
            'model_max_length': model_max_length,
            **named_roles(subwords.roles),
            **extra_tokens(subwords),
        }
        write_settings(folder, tokenizer, settings)

    def check(self, subwords: Subwords, where: Path) -> None:
        """Raises InputError, naming the setting, for a tokenizer that is no WordPiece of words between spaces."""
        tokenizer = subwords.tokenizer
        model = json.loads(tokenizer.to_str())['model']
        plain = dict(
            type=TYPE,
            unk_token=subwords.roles.unknown,
            continuing_subword_prefix=CONTINUATION,
            max_input_chars_per_word=MAX_WORD_CHARACTERS,
        )
        for name, value in plain.items():
            if model.get(name) != value:
                raise InputError(
                    f'{where}: {name} of the tokenizer is {model.get(name)!r}; only {value!r} is supported'
                )
        around, (cls, sep) = tokenizer.encode('', ''), (subwords.roles.cls, subwords.roles.sep)
        if (around.tokens, around.type_ids) not in (
            ([cls, sep, sep], [0, 0, 1]),
            ([cls, *[sep] * 3], [0] * 4),
        ):
            raise InputError(
                f'{where}: post_processor puts {" ".join(around.tokens) or "nothing"} around a pair of texts; '
                f'only {cls} ... {sep} ... {sep} and {cls} ... {sep} {sep} ... {sep} are supported'
            )
        words_in = self.words(tokenizer)
        for text in PROBES:
            if words_in(text) != [word for part in text.split(' ') for word in words_in(part)]:
                raise InputError(
                    f'{where}: normalizer or pre_tokenizer cuts {text[:40]!r} otherwise than its parts between spaces; '
                    'only tokenizers whose words end at a space are supported'
                )
        for token in tokenizer.get_added_tokens_decoder().values():
            if token.content.splitlines() != [token.content]:
                raise InputError(
                    f'{where}: the added token {token.content!r} has a line break; vocab.txt cannot hold it'
                )

    def text(self, token: str) -> str:
        return token if self.begins(token) else token[len(CONTINUATION) :]

    def begins(self, token: str) -> bool:
        return not token.startswith(CONTINUATION) or token == CONTINUATION

    def spell(self, tokenizer: tokenizers.Tokenizer, text: str, inside: bool) -> list[int]:
        """The inside of a word is spelled by pieces that go on, "nstriction" by ##nst ##ric ##tion: its pieces wherever
        a piece of the word ends where this text begins. The longest match comes first, as in WordPiece. Where no such
        pieces spell it, it is spelled like a word."""
        pieces = self._continued(tokenizer, text) if inside else []
        return pieces or tokenizer.encode(text, add_special_tokens=False).ids

    def _continued(self, tokenizer: tokenizers.Tokenizer, text: str) -> list[int]:
        rest = tokenizer.normalizer.normalize_str(text) if tokenizer.normalizer else text
        pieces = []
        while rest:
            for end in range(len(rest), 0, -1):
                piece = tokenizer.token_to_id(CONTINUATION + rest[:end])
                if piece is not None:
                    break
            else:
                return []
            pieces.append(piece)
            rest = rest[end:]
        return pieces

    def pieces(self, tokenizer: tokenizers.Tokenizer, word: str) -> list[int]:
        return [token.id for token in tokenizer.model.tokenize(word)]

    def whole(self, subwords: Subwords, words_in: Callable[[str], list[str]], number: int) -> bool:
        token = subwords.tokens[number]
        word = token if self.begins(token) else f'a{self.text(token)}'
        return len(word) <= MAX_WORD_CHARACTERS and words_in(word) == [word]

    def respellable(self, subwords: Subwords) -> set[int]:
        """Ids of tokens of two characters or more each of which is a token as well: hidden, they are spelled by those.

        A character is never in it, so that no word becomes unknown for what was hidden; nor is an added token, which is
        found before there are pieces.
        """
        ids = subwords.tokenizer.get_vocab(with_added_tokens=False)
        added = {token.content for token in subwords.tokenizer.get_added_tokens_decoder().values()}

        def is_spelled(token: str) -> bool:
            text = self.text(token)
            first = text[:1] if self.begins(token) else ''
            characters = (*first, *(CONTINUATION + c for c in text[len(first) :]))
            return len(text) > 1 and all(c in ids for c in characters)

        return {number for token, number in ids.items() if token not in added and is_spelled(token)}

    def without(self, tokenizer: tokenizers.Tokenizer, hidden: Collection[int]) -> tokenizers.Tokenizer:
        """The entries are renamed and not removed, since ids have no gaps: a name with a space matches no word."""
        description, gone = json.loads(tokenizer.to_str()), set(hidden)
        vocabulary = description['model']['vocab']
        description['model']['vocab'] = {
            f'hidden {number}' if number in gone else token: number for token, number in vocabulary.items()
        }
        return tokenizers.Tokenizer.from_str(json.dumps(description))

    def blank(self, lowercase: bool) -> tokenizers.Tokenizer:
        return without_vocabulary(lowercase)

    def train(self, counts: Mapping[str, int], settings: Vocab, source: Subwords | None) -> Subwords:
        """A trained vocabulary (`train_from_counts`); with a source its special tokens come in the source's order, and
        those that have no role last."""
        extra = special_tokens(source) if source else []
        own = train_from_counts(counts, dataclasses.replace(settings, size=settings.size - len(extra)))
        first = sorted(source.roles, key=source.tokens.index) if source else SPECIAL_TOKENS
        tokens = dict.fromkeys((*first, *own[len(SPECIAL_TOKENS) :], *extra))
        return self.made([*tokens], settings.lowercase, source)

    def append(self, source: Subwords, trained: Subwords) -> Subwords:
        """The source with trained tokens, without those that no text has beside the source's added tokens."""
        made = self.with_words(source, trained.tokens)
        if not (left := set(self.unreached(made, range(len(source.tokens), len(made.tokens))))):
            return made
        return self.made([token for i, token in enumerate(made.tokens) if i not in left], like=source)

    def with_words(self, source: Subwords, words: Iterable[str]) -> Subwords:
        return self.made([*dict.fromkeys((*source.tokens, *words))], like=source)

    def fit(self, given: Subwords, source: Subwords, file: Path) -> Subwords:
        """A tokenizer.json is taken as it is. A vocab.txt is a list of entries: it gets the words of the source."""
        folder = file if file.is_dir() else file.parent
        if file.name == READY or (file.is_dir() and (file / READY).is_file()):
            mine, other = (self.words(each.tokenizer) for each in (given, source))
            if parted := next((text for text in PROBES if mine(text) != other(text)), None):
                raise ConfigError(
                    f'config.vocab.file: {file} cuts {parted[:40]!r} into other words than the tokenizer of the source '
                    'does; take a vocabulary that was trained with its words, or the vocab.txt alone'
                )
            return given
        said = normalizer_settings(folder)
        if said and other_words(source.tokenizer, said):
            listed = ', '.join(f'{key} {said[name]}' for key, name in SWITCHES.items() if name in said)
            raise ConfigError(
                f'config.vocab.file: {folder / SETTINGS} says {listed}, and the tokenizer of the source '
                'is another; take a vocabulary with its settings, or correct that file'
            )
        if missing := [token for token in source.roles if token not in given.tokens]:
            raise ConfigError(
                f'config.vocab.file: {file} has no {", ".join(missing)}, which the tokenizer of the source has for its '
                'special tokens; add them to it'
            )
        return self.made(given.tokens, like=source, added=given.tokenizer.get_added_tokens_decoder().values())


KIND = WordPiece()


make = KIND.made


def train(texts: Iterable[str], settings: Vocab) -> list[str]:
    """A vocabulary of `settings.size` entries, special tokens at 0-4, for any order of `texts`."""
    return train_from_counts(KIND.count_words(texts, settings.lowercase), settings)


def train_from_counts(counts: Mapping[str, int], settings: Vocab) -> list[str]:
    """The vocabulary of a word count, by id.

    The trainer breaks ties by the order in which it happens to meet characters, so it gets every single character
    (alone and with "##") in a fixed order before it starts: only the word counts matter then. Shorter than
    `settings.size` where no more pairs are seen `settings.min_frequency` times, counted as `within_trainer` says.
    Raises InputError without any word, ConfigError where characters alone need more than `settings.size` entries.
    """
    letters = alphabet(counts, settings.limit_alphabet)
    known = set(letters)
    usable = {w: n for w, n in counts.items() if len(w) <= MAX_WORD_CHARACTERS and known.issuperset(w)}
    if not usable:
        raise InputError('the corpus has no words to train a vocabulary on; check config.corpus.inputs')
    inside = set().union(*(w[1:] for w in usable))
    continued = [CONTINUATION + c for c in letters if c in inside]
    first = [*SPECIAL_TOKENS, *letters, *continued]
    if len(first) > settings.size:
        raise ConfigError(
            f'config.vocab.size: {settings.size} is less than the {len(first)} entries that single '
            'characters need; raise it, or lower config.vocab.limit_alphabet'
        )
    trainer = trainers.WordPieceTrainer(
        vocab_size=settings.size,
        min_frequency=settings.min_frequency,
        special_tokens=[*SPECIAL_TOKENS, *continued],
        initial_alphabet=letters,
        limit_alphabet=len(letters),
        continuing_subword_prefix=CONTINUATION,
        show_progress=False,
    )
    ids = train_model(models.WordPiece(unk_token=UNK), trainer, usable).get_vocab()
    merged = sorted(ids.keys() - set(first), key=ids.__getitem__)
    return first + merged


def other_words(tokenizer: tokenizers.Tokenizer, settings: Mapping[str, bool | None]) -> bool:
    """Whether BERT's normaliser with those settings, the tokenizer's where they say nothing, has other words."""
    normalizer = tokenizer.normalizer
    if not isinstance(normalizer, normalizers.BertNormalizer):
        return False
    own = {name: getattr(normalizer, name) for name in SWITCHES.values()}
    first, second = (KIND.words(without_vocabulary(**each)) for each in (own, {**own, **settings}))
    return any(first(text) != second(text) for text in PROBES)


def without_vocabulary(
    lowercase: bool, strip_accents: bool | None = None, handle_chinese_chars: bool = True
) -> tokenizers.Tokenizer:
    """A tokenizer with BERT's words, and no pieces for them."""
    tokenizer = tokenizers.Tokenizer(models.WordPiece(unk_token=UNK))
    tokenizer.normalizer = normalizers.BertNormalizer(
        clean_text=True,
        handle_chinese_chars=handle_chinese_chars,
        strip_accents=strip_accents,
        lowercase=lowercase,
    )
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    return tokenizer


def tokenizer_from_vocabulary(
    vocabulary: list[str],
    like: tokenizers.Tokenizer,
    added: Iterable[AddedToken] = (),
    roles: Roles = SPECIAL_TOKENS,
) -> tokenizers.Tokenizer:
    """BERT's tokenizer for a vocabulary in order of ids; [CLS] ... [SEP] around each text, no truncation.

    `like`: the tokenizer whose normaliser, pre-tokenizer, token between two texts and added tokens (those in the
    vocabulary) it has. `added`: tokens that are added as well, or with other flags. `roles`: its special tokens.
    """
    cls, sep = roles.cls, roles.sep
    ids = {token: i for i, token in enumerate(vocabulary)}
    tokenizer = tokenizers.Tokenizer(
        models.WordPiece(
            vocab=ids,
            unk_token=roles.unknown,
            continuing_subword_prefix=CONTINUATION,
            max_input_chars_per_word=MAX_WORD_CHARACTERS,
        )
    )
    tokenizer.normalizer, tokenizer.pre_tokenizer = like.normalizer, like.pre_tokenizer
    tokenizer.decoder = decoders.WordPiece(prefix=CONTINUATION)
    tokenizer.post_processor = processors.TemplateProcessing(
        single=f'{cls} $A {sep}',
        pair=f'{cls} $A {sep} {sep} $B {sep}' if _is_doubled(like) else f'{cls} $A {sep} $B:1 {sep}:1',
        special_tokens=[(cls, ids[cls]), (sep, ids[sep])],
    )
    tokenizer.add_special_tokens(list(roles))
    flags = {token.content: token for token in (*like.get_added_tokens_decoder().values(), *added)}
    tokenizer.add_tokens([token for content, token in flags.items() if content in ids])
    return tokenizer


def _is_doubled(tokenizer: tokenizers.Tokenizer) -> bool:
    """Whether two tokens stand between a pair of texts, as in RoBERTa and MPNet."""
    return len(tokenizer.encode('', '')) == 4


def _read_vocabulary(path: Path) -> list[str]:
    refuse_pointer(path)
    try:
        entries = path.read_bytes().decode('utf-8-sig').replace('\r\n', '\n').removesuffix('\n').split('\n')
    except UnicodeDecodeError as error:
        raise InputError(f'{path}: is not UTF-8 ({error}); save it as UTF-8') from error
    if len(set(entries)) != len(entries):
        twice, _ = Counter(entries).most_common(1)[0]
        line = entries.index(twice) + 1
        raise InputError(
            f'{path}: {twice!r} is there twice (lines {line} and {entries.index(twice, line) + 1}); rename the first '
            f'to {_unused(entries)}: transformers takes the last, and a line less would move every later id'
        )
    return entries


def _unused(entries: Collection[str]) -> str:
    """A name that is free, of those that stand for no text."""
    return next(name for n in itertools.count() if (name := f'[unused{n}]') not in entries)


def _check_special_tokens(
    known: Collection[str], path: Path, roles: Roles, said: Mapping[str, tuple[str, Path]]
) -> None:
    check_roles(known, roles, said)
    if missing := [token for token in roles if token not in known]:
        raise InputError(
            f'{path}: has no {", ".join(missing)}; a BERT vocabulary holds {" ".join(SPECIAL_TOKENS)}'
        )
