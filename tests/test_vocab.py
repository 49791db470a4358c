"""The vocabulary stage: deterministic training, tokenizers that transformers reads, errors with a remedy."""

import dataclasses
import gzip
import json
import os
import random
import signal
from pathlib import Path

import pytest
import tokenizers

from bioptimus_jax.corpus.documents import Document, write_documents
from bioptimus_jax.errors import ConfigError, InputError
from bioptimus_jax.files import write_json
from bioptimus_jax.run import Run
from bioptimus_jax.schema import Experiment, Runtime, Source, Vocab
from bioptimus_jax.vocab import build, compare, wordpiece
from bioptimus_jax.workers import open_workers

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
def test_training_is_the_same_for_any_order_of_real_text() -> None:
    texts = abstracts(2500)
    settings = Vocab(size=8000)
    first = wordpiece.train(texts, settings)
    shuffled = random.Random(1).sample(texts, len(texts))
    assert wordpiece.train(shuffled, settings) == first
    assert wordpiece.train(texts[::-1], settings) == first
    assert len(first) == len(set(first)) == 8000
    assert {'patients', '##ing', 'treatment'} <= set(first)


def test_specials_come_first_then_characters_then_merges() -> None:
    tokens = wordpiece.train(TEXTS, SMALL)
    assert tokens[:5] == ['[PAD]', '[UNK]', '[CLS]', '[SEP]', '[MASK]']
    characters = [t for t in tokens if len(t) == 1]
    assert characters == sorted(set(''.join(wordpiece.count_words(TEXTS, True))))
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
    whole = wordpiece.count_words(TEXTS, True)
    parts = wordpiece.count_words(TEXTS[:1], True) + wordpiece.count_words(TEXTS[1:], True)
    assert parts == whole
    assert whole['kinase'] == 2
    assert whole['cafe'] == 1, 'lower case takes accents off'
    assert whole['methylpropane'] == 1, 'a soft hyphen is a control character and vanishes'
    assert wordpiece.count_words(TEXTS, False)['Café'] == 1


def test_rare_characters_give_way_to_the_limit() -> None:
    counts = {'aab': 5, 'abc': 4, 'xyz': 1}
    tokens = wordpiece.train_from_counts(counts, Vocab(size=100, limit_alphabet=3))
    assert [t for t in tokens if len(t) == 1] == ['a', 'b', 'c']
    assert not any('x' in t or 'z' in t for t in tokens[5:])


def test_too_small_and_empty() -> None:
    with pytest.raises(ConfigError, match=r'config\.vocab\.size: 100 .* lower config\.vocab\.limit_alphabet'):
        wordpiece.train_from_counts({chr(0x4E00 + i): 1 for i in range(200)}, Vocab(size=100))
    with pytest.raises(InputError, match='no words'):
        wordpiece.train(['', ' \n '], SMALL)


def test_saved_folder_is_what_transformers_loads(tmp_path: Path) -> None:
    transformers = pytest.importorskip('transformers')
    for lowercase in (True, False):
        tokens = wordpiece.train(TEXTS, dataclasses.replace(SMALL, lowercase=lowercase))
        tokenizer = wordpiece.tokenizer_from_vocabulary(tokens, lowercase)
        folder = tmp_path / str(lowercase)
        wordpiece.save_tokenizer(tokenizer, folder, 128)
        theirs = transformers.AutoTokenizer.from_pretrained(folder)
        assert 'Bert' in type(theirs).__name__
        assert theirs.model_max_length == 128
        assert theirs.get_vocab() == {t: i for i, t in enumerate(tokens)}
        assert set(theirs.all_special_tokens) == set(wordpiece.SPECIAL_TOKENS)
        for text in [*TEXTS, 'Unknown ☃ [MASK] word', 'x' * 101]:
            assert theirs(text)['input_ids'] == tokenizer.encode(text).ids
        pair, other = tokenizer.encode(TEXTS[0], TEXTS[1]), theirs(TEXTS[0], TEXTS[1])
        assert pair.ids == other['input_ids']
        assert pair.type_ids == other['token_type_ids']
        again = wordpiece.load_tokenizer(folder)
        assert wordpiece.vocabulary(again) == tokens
        assert wordpiece.is_lowercase(again) is lowercase
        assert wordpiece.vocabulary(wordpiece.load_tokenizer(folder / 'vocab.txt')) == tokens
        assert wordpiece.is_lowercase(wordpiece.load_tokenizer(folder / 'vocab.txt')) is lowercase
        assert sorted(p.name for p in folder.iterdir()) == [
            'tokenizer.json',
            'tokenizer_config.json',
            'vocab.txt',
        ]


def test_loading_switches_truncation_and_padding_off(tmp_path: Path) -> None:
    tokenizer = wordpiece.tokenizer_from_vocabulary(wordpiece.train(TEXTS, SMALL), True)
    tokenizer.enable_truncation(4)
    tokenizer.enable_padding(length=4)
    tokenizer.save(str(tmp_path / 'tokenizer.json'))
    loaded = wordpiece.load_tokenizer(tmp_path)
    assert loaded.truncation is None
    assert loaded.padding is None
    assert len(loaded.encode(TEXTS[0]).ids) > 4


@needs_data
def test_casing_of_real_vocabularies() -> None:
    folder = Path(DATA or '') / 'vocab'
    uncased = wordpiece.load_tokenizer(folder / 'bert-base-uncased')
    assert wordpiece.is_lowercase(uncased)
    assert uncased.encode('Bronchoconstriction', add_special_tokens=False).tokens == (
        ['bro', '##nch', '##oco', '##nst', '##ric', '##tion']
    )
    assert not wordpiece.is_lowercase(wordpiece.load_tokenizer(folder / 'bert-base-cased'))


@pytest.mark.parametrize(
    ('content', 'message'),
    [
        (None, r'vocab\.txt: no such file'),
        (b'[PAD]\n[UNK]\n[CLS]\na\n', r'vocab\.txt: has no \[SEP\], \[MASK\]'),
        (b'[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\na\nb\na\n', r"vocab\.txt: 'a' stands there twice \(line 6\)"),
        (b'[PAD]\n\xff\xfe\n', r'vocab\.txt: is not UTF-8'),
    ],
)
def test_bad_vocabulary_files(tmp_path: Path, content: bytes | None, message: str) -> None:
    if content is not None:
        (tmp_path / 'vocab.txt').write_bytes(content)
    with pytest.raises(InputError, match=message):
        wordpiece.load_tokenizer(tmp_path)


def test_bad_tokenizer_json(tmp_path: Path) -> None:
    (tmp_path / 'tokenizer.json').write_text('{"version": ', 'utf-8')
    with pytest.raises(InputError, match=r'tokenizer\.json: cannot be read'):
        wordpiece.load_tokenizer(tmp_path)
    tokenizers.Tokenizer(tokenizers.models.WordPiece({'[UNK]': 0}, unk_token='[UNK]')).save(
        str(tmp_path / 'tokenizer.json')
    )
    with pytest.raises(InputError, match=r'has no \[PAD\], \[CLS\]'):
        wordpiece.load_tokenizer(tmp_path)


def test_comparison_by_hand() -> None:
    specials = list(wordpiece.SPECIAL_TOKENS)
    own = wordpiece.tokenizer_from_vocabulary([*specials, 'kinase', 'a', '##b', '.'], True)
    source = wordpiece.tokenizer_from_vocabulary([*specials, 'kin', '##ase', 'a', '##b', '.', '##x'], True)
    report = compare.compare(own, source, ['Kinase ab kinase.', 'kinase zz'])
    assert (report['size'], report['source_size']) == (9, 11)
    assert (report['kept'], report['new'], report['lost']) == (8, 1, 3)
    # words: kinase ab kinase . kinase zz; pieces 1+2+1+1+1+1 against 2+2+2+1+2+1
    assert report['vocabulary']['words'] == 6
    assert report['vocabulary']['pieces_per_word'] == round(7 / 6, 4)
    assert report['source']['pieces_per_word'] == round(10 / 6, 4)
    assert report['vocabulary']['pieces_per_word_between_spaces'] == round(7 / 5, 4)
    assert report['vocabulary']['unknown_words'] == round(1 / 6, 6)
    assert report['vocabulary']['one_piece_words'] == round(4 / 6, 4)
    assert report['examples'] == [{'token': 'kinase', 'count': 3, 'source': ['kin', '##ase']}]
    assert compare.new_tokens(['[PAD]', 'b', 'a'], ['a']) == ['b']
    assert compare.new_tokens(['[PAD]', 'b'], None) == []


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """A run with a tiny corpus and an uncased source."""
    workdir = tmp_path / 'run'
    count = write_documents(
        workdir / 'corpus', 'train', (Document(f'd{i}', t) for i, t in enumerate(TEXTS)), 2
    )
    write_json(workdir / 'corpus' / 'manifest.json', {'counts': {'train': count}, 'content': ''})
    source = wordpiece.train(TEXTS[:2], Vocab(size=100, min_frequency=1))
    wordpiece.save_tokenizer(wordpiece.tokenizer_from_vocabulary(source, True), tmp_path / 'source', 512)
    write_json(tmp_path / 'source' / 'config.json', {'max_position_embeddings': 77})
    monkeypatch.setattr(build, 'source_folder', lambda e: Path(e.source.path) if e.source.path else None)
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
    counts = build.build(run, folder)
    tokens = wordpiece.vocabulary(wordpiece.load_tokenizer(folder))
    assert tokens == wordpiece.train(TEXTS, SMALL)
    source = wordpiece.vocabulary(wordpiece.load_tokenizer(tmp_path / 'source'))
    assert build.read_new_tokens(folder) == [t for t in tokens if t not in source]
    assert counts == {
        'size': len(tokens),
        'kept': len(set(tokens) & set(source)),
        'new': len(set(tokens) - set(source)),
        'lost': len(set(source) - set(tokens)),
    }
    assert json.loads((folder / 'tokenizer_config.json').read_text('utf-8'))['model_max_length'] == 77
    assert build.external_inputs(run.config)[0] == tmp_path / 'source' / 'tokenizer.json'


def test_stage_keeps_the_source_or_takes_a_file(run: Run, tmp_path: Path) -> None:
    folder = run.workdir / 'vocab'
    assert build.build(change(run, kind='source'), folder)['new'] == 0
    assert (folder / 'vocab.txt').read_bytes() == (tmp_path / 'source' / 'vocab.txt').read_bytes()
    assert (folder / 'tokenizer.json').read_bytes() == (tmp_path / 'source' / 'tokenizer.json').read_bytes()
    assert build.read_new_tokens(folder) == []
    given = tmp_path / 'vocab.txt'
    given.write_text('\n'.join([*wordpiece.SPECIAL_TOKENS, 'zebra', 'the']) + '\n', 'utf-8')
    with_file = change(run, kind='file', file=str(given))
    assert build.build(with_file, folder)['size'] == 7
    assert 'zebra' in build.read_new_tokens(folder)
    assert given in build.external_inputs(with_file.config)


def test_stage_errors_name_the_key(run: Run) -> None:
    folder = run.workdir / 'vocab'
    with pytest.raises(
        ConfigError, match=r'config\.vocab\.lowercase: is False, but the source .* lower case'
    ):
        build.build(change(run, lowercase=False), folder)
    with pytest.raises(ConfigError, match=r'config\.vocab\.file'):
        build.build(change(run, kind='file'), folder)
    alone = Run(run.workdir, dataclasses.replace(run.config, source=Source()), quiet=True)
    with pytest.raises(ConfigError, match=r'config\.vocab\.kind'):
        build.build(change(alone, kind='source'), folder)
    assert not list(folder.iterdir()), 'nothing may be left behind'
    assert 'new' not in build.build(alone, folder)
    assert build.read_new_tokens(folder) == []


def test_word_counts_do_not_depend_on_workers(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(build, 'COUNTED_BLOCK', 1)
    documents = build.open_documents(run.workdir / 'corpus', 'train')
    parallel = dataclasses.replace(run.config, runtime=Runtime(workers=2))
    counts = build.count_corpus(Run(run.workdir, parallel, quiet=True), documents)
    assert counts == build.count_corpus(run, documents) == wordpiece.count_words(TEXTS, True)


def test_killed_worker_is_one_clear_line() -> None:
    with (
        open_workers(Runtime(workers=2), 2, _nothing, ()) as pool,
        pytest.raises(InputError, match=r'worker process was killed.*runtime\.workers'),
    ):
        list(pool.map(os._exit, [(1,)] * 3))


def test_a_signal_to_the_whole_group_leaves_the_workers_to_their_parent() -> None:
    with open_workers(Runtime(workers=2), 2, _nothing, ()) as pool:
        assert list(pool.map(_signal_oneself, [(signal.SIGTERM,), (signal.SIGINT,)])) == [True, True]


def _nothing() -> None:
    pass


def _signal_oneself(number: int) -> bool:
    os.kill(os.getpid(), number)
    return True
