"""Rows by spelling: the mean of the rows of the source's tokens that are the fewest edits away (Levenshtein)."""

import dataclasses

import numpy as np

from bioptimus_jax.ext import Initialisation, Inputs, key


@dataclasses.dataclass(frozen=True)
class Settings:
    """What `config.surgery.own.edit_distance` may say."""

    most: int = key(
        2, 'edits that a token of the source may be away; farther ones are not used', low=0, high=10
    )


def distances(word: str, others: list[str]) -> np.ndarray:
    """Edits between a word and each of the others: int [V]."""
    codes_VxL = np.zeros((len(others), max(map(len, others), default=0)), np.int64)
    lengths_V = np.array(list(map(len, others)), np.int64)
    for row_L, other in zip(codes_VxL, others, strict=True):
        row_L[: len(other)] = list(map(ord, other))
    before_VxL = np.broadcast_to(np.arange(codes_VxL.shape[1] + 1), (len(others), codes_VxL.shape[1] + 1))
    for number, letter in enumerate(word, 1):
        now_VxL = np.empty_like(before_VxL)
        now_VxL[:, 0] = number
        for at in range(codes_VxL.shape[1]):
            changed_V = before_VxL[:, at] + (codes_VxL[:, at] != ord(letter))
            now_VxL[:, at + 1] = np.minimum(changed_V, np.minimum(now_VxL[:, at], before_VxL[:, at + 1]) + 1)
        before_VxL = now_VxL
    return np.take_along_axis(before_VxL, lengths_V[:, None], axis=1)[:, 0]


def rows(given: Inputs) -> np.ndarray:
    """Float64 [N, D]; NaN for a token that no other is near enough to."""
    made_NxD, others = np.full((len(given.tokens), given.table.shape[1]), np.nan), list(given.vocabulary)
    for row_D, token in zip(made_NxD, given.tokens, strict=True):
        away_V = distances(token, others)
        if away_V.min() <= given.own.most:
            row_D[:] = given.table[away_V == away_V.min()].mean(axis=0, dtype=np.float64)
    return made_NxD


INITIALISATIONS = {
    'edit_distance': Initialisation(
        'the mean row of the tokens of the source that are spelled most alike', rows, settings=Settings
    ),
}
