"""The vocabulary stage: deterministic training, tokenizers that transformers reads, errors with a remedy."""

import dataclasses
import gzip
import hashlib
import itertools
import json
import os
import random
import re
import signal
import time
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pyarrow.parquet
import pytest
import tokenizers
from hypothesis import given
from hypothesis import strategies as st

from bioptimus_jax.corpus.documents import Document, document_key, write_documents
from bioptimus_jax.errors import ConfigError, InputError, Stopped
from bioptimus_jax.experiment.schema import Experiment
from bioptimus_jax.hosts.config import Runtime
from bioptimus_jax.hosts.workers import open_workers
from bioptimus_jax.model.config import Source
from bioptimus_jax.progress.console import Console
from bioptimus_jax.records.record import plain
from bioptimus_jax.run.folder import Run
from bioptimus_jax.storage.files import write_json
from bioptimus_jax.tokenizer import subwords, training
from bioptimus_jax.tokenizer.config import TOKENIZERS, Vocab
from bioptimus_jax.tokenizer.kinds import wordpiece
from bioptimus_jax.vocab import agreement, build, compare, counting, frequency, sampling

DATA = os.environ.get('BIOPTIMUS_DATA')
needs_data = pytest.mark.skipif(not DATA, reason='BIOPTIMUS_DATA is not set')
SMALL = Vocab(size=300, min_frequency=1)
TEXTS = [
    'Naproxenib inhibits the kinase in carcinoma cells.',
    'The kinase inhibitor reduced carcinomatosis (p<0.05).',
    'Café patients: β-catenin, IL-2 and 2-methyl\u00adpropane.',
    'Inhibition of kinases by naproxenib was dose\u2013dependent.',
]


def abstracts(count: int) -> list[str]:
    with gzip.open(
        Path(DATA or '') / 'pubmed' / 'abstracts-00000-of-00004.jsonl.gz', 'rt', encoding='utf-8'
    ) as file:
        records = (json.loads(line) for line in file)
        texts = [r['title'] + '\n' + r['abstract'] for r in records if 'benchmark' not in r]
    return texts[:count]


@needs_data
@pytest.mark.parametrize(
    ('kind', 'lowercase', 'known'),
    [
        ('wordpiece', True, {'patients', '##ing', 'treatment'}),
        # Slow: the others have this kind, and letters as they are.
        pytest.param('wordpiece', False, {'patients', '##ing', 'The'}, marks=pytest.mark.slow),
        ('bytelevel', False, {'Ġpatients', 'ing', 'ĠThe'}),
    ],
)
def test_training_is_the_same_for_any_order_and_workers_on_real_text(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, lowercase: bool, known: set[str]
) -> None:
    monkeypatch.setattr(counting, 'BLOCK', 300)
    settings = dict(tokenizer=kind, size=4000, lowercase=lowercase, min_frequency=2, sample_words=0)
    documents = [Document(f'd{i}', text) for i, text in enumerate(abstracts(800))]
    tokens, digests = [], set()
    for workers in (1, 2):
        counts = sampled(tmp_path / str(workers), documents, shards=workers, workers=workers, **settings)
        made = TOKENIZERS.load(kind).train(counts, Vocab(**settings), None)
        digests.add(hashlib.sha256(made.tokenizer.to_str().encode()).hexdigest())
        tokens, documents = made.tokens, random.Random(1).sample(documents, len(documents))
    assert len(digests) == 1
    assert len(tokens) == len(set(tokens)) == 4000
    assert known <= set(tokens)


def test_specials_come_first_then_characters_then_merges() -> None:
    tokens = wordpiece.train(TEXTS, SMALL)
    assert tokens[:5] == ['[PAD]', '[UNK]', '[CLS]', '[SEP]', '[MASK]']
    characters = [t for t in tokens if len(t) == 1]
    assert characters == sorted(set(''.join(wordpiece.KIND.count_words(TEXTS, True))))
    assert tokens[5 : 5 + len(characters)] == characters
    assert '##(' not in tokens, 'punctuation never continues a word, so it needs no continuation entry'
    assert 'kinase' in tokens
    assert not any(t.isupper() for t in tokens[5:])


def test_merges_follow_the_counts() -> None:
    # 4 x ab against 3 x cd: one entry more than the characters must be "ab".
    counts = {'ab': 4, 'cd': 3}
    least = 5 + 4 + 2  # specials, a b c d, ##b ##d
    padded = {
        **counts,
        **{chr(0x4E00 + i): 1 for i in range(100)},
    }  # the schema asks for 100 entries at least
    tokens = wordpiece.train_from_counts(padded, Vocab(size=least + 100 + 1))
    assert tokens[-1] == 'ab'
    assert 'cd' not in tokens
    assert wordpiece.train_from_counts(padded, Vocab(size=least + 150))[-2:] == ['ab', 'cd']
    assert 'cd' not in wordpiece.train_from_counts(padded, Vocab(size=least + 150, min_frequency=4))


def test_word_counts_of_parts_add_up() -> None:
    whole = wordpiece.KIND.count_words(TEXTS, True)
    parts = wordpiece.KIND.count_words(TEXTS[:1], True) + wordpiece.KIND.count_words(TEXTS[1:], True)
    assert parts == whole
    assert whole['kinase'] == 2
    assert whole['cafe'] == 1, 'lower case takes accents off'
    assert whole['methylpropane'] == 1, 'a soft hyphen is a control character and vanishes'
    assert wordpiece.KIND.count_words(TEXTS, False)['Café'] == 1


def pair_counts(counts: Mapping[str, int]) -> Counter[str]:
    """How often each two characters stand side by side, one by one."""
    found: Counter[str] = Counter()
    for word, count in counts.items():
        for i in range(len(word) - 1):
            found[word[i : i + 2]] += count
    return found


def test_counts_beyond_the_trainers_32_bits_are_divided() -> None:
    # "ab" stands in both words: 3e9 + 2e9 = 5e9, which needs a divisor of 3; a word seen twice is lost with it.
    counts = {'ab': 3_000_000_000, 'cab': 2_000_000_000, 'x': 9_000_000_000, 'rare': 2, 'some': 8}
    fitting = training.within_trainer(counts, training.LARGEST_PAIR_COUNT)
    assert fitting == {'ab': 1_000_000_000, 'cab': 666_666_666, 'x': 3_000_000_000, 'some': 2}
    assert training.within_trainer(fitting, training.LARGEST_PAIR_COUNT) is fitting
    # A pair counts as often as it stands in a word: 3 x 2**30 overflow although no word count does.
    twice = training.within_trainer({'aaaa': 2**30}, training.LARGEST_PAIR_COUNT)
    assert twice == {'aaaa': 2**29}


@given(
    st.dictionaries(st.text('abc', min_size=1, max_size=8), st.integers(1, 2**40), min_size=1, max_size=30),
    st.integers(1, 2**31 - 1),
)
def test_no_pair_can_exceed_the_trainer_and_order_stays(counts: dict[str, int], largest: int) -> None:
    fitting = training.within_trainer(counts, largest)
    most = max(pair_counts(counts).values(), default=0)
    assert max(pair_counts(fitting).values(), default=0) <= largest
    if most <= largest:
        assert fitting == counts
    for one, other in itertools.combinations(counts, 2):
        if counts[one] <= counts[other]:
            assert fitting.get(one, 0) <= fitting.get(other, 0)


@given(
    st.dictionaries(st.text('ab#', min_size=1, max_size=9), st.integers(1, 9), min_size=1, max_size=6),
    st.randoms(use_true_random=False),
)
def test_pieces_are_never_counted_above_their_characters(
    counts: dict[str, int], chance: random.Random
) -> None:
    """The trainer's bookkeeping, with merges in any order: why `within_trainer` looks at characters only."""
    words = {word: [word[0], *('##' + c for c in word[1:])] for word in counts}
    recorded: Counter[tuple[str, str]] = Counter()
    for word, pieces in words.items():
        for pair in itertools.pairwise(pieces):
            recorded[pair] += counts[word]
    most = max(pair_counts(counts).values(), default=0)
    for _ in range(12):
        if not (known := sorted(pair for pair, count in recorded.items() if count)):
            break
        first, second = chance.choice(known)
        for word, pieces in words.items():
            merge(pieces, first, second, counts[word], recorded)
        assert min(recorded.values()) >= 0
        assert max(recorded.values()) <= most


def merge(pieces: list[str], first: str, second: str, count: int, recorded: Counter) -> None:
    """Merge a pair as the trainer does it: neighbours' pairs are counted anew, the merged pair itself keeps its
    count."""
    merged, at = first + second.removeprefix('##'), 0
    while at < len(pieces) - 1:
        if pieces[at : at + 2] == [first, second]:
            pieces[at : at + 2] = [merged]
            if at:
                recorded[pieces[at - 1], first] -= count
                recorded[pieces[at - 1], merged] += count
            if at < len(pieces) - 1:
                recorded[second, pieces[at + 1]] -= count
                recorded[merged, pieces[at + 1]] += count
        at += 1


def test_training_divides_what_would_overflow(monkeypatch: pytest.MonkeyPatch) -> None:
    padding = {chr(0x4E00 + i): 1 for i in range(100)}
    counts = {'ab': 40, 'cd': 30, 'ef': 9, **padding}
    settings = Vocab(size=300, min_frequency=2)
    assert wordpiece.train_from_counts(counts, settings)[-3:] == ['ab', 'cd', 'ef']
    monkeypatch.setattr(training, 'LARGEST_PAIR_COUNT', 8)
    tokens = wordpiece.train_from_counts(counts, settings)
    assert tokens[-2:] == ['ab', 'cd'], '9 // 5 is below min_frequency'
    assert {'e', '##f', chr(0x4E00)} <= set(tokens), 'no character is lost'


def test_a_cased_vocabulary_keeps_capitals() -> None:
    texts = ['Kinase kinase DNA DNA dna'] * 3
    tokens = wordpiece.train(texts, dataclasses.replace(SMALL, lowercase=False))
    assert {'Kinase', 'kinase', 'DNA', 'dna', 'K', '##N'} <= set(tokens)
    assert not {'Kinase', 'DNA', 'K'} & set(wordpiece.train(texts, SMALL))
    tokenizer = wordpiece.make(tokens, False)
    assert tokenizer.tokenizer.encode('DNA kinase', add_special_tokens=False).tokens == ['DNA', 'kinase']


def test_rare_characters_give_way_to_the_limit() -> None:
    counts = {'aab': 5, 'abc': 4, 'xyz': 1}
    tokens = wordpiece.train_from_counts(counts, Vocab(size=100, limit_alphabet=3))
    assert [t for t in tokens if len(t) == 1] == ['a', 'b', 'c']
    assert not any('x' in t or 'z' in t for t in tokens[5:])


def test_too_small_and_empty() -> None:
    letters = dict.fromkeys(map(chr, range(0x4E00, 0x4E00 + 200)), 1)
    many = r'config\.vocab\.size: 100 .* lower config\.vocab\.limit_alphabet'
    for error, message, train in (
        (ConfigError, many, lambda: wordpiece.train_from_counts(letters, Vocab(size=100))),
        (InputError, 'no words', lambda: wordpiece.train(['', ' \n '], SMALL)),
    ):
        with pytest.raises(error, match=message):
            train()


def test_saved_folder_is_what_transformers_loads(tmp_path: Path) -> None:
    transformers = pytest.importorskip('transformers')
    for lowercase in (True, False):
        tokens = wordpiece.train(TEXTS, dataclasses.replace(SMALL, lowercase=lowercase))
        tokenizer = wordpiece.make(tokens, lowercase)
        folder = tmp_path / str(lowercase)
        tokenizer.save(folder, 128)
        theirs = transformers.AutoTokenizer.from_pretrained(folder)
        assert 'Bert' in type(theirs).__name__
        assert theirs.model_max_length == 128
        assert theirs.get_vocab() == {t: i for i, t in enumerate(tokens)}
        assert set(theirs.all_special_tokens) == set(wordpiece.SPECIAL_TOKENS)
        for text in [*TEXTS, 'Unknown ☃ [MASK] word', 'x' * 101]:
            assert theirs(text)['input_ids'] == tokenizer.tokenizer.encode(text).ids
        pair, other = tokenizer.tokenizer.encode(TEXTS[0], TEXTS[1]), theirs(TEXTS[0], TEXTS[1])
        assert pair.ids == other['input_ids']
        assert pair.type_ids == other['token_type_ids']
        again = subwords.load(folder)
        assert again.tokens == tokens
        assert again.lowercase is lowercase
        assert subwords.load(folder / 'vocab.txt').tokens == tokens
        assert subwords.load(folder / 'vocab.txt').lowercase is lowercase
        assert sorted(p.name for p in folder.iterdir()) == [
            'tokenizer.json',
            'tokenizer_config.json',
            'vocab.txt',
        ]


def test_loading_switches_truncation_and_padding_off(tmp_path: Path) -> None:
    tokenizer = wordpiece.make(wordpiece.train(TEXTS, SMALL), True)
    tokenizer.tokenizer.enable_truncation(4)
    tokenizer.tokenizer.enable_padding(length=4)
    tokenizer.tokenizer.save(str(tmp_path / 'tokenizer.json'))
    loaded = subwords.load(tmp_path).tokenizer
    assert loaded.truncation is None
    assert loaded.padding is None
    assert len(loaded.encode(TEXTS[0]).ids) > 4


@pytest.mark.parametrize('said', [{}, {'type': None}])
def test_a_longest_word_tells_the_type_of_a_model(tmp_path: Path, said: dict[str, None]) -> None:
    wordpiece.make(wordpiece.train(TEXTS, SMALL), True).save(tmp_path, 128)
    state = json.loads((tmp_path / 'tokenizer.json').read_text('utf-8'))
    del state['model']['type']
    state['model'] |= said
    write_json(tmp_path / 'tokenizer.json', state)
    known = subwords.load(tmp_path)
    assert known.kind is wordpiece.KIND
    agreement.check_source(tmp_path, known)


@needs_data
def test_casing_of_real_vocabularies() -> None:
    folder = Path(DATA or '') / 'vocab'
    uncased = subwords.load(folder / 'bert-base-uncased')
    assert uncased.lowercase
    assert uncased.tokenizer.encode('Bronchoconstriction', add_special_tokens=False).tokens == (
        ['bro', '##nch', '##oco', '##nst', '##ric', '##tion']
    )
    assert not subwords.load(folder / 'bert-base-cased').lowercase


@pytest.mark.parametrize(
    ('name', 'content', 'message'),
    [
        (
            *('README.md', b''),
            r'holds no tokenizer \(tokenizer\.json, vocab\.json, merges\.txt, spm\.model, .*vocab\.txt\)',
        ),
        ('tokenizer.json', b'{"version": ', r'tokenizer\.json: is damaged'),
        (
            'tokenizer.json',
            tokenizers.Tokenizer(tokenizers.models.WordPiece({'[UNK]': 0}, unk_token='[UNK]'))
            .to_str()
            .encode(),
            r'has no \[PAD\], \[CLS\]',
        ),
        ('vocab.txt', b'[PAD]\n[UNK]\n[CLS]\na\n', r'vocab\.txt: has no \[SEP\], \[MASK\]'),
        (
            'vocab.txt',
            b'[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\na\nb\na\n[unused0]\n',
            r"vocab\.txt: 'a' is there twice \(lines 6 and 8\); rename the first to \[unused1\]",
        ),
        ('vocab.txt', b'[PAD]\n\xff\xfe\n', r'vocab\.txt: is not UTF-8'),
    ],
)
def test_bad_vocabulary_files(tmp_path: Path, name: str, content: bytes, message: str) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(InputError, match=message):
        subwords.load(tmp_path)


def test_the_advice_for_a_doubled_line_keeps_every_id(tmp_path: Path) -> None:
    """transformers reads it so: the last of two lines has the token, and what follows stays where it is."""
    transformers = pytest.importorskip('transformers')
    entries = [*wordpiece.SPECIAL_TOKENS, 'glioma', 'kinase', 'glioma', 'zebra']
    (tmp_path / 'vocab.txt').write_text('\n'.join(entries) + '\n', 'utf-8')
    with pytest.raises(InputError) as error:
        subwords.load(tmp_path / 'vocab.txt')
    said = r"'glioma' is there twice \(lines 6 and 8\); rename the first to (\S+):"
    (name,) = re.findall(said, str(error.value))
    entries[5] = name
    (tmp_path / 'vocab.txt').write_text('\n'.join(entries) + '\n', 'utf-8')
    theirs, text = transformers.BertTokenizer(str(tmp_path / 'vocab.txt')), 'glioma kinase zebra'
    ours = subwords.load(tmp_path / 'vocab.txt')
    assert ours.tokenizer.encode(text).ids == theirs(text)['input_ids'] == [2, 7, 6, 8, 3]
    # As an editor of Windows saves it.
    (tmp_path / 'vocab.txt').write_bytes('\r\n'.join([*entries, '']).encode('utf-8-sig'))
    assert subwords.load(tmp_path / 'vocab.txt').tokens == entries


def test_comparison_by_hand() -> None:
    specials = list(wordpiece.SPECIAL_TOKENS)
    own = wordpiece.make([*specials, 'kinase', 'a', '##b', '.'], True)
    source = wordpiece.make([*specials, 'kin', '##ase', 'a', '##b', '.', '##x'], True)
    report = compare.compare_vocabularies(own, source, ['Kinase ab kinase.', 'kinase zz'])
    assert (report.size, report.source_size) == (9, 11)
    assert (report.kept, report.new, report.lost) == (8, 1, 3)
    # words: kinase ab kinase . kinase zz; pieces 1+2+1+1+1+1 against 2+2+2+1+2+1
    assert report.vocabulary.words == 6
    assert report.vocabulary.pieces_per_word == round(7 / 6, 4)
    assert report.source.pieces_per_word == round(10 / 6, 4)
    assert report.vocabulary.pieces_per_word_between_spaces == round(7 / 5, 4)
    assert report.vocabulary.unknown_words == round(1 / 6, 6)
    assert report.vocabulary.one_piece_words == round(4 / 6, 4)
    assert plain(report.examples) == [{'token': 'kinase', 'count': 3, 'source': ['kin', '##ase']}]
    assert compare.new_tokens(own, source) == ['kinase']
    assert compare.new_tokens(own, None) == []


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """A run with a tiny corpus and an uncased source."""
    workdir = tmp_path / 'run'
    count = write_documents(
        workdir / 'corpus', 'train', [Document(f'd{i}', t) for i, t in enumerate(TEXTS)], 2
    )
    words = sum(len(text.split()) for text in TEXTS)
    counts = {'read': count, 'left_out': {}, 'train': count, 'heldout': 0, 'words': {'train': words}}
    write_json(workdir / 'corpus' / 'manifest.json', {'counts': counts, 'content': ''})
    source = wordpiece.train(TEXTS[:2], Vocab(size=100, min_frequency=1))
    wordpiece.make(source, True).save(tmp_path / 'source', 512)
    write_json(tmp_path / 'source' / 'config.json', {'max_position_embeddings': 77})
    monkeypatch.setattr(build, 'source_folder', lambda source: Path(source.path) if source.path else None)
    experiment = Experiment(
        source=Source(path=str(tmp_path / 'source')), vocab=SMALL, runtime=Runtime(workers=1)
    )
    (workdir / 'vocab').mkdir()
    return Run(workdir, experiment, quiet=True)


def change(run: Run, **values: object) -> Run:
    vocab = dataclasses.replace(run.config.vocab, **values)  # type: ignore[arg-type]
    return Run(run.workdir, dataclasses.replace(run.config, vocab=vocab), quiet=True)


def test_stage_trains_and_compares(run: Run, tmp_path: Path) -> None:
    folder = run.workdir / 'vocab'
    counts = build.build(run, folder).counts
    tokens = subwords.load(folder).tokens
    assert tokens == wordpiece.train(TEXTS, SMALL)
    source = subwords.load(tmp_path / 'source').tokens
    assert build.read_new_tokens(folder) == [t for t in tokens if t not in source]
    assert counts.json() == {
        'size': len(tokens),
        'kept': len(set(tokens) & set(source)),
        'new': len(set(tokens) - set(source)),
        'lost': len(set(source) - set(tokens)),
        'words_counted': sum(wordpiece.KIND.count_words(TEXTS, True).values()),
    }
    assert json.loads((folder / 'tokenizer_config.json').read_text('utf-8'))['model_max_length'] == 77
    assert build.external_inputs(run.config)[0] == tmp_path / 'source' / 'tokenizer.json'


def test_stage_keeps_the_source_or_takes_a_file(run: Run, tmp_path: Path) -> None:
    folder = run.workdir / 'vocab'
    assert build.build(change(run, kind='source'), folder).counts.new == 0
    assert (folder / 'vocab.txt').read_bytes() == (tmp_path / 'source' / 'vocab.txt').read_bytes()
    assert (folder / 'tokenizer.json').read_bytes() == (tmp_path / 'source' / 'tokenizer.json').read_bytes()
    assert build.read_new_tokens(folder) == []
    given = tmp_path / 'vocab.txt'
    given.write_text('\n'.join([*wordpiece.SPECIAL_TOKENS, 'zebra', 'the']) + '\n', 'utf-8')
    with_file = change(run, kind='file', file=str(given))
    assert build.build(with_file, folder).counts.size == 7
    assert 'zebra' in build.read_new_tokens(folder)
    assert given in build.external_inputs(with_file.config)


def test_stage_names_entries_of_a_given_vocabulary_that_no_text_reaches(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    dead, said = ['BRCA1', 'naïve', 'a b', 'x' * 120, '##,'], []
    given = tmp_path / 'vocab.txt'
    entries = [*wordpiece.SPECIAL_TOKENS, '[unused0]', *dead, 'zebra', '##ed']
    given.write_text('\n'.join(entries) + '\n', 'utf-8')
    write_json(tmp_path / 'tokenizer_config.json', {'do_lower_case': True})
    with_file = change(run, kind='file', file=str(given))
    monkeypatch.setattr(with_file.console, 'say', said.append)
    build.build(with_file, run.workdir / 'vocab')
    assert json.loads((run.workdir / 'vocab' / 'comparison.json').read_text('utf-8'))['unreached'] == dead
    (line,) = [line for line in said if 'no text can have' in line]
    assert 'vocab: no text can have 5 entries of the given vocabulary' in line
    assert "('BRCA1', 'naïve', 'a b', 'xxxxxxxxxxxxxxxxxxxx...', '##,')" in line


@pytest.mark.parametrize(('kind', 'unit'), [('wordpiece', ''), ('unigram', ' between spaces')])
def test_stage_says_pieces_of_words_that_can_be_compared(
    run: Run, kind: str, unit: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """WordPiece takes punctuation as words, and SentencePiece what stands between spaces."""
    of_kind, said = change(run, tokenizer=kind), list[str]()
    monkeypatch.setattr(of_kind.console, 'say', said.append)
    build.build(of_kind, run.workdir / 'vocab')
    found = json.loads((run.workdir / 'vocab' / 'comparison.json').read_text('utf-8'))
    key = 'pieces_per_word' + unit.replace(' ', '_')
    own, source = (found[owner][key] for owner in ('vocabulary', 'source'))
    assert f'{own:.2f} pieces a word{unit} (source: {source:.2f}), {found["new"]} new tokens' in said[-1]


def test_stage_takes_a_tokenizer_with_its_added_tokens(run: Run, tmp_path: Path) -> None:
    """The stage takes it as it cuts texts: what was added to it is no mere entry, which no text could reach."""
    given = subwords.load(tmp_path / 'source')
    given.tokenizer.add_tokens(['IL-2', 'tumor necrosis factor'])
    given.tokenizer.add_special_tokens(['[E1]', '[/E1]'])
    text = '[E1] IL-2 [/E1] and tumor necrosis factor'
    expected = given.tokenizer.encode(text).ids
    given = wordpiece.KIND.of(given.tokenizer)
    given.save(tmp_path / 'given', 77)
    for place in ('given', 'given/tokenizer.json'):
        with_file = change(run, kind='file', file=str(tmp_path / place))
        assert build.build(with_file, run.workdir / 'vocab').counts.new == 4
        made = subwords.load(run.workdir / 'vocab')
        assert made.tokenizer.encode(text).ids == expected
        assert not set(made.drawn_N) & {made.tokens.index(token) for token in ('[E1]', '[/E1]')}
    trained = change(run, kind='train')
    trained = Run(run.workdir, dataclasses.replace(trained.config, source=Source(str(tmp_path / 'given'))))
    assert build.build(trained, run.workdir / 'vocab').counts.size <= SMALL.size
    made = subwords.load(run.workdir / 'vocab')
    assert made.tokens[-2:] == ['[E1]', '[/E1]']
    assert made.tokenizer.encode('[E1]', add_special_tokens=False).ids == [len(made.tokens) - 2]


def test_stage_appends_what_is_new_to_the_source(run: Run, tmp_path: Path) -> None:
    folder = run.workdir / 'vocab'
    counts = build.build(change(run, kind='append'), folder).counts
    tokens = subwords.load(folder).tokens
    source = subwords.load(tmp_path / 'source').tokens
    trained = wordpiece.train(TEXTS, SMALL)
    assert tokens[: len(source)] == source
    assert tokens[len(source) :] == build.read_new_tokens(folder) == [t for t in trained if t not in source]
    assert (counts.kept, counts.lost) == (len(source), 0)


def test_stage_errors_name_the_key(run: Run) -> None:
    folder = run.workdir / 'vocab'
    alone = Run(run.workdir, dataclasses.replace(run.config, source=Source()), quiet=True)
    for wrong, refusal in (
        (change(run, lowercase=False), 'lowercase: is False, but the source .* lower case'),
        (
            change(run, kind='source', tokenizer='bytelevel', lowercase=False),
            r'tokenizer: is bytelevel, and config\.vocab\.lowercase: is False, but the source .* of the kind wordpiece '
            'and is lower case; set --config.vocab.tokenizer=wordpiece --config.vocab.lowercase=True$',
        ),
        (change(run, kind='file'), 'file'),
        (change(alone, kind='source'), 'kind'),
        (change(alone, kind='append'), r'kind: append needs config\.source\.path'),
        (change(run, sample_words=1), 'sample_words: 1 are so few that no document'),
    ):
        with pytest.raises(ConfigError, match=rf'config\.vocab\.{refusal}'):
            build.build(wrong, folder)
    assert not list(folder.iterdir()), 'nothing may be left behind'
    assert build.build(alone, folder).counts.new is None
    assert build.read_new_tokens(folder) == []


@pytest.mark.parametrize('kind', ['bytelevel', 'wordpiece'])
def test_word_counts_do_not_depend_on_workers(run: Run, monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    monkeypatch.setattr(counting, 'BLOCK', 1)
    general = write_general(run.workdir)
    # Of two versions the newer one counts, though its name sorts first by characters; what was deleted does not.
    record = '<MedlineCitation><PMID>{}</PMID><Article><Abstract><AbstractText>{}</AbstractText></Abstract></Article>'
    record += '</MedlineCitation>'
    deletion = '<DeleteCitation><PMID>6</PMID></DeleteCitation>'
    for name, records in {
        'batch_2': record.format(5, 'An oldest word.') + record.format(6, 'A deleted word.'),
        'batch_10': record.format(5, 'The newest word.') + deletion,
    }.items():
        (general / f'{name}.xml').write_text(f'<PubmedArticleSet>{records}</PubmedArticleSet>', 'utf-8')
    run = change(run, general=(f'{general}/*.*',), tokenizer=kind)
    documents = build.open_documents(run.workdir / 'corpus', 'train')
    parallel = dataclasses.replace(run.config, runtime=Runtime(workers=2))
    domain, everyday = counting.count_corpora(Console(quiet=True), parallel, documents, 1.0)
    assert (domain, everyday) == counting.count_corpora(Console(quiet=True), run.config, documents, 1.0)
    count = TOKENIZERS.load(kind).count_words
    assert (domain, everyday) == (count(TEXTS, True), count([*GENERAL.values(), 'The newest word.'], True))


GENERAL = {'a.txt': 'The café was full of patients.', 'b.txt': 'The patients read 7 books.'}


def write_general(folder: Path) -> Path:
    target = folder / 'everyday'
    target.mkdir()
    for name, text in GENERAL.items():
        (target / name).write_text(text + '\n', 'utf-8')
    return target


def sampled(folder: Path, documents: list[Document], shards: int, workers: int, **settings: Any) -> Counter:
    write_documents(folder / 'corpus', 'train', documents, shards)
    words = sum(len(d.text.split()) for d in documents)
    experiment = Experiment(vocab=dataclasses.replace(SMALL, **settings), runtime=Runtime(workers=workers))
    source = build.open_documents(folder / 'corpus', 'train')
    share = counting.share_counted(experiment.vocab.sample_words, words)
    return counting.count_corpora(Console(quiet=True), experiment, source, share)[0]


def test_the_sample_depends_on_ids_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(counting, 'BLOCK', 300)
    documents = [Document(f'd{i}', f'word{i} of text') for i in range(1000)]  # 3,000 words, each id its own
    first = sampled(tmp_path / 'a', documents, shards=1, workers=1, sample_words=600)
    shuffled = random.Random(3).sample(documents, len(documents))
    assert sampled(tmp_path / 'b', shuffled, shards=3, workers=2, sample_words=600) == first
    assert first['of'] == pytest.approx(200, abs=4 * (1000 * 0.2 * 0.8) ** 0.5)
    assert first['of'] == sum(counting.is_counted(d.id, 0.2, 0) for d in documents)
    assert all(first[f'word{i}'] == counting.is_counted(f'd{i}', 0.2, 0) for i in range(1000))
    other = sampled(tmp_path / 'c', documents, shards=1, workers=1, sample_words=600, sample_seed=1)
    both = sum(other[f'word{i}'] and first[f'word{i}'] for i in range(1000))
    assert both == pytest.approx(40, abs=4 * 40**0.5), 'another seed is an independent choice'
    assert sampled(tmp_path / 'd', documents, shards=1, workers=1, sample_words=0)['of'] == 1000
    assert sampled(tmp_path / 'e', documents, shards=1, workers=1, sample_words=3000)['of'] == 1000


@pytest.mark.parametrize('other', [document_key, sampling.hash_text])
def test_the_sample_is_independent_of_other_choices_by_id(other: Callable[[str], int]) -> None:
    low = [id for id in (f'd{i}' for i in range(20_000)) if other(id) < 0.1 * 2**64]
    counted = sum(counting.is_counted(id, 0.5, 0) for id in low)
    assert counted == pytest.approx(len(low) / 2, abs=4 * (len(low) / 4) ** 0.5)


def test_frequency_classes_by_hand() -> None:
    names = [frequency.class_of(n, 1_000_000) for n in (100, 99, 10, 9, 1, 0)]
    assert names == ['100 or more', '10 to 100', '10 to 100', '1 to 10', '1 to 10', 'absent']
    assert frequency.class_of(1, 1_000_001) == 'below 1'
    # 20,000 running words: a word seen once has 50 in a million, twice has 100.
    domain = {'the': 19_990, 'kinase': 5, 'il': 2, 'assay': 1, 'rare': 1, '.': 900, '2023': 80, 'x1': 1}
    general = {'the': 999_958, 'assay': 9, 'kinase': 30, 'β': 2, 'house': 1, '!': 50}
    result = frequency.classify(domain, general)
    assert result.domain.json() == {
        'words': 20_000,
        'different': 6,
        'classes': {
            '100 or more': {'different': 3, 'share': round(19_997 / 20_000, 6)},
            '10 to 100': {'different': 3, 'share': round(3 / 20_000, 6)},
            '1 to 10': {'different': 0, 'share': 0},
            'below 1': {'different': 0, 'share': 0},
        },
    }
    assert result.general.words == 1_000_000
    assert [c.different for c in result.general.classes.values()] == [1, 1, 3, 0]
    cross = {(g, d): n for g, row in result.cross.items() for d, n in row.items() if n}
    assert cross == {
        ('100 or more', '100 or more'): 1,  # the
        ('10 to 100', '100 or more'): 1,  # kinase
        ('1 to 10', '10 to 100'): 1,  # assay
        ('1 to 10', 'absent'): 2,  # β, house
        ('absent', '100 or more'): 1,  # il
        ('absent', '10 to 100'): 2,  # rare, x1
    }
    assert 'absent' not in result.cross['absent']
    assert [x.word for x in result.examples] == ['il', 'rare', 'x1']
    assert list(frequency.classify(domain, {}).json()) == ['share_counted', 'per_million', 'domain']
    # Some kinds count a word behind a space apart from the one at the beginning of a text, or with its punctuation.
    spaced = frequency.classify({' fat': 1, 'fat': 1, ' (fat).': 1}, {'fat': 1})
    assert (spaced.domain.words, spaced.domain.different, spaced.examples) == (3, 1, ())
    assert frequency.classify({}, {}).domain.different == 0


@pytest.mark.parametrize('kind', ['train', 'source'])
def test_stage_counts_words_of_both_corpora(run: Run, kind: str) -> None:
    folder = run.workdir / 'vocab'
    alone = build.build(change(run, kind=kind), folder).content
    assert 'cross' not in json.loads((folder / 'frequency.json').read_text('utf-8'))
    general = write_general(run.workdir)
    beside = change(run, kind=kind, general=(f'{general}/*.txt',))
    assert build.external_inputs(beside.config)[-2:] == [general / 'a.txt', general / 'b.txt']
    assert build.build(beside, folder).content == alone, 'later stages do not depend on frequencies'
    table = pyarrow.parquet.read_table(folder / 'words.parquet').to_pylist()
    domain = wordpiece.KIND.count_words(TEXTS, True)
    everyday = wordpiece.KIND.count_words(GENERAL.values(), True)
    assert {r['word']: (r['count'], r['general_count']) for r in table} == {
        word: (domain[word], everyday[word])
        for word in domain | everyday
        if max(domain[word], everyday[word]) > 1
    }
    assert [r['count'] for r in table] == sorted((r['count'] for r in table), reverse=True)
    assert (everyday['the'], everyday['patients'], everyday['cafe']) == (2, 2, 1)
    cross = json.loads((folder / 'frequency.json').read_text('utf-8'))['cross']
    here = {word for word in domain if any(map(str.isalpha, word))}
    assert cross['absent']['100 or more'] == len(here - everyday.keys())


def test_a_missing_general_corpus_names_its_key(run: Run) -> None:
    with pytest.raises(InputError, match=r'nowhere\.txt: no such file.*config\.vocab\.general'):
        build.external_inputs(change(run, general=(f'{run.workdir}/nowhere.txt',)).config)


def test_stage_makes_a_cased_vocabulary(run: Run) -> None:
    alone = Run(run.workdir, dataclasses.replace(run.config, source=Source()), quiet=True)
    build.build(change(alone, lowercase=False), run.workdir / 'vocab')
    tokenizer = subwords.load(run.workdir / 'vocab')
    assert not tokenizer.lowercase
    assert tokenizer.tokens == wordpiece.train(TEXTS, dataclasses.replace(SMALL, lowercase=False))
    counted = pyarrow.parquet.read_table(run.workdir / 'vocab' / 'words.parquet')['word'].to_pylist()
    assert 'kinase' in counted
    assert 'Naproxenib' not in counted, 'once with a capital, once without'


def test_killed_worker_is_one_clear_line() -> None:
    with (
        pytest.raises(InputError, match=r'worker process was killed.*runtime\.workers'),
        open_workers(Runtime(workers=2), 2) as pool,
    ):
        list(pool.map(_kill_oneself, [()] * 3))


def test_work_that_nobody_waits_for_ends() -> None:
    def stopped_after_one() -> None:
        with open_workers(Runtime(workers=2), 2) as pool:
            for _ in pool.map(time.sleep, [(0,), (100,), (100,)]):
                raise Stopped

    began = time.monotonic()
    with pytest.raises(Stopped):
        stopped_after_one()
    assert time.monotonic() - began < 60


def test_a_signal_to_the_whole_group_leaves_the_workers_to_their_parent() -> None:
    with open_workers(Runtime(workers=2), 2) as pool:
        assert list(pool.map(_signal_oneself, [(signal.SIGTERM,), (signal.SIGINT,)])) == [True, True]


def _kill_oneself() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def _signal_oneself(number: int) -> bool:
    os.kill(os.getpid(), number)
    return True
