"""The stability kit against rates by hand and an optimiser in numpy; used rows; the low-resource choice."""

import dataclasses
import functools
import math
import random
import shutil
import sys
from collections import Counter
from pathlib import Path
from types import SimpleNamespace

import jax
import numpy as np
import pytest
import torch
from peft.tuners.lora import LoraLayer
from safetensors.numpy import load_file
from toy_sets import DRUGS, TYPES, kept_tagger, load_tagger, save_encoder, save_set, settings

from bioptimus_jax.cli import main as cli
from bioptimus_jax.errors import ConfigError, InputError
from bioptimus_jax.finetuning.adapters import merge
from bioptimus_jax.finetuning.config import Finetune, wrong_finetune
from bioptimus_jax.finetuning.entities.align import align, piece_labels
from bioptimus_jax.finetuning.entities.batches import collate
from bioptimus_jax.finetuning.entities.files import read_predictions
from bioptimus_jax.finetuning.heads import Head
from bioptimus_jax.finetuning.kept import Reads
from bioptimus_jax.finetuning.loading import load_head
from bioptimus_jax.finetuning.optimizer import UncorrectedAdamW, optimizer_of
from bioptimus_jax.finetuning.stability import distinct_layers, encoder_layers, parameter_groups
from bioptimus_jax.finetuning.stored import save_model
from bioptimus_jax.finetuning.subset import as_seen, chosen_examples
from bioptimus_jax.finetuning.tasks.classes import TASK as CLASSES
from bioptimus_jax.finetuning.tasks.entities import TASK as ENTITIES
from bioptimus_jax.finetuning.tasks.similarity import TASK as SIMILARITY
from bioptimus_jax.finetuning.training import _best_epoch, finetune
from bioptimus_jax.finetuning.used_rows import UsedRows
from bioptimus_jax.model.families.bert import Bert
from bioptimus_jax.model.families.roberta import Roberta
from bioptimus_jax.model.tensors import write_folder
from bioptimus_jax.sets.corpora import read_dataset
from bioptimus_jax.sets.sentences import Sentence
from bioptimus_jax.sets.texts import Text, Texts
from bioptimus_jax.storage.files import read_json
from bioptimus_jax.tokenizer import subwords
from bioptimus_jax.vocab.agreement import load_for_words

KINDS = (
    *('bert', 'electra', 'distilbert', 'roberta', 'mpnet', 'deberta-v2'),
    *('modernbert', 'eurobert', 'ultrabert'),
    pytest.param('longformer', marks=pytest.mark.slow),  # a RoBERTa but for its windows
    # Gated, as EuroBERT; with their norms in front, as ModernBERT.
    *(
        pytest.param(kind, marks=pytest.mark.slow)
        for kind in ('gte', 'nomic_bert', 'megatron-bert', 'roberta-prelayernorm')
    ),
)
DISTANCES = ('relative_attention_bias', 'encoder.LayerNorm')
"""What belongs to tables of distances, beside the layers."""


def of_norm(name):
    """Whether it is a parameter of a norm, by the name of that: `ln` in a Megatron-BERT."""
    called = name.lower().split('.')[-2]
    return called == 'ln' or called.endswith('norm')


def of_embeddings(name):
    return 'embed' in name or any(part in name for part in DISTANCES)


@pytest.fixture(scope='module')
def bert(tmp_path_factory):
    return save_encoder(tmp_path_factory.mktemp('bert'))


@pytest.fixture(scope='module')
def drugs(tmp_path_factory):
    return read_dataset(save_set(tmp_path_factory.mktemp('sets') / 'drugs'))


@pytest.fixture(scope='module')
def four_layers(tmp_path_factory):
    """Folders of four layers by kind, made when first asked for."""
    made = {}

    def folder(kind, **changes):
        key = (kind, *changes.items())
        if key not in made:
            made[key] = save_encoder(tmp_path_factory.mktemp(kind), kind, 4, **changes)
        return made[key]

    return folder


def batch_of(tokenizer, tagger, sentences):
    windows = align(tokenizer, sentences, 64, 8).windows
    ids = {label: i for i, label in enumerate(tagger.labels)}
    labels = [piece_labels(w, sentences[w.example].tags, ids, 'first') for w in windows]
    pad = tagger.encoder.config.pad_token_id
    return collate(windows, pad=pad, device='cpu', chained=False, labels=labels)


def rates(tagger, chosen):
    """Name -> (rate, decay), and a proof that each trained parameter is in exactly one group."""
    groups = parameter_groups(tagger, chosen)
    of = {id(p): (g['lr'], g['weight_decay']) for g in groups for p in g['params']}
    trained = {name: p for name, p in tagger.named_parameters() if p.requires_grad}
    assert sum(len(g['params']) for g in groups) == len(of) == len(trained)
    return {name: of[id(p)] for name, p in trained.items()}


# ---- rates


@pytest.mark.parametrize('kind', KINDS)
@pytest.mark.parametrize(
    ('rule', 'by_place'),
    [
        # Four layers, d = 0.5: powers of d for the embeddings, the layers from the lowest, and the head.
        ('electra', {'embedding': 6, 0: 5, 1: 4, 2: 3, 3: 2}),
        ('zhang', {'embedding': 5, 0: 4, 1: 3, 2: 2, 3: 1}),
    ],
)
def test_rates_by_hand(four_layers, kind, rule, by_place):
    chosen = settings(layer_decay=0.5, layer_decay_rule=rule, learning_rate=1.0, head='bilstm_crf')
    _, tagger = load_tagger(four_layers(kind), TYPES, chosen, 0)
    seen = set()
    for name, (rate, decay) in rates(tagger, chosen).items():
        if name.startswith('pretrained.'):
            layer = next((int(part) for part in name.split('.') if part.isdigit()), None)
            place = 'embedding' if of_embeddings(name) else 3 if layer is None else layer  # 3: a final norm
            assert rate == 0.5 ** by_place[place], name
            seen.add(place)
        else:
            assert rate == 1.0, name
        free = of_norm(name) or '.bias' in name or name.startswith('chain.')
        assert decay == (0.0 if free else 0.01), name
    assert seen == set(by_place)


def test_the_head_has_a_rate_of_its_own(bert):
    chosen = settings(head_learning_rate=0.25)
    _, tagger = load_tagger(bert, TYPES, chosen, 0)
    for name, (rate, _) in rates(tagger, chosen).items():
        assert rate == (0.25 if 'classifier' in name else 5e-3), name
    optimizer, schedule = optimizer_of(tagger, chosen, 10)
    for _ in range(5):
        optimizer.step()
        schedule.step()
    assert sorted({round(g['lr'] / 0.25, 3) for g in optimizer.param_groups}) == [0.01, 0.5]


def test_without_layers_to_tell_apart_no_rule_is_needed(four_layers):
    folder = four_layers('deberta-v2', conv_kernel_size=3)
    plain = load_tagger(folder, TYPES, settings(), 0)[1]
    assert len({rate for rate, _ in rates(plain, settings()).values()}) == 1
    assert load_tagger(four_layers('albert'), TYPES, settings(), 0)  # four times the same layer


@pytest.mark.parametrize(
    ('kind', 'changes', 'message'),
    [
        (
            'deberta-v2',
            {'layer_decay': 0.9},
            r'no rule says which layer has .*conv\.conv\.weight.*freeze_layers',
        ),
        ('deberta-v2', {'freeze_layers': 1}, r'conv\.conv'),
        ('albert', {'reinit_layers': 1}, r'AlbertModel has no list of 4 layers'),
        (
            'bert',
            {'lora_rank': 2, 'lora_targets': ('Wqkv',)},
            r"lora_targets: no matrix .* 'Wqkv'; known: attention, feed_forward, dense",
        ),
        ('bert', {'freeze_layers': 5}, r'config\.finetune\.freeze_layers: 5, but .* has 4 layers'),
        ('bert', {'reinit_layers': 5}, r'config\.finetune\.reinit_layers: 5, but .* has 4 layers'),
        (
            'bert',
            {'remove_layers': 4},
            r'config\.finetune\.remove_layers: 4, but .* has 4 layers, one must stay',
        ),
        (
            'bert',
            {'remove_layers': 2, 'freeze_layers': 3},
            r'config\.finetune\.freeze_layers: 3, but .* has 2 layers',
        ),
        ('bert', {'freeze_layers': 3, 'reinit_layers': 2}, r'config\.finetune\.reinit_layers: 2 of 4 layers'),
    ],
)
def test_layers_and_matrices_that_an_encoder_does_not_have(four_layers, kind, changes, message):
    folder = four_layers(kind, **({'conv_kernel_size': 3} if kind == 'deberta-v2' else {}))
    with pytest.raises(ConfigError, match=message) as error:
        parameter_groups(load_tagger(folder, TYPES, settings(**changes), 0)[1], settings(**changes))
    assert '\n' not in str(error.value)


# ---- frozen, new and removed layers


@pytest.mark.parametrize('kind', KINDS)
def test_frozen_weights_keep_their_bits_and_have_no_backward_pass(four_layers, drugs, kind):
    chosen = settings(freeze_layers=2)
    tokenizer, tagger = load_tagger(four_layers(kind), TYPES, chosen, 0)
    before = {name: p.detach().clone() for name, p in tagger.named_parameters()}
    optimizer, schedule = optimizer_of(tagger, chosen, 6)
    assert not UsedRows.applies(tagger)
    recorded = {}
    for at, layer in enumerate(encoder_layers(tagger)):
        layer.register_forward_hook(
            lambda _, __, out, at=at: recorded.update({at: (out[0] if isinstance(out, tuple) else out)})
        )
    tagger.train()
    for _ in range(6):
        optimizer.zero_grad()
        tagger.loss(batch_of(tokenizer, tagger, drugs.train[:8])).backward()
        optimizer.step()
        schedule.step()
    assert [recorded[at].requires_grad for at in range(4)] == [False, False, True, True]
    for name, parameter in tagger.named_parameters():
        layer = next((int(part) for part in name.split('.') if part.isdigit()), None)
        frozen = of_embeddings(name) or layer in (0, 1) or '_global.' in name
        assert (parameter.grad is None) == frozen, name
        assert torch.equal(parameter, before[name]) == frozen, name


def test_a_run_with_frozen_layers_learns(bert, drugs):
    outcome = finetune(ENTITIES, bert, drugs, settings(freeze_layers=1, layer_decay=0.9), 0)
    assert outcome.history[-1]['devel_f1'] > 0.9
    _, tagger = load_tagger(bert, TYPES, settings(), 0)
    top = sum(p.numel() for p in encoder_layers(tagger)[1].parameters())
    assert outcome.trained_parameters == top + sum(
        p.numel() for p in tagger.pretrained.classifier.parameters()
    )


@pytest.mark.parametrize('kind', ['bert', 'roberta', 'electra', 'modernbert', 'eurobert', 'ultrabert'])
def test_new_layers_are_drawn_as_before_pre_training(tmp_path, kind):
    folder = save_encoder(tmp_path, kind, 3)
    kept = load_tagger(folder, TYPES, settings(), 0)[1]
    tagger, again, other = (load_tagger(folder, TYPES, settings(reinit_layers=2), n)[1] for n in (0, 0, 1))
    before, new, same, of_other_seed = (dict(t.named_parameters()) for t in (kept, tagger, again, other))
    names = {id(p): name for name, p in new.items()}
    drawn = {names[id(p)] for layer in encoder_layers(tagger)[1:] for p in layer.parameters()}
    assert len(drawn) == len({name for name in new if '.1.' in name or '.2.' in name}) > 10
    shares = {}
    for name, parameter in new.items():
        assert torch.equal(parameter, same[name]), name
        if name not in drawn:  # lower layers, embeddings, what is after the layers, the head
            assert torch.equal(parameter, before[name]), name
        elif of_norm(name) or name.endswith('bias'):
            assert (parameter == (0 if name.endswith('bias') else 1)).all(), name
        else:
            assert not torch.equal(parameter, before[name]), name
            assert not torch.equal(parameter, of_other_seed[name]), name
            # ModernBERT: what a layer adds to its input is narrower, and nothing is beyond two deviations.
            narrow = (2 * 3) ** -0.5 if name.endswith('Wo.weight') else 1
            shares.setdefault(narrow, []).append(parameter.detach().flatten() / 0.02 / narrow)
    for share in map(torch.cat, shares.values()):
        assert share.mean().abs() < 4 / len(share) ** 0.5
        beyond = (share.abs() > 2).float().mean().item()
        truncated = kind == 'modernbert'
        assert beyond == (0 if truncated else pytest.approx(0.0455, abs=0.008))
        assert share.std().item() == pytest.approx(0.8796 if truncated else 1, rel=0.03)
    assert len(shares) == 1 + (kind == 'modernbert')


class Whole(Head):
    """A head of transformers for whole texts."""

    batch = loss = predict = None


def test_a_pooler_is_above_the_top_layer(four_layers):
    """BERT's, which masked language models lack: it is new, trained when all layers are frozen, and drawn with them."""
    task = SimpleNamespace(
        hf_class='AutoModelForSequenceClassification',
        head=lambda pretrained, labels, settings, dtype: Whole(pretrained, labels, dtype),
    )
    chosen = settings(layer_decay=0.5, layer_decay_rule='zhang', learning_rate=1.0)
    for rule, rate, decay in (('zhang', 1.0, 0.0), ('electra', 0.5, 0.01)):
        ruled = dataclasses.replace(chosen, layer_decay_rule=rule)
        _, head = load_head(task, four_layers('bert'), ['a', 'b'], ruled, 0)
        found = rates(head, ruled)
        assert found['pretrained.bert.pooler.dense.weight'] == (rate, decay)
        assert found['pretrained.bert.encoder.layer.3.output.dense.weight'] == (rate / 2, 0.01)
        assert found['pretrained.classifier.weight'] == (1.0, 0.01)
    _, frozen = load_head(task, four_layers('bert'), ['a', 'b'], settings(freeze_layers=4), 0)
    trained = {name for name, p in frozen.named_parameters() if p.requires_grad}
    assert {name.split('.')[-3] for name in trained} == {'pooler', 'pretrained'}
    with_pooler = load_head(task, four_layers('bert'), ['a', 'b'], settings(), 0)[1]
    drawn = load_head(task, four_layers('bert'), ['a', 'b'], settings(reinit_layers=1), 0)[1]
    weights = [head.encoder.pooler.dense.weight for head in (with_pooler, drawn)]
    assert not torch.equal(*weights)
    assert weights[1].std().item() == pytest.approx(0.02, rel=0.1)


@pytest.mark.parametrize('kind', KINDS)
def test_removing_layers_changes_their_number_and_nothing_else(four_layers, drugs, kind, tmp_path):
    whole = load_tagger(four_layers(kind), TYPES, settings(), 0)
    tokenizer, tagger = load_tagger(four_layers(kind), TYPES, settings(remove_layers=2), 0)
    assert len(encoder_layers(tagger)) == tagger.encoder.config.num_hidden_layers == 2
    a, b = whole[1].encoder.config.to_dict(), tagger.encoder.config.to_dict()
    number = {'distilbert': 'n_layers'}.get(kind, 'num_hidden_layers')
    listed = {name for name in ('layer_types', 'attention_window') if name in a}
    assert {name for name in a if a[name] != b[name]} == {number} | listed
    assert all(b[name] == a[name][:2] for name in listed)
    theirs = dict(whole[1].encoder.named_parameters())
    for name, parameter in tagger.encoder.named_parameters():
        assert torch.equal(parameter, theirs[name]), name
    batch = batch_of(tokenizer, tagger, drugs.train[:4])
    given = {'input_ids': batch.pieces_BxL, 'attention_mask': batch.mask_BxL}
    states = whole[1].eval().encoder(**given, output_hidden_states=True).hidden_states
    modules = dict(tagger.encoder.named_modules())
    after = next(
        (modules[n] for n in ('final_norm', 'norm', 'LayerNorm', 'encoder.ln') if n in modules), None
    )
    wanted = after(states[2]) if after else states[2]
    torch.testing.assert_close(tagger.eval().encoder(**given).last_hidden_state, wanted)
    save_model(ENTITIES, tokenizer, tagger, Reads(), tmp_path / 'kept')
    again = kept_tagger(tmp_path / 'kept', settings())
    torch.testing.assert_close(again(batch), tagger(batch))
    # As a model for another training it gives its encoder alone, whatever the labels are.
    for types in (TYPES, ['Drug', 'Dose']):
        other, same = (load_tagger(tmp_path / 'kept', types, settings(), 1)[1] for _ in range(2))
        weights = [head.pretrained.classifier.weight[:3] for head in (other, same, again)]
        assert torch.equal(*weights[:2])
        assert not torch.isclose(*weights[1:]).any()
        for name, parameter in other.encoder.named_parameters():
            assert torch.equal(parameter, theirs[name]), name


@pytest.mark.parametrize('kind', [kind for kind in KINDS if kind != 'distilbert'])
def test_every_family_goes_through_the_verb_with_the_whole_kit(four_layers, kind, tmp_path):
    """And the model that is kept gives transformers the tags that were written, from lists of words."""
    from transformers import AutoModelForTokenClassification

    (tmp_path / 'sets').mkdir()
    save_set(tmp_path / 'sets' / 'drugs', (120, 20, 20))
    given = {
        **{'folder': tmp_path / 'sets', 'datasets': '', 'models': f'a={four_layers(kind)}', 'seeds': 0},
        **{'epochs': 3, 'learning_rate': 1e-2, 'batch_sentences': 8, 'max_pieces': 64, 'overlap_pieces': 8},
        **{'remove_layers': 1, 'freeze_layers': 1, 'reinit_layers': 1, 'layer_decay': 0.9, 'keep': 'best'},
    }
    flags = [f'--config.finetune.{name}={value}' for name, value in given.items()]
    # The config takes these from $BIOPTIMUS_DATA, which need not be set here.
    flags += ['--config.corpus.inputs=', '--config.corpus.audit.folder=']
    command = ['finetune', '--config=bioptimus', f'--workdir={tmp_path / "run"}', '--config.stages=finetune']
    assert cli.main([*command, *flags, '--config.runtime.workers=1']) == 0
    cell = tmp_path / 'run' / 'finetune' / 'a' / 'drugs' / 'standard' / 'seed-0'
    losses = [epoch['loss'] for epoch in read_json(cell / 'scores.json')['history']]
    assert losses[-1] < losses[0]
    model, tokenizer = (
        AutoModelForTokenClassification.from_pretrained(cell / 'model'),
        load_for_words(cell / 'model'),
    )
    assert model.config.num_hidden_layers == 3
    found = []
    for sentence in (predicted := read_predictions(cell / 'predictions.tsv')):
        one = tokenizer(list(sentence.words), is_split_into_words=True, return_tensors='pt')
        labels = [model.config.id2label[label] for label in model(**one).logits[0].argmax(-1).tolist()]
        found.append(tuple(labels[one.word_ids().index(word)] for word in range(len(sentence.words))))
    assert found == [sentence.predicted for sentence in predicted]
    assert len({tag for tags in found for tag in tags}) > 1


# ---- optimiser


def adam_by_hand(weight, gradients, rates_, decay, corrected):
    """Loshchilov and Hutter's AdamW, or the original BERT's, in float64."""
    w, m, v = weight.astype(np.float64), 0.0, 0.0
    path = []
    for t, (g, rate) in enumerate(zip(gradients.astype(np.float64), rates_, strict=True), 1):
        m, v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g * g
        first, second, eps = (1 - 0.9**t, 1 - 0.999**t, 1e-8) if corrected else (1, 1, 1e-6)
        step = (m / first) / (np.sqrt(v / second) + eps)
        w = w - rate * (step + decay * w)
        path.append(w)
    return np.stack(path)


@pytest.mark.parametrize('corrected', [True, False])
def test_updates_are_those_of_the_formula(bert, corrected):
    generator = np.random.default_rng(0)
    chosen = settings(bias_correction=corrected, weight_decay=0.1, learning_rate=1e-2)
    _, tagger = load_tagger(bert, TYPES, chosen, 0)
    optimizer, schedule = optimizer_of(tagger, chosen, 30)
    assert isinstance(optimizer, UncorrectedAdamW) != corrected
    parameter = tagger.pretrained.classifier.weight
    # From very small to large: at 1e-6 and below, eps and where it is added decide.
    scale = 10.0 ** generator.integers(-8, 2, parameter.shape)
    gradients = generator.normal(size=(30, *parameter.shape)) * scale
    start = parameter.detach().numpy().copy()
    given, used_rates = [], []
    for gradient in gradients:
        used_rates.append(optimizer.param_groups[0]['lr'])
        parameter.grad = torch.from_numpy(gradient.astype(np.float32))
        optimizer.step()
        schedule.step()
        given.append(parameter.detach().numpy().copy())
    expected = adam_by_hand(start, gradients.astype(np.float32), used_rates, 0.1, corrected)
    np.testing.assert_allclose(np.stack(given), expected, rtol=2e-5, atol=2e-6)


def test_first_updates_are_several_times_larger_without_correction():
    sizes = {}
    for kind in (torch.optim.AdamW, UncorrectedAdamW):
        weight = torch.nn.Parameter(torch.zeros(1))
        optimizer = kind([weight], 1.0, eps=1e-12, weight_decay=0.0, fused=True)
        sizes[kind] = []
        for _ in range(60):
            before = weight.item()
            weight.grad = torch.ones(1)
            optimizer.step()
            sizes[kind].append(before - weight.item())
    ratios = np.array(sizes[UncorrectedAdamW]) / np.array(sizes[torch.optim.AdamW])
    assert ratios[0] == pytest.approx(0.1 / 0.001**0.5, rel=1e-4)  # 3.2
    assert ratios.max() == pytest.approx(6.6, abs=0.05)
    assert ratios.argmax() == 11  # the twelfth update


def test_without_correction_a_run_is_another_one(bert, drugs):
    runs = [
        finetune(ENTITIES, bert, drugs, settings(epochs=1, learning_rate=5e-4, bias_correction=on), 0)
        for on in (True, False)
    ]
    assert runs[0].first_loss == runs[1].first_loss
    assert runs[1].history[0]['loss'] < runs[0].history[0]['loss']  # larger steps from the start


# ---- used rows


@pytest.mark.parametrize('kind', [kind for kind in KINDS if kind != 'distilbert'])
def test_training_the_used_rows_is_training_the_table(four_layers, drugs, kind):
    chosen = settings(weight_decay=1.0, learning_rate=1e-3, dropout=0.0)
    tables = []
    for whole in (False, True):
        tokenizer, tagger = load_tagger(four_layers(kind), TYPES, chosen, 0)
        table = tagger.encoder.get_input_embeddings()
        start = table.weight.detach().clone()
        sentences = drugs.train[:16]
        used = {p for w in align(tokenizer, sentences, 64, 8).windows for p in w.pieces}
        used.add(tagger.encoder.config.pad_token_id)
        assert 10 < len(used) < len(start) / 2
        rows = None if whole else UsedRows(tagger, used)
        if rows:
            rows.install()
        optimizer, schedule = optimizer_of(tagger, chosen, 12)
        for update in range(12):
            if rows and update == 6:  # as between two epochs
                rows.restore()
                assert tagger.encoder.get_input_embeddings() is table
                rows.install()
            optimizer.zero_grad()
            part = sentences[:8] if update % 2 else sentences[8:]
            tagger.loss(batch_of(tokenizer, tagger, part)).backward()
            torch.nn.utils.clip_grad_norm_(tagger.parameters(), 1.0)
            optimizer.step()
            if rows:
                rows.after_update(optimizer)
            schedule.step()
        if rows:
            rows.restore()
        tables.append(table.weight.detach())
        unused = [i for i in range(len(start)) if i not in used]
        assert (table.weight[unused].abs().sum() < 0.999 * start[unused].abs().sum()).item()
    torch.testing.assert_close(tables[0], tables[1], rtol=1e-4, atol=1e-5)
    assert not torch.allclose(tables[0][sorted(used)], start[sorted(used)] * 0.99, atol=1e-4)


def test_a_piece_outside_the_used_rows_is_an_error(bert):
    _, tagger = load_tagger(bert, TYPES, settings(), 0)
    UsedRows(tagger, [0, 1, 2]).install()
    with pytest.raises(IndexError):
        tagger.encoder.get_input_embeddings()(torch.tensor([[1, 3]]))


# ---- low-resource choice


def sentences_of(count, seed=0):
    generator = random.Random(seed)
    return [
        Sentence(
            (generator.choice('abc'), generator.choice('abcdefgh')), ('O', generator.choice(['O', 'B-X'])), n
        )
        for n in range(count)
    ]


def few(train, count, seed, name='a', task=ENTITIES, **changes):
    return chosen_examples(task, train, settings(train_sentences=count, train_seed=seed, **changes), name)


def test_smaller_choices_lie_within_larger_ones_in_the_order_of_the_file():
    train = sentences_of(300)
    before: list = []
    for count in (20, 60, 150, 300):
        chosen = few(train, count, 3, 'a')
        assert len(chosen) == count
        places = [s.document for s in chosen]
        assert places == sorted(set(places))
        assert set(before) <= set(places)
        before = places
    assert few(train, 0, 3, 'a') == tuple(train)
    assert few(train, 60, 3, 'a') != few(train, 60, 4, 'a')


def test_the_choice_knows_contents_not_places():
    train = sentences_of(300)  # 48 different ones, so that each is there several times
    shuffled = random.Random(1).sample(train, len(train))
    content = lambda chosen: sorted((s.words, s.tags) for s in chosen)  # noqa: E731
    for count in (20, 60, 150):
        one, two = (few(part, count, 0, 'a') for part in (train, shuffled))
        assert content(one) == content(two)
    # Every sentence is as likely as another.
    hits = np.zeros(300)
    for seed in range(200):
        for s in few(train, 60, seed, 'a'):
            hits[s.document] += 1
    assert hits.mean() == 40
    assert hits.min() > 15
    assert hits.max() < 70


def test_every_label_has_its_share_of_a_stratified_choice():
    """Rare labels too, in the mean over seeds; and a smaller choice is part of a larger one."""
    counts = {'false': 170, 'effect': 20, 'int': 9, 'both': 1}
    train = [Text((f'{label} {at}',), (label,), at) for label, n in counts.items() for at in range(n)]
    train = random.Random(0).sample(train, len(train))
    rare = 0
    for seed in range(40):
        before: set = set()
        for count in (10, 40, 100, 200):
            chosen = few(train, count, seed, task=CLASSES, train_choice='stratified')
            found = Counter(text.answers[0] for text in chosen)
            assert sum(found.values()) == count
            assert all(abs(found[x] - count * n / 200) <= 1.5 for x, n in counts.items()), found
            assert before <= set(chosen)
            before = set(chosen)
            rare += found['both'] if count == 100 else 0
        assert set(chosen) == set(train)
    assert 10 < rare < 30
    numbers = [Text((f'{at}',), (at / 40,), at) for at in range(160)]
    of_range = few(numbers, 40, 0, task=SIMILARITY, train_choice='stratified')
    assert Counter(round(text.answers[0]) for text in of_range) == {0: 5, 1: 10, 2: 10, 3: 10, 4: 5}


def test_choices_that_cannot_be(bert, drugs):
    plain = [Sentence(('a',), ('O',)), Sentence(('b',), ('O',))]
    for refuse, error, said in (
        *(
            (
                functools.partial(finetune, ENTITIES, bert, drugs, settings(**{key: asked}), 0),
                ConfigError,
                rf'config\.finetune\.{key}: {asked}, but drugs has {has}',
            )
            for key, asked, has in (('train_sentences', 121, 120), ('devel_sentences', 31, 30))
        ),
        (
            functools.partial(few, plain, 2, 5, 'drugs'),
            InputError,
            r'drugs: all of the 2 train examples .* have the answer O;',
        ),
    ):
        with pytest.raises(error, match=said):
            refuse()
    some = [Text(('a',), ('x',), 0), Text(('b',), (), 1)]
    assert few(some, 2, 0, task=CLASSES) == tuple(some)  # a text without a label differs from one with it
    chosen = finetune(ENTITIES, bert, drugs, settings(train_sentences=40, devel_sentences=10, epochs=1), 0)
    assert (chosen.train_sentences, chosen.updates, len(chosen.devel)) == (40, 5, 10)
    assert (
        chosen.history
        != finetune(ENTITIES, bert, drugs, settings(train_sentences=40, train_seed=1, epochs=1), 0).history
    )


def test_check_is_called_in_training_and_in_prediction(bert, drugs):
    calls = []
    outcome = finetune(ENTITIES, bert, drugs, settings(epochs=2), 0, check=lambda: calls.append(1))
    assert outcome.updates == 30
    assert len(calls) == 30 + 3 + 3  # updates, splits, predictions of devel twice and of test


# ---- on texts


@pytest.fixture(scope='module')
def pairs():
    """Whether the drug of the first text is in the second."""
    draw = random.Random(0)

    def texts(count):
        drawn = [draw.choices(DRUGS[:2], k=2) for _ in range(count)]
        return tuple(
            Text((f'the {a} dose', f'got {b}'), (('no', 'yes')[a == b],), n) for n, (a, b) in enumerate(drawn)
        )

    return Texts('pairs', texts(24), texts(8), texts(8), ('no', 'yes'))


@pytest.mark.parametrize('kind', [kind for kind in KINDS if kind != 'distilbert'])
def test_techniques_are_those_of_texts_too(four_layers, pairs, kind):
    """What is between the last layer and the labels goes with the top layer: drawn again, trained, its rate above."""

    def loaded(**changes):
        tokenizer, head = load_head(CLASSES, four_layers(kind), pairs.labels, settings(**changes), 0)
        found = CLASSES.windows(tokenizer, pairs.train, settings(**changes)).windows
        targets = [CLASSES.target(w, pairs.train[w.example].answers, head) for w in found]
        return head.eval(), head.batch(found, targets), dict(head.named_parameters())

    head, batch, plain = loaded()
    names = {id(p): name for name, p in plain.items()}
    above = {names[id(p)] for module in head.above for p in module.parameters()}
    assert {name.split('.')[-3] for name in above} <= {'pooler', 'head'}
    assert bool(above) == (kind in ('bert', 'megatron-bert', 'modernbert', 'gte', 'nomic_bert'))
    top = {name for name in plain if '.3.' in name}
    # Drawn again, with the embeddings, the lower layers and what is new as they are.
    _, _, drawn = loaded(reinit_layers=1)
    changed = {name for name, p in drawn.items() if not torch.equal(p, plain[name])}
    weights = {name for name in top | above if name.endswith('weight') and not of_norm(name)}
    assert weights <= changed <= top | above
    # Frozen.
    frozen, of_frozen, parameters = loaded(freeze_layers=3)
    frozen.loss(of_frozen).backward()
    trained = {name for name, p in parameters.items() if p.grad is not None}
    lower = {name for name in plain if of_embeddings(name) or any(f'.{n}.' in name for n in range(3))}
    assert trained == plain.keys() - lower >= top | above
    # Falling rates.
    for rule, rate in (('zhang', 1.0), ('electra', 0.5)):
        decayed = settings(layer_decay=0.5, layer_decay_rule=rule, learning_rate=1.0)
        of_rule = rates(head, decayed)
        assert {of_rule[name][0] for name in above} <= {rate}
        assert {of_rule[name][0] for name in top} == {rate / 2}
        assert {of_rule[name][0] for name in plain.keys() - lower - top - above if not of_norm(name)} == {1.0}
    # Fewer layers, and one id for both texts: other logits, unless the family has no such ids.
    shorter, _, _ = loaded(remove_layers=2)
    assert len(encoder_layers(shorter)) == 2
    assert not torch.allclose(shorter.predict(batch), head.predict(batch), atol=1e-4)
    _, single, _ = loaded(segment_ids='one')
    assert (single.given.get('token_type_ids', torch.zeros(1)) == 0).all()
    alike = torch.allclose(head.predict(single), head.predict(batch), atol=1e-5)
    assert alike == (kind not in ('bert', 'electra', 'megatron-bert', 'nomic_bert'))


def test_a_model_of_one_token_type_reads_pairs_with_the_tokenizer_of_bert(tmp_path, bert, pairs):
    """Surgery from a RoBERTa with a WordPiece makes one; transformers has no row for the type of the second text."""
    import transformers

    known = subwords.load(bert)
    shape = (len(known.tokens), 32, 1, 2, 64, 128)
    for family, name in ((Roberta, 'one'), (Bert, 'two')):
        made = family(*shape).padded_with(known.pad)
        write_folder(tmp_path / name, made, made.initial_parameters(jax.random.key(0)), bert)
    one = tmp_path / 'one'
    encoded = transformers.AutoTokenizer.from_pretrained(one)(*pairs.train[0].words, return_tensors='pt')
    transformers.AutoModel.from_pretrained(one)(**encoded)
    assert list(encoded) == ['input_ids', 'attention_mask']
    # Folders of others do not say so.
    shutil.copy(tmp_path / 'two' / 'tokenizer_config.json', one)
    tokenizer, head = load_head(CLASSES, one, pairs.labels, settings(), 0)
    found = CLASSES.windows(tokenizer, pairs.train, settings()).windows
    assert any(1 in window.types for window in found)
    targets = [CLASSES.target(w, pairs.train[w.example].answers, head) for w in found]
    assert torch.isfinite(head.loss(head.batch(found, targets)))


def test_devel_is_learned_and_then_chooses_nothing(bert, pairs, drugs):
    plain, both = (
        finetune(CLASSES, bert, pairs, settings(epochs=3, learn_devel=learned), 0)
        for learned in (False, True)
    )
    assert (plain.train_sentences, plain.updates, both.train_sentences, both.updates) == (24, 9, 32, 12)
    assert both.best_epoch == 3
    alone = dataclasses.replace(pairs, train=pairs.train + pairs.devel)
    assert finetune(CLASSES, bert, alone, settings(epochs=3), 0).history == both.history
    assert as_seen(pairs, settings(learn_devel=True, train_sentences=4)).train == alone.train
    assert as_seen(pairs, settings()) is pairs
    of_all = finetune(CLASSES, bert, pairs, settings(epochs=3, learn_devel=True, learning_rate=1e-9), 0)
    assert of_all.best_epoch == 3  # where all epochs are equal the first one would be chosen
    # What devel alone has a type of is learned with it.
    ill = tuple(Sentence(s.words, ('B-Ill', *s.tags[1:])) for s in drugs.devel[:8])
    small = dataclasses.replace(drugs, train=drugs.train[:8], devel=ill, test=drugs.test[:8])
    for head, scheme in (('linear', 'bioul'), ('crf', 'bio')):
        given = settings(epochs=1, learn_devel=True, head=head, scheme=scheme)
        assert finetune(ENTITIES, bert, small, given, 0).train_sentences == 16
        assert {label[2:] for label in ENTITIES.labels(small, given)} == {'', *TYPES, 'Ill'}
    assert ENTITIES.labels(small, settings()) == ENTITIES.labels(drugs, settings(learn_devel=True))


def test_the_kit_reaches_a_run_on_texts(bert, pairs):
    plain = finetune(CLASSES, bert, pairs, settings(epochs=1), 0)
    for changes in (
        *({'bias_correction': False}, {'segment_ids': 'one'}, {'freeze_layers': 1}, {'layer_decay': 0.5}),
        *({'reinit_layers': 1}, {'remove_layers': 1}, {'train_sentences': 16}, {'epochs': 2}),
        *({'train_sentences': 16, 'train_choice': 'stratified'}, {'learn_devel': True}),
        *({'head': 'mlp', 'features': 'first'}, {'head': 'bilstm', 'features': 'first'}),
    ):
        found = finetune(CLASSES, bert, pairs, settings(**{'epochs': 1, **changes}), 0)
        assert found.history[0]['loss'] != plain.history[0]['loss'], changes


def test_settings_reach_the_run(bert, drugs):
    """Every key of the kit changes the numbers of a run: none is read and forgotten."""
    small = dataclasses.replace(drugs, train=drugs.train[:40], devel=drugs.devel[:8], test=drugs.test[:8])
    plain = finetune(ENTITIES, bert, small, settings(epochs=1), 0).history[0]['loss']
    for changes in (
        {'freeze_layers': 1},
        {'layer_decay': 0.5},
        {'layer_decay': 0.5, 'layer_decay_rule': 'zhang'},
        {'reinit_layers': 1},
        {'remove_layers': 1},
        {'head_learning_rate': 1e-4},
        {'bias_correction': False},
        {'dtype': 'bfloat16'},
        {'dropout': 0.0},
        {'weight_decay': 2.0},
    ):
        assert (
            finetune(ENTITIES, bert, small, settings(epochs=1, **changes), 0).history[0]['loss'] != plain
        ), changes


@pytest.mark.parametrize(
    ('first', 'error', 'message'),
    [
        (math.nan, InputError, r'^m: has loss nan on the first batch of training; look at its weights'),
        (0.7, ConfigError, r'^config\.finetune\.learning_rate: epoch 1 of m has loss nan; lower it'),
    ],
)
def test_a_loss_that_is_not_finite_is_laid_to_what_can_be_its_cause(first, error, message):
    """Before the first update no learning rate has changed anything."""
    training = SimpleNamespace(
        head=None, settings=settings(), first_loss=first, epochs=lambda check: iter([math.nan])
    )
    with pytest.raises(error, match=message):
        _best_epoch(ENTITIES, training, Path('m'), (), (), print, print, print, 0)


@pytest.mark.parametrize('kind', [*KINDS, 'albert'])
def test_an_adapter_is_on_every_layer_of_every_family_and_merged_is_the_same_model(kind, four_layers, drugs):
    wanted = settings(lora_rank=2)
    folder = four_layers(kind)
    tokenizer, tagger = load_tagger(folder, TYPES, wanted, 0)
    trained = {name: p for name, p in tagger.named_parameters() if p.requires_grad}
    layers = distinct_layers(tagger)
    linear = sum(isinstance(m, LoraLayer) for layer in layers for m in layer.modules())
    assert len([name for name in trained if 'lora_' in name]) == 2 * linear >= len(layers) * 2 * 2
    plain = {name for name in trained if 'lora_' not in name}
    assert plain
    assert not any('layer' in name or of_embeddings(name) for name in plain), plain
    with torch.no_grad():
        for name, parameter in trained.items():
            if 'lora_B' in name:
                parameter.normal_(0, 0.1)
    batch = batch_of(tokenizer, tagger.eval(), drugs.train[:4])
    with torch.inference_mode():
        before = tagger(batch)
    merge(tagger)
    assert not any('lora' in name for name in tagger.state_dict())
    with torch.inference_mode():
        np.testing.assert_allclose(tagger(batch), before, atol=2e-5)


def test_what_an_adapter_has_learned_is_a_plain_model(bert, drugs, tmp_path):
    """The encoder's matrices alone have changed, and transformers without peft answers as the head did."""
    wanted, saved = settings(lora_rank=4, learning_rate=2e-2, epochs=6), []

    def save(tokenizer, head):
        saved.append(head)
        save_model(ENTITIES, tokenizer, head, Reads(), tmp_path / 'kept')

    outcome = finetune(ENTITIES, bert, drugs, wanted, 0, save=save)
    scores = ENTITIES.metric.scores([s.gold for s in drugs.test], outcome.test)
    assert scores['f1'] > 0.9
    assert outcome.trained_parameters < 10_000
    assert not (tmp_path / 'kept' / 'adapter_config.json').exists()
    before = load_file(bert / 'model.safetensors')
    after = load_file(tmp_path / 'kept' / 'model.safetensors')
    moved = {
        name for name, value in after.items() if name not in before or not np.array_equal(value, before[name])
    }
    layers = {
        name for name in after if '.layer.' in name and name.endswith('weight') and 'LayerNorm' not in name
    }
    assert moved == {*layers, 'classifier.weight', 'classifier.bias'}
    again = kept_tagger(tmp_path / 'kept', settings())
    batch = batch_of(load_for_words(tmp_path / 'kept'), again, drugs.test[:8])
    with torch.inference_mode():
        np.testing.assert_array_equal(again(batch), saved[0].eval()(batch))


def test_an_adapter_leaves_poolers_and_what_is_given_with_it_trained(bert, pairs, monkeypatch):
    wanted = settings(lora_rank=2, lora_targets=('query',), freeze_layers=1, layer_decay=0.5, epochs=1)
    _, head = load_head(CLASSES, bert, CLASSES.labels(pairs, wanted), wanted, 0)
    trained = [name.removeprefix('pretrained.') for name, p in head.named_parameters() if p.requires_grad]
    query = 'bert.encoder.layer.1.attention.self.query'
    matrices = [f'{query}.lora_{letter}.default.weight' for letter in 'AB']
    ends = [
        f'{module}.{leaf}' for module in ('bert.pooler.dense', 'classifier') for leaf in ('weight', 'bias')
    ]
    assert trained == [*matrices, *ends]
    rates = {
        len(group['params']): group['lr'] for group in parameter_groups(head, wanted) if group['lr'] != 5e-3
    }
    assert rates == {2: 5e-3 * 0.5**2, 1: 5e-3 * 0.5}
    refused = next(wrong_finetune(dataclasses.replace(Finetune(), lora_rank=2, reinit_layers=1)))
    assert 'config.finetune.reinit_layers: 1, but of an encoder with an adapter (lora_rank=2)' in refused
    monkeypatch.setitem(sys.modules, 'peft', None)
    with pytest.raises(
        ConfigError, match=r"lora_rank: needs the package peft; pip install 'bioptimus-jax\[lora\]'"
    ):
        load_head(CLASSES, bert, ('a', 'b'), wanted, 0)
