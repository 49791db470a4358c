"""Finished models as ONNX: the same as PyTorch for every family, the same scores, and what is refused."""

import ast
import json
import os
import random
import re
import shutil

import numpy as np
import pytest
import toy_families
from safetensors.torch import load_file, save_file
from toy_commands import call
from toy_sets import DRUGS, OTHER, TYPES, load_tagger, save_encoder, save_set, settings

import bioptimus_jax as bx
from bioptimus_jax.cli.main import BAD_INPUT, USAGE, main
from bioptimus_jax.cli.push import parcel
from bioptimus_jax.finetuning.cells import Cell, run_cell
from bioptimus_jax.finetuning.finished import read_cell
from bioptimus_jax.finetuning.kept import Reads
from bioptimus_jax.finetuning.stored import save_model
from bioptimus_jax.finetuning.task import score_of
from bioptimus_jax.finetuning.tasks.entities import TASK as ENTITIES
from bioptimus_jax.model.pooling import files_for_sentence_transformers
from bioptimus_jax.sets.corpora import set_at
from bioptimus_jax.storage.files import read_sealed, write_json, write_sealed

pytest.importorskip('onnxruntime')
pytest.importorskip('onnxscript')

from bioptimus_jax.export.sums import SUMS
from bioptimus_jax.inference.onnx import gate, graph, session
from bioptimus_jax.inference.onnx.answering import ANSWERING
from bioptimus_jax.inference.onnx.build import export_onnx
from bioptimus_jax.inference.onnx.scored import as_tested, scores
from bioptimus_jax.records.onnx import Agreement

MASKED = 'AutoModelForMaskedLM'
# Two layers where layers differ, else one: tracing takes most of the time.
SMALL = {
    'bert': 'bert, one layer, uneven, untied',
    'roberta': 'roberta, one layer, uneven, untied',
    'distilbert': 'distilbert, one layer, uneven, untied',
    'mpnet': 'mpnet, one layer, uneven, untied',
    'deberta-v2': 'deberta-v2, its last bucket before its last position',
    'electra': 'electra, narrow table',
    'big_bird': 'big_bird',
    'megatron-bert': 'megatron-bert, one layer, uneven, untied',
    'roberta-prelayernorm': 'roberta-prelayernorm, one layer, uneven, untied',
    'gte': 'gte',
    'nomic_bert': 'nomic_bert, one layer, uneven, untied',
    'albert': 'albert, two groups of layers, as wide as its table, untied',
    'modernbert': 'modernbert',
    'eurobert': 'eurobert, one layer, one head of keys, tied',
    'ultrabert': 'ultrabert',
    **{name: name for name in toy_families.RENAMED},
}


UNLIKE = {'modernbert'}
"""The family that is least like BERT, which is in most tests below. Whatever the family, a file that does not compute
the same as PyTorch is not let out, as a test below shows."""


@pytest.mark.parametrize(
    'name', [pytest.param(n, marks=[] if n in UNLIKE else [pytest.mark.slow]) for n in SMALL]
)
def test_every_family_computes_the_same(name, tmp_path):
    """One text, two and more, up to all positions, with padding, of a table that is tied or not."""
    made = toy_families.noisy(toy_families.SHAPES[SMALL[name]])
    architecture = made.architecture
    assert architecture.model_type == name
    if architecture.layers > 2:
        made = made.changed(layers=2)
    model = toy_families.torch_model(made)
    graph.write_float32(model, graph.Purpose(MASKED), tmp_path)
    onnx = session.OnnxModel(session.opened(tmp_path / 'model.onnx', 1), model.config)
    assert onnx.inputs == graph.inputs_of(model)
    random = np.random.default_rng(0)
    lengths = [9, 4, architecture.positions // 2, 2, architecture.positions]
    pieces = [tuple(random.integers(2, architecture.vocab_size, length).tolist()) for length in lengths]
    rows = [gate.Row(ids, tuple(at > len(ids) // 2 for at in range(len(ids)))) for ids in pieces]
    given = list(gate.batches(rows, architecture.vocab_size, architecture.positions))
    assert {1, 2, 5} <= {len(batch) for batch in given}
    sides = asking(onnx, onnx.inputs), asking(model, onnx.inputs)
    found = gate.compared(*sides, given, model.config, ANSWERING[MASKED], -1)
    assert found.relative < 1e-5
    assert found.alike == 1
    assert found.pieces == sum(len(row.pieces) for batch in given for row in batch)


def asking(model, names):
    import torch

    @torch.inference_mode()
    def compute(tensors):
        return model(**{name: tensors[name] for name in names}).logits.numpy()

    return compute


@pytest.fixture(scope='module')
def run(tmp_path_factory):
    """A run that kept a tagger, a classifier of two texts and a model that gives numbers, on sets that teach them."""
    root, draw = tmp_path_factory.mktemp('onnx'), random.Random(0)
    (root / 'sets').mkdir()
    save_set(root / 'sets' / 'drugs', (100, 30, 40))
    for split, count in {'train': 120, 'devel': 24, 'test': 40}.items():
        pairs, numbers = [], ['id\ta\tb\tscore']
        for at in range(count):
            drug, word = draw.choice(DRUGS[:2]), draw.choice(OTHER)
            pairs.append(
                f'{at}\t{word} {drug} {drug}\tthe dose of {word}\t{"yes" if drug == DRUGS[0] else "no"}'
            )
            score = draw.randrange(5)
            numbers.append(f'{at}\t{" ".join([*DRUGS[:1] * score, "the"])}\tthe dose\t{score}')
        for name, lines in {'bioasq': pairs, 'biosses': numbers}.items():
            (root / 'sets' / name).mkdir(exist_ok=True)
            (root / 'sets' / name / f'{split}.tsv').write_text('\n'.join(lines) + '\n')
    save_encoder(root / 'tiny', layers=1)
    keys = {'seeds': '0', 'epochs': '10', 'learning_rate': '5e-3', 'batch_sentences': '8', 'keep': 'best'}
    keys |= {
        'max_pieces': '48',
        'overlap_pieces': '8',
        'folder': root / 'sets',
        'models': f'tiny={root / "tiny"}',
    }
    (root / 'c.py').write_text('from bioptimus_jax.ext import defaults as get_config\n')
    asked = [f'--config.finetune.{key}={value}' for key, value in keys.items()]
    assert main(['finetune', f'--config={root / "c.py"}', f'--workdir={root / "run"}', *asked]) == 0
    return root / 'run'


def kept(run, dataset):
    return run / 'finetune' / 'tiny' / dataset / 'standard' / 'seed-0' / 'model'


def exported(to, *arguments):
    assert main(['export', *map(str, arguments), '--form=onnx', f'--to={to}']) == 0
    return session.form_of(to)


# Slow: a classifier goes the way of the tagger and of the model that gives numbers.
@pytest.mark.parametrize(
    ('dataset', 'precision'),
    [
        ('drugs', 'int8'),
        pytest.param('bioasq', 'float32', marks=pytest.mark.slow),
        ('biosses', 'float16'),
    ],
)
def test_a_fine_tuned_model_keeps_its_test_score_and_answers(dataset, precision, run, tmp_path, capsys):
    """The score of the file is that of the model within its interval, and what is predicted for text is the same."""
    model, to = kept(run, dataset), tmp_path / 'onnx'
    form = exported(to, model, f'--precision={precision}')
    said = capsys.readouterr().out
    score = form.score
    assert (score.dataset, score.items) == (dataset, 40)
    own = score_of(read_cell(model.parent / 'scores.json'), 'test')
    assert score.pytorch == pytest.approx(own, abs=1e-4), 'what the record of the fine-tuning says'
    assert score.low <= score.onnx <= score.high
    assert score.pytorch > 0.3
    assert f'test of {dataset}, 40 items: {score.metric} {100 * score.onnx:.2f}, PyTorch' in said
    assert re.search(
        r'export: [\d,]+ texts/s, PyTorch in float32 [\d,]+ \(texts of \d+ pieces, 1 thread of ', said
    )
    assert form.agreement.relative <= gate.BOUNDS[precision].relative
    assert form.precision == precision
    assert form.speed.onnx > 0
    assert {p.name for p in to.iterdir()} >= {'model.onnx', 'onnx.json', 'config.json', 'tokenizer.json'}
    assert (to / 'reading.json').read_bytes() == (model / 'reading.json').read_bytes()
    texts = ['the patient got zolmipan dose daily', 'amlozine the amlozine of and', 'the dose']
    texts = [(text, 'the dose') for text in texts] if dataset != 'drugs' else texts
    ours, theirs = bx.predict(to, texts), bx.predict(model, texts)
    assert any(one.get('entities') or one.get('answers') for one in ours)
    for one, other in zip(ours, theirs, strict=True):
        near = dict(abs=0.05) if precision == 'int8' else dict(abs=0.01)
        assert one.get('entities') == other.get('entities')
        if dataset == 'biosses':
            assert one['answers'] == pytest.approx(other['answers'], **near)
        else:
            assert one.get('answers') == other.get('answers')
            assert one['probabilities'] == pytest.approx(other['probabilities'], **near)


@pytest.fixture(scope='module')
def tiny(tmp_path_factory):
    return save_encoder(tmp_path_factory.mktemp('tiny') / 'tiny', layers=1)


@pytest.fixture(scope='module')
def onnx(tiny, tmp_path_factory):
    """A masked language model as ONNX."""
    to = tmp_path_factory.mktemp('made') / 'onnx'
    export_onnx(tiny, to, 'float32', 1, lambda line: None)
    return to


def code_in(folder):
    """The lines of Python on the card of a folder."""
    [code] = re.findall(r'```python\n(.*?)```', (folder / 'README.md').read_text(), re.S)
    return code


def test_a_folder_says_what_is_in_it_and_its_card_how_it_is_used(onnx, tiny, monkeypatch, capsys):
    """Inputs, opset and precision are those of the file; no path of this machine is in it; the card's lines run."""
    import onnx as library

    file = library.load(onnx / 'model.onnx')
    form = session.form_of(onnx)
    assert tuple(one.name for one in file.graph.input) == form.inputs
    assert [one.name for one in file.graph.output] == [form.output] == ['logits']
    assert {one.domain: one.version for one in file.opset_import}[''] == form.opset == graph.OPSET
    assert form.bytes == {'model.onnx': (onnx / 'model.onnx').stat().st_size}
    assert form.positions == 128
    assert {'torch', 'onnx', 'onnxruntime', 'onnxscript'} <= form.versions.keys()
    assert b'site-packages' not in (onnx / 'model.onnx').read_bytes()
    sums = dict(line.split('  ')[::-1] for line in (onnx / SUMS).read_text().splitlines())
    assert set(sums) == {p.name for p in onnx.iterdir()} - {SUMS}
    sent = parcel(onnx)  # what `push` would send
    assert set(sent.files) == {p.name for p in onnx.iterdir()}
    monkeypatch.chdir(onnx)
    exec(code_in(onnx), {})
    assert len(ast.literal_eval(capsys.readouterr().out)) == 5
    text = 'Treatment with [MASK] was effective.'
    [theirs], [ours] = bx.predict(tiny, [text]), bx.predict(onnx, [text])
    assert [list(one) for one in ours['masks']] == [list(one) for one in theirs['masks']]


def test_vectors_are_those_of_the_model(tmp_path, monkeypatch):
    """A folder that says how its vectors are pooled becomes a graph that pools."""
    folder = save_encoder(tmp_path / 'texts', layers=1)
    (folder / '1_Pooling').mkdir()
    for path, value in files_for_sentence_transformers('mean', 32).items():
        write_json(folder / path, value)
    form = export_onnx(folder, tmp_path / 'onnx', 'float32', 1, lambda line: None)
    assert (form.output, form.hf_class) == ('vectors', 'AutoModel')
    texts = ['the patient got zolmipan', 'daily dose', 'of']
    code, known = re.sub(r"\['a dose.*?\]", repr(texts), code_in(tmp_path / 'onnx')), {}
    monkeypatch.chdir(tmp_path / 'onnx')
    exec(code, known)
    np.testing.assert_allclose(known['vectors'], bx.embed(folder, texts), atol=1e-5)
    with pytest.raises(bx.InputError, match=r'onnx\.json: the graph gives vectors of AutoModel, no answers'):
        bx.predict(tmp_path / 'onnx', ['a [MASK]'])


def test_int8_leaves_tables_as_they_are_and_large_weights_get_a_file_of_their_own(tmp_path, monkeypatch):
    import onnx as library

    monkeypatch.setattr(graph, 'ONE_FILE_BYTES', 1000)
    # Small random weights are not sure of their answers: of `tiny` 89.9 % stay the same in seven bits.
    sure = save_encoder(tmp_path / 'sure', layers=1, initializer_range=0.2)
    form = export_onnx(sure, tmp_path / 'onnx', 'int8', 1, lambda line: None)
    assert set(form.bytes) == {'model.onnx', 'model.onnx.data'}
    assert bx.predict(tmp_path / 'onnx', ['a [MASK]'])
    file = library.load(tmp_path / 'onnx' / 'model.onnx')
    kinds = {one.name: library.TensorProto.DataType.Name(one.data_type) for one in file.graph.initializer}
    gathered = {node.input[0] for node in file.graph.node if node.op_type == 'Gather'} & kinds.keys()
    assert len(gathered) >= 3
    assert {kinds[name] for name in gathered} <= {'FLOAT', 'INT64'}
    assert list(kinds.values()).count('INT8') >= 6
    scales = [one for one in file.graph.initializer if one.name.endswith('_scale')]
    assert any(np.prod(one.dims) > 1 for one in scales), 'a scale for each column'
    (tmp_path / 'onnx' / 'model.onnx.data').unlink()
    with pytest.raises(bx.InputError, match=r'model\.onnx\.data: is missing; restore it, or export it again'):
        bx.predict(tmp_path / 'onnx', ['a [MASK]'])


def test_a_file_that_computes_something_else_is_not_let_out(onnx, tmp_path, monkeypatch, capsys):
    """The file of another model, one row of whose table is off."""
    other = save_encoder(tmp_path / 'other', layers=1)
    weights = load_file(other / 'model.safetensors')
    weights['bert.embeddings.word_embeddings.weight'][7] *= -5
    save_file(weights, other / 'model.safetensors', {'format': 'pt'})
    monkeypatch.setitem(
        graph.PRECISIONS,
        'float32',
        lambda model, purpose, folder: shutil.copyfile(onnx / 'model.onnx', folder / 'model.onnx'),
    )
    code, line = call(capsys, 'export', str(other), '--form=onnx', f'--to={tmp_path / "onnx"}')
    assert code == BAD_INPUT
    assert re.search(r'other: as ONNX in float32 its values are off by .* allowed are 0\.0001', line)
    assert [p.name for p in tmp_path.iterdir()] == ['other'], 'nothing is left of it'


def test_a_score_outside_of_its_interval_is_refused(run):
    """A model that says nothing at all beside the one that was kept."""
    folder = kept(run, 'drugs')
    (model, _), (changed, _) = graph.load(folder), graph.load(folder)
    changed.classifier.bias.data[0] += 100
    labels = [model.config.id2label[at] for at in range(3)]
    said = r'its entity F1 on the test of drugs is 0\.00, outside of the interval of its own .*; take --precision='
    with pytest.raises(gate.OnnxGateError, match=said):
        scores(as_tested(folder), folder, model, changed, labels)
    assert scores(as_tested(folder), folder, model, model, labels).onnx > 0.3


def test_a_tagger_is_scored_on_the_words_that_it_reads(tmp_path, tiny):
    """Not on their parts, which predictions are kept for where a mention ends within a word, or beyond the sentence.
    Where the record does not tell the words there is no score, and it is said why."""
    text = 'The nonaspirinal dose. It was aspirin. Twice a day.'
    marked = [[7, 14, 'Drug'], [30, 45, 'Drug']]
    (tmp_path / 'sets').mkdir()
    for split in ('train', 'devel', 'test'):
        line = json.dumps({'text': text, 'entities': marked})
        (tmp_path / 'sets' / f'{split}.jsonl').write_text(f'{line}\n' * 2)
    chosen = set_at(tmp_path / 'sets')
    dataset = ENTITIES.read(chosen)
    keys = settings(epochs=1, max_pieces=48, overlap_pieces=8)
    cell = Cell('m', tiny, chosen, 'standard', keys, 0, tmp_path / 'cell', 1, True, '', keep=True)
    run_cell(cell, dataset)
    folder = cell.target / 'model'
    items = as_tested(folder).items
    assert [item.words for item in items] == [sentence.words for sentence in dataset.test]
    assert [item.exact for item in items] == [sentence.exact for sentence in dataset.test]
    assert [word for word in items[0].exact.words if 'aspirin' in word] == ['aspirin']
    assert items[1].exact.word_of[-1] == len(items[1].words)
    record, said = read_sealed(cell.target / 'scores.json'), []
    del record['word_of']
    write_sealed(cell.target / 'scores.json', record)
    assert as_tested(folder, said.append) is None
    assert re.search(
        r'scores\.json: does not tell which words .* \(word_of\), so both are not scored', said[0]
    )


def test_bounds_are_those_of_the_precision():
    def found(relative, alike=1.0):
        return Agreement(rows=1, pieces=1, largest=1.0, relative=relative, alike=alike)

    for precision, bound in gate.BOUNDS.items():
        gate.require_alike(found(bound.relative, bound.alike), precision, 'm')
        gate.require_alike(found(0.0, None), precision, 'm')
        for wrong in (found(1.01 * bound.relative), found(0.0, bound.alike - 0.01), found(float('nan'))):
            with pytest.raises(gate.OnnxGateError, match=f'm: as ONNX in {precision} '):
                gate.require_alike(wrong, precision, 'm')


def test_a_discriminator_says_of_pieces_whether_they_were_put_in(tmp_path):
    import torch
    import transformers

    folder = save_encoder(tmp_path / 'electra', 'electra', layers=1)
    config = transformers.AutoConfig.from_pretrained(folder)
    transformers.ElectraForPreTraining(config).save_pretrained(folder)
    model, purpose = graph.load(folder)
    assert purpose == graph.Purpose('AutoModelForPreTraining')
    given = {name: torch.ones(2, 5, dtype=torch.int64) for name in graph.inputs_of(model)}
    assert graph.Traced(model, purpose)(**given).shape == (2, 5)


def refused(capsys, code, message, *arguments):
    found, line = call(capsys, 'export', *arguments)
    assert (found, line.count('\n')) == (code, 0), line
    assert re.search(message, line), line


def test_bad_input_is_one_line(tiny, onnx, tmp_path, capsys, monkeypatch):
    to = f'--to={tmp_path / "new"}'
    onnx_form = '--form=onnx'
    refused(capsys, BAD_INPUT, r'none: no such folder; give the folder of a model', './none', onnx_form, to)
    refused(
        capsys, USAGE, r'--precision: invalid choice: .int4.', str(tiny), onnx_form, to, '--precision=int4'
    )
    refused(capsys, USAGE, r'--form: invalid choice: .onx.*did you mean', str(tiny), '--form=onx', to)
    refused(capsys, USAGE, r'--to is missing; give a new folder', str(tiny), onnx_form)
    refused(capsys, USAGE, r'--form is missing; give --form=onnx', str(tiny), to)
    refused(capsys, USAGE, r'MODEL is missing; give the folder of a model', onnx_form, to)
    refused(
        capsys,
        USAGE,
        r'MODEL is a folder and belongs to no --config',
        str(tiny),
        onnx_form,
        to,
        '--workdir=x',
    )
    refused(capsys, BAD_INPUT, r'already exists; name a new folder', str(tiny), onnx_form, f'--to={tmp_path}')
    refused(capsys, BAD_INPUT, r'holds a model as ONNX already', str(onnx), onnx_form, to)
    sliding = save_encoder(tmp_path / 'sliding', 'longformer')
    message = (
        r'sliding: torch\.onnx cannot trace a LongformerForMaskedLM \(Could not guard .*\); use it in PyTorch'
    )
    refused(capsys, BAD_INPUT, message, str(sliding), onnx_form, to)
    crf = tmp_path / 'crf'
    crf.mkdir()
    write_json(crf / 'config.json', {'model_type': 'bert', 'architectures': ['BertCrfForTagging']})
    refused(
        capsys,
        BAD_INPUT,
        r'"architectures" names BertCrfForTagging; a model that answers is one of \.\.\.ForTokenClassification',
        str(crf),
        onnx_form,
        to,
    )
    tokenizer, tagger = load_tagger(tiny, TYPES, settings(head='crf'), 0)
    save_model(ENTITIES, tokenizer, tagger, Reads(64, 8), tmp_path / 'kept')
    message = r'kept: its head \(head=crf, .*\) is of no class of transformers, and only those are traced; fine-tune'
    refused(capsys, BAD_INPUT, message, str(tmp_path / 'kept'), onnx_form, to)
    (tmp_path / 'kept' / 'ensemble.json').write_text('{}')
    refused(capsys, BAD_INPUT, r'holds several models, and', str(tmp_path / 'kept'), onnx_form, to)
    damaged = tmp_path / 'damaged'
    damaged.mkdir()
    for file in onnx.iterdir():
        (damaged / file.name).write_bytes(file.read_bytes())
    encoder = r'kept: holds no weights .*; its encoder is in .*kept/encoder: give that'
    unread = r'model\.onnx: onnxruntime cannot read it .*export it again'
    lacks = r"onnx\.json: is damaged \(without the key 'hf_class'\)"
    for act, name, text, message in (
        (bx.embed, 'kept/ensemble.json', '{}', encoder),
        (bx.predict, 'damaged/model.onnx', 'nothing', unread),
        (bx.predict, 'damaged/onnx.json', '{"inputs": 3}', lacks),
    ):
        (tmp_path / name).write_text(text)
        with pytest.raises(bx.InputError, match=message):
            act((tmp_path / name).parent, ['a [MASK]'])
    found = session.importlib.util.find_spec
    monkeypatch.setattr(
        session.importlib.util, 'find_spec', lambda n: found(n) if n != 'onnxscript' else None
    )
    refused(
        capsys,
        USAGE,
        r"need the package onnxscript, which is not installed; pip install 'bioptimus-jax\[onnx\]'",
        str(tiny),
        onnx_form,
        to,
    )
    assert sorted(os.listdir(tmp_path)) == ['crf', 'damaged', 'kept', 'sliding']
