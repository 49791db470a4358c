"""What SECURITY.md says of the code: nothing unpickles, unpacks, evaluates or reaches out; nothing shows a secret."""

import ast
import os
import re
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from bioptimus_jax.cli import main as cli
from bioptimus_jax.corpus.fetch import Patience
from bioptimus_jax.errors import printable

ROOT = Path(__file__).resolve().parents[1]
SCANNED = [
    file for part in ('bioptimus_jax', 'configs', 'benchmarks') for file in (ROOT / part).rglob('*.py')
]

# Modules that run or unpack what a file says; what else may be taken from one stands behind it.
FORBIDDEN = {
    **dict.fromkeys('pickle cPickle _pickle dill cloudpickle joblib marshal shelve code codeop'.split(), ()),
    **dict.fromkeys('tarfile xmlrpc telnetlib ftplib runpy imp yaml'.split(), ()),
    'xml': ('escape', 'quoteattr'),  # which write
    'zipfile': ('BadZipFile',),  # what numpy raises for a damaged .npz
}
BUILTINS = ('eval', 'exec', 'compile', '__import__', 'breakpoint')
CALLS = (
    'os.system os.popen shutil.unpack_archive tempfile.mktemp pandas.read_pickle numpy.lib.format.read_array '
    'torch.hub.load torch.jit.load ForkingPickler.loads'
).split()
# Call, by the end of its name: keywords that it must have, with these values.
REQUIRED = {
    'torch.load': {'weights_only': True},
    'np.load': {'allow_pickle': False},
    'from_pretrained': {'trust_remote_code': False, 'local_files_only': True},
    'jinja2.Environment': {'autoescape': True},
}
LOADERS = ('exec_module', 'import_module')
# Configs and plug-ins are programs, and here they are run; stages and what is public are imported late, by names that
# are in the code; a benchmark imports once what each of its commands has imported. A worker unpacks what the process
# that started it has sent, as multiprocessing does.
ALLOWED = {
    ('bioptimus_jax/__init__.py', 'import_module'),
    ('bioptimus_jax/experiment/config.py', 'exec_module'),
    ('bioptimus_jax/config/plugins.py', 'import_module'),
    ('bioptimus_jax/config/extensions.py', 'import_module'),
    ('bioptimus_jax/ext.py', 'import_module'),
    ('bioptimus_jax/experiment/stages.py', 'import_module'),
    ('benchmarks/operations.py', 'import_module'),
    ('bioptimus_jax/hosts/workers.py', 'ForkingPickler.loads'),
}
LXML = ('iterparse', 'parse', 'fromstring', 'XML', 'XMLParser', 'XMLPullParser', 'HTML')


def dotted(node: ast.expr) -> str:
    if isinstance(node, ast.Attribute):
        return f'{dotted(node.value)}.{node.attr}'
    return node.id if isinstance(node, ast.Name) else ''


def dangers(source: str, file: str) -> list[str]:
    """What in a source is not allowed, as LINE: what."""
    tree, found = ast.parse(source), []
    used = {n.attr for n in ast.walk(tree) if isinstance(n, ast.Attribute) and dotted(n.value) == 'zipfile'}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import | ast.ImportFrom):
            names = [a.name for a in node.names] if isinstance(node, ast.Import) else [node.module or '']
            taken = {a.name for a in node.names}
            if taken == {'zipfile'}:
                taken = used
            for name in names:
                top = name.partition('.')[0]
                if top in FORBIDDEN and not (FORBIDDEN[top] and taken <= set(FORBIDDEN[top])):
                    found.append(f'{node.lineno}: imports {name}')
        elif isinstance(node, ast.Call):
            found += [f'{node.lineno}: {what}' for what in wrong_call(node, file)]
    return found


def wrong_call(node: ast.Call, file: str) -> list[str]:
    name = dotted(node.func) or (node.func.attr if isinstance(node.func, ast.Attribute) else '')
    last = name.rpartition('.')[2]
    given = {
        k.arg: k.value.value if isinstance(k.value, ast.Constant) else dotted(k.value) for k in node.keywords
    }
    wrong = []
    risky = name if name in (*BUILTINS, *CALLS) else last if last in LOADERS else ''
    if risky and (file, risky) not in ALLOWED:
        wrong.append(f'calls {name}')
    if given.get('shell') is True or given.get('verify') is False or last == 'extractall':
        wrong.append(f'calls {name} with shell=True, verify=False or to unpack')
    if name.startswith('etree.') and last in LXML and given.get(None) != 'PARSING':
        wrong.append(f'calls {name} without **PARSING')
    for ending, keywords in REQUIRED.items():
        if f'.{name}'.endswith(f'.{ending}') and any(given.get(k, '') is not v for k, v in keywords.items()):
            wrong.append(f'calls {name} without {keywords}')
    return wrong


def test_nothing_runs_or_unpacks_what_a_file_says():
    names = {str(file.relative_to(ROOT)): file for file in SCANNED}
    found = {name: wrong for name, file in names.items() if (wrong := dangers(file.read_text('utf-8'), name))}
    assert not found


@pytest.mark.parametrize(
    'source',
    [
        'import pickle',
        'def f():\n    from pickle import loads',
        'import zipfile\nzipfile.ZipFile(f)',
        'from zipfile import ZipFile',
        'import tarfile',
        'import xml.etree.ElementTree',
        'import yaml',
        'eval(text)',
        'exec(text)',
        'ForkingPickler.loads(text)',
        'specification.loader.exec_module(module)',
        'importlib.import_module(text)',
        'os.system(text)',
        'subprocess.run(text, shell=True)',
        'httpx2.AsyncClient(verify=False)',
        'torch.load(file)',
        'torch.load(file, weights_only=False)',
        'torch.load(file, weights_only=flag)',
        'np.load(file)',
        'np.load(file, allow_pickle=True)',
        'AutoModel.from_pretrained(folder)',
        'AutoModel.from_pretrained(folder, trust_remote_code=False)',
        'etree.parse(file)',
        'etree.iterparse(file, huge_tree=True)',
        'archive.extractall(folder)',
        'shutil.unpack_archive(file)',
        'jinja2.Environment()',
    ],
)
def test_the_rule_sees_a_danger(source):
    assert dangers(source, 'bioptimus_jax/somewhere.py')


def test_xml_is_read_without_entities_dtds_network_or_large_trees():
    from bioptimus_jax.storage.parsing import PARSING

    wanted = dict(load_dtd=False, no_network=True, resolve_entities=False, huge_tree=False)
    assert wanted.items() <= PARSING.items()


@pytest.mark.parametrize('where', [('192.0.2.1', 80), ('2001:db8::1', 80), ('example.org', 443)])
def test_tests_reach_no_network(where):
    with pytest.raises(RuntimeError, match='tests reach no network'):
        socket.create_connection(where, timeout=1)
    code = f'import socket; socket.create_connection({where!r}, timeout=1)'
    result = subprocess.run([sys.executable, '-c', code], capture_output=True, text=True)
    assert 'tests reach no network' in result.stderr


def test_tests_reach_this_machine():
    with socket.create_server(('127.0.0.1', 0)) as server:
        socket.create_connection(('localhost', server.getsockname()[1]), timeout=5).close()


def test_printable():
    assert printable('plain ± β\n\ttext') == 'plain ± β\n\ttext'
    assert printable('a\x1b[2J\rb\x07\x7f\x9b') == 'a\\x1b[2J\\rb\\x07\\x7f\\x9b'
    assert printable('a\u202etxt.exe\udcff') == 'a\\u202etxt.exe\\udcff'
    assert printable('at https://me:pw@host/x, s3://k:s@b') == 'at https://***@host/x, s3://***@b'
    assert printable('https://host/a@b') == 'https://host/a@b'
    assert printable('https://h/f?a=1&X-Amz-Signature=abc&token=t b') == (
        'https://h/f?a=1&X-Amz-Signature=***&token=*** b'
    )


SECRETS = {
    'HF_TOKEN': 'hf_tellnobody1',
    'AWS_SECRET_ACCESS_KEY': 'tellnobody2',
    'GOOGLE_APPLICATION_CREDENTIALS': '/secret/tellnobody3.json',
    'WANDB_API_KEY': 'tellnobody4',
}


def test_no_secret_of_the_environment_is_written_or_printed(tmp_path):
    (tmp_path / 'abstracts.txt').write_text(
        'Aspirin inhibits platelets in most patients of the study.\n\n' * 9
    )
    (tmp_path / 'ner').mkdir()
    program = (
        'from bioptimus_jax.ext import defaults\ndef get_config():\n    c = defaults()\n'
        "    c.stages = ('corpus', 'vocab')\n    c.runtime.workers = 1\n    return c\n"
    )
    (tmp_path / 'config.py').write_text(program)
    command = [sys.executable, '-m', 'bioptimus_jax.cli.main', 'run', f'--config={tmp_path / "config.py"}']
    command += [f'--workdir={tmp_path / "run"}', f'--config.corpus.inputs={tmp_path / "abstracts.txt"}']
    environment = {**os.environ, **SECRETS, 'TMPDIR': str(tmp_path), 'PYTHONPATH': f'{ROOT}'}
    result = subprocess.run(command, capture_output=True, text=True, env=environment)
    assert 'corpus: done' in result.stdout, result.stderr
    assert (tmp_path / 'run' / 'corpus' / 'manifest.json').is_file()
    written = b''.join(file.read_bytes() for file in tmp_path.rglob('*') if file.is_file())
    for secret in SECRETS.values():
        assert secret not in result.stdout + result.stderr
        assert secret.encode() not in written


def test_a_password_in_an_address_is_not_shown(tmp_path, capsys, monkeypatch):
    monkeypatch.setenv('NO_PROXY', '127.0.0.1')
    with socket.create_server(('127.0.0.1', 0)) as server:
        port = server.getsockname()[1]  # nobody listens there any more
    monkeypatch.setattr('bioptimus_jax.corpus.download.Patience', lambda: Patience(tries=1))
    url = f'http://me:tellnobody@127.0.0.1:{port}/pubmed'
    assert cli.main(['download', f'--to={tmp_path}', f'--url={url}']) == 3
    assert cli.main(['download', f'--to={tmp_path}', f'--url={url}?q']) == 2
    shown = ''.join(capsys.readouterr())
    assert 'tellnobody' not in shown
    assert shown.count('http://***@127.0.0.1') >= 2
    assert not any(b'tellnobody' in f.read_bytes() for f in tmp_path.rglob('*') if f.is_file())


def test_a_crash_leaves_its_details_in_a_file_of_its_own_without_secrets(tmp_path, capsys, monkeypatch):
    def crash(*_):
        raise RuntimeError('at https://me:tellnobody@host/')

    monkeypatch.setattr(cli, 'make_parser', crash)
    monkeypatch.setattr('tempfile.tempdir', str(tmp_path))
    assert cli.main([]) == 1
    error = capsys.readouterr().err
    file = Path(re.search(r'the details are in (.*)$', error.strip())[1])
    assert file.parent == tmp_path
    assert file.stat().st_mode & 0o077 == 0, 'others can read it'
    assert 'RuntimeError' in file.read_text()
    assert 'tellnobody' not in error + file.read_text()
