"""House rules that can be checked: order of floors, who imports what, configs that load, no stray paths."""

import ast
import collections
import functools
import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from toy_configs import shipped_configs

from bioptimus_jax.config.fields import walk
from bioptimus_jax.config.plugins import Plugins, Table
from bioptimus_jax.errors import ConfigError
from bioptimus_jax.experiment.config import load, override
from bioptimus_jax.experiment.schema import Experiment
from bioptimus_jax.pretrain.config import OBJECTIVES, PAPER_PHASES
from bioptimus_jax.run.shipped import SHIPPED
from bioptimus_jax.tokenizer.config import TOKENIZERS

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / 'bioptimus_jax'

# From the bottom to the top. A room imports from itself and from rooms below it, without exceptions: so nothing imports
# the lab, which is above all.
ROOMS = tuple(
    'errors storage config records progress text hosts run sets corpus rebuild tokenizer model vocab rows surgery '
    'scoring pretrain export finetuning analysis experiment inference report start api demo cli ext __main__ '
    'lab'.split()
)
LOOSE = {'__init__', '__main__', 'errors', 'ext'}
"""Files that stand beside the rooms."""
# Who may import what: the package, and the modules of ours that may.
CONFINED = {
    'flax': ('bioptimus_jax.model',),
    'torch': (
        'bioptimus_jax.api',
        'bioptimus_jax.export.gate',
        'bioptimus_jax.finetuning',
        'bioptimus_jax.analysis',
        'bioptimus_jax.inference',
        'bioptimus_jax.model.weights',  # reads .bin files
    ),
    **dict.fromkeys(('onnx', 'onnxruntime', 'onnxscript'), ('bioptimus_jax.inference.onnx',)),
    'transformers': (
        'bioptimus_jax.api',
        'bioptimus_jax.export.gate',
        'bioptimus_jax.finetuning',
        'bioptimus_jax.analysis',
        'bioptimus_jax.inference',
        'bioptimus_jax.vocab.agreement',  # a tokenizer that cannot be kept is refused before anything is made with it
    ),
}
# Their workers are processes, or they need no accelerator: importing jax there costs seconds and memory.
WITHOUT_JAX = (
    'bioptimus_jax.hosts.workers',
    'bioptimus_jax.sets',
    'bioptimus_jax.corpus',
    'bioptimus_jax.vocab',
    'bioptimus_jax.demo',
    'bioptimus_jax.experiment.config',
    'bioptimus_jax.tokenizer',
    'bioptimus_jax.rebuild',
    'bioptimus_jax.records',
    'bioptimus_jax.pretrain.decay',
    'bioptimus_jax.rows.layouts',
    'bioptimus_jax.pretrain.shares',
    'bioptimus_jax.pretrain.units',
    'bioptimus_jax.model.folder',
    'bioptimus_jax.model.pooling',
    'bioptimus_jax.surgery.fasttext',
    'bioptimus_jax.surgery.initialisations',
    'bioptimus_jax.surgery.pursuit',
    'bioptimus_jax.surgery.rows',
    'bioptimus_jax.config.plugins',
)


def module_of(file: Path) -> str:
    name = '.'.join(file.relative_to(ROOT).with_suffix('').parts)
    return name.removesuffix('.__init__')


@functools.cache
def imports_of(source: str, module: str, is_package: bool = False) -> frozenset[str]:
    """Every module that the source imports, at the top or inside a function; `from a import b` gives a.b."""
    found = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ''
            if node.level:
                parts = module.split('.')
                parts = parts[: len(parts) - node.level + is_package]
                base = '.'.join([*parts, *([node.module] if node.module else [])])
            found |= {f'{base}.{alias.name}' for alias in node.names}
    return frozenset(found)


@functools.cache
def texts_in(source: str) -> frozenset[str]:
    """Every string that stands in the source."""
    constants = (node.value for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Constant))
    return frozenset(value for value in constants if isinstance(value, str))


def within(name: str, folder: str) -> bool:
    return name == folder or name.startswith(folder + '.')


def floor_of(name: str) -> int | None:
    """The floor of a module's room; None for the package itself, which imports nothing of its own at once."""
    parts = name.split('.')
    return ROOMS.index(parts[1]) if len(parts) > 1 and parts[1] in ROOMS else None


def violations(module: str, imported: frozenset[str]) -> list[str]:
    """What a module may not import, in words."""
    wrong = []
    for name in sorted(imported):
        if within(name, 'bioptimus_jax'):
            above, own = floor_of(name), floor_of(module)
            if above is not None and own is not None and above > own:
                wrong.append(f'{module} imports {name}, which is in a room above it')
        for package, allowed in CONFINED.items():
            if within(name, package) and not any(within(module, place) for place in allowed):
                wrong.append(f'{module} imports {name}; only {", ".join(allowed)} may')
        if within(name, 'jax') and any(within(module, place) for place in WITHOUT_JAX):
            wrong.append(f'{module} imports {name}; it has to do without jax')
    return wrong


MODULES = {module_of(file): file for file in sorted(PACKAGE.rglob('*.py')) if 'configs' not in file.parts}


def tracked_files() -> list[Path]:
    """Files that are, or would be, committed."""
    listed = subprocess.run(
        ['git', 'ls-files', '--cached', '--others', '--exclude-standard'],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    if listed.returncode:
        pytest.skip('not a git checkout')
    return [ROOT / name for name in listed.stdout.splitlines() if (ROOT / name).is_file()]


def test_every_room_has_a_floor_and_few_files_are_loose():
    places = {path.stem for path in PACKAGE.iterdir() if path.suffix == '.py'}
    assert places == LOOSE
    rooms = {path.name for path in PACKAGE.iterdir() if (path / '__init__.py').is_file()}
    assert set(ROOMS) - {'lab'} <= rooms | places - {'__init__'} <= set(ROOMS)  # the lab may be deleted


def test_what_is_imported_of_ours_is_there():
    """A type checker that ignores what it does not find does not see a file that was never added."""
    known = set(MODULES) | {f'{module}.{name}' for module in MODULES for name in names_at_the_top(module)}
    missing = {
        f'{module}: {name}'
        for module, file in MODULES.items()
        for name in imports_of(file.read_text('utf-8'), module, file.name == '__init__.py')
        if within(name, 'bioptimus_jax') and name not in known
    }
    assert not missing


def names_at_the_top(module: str) -> set[str]:
    """What a module defines, or imports, at its top."""
    found = set()
    for node in ast.parse(MODULES[module].read_text('utf-8')).body:
        for part in (
            ast.walk(node) if isinstance(node, ast.Assign | ast.AnnAssign | ast.If | ast.Try) else [node]
        ):
            match part:
                case ast.FunctionDef(name=name) | ast.ClassDef(name=name) | ast.AsyncFunctionDef(name=name):
                    found.add(name)
                case ast.Name(id=name, ctx=ast.Store()):
                    found.add(name)
                case ast.Import(names=names) | ast.ImportFrom(names=names):
                    found |= {(one.asname or one.name).split('.')[0] for one in names}
    return found


def test_imports_go_downward_and_stay_where_they_belong():
    wrong = {
        module: found
        for module, file in MODULES.items()
        if (found := violations(module, imports_of(file.read_text('utf-8'), module, file.stem == '__init__')))
    }
    assert not wrong


@pytest.mark.parametrize(
    ('module', 'source'),
    [
        ('bioptimus_jax.tokenizer.kinds.wordpiece', 'from bioptimus_jax.surgery import reading'),
        ('bioptimus_jax.corpus.audit', 'def f():\n    import bioptimus_jax.vocab.compare'),
        ('bioptimus_jax.run', 'from bioptimus_jax import cli'),
        ('bioptimus_jax.model.layers', 'from ..pretrain.loop import train'),
        ('bioptimus_jax.pretrain.step', 'from flax import linen'),
        ('bioptimus_jax.model.families.bert', 'import torch.nn'),
        ('bioptimus_jax.surgery.rows', 'import transformers'),
        ('bioptimus_jax.vocab.contexts', 'from jax import numpy'),
    ],
)
def test_the_rule_sees_a_violation(module, source):
    assert violations(module, imports_of(source, module))


SPECIAL = re.compile(
    r'\[(PAD|UNK|CLS|SEP|MASK)\]|##[^\s#]*|\[unused.*|vocab\.(txt|json)|merges\.txt|Ġ.*|</?(s|pad|unk|mask)>'
)


def tokens_named(source: str) -> list[str]:
    """Literals of a kind of tokenizer: its special tokens, its file, its name in a comparison or an import."""
    found = []
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Constant(value=str(text)) if SPECIAL.fullmatch(text):
                found.append(text)
            case ast.Compare(comparators=others):
                inner = [n for other in (node.left, *others) for n in ast.walk(other)]
                found += [
                    n.value for n in inner if isinstance(n, ast.Constant) and n.value in set(TOKENIZERS)
                ]
            case ast.MatchValue(value=ast.Constant(value=name)) if name in set(TOKENIZERS):
                found.append(name)
            case ast.Import() | ast.ImportFrom():
                imported = imports_of(ast.unparse(node), 'anywhere')
                found += [name for name in imported if within(name, TOKENIZERS.package)]
    return found


def test_what_a_tokenizer_looks_like_is_known_in_its_own_file():
    """What several kinds share knows it too. Tables of the report have [MASK] as a heading, a word of the field; in
    vocab/ there is more of BERT's format."""
    shared = {f'bioptimus_jax.tokenizer.{name}' for name in ('spaced', 'metaspace', 'spm')}
    allowed = {
        'bioptimus_jax.lab.sections.difficulty': {'[MASK]'},
        'bioptimus_jax.vocab.agreement': {'[unused'},
    }
    for module, file in MODULES.items():
        if not within(module, 'bioptimus_jax.tokenizer.kinds') and module not in shared:
            assert {*tokens_named(file.read_text('utf-8'))} <= allowed.get(module, set()), module


@pytest.mark.parametrize(
    'source',
    [
        "end = token.startswith('##')",
        "mask = tokenizer.token_to_id('[MASK]')",
        "new = f'{path}' in ('[CLS]', '[SEP]')",
        "if vocab.tokenizer == 'wordpiece': pass",
        "if vocab.tokenizer in ('wordpiece', 'other'): pass",
        "match kind:\n    case 'wordpiece': pass",
        'from bioptimus_jax.tokenizer.kinds.wordpiece import make',
        'def f():\n    from bioptimus_jax.tokenizer.kinds import wordpiece',
        "file = folder / 'vocab.txt'",
        "file = folder / 'merges.txt'",
        "begins = token.startswith('Ġ')",
        "roles = ('<s>', '</s>')",
    ],
)
def test_the_rule_sees_a_tokenizer_that_is_named(source):
    assert tokens_named(source)


def test_modules_do_not_import_each_other_in_circles():
    graph = {}
    for module, file in MODULES.items():
        imported = imports_of(file.read_text('utf-8'), module, file.name == '__init__.py')
        named = imported | {name.rpartition('.')[0] for name in imported}
        graph[module] = (named & MODULES.keys()) - {module}
    while graph:
        leaves = [module for module, needs in graph.items() if not needs & graph.keys()]
        assert leaves, f'circle among {sorted(graph)}'
        for leaf in leaves:
            del graph[leaf]


def test_package_init_is_a_docstring_only():
    """But that of the whole, which names what is public, and imports it when it is asked for."""
    for module, file in MODULES.items():
        if file.stem == '__init__':
            body = ast.parse(file.read_text('utf-8')).body
            more = (ast.Assign, ast.FunctionDef) if module == PACKAGE.name else ()
            assert isinstance(body[0], ast.Expr), module
            assert all(isinstance(statement, more) for statement in body[1:]), module


def test_public_things_have_docstrings():
    missing = {m: names for m, file in MODULES.items() if (names := undocumented(file.read_text('utf-8')))}
    assert not missing


def undocumented(source: str) -> list[str]:
    """What has no docstring: the module itself, or a class or function at its top whose name does not begin with _."""
    tree = ast.parse(source)
    named = [n for n in tree.body if isinstance(n, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)]
    public = [n for n in named if not n.name.startswith('_')]
    return [getattr(n, 'name', 'module') for n in [tree, *public] if not ast.get_docstring(n)]


def test_the_rule_sees_what_is_undocumented():
    source = 'def f(): pass\nclass C:\n    """Words."""\n    def g(self): pass\ndef _h(): pass\nasync def i(): pass\n'
    assert undocumented(source) == ['module', 'f', 'i']
    assert undocumented(f'"""Words."""\n{source}') == ['f', 'i']


WITH_A_RUN = 25
"""Functions that may take a run or the whole experiment are fewer, besides the `build` of stages."""


def test_few_functions_take_a_run_or_the_whole_experiment():
    taking = [f'{m}.{name}' for m, file in MODULES.items() for name in takes_a_run(file.read_text('utf-8'))]
    assert 'bioptimus_jax.run.execute.execute' in taking
    assert len(taking) < WITH_A_RUN, taking


def takes_a_run(source: str) -> list[str]:
    """Functions with a run or the experiment among their parameters, the `build` of a stage left out."""
    found = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name != 'build':
            given = (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)
            types = (ast.unparse(one.annotation) for one in given if one.annotation)
            found += [node.name] * any(re.search(r'\b(Run|Experiment)\b', of) for of in types)
    return found


def test_the_rule_sees_what_takes_a_run():
    source = (
        'def build(run: Run): pass\ndef f(a, *, b: Run[X] | None): pass\ndef g(a: RunFolder) -> Run: pass\n'
    )
    assert takes_a_run(f'{source}class C:\n    def h(self, lead: Callable[[Run], None]): pass\n') == [
        'f',
        'h',
    ]


# Key whose values are variations -> the room of those: nobody else asks which one it is.
VARIATIONS = {
    'masking': 'bioptimus_jax/pretrain/units.py',
    'objective': 'bioptimus_jax/pretrain/objectives/',
    'layout': 'bioptimus_jax/rows/layouts.py',
}


def asks_for_a_name(source: str, key: str) -> list[int]:
    """Lines where the value of a key is compared, matched, or looked up."""
    return [line for line, names in asked_names(source) if key in names]


@functools.cache
def asked_names(source: str) -> list[tuple[int, list[str]]]:
    """The line of everything that is compared, matched, or looked up, and its names."""
    found = []
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Compare(left=left, comparators=others):
                asked = [left, *others]
            case ast.Subscript(slice=asked_by) | ast.Match(subject=asked_by):
                asked = [asked_by]
            case ast.Call(func=ast.Attribute(value=value, attr=method)):
                asked = [value] if method in ('startswith', 'endswith', 'removeprefix', 'find') else []
            case _:
                continue
        names = [getattr(part, 'attr', getattr(part, 'id', '')) for part in asked]
        found.append((node.lineno, names))
    return found


@pytest.mark.parametrize('key', VARIATIONS)
def test_no_other_file_asks_which_variation_it_is(key):
    for line in (
        f"x = phase.{key} == 'words'",
        f"x = phase.{key} not in ('a',)",
        f"x = {{'words': 1}}[phase.{key}]",
        f"x = phase.{key}.startswith('w')",
        f"match phase.{key}:\n    case 'words': pass",
    ):
        assert asks_for_a_name(line, key), line
    asking = {
        f'{file.relative_to(ROOT)}:{line}'
        for file in PACKAGE.rglob('*.py')
        if not str(file.relative_to(ROOT)).startswith(VARIATIONS[key])
        for line in asks_for_a_name(file.read_text('utf-8'), key)
    }
    assert not asking


def test_the_name_of_an_objective_stands_in_its_file_and_as_the_default():
    naming = collections.defaultdict(set)
    for file in MODULES.values():
        for text in texts_in(file.read_text('utf-8')):
            naming[text].add(str(file.relative_to(PACKAGE)))
    for name in OBJECTIVES.own:
        assert naming[name] <= {'pretrain/config.py', f'pretrain/objectives/{name}.py'}


def test_no_test_module_imports_another():
    """What several of them build is in a file toy_*.py."""
    wrong = [
        f'{file.name}: {name}'
        for file in (ROOT / 'tests').glob('*.py')
        for name in imports_of(file.read_text('utf-8'), file.stem)
        if name.startswith('test_')
    ]
    assert not wrong


def test_the_name_of_a_file_of_records_stands_in_two_modules_at_most():
    """Others import it from the lowest that has to know it; config.json is the name that transformers gives."""
    naming = collections.defaultdict(set)
    for module, file in MODULES.items():
        for text in texts_in(file.read_text('utf-8')):
            if name := re.fullmatch(r'(?:\S*/)?([\w.-]+\.jsonl?)', text):
                naming[name[1]].add(module)
    assert {name for name, modules in naming.items() if len(modules) > 2} == {'config.json'}


def test_no_file_is_named_for_being_a_drawer():
    drawers = [f for f in tracked_files() if re.fullmatch(r'(utils?|helpers?|commons?|misc)(\..*)?', f.name)]
    assert not drawers


def test_importing_the_command_line_is_light():
    heavy = ('jax', 'torch', 'flax', 'pyarrow', 'transformers')
    code = (
        'import sys, bioptimus_jax.cli.main; bioptimus_jax.cli.main.make_parser(); '
        f'print([m for m in {heavy} if m in sys.modules])'
    )
    result = subprocess.run([sys.executable, '-c', code], cwd=ROOT, capture_output=True, text=True)
    assert result.stdout.strip() == '[]', result.stderr


WITHOUT_THE_LAB = """
import contextlib, io
from pathlib import Path
from bioptimus_jax.cli import main as cli
from bioptimus_jax.cli.command import all_verbs
from toy_measures import TOKENS, make
from bioptimus_jax.storage.files import read_jsonl, write_json, write_jsonl

for verb in all_verbs():
    with contextlib.redirect_stdout(io.StringIO()), contextlib.suppress(SystemExit):
        assert not cli.main([verb, '--help'])
run = make(Path('run'), [TOKENS], {'initial': {'x': 80}, 0: {'x': 90}})
cells = [{**cell, 'gold_scored': 1, 'history': []} for cell in read_jsonl(run / 'finetune' / 'results.jsonl')]
write_jsonl(run / 'finetune' / 'results.jsonl', cells)
for cell in cells:
    write_json(run / 'finetune' / cell['model'] / 'x' / 'standard' / 'seed-0' / 'scores.json', cell)
assert not cli.main(['report', '--config=a.py', '--workdir=run', '--replace'])
assert not cli.main(['compare', '--models', 'run/finetune/initial', 'run/finetune/p0'])
print(*sorted(all_verbs()))
"""


def test_every_verb_of_the_tool_works_without_the_lab(tmp_path, programs):
    shutil.copytree(PACKAGE, tmp_path / PACKAGE.name, ignore=shutil.ignore_patterns('lab', '__pycache__'))
    (tmp_path / 'a.py').write_text('from bioptimus_jax.ext import defaults as get_config\n')
    path = os.pathsep.join([str(tmp_path), str(ROOT / 'tests')])
    result = subprocess.run(
        [programs / 'python', '-c', WITHOUT_THE_LAB],
        cwd=tmp_path,
        env={**os.environ, 'PYTHONPATH': path},
        capture_output=True,
        text=True,
    )
    assert result.returncode == 0, result.stdout + result.stderr
    page = (tmp_path / 'run' / 'report' / 'index.html').read_text('utf-8')
    assert 'id="fine-tuning"' in page
    assert 'Beside other papers' not in page
    verbs = result.stdout.splitlines()[-1].split()
    assert {'run', 'compare', 'report', 'surgery'} <= set(verbs)
    assert not {'sweep', 'forecast', 'advise', 'difficulty'} & set(verbs)


def test_no_test_of_the_tool_needs_the_lab():
    """The lab's tests are tests/test_lab_*.py, so the tool's are `pytest --ignore-glob='*/test_lab_*'`."""
    needing = [
        file.name
        for file in (ROOT / 'tests').glob('*.py')
        if not file.name.startswith('test_lab_')
        for node in ast.parse(file.read_text('utf-8')).body
        if isinstance(node, ast.Import | ast.ImportFrom)
        and any(within(name, f'{PACKAGE.name}.lab') for name in imports_of(ast.unparse(node), file.stem))
    ]
    assert not needing


@pytest.mark.parametrize('name', shipped_configs())
def test_every_shipped_config_is_a_valid_experiment(name, monkeypatch):
    monkeypatch.setenv('BIOPTIMUS_DATA', '/data')
    monkeypatch.setenv('BIOPTIMUS_SOURCE', '/source')
    monkeypatch.setenv('BIOPTIMUS_TEACHER', '/teacher')
    experiment = Experiment.from_config(load(name))
    assert experiment.phases
    known = {'initial', 'source', '/source', 'teacher=/teacher', *experiment.phases}
    assert set(experiment.finetune.models) <= known
    if (
        not experiment.source.path
    ):  # the position table is ours: positions restart with every document of a row
        assert experiment.rows.max_document_pieces <= experiment.model.max_positions
        if 'finetune' in experiment.stages:
            assert experiment.finetune.max_pieces <= experiment.model.max_positions
    if name.endswith(':source'):
        assert experiment.surgery.strategy == 'scratch'
        assert not experiment.source.path


def test_configs_say_which_environment_variable_is_missing(monkeypatch):
    monkeypatch.delenv('BIOPTIMUS_DATA', raising=False)
    config = load('small:source')
    with pytest.raises(ConfigError, match=r'config\.corpus\.inputs: \$BIOPTIMUS_DATA is not set'):
        Experiment.from_config(config)
    override(config, 'corpus.inputs', '/elsewhere/a.txt')
    override(config, 'vocab.file', '/elsewhere/vocab.txt')
    assert Experiment.from_config(config).corpus.inputs == ('/elsewhere/a.txt',)


@pytest.mark.parametrize(
    'name',
    [
        'demo:nothing',
        'small:nothing',
        'ablations',
        'ablations:nothing',
        'ablations:table2/nothing',
        'nothing',
    ],
)
def test_a_wrong_config_name_is_one_clear_line(name):
    with pytest.raises(ConfigError, match=re.escape(f'--config={name}: ')) as error:
        load(name)
    assert '\n' not in str(error.value)


def test_the_curriculum_of_the_demo_is_the_papers():
    demo = Experiment.from_config(load('demo'))
    for phase, paper in PAPER_PHASES.items():
        settings = demo.phase[phase]
        assert (settings.masking, settings.rate, settings.corruption) == (
            paper.masking,
            paper.rate,
            paper.corruption,
        )


def test_sections_of_the_paper_are_those_that_it_has():
    """Contexts and rows are its section 3, the curriculum is its section 8; other works are named in the line."""
    others = re.compile(r'PubMedBERT|Tinn|Lewis|Devlin|Gu et al|al\. \(2023\)|1909\.08053')
    cited = re.compile(r'[Ss]ections? (\d(?:\.\d)?)(?:(?:, | and |, and |-)(\d(?:\.\d)?))*')
    wrong, found = [], 0
    for folder in ('bioptimus_jax', 'configs', 'docs'):
        for file in sorted((ROOT / folder).rglob('*')):
            if file.suffix not in ('.py', '.md') or not file.is_file():
                continue
            lines = file.read_text('utf-8').splitlines()
            for number, line in enumerate(lines, 1):
                for match in [] if others.search(line) else cited.finditer(line):
                    found += 1
                    if set(re.findall(r'\d(?:\.\d)?', match[0])) - {'3', '8', '8.2'}:
                        wrong.append(f'{file.relative_to(ROOT)}:{number}: {match[0]}')
    assert found > 20
    assert not wrong, '\n'.join(wrong)


def test_committed_files_name_no_machine_and_no_registry():
    forbidden = re.compile(
        r'(?<![\w.])/(?:home/[a-z]|Users/[A-Za-z]|root/|work/|private/var)|file:///|simple/?["\']?$'
    )
    found = []
    for file in tracked_files():
        if file == Path(__file__) or file.suffix in ('.svg', '.png'):
            continue
        for number, line in enumerate(file.read_text('utf-8', errors='replace').splitlines(), 1):
            if forbidden.search(line):
                found.append(f'{file.relative_to(ROOT)}:{number}: {line.strip()[:80]}')
    assert not found, '\n'.join(found)


def test_constraints_pin_every_requirement():
    project = tomllib.loads((ROOT / 'pyproject.toml').read_text('utf-8'))['project']
    extras = [entry for entries in project['optional-dependencies'].values() for entry in entries]
    pinned = {}
    for line in (ROOT / 'constraints.txt').read_text('utf-8').splitlines():
        if line and not line.startswith('#'):
            match = re.fullmatch(r'([A-Za-z0-9_.-]+)==([0-9][\w.]*)', line)
            assert match, f'constraints.txt: {line!r} is not name==version'
            pinned[match[1].lower().replace('_', '-')] = match[2]
    for requirement in project['dependencies'] + extras:
        name = re.match(r'[A-Za-z0-9_.-]+', requirement)[0].lower().replace('_', '-')
        assert name in pinned, f'{requirement} has no line in constraints.txt'
    assert pinned['torch'] == '2.13.0'  # a local label such as +cpu would tie everybody to one wheel


def test_scripts_are_executable_shell():
    scripts = [ROOT / '.ci' / 'run', *sorted((ROOT / 'launch').glob('*.sh'))]
    assert len(scripts) >= 4
    for script in scripts:
        assert os.access(script, os.X_OK), f'{script}: chmod +x'
        assert subprocess.run(['bash', '-n', script]).returncode == 0


def test_every_variation_that_decides_results_is_named_as_shipped_or_its_code_is_compared():
    tables = {}
    for dotted, _, metadata in walk(Experiment()):
        if isinstance(table := metadata.get('one_of'), Plugins | Table) and not dotted.startswith('runtime.'):
            tables[dotted.rpartition('.')[2]] = set(table.own)
    assert tables == {key: set(names) for key, names in SHIPPED.items()}, (
        'name a variation that is to be shipped in bioptimus_jax/run/shipped.py; of any other runs compare the code'
    )
