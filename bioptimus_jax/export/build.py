"""Stage `export`: a Hugging Face folder per finished phase and snapshot, behind a gate.

Nothing appears under its final name unless transformers loads the folder back and computes what we compute.
"""

import contextlib
import dataclasses
import functools
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np

from bioptimus_jax.corpus.documents import open_documents
from bioptimus_jax.errors import InputError
from bioptimus_jax.export import adapters, card
from bioptimus_jax.export.gate import check_export
from bioptimus_jax.export.sums import SUMS, read_sums, write_sums
from bioptimus_jax.hosts.devices import present
from bioptimus_jax.model.architecture import Architecture
from bioptimus_jax.model.compute import PLAIN_COMPUTE
from bioptimus_jax.model.config import phase_of
from bioptimus_jax.model.tensors import NOTHING, load_folder, read_architecture, write_folder
from bioptimus_jax.model.trees import Params
from bioptimus_jax.model.untouched import untouched_in
from bioptimus_jax.pretrain import adapter
from bioptimus_jax.pretrain.checkpoint import load_phase, phase_checksums
from bioptimus_jax.pretrain.config import HasTraining, Pretrain
from bioptimus_jax.pretrain.curriculum import finished_phases
from bioptimus_jax.pretrain.objective import Objective, arrays_of, planned_objective
from bioptimus_jax.pretrain.programs import architecture_in
from bioptimus_jax.pretrain.shape import shape_of
from bioptimus_jax.progress.console import Console
from bioptimus_jax.records.counts import ExportCounts, StageResult
from bioptimus_jax.records.export import ABOUT, Export, read_export
from bioptimus_jax.run.folder import Run
from bioptimus_jax.run.manifests import MANIFEST, versions
from bioptimus_jax.storage.files import (
    atomic,
    digest,
    remove_folder,
    sha256,
    whole_folder,
    write_json,
)
from bioptimus_jax.surgery.made import made_in

TEXTS = 4  # held-out documents that the gate compares on


def build(run: Run[HasTraining], folder: Path) -> StageResult:
    """Export every finished phase to PHASE/, every snapshot to PHASE@PERCENT/, and what an objective has beside it.

    Raises InputError at the end if some phases are unfinished.
    """
    run.fetch('pretrain')
    run.computes('export', str(present()), mesh='one device', **PLAIN_COMPUTE.words())
    pretrain = run.workdir / 'pretrain'
    if run.manifest('pretrain'):
        pretrain = run.folder('pretrain')
    else:
        run.console.say(
            f'export: pretrain has no {MANIFEST}, it is not finished: phases that have ended are exported'
        )
    initial = run.folder('surgery') / 'model'
    architecture = read_architecture(initial)
    texts = _heldout_texts(run.folder('corpus')) if run.manifest('corpus') else []
    ended = finished_phases(pretrain)
    finished = [name for name in ended if phase_of(name) in run.config.phases]
    if lost := run.lost_metrics('pretrain'):
        run.console.say(f'export: {lost}: the losses on the model cards may be wrong')
    exporter = Exporter(run.console, run.config, folder, initial, texts, run.workdir)
    gates: dict[str, Mapping[str, float]] = {}
    source = [sha256(file) for file in sorted(initial.iterdir())]

    def checkpoint_of(phase: str) -> str:
        return digest([phase_checksums(pretrain, phase), source]) if phase in ended else ''

    for phase in finished:
        run.console.check_stop()
        checkpoint = checkpoint_of(phase)
        if kept := _kept_models(folder, phase, checkpoint):
            run.console.say(f'export: {phase} is there already')
            gates |= kept
        else:
            turning = shape_of(run.config, run.config.phase[phase_of(phase)]).turning
            objective = planned_objective(run.config, architecture_in(architecture, turning, phase_of(phase)))
            gates |= exporter.export(phase, checkpoint, objective, load_phase(pretrain, phase))
        run.saved()
    missing = [phase for phase in run.config.phases if phase not in finished]
    if missing:
        raise InputError(
            f'{pretrain}: phases {", ".join(missing)} are not finished; exported so far: '
            f'{", ".join(finished) or "none"}. Run `bioptimus pretrain`, then `bioptimus export` again'
        )
    for other in _outlived(folder, gates, checkpoint_of):
        run.console.say(f'export: {other.name} is of another pre-training, and is removed')
        remove_folder(other)
    # A card tells, it decides nothing: later stages need not be done again where only its words differ.
    content = digest(
        {name: {n: v for n, v in read_sums(folder / name).items() if n != card.NAME} for name in gates}
    )
    return StageResult(ExportCounts(phases=tuple(finished), gate=gates), content)


def _outlived(folder: Path, made: Collection[str], checkpoints: Callable[[str], str]) -> Iterator[Path]:
    """The exports in the folder that are neither `made` now nor of another phase that was asked for before.

    `checkpoints`: of a phase that has ended, or '', what tells its weights from others.
    """
    for file in sorted(folder.glob(f'*/{ABOUT}')):
        with contextlib.suppress(InputError):  # one that is damaged, or whose checkpoint is gone, stays
            about = read_export(file.parent) if file.parent.name not in made else None
            # A mean of models has no checkpoint.
            if about and about.checkpoint and about.checkpoint != checkpoints(about.phase):
                yield file.parent


@dataclasses.dataclass(frozen=True)
class Exporter:
    """What every export of a run is made with; `initial`: the model at step 0, and `texts`, which the gate reads."""

    console: Console
    config: HasTraining
    folder: Path
    initial: Path
    texts: Sequence[str]
    workdir: Path

    def export(
        self, phase: str, checkpoint: str, objective: Objective, params: Params
    ) -> Mapping[str, Mapping[str, float]]:
        """What the gate measured of the phase's model and of those that the objective has beside it, by name."""
        setting = dataclasses.asdict(self.config.phase[phase_of(phase)])
        parts = _parts(self.config.pretrain, objective, params, self.initial)
        beside = tuple(suffix for suffix in parts if suffix)
        about = Export(phase=phase, checkpoint=checkpoint, setting=setting, beside=beside or None)
        untouched, _ = untouched_in(self.initial, parts[''].architecture)
        history, measured = card.History.of(self.config, self.workdir), {}
        for suffix in (*beside, ''):  # the model proper last: where it is, the others are
            name, part = f'{phase}{suffix}', parts[suffix]
            if isinstance(part, adapters.Adapter):
                found = adapters.export(self.folder / name, part, about, f'{phase}{adapters.BASE}')
                self.console.say(
                    f'export: {name} is the adapter alone, in the form of PEFT, for {phase}{adapters.BASE}'
                )
            else:
                found = export(
                    self.folder / name,
                    part.architecture,
                    part.params,
                    self.initial,
                    self.texts,
                    about,
                    untouched if part.whole else {},
                    threads=self.config.runtime.torch_threads,
                    card_of=functools.partial(card.model_card, history, phase, suffix=suffix),
                    files={} if suffix else objective.beside(),
                    before=part.before,
                )
                self.console.say(
                    f'export: {name} agrees with transformers, logits within {found["logits"]:.1e}'
                )
            measured[name] = found
        return measured


@dataclasses.dataclass(frozen=True)
class Part:
    """A model that is exported. `whole`: whether it has what the source has beside its parameters; `before`: its
    parameters with an adapter that is merged in the others."""

    architecture: Architecture
    params: Params
    whole: bool
    before: Params | None = None


def _parts(
    settings: Pretrain, objective: Objective, params: Params, initial: Path
) -> dict[str, Part | adapters.Adapter]:
    """What is exported of a checkpoint's parameters, by what is added to the name of its phase."""
    if not settings.lora:
        return {suffix: Part(*model, not suffix) for suffix, model in objective.exports(params).items()}
    architecture, at_start, _ = load_folder(initial)
    made = made_in(initial.parent, architecture)
    unmerged = adapter.restored(settings, params, arrays_of(objective, made).base, made, at_start)
    merged = objective.exports(adapter.without_adapter(unmerged, merged=True))
    before, base = (
        objective.exports(unmerged),
        objective.exports(adapter.without_adapter(unmerged, merged=False)),
    )
    found = {suffix: Part(*model, not suffix, before[suffix][1]) for suffix, model in merged.items()}
    alone = adapters.Adapter(base[''][0], settings.lora, adapter.pairs_of(params), base[''][1], merged[''][1])
    return {**found, adapters.BASE: Part(*base[''], whole=True), adapters.ALONE: alone}


def export(
    folder: Path,
    architecture: Architecture,
    params: Params,
    tokenizer_folder: Path,
    texts: Sequence[str],
    about: Export,
    untouched: Mapping[str, np.ndarray] = NOTHING,
    *,
    threads: int = 1,
    files: Mapping[str, object] = NOTHING,
    before: Params | None = None,
    card_of: Callable[..., str] | None = None,
) -> dict[str, float]:
    """Write `folder`, only if it passes the gate; gives what the gate measured. Raises GateError.

    `untouched`: tensors of the source beside the parameters. `files`: what other programs read beside the model, values
    of JSON by their paths. `before`: see `check_export`. `card_of`: gives the card, from the architecture, what
    export.json says, and the folder; without it the card is that of a model of no run.
    """
    with whole_folder(folder) as hidden:
        write_folder(hidden, architecture, params, tokenizer_folder, untouched)
        for path, value in files.items():
            (hidden / path).parent.mkdir(exist_ok=True)
            write_json(hidden / path, value)
        measured = check_export(
            hidden, architecture, params, tokenizer_folder, texts, threads=threads, before=before
        )
        names = tuple(sorted(untouched)) or None
        told = dataclasses.replace(about, gate=measured, untouched=names, versions=versions())
        write_json(hidden / ABOUT, told.json())
        with atomic(hidden / card.NAME) as file:
            made = card_of or functools.partial(card.model_card, None, about.phase)
            file.write(made(architecture, told, folder=hidden))
        write_sums(hidden, files)
    return measured


def _heldout_texts(corpus: Path) -> list[str]:
    documents = open_documents(corpus, 'heldout')
    return [d.text for d in documents.read(0, min(TEXTS, len(documents)))]


def _kept_models(folder: Path, phase: str, checkpoint: str) -> Mapping[str, Mapping[str, float]]:
    """What the gate measured of the phase's model and of those beside it, by name; nothing unless all are whole."""
    about = _kept(folder / phase, checkpoint)
    suffixes = (about and about.beside) or ()
    beside = {f'{phase}{suffix}': _kept(folder / f'{phase}{suffix}', checkpoint) for suffix in suffixes}
    known = {**beside, phase: about}
    return {name: found.gate for name, found in known.items() if found} if all(known.values()) else {}


def _kept(folder: Path, checkpoint: str) -> Export | None:
    """What is known of an export of the same checkpoint whose files are whole, or None."""
    about = None
    with contextlib.suppress(InputError):  # damaged: it is written again
        about = read_export(folder)
    if about is None or about.checkpoint != checkpoint or not (folder / SUMS).is_file():
        return None
    sums = read_sums(folder)
    whole = all((folder / name).is_file() and sha256(folder / name) == value for name, value in sums.items())
    return about if ABOUT in sums and whole else None
