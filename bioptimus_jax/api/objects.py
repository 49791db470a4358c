"""Objects of transformers as folders, which the stages read, and back; and settings by their dotted names."""

import contextlib
import copy
import operator
import os
import tempfile
import warnings
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from bioptimus_jax.config.fields import MOST
from bioptimus_jax.errors import ConfigError, InputError
from bioptimus_jax.experiment import config
from bioptimus_jax.experiment.schema import Experiment
from bioptimus_jax.hosts.remote.models import downloaded, hub_model, model_folder
from bioptimus_jax.hosts.settled import settled
from bioptimus_jax.model.folder import config_values
from bioptimus_jax.progress.console import shortened
from bioptimus_jax.storage.files import JsonObject, write_jsonl
from bioptimus_jax.tokenizer import subwords
from bioptimus_jax.tokenizer.subwords import READY, SETTINGS, Subwords, kind_name
from bioptimus_jax.vocab import agreement

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

PLACE = (str, os.PathLike)
FilePath: TypeAlias = str | os.PathLike[str]
ModelOrFolder: TypeAlias = 'PreTrainedModel | FilePath'
"""A model of transformers, its folder, or its id on the hub, as `OWNER/NAME` or `OWNER/NAME@REVISION`."""
TokenizerOrFolder: TypeAlias = 'PreTrainedTokenizerBase | FilePath'
"""A fast tokenizer of transformers, its folder, or its id on the hub."""
Keys: TypeAlias = Mapping[str, Any]
"""Values by the dotted names of the configuration, as `{'vocab.size': 8000}`."""


TEXT = 'text'
"""The column of a data set that has its texts."""
Texts: TypeAlias = Iterable[str] | Iterable[Mapping[str, Any]]
"""Texts, or the rows of a data set that has a column `text`, as a `Dataset` of datasets."""

WRAPPERS = {
    'PeftModel': 'give what its merge_and_unload() returns',
    'SentenceTransformer': 'give its [0].auto_model, with its tokenizer',
    'OptimizedModule': 'give its _orig_mod, which torch.compile had',
    'DataParallel': 'give its module',
    'DistributedDataParallel': 'give its module',
    'FullyShardedDataParallel': 'save it, and give the folder',
    'LightningModule': 'give the model that is in it',
}
"""Classes of other libraries that hold a model of transformers, and what to give in their place."""


@contextlib.contextmanager
def workplace() -> Iterator[Path]:
    """A temporary folder, gone afterwards; messages name what is in it without its place."""
    with tempfile.TemporaryDirectory(prefix='bioptimus-') as name:
        try:
            yield Path(name)
        except (ConfigError, InputError) as error:
            # Not made anew: some of their kinds take other arguments.
            error.args = (str(error).replace(f'{name}{os.sep}', ''),)
            raise


@contextlib.contextmanager
def undisturbed() -> Iterator[None]:
    """Give back what stages set for a process of their own: torch's threads, how loud transformers is; and jax's."""
    import torch
    from transformers.utils import logging

    threads, loud, bars = torch.get_num_threads(), logging.get_verbosity(), logging.is_progress_bar_enabled()
    try:
        logging.disable_progress_bar()
        logging.set_verbosity_error()
        with settled():
            yield
    finally:
        torch.set_num_threads(threads)
        logging.set_verbosity(loud)
        if bars:
            logging.enable_progress_bar()


def as_folder(folder: Path, model: Any, tokenizer: Any) -> Path:
    """The folder of a model and its tokenizer: that of a path or hub id, or `folder`, where objects are written.

    Raises ConfigError where one of them is missing, or is neither a plain object of transformers nor a folder, and
    InputError for a folder without a model, or with an adapter.
    """
    if isinstance(model, PLACE):
        if tokenizer is not None:
            raise ConfigError('tokenizer: a model that is a folder has its own; give the folder alone')
        found = model_folder(os.fspath(model), 'model')
        config_values(found)
        return found.absolute()
    check_plain(model)
    if tokenizer is None:
        raise ConfigError('tokenizer: is missing; a model that is an object needs its tokenizer')
    _saved(folder, model, 'model')
    if isinstance(tokenizer, PLACE):
        tokenizer = agreement.load_in_transformers(tokenizer_place(tokenizer))
    return _saved(folder, tokenizer, 'tokenizer')


def loaded_from(model: 'PreTrainedModel', asked: str) -> Path | None:
    """The folder that a model of transformers was loaded from, which may say more than it does: of a hub id that of the
    hub's cache.

    transformers 5.23 does not keep the commit, so it is the one that the id has now. `asked`: the file that is looked
    for there. None, with a warning, where the hub does not say whether there is one; None also for a model that was
    not loaded.
    """
    place = model.name_or_path
    if not (wanted := hub_model(place)):
        return Path(place) if place else None
    try:
        return downloaded(wanted, False, asked)
    except InputError:
        warnings.warn(
            f'model: is read by the defaults, as the hub does not say whether {place} has {asked}; give the folder or '
            'the id instead of the object',
            stacklevel=3,
        )
        return None


def check_plain(model: Any) -> None:
    """Raise ConfigError for anything but a plain model of transformers, and say what to give instead.

    What such an object adds would be lost, in silence, where its model is written and read.
    """
    from transformers import PreTrainedModel  # late: imports torch

    kinds = [kind.__name__ for kind in type(model).__mro__]
    if remedy := next((WRAPPERS[name] for name in kinds if name in WRAPPERS), ''):
        raise ConfigError(f'model: {type(model).__name__} is no plain model of transformers; {remedy}')
    if not isinstance(model, PreTrainedModel):
        raise ConfigError(f'model: got {type(model).__name__}; give one of transformers, or a folder')
    if hasattr(model, 'peft_config') or any('.base_layer.' in name for name, _ in model.named_parameters()):
        raise ConfigError(
            'model: has layers of an adapter (add_adapter), which are not read; give what '
            'PeftModel.from_pretrained(MODEL, ADAPTER).merge_and_unload() of PEFT returns for the model without it'
        )


def _saved(folder: Path, given: Any, name: str) -> Path:
    if not hasattr(given, 'save_pretrained'):
        raise ConfigError(f'{name}: got {type(given).__name__}; give one of transformers, or a folder')
    given.save_pretrained(folder)
    return folder


def subwords_of(folder: Path, tokenizer: Any) -> Subwords:
    """A tokenizer as the stages know it; an object is written to `folder`. Raises ConfigError, InputError."""
    given = isinstance(tokenizer, PLACE)
    place = tokenizer_place(tokenizer) if given else _saved(folder, tokenizer, 'tokenizer')
    known = subwords.load(place)
    known.kind.check(known, place)
    return known


def tokenizer_place(given: FilePath) -> Path:
    """The folder or file of a tokenizer; of a hub id all but its weights. Raises InputError."""
    wanted = hub_model(os.fspath(given))
    return downloaded(wanted, weights=False) if wanted else Path(given)


def keys_of(known: Subwords) -> Keys:
    """The keys that say which kind and casing a tokenizer has."""
    return {'vocab.tokenizer': kind_name(known.kind), 'vocab.lowercase': known.lowercase}


HABITS = ('padding_side', 'truncation_side', 'model_input_names', 'model_max_length')
"""What a tokenizer of transformers does beside cutting texts."""


def habits_of(tokenizer: Any) -> JsonObject:
    """The HABITS of a tokenizer; empty for a file or folder that says nothing of them."""
    if isinstance(tokenizer, PLACE):
        place = tokenizer_place(tokenizer)
        place = place.parent if place.name == READY else place
        if not (place / SETTINGS).is_file():
            return {}
        tokenizer = agreement.load_in_transformers(place)
    return {name: getattr(tokenizer, name) for name in HABITS}


def tokenizer_in(folder: Path, habits: Mapping[str, Any]) -> Any:
    """The tokenizer of a folder, which may then be removed, with the HABITS of another."""
    tokenizer = agreement.load_in_transformers(folder, **habits)
    tokenizer.name_or_path = ''
    return tokenizer


def own_model(folder: Path) -> Any:
    """The model of a folder as transformers has it: of the class that config.json names, in the type of its weights.

    Where no class is named, a masked language model, or without the head of one a bare encoder. Raises InputError.
    """
    import transformers

    from bioptimus_jax.finetuning.loading import load_weights  # late: imports torch

    named = config_values(folder).get('architectures') or []
    if not named:
        made, info = load_weights(folder, 'AutoModelForMaskedLM', dtype='auto')
        return load_weights(folder, 'AutoModel', dtype='auto')[0] if info['missing_keys'] else made
    if not hasattr(transformers, str(named[0])):
        raise InputError(
            f'{folder / "config.json"}: "architectures" names {named[0]}, which transformers does not have; give the '
            'model and its tokenizer as objects'
        )
    return load_weights(folder, named[0], dtype='auto')[0]


def model_in(folder: Path, like: Any = None) -> Any:
    """The model of a folder: of the class that it names, or of that of `like`, a model that was adapted.

    Then settings, type, device and whatever head the folder lacks are those of `like`. Raises InputError.
    """
    from bioptimus_jax.finetuning.loading import load_weights  # late: imports torch

    written = config_values(folder)
    if like is None:
        return load_weights(folder, written['architectures'][0])[0]
    settings = copy.deepcopy(like.config)
    for key, value in written.items():
        if not ('dropout' in key or key in ('architectures', 'dtype')):
            setattr(settings, key, value)
    made, info = load_weights(folder, type(like), config=settings)
    kept = {name: tensor for name, tensor in like.state_dict().items() if name in info['missing_keys']}
    made.load_state_dict(kept, strict=False)
    made.name_or_path = like.name_or_path
    return made.to(like.device, like.dtype).train(like.training)


def texts_of(given: Texts, name: str = 'texts') -> Iterator[str]:
    """The texts of an argument of that name, one by one. Raises ConfigError for what is not a text."""
    check_whole(given, name)
    for number, row in enumerate(given):
        text = row.get(TEXT) if isinstance(row, Mapping) else row
        if not isinstance(text, str):
            is_row = isinstance(row, Mapping) and text is None
            what = f'a row without {TEXT!r} ({shortened(row)})' if is_row else type(text).__name__
            raise ConfigError(f'{name}: number {number} is not a text, but {what}')
        yield text


def is_table(given: object) -> bool:
    """Whether this is a DataFrame: a loop over one gives the names of its columns."""
    return hasattr(given, 'columns') and hasattr(given, 'to_dict')


def as_json(value: Any) -> Any:
    """A value as JSON can hold it: without arrays and numbers of numpy, torch or pandas, at any depth."""
    if isinstance(value, Mapping):
        return {key: as_json(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [as_json(one) for one in value]
    made = value.tolist() if hasattr(value, 'tolist') else value
    return made if type(made) is type(value) else as_json(made)


def check_whole(given: object, name: str = 'texts') -> None:
    """Raise ConfigError for one text, no list, a table, and texts in several parts, as a `DatasetDict` has them."""
    if isinstance(given, str | bytes):
        raise ConfigError(f'{name}: is one text; give a list of them')
    if is_table(given):
        raise ConfigError(f"{name}: is a table; give a column of it, as table['text']")
    if not isinstance(given, Iterable) and not hasattr(given, '__getitem__'):
        raise ConfigError(f'{name}: is {type(given).__name__}; give a list of texts')
    if isinstance(given, Mapping):
        raise ConfigError(f'{name}: has the parts {shortened(given)}; give one of them')


def write_texts(file: Path, texts: Iterable[str]) -> None:
    """Texts as a .jsonl of documents, numbered from 0."""
    write_jsonl(file, ({'id': str(number), 'text': text} for number, text in enumerate(texts)))


def whole_number(name: str, value: Any, low: int) -> int:
    """The value of an argument of that name that no key of the configuration checks. Raises ConfigError."""
    try:
        number = None if isinstance(value, bool) else operator.index(value)
    except TypeError:
        number = None
    if number is None or not low <= number <= MOST:
        raise ConfigError(f'{name}: must be a whole number of at least {low}, is {value!r:.40}')
    return number


OF_TEXTS: Keys = {'corpus.text_fields': ('text',), 'corpus.min_words': 1, 'corpus.near.threshold': 0.0}
"""How a file of `write_texts` is read, whatever texts it has."""


def experiment(*several: Keys, base: str = '') -> Experiment:
    """The experiment of a config, or of all defaults, with these keys, the later ones first. Raises ConfigError."""
    wanted = config.load(base) if base else config.defaults()
    for keys in several:
        for name, value in keys.items():
            config.override(wanted, name, str(plain(value)))
    return Experiment.from_config(wanted)


def plain(value: Any) -> Any:
    """A value of `keys` without objects for paths: what a config file can say."""
    if isinstance(value, list | tuple):
        return tuple(map(plain, value))
    return os.fspath(value) if isinstance(value, os.PathLike) else value
