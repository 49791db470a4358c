"""Hidden words against hand-computed values and transformers; geometry on inputs with known anisotropy."""

import dataclasses
import itertools
import json
import math
import shutil
from pathlib import Path

import jax
import numpy as np
import pytest

from bioptimus_jax.analysis import build, cloze, entities, geometry, new_tokens, sentence_vectors
from bioptimus_jax.analysis.sentence_vectors import text_vectors
from bioptimus_jax.corpus.documents import Document, write_documents, write_metadata
from bioptimus_jax.errors import ConfigError, InputError, Stopped
from bioptimus_jax.experiment.schema import Experiment
from bioptimus_jax.experiment.stages import STAGES
from bioptimus_jax.finetuning.config import Finetune
from bioptimus_jax.model import tensors
from bioptimus_jax.model.families.bert import Bert
from bioptimus_jax.records.analysis import SentenceVectors
from bioptimus_jax.report.measures import read_measures
from bioptimus_jax.report.sections import new_tokens as section
from bioptimus_jax.run.execute import execute
from bioptimus_jax.run.folder import Run
from bioptimus_jax.sets.corpora import set_at
from bioptimus_jax.storage.files import write_json, write_jsonl
from bioptimus_jax.tokenizer import subwords
from bioptimus_jax.tokenizer.kinds.wordpiece import SPECIAL_TOKENS, make
from bioptimus_jax.vocab import frequency

LETTERS = list('abcdefghijklmnopqrstuvwxyz')
PIECES = [*SPECIAL_TOKENS, *LETTERS, *('##' + c for c in LETTERS), '.']
SMALL = [*PIECES, 'the', 'drug', '##s', 'asp', '##irin']
LARGE = [*PIECES, 'the', 'drugs', 'drug', 'aspirin', 'helps']
SENTENCES = [
    'The drug aspirin helps .',
    'Drugs help the aspirin drugs the drug .',
    'Aspirin the the helps drugs .',
]


def vocabulary_of(entries):
    return list(dict.fromkeys(entries))


@pytest.fixture(scope='module')
def spellers():
    return [cloze.Speller(make(vocabulary_of(v), lowercase=True)) for v in (LARGE, SMALL)]


def documents(count=12):
    return [
        Document(f'd{i}', ' '.join(SENTENCES[(i + j) % 3] for j in range(1 + i % 4)), 'made')
        for i in range(count)
    ]


def hide(spellers, **changes):
    return cloze.passages(documents(), spellers, **(dict(fraction=0.4, seed=7, max_pieces=64) | changes))


def test_mask_is_the_same_whatever_the_order_of_the_vocabularies(spellers):
    chosen = hide(spellers)
    assert chosen == hide(spellers[::-1])
    assert cloze.mask_digest(chosen) == cloze.mask_digest(hide(spellers)[::-1])
    assert cloze.mask_digest(chosen) != cloze.mask_digest(hide(spellers, seed=8))
    assert chosen[0].words[:5] == ('the', 'drug', 'aspirin', 'helps', '.')


def test_mask_takes_its_share_of_the_words():
    drawn = [cloze.is_hidden(1, f'd{i}', j, 0.15) for i in range(100) for j in range(200)]
    assert np.mean(drawn) == pytest.approx(0.15, abs=4 * math.sqrt(0.15 * 0.85 / len(drawn)))


def test_text_fits_under_both_vocabularies(spellers):
    for most in (8, 20, 33):
        for passage in hide(spellers, max_pieces=most):
            lengths = [2 + sum(len(s(w)) for w in passage.words) for s in spellers]
            assert max(lengths) <= most
            words = documents()[int(passage.id[1:])].text.lower().split()
            if len(passage.words) < len(words):  # cut, and not one word too early
                following = words[len(passage.words)]
                assert max(n + len(s(following)) for n, s in zip(lengths, spellers, strict=True)) > most


def test_words_unknown_to_one_vocabulary_are_never_hidden(spellers):
    greek = cloze.Speller(make([*vocabulary_of(LARGE), 'β'], lowercase=True))
    texts = [Document(f'g{i}', 'the β drug', 'made') for i in range(30)]
    both = cloze.passages(texts, [greek, spellers[1]], fraction=0.9, seed=0, max_pieces=16)
    alone = cloze.passages(texts, [greek], fraction=0.9, seed=0, max_pieces=16)
    assert any(1 in p.hidden for p in alone)
    assert not any(1 in p.hidden for p in both)
    assert all(p.words == ('the', 'β', 'drug') for p in both)


def test_casings_do_not_mix(spellers):
    cased = cloze.Speller(make(vocabulary_of(LARGE), lowercase=False))
    with pytest.raises(InputError, match='same casing'):
        hide([spellers[0], cased])


def test_hidden_words_are_whole_and_all_masks(spellers):
    passage = cloze.Passage('d', ('the', 'aspirin', 'helps'), (1,))
    for speller, pieces in zip(spellers, (['aspirin'], ['asp', '##irin']), strict=True):
        [row] = cloze.rows_of([passage], speller)
        names = [speller.subwords.tokenizer.id_to_token(int(t)) for t in row.tokens]
        assert names[: 2 + len(pieces)] == ['[CLS]', 'the', *['[MASK]'] * len(pieces)]
        assert names[-1] == '[SEP]'
        assert [speller.subwords.tokenizer.id_to_token(int(t)) for t in row.targets] == pieces
        assert row.slots.tolist() == list(range(2, 2 + len(pieces)))
        assert names.count('[MASK]') == len(pieces)


def test_measures_of_a_uniform_model_are_known(spellers):
    """Every piece costs ln V; the first id of the vocabulary is always the guess."""
    chosen, (large, small) = hide(spellers), spellers

    def uniform(batch):
        return np.full(batch['targets'].shape, math.log(100)), np.zeros(batch['targets'].shape, bool)

    scored = cloze.score_words(chosen, small, uniform)
    result = cloze.summarise('m', scored, [large, small]).json()
    words = [p.words[i] for p in chosen for i in p.hidden]
    pieces = sum(len(small(w)) for w in words)
    assert [w.text for w in scored] == words
    assert result['words'] == len(words)
    assert result['pieces'] == pieces > len(words)
    assert result['nats_per_word'] == pytest.approx(math.log(100) * pieces / len(words))
    assert result['nats_per_piece'] == pytest.approx(math.log(100))
    assert result['bits_per_character'] == pytest.approx(math.log2(100) * pieces / sum(map(len, words)))
    assert result['one_piece']['words'] == sum(len(small(w)) == len(large(w)) == 1 for w in words) > 0
    assert result['one_piece']['nats_per_word'] == pytest.approx(math.log(100))
    assert result['one_piece']['nats_per_word_error'] == pytest.approx(0, abs=1e-12)
    assert result['word_accuracy'] == 0


def test_a_word_is_right_only_if_all_its_pieces_are(spellers):
    chosen = [cloze.Passage('d', ('aspirin', 'the'), (0, 1))]
    wrong = spellers[1].subwords.tokens.index('##irin')

    def scorer(batch):
        return np.ones(batch['targets'].shape), batch['targets'] != wrong

    scored = cloze.score_words(chosen, spellers[1], scorer)
    assert [(w.text, w.pieces, w.nats, w.right) for w in scored] == [
        ('aspirin', 2, 2.0, False),
        ('the', 1, 1.0, True),
    ]


def test_error_is_that_of_documents_not_of_words():
    def words(passage, nats, how_many):
        return [cloze.HiddenWord(passage, 'w', 1, nats, True) for _ in range(how_many)]

    result = cloze.summarise('m', words(0, 1.0, 10) + words(1, 3.0, 10), []).json()
    # two documents with means 1 and 3: sd sqrt(2), standard error 1, however many words each has
    assert result['nats_per_word_error'] == pytest.approx(1.0)
    assert cloze.summarise('m', words(0, 1.0, 10), []).nats_per_word_error is None


IOB2 = (
    'Aspirin\tB-Drug\nhelps\tO\n.\tO\n\n'
    'the\tO\naspirin\tB-Drug\ndrugs\tI-Drug\naspirin\tB-Drug\n\n'
    'an\tO\nαβ\tI-Drug\nx-drug\tB-Gene\n'
)


def write_set(folder, name='drugs'):
    (folder / name).mkdir(parents=True)
    for split in ('train', 'devel', 'test'):
        (folder / name / f'{split}.tsv').write_text(IOB2 if split == 'train' else 'zz\tB-Drug\n', 'utf-8')
    return folder


def test_entities_in_pieces_by_hand(tmp_path):
    """Mentions: Aspirin, "aspirin drugs", aspirin, αβ (an orphan I-), x-drug."""
    write_set(tmp_path)
    files = entities.entity_files(Finetune(folder=str(tmp_path)))
    assert files == [tmp_path / 'drugs' / 'train.tsv']
    chosen = entities.measured_sets(Finetune(folder=str(tmp_path)))
    assert entities.count_mentions(chosen[0]) == {
        'Aspirin': 1,
        'aspirin drugs': 1,
        'aspirin': 1,
        'αβ': 1,
        'x-drug': 1,
    }
    large, small = (make([*vocabulary_of(v), '-'], lowercase=True) for v in (LARGE, SMALL))
    result = entities.compare_on_entities(chosen, large, small).json()
    # words: aspirin, aspirin drugs, aspirin, αβ, x - drug = 8; the large vocabulary cuts none of them
    assert result['datasets']['drugs']['vocabulary'] == {
        'mentions': 5,
        'different': 5,
        'words': 8,
        'pieces_per_word': 1.0,
        'unknown_words': round(1 / 8, 6),
        'one_piece_words': round(7 / 8, 4),
        'one_piece_mentions': round(2 / 5, 4),
    }
    # the small one: asp ##irin, asp ##irin drug ##s, asp ##irin, [UNK], x - drug = 12 pieces
    source = result['datasets']['drugs']['source']
    assert source['pieces_per_word'] == round(12 / 8, 4)
    assert source['one_piece_words'] == round(3 / 8, 4)
    assert source['one_piece_mentions'] == 0
    assert 'source' not in entities.compare_on_entities(chosen, large, None).datasets['drugs']


def test_examples_are_cut_into_many_pieces_and_frequent(tmp_path):
    sizes = {'Drug': 4, 'drug': 3, 'help': 9, 'helps': 6, 'xyz': 8, 'aspirin': 9}
    lines = ''.join(f'{word}\tB-D\n\n' * times for word, times in sizes.items())
    (tmp_path / 'd').mkdir()
    (tmp_path / 'd' / 'train.tsv').write_text(lines, 'utf-8')
    own = make([*vocabulary_of(PIECES), 'drug', 'helps', 'aspirin'], lowercase=True)
    source = make([*vocabulary_of(PIECES), 'asp', '##irin'], lowercase=True)
    result = entities.compare_on_entities([set_at(tmp_path / 'd')], own, source).json()
    assert result['examples'] == [  # not help, xyz: cut by both; not aspirin: two pieces
        {'entity': 'drug', 'count': 7, 'source': ['d', '##r', '##u', '##g']},
        {'entity': 'helps', 'count': 6, 'source': ['h', '##e', '##l', '##p', '##s']},
    ]


def small_bert(vocab_size, seed=0):
    architecture = Bert(vocab_size, hidden=16, layers=1, heads=2, intermediate=32, max_positions=64)
    params = jax.tree.map(lambda leaf: leaf * 4, architecture.initial_parameters(jax.random.key(seed)))
    return architecture, params


def save_bert(speller, folder):
    """A small BERT with its tokenizer, as transformers loads it."""
    architecture, params = small_bert(len(speller.subwords.tokens))
    speller.subwords.save(folder, 64)
    tensors.write_folder(folder, architecture, jax.tree.map(np.asarray, params), folder)


def test_scores_agree_with_transformers(spellers, tmp_path):
    torch = pytest.importorskip('torch')
    transformers = pytest.importorskip('transformers')
    speller = spellers[0]
    save_bert(speller, tmp_path)
    chosen = hide(spellers)
    scored = cloze.score_words(chosen, speller, cloze.make_scorer(*tensors.load_folder(tmp_path)[:2]))
    model = transformers.AutoModelForMaskedLM.from_pretrained(tmp_path).eval()
    nats = {}
    for row in cloze.rows_of(chosen, speller):
        with torch.no_grad():
            logits = model(input_ids=torch.tensor(row.tokens[None], dtype=torch.long)).logits[0]
        log_p = torch.log_softmax(logits, -1)
        for slot, target, word in zip(row.slots, row.targets, row.word_of, strict=True):
            key = (row.passage, int(word))
            nats[key] = nats.get(key, 0.0) - float(log_p[int(slot), int(target)])
    assert [w.nats for w in scored] == pytest.approx([nats[k] for k in sorted(nats)], abs=1e-4)


def test_vectors_of_sentences_agree_with_transformers(spellers, tmp_path):
    """Means over all pieces, as sentence-transformers takes them; of texts of several widths, one cut at the window."""
    torch = pytest.importorskip('torch')
    transformers = pytest.importorskip('transformers')
    speller = spellers[0]
    save_bert(speller, tmp_path)
    tokenizer = transformers.AutoTokenizer.from_pretrained(tmp_path)
    model = transformers.AutoModel.from_pretrained(tmp_path).eval()
    texts = [documents()[0].text, 'aspirin', 'the drug helps', ' '.join(['aspirin'] * 80)]
    found = text_vectors(texts, speller.subwords, *tensors.load_folder(tmp_path)[:2])
    for text, vector_D in zip(texts, found, strict=True):
        given = tokenizer(text, return_tensors='pt', truncation=True, max_length=64)
        with torch.no_grad():
            mean_D = model(**given).last_hidden_state[0].mean(dim=0).numpy()
        assert vector_D == pytest.approx(mean_D / np.linalg.norm(mean_D), abs=1e-5)


def test_a_correlation_that_is_not_defined_is_none():
    assert sentence_vectors._correlation(np.array([0.5, 0.5]), [1.0, 2.0]) is None
    assert sentence_vectors._correlation(np.array([0.5, 0.6]), [1.0, 1.0]) is None
    assert sentence_vectors._correlation(np.array([0.5, 0.6, 0.7]), [1.0, 2.0, 3.0]) == 1


def test_the_stage_measures_vectors_of_sentences_where_there_is_a_source(run, tmp_path, monkeypatch):
    """The mean cosine of held-out sentences, and the correlation on a set of pairs, from all of its splits."""
    pairs = [
        ('the drug', 'the drug helps', 3.5),
        ('aspirin', 'aspirin helps', 4.0),
        ('helps', 'the aspirin', 0.5),
    ]
    (tmp_path / 'sets' / 'biosses').mkdir(parents=True)
    for split in ('train', 'dev', 'test'):
        lines = [
            'pair_id\tsent1\tsent2\tscore',
            *(f'{n}\t{a}\t{b}\t{x}' for n, (a, b, x) in enumerate(pairs)),
        ]
        (tmp_path / 'sets' / 'biosses' / f'{split}.tsv').write_text('\n'.join(lines) + '\n')
    e = dataclasses.replace(
        run.config, finetune=dataclasses.replace(run.config.finetune, folder=str(tmp_path / 'sets'))
    )
    assert [f.parent.name for f in build.external_inputs(e)].count('biosses') == 3
    monkeypatch.setattr(sentence_vectors, 'FEWEST_WORDS', 5)  # those of these documents are short
    source = Path(e.source.path)
    (source / 'modules.json').write_text('[]')
    try:
        build.build(Run(run.workdir, e, quiet=True), tmp_path)
    finally:
        (source / 'modules.json').unlink()
    records = SentenceVectors.read_all(
        json.loads((tmp_path / 'similarity.json').read_text()), 'similarity.json'
    )
    assert [r.model for r in records] == ['source', 'initial', '0.1', '0.2']
    assert [r.for_sentences for r in records] == [True, None, None, None]
    architecture, params, _ = tensors.load_folder(source)
    own = subwords.load(source)
    first = [
        text_vectors(side, own, architecture, params) for side in zip(*(p[:2] for p in pairs), strict=True)
    ]
    wanted = np.corrcoef((first[0] * first[1]).sum(axis=1), [p[2] for p in pairs])[0, 1]
    assert records[0].sets['biosses'].pairs == 9
    assert records[0].sets['biosses'].pearson == pytest.approx(wanted, abs=1e-3)
    vectors = text_vectors(SENTENCES, own, architecture, params)
    every = [float(a @ b) for a, b in itertools.combinations(vectors, 2)]
    assert records[0].sentences == len(SENTENCES)
    assert records[0].cosine == pytest.approx(np.mean(every), abs=1e-3)
    without = dataclasses.replace(e, source=dataclasses.replace(e.source, path=''))
    assert not any(f.parent.name == 'biosses' for f in build.external_inputs(without))


def test_sentences_of_scripts_without_blanks_are_measured_too():
    texts = ['患者，男，四十五岁半。男。', 'All of these words are in one sentence. Few are in this.']
    documents = [Document(text, text) for text in texts]
    found = sentence_vectors.MeasuredTexts.of(documents, Finetune())
    assert found.sentences == ('患者，男，四十五岁半。', 'All of these words are in one sentence.')


def test_batches_cover_every_row_with_few_shapes(spellers):
    rows = cloze.rows_of(hide(spellers), spellers[1])
    parts = list(cloze.batches(rows, batch_pieces=128))
    assert sorted(r.passage for part, _ in parts for r in part) == sorted(r.passage for r in rows)
    shapes = {tuple(a.shape for a in batch.values()) for _, batch in parts}
    assert len(shapes) <= len({b['tokens'].shape[1] for _, b in parts})
    for part, batch in parts:
        for i, row in enumerate(part):
            assert batch['tokens'][i, : len(row.tokens)].tolist() == row.tokens.tolist()
            assert batch['segments'][i].sum() == len(row.tokens)


def test_isotropic_rows_have_no_common_direction():
    rows = np.random.default_rng(0).normal(size=(4000, 32))
    result = geometry.measure(rows, pairs=20000, seed=1)
    assert result.cosine == pytest.approx(0, abs=5 * result.cosine_error)
    assert result.cosine_error == pytest.approx(1 / math.sqrt(32 * 20000), rel=0.05)
    assert result.top_component_share == pytest.approx(1 / 32, rel=0.3)
    assert result.norm_mean == pytest.approx(math.sqrt(32), rel=0.02)


def test_a_common_direction_is_measured_and_centred_away():
    """Rows u + noise with |u|^2 = 3 |noise|^2: the cosine of a pair is 3/4 on average."""
    generator = np.random.default_rng(0)
    noise = generator.normal(size=(4000, 64)) / 8
    rows = noise + math.sqrt(3) * np.eye(64)[0]
    result = geometry.measure(rows, pairs=20000, seed=1)
    assert result.cosine == pytest.approx(0.75, abs=0.02)
    assert result.cosine_centred == pytest.approx(0, abs=0.02)


def test_a_dominant_component_has_its_share():
    """Variance 9 along one axis and 1 along each of the other 9: the share is one half."""
    rows = np.random.default_rng(0).normal(size=(20000, 10)) * np.array([3.0] + [1.0] * 9)
    assert geometry.measure(rows, pairs=100, seed=0).top_component_share == pytest.approx(0.5, abs=0.02)


def test_shared_and_new_rows_are_told_apart():
    words = make([*SPECIAL_TOKENS, '[unused3]', 'a', 'b', 'c', 'd'], True)
    table = np.diag([*[50.0] * 6, 1, 1, 7, 7])
    result = geometry.by_kind(table, words, frozenset({'c', 'd'}), pairs=50, seed=0)
    assert {k: (v.count, v.norm_mean) for k, v in result.items()} == {
        'all': (4, 4.0),
        'shared': (2, 1.0),
        'new': (2, 7.0),
    }
    assert list(geometry.by_kind(table, words, frozenset(), pairs=50, seed=0)) == ['all']


@pytest.fixture(scope='module')
def run(tmp_path_factory):
    """A run whose stages up to `export` are done, with tiny random models under two vocabularies."""
    base = tmp_path_factory.mktemp('analysis')
    texts = documents(20)
    workdir = base / 'run'
    models = {'source': (base / 'source', SMALL), 'initial': (workdir / 'surgery' / 'model', LARGE)}
    models |= {name: (workdir / 'export' / name, LARGE) for name in ('0.1', '0.2', '0.1@50')}
    for seed, (folder, entries) in enumerate(models.values()):
        words = vocabulary_of(entries)
        folder.mkdir(parents=True)
        make(words, lowercase=True).save(folder, 64)
        architecture, params = small_bert(len(words), seed)
        tensors.write_folder(folder, architecture, jax.tree.map(np.asarray, params), folder)
    for split in ('heldout', 'train'):
        write_documents(workdir / 'corpus', split, texts, 1)
    write_metadata(workdir / 'corpus', {'heldout': [len(texts)], 'train': [len(texts)]})
    (workdir / 'vocab').mkdir()
    frequency.write(workdir / 'vocab', {'the': 40, 'drug': 20, 'aspirin': 20, 'helps': 15}, {}, 1.0)
    old = set(SMALL)
    kinds = [{'token': t, 'kind': 'copied' if t in old else 'synthesised'} for t in vocabulary_of(LARGE)]
    write_jsonl(workdir / 'surgery' / 'tokens.jsonl', [{'id': 0, 'norm': 1.0, **kind} for kind in kinds])
    for stage in ('corpus', 'vocab', 'surgery', 'export'):
        write_json(workdir / stage / 'manifest.json', {'counts': {}, 'content': stage})
    counts = {'phases': ['0.1@50', '0.1', '0.2']}
    write_json(workdir / 'export' / 'manifest.json', {'counts': counts, 'content': 'export'})
    e = Experiment()
    e = dataclasses.replace(
        e,
        phases=('0.1', '0.2'),
        source=dataclasses.replace(e.source, path=str(base / 'source')),
        rows=dataclasses.replace(e.rows, max_document_pieces=40),
        analysis=dataclasses.replace(
            e.analysis, cloze_documents=15, cloze_fraction=0.4, pairs=200, tokens=str(base / 'listed.txt')
        ),
    )
    (base / 'listed.txt').write_text('aspirin\n\nhelps\nunheard\n')
    (workdir / 'analyze').mkdir()
    return Run(workdir, e, quiet=True)


@pytest.mark.usefixtures('_built')
def test_stage_scores_every_model_on_the_same_words(run):
    records = json.loads((run.workdir / 'analyze' / 'cloze.json').read_text())
    assert [r['model'] for r in records] == ['source', 'initial', '0.1', '0.2']
    assert len({(r['mask'], r['words'], r['characters'], r['one_piece']['words']) for r in records}) == 1
    assert len({r['nats_per_word'] for r in records}) == 4
    assert records[0]['pieces'] > records[1]['pieces']  # the source spells in more pieces
    shapes = json.loads((run.workdir / 'analyze' / 'geometry.json').read_text())
    assert list(shapes[1]['rows']) == ['all', 'shared', 'new']
    assert shapes[1]['rows']['new']['count'] == len(set(LARGE) - set(SMALL))
    assert not (run.workdir / 'analyze' / build.PARTS).exists()


@pytest.mark.usefixtures('_built')
def test_new_tokens_that_cost_more_than_their_pieces_are_named(run):
    folder = run.workdir / 'analyze'
    source, *_, last = json.loads((folder / 'cloze.json').read_text())
    records = json.loads((folder / 'new_tokens.json').read_text())
    assert {r['token'] for r in records} <= set(LARGE) - set(SMALL)
    by_class = last['new_tokens']
    of_new = [name for name in by_class if name not in (new_tokens.KNOWN, new_tokens.LISTED)]
    for model in (source, last):
        of_class = [model['new_tokens'][name] for name in of_new if by_class[name]['words']]
        nats = sum(c['words'] * c['nats_per_word'] for c in of_class)
        assert nats == pytest.approx(
            sum(r['words'] * r['nats_per_word'][model['model']] for r in records), rel=1e-4
        )
    # All of them are in every document: the most frequent class.
    assert by_class['100 or more']['tokens'] == len(records) > 2
    assert sum(by_class[name]['words'] for name in of_new) == sum(r['words'] for r in records)
    alone = [r for r in records if r['token'] in ('aspirin', 'helps')]
    listed = by_class.pop(new_tokens.LISTED)
    assert (listed['tokens'], listed['words']) == (2, sum(r['words'] for r in alone))
    nats = sum(r['words'] * r['nats_per_word']['0.2'] for r in alone)
    assert listed['nats_per_word'] == pytest.approx(nats / listed['words'], rel=1e-4)
    assert sum(c['words'] for c in by_class.values()) <= last['words']
    counts = {'aspirin': 20, 'helps': 15}  # of 95 words; what was not counted is taken for one
    for r in records:
        assert r['frequency'] == pytest.approx(math.log(95 / counts.get(r['token'], 1)), abs=1e-4)
        assert r['behind'] == pytest.approx(r['nats_per_word']['0.2'] - r['frequency'], abs=2e-4)
    wanted = sum(r['frequency'] * r['words'] for r in records) / sum(r['words'] for r in records)
    assert by_class['100 or more']['frequency_nats'] == pytest.approx(wanted, abs=1e-3)
    lost = [r['words'] * r['behind'] for r in records]
    assert lost == sorted(lost, reverse=True)
    bad = [r['token'] for r in records if r['behind'] >= 0]
    assert (folder / 'bad_tokens.txt').read_text().split() == bad
    m = read_measures(run)
    shown = section.named(m)
    assert [row[0].text for row in shown.rows] == [*by_class, new_tokens.LISTED]
    assert shown.rows[0][-1].value == pytest.approx(by_class['100 or more']['nats_per_word'], abs=1e-3)
    assert f'{len(bad)} of {len(records)} new tokens' in section.behind(m).note
    assert [row[0].text for row in section.behind(m).rows] == bad[: section.EXAMPLES]


def test_a_token_is_bad_that_is_named_no_better_than_by_its_frequency(tmp_path):
    of_first, of_last = {'a': (2, 6.0, 2.0), 'b': (1, 1.0, 3.0)}, {'a': (2, 4.0, 2.0), 'b': (1, 2.5, 3.0)}
    new_tokens.write(tmp_path, {'initial': of_first, '0.1': of_last}, '0.1')
    records = json.loads((tmp_path / 'new_tokens.json').read_text())
    assert records == [
        {'token': t, 'words': n, 'nats_per_word': {'initial': i, '0.1': e}, 'frequency': f, 'behind': b}
        for t, n, i, e, f, b in (('a', 2, 3.0, 2.0, 2.0, 0.0), ('b', 1, 1.0, 2.5, 3.0, -0.5))
    ]
    assert (tmp_path / 'bad_tokens.txt').read_text() == 'a\n'
    new_tokens.write(tmp_path, {}, '0.1')  # discriminators have no masked-LM head
    assert json.loads((tmp_path / 'new_tokens.json').read_text()) == []
    assert (tmp_path / 'bad_tokens.txt').read_text() == ''


@pytest.fixture(scope='module')
def _built(run):
    return build.build(run, run.workdir / 'analyze')


@pytest.mark.usefixtures('_built')
def test_a_cut_off_analysis_goes_on_where_it_was(run, tmp_path, monkeypatch):
    whole = (run.workdir / 'analyze' / 'cloze.json').read_text()
    analyse, seen = build._analyse, []

    def killed(candidate, *rest):
        if candidate.name == '0.1':
            raise KeyboardInterrupt
        seen.append(candidate.name)
        return analyse(candidate, *rest)

    def again(candidate, *rest):
        seen.append(f'again {candidate.name}')
        return analyse(candidate, *rest)

    monkeypatch.setattr(build, '_analyse', killed)
    with pytest.raises(KeyboardInterrupt):
        build.build(run, tmp_path)
    assert not (tmp_path / 'cloze.json').exists()
    monkeypatch.setattr(
        build, '_analyse', lambda c, *rest: seen.append('again ' + c.name) or analyse(c, *rest)
    )
    build.build(run, tmp_path)
    assert seen == ['source', 'initial', 'again 0.1', 'again 0.2']
    assert (tmp_path / 'cloze.json').read_text() == whole


def test_after_longer_pre_training_the_models_are_analysed_again(run, tmp_path, monkeypatch):
    """Models that an earlier attempt had finished are among them."""
    workdir = shutil.copytree(run.workdir, tmp_path / 'run')
    shutil.rmtree(workdir / 'analyze')
    e = dataclasses.replace(run.config, stages=('analyze',))
    analyse, seen = build._analyse, []

    def analysed(candidate, *rest):
        if len(seen) == 3:
            raise Stopped
        seen.append(candidate.name)
        return analyse(candidate, *rest)

    monkeypatch.setattr(build, '_analyse', analysed)
    with pytest.raises(Stopped):
        execute(Run(workdir, e, quiet=True), STAGES['analyze'])
    for content in ('longer', 'longer still'):
        seen.clear()
        manifest = json.loads((workdir / 'export' / 'manifest.json').read_text())
        write_json(workdir / 'export' / 'manifest.json', {**manifest, 'content': content})
        monkeypatch.setattr(
            build,
            '_analyse',
            lambda candidate, *rest: seen.append(candidate.name) or analyse(candidate, *rest),
        )
        execute(Run(workdir, e, quiet=True), STAGES['analyze'])
        assert seen == ['source', 'initial', '0.1', '0.2']


@pytest.mark.usefixtures('_built')
def test_stage_cuts_the_entities_of_the_sets(run, tmp_path):
    assert not (run.workdir / 'analyze' / 'entities.json').exists(), 'no sets are named'
    write_set(tmp_path / 'ner', 'b')
    write_set(tmp_path / 'ner', 'a')
    e = dataclasses.replace(run.config, finetune=Finetune(folder=str(tmp_path / 'ner')), phases=())
    build.build(Run(run.workdir, e, quiet=True), tmp_path)
    found = json.loads((tmp_path / 'entities.json').read_text())
    assert list(found['datasets']) == ['a', 'b']
    rates = [found['datasets']['a'][owner]['pieces_per_word'] for owner in ('vocabulary', 'source')]
    assert rates == [1.0, 12 / 8]  # as by hand above: a "-" that is unknown is one piece too
    listed, *sets = build.external_inputs(e)
    assert listed.name == 'listed.txt'
    assert sets == [tmp_path / 'ner' / name / 'train.tsv' for name in 'ab']
    alone = dataclasses.replace(e, finetune=Finetune(folder=str(tmp_path / 'ner'), datasets=('b',)))
    assert build.external_inputs(alone)[1:] == [tmp_path / 'ner' / 'b' / 'train.tsv']


@pytest.mark.usefixtures('_built')
def test_stage_scores_the_frozen_states_of_every_model_and_snapshot(run, tmp_path):
    assert not (run.workdir / 'analyze' / 'frozen.json').exists(), 'no sets are named'
    write_set(tmp_path / 'ner', 'drugs')
    train = tmp_path / 'ner' / 'drugs' / 'train.tsv'
    more = ''.join(f'{IOB2}\naspirin\tB-Drug\n{c}\tO\n\n' for c in LETTERS)
    train.write_text(more, 'utf-8')
    finetune = Finetune(folder=str(tmp_path / 'ner'), datasets=('drugs', 'drugs-merged'))
    without = dataclasses.replace(run.config, finetune=finetune)
    e = dataclasses.replace(without, analysis=dataclasses.replace(without.analysis, frozen_sentences=100))
    counts = build.build(Run(run.workdir, e, quiet=True), tmp_path).counts
    found = json.loads((tmp_path / 'frozen.json').read_text())
    models = ['source', 'initial', '0.1', '0.2', '0.1@50']
    assert [(r['model'], r['set']) for r in found] == [
        (model, name) for model in models for name in ('drugs', 'drugs-merged')
    ]
    assert {r['sentences'] for r in found} == {29}, 'a sentence that is there again counts once'
    assert {(r['set'], r['gold']) for r in found} == {('drugs', 31), ('drugs-merged', 31)}
    assert all(0 <= r['f1'] <= 1 for r in found)
    assert max(r['f1'] for r in found) > 0.8
    [snapshot] = json.loads((tmp_path / 'snapshots.json').read_text())
    cloze_of = {r['model']: r for r in json.loads((tmp_path / 'cloze.json').read_text())}
    assert snapshot['model'] == '0.1@50'
    assert snapshot['mask'] == cloze_of['0.1']['mask']
    assert snapshot['nats_per_word'] != cloze_of['0.1']['nats_per_word'] > 0
    assert list(cloze_of) == models[:4]
    assert (counts.models, counts.snapshots, counts.frozen_sets) == (4, 1, 2)
    (tmp_path / 'without').mkdir()
    build.build(Run(run.workdir, without, quiet=True), tmp_path / 'without')
    assert not (tmp_path / 'without' / 'frozen.json').exists()
    assert (tmp_path / 'without' / 'cloze.json').read_text() == (tmp_path / 'cloze.json').read_text()


def test_a_missing_export_is_named(run):
    more = dataclasses.replace(run.config, phases=('0.1', '0.2', '0.3'))
    with pytest.raises(InputError, match=r'export/0\.3'):
        build.build(Run(run.workdir, more, quiet=True), run.workdir / 'analyze')


def test_documents_longer_than_the_positions_of_a_model_are_refused(run):
    """A base run may have made the models with other rows; its hidden words would have a loss that is no number."""
    longer = dataclasses.replace(
        run.config, rows=dataclasses.replace(run.config.rows, max_document_pieces=65)
    )
    refused = (
        r'^config\.rows\.max_document_pieces: 65 pieces, but this BERT has 64 positions; set it to 64 or less'
    )
    with pytest.raises(ConfigError, match=refused):
        build.build(Run(run.workdir, longer, quiet=True), run.workdir / 'analyze')


def test_a_reference_vocabulary_is_an_input(tmp_path):
    e = Experiment()
    assert build.external_inputs(e) == []
    (tmp_path / 'vocab.txt').write_text('\n'.join(SPECIAL_TOKENS))
    named = dataclasses.replace(e, analysis=dataclasses.replace(e.analysis, reference_vocab=str(tmp_path)))
    assert build.external_inputs(named) == [tmp_path / 'vocab.txt']
