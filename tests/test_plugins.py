"""Plug-ins of a user's own package: how they are found, and what is said where they are wrong or not there."""

import importlib
import json
import subprocess
import sys
import types
from pathlib import Path

import pytest
from toy_programs import environment

import bioptimus_jax
from bioptimus_jax import ext
from bioptimus_jax.config import extensions
from bioptimus_jax.config.plugins import Table
from bioptimus_jax.errors import ConfigError, InputError
from bioptimus_jax.experiment import config
from bioptimus_jax.experiment.schema import Experiment
from bioptimus_jax.finetuning.config import TASKS
from bioptimus_jax.finetuning.task import task_for, task_of
from bioptimus_jax.pretrain.config import OBJECTIVES
from bioptimus_jax.pretrain.rates import FALLS
from bioptimus_jax.pretrain.units import MASKINGS
from bioptimus_jax.records.finetune import ModelOnSet
from bioptimus_jax.report.resolved import experiment_of
from bioptimus_jax.run.shipped import plug_ins, variations
from bioptimus_jax.sets.corpora import set_at, set_files
from bioptimus_jax.storage.files import write_json

SPANS = """
from bioptimus_jax.ext import Strategy
from {package}share import SHARE

SHARES = {{'of': SHARE}}
MASKINGS = {{'spans_{number}': Strategy(lambda words_L, draws_L: words_L & (draws_L >= SHARES['of']), words=10)}}
"""
NEAR = "raise RuntimeError('imported')\nOBJECTIVE = None\n"


def package(folder: Path, name: str, number: int = 0) -> Path:
    """A package with a masking strategy, which takes a number from another module, and an objective that is broken."""
    made = folder / name
    made.mkdir(parents=True)
    (made / '__init__.py').write_text('')
    (made / 'spans.py').write_text(SPANS.format(package=f'{name}.', number=number))
    (made / 'share.py').write_text('SHARE = 0.5\n')
    (made / f'near_{number}.py').write_text(NEAR)
    return made


def masking(name: str) -> Experiment:
    settings = config.defaults()
    settings.phase['0.2'].masking = name
    return Experiment.from_config(settings)


@pytest.fixture
def named(tmp_path, monkeypatch):
    """Names what BIOPTIMUS_PLUGINS holds; what was put on the path and imported goes away again."""
    before, there = [*sys.path], {*sys.modules}
    yield lambda *entries: monkeypatch.setenv(extensions.VARIABLE, ','.join(map(str, entries)))
    sys.path[:] = before
    extensions._extensions.cache_clear()
    for name in {*sys.modules} - there:
        if str(tmp_path) in str(getattr(sys.modules[name], '__file__', '')):
            del sys.modules[name]


def test_a_package_is_named_by_its_folder_a_file_or_a_module(tmp_path, named, monkeypatch):
    """Records come into their table behind our own; files are listed without being imported."""
    made, own = package(tmp_path / 'at', 'mine_of_path', 1), list(MASKINGS)
    for entry in (made, made / 'spans.py', 'mine_of_path', 'mine_of_path.spans'):
        named(entry)
        assert list(MASKINGS) == [*own, 'spans_1'], entry
        assert masking('spans_1').phase['0.2'].masking == 'spans_1'
        assert ('near_1' in OBJECTIVES) == (entry in (made, 'mine_of_path'))
    assert 'mine_of_path.near_1' not in sys.modules
    plain = tmp_path / 'plain'
    plain.mkdir()
    (plain / 'of_a_plain_folder.py').write_text("OBJECTIVE = 'it'\n")
    named(plain)
    assert OBJECTIVES.load('of_a_plain_folder') == 'it'
    named()
    assert list(MASKINGS) == own


def test_an_installed_package_is_found_by_its_entry_point(tmp_path, named, monkeypatch):
    package(tmp_path, 'mine_of_entry', 2)
    about = tmp_path / 'mine_of_entry-1.0.dist-info'
    about.mkdir()
    (about / 'METADATA').write_text('Metadata-Version: 2.1\nName: mine-of-entry\nVersion: 1.0\n')
    (about / 'entry_points.txt').write_text('[bioptimus_jax.plugins]\nmine = mine_of_entry\n')
    assert 'spans_2' not in MASKINGS
    monkeypatch.syspath_prepend(tmp_path)
    named()
    extensions._extensions.cache_clear()
    MASKINGS._read = None
    assert 'spans_2' in MASKINGS
    assert 'near_2' in OBJECTIVES
    with pytest.raises(
        ConfigError,
        match=r'plug-in mine_of_entry\.near_2 \(.*near_2\.py\): cannot be imported \(RuntimeError: imported\); '
        'correct it, or remove it from the entry points of mine-of-entry$',
    ):
        OBJECTIVES.load('near_2')
    MASKINGS._read = None


def test_what_is_wrong_with_a_plug_in_is_one_line_that_names_it(tmp_path, named):
    one, other = package(tmp_path / 'a', 'mine_a', 5), package(tmp_path / 'b', 'mine_b', 5)
    wrong = tmp_path / 'wrong'
    wrong.mkdir()
    (wrong / 'not_python.py').write_text('def\n')
    (wrong / 'words_again.py').write_text(
        'from bioptimus_jax.ext import Strategy\n'
        "MASKINGS = {'words': Strategy(lambda words_L, draws_L: words_L, words=1)}\n"
    )
    (wrong / 'no_record.py').write_text("MASKINGS = {'other': 3}\n")
    (wrong / 'mlm.py').write_text('OBJECTIVE = 1\n')
    (wrong / 'json.py').write_text('')
    (wrong / 'too_early.py').write_text(
        'from bioptimus_jax.pretrain.units import MASKINGS as known\nmore = list(known)\nMASKINGS = {}\n'
    )
    for entries, said in (
        (
            (one, other),
            r"plug-in mine_b\.spans \(.*\): 'spans_5' is also the name of plug-in mine_a\.spans \(",
        ),
        ((wrong / 'not_python.py',), r'plug-in not_python \(.*\): cannot be read as Python \(invalid syntax'),
        (
            (wrong / 'words_again.py',),
            r"words_again.*: 'words' is also the name of bioptimus_jax itself, in the table MASKINGS; rename",
        ),
        ((wrong / 'no_record.py',), r"no_record.*: MASKINGS\['other'\] is a int; it has to be a Strategy"),
        ((wrong / 'json.py',), r"json\.py: its name 'json' means .*json/__init__\.py; rename the file"),
        ((wrong / 'too_early.py',), r'too_early.*: MASKINGS is asked for while the module is being imported'),
        (('no_such_module',), "BIOPTIMUS_PLUGINS: plug-in 'no_such_module' is not installed; install the"),
        ((wrong / 'gone.py',), r'BIOPTIMUS_PLUGINS: .*gone\.py: no such file or folder of Python'),
        ((wrong / 'mlm.py',), r"mlm \(.*\): 'mlm' is also the name of bioptimus_jax itself, in "),
    ):
        named(*entries)
        with pytest.raises(ConfigError, match=said) as error:
            masking('words' if entries == (wrong / 'mlm.py',) else 'no_such_strategy')
        assert '\n' not in str(error.value)


def test_a_run_whose_plug_in_is_gone_says_so(tmp_path, named):
    """The key of its configuration names it, its manifests do, and the records of fine-tuning."""
    gone = 'is not installed; install the package that brings it, or name its module, file or folder in BIOP'
    settings = config.defaults()
    settings.objective['gone'] = {}
    records = {'phase.0.2.masking': 'word', 'objective.gone.strength': 0.5}
    for key, value in records.items():
        record = {'stage': 'pretrain', 'config': {key: value}, 'inputs': {}, 'content': ''}
        write_json(tmp_path / key / 'pretrain' / 'manifest.json', record)
    for read, name, said in (
        (
            masking,
            'spans_6',
            rf"config\.phase\.0\.2\.masking: plug-in 'spans_6' {gone}.*; there are tokens, wo",
        ),
        (Experiment.from_config, settings, rf"config\.objective\.gone: plug-in 'gone' {gone}"),
        (TASKS.load, 'topics', rf"plug-in 'topics' {gone}"),
        *(
            (experiment_of, tmp_path / key, rf"config\.{key}: plug-in '(word|gone)' {gone}")
            for key in records
        ),
    ):
        with pytest.raises(ConfigError, match=said):
            read(name)


def test_the_code_of_a_plug_in_and_of_what_it_imports_is_compared(tmp_path, named):
    made = package(tmp_path, 'mine_of_code', 7)

    def digest(key, experiment):
        [(name, value)] = plug_ins(variations(experiment, ('phase', 'pretrain'))).items()
        assert name == f'plug-in:{key}'
        return value

    named(made)
    first = digest('masking spans_7', masking('spans_7'))
    (made / 'share.py').write_text('# as before\nSHARE = 0.5\n')
    assert digest('masking spans_7', masking('spans_7')) == first
    (made / 'share.py').write_text('SHARE = 0.4\n')
    second = digest('masking spans_7', masking('spans_7'))
    assert second != first
    text = (made / 'spans.py').read_text()
    (made / 'spans.py').write_text(text.replace("{'of': SHARE}", "{'of': SHARE / 2}"))
    assert digest('masking spans_7', masking('spans_7')) not in (first, second)
    # A file variation: its text, and that of its own package; neither is imported for it.
    (made / 'tail.py').write_text("from . import share\nfrom .share import SHARE\nOBJECTIVE = ''\n")
    named(made / 'tail.py')
    settings = config.defaults()
    settings.pretrain.objective = 'tail'
    experiment = Experiment.from_config(settings)
    before = digest('objective tail', experiment)
    (made / 'share.py').write_text('SHARE = 0.3\n')
    assert digest('objective tail', experiment) != before
    (made / '__init__.py').write_text('OTHER = 1\n')
    assert 'mine_of_code.tail' not in sys.modules


def test_a_set_of_values_is_one_in_any_order():
    """Texts in a set come in another order in every process, as these numbers do by the order that they came in."""
    of_sets = [
        plug_ins([('words', 'mine', {'mine': ({'a': values},)})]) for values in ({0, 8}, {8, 0}, {0, 7})
    ]
    assert str({0, 8}) != str({8, 0})
    assert of_sets[0] == of_sets[1] != of_sets[2]


def test_a_set_describes_itself_and_what_is_wrong_with_that_is_one_line(tmp_path):
    """JSON lines with several labels; names and numbers of columns; every mistake names file and key."""
    folder = tmp_path / 'topics'
    folder.mkdir()
    rows = [{'text': f'text {n}', 'topics': ['a', 'b'][: n % 3], 'id': f'd{n // 2}'} for n in range(12)]
    for split in ('train', 'devel', 'test'):
        (folder / f'{split}.jsonl').write_text('\n'.join(map(json.dumps, rows)))

    def read(**changes):
        said = {'texts': ['text'], 'answer': 'topics', 'several': True, **changes}
        (folder / 'set.json').write_text(json.dumps({k: v for k, v in said.items() if v is not None}))
        learned = task_for(chosen := set_at(folder))
        return learned, learned.read(chosen), chosen

    def refused(said, act=read, **changes):
        with pytest.raises(InputError, match=said) as error:
            act(**changes)
        assert '\n' not in str(error.value)

    learned, dataset, chosen = read(
        name='id', document='d.*', measures=['micro_f1', 'macro_f1', 'example_f1']
    )
    assert [text.answers for text in dataset.train[:3]] == [(), ('a',), ('a', 'b')]
    assert [text.document for text in dataset.train[:4]] == [0, 0, 1, 1]
    assert (dataset.labels, list(learned.metrics)) == (('a', 'b'), ['default', 'macro_f1', 'example_f1'])
    kept = ModelOnSet(model='a', dataset='topics', task=chosen.task, set=chosen.described, setting='')
    again = task_of(ModelOnSet.read(json.loads(json.dumps(kept.json())), 'here'))
    assert again == learned
    assert [again.metrics[name] for name in again.metrics] == [
        learned.metrics[name] for name in learned.metrics
    ]
    assert read(uncounted=['b'])[0].known.counted == ('a',)
    assert folder / 'set.json' in set_files(folder)
    for changes, said in (
        ({'text': 1}, 'text: no such key; known are task, texts, answer, .*did you mean texts'),
        ({'texts': 'text'}, "texts: is 'text', and has to be a list"),
        ({'answer': None}, 'answer: missing; name the column'),
        ({'task': 'entities'}, "task: 'entities' is not one of classes, similarity"),
        (
            {'measures': ['micro']},
            "measures: 'micro': plug-in 'micro' is not installed; .*there are micro_f1",
        ),
        ({'measures': [1]}, "measures: 1 is no name; give names, such as 'accuracy'"),
        ({'measures': ['pearson']}, 'measures: pearson is for numbers; choose among micro_f1'),
        ({'uncounted': ['c']}, "uncounted: 'c' is not among labels"),
        ({'labels': ['a,b']}, "train.jsonl:2: 'a' is not a label of topics: a,b"),
        ({'task': 'similarity', 'labels': ['a']}, 'labels: is for task classes'),
        ({'labels': ['a', 'c']}, "train.jsonl:3: 'b' is not a label of topics: a, c"),
        ({'name': 'none'}, r"train.jsonl:1: has no 'none'; it has text, topics, id"),
        ({'answer': 3}, 'has columns or keys with names, and none is 3'),
    ):
        refused(said, **changes)
    for split, header in (('train', 'x\ty'), ('devel', 'x\ty'), ('test', 'y\tx')):
        (folder / f'{split}.jsonl').unlink()
        (folder / f'{split}.tsv').write_text(f'{header}\na text\tyes\nother text\tno\n')
    plain, rows = {'several': None, 'answer': 2, 'texts': [1]}, 'x\ty\na text\tyes\nother text\tno\n'
    headed, one = {**plain, 'header': True}, rows.replace('x\ty', 'text\tlabel').replace('no', 'yes')
    named = {**headed, 'texts': ['x'], 'answer': 'y'}
    for split, text, changes, said in (
        ('train', one, plain, r'train\.tsv:1: looks like a header'),
        ('train', rows, headed, r'test\.tsv:1: has the header y, x, but .*train\.tsv has x, y'),
        ('test', rows, {**named, 'texts': ['z']}, r"texts: no column 'z'; there are x, y"),
        (
            'test',
            rows,
            {**named, 'several': True, 'labels': ['a,b']},
            "labels: 'a,b' is no label; with several",
        ),
    ):
        (folder / f'{split}.tsv').write_text(text)
        refused(said, **changes)
    assert read(**named)[1].labels == ('no', 'yes')
    (tmp_path / 'gad').mkdir()
    (tmp_path / 'gad' / 'set.json').write_text(json.dumps({'texts': [1], 'answer': 2, 'labels': ['a', 'b']}))
    refused(r'set\.json: gad is a public set', lambda: set_at(tmp_path / 'gad'))


def test_verbs_without_a_config_and_help_know_plug_ins(tmp_path):
    """A process of its own has a verb of a plug-in, and a table's record in the help of a stage."""
    made = tmp_path / 'own'
    made.mkdir()
    (made / 'hello.py').write_text(
        '"""`bioptimus hello`: a greeting.\n\nSays it.\n"""\n\n'
        'from bioptimus_jax.ext import Verb, described\n\n'
        "VERB = Verb(*described(__doc__), (), lambda command: print('hello from outside'))\n"
        "FALLS = {'bent': None}\n"
    )
    text = (
        'from bioptimus_jax.ext import Fall\n'
        "FALLS = {'bent': Fall('in a bent line', lambda done, steps: done)}\n"
    )
    (made / 'hello.py').write_text((made / 'hello.py').read_text().replace("FALLS = {'bent': None}\n", ''))
    (made / 'bent.py').write_text(text)
    code = (
        'import sys; from bioptimus_jax.cli.main import main\n'
        "print(main(['hello']), main(['pretrain', '--help-all']), 'jax' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, '-c', code],
        env=environment(Path(bioptimus_jax.__file__).parents[1], BIOPTIMUS_PLUGINS=str(made)),
        capture_output=True,
        text=True,
    )
    assert done.stdout.startswith('hello from outside\n'), done.stderr
    assert 'bent: in a bent line. Phases that continue' in ' '.join(done.stdout.split())


def test_ext_is_light_and_has_what_its_stub_says(tmp_path):
    stub = Path(ext.__file__).with_suffix('.pyi').read_text()
    said = {line.rpartition(' ')[2]: line.split()[1] for line in stub.splitlines()}
    assert sorted(said) == ext.__all__
    for name, home in said.items():
        assert getattr(ext, name) is getattr(importlib.import_module(home), name)
    with pytest.raises(AttributeError, match='has no attribute'):
        ext.nothing  # noqa: B018
    code = (
        'import sys; from bioptimus_jax.ext import defaults, key, Strategy, Initialisation, Fall, Metric; defaults(); '
        "print([m for m in ('jax', 'torch', 'flax', 'transformers') if m in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, '-c', code], capture_output=True, text=True, cwd=Path(ext.__file__).parents[1]
    )
    assert done.stdout == '[]\n', done.stderr


def test_no_module_looks_into_a_table_while_it_is_imported():
    """Else a plug-in that imports it would be half there."""
    package = Path(bioptimus_jax.__file__).parent
    names = [
        '.'.join(file.relative_to(package.parent).with_suffix('').parts)
        for file in sorted(package.rglob('*.py'))
        if file.stem not in ('__init__', '__main__') and 'configs' not in file.parts
    ]
    code = """
import importlib, json, sys
from bioptimus_jax.config import extensions
def read(variable):
    raise AssertionError('a table is read')
extensions._extensions = read
for name in json.load(sys.stdin):
    try:
        importlib.import_module(name)
    except ModuleNotFoundError as error:
        if 'bioptimus' in str(error):
            raise
"""
    done = subprocess.run(
        [sys.executable, '-c', code],
        input=json.dumps(names),
        capture_output=True,
        text=True,
        cwd=package.parent,
    )
    assert not done.returncode, done.stderr[-1500:]


def test_a_table_may_be_changed_for_a_test(monkeypatch):
    table = Table('NONE', {'a': 1})
    monkeypatch.setitem(table, 'b', 2)
    assert (list(table), len(table), table['b']) == (['a', 'b'], 2, 2)
    assert list(table.those(lambda value: value > 1)) == ['b']
    assert isinstance(FALLS, Table)
    assert not isinstance(types, Table)
