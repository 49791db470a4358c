"""Encoders that JAX computes under heads of PyTorch: states, gradients and updates are those of PyTorch's encoders."""

import dataclasses
import math

import jax
import numpy as np
import pytest
import torch
from toy_sets import DRUGS, TYPES, kept_tagger, load_tagger, save_encoder, save_set, settings

from bioptimus_jax.errors import ConfigError, Stopped
from bioptimus_jax.experiment.config import defaults
from bioptimus_jax.experiment.schema import Experiment
from bioptimus_jax.experiment.stages import STAGES
from bioptimus_jax.finetuning import bridge, cards, cells
from bioptimus_jax.finetuning.cards import by_devices, encoder_here, needs_free_accelerator
from bioptimus_jax.finetuning.loading import load_head
from bioptimus_jax.finetuning.tasks.classes import TASK as CLASSES
from bioptimus_jax.finetuning.tasks.entities import TASK as ENTITIES
from bioptimus_jax.finetuning.tasks.similarity import TASK as SIMILARITY
from bioptimus_jax.finetuning.training import outputs
from bioptimus_jax.finetuning.updates import Updates
from bioptimus_jax.hosts.devices import Present
from bioptimus_jax.hosts.hardware import Hardware
from bioptimus_jax.run.execute import execute
from bioptimus_jax.run.folder import Run
from bioptimus_jax.sets.corpora import read_dataset
from bioptimus_jax.sets.texts import Text, Texts
from bioptimus_jax.storage.files import read_json
from bioptimus_jax.vocab.agreement import load_for_words

KINDS = (
    *('bert', 'electra', 'distilbert', 'roberta', 'mpnet', 'deberta-v2'),
    *('modernbert', 'eurobert', 'ultrabert'),
    # A RoBERTa with windows, a BERT whose layers are one, a BERT, two with their norms in front, two that are gated.
    *(
        pytest.param(kind, marks=pytest.mark.slow)
        for kind in (
            *('longformer', 'albert', 'big_bird', 'megatron-bert', 'roberta-prelayernorm'),
            *('gte', 'nomic_bert'),
        )
    ),
)
STATES, GRADIENT, WEIGHTS = 1e-5, 1e-5, 2e-5
"""Largest differences from PyTorch: of states and losses, of gradients whose norm is clipped to 1, and of weights after
three updates of about 5e-3 each."""


@pytest.fixture(scope='module')
def folder(tmp_path_factory):
    """Folders of two layers by kind, made when first asked for."""
    made = {}

    def of(kind):
        if kind not in made:
            made[kind] = save_encoder(tmp_path_factory.mktemp(kind), kind)
        return made[kind]

    return of


@pytest.fixture(scope='module')
def drugs(tmp_path_factory):
    return read_dataset(save_set(tmp_path_factory.mktemp('sets') / 'drugs', (64, 16, 16)))


@pytest.fixture(scope='module')
def mentions():
    """Texts with two mentions."""

    def text(number):
        words = f'@A$ got {DRUGS[number % 4]} with @B$ daily' + ' dose' * (number % 3)
        return Text((words,), (('no', 'yes')[number % 2],), number)

    texts = tuple(map(text, range(8)))
    return Texts('mentions', texts, texts, texts, ('no', 'yes'))


def batch_of(task, tokenizer, head, examples, chosen):
    windows = task.windows(tokenizer, examples, chosen).windows
    targets = [task.target(w, task.learned(examples[w.example], chosen), head) for w in windows]
    return head.batch(windows, targets), windows


def trained(task, folder, examples, labels, chosen, updates=3):
    """Losses of some updates, the first gradient by name, the weights after them, and what is found then."""
    tokenizer, head = load_head(task, folder, labels, chosen, 0)
    batch, windows = batch_of(task, tokenizer, head, examples, chosen)
    weights = Updates(head, chosen, updates, {piece for w in windows for piece in w.pieces})
    losses, gradient = [], {}
    head.train()
    for _ in range(updates):
        weights.begin()
        loss = head.loss(batch)
        loss.backward()
        losses.append(loss.item())
        if not gradient:
            gradient = {n: p.grad.clone() for n, p in head.named_parameters() if p.grad is not None}
            if head.bridge and head.bridge.gradients:
                names = {id(p): n for n, p in head.named_parameters()}
                own = {n: names[id(p)] for n, p in head.bridge.own().items()}
                gradient |= {own[n]: torch.tensor(np.array(g)) for n, g in head.bridge.gradients.items()}
        weights.update()
    weights.end_epoch()
    if head.bridge:
        head.bridge.write()
    return losses, gradient, {n: p.detach() for n, p in head.named_parameters()}, head.eval().predict(batch)


def check_alike(task, folder, examples, labels, chosen):
    """The same head on both encoders."""
    plain, bridged = (
        trained(task, folder, examples, labels, dataclasses.replace(chosen, encoder=encoder))
        for encoder in ('torch', 'jax')
    )
    np.testing.assert_allclose(bridged[0], plain[0], rtol=0, atol=STATES)
    assert bridged[2].keys() == plain[2].keys()
    assert plain[1].keys() <= bridged[1].keys() | {n for n in plain[1] if 'embeddings' in n}
    norm = math.sqrt(sum(float((g**2).sum()) for g in bridged[1].values()))
    for name, gradient in bridged[1].items():
        if (
            name in plain[1] and plain[1][name].shape == gradient.shape
        ):  # of the table PyTorch trains the used rows
            torch.testing.assert_close(
                gradient, plain[1][name], rtol=0, atol=GRADIENT * max(norm, 1), msg=name
            )
    for name, weight in bridged[2].items():
        # Adam divides by the gradient's size: where it is rounding alone, rounding decides which way a weight goes.
        clear = (
            bridged[1][name].abs() > 1e-6 * max(norm, 1)
            if name in bridged[1]
            else torch.ones_like(weight) > 0
        )
        torch.testing.assert_close(weight[clear], plain[2][name][clear], rtol=0, atol=WEIGHTS)
    return bridged, plain


@pytest.mark.parametrize('kind', KINDS)
def test_states_of_every_family_are_those_of_transformers(folder, drugs, kind):
    chosen = settings(dropout=0.1)
    tokenizer, tagger = load_tagger(folder(kind), TYPES, chosen, 0)
    _, bridged = load_tagger(folder(kind), TYPES, dataclasses.replace(chosen, encoder='jax'), 0)
    batch = bridged.batch(ENTITIES.windows(tokenizer, drugs.train[:7], chosen).windows)
    assert len(set(batch.mask_BxL.sum(1).tolist())) > 2  # padded, to other lengths than the program's
    given = {'input_ids': batch.pieces_BxL, 'attention_mask': batch.mask_BxL}
    with torch.inference_mode():
        states, theirs = (head.eval().encoder(**given).last_hidden_state for head in (bridged, tagger))
    real = batch.mask_BxL.bool()
    assert states.shape == theirs.shape
    torch.testing.assert_close(states[real], theirs[real], rtol=0, atol=10 * STATES)
    rates = {
        bridged.bridge.program.architecture.dropout,
        bridged.bridge.program.architecture.attention_dropout,
    }
    assert rates == (
        {0.0, 0.1} if kind in ('eurobert', 'ultrabert') else {0.1}
    )  # transformers has only one there


HEADS = ('linear', 'crf', 'span', 'bilstm', 'bilstm_crf', 'bilstm_span')


@pytest.mark.parametrize(('kind', 'heads'), [('bert', HEADS), ('modernbert', ('linear', 'bilstm_span'))])
def test_every_head_of_entities_is_trained_alike(folder, drugs, kind, heads):
    for head in heads:
        chosen = settings(dropout=0.0, head=head, layer_decay=0.9, weight_decay=0.1)
        labels = ENTITIES.labels(drugs, chosen)
        bridged, plain = check_alike(ENTITIES, folder(kind), drugs.train[:8], labels, chosen)
        assert (bridged[3] == plain[3]).all()


@pytest.mark.parametrize('kind', ['bert', 'modernbert'])
def test_every_head_of_texts_is_trained_alike(folder, mentions, kind):
    """Poolers and what families put on an encoder stay PyTorch's."""
    for changes in (
        {},
        {'features': 'first', 'head': 'mlp'},
        {'features': 'mentions', 'head': 'bilstm'},
    ):
        chosen = settings(dropout=0.0, **changes)
        bridged, plain = check_alike(CLASSES, folder(kind), mentions.train, mentions.labels, chosen)
        torch.testing.assert_close(bridged[3], plain[3], rtol=0, atol=1e-4)
    numbers = [dataclasses.replace(text, answers=(float(n),)) for n, text in enumerate(mentions.train)]
    check_alike(SIMILARITY, folder(kind), numbers, ('score',), settings(dropout=0.0))


@pytest.mark.parametrize(
    'changes',
    [
        {
            'bias_correction': False,
            'layer_decay': 0.5,
            'layer_decay_rule': 'zhang',
            'head_learning_rate': 0.02,
        },
        {'warmup_fraction': 0.9, 'layer_decay': 0.5},
        {'freeze_layers': 1, 'reinit_layers': 1},
        {'freeze_layers': 2},
        {'remove_layers': 1},
        {'lora_rank': 2, 'lora_alpha': 8.0},
    ],
    ids=lambda changes: next(iter(changes)),
)
def test_the_stability_kit_and_adapters_are_the_same(folder, mentions, changes):
    chosen = settings(dropout=0.0, weight_decay=0.5, **changes)
    check_alike(CLASSES, folder('bert'), mentions.train, mentions.labels, chosen)


def test_parts_of_a_batch_add_up(folder, drugs):
    chosen = settings(dropout=0.0, encoder='jax')
    tokenizer, head = load_tagger(folder('bert'), TYPES, chosen, 0)

    def gradients(*parts):
        head.bridge.forget()
        for part in parts:
            batch, _ = batch_of(ENTITIES, tokenizer, head, part, chosen)
            words = sum(len(sentence.words) for sentence in part)
            (head.loss(batch) * words).backward()
        return {name: np.array(value) for name, value in head.bridge.gradients.items()}

    whole, added = gradients(drugs.train[:8]), gradients(drugs.train[:3], drugs.train[3:8])
    for name, value in whole.items():
        np.testing.assert_allclose(added[name], value, rtol=0, atol=2e-4, err_msg=name)


def test_devices_share_the_rows_of_a_batch(folder, drugs):
    chosen = settings(dropout=0.1, encoder='jax')
    tokenizer, head = load_tagger(folder('bert'), TYPES, chosen, 0)
    batch, _ = batch_of(ENTITIES, tokenizer, head, drugs.train[:7], chosen)
    found = []
    plain = head.bridge.program
    of_accelerators = dataclasses.replace(plain.compute, scan_layers=True, remat='dots')
    for compute, devices in ((plain.compute, jax.devices()[:1]), (of_accelerators, jax.devices()[:2])):
        own = bridge.Bridge(head, plain._replace(compute=compute), 0, devices)
        head.bridge = own
        torch.manual_seed(0)  # the head's own dropout
        head.train().loss(batch).backward()
        # The masks of dropout depend on no device.
        found.append({name: np.array(value) for name, value in own.gradients.items()})
        assert {len(value.sharding.device_set) for value in own.gradients.values()} == {len(devices)}
    for name, value in found[0].items():
        np.testing.assert_allclose(found[1][name], value, rtol=0, atol=1e-6, err_msg=name)


def test_few_programs_serve_all_batches(folder, drugs, monkeypatch):
    chosen = settings(encoder='jax')
    tokenizer, head = load_tagger(folder('bert'), TYPES, chosen, 0)
    shapes = []

    def computed(given, states):
        shapes.append(given['tokens'].shape)
        return states

    monkeypatch.setattr(bridge, '_states', lambda *given: computed(given[3], np.zeros((64, 32, 32))))
    monkeypatch.setattr(bridge._Crossing, 'apply', lambda *given: computed(given[2], given[0]))
    learned, _ = batch_of(ENTITIES, tokenizer, head, drugs.train[:5], chosen)
    few, _ = batch_of(ENTITIES, tokenizer, head, drugs.train[:1], chosen)
    read, _ = batch_of(ENTITIES, tokenizer, head, drugs.train[:33], chosen)
    for batch, grad in ((learned, True), (read, False), (few, True), (few, False)):
        with torch.set_grad_enabled(grad):
            head.encoder(batch.pieces_BxL, batch.mask_BxL)
    # What is predicted at once is more than what is learned at once.
    assert [rows for rows, _ in shapes] == [8, 64, 8, 64]
    found = {bridge.places_for(length, 512) for length in range(1, 513)}
    assert found == {32, 64, 96, 128, 192, 256, 384, 512}
    assert [bridge.places_for(n, 40) for n in (1, 32, 33, 40)] == [32, 32, 40, 40]


def test_a_stage_is_the_same_after_a_stop_and_its_models_are_plain_ones(drugs, tmp_path, monkeypatch, capsys):
    """A run with dropout, an adapter and an epoch that is chosen: what is kept gives PyTorch the same answers."""
    (tmp_path / 'sets').mkdir()
    save_set(tmp_path / 'sets' / 'drugs', (64, 16, 16))
    tiny = save_encoder(tmp_path / 'bert', layers=1)
    few = {'epochs': 3, 'learning_rate': 0.03, 'lora_rank': 4, 'keep': 'all', 'encoder': 'jax'}
    chosen = settings(folder=str(tmp_path / 'sets'), models=(f'bert={tiny}',), **few)
    e = Experiment.from_config(defaults())
    e = dataclasses.replace(e, finetune=chosen, runtime=dataclasses.replace(e.runtime, workers=2))
    several = dataclasses.replace(e, finetune=dataclasses.replace(chosen, seeds=(0, 4)))
    execute(Run(tmp_path / 'whole', e), STAGES['finetune'])
    assert 'finetune: computes on 1 cpu device by jax, threads 1\n' in capsys.readouterr().out
    stopped, noted = Run(tmp_path / 'stopped', several), cells.note_epochs

    def note(target, epochs):
        noted(target, epochs)
        if target.name == 'seed-4' and epochs:
            stopped.console.stopping.set()

    with monkeypatch.context() as patched:
        patched.setattr(cells, 'note_epochs', note)
        with pytest.raises(Stopped, match='seed-4, 1 of 3 epochs, is trained anew'):
            execute(stopped, STAGES['finetune'])
    execute(Run(tmp_path / 'stopped', several), STAGES['finetune'])
    out = capsys.readouterr().out
    assert cells.ONE_PROCESS.format(2) in out
    assert '2 cells, 1 of them done before' in out
    place = 'finetune/bert/drugs/standard/seed-0'
    first, second = (read_json(tmp_path / run / place / 'scores.json') for run in ('whole', 'stopped'))
    assert first['history'] == second['history']
    assert first['test'] == second['test']
    assert first['history'][-1]['loss'] < 0.5 * first['chance_loss']
    assert first['trained_parameters'] < 10_000
    assert first['settings']['values']['encoder'] == 'jax'
    other = read_json(tmp_path / 'stopped' / place.replace('seed-0', 'seed-4') / 'scores.json')
    assert other['history'] != first['history']
    plain = dataclasses.replace(chosen, encoder='torch', lora_rank=0)
    model = tmp_path / 'whole' / place / 'model'
    tokenizer, head = load_for_words(model), kept_tagger(model, plain)
    windows = ENTITIES.windows(tokenizer, drugs.test, plain).windows
    answers = ENTITIES.decode(drugs.test, windows, outputs(head, windows, plain), head, plain)
    kept = [item.predicted for item in ENTITIES.written(tmp_path / 'whole' / place)]
    assert [tuple(one) for one in answers] == [tuple(one) for one in kept]


def test_what_computes_encoders_follows_from_the_devices():
    found = {(on, by): by_devices(on, by) for on in ('cpu', 'gpu', 'tpu') for by in ('cpu', 'cuda')}
    assert {key for key, chosen in found.items() if chosen == 'jax'} == {('tpu', 'cpu'), ('gpu', 'cpu')}


def test_a_tpu_that_jax_finds_is_used_and_one_that_it_does_not_is_refused(monkeypatch):
    e = Experiment.from_config(defaults())
    assert encoder_here('auto', e.runtime) == 'torch'  # as JAX_PLATFORMS=cpu asks for it
    assert needs_free_accelerator(e)
    monkeypatch.delenv('JAX_PLATFORMS')
    monkeypatch.setattr(cards, 'accelerators', lambda: Hardware('tpu', ('TPU chip',) * 4))
    monkeypatch.setattr(cards, 'look', lambda: Present('tpu', 'TPU v4', 4, 4, 2**35))
    assert encoder_here('auto', e.runtime) == 'jax'
    assert encoder_here('torch', e.runtime) == 'torch'
    assert not needs_free_accelerator(e)
    monkeypatch.setattr(cards, 'look', lambda: Present('cpu', 'cpu', 1, 1, 2**35))
    elsewhere = dataclasses.replace(e.runtime, cluster='there:1')
    assert encoder_here('auto', elsewhere) == 'torch'
    for kind, runtime, message in (
        ('auto', e.runtime, r"which jax does not find; pip install 'bioptimus-jax\[tpu\]', leave"),
        ('jax', elsewhere, r"encoder: 'jax' computes in the process .*; leave config\.runtime\.cl"),
    ):
        with pytest.raises(ConfigError, match=message):
            encoder_here(kind, runtime)


def test_what_jax_does_not_compute_is_refused_by_the_key(folder, mentions, tmp_path):
    chosen = settings(encoder='jax')
    key = r'^config\.finetune\.encoder: jax '
    of_none = rf"{key}does not compute this model: .*model_type is 'roformer'; .* set config\.finetune\.encoder='torch'"
    _, tagger = load_tagger(folder('bert'), TYPES, chosen, 0)
    # transformers lets the first piece of a text see all of it, for its own head.
    tokenizer, head = load_head(CLASSES, folder('longformer'), mentions.labels, chosen, 0)
    batch = batch_of(CLASSES, tokenizer, head, mentions.train, chosen)[0]
    said = 'gives the states of the last layer, and this head asks for output_hidden_s'
    for message, compute, *given, more in (
        (of_none, load_tagger, save_encoder(tmp_path, 'roformer'), TYPES, chosen, 0, {}),
        (said, tagger.encoder, torch.ones(1, 4, dtype=torch.int64), {'output_hidden_states': True}),
        ('and this head asks for global_attention_mask', head, batch, {}),
    ):
        with pytest.raises(ConfigError, match=message):
            compute(*given, **more)


def test_cells_go_one_after_the_other_and_several_workers_are_told_so(monkeypatch):
    said, done = [], []
    kind = dataclasses.make_dataclass('Cell', ['name', 'settings', 'dataset', 'target'])
    some = [kind(str(n), settings(encoder='jax'), 'set', n) for n in range(3)]
    monkeypatch.setattr(cells, 'run_cell', lambda cell, dataset, check: done.append(cell.name) or cell.name)
    monkeypatch.setattr(cells, 'forget', lambda target: None)
    runtime = dataclasses.replace(Experiment.from_config(defaults()).runtime, workers=2)
    found = cells.run_cells(runtime, some, {'set': None}, said.append, lambda: None)
    assert next(found) == (some[0], '0')
    assert done == ['0']  # each when it is asked for
    assert [record for _, record in found] == ['1', '2']
    assert said == [cells.ONE_PROCESS.format(2)]
