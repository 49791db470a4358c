"""A whole run from objects to objects, by a recipe, in a process of its own."""

import glob
import itertools
import math
import os
import shlex
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from bioptimus_jax.api.objects import (
    PLACE,
    FilePath,
    Keys,
    ModelOrFolder,
    Texts,
    TokenizerOrFolder,
    as_folder,
    check_whole,
    experiment,
    habits_of,
    keys_of,
    model_in,
    plain,
    subwords_of,
    texts_of,
    tokenizer_in,
    undisturbed,
    workplace,
    write_texts,
)
from bioptimus_jax.api.program import (
    CONFIG,
    GIVEN,
    Shows,
    begun,
    check_same,
    config_text,
    run_program,
    run_verb,
)
from bioptimus_jax.corpus.config import Corpus, enough_held_out
from bioptimus_jax.errors import ConfigError
from bioptimus_jax.experiment import config
from bioptimus_jax.experiment.schema import Experiment
from bioptimus_jax.hosts import devices
from bioptimus_jax.hosts.remote.models import at_commit, model_folder
from bioptimus_jax.rows.config import Rows
from bioptimus_jax.storage.files import digest

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

TRAINING = tuple(Experiment().stages[: Experiment().stages.index('export') + 1])
"""The stages of `adapt`: what ends with a model."""
RECOMMENDED, PAPER = 'recommended', 'paper'
CONFIG_OF_THE_PAPER = 'bioptimus'
OF_ITS_DATA: Keys = {
    'corpus.published_before': Corpus.published_before,
    'corpus.max_words': Corpus.max_words,
    'corpus.audit.folder': '',
    'finetune.folder': '',
}
"""What the config of the paper says of its own texts and sets, taken back."""
TextsOrFiles: TypeAlias = Texts | FilePath | Iterable[os.PathLike[str]]


def adapt(
    model: 'ModelOrFolder | None',
    tokenizer: 'TokenizerOrFolder | None',
    texts: TextsOrFiles | None,
    workdir: FilePath,
    *,
    recipe: str = RECOMMENDED,
    hours: float = 1.0,
    keys: Keys | None = None,
    quiet: bool = False,
    progress: bool | None = None,
) -> tuple['PreTrainedModel', 'PreTrainedTokenizerBase']:
    """Adapt a model to texts: vocabulary, rows of new tokens, pre-training; returns the model of the last phase.

    `model`: of transformers with `tokenizer`, a Hugging Face folder or hub id with None, or None where a config names a
    source. `texts`: documents, rows of a data set with a column `text`, a file or glob, several of these as paths, or
    None where `keys` or a config name files (`{'corpus.inputs': ('a/*.gz',)}`).
    `workdir`: the run folder, which stays: exports, with a pooler where the model had one, what was measured, and
    `given/config.py`, with which `bioptimus` continues.

    `recipe`: 'recommended', what `bioptimus init` writes for this model, these texts, this machine and so many `hours`;
    'paper', the paper's rows, phases and 34 passes, in parts that fit this machine; or a shipped config or a .py file.
    `keys`: values by their dotted names, as `{'vocab.size': 8000, 'phase.words.duration': 0.5}`. `quiet`: no lines.
    `progress`: a bar; by default on a terminal and in a notebook, unless `quiet`.

    It is `bioptimus run` in a process of its own. The same call continues a run that was interrupted, and returns the
    finished model of one that was not. The last stage is export; to measure, give the model to `finetune`.

    Raises ConfigError, InputError as the program does, KeyboardInterrupt after saving, and RuntimeError for a crash.
    """
    run, shows, own = Path(workdir).absolute(), Shows.of(quiet, progress), dict[str, Any](stages=TRAINING)
    with workplace() as place, undisturbed():
        (place / GIVEN).mkdir()
        casing: Keys = {} if model is None else _source(place, model, tokenizer, own)
        own |= _inputs(place, texts) if texts is not None else {}
        own |= keys or {}
        check_same(place / GIVEN, run)
        values = {name: str(plain(value)).replace(str(place), '') for name, value in own.items()}
        mark = f'ASKED = {digest([recipe, hours, values])!r}  # the same call of bx.adapt goes on with this file\n'
        text = _earlier(run, mark)
        if not text:
            by_init = recipe == RECOMMENDED
            text = _recommended(place, own, hours, shows) if by_init else _by_config(recipe, own, casing)
            # In the quotes of repr, which a path may have as well.
            there = str(run).replace('\\', r'\\').replace("'", r'\'')
            text = f'{text.replace(str(place), there)}\n\n{mark}'
            if not quiet and (said := _reasons(text)):
                print(said, flush=True)
        run_verb('run', place, run, text, shows)
    with undisturbed():
        made = run / 'export' / _last_phase(run)
        habits = {} if model is None else habits_of(model if isinstance(model, PLACE) else tokenizer)
        habits.pop('model_max_length', None)  # an export says the positions of its model
        return model_in(made), tokenizer_in(made, habits)


def _source(place: Path, model: ModelOrFolder, tokenizer: Any, own: dict[str, Any]) -> Keys:
    """The kind and casing of a source, which is written below `place` where it is an object; adds its path to `own`."""
    source = as_folder(place / GIVEN / 'model', model, tokenizer)
    own['source.path'] = str(source)
    if isinstance(model, PLACE) and not Path(model).is_dir():
        own['source.path'] = at_commit(os.fspath(model))
    return keys_of(subwords_of(place, source))


def _inputs(place: Path, texts: TextsOrFiles) -> Keys:
    """The keys that say where the texts are. Texts themselves are written below `place`. Raises ConfigError."""
    if isinstance(texts, str | bytes) and not glob.glob(os.fsdecode(texts)):
        raise ConfigError(f'texts: {texts!r:.60} is no file and no glob of files; give a list of texts')
    given: Iterator[Any] = iter([Path(os.fsdecode(texts))] if isinstance(texts, PLACE) else texts)
    first = list(itertools.islice(given, 1))
    if first and isinstance(first[0], os.PathLike):
        return {'corpus.inputs': tuple(os.path.abspath(name) for name in (*first, *given))}
    check_whole(texts)
    file, count = place / GIVEN / 'texts.jsonl', itertools.count()
    write_texts(file, (text for text, _ in zip(texts_of(itertools.chain(first, given)), count, strict=False)))
    held = enough_held_out(next(count))
    return {'corpus.inputs': (file,), 'corpus.text_fields': ('text',), 'corpus.heldout_fraction': held}


def _earlier(run: Path, mark: str) -> str:
    """The config file that the same call wrote when it began the run: measured again now, it would differ."""
    file = run / GIVEN / CONFIG
    text = file.read_text('utf-8') if begun(run) and file.is_file() else ''
    return text if text.endswith(mark) else ''


def _recommended(place: Path, own: Keys, hours: float, shows: Shows) -> str:
    """The config file that `bioptimus init` writes, in a process of its own, as it measures the machine with jax."""
    if isinstance(hours, bool) or not isinstance(hours, int | float) or not 0 < hours < math.inf:
        raise ConfigError(f'hours: must be a number above 0, is {hours!r:.40}')
    for key, remedy in (('source.path', 'model'), ('corpus.inputs', 'texts')):
        if key not in own:
            raise ConfigError(f'{remedy}: is missing; recipe={RECOMMENDED!r} is made for it')
    experiment(own, base=RECOMMENDED)  # what is wrong with a key is said before anything is measured
    file, others = place / GIVEN / CONFIG, {**own}
    source, inputs = others.pop('source.path'), others.pop('corpus.inputs')
    if not shows.quiet:
        print('adapt: looks at the model, the texts and this machine', flush=True)
    flags = [f'--source={os.fspath(source)}', f'--texts={shlex.join(map(os.fspath, inputs))}']
    keys = [f'--config.{name}={plain(value)}' for name, value in others.items()]
    run_program(['init', str(file), *flags, f'--hours={hours:g}', *keys], Shows(quiet=True, bar=False))
    return file.read_text('utf-8')


def _reasons(text: str) -> str:
    """The lines of a config file that say why."""
    found = [line.strip() for line in text.splitlines() if line.startswith('    config.') and '  # ' in line]
    return '\n'.join(line for line in found if not line.endswith('# as you asked'))


def _by_config(recipe: str, own: Keys, casing: Keys) -> str:
    """The config file of the paper's recipe, or of a config by its name or file."""
    if recipe != PAPER:
        experiment(own, base=recipe)
        return config_text('run', f'load({recipe!r})', own)
    if 'source.path' not in own:
        raise ConfigError(f'model: is missing; recipe={PAPER!r} adapts one')
    folder = model_folder(os.fspath(own['source.path']), 'model')
    # Late: these import jax.
    from bioptimus_jax.model.tensors import read_architecture
    from bioptimus_jax.pretrain.memory import parts_that_fit
    from bioptimus_jax.pretrain.plan import planned_architecture

    positions = read_architecture(folder).positions
    whole = {
        **OF_ITS_DATA,
        **casing,
        'rows.max_document_pieces': min(positions, Rows.max_document_pieces),
        **own,
    }
    wanted, here = experiment(whole, base=CONFIG_OF_THE_PAPER), devices.look()
    if 'pretrain.micro_batches' not in own:
        shape, _ = planned_architecture(wanted)
        whole['pretrain.micro_batches'] = parts_that_fit(wanted, shape, here, here.count) or 1
    return config_text('run', f'load({CONFIG_OF_THE_PAPER!r})', whole)


def _last_phase(run: Path) -> str:
    """The phase that was trained last: the order may have been computed."""
    from bioptimus_jax.pretrain.curriculum import read_phases  # late: imports jax

    if trained := [placed.name for placed in read_phases(run / 'pretrain')]:
        return trained[-1]
    return Experiment.from_config(config.load(str(run / GIVEN / CONFIG))).phases[-1]
