"""The generated world: the same for the same seed, only the declared leaks, and worth learning."""

import collections
import gzip
import json
import random
import re
from pathlib import Path

import ahocorasick_rs
import pytest

from bioptimus_jax.demo import general, generate, grammar
from bioptimus_jax.demo.phrases import NEUTRAL, PLAIN, TITLES, TYPICAL
from bioptimus_jax.storage.files import sha256

FILES = ['general.txt', 'pubmed.jsonl.gz'] + [
    f'ner/{name}/{split}.tsv' for name in ('drugs', 'diseases') for split in ('train', 'devel', 'test')
]


@pytest.fixture(scope='module')
def world(tmp_path_factory):
    folder = tmp_path_factory.mktemp('world')
    return folder, generate.generate(folder, seed=3)


def documents(folder: Path) -> list[dict]:
    with gzip.open(folder / 'pubmed.jsonl.gz', 'rt') as file:
        return [json.loads(line) for line in file]


def sentences(folder: Path, name: str, split: str) -> list[list[list[str]]]:
    blocks = (folder / 'ner' / name / f'{split}.tsv').read_text().strip().split('\n\n')
    return [[line.split('\t') for line in block.split('\n')] for block in blocks]


def mentions(folder: Path, name: str, split: str) -> list[str]:
    found: list[str] = []
    for sentence in sentences(folder, name, split):
        for word, tag in sentence:
            if tag.startswith('B-'):
                found.append(word)
            elif tag.startswith('I-'):
                found[-1] += ' ' + word
    return found


def test_same_seed_same_bytes_other_seed_other_bytes(tmp_path):
    for folder, seed in (('a', 1), ('b', 1), ('c', 2)):
        generate.generate(tmp_path / folder, seed, scale=0.05)
    for file in FILES:
        digests = [sha256(tmp_path / folder / file) for folder in 'abc']
        assert digests[0] == digests[1]
        assert digests[0] != digests[2]


def test_counts_are_those_of_the_files(world):
    folder, counts = world
    assert counts['documents'] == len(documents(folder))
    for name in ('drugs', 'diseases'):
        for split in ('train', 'devel', 'test'):
            assert counts[f'{name}_{split}_mentions'] == len(mentions(folder, name, split))
        assert counts[f'{name}_test_mentions'] >= 150


def test_documents_have_the_length_of_short_abstracts(world):
    folder, counts = world
    texts = [f'{d["title"]} {d["abstract"]}' for d in documents(folder)]
    lengths = sorted(len(text.split()) for text in texts)
    assert sum(length < 5 for length in lengths) == counts['short']
    assert 55 <= lengths[len(lengths) // 2] <= 150
    assert lengths[-1] < 200
    assert len(texts) - counts['duplicates'] - len(set(texts)) < counts['short'] + 1
    assert len({d['id'] for d in documents(folder)}) == len(texts)


def test_only_the_declared_documents_hold_a_benchmark_sentence(world):
    folder, counts = world
    keys = {
        generate.letters(''.join(word for word, _ in sentence))
        for name in ('drugs', 'diseases')
        for split in ('train', 'devel', 'test')
        for sentence in sentences(folder, name, split)
    }
    search = ahocorasick_rs.AhoCorasick([key for key in keys if len(key) >= 40])
    found = [bool(search.find_matches_as_indexes(generate.letters(d['abstract']))) for d in documents(folder)]
    assert sum(found) == counts['leaked'] == generate.LEAKED


def test_labels_are_valid_iob2_with_one_type(world):
    folder, _ = world
    for name, label in (('drugs', 'Drug'), ('diseases', 'Disease')):
        tags: collections.Counter[str] = collections.Counter()
        for sentence in sentences(folder, name, 'train'):
            before = 'O'
            for _, tag in sentence:
                assert tag in ('O', f'B-{label}', f'I-{label}')
                assert tag[0] != 'I' or before != 'O', sentence
                before = tag
                tags[tag] += 1
        assert tags['O'] > tags[f'B-{label}'] > 0
    assert any(tag.startswith('I-') for s in sentences(folder, 'diseases', 'test') for _, tag in s)


@pytest.mark.parametrize('name', ['drugs', 'diseases'])
def test_most_test_names_are_new_but_stand_in_the_corpus(world, name):
    folder, _ = world
    seen = set(mentions(folder, name, 'train'))
    test = mentions(folder, name, 'test')
    assert 0.55 < sum(mention not in seen for mention in test) / len(test) < 0.9
    corpus = ' '.join(d['abstract'] for d in documents(folder)).lower()
    frequent = [corpus.count(mention) >= 5 for mention in set(test)]
    assert sum(frequent) / len(frequent) > 0.9


def test_endings_alone_do_not_give_the_class_away():
    names = grammar.lexicon(random.Random(0)).names
    endings = grammar.DRUG_ENDINGS + grammar.DISEASE_ENDINGS
    by_ending: dict[str, collections.Counter[str]] = collections.defaultdict(collections.Counter)
    for kind, entries in names.items():
        for entry in entries:
            ending = next((e for e in sorted(endings, key=len, reverse=True) if entry[-1].endswith(e)), None)
            if ending:
                by_ending[ending][kind] += 1
    for kind, own in (('drug', grammar.DRUG_ENDINGS), ('disease', grammar.DISEASE_ENDINGS)):
        right = sum(by_ending[e][kind] for e in own)
        everything = sum(sum(by_ending[e].values()) for e in own)
        assert 0.3 < right / everything < 0.75
        assert all(len(by_ending[e]) > 1 for e in own if by_ending[e]), by_ending


def test_names_are_unique_and_split_into_seen_and_unseen():
    lexicon = grammar.lexicon(random.Random(1))
    everything = [' '.join(name).lower() for names in lexicon.names.values() for name in names]
    assert len(set(everything)) == len(everything)
    for kind, names in lexicon.names.items():
        assert set(lexicon.seen[kind]) | set(lexicon.unseen[kind]) == set(names)
        assert not set(lexicon.seen[kind]) & set(lexicon.unseen[kind])


def test_names_that_training_shows_are_a_sample_and_not_the_frequent_ones(world):
    """A vocabulary keeps frequent names whole: those are among the names of training and among the others.

    Were the most frequent names those of training, the shares would be 0.89 and 0.36.
    """
    folder, _ = world
    corpus = ' '.join(f'{d["title"]} {d["abstract"]}'.lower() for d in documents(folder))
    words = collections.Counter(re.findall(r'\w+', corpus))
    train = mentions(folder, 'drugs', 'train')
    unseen = [name for name in mentions(folder, 'drugs', 'test') if name not in set(train)]
    names = sorted({*train, *unseen}, key=words.__getitem__)
    frequent = set(names[len(names) // 2 :])
    shares = [sum(name in frequent for name in found) / len(found) for found in (train, unseen)]
    assert all(0.3 < share < 0.75 for share in shares), shares


def test_general_text_is_another_language(world):
    folder, counts = world
    text = (folder / 'general.txt').read_text()
    assert len(text.strip().split('\n\n')) == counts['paragraphs']
    words = collections.Counter(re.findall('[a-z]+', text.lower()))
    assert len(words) > 2000
    drugs = {name[0] for name in grammar.lexicon(random.Random('bioptimus demo 3')).names['drug']}
    assert len(drugs) > 100
    assert not drugs & set(words)


def test_templates_expand_without_a_leftover():
    rng = random.Random(0)
    world = generate.World(rng, grammar.lexicon(rng))
    plain = general.General.of(rng)
    biomedical = [t for group in (NEUTRAL, PLAIN, TITLES, *TYPICAL.values()) for t in group]
    for template in biomedical:
        sentence = grammar.expand(rng, template, lambda kind: (('xyzzy',), kind))
        assert not re.search(r'[\[\]{}|]', grammar.text(sentence)), template
        for slot in re.findall(r'\{(\w+)\}', template):
            known = slot in world.names.names or slot in (
                'thing',
                'other',
                'third',
                'number',
                'percent',
                'dose',
                'year',
            )
            assert known, (slot, template)
    for group in general.TOPICS.values():
        for template in group:
            written = grammar.text(grammar.expand(rng, template, lambda kind: plain.pick(rng, kind)))
            assert not re.search(r'[\[\]{}|]', written), template


def test_text_and_labels_of_one_sentence():
    sentence: grammar.Phrases = [(('renal', 'cell', 'carcinoma'), 'disease'), (('(', 'rare', ')', '.'), '')]
    assert grammar.text(sentence) == 'Renal cell carcinoma (rare).'
    assert grammar.iob2(sentence, 'disease', 'X')[:4] == [
        ('renal', 'B-X'),
        ('cell', 'I-X'),
        ('carcinoma', 'I-X'),
        ('(', 'O'),
    ]
    assert general.plural('cherry') == 'cherries'
    assert general.past('carry') == 'carried'
    assert general.adverb('gentle') == 'gently'
