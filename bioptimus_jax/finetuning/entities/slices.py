"""Where a model's mentions are found and missed: seen before or not, spelled in how many pieces, how rare.

Every slicing puts each mention, gold or predicted, into one class by the same rule, so a prediction that is right is
counted in the class of its gold mention.

Shapes: S seeds, U units (documents, or sentences where a set has no documents), R resamples; the last axis of a count
is (correct, gold, predicted) mentions.
"""

import dataclasses
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from bioptimus_jax.finetuning.predictions import Predicted, Seeds, units
from bioptimus_jax.finetuning.summary import TokenStatistics
from bioptimus_jax.records.sets import LabelShares
from bioptimus_jax.records.statistics import MentionRates, MentionSlices
from bioptimus_jax.scoring.resampling import percentile_interval, resampled
from bioptimus_jax.sets.corpora import Dataset
from bioptimus_jax.sets.tags import Span, spans

SIZES = ((1, '1'), (2, '2'), (4, '3-4'), (None, '5+'))
CONTEXTS = ((0, '0'), (4, '1-4'), (19, '5-19'), (None, '20+'))
PER_MILLION = ((0, '0'), (1, '<1'), (10, '1-10'), (100, '10-100'), (None, '>100'))
"""Bounds and names of classes: a value of SIZES and CONTEXTS may equal its bound, one of PER_MILLION is below it."""
SLICINGS = {
    'surface': ('seen', 'unseen'),
    'surface_and_type': ('seen', 'unseen'),
    'pieces': ('0', *(name for _, name in SIZES)),
    'words': tuple(name for _, name in SIZES),
    'new_token': ('with', 'without'),
    'contexts': tuple(name for _, name in CONTEXTS),
    'frequency': tuple(name for _, name in PER_MILLION),
}
"""Slicing -> its classes in order.

surface: the mention's words, case folded, are a mention of the training set; surface_and_type: of the same type.
pieces, words: how many the mention has under the model's tokenizer, and in the file. new_token: whether a piece
is one that the source's vocabulary lacks. contexts: in how many sentences the rarest of them was found, for mentions
that have one. frequency: of the mention's rarest word in a corpus, times per million running words.
"""
RATES = ('precision', 'recall', 'f1')


@dataclasses.dataclass(frozen=True)
class Material:
    """What mentions are sliced by; the slicings that need contexts or counts which are not `known` are left out.

    `training`: words and type of every mention of the training set. `pieces`: the tokens of a mention's words under
    the model's tokenizer. `known`: of the tokens that the source's vocabulary lacks, and of words.
    """

    training: Iterable[tuple[Sequence[str], str]]
    pieces: Callable[[Sequence[str]], Sequence[str]]
    known: TokenStatistics = TokenStatistics()


def material_of(dataset: Dataset, tokenizer: Any, known: TokenStatistics) -> Material:
    """What the mentions of a set are sliced by, with what is known of the model's tokens."""

    def pieces(words: Sequence[str]) -> list[str]:
        return tokenizer(
            list(words), is_split_into_words=True, add_special_tokens=False, verbose=False
        ).tokens()

    return Material(training_mentions((s.scored_words, s.gold) for s in dataset.train), pieces, known)


class Classifier:
    """Slicing -> class of a mention; see `SLICINGS`."""

    def __init__(self, material: Material):
        self.material = material
        self.types_of: dict[str, set[str]] = defaultdict(set)
        for words, kind in material.training:
            self.types_of[_surface(words)].add(kind)
        self.known: dict[tuple[str, ...], dict[str, str]] = {}

    def __call__(self, words: tuple[str, ...], kind: str) -> dict[str, str]:
        """Slicing -> class, for a mention of type `kind` that consists of `words`."""
        if words not in self.known:
            self.known[words] = self._by_words(words)
        same = kind in self.types_of.get(_surface(words), ())
        return {**self.known[words], 'surface_and_type': 'seen' if same else 'unseen'}

    def _by_words(self, words: tuple[str, ...]) -> dict[str, str]:
        known, pieces = self.material.known, self.material.pieces(words)
        found = {
            'surface': 'seen' if _surface(words) in self.types_of else 'unseen',
            'pieces': _class(len(pieces), SIZES) if pieces else '0',
            'words': _class(len(words), SIZES),
        }
        if known.contexts_of is not None:
            contexts = [known.contexts_of[piece] for piece in pieces if piece in known.contexts_of]
            found['new_token'] = 'with' if contexts else 'without'
            if contexts:
                found['contexts'] = _class(min(contexts), CONTEXTS)
        if known.counts:
            found['frequency'] = frequency_class(min(map(known.count_of, words)), known.corpus_words)
        return found


def frequency_class(count: int, corpus_words: int) -> str:
    """The class of a word that occurs `count` times in `corpus_words`; a bound belongs to the class above it."""
    if count == 0:
        return PER_MILLION[0][1]
    per_million = 1e6 * count / corpus_words
    return next(name for bound, name in PER_MILLION[1:] if bound is None or per_million < bound)


def training_mentions(
    sentences: Iterable[tuple[Sequence[str], Sequence[str]]],
) -> list[tuple[tuple[str, ...], str]]:
    """Words and type of every mention of sentences given as (words, tags). Raises InputError."""
    return [
        (tuple(words[first : last + 1]), kind)
        for words, tags in sentences
        for kind, first, last in spans(tags)
    ]


def slices(predictions: Seeds, material: Material, resamples: int = 2000, seed: int = 0) -> MentionSlices:
    """Slicing -> class -> gold and predicted mentions, precision, recall and F1 with intervals.

    `predictions`: one list of sentences for each seed, over the same gold standard. Rates are means over seeds,
    `predicted` too; None where no seed has anything to divide by. f1 needs gold and predicted mentions. An interval
    holds 95 % of rates over units drawn with replacement, as in `statistics`. Empty classes are left out.
    """
    counts = sliced_counts(predictions, Classifier(material))
    result: dict[str, dict[str, MentionRates]] = {}
    for slicing, classes in SLICINGS.items():
        found = {
            name: _measures(counts[slicing, name], resamples, seed)
            for name in classes
            if (slicing, name) in counts
        }
        if found and (slicing != 'contexts' or set(found) != {'0'}):  # else rows were made without contexts
            result[slicing] = found
    return result


def sliced_counts(
    predictions: Seeds, classify: Callable[[tuple[str, ...], str], dict[str, str]]
) -> dict[tuple[str, str], np.ndarray]:
    """(slicing, class) -> counts_SxUx3, for every class with a mention on either side. Raises InputError."""
    _, unit_of = units(predictions[0], 'sentence')
    shape = len(predictions), int(unit_of.max()) + 1, 3
    counts: dict[tuple[str, str], np.ndarray] = defaultdict(lambda: np.zeros(shape, np.int64))
    for at, sentences in enumerate(predictions):
        for unit, sentence in zip(unit_of, sentences, strict=True):
            gold, predicted = set(spans(sentence.gold)), set(spans(sentence.predicted))
            for column, group in enumerate((gold & predicted, gold, predicted)):
                for mention in group:
                    for key in classify(*_words_and_type(sentence, mention)).items():
                        counts[key][at, unit, column] += 1
    return dict(counts)


def label_distribution(splits: Mapping[str, Iterable[Sequence[str]]]) -> dict[str, LabelShares]:
    """Split -> shares of labels (paper, Figure 6). `splits`: the tags of every sentence. Raises InputError."""
    result = {}
    for name, sentences in splits.items():
        tags: Counter[str] = Counter()
        types: Counter[str] = Counter()
        for sentence in sentences:
            tags.update(sentence)
            types.update(kind for kind, _, _ in spans(sentence))
        result[name] = LabelShares(
            words=tags.total(), mentions=types.total(), tags=_shares(tags), types=_shares(types)
        )
    return result


def _measures(counts_SxUx3: np.ndarray, resamples: int, seed: int) -> MentionRates:
    totals_Sx3 = counts_SxUx3.sum(1)
    values = {name: rate.item() for name, rate in _rates(totals_Sx3[None]).items()}
    drawn = _rates(resampled(counts_SxUx3, resamples, seed))
    rates: dict[str, Any] = {}
    for name in RATES:
        if not np.isnan(values[name]):
            rates |= {name: values[name], f'{name}_interval': percentile_interval(drawn[name])}
    return MentionRates(gold=int(totals_Sx3[0, 1]), predicted=float(totals_Sx3[:, 2].mean()), **rates)


def _rates(totals_RxSx3: np.ndarray) -> dict[str, np.ndarray]:
    """Each rate_R, averaged over the seeds that define it; NaN where none does."""
    correct, gold, predicted = np.moveaxis(totals_RxSx3.astype(np.float64), -1, 0)
    both = np.where((gold > 0) & (predicted > 0), gold + predicted, 0)
    parts = zip(RATES, (correct, correct, 2 * correct), (predicted, gold, both), strict=True)
    return {name: _mean_where(over > 0, part / np.maximum(over, 1)) for name, part, over in parts}


def _mean_where(defined_RxS: np.ndarray, values_RxS: np.ndarray) -> np.ndarray:
    number_R = defined_RxS.sum(-1)
    means_R = np.where(defined_RxS, values_RxS, 0).sum(-1) / np.maximum(number_R, 1)
    return np.where(number_R > 0, means_R, np.nan)


def _words_and_type(sentence: Predicted, mention: Span) -> tuple[tuple[str, ...], str]:
    kind, first, last = mention
    return sentence.words[first : last + 1], kind


def _surface(words: Sequence[str]) -> str:
    return ' '.join(words).casefold()


def _class(value: int, bounds: Sequence[tuple[int | None, str]]) -> str:
    return next(name for bound, name in bounds if bound is None or value <= bound)


def _shares(counts: Counter[str]) -> dict[str, float]:
    return {name: count / counts.total() for name, count in sorted(counts.items())}
