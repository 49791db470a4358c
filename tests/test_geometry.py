"""Geometry of words on clouds of known anisotropy and known clusters; their choice and vectors against transformers."""

import dataclasses
import itertools
import json
import string

import jax
import numpy as np
import pytest
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st

from bioptimus_jax.analysis import build, cloze, contexts, geometry, word_geometry
from bioptimus_jax.corpus.documents import Document, open_documents, write_documents, write_metadata
from bioptimus_jax.experiment.schema import Experiment
from bioptimus_jax.model import tensors
from bioptimus_jax.model.families.bert import Bert
from bioptimus_jax.run.folder import Run
from bioptimus_jax.storage.files import write_json, write_jsonl
from bioptimus_jax.tokenizer.kinds.wordpiece import SPECIAL_TOKENS, make
from bioptimus_jax.vocab import frequency

LETTERS = list(string.ascii_lowercase)
PIECES = [*SPECIAL_TOKENS, *LETTERS, *('##' + c for c in LETTERS), '.']
RARE = [a + b + 'ra' * (1 + i % 2) for i, (a, b) in enumerate(itertools.product('bcdf', 'aeiou'))]
FREQUENT = [a + b + 'lo' * (1 + i % 2) for i, (a, b) in enumerate(itertools.product('bcdf', 'aeiou'))]
BETWEEN = [a + b + 'mid' for a, b in itertools.product('bcdf', 'aeiou')]
COUNTS = (
    {w: 10 + i for i, w in enumerate(RARE)}
    | {w: 100 + i for i, w in enumerate(BETWEEN)}
    | {w: 1000 + i for i, w in enumerate(FREQUENT)}
)


def gaussian(count, dimensions, seed=0):
    return np.random.default_rng(seed).normal(size=(count, dimensions))


def by_turns(count):
    return np.arange(count) % 2 == 1


@pytest.mark.parametrize(
    ('variances', 'score'),
    [
        ((1, 1, 1, 1), 1),
        ((5, 0, 0, 0), 0),
        ((2, 2, 0, 0), 1 / 3),
        ((3, 1), 0.6),  # (3 + 1)^2 / (9 + 1) = 1.6 dimensions of 2
        ((0, 0), 0),
    ],
)
def test_iso_score_by_hand(variances, score):
    assert geometry.iso_score(np.array(variances, float)) == pytest.approx(score, abs=1e-12)


@given(st.lists(st.floats(0.01, 100), min_size=2, max_size=40))
def test_iso_score_is_the_share_of_dimensions_in_use(variances):
    """The published steps come to (p - 1) / (D - 1) with p the participation ratio of the variances."""
    used = sum(variances) ** 2 / sum(v * v for v in variances)
    expected = (used - 1) / (len(variances) - 1)
    assert geometry.iso_score(np.array(variances)) == pytest.approx(expected, abs=1e-9)


def test_one_dimension_has_no_iso_score():
    with pytest.raises(ValueError, match='two dimensions'):
        geometry.iso_score(np.ones(1))


def test_isotropic_cloud_line_and_ellipsoid():
    cloud = geometry.word_measures(gaussian(1500, 8), by_turns(1500))
    assert cloud['isoscore'] > 0.98
    assert cloud['cosine'] == pytest.approx(0, abs=0.005)
    assert cloud['top_share'] == pytest.approx(1 / 8, rel=0.15)
    line = geometry.word_measures(gaussian(300, 1) * np.arange(1.0, 5)[None], by_turns(300))
    assert line['isoscore'] == pytest.approx(0, abs=1e-9)
    assert line['top_share'] == pytest.approx(1)
    scales = np.array([3.0] + [1.0] * 9)[None]
    ellipsoid = geometry.word_measures(gaussian(1500, 10) * scales, by_turns(1500))
    assert ellipsoid['top_share'] == pytest.approx(0.5, abs=0.04)
    assert ellipsoid['isoscore'] == pytest.approx((18**2 / 90 - 1) / 9, abs=0.04)


def test_a_common_direction_shows_in_what_is_not_centred():
    """Rows u + noise with |u|^2 = 3 |noise|^2: cosine and the uncentred share are 3/4."""
    cloud = geometry.word_measures(gaussian(1500, 64) / 8 + np.sqrt(3) * np.eye(64)[0], by_turns(1500))
    assert cloud['cosine'] == pytest.approx(0.75, abs=0.02)
    assert cloud['cosine_centred'] == pytest.approx(0, abs=0.005)
    assert cloud['top_share_uncentred'] == pytest.approx(0.75, abs=0.02)
    assert cloud['top_share'] < 0.05
    assert cloud['isoscore'] > 0.9


def test_pairwise_cosine_is_that_of_every_pair():
    assert geometry.pairwise_cosine(np.array([[1.0, 0], [0, 2], [-3, 0]])) == pytest.approx(-1 / 3)
    rows = gaussian(30, 5) + 1
    rows[3] = 0
    unit = rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-9)
    every = [unit[i] @ unit[j] for i, j in itertools.combinations(range(30), 2)]
    assert geometry.pairwise_cosine(rows) == pytest.approx(np.mean(every))


def test_neighbours_of_known_clusters():
    high = by_turns(200)
    noise = gaussian(200, 6) / 20
    assert geometry.neighbour_purity(noise + np.where(high[:, None], np.eye(6)[0], np.eye(6)[1]), high) == 1
    assert geometry.neighbour_purity(noise, high) == pytest.approx(0.5, abs=0.04)
    angles = np.array([0, 1, 90, 91, 180, 181, 270, 271]) * np.pi / 180
    twins = np.stack([np.cos(angles), np.sin(angles)], axis=1)  # the nearest word is of the other class
    assert geometry.neighbour_purity(twins, by_turns(8), neighbours=1) == 0
    assert geometry.neighbour_purity(twins, np.arange(8) % 4 < 2, neighbours=1) == 1


def test_clusters_on_one_ray_are_seen_when_centred():
    high = by_turns(200)
    far = np.where(high[:, None], 8.0, 3.0) * np.eye(6)[0] + gaussian(200, 6) / 20 * np.where(
        high[:, None], 8.0, 3.0
    )
    measured = geometry.word_measures(far, high)
    assert measured['purity'] == pytest.approx(0.5, abs=0.05)
    assert measured['purity_centred'] > 0.95


def test_centroid_distance_by_hand():
    """Classes -1, 1 and 2, 4 on a line: means 3 apart, pooled variance (2 + 2) / 2."""
    words = np.array([[-1.0, 7], [2, 7], [1, 7], [4, 7]])
    assert geometry.centroid_distance(words, by_turns(4)) == pytest.approx(3 / np.sqrt(2))
    assert geometry.centroid_distance(words * 5 + 100, by_turns(4)) == pytest.approx(3 / np.sqrt(2))
    chance = geometry.centroid_distance(gaussian(5000, 20), by_turns(5000))
    assert chance == pytest.approx(2 / np.sqrt(5000), rel=0.3)


def test_interval_of_a_mean_is_student_s():
    values = gaussian(12, 1)[:, 0]
    without = [np.delete(values, i).mean() for i in range(12)]
    found = geometry.interval(values.mean(), without)
    low, high = scipy.stats.t.interval(0.95, 11, values.mean(), scipy.stats.sem(values))
    assert (found.low, found.high) == (pytest.approx(low), pytest.approx(high))


def test_intervals_hold_what_is_true():
    """Fifty clouds around (1, ..., 1): the truth lies in about 95 % of the intervals."""
    high, held = by_turns(60), {'cosine': 0, 'purity': 0}
    many = gaussian(20000, 6, seed=99) + 1
    truth = {'cosine': geometry.pairwise_cosine(many), 'purity': 29 / 59}
    for seed in range(50):
        found = geometry.of_words(gaussian(60, 6, seed) + 1, high, seed=3)
        for name in held:
            held[name] += found[name].low <= truth[name] <= found[name].high
    assert all(44 <= count <= 50 for count in held.values()), held


def test_a_change_is_measured_on_the_same_words():
    high = by_turns(80)
    cloud = gaussian(80, 10)
    before, after = (geometry.of_words(x, high, seed=0) for x in (cloud, cloud + 0.5))
    found = geometry.change(before, after)
    assert found['cosine'].low > 0
    assert found['cosine'].value == pytest.approx(after['cosine'].value - before['cosine'].value)
    for name in ('cosine_centred', 'isoscore', 'top_share', 'purity_centred', 'centroid_distance'):
        assert [getattr(found[name], end) for end in ('low', 'value', 'high')] == pytest.approx(
            [0, 0, 0], abs=1e-9
        )


def test_every_group_lacks_words_of_both_classes():
    high = np.arange(61) < 25
    groups = geometry._groups(high, seed=4)
    for of_class in (high, ~high):
        sizes = np.bincount(groups[of_class], minlength=geometry.GROUPS)
        assert sizes.min() >= 1
        assert sizes.max() - sizes.min() <= 1
    with pytest.raises(ValueError, match='either class'):
        geometry.of_words(gaussian(14, 3), np.arange(14) < 4, seed=0)


def test_projection_keeps_clusters_and_is_repeatable():
    high = by_turns(40)
    words = gaussian(40, 8) / 10 + high[:, None] * 5
    first, again = (geometry.project(words, seed=2) for _ in range(2))
    assert np.array_equal(first, again)
    assert first.shape == (40, 2)
    assert geometry.neighbour_purity(first - first.mean(axis=0), high) > 0.9


def speller_of(words):
    return cloze.Speller(make([*PIECES, *words], lowercase=True))


def test_thirds_by_count():
    words = {'aaa': 900, 'bbb': 800, 'ccc': 50, 'ddd': 40, 'eee': 6, 'fff': 5}
    others = {'ggg': 4, 'ab': 700, 'h2o': 700, 'spelled': 700}  # rare, short, no word, no single piece
    speller = speller_of([*words, 'ggg', 'ab', 'h2o'])
    counted = words | others
    found = contexts.frequency_thirds(list(counted), list(counted.values()), speller)
    assert found == {'aaa': True, 'bbb': True, 'eee': False, 'fff': False}
    equal = dict.fromkeys(words, 7) | {'aaa': 9, 'fff': 6}
    found = contexts.frequency_thirds(list(equal), list(equal.values()), speller)
    assert found == {'aaa': True, 'fff': False}  # 7 reaches from the lowest into the highest third
    assert contexts.frequency_thirds(['aaa'], [9], speller) == {}


def test_pairs_are_of_equal_length():
    classes = dict.fromkeys(RARE, False) | dict.fromkeys(FREQUENT, True) | {'partnerless': True}
    found = contexts.pairs(classes, classes, seed=0)
    assert len(found) == 20
    assert all(len(a) == len(b) and (classes[a], classes[b]) == (False, True) for a, b in found)
    assert sorted(w for pair in found for w in pair) == sorted({*classes} - {'partnerless'})
    assert contexts.pairs(classes, reversed(classes), seed=0) == found != contexts.pairs(classes, classes, 1)


@given(st.lists(st.sampled_from([*RARE, 'spelled', 'x']), max_size=60), st.integers(9, 30))
def test_parts_are_the_text_and_fit(words, most):
    spellers = [speller_of(RARE), speller_of(RARE[:5])]
    found = list(contexts.parts(words, spellers, most))
    assert [w for part in found for w in part] == words
    lengths = [[2 + sum(len(s(w)) for w in part) for s in spellers] for part in found]
    assert all(max(pair) <= most for pair in lengths)
    for pair, following in zip(lengths, found[1:], strict=False):  # full: the next word has no room
        assert max(n + len(s(following[0])) for n, s in zip(pair, spellers, strict=True)) > most
    assert list(contexts.parts(['x', 'spelled' * 9, 'x'], spellers, most)) == [('x',)]


def texts(count=60, seed=0):
    generator = np.random.default_rng(seed)
    words = [*RARE, *BETWEEN, *FREQUENT, *FREQUENT]
    return [Document(f'd{i}', ' '.join(generator.choice(words, size=40)) + ' .') for i in range(count)]


def test_occurrences_are_of_as_many_documents():
    found = contexts.occurrences(texts(), {*RARE, 'absent'}, [speller_of(RARE)], 3, 16)
    assert set(found) <= set(RARE)
    assert len(found) > 15
    by_id = {d.id: d.text.split() for d in texts()}
    for word, places in found.items():
        assert len({name.split('#')[0] for name, _, _ in places}) == len(places) == 3
        for name, part, place in places:
            assert part[place] == word
            assert ' '.join(part) in ' '.join(by_id[name.split('#')[0]])


def small_bert(vocab_size, seed=0):
    architecture = Bert(vocab_size, hidden=16, layers=2, heads=2, intermediate=32, max_positions=64)
    params = jax.tree.map(
        lambda leaf: np.asarray(leaf * 4), architecture.initial_parameters(jax.random.key(seed))
    )
    return architecture, params


def test_vectors_of_words_agree_with_transformers(tmp_path):
    """Under a vocabulary that spells half of the words in several pieces, whose mean counts."""
    torch = pytest.importorskip('torch')
    transformers = pytest.importorskip('transformers')
    speller = speller_of(RARE)
    speller.subwords.save(tmp_path, 64)
    architecture, params = small_bert(len(speller.subwords.tokens))
    tensors.write_folder(tmp_path, architecture, params, tmp_path)
    found = contexts.occurrences(texts(), {*RARE, *FREQUENT}, [speller], 2, 40)
    names = tuple(sorted(found))
    chosen = contexts.WordPairs(
        names, tuple(w in FREQUENT for w in names), (9,) * len(names),
        tuple(contexts._passages(names, found)), 2, 'heldout',
    )  # fmt: skip
    assert {len(speller(w)) for w in names} > {1}
    states = contexts.context_vectors(chosen, speller, *tensors.load_folder(tmp_path)[:2])
    model = transformers.AutoModel.from_pretrained(tmp_path, add_pooling_layer=False).eval()
    tokenizer = transformers.AutoTokenizer.from_pretrained(tmp_path)
    sums = dict.fromkeys(names, 0)
    for word in names:
        for _, part, place in found[word]:
            inputs = tokenizer(list(part), is_split_into_words=True, return_tensors='pt')
            with torch.no_grad():
                last = model(**inputs).last_hidden_state[0].numpy()
            own = [i for i, w in enumerate(inputs.word_ids(0)) if w == place]
            sums[word] = sums[word] + last[own].mean(axis=0) / 2
    assert states == pytest.approx(np.stack([sums[w] for w in names]), abs=1e-4)
    table = model.get_input_embeddings().weight.detach().numpy()
    rows = contexts.embedding_vectors(names, speller, table)
    expected = [table[tokenizer(w, add_special_tokens=False)['input_ids']].mean(axis=0) for w in names]
    assert rows == pytest.approx(np.stack(expected), abs=1e-6)


@pytest.fixture(scope='module')
def run(tmp_path_factory):
    """A run up to `export`: words.parquet, documents, and tiny random models under two vocabularies."""
    workdir = tmp_path_factory.mktemp('geometry') / 'run'
    vocabularies = {'source': [*PIECES, *RARE], 'own': [*PIECES, *COUNTS]}
    folders = {workdir / 'source': 'source', workdir / 'surgery' / 'model': 'own'}
    folders |= {workdir / 'export' / name: 'own' for name in ('0.1', '0.2')}
    for seed, (folder, which) in enumerate(folders.items()):
        folder.mkdir(parents=True)
        make(vocabularies[which], lowercase=True).save(folder, 64)
        architecture, params = small_bert(len(vocabularies[which]), seed)
        tensors.write_folder(folder, architecture, params, folder)
    (workdir / 'vocab').mkdir()
    frequency.write(workdir / 'vocab', COUNTS, {}, 1.0)
    lengths = {'heldout': 4, 'train': 60}
    for split, length in lengths.items():
        write_documents(workdir / 'corpus', split, texts(length, seed=length), 1)
    write_metadata(workdir / 'corpus', {split: [length] for split, length in lengths.items()})
    old = set(vocabularies['source'])
    kinds = [{'token': t, 'kind': 'copied' if t in old else 'synthesised'} for t in vocabularies['own']]
    write_jsonl(workdir / 'surgery' / 'tokens.jsonl', [{'id': 0, 'norm': 1.0, **kind} for kind in kinds])
    for stage in ('corpus', 'vocab', 'surgery', 'export'):
        write_json(workdir / stage / 'manifest.json', {'counts': {}, 'content': stage})
    e = Experiment()
    e = dataclasses.replace(
        e,
        phases=('0.1', '0.2'),
        source=dataclasses.replace(e.source, path=str(workdir / 'source')),
        rows=dataclasses.replace(e.rows, max_document_pieces=40),
        analysis=dataclasses.replace(
            e.analysis,
            cloze_documents=2,
            pairs=50,
            geometry_words=30,
            geometry_contexts=3,
            geometry_points=20,
        ),
    )
    (workdir / 'analyze').mkdir()
    return Run(workdir, e, quiet=True)


def test_words_are_chosen_from_text_that_has_enough_of_them(run):
    spellers = [speller_of(COUNTS), speller_of(RARE)]
    folders = run.folder('vocab'), run.folder('corpus')
    chosen = word_geometry.choose(run.config, *folders, spellers)
    assert len(chosen.texts) == 30
    assert chosen.split == 'train'  # four held-out documents are too few, for frequent words as well
    assert list(chosen.high) == [False, True] * 15
    assert set(chosen.texts[::2]) <= set(RARE)
    assert set(chosen.texts[1::2]) <= set(FREQUENT)
    assert list(chosen.counts) == [COUNTS[w] for w in chosen.texts]
    places = [p.words[i] for p in chosen.passages for i in p.hidden]
    assert all(places.count(w) == 3 for w in chosen.texts)
    assert len(places) == 90
    assert word_geometry.choose(run.config, *folders, spellers) == chosen
    fewer = dataclasses.replace(run.config.analysis, geometry_contexts=1, geometry_words=10)
    once = dataclasses.replace(run.config, analysis=fewer)
    assert word_geometry.choose(once, *folders, spellers).split == 'heldout'
    source = open_documents(run.folder('corpus'), 'train')
    assert len(list(contexts._shuffled(source, 7, 0))) == 7
    assert sorted(d.id for d in contexts._shuffled(source, 99, 0)) == sorted(d.id for d in source)


def test_stage_measures_the_same_words_in_every_model(run):
    folder = run.workdir / 'analyze'
    counts = build.build(run, folder).counts
    assert counts.geometry_words == 30
    records = json.loads((folder / 'geometry.json').read_text())
    assert [r['model'] for r in records] == ['source', 'initial', '0.1', '0.2']
    assert len({r['words']['digest'] for r in records}) == 1
    assert [r['words']['one_piece'] for r in records] == [0.5, 1, 1, 1]
    assert records[0]['words']['high']['new'] == 0
    assert (records[1]['words']['low']['new'], records[1]['words']['high']['new']) == (0, 1)
    for r in records:
        for kind in word_geometry.VECTOR_KINDS:
            assert all(m['low'] <= m['value'] <= m['high'] for m in r['words'][kind].values())
            assert {len(m['replicates']) for m in r['words'][kind].values()} == {15}
    points = json.loads((folder / 'points.json').read_text())
    assert points['high'] == [False, True] * 10
    assert [m['model'] for m in points['models']] == ['source', 'initial', '0.1', '0.2']
    assert {np.shape(m[kind]) for m in points['models'] for kind in word_geometry.VECTOR_KINDS} == {(20, 2)}


def test_no_words_are_no_error(run, tmp_path):
    for changes, reason in (
        ({'geometry_words': 0}, 'geometry_words is 0'),
        ({'geometry_contexts': 200}, 'lower config.analysis.geometry_contexts'),
    ):
        analysis = dataclasses.replace(run.config.analysis, **changes)
        e = dataclasses.replace(run.config, analysis=analysis, phases=())
        build.build(Run(run.workdir, e, quiet=True), tmp_path)
        [_, initial] = json.loads((tmp_path / 'geometry.json').read_text())
        assert reason in initial['words']['skipped']
        assert json.loads((tmp_path / 'points.json').read_text())['models'] == []
