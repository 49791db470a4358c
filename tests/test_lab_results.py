"""docs/results.md and docs/lab/: tables come from the committed records alone; no text says a number that they lack."""

import html
import re
import runpy
from pathlib import Path

import pytest

from bioptimus_jax.cli import main as cli
from bioptimus_jax.lab.forecast import tables

ROOT = Path(__file__).resolve().parents[1]
LAB, PAGE, README = ROOT / 'docs' / 'lab', ROOT / 'docs' / 'results.md', ROOT / 'README.md'
TOLD = 'How well the end is told'
CHOSEN = {'0.7', '0.35', '12.5', '1.8', '0.3', '0.5', '0.02', '1.2', '0.2', '0.1', '0.4'}
"""Settings, versions, expectations, power: what was not measured by these runs."""


@pytest.fixture(scope='module')
def made():
    return runpy.run_path(str(ROOT / 'docs' / 'results.py'))


def blocks(page):
    """A page cut before each of its tables."""
    return [block.strip() for block in re.split(r'^(?=### )', page, flags=re.MULTILINE)]


def told(page):
    """How many of a page's tables say how well ends are told."""
    return sum(TOLD in block.partition('\n')[0] for block in blocks(page))


def text_of(name):
    return (LAB / f'{name}.md').read_text('utf-8')


def numbers(text):
    return set(re.findall(r'(?<![\d:.])\d+\.\d+(?![\d.]|x)', text)) - CHOSEN


@pytest.fixture(scope='module')
def tabled(made):
    """Page of the lab -> the numbers of its tables."""
    shown = {name: text_of(name).partition(made['TABLES'])[2] for name in made['PAGES']}
    assert sum(map(len, shown.values())) > 10_000
    assert '†' in shown['initialisation']
    return {name: set(re.findall(r'\d+\.\d+', html.unescape(tables))) for name, tables in shown.items()}


def test_the_tables_are_those_of_the_records_to_the_digit(made, monkeypatch):
    """But for how well ends are told, which takes 1,500 regressions."""
    monkeypatch.chdir(ROOT)
    monkeypatch.setattr(tables, 'check', lambda *_: [])
    monkeypatch.setattr(tables, 'check_shorts', lambda *_: [])
    assert {page.stem for page in LAB.glob('*.md')} == {*made['PAGES'], 'index'}
    assert sum(told(text_of(name)) for name in made['PAGES']) == 3
    for name, make in made['PAGES'].items():
        without = [block for block in blocks(text_of(name)) if TOLD not in block.partition('\n')[0]]
        assert blocks(made['renewed'](text_of(name), make())) == without, name


@pytest.mark.slow
def test_how_well_ends_are_told_is_of_the_records_too(made, monkeypatch):
    monkeypatch.chdir(ROOT)
    assert told(text_of('forecasts')) == 3
    assert made['renewed'](text_of('forecasts'), made['PAGES']['forecasts']()) == text_of('forecasts')


def test_every_number_of_the_text_stands_in_a_table(made, tabled):
    known = set().union(*tabled.values())
    for page in LAB.glob('*.md'):
        said = numbers(page.read_text('utf-8').partition(made['TABLES'])[0])
        assert not said - known, page
    section = README.read_text('utf-8').partition('## Does it help?')[2].partition('\n## ')[0]
    assert len(numbers(section)) >= 6
    assert not numbers(section) - known


def test_the_page_of_results_takes_two_screens_and_links_to_the_table_of_every_number(tabled):
    """A number stands in the tables of a page that its own row or sentence links to."""
    page = PAGE.read_text('utf-8')
    assert len(page.splitlines()) <= 80
    answers = re.split(r'\n(?=[|#-])', page[page.index('## What to do') :])
    assert len(set().union(*map(numbers, answers))) > 40
    for answer in answers:
        linked = (tabled.get(name, set()) for name in re.findall(r'\]\(lab/(\w+)\.md', answer))
        assert not numbers(answer) - set().union(*linked), answer


def test_the_report_takes_the_records_for_runs(tmp_path, monkeypatch, capsys):
    """And prints the same differences, though these arms have no evaluations and no predictions."""
    monkeypatch.chdir(ROOT)
    assert cli.main(['report', 'docs/results/orders.jsonl', f'--to={tmp_path}']) == 0
    printed = (tmp_path / 'tables.md').read_text('utf-8')
    page = text_of('curriculum')
    for title in (
        'Orders: the same settings, words and learning rates',
        'Table 5: versions, the ends of the phases',
    ):
        block = page[page.index(f'### {title}: differences over pre-trainings') :]
        assert block[: block.index('\n### ')] in printed
    assert 'the predictions are not on record, so nothing is said of other test items' in printed
    assert 'other test items\n' not in printed
    # Of these, steps were on record and losses were not.
    assert cli.main(['report', 'docs/results/curves.jsonl', f'--to={tmp_path / "curves"}']) == 0
    assert (tmp_path / 'curves/index.html').exists()
