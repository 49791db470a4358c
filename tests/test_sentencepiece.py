"""SentencePiece's two kinds, Unigram and pairs, as XLM-R, DeBERTa-v3 and Gemma have them."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import sentencepiece
from hypothesis import given, settings
from hypothesis import strategies as st
from toy_sentencepiece import DEBERTA, GEMMA, save_like_deberta, save_like_gemma, trained

import bioptimus_jax as bx
from bioptimus_jax.analysis.entities import measure
from bioptimus_jax.api.words import frequent
from bioptimus_jax.corpus.documents import Document
from bioptimus_jax.errors import ConfigError, InputError
from bioptimus_jax.rows.config import Rows
from bioptimus_jax.rows.parts import apart_parts, document_parts, pair_parts
from bioptimus_jax.rows.words import WORD_RULES, starts_of
from bioptimus_jax.storage.files import read_json, write_json
from bioptimus_jax.text.words import bare, count_words
from bioptimus_jax.tokenizer import subwords
from bioptimus_jax.tokenizer.config import TOKENIZERS, Vocab
from bioptimus_jax.tokenizer.kinds import bytelevel, unigram, wordpiece
from bioptimus_jax.tokenizer.kinds.unigram import MARGIN, Lattice, scores_of
from bioptimus_jax.tokenizer.spaced import ROLES
from bioptimus_jax.tokenizer.subwords import Subwords
from bioptimus_jax.vocab import agreement
from bioptimus_jax.vocab.build import read_new_tokens, write_new_tokens
from bioptimus_jax.vocab.compare import measure_pieces

TEXTS = [
    'Naproxen inhibits the kinase (p53) in carcinoma cells. The kinase inhibitor reduced tumours (p<0.05).',
    'Café patients: β-catenin, IL-2 and 2-methylpropane; carcinomatosis isn’t the tumour of the kinase.',
    'Inhibition of kinases by naproxen was dose-dependent, and tumour cells were naïve to naproxen.',
]
NEWER = [f'{text} In carcinoconstriction, inhibitors.' for text in TEXTS]
SIZE = {'unigram': 130, 'sentencepiece_bpe': 150}
MAKES = {
    'xlm-roberta': ('unigram', ROLES),
    'deberta': ('unigram', DEBERTA),
    'pairs': ('sentencepiece_bpe', ROLES),
    'gemma': ('sentencepiece_bpe', GEMMA),
    'lowercase': ('unigram', ROLES),
}


def made_folder(name: str, folder: Path) -> Path:
    """A folder of that make."""
    kind, _ = MAKES[name]
    known = trained(kind, TEXTS, SIZE[kind], lowercase=name == 'lowercase')
    if name in ('deberta', 'gemma'):
        return {'deberta': save_like_deberta, 'gemma': save_like_gemma}[name](known, folder, 128)
    known.save(folder, 128)
    return folder


@pytest.fixture(scope='module', params=MAKES)
def make(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture(scope='module')
def folder(make: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return made_folder(make, tmp_path_factory.mktemp('known') / make)


@pytest.fixture(scope='module')
def known(folder: Path) -> Subwords:
    return subwords.load(folder)


def test_folders_are_read_and_written_as_transformers_does(
    tmp_path: Path, make: str, folder: Path, known: Subwords
) -> None:
    kind, roles = MAKES[make]
    assert known.kind is TOKENIZERS.load(kind)
    assert known.roles == roles
    assert known.lowercase is (make == 'lowercase')
    known.kind.check(known, folder)
    agreement.check_source(folder, known)
    newer = trained(kind, NEWER, len(known.tokens) + 30, known)
    appended = known.kind.append(known, newer)
    assert appended.tokens[: len(known.tokens)] == known.tokens
    assert len(appended.tokens) > len(known.tokens) + 3
    for name, one in (('again', known), ('newer', newer), ('appended', appended)):
        one.save(tmp_path / name, 128)
        texts = [*NEWER, f'a  {roles.mask} b', 'x   y\n\n z\t', '白血病の治療']
        assert agreement.check_written(tmp_path / name, one, texts).model_max_length == 128
        ready = subwords.load(tmp_path / name)
        assert (ready.kind, ready.tokens, ready.roles) == (known.kind, one.tokens, roles)
        states = [json.loads(each.tokenizer.to_str()) for each in (ready, known)]
        assert len({json.dumps([s['normalizer'], s['pre_tokenizer']]) for s in states}) == 1
        assert not {one.tokens.index(special) for special in roles} & set(one.drawn_N.tolist())
    assert [getattr(newer, role) for role in ('cls', 'pad', 'sep', 'unknown')] == [0, 1, 2, 3]
    assert newer.mask == len(newer.tokens) - 1
    assert ('<0x00>' in newer.tokens) is (make == 'gemma'), 'bytes stay where the source falls back on them'


@pytest.mark.parametrize('kind', SIZE)
def test_no_piece_holds_a_line_break_or_a_tab(kind: str) -> None:
    """A normalizer that leaves them in words would make them tokens, which break files of a token a line."""
    wanted = Vocab(tokenizer=kind, size=SIZE[kind], lowercase=False, min_frequency=1)
    words = ' '.join(TEXTS).split()
    broken = {
        f'{a}{sign}{b}': 9 for sign in ('\n', '\t', '\x85', '\u2028') for a, b in zip(words, [*words[1:], ''])
    }
    counts = {f' {word}': 2 for word in words}
    plain, mixed = (TOKENIZERS.load(kind).train(of, wanted, None).tokens for of in (counts, counts | broken))
    assert mixed == plain


IN_A_PROCESS = """
import hashlib, json, sys
sys.path.insert(0, 'tests')
from toy_sentencepiece import trained
texts, sizes = json.load(sys.stdin)
made = [trained(kind, texts * 3, size).tokenizer.to_str() for kind, size in sizes.items()]
print([hashlib.sha256(state.encode()).hexdigest() for state in made])
"""


def test_a_vocabulary_is_the_same_in_every_process() -> None:
    """The trainer of `tokenizers` gives other scores each time, and SentencePiece's with several threads."""
    # Processes that begin cold, for those that begin warm share the seed of Python's hashes.
    command, given = [sys.executable, '-c', IN_A_PROCESS], json.dumps([TEXTS, SIZE])
    root = Path(__file__).parents[1]
    runs = [
        subprocess.run(command, cwd=root, input=given, capture_output=True, text=True, encoding='utf-8')
        for _ in 'ab'
    ]
    assert runs[0].stdout == runs[1].stdout != '', runs[0].stderr


CHARACTERS = st.sampled_from(
    [*'ab .,(-2β病é\n', 'kinase', 'naproxen', ' tumour', '▁', '[MASK]', '<mask>', '</s>', '😀']
)


@settings(max_examples=80)
@given(st.lists(CHARACTERS, max_size=14).map(''.join))
def test_stretches_are_tokenised_as_within_the_text(known: Subwords, text: str) -> None:
    (whole,) = known.encode([text])
    stretches = known.kind.stretches(text)
    assert ''.join(stretches) == text
    assert whole.ids == [i for each in known.encode(stretches) for i in each.ids]
    if not any(token in text for token in known.roles):
        words = known.kind.words(known.tokenizer)(text)
        assert [i for word in words for i in known.pieces(word)] == whole.ids
        assert ''.join(''.join(words).split()) == ''.join(known.normalised(text).replace('▁', ' ').split())


def test_words_of_a_list_are_spelled_as_within_a_sentence(folder: Path, known: Subwords) -> None:
    words = ['kinase', '(p53)', 'naïve', 'x', '-2', 'Café']
    tokenizer = agreement.load_for_words(folder)
    given = tokenizer([words], is_split_into_words=True, add_special_tokens=False)
    assert given['input_ids'][0] == known.encode([' ' + ' '.join(words)])[0].ids
    ends = np.flatnonzero(np.diff(given.word_ids(0), append=-1))
    assert [words[given.word_ids(0)[i]] for i in ends] == words


def test_hidden_tokens_never_occur_and_their_text_stays(known: Subwords) -> None:
    hidden = sorted(known.kind.respellable(known))[::2]
    without = known.without(hidden)
    assert without.tokens == known.tokens
    assert without.drawn_N.tolist() == [i for i in known.drawn_N.tolist() if i not in hidden]
    for text in TEXTS:
        (before,), (after,) = known.encode([text]), without.encode([text])
        assert not set(after.ids) & set(hidden)
        assert ''.join(known.tokens[i] for i in after.ids) == ''.join(known.tokens[i] for i in before.ids)
    assert len(hidden) > 10


def test_no_two_tokens_have_one_text_and_one_beginning(known: Subwords) -> None:
    texts = [(known.text(i), bool(known.begins_V[i])) for i in range(len(known.tokens))]
    assert len(set(texts)) == len(texts)
    assert known.text(known.tokens.index('▁kinase')) == 'kinase'
    for text, inside in (('kinase', False), ('kinase', True), ('-2', True), ('(p53)', False)):
        assert ''.join(known.tokens[i] for i in known.spell(text, inside)) == '▁' * (not inside) + text
    if '<0xCE>' in known.tokens:
        assert known.text(known.tokens.index('<0xCE>')) == '\udcce', 'half a character'
        assert [known.tokens[i] for i in known.spell('Ω', True)] == ['<0xCE>', '<0xA9>']


@settings(max_examples=30)
@given(st.lists(st.sampled_from('abcd '), min_size=20, max_size=200).map(''.join), st.sampled_from([*SIZE]))
def test_a_text_can_have_every_token_that_is_appended(text: str, kind: str) -> None:
    source = trained(kind, ['ab cab dab bad cad', 'abcd dcba'], 100)
    newer = trained(kind, [text, 'a'], 120)
    appended = source.kind.append(source, newer)
    assert appended.tokens[: len(source.tokens)] == source.tokens
    assert set(appended.tokens) <= {*source.tokens, *newer.tokens}
    for number in range(len(source.tokens), len(appended.tokens)):
        assert appended.spell_token(appended.tokens[number]) == [number]
    assert kind == 'sentencepiece_bpe' or set(newer.tokens) <= set(appended.tokens)


def test_words_become_one_piece_and_all_else_stays(known: Subwords) -> None:
    words = [' carcinoconstriction', ' tumours', ' Ωmega']
    made = known.kind.with_words(known, words)
    assert made.tokens[: len(known.tokens)] == known.tokens
    if known.lowercase:
        words = words[:2]
    for word in words:
        assert [made.tokens[i] for i in made.pieces(word)] == [word.replace(' ', '▁')]
    for text in ('the kinase inhibitor', 'naproxen (p53)'):
        assert made.encode([text])[0].ids == known.encode([text])[0].ids
    whole = ['Fe(II)', '(R)-warfarin', '[3H]thymidine', '(R)-(S)', "5'-UTR", 'C++', 'NAD(P)H']
    assert [bare(word) for word in whole] == whole
    assert list(map(bare, ['(poly(A)).', '(P', '((x)', '(aspirin,', '...'])) == [
        'poly(A)',
        'P',
        'x',
        'aspirin',
        '',
    ]
    # Of a text words are taken without the punctuation that stands at them, and counted so.
    text = 'apoptosomes, (apoptosomes). apoptosomes; cholestyramine cholestyramine cholestyramine.'
    counts = known.kind.count_words([text], known.lowercase, known.reader)
    assert frequent(known, counts, 5, 3) == ['apoptosomes', 'cholestyramine']


def test_words_are_counted_where_a_pre_tokenizer_leaves_a_text_in_one(tmp_path: Path) -> None:
    texts = ['naproxen inhibits the kinase', 'carcinoma of the kinase', '']
    mentions = {'naproxen kinase': 3, 'carcinoma': 2}
    for name in ('gemma', 'pairs'):
        known = subwords.load(made_folder(name, tmp_path / name))
        found, _ = measure_pieces(known, texts)
        pieces = [token for encoding in known.encode(texts) for token in encoding.tokens]
        assert (found.words, found.pieces_per_word) == (8, pytest.approx(len(pieces) / 8, abs=1e-4))
        assert 0 < found.one_piece_words < 1
        assert measure(known, mentions).words == 3 * 2 + 2
    assert measure_pieces(known, ['☃naproxen ☃'])[0].one_piece_words >= 0


def test_an_added_token_scores_a_little_more_than_the_pieces_that_it_replaces() -> None:
    """The numbers are by hand: a + bc (-1 - 3) is below the lowest, and a + d (-1 - 2) is not."""
    scores = {'<s>': 0.0, '<pad>': 0.0, '</s>': 0.0, '<unk>': 0.0, '▁': -2.5, 'a': -1.0, 'b': -2.5, 'c': -2.5}
    scores |= {'d': -2.0, 'bc': -3.0, '<mask>': 0.0}
    kind = unigram.KIND
    source = kind.of(unigram.like_scored(kind.blank(False), ROLES, scores), ROLES)
    lattice = Lattice(scores_of(source))
    assert lattice.best('abc') == -4
    assert lattice.best('aé') == pytest.approx(-1 - 3 - 10), 'an unknown character: 10 below the lowest'
    made = kind.with_words(source, ['abcd', 'abc', 'ad'])
    found = scores_of(made)
    assert list(found)[-3:] == ['abcd', 'abc', 'ad'], 'in the order that they were given in'
    assert found['abc'] == -3.0, 'no token scores below the lowest'
    assert found['abcd'] == -3.0
    assert found['ad'] == pytest.approx(-1 - 2 + MARGIN)


def test_a_token_that_scores_the_lowest_may_win_where_the_source_cut_elsewhere() -> None:
    """The numbers are by hand: da + bc (-2.5 - 3) was the best, and d + abc (-2 - 3) is."""
    scores = {'<s>': 0.0, '<pad>': 0.0, '</s>': 0.0, '<unk>': 0.0, '▁': -2.5, 'a': -1.0, 'd': -2.0}
    scores |= {'bc': -3.0, 'da': -2.5, '<mask>': 0.0}
    kind = unigram.KIND
    source = kind.of(unigram.like_scored(kind.blank(False), ROLES, scores), ROLES)
    both = source, kind.with_words(source, ['abc'])
    cuts = [encoding.tokens for known in both for encoding in known.encode(['dabc', 'aabc'])]
    assert cuts == [['▁', 'da', 'bc'], ['▁', 'a', 'a', 'bc'], ['▁', 'd', 'abc'], ['▁', 'a', 'abc']]


def test_kinds_share_what_stands_for_the_same(known: Subwords) -> None:
    pieces = wordpiece.make([*DEBERTA[:2], '[CLS]', '[SEP]', '[MASK]', 'kinase', '##s', ',', 'zebra'], False)
    pairs = bytelevel.KIND.train(
        bytelevel.KIND.count_words(TEXTS, False),
        Vocab(tokenizer='bytelevel', size=400, lowercase=False, min_frequency=1),
        None,
    )
    for other, wanted in ((pieces, {'kinase': '▁kinase', '##s': 's', '[MASK]': known.roles.mask}),):
        shared = dict(zip(other.tokens, other.shared_with(known), strict=True))
        assert {token: known.tokens[shared[token]] for token in wanted} == wanted
        assert shared['zebra'] == -1
    back = {known.tokens[i]: pairs.tokens[j] for i, j in enumerate(known.shared_with(pairs)) if j >= 0}
    assert back['▁kinase'] == 'Ġkinase'
    spelled = known.spell_tokens(pairs, [pairs.tokens.index('Ġkinase'), pairs.tokens.index('in')])
    assert [''.join(known.tokens[i] for i in each) for each in spelled] == ['▁kinase', 'in']


BAD = {
    'a pre-tokenizer that nobody has': (
        lambda s: s.update(pre_tokenizer={'type': 'FixedLength', 'length': 5}),
        r'normalizer, pre_tokenizer or an added token cuts .* otherwise than its parts between spaces',
    ),
    'no end': (
        lambda s: s['post_processor'].update(single=s['post_processor']['single'][:2]),
        r'post_processor puts .* around a text; only',
    ),
    'dropout': (lambda s: s['model'].update(dropout=0.1), r'dropout of the tokenizer is 0\.1; only none'),
}


@pytest.mark.parametrize('flaw', BAD)
def test_what_cannot_be_kept_is_refused_in_one_line(tmp_path: Path, flaw: str) -> None:
    change, message = BAD[flaw]
    folder = made_folder('gemma', tmp_path / 'gemma')
    state = read_json(folder / 'tokenizer.json')
    change(state)
    write_json(folder / 'tokenizer.json', state)
    found = subwords.load(folder)
    with pytest.raises(InputError, match=message):
        found.kind.check(found, folder)


def test_too_small_a_vocabulary_names_the_key() -> None:
    for texts, size, error, message in (
        (TEXTS, 30, ConfigError, r'vocab\.size: 30 is less than the \d+ entries that single characters'),
        ([' \n'], 100, InputError, r'no words to train .* config\.corpus\.inputs'),
    ):
        for kind in SIZE:
            with pytest.raises(error, match=message):
                trained(kind, texts, size)


WHERE = {
    'tokenizer': {'As (Ab) x': 'As| (Ab)| x', '白血病の治療 x': '白血病の治療| x'},
    'unicode': {
        'As (Ab) x': 'As| (|Ab|)| x',
        '白血病の治療 x': '白血病|の|治療| x',
        'a😀b มะเร็งเม็ดเลือดขาว': 'a|😀|b| มะเร็ง|เม็ด|เลือด|ขาว',
    },
}


@pytest.mark.parametrize('rule', WORD_RULES)
def test_whole_words_begin_where_the_rule_says(tmp_path: Path, rule: str) -> None:
    """Texts are in single characters, and in the bytes of those that the vocabulary lacks."""
    texts = [text for text in WHERE['unicode']]
    characters = trained('unigram', texts, 100)
    single = characters.without(characters.kind.respellable(characters))
    fallen = subwords.load(save_like_gemma(trained('sentencepiece_bpe', ['A s b ( )'], 20), tmp_path, 64))
    for text, marked in WHERE[rule].items():
        for known in (single, fallen):
            (encoding,) = known.encode([text])
            starts = starts_of(rule, text, encoding)
            firsts = [begin for (begin, _), first in zip(encoding.offsets, starts, strict=True) if first]
            parts = [text[begin:end] for begin, end in zip(firsts, [*firsts[1:], None], strict=True)]
            assert [part.strip() for part in parts] == [part.strip() for part in marked.split('|')]


@pytest.fixture(scope='module')
def spm_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder as DeBERTa-v3's: SentencePiece's file alone, whose normaliser makes 2 of a superscript."""
    folder = tmp_path_factory.mktemp('spm')
    (folder / 'texts.txt').write_text('\n'.join(f'{text} 5 μg/m2 in 1⁄2' for text in TEXTS * 3), 'utf-8')
    ends = {'pad_id': 0, 'bos_id': 1, 'eos_id': 2, 'unk_id': 3}
    names = {
        f'{name}_piece': token for name, token in zip(('pad', 'unk', 'bos', 'eos'), DEBERTA[:4], strict=True)
    }
    sentencepiece.SentencePieceTrainer.train(
        input=str(folder / 'texts.txt'),
        model_prefix=str(folder / 'spm'),
        vocab_size=80,
        num_threads=1,
        minloglevel=2,
        **ends,
        **names,
    )
    write_json(folder / 'config.json', {'model_type': 'deberta-v2', 'max_position_embeddings': 64})
    write_json(folder / 'tokenizer_config.json', {'do_lower_case': False, 'vocab_type': 'spm'})
    return folder


def test_a_file_of_sentencepiece_is_read_as_sentencepiece_reads_it(spm_folder: Path, tmp_path: Path) -> None:
    """transformers 5.23 leaves out its normaliser: µ, ² and ½ are unknown there."""
    from transformers import AutoTokenizer

    theirs = sentencepiece.SentencePieceProcessor(model_file=str(spm_folder / 'spm.model'))
    known = subwords.load(spm_folder)
    known.kind.check(known, spm_folder)
    agreement.check_source(spm_folder, known)
    loaded = agreement.load_in_transformers(spm_folder)
    assert loaded.model_max_length == 64
    for text in (*NEWER, '5 µg/m² in ½', ' a  b\tc ', '', 'x' * 50):
        assert theirs.encode(text) == known.encode([text])[0].ids
        assert loaded(text, add_special_tokens=False)['input_ids'] == theirs.encode(text)
    alone = AutoTokenizer.from_pretrained(spm_folder)
    assert alone('m²')['input_ids'] != loaded('m²')['input_ids'], (
        'transformers keeps the normaliser now: drop the copy'
    )
    assert (known.roles, known.mask) == (DEBERTA, 80)
    known.save(tmp_path, 64)
    assert subwords.load(tmp_path).encode(['5 µg/m²'])[0].ids == theirs.encode('5 µg/m²')


SPM = {
    'damaged': (
        lambda folder: (folder / 'spm.model').write_bytes(b'nothing'),
        r'spm\.model: is not a model of Sente',
    ),
    'others': (
        lambda folder: write_json(folder / 'tokenizer_config.json', {'pad_token': '<pad>'}),
        r'spm\.model: lacks the special token <pad>, so a tokenizer\.json is needed; write one by transformers: ',
    ),
    'punctuation': (
        lambda folder: write_json(folder / 'tokenizer_config.json', {'split_by_punct': True}),
        r'tokenizer_config\.json: split_by_punct is true; only false is supported',
    ),
}


@pytest.mark.parametrize('flaw', SPM)
def test_a_file_of_sentencepiece_that_does_not_say_all_is_refused(
    spm_folder: Path, tmp_path: Path, flaw: str
) -> None:
    change, message = SPM[flaw]
    shutil.copytree(spm_folder, tmp_path / 'spm')
    change(tmp_path / 'spm')
    with pytest.raises(InputError, match=message):
        subwords.load(tmp_path / 'spm')


def test_rows_by_unicode_words_say_where_these_begin() -> None:
    """The tokens of WordPiece show where its own words begin, so only other words need an array."""
    known = wordpiece.make([*DEBERTA, *'白血病の治療', '##x', 'x'], False)
    documents = [[Document('d', '白血病の治療 x')]]
    plain, marked = (document_parts(documents, known, 64, rule)[0][0] for rule in WORD_RULES)
    assert plain.tokenizer_word_starts is None
    starts = [True, True, False, False, True, True, False, True, True]
    assert marked.tokenizer_word_starts.tolist() == starts


@pytest.mark.parametrize('kind', TOKENIZERS)
def test_rows_count_words_as_the_corpus_does(kind: str) -> None:
    """A letter of a script without blanks may have several pieces, and a piece several letters."""
    chinese = ['患者，男，45岁。患者服用IL-2 (p < 0.05)。', '白血病の治療は患者を。']
    known = trained(kind, [*chinese, *TEXTS], 400)
    for texts in (chinese, TEXTS):
        words, batches = sum(map(count_words, texts)), [[Document(text, text) for text in texts]]
        assert document_parts(batches, known, 16)[1]['words'] == words
        assert apart_parts(batches, known, Rows(layout='twice'))[1]['words'] == 2 * words
        assert measure_pieces(known, texts)[0].words_between_spaces == words
        assert pair_parts(batches, known, Rows(layout='two_segments'), 0)[1]['words'] == words


def test_a_collator_takes_whole_unicode_words(folder: Path, make: str) -> None:
    tokenizer = agreement.load_in_transformers(folder)
    text = 'the kinase naproxen-kinase (p53) tumour' * 3
    masked = {}
    for rule in WORD_RULES:
        (ids,), (labels,) = (
            bx.mask([text], tokenizer, '0.2', words=rule, rate=0.5)[name] for name in ('input_ids', 'labels')
        )
        (encoding,) = tokenizer(text).encodings
        words = np.cumsum(starts_of(rule, text, encoding))[1:-1]
        taken = labels[1:-1] >= 0
        for word in np.unique(words[taken]):
            assert taken[words == word].all()
        masked[rule] = taken.tolist()
    assert masked['tokenizer'] != masked['unicode']
    with pytest.raises(
        InputError, match='have no word_ids, and a piece does not show by itself whether it begins'
    ):
        bx.mask([{'input_ids': ids}], tokenizer, '0.2', words='unicode')


def test_new_tokens_with_a_line_break_are_read_as_they_were_written(tmp_path: Path) -> None:
    """Gemma's vocabulary has a line break for a token, and may have what stands for one in the file."""
    texts = [*TEXTS, r'\n \\ \n \\ \n \\ a\ a\ a\ ']
    folder = save_like_gemma(trained('sentencepiece_bpe', texts, 200), tmp_path / 'gemma', 128)
    known = subwords.load(folder)
    written = write_new_tokens(tmp_path, known, trained('unigram', ['another text'], 60))
    assert {'\n', '\t'} < {*written}
    assert any(r'\n' in token for token in written)
    assert any(token.endswith('\\') for token in written)
    assert read_new_tokens(tmp_path) == written
    lines = (tmp_path / 'new_tokens.txt').read_bytes().decode('utf-8').split('\n')
    assert lines[written.index('\n')] == r'\n'
    assert len(lines) == len(written) + 1
