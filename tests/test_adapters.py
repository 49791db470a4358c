"""Adapters: what is trained, what stays, and that merged, in parts, and read by PEFT they are one model."""

import dataclasses
import functools
import hashlib
import json
import shutil
import warnings

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from safetensors.numpy import load_file, save_file
from toy_families import EVERY, SMALL, Model, last_states, noisy, packed_batch
from toy_objectives import Steps
from toy_pretraining import assert_same_bits, experiment, killed_copy, pretrained

from bioptimus_jax.cli import push
from bioptimus_jax.errors import ConfigError, InputError
from bioptimus_jax.experiment.stages import STAGES
from bioptimus_jax.export import adapters
from bioptimus_jax.export.adapters import Adapter
from bioptimus_jax.finetuning.config import own_models
from bioptimus_jax.model.compute import PLAIN_COMPUTE
from bioptimus_jax.model.folder import model_folders
from bioptimus_jax.model.layers import UP
from bioptimus_jax.model.peft import read_adapter, write_merged
from bioptimus_jax.model.tensors import load_folder, write_folder
from bioptimus_jax.model.trees import flatten, unflatten
from bioptimus_jax.pretrain import adapter
from bioptimus_jax.pretrain.checkpoint import load_phase
from bioptimus_jax.pretrain.config import Pretrain
from bioptimus_jax.pretrain.objective import arrays_of, planned_objective
from bioptimus_jax.pretrain.sharding import axes_of
from bioptimus_jax.records.export import Export
from bioptimus_jax.records.surgery import TokenRow
from bioptimus_jax.report.measures import read_measures
from bioptimus_jax.report.sections.training import training_loss
from bioptimus_jax.run.execute import execute
from bioptimus_jax.run.folder import Run
from bioptimus_jax.surgery import graft
from bioptimus_jax.surgery.made import Made, made_in
from bioptimus_jax.tokenizer import subwords

LORA = Pretrain(lora_rank=4)
STAGES_BEFORE = ('corpus', 'vocab', 'surgery', 'rows')


def write_source(prepared, family):
    """A source of that family with the vocabulary of the tiny run and nothing at zero, its output bias least of all."""
    folder, vocab = prepared / f'source-{family}', prepared / 'run' / 'vocab'
    known = subwords.load(vocab)
    small = dataclasses.replace(SMALL[family], vocab_size=len(known.tokens)).padded_with(known.pad)
    write_folder(folder, *noisy(small), vocab)
    return folder


def adapted(prepared, folder, family='bert', **changes):
    """The tiny run's texts for a source with a smaller vocabulary, ready to be pre-trained with an adapter."""
    wanted = {
        'source.path': write_source(prepared, family),
        'vocab.size': 360,
        'surgery.strategy': 'averaged_input',
        'pretrain.lora_rank': 4,
        'pretrain.learning_rate': 3e-2,
        'model.dropout': 0.0,
        'model.attention_dropout': 0.0,
        'phases': '0.1,',
        'runtime.checkpoint_every_steps': 4,
        'evaluation.rows': 8,
    }
    run = Run(folder, experiment(prepared, **{**wanted, **changes}), quiet=True)
    for stage in STAGES_BEFORE:
        execute(run, STAGES[stage])
    return run


@pytest.fixture(scope='module')
def trained(prepared, tmp_path_factory):
    """A run of a BERT whose adapter is trained and exported; a copy of it as a kill leaves it is beside it."""
    folder = tmp_path_factory.mktemp('adapters')
    run = adapted(prepared, folder / 'run')
    with killed_copy(run, folder / 'killed', lambda step: step > 4):
        pretrained(run)
    execute(run, STAGES['export'])
    return run


def with_numbers(settings, architecture, params, made):
    """What is trained of a model with an adapter whose second matrices are not zero, and what is not."""
    parts = adapter.split(settings, architecture, made, params, params, jax.random.key(0))
    flat = flatten(parts.trained)
    random = np.random.default_rng(0)
    flat |= {p: random.normal(0, 0.1, v.shape).astype(np.float32) for p, v in flat.items() if p.endswith(UP)}
    return unflatten(flat), parts.frozen


@pytest.mark.parametrize('family', EVERY)
def test_every_family_computes_with_an_adapter_as_with_what_it_is_merged_into(family):
    architecture, params = noisy(SMALL[family])
    batch, made = packed_batch(architecture), Made(np.array([3, 150], np.int32))
    trained, frozen = with_numbers(LORA, architecture, params, made)
    model = adapter.whole(LORA, trained, frozen)

    @jax.jit
    @functools.partial(jax.grad, has_aux=True)
    def computed(trained):
        states = architecture.encode(adapter.whole(LORA, trained, frozen), batch)
        return jnp.square(states).sum(), states

    gradients, states = computed(trained)
    merged = last_states(Model(architecture, adapter.without_adapter(model, merged=True)), batch)
    assert np.abs(states - merged).max() < 3e-6
    assert np.abs(states - last_states(Model(architecture, params), batch)).max() > 0.01
    # Every matrix of every layer has one, attention's and the others.
    kernels = {p for p in architecture.shapes() if p.startswith('encoder/layer/') and p.endswith('/kernel')}
    assert adapter.pairs_of(model).keys() == kernels
    gradients = flatten(gradients)
    assert all(np.abs(gradients[p]).max() > 0 for p in gradients if p.startswith('encoder/'))
    of_attention = adapter.targets_of(dataclasses.replace(LORA, lora_targets=('attention',)), list(kernels))
    assert len(of_attention) == len(set(architecture.own_layers)) * (2 if family == 'modernbert' else 4)


def test_layers_have_one_by_their_numbers_in_a_scan_too():
    architecture, params = noisy(SMALL['ultrabert'])
    settings = dataclasses.replace(LORA, lora_layers=(1,), lora_targets=('q_proj', 'feed_forward'))
    trained, frozen = with_numbers(settings, architecture, params, Made(np.zeros(0, np.int32)))
    assert {path.split('/')[2] for path in flatten(trained) if path.endswith(UP)} == {'1'}
    assert {path.split('/')[4] for path in flatten(trained)} == {
        'q_proj',
        'gate_proj',
        'up_proj',
        'down_proj',
    }
    model, batch = adapter.whole(settings, trained, frozen), packed_batch(architecture)
    scanned = dataclasses.replace(PLAIN_COMPUTE, scan_layers=True)
    encode = jax.jit(architecture.encode, static_argnames='compute')
    plain, in_loop = encode(model, batch), encode(model, batch, compute=scanned)
    np.testing.assert_allclose(in_loop, plain, atol=1e-5)
    for key, value, message in (
        ('targets', ('Wqkv',), r'lora_targets: no matrix .* called .Wqkv.; known: attention, feed_forw'),
        ('layers', (0, 3), r'lora_layers: 3, but this model has 3 layers, from 0 on'),
    ):
        with pytest.raises(ConfigError, match=message):
            adapter.check(dataclasses.replace(LORA, **{f'lora_{key}': value}), architecture)


@pytest.mark.parametrize('embeddings', ['none', 'new', 'all'])
def test_the_tokens_that_are_named_are_trained_whole_with_their_bias(trained, embeddings):
    settings = dataclasses.replace(LORA, lora_embeddings=embeddings)
    architecture, params, _ = load_folder(trained.folder('surgery') / 'model')
    made = made_in(trained.folder('surgery'), architecture)
    records = TokenRow.read_lines(trained.folder('surgery') / 'tokens.jsonl')
    assert made.tokens.tolist() == [row.id for row in records if row.is_new]
    assert not made.whole
    found, _ = adapter.split(settings, architecture, made, params, params, jax.random.key(0))
    flat = flatten(found)
    table, bias = architecture.table, architecture.output_bias
    new, every = len(made.tokens), architecture.padded_vocab_size
    assert 30 < new < 300
    wanted = {
        'none': {},
        'new': {f'{table}_rows': new, bias: every},
        'all': {table: every, bias: every},
    }
    assert {path: len(v) for path, v in flat.items() if 'adapter' not in path} == wanted[embeddings]


def test_only_what_is_named_moves(trained):
    _, before, _ = load_folder(trained.folder('surgery') / 'model')
    _, base, _ = load_folder(trained.workdir / 'export' / '0.1-base')
    _, after, _ = load_folder(trained.workdir / 'export' / '0.1')
    before, base, after = map(flatten, (before, base, after))
    architecture = load_folder(trained.folder('surgery') / 'model')[0]
    made = made_in(trained.folder('surgery'), architecture).tokens
    assert {p for p in before if not np.array_equal(before[p], base[p])} == {
        architecture.table,
        'cls/predictions/bias',
    }
    moved = np.flatnonzero((before[architecture.table] != base[architecture.table]).any(1))
    assert moved.tolist() == made.tolist()
    kernels = {p for p in before if p.startswith('encoder/') and p.endswith('/kernel')}
    assert {p for p in base if not np.array_equal(base[p], after[p])} == kernels
    assert np.abs(before['cls/predictions/bias']).max() > 0.1
    state = load_phase(trained.folder('pretrain'), '0.1')
    moments = sum(np.size(v) for v in flatten(state).values())
    assert moments < sum(np.size(v) for v in before.values()) / 3
    gate = trained.manifest('export').counts['gate']
    assert gate.keys() == {'0.1', '0.1-base', '0.1-adapter'}
    proper, base = (
        (trained.workdir / 'export' / name / 'README.md').read_text() for name in ('0.1', '0.1-base')
    )
    assert 'exported beside' not in proper
    # The losses that follow are not its own.
    assert 'after phase 0.1-base\n' in base
    assert 'beside the model `0.1`. The training and held-out losses below are those of that model' in base
    assert 0 < gate['0.1']['merge'] < 1e-5
    assert gate['0.1-adapter']['weights'] < 1e-6
    assert 'trained but an adapter of rank 4' in training_loss(read_measures(trained)).caption
    card = (trained.workdir / 'export' / '0.1' / 'README.md').read_text()
    assert (
        'adapter of rank 4, alpha 8, on attention, feed_forward; rows of tokens that are trained: new' in card
    )


def test_an_adapter_goes_to_the_hub_with_the_id_of_its_base(trained):
    # A name on the hub that holds the name that the other one has here.
    base, name = 'me/bio-0.1-base', 'me/bio-0.1-base-adapter'
    folder, place = trained.workdir / 'export' / '0.1-adapter', push.Place(name, tag='v1')
    made = push.parcel(folder)
    for sent, given, message in (
        (
            made,
            '',
            r'^--base: is missing; .*0\.1-adapter is an adapter, and .* is a folder here: push that one, too',
        ),
        (made, 'me/base@v1', r'^--base=me/base@v1: give the id of a model of the hub, OWNER/NAME$'),
        (
            push.parcel(folder.with_name('0.1')),
            'me/base',
            r'^--base=me/base: is for an adapter, and .* is none',
        ),
    ):
        with pytest.raises(ConfigError, match=message):
            sent.for_place(place, given)
    there = made.for_place(place, base).files
    assert json.loads(there['adapter_config.json'])['base_model_name_or_path'] == base
    card = there['README.md'].decode()
    assert f"BertForMaskedLM.from_pretrained({base!r}), {name!r}, revision='v1')" in card
    assert card.count(base) == 5
    assert card.count('0.1-') == 5
    assert f'base_model: {base}\n' in card
    sums = dict(line.split('  ')[::-1] for line in there['sha256sums'].decode().splitlines())
    contents = {name: one if isinstance(one, bytes) else one.read_bytes() for name, one in there.items()}
    assert sums == {n: hashlib.sha256(c).hexdigest() for n, c in contents.items() if n != 'sha256sums'}


def test_a_killed_run_goes_on_bit_by_bit(trained):
    killed = pretrained(Run(trained.workdir.parent / 'killed', trained.config, quiet=True))
    assert_same_bits(killed, trained, '0.1')


def logits_of_peft(base, folder, tokens):
    import torch
    import transformers
    from peft import PeftModel

    plain = transformers.AutoModelForMaskedLM.from_pretrained(base)
    with warnings.catch_warnings():
        warnings.simplefilter('ignore', FutureWarning)  # PEFT asks transformers by an old name
        model = PeftModel.from_pretrained(plain, folder).eval()
    given = {
        'input_ids': torch.from_numpy(tokens),
        'attention_mask': torch.ones_like(torch.from_numpy(tokens)),
    }
    with torch.inference_mode():
        alone, merged = (m(**given).logits.numpy() for m in (model, model.merge_and_unload()))
    return alone, merged


@pytest.mark.parametrize('family', ['bert', 'modernbert'])
def test_peft_reads_it_as_the_merged_model(trained, tmp_path, family):
    """And we read what PEFT has as a source: adapter and base are merged into the same model."""
    if family == 'bert':
        export = trained.workdir / 'export'
        architecture, merged, _ = load_folder(export / '0.1')
        base, folder = export / '0.1-base', export / '0.1-adapter'
    else:
        tokenizer = trained.folder('vocab')
        architecture = dataclasses.replace(SMALL[family], vocab_size=len(subwords.load(tokenizer).tokens))
        params = noisy(architecture).params
        state, frozen = with_numbers(LORA, architecture, params, Made(np.array([3], np.int32)))
        merged = adapter.without_adapter(adapter.whole(LORA, state, frozen), merged=True)
        base, folder = tmp_path / 'base', tmp_path / 'adapter'
        write_folder(base, architecture, params, tokenizer)
        alone = Adapter(architecture, LORA.lora, adapter.pairs_of(state), params, merged)
        adapters.export(folder, alone, Export(phase='0.1'), 'base')
    tokens = np.random.default_rng(0).integers(5, architecture.vocab_size, (2, 12))
    batch = {
        'tokens': tokens,
        'segments': np.ones_like(tokens),
        'positions': np.arange(12)[None].repeat(2, 0),
    }
    batch = {name: jnp.asarray(value, jnp.int32) for name, value in batch.items()}
    ours = jax.jit(lambda p: architecture.logits(p, architecture.encode(p, batch)))(merged)
    for theirs in logits_of_peft(base, folder, tokens):
        np.testing.assert_allclose(theirs, ours, atol=1e-5)
    write_merged(base, read_adapter(folder), tmp_path / 'merged')
    read = flatten(load_folder(tmp_path / 'merged')[1])
    for path, value in flatten(merged).items():
        np.testing.assert_allclose(read[path], value, atol=1e-6)


def test_a_source_may_have_an_adapter(trained, prepared, tmp_path):
    """Surgery merges it, and has the merged model as the source of all stages."""
    export = trained.workdir / 'export'
    changes = {
        'source.path': export / '0.1-base',
        'source.adapter': export / '0.1-adapter',
        'vocab.kind': 'source',
        'surgery.strategy': 'copy',
        'finetune.models': 'source,',
    }
    run = Run(tmp_path / 'run', experiment(prepared, **changes), quiet=True)
    shutil.copytree(trained.folder('vocab'), run.workdir / 'vocab')
    graft.check(run.config)
    graft.build(run, run.workdir / 'surgery')
    wanted = flatten(load_folder(export / '0.1')[1])
    folders = model_folders(run.config, lambda stage: run.workdir / stage, ['source', 'initial'], 'x')
    for name, folder in folders.items():
        found = flatten(load_folder(folder)[1])
        for path, value in wanted.items():
            np.testing.assert_allclose(found[path], value, atol=1e-6, err_msg=f'{name} {path}')
    files = graft.external_inputs(run.config)
    assert {
        export / '0.1-adapter' / name for name in ('adapter_config.json', 'adapter_model.safetensors')
    } <= {*files}
    assert own_models(run.config) == ['source']
    with pytest.raises(
        InputError, match=r'nowhere: no such folder; config\.source\.adapter must name one of this'
    ):
        graft.check(experiment(prepared, **{**changes, 'source.adapter': 'nowhere'}))


MODULE = 'bert.encoder.layer.0.attention.self.query'
A, B = (f'base_model.model.{MODULE}.lora_{letter}.weight' for letter in 'AB')


@pytest.mark.parametrize(
    ('config', 'tensors', 'message'),
    [
        (
            {'peft_type': 'IA3'},
            {},
            r"adapter_config\.json: peft_type is 'IA3'; only LORA can be read: merge it with",
        ),
        (
            {'use_dora': True},
            {},
            r'adapter_config\.json: use_dora is True: DoRA, which .* cannot be read; merge it with',
        ),
        (
            {'modules_to_save': ['classifier']},
            {},
            r"modules_to_save is \['classifier'\]: whole modules beside",
        ),
        ({'trainable_token_indices': [7]}, {}, r'trainable_token_indices is \[7\]: rows of tokens'),
        (
            {'init_lora_weights': 'pissa_niter_16'},
            {},
            r"init_lora_weights is 'pissa_niter_16': with it PEFT changes the weights of the model too",
        ),
        ({'bias': 'lora_only'}, {}, r"bias is 'lora_only': trained biases cannot be read"),
        ({'alpha_pattern': {'query': 3}}, {}, r'alpha_pattern is .*: an alpha for each module'),
        ({'lora_alpha': 'x'}, {}, r"lora_alpha is 'x'; a number is expected"),
        ({}, {A: None}, rf'adapter_model\.safetensors: {MODULE} has no lora_A; fetch it again'),
        (
            {},
            {A: np.ones((3, 32))},
            rf'{MODULE} has matrices of shapes \(3, 32\) and \(32, 4\), which do not fit',
        ),
        (
            {},
            {A: np.ones((4, 8))},
            rf'{MODULE} is for a matrix of shape \(32, 8\), but .* has \(32, 32\); this',
        ),
        ({}, {A: np.full((4, 32), np.nan)}, r'lora_A.weight, 128 of 128 numbers are NaN or infinite'),
        (
            {},
            {A.replace('query', 'Wqkv'): np.ones((4, 32)), B.replace('query', 'Wqkv'): np.ones((32, 4))},
            r'has matrices for .*self\.Wqkv, which .* does not have; this adapter is for another model',
        ),
        (
            {},
            {
                A.replace(MODULE, 'bert.pooler.dense'): np.ones((4, 32)),
                B.replace(MODULE, 'bert.pooler.dense'): np.ones((32, 4)),
            },
            r'has matrices for bert\.pooler\.dense, which is in no layer; merge it',
        ),
        (
            {},
            {f'base_model.model.{MODULE}.lora_magnitude_vector': np.ones(4)},
            r'lora_magnitude_vector, which is no matrix',
        ),
    ],
)
def test_another_adapter_is_refused_in_one_line(config, tensors, message, trained, tmp_path):
    export, folder = trained.workdir / 'export', tmp_path / 'adapter'
    shutil.copytree(export / '0.1-adapter', folder)
    values = json.loads((folder / 'adapter_config.json').read_text())
    (folder / 'adapter_config.json').write_text(json.dumps({**values, **config}))
    state = load_file(folder / 'adapter_model.safetensors')
    changed = {**state, **{n: t if t is None else t.astype(np.float32) for n, t in tensors.items()}}
    save_file({n: t for n, t in changed.items() if t is not None}, folder / 'adapter_model.safetensors')
    with pytest.raises(InputError, match=message) as caught:
        write_merged(export / '0.1-base', read_adapter(folder), tmp_path / 'merged')
    assert '\n' not in str(caught.value)


def test_rank_stabilised_adapters_count_by_the_root_of_the_rank(trained, tmp_path):
    folder = tmp_path / 'adapter'
    shutil.copytree(trained.workdir / 'export' / '0.1-adapter', folder)
    values = json.loads((folder / 'adapter_config.json').read_text())
    plain = read_adapter(folder)
    (folder / 'adapter_config.json').write_text(json.dumps({**values, 'use_rslora': True}))
    np.testing.assert_allclose(read_adapter(folder).change(MODULE), 2 * plain.change(MODULE), rtol=1e-6)


OF_SOURCE = {'source.path': 'none', 'surgery.strategy': 'averaged_input', 'pretrain.lora_rank': 4}


@pytest.mark.parametrize(
    ('changes', 'message'),
    [
        (
            {'source.adapter': 'added'},
            r'config\.source\.adapter: .* is for the weights of a source; name that in',
        ),
        (
            {'pretrain.lora_rank': 4},
            r'config\.pretrain\.lora_rank: 4, but config\.surgery\.strategy=scratch begins',
        ),
        (
            {**OF_SOURCE, 'pretrain.optimizer': 'muon'},
            r'optimizer: muon is for the matrices of the encoder, .*; take adamw',
        ),
    ],
)
def test_an_adapter_of_random_weights_or_with_muon_is_refused(prepared, changes, message):
    with pytest.raises(ConfigError, match=message):
        experiment(prepared, **changes)


@pytest.mark.parametrize(
    'objective',
    ['mlm', 'distil', *(pytest.param(n, marks=pytest.mark.slow) for n in ('causal', 'adversarial'))],
)
def test_every_objective_trains_one_alike_in_parts_and_on_several_devices(objective, tiny):
    """What an objective adds is trained whole; the weights that stay are in no state."""
    given = {**OF_SOURCE, 'pretrain.objective': objective}
    if objective == 'distil':
        given['objective.distil.teacher'] = tiny / 'teacher'
    alone = Steps(tiny, **given)
    paths = flatten(alone.state['params'])
    kernels = [path for path in alone.architecture.shapes() if 'layer/' in path and path.endswith('/kernel')]
    added = {'cls/predictions/bias'} | ({'map/kernel', 'map/bias'} if objective == 'distil' else set())
    assert {path for path in paths if 'adapter' not in path} == added
    assert len(paths) == 2 * len(kernels) + len(added)
    after, metrics = alone.after(2)
    assert metrics['loss'] > 0
    moved = flatten(after['params'])
    assert all(np.abs(moved[path]).max() > 0 for path in paths)
    if objective == 'mlm':
        cut = Steps(tiny, devices=8, fsdp=2, tensor=2, pretrain__micro_batches=2, **given).after(2)[0]
        for path, value in flatten(cut['params']).items():
            np.testing.assert_allclose(value, moved[path], atol=2e-5, err_msg=path)
        planned = arrays_of(alone.objective).trained
        assert all(planned[path] == np.shape(value) for path, value in moved.items())


@pytest.mark.parametrize(('name', 'family'), [('rtd', 'electra'), ('nsp', 'bert')])
def test_what_an_objective_puts_in_the_place_of_a_head_is_trained_whole(name, family, prepared):
    """A generator, heads of pieces and of pairs; and exports are made of the merged model."""
    layout = 'pairs' if name == 'nsp' else 'documents'
    wanted = experiment(prepared, **{**OF_SOURCE, 'pretrain.objective': name, 'rows.layout': layout})
    architecture, params = noisy(SMALL[family])
    objective = planned_objective(wanted, architecture)
    # It reads no source where only shapes are asked for.
    started = jax.eval_shape(lambda params: objective.start(params, jax.random.key(0)), params)
    arrays = arrays_of(objective, Made(np.array([3], np.int32)))
    kept = {path for path in arrays.base if not path.startswith('encoder/')}
    assert not kept & arrays.trained.keys()
    assert all(path in flatten(params) for path in arrays.base)
    theirs = {path for path in flatten(started) if path not in flatten(params)}
    assert theirs
    assert theirs <= arrays.trained.keys()
    assert not any('adapter' in path for path in arrays.trained if path.startswith('generator/'))
    # Raises ValueError where no rule covers a parameter.
    assert axes_of(arrays.trained, objective.all_rules).keys() == arrays.trained.keys()
    assert arrays.trained[f'{architecture.table}_rows'] == (1, architecture.width)
