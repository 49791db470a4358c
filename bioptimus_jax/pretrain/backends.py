"""How a run computes its model; above all its attention: plain XLA or a fused kernel, the fastest of those that the
platform has and that pass a check.

B rows, L positions, H heads, K size of a head.
"""

import collections
import dataclasses
import functools
import math
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec
from jax.typing import DTypeLike

from bioptimus_jax.config.plugins import Table
from bioptimus_jax.errors import ConfigError, InputError
from bioptimus_jax.hosts.config import Runtime
from bioptimus_jax.model.architecture import Architecture
from bioptimus_jax.model.attention import Attend, Causal, Dropped, Ranges, attend
from bioptimus_jax.model.compute import Compute, undivided, unplaced
from bioptimus_jax.model.kernels import cudnn, cudnn_packed, pallas_gpu, splash
from bioptimus_jax.pretrain.config import HasTraining, Pretrain
from bioptimus_jax.pretrain.fastest import Candidate, agreed, fastest, flaw_of
from bioptimus_jax.pretrain.sharding import ROWS, Gather, Place, platform_of, row_shards
from bioptimus_jax.records.attention import Measured
from bioptimus_jax.records.record import plain
from bioptimus_jax.storage.files import read_json, write_json

PLAIN_ATTENTION = 'xla'
KERNELS: Table[Attend] = Table(
    'KERNELS',
    {
        'pallas_gpu': pallas_gpu,
        'cudnn': cudnn,
        'cudnn_packed': cudnn_packed,
        'splash': splash,
    },
)
# What auto takes, beside plain attention: the fastest, or where nothing is measured the first that passes its check.
KERNELS_OF_PLATFORM = {'cuda': ('pallas_gpu', 'cudnn', 'cudnn_packed'), 'tpu': ('splash',)}
PLATFORM_OF_KERNEL = {'pallas_gpu': 'gpu', 'cudnn': 'gpu', 'cudnn_packed': 'gpu', 'splash': 'tpu'}
BY_CUDNN = ('cudnn', 'cudnn_packed')
WITHOUT_CUDNN = 'with config.runtime.deterministic a step that has it ends with an error of XLA'
WITHOUT_WINDOWS = ('pallas_gpu',)  # which leave ranges with a window to plain attention
RECORD = 'attention.json'
"""File in the folder of pre-training: what auto has chosen there. Another attention would round in another way."""
HEADS = ('tensor',)  # the axis that heads are split over, as ROWS are those of rows; a mesh may lack some
DOCUMENTS = 4  # of a row that a kernel is checked with
DEEP = 12  # layers; up to here an unrolled stack is faster, and fits
OPTIONS: dict[str, dict[str, bool | int]] = {
    # Every product by itself in cuBLAS, which adds its bias on the way: behind Triton's products, and behind those that
    # are merged, that is a pass over memory of its own.
    'gpu': {'xla_gpu_enable_triton_gemm': False, 'xla_gpu_dot_merger_threshold_mb': 0}
}
"""Options of the compiler by platform; measured with BERT-base on an H100."""
# Share of the largest value by which a kernel may differ from plain attention in float32. Not tighter, because
# GPUs round the factors of float32 products to TF32 and TPUs to bfloat16; a wrong kernel is off by far more.
TOLERANCES = {'float32': 0.02, 'bfloat16': 0.05}


@dataclasses.dataclass
class MeasuredAttention:
    """What auto has measured and chosen in a run, by the sides that are attended to.

    `rows`: of a step's part, on all devices. `plain_fits`: whether memory suffices for the scores of plain attention.
    `documents`: places for documents in a row, of which most rows fill only some. `width`: pieces of a row where they
    are not those of the run's own rows.
    """

    rows: int = 0
    plain_fits: bool = True
    documents: int = DOCUMENTS
    made: dict[str, Measured] = dataclasses.field(default_factory=dict)
    width: int = 0

    def read(self, folder: Path) -> None:
        """Take over what a run that goes on has chosen. Raises InputError."""
        remedy = 'restore it, or delete it to measure again'
        made = Measured.read_by_name(read_json(folder / RECORD, remedy) or {}, str(folder / RECORD), remedy)
        if not {one.chosen for one in made.values()} <= {PLAIN_ATTENTION, *KERNELS}:
            raise InputError(f'{folder / RECORD}: is damaged (it names no attention); {remedy}')
        self.made = made

    def write(self, folder: Path) -> None:
        """Keep what was measured, if anything was."""
        if self.made:
            write_json(folder / RECORD, plain(self.made))

    def line(self) -> str:
        """The times, of forward and backward pass through the layers."""
        return '; '.join(
            f'{sides}: {", ".join(f"{name} {taken:.3g} ms" for name, taken in made.milliseconds.items())}'
            for sides, made in self.made.items()
        )


def make_compute(
    config: HasTraining,
    architecture: Architecture,
    mesh: Mesh,
    row_pieces: int,
    warn: Callable[[str], None],
    causal: bool = False,
    measured: MeasuredAttention | None = None,
) -> Compute:
    """Types, attention, remat and placing by the configuration; 'auto' looks at the platform and the depth.

    `causal`: a position sees nothing behind it, also of its window. `measured`: auto measures, and remembers there.
    """
    a, dtype = architecture, dtype_of(config.pretrain, platform_of(mesh))
    # Held-out rows are narrower than packed ones: a kernel that refuses their width would end the run at step 0.
    widths = tuple(sorted({row_pieces, min(row_pieces, config.rows.max_document_pieces)}))
    repeatable = config.runtime.deterministic
    spec = AttentionSpec(mesh, a.heads, a.head_size, widths, dtype, a.windows, causal, repeatable)
    attention = choose(config.runtime.attention, spec, a.attention_dropout, warn, measured, a)
    return compute_with(attention, config, a, mesh, causal)


def compute_with(
    attention: Attend, config: HasTraining, architecture: Architecture, mesh: Mesh, causal: bool = False
) -> Compute:
    """`make_compute` with an attention that was chosen, whether or not the devices of the mesh are here."""
    platform, layers = platform_of(mesh), architecture.layers
    dtype = jnp.dtype(dtype_of(config.pretrain, platform))
    return Compute(
        dtype=dtype,
        attend=Causal(attention) if causal else attention,
        remat=remat_of(config.runtime, layers),
        scan_layers=scans(config.runtime, layers),
        place=Place(mesh) if mesh.size > 1 else unplaced,
        row_shards=row_shards(mesh),
        gather=Gather(mesh, dtype) if mesh.shape['fsdp'] > 1 else undivided,
        platform=platform,
    )


def expected_attention(
    config: HasTraining, architecture: Architecture, platform: str, packs: bool = False
) -> str:
    """The attention that a run is likely to take on a platform (cpu, gpu, tpu), where nothing can be measured.

    `packs`: whether cuDNN computes nothing there between documents that share a row.
    """
    named, a = config.runtime.attention, architecture
    if a.biased_scores or (named == 'auto' and (platform == 'cpu' or a.attention_dropout)):
        return PLAIN_ATTENTION
    if named != 'auto':
        return named
    if platform == 'tpu':
        return 'splash'
    if dtype_of(config.pretrain, platform) == 'float32' or config.runtime.deterministic:
        return 'pallas_gpu'  # neither is for cuDNN
    return 'cudnn_packed' if packs and set(a.windows) == {None} else 'cudnn'


def dtype_of(settings: Pretrain, platform: str) -> str:
    """Type of matrix products on cpu, gpu or tpu."""
    if settings.dtype != 'auto':
        return settings.dtype
    return 'float32' if platform == 'cpu' else 'bfloat16'


def compiler_options(mesh: Mesh) -> dict[str, bool | int] | None:
    """The options for the platform of a mesh, without what XLA_FLAGS names; None: there are none."""
    # What a user says in XLA_FLAGS counts: an option that is given with a program would overrule it.
    said = {flag.partition('=')[0].removeprefix('--') for flag in os.environ.get('XLA_FLAGS', '').split()}
    options = OPTIONS.get(platform_of(mesh), {})
    return {name: value for name, value in options.items() if name not in said} or None


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
        for count, what, parts in ((rows, 'rows', self.parts(ROWS)), (heads, 'heads', self.parts(HEADS))):
            if count % parts:
                raise ValueError(f'{count} {what} are not a multiple of the {parts} devices for them')
        # XLA cannot look into a kernel to split it, and would gather its inputs on every device: each runs it on its
        # own part.
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
        """How arrays BxL are split."""
        return PartitionSpec(self._present(ROWS))

    @property
    def heads_spec(self) -> PartitionSpec:
        """How arrays BxLxHxK are split."""
        return PartitionSpec(self._present(ROWS), None, self._present(HEADS))

    def _present(self, axes: tuple[str, ...]) -> tuple[str, ...] | None:
        return tuple(axis for axis in axes if axis in self.mesh.axis_names) or None


def attention_on(mesh: Mesh, name: str) -> Attend:
    """Plain `attend`, or the kernel of that name spread over the mesh."""
    return attend if name == PLAIN_ATTENTION else Sharded(KERNELS[name], mesh)


@dataclasses.dataclass(frozen=True)
class AttentionSpec:
    """Attention as a run needs it: for rows of each of these `widths`, in layers with these `windows`.

    `repeatable`: with the same bits every time.
    """

    mesh: Mesh
    heads: int
    head_size: int
    widths: tuple[int, ...]
    dtype: DTypeLike
    windows: tuple[int | None, ...]
    causal: bool = False
    repeatable: bool = False

    def attend(self, name: str) -> Attend:
        """Plain `attend`, or a kernel spread over the mesh."""
        return attention_on(self.mesh, name)

    def flaw(self, name: str) -> str | None:
        """What is wrong with a kernel for one of the widths and windows, in words; None: nothing."""
        if self.repeatable and name in BY_CUDNN:
            # On an H200 with jax 0.11.2 the check passes, which has one backward call, and a step with several ends so.
            # XLA makes the first of equal calls deterministic, and does not find the others, which stay as they were.
            return WITHOUT_CUDNN

        def first() -> str | None:
            kernel, shape = Sharded(KERNELS[name], self.mesh), (self.heads, self.head_size)
            each = ((width, window) for width in self.widths for window in dict.fromkeys(self.windows))
            flaws = (find_flaw(kernel, *shape, w, self.dtype, window, self.causal) for w, window in each)
            return next(filter(None, flaws), None)

        return flaw_of(first)

    def candidate(self, name: str, measured: MeasuredAttention) -> Candidate:
        """How it is checked and timed: forward and backward pass through all layers with the rows of a step's part."""

        def check() -> str | None:
            if name != PLAIN_ATTENTION:
                return self.flaw(name)
            return None if measured.plain_fits else 'its scores would need more memory than there is'

        @functools.cache
        def prepared() -> tuple[list[Any], tuple[jax.Array, ...]]:
            def passes(window: int | None) -> Callable[..., list[jax.Array]]:
                def both(segments_BxL: jax.Array, *others: jax.Array) -> list[jax.Array]:
                    ranges = _ranges(segments_BxL, window, self.causal, max(measured.documents, DOCUMENTS))
                    return _with_gradients(self.attend(name), ranges, *others)

                return jax.jit(both, compiler_options=compiler_options(self.mesh))

            # Made when it is first timed: a candidate that fails its check takes no memory and no compile.
            shape = (measured.rows, max(self.widths), self.heads, self.head_size)
            *arrays, segments_BxL = _sample(self.mesh, shape, self.dtype, self.causal)
            layers = collections.Counter(self.windows).items()
            return [(passes(window), number) for window, number in layers], (segments_BxL, *arrays[:4])

        def work() -> None:
            each, inputs = prepared()
            for one, layers in each:
                for _ in range(layers):
                    done = one(*inputs)  # of a layer at a time: those of all may be more than the memory
            jax.block_until_ready(done)  # the device computes in order

        return Candidate(check, work)


def choose(
    wanted: str,
    spec: AttentionSpec,
    attention_dropout: float,
    warn: Callable[[str], None],
    measured: MeasuredAttention | None = None,
    architecture: Architecture | None = None,
) -> Attend:
    """The attention of a run: plain `attend`, or a kernel spread over the mesh, checked here on every device.

    A kernel must do for all widths and windows of `spec`, and for the scores of the `architecture`.
    `auto` is plain where attention probabilities are dropped or scores have a bias, else the one that `measured` has
    from before, else the fastest, which it measures; without `measured` the platform's first kernel that passes. It
    says in one line each which do not. A kernel that was asked for by name and cannot be used is a ConfigError with
    the reason.
    """
    known = ('auto', PLAIN_ATTENTION, *KERNELS)
    if wanted not in known:
        raise ConfigError(f'config.runtime.attention: {wanted!r} is not one of {", ".join(known)}')
    biased = architecture is not None and architecture.biased_scores
    if wanted == PLAIN_ATTENTION or (wanted == 'auto' and (attention_dropout > 0 or biased)):
        return attend
    name, left_out = wanted, dict[str, str]()
    if wanted != 'auto':
        check_kernel(name, attention_dropout, architecture=architecture)
        if flaw := spec.flaw(name):
            raise ConfigError(
                f'config.runtime.attention: {name} cannot be used here ({flaw}); choose xla or auto'
            )
    elif measured is None:
        name, left_out = _first_sound(spec)
    else:
        name, left_out = _fastest(spec, measured, warn)
    for kernel, flaw in left_out.items():
        on = 'plain XLA' if name == PLAIN_ATTENTION else name
        warn(f'attention: the kernel {kernel} cannot be used here ({flaw}); continuing with {on}')
    if name in WITHOUT_WINDOWS and set(spec.windows) != {None}:
        warn(f'attention: {name} has no windows; layers that have one use plain XLA, in blocks')
    return spec.attend(name)


def _first_sound(spec: AttentionSpec) -> tuple[str, dict[str, str]]:
    """The platform's first kernel that passes, and what is wrong with those before it; without one plain attention."""
    left_out: dict[str, str] = {}
    for name in KERNELS_OF_PLATFORM.get(_platform(spec.mesh), ()):
        if (flaw := spec.flaw(name)) is None:
            return name, left_out
        left_out[name] = flaw
    return PLAIN_ATTENTION, left_out


def _fastest(
    spec: AttentionSpec, measured: MeasuredAttention, warn: Callable[[str], None]
) -> tuple[str, dict[str, str]]:
    """What was chosen before, else the fastest for the platform, and what is wrong with others. It is remembered."""
    known, names = (PLAIN_ATTENTION, *KERNELS), KERNELS_OF_PLATFORM.get(_platform(spec.mesh), ())
    sides = 'to one side' if spec.causal else 'to both sides'
    sides += f', {measured.width} pieces' if measured.width else ''
    kept = measured.made.get(sides)
    # Processes exchange numbers, and the first one's counts: the others may not see the folder with the record.
    if (number := agreed(known.index(kept.chosen) if kept else -1)) >= 0:
        name = known[int(number)]
        flaw = (
            None
            if name == PLAIN_ATTENTION
            else spec.flaw(name)
            if name in names
            else 'it is for another platform'
        )
        # Where one process cannot use it none does: all must run the same program.
        if agreed(math.inf if flaw else 0) == 0:
            return name, {}
        warn(
            f'attention: {name}, which this run has used so far, cannot be used here ({flaw or "in another process"}); '
            'from here on another is used, which rounds differently'
        )
    if not names:
        return PLAIN_ATTENTION, {}
    found = fastest({name: spec.candidate(name, measured) for name in (PLAIN_ATTENTION, *names)})
    if not found.chosen:  # none was measured in time, or in this memory
        return _first_sound(spec)
    measured.made[sides] = found
    return found.chosen, {name: flaw for name, flaw in found.left_out.items() if name != PLAIN_ATTENTION}


def check_kernel(
    name: str,
    attention_dropout: float,
    platform: str = '',
    repeatable: bool = False,
    architecture: Architecture | None = None,
) -> None:
    """Raise ConfigError where a kernel cannot do what is wanted, or is of another platform (gpu, tpu)."""
    if name in KERNELS and architecture is not None and architecture.biased_scores:
        raise ConfigError(
            f'config.runtime.attention: {name} cannot be used here (scores of {architecture.title} have a term for the '
            'distance of two pieces, which no kernel takes); choose xla or auto'
        )
    of_kernel = PLATFORM_OF_KERNEL.get(name)
    if of_kernel and platform and platform != of_kernel:
        raise ConfigError(
            f'config.runtime.attention: {name} is for {of_kernel}, but jax computes on {platform} here; choose xla or '
            'auto'
        )
    if repeatable and name in BY_CUDNN:
        raise ConfigError(
            f'config.runtime.attention: {name} cannot be used here ({WITHOUT_CUDNN}); choose xla or auto'
        )
    if name in KERNELS and attention_dropout > 0:
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
    devices, compiled like the train step.
    """
    to_ranges = functools.partial(_ranges, window=window, causal=causal)
    # Two rows a device: one that ends in padding, and one that its documents fill (`_two_rows`).
    shape = (2 * kernel.parts(ROWS), row_pieces, heads, head_size)

    @functools.partial(jax.jit, compiler_options=compiler_options(kernel.mesh))
    def forward(query: jax.Array, key: jax.Array, value: jax.Array, segments_BxL: jax.Array) -> jax.Array:
        return kernel(query, key, value, to_ranges(segments_BxL))

    # A shape that cannot be is refused here, in the kernel's own words.
    segments = jax.ShapeDtypeStruct(shape[:2], jnp.int32)
    jax.eval_shape(forward, *(jax.ShapeDtypeStruct(shape, dtype),) * 3, segments)
    whole = NamedSharding(kernel.mesh, PartitionSpec())

    @functools.partial(jax.jit, out_shardings=whole, compiler_options=compiler_options(kernel.mesh))
    def differences(
        query: jax.Array, key: jax.Array, value: jax.Array, weights: jax.Array, segments_BxL: jax.Array
    ) -> jax.Array:
        # The exact one is in float32 whatever the type: else both would have the same errors of rounding.
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

    *inputs, other_key, other_value, segments_BxL = _sample(kernel.mesh, shape, dtype, causal)
    query, key, value, _ = inputs
    tolerance = TOLERANCES[jnp.dtype(dtype).name]
    found = np.asarray(differences(*inputs, segments_BxL))
    for what, difference in zip(('output', 'gradient of q', 'gradient of k', 'gradient of v'), found):
        if not difference <= tolerance:
            return f'its {what} is off by {difference:.2g} of the largest value, more than {tolerance}'
    before = forward(query, key, value, segments_BxL)
    if changed(before, forward(query, other_key, other_value, segments_BxL), segments_BxL):
        return 'a segment sees the keys or values of another'
    return None


def _sample(mesh: Mesh, shape: tuple[int, ...], dtype: DTypeLike, causal: bool) -> tuple[jax.Array, ...]:
    """Random queries, keys, values, weights, other keys and values of what is `_replaced`; segments of the rows."""
    spread = Sharded(attend, mesh)
    of_rows, of_heads = (NamedSharding(mesh, spec) for spec in (spread.rows_spec, spread.heads_spec))

    @functools.partial(jax.jit, out_shardings=(*(of_heads,) * 6, of_rows))
    def sample() -> tuple[jax.Array, ...]:
        segments_BxL = jnp.tile(_two_rows(shape[1]), (-(-shape[0] // 2), 1))[: shape[0]]
        second = _replaced(segments_BxL, causal)[:, :, None, None]
        query, key, value, weights, *others = jax.random.normal(jax.random.key(0), (6, *shape)).astype(dtype)
        other_key, other_value = (jnp.where(second, *pair) for pair in zip(others, (key, value)))
        return query, key, value, weights, other_key, other_value, segments_BxL

    return sample()


def _replaced(segments_BxL: jax.Array, causal: bool) -> jax.Array:
    """Places of a segment, and of the end of another one where nothing before it may see that."""
    late_1xL = jnp.arange(segments_BxL.shape[1])[None] >= 0.15 * segments_BxL.shape[1]
    return (segments_BxL == 2) | ((segments_BxL == 1) & late_1xL & causal)


def _ranges(segments_BxL: jax.Array, window: int | None, causal: bool, documents: int = DOCUMENTS) -> Ranges:
    ids_1x1xG = jnp.arange(1, documents + 1)[None, None]
    lengths_BxG = (segments_BxL[:, :, None] == ids_1x1xG).sum(1, dtype=jnp.int32)
    return dataclasses.replace(Ranges.of(segments_BxL, window, lengths_BxG), one_sided=causal)


def _with_gradients(
    attention: Attend, ranges: Ranges, query: jax.Array, key: jax.Array, value: jax.Array, weights: jax.Array
) -> list[jax.Array]:
    """Output, and the gradients of queries, keys and values of its weighted sum, in float32."""
    output, pull = jax.vjp(lambda q, k, v: attention(q, k, v, ranges), query, key, value)
    return [x.astype(jnp.float32) for x in (output, *pull(weights))]


def _two_rows(length: int) -> np.ndarray:
    """Segment ids: four documents, one of a single piece, and padding; two documents that fill their row."""
    first = [0.3 * length, 0.3 * length + 1, 0.8 * length, 0.95 * length]
    ends = np.array([first, [0.55 * length, *[length] * 3]])
    ended = (ends.astype(int)[:, None] <= np.arange(length)[:, None]).sum(-1)
    return np.where(ended == DOCUMENTS, 0, ended + 1).astype(np.int32)


def _platform(mesh: Mesh) -> str:
    """`cpu`, `tpu`, and `cuda` or `rocm` for what jax calls `gpu`."""
    device = mesh.devices.flat[0]
    if device.platform != 'gpu':
        return device.platform
    return 'rocm' if 'rocm' in device.client.platform_version else 'cuda'
