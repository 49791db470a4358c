"""The settings that the stages of a run were made with, by their records, whatever is asked for now."""

from collections.abc import Iterable, Mapping
from typing import Any

from ml_collections import ConfigDict

from bioptimus_jax.fields import as_config, put, walk
from bioptimus_jax.run import Run
from bioptimus_jax.schema import Experiment


def as_made(run: Run) -> Experiment:
    """The experiment of a run as its finished stages record it; what none of them records is as given.

    Raises ConfigError where the records do not belong together.
    """
    manifests = (run.manifest(stage) or {} for stage in Experiment().stages)
    return overlaid(as_config(run.config), [manifest.get('config', {}) for manifest in manifests])


def overlaid(config: ConfigDict, records: Iterable[Mapping[str, Any]]) -> Experiment:
    """The experiment of a config with every key that the records have: `dotted name -> value`, the last one counts.

    A key that is newer than the record of its section is what was done before there was the key. Raises ConfigError
    where they do not belong together.
    """
    known = {dotted: value for record in records for dotted, value in record.items()}
    for dotted, _, metadata in walk(Experiment()):
        other, values = metadata.get('only_with') or (dotted, ())
        value, before = known.get(other), metadata.get('before')
        # A record that knew the key would have it. (A range is searched number by number for None.)
        if before is not None and value is not None and value in values:
            known.setdefault(dotted, before)
    for dotted, value in known.items():
        put(config, Experiment, dotted, value)
    # What was begun with other phases may still name their objectives.
    phases = (config.phase[name].objective for name in config.phases if name in config.phase)
    for name in set(config.objective) - {config.pretrain.objective, *phases}:
        del config.objective[name]
    return Experiment.from_config(config, paths=False)
