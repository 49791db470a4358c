"""What gpu.py measures: a record for each part, most valuable first, and the functions that measure them.

A part runs in a process of its own and yields its rows one by one: what was measured, what was found in words, and the
numbers. A row that was yielded is kept, whatever happens after it. This module is imported by a process that must not
touch the card: what needs jax is imported within the functions.

B rows, L positions, H heads, K size of a head.
"""

import collections
import dataclasses
import functools
import inspect
import os
import random
import re
import statistics
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from protocol import ON_CPU, Here, Variant, interleave, ratio, serve, versions_of

Row = dict[str, Any]
TINY = 'tiny-'
"""What the names of sizes begin with that are for a CPU."""
GIB = 2**30
ROOMY = 50 * GIB
"""Memory of a card that takes the batches of the sizes; another one gets half of their rows."""
SHOWN = ('jax', 'jaxlib', 'jax-cuda13-plugin', 'jax-cuda12-plugin', 'torch', 'transformers', 'flax')
HEADS, HEAD_SIZE = 12, 64
CELLS = ((64, 512, None), (16, 1024, 64), (2, 8192, None), (2, 8192, 64))
"""Rows, width and window of the attention: BERT's rows, then ModernBERT's, whose windows reach 64 places each way."""
TINY_CELLS = ((2, 64, None), (2, 128, 16))  # too short for one kernel; a window, which the other has not
CHECKED_HEADS = 2  # the check keeps all scores in float32: fewer heads, for the longest rows
PEERS = ('hf_compiled', 'hf_packed_masked', 'hf_varlen_compiled', 'hf_varlen', 'hf_padded')
TINY_PEERS = ('hf_packed_masked', 'hf_varlen')  # a compiler takes half a minute
PATIENCE = 90  # seconds that a peer has to start, compile and make its first steps, and for each answer
COSTS, KEPT_COSTS, TRACED = 3, 40, 3
CONTAINERS = ('while', 'call', 'conditional')
"""Operations that only run others: their time counts there."""
STRUCTURE = ('while', 'body', 'closed_call', 'checkpoint', 'eval_jaxpr')
"""Steps of an operation's path that are not parts of the model."""
RESUMED_AFTER = 3
WHOLE, RESUMED = 'whole', 'resumed'


@dataclasses.dataclass(frozen=True)
class Place:
    """Where a part is measured: `work` is a folder for all parts of a command; `quick`: tiny shapes, on the CPU."""

    work: Path
    quick: bool

    @property
    def slow(self) -> int:
        """Times the limits of a card: those of a CPU with tiny shapes, which may be busy."""
        return 8 if self.quick else 1

    @property
    def rounds(self) -> int:
        return 3 if self.quick else 7

    def peer(self, name: str, command: Sequence[str], environment: Mapping[str, str]) -> Variant:
        """A process that shares the card; what it prints goes into a file."""
        return Variant(name, command, environment, PATIENCE * self.slow, self.work / f'{name}.log')

    @property
    def steps(self) -> int:
        """Optimiser steps between two looks at the clock: the device is waited for at their end."""
        return 2 if self.quick else 10

    def sized(self, name: str) -> str:
        """The size of that name here."""
        return TINY * self.quick + name

    def present(self) -> Any:
        """What jax computes on; SystemExit where that is the CPU though a card was meant."""
        from bioptimus_jax.hosts.devices import present

        here = present()
        if here.platform == 'cpu' and not self.quick:
            raise SystemExit('jax computes on the CPU here; `bioptimus doctor` says what is missing')
        return here

    def rows(self, name: str) -> tuple[Any, Path]:
        """The shape of that name, and the folder of its rows, made by the first part that needs them."""
        from workload import prepare, sized

        shape = sized(self.sized(name))
        here = self.present()
        if here.platform != 'cpu' and here.memory_bytes < ROOMY:
            shape = dataclasses.replace(shape, batch_rows=shape.batch_rows // 2)
        folder = self.work / f'rows-{shape.row_pieces}'
        if not (made := folder / 'made').is_file():
            folder.mkdir(parents=True, exist_ok=True)
            prepare(shape, folder, real=False)
            made.touch()
        return shape, folder


def row(what: str, found: str, **numbers: Any) -> Row:
    return {'what': what, 'found': found, **numbers}


def timed(call: Callable[[], Any], rounds: int = 5, repeats: int = 5) -> float:
    """Median seconds of a call, the device waited for after so many of them; the first ones compile and warm up."""
    import jax

    for _ in range(2):
        jax.block_until_ready(call())
    seconds = []
    for _ in range(rounds):
        started = time.perf_counter()
        made = [call() for _ in range(repeats)][-1]
        jax.block_until_ready(made)
        seconds.append((time.perf_counter() - started) / repeats)
    return statistics.median(seconds)


def machine(place: Place) -> Iterator[Row]:
    """Devices, versions, the rate of a copy and of a matrix product."""
    import platform

    import jax
    import jax.numpy as jnp

    from bioptimus_jax.hosts.devices import peak_of_kind
    from bioptimus_jax.hosts.hardware import accelerators
    from bioptimus_jax.start.doctor import product_rate

    here, versions = place.present(), {'Python': platform.python_version(), **versions_of(*SHOWN)}
    yield row('device', f'{here}, {here.memory_bytes / GIB:.0f} GiB; {accelerators() or "no accelerator"}')
    compiler = jax.devices()[0].client.platform_version.splitlines()[0]
    yield row('versions', ', '.join(f'{name} {v}' for name, v in versions.items()), compiler=compiler)
    values = jnp.arange(2**20 if place.quick else 2**28, dtype=jnp.float32)
    one_more = jax.jit(lambda x: x + 1)
    rate = 2 * values.nbytes / timed(functools.partial(one_more, values))
    del values
    yield row('copy', f'{rate / 1e9:,.0f} GB/s, read and written', bytes_per_second=rate)
    rate, kind, side = product_rate(here.platform)
    peak = peak_of_kind(here.kind)
    share = f', {rate / peak:.0%} of {peak / 1e12:.0f}' if peak else ''
    yield row(
        'matrix product',
        f'{rate / 1e12:,.2f} TFLOP/s in {kind}, {side:,} square{share}',
        flops_per_second=rate,
    )


def kernels(place: Place) -> Iterator[Row]:
    """Each attention kernel's check and its time beside plain attention, forward and with the backward pass."""
    from bioptimus_jax.model.attention import attend
    from bioptimus_jax.pretrain.backends import KERNELS, PLATFORM_OF_KERNEL, WITHOUT_WINDOWS

    platform = place.present().platform
    of_platform = {n: k for n, k in KERNELS.items() if place.quick or PLATFORM_OF_KERNEL.get(n) == platform}
    for rows, width, window in TINY_CELLS if place.quick else CELLS:
        what = f'{rows} x {width}' + f', window {window}' * (window is not None)
        seconds = {}
        for name, kernel in {'plain': attend, **of_platform}.items():
            if window is not None and name in WITHOUT_WINDOWS:
                yield row(f'{name} {what}', 'has no windows; plain attention does them')
                continue
            if place.quick and name != 'plain':
                if 'interpret' not in inspect.signature(kernel).parameters:
                    yield row(f'{name} {what}', 'runs on its own platform alone')
                    continue
                kernel = functools.partial(kernel, interpret=True)
            try:
                flaw = None if name == 'plain' else _flaw(kernel, width, window, place)
                forward, both = seconds[name] = _passes(kernel, rows, width, window, place)
            except (
                Exception
            ) as error:  # of compilers and drivers, which have no common type; the next one may run
                yield row(f'{name} {what}', f'cannot run: {_first_line(error)}', failed=True)
                continue
            found = f'forward {1e3 * forward:.2f} ms, with backward {1e3 * both:.2f} ms'
            if 'plain' in seconds and name != 'plain':
                faster = seconds['plain'][1] / both
                found += f', {faster:.2f} times plain; {f"WRONG: {flaw}" if flaw else "passes its check"}'
            yield row(f'{name} {what}', found, forward=forward, with_backward=both, flaw=flaw)


def _flaw(kernel: Any, width: int, window: int | None, place: Place) -> str | None:
    """What the start-up check finds wrong, with the shapes and types of a run."""
    from bioptimus_jax.pretrain.backends import Sharded, find_flaw
    from bioptimus_jax.pretrain.sharding import make_mesh

    heads, size, kind = (2, 16, 'float32') if place.quick else (HEADS, HEAD_SIZE, 'bfloat16')
    return find_flaw(
        Sharded(kernel, make_mesh(1)), heads if width <= 1024 else CHECKED_HEADS, size, width, kind, window
    )


def _passes(attention: Any, rows: int, width: int, window: int | None, place: Place) -> tuple[float, float]:
    """Seconds of the forward pass, and of both, on documents as long as abstracts."""
    import jax
    import jax.numpy as jnp
    from pubmed import LENGTHS

    from bioptimus_jax.model.attention import Ranges

    draw, shares, lengths = random.Random(0), *zip(*LENGTHS, strict=True)
    ends = [int(np.interp(draw.random(), shares, lengths)) for _ in range(width // 100 + 2)]
    segments_BxL = np.tile(np.searchsorted(np.cumsum(ends), np.arange(width), 'right') + 1, (rows, 1))
    lengths_BxG = jnp.tile(np.bincount(segments_BxL[0])[1:].astype(np.int32), (rows, 1))
    shape, kind = (rows, width, *((2, 16) if place.quick else (HEADS, HEAD_SIZE))), jnp.bfloat16
    drawn = jax.random.normal(jax.random.key(0), (4, *shape)).astype(jnp.float32 if place.quick else kind)
    segments, inputs, weights = jnp.asarray(segments_BxL), tuple(drawn[:3]), drawn[3]

    def attended(query: Any, key: Any, value: Any) -> Any:
        return attention(query, key, value, Ranges.of(segments, window, lengths_BxG))

    forward = jax.jit(attended)

    @jax.jit
    def both(*inputs: Any) -> Any:
        output, pull = jax.vjp(attended, *inputs)
        return output, pull(weights)

    repeats = 1 if place.quick else 5
    first, second = (timed(functools.partial(f, *inputs), place.rounds, repeats) for f in (forward, both))
    return first, second


def _first_line(error: BaseException) -> str:
    return f'{type(error).__name__}: {(str(error).strip().splitlines() or [""])[0][:160]}'


def training(name: str, place: Place) -> Iterator[Row]:
    """The loop's own step: useful tokens a second, MFU, memory beside its estimate, time of the host."""
    import jax
    from pretrain import Training

    from bioptimus_jax.hosts.devices import peak_of_kind
    from bioptimus_jax.pretrain.compiled import planned_bytes
    from bioptimus_jax.pretrain.memory import step_memory

    here, (shape, folder) = place.present(), place.rows(name)
    ours = Training.begin(shape, folder)
    attention = ours.objective.compute.attention
    compiled, compile_seconds = ours.compiled()
    needed = planned_bytes(compiled)
    del compiled
    ours.steps(3)
    rounds = [Here(name, lambda: ours.steps(place.steps)).step() for _ in range(place.rounds)]
    speeds, flops = ([r[key] / r['seconds'] for r in rounds] for key in ('useful', 'flops'))
    speed, peak = statistics.median(speeds), peak_of_kind(here.kind)
    mfu = statistics.median(flops) / peak if peak else None
    yield row(
        f'{shape.batch_rows} x {shape.row_pieces}',
        f'{speed:,.0f} useful tokens/s ({min(speeds):,.0f}-{max(speeds):,.0f}), '
        f'MFU {f"{mfu:.1%}" if mfu else "unknown here"}, attention {attention}',
        useful_tokens_per_second=speed,
        mfu=mfu,
        attention=attention,
        shape=vars(shape),
    )
    host, call, wait = (statistics.median(r[k] for r in rounds) for k in ('host_ms', 'call_ms', 'input_wait'))
    step = 1e3 * statistics.median(r['seconds'] for r in rounds) / place.steps
    yield row(
        'time',
        f'{step:,.1f} ms a step; host {host:.2f} ms, call {call:.2f} ms, input wait {wait:.1%}; compiled in '
        f'{compile_seconds:.0f} s',
        step_ms=step,
        host_ms=host,
        call_ms=call,
        input_wait=wait,
        compile_seconds=compile_seconds,
    )
    estimate = step_memory(ours.objective.config, ours.objective.architecture, here.platform, 1).peak
    used = (jax.devices()[0].memory_stats() or {}).get('peak_bytes_in_use')
    measured = used or needed
    yield row(
        'memory',
        f'{measured / GIB:,.2f} GiB {"at most in use" if used else "by the compiler"}, estimated '
        f'{estimate / GIB:,.2f} ({estimate / measured:.2f} of it)',
        peak_bytes=used,
        compiled_bytes=needed,
        estimated_bytes=estimate,
    )


def peers(place: Place) -> Iterator[Row]:
    """Our step and transformers' in PyTorch, a round of steps each in random order, one peer after the other."""
    from pretrain import GATE, OURS, Training, variant_command

    (shape, folder), size = place.rows('base-512'), place.sized('base-512')
    training = Training.begin(shape, folder)
    training.steps(3)
    ours, best = Here(OURS, lambda: training.steps(place.steps)), None
    for name in TINY_PEERS if place.quick else PEERS:
        command = variant_command(name, size, shape, folder, place.steps)
        try:
            peer = place.peer(name, command, ON_CPU)
            answers = interleave([ours, peer], 2 if place.quick else 5, warmups=1)
            peer.close()
        except SystemExit as error:
            yield row(name, f'cannot run: {error}', failed=True)
            continue
        speeds = {n: [r[n]['useful'] / r[n]['seconds'] for r in answers] for n in (OURS, name)}
        over, speed = ratio(speeds[OURS], speeds[name]), statistics.median(speeds[name])
        yield row(
            name,
            f'{speed:,.0f} useful tokens/s; ours / it {over["median"]:.2f} ({over["min"]:.2f}-{over["max"]:.2f})',
            useful_tokens_per_second=speed,
            ours_tokens_per_second=statistics.median(speeds[OURS]),
            ours_over_it=over,
            loss=peer.facts['loss'],
        )
        best = min(filter(None, (best, (over['median'], name))))
    if best:
        yield row('best of them', f'{best[1]}; ours / it {best[0]:.2f}', ours_over_best=best[0])
    checking = place.peer(GATE, variant_command(GATE, size, shape, folder), ON_CPU)
    gaps = checking.step()
    checking.close()
    off = {name: gaps[name] for name in ('loss', 'gradient')}
    found = f'loss differs by {off["loss"]:.1g}, gradients by {off["gradient"]:.1g}, in float32 on the CPU'
    yield row('same weights', f'{"" if max(off.values()) < 1e-4 else "WRONG: "}{found}', **off)


def profile(place: Place) -> Iterator[Row]:
    """The operations that take most of the device's time, by the trace of some steps."""
    import jax
    from pretrain import Training

    from bioptimus_jax.pretrain.watch import Profiler

    training = Training.begin(*place.rows('base-512'))
    compiled, _ = training.compiled()
    training.steps(3)
    folder = place.work / f'trace-{os.getpid()}'
    profiler = Profiler((1, TRACED), folder)
    profiler.before(1)
    started = time.perf_counter()
    training.steps(TRACED)
    wall = time.perf_counter() - started
    profiler.after(TRACED, training.state)
    try:
        reader: Any = getattr(jax.profiler, 'ProfileData')  # noqa: B009 - newer than some versions of jax
        [file] = folder.rglob('*.xplane.pb')
        seconds = seconds_of_operations(reader.from_file(str(file)).planes, origins(compiled.as_text()))
        if not seconds:
            raise ValueError('it names no operation')
    except Exception as error:  # a format that changes between versions
        costs = compiled.cost_analysis()
        flops, moved = costs.get('flops', 0), costs.get('bytes accessed', 0)
        found = f'{flops / 1e9:,.0f} GFLOP and {moved / 1e9:,.1f} GB a step by the compiler'
        yield row('cost analysis', f'{found}; the trace cannot be read ({_first_line(error)})', flops=flops)
        return
    total = sum(seconds.values())
    for place_of, (name, taken) in enumerate(seconds.most_common(COSTS), 1):
        yield row(f'{place_of}. {taken / total:.1%}', name, share=taken / total, ms=1e3 * taken / TRACED)
    yield row(
        'trace',
        f'{1e3 * total / TRACED:,.1f} ms of operations a step in {1e3 * wall / TRACED:,.1f} ms',
        operations_ms=1e3 * total / TRACED,
        ms_of_operations={name: 1e3 * taken / TRACED for name, taken in seconds.most_common(KEPT_COSTS)},
    )


def origins(text: str) -> dict[str, str]:
    """Operation -> where in the model it comes from, of a compiled program's text; layers are not told apart.

    Of one that was merged of others it is that of the last; where the compiler has forgotten it, kind and shape.
    """
    found: dict[str, str] = {}
    called: dict[str, str] = {}
    last_of: dict[str, str] = {}  # computation -> the origin of what it ends with
    computation = ''
    for line in text.splitlines():
        if begun := re.match(r'(?:ENTRY )?%?([\w.-]+) \(.*\{$', line):
            computation = begun[1]
        elif made := re.match(r'\s+(?:ROOT )?%?([\w.-]+) = ', line):
            where, calls = re.search(r'op_name="([^"]+)"', line), re.search(r'calls=%?([\w.-]+)', line)
            plain = re.search(r' = (\w+\[[\d,]*\])\S* ([\w-]+)\(', line)
            if calls and not where:
                called[made[1]] = calls[1]
            elif where or plain:
                words = origin(where[1]) if where else f'{plain[2]} {plain[1]}' if plain else ''
                found[made[1]] = last_of[computation] = words
    return {**{name: last_of[inner] for name, inner in called.items() if inner in last_of}, **found}


def origin(path: str) -> str:
    """The origin in words, from what XLA remembers of an operation: of several that were merged, the first."""
    first = path.partition(';')[0]
    way = 'backward ' * ('transpose(' in first) or 'forward ' * ('jvp(' in first)
    plain = re.sub(r'\w+\(|\)|<lambda>', '', first).split('/')
    return way + '/'.join(x for x in plain if x and x not in STRUCTURE)


def seconds_of_operations(planes: Any, known: Mapping[str, str]) -> collections.Counter[str]:
    """Seconds of the first device by the origin of its operations, or by the kernel's name where that is unknown."""
    planes = {plane.name: list(plane.lines) for plane in planes}
    devices = sorted(name for name in planes if name.startswith('/device:') and planes[name])
    lines = planes[devices[0]] if devices else [x for name, x in planes.items() if 'CPU' in name for x in x]
    streams = [line for line in lines if line.name.startswith('Stream')]  # beside them are sums of the same
    seconds: collections.Counter[str] = collections.Counter()
    for line in streams or lines:
        for event in line.events:
            operation = str(dict(event.stats).get('hlo_op', ''))
            if (operation or streams) and not operation.startswith(CONTAINERS):
                name = known.get(operation) or (event.name if streams else operation)
                seconds[name] += event.duration_ns / 1e9
    return seconds


def resume(place: Place) -> Iterator[Row]:
    """A run that was resumed with `runtime.deterministic` against one that went through; what the setting costs."""
    from pretrain import Training

    from bioptimus_jax.cli.command import DETERMINISTIC

    flags = {'XLA_FLAGS': f'{os.environ.get("XLA_FLAGS", "")} {DETERMINISTIC}'.strip()}

    def begin(role: str) -> Variant:
        command = [str(Path(__file__).with_name('gpu.py')), f'--work={place.work}', f'--role={role}']
        return place.peer(role, [*command, *['--quick'] * place.quick], flags)

    own = Training.begin(*place.rows('base-512'))
    own.steps(3)
    plain, whole = Here('plain', functools.partial(own.steps, place.steps)), begin(WHOLE)
    answers = interleave([whole, plain], 2 if place.quick else 5, warmups=1)
    whole.close()
    cost = ratio(*([r[name]['seconds'] for r in answers] for name in (WHOLE, 'plain')))
    yield row(
        'cost of deterministic',
        f'{cost["median"] - 1:+.1%} of a step ({cost["min"] - 1:+.1%} to {cost["max"] - 1:+.1%})',
        over_plain=cost,
    )
    del own, plain
    resumed = begin(RESUMED)
    resumed.close()
    sums = [variant.facts['sums'] for variant in (whole, resumed)]
    differ = [name for name in sums[0] if sums[0][name] != sums[1].get(name)]
    found = f'{len(sums[0])} arrays after {2 * RESUMED_AFTER} steps, resumed after {RESUMED_AFTER}'
    yield row(
        'resumed',
        f'{found}: {f"{len(differ)} DIFFER, {differ[0]} first" if differ else "bit-identical"}',
        differ=differ,
        sums=sums[0],
    )


def run_role(role: str, place: Place) -> None:
    """A process of `resume`: it trains to the same step, saving on the way, or going on from what was saved."""
    from pretrain import Training

    from bioptimus_jax.pretrain.checkpoint import Checkpoints, checksums

    # Of two processes each would measure attention for itself, and might choose another one.
    attention = 'xla' if place.quick else 'pallas_gpu'
    shape, folder = place.rows('base-512')
    training = Training.begin(shape, folder, deterministic=True, attention=attention)
    checkpoints = Checkpoints(place.work, 1, ())
    if role == WHOLE:
        training.steps(RESUMED_AFTER)
        checkpoints.save(RESUMED_AFTER, training.state)
        checkpoints.wait()
    else:
        found = checkpoints.restore(training.state)
        assert found
        training.go_on(*found)
    checkpoints.close()
    training.steps(RESUMED_AFTER)
    serve(lambda: training.steps(place.steps), {'sums': checksums(training.state)})


def ner(place: Place) -> Iterator[Row]:
    """Fine-tuning and prediction of an NER set against transformers' run_ner."""
    from finetuning import OURS, SPEEDS
    from ner import PEER, compare

    from bioptimus_jax.finetuning.cards import torch_device

    if torch_device() == 'cpu' and not place.quick:
        raise SystemExit('PyTorch computes on the CPU here; `bioptimus doctor` says what is missing')
    _, table, _ = compare(place.sized('card'), _own_folder(place, 'ner'), (PEER,), 1 if place.quick else 3)
    for speed in SPEEDS:
        ours, theirs = (table[name][speed] for name in (OURS, PEER))
        over = table[PEER]['ours_over_it'][speed]
        yield row(
            speed.partition('_')[0],
            f'{ours:,.0f} sentences/s, {PEER} {theirs:,.0f}; ours / it {over["median"]:.2f} '
            f'({over["min"]:.2f}-{over["max"]:.2f})',
            ours=ours,
            theirs=theirs,
            ours_over_it=over,
        )


def surgery(place: Place) -> Iterator[Row]:
    """Contexts encoded a second, against transformers in PyTorch, in batches of texts of equal length."""
    import surgery_steps as steps
    from surgery import compare

    place.present()
    facts, table, _, gaps = compare(
        place.sized('card'), _own_folder(place, 'surgery'), (steps.BATCHED,), 2 if place.quick else 5
    )
    ours, theirs = (table[name]['contexts_per_second'] for name in (steps.OURS, steps.BATCHED))
    over = table[steps.BATCHED]['ours_over_it']
    yield row(
        'contexts',
        f'{ours:,.0f} contexts/s of {facts["pieces"] / facts["contexts"]:.0f} pieces, PyTorch {theirs:,.0f}; ours / it '
        f'{over["median"]:.2f} ({over["min"]:.2f}-{over["max"]:.2f})',
        ours=ours,
        theirs=theirs,
        ours_over_it=over,
        largest_difference=max(gaps.values()),
    )


def _own_folder(place: Place, name: str) -> Path:
    folder = place.work / f'{name}-{os.getpid()}'
    folder.mkdir(parents=True)
    return folder


@dataclasses.dataclass(frozen=True)
class Part:
    """`seconds`: its limit, start and compilation included. `rows`: the function that yields its rows."""

    name: str
    seconds: int
    what: str
    rows: Callable[[Place], Iterator[Row]]


PARTS: Sequence[Part] = (
    Part('machine', 60, 'device, versions, rates of a copy and a matrix product', machine),
    Part('kernels', 150, 'attention kernels: check and time beside plain attention', kernels),
    Part('base-512', 100, 'train step of a base model, rows of 512', functools.partial(training, 'base-512')),
    Part('peers', 270, 'the same in transformers with PyTorch: packed, compiled, padded', peers),
    Part('profile', 60, 'the three largest costs of that step', profile),
    Part('large-512', 90, 'train step of a large model', functools.partial(training, 'large-512')),
    Part('base-128', 75, 'train step of a base model, rows of 128', functools.partial(training, 'base-128')),
    Part('resume', 120, 'bit-identical resume with runtime.deterministic, and its cost', resume),
    Part('ner', 90, 'NER fine-tuning against run_ner', ner),
    Part('surgery', 90, 'contexts of new tokens encoded a second', surgery),
    Part(
        'large-128', 90, 'train step of a large model, rows of 128', functools.partial(training, 'large-128')
    ),
)
