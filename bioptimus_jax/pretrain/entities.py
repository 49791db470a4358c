"""F1 of entities at every evaluation, from frozen states: a measure of the task while a model still trains.

The held-out loss tells how far a training is. Within a training F1 from frozen states follows F1 after fine-tuning with
a correlation of 0.90 (docs/lab/entities.md). `scoring/frozen.py` says how it is measured.
"""

import dataclasses
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jax

from bioptimus_jax.errors import ConfigError, InputError
from bioptimus_jax.pretrain.config import HasTraining
from bioptimus_jax.pretrain.objective import Evaluation, Objective
from bioptimus_jax.pretrain.sharding import gathered
from bioptimus_jax.records.metrics import ENTITY_SET
from bioptimus_jax.run.processes import of_first
from bioptimus_jax.scoring.frozen import parts_of
from bioptimus_jax.scoring.frozen_sets import FrozenSets
from bioptimus_jax.sets.config import ENTITIES, ChoosesSets
from bioptimus_jax.sets.corpora import chosen_sets, split_files
from bioptimus_jax.sets.tags import OUTSIDE
from bioptimus_jax.tokenizer.subwords import Subwords


@dataclasses.dataclass(frozen=True)
class WithEntities:
    """An evaluation, and after it `entities/SET` for every set: F1 from frozen states, between 0 and 1.

    `sets`: None where another process leads, which scores them for all.
    """

    evaluation: Evaluation
    objective: Objective
    subwords: Subwords
    names: tuple[str, ...]
    sets: FrozenSets | None

    def save(self, folder: Path) -> None:
        """Save the evaluation; sentences are chosen by hash, so nothing else was drawn."""
        self.evaluation.save(folder)

    def scores(self, params: Any, frozen: Any, every_setting: bool) -> Iterator[tuple[str, float]]:
        """Scores of the evaluation, and F1 on each set of the model that would be exported."""
        yield from self.evaluation.scores(params, frozen, every_setting)
        architecture, model = self.objective.exports(params)['']
        model = gathered(model)
        found = [0.0] * len(self.names)
        if self.sets:
            on_device = jax.device_put(model, jax.local_devices()[0])
            found = [r.f1 for r in self.sets.records('', self.subwords, architecture, on_device)]
        for name, f1 in zip(self.names, of_first(found), strict=True):
            yield f'{ENTITY_SET}{name}', f1


def with_entities(
    evaluation: Evaluation, e: HasTraining, leads: bool, objective: Objective, subwords: Subwords
) -> Evaluation:
    """An evaluation that scores the sets of config.evaluation.entities as well, if there are any.

    `leads`: whether this is the process that reads them.
    """
    if not e.evaluation.entities:
        return evaluation
    return WithEntities(evaluation, objective, subwords, e.evaluation.entities, sets_of(e) if leads else None)


def files(e: HasTraining) -> list[Path]:
    """The training splits that it reads. Raises ConfigError, InputError for sets that cannot be."""
    if not e.evaluation.entities:
        return []
    if not e.finetune.folder:
        raise ConfigError(
            'config.evaluation.entities: names sets, but config.finetune.folder is empty; set it to the folder that '
            'they are in'
        )
    chosen = chosen_sets(_named(e))
    for one in chosen:
        if one.task != ENTITIES:
            raise ConfigError(
                f'config.evaluation.entities: {one.name} has no entities, its task is {one.task}; leave it out'
            )
    return [file for one in chosen for file in split_files(one.folder, 'train')]


def sets_of(e: HasTraining) -> FrozenSets:
    """The chosen sentences of every set. Raises InputError where F1 would be 0 whatever the model is."""
    sets = FrozenSets.of(_named(e), e.evaluation.entity_sentences)
    for name, sentences in sets.sentences.items():
        wrong = ''
        if not any(tag != OUTSIDE for s in sentences for tag in s.tags):
            wrong = 'no entity'
        elif len(set(parts_of(sentences))) < 2:
            wrong = 'a single document or sentence, and a tagger is tried on others than it is fitted on'
        if wrong:
            raise InputError(
                f'config.evaluation.entities: the {len(sentences):,} training sentences of {name} have {wrong}; raise '
                'config.evaluation.entity_sentences, or leave the set out'
            )
    return sets


def check(e: HasTraining) -> None:
    """Raise InputError for sets that cannot be scored, before anything is trained."""
    if e.evaluation.entities:
        sets_of(e)


def _named(e: HasTraining) -> ChoosesSets:
    return dataclasses.replace(e.finetune, datasets=e.evaluation.entities)
