"""Arms against each other: hand-computed intervals, paired differences, steps saved; the figure of the curves."""

import copy
import dataclasses
import html
import json
import re
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from toy_commands import document
from toy_measures import MASKED, cell, geometry_of, make, measured
from toy_measures import f1 as f1_of

from bioptimus_jax.cli import main as cli
from bioptimus_jax.lab import arms
from bioptimus_jax.lab.sections import geometry
from bioptimus_jax.lab.trained import same_phases
from bioptimus_jax.model.config import SOURCE
from bioptimus_jax.records.analysis import HiddenWords
from bioptimus_jax.records.finetune import CellSettings
from bioptimus_jax.records.manifests import Manifest
from bioptimus_jax.records.metrics import Evaluation
from bioptimus_jax.report.drawing import write_figures
from bioptimus_jax.report.measures import read_measures
from bioptimus_jax.report.records import named, names_of
from bioptimus_jax.report.resolved import read_runs
from bioptimus_jax.storage.files import write_json


@pytest.fixture
def sweep(tmp_path):
    """Two seeds: random_rows 10, 8, 6 and 10, 8, 7; better is 1 lower at the end, worse 1 higher."""
    nats = {
        'better.seed-0': (9, 7, 5),
        'better.seed-1': (9, 6, 6),
        'random_rows.seed-0': (10, 8, 6),
        'random_rows.seed-1': (10, 8, 7),
        'worse.seed-0': (10, 9, 7),
    }
    return arms.grouped({name: measured(tmp_path / name, values) for name, values in nats.items()})


def test_a_table_has_a_row_per_arm_and_intervals_over_its_seeds(sweep):
    made = arms.scores(sweep)
    nats = {(row[0].text, row[1].text): row[2].text for row in made.rows}
    assert made.columns[:3] == ['model', 'arm', 'nats / word']
    models, names = ('initial (step 0)', '100', '300'), ('better', 'random_rows', 'worse')
    assert list(nats) == [(model, name) for model in models for name in names]
    # Means 6 and 7: deviation sqrt(.5), error .5, and Student's 97.5 % with one degree of freedom is 12.706.
    assert nats['100', 'better'] == '6.500 ± 6.353'
    assert nats['300', 'worse'] == '7.000'
    assert nats['initial (step 0)', 'better'] == '9.000'
    assert [marks[2] for marks in made.marks()[:3]] == ['best', 'second', 'second']


def test_differences_are_paired_by_seed_and_steps_are_those_of_the_control(sweep):
    made = arms.against(sweep, 'random_rows')
    assert [row[0].text for row in made.rows] == ['better', 'worse']
    better, worse = made.rows
    assert better[3].text == '-1.000'
    # Seed 0: from 7 at 100 to 5 at 300, so 6 at 200: 100 saved. Seed 1: 9 to 6 in 100 steps, 7 at 66.7: 233.3 saved.
    assert better[4].value == pytest.approx((100 + 300 - 200 / 3) / 2)
    # The control is at 7 half-way between 100 and 300.
    assert worse[4].value == pytest.approx(-100)


def test_a_pre_training_counts_once_however_often_it_was_fine_tuned(tmp_path):
    make(tmp_path / 'a.seed-0', [MASKED], {0: {'drugs': 180}}, 0, fine_tunings=(0, 1, 2, 3, 4))
    make(tmp_path / 'a.seed-1', [MASKED], {0: {'drugs': 100}}, 1, fine_tunings=(0,))
    make(tmp_path / 'b.seed-0', [MASKED], {0: {'drugs': 150}}, 0)
    table = arms.scores(arms.grouped(named(read_runs([tmp_path]))))
    shown = {row[1].text: row[-1].value for row in table.rows}
    assert shown == {'a': pytest.approx((f1_of(180) + f1_of(100)) / 2), 'b': pytest.approx(f1_of(150))}
    assert table.note.endswith(' Settings differ: seeds 0, 1, 2, 3, 4 (a), 0 (b).')


def test_arms_that_were_fine_tuned_otherwise_are_named_once_for_sets_that_differ_alike(sweep):
    """Whichever seed differs, where no seed is common, and where the source alone was scored."""
    sets = ('drugs', 'bc5-chem')

    def tuned(m, epochs, model='300', datasets=sets):
        settings = CellSettings(values={'epochs': epochs}, by_rule=(), width=4, rule=0)
        cells = [cell(model, d, 'standard', seed, f1=0.5) for d in datasets for seed in (0, 1)]
        return dataclasses.replace(m, finetuned=[dataclasses.replace(r, settings=settings) for r in cells])

    def said(compared):
        _, *found = arms.scores(compared).note.partition(' Settings differ')
        return ''.join(found)

    control, better = ([*sweep[arm].values()] for arm in ('random_rows', 'better'))
    first = {'a': {'0': tuned(control[0], 3), '1': tuned(control[1], 3)}}
    assert said(first | {'b': {'0': tuned(better[0], 3), '1': tuned(better[1], 3)}}) == ''
    both = first | {'b': {'0': tuned(better[0], 3), '1': tuned(better[1], 30)}}
    not_alone = ', so the difference is not of the models alone.'
    assert said(both) == f' Settings differ: epochs 3 (a), 3 or 30 (b){not_alone}'
    apart = {'a': {'0': tuned(control[0], 3)}, 'b': {'1': tuned(better[1], 30)}, 'none': {}}
    assert said(apart) == f' Settings differ: epochs 3 (a), 30 (b){not_alone}'
    of_source = {'a': {'': tuned(control[0], 3, SOURCE)}, 'b': {'': tuned(better[0], 30, SOURCE, sets[:1])}}
    assert said(of_source) == f' Settings differ: epochs 3 (a), 30 (b){not_alone}'


@pytest.mark.parametrize(
    ('places', 'names'),
    [
        (('x/a', 'x/b'), ['a', 'b']),
        (('p1/runs/small', 'p2/runs/small'), ['p1/runs/small', 'p2/runs/small']),
        # Seeds of one arm may come from several places, but not one seed twice.
        (('x/base.seed-0', 'y/base.seed-1'), ['base.seed-0', 'base.seed-1']),
        (
            ('x/base.seed-0', 'x/base.seed-1', 'y/base.seed-1', 'y/base.seed-2', 'y/other.seed-0'),
            ['x/base.seed-0', 'x/base.seed-1', 'y/base.seed-1', 'y/base.seed-2', 'other.seed-0'],
        ),
    ],
)
def test_runs_are_told_apart_by_the_folders_around_them(places, names):
    runs = [SimpleNamespace(run=SimpleNamespace(workdir=Path('/all') / place)) for place in places]
    assert names_of(runs) == names
    assert list(named(runs)) == names


def test_steps_are_saved_from_where_an_arm_begins_below(tmp_path):
    steps, control = [0, 100, 200], np.array([9.0, 7.0, 5.0])
    for own in ([3.5, 3.6, 3.0], [3.5, 3.4, 3.0]):
        assert arms.steps_saved(steps, np.array(own), control) == 200


def test_new_tokens_are_compared_with_those_of_the_control_seed_by_seed(tmp_path):
    def of(model, nats):
        rare = {'words': 3, 'nats_per_word': nats, 'frequency_nats': 9.5}
        return HiddenWords.read({'model': model, 'new_tokens': {'rare': rare, 'none': {'words': 0}}}, 'cloze')

    def named(name, first, last, vocabulary='own'):
        made = measured(tmp_path / name, (9, 8))
        cloze = [of('initial', first), of(made.phases[-1], last)]
        return dataclasses.replace(made, cloze=cloze, manifests={'vocab': Manifest(content=vocabulary)})

    compared = {
        'plain': {'0': named('a', 12, 10), '1': named('b', 12, 9)},
        'fitted': {'0': named('c', 11, 9), '1': named('d', 11, 8.5)},
        'other words': {'0': named('e', 1, 1, 'source')},
    }
    made = arms.new_tokens(compared, 'plain')
    assert made.note.endswith(' Not compared, as their vocabulary differs: other words.')
    assert made.columns[-2:] == ['plain, nats / word', 'fitted less plain']
    shown = [[cell.text for cell in row] for row in made.rows]
    assert [row[:4] for row in shown] == [['rare', '3', '9.500', at] for at in ('step 0', 'the end')]
    assert shown[0][4:] == ['12.000', '-1.000']
    assert shown[1][4:] == ['9.500 ± 6.353', '-0.750 ± 3.177']
    assert arms.new_tokens(compared, 'nobody').empty
    assert arms.new_tokens({'plain': {'0': measured(tmp_path / 'g', (9, 8))}}, 'plain').empty


def test_held_out_losses_are_compared_where_vocabulary_and_steps_are_the_same(tmp_path):
    def evaluated(name, losses, steps=(0, 50, 100), vocabulary='own', words=9, **settings):
        records = [Evaluation(step=x, phase='1', frozen_loss=y) for x, y in zip(steps, losses, strict=True)]
        rows = {split: {'rows': 1, 'words': words, 'tokens': 9} for split in ('train', 'heldout')}
        made = {key.replace('__', '.'): value for key, value in settings.items()}
        manifests = {
            'vocab': Manifest(content=vocabulary),
            'rows': Manifest(counts=rows),
            'pretrain': Manifest(config=made),
        }
        return dataclasses.replace(measured(tmp_path / name, ()), evaluations=records, manifests=manifests)

    compared = {
        'plain': {'0': evaluated('a', (9, 6, 4)), '1': evaluated('b', (9, 6, 5))},
        'better': {'0': evaluated('c', (9, 5, 3)), '1': evaluated('d', (9, 6, 4))},
        'other words': {'0': evaluated('e', (9, 5, 3), vocabulary='source')},
        'other steps': {'0': evaluated('f', (9, 5, 3), steps=(0, 40, 80))},
        'other texts': {'0': evaluated('h', (9, 5, 3), words=8)},
        'other masks': {'0': evaluated('i', (9, 5, 3), evaluation__rate=0.4)},
        'other loss': {'0': evaluated('j', (9, 5, 3), pretrain__objective='causal')},
        'same loss': {'0': evaluated('k', (9, 6, 4), pretrain__objective='distil')},
    }
    made = arms.held_out(compared, 'plain')
    assert made.columns == ['arm', 'step 0', 'step 50', 'step 100', 'steps saved']
    others = ('other words', 'other steps', 'other texts', 'other masks', 'other loss')
    assert made.note.endswith(f' evaluations differ: {", ".join(others)}.')
    [[arm, first, *_, last, saved], [same, *_]] = made.rows
    assert same.text == 'same loss'
    assert (arm.text, first.text) == ('better', '0.000')
    assert last.text == '-1.000'
    # 4 is half-way between 5 and 3, at 75; 5 between 6 and 4, at 75 too.
    assert saved.value == pytest.approx(25)
    assert arms.held_out(compared, 'nobody').empty
    reached = arms.spending.arms({name: list(seeds.values()) for name, seeds in compared.items()})
    assert {line[1].text for line in reached.rows} == {'plain', 'better', 'other steps', 'same loss'}
    assert reached.note.endswith('Left out there: other words, other texts, other masks, other loss.')
    assert arms.held_out({'plain': {'0': measured(tmp_path / 'g', ())}}, 'plain').empty


def test_ends_are_compared_whatever_the_last_phase_is_called(sweep):
    """Arms with `decay` after `causal` beside `decay` after `constant`; F1 of seed 0 and 1: 50, 60 against 40, 44."""
    for arm, f1 in (('better', (50, 60)), ('random_rows', (40, 44))):
        for (seed, m), score in zip(sweep[arm].items(), f1, strict=True):
            m.finetuned.append(cell('300', 'bc5-chem', 'standard', int(seed), f1=score / 100))
    sweep['worse']['0'].run.config = dataclasses.replace(sweep['worse']['0'].run.config, phases=('100',))
    made = arms.ends(sweep, 'random_rows')
    assert [[cell.text for cell in row] for row in made.rows] == [
        [
            'better',
            '-1.000',
            '+13.00 ± 38.12',
        ],  # of 10 and 16: deviation 3 sqrt(2), error 3, times 12.706
        ['worse', '+3.000', '—'],
    ]
    assert 'nothing has not been trained' in arms.ends(sweep, 'nothing').text()
    sweep['worse']['0'].run.config = dataclasses.replace(sweep['worse']['0'].run.config, phases=())
    assert [c.text for c in arms.ends(sweep, 'random_rows').rows[1]] == ['worse', '—', '—']  # not begun


def test_an_arm_without_runs_and_a_missing_control_say_so(sweep):
    assert 'nothing has not been trained' in arms.against(sweep, 'nothing').text()
    assert 'no model of these runs has been scored' in arms.scores({}).text()


def test_other_words_are_said_to_be_other_words(sweep, tmp_path):
    assert 'did not score the same words' not in arms.scores(sweep).note
    other = sweep | {'copy': {'0': measured(tmp_path / 'copy', (9, 9, 9), mask='another')}}
    assert 'did not score the same words' in arms.scores(other).note
    for made in (arms.ends(other, 'random_rows'), arms.against(other, 'random_rows')):
        assert made.note.endswith(' Not compared, as they did not score the same hidden words: copy.')
    assert [c.text for c in arms.ends(other, 'random_rows').rows[-1]] == ['copy', '—']
    assert 'copy' not in [line[0].text for line in arms.against(other, 'random_rows').rows]


def test_the_figure_draws_every_arm_and_says_its_numbers(sweep):
    drawn = arms.figure(sweep, 'random_rows')
    assert 'better 9 to 5.5' in drawn.alt
    [chart] = json.loads(html.unescape(re.search(r'data-charts="([^"]+)"', drawn.svg)[1]))
    bands = {name: [one for one in ids if '-mark-' in one] for name, ids in chart['lines'].items()}
    assert {name: len(ids) for name, ids in bands.items()} == {'better': 1, 'random_rows': 1, 'worse': 1}
    assert all(f'id="{one}"' in drawn.svg or f'-{one}"' in drawn.svg for ids in bands.values() for one in ids)
    for name in ('better', 'random_rows', 'worse'):
        assert name in drawn.svg


def test_step_0_of_one_arm_does_not_flatten_the_curves_of_all(sweep, tmp_path):
    assert 'above' not in arms.figure(sweep, 'random_rows').caption
    high = sweep | {'literal': {'0': measured(tmp_path / 'literal', (25, 9, 7))}}
    assert 'above the figure: literal 25.00.' in arms.figure(high, 'random_rows').caption


def test_differences_are_drawn_for_each_phase_end_with_their_interval(sweep):
    drawn = arms.differences(sweep, 'random_rows')
    assert drawn.alt == 'After 300, less random_rows: better -1.000; worse 1.000.'
    for text in ('after 100', 'after 300', 'better', 'worse'):
        assert f'>{text}<' in drawn.svg
    assert '>random_rows<' not in drawn.svg
    assert 'nothing has not been trained' in arms.differences(sweep, 'nothing').absent


def test_phases_of_other_names_are_compared_by_their_order(sweep, tmp_path):
    other = measured(tmp_path / 'other', (9, 7.5, 5.5), steps={'initial': 0, '1-words': 90, '2-words': 280})
    short = measured(tmp_path / 'short', (9, 5), steps={'initial': 0, '300': 300})
    long = measured(tmp_path / 'long', (9, 3, 2))
    loaded = long.run.config
    ten = {name: dataclasses.replace(phase, duration=10.0) for name, phase in loaded.phase.items()}
    long.run.config = dataclasses.replace(loaded, phase=ten)
    compared = sweep | {'other': {'0': other}, 'short': {'0': short}, 'long': {'0': long}}
    made, before = (arms.against(x, 'random_rows') for x in (compared, sweep))
    assert made.columns == ['arm', 'initial (step 0)', 'phase 1', 'phase 2', 'steps saved']
    *same, added = [[cell.text for cell in row] for row in made.rows]
    assert same == [[cell.text for cell in row] for row in before.rows]
    # From 7.5 at 100 to 5.5 at 300, the steps of the control, whose 6 it has at 250.
    assert added == ['other', '-1.000', '-0.500', '-0.500', '50']
    curves, drawn = (make(compared, 'random_rows') for make in (arms.figure, arms.differences))
    assert drawn.alt == 'After phase 2, less random_rows: better -1.000; worse 1.000; other -0.500.'
    [chart] = json.loads(html.unescape(re.search(r'data-charts="([^"]+)"', curves.svg)[1]))
    assert list(chart['lines']) == [*sweep, 'other']
    for said in (curves.caption, drawn.caption, made.note):
        assert said.endswith(' Not compared, as their phases differ in number or length: short, long.')
    counts = {'rows': Manifest(counts={'train': {'rows': 10, 'words': 1000, 'tokens': 1300}})}
    shorter = {**loaded.phase, '100': dataclasses.replace(loaded.phase['100'], duration=0.9955)}
    shorter |= {'300': dataclasses.replace(loaded.phase['300'], duration=1000.0, duration_unit='words')}
    runs = [long, dataclasses.replace(long, run=copy.copy(long.run))]
    for m, phases in zip(runs, (loaded.phase, shorter), strict=True):
        m.run.config = dataclasses.replace(loaded, phase=phases)
    assert not same_phases(*runs), 'asked for in other units'
    assert same_phases(*(dataclasses.replace(m, manifests=counts) for m in runs)), 'as many words'


def test_without_a_control_the_steps_are_those_of_the_first_arm(sweep, tmp_path):
    """And no differences stay, of an earlier call that had one."""
    for control, axis in (('random_rows', 'random_rows'), ('', 'better')):
        drawn = arms.figure(sweep, control), arms.differences(sweep, control)
        write_figures(drawn, tmp_path)
        assert f'>steps of {axis}; the same words for every arm<' in (tmp_path / 'arms.svg').read_text()
        assert (tmp_path / 'differences.svg').exists() == bool(control)


def test_tables_of_what_nobody_measured_are_empty(sweep):
    titles = [made.title for made in arms.all_tables(sweep, 'random_rows') if not made.empty]
    compared = ('At the end of the last phase', 'nats / word', 'held-out nats / piece')
    assert titles == [
        'Arms compared',
        *(f'{what}: differences to random_rows' for what in compared),
        'What each arm took',
    ]


@given(st.lists(st.floats(0.5, 3), min_size=2, max_size=6), st.data())
def test_steps_saved_is_zero_against_oneself_and_has_the_sign_of_the_difference(drops, data):
    steps = list(range(0, 100 * (len(drops) + 1), 100))
    control = 20 - np.concatenate([[0], np.cumsum(drops)])
    assert arms.steps_saved(steps, control, control) == pytest.approx(0)
    shift = data.draw(st.floats(0.01, 0.5))
    assert arms.steps_saved(steps, control - shift, control) > 0
    assert arms.steps_saved(steps, control + shift, control) < 0
    assert arms.steps_saved(steps, control - shift, control) == pytest.approx(
        -arms.steps_saved(steps, control, control - shift)
    )


def test_geometry_is_compared_after_the_last_phase_seed_by_seed(tmp_path):
    cosines = {'a.seed-0': 0.5, 'a.seed-1': 0.3, 'b.seed-0': 0.25, 'b.seed-1': 0.15, 'c.seed-0': 0.1}
    sweep = arms.grouped({name: geometry_of(tmp_path / name, value) for name, value in cosines.items()})

    def of_words(control='a'):
        [made] = [t for t in arms.all_tables(sweep, control) if t.title == geometry.TITLE]
        return [[cell.text for cell in row[:3]] for row in made.rows]

    rows = of_words()
    assert [row[1] for row in rows] == ['a', 'b', 'c', 'b less a', 'c less a'] * 2
    assert rows[0][2] == '0.400 ± 1.271'  # Student's t at one degree of freedom, 12.706, times 0.1
    assert rows[3][2] == '-0.200 ± 0.635'  # differences -0.25 and -0.15
    assert rows[4][2] == '-0.400'
    sweep['b']['0'] = geometry_of(tmp_path / 'other', 0.25, 'other words')
    assert of_words()[3][2] == '-0.150'  # only the seed with the same words
    assert len(of_words('')) == 6
    few = geometry_of(tmp_path / 'few', 0.5)
    records = [{'model': x, 'rows': {}, 'words': {'skipped': 'too few words'}} for x in ('100', '300')]
    write_json(tmp_path / 'few' / 'analyze' / 'geometry.json', records)
    tables = {t.title: t for t in arms.all_tables(arms.alone([read_measures(few.run)]))}
    assert tables[geometry.TITLE].absent == 'too few words.'


CONFIG = """
from bioptimus_jax.experiment import config

def get_config(argument=''):
    loaded = config.defaults()
    loaded.phases = ('100', '300')
    loaded.corpus.inputs = ('$BIOPTIMUS_DATA/*.xml.gz',)
    for name in loaded.phases:
        loaded.phase[name] = config.phase()
    return loaded
"""


def test_compare_prints_the_tables_that_a_sweep_has_of_the_same_arms(tmp_path, capsys, monkeypatch):
    monkeypatch.delenv('BIOPTIMUS_DATA', raising=False)  # no path is read, so none need be there
    (tmp_path / 'two.py').write_text(CONFIG)
    runs = {name: measured(tmp_path / name, nats) for name, nats in {'a': (9, 7, 5), 'b': (10, 8, 6)}.items()}
    given = [f'--config={tmp_path / "two.py"}', *(str(tmp_path / name) for name in runs)]
    assert cli.main(['compare', *given]) == 0
    printed = capsys.readouterr().out
    assert cli.main(['compare', *given[1:]]) == 2
    assert '--config=NAME_or_FILE[:argument] is missing' in capsys.readouterr().err
    named = {f'{name} (contextualized)': m for name, m in runs.items()}
    swept = arms.all_tables(arms.grouped(named))
    assert printed == '\n\n'.join(table.text() for table in swept) + '\n'
    assert '9.000' in printed
    found = document(capsys, 'compare', *given)['tables']
    assert [table['title'] for table in found] == [table.title for table in swept]
    for made, table in zip(found, swept, strict=True):
        for record, row in zip(made['rows'], table.rows, strict=True):
            shown = dict(zip(table.columns, row, strict=True))
            assert {n: record[n] for n in shown if shown[n].value is not None} == {
                n: cell.value for n, cell in shown.items() if cell.value is not None
            }
            assert all(record[n] in (cell.text, None) for n, cell in shown.items() if cell.value is None)
