"""How a run computes its model; above all its attention: a fused kernel where the platform has one that passes a
check, plain XLA elsewhere.

B rows, L positions, H heads, K size of a head.
"""

import dataclasses
import functools
import math
from collections.abc import Callable, Sequence

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec
from jax.typing import DTypeLike

from bioptimus_jax.errors import ConfigError
from bioptimus_jax.model.architecture import Architecture
from bioptimus_jax.model.attention import Attend, Causal, Dropped, Ranges, attend
from bioptimus_jax.model.compute import Compute, unplaced
from bioptimus_jax.model.kernels import pallas_gpu, splash
from bioptimus_jax.pretrain.sharding import ROWS, Place, row_shards
from bioptimus_jax.schema import Experiment, Pretrain, Runtime

KERNELS: dict[str, Attend] = {'pallas_gpu': pallas_gpu, 'splash': splash}
KERNEL_OF_PLATFORM = {'cuda': 'pallas_gpu', 'tpu': 'splash'}
PLATFORM_OF_KERNEL = {'pallas_gpu': 'gpu', 'splash': 'tpu'}
WITHOUT_WINDOWS = ('pallas_gpu',)  # which leave ranges with a window to plain attention
CHOICES = ('auto', 'xla', *KERNELS)
HEADS = ('tensor',)  # the axis that heads are split over, as ROWS are those of rows; a mesh may lack some
DEEP = 12  # layers; up to here an unrolled stack is faster, and fits
# Share of the largest value by which a kernel may differ from plain attention in float32. Not tighter, because
# GPUs round the factors of float32 products to TF32 and TPUs to bfloat16; a wrong kernel is off by far more.
TOLERANCES = {'float32': 0.02, 'bfloat16': 0.05}


def make_compute(
    config: Experiment,
    architecture: Architecture,
    mesh: Mesh,
    row_pieces: int,
    warn: Callable[[str], None],
    causal: bool = False,
) -> Compute:
    """Types, attention, remat and placing by the configuration; 'auto' looks at the platform and the depth.

    `causal`: a position sees nothing behind it, also of its window.
    """
    dtype = dtype_of(config.pretrain, jax.default_backend())
    attention = choose(
        config.runtime.attention,
        mesh,
        heads=architecture.heads,
        head_size=architecture.head_size,
        widths=sorted(
            {row_pieces, min(row_pieces, config.rows.max_document_pieces)}
        ),  # held-out rows are narrower
        dtype=dtype,
        windows=tuple(dict.fromkeys(architecture.windows)),
        attention_dropout=architecture.attention_dropout,
        warn=warn,
        causal=causal,
    )
    return Compute(
        dtype=jnp.dtype(dtype),
        attend=Causal(attention) if causal else attention,
        remat=remat_of(config.runtime, architecture.layers),
        scan_layers=scans(config.runtime, architecture.layers),
        place=Place(mesh) if mesh.size > 1 else unplaced,
        row_shards=row_shards(mesh),
    )


def dtype_of(settings: Pretrain, platform: str) -> str:
    """Type of matrix products on cpu, gpu or tpu."""
    if settings.dtype != 'auto':
        return settings.dtype
    return 'float32' if platform == 'cpu' else 'bfloat16'


def remat_of(runtime: Runtime, layers: int) -> str:
    """What the backward pass of so many layers computes anew."""
    return runtime.remat if runtime.remat != 'auto' else 'dots' if layers > DEEP else 'none'


def scans(runtime: Runtime, layers: int) -> bool:
    """Whether so many layers are one compiled layer in a loop."""
    return layers > DEEP if runtime.scan_layers == 'auto' else runtime.scan_layers == 'yes'


@dataclasses.dataclass(frozen=True)
class Sharded:
    """A kernel that every device of the mesh runs on its own rows and heads; with the signature of `attend`.

    Hashable, so static under jit. ValueError when the devices do not divide the rows or the heads.
    """

    kernel: Attend
    mesh: Mesh

    def __call__(
        self,
        query_BxLxHxK: jax.Array,
        key_BxLxHxK: jax.Array,
        value_BxLxHxK: jax.Array,
        ranges: Ranges,
        dropped: Dropped | None = None,
    ) -> jax.Array:
        rows, _, heads, _ = query_BxLxHxK.shape
        for count, what, axes in ((rows, 'rows', ROWS), (heads, 'heads', HEADS)):
            if count % self.parts(axes):
                raise ValueError(
                    f'{count} {what} are not a multiple of the {self.parts(axes)} devices for them'
                )
        local = functools.partial(self.kernel, dropped=dropped)
        spread = jax.shard_map(
            local,
            mesh=self.mesh,
            in_specs=(self.heads_spec, self.heads_spec, self.heads_spec, self.rows_spec),
            out_specs=self.heads_spec,
            check_vma=False,  # Pallas's kernels do not declare the axes along which their results vary
        )
        return spread(query_BxLxHxK, key_BxLxHxK, value_BxLxHxK, ranges)

    def parts(self, axes: tuple[str, ...]) -> int:
        """The number of parts that the mesh makes along these axes."""
        return math.prod(self.mesh.shape.get(axis, 1) for axis in axes)

    @property
    def rows_spec(self) -> PartitionSpec:
        """Of arrays BxL."""
        return PartitionSpec(self._present(ROWS))

    @property
    def heads_spec(self) -> PartitionSpec:
        """Of arrays BxLxHxK."""
        return PartitionSpec(self._present(ROWS), None, self._present(HEADS))

    def _present(self, axes: tuple[str, ...]) -> tuple[str, ...] | None:
        return tuple(axis for axis in axes if axis in self.mesh.axis_names) or None


def choose(
    wanted: str,
    mesh: Mesh,
    *,
    heads: int,
    head_size: int,
    widths: Sequence[int],
    dtype: DTypeLike,
    windows: Sequence[int | None],
    attention_dropout: float,
    warn: Callable[[str], None],
    causal: bool = False,
) -> Attend:
    """The attention of a run: plain `attend`, or a kernel spread over the mesh, checked here on every device.

    `widths` are the lengths L that rows of the run have, `windows` those of the layers; the kernel must do for all.
    `auto` takes the platform's kernel unless attention probabilities are dropped, and warns in one line where
    the check fails. A kernel that was asked for by name and cannot be used is a ConfigError with the reason.
    """
    if wanted not in CHOICES:
        raise ConfigError(f'config.runtime.attention: {wanted!r} is not one of {", ".join(CHOICES)}')
    name = KERNEL_OF_PLATFORM.get(_platform(mesh), 'xla') if wanted == 'auto' else wanted
    if name == 'xla' or (wanted == 'auto' and attention_dropout > 0):
        return attend
    check_kernel(name, attention_dropout)
    kernel = Sharded(KERNELS[name], mesh)
    try:
        flaws = (
            find_flaw(kernel, heads, head_size, width, dtype, window, causal)
            for width in widths
            for window in windows
        )
        flaw = next(filter(None, flaws), None)
    except Exception as error:  # of compilers and drivers, which have no common type
        lines = str(error).strip().splitlines() or ['']
        flaw = f'{type(error).__name__}: {lines[0][:200]}'
    if flaw is None:
        if name in WITHOUT_WINDOWS and windows != (None,):
            warn(f'attention: {name} has no windows; layers that have one use plain XLA, in blocks')
        return kernel
    if wanted != 'auto':
        raise ConfigError(
            f'config.runtime.attention: {name} cannot be used here ({flaw}); choose xla or auto'
        )
    warn(f'attention: the kernel {name} cannot be used here ({flaw}); going on with plain XLA')
    return attend


def check_kernel(name: str, attention_dropout: float, platform: str = '') -> None:
    """Raise ConfigError where a kernel cannot do what is wanted, or is of another platform (gpu, tpu)."""
    of_kernel = PLATFORM_OF_KERNEL.get(name)
    if of_kernel and platform and platform != of_kernel:
        raise ConfigError(
            f'config.runtime.attention: {name} is for {of_kernel}, but jax computes on {platform} here; choose xla or '
            'auto'
        )
    if of_kernel and attention_dropout > 0:
        raise ConfigError(
            f'config.runtime.attention: {name} cannot drop attention probabilities; choose xla, or set '
            f'config.model.attention_dropout, now {attention_dropout}, to 0'
        )


def find_flaw(
    kernel: Sharded,
    heads: int,
    head_size: int,
    row_pieces: int,
    dtype: DTypeLike,
    window: int | None = None,
    causal: bool = False,
) -> str | None:
    """Where the kernel differs from plain `attend` on two random rows a device, in words; None: nowhere.

    It compares outputs and the gradients of queries, keys and values, and sees whether other keys and values
    in one segment change a bit of the output of another, or of what is before them where it is `causal`. All on the
    devices, jitted like the train step.
    """
    to_ranges = functools.partial(_ranges, window=window, causal=causal)
    shape = (2 * kernel.parts(ROWS), row_pieces, heads, head_size)

    @jax.jit
    def forward(query: jax.Array, key: jax.Array, value: jax.Array, segments_BxL: jax.Array) -> jax.Array:
        return kernel(query, key, value, to_ranges(segments_BxL))

    # A shape that cannot be is refused here, in the kernel's own words.
    segments = jax.ShapeDtypeStruct(shape[:2], jnp.int32)
    jax.eval_shape(forward, *(jax.ShapeDtypeStruct(shape, dtype),) * 3, segments)
    whole = NamedSharding(kernel.mesh, PartitionSpec())
    of_rows, of_heads = (NamedSharding(kernel.mesh, s) for s in (kernel.rows_spec, kernel.heads_spec))

    @functools.partial(jax.jit, out_shardings=(*(of_heads,) * 6, of_rows))
    def sample() -> tuple[jax.Array, ...]:
        segments_BxL = jnp.tile(_two_rows(row_pieces), (kernel.parts(ROWS), 1))
        second = _replaced(segments_BxL, causal)[:, :, None, None]
        query, key, value, weights, *others = jax.random.normal(jax.random.key(0), (6, *shape)).astype(dtype)
        other_key, other_value = (jnp.where(second, *pair) for pair in zip(others, (key, value)))
        return query, key, value, weights, other_key, other_value, segments_BxL

    @functools.partial(jax.jit, out_shardings=whole)
    def differences(
        query: jax.Array, key: jax.Array, value: jax.Array, weights: jax.Array, segments_BxL: jax.Array
    ) -> jax.Array:
        exact = (x.astype(jnp.float32) for x in (query, key, value, weights))
        ranges = to_ranges(segments_BxL)
        ours = _with_gradients(kernel, ranges, query, key, value, weights)
        plain = _with_gradients(attend, ranges, *exact)
        # A maximum over several CPU devices loses NaN, but not infinity.
        errors = (
            jnp.nan_to_num(abs(a - b), nan=jnp.inf, posinf=jnp.inf).max() / abs(b).max()
            for a, b in zip(ours, plain)
        )
        return jnp.stack([*errors])

    @functools.partial(jax.jit, out_shardings=whole)
    def changed(before: jax.Array, after: jax.Array, segments_BxL: jax.Array) -> jax.Array:
        return jnp.any((before != after) & ~_replaced(segments_BxL, causal)[:, :, None, None])

    query, key, value, weights, other_key, other_value, segments_BxL = sample()
    tolerance = TOLERANCES[jnp.dtype(dtype).name]
    found = np.asarray(differences(query, key, value, weights, segments_BxL))
    for what, difference in zip(('output', 'gradient of q', 'gradient of k', 'gradient of v'), found):
        if not difference <= tolerance:
            return f'its {what} is off by {difference:.2g} of the largest value, more than {tolerance}'
    before = forward(query, key, value, segments_BxL)
    if changed(before, forward(query, other_key, other_value, segments_BxL), segments_BxL):
        return 'a segment sees the keys or values of another'
    return None


def _replaced(segments_BxL: jax.Array, causal: bool) -> jax.Array:
    """Places of a segment, and of the end of another one where nothing before it may see that."""
    late_1xL = jnp.arange(segments_BxL.shape[1])[None] >= 0.15 * segments_BxL.shape[1]
    return (segments_BxL == 2) | ((segments_BxL == 1) & late_1xL & causal)


def _ranges(segments_BxL: jax.Array, window: int | None, causal: bool) -> Ranges:
    return dataclasses.replace(Ranges.of(segments_BxL, window), one_sided=causal)


def _with_gradients(
    attention: Attend,
    ranges: Ranges,
    query: jax.Array,
    key: jax.Array,
    value: jax.Array,
    weights: jax.Array,
) -> list[jax.Array]:
    """Output, and the gradients of queries, keys and values of its weighted sum, in float32."""
    output, pull = jax.vjp(lambda q, k, v: attention(q, k, v, ranges), query, key, value)
    return [x.astype(jnp.float32) for x in (output, *pull(weights))]


def _two_rows(length: int) -> np.ndarray:
    """Segment ids: four documents, one of a single piece, and padding; two documents that fill their row."""
    ends = np.array(
        [[0.3 * length, 0.3 * length + 1, 0.8 * length, 0.95 * length], [0.55 * length] + [length] * 3]
    )
    ended = (ends.astype(int)[:, None] <= np.arange(length)[:, None]).sum(-1)
    return np.where(ended == 4, 0, ended + 1).astype(np.int32)


def _platform(mesh: Mesh) -> str:
    """`cpu`, `tpu`, and `cuda` or `rocm` for what jax calls `gpu`."""
    device = mesh.devices.flat[0]
    if device.platform != 'gpu':
        return device.platform
    return 'rocm' if 'rocm' in device.client.platform_version else 'cuda'
