"""`bioptimus difficulty`: perplexity of any masked language models under each masking setting, side by side.

A model of a family that is computed here is scored as in training, on the devices of jax; any other by transformers.
All see the same documents; models with the same vocabulary see the same masks too. Perplexity counts pieces: models
with different vocabularies compare in the order of the settings, not in the values.
"""

import time
from collections.abc import Callable, Sequence
from pathlib import Path

from bioptimus_jax.analysis import masked_lm
from bioptimus_jax.analysis.config import HasAnalysis
from bioptimus_jax.corpus.documents import Document
from bioptimus_jax.errors import InputError
from bioptimus_jax.hosts.devices import present
from bioptimus_jax.model.folder import config_values, model_folders
from bioptimus_jax.model.tensors import read_architecture
from bioptimus_jax.pretrain import difficulty
from bioptimus_jax.pretrain.backends import dtype_of
from bioptimus_jax.pretrain.masking import Masker
from bioptimus_jax.pretrain.objective import make_objective
from bioptimus_jax.pretrain.perplexity import by_setting
from bioptimus_jax.pretrain.sharding import make_mesh, mesh_in_words
from bioptimus_jax.progress.console import clock, numbered
from bioptimus_jax.records.curriculum import Difficulty, OfModel
from bioptimus_jax.run.folder import Run
from bioptimus_jax.storage.files import write_json


def measure(run: Run[HasAnalysis], models: Sequence[str] = ()) -> Difficulty:
    """Measure the models, write WORKDIR/difficulty.json, and return what was written.

    `models`: as in config.finetune.models: initial, source, phases of this run, folders, NAME=FOLDER; none:
    config.curriculum.probe. Needs no stage but those that models and texts come from. Raises ConfigError, InputError,
    Stopped.
    """
    started, e = time.monotonic(), run.config
    folders = (
        model_folders(e, run.folder, models, '--model') if models else difficulty.probe_folders(e, run.folder)
    )
    here, mesh = present(), make_mesh(e.runtime.devices)
    run.computes(
        'difficulty',
        str(here),
        mesh=mesh_in_words(mesh),
        attention=e.runtime.attention,
        type=dtype_of(e.pretrain, here.platform),
    )
    texts = difficulty.documents(e, run.folder)
    if texts:  # a column of labels has a perplexity too
        run.console.say(
            f'difficulty: {numbered(len(texts), "document")}, one begins: {" ".join(texts[0].text[:80].split())}'
        )
    advance = difficulty.progress(run.console, e, len(texts), len(folders))
    records = []
    for name, folder in folders.items():
        by, measured = _measured(e, folder, texts, advance, run.console.say)
        records.append(OfModel(name, str(folder), by, **measured._asdict()))
    seconds = round(time.monotonic() - started, 1)
    result = Difficulty(**vars(difficulty.facts(e, len(texts))), models=tuple(records), seconds=seconds)
    write_json(run.workdir / difficulty.RECORD, result.json())
    run.console.say(f'difficulty: {run.workdir / difficulty.RECORD}, {clock(seconds)}')
    return result


def _measured(
    e: HasAnalysis,
    folder: Path,
    texts: Sequence[Document],
    advance: Callable[[float], None],
    say: Callable[[str], None],
) -> tuple[str, difficulty.Measured]:
    if _computed_here(folder):
        probe = difficulty.load_probe(folder)
        width = min(e.rows.max_document_pieces, probe.capacity + 2)
        mesh = make_mesh(e.runtime.devices)
        objective = make_objective(e, probe.architecture, probe.subwords, width, mesh, say)
        return 'jax', difficulty.measure(e, probe, texts, objective, advance)
    foreign = masked_lm.load(folder, e.runtime.torch_threads)
    width = min(e.rows.max_document_pieces, foreign.longest)
    batch = foreign.rows(texts, width, e.rows.words)
    difficulty.check_samples(e, batch)
    masker = Masker.of(foreign.vocabulary, e.pretrain, e.trained_phases, width)
    settings = by_setting(foreign.slot_losses, batch, masker, e, advance, masked_lm.BATCH_ROWS)
    measured = difficulty.Measured(len(batch['tokens']), int(batch['segment_lengths'].sum()), settings)
    return 'transformers', measured


def _computed_here(folder: Path) -> bool:
    """Whether it is of a family that can be computed here. Raises InputError where there is no model at all."""
    config_values(folder)
    try:
        read_architecture(folder)
    except InputError:
        return False
    return True
