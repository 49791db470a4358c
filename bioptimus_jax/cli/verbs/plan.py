"""`bioptimus plan`: estimate memory, time, cost and disk of a run.

What a run will take, before it is begun: parameters, steps and FLOPs of every phase, memory of a device,
hours, cost, disk space of every stage. An estimate from the config: nothing is compiled or read but the
config.json of a source that is a folder here.

reads:  the config
writes: tables to the terminal

examples:
  bioptimus plan --config=bioptimus
  bioptimus plan --config=bioptimus --device=h200 --devices=8 --price=2.50 --config.rows.row_pieces=1024
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
)
from bioptimus_jax.experiment.stages import keys
from bioptimus_jax.hosts.devices import DEVICES, MFU


def _call(command: Command) -> None:
    from bioptimus_jax.hosts.devices import device_named
    from bioptimus_jax.pretrain import plan  # imports jax
    from bioptimus_jax.report import estimate

    options = command.options
    device = device_named(options.device) if options.device else None
    told = {field.name: getattr(options, field.name) for field in dataclasses.fields(plan.Assumptions)}
    assumed = plan.Assumptions(**told)
    planned = plan.make_plan(command.experiment_without_paths, assumed)
    tables = estimate.tables(planned, estimate.chosen(device), options.devices)
    command.answer(lambda: estimate.document(planned, tables), lambda: estimate.report(planned, tables))


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
        flag('--device', f'one of {", ".join(DEVICES)} (default: all of them)', metavar='NAME'),
        count('--devices', 'number of devices (default: %(default)s)', 8),
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
        flag('--words', 'words of the corpus (default: corpus.max_words)', 0, type=positive, metavar='N'),
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
        json_flag(),
    ),
    _call,
    KEYS,
    group=BEFORE,
)
