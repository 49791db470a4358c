"""The shape of a step: rows in a batch, pieces in a row and in a document, and how rotary positions turn.

Every phase may have its own. At the start of a phase batches may be smaller and documents shorter for so many tokens:
the warm-up of ModernBERT (Warner et al. 2024, arXiv 2412.13663), with equally many steps for each size.
"""

import dataclasses
import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from bioptimus_jax.pretrain.config import HasTraining, Phase
from bioptimus_jax.records.curriculum import RowCounts
from bioptimus_jax.rows.config import RowShape
from bioptimus_jax.surgery.config import wrong_rope


class Turning(NamedTuple):
    """How rotary positions turn; zeros and an empty kind: as the model says (`surgery.longer.turned`)."""

    rope_theta: float = 0.0
    rope_type: str = ''
    rope_factor: float = 0.0


class StepShape(NamedTuple):
    """What a step is compiled for."""

    batch_rows: int
    micro_batches: int
    rows: RowShape
    turning: Turning = Turning()

    def within(self, config: HasTraining) -> HasTraining:
        """The configuration with this shape in place of its own."""
        pretrain = dataclasses.replace(
            config.pretrain, batch_rows=self.batch_rows, micro_batches=self.micro_batches
        )
        return dataclasses.replace(config, pretrain=pretrain, rows=self.rows.within(config.rows))


class Stair(NamedTuple):
    """Steps at the start of a phase, with a shape of their own."""

    steps: int
    shape: StepShape


Counts = RowCounts | Mapping[tuple[str, RowShape], RowCounts]
"""Counts of all rows, or by phase and shape of its rows."""


def counts_of(counts: Counts, phase: str, shape: RowShape) -> RowCounts:
    """The counts of the rows that a phase reads in that shape."""
    return counts if isinstance(counts, RowCounts) else counts[phase, shape]


def own_shape(config: HasTraining) -> StepShape:
    """The shape of phases that have none of their own."""
    return StepShape(config.pretrain.batch_rows, config.pretrain.micro_batches, RowShape.of(config.rows))


def shape_of(config: HasTraining, phase: Phase) -> StepShape:
    """The shape of a phase, after its warm-up."""
    own = own_shape(config)
    return StepShape(
        phase.batch_rows or own.batch_rows,
        phase.micro_batches or own.micro_batches,
        row_shape_of(own.rows, phase),
        Turning(phase.rope_theta, phase.rope_type, phase.rope_factor),
    )


def row_shape_of(own: RowShape, phase: Phase) -> RowShape:
    """The shape of the rows of a phase, after its warm-up."""
    return RowShape(phase.row_pieces or own.row_pieces, phase.max_document_pieces or own.max_document_pieces)


def row_shapes_of(own: RowShape, phases: Sequence[Phase]) -> tuple[RowShape, ...]:
    """The shapes of all rows of phases, each once, `own` first."""
    found = [own]
    for phase in phases:
        later = row_shape_of(own, phase)
        found += [later._replace(max_document_pieces=pieces) for pieces in phase.warmup_document_pieces]
        found.append(later)
    return tuple(dict.fromkeys(found))


def warmup_shapes(config: HasTraining, phase: Phase) -> tuple[StepShape, ...]:
    """The shapes that a phase begins with, in order; their micro-batches have no more rows than later ones."""
    later = shape_of(config, phase)
    part = later.batch_rows // later.micro_batches
    count = max(len(phase.warmup_batch_rows), len(phase.warmup_document_pieces))
    batches = phase.warmup_batch_rows or (later.batch_rows,) * count
    lengths = phase.warmup_document_pieces or (later.rows.max_document_pieces,) * count
    return tuple(
        later._replace(
            batch_rows=batch,
            micro_batches=max(1, batch // part),
            rows=later.rows._replace(max_document_pieces=length),
        )
        for batch, length in zip(batches, lengths, strict=True)
    )


def warmup_of(config: HasTraining, name: str, counts: Counts) -> tuple[Stair, ...]:
    """The stairs that a phase begins with: equally many steps of each shape, with its `warmup_tokens` together."""
    phase = config.phase[name]
    shapes = warmup_shapes(config, phase)
    if not shapes:
        return ()
    in_step = [
        shape.batch_rows * found.tokens / found.rows
        for shape in shapes
        for found in [counts_of(counts, name, shape.rows)]
    ]
    steps = max(1, round(phase.warmup_tokens / sum(in_step)))
    return tuple(Stair(steps, shape) for shape in shapes)


def phase_shapes(config: HasTraining, phase: Phase) -> tuple[StepShape, ...]:
    """All shapes of a phase, in the order of its steps."""
    return (*warmup_shapes(config, phase), shape_of(config, phase))


def step_shapes(config: HasTraining) -> dict[StepShape, str]:
    """All shapes of the phases, each once, with the first phase that has it."""
    found: dict[StepShape, str] = {}
    for name in config.phases:
        for shape in phase_shapes(config, config.phase[name]):
            found.setdefault(shape, name)
    return found


def batch_sizes(config: HasTraining) -> tuple[tuple[int, int], ...]:
    """Rows, and pieces of a row, of all batches, each size once, in the order of training."""
    return tuple(dict.fromkeys((shape.batch_rows, shape.rows.row_pieces) for shape in step_shapes(config)))


def wrong_shapes(config: HasTraining, name: str) -> Iterator[str]:
    """What is wrong with the shapes of a phase, a message each."""
    phase, key = config.phase[name], f'config.phase.{name}'
    later = shape_of(config, phase)
    if later.batch_rows % later.micro_batches:
        yield f'{key}.micro_batches: {later.micro_batches} does not divide its {later.batch_rows} rows of a batch'
    if later.rows.max_document_pieces > later.rows.row_pieces:
        yield (
            f'{key}.max_document_pieces: {later.rows.max_document_pieces} does not fit into its rows of '
            f'{later.rows.row_pieces} pieces'
        )
    yield from _wrong_warmup(phase, later, key)
    yield from wrong_rope(*later.turning, key)


def _wrong_warmup(phase: Phase, later: StepShape, key: str) -> Iterator[str]:
    batches, lengths = phase.warmup_batch_rows, phase.warmup_document_pieces
    if bool(batches or lengths) != (phase.warmup_tokens > 0):
        yield (
            f'{key}.warmup_tokens: {phase.warmup_tokens:g}; a warm-up needs them, and warmup_batch_rows or '
            'warmup_document_pieces'
        )
    if batches and lengths and len(batches) != len(lengths):
        yield (
            f'{key}.warmup_document_pieces: {len(lengths)} lengths, and {len(batches)} sizes of batches; they go '
            'together one by one'
        )
    part = later.batch_rows // later.micro_batches
    for before, rows in itertools.pairwise((0, *batches, later.batch_rows)):
        if rows <= before and batches:
            yield f'{key}.warmup_batch_rows: {batches} do not rise to the {later.batch_rows} rows of later batches'
    for rows in batches:
        if rows > part and rows % part:
            yield (
                f'{key}.warmup_batch_rows: {rows} rows are not made of micro-batches of {part}; take multiples of it'
            )
    for before, pieces in itertools.pairwise((0, *lengths, later.rows.max_document_pieces)):
        if pieces <= before and lengths:
            yield (
                f'{key}.warmup_document_pieces: {lengths} do not rise to the {later.rows.max_document_pieces} of '
                'later documents'
            )
