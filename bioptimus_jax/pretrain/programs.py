"""What is compiled in a run: a step for every objective and every shape of its phases, and what scores them.

One model goes through all of them, so they train the same parameters; only the first, the run's own, decides what is
scored and exported.
"""

import dataclasses
from collections.abc import Callable, Mapping
from typing import NamedTuple

from jax.sharding import AbstractMesh, Mesh

from bioptimus_jax.hosts.devices import Present
from bioptimus_jax.model.architecture import Architecture
from bioptimus_jax.pretrain.backends import MeasuredAttention
from bioptimus_jax.pretrain.config import HasTraining
from bioptimus_jax.pretrain.memory import check_memory, plain_fits
from bioptimus_jax.pretrain.objective import Objective, make_objective, objective_of, planned_objective
from bioptimus_jax.pretrain.shape import StepShape, Turning, own_shape, phase_shapes
from bioptimus_jax.pretrain.sharding import ROWS_OF_A_STEP, check_fits
from bioptimus_jax.rows.config import RowShape
from bioptimus_jax.rows.stored import Rows
from bioptimus_jax.surgery.config import Longer
from bioptimus_jax.surgery.graft import check_rows
from bioptimus_jax.surgery.longer import turned
from bioptimus_jax.tokenizer.subwords import Subwords


class Program(NamedTuple):
    """What is compiled for itself: the name of an objective, and the shape of its steps."""

    name: str
    shape: StepShape


def programs_of(config: HasTraining) -> dict[Program, str]:
    """All programs of the phases, each once, with the first phase that has it."""
    found: dict[Program, str] = {}
    for name in config.phases:
        for shape in phase_shapes(config, config.phase[name]):
            found.setdefault(Program(config.objective_in(name), shape), name)
    return found


def architecture_in(architecture: Architecture, turning: Turning, phase: str) -> Architecture:
    """The architecture whose rotary positions turn as in that phase. Raises ConfigError where it has none."""
    return turned(Longer(**turning._asdict()), architecture, f'config.phase.{phase}')


def check_programs(
    config: HasTraining, architecture: Architecture, here: Present, mesh: Mesh | AbstractMesh
) -> None:
    """Raise ConfigError, which names the phase, where a shape is not for this model, these devices or their memory."""
    own = own_shape(config)
    for (objective, shape), phase in programs_of(config).items():
        section = 'config.pretrain' if shape == own else f'config.phase.{phase}'
        shaped = shape.within(config)
        check_rows(
            shaped.rows, architecture, 'config.rows' if shape.rows == own.rows else f'config.phase.{phase}'
        )
        of_phase = architecture_in(architecture, shape.turning, phase)
        name = ROWS_OF_A_STEP.replace('config.pretrain', section)
        if shape.rows != own.rows:  # those of the run are checked with everything else
            objective_of(config, objective).check(shaped)
        for encoder in planned_objective(shaped, of_phase, objective).encoders:
            check_fits(mesh, encoder, shape.batch_rows // shape.micro_batches, name)
        check_memory(shaped, of_phase, here, mesh.size, section)


@dataclasses.dataclass(frozen=True)
class Objectives:
    """The objectives of a run, by program, and those that score held-out documents, by how positions turn.

    The first program is the run's own, which no phase may use.
    """

    by_program: Mapping[Program, Objective]
    scoring: Mapping[Turning, Objective]

    @property
    def own(self) -> Objective:
        """The run's own, in the run's own shape."""
        return next(iter(self.by_program.values()))


def make_objectives(
    config: HasTraining,
    architecture: Architecture,
    subwords: Subwords,
    rows: Mapping[RowShape, Rows],
    mesh: Mesh,
    warn: Callable[[str], None],
    measured: MeasuredAttention,
    here: Present,
) -> Objectives:
    """The objective of every program; `measured`: what the run has measured of attention, to which more may come."""
    made, own = dict[Program, Objective](), own_shape(config)
    phases = {Program(config.pretrain.objective, own): '', **programs_of(config)}
    for program, phase in phases.items():
        shape, shaped = program.shape, program.shape.within(config)
        of_phase = architecture_in(architecture, shape.turning, phase)
        of_shape = dataclasses.replace(
            measured,
            rows=shape.batch_rows // shape.micro_batches,
            plain_fits=plain_fits(shaped, of_phase, here, mesh.size),
            documents=rows[shape.rows].segments,
            width=0 if shape.rows.row_pieces == own.rows.row_pieces else shape.rows.row_pieces,
        )
        made[program] = make_objective(
            shaped, of_phase, subwords, shape.rows.row_pieces, mesh, warn, program.name, of_shape
        )
    first = next(iter(made.values()))
    scoring = {
        shape.turning: dataclasses.replace(
            first, architecture=architecture_in(architecture, shape.turning, phase)
        )
        for (_, shape), phase in phases.items()
    }
    return Objectives(made, {**scoring, own.turning: first})
