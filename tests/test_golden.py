"""Losses of a tiny model of every family, and of every objective, through all four phases, against a text file each.

A difference means that training has changed. If it was meant to, write the file anew and say why in the commit:

    python tests/test_golden.py
"""

import dataclasses
from pathlib import Path

import jax
import numpy as np
import pytest
from toy_compiler import AS_USERS
from toy_families import RENAMED

from bioptimus_jax.experiment.config import defaults
from bioptimus_jax.experiment.schema import Experiment
from bioptimus_jax.model.config import FAMILIES
from bioptimus_jax.pretrain import curriculum
from bioptimus_jax.pretrain.objective import make_objective
from bioptimus_jax.pretrain.shape import RowCounts
from bioptimus_jax.pretrain.sharding import make_mesh
from bioptimus_jax.pretrain.step import sharded_step
from bioptimus_jax.rows.layouts import layout_of
from bioptimus_jax.tokenizer.kinds.wordpiece import make

PHASES = {'0.1': 8, '0.2': 8, '0.3': 7, '0.4': 7}
FEW = dict.fromkeys(PHASES, 2)
ROWS, PIECES = 8, 64
CASES = [
    *((family, 'mlm') for family in FAMILIES if family not in RENAMED),
    ('electra', 'rtd'),
    ('bert', 'nsp'),
]
"""Family and objective."""
SPECIALS = ('[PAD]', '[UNK]', '[CLS]', '[SEP]', '[MASK]')


def losses(family: str, trained: str) -> list[float]:
    """Thirty of BERT; of the others, what differs is seen in eight."""
    phases = PHASES if (family, trained) == ('bert', 'mlm') else FEW
    config = defaults()
    config.pretrain.update(batch_rows=ROWS, micro_batches=2, learning_rate=1e-3, max_word_pieces=8)
    config.pretrain.objective = trained
    if trained == 'nsp':
        config.rows.layout = 'pairs'
    for name, steps in phases.items():
        config.phase[name].update(duration=float(steps), duration_unit='steps')
    experiment = Experiment.from_config(config)
    names = [*SPECIALS, *(f'{"##" * (n % 3 == 0)}t{n}' for n in range(95))]
    model = FAMILIES.load(family)(100, 32, 2, 4, 64, PIECES + 8 * (family != 'bert')).padded_with(0)
    mesh = make_mesh(1)
    objective = make_objective(experiment, model, make(names, True), PIECES, mesh, print)
    table = curriculum.table(curriculum.make_schedule(experiment, RowCounts(100, 1, 1)), experiment)
    step, state = sharded_step(objective, mesh, model.initial_parameters(jax.random.key(0)))
    if phases == PHASES:  # compiled as for users
        lowered = step.compiled.lower(state, step.frozen, batch_of(np.random.default_rng(0)), table)
        step = dataclasses.replace(step, compiled=lowered.compile(compiler_options=AS_USERS))
    found = []
    for number in range(sum(phases.values())):
        rng = np.random.default_rng(number)
        batch = batch_of(rng)
        if layout_of(experiment.rows.layout).labelled:
            batch |= pairs_of(rng, batch)
        state, metrics = step(state, batch, table)
        found.append(float(metrics['loss']))
    return found


def batch_of(rng: np.random.Generator) -> dict[str, np.ndarray]:
    """Two documents a row, of pieces that follow one another more often than not, and some padding."""
    tokens = np.zeros((ROWS, PIECES), np.int32)
    lengths = np.stack([rng.integers(10, 30, ROWS), rng.integers(10, 34, ROWS)], axis=1)
    for row, (first, second) in enumerate(lengths):
        steps = rng.choice([1, 2, 50], first + second, p=[0.6, 0.2, 0.2])
        tokens[row, : first + second] = 5 + (rng.integers(95) + steps.cumsum()) % 95
        tokens[row, [0, first]] = 2
        tokens[row, [first - 1, first + second - 1]] = 3
    return {'tokens': tokens, 'word_starts': tokens > 0, 'segment_lengths': lengths.astype(np.int32)}


def pairs_of(rng: np.random.Generator, batch: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Where the second text of every document begins, and whether it follows."""
    lengths = batch['segment_lengths']
    labels = rng.integers(1, 3, lengths.shape).astype(np.int32)
    return {'first_lengths': rng.integers(3, lengths - 1).astype(np.int32), 'labels': labels}


def golden_file(family: str, trained: str) -> Path:
    parts = [family] * (family != 'bert') + [trained] * (trained != 'mlm')
    return Path(__file__).parent / 'golden' / f'{"-".join(["losses", jax.default_backend(), *parts])}.txt'


# Slow: families with the layers of another (MPNet's are RoBERTa's, EuroBERT's are UltraBERT's), whose gradients are
# compared with those of transformers in test_model.py, as those of ALBERT, DeBERTa-v2, GTE and UltraBERT are, which go
# through the same steps as BERT. Losses and gradients of the objectives are compared with transformers in test_rtd.py
# and test_pairs.py.
ALIKE = (
    'roberta',
    'distilbert',
    'electra',
    'mpnet',
    'eurobert',
    'big_bird',
    'longformer',
    'megatron-bert',
    'roberta-prelayernorm',
    'nomic_bert',
)
COMPARED = ('albert', 'deberta-v2', 'gte', 'ultrabert')
SLOW = (*((family, 'mlm') for family in (*ALIKE, *COMPARED)), ('electra', 'rtd'), ('bert', 'nsp'))


@pytest.mark.parametrize(
    ('family', 'trained'),
    [pytest.param(*case, marks=[pytest.mark.slow] * (case in SLOW)) for case in CASES],
)
def test_losses_are_the_golden_ones(family, trained):
    file = golden_file(family, trained)
    if not file.is_file():
        pytest.skip(f'no golden losses for this backend; `python tests/test_golden.py` writes {file.name}')
    wanted = [float(line.split()[1]) for line in file.read_text().splitlines()]
    np.testing.assert_allclose(losses(family, trained), wanted, rtol=2e-4, err_msg=__doc__)


if __name__ == '__main__':
    for case in CASES:
        lines = [f'{number:2} {loss:.6f}\n' for number, loss in enumerate(losses(*case), 1)]
        golden_file(*case).write_text(''.join(lines))
        print(golden_file(*case), ''.join(lines), sep='\n')
