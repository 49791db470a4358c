"""An initialisation is one record in one file: stage and help take it from there, and nobody asks for a name."""

import ast
import contextlib
import io
import json
import random
import re
from pathlib import Path

import jax
import numpy as np
import pytest
from toy_plugins import plugged

from bioptimus_jax.cli.main import main
from bioptimus_jax.model import tensors
from bioptimus_jax.model.families.bert import Bert
from bioptimus_jax.storage.files import read_json, read_jsonl
from bioptimus_jax.surgery.initialisations import INITIALISATIONS
from bioptimus_jax.tokenizer.kinds.wordpiece import SPECIAL_TOKENS, make

ROOT = Path(__file__).resolve().parents[1]
# It asks for everything that can be read, so that every part has to look at the record.
TOY = """
import dataclasses
import numpy as np
from bioptimus_jax.ext import Initialisation, Inputs, key, unit


@dataclasses.dataclass(frozen=True)
class Settings:
    turn: float = key(1.0, 'times the row of the anchor', low=-1, high=1)


def _nearest(given: Inputs) -> np.ndarray:
    means_NxD = given.sums / np.maximum(given.contexts, 1)[:, None]
    nearest_N = (unit(means_NxD) @ unit(given.anchor_states).T).argmax(axis=1)
    return np.where((given.contexts > 0)[:, None], given.own.turn * given.anchor_rows[nearest_N], np.nan)


INITIALISATIONS = {
    'nearest': Initialisation(
        'the row of the anchor with the most similar contexts',
        _nearest,
        isolated_states=True,
        contexts=True,
        anchors=True,
        settings=Settings,
    ),
}
"""
SYLLABLES = ['ka', 'lo', 'mi', 'nu', 'pe', 'ra', 'so', 'ti', 've', 'wo']


def make_source(folder: Path, vocabulary: list[str]) -> np.ndarray:
    """A BERT of one layer with random weights in `folder`; its input rows."""
    shape = dict(hidden=16, layers=1, heads=2, intermediate=24, max_positions=32, initializer_range=0.3)
    architecture = Bert(vocab_size=len(vocabulary), **shape)
    parameters = jax.tree.map(np.asarray, architecture.initial_parameters(jax.random.key(3)))
    make(vocabulary, lowercase=True).save(folder / 'tokenizer', 32)
    tensors.write_folder(folder / 'source', architecture, parameters, folder / 'tokenizer')
    return parameters['embeddings']['word_embeddings']['embedding'][: len(vocabulary)]


@pytest.fixture(scope='module')
def made(tmp_path_factory):
    """Folder, exit codes and output of commands with one more record; the input rows of their source."""
    folder, draw = tmp_path_factory.mktemp('plugin'), random.Random(2)
    (folder / 'nearest_rows.py').write_text(TOY)
    letters = sorted(set(''.join(SYLLABLES)))
    pieces = [*SPECIAL_TOKENS, *letters, *(f'##{t}' for t in (*letters, *SYLLABLES))]
    words = sorted({''.join(draw.choices(SYLLABLES, k=draw.randint(2, 3))) for _ in range(70)})
    rows_VxD = make_source(folder, [*pieces, *words[:50]])
    (folder / 'vocab.txt').write_text('\n'.join([*pieces, *words[30:], 'kakaka']))
    with open(folder / 'corpus.jsonl', 'w') as file:
        for number in range(150):
            abstract = ' '.join(draw.choices(words, k=12)) + '.'
            file.write(json.dumps({'id': str(number), 'title': '', 'abstract': abstract}) + '\n')
    common = [f'--config={folder / "toy.py"}', f'--workdir={folder / "run"}']
    (folder / 'toy.py').write_text(f"""
from bioptimus_jax.experiment.config import defaults


def get_config(argument=''):
    config = defaults()
    config.source.path = {str(folder / 'source')!r}
    config.stages = ('corpus', 'vocab', 'contexts', 'surgery')
    config.corpus.update(inputs=({str(folder / 'corpus.jsonl')!r},), shards=1)
    config.corpus.near.threshold = 0.0
    config.vocab.update(kind='file', file={str(folder / 'vocab.txt')!r})
    config.surgery.update(strategy='nearest', scale='literal')
    config.rows.max_document_pieces = 32
    config.runtime.workers = 1
    return config
""")
    calls = [
        ['run', *common],
        ['run', common[0], f'--workdir={folder / "without"}', '--config.stages=corpus,vocab,surgery'],
        ['surgery', *common, '--config.surgery.shrinkage=5'],
        ['surgery', *common, '--config.surgery.own.nearest.turn=-1'],
        ['surgery', *common, '--config.surgery.own.nearest.turn=2'],
        ['surgery', *common, '--config.surgery.own.similarity.turn=1'],
        ['surgery', '--help-all'],
    ]
    out, errors = io.StringIO(), io.StringIO()
    with (
        plugged(folder / 'nearest_rows.py'),
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(errors),
    ):
        for arguments in calls:
            with contextlib.suppress(SystemExit):  # of --help
                print('exit code', main(arguments))
    return folder, out.getvalue(), errors.getvalue(), rows_VxD


def test_the_stage_makes_rows_by_the_record(made):
    folder, printed, errors, rows_VxD = made
    assert re.findall(r'exit code (\d+)', printed)[:1] == ['0'], printed + errors
    report = read_json(folder / 'run' / 'surgery' / 'report.json')
    new = [r for r in read_jsonl(folder / 'run' / 'surgery' / 'tokens.jsonl') if r['kind'] != 'copied']
    assert (report['strategy'], report['map'], report['scale']) == ('nearest', None, 'literal')
    assert {r['kind'] for r in new} == {'synthesised'}
    assert [r['token'] for r in new if r['fallback']] == ['kakaka']  # no text has it
    assert report['fallbacks'] == {'context_free': 1}
    _, parameters, _ = tensors.load_folder(folder / 'run' / 'surgery' / 'model')
    table_WxD = parameters['embeddings']['word_embeddings']['embedding']
    for record in new:
        copied = (table_WxD[record['id']] == rows_VxD).all(axis=1).any()
        assert copied == (record['contexts'] > 0), record
    assert len(new) > 15


def test_what_it_reads_and_which_keys_concern_it_come_from_the_record(made):
    _, printed, errors, _ = made
    assert re.findall(r'exit code (\d+)', printed)[1:6] == ['2'] * 5, printed + errors
    assert 'config.stages: surgery needs contexts' in errors
    assert (
        'config.surgery.shrinkage: 5.0 is for config.surgery.strategy=contextualized, not for nearest'
        in errors
    )


def test_its_own_settings_are_keys_that_decide_the_result(made):
    folder, printed, errors, _ = made
    config = read_json(folder / 'run' / 'surgery' / 'manifest.json')['config']
    assert config['surgery.own.nearest.turn'] == 1.0  # which nobody gave
    assert 'config.surgery.own.nearest.turn: 1.0 -> -1.0' in errors
    assert 'config.surgery.own.nearest.turn: must be at most 1, got 2' in errors
    assert '--config.surgery.own.similarity.turn: no such key' in errors
    assert 'surgery.own.nearest.turn = 1.0' in printed


def test_help_lists_it_and_the_keys_that_concern_it(made):
    help_text = made[1].rpartition('exit code 2')[2]
    assert 'nearest: the row of the anchor with the most similar contexts' in help_text
    assert 'similarity, nearest: layers of the source' in help_text
    assert 'contextualized: k;' in help_text


def asks_for_a_name(source: str) -> list[int]:
    """Lines that compare or match a strategy, or anything with the name of an initialisation."""
    found = []
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Compare(left=left, comparators=others):
                asked = [left, *others]
            case ast.Match(subject=subject, cases=cases):
                asked = [subject, *(case.pattern for case in cases)]
            case (
                ast.Subscript(value=ast.Dict(), slice=by)
                | ast.Call(func=ast.Attribute(value=ast.Dict()), args=[by, *_])
            ):
                asked = [by]
            case ast.Call(func=ast.Attribute(value=value, attr='startswith' | 'endswith')):
                asked = [value]
            case _:
                continue
        parts = [part for each in asked for part in ast.walk(each)]
        named = any(isinstance(part, ast.Constant) and part.value in NAMES for part in parts)
        strategy = any(getattr(part, 'attr', '') == 'strategy' for part in asked)
        found += [node.lineno] * (named or strategy)
    return found


NAMES = frozenset(INITIALISATIONS)


@pytest.mark.parametrize(
    'line',
    [
        'x = settings.strategy == chosen',
        "x = name in ('scratch', 'other')",
        "x = 'copy' != name",
        "x = {'a': 1}[surgery.strategy]",
        "x = {'a': 1}.get(surgery.strategy)",
        "x = config.surgery.strategy.startswith('averaged')",
        "match name:\n    case 'gaussian': pass",
        'match surgery.strategy:\n    case x: pass',
    ],
)
def test_the_rule_sees_who_asks_for_a_name(line):
    assert asks_for_a_name(line)


def test_nobody_asks_for_the_name_of_an_initialisation():
    files = [f for folder in ('bioptimus_jax', 'configs') for f in (ROOT / folder).rglob('*.py')]
    asking = {
        f'{file.relative_to(ROOT)}:{line}'
        for file in files
        for line in asks_for_a_name(file.read_text('utf-8'))
    }
    assert len(files) > 100
    assert not asking
