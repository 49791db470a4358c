"""WordPiece vocabularies and BERT tokenizers: trained, built, loaded, saved.

The trainer of `tokenizers` breaks ties by the order in which it happens to meet characters, so two runs on
the same text differ in most ids. Here the words are counted first, and the trainer gets every single
character (alone and with "##") in a fixed order before it starts: only the word counts matter then.
"""

import itertools
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import tokenizers
from tokenizers import decoders, models, normalizers, pre_tokenizers, processors, trainers

from bioptimus_jax.errors import ConfigError, InputError
from bioptimus_jax.files import atomic, read_json, write_json
from bioptimus_jax.schema import Vocab

PAD, UNK, CLS, SEP, MASK = SPECIAL_TOKENS = ('[PAD]', '[UNK]', '[CLS]', '[SEP]', '[MASK]')
CONTINUATION = '##'
MAX_WORD_CHARACTERS = 100  # BERT makes longer words [UNK], so they teach nothing
WORDS_PER_TEXT = 10_000
LARGEST_PAIR_COUNT = 2**31 - 1
"""The trainer of `tokenizers` sums in 32 bits, and beyond them drops the commonest pairs in silence (issue 2058)."""


def train(texts: Iterable[str], settings: Vocab) -> list[str]:
    """A WordPiece vocabulary of `settings.size` entries, special tokens at 0-4, for any order of `texts`."""
    return train_from_counts(count_words(texts, settings.lowercase), settings)


def count_words(texts: Iterable[str], lowercase: bool) -> Counter[str]:
    """How often each of BERT's words (normalised; punctuation apart) occurs. Counts of parts add up."""
    raw: Counter[str] = Counter()
    for text in texts:
        raw.update(text.replace('\n', ' ').split(' '))
    normalizer, pre_tokenizer = _normalizer(lowercase), pre_tokenizers.BertPreTokenizer()
    words: Counter[str] = Counter()
    for piece, count in raw.items():
        for word, _ in pre_tokenizer.pre_tokenize_str(normalizer.normalize_str(piece)):
            words[word] += count
    return words


def train_from_counts(counts: Mapping[str, int], settings: Vocab) -> list[str]:
    """The vocabulary of a word count, by id.

    Shorter than `settings.size` where no more pairs are seen `settings.min_frequency` times, counted as
    `within_trainer` says. Raises InputError without any word, ConfigError where characters alone need more than
    `settings.size` entries.
    """
    alphabet = _alphabet(counts, settings.limit_alphabet)
    known = set(alphabet)
    usable = {w: n for w, n in counts.items() if len(w) <= MAX_WORD_CHARACTERS and known.issuperset(w)}
    if not usable:
        raise InputError('the corpus has no words to train a vocabulary on; check config.corpus.inputs')
    inside = set().union(*(w[1:] for w in usable))
    continued = [CONTINUATION + c for c in alphabet if c in inside]
    least = len(SPECIAL_TOKENS) + len(alphabet) + len(continued)
    if least > settings.size:
        raise ConfigError(
            f'config.vocab.size: {settings.size} is less than the {least} entries that single '
            'characters need; raise it, or lower config.vocab.limit_alphabet'
        )
    trainer = trainers.WordPieceTrainer(
        vocab_size=settings.size,
        min_frequency=settings.min_frequency,
        special_tokens=[*SPECIAL_TOKENS, *continued],
        initial_alphabet=alphabet,
        limit_alphabet=len(alphabet),
        continuing_subword_prefix=CONTINUATION,
        show_progress=False,
    )
    tokenizer = tokenizers.Tokenizer(models.WordPiece(unk_token=UNK))
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    tokenizer.train_from_iterator(_texts(within_trainer(usable, LARGEST_PAIR_COUNT)), trainer)
    ids = tokenizer.get_vocab()
    first = [*SPECIAL_TOKENS, *alphabet, *continued]
    merged = sorted(ids.keys() - set(first), key=ids.__getitem__)
    return first + merged


def within_trainer(counts: dict[str, int], largest: int) -> dict[str, int]:
    """The counts; or, where a sum of the trainer could exceed `largest`, all divided by one whole number, rounded down.

    Two pieces side by side meet between two characters, and in what the trainer counts for a pair every such place is
    in once, whether it has merged the pair there or not. So no pair of pieces is ever counted more often than the two
    characters where it meets stand side by side in the words, and those are counted here.
    """
    pairs: Counter[tuple[str, str]] = Counter()
    for word, count in counts.items():
        for pair in itertools.pairwise(word):
            pairs[pair] += count
    divisor = -(-max(pairs.values(), default=0) // largest)
    return counts if divisor <= 1 else {w: n // divisor for w, n in counts.items() if n >= divisor}


def _alphabet(counts: Mapping[str, int], limit: int) -> list[str]:
    seen: Counter[str] = Counter()
    for word, count in counts.items():
        for character in word:
            seen[character] += count
    return sorted(sorted(seen, key=lambda c: (-seen[c], c))[:limit])


def _texts(counts: Mapping[str, int]) -> Iterator[str]:
    words = itertools.chain.from_iterable(itertools.repeat(w, counts[w]) for w in sorted(counts))
    while batch := list(itertools.islice(words, WORDS_PER_TEXT)):
        yield ' '.join(batch)


def _normalizer(lowercase: bool) -> normalizers.Normalizer:
    return normalizers.BertNormalizer(
        clean_text=True, handle_chinese_chars=True, strip_accents=None, lowercase=lowercase
    )


def tokenizer_from_vocabulary(vocabulary: list[str], lowercase: bool) -> tokenizers.Tokenizer:
    """BERT's tokenizer for a vocabulary in order of ids; [CLS] ... [SEP] around each text, no truncation."""
    ids = {token: i for i, token in enumerate(vocabulary)}
    tokenizer = tokenizers.Tokenizer(
        models.WordPiece(
            vocab=ids,
            unk_token=UNK,
            continuing_subword_prefix=CONTINUATION,
            max_input_chars_per_word=MAX_WORD_CHARACTERS,
        )
    )
    tokenizer.normalizer = _normalizer(lowercase)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = decoders.WordPiece(prefix=CONTINUATION)
    tokenizer.post_processor = processors.TemplateProcessing(
        single=f'{CLS} $A {SEP}',
        pair=f'{CLS} $A {SEP} $B:1 {SEP}:1',
        special_tokens=[(CLS, ids[CLS]), (SEP, ids[SEP])],
    )
    tokenizer.add_special_tokens(list(SPECIAL_TOKENS))
    return tokenizer


def load_tokenizer(path: Path) -> tokenizers.Tokenizer:
    """The tokenizer of a folder (tokenizer.json, else vocab.txt) or a vocab.txt; truncation and padding off.

    The casing of a vocab.txt comes from the tokenizer_config.json beside it, else from whether any token has
    a capital letter. Raises InputError for a missing or damaged file, and where a special token is missing.
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
        return tokenizer
    entries = _read_vocabulary(path / 'vocab.txt' if path.is_dir() else path)
    settings = read_json(folder / 'tokenizer_config.json') or {}
    capitals = any(re.search('[A-Z]', e) for e in entries if not re.fullmatch(r'\[.*\]', e))
    return tokenizer_from_vocabulary(entries, settings.get('do_lower_case', not capitals))


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
    """Write vocab.txt, tokenizer.json and tokenizer_config.json as transformers' AutoTokenizer reads them."""
    folder.mkdir(parents=True, exist_ok=True)
    with atomic(folder / 'vocab.txt', 'wb') as file:
        file.write(''.join(token + '\n' for token in vocabulary(tokenizer)).encode('utf-8'))
    with atomic(folder / 'tokenizer.json') as file:
        file.write(tokenizer.to_str(pretty=True))
    names = dict(pad_token=PAD, unk_token=UNK, cls_token=CLS, sep_token=SEP, mask_token=MASK)
    settings = {
        'tokenizer_class': 'BertTokenizer',
        'do_lower_case': is_lowercase(tokenizer),
        'tokenize_chinese_chars': True,
        'strip_accents': None,
        'model_max_length': model_max_length,
        **names,
    }
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
