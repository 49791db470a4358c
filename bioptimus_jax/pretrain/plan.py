"""Verb `plan`: what a run will take before it is begun: parameters, steps, FLOPs, memory, hours, cost, disk.

An estimate from the config alone, by one formula for FLOPs (pretrain/throughput.py) and the steps of the run itself
(pretrain/curriculum.py). What the corpus would tell is assumed, and said.
"""

import collections
import dataclasses
import functools
import math
import shutil
from collections.abc import Mapping
from pathlib import Path

from bioptimus_jax.errors import ConfigError, InputError
from bioptimus_jax.hosts.devices import MFU, Device, look
from bioptimus_jax.hosts.remote.models import configuration
from bioptimus_jax.model.architecture import HEAD, Architecture
from bioptimus_jax.model.config import Source
from bioptimus_jax.model.folder import source_folder
from bioptimus_jax.model.tensors import own_architecture, read_architecture
from bioptimus_jax.pretrain import adapter, entities, mixture
from bioptimus_jax.pretrain.backends import check_kernel
from bioptimus_jax.pretrain.config import BY_DIFFICULTY, HasTraining
from bioptimus_jax.pretrain.curriculum import make_schedule, stretches
from bioptimus_jax.pretrain.difficulty import refuse_training_text
from bioptimus_jax.pretrain.disk import NEW_TOKENS, disk_space
from bioptimus_jax.pretrain.memory import BEYOND_DOUBT
from bioptimus_jax.pretrain.objective import Arrays, arrays_of, check_objectives, planned_objective
from bioptimus_jax.pretrain.programs import check_programs
from bioptimus_jax.pretrain.shape import StepShape, shape_of
from bioptimus_jax.pretrain.sharding import planned_mesh
from bioptimus_jax.pretrain.shares import OWN
from bioptimus_jax.pretrain.traffic import beside_products
from bioptimus_jax.progress.console import in_units
from bioptimus_jax.records.curriculum import RowCounts
from bioptimus_jax.rows.config import Rows, RowShape
from bioptimus_jax.run.folder import Run
from bioptimus_jax.run.manifests import finished_place, read_manifest
from bioptimus_jax.storage.files import bytes_below, existing
from bioptimus_jax.surgery.config import Longer
from bioptimus_jax.surgery.graft import adapted
from bioptimus_jax.tokenizer.config import Vocab
from bioptimus_jax.tokenizer.subwords import load as load_subwords

# Measured on real abstracts, between spaces, special tokens not counted (under 1 %): a vocabulary of the domain, and
# that of bert-base-uncased.
PIECES_PER_WORD, PIECES_PER_WORD_OF_SOURCE = 1.31, 1.55
# Best fit of real abstracts (298-352 pieces on average): rows as wide as the longest document, and twice and more.
FILL, FILL_WIDE = 0.92, 0.98
SOURCE_ENTRIES = 30522  # of a source that is not a folder here
RATIO_WORDS = 1_000_000_000  # durations in steps, tokens and words need ratios alone


@dataclasses.dataclass(frozen=True)
class Assumptions:
    """What cannot be known from a config; 0 or None: by default.

    `words` of the corpus (default: config.corpus.max_words), `input_words` of the files it is chosen from (default: as
    many), `pieces_per_word` between spaces, `fill` of the rows, `mfu` as a share of the peak, `price` per device-hour.
    """

    words: float = 0
    input_words: float = 0
    pieces_per_word: float = 0
    fill: float = 0
    mfu: float = MFU
    price: float | None = None


@dataclasses.dataclass(frozen=True)
class PhasePlan:
    """A phase: optimiser steps, pieces (padding not counted), training FLOPs of one piece."""

    name: str
    steps: int
    pieces: float
    flops_per_piece: float


@dataclasses.dataclass(frozen=True)
class Plan:
    """A run: the model, its phases, the corpus it assumes (`words` 0: unknown), and what it was made from."""

    experiment: HasTraining
    architecture: Architecture
    shape_from: str
    phases: tuple[PhasePlan, ...]
    words: float
    assumed: Assumptions

    @property
    def steps(self) -> int:
        return sum(phase.steps for phase in self.phases)

    @property
    def pieces(self) -> float:
        return sum(phase.pieces for phase in self.phases)

    @property
    def flops(self) -> float:
        return sum(phase.pieces * phase.flops_per_piece for phase in self.phases)

    @property
    def parameters(self) -> dict[str, int]:
        """Numbers of trained parameters, by part."""
        return parameter_counts(self._arrays.trained)

    @property
    def kept(self) -> int:
        """Number of parameters that an adapter leaves as they are."""
        return sum(parameter_counts(self._arrays.base).values())

    @functools.cached_property
    def _arrays(self) -> Arrays:
        return arrays_of(planned_objective(self.experiment, self.architecture))

    def hours(self, device: Device, devices: int) -> float:
        """Hours of the optimiser steps on so many devices; evaluation, start and the other stages not counted."""
        return self.flops / (self.assumed.mfu * device.peak_flops * devices) / 3600

    def step_seconds(self, phase: PhasePlan, device: Device, devices: int) -> float:
        """Seconds that so many devices compute for a step of a phase."""
        flops = phase.pieces * phase.flops_per_piece / phase.steps
        return flops / (self.assumed.mfu * device.peak_flops * devices)

    def hours_beside(self, device: Device, devices: int) -> float:
        """Hours that sending and updating take, if nothing is computed meanwhile (`traffic`).

        Raises ConfigError where the devices do not divide the rows.
        """
        e, steps = self.experiment, collections.Counter[StepShape]()
        for phase in self.phases:  # most share one shape
            steps[shape_of(e, e.phase[phase.name])] += phase.steps
        beside = {
            shape: beside_products(shape.within(e), self.architecture, device, devices) for shape in steps
        }
        return sum(count * beside[shape].seconds for shape, count in steps.items()) / 3600


def make_plan(experiment: HasTraining, assumed: Assumptions) -> Plan:
    """The plan of an experiment.

    Raises ConfigError where there is no pre-training, or where the corpus has no length and a phase needs it.
    """
    if 'pretrain' not in experiment.stages:
        raise ConfigError('config.stages: has no pretrain, so there is no run to plan; give another --config')
    architecture, shape_from = planned_architecture(experiment)
    of_source = experiment.vocab.kind == 'source' or experiment.surgery.initialisation.keeps_vocabulary
    rows, given = experiment.rows, assumed.fill
    assumed = dataclasses.replace(
        assumed,
        words=assumed.words or experiment.corpus.max_words,
        pieces_per_word=assumed.pieces_per_word
        or (PIECES_PER_WORD_OF_SOURCE if of_source else PIECES_PER_WORD),
        fill=given or fill_of(rows),
    )
    own_text = mixture.shares(experiment, experiment.phases)[OWN]
    in_epochs = [
        n for n in experiment.phases if experiment.phase[n].duration_unit == 'epochs' and own_text[n]
    ]
    if in_epochs and not assumed.words:
        raise ConfigError(
            f'config.corpus.max_words: is 0, all of the corpus, and phase {in_epochs[0]} lasts epochs: say how many '
            'words the corpus has with --words=N'
        )
    trained_on = (assumed.words or RATIO_WORDS) * (1 - experiment.corpus.heldout_fraction)
    pieces = trained_on * assumed.pieces_per_word
    in_row = {
        shape: shape.row_pieces * (given or fill_of(shape.within(rows))) for shape in experiment.row_shapes
    }
    own = {
        shape: RowCounts(max(round(pieces / of_row), 1), round(pieces), round(trained_on))
        for shape, of_row in in_row.items()
    }
    counts = mixture.planned_counts(experiment, own)
    objectives = {n: planned_objective(experiment, architecture, n) for n in experiment.trained_objectives}
    schedule, phases = make_schedule(experiment, counts), list[PhasePlan]()
    of_phases = stretches(schedule, experiment)
    for scheduled in schedule:
        objective = objectives[experiment.objective_in(scheduled.name)]
        share, here = objective.share(scheduled.phase), [s for s in of_phases if s.phase == scheduled.name]
        read = []
        for s in here:
            found, shape = counts[s.phase, s.shape.rows], s.shape.rows
            filled = in_row[shape] if found == own[shape] else found.tokens / found.rows
            read.append(((s.stop or scheduled.stop) - s.start) * s.shape.batch_rows * filled)
        flops = [
            of * objective.flops(1, _attended(s.shape.rows), share) for of, s in zip(read, here, strict=True)
        ]
        steps = scheduled.stop - scheduled.start
        phases.append(PhasePlan(scheduled.name, steps, sum(read), sum(flops) / sum(read)))
    return Plan(experiment, architecture, shape_from, tuple(phases), assumed.words, assumed)


def _attended(shape: RowShape) -> int:
    """The pieces that a piece attends to; an upper bound, since most documents are shorter."""
    return min(shape.row_pieces, shape.max_document_pieces)


def fill_of(rows: Rows) -> float:
    """The share of a row that real abstracts fill."""
    return FILL_WIDE if rows.row_pieces >= 2 * rows.max_document_pieces else FILL


def check(run: Run[HasTraining]) -> None:
    """Raise what stage `pretrain` would find wrong, as far as settings, config.json and the devices tell.

    ConfigError for kernels, devices, a mesh that nothing divides evenly, and a batch beyond the memory; InputError for
    too little disk.
    """
    experiment, runtime = run.config, run.config.runtime
    if experiment.curriculum.order in BY_DIFFICULTY and experiment.curriculum.texts:
        refuse_training_text(experiment)
    if not experiment.corpus.heldout_fraction and not run.manifest('rows'):
        raise ConfigError(
            'config.corpus.heldout_fraction: is 0, but pre-training is evaluated on what is held out'
        )
    mixture.check(experiment, run.manifest('vocab'))
    entities.check(experiment)
    architecture, here = architecture_of(experiment, run.workdir / 'surgery'), look()
    adapter.check(experiment.pretrain, architecture)
    check_objectives(experiment, architecture)
    mesh = planned_mesh(here.count, runtime.devices, runtime.fsdp, runtime.tensor)
    check_kernel(
        runtime.attention,
        architecture.attention_dropout,
        here.platform,
        runtime.deterministic,
        architecture,
    )
    if not (runtime.base_run or run.mirror):  # the base may have them; not all that is in a bucket is here
        check_disk(experiment, architecture, run.workdir)
    mixture.check_lengths(experiment, architecture)
    check_programs(experiment, architecture, here, mesh)


def check_disk(e: HasTraining, architecture: Architecture, workdir: Path) -> None:
    """Raise InputError where models and checkpoints, which do not grow with the corpus, need far more than is free."""
    arrays = arrays_of(planned_objective(e, architecture))
    trained, kept = (sum(parameter_counts(of).values()) for of in (arrays.trained, arrays.base))
    spaces = disk_space(e, trained, kept, architecture.vocab_size, 0, 0, 1, 1)
    missing = [space for space in spaces if not read_manifest(workdir / space.stage)]
    needed = sum(max(space.size - bytes_below(workdir / space.stage), 0) for space in missing)
    free = shutil.disk_usage(existing(workdir)).free
    if needed > BEYOND_DOUBT * free:
        largest = max(missing, key=lambda space: space.size)
        raise InputError(
            f'{workdir}: models and checkpoints need about {in_units(needed)}, and {in_units(free)} are '
            f'free ({largest.what}); choose another --workdir, lower config.evaluation.snapshots_per_phase or '
            'config.runtime.keep_checkpoints, or free some'
        )


def architecture_of(experiment: HasTraining, surgery: Path) -> Architecture:
    """The shape of a run's model, as made or as planned; `surgery`: the folder of that stage, finished or not."""
    folder = finished_place(surgery) / 'model' if read_manifest(surgery) else None
    if folder is None or not (folder / 'config.json').is_file():  # of a run in a bucket not here yet
        from_there = dataclasses.replace(
            experiment, source=Source(str(source_folder(experiment.source) or ''))
        )
    else:  # the model of surgery has the new entries and positions
        from_there = dataclasses.replace(
            experiment,
            source=Source(str(folder)),
            vocab=dataclasses.replace(experiment.vocab, kind='source'),
            surgery=dataclasses.replace(experiment.surgery, longer=Longer()),
        )
    return planned_architecture(from_there)[0]


def planned_architecture(experiment: HasTraining) -> tuple[Architecture, str]:
    """The model's shape and where it was taken from: the source's config.json if it can be had, else `config.model`."""
    model, source = experiment.model, experiment.source.path
    if source and (folder := configuration(source)):
        found, shape_from = read_architecture(folder), source
    else:
        name = source.partition('@')[0]
        shape_from = 'config.model' + (f', since {name} is not a folder here' if source else '')
        found = own_architecture(model, SOURCE_ENTRIES)
    entries = _entries(experiment.vocab, found.vocab_size)
    return adapted(experiment, found, entries), shape_from


def _entries(vocab: Vocab, of_source: int) -> int:
    """Entries of the vocabulary; those of a file only if it is here."""
    if vocab.kind == 'source':
        return of_source
    if vocab.kind == 'append':
        return of_source + round(vocab.size * NEW_TOKENS)
    if vocab.kind == 'file' and vocab.file and Path(vocab.file).exists():
        return len(load_subwords(Path(vocab.file)).tokens)
    return vocab.size


def parameter_counts(shapes: Mapping[str, tuple[int, ...]]) -> dict[str, int]:
    """Parameters of the embeddings, the encoder, the head, and of what an objective adds; padded rows included."""
    counts = {'embeddings': 0, 'encoder': 0, 'head': 0}
    for path, shape in shapes.items():
        part = path.partition('/')[0].replace(HEAD, 'head')
        counts[part] = counts.get(part, 0) + math.prod(shape)
    return counts
