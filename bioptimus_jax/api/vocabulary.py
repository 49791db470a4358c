"""Vocabularies by themselves: trained on texts, and put in the place of a model's own, without any run."""

import warnings
from collections.abc import Iterable
from typing import TYPE_CHECKING

from bioptimus_jax.api.grafting import surgery_on
from bioptimus_jax.api.objects import (
    PLACE,
    Keys,
    ModelOrFolder,
    Texts,
    TokenizerOrFolder,
    experiment,
    habits_of,
    keys_of,
    subwords_of,
    texts_of,
    tokenizer_in,
    tokenizer_place,
    undisturbed,
    whole_number,
    workplace,
)
from bioptimus_jax.api.words import frequent, present, present_line, with_words
from bioptimus_jax.errors import ConfigError, InputError
from bioptimus_jax.tokenizer.config import TOKENIZERS
from bioptimus_jax.tokenizer.subwords import READY
from bioptimus_jax.vocab import agreement
from bioptimus_jax.vocab.build import trained

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase


def train_vocabulary(
    texts: Texts,
    like: 'TokenizerOrFolder | None' = None,
    *,
    size: int = 30522,
    append: bool = False,
    keys: Keys | None = None,
) -> 'PreTrainedTokenizerBase':
    """Train a tokenizer on texts; returns a fast tokenizer of transformers.

    `like`: a tokenizer; the new one has its kind, casing, words, special tokens, sides and longest text.
    Without it, uncased WordPiece, or what `keys` say of the section `vocab` (`{'vocab.tokenizer': 'bytelevel',
    'vocab.lowercase': False}`).
    `size`: entries at most, with the special tokens. `append`: the entries of `like` stay, with their ids, and what a
    vocabulary of that size adds comes after them. Only the counts of words decide, not their order.

    Raises ConfigError for an invalid size or key, InputError for a tokenizer that cannot be kept, or no words.
    """
    if append and like is None:
        raise ConfigError('append: needs `like`, the tokenizer to append to')
    with workplace() as place, undisturbed():
        source = None if like is None else subwords_of(place / 'like', like)
        asked = {'vocab.size': size, 'vocab.kind': 'append' if append else 'train'}
        settings = experiment(keys or {}, asked, keys_of(source) if source else {}).vocab
        words_of = source.kind if source else TOKENIZERS.load(settings.tokenizer)
        like_words = source.reader if source else None
        counts = words_of.count_words(texts_of(texts), settings.lowercase, like_words)
        if not counts:
            raise InputError('texts: hold no word to train a vocabulary on')
        made = trained(settings, counts, source, lambda line: None)
        habits = {} if like is None else habits_of(like)
        # transformers has int(1e30) for no limit at all.
        made.save(place / 'new', min(habits.get('model_max_length', 512), 10**9))
        agreement.check_written(place / 'new', made)
        return tokenizer_in(place / 'new', habits)


def replace_vocabulary(
    model: ModelOrFolder,
    tokenizer: 'TokenizerOrFolder | None',
    new: TokenizerOrFolder,
    sentences: Texts = (),
    *,
    strategy: str = '',
    seed: int = 0,
    keys: Keys | None = None,
    progress: bool | None = None,
) -> tuple['PreTrainedModel', 'PreTrainedTokenizerBase']:
    """Give a model another vocabulary: new model and new tokenizer, as objects; what is given stays as it is.

    `model`: of transformers with `tokenizer`, or a Hugging Face folder or hub id with None. `new`: a tokenizer, its
    folder, file or hub id. Tokens that both have keep their rows and biases. All other weights, the class, head, type
    and device stay those of the model. A UserWarning lists new entries that no text can have.

    `strategy`: how rows of new tokens are made (config.surgery.strategy, paper, section 3). By default they are read
    in the `sentences`, with their maps and scales; without sentences they are predicted from characters.
    `keys`: other values of the sections `surgery` and `contexts`, as `{'contexts.per_token': 50}`. `progress`: a bar;
    by default on a terminal and in a notebook.

    Raises ConfigError for settings that contradict each other, InputError for a model or tokenizer that cannot be
    kept.
    """
    with surgery_on(model, tokenizer, strategy, seed, keys, progress) as surgery:
        if isinstance(new, PLACE):
            file = tokenizer_place(new)
        elif hasattr(new, 'save_pretrained'):
            new.save_pretrained(surgery.place / 'new')
            file = surgery.place / 'new' / READY
        else:
            raise ConfigError(
                f'new: got {type(new).__name__}; give a tokenizer of transformers, its folder, file or hub id '
                '(bx.add_words adds words)'
            )
        return surgery.give(file, list(texts_of(sentences, 'sentences')), habits_of(new))


def add_words(
    model: ModelOrFolder,
    tokenizer: 'TokenizerOrFolder | None',
    words: Iterable[str] | None = None,
    texts: Texts = (),
    *,
    most: int = 1000,
    strategy: str = '',
    seed: int = 0,
    keys: Keys | None = None,
    progress: bool | None = None,
) -> tuple['PreTrainedModel', 'PreTrainedTokenizerBase']:
    """Add words to a model's vocabulary, each as one piece: new model and new tokenizer, as objects.

    The tokens that are there stay, with their numbers, rows and biases; words come behind them. `words`: those to add;
    a UserWarning names what is there already. Without them the `most` frequent words of the `texts` that the tokenizer
    cuts, without punctuation around them, seen twice at least (`vocab.min_frequency`). A byte-level tokenizer has a
    word as one piece where a space is before it, so not in "(aspirin)".

    Rows of the words are read in the `texts`, or predicted from characters where there are none; `model`, `strategy`,
    `keys` and `progress`: as of `replace_vocabulary`.

    Raises ConfigError for settings that contradict each other, InputError for a model or tokenizer that cannot be
    kept, for a word that the tokenizer cuts, and for texts without a word to add.
    """
    with surgery_on(model, tokenizer, strategy, seed, keys, progress) as surgery:
        if isinstance(words, str | bytes):
            raise ConfigError('words: is one text; give a list of words')
        known, read = subwords_of(surgery.source, surgery.source), list(texts_of(texts))
        if words is None:
            if not read:
                raise ConfigError('words: are missing; give some, or texts to choose them from')
            counts = known.kind.count_words(read, known.lowercase, known.reader)
            fewest = experiment(keys or {}).vocab.min_frequency
            made = with_words(known, frequent(known, counts, whole_number('most', most, 1), fewest))
        else:
            made = with_words(known, asked := list(words))
            if there := present(known, asked):
                warnings.warn(present_line(there, len(asked)), stacklevel=2)
        made.save(surgery.place / 'new', surgery.positions)
        return surgery.give(surgery.place / 'new' / READY, read, {})
