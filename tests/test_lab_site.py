"""The built site, which shows the laboratory beside the tool: it has all there is, loads nothing, has no dead link."""

import json
import os
import re
import shutil
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
from toy_docs import ROOT

import bioptimus_jax
from bioptimus_jax.cli.arguments import make_parser
from bioptimus_jax.config.fields import walk
from bioptimus_jax.experiment.schema import Experiment


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


BUILD = 'import gc; from mkdocs.__main__ import cli; gc.disable(); cli()'
"""MkDocs as `python -m mkdocs` begins it. Garbage is not looked for, which takes a quarter of the time."""
PLAIN = dict.fromkeys(['show_attribute_values', 'show_bases', 'show_labels', 'show_signature'], False)
"""The reference without its code: each piece would be coloured. All places that can be pointed at are there."""


def build_site(configuration: Path, site: Path) -> subprocess.CompletedProcess:
    command = [sys.executable, '-c', BUILD, 'build', '--strict', '--config-file']
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
    folder, own = tmp_path_factory.mktemp('site'), tmp_path_factory.mktemp('settings') / 'mkdocs.yml'
    options = {'paths': [str(ROOT)], 'options': PLAIN}
    settings = {
        'INHERIT': str(ROOT / 'mkdocs.yml'),
        'docs_dir': str(ROOT / 'docs'),
        'hooks': [str(ROOT / 'docs' / 'reference.py')],
        'plugins': {'mkdocstrings': {'handlers': {'python': options}}},
    }
    own.write_text(json.dumps(settings))
    built = build_site(own, folder)
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
