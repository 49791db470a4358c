"""A tiny source and runs of stage surgery."""

import functools
import shutil
from pathlib import Path

import jax
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from bioptimus_jax.experiment import config
from bioptimus_jax.experiment.schema import Experiment
from bioptimus_jax.model import tensors
from bioptimus_jax.model.families.bert import Bert
from bioptimus_jax.model.loaded import Loaded
from bioptimus_jax.model.trees import flatten
from bioptimus_jax.run.folder import Run
from bioptimus_jax.storage.files import read_json, read_jsonl, write_json
from bioptimus_jax.surgery import graft, reading
from bioptimus_jax.surgery.config import PAPER_ROWS
from bioptimus_jax.tokenizer.kinds import wordpiece

SPECIAL = ['[PAD]', '[UNK]', '[CLS]', '[SEP]', '[MASK]']


PIECES = [
    'bro',
    '##nch',
    '##oco',
    '##nst',
    '##ric',
    '##tion',
    'nst',
    'the',
    'of',
    'drug',
    '##s',
    'na',
    '##ive',
    '-',
    'x',
]


OLD = SPECIAL + PIECES


LETTERS = [f'##{c}' for c in 'abcdefghijklmnopqrstuvwxyz'] + list('abcdefghijklmnopqrstuvwxyz')


WORD = 'bronchoconstriction'


TABLE, BIAS = Bert.table, Bert.output_bias


def make_source(vocabulary: list[str], **changes) -> Loaded:
    return _make_source(tuple(vocabulary), **changes)


@functools.cache
def _make_source(vocabulary: tuple[str, ...], **changes) -> Loaded:
    shape = dict(hidden=16, layers=1, heads=2, intermediate=24, max_positions=32, initializer_range=0.3)
    architecture = Bert(vocab_size=len(vocabulary), **{**shape, **changes})
    parameters = jax.tree.map(np.asarray, architecture.initial_parameters(jax.random.key(3)))
    bias = np.zeros(architecture.padded_vocab_size, np.float32)
    bias[: len(vocabulary)] = np.linspace(-1, 1, len(vocabulary))
    parameters['cls']['predictions']['bias'] = bias
    tokenizer = wordpiece.make(list(vocabulary), lowercase=True)
    return Loaded(Path('source'), architecture, parameters, tokenizer, [])


def contexts_of(source_: Loaded, sentences, occurrences, targets):
    return reading.read_contexts(source_.subwords, source_.capacity, sentences, occurrences, targets)


def ids(*pieces: str) -> list[int]:
    return [OLD.index(p) for p in pieces]


def make_run(folder: Path, source_: Loaded, vocabulary: list[str], found=(), **changes) -> Run:
    """A run with finished stages `vocab` and `contexts`; `found` are (token, sentence, start, end, rank)."""
    tokenizer = wordpiece.make(source_.vocabulary, lowercase=True)
    tokenizer.save(folder / 'tokenizer', 32)
    tensors.write_folder(folder / 'source', source_.architecture, source_.parameters, folder / 'tokenizer')
    settings = config.defaults()
    settings.source.path, settings.rows.max_document_pieces = str(folder / 'source'), 32
    settings.surgery.update(PAPER_ROWS)
    settings.surgery.batch_pieces = 256
    for name, value in changes.items():
        config.override(settings, name.replace('__', '.'), str(value))
    run = Run(folder / 'run', Experiment.from_config(settings), quiet=True)
    new = wordpiece.make(vocabulary, lowercase=True)
    new.save(run.workdir / 'vocab', 32)
    lacking = [token for token in vocabulary if token not in source_.vocabulary]
    (run.workdir / 'vocab' / 'new_tokens.txt').write_text(''.join(f'{token}\n' for token in lacking))
    sentences = sorted({s for _, s, *_ in found})
    number = {s: i for i, s in enumerate(sentences)}
    (run.workdir / 'contexts').mkdir()
    pq.write_table(
        pa.table(
            {
                'sentence': pa.array(range(len(sentences)), pa.int64()),
                'document': [f'd{i}' for i in range(len(sentences))],
                'number': pa.array([0] * len(sentences), pa.int32()),
                'text': pa.array(sentences, pa.string()),
            }
        ),
        run.workdir / 'contexts' / 'sentences.parquet',
    )
    columns = {
        'token': pa.array([f[0] for f in found], pa.string()),
        'sentence': pa.array([number[f[1]] for f in found], pa.int64()),
        **{
            name: pa.array([f[i] for f in found], pa.int32())
            for i, name in ((2, 'start'), (3, 'end'), (4, 'rank'))
        },
    }
    pq.write_table(pa.table(columns), run.workdir / 'contexts' / 'occurrences.parquet')
    for stage in ('vocab', 'contexts'):
        write_json(run.workdir / stage / 'manifest.json', {'content': stage, 'counts': {}})
    return run


def built(run: Run) -> tuple[dict, dict, list[dict]]:
    """Flat parameters, report and token records of the stage."""
    folder = run.workdir / 'surgery'
    folder.mkdir(exist_ok=True)
    shutil.rmtree(run.scratch('surgery'), ignore_errors=True)
    graft.build(run, folder)
    _, parameters, fresh = tensors.load_folder(folder / 'model')
    assert not fresh
    return flatten(parameters), read_json(folder / 'report.json'), read_jsonl(folder / 'tokens.jsonl')
