"""The context finder: what it finds, that its sample is uniform, and that no order of work changes a byte."""

import dataclasses
import gzip
import hashlib
import json
import os
import random
from pathlib import Path

import numpy as np
import pyarrow.parquet
import pytest

from bioptimus_jax.corpus.documents import Document, write_documents
from bioptimus_jax.errors import InputError, Stopped
from bioptimus_jax.experiment.schema import Experiment
from bioptimus_jax.hosts.config import Runtime
from bioptimus_jax.model.config import Source
from bioptimus_jax.run.folder import Run
from bioptimus_jax.storage.files import write_json
from bioptimus_jax.text.splitting import split_sentences
from bioptimus_jax.tokenizer import subwords
from bioptimus_jax.tokenizer.config import Vocab
from bioptimus_jax.tokenizer.kinds import bytelevel, wordpiece
from bioptimus_jax.tokenizer.subwords import Subwords
from bioptimus_jax.vocab import contexts, sampling
from bioptimus_jax.vocab.config import Contexts
from bioptimus_jax.vocab.occurrences import TokenFinder, cut_around

DATA = os.environ.get('BIOPTIMUS_DATA')
needs_data = pytest.mark.skipif(not DATA, reason='BIOPTIMUS_DATA is not set')
K = 5
WORDS = [
    'kinase',
    'naproxenib',
    'carcinoma',
    'β-synuclein',
    'Café',
    'cells',
    'IL-2',
    'was',
    'of',
    'reduced',
    '(p<0.05)',
]
SETTINGS = Vocab(size=160, min_frequency=1)


def make_documents(count: int) -> list[Document]:
    draw = random.Random(3)
    documents = []
    for number in range(count):
        sentences = ['The ' + ' '.join(draw.choices(WORDS, k=6)) + '.' for _ in range(draw.randint(1, 5))]
        documents.append(
            Document(f'doc-{number}', 'Title of ' + draw.choice(WORDS) + '\n' + ' '.join(sentences))
        )
    return documents


DOCUMENTS = make_documents(120)
TRAINED = wordpiece.train((d.text for d in DOCUMENTS), SETTINGS)
VOCABULARY = [t for t in TRAINED if t not in ('synuclein', 'reduced')]
NEW = ['kinase', 'naproxenib', 'carcinoma', 'cafe', 'cells', 'synuc', '##lein', '##uced', '##ib']
PAIRS = bytelevel.KIND.train(
    bytelevel.KIND.count_words((d.text for d in DOCUMENTS), False),
    dataclasses.replace(SETTINGS, size=380),
    None,
)
KINDS = {
    'wordpiece': (wordpiece.make(VOCABULARY, True), NEW),
    'bytelevel': (PAIRS, [t for t in PAIRS.tokens[260:-1:2] if t != 'Ġ<']),
}


@pytest.fixture(params=KINDS)
def known_and_new(request: pytest.FixtureRequest) -> tuple[Subwords, list[str]]:
    """A vocabulary of each kind, and tokens of it that are new."""
    return KINDS[request.param]


def make_run(
    workdir: Path,
    documents: list[Document],
    workers: int = 1,
    shards: int = 2,
    known_and_new: tuple[Subwords, list[str]] = KINDS['wordpiece'],
    **settings: int,
) -> Run:
    known, new = known_and_new
    count = write_documents(workdir / 'corpus', 'train', documents, shards)
    write_json(workdir / 'corpus' / 'manifest.json', {'counts': {'train': count}, 'content': ''})
    known.save(workdir / 'vocab', 512)
    (workdir / 'vocab' / 'new_tokens.txt').write_text(''.join(t + '\n' for t in new), 'utf-8')
    write_json(workdir / 'vocab' / 'manifest.json', {'counts': {}, 'content': ''})
    (workdir / 'contexts').mkdir()
    experiment = Experiment(
        source=Source(path='some/source'),
        contexts=Contexts(**{'per_token': K, **settings}),
        runtime=Runtime(workers=workers),
    )
    return Run(workdir, experiment, quiet=True)


def tables(run: Run) -> str:
    names = ('sentences.parquet', 'occurrences.parquet')
    return hashlib.sha256(b''.join((run.workdir / 'contexts' / n).read_bytes() for n in names)).hexdigest()


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(contexts, 'BLOCK', 16)


def brute_force(
    documents: list[Document], known: Subwords, new: list[str], seed: int = 0
) -> dict[str, list[str]]:
    """Token -> the texts of its bottom-k, found the slow way by another route."""
    best: dict[str, dict[str, int]] = {token: {} for token in new}
    for document in documents:
        for number, sentence in enumerate(split_sentences(document.text)):
            for token in set(known.tokenizer.encode(sentence).tokens) & set(new):
                token_hash = sampling.hash_texts([token], seed)
                key = np.array([contexts.document_key(document.id)], np.uint64)
                priority = int(sampling.priorities(token_hash, key, np.array([number]))[0])
                best[token][sentence] = min(priority, best[token].get(sentence, priority))
    return {token: sorted(found, key=found.__getitem__)[:K] for token, found in best.items()}


def test_sample_is_the_bottom_k_with_right_spans(
    tmp_path: Path, known_and_new: tuple[Subwords, list[str]]
) -> None:
    known, new = known_and_new
    repeated = [dataclasses.replace(d, id=f'copy-{d.id}') for d in DOCUMENTS[:20]]
    run = make_run(tmp_path, DOCUMENTS + repeated, known_and_new=known_and_new)
    counts = contexts.build(run, tmp_path / 'contexts').counts
    found = contexts.load_contexts(tmp_path / 'contexts')
    by_token: dict[str, list[str]] = {token: [] for token in new}
    for i, token in enumerate(found.tokens):
        text = found.sentences[found.sentence[i]]
        assert found.rank[i] == len(by_token[token])
        by_token[token].append(text)
        assert known.normalised(text[found.start[i] : found.end[i]]) == known.kind.text(token)
    assert by_token == brute_force(DOCUMENTS + repeated, known, new)
    assert all(len(set(texts)) == len(texts) for texts in by_token.values()), 'identical sentences count once'
    assert len(set(found.sentences)) == len(found.sentences), 'each is encoded once, whatever it serves'
    for begins in (True, False):
        assert any(known.kind.begins(token) is begins and by_token[token] for token in new)
    assert counts.tokens == len(new)
    assert counts.tokens_without + counts.tokens_with_some + counts.tokens_with_all == len(new)
    assert counts.occurrences == len(found.tokens)
    assert counts.not_located == 0
    assert counts.sentences == len(found.sentences) == len(set(found.sentence.tolist()))


def test_documents_and_numbers_lead_back_to_the_corpus(tmp_path: Path) -> None:
    contexts.build(make_run(tmp_path, DOCUMENTS), tmp_path / 'contexts')
    texts = {d.id: split_sentences(d.text) for d in DOCUMENTS}
    rows = pyarrow.parquet.read_table(tmp_path / 'contexts' / 'sentences.parquet').to_pylist()
    assert [row['sentence'] for row in rows] == list(range(len(rows)))
    assert all(texts[row['document']][row['number']] == row['text'] for row in rows)
    assert [(r['document'], r['number']) for r in rows] == sorted((r['document'], r['number']) for r in rows)


def test_bytes_are_equal_for_any_workers_and_order(tmp_path: Path) -> None:
    shuffled = random.Random(1).sample(DOCUMENTS, len(DOCUMENTS))
    runs = [
        make_run(tmp_path / 'one', DOCUMENTS),
        make_run(tmp_path / 'two', DOCUMENTS, workers=2),
        make_run(tmp_path / 'five', shuffled, workers=5, shards=3),
        make_run(tmp_path / 'reversed', DOCUMENTS[::-1], shards=1),
    ]
    for run in runs:
        contexts.build(run, run.workdir / 'contexts')
    assert len({tables(run) for run in runs}) == 1
    other = make_run(tmp_path / 'seed', DOCUMENTS)
    other.config = dataclasses.replace(other.config, seed=1)
    contexts.build(other, other.workdir / 'contexts')
    assert tables(other) != tables(runs[0]), 'the seed decides the sample'


def test_stopped_search_goes_on_where_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = make_run(tmp_path / 'whole', DOCUMENTS)
    contexts.build(whole, whole.workdir / 'contexts')
    run = make_run(tmp_path / 'cut', DOCUMENTS)
    scan, scanned = contexts.search_block, []

    def watched(start: int, *rest: object) -> object:
        scanned.append(start)
        if len(scanned) == 3:
            run.console.stopping.set()
        return scan(start, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(contexts, 'search_block', watched)
    with pytest.raises(Stopped):
        contexts.build(run, run.workdir / 'contexts')
    assert [p.name for p in (run.workdir / 'contexts').iterdir()] == [contexts.PARTIAL]
    run.console.stopping.clear()
    contexts.build(run, run.workdir / 'contexts')
    assert scanned == list(range(0, 120, 16)), 'no block is searched twice'
    assert tables(run) == tables(whole)
    assert not (run.workdir / 'contexts' / contexts.PARTIAL).exists()


def test_damaged_partial_record_starts_anew(tmp_path: Path) -> None:
    whole, run = make_run(tmp_path / 'whole', DOCUMENTS), make_run(tmp_path / 'damaged', DOCUMENTS)
    contexts.build(whole, whole.workdir / 'contexts')
    (run.workdir / 'contexts' / contexts.PARTIAL).write_bytes(b'PK\x03\x04 cut off')
    contexts.build(run, run.workdir / 'contexts')
    assert tables(run) == tables(whole)


def test_every_sentence_has_the_same_chance() -> None:
    # 40 sentences, 10 kept, 4000 tokens: each is expected 1000 times; chi-square with 39 degrees of freedom.
    sentences, tokens, k = 40, 4000, 10
    token = np.repeat(np.arange(tokens, dtype=np.int32), sentences)
    number = np.tile(np.arange(sentences), tokens)
    hashes = sampling.hash_texts([f'token {t}' for t in range(tokens)], seed=7)
    keys = np.array([contexts.document_key(f'document {n % 8}') for n in range(sentences)], np.uint64)
    priority = sampling.priorities(hashes[token], keys[number], number // 8)
    text = number.astype(np.uint64)
    sample = sampling.Candidates(
        token, priority, text, number.astype(np.int64), number.astype(np.int32)
    ).smallest(k)
    assert len(sample) == tokens * k
    counts = np.bincount(sample.number, minlength=sentences)
    expected = tokens * k / sentences
    # Without replacement the variance of a count is smaller by (1 - k / n) * n / (n - 1).
    statistic = ((counts - expected) ** 2 / expected).sum() / (
        (1 - k / sentences) * sentences / (sentences - 1)
    )
    assert 14 < statistic < 75
    together = np.zeros((tokens, sentences), bool)
    together[sample.token, sample.number] = True
    pairs = together.T.astype(int) @ together.astype(int)
    off_diagonal = pairs[~np.eye(sentences, dtype=bool)]
    expected_pairs = tokens * k * (k - 1) / (sentences * (sentences - 1))
    assert abs(off_diagonal - expected_pairs).max() < 5.5 * np.sqrt(expected_pairs), (
        'tokens must draw independently'
    )


def test_a_sentence_of_two_places_comes_first_twice_as_often_and_once() -> None:
    tokens = 4000
    token = np.repeat(np.arange(tokens, dtype=np.int32), 4)
    number = np.tile(np.arange(4), tokens)  # places 0 and 1 hold the same text
    hashes = sampling.hash_texts([f'token {t}' for t in range(tokens)], seed=7)
    keys = np.full(len(token), contexts.document_key('document'), np.uint64)
    priority = sampling.priorities(hashes[token], keys, number)
    text = np.maximum(number, 1).astype(np.uint64)
    places = sampling.Candidates(token, priority, text, number.astype(np.int64), number.astype(np.int32))
    first = np.bincount(places.smallest(1).text.astype(int), minlength=4)
    np.testing.assert_allclose(first / tokens, [0, 1 / 2, 1 / 4, 1 / 4], atol=0.03)
    assert (np.bincount(places.smallest(4).text.astype(int)) == [0, tokens, tokens, tokens]).all()


def test_samples_of_parts_merge_exactly() -> None:
    draw = np.random.default_rng(0)
    count, k = 5000, 4
    text = draw.integers(0, 900, count).astype(np.uint64)
    whole = sampling.Candidates(
        draw.integers(0, 30, count).astype(np.int32),
        draw.integers(0, 2**63, count).astype(np.uint64),
        text,
        np.arange(count),
        np.zeros(count, np.int32),
    )
    expected = whole.smallest(k)
    parts = [whole.take(np.arange(a, count, 7)).smallest(k) for a in range(7)]
    merged = sampling.Candidates.join(parts[::-1]).smallest(k)
    for field in dataclasses.fields(sampling.Candidates):
        np.testing.assert_array_equal(getattr(merged, field.name), getattr(expected, field.name))
    limits = expected.thresholds(30, k)
    assert (whole.priority[whole.token == 3] <= limits[3]).sum() >= k


def test_finder_agrees_with_whole_sentences(known_and_new: tuple[Subwords, list[str]]) -> None:
    known, new = known_and_new
    finder = TokenFinder(known, new)
    odd = [
        'Kinase  kinase',
        ' leading kinase\u00a0carcinoma',
        'cafe\u0301 CAFÉ',
        'cells,cells\tcells',
        '(kinase)[MASK]',
        'kinase   kinase \n cells  \n\nof <mask> cells<mask>of',
    ]
    odd += ['İkinase ΣΑΣ kinase\u200bs', '中kinase文', 'x' * 99 + 'kinase kinase', 'cel\x1cls cel\u00adls']
    sentences = odd + [s for d in DOCUMENTS[:30] for s in split_sentences(d.text)]
    sentence, token, _ = finder.find(sentences)
    start, end = finder.locate(sentences, sentence, token)
    found: list[dict[str, tuple[int, int]]] = [{} for _ in sentences]
    for i in range(len(sentence)):
        found[sentence[i]][new[token[i]]] = (int(start[i]), int(end[i]))
    for number, text in enumerate(sentences):
        encoding = known.reader.encode(text, add_special_tokens=False)
        expected: dict[str, tuple[int, int]] = {}
        for piece, span in zip(encoding.tokens, encoding.offsets, strict=True):
            if piece in new:
                expected.setdefault(piece, span)
        assert found[number] == expected, text


@needs_data
@pytest.mark.parametrize('vocabulary', ['bert-base-uncased', 'roberta-base'])
def test_finder_agrees_on_real_text(vocabulary: str) -> None:
    folder = Path(DATA or '')
    with gzip.open(folder / 'pubmed' / 'abstracts-00001-of-00004.jsonl.gz', 'rt', encoding='utf-8') as file:
        texts = [json.loads(line)['abstract'] for line, _ in zip(file, range(120), strict=False)]
    tokenizer = subwords.load(folder / 'vocab' / vocabulary)
    tokens = tokenizer.tokens[2000:]
    sentences = [s for t in texts for s in split_sentences(t)]
    assert len(sentences) > 800
    sentence, token, _ = TokenFinder(tokenizer, tokens).find(sentences)
    found = set(zip(sentence.tolist(), (token + 2000).tolist(), strict=True))
    encodings = [
        e
        for i in range(0, len(sentences), 500)
        for e in tokenizer.tokenizer.encode_batch(sentences[i : i + 500])
    ]
    assert found == {(i, piece) for i, e in enumerate(encodings) for piece in e.ids if piece >= 2000}


def test_sentences_are_cut_from_the_text_itself() -> None:
    text = 'β-Catenin in E. coli\nThe café (Fig. 2) was 0.5 µm. Next\u2028one 😀 here! '
    text += 'Third\r\none.\n\n \nLast\0 one.'
    sentences = split_sentences(text)
    assert sentences[0] == 'β-Catenin in E. coli', (
        'a title is a sentence of its own, with or without a full stop'
    )
    assert 'The café (Fig. 2) was 0.5 µm.' in sentences
    position = 0
    for sentence in sentences:
        position = text.replace('\0', ' ').index(sentence, position) + len(sentence)
    assert ''.join(''.join(sentences).split()) == ''.join(text.replace('\0', ' ').split()), 'nothing is lost'
    assert split_sentences(' \n ') == []


@pytest.mark.parametrize(
    'sentences',
    [
        ('As shown in Fig. 1, E. coli was grown overnight.', 'S. aureus was not added.'),
        (
            'Mice got 5 mg/kg i.v. and rats 0.5 mg i.p. (p < .05) vs. saline.',
            'Strain no. 12 was new, cf. Table 2.',
        ),
        ('Smith et al. found approx. 20% (see figs. 2 and 3).', 'Others, i.e. Dr. Jones, found 30%.'),
        ('Streptomyces spp. and S. enterica subsp. p53 grew.', 'HLA-A.2 bound.'),
        (
            'Binding was lost in cells.',
            'p65 (Rel A) and hGR were not lost.',
            'c-Fos was reduced.',
            'mRNA rose.',
        ),
        (
            'It rose in patients.',
            '5-HTP fell in controls.',
            '12 families took part (HTLV-I).',
            '1,25(OH)2D3 failed.',
        ),
        (
            'It needs NF-kappa B.',
            'Analysis of vitamin D.',
            'The work of protein kinase C.',
            'A test at 37 degrees C.',
            'End.',
        ),
        (
            'It took 10 min.',
            'Rats got 20 mg.',
            'Relapse was seen in 6 wk.',
            'RESULTS: It was 3 pmol/mg.',
            'Growth stopped.',
        ),
        ('Loss was seen in the ligand.', 'beta-Catenin fell to 9 ml/min.', 'Carbachol was given.'),
        (
            'Treated with A. Fumigatus and B. Aeruginosa for 2 h daily, J. Smith wrote in J. Virol. 63:3040, it died.',
        ),
        ('Of 20 adults (incl. 3 with asthma) none died.', '12 relapsed.', 'p53 rose.'),
        ('It was given at conc. 5 mM as before (refs. 12 and 13).', '5-HT fell in all arms.', '3 died.'),
        ('A dose of 1 microg. kg-1 fentanyl or 2 mmol. mL-1. min-1 was given.', 'mRNA rose.', 'miR-1 fell.'),
        ('As in J. Physiol. 208, 607 it rose.', '208 wrote as J. L., and T. Brown. 1991.'),
        (
            'The work of Henry S. Kaplan is in Group B.',
            'Age of patients in Grade I.',
            'Onset of vitamin D.',
            'End.',
        ),
        (
            'It grew to 5 cm.',
            'Growth at 120 mm. Hg fell to 2 mm.',
            'Relapse took 3 yr.',
            'RESULTS: Few (20%).',
            '57% rose.',
        ),
    ],
)
def test_sentences_of_the_field(sentences: tuple[str, ...]) -> None:
    assert split_sentences(' '.join(sentences)) == list(sentences)


def test_nothing_ends_at_an_abbreviation_before_a_number_or_a_name() -> None:
    words = 'incl conc refs approx temp suppl tabl resp sect figs appr equiv excl chap eqns vols subsp calcd concn'
    short = 'max min vol no nos fig eq eqs ref ch ed vs ca cf etc'  # the library's own
    for word in f'{words} {short}'.split():
        for text in (
            f'We saw 20 adults ({word}. 3 with asthma) in all.',
            f'It fell at {word}. 5 mM or {word}. p53.',
        ):
            assert split_sentences(text) == [text]
    for word in 'cells asthma patients work trial weeks group mice'.split():
        sentences = [f'It fell in {word}.', f'5 mM was given to {word}.', f'p53 rose in {word}.', '20 fell.']
        assert split_sentences(' '.join(sentences)) == sentences


def test_long_sentences_are_cut_around_the_token(tmp_path: Path) -> None:
    text = ' '.join(['alpha'] * 40 + ['kinase'] + ['omega'] * 40)
    start = text.index('kinase')
    short, a, b = cut_around(text, start, start + 6, 60)
    assert short[a:b] == 'kinase'
    assert len(short) <= 60
    assert set(short.split()) == {'alpha', 'kinase', 'omega'}, 'words stay whole'
    assert abs(a - (len(short) - b)) <= 6
    assert cut_around(text, 0, 5, 60) == (' '.join(['alpha'] * 10), 0, 5)
    assert cut_around('x' * 200, 100, 110, 50) == ('x' * 50, 20, 30)
    assert cut_around(text, start, start + 6, len(text)) == (text, start, start + 6)
    documents = [Document(f'd{i}', f'Number {i} ' + text) for i in range(3)]
    contexts.build(make_run(tmp_path, documents, max_characters=50), tmp_path / 'contexts')
    found = contexts.load_contexts(tmp_path / 'contexts')
    assert len(found.tokens) > 0
    for i, token in enumerate(found.tokens):
        sentence = found.sentences[found.sentence[i]]
        assert len(sentence) <= 50
        assert sentence[found.start[i] : found.end[i]] == token.removeprefix('##')


def test_nothing_to_find_gives_empty_tables(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = make_run(tmp_path, DOCUMENTS)
    run.console.quiet = False
    (tmp_path / 'vocab' / 'new_tokens.txt').write_text('', 'utf-8')
    assert contexts.build(run, tmp_path / 'contexts').counts.occurrences == 0
    assert 'nothing to look for, the vocabulary has no token' in capsys.readouterr().out
    found = contexts.load_contexts(tmp_path / 'contexts')
    assert found.sentences == found.tokens == []
    assert found.start.dtype == np.int32
    assert found.sentence.dtype == np.int64


def test_damaged_tables_name_the_file(tmp_path: Path) -> None:
    for content in (None, b'PAR1 cut off'):
        if content:
            (tmp_path / 'sentences.parquet').write_bytes(content)
        with pytest.raises(InputError, match=r'sentences\.parquet: cannot be read .*--replace'):
            contexts.load_contexts(tmp_path)
