"""What the lab adds to the page of a run, and its tables of several runs, on fabricated run folders."""

import dataclasses
import json
import re

import pytest
from toy_measures import fabricate, manifest, row_of

from bioptimus_jax.cli import main as cli
from bioptimus_jax.errors import InputError
from bioptimus_jax.lab import arms, comparison, spending
from bioptimus_jax.lab.sections import geometry, transfer
from bioptimus_jax.lab.sections import probe as probe_section
from bioptimus_jax.records.probe import HiddenToken, Probe, ProbedRows, RecoveredClass
from bioptimus_jax.records.statistics import CrossedModel
from bioptimus_jax.report import layout, page
from bioptimus_jax.report.layout import missing
from bioptimus_jax.report.measures import read_measures
from bioptimus_jax.run.folder import Run
from bioptimus_jax.storage.files import write_json


@pytest.fixture(scope='module')
def run(tmp_path_factory):
    return fabricate(tmp_path_factory.mktemp('runs') / 'demo')


@pytest.fixture(scope='module')
def built(run):
    folder = run.workdir / 'report'
    folder.mkdir()
    return folder, page.build(run, folder).counts


def test_the_probe_is_on_the_page_once_it_was_made(run):
    assert 'surgery --probe' in probe_section.probe(read_measures(run)).text()
    variant = {
        'rank_uncentred': [31.0, 20, 40],
        'rank_dot': [30.0, 20, 40],
        'cosine': [0.5, 0.4, 0.6],
        'norm_ratio': [1.5, 1.4, 1.6],
        'seconds': 1.0,
        'map': None,
    }
    other = {'cosine': (0.5, 0.4, 0.6), 'norm_ratio': (1.5, 1.4, 1.6)}
    by_contexts = {'0': RecoveredClass(tokens=3, rank=(99.0, 90, 100), **other)}
    by_pieces = {'2': RecoveredClass(tokens=50, rank=(7.0, 6, 8), **other)}
    variant |= {'flags': '', 'by_pieces': by_pieces}
    variants = (
        ProbedRows(name='contextualized layers=1', rank=(6.0, 5, 8), **variant, by_contexts=by_contexts),
        ProbedRows(name='random_rows', rank=(1500.0, 1400, 1600), **variant),
    )
    hidden = (HiddenToken('a', 1, 2, 3),) * 1000
    counts = {'seed': 1, 'contexts_per_token': 10, 'source_tokens': 9, 'windows': 9, 'seconds': 1.0}
    probe = Probe(source='x', **counts, likeness=None, variants=variants, hidden=hidden)
    table = probe_section.probe(dataclasses.replace(read_measures(run), probe=probe))
    best = row_of(table, 'contextualized layers=1')
    assert (best['median rank'].value, best['95 %'].text, best['norm ratio'].text) == (6, '5-8', '1.50')
    assert best['rank, 0 contexts'].value == 99
    assert row_of(table, 'random_rows')['rank, 0 contexts'] == missing()
    assert table.marks()[0][1] == 'best'
    assert '1,000 tokens' in table.note


def test_comparison_ranks_arms_within_a_phase(tmp_path):
    def compared(runs):
        return arms.scores(arms.alone([read_measures(run) for run in runs]))

    runs = []
    for number, strategy in enumerate(('contextualized', 'random_rows')):
        arm = fabricate(tmp_path / strategy)
        surgery = dataclasses.replace(arm.config.surgery, strategy=strategy)
        runs.append(Run(arm.workdir, dataclasses.replace(arm.config, surgery=surgery), quiet=True))
        cloze = json.loads((arm.workdir / 'analyze' / 'cloze.json').read_text())
        for record in cloze:
            record['nats_per_word'] += number
        write_json(arm.workdir / 'analyze' / 'cloze.json', cloze)
        write_json(arm.workdir / 'surgery' / 'manifest.json', {'config': {'surgery.strategy': strategy}})
    runs = [Run(arm.workdir, runs[0].config, quiet=True) for arm in runs]  # `compare` has one config for all
    table = compared(runs)
    assert [(r[0].text, r[1].text) for r in table.rows[:3]] == [
        ('initial (step 0)', 'contextualized'),
        ('initial (step 0)', 'random_rows'),
        ('0.1', 'contextualized'),
    ]
    at = list(table.columns).index('nats / word')
    assert {
        marks[at]
        for row, marks in zip(table.rows, table.marks(), strict=True)
        if row[1].text == 'random_rows'
    } == {'second'}
    assert 'did not score the same words' not in table.note
    cloze[0]['mask'] = 'another'
    write_json(runs[1].workdir / 'analyze' / 'cloze.json', cloze)
    assert 'did not score the same words' in compared(runs).note


def test_the_page_of_one_run_has_all_of_its_own_and_the_papers_tables(run, built, tmp_path):
    folder = comparison.write([run.workdir], tmp_path)
    assert built[1].tables == 40
    text, markdown = ((folder / name).read_text() for name in ('index.html', 'tables.md'))
    own = (built[0] / 'index.html').read_text()
    for pattern in ('<h2>(.*?)</h2>', '<figcaption>(.*?)</figcaption>', 'role="img" aria-label="(.*?)"'):
        assert set(re.findall(pattern, own)) <= set(re.findall(pattern, text))
    assert set(re.findall('### .*', (built[0] / 'tables.md').read_text())) <= set(
        re.findall('### .*', markdown)
    )
    for title in ('Table 2: initialisations after phase 0.1', 'What each arm took'):
        assert title in text
        assert f'### {title}' in markdown
    assert 'A BERT adapted with' in text  # manifests hold no paths
    ids = re.findall(r'\bid="(.*?)"', text)
    assert len(ids) == len(set(ids))


def test_no_table_of_an_earlier_call_stays(tmp_path):
    """The folder of its own is emptied, once there is another report; in a given one nothing stays that it would
    write."""
    runs = [str(tmp_path / 'run')]
    write_json(tmp_path / 'run' / 'corpus' / 'manifest.json', manifest('corpus', {}))
    earlier, effort, mine = (
        tmp_path / at for at in ('run/tables/csv/gone.csv', 'given/csv/effort.csv', 'given/csv/mine.csv')
    )
    for path in (earlier, effort, mine):
        write_json(path, 'scores')
    audit = tmp_path / 'run' / 'corpus' / 'audit.jsonl'
    audit.write_text('{"half\n{}\n')
    with pytest.raises(InputError, match=r'audit\.jsonl'):
        comparison.write(runs)
    assert earlier.exists()
    audit.unlink()
    comparison.write(runs)
    comparison.write(runs, tmp_path / 'given')
    assert [path.exists() for path in (earlier, effort, mine)] == [False, False, True]


def test_run_folders_have_no_live_page(run, capsys):
    assert cli.main(['report', str(run.workdir), '--live']) == 2
    assert (
        'report --live takes the --config and --workdir that the run was given, and no RUN'
        in capsys.readouterr().err
    )


def test_scores_on_other_sets_stand_beside_those_of_models_that_were_trained_on_them(run):
    place = {'model': '0.4', 'setting': 'standard', 'trained_on': 'half', 'dataset': 'all', 'test': 0.5}
    drop = {'in_corpus': 0.75, 'drop': 0.25, 'drop_interval': (0.2, 0.3)}
    crossed = [CrossedModel(**place, types=('Drug',), seeds=1, interval=None, **drop)]
    shown = transfer.crossed(dataclasses.replace(read_measures(run), crossed=crossed)).markdown()
    assert 'half on all: Drug' in shown
    assert '50.00 (-25.00 [-30.00, -20.00])' in shown


def test_geometry_shows_every_phase_and_its_change(run):
    m = read_measures(run)
    table = geometry.of_words(m)
    assert [(r[0].text, r[1].text) for r in table.rows[:3]] == [
        ('embedding row', x) for x in ('initial (step 0)', '0.1', '0.4')
    ]
    cosine = m.geometry[0].words.embeddings['cosine']
    shown = table.rows[0][list(table.columns).index('cosine')]
    assert shown.value == cosine.value
    assert shown.text == f'{cosine.value:.3f} [{cosine.low:.3f}, {cosine.high:.3f}]'
    assert 'mean last-layer state over 10 places in unmasked training text' in table.note
    assert 'several pieces' not in table.note
    changes = geometry.changes(m)
    steps = [(r[1].text, r[2].text) for r in changes.rows[:3]]
    assert steps == [('initial (step 0)', '0.1'), ('0.1', '0.4'), ('initial (step 0)', '0.4')]
    by_step = [r[list(changes.columns).index('cosine')] for r in changes.rows[:3]]
    assert by_step[0].value + by_step[1].value == pytest.approx(by_step[2].value)
    assert all(cell.value < 0 for cell in by_step)
    at = list(changes.columns).index('cosine, centred')
    assert changes.rows[0][at].value == pytest.approx(0, abs=1e-9)
    drawn = geometry.words_in_the_plane(m)
    assert 'not evidence' in drawn.caption
    assert drawn.svg.count('>rare<') == 1
    assert sum(label in drawn.svg for label in ('0.4, embedding row', '0.4, in context')) == 2


def test_other_words_are_not_compared(tmp_path):
    run = fabricate(tmp_path / 'r')
    path = run.workdir / 'analyze' / 'geometry.json'
    records = json.loads(path.read_text())
    records[1]['words']['digest'] = 'other'
    write_json(path, records)
    changes = geometry.changes(read_measures(run))
    assert {(r[1].text, r[2].text) for r in changes.rows} == {('initial (step 0)', '0.4')}
    records = [{**r, 'words': {'skipped': 'only 4 words'}} for r in records]
    write_json(path, records)
    (run.workdir / 'analyze' / 'points.json').unlink()
    m = read_measures(run)
    assert [geometry.of_words(m).absent, geometry.words_in_the_plane(m).absent] == ['only 4 words.'] * 2


def test_runs_are_compared_by_what_they_took_to_reach_the_same(run):
    m = read_measures(run)
    better = [dataclasses.replace(e, frozen_loss=e.loss - 1) for e in m.evaluations]
    slow = [dataclasses.replace(r, flops=10 * r.flops) for r in m.spent]
    other = dataclasses.replace(m, evaluations=better, spent=slow)
    table = spending.arms({'one': [m], 'two': [other]})
    loss = [r for r in table.rows if r[0].text == 'held-out loss 3.343']  # the best that the first one has
    assert [(r[1].text, r[2].text) for r in loss] == [('one', 'step 400'), ('two', 'step 300')]
    flops = list(table.columns).index('FLOPs')
    assert [r[flops].value for r in loss] == [4e14, 3e15]
    marks = [marks[flops] for r, marks in zip(table.rows, table.marks(), strict=True) if r in loss]
    assert marks == ['best', 'second']
    assert [r[2].text for r in table.rows if r[0].text == 'devel F1 on drugs, 81'] == ['0.4', '0.4']
    elsewhere = {**m.manifests, 'vocab': dataclasses.replace(m.manifests['vocab'], content='another')}
    table = spending.arms({'one': [m], 'two': [dataclasses.replace(other, manifests=elsewhere)]})
    assert not any('loss' in r[0].text for r in table.rows)
    assert table.note.endswith('so losses per piece are not comparable. Left out there: two.')
    assert not spending.arms(
        {'one': [m], 'none': [dataclasses.replace(m, evaluations=[], finetuned=[])]}
    ).rows


def test_arms_are_means_over_seeds_at_levels_that_are_given(run):
    m = read_measures(run)
    slow = dataclasses.replace(
        m, evaluations=[dataclasses.replace(e, frozen_loss=e.loss + 1) for e in m.evaluations]
    )
    table = spending.arms({'one': [m, slow], 'two': [m]}, losses=(5, 4), f1=(80,))
    cells = {(r[0].text, r[1].text): [cell.text for cell in r[2:]] for r in table.rows}
    # 6.2 - step / 140, seen every 50 steps: below 5 at step 200; one higher, at step 350; below 4 never.
    assert cells['held-out loss 5', 'one'][:2] == ['step 200, step 350', '275 ± 106']
    assert cells['held-out loss 5', 'one'][3] == f'{275 * 4096:,}'
    assert cells['held-out loss 4', 'one'][:2] == ['by 1 of 2 seeds', layout.NOT_RUN]
    assert cells['held-out loss 4', 'two'][:2] == ['step 350', '350']
    assert cells['devel F1 on drugs, 80', 'one'][:2] == ['0.4', '400 ± 0']
    assert [cells['held-out loss 5', arm][-1] for arm in ('one', 'two')] == ['2', '1']


def test_what_the_first_scored_model_has_may_have_been_there_before(run):
    m = read_measures(run)
    end_alone = dataclasses.replace(m, finetuned=[r for r in m.finetuned if r.model == '0.4'])
    table = spending.arms({'all': [m], 'end': [end_alone]}, f1=(80,))
    found = {r[1].text: r for r in table.rows if r[0].text == 'devel F1 on drugs, 80'}
    assert (found['all'][3].text, found['all'][3].value) == ('400', 400)
    assert (found['end'][3].text, found['end'][3].value) == ('≤ 400', None)
    assert found['end'][-1].text == '1'
