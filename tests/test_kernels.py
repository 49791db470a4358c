"""Fused attention kernels, interpreted on the CPU, against the plain one; the choice among them.

B rows, L positions, H heads, K size of a head.
"""

import dataclasses
import functools
import json
import re
import socket
import subprocess
import threading
import time
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import Mesh
from toy_attention import not_at_all, raising, roughly, skip_unless_lowered, slowly
from toy_programs import environment

from bioptimus_jax.errors import ConfigError, InputError
from bioptimus_jax.model import kernels
from bioptimus_jax.model.attention import Attend, Dropped, Ranges, attend, attended_keys
from bioptimus_jax.model.config import FAMILIES
from bioptimus_jax.model.kernels import parts_of_rows
from bioptimus_jax.pretrain import backends
from bioptimus_jax.pretrain.fastest import Candidate, fastest
from bioptimus_jax.records.attention import Measured

OPTIONS = {'cudnn': {'implementation': 'xla'}, 'cudnn_packed': {}}
INTERPRETED = {
    name: functools.partial(kernel, **OPTIONS.get(name, {'interpret': True}))
    for name, kernel in backends.KERNELS.items()
}
"""The kernels on a CPU. What is given to cuDNN is tested here, and computed by another implementation of the same."""
CUDNN = 'jax._src.cudnn.fused_attention_stablehlo'
# Rows of three blocks in every pass of every kernel; a head size that is no power of two.
LENGTHS = {'pallas_gpu': 96, 'cudnn': 96, 'cudnn_packed': 96, 'splash': 384}
HEADS, SIZE = 2, 24
WINDOW = 50
ATTENTIONS = [
    *((name, dtype, None, False) for name in INTERPRETED for dtype in ('float32', 'bfloat16')),
    *((name, 'float32', WINDOW, False) for name in ('splash', 'cudnn')),  # the other has no windows
    *((name, 'float32', None, True) for name in INTERPRETED),
    *((name, 'float32', WINDOW, True) for name in ('splash', 'cudnn')),
]
# Lengths of a row's documents in 96ths of the row; the rest is padding.
LAYOUTS = {
    'one document': [[96], [96]],
    'padding': [[20, 30, 11], [95]],
    'only padding': [[], [40, 1]],
    'ends of blocks': [[32, 32, 32], [64]],
    'many': [[5] * 19, [1] * 90],
}


def arrays(name, dtype='float32', rows=2):
    shape = (4, rows, LENGTHS[name], HEADS, SIZE)
    return jnp.asarray(np.random.default_rng(0).normal(size=shape), dtype)


def segments_of(name, documents):
    scale = LENGTHS[name] // 96
    rows = [np.repeat(np.arange(1, len(row) + 1), np.array(row, int) * scale) for row in documents]
    return jnp.asarray([np.pad(row, (0, LENGTHS[name] - len(row))) for row in rows], jnp.int32)


def by_parts(query, key, value, *, q_seqlen, kv_seqlen, q_offsets, kv_offsets, scale, mask_type):
    """What cuDNN does of packed rows: every part by itself, which begins at an offset, and nothing where none is."""
    assert q_seqlen is kv_seqlen
    assert q_offsets is kv_offsets
    assert q_offsets.shape == (len(query), q_seqlen.shape[1] + 1)
    place = jnp.arange(query.shape[1])[None, :, None]
    begins, sizes = q_offsets[:, None, :-1], q_seqlen[:, None]
    holds = (begins >= 0) & (begins <= place) & (place < begins + sizes)
    sees = jnp.einsum('bqp,bkp->bqk', *(holds.astype(jnp.float32),) * 2) > 0
    if mask_type.name == 'PADDING_CAUSAL':
        sees &= place >= jnp.swapaxes(place, 1, 2)
    else:
        assert mask_type.name == 'PADDING'
    scores = jnp.where(sees[:, None], scale * jnp.einsum('bqhk,bshk->bhqs', query, key), -jnp.inf)
    return jnp.einsum(
        'bhqs,bshk->bqhk', jax.nn.softmax(scores.astype(jnp.float32)).astype(value.dtype), value
    )


@pytest.fixture(autouse=True)
def without_cudnn(monkeypatch):
    monkeypatch.setattr(f'{CUDNN}.dot_product_attention', by_parts)


def lengths_of(segments):
    """Lengths of documents that are numbered from 1 on."""
    return (segments[:, :, None] == jnp.arange(1, 97)[None, None]).sum(1, dtype=jnp.int32)


@functools.cache
def with_gradients(attention, window=None, causal=False):
    """`(query, key, value, weights, segments)` to the output and the gradients of its weighted sum."""

    @jax.jit
    def run(query, key, value, weights, segments):
        ranges = Ranges.of(segments, window, lengths_of(segments))
        ranges = dataclasses.replace(ranges, one_sided=causal)
        output, pull = jax.vjp(lambda *x: attention(*x, ranges), query, key, value)
        return output, *pull(weights)

    return run


def all_pairs(query, key, value, ranges):
    """What attention is, without any trick: one row and one head after the other."""
    places = jnp.arange(query.shape[1])
    far = abs(places[:, None] - places[None]) > (len(places) if ranges.window is None else ranges.window)
    far |= ranges.one_sided & (places[None] > places[:, None])

    def of_head(query, key, value, start):
        apart = (start[:, None] != start[None]) | far
        scores = jnp.where(apart, -jnp.inf, query @ key.T / np.sqrt(SIZE))
        return jax.nn.softmax(scores) @ value

    of_row = jax.vmap(of_head, in_axes=(1, 1, 1, None), out_axes=1)
    return jax.vmap(of_row)(query, key, value, ranges.start_BxL)


@pytest.mark.parametrize('layout', ['padding', 'ends of blocks', 'many'])
@pytest.mark.parametrize(
    ('window', 'keys', 'causal'),
    [
        *((*pair, False) for pair in ((None, 96), (60, 96), (20, 60), (16, 48), (9, 48), (0, 48))),
        *((*pair, True) for pair in ((None, 96), (20, 60))),
    ],
)
def test_plain_attention_is_that_of_all_pairs_that_see_each_other(window, keys, causal, layout):
    """The work is done in blocks where keys are fewer than the 96 of a row, which is not a whole number of blocks of
    20."""
    assert attended_keys(96, window) == keys
    inputs, segments = arrays('pallas_gpu'), segments_of('pallas_gpu', LAYOUTS[layout])
    ours = with_gradients(attend, window, causal)(*inputs, segments)
    for what, mine, truth in zip(
        ('output', 'query', 'key', 'value'),
        ours,
        with_gradients(all_pairs, window, causal)(*inputs, segments),
    ):
        np.testing.assert_allclose(mine, truth, atol=5e-6, rtol=0, err_msg=what)


@pytest.mark.parametrize(('window', 'causal'), [(40, False), (7, False), (40, True), (7, True)])
def test_nothing_leaks_into_a_window(window, causal):
    """One position's output stays to the last bit: documents end at 40 and 80, a window in blocks ends at 7 places."""
    query, key, value, _ = arrays('pallas_gpu')
    segments = segments_of('pallas_gpu', [[40, 40]] * 2)
    for place, seen in ((3, (0, min(40, 4 + window))), (45, (max(40, 45 - window), min(80, 46 + window)))):
        alone = jnp.zeros_like(value).at[:, place].set(1)
        _, *gradients = with_gradients(attend, window, causal)(query, key, value, alone, segments)
        seen = (seen[0], place + 1) if causal else seen
        wanted = (np.arange(96) >= seen[0]) & (np.arange(96) < seen[1])
        for gradient in gradients[1:]:
            reached = np.abs(gradient).max(axis=(0, 2, 3)) > 0
            np.testing.assert_array_equal(reached, wanted)


@pytest.mark.parametrize(('name', 'dtype', 'window', 'causal'), ATTENTIONS)
def test_outputs_and_gradients_equal_the_plain_ones(name, dtype, window, causal):
    """A kernel in bfloat16 may be five roundings from float32: with jaxlib 0.10 they are 3, from 0.11 on 4."""
    inputs = arrays(name, dtype)
    for layout, documents in LAYOUTS.items():
        segments = segments_of(name, documents)
        ours = with_gradients(INTERPRETED[name], window, causal)(*inputs, segments)
        exact = with_gradients(attend, window, causal)(*inputs.astype('float32'), segments)
        for what, mine, truth in zip(('output', 'query', 'key', 'value'), ours, exact):
            assert mine.dtype == dtype
            error = np.abs(mine.astype('float32') - truth).max() / np.abs(truth).max()
            assert error < {'float32': 2e-6, 'bfloat16': 5 * 2**-8}[dtype], (layout, what)


@pytest.mark.parametrize('name', INTERPRETED)
def test_nothing_leaks_between_segments(name):
    """The second document's output, from its own queries, keys and values alone, to the last bit."""
    query, key, value, weights = arrays(name)
    segments = segments_of(name, [[20, 30, 11], [50, 46]])
    second = (segments == 2)[:, :, None, None]
    run = with_gradients(INTERPRETED[name])
    output, *gradients = run(query, key, value, jnp.where(second, weights, 0), segments)
    for gradient in gradients:
        reached = np.abs(gradient).max(axis=(2, 3)) > 0
        np.testing.assert_array_equal(reached, segments == 2)
    others = (jnp.where(second, x, 100 * x + 3) for x in (key, value))
    moved, *_ = run(query, *others, weights, segments)
    assert not np.any((moved != output) & second)
    assert np.all((moved != output).any(axis=(2, 3)) | (segments == 2))


@pytest.mark.parametrize('name', INTERPRETED)
def test_nothing_leaks_from_behind_a_position(name):
    """The last third of a document and another one change no bit."""
    inputs = arrays(name)
    segments = segments_of(name, [[90], [30, 60]])
    place = jnp.arange(LENGTHS[name])[None] / LENGTHS[name]
    late = jnp.broadcast_to(place > 2 / 3, segments.shape)[:, :, None, None]
    run = with_gradients(INTERPRETED[name], None, True)
    output, *gradients = run(*inputs[:3], jnp.where(late, 0, inputs[3]), segments)
    for gradient in gradients:
        assert not np.any(np.where(late, gradient, 0))
    others = (jnp.where(late, 100 * x + 3, x) for x in inputs[1:3])
    moved, *_ = run(inputs[0], *others, inputs[3], segments)
    assert not np.any((moved != output) & ~late)
    assert np.any((moved != output) & late)


@pytest.mark.parametrize('name', INTERPRETED)
def test_a_kernel_refuses_dropout_but_not_a_rate_that_is_not_used(name):
    query, key, value, _ = arrays(name)
    segments = segments_of(name, [[96], [96]])
    inputs = (query, key, value, Ranges.of(segments, lengths_BxG=lengths_of(segments)))
    seed = jnp.zeros(2, jnp.uint32)
    with pytest.raises(ValueError, match=rf'^{name} has no dropout of attention probabilities, and 0\.1 was'):
        INTERPRETED[name](*inputs, Dropped(0.1, seed, 3))
    for dropped in (None, Dropped(0.0, seed, 3)):
        attention = functools.partial(INTERPRETED[name], dropped=dropped)
        assert jax.eval_shape(attention, *inputs).shape == query.shape


def test_packed_documents_are_cut_where_they_begin():
    """Cut by hand: an empty entry is not a part, padding is the last part, and nothing follows it."""
    lengths, offsets = parts_of_rows(jnp.array([[3, 2, 0], [8, 0, 0], [0, 0, 0]]), 8)
    np.testing.assert_array_equal(lengths, [[3, 2, -1, 3], [8, -1, -1, -1], [-1, -1, -1, 8]])
    np.testing.assert_array_equal(offsets, [[0, 3, -1, 5, -1], [0, -1, -1, -1, -1], [-1, -1, -1, 0, -1]])


def test_windows_and_unknown_lengths_are_left_to_others(monkeypatch):
    def refuse(*inputs, **options):
        raise AssertionError('packed')

    monkeypatch.setattr(f'{CUDNN}.dot_product_attention', refuse)
    masked = []
    monkeypatch.setattr(kernels, 'cudnn', lambda *inputs: masked.append(inputs[3].window))
    query, key, value, _ = arrays('cudnn')
    segments = segments_of('cudnn', LAYOUTS['padding'])
    for ranges in (Ranges.of(segments, WINDOW, lengths_of(segments)), Ranges.of(segments)):
        kernels.cudnn_packed(query, key, value, ranges)
    assert masked == [WINDOW, None]
    with pytest.raises(AssertionError, match='packed'):
        kernels.cudnn_packed(query, key, value, Ranges.of(segments, None, lengths_of(segments)))


def test_long_rows_have_their_windows_in_blocks(monkeypatch):
    """Not as a mask of all pairs, of which cuDNN would compute every one."""
    monkeypatch.setattr(kernels, 'LONGEST_MASK', 95)
    query, key, value, _ = arrays('cudnn')
    segments = segments_of('cudnn', LAYOUTS['padding'])
    ours = INTERPRETED['cudnn'](query, key, value, Ranges.of(segments, 9))
    np.testing.assert_array_equal(ours, attend(query, key, value, Ranges.of(segments, 9)))
    shapes = str(jax.make_jaxpr(INTERPRETED['cudnn'])(query, key, value, Ranges.of(segments, 9)))
    assert '96,96]' not in shapes


@pytest.mark.parametrize(('name', 'length', 'multiple'), [('pallas_gpu', 40, 16), ('splash', 192, 128)])
def test_a_kernel_says_which_lengths_it_takes(name, length, multiple):
    inputs = [jnp.zeros((1, length, 1, 16))] * 3
    with pytest.raises(ValueError, match=f'^{name} .* a multiple of {multiple}, not {length}$'):
        INTERPRETED[name](*inputs, Ranges.of(jnp.ones((1, length), jnp.int32)))


@pytest.mark.parametrize('dtype', ['float32', 'bfloat16'])
@pytest.mark.parametrize(
    ('name', 'platform', 'call', 'number'),
    [('pallas_gpu', 'cuda', '__gpu$xla.gpu.triton', 3), ('splash', 'tpu', 'tpu_custom_call', 2)],
)
def test_both_passes_lower_for_the_platform_of_the_kernel(name, platform, call, number, dtype):
    """Which needs no such device: the last step before its own compiler, with the shapes of BERT base."""
    skip_unless_lowered(name)
    inputs = [jax.ShapeDtypeStruct((2, 512, 12, 64), dtype)] * 4
    segments = jax.ShapeDtypeStruct((2, 512), jnp.int32)
    traced = with_gradients(backends.KERNELS[name]).trace(*inputs, segments)
    text = traced.lower(lowering_platforms=(platform,)).as_text()
    assert text.count(f'@{call}') >= number
    if name == 'splash':  # the sums of the softmax are one a row of queries before anything waits for them
        assert re.search(r'optimization_barrier .*tensor<2x12x512xf32>', text)


def mesh_of(**axes):
    count = int(np.prod(list(axes.values())))
    if jax.device_count() < count:
        pytest.skip(f'needs {count} devices (XLA_FLAGS=--xla_force_host_platform_device_count={count})')
    return Mesh(np.array(jax.devices()[:count]).reshape(*axes.values()), tuple(axes))


@dataclasses.dataclass(frozen=True)
class Holder:
    """Like the modules of the model: static under jit, with the attention as a field."""

    attention: Attend


@pytest.mark.parametrize(
    ('name', 'axes'),
    [
        ('pallas_gpu', {'data': 8}),
        ('pallas_gpu', {'data': 2, 'fsdp': 2, 'tensor': 2}),
        ('splash', {'fsdp': 2, 'tensor': 2}),
    ],
)
def test_spread_over_a_mesh_a_kernel_gives_the_same(name, axes, monkeypatch):
    monkeypatch.setitem(LENGTHS, 'pallas_gpu', 32)
    monkeypatch.setitem(LENGTHS, 'splash', 128)
    inputs = arrays(name, rows=8)
    segments = jnp.asarray(np.arange(8)[:, None] // 4 + (np.arange(LENGTHS[name]) > 13)[None], jnp.int32)
    attention = backends.Sharded(INTERPRETED[name], mesh_of(**axes))
    assert hash(Holder(attention)) == hash(Holder(dataclasses.replace(attention)))

    @functools.partial(jax.jit, static_argnums=0)
    def run(holder, query, key, value, weights, segments):
        def weighted(*x):
            output = holder.attention(*x, Ranges.of(segments))
            return (output * weights).sum(), output

        gradients, output = jax.grad(weighted, (0, 1, 2), has_aux=True)(query, key, value)
        return output, *gradients

    spread = run(Holder(attention), *inputs, segments)
    assert len(spread[0].sharding.device_set) == np.prod(list(axes.values()))
    assert spread[0].addressable_shards[0].data.shape == (
        8 // attention.parts(backends.ROWS),
        LENGTHS[name],
        HEADS // axes.get('tensor', 1),
        SIZE,
    )
    for mine, whole in zip(spread, run(Holder(attend), *inputs, segments)):
        np.testing.assert_allclose(mine, whole, atol=5e-6, rtol=0)


def test_rows_and_heads_that_the_devices_do_not_divide_are_named():
    attention = backends.Sharded(attend, mesh_of(data=2, tensor=4))
    for rows, heads, message in ((3, 4, '3 rows .* the 2 devices'), (2, 6, '6 heads .* the 4 devices')):
        with pytest.raises(ValueError, match=message):
            attention(*[jnp.zeros((rows, 16, heads, 16))] * 3, Ranges.of(jnp.ones((rows, 16), jnp.int32)))


SHAPE = {'heads': 2, 'head_size': 16, 'widths': (32,)}


def choose(
    wanted,
    dtype='float32',
    attention_dropout=0.0,
    windows=(None,),
    measured=None,
    repeatable=False,
    architecture=None,
    **axes,
):
    """The chosen attention and the warnings."""
    warnings = []
    mesh = mesh_of(**(axes or {'data': 2}))
    spec = backends.AttentionSpec(mesh, **SHAPE, dtype=dtype, windows=windows, repeatable=repeatable)
    chosen = backends.choose(wanted, spec, attention_dropout, warnings.append, measured, architecture)
    return chosen, warnings


def without_segments(query, key, value, ranges, **options):
    return attend(query, key, value, Ranges.of(jnp.ones_like(ranges.start_BxL), ranges.window))


def without_windows(query, key, value, ranges, **options):
    return attend(query, key, value, ranges.within(None))


def without_scale(query, key, value, ranges, **options):
    return attend(query * 1.2, key, value, ranges)


def without_gradient(query, key, value, ranges, **options):
    return attend(query, jax.lax.stop_gradient(key), value, ranges)


def with_a_small_leak(query, key, value, ranges, **options):
    return attend(query, key, value, ranges) + 1e-3 * value.mean(axis=1, keepdims=True)


def with_nan_at_the_end(query, key, value, ranges, **options):
    last = ranges.end_BxL == query.shape[1]  # padding, or a document that fills its row
    return jnp.where(last[:, :, None, None], jnp.nan, attend(query, key, value, ranges))


@pytest.mark.parametrize(
    ('broken', 'reason'),
    [
        (raising, r'RuntimeError: no shared memory left'),
        (without_segments, r'its output is off by 0\.\d+ of the largest value, more than 0\.02'),
        (without_windows, r'its output is off by 0\.\d+ of the largest value, more than 0\.02'),
        (without_scale, r'its (output|gradient of .) is off by .*'),
        (without_gradient, r'its gradient of k is off by 1 of the largest value, more than 0\.02'),
        (with_a_small_leak, r'a segment sees the keys or values of another'),
        (with_nan_at_the_end, r'its output is off by inf of the largest value, more than 0\.02'),
    ],
)
def test_a_kernel_that_fails_its_check_is_not_used(broken, reason, monkeypatch):
    monkeypatch.setitem(backends.KERNELS_OF_PLATFORM, 'cpu', ('splash',))
    monkeypatch.setitem(backends.KERNELS, 'splash', broken)
    chosen, warnings = choose('auto', windows=(None, 4))
    assert chosen is attend
    (warning,) = warnings
    before, after = r'attention: the kernel splash cannot be used here \(', r'\); continuing with plain XLA'
    assert re.fullmatch(before + reason + after, warning), warning
    with pytest.raises(
        ConfigError, match=rf'^config\.runtime\.attention: splash .* \({reason}\); choose xla'
    ):
        choose('splash', windows=(None, 4))


@pytest.mark.parametrize(('wanted', 'dtype'), [('auto', 'bfloat16'), ('pallas_gpu', 'float32')])
def test_a_kernel_that_passes_its_check_is_used(wanted, dtype, monkeypatch):
    monkeypatch.setitem(backends.KERNELS_OF_PLATFORM, 'cpu', ('pallas_gpu',))
    monkeypatch.setitem(backends.KERNELS, 'pallas_gpu', INTERPRETED['pallas_gpu'])
    chosen, warnings = choose(wanted, dtype)
    assert chosen == backends.Sharded(INTERPRETED['pallas_gpu'], mesh_of(data=2))
    assert not warnings


def test_a_kernel_without_windows_leaves_them_to_plain_attention(monkeypatch):
    monkeypatch.setitem(backends.KERNELS, 'pallas_gpu', INTERPRETED['pallas_gpu'])
    chosen, warnings = choose('pallas_gpu', windows=(None, 4))
    assert chosen == backends.Sharded(INTERPRETED['pallas_gpu'], mesh_of(data=2))
    assert warnings == ['attention: pallas_gpu has no windows; layers that have one use plain XLA, in blocks']


@pytest.mark.parametrize(
    ('wanted', 'shape', 'kernel', 'given', 'message'),
    [
        ('flash', {}, None, {}, r"'flash' is not one of auto, xla, pallas_gpu, cudnn, cudnn_packed, splash"),
        ('pallas_gpu', {}, None, {}, r'^config\.runtime\.attention: pallas_gpu .*[Ii]nterpret.*; choose'),
        ('pallas_gpu', {'widths': (40,)}, None, {}, r'a multiple of 16, not 40\); choose xla or auto$'),
        (  # held-out rows hold one document, rows for training several
            *('pallas_gpu', {'widths': (32, 40)}, INTERPRETED['pallas_gpu'], {}),
            r'a multiple of 16, not 40\); choose xla or auto$',
        ),
        (
            *('pallas_gpu', {'widths': (40,), 'heads': 3}, None, {'tensor': 2}),
            r'\(ValueError: 3 heads are not a multiple of the 2 devices for them\)',
        ),
        (
            *('splash', {}, raising, {'attention_dropout': 0.1}),
            r'config\.runtime\.attention: splash .* config\.model\.attention_dropout',
        ),
    ],
)
def test_an_attention_that_is_asked_for_and_cannot_be_is_refused(
    wanted, shape, kernel, given, message, monkeypatch
):
    for name, value in shape.items():
        monkeypatch.setitem(SHAPE, name, value)
    if kernel:
        monkeypatch.setitem(backends.KERNELS, wanted, kernel)
    with pytest.raises(ConfigError, match=message):
        choose(wanted, **given)


def test_a_cpu_gets_plain_attention():
    assert choose('auto') == choose('xla') == (attend, [])


def test_attention_dropout_means_plain_attention(monkeypatch):
    monkeypatch.setitem(backends.KERNELS_OF_PLATFORM, 'cpu', ('splash',))
    monkeypatch.setitem(backends.KERNELS, 'splash', raising)
    assert choose('auto', attention_dropout=0.1) == choose('xla', attention_dropout=0.1) == (attend, [])


@pytest.mark.parametrize('family', ['mpnet', 'deberta-v2'])
def test_scores_with_a_term_of_their_own_mean_plain_attention(family, monkeypatch):
    """Kernels take none: by name they are refused before the first stage, and `auto` does not try them."""
    monkeypatch.setitem(backends.KERNELS_OF_PLATFORM, 'cpu', ('splash',))
    monkeypatch.setitem(backends.KERNELS, 'splash', raising)
    a = FAMILIES.load(family)(128, 32, 1, 2, 16, 64)
    assert choose('auto', architecture=a) == choose('xla', architecture=a) == (attend, [])
    refused = rf'^config\.runtime\.attention: splash cannot be .* \(scores of {a.title} have .*\); choose xla or auto$'
    for refuse in (choose, lambda name, **given: backends.check_kernel(name, 0.0, 'tpu', **given)):
        with pytest.raises(ConfigError, match=refused):
            refuse('splash', architecture=a)
    # A kernel that is given the term all the same ends with an error.
    heads = jnp.zeros((2, 16, 2, 16))
    with pytest.raises(TypeError, match='bias_BxHxLxL'):
        INTERPRETED['splash'](
            *[heads] * 3, Ranges.of(jnp.ones((2, 16), int)), bias_BxHxLxL=jnp.zeros((1, 2, 16, 16))
        )


def test_a_run_that_repeats_its_bits_is_without_cudnn(candidates):
    candidates(cudnn=attend, cudnn_packed=attend, pallas_gpu=slowly)
    measured = backends.MeasuredAttention(2, plain_fits=False)
    chosen, warnings = choose('auto', measured=measured, repeatable=True)
    assert chosen == backends.Sharded(slowly, mesh_of(data=2))
    assert [line.split(' (')[0] for line in warnings] == [
        f'attention: the kernel {name} cannot be used here' for name in backends.BY_CUDNN
    ]
    refused = r'cudnn cannot be used here \(with config\.runtime\.deterministic'
    before = lambda name, **given: backends.check_kernel(name, 0.0, 'gpu', **given)  # noqa: E731
    for refuse in (choose, before):
        with pytest.raises(ConfigError, match=refused):
            refuse('cudnn', repeatable=True)


class Device:
    """What of a jax device the choice looks at."""

    def __init__(self, platform, version):
        self.platform, self.client = platform, self
        self.platform_version = version


@pytest.mark.parametrize(
    ('platform', 'version', 'kernels'),
    [
        ('cpu', '<unknown>', None),
        ('gpu', 'PJRT C API\ncuda 13000', ('pallas_gpu', 'cudnn', 'cudnn_packed')),
        ('gpu', 'PJRT C API\nrocm 70000', None),
        ('tpu', 'PJRT C API\nTFRT TPU v5 lite', ('splash',)),
    ],
)
def test_each_platform_has_its_kernels(platform, version, kernels):
    class FakeMesh:
        devices = np.array([Device(platform, version)])

    assert backends.KERNELS_OF_PLATFORM.get(backends._platform(FakeMesh)) == kernels


def test_the_fastest_attention_that_passes_its_check_is_taken_and_remembered(candidates, tmp_path):
    """Faster ones that are wrong are not, whatever they take; a mesh of two, layers with and without a window."""
    candidates(splash=not_at_all, pallas_gpu=raising, cudnn=roughly)
    measured = backends.MeasuredAttention(rows=4)
    chosen, warnings = choose('auto', windows=(None, 4, 4), measured=measured)
    assert chosen == backends.Sharded(roughly, mesh_of(data=2))
    made = measured.made['to both sides']
    assert made.chosen == 'cudnn'
    assert made.milliseconds.keys() == {'xla', 'cudnn'}
    assert 0 < made.milliseconds['cudnn'] < made.milliseconds['xla']
    assert [line.split(' (')[0] for line in warnings] == [
        f'attention: the kernel {name} cannot be used here' for name in ('splash', 'pallas_gpu')
    ]
    assert warnings[1].endswith('(RuntimeError: no shared memory left); continuing with cudnn')
    measured.write(tmp_path)

    candidates(splash=attend, pallas_gpu=raising, cudnn=slowly)  # what a measurement would now choose: splash
    again = backends.MeasuredAttention(rows=4)
    again.read(tmp_path)
    assert choose('auto', windows=(None, 4, 4), measured=again) == (
        backends.Sharded(slowly, mesh_of(data=2)),
        [],
    )
    assert again.made == measured.made


def test_an_attention_that_is_not_there_any_more_is_replaced_with_one_line(candidates, tmp_path, monkeypatch):
    measured = backends.MeasuredAttention(2, made={'to both sides': Measured('splash', {'splash': 1.0}, {})})
    candidates(cudnn=attend)
    chosen, [line] = choose('auto', measured=measured)
    assert chosen == backends.Sharded(attend, mesh_of(data=2))
    assert line.startswith(
        'attention: splash, which this run has used so far, cannot be used here (it is for another'
    )
    assert measured.made['to both sides'].chosen == 'cudnn'
    candidates()  # a CPU, for a while: what was measured elsewhere stays on record
    chosen, [line] = choose('auto', measured=measured)
    assert (chosen, measured.made['to both sides'].chosen) == (slowly, 'cudnn')
    (tmp_path / backends.RECORD).write_text('{"to both sides": {"chosen": "flash"}}')
    with pytest.raises(InputError, match=r'attention\.json: is damaged .* delete it to measure again'):
        measured.read(tmp_path)


def test_measuring_takes_no_longer_than_it_may():
    """What hangs is left out when the time is over, as are all after it; the fastest before it is taken."""
    ended = threading.Event()
    ways = {
        'slow': Candidate(lambda: None, lambda: time.sleep(0.02)),
        'wrong': Candidate(lambda: 'it leaks', ended.set),
        'fast': Candidate(lambda: None, lambda: None),
        'broken': Candidate(lambda: None, raising),
        'hangs': Candidate(lambda: None, lambda: ended.wait(60)),
        'late': Candidate(lambda: None, lambda: None),
    }
    started = time.monotonic()
    found = fastest(ways, seconds=2.0)
    assert 2.0 <= time.monotonic() - started < 30
    assert not ended.is_set()
    ended.set()
    assert found.chosen == 'fast'
    assert found.milliseconds.keys() == {'slow', 'fast'}
    assert 20 <= found.milliseconds['slow'] < 2000
    assert re.fullmatch(r'not measured within the [12] s that were left', found.left_out.pop('hangs'))
    assert found.left_out == {
        'wrong': 'it leaks',
        'broken': 'RuntimeError: no shared memory left',
        'late': 'not measured, 2 s had passed',
    }


def test_a_kernel_is_timed_with_as_many_places_for_documents_as_the_rows_have(candidates):
    seen = set()

    def noting(query, key, value, ranges, dropped=None):
        seen.add(ranges.lengths_BxG.shape[1])
        return attend(query, key, value, ranges, dropped)

    candidates(cudnn=noting)
    choose('auto', measured=backends.MeasuredAttention(2, documents=9))
    assert seen == {backends.DOCUMENTS, 9}


def test_where_nothing_could_be_measured_the_first_that_passes_is_taken_and_not_remembered(
    candidates, monkeypatch
):
    candidates(splash=raising, cudnn=attend)
    monkeypatch.setattr(backends, 'fastest', lambda ways: Measured('', {}, dict.fromkeys(ways, 'no memory')))
    measured = backends.MeasuredAttention(2, plain_fits=False)
    assert choose('auto', measured=measured)[0] == backends.Sharded(attend, mesh_of(data=2))
    assert not measured.made


def test_the_compiler_has_our_options_but_those_that_the_user_sets(monkeypatch):
    monkeypatch.setenv('XLA_FLAGS', '--xla_gpu_enable_triton_gemm=true --other=1')
    assert backends.compiler_options(mesh_of(data=1)) is None  # on a CPU
    monkeypatch.setattr(backends, 'platform_of', lambda mesh: 'gpu')
    assert backends.compiler_options(mesh_of(data=1)) == {'xla_gpu_dot_merger_threshold_mb': 0}


def test_plain_attention_is_not_measured_where_its_scores_do_not_fit(candidates):
    candidates(cudnn=slowly)
    measured = backends.MeasuredAttention(2, plain_fits=False)
    assert choose('auto', measured=measured)[0] == backends.Sharded(slowly, mesh_of(data=2))
    assert measured.made['to both sides'].milliseconds.keys() == {'cudnn'}


def test_a_cpu_measures_nothing():
    measured = backends.MeasuredAttention(rows=2)
    assert choose('auto', measured=measured) == (attend, [])
    assert not measured.made


def test_two_processes_take_what_the_first_has_measured_or_has_on_record(programs):
    """The other one has other times, a flaw of its own, and no record."""
    with socket.socket() as free:
        free.bind(('127.0.0.1', 0))
        place = f'127.0.0.1:{free.getsockname()[1]}'
    command = [programs / 'python', Path(__file__).with_name('toy_attention.py')]
    started = [
        subprocess.Popen(
            [*command, f'{place},2,{index}'],
            env=environment(),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for index in (0, 1)
    ]
    said = [one.communicate(timeout=240) for one in started]
    assert [one.returncode for one in started] == [0, 0], said
    leader, follower = (json.loads(out.splitlines()[-1]) for out, _ in said)
    assert leader == follower
    assert leader == ['first', ['first', 'second'], ['here'], 'attend']
