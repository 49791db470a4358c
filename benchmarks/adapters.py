"""What an adapter saves of a train step: its operations and memory by XLA's own analysis, for this machine's platform.

    python benchmarks/adapters.py [--family NAME] [--layers N] [--width N] [--rows N] [--new N] [--rank N]

A step is compiled for shapes alone and not run: full training, an adapter alone, with the rows of new tokens, and with
all rows. `estimated`: what `bioptimus plan` says. Products of the adapter and the kernel are one (model/layers.py).
"""

import argparse
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from workload import FAMILIES

from bioptimus_jax.experiment.config import defaults
from bioptimus_jax.experiment.schema import Experiment
from bioptimus_jax.model.config import Model
from bioptimus_jax.model.tensors import own_architecture
from bioptimus_jax.model.trees import flatten, unflatten
from bioptimus_jax.pretrain import adapter, curriculum, sharding
from bioptimus_jax.pretrain.memory import step_memory
from bioptimus_jax.pretrain.objective import make_objective
from bioptimus_jax.pretrain.shape import RowCounts
from bioptimus_jax.pretrain.step import initial_state, jitted_step
from bioptimus_jax.surgery.made import Made
from bioptimus_jax.tokenizer.kinds.wordpiece import SPECIAL_TOKENS, make

LENGTH, DOCUMENTS, MIB = 128, 4, 2**20
ENTRIES = 30522


class Found(NamedTuple):
    """Operations of a step, the memory that it takes and would take by the plan, and how much is trained."""

    flops: float
    planned_flops: float
    size: float
    planned_size: float
    trained: int


def main() -> None:
    plain = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=plain)
    parser.add_argument('--family', default='bert', choices=FAMILIES)
    for name, default in {'layers': 4, 'width': 768, 'rows': 8, 'new': 5000, 'rank': 8}.items():
        parser.add_argument(f'--{name}', type=int, default=default, help=f'default: {default}')
    options = parser.parse_args()
    lora = {'lora_rank': options.rank}
    arms: dict[str, dict] = {
        'full': {},
        'adapter alone': {**lora, 'lora_embeddings': 'none'},
        'and new rows': lora,
        'and all rows': {**lora, 'lora_embeddings': 'all'},
    }
    print(f'{"":14}{"GFLOP":>8}{"by plan":>9}{"MiB":>8}{"by plan":>9}{"trained":>14}')
    for name, settings in arms.items():
        found = compiled(options, settings)
        work = (f'{value / 1e9:.1f}' for value in (found.flops, found.planned_flops))
        sizes = (f'{value / MIB:.0f}' for value in (found.size, found.planned_size))
        columns = '{:>8}{:>9}{:>8}{:>9}'.format(*work, *sizes)
        print(f'{name:14}{columns}{found.trained:>14,}', flush=True)


def compiled(options: Any, settings: dict) -> Found:
    """What XLA says of a step with these settings of config.pretrain."""
    widening, positions = FAMILIES[options.family]
    shape = (options.layers, options.width, options.width // 64, int(widening * options.width), positions)
    named = dict(zip(('layers', 'hidden', 'heads', 'intermediate', 'max_positions'), shape, strict=True))
    model = Model(options.family, **named, dropout=0.0, attention_dropout=0.0)
    architecture, mesh = own_architecture(model, ENTRIES).padded_with(0), sharding.make_mesh(1)
    config = defaults()
    config.pretrain.update(batch_rows=options.rows, micro_batches=1, **settings)
    config.rows.update(row_pieces=LENGTH, max_document_pieces=LENGTH)
    config.surgery.strategy = 'averaged_input'
    config.phases = ('0.1',)
    experiment = Experiment.from_config(config)
    known = make([*SPECIAL_TOKENS, *(f't{n}' for n in range(ENTRIES - len(SPECIAL_TOKENS)))], True)
    objective = make_objective(experiment, architecture, known, LENGTH, mesh, print)
    made = Made(np.arange(options.new, dtype=np.int32))
    shapes = {path: jax.ShapeDtypeStruct(s, jnp.float32) for path, s in architecture.shapes().items()}

    def begun(params: Any) -> Any:
        wanted = experiment.pretrain
        parts = adapter.split(wanted, architecture, made, params, params, jax.random.key(0))
        return initial_state(parts.trained, wanted, objective.all_rules), parts.frozen

    state, frozen = jax.eval_shape(begun, unflatten(shapes))
    batch = {
        'tokens': jax.ShapeDtypeStruct((options.rows, LENGTH), jnp.int32),
        'segment_lengths': jax.ShapeDtypeStruct((options.rows, DOCUMENTS), jnp.int32),
        'word_starts': jax.ShapeDtypeStruct((options.rows, LENGTH), bool),
    }
    schedule = curriculum.make_schedule(experiment, RowCounts(1000, 100_000, 80_000))
    rules = objective.all_rules
    step = jitted_step(
        objective,
        mesh,
        sharding.state_shardings(state, mesh, rules),
        adapter.base_shardings(frozen, mesh, rules),
    )
    program = step.trace(state, frozen, batch, curriculum.table(schedule, experiment)).lower().compile()
    memory, pieces = program.memory_analysis(), options.rows * LENGTH
    predicted = pieces * objective.share(experiment.phase['0.1'])
    return Found(
        program.cost_analysis()['flops'],
        objective.flops(pieces, pieces * LENGTH, predicted),
        memory.argument_size_in_bytes + memory.temp_size_in_bytes,
        step_memory(experiment, architecture, jax.default_backend(), 1).peak,
        sum(int(np.prod(leaf.shape)) for leaf in flatten(state['params']).values()),
    )


if __name__ == '__main__':
    main()
