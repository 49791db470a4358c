"""Hugging Face folders without their weights: which one a name means, and what decides a model."""

import os
import re
from collections.abc import Callable, Sequence
from pathlib import Path

from bioptimus_jax.config.fields import check_name, meant
from bioptimus_jax.errors import ConfigError, InputError
from bioptimus_jax.hosts.remote.models import ADAPTER, hub_model, model_folder
from bioptimus_jax.model.config import FAMILIES, INITIAL, SNAPSHOT, SOURCE, HasModel, Source, phase_of
from bioptimus_jax.model.weights import WEIGHTS, weight_files
from bioptimus_jax.records.export import ABOUT
from bioptimus_jax.storage.files import JsonObject, digest, read_json, sha256
from bioptimus_jax.tokenizer import subwords

LEARNED = re.compile('Classification|QuestionAnswering|MultipleChoice')
"""What the classes of transformers with a head for a task have in their names."""
SENTENCE_TRANSFORMERS = ('modules.json', 'config_sentence_transformers.json', '1_Pooling')
"""What sentence-transformers writes beside a model."""


def config_values(folder: Path) -> JsonObject:
    """What config.json says of the model in a folder.

    Raises InputError where there is no folder, no such file or an adapter, and for a file that is damaged or names no
    family.
    """
    if not folder.is_dir():
        raise InputError(f'{folder}: no such folder; it must be a Hugging Face folder')
    refuse_adapter(folder)
    file = folder / 'config.json'
    values = read_json(file)
    if values is None:
        raise InputError(f'{file}: no such file; the folder must hold a Hugging Face model')
    if not isinstance(values, dict) or 'model_type' not in values:
        raise InputError(
            f'{file}: has no "model_type"; add the family that the weights are of, as "model_type": "bert"'
        )
    return values


def refuse_adapter(folder: Path) -> None:
    """Raise InputError where an adapter is in a folder: the weights beside it are those of another model."""
    if (folder / ADAPTER).is_file():
        raise InputError(
            f'{folder / ADAPTER}: adapters are not read, and the weights without it are another model; merge it into '
            'them with merge_and_unload() of PEFT, save the result with save_pretrained(), and give that folder (a '
            'source may have one, as config.source.adapter)'
        )


def is_finetuned(folder: Path) -> bool:
    """Whether a head that a task has taught stands on the encoder of a folder: a tagger's or a classifier's."""
    return any(LEARNED.search(str(name)) for name in config_values(folder).get('architectures') or ())


def is_computed_here(folder: Path) -> bool:
    """Whether there is a file for the family of a folder; of other models transformers knows the limits."""
    return config_values(folder).get('model_type') in FAMILIES


def deciding_files(folder: Path) -> list[Path]:
    """The files of a Hugging Face folder that decide what it computes: config.json, weights, tokenizer."""
    refuse_adapter(folder)
    weights = weight_files(folder) or [folder / WEIGHTS[0]]
    tokenizer = [folder / name for name in subwords.file_names() if (folder / name).is_file()]
    return [folder / 'config.json', *weights, *tokenizer]


def content_of(folder: Path) -> str:
    """The digest of the files that decide what a model computes, of those that there are."""
    return digest([sha256(file) for file in deciding_files(folder) if file.is_file()])


def files_for_transformers(folder: Path) -> list[Path]:
    """The files of which transformers may read some: as `deciding_files`, for models that are not computed here."""
    config_values(folder)
    endings = ('.json', '.txt', '.safetensors', '.bin', '.model')
    return sorted(p for p in folder.iterdir() if p.is_file() and p.suffix in endings and p.name != ABOUT)


def source_folder(source: Source, named_in: str = 'config.source.path') -> Path | None:
    """The folder of the source model, of this machine or of the hub's cache; None without one.

    Raises InputError for a folder that is not there, for what the hub does not give, and for an adapter; messages name
    the key or flag that it is `named_in`.
    """
    if not source.path:
        return None
    folder = model_folder(source.path, named_in)
    refuse_adapter(folder)
    return folder


def model_folders(
    experiment: HasModel, stage: Callable[[str], Path], entries: Sequence[str], named_in: str
) -> dict[str, Path]:
    """Name -> Hugging Face folder of models: phases, snapshots, 'initial', 'source', folders, NAME=FOLDER.

    `stage`: gives a stage's finished folder, as `Run.folder`. `named_in`: where the entries were given, for messages.
    Raises ConfigError.
    """
    found: dict[str, Path] = {}
    for entry in entries:
        name, folder = named_model(experiment, entry, named_in)
        if name in found:
            raise ConfigError(
                f'{named_in}: two models are called {name!r}; name one of them as in {name}-2={entry}'
            )
        found[name] = folder or folder_in_run(stage, entry)
    return found


def folder_in_run(stage: Callable[[str], Path], name: str) -> Path:
    """Where the run has a model that it makes itself: the one at step 0, an exported phase or snapshot, or the source
    that an adapter was merged into."""
    if name == SOURCE:
        return stage('surgery') / SOURCE
    return stage('surgery') / 'model' if name == INITIAL else stage('export') / name


def named_model(experiment: HasModel, entry: str, named_in: str) -> tuple[str, Path | None]:
    """The name of a model, and its folder unless the run makes it.

    Raises ConfigError for what is neither a name nor a folder nor a hub id, and for a name that cannot be that of a
    folder, InputError for what the hub does not give.
    """
    name, path = given(entry)
    if path != entry:
        check_name(name, named_in, also=SNAPSHOT)
        return name, model_folder(path, named_in) if hub_model(path) else Path(path)
    if entry == SOURCE:
        if experiment.source.adapter:
            return entry, None
        if (folder := source_folder(experiment.source)) is None:
            raise ConfigError(f'{named_in}: "source" needs config.source.path, which is empty')
        return entry, folder
    if entry == INITIAL or phase_of(entry) in experiment.phases:
        return entry, None
    if Path(entry).is_dir() or (os.sep in entry and hub_model(entry) is None):
        check_name(name_of(entry), f'{named_in}: {entry}: name it, as in NAME={entry}', also=SNAPSHOT)
        return name_of(entry), Path(entry)
    if entry.startswith('$'):
        raise ConfigError(f'{named_in}: {entry} is not set; set that environment variable, or give folders')
    misspelt, wanted = meant(entry, (*experiment.phases, INITIAL, SOURCE)), hub_model(entry)
    unknown = (
        f'{named_in}: {entry!r} is not a phase ({", ".join(experiment.phases)}), not "initial", not "source", and not '
        'the path of a folder'
    )
    if wanted is None or misspelt:
        raise ConfigError(f'{unknown}{misspelt}')
    check_name(name_of(wanted.name), f'{named_in}: {entry}: name it, as in NAME={entry}', also=SNAPSHOT)
    try:
        return name_of(wanted.name), model_folder(entry, named_in)
    except InputError as error:
        if '/' in entry:
            raise
        raise ConfigError(f'{unknown}; as a hub id: {error}') from error


def given(entry: str) -> tuple[str, str]:
    """The name that an entry of models has of NAME=PLACE, or after its place, and that place."""
    name, equals, path = entry.partition('=')
    if equals and os.sep not in name:
        return name, path
    wanted = hub_model(entry)
    return name_of(wanted.name if wanted else entry), entry


def has_sentence_vectors(folder: Path) -> bool:
    """Whether a model was made for vectors of sentences: by the files that sentence-transformers writes beside it."""
    return any((folder / name).exists() for name in SENTENCE_TRANSFORMERS)


def name_of(folder: str) -> str:
    """What a folder's model is called: its last part, with the run's for what a run has exported. Always the same."""
    *parents, last = Path(folder).parts or ('',)
    if parents[-1:] == ['export'] and len(parents) > 1:
        last = f'{parents[-2]}_{last}'
    elif [*parents[-1:], last] == ['surgery', 'model'] and len(parents) > 1:
        last = f'{parents[-2]}_initial'
    return re.sub(r'[^\w.@-]+', '_', last).strip('_.')
