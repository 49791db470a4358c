"""The documentation: what it shows is run, what it names exists, and no link of it is dead.

What needs the laboratory is in tests/test_lab_docs.py, the built site in tests/test_lab_site.py.
"""

import contextlib
import multiprocessing
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import time
from concurrent.futures import ProcessPoolExecutor

import pytest
import toy_programs
from toy_docs import (
    DOCS,
    FENCE,
    INLINE,
    OF_THE_LAB,
    PAGES,
    README,
    ROOT,
    RUN,
    cases,
    check_command,
    check_key,
    check_named,
    commands_in,
    dead_in,
    environment,
    matches,
    named_in,
    needs_the_lab,
    run_in,
)

from bioptimus_jax.cli import main as cli
from bioptimus_jax.cli.arguments import PROGRAM_HELP
from bioptimus_jax.errors import ConfigError
from bioptimus_jax.storage.files import read_json, read_jsonl

# Two minutes of work on a free core, one of them for the tutorial, which a crowded machine draws out.
pytestmark = pytest.mark.timeout(900)


def test_a_program_that_starts_warm_is_like_any_other(programs, tmp_path):
    """Words, folder, environment, streams, exit codes, signals, and a kill that leaves nothing behind.

    The package of another checkout is imported anew, and flags of the compiler are those of the program.
    """
    shutil.copytree(ROOT / 'bioptimus_jax', tmp_path / 'other' / 'bioptimus_jax')
    with open(tmp_path / 'other' / 'bioptimus_jax' / 'cli' / 'main.py', 'a') as file:
        file.write('OTHER = True\n')
    (tmp_path / 'other' / 'sitecustomize.py').write_text('import builtins\nbuiltins.customized = True\n')
    looks = 'import jax; from bioptimus_jax.cli import main; print(main.OTHER, customized, jax.local_device_count())'
    flags = {'XLA_FLAGS': '--xla_force_host_platform_device_count=3'}
    seen = subprocess.run(
        [programs / 'python', '-c', looks],
        cwd=tmp_path,
        env=toy_programs.environment(tmp_path / 'other', **flags),
        capture_output=True,
        text=True,
    )
    assert seen.stdout == 'True True 3\n', seen.stderr
    (tmp_path / 'test_here.py').write_text('def test_here():\n    assert True\n')
    tested = [programs / 'python', *'-m pytest -q -p no:cacheprovider test_here.py'.split()]
    said = subprocess.run(
        tested, cwd=tmp_path, env=environment(tmp_path, programs), capture_output=True, text=True
    ).stdout
    assert said.splitlines()[-1].startswith('1 passed in '), said
    (tmp_path / 'seen.py').write_text(
        'import os, sys\nprint(sys.argv, sys.path[0], os.getcwd(), os.environ["OWN"], sys.stdin.read())\n'
    )
    (tmp_path / 'waits.py').write_text(
        'import os, time\nprint(os.getpid(), "torch" in __import__("sys").modules, flush=True)\ntime.sleep(60)\n'
    )
    own = {'cwd': tmp_path, 'env': environment(tmp_path, programs) | {'OWN': '1'}}
    for words in (
        ['seen.py', 'a b'],
        ['-c', 'import sys; sys.exit(7)'],
        ['-c', 'exit("no")'],
        ['-m', 'none'],
        ['-c', 'import os; os.kill(os.getpid(), 9)'],
    ):
        ended = [
            subprocess.run([python, *words], input='given', capture_output=True, text=True, **own)
            for python in (programs / 'python', sys.executable)
        ]
        assert [(e.returncode, e.stdout) for e in ended[:1]] == [(e.returncode, e.stdout) for e in ended[1:]]
    for number in (signal.SIGTERM, signal.SIGKILL):
        for other, warm in ({}, 'True'), ({'JAX_ANYTHING': '1'}, 'False'):
            command, env = [programs / 'python', 'waits.py'], own['env'] | other
            with subprocess.Popen(
                command, cwd=tmp_path, env=env, stdout=subprocess.PIPE, text=True
            ) as running:
                pid, seen = running.stdout.readline().split()
                assert seen == warm
                running.send_signal(number)
                assert running.wait(20) == -number
            with contextlib.suppress(ProcessLookupError):
                for _ in range(200):
                    os.kill(int(pid), 0)
                    time.sleep(0.05)
                pytest.fail('the program is still there')


def test_a_process_of_a_pool_starts_warm_and_what_it_starts_begins_as_for_users():
    asked = "__import__('os').getppid(), 'torch' in __import__('sys').modules, __import__('sys').executable"
    with ProcessPoolExecutor(1, multiprocessing.get_context('spawn')) as pool:
        assert pool.submit(eval, asked).result(60) == (os.getpid(), True, sys.executable)


@pytest.mark.parametrize(
    ('shown', 'printed', 'expected'),
    [
        ('a\n...\nd', 'a\nb\nc\nd', True),
        ('a\n...\nd', 'a\nd', True),
        ('a ... c', 'a  b c', True),
        ('a\nd', 'a\nb\nd', False),
        ('a', 'a b', False),
        ('...\nc', 'a\nb', False),
        ('loss ... of 3', 'loss 2.1\nof 3', False),
    ],
)
def test_what_is_shown_is_compared(shown, printed, expected):
    assert matches(shown, printed) is expected


def test_the_tutorial_ends_with_a_model(tutorial):
    """The fixture has run the tutorial's commands."""
    for phase in ('0.1', '0.2', '0.3', '0.4'):
        assert (tutorial / 'runs' / 'first' / 'export' / phase / 'model.safetensors').is_file()
    run = tutorial / 'runs' / 'first'
    assert '<svg' in (run / 'report' / 'index.html').read_text('utf-8')
    scored = {r['model']: r['test']['default']['f1'] for r in read_jsonl(run / 'finetune' / 'results.jsonl')}
    assert list(scored) == ['source', 'initial', '0.4']
    assert min(scored.values()) > 0.05  # none has learned to say nothing
    assert scored['0.4'] > 0.2
    assert not any(r['failures'] for r in read_json(run / 'finetune' / 'statistics.json'))


@pytest.mark.parametrize('page', cases([page for page in RUN if not needs_the_lab(page)]))
def test_commands_do_what_the_page_says(page, request, programs, tmp_path):
    run_in(tmp_path / 'here', page, request, programs)


def test_a_page_says_first_what_comes_of_it_and_how_long_it_takes():
    for page in PAGES:
        beginning = re.split(r'^# ', page.read_text('utf-8'), maxsplit=1, flags=re.M)[1][:900]
        assert '**At the end**' in beginning, page
        assert '**Time**' in beginning, page


@pytest.fixture
def data_is_named(monkeypatch):
    monkeypatch.setenv('BIOPTIMUS_DATA', '/data')
    monkeypatch.setenv('BIOPTIMUS_SOURCE', '/source')


@pytest.mark.usefixtures('data_is_named')
def test_the_index_and_the_list_for_language_models_name_every_page():
    for name in ('index.md', 'llms.txt'):
        linked = re.findall(r'\]\(([^)#]+)', (DOCS / name).read_text('utf-8'))
        assert not {str(page.relative_to(DOCS)) for page in PAGES} - {*linked, 'index.md'}, name


VARIATIONS = (
    'finetuning/tasks',
    'inference/kinds',
    'model/families',
    'pretrain/objectives',
    'progress/trackers',
    'tokenizer/kinds',
)


def test_the_code_at_a_glance_names_every_module_variation_config_and_script():
    """A package counts as its folder; of the folders of variations every file is named."""
    package, page = ROOT / 'bioptimus_jax', (DOCS / 'code.md').read_text('utf-8')
    modules = [path for path in package.iterdir() if path.suffix == '.py' and path.stem != '__init__']
    folders = [path for path in package.iterdir() if (path / '__init__.py').is_file()]
    missing = [path.name for path in modules if path.name not in page]
    missing += [path.name for path in folders if f'{path.name}/' not in page]
    named = {*re.findall(r'\w+', page), *re.findall(r'\w+-\w+', page)}
    others = [*(package / folder for folder in VARIATIONS), ROOT / 'configs', ROOT / 'launch']
    files = [path for folder in others for path in folder.iterdir() if path.suffix in ('.py', '.sh')]
    missing += [str(path.relative_to(ROOT)) for path in files if path.stem not in {*named, '__init__'}]
    assert not missing


def test_the_walks_through_the_house_name_files_that_are_there_in_ten_steps_each():
    page = (DOCS / 'code.md').read_text('utf-8')
    walks = re.findall(r'^## A .*?(?=^## )', page, re.M | re.S)
    assert [walk.partition(',')[0].split()[-1] for walk in walks] == ['document', 'setting', 'mention']
    for walk in walks:
        assert re.findall(r'^(\d+)\. ', walk, re.M) == [str(number) for number in range(1, 11)]
        for file in {name for name in INLINE.findall(walk) if name.endswith('.py')}:
            assert any((folder / file).is_file() for folder in (ROOT, ROOT / 'bioptimus_jax')), file


def test_what_shows_the_whole_program_speaks_of_texts_as_of_entities():
    """The program's figure, its help and its first page; the tasks are those that there are."""
    figure, first = ((DOCS / name).read_text('utf-8') for name in ('data-flow.svg', 'index.md'))
    for text in (figure, first, ' '.join(PROGRAM_HELP.split())):
        assert re.search(r'entities\W[^.]*(classes|relations|texts)', text)
        assert not re.search(r'NER (sets|scores)', text)


@pytest.mark.parametrize('page', [README, *PAGES], ids=lambda page: page.stem)
def test_commands_and_keys_that_are_named_exist(page):
    commands, keys = named_in(page)
    for command in commands:
        if not OF_THE_LAB.match(command):
            check_named(page, command)
    for key in keys:
        check_key(key)


@pytest.mark.usefixtures('data_is_named')
@pytest.mark.parametrize(
    'command',
    [
        'bioptimus corpos --config=small --workdir=DIR',
        'bioptimus corpus --config=tiny --workdir=DIR',
        'bioptimus corpus --config=small --workdir=DIR --config.corpus.min_word=3',
        'bioptimus corpus --config=small --workdir=DIR --config.corpus.min_words=few',
        'bioptimus corpus --config=small --workdir=DIR --fast',
        'bioptimus run --config=small --workdir=DIR --config.source.folder=FOLDER',
    ],
)
def test_a_wrong_command_or_key_in_a_page_is_seen(command):
    (found,) = commands_in(f'```sh\n{command}\n```')
    with pytest.raises((ConfigError, SystemExit)):
        check_command(found)


@pytest.mark.parametrize('page', [README, *PAGES], ids=lambda page: page.stem)
def test_a_page_read_in_the_repository_shows_nothing_raw_and_its_links_lead_somewhere(page):
    text = INLINE.sub('', FENCE.sub('', page.read_text('utf-8')))
    assert not re.search(r'^(---$|!!! |\?\?\? |::: )|\]\[|\{[:#]', text, re.M)
    assert not [target for target in dead_in(page) if '/bioptimus_jax/lab/' not in target]


def test_the_readme_has_commands_and_its_plan_runs(capsys):
    readme = README.read_text('utf-8')
    assert len(readme.splitlines()) <= 150, 'more belongs on the pages'
    book = (ROOT / 'LOG.md').read_text('utf-8')
    assert len(book.splitlines()) <= 500, 'let go of what decides nothing any more'
    commands = commands_in(readme + (DOCS / 'features.md').read_text('utf-8'))
    assert len(commands) > 20
    plans = [c for c in commands if c.startswith('plan --config=bioptimus')]
    assert plans
    for command in plans:
        assert cli.main(shlex.split(command)) == 0
        assert 'device-hours' in capsys.readouterr().out
