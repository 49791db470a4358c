"""How difficult the masking settings are for one model, and the order of the curriculum by it (paper, Figure 4).

The order goes by the perplexity at [MASK]ed positions unless config.curriculum.measure says otherwise. Over all
selected ones, kept tokens, which are nearly free for a model that has learned much, make a setting look easier.

The texts must be of a domain that the probe was not trained on; where none are named, this run's held-out documents
are taken, which at least are no training text. What is measured: pretrain/perplexity.py.
"""

import contextlib
import dataclasses
import heapq
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from bioptimus_jax.corpus.config import Corpus
from bioptimus_jax.corpus.documents import Document, document_key, open_documents
from bioptimus_jax.corpus.readers import input_files, read_inputs
from bioptimus_jax.errors import ConfigError, InputError
from bioptimus_jax.hosts.remote.models import hub_model
from bioptimus_jax.model import loaded
from bioptimus_jax.model.config import INITIAL, Source
from bioptimus_jax.model.folder import deciding_files, folder_in_run, source_folder
from bioptimus_jax.pretrain import curriculum, entities, mixture
from bioptimus_jax.pretrain.config import BY_DIFFICULTY, DIFFICULTY_MEASURES, SELF_PACED, HasTraining
from bioptimus_jax.pretrain.objective import Advance, Objective, objective_of
from bioptimus_jax.pretrain.units import weight_files
from bioptimus_jax.progress.console import Console, numbered
from bioptimus_jax.records.curriculum import (
    Facts,
    MaskedAs,
    OfSetting,
    OrderDifficulty,
    Perplexity,
    PlacedPhase,
)
from bioptimus_jax.rows.blocks import one_a_row
from bioptimus_jax.rows.parts import document_parts
from bioptimus_jax.storage.files import read_json, write_json

RECORD = 'difficulty.json'
HELDOUT = 'held-out documents of this run'
PROBE_KEY = 'config.curriculum.probe'


def phase_order(
    console: Console,
    e: HasTraining,
    stage: Callable[[str], Path],
    folder: Path,
    objective: Objective,
    record: Sequence[PlacedPhase],
) -> tuple[str, ...]:
    """The phases in the order of training, the one of the run's `record` where it has begun; says it in a line.

    `stage` gives the folder of an earlier stage. Writes difficulty.json into `folder` where the order is by difficulty.
    Raises ConfigError, InputError, Stopped.
    """
    if e.curriculum.order in ('given', SELF_PACED):
        return e.phases
    measured: dict[str, Perplexity] = {}
    by = ''
    if e.curriculum.order in BY_DIFFICULTY:
        measured = decisive(perplexities(console, e, stage, folder, objective), e.curriculum.measure)
        where = {'masked': 'at [MASK]', 'all': 'over all selected pieces'}[e.curriculum.measure]
        by = f', perplexity {where} in brackets'
    order = curriculum.recorded_order(e, record)
    if not order:
        order = curriculum.ordered(e, {name: of_phase.mean for name, of_phase in measured.items()})
    words = [f'{name} ({_short(measured[name])})' if name in measured else name for name in order]
    console.say(f'pretrain: phases {e.curriculum.order}{by}: {", ".join(words)}')
    return order


def decisive(settings: Mapping[str, OfSetting], measure: str) -> dict[str, Perplexity]:
    """Phase -> the perplexity that the order goes by. Raises InputError where a sample has no [MASK]."""
    found = {name: measured.of(DIFFICULTY_MEASURES[measure]) for name, measured in settings.items()}
    if lacking := [name for name, of_phase in found.items() if of_phase is None]:
        raise InputError(
            f'config.curriculum.samples: under {lacking[0]} one of them has no [MASK]; take fewer, or more text'
        )
    return {name: of_phase for name, of_phase in found.items() if of_phase}


def external_inputs(experiment: HasTraining) -> dict[str, Path | str]:
    """What outside the run decides the result: files of the objectives, sets of entities, weights of masking
    strategies, rows of other corpora; of an order by difficulty also texts, and the probe's configuration, weights,
    tokenizer."""
    objectives = (objective_of(experiment, name) for name in experiment.all_objectives)
    files = [file for objective in objectives for file in objective.files(experiment)]
    files += entities.files(experiment)
    if experiment.curriculum.order in BY_DIFFICULTY:
        files += input_files(_reading(experiment), 'curriculum.texts') if experiment.curriculum.texts else []
        folder = _probe_folder(experiment)
        files += deciding_files(folder) if folder else []
    files += weight_files(dict.fromkeys(phase.masking for phase in experiment.trained_phases))
    numbered = {f'{number}:{path.name}': path for number, path in enumerate(files)}
    return numbered | mixture.contents(experiment)


def perplexities(
    console: Console, e: HasTraining, stage: Callable[[str], Path], folder: Path, objective: Objective
) -> Mapping[str, OfSetting]:
    """Phase -> perplexity of the probe under its setting, measured once (anew for added phases), in difficulty.json.

    Each is as `perplexity.of_setting` gives it.
    """
    value = read_json(folder / RECORD)
    if value is not None:
        known = OrderDifficulty.read(value, str(folder / RECORD), 'restore it, or delete it to measure again')
        if set(e.phases) <= known.settings.keys():
            return known.settings
    [folder_of_probe] = probe_folders(e, stage).values()
    probe, texts = load_probe(folder_of_probe), documents(e, stage)
    measured = measure(e, probe, texts, objective, progress(console, e, len(texts)))
    record = OrderDifficulty(probe=e.curriculum.probe, **vars(facts(e, len(texts))), **measured._asdict())
    write_json(folder / RECORD, record.json())
    return measured.settings


class Measured(NamedTuple):
    """Perplexities of a model by phase, and the rows and pieces of the texts in its own pieces."""

    rows: int
    pieces: int
    settings: Mapping[str, OfSetting]


def measure(
    e: HasTraining, probe: loaded.Loaded, texts: Sequence[Document], objective: Objective, advance: Advance
) -> Measured:
    """`rows` and `pieces` of the texts in the probe's own pieces, and its perplexities by phase, `settings`.

    `objective`: that of the run; the probe is scored by one of its kind, computed in the same way. Raises InputError.
    """
    width = min(e.rows.max_document_pieces, probe.capacity + 2)
    batch = one_a_row(document_parts([texts], probe.subwords, width, e.rows.words)[0], width)
    check_samples(e, batch)
    of_probe = dataclasses.replace(
        objective, config=e, architecture=probe.architecture, vocabulary=probe.subwords, row_pieces=width
    )
    settings = of_probe.difficulty(probe.parameters, batch, advance)
    return Measured(len(batch['tokens']), int(batch['segment_lengths'].sum()), settings)


def facts(experiment: HasTraining, count: int) -> Facts:
    """What difficulty is measured on; `count`: of documents."""
    asked = experiment.curriculum
    phases = {}
    for name in experiment.phases:
        phase = experiment.phase[name]
        phases[name] = MaskedAs(phase.masking, phase.rate, tuple(phase.corruption))
    texts = tuple(asked.texts) or (HELDOUT,)
    return Facts(texts=texts, documents=count, samples=asked.samples, measure=asked.measure, phases=phases)


def check_samples(experiment: HasTraining, batch: Mapping[str, np.ndarray]) -> None:
    """Raise InputError where the texts, as rows, are too few for a document in every sample."""
    count, samples = len(np.unique(batch['documents'][:, :1])), experiment.curriculum.samples
    if count < samples:
        texts = ', '.join(experiment.curriculum.texts) or HELDOUT
        raise InputError(
            f'{texts}: {numbered(count, "document")} with text, fewer than config.curriculum.samples={samples}; '
            'name more in config.curriculum.texts, or take fewer samples'
        )


def progress(console: Console, e: HasTraining, documents: int, models: int = 1) -> Advance:
    """A function to be called with the share of a model's work that was done: it shows how far it is, and raises
    Stopped."""
    of_a_model = documents * len(e.phases)
    shown = console.progress('difficulty', models * of_a_model, 'documents masked')
    done = 0.0

    def advance(share: float) -> None:
        nonlocal done
        before, done = done, done + share * of_a_model
        shown.update(round(done) - round(before))  # whole documents, all of them at the end
        console.check_stop()

    return advance


def probe_folders(e: HasTraining, stage: Callable[[str], Path]) -> dict[str, Path]:
    """Name -> folder of the one model that config.curriculum.probe names. Raises ConfigError, InputError."""
    name, folder = e.curriculum.probe, _probe_folder(e)
    wanted = hub_model(name)
    called = Path(wanted.name if wanted else name).name
    return {name: folder_in_run(stage, INITIAL)} if folder is None else {called: folder}


def _probe_folder(experiment: HasTraining) -> Path | None:
    """The folder of a probe that is not this run's own model. Raises ConfigError, InputError."""
    settings = experiment.curriculum
    if settings.probe == INITIAL:
        return None
    return source_folder(Source(settings.probe), PROBE_KEY)


def load_probe(folder: Path) -> loaded.Loaded:
    """A model that can be asked for a perplexity. Raises InputError for a folder without a masked-LM head."""
    probe = loaded.load_model(folder)
    if probe.fresh:
        raise InputError(
            f'{folder}: has no masked-language-model head, so it has no perplexity; name another model'
        )
    return probe


def _reading(experiment: HasTraining) -> Corpus:
    """How texts are read: as the corpus is, from other files."""
    return dataclasses.replace(experiment.corpus, inputs=experiment.curriculum.texts)


def documents(e: HasTraining, stage: Callable[[str], Path]) -> list[Document]:
    """The documents scored, with the smallest hashes of their ids. Raises ConfigError for files trained on."""
    if e.curriculum.texts:
        refuse_training_text(e)
        available: Any = read_inputs(_reading(e))
    else:
        available = open_documents(stage('corpus'), 'heldout')
    return heapq.nsmallest(e.curriculum.documents, available, key=lambda d: document_key(d.id))


def refuse_training_text(experiment: HasTraining) -> None:
    """Raise ConfigError where a text that difficulty is measured on is trained on."""
    trained: set[Path] = set()
    with contextlib.suppress(InputError, ConfigError):  # the corpus may be a base run's, its files elsewhere
        trained = {file.resolve() for file in input_files(experiment.corpus)}
    for file in input_files(_reading(experiment), 'curriculum.texts'):
        if file.resolve() in trained:
            raise ConfigError(
                f'config.curriculum.texts: {file} is a file of config.corpus.inputs, which is trained on; '
                'name other texts, or none for the held-out documents'
            )


def _short(measured: Perplexity) -> str:
    if measured.interval is None:
        return f'{measured.mean:.4g}'
    low, high = measured.interval
    return f'{measured.mean:.4g} [{low:.4g}, {high:.4g}]'
