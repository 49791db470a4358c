"""A tagger in closed form: a normal distribution of states for each tag, all with one covariance, and a chain of tags.

It is a linear discriminant with log-probabilities of one tag after another, so nothing is iterated and nothing drawn.

Shapes: N words in the order of their sentences, S sentences, D size of a state, F = 3 D features of a word, K tags,
J = K + 1: a tag, or the beginning of the sentence.
"""

import dataclasses
import itertools

import numpy as np

SHRINKAGE = 0.01
"""Share of the identity in the covariance; features have variance 1. From 0.001 to 0.1 F1 changes by 1.1 at most."""
SMOOTHING = 0.5
"""Added to the count of each tag after each other one."""


@dataclasses.dataclass(frozen=True)
class Moments:
    """Sums over words, from which a tagger is fitted; those of several parts add up.

    `products_FxF`: of the features with one another. `steps_JxK`: how often a tag follows another; the last row counts
    the first words of sentences.
    """

    counts_K: np.ndarray
    sums_KxF: np.ndarray
    products_FxF: np.ndarray
    steps_JxK: np.ndarray

    def __add__(self, other: 'Moments') -> 'Moments':
        return Moments(*map(np.add, vars(self).values(), vars(other).values()))

    def __sub__(self, other: 'Moments') -> 'Moments':
        return Moments(*map(np.subtract, vars(self).values(), vars(other).values()))


def moments(features_NxF: np.ndarray, tags_N: np.ndarray, begins_N: np.ndarray, tags: int) -> Moments:
    """The sums of whole sentences. `tags_N`: numbers below `tags`; `begins_N`: whether a word is the first of one."""
    one_hot_NxK = np.eye(tags, dtype=features_NxF.dtype)[tags_N]
    # `roll` brings the last tag to the front, where a sentence begins anyway.
    before_N = np.where(begins_N, tags, np.roll(tags_N, 1))
    steps = np.bincount(before_N * tags + tags_N, minlength=(tags + 1) * tags).reshape(tags + 1, tags)
    return Moments(
        one_hot_NxK.sum(0, dtype=np.float64),
        (one_hot_NxK.T @ features_NxF).astype(np.float64),
        (features_NxF.T @ features_NxF).astype(np.float64),
        steps.astype(np.float64),
    )


@dataclasses.dataclass(frozen=True)
class Tagger:
    """The log-likelihood of each tag, up to a term that all tags share, is features @ weights + bias.

    `steps_JxK`: log-probabilities of a tag after another, the last row at the beginning of a sentence.
    """

    weights_FxK: np.ndarray
    bias_K: np.ndarray
    steps_JxK: np.ndarray

    @classmethod
    def fitted(cls, known: Moments, shrinkage: float = SHRINKAGE) -> 'Tagger':
        """The tagger of one word or more. It never predicts a tag that none of them has."""
        counts_K = known.counts_K
        means_KxF = known.sums_KxF / np.maximum(counts_K, 1)[:, None]
        # Around the means of the tags: all products less those of the means.
        within_FxF = (known.products_FxF - (means_KxF.T * counts_K) @ means_KxF) / counts_K.sum()
        mixed_FxF = (1 - shrinkage) * within_FxF + shrinkage * np.eye(len(within_FxF))
        weights_FxK = np.linalg.solve(mixed_FxF, means_KxF.T)
        bias_K = -0.5 * np.einsum('kf,fk->k', means_KxF, weights_FxK)
        steps_JxK = known.steps_JxK + SMOOTHING
        probable_JxK = np.log(steps_JxK / steps_JxK.sum(1, keepdims=True))
        return cls(weights_FxK, np.where(counts_K > 0, bias_K, -np.inf), probable_JxK)

    def tags(self, features_NxF: np.ndarray, begins_N: np.ndarray) -> np.ndarray:
        """The most probable tags of whole sentences (Viterbi), int64 [N]."""
        scores_NxK = features_NxF @ self.weights_FxK + self.bias_K
        first_S = np.flatnonzero(begins_N)
        length_S = np.diff(first_S, append=len(begins_N))
        best_NxK, back_NxK = scores_NxK + self.steps_JxK[-1], np.zeros(scores_NxK.shape, np.int64)
        for at in range(1, length_S.max(initial=0)):  # that word of all sentences that have one
            word = first_S[length_S > at] + at
            ways = best_NxK[word - 1][:, :, None] + self.steps_JxK[:-1]
            back_NxK[word] = ways.argmax(1)
            best_NxK[word] = ways.max(1) + scores_NxK[word]
        found_N = best_NxK.argmax(1)
        for at in range(length_S.max(initial=0) - 1, 0, -1):
            word = first_S[length_S > at] + at
            found_N[word - 1] = back_NxK[word, found_N[word]]
        return found_N


def cross_fitted(
    states_NxD: np.ndarray, tags_N: np.ndarray, begins_N: np.ndarray, part_N: np.ndarray, tags: int
) -> np.ndarray:
    """The tag of every word from a tagger that is fitted on the words of all other parts, int64 [N].

    States are scaled to mean 0 and variance 1 over all words. `part_N`: numbers from 0 that never fall, two different
    ones or more; all words of a sentence have the same.
    """
    deviation_D = states_NxD.std(0)
    scaled_NxD = (states_NxD - states_NxD.mean(0)) / np.where(deviation_D > 0, deviation_D, 1)
    edges = np.searchsorted(part_N, np.arange(part_N.max(initial=0) + 2))
    parts = [slice(*both) for both in itertools.pairwise(edges) if both[0] < both[1]]

    # Features are three times as wide as states, so they are held for one part at a time.
    def features(part: slice) -> np.ndarray:
        return with_neighbours(scaled_NxD[part], begins_N[part])

    of_part = [moments(features(p), tags_N[p], begins_N[p], tags) for p in parts]
    # A part is taken away from the sum of all: each is read once, however many there are.
    every = sum(of_part[1:], of_part[0])
    found_N = np.zeros(len(tags_N), np.int64)
    for part, own in zip(parts, of_part, strict=True):
        found_N[part] = Tagger.fitted(every - own).tags(features(part), begins_N[part])
    return found_N


def with_neighbours(states_NxD: np.ndarray, begins_N: np.ndarray) -> np.ndarray:
    """Each word's state, and those of the words before and after it, NxF; 0 where the sentence has no such word."""
    before_NxD, after_NxD = np.zeros_like(states_NxD), np.zeros_like(states_NxD)
    inner = np.flatnonzero(~begins_N)
    before_NxD[inner] = states_NxD[inner - 1]
    after_NxD[inner - 1] = states_NxD[inner]
    return np.concatenate([states_NxD, before_NxD, after_NxD], 1)
