"""The train step as the compiler makes it, for devices that are here or in a topology: memory, operations, traffic.

Nothing is computed: all arrays are shapes. What a collective moves is read from the text of the program.

B rows of the global batch, L pieces a row, G places for documents in a row.
"""

import collections
import dataclasses
import math
import re
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh

from bioptimus_jax.errors import ConfigError, reason_of
from bioptimus_jax.model.architecture import Architecture
from bioptimus_jax.model.trees import unflatten
from bioptimus_jax.pretrain import adapter, curriculum, sharding
from bioptimus_jax.pretrain.backends import attention_on, compute_with, expected_attention
from bioptimus_jax.pretrain.config import HasTraining
from bioptimus_jax.pretrain.objective import Objective, objective_of, planned_made
from bioptimus_jax.pretrain.programs import Program, architecture_in, programs_of
from bioptimus_jax.pretrain.sharding import ROWS_OF_A_STEP, check_fits, mesh_of
from bioptimus_jax.pretrain.step import initial_state, jitted_step
from bioptimus_jax.records.curriculum import RowCounts
from bioptimus_jax.rows.blocks import FIRSTS, LABELS
from bioptimus_jax.rows.layouts import layout_of
from bioptimus_jax.tokenizer.subwords import Vocabulary

PIECES_OF_A_DOCUMENT = 32
"""A row has a place for a document of so many pieces, where its rows are not made yet; abstracts have ten times as
many."""
SPECIAL = 5
"""Special tokens of a vocabulary that is not made yet."""
COLLECTIVES = ('all-gather', 'all-reduce', 'reduce-scatter', 'all-to-all', 'collective-permute')
BYTES = {'pred': 1, 's8': 1, 'u8': 1, 'bf16': 2, 'f16': 2, 's16': 2, 'u16': 2, 's64': 8, 'u64': 8, 'f64': 8}
"""Bytes of a value by its type in a program's text; those of other types have four."""
FULL = re.compile(r'Used ([\d.]+)([KMGT]) of ([\d.]+)([KMGT]) hbm')
"""How the compiler for TPUs says that a program does not fit, where it says so."""
UNITS = {unit: 1024**power for power, unit in enumerate('KMGT', 1)}


class Traffic(NamedTuple):
    """Collectives of one kind: how many are in the program, and the bytes of their results on a device.

    What a loop has is counted once.
    """

    number: int
    moved: int


@dataclasses.dataclass(frozen=True)
class CompiledStep:
    """What the compiler says of a program, on one device. `memory`: bytes at the peak, with what is given to the step.

    `flops`, `moved`: operations, and bytes that they read and write; what a loop has is counted once where the layers
    are scanned. `left_out`: why there is no program; a number that is not known is then 0.
    """

    program: Program
    phase: str
    attention: str
    seconds: float = 0.0
    memory: float = 0.0
    flops: float = 0.0
    moved: float = 0.0
    collectives: Mapping[str, Traffic] = dataclasses.field(default_factory=dict)
    left_out: str = ''


def compile_programs(
    config: HasTraining, architecture: Architecture, devices: Sequence[jax.Device], packs: bool = False
) -> Iterator[CompiledStep]:
    """Each program of a run, as it is compiled for these devices; `packs`: as in `expected_attention`.

    Raises ConfigError where the devices do not divide the model or its rows.
    """
    runtime = config.runtime
    mesh = mesh_of(devices, runtime.devices, runtime.fsdp, runtime.tensor)
    platform = sharding.platform_of(mesh)
    for program, phase in programs_of(config).items():
        shaped = program.shape.within(config)
        of_phase = architecture_in(architecture, program.shape.turning, phase)
        check_fits(mesh, of_phase, program.shape.batch_rows // program.shape.micro_batches, ROWS_OF_A_STEP)
        name = expected_attention(shaped, of_phase, platform, packs)
        step = traced_step(objective_for(shaped, of_phase, mesh, name, program.name), mesh)
        yield _compiled(CompiledStep(program, phase, name), lowered(step, platform))


def objective_for(
    config: HasTraining, architecture: Architecture, mesh: Mesh, attention: str, name: str = ''
) -> Objective:
    """An objective (of that name, or the run's own) as it computes on a mesh, with a vocabulary of which only the size
    is known."""
    kind, pieces = objective_of(config, name), config.rows.row_pieces
    compute = compute_with(attention_on(mesh, attention), config, architecture, mesh, kind.causal)
    return kind(config, architecture, planned_vocabulary(architecture), pieces, compute)


def planned_vocabulary(architecture: Architecture) -> Vocabulary:
    """A vocabulary of the model's size: a few special tokens, and every second of the others begins a word."""
    ids = np.arange(architecture.vocab_size)
    special_V = ids < min(SPECIAL, len(ids) - 1)
    drawn_N = ids[~special_V].astype(np.int32)
    return Vocabulary(int(special_V.sum()) - 1, ids % 2 == 0, special_V, drawn_N)


def traced_step(objective: Objective, mesh: Mesh, documents: int = 0) -> Any:
    """The train step of shapes alone, split as on that mesh, to be lowered; `documents`: places for them in a row."""
    o, config = objective, objective.config
    shapes = {path: jax.ShapeDtypeStruct(s, jnp.float32) for path, s in o.architecture.shapes().items()}
    made = planned_made(o)

    def begun(params: Any) -> tuple[Any, Any, Any]:
        key = jax.random.key(0)
        started = o.start(params, key)
        parts = adapter.split(config.pretrain, o.architecture, made, params, started, key)
        return started, initial_state(parts.trained, config.pretrain, o.all_rules), parts.frozen

    started, state, base = jax.eval_shape(begun, unflatten(shapes))
    frozen = jax.tree.map(lambda x: jax.ShapeDtypeStruct(x.shape, x.dtype), o.frozen_shapes(started))
    schedule = curriculum.make_schedule(config, RowCounts(1000, 100_000, 80_000))
    table = jax.tree.map(
        lambda x: jax.ShapeDtypeStruct(np.shape(x), np.asarray(x).dtype),
        curriculum.table(schedule, config, o.name()),
    )
    kept = sharding.state_shardings(state, mesh, o.all_rules)
    beside = sharding.shardings_of(frozen, mesh, o.all_rules)
    beside |= adapter.base_shardings(base, mesh, o.all_rules)
    batch = batch_shapes(o, documents or max(4, config.rows.row_pieces // PIECES_OF_A_DOCUMENT))
    return jitted_step(o, mesh, kept, beside).trace(state, frozen | base, batch, table)


def batch_shapes(objective: Objective, documents: int) -> dict[str, jax.ShapeDtypeStruct]:
    """The arrays of a batch that the objective reads, as shapes."""
    config = objective.config
    rows, pieces = config.pretrain.batch_rows, config.rows.row_pieces
    shapes = {
        'tokens': jax.ShapeDtypeStruct((rows, pieces), jnp.int32),
        'word_starts': jax.ShapeDtypeStruct((rows, pieces), bool),
        'segment_lengths': jax.ShapeDtypeStruct((rows, documents), jnp.int32),
    }
    labelled = (FIRSTS, LABELS) if layout_of(config.rows.layout).labelled else ()
    return {
        **{name: shapes[name] for name in objective.reads},
        **dict.fromkeys(labelled, shapes['segment_lengths']),
    }


def lowered(traced: Any, platform: str) -> Any:
    """A traced step for the compiler of a platform (cpu, gpu, tpu)."""
    return traced.lower(lowering_platforms=('cuda' if platform == 'gpu' else platform,))


def _compiled(step: CompiledStep, program: Any) -> CompiledStep:
    """The step with what the compiler says of it; nothing is raised for a program that does not fit."""
    began = time.monotonic()
    try:
        compiled = program.compile()
    except jax.errors.JaxRuntimeError as error:
        if 'RESOURCE_EXHAUSTED' not in str(error):
            raise ConfigError(f'--compile: {reason_of(error)}') from error
        full = FULL.search(str(error))
        used = float(full[1]) * UNITS[full[2]] if full else 0.0
        said = 'does not fit' if used else reason_of(error)
        return dataclasses.replace(step, memory=used, left_out=said, seconds=time.monotonic() - began)
    costs = compiled.cost_analysis() or {}
    return dataclasses.replace(
        step,
        seconds=time.monotonic() - began,
        memory=planned_bytes(compiled),
        flops=costs.get('flops', 0.0),
        moved=costs.get('bytes accessed', 0.0),
        collectives=collectives_in(compiled.as_text()),
    )


def planned_bytes(compiled: Any) -> int:
    """What the compiler says that a compiled step needs; what is donated counts once."""
    m = compiled.memory_analysis()
    needed: int = (
        m.argument_size_in_bytes + m.output_size_in_bytes - m.alias_size_in_bytes + m.temp_size_in_bytes
    )
    return needed


def collectives_in(text: str) -> dict[str, Traffic]:
    """Kind -> collectives of a compiled program, from its text."""
    found = collections.defaultdict[str, list[int]](list)
    # A collective that runs beside other work is two operations: its start is counted.
    pattern = re.compile(
        rf'^\s*(?:ROOT )?%?[\w.-]+ = (.*?) ({"|".join(COLLECTIVES)})(-start)?\(', re.MULTILINE
    )
    for shape, kind, start in pattern.findall(text):
        sizes = sizes_in(shape)
        # The start has the input beside the result.
        found[kind].append(sum(sizes) if not start or kind == 'all-reduce' else max(sizes, default=0))
    return {kind: Traffic(len(found[kind]), sum(found[kind])) for kind in COLLECTIVES if kind in found}


def sizes_in(shape: str) -> list[int]:
    """Bytes of the arrays that a program's text writes, as `bf16[64,512]{1,0}` or several in brackets."""
    arrays = re.findall(r'([a-z]+\d*)\[([\d,]*)\]', shape)
    return [
        BYTES.get(kind, 4) * math.prod(map(int, filter(None, sides.split(',')))) for kind, sides in arrays
    ]
