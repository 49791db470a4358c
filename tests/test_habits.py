"""Habits: hooks before a commit are those of `make lint` and pass on the tree; docstrings begin as whole phrases."""

import ast
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from pre_commit.clientlib import load_config

ROOT = Path(__file__).resolve().parents[1]
CONFIG = ROOT / '.pre-commit-config.yaml'
PROGRAMS = Path(sys.executable).parent

FRAGMENTS = frozenset(
    'Of That Those These By In As With Also From To On Over Per At Within Without Its Their Until Up Around Beside '
    'Behind Between See For When So'.split()
)
"""First words of a docstring or a help text that hangs on the line above: what it is of, not what it is."""
WHOLE = ('For each ', 'For every ', 'Its name in model cards')
"""Beginnings that are whole phrases all the same."""


def hooks() -> list[dict]:
    return [hook for repository in load_config(str(CONFIG))['repos'] for hook in repository['hooks']]


def test_hooks_are_valid_and_clone_nothing():
    assert {repository['repo'] for repository in load_config(str(CONFIG))['repos']} == {'local'}
    for hook in hooks():
        program = hook['entry'].split()[0]
        assert hook['language'] in ('system', 'unsupported')  # its older and its newer name
        assert program.startswith('.venv/bin/')
        assert (PROGRAMS / Path(program).name).is_file(), f'{program}: make setup installs it'


def test_hooks_hold_all_of_make_lint():
    lint = re.search(r'^lint:.*\n((?:\t.*\n)+)', (ROOT / 'Makefile').read_text('utf-8'), re.MULTILINE)[1]
    wanted = {
        ' '.join(line.replace('--check', '').removesuffix('.').split())
        for line in re.findall(r'\$\(BIN\)/((?:ruff|mypy).*)', lint)
    }
    given = {hook['entry'].removeprefix('.venv/bin/').replace(' --force-exclude', '') for hook in hooks()}
    assert len(wanted) == 3
    assert wanted <= given


def test_quick_tests_and_those_that_begin_first_are_files_that_exist():
    """What `make quick` names it gives to pytest, missing or not: that fails. Three were renamed without a word."""
    tests = ROOT / 'tests'

    def given(*changes):
        said = subprocess.run(['make', '-n', 'quick', *changes], cwd=ROOT, capture_output=True, text=True)
        return re.findall(r'tests/test_(\w+)\.py', said.stdout)

    assert len(given()) == 12
    assert given('QUICK=house nowhere') == ['house', 'nowhere']
    first = re.search(r'LONGEST_FIRST = """(.*?)"""', (tests / 'conftest.py').read_text('utf-8'), re.DOTALL)[
        1
    ]
    assert not [n for n in (*given(), *first.split()) if not (tests / f'test_{n}.py').is_file()]


@pytest.fixture
def plant(monkeypatch):
    monkeypatch.syspath_prepend(ROOT / '.ci')
    import plant

    return plant


def test_every_bug_that_may_be_planted_still_has_its_text_and_its_tests(plant):
    problems = {name: one.problem(ROOT) for name, one in plant.PLANTS.items()}
    assert not {name: problem for name, problem in problems.items() if problem}
    assert all(one.right != one.wrong for one in plant.PLANTS.values())
    assert plant.main(['--list', 'hidden-tokens-drawn']) == 0


def test_a_planted_bug_is_noticed_or_not_and_is_taken_out_again(plant, tmp_path, monkeypatch, capsys):
    source, tests = tmp_path / 'bioptimus_jax' / 'sum.py', tmp_path / 'tests' / 'test_sum.py'
    right = 'def double(x):\n    return 2 * x\n'
    test = 'import sys\nsys.path.insert(0, "bioptimus_jax")\nfrom sum import double\n\n'
    for file, text in (
        (source, right),
        (tests, f'{test}def test_double():\n    assert double(2) == 4\n'),
    ):
        file.parent.mkdir()
        file.write_text(text)
    bug = plant.Plant('sum.py', '2 * x', '3 * x', ('sum',))
    assert plant.noticed(tmp_path, 'sum', bug)
    assert 'test_sum.py::test_double' in capsys.readouterr().out
    assert source.read_text() == right
    for code in (0, 2, 5):  # all pass, or none could run
        monkeypatch.setattr(plant, 'tests_of', lambda *_, c=code: subprocess.CompletedProcess([], c, '', ''))
        assert not plant.noticed(tmp_path, 'sum', bug)
        assert 'NOT NOTICED' in capsys.readouterr().out
    assert bug.problem(tmp_path) == ''
    assert '0 times' in plant.Plant('sum.py', '4 * x', '', ('sum',)).problem(tmp_path)
    assert 'there is no tests/test_none.py' in plant.Plant('sum.py', '2', '', ('none',)).problem(tmp_path)


@pytest.fixture
def tree(tmp_path):
    """A copy of what is, or would be, committed, as a repository of its own."""
    listed = subprocess.run(
        ['git', 'ls-files', '-z', '--cached', '--others', '--exclude-standard'], cwd=ROOT, capture_output=True
    )
    if listed.returncode:
        pytest.skip('not a git checkout')
    for name in filter(None, listed.stdout.decode().split('\0')):
        if (ROOT / name).is_file():
            (tmp_path / 'tree' / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, tmp_path / 'tree' / name)
    for command in ('git init -q', 'git add -A'):
        subprocess.run(command.split(), cwd=tmp_path / 'tree', check=True)
    (tmp_path / 'tree' / '.venv').mkdir()
    (tmp_path / 'tree' / '.venv' / 'bin').symlink_to(PROGRAMS)
    return tmp_path / 'tree'


def run_hooks(tree: Path) -> subprocess.CompletedProcess:
    environment = {
        **os.environ,
        'PRE_COMMIT_HOME': str(tree.parent / 'cache'),
        'SKIP': 'mypy',
    }  # lint runs mypy
    command = [sys.executable, '-m', 'pre_commit', 'run', '--all-files', '--color=never']
    return subprocess.run(command, cwd=tree, env=environment, capture_output=True, text=True)


def test_hooks_pass_on_the_tree_and_see_what_is_wrong(tree):
    result = run_hooks(tree)
    assert result.returncode == 0, result.stdout + result.stderr
    assert result.stdout.count('Passed') == len(hooks()) - 1
    (tree / 'bioptimus_jax' / 'odd.py').write_text('import os\nx = "two"  \n\n\n')
    (tree / 'key.txt').write_text('-----BEGIN RSA ' + 'PRIVATE KEY-----\n')
    (tree / 'large.txt').write_text('x' * 600_000 + '\n')
    subprocess.run(['git', 'add', '-A'], cwd=tree, check=True)
    result = run_hooks(tree)
    assert result.returncode
    failed = set(re.findall(r'^- hook id: (.*)$', result.stdout, re.MULTILINE))
    assert failed >= {'ruff', 'ruff-format', 'large-files', 'private-key'}


def texts_of(source: str) -> Iterator[tuple[int, str]]:
    """Line and text of every docstring, of modules, classes, functions and names, and of every help text."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            if isinstance(node.value.value, str):
                yield node.lineno, node.value.value
        elif isinstance(node, ast.Call):
            name = getattr(node.func, 'id', getattr(node.func, 'attr', ''))
            given = node.args[1:2] if name in ('key', 'flag', 'switch', 'count', 'needed', 'several') else []
            for text in (*given, *(k.value for k in node.keywords if k.arg in ('doc', 'help'))):
                first = text.values[0] if isinstance(text, ast.JoinedStr) and text.values else text
                if isinstance(first, ast.Constant) and isinstance(first.value, str):
                    yield first.lineno, first.value


def fragments(source: str) -> list[tuple[int, str]]:
    """Line and beginning of every docstring and help text that begins as a fragment."""
    found = []
    for line, text in texts_of(source):
        said = ' '.join(text.split())
        if re.split(r'\W', said, maxsplit=1)[0].capitalize() in FRAGMENTS and not said.startswith(WHOLE):
            found.append((line, said[:60]))
    return found


def test_docstrings_and_help_begin_as_whole_phrases():
    files = [
        file
        for room in ('bioptimus_jax', 'benchmarks', 'configs', 'tests')
        for file in (ROOT / room).rglob('*.py')
    ]
    wrong = {
        f'{file.relative_to(ROOT)}:{line}: {said}'
        for file in files
        for line, said in fragments(file.read_text('utf-8'))
    }
    assert not wrong
    bad = '''X = 1
"""Of every set the best."""
def f():
    """As they are."""
class C:
    """That of a configuration."""
    seed: int = key(0, 'of that choice')
'''
    assert [line for line, _ in fragments(bad)] == [2, 4, 6, 7]
