"""BERT's tokenizers: words apart from punctuation, and pieces that go on inside a word marked with "##"."""

import json
import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import Any

import tokenizers
from tokenizers import decoders, models, normalizers, pre_tokenizers, processors

from bioptimus_jax.errors import ConfigError, InputError
from bioptimus_jax.files import atomic, read_json, write_json
from bioptimus_jax.schema import Vocab
from bioptimus_jax.vocab.probes import PROBES
from bioptimus_jax.vocab.subwords import READY, SETTINGS, Kind, Roles, Subwords
from bioptimus_jax.vocab.tokenizer_files import EXTRA, NAMED, SWITCHES, listed_tokens, normalizer_settings
from bioptimus_jax.vocab.training import CONTINUATION, MAX_WORD_CHARACTERS, train_from_counts

PAD, UNK, CLS, SEP, MASK = SPECIAL_TOKENS = tuple(NAMED.values())
TYPE = 'WordPiece'
VOCABULARY = 'vocab.txt'


class WordPiece(Kind):
    """The kind of BERT's tokenizers."""

    files = (VOCABULARY,)

    def holds(self, path: Path, described: Mapping[str, Any]) -> bool:
        if path.is_dir() and (path / READY).is_file():
            model = described.get('model')
            return isinstance(model, dict) and model.get('type', TYPE) == TYPE
        return path.is_file() or (path / VOCABULARY).is_file()

    def load(self, path: Path) -> Subwords:
        """The tokenizer of a folder (tokenizer.json, else vocab.txt) or a vocab.txt; truncation and padding off.

        Settings and added tokens of a folder are those of its other files too (tokenizer_files); of a vocab.txt the
        settings of the tokenizer_config.json beside it. Casing that nothing gives is that of the vocabulary: whether
        any token has a capital letter. Raises InputError for a damaged file, and where a special token is missing.
        """
        folder = path if path.is_dir() else path.parent
        ready = folder / READY
        if path.is_dir() and ready.is_file():
            try:
                tokenizer = tokenizers.Tokenizer.from_file(str(ready))
            except Exception as error:  # the library raises bare Exception
                raise InputError(f'{ready}: is no tokenizer that can be read ({error})') from error
            tokenizer.no_truncation()
            tokenizer.no_padding()
            _check_special_tokens(tokenizer.get_vocab(), ready)
            added = (read_json(ready) or {}).get('added_tokens') or ()
            _check_ids(tokenizer, {token['content']: token['id'] for token in added}, ready)
        else:
            entries = _read_vocabulary(path / VOCABULARY if path.is_dir() else path)
            capitals = any(re.search('[A-Z]', e) for e in entries if not re.fullmatch(r'\[.*\]', e))
            settings: dict[str, Any] = {'lowercase': not capitals, **normalizer_settings(folder)}
            tokenizer = tokenizer_from_vocabulary(
                entries, settings['lowercase'], without_vocabulary(**settings)
            )
        if path.is_dir():
            listed = listed_tokens(folder)
            for token, _ in listed:
                tokenizer.add_tokens([token])
            _check_ids(tokenizer, {t.content: i for t, i in listed if i is not None}, folder)
        return Subwords.of(self, tokenizer)

    def save(self, subwords: Subwords, folder: Path, model_max_length: int) -> None:
        """Write vocab.txt, tokenizer.json and tokenizer_config.json as transformers' AutoTokenizer reads them.

        Of BERT's own tokenizer transformers reads the settings in tokenizer_config.json; any other it takes from
        tokenizer.json as it stands.
        """
        tokenizer = subwords.tokenizer
        folder.mkdir(parents=True, exist_ok=True)
        with atomic(folder / VOCABULARY, 'wb') as file:
            file.write(''.join(token + '\n' for token in subwords.tokens).encode('utf-8'))
        with atomic(folder / READY) as file:
            file.write(tokenizer.to_str(pretty=True))
        normal = tokenizer.normalizer
        own = isinstance(normal, normalizers.BertNormalizer) and normal.clean_text
        if own and isinstance(tokenizer.pre_tokenizer, pre_tokenizers.BertPreTokenizer):
            settings: dict[str, Any] = {'tokenizer_class': 'BertTokenizer'}
            for key in ('do_lower_case', 'tokenize_chinese_chars', 'strip_accents'):
                settings[key] = getattr(normal, SWITCHES[key])
        else:
            settings = {'tokenizer_class': 'PreTrainedTokenizerFast'}
        settings |= {'model_max_length': model_max_length, **NAMED}
        added = tokenizer.get_added_tokens_decoder().values()
        if extra := [t.content for t in added if t.special and t.content not in SPECIAL_TOKENS]:
            settings[EXTRA[0]] = extra
        write_json(folder / SETTINGS, settings)

    def check(self, subwords: Subwords, where: Path) -> None:
        """Raises InputError, naming the setting, for a tokenizer that is no WordPiece of words between spaces."""
        tokenizer = subwords.tokenizer
        model = json.loads(tokenizer.to_str())['model']
        plain = dict(
            type=TYPE,
            unk_token=UNK,
            continuing_subword_prefix=CONTINUATION,
            max_input_chars_per_word=MAX_WORD_CHARACTERS,
        )
        for name, value in plain.items():
            if model.get(name) != value:
                raise InputError(
                    f'{where}: {name} of the tokenizer is {model.get(name)!r}; only {value!r} is supported'
                )
        around = tokenizer.encode('', '')
        if (around.tokens, around.type_ids) != ([CLS, SEP, SEP], [0, 0, 1]):
            raise InputError(
                f'{where}: post_processor puts {" ".join(around.tokens) or "nothing"} around a pair of texts; '
                f'only {CLS} ... {SEP} ... {SEP} is supported'
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

    def roles(self, tokenizer: tokenizers.Tokenizer) -> Roles:
        return Roles(PAD, UNK, CLS, SEP, MASK)

    def text(self, token: str) -> str:
        return token if self.begins(token) else token[len(CONTINUATION) :]

    def begins(self, token: str) -> bool:
        return not token.startswith(CONTINUATION) or token == CONTINUATION

    def reserved(self, token: str) -> bool:
        return token.startswith('[unused')

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

    def respellable(self, subwords: Subwords) -> set[int]:
        """Ids of tokens of two characters or more each of which is a token as well: hidden, they are spelled by those.

        A character is never in it, so that no word becomes unknown for what was hidden; nor is an added token, which is
        found before there are pieces.
        """
        ids = subwords.tokenizer.get_vocab(with_added_tokens=False)
        added = {token.content for token in subwords.tokenizer.get_added_tokens_decoder().values()}
        usable = set()
        for token, number in ids.items():
            text, begins = self.text(token), self.begins(token)
            first, inside = (text[:1], text[1:]) if begins else ('', text)
            if len(text) > 1 and token not in added:
                characters = (*first, *(CONTINUATION + c for c in inside))
                if all(c in ids for c in characters):
                    usable.add(number)
        return usable

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
        """See `training.train_from_counts`."""
        return make(train_from_counts(counts, settings), settings.lowercase, source)

    def append(self, source: Subwords, trained: Subwords) -> Subwords:
        known = set(source.tokens)
        return make([*source.tokens, *(t for t in trained.tokens if t not in known)], True, source)

    def fit(self, given: Subwords, source: Subwords, file: Path) -> Subwords:
        said = normalizer_settings(file.parent)
        if said and other_words(source.tokenizer, said):
            listed = ', '.join(f'{key} {said[name]}' for key, name in SWITCHES.items() if name in said)
            raise ConfigError(
                f'config.vocab.file: {file.parent / SETTINGS} says {listed}, and the tokenizer of the source '
                'is another; take a vocabulary with its settings, or correct that file'
            )
        return make(given.tokens, True, source)


KIND = WordPiece()


def make(tokens: list[str], lowercase: bool, like: Subwords | None = None) -> Subwords:
    """BERT's tokenizer of these tokens, in order of ids, in that casing or with the words of another.

    See `tokenizer_from_vocabulary`.
    """
    return Subwords.of(KIND, tokenizer_from_vocabulary(tokens, lowercase, like.tokenizer if like else None))


def train(texts: Iterable[str], settings: Vocab) -> list[str]:
    """A vocabulary of `settings.size` entries, special tokens at 0-4, for any order of `texts`."""
    return train_from_counts(KIND.count_words(texts, settings.lowercase), settings)


def other_words(tokenizer: tokenizers.Tokenizer, settings: Mapping[str, Any]) -> bool:
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
    lowercase: bool,
    like: tokenizers.Tokenizer | None = None,
) -> tokenizers.Tokenizer:
    """BERT's tokenizer for a vocabulary in order of ids; [CLS] ... [SEP] around each text, no truncation.

    `like`: the tokenizer whose normaliser, pre-tokenizer and added tokens (those in the vocabulary) it has, in place
    of BERT's own in that casing.
    """
    ids = {token: i for i, token in enumerate(vocabulary)}
    tokenizer = tokenizers.Tokenizer(
        models.WordPiece(
            vocab=ids,
            unk_token=UNK,
            continuing_subword_prefix=CONTINUATION,
            max_input_chars_per_word=MAX_WORD_CHARACTERS,
        )
    )
    like = like or without_vocabulary(lowercase)
    tokenizer.normalizer, tokenizer.pre_tokenizer = like.normalizer, like.pre_tokenizer
    tokenizer.decoder = decoders.WordPiece(prefix=CONTINUATION)
    tokenizer.post_processor = processors.TemplateProcessing(
        single=f'{CLS} $A {SEP}',
        pair=f'{CLS} $A {SEP} $B:1 {SEP}:1',
        special_tokens=[(CLS, ids[CLS]), (SEP, ids[SEP])],
    )
    tokenizer.add_special_tokens(list(SPECIAL_TOKENS))
    tokenizer.add_tokens([t for t in like.get_added_tokens_decoder().values() if t.content in ids])
    return tokenizer


def _check_ids(tokenizer: tokenizers.Tokenizer, said: Mapping[str, int], where: Path) -> None:
    """The library numbers added tokens itself, behind the vocabulary and without a gap, whatever a file says."""
    for token, number in said.items():
        if tokenizer.token_to_id(token) != number:
            raise InputError(
                f'{where}: the added token {token!r} has the id {number}, but every reader gives it '
                f'{tokenizer.token_to_id(token)}, and so the row of another token; correct the id, or leave it out'
            )


def _read_vocabulary(path: Path) -> list[str]:
    try:
        entries = path.read_bytes().decode('utf-8').replace('\r\n', '\n').removesuffix('\n').split('\n')
    except UnicodeDecodeError as error:
        raise InputError(f'{path}: is not UTF-8 ({error}); save it as UTF-8') from error
    if len(set(entries)) != len(entries):
        twice, _ = Counter(entries).most_common(1)[0]
        raise InputError(
            f'{path}: {twice!r} stands there twice (line {entries.index(twice) + 1}); remove one'
        )
    _check_special_tokens(entries, path)
    return entries


def _check_special_tokens(known: Iterable[str], path: Path) -> None:
    missing = [token for token in SPECIAL_TOKENS if token not in known]
    if missing:
        raise InputError(
            f'{path}: has no {", ".join(missing)}; a BERT vocabulary holds {" ".join(SPECIAL_TOKENS)}'
        )
