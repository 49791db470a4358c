"""The paper's tables from hand-made runs: rows, marks, empty cells, set-ups kept apart, tests, figures, the page."""

import base64
import csv
import dataclasses
import json
import re
import shlex
import shutil
import statistics
import zlib
from html import unescape
from types import SimpleNamespace

import numpy as np
import pytest
from scipy import stats
from toy_measures import (
    MASKED,
    STEPS,
    TOKENS,
    WORDS,
    WORDS_15,
    WORDS_20,
    experiment,
    f1,
    fine_tuned,
    make,
    spent,
    write_geometry,
)

from bioptimus_jax.cli import main as cli
from bioptimus_jax.errors import InputError
from bioptimus_jax.experiment.stages import STAGES
from bioptimus_jax.lab import comparison, comparison_figures, paper, paper_tables
from bioptimus_jax.lab.questions import QUESTIONS, Row, chosen_rates, comparable_groups
from bioptimus_jax.lab.trained import PAPER_SETTINGS, _of_objectives, phase_name, trained_models
from bioptimus_jax.pretrain.config import Pretrain
from bioptimus_jax.records.record import plain
from bioptimus_jax.report import gain, page
from bioptimus_jax.report.layout import NOT_RUN
from bioptimus_jax.report.resolved import experiment_of, read_runs
from bioptimus_jax.run.fingerprint import result_keys
from bioptimus_jax.run.folder import Run
from bioptimus_jax.storage.files import read_json, write_json, write_jsonl

ASK = {question.name: question for question in QUESTIONS}


def answer(name, *folders):
    scores, details = paper_tables.tables(ASK[name], trained_models(read_runs(folders)))
    return scores, {table.title.rpartition(': ')[2]: table for table in details}


def row(table, name):
    [line] = [line for line in table.rows if line[0].text == name]
    return dict(zip(table.columns, (cell.text for cell in line), strict=True))


def mark(table, name, column):
    at = [line[0].text for line in table.rows].index(name)
    return table.marks()[at][list(table.columns).index(column)]


RIGHT = {  # by strategy, by seed
    'contextualized': (120, 124, 122),
    'averaged_input': (160, 166, 163),
    'random_rows': (121, 123, 122),
    'scratch': (60, 62, 64),
}


@pytest.fixture(scope='module')
def made_table2(tmp_path_factory):
    """Folders whose names say nothing about what is in them."""
    made = tmp_path_factory.mktemp('table2')
    for number, (strategy, by_seed) in enumerate(RIGHT.items()):
        for seed, right in enumerate(by_seed):
            folder = made / f'{"xyzu"[number]}.seed-{seed}'
            make(folder, [TOKENS], {0: {'bc5-chem': right}}, seed, surgery__strategy=strategy)
    return made


@pytest.fixture
def table2(made_table2, tmp_path):
    """A copy, for a test to change."""
    return shutil.copytree(made_table2, tmp_path / 'sweep')


def test_a_row_is_mean_and_deviation_over_seeds_beside_the_papers_number(made_table2):
    [made], _ = answer('table2', made_table2)
    values = [f1(right) for right in RIGHT['averaged_input']]
    mean, deviation = statistics.fmean(values), statistics.stdev(values)
    shown = row(made, 'averaged_input, rescaled')
    assert shown['bc5-chem, here'] == f'{mean:.2f} ± {deviation:.2f} †'
    assert shown['bc5-chem, paper'] == '92.93'
    assert shown['words seen'] == '512,000'
    assert shown['seeds'] == '3'
    assert [mark(made, n, 'bc5-chem, here') for n in ('averaged_input, rescaled', 'random_rows')] == [
        'best',
        'second',
    ]
    assert mark(made, 'scratch', 'bc5-chem, here') == ''
    # The paper's best of this column is `copy`, which nobody has run here; it is bold all the same.
    assert mark(made, 'copy: no run', 'bc5-chem, paper') == 'best'


def test_cells_without_a_run_are_empty_and_say_so(made_table2):
    [made], _ = answer('table2', made_table2)
    shown = row(made, 'copy: no run')
    assert shown['bc5-chem, here'] == shown['seeds'] == NOT_RUN
    assert shown['jnlpba, paper'] == '77.59'
    assert row(made, 'scratch')['jnlpba, here'] == NOT_RUN
    assert row(made, 'random_rows')['bc5-chem, paper'] == NOT_RUN
    assert f'{NOT_RUN} : no run, or not scored' in made.note
    [empty], details = answer('table7', made_table2)
    assert [line[0].text for line in empty.rows] == [
        f'{prefix}0.{n}: no run' for n in (2, 3, 4) for prefix in ('', 'no curriculum, as long as ')
    ]
    assert '`bioptimus sweep --config=ablations:table7 --workdir=DIR` makes them' in empty.note
    assert not details
    for question in ('corruption', 'orders'):  # the paper has no numbers for them
        [nothing], _ = answer(question, made_table2)
        assert nothing.rows == []
        assert 'no run answers this' in nothing.markdown()


def test_marks_are_of_the_test_over_pretrainings_corrected_for_all_comparisons(made_table2):
    [made], details = answer('table2', made_table2)
    here = {line[0].text: line[3].text for line in made.rows}
    assert here['averaged_input, rescaled'].endswith(' †')
    assert here['scratch'].endswith(' †')
    assert not here['random_rows'].endswith('†')  # by seed +1, -1, 0 mentions
    assert not here['contextualized, rescaled'].endswith('†')
    assert 'corrected after Holm for 3 differences on single sets' in made.note
    assert 'differs from contextualized, rescaled over pre-trainings' in made.note
    cells = {line[0].text: line for line in details['differences over pre-trainings'].rows}
    assert set(cells) == set(here) - {'contextualized, rescaled', 'copy: no run', 'averaged_last: no run'}
    expected = statistics.fmean(
        f1(a) - f1(c) for a, c in zip(RIGHT['averaged_input'], RIGHT['contextualized'], strict=True)
    )
    cell = cells['averaged_input, rescaled'][2]
    assert cell.value == pytest.approx(expected)
    # Four arms and three seeds; what arm and seed leave has six degrees of freedom.
    scores = {strategy: [f1(right) for right in by_seed] for strategy, by_seed in RIGHT.items()}
    table_AxS = np.array(list(scores.values()))
    left_AxS = table_AxS - table_AxS.mean(0) - table_AxS.mean(1, keepdims=True) + table_AxS.mean()
    error = ((left_AxS**2).sum() / 6 * 2 / 3) ** 0.5
    half = stats.t.ppf(0.975, 6) * error
    assert f'[{expected - half:+.2f}, {expected + half:+.2f}] p < 0.0001; ' in cell.text
    assert '6 degrees of freedom' in details['differences over pre-trainings'].note
    p = 2 * stats.t.sf(
        abs(table_AxS[2].mean() - table_AxS[0].mean()) / error, 6
    )  # the largest of three counts once
    assert f' p = {p:.2g}; ' in cells['random_rows'][2].text
    # These models on other items: of 10,000 shuffles none is as large; the smallest of three p counts three times.
    on_items = {line[0].text: line[2].text for line in details['these models, other test items'].rows}
    assert f'p = {3 / 10_001:.2g}' in on_items['averaged_input, rescaled']


def test_other_rows_of_the_papers_initialisation_are_compared_with_its_rescaled_ones(tmp_path):
    rows = {'literal': {}, 'rescaled': {}, 'centred': {'surgery__layers': '()', 'surgery__map': 'respelled'}}
    for scale, changes in rows.items():
        for seed in (0, 1):
            right = {0: {'d': 100 + 10 * len(changes) + seed}}
            make(tmp_path / f'{scale}.seed-{seed}', [TOKENS], right, seed, surgery__scale=scale, **changes)
    _, details = answer('table2', tmp_path)
    against = {line[0].text: line[1].text for line in details['differences over pre-trainings'].rows}
    mapped = 'contextualized, centred, middle layers, map respelled'
    assert against == dict.fromkeys((mapped, 'contextualized, literal'), 'contextualized, rescaled')
    for seed in (0, 1):
        shutil.rmtree(tmp_path / f'rescaled.seed-{seed}')
    assert 'differences over pre-trainings' not in answer('table2', tmp_path)[1]


def test_what_the_items_say_and_seeds_do_not_is_not_marked(tmp_path):
    """Every model is sure on its items, but one seed denies what two say."""
    for seed, (a, b) in enumerate([(100, 150), (100, 150), (120, 119)]):
        make(tmp_path / f'a.seed-{seed}', [TOKENS], {0: {'bc5-chem': a}}, seed)
        changed = {'surgery__strategy': 'averaged_input'}
        make(tmp_path / f'b.seed-{seed}', [TOKENS], {0: {'bc5-chem': b}}, seed, **changed)
    [made], details = answer('table2', tmp_path)
    assert '†' not in row(made, 'averaged_input, rescaled')['bc5-chem, here']
    differences = [[f1(b) - f1(a) for a, b in ((100, 150), (100, 150), (120, 119))]]
    p = stats.ttest_1samp(differences[0], 0).pvalue
    assert p > 0.05
    assert f'p = {p:.2g}; ' in details['differences over pre-trainings'].rows[0][2].text
    assert details['these models, other test items'].rows[0][2].text.endswith('p < 0.0001')


def test_what_every_seed_gives_alike_is_not_tested(tmp_path):
    """A difference without a residual has no p and no mark, however large it is."""
    for seed in (0, 1):
        make(tmp_path / f'a.seed-{seed}', [TOKENS], {0: {'bc5-chem': 100}}, seed)
        changed = {'surgery__strategy': 'averaged_input'}
        make(tmp_path / f'b.seed-{seed}', [TOKENS], {0: {'bc5-chem': 150}}, seed, **changed)
    [made], details = answer('table2', tmp_path)
    assert row(made, 'averaged_input, rescaled')['bc5-chem, here'] == f'{f1(150):.2f} ± 0.00'
    assert 'Not tested over pre-trainings' in made.note
    table = details['differences over pre-trainings']
    by = f'{f1(150) - f1(100):+.1f}'
    assert table.rows[0][2].text == f'{f1(150) - f1(100):+.2f}, not tested; {by} {by}'
    assert 'not tested, as there is one pre-training, or every seed gives the same difference' in table.note


def test_runs_of_other_budgets_corpora_or_fine_tuning_stand_apart_and_the_note_says_why(
    made_table2, tmp_path
):
    make(
        tmp_path / 'longer',
        [TOKENS],
        {0: {'bc5-chem': 190}},
        phase__p0__duration=2 * WORDS,
        surgery__strategy='averaged_last',
    )
    make(tmp_path / 'elsewhere', [TOKENS], {0: {'bc5-chem': 191}}, corpus='d')
    make(tmp_path / 'tuned', [TOKENS], {0: {'bc5-chem': 192}}, finetune__epochs=50)
    first, *others = answer(
        'table2', made_table2, tmp_path / 'longer', tmp_path / 'elsewhere', tmp_path / 'tuned'
    )[0]
    assert first.title.endswith('(set-up A)')
    assert 'averaged_last, rescaled' not in [line[0].text for line in first.rows]
    assert row(first, 'contextualized, rescaled')['seeds'] == '3'
    notes = {table.rows[0][3].text: table.note for table in others}
    assert 'words of phase 1: 1,020,000, in A 512,000' in notes[f'{f1(190):.2f}']
    assert 'corpus: dddddddd, in A cccccccc' in notes[f'{f1(191):.2f}']
    assert 'finetune.epochs: 50, in A 0' in notes[f'{f1(192):.2f}']
    assert all('must not be compared with set-up A' in note for note in notes.values())
    assert all(table.marks()[0][3] == '' for table in others)


def test_the_papers_column_is_ranked_only_where_all_of_its_rows_are(made_table2, tmp_path):
    for strategy in ('scratch', 'averaged_last'):
        changes = {'phase__p0__duration': 2 * WORDS, 'surgery__strategy': strategy}
        changes |= {'finetune__train_sentences': 5}
        make(tmp_path / 'longer' / strategy, [TOKENS], {0: {'bc5-chem': 190}}, **changes)
    first, second = answer('table2', made_table2, tmp_path / 'longer')[0]
    assert mark(first, 'copy: no run', 'bc5-chem, paper') == 'best'
    assert row(second, 'averaged_last, rescaled')['bc5-chem, paper'] == '92.93'
    assert mark(second, 'averaged_last, rescaled', 'bc5-chem, paper') == ''
    # What learned 5 sentences says so beside the paper's number.
    few, said = row(second, 'averaged_last, rescaled'), 'bc5-chem, 5 of 50 training examples'
    assert few['bc5-chem, here'].endswith(' §')
    assert (
        f'§: Learned from a part of the set, so not comparable with published scores: {said}.' in second.note
    )
    assert '§' not in first.note


PARTING = {
    'contexts__per_token': (3, 'contexts.per_token'),
    'model__dropout': (0.2, 'model.dropout'),
    'model__attention_dropout': (0.2, 'model.attention_dropout'),
    'rows__block_documents': (7, 'rows.block_documents'),
    'phase__p0__corruption_unit': ('word', 'corruption unit of phase 1'),
    'phase__p1__optimizer': ('reset', 'optimizer of phase 2'),
    'phase__p0__fall': ('cosine', 'fall of phase 1'),
    'phase__p1__warmup_fraction': (0.5, 'warmup fraction of phase 2'),
    'phase__p1__end_fraction': (0.5, 'end fraction of phase 2'),
    'phase__p0__batch_rows': (16, 'batch rows of phase 1'),
    'phase__p0__rope_theta': (1e6, 'rope theta of phase 1'),
    'phase__p1__corpora': ('own=1,notes=3', 'corpora of phase 2: notes=0.75, own=0.25, in A own=1'),
}


@pytest.mark.parametrize('key', PARTING)
def test_whatever_decides_a_score_parts_set_ups(tmp_path, key):
    value, name = PARTING[key]
    for folder, changes in (('a', {}), ('b', {key: value})):
        make(tmp_path / folder, [TOKENS, WORDS_15], {1: {'bc5-chem': 120}}, **changes)
    first, second = answer('table5', tmp_path)[0]
    assert f'must not be compared with set-up A: {name}' in second.note
    assert row(first, '0.2')['seeds'] == row(second, '0.2')['seeds'] == '1'


def test_a_rate_that_moves_and_what_a_phase_takes_from_the_run_are_told(tmp_path):
    moving = {'phase__p0__rate_end': 0.4}
    as_the_run = {'phase__p0__warmup_fraction': Pretrain().warmup_fraction, 'phase__p0__micro_batches': 2}
    for seed, changes in enumerate(({}, as_the_run, moving, moving | {'phase__p0__rate_parts': 3})):
        make(tmp_path / f'r.seed-{seed}', [TOKENS], {0: {'d': 9}}, seed, **changes)
    models = trained_models(read_runs([tmp_path]))
    assert [t.path[0] for t in models] == [
        *['tokens 15 %'] * 2,
        'tokens 15 to 40 %',
        'tokens 15 to 40 % in 3 parts',
    ]
    [made], _ = answer('table3', tmp_path)
    assert row(made, 'tokens 15 %')['seeds'] == '2'


def test_contexts_that_surgery_does_not_read_part_nothing(tmp_path):
    for seed, sentences in enumerate((3, 4)):
        changes = {'contexts__per_token': sentences, 'surgery__strategy': 'random_rows'}
        make(tmp_path / f'r.seed-{seed}', [TOKENS], {0: {'bc5-chem': 120}}, seed, **changes)
    [made], _ = answer('table2', tmp_path)
    assert row(made, 'random_rows')['seeds'] == '2'


def test_rows_are_named_in_words(tmp_path):
    changes = {'layers': '()', 'map': 'respelled', 'shrinkage': 1.0, 'scale': 'centred'}
    make(tmp_path / 'r', [TOKENS], {0: {'d': 9}}, **{f'surgery__{name}': x for name, x in changes.items()})
    make(tmp_path / 's', [TOKENS], {0: {'d': 9}}, surgery__layers='2,3')
    names = [t.initialisation for t in trained_models(read_runs([str(tmp_path)]))]
    assert names == [
        'contextualized, centred, middle layers, shrinkage 1, map respelled',
        'contextualized, rescaled, layers 2, 3',
    ]


def test_a_phase_that_ended_early_is_as_long_as_it_was(tmp_path):
    paced = {'curriculum__order': 'self_paced', 'evaluation__per_phase': 4}
    for name, steps, changes in (
        ('planned.seed-0', (10, 20), {}),
        ('late.seed-1', (10, 20), paced),
        ('early.seed-2', (4, 20), paced),
    ):
        make(tmp_path / name, [TOKENS, WORDS_15], {1: {'d': 9}}, int(name[-1]), steps=steps, **changes)
    first, second = answer('table5', tmp_path)[0]
    assert row(first, '0.2')['seeds'] == '2'
    assert 'words of phase 1: 205,000, in A 512,000' in second.note
    assert 'words of phase 2: 819,000, in A 512,000' in second.note


def test_an_epoch_of_another_corpus_is_as_long_as_that_and_a_reduced_phase_as_it_was(tmp_path):
    epoch = {'phase__p0__duration_unit': 'epochs', 'phase__p0__duration': 1.0}
    notes = {'train': {'rows': 100, 'tokens': 26_000, 'words': 30_000}}
    for name, corpora, placed in (
        ('a', '', {'stop': 4}),
        ('b', 'notes=1', {'stop': 1, 'counts': notes}),
        ('c', '', {'stop': 2, 'reduced_from': 4}),
    ):
        steps = [placed['stop']]
        folder = make(
            tmp_path / name, [TOKENS], {0: {'d': 9}}, steps=steps, phase__p0__corpora=corpora, **epoch
        )
        write_json(folder / 'pretrain' / 'curriculum.json', [{'name': 'p0', 'start': 0, **placed}])
    models = trained_models(read_runs([tmp_path]))
    assert [t.conditions['words of phase 1'] for t in models] == ['200,000', '30,000', '102,000']
    assert [t.words for t in models] == [4 * 256 * 200, 256 * 300, 2 * 256 * 200]


def test_fine_tunings_are_no_pretrainings(tmp_path):
    averaged = {'surgery__strategy': 'averaged_input'}
    for name, right, changes in (('a', 100, {}), ('b', 150, averaged)):
        make(tmp_path / 'one' / name, [TOKENS], {0: {'d': right}}, fine_tunings=(0, 1, 2), **changes)
    [one], _ = answer('table2', tmp_path / 'one')
    shown = row(one, 'averaged_input, rescaled')
    assert shown['seeds'] == '1 × 3'
    assert '†' not in shown['d']
    assert 'Not tested over pre-trainings' in one.note
    assert '1 × 5 is one, fine-tuned five times' in one.note
    for seed, (a, b) in enumerate(((100, 150), (104, 158))):
        for name, right, changes in (('a', a, {}), ('b', b, averaged)):
            folder = tmp_path / 'two' / f'{name}.seed-{seed}'
            make(folder, [TOKENS], {0: {'d': right}}, seed, fine_tunings=(0, 1, 2), **changes)
    [two], details = answer('table2', tmp_path / 'two')
    shown = row(two, 'averaged_input, rescaled')
    assert shown['seeds'] == '2 × 3'
    values = [f1(150), f1(158)]
    assert shown['d'] == f'{statistics.fmean(values):.2f} ± {statistics.stdev(values):.2f} †'
    by_seed = f'; {f1(150) - f1(100):+.1f} {f1(158) - f1(104):+.1f}'
    assert details['differences over pre-trainings'].rows[0][2].text.endswith(by_seed)


def test_a_mean_over_sets_is_over_the_same_seeds_and_names_its_sets(tmp_path):
    for name, changes in (('a', {}), ('b', {'surgery__strategy': 'averaged_input'})):
        for seed, sets in enumerate((('d', 'e'), ('d',), ('e',))):
            right = {0: {d: 100 + 9 * len(changes) for d in sets}}
            make(tmp_path / 'other' / f'{name}.seed-{seed}', [TOKENS], right, seed, **changes)
    [made], details = answer('table2', tmp_path / 'other')
    assert 'no mean over d, e: other seeds' in made.note
    assert list(details['differences over pre-trainings'].columns) == ['model', 'less', 'd', 'e']
    strategies = {'contextualized': 'def', 'averaged_input': 'def', 'random_rows': 'de'}
    for number, (strategy, sets) in enumerate(strategies.items()):
        right = {0: {d: 100 + number for d in sets}}
        make(tmp_path / 'fewer' / strategy, [TOKENS], right, surgery__strategy=strategy)
    [made], details = answer('table2', tmp_path / 'fewer')
    assert row(made, 'averaged_input, rescaled')['mean of the sets'] == f'{f1(101):.2f}'
    assert row(made, 'random_rows')['mean of the sets'] == NOT_RUN
    means = {line[0].text: line[2].text for line in details['differences over pre-trainings'].rows}
    assert means['random_rows'].endswith('; over d, e')
    assert 'over' not in means['averaged_input, rescaled']


def test_predictions_that_are_missing_are_named(table2):
    file = table2 / 'y.seed-1' / 'finetune' / 'p0' / 'bc5-chem' / 'standard' / 'seed-1' / 'predictions.tsv'
    file.unlink()
    [made], details = answer('table2', table2)
    remedy = 'so nothing is said of other test items; run stage finetune again with --replace.'
    assert f'{file}: is missing, {remedy}' in made.note
    named = [line[0].text for line in details['these models, other test items'].rows]
    assert named == ['scratch', 'random_rows']
    assert row(made, 'averaged_input, rescaled')['bc5-chem, here'].endswith('†')  # F1 by seed is there


def test_a_source_vocabulary_is_no_other_set_up_but_has_no_comparable_loss(made_table2, tmp_path):
    make(
        tmp_path / 'kept',
        [TOKENS],
        {0: {'bc5-chem': 110}},
        surgery__strategy='copy',
        vocab__kind='source',
        losses=1.0,
    )
    [made], details = answer('table2', made_table2, tmp_path / 'kept')
    assert row(made, 'copy')['seeds'] == '1'
    assert 'copy' not in [line[0].text for line in details['held-out loss'].rows]
    assert 'Left out, since its pieces are others: copy' in details['held-out loss'].note


def test_one_training_in_two_folders_counts_once(made_table2, tmp_path):
    make(tmp_path / 'again' / 'x.seed-0', [TOKENS], {0: {'bc5-chem': RIGHT['contextualized'][0]}}, 0)
    [made], _ = answer('table2', made_table2, tmp_path / 'again')
    assert row(made, 'contextualized, rescaled')['seeds'] == '3'


@pytest.fixture(scope='module')
def made_curricula(tmp_path_factory):
    """Two seeds of the paper's curriculum, of none, hard to easy, and shuffled."""
    orders = {
        'a': [TOKENS, WORDS_15, WORDS_20, MASKED],
        'b': [TOKENS] * 4,
        'c': [MASKED, WORDS_20, WORDS_15, TOKENS],
        'd': [WORDS_20, TOKENS, MASKED, WORDS_15],
    }
    made = tmp_path_factory.mktemp('curricula')
    for number, (name, phases) in enumerate(orders.items()):
        for seed in (0, 1):
            right = {n: {'bc5-chem': 100 + 10 * n - 5 * number + seed} for n in range(4)}
            make(made / f'{name}.seed-{seed}', phases, right, seed, losses=5 + number / 10)
    return made


@pytest.fixture
def curricula(made_curricula, tmp_path):
    """A copy, for a test to change."""
    return shutil.copytree(made_curricula, tmp_path, dirs_exist_ok=True)


def test_versions_orders_and_the_end_of_each_phase_are_known_by_their_settings(made_curricula):
    [versions], _ = answer('table5', made_curricula)
    # No curriculum's first phase is 0.1 too; a phase of the same words counts once.
    assert [line[0].text for line in versions.rows] == ['0.1', '0.2', '0.3', '0.4']
    assert row(versions, '0.4')['bc5-chem, here'].startswith(f'{(f1(130) + f1(131)) / 2:.2f} ±')
    assert row(versions, '0.4')['bc5-chem, paper'] == '94.10'
    assert row(versions, '0.1')['seeds'] == '2'
    [seventh], details = answer('table7', made_curricula)
    names = [line[0].text for line in seventh.rows]
    assert names == [f'{prefix}0.{n}' for n in (2, 3, 4) for prefix in ('', 'no curriculum, as long as ')]
    assert row(seventh, 'no curriculum, as long as 0.4')['bc5-chem, paper'] == '93.86'
    against = {line[0].text: line[1].text for line in details['differences over pre-trainings'].rows}
    assert against == {f'0.{n}': f'no curriculum, as long as 0.{n}' for n in (2, 3, 4)}
    [orders], details = answer('orders', made_curricula)
    shuffled = (
        f'shuffled: {"; ".join([PAPER_SETTINGS[2], PAPER_SETTINGS[0], PAPER_SETTINGS[3], PAPER_SETTINGS[1]])}'
    )
    names = [line[0].text for line in orders.rows]
    missed = [f'static: {name}: no run' for name in PAPER_SETTINGS[1:]]
    assert names == ['static: tokens 15 %', 'easy to hard', 'hard to easy', shuffled, *missed]
    losses = details['held-out loss']
    assert list(losses.columns) == ['model', 'one frozen mask', *PAPER_SETTINGS]
    assert row(losses, 'hard to easy')['words 15 %'] == '4.800 ± 0.000'
    assert mark(losses, 'easy to hard', 'words 15 %') == 'best'
    assert 'arXiv' not in orders.note  # the paper has no such table


def test_a_row_stands_for_the_expected_one_of_its_whole_name(tmp_path):
    make(tmp_path / 'r', [MASKED] * 4, {3: {'d': 100}})
    [made], _ = answer('orders', tmp_path / 'r')
    names = [line[0].text for line in made.rows]
    assert names[0] == f'static: {PAPER_SETTINGS[3]}'
    assert {f'static: {PAPER_SETTINGS[2]}: no run', 'shuffled: no run'} <= set(names)


def test_a_phase_on_a_path_that_goes_on_is_not_a_run_that_ends_there(curricula, tmp_path):
    changes = {f'phase__p{n}__schedule': 'continue' for n in range(4)}
    phases = [TOKENS, WORDS_15, WORDS_20, MASKED]
    make(tmp_path / 'on' / 'r', phases, {n: {'bc5-chem': 100} for n in range(4)}, **changes)
    first, second = answer('table5', curricula, tmp_path / 'on')[0]
    assert 'learning rate: one path over phases of' in second.note
    assert len(second.rows) == len(first.rows) == 4


def test_rivals_are_paired_by_the_seed_of_fine_tuning_and_found_in_the_paper_by_name(curricula, tmp_path):
    for seed in (0, 1):
        right = {'BioBERT': {'bc5-chem': 180 + seed}, 'ours-too': {'bc5-chem': 130}}
        e = experiment([TOKENS], seed=0, finetune__seeds=seed, finetune__models='BioBERT=/m/b')
        folder = tmp_path / 'rivals' / f'r.seed-{seed}'
        keys = json.loads(json.dumps(result_keys(e, ('finetune',))))
        write_json(folder / 'finetune' / 'manifest.json', {'config': keys, 'content': 'n', 'inputs': {}})
        cells = [
            fine_tuned(folder, m, d, 'standard', seed, n) for m, s in right.items() for d, n in s.items()
        ]
        write_jsonl(folder / 'finetune' / 'results.jsonl', plain(cells))
    [made], details = answer('table6', curricula, tmp_path / 'rivals')
    names = [line[0].text for line in made.rows]
    assert names[:2] == ['0.4', 'BioBERT']
    assert {'ours-too', 'PubMedBERT: no run'} <= set(names)
    assert 'BioBERT: no run' not in names
    assert row(made, 'BioBERT')['bc5-chem, paper'] == '92.85'
    assert '†' not in row(made, 'BioBERT')['bc5-chem, here']  # it was trained once
    assert row(made, 'ours-too')['bc5-chem, paper'] == NOT_RUN
    for name in ('differences over pre-trainings', 'these models, other test items'):
        assert {line[0].text for line in details[name].rows} == {'BioBERT', 'ours-too'}


def test_rivals_of_one_name_with_other_weights_are_two_models(tmp_path):
    def seeds_of(weights):
        for number, digest in enumerate(weights):
            folder = tmp_path / weights / f'r{number}'
            keys = json.loads(json.dumps(result_keys(experiment([TOKENS]), ('finetune',))))
            manifest = {'config': keys, 'content': 'n', 'inputs': {'model BioBERT:model.safetensors': digest}}
            write_json(folder / 'finetune' / 'manifest.json', manifest)
            cells = [fine_tuned(folder, 'BioBERT', 'd', 'standard', number, 100 + 10 * number)]
            write_jsonl(folder / 'finetune' / 'results.jsonl', plain(cells))
        models = trained_models(read_runs([tmp_path / weights]))
        return [len(row.models) for group in comparable_groups(ASK['table6'], models) for row in group.rows]

    assert seeds_of('aa') == [2]
    assert seeds_of('ab') == [1, 1]


def test_a_rival_is_paired_with_every_pretraining_of_the_other(tmp_path):
    phases = [TOKENS, WORDS_15, WORDS_20, MASKED]
    for seed, right in enumerate((100, 104)):
        folder = tmp_path / f'a.seed-{seed}'
        make(folder, phases, {3: {'d': right}, 'BioBERT': {'d': 150}}, seed, fine_tunings=(7,))
    [made], details = answer('table6', tmp_path)
    assert row(made, '0.4')['seeds'] == '2'
    [line] = details['differences over pre-trainings'].rows
    assert '[' not in line[2].text
    assert line[2].text.endswith(f'; {f1(150) - f1(100):+.1f} {f1(150) - f1(104):+.1f}')


def test_learning_rates_are_rows_of_their_own_and_devel_chooses(tmp_path):
    for seed in (0, 1):
        for rate, right in ((1e-4, 120), (2e-4, 140)):
            changes = {'pretrain__learning_rate': rate}
            make(tmp_path / f'r{rate}.seed-{seed}', [TOKENS], {0: {'bc5-chem': right}}, seed, **changes)
    [made], details = answer('table2', tmp_path)
    names = [line[0].text for line in made.rows if 'no run' not in line[0].text]
    assert names == ['contextualized, rescaled, learning rate 0.0002, chosen on devel']
    every = details['learning rates']
    assert [line[0].text for line in every.rows] == [
        f'contextualized, rescaled, learning rate 0.000{n}' for n in (1, 2)
    ]
    assert (
        row(every, 'contextualized, rescaled, learning rate 0.0001')['bc5-chem, test']
        == f'{f1(120):.2f} ± 0.00'
    )


def test_devel_chooses_no_learning_rate_where_nothing_is_learned(tmp_path):
    devel, test = ({'default': {'ndcg': value}} for value in (0.0, 0.5))
    found = fine_tuned(tmp_path, 'm', 'd', 'standard', 0, 100)
    found = dataclasses.replace(found, task='retrieval', devel=devel, test=test)
    measures = SimpleNamespace(settings=lambda *_: ['standard'], scores=lambda *_, **__: [])
    trained = SimpleNamespace(measures=measures, model='m', seed=0, cells=lambda *_: [found])
    rows = [Row('m', f', learning rate {rate}', (trained,)) for rate in (1, 2)]
    assert (rows[0].scores('d'), rows[0].scores('d', split='devel')) == ([50.0], [])
    assert chosen_rates(rows, ['d']) == {rows[0]: ''}


CHOSEN = 'averaged_input, rescaled, learning rate 0.0001'
OTHER = 'averaged_input, rescaled, learning rate 0.0002'


@pytest.fixture
def grid(tmp_path):
    """Two initialisations at two rates: devel prefers the lower rate of one, the higher of the other; test does not."""
    found = {  # (mentions found on test, devel F1)
        ('contextualized', 1e-4): (130, 0.5),
        ('contextualized', 2e-4): (100, 0.6),
        ('averaged_input', 1e-4): (150, 0.6),
        ('averaged_input', 2e-4): (190, 0.5),
    }
    for (strategy, rate), right in found.items():
        changes = {'surgery__strategy': strategy, 'pretrain__learning_rate': rate}
        for seed in (0, 1):
            folder = tmp_path / f'{strategy}.rate-{rate}.seed-{seed}'
            # The later seed finds a mention more with one of the two.
            more = seed * (strategy == 'averaged_input')
            make(folder, [TOKENS], {0: {'d': (right[0] + more, right[1])}}, seed, **changes)
    return tmp_path


def test_test_scores_rank_only_what_devel_chose(grid):
    [made], _ = answer('table2', grid)
    assert mark(made, f'{CHOSEN}, chosen on devel', 'd') == 'best'
    assert OTHER not in [line[0].text for line in made.rows]


def test_rows_are_compared_at_the_same_rate_and_each_at_its_best(grid):
    [made], details = answer('table2', grid)
    assert row(made, f'{CHOSEN}, chosen on devel')['d'].endswith(' †')
    assert 'differs from contextualized, rescaled, learning rate 0.0002' in made.note
    assert 'for 3 differences on single sets' in made.note
    against = {rate: f'contextualized, rescaled, learning rate {rate}' for rate in (0.0001, 0.0002)}
    lines = {
        (line[0].text, line[1].text): line[2].value for line in details['differences over pre-trainings'].rows
    }
    assert set(lines) == {(CHOSEN, against[0.0001]), (OTHER, against[0.0002]), (CHOSEN, against[0.0002])}
    assert lines[CHOSEN, against[0.0002]] == pytest.approx((f1(150) + f1(151)) / 2 - f1(100))


def test_rates_are_chosen_over_the_sets_that_all_of_them_have(tmp_path):
    for rate, right in ((1e-4, {'d': (100, 0.5), 'e': (100, 0.9)}), (2e-4, {'d': (100, 0.6)})):
        make(tmp_path / f'{rate}', [TOKENS], {0: right}, pretrain__learning_rate=rate)
    [made], _ = answer('table2', tmp_path)
    assert made.rows[0][0].text == 'contextualized, rescaled, learning rate 0.0002, chosen on devel'


def test_degeneration_is_a_difference_at_the_same_rate_of_mask_with_an_interval(tmp_path):
    change = {(0.8, 0.1, 0.1): 0.0, (1.0, 0.0, 0.0): -0.1}
    for corruption, less in change.items():
        for shown in (0.16, 0.2):
            for seed in (0, 1):
                name = f'{corruption[0]}-{shown}.seed-{seed}'
                phase = dataclasses.replace(WORDS_20, rate=shown / corruption[0], corruption=corruption)
                make(tmp_path / name, [phase] * 2, {1: {'bc5-chem': 120}}, seed)
                write_geometry(tmp_path / name, 0.5 + less * (1 + seed) + shown)
    [made], details = answer('corruption', tmp_path)
    assert {line[0].text for line in made.rows} == {
        '16 % shown, words 20 %',
        '20 % shown, words 25 %',
        '16 % shown, words 16 %, all [MASK]',
        '20 % shown, words 20 %, all [MASK]',
    }
    table = details['geometry of rare and frequent words']
    cells = {line[1].text: line[2] for line in table.rows if line[0].text == 'in context'}
    # -0.1 and -0.2 by seed: mean -0.15, deviation 0.0707, error 0.05, Student's 12.706 with one degree of freedom.
    for name in ('16 % shown, words 16 %, all [MASK] less 16 % shown, words 20 %',):
        assert cells[name].text == '-0.150 ± 0.635'
    assert cells['all [MASK] less 80-10-10, mean over 2 rates of [MASK]'].text == '-0.150 ± 0.635'


def test_corruptions_are_pooled_over_rates_of_mask_alone(tmp_path):
    change = {(0.8, 0.1, 0.1): 0.0, (0.9, 0.1, 0.0): 0.1, (0.9, 0.0, 0.1): 0.2}
    for corruption, more in change.items():
        for shown in (0.16, 0.2):
            for times in (1, 2):
                phase = dataclasses.replace(WORDS_20, rate=shown / corruption[0], corruption=corruption)
                folder = tmp_path / f'{"-".join(map(str, corruption))}.{shown}.{times}'
                make(folder, [phase] * 2, {}, pretrain__learning_rate=times * 1e-4)
                write_geometry(folder, 0.5 + times * more)
    table = answer('corruption', tmp_path)[1]['geometry of rare and frequent words']
    pooled = {line[1].text: line[2].text for line in table.rows if 'mean over 2 rates' in line[1].text}
    assert pooled == {
        f'{name} less 80-10-10, mean over 2 rates of [MASK], learning rate 0.000{times}': f'{times * more:+.3f}'
        for name, more in (('90-10-0', 0.1), ('90-0-10', 0.2))
        for times in (1, 2)
    }


def test_a_static_run_without_a_partner_is_no_answer_on_corruption(made_curricula):
    assert answer('corruption', made_curricula)[0][0].rows == []


def test_manifests_give_back_the_experiment(tmp_path):
    e = experiment([TOKENS, WORDS_20], seed=3, corpus__min_words=7, pretrain__beta2=0.98)
    folder = make(
        tmp_path / 'r', [TOKENS, WORDS_20], {1: {'d': 100}}, 3, corpus__min_words=7, pretrain__beta2=0.98
    )
    again = experiment_of(folder)
    for stage in ('corpus', 'vocab', 'contexts', 'surgery', 'rows', 'pretrain'):
        assert result_keys(again, STAGES[stage].sections) == result_keys(e, STAGES[stage].sections)
    assert again.phases == ('p0', 'p1')
    assert again.stages == ('corpus', 'vocab', 'contexts', 'surgery', 'rows', 'pretrain', 'finetune')


def test_manifests_that_are_damaged_or_do_not_belong_together_say_what_to_do(tmp_path):
    folder = make(tmp_path / 'r', [TOKENS], {0: {'d': 100}})
    manifest = read_json(folder / 'pretrain' / 'manifest.json')
    other = {**manifest, 'config': {**manifest['config'], 'phase.p0.rate': 7}}
    for content, message in (
        ({'stage': 'pretrain'}, r'pretrain/manifest\.json: is damaged'),
        ([1], r'pretrain/manifest\.json: is damaged'),
        (other, r'do not belong together .*; run its stages again under one config'),
    ):
        write_json(folder / 'pretrain' / 'manifest.json', content)
        with pytest.raises(InputError, match=message):
            read_runs([folder])


def test_devel_f1_over_pretraining_is_drawn_where_snapshots_were_fine_tuned(made_table2, tmp_path):
    absent = comparison_figures.devel_f1(trained_models(read_runs([made_table2])))
    assert absent.svg == ''
    assert 'snapshots' in absent.absent
    for number, strategy in enumerate(('contextualized', 'random_rows')):
        for seed in (0, 1):
            right = {'initial': {'bc5-chem': 60 + number}, 0: {'bc5-chem': 100 + number}}
            make(tmp_path / 'way' / f'{strategy}.{seed}', [TOKENS], right, seed, surgery__strategy=strategy)
    drawn = comparison_figures.devel_f1(trained_models(read_runs([tmp_path / 'way'])))
    assert f'contextualized, rescaled {f1(60):.4g} to {f1(100):.4g}' in drawn.alt
    assert f'random_rows {f1(61):.4g} to {f1(101):.4g}' in drawn.alt
    assert drawn.svg.startswith('<svg')


def read_models(*folders):
    return trained_models(read_runs(folders))


def in_order(curves):
    """Arm -> in order, seed -> words and value."""
    return {arm: [points[place] for place in sorted(points)] for arm, points in curves.items()}


def test_figure_3_is_of_one_setting_and_one_budget_and_counts_a_seed_once(tmp_path):
    for seed, right in enumerate((100, 110)):
        ends = {'initial': {'d': 60}, 0: {'d': right}}
        make(tmp_path / 'a' / f'a.seed-{seed}', [TOKENS], ends, seed)
        make(tmp_path / 'other' / f'words.seed-{seed}', [WORDS_15], {0: {'d': 10}}, seed + 5)
        make(tmp_path / 'other' / f'curriculum.seed-{seed}', [TOKENS, WORDS_15], {1: {'d': 10}}, seed)
    make(tmp_path / 'again' / 'x', [TOKENS], ends, 1)
    make(tmp_path / 'other' / 'longer', [TOKENS], ends, 2, phase__p0__duration=2 * WORDS)
    folders = [tmp_path / name for name in ('a', 'again', 'other')]
    models = read_models(*folders)
    made = comparison_figures.devel_f1(models)
    curves = in_order(comparison_figures.f1_curves(models)[0]['d'])
    end = {seed: (WORDS, pytest.approx(f1(right))) for seed, right in enumerate((100, 110))}
    assert curves['contextualized, rescaled'][1] == end
    assert 'Left out, since they were made differently: longer.' in made.caption
    assert PAPER_SETTINGS[0] in made.caption


def test_an_arm_is_one_curve_through_phases_that_differ_in_their_rates(tmp_path):
    ends = {'initial': {'d': 60}, 0: {'d': 100}, 1: {'d': 110}}
    make(tmp_path / 'a', [TOKENS] * 2, ends, phase__p1__learning_rate=5e-5)
    [points] = in_order(comparison_figures.f1_curves(read_models(tmp_path))[0]['d']).values()
    assert len(points) == 3


def test_evaluations_are_matched_by_phase_and_number_not_by_rounded_words(tmp_path):
    for seed, step in enumerate((21, 20)):  # steps are whole, and rows differ by seed
        folder = make(tmp_path / 'long' / f'a.seed-{seed}', [TOKENS] * 2, {}, seed, steps=(10, 22))
        run = Run(folder, experiment([TOKENS] * 2), quiet=True)
        run.metrics.write('pretrain', step, kind='evaluation', phase='p1', frozen_loss=4.5 - seed, tokens=0)
    make(tmp_path / 'short', [TOKENS], {})
    curves, _ = comparison_figures.loss_curves(read_models(tmp_path / 'short', tmp_path / 'long'))
    per_step = WORDS / STEPS
    [points] = in_order(curves).values()  # a setting alone and twice are one arm
    assert points == [
        {0: (WORDS, 5.0), 1: (WORDS, 5.0)},
        {0: (21 * per_step, 4.5), 1: (20 * per_step, 3.5)},
        {0: (22 * per_step, 4.0), 1: (22 * per_step, 4.0)},
    ]


def test_losses_are_drawn_over_words_for_each_order(made_curricula):
    drawn = comparison_figures.heldout_losses(trained_models(read_runs([made_curricula])))
    assert 'those that mask words are not' in drawn.caption
    for name in ('static: tokens 15 %', 'easy to hard', 'hard to easy'):
        assert f'{name} 5 to 2' in drawn.alt


def test_the_page_of_several_runs_stands_alone_beside_markdown_and_csv(table2, curricula, capsys):
    folders = [str(table2), str(curricula / 'a.seed-0'), str(curricula / 'a.seed-1')]
    assert cli.main(['report', *folders, f'--to={table2 / "page"}', '--loss=4,2.5']) == 0
    html = (table2 / 'page' / 'index.html').read_text('utf-8')
    assert 'http' not in re.sub(r'http://www\.w3\.org/\S+|http-equiv', '', html)
    command = unescape(re.search('Rebuilt by <code>(.*?)</code>', html)[1])
    assert shlex.split(command) == [
        'bioptimus',
        'report',
        *folders,
        f'--to={table2 / "page"}',
        '--loss=4,2.5',
    ]
    (table2 / 'page' / 'index.html').unlink()
    assert cli.main(shlex.split(command)[1:]) == 0
    assert (table2 / 'page' / 'index.html').read_text('utf-8') == html
    for question in QUESTIONS:
        assert question.title in html or question.title.partition(':')[0] in html
    markdown = (table2 / 'page' / 'tables.md').read_text('utf-8')
    assert f'**{statistics.fmean(f1(x) for x in RIGHT["averaged_input"]):.2f} ± ' in markdown
    assert f'<u>{statistics.fmean(f1(x) for x in RIGHT["random_rows"]):.2f} ± ' in markdown
    assert 'Made from ' in markdown
    assert 'PubMedBERT, Table 6: models' in markdown
    assert 'PubMedBERT, Table 12' not in markdown  # no relations here; the page says so
    assert re.search(r'<p><b>[^<]*PubMedBERT, Table 12', html)
    scores = (table2 / 'page' / 'csv' / 'table2.csv').read_text('utf-8').splitlines()
    [line] = [r for r in csv.reader(scores) if r[:1] == ['averaged_input, rescaled']]
    # Every table of the page that has rows has a file of its own.
    made = html.count('<figure class="table">')
    assert len(list((table2 / 'page' / 'csv').iterdir())) == made == len(re.findall(r'(?m)^\| :--', markdown))
    assert float(line[3]) == pytest.approx(statistics.fmean(f1(x) for x in RIGHT['averaged_input']))
    assert 'report: ' in capsys.readouterr().out


def test_the_page_begins_with_what_the_source_became(tmp_path):
    # devel, not test, says which model is the best: p0 on one set, p1 on the other.
    right = {
        'source': {'bc5-chem': ((100, 103, 98), 0.5), 'ncbi-disease': ((150, 149, 153), 0.5)},
        'initial': {'bc5-chem': (90, 0.4), 'ncbi-disease': (90, 0.4)},
        0: {'bc5-chem': ((150, 149, 152), 0.8), 'ncbi-disease': (190, 0.6)},
        1: {'bc5-chem': (190, 0.7), 'ncbi-disease': ((151, 153, 150), 0.7)},
    }
    folder = make(tmp_path / 'r', [TOKENS, MASKED], right, fine_tunings=(0, 1, 2))
    [m] = read_runs([folder])
    table = gain.gain(m)
    chem, disease = (row(table, name) for name in ('bc5-chem', 'ncbi-disease'))
    assert (chem['best on devel'], disease['best on devel']) == ('p0', 'p1')

    def paired(dataset, best):
        source, after = ([f1(x) for x in right[model][dataset][0]] for model in ('source', best))
        test = stats.ttest_rel(after, source)
        return statistics.fmean(source), statistics.fmean(after), test.confidence_interval(), test.pvalue

    before, after, interval, p = paired('bc5-chem', 0)
    assert chem['source'].startswith(f'{before:.2f} ± ')
    assert chem['gain'] == f'{after - before:+.2f}'
    assert [chem['95 % from'], chem['to']] == [f'{interval.low:+.2f}', f'{interval.high:+.2f}']
    assert (chem['verdict'], chem['p'], chem['seeds']) == ('better', f'{2 * p:.3f}', '3')  # Holm, of two
    low, high = map(float, chem['other items'].strip('[]').split(', '))
    assert 5 < low < after - before < high < 35
    *_, interval, p = paired('ncbi-disease', 1)
    assert (disease['verdict'], disease['p']) == ('not distinguishable', f'{p:.3f}')
    assert [disease['95 % from'], disease['to']] == [f'{interval.low:+.2f}', f'{interval.high:+.2f}']
    # The first screen has one rule: the last phase, whatever devel says, in the verdict and in the numbers.
    first, second, *_ = page.headlines(m, table)
    test = stats.ttest_rel([f1(190)] * 3, [f1(x) for x in right['source']['bc5-chem'][0]])
    low, high = test.confidence_interval()
    said = f'better, {f1(190) - before:+.2f} [{low:+.2f}, {high:+.2f}], p = {2 * test.pvalue:.4f}'
    assert first == (f'{before:.2f} → {f1(190):.2f}', f'test F1 on bc5-chem, source to p1: {said}')
    assert second[1].startswith('test F1 on ncbi-disease, source to p1: not distinguishable, ')
    assert not any('best on devel' in what for _, what in page.headlines(m, table))
    [one] = read_runs([make(tmp_path / 'one', [TOKENS, MASKED], right, fine_tunings=(0,))])
    alone = gain.gain(one)
    assert row(alone, 'bc5-chem')['verdict'] == 'one seed'
    [(_, said), *_] = page.headlines(one, alone)
    assert re.fullmatch(
        r'test F1 on bc5-chem, source to p1: \S+, not tested \(one seed\);'
        r' on other test items \[.*\]',
        said,
    )
    (folder / 'finetune' / 'p1' / 'ncbi-disease' / 'standard' / 'seed-1' / 'predictions.tsv').unlink()
    table = gain.gain(m)
    assert row(table, 'ncbi-disease')['verdict'] == NOT_RUN
    assert 'ncbi-disease is not tested: ' in table.note
    assert page.headlines(m, table)[1][1].endswith(f'source to p1: {disease["gain"]}, not tested')
    # The source is a rival too, of runs from the same source alone.
    [rivals], _ = answer('table6', folder)
    assert row(rivals, 'source')['bc5-chem, here'].startswith(f'{before:.2f}')
    other = make(tmp_path / 'o', [TOKENS, MASKED], right, weights='another')
    assert len(answer('table6', folder, other)[0]) == 2


def test_what_each_arm_took_is_on_the_page_of_several_runs_seeds_pooled(curricula, table2, capsys):
    """Phases of ten steps and 512,000 words end at losses of 5, 4, 3 and 2."""
    to = curricula / 'page'
    assert cli.main(['report', str(curricula), str(table2), f'--to={to}', '--loss=4,2.5', '--f1=68']) == 0
    assert 'id="effort"' in (to / 'index.html').read_text('utf-8')
    reached = comparison.effort(trained_models(read_runs([curricula])), (4, 2.5), (68,))
    cells = {(line[0].text, line[1].text): [cell.text for cell in line[2:]] for line in reached.rows}
    assert cells['held-out loss 4', 'hard to easy'][:2] == ['step 20', '20 ± 0']
    assert cells['held-out loss 2.5', 'static: tokens 15 %'][:2] == ['step 40', '40 ± 0']
    assert {line[-1].text for line in reached.rows} == {'2'}
    # Found are 100 and more by ten a phase, less five an arm, and one more with seed 1: 68 is 104 of them.
    assert cells['devel F1 on bc5-chem, 68', 'static: tokens 15 %'][0] == 'p1'
    for name in ('tables.md', 'csv/effort.csv'):
        assert 'held-out loss 2.5' in (to / name).read_text('utf-8')
    assert cli.main(['report', str(table2), '--loss=x']) == 2
    assert '--loss' in capsys.readouterr().err


def test_learning_rates_and_budgets_are_arms_of_their_own(tmp_path):
    for name, rate, length in (('a', 1e-4, WORDS), ('b', 2e-4, WORDS), ('c', 1e-4, 2 * WORDS)):
        changes = {'pretrain__learning_rate': rate, 'phase__p0__duration': length}
        make(tmp_path / name, [TOKENS], {0: {'bc5-chem': 100}}, **changes)
    reached = comparison.effort(trained_models(read_runs([tmp_path])))
    assert {line[1].text for line in reached.rows if 'loss' in line[0].text} == {
        'learning rate 0.0001, 512,000 words',
        'learning rate 0.0002, 512,000 words',
        'learning rate 0.0001, 1,020,000 words',
    }


def test_arms_that_differ_in_the_rates_of_later_phases_are_named_by_them(tmp_path):
    for name, changes in (
        ('a', {}),
        ('b', {'phase__p1__learning_rate': 5e-5}),
        ('c', {'phase__p1__schedule': 'continue'}),
    ):
        make(tmp_path / name, [TOKENS] * 2, {1: {'bc5-chem': 100}}, **changes)
    reached = comparison.effort(trained_models(read_runs([tmp_path])))
    assert {line[1].text for line in reached.rows if 'loss' in line[0].text} == {
        'learning rate: a path for each phase',
        'learning rates of phases as 1 : 0.5, learning rate: a path for each phase',
        'learning rate: one path',
    }


@pytest.fixture(scope='module')
def two_on_record(made_table2, tmp_path_factory):
    """The lines of two arms in the records that a report writes."""
    page, arms = tmp_path_factory.mktemp('page'), [made_table2 / 'x.seed-0', made_table2 / 'y.seed-0']
    assert cli.main(['report', *map(str, arms), f'--to={page}']) == 0
    return (page / 'results.jsonl').read_text('utf-8').splitlines()


def bomb():
    """Seventy million zeros: more than any test set has."""
    return base64.b64encode(zlib.compress(bytes(70_000_000))).decode()


def test_records_alone_give_the_tables_of_the_run_folders(table2, curricula, tmp_path, capsys):
    """Scores, both tests, losses, geometry and effort, when the folders are gone."""
    for folder in table2.iterdir():
        spent(folder)
    folders = [table2, *sorted(curricula.glob('[ac].seed-*'))]
    for number, folder in enumerate(folders[1:]):
        write_geometry(folder, 0.3 + number**2 / 100, 'p3')
    texts = []

    def report(to, *given):
        assert cli.main(['report', *map(str, given), f'--to={to}', '--loss=5.5']) == 0
        texts.append((to / 'tables.md').read_text('utf-8').partition('\n### ')[2])

    report(tmp_path / 'first', *folders)
    records = tmp_path / 'first' / 'results.jsonl'
    for folder in folders:
        shutil.rmtree(folder)
    report(tmp_path / 'second', records)
    assert (tmp_path / 'second' / 'results.jsonl').read_bytes() == records.read_bytes()
    for part in ('over pre-trainings', 'other test items', 'geometry of rare', 'held-out loss'):
        assert f': {part}' in texts[0] or f' {part}\n' in texts[0]
    assert re.search(r'held-out loss 5\.5 .*0\.084\S* \| 0\.139 \| 3 \|', texts[0])  # hours, kWh
    plain = [re.sub(r'Made from .*|\S+/(?=\w\.seed-)', '', text) for text in texts]
    assert plain[1] == plain[0]


@pytest.mark.parametrize(
    ('change', 'message'),
    [
        (lambda line: line[:-9], 'line 2: is damaged'),
        (lambda line: '[1]', r'line 2: is damaged \(no object\)'),
        (lambda line: '[' * 100_000, 'line 2: is damaged'),
        (
            lambda line: line.replace('"manifests"', '"x"'),
            r"line 2: .*\(without the key 'manifests'\)",
        ),
        (
            lambda line: line.replace('"devel"', '"x"'),
            r"line 2: .*\(finetuned: entry 1: without the key 'devel'\)",
        ),
        (
            lambda line: line.replace('"arm"', '"curriculum": [{"name": "p0", "start": 0}], "arm"', 1),
            r"line 2: .*\(curriculum: entry 1: without the key 'stop'\)",
        ),
        (lambda line: re.sub('"arm": "[^"]+"', '"arm": "../x"', line), r'line 2: .*\(arm is not a name\)'),
        (lambda line: line.replace('"counts": "', '"counts": "A'), r'its counts by unit are damaged'),
        (
            lambda line: re.sub('"counts": "[^"]+"', f'"counts": "{bomb()}"', line),
            r'its counts by unit are damaged \(too long or cut off\)',
        ),
        (lambda line: line.replace('"text": "', '"text": "0'), 'has another test file than'),
    ],
)
def test_a_damaged_record_is_named(two_on_record, tmp_path, capsys, change, message):
    first, second = two_on_record
    file = tmp_path / 'results.jsonl'
    file.write_text(f'{first}\n{change(second)}\n', 'utf-8')
    code = cli.main(['report', str(file), f'--to={tmp_path / "again"}'])
    if 'line 2' in message:
        assert code == 3
        assert re.search(message, capsys.readouterr().err)
    else:  # the scores are whole: what is lost is said in the note
        assert re.search(message, (tmp_path / 'again' / 'tables.md').read_text('utf-8'))


def test_one_page_by_default_lies_in_what_the_runs_have_in_common(table2):
    assert comparison.write([str(table2 / 'x.seed-0'), str(table2 / 'y.seed-0')]) == table2 / 'tables'
    beside = (table2 / 'tables' / 'csv' / 'side-by-side.csv').read_text('utf-8').splitlines()
    assert {tuple(line.split(',')[:2]) for line in beside[1:]} >= {('p0', 'x'), ('p0', 'y')}


@pytest.mark.parametrize(
    ('arguments', 'code', 'expected'),
    [
        (['report'], 2, 'report takes run folders, or --config and --workdir'),
        (['report', '{tmp}/nothing'], 3, 'nothing: no such run folder, and no file of records'),
        (['report', '{tmp}'], 3, 'is not a run and holds none'),
        (['report', '{tmp}', '--config=small'], 2, 'takes no --config'),
        (['report', '--config=small'], 2, 'report takes run folders, or --config and --workdir'),
    ],
)
def test_wrong_usage_is_one_line(tmp_path, capsys, arguments, code, expected):
    assert cli.main([a.format(tmp=tmp_path) for a in arguments]) == code
    error = capsys.readouterr().err.strip()
    assert expected in error
    assert '\n' not in error


def test_the_papers_numbers_are_those_of_its_tables():
    assert paper.STATIC['words 20 %'] == (93.96, 84.28, 88.85, 83.89, 78.8)
    assert paper.NO_CURRICULUM == (93.86, 84.29, 88.92, 84.53, 79.07)
    assert tuple(paper.STATIC) == PAPER_SETTINGS[:3]
    gains = [a - b for a, b in zip(paper.VERSIONS['0.4'], paper.NO_CURRICULUM, strict=True)]
    assert [round(g, 2) for g in gains] == [0.24, 0.69, 0.62, 0.72, 0.39]


def test_a_phase_is_named_by_its_objective_where_that_is_not_the_usual_one():
    def named(objective):
        return phase_name(experiment([TOKENS], pretrain__objective=objective), 'p0')

    assert named('mlm') == 'tokens 15 %'
    assert named('nsp') == 'nsp, tokens 15 %'
    assert named('causal') == 'causal'


def test_settings_of_the_objectives_of_phases_are_conditions():
    config = experiment([TOKENS], pretrain__objective='rtd', objective__rtd__share=0.25)
    plain = experiment([TOKENS])
    of_both = [_of_objectives(one.resolved.objective, [one.objective_in('p0')]) for one in (config, plain)]
    assert (of_both[0]['objective.rtd.share'], of_both[1]) == ('0.25', {})
