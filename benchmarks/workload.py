"""What is trained on in the benchmarks: real abstracts, or generated ones of the same lengths, as rows of a run."""

import dataclasses
import itertools
import json
import random
from pathlib import Path

import numpy as np
from pubmed import LENGTHS, WORDS_PER_SENTENCE, data_folder, titled_abstracts

from bioptimus_jax.experiment.config import defaults, objective
from bioptimus_jax.experiment.schema import Experiment
from bioptimus_jax.experiment.stages import STAGES
from bioptimus_jax.model.architecture import Architecture
from bioptimus_jax.model.tensors import own_architecture
from bioptimus_jax.rows.stored import Rows
from bioptimus_jax.run.execute import execute
from bioptimus_jax.run.folder import Run
from bioptimus_jax.tokenizer.kinds.wordpiece import SPECIAL_TOKENS

# Width of the feed-forward block over that of the model, and rows of positions for 512 pieces: RoBERTa counts from 2.
# A gated block has two matrices of the first kind, so ModernBERT's are narrower.
FAMILIES = {'bert': (4, 512), 'roberta': (4, 514), 'electra': (4, 512), 'modernbert': (1.5, 512)}

STOP = '.'


@dataclasses.dataclass(frozen=True)
class Shape:
    """The model, the batch and the corpus that are timed."""

    layers: int
    hidden: int
    vocabulary: int
    batch_rows: int
    documents: int
    row_pieces: int = 512
    family: str = 'bert'
    objective: str = 'mlm'
    layout: str = 'documents'
    micro_batches: int = 4

    @property
    def heads(self) -> int:
        return self.hidden // 64


QUICK = Shape(2, 128, 8000, 4, 400)
SMALL = Shape(2, 128, 30522, 16, 4000)
BASE = Shape(12, 768, 30522, 64, 8000)
SIZES = {
    'quick': QUICK,
    'small': SMALL,
    'base': BASE,
    # A laptop's: MiniLM, and base with as many rows as a few GB have room for.
    'minilm': Shape(6, 384, 30522, 16, 4000, row_pieces=256, micro_batches=1),
    'base-cpu': Shape(12, 768, 30522, 4, 400, row_pieces=256, micro_batches=1),
    # One card: generated documents, and one micro-batch, which 80 GB have room for.
    'base-512': Shape(12, 768, 30522, 64, 2000, micro_batches=1),
    'base-128': Shape(12, 768, 30522, 256, 2000, row_pieces=128, micro_batches=1),
    'large-512': Shape(24, 1024, 30522, 32, 2000, micro_batches=1),
    'large-128': Shape(24, 1024, 30522, 128, 2000, row_pieces=128, micro_batches=1),
    # The same command on a CPU.
    'tiny-base-512': Shape(2, 64, 500, 4, 40, micro_batches=1),
    'tiny-base-128': Shape(2, 64, 500, 4, 40, row_pieces=128, micro_batches=1),
    'tiny-large-512': Shape(13, 64, 500, 4, 40, micro_batches=1),
    'tiny-large-128': Shape(13, 64, 500, 4, 40, row_pieces=128, micro_batches=1),
}


def sized(name: str, family: str = 'bert', batch_rows: int = 0) -> Shape:
    """The shape of that name, with another family, or other rows of a batch."""
    shape = SIZES[name]
    return dataclasses.replace(shape, family=family, batch_rows=batch_rows or shape.batch_rows)


def experiment(shape: Shape, folder: Path) -> Experiment:
    config = defaults()
    config.corpus.update(inputs=(str(folder / 'corpus.jsonl'),), min_words=1)
    config.vocab.update(kind='file', file=str(folder / 'vocab.txt'))
    widening, positions = FAMILIES[shape.family]
    config.model.update(
        family=shape.family,
        max_positions=positions,
        layers=shape.layers,
        hidden=shape.hidden,
        heads=shape.heads,
        intermediate=int(widening * shape.hidden),
        dropout=0.0,
        attention_dropout=0.0,
    )
    longest = min(512, shape.row_pieces)
    config.rows.update(row_pieces=shape.row_pieces, max_document_pieces=longest, layout=shape.layout)
    config.pretrain.update(
        batch_rows=shape.batch_rows, micro_batches=shape.micro_batches, objective=shape.objective
    )
    if (
        shape.objective == 'distil'
    ):  # the weights at step 0: what a teacher costs does not depend on what it says
        config.objective.distil = objective('distil', teacher=str(folder / 'run' / 'surgery' / 'model'))
    config.phases = ('0.1',)
    config.phase['0.1'].update(duration=1000.0, duration_unit='steps')
    config.surgery.strategy = 'scratch'
    return Experiment.from_config(config)


def prepare(shape: Shape, folder: Path, real: bool) -> Run:
    """A run with corpus, vocabulary and rows; `real` takes the abstracts of BIOPTIMUS_DATA."""
    texts = list(itertools.islice(titled_abstracts(), shape.documents)) if real else _generated(shape)
    with open(folder / 'corpus.jsonl', 'w', encoding='utf-8') as file:
        for number, text in enumerate(texts):
            file.write(json.dumps({'id': str(number), 'title': '', 'abstract': text}) + '\n')
    if real:
        vocabulary = (data_folder() / 'vocab' / 'bert-base-uncased' / 'vocab.txt').read_text('utf-8')
    else:
        vocabulary = '\n'.join([*SPECIAL_TOKENS, STOP, *_words(shape)]) + '\n'
    (folder / 'vocab.txt').write_text(vocabulary, 'utf-8')
    run = Run(folder / 'run', experiment(shape, folder), quiet=True)
    of_teacher = ('surgery',) * (shape.objective == 'distil')
    for stage in ('corpus', 'vocab', *of_teacher, 'rows'):
        execute(run, STAGES[stage])
    return run


def documents_of(batch: dict[str, np.ndarray]) -> list[np.ndarray]:
    """The documents of packed rows, [CLS] ... [SEP] each."""
    found = []
    for tokens_L, lengths_G in zip(batch['tokens'], batch['segment_lengths'], strict=True):
        ends = np.cumsum(lengths_G)
        found += [tokens_L[end - n : end] for end, n in zip(ends, lengths_G, strict=True) if n]
    return found


def opened(shape: Shape, folder: Path) -> tuple[Run, Rows]:
    """The prepared run and its training rows, in another process."""
    run = Run(folder / 'run', experiment(shape, folder), quiet=True)
    return run, Rows(run.folder('rows'), 'train')


def architecture(shape: Shape) -> Architecture:
    return own_architecture(experiment(shape, Path()).model, shape.vocabulary).padded_with(0)


def _words(shape: Shape) -> list[str]:
    return [f'w{number}' for number in range(shape.vocabulary - len(SPECIAL_TOKENS) - len(STOP))]


def _generated(shape: Shape) -> list[str]:
    """Documents of the lengths of abstracts, in pieces, in sentences of WORDS_PER_SENTENCE words or fewer."""
    draw, words = random.Random(0), _words(shape)
    shares, lengths = zip(*LENGTHS, strict=True)
    counts = np.interp([draw.random() for _ in range(shape.documents)], shares, lengths).astype(int)
    return [_sentences(draw.choices(words, k=int(count) - 2)) for count in counts]


def _sentences(pieces: list[str]) -> str:
    """The words as sentences; full stops are in the place of every 22nd word and of the last one."""
    last = [*range(WORDS_PER_SENTENCE, len(pieces) - 1, WORDS_PER_SENTENCE + 1), len(pieces) - 1]
    begin = [0, *(at + 1 for at in last)]
    return ' '.join(
        f'{" ".join(pieces[a:b]).capitalize()}{STOP}' for a, b in zip(begin, last, strict=False) if a < b
    )
