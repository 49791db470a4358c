"""Attentions to choose among, slow and fast, right and wrong; and two processes that choose: toy_attention.py
HOST:PORT,PROCESSES,INDEX
"""

import json
import sys
import time

import jax
import jax.numpy as jnp
import pytest

from bioptimus_jax.model.attention import attend
from bioptimus_jax.pretrain import backends
from bioptimus_jax.pretrain.fastest import Candidate, fastest
from bioptimus_jax.records.attention import Measured


def skip_unless_lowered(name):
    """Skip where jax lowers this kernel on its own platform alone."""
    if name == 'pallas_gpu' and jax.__version_info__ >= (0, 11) and jax.default_backend() != 'gpu':
        pytest.skip(f'jax {jax.__version__} asks for a GPU to lower Pallas for Triton')


def slowly(query, *others, **options):
    """Attention after an eternity of other products, whose result has no weight."""
    start = jnp.full((64, 64), 1e-3)
    product = jax.lax.stop_gradient(jax.lax.fori_loop(0, 400, lambda _, x: x @ start, start))
    return attend(query + 0 * product[0, 0].astype(query.dtype), *others, **options)


def roughly(query, key, value, ranges, **options):
    """Attention within the tolerance, and with other bits than plain attention: its values are rounded to bfloat16."""
    return attend(query, key, value.astype(jnp.bfloat16).astype(value.dtype), ranges)


def not_at_all(query, key, value, ranges, **options):
    return value


def raising(*inputs, **options):
    raise RuntimeError('no shared memory left\nand a long story')


def main(told):
    """Prints what this process takes: of ways with other times and flaws than in the other one; of a run's attentions,
    where the first process alone has one on record.
    """
    from bioptimus_jax.hosts.config import Runtime
    from bioptimus_jax.pretrain.sharding import make_mesh
    from bioptimus_jax.run import processes

    processes.join(Runtime(distributed=told))
    leads = jax.process_index() == 0
    ways = {
        name: Candidate(lambda: None, lambda fast=fast: time.sleep(0.001 if fast else 0.05))
        for name, fast in (('first', leads), ('second', not leads))
    }
    found = fastest({**ways, 'here': Candidate(lambda: None if leads else 'it leaks', lambda: None)})

    backends.KERNELS_OF_PLATFORM['cpu'] = ('splash', 'cudnn')
    backends.KERNELS.update(splash=roughly, cudnn=attend)
    shape = {'heads': 2, 'head_size': 8, 'widths': (32,), 'windows': (None,), 'dtype': 'float32'}
    kept = {'to both sides': Measured('cudnn', {}, {})}
    measured = backends.MeasuredAttention(4, made=kept if leads else {})
    chosen = backends.choose('auto', backends.AttentionSpec(make_mesh(), **shape), 0.0, print, measured)
    taken = getattr(chosen, 'kernel', chosen).__name__
    print(json.dumps([found.chosen, sorted(found.milliseconds), sorted(found.left_out), taken]), flush=True)
    return processes.leave(0)


if __name__ == '__main__':
    sys.exit(main(sys.argv[1]))
