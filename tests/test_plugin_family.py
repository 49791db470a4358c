"""A model family is one file: that of the how-to, and every other, runs from a source to an export."""

import ast
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np
import pytest
from toy_families import with_padding
from toy_llama import save_like_llama
from toy_plugins import plugged, shown
from toy_sentencepiece import save_like_deberta, save_like_gemma, trained

from bioptimus_jax import predict
from bioptimus_jax.config.extensions import VARIABLE
from bioptimus_jax.errors import ConfigError, InputError
from bioptimus_jax.experiment import config
from bioptimus_jax.experiment.schema import Experiment
from bioptimus_jax.experiment.stages import STAGES
from bioptimus_jax.model import families
from bioptimus_jax.model.architecture import Rule
from bioptimus_jax.model.config import FAMILIES, Model
from bioptimus_jax.model.families.bert import Bert
from bioptimus_jax.model.folder import model_folders
from bioptimus_jax.model.loaded import load_model
from bioptimus_jax.model.rotary import Rope
from bioptimus_jax.model.tensors import load_folder, own_architecture, read_architecture, write_folder
from bioptimus_jax.model.trees import flatten, match_rules
from bioptimus_jax.pretrain.sharding import axes_of
from bioptimus_jax.pretrain.throughput import forward_flops_per_token
from bioptimus_jax.run.execute import execute
from bioptimus_jax.run.folder import Run
from bioptimus_jax.storage.files import read_json
from bioptimus_jax.tokenizer.config import TOKENIZERS, Vocab
from bioptimus_jax.tokenizer.kinds.unigram import like_scored, scores_of
from bioptimus_jax.tokenizer.kinds.wordpiece import SPECIAL_TOKENS, make
from bioptimus_jax.tokenizer.spaced import ROLES
from bioptimus_jax.tokenizer.subwords import Subwords
from bioptimus_jax.tokenizer.subwords import load as load_subwords

ROOT = Path(__file__).resolve().parents[1]
LETTERS = 'abcdeimnorst'
TOKENS = [*SPECIAL_TOKENS, *LETTERS, *('##' + letter for letter in LETTERS), 'dose', 'rate', '.']
WORDS = ['dose', 'rate', 'aster', 'mister', 'stone', 'condition', 'train', 'bacteria', 'order', 'it']
CONFIG = """
from bioptimus_jax.experiment.config import defaults

def get_config(argument=''):
    c = defaults()
    c.corpus.update(inputs=({corpus!r},), heldout_fraction=0.2, shards=1)
    c.source.path = {source!r}
    c.model.update(dropout=0.0, attention_dropout=0.0)
    c.vocab.update({vocab})
    c.surgery.update({surgery})
    c.rows.update(row_pieces=32, max_document_pieces=32)
    c.pretrain.update(batch_rows=8, learning_rate=1e-3, max_word_pieces=4)
    c.phases = ('0.1',)
    c.phase['0.1'].update(duration=10.0, duration_unit='steps')
    c.evaluation.update(rows=8, per_phase=1, settings=())
    c.runtime.update(workers=1, devices=1)
    return c
"""


@pytest.fixture(scope='module')
def ernie(tmp_path_factory):
    """The how-to's file in a folder of a user's own."""
    file = tmp_path_factory.mktemp('families') / 'ernie.py'
    file.write_text(shown('add-model-family.md', 'mine/ernie.py'))
    with plugged(file):
        yield FAMILIES.load('ernie')


class Case(NamedTuple):
    """A source: its family, fields of its shape, settings of surgery, whether it is a discriminator; and the kinds of
    tokenizer, its and the run's."""

    family: str
    fields: dict[str, Any] = {}
    surgery: dict[str, str] = {'strategy': 'averaged_input'}
    discriminator: bool = False
    tokenizers: tuple[str, str] = ('wordpiece', 'wordpiece')


CASES = {
    'ernie': Case('ernie'),
    'xlm-roberta, its padding elsewhere': Case('xlm-roberta', {'pad': 3}, tokenizers=('unigram', 'unigram')),
    'mpnet': Case('mpnet', {'pad': 1}, tokenizers=('mpnet', 'wordpiece')),
    'deberta-v2': Case('deberta-v2', {'buckets': 6}, tokenizers=('deberta', 'unigram')),
    'albert': Case(
        'albert',
        {'embedding_size': 12},
        {'strategy': 'contextualized', 'map': 'linear'},
        tokenizers=('albert', 'unigram'),
    ),
    'roberta, byte-level pairs, longer': Case(
        'roberta',
        surgery={'strategy': 'averaged_input', 'longer': {'positions': 70}},
        tokenizers=('bytelevel', 'bytelevel'),
    ),
    'megatron-bert': Case('megatron-bert', surgery={'strategy': 'contextualized', 'map': 'linear'}),
    'roberta-prelayernorm': Case('roberta-prelayernorm', tokenizers=('bytelevel', 'bytelevel')),
    'gte, as the multilingual one': Case('gte', tokenizers=('deberta', 'unigram')),
    'nomic_bert, longer': Case(
        'nomic_bert',
        surgery={
            'strategy': 'contextualized',
            'map': 'linear',
            'longer': {'positions': 70, 'rope_theta': 5e5},
        },
    ),
    'big_bird': Case('big_bird', tokenizers=('big_bird', 'unigram')),
    'longformer, longer': Case(
        'longformer',
        {'attention_windows': (6,)},
        {'strategy': 'averaged_input', 'longer': {'positions': 70}},
        tokenizers=('bytelevel', 'bytelevel'),
    ),
    'roberta, WordPiece instead': Case('roberta', tokenizers=('bytelevel', 'wordpiece')),
    'modernbert, as mmBERT': Case(
        'modernbert',
        {'global_every': 2, 'local_attention': 6},
        {'strategy': 'contextualized', 'map': 'linear'},
        tokenizers=('gemma', 'sentencepiece_bpe'),
    ),
    'electra, discriminator with a narrow table': Case(
        'electra', {'embedding_size': 12}, {'strategy': 'contextualized', 'map': 'linear'}, discriminator=True
    ),
    'eurobert, grouped, a longer context': Case(
        'eurobert',
        {
            'key_heads': 1,
            'rope': Rope(500.0, 'yarn', (('factor', 2.0), ('original_max_position_embeddings', 12))),
        },
        tokenizers=('llama', 'bytelevel'),
    ),
    'ultrabert, longer': Case(
        'ultrabert',
        {'sliding_window': 3, 'pattern': ('sliding_attention', 'full_attention'), 'prediction_head': 12},
        {'strategy': 'contextualized', 'map': 'linear', 'longer': {'positions': 70, 'rope_theta': 5e5}},
    ),
}


# Each has what two others have: the layers and heads of all are compared with transformers in test_model, and their
# tokenizers go through the same stages in test_plugin_tokenizer, or are compared with theirs in test_sentencepiece.
SLOW = (
    *('xlm-roberta, its padding elsewhere', 'mpnet', 'roberta, byte-level pairs, longer', 'deberta-v2'),
    *(
        'big_bird',
        'megatron-bert',
        'roberta-prelayernorm',
        'gte, as the multilingual one',
        'nomic_bert, longer',
        'longformer, longer',
        'roberta, WordPiece instead',
    ),
    *('eurobert, grouped, a longer context', 'ultrabert, longer', 'modernbert, as mmBERT'),
)


@pytest.fixture(
    scope='module', params=[pytest.param(n, marks=[pytest.mark.slow] * (n in SLOW)) for n in CASES]
)
def case(request):
    return CASES[request.param]


@pytest.fixture(scope='module')
def source(case, ernie, tmp_path_factory):
    """A random model as transformers saves it, with a tokenizer."""
    import transformers

    folder = tmp_path_factory.mktemp('source')
    known = made_tokenizer(case.tokenizers[0], folder, case.fields.get('pad', 0))
    # One of each of their two kinds; ALBERT's share their weights.
    layers = 2 if case.family in ('modernbert', 'ultrabert', 'albert') else 1
    shape = FAMILIES.load(case.family)(len(known.tokens), 16, layers, 2, 24, 36, **case.fields)
    made = shape.discriminator() if case.discriminator else shape
    settings = {'pad_token_id': 0, **made.to_config(), 'initializer_range': 0.3}
    settings = transformers.AutoConfig.for_model(made.model_type, **settings)
    getattr(transformers, made.hf_class)(settings).save_pretrained(folder)
    save = {'llama': save_like_llama}.get(case.tokenizers[0], Subwords.save)
    save(known, folder, shape.positions)
    return folder


SCORED = {
    'albert': ('AlbertTokenizer', '<pad> <unk> [CLS] [SEP] [MASK]'),
    'big_bird': ('BigBirdTokenizer', '<pad> </s> <s> <unk> [CLS] [SEP] [MASK]'),
}


def made_tokenizer(name, folder, pad):
    """The source's tokenizer of that name; of those that are saved in another form than ours, what that is made of."""
    if name == 'wordpiece':
        return make([*TOKENS[1 : pad + 1], TOKENS[0], *TOKENS[pad + 1 :]], True)
    if (
        name == 'mpnet'
    ):  # BERT's pieces between RoBERTa's special tokens, but for the unknown one; two between texts
        import transformers

        pieces = ['<s>', '<pad>', '</s>', '<unk>', '[PAD]', '[UNK]', *TOKENS[len(SPECIAL_TOKENS) :], '<mask>']
        theirs = transformers.MPNetTokenizer(vocab={piece: at for at, piece in enumerate(pieces)})
        theirs.save_pretrained(folder)
        return load_subwords(folder)
    if name in SCORED:  # as transformers saves it, with a class that makes it from pieces and scores
        import transformers

        kind, special = SCORED[name]
        scored = scores_of(trained('unigram', WORDS, 60, lowercase=True))
        pieces = [(piece, score) for piece, score in scored.items() if piece not in ROLES]
        theirs = getattr(transformers, kind)(vocab=[*((token, 0.0) for token in special.split()), *pieces])
        theirs.save_pretrained(folder)
        return load_subwords(folder)
    if name in ('bytelevel', 'llama'):
        counts = {f' {word}': 9 for word in WORDS}
        return TOKENIZERS.load('bytelevel').train(counts, Vocab(size=300, min_frequency=1), None)
    known = trained('sentencepiece_bpe' if name == 'gemma' else 'unigram', WORDS, 60, lowercase=True)
    if name != 'unigram':
        save = save_like_gemma if name == 'gemma' else save_like_deberta
        return load_subwords(save(known, folder, 36))
    assert pad == 3
    scores = scores_of(known)
    first = dict.fromkeys((known.roles.cls, known.roles.sep, known.roles.unknown, known.roles.pad), 0.0)
    return known.kind.of(like_scored(known.tokenizer, known.roles, first | scores), known.roles)


@pytest.fixture(scope='module')
def run(case, source, tmp_path_factory):
    """A run that has gone from that source to an export."""
    folder, draw = tmp_path_factory.mktemp('run'), np.random.default_rng(0)
    with open(folder / 'corpus.jsonl', 'w') as file:
        for number in range(120):
            text = ' '.join(draw.choice(WORDS, draw.integers(6, 12))) + '.'
            file.write(json.dumps({'id': str(number), 'title': '', 'abstract': text}) + '\n')
    sizes = {'wordpiece': 100, 'unigram': 100, 'bytelevel': 330, 'sentencepiece_bpe': 350}
    cased = case.tokenizers[0] in ('gemma', 'deberta', 'big_bird')
    vocab = {'tokenizer': case.tokenizers[1], 'size': sizes[case.tokenizers[1]], 'lowercase': not cased}
    places = {'corpus': str(folder / 'corpus.jsonl'), 'source': str(source)}
    (folder / 'tiny.py').write_text(CONFIG.format(**places, surgery=case.surgery, vocab=vocab))
    experiment = Experiment.from_config(config.load(str(folder / 'tiny.py')))
    run = Run(folder / 'run', experiment, quiet=True)
    for stage in ('corpus', 'vocab', 'contexts', 'surgery', 'rows', 'pretrain', 'export'):
        execute(run, STAGES[stage])
    return run


def filled(model, text):
    """The probability of every token at the mask."""
    ids = np.array([model.subwords.tokenizer.encode(text).ids], np.int32)
    batch = {
        'tokens': ids,
        'segments': np.ones_like(ids),
        'positions': np.arange(ids.size, dtype=np.int32)[None],
    }
    architecture = model.architecture
    logits = jax.jit(lambda p: architecture.logits(p, architecture.encode(p, batch)))(model.parameters)
    return np.asarray(jax.nn.softmax(logits[0]))[ids[0] == model.subwords.mask][0]


def test_a_family_in_a_file_runs_from_a_source_to_an_export(run, source, case):
    from transformers import AutoModelForMaskedLM, pipeline

    family = FAMILIES.load(case.family)
    folders = model_folders(run.config, run.folder, ['source', 'initial', '0.1'], '--model')
    models = {name: load_model(folder) for name, folder in folders.items()}
    assert folders['source'] == source
    assert {type(m.architecture) for m in models.values()} == {family}
    assert {read_json(folder / 'config.json')['model_type'] for folder in folders.values()} == {case.family}
    assert [bool(m.fresh) for m in models.values()] == [case.discriminator, False, False]
    # Surgery: rows of shared tokens are copied, everything but the two parameters with a row a token is.
    before, initial = models['source'], models['initial']
    new = [token for token in initial.vocabulary if token not in before.vocabulary]
    assert new
    kept_kind = case.tokenizers != ('bytelevel', 'wordpiece')
    for number, token in enumerate(initial.vocabulary if kept_kind else ()):
        if token not in new:
            np.testing.assert_array_equal(
                initial.table()[number], before.table()[before.vocabulary.index(token)]
            )
    of_source, of_initial, of_export = (flatten(m.parameters) for m in models.values())
    for path, value in of_source.items():
        if path not in (*initial.architecture.padded, *before.fresh):
            grown = path.endswith('position_embeddings/embedding')
            own = of_initial[path][: len(value)] if grown else of_initial[path]
            np.testing.assert_array_equal(own, value, err_msg=path)
    longer = case.surgery.get('longer', {})
    assert models['0.1'].architecture.positions == longer.get('positions', before.architecture.positions)
    if 'rope_theta' in longer:
        settings = read_json(folders['0.1'] / 'config.json')['rope_parameters']
        assert settings.get('full_attention', settings)['rope_theta'] == longer['rope_theta']
    # Ten steps of pre-training have moved every parameter; the key's bias has no gradient, by softmax.
    still = [path for path, value in of_export.items() if np.array_equal(value, of_initial[path])]
    assert [path for path in still if not path.endswith('key/bias')] == []
    records = run.metrics.of('pretrain')
    assert all(np.isfinite(r['loss']) for r in records if r.get('kind') == 'train')
    # Export: the gate has passed, transformers reloads the folder by itself, and the card says what it is.
    assert read_json(folders['0.1'] / 'export.json')['gate']['logits'] < 1e-4
    assert type(AutoModelForMaskedLM.from_pretrained(folders['0.1'])).__name__ == family.hf_class
    fill = pipeline('fill-mask', model=str(folders['0.1']), device='cpu')
    shares = filled(models['0.1'], text := f'a {initial.vocabulary[initial.subwords.mask]} rate.')
    found = fill(text)
    scores = [one['score'] for one in found]
    # The fifth and the sixth may be level but for rounding, so either may be found.
    np.testing.assert_allclose(scores, np.sort(shares)[: -len(found) - 1 : -1], rtol=1e-3)
    np.testing.assert_allclose(scores, shares[[one['token'] for one in found]], rtol=1e-3)
    assert len({one['token'] for one in found}) == 5
    # `predict` says the same, in the words that are in a text.
    [answer] = predict(folders['0.1'], [text])
    assert [sure for _, sure in answer['masks'][0]['words']] == pytest.approx(scores, rel=1e-3)
    card = (folders['0.1'] / 'README.md').read_text()
    assert f'# {family.title} after phase 0.1' in card
    assert f'- {case.family}\n' in card


def test_a_family_that_is_not_there_is_refused_with_those_that_there_are(tmp_path, ernie):
    """A file names one, and so does the configuration, for a model without a source."""
    (tmp_path / 'config.json').write_text('{"model_type": "bart"}')
    assert type(own_architecture(Model(), 100)) is Bert
    assert type(own_architecture(Model(family='ernie'), 100)) is ernie
    settings = config.defaults()
    settings.model.family = 'nothing'
    known, there = ', '.join(f'"{name}"' for name in FAMILIES), ', '.join(FAMILIES)
    missing = f"config.model.family: plug-in 'nothing' is not installed.*; there are {there}"
    for act, given, error, said in (
        (read_architecture, tmp_path, InputError, f"model_type is 'bart'; only {known} can be read"),
        (Experiment.from_config, settings, ConfigError, missing),
    ):
        with pytest.raises(error, match=said):
            act(given)


def test_families_are_listed_without_being_imported():
    code = (
        'import sys; from bioptimus_jax.model import folder; from bioptimus_jax.model.config import FAMILIES; '
        'print(*FAMILIES); '
        "print([m for m in sys.modules if m in ('jax', 'flax') or m.startswith('bioptimus_jax.model.families.')])"
    )
    own = {name: value for name, value in os.environ.items() if name != VARIABLE}  # no family of a test
    done = subprocess.run([sys.executable, '-c', code], cwd=ROOT, env=own, capture_output=True, text=True)
    there = sorted(f.stem for f in Path(families.__file__).parent.glob('[a-z]*.py'))
    assert done.stdout.splitlines() == [' '.join(there), '[]'], done.stderr


@pytest.mark.parametrize('name', [*FAMILIES, 'ernie'])
def test_rules_of_a_family_cover_every_parameter_and_its_names_are_read_back(name, tmp_path, ernie):
    """Splits have as many axes as the parameter; weights decay, biases and norms do not."""
    family = FAMILIES.load(name)
    assert family.model_type == name
    architecture = family(len(TOKENS), 16, 2, 2, 24, 32)
    shapes = architecture.shapes()
    assert {path: len(axes) for path, axes in axes_of(shapes, family.rules).items()} == {
        path: len(shape) for path, shape in shapes.items()
    }
    decays = flatten(match_rules(shapes, [(rule.pattern, rule.decays) for rule in family.rules]))
    assert decays == {path: path.endswith(('/kernel', '/embedding')) for path in shapes}
    assert set(architecture.padded) <= shapes.keys()
    params = architecture.initial_parameters(jax.random.key(0))
    make(with_padding(TOKENS, architecture), True).save(tmp_path, 32)
    write_folder(tmp_path, architecture, params, tmp_path)
    again, read, fresh = load_folder(tmp_path)
    assert (again, fresh) == (architecture.padded_with(0), [])
    jax.tree.map(np.testing.assert_array_equal, read, dict(params))


def test_a_parameter_that_no_rule_covers_is_named():
    with pytest.raises(ValueError, match='no rule covers cls/more'):
        axes_of({'cls': {'more': np.zeros(2)}}, [Rule('/kernel$', (None, None))])


@pytest.mark.parametrize('shape', [(30522, 768, 12, 12, 3072, 512), (1000, 24, 3, 4, 40, 64)])
def test_flops_are_twice_the_matrices_and_attention(shape):
    """BERT's are those of the papers' formula, to the last bit."""
    a = Bert(*shape)
    for attended in (1, 37.25, 511.9, 1 / 3):
        layer = 8 * a.hidden**2 + 4 * a.hidden * a.intermediate + 4 * attended * a.hidden
        head = 2 * a.hidden**2 + 2 * a.hidden * a.padded_vocab_size
        assert forward_flops_per_token(a, attended, 0.15) == a.layers * layer + 0.15 * head


def test_flops_of_disentangled_attention_have_three_products_in_a_score():
    a = FAMILIES.load('deberta-v2')(1000, 24, 3, 4, 40, 64)
    layer = 8 * a.hidden**2 + 4 * a.hidden * a.intermediate + 8 * 37.25 * a.hidden
    assert forward_flops_per_token(a, 37.25, 0.0) == a.layers * layer


@pytest.mark.parametrize('name', ['eurobert', 'ultrabert', 'modernbert'])
def test_flops_of_grouped_heads_and_gates_are_what_the_compiler_counts(name):
    """The layers of one row, every piece of which sees every other; norms and activations are not counted here."""
    fields = {
        'modernbert': {},
        'eurobert': {'key_heads': 2},
        'ultrabert': {'key_heads': 2, 'prediction_head': 24},
    }
    a, length = FAMILIES.load(name)(128, 256, 3, 8, 640, 64, **fields[name]), 64
    batch = {key: np.ones((1, length), np.int32) for key in ('tokens', 'segments', 'positions')}
    counted = jax.jit(lambda params: a.encode(params, batch)).lower(a.initial_parameters(jax.random.key(0)))
    found = counted.compile().cost_analysis()['flops'] / length
    planned = forward_flops_per_token(a, length, 0.0, sides=length)
    assert planned < found < 1.06 * planned
    slots = np.arange(length // 4, dtype=np.int32)[None]
    counted = jax.jit(lambda params: a.encode(params, batch, slots=slots)).lower(
        a.initial_parameters(jax.random.key(0))
    )
    saved = found - counted.compile().cost_analysis()['flops'] / length
    expected = planned - forward_flops_per_token(a, length, 0.0, sides=length, last=0.25)
    assert 0.97 * expected < saved < 1.06 * expected
    head = forward_flops_per_token(a, length, 1.0, sides=length) - planned
    inside = {'modernbert': 256 * 256, 'eurobert': 0, 'ultrabert': 2 * 256 * 24}[name]
    assert head == 2 * (inside + 128 * 256)


def family_words(source: str) -> list[str]:
    """What only a family's file may say: names of classes, tensors and paths, and `model_type`s as whole strings."""
    tree = ast.parse(source)
    docstrings = {
        id(node.body[0].value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef) and ast.get_docstring(node)
    }
    known = re.compile(
        r'\w*BertFor\w+|BertModel|\bbert\.|(?<!tie_)word_embeddings|position_embeddings|cls[/.]predictions|families\.\w+'
    )
    found, names = [], {*FAMILIES}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docstrings:
            found += known.findall(node.value) + [node.value] * (node.value in names)
        elif isinstance(node, ast.ImportFrom):
            found += known.findall(f'{node.module}.')
    return found


def test_no_other_module_knows_a_family_by_its_name():
    """But a default, conventions of decay, weights of a paper, a key of config.json, and the table of positions in
    torch."""
    allowed = {
        'model/config.py': ['bert'],
        'model/rotary.py': ['position_embeddings'],
        'finetuning/config.py': ['electra', 'electra'],
        'pretrain/config.py': ['bert'],
        'pretrain/decay.py': ['bert'],
        'pretrain/objectives/distil.py': ['distilbert'],
        'finetuning/stability.py': ['electra'],
        'finetuning/loading.py': ['position_embeddings', 'position_embeddings'],
    }
    package = ROOT / 'bioptimus_jax'
    for file in sorted(package.rglob('*.py')):
        name = file.relative_to(package).as_posix()
        if not name.startswith(
            ('model/families/', 'tokenizer/', 'vocab/', 'model/layers.py', 'model/prenorm.py')
        ):
            found = family_words(file.read_text('utf-8'))
            assert not [w for w in found if w not in allowed.get(name, [])], name


def test_the_rule_sees_a_family():
    for wrong in (
        "if values['model_type'] == 'bert': pass",
        'from bioptimus_jax.model.families.bert import Bert',
        "x = params['embeddings']['word_embeddings']",
        "kind = ['BertForMaskedLM']",
        "path = 'cls/predictions/bias'",
    ):
        assert family_words(wrong), wrong
    assert not family_words('"""A bert."""\n# bert.\nx = "A BERT of layers"')
