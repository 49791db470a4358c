"""Replaced-token detection: losses and gradients of transformers' two models, draws, starts, exports, refusals."""

import dataclasses
import functools
import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from toy_families import noisy
from toy_pretraining import assert_same_bits, copy_of, experiment, killed_copy, pretrained

from bioptimus_jax.errors import ConfigError, InputError
from bioptimus_jax.experiment import config
from bioptimus_jax.experiment.schema import Experiment
from bioptimus_jax.experiment.stages import STAGES
from bioptimus_jax.model.architecture import HEAD, OutputLayer
from bioptimus_jax.model.compute import PLAIN_COMPUTE
from bioptimus_jax.model.families.electra import Electra
from bioptimus_jax.model.tensors import load_folder, to_tensors
from bioptimus_jax.model.trees import flatten, unflatten
from bioptimus_jax.pretrain import curriculum
from bioptimus_jax.pretrain.checkpoint import load_phase
from bioptimus_jax.pretrain.cross_entropy import in_chunks
from bioptimus_jax.pretrain.masking import Masked
from bioptimus_jax.pretrain.objective import make_objective, objective_of, planned_objective
from bioptimus_jax.pretrain.objectives.mlm import MaskedRows
from bioptimus_jax.pretrain.objectives.rtd import PUBLISHED, auc, put_in, rates, targets_and_draws
from bioptimus_jax.pretrain.plan import Assumptions, make_plan
from bioptimus_jax.pretrain.shape import RowCounts
from bioptimus_jax.pretrain.sharding import make_mesh
from bioptimus_jax.pretrain.step import example_at, sharded_step
from bioptimus_jax.report.measures import read_measures
from bioptimus_jax.report.records import measures_of, record_of
from bioptimus_jax.report.sections import training
from bioptimus_jax.run.execute import execute
from bioptimus_jax.run.folder import Run
from bioptimus_jax.storage.files import read_json
from bioptimus_jax.tokenizer.kinds.wordpiece import SPECIAL_TOKENS, make

ROWS, PIECES, TOKENS = 8, 32, 200
NAMES = [*SPECIAL_TOKENS, *(f't{n}' for n in range(TOKENS - len(SPECIAL_TOKENS)))]
MODEL = Electra(TOKENS, 24, 1, 4, 40, PIECES, dropout=0.0, attention_dropout=0.0)


class Parts:
    """An objective, its table, parameters far from their start, and a batch: a document a row, or two."""

    def __init__(self, mesh=(1, 1, 1), model=MODEL, documents=1, **changes):
        loaded = config.defaults()
        loaded.pretrain.update(objective='rtd', batch_rows=ROWS, clip_norm=0.0, learning_rate=1e-3)
        loaded.phases = ('0.1',)
        loaded.phase['0.1'].update(duration=4.0, duration_unit='steps', corruption=(0.85, 0.0, 0.15))
        changes = {'objective.rtd.share': 1 / 2, 'objective.rtd.heads': 2, **changes}
        for dotted, value in changes.items():
            config.override(loaded, dotted, str(value))
        self.config = Experiment.from_config(loaded)
        _, fsdp, tensor = mesh
        made = make_mesh(math.prod(mesh), fsdp, tensor)
        self.objective = make_objective(self.config, model, make(NAMES, True), PIECES, made, print)
        counts = RowCounts(ROWS, 1, 1)
        self.table = curriculum.table(curriculum.make_schedule(self.config, counts), self.config)
        self.step, self.state = sharded_step(self.objective, made, noisy(model).params)
        draw = np.random.default_rng(7)
        drawn = {path: draw.normal(0, 0.2, v.shape) for path, v in flatten(self.state['params']).items()}
        self.params = unflatten(
            {
                path: np.asarray(leaf) + drawn[path].astype(np.float32)
                for path, leaf in flatten(self.state['params']).items()
            }
        )
        lengths = draw.integers(PIECES // 4, PIECES // documents + 1, (ROWS, documents))
        tokens = np.zeros((ROWS, PIECES), np.int32)
        for row, of_row in enumerate(lengths):
            for end, length in zip(of_row.cumsum(), of_row, strict=True):
                tokens[row, end - length : end] = [2, *draw.integers(5, TOKENS, length - 2), 3]
        self.batch = {
            'tokens': tokens,
            'word_starts': tokens > 0,
            'segment_lengths': lengths.astype(np.int32),
        }

    @functools.cached_property
    def example(self):
        return jax.jit(lambda batch: example_at(self.objective, batch, self.table, jnp.int32(1)))(self.batch)

    def drawn(self, rows):
        """What the generator draws for the slots."""
        return jax.jit(lambda params, rows: self.objective.draw(params, rows, None)[-1])(self.params, rows)


@pytest.fixture(scope='module')
def parts():
    return Parts()


@functools.cache
def terms_and_gradients(parts):
    """The two means, the sums, and the gradient of either mean."""
    example = parts.example

    @jax.jit
    def of(params):
        def means(params):
            terms, sums = parts.objective.loss(params, {}, example.rows, None)
            return {name: terms[name] / weight for name, weight in example.weights.items()}, sums

        found, back, sums = jax.vjp(means, params, has_aux=True)
        one, none = jnp.float32(1), jnp.float32(0)
        return found, sums, {name: back({n: one if n == name else none for n in found})[0] for name in found}

    return of(parts.params)


@pytest.mark.parametrize('narrow', [0, 10])
def test_losses_and_gradients_are_those_of_transformers_two_models_with_one_embedding_block(narrow, parts):
    """Tables and LayerNorm of one class put into the other; ids that were drawn here."""
    import torch
    from transformers import ElectraConfig, ElectraForMaskedLM, ElectraForPreTraining

    parts = Parts(model=dataclasses.replace(MODEL, embedding_size=narrow)) if narrow else parts
    means, _, gradients = terms_and_gradients(parts)
    gradients = jax.tree.map(jnp.add, *gradients.values())
    rows = parts.example.rows
    masked, drawn = rows.masked.masked, np.asarray(parts.drawn(rows))
    exported = parts.objective.exports(parts.params)
    theirs = {}
    for suffix, kind in (('', ElectraForPreTraining), ('-generator', ElectraForMaskedLM)):
        architecture, params = exported[suffix]
        settings = ElectraConfig(**architecture.to_config(), attn_implementation='eager')
        theirs[suffix] = kind(settings).eval()
        state = {name: torch.from_numpy(value) for name, value in to_tensors(params, architecture).items()}
        result = theirs[suffix].load_state_dict(state, strict=False)
        assert set(result.missing_keys) <= {'generator_lm_head.weight'}
        assert not result.unexpected_keys
    discriminator, generator = theirs.values()
    # Padding may be drawn too; torch would keep its row as it is.
    discriminator.electra.embeddings.word_embeddings.padding_idx = None
    for name in ('word_embeddings', 'position_embeddings', 'token_type_embeddings', 'LayerNorm'):
        setattr(generator.electra.embeddings, name, getattr(discriminator.electra.embeddings, name))
    generator.generator_lm_head.weight = discriminator.electra.embeddings.word_embeddings.weight

    real = parts.batch['tokens'] > 0
    inputs, slots, weights, targets = (
        np.array(x) for x in (masked.inputs_L, masked.slots_M, masked.weights_M, masked.targets_M)
    )
    labels, tokens, replaced = (
        np.full(inputs.shape, -100),
        parts.batch['tokens'].copy(),
        np.zeros(inputs.shape),
    )
    for row, slot in zip(*np.nonzero(weights), strict=True):
        at = row, slots[row, slot]
        labels[at], tokens[at] = targets[row, slot], drawn[row, slot]
        replaced[at] = parts.batch['tokens'][at] != drawn[row, slot]
    assert 0 < (tokens != parts.batch['tokens']).sum() <= (weights > 0).sum()
    mask = torch.from_numpy(real.astype(np.int64))
    of_generator = generator(
        input_ids=torch.from_numpy(inputs).long(), attention_mask=mask, labels=torch.from_numpy(labels)
    ).loss
    logits = discriminator(input_ids=torch.from_numpy(tokens).long(), attention_mask=mask).logits
    of_discriminator = torch.nn.functional.binary_cross_entropy_with_logits(
        logits[mask > 0], torch.from_numpy(replaced)[mask > 0].float()
    )
    (of_generator + 50 * of_discriminator).backward()
    assert float(means['slots']) == pytest.approx(of_generator.item(), rel=1e-5)
    assert float(means['pieces']) == pytest.approx(50 * of_discriminator.item(), rel=1e-5)
    for suffix, (architecture, ours) in parts.objective.exports(gradients).items():
        wanted = {name: value.grad.numpy() for name, value in theirs[suffix].named_parameters()}
        found = to_tensors(ours, architecture)
        assert found.keys() == wanted.keys() - {'generator_lm_head.weight'}
        for name, value in found.items():
            largest = max(np.abs(wanted[name]).max(), 1e-3)
            np.testing.assert_allclose(value, wanted[name], atol=2e-4 * largest, rtol=0, err_msg=name)


def test_a_lucky_guess_replaces_nothing_and_empty_slots_put_nothing_in(parts):
    """Slots by hand at 3, 1 and 5; the second is guessed, the last two are empty and point at place 0."""
    masked = Masked(
        inputs_L=jnp.array([[2, 4, 8, 4, 9, 4, 3]]),
        slots_M=jnp.array([[3, 1, 5, 0, 0]]),
        targets_M=jnp.array([[11, 12, 13, 2, 2]]),
        weights_M=jnp.array([[1.0, 1.0, 1.0, 0.0, 0.0]]),
        kinds_M=jnp.zeros((1, 5), int),
        begins_M=jnp.ones((1, 5), bool),
    )
    drawn = jnp.array([[21, 12, 23, 99, 99]])
    assert put_in(masked.inputs_L, masked, drawn).tolist() == [[2, 12, 8, 21, 9, 23, 3]]
    places = jnp.ones((1, 7), jnp.int32), jnp.arange(7)[None]
    rows = MaskedRows(masked, *places)
    judged = jax.jit(lambda *given: parts.objective.judge(*given, None))(parts.params, rows, drawn)
    assert judged.replaced_BxL.tolist() == [[False, False, False, True, False, True, False]]
    batch = {'tokens': jnp.array([[2, 12, 8, 21, 9, 23, 3]]), 'segments': places[0], 'positions': places[1]}

    @jax.jit
    def logits(params):
        return parts.objective.discriminator.logits(params, MODEL.encode(params, batch))

    np.testing.assert_allclose(judged.logits_BxL, logits(parts.params), atol=1e-5)


@pytest.mark.parametrize('special', [True, False])
def test_every_piece_is_judged_and_special_ones_by_a_setting(special):
    parts = Parts(documents=2, **{'objective.rtd.special': special})
    tokens, example = parts.batch['tokens'], parts.example
    wanted = tokens > (0 if special else 3)
    np.testing.assert_array_equal(example.rows.judged_BxL, wanted)
    assert int(example.weights['pieces']) == wanted.sum()


def test_draws_follow_the_softmax_and_not_the_chunk():
    """300 tokens in three blocks; 40,000 draws from one distribution, and some of them alone."""
    draw, rows, slots = np.random.default_rng(0), 500, 80
    logits = np.where(draw.random(300) < 0.9, -3.0, draw.normal(2, 1, 300)).astype(np.float32)
    bias = np.concatenate([logits, np.full(84, np.finfo(np.float32).min, np.float32)])
    layer = OutputLayer(np.zeros((rows, slots, 8), np.float32), np.zeros((384, 8), np.float32), bias)
    keys = jax.random.key_data(jax.random.split(jax.random.key(1), (rows, slots)))
    others, weights = (np.zeros((rows, slots), np.int32), keys), np.ones((rows, slots), np.float32)
    every = in_chunks(targets_and_draws, (layer,), others, weights, PLAIN_COMPUTE)[1][-1]
    found = np.bincount(np.asarray(every).ravel(), minlength=384) / every.size
    shares = np.exp(logits) / np.exp(logits).sum()
    assert not found[300:].any()
    assert (np.abs(found[:300] - shares) < 5 * np.sqrt(shares / every.size) + 1e-6).all()
    few = jax.tree.map(lambda x: x[7:9, :24], others)
    layer = layer._replace(states_BxMxD=layer.states_BxMxD[7:9, :24])
    alone = in_chunks(targets_and_draws, (layer,), few, weights[7:9, :24], PLAIN_COMPUTE)[1][-1]
    np.testing.assert_array_equal(alone, every[7:9, :24])


def test_no_gradient_goes_through_what_is_drawn(parts):
    """The discriminator's term does not reach what the generator has of its own, and the generator's not the head."""
    gradients = terms_and_gradients(parts)[-1]
    of_pieces, of_slots = (flatten(gradients[name]) for name in ('pieces', 'slots'))
    own = [path for path in of_pieces if path.startswith('generator/')]
    assert own
    assert not any(np.any(of_pieces[path]) for path in own)
    of_discriminator = [p for p in of_slots if p.startswith((f'{HEAD}/', 'encoder/'))]
    assert not any(np.any(of_slots[path]) for path in of_discriminator)
    for gradients in (of_pieces, of_slots):
        assert all(np.any(gradients[path]) for path in gradients if path.startswith('embeddings/'))


def test_nothing_leaks_between_documents_of_a_row():
    """The second document of every row has other pieces: the first one's draws, labels and logits keep their bits."""
    parts = Parts(documents=2)
    rows = parts.example.rows
    second = np.asarray(rows.masked.segments_BxL) == 2
    masked = rows.masked.masked
    of_second = np.take_along_axis(second, np.asarray(masked.slots_M), 1)
    other = rows._replace(
        masked=rows.masked._replace(
            masked=masked._replace(
                inputs_L=jnp.where(second, 77, masked.inputs_L),
                targets_M=jnp.where(of_second, 78, masked.targets_M),
            )
        )
    )
    both = jax.jit(lambda rows: (parts.drawn(rows), parts.objective.both(parts.params, rows, None)[2]))
    (drawn, judged), (drawn_beside, judged_beside) = both(rows), both(other)
    np.testing.assert_array_equal(np.asarray(drawn)[~of_second], np.asarray(drawn_beside)[~of_second])
    first = np.asarray(rows.masked.segments_BxL) == 1
    for one, two in zip(judged, judged_beside, strict=True):
        np.testing.assert_array_equal(np.asarray(one)[first], np.asarray(two)[first])
    assert (np.asarray(judged.logits_BxL) != np.asarray(judged_beside.logits_BxL))[second].any()


def test_micro_batches_on_a_mesh_give_the_loss_and_gradients_of_the_whole_batch(parts):
    """Rows are of different lengths, so parts weigh differently; first moments are a tenth of the gradients."""
    many = Parts((2, 2, 2), **{'pretrain.micro_batches': 2})
    means, sums, gradients = terms_and_gradients(parts)
    shardings = jax.tree.map(lambda leaf: leaf.sharding, many.state['params'])
    state = {**many.state, 'params': jax.device_put(parts.params, shardings), 'step': jnp.int32(1)}
    state, metrics = many.step(jax.tree.map(jnp.copy, state), many.batch, many.table)
    assert int(sums['replaced']) > 0
    assert float(metrics['loss']) == pytest.approx(float(sum(means.values())), rel=1e-5)
    for name in ('generator_loss', 'discriminator_loss', 'replaced', 'guessed', 'judged', 'right'):
        assert float(metrics[name]) == pytest.approx(float(sums[name]), rel=1e-5), name
    moments = flatten(state['optimizer'][1].mu)
    for path, gradient in flatten(jax.tree.map(jnp.add, *gradients.values())).items():
        moment = 0.1 * np.asarray(gradient)
        largest = max(np.abs(moment).max(), 1e-4)
        np.testing.assert_allclose(moments[path], moment, atol=2e-4 * largest, err_msg=path)


def test_rates_and_the_area_by_hand():
    sums = dict.fromkeys(('generator_loss', 'weight', 'correct', 'guessed'), 4.0)
    sums |= dict(discriminator_loss=5.0, judged=20, replaced=4, flagged=5, caught=3, right=17, weight=8)
    found = rates(sums)
    assert found['replaced'] == 0.2
    assert (found['precision'], found['recall'], found['discriminator_accuracy']) == (0.6, 0.75, 0.85)
    assert (found['generator_accuracy'], found['sampled_accuracy'], found['discriminator_loss']) == (
        0.5,
        0.5,
        0.25,
    )
    assert rates(dict.fromkeys(sums, 0))['precision'] == 0
    draw = np.random.default_rng(0)
    scores, positive = draw.integers(0, 9, 60) / 4, draw.random(60) < 0.3
    pairs = [(a > b) + (a == b) / 2 for a in scores[positive] for b in scores[~positive]]
    assert auc(scores, positive) == pytest.approx(np.mean(pairs))
    assert auc(scores, np.zeros(60, bool)) == 0.5


RTD = {
    'model.family': 'electra',
    'model.max_positions': 40,
    'pretrain.objective': 'rtd',
    'objective.rtd.share': 0.5,
    'model.dropout': 0.0,
    'model.attention_dropout': 0.0,
    'phases': '0.1,0.2',
}


@pytest.fixture(scope='module')
def trained(prepared, tmp_path_factory):
    """Two phases from scratch, exported; beside it what a kill leaves when the first phase is over."""
    folder = tmp_path_factory.mktemp('rtd')
    run = Run(copy_of(prepared, folder), experiment(prepared, **RTD), quiet=True)
    execute(run, STAGES['surgery'], replace=True)
    with killed_copy(run, folder / 'killed', lambda step: step > 6):
        pretrained(run)
    execute(run, STAGES['export'])
    return run


def test_it_trains_is_scored_and_tells_whether_it_is_healthy(trained):
    records = trained.metrics.of('pretrain')
    scored = [r for r in records if r['kind'] == 'evaluation']
    assert scored[0]['frozen_loss'] == pytest.approx(np.log(300), rel=0.05)
    assert scored[0]['frozen_loss'] == pytest.approx(scored[0]['frozen_generator_loss'], rel=1e-5)
    assert scored[-1]['frozen_loss'] < scored[0]['frozen_loss']
    assert set(scored[-1]['losses']) == {'0.1', '0.2'}
    for record in scored:
        assert 0.4 < record['frozen_auc'] <= 1
    assert scored[0]['frozen_discriminator_loss'] == pytest.approx(np.log(2), rel=0.1)
    told = [r for r in records if r['kind'] == 'train']
    for record in told:
        assert record['replaced'] <= record['realised_rate']
        assert record['loss'] == pytest.approx(
            record['generator_loss'] + 50 * record['discriminator_loss'], rel=0.02
        )
    assert told[0]['replaced'] == pytest.approx(0.15 * 0.9, rel=0.2)
    assert told[-1]['discriminator_loss'] < told[0]['discriminator_loss']
    measures = read_measures(trained)
    table, drawn = training.objective(measures), training.objective_curves(measures)
    assert [column for column in table.columns if column not in ('phase', 'step')] == [
        *'generator loss,generator accuracy,sampled accuracy,replaced,discriminator loss'.split(','),
        *'discriminator accuracy,precision,recall,auc'.split(','),
    ]
    by_name = dict(zip(table.columns, (cell.text for cell in table.rows[-1]), strict=True))
    assert float(by_name['auc']) == pytest.approx(scored[-1]['frozen_auc'], abs=6e-4)
    assert float(by_name['replaced']) == pytest.approx(scored[-1]['frozen_replaced'], abs=6e-4)
    assert 'auc: held out' in drawn.alt
    assert 'replaced: training' in drawn.alt
    kept = measures_of(record_of('rtd', measures), trained.workdir, trained.config)
    assert [[c.text for c in row] for row in training.objective(kept).rows] == [
        [c.text for c in row] for row in table.rows
    ]


def test_a_run_that_was_killed_ends_with_the_same_bits(trained):
    again = pretrained(Run(trained.workdir.parent / 'killed', trained.config, quiet=True))
    assert_same_bits(trained, again, '0.2')


def test_both_models_are_exported_behind_the_gate_and_say_what_they_are(trained):
    from transformers import AutoModelForMaskedLM, AutoModelForPreTraining

    folder = trained.workdir / 'export'
    assert {p.name for p in folder.iterdir() if p.is_dir()} == {
        '0.1',
        '0.1-generator',
        '0.2',
        '0.2-generator',
    }
    assert trained.manifest('export').counts['gate'].keys() == {
        '0.1',
        '0.1-generator',
        '0.2',
        '0.2-generator',
    }
    assert read_json(folder / '0.2' / 'config.json')['architectures'] == ['ElectraForPreTraining']
    assert read_json(folder / '0.2-generator' / 'config.json')['architectures'] == ['ElectraForMaskedLM']
    discriminator, told = AutoModelForPreTraining.from_pretrained(folder / '0.2', output_loading_info=True)
    assert not any(told.values()), told
    generator = AutoModelForMaskedLM.from_pretrained(folder / '0.2-generator')
    for name in ('word_embeddings', 'position_embeddings', 'token_type_embeddings', 'LayerNorm'):
        one, other = (getattr(m.electra.embeddings, name).weight for m in (discriminator, generator))
        np.testing.assert_array_equal(one.detach(), other.detach(), err_msg=name)
    params = load_phase(trained.folder('pretrain'), '0.2')
    _, read, _ = load_folder(folder / '0.2', masked_lm=False)
    wanted = {path: value for path, value in flatten(params).items() if not path.startswith('generator/')}
    assert flatten(read).keys() == wanted.keys()
    for path, value in flatten(read).items():
        np.testing.assert_array_equal(value, wanted[path], err_msg=path)
    card, of_generator = ((folder / name / 'README.md').read_text() for name in ('0.2', '0.2-generator'))
    assert 'fill-mask' not in card
    assert 'masked-lm' not in card
    assert 'An ELECTRA discriminator of replaced tokens' in card
    assert 'pipeline_tag: fill-mask' in of_generator
    assert 'An ELECTRA masked language model' in of_generator


def test_the_code_on_the_card_of_a_discriminator_runs(trained, monkeypatch, capsys):
    folder = trained.workdir / 'export' / '0.2'
    code = (folder / 'README.md').read_text().split('```python\n')[1].split('```')[0]
    monkeypatch.chdir(folder)
    exec(compile(code, 'README.md', 'exec'), {})
    assert '[CLS]' in capsys.readouterr().out


def test_exports_are_kept_and_a_lost_generator_is_made_again(trained):
    folder, lines = trained.workdir / 'export', []
    again = Run(trained.workdir, trained.config)
    again.console.say = lines.append
    (folder / '0.1-generator' / 'model.safetensors').unlink()
    content = trained.manifest('export').content
    STAGES['export'].build(again, folder)
    assert any('0.2 is there already' in line for line in lines)
    assert any('0.1-generator agrees with transformers' in line for line in lines)
    assert trained.manifest('export').content == content


def test_a_source_gives_the_head_and_a_folder_the_generator(trained, prepared, tmp_path):
    """What was exported is where the next training begins; with another vocabulary the generator's bias begins at 0."""
    export = trained.workdir / 'export'
    model = load_folder(export / '0.2')[0]
    settings = {**RTD, 'source.path': export / '0.2', 'objective.rtd.generator': export / '0.2-generator'}
    wanted = flatten(load_phase(trained.folder('pretrain'), '0.2'))
    for strategy, kind in (('copy', 'source'), ('averaged_input', 'train')):
        changes = {**settings, 'surgery.strategy': strategy, 'vocab.kind': kind}
        made = experiment(prepared, **changes)
        objective_of(made).check(made)
        objective = planned_objective(made, model)
        started = objective.start(load_folder(export / '0.2')[1], jax.random.key(5))
        found = flatten(started)
        assert found.keys() == wanted.keys()
        for path, value in wanted.items():
            if kind == 'source' or not path.endswith('predictions/bias'):
                np.testing.assert_array_equal(found[path], value, err_msg=path)
            else:
                assert not np.any(found[path])
        files = {str(file) for file in objective_of(made).files(made)}
        assert {str(export / name / 'model.safetensors') for name in ('0.2', '0.2-generator')} <= files
    head = 'cls/predictions/dense/kernel'
    random = flatten(planned_objective(experiment(prepared, **RTD), model).start(started, jax.random.key(5)))
    assert np.any(random[head])
    assert not np.array_equal(random[head], wanted[head])
    changes = {'surgery.strategy': 'copy', 'vocab.kind': 'source', 'source.path': export / '0.1'}
    other = planned_objective(experiment(prepared, **{**settings, **changes}), model)
    with pytest.raises(
        InputError, match=r'0\.2-generator: its embeddings/.* is not that of .*0\.1; take a generator'
    ):
        other.start(load_folder(export / '0.1')[1], jax.random.key(5))


REFUSED = {
    'no source': (
        {'source.path': '', 'surgery.strategy': 'scratch', 'vocab.kind': 'train'},
        r'name that one in config\.source\.path',
    ),
    'a discriminator': (
        {'objective.rtd.generator': '0.2'},
        'holds ElectraForPreTraining, which is not a generator',
    ),
    'another shape': (
        {'objective.rtd.share': 0.25},
        r'hidden is 8, not 4; intermediate is 32, not 16, as the source',
    ),
    'an order': (
        {'curriculum.order': 'easy_to_hard'},
        'easy_to_hard needs a perplexity .*objective=rtd does not have',
    ),
}


@pytest.mark.parametrize('name', REFUSED)
def test_what_cannot_be_is_refused_in_one_line(name, trained, prepared):
    export = trained.workdir / 'export'
    changes, expected = REFUSED[name]
    given = {**RTD, 'source.path': export / '0.2', 'objective.rtd.generator': '0.2-generator'}
    given |= {'surgery.strategy': 'copy', 'vocab.kind': 'source', **changes}
    if given['objective.rtd.generator']:
        given['objective.rtd.generator'] = export / given['objective.rtd.generator']
    wanted = experiment(prepared, **given)
    with pytest.raises(ConfigError, match=expected) as caught:
        objective_of(wanted).check(wanted)
    assert '\n' not in str(caught.value)


def test_flops_by_hand():
    """A piece takes 2 x kernels and 4 x attended x width in each layer, both models; all through one head, slots
    through the other; three times for forward and backward."""
    parts = Parts(model=dataclasses.replace(MODEL, layers=2))
    hidden, wide, small, attended, predicted = 24, 40, 12, 17.0, 3.0
    layer = 2 * (4 * hidden**2 + 2 * hidden * wide) + 4 * attended * hidden
    of_small = 2 * (4 * small**2 + 2 * small * 48) + 4 * attended * small
    head = 2 * (hidden**2 + hidden)
    predicting = 2 * (small * hidden + 256 * hidden)
    wanted = 10 * (2 * layer + head + 2 * of_small + 2 * hidden * small) + predicted * predicting
    # The generator's last layer is for the slots alone, behind its attention.
    wanted -= (10 - predicted) * 2 * (small**2 + 2 * small * 48)
    assert parts.objective.flops(10, 10 * attended, predicted) == pytest.approx(3 * wanted)


@pytest.mark.parametrize('name', PUBLISHED)
def test_the_configs_schedule_is_the_published_one(name):
    """Steps, rates and batches of the two papers; generators are 256 wide, and 64 in small."""
    loaded = Experiment.from_config(config.load(f'electra:{name}'), paths=False)
    published = PUBLISHED[name]
    planned = make_plan(loaded, Assumptions(words=1e9))
    assert planned.steps == published.steps
    [scheduled] = curriculum.make_schedule(loaded, RowCounts(10**6, 10**9, 10**9))
    table = curriculum.table((scheduled,), loaded)
    steps = (published.warmup_steps // 2, published.warmup_steps, published.steps)
    rate = [curriculum.learning_rate_at(table, jnp.int32(step)) for step in steps]
    assert float(rate[1]) == pytest.approx(published.learning_rate, rel=1e-3)
    assert float(rate[0]) == pytest.approx(published.learning_rate / 2, rel=1e-2)
    assert float(rate[2]) < published.learning_rate * 1e-3
    objective = planned_objective(loaded, planned.architecture)
    assert objective.encoders[1].hidden == (64 if name.endswith('small') else 256)
    assert objective.encoders[1].heads == objective.encoders[1].hidden // 64
    assert loaded.pretrain.batch_rows == published.batch_rows
    assert loaded.phase['0.1'].corruption == (0.85, 0.0, 0.15)
    assert objective.settings.strength == 50
