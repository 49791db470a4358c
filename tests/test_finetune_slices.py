"""Slices of mentions: the rules by hand, and counts that add up to the whole."""

import json
import random
import re
import shutil
from collections import Counter
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bioptimus_jax.corpus.documents import FOLDER, Document, write_documents
from bioptimus_jax.errors import InputError
from bioptimus_jax.experiment.schema import Experiment
from bioptimus_jax.finetuning import grams, overlap
from bioptimus_jax.finetuning.build import _shared
from bioptimus_jax.finetuning.config import TASKS, Finetune
from bioptimus_jax.finetuning.entities.slices import (
    SLICINGS,
    Classifier,
    Material,
    frequency_class,
    label_distribution,
    sliced_counts,
    slices,
    training_mentions,
)
from bioptimus_jax.finetuning.predictions import Predicted
from bioptimus_jax.finetuning.summary import TokenStatistics
from bioptimus_jax.finetuning.task import task_for
from bioptimus_jax.records.manifests import Manifest
from bioptimus_jax.records.record import plain
from bioptimus_jax.records.statistics import ItemScore
from bioptimus_jax.run.folder import Run
from bioptimus_jax.run.manifests import write_manifest
from bioptimus_jax.scoring.score import by_type, score
from bioptimus_jax.sets.corpora import read_iob2, set_at
from bioptimus_jax.sets.tags import spans
from bioptimus_jax.sets.texts import Text, Texts

TAGS = ('O', 'B-Drug', 'I-Drug', 'B-Gene', 'I-Gene')
WORDS = ('aspirin', 'Aspirin', 'TP53', 'kinase', 'of', 'x')
TRAINING = [(('Aspirin',), 'Drug'), (('TP53', 'kinase'), 'Gene'), (('x',), 'Gene')]
CONTEXTS = {'aspi': 3, '##rin': 0, 'tp53': 20}
PIECES = {'aspirin': ['aspi', '##rin'], 'tp53': ['tp53'], 'kinase': ['kin', '##ase'], 'of': ['of'], 'x': []}
COUNTS = {'aspirin': 3, 'tp53': 40, 'kinase': 2000, 'of': 30_000}


def material(**changes):
    settings = {
        'training': TRAINING,
        'pieces': lambda words: [piece for word in words for piece in PIECES[word.lower()]],
        'known': TokenStatistics(CONTEXTS, COUNTS, 1_000_000, lambda word: [word.lower()]),
    }
    return Material(**{**settings, **changes})


def test_every_class_by_hand():
    classify = Classifier(material())
    assert classify(('ASPIRIN',), 'Drug') == {
        'surface': 'seen',
        'surface_and_type': 'seen',
        'pieces': '2',
        'words': '1',
        'new_token': 'with',
        'contexts': '0',  # the least of its new tokens
        'frequency': '1-10',
    }
    assert classify(('aspirin',), 'Gene')['surface_and_type'] == 'unseen'
    assert classify(('aspirin',), 'Gene')['surface'] == 'seen'
    assert classify(('tp53', 'Kinase', 'of'), 'Gene') == {
        'surface': 'unseen',
        'surface_and_type': 'unseen',
        'pieces': '3-4',
        'words': '3-4',
        'new_token': 'with',
        'contexts': '20+',
        'frequency': '10-100',  # that of the rarest word
    }
    assert classify(('kinase', 'of'), 'Gene')['new_token'] == 'without'
    assert 'contexts' not in classify(('kinase', 'of'), 'Gene')
    assert classify(('x',), 'Gene')['pieces'] == '0'
    assert classify(('x',), 'Gene')['frequency'] == '0'
    assert classify(('kinase',) * 5, 'Gene')['words'] == '5+'
    assert classify(('kinase',) * 5, 'Gene')['pieces'] == '5+'


@pytest.mark.parametrize(
    ('count', 'words', 'expected'),
    [
        (0, 10, '0'),
        (1, 1_000_001, '<1'),
        (1, 1_000_000, '1-10'),
        (9, 1_000_000, '1-10'),
        (10, 1_000_000, '10-100'),
        (200, 2_000_000, '>100'),
        (199, 2_000_000, '10-100'),
    ],
)
def test_bounds_of_the_frequency_classes(count, words, expected):
    assert frequency_class(count, words) == expected


def test_slices_without_a_vocabulary_or_corpus_are_left_out():
    sentence = Predicted(('aspirin', 'of'), ('B-Drug', 'O'), ('B-Drug', 'O'))
    found = slices([[sentence]], material(known=TokenStatistics()), 50)
    assert list(found) == ['surface', 'surface_and_type', 'pieces', 'words']


def test_contexts_are_left_out_where_rows_were_made_without_any():
    sentence = Predicted(('aspirin', 'kinase'), ('B-Drug', 'B-Gene'), ('B-Drug', 'B-Gene'))
    without = slices([[sentence]], material(known=TokenStatistics(dict.fromkeys(CONTEXTS, 0))), 50)
    assert 'new_token' in without
    assert 'contexts' not in without


def test_measures_by_hand():
    """Two seeds over two sentences: aspirin is seen, kinase is not."""
    gold = ('B-Drug', 'O', 'B-Gene')
    words = ('aspirin', 'of', 'kinase')
    one = [Predicted(words, gold, gold), Predicted(words, gold, ('B-Drug', 'O', 'O'))]
    two = [Predicted(words, gold, ('B-Drug', 'O', 'O')), Predicted(words, gold, ('B-Gene', 'O', 'O'))]
    found = slices([one, two], material(), 500)
    seen, unseen = found['surface']['seen'], found['surface']['unseen']
    assert (seen.gold, seen.predicted, seen.recall, seen.precision) == (2, 2, 0.75, 0.75)
    assert seen.f1 == pytest.approx((1 + 0.5) / 2)
    assert (unseen.gold, unseen.predicted, unseen.recall) == (2, 0.5, 0.25)
    assert unseen.precision == 1  # of the one seed that predicts any
    assert unseen.f1 == pytest.approx(2 / 3)
    # The prediction aspirin/Gene is a surface that is known, with a type that is not.
    assert found['surface_and_type']['unseen'].gold == 2
    assert found['surface_and_type']['unseen'].predicted == 1
    assert seen.recall_interval[0] == pytest.approx(0.5)
    assert seen.recall_interval[1] == pytest.approx(1)


def test_a_class_that_only_one_side_has_defines_what_it_can():
    sentence = Predicted(('aspirin', 'of', 'kinase'), ('B-Drug', 'O', 'O'), ('O', 'O', 'B-Gene'))
    found = slices([[sentence]], material(), 50)['surface']
    assert (found['seen'].recall, found['seen'].precision, found['seen'].f1) == (0, None, None)
    assert found['seen'].precision_interval is None
    assert (found['unseen'].recall, found['unseen'].precision, found['unseen'].f1) == (None, 0, None)
    json.dumps(plain(found), allow_nan=False)


@settings(max_examples=100)
@given(st.integers(0, 2**32), st.booleans())
def test_classes_of_a_slicing_add_up_to_the_whole(seed, with_documents):
    generator = random.Random(seed)
    sizes = [generator.randint(1, 7) for _ in range(6)]
    words = [tuple(generator.choices(WORDS, k=n)) for n in sizes]
    gold = [tuple(generator.choices(TAGS, k=n)) for n in sizes]
    seeds = []
    for _ in range(2):
        tags = [tuple(generator.choices(TAGS, k=n)) for n in sizes]
        tags[0] = gold[0]
        documents = [i // 2 if with_documents else 0 for i in range(6)]
        seeds.append([Predicted(*row) for row in zip(words, gold, tags, documents, strict=True)])
    counts = sliced_counts(seeds, Classifier(material()))
    assert all(value.shape == (2, 3 if with_documents else 6, 3) for value in counts.values())
    whole = [score(gold, [s.predicted for s in sentences])['default'] for sentences in seeds]
    for slicing, classes in SLICINGS.items():
        parts = [value for (name, part), value in counts.items() if name == slicing]
        assert {part for name, part in counts if name == slicing} <= set(classes)
        if slicing == 'contexts':
            parts.append(counts.get(('new_token', 'without'), np.zeros((2, 1, 3), int)))
        totals = sum((part.sum(1) for part in parts), np.zeros((2, 3), int))
        for total, expected in zip(totals, whole, strict=True):
            assert total[1:].tolist() == [expected['gold'], expected['predicted']], slicing
            assert total[0] == pytest.approx(expected['recall'] * expected['gold'])


def test_a_slicing_by_type_would_be_by_type():
    """The counting itself, with another rule: the same numbers as the scorer's per type."""
    generator = random.Random(0)
    sentences = []
    for _ in range(200):
        size = generator.randint(1, 9)
        gold, predicted = (tuple(generator.choices(TAGS, k=size)) for _ in range(2))
        sentences.append(Predicted(tuple(generator.choices(WORDS, k=size)), gold, predicted))
    counts = sliced_counts([sentences], lambda words, kind: {'type': kind})
    expected = by_type([s.gold for s in sentences], [s.predicted for s in sentences])
    for kind, rates in expected.items():
        correct, gold, predicted = counts['type', kind].sum((0, 1)).tolist()
        assert (correct / predicted, correct / gold) == (rates['precision'], rates['recall'])


def test_training_mentions():
    sentences = [(('a', 'TP53', 'kinase'), ('O', 'B-Gene', 'I-Gene')), (('x',), ('B-Drug',))]
    assert training_mentions(sentences) == [(('TP53', 'kinase'), 'Gene'), (('x',), 'Drug')]


def test_label_distribution_by_hand():
    splits = {'train': [('B-Drug', 'I-Drug', 'O', 'O'), ('B-Gene',)], 'test': [('O',)]}
    assert plain(label_distribution(splits)) == {
        'train': {
            'words': 5,
            'mentions': 2,
            'tags': {'B-Drug': 0.2, 'B-Gene': 0.2, 'I-Drug': 0.2, 'O': 0.4},
            'types': {'Drug': 0.5, 'Gene': 0.5},
        },
        'test': {'words': 1, 'mentions': 0, 'tags': {'O': 1}, 'types': {}},
    }


def test_unseen_mentions_of_a_real_set(data):
    """Against a count by sets of strings, and with predictions that are gold but for what was never seen."""
    folder = data / 'ner' / 'ncbi-disease'
    train, test = (list(read_iob2(folder / f'{name}.tsv')) for name in ('train', 'test'))
    known = training_mentions((s.words, s.tags) for s in train)
    surfaces = {' '.join(words).casefold() for words, _ in known}
    predicted, unseen = [], Counter()
    for sentence in test:
        tags = list(sentence.tags)
        for _, first, last in spans(sentence.tags):
            seen = ' '.join(sentence.words[first : last + 1]).casefold() in surfaces
            unseen[seen] += 1
            if not seen:
                tags[first : last + 1] = ['O'] * (last + 1 - first)
        predicted.append(Predicted(sentence.words, sentence.tags, tuple(tags)))
    found = slices([predicted], material(training=known, pieces=list, known=TokenStatistics()), 200)
    assert found['surface']['seen'].gold == unseen[True] > 100
    assert found['surface']['unseen'].gold == unseen[False] > 100
    assert (found['surface']['seen'].recall, found['surface']['unseen'].recall) == (1, 0)
    assert sum(part.gold for part in found['words'].values()) == 960


def test_shares_of_5_grams_are_those_of_loops_over_all_pairs():
    """Random texts of a few words, so that many 5-grams are shared; some have fewer than five words."""
    draw = random.Random(0)
    texts = [Text((' '.join(draw.choices('abc', k=draw.randint(2, 14))),), ('x',)) for _ in range(300)]
    train, test = texts[:200], texts[200:]

    def grams(text):
        words = text.words[0].split()
        return {tuple(words[at : at + 5]) for at in range(max(1, len(words) - 4))}

    shares = [max(len(grams(t) & grams(x)) / len(grams(t)) for x in train) for t in test]
    wanted = [
        'none' if not s else 'below 25 %' if s < 0.25 else '25-65 %' if s < 0.65 else '65 % or more'
        for s in shares
    ]
    found = overlap.classes_of(Texts('x', tuple(train), (), tuple(test), ()))
    assert found['parts'] == wanted
    assert len(set(wanted)) == 4
    assert found['text'] == ['seen' if t in train else 'unseen' for t in test]
    assert {*found['text']} == {'seen', 'unseen'}


def test_what_is_learned_of_devel_is_seen(tmp_path):
    train, devel, test = ([Text((word,), ('x',)) for word in words] for words in ('ab', 'cd', 'abcdef'))
    dataset = Texts('x', tuple(train), tuple(devel), tuple(test), ())
    cells = [
        SimpleNamespace(dataset=dataset, settings=Finetune(learn_devel=learned)) for learned in (False, True)
    ]
    found = _shared(tmp_path, tmp_path / 'corpus', cells, {dataset: dataset}, None, None)
    for (_, learned), seen in zip(found, (2, 4), strict=True):
        assert found[dataset, learned]['text'] == ['seen'] * seen + ['unseen'] * (6 - seen)


def test_shares_in_the_corpus_are_those_of_loops_over_all_documents(tmp_path, monkeypatch):
    """Names cut a text into parts, of which those of under five words say nothing. Known sets need no corpus."""
    monkeypatch.setattr(grams, 'DOCUMENTS', 7)
    monkeypatch.setattr(grams, 'DOCUMENTS_PER_TASK', 20)
    draw = random.Random(0)

    def text(low, high, words=(*'abcd', 'É', '@GENE$')):
        return ' '.join(draw.choices(words, k=draw.randint(low, high)))

    tests = {name: [Text((text(2, 14), text(0, 9)), ('x',)) for _ in range(50)] for name in ('one', 'two')}
    documents = [text(1, 60, ('A,', 'b', 'c', '(D)', 'e')) for _ in range(80)]
    documents += [' - '.join(example.words).upper() for example in tests['two'][:10]]
    run = Run(tmp_path / 'run', Experiment(), quiet=True)
    write_documents(
        run.workdir / 'corpus', 'train', [Document(str(i), x) for i, x in enumerate(documents)], 3
    )
    write_documents(run.workdir / 'corpus', 'heldout', [Document('h', 'a a a a a a')], 1)
    write_manifest(run.workdir / 'corpus', Manifest(content='x', counts={'train': 90, 'heldout': 1}))

    def shingles(text):
        words = re.findall('[a-z]+', text.lower().replace('é', 'e'))
        return {tuple(words[at : at + 5]) for at in range(len(words) - 4)}

    known = [shingles(x) for x in documents]
    wanted = {}
    for name, examples in tests.items():
        asked = [set().union(*map(shingles, ' '.join(example.words).split('@GENE$'))) for example in examples]
        wanted[name] = [max(len(x & y) / len(x) for y in known) if x else None for x in asked]
    (tmp_path / 'finetune').mkdir()

    def shares(of_sets):
        return grams.in_corpus(
            tmp_path / 'finetune', of_sets, run.workdir / 'corpus', run.config.runtime, run.console
        )

    first = shares({'one': tests['one']})
    assert first['one'] == pytest.approx(wanted['one'], abs=1e-4)
    both = shares(tests)
    assert both == {name: pytest.approx(wanted[name], abs=1e-4) for name in wanted}
    classes = [overlap.share_class(x, overlap.IN_CORPUS) for x in both['two'] if x is not None]
    assert {None, 0.0, 1.0} < {*both['one'], *both['two']}
    assert set(classes) == set(overlap.IN_CORPUS)
    shutil.rmtree(run.workdir / 'corpus' / FOLDER)
    assert shares(tests) == both
    with pytest.raises(InputError, match="has no split 'train'"):
        shares({'one': tests['two']})


def test_gad_repeats_itself_as_often_as_is_known(data):
    """34 of 534 test sentences have 65 % or more of their 5-grams in one training sentence."""
    chosen = set_at(data / 'blurb' / 'gad')
    found = overlap.classes_of(task_for(chosen).read(chosen))
    assert found['parts'].count('65 % or more') == 34
    assert len(found['text']) == 534


def test_scores_of_seen_and_unseen_items_are_those_of_their_texts_alone():
    """Accuracy of a model that is right on what it has seen, and on half of the rest; two seeds."""
    task = TASKS.load('classes').of('own')
    classes = {'text': ['seen'] * 10 + ['unseen'] * 20, 'parts': ['none'] * 30}
    seeds = [
        [Predicted(('w',), ('a',), ('a' if at < 10 or (at + s) % 4 else 'b',)) for at in range(30)]
        for s in (0, 1)
    ]
    found = overlap.overlap(task, seeds, classes)
    assert found['text']['seen'] == ItemScore(items=10, score=1.0, interval=(1.0, 1.0))
    right = [sum(e.predicted == e.gold for e in examples[10:]) / 20 for examples in seeds]
    assert found['text']['unseen'].score == pytest.approx(sum(right) / 2)
    low, high = found['text']['unseen'].interval
    assert low < sum(right) / 2 < high
    assert set(found['parts']) == {'none'}
    # Sentences without an entity, in gold or predicted, have no F1.
    nothing = [Predicted(('w',), ('O',), ('O',))] * 30
    assert overlap.overlap(TASKS.load('entities').of('x'), [nothing], classes)['text']['seen'] == ItemScore(
        items=10
    )
