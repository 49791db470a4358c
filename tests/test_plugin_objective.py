"""An objective in one file of a temporary folder: trained, resumed, scored, exported; nobody else knows its name."""

import dataclasses
import json
import shutil

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from toy_plugins import plugged
from toy_pretraining import assert_same_bits, killed_copy, of_letters, pretrained

from bioptimus_jax.config.fields import key
from bioptimus_jax.errors import ConfigError
from bioptimus_jax.experiment.stages import STAGES
from bioptimus_jax.ext import Trial, defaults
from bioptimus_jax.model.families.bert import Bert
from bioptimus_jax.model.tensors import load_folder
from bioptimus_jax.model.trees import flatten
from bioptimus_jax.pretrain import curriculum
from bioptimus_jax.pretrain.batches import Batches
from bioptimus_jax.pretrain.checkpoint import load_phase
from bioptimus_jax.pretrain.config import OBJECTIVES
from bioptimus_jax.pretrain.memory import step_memory
from bioptimus_jax.pretrain.objective import make_objective
from bioptimus_jax.pretrain.plan import check
from bioptimus_jax.pretrain.shape import RowCounts
from bioptimus_jax.pretrain.sharding import batch_sharding, make_mesh
from bioptimus_jax.pretrain.step import example_at, sharded_step
from bioptimus_jax.report.resolved import experiment_of
from bioptimus_jax.rows.stored import Rows
from bioptimus_jax.run.execute import execute
from bioptimus_jax.run.fingerprint import StageOfRun
from bioptimus_jax.run.folder import Run
from bioptimus_jax.run.manifests import write_manifest
from bioptimus_jax.tokenizer.kinds.wordpiece import SPECIAL_TOKENS, make

PIECES, LETTERS = 64, 'abcdefghijklmnopqrst'
# Two terms with denominators of their own, a head of its own, and arrays that nothing trains: the piece before from the
# states at each piece, and a head that stays near where it began, seen at the first piece of each document.
PREVIOUS = '''
"""Every piece but the first tells the one before it."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np

from bioptimus_jax.ext import Example, Objective, Rule, key
from bioptimus_jax.rows.blocks import positions_and_segments
from bioptimus_jax.rows.stored import Rows


@dataclasses.dataclass(frozen=True)
class Settings:
    """What may be set."""

    near: float = key(1.0, 'weight of the second term', low=0)


class PreviousPiece(Objective):
    """Cross-entropy of the piece before."""

    Settings = Settings

    reads = ('tokens', 'segment_lengths')
    rules = (Rule(r'^previous/', (None, None), True),)

    @staticmethod
    def columns(phase, config):
        return {'strength': np.float32(phase.rate)}

    def start(self, params, key):
        size = (self.architecture.hidden,) * 2
        return {**params, 'previous': {'kernel': 0.02 * jax.random.normal(key, size)}}

    def frozen(self, params):
        return {'previous': params['previous']}

    @staticmethod
    def exported(params):
        return {name: part for name, part in params.items() if name != 'previous'}

    def example(self, batch, setting, keys_B):
        tokens_BxL = batch['tokens']
        positions_BxL, segments_BxL = positions_and_segments(
            batch['segment_lengths'], tokens_BxL.shape[1], jnp
        )
        rows = {'tokens': tokens_BxL, 'segments': segments_BxL, 'positions': positions_BxL}
        strength = setting['strength'] * self.settings.near
        rows['strength'] = jnp.broadcast_to(strength, (len(tokens_BxL),))
        weights = {'pieces': (positions_BxL > 0).sum(), 'documents': (batch['segment_lengths'] > 0).sum()}
        return Example(rows, weights, {})

    def loss(self, params, frozen, rows, dropout_key):
        states_BxLxD = self.architecture.encode(params, rows, compute=self.compute, dropout_key=dropout_key)
        told_BxLxD = states_BxLxD @ params['previous']['kernel']
        table_VxD = params['embeddings']['word_embeddings']['embedding'][: self.architecture.vocab_size]
        logits_BxLxV = told_BxLxD @ table_VxD.T
        before_BxL = jnp.roll(rows['tokens'], 1, axis=1)
        losses_BxL = -jnp.take_along_axis(jax.nn.log_softmax(logits_BxLxV), before_BxL[..., None], -1)[..., 0]
        has_one_BxL = rows['positions'] > 0
        first_BxL = (rows['positions'] == 0) & (rows['segments'] > 0)
        away_BxL = ((told_BxLxD - states_BxLxD @ frozen['previous']['kernel']) ** 2).sum(-1)
        terms = {
            'documents': (rows['strength'][:, None] * first_BxL * away_BxL).sum(),
            'pieces': (has_one_BxL * losses_BxL).sum(),
        }
        return terms, {'right': (has_one_BxL * (logits_BxLxV.argmax(-1) == before_BxL)).sum()}

    def metrics(self, example, sums):
        return {'right': sums['right'] / example.weights['pieces'], 'predicted': example.weights['pieces']}

    def record(self, steps, finite):
        return {'right': float(np.mean([metrics['right'] for metrics in finite]))}

    def evaluation(self, rows, batch_rows=64):
        batch = rows.read(np.arange(len(rows)))
        return HeldOut(self, self.example(batch, {'strength': jnp.zeros(())}, None))


OBJECTIVE = PreviousPiece


@dataclasses.dataclass(frozen=True)
class HeldOut:
    """All held-out rows at once."""

    objective: PreviousPiece
    example: Example

    def save(self, folder):
        (folder / 'previous.txt').write_text(str(int(self.example.weights['pieces'])))

    def scores(self, params, frozen, every_setting):
        terms, _ = jax.jit(self.objective.loss, static_argnums=3)(params, frozen, self.example.rows, None)
        yield 'frozen_loss', float(terms['pieces'] / self.example.weights['pieces'])
'''

# The objective of the masked language model with a number of each phase beside its masking.
BESIDE = """
import numpy as np

from bioptimus_jax.ext import MaskedLM


class Beside(MaskedLM):
    @staticmethod
    def columns(phase, config):
        return {'masking': MaskedLM.columns(phase, config), 'beside': np.float32(10 * phase.rate)}

    def example(self, batch, setting, keys_B):
        found = super().example(batch, setting['masking'], keys_B)
        return found._replace(counts={**found.counts, 'beside': setting['beside']})


OBJECTIVE = Beside
"""


def experiment(folder, **changes):
    return of_letters(folder, PIECES, ('0.1', '0.4'), **changes)


@pytest.fixture(scope='module')
def prepared(tmp_path_factory):
    """Rows of several documents, in which each letter follows the one before it in the alphabet more often than not."""
    folder = tmp_path_factory.mktemp('objective')
    (folder / 'vocab.txt').write_text('\n'.join([*SPECIAL_TOKENS, *LETTERS]))
    rng = np.random.default_rng(0)
    with open(folder / 'corpus.jsonl', 'w') as file:
        for number in range(300):
            steps = rng.choice([1, 2, 9], rng.integers(5, 40), p=[0.8, 0.1, 0.1]).cumsum() + rng.integers(20)
            text = ' '.join(LETTERS[step % len(LETTERS)] for step in steps)
            file.write(json.dumps({'id': str(number), 'title': '', 'abstract': text}) + '\n')
    run = Run(folder / 'run', experiment(folder), quiet=True)
    for stage in ('corpus', 'vocab', 'surgery', 'rows'):
        execute(run, STAGES[stage])
    return folder


@pytest.fixture(scope='module', autouse=True)
def added(tmp_path_factory):
    """The file lies in a folder of a user's own; no other place is told."""
    folder = tmp_path_factory.mktemp('added')
    with pytest.raises(
        ConfigError, match=r"config\.pretrain\.objective: plug-in 'previous' is not installed.*mlm"
    ):
        experiment(folder, pretrain__objective='previous')
    (folder / 'previous.py').write_text(PREVIOUS)
    with plugged(folder):
        yield folder / 'previous.py'


def opened(prepared, workdir, **changes):
    if not workdir.exists():
        shutil.copytree(prepared / 'run', workdir)
    return Run(workdir, experiment(prepared, **{'pretrain__objective': 'previous', **changes}), quiet=True)


@pytest.fixture(scope='module')
def trained(prepared, tmp_path_factory):
    folder = tmp_path_factory.mktemp('trained')
    run = opened(prepared, folder / 'run')
    with killed_copy(run, folder / 'killed', lambda step: step > 6):
        return pretrained(run)


def test_it_trains_through_the_loop_and_is_scored(trained):
    records = trained.metrics.of('pretrain')
    scored = [r for r in records if r['kind'] == 'evaluation']
    assert [r['phase'] for r in scored if r['phase_end']] == ['initial', '0.1', '0.4']
    assert scored[0]['frozen_loss'] == pytest.approx(np.log(25), rel=0.1)  # of so many entries
    assert scored[-1]['frozen_loss'] < scored[0]['frozen_loss'] - 0.5
    assert 'frozen_accuracy' not in scored[0]
    told = [r for r in records if r['kind'] == 'train']
    assert told[-1]['right'] > told[0]['right']
    assert 'realised_rate' not in told[0]
    params = flatten(load_phase(trained.folder('pretrain'), '0.4'))
    assert params['previous/kernel'].shape == (16, 16)
    assert (trained.folder('pretrain') / 'previous.txt').is_file()
    assert not (trained.folder('pretrain') / 'frozen_masks.npz').exists()


def test_a_run_that_was_killed_ends_with_the_same_bits(trained, prepared):
    again = pretrained(opened(prepared, trained.workdir.parent / 'killed'))
    assert_same_bits(trained, again, '0.4')


def test_its_model_is_exported_without_what_it_added(trained):
    execute(trained, STAGES['export'])  # behind the gate: transformers computes the same
    _, exported, missing = load_folder(trained.workdir / 'export' / '0.4')
    params = flatten(load_phase(trained.folder('pretrain'), '0.4'))
    assert not missing
    assert flatten(exported).keys() == params.keys() - {'previous/kernel'}
    for name, value in flatten(exported).items():
        np.testing.assert_array_equal(value, params[name], err_msg=name)


def test_memory_counts_what_it_adds(prepared):
    architecture = Bert(100, 16, 1, 2, 16, PIECES)
    plain, own = (
        step_memory(experiment(prepared, pretrain__objective=name), architecture, 'cpu', 1)
        for name in ('mlm', 'previous')
    )
    head = 4 * 16 * 16
    added = {name: getattr(own, name) - getattr(plain, name) for name in ('optimizer', 'gradients', 'update')}
    assert added == {'optimizer': 2 * head, 'gradients': head, 'update': 2 * head}  # two micro-batches
    assert own.parameters - plain.parameters == head + head  # that which is trained, and as it began


def test_its_own_settings_are_keys(trained, prepared):
    ours = opened(prepared, trained.workdir, objective__previous__near=1.0)  # what it is without
    StageOfRun(ours, STAGES['pretrain']).check_settings(replace=False)
    assert ours.config.objective['previous'].near == 1
    other = opened(prepared, trained.workdir, objective__previous__near=2.0)
    with pytest.raises(ConfigError, match=r'config\.objective\.previous\.near: 1\.0 -> 2\.0'):
        StageOfRun(other, STAGES['pretrain']).check_settings(replace=False)
    for dotted, value, refusal in (
        ('objective__previous__near', '-1', r'config\.objective\.previous\.near: must be at least 0, got -1'),
        ('objective__previous__far', '1', r'config\.objective\.previous\.far: no such key'),
        ('objective__prevoius__near', '1', r'config\.objective\.prevoius\.near: no such key'),
        (
            'pretrain__objective',
            'mlm',
            r'config\.objective\.previous: settings of an objective that is not trained',
        ),
    ):
        with pytest.raises(ConfigError, match=refusal):
            opened(prepared, trained.workdir, **{'objective__previous__near': 1, dotted: value})


def test_a_run_goes_on_with_the_settings_and_the_code_that_it_began_with(
    trained, prepared, added, monkeypatch
):
    """Defaults that are changed in the file are seen, and so is its code; comments and layout are not compared."""
    assert trained.manifest('pretrain').config['objective.previous.near'] == 1.0  # which nobody gave
    file = added
    for text in (PREVIOUS + '\n\n# checked', PREVIOUS.replace('"""What may be set."""', '"""All."""')):
        file.write_text(text)
        assert execute(trained, STAGES['pretrain']) == trained.manifest('pretrain')
    file.write_text(PREVIOUS.replace('* self.settings.near', '* self.settings.near / 2'))
    refusal = r'other inputs \(inputs\.plug-in:objective previous: \w+… -> \w+…\); use another --workdir'
    ahead = StageOfRun(trained, STAGES['pretrain'])  # before hours of earlier stages, and in a dry run
    for begin in (lambda: execute(trained, STAGES['pretrain']), lambda: ahead.check_inputs(replace=False)):
        with pytest.raises(ConfigError, match=refusal):
            begin()
    file.write_text(PREVIOUS)
    changed = dataclasses.make_dataclass('Settings', [('near', float, key(2.0, 'weight'))], frozen=True)
    monkeypatch.setattr(OBJECTIVES.load('previous'), 'Settings', changed)
    with pytest.raises(ConfigError, match=r'config\.objective\.previous\.near: 1\.0 -> 2\.0'):
        StageOfRun(opened(prepared, trained.workdir), STAGES['pretrain']).check_settings(replace=False)
    same = opened(prepared, trained.workdir, objective__previous__near=1.0)
    StageOfRun(same, STAGES['pretrain']).check_settings(replace=False)
    used = experiment_of(trained.workdir)  # what comparisons go by
    assert used.objective['previous'].near == 1.0


def test_a_number_may_stand_beside_the_masking_of_a_phase_whose_rate_moves(tmp_path):
    (tmp_path / 'beside.py').write_text(BESIDE)
    found = []
    with plugged(tmp_path):
        for name in ('mlm', 'beside'):
            config = defaults()
            config.phases = ('0.1',)
            config.phase['0.1'].update(rate=0.2, rate_end=0.4)
            config.pretrain.objective = name
            trial = Trial(config, ['abc', 'bcd', 'cda'], [[24], [8, 16]])
            found.append((trial.masked(), trial.example().counts))
    (masked, _), (same, counts) = found
    np.testing.assert_array_equal(masked, same)
    assert float(counts['beside']) == 2.0


def test_terms_with_denominators_of_their_own_add_up_over_micro_batches(prepared):
    """Adam's first moment is a tenth of the gradient of the two means over the whole batch, whatever the parts."""
    changes = dict(pretrain__objective='previous', pretrain__clip_norm=0)
    in_parts = [experiment(prepared, **changes, pretrain__micro_batches=parts) for parts in (1, 4)]
    mesh, run = make_mesh(1), Run(prepared / 'run', in_parts[0], quiet=True)
    rows = Rows(run.folder('rows'), 'train')
    architecture, params, _ = load_folder(run.folder('surgery') / 'model')
    architecture = dataclasses.replace(architecture, dropout=0.0, attention_dropout=0.0)
    known = make([*SPECIAL_TOKENS, *LETTERS], True)
    objectives = [make_objective(e, architecture, known, rows.pieces, mesh, print) for e in in_parts]
    objective = objectives[0]
    schedule = curriculum.make_schedule(run.config, RowCounts(len(rows), 1, 1))
    table = curriculum.table(schedule, run.config)
    batch = Batches(rows, 8, 0, batch_sharding(mesh), objective.reads).at(0)
    assert batch.keys() == {'tokens', 'segment_lengths'}
    assert len(set((np.asarray(batch['segment_lengths']) > 0).sum(axis=1))) > 1
    steps = [sharded_step(one, mesh, params) for one in objectives]
    for _, state in steps:
        # The head is where it began, so the second term has no gradient there: take both away from it.
        state['params']['previous']['kernel'] = state['params']['previous']['kernel'] + 0.1

    @jax.jit
    @jax.value_and_grad
    def mean(params):
        example = example_at(objective, batch, table, jnp.int32(0))
        terms, _ = objective.loss(params, steps[0][0].frozen, example.rows, None)
        return sum(terms[name] / weight for name, weight in example.weights.items())

    loss, wanted = mean(steps[0][1]['params'])
    largest = max(np.abs(leaf).max() for leaf in jax.tree.leaves(wanted))
    for step, state in steps:
        state, metrics = step(state, batch, table)
        assert float(metrics['loss']) == pytest.approx(float(loss), rel=1e-5)
        found = flatten(state['optimizer'][1].mu)
        for name, gradient in flatten(wanted).items():
            np.testing.assert_allclose(
                np.asarray(found[name]) / 0.1, gradient, atol=1e-5 * largest, err_msg=name
            )


def test_what_it_cannot_do_and_another_objective_are_refused_in_one_line(trained, prepared):
    masked = {'phase__0__1__objective': 'mlm'}
    train = lambda run: execute(run, STAGES['pretrain'])  # noqa: E731
    for act, changes, refusal in (
        (
            *(check, {'curriculum__order': 'easy_to_hard'}),
            r'config\.curriculum\.order: easy_to_hard needs a perplexity .*previous',
        ),
        (check, masked, r'phase\.0\.1\.objective: mlm and .*previous train .*previous/kernel'),
        (
            *(check, {**masked, 'curriculum__order': 'self_paced'}),
            r'curriculum\.order: self_paced compares phases by .*previous, but .*mlm',
        ),
        (train, {'pretrain__objective': 'mlm'}, r'config\.pretrain\.objective: previous -> mlm'),
    ):
        with pytest.raises(ConfigError, match=refusal):
            act(opened(prepared, trained.workdir, **changes))


def test_a_run_from_before_there_was_the_key_is_one_of_masked_lm(trained, prepared, tmp_path):
    """The manifest is that of the run here, but for what is of the key and of the file."""
    shutil.copytree(trained.workdir, tmp_path / 'run')
    lines = []
    record, own = trained.manifest('pretrain'), ('pretrain.objective', 'objective.previous.')
    settings = {name: value for name, value in record.settings.items() if not name.startswith(own)}
    assert len(settings) == len(record.settings) - 2
    inputs = {name: value for name, value in record.inputs.items() if not name.startswith('plug-in:')}
    assert len(inputs) == len(record.inputs) - 1
    before = dataclasses.replace(record, config=settings, inputs=inputs)
    write_manifest(tmp_path / 'run' / 'pretrain', before)
    again = Run(tmp_path / 'run', experiment(prepared))
    again.console.say = lines.append
    execute(again, STAGES['pretrain'])
    assert not any('step' in line for line in lines), lines
    with pytest.raises(ConfigError, match=r'config\.pretrain\.objective: mlm -> previous'):
        execute(opened(prepared, tmp_path / 'run'), STAGES['pretrain'])
