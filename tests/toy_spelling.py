"""New tokens, how a tiny source spells them, and where they were found."""

import numpy as np
from toy_source import LETTERS, OLD, SPECIAL, WORD

SPELLING = list(dict.fromkeys([*OLD, *LETTERS]))  # every word of small letters can be spelled


WORDS = ['the', 'of', 'drug', 'drugs', 'naive', 'broncho', 'lymphoma', 'x', 'kinase', WORD]


def sentences(count: int) -> list[str]:
    draw = np.random.default_rng(5)
    return sorted({' '.join(draw.choice(WORDS, 6)) for _ in range(count)})


def occurrences(token: str, most: int = 20) -> list[tuple]:
    places = [(s, s.find(token)) for s in sentences(60) if token in s.split()]
    return [(token, s, i, i + len(token), n) for n, (s, i) in enumerate(places[:most])]


NEW = [*SPECIAL, 'the', 'of', WORD, 'lymphoma', 'ββ']


FOUND = [*occurrences(WORD), *occurrences('lymphoma')]
