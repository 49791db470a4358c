"""The documentation: what it shows is run, what it names exists, and the site has no dead link.

How a page is read: a block `sh` is run, in order; a block `text title="prints"` behind it is what it must print, where
`...` stands for anything; any other block with a title is a file that is written first. A page begins in an empty
folder, or by `begins_in` at its top in a copy of what the tutorial leaves, or of a checkout.
"""

import contextlib
import dataclasses
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import time
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
import toy_programs
from ml_collections import ConfigDict

import bioptimus_jax
from bioptimus_jax.cli import main as cli
from bioptimus_jax.cli.arguments import PROGRAM_HELP, make_parser, take_overrides
from bioptimus_jax.config.fields import begin
from bioptimus_jax.errors import ConfigError
from bioptimus_jax.experiment import config
from bioptimus_jax.experiment.schema import Experiment
from bioptimus_jax.storage.files import read_json, read_jsonl

# Two minutes of work on a free core, one of them for the tutorial, which a crowded machine draws out.
pytestmark = pytest.mark.timeout(900)

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / 'docs'
README = ROOT / 'README.md'
TUTORIAL = DOCS / 'tutorial.md'
PAGES = sorted(DOCS.rglob('*.md'))
FENCE = re.compile(r'( *)```(\w*)(?: title="([^"]+)")?\n(.*?)\n\1```', re.S)
INLINE = re.compile(r'(?<!`)`([^`\n]+)`(?!`)')
# What may stand before the program on a line: VARIABLE=value, and words of the shell.
BEFORE = re.compile(r'\w+=.*|while|until|if|do|then|!|time')
ENDS = {'|', '||', '&&', ';', '&', '>', '2>&1', '>>', '2>'}
IN_PLACE_OF = re.compile(r'[=/](DIR|FOLDER|NAME\w*|FILE|HOST\S*|\.\.\.)|\$|/(models|data)/')


@dataclasses.dataclass(frozen=True)
class Block:
    """A fenced block: its language, its title, its text and the line that it begins on."""

    language: str
    title: str
    text: str
    line: int


def blocks_of(markdown: str) -> list[Block]:
    found = []
    for match in FENCE.finditer(markdown):
        indent, language, title, text = match.groups()
        text = '\n'.join(line.removeprefix(indent) for line in text.splitlines())
        found.append(Block(language, title or '', text, markdown[: match.start()].count('\n') + 1))
    return found


def begins_in(page: Path) -> str:
    found = re.match(r'<!-- begins_in: (\w+) -->\n', page.read_text('utf-8'))
    return found[1] if found else 'nothing'


def environment(folder: Path, programs: Path) -> dict[str, str]:
    """`bioptimus` and `python` as they are called after an installation, or in a checkout."""
    package = folder if (folder / 'bioptimus_jax').is_dir() else ROOT
    return toy_programs.environment(package, PATH=os.pathsep.join([str(programs), os.environ['PATH']]))


def run_page(page: Path, folder: Path, programs: Path) -> None:
    """Write the page's files, run its commands in order, as one shell would, compare what they print."""
    printed, exported = None, dict[str, str]()
    for block in blocks_of(page.read_text('utf-8')):
        where = f'{page.relative_to(ROOT)}:{block.line}'
        if block.language == 'sh':
            done = subprocess.run(
                ['bash', '-euo', 'pipefail', '-c', block.text],
                cwd=folder,
                env=environment(folder, programs) | exported,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                stdin=subprocess.DEVNULL,
                text=True,
                timeout=600,
            )
            printed = done.stdout
            exported.update(re.findall(r'^export (\w+)=(\S*)$', block.text, re.M))
            assert not done.returncode, (
                f'{where}: exit code {done.returncode}\n{block.text}\n{printed[-3000:]}'
            )
        elif block.title == 'prints':
            assert printed is not None, f'{where}: no command before it'
            assert matches(block.text, printed), f'{where}: printed was\n{printed}'
        elif block.title:
            file = folder / block.title
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(block.text + '\n', 'utf-8')
        else:
            assert block.language == 'text', f'{where}: would not be run; give it a title'


def matches(shown: str, printed: str) -> bool:
    """Whether it was printed as it is shown; `...` is anything in a line, and alone on one any lines."""
    pattern = ''
    for line in shown.strip().splitlines():
        if line.strip() == '...':
            pattern += r'(?:.*\n)*?'
        else:
            words = re.sub(r'\s+', ' ', line.strip())
            pattern += r'[^\n]*?'.join(re.escape(part) for part in words.split('...')) + r'\n'
    lines = (re.sub(r'\s+', ' ', line.strip()) for line in printed.strip().splitlines())
    return re.fullmatch(pattern, ''.join(f'{line}\n' for line in lines)) is not None


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


@pytest.fixture(scope='session')
def tutorial(tmp_path_factory, programs) -> Path:
    """What the tutorial leaves behind; other pages go on from it."""
    folder = tmp_path_factory.mktemp('tutorial')
    run_page(TUTORIAL, folder, programs)
    return folder


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


RUN = [
    page
    for page in PAGES
    if page != TUTORIAL and any(b.language == 'sh' or b.title for b in blocks_of(page.read_text('utf-8')))
]


# Most of their time goes into compiling a program that no other page has.
OTHER_PROGRAMS = ('add-masking', 'add-model-family', 'add-objective', 'add-backend', 'devices')


@pytest.mark.parametrize(
    'page',
    [
        pytest.param(page, id=page.stem, marks=[pytest.mark.slow] if page.stem in OTHER_PROGRAMS else [])
        for page in RUN
    ],
)
def test_commands_do_what_the_page_says(page, request, programs, tmp_path):
    folder = tmp_path / 'here'
    match begins_in(page):
        case 'tutorial':
            shutil.copytree(request.getfixturevalue('tutorial'), folder)
        case 'checkout':
            ignored = shutil.ignore_patterns('__pycache__')
            for name in ('bioptimus_jax', 'configs', 'launch'):
                shutil.copytree(ROOT / name, folder / name, ignore=ignored)
            shutil.copytree(request.getfixturevalue('tutorial'), folder, dirs_exist_ok=True)
        case _:
            folder.mkdir()
    run_page(page, folder, programs)


def test_a_page_says_first_what_comes_of_it_and_how_long_it_takes():
    for page in PAGES:
        beginning = re.split(r'^# ', page.read_text('utf-8'), maxsplit=1, flags=re.M)[1][:900]
        assert '**At the end**' in beginning, page
        assert '**Time**' in beginning, page


def commands_in(markdown: str) -> list[str]:
    """Every command of `bioptimus` that is shown, in blocks and within lines, without what stands around it."""
    blocks = [b.text for b in blocks_of(markdown) if not b.title]
    lines = [line for text in blocks for line in text.replace('\\\n', ' ').splitlines()]
    lines += INLINE.findall(FENCE.sub('', markdown))
    found = []
    for line in lines:
        with contextlib.suppress(ValueError):  # quotes of prose
            words = shlex.split(line, comments=True)
            start = next((n for n, word in enumerate(words) if not BEFORE.fullmatch(word)), 0)
            if words[start : start + 1] == ['bioptimus']:
                words = words[start + 1 :]
                end = next((n for n, word in enumerate(words) if word in ENDS), len(words))
                found.append(shlex.join(words[:end]))
    return found


def check_command(command: str) -> None:
    """Raise ConfigError where the program would refuse it; names in place of values are left as they are."""
    overrides, words = take_overrides(shlex.split(command))
    verbs = next(a.choices for a in make_parser()._actions if a.dest == 'verb')
    if not words or words[0].isupper() or words[0].startswith('--'):
        return
    if words[0] not in verbs:
        raise ConfigError(f'{words[0]}: no such verb')
    names = [word.partition('=')[2] for word in words if word.startswith('--config=')]
    loaded = config.defaults()
    if names and not IN_PLACE_OF.search(f'={names[0]}') and not names[0].endswith('.py'):
        arm = f'/{config.arms(names[0])[0]}' if words[0] == 'sweep' else ''
        loaded = config.load(names[0] + arm)
    if '--help' not in words and len(words) > 1:
        make_parser().parse_args(words)
    for key, value in overrides:
        if IN_PLACE_OF.search(f'={value}'):
            check_key(key)
        else:
            config.override(loaded, key, value)
    Experiment.from_config(loaded, paths=False)


def check_key(dotted: str) -> None:
    """Raise ConfigError unless it is a key or a section of the schema."""
    node, rest = config.defaults(), dotted
    begin(node, Experiment, dotted)
    while rest:
        if not isinstance(node, ConfigDict):
            raise ConfigError(f'{dotted}: no such key')
        name = next((n for n in sorted(node, key=len, reverse=True) if f'{rest}.'.startswith(f'{n}.')), None)
        if name is None:
            raise ConfigError(f'{dotted}: no such key')
        node, rest = node[name], rest[len(name) + 1 :]


def keys_in(markdown: str) -> list[str]:
    """Every key that is named: --config.KEY and config.KEY anywhere, SECTION.KEY as code within lines."""
    markdown = re.sub(r'\[`[^`]+`\]\([^)]*bioptimus_jax', '(', markdown)  # links to modules
    found = re.findall(r'\bconfig\.((?:[a-z_]+|0\.\d)(?:\.(?:[a-z_]+|0\.\d))*)(?![\w(\[])', markdown)
    files = ('txt', 'py', 'json', 'jsonl', 'md', 'npy', 'tsv', 'parquet')
    schema = '|'.join(name for name, value in config.defaults().items() if isinstance(value, ConfigDict))
    for code in INLINE.findall(FENCE.sub('', markdown)):
        match = re.fullmatch(rf'(({schema})\.([a-z_.0-9]+))(=.*)?', code)
        if match and match[3] not in files and 'NAME' not in code:
            found.append(match[1])
    return [k for k in found if k.rpartition('.')[2] not in (*files, 'update', 'defaults', 'load', 'phase')]


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
    'finetune/tasks',
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
    named = {*re.findall(r'\w+', page)}
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
    markdown = page.read_text('utf-8')
    if page != README:  # what is run needs no other check, and may be wrong on purpose
        run = [match for match in FENCE.finditer(markdown) if match[2] == 'sh' or match[3]]
        for match in reversed(run):
            markdown = markdown[: match.start()] + markdown[match.end() :]
    for command in commands_in(markdown):
        try:
            check_command(command)
        except (ConfigError, SystemExit) as error:
            pytest.fail(f'{page.name}: bioptimus {command}: {error}')
    for key in keys_in(markdown):
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
    for target in re.findall(r'\]\(([^)#\s]+)', text):
        assert urlsplit(target).scheme or (page.parent / unquote(target)).exists(), target


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


class Links(HTMLParser):
    """The places of a page that can be pointed at, what it points at, and what it loads."""

    def __init__(self, file: Path):
        super().__init__()
        self.ids: set[str] = set()
        self.targets: list[str] = []
        self.loaded: list[str] = []
        self.feed(file.read_text('utf-8'))

    def handle_starttag(self, tag, attributes):
        found = dict(attributes)
        self.ids |= {found[name] for name in ('id', 'name') if found.get(name)}
        if tag == 'a' and found.get('href'):
            self.targets.append(found['href'])
        elif tag in ('script', 'img', 'link', 'iframe') and 'canonical' not in (found.get('rel') or ''):
            self.loaded += [found[name] for name in ('src', 'href') if found.get(name)]


def build_site(configuration: Path, site: Path) -> subprocess.CompletedProcess:
    command = [sys.executable, '-m', 'mkdocs', 'build', '--strict', '--config-file']
    return subprocess.run(
        [*command, configuration, '--site-dir', site],
        cwd=ROOT,
        env=os.environ | {'PYTHONPATH': str(ROOT), 'NO_MKDOCS_2_WARNING': '1'},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


@pytest.fixture(scope='module')
def site(tmp_path_factory) -> dict[Path, Links]:
    """Every page of the built site, by its file."""
    folder = tmp_path_factory.mktemp('site')
    built = build_site(ROOT / 'mkdocs.yml', folder)
    assert not built.returncode, built.stdout
    assert 'WARNING' not in built.stdout
    return {file: Links(file) for file in sorted(folder.rglob('*.html'))}


def test_every_link_and_anchor_of_the_site_leads_somewhere(site):
    dead = []
    for file, links in site.items():
        for target in [] if file.name == '404.html' else links.targets + links.loaded:
            parts = urlsplit(target)
            if parts.scheme:
                continue
            aim = (file.parent / unquote(parts.path)).resolve() if parts.path else file
            aim = aim / 'index.html' if aim.is_dir() else aim
            if not aim.is_file() or (
                parts.fragment and aim in site and unquote(parts.fragment) not in site[aim].ids
            ):
                dead.append(f'{file.name} -> {target}')
    assert not dead
    assert sum(len(links.targets) for links in site.values()) > 500


def test_the_site_loads_nothing_from_elsewhere(site):
    for file, links in site.items():
        assert not [t for t in links.loaded if urlsplit(t).netloc], file
        styles = [file.parent / t for t in links.loaded if t.endswith('.css')]
        assert not any('url(http' in s.read_text('utf-8') for s in styles if s.is_file()), file


def test_a_page_opened_from_a_disk_searches(site):
    start = next(file for file in site if file.parts[-1] == 'index.html')
    index = (start.parent / 'search' / 'search_index.js').read_text('utf-8')  # a browser reads no .json there
    assert index.startswith('var __index = {')
    assert 'Curriculum' in index
    for file, links in site.items():
        assert (
            any(t.endswith('javascripts/iframe-worker.js') for t in links.loaded) or file.name == '404.html'
        )
    browser = shutil.which('chromium') or shutil.which('google-chrome')
    if browser:  # what stands above is how it works, this is whether it does
        flags = ['--headless', '--no-sandbox', '--disable-gpu', '--virtual-time-budget=20000', '--dump-dom']
        command = [browser, *flags, f'{start.as_uri()}?q=curriculum']
        shown = subprocess.run(command, capture_output=True, text=True, timeout=300).stdout
        assert 'matching documents' in shown
        assert 'method/curriculum.html' in shown.partition('md-search-result__list')[2]


def test_the_reference_has_every_key_verb_and_module(site):
    by_name = {file.name: links for file, links in site.items()}
    keys = {name for name, _, _ in walk_names()}
    assert keys <= by_name['configuration.html'].ids
    verbs = next(a.choices for a in make_parser()._actions if a.dest == 'verb')
    assert set(verbs) <= by_name['commands.html'].ids
    modules = {
        '.'.join(f.relative_to(ROOT).with_suffix('').parts)
        for f in (ROOT / 'bioptimus_jax').rglob('*.py')
        if f.name != '__init__.py' and not {'configs', 'api'} & {*f.parts}  # of api the functions are there
    }
    assert modules <= set().union(*(links.ids for links in site.values()))
    public = {name for name in bioptimus_jax.__all__ if 'Error' not in name}
    assert public <= {name.rpartition('.')[2] for name in by_name['api.html'].ids}


def walk_names():
    from bioptimus_jax.config.fields import walk

    for name, value, metadata in walk(Experiment()):
        yield re.sub(r'^phase\.0\.\d\.', 'phase.NAME.', name), value, metadata


DEAD = ('[a](nowhere.md)', '[a](other.md#no-place)', '[a](#no-heading)', '![a](no-picture.svg)')


@pytest.mark.parametrize('dead', [(), DEAD], ids=['whole', 'dead'])
def test_dead_links_fail_the_build(dead, tmp_path):
    pages = tmp_path / 'pages'
    pages.mkdir()
    (pages / 'index.md').write_text('\n\n'.join(['# A', '[b](other.md#there)', *dead]) + '\n')
    (pages / 'other.md').write_text('# B\n\n## There\n')
    shorter = {'docs_dir': str(pages), 'plugins': '[]', 'hooks': '[]', 'nav': '[index.md, other.md]'}
    lines = [f'INHERIT: {ROOT / "mkdocs.yml"}', *(f'{name}: {value}' for name, value in shorter.items())]
    (tmp_path / 'mkdocs.yml').write_text('\n'.join(lines) + '\n')
    built = build_site(tmp_path / 'mkdocs.yml', tmp_path / 'site')
    assert bool(built.returncode) is bool(dead), built.stdout
    for link in dead:
        assert link.partition('](')[2].rstrip(')') in built.stdout
