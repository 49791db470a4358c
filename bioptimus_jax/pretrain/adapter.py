"""Pre-training with a low-rank adapter: which arrays are trained, and the model that they and the others make.

The train state holds what is trained alone: the two matrices of every target, rows of tokens, and parameters that the
source does not have. The weights that stay as they are come as an argument of the step, beside what an objective keeps
as it is: no gradient of theirs is computed, and no checkpoint holds them.

D, E: rows and columns of a matrix, R: the rank, V: tokens, N: those whose rows are trained.
"""

import zlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh

from bioptimus_jax.errors import ConfigError
from bioptimus_jax.model.architecture import HEAD, IN_LAYER, Architecture, Rule
from bioptimus_jax.model.layers import DOWN, UP
from bioptimus_jax.model.trees import FlatParams, Params, flatten, unflatten
from bioptimus_jax.pretrain.config import Pretrain
from bioptimus_jax.pretrain.sharding import replicated, shardings_of
from bioptimus_jax.pretrain.throughput import behind_attention
from bioptimus_jax.surgery.made import Made

BASE, TOKENS, WEIGHTS = 'base', 'tokens', 'weights'
"""Name of the weights among what is kept as it is, and of their two parts."""
ROWS = '_rows'
"""End of the path of rows that are trained, of a table of that path without it."""
KERNEL = '/kernel'
# All of them are small but for the rows. A kernel's own axes would not do: ranks and numbers of rows have no divisors.
RULES = (
    Rule(f'/({DOWN}|{UP})$', (None, None)),
    Rule(f'{ROWS}$', (None, 'fsdp')),
)


WHOLE_OF_ROWS: Mapping[str, Callable[[Architecture], tuple[str | None, ...]]] = {
    'none': lambda architecture: (),
    'new': lambda architecture: (architecture.output_bias,),
    'all': lambda architecture: architecture.padded,
}
"""config.pretrain.lora_embeddings -> paths of what has an entry for every token and is trained whole.

All of the bias: how often words occur is what differs first between two corpora, for old ones as for new ones.
"""


def targets_of(settings: Pretrain, paths: Sequence[str]) -> list[str]:
    """The matrices of layers that get an adapter, by the paths of their kernels. Raises ConfigError."""
    if settings.lora is None:
        return []
    kernels = {path: path.removesuffix(KERNEL) for path in paths if path.endswith(KERNEL)}
    found = {path: at for path, module in kernels.items() if (at := IN_LAYER.match(module))}
    layers = {int(at[1]) for at in found.values()}
    if beyond := sorted(set(settings.lora_layers) - layers):
        raise ConfigError(
            f'config.pretrain.lora_layers: {beyond[0]}, but this model has {len(layers)} layers, from 0 on'
        )
    wanted = {*settings.lora.chosen({at[2]: None for at in found.values()}, 'config.pretrain.lora_targets')}
    return [path for path, at in found.items() if at[2] in wanted]


def words(settings: Pretrain) -> str:
    """What was trained in place of all weights, in words; empty without an adapter."""
    lora, layers = settings.lora, settings.lora_layers
    if lora is None:
        return ''
    of_layers = f' of layers {", ".join(map(str, layers))}' if layers else ''
    return (
        f'Not all weights were trained but an adapter of rank {lora.rank}, alpha {lora.alpha:g}, on '
        f'{", ".join(lora.targets)}{of_layers}; rows of tokens that are trained: {settings.lora_embeddings}'
    )


def check(settings: Pretrain, architecture: Architecture) -> None:
    """Raise ConfigError for targets or layers that the model does not have."""
    targets_of(settings, list(architecture.shapes()))


class Split(NamedTuple):
    """Parameters that are trained, and what is kept as it is: BASE, or nothing where there is no adapter."""

    trained: Params
    frozen: Params


def split(
    settings: Pretrain,
    architecture: Architecture,
    made: Made,
    params: Params,
    started: Params,
    key: jax.Array,
) -> Split:
    """The parameters at step 0, `started` by an objective from the model's: what is trained of them, and what is not.

    What the objective added or changed is trained whole, as is what surgery `made`. Also traced, for shapes alone.
    """
    if settings.lora is None:
        return Split(started, {})
    given = flatten(params)
    trained, base = FlatParams(), FlatParams()
    added = {*made.whole, *WHOLE_OF_ROWS[settings.lora_embeddings](architecture)}
    tables = {architecture.table, architecture.output_table} if settings.lora_embeddings == 'new' else set()
    for path, leaf in flatten(started).items():
        # A head that an objective has put in the place of the model's may have its paths.
        own = given.get(path) is not leaf or path in added
        (trained if own else base)[path] = leaf
        if path in tables and not own and len(made.tokens):
            trained[path + ROWS] = jnp.asarray(leaf)[made.tokens]
    rank, layers = settings.lora.rank, set(settings.lora_layers)
    for path in targets_of(settings, list(base)):
        (into, out), module = base[path].shape, path.removesuffix(KERNEL)
        bound = into**-0.5
        of_path = jax.random.fold_in(key, np.uint32(zlib.crc32(path.encode())))
        down_DxR = jax.random.uniform(of_path, (into, rank), jnp.float32, -bound, bound)
        at: Any = IN_LAYER.match(path)
        # The others get one of zeros, which nothing trains: a scan wants layers with the same parameters.
        place = trained if not layers or int(at[1]) in layers else base
        place[f'{module}/{DOWN}'] = down_DxR if place is trained else jnp.zeros_like(down_DxR)
        place[f'{module}/{UP}'] = jnp.zeros((rank, out))
    kept = {TOKENS: jnp.asarray(made.tokens), WEIGHTS: unflatten(base)}
    return Split(unflatten(trained), {BASE: kept})


def whole(settings: Pretrain, trained: Any, frozen: Params) -> Any:
    """The parameters that a model computes with: what is trained, put into what is kept as it is."""
    if settings.lora is None or BASE not in frozen:
        return trained
    flat = dict(flatten(frozen[BASE][WEIGHTS]))
    for path, leaf in flatten(trained).items():
        if path.endswith(ROWS):
            table = path.removesuffix(ROWS)
            flat[table] = jnp.asarray(flat[table]).at[frozen[BASE][TOKENS]].set(leaf)
        else:
            flat[path] = leaf * settings.lora.scale if path.endswith(f'/{UP}') else leaf
    return unflatten(flat)


def base_shardings(frozen: Params, mesh: Mesh, rules: Sequence[Rule]) -> Params:
    """Where what is kept as it is lies on a mesh."""
    if BASE not in frozen:
        return {}
    weights = shardings_of(frozen[BASE][WEIGHTS], mesh, rules)
    return {BASE: {TOKENS: replicated(mesh), WEIGHTS: weights}}


def restored(
    settings: Pretrain,
    trained: Params,
    base: Params,
    made: Made,
    params: Params,
) -> Any:
    """The parameters that a model computes with, of a checkpoint, which holds what is `trained` alone.

    `base`: shapes by path of what is kept as it is; `params`: those of the model at step 0, which have it.
    """
    given = flatten(params)
    kept = {path: given.get(path, np.zeros(shape, np.float32)) for path, shape in base.items()}
    weights = {BASE: {TOKENS: made.tokens, WEIGHTS: unflatten(kept)}}
    return jax.tree.map(np.asarray, whole(settings, trained, weights))


def pairs_of(params: Params) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Kernel's path -> the two matrices beside it, DxR and RxE, of parameters that a model computes with."""
    flat = flatten(params)
    modules = [path.removesuffix(f'/{DOWN}') for path in flat if path.endswith(f'/{DOWN}')]
    return {m + KERNEL: (np.asarray(flat[f'{m}/{DOWN}']), np.asarray(flat[f'{m}/{UP}'])) for m in modules}


def without_adapter(params: Params, *, merged: bool) -> Params:
    """Parameters as any model has them: the products added to the kernels in float32, or left out."""
    flat = {p: leaf for p, leaf in flatten(params).items() if not p.endswith((f'/{DOWN}', f'/{UP}'))}
    if merged:
        for path, (down_DxR, up_RxE) in pairs_of(params).items():
            flat[path] = np.asarray(flat[path], np.float32) + down_DxR @ up_RxE
    return unflatten(flat)


def work_saved(
    settings: Pretrain, trained: Mapping[str, Any], architecture: Architecture, last_in_slots: bool
) -> tuple[float, float]:
    """FLOPs of a piece, and of one that is predicted, that full training takes and this does not: the gradients of
    matrices that nothing trains, less what the adapter takes itself. `trained`: paths and shapes; `last_in_slots`: see
    `Objective`."""
    if settings.lora is None:
        return 0.0, 0.0
    sizes = {path: int(np.prod(shape)) for path, shape in architecture.shapes().items()}
    kept = {p: 2.0 * n for p, n in sizes.items() if p.endswith(KERNEL) and p not in trained}
    behind = behind_attention(architecture) if last_in_slots else ()
    of_predicted = sum(work for path, work in kept.items() if path.startswith(HEAD) or path in behind)
    of_adapter = sum(
        6.0 * np.prod(shape) for path, shape in trained.items() if path.endswith((f'/{DOWN}', f'/{UP}'))
    )
    table = architecture.output_table
    output = 2.0 * sizes[table] if table not in trained and table + ROWS not in trained else 0.0
    return sum(kept.values()) - of_predicted - of_adapter, of_predicted + output
