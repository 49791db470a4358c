"""BERT's tokenizers: built for a vocabulary, loaded from a folder, saved as one."""

import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import tokenizers
from tokenizers import decoders, models, normalizers, pre_tokenizers, processors

from bioptimus_jax.errors import InputError
from bioptimus_jax.files import atomic, read_json, write_json
from bioptimus_jax.vocab.tokenizer_files import EXTRA, NAMED, SWITCHES, listed_tokens, normalizer_settings

PAD, UNK, CLS, SEP, MASK = SPECIAL_TOKENS = tuple(NAMED.values())
CONTINUATION = '##'
MAX_WORD_CHARACTERS = 100  # BERT makes longer words [UNK], so they teach nothing
# Casing, accents, ideographs, controls, zero width, punctuation, long words: where two tokenizers would part.
PROBES = (
    '',
    'Aspirin (ASA), 5-FU & β-Catenin',
    'Naïve COX-2 µg/mL é\u0301',
    '白血病 \u200bIL\u00ad2 [MASK]',
    'ÅNGSTRÖM Straße İstanbul ΣΊΣΥΦΟΣ ǅ Ещё й ﬁbre Ｆｕｌｌ ½ Ⅷ',
    'x\u0000y\u0007z\ufffd a\tb\r\nc\u00a0d\u2003e\u3000f\u2028g\u0085h',
    'tumor白血病cell한국어日本ｶﾅ𠀀 กำ नमस्ते שָׁלוֹם مُحَمَّد',
    "don't e.g. p<0.05; α-syn_1 [a] {b} ~^`|+=$€£ “q” — … 100% #tag @me https://a.b/c?d",
    '[CLS] a [SEP] [PAD] [UNK] [mask] [MASK]. x[MASK]y  [ MASK ] ##a # #',
    'x' * 100 + ' ' + 'x' * 101 + ' 😀👩‍🔬 ☃\ufe0f',
)


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


def words_of(
    text: str, normalizer: normalizers.Normalizer | None, pre_tokenizer: pre_tokenizers.PreTokenizer | None
) -> list[str]:
    """The words of a tokenizer, each of which it cuts into pieces by itself, normalised."""
    normal = normalizer.normalize_str(text) if normalizer else text
    return [word for word, _ in pre_tokenizer.pre_tokenize_str(normal)] if pre_tokenizer else [normal]


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


def load_tokenizer(path: Path) -> tokenizers.Tokenizer:
    """The tokenizer of a folder (tokenizer.json, else vocab.txt) or a vocab.txt; truncation and padding off.

    Settings and added tokens of a folder are those of its other files too (tokenizer_files); of a vocab.txt the
    settings of the tokenizer_config.json beside it. Casing that nothing gives is that of the vocabulary: whether any
    token has a capital letter. Raises InputError for a missing or damaged file, and where a special token is missing.
    """
    path = Path(path)
    folder = path if path.is_dir() else path.parent
    ready = folder / 'tokenizer.json'
    if path.is_dir() and ready.is_file():
        try:
            tokenizer = tokenizers.Tokenizer.from_file(str(ready))
        except Exception as error:  # the library raises bare Exception
            raise InputError(f'{ready}: cannot be read as a tokenizer ({error}); fetch it again') from error
        tokenizer.no_truncation()
        tokenizer.no_padding()
        _check_special_tokens(tokenizer.get_vocab(), ready)
        said = {token['content']: token['id'] for token in (read_json(ready) or {}).get('added_tokens') or ()}
        _check_ids(tokenizer, said, ready)
    else:
        entries = _read_vocabulary(path / 'vocab.txt' if path.is_dir() else path)
        capitals = any(re.search('[A-Z]', e) for e in entries if not re.fullmatch(r'\[.*\]', e))
        settings: dict[str, Any] = {'lowercase': not capitals, **normalizer_settings(folder)}
        tokenizer = tokenizer_from_vocabulary(entries, settings['lowercase'], without_vocabulary(**settings))
    if path.is_dir():
        listed = listed_tokens(folder)
        for token, _ in listed:
            tokenizer.add_tokens([token])
        _check_ids(tokenizer, {t.content: i for t, i in listed if i is not None}, folder)
    return tokenizer


def _check_ids(tokenizer: tokenizers.Tokenizer, said: Mapping[str, int], where: Path) -> None:
    """The library numbers added tokens itself, behind the vocabulary and without a gap, whatever a file says."""
    for token, number in said.items():
        if tokenizer.token_to_id(token) != number:
            raise InputError(
                f'{where}: the added token {token!r} has the id {number}, but every reader gives it '
                f'{tokenizer.token_to_id(token)}, and so the row of another token; correct the id, or leave it out'
            )


def check_supported(tokenizer: tokenizers.Tokenizer, where: Path) -> None:
    """Raises InputError, naming the setting, for a tokenizer that is no WordPiece of words between spaces."""
    model = json.loads(tokenizer.to_str())['model']
    plain = dict(
        type='WordPiece',
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
    parts = tokenizer.normalizer, tokenizer.pre_tokenizer
    for text in PROBES:
        if words_of(text, *parts) != [word for part in text.split(' ') for word in words_of(part, *parts)]:
            raise InputError(
                f'{where}: normalizer or pre_tokenizer cuts {text[:40]!r} otherwise than its parts between spaces; '
                'only tokenizers whose words end at a space are supported'
            )
    for token in tokenizer.get_added_tokens_decoder().values():
        if token.content.splitlines() != [token.content]:
            raise InputError(
                f'{where}: the added token {token.content!r} has a line break; vocab.txt cannot hold it'
            )


def _read_vocabulary(path: Path) -> list[str]:
    if not path.is_file():
        raise InputError(
            f'{path}: no such file; a vocabulary is a vocab.txt, or a folder with it or with tokenizer.json'
        )
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


def save_tokenizer(tokenizer: tokenizers.Tokenizer, folder: Path, model_max_length: int) -> None:
    """Write vocab.txt, tokenizer.json and tokenizer_config.json as transformers' AutoTokenizer reads them.

    Of BERT's own tokenizer transformers reads the settings in tokenizer_config.json; any other it takes from
    tokenizer.json as it stands.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with atomic(folder / 'vocab.txt', 'wb') as file:
        file.write(''.join(token + '\n' for token in vocabulary(tokenizer)).encode('utf-8'))
    with atomic(folder / 'tokenizer.json') as file:
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
    write_json(folder / 'tokenizer_config.json', settings)


def vocabulary(tokenizer: tokenizers.Tokenizer) -> list[str]:
    """The tokens in order of their ids. Raises InputError where an id is missing."""
    ids = tokenizer.get_vocab()
    tokens = sorted(ids, key=ids.__getitem__)
    if tokens and ids[tokens[-1]] != len(tokens) - 1:
        gap = next(i for i, token in enumerate(tokens) if ids[token] != i)
        raise InputError(
            f'the vocabulary has no single token with id {gap}; ids must be 0 .. {len(tokens) - 1}'
        )
    return tokens


def is_lowercase(tokenizer: tokenizers.Tokenizer) -> bool:
    """Whether the tokenizer lowers capitals before it looks anything up."""
    return tokenizer.normalizer is not None and tokenizer.normalizer.normalize_str('A') == 'a'


def spelled(token: str) -> str:
    """The characters that a token stands for: without the "##" of a continuation."""
    return token[len(CONTINUATION) :] if token.startswith(CONTINUATION) and token != CONTINUATION else token
