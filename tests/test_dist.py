"""Wheel and sdist: what is in them, that one gives the other, and that the wheel runs where no repository is."""

import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tomllib
import zipfile
from pathlib import Path

import pytest

import bioptimus_jax

ROOT = Path(__file__).resolve().parents[1]


def build(source: Path, to: Path, kind: str) -> Path:
    """Build with the build backend of pyproject.toml, without an environment of its own."""
    command = [sys.executable, '-m', 'build', '--no-isolation', f'--{kind}', '--outdir', str(to), str(source)]
    result = subprocess.run(command, capture_output=True, text=True)
    assert result.returncode == 0, result.stdout + result.stderr
    [made] = to.glob('*.whl' if kind == 'wheel' else '*.tar.gz')
    return made


@pytest.fixture(scope='module')
def wheel(tmp_path_factory) -> Path:
    return build(ROOT, tmp_path_factory.mktemp('wheel'), 'wheel')


def contents(wheel: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(wheel) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def test_the_wheel_holds_package_and_configs_and_nothing_else(wheel):
    files = contents(wheel)
    package = [p for p in (ROOT / 'bioptimus_jax').rglob('*') if p.is_file() and '__pycache__' not in p.parts]
    modules = {str(p.relative_to(ROOT)) for p in package}
    configs = {f'bioptimus_jax/configs/{p.name}' for p in (ROOT / 'configs').glob('*.py')}
    information = f'bioptimus_jax-{bioptimus_jax.__version__}.dist-info'
    records = {f'{information}/{name}' for name in ('METADATA', 'WHEEL', 'RECORD', 'entry_points.txt')}
    assert files.keys() == modules | configs | records | {f'{information}/licenses/LICENSE'}
    assert {
        'bioptimus_jax/py.typed',
        'bioptimus_jax/report/page.html.jinja',
        'bioptimus_jax/cli/main.py',
    } <= modules
    assert files[f'{information}/licenses/LICENSE'] == (ROOT / 'LICENSE').read_bytes()
    assert b'bioptimus = bioptimus_jax.__main__:main' in files[f'{information}/entry_points.txt']
    for name in configs:
        assert files[name] == (ROOT / 'configs' / Path(name).name).read_bytes()


def test_the_sdist_gives_the_same_wheel(wheel, tmp_path):
    made = build(ROOT, tmp_path / 'sdist', 'sdist')
    (tmp_path / 'source').mkdir()
    subprocess.run(['tar', '-xzf', made, '-C', tmp_path / 'source'], check=True)
    [folder] = (tmp_path / 'source').iterdir()
    names = {str(p.relative_to(folder)) for p in folder.rglob('*') if p.is_file()}
    assert {'SECURITY.md', 'CHANGELOG.md', 'tests/conftest.py', 'launch/slurm.sh', 'Makefile'} <= names
    assert not [n for n in names if n.startswith(('runs/', '.venv', 'dist/', 'tests/__pycache__'))]
    assert contents(build(folder, tmp_path / 'again', 'wheel')) == contents(wheel)


def test_what_the_dockerfile_copies_gives_the_same_wheel(wheel, tmp_path):
    """An image installs `/source`; here a folder has that name."""
    lines = (ROOT / 'Dockerfile').read_text().splitlines()
    for *sources, to in (line.split()[1:] for line in lines if line.startswith('COPY ')):
        into = tmp_path / to.lstrip('/')
        for name in sources:
            if (ROOT / name).is_dir():
                shutil.copytree(ROOT / name, into, ignore=shutil.ignore_patterns('__pycache__'))
            else:
                into.mkdir(exist_ok=True)
                shutil.copy(ROOT / name, into)
    [installs] = [line for line in lines if line.startswith('RUN pip install')]
    assert re.search(r'--constraint /source/constraints.txt "/source\[\$EXTRA,remote\]"$', installs)
    assert (tmp_path / 'source/constraints.txt').is_file()
    assert contents(build(tmp_path / 'source', tmp_path / 'made', 'wheel')) == contents(wheel)


def test_there_is_one_version(wheel):
    version = bioptimus_jax.__version__
    assert re.fullmatch(r'\d+\.\d+\.\d+((a|b|rc)\d+)?', version)
    project = tomllib.loads((ROOT / 'pyproject.toml').read_text('utf-8'))
    assert 'version' in project['project']['dynamic']
    assert project['tool']['hatch']['version'] == {'path': 'bioptimus_jax/__init__.py'}
    assert f'-{version}-py3-none-any' in wheel.name
    newest = re.search(r'^## (.*)$', (ROOT / 'CHANGELOG.md').read_text('utf-8'), re.MULTILINE)[1]
    assert re.fullmatch(rf'(Unreleased \()?{re.escape(version)}\)?( - \d{{4}}-\d\d-\d\d)?', newest)


def installed(wheel: Path, folder: Path) -> Path:
    """A virtual environment that holds the wheel, and what it depends on only by a link to where the tests run."""
    subprocess.run([sys.executable, '-m', 'venv', '--without-pip', folder], check=True)
    inside = {'base': str(folder), 'platbase': str(folder)}
    packages = Path(sysconfig.get_path('purelib', 'venv', inside))
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(packages)
    here = sysconfig.get_path('purelib')
    (packages / 'dependencies.pth').write_text(here + '\n')  # a plain path: .pth files in it are not read
    return folder / 'bin' / 'python'


@pytest.fixture(scope='module')
def elsewhere(wheel, tmp_path_factory):
    """Runs the program of the wheel in an empty folder, without the repository in sight."""
    root = tmp_path_factory.mktemp('elsewhere')
    python = installed(wheel, root / 'venv')
    (root / 'empty').mkdir()
    hidden = ('PYTHONPATH', 'BIOPTIMUS_DATA', 'VIRTUAL_ENV')
    environment = {name: value for name, value in os.environ.items() if name not in hidden}

    def run(*arguments, folder=root / 'empty', timeout=120):
        code = 'import sys; from bioptimus_jax.__main__ import main; sys.exit(main())'
        return subprocess.run(
            [python, '-c', code, *arguments],
            cwd=folder,
            env=environment,
            capture_output=True,
            text=True,
            timeout=timeout,
        )

    run.root = root
    return run


def test_the_wheel_runs_without_the_repository(elsewhere):
    result = elsewhere('--version')
    assert result.stdout.strip() == f'bioptimus {bioptimus_jax.__version__}', result.stderr
    place = subprocess.run(
        [
            elsewhere.root / 'venv' / 'bin' / 'python',
            '-c',
            'import bioptimus_jax; print(bioptimus_jax.__file__)',
        ],
        cwd=elsewhere.root / 'empty',
        env={name: value for name, value in os.environ.items() if name != 'PYTHONPATH'},
        capture_output=True,
        text=True,
    )
    assert place.stdout.startswith(str(elsewhere.root)), place.stdout + place.stderr
    shown = elsewhere('plan', '--config=demo:source', '--device=a100-40')
    assert shown.returncode == 0, shown.stderr
    missing = elsewhere('corpus', '--config=nowhere', '--workdir=run')
    assert missing.returncode == 2
    assert (
        'shipped ones: ablations, bioclinical, biolm, biolm_tasks, bioptimus, blurb, demo' in missing.stderr
    )


@pytest.mark.slow
def test_the_wheel_runs_the_demo_from_an_empty_folder(elsewhere):
    result = elsewhere('demo', timeout=3000)
    assert result.returncode == 0, result.stderr
    assert 'done in' in result.stdout
    assert (elsewhere.root / 'empty' / 'runs' / 'demo' / 'report' / 'index.html').is_file()
