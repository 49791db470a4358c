"""The masking of a phase of the curriculum for batches of transformers: in numpy, so that workers may be forked.

L: pieces of a row, B: rows of a batch. The same rule as `pretrain.masking`, which draws other random numbers: jax would
take the memory of the accelerator that the batch is for, and does not survive a fork.
"""

import functools
import hashlib
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, TypedDict, Unpack, cast

import numpy as np

from bioptimus_jax.api.objects import experiment, subwords_of, whole_number, workplace
from bioptimus_jax.api.packing import Batch, ModelInputs, Packing, packing_for, tensors_of
from bioptimus_jax.api.trainers import Moment, moment
from bioptimus_jax.errors import ConfigError, InputError
from bioptimus_jax.pretrain.config import Phase
from bioptimus_jax.pretrain.unit_weights import LEAST as LEAST_WEIGHT
from bioptimus_jax.pretrain.unit_weights import Weighing
from bioptimus_jax.pretrain.units import apart, begins_of, limited_starts, limits, overshoot, strategy_of
from bioptimus_jax.rows.words import WORD_RULES, starts_of
from bioptimus_jax.surgery.rows import seeded
from bioptimus_jax.tokenizer.subwords import Subwords, Vocabulary
from bioptimus_jax.vocab.agreement import for_texts, masked_by

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

IGNORED = -100
"""The label of what is not predicted, in torch and transformers."""


FIXED = 2**63
"""The number that all batches have in evaluation, so that every evaluation has the same masks."""
LEAST = 3
"""Pieces of a row of which one can be masked: the special tokens around it are never."""


class Masking(TypedDict, total=False):
    """What may differ from the phase (config.phase), and `max_word_pieces`: longer words are masked in parts."""

    masking: str
    rate: float
    corruption: tuple[float, float, float]
    corruption_unit: str
    max_word_pieces: int


class Draws(NamedTuple):
    """Random numbers in [0, 1) for a row: one for its budget, one for its rate, one a piece for all else."""

    budget: Any
    rate: Any
    begins_L: Any
    order_L: Any
    corruption_L: Any
    replacement_L: Any


class Collator:
    """A data collator for the Trainer of transformers that masks as a phase of the curriculum does.

    `phase`: '0.1' to '0.4' of the paper: single pieces 15 %; whole words 15 %; 20 %; 20 %, all of them hidden. Keywords
    change it: `masking` ('tokens', 'words'), `rate`, `corruption` (shares of the mask, a random token, the token
    itself), `corruption_unit` ('piece', 'word'), `max_word_pieces`. `words` is `config.rows.words`: 'unicode' finds
    words where no blanks part them.

    It takes examples with `input_ids`, or with `text` (then set `remove_unused_columns=False` in TrainingArguments),
    cuts them to `max_pieces`, and gives `input_ids`, `attention_mask`, `labels` and, where examples have them,
    `token_type_ids`: int64 [B, L], the label -100 where nothing is predicted. A piece of a byte-level
    tokenizer does not show whether it begins a word: whole words need `text`, or `word_ids` with `input_ids`. Special
    tokens that a `text` quotes, as "[PAD]", are text.

    The mask of a row is a function of the seed, the number of the batch, the place in it and the rank of the process.
    In the Trainer of transformers batches are counted over all epochs, by workers, too, and a training that is resumed
    goes on counting; in its evaluation a mask is a function of the seed and the row, so that losses are comparable.
    Elsewhere `step` is the number of the next batch, and with workers a mask also depends on the seed that torch gives
    to the epoch.

    `pack_for`: the model that is trained. Then the documents of a batch share rows of `row_pieces` (by default
    `max_pieces`), so that little is padding, and do not see each other: the loss is that of the batch without packing.
    The batch has rows [R, L], `position_ids` that restart at each document, and a mask [R, 1, L, L], for a model
    with windows one for each kind of layer. A trial checks at once that the model keeps documents apart.

    Raises ConfigError for an invalid setting, a tokenizer without a mask, or a model that does not keep documents
    apart, InputError for examples without pieces or words.
    """

    def __init__(
        self,
        tokenizer: 'PreTrainedTokenizerBase',
        phase: str = '0.2',
        *,
        seed: int = 0,
        max_pieces: int = 512,
        pad_to_multiple_of: int | None = 1,
        words: str = 'tokenizer',
        pack_for: 'PreTrainedModel | None' = None,
        row_pieces: int = 0,
        **changes: Unpack[Masking],
    ):
        if getattr(tokenizer, 'mask_token_id', None) is None:
            raise ConfigError('tokenizer: has no mask token; give that of a masked language model')
        keys: dict[str, Any] = {f'phase.{phase}.{n}': v for n, v in changes.items() if n != 'max_word_pieces'}
        keys['pretrain.max_word_pieces'] = changes.get('max_word_pieces', 16)
        settings = experiment({'phases': (phase,), 'seed': seed, 'rows.words': words}, keys)
        self.tokenizer, self.seed, self.step = tokenizer, settings.seed, 0
        self.words = settings.rows.words
        self._calls, self._made, self._run = 0, Moment(), None
        self.max_pieces = min(whole_number('max_pieces', max_pieces, LEAST), tokenizer.model_max_length)
        # None is what the collators of transformers have where nothing is rounded.
        multiple = 1 if pad_to_multiple_of is None else pad_to_multiple_of
        self.multiple = whole_number('pad_to_multiple_of', multiple, 1)
        if self.max_pieces % self.multiple:
            raise ConfigError(
                f'pad_to_multiple_of: {self.multiple} does not divide the longest row, {self.max_pieces} pieces, so '
                'batches would be wider than that; give a max_pieces that it divides'
            )
        self.packing = self._packing_for(pack_for, whole_number('row_pieces', row_pieces, 0))
        self.phase = settings.phase[phase]
        self.limits = limits(self.phase.masking, settings.pretrain.max_word_pieces)

    def _packing_for(self, model: 'PreTrainedModel | None', row_pieces: int) -> Packing | None:
        """The packing for a model, None without one. Raises ConfigError."""
        if model is None:
            if row_pieces:
                raise ConfigError('row_pieces: rows are packed for a model; give it as pack_for')
            return None
        width = row_pieces or self.max_pieces
        if width < self.max_pieces or width % self.multiple:
            raise ConfigError(
                f'row_pieces: {width}, but a document has up to {self.max_pieces} pieces, and pad_to_multiple_of is '
                f'{self.multiple}; give a multiple of it that holds a document'
            )
        return packing_for(model, width, self.multiple)

    def __call__(self, examples: Sequence[Mapping[str, Any] | str]) -> ModelInputs:
        """The next batch, masked: tensors by name."""
        import torch

        worker, now = torch.utils.data.get_worker_info(), moment()
        if worker and now.batches is None and self._made:
            now = self._made
        if now.evaluates:
            found = self._masked(examples, lambda place, tokens_L: (FIXED, _digest(tokens_L)))
        else:
            number, more = self._next(now, worker)
            found = self._masked(examples, lambda place, tokens_L: (number, place, *more))
        return tensors_of(self._laid_out(found), self.packing.added if self.packing else '')

    def _next(self, now: Moment, worker: Any) -> tuple[int, tuple[int, ...]]:
        """The number of the next batch, and what else its masks depend on."""
        rank = (now.rank,) * bool(now.rank)
        if worker:  # batches are dealt to the workers in turn
            number = (self._calls if now.batches is not None else self.step) * worker.num_workers + worker.id
            self._calls, self.step = self._calls + 1, self.step + 1
            if now.batches is not None:
                return now.batches + number, rank
            # What the seeds of the workers share is drawn for the epoch.
            return number, (worker.seed - worker.id, *rank)
        if now.run and now.run() is not (self._run and self._run()):
            self._run, self.step = now.run, now.batches or 0
        self.step += 1
        return self.step - 1, rank

    def __getstate__(self) -> dict[str, Any]:
        """State for a new worker process: it cannot find the Trainer among its callers, so it is told where that is."""
        return {**self.__dict__, '_made': moment()._replace(run=None), '_run': None}

    def masked(self, examples: Sequence[Mapping[str, Any] | str], step: int, *more: int) -> Batch:
        """The batch of that number: int64 [B, L] by name, or packed rows. `more`: what else the draws depend on."""
        return self._laid_out(self._masked(examples, lambda place, tokens_L: (step, place, *more)))

    def _masked(
        self,
        examples: Sequence[Mapping[str, Any] | str],
        numbers_of: Callable[[int, np.ndarray], tuple[int, ...]],
    ) -> list[dict[str, np.ndarray]]:
        """Masked rows, int64 [L] by name.

        `numbers_of`: the place and the pieces of a row -> what its random numbers depend on.
        """
        rows = self._rows(examples)
        for place, row in enumerate(rows):
            tokens_L, starts_L = row['input_ids'], row.pop('starts')
            maskable_L = (row['attention_mask'] > 0) & ~self._vocabulary.special_V[tokens_L]
            generator = seeded(self.seed, *numbers_of(place, tokens_L))
            # A piece's numbers side by side: those of a row's beginning are the same whatever its length.
            budget, of_pieces = generator.random(), generator.random((len(tokens_L), 4)).T
            draws = Draws(budget, generator.random(), *of_pieces)
            vocabulary, phase = self._vocabulary, self.phase
            inputs_L, taken_L = mask_row(
                tokens_L, starts_L, maskable_L, phase, self.limits, vocabulary, draws, self._weighing
            )
            row |= {'input_ids': inputs_L, 'labels': np.where(taken_L, tokens_L, IGNORED)}
        return rows

    @property
    def _usual(self) -> dict[str, int]:
        """What stands where a row has no piece, 0 for what is not named."""
        return {'input_ids': self.tokenizer.pad_token_id or 0, 'labels': IGNORED}

    def _laid_out(self, rows: Sequence[Mapping[str, np.ndarray]]) -> Batch:
        """Masked rows as one batch, packed for a model or padded."""
        return self.packing.rows(rows, self._usual) if self.packing else self._padded(rows)

    def _padded(self, rows: Sequence[Mapping[str, np.ndarray]]) -> dict[str, np.ndarray]:
        """Rows, each as long as the longest one."""
        usual = self._usual
        length = -(-max(len(row['input_ids']) for row in rows) // self.multiple) * self.multiple
        batch = {name: np.full((len(rows), length), usual.get(name, 0)) for name in rows[0]}
        for place, row in enumerate(rows):
            pieces = len(row['input_ids'])
            own = slice(length - pieces, None) if self._left else slice(pieces)
            for name, array in row.items():
                batch[name][place, own] = array
        return batch

    def _rows(self, examples: Sequence[Mapping[str, Any] | str]) -> list[dict[str, np.ndarray]]:
        """One row an example: its pieces, `starts` where a word begins, and what else a model reads."""
        given: list[dict[str, Any]] = [
            {**cast(Mapping, one)} if hasattr(one, 'keys') else {'text': one} for one in examples
        ]
        if not given:
            raise InputError('examples: is empty; a batch has at least one')
        found = []
        for number, example in enumerate(given):
            if 'input_ids' not in example:
                if not isinstance(example.get('text'), str):
                    raise InputError(f'examples: number {number} has neither input_ids nor a text')
                encoded = self._reader(example['text'], truncation=True, max_length=self.max_pieces)
                numbers = np.cumsum(starts_of(self.words, example['text'], encoded.encodings[0]))
                example = {**encoded, 'word_ids': numbers}
            row = {'input_ids': _numbers(example, 'input_ids', number)}
            pieces, known = row['input_ids'], len(self._vocabulary.special_V)
            if not len(pieces):
                raise InputError(f'examples: number {number} has no piece in input_ids')
            if wrong := [i for i in pieces.tolist() if not 0 <= i < known]:
                raise InputError(
                    f'examples: number {number} has the id {wrong[0]} in input_ids; those of the tokenizer are from 0 '
                    f'to {known - 1}'
                )
            row['attention_mask'] = np.ones_like(pieces)
            for name in ('attention_mask', 'token_type_ids'):
                if example.get(name) is not None:
                    row[name] = _numbers(example, name, number)
            words = example.get('word_ids')
            for name, given_L in (*row.items(), ('word_ids', pieces if words is None else words)):
                if len(given_L) != len(pieces):
                    raise InputError(
                        f'examples: number {number} has {len(given_L)} {name} for {len(pieces)} input_ids; give one '
                        'for each piece'
                    )
            row['starts'] = self._starts(pieces, words)
            found.append({name: array[: self.max_pieces] for name, array in row.items()})
        return found

    def _starts(self, pieces_L: np.ndarray, words_L: Sequence[int | None] | None) -> np.ndarray:
        """True where a word begins; all True where the phase draws single pieces."""
        if self.limits == (1, 1):
            return np.ones(len(pieces_L), bool)
        if words_L is None:
            return self._begins_V[pieces_L]
        numbers = [None, *words_L]
        return np.array([word != before for before, word in zip(numbers, words_L)])

    @functools.cached_property
    def _vocabulary(self) -> Vocabulary:
        return masked_by(self.tokenizer)

    @functools.cached_property
    def _reader(self) -> Any:
        return for_texts(self.tokenizer)

    @functools.cached_property
    def _weighing(self) -> Weighing | None:
        weights = strategy_of(self.phase.masking).weights
        return weights.of(self._subwords) if weights else None

    @functools.cached_property
    def _subwords(self) -> Subwords:
        with workplace() as place:
            return subwords_of(place / 'tokenizer', self.tokenizer)

    @functools.cached_property
    def _begins_V(self) -> np.ndarray:
        known = self._subwords
        if known.kind.words_in_rows or not WORD_RULES[self.words].by_tokenizer:
            raise InputError(
                'examples: have no word_ids, and a piece does not show by itself whether it begins a word; '
                'give text instead of input_ids, or word_ids with them'
            )
        return known.begins_V

    @functools.cached_property
    def _left(self) -> bool:
        return getattr(self.tokenizer, 'padding_side', 'right') == 'left'


def _digest(tokens_L: np.ndarray) -> int:
    """A number for the pieces of a row."""
    return int.from_bytes(hashlib.blake2b(tokens_L.tobytes(), digest_size=8).digest(), 'little')


def _numbers(example: Mapping[str, Any], name: str, number: int) -> np.ndarray:
    """An entry of an example as integers, int64 [L]. Raises InputError for anything else."""
    try:
        array = np.asarray(example[name])
    except ValueError:  # lists of several lengths
        array = np.asarray(None)
    if array.ndim != 1 or (len(array) and array.dtype.kind not in 'iub'):
        raise InputError(f'examples: number {number} has no list of whole numbers in {name}')
    return array.astype(np.int64)


def mask(
    examples: Sequence[Mapping[str, Any] | str],
    tokenizer: 'PreTrainedTokenizerBase',
    phase: str = '0.2',
    *,
    seed: int = 0,
    step: int = 0,
    max_pieces: int = 512,
    words: str = 'tokenizer',
    **changes: Unpack[Masking],
) -> dict[str, np.ndarray]:
    """Mask a batch as a phase of the curriculum does; returns arrays, int64 [B, L], a function of seed and step.

    `examples`: texts, or dicts with `input_ids` or `text`; the rest as for `Collator`, which raises the same errors.
    """
    collator = Collator(tokenizer, phase, seed=seed, max_pieces=max_pieces, words=words, **changes)
    number = whole_number('step', step, 0)
    return collator._padded(collator._masked(examples, lambda place, tokens_L: (number, place)))


def mask_row(
    tokens_L: np.ndarray,
    starts_L: np.ndarray,
    maskable_L: np.ndarray,
    phase: Phase,
    lengths: tuple[int, int],
    vocabulary: Vocabulary,
    draws: Draws,
    weighing: Weighing | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """A row with its pieces corrupted, and which of them are to be predicted; `lengths`: the `limits` of its strategy.

    Units come in random order and are taken, whole, while fewer pieces than the budget come before them. The budget is
    the rate less what the last unit overshoots on average (`pretrain.masking`). `weighing`: how the strategy weighs.
    """
    strategy, count = strategy_of(phase.masking), int(maskable_L.sum())
    begins_L = begins_of(phase.masking, starts_L, draws.begins_L)
    if weighing:
        words_L = starts_L | apart(maskable_L, np)
        weights_L = weighing(tokens_L, words_L, np)
        weights_L = _means(weights_L, np.cumsum(words_L) - 1) if strategy.words else weights_L
        maskable_L = maskable_L & (weights_L > 0)
    # What cannot be masked is a unit by itself, and ends the one before it.
    apart_L = apart(maskable_L, np)
    unit_L = np.cumsum(limited_starts(begins_L, starts_L, apart_L, *lengths, np.maximum.accumulate)) - 1
    lengths_U = np.bincount(unit_L)
    rate = float(strategy.rate(phase.rate, draws.rate)) if strategy.rate else phase.rate
    times_U = draws.order_L[: len(lengths_U)]
    over = (lengths_U[unit_L][maskable_L].mean() - 1) / 2 if count and not weighing else 0.0
    if weighing:
        weights_L = _means(np.where(maskable_L, weights_L, 0), unit_L)
        over = float(overshoot(weights_L, lengths_U[unit_L], rate * count, np))
        weights_U = weights_L[np.searchsorted(unit_L, np.arange(len(lengths_U)))]
        times_U = -np.log1p(-times_U) / np.maximum(weights_U, LEAST_WEIGHT)
    budget = min(count, max(1, int(np.floor(rate * count - over + draws.budget))))
    # Cumulated over units in the order of their numbers: the pieces that come before each.
    maskable_U = np.bincount(unit_L, maskable_L) > 0
    order_U = np.argsort(np.where(maskable_U, times_U, np.inf), kind='stable')
    before_U = np.empty(len(lengths_U), np.int64)
    before_U[order_U] = np.cumsum(lengths_U[order_U]) - lengths_U[order_U]
    taken_L = maskable_L & (before_U < budget)[unit_L]
    drawn_L = draws.corruption_L[unit_L] if phase.corruption_unit == 'word' else draws.corruption_L
    hidden, replaced, _ = phase.corruption
    replacement_L = vocabulary.drawn_N[(draws.replacement_L * len(vocabulary.drawn_N)).astype(np.int64)]
    corrupted_L = np.where(drawn_L < hidden + replaced, replacement_L, tokens_L)
    corrupted_L = np.where(drawn_L < hidden, vocabulary.mask, corrupted_L)
    return np.where(taken_L, corrupted_L, tokens_L), taken_L


def _means(values_L: np.ndarray, unit_L: np.ndarray) -> np.ndarray:
    """For every piece the mean over its unit."""
    return (np.bincount(unit_L, values_L) / np.bincount(unit_L))[unit_L]
