"""docs/results.md: its tables come from the committed records alone, and its text says no number that they lack."""

import html
import re
import runpy
from pathlib import Path

import pytest

from bioptimus_jax.cli import main as cli
from bioptimus_jax.lab.forecast import tables

ROOT = Path(__file__).resolve().parents[1]
PAGE, README = ROOT / 'docs' / 'results.md', ROOT / 'README.md'
TOLD = 'How well the end is told'
CHOSEN = {'0.7', '0.35', '12.5', '1.8', '0.3', '0.5', '0.02', '1.2', '0.2', '0.1', '0.4'}
"""Settings, versions, expectations, power: what was not measured by these runs."""


@pytest.fixture(scope='module')
def made():
    return runpy.run_path(str(ROOT / 'docs' / 'results.py'))


def blocks(page):
    """The page cut before each of its tables."""
    return re.split(r'^(?=### )', page, flags=re.MULTILINE)


def test_the_tables_are_those_of_the_records_to_the_digit(made, monkeypatch):
    """But for how well ends are told, which takes 1,500 regressions."""
    monkeypatch.chdir(ROOT)
    monkeypatch.setattr(tables, 'check', lambda *_: [])
    monkeypatch.setattr(tables, 'check_shorts', lambda *_: [])
    page = PAGE.read_text('utf-8')
    without = [block for block in blocks(page) if TOLD not in block.partition('\n')[0]]
    assert len(without) == len(blocks(page)) - 3
    assert blocks(made['renewed'](page)) == without


@pytest.mark.slow
def test_how_well_ends_are_told_is_of_the_records_too(made, monkeypatch):
    monkeypatch.chdir(ROOT)
    page = PAGE.read_text('utf-8')
    assert made['renewed'](page) == page


def test_every_number_of_the_text_stands_in_a_table(made):
    text, _, shown = PAGE.read_text('utf-8').partition(made['TABLES'])
    assert len(shown) > 10_000
    known = set(re.findall(r'\d+\.\d+', html.unescape(shown)))
    short, _, rest = text.partition('## How it was made')  # which has settings
    found = short.partition('## In short')[2] + rest.partition('## What was expected')[2]
    said = set(re.findall(r'(?<![\d:.])\d+\.\d+(?![\d.]|x)', found))
    assert len(said) > 20
    assert said - known - CHOSEN == set()
    assert '†' in shown
    section = README.read_text('utf-8').partition('## A real run')[2].partition('\n## ')[0]
    of_readme = set(re.findall(r'(?<![\d:.])\d+\.\d+(?![\d.]|x)', section))
    assert len(of_readme) > 30
    assert of_readme - known - CHOSEN == set()


def test_the_report_takes_the_records_for_runs(tmp_path, monkeypatch, capsys):
    """And prints the same differences, though these arms have no evaluations and no predictions."""
    monkeypatch.chdir(ROOT)
    assert cli.main(['report', 'docs/results/orders.jsonl', f'--to={tmp_path}']) == 0
    printed = (tmp_path / 'tables.md').read_text('utf-8')
    page = PAGE.read_text('utf-8')
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
