"""What test items share with training: scores of those whose text training has, wholly or in long parts.

Texts are compared by their words, letters and digits alone, case folded. All of the training set counts, whatever a
setting chooses from it. Shapes: N test items, S seeds, U units, C counts of a metric.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Sequence
from typing import Any

import numpy as np

from bioptimus_jax.finetune.predictions import Predicted, counts_by_unit
from bioptimus_jax.finetune.statistics import bootstrap, interval, mean_score
from bioptimus_jax.finetune.task import Task

WORD = re.compile(r'[^\W_]+')
WORDS = 5
"""Of an n-gram; a shorter text is one."""
SHARES = {'none': 0.0, 'below 25 %': 1e-9, '25-65 %': 0.25, '65 % or more': 0.65}
"""Classes of shares, and where they begin."""
SLICINGS = {'text': ('seen', 'unseen'), 'parts': tuple(SHARES)}
"""Slicing -> its classes. text: whether a training item has the same text. parts: how many of the 5-grams of its words
the one training item has that has most of them."""
RESAMPLES = 2000


def classes_of(dataset: Any) -> dict[str, list[str]]:
    """Of every slicing the class of each test item."""
    train, test = ([words_of(e) for e in examples] for examples in (dataset.train, dataset.test))
    known, wanted = set(train), set().union(*map(grams, test))
    where = defaultdict(list)
    for at, words in enumerate(known):
        for gram in grams(words) & wanted:
            where[gram].append(at)
    return {
        'text': ['seen' if words in known else 'unseen' for words in test],
        'parts': [share_class(most_shared(words, where)) for words in test],
    }


def most_shared(words: tuple[str, ...], where: dict[tuple[str, ...], list[int]]) -> float:
    """The share of a text's n-grams that one training text has, the largest of all. `where`: n-gram -> texts."""
    own = grams(words)
    together = Counter(at for gram in own for at in where.get(gram, ()))
    return max(together.values(), default=0) / len(own)


def words_of(example: Any) -> tuple[str, ...]:
    """All words of an example, of two texts one behind the other."""
    return tuple(WORD.findall(' '.join(example.words).casefold()))


def grams(words: tuple[str, ...]) -> set[tuple[str, ...]]:
    """The n-grams of a text, each once."""
    return {words[at : at + WORDS] for at in range(max(1, len(words) - WORDS + 1))}


def share_class(share: float) -> str:
    """The class of a share; 65 % is '65 % or more'."""
    return [name for name, begins in SHARES.items() if share >= begins][-1]


def overlap(
    task: Task, predictions: Sequence[Sequence[Predicted]], classes: dict[str, list[str]]
) -> dict[str, dict[str, dict[str, Any]]]:
    """`{slicing: {class: {items, score, interval}}}` of the task's metric, the mean over seeds; a JSON value.

    Without a score where nothing is to be found, and nothing is.
    """
    found: dict[str, dict[str, dict[str, Any]]] = {}
    for slicing, names in SLICINGS.items():
        of_item_N = np.array(classes[slicing])
        for name in names:
            inside_N = of_item_N == name
            if inside_N.any():
                _, counts_SxUxC = counts_by_unit(task.metric, predictions, task.unit, inside_N)
                measured: dict[str, Any] = {'items': int(inside_N.sum())}
                if counts_SxUxC.any():
                    drawn_R = bootstrap(task.metric, counts_SxUxC, RESAMPLES)
                    measured |= {
                        'score': mean_score(task.metric, counts_SxUxC),
                        'interval': interval(drawn_R),
                    }
                found.setdefault(slicing, {})[name] = measured
    return found
