"""Steps of any objective on the rows of the tiny run, a teacher for it, and rows of three short documents."""

import dataclasses
import json

import jax
import jax.numpy as jnp
import numpy as np
from toy_pretraining import experiment, with_equal_program

from bioptimus_jax.experiment.stages import STAGES
from bioptimus_jax.model.families.roberta import Roberta
from bioptimus_jax.model.tensors import load_folder, write_folder
from bioptimus_jax.pretrain import curriculum
from bioptimus_jax.pretrain.batches import Batches
from bioptimus_jax.pretrain.objective import make_objective
from bioptimus_jax.pretrain.shape import RowCounts
from bioptimus_jax.pretrain.sharding import batch_sharding, make_mesh
from bioptimus_jax.pretrain.step import sharded_step
from bioptimus_jax.rows.stored import Rows
from bioptimus_jax.run.execute import execute
from bioptimus_jax.run.folder import Run
from bioptimus_jax.tokenizer import subwords

PIECES = 24
LENGTHS = np.array([[17], [9], [24]], np.int32)


def example_of(objective, tokens=None):
    """Rows of a document each, masked; or these tokens. Of a vocabulary of 200."""
    if tokens is None:
        tokens = np.random.default_rng(0).integers(5, 200, (len(LENGTHS), PIECES)).astype(np.int32)
        tokens = np.where(np.arange(PIECES)[None] < LENGTHS, tokens, 0)
    batch = {
        'tokens': jnp.asarray(tokens),
        'word_starts': tokens > 0,
        'segment_lengths': jnp.asarray(LENGTHS),
    }
    setting = objective.columns(objective.config.phase['0.1'], objective.config)
    setting = setting._replace(rate=setting.rate.first)  # it does not move
    keys = jax.random.split(jax.random.key(3, impl='threefry2x32'), len(LENGTHS))
    return objective.example(batch, setting, keys)


def make_teacher(prepared):
    """A RoBERTa with the vocabulary of the tiny run, wider than its model; its folder."""
    folder, vocab = prepared / 'teacher', prepared / 'run' / 'vocab'
    known = subwords.load(vocab)
    shape = Roberta(len(known.tokens), 24, 1, 4, 32, 40, initializer_range=0.3).padded_with(known.pad)
    write_folder(folder, shape, shape.initial_parameters(jax.random.key(7)), vocab)
    return folder


def make_notes(prepared):
    """Rows of other texts with the vocabulary of the tiny run, as another corpus for it; the folder of their run."""
    rng = np.random.default_rng(1)
    with open(prepared / 'notes.jsonl', 'w') as file:
        for number in range(100):
            text = ' '.join(''.join(rng.choice(list('abcde'), 4)) for _ in range(rng.integers(6, 30)))
            file.write(json.dumps({'id': f'note{number}', 'title': '', 'abstract': text}) + '\n')
    changes = {
        'corpus.inputs': prepared / 'notes.jsonl',
        'vocab.kind': 'file',
        'vocab.file': prepared / 'run' / 'vocab' / 'vocab.txt',
    }
    run = Run(prepared / 'notes', experiment(prepared, **changes), quiet=True)
    for stage in ('corpus', 'vocab', 'rows'):
        execute(run, STAGES[stage])
    return run.workdir


class Steps:
    """An objective, its compiled step, and the state before the first."""

    def __init__(self, prepared, devices=1, fsdp=1, tensor=1, dropout=0.0, **changes):
        mesh_keys = dict(runtime__devices=devices, runtime__fsdp=fsdp, runtime__tensor=tensor)
        config = experiment(prepared, **mesh_keys, **changes)
        run, mesh = Run(prepared / 'run', config), make_mesh(devices, fsdp, tensor)
        self.architecture, self.params, _ = load_folder(run.folder('surgery') / 'model')
        self.architecture = dataclasses.replace(self.architecture, dropout=dropout, attention_dropout=dropout)
        rows, words = Rows(run.folder('rows'), 'train'), subwords.load(run.folder('vocab'))
        self.objective = make_objective(config, self.architecture, words, rows.pieces, mesh, print)
        schedule = curriculum.make_schedule(config, RowCounts(len(rows), 1, 1))
        self.table = curriculum.table(schedule, config)
        self.batches = Batches(
            rows, config.pretrain.batch_rows, 0, batch_sharding(mesh), self.objective.reads
        )
        step, self.state = sharded_step(self.objective, mesh, self.params)
        self.step = with_equal_program(step, self.objective, mesh)

    def after(self, steps):
        """State and metrics after so many steps."""
        state, metrics = self.state, {}
        for step in range(steps):
            state, metrics = self.step(state, self.batches.at(step), self.table)
        return state, jax.tree.map(np.asarray, metrics)
