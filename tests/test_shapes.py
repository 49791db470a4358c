"""Phases with shapes of their own: rows, documents, batches, rotary positions; and warm-ups of batch and length."""

import json
import shutil

import jax
import numpy as np
import pytest
from toy_pretraining import assert_same_bits, killed_copy, of_letters, parameters, pretrained, watched_batches

from bioptimus_jax.errors import ConfigError
from bioptimus_jax.experiment import config
from bioptimus_jax.experiment.schema import Experiment
from bioptimus_jax.experiment.stages import STAGES
from bioptimus_jax.hosts.devices import DEVICES, GIB
from bioptimus_jax.model.tensors import load_folder
from bioptimus_jax.pretrain import curriculum
from bioptimus_jax.pretrain.memory import step_memory
from bioptimus_jax.pretrain.objective import make_objective
from bioptimus_jax.pretrain.plan import Assumptions, check, make_plan
from bioptimus_jax.pretrain.shape import RowCounts
from bioptimus_jax.pretrain.sharding import make_mesh
from bioptimus_jax.records.metrics import Evaluation
from bioptimus_jax.report.estimate import tables
from bioptimus_jax.rows.stored import Rows
from bioptimus_jax.run.execute import execute
from bioptimus_jax.run.folder import Run
from bioptimus_jax.storage.files import read_json, sha256
from bioptimus_jax.tokenizer import subwords
from bioptimus_jax.tokenizer.kinds.wordpiece import SPECIAL_TOKENS

PIECES, LETTERS = 64, 'abcdefghij'
LONGER = {
    'phase.0.1.row_pieces': 32,
    'phase.0.1.max_document_pieces': 16,
    'phase.0.1.batch_rows': 16,
    'phase.0.4.batch_rows': 4,
    'phase.0.4.micro_batches': 1,
    'phase.0.4.rope_theta': 200.0,
}
"""Short documents, then long ones with another base of the rotary positions."""


def experiment(folder, trained=('0.1', '0.4'), **changes):
    return of_letters(
        folder, PIECES, trained, **{'model.family': 'eurobert', 'corpus.min_words': 2, **changes}
    )


@pytest.fixture(scope='module')
def prepared(tmp_path_factory):
    folder = tmp_path_factory.mktemp('shapes')
    (folder / 'vocab.txt').write_text('\n'.join([*SPECIAL_TOKENS, *LETTERS]))
    rng = np.random.default_rng(0)
    with open(folder / 'corpus.jsonl', 'w') as file:
        for number in range(300):
            text = ' '.join(rng.choice(list(LETTERS), rng.integers(5, 60)))
            file.write(json.dumps({'id': str(number), 'title': '', 'abstract': text}) + '\n')
    run = Run(folder / 'run', experiment(folder), quiet=True)
    for stage in ('corpus', 'vocab', 'surgery'):
        execute(run, STAGES[stage])
    return folder


def opened(prepared, workdir, **changes):
    if not workdir.exists():
        shutil.copytree(prepared / 'run', workdir)
    run = Run(workdir, experiment(prepared, **changes), quiet=True)
    execute(run, STAGES['rows'])
    return run


def test_every_phase_has_its_own_shape_up_to_the_export_and_a_killed_run_goes_on(prepared, tmp_path):
    run = opened(prepared, tmp_path / 'run', **LONGER)
    with watched_batches() as seen, killed_copy(run, tmp_path / 'killed', lambda step: step > 8):
        pretrained(run)
    assert [seen[step]['tokens'].shape for step in (0, 5, 6, 11)] == [(16, 32)] * 2 + [(4, 64)] * 2
    longest = [int(seen[step]['segment_lengths'].max()) for step in (0, 6)]
    assert longest[0] <= 16 < longest[1]
    assert_same_bits(run, pretrained(Run(tmp_path / 'killed', run.config, quiet=True)), '0.1', '0.4')
    # The rows are those of a run that has nothing else.
    alone = {'rows.row_pieces': 32, 'rows.max_document_pieces': 16}
    other = opened(prepared, tmp_path / 'alone', **alone)
    made = {path.name: sha256(path) for path in (run.workdir / 'rows/train-32-16').iterdir()}
    assert made == {path.name: sha256(path) for path in (other.workdir / 'rows/train').iterdir()}
    tokens = [r['tokens'] for r in run.metrics.of('pretrain') if r['step'] in (6, 12)]
    read = [sum(int(seen[step]['segment_lengths'].sum()) for step in range(end)) for end in (6, 12)]
    assert sorted(set(tokens)) == read
    # Each model says how its positions turn, and passes the gate; scored so, it has the loss of the run's record.
    execute(run, STAGES['export'])
    bases = {phase: read_json(run.workdir / 'export' / phase / 'config.json') for phase in ('0.1', '0.4')}
    assert [bases[phase]['rope_parameters']['rope_theta'] for phase in bases] == [250000.0, 200.0]
    scored = {r.step: r.loss for r in Evaluation.among(run.metrics.of('pretrain'))}
    known, heldout = subwords.load(run.folder('vocab')), Rows(run.folder('rows'), 'heldout')
    for phase, step in {'0.1': 6, '0.4': 12}.items():
        architecture, params, _ = load_folder(run.workdir / 'export' / phase)
        objective = make_objective(run.config, architecture, known, PIECES, make_mesh(1), print)
        scores = dict(objective.evaluation(heldout).scores(jax.tree.map(np.asarray, params), {}, False))
        assert scores['frozen_loss'] == pytest.approx(scored[step], rel=1e-6)


def test_a_warm_up_is_what_phases_of_these_shapes_would_be(prepared, tmp_path):
    """Smaller batches of shorter documents, against two phases by name."""
    lengths, batches = (32,), (4,)
    warm = {
        'phase.0.1.warmup_document_pieces': '32,',
        'phase.0.1.warmup_batch_rows': '4,',
        'phase.0.1.duration': 12.0,
        'trained': ('0.1',),
    }
    counted = opened(prepared, tmp_path / 'run', **warm, **{'phase.0.1.warmup_tokens': 1.0})
    more = counted.manifest('rows').counts['more']
    in_rows = [more[f'train-64-{pieces}'] for pieces in lengths]
    in_step = [rows * of['tokens'] / of['rows'] for rows, of in zip(batches, in_rows)]
    run = opened(prepared, tmp_path / 'run', **warm, **{'phase.0.1.warmup_tokens': 3 * sum(in_step)})
    with watched_batches() as seen:
        pretrained(run)
    assert [len(seen[step]['tokens']) for step in range(12)] == [4] * 3 + [8] * 9
    assert int(seen[2]['segment_lengths'].max()) == 32
    assert all(0.8 < r['fill'] <= 1 for r in run.metrics.of('pretrain') if 'fill' in r), (
        'none is of two shapes'
    )
    apart = {'trained': ('0.1', '0.2')}
    for name, pieces, rows, steps in zip(apart['trained'], (*lengths, 0), (*batches, 0), (3.0, 9.0)):
        shape = {'max_document_pieces': pieces, 'batch_rows': rows, 'micro_batches': 1 if rows else 2}
        same = {'masking': 'tokens', 'rate': 0.15, 'duration': steps}
        apart |= {f'phase.{name}.{key}': value for key, value in {**shape, **same}.items()}
    chain = pretrained(opened(prepared, tmp_path / 'chain', **apart))
    found = parameters(run, '0.1')
    for path, value in parameters(chain, '0.2').items():
        np.testing.assert_array_equal(found[path], value, err_msg=path)


COUNTS = RowCounts(100, 10_000, 8_000)  # a row has 100 tokens and 80 words


def scheduled(duration, unit, **settings):
    c = config.defaults()
    c.phases = ('0.1', '0.2')
    c.pretrain.batch_rows = 10
    for name in c.phases:
        c.phase[name].update(duration=duration, duration_unit=unit)
    c.phase['0.2'].update(warmup_tokens=7000.0, warmup_batch_rows=(2, 5), batch_rows=20, **settings)
    e = Experiment.from_config(c)
    return e, curriculum.make_schedule(e, COUNTS)


@pytest.mark.parametrize(
    ('duration', 'unit', 'steps'),
    # Ten steps of 200 and ten of 500 tokens; what is left of the duration takes ten more, of 2,000.
    [(30.0, 'steps', 30), (27_000.0, 'tokens', 27), (2.7, 'epochs', 27), (27_000 * 0.8, 'words', 27)],
)
def test_a_warm_up_by_hand(duration, unit, steps):
    e, schedule = scheduled(duration, unit)
    assert [s.stop for s in schedule] == [steps, steps + 30]
    found = [(s.start, s.stop, s.shape.batch_rows) for s in curriculum.stretches(schedule, e)]
    assert found == [
        (0, steps, 10),
        (steps, steps + 10, 2),
        (steps + 10, steps + 20, 5),
        (steps + 20, None, 20),
    ]
    # Where time is short steps go from the end: the warm-up stays, as far as there is room.
    shorter = curriculum.without(schedule, 0, steps)
    start = shorter[1].start
    batches = [(s.start - start, s.shape.batch_rows) for s in curriculum.stretches(shorter, e)[1:]]
    assert batches == [(0, 2), (10, 5)] + [(20, 20)] * (shorter[1].stop - start > 20)


def test_a_plan_counts_every_shape():
    c = config.defaults()
    c.phases = ('0.1', '0.2')
    for name in c.phases:
        c.phase[name].update(duration=10.0, duration_unit='steps')
    c.phase['0.2'].update(row_pieces=1024, max_document_pieces=1024, batch_rows=32)
    c.model.max_positions = 1024
    plan = make_plan(Experiment.from_config(c), Assumptions(words=1e6, fill=0.5))
    assert [phase.pieces for phase in plan.phases] == [10 * 256 * 256, 10 * 32 * 512]
    assert plan.phases[1].flops_per_piece > plan.phases[0].flops_per_piece, 'a piece attends to more'
    shown = tables(plan, [DEVICES['h100']], 1)
    assert 'batches of 256 rows of 512, then 32 rows of 1024' in shown['phases'].note
    [rows] = [row for row in shown['disk'].records() if row['stage'] == 'rows']
    assert rows['what'] == '5,066 rows of 512, 2,533 rows of 1024, and held-out ones'
    alone = step_memory(plan.experiment, plan.architecture, 'gpu', 1).peak / GIB
    assert shown['memory'].records()[0]['peak'] == pytest.approx(alone, abs=0.01), 'the step that needs most'


WRONG = {
    'document': (
        {'row_pieces': 32},
        r'0\.1\.max_document_pieces: 64 does not fit into its rows of 32 pieces',
    ),
    'parts': ({'batch_rows': 9}, r'0\.1\.micro_batches: 2 does not divide its 9 rows'),
    'no tokens': ({'warmup_batch_rows': '2,4'}, r'0\.1\.warmup_tokens: 0; a warm-up needs them'),
    'tokens alone': ({'warmup_tokens': 10.0}, r'0\.1\.warmup_tokens: 10; a warm-up needs them, and warmup_b'),
    'falls': (
        {'warmup_batch_rows': '4,2', 'warmup_tokens': 10.0},
        r'0\.1\.warmup_batch_rows: \(4, 2\) do not rise to the 8 rows',
    ),
    'no multiple': (
        {'warmup_batch_rows': '5,', 'warmup_tokens': 10.0},
        r'0\.1\.warmup_batch_rows: 5 rows are not made of micro-batches of 4',
    ),
    'not in pairs': (
        {'warmup_batch_rows': '2,4', 'warmup_document_pieces': '16,', 'warmup_tokens': 10.0},
        r'0\.1\.warmup_document_pieces: 1 lengths, and 2 sizes',
    ),
    'long': (
        {'warmup_document_pieces': '64,', 'warmup_tokens': 10.0},
        r'0\.1\.warmup_document_pieces: \(64,\) do not rise to the 64 of later documents',
    ),
    'factor': ({'rope_type': 'yarn'}, r"0\.1\.rope_factor: 0\.0 does not go with rope_type='yarn'"),
    'base': ({'rope_theta': 0.5}, r'0\.1\.rope_theta: 0\.5; a base above 1'),
}


BEYOND = {
    'positions': (
        {'phase.0.4.row_pieces': 128, 'phase.0.4.max_document_pieces': 128},
        r'0\.4\.max_document_pieces: 128 pieces, but this EuroBERT has 64',
    ),
    'no rope': (
        {'model.family': 'bert', 'phase.0.4.rope_theta': 200.0, 'runtime.base_run': ''},
        r'0\.4: a BERT has no rotary positions',
    ),
    'memory': (
        {'phase.0.4.batch_rows': 2**20},
        r'0\.4\.batch_rows: 1048576 rows of 64 pieces need .* set config\.phase\.0\.4\.micro_batches=',
    ),
}


@pytest.mark.parametrize('flaw', [*WRONG, *BEYOND])
def test_what_cannot_be_is_refused_in_one_line_before_anything_begins(flaw, prepared, tmp_path):
    """Shapes that no model has, and what this model or this machine has not."""
    given, message = WRONG.get(flaw) or BEYOND[flaw]
    changes = {f'phase.0.1.{name}': value for name, value in given.items()} if flaw in WRONG else given
    with pytest.raises(ConfigError, match=rf'config\.phase\.{message}') as caught:
        check(Run(tmp_path / 'run', experiment(prepared, **changes), quiet=True))
    assert '\n' not in str(caught.value)


def test_a_warm_up_longer_than_its_phase_is_refused():
    with pytest.raises(
        ConfigError, match=r'config\.phase\.0\.2\.warmup_tokens: its warm-up has 20 steps, and the'
    ):
        scheduled(20.0, 'steps')
