"""Texts in pairs: rows that hold them, InfoNCE against torch, no text as its own negative, one step in any parts."""

import dataclasses
import functools
import json
import re
import shutil

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import tokenizers
from toy_objectives import Steps
from toy_pretraining import (
    APART,
    assert_same_bits,
    copy_of,
    experiment,
    killed_copy,
    prepare_apart,
    pretrained,
)

import bioptimus_jax as bx
from bioptimus_jax.corpus.documents import Document
from bioptimus_jax.errors import ConfigError, InputError
from bioptimus_jax.experiment.schema import Experiment
from bioptimus_jax.experiment.stages import STAGES
from bioptimus_jax.export import build
from bioptimus_jax.export.card import VECTORS
from bioptimus_jax.export.merge import merge
from bioptimus_jax.ext import defaults
from bioptimus_jax.ext import objective as objective_settings
from bioptimus_jax.model.families.bert import Bert
from bioptimus_jax.model.pooling import POOLINGS, files_for_sentence_transformers, longest_in, pooling_in
from bioptimus_jax.model.tensors import to_tensors
from bioptimus_jax.model.trees import flatten
from bioptimus_jax.pretrain.objective import make_objective
from bioptimus_jax.pretrain.plan import check
from bioptimus_jax.pretrain.sharding import make_mesh
from bioptimus_jax.pretrain.step import mean_gradients
from bioptimus_jax.rows.blocks import lay_out
from bioptimus_jax.rows.config import Rows as RowSettings
from bioptimus_jax.rows.layouts import LAYOUTS, first_and_rest, fitting, twice, two_by_two
from bioptimus_jax.rows.parts import apart_parts
from bioptimus_jax.rows.stored import Rows
from bioptimus_jax.run.execute import execute
from bioptimus_jax.run.folder import Run
from bioptimus_jax.tokenizer.kinds.wordpiece import SPECIAL_TOKENS, make

PIECES, VOCABULARY = 32, 40
MODEL = Bert(VOCABULARY, 16, 1, 2, 24, PIECES, dropout=0.0, attention_dropout=0.0, initializer_range=0.3)
# Pieces of the texts of four rows, two by two; the last row has one pair less.
LENGTHS = np.array([[6, 12, 5, 9], [4, 7, 8, 13], [10, 3, 9, 10], [5, 8, 0, 0]], np.int32)
PAIRS = 7


def objective_of(model=MODEL, layout='first_line', micro_batches=1, **settings):
    config = defaults()
    config.rows.layout = layout
    config.pretrain.update(objective='contrastive', batch_rows=4, micro_batches=micro_batches, clip_norm=0.0)
    for name in config.phases:
        config.phase[name].update(duration=1.0, duration_unit='steps')
    config.objective['contrastive'] = objective_settings('contrastive', **{'temperature': 0.2, **settings})
    words = make([*SPECIAL_TOKENS, *(f't{n}' for n in range(VOCABULARY - 5))], True)
    return make_objective(Experiment.from_config(config), model, words, PIECES, make_mesh(1), print)


def batch_of(equal=()):
    """Texts of LENGTHS between [CLS] and [SEP], all different but for pairs (text, text that is the same)."""
    rng = np.random.default_rng(0)
    texts = [[2, *rng.integers(5, VOCABULARY, n - 2), 3] if n else [] for n in LENGTHS.ravel()]
    lengths = LENGTHS.copy()
    for one, other in equal:
        texts[other] = texts[one]
        lengths.ravel()[other] = lengths.ravel()[one]
    tokens = np.zeros((4, PIECES + 8), np.int32)
    for row in range(4):
        laid = np.concatenate([np.array(text, np.int32) for text in texts[4 * row : 4 * row + 4]])
        tokens[row, : len(laid)] = laid
    return {'tokens': tokens, 'segment_lengths': lengths}


def rows_of(objective, batch):
    return jax.jit(lambda batch: objective.example(batch, {}, jnp.zeros(0)))(batch)


@pytest.fixture(scope='module')
def initial():
    return MODEL.initial_parameters(jax.random.key(1))


def test_which_texts_go_together_by_hand():
    assert first_and_rest([0, 3, 5, 9]) == [((0, 3), (3, 9))]
    assert first_and_rest([0, 3]) == []
    assert two_by_two([0, 3, 5, 9, 12, 13]) == [((0, 3), (3, 5)), ((5, 9), (9, 12))]
    assert twice([0, 3, 9]) == [((0, 9), (0, 9))]
    assert fitting(14, 0.5, (0, 3), (3, 7)) == ((0, 3), (3, 7))
    assert fitting(14, 0.5, (0, 30), (30, 60)) == ((0, 5), (30, 35))


def test_the_length_of_a_text_says_nothing_of_the_other():
    """A text that is cut would tell how long the other is, if it had what the other leaves of the room."""
    for share in (0.25, 0.5):
        lengths = {
            tuple(end - begin for begin, end in fitting(44, share, (0, first), (first, first + second)))
            for first in (3, 9, 50)
            for second in (50, 90)
        }
        assert {second for _, second in lengths} == {40 - round(40 * share)}
        assert {first for first, _ in lengths} == {3, 9, round(40 * share)}
    assert LAYOUTS['first_line'].share < LAYOUTS['neighbours'].share == LAYOUTS['twice'].share


def test_rows_hold_two_texts_side_by_side_each_between_special_tokens():
    letters = 'abcdefghijklmnop'
    known = make([*SPECIAL_TOKENS, *letters, '.', 'it', 'fell', 'rose', 'ended'], True)
    documents = [
        Document('1', 'a b. c\nd e f. g h.\ni'),  # a title of two sentences, an abstract of two lines
        Document('2', 'a k l'),
        Document('3', 'm\nn o p a b c d e f g h i j k l m n o p'),
    ]

    def texts(layout, documents=documents):
        settings = RowSettings(layout=layout, max_document_pieces=16)
        parts, counted = apart_parts([documents], known, settings)
        assert counted['pairs'] * 2 == len(parts)
        found = [' '.join(known.tokens[piece] for piece in part.tokens) for part in parts]
        assert all(text.startswith('[CLS] ') and text.endswith(' [SEP]') for text in found)
        return [text[6:-6] for text in found], counted, parts

    found, counted, parts = texts('first_line')
    assert found == ['a b .', 'd e f . g h . i', 'm', 'n o p a b c d e f']
    assert (counted['documents_cut'], counted['tokens_dropped'], counted['documents']) == (2, 1 + 10 + 3, 3)
    assert counted['words'] == 2 + 6 + 1 + 9
    assert counted['tokens'] == sum(len(part.tokens) for part in parts) == 21 + 8
    block = lay_out(parts, [[2, 3], [0, 1]], 16)
    assert block['segment_lengths'].tolist() == [[3, 11], [5, 10]]
    assert (block['documents'][:, 0] == block['documents'][:, 1]).all()
    sentences = [Document('4', 'It fell. It rose.\nIt ended. It fell. It rose.')]
    assert texts('neighbours', sentences)[0] == ['it fell .', 'it rose .', 'it ended .', 'it fell .']
    assert texts('twice')[0][2:4] == ['a k l'] * 2


def by_torch(vectors, objective, kept=None):
    """Mean InfoNCE of PAIRS pairs of vectors by torch's cross-entropy; `kept`: which pairs are candidates of which."""
    import torch
    import torch.nn.functional as F

    settings, losses = objective.settings, []
    for size in (vectors.shape[-1], *settings.dimensions):
        first, second = (F.normalize(vectors[side::2, :size], dim=-1) for side in (0, 1))
        logits = first @ second.T / settings.temperature
        if kept is not None:
            logits = logits.masked_fill(~torch.tensor(kept), float('-inf'))
        labels = torch.arange(len(logits))
        sides = [logits, logits.T] if settings.direction == 'both' else [logits]
        losses.append(sum(F.cross_entropy(side, labels) for side in sides) / len(sides))
    return sum(losses) / len(losses)


CASES = {
    'usual': {},
    'one way, first state': {'direction': 'one_way', 'pooling': 'cls'},
    'Matryoshka': {'dimensions': (8, 4), 'temperature': 0.05},
}


@pytest.mark.parametrize('name', CASES)
def test_loss_and_gradients_are_torchs_on_unpacked_texts(name, initial):
    import torch
    import transformers

    objective = objective_of(**CASES[name])
    example = rows_of(objective, batch_of())
    assert int(example.weights['pairs']) == PAIRS

    def mean(params):
        terms, sums = objective.loss(params, {}, example.rows, None)
        return terms['pairs'] / example.weights['pairs'], sums

    (ours, sums), gradients = jax.jit(jax.value_and_grad(mean, has_aux=True))(initial)
    model = transformers.BertForMaskedLM(
        transformers.BertConfig(**MODEL.to_config(), attn_implementation='eager')
    )
    tensors = {n: torch.from_numpy(np.array(t)) for n, t in to_tensors(initial, MODEL).items()}
    model.load_state_dict(tensors, strict=False)
    model.train()
    vectors, batch = [], batch_of()
    for tokens, lengths in zip(batch['tokens'], batch['segment_lengths']):
        for begin, length in zip(np.cumsum(lengths) - lengths, lengths):
            if length:
                ids = torch.tensor(tokens[None, begin : begin + length].astype(np.int64))
                states = model.bert(input_ids=ids).last_hidden_state[0]
                vectors.append(states[0] if objective.settings.pooling == 'cls' else states.mean(0))
    loss = by_torch(torch.stack(vectors), objective)
    loss.backward()
    assert float(ours) == pytest.approx(float(loss.detach()), rel=1e-5)
    assert float(ours) == pytest.approx(float(sums['loss']) / PAIRS, rel=1e-6)
    named = dict(model.named_parameters())
    gradients = flatten(gradients)
    largest = max(np.abs(g).max() for g in gradients.values())
    for path, gradient in gradients.items():
        other = named[MODEL.tensor_name(path)].grad
        other = np.zeros(1) if other is None else other.numpy()
        other = other.T if path.endswith('/kernel') else other
        np.testing.assert_allclose(
            np.asarray(gradient)[: len(other)] if other.any() else gradient,
            other if other.any() else 0,
            atol=1e-5 * largest,
            err_msg=path,
        )


def test_no_text_is_its_own_negative(initial):
    """Pairs 0 and 2 have a first text in common, 4 and 6 a second one; the second of pair 1 is the first of pair 3."""
    objective = objective_of(direction='both')
    rows = rows_of(objective, batch_of([(0, 4), (13, 9), (3, 6)])).rows
    vectors = np.random.default_rng(1).normal(size=(4, 4, 16)).astype(np.float32)
    kept = np.ones((PAIRS, PAIRS), bool)
    for one, other in ((0, 2), (4, 6), (1, 3)):
        kept[one, other] = kept[other, one] = False
    import torch

    given = torch.tensor(vectors.reshape(16, 16)[: 2 * PAIRS], requires_grad=True)
    wanted = by_torch(given, objective, kept)
    wanted.backward()

    def mean(vectors):
        return objective.of_pairs(vectors, rows)[0].sum() / PAIRS

    ours, gradient = jax.jit(jax.value_and_grad(mean))(vectors)
    assert float(ours) == pytest.approx(float(wanted.detach()), rel=1e-5)
    np.testing.assert_allclose(gradient.reshape(16, 16)[: 2 * PAIRS], given.grad.numpy(), atol=1e-5)
    assert not np.asarray(gradient).reshape(16, 16)[2 * PAIRS :].any()  # there are no such texts

    def of_pair(vectors, pair):
        return objective.of_pairs(vectors, rows)[0].reshape(-1)[pair]

    pushed = np.asarray(jax.jit(jax.grad(of_pair))(vectors, 0)).reshape(8, 2, 16).any(axis=(1, 2))
    assert pushed.tolist() == [True, True, False, True, True, True, True, False]
    # What would be lost without the rule: the pair that repeats a text is pushed away from it.
    apart = rows_of(objective, batch_of()).rows
    assert float(jax.jit(objective.of_pairs)(vectors, apart)[0].sum()) > float(ours) * PAIRS


def test_marks_tell_texts_apart_and_know_equal_ones():
    """Other order, other length, other place in the row."""
    objective = objective_of()
    tokens = np.array([[2, 7, 8, 3, 2, 8, 7, 3, 2, 7, 8, 3, 2, 7, 3, 0]], np.int32)
    batch = {'tokens': tokens, 'segment_lengths': np.array([[4, 4, 4, 3]], np.int32)}
    marks = [tuple(mark) for mark in np.asarray(rows_of(objective, batch).rows.marks_BxGx2)[0].tolist()]
    assert marks[0] == marks[2]
    assert len(set(marks)) == 3


def test_micro_batches_have_all_negatives_under_dropout_too():
    """The gradient is that of the loss of all pairs, every part with the units that its own pass has dropped."""
    dropped = dataclasses.replace(MODEL, dropout=0.2, attention_dropout=0.1)
    objective = objective_of(dropped, micro_batches=2)
    params = dropped.initial_parameters(jax.random.key(1))
    example, key = rows_of(objective, batch_of()), jax.random.key(5)
    loss, sums, gradients = jax.jit(functools.partial(mean_gradients, objective))(params, {}, example, key)

    def whole(params):
        parts = [
            objective.vectors(
                params, jax.tree.map(lambda x, n=n: x[n::2], example.rows), jax.random.fold_in(key, n)
            )
            for n in range(2)
        ]
        return objective.of_pairs(jnp.stack(parts, axis=1).reshape(4, 4, 16), example.rows)[0].sum() / PAIRS

    wanted, expected = jax.jit(jax.value_and_grad(whole))(params)
    assert float(loss) == pytest.approx(float(wanted), rel=1e-6)
    assert float(sums['loss']) == pytest.approx(PAIRS * float(wanted), rel=1e-6)
    largest = max(np.abs(leaf).max() for leaf in jax.tree.leaves(expected))
    for ours, other in zip(jax.tree.leaves(gradients), jax.tree.leaves(expected), strict=True):
        np.testing.assert_allclose(ours, other, atol=1e-5 * largest)


@pytest.fixture(scope='module')
def prepared(tmp_path_factory):
    """A run of titles and abstracts that share words."""
    return prepare_apart(tmp_path_factory.mktemp('apart'))


def contrastive(folder, **changes):
    return experiment(folder, **(APART | {key.replace('__', '.'): value for key, value in changes.items()}))


def test_parts_and_meshes_give_the_step_of_one_device(prepared):
    one = Steps(prepared, **{**APART, 'pretrain.micro_batches': 1})
    state, metrics = one.after(2)
    assert metrics['pairs'] > 16
    parts, found = Steps(prepared, devices=8, fsdp=2, tensor=2, **APART).after(2)
    for name, value in metrics.items():
        np.testing.assert_allclose(found[name], value, rtol=1e-4, atol=1e-6, err_msg=name)
    ours, theirs = (flatten(s['optimizer'][1].mu) for s in (parts, state))
    largest = max(np.abs(moment).max() for moment in theirs.values())
    for path, moment in theirs.items():
        np.testing.assert_allclose(ours[path], moment, atol=1e-5 * largest, err_msg=path)


LONG = {'phase__0.1__duration': 24.0, 'pretrain__learning_rate': 3e-3, 'runtime__checkpoint_every_steps': 8}


@pytest.fixture(scope='module')
def trained(prepared, tmp_path_factory):
    """The run, trained and exported; beside it what a kill leaves."""
    folder = tmp_path_factory.mktemp('trained')
    run = Run(copy_of(prepared, folder), contrastive(prepared, **LONG), quiet=True)
    with killed_copy(run, folder / 'killed', lambda step: step > 8):
        pretrained(run)
    execute(run, STAGES['export'])
    return run


def test_it_learns_which_texts_go_together(trained):
    records = trained.metrics.of('pretrain')
    before, *_, after = [r for r in records if r['kind'] == 'evaluation']
    assert after['frozen_loss'] < before['frozen_loss'] - 0.1
    assert after['losses'] == {'0.1': after['frozen_loss']}
    assert after['frozen_accuracy'] > before['frozen_accuracy']
    steps = [r for r in records if r['kind'] == 'train']
    assert all(r['pairs'] > 16 and 0 <= r['accuracy'] <= 1 and r['flops'] > 0 for r in steps)
    rows = Rows(trained.folder('rows'), 'train')
    assert rows.counts.share_random is None
    assert rows.counts.pairs == (rows.read(np.arange(len(rows)))['segment_lengths'] > 0).sum() / 2


def test_a_run_that_was_killed_ends_with_the_same_bits(trained, prepared):
    again = pretrained(Run(trained.workdir.parent / 'killed', trained.config, quiet=True))
    assert_same_bits(trained, again, '0.1')


TEXTS = [
    'one two',
    'de',
    'a longer text with many more of the letters, and words, than a model of 32 pieces can read',
    '',
]


def test_the_export_says_how_vectors_are_made_and_keeps_its_head(trained):
    """Files beside our own, which a second export finds whole; vectors as transformers' states give them."""
    import torch
    import transformers

    folder = trained.folder('export') / '0.1'
    sums = dict(reversed(line.split('  ')) for line in (folder / 'sha256sums').read_text().splitlines())
    assert {'modules.json', '1_Pooling/config.json', 'model.safetensors'} <= sums.keys()
    assert '1_Pooling/config.json' in {name[4:] for name in trained.manifest('export').files}
    assert transformers.AutoModelForMaskedLM.from_pretrained(folder, local_files_only=True)
    told = 'contrastive: contrastive learning of texts in pairs (InfoNCE); temperature 0.05'
    card = (folder / 'README.md').read_text()
    assert told in card
    assert 'library_name: sentence-transformers\npipeline_tag: sentence-similarity' in card
    assert 'SentenceTransformer(folder).encode(' in card
    assert 'widget' not in card
    model = transformers.AutoModel.from_pretrained(folder, local_files_only=True).eval()
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder, local_files_only=True)
    found = bx.embed(folder, TEXTS)
    assert (found.shape, found.dtype) == ((4, 16), np.float32)
    for text, vector in zip(TEXTS, found):
        with torch.inference_mode():
            states = model(**tokenizer(text, return_tensors='pt', truncation=True)).last_hidden_state[0]
        mean = states.mean(0).numpy()
        np.testing.assert_allclose(vector, mean / np.linalg.norm(mean), atol=1e-5)
        if text == TEXTS[0]:
            first = states[0, :8].numpy()
            [short] = bx.embed(model, [text], tokenizer=tokenizer, pooling='cls', dimensions=8)
            np.testing.assert_allclose(short, first / np.linalg.norm(first), atol=1e-5)
    assert build._kept(folder, json.loads((folder / 'export.json').read_text())['checkpoint'])
    (folder / '1_Pooling' / 'config.json').rename(folder / 'away')
    assert build._kept(folder, json.loads((folder / 'export.json').read_text())['checkpoint']) is None
    (folder / 'away').rename(folder / '1_Pooling' / 'config.json')


def test_the_mean_of_models_makes_vectors_as_they_do(trained, tmp_path):
    folder = trained.folder('export') / '0.1'
    merge([folder, folder], (), tmp_path / 'mean')
    np.testing.assert_allclose(bx.embed(tmp_path / 'mean', TEXTS), bx.embed(folder, TEXTS), atol=1e-6)
    assert pooling_in(tmp_path / 'mean') == 'mean'


@pytest.mark.parametrize('pooling', POOLINGS)
def test_sentence_transformers_gives_our_vectors(pooling, trained, tmp_path, monkeypatch, capsys):
    library = pytest.importorskip('sentence_transformers')
    folder = shutil.copytree(trained.folder('export') / '0.1', tmp_path / 'model')
    files = files_for_sentence_transformers(pooling, 16, longest=20)
    files['sentence_bert_config.json']['do_lower_case'] = True  # as its tokenizer does
    files['tokenizer_config.json'] = json.loads((folder / 'tokenizer_config.json').read_text())
    files['tokenizer_config.json']['model_max_length'] = 10
    for path, value in files.items():
        (folder / path).write_text(json.dumps(value))
    theirs = library.SentenceTransformer(str(folder), device='cpu', local_files_only=True).encode(TEXTS)
    np.testing.assert_allclose(bx.embed(folder, TEXTS), theirs, atol=1e-5)
    monkeypatch.chdir(folder)
    exec(VECTORS, {})  # the code on the card
    one, other = bx.embed(folder, re.findall(r"'([a-zA-Z .]{5,})'", VECTORS))
    assert float(capsys.readouterr().out.split()[-1]) == pytest.approx(float(one @ other), abs=1e-4)


def test_an_empty_prompt_changes_nothing(tmp_path):
    said = {'prompts': {'document': ''}, 'default_prompt_name': 'document'}
    for path, value in ways(('config_sentence_transformers.json', said)).items():
        (tmp_path / path).parent.mkdir(exist_ok=True)
        (tmp_path / path).write_text(json.dumps(value))
    assert pooling_in(tmp_path) == 'mean'


def ways(*changes):
    """modules.json with Pooling in the folder 1_Pooling, and this in config.json there."""
    return files_for_sentence_transformers('mean', 16) | dict(changes)


CASED = tokenizers.BertWordPieceTokenizer(
    {token: i for i, token in enumerate(('[PAD]', '[UNK]', '[CLS]', '[SEP]', '[MASK]', 'A', 'a'))},
    lowercase=False,
)
ODD = {
    'small letters': (
        ways(
            ('sentence_roberta_config.json', {'do_lower_case': True}),
            ('tokenizer.json', json.loads(CASED.to_str())),
        ),
        r'sentence_roberta_config\.json: do_lower_case is true, and the tokenizer keeps capitals; make small letters',
    ),
    'ends': (
        ways(('tokenizer_config.json', {'truncation_side': 'left'})),
        r'tokenizer_config\.json: truncation_side is left, but of long texts the beginning is read here; set it to',
    ),
    'prompt': (
        ways(
            (
                'config_sentence_transformers.json',
                {'prompts': {'query': 'Q: '}, 'default_prompt_name': 'query'},
            )
        ),
        "the prompt 'query' comes before every text by default, which is not done here; put it",
    ),
    'dense': (
        ways(('modules.json', [{'type': 'x.Transformer'}, {'type': 'x.Pooling'}, {'type': 'x.Dense'}])),
        'Dense, but',
    ),
    'no list': (
        ways(('modules.json', {'a': 1})),
        'modules are none, but only Transformer, Pooling, Normalize',
    ),
    'not said': (ways(('1_Pooling/config.json', [])), r'1_Pooling/config\.json: is missing or says nothing'),
    'maximum': (
        ways(('1_Pooling/config.json', {'pooling_mode_max_tokens': True})),
        'pools by max_tokens, and',
    ),
    'two': (
        ways(('1_Pooling/config.json', {'pooling_mode_mean_tokens': True, 'pooling_mode_cls_token': True})),
        'pools by mean, cls, and what is done here is one of mean, cls; export',
    ),
}


@pytest.mark.parametrize('name', ODD)
def test_other_ways_to_make_vectors_are_refused_in_one_line(name, tmp_path):
    values, message = ODD[name]
    (tmp_path / '1_Pooling').mkdir()
    for path, value in values.items():
        (tmp_path / path).write_text(json.dumps(value))
    with pytest.raises(InputError, match=message) as caught:
        pooling_in(tmp_path)
    assert '\n' not in str(caught.value)


def test_how_others_say_it_is_read(tmp_path):
    assert pooling_in(tmp_path) is None
    assert longest_in(tmp_path) is None
    (tmp_path / 'modules.json').write_text(
        json.dumps(
            [{'type': f'sentence_transformers.x.{part}', 'path': ''} for part in ('Transformer', 'Pooling')]
        )
    )
    (tmp_path / 'config.json').write_text('{"embedding_dimension": 32, "pooling_mode": "cls"}')
    (tmp_path / 'tokenizer_config.json').write_text('{"model_max_length": 128}')
    assert (pooling_in(tmp_path), longest_in(tmp_path)) == ('cls', 128)
    (tmp_path / 'sentence_bert_config.json').write_text('{"max_seq_length": 256}')
    assert longest_in(tmp_path) == 256  # as sentence-transformers 6.2.0 has it


EMBED_WRONG = {
    'pooling': (dict(pooling='max'), "pooling: 'max' is not one of mean, cls"),
    'dimensions': (dict(dimensions=17), 'dimensions: 17, but vectors of .* have 16 numbers'),
    'max_pieces': (dict(max_pieces=99), r'max_pieces: 99, but .* has 32 positions'),
    'no piece': (dict(max_pieces=2), 'max_pieces: 2 leaves no piece of a text; give 3 or more, or 0'),
    'one text': (dict(texts='one'), 'texts: is one text; give a list'),
}


@pytest.mark.parametrize('name', EMBED_WRONG)
def test_what_cannot_be_embedded_is_refused_in_one_line(name, trained):
    given, message = EMBED_WRONG[name]
    with pytest.raises(ConfigError, match=f'^{message}') as caught:
        bx.embed(trained.folder('export') / '0.1', **{'texts': ['a'], **given})
    assert '\n' not in str(caught.value)


REFUSED = {
    'rows.layout': (
        {'rows.layout': 'documents'},
        r'config\.pretrain\.objective: contrastive needs texts in pairs, .* one of first_line, neighbours, twice$',
    ),
    'dropout': (
        {'rows.layout': 'twice', 'model.dropout': 0.0, 'model.attention_dropout': 0.0},
        r'config\.model\.dropout: is 0, so both vectors of a text are one .* set it to 0\.1, .*$',
    ),
    'dimensions': (
        {'objective.contrastive.dimensions': '16,'},
        r'config\.objective\.contrastive\.dimensions: 16 is no beginning of vectors of 16 numbers, .*$',
    ),
    'order': (
        {'curriculum.order': 'easy_to_hard'},
        r'config\.curriculum\.order: .* config\.pretrain\.objective=contrastive does not have; .*$',
    ),
}


@pytest.mark.parametrize('name', REFUSED)
def test_what_cannot_be_is_refused_in_one_line(name, prepared, tmp_path):
    changes, message = REFUSED[name]
    with pytest.raises(ConfigError, match=message) as caught:
        check(Run(tmp_path / 'run', experiment(prepared, **{**APART, **changes}), quiet=True))
    assert '\n' not in str(caught.value)


def test_documents_of_one_line_have_no_pairs(prepared, tmp_path):
    file = tmp_path / 'one.jsonl'
    file.write_text(
        ''.join(json.dumps({'id': str(n), 'abstract': f'{n} words in a line'}) + '\n' for n in range(40))
    )
    changes = dict(
        corpus__inputs=file, vocab__kind='file', vocab__file=prepared / 'run' / 'vocab' / 'vocab.txt'
    )
    run = Run(tmp_path / 'run', contrastive(prepared, **changes), quiet=True)
    for stage in ('corpus', 'vocab'):
        execute(run, STAGES[stage])
    with pytest.raises(
        InputError, match=r'no training document has two texts, .*first_line needs .*text_fields, or .*$'
    ):
        execute(run, STAGES['rows'])
