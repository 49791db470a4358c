"""Fused attention kernels: what `attention.attend` computes, without the LxL matrices in memory.

B rows, L positions, G documents of a row, P those and what is behind them, H heads, K size of a head.

They come from jax.experimental.pallas and cuDNN, with fused backward passes. Padding is a document like any other, so
its rows stay finite. `interpret` runs a kernel of Pallas on any platform, slowly.
"""

from collections.abc import Callable
from typing import Any, Literal, TypeAlias

import jax
import jax.numpy as jnp

from bioptimus_jax.model.attention import Dropped, Ranges, attend

Attention: TypeAlias = Callable[[jax.Array, jax.Array, jax.Array, jax.Array], jax.Array]
"""Queries, keys, values BxHxLxK and starts of documents BxL -> what they mix, BxHxLxK."""
LONGEST_MASK = 1024
"""Places of a row. On an H100 a window of 64 takes 1.28 ms in blocks; as a mask .87 at 1,024 places, 5.63 at 8,192."""
SMALLEST_GPU_BLOCK = 16  # of Triton's products; its blocks are powers of two
SPLASH_BLOCKS = ('block_q', 'block_kv', 'block_q_dkv', 'block_kv_dkv')
SMALLEST_TPU_BLOCK = 128  # the lanes of a vector register, which hold positions


def pallas_gpu(
    query_BxLxHxK: jax.Array,
    key_BxLxHxK: jax.Array,
    value_BxLxHxK: jax.Array,
    ranges: Ranges,
    dropped: Dropped | None = None,
    *,
    interpret: bool = False,
) -> jax.Array:
    """Pallas's `mha` for GPUs, by Triton, as BxLxHxK in the type of the queries, keys and values.

    It has no windows: a range with one is left to plain attention, which holds no LxL scores for it either.
    ValueError when there is something to drop, or when L is not a multiple of 16.
    """
    from jax.experimental.pallas.ops.gpu import attention as gpu

    _refuse_dropout('pallas_gpu', dropped)
    if ranges.window is not None:
        return attend(query_BxLxHxK, key_BxLxHxK, value_BxLxHxK, ranges)
    length, head_size = query_BxLxHxK.shape[1], query_BxLxHxK.shape[3]
    # A block of float32 is half as long, to take the same shared memory; 32 is mha's default for gradients.
    longest = 256 // query_BxLxHxK.dtype.itemsize
    forward, backward = (_block('pallas_gpu', length, SMALLEST_GPU_BLOCK, most) for most in (longest, 32))
    return gpu.mha(
        query_BxLxHxK,
        key_BxLxHxK,
        value_BxLxHxK,
        ranges.start_BxL,  # as segment ids: pieces of one document have one start
        sm_scale=head_size**-0.5,
        causal=ranges.one_sided,
        block_sizes=gpu.BlockSizes(forward, forward, backward, backward, backward, backward),
        interpret=interpret,
    )


def cudnn(
    query_BxLxHxK: jax.Array,
    key_BxLxHxK: jax.Array,
    value_BxLxHxK: jax.Array,
    ranges: Ranges,
    dropped: Dropped | None = None,
    *,
    implementation: Literal['cudnn', 'xla'] = 'cudnn',
) -> jax.Array:
    """cuDNN's flash attention for NVIDIA GPUs, as BxLxHxK in the type of the queries, keys and values: bfloat16.

    Its public route takes no segment ids, so ranges and windows are a mask, which becomes a bias BxLxL for all heads;
    scores of heads are not held. Windows in rows of more than LONGEST_MASK places are left to plain attention, which
    does them in blocks. ValueError when there is something to drop; other errors come from jax, in its words.
    """
    _refuse_dropout('cudnn', dropped)
    if ranges.window is not None and query_BxLxHxK.shape[1] > LONGEST_MASK:
        return attend(query_BxLxHxK, key_BxLxHxK, value_BxLxHxK, ranges)
    return jax.nn.dot_product_attention(
        query_BxLxHxK,
        key_BxLxHxK,
        value_BxLxHxK,
        mask=ranges.mask_Bx1xLxL,
        implementation=implementation,
    )


def cudnn_packed(
    query_BxLxHxK: jax.Array,
    key_BxLxHxK: jax.Array,
    value_BxLxHxK: jax.Array,
    ranges: Ranges,
    dropped: Dropped | None = None,
) -> jax.Array:
    """cuDNN's flash attention, told where documents begin: scores of two documents are not computed, and no mask is.

    On Hopper and newer. jax has no public route to it. Ranges with a window, and those that do not know the lengths of
    their documents, are left to `cudnn`. ValueError when there is something to drop.
    """
    if ranges.window is not None or ranges.lengths_BxG is None:
        return cudnn(query_BxLxHxK, key_BxLxHxK, value_BxLxHxK, ranges, dropped)
    from jax._src.cudnn.fused_attention_stablehlo import MaskType, dot_product_attention

    _refuse_dropout('cudnn_packed', dropped)
    length, head_size = query_BxLxHxK.shape[1], query_BxLxHxK.shape[3]
    lengths_BxP, offsets = parts_of_rows(ranges.lengths_BxG, length)
    mixed_BxLxHxK: jax.Array = dot_product_attention(
        query_BxLxHxK,
        key_BxLxHxK,
        value_BxLxHxK,
        q_seqlen=lengths_BxP,
        kv_seqlen=lengths_BxP,
        q_offsets=offsets,
        kv_offsets=offsets,
        scale=head_size**-0.5,
        mask_type=MaskType.PADDING_CAUSAL if ranges.one_sided else MaskType.PADDING,
    )
    return mixed_BxLxHxK


def parts_of_rows(lengths_BxG: jax.Array, length: int) -> tuple[jax.Array, jax.Array]:
    """Lengths BxP and offsets BxP+1 of the parts of rows as jax wants them for cuDNN; -1 where there is none.

    Padding is the last part, so that its rows are computed, too: cuDNN leaves in place whatever was there.
    """
    rest_Bx1 = length - lengths_BxG.sum(1, keepdims=True)
    lengths_BxP = jnp.concatenate([lengths_BxG, rest_Bx1], 1).astype(jnp.int32)
    offsets_BxP = jnp.cumsum(lengths_BxP, 1) - lengths_BxP
    lengths_BxP, offsets_BxP = (jnp.where(lengths_BxP > 0, x, -1) for x in (lengths_BxP, offsets_BxP))
    return lengths_BxP, jnp.pad(offsets_BxP, ((0, 0), (0, 1)), constant_values=-1)


def splash(
    query_BxLxHxK: jax.Array,
    key_BxLxHxK: jax.Array,
    value_BxLxHxK: jax.Array,
    ranges: Ranges,
    dropped: Dropped | None = None,
    *,
    interpret: bool = False,
) -> jax.Array:
    """Pallas's splash attention for TPUs, as BxLxHxK in the type of the queries, keys and values.

    ValueError when there is something to drop, or when L is not a multiple of 128.
    """
    from jax.experimental.pallas.ops.tpu import splash_attention as tpu
    from jax.experimental.pallas.ops.tpu.splash_attention.splash_attention_kernel import QKVLayout

    _refuse_dropout('splash', dropped)
    length, heads, head_size = query_BxLxHxK.shape[1:]
    block = _block('splash', length, SMALLEST_TPU_BLOCK, 512)
    shape, window = (length, length), ranges.window
    # Made once for all rows: what is the same in each, window and sides, is in the mask; documents are segment ids at
    # run time.
    mask: tpu.Mask
    if window is None:
        mask = tpu.CausalMask(shape) if ranges.one_sided else tpu.FullMask(shape)
    else:
        mask = tpu.LocalMask(shape, (window, 0 if ranges.one_sided else window), 0)
    # Positions last: memory has 128 places for the numbers of a head of 64, and half of them would be empty.
    layout = QKVLayout.SEQ_MINOR if head_size < SMALLEST_TPU_BLOCK else QKVLayout.HEAD_DIM_MINOR
    blocks: dict[str, Any] = dict.fromkeys(SPLASH_BLOCKS, block)
    layouts: dict[str, Any] = dict.fromkeys(('q_layout', 'k_layout', 'v_layout'), layout)
    # One kernel for the backward pass: with two, each computes the scores again.
    sizes = tpu.BlockSizes(**blocks, **layouts, use_fused_bwd_kernel=True)
    kernel = tpu.make_splash_mha_single_device(
        tpu.MultiHeadMask([mask] * heads),
        block_sizes=sizes,
        interpret=interpret,
    )

    # The kernel computes the heads of one row.
    @with_sums_at_once
    @jax.vmap
    def of_rows(
        query_HxLxK: jax.Array, key_HxLxK: jax.Array, value_HxLxK: jax.Array, start_L: jax.Array
    ) -> jax.Array:
        return kernel(query_HxLxK, key_HxLxK, value_HxLxK, tpu.SegmentIds(start_L, start_L))

    query_BxHxLxK = jnp.swapaxes(query_BxLxHxK * head_size**-0.5, 1, 2)  # splash has no scale of its own
    key_BxHxLxK, value_BxHxLxK = jnp.swapaxes(key_BxLxHxK, 1, 2), jnp.swapaxes(value_BxLxHxK, 1, 2)
    return jnp.swapaxes(of_rows(query_BxHxLxK, key_BxHxLxK, value_BxHxLxK, ranges.start_BxL), 1, 2)


def with_sums_at_once(attention: Attention) -> Attention:
    """The same attention; the sums of its softmax, BxHxL, are ready for the backward pass before it is left.

    The kernel for TPUs writes each of them into all 128 places of a register. Where parameters are cut over devices,
    libtpu 0.0.42 takes one of these in the backward pass, and all are held until then: of base size 96 MiB a layer for
    32 rows of 512.
    """

    @jax.custom_vjp
    def attend_at_once(
        query_BxHxLxK: jax.Array, key_BxHxLxK: jax.Array, value_BxHxLxK: jax.Array, start_BxL: jax.Array
    ) -> jax.Array:
        return attention(query_BxHxLxK, key_BxHxLxK, value_BxHxLxK, start_BxL)

    def forward(query_BxHxLxK: jax.Array, *others: jax.Array) -> tuple[jax.Array, Any]:
        mixed_BxHxLxK, backward = jax.vjp(attention, query_BxHxLxK, *others)
        kept, tree = jax.tree.flatten(backward)
        sums = [i for i, array in enumerate(kept) if array.shape == query_BxHxLxK.shape[:-1]]
        # What comes behind the attention waits for the sums, too.
        mixed_BxHxLxK, *ready = jax.lax.optimization_barrier((mixed_BxHxLxK, *(kept[i] for i in sums)))
        for i, array in zip(sums, ready, strict=True):
            kept[i] = array
        return mixed_BxHxLxK, jax.tree.unflatten(tree, kept)

    attend_at_once.defvjp(forward, lambda backward, change_BxHxLxK: backward(change_BxHxLxK))
    return attend_at_once


def _refuse_dropout(kernel: str, dropped: Dropped | None) -> None:
    if dropped is not None and dropped.rate > 0:
        raise ValueError(
            f'{kernel} has no dropout of attention probabilities, and {dropped.rate} was asked for'
        )


def _block(kernel: str, length: int, smallest: int, largest: int) -> int:
    """The largest power of two that divides `length`, between the bounds."""
    # `length & -length` is its largest power of two: such blocks fill a row without a rest.
    block = min(length & -length, largest)
    if block < smallest:
        raise ValueError(f'{kernel} takes rows whose length is a multiple of {smallest}, not {length}')
    return block
