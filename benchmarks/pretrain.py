"""Useful tokens per second of the train step against transformers' PyTorch on the same documents, padded.

    python benchmarks/pretrain.py [--quick]

Interleaved rounds in one process each way round: our step (packed rows, masked-only head, AdamW) and a stock PyTorch
step (BertForMaskedLM, one document a row, padded to the longest of the batch, logits at all positions, AdamW). Both
predict 15 % of the pieces and see documents of the same lengths, those of real abstracts (5/25/50/75/95 %:
128/246/345/440/605 pieces, cut at 512). First a gate: same weights, same masked batch, equal loss. The full run writes
benchmarks/results/pretrain.json; `--quick` has fewer rounds and a smaller batch and writes nothing.
"""

import argparse
import dataclasses
import json
import platform
import statistics
import time
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import torch
import transformers

from bioptimus_jax.config import Experiment, Phase, defaults
from bioptimus_jax.model.architecture import Architecture
from bioptimus_jax.model.bert import initial_parameters
from bioptimus_jax.model.hf import to_hf
from bioptimus_jax.pretrain import curriculum
from bioptimus_jax.pretrain.masking import Vocabulary, slot_count
from bioptimus_jax.pretrain.rows import best_fit
from bioptimus_jax.pretrain.step import (
    StepPlan,
    initial_state,
    make_train_step,
    mask_step_batch,
)
from bioptimus_jax.run import versions

LENGTHS = ((0.05, 128), (0.25, 246), (0.5, 345), (0.75, 440), (0.95, 605))
SPECIALS = ('[PAD]', '[UNK]', '[CLS]', '[SEP]', '[MASK]')
WIDTH = 512


@dataclasses.dataclass(frozen=True)
class Shape:
    """The model and the batch that are timed."""

    layers: int
    hidden: int
    vocabulary: int
    documents: int
    rounds: int


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument('--quick', action='store_true', help='fewer rounds, smaller batch, writes nothing')
    quick = parser.parse_args().quick
    shape = Shape(2, 128, 8000, 12, 5) if quick else Shape(2, 128, 30522, 48, 9)
    torch.set_num_threads(2 if not quick else 1)
    documents = make_documents(shape)
    useful = sum(map(len, documents))
    ours, packed = our_step(shape, documents)
    theirs = torch_step(shape, documents)
    gap = loss_gap(shape, documents)
    if gap > 1e-4:
        raise SystemExit(f'the two models disagree by {gap:.1e} on the same masked batch; nothing was timed')
    rows = []
    for round_number in range(shape.rounds + 2):
        pair = [('ours', ours), ('torch', theirs)]
        seconds = {name: timed(step) for name, step in (pair if round_number % 2 else reversed(pair))}
        if round_number >= 2:  # warm-up
            rows.append({name: useful / value for name, value in seconds.items()})
    ratios = [row['ours'] / row['torch'] for row in rows]
    result = {
        'machine': platform.processor() or platform.machine(),
        'backend': jax.default_backend(),
        'date': time.strftime('%Y-%m-%d'),
        'versions': versions(),
        'shape': dataclasses.asdict(shape),
        'fill': packed,
        'useful_tokens_per_second': rows,
        'ratio': {'median': statistics.median(ratios), 'min': min(ratios), 'max': max(ratios)},
        'loss_gap': gap,
    }
    for name in ('ours', 'torch'):
        print(f'{name:6} {statistics.median(row[name] for row in rows):10,.0f} useful tokens/s (median)')
    print(f'ratio  {min(ratios):.2f} to {max(ratios):.2f}, fill of our rows {packed:.3f}, loss gap {gap:.1e}')
    if not quick:
        path = Path(__file__).parent / 'results' / 'pretrain.json'
        path.parent.mkdir(exist_ok=True)
        path.write_text(json.dumps(result, indent=1) + '\n')
    print(f'headline: useful_vs_hf_padded={statistics.median(ratios):.2f} fill={packed:.3f}')


def timed(step: object) -> float:
    started = time.perf_counter()
    step()  # type: ignore[operator]
    return time.perf_counter() - started


def make_documents(shape: Shape) -> list[np.ndarray]:
    """Random pieces, [CLS] ... [SEP], with the lengths of real abstracts."""
    rng = np.random.default_rng(0)
    shares, lengths = zip(*LENGTHS, strict=True)
    drawn = np.interp(rng.random(shape.documents), shares, lengths).astype(int).clip(8, WIDTH)
    return [np.concatenate([[2], rng.integers(5, shape.vocabulary, n - 2), [3]]) for n in drawn]


def architecture(shape: Shape) -> Architecture:
    return Architecture(
        vocab_size=shape.vocabulary,
        hidden=shape.hidden,
        layers=shape.layers,
        heads=max(shape.hidden // 64, 1),
        intermediate=4 * shape.hidden,
        max_positions=WIDTH,
        dropout=0.0,
        attention_dropout=0.0,
    )


def our_step(shape: Shape, documents: list[np.ndarray]) -> tuple[object, float]:
    """A function that makes one step on all documents, and the fill of its rows."""
    batch = pack(documents, [list(row) for row in best_fit([len(d) for d in documents], WIDTH)])
    plan, table = make_plan(shape, len(batch['tokens']))
    holder = {
        'state': initial_state(initial_parameters(architecture(shape), jax.random.key(0)), plan.settings)
    }
    train_step = jax.jit(make_train_step(plan), donate_argnums=0)

    def step() -> None:
        holder['state'], metrics = train_step(holder['state'], batch, table)
        jax.block_until_ready(metrics)

    return step, float((batch['tokens'] > 0).mean())


def make_plan(shape: Shape, rows: int) -> tuple[StepPlan, dict]:
    config = defaults()
    config.pretrain.update(batch_rows=rows, max_word_pieces=1)
    config.phases = ('0.1',)
    config.phase['0.1'].update(duration=1000.0, duration_unit='steps')
    experiment = Experiment.from_config(config)
    names = [*SPECIALS, *(f'w{i}' for i in range(shape.vocabulary - len(SPECIALS)))]
    slots = slot_count(Phase().rate, WIDTH, 1)
    words = Vocabulary.of(names, SPECIALS)
    plan = StepPlan(architecture(shape), experiment.pretrain, words, slots, 0)
    placed = curriculum.stretches(experiment, curriculum.RowCounts(rows, 1, 1))
    return plan, curriculum.table(placed, experiment)


def pack(documents: list[np.ndarray], rows: list[list[int]]) -> dict[str, np.ndarray]:
    segments = max(map(len, rows))
    tokens = np.zeros((len(rows), WIDTH), np.int32)
    lengths = np.zeros((len(rows), segments), np.int32)
    for row, members in enumerate(rows):
        joined = np.concatenate([documents[m] for m in members])
        tokens[row, : len(joined)] = joined
        lengths[row, : len(members)] = [len(documents[m]) for m in members]
    return {'tokens': tokens, 'word_starts': tokens > 0, 'segment_lengths': lengths}


def torch_model(shape: Shape) -> torch.nn.Module:
    a = architecture(shape)
    config = transformers.BertConfig(
        vocab_size=a.vocab_size,
        hidden_size=a.hidden,
        num_hidden_layers=a.layers,
        num_attention_heads=a.heads,
        intermediate_size=a.intermediate,
        max_position_embeddings=a.max_positions,
        hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0,
    )
    return transformers.BertForMaskedLM(config)


def torch_step(shape: Shape, documents: list[np.ndarray]) -> object:
    """A stock step: padded to the longest, logits everywhere, 15 % of the pieces predicted."""
    model = torch_model(shape).train()
    optimizer = torch.optim.AdamW(model.parameters(), 1e-4)
    longest = max(map(len, documents))
    tokens = torch.tensor(np.stack([np.pad(d, (0, longest - len(d))) for d in documents]))
    attention = (tokens > 0).long()
    generator = torch.Generator().manual_seed(0)

    def step() -> None:
        chosen = (torch.rand(tokens.shape, generator=generator) < 0.15) & (tokens > 4)
        labels = torch.where(chosen, tokens, -100)
        inputs = torch.where(chosen, 4, tokens)
        loss = model(input_ids=inputs, attention_mask=attention, labels=labels).loss
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()

    return step


def loss_gap(shape: Shape, documents: list[np.ndarray]) -> float:
    """Difference of the two mean losses on one masked batch with the same weights, one document a row."""
    some = documents[:4]
    batch = pack(some, [[number] for number in range(len(some))])
    plan, table = make_plan(shape, len(some))
    params = initial_parameters(plan.architecture, jax.random.key(1))
    masked, *_ = mask_step_batch(batch, plan, table, jnp.zeros((), jnp.int32))
    state = initial_state(params, plan.settings)
    ours = float(jax.jit(make_train_step(plan))(state, batch, table)[1]['loss'])
    model = torch_model(shape).eval()
    tensors = {
        name: torch.tensor(np.asarray(value)) for name, value in to_hf(params, plan.architecture).items()
    }
    model.load_state_dict(tensors, strict=False)
    labels = np.full(batch['tokens'].shape, -100)
    for row in range(len(some)):
        real = np.asarray(masked.weights_M[row]) > 0
        labels[row, np.asarray(masked.slots_M[row])[real]] = np.asarray(masked.targets_M[row])[real]
    with torch.no_grad():
        output = model(
            input_ids=torch.tensor(np.asarray(masked.inputs_L)),
            attention_mask=torch.tensor((batch['tokens'] > 0).astype(int)),
            labels=torch.tensor(labels),
        )
    return abs(ours - float(output.loss))


if __name__ == '__main__':
    main()
