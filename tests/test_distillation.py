"""Distillation against torch: the three terms, their weights, gradients of every parameter; what is refused; FLOPs."""

import dataclasses
import math
import shutil

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from toy_families import noisy, torch_inputs, torch_model
from toy_objectives import LENGTHS, PIECES, example_of
from toy_pretraining import experiment

from bioptimus_jax.errors import ConfigError, InputError
from bioptimus_jax.experiment import config
from bioptimus_jax.experiment.schema import Experiment
from bioptimus_jax.model.architecture import OutputLayer
from bioptimus_jax.model.compute import PLAIN_COMPUTE
from bioptimus_jax.model.families.bert import Bert
from bioptimus_jax.model.families.roberta import Roberta
from bioptimus_jax.model.tensors import load_folder, to_tensors, write_folder
from bioptimus_jax.pretrain import cross_entropy, curriculum
from bioptimus_jax.pretrain.cross_entropy import Divergence, in_chunks
from bioptimus_jax.pretrain.memory import step_memory
from bioptimus_jax.pretrain.objective import make_objective
from bioptimus_jax.pretrain.plan import Assumptions, check, make_plan
from bioptimus_jax.pretrain.shape import RowCounts
from bioptimus_jax.pretrain.sharding import make_mesh
from bioptimus_jax.run.folder import Run
from bioptimus_jax.tokenizer import subwords
from bioptimus_jax.tokenizer.kinds.wordpiece import SPECIAL_TOKENS, make

ROWS = len(LENGTHS)
STUDENT = Bert(200, 32, 1, 4, 64, 40)
TEACHER = Roberta(200, 24, 1, 3, 40, 44)  # another family, another width


@pytest.fixture(scope='module')
def words():
    return make([*SPECIAL_TOKENS, *(f't{n}' for n in range(195))], True)


@pytest.fixture(scope='module')
def teacher(tmp_path_factory, words):
    """The teacher's folder, and its weights."""
    vocab, folder = (tmp_path_factory.mktemp(name) for name in ('vocab', 'teacher'))
    (vocab / 'vocab.txt').write_text('\n'.join(words.tokens))
    model = noisy(TEACHER.padded_with(words.pad))
    write_folder(folder, *model, vocab)
    return folder, model


def made(words, **changes):
    c = config.defaults()
    c.pretrain.update(objective='distil', batch_rows=ROWS)
    c.rows.update(row_pieces=PIECES, max_document_pieces=PIECES)
    for dotted, value in changes.items():
        config.override(c, f'objective.distil.{dotted}', str(value))
    return make_objective(Experiment.from_config(c), STUDENT, words, PIECES, make_mesh(1), print)


@pytest.mark.parametrize(
    ('changes', 'counts', 'everywhere', 'temperature'),
    [
        ({}, (5, 2, 1), True, 2),  # as Bio-LM prints them
        (
            {'reading': 'distilbert', 'kl_positions': 'masked', 'temperature': 3.0},
            (2, 5, 1),
            False,
            3,
        ),
        ({'weights': '5,0,1'}, (5, 0, 1), True, 2),  # the cosine alone
    ],
)
def test_terms_and_gradients_equal_torch(
    changes, counts, everywhere, temperature, words, teacher, monkeypatch
):
    import torch
    from torch.nn import functional

    monkeypatch.setitem(cross_entropy.POSITIONS_PER_CHUNK, 'cpu', 24)  # three chunks of a row
    objective = made(words, teacher=teacher[0], **changes)
    example, student = example_of(objective), noisy(STUDENT)
    params = dict(objective.start(student.params, jax.random.key(1)))
    params['map'] = {**params['map'], 'bias': jnp.linspace(-0.1, 0.1, 24)}
    frozen = objective.frozen(params)
    assert set(example.weights) == {'slots', 'cosine', *(['kl'] if counts[1] else [])}

    def mean(params):
        terms, sums = objective.loss(params, frozen, example.rows, None)
        return sum(terms[n] / example.weights[n] for n in terms), (terms, sums)

    (found, (terms, sums)), gradients = jax.jit(jax.value_and_grad(mean, has_aux=True))(params)

    masked = example.rows.masked
    batch = {'tokens': np.asarray(masked.inputs_L), 'segments': np.asarray(example.rows.segments_BxL)}
    ours, theirs = torch_model(student), torch_model(teacher[1])
    said = ours(**torch_inputs(batch), output_hidden_states=True)
    with torch.no_grad():
        taught = theirs(**torch_inputs(batch), output_hidden_states=True)
    linear = torch.nn.Linear(32, 24)
    with torch.no_grad():
        linear.weight.copy_(torch.from_numpy(np.array(params['map']['kernel'].T)))
        linear.bias.copy_(torch.from_numpy(np.array(params['map']['bias'])))
    real = torch.from_numpy(batch['segments'] > 0)
    labels = torch.full((ROWS, PIECES), -100)
    for row, (slots, targets, weights) in enumerate(
        zip(*(np.asarray(x) for x in (masked.slots_M, masked.targets_M, masked.weights_M)))
    ):
        labels[row, slots[weights > 0]] = torch.from_numpy(targets[weights > 0].astype(np.int64))
    chosen = real if everywhere else labels >= 0
    likely = functional.log_softmax(said.logits[chosen] / temperature, -1)
    wanted = functional.softmax(taught.logits[chosen] / temperature, -1)
    last, of_teacher = (x.hidden_states[-1][real] for x in (said, taught))
    expected = {
        'slots': functional.cross_entropy(said.logits.flatten(0, 1), labels.flatten()),
        'kl': functional.kl_div(likely, wanted, reduction='batchmean') * temperature**2,
        'cosine': functional.cosine_embedding_loss(linear(last), of_teacher, torch.ones(len(last))),
    }
    by_name = dict(zip(('slots', 'kl', 'cosine'), counts))
    for name, term in terms.items():
        value = float(expected[name].detach())
        assert float(term / example.weights[name]) == pytest.approx(by_name[name] * value, rel=2e-5), name
        assert float(sums[name] / example.weights[name]) == pytest.approx(value, rel=2e-5), name
    loss = sum(by_name[name] * term for name, term in expected.items())
    assert float(found) == pytest.approx(float(loss.detach()), rel=2e-5)
    loss.backward()
    of_map = gradients.pop('map')
    np.testing.assert_allclose(of_map['kernel'].T, linear.weight.grad, atol=2e-6)
    np.testing.assert_allclose(of_map['bias'], linear.bias.grad, atol=2e-6)
    by_torch = {name: p.grad for name, p in ours.named_parameters()}
    for name, gradient in to_tensors(gradients, STUDENT).items():
        scale = float(by_torch[name].abs().max())
        np.testing.assert_allclose(gradient, by_torch[name], atol=2e-5 * max(scale, 1), err_msg=name)


def test_the_divergence_by_hand():
    # At T = 2 logits of 2 ln 3 and 0 are shares of 3/4 and 1/4; the student's are halves. KL = 3/4 ln 3/2 + 1/4 ln 1/2
    # = 0.304099 - 0.173287 = 0.130812; times 4: 0.523248. By the student's logits: T (q - p) = 2 (-1/4, 1/4).
    one = jnp.ones((1, 1, 1))
    lowest = np.finfo(np.float32).min  # a third column pads the vocabulary

    def loss(bias):
        layers = (
            OutputLayer(one, jnp.zeros((3, 1)), x) for x in (bias, jnp.array([2 * math.log(3), 0, lowest]))
        )
        return in_chunks(Divergence(2.0), tuple(layers), (), jnp.ones((1, 1)), PLAIN_COMPUTE)[0]

    value, gradient = jax.value_and_grad(loss)(jnp.array([0, 0, lowest]))
    assert float(value) == pytest.approx(0.523248, abs=1e-5)
    np.testing.assert_allclose(gradient, [-0.5, 0.5, 0], atol=1e-6)


def opened(tiny, **changes):
    distil = {'pretrain.objective': 'distil', 'objective.distil.teacher': tiny / 'teacher'}
    return Run(tiny / 'run', experiment(tiny, **{**distil, **changes}), quiet=True)


@pytest.mark.parametrize(
    ('changes', 'error', 'refusal'),
    [
        ({'objective.distil.teacher': ''}, ConfigError, r'config\.objective\.distil\.teacher: is empty'),
        (
            {'objective.distil.teacher': '/no/such'},
            InputError,
            r'/no/such: no such folder; config\.objective',
        ),
        ({'objective.distil.weights': '5,2'}, ConfigError, r'distil\.weights: three are needed'),
        (
            {'objective.distil.weights': '5,0,0'},
            ConfigError,
            r'nothing of the teacher counts; set config\.pretrain',
        ),
        ({'objective.distil.reading': 'other'}, ConfigError, r"distil\.reading: 'other' is not one of paper"),
        ({'objective.distil.temperature': '0'}, ConfigError, r'distil\.temperature: must be at least'),
        (
            {'rows.row_pieces': 64, 'rows.max_document_pieces': 50, 'model.max_positions': 64},
            ConfigError,
            r'max_document_pieces: 50 pieces, but the teacher .* has 38 positions',
        ),
        (
            {'runtime.tensor': 8, 'runtime.devices': 8},
            ConfigError,
            r'8 does not divide the 4 attention heads',
        ),
    ],
)
def test_what_cannot_be_is_one_line_before_anything_begins(changes, error, refusal, tiny):
    with pytest.raises(error, match=refusal) as caught:
        check(opened(tiny, **changes))
    assert '\n' not in str(caught.value)


def test_a_teacher_of_another_vocabulary_and_one_without_a_head_that_counts_are_refused(tiny, tmp_path):
    """A teacher of the same size: known ahead where the vocabulary is, else when training begins."""
    import safetensors.numpy

    teacher = 'objective.distil.teacher'
    other = shutil.copytree(tiny / 'teacher', tmp_path / 'other')
    tokens = (tiny / 'run' / 'vocab' / 'vocab.txt').read_text().split('\n')
    tokens[20], tokens[21] = tokens[21], tokens[20]
    (other / 'tokenizer.json').unlink(missing_ok=True)
    (other / 'vocab.txt').write_text('\n'.join(tokens))
    said = r'other: the teacher has another vocabulary \(300 tokens, and 300 here; .* id 20\)'
    ahead = {'vocab.kind': 'file', 'vocab.file': tiny / 'run' / 'vocab' / 'vocab.txt'}
    check(opened(tiny, **ahead))
    bare = shutil.copytree(tiny / 'teacher', tmp_path / 'bare')
    tensors = safetensors.numpy.load_file(bare / 'model.safetensors')
    kept = {name: x for name, x in tensors.items() if not name.startswith('lm_head')}
    safetensors.numpy.save_file(kept, bare / 'model.safetensors')

    def frozen(**changes):
        run = opened(tiny, **changes)
        architecture, params, _ = load_folder(run.folder('surgery') / 'model')
        words = subwords.load(run.folder('vocab'))
        return make_objective(run.config, architecture, words, 64, make_mesh(1), print).frozen(params)

    no_head = 'bare: the teacher has no head of a masked language model'
    for begin, given, message in (
        (lambda **changes: check(opened(tiny, **changes)), {**ahead, teacher: other}, said),
        (frozen, {teacher: other}, said),
        (frozen, {teacher: bare}, no_head),
    ):
        with pytest.raises(InputError, match=message):
            begin(**given)
    assert frozen(**{teacher: bare, 'objective.distil.weights': '1,0,1'})


def test_the_teacher_is_among_the_files_that_decide(tiny):
    run = opened(tiny)
    names = {file.name for file in make_class(run).files(run.config)}
    assert {'config.json', 'model.safetensors'} < names


def make_class(run):
    from bioptimus_jax.pretrain.objective import objective_of

    return objective_of(run.config)


def test_memory_and_flops_by_hand(tiny):
    shape = Bert(1000, 16, 2, 2, 32, 64)
    both = []
    for name in ('mlm', 'distil'):
        c = config.defaults()
        c.pretrain.objective = name
        if name == 'distil':
            config.override(c, 'objective.distil.shape', '3,24,4,48')
        both.append(Experiment.from_config(c))
    plain, own = (step_memory(e, shape, 'cpu', 1) for e in both)
    teacher = dataclasses.replace(shape, layers=3, hidden=24, heads=4, intermediate=48)
    size = 4 * sum(math.prod(s) for s in teacher.shapes().values())
    of_map = 4 * (16 * 24 + 24)
    assert own.parameters - plain.parameters == size + of_map
    assert own.optimizer - plain.optimizer == 2 * of_map
    # A piece that attends to 10. Student, forward: 2 x (2 x 16^2 x (4 + 2 x 2) + 4 x 10 x 16) = 9,472; head 2 x 16^2 +
    # 2 x 16 x 1,024 = 33,280, for 0.15 of the pieces, and for all where the divergence counts. Teacher: 3 x (2 x 24^2 x
    # 8 + 4 x 10 x 24) = 30,528; head 2 x 24^2 + 2 x 24 x 1,024 = 50,304. Map: 6 x 16 x 24 = 2,304.
    objective = make_class(Run(tiny / 'run', both[1]))(both[1], shape, None, 512)
    assert objective.flops(1, 10, 0.15) == pytest.approx(3 * (9472 + 1.15 * 33280) + 30528 + 50304 + 2304)


# Bio-LM, section 7.1: what its distilled models were trained with.
ARMS = {
    'distil': ('distil', (5.0, 2.0, 0.0)),
    'align': ('distil', (5.0, 2.0, 1.0)),
    'distil_distilbert': ('distil', (2.0, 5.0, 0.0)),
    'align_distilbert': ('distil', (2.0, 5.0, 1.0)),
    'cosine': ('distil', (5.0, 0.0, 1.0)),
    'longer': ('mlm', None),
}


@pytest.mark.parametrize('arm', ARMS)
def test_the_recipe_has_the_published_schedule(arm):
    wanted = Experiment.from_config(config.load(f'distil:{arm}'), paths=False)
    objective, counts = ARMS[arm]
    assert wanted.pretrain.objective == objective
    if counts:
        settings = wanted.objective[objective]
        assert tuple(settings.counts) == counts
        assert (settings.temperature, settings.kl_positions) == (2.0, 'all')
    settings = wanted.pretrain
    adam = (settings.beta1, settings.beta2, settings.epsilon, settings.weight_decay, settings.clip_norm)
    assert adam == (0.9, 0.98, 1e-6, 0.01, 0.0)
    assert (settings.batch_rows, wanted.rows.row_pieces, settings.decay) == (8192, 512, 'all')
    [phase] = schedule = curriculum.make_schedule(wanted, RowCounts(10**6, 1, 1))
    assert (phase.phase.rate, phase.phase.corruption, phase.stop) == (0.15, (0.8, 0.1, 0.1), 50_000)
    table = curriculum.table(schedule, wanted)
    rates = [float(curriculum.learning_rate_at(table, step)) for step in (0, 2499, 26_250, 49_999)]
    assert rates == pytest.approx([5e-4 / 2500, 5e-4, 2.5e-4, 5e-4 / 47_500], rel=1e-3)
    planned = make_plan(wanted, Assumptions())
    teacher = 3880 / 1160  # what configs/biolm.py says of large and base
    assert planned.steps == 50_000
    if counts and counts[1]:
        assert planned.flops / make_plan(
            Experiment.from_config(config.load('distil:longer'), paths=False), Assumptions()
        ).flops == pytest.approx(1 + teacher / 3, rel=0.3)
