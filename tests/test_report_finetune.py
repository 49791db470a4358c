"""Entity recognition in the report: hand-made records of stage `finetune`, and what tables and figures make of them."""

import dataclasses
import itertools
import re

import pytest
from toy_measures import MODELS, cell, labels_of, lint_record, measure, scores, statistics_of, write_scores

from bioptimus_jax.errors import InputError
from bioptimus_jax.experiment.schema import Experiment
from bioptimus_jax.finetuning.config import Finetune
from bioptimus_jax.finetuning.entities.slices import SLICINGS
from bioptimus_jax.model.folder import given
from bioptimus_jax.records.record import plain
from bioptimus_jax.report import page
from bioptimus_jax.report.drawing import SERIES, shown
from bioptimus_jax.report.gain import gain
from bioptimus_jax.report.layout import NOT_RUN, percents
from bioptimus_jax.report.measures import read_measures
from bioptimus_jax.report.sections import entities, mentions, phases, sets
from bioptimus_jax.run.folder import Run
from bioptimus_jax.storage.files import read_jsonl, write_json, write_jsonl


@pytest.fixture
def run(tmp_path):
    """What configs/finetune.py makes: two models, two sets, two settings, two seeds, and nothing that trains."""
    settings = dataclasses.replace(
        Finetune(),
        models=('/models/one', '/models/two'),
        settings=('standard', 'hot'),
        setting={'hot': {'learning_rate': 1e-3}},
        seeds=(0, 1),
    )
    experiment = dataclasses.replace(Experiment(), stages=('finetune', 'report'), finetune=settings)
    run = Run(tmp_path / 'scoring', experiment, quiet=True)
    base = {'one': 0.6, 'two': 0.7}
    write_jsonl(
        run.workdir / 'finetune' / 'results.jsonl',
        [
            cell(
                model,
                dataset,
                setting,
                seed,
                base[model] + (setting == 'hot') * 0.1 + seed / 50,
                ('X', 'Y') if dataset == 'alpha' else ('X',),
            ).json()
            for model in MODELS
            for dataset in ('alpha', 'ncbi-disease')
            for setting in ('standard', 'hot')
            for seed in (0, 1)
        ],
    )
    write_scores(run.workdir / 'finetune', MODELS, ('alpha', 'ncbi-disease'))
    return run


def texts(table, *first):
    """Column -> text of the row that begins with these cells."""
    (row,) = [r for r in table.rows if tuple(c.text for c in r[: len(first)]) == first]
    return {c: value.text for c, value in zip(table.columns, row, strict=True)}


def test_what_a_score_does_not_say_stands_beside_it(run):
    """Gold mentions that are left out, a strict score that is none, and the score of bare text where it is another."""
    file = run.workdir / 'finetune' / 'results.jsonl'
    records = read_jsonl(file)
    assert 'F1 of bare text' not in entities.scores(read_measures(run)).columns
    recalls = itertools.count()
    for record in records:
        if record['dataset'] == 'alpha':
            record |= {'gold_in_file': 102, 'gold_left_out': 2, 'gold_not_strict': 7}
            record['recall_in_file'] = 0.3 + 0.4 * (next(recalls) % 2)  # of two seeds
            record['applied'] = {'default': scores(0.25)}
    write_jsonl(file, records)
    table = entities.scores(read_measures(run))
    alpha, other = (texts(table, dataset, 'one', 'hot, chosen') for dataset in ('alpha', 'ncbi-disease'))
    assert alpha['mentions scored'] == '100 / 102 (2 left out; recall over all 50.00 ± 28.28)'
    assert (alpha['strict F1'], alpha['F1 of bare text'].split()[0]) == ('not defined', '25.00')
    assert other['strict F1'] != 'not defined'
    assert other['F1 of bare text'] == NOT_RUN
    assert 'of bare text is the score where' in table.note


def rewrite(run, name, value):
    write_json(run.workdir / 'finetune' / name, value)
    return read_measures(run)


def test_scores_with_interval_untyped_and_failed_seeds(run):
    found = [statistics_of('one', 'alpha', 'hot', [('1', 'devel F1 is 0')])]
    table = entities.scores(rewrite(run, 'statistics.json', found))
    assert texts(table, 'alpha', 'one', 'hot, chosen') == {
        'set': 'alpha',
        'model': 'one',
        'setting': 'hot, chosen',
        'F1': '70.00 ± 1.41',
        '95 %': '60.10-72.34',
        'strict F1': '68.00 ± 1.41',
        'relaxed F1': '74.00 ± 1.41',
        'untyped F1': '73.00 ± 1.41',
        'devel F1': '71.00 ± 1.41',
        'seeds': '2, 1 failed',
        'precision': '69.00 ± 1.41',
        'recall': '71.00 ± 1.41',
        'mentions scored': '100 / 100',
        'training time': '1 min 0 s',
    }
    other = texts(table, 'ncbi-disease', 'two', 'standard')
    assert (other['F1'], other['95 %'], other['seeds']) == ('70.00 ± 1.41', NOT_RUN, '2')
    failed = 'one on alpha (hot), seed 1: devel F1 is 0; F1 without failed seeds 75.00. '
    assert f'Failed seeds, which the means include: {failed}' in table.note
    assert 'over documents of the test set' in table.note


def test_baselines_are_rows_of_the_sets_that_have_some(run):
    m = read_measures(run)
    of_nothing = {'majority': 0.5, 'prior': 0.25}
    found = [dataclasses.replace(r, **of_nothing) if r.dataset == 'alpha' else r for r in m.finetuned]
    m = dataclasses.replace(m, finetuned=found)
    table = entities.scores(m)
    assert [row[1].text for row in table.rows][:2] == ['majority', 'prior']
    row = texts(table, 'alpha', 'prior')
    assert (row['F1'], row['setting'], row['devel F1'], row['seeds']) == ('25.00', *[NOT_RUN] * 3)
    assert not {'majority', 'prior'} & {row[1].text for row in table.rows if row[0].text != 'alpha'}
    assert 'Majority: the answer that training gives most often' in table.note
    trained = dataclasses.replace(m, run=Run(run.workdir, Experiment(), quiet=True))
    row = texts(phases.phases(trained), 'majority')
    assert (row['F1 alpha'], row['F1 ncbi-disease']) == ('50.00', NOT_RUN)


def test_many_failed_seeds_are_counted_not_listed(run):
    failures = [(str(seed), f'reason {seed}') for seed in range(7)]
    found = [statistics_of('one', 'alpha', 'hot', failures)]
    note = entities.scores(rewrite(run, 'statistics.json', found)).note
    assert 'reason 4' in note
    assert 'reason 5' not in note
    assert 'and 2 more in finetune/statistics.json' in note


def test_what_a_task_does_not_count_has_no_columns(run):
    m = read_measures(run)
    bare = [dataclasses.replace(r, test_untyped=None, test_by_type=None, history=()) for r in m.finetuned]
    m = dataclasses.replace(m, finetuned=bare, statistics=[], slices=[], lint=[], labels={})
    columns = entities.scores(m).columns
    assert 'untyped F1' not in columns
    assert '95 %' not in columns
    assert not entities.by_type(m).rows
    assert not mentions.table(m, 'surface').rows
    for draw in (draw for section in (entities, mentions, sets) for draw in section.SECTION.figures):
        if draw is not entities.entity_f1:
            assert draw(m).absent, draw.__name__


def test_types_of_the_chosen_setting_of_sets_with_several(run):
    table = entities.by_type(read_measures(run))
    assert [[c.text for c in row] for row in table.rows] == [
        ['alpha: X', 'one', '60', '69.00 ± 1.41', '71.00 ± 1.41', '70.00 ± 1.41'],
        ['alpha: X', 'two', '60', '79.00 ± 1.41', '81.00 ± 1.41', '80.00 ± 1.41'],
        ['alpha: Y', 'one', '40', '79.00 ± 1.41', '81.00 ± 1.41', '80.00 ± 1.41'],
        ['alpha: Y', 'two', '40', '89.00 ± 1.41', '91.00 ± 1.41', '90.00 ± 1.41'],
    ]
    assert [marks[5] for marks in table.marks()] == ['second', 'best'] * 2


def test_sets_beside_published_counts(run):
    record = lint_record('ncbi-disease', unseen_labels={'B-Z': 4})
    record['splits']['train'] |= {'blurb': 5000, 'repairs': {'orphan I-': 2}}
    record['splits']['devel'] |= {'blurb': 5003, 'repairs': {'orphan I-': 1, 'no blank line': 1}}
    record['splits']['test'] |= {'blurb': 4998, 'public_files': 5000}
    record['tagged_differently'] = {'sentences': 7, 'examples': ['A b .', 'C .']}
    mixed = lint_record('mixed', form='BRAT', merged_types=['X', 'Y'])
    mixed['splits']['test']['documents'] = 12
    table = sets.counted(rewrite(run, 'lint.json', [record, mixed]))
    rows = [[c.text for c in row] for row in table.rows]
    assert list(table.columns) == [
        *('set', 'split', 'tags', 'documents', 'sentences', 'words', 'mentions', 'BLURB', 'repairs'),
        *('again within', 'from train', 'from devel'),
    ]
    counts = [NOT_RUN, '1,000', '20,000', '5,000']
    assert rows == [
        ['ncbi-disease', 'train', 'IOB2', *counts, '5,000', '2', '0', NOT_RUN, NOT_RUN],
        ['ncbi-disease', 'devel', 'IOB2', *counts, '5,003 (-3)', '2', '1', '3', NOT_RUN],
        ['ncbi-disease', 'test', 'IOB2', *counts, '4,998 (+2, known)', '0', '2', '4', '5'],
        ['mixed', 'train', 'BRAT', *counts, NOT_RUN, '0', '0', NOT_RUN, NOT_RUN],
        ['mixed', 'devel', 'BRAT', *counts, NOT_RUN, '0', '1', '3', NOT_RUN],
        ['mixed', 'test', 'BRAT', '12', *counts[1:], NOT_RUN, '0', '2', '4', '5'],
    ]
    again = (
        'sentences that occur earlier (mentions in them): within devel 1 (0), within test 2 (0), '
        'devel from train 3 (0), test from train 4 (0), test from devel 5 (0)'
    )
    said = [
        'train: orphan I-: 2',
        'devel: orphan I-: 1',
        'devel: no blank line: 1',
        'not in train, cannot be learned from it: B-Z 4',
        again,
        "tagged in more than one way: 7 sentences, as 'A b .'",
    ]
    pieces = [
        'one: 9 sentences of more than 128 pieces, cut into windows (longest: 130)',
        'one: 6 words without a piece, which count as O (3 in mentions; 0 mentions cannot be found): ',
    ]
    notes = [f'ncbi-disease: {x}' for x in (*said, *pieces)]
    notes += [f'mixed: {x}' for x in ('X, Y are read as one type', again, *pieces)]
    assert table.note.endswith(f'{"; ".join(notes)}.')


def test_sets_that_are_not_blurb_s_have_no_such_column(run):
    columns = sets.counted(read_measures(run)).columns
    assert 'BLURB' not in columns
    assert 'documents' not in columns


def test_recall_by_class_under_the_setting_that_devel_chooses(run):
    m = read_measures(run)
    assert mentions.table(m, 'pieces').rows == []  # hot is chosen, and the slices are those of standard
    sliced = [{**r.json(), 'setting': 'hot'} for r in m.slices]
    sliced[0]['slices'] = {'pieces': {'2': measure(0.5, 3), '5+': measure(0.25, 1)}}
    m = rewrite(run, 'slices.json', sliced)
    table = mentions.table(m, 'pieces')
    assert list(table.columns) == ['set', 'model', '1', '2', '3-4', '5+']
    assert [[c.text for c in row] for row in table.rows] == [
        ['alpha', 'one', NOT_RUN, '50.0 [45.0-55.0] of 3', NOT_RUN, '25.0 [20.0-30.0] of 1'],
        ['alpha', 'two', '80.0 [75.0-85.0] of 700', NOT_RUN, '60.0 [55.0-65.0] of 400', NOT_RUN],
        *(
            ['ncbi-disease', name, '80.0 [75.0-85.0] of 700', NOT_RUN, '60.0 [55.0-65.0] of 400', NOT_RUN]
            for name in ('one', 'two')
        ),
    ]
    seen = texts(mentions.table(m, 'surface'), 'ncbi-disease', 'two')
    assert seen['seen'] == '90.0 [85.0-95.0] of 1,200'
    assert "no model of this run's own" in mentions.table(m, 'contexts').absent


def test_every_slicing_has_a_title_and_a_note():
    assert set(mentions.SHOWN) == set(SLICINGS)


def test_an_interval_that_is_not_defined_is_left_out():
    assert percents([0.1, 0.25]) == '10.00-25.00'
    assert percents([float('nan'), 0.2]) == percents(None) == ''


def test_figures_name_what_they_show(run):
    m = read_measures(run)
    m = dataclasses.replace(m, slices=[dataclasses.replace(r, setting='hot') for r in m.slices])
    assert entities.entity_f1(m).title == 'Test F1 of every model'
    assert entities.entity_f1(m).alt == (
        'Test F1 of every model. alpha 70 (one), 80 (two); ncbi-disease 70 (one), 80 (two).'
    )
    one_set = r'one [\d.]+ to 71; two [\d.]+ to 81'
    said = rf'Devel F1 while fine-tuning. alpha: {one_set}. ncbi-disease: {one_set}.'
    assert re.fullmatch(said, entities.epoch_f1(m).alt)
    assert 'alpha: one 90 (seen), 50 (unseen);' in mentions.seen_recall(m).alt
    assert 'two 80 (1), 60 (3-4).' in mentions.piece_recall(m).alt
    assert 'trains no phases' in entities.checkpoint_f1(m).absent
    assert "no model of this run's own" in mentions.context_recall(m).absent
    assert sets.label_shares(m).alt.startswith(
        'Percent of the words that are in mentions: alpha, train 10.0; alpha, devel 10.0;'
    )
    for draw in (entities.entity_f1, entities.epoch_f1, mentions.seen_recall):
        svg = draw(m).svg
        assert all(f'>{name}<' in svg for name in ('one', 'two'))
        assert not re.search(r'#0[1a]0[2b]0[3c]', svg)


def test_types_beyond_the_colours_are_one(run):
    m = rewrite(run, 'labels.json', {'alpha': labels_of([f'T{i}' for i in range(len(SERIES) + 2)])})
    svg = sets.label_shares(m).svg
    assert len(re.findall(r'>T\d<', svg)) == len(SERIES) - 1
    assert f'>{sets.OTHER}<' in svg
    assert 'alpha, test 10.0' in sets.label_shares(m).alt


def test_checkpoints_stand_at_their_steps(tmp_path):
    run = Run(tmp_path / 'r', Experiment(), quiet=True)
    f1 = {'initial': 0.5, '0.1@50': 0.6, '0.1': 0.7, '0.2': 0.8, 'elsewhere': 0.9}
    cells = [cell(x, 'alpha', 'standard', seed, v + seed / 10) for x, v in f1.items() for seed in (0, 1)]
    write_jsonl(run.workdir / 'finetune' / 'results.jsonl', plain(cells))
    write_json(run.workdir / 'pretrain' / 'phases.json', {'0.1@50': 50, '0.1': 100, '0.2': 2000})
    run.metrics.write(
        'pretrain',
        0,
        kind='evaluation',
        phase='initial',
        frozen_loss=9.0,
        losses={},
        tokens=0,
        phase_end=True,
    )
    m = read_measures(run)
    assert m.on_the_way == ['initial', '0.1@50', '0.1', '0.2', '0.3', '0.4']
    assert [m.step_of(x) for x in m.on_the_way] == [0, 50, 100, 2000, None, None]
    figure = entities.checkpoint_f1(m)
    assert figure.alt == 'Devel F1 over pre-training. alpha 55 to 85.'
    m = dataclasses.replace(m, finetuned=[r for r in m.finetuned if r.model in ('0.2', 'elsewhere')])
    assert 'fewer than two checkpoints' in entities.checkpoint_f1(m).absent


def test_figures_of_lines_leave_out_what_they_have_no_colour_for(tmp_path):
    run = Run(tmp_path / 'r', Experiment(), quiet=True)
    names = [name for p in ('0.1', '0.2') for name in (f'{p}@25', f'{p}@50', f'{p}@75', p)]
    write_jsonl(
        run.workdir / 'finetune' / 'results.jsonl',
        [cell(x, 'alpha', 'standard', 0, 0.5).json() for x in names],
    )
    assert shown(read_measures(run)) == (['0.1', '0.2'], 'Snapshots are left out.')
    paths = [cell(f'm{i}', 'alpha', 'standard', 0, 0.5 + i / 100) for i in range(9)]
    write_jsonl(run.workdir / 'finetune' / 'results.jsonl', plain(paths))
    models, left_out = shown(read_measures(run))
    assert models == [f'm{i}' for i in range(2, 9)]
    assert left_out.startswith('The 7 of 9 models')


@pytest.mark.parametrize(
    ('entries', 'names'),
    [
        (('FacebookAI/roberta-large', 'xlm-roberta-large'), ['roberta-large', 'xlm-roberta-large']),
        (('bio-base=/models/base', '/a/bert', '/a/my_bert'), ['bio-base', 'bert', 'my_bert']),
        (('0.4', '/runs/b/export/0.4'), ['0.4', 'b_0.4']),
    ],
)
def test_a_model_is_called_as_it_was_scored_and_no_other_is(entries, names, run):
    """Figures are by these names: of two alike, one line would stand for both models."""
    settings = dataclasses.replace(run.config.finetune, models=entries)
    experiment = dataclasses.replace(run.config, finetune=settings)
    m = dataclasses.replace(read_measures(run), run=Run(run.workdir, experiment, quiet=True))
    assert [m.label(given(entry)[0]) for entry in entries] == names


def there(*titles):
    """The given titles that are titles of sections; the lab may be absent."""
    return [title for title in titles if title in {section.title for section in page.sections()}]


def test_page_of_a_run_that_only_scores(run):
    m = read_measures(run)
    (run.workdir / 'report').mkdir()
    page.build(run, run.workdir / 'report')
    text = (run.workdir / 'report' / 'index.html').read_text()
    assert page.description(read_measures(run)) == (
        'Fine-tuning for named-entity recognition: 2 models (one, two), on 2 sets (alpha, ncbi-disease), 2 settings, '
        '2 seeds. Nothing is pre-trained here.'
    )
    rows = [dataclasses.replace(r, task='classes') if r.dataset == 'alpha' else r for r in m.finetuned]
    several = page.description(dataclasses.replace(m, finetuned=rows))
    assert several.startswith('Fine-tuning for text classification and named-entity recognition: 2 models')
    assert [t for _, t in page.headlines(m, gain(m))] == [
        'test F1 on alpha, best on devel: two',
        'test F1 on ncbi-disease, best on devel: two',
    ]
    headings = re.findall('<h2>(.*?)</h2>', text)
    others = 'Beside other papers'  # of the lab, as some of those that are gone
    assert headings == there('Fine-tuning', others, 'Entity sets', 'Stages')
    for title, reason in {
        'Entities in text': 'no predictions of entities are kept in this run.',
        'Mentions found and missed': 'stage finetune has not sliced the mentions.',
    }.items():
        assert f'<b>{title}</b>: {reason}' in text
    gone = there(
        *(
            'Phases',
            'Hidden words',
            'Vectors of sentences',
            'Corpus',
            'Vocabulary',
            'New tokens',
            'Difficulty',
            'Training',
            'Geometry',
        ),
        *('Efficiency', 'Goodput'),
    )
    assert f'<b>{", ".join(gone)}</b>: not part of this run. Its stages are finetune, report.' in text
    shown = re.sub(f'<h2>{others}.*?(?=<h2>)|<details>.*</details>', '', text, flags=re.DOTALL)
    for wrong in ('from scratch', 'curriculum', 'initial (step 0)'):
        assert wrong not in shown
    assert 'trains no phases' in phases.phases(read_measures(run)).absent


def test_the_headline_is_the_test_f1_of_the_model_that_devel_chooses(run):
    worse = [cell(MODELS[0], 'alpha', 'standard', 0, 0.7), cell(MODELS[1], 'alpha', 'standard', 0, 0.6)]
    worse[1].test['default'] = scores(0.9)
    m = dataclasses.replace(read_measures(run), finetuned=worse)
    assert ('69.0', 'test F1 on alpha, best on devel: one') in page.headlines(m, gain(m))


def test_page_before_anything_was_scored(tmp_path):
    settings = dataclasses.replace(Finetune(), models=('/models/one',))
    run = Run(
        tmp_path / 'r', dataclasses.replace(Experiment(), stages=('finetune',), finetune=settings), quiet=True
    )
    (run.workdir / 'report').mkdir()
    page.build(run, run.workdir / 'report')
    m = read_measures(run)
    assert 'Fine-tuning: 1 model (/models/one), 1 setting' in page.description(m)
    text = (run.workdir / 'report' / 'index.html').read_text()
    assert re.findall('<h2>(.*?)</h2>', text) == ['Stages']
    assert re.findall(r'<b>(.*?)</b>: stage finetune has not been run', text) == [
        ', '.join(
            there('Fine-tuning', 'Entities in text', 'Beside other papers', 'Mentions found and missed')
        )
    ]
    other = dataclasses.replace(m, run=Run(run.workdir, dataclasses.replace(run.config, stages=('corpus',))))
    assert page.description(other) == 'Stages corpus.'


def test_damaged_files_are_named(run):
    for name in ('statistics.json', 'slices.json', 'lint.json', 'labels.json'):
        file = run.workdir / 'finetune' / name
        kept = file.read_text()
        for text in ('[{"model": ', '{}' if kept[0] == '[' else '[]'):
            file.write_text(text)
            with pytest.raises(InputError, match=f'{name}: is damaged'):
                read_measures(run)
        file.write_text(kept)
    assert read_measures(run).statistics
