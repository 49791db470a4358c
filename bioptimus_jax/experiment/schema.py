"""A whole experiment: the sections of all rooms, assembled.

Keys under `runtime`, and keys that hold paths, never change a result; every other key is a *result* key and enters the
fingerprint of the stages that read its section.
"""

import dataclasses
import itertools
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from ml_collections import ConfigDict

from bioptimus_jax.analysis.config import Analysis
from bioptimus_jax.config.bounds import LARGEST_SEED
from bioptimus_jax.config.fields import (
    as_config,
    common_key,
    key,
    named,
    put,
    record_from,
    require_installed,
    section,
)
from bioptimus_jax.corpus.config import Corpus
from bioptimus_jax.errors import ConfigError
from bioptimus_jax.experiment.checks import inconsistencies, unread_files, unset_variables
from bioptimus_jax.finetuning.config import Finetune
from bioptimus_jax.hosts.config import Runtime
from bioptimus_jax.model.config import Model, Source
from bioptimus_jax.pretrain.config import (
    OBJECTIVES,
    PAPER_PHASES,
    Corpora,
    Curriculum,
    Evaluation,
    Phase,
    Pretrain,
)
from bioptimus_jax.pretrain.shape import row_shapes_of
from bioptimus_jax.pretrain.shares import OWN
from bioptimus_jax.records.manifests import Begun, ConfigValues, Manifest
from bioptimus_jax.rows.config import Rows, RowShape
from bioptimus_jax.surgery.config import Surgery
from bioptimus_jax.tokenizer.config import Vocab
from bioptimus_jax.vocab.config import Contexts


@dataclasses.dataclass(frozen=True)
class Experiment:
    """A whole experiment; `configs/*.py` change its defaults."""

    seed: int = key(0, 'seed of everything but evaluation', low=0, high=LARGEST_SEED)
    stages: tuple[str, ...] = key(
        tuple('corpus vocab contexts surgery rows pretrain export finetune analyze report'.split()),
        'what `run` does, in this order',
    )
    phases: tuple[str, ...] = common_key(tuple(PAPER_PHASES), 'curriculum: names of `phase`, in order')
    phase: Mapping[str, Phase] = named(lambda name: Phase, PAPER_PHASES)
    corpora: Mapping[str, Corpora] = named(lambda name: Corpora, {})
    source: Source = section(Source)
    corpus: Corpus = section(Corpus)
    vocab: Vocab = section(Vocab)
    contexts: Contexts = section(Contexts)
    model: Model = section(Model)
    surgery: Surgery = section(Surgery)
    rows: Rows = section(Rows)
    curriculum: Curriculum = section(Curriculum)
    pretrain: Pretrain = section(Pretrain)
    objective: Mapping[str, Any] = named(
        OBJECTIVES.settings,
        {},
        "by name, an objective's own settings: a record in its file",
        names=OBJECTIVES,
    )
    evaluation: Evaluation = section(Evaluation)
    finetune: Finetune = section(Finetune)
    analysis: Analysis = section(Analysis)
    runtime: Runtime = section(Runtime)

    @property
    def trained_phases(self) -> tuple[Phase, ...]:
        """The records of `phases`."""
        return tuple(self.phase[name] for name in self.phases)

    @property
    def row_shapes(self) -> tuple[RowShape, ...]:
        """The shapes of all training rows, each once: that of `rows` first, then those of `phases`."""
        return row_shapes_of(RowShape.of(self.rows), self.trained_phases)

    @property
    def trained_objectives(self) -> tuple[str, ...]:
        """The objectives of `phases`, each once."""
        return tuple(dict.fromkeys(map(self.objective_in, self.phases)))

    @property
    def all_objectives(self) -> tuple[str, ...]:
        """The run's own objective, which scores and exports, and those of `phases`, each once."""
        return tuple(dict.fromkeys((self.pretrain.objective, *self.trained_objectives)))

    @property
    def resolved(self) -> 'Experiment':
        """The same with every setting of its objectives: what is not given, as their files have it now."""
        settings = {n: self.objective.get(n) or OBJECTIVES.settings(n)() for n in self.all_objectives}
        return dataclasses.replace(self, objective=settings)

    def objective_in(self, phase: str) -> str:
        """The objective of the phase of that name."""
        return self.phase[phase].objective or self.pretrain.objective

    def phases_under(self, name: str) -> tuple[str, ...]:
        """The names among `phases` of those with that objective."""
        return tuple(phase for phase in self.phases if self.objective_in(phase) == name)

    @classmethod
    def from_config(cls, config: ConfigDict, paths: bool = True) -> 'Experiment':
        """The frozen experiment of `config`. Raises ConfigError, naming the key, for anything unknown or wrong.

        Without `paths`, environment variables that paths name may be unset, but for those of `runtime`: nothing that
        they name is going to be read.
        """
        experiment = record_from(cls, config)
        # An initialisation's settings are light to look up, those of objectives are not: see `resolved`.
        experiment = dataclasses.replace(experiment, surgery=experiment.surgery.resolved)
        unset = unset_variables(experiment, '' if paths else 'runtime.')
        for wrong in itertools.chain(
            unset, unread_files(experiment) if paths else (), inconsistencies(experiment)
        ):
            raise ConfigError(wrong)
        return experiment

    @classmethod
    def overlaid(cls, config: ConfigDict, records: Iterable[ConfigValues]) -> 'Experiment':
        """The experiment of a config with every key that the records have: `dotted name -> value`, the last one counts.

        Raises ConfigError where they do not belong together, or name a plug-in that is not installed.
        """
        for record in records:
            for dotted, value in record.items():
                require_installed(cls, dotted, value)
                put(config, cls, dotted, value)
        # What was begun with other phases may still name their objectives.
        phases = (config.phase[name].objective for name in config.phases if name in config.phase)
        for name in set(config.objective) - {config.pretrain.objective, *phases}:
            del config.objective[name]
        for name in set(config.surgery.own) - {config.surgery.strategy}:
            del config.surgery.own[name]
        # An entry of `corpora` is a path alone, so no record has one.
        weights = (
            one for name in config.phases if name in config.phase for one in config.phase[name].corpora
        )
        for name in {weight.partition('=')[0] for weight in weights} - {OWN, *config.corpora}:
            put(config, cls, f'corpora.{name}.run', '')
        return cls.from_config(config, paths=False)

    def recorded_by(self, manifest: Callable[[str], Begun | None]) -> 'Experiment':
        """The experiment as the manifests of its stages record it; what none of them records is as it is here.

        Raises ConfigError where they do not belong together.
        """
        manifests = (manifest(stage) or Manifest() for stage in Experiment().stages)
        return self.overlaid(as_config(self), [found.settings for found in manifests])
