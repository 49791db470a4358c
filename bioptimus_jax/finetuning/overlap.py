"""How models score on test items that they may have seen: in the training set, or in the pre-training corpus.

Texts are compared by their words, letters and digits alone, case folded. All of the training set counts, whatever a
setting chooses from it. Shapes: N test items, S seeds, U units, C counts of a metric.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from bioptimus_jax.finetuning.grams import WORD, Grams
from bioptimus_jax.finetuning.predictions import Seeds, added_up, counts_of, units
from bioptimus_jax.finetuning.task import Task
from bioptimus_jax.records.statistics import ItemScore, ItemSlices
from bioptimus_jax.scoring.resampling import bootstrap, mean_score, percentile_interval, recorded

SHARES = {'none': 0.0, 'below 25 %': 1e-9, '25-65 %': 0.25, '65 % or more': 0.65}
IN_CORPUS = {'none': 0.0, 'below 25 %': 1e-9, '25-65 %': 0.25, '65-99 %': 0.65, 'all': 1.0}
"""Classes of shares, and where they begin."""
SLICINGS = {'text': ('seen', 'unseen'), 'parts': tuple(SHARES), 'corpus': tuple(IN_CORPUS)}
"""Slicing -> its classes. text: whether a training item has the same text. parts: the share of the 5-grams of its words
in the training item that has most of them; corpus: in the document of the pre-training corpus that has most of them."""
RESAMPLES = 2000


def classes_of(dataset: Any, in_corpus: Sequence[float | None] = ()) -> dict[str, list[str]]:
    """The class of each test item under every slicing, '' for none.

    `in_corpus`: the share of each one's 5-grams in one document, where that is known.
    """
    train, test = ([words_of(e) for e in examples] for examples in (dataset.train, dataset.test))
    known = dict.fromkeys(train)
    found = {
        'text': ['seen' if words in known else 'unseen' for words in test],
        'parts': [share_class(share, SHARES) for share in Grams([[x] for x in test]).shares(list(known))],
    }
    if in_corpus:
        found['corpus'] = ['' if x is None else share_class(x, IN_CORPUS) for x in in_corpus]
    return found


def words_of(example: Any) -> str:
    """All words of an example, of two texts one behind the other, with blanks between."""
    return ' '.join(WORD.findall(' '.join(example.words).casefold()))


def share_class(share: float, classes: dict[str, float]) -> str:
    """The class of a share; 65 % is '65 % or more'."""
    return [name for name, begins in classes.items() if share >= begins][-1]


def overlap(task: Task, predictions: Seeds, classes: dict[str, list[str]]) -> ItemSlices:
    """Slicing -> class -> scores on the test items of that class alone.

    `score` is the mean over seeds of the task's metric, `interval` its 95 % over test items. Both are left out where
    the items have no entities and none are predicted.
    """
    _, unit_N = units(predictions[0], task.unit)
    counts_SxNxC = counts_of(task.metric, predictions)
    found: dict[str, dict[str, ItemScore]] = {}
    for slicing, of_item in classes.items():
        for name in SLICINGS[slicing]:
            inside_N = np.array(of_item) == name
            if not inside_N.any():
                continue
            # Other items stay and count 0, so that every class is drawn over the same units.
            counts_SxUxC = added_up(counts_SxNxC * inside_N[:, None], unit_N)
            score, interval = None, None
            if counts_SxUxC.any():
                score = mean_score(task.metric, counts_SxUxC)
                interval = recorded(percentile_interval(bootstrap(task.metric, counts_SxUxC, RESAMPLES)))
            measured = ItemScore(items=int(inside_N.sum()), score=score, interval=interval)
            found.setdefault(slicing, {})[name] = measured
    return found
