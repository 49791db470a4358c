"""The train step as the compiler makes it: on the devices of the tests, and for slices of TPUs where libtpu is."""

import dataclasses
import importlib.util
import math

import jax
import pytest
from toy_commands import call, document
from toy_families import SMALL as FAMILIES_SMALL

from bioptimus_jax.errors import ConfigError
from bioptimus_jax.experiment.schema import Experiment
from bioptimus_jax.hosts import topology
from bioptimus_jax.hosts.config import Runtime
from bioptimus_jax.model.families.bert import Bert
from bioptimus_jax.model.tensors import write_folder
from bioptimus_jax.pretrain.compiled import Traffic, collectives_in, compile_programs
from bioptimus_jax.pretrain.config import OBJECTIVES, Phase, Pretrain
from bioptimus_jax.pretrain.objectives import distil
from bioptimus_jax.pretrain.sharding import axes_of
from bioptimus_jax.rows.config import Rows
from bioptimus_jax.tokenizer.kinds.wordpiece import SPECIAL_TOKENS

NEEDS_LIBTPU = pytest.mark.skipif(
    importlib.util.find_spec('libtpu') is None, reason='needs libtpu, which brings the compiler for TPUs'
)
SMALL = Bert(512, 64, 1, 2, 128, 64, dropout=0.0, attention_dropout=0.0)


def wanted(**changes):
    plain = {'phases': ('0.1',), 'rows': Rows(64, 64), 'pretrain': Pretrain(batch_rows=16, micro_batches=1)}
    return dataclasses.replace(Experiment(), **(plain | changes))


def compiled(config, architecture=SMALL, devices=None):
    return [*compile_programs(config, architecture, devices or jax.devices()[:8])]


def test_collectives_are_read_from_the_text_of_a_program():
    text = """
  %all-reduce.1 = (f32[4,2]{1,0}, f32[3]{0}) all-reduce(%a, %b), channel_id=1, to_apply=%add
  %all-gather-start = (bf16[2,8]{1,0:T(8,128)}, bf16[16,8]{1,0}) all-gather-start(%p), dimensions={0}
  %all-gather-done = bf16[16,8]{1,0} all-gather-done(%all-gather-start)
  ROOT %permuted.2 = u8[10]{0} collective-permute(%c), source_target_pairs={{0,1}}
  %all-reduce-start.9 = f32[5]{0} all-reduce-start(%d), to_apply=%add
  %fusion = f32[100]{0} fusion(%all-reduce.1), kind=kLoop, calls=%all-reduce-like
"""
    assert collectives_in(text) == {
        'all-gather': Traffic(1, 2 * 16 * 8),
        'all-reduce': Traffic(2, 4 * (8 + 3 + 5)),
        'collective-permute': Traffic(1, 10),
    }


def test_copies_add_gradients_up_and_full_shards_gather_parameters():
    """Bytes by hand: a gradient of every parameter is added up over the devices that copy it, and that of the tied
    table twice, as it is read at both ends of the model, and the compiler for CPUs adds up both; what is kept in parts
    is made whole once, and nothing else is sent."""
    parameters = SMALL.padded_with(0)
    numbers = [*map(math.prod, parameters.shapes().values()), 512 * 64]
    axes = axes_of(parameters.shapes(), parameters.rules)
    in_parts = [math.prod(shape) for path, shape in parameters.shapes().items() if 'fsdp' in axes[path]]
    [copied] = compiled(wanted(), parameters)
    assert set(copied.collectives) == {'all-reduce'}
    assert copied.collectives['all-reduce'].moved == pytest.approx(4 * sum(numbers), rel=0.01)
    [sharded] = compiled(wanted(runtime=Runtime(fsdp=8)), parameters)
    assert set(sharded.collectives) == {'all-gather', 'all-reduce'}
    assert sharded.collectives['all-gather'].moved == 4 * sum(in_parts)
    assert sharded.memory < copied.memory
    for step in (copied, sharded):
        assert (step.attention, step.phase, step.program.name, step.left_out) == ('xla', '0.1', 'mlm', '')
        assert min(step.memory, step.flops, step.moved) > 0


def test_every_shape_and_objective_of_a_run_is_a_program_of_its_own():
    phases = {
        'short': Phase('words', 0.15, row_pieces=32, max_document_pieces=32),
        'causal': Phase('words', 0.15, objective='causal'),
        'again': Phase('words', 0.2),
        'last': Phase('tokens', 0.2),
    }
    steps = compiled(wanted(phases=tuple(phases), phase=phases), devices=jax.devices()[:1])
    assert [(s.phase, s.program.name, s.program.shape.rows.row_pieces) for s in steps] == [
        ('short', 'mlm', 32),
        ('causal', 'causal', 64),
        ('again', 'mlm', 64),
    ]
    short, causal, usual = steps
    assert short.memory < usual.memory < causal.memory  # which predicts every piece


def test_rows_that_devices_do_not_share_evenly_are_refused():
    with pytest.raises(ConfigError, match='12 rows are not a multiple of the 8 devices'):
        compiled(wanted(pretrain=Pretrain(batch_rows=12, micro_batches=1)))


PLANNED = (
    '--config=bioptimus',
    *('--config.model.layers=1', '--config.model.hidden=64', '--config.model.heads=2'),
    *('--config.model.dropout=0', '--config.model.attention_dropout=0'),
    *('--config.model.intermediate=128', '--config.vocab.size=600', '--config.source.path='),
    *(
        '--config.rows.row_pieces=64',
        '--config.rows.max_document_pieces=64',
        '--config.pretrain.batch_rows=16',
    ),
)


def test_the_verb_says_what_the_compiler_says_beside_the_estimate(capsys, monkeypatch):
    monkeypatch.delenv('BIOPTIMUS_DATA', raising=False)  # nothing is read, so nothing need be there
    found = document(capsys, 'plan', *PLANNED, '--compile')
    assert [row['phase'] for row in found['compiled']] == ['0.1']  # all four phases are one program
    [row] = found['compiled']
    assert row['MiB'] == pytest.approx(row['estimate'], rel=0.5)
    assert row['ms at least'] > 0
    assert row['batch'] == '16 x 64'


@pytest.mark.parametrize(
    ('asked', 'expected'),
    [
        (['--device=h100'], '1 x h100 are not here, and without them steps are compiled for TPUs alone'),
        (['--device=h100,v5e'], 'are 2 devices; give one'),
        (['--device=v5e', '--devices=16'], "needs libtpu: pip install 'bioptimus-jax[tpu]'"),
        (
            ['--device=v5e', '--devices=2'],
            '--devices=2: there is no slice of so many tpu-v5e; there are 1, 4, 8',
        ),
        (['--device=v4', '--devices=8'], 'has no slices of tpu-v4; it has tpu-v5e, tpu-v5p, tpu-v6e'),
    ],
)
def test_devices_that_nothing_compiles_for_are_refused_in_a_line(asked, expected, capsys, monkeypatch):
    found = importlib.util.find_spec
    monkeypatch.setattr(
        topology.importlib.util, 'find_spec', lambda name: None if name == 'libtpu' else found(name)
    )
    code, error = call(capsys, 'plan', *PLANNED, '--compile', *asked)
    assert code == 2
    assert expected in error
    assert '\n' not in error


@NEEDS_LIBTPU
@pytest.mark.parametrize('count', [1, 4, 8, 16])
def test_the_compiler_of_libtpu_knows_the_slices(count):
    for name, grids in topology.GRIDS.items():
        if count in grids:
            assert len(topology.slice_devices(name, count)) == count


def of_family(name):
    """The family's small model with heads and rows as wide as kernels want them."""
    sizes = dict(
        vocab_size=512, hidden=128, heads=2, intermediate=256, max_positions=160, attention_dropout=0.0
    )
    if hasattr(FAMILIES_SMALL[name], 'key_heads'):
        sizes['key_heads'] = 2
    return dataclasses.replace(FAMILIES_SMALL[name], **sizes).padded_with(0)


def on_a_slice(config, architecture):
    wide = dataclasses.replace(config, rows=Rows(128, 128, layout=config.rows.layout))
    [step] = compiled(wide, architecture, topology.slice_devices('tpu-v5e', 4))
    assert (step.left_out, step.phase) == ('', '0.1')
    assert min(step.memory, step.flops, step.moved) > 0
    return step


@NEEDS_LIBTPU
@pytest.mark.slow
@pytest.mark.parametrize('family', FAMILIES_SMALL)
def test_every_family_is_compiled_for_a_slice_of_tpus(family):
    copied = on_a_slice(wanted(), of_family(family))
    sharded = on_a_slice(wanted(runtime=Runtime(fsdp=4)), of_family(family))
    assert copied.attention == sharded.attention == ('xla' if of_family(family).biased_scores else 'splash')
    assert sharded.collectives['all-gather'].number > 0
    assert 'all-gather' not in copied.collectives


@NEEDS_LIBTPU
@pytest.mark.slow
@pytest.mark.parametrize('parts', [1, 4])
def test_of_a_tied_table_one_sum_crosses_the_mesh_in_a_step(parts):
    """All gradients of several micro-batches are added up in float32, behind the last of them."""
    architecture = dataclasses.replace(of_family('bert'), vocab_size=8192)
    step = on_a_slice(wanted(pretrain=Pretrain(batch_rows=16, micro_batches=parts)), architecture)
    numbers = sum(map(math.prod, architecture.shapes().values()))
    assert step.collectives['all-reduce'].moved < 1.01 * 4 * numbers
    assert 'all-gather' not in step.collectives


@NEEDS_LIBTPU
@pytest.mark.slow
@pytest.mark.parametrize('objective', OBJECTIVES)
def test_every_objective_is_compiled_for_a_slice_of_tpus(objective, tmp_path):
    """The usual objective is what the families above are compiled with."""
    architecture = of_family('electra' if objective == 'rtd' else 'bert')
    config = wanted(
        rows=Rows(layout='pairs' if objective in ('nsp', 'contrastive') else 'documents'),
        pretrain=Pretrain(batch_rows=16, micro_batches=2, objective=objective),
    )
    if objective == 'distil':
        config = dataclasses.replace(config, objective={'distil': distil.Settings(teacher=str(tmp_path))})
        tokens = [*SPECIAL_TOKENS, *(f't{n}' for n in range(507))]
        (tmp_path / 'vocab.txt').write_text('\n'.join(tokens))
        params = architecture.initial_parameters(jax.random.key(0))
        write_folder(tmp_path, architecture, params, tmp_path)
    assert on_a_slice(config, architecture).program.name == objective
