"""Vocabularies by themselves: trained on texts, and put in the place of a model's own, without any run."""

import dataclasses
import warnings
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bioptimus_jax.api.objects import (
    OF_TEXTS,
    PLACE,
    Keys,
    ModelOrFolder,
    TokenizerOrFolder,
    as_folder,
    experiment,
    habits_of,
    keys_of,
    model_in,
    own_model,
    subwords_of,
    texts_of,
    tokenizer_in,
    undisturbed,
    workplace,
    write_texts,
)
from bioptimus_jax.errors import ConfigError, InputError
from bioptimus_jax.experiment.stages import STAGES
from bioptimus_jax.run.execute import execute
from bioptimus_jax.run.folder import Run
from bioptimus_jax.run.stage import Stage
from bioptimus_jax.surgery.config import Surgery
from bioptimus_jax.tokenizer.config import TOKENIZERS
from bioptimus_jax.tokenizer.subwords import READY, Subwords
from bioptimus_jax.vocab import agreement, frequency
from bioptimus_jax.vocab.build import (
    tokenizers_of,
    trained,
    unreached_line,
    unreached_tokens,
    write_new_tokens,
)

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

IN_CONTEXTS, ALONE = 'contextualized', 'spelled'
"""Strategies where none is named, with sentences and without."""


def train_vocabulary(
    texts: Iterable[str],
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
    new: 'TokenizerOrFolder | Sequence[str]',
    sentences: Iterable[str] = (),
    *,
    strategy: str = '',
    seed: int = 0,
    keys: Keys | None = None,
) -> tuple['PreTrainedModel', 'PreTrainedTokenizerBase']:
    """Give a model another vocabulary: new model and new tokenizer, as objects; what is given stays as it is.

    `model`: of transformers with `tokenizer`, or a Hugging Face folder with None. `new`: a tokenizer, its folder or
    file, or a list of words that are added to the present one, each as one piece (of a byte-level tokenizer where a
    space is before it, so not in "(aspirin)"). Tokens that both have keep their rows and biases. All other weights,
    the class, head, type and device stay those of the model. A UserWarning lists new entries that no text can have.

    `strategy`: how rows of new tokens are made (config.surgery.strategy, paper, section 3). By default they are read
    in the `sentences`, with their maps and scales; without sentences they are predicted from characters.
    `keys`: other values of the sections `surgery` and `contexts`, as `{'contexts.per_token': 50}`.

    Raises ConfigError for settings that contradict each other, InputError for a model or tokenizer that cannot be
    kept, or for a word that the tokenizer cuts.
    """
    with workplace() as place, undisturbed():
        source = as_folder(place / 'model', model, tokenizer)
        like = own_model(source) if isinstance(model, PLACE) else model
        texts = list(texts_of(sentences, 'sentences'))
        write_texts(place / 'sentences.jsonl', texts)
        file = _vocabulary_file(place / 'new', new, source)
        known, positions = subwords_of(place, file), _positions(source)
        habits = _habits(source, new, positions)
        asked = {
            'seed': seed,
            'source.path': source,
            'surgery.strategy': strategy or (IN_CONTEXTS if texts else ALONE),
            'vocab.kind': 'file',
            'vocab.file': file,
            **keys_of(known),
            'rows.max_document_pieces': min(positions, 512),
            'corpus.inputs': (place / 'sentences.jsonl',),
            'corpus.heldout_fraction': 0.0,
            'runtime.workers': 1,
        }
        run = Run(place / 'run', experiment(OF_TEXTS, asked, keys or {}), quiet=True)
        _check(run.config.surgery, source, known, bool(texts))
        surgery = run.config.surgery
        corpus = surgery.reads_contexts or surgery.reads_corpus
        for stage in (
            *[STAGES['corpus']] * corpus,
            _vocabulary_stage(source, texts),
            *[STAGES['contexts']] * surgery.reads_contexts,
            STAGES['surgery'],
        ):
            execute(run, stage)
        made = run.folder('surgery') / 'model'
        return model_in(made, like), tokenizer_in(made, habits)


def _vocabulary_file(folder: Path, new: Any, source: Path) -> Path:
    """Where the new vocabulary is; words are added to that of the source."""
    if isinstance(new, PLACE):
        return Path(new)
    if hasattr(new, 'save_pretrained'):
        new.save_pretrained(folder)
        return folder / READY
    known = subwords_of(source, source)
    words_in, words = known.kind.words(known.reader), []
    for number, word in enumerate(new):
        if not isinstance(word, str):
            raise ConfigError(f'new: number {number} is not a word, but {type(word).__name__}')
        if is_one_piece(known, word):
            continue  # there is nothing to add
        found = words_in(f' {word}' if known.kind.carries_space else word)
        if len(found) != 1 or len(word.split()) != 1:
            shown = ', '.join(repr(part.strip()) for part in found) or 'nothing'
            raise InputError(
                f'new: {word!r} is not a single word of the tokenizer, which reads {shown}; leave it out'
            )
        words += found
    made = known.kind.with_words(known, words)
    for word in new:
        if not is_one_piece(made, word):
            raise InputError(f'new: {word!r} cannot be one piece: {_hindrance(made, word)}; leave it out')
    made.save(folder, _positions(source))
    return folder / READY


def is_one_piece(known: Subwords, word: str) -> bool:
    """Whether a word is a single piece where it follows a space, and no unknown one."""
    ids = known.encode_words([word])[0].ids
    return len(ids) == 1 and ids[0] != known.unknown


def _hindrance(known: Subwords, word: str) -> str:
    """Why a word with an entry of its own is not one piece."""
    ids = known.encode_words([word])[0].ids
    added = known.tokenizer.get_added_tokens_decoder()
    for number in ids:
        if number in added and number != known.unknown:
            return f'{added[number].content!r}, a token that was added, is taken out of a text first'
    if ids == [known.unknown]:
        return f'it has {len(word)} characters, and the tokenizer reads no word of that length'
    return f'the tokenizer reads {", ".join(known.text(i) for i in ids)}'


def _habits(source: Path, new: Any, positions: int) -> dict[str, Any]:
    """What the new tokenizer does beside cutting texts: as `new`, or as that of the source where that says nothing.

    The longest text is the shortest that one of them, or the number of positions, allows.
    """
    given = isinstance(new, PLACE) or hasattr(new, 'save_pretrained')
    several = [habits_of(source), habits_of(new) if given else {}]
    longest = min(positions, *(each.get('model_max_length', positions) for each in several))
    return {**several[0], **several[1], 'model_max_length': longest}


def _positions(source: Path) -> int:
    """The longest text that the model of a folder reads, in pieces."""
    from bioptimus_jax.model.tensors import read_architecture  # late: imports jax

    return read_architecture(source).positions


def _check(surgery: Surgery, source: Path, known: Subwords, sentences: bool) -> None:
    old = subwords_of(source, source)
    if surgery.initialisation.rows is None:
        raise ConfigError(f'strategy: {surgery.strategy} makes no rows for a new vocabulary; choose another')
    by_itself = surgery.initialisation.contexts or surgery.reads_corpus
    if (by_itself or surgery.reads_contexts) and not sentences:
        reader = surgery.strategy if by_itself else 'surgery.fit_steps'
        raise ConfigError(
            f'sentences: are missing, and {reader} reads new tokens in them; give some, or strategy={ALONE!r}'
            f'{" without surgery.fit_steps" * bool(surgery.fit_steps)}'
        )
    if old.lowercase != known.lowercase:
        cased = {True: 'uncased', False: 'cased'}
        raise InputError(
            f'new: is {cased[known.lowercase]}, but the tokenizer of the model {cased[old.lowercase]}; take a '
            'vocabulary of its casing'
        )


def _vocabulary_stage(source: Path, texts: Sequence[str]) -> Stage:
    """Stage vocab for a vocabulary that is given; words are counted in the texts, if there are any."""

    def build(run: Run, folder: Path) -> dict[str, Any]:
        old, known = tokenizers_of(run.config, source)
        assert known is not None, 'vocab.kind=file'
        known.save(folder, _positions(source))
        agreement.check_written(folder, known)
        if texts:
            counts = known.kind.count_words(texts, known.lowercase, known.reader)
            frequency.write(folder, counts, {}, 1.0)
        if unreached := unreached_tokens(known, old):
            warnings.warn(unreached_line('new', unreached), stacklevel=2)
        return {'new': len(write_new_tokens(folder, known, old))}

    return dataclasses.replace(STAGES['vocab'], needs=lambda run: (), external=lambda e: [], build=build)
