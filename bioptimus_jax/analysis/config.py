"""The section `analysis`."""

import dataclasses
from typing import Protocol

from bioptimus_jax.config.bounds import LARGEST_SIZE
from bioptimus_jax.config.fields import key
from bioptimus_jax.finetuning.config import HasFinetune
from bioptimus_jax.scoring.config import HALVES, UPPER


@dataclasses.dataclass(frozen=True)
class Analysis:
    """Measures that compare across vocabularies, and the geometry of the embeddings."""

    cloze_documents: int = key(400, 'held-out documents scored', low=1)
    cloze_fraction: float = key(0.15, 'words hidden, chosen by hash of (document, word)', low=0.01, high=0.9)
    reference_vocab: str = key(
        '', "a second vocabulary, a file, folder or hub id; empty: the source's", path=True
    )
    tokens: str = key(
        '',
        'a file with tokens, one a line: hidden words that are one of them are also scored alone, to follow them from '
        'run to run; empty: none',
        path=True,
    )
    pairs: int = key(20000, 'random pairs for the mean cosine', low=10, high=LARGEST_SIZE)
    geometry_words: int = key(
        2000, 'words whose geometry is measured, half of them rare; 0: none', low=0, high=LARGEST_SIZE
    )
    geometry_contexts: int = key(10, 'a word in context is the mean of this many occurrences', low=1)
    geometry_documents: int = key(20000, 'documents that are searched for them', low=1)
    geometry_points: int = key(500, 'number of these words drawn as t-SNE; 0: none', low=0, high=20_000)
    frozen_sentences: int = key(
        0,
        'training sentences of each set of entities that frozen states are scored on, chosen by hash; 0: none; the '
        'more, the closer to F1 after fine-tuning: 5000',
        low=0,
        high=LARGEST_SIZE,
    )
    frozen_layers: str = key(
        HALVES,
        'states of a word: the means over the lower and the upper half of the layers, side by side; upper: one mean',
        one_of=(HALVES, UPPER),
        active_if=('analysis.frozen_sentences', range(1, LARGEST_SIZE + 1)),
    )


class HasAnalysis(HasFinetune, Protocol):
    """What stage analyze reads of a configuration."""

    @property
    def analysis(self) -> Analysis: ...
