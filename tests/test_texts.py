"""Sets of texts: readers, measures against other libraries, and the stage on one text, two, several labels, numbers."""

import collections
import dataclasses
import random
import re
import shutil
import warnings

import numpy as np
import pytest
import scipy.stats
import sklearn.metrics
import torch
import transformers
from huggingface_hub import ModelCard
from toy_sets import DRUGS, OTHER, save_encoder, save_set, settings

import bioptimus_jax as bx
from bioptimus_jax.cli import main as cli
from bioptimus_jax.corpus.audit import searched_texts
from bioptimus_jax.errors import ConfigError, InputError
from bioptimus_jax.experiment import config
from bioptimus_jax.experiment.schema import Experiment
from bioptimus_jax.experiment.stages import STAGES
from bioptimus_jax.finetuning import build as stage
from bioptimus_jax.finetuning import config as finetune_config
from bioptimus_jax.finetuning.batches import drawn
from bioptimus_jax.finetuning.config import Finetune
from bioptimus_jax.finetuning.kept import Reads
from bioptimus_jax.finetuning.loading import load_head
from bioptimus_jax.finetuning.scoring import score as score_file
from bioptimus_jax.finetuning.stored import save_model
from bioptimus_jax.finetuning.task import DEFAULT, task_for, task_of
from bioptimus_jax.finetuning.tasks.classes import TASK as CLASSES
from bioptimus_jax.finetuning.texts.features import FEATURES
from bioptimus_jax.finetuning.texts.measures import measure
from bioptimus_jax.finetuning.texts.windows import CUT, windows
from bioptimus_jax.finetuning.training import finetune
from bioptimus_jax.records.finetune import FineTuning
from bioptimus_jax.run.execute import execute
from bioptimus_jax.run.folder import Run
from bioptimus_jax.scoring.resampling import bootstrap
from bioptimus_jax.sets import labelled, texts
from bioptimus_jax.sets.corpora import set_at
from bioptimus_jax.sets.quoting import unquoted
from bioptimus_jax.sets.texts import Text, Texts
from bioptimus_jax.storage.files import read_json, read_jsonl, read_sealed, write_json, write_jsonl
from bioptimus_jax.vocab.agreement import load_for_words

AT_HAND = ('chemprot', 'ddi', 'gad', 'hoc', 'bioasq', 'biosses')
MAJORITIES = {'gad': 0.690, 'bioasq': 0.671, 'chemprot': 0.0, 'biosses': 0.0}
POSITIVES = {  # of test: what the files are known to hold
    'chemprot': {'CPR:3': 663, 'CPR:4': 1655, 'CPR:5': 178, 'CPR:6': 292, 'CPR:9': 642},
    'ddi': {'DDI-mechanism': 302, 'DDI-effect': 360, 'DDI-advise': 221, 'DDI-int': 96},
    'hoc': dict(zip(texts.HALLMARKS, (62, 14, 19, 24, 53, 65, 23, 79, 105, 40), strict=True)),
}
LOGITS = 'answer by the mean of their logits'
TOGETHER = {'own': LOGITS, 'bioasq': LOGITS, 'hoc': LOGITS, 'biosses': 'answer by the mean of their numbers'}
UNCLEAR = {
    'ddi': [
        'ddi: 18 / 0 / 1 texts have several answers in one split, as in the public files; the first in train, '
        'lines 182 and 6497: DDI-mechanism and DDI-false'
    ]
}
LABELS = ('a', 'b', 'c')


@pytest.mark.parametrize('name', AT_HAND)
def test_public_sets_have_the_published_counts_and_majorities(name, data):
    chosen = set_at(data / 'blurb' / name)
    task = task_for(chosen)
    dataset = task.read(chosen)
    assert tuple(len(getattr(dataset, split)) for split in ('train', 'devel', 'test')) == task.known.examples
    lines = task.look(dataset, {}, 128).lines
    assert ', as published' in lines[0]
    assert [line for line in lines if 'answers' in line] == UNCLEAR.get(name, [])
    given = collections.Counter(answer for text in dataset.test for answer in text.answers)
    assert {label: given[label] for label in POSITIVES.get(name, {})} == POSITIVES.get(name, {})
    if name in MAJORITIES:
        assert task.detail(dataset, []).majority == pytest.approx(MAJORITIES[name], abs=5e-4)


def drawn_answers(seed, several, count=60):
    draw = random.Random(seed)
    if several:
        return [tuple(label for label in LABELS if draw.random() < 0.3) for _ in range(count)]
    return [(draw.choice(('none', *LABELS)),) for _ in range(count)]


@pytest.mark.parametrize('several', [False, True])
@pytest.mark.parametrize('seed', range(5))
def test_measures_are_those_of_scikit_learn(seed, several):
    gold, predicted = drawn_answers(seed, several), drawn_answers(seed + 100, several)
    theirs = [[[label in answers for label in LABELS] for answers in side] for side in (gold, predicted)]
    for name, average in (('micro_f1', 'micro'), ('macro_f1', 'macro')):
        found = measure(name, LABELS).scores(gold, predicted)['f1']
        assert found == pytest.approx(
            sklearn.metrics.f1_score(*map(np.array, theirs), average=average, zero_division=0)
        )
    if several:  # a text without labels has recall 1, one that gets none precision 1
        precision, recall = (
            of(*map(np.array, theirs), average='samples', zero_division=1)
            for of in (sklearn.metrics.precision_score, sklearn.metrics.recall_score)
        )
        found = measure('example_f1', LABELS).scores(gold, predicted)['f1']
        assert found == pytest.approx(2 * precision * recall / (precision + recall))
    right = measure('accuracy', ()).scores(gold, predicted)['accuracy']
    assert (
        right == pytest.approx(sklearn.metrics.accuracy_score(*map(np.array, theirs)))
        if several
        else right == (sklearn.metrics.accuracy_score([g for (g,) in gold], [p for (p,) in predicted]))
    )


def test_measures_of_hand_made_texts():
    """The second text has no label, and the third gets none; one label is missed and one is too many."""
    gold, predicted = [('a', 'b'), (), ('c',)], [('a',), ('b',), ()]
    micro = measure('micro_f1', LABELS).scores(gold, predicted)
    assert micro == {'precision': 0.5, 'recall': 1 / 3, 'f1': 0.4, 'gold': 3, 'predicted': 2}
    assert measure('macro_f1', LABELS).scores(gold, predicted)['f1'] == pytest.approx(1 / 3)
    # Precision 1, 0, 1 and recall 1/2, 1, 0: means 2/3 and 1/2.
    assert measure('example_f1', LABELS).scores(gold, predicted)['f1'] == pytest.approx(
        2 / 3 / (2 / 3 + 1 / 2)
    )
    assert measure('accuracy', ()).scores(gold, predicted)['accuracy'] == 0
    # Every text that GAD's positive class is said of: precision is its share, recall 1.
    all_positive = measure('micro_f1', ('1',)).scores([('1',)] * 281 + [('0',)] * 253, [('1',)] * 534)
    assert all_positive['f1'] == pytest.approx(2 * 281 / (281 + 534))


@pytest.mark.parametrize('name', ['pearson', 'spearman'])
def test_correlations_are_scipys_and_0_for_what_does_not_vary(name):
    generator, r = np.random.default_rng(0), measure(name, ())
    theirs = getattr(scipy.stats, f'{name}r')
    for decimals in (9, 0, 0):  # rounded numbers are often equal
        x, y = generator.normal(3, 1, (2, 20)).round(decimals)
        gold, predicted = ([(float(v),) for v in side] for side in (x, y))
        assert r.scores(gold, predicted)[r.name] == pytest.approx(theirs(x, y).statistic)
    assert r.scores(gold, [(2.4,)] * 20)[r.name] == 0
    assert r.scores([(0.1,)] * 20, predicted)[r.name] == 0
    draws = bootstrap(r, r.counts(gold, [(2 * v + 1,) for v in x])[None], 200)
    np.testing.assert_allclose(draws, 1, atol=1e-9)


NEAR = [
    ([1, 2, 3, 4], [0.9999990810, 0.9999993192, 0.9999995436, 0.9999997734]),
    ([738000.1, 738001.2, 738001.9], [738000, 738001, 738002]),
    ([1e-9, 2e-9, 4e-9], [-1e300, 1e300, 1.2e300]),
]


@pytest.mark.parametrize(('x', 'y'), NEAR)
def test_correlations_of_numbers_that_lie_close_together_or_far_apart(x, y):
    gold, predicted = ([(float(v),) for v in side] for side in (x, y))
    for name, theirs in (('pearson', scipy.stats.pearsonr), ('spearman', scipy.stats.spearmanr)):
        r = measure(name, ())
        with np.errstate(over='ignore'):
            expected = theirs(x, np.array(y) / max(map(abs, y))).statistic
        assert r.scores(gold, predicted)[r.name] == pytest.approx(expected, abs=1e-7)
        drawn_R = bootstrap(r, r.counts(gold, predicted)[None], 500)
        assert np.nanmax(np.abs(drawn_R)) <= 1


@pytest.mark.parametrize(
    ('name', 'devel', 'best'),
    [
        ('gad', ['1'] * 53 + ['0'] * 47, 2 * 53 / 153),  # of F1, though most texts of training are 0
        ('pubmedqa', ['yes'] * 552 + ['no'] * 338 + ['maybe'] * 110, 0.552),
        ('biosses', [1.0, 2.0, 4.0], 0),
        ('hoc', ['a', 'b'], 0.5),
    ],
)
def test_what_one_answer_for_everything_gets_on_devel(name, devel, best):
    task = finetune_config.TASKS.load('similarity' if name == 'biosses' else 'classes').of(name)
    hallmarks = dict(zip('ab', texts.HALLMARKS[:2], strict=True))
    examples = [
        Text(('x',), (hallmarks.get(answer, answer) if name == 'hoc' else answer,)) for answer in devel
    ]
    labels = () if name == 'biosses' else tuple(sorted({e.answers[0] for e in examples}))
    train = [examples[-1]] * 3 + examples[:1]
    dataset = Texts(name, tuple(train), tuple(examples), (), labels)
    assert task.alike(dataset, dataset.devel) == pytest.approx(best)


def test_spearman_is_of_ranks_whatever_the_numbers_and_its_draws_are_near_those_of_new_ranks():
    """Ranks are fixed in a bootstrap; drawing pairs and ranking them anew gives intervals that are hardly others."""
    generator, rho = np.random.default_rng(1), measure('spearman', ())
    x = generator.normal(size=60)
    y = x + generator.normal(0, 0.7, 60)
    gold, predicted = ([(v,) for v in side.tolist()] for side in (x, np.exp(y)))
    assert rho.scores(gold, predicted)['rho'] == pytest.approx(scipy.stats.spearmanr(x, y).statistic)
    draws = bootstrap(rho, rho.counts(gold, predicted)[None], 2000)
    drawn = [scipy.stats.spearmanr(x[at], y[at]).statistic for at in generator.integers(0, 60, (500, 60))]
    np.testing.assert_allclose(
        np.quantile(draws, (0.025, 0.5, 0.975)), np.quantile(drawn, (0.025, 0.5, 0.975)), atol=0.04
    )


SETS = {
    'own': ['the patient got zolmipan\tdrug', 'the dose\tnone'],
    'gad': ['index\tsentence\tlabel', '0\t@GENE$ and @DISEASE$\t1', '1\tno @GENE$\t0'],
    'hoc': ['labels\ttext\tid', '0_1,1_0\tA first.\t7_s0', '1_1\tA second.\t7_s1', '0_0\tNone.\t8_s0'],
    'biosses': ['id\ta\tb\tscore', '1\tone\ttwo\t3.2', '2\tx\ty\t0'],
    'chemprot': ['7.T1\ta @GENE$\tfalse', '7.T2\tb\tCPR:3'],
    'ddi': ['D.d1.s0.p0\ta\tDDI-false', 'D.d1.s0.p1\tb\tDDI-int'],
    'bioasq': ['1\tq?\ta\tyes', '2\tq?\tb\tno'],
    'chemprot-scibert': ['{"text": "a", "label": "AGONIST"}', '{"text": "b", "label": "INHIBITOR"}'],
    'hoc-blue': ['labels\ttext\tid\r', '0_1\tA first.\t7_s0\r', '1_1\tOther.\t8_s0\r'],
    'mednli': [
        f'{{"pairID": "1", "sentence1": "a", "sentence2": "{x}", "gold_label": "neutral"}}' for x in 'bc'
    ],
    'ebm-pico': ['a\tI-PAR', '', 'b\tO'],
    'entities': ['a\tB-X', '', 'b\tO'],
}
"""Good lines of a set, as all its files have them."""
TASKS = {'ebm-pico': 'word_classes', 'entities': 'entities'}
REFUSED = [
    ('own', 'the dose', ':1: expected text TAB answer or text TAB text TAB answer, not 1 column'),
    ('own', 'a\tb\tc\td', ':1: expected text TAB answer or text TAB text TAB answer, not 4 columns'),
    ('own', 'the dose\t', ':1: has no label'),
    ('own', 'the dose\tnone\n\ta\tb', ':2: has 3 columns, not 2'),
    (
        'own',
        'the dose\tnone\na\tdrugs',
        ":2: has the label 'drugs', which train does not have; known: drug, none",
    ),
    (
        'own',
        'texts\tlabels\nthe dose\tnone',
        ':1: looks like a header; a set of your own has none, remove it',
    ),
    ('own', 'the dose\tother\tnone', ': has 2 texts a line, but '),
    ('own', 'the dose \udcff\tnone', ':1: is not UTF-8 (invalid start byte); convert the file'),
    ('gad', 'h\n0\ta\t2', ":2: '2' is not a label of gad: 0, 1"),
    ('gad', '0\ta\t1\n1\tb\t0', ':1: is an example; the first line of gad is a header'),
    ('gad', 'h\n0\ta', ':2: has 2 columns, not 3'),
    ('gad', 'h', 'dev.tsv: holds no example'),
    ('hoc', 'h\n9_9\ta\t7_s1', ":2: '9_9' is not a label of hoc"),
    ('hoc', '0_1\ta\t7_s1', ':1: is an example; the first line of hoc is a header'),
    ('biosses', 'h\n1\ta\tb\tgood', ":2: 'good' is not a number"),
    ('biosses', 'h\n1\ta\tb\tnan', ":2: 'nan' is not a number"),
    ('biosses', 'h\n1\ta\tb\t-inf', ":2: '-inf' is not a number"),
    ('biosses', 'h\n1\ta\tb\t', ":2: '' is not a number"),
    ('biosses', '1\ta\tb\t2.0', ':1: is an example; the first line of biosses is a header'),
    ('biosses', 'h\n1\ta\t2.0', ':2: has 3 columns, not 4'),
    ('chemprot', '.T1\ta\tfalse', ":1: '.T1' names no document"),
    ('chemprot', 'index\tsentence\tlabel\n7.T1\ta\tfalse', ":1: 'label' is not a label of chemprot"),
    ('ddi', 'D.d1.s0.p0\t \tDDI-int', ':1: a text is empty'),
    ('ddi', 'D.d1.s0.p0\ta\tDDI-Int', ":1: 'DDI-Int' is not a label of ddi"),
    ('bioasq', '\n', 'dev.tsv: holds no example'),
    ('bioasq', '1\tq?\ta\tmaybe', ":1: 'maybe' is not a label of bioasq: yes, no"),
    ('chemprot-scibert', 'a\tAGONIST', ':1: is not JSON (Expecting value); give a list, or one object'),
    ('chemprot-scibert', '{"text": "a"}', ":1: has no 'label'; it has text"),
    ('chemprot-scibert', '[1]', ':1: is not an object; records of JSON have "tokens" with "ner_tags"'),
    ('hoc-blue', '0_1\ta\t7_s1\r', ':1: is an example; the first line of hoc-blue is a header'),
    ('hoc-blue', 'h\r\n0_1\ta\t_s1\r', ":2: '_s1' names no document"),
    (
        'mednli',
        '{"pairID": 1, "sentence1": "a", "sentence2": "", "gold_label": "neutral"}',
        ':1: a text is empty',
    ),
    (
        'mednli',
        '{"pairID": 1, "sentence1": "a", "sentence2": "b", "gold_label": "-"}',
        ":1: '-' is not a label of mednli",
    ),
    ('ebm-pico', 'a\tO\nb\tI-DRUG', ":2: 'DRUG' is not a class of ebm-pico: PAR, INT, OUT"),
    ('ebm-pico', 'a\tO\nb\tI-PAR\tO', ':2: expected token TAB tag, found 3 columns'),
    ('entities', 'a\tX', ":1: unknown tag 'X'"),
    ('entities', '', 'dev.tsv: holds no sentence'),
]
"""Set, what its devel file has instead, what is said of it."""


def written(folder, lines):
    folder.mkdir(parents=True, exist_ok=True)
    for split in ('train', 'dev', 'test'):
        (folder / f'{split}.tsv').write_text('\n'.join(lines) + '\n', 'utf-8')
    return folder


@pytest.mark.parametrize(('name', 'wrong', 'message'), REFUSED)
def test_what_no_reader_takes_is_named_with_its_file_and_line(name, wrong, message, tmp_path):
    folder = written(tmp_path / name, SETS[name])
    chosen = set_at(folder, TASKS.get(name, 'classes'))
    assert len(task_for(chosen).read(chosen).train) == 2
    (folder / 'dev.tsv').write_bytes((wrong + '\n').encode('utf-8', 'surrogateescape'))
    with pytest.raises(InputError) as error:
        task_for(chosen).read(chosen)
    assert f'dev.tsv{message.removeprefix("dev.tsv")}' in str(error.value)
    assert '\n' not in str(error.value)


def test_sentences_of_a_document_are_one_text_with_the_labels_of_all(tmp_path):
    chosen = set_at(written(tmp_path / 'HoC', SETS['hoc']))
    first, second = task_for(chosen).read(chosen).test
    assert first == Text(('A first. A second.',), texts.HALLMARKS[:2])
    assert second == Text(('None.',), ())


def test_what_train_does_not_have_and_a_set_with_one_label_are_refused(tmp_path):
    folder = written(tmp_path / 'own', ['the dose\tnone', 'zolmipan\tdrug'])
    (folder / 'test.tsv').write_text('a dose\tnew\n')
    one = written(tmp_path / 'one', ['the dose\tnone'])
    for place, message in (
        (folder, r"test\.tsv:1: has the label 'new', which train does not have; known: drug, none"),
        (one, r'train\.tsv: has one label, none; there is nothing to learn'),
    ):
        chosen = set_at(place, 'classes')
        with pytest.raises(InputError, match=message):
            task_for(chosen).read(chosen)


def test_one_label_that_texts_may_lack_is_learned(tmp_path):
    folder = tmp_path / 'own'
    rows = [{'text': 'a dose of zolmipan', 'labels': ['drug']}, {'text': 'the patient', 'labels': []}]
    for split in ('train', 'devel', 'test'):
        write_jsonl(folder / f'{split}.jsonl', rows)
    task = task_for(set_at(folder, 'classes'))
    dataset = task.read(set_at(folder, 'classes'))
    assert dataset.labels == ('drug',)
    gold = [text.answers for text in dataset.test]
    assert task.scores(gold, gold)['default'] == {
        'precision': 1.0,
        'recall': 1.0,
        'f1': 1.0,
        'gold': 1,
        'predicted': 1,
    }
    write_json(folder / 'set.json', {'texts': ['text'], 'answer': 'labels', 'several': True})
    write_jsonl(folder / 'train.jsonl', rows[:1])  # now every text has it
    with pytest.raises(InputError, match=r'train\.jsonl: has one label, drug; there is nothing to learn'):
        task.read(set_at(folder, 'classes'))


def test_lint_tells_counts_labels_repeats_and_what_is_cut(tmp_path, capsys):
    written(tmp_path / 'sets' / 'gad', SETS['gad'])
    written(tmp_path / 'sets' / 'hoc', SETS['hoc'])
    written(
        tmp_path / 'sets' / 'own', ['the patient got a dose of zolmipan ' * 20 + '\tdrug', 'the dose\tnone']
    )
    with open(tmp_path / 'sets' / 'own' / 'test.tsv', 'a') as file:
        file.write('\nthe dose\tdrug\nthe dose\tnone\n')
    written(tmp_path / 'sets' / 'broken', ['a\tb\tc', 'd'])
    model = save_encoder(tmp_path / 'model')
    assert cli.main(['lint', f'--sets={tmp_path / "sets"}', f'--model={model}', '--task=classes']) == 3
    out, err = capsys.readouterr()
    told = out.splitlines()
    assert 'hoc: none of these labels: 1 text of train' in told
    assert [line for line in told if not line.startswith('hoc')] == [
        'gad: 2 / 2 / 2 texts in train / devel / test; the public files have 4,261 / 535 / 534',
        'gad: labels of train: 0 1, 1 1',
        'gad: also in train: 2 texts of devel',
        'gad: also in train or devel: 2 texts of test',
        'own: 2 / 2 / 4 texts in train / devel / test',
        'own: labels of train: drug 1, none 1',
        'own: column 1 is read as the text, column 2 as its label',
        'own: 0 / 0 / 1 texts have several answers in one split; the first in test, lines 2 and 4: none and drug',
        'own: also in train: 2 texts of devel',
        'own: also in train or devel: 4 texts of test',
        'own: cut: 3 texts of more than 128 pieces of model',
    ]
    assert 'broken/train.tsv:2: has 1 column, not 3' in err


FOUR = ['Aspirin helps.\tyes', 'It does not.\tno', 'Rats sleep.\tno', 'Mice do not.\tyes']


@pytest.mark.parametrize(
    ('lines', 'message'),
    [
        (
            [f'{10047461 + n}.T1.T2\t{line}' for n, line in enumerate(FOUR)],
            ':1: column 1 (10047461.T1.T2) holds',
        ),
        (
            [f'{10047461 + n}\t{line}' for n, line in enumerate(FOUR)],
            ':1: column 1 (10047461) holds names of examples',
        ),
        (
            [f'doc-{n // 2}\t{line}' for n, line in enumerate(FOUR)],
            ':1: column 1 (doc-0) holds names of examples',
        ),
        (
            [line.replace('\t', f'\tPMC{n}\t') for n, line in enumerate(FOUR)],
            ':1: column 2 (PMC0) holds names',
        ),
        (
            [f'{n}\t{line.split()[-1]}' for n, line in enumerate(FOUR)],
            ':1: column 1 (0) holds names of examples',
        ),
        (['text\tcategory', *FOUR], ':1: looks like a header; a set of your own has none, remove it'),
        (
            ['snippet\tverdict', *FOUR],
            ':1: looks like a header, as all splits begin with it and no other line has',
        ),
        (
            ['one\tother\tverdict', *(f'A rat.\t{x}' for x in FOUR)],
            ':1: looks like a header, as all splits begin',
        ),
        (
            ['what is said\tverdict', *FOUR, *FOUR, *FOUR],
            ':1: looks like a header, as all splits begin with it',
        ),
        (['snippet\tverdict', *FOUR, *FOUR, *FOUR], ':1: looks like a header; a set of your own has none'),
    ],
)
def test_names_of_examples_and_headers_are_no_texts(tmp_path, lines, message):
    chosen = set_at(written(tmp_path / 'own', lines), 'classes')
    with pytest.raises(InputError) as error:
        task_for(chosen).read(chosen)
    assert f'train.tsv{message}' in str(error.value)


def test_it_is_said_how_columns_are_read(tmp_path):
    def said(name, lines, task='classes'):
        chosen = set_at(written(tmp_path / name, lines), task)
        return ' | '.join(task_for(chosen).look(task_for(chosen).read(chosen), {}, 128).lines)

    assert 'plain: column 1 is read as the text, column 2 as its label' in said('plain', FOUR)
    pair = [f'A {x}.\t{line}' for x, line in zip('abcd', FOUR, strict=True)]
    assert 'pair: columns 1 and 2 are read as a pair of texts, column 3 as its label' in said('pair', pair)
    near = [f'A {x}.\tThe {x}.\t{n}.5' for n, x in enumerate('abcd')]
    assert 'pair of texts, column 3 as its number' in said('near', near, 'similarity')
    terms = [f'{x}\t{line}' for x, line in zip(('aspirin', 'gout', 'BRCA1', 'TP53'), FOUR, strict=True)]
    assert 'terms: column 1 (aspirin) has one word in every line: if it is the name' in said('terms', terms)
    rare = ['Nobody knows it.\tmaybe', *FOUR, *FOUR]
    assert 'header' not in said('rare', rare)
    (tmp_path / 'rare' / 'train.tsv').write_text('\n'.join([*rare, *FOUR]) + '\n')
    chosen = set_at(tmp_path / 'rare', 'classes')
    lines = task_for(chosen).look(task_for(chosen).read(chosen), {}, 128).lines
    assert (
        "rare: no other line of train than the first has the label 'maybe': a header is to be removed"
        in lines
    )


def as_pandas(rows, **options):
    import csv
    import io

    to = io.StringIO()
    csv.writer(to, delimiter='\t', lineterminator='\n', **options).writerows(rows)
    return to.getvalue()


@pytest.mark.parametrize('quoting', ['QUOTE_MINIMAL', 'QUOTE_ALL', 'QUOTE_NONNUMERIC'])
def test_quoted_fields_are_read_without_their_quotation_marks_and_it_is_said(tmp_path, quoting):
    import csv

    rows = [
        ('text with "quotes" inside', 'yes'),
        ('"All" of it', 'no'),
        ('Nothing\there.', 'no'),
        ('a b', 'yes'),
    ]
    content = as_pandas(rows, quoting=getattr(csv, quoting))
    assert '"text with ""quotes"" inside"' in content
    folder = written(tmp_path / 'own', content.splitlines())
    dataset = task_for(set_at(folder, 'classes')).read(set_at(folder, 'classes'))
    assert [(*x.words, *x.answers) for x in dataset.train] == rows
    assert 'test: fields are quoted, and were read without the quotation marks around them' in dataset.notes
    # Beside single ones they are left as they are, and that is said.
    with open(folder / 'train.tsv', 'a') as file:
        file.write('a "bare" one\tno\n')
    rest = [line for line in content.splitlines() if 'here.' not in line]
    (folder / 'train.tsv').write_text('\n'.join([*rest, 'a "bare" one\tno', '"Whole."\tyes']) + '\n')
    if quoting == 'QUOTE_MINIMAL':
        dataset = task_for(set_at(folder, 'classes')).read(set_at(folder, 'classes'))
        assert dataset.train[0].words == ('"text with ""quotes"" inside"',)
        assert dataset.train[-1].words == ('"Whole."',)
        assert dataset.notes[1].startswith(
            'train: 2 fields look quoted, but others have single quotation marks'
        )


def test_whole_quotations_are_texts_and_a_quoted_text_is_one_line(tmp_path):
    folder = written(tmp_path / 'own', ['"It hurts."\tyes', 'It does not.\tno', '"No."\tno'])
    assert labelled.read_file(folder / 'test.tsv', None, False)[0].words == ('"It hurts."',)
    content = as_pandas([('one line', 'no'), ('two\nlines "here"', 'yes'), ('one line', 'no')])
    for text, message in (
        (content, r'test\.tsv:2: has 1 column, not 2; a quoted text seems to go on .*QUOTE_NONE'),
        (
            content.removeprefix('one line\tno\n'),
            r'test\.tsv:1: expected .*not 1 column; a quoted text seems to go on',
        ),
    ):
        (folder / 'test.tsv').write_text(text)
        with pytest.raises(InputError, match=message):
            labelled.read_file(folder / 'test.tsv', None, False)


def test_no_public_file_is_quoted(data):
    for folder in sorted((data / 'blurb').iterdir()):
        for file in sorted(folder.glob('*.tsv')):
            lines = [line for line in file.read_text('utf-8').split('\n') if line.strip()]
            assert unquoted(lines) is None, file
    for name, count in (('bioasq', 192), ('chemprot', 208), ('hoc', 142)):
        content = (data / 'blurb' / name / 'train.tsv').read_text('utf-8')
        read = labelled.read_file(data / 'blurb' / name / 'train.tsv', texts.published(name), False)
        assert content.count('"') == sum(text.count('"') for x in read for text in x.words) == count


def test_the_audit_looks_for_what_is_between_the_names(tmp_path):
    folder = written(
        tmp_path / 'gad', ['h', '0\tThe gene @GENE$ causes @DISEASE$ in mice. Nothing else.\t1', '1\tx\t0']
    )
    assert [part.strip() for part in searched_texts(folder, 'train')] == [
        'The gene',
        'causes',
        'in mice.',
        'Nothing else.',
        'x',
    ]


def test_a_question_is_never_cut_and_of_two_texts_the_longer_one_is(tmp_path):
    tokenizer = load_for_words(save_encoder(tmp_path))
    question, text = 'the patient got with', 'dose of and the patient daily dose of and'
    pair = [Text((question, text), ()), Text((text, question), ()), Text(('dose',), ())]

    def read(question):
        encoded = windows(tokenizer, pair, 10, question)
        assert encoded.counts == {CUT: 2}
        return [tokenizer.convert_ids_to_tokens(w.pieces) for w in encoded.windows], encoded.windows[0].types

    (first, second, _), types = read(question=True)
    assert first == ['[CLS]', *question.split(), '[SEP]', *text.split()[:3], '[SEP]']
    assert types == (0,) * 6 + (1,) * 4
    # This question would leave no room: both are cut.
    assert second.count('[SEP]') == 2
    (first, second, single), _ = read(question=False)
    assert first == ['[CLS]', *question.split()[:3], '[SEP]', *text.split()[:4], '[SEP]']
    assert single == ['[CLS]', 'dose', '[SEP]']


def test_features_are_those_of_loops_over_pieces():
    """Largest values and first pieces of two mentions, which may be one, by hand."""
    draw = np.random.default_rng(0)
    states_BxLxD = torch.tensor(draw.normal(size=(3, 7, 4)), dtype=torch.float32)
    spans = [((1, 3), (4, 6)), ((2, 3), (2, 3)), ((5, 7), (1, 2))]
    spans_Bx2x2 = torch.tensor(spans)
    largest = FEATURES['mentions'].of(states_BxLxD, spans_Bx2x2)
    starts = FEATURES['starts'].of(states_BxLxD, spans_Bx2x2)
    for row, of_row in enumerate(spans):
        parts = [states_BxLxD[row, first:behind].max(0).values for first, behind in of_row]
        torch.testing.assert_close(largest[row], torch.cat(parts))
        torch.testing.assert_close(starts[row], torch.cat([states_BxLxD[row, first] for first, _ in of_row]))
    torch.testing.assert_close(FEATURES['first'].of(states_BxLxD, spans_Bx2x2), states_BxLxD[:, 0])


def by_hand(weights, name, inputs_LxD):
    """An LSTM's states in one direction, gate by gate, in numpy."""
    w, r, b, c = (weights[f'{part}_l0{name}'] for part in ('weight_ih', 'weight_hh', 'bias_ih', 'bias_hh'))
    sigmoid = lambda x: 1 / (1 + np.exp(-x))  # noqa: E731
    state = cell = np.zeros(r.shape[1])
    states = []
    for x in inputs_LxD:
        i, f, g, o = np.split(w @ x + b + r @ state + c, 4)
        cell = sigmoid(f) * cell + sigmoid(i) * np.tanh(g)
        state = sigmoid(o) * np.tanh(cell)
        states.append(state)
    return np.stack(states)


@pytest.mark.parametrize('features', ['first', 'mentions', 'starts'])
@pytest.mark.parametrize('head', ['mlp', 'bilstm'])
def test_heads_on_features_are_those_of_numpy_and_are_kept(models, head, features, tmp_path):
    examples = [Text(('a @A$ got @B$',), ('x',)), Text(('with daily @A$ dose of the @B$ and',), ('y',))]
    chosen = settings(head=head, features=features, lstm_hidden=6)
    tokenizer, made = load_head(CLASSES, models['bert'], ('x', 'y'), chosen, 0)
    found = CLASSES.windows(tokenizer, examples, chosen).windows
    batch = made.eval().batch(found)
    with torch.inference_mode():
        states = made.pretrained(**batch.given).last_hidden_state.double().numpy()
    weights = {name: p.detach().double().numpy() for name, p in made.named_parameters()}
    lstm = {name.removeprefix('lstm.'): w for name, w in weights.items() if name.startswith('lstm.')}
    expected = []
    for window, of_window in zip(found, states, strict=True):
        read = of_window[: len(window.pieces)]
        if head == 'bilstm':
            back = by_hand(lstm, '_reverse', read[::-1])[::-1]
            read = np.concatenate([by_hand(lstm, '', read), back], -1)
        spans = [read[first:behind] for first, behind in window.mentions]
        taken = {
            'first': [read[0]],
            'mentions': [part.max(0) for part in spans],
            'starts': [part[0] for part in spans],
        }
        vector = np.concatenate(taken[features])
        if head == 'mlp':
            vector = np.tanh(weights['hidden.weight'] @ vector + weights['hidden.bias'])
        expected.append(weights['linear.weight'] @ vector + weights['linear.bias'])
    np.testing.assert_allclose(made.predict(batch).numpy(), expected, atol=2e-6)
    save_model(CLASSES, tokenizer, made, Reads(chosen.max_pieces), tmp_path / 'kept')
    labels = dict(zip('xy', torch.softmax(torch.tensor(np.array(expected)), -1).T.tolist(), strict=True))
    for at, said in enumerate(bx.predict(tmp_path / 'kept', [text.words[0] for text in examples])):
        assert said['probabilities'] == pytest.approx({x: labels[x][at] for x in 'xy'}, abs=1e-5)
    assert (
        weights['linear.weight'].shape[1] == {'mlp': 32, 'bilstm': 12 * len(found[0].mentions or 'x')}[head]
    )


def test_mentions_are_found_in_pieces(tmp_path):
    tokenizer = load_for_words(save_encoder(tmp_path))
    two, one = (Text((text,), ()) for text in ('a @GENE$ b @CHEMICAL$', 'a @CHEM-GENE$ b'))
    encoded = windows(tokenizer, [two, one], 40, mentions=True).windows
    shown = [[w.pieces[first:behind] for first, behind in w.mentions] for w in encoded]
    assert [len(w.mentions) for w in encoded] == [2, 2]
    assert [[len(x) > 0 for x in of_one] for of_one in shown] == [[True, True], [True, True]]
    assert encoded[1].mentions[0] == encoded[1].mentions[1]
    assert shown[0] != shown[1]


@pytest.mark.parametrize('kind', ['bert', 'roberta'])
def test_mentions_are_found_between_markers_or_with_them_or_refused(kind, models):
    """Apart; the second within the first, which ends with a blank; and one that is cut off."""
    tokenizer = load_for_words(models[kind])

    def letters(pieces):
        return tokenizer.decode(pieces).replace(' ', '')

    def letters_of(text):
        return letters(tokenizer(text, add_special_tokens=False)['input_ids'])

    apart = 'the <e1> patient </e1> got <e2> zolmipan </e2> daily'
    for text, with_markers, between in (
        (apart, ('<e1> patient </e1>', '<e2> zolmipan </e2>'), ('patient', 'zolmipan')),
        (
            'the <e1> <e2> dose </e2> of  </e1> daily',
            ('<e1> <e2> dose </e2> of  </e1>', '<e2> dose </e2>'),
            ('<e2> dose </e2> of', 'dose'),
        ),
    ):
        for name, wanted in (('starts', with_markers), ('mentions', between)):
            by = FEATURES[name]
            [window] = windows(tokenizer, [Text((text,), ())], 60, False, by.mentions, by.markers).windows
            for (first, behind), mention in zip(window.mentions, wanted, strict=True):
                assert letters(window.pieces[1:first]) == letters_of(text[: text.index(mention)])
                assert letters(window.pieces[first:behind]) == letters_of(mention)
    cut_off = r'is cut off; raise config\.finetune\.max_pieces'
    for text, most, message in (
        (apart, 14, rf'text 1, .*: zolmipan {cut_off}'),
        ('a b', 40, r"text 1, 'a b': has no @NAME\$ and no markers .*; set config\.finetune\.features"),
        ('a @GENE$ b @CHEMICAL$', 12, rf'text 1, .*: @CHEMICAL\$ {cut_off}'),
    ):
        with pytest.raises(InputError, match=message):
            windows(tokenizer, [Text((text,), ())], most, mentions=True)


def test_relations_are_learned_from_every_kind_of_features(models, tmp_path):
    """Whether the drug between two mentions is the first or the second of the list."""
    draw, folder = random.Random(0), tmp_path / 'sets' / 'relations'
    folder.mkdir(parents=True)
    for split, count in {'train': 120, 'devel': 24, 'test': 40}.items():
        drugs = [draw.choice(DRUGS[:2]) for _ in range(count)]
        forms = ('@A$ {} @B$', '<e1> x </e1> {} <e2> x </e2>')
        lines = [f'{draw.choice(OTHER)} {draw.choice(forms).format(drug)}\t{drug}' for drug in drugs]
        (folder / f'{split}.tsv').write_text('\n'.join(lines) + '\n')
    e = Experiment.from_config(config.defaults())
    settings = dataclasses.replace(
        e.finetune,
        folder=str(folder.parent),
        models=tuple(f'{kind}={place}' for kind, place in models.items()),
        task='classes',
        settings=tuple(FEATURES),
        setting={name: {'features': name} for name in FEATURES},
        epochs=4,
        learning_rate=1e-2,
        max_pieces=48,
        keep='best',
    )
    e = dataclasses.replace(
        e, runtime=dataclasses.replace(e.runtime, workers=1)
    )  # no process to begin for so little
    run = Run(tmp_path / 'run', dataclasses.replace(e, stages=('finetune',), finetune=settings), quiet=True)
    execute(run, STAGES['finetune'])
    found = {
        (r['model'], r['setting']): r['test'][DEFAULT]['accuracy']
        for r in read_jsonl(run.workdir / 'finetune' / 'results.jsonl')
    }
    assert len(found) == 8
    assert min(found.values()) > 0.9, found
    for place in sorted((run.workdir / 'finetune').glob('bert/*/*/seed-0/model')):
        rows = read_jsonl(place.parent / 'predictions.jsonl')
        said = bx.predict(place, [row['words'][0] for row in rows])
        assert [one['answers'] for one in said] == [row['predicted'] for row in rows], place
        spaced = [row['words'][0].replace(' ', '\n   ') for row in rows]
        assert bx.predict(place, spaced) == [
            one | {'text': two} for one, two in zip(said, spaced, strict=True)
        ]
        with pytest.raises(InputError, match='has 2 texts, but the model has learned from 1; give one as'):
            bx.predict(place, [('a', 'b')])
        if place.parts[-3] == 'family':
            continue
        card = ModelCard.load(place / 'README.md')
        assert (card.data.library_name, card.data.to_dict().get('widget')) == ('bioptimus-jax', None)
        assert (
            f'(head=linear, features={place.parts[-3]}, lstm_hidden=0) is in `head.safetensors`' in card.text
        )
        with pytest.raises(ValueError, match=r'no file named model\.safetensors'):
            transformers.pipeline('text-classification', str(place))
        encoder = transformers.AutoModel.from_pretrained(place / 'encoder')
        assert encoder.config.num_hidden_layers == 2
    for texts_given, message in (
        (['a dose'], r"^text 2: 'a dose': has no @NAME\$"),
        (
            ['<e1> x </e1> ' + 'dose ' * 50 + '<e2> x </e2>'],
            r"^text 2: '<e1> .*: <e2> x </e2> is cut off; raise .*max_pieces",
        ),
    ):
        kept = run.workdir / 'finetune' / 'bert' / 'relations' / 'starts' / 'seed-0' / 'model'
        with pytest.raises(InputError, match=message):
            bx.predict(kept, ['@A$ and @B$', *texts_given])
    (folder / 'test.tsv').write_text(f'@A$ {DRUGS[0]} @B$\t{DRUGS[0]}\nthe {DRUGS[1]}\t{DRUGS[1]}\n')
    settings = dataclasses.replace(settings, models=settings.models[:1], settings=('starts',))
    with pytest.raises(
        InputError, match=r"relations, test: line 2, 'the .*': has no @NAME\$ and no markers"
    ) as error:
        execute(
            Run(tmp_path / 'other', dataclasses.replace(run.config, finetune=settings), quiet=True),
            STAGES['finetune'],
        )
    assert '\n' not in str(error.value)


@pytest.fixture(scope='module')
def models(tmp_path_factory):
    return {kind: save_encoder(tmp_path_factory.mktemp(kind), kind) for kind in ('bert', 'roberta')}


@pytest.fixture(scope='module')
def sets(tmp_path_factory):
    """One text with one label, two texts, several labels by a document, numbers: whether and which drugs are there."""
    root, draw = tmp_path_factory.mktemp('sets'), random.Random(0)

    def text(drugs):
        words = [draw.choice(OTHER) for _ in range(draw.randint(3, 6))]
        for drug in drugs:
            words.insert(draw.randrange(len(words)), drug)
        return ' '.join(words)

    def lines(count):
        own, pairs, hoc, numbers = [], [], ['labels\ttext\tid'], ['id\ta\tb\tscore']
        for at in range(count):
            drug, other = draw.choice(DRUGS[:2]), draw.choice(DRUGS[:2])
            own.append(f'{text([drug])}\t{drug}')
            pairs.append(f'{at}\t{text([drug])}\t{text([other])}\t{"yes" if drug == DRUGS[0] else "no"}')
            for part in range(2):
                has = draw.random() < 0.5
                hoc.append(f'3_{int(has)},4_0\t{text(DRUGS[2:3] if has else [])}\t{at}_s{part}')
            score = draw.randrange(5)
            numbers.append(f'{at}\t{text(DRUGS[:1] * score)}\t{text([])}\t{score}')
        return {'own': own, 'bioasq': pairs, 'hoc': hoc, 'biosses': numbers}

    for split, count in {'train': 120, 'devel': 24, 'test': 40}.items():
        for name, of_set in lines(count).items():
            (root / name).mkdir(exist_ok=True)
            (root / name / f'{split}.tsv').write_text('\n'.join(of_set) + '\n')
    return root


@pytest.mark.parametrize('name', ['own', 'hoc', 'biosses'])
def test_a_plain_loop_of_transformers_gives_the_same_answers(models, sets, name):
    """One label, several, a number: with the batches of ours, no dropout and PyTorch's own optimiser and schedule."""
    task = task_for(set_at(sets / name, 'classes'))
    dataset = task.read(set_at(sets / name, 'classes'))
    given = Finetune(epochs=8, batch_sentences=8, learning_rate=2e-3, max_pieces=48, dropout=0.0)
    ours = finetune(task, models['bert'], dataset, given, seed=3)
    tokenizer = transformers.AutoTokenizer.from_pretrained(models['bert'])
    several = any(len(text.answers) != 1 for text in dataset.train)
    kind = 'multi_label' if several else 'single_label'
    torch.manual_seed(3)
    model = transformers.AutoModelForSequenceClassification.from_pretrained(
        models['bert'],
        num_labels=max(len(dataset.labels), 1),
        problem_type=f'{kind}_classification' if dataset.labels else 'regression',
        hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0,
    )

    def batch(texts):
        rows = [tokenizer(*text.words, truncation=True, max_length=48) for text in texts]
        return tokenizer.pad(rows, return_tensors='pt')

    def target(text):
        if several:
            return [float(label in text.answers) for label in dataset.labels]
        return dataset.labels.index(text.answers[0]) if dataset.labels else float(text.answers[0])

    plain = [p for n, p in model.named_parameters() if n.endswith('bias') or 'LayerNorm' in n]
    others = [p for n, p in model.named_parameters() if not (n.endswith('bias') or 'LayerNorm' in n)]
    groups = [{'params': others, 'weight_decay': 0.01}, {'params': plain, 'weight_decay': 0.0}]
    optimizer = torch.optim.AdamW(groups, lr=2e-3, eps=1e-8)
    orders = [drawn(len(dataset.train), 8, (3, epoch)) for epoch in range(1, 9)]
    updates, done, losses, answers = sum(map(len, orders)), 0, [], []
    for order in orders:
        model.train()
        total = 0.0
        for chosen in order:
            texts_of = [dataset.train[i] for i in chosen]
            loss = model(**batch(texts_of), labels=torch.tensor([target(text) for text in texts_of])).loss
            optimizer.zero_grad()
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            warm_up, at = max(1, round(0.1 * updates)), done + 1
            share = at / warm_up if at <= warm_up else (updates + 1 - at) / (updates + 1 - warm_up)
            for group in optimizer.param_groups:
                group['lr'] = 2e-3 * share
            optimizer.step()
            done, total = at, total + float(loss.detach())
        losses.append(total / len(order))
        model.eval()
        with torch.no_grad():
            answers.append(model(**batch(dataset.test)).logits.numpy())
    assert [epoch['loss'] for epoch in ours.history] == pytest.approx(losses, rel=2e-3, abs=1e-5)
    assert losses[-1] < 0.9 * losses[0]
    assert np.array(ours.found) == pytest.approx(answers[ours.best_epoch - 1], abs=2e-2)


@pytest.mark.parametrize(
    ('changes', 'message'),
    [
        (
            {'setting': {'a': {'head': 'crf'}}},
            r"head: 'crf' in setting 'a', but own is for text classification, which has linear, mlp, bilstm",
        ),
        (
            {'of_set': {'own': {'head': 'mlp'}}},
            r"head: 'mlp', but features='family' of own .* to one of first, mentions, starts",
        ),
        (
            {'of_set': {'bc5-chem': {'head': 'mlp'}}},
            r"head: 'mlp', but bc5-chem is for named-entity recognition, which has linear, crf, ",
        ),
    ],
)
def test_a_head_that_a_set_cannot_have_is_refused_before_anything_is_made(models, tmp_path, changes, message):
    written(tmp_path / 'sets' / 'own', ['the dose\tnone', 'zolmipan\tdrug'])
    save_set(tmp_path / 'sets' / 'bc5-chem', (4, 2, 2))
    changes = {'settings': tuple(changes.get('setting', ('standard',))), **changes}
    e = Experiment.from_config(config.defaults())
    given = dataclasses.replace(
        e.finetune, folder=str(tmp_path / 'sets'), models=(str(models['bert']),), task='classes', **changes
    )
    run = Run(tmp_path / 'run', dataclasses.replace(e, finetune=given, stages=('finetune',)), quiet=True)
    with pytest.raises(ConfigError, match=r'^config\.finetune\.' + message):
        execute(run, STAGES['finetune'])
    assert not (tmp_path / 'run' / 'finetune').exists()


def check_kept_models(folder):
    """transformers' own pipeline gives what was predicted, under the right names; a card says what it is."""
    from transformers import pipeline

    kept = sorted(folder.glob('*/*/standard/seed-0/model'))
    assert len(kept) == 8
    for place in kept[:4]:  # of BERT
        dataset, cell = place.parts[-4], place.parent
        rows = read_jsonl(cell / 'predictions.jsonl')
        classify = pipeline('text-classification', str(place))
        given = [dict(zip(('text', 'text_pair'), row['words'])) for row in rows]
        write_jsonl(folder / 'given.jsonl', ({'words': row['words']} for row in rows))
        said = [f'--to={folder / "said.jsonl"}', '--as=json', '--max_pieces=48']
        assert cli.main(['predict', str(place), str(folder / 'given.jsonl'), *said]) == 0
        for row, one in zip(rows, read_jsonl(folder / 'said.jsonl'), strict=True):
            same = pytest.approx(row['predicted'], abs=1e-4) if dataset == 'biosses' else row['predicted']
            assert one['answers'] == same
        found = classify(given, top_k=None, padding=True)
        scores = [{one['label']: one['score'] for one in of_text} for of_text in found]
        labels = {
            'own': set(DRUGS[:2]),
            'bioasq': {'yes', 'no'},
            'hoc': set(texts.HALLMARKS),
            'biosses': {'score'},
        }[dataset]
        assert set(scores[0]) == labels
        for row, of_text in zip(rows, scores, strict=True):
            if dataset == 'biosses':
                assert of_text['score'] == pytest.approx(row['predicted'][0], abs=1e-4)
            elif dataset == 'hoc':
                assert {label for label, p in of_text.items() if p > 0.5} == set(row['predicted'])
            else:
                assert [max(of_text, key=of_text.get)] == row['predicted']
                assert sum(of_text.values()) == pytest.approx(1)
        card = ModelCard.load(place / 'README.md')
        assert card.data.pipeline_tag == 'text-classification'
        assert card.data.datasets is None  # a local name is not the id of a data set on the hub
        assert len(card.data.widget) == len(card.data.eval_results) == 1
        record = FineTuning.read(read_sealed(cell / 'scores.json'), 'scores.json')
        metric = task_of(record).metric
        score = f'| {metric.title} | {100 * record.devel[DEFAULT][metric.name]:.2f} | '
        assert f'{score}{100 * record.test[DEFAULT][metric.name]:.2f} |' in card.text
        two = dataset in ('bioasq', 'biosses')
        assert (r"predict . --text=$'...\t...'`, or `bx.predict('.', [('...', '...')])`" in card.text) == two
        assert cli.main(['predict', str(place), '--text=' + ('...\t...' if two else '...')]) == 0


def check_seeds_together(folder, made):
    """The folder of several seeds says what statistics.json has the score of; none of its files is there twice."""
    kept = sorted(folder.glob('*/*/standard/ensemble'))
    assert len(kept) == 8
    for place in kept[:4]:  # of BERT
        dataset, record = place.parts[-3], read_json(place / 'ensemble.json')
        assert record['members'] == ['seed-0', 'seed-1']
        assert [p.parent.name for p in sorted(place.rglob('tokenizer.json'))] == ['ensemble']
        rows = read_jsonl(place.parent / 'seed-0' / 'predictions.jsonl')
        with warnings.catch_warnings():  # what is learned of one set is nothing
            warnings.simplefilter('ignore')
            said = bx.predict(place, [row['words'] for row in rows])
        [of_one] = [r['ensemble'] for r in made if (r['model'], r['dataset']) == ('bert', dataset)]
        test = of_one.get('mean_logits', of_one)['test']
        task = task_of(FineTuning.read(read_sealed(place.parent / 'seed-0' / 'scores.json'), 'scores.json'))
        scores = task.scores([row['gold'] for row in rows], [one['answers'] for one in said])
        measured = task.metric.name
        assert scores[DEFAULT][measured] == pytest.approx(test[DEFAULT][measured], abs=1e-6)
        card = ModelCard.load(place / 'README.md')
        assert f'| {task.metric.title} | {100 * test[DEFAULT][measured]:.2f} | ' in card.text
        assert f'2 models that {TOGETHER[dataset]}' in card.text
        assert (r"`bioptimus predict . --text=$'...\t...'` answers" in card.text) == (
            dataset in ('bioasq', 'biosses')
        )
        shutil.rmtree(place / 'seed-1')
        with pytest.raises(InputError, match=r'ensemble/seed-1: no such folder'):
            bx.predict(place, ['the dose'])


def test_the_stage_learns_scores_and_shows_all_of_them(models, sets, tmp_path, capsys):
    e = Experiment.from_config(config.defaults())
    settings = dataclasses.replace(
        e.finetune,
        folder=str(sets),
        models=tuple(f'{kind}={folder}' for kind, folder in models.items()),
        task='classes',
        seeds=(0, 1),
        epochs=4,
        learning_rate=1e-2,
        max_pieces=48,
        keep='ensemble',
    )
    e = dataclasses.replace(
        e, stages=('finetune', 'report'), finetune=settings, runtime=dataclasses.replace(e.runtime, workers=1)
    )
    own_test = [line.split('\t')[0] for line in (sets / 'own' / 'test.tsv').read_text().splitlines()]
    write_jsonl(tmp_path / 'some.jsonl', [{'id': '1', 'title': '. '.join(own_test[:20])}])
    e = dataclasses.replace(
        e, corpus=dataclasses.replace(e.corpus, inputs=(str(tmp_path / 'some.jsonl'),), heldout_fraction=0.0)
    )
    run = Run(tmp_path / 'run', e, quiet=True)
    execute(run, STAGES['corpus'])
    execute(run, STAGES['finetune'])
    folder = run.workdir / 'finetune'
    results = FineTuning.read_lines(folder / 'results.jsonl')
    by_place = {(r.model, r.dataset, r.seed): r for r in results}
    assert len(by_place) == 16
    for (model, dataset, seed), record in by_place.items():
        task = task_of(record)
        rows = read_jsonl(folder / model / dataset / 'standard' / f'seed-{seed}' / 'predictions.jsonl')
        gold, predicted = ([tuple(row[side]) for row in rows] for side in ('gold', 'predicted'))
        assert len(rows) == 40
        # What is on record is what the predictions say, by another library.
        theirs = {
            'own': lambda g, p: sklearn.metrics.accuracy_score(g, p),
            'bioasq': lambda g, p: sklearn.metrics.accuracy_score(g, p),
            'biosses': lambda g, p: scipy.stats.pearsonr(np.ravel(g), np.ravel(p)).statistic,
            'hoc': lambda g, p: sklearn.metrics.f1_score(
                *([[x in a for x in texts.HALLMARKS] for a in side] for side in (g, p)),
                average='micro',
                zero_division=0,
            ),
        }[dataset](gold, predicted)
        assert record.test[DEFAULT][task.metric.name] == pytest.approx(theirs)
        if (model, seed) == ('bert', 0):  # as the verb scores the same file
            own = folder / model / dataset / 'standard' / f'seed-{seed}' / 'predictions.jsonl'
            scored = score_file(sets / dataset, own, 'classes', {})
            assert task.scores(*zip(*((e.gold, e.predicted) for e in scored.examples))) == record.test
            assert not scored.notes
    best = {
        d: max(r.test[DEFAULT][task_of(r).metric.name] for (_, x, _), r in by_place.items() if x == d)
        for d in ('own', 'bioasq', 'hoc', 'biosses')
    }
    assert min(best.values()) > 0.8, best
    assert by_place['bert', 'own', 0].majority < 0.7
    assert 0.3 < by_place['bert', 'own', 0].devel_alike < 0.7
    made = read_json(folder / 'statistics.json')
    assert {r['ensemble']['seeds'] for r in made} == {2}
    kinds = {r['dataset']: (r['unit'], r['units']) for r in made}
    assert kinds == dict.fromkeys(best, ('texts', 40))

    check_kept_models(folder)
    check_seeds_together(folder, made)
    # Two models of the same set have learned the same from it.
    assert cli.main(['compare', '--models', str(folder / 'bert'), str(folder / 'roberta')]) == 0
    printed = capsys.readouterr().out
    assert set(re.findall(r'^(\w+): .*B - A = ', printed, re.M)) == set(best)
    execute(run, STAGES['report'])
    tables = (run.workdir / 'report' / 'tables.md').read_text('utf-8')
    shown = next(block for block in tables.split('### ') if block.startswith('Test scores'))
    assert 'majority' in shown
    assert "Pearson's r" in shown
    repeated = {(r['model'], r['dataset']): r['overlap'] for r in read_json(folder / 'slices.json')}
    for by_slicing in repeated.values():
        items = {s: sum(c['items'] for c in classes.values()) for s, classes in by_slicing.items()}
        assert (items['text'], items['parts']) == (40, 40)
    long = [len(text.split()) > 4 for text in own_test]
    in_corpus = repeated['bert', 'own']['corpus']
    assert sum(c['items'] for c in in_corpus.values()) == sum(long)
    assert in_corpus['all']['items'] >= sum(long[:20]) > 0
    shown_in_corpus = next(x for x in tables.split('### ') if x.startswith('Overlap with the corpus'))
    assert f'| {100 * in_corpus["all"]["score"]:.2f} [' in shown_in_corpus
    parts = next(block for block in tables.split('### ') if block.startswith('Overlap with the training set'))
    unseen = repeated['bert', 'own']['text']['unseen']
    assert f'| {100 * unseen["score"]:.2f} [' in parts
    assert f'] of {unseen["items"]} |' in parts
    # The mean of the logits that each seed has left decides, where texts have labels.
    assert {r['dataset'] for r in made if 'mean_logits' in r['ensemble']} == {'own', 'bioasq', 'hoc'}
    for name, labels in (('own', sorted(DRUGS[:2])), ('hoc', texts.HALLMARKS)):
        [of_one] = [r for r in made if (r['model'], r['dataset']) == ('bert', name)]
        cells = [folder / 'bert' / name / 'standard' / f'seed-{seed}' for seed in (0, 1)]
        logits_NxK = np.mean([np.load(cell / 'logits.npy') for cell in cells], 0)
        gold = [row['gold'] for row in read_jsonl(cells[0] / 'predictions.jsonl')]
        if name == 'own':
            theirs = np.mean([labels[row.argmax()] == g for row, (g,) in zip(logits_NxK, gold, strict=True)])
        else:
            given = [[x in g for x in labels] for g in gold]
            theirs = sklearn.metrics.f1_score(given, logits_NxK > 0, average='micro', zero_division=0)
        [score] = [
            of_one['ensemble']['mean_logits']['test'][DEFAULT][n]
            for n in ('accuracy', 'f1')
            if n in of_one['ensemble']['mean_logits']['test'][DEFAULT]
        ]
        assert score == pytest.approx(theirs)
    task = task_for(set_at(sets / 'own', 'classes'))
    dataset, given = (
        task.read(set_at(sets / 'own', 'classes')),
        (cells[0].parents[2] / 'own' / 'standard' / 'seed-0'),
    )
    assert task.mean(dataset, [given], dataset.labels, None) is not None
    np.save(given / 'logits.npy', -np.load(given / 'logits.npy'))  # of another fine-tuning
    assert task.mean(dataset, [given], dataset.labels, None) is None
    [of_one] = [r for r in made if (r['model'], r['dataset']) == ('bert', 'biosses')]
    together = [
        read_jsonl(folder / 'bert' / 'biosses' / 'standard' / f'seed-{seed}' / 'predictions.jsonl')
        for seed in (0, 1)
    ]
    mean = [(a['predicted'][0] + b['predicted'][0]) / 2 for a, b in zip(*together, strict=True)]
    theirs = scipy.stats.pearsonr([a['gold'][0] for a in together[0]], mean).statistic
    assert of_one['ensemble']['test'][DEFAULT]['r'] == pytest.approx(theirs)
    assert f'| {100 * theirs:.2f} [' in shown
    assert '], 2 seeds' in shown

    # Cells that are finished are read as they were written, with every measure of their set.
    results = (folder / 'results.jsonl').read_bytes()
    assert stage.build(run, folder).counts.kept == 16
    assert (folder / 'results.jsonl').read_bytes() == results
    assert of_one['test'].keys() == {DEFAULT, 'spearman'}
    assert of_one['test'][DEFAULT]['median'] == pytest.approx(of_one['test'][DEFAULT]['mean'])  # of two
