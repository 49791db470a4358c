"""The probe: ranks by hand, tokens that are really hidden, and what it says about a tiny source."""

import dataclasses
import random
import sys
from pathlib import Path

import jax
import numpy as np
import pytest
from toy_source import LETTERS, OLD, SPECIAL, ids, make_source

from bioptimus_jax.cli import main as cli
from bioptimus_jax.corpus.documents import Document, open_documents, write_documents
from bioptimus_jax.errors import ConfigError, InputError
from bioptimus_jax.experiment import config
from bioptimus_jax.experiment.schema import Experiment
from bioptimus_jax.lab import probe
from bioptimus_jax.lab.costs import Costs
from bioptimus_jax.lab.sections import probe as section
from bioptimus_jax.model import tensors
from bioptimus_jax.model.families.electra import Electra
from bioptimus_jax.records.probe import Probe
from bioptimus_jax.report.measures import read_measures
from bioptimus_jax.run.folder import Run
from bioptimus_jax.storage.files import read_json, write_json
from bioptimus_jax.surgery import (
    donor,
    fasttext,
    recovery,
    synthesis,
)
from bioptimus_jax.surgery.config import Surgery
from bioptimus_jax.surgery.initialisations import INITIALISATIONS, Initialisation, middle
from bioptimus_jax.surgery.material import Material
from bioptimus_jax.surgery.rows import unit
from bioptimus_jax.tokenizer.kinds import wordpiece
from bioptimus_jax.vocab import frequency

SYLLABLES = ['ka', 'lo', 'mi', 'nu', 'pe', 'ra', 'so', 'ti', 've', 'wo']
DRAW = random.Random(2)
WORDS = sorted({''.join(DRAW.choices(SYLLABLES, k=DRAW.randint(1, 3))) for _ in range(70)})
SOURCE = list(dict.fromkeys([*OLD, *LETTERS, *WORDS, *(f'##{s}' for s in SYLLABLES)]))
OWN = [*SPECIAL, 'novel', *LETTERS, *WORDS, *(f'##{s}' for s in SYLLABLES)]


def test_ranks_cosines_and_norms_by_hand():
    table = np.array([[1.0, 0], [0, 1], [3, 3]], np.float32)
    found = recovery.measure(np.array([[1.0, 0.1], [1.0, 0.1], [0.0, 2.0]]), np.array([0, 1, 1]), table)
    # to (1, .1): cosines .995, .0995, .774 and products 1, .1, 3.3; to (0, 2): 0, 1, .707 and 0, 2, 6
    assert found['rank_uncentred'].tolist() == [1, 3, 1]
    assert found['rank_dot'].tolist() == [2, 3, 2]
    np.testing.assert_allclose(found['norm_ratio'], [1.01**0.5, 1.01**0.5, 2], rtol=1e-6)
    # From the mean (4/3, 4/3), in thirds: rows (-1, -4), (-4, -1), (5, 5); rebuilt (-1, -3.7) and (-4, 2).
    assert found['rank'].tolist() == [1, 2, 1]
    near = (1 + 4 * 3.7) / (17 * (1 + 3.7**2)) ** 0.5
    far = (4 + 3.7) / (17 * (1 + 3.7**2)) ** 0.5
    np.testing.assert_allclose(found['cosine'], [near, far, (16 - 2) / (17 * 20) ** 0.5], rtol=1e-6)


def test_a_part_that_all_rows_share_hides_nothing():
    draw = np.random.default_rng(0)
    table = draw.normal(size=(300, 8))
    rebuilt = table[:50] + draw.normal(size=(50, 8)) * 0.3
    found = recovery.measure(rebuilt + 100, np.arange(50), (table + 100).astype(np.float32))
    assert np.median(found['rank']) == 1
    assert np.median(found['rank_uncentred']) == 1
    moved = recovery.measure(rebuilt, np.arange(50), (table + 100).astype(np.float32))
    assert (
        np.median(moved['rank']) > 50
    )  # literal rows that lack the shared part are far from where they belong


def test_the_true_rows_are_recovered_exactly():
    table = make_source(SOURCE).table()
    true = np.arange(5, len(table), 3)
    found = recovery.measure(table[true].astype(np.float64), true, table)
    assert set(found['rank']) == set(found['rank_uncentred']) == {1}
    np.testing.assert_allclose(found['cosine'], 1, atol=1e-6)
    np.testing.assert_allclose(found['norm_ratio'], 1, atol=1e-6)
    summary = recovery.summary(found, {}, 0)
    assert summary.rank == (1, 1, 1)
    longer = recovery.measure(table[true] * 3.0, true, table)
    np.testing.assert_array_equal(longer['rank_dot'], found['rank_dot'])
    np.testing.assert_allclose(longer['norm_ratio'], 3, atol=1e-5)


def test_medians_by_class_and_their_intervals():
    ranks = np.array([1.0, 3, 5, 100, 200])
    measured = dict.fromkeys(recovery.MEASURES, ranks)
    numbers = {'contexts': [0, 1, 3, 12, 12], 'pieces': [1, 1, 2, 4, 9], 'frequency': [0, 0, 1, 1, 2]}
    found = recovery.summary(measured, {name: np.array(n) for name, n in numbers.items()}, 0)
    assert found.rank[0] == 5
    by = {title: {n: c.rank[0] for n, c in found.classes(title).items()} for title in numbers}
    assert by['frequency'] == {'rare': 2, 'middle': 52.5, 'frequent': 200}
    assert by['contexts'] == {'0': 1, '1': 3, '2-4': 5, '10+': 150}
    assert {n: (c.norm_ratio[0], c.tokens) for n, c in found.by_pieces.items()} == {
        '1': (2, 2),
        '2': (5, 1),
        '4+': (150, 2),
    }
    draw = np.random.default_rng(0)
    inside = 0
    for seed in range(100):
        _, low, high = recovery._median(draw.exponential(size=80), seed)
        inside += low <= np.log(2) <= high
    assert 85 <= inside <= 100  # 95 % of intervals hold the true median


def test_choice_is_by_frequency_seeded_and_leaves_half():
    made = make_source(SOURCE)
    counts = np.array([OWN.index(t) + 1 for t in OWN])
    chosen = probe.choose(made, OWN, counts, 20, 0)
    assert len(chosen) == len(set(chosen)) == 20
    assert chosen == probe.choose(made, OWN, counts, 20, 0)
    assert chosen != probe.choose(made, OWN, counts, 20, 1)
    usable = [t for t in OWN if t in SOURCE and len(wordpiece.KIND.text(t)) > 1 and t not in SPECIAL]
    assert set(chosen) <= set(usable)
    for tenth in np.array_split(np.array(usable), 10):  # counts rise with the id
        assert len(set(chosen) & set(tenth)) == 2
    assert len(probe.choose(made, OWN, counts, 10_000, 0)) == len(usable) // 2
    assert 'novel' not in usable
    with pytest.raises(InputError, match='0 tokens'):
        probe.choose(made, OWN, np.zeros(len(OWN), int), 20, 0)


def test_a_hidden_token_is_spelled_in_other_pieces():
    made = make_source(SOURCE)
    hidden = [WORDS[0], '##ka', WORDS[5]]
    without = probe.hiding(made, hidden)
    for token in hidden:
        pieces = [made.vocabulary[i] for i in without.subwords.spell_token(token)]
        assert token not in pieces
        assert ''.join(map(wordpiece.KIND.text, pieces)) == wordpiece.KIND.text(token)
    np.testing.assert_array_equal(without.table(), made.table())
    assert made.subwords.spell_token(WORDS[0]) == [made.vocabulary.index(WORDS[0])]


def test_names_are_settings():
    assert probe.named(probe.PAPER) == 'contextualized'
    assert probe.named(Surgery()) == 'contextualized layers=() shrinkage=1.0 map=spelled scale=centred'
    assert probe.flags(Surgery()) == '--config.surgery.strategy=contextualized'
    changed = dataclasses.replace(probe.PAPER, layers=(3, 4), map='linear', shrinkage=5.0)
    assert probe.named(changed) == 'contextualized layers=3,4 shrinkage=5.0 map=linear'
    assert probe.flags(changed).split() == [
        '--config.surgery.strategy=contextualized',
        '--config.surgery.layers=3,4',
        '--config.surgery.shrinkage=5.0',
        '--config.surgery.map=linear',
        '--config.surgery.scale=rescaled',
    ]
    for settings in (
        Surgery(strategy='random_rows'),
        dataclasses.replace(probe.PAPER, strategy='random_rows'),
    ):
        assert probe.flags(settings) == '--config.surgery.strategy=random_rows'
    for layers in (1, 2, 6, 12):
        found = probe.variants(layers, 10)
        assert len({probe.named(s) for s in found}) == len(found)
        assert max(n for s in found for n in s.layers) <= layers
        for settings in found if layers in (1, 12) else ():  # every one can be chosen in a configuration
            values = config.defaults()
            values.surgery.update(dataclasses.asdict(settings))
            Experiment.from_config(values)
    assert [middle(n) for n in (1, 2, 6, 12)] == [(0, 1), (1, 2), (3, 4), (6, 7)]
    assert 'contextualized fit_steps=7 scale=centred' in map(probe.named, probe.variants(2, 10, 7))
    assert not any(s.fit_steps for s in probe.variants(2, 10))
    assert dataclasses.replace(probe.PAPER, layers=()) in probe.variants(6, 10)
    assert Surgery() in probe.variants(6, 10)


@pytest.fixture
def run(tmp_path):
    made = make_source(SOURCE, layers=2)
    made.subwords.save(tmp_path / 'tokenizer', 32)
    tensors.write_folder(tmp_path / 'source', made.architecture, made.parameters, tmp_path / 'tokenizer')
    settings = config.defaults()
    settings.source.path, settings.runtime.workers, settings.seed = str(tmp_path / 'source'), 1, 4
    run = Run(tmp_path / 'run', Experiment.from_config(settings), quiet=True)
    draw = random.Random(0)
    texts = [' '.join(draw.choices([*WORDS, 'the', 'of'], k=12)) + '.' for _ in range(150)]
    count = write_documents(
        run.workdir / 'corpus', 'train', [Document(f'd{i}', t) for i, t in enumerate(texts)], 1
    )
    write_json(run.workdir / 'corpus' / 'manifest.json', {'counts': {'train': count}, 'content': ''})
    own = wordpiece.make(OWN, True)
    own.save(run.workdir / 'vocab', 32)
    frequency.write(run.workdir / 'vocab', wordpiece.KIND.count_words(texts, True), {}, 1.0)
    write_json(run.workdir / 'vocab' / 'manifest.json', {'counts': {}, 'content': ''})
    return run


def nearest(given):
    means_NxD = given.sums / np.maximum(given.contexts, 1)[:, None]
    nearest_N = (unit(means_NxD) @ unit(given.anchor_states).T).argmax(axis=1)
    return np.where((given.contexts > 0)[:, None], given.anchor_rows[nearest_N], np.nan)


def test_the_probe_of_a_tiny_source(run, monkeypatch):
    """A record that was added is ranked like any other, in both scales and with every layer."""
    everything = Initialisation(
        'the row of an anchor', nearest, isolated_states=True, contexts=True, anchors=True
    )
    monkeypatch.setitem(INITIALISATIONS, 'nearest', everything)
    read = []
    plain = synthesis.sum_states

    def watched(source, reading, *rest, **kept):
        read.append(reading)
        return plain(source, reading, *rest, **kept)

    monkeypatch.setattr(synthesis, 'sum_states', watched)
    result = probe.probe(run, 12, 6)
    assert result == Probe.read(read_json(run.workdir / 'probe.json'), 'probe.json')
    hidden = {SOURCE.index(t.token) for t in result.hidden}
    assert len(hidden) == 12
    pieces = {int(i) for reading in read for window in reading.windows for i in window}
    assert not pieces & hidden
    assert all(1 <= t.contexts <= 6 and t.pieces for t in result.hidden)
    names = [v.name for v in result.variants]
    assert {'averaged_input', 'contextualized', 'contextualized layers=0 map=respelled', 'similarity'} <= set(
        names
    )
    layers = ('', ' layers=0', ' layers=1', ' layers=()')
    wanted = {f'nearest{layer}{scale}' for layer in layers for scale in ('', ' scale=centred')}
    assert {name for name in names if name.startswith('nearest')} == wanted
    ranks = [v.rank[0] for v in result.variants]
    assert ranks == sorted(ranks)
    assert all(v.rank[1] <= v.rank[0] <= v.rank[2] for v in result.variants)
    by_name = {v.name: v for v in result.variants}
    scaled, literal = by_name['contextualized scale=rescaled'], by_name['contextualized']
    assert scaled.rank_uncentred == literal.rank_uncentred
    assert scaled.norm_ratio[0] < literal.norm_ratio[0]  # last layers are long
    table = section.probe(read_measures(run))  # what the verb prints
    assert [row[0].text for row in table.rows] == names
    assert min(result.seconds, *(v.seconds for v in result.variants)) >= 0


def test_the_probe_compares_methods_with_a_donor(run, monkeypatch):
    """A second probe, for which none can be trained, finds the same of all other methods."""
    monkeypatch.setattr(fasttext, 'BUCKETS', 1000)
    result = probe.probe(run, 12, 2)
    variants = {v.name: v for v in result.variants}
    with_donor = {'focus', 'omp', 'focus scale=centred', 'omp scale=centred'}
    assert with_donor <= variants.keys()
    trained = min(variants[name].seconds for name in with_donor)
    assert variants['averaged_input'].seconds < trained < variants['contextualized'].seconds + trained
    vectors = donor.donate(run, make_source(SOURCE).subwords, [WORDS[0], WORDS[1]])
    assert len(vectors.ids) > 40
    assert not {SOURCE.index(WORDS[0]), SOURCE.index(WORDS[1])} & set(vectors.ids.tolist())
    monkeypatch.setitem(sys.modules, 'gensim', None)
    without = probe.probe(run, 12, 2)
    assert not with_donor & {v.name for v in without.variants}
    assert len(without.variants) == len(variants) - 4
    timeless = [
        {v.name: dataclasses.replace(v, seconds=0) for v in made.variants if v.name not in with_donor}
        for made in (result, without)
    ]
    assert timeless[0] == timeless[1]
    assert result.hidden == without.hidden


def with_donor(run: Run, **changes) -> Run:
    surgery = dataclasses.replace(run.config.surgery, donor=run.config.source.path, **changes)
    return Run(run.workdir, dataclasses.replace(run.config, surgery=surgery), quiet=True)


def test_the_probe_takes_the_donor_that_is_named(run, monkeypatch):
    monkeypatch.setitem(sys.modules, 'gensim', None)  # nothing is trained
    found = {v.name for v in probe.probe(with_donor(run, strategy='omp', anchors=5), 12, 2).variants}
    assert {'focus', 'omp anchors=5', 'omp anchors=5 scale=centred'} <= found


def test_rows_of_a_narrow_table_are_compared_where_a_map_makes_them(run):
    """States of a narrow ELECTRA are wider than its table: only what is mapped, or made of rows, can be a row."""
    made = make_source(SOURCE, layers=1)
    shape = Electra(len(SOURCE), 16, 1, 2, 16, made.architecture.max_positions, embedding_size=8)
    params = jax.tree.map(np.asarray, shape.initial_parameters(jax.random.key(0)))
    tensors.write_folder(Path(run.config.source.path), shape, params, run.workdir.parent / 'tokenizer')
    found = {one.name for one in probe.probe(run, 12, 2).variants}
    assert {'averaged_input', 'contextualized layers=0 map=respelled'} <= found
    assert not {'contextualized', 'averaged_last'} & found


def test_contexts_of_the_probe_hold_their_tokens(run):
    documents, vocab = open_documents(run.folder('corpus'), 'train'), run.folder('vocab')
    found = probe.sample_contexts(run.config, documents, vocab, WORDS[:5], 4, 1000, run.console)
    assert set(found.tokens) == set(WORDS[:5])
    assert max(found.rank) == 3
    for token, sentence, start, end in zip(found.tokens, found.sentence, found.start, found.end, strict=True):
        assert found.sentences[sentence][start:end] == token


def test_the_probe_says_what_it_lacks(run, tmp_path, capsys):
    alone = dataclasses.replace(run.config, source=dataclasses.replace(run.config.source, path=''))
    alone = Run(run.workdir, alone, quiet=True)
    for given, tokens, message in (
        (run, 0, '--probe-tokens=0'),
        (alone, 5, 'needs a source'),
        (with_donor(run), 12, r'surgery\.anchors: 64, but .* 16 dimensions'),
    ):
        with pytest.raises(ConfigError, match=message):
            probe.probe(given, tokens, 5)
    arguments = [
        '--config=demo',
        f'--workdir={tmp_path}/new',
        f'--config.source.path={tmp_path}/source',
        '--probe',
    ]
    assert cli.main(['surgery', *arguments]) == 3
    assert 'bioptimus vocab' in capsys.readouterr().err
    assert not (tmp_path / 'new' / 'surgery').exists()


def test_the_probe_compares_fits_and_a_hidden_token_is_never_predicted():
    named = {probe.named(one) for one in probe.variants(6, 10, 7)}
    wanted = {
        'averaged_input fit_steps=7 scale=centred',
        'averaged_input fit_steps=7 fit_layer=3 scale=centred',
        'averaged_input fit_steps=7 fit_again=0.1 scale=centred',
    }
    assert wanted <= named
    assert not any('cross' in name for name in named)
    with_head = {probe.named(one) for one in probe.variants(6, 10, 7, head=True)} - named
    assert {name.partition(' ')[0] for name in with_head} == {'averaged_input', 'contextualized'}
    assert all('fit_cross_entropy=1.0' in name for name in with_head)
    assert len(with_head) == 4
    source = make_source(OLD)
    without = probe.hiding(source, ['drug', 'na'])
    batch = {
        'tokens': np.array([[2, *ids('the'), 4, 3]], np.int32),
        'segments': np.ones((1, 4), np.int32),
        'positions': np.arange(4, dtype=np.int32)[None],
    }
    logits = {}
    for name, one in {'all': source, 'hidden': without}.items():
        states = one.architecture.encode(one.parameters, batch)
        logits[name] = np.asarray(one.architecture.masked_lm_logits(one.parameters, states))[0, 2, : len(OLD)]
    hidden = ids('drug', 'na')
    assert np.exp(logits['hidden'][hidden]).max() == 0
    others = np.setdiff1d(np.arange(len(OLD)), hidden)
    np.testing.assert_array_equal(logits['hidden'][others], logits['all'][others])


def test_a_variant_costs_what_it_reads():
    costs = Costs(searched=5.0)
    costs.seconds |= {'tokens alone': 4.0, 'contexts': 8.0, 'respelled': 4.0}
    costs.times |= {'tokens alone': 2, 'contexts': 1, 'respelled': 2}
    sums = {('mean', 'all', 0): (None, np.array([6, 4])), ('mean', 'all', 1): (None, np.array([1, 4]))}
    table = np.zeros((1, 2))
    donated = donor.Donated(table, table, np.zeros(1, int), 7.0)
    material = Material(table, [[0]], 2, (2,), {}, sums, donated=donated)
    like = dataclasses.replace(Surgery(), map='none')
    expected = [
        (dataclasses.replace(like, strategy='averaged_input'), 0),
        (dataclasses.replace(like, strategy='averaged_last'), 2),
        (like, 2 + 5 + 8),
        (dataclasses.replace(like, max_contexts=1), 2 + 5 + 4),
        (dataclasses.replace(like, map='respelled'), 2 + 5 + 8 + 4),
        (dataclasses.replace(like, strategy='similarity', map='respelled'), 5 + 8),
        (dataclasses.replace(like, strategy='omp'), 7),
    ]
    for settings_, seconds in expected:
        assert costs.of(settings_, material) == pytest.approx(seconds), settings_


def test_timed_sums_are_known_by_what_was_read(monkeypatch):
    now = iter([0.0, 1.5, 10.0, 12.0, 20.0, 20.5])
    monkeypatch.setattr('bioptimus_jax.lab.costs.time.monotonic', lambda: next(now))
    costs = Costs(0.0)
    sums = costs.timed(lambda *given: np.zeros(1))
    for label in ('respelled 1 of 2', 'respelled 2 of 2', 'contexts'):
        sums(None, None, (), label)
    assert dict(costs.seconds) == {'respelled': 3.5, 'contexts': 0.5}
    assert costs.times['respelled'] == 2
