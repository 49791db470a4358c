"""The gradient fit beyond its defaults: layer, cross-entropy, disagreement of every token, a second fit."""

import dataclasses
import functools

import jax
import numpy as np
import pytest
import torch
from safetensors.numpy import load_file, save_file
from toy_families import Model, torch_inputs, torch_model
from toy_source import OLD, TABLE, WORD, built, make_run, make_source
from toy_spelling import FOUND, NEW, SPELLING

from bioptimus_jax.errors import ConfigError, InputError
from bioptimus_jax.experiment import config
from bioptimus_jax.experiment.schema import Experiment
from bioptimus_jax.model import tensors
from bioptimus_jax.model.families.electra import Electra
from bioptimus_jax.model.families.modernbert import ModernBert
from bioptimus_jax.model.families.roberta import Roberta
from bioptimus_jax.model.trees import flatten, unflatten
from bioptimus_jax.surgery import distil, fit, graft, initialisations
from bioptimus_jax.surgery.config import Surgery
from bioptimus_jax.surgery.distil import Aim
from bioptimus_jax.vocab import lists

SENTENCES = [
    'the drug of x',
    'drug',
    'the naive of the drug',
    'x of drug the',
    'na - drug of',
    'the drugs naive',
]


def taught_by(source, words=('drug', 'naive')):
    spans = {
        n: {k: [(s.index(w), s.index(w) + len(w))] for k, w in enumerate(words) if w in s}
        for n, s in enumerate(SENTENCES)
    }
    return distil.lessons(source, SENTENCES, spans)


def theirs(source, rows_NxD):
    """The source in transformers, with the new tokens appended to its vocabulary."""
    architecture, count = source.architecture, len(OLD)
    wider = dataclasses.replace(architecture, vocab_size=count + len(rows_NxD))
    flat = {path: np.array(values) for path, values in flatten(source.parameters).items()}
    flat[architecture.table][count : count + len(rows_NxD)] = rows_NxD
    flat[architecture.output_bias][count : count + len(rows_NxD)] = 0
    return torch_model(Model(wider, unflatten(flat)))


def of_one(model, tokens_P):
    """States of every layer, and logits, of one sequence."""
    one = {'tokens': np.array(tokens_P)[None], 'segments': np.ones((1, len(tokens_P)), np.int32)}
    with torch.no_grad():
        found = model(**torch_inputs(one), output_hidden_states=True)
    return [states[0].numpy() for states in found.hidden_states], found.logits[0]


def plainly(source, rows_NxD, taught, layer):
    """Disagreement of every lesson: transformers, one context at a time, the row in the table, without padding."""
    model, found = theirs(source, rows_NxD), []
    for x, target in enumerate(taught.target):
        spelled, own = (
            taught.source[x, : taught.source_length[x]],
            taught.own[x, : taught.own_length[x]].copy(),
        )
        own[taught.slot[x]] = len(OLD) + target
        wanted_PxD, got_PxD = (of_one(model, tokens)[0][layer] for tokens in (spelled, own))
        behind = len(spelled) - len(own)
        pairs = [(p, p + behind * (p > taught.slot[x])) for p in range(len(own)) if p != taught.slot[x]]
        found.append(np.mean([((got_PxD[p] - wanted_PxD[q]) ** 2).mean() for p, q in pairs]))
    return np.array(found)


# Slow: a layer between the first and the last one, which the gradient below is measured at.
@pytest.mark.parametrize('layer', [1, pytest.param(2, marks=pytest.mark.slow), 3])
def test_disagreements_are_those_of_a_plain_loop(layer):
    source = make_source(OLD, layers=3)
    taught = taught_by(source)
    drawn = np.random.default_rng(0)
    several = [drawn.normal(size=(2, 16)) * 0.3 for _ in range(2)]
    measured = fit.disagreements(source, taught, several, layer)
    for rows_NxD, found_X in zip(several, measured, strict=True):
        np.testing.assert_allclose(found_X, plainly(source, rows_NxD, taught, layer), rtol=2e-4)
    last = fit.disagreements(source, taught, several[:1], -1)[0]
    if layer == 3:
        np.testing.assert_allclose(last, measured[0], rtol=1e-5)
    else:
        assert np.abs(last - measured[0]).min() > 1e-4


@pytest.mark.parametrize('layer', [2])
def test_the_gradient_is_that_of_the_plain_loss(layer):
    """Central differences of the plain loop, which weights every piece of the batch alike."""
    source = make_source(OLD, layers=3)
    taught = taught_by(source)
    rows_NxD = np.random.default_rng(1).normal(size=(2, 16)) * 0.3
    batch = taught._asdict()
    slot_D = source.table()[source.subwords.mask]
    loss = functools.partial(
        distil._loss,
        parameters=source.parameters,
        architecture=source.architecture,
        slot_D=slot_D,
        batch=batch,
        aim=Aim(layer),
    )
    weights_X = taught.own_length - 1

    def plain(rows_NxD):
        return (plainly(source, rows_NxD, taught, layer) * weights_X).sum() / weights_X.sum()

    gradient_NxD = np.asarray(jax.jit(jax.grad(loss))(rows_NxD.astype(np.float32)))
    for place in ((0, 3), (1, 11)):
        step = np.zeros((2, 16))
        step[place] = 0.02
        slope = (plain(rows_NxD + step) - plain(rows_NxD - step)) / 0.04
        np.testing.assert_allclose(gradient_NxD[place], slope, rtol=0.03, atol=2e-5)


def test_layers_above_are_not_computed():
    source = make_source(OLD, layers=3)
    batch = taught_by(source)._asdict()
    slot_D, rows_NxD = source.table()[0], np.zeros((2, 16), np.float32)

    def flops(layer):
        @jax.jit
        def gradient(rows_NxD, parameters):
            return jax.grad(distil._loss)(
                rows_NxD, parameters, source.architecture, slot_D, batch, Aim(layer)
            )

        return gradient.lower(rows_NxD, source.parameters).compile().cost_analysis()['flops']

    assert flops(1) < 0.5 * flops(-1)


def family(name):
    shape = dict(hidden=16, layers=2, heads=2, intermediate=24, max_positions=32, initializer_range=0.3)
    made = {
        'roberta': lambda: Roberta(vocab_size=len(OLD), **shape | {'max_positions': 34}),
        'modernbert': lambda: ModernBert(vocab_size=len(OLD), **shape),
        'electra': lambda: Electra(vocab_size=len(OLD), embedding_size=8, **shape),
    }[name]()
    source = make_source(OLD, layers=2)
    parameters = jax.tree.map(np.array, made.initial_parameters(jax.random.key(3)))
    parameters['cls']['predictions']['bias'][: len(OLD)] = np.linspace(-1, 1, len(OLD))
    return dataclasses.replace(source, architecture=made, parameters=parameters)


@pytest.mark.parametrize('name', ['bert', 'roberta', 'modernbert', 'electra'])
def test_naming_is_the_loss_of_transformers_with_the_rows_in_its_table(name):
    """Another implementation of encoder and head, with the new tokens appended to the vocabulary."""
    source = make_source(OLD, layers=2) if name == 'bert' else family(name)
    taught = taught_by(source)
    architecture = source.architecture
    rows_NxD = np.random.default_rng(1).normal(size=(2, architecture.width)).astype(np.float32) * 0.3
    batch = {**taught._asdict(), 'drawn': np.ones(2, bool)}
    found = jax.jit(lambda rows: distil._naming(rows, source.parameters, architecture, batch))(rows_NxD)
    model, losses = theirs(source, rows_NxD), []
    for x, target in enumerate(taught.target):
        _, logits_PxV = of_one(model, taught.own[x, : taught.own_length[x]])
        losses.append(float(-torch.log_softmax(logits_PxV[taught.slot[x]], -1)[len(OLD) + int(target)]))
    np.testing.assert_allclose(found, np.mean(losses), rtol=1e-4)


def test_both_gradients_reach_new_rows_alone_and_are_of_one_size():
    """The second term at weight w is w times the first one; its gradient is that of the logarithm of its own loss."""
    source = make_source(OLD, layers=2)
    batch = {**taught_by(source)._asdict(), 'drawn': np.array([True, True, False])}
    slot_D, rows_NxD = source.table()[source.subwords.mask], np.full((3, 16), 0.1, np.float32)
    model = (source.parameters, source.architecture)

    @jax.jit
    def computed(rows_NxD):
        for_aim = jax.value_and_grad(distil._loss)
        aims = Aim(), Aim(cross_entropy=2.0)
        naming = jax.value_and_grad(distil._naming)(rows_NxD, *model, batch)
        return *(for_aim(rows_NxD, *model, slot_D, batch, aim) for aim in aims), naming

    (first, first_NxD), (both, both_NxD), (naming, naming_NxD) = computed(rows_NxD)
    np.testing.assert_allclose(both, 3 * first, rtol=1e-5)
    np.testing.assert_allclose(both_NxD, first_NxD + 2 * first / naming * naming_NxD, rtol=1e-4, atol=1e-7)
    assert np.abs(naming_NxD[:2]).min() > 0
    np.testing.assert_array_equal(both_NxD[2], 0)  # nothing has named it so far


def test_cross_entropy_makes_a_row_that_the_head_names():
    source = make_source(OLD, layers=2)
    taught = taught_by(source)
    rows_NxD = np.random.default_rng(1).normal(size=(3, 16)) * 0.1
    batch = {**taught._asdict(), 'drawn': np.ones(3, bool)}
    after = {}

    @jax.jit
    def naming(rows_NxD):
        return distil._naming(rows_NxD, source.parameters, source.architecture, batch)

    for weight in (0.0, 1.0):
        fitted = distil.refine(source, rows_NxD, taught, 60, 0, aim=Aim(cross_entropy=weight))
        np.testing.assert_array_equal(fitted[2], rows_NxD[2])  # no context
        after[weight] = naming(fitted.astype(np.float32))
    assert after[1.0] < after[0.0] - 0.3


def test_lessons_are_numbered_and_averaged_by_token():
    target = np.array([2, 0, 2, 2, 0, 5])
    assert fit.numbers(target).tolist() == [0, 0, 1, 2, 1, 0]
    values = np.array([1.0, 5, np.nan, 3, 7, np.nan])
    means, count = fit.means(target, values, 6)
    assert count.tolist() == [2, 0, 2, 0, 0, 0]
    np.testing.assert_array_equal(means, [6, np.nan, 2, np.nan, np.nan, np.nan])


def changes(**own):
    return {f'surgery__{name}': value for name, value in {'scale': 'rescaled', **own}.items()}


def test_the_stage_says_which_tokens_are_still_bad_and_fits_the_worst_again(tmp_path, capsys):
    made, start = {}, {'strategy': 'averaged_input'}
    (tmp_path / 'bad.txt').write_text('\ufefflymphoma\r\nknown\r\n\r\n', 'utf-8')
    fitted = {**start, 'fit_steps': 15, 'fit_cross_entropy': 0.05, 'fit_layer': 1}
    source = make_source(SPELLING, layers=2)
    for name, own in {
        'none': start,
        'once': fitted,
        'again': {**fitted, 'fit_again': 0.5},
        'only': {**fitted, 'fit_only': tmp_path / 'bad.txt'},
    }.items():
        run = make_run(tmp_path / name, source, NEW, FOUND, **changes(**own))
        run.console.quiet = name != 'again'
        made[name] = built(run)
    assert made['none'][1]['fit'] is None
    assert not any('fit' in record for record in made['none'][2])
    records = {record['token']: record['fit'] for record in made['again'][2] if 'fit' in record}
    assert set(records) == {WORD, 'lymphoma', 'ββ'}
    assert records['ββ'] == {'contexts': 0, 'before': None, 'after': None, 'again': False}
    assert records[WORD]['contexts'] == records['lymphoma']['contexts'] == fit.MEASURED
    report = made['again'][1]['fit']
    after = {token: record['after'] for token, record in records.items() if token != 'ββ'}
    assert report['tokens'] == 2
    assert report['worst'] == sorted(map(list, after.items()), key=lambda pair: -pair[1])
    assert report['after'] == pytest.approx(np.mean(list(after.values())), rel=1e-4)
    assert report['after'] < report['before']
    (again,) = [token for token, record in records.items() if record['again']]
    assert report['again']['tokens'] == 1
    assert report['again']['after'] < report['again']['before']
    # The second fit moves that row alone.
    tables = {name: made[name][0][TABLE] for name in made}
    moved = np.flatnonzero(np.abs(tables['again'] - tables['once']).max(axis=1))
    assert moved.tolist() == [NEW.index(again)]
    moved = np.flatnonzero(np.abs(tables['once'] - tables['none']).max(axis=1))
    assert moved.tolist() == sorted(NEW.index(token) for token in after)
    moved = np.flatnonzero(np.abs(tables['only'] - tables['none']).max(axis=1))
    assert moved.tolist() == [NEW.index('lymphoma')]
    assert made['only'][1]['fit']['tokens'] == 1
    said = capsys.readouterr().out
    assert (
        f'1 token fitted again ({report["again"]["before"]:.3g}, now {report["again"]["after"]:.3g})' in said
    )
    assert f'worst: {report["worst"][0][0]} {report["worst"][0][1]:.3g}' in said


def test_what_is_chosen_on_one_half_is_measured_on_the_other(tmp_path, monkeypatch):
    """Noise alone: no fit at all, and disagreements that are drawn anew. The chosen tokens show no gain."""
    draw = np.random.default_rng(0)
    count, each = 200, fit.MEASURED
    targets = np.repeat(np.arange(count), each)
    empty = np.zeros((len(targets), 4), np.int32)
    lessons = distil.Lessons(empty, empty, targets, targets, targets, targets, empty)
    monkeypatch.setattr(distil, 'lessons', lambda *given: lessons)
    monkeypatch.setattr(distil, 'refine', lambda source, rows, *given, **more: rows)
    monkeypatch.setattr(fit, 'choose_occurrences', lambda *given: {})
    monkeypatch.setattr(
        fit,
        'disagreements',
        lambda source, taught, several, **more: [draw.normal(5, 1, 800) for _ in several],
    )
    settings = dataclasses.replace(Surgery(), fit_steps=1, fit_again=0.2)
    new = dataclasses.replace(fit.NewRows(*(np.zeros((count, 2)),) * 3, [], [], '', 0))

    class Contexts:
        sentences = ()

    made = fit.fitted(
        settings, new, make_source(OLD), [str(n) for n in range(count)], Contexts, 0, lambda amount: None
    )
    again = made.fit.summary.again
    assert again.tokens == 40
    assert again.before == pytest.approx(5, abs=0.35)
    assert again.after == pytest.approx(5, abs=0.35)
    assert made.fit.again.sum() == 40


def configured(own):
    settings = config.defaults()
    settings.surgery.update(own)
    return Experiment.from_config(settings)


def test_settings_that_cannot_be_are_refused_before_any_work(tmp_path):
    refused = []
    for own, words in (
        ({'fit_layer': 0, 'fit_steps': 3}, 'config.surgery.fit_layer: 0 are the embeddings'),
        ({'fit_only': 'a'}, 'config.surgery.fit_only: a decides nothing without a fit'),
        ({'fit_again': 0.5}, 'config.surgery.fit_again: 0.5 decides nothing without a fit'),
        ({'fit_cross_entropy': 1.0}, 'config.surgery.fit_cross_entropy: 1.0 decides nothing'),
        ({'strategy': 'random_rows', 'fit_steps': 3}, 'config.surgery.fit_steps: 3 is for'),
    ):
        refused.append((configured, own, ConfigError, words))
    source = make_source(SPELLING, layers=2)
    (tmp_path / 'other.txt').write_text('the\n')
    (tmp_path / 'latin.txt').write_text('the\nß\n', 'latin-1')

    def run_of(name, **own):
        return make_run(tmp_path / name, source, NEW, FOUND, **changes(fit_steps=3, **own))

    listed = run_of('listed', fit_only=tmp_path / 'other.txt')
    lost, deep = run_of('lost', fit_only=tmp_path / 'no').config, run_of('deep', fit_layer=3).config
    refused += [
        (built, listed, InputError, r'fit_only: .*other\.txt: of 1 token in it none is new'),
        (lists.read, tmp_path / 'latin.txt', InputError, r'latin\.txt:2: is not UTF-8 .*; convert the file'),
        (
            graft.external_inputs,
            lost,
            ConfigError,
            r'fit_only: .*no: no such file; give one with a token a line',
        ),
        (graft.check, deep, ConfigError, r'fit_layer: 3, but .*source has 2 layers; give 1 to 2, or -1'),
    ]
    run = make_run(tmp_path / 'headless', source, NEW, FOUND, **changes(fit_steps=3, fit_cross_entropy=1))
    graft.check(run.config)
    encoder = {name: values for name, values in source.parameters.items() if name != 'cls'}
    folder = tmp_path / 'headless' / 'source'
    assert tensors.has_head(folder)
    tensors.write_folder(folder, source.architecture, source.parameters, folder)
    shape = Electra(len(SPELLING), 16, 1, 2, 16, 32).discriminator()
    headless(folder, source.architecture, encoder)
    assert not tensors.has_head(folder)
    assert tensors.load_folder(folder)[2]  # says the same, from the tensors
    no_head = r'fit_cross_entropy: 1 needs a masked-LM head, which .*source'
    for act, given, error, words in (*refused, (graft.check, run.config, ConfigError, no_head)):
        with pytest.raises(error, match=words):
            act(given)
    judging = tmp_path / 'judging'
    params = jax.tree.map(np.asarray, shape.initial_parameters(jax.random.key(0)))
    tensors.write_folder(judging, shape, params, tmp_path / 'headless' / 'tokenizer')
    assert not tensors.has_head(judging)
    assert tensors.load_folder(judging)[2]


def headless(folder, architecture, encoder):
    kept = {n: v for n, v in load_file(folder / 'model.safetensors').items() if not n.startswith('cls.')}
    assert len(kept) >= len(flatten(encoder))
    save_file(kept, folder / 'model.safetensors')


def test_every_row_that_is_not_drawn_can_be_fitted_and_then_reads_contexts():
    for name, record in initialisations.INITIALISATIONS.items():
        assert ('fit_steps' in record.keys) == (record.rows is not None and not record.drawn), name
    averaged = Surgery(strategy='averaged_input')
    assert not averaged.reads_contexts
    fitted = dataclasses.replace(averaged, fit_steps=5, max_contexts=3)
    assert fitted.reads_contexts
    assert fitted.different(Surgery()) == {'fit_steps': 5, 'max_contexts': 3}
