"""`bioptimus plan`: estimate memory, time, cost and disk of a run.

What a run will take, before it is begun: parameters, steps and FLOPs of every phase, memory of a device,
hours, cost, disk space of every stage; on this machine unless you name devices. An estimate from the config:
what is read is the config.json of the source and the beginning of the texts, if they are here. With --compile
the compiler says what a step needs and moves, on this machine or on a slice of TPUs that is not here.

reads:  the config; config.json of the source, the beginning of up to four files of the texts
writes: tables to the terminal

examples:
  bioptimus plan --config=bioptimus
  bioptimus plan --config=bioptimus --device=h200 --devices=8 --price=2.50 --config.rows.row_pieces=1024
  bioptimus plan --config=bioptimus --device=v5e --devices=8 --config.pretrain.micro_batches=4 --compile
"""

import dataclasses

from bioptimus_jax.cli.command import (
    BEFORE,
    Command,
    Verb,
    config_flag,
    count,
    described,
    flag,
    json_flag,
    positive,
    share,
    switch,
)
from bioptimus_jax.errors import ConfigError
from bioptimus_jax.experiment.stages import keys
from bioptimus_jax.hosts.devices import DEVICES, MFU


def _call(command: Command) -> None:
    from bioptimus_jax.hosts.remote.models import configuration
    from bioptimus_jax.model.tensors import head_note, lacks_head
    from bioptimus_jax.pretrain import plan  # imports jax
    from bioptimus_jax.pretrain.compiled import compile_programs
    from bioptimus_jax.report import estimate
    from bioptimus_jax.start.hours import stages_table
    from bioptimus_jax.start.machine import compiled_for, machine
    from bioptimus_jax.start.texts import words_at_hand

    options, experiment = command.options, command.experiment_without_paths
    names = list(DEVICES) if options.device == 'all' else options.device.split(',')
    machines = [machine(name, options.devices) for name in names]
    if options.compile and len(machines) > 1:
        raise ConfigError(f'--compile: {options.device} are {len(machines)} devices; give one with --device')
    told = {field.name: getattr(options, field.name) for field in dataclasses.fields(plan.Assumptions)}
    found = words_at_hand(experiment.corpus)
    if found and not options.words:
        told['words'] = min(found.in_corpus, experiment.corpus.max_words or found.in_corpus)
        told['input_words'] = options.input_words or found.words
    planned = plan.make_plan(experiment, plan.Assumptions(**told))
    source = configuration(experiment.source.path) if experiment.source.path else None
    tables = estimate.tables(planned, [one.device for one in machines], machines[0].count)
    if options.compile:
        one, packs = machines[0], machines[0].device.packs
        compiled = [*compile_programs(experiment, planned.architecture, compiled_for(one), packs)]
        tables['compiled'] = estimate.compiled_table(planned, one.device, one.count, compiled)
    if machines[0].measured and planned.words and len(machines) == 1:
        tables['stages'] = stages_table(experiment, planned, machines[0])
    notes = [head_note(experiment.pretrain.head_steps)] if source and lacks_head(source) else []
    notes += [f'{one.name}: {one.measured}' for one in machines if one.measured]
    if found and not options.words:
        notes.append(found.said())
    command.answer(
        lambda: estimate.document(planned, tables), lambda: estimate.report(planned, tables, notes)
    )


KEYS = (
    *('stages', 'phases', 'phase', 'source.path', 'contexts.per_token', 'surgery.strategy', 'model'),
    *(*keys('corpus', 'max_words heldout_fraction'), *keys('vocab', 'kind size file')),
    *(*keys('rows', 'row_pieces max_document_pieces'), 'evaluation.snapshots_per_phase'),
    *keys('pretrain', 'objective batch_rows micro_batches max_word_pieces ema dtype'),
    *keys('runtime', 'fsdp tensor attention remat scan_layers keep_checkpoints'),
)

VERB = Verb(
    *described(__doc__),
    (
        config_flag(),
        flag(
            '--device',
            f'cpu of this machine, {", ".join(DEVICES)}, several with commas, or all (default: what is here)',
            metavar='NAME',
        ),
        count('--devices', 'number of devices (default: all that are here; 1 of those that are named)', 0),
        flag(
            '--price',
            'price of one device for one hour: adds the cost',
            None,
            type=positive,
            metavar='AMOUNT',
        ),
        flag(
            '--mfu',
            'share of the bfloat16 peak that is reached (default: %(default)s)',
            MFU,
            type=share,
            metavar='SHARE',
        ),
        flag(
            '--words',
            'words of the corpus (default: those that it keeps of the texts, if they are here)',
            0,
            type=positive,
            metavar='N',
        ),
        flag(
            '--input-words',
            'words of the files it is chosen from (default: as many)',
            0,
            type=positive,
            metavar='N',
        ),
        flag(
            '--pieces-per-word',
            'pieces of a word between spaces (default: 1.31; 1.55 where the source keeps its vocabulary)',
            0,
            type=positive,
            metavar='X',
        ),
        flag(
            '--fill',
            'share of the rows that is filled (default: 0.92; 0.98 where they hold two of the longest documents)',
            0,
            type=share,
            metavar='SHARE',
        ),
        switch(
            '--compile',
            'compile each step, here or for a slice of TPUs (v5e, v5p, v6e), and say what the compiler says',
        ),
        json_flag(),
    ),
    _call,
    KEYS,
    group=BEFORE,
)
