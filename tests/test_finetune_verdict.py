"""`bioptimus compare --models A B`: who is better, and what cannot be compared."""

import dataclasses
import random
import re
import shlex
import shutil

import numpy as np
import pytest
from scipy import stats
from toy_commands import document

from bioptimus_jax.cli import main as cli
from bioptimus_jax.errors import InputError
from bioptimus_jax.experiment.schema import Experiment
from bioptimus_jax.finetuning.config import Finetune
from bioptimus_jax.finetuning.entities.files import read_predictions, write_predictions
from bioptimus_jax.finetuning.finished import read_cell, read_model
from bioptimus_jax.finetuning.predictions import Predicted
from bioptimus_jax.finetuning.recommended import completed, open_keys
from bioptimus_jax.finetuning.summary import result_line
from bioptimus_jax.finetuning.verdict import compare_models
from bioptimus_jax.records.record import plain
from bioptimus_jax.report.gain import gain, others, overall
from bioptimus_jax.report.measures import Measures, read_measures
from bioptimus_jax.report.sections.in_text import in_text
from bioptimus_jax.report.use import use
from bioptimus_jax.run.folder import Run
from bioptimus_jax.scoring.score import score
from bioptimus_jax.storage.files import read_json, read_sealed, write_json, write_jsonl, write_sealed
from bioptimus_jax.surgery.config import Surgery


def gold_sentences(seed, number=120, documents=0):
    generator = random.Random(seed)
    sentences = []
    for at in range(number):
        words = tuple(f'w{generator.randrange(1000)}' for _ in range(8))
        tags = tuple(generator.choices(['O', 'B-Drug'], [3, 1], k=8))
        sentences.append(Predicted(words, tags, tags, at * documents // number if documents else 0))
    return sentences


def write_model(folder, sentences_of, seeds, errors, *, setting='standard', devel=None, name='0.4'):
    """Cells of a model that gets every word wrong with probability `errors`."""
    for dataset, sentences in sentences_of.items():
        for seed in seeds:
            generator = random.Random(f'{errors}{dataset}{seed}')
            swap = {'O': 'B-Drug', 'B-Drug': 'O'}
            predicted = [
                Predicted(
                    s.words,
                    s.gold,
                    tuple(swap[t] if generator.random() < errors else t for t in s.gold),
                    s.document,
                )
                for s in sentences
            ]
            cell = folder / dataset / setting / f'seed-{seed}'
            write_predictions(cell / 'predictions.tsv', predicted)
            test = score([s.gold for s in predicted], [s.predicted for s in predicted])
            f1 = (devel or {}).get(seed, test['default']['f1'])
            record = {'model': name, 'dataset': dataset, 'setting': setting, 'seed': seed, 'test': test}
            history = [{'epoch': 1, 'loss': 1.0, 'devel_f1': f1}, {'epoch': 2, 'loss': 0.2, 'devel_f1': f1}]
            write_json(cell / 'scores.json', {**record, 'devel': {'default': {'f1': f1}}, 'history': history})
    return str(folder)


@pytest.fixture
def sets():
    return {'drugs': gold_sentences(0), 'genes': gold_sentences(1, documents=40)}


def test_the_better_model_is_named_from_either_side(tmp_path, sets, capsys):
    good = write_model(tmp_path / 'good', sets, (0, 1, 2), 0.02)
    bad = write_model(tmp_path / 'bad', sets, (0, 1, 2), 0.10)
    assert cli.main(['compare', '--models', bad, good]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == f'A: {bad} (0.4, standard)'
    drugs, drugs_on_items, genes, _, everything, _ = lines[2:8]
    assert drugs.startswith('drugs: over fine-tunings B is better than A by ')
    assert drugs_on_items.startswith('  these fine-tuned models on other test items: B - A = ')
    assert '(3 seeds, 120 sentences; A ' in drugs
    assert '(3 seeds, 40 documents; A ' in genes
    assert everything.startswith('all 2 sets: over fine-tunings B is better than A by ')
    assert everything.endswith('(mean over sets; A better on 0, B on 2, not distinguishable on 0)')
    found = document(capsys, 'compare', '--models', bad, good)
    assert found['models']['B'] == {'folder': good, 'name': '0.4', 'setting': 'standard', 'left_out': 0}
    for one, line, of_items in (
        (found['sets'][0], drugs, drugs_on_items),
        (found['sets'][1], genes, lines[5]),
        (found['all'], everything, lines[7]),
    ):
        assert one['better'] == 'B'
        shown = f'{one["difference"]:.2f} F1 [{one["low"]:.2f}, {one["high"]:.2f}], p = '
        assert f'B is better than A by {shown}' in line
        items = one['on_other_items']
        assert f'B - A = {items["difference"]:.2f} F1 [{items["low"]:.2f}, {items["high"]:.2f}]' in of_items
    assert found['sets'][1]['documents'] == 40
    assert [len(found['sets'][0][side]) for side in 'AB'] == [3, 3]
    turned = compare_models(good, bad)
    assert turned[2].startswith('drugs: over fine-tunings A is better than B by ')
    # the same numbers from the other side
    assert turned[2].partition(' by ')[2].partition(' (')[0] == drugs.partition(' by ')[2].partition(' (')[0]
    low, high = map(float, drugs.partition('[')[2].partition(']')[0].split(', '))
    assert 0 < low < float(drugs.partition(' by ')[2].split()[0]) < high


@pytest.mark.parametrize(
    ('seeds', 'errors', 'word'),
    [
        ((0, 1, 2), {'source': 0.10, '0.1': 0.05, '0.4': 0.02}, 'better'),
        ((0, 1, 2), {'source': 0.02, '0.4': 0.10}, 'worse'),
        ((0, 1), {'source': 0.05, '0.4': 0.06}, 'not distinguishable'),
        ((7,), {'source': 0.10, '0.4': 0.02}, 'one seed'),
        ((0, 1, 2), {'initial': 0.10, '0.3': 0.02}, 'better'),
    ],
)
def test_the_verdict_of_a_page_is_what_compare_prints(seeds, errors, word, tmp_path, sets, capsys):
    """The source, or step 0 where it was not scored, against the last phase that was; to the digit."""
    for model, rate in errors.items():
        write_model(tmp_path / 'run' / 'finetune' / model, sets, seeds, rate, name=model)
    m = read_measures(Run(tmp_path / 'run', Experiment(), quiet=True))
    found = overall(m)
    assert found.word == word
    assert bool(found.worse) == (word == 'worse')
    advice = 'the source is ahead: take it there, or adapt with its vocabulary'
    assert any(advice in step for step in use(m, found).next) == (word == 'worse')
    assert shlex.split(found.command)[3:] == [
        str(tmp_path / 'run' / 'finetune' / list(errors)[at]) for at in (0, -1)
    ]
    assert cli.main(shlex.split(found.command)[1:]) == 0
    lines = capsys.readouterr().out.splitlines()
    [at] = [number for number, line in enumerate(lines) if line.startswith('all 2 sets: ')]
    numbers = re.search(r'-?[\d.]+ F1 \[.*?\], p = [\d.]+', lines[at if len(seeds) > 1 else at + 1])
    assert numbers[0] in found.sentence
    assert ('The source was not scored' in found.sentence) == ('source' not in errors)
    assert ('Only one seed: another fine-tuning might change this.' in found.sentence) == (len(seeds) == 1)
    last = list(errors)[-1]
    winner = {'better': last, 'worse': 'the source'}.get(word)
    assert winner is None or found.sentence.startswith(f'Over fine-tunings {winner} is better than ')


def test_the_verdict_says_which_model_has_to_be_scored(tmp_path, sets):
    """Phases alone, which the default of config.finetune.models is, also without a source; and step 0 alone."""
    with_source, without = Surgery(), Surgery(strategy='scratch')
    both = 'neither the source nor step 0 was scored; name source or initial beside the phases in'
    for model, surgery, lacking in (
        ('0.4', with_source, both),
        ('0.4', without, 'step 0 was not scored; name initial beside the phases in'),
        ('initial', with_source, 'no phase was scored.'),
    ):
        run = Run(tmp_path / surgery.strategy / model, Experiment(surgery=surgery), quiet=True)
        write_model(run.workdir / 'finetune' / model, sets, (0,), 0.1, name=model)
        found = overall(read_measures(run))
        assert (found.word, found.command) == ('not known yet', '')
        assert f': {lacking}' in found.sentence


def test_the_verdict_is_of_the_setting_that_is_chosen_over_several_models(tmp_path, sets):
    """The source alone would have taken the other one: with `tuned_on` the whole page is of one setting."""
    folder = tmp_path / 'run' / 'finetune'
    for model, setting, rate, devel in (
        ('source', 's1', 0.1, 0.80),
        ('source', 's2', 0.02, 0.81),
        ('0.4', 's1', 0.05, 0.85),
        ('0.4', 's2', 0.3, 0.60),
    ):
        of_devel = dict.fromkeys(range(3), devel)
        write_model(folder / model, sets, range(3), rate, setting=setting, devel=of_devel, name=model)
    tuned = dataclasses.replace(Finetune(), tuned_on=('source', '0.4'), settings=('s1', 's2'))
    m = read_measures(Run(tmp_path / 'run', dataclasses.replace(Experiment(), finetune=tuned), quiet=True))
    found = overall(m)
    assert found.word == 'better'
    assert [folder.rpartition(':')[2] for folder in shlex.split(found.command)[3:]] == ['s1', 's1']
    by = np.mean([np.mean(m.scores('0.4', d)) - np.mean(m.scores('source', d)) for d in sets])
    assert f'better than the source by {by:.2f} F1' in found.sentence
    shutil.rmtree(folder / 'source' / 'genes' / 's1')  # then sets have other settings, which no command names
    assert overall(read_measures(m.run)).command == ''


def test_the_mean_over_sets_says_by_which_seeds_it_is_tested(tmp_path, sets):
    for model, rate in (('a', 0.1), ('b', 0.05)):
        write_model(tmp_path / model, {'drugs': sets['drugs']}, range(4), rate, name=model)
        write_model(tmp_path / model, {'genes': sets['genes']}, range(2), rate, name=model)
    lines = compare_models(str(tmp_path / 'a'), str(tmp_path / 'b'))
    said = '  the mean over sets is tested by seeds 0, 1, which all sets have; on other test items it is of all seeds'
    assert lines[-2] == said


def test_entities_are_shown_in_the_sentences_that_changed_most(tmp_path):
    """Found, missed, not gold and in part, for the source and for the last phase; sentences of both ways."""
    words = ('no', 'cell', 'death', 'by', 'a < b', 'here')
    gold = ('O', 'B-X', 'I-X', 'O', 'B-Y', 'O')
    none, ends, other = ('O',) * 6, ('B-X', 'B-X', 'O', 'O', 'B-X', 'O'), ('O', 'O', 'O', 'O', 'O', 'B-Y')
    of_models = {'source': [none, gold, ends, gold], '0.4': [gold, none, other, gold]}
    for model, tagged in of_models.items():
        folder = tmp_path / 'run' / 'finetune' / model / 'drugs' / 'standard' / 'seed-0'
        write_predictions(folder / 'predictions.tsv', [Predicted(words, gold, x, 0) for x in tagged])
        record = {'model': model, 'dataset': 'drugs', 'setting': 'standard', 'seed': 0}
        devel = {'default': {'f1': 0.5}}
        write_json(folder / 'scores.json', {**record, 'devel': devel, 'test': devel, 'history': []})
    table = in_text(read_measures(Run(tmp_path / 'run', Experiment(), quiet=True)))
    assert table.columns == ['set', 'sentence', 'errors', 'source', '0.4']
    cells = {row[1].text: [cell.text for cell in row[2:]] for row in table.rows}
    whole, missed = (
        'no [cell death](X) by [a < b](Y) here',
        'no [cell death](X, missed) by [a < b](Y, missed) here',
    )
    assert cells == {
        '1': ['2 → 0', missed, whole],
        '2': ['0 → 2', whole, missed],
        '3': [
            '5 → 3',
            '[no](X, not gold) [cell](X, in part) [death](X, missed) by [a < b](Y, not X) here',
            'no [cell death](X, missed) by [a < b](Y, missed) [here](Y, not gold)',
        ],
    }
    assert 'of 4 sentences 2 have fewer errors after it, 1 more, and 2 have some' in table.note
    page = table.html()
    assert '<mark class="missed">a &lt; b <small>Y, missed</small></mark>' in page
    assert page.count('<mark class="found">') == 4


def test_the_verdict_is_the_paired_t_test_over_fine_tunings_sets_corrected_the_mean_not(tmp_path, sets):
    a, b = (write_model(tmp_path / str(e), sets, (0, 1, 2), e) for e in (0.05, 0.04))
    f1 = {
        name: [
            [100 * record.test['default']['f1'] for record in read_model(folder).records[name].values()]
            for folder in (a, b)
        ]
        for name in sets
    }
    lines = compare_models(a, b)
    tests = {name: stats.ttest_rel(theirs, ours) for name, (ours, theirs) in f1.items()}
    first, last = sorted(tests, key=lambda name: tests[name].pvalue)
    corrected = {first: 2 * tests[first].pvalue}
    corrected[last] = max(corrected[first], tests[last].pvalue)
    means = [[(x + y) / 2 for x, y in zip(*(f1[name][n] for name in sets), strict=True)] for n in (0, 1)]
    tests['all 2 sets'] = stats.ttest_rel(means[1], means[0])
    corrected['all 2 sets'] = tests['all 2 sets'].pvalue
    for name, test in tests.items():
        [line] = [line for line in lines if line.startswith(f'{name}: ')]
        low, high = test.confidence_interval()
        assert f'[{low:.2f}, {high:.2f}], p = {min(corrected[name], 1):.3f} (' in line
    assert 'over fine-tunings: Student' in lines[-1]
    assert 'on other test items: paired bootstrap' in lines[-1]
    assert 'Neither accounts for other pre-trainings' in lines[-1]


def test_predictions_from_elsewhere_are_beside_every_seed(tmp_path, sets, capsys):
    """The verdict is the t-test of our seeds against one number; the page of the run has it, too."""
    run = Run(tmp_path / 'run', Experiment(), quiet=True)
    ours = write_model(run.workdir / 'finetune' / '0.4', {'drugs': sets['drugs']}, (0, 1, 2), 0.05)
    gold, theirs = tmp_path / 'drugs' / 'test.tsv', tmp_path / 'theirs.tsv'
    gold.parent.mkdir()
    for file, wrong in ((gold, 0), (theirs, 2)):  # every second mention is missed
        tags = [['O' if wrong and at % wrong else t for at, t in enumerate(s.gold)] for s in sets['drugs']]
        rows = (zip(s.words, t, strict=True) for s, t in zip(sets['drugs'], tags, strict=True))
        file.write_text('\n\n'.join('\n'.join(map('\t'.join, row)) for row in rows) + '\n')
    command = ['score', str(gold), str(theirs), f'--to={run.workdir / "outside"}', '--name=them']
    assert cli.main(command) == 0
    assert 'entity F1, default: ' in capsys.readouterr().out
    lines = compare_models(str(run.workdir / 'outside' / 'them'), ours)
    [them], us = (
        [100 * r.test['default']['f1'] for r in read_model(str(folder)).records['drugs'].values()]
        for folder in (run.workdir / 'outside' / 'them', ours)
    )
    test = stats.ttest_1samp(us, them)
    low, high = test.confidence_interval()
    p = f'{test.pvalue:.{3 if test.pvalue >= 0.001 else 4}f}'
    assert f'[{low - them:.2f}, {high - them:.2f}], p = {p} (3 seeds' in lines[2]
    assert (
        lines[4] == '  A is one set of predictions without a seed: it is paired with every seed of the other'
    )
    records = list(read_model(ours).records['drugs'].values())
    table = others(Measures(run, finetuned=records))
    assert [cell.text for cell in table.rows[0]][:4] == ['drugs', 'them', 'entity F1', f'{them:.2f}']
    assert [cell.value for cell in table.rows[0]][6:8] == pytest.approx([low - them, high - them], abs=1e-6)
    # With a seed it is that seed's.
    assert cli.main([*command, '--seed=2', '--name=two']) == 0
    two = run.workdir / 'outside' / 'two'
    assert '(1 seed, 120 sentences' in compare_models(str(two), ours)[2]
    # Never both: one without a seed would hide the others.
    shutil.copytree(run.workdir / 'outside' / 'them' / 'drugs', two / 'drugs', dirs_exist_ok=True)
    file = two / 'drugs' / 'standard' / 'seed-0' / 'scores.json'
    write_sealed(file, {**read_sealed(file), 'model': 'two'})
    with pytest.raises(
        InputError, match=r'seed-0: holds .* without a seed, beside others of drugs; remove it'
    ):
        read_model(str(two))


def write_topics(folder, right_of_seeds, **more):
    """Cells of a model that gets so many of ten texts right, by seeds; `more`: what else records hold."""
    for seed, right in enumerate(right_of_seeds):
        cell = folder / 'topics' / 'standard' / f'seed-{seed}'
        gold = [('yes', 'no')[at % 2] for at in range(10)]
        given = [g if at < right else 'yes' if g == 'no' else 'no' for at, g in enumerate(gold)]
        rows = enumerate(zip(gold, given, strict=True))
        items = [{'words': [str(at)], 'gold': [g], 'predicted': [p], 'document': 0} for at, (g, p) in rows]
        write_jsonl(cell / 'predictions.jsonl', items)
        score = {'default': {'accuracy': right / 10}}
        place = {'model': folder.name, 'dataset': 'topics', 'task': 'classes', 'setting': 'standard'}
        write_json(
            cell / 'scores.json',
            {**place, 'seed': seed, 'devel': score, 'test': score, 'history': [], **more},
        )
    return str(folder)


def test_seeds_that_do_not_differ_are_no_certainty(tmp_path, capsys):
    """Two seeds on ten texts, of which both get 8 and 9 right."""
    a, b = write_topics(tmp_path / 'a', [8, 8]), write_topics(tmp_path / 'b', [9, 9])
    line = 'every seed gives the same difference, so not tested over fine-tunings: B - A = 10.00 accuracy'
    lines = compare_models(a, b)
    assert lines[2].startswith(f'topics: {line} (2 seeds, 10 texts; ')
    assert lines[4].startswith(f'all 1 set: {line} (mean over sets; A better on 0, B on 0, ')
    assert lines[4].endswith('not distinguishable on 0, not tested on 1)')
    found = document(capsys, 'compare', '--models', a, b)
    for one in (found['sets'][0], found['all']):
        assert (one['p'], one['low'], one['better']) == (None, None, '')
        assert one['not_tested'] == 'every seed gives the same difference'


def test_a_program_without_chance_is_one_run_under_whatever_seeds(tmp_path):
    def files(right):
        return {'outside': 'theirs.tsv', 'files': {'predictions.jsonl': str(right)}}

    a, b = (write_topics(tmp_path / x, [right] * 3, **files(right)) for x, right in (('a', 8), ('b', 9)))
    lines = compare_models(a, b)
    of_seeds = 'topics: one seed, so not tested over fine-tunings: B - A = 10.00 accuracy (1 seed, 10 texts; '
    assert lines[2].startswith(of_seeds)
    notes = [f'  {side} predicts the same with every seed, which is one run' for side in 'AB']
    assert lines[4:6] == notes
    # Beside what has chance it is compared with every seed, also with those that it was not scored under.
    ours = write_topics(tmp_path / 'ours', [7, 9, 8, 9])
    lines = compare_models(a, ours)
    assert lines[4] == '  A predicts the same with every seed: it is paired with every seed of the other'
    test = stats.ttest_1samp([70, 90, 80, 90], 80)
    assert f'p = {test.pvalue:.3f} (4 seeds, 10 texts; ' in lines[2]
    # Fine-tunings are several, though they predict the same.
    assert '(3 seeds, ' in compare_models(write_topics(tmp_path / 'c', [8] * 3), ours)[3]


def test_a_model_is_not_tested_against_itself(tmp_path, sets):
    a = write_model(tmp_path / 'a', sets, (0, 1), 0.05)
    lines = compare_models(a, a)
    of_seeds = 'every seed gives the same difference, so not tested over fine-tunings: B - A = 0.00 F1'
    of_items = 'these fine-tuned models on other test items: B - A = 0.00 F1 [0.00, 0.00], p = 1.000'
    said = [of_seeds, of_items] * 3
    assert [part in line for part, line in zip(said, lines[2:8], strict=True)] == [True] * 6
    assert compare_models(a, a) == lines


def test_seeds_are_paired_and_the_others_named(tmp_path, sets):
    a = write_model(tmp_path / 'a', {'drugs': sets['drugs']}, (0, 1, 2), 0.05)
    b = write_model(tmp_path / 'b', {'drugs': sets['drugs'], 'genes': sets['genes']}, (1, 2, 3), 0.05)
    lines = compare_models(a, b)
    assert lines[2:4] == ['genes: only B has it', 'Settings differ: seeds 0, 1, 2 (A), 1, 2, 3 (B).']
    at = next(i for i, line in enumerate(lines) if line.startswith('drugs: '))
    assert '(2 seeds, 120 sentences' in lines[at]
    assert lines[at + 2 : at + 4] == [
        '  left out, because only A has them: seeds 0',
        '  left out, because only B has them: seeds 3',
    ]


def trained_with(epochs, width=384, examples=500, **more):
    """What the record of a cell says of its training; `more`: keys whose values the rule has not decided."""
    rule = completed(Finetune(epochs=epochs, **more), width, examples)
    by_rule = open_keys(Finetune(epochs=epochs, **more))
    known = {'by_rule': by_rule, 'rule': 1} if by_rule else {}
    return {
        'train_sentences': examples,
        'settings': {'values': plain(rule.deciding()), 'width': width, **known},
    }


@pytest.mark.parametrize(
    ('a', 'b', 'said', 'first'),
    [
        # the example of the issue: the same weights after 3 and 5 epochs
        (
            trained_with(3),
            trained_with(5),
            'epochs 3 (A), 5 (B), so the difference is not of the models alone',
            {'setting': 'epochs', 'A': '3', 'B': '5', 'why': ''},
        ),
        (
            trained_with(3),
            trained_with(3, width=768),
            'learning_rate 0.0002 (A), 5e-05 (B), by the rule for 384 and 768 units',
            {
                'setting': 'learning_rate',
                'A': '0.0002',
                'B': '5e-05',
                'why': 'by the rule for 384 and 768 units',
            },
        ),
        (
            trained_with(0),
            trained_with(0, examples=300),
            'training examples 500 (A), 300 (B); epochs 20 (A), 30 (B), by the rule for 500 and 300 examples, so the '
            'difference is not of the models alone',
            {'setting': 'training examples', 'A': '500', 'B': '300', 'why': ''},
        ),
        (
            trained_with(3),
            trained_with(3, learning_rate=1e-4, batch_sentences=8),
            'batch_sentences 16 (A), 8 (B), the first one by the rule; learning_rate 0.0002 (A), 0.0001 (B), the first '
            'one by the rule, so the difference is not of the models alone',
            {'setting': 'batch_sentences', 'A': '16', 'B': '8', 'why': 'the first one by the rule'},
        ),
        (
            trained_with(3),
            trained_with(3) | {'settings': {**trained_with(3)['settings'], 'rule': 2}},
            'version of the rule 1 (A), 2 (B), so the difference is not of the models alone',
            {'setting': 'version of the rule', 'A': '1', 'B': '2', 'why': ''},
        ),
        # a number is a number, whoever has chosen it
        (trained_with(0), trained_with(20, learning_rate=2e-4, batch_sentences=16), '', None),
    ],
)
def test_settings_that_differ_are_named_before_the_difference(a, b, said, first, tmp_path, capsys):
    folders = [write_topics(tmp_path / name, [7, 9], **of) for name, of in (('a', a), ('b', b))]
    lines = compare_models(*folders)
    assert lines[2:3] == [f'Settings differ: {said}.'] if said else lines[2].startswith('topics: ')
    found = document(capsys, 'compare', '--models', *folders)['sets'][0]['settings_that_differ']
    assert next(iter(found), None) == first


def test_majority_and_prior_stand_beside_the_scores_of_two_models(tmp_path, capsys):
    """docs/howto/own-texts.md says that they are beside every test score."""
    folders = [write_topics(tmp_path / name, [7, 9], majority=0.6896, prior=0.5244) for name in 'ab']
    assert compare_models(*folders)[4] == '  without a model: majority 68.96, prior 52.44'
    record = read_cell(tmp_path / 'a' / 'topics' / 'standard' / 'seed-0' / 'scores.json')
    assert result_line('a/topics', record) == 'a/topics: test accuracy 70.00; majority 68.96, prior 52.44'


def test_a_page_names_the_settings_that_differ_before_its_verdict(tmp_path):
    """The sentence of the verdict and the note under the table of gains begin with them."""
    for model, of in (('source', trained_with(3)), ('0.4', trained_with(5))):
        write_topics(tmp_path / 'finetune' / model, [7, 9], name=model, **of)
    m = read_measures(Run(tmp_path, Experiment(), quiet=True))
    said = 'epochs 3 ({}), 5 (0.4), so the difference is not of the models alone. '
    assert overall(m).sentence.startswith(f'Settings differ: {said.format("the source")}')
    assert gain(m).note.startswith(f'Settings differ on topics: {said.format("source")}')


@pytest.mark.parametrize(
    ('path', 'entry', 'name'),
    [
        ('{tmp}/minilm', 'source', 'source'),
        ('{tmp}/minilm', '{tmp}/minilm', 'minilm'),
        ('{tmp}/minilm', 'base={tmp}/other/../minilm', 'base'),
        ('owner/minilm@main', 'owner/minilm@main', 'minilm'),
    ],
)
def test_the_source_is_known_by_its_folder_too(path, entry, name, tmp_path):
    """`The source was not scored` must not stand under its score, whatever it is called there."""
    path, entry = (text.format(tmp=tmp_path) for text in (path, entry))
    experiment = Experiment()
    experiment = dataclasses.replace(
        experiment,
        source=dataclasses.replace(experiment.source, path=path),
        finetune=dataclasses.replace(experiment.finetune, models=(entry, '0.4')),
    )
    run = Run(tmp_path / 'run', experiment, quiet=True)
    write_topics(run.workdir / 'finetune' / name, [6, 7])
    alone = read_measures(run)
    assert gain(alone).absent == 'no model of this run was scored beside the source.'
    assert not any('Score the source' in step for step in use(alone, overall(alone)).next)
    write_topics(run.workdir / 'finetune' / '0.4', [7, 9])
    m = read_measures(run)
    assert m.models[0] == name
    assert 'was not scored' not in overall(m).sentence
    assert overall(m).sentence.startswith('Not distinguishable over fine-tunings: 0.4 - the source = 15.00')
    [row] = [[cell.text for cell in row] for row in gain(m).rows]
    assert row[0] == 'topics'
    assert row[1].startswith('65.00')
    assert not any('Score the source' in step for step in use(m, overall(m)).next)


BASE = {'0:config.json': 'c', '1:model.safetensors': 'w', '2:tokenizer.json': 't'}


@pytest.mark.parametrize(
    ('read', 'scored', 'known'),
    [
        (BASE, {'model.safetensors': 'w', 'pytorch_model.bin': 'other'}, True),
        (BASE, {'model.safetensors': 'of a copy that was trained on'}, False),
        (
            BASE | {'3:config.json': 'd', '4:model.safetensors': 'of a donor'},
            {'model.safetensors': 'w'},
            True,
        ),
        (BASE | {'3:config.json': 'd', '4:model.safetensors': 'w2'}, {'model.safetensors': 'w2'}, False),
        (BASE | {'3:adapter_model.safetensors': 'a'}, {'model.safetensors': 'w'}, False),
        ({'0:config.json': 'c'}, {'config.json': 'c'}, False),
    ],
)
def test_the_source_is_known_by_its_weights_in_a_run_that_is_read_from_its_manifests(
    read, scored, known, tmp_path
):
    """`bioptimus report RUN` does not know config.source.path, which no manifest has."""
    run = Run(tmp_path, Experiment(), quiet=True)
    write_topics(run.workdir / 'finetune' / 'minilm', [6, 7])
    write_json(run.workdir / 'surgery' / 'manifest.json', {'config': {}, 'inputs': read})
    inputs = {f'model minilm:{name}': value for name, value in scored.items()}
    write_json(run.workdir / 'finetune' / '.started.json', {'config': {}, 'inputs': inputs})
    assert read_measures(run).source == ('minilm' if known else 'source')


def test_what_hangs_on_the_seeds_is_no_verdict_though_the_items_are_sure(tmp_path, sets):
    one = {'drugs': sets['drugs']}
    for seed, errors in ((0, 0.10), (1, 0.10), (2, 0.001)):
        a = write_model(tmp_path / 'a', one, (seed,), errors)
    b = write_model(tmp_path / 'b', one, (0, 1, 2), 0.04)
    lines = compare_models(a, b)
    assert lines[2].startswith('drugs: not distinguishable over fine-tunings: B - A = ')
    on_items = lines[3].partition('items: B - A = ')[2]
    assert float(on_items.partition('[')[2].partition(',')[0]) > 0  # these three are sure to be better
    shutil.rmtree(tmp_path / 'b' / 'drugs' / 'standard' / 'seed-1')
    shutil.rmtree(tmp_path / 'b' / 'drugs' / 'standard' / 'seed-2')
    lines = compare_models(a, b)
    assert lines[3].startswith('drugs: one seed, so not tested over fine-tunings: B - A = ')
    assert lines[6].startswith('all 1 set: one seed, so not tested over fine-tunings: B - A = ')
    assert lines[6].endswith('not distinguishable on 0, not tested on 1)')


def test_failed_runs_are_named_and_left_out_in_a_second_verdict(tmp_path, sets):
    a = write_model(tmp_path / 'a', {'drugs': sets['drugs']}, (0, 1, 2), 0.05)
    b = write_model(tmp_path / 'b', {'drugs': sets['drugs']}, (0, 1, 2), 0.04, devel={1: 0.0})
    lines = compare_models(a, b)
    failed = '  B, seed 1, failed: devel F1 0.00 is no better than one answer for everything, 0.00'
    assert lines[4] == failed
    assert lines[5].startswith('  without failed runs: ')
    assert '(2 seeds, 120 sentences; ' in lines[5]
    assert lines[5].endswith('; not corrected)')
    assert '(3 seeds, ' in lines[2]
    only = write_model(tmp_path / 'only', {'drugs': sets['drugs']}, (1,), 0.04, devel={1: 0.0})
    assert compare_models(a, only)[6:8] == [
        failed,
        '  without failed runs no seed is left',
    ]


def test_settings_are_chosen_behind_a_colon_or_by_folder(tmp_path, sets):
    one = {'drugs': sets['drugs']}
    both = write_model(tmp_path / 'ner' / '0.4', one, (0,), 0.05)
    write_model(tmp_path / 'ner' / '0.4', one, (0,), 0.01, setting='frozen')
    by_colon = compare_models(f'{both}:standard', f'{both}:frozen')
    by_folder = compare_models(f'{both}/drugs/standard', f'{both}/drugs/frozen')
    assert by_colon[2:] == by_folder[2:]
    assert by_colon[1] == f'B: {both} (0.4, frozen)'
    # Of every set what devel chooses, though test says otherwise.
    two = {'drugs': sets['drugs'], 'more': sets['drugs']}
    searched = write_model(tmp_path / 'searched', two, (0, 1), 0.05, devel={0: 0.5, 1: 0.9})
    for name, devel in (('drugs', 0.6), ('more', 0.8)):
        part = {name: two[name]}
        write_model(tmp_path / 'searched', part, (0, 1), 0.3, setting='frozen', devel={0: devel, 1: devel})
    cells = read_model(f'{searched}:devel').cells
    assert {name: {f.parent.name for f in of.values()} for name, of in cells.items()} == {
        'drugs': {'standard'},
        'more': {'frozen'},
    }
    # Without a score on devel nothing is chosen: one setting is taken as it is, of several none.
    outside = write_model(tmp_path / 'outside', one, (0,), 0.05)
    [file] = (tmp_path / 'outside').rglob('scores.json')
    record = {key: value for key, value in read_json(file).items() if key not in ('devel', 'history')}
    write_json(file, {**record, 'outside': 'theirs.tsv'})
    assert compare_models(f'{outside}:devel', f'{searched}:devel')[0] == f'A: {outside} (0.4, devel)'
    write_model(tmp_path / 'outside', one, (0,), 0.05, setting='frozen')
    file = file.parents[2] / 'frozen' / 'seed-0' / 'scores.json'
    write_json(file, {**read_json(file), 'learned_devel': True})
    write_model(tmp_path / 'ner' / '0.3', one, (0,), 0.05, name='0.3')
    for folder, message in {
        both: r'holds several settings, frozen, standard; choose one, as .*0\.4:frozen',
        f'{outside}:devel': r'outside: drugs has no score on devel .* one of frozen, standard; name',
        f'{both}:other': r"has no setting 'other'; found: frozen, standard",
        tmp_path / 'ner': r'ner: holds several models, 0\.3, 0\.4; give the folder of one',
    }.items():
        with pytest.raises(InputError, match=message):
            read_model(str(folder))


@pytest.mark.parametrize(
    ('change', 'message'),
    [
        (
            lambda s: [*s[:6], other(s[6], words=('x', *s[6].words[1:])), *s[7:]],
            "sentence 7, word 1 is 'x', but 'w",
        ),
        (
            lambda s: [other(s[0], gold=(*s[0].gold[:3], 'B-Gene', *s[0].gold[4:])), *s[1:]],
            "sentence 1, gold answer 4 is 'B-Gene', but '",
        ),
        (lambda s: s[:-1], 'has 119 sentences, but .* 120'),
        (lambda s: [*s[:-1], cut(s[-1])], "sentence 120, word 8 is missing, but 'w"),
        (lambda s: [*s[:-1], other(s[-1], document=1)], 'sentence 120 is of document 1, but 0 in'),
    ],
)
def test_other_text_or_gold_is_refused_at_the_first_difference(tmp_path, sets, change, message, capsys):
    a, b = (write_model(tmp_path / x, {'drugs': sets['drugs']}, (0, 1), 0.05) for x in 'ab')
    file = tmp_path / 'b' / 'drugs' / 'standard' / 'seed-1' / 'predictions.tsv'
    write_predictions(file, change(read_predictions(file)))
    with pytest.raises(InputError, match=rf'seed-1/predictions\.tsv: {message}.*same test file'):
        compare_models(a, b)
    assert cli.main(['compare', '--models', a, b]) == 3
    assert capsys.readouterr().err.count('\n') == 1


def other(sentence, words=None, gold=None, document=0):
    return Predicted(words or sentence.words, gold or sentence.gold, sentence.predicted, document)


def cut(sentence):
    return Predicted(sentence.words[:-1], sentence.gold[:-1], sentence.predicted[:-1])


def test_folders_that_cannot_be_used_are_named(tmp_path, sets):
    a, twice, lost, c = (
        write_model(tmp_path / name, {'drugs': sets['drugs']}, seeds, 0.05)
        for name, seeds in (('a', (0, 1, 2)), ('twice', (0,)), ('lost', (0,)), ('c', (7,)))
    )
    genes = write_model(tmp_path / 'genes', {'genes': sets['genes']}, (0,), 0.05)
    shutil.copytree(tmp_path / 'twice' / 'drugs', tmp_path / 'twice' / 'copy')
    (tmp_path / 'lost' / 'drugs' / 'standard' / 'seed-0' / 'predictions.tsv').unlink()
    for name in ('empty', 'damaged'):
        (tmp_path / name).mkdir()
    (tmp_path / 'damaged' / 'scores.json').write_text('{"model": "0.4"}')
    for one, other, message in (
        (a, tmp_path / 'nowhere', r'nowhere: no such folder; give RUN/finetune/MODEL'),
        (a, tmp_path / 'empty', r'empty: holds no finished fine-tuning'),
        (a, c, r'drugs: .*a has seeds 0, 1, 2, but .*c 7: none in common'),
        (a, genes, r'a has drugs, but .*genes has genes: no set in common'),
        (twice, genes, r'is drugs, seed 0, and so is .*remove one'),
        (tmp_path / 'damaged', genes, r"scores\.json: is damaged \(without the key 'dataset'\)"),
        (lost, lost, r'predictions\.tsv: no such file'),
    ):
        with pytest.raises(InputError, match=message):
            compare_models(str(one), str(other))


@pytest.mark.parametrize(
    ('arguments', 'message'),
    [
        (['--models', 'a'], 'two folders'),
        (['--models', 'a', 'b', 'c'], 'two folders'),
        (['--models', 'a', 'b', '--config=small'], 'no --config'),
        (['--models', 'a', 'b', '--config.seed=1'], 'no --config'),
        (['--models', 'a', 'b', '--markdown'], 'no --markdown'),
    ],
)
def test_wrong_usage_is_one_line(arguments, message, capsys):
    assert cli.main(['compare', *arguments]) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count('\n') == 1
