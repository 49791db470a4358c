"""The verb `plan`: against hand calculations, the real curriculum, the real parameters and the compiled step."""

import ast
import dataclasses
import json
import re
from pathlib import Path
from types import SimpleNamespace

import jax
import jax.numpy as jnp
import pytest
from safetensors.numpy import load_file, save_file
from toy_attention import skip_unless_lowered
from toy_commands import document
from toy_compiler import QUICK, known_options
from toy_measures import manifest
from toy_sets import save_encoder

from bioptimus_jax.cli import main as cli
from bioptimus_jax.errors import ConfigError
from bioptimus_jax.experiment import config
from bioptimus_jax.experiment.schema import Experiment
from bioptimus_jax.hosts import devices
from bioptimus_jax.hosts.config import Runtime
from bioptimus_jax.hosts.devices import DEVICES
from bioptimus_jax.model.config import FAMILIES
from bioptimus_jax.model.families.bert import Bert
from bioptimus_jax.model.families.electra import Electra
from bioptimus_jax.model.families.eurobert import EuroBert
from bioptimus_jax.model.families.modernbert import ModernBert
from bioptimus_jax.model.families.ultrabert import UltraBert
from bioptimus_jax.model.tensors import write_folder
from bioptimus_jax.pretrain import backends, compiled, curriculum
from bioptimus_jax.pretrain.config import Phase, Pretrain
from bioptimus_jax.pretrain.disk import disk_space
from bioptimus_jax.pretrain.memory import rows_of_a_device, step_memory
from bioptimus_jax.pretrain.objectives import distil
from bioptimus_jax.pretrain.plan import (
    Assumptions,
    architecture_of,
    make_plan,
    parameter_counts,
    planned_architecture,
)
from bioptimus_jax.pretrain.shape import RowCounts
from bioptimus_jax.pretrain.sharding import make_mesh
from bioptimus_jax.rows.config import Rows
from bioptimus_jax.run.folder import Run
from bioptimus_jax.start import speeds
from bioptimus_jax.start.speeds import Speeds
from bioptimus_jax.storage.files import write_json
from bioptimus_jax.tokenizer.kinds.wordpiece import SPECIAL_TOKENS, make

CONFIGS = Path(__file__).resolve().parents[1] / 'configs'


def experiment(name, **changes):
    loaded = config.load(name)
    for dotted, text in changes.items():
        config.override(loaded, dotted, text)
    return Experiment.from_config(loaded, paths=False)


@pytest.fixture(autouse=True)
def nothing_read(monkeypatch):
    """Nothing is read of the configurations' data, so nothing need be there."""
    monkeypatch.delenv('BIOPTIMUS_DATA', raising=False)


@pytest.fixture(scope='module')
def paper():
    return make_plan(experiment('bioptimus'), Assumptions())


def test_the_papers_run_by_hand(paper):
    # Words to train on: 1.8e9 less 1 % held out = 1.782e9; at 1.31 pieces each 2.334e9 pieces an epoch.
    # A batch: 256 rows x 512 x .92 = 120,586 pieces; an epoch 2.334e9 / 120,586 = 19,359 steps; 34 epochs: 658,200.
    assert paper.steps == pytest.approx(658_200, rel=0.05)
    assert [p.steps / 19_359 for p in paper.phases] == pytest.approx([7, 9, 9, 9], rel=1e-3)
    assert paper.pieces == pytest.approx(34 * 2.334e9, rel=0.05)
    # A piece, forward: 12 layers x (24 x 768^2 + 4 x 512 x 768) = 188.7e6; predicted with a share of .15:
    # .15 x (2 x 768^2 + 2 x 768 x 30,592) = 7.2e6, of .20: 9.6e6. Left out of the last layer, behind its attention,
    # .85 x 18 x 768^2 = 9.0e6, and 8.5e6. Times three: .561e9 and .570e9.
    assert [p.flops_per_piece for p in paper.phases] == pytest.approx(
        [0.561e9, 0.561e9, 0.570e9, 0.570e9], 2e-3
    )
    # 16 of 34 epochs at .561e9 and 18 at .570e9: 79.4e9 pieces x .5656e9 = 44.9e18 FLOPs.
    assert paper.flops == pytest.approx(44.9e18, rel=0.05)
    # At .35 of 312e12 one A100 does 109.2e12 a second: 44.9e18 / 109.2e12 / 3600 = 114.2 hours, eight of them 14.3.
    assert paper.hours(DEVICES['a100-80'], 8) == pytest.approx(14.3, rel=0.05)
    assert paper.hours(DEVICES['h200'], 1) == pytest.approx(36.0, rel=0.05)


def test_the_papers_memory_by_hand(paper):
    # 109.57e6 parameters of 4 bytes: .408 GiB; moments twice that. 256 rows on 8 devices: 32 rows of 512.
    memory = step_memory(paper.experiment, paper.architecture, 'gpu', 8)
    assert memory.parameters == pytest.approx(0.4383e9, rel=1e-3)
    assert memory.optimizer == 2 * memory.parameters
    # A state: 32 x 512 x 768 = 12.58e6 values, 8 a layer of 2 bytes: .201e9. Feed-forward: two of 4 x 12.58e6 values
    # of 2 bytes: .201e9. Attention: 32 x 12 x 512^2 = 100.7e6 values of 4, 2, 2 and 1 byte: .906e9.
    # Twelve layers of 1.309e9, and six states in float32 beside them; of the last one four of the states and what is
    # of the feed-forward are for 120 of 512 pieces alone.
    assert memory.activations == pytest.approx(12 * 1.309e9 + 0.302e9 - 392 / 512 * 0.302e9, rel=1e-3)


def test_the_configs_docstring_says_what_the_verb_prints(paper):
    said = ast.get_docstring(ast.parse((CONFIGS / 'bioptimus.py').read_text('utf-8'))).replace('\n', ' ')
    assert f'{paper.steps:,} steps' in said
    assert f'{paper.pieces / 1e9:.0f} billion pieces, {paper.flops / 1e18:.0f} EFLOP' in said
    peak = step_memory(paper.experiment, paper.architecture, 'gpu', 8).peak
    assert f'{peak / devices.GIB:.1f} GiB' in said
    shown = {
        'A100': 'a100-80',
        'H100 and H200': 'h200',
        'TPU v4': 'tpu-v4',
        'v5e': 'tpu-v5e',
        'v5p': 'tpu-v5p',
    }
    for text, name in shown.items():
        assert f'{text} {paper.hours(DEVICES[name], 1):.1f}' in said


def test_parameters_by_hand_and_by_the_model(paper):
    # BERT-base with its masked-language-model head has 109,514,298; padding adds 70 rows of 768 and a bias each.
    counts = parameter_counts(paper.architecture.shapes())
    assert sum(counts.values()) == 109_514_298 + 70 * 769
    for shape in (
        Bert(100, 16, 2, 2, 32, 16),
        Bert(1000, 24, 3, 4, 40, 64),
        Bert(129, 8, 1, 1, 8, 9),
    ):
        made = jax.tree.leaves(shape.initial_parameters(jax.random.key(0)))
        assert sum(parameter_counts(shape.shapes()).values()) == sum(leaf.size for leaf in made)


def test_the_shape_is_that_of_a_source_that_is_here(tmp_path):
    shape = {'hidden_size': 16, 'num_hidden_layers': 3, 'num_attention_heads': 2, 'intermediate_size': 40}
    shape |= {'model_type': 'bert', 'vocab_size': 77, 'max_position_embeddings': 64}
    (tmp_path / 'config.json').write_text(json.dumps(shape))
    (tmp_path / 'vocab.txt').write_text('\n'.join([*SPECIAL_TOKENS, 'word']))

    def entries(**changes):
        wanted = experiment('bioptimus', **{'source.path': str(tmp_path), 'vocab.size': '1000', **changes})
        found, shape_from = planned_architecture(wanted)
        assert (found.hidden, found.layers, found.intermediate) == (16, 3, 40)
        assert (shape_from, found.attention_dropout) == (str(tmp_path), wanted.model.attention_dropout)
        return found.vocab_size

    assert entries() == 1000
    assert entries(**{'vocab.kind': 'source'}) == 77
    assert 77 < entries(**{'vocab.kind': 'append'}) < 1077
    assert entries(**{'vocab.kind': 'file', 'vocab.file': str(tmp_path / 'vocab.txt')}) == 6
    # A model that surgery has made has the new entries.
    run = Run(tmp_path / 'run', experiment('bioptimus', **{'vocab.kind': 'append'}), quiet=True)
    write_json(run.workdir / 'surgery/model/config.json', shape | {'vocab_size': 500})
    write_json(run.workdir / 'surgery/manifest.json', manifest('surgery', {}))
    assert architecture_of(run.config, run.workdir / 'surgery').vocab_size == 500


def test_the_demo_takes_the_steps_of_its_curriculum():
    demo = experiment('demo')
    planned = make_plan(demo, Assumptions())
    real = curriculum.make_schedule(demo, RowCounts(5630, 521_910, 372_111))  # rows of a real run
    assert [(p.name, p.steps) for p in planned.phases] == [(s.name, s.stop - s.start) for s in real]
    assert planned.steps == 600
    assert planned.pieces == pytest.approx(889_862, rel=0.03)  # what that run counted, with rows .966 full


@pytest.mark.parametrize(('unit', 'duration'), [('epochs', 0.5), ('tokens', 3e7), ('words', 2e7)])
def test_durations_become_the_steps_of_the_run(unit, duration):
    changes = {
        'phases': '0.2',
        'phase.0.2.duration_unit': unit,
        'phase.0.2.duration': str(duration),
        'corpus.heldout_fraction': '0',
    }
    assumed = Assumptions(words=4e7, pieces_per_word=1.5, fill=0.5)
    planned = make_plan(experiment('bioptimus', **changes), assumed)
    pieces = {'epochs': duration * 6e7, 'tokens': duration, 'words': duration * 1.5}[unit]
    assert planned.steps == pytest.approx(pieces / (256 * 512 * 0.5), abs=1)
    assert planned.pieces == pytest.approx(pieces, rel=2e-3)


DebertaV2 = FAMILIES.load('deberta-v2')
MOST_TOKENS = 8192
"""Tokens of a vocabulary: none of the step's shapes is of it, but that of the model."""
FEW = Bert(8192, 128, 1, 2, 512, 64)
SHAPES = {
    'unrolled': (Bert(2048, 128, 2, 4, 512, 256), 8, 256, {}, {}),
    'scanned': (
        Bert(512, 64, 6, 2, 256, 128),
        16,
        128,
        {'remat': 'dots', 'scan_layers': 'yes'},
        {},
    ),
    'scanned, nothing recomputed': (
        Bert(512, 64, 6, 4, 256, 128),
        16,
        128,
        {'remat': 'none', 'scan_layers': 'yes'},
        {},
    ),
    'no dropout': (Bert(512, 64, 3, 4, 256, 128, attention_dropout=0.0), 16, 128, {}, {}),
    # A loop over three layers behind one that is alone in its kind.
    'windows': (
        ModernBert(1024, 128, 7, 2, 192, 512, attention_dropout=0.0),
        8,
        256,
        {'remat': 'dots', 'scan_layers': 'yes'},
        {},
    ),
    'grouped heads': (EuroBert(512, 128, 2, 4, 512, 256, key_heads=2), 8, 256, {}, {}),
    'windows and grouped heads': (
        UltraBert(512, 64, 6, 2, 256, 128, 0.1, 0.0, key_heads=1, sliding_window=16, prediction_head=64),
        16,
        128,
        {'remat': 'dots', 'scan_layers': 'yes'},
        {},
    ),
    'disentangled attention': (DebertaV2(512, 64, 2, 4, 256, 256, buckets=64), 8, 256, {}, {}),
    'two encoders': (Electra(2048, 128, 1, 4, 512, 256), 8, 256, {}, {'objective': 'rtd'}),
    'vocabulary': (FEW, 8, 64, {}, {'micro_batches': 2}),
    'two passes': (FEW, 8, 64, {}, {'micro_batches': 2, 'objective': 'adversarial'}),
    'every piece': (FEW, 8, 64, {}, {'micro_batches': 2, 'objective': 'causal'}),
    'a teacher': (FEW, 8, 64, {}, {'micro_batches': 2, 'objective': 'distil'}),
    'pairs': (FEW, 8, 64, {}, {'micro_batches': 2, 'objective': 'nsp'}),
    'an adapter': (FEW, 8, 64, {}, {'micro_batches': 2, 'lora_rank': 4}),
    'an adapter alone, scanned': (
        Bert(512, 64, 6, 2, 256, 128),
        16,
        128,
        {'remat': 'dots', 'scan_layers': 'yes'},
        {'lora_rank': 4, 'lora_embeddings': 'none'},
    ),
}


# Each has what others have; windows and grouped heads are those of one, and a teacher is a second encoder. What is
# planned for a second pass is twice the same numbers.
SLOW = (
    *('unrolled', 'scanned', 'scanned, nothing recomputed', 'no dropout', 'windows', 'grouped heads'),
    *('vocabulary', 'pairs', 'an adapter alone, scanned'),
    *('two encoders', 'two passes'),
)


@pytest.mark.parametrize(
    'name', [pytest.param(name, marks=[pytest.mark.slow] * (name in SLOW)) for name in SHAPES]
)
def test_memory_against_the_analysis_of_the_compiled_step(name, tmp_path):
    # XLA:CPU's analysis: arguments (state, batch, table) and temporaries; outputs lie in the donated state. The machine
    # code of tests is poorer than that of users; where arrays lie is decided before, and is the same (measured).
    architecture, batch_rows, length, runtime, pretrain = SHAPES[name]
    wanted = dataclasses.replace(
        Experiment(),
        rows=Rows(
            row_pieces=length, max_document_pieces=length, layout='pairs' * (name == 'pairs') or 'documents'
        ),
        pretrain=Pretrain(batch_rows=batch_rows, **pretrain),
        runtime=Runtime(devices=1, **runtime),
    )
    if name == 'a teacher':
        settings = distil.Settings(teacher=str(tmp_path))
        wanted = dataclasses.replace(wanted, objective={'distil': settings})
        (tmp_path / 'vocab.txt').write_text('\n'.join(known_of(architecture).tokens))
        teacher = Bert(architecture.vocab_size, 256, 3, 4, 512, length).padded_with(0)
        write_folder(tmp_path, teacher, teacher.initial_parameters(jax.random.key(0)), tmp_path)
    step = traced_step(wanted, architecture, make_mesh(1)).lower().compile()
    found = step.memory_analysis()
    assert found.alias_size_in_bytes == pytest.approx(found.output_size_in_bytes, rel=0.01)
    measured = compiled.planned_bytes(step)
    planned = step_memory(wanted, architecture, 'cpu', 1).peak
    # From 0.11 on jaxlib holds a quarter less in the loop over windows.
    above = 0.3 if 'windows' in name and 'xla_cpu_use_fusion_emitters' not in QUICK else 0.15
    assert 0.85 * measured < planned < (1 + above) * measured


def test_a_sharded_state_takes_on_a_device_what_the_compiled_step_says():
    """The state on 8 devices: parameters and moments to within biases and norms, which are whole, and the peak beside
    them."""
    architecture = Bert(2048, 128, 1, 4, 512, 128)
    wanted = dataclasses.replace(
        Experiment(),
        rows=Rows(row_pieces=128, max_document_pieces=128),
        pretrain=Pretrain(batch_rows=64),
        runtime=Runtime(devices=8, fsdp=4, tensor=2),
    )
    step = traced_step(wanted, architecture, make_mesh(8, 4, 2)).lower().compile()
    planned = step_memory(wanted, architecture, 'cpu', 8)
    state = planned.parameters + planned.optimizer
    assert step.memory_analysis().alias_size_in_bytes == pytest.approx(state, rel=1e-3)
    alone = dataclasses.replace(wanted, runtime=Runtime())
    assert state < step_memory(alone, architecture, 'cpu', 1).parameters  # it had all three times over
    assert planned.peak == pytest.approx(compiled.planned_bytes(step), rel=0.15)


BASE = Bert(30522, 768, 12, 12, 3072, 512, attention_dropout=0.0)
DROPS = Bert(30522, 768, 12, 12, 3072, 512)
HALF = Bert(30522, 768, 6, 12, 3072, 512, attention_dropout=0.0)
LARGE = Bert(30522, 1024, 24, 16, 4096, 512, attention_dropout=0.0)
SHORT = ModernBert(30522, 768, 12, 12, 1152, 512, attention_dropout=0.0)
NEW = dataclasses.replace(SHORT, max_positions=1024)
LONG = ModernBert(30522, 768, 22, 12, 1152, 1024, attention_dropout=0.0)


PACKED = Runtime(attention='cudnn_packed')
UNROLLED, SCANNED = (dataclasses.replace(PACKED, scan_layers=scan, remat='none') for scan in ('no', 'yes'))


@pytest.mark.parametrize(
    ('architecture', 'rows', 'width', 'runtime', 'gib'),
    [
        (BASE, 64, 512, PACKED, 10.883),
        (BASE, 32, 512, PACKED, 6.542),
        (BASE, 32, 512, Runtime(attention='xla'), 12.365),
        (DROPS, 32, 512, Runtime(), 15.91),
        (BASE, 256, 128, PACKED, 11.573),
        (HALF, 64, 512, PACKED, 6.108),
        (LARGE, 32, 512, PACKED, 14.347),
        (NEW, 16, 1024, PACKED, 5.919),
        (LONG, 16, 1024, PACKED, 8.530),
        (LARGE, 32, 512, UNROLLED, 17.014),
        (LARGE, 32, 512, SCANNED, 26.495),
        (BASE, 64, 512, SCANNED, 17.989),
        (BASE, 32, 512, SCANNED, 9.946),
        (BASE, 256, 128, SCANNED, 18.007),
        (SHORT, 64, 512, SCANNED, 16.488),
    ],
)
def test_the_estimate_is_near_what_the_compiler_plans_for_an_h100(architecture, rows, width, runtime, gib):
    """The products are bfloat16; the numbers are XLA's own analysis of steps that it compiled for one, with jax
    0.11.2. On an H200 0.01 to 0.2 GiB more were in use."""
    wanted = dataclasses.replace(
        Experiment(),
        phases=('0.1',),
        rows=Rows(row_pieces=width, max_document_pieces=min(512, width)),
        pretrain=Pretrain(batch_rows=rows, micro_batches=1),
        runtime=runtime,
    )
    assert 0.95 < step_memory(wanted, architecture, 'gpu', 1).peak / 2**30 / gib < 1.15


NARROW = Bert(30522, 768, 12, 12, 1536, 512, attention_dropout=0.0)
LOWER = ModernBert(30522, 768, 6, 12, 1152, 512, attention_dropout=0.0)


@pytest.mark.parametrize(
    ('architecture', 'rows', 'fsdp', 'gib'),
    [
        (BASE, 256, 1, 5.330),
        (BASE, 256, 8, 4.500),
        (NARROW, 256, 1, 4.504),
        (NARROW, 256, 8, 3.847),
        (HALF, 256, 1, 3.057),
        (SHORT, 256, 1, 5.111),
        (SHORT, 128, 1, 3.041),
        (SHORT, 256, 8, 4.625),
        (LOWER, 256, 1, 2.991),
        (LOWER, 256, 8, 2.483),
    ],
)
def test_the_estimate_is_near_what_the_compiler_plans_for_tpus(architecture, rows, fsdp, gib):
    """bfloat16, splash, on 8 TPUs v5e; the numbers are libtpu's own analysis of steps that it compiled (0.0.42)."""
    wanted = dataclasses.replace(
        Experiment(),
        phases=('0.1',),
        rows=Rows(row_pieces=512, max_document_pieces=512),
        pretrain=Pretrain(batch_rows=rows, micro_batches=1),
        runtime=Runtime(fsdp=fsdp),
    )
    assert step_memory(wanted, architecture, 'tpu', 8).peak / 2**30 == pytest.approx(gib, rel=0.05)


MODERN = ModernBert(50368, 768, 22, 12, 1152, 1024, attention_dropout=0.0)
TRITON, CUDNN, MOSAIC = '__gpu$xla.gpu.triton', '__cudnn$fmhaScaleBiasSoftmax', 'tpu_custom_call'


# The last layer stands apart. Of ModernBERT a turn of the loop has a layer of either kind, and three stand before it.
# Windows are a mask for cuDNN.
@pytest.mark.parametrize(
    ('architecture', 'name', 'platform', 'call', 'number', 'scan'),
    [
        (BASE, 'pallas_gpu', 'cuda', TRITON, 6, 'yes'),
        (BASE, 'cudnn_packed', 'cuda', '__cudnn$fmhaSoftmax', 4, 'yes'),
        (MODERN, 'cudnn', 'cuda', CUDNN, 21, 'auto'),
        (MODERN, 'splash', 'tpu', MOSAIC, 10, 'auto'),  # equal layers share a function
        *(
            pytest.param(*case, marks=pytest.mark.slow)
            for case in (
                (BASE, 'splash', 'tpu', MOSAIC, 2, 'no'),  # equal layers share a function
                (MODERN, 'pallas_gpu', 'cuda', TRITON, 10, 'auto'),
                *(
                    (one, backends.PLAIN_ATTENTION, at, '', 0, 'yes')
                    for one in (BASE, MODERN)
                    for at in ('cuda', 'tpu')
                ),
            )
        ),
    ],
)
def test_the_base_step_lowers_for_the_platforms_that_are_not_here(
    architecture, name, platform, call, number, scan, monkeypatch
):
    """It is lowered as users train, in bfloat16: the last thing before the platform's own compiler, with the kernel in
    it."""
    skip_unless_lowered(name)
    # jax asks for the installed library, and for Hopper, before it lowers.
    monkeypatch.setattr('jax._src.cudnn.fused_attention_stablehlo.check_cudnn_version', lambda: 91000)
    monkeypatch.setattr(
        'jax._src.cudnn.fused_attention_stablehlo.check_compute_capability', lambda _least: True
    )
    length = architecture.max_positions
    wanted = dataclasses.replace(
        Experiment(),
        rows=Rows(row_pieces=length, max_document_pieces=length),
        pretrain=Pretrain(batch_rows=32, dtype='bfloat16'),
        runtime=Runtime(devices=1, scan_layers=scan),
    )
    mesh = make_mesh(1)
    step = traced_step(wanted, architecture, mesh, name)
    text = step.lower(lowering_platforms=(platform,)).as_text()
    calls = text.count(f'custom_call @{call}')
    # From 0.12 on equal layers share more functions: of ModernBERT's 10 calls of splash fewer are left.
    assert calls == number or (jax.__version_info__ >= (0, 12) and 0 < calls < number)


def test_arms_that_differ_in_seed_order_and_learning_rate_are_one_program():
    """One program for all of them: a sweep compiles it once."""
    architecture = Bert(512, 32, 1, 2, 64, 32)
    first, second = Phase('tokens', 0.15), Phase('words', 0.2, (1.0, 0.0, 0.0))
    plain = dataclasses.replace(
        Experiment(),
        phases=('a', 'b'),
        phase={'a': first, 'b': second},
        rows=Rows(row_pieces=32, max_document_pieces=32),
        pretrain=Pretrain(batch_rows=4),
    )
    faster = dataclasses.replace(plain.pretrain, learning_rate=1e-2)
    other = dataclasses.replace(plain, seed=5, pretrain=faster, phase={'a': second, 'b': first})
    one, two = (traced_step(arm, architecture, make_mesh(1)).lower().as_text() for arm in (plain, other))
    assert one == two


def test_the_compiler_knows_the_options_of_every_platform():
    """One that XLA has renamed would end the first step on that platform; each compiler has the names of all."""
    for wanted in backends.OPTIONS.values():
        jax.jit(jnp.sin).lower(1.0).compile(compiler_options=wanted)
    with pytest.raises(Exception, match='No such compile option'):
        jax.jit(jnp.sin).lower(1.0).compile(compiler_options={'xla_gpu_enable_triton_gem': False})


def test_jaxlib_knows_every_flag_of_xla_that_is_named_here():
    """Flags that the program, its benchmarks and pages name: one that a newer jaxlib has dropped ends the process at
    its start."""
    root = CONFIGS.parent
    files = [
        f for name in ('bioptimus_jax', 'benchmarks', 'docs', 'launch') for f in (root / name).rglob('*.*')
    ]
    texts = [f.read_text('utf-8') for f in files if f.suffix in ('.py', '.sh', '.md')]
    named = {
        name for text in texts for name in re.findall(r'xla_(?:backend|cpu|force|gpu|llvm|tpu)_\w+', text)
    }
    assert {'xla_gpu_deterministic_ops', 'xla_gpu_enable_triton_gemm', 'xla_gpu_autotune_level'} <= named
    wanted = dict.fromkeys(sorted(named), 1)
    assert known_options({**wanted, 'xla_that_never_was': 1}) == wanted
    assert known_options(wanted) == wanted


def known_of(architecture):
    size = min(architecture.vocab_size, MOST_TOKENS) - len(SPECIAL_TOKENS)
    return make([*SPECIAL_TOKENS, *(f't{n}' for n in range(size))], True)


def traced_step(wanted, architecture, mesh, attention=backends.PLAIN_ATTENTION):
    """The train step of shapes alone, split as on that mesh."""
    return compiled.traced_step(compiled.objective_for(wanted, architecture, mesh, attention), mesh, 4)


def test_splitting_parameters_and_rows_divides_their_memory(paper):
    def on(number, **runtime):
        split = dataclasses.replace(paper.experiment, runtime=Runtime(**runtime))
        return step_memory(split, paper.architecture, 'gpu', number)

    alone, copies, fsdp, tensor = on(1), on(8), on(8, fsdp=4), on(2, tensor=2)
    assert copies.parameters == alone.parameters
    assert copies.activations == pytest.approx(alone.activations / 8)
    assert fsdp.parameters == pytest.approx(alone.parameters / 4, rel=0.01)  # biases and norms stay whole
    assert tensor.parameters == pytest.approx(alone.parameters / 2, rel=0.01)
    assert alone.activations / 2 < tensor.activations < alone.activations
    halved = dataclasses.replace(paper.experiment, pretrain=Pretrain(micro_batches=2))
    assert rows_of_a_device(halved, 8) == 16
    for number, axes, message in (
        (7, {}, r'256 rows are not a multiple of the 7 devices'),
        (8, {'fsdp': 3}, 'does not divide 8 devices'),
    ):
        with pytest.raises(ConfigError, match=message):
            on(number, **axes)


def test_a_fused_kernel_and_remat_need_less(paper):
    def peak(**changes):
        return step_memory(dataclasses.replace(paper.experiment, **changes), shape, 'gpu', 8).peak

    shape = paper.architecture
    plain, dots, full = (peak(runtime=Runtime(remat=remat)) for remat in ('none', 'dots', 'full'))
    assert plain > dots > full
    shape = dataclasses.replace(shape, attention_dropout=0.0)
    assert peak() < peak(runtime=Runtime(attention='xla'))


def test_disk_by_hand(paper):
    def sizes_of(e, entries=30_522):
        sizes = {}
        for space in disk_space(e, 109_568_128, 0, entries, 1.8e9, 1.8e9, 1.31, 0.92):
            sizes.setdefault(space.stage, []).append(space.size)
        return sizes

    def changed(section, **changes):
        return dataclasses.replace(
            paper.experiment,
            **{section: dataclasses.replace(getattr(paper.experiment, section), **changes)},
        )

    sizes = sizes_of(paper.experiment)
    # Checkpoints: four phase ends, the newest two, one being written; parameters and two moments of 4 bytes each.
    assert sizes['pretrain'] == [pytest.approx(7 * 3 * 0.4383e9, rel=1e-3)]
    # 2.334e9 pieces in rows of 512, .92 full: 4.956e6 rows of 1,024 + 64 + 80 bytes, and 79,000 held-out ones.
    assert sizes['rows'] == [pytest.approx(5.88e9, rel=0.01)]
    # Texts: 1.8e9 words of 4.04 bytes; while it works, of 3.45, and 480 for each of 7.9e6 documents.
    assert sizes['corpus'] == pytest.approx([7.27e9, 10.0e9], rel=0.01)
    larger = disk_space(
        dataclasses.replace(paper.experiment, stages=('corpus',)), 1, 0, 1, 1.8e9, 6.8e9, 1.31, 0.92
    )
    assert [space.size for space in larger] == pytest.approx([7.27e9, 37.8e9], rel=0.01)
    # With a moving average there are four of a checkpoint.
    assert sizes_of(changed('pretrain', ema=0.999))['pretrain'] == [pytest.approx(7 * 4 * 0.4383e9, rel=1e-3)]
    # Of 70,000 entries rows have 2,048 + 64 + 80 bytes, whatever vocab.size is; of that 0.64 is new, or nothing.
    appended, kept = (sizes_of(changed('vocab', kind=kind), 70_000) for kind in ('append', 'source'))
    assert appended['rows'] == kept['rows'] == [pytest.approx(11.03e9, rel=0.01)]
    assert appended['contexts'] == sizes['contexts']
    assert 'contexts' not in kept


def call(capsys, *arguments):
    code = cli.main(['plan', *arguments])
    captured = capsys.readouterr()
    return code, captured.out, captured.err.strip()


def test_the_verb_prints_every_device_or_one(capsys):
    code, text, _ = call(capsys, '--config=bioptimus', '--device=all')
    assert code == 0
    assert all(text.count(f'\n{name} ') == 2 for name in DEVICES)
    assert 'cost' not in text
    code, text, _ = call(capsys, '--config=bioptimus', '--device=H200', '--devices=4', '--price=2.50')
    row = next(line for line in text.split('Time on 4 devices')[1].splitlines() if line.startswith('h200'))
    hours, device_hours, cost = (float(cell) for cell in row.split()[-3:])
    assert device_hours == pytest.approx(36.0, abs=0.1)
    assert hours == pytest.approx(device_hours / 4, abs=0.05)
    assert cost == pytest.approx(device_hours * 2.5, rel=0.002)
    assert 'a100-40' not in text


def test_the_speed_for_long_rows_is_measured_on_shorter_ones(monkeypatch):
    seen = []

    def measure(one, rows, pieces):
        seen.append((rows, pieces))
        return 1.0, 1.0, 1.0

    monkeypatch.setattr(speeds, '_jax_speeds', measure)
    monkeypatch.setattr(speeds, 'seconds_of', lambda work: 1.0)
    here = SimpleNamespace(device=SimpleNamespace(platform='cpu'))
    for pieces in (8192, 128):
        speeds.speeds_of(here, Bert(100, 16, 1, 2, 24, 9000), 64, pieces, 1)
    assert seen == [(4, 1024), (4, 128)]


def test_without_a_name_the_plan_is_for_this_machine_and_the_texts_that_are_here(
    capsys, tmp_path, monkeypatch
):
    monkeypatch.setattr('bioptimus_jax.start.machine.product_rate', lambda platform: (4e11, 'float32', 1024))
    monkeypatch.setattr('bioptimus_jax.start.machine.copy_rate', lambda: 2e10)
    file = tmp_path / 'texts.jsonl'
    file.write_text(
        ''.join(f'{{"id": "{n}", "title": "", "abstract": "{f"word{n} " * 20}"}}\n' for n in range(50))
    )
    given = ['--config=small', f'--config.corpus.inputs={file}', '--config.corpus.max_words=0']
    for device, how, cores in (
        ([], 'Measured now, on one layer', 'a core takes 1.0 times as long as an idle one.'),
        (['--device=CPU'], 'Assumed, by its peak', 'cores as if idle.'),
    ):
        known = Speeds(train=1e9, forward=1e9, torch=1e9, measured=not device)
        monkeypatch.setattr('bioptimus_jax.start.hours.speeds_of', lambda *_, known=known: known)
        code, text, error = call(capsys, *given, *device, '--devices=2')
        assert (code, error) == (0, '')
        assert '2 x cpu: 0.40 TFLOP/s in float32, 1,024 square and memory at 20 GB/s, measured now' in text
        assert '\n1,000 words (counted) in the texts at hand\n' in text
        assert '1,000 words in the corpus' in text
        stages = text.split('Stages on this machine')[1]
        said = ' '.join(stages.split())
        assert f'{how}: 1 GFLOP/s in training' in said
        assert f' in fine-tuning with PyTorch; {cores}' in said
        assert all(f'\n{name} ' in stages for name in ('start', 'surgery', 'pretrain', 'report', 'all'))
        [row] = [
            line.split() for line in text.split('Time on 2 devices')[1].splitlines() if line[:4] == 'cpu '
        ]
        assert row[1:3] == ['0.2', '10']  # a half each
    assert '\nl4 ' in call(capsys, *given, '--device=l4,4090')[1]
    assert 'Time on 1 device\n' in call(capsys, *given, '--device=l4,4090')[1]
    bare = save_encoder(tmp_path / 'bare')
    file = bare / 'model.safetensors'
    kept = {n: tensor for n, tensor in load_file(file).items() if not n.startswith('cls.')}
    save_file(kept, file)
    told = call(capsys, *given, f'--config.source.path={bare}', '--device=t4')[1]
    assert '\nno masked-LM head in the source: one starts at random; set config.pretrain.head_steps' in told
    told = call(
        capsys, *given, f'--config.source.path={bare}', '--config.pretrain.head_steps=1', '--device=t4'
    )[1]
    assert 'one starts at random; it alone is trained in the first 1 of the steps' in told
    told = call(capsys, *given, '--words=5000', '--device=t4')[1]
    assert 'no masked-LM head' not in told
    assert '5,000 words in the corpus' in told
    assert 'texts at hand' not in told


def test_the_document_has_what_the_tables_have(capsys):
    given = ['--config=bioptimus', '--device=h200', '--devices=4', '--price=2.50']
    _, text, _ = call(capsys, *given)
    found = document(capsys, 'plan', *given)
    assert f'Parameters: {sum(found["model"]["parameters"].values()):,} (' in text
    assert [row['phase'] for row in found['phases']] == ['0.1', '0.2', '0.3', '0.4', 'all']
    assert (
        f'\nall  {found["phases"][-1]["steps"]:>10,.0f}'.split() == re.search(r'\nall +\S+', text)[0].split()
    )
    [row], line = (
        found['time'],
        next(x for x in text.split('Time on')[1].splitlines() if x.startswith('h200')),
    )
    assert [float(cell) for cell in line.split()[-3:]] == pytest.approx(
        [row['hours'], row['device-hours'], row['cost']], abs=0.05
    )
    assert (found['memory'][0]['fits'], found['assumed']['price']) == ('yes', 2.5)
    assert sum(row['GB'] for row in found['disk'][:-1]) == pytest.approx(found['disk'][-1]['GB'])


WIDE = tuple(
    f'--config.model.{name}={size}'
    for name, size in (('layers', 2), ('hidden', 12288), ('intermediate', 49152))
)
"""A model whose parameters are more than a device holds."""


def test_what_does_not_fit_is_told_how_it_would(capsys):
    larger = ('--config=bioptimus', '--device=v5e', '--devices=8', '--config.pretrain.batch_rows=512')
    _, text, _ = call(capsys, *larger)
    assert 'with micro_batches=4' in text
    _, text, _ = call(capsys, *larger, '--config.pretrain.micro_batches=4')
    assert 'yes' in next(line for line in text.splitlines() if line.startswith('tpu-v5e'))
    _, text, _ = call(capsys, '--config=bioptimus', '--device=v5e', *WIDE)
    assert next(line for line in text.splitlines() if line.startswith('tpu-v5e')).endswith(' no')


@pytest.mark.parametrize(
    ('arguments', 'expected'),
    [
        (
            ['--config=bioptimus', '--device=abacus'],
            'no such device; known: cpu, t4, l4, a10, a10g, rtx-4090, a100-40',
        ),
        (['--config=bioptimus', '--config.corpus.max_words=0'], 'phase 0.1 lasts epochs: say how many words'),
        (['--config=finetune'], 'config.stages: has no pretrain'),
        (['--config=bioptimus', '--devices=0'], "--devices: '0': must be a whole number, at least 1"),
        (['--config=bioptimus', '--mfu=35'], 'must be a number above 0 and at most 1'),
        (['--config=bioptimus', '--price=free'], "--price: 'free': must be a number above 0"),
        (['--config=bioptimus', '--devices=7'], 'not a multiple of the 7 devices'),
    ],
)
def test_what_is_wrong_is_one_line(arguments, expected, capsys):
    code, _, error = call(capsys, *arguments)
    assert code == 2
    assert expected in error
    assert '\n' not in error


def test_the_length_of_the_corpus_from_the_command_line(capsys, paper):
    code, text, _ = call(
        capsys, '--config=bioptimus', '--config.corpus.max_words=0', '--words=1.8e9', '--device=h200'
    )
    assert code == 0
    assert f'{paper.steps:,}' in text


@pytest.mark.parametrize(
    ('kind', 'peak'),
    [
        ('NVIDIA A100-SXM4-80GB', 312e12),
        ('NVIDIA H200', 989e12),
        ('TPU v5 lite', 197e12),
        ('TPU v5', 459e12),
        ('TPU v6 lite', 918e12),
        ('NVIDIA A10', 125e12),  # no A100, and an A10G is another one
        ('NVIDIA A10G', 70e12),
        ('NVIDIA L4', 121e12),
        ('NVIDIA L40S', None),
        ('Tesla T4', 8.1e12),
        ('NVIDIA GeForce RTX 4090', 165e12),
        ('NVIDIA A100 80GB PCIe', 312e12),
        # Slower cards and parts of cards, which share a name alone.
        *dict.fromkeys(('NVIDIA H100 PCIe', 'NVIDIA H100 NVL', 'NVIDIA H100 80GB HBM3 MIG 1g.10gb')).items(),
        *dict.fromkeys(('NVIDIA GeForce RTX 4090 Laptop GPU', 'NVIDIA GeForce RTX 4090 D')).items(),
        ('cpu', None),
    ],
)
def test_peaks_by_what_jax_calls_a_device(kind, peak):
    assert devices.peak_of_kind(kind) == peak
