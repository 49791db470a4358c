"""Benchmarks: every one imports, calls public functions and has a quick mode that runs; and parts of some.

Of the command for one card, with tiny shapes on the CPU: its parts, what it keeps of them, and how it goes on.

B rows, L positions.
"""

import ast
import importlib
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from toy_compiler import ONE_DEVICE
from toy_programs import environment

ROOT = Path(__file__).resolve().parents[1]
BENCHMARKS = ROOT / 'benchmarks'
DEFAULT = ('machine', 'base-512', 'profile')


SECONDS = ('scoring',)
"""Benchmarks whose quick mode takes seconds; that of the others `make benchmarks` runs. gpu.py has tests of its own."""
MINUTES = ('audit', 'corpus', 'damages', 'faults', 'input', 'ner', 'objectives', 'operations', 'pretrain')
MINUTES += ('encoders', 'onnx_form', 'packed', 'sentences', 'signals', 'surgery', 'texts')


def test_every_benchmark_with_a_quick_mode_is_run_in_it():
    files = {
        f.stem for f in BENCHMARKS.glob('*.py') if re.search(r"add_argument\(\s*'--quick'", f.read_text())
    }
    assert files - {'gpu'} == {*SECONDS, *MINUTES}


@pytest.mark.parametrize('name', [*SECONDS, *(pytest.param(n, marks=pytest.mark.slow) for n in MINUTES)])
def test_a_quick_mode_ends_with_its_headline_and_writes_nothing(name, request):
    if name == 'audit':
        request.getfixturevalue('data')
    before = {file: file.stat().st_mtime_ns for file in (BENCHMARKS / 'results').iterdir()}
    command = [sys.executable, BENCHMARKS / f'{name}.py', '--quick']
    done = subprocess.run(command, capture_output=True, text=True, env=os.environ | {'XLA_FLAGS': ONE_DEVICE})
    assert done.returncode == 0, done.stderr[-3000:]
    assert re.match(r'headline: \w+=\S', done.stdout.splitlines()[-1])
    assert {file: file.stat().st_mtime_ns for file in (BENCHMARKS / 'results').iterdir()} == before


def test_every_benchmark_imports(monkeypatch):
    for name in ('JAX_PLATFORMS', 'JAX_SKIP_CUDA_CONSTRAINTS_CHECK', 'TOKENIZERS_PARALLELISM'):
        monkeypatch.setenv(name, os.environ.get(name, ''))  # what one sets for itself alone
    monkeypatch.syspath_prepend(BENCHMARKS)
    for file in sorted(BENCHMARKS.glob('*.py')):
        assert Path(importlib.import_module(file.stem).__file__) == file


def private_names(source):
    """Names with an underscore that a file imports, or asks a module of the program for."""
    tree = ast.parse(source)
    froms = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    ours = [
        alias for node in froms if (node.module or '').startswith('bioptimus_jax') for alias in node.names
    ]
    modules = {alias.asname or alias.name for alias in ours}
    asked = [node for node in ast.walk(tree) if isinstance(node, ast.Attribute)]
    found = [
        f'{n.value.id}.{n.attr}' for n in asked if isinstance(n.value, ast.Name) and n.value.id in modules
    ]
    return [name for name in (*(alias.name for alias in ours), *found) if '._' in f'.{name}']


def test_benchmarks_call_public_functions():
    for file in BENCHMARKS.glob('*.py'):
        assert not private_names(file.read_text('utf-8')), file.name
    wrong = 'from bioptimus_jax.pretrain import rows\nrows._make_block()\nfrom bioptimus_jax.run import _f\nself._g'
    assert private_names(wrong) == ['_f', 'rows._make_block']


@pytest.fixture
def gpu(monkeypatch):
    monkeypatch.syspath_prepend(BENCHMARKS)
    import gpu

    return gpu


@pytest.fixture
def said(programs):
    """What the command prints, by lines."""

    def run(*flags, code=0):
        command = [programs / 'python', BENCHMARKS / 'gpu.py', '--quick', *map(str, flags)]
        done = subprocess.run(command, capture_output=True, text=True, env=environment())
        assert done.returncode == code, done.stderr[-3000:]
        return done.stdout.splitlines()

    return run


def rows_of(file):
    """Part -> what was measured -> the row, of a file of results, where all went well."""
    parts = json.loads(file.read_text())['parts']
    assert not [entry for entry in parts.values() if entry['state'] != 'measured'], parts
    return {name: {row['what']: row for row in entry['rows']} for name, entry in parts.items()}


def check_step(rows, shape):
    """A train step's rows: rates and shares that can be, and an estimate of memory near what the compiler says."""
    assert rows[shape]['useful_tokens_per_second'] > 0
    assert 0 < rows['time']['host_ms'] < rows['time']['step_ms']
    assert 0.5 < rows['memory']['estimated_bytes'] / rows['memory']['compiled_bytes'] < 2


def test_parts_are_measured_kept_and_not_measured_again(said, tmp_path):
    file = tmp_path / 'found.json'
    printed = said(f'--into={file}', *(f'--part={name}' for name in DEFAULT))
    rows = rows_of(file)
    assert tuple(rows) == DEFAULT
    assert 'jax ' in rows['machine']['versions']['found']
    assert rows['machine']['copy']['bytes_per_second'] > 0
    check_step(rows['base-512'], '4 x 512')
    *costs, trace = rows['profile'].values()
    assert len(costs) == 3
    assert any(row['found'].startswith(('forward ', 'backward ')) for row in costs), costs
    assert 1 > costs[0]['share'] >= costs[1]['share'] >= costs[2]['share'] > 0
    assert trace['operations_ms'] > 0
    for name in DEFAULT:
        for row in rows[name].values():
            assert f'  {row["what"]:28} {row["found"]}' in printed
    assert printed[-1].startswith('headline: useful_tokens_per_second=')

    listed = {line.split()[0]: line.endswith('[measured]') for line in said(f'--into={file}', '--list')}
    assert [name for name, measured in listed.items() if measured] == list(DEFAULT)
    before = file.read_bytes()
    again = said(f'--into={file}', '--minutes=0.01', code=1)  # no time for any other part
    assert file.read_bytes() == before
    assert (
        [line for line in again if line in printed] == [line for line in printed if line in again] == printed
    )
    assert sum('no time left' in line for line in again) == len(listed) - len(DEFAULT)


@pytest.mark.slow
def test_every_part_runs_on_the_cpu(said, tmp_path):
    file = tmp_path / 'found.json'
    said(f'--into={file}')
    rows = rows_of(file)
    assert not [row for part in rows.values() for row in part.values() if 'WRONG' in row['found']]
    for size in ('base', 'large'):
        for width in (512, 128):
            check_step(rows[f'{size}-{width}'], f'4 x {width}')
    assert 'passes its check' in rows['kernels']['pallas_gpu 2 x 64']['found']
    assert 'multiple of 128' in rows['kernels']['splash 2 x 64']['found']
    assert rows['peers']['hf_varlen']['loss'] == pytest.approx(
        rows['peers']['hf_packed_masked']['loss'], rel=1e-4
    )
    assert rows['peers']['same weights']['gradient'] < 1e-4
    assert 'bit-identical' in rows['resume']['resumed']['found']
    assert rows['ner']['train']['ours'] > 0
    assert rows['surgery']['contexts']['ours'] > 0


def test_a_part_that_breaks_or_hangs_is_one_line_and_keeps_its_rows(gpu, tmp_path):
    from gpu_parts import PARTS, Place

    place = Place(tmp_path, True)
    for name, seconds, reason in (
        ('no such part', 100, 'ended with 1: StopIteration'),
        ('ner', 0.3, 'stopped after'),
    ):
        part = gpu.Part(name, 0, '', PARTS[0].rows)
        (tmp_path / f'{name}.json').write_text('[{"what": "first", "found": "1"}]')
        entry = gpu.run(part, place, seconds)
        assert entry['state'] == 'failed'
        assert entry['reason'].startswith(reason)
        assert entry['rows'] == [{'what': 'first', 'found': '1'}]


def test_a_message_is_found_in_what_a_process_said(gpu, tmp_path):
    log = tmp_path / 'log'
    for text, wanted in (
        ('', 'it said nothing'),
        ('warning: slow\nvariant hf ended with code 1\n\n', 'variant hf ended with code 1'),
        (
            'Traceback (most recent call last):\n  File "a"\n    b()\nKeyError: 1\n\nDuring handling of it:\n\n'
            'Traceback (most recent call last):\n  File "a"\nRuntimeError: out of\nmemory\n',
            'RuntimeError: out of',
        ),
    ):
        log.write_text(text)
        assert gpu.last_line(log) == wanted
    assert gpu.slug('NVIDIA H100 80GB HBM3') == 'h100-80gb-hbm3'


PROGRAM = """
%fused.1 (p: f32[2]) -> f32[2] {
  ROOT %mul.1 = f32[2] multiply(%p, %p), metadata={op_name="jit(<lambda>)/while/body/closed_call/jvp(Layer)/x/mul"}
}

%fused.2 (p: f32[2]) -> f32[2,3] {
  ROOT %dot.1 = f32[2,3]{1,0} dot(%p, %p), lhs_contracting_dims={1}
}

ENTRY %main (p: f32[2]) -> f32[2] {
  %fusion.1 = f32[2] fusion(%p), kind=kLoop, calls=%fused.1
  %fusion.2 = f32[2] fusion(%p), kind=kLoop, calls=%fused.2
  %gemm.2 = f32[2] custom-call(%p), metadata={op_name="jit(<lambda>)/transpose(jvp(Layer))/y/dot;jit(a)/z" id=3}
  ROOT %add.3 = f32[2] add(%fusion.1, %gemm.2), metadata={op_name="jit(<lambda>)/add"}
}
"""


def test_costs_are_those_of_one_card_by_their_place_in_the_model(gpu):
    """A trace as a GPU's has it: kernels in streams, the same again in sums beside them, and the host."""
    from gpu_parts import origins, seconds_of_operations

    known = origins(PROGRAM)
    wanted = {'fusion.1': 'forward Layer/x/mul', 'gemm.2': 'backward Layer/y/dot', 'add.3': 'add'}
    wanted |= {'fusion.2': 'dot f32[2,3]'}
    assert {name: known[name] for name in wanted} == wanted

    def event(operation, nanoseconds, name='kernel'):
        stats = [('hlo_op', operation)] if operation else []
        return SimpleNamespace(name=name, duration_ns=nanoseconds, stats=stats)

    def line(name, *events):
        return SimpleNamespace(name=name, events=events)

    streams = [
        line('Stream #13(Compute)', event('fusion.1', 5e9), event('gemm.2', 3e9), event('while.1', 9e9)),
        line('Stream #14(MemcpyD2D)', event('gemm.2', 1e9), event('', 2e9, 'MemcpyD2D')),
        line('XLA Ops', event('fusion.1', 5e9)),
    ]
    host = SimpleNamespace(name='/host:CPU', lines=[line('tf_XLA', event('add.3', 7e9), event('', 1e9))])
    planes = [
        host,
        SimpleNamespace(name='/device:GPU:0', lines=streams),
        SimpleNamespace(name='/device:GPU:1', lines=streams),
    ]
    found = dict(seconds_of_operations(planes, known))
    assert found == {'forward Layer/x/mul': 5, 'backward Layer/y/dot': 4, 'MemcpyD2D': 2}
    assert dict(seconds_of_operations([host], known)) == {'add': 7}


@pytest.mark.filterwarnings('ignore:The PyTorch API of nested tensors')
def test_documents_attend_to_themselves_in_every_peer(gpu):
    """The same loss after steps that trained: by a mask, and document by document without one."""
    import torch
    from peers import PEERS, make_step
    from workload import Shape

    lengths_BxG = np.array([[5, 40, 0], [20, 9, 30]])
    tokens_BxL = np.random.default_rng(0).integers(5, 90, (2, 64))
    tokens_BxL[np.arange(64) >= lengths_BxG.sum(1)[:, None]] = 0
    batch, losses, threads = (
        {'tokens': tokens_BxL, 'segment_lengths': lengths_BxG},
        {},
        torch.get_num_threads(),
    )
    for name in ('hf_packed_masked', 'hf_varlen', 'hf_concatenated'):
        step, _ = make_step(
            name, Shape(2, 64, 100, 2, 0, row_pieces=64, micro_batches=1), lambda number: batch
        )
        assert step()['useful'] == lengths_BxG.sum()
        losses[name] = step()['loss']
    torch.set_num_threads(threads)
    assert losses['hf_varlen'] == pytest.approx(losses['hf_packed_masked'], rel=1e-5)
    assert losses['hf_concatenated'] != pytest.approx(losses['hf_packed_masked'], rel=1e-5)
    assert set(losses) < set(PEERS)


STEP = """
HloModule jit_step

%fused (p: bf16[4,8]) -> bf16[4,8] {
  ROOT %inner = bf16[4,8]{1,0} add(%p, %p)
}

ENTRY %main (a: bf16[4,8], b: f32[8]) -> (bf16[4,8], f32[8]) {
  %a = bf16[4,8]{1,0} parameter(0)
  %b = f32[8]{0} parameter(1)
  %loop_fusion.1 = bf16[4,8]{1,0} fusion(%a), kind=kLoop, calls=%fused, metadata={op_name="layer/0/add"}
  %loop_fusion.2 = bf16[4,8]{1,0} fusion(%loop_fusion.1), kind=kLoop, calls=%fused, metadata={op_name="layer/1/add"}
  %call = (bf16[4,8]{1,0}, s8[16]{0}) custom-call(%loop_fusion.2, %b), custom_call_target="product"
  %first = bf16[4,8]{1,0} get-tuple-element(%call), index=0
  ROOT %end = (bf16[4,8]{1,0}, f32[8]{0}) tuple(%first, %b)
}
"""


def test_the_bytes_of_a_compiled_step_are_those_of_its_main_part(monkeypatch):
    """Counted by hand: 64 bytes read and 64 written in each of two layers; a product reads 96 and writes 80."""
    for name in ('JAX_PLATFORMS', 'JAX_SKIP_CUDA_CONSTRAINTS_CHECK'):
        monkeypatch.setenv(name, 'cpu')  # it sets them, for itself alone
    monkeypatch.syspath_prepend(BENCHMARKS)
    from compiled import operations, typed

    assert operations(STEP) == [
        (('loop_fusion', 'layer/#/add'), (256, 2)),
        (('custom-call', ''), (176, 1)),
    ]
    assert typed({'a': 'true', 'b': '3'}) == {'a': True, 'b': '3'}


def test_splitters_are_held_against_the_places_that_were_judged(monkeypatch):
    monkeypatch.syspath_prepend(BENCHMARKS)
    from judged import COLUMNS, FILE, HALVES, decisions, decisions_before, index_after, places

    header, *lines = FILE.read_text().splitlines()
    assert header.split('\t') == COLUMNS
    fact = re.compile(
        r'[0-9a-f]{16}\t\d+\t(none|((ours|blingfire|nupunkt)(\+(?!$)|(?=\t)))+)\t(yes|no|unclear)'
    )
    assert not [line for line in lines if not fact.fullmatch(line)], 'facts only, no text of abstracts'
    known = places()
    assert [(p.abstract, p.letters) for p in known] == sorted({(p.abstract, p.letters) for p in known})
    counted = {half: sum(p.half == half and p.is_border is not None for p in known) for half in HALVES}
    assert {half: entry['places'] for half, entry in decisions_before(known).items()} == counted

    text = 'We saw 4 (incl. 3 men). None died. All left.'
    borders = [(10, False), (14, True)]
    assert [text[index_after(text, letters)] for letters, _ in borders] == ['3', 'N']
    abstract = {'text': text, 'half': 'held out', 'borders': [*borders, (16, None)], 'library': [14]}
    whole = decisions(lambda text: [text], [abstract])['held out']
    assert (whole['decided_right'], whole['cut_right'], whole['recall'], whole['not_judged']) == (1, 0, 0, 0)
    all_cut = decisions(lambda text: text.split('. '), [abstract])['held out']
    assert (all_cut['places'], all_cut['decided_right'], all_cut['cut_wrong'], all_cut['not_judged']) == (
        2,
        1,
        1,
        1,
    )
    assert decisions(lambda text: [text], [abstract])['development']['places'] == 0
