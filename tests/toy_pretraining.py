"""A tiny run that is ready to be pre-trained, and what a kill leaves of one."""

import contextlib
import dataclasses
import json
import shutil

import jax
import numpy as np
import pytest

from bioptimus_jax.config.fields import put
from bioptimus_jax.corpus.config import Corpus
from bioptimus_jax.experiment import config
from bioptimus_jax.experiment.schema import Experiment
from bioptimus_jax.experiment.stages import STAGES
from bioptimus_jax.finetuning.config import Finetune
from bioptimus_jax.hosts.config import Runtime
from bioptimus_jax.model.trees import flatten
from bioptimus_jax.pretrain import loop, programs
from bioptimus_jax.pretrain.checkpoint import Checkpoints, load_phase
from bioptimus_jax.pretrain.config import Curriculum, Evaluation
from bioptimus_jax.pretrain.objective import make_objective
from bioptimus_jax.pretrain.step import sharded_steps
from bioptimus_jax.run.execute import execute
from bioptimus_jax.run.folder import Run
from bioptimus_jax.surgery.made import NOTHING_MADE

CONFIG = """
from bioptimus_jax.experiment.config import defaults

def get_config(argument=''):
    c = defaults()
    c.corpus.update(inputs=({corpus!r},), heldout_fraction=0.1, shards=1)
    c.vocab.update(size=300)
    c.model.update(layers={layers}, hidden=16, heads=4, intermediate=32, max_positions=32)
    c.surgery.strategy = 'scratch'
    c.rows.update(row_pieces=64, max_document_pieces=32)
    c.pretrain.update(batch_rows=8, learning_rate=1e-3, max_word_pieces=4)
    for name in c.phases:
        c.phase[name].update(duration=6.0, duration_unit='steps')
    c.evaluation.update(rows=8, per_phase=1)
    c.runtime.update(workers=1, devices=1, log_every_steps=2, checkpoint_every_steps=1000)
    return c
"""


def prepare(folder, layers=1):
    """A run with everything that pre-training reads, in this folder."""
    rng = np.random.default_rng(0)
    words = [''.join(rng.choice(list('abcdeimnorst'), rng.integers(2, 10))) for _ in range(150)]
    with open(folder / 'corpus.jsonl', 'w') as file:
        for number in range(300):
            text = ' '.join(rng.choice(words, rng.integers(6, 40))) + '.'
            file.write(json.dumps({'id': str(number), 'title': '', 'abstract': text}) + '\n')
    (folder / 'tiny.py').write_text(CONFIG.format(corpus=str(folder / 'corpus.jsonl'), layers=layers))
    run = Run(folder / 'run', experiment(folder), quiet=True)
    for stage in ('corpus', 'vocab', 'surgery', 'rows'):
        execute(run, STAGES[stage])
    return folder


PAIRS = {
    'rows.layout': 'pairs',
    'rows.block_documents': 40,
    'pretrain.objective': 'nsp',
    'phases': '0.2,',  # whole words
    'corpus.min_words': 2,
    'model.dropout': 0.0,
    'model.attention_dropout': 0.0,
    'pretrain.micro_batches': 2,
}
"""What a run of pairs has other than the tiny one."""


def prepare_pairs(folder):
    """A run as `prepare` makes it, of documents of one to eight sentences, packed as pairs."""
    rng = np.random.default_rng(0)
    words = [''.join(rng.choice(list('abcdeimnorst'), rng.integers(2, 10))) for _ in range(60)]
    with open(folder / 'corpus.jsonl', 'w') as file:
        for number in range(120):
            sentences = (
                ' '.join(rng.choice(words, rng.integers(2, 6))).capitalize()
                for _ in range(rng.integers(1, 9))
            )
            text = '. '.join(sentences) + '.'
            file.write(json.dumps({'id': str(number), 'title': '', 'abstract': text}) + '\n')
    (folder / 'tiny.py').write_text(CONFIG.format(corpus=str(folder / 'corpus.jsonl'), layers=1))
    run = Run(folder / 'run', experiment(folder, **PAIRS), quiet=True)
    for stage in ('corpus', 'vocab', 'surgery', 'rows'):
        execute(run, STAGES[stage])
    return folder


APART = {
    'rows.layout': 'first_line',
    'rows.block_documents': 40,
    'pretrain.objective': 'contrastive',
    'phases': '0.1,',
    'corpus.min_words': 2,
    'corpus.near.threshold': 0.0,
    'model.dropout': 0.0,
    'model.attention_dropout': 0.0,
    'pretrain.micro_batches': 2,
}
"""What a run of titles and abstracts has other than the tiny one."""


def prepare_apart(folder):
    """A run as `prepare` makes it, of abstracts that begin with the words of their title; some titles are equal."""
    rng = np.random.default_rng(0)
    words = [''.join(rng.choice(list('abcdeimnorst'), rng.integers(2, 10))) for _ in range(60)]
    with open(folder / 'corpus.jsonl', 'w') as file:
        for number in range(160):
            title = ' '.join(rng.choice(words, 2)) if number % 20 else 'reply'
            text = f'{title} {" ".join(rng.choice(words, rng.integers(1, 4)))}.'
            file.write(json.dumps({'id': str(number), 'title': title, 'abstract': text}) + '\n')
    (folder / 'tiny.py').write_text(CONFIG.format(corpus=str(folder / 'corpus.jsonl'), layers=1))
    run = Run(folder / 'run', experiment(folder, **APART), quiet=True)
    for stage in ('corpus', 'vocab', 'surgery', 'rows'):
        execute(run, STAGES[stage])
    return folder


def write_vowels(folder):
    """The set `vowels`, in a folder of sets: its entities are the words that begin with a vowel."""
    rng = np.random.default_rng(1)
    words = [''.join(rng.choice(list('abcdeimnorst'), rng.integers(2, 6))) for _ in range(80)]
    sentences = [rng.choice(words, rng.integers(4, 12)) for _ in range(60)]
    lines = '\n\n'.join('\n'.join(f'{w}\t{"B-X" if w[0] in "aeio" else "O"}' for w in s) for s in sentences)
    (folder / 'vowels').mkdir(parents=True, exist_ok=True)
    for split in ('train', 'devel', 'test'):
        (folder / 'vowels' / f'{split}.tsv').write_text(f'{lines}\n')


def of_letters(folder, pieces, phases, **changes):
    """One small layer from random weights, on words of a letter each: `vocab.txt` and `corpus.jsonl` of a folder."""
    c = config.defaults()
    c.corpus.update(inputs=(str(folder / 'corpus.jsonl'),), heldout_fraction=0.2, shards=1)
    c.corpus.near.threshold = 0.0
    c.vocab.update(kind='file', file=str(folder / 'vocab.txt'))
    c.model.update(layers=1, hidden=16, heads=2, intermediate=16, max_positions=pieces)
    c.model.update(dropout=0.0, attention_dropout=0.0)  # a quarter of what a step takes to be compiled
    c.surgery.strategy = 'scratch'
    c.rows.update(row_pieces=pieces, max_document_pieces=pieces)
    c.pretrain.update(batch_rows=8, micro_batches=2, learning_rate=3e-2)
    c.phases = tuple(phases)
    for name in phases:
        c.phase[name].update(duration=6.0, duration_unit='steps')
    c.evaluation.per_phase = 1
    c.runtime.update(workers=1, devices=1, log_every_steps=2, checkpoint_every_steps=1000)
    return changed(c, changes)


def experiment(folder, **changes):
    return changed(config.load(str(folder / 'tiny.py')), changes)


def changed(loaded, changes):
    for dotted, value in changes.items():
        dotted = dotted.replace('__', '.')
        if dotted.startswith('corpora.') or dotted == 'phase.0.5.masking':  # what no command line can begin
            put(loaded, Experiment, dotted, str(value))
        else:
            config.override(loaded, dotted, str(value))
    return Experiment.from_config(loaded)


def copy_of(prepared, tmp_path):
    shutil.copytree(prepared / 'run', tmp_path / 'run')
    return tmp_path / 'run'


@contextlib.contextmanager
def killed_copy(run, folder, when, goes_on=True):
    """Copies the run's folder before the first checkpoint that `when(step)` holds for: what a kill there leaves.

    So a run that nobody disturbs is also the beginning of one that was killed. Where that `goes_on`, and does not begin
    anew, a checkpoint is there already.
    """
    save = Checkpoints.save

    def copying(checkpoints, step, state):
        if when(step) and not folder.exists():
            checkpoints.wait()
            shutil.copytree(run.workdir, folder)
        save(checkpoints, step, state)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(Checkpoints, 'save', copying)
        yield
    assert folder.exists(), 'no checkpoint was saved there'
    saved = list((folder / 'pretrain' / 'checkpoints').glob('[0-9]*'))
    assert saved or not goes_on, 'no checkpoint was saved before, so it would begin anew: save more often'
    assert Run(folder, run.config, quiet=True).manifest('pretrain') is None


def pretrained(run):
    """The run, pre-trained, with the programs of an equal one before it."""
    with equal_programs():
        execute(run, STAGES['pretrain'])
    return run


@contextlib.contextmanager
def equal_programs():
    """Runs in here share what jax has traced and compiled of equal objectives: half of the seconds of a short one."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(programs, 'make_objective', _equal_objective)
        patched.setattr(loop, 'sharded_steps', _equal_steps)
        yield


@contextlib.contextmanager
def watched_batches():
    """The batches that a run in here is trained on, by step."""
    seen, stream = {}, loop.Session.stream

    def watching(session, start):
        for step, batch, waited in stream(session, start):
            seen[step] = jax.tree.map(np.asarray, batch)
            yield step, batch, waited

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(loop.Session, 'stream', watching)
        yield seen


_objectives, _compiled = [], []


def _equal_objective(*arguments):
    """The equal one of before, if any: the evaluation is traced for the object, masking for its vocabulary."""
    made = make_objective(*arguments)
    for one in _objectives:
        if type(one) is type(made) and _traced(one) == _traced(made):
            return one
        if one.vocabulary.tokens == made.vocabulary.tokens and one.vocabulary.kind is made.vocabulary.kind:
            made = dataclasses.replace(made, vocabulary=one.vocabulary)
    _objectives.append(made)
    return made


def _traced(objective, **apart):
    """All that a program may depend on; of config.runtime that is in `compute`, and the tables of the step say how
    long a phase lasts and how fast it learns. `apart`: sections that do not matter."""
    config = objective.config
    phase = {name: dataclasses.replace(one, duration=1.0, corpora=()) for name, one in config.phase.items()}
    pretrain = dataclasses.replace(config.pretrain, learning_rate=1e-3)
    evaluation = dataclasses.replace(config.evaluation, per_phase=1, snapshots_per_phase=1, entities=())
    plain = dict(
        stages=(),
        phase=phase,
        pretrain=pretrain,
        evaluation=evaluation,
        runtime=Runtime(),
        finetune=Finetune(),
        corpus=Corpus(),
        corpora={},
    )
    return (
        dataclasses.replace(config, **plain | apart),
        objective.architecture,
        objective.vocabulary.tokens,
        objective.row_pieces,
        objective.compute,
    )


def _equal_steps(objectives, mesh, params, made):
    steps, beginning = sharded_steps(objectives, mesh, params, made)
    return [
        dataclasses.replace(step, compiled=_equal_step(objective, mesh, made, step.compiled))
        for objective, step in zip(objectives, steps)
    ], beginning


def with_equal_program(step, objective, mesh):
    """The step, with the program of an equal one before it."""
    return dataclasses.replace(step, compiled=_equal_step(objective, mesh, NOTHING_MADE, step.compiled))


def _equal_step(objective, mesh, made, compiled):
    traced = _traced(objective, evaluation=Evaluation(), curriculum=Curriculum())
    # What surgery made decides what is trained.
    of = type(objective), mesh, made.tokens.tolist(), made.whole, traced
    for known, one in _compiled:
        if known == of:
            return one
    _compiled.append((of, compiled))
    return compiled


def parameters(run, phase):
    """Parameters at the end of a phase, by path."""
    return flatten(load_phase(run.folder('pretrain'), phase))


def assert_same_bits(one, other, *phases):
    for phase in phases:
        wanted, found = parameters(one, phase), parameters(other, phase)
        assert wanted.keys() == found.keys()
        for path, value in wanted.items():
            np.testing.assert_array_equal(found[path], value, err_msg=f'{phase} {path}')
