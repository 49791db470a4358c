"""The pages of the documentation, as tests read them, and which of their commands need the laboratory.

How a page is read: a block `sh` is run, in order; a block `text title="prints"` behind it is what it must print, where
`...` stands for anything; any other block with a title is a file that is written first. A page begins in an empty
folder, or by `begins_in` at its top in a copy of what the tutorial leaves, or of a checkout.
"""

import contextlib
import dataclasses
import fcntl
import os
import re
import shlex
import shutil
import subprocess
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
import toy_programs
from ml_collections import ConfigDict

from bioptimus_jax.cli.arguments import make_parser, take_overrides
from bioptimus_jax.config.fields import begin
from bioptimus_jax.errors import ConfigError
from bioptimus_jax.experiment import config
from bioptimus_jax.experiment.schema import Experiment

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
OF_THE_LAB = re.compile(
    r'(sweep|forecast|advise|difficulty)\b|surgery\b.* --probe\b|compare --config|(compare|report) (?!-)'
)
"""Commands that need a verb of the laboratory, or a form that it adds to a verb of the tool."""
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


def in_blocks(page: Path) -> list[re.Match[str]]:
    """The blocks of a page that are run or written."""
    return [match for match in FENCE.finditer(page.read_text('utf-8')) if match[2] == 'sh' or match[3]]


def needs_the_lab(page: Path) -> bool:
    """Whether a command of the page that is run needs the laboratory."""
    return any(OF_THE_LAB.match(command) for match in in_blocks(page) for command in commands_in(match[0]))


def tutorial_in(folder: Path, programs: Path) -> Path:
    """A folder with what the tutorial leaves behind; the first process that asks runs it, and others wait."""
    with open(folder / 'tutorial.lock', 'w') as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / 'tutorial').is_dir():
            begun = folder / 'tutorial.begun'
            shutil.rmtree(begun, ignore_errors=True)
            begun.mkdir()
            run_page(TUTORIAL, begun, programs)
            begun.rename(folder / 'tutorial')
    return folder / 'tutorial'


def run_in(folder: Path, page: Path, request: pytest.FixtureRequest, programs: Path) -> None:
    """Run a page in a folder that is made as the page says."""
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


RUN = [
    page
    for page in PAGES
    if page != TUTORIAL and any(b.language == 'sh' or b.title for b in blocks_of(page.read_text('utf-8')))
]
# Pages for those who extend the program, and those of adapters and vectors. Most of their time goes into compiling a
# program that no other page has, or into the probe of all initialisations; test_plugin_*.py, test_lab_probe.py,
# test_adapters.py and test_contrastive.py have the same.
OTHER_PROGRAMS = (
    *('add-masking', 'add-model-family', 'add-objective', 'add-backend', 'devices'),
    *('add-initialisation', 'add-tokenizer', 'adapters', 'embed'),
)


def cases(pages: list[Path]) -> list:
    """Pages to run, by their names; those that compile a program of their own are slow."""
    marks = {page: [pytest.mark.slow] if page.stem in OTHER_PROGRAMS else [] for page in pages}
    return [pytest.param(page, id=page.stem, marks=marks[page]) for page in pages]


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
        [named, *_] = names
        loaded = config.load(
            config.name_of_arm(named, config.arms(named)[0]) if words[0] == 'sweep' else named
        )
    if not {'--help', '--help-all'} & {*words} and len(words) > 1:
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


def named_in(page: Path) -> tuple[list[str], list[str]]:
    """The commands and the keys that a page names; what it runs needs no check, and may be wrong on purpose."""
    markdown = page.read_text('utf-8')
    for match in reversed(in_blocks(page) if page != README else []):
        markdown = markdown[: match.start()] + markdown[match.end() :]
    return commands_in(markdown), keys_in(markdown)


def check_named(page: Path, command: str) -> None:
    """Fail where the program would refuse a command that the page names."""
    try:
        check_command(command)
    except (ConfigError, SystemExit) as error:
        pytest.fail(f'{page.name}: bioptimus {command}: {error}')


def dead_in(page: Path) -> list[str]:
    """Links of a page, as it is read in the repository, that lead nowhere."""
    targets = re.findall(r'\]\(([^)#\s]+)', INLINE.sub('', FENCE.sub('', page.read_text('utf-8'))))
    return [t for t in targets if not urlsplit(t).scheme and not (page.parent / unquote(t)).exists()]
