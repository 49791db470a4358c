"""A stage that counts its calls."""

import dataclasses

from bioptimus_jax.experiment import config
from bioptimus_jax.experiment.schema import Experiment
from bioptimus_jax.records.counts import Counts, StageResult
from bioptimus_jax.run.stage import Stage
from bioptimus_jax.storage.files import atomic

CALLS = []


@dataclasses.dataclass(frozen=True, kw_only=True)
class NumberCounts(Counts):
    """What it counts."""

    STAGE = 'corpus'
    numbers: int


NOTHING_COUNTED = StageResult(Counts())


def count_to_three(run, folder):
    CALLS.append(run.config.corpus.min_words)
    with atomic(folder / 'numbers.txt') as file:
        file.write('1 2 3')
    return StageResult(NumberCounts(numbers=3))


def make_stage(build=count_to_three, **changes):
    settings = dict(sections=('corpus',), needs=lambda run: (), external=lambda experiment: [])
    return Stage('corpus', 'counts', 'nothing', 'numbers', build=build, **{**settings, **changes})


def experiment(**changes):
    loaded = config.defaults()
    for dotted, text in changes.items():
        config.override(loaded, dotted.replace('__', '.'), str(text))
    return Experiment.from_config(loaded)
