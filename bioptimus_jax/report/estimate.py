"""The tables of the verb `plan`: the model, its phases, memory, time and cost on each device, disk."""

import dataclasses
from collections.abc import Mapping, Sequence

from bioptimus_jax.errors import ConfigError
from bioptimus_jax.hosts.devices import GIB, Device
from bioptimus_jax.pretrain.backends import remat_of, scans
from bioptimus_jax.pretrain.compiled import CompiledStep
from bioptimus_jax.pretrain.disk import Space, disk_space
from bioptimus_jax.pretrain.memory import Memory, rows_of_a_device, step_memory
from bioptimus_jax.pretrain.plan import Plan
from bioptimus_jax.pretrain.shape import StepShape, batch_sizes, shape_of, step_shapes
from bioptimus_jax.pretrain.traffic import beside_products, sends
from bioptimus_jax.progress.console import numbered
from bioptimus_jax.report.layout import (
    NOT_RUN,
    Cell,
    Column,
    Table,
    count,
    each,
    fixed,
    missing,
    percent,
)
from bioptimus_jax.storage.files import JsonObject

MIB = 2**20
# JAX takes three quarters of a GPU's memory at once unless XLA_CLIENT_MEM_FRACTION says otherwise.
USABLE = {'gpu': 0.9, 'tpu': 0.95, 'cpu': 1.0}


def report(plan: Plan, tables: Mapping[str, Table], notes: Sequence[str] = ()) -> str:
    """The plan as text; `notes`: what was measured for it."""
    return '\n\n'.join(['\n'.join([_model(plan), *notes]), *(table.text() for table in tables.values())])


def document(plan: Plan, tables: Mapping[str, Table]) -> JsonObject:
    """The plan as data: `model`, `assumed`, and the rows of each table."""
    model = {'from': plan.shape_from, 'parameters': plan.parameters, 'entries': plan.architecture.vocab_size}
    rows = {name: table.records() for name, table in tables.items()}
    return {'model': model, 'assumed': dataclasses.asdict(plan.assumed), **rows}


def tables(plan: Plan, devices: Sequence[Device], number: int) -> dict[str, Table]:
    """Phases, memory, time and cost on so many of each of the devices, disk."""
    linked = [device for device in devices if number > 1 and sends(device, number)]
    between = {'between': _between(plan, linked, number)} if linked else {}
    return {
        'phases': _phases(plan),
        'memory': _memory(plan, devices, number),
        'time': _time(plan, devices, number),
        **between,
        'disk': _disk(plan),
    }


def _model(plan: Plan) -> str:
    a, counts = plan.architecture, plan.parameters
    runtime = plan.experiment.runtime
    parts = ', '.join(f'{name} {n:,}' for name, n in counts.items())
    kept = f' are trained, {plan.kept:,} stay as they are' if plan.kept else ''
    return (
        f'Model ({plan.shape_from}): {numbered(a.layers, "layer")} x {a.hidden}, {numbered(a.heads, "head")}, '
        f'feed-forward {a.intermediate:,}, {a.vocab_size:,} entries ({a.padded_vocab_size:,} padded)\n'
        f'Parameters: {sum(counts.values()):,} ({parts}){kept}\n'
        f'Layers: remat {remat_of(runtime, a.layers)}, {"scanned" if scans(runtime, a.layers) else "unrolled"}, '
        f'attention {runtime.attention}, dropout {a.dropout} and {a.attention_dropout} of attention'
    )


def _phases(plan: Plan) -> Table:
    records = [(p.name, p.steps, p.pieces, p.pieces * p.flops_per_piece) for p in plan.phases]
    columns = [
        Column('phase', lambda name, *_: name),
        Column('steps', lambda name, steps, *_: count(steps)),
        Column('pieces', lambda name, steps, pieces, flops: count(pieces)),
        Column('GFLOP a piece', lambda name, steps, pieces, flops: _short(flops / pieces / 1e9, 3)),
        Column('EFLOP', lambda name, steps, pieces, flops: _short(flops / 1e18)),
    ]
    of, settings = plan.assumed, plan.experiment
    corpus = (
        f'{numbered(round(of.words), "word")} in the corpus' if of.words else 'Length of the corpus unknown'
    )
    batches = ', then '.join(f'{numbered(rows, "row")} of {pieces}' for rows, pieces in batch_sizes(settings))
    note = (
        f'{corpus}, {settings.corpus.heldout_fraction:.1%} held out, {of.pieces_per_word:g} pieces a word; batches of '
        f'{batches}, {of.fill:.0%} full.'
    )
    every = [*records, ('all', plan.steps, plan.pieces, plan.flops)]
    return Table.of('Phases', columns, every, note=note)


def _memory(plan: Plan, devices: Sequence[Device], number: int) -> Table:
    shaped = [shape.within(plan.experiment) for shape in step_shapes(plan.experiment)]
    memory = {
        d: max(
            (step_memory(of, plan.architecture, d.platform, number) for of in shaped), key=lambda m: m.peak
        )
        for d in devices
    }
    said = {'optimizer': 'optimiser', 'output_layer': 'output layer'}
    names = [field.name for field in dataclasses.fields(Memory)] + ['peak']
    columns = [
        Column('device', lambda device: device.name),
        *each({x: said.get(x, x) for x in names}, lambda x, device: _short(getattr(memory[device], x) / GIB)),
        Column('of memory', lambda device: percent(memory[device].peak / device.memory_bytes, 0)),
        Column('fits', lambda device: _fits(plan, device, number)),
    ]
    note = (
        'GiB. Peak: parameters and optimiser beside the larger of two moments, the turn to the backward '
        'pass\n(gradients, activations, output layer) and the update. Above 75 % a GPU needs '
        'XLA_CLIENT_MEM_FRACTION=.95.'
    )
    return Table.of(f'Memory of one device of {number}', columns, devices, note=note)


def compiled_table(plan: Plan, device: Device, number: int, steps: Sequence[CompiledStep]) -> Table:
    """What the compiler says of the programs of a plan, beside the estimate."""
    a, experiment = plan.architecture, plan.experiment

    def estimated(step: CompiledStep) -> float:
        return step_memory(step.program.shape.within(experiment), a, device.platform, number).peak

    def least(step: CompiledStep) -> float:
        """Milliseconds that neither the products nor the memory can be faster than."""
        return 1e3 * max(step.flops / device.peak_flops, step.moved / device.bandwidth)

    def batch(step: CompiledStep) -> str:
        shape = step.program.shape
        parts = f' in {shape.micro_batches} parts' if shape.micro_batches > 1 else ''
        return f'{shape.batch_rows:,} x {shape.rows.row_pieces:,}{parts}'

    columns = [
        Column('phase', lambda step: step.phase),
        Column('objective', lambda step: step.program.name),
        Column('batch', batch),
        Column('attention', lambda step: step.attention),
        Column('MiB', lambda step: count(step.memory / MIB) if step.memory else missing()),
        Column('estimate', lambda step: count(estimated(step) / MIB)),
        Column('of memory', lambda step: percent(step.memory / device.memory_bytes or None, 0)),
        Column('TFLOP', lambda step: _short(step.flops / 1e12) if step.flops else missing()),
        Column('GB', lambda step: _short(step.moved / 1e9) if step.moved else missing()),
        Column('ms at least', lambda step: _short(least(step), 1) if step.moved else missing()),
        Column('between devices', lambda step: step.left_out or _traffic(step)),
    ]
    took = sum(step.seconds for step in steps)
    note = (
        'MiB: at the peak. TFLOP and GB: operations, and bytes that they read and write; ms at least: what these take '
        f"at the device's own rates.\nA loop (over micro-batches, scanned layers or slots) counts once in them, and "
        f'between devices. Compiled in {took:,.0f} s.'
    )
    return Table.of(f'A step, compiled for one {device.name} of {number}', columns, steps, note=note)


def _traffic(step: CompiledStep) -> str:
    """Collectives by kind, and the megabytes of their results."""
    kinds = (f'{of.number} {kind} {of.moved / 1e6:,.0f} MB' for kind, of in step.collectives.items())
    return ', '.join(kinds) or NOT_RUN


def _fits(plan: Plan, device: Device, number: int) -> str:
    """`yes`, or the fewest micro-batches with which the step fits, or `no`; where phases differ, by phase."""
    answers = {
        phase: _parts(plan, shape, device, number) for shape, phase in step_shapes(plan.experiment).items()
    }
    if len(set(answers.values())) == 1:
        return next(iter(answers.values()))
    return '; '.join(f'{phase}: {answer}' for phase, answer in answers.items())


def _parts(plan: Plan, shape: StepShape, device: Device, number: int) -> str:
    for parts in range(shape.micro_batches, shape.batch_rows + 1):
        if shape.batch_rows % parts:
            continue
        smaller = shape._replace(micro_batches=parts).within(plan.experiment)
        try:
            memory = step_memory(smaller, plan.architecture, device.platform, number)
        except ConfigError:  # fewer rows than devices
            continue
        if memory.peak <= USABLE[device.platform] * device.memory_bytes:
            return 'yes' if parts == shape.micro_batches else f'with micro_batches={parts}'
    return 'no'


def _between(plan: Plan, devices: Sequence[Device], number: int) -> Table:
    """What a step does beside its products on several devices, and the hours if nothing of it overlaps."""
    e, last = plan.experiment, plan.phases[-1]
    shaped = shape_of(e, e.phase[last.name]).within(e)
    rows = rows_of_a_device(shaped, number) * shaped.pretrain.micro_batches
    beside = {device: beside_products(shaped, plan.architecture, device, number) for device in devices}

    def milliseconds(seconds: float) -> Cell:
        return _short(1e3 * seconds, 1)

    def at_most(device: Device) -> Cell:
        return _short(plan.hours(device, number) + plan.hours_beside(device, number), 1)

    columns = [
        Column('device', lambda device: device.name),
        Column('rows', lambda _: count(rows)),
        Column('ms computing', lambda device: milliseconds(plan.step_seconds(last, device, number))),
        Column('ms updating', lambda device: milliseconds(beside[device].updating)),
        Column('MB sent', lambda device: count(sum(beside[device].sent) / 1e6)),
        Column('ms sending', lambda device: milliseconds(beside[device].sending)),
        Column('hours at most', at_most),
    ]
    note = (
        'Rows of a device in a step, and how long it computes at that share of the peak; beside that, the update '
        "moves parameters at the memory's rate,\nand gradients are sent at the links' (to other hosts at the "
        "network's). Hours at most: nothing of it overlaps."
    )
    return Table.of(f'A step of phase {last.name} on {number} devices', columns, devices, note=note)


def _time(plan: Plan, devices: Sequence[Device], number: int) -> Table:
    price = plan.assumed.price
    hours = {device: plan.hours(device, number) for device in devices}
    columns = [
        Column('device', lambda device: device.name),
        Column('peak TFLOP/s', lambda device: _short(device.peak_flops / 1e12, 0)),
        Column('memory GB/s', lambda device: count(device.bandwidth / 1e9)),
        Column('pieces/s', lambda device: count(plan.pieces / hours[device] / 3600)),
        Column('hours', lambda device: _short(hours[device], 1)),
        Column('device-hours', lambda device: _short(hours[device] * number, 1)),
        Column('cost', lambda device: fixed(hours[device] * number * (price or 0), 2), when=bool(price)),
    ]
    note = (
        f'At {plan.assumed.mfu:.0%} of the peak (--mfu), dense bfloat16 or what a CPU was measured to do; pre-training '
        'steps alone.'
    )
    if plan.architecture.attention_dropout:
        note += ' With attention dropout a GPU has no kernel for attention: expect about half of it.'
    if price:
        note += f' {price:g} a device-hour, for every device.'
    return Table.of(f'Time on {numbered(number, "device")}', columns, devices, note=note)


def _short(value: float, decimals: int = 2) -> Cell:
    """A number with so many decimals, or two digits of what would vanish."""
    return fixed(value, decimals) if value >= 10.0**-decimals else Cell(f'{value:.2g}', value)


def _disk(plan: Plan) -> Table:
    of, parameters = plan.assumed, sum(plan.parameters.values())
    read = of.input_words or plan.words
    model = parameters, plan.kept, plan.architecture.vocab_size
    spaces = disk_space(plan.experiment, *model, plan.words, read, of.pieces_per_word, of.fill)
    records = [*spaces, Space('all', sum(s.size for s in spaces), '')]
    columns = [
        Column('stage', lambda s: s.stage),
        Column('GB', lambda s: _short(s.size / 1e9)),
        Column('what', lambda s: s.what),
    ]
    note = '' if plan.words else 'Without what grows with the corpus, whose length is unknown: --words=N.'
    return Table.of('Disk', columns, records, note=note)
