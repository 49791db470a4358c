"""What fine-tunings of one model say together: votes, failures, means over seeds, by hand."""

import numpy as np
import pytest

from bioptimus_jax.finetuning.predictions import Predicted
from bioptimus_jax.finetuning.statistics import failure, failures, summary
from bioptimus_jax.finetuning.summary import ensemble_of
from bioptimus_jax.finetuning.task import task_of
from bioptimus_jax.inference.kinds.tags import together
from bioptimus_jax.records.finetune import FineTuning, ModelOnSet
from bioptimus_jax.scoring.score import METRICS


def told(dataset, task='entities'):
    return task_of(ModelOnSet(model='a', dataset=dataset, task=task, setting='standard'))


B, I, O = 'B-x', 'I-x', 'O'  # noqa: E741
VOTES = [
    # Two of three have the first mention; of the second all have another end; a tie is no majority.
    (told('own'), [(B, I, O, B), (B, I, O, O), (B, O, O, B)], (B, I, O, B)),
    (told('own'), [(B, I), (B, O)], (O, O)),
    (told('own', 'word_classes'), [(B, I, O), ('B-y', 'B-x', 'B-x'), (B, O, 'B-y')], (B, I, O)),
    (told('own', 'classes'), [('a',), ('b',), ('b',)], ('b',)),
    (told('own', 'classes'), [('a',), ('b',)], ('a',)),  # of equals that of the earliest seed
    (told('hoc', 'classes'), [('a', 'b'), ('b', 'c'), ()], ('b',)),
    (told('biosses', 'similarity'), [(1.0,), (2.0,), (6.0,)], (3.0,)),
]


@pytest.mark.parametrize(('task', 'given', 'together'), VOTES)
def test_votes_by_hand(task, given, together):
    assert task.vote(given) == together
    assert task.vote(given[:1] * 3) == given[0]


def test_a_voted_tag_is_as_probable_as_the_mention_or_the_class_is_to_each_seed():
    sides = [((B, I), (0.9, 0.8)), ((I, I), (0.6, 0.7)), ((O, B), (0.5, 0.4))]
    voted, sure = together(told('own'), sides)
    assert voted == (B, I)  # an I- that continues nothing begins a mention, too
    assert sure == pytest.approx([(0.9 + 0.6) / 3, (0.8 + 0.7) / 3])
    # Of a class it says only that the word before has another one.
    _, sure = together(told('own', 'word_classes'), sides)
    assert sure == pytest.approx([(0.9 + 0.6) / 3, (0.8 + 0.7 + 0.4) / 3])
    assert together(None, sides) == sides[0]


def test_an_ensemble_is_scored_as_a_model_of_its_votes():
    """Five seeds that are wrong here and there, each elsewhere: together they are right."""
    gold = [(B, I, O, B, O)] * 30
    seeds = [[(O,) * 5 if at % 5 == seed else tags for at, tags in enumerate(gold)] for seed in range(5)]
    examples = [
        [Predicted(('w',) * 5, g, p, at) for at, (g, p) in enumerate(zip(gold, s, strict=True))]
        for s in seeds
    ]
    found = ensemble_of(told('own'), examples)
    assert found.seeds == 5
    assert {mode: f['f1'] for mode, f in found.test.items()} == dict.fromkeys(METRICS, 1.0)
    assert found.interval == (1.0, 1.0)
    # Without any entity there is no interval; records of its kind hold no NaN.
    without = [[Predicted(('w',), (O,), (O,), at) for at in range(9)]] * 2
    assert ensemble_of(told('own'), without).interval is None
    assert ensemble_of(told('own'), without).test['default']['f1'] == 0
    two = ensemble_of(told('own'), examples[:2])  # only what both find
    assert two.test['default']['recall'] == pytest.approx(0.6)
    assert two.interval[0] < 0.75 < two.interval[1]


def record(devel, *losses, alike=0.0, dataset='drugs', task='entities', metric='f1'):
    history = tuple({'loss': loss} for loss in losses)
    scores = {'default': {metric: devel}}
    place = {'model': 'a', 'dataset': dataset, 'task': task, 'setting': 'standard', 'seed': 0}
    return FineTuning(**place, devel=scores, devel_alike=alike, test=scores, history=history)


PUBMEDQA = dict(dataset='pubmedqa', task='classes', metric='accuracy', alike=0.552)
GAD = dict(dataset='gad', task='classes', alike=0.69)
BIOSSES = dict(dataset='biosses', task='similarity', metric='r')


@pytest.mark.parametrize(
    ('found', 'peers', 'reason'),
    [
        (record(0.0, 0.9, 0.2), [0.8], 'devel F1 0.00 is no better than one answer for everything, 0.00'),
        (record(0.5, 0.9, 0.5), [], ''),
        (
            record(0.552, 0.7, 0.1, **PUBMEDQA),
            [0.72, 0.74],
            'devel accuracy 55.20 is no better than one answer for everything, 55.20',
        ),
        (record(0.72, 0.7, 0.1, **PUBMEDQA), [0.552, 0.74], ''),
        (
            record(0.69, 0.7, 0.1, **GAD),
            [0.69, 0.8],
            'devel F1 69.00 is no better than one answer for everything, 69.00',
        ),
        (
            record(-0.31, 0.9, 0.1, **BIOSSES),
            [0.9],
            'devel r -31.00 is no better than one answer for everything, 0.00',
        ),
        # A loss that began low has little to fall, and one that hardly falls is no failure of a good score.
        (record(0.95, 0.0100, 0.0095, **PUBMEDQA), [0.95], ''),
        (record(0.5, 0.9, 0.85), [], ''),
        (
            record(0.39, 0.9, 0.1),
            [0.7, 0.8, 0.9],
            'devel F1 39.00 is below half of the median of its peers, 80.00',
        ),
        (record(0.41, 0.9, 0.1), [0.7, 0.8, 0.9], ''),
    ],
)
def test_failed_runs_are_named_with_the_rule(found, peers, reason):
    assert failure(found, peers) == reason


def test_a_seed_is_no_peer_of_itself():
    good, bad = record(0.8, 1, 0.1), record(0.3, 1, 0.1)
    assert list(failures({0: good, 7: bad})) == [7]
    assert failures({0: good, 1: good}) == {}
    assert failures({0: bad}) == {}


def test_means_with_and_without_failed_runs():
    assert summary({0: 0.8, 1: 0.9, 2: 0.1}, failed=[2]).json() == pytest.approx(
        {
            'seeds': 3,
            'failed': 1,
            'mean': 0.6,
            'median': 0.8,
            'sd': np.std([0.8, 0.9, 0.1], ddof=1),
            'mean_without_failed': 0.85,
            'sd_without_failed': np.std([0.8, 0.9], ddof=1),
        }
    )
    assert summary({4: 0.5}).sd is None
    assert summary({4: 0.5}, failed=[4]).mean_without_failed is None
