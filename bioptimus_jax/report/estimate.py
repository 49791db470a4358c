"""The tables of the verb `plan`: the model, its phases, memory, time and cost on each device, disk."""

import dataclasses
from collections.abc import Sequence

from bioptimus_jax.errors import ConfigError
from bioptimus_jax.hosts.devices import DEVICES, GIB, Device
from bioptimus_jax.hosts.disk import disk_space
from bioptimus_jax.plan import Plan, parameter_counts
from bioptimus_jax.pretrain.backends import remat_of, scans
from bioptimus_jax.pretrain.memory import step_memory
from bioptimus_jax.report.layout import Cell, Table, count, fixed, percent, words

# Of a GPU's memory JAX takes three quarters at once unless XLA_PYTHON_CLIENT_MEM_FRACTION says otherwise.
USABLE = {'gpu': 0.9, 'tpu': 0.95}


def report(plan: Plan, devices: Sequence[Device], number: int) -> str:
    """The plan as text: the model, phases, memory, time and cost on so many of each of the devices, disk."""
    tables = [_phases(plan), _memory(plan, devices, number), _time(plan, devices, number), _disk(plan)]
    return '\n\n'.join([_model(plan), *(table.text() for table in tables)])


def chosen(device: Device | None) -> tuple[Device, ...]:
    """The devices of a report: the one asked for, or all."""
    return (device,) if device else tuple(DEVICES.values())


def _model(plan: Plan) -> str:
    a, counts = plan.architecture, parameter_counts(plan.architecture)
    runtime = plan.experiment.runtime
    parts = ', '.join(f'{name} {n:,}' for name, n in counts.items())
    return (
        f'Model ({plan.shape_from}): {a.layers} layers x {a.hidden}, {a.heads} heads, feed-forward '
        f'{a.intermediate:,}, {a.vocab_size:,} entries ({a.padded_vocab_size:,} padded)\n'
        f'Parameters: {sum(counts.values()):,} ({parts})\n'
        f'Layers: remat {remat_of(runtime, a.layers)}, {"scanned" if scans(runtime, a.layers) else "unrolled"}, '
        f'attention {runtime.attention}, dropout {a.dropout} and {a.attention_dropout} of attention'
    )


def _phases(plan: Plan) -> Table:
    rows = [
        [
            words(phase.name),
            count(phase.steps),
            count(phase.pieces),
            _short(phase.flops_per_piece / 1e9, 3),
            _short(phase.pieces * phase.flops_per_piece / 1e18),
        ]
        for phase in plan.phases
    ]
    total = plan.flops / plan.pieces / 1e9
    rows.append(
        [words('all'), count(plan.steps), count(plan.pieces), _short(total, 3), _short(plan.flops / 1e18)]
    )
    of, settings = plan.assumed, plan.experiment
    corpus = f'{of.words:,.0f} words in the corpus' if of.words else 'Length of the corpus unknown'
    note = (
        f'{corpus}, {settings.corpus.heldout_fraction:.1%} held out, {of.pieces_per_word:g} pieces a word; batches of '
        f'{settings.pretrain.batch_rows} rows of {settings.rows.row_pieces}, {of.fill:.0%} full.'
    )
    return Table('Phases', ['phase', 'steps', 'pieces', 'GFLOP a piece', 'EFLOP'], rows, note=note)


def _memory(plan: Plan, devices: Sequence[Device], number: int) -> Table:
    columns = [
        'device',
        'parameters',
        'optimiser',
        'gradients',
        'activations',
        'output layer',
        'update',
        'peak',
    ]
    columns += ['of memory', 'fits']
    rows = []
    for device in devices:
        memory = step_memory(plan.experiment, plan.architecture, device.platform, number)
        parts = [getattr(memory, field.name) for field in dataclasses.fields(memory)]
        share = memory.peak / device.memory_bytes
        rows.append(
            [
                words(device.name),
                *(_short(part / GIB) for part in (*parts, memory.peak)),
                percent(share, 0),
                words(_fits(plan, device, number)),
            ]
        )
    note = (
        'GiB. Peak: parameters and optimiser beside the larger of two moments, the turn to the backward '
        'pass\n(gradients, activations, output layer) and the update. Above 75 % a GPU needs '
        'XLA_PYTHON_CLIENT_MEM_FRACTION=.95.'
    )
    return Table(f'Memory of one device of {number}', columns, rows, note=note)


def _fits(plan: Plan, device: Device, number: int) -> str:
    """`yes`, or the fewest micro-batches with which the step fits, or `no`."""
    pretrain = plan.experiment.pretrain
    for parts in range(pretrain.micro_batches, pretrain.batch_rows + 1):
        if pretrain.batch_rows % parts:
            continue
        smaller = dataclasses.replace(
            plan.experiment, pretrain=dataclasses.replace(pretrain, micro_batches=parts)
        )
        try:
            memory = step_memory(smaller, plan.architecture, device.platform, number)
        except ConfigError:  # fewer rows than devices
            continue
        if memory.peak <= USABLE[device.platform] * device.memory_bytes:
            return 'yes' if parts == pretrain.micro_batches else f'with micro_batches={parts}'
    return 'no'


def _time(plan: Plan, devices: Sequence[Device], number: int) -> Table:
    price = plan.assumed.price
    columns = ['device', 'peak TFLOP/s', 'pieces/s', 'hours', 'device-hours', *(['cost'] if price else [])]
    rows = []
    for device in devices:
        hours = plan.hours(device, number)
        row = [words(device.name), count(device.peak_flops / 1e12), count(plan.pieces / hours / 3600)]
        row += [_short(hours, 1), _short(hours * number, 1)]
        rows.append(row + ([fixed(hours * number * price, 2)] if price else []))
    note = f'At {plan.assumed.mfu:.0%} of the dense bfloat16 peak (--mfu); pre-training steps alone.'
    if price:
        note += f' {price:g} a device-hour, for every device.'
    return Table(f'Time on {number} devices', columns, rows, note=note)


def _short(value: float, decimals: int = 2) -> Cell:
    """So many decimals, or two digits of what would vanish."""
    return fixed(value, decimals) if value >= 10.0**-decimals else Cell(f'{value:.2g}', value)


def _disk(plan: Plan) -> Table:
    spaces = disk_space(
        plan.experiment,
        sum(parameter_counts(plan.architecture).values()),
        plan.words,
        plan.assumed.input_words or plan.words,
        plan.assumed.pieces_per_word,
        plan.assumed.fill,
    )
    rows = [[words(s.stage), _short(s.size / 1e9), words(s.what)] for s in spaces]
    rows.append([words('all'), _short(sum(s.size for s in spaces) / 1e9), words('')])
    note = '' if plan.words else 'Without what grows with the corpus, whose length is unknown: --words=N.'
    return Table('Disk', ['stage', 'GB', 'what'], rows, note=note)
