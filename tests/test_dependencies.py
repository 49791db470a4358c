"""What the project depends on: bounded, pinned, installed as pinned, its licences go with ours; and the audit."""

import importlib.metadata
import json
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parents[1]
PROJECT = tomllib.loads((ROOT / 'pyproject.toml').read_text('utf-8'))['project']
EXTRAS = PROJECT['optional-dependencies']
ACCELERATORS = ('cuda12', 'cuda13', 'gpu', 'tpu')
HERE = [name for name in EXTRAS if name not in ACCELERATORS]  # what make setup installs
AUDIT = ROOT / '.ci' / 'audit.py'

# Versions that are dates or that never broke anything: an upper bound would only keep people from updating.
UNBOUNDED = {
    'dask': 'calendar versions',
    'psutil': 'two calls that are as old as the package; in benchmarks only',
    'hypothesis': 'tests only, a release a week',
    'pytest-timeout': 'tests only',
    'pytest-xdist': 'tests only',
}
# They come with an accelerator's wheel of torch or jax and are pinned by it; and what installs all others.
NOT_PINNED = re.compile(r'nvidia-|cuda-|triton|jax-cuda|libtpu|pip$')
TORCH_CUDA = 'cuda-toolkit[all]==13.0.3.0'  # what torch 2.13 asks for on Linux
# Licences that ask for no more than their notice, or (MPL) for the source of the files that one changes.
PERMISSIVE = re.compile(
    r'\b(Apache([ -]2(\.0)?| License| Software)|MIT|BSD|ISC|PSF|Python Software Foundation|MPL|Mozilla Public|HPND|'
    r'Unlicense|0BSD|Zlib|CC0)',
    re.IGNORECASE,
)
COPYLEFT = re.compile(r'\bA?L?GPL|General Public', re.IGNORECASE)
EXCEPTIONS = {
    'gensim': 'LGPL; imported as it is by those who install the extra donor',
    'unidecode': 'GPL; comes with pubmed-parser, which a benchmark compares with in a process of its own (extra bench)',
}


def requirements(*extras: str) -> list[Requirement]:
    found = [*PROJECT['dependencies'], *(entry for extra in extras for entry in EXTRAS[extra])]
    return [Requirement(entry) for entry in found]


def pins() -> dict[str, str]:
    lines = (ROOT / 'constraints.txt').read_text('utf-8').splitlines()
    pairs = [line.split('==') for line in lines if line and not line.startswith('#')]
    return {canonicalize_name(name): version for name, version in pairs}


def closure(*extras: str) -> dict[str, importlib.metadata.Distribution]:
    """Everything that is installed because we ask for it, here and on this Python."""
    waiting, seen, found = requirements(*extras), set(), {}
    while waiting:
        requirement = waiting.pop()
        key = canonicalize_name(requirement.name), frozenset(requirement.extras)
        if key in seen:
            continue
        seen.add(key)
        try:
            found[key[0]] = importlib.metadata.distribution(requirement.name)
        except importlib.metadata.PackageNotFoundError:
            pytest.skip(f'{requirement.name} is not installed; make setup installs all extras')
        for entry in found[key[0]].requires or ():
            needed = Requirement(entry)
            wanted = ('', *requirement.extras)
            if needed.marker is None or any(needed.marker.evaluate({'extra': extra}) for extra in wanted):
                waiting.append(needed)
    return {name: d for name, d in found.items() if not NOT_PINNED.match(name)}


def licence(distribution: importlib.metadata.Distribution) -> str:
    said = distribution.metadata
    classifiers = [c for c in said.get_all('Classifier', []) if c.startswith('License')]
    return said.get('License-Expression') or '; '.join(classifiers) or (said.get('License') or '')[:200]


def test_every_dependency_has_an_upper_bound_or_a_reason():
    named = requirements(*EXTRAS)
    free = {r.name for r in named if not any(s.operator in ('<', '<=', '==', '~=') for s in r.specifier)}
    assert free == UNBOUNDED.keys()


def test_pins_are_within_the_ranges():
    pinned = pins()
    for requirement in requirements(*EXTRAS):
        version = pinned[canonicalize_name(requirement.name)]
        assert requirement.specifier.contains(version), f'{requirement} is pinned to {version}'


def test_everything_that_comes_along_is_installed_as_pinned():
    pinned = pins()
    wrong = [
        f'{name}=={distribution.version}, pinned: {pinned.get(name)}'
        for name, distribution in closure(*HERE).items()
        if distribution.version.partition('+')[0] != pinned.get(name)
    ]
    assert not wrong, 'constraints.txt: ' + ', '.join(sorted(wrong))


def test_every_licence_goes_with_ours():
    installed = closure(*HERE)
    copyleft = {name for name, d in installed.items() if COPYLEFT.search(licence(d))}
    assert copyleft == EXCEPTIONS.keys()
    assert not copyleft & closure().keys(), 'what people install must be free of them'
    unclear = {
        n: licence(d) for n, d in installed.items() if n not in copyleft and not PERMISSIVE.search(licence(d))
    }
    assert not unclear


@pytest.mark.slow
@pytest.mark.parametrize('extra', ACCELERATORS)
def test_an_extra_for_accelerators_resolves_beside_the_libraries_of_pytorch(extra, tmp_path):
    """pip itself resolves it, looks things up and installs nothing; skips without a registry."""
    wanted = [
        str(r) for r in requirements(extra) if r.name in ('flax', 'jax', 'nvidia-ml-py', 'optax', 'torch')
    ]
    if extra in ('cuda13', 'gpu'):
        wanted.append(TORCH_CUDA)  # a CPU build of torch, where one is found first, asks for none
    pip = [sys.executable, '-m', 'pip', '--disable-pip-version-check', 'install', '--dry-run', '--quiet']
    report = tmp_path / 'report.json'
    online = {name: value for name, value in os.environ.items() if name != 'PYTHONPATH'}
    done = subprocess.run(
        [*pip, '--ignore-installed', f'--report={report}', *wanted],
        capture_output=True,
        text=True,
        env=online,
    )
    if 'No matching distribution' in done.stderr or 'Failed to establish' in done.stderr:
        pytest.skip(f'no registry: {done.stderr.splitlines()[-1]}')
    assert done.returncode == 0, done.stderr
    names = {entry['metadata']['name'] for entry in json.loads(report.read_text())['install']}
    plugin = {'gpu': 'jax-cuda13-plugin', 'tpu': 'libtpu'}.get(extra, f'jax-{extra}-plugin')
    assert plugin in names


# ---- the audit


SERVICE = """
import json, sys
place = sys.argv[sys.argv.index('--requirement') + 1]
flaws = {flaws}
records = []
for line in open(place):
    name, _, version = line.strip().partition('==')
    if {knows}:
        records.append({{'name': name, 'version': version, 'vulns': flaws.get(name, [])}})
    else:
        records.append({{'name': name, 'skip_reason': 'not found'}})
print(json.dumps({{'dependencies': records}}))
"""
JINJA = "'jinja2': [{'id': 'CVE-2019-10906', 'aliases': [], 'fix_versions': ['2.10.1']}]"
NUMPY = "'numpy': [{'id': 'CVE-1', 'aliases': [], 'fix_versions': ['9']}]"


@pytest.mark.parametrize(
    ('knows', 'flaws', 'codes', 'expected'),
    [
        ('False', '', (0, 4), 'NOT AUDITED: no advisory service (not found)'),
        ('True', '', (0, 4), 'NOT AUDITED: no advisory service (it knows no flaw'),
        ('True', JINJA, (0, 0), '2 pins, 0 known flaws'),
        ('True', f'{JINJA}, {NUMPY}', (1, 1), 'numpy 2: CVE-1, fixed in 9'),
        ('broken', '', (0, 4), 'NOT AUDITED: no advisory service (NameError'),
    ],
)
def test_an_audit_that_could_ask_nobody_says_so(knows, flaws, codes, expected, tmp_path):
    """Against a program that answers as pip-audit does where an index has advisories, some, or none."""
    (tmp_path / 'service.py').write_text(SERVICE.format(knows=knows, flaws=f'{{{flaws}}}'))
    (tmp_path / 'constraints.txt').write_text('# pins\nnumpy==2\nother==1\n')
    command = [sys.executable, AUDIT, f'--program={sys.executable} {tmp_path / "service.py"}']
    command += [f'--constraints={tmp_path / "constraints.txt"}']
    for code, flags in zip(codes, ([], ['--strict']), strict=True):
        result = subprocess.run([*command, *flags], capture_output=True, text=True)
        assert result.returncode == code, result.stderr
        assert expected in result.stdout
