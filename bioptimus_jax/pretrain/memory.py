"""Memory of the train step on one device, estimated from shapes alone: nothing is compiled, no device is started.

What XLA keeps was measured with its own analysis of compiled steps (CPU in float32, each size varied alone; H100 and
TPU v5e in bfloat16): a layer keeps some arrays BxLxD, some of the feed-forward size, and without a kernel two or three
of attention's BxHxLxL, or with windows of fewer keys.

B rows of one micro-batch on one device, L positions, D hidden size, H heads, V padded vocabulary.
"""

import dataclasses
import math
from collections.abc import Mapping, Sequence

from bioptimus_jax.errors import ConfigError
from bioptimus_jax.hosts.devices import Present
from bioptimus_jax.model.architecture import Architecture, Rule, repetition
from bioptimus_jax.model.attention import attended_keys
from bioptimus_jax.model.kernels import LONGEST_MASK
from bioptimus_jax.pretrain.adapter import ROWS
from bioptimus_jax.pretrain.backends import (
    PLAIN_ATTENTION,
    WITHOUT_WINDOWS,
    dtype_of,
    expected_attention,
    remat_of,
    scans,
)
from bioptimus_jax.pretrain.config import HasTraining
from bioptimus_jax.pretrain.cross_entropy import chunk_slots
from bioptimus_jax.pretrain.objective import arrays_of, most_places, planned_objective
from bioptimus_jax.pretrain.sharding import ROWS_OF_A_STEP, axes_of, planned_mesh, rows_of_a_part
from bioptimus_jax.progress.console import in_units

FLOAT = 4  # bytes: parameters, moments, gradients, LayerNorm, softmax and logits are float32 throughout
# More states of a layer in a loop, in float32: unrolled, XLA recomputes these where that is cheap.
KEPT_SCANNED = 4
# Of all pieces in a last layer that is computed in slots: queries, keys, values, and what is mixed of them.
KEPT_BEFORE_SLOTS = 4
# remat=dots: queries, keys, values and the two results of width D; beside them one of the wide size.
KEPT_DOTS = 5
# What a layer that is computed anew has at once: less, but more of attention.
RECOMPUTED_STATES, RECOMPUTED_WIDE, RECOMPUTED_SHARES = 4, 2, 2.5
# What each further product of scores has at once, in scores of a layer: those of distances, before and after `spread`.
PRODUCTS_BESIDE = 3
# A gated block's wide columns, in those of one half: by XLA's own analysis 2 in an unrolled stack, 1.5 in a loop.
GATED_SHARE = 1.75
BEYOND_DOUBT = 1.5  # times the memory: of an estimate that was fitted on other steps than the user's
UPDATE = 2  # gradients and updates at the end of a step


@dataclasses.dataclass(frozen=True)
class Kept:
    """Arrays that a compiler keeps: `states` BxLxD and `wide` ones of an unrolled layer; `beside` it embeddings, last
    states and their gradients, while its backward pass works; `logits` of a chunk: themselves, the softmax, its change,
    that in the products' type; `stacked`: what lies layer by layer, in copies, where layers are scanned; `sums`: more
    states of a layer where the sum over layers stays float32."""

    states: float
    wide: float
    beside: float = 6
    logits: float = 3.5
    stacked: int = 2
    sums: float = 0


# In bfloat16 the slope of the activation is computed again.
KEPT_IN_FLOAT32, KEPT_IN_BFLOAT16 = Kept(12, 3), Kept(8, 2)
# What has to do with logits and norms is part of the products there.
KEPT_ON_TPUS = Kept(9, 1, beside=5, logits=1.15, stacked=3, sums=2)


@dataclasses.dataclass(frozen=True)
class Memory:
    """Bytes on one device. `gradients`: what is there of them while activations are; `update`: at the end of a step."""

    parameters: float
    optimizer: float
    gradients: float
    activations: float
    output_layer: float
    update: float

    @property
    def peak(self) -> float:
        """The larger of two moments: the turn from forward to backward pass, and the update."""
        turn = self.gradients + self.activations + self.output_layer
        return self.parameters + self.optimizer + max(turn, self.update)


def step_memory(experiment: HasTraining, architecture: Architecture, platform: str, devices: int) -> Memory:
    """The memory of each of so many devices of a platform (cpu, gpu, tpu).

    Parameters and encoders that the objective adds are counted, and arrays that it keeps as they are. Raises
    ConfigError where the devices do not divide the rows. Not counted: what the objective keeps of its own computing,
    what collectives need, and the allocator's losses.
    """
    runtime, a = experiment.runtime, architecture
    split = {'fsdp': runtime.fsdp, 'tensor': runtime.tensor}
    rows = rows_of_a_device(experiment, devices)
    shapes = a.shapes()
    objectives = [planned_objective(experiment, a, name) for name in experiment.all_objectives]
    objective = objectives[0]
    arrays = [arrays_of(one) for one in objectives]
    # One model, and what each objective reads besides.
    whole, base = (bytes_of(of, split, objective.all_rules) for of in (arrays[0].trained, arrays[0].base))
    frozen = sum(
        bytes_of(of.frozen, split, one.all_rules) for one, of in zip(objectives, arrays, strict=True)
    )
    # The gradient of rows that are trained apart is that of the whole table at first.
    tables = {path for path in (a.table, a.output_table) if {path, path + ROWS} & arrays[0].trained.keys()}
    table = sum(math.prod(shapes[path]) for path in tables) / runtime.tensor * FLOAT
    # Of rows that are trained apart a table is put together first.
    joined = table if base and any(path.endswith(ROWS) for path in arrays[0].trained) else 0.0
    totals = 0.0
    if experiment.pretrain.micro_batches > 1:
        # Copies on several devices sum what is looked up in a tied table apart (`step.rows_apart`).
        apart = devices > runtime.tensor and runtime.fsdp == 1 and a.output_table == a.table
        looked_up = math.prod(arrays[0].trained.get(a.table, (0,))) / runtime.tensor * FLOAT
        totals = whole + apart * looked_up
    kept, stacked = kept_on(experiment, platform), 0.0
    encoder = {path: shape for path, shape in shapes.items() if path.startswith('encoder/')}
    if scans(runtime, a.layers):  # the step stacks what lies layer by layer, and unstacks its gradients
        copies = a.layers / len(set(a.own_layers))  # of weights that layers share
        stacked = (kept.stacked - bool(base)) * copies * bytes_of(encoder, split, a.rules)
    elif runtime.fsdp > 1:  # a layer that is whole stays so until its backward pass
        stacked = bytes_of(encoder, {**split, 'fsdp': 1}, a.rules) * width_of(experiment, platform) / FLOAT
    # The backward pass is in one of them at a time.
    widest = max(encoder.hidden for encoder in objective.encoders)
    beside = kept.beside * rows * experiment.rows.row_pieces * widest * FLOAT
    last = most_places(experiment) / experiment.rows.row_pieces if objective.last_in_slots else 1.0
    activations = sum(_activations(experiment, x, platform, rows, last) for x in objective.encoders) + beside
    return Memory(
        parameters=whole + base + frozen,
        optimizer=(3 if experiment.pretrain.averages else 2) * whole,
        gradients=table + joined + totals + stacked,
        activations=activations * objective.passes,
        output_layer=_output_layer(experiment, a, platform, rows) * objective.distributions,
        update=UPDATE * whole,
    )


def check_memory(
    experiment: HasTraining,
    architecture: Architecture,
    here: Present,
    devices: int,
    section: str = 'config.pretrain',
) -> None:
    """Raise ConfigError, which says what to change, where the step on so many of the devices here needs more memory.

    On other platforms than CPUs the estimate was fitted on few steps, and only what is far too much is refused.
    `section`: the one that says how many rows there are.
    """
    bound = here.memory_bytes * (1 if here.platform == 'cpu' else BEYOND_DOUBT)
    settings, needed = experiment.pretrain, _needed(experiment, architecture, here, devices)
    if not bound or needed <= bound:
        return
    enough = parts_that_fit(experiment, architecture, here, devices, bound)
    remedy = (
        f'set {section}.micro_batches={enough}, which gives the same batch in parts'
        if enough
        else 'lower config.rows.row_pieces, or take a smaller model or more devices (config.runtime.fsdp)'
    )
    raise ConfigError(
        f'{section}.batch_rows: {settings.batch_rows} rows of {experiment.rows.row_pieces} pieces need about '
        f'{in_units(needed, 1024)}, and {here} has {in_units(here.memory_bytes, 1024)}; {remedy}'
    )


def parts_that_fit(
    experiment: HasTraining, architecture: Architecture, here: Present, devices: int, bound: float = 0
) -> int | None:
    """The fewest micro-batches, no fewer than are set, whose step fits `bound` bytes; None where one row does not.

    `bound` 0: the memory of a device.
    """
    # The parts that a batch is cut into; the devices of one tensor group share their rows.
    parts = experiment.pretrain.batch_rows * experiment.runtime.tensor // devices

    def fits(count: int) -> bool:
        settings = dataclasses.replace(experiment.pretrain, micro_batches=count)
        changed = dataclasses.replace(experiment, pretrain=settings)
        return _needed(changed, architecture, here, devices) <= (bound or here.memory_bytes or math.inf)

    numbers = range(experiment.pretrain.micro_batches, parts + 1)
    return next((n for n in numbers if not parts % n and fits(n)), None)


def _needed(experiment: HasTraining, architecture: Architecture, here: Present, devices: int) -> float:
    """Bytes of a step on one device, and of CPUs that share the memory on all of them."""
    # What is called a device of a CPU is a share of the host: all of them have one memory.
    shared = min(devices, here.local) if here.platform == 'cpu' else 1
    return step_memory(experiment, architecture, here.platform, devices).peak * shared


def plain_fits(experiment: HasTraining, architecture: Architecture, here: Present, devices: int) -> bool:
    """Whether an accelerator has memory for a step whose attention holds all scores, as far as the estimate goes."""
    plain = dataclasses.replace(experiment, runtime=dataclasses.replace(experiment.runtime, attention='xla'))
    return step_memory(plain, architecture, here.platform, devices).peak <= (here.memory_bytes or math.inf)


def rows_of_a_device(experiment: HasTraining, devices: int) -> int:
    """Rows of one micro-batch on one of so many devices. Raises ConfigError where they do not come out even."""
    runtime, settings = experiment.runtime, experiment.pretrain
    mesh = planned_mesh(devices, 0, runtime.fsdp, runtime.tensor)
    return rows_of_a_part(mesh, settings.batch_rows // settings.micro_batches, ROWS_OF_A_STEP)


def width_of(experiment: HasTraining, platform: str) -> int:
    """Bytes of a number in products."""
    return 4 if dtype_of(experiment.pretrain, platform) == 'float32' else 2


def kept_on(experiment: HasTraining, platform: str) -> Kept:
    """What the compiler of a platform keeps of a step."""
    if width_of(experiment, platform) == FLOAT:
        return KEPT_IN_FLOAT32
    return KEPT_ON_TPUS if platform == 'tpu' else KEPT_IN_BFLOAT16


def bytes_of(shapes: Mapping[str, tuple[int, ...]], split: Mapping[str, int], rules: Sequence[Rule]) -> float:
    """Bytes of parameters on one device of a mesh with those numbers of parts."""
    axes = axes_of(shapes, rules)
    parts = {path: math.prod(split[axis] for axis in axes[path] if axis) for path in shapes}
    return sum(math.prod(shape) / parts[path] for path, shape in shapes.items()) * FLOAT


def _activations(experiment: HasTraining, a: Architecture, platform: str, rows: int, last: float) -> float:
    """What the layers keep for the backward pass, and what that has of a layer at once.

    `last`: the share of pieces that the last layer is computed for behind its attention.
    """
    runtime, of = experiment.runtime, kept_on(experiment, platform)
    low = width_of(experiment, platform)
    length, split = experiment.rows.row_pieces, runtime.tensor
    states, wide = rows * length * a.hidden, rows * length * _wide(a) / split
    keys = [
        0 if _fused(experiment, a, platform, window) else attended_keys(length, window)
        for window in a.windows
    ]
    shares, largest = (rows * a.heads / split * length * k for k in (sum(keys) / a.layers, max(keys)))
    # The softmax, and a copy in the products' type; with dropout its result, and a mask of one byte a value.
    of_share = FLOAT + (low if low != FLOAT else 0) + (low + 1 if a.attention_dropout else 0)
    anew = (
        RECOMPUTED_STATES * states * FLOAT
        + RECOMPUTED_WIDE * wide * low
        + largest * (RECOMPUTED_SHARES * FLOAT + low)
    )
    beside = (a.score_products - 1) * PRODUCTS_BESIDE * largest * FLOAT
    remat, scanned = remat_of(runtime, a.layers), scans(runtime, a.layers)
    kept = of.sums * states * low if a.float32_sum else 0.0
    # On a CPU XLA merges what an unrolled stack recomputes with the original, so remat saves nothing there.
    if remat == 'none' or (platform == 'cpu' and not scanned):
        kept += (of.states * states + of.wide * wide) * low
        behind = kept - KEPT_BEFORE_SLOTS * states * low
        kept += shares * of_share
        if not scanned:
            return a.layers * kept - (1 - last) * behind + beside
        kept += KEPT_SCANNED * states * FLOAT
    else:
        kept += states * low if remat == 'full' else ((1 + KEPT_DOTS) * states + wide) * low
    # Layers that one turn of the loop has.
    at_once = repetition(a.kinds)[1] if scanned else 1
    return a.layers * kept + at_once * (anew + beside)


def _wide(a: Architecture) -> float:
    """Columns of the feed-forward block, as the backward pass reads them."""
    return GATED_SHARE * a.intermediate if a.gated else a.intermediate


def _fused(experiment: HasTraining, a: Architecture, platform: str, window: int | None) -> bool:
    """Whether a kernel does a layer's attention, without its scores in memory; of windows not every kernel."""
    name = expected_attention(experiment, a, platform)
    if name == PLAIN_ATTENTION:
        return False
    if window is None or name == 'splash':
        return True
    return name not in WITHOUT_WINDOWS and experiment.rows.row_pieces <= LONGEST_MASK


def _output_layer(experiment: HasTraining, a: Architecture, platform: str, rows: int) -> float:
    """Logits of a chunk of slots and what is made of them."""
    slots = most_places(experiment)
    columns = a.padded_vocab_size / experiment.runtime.tensor
    return kept_on(experiment, platform).logits * rows * chunk_slots(rows, slots, platform) * columns * FLOAT
