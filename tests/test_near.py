"""Near duplicates: signatures estimate the Jaccard similarity of n-grams; banding finds what all pairs would find."""

import hashlib
import random
import re
import unicodedata
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bioptimus_jax.corpus import near
from bioptimus_jax.corpus.config import Near
from bioptimus_jax.corpus.near import HASHES, near_duplicates, ngram_hashes, rows_per_band, signatures
from bioptimus_jax.corpus.records import squeezed
from bioptimus_jax.corpus.sameness import comparable
from bioptimus_jax.errors import Stopped
from bioptimus_jax.text.words import COMBINING_MARKS, count_words, word_begins

FIVE = Near(threshold=0.8, words=5)
ABSTRACT = (
    'Torsade de pointes ventricular tachycardia during low dose intermittent dobutamine treatment in a patient '
    'with dilated cardiomyopathy and congestive heart failure.'
)


def random_text(chance: random.Random, words: int, vocabulary: int = 20_000) -> list[str]:
    return [f'w{chance.randrange(vocabulary)}' for _ in range(words)]


def pair_with_jaccard(chance: random.Random, jaccard: float, words: int) -> tuple[str, str]:
    """Two texts with n words each (n-grams: single words, all different) and this similarity."""
    common = round(2 * words * jaccard / (1 + jaccard))
    names = [f'w{number}' for number in chance.sample(range(10**9), 2 * words - common)]
    return ' '.join(names[:words]), ' '.join(names[:common] + names[words:])


def changed(chance: random.Random, words: list[str], places: int) -> list[str]:
    copy = list(words)
    for place in chance.sample(range(len(words)), places):
        copy[place] = f'x{chance.randrange(10**9)}'
    return copy


def naive_words(text: str) -> list[str]:
    decomposed = unicodedata.normalize('NFKD', text)
    letters = ''.join(c for c in decomposed if not unicodedata.combining(c)).casefold()
    found = re.findall(r'漢|[^\W_漢]+|.', letters.replace('漢', ' 漢 '), re.DOTALL)
    words, sign = [], ''
    for before, this, after in zip(['', *found], found, [*found[1:], '']):
        if this.isalnum():
            words.append(sign + this)
        alone = this in '+-' and before not in ('+', '-') and after not in ('+', '-')
        if alone and before.isalnum() and not after.isalnum():
            words[-1] += this
        sign = this if alone and not before.isalnum() and after[:1] in tuple('0123456789') else ''
    return words


def naive_ngrams(text: str, words: int) -> list[tuple[str, ...]]:
    found = naive_words(text)
    if not found:
        return [('text', text)]
    return [tuple(found[i : i + words]) for i in range(max(len(found) - words + 1, 1))]


def stored(folder: Path, parts: Sequence[np.ndarray]) -> list[Path]:
    folder.mkdir(exist_ok=True)
    paths = [folder / f'{i}.signatures' for i in range(len(parts))]
    for path, part in zip(paths, parts):
        part.tofile(path)
    return paths


def found_in(folder: Path, parts: Sequence[np.ndarray], settings: Near = FIVE, **options) -> np.ndarray:
    """`near_duplicates` of all rows of parts."""
    chosen = [np.arange(len(part)) for part in parts]
    return near_duplicates(stored(folder / 'parts', parts), chosen, settings, folder, **options)


def shares(rows: np.ndarray) -> np.ndarray:
    """Share of equal values of every pair, one pair after the other; 0 unless the second is earlier."""
    result = np.zeros((len(rows), len(rows)))
    for i in range(len(rows)):
        result[i, :i] = (rows[:i] == rows[i]).mean(axis=1)
    return result


@pytest.fixture(scope='module')
def mixture() -> np.ndarray:
    """Signatures of 600 texts: originals, and copies with 0 to 12 of 150 words changed, mostly few, in random order."""
    chance = random.Random(5)
    originals = [random_text(chance, 150) for _ in range(200)]
    copies = [changed(chance, chance.choice(originals), int(13 * chance.random() ** 2)) for _ in range(400)]
    texts = [' '.join(words) for words in originals + copies]
    chance.shuffle(texts)
    return signatures(texts, FIVE)


def test_signatures_stay_what_they_are():
    """They are stored beside a corpus. If an update of rensa changes them, raise its bound and make corpora anew."""
    rows = signatures([ABSTRACT, 'β-catenin', ''], FIVE)
    assert (rows.dtype, rows.shape) == (np.uint32, (3, HASHES))
    assert hashlib.sha256(rows.astype('<u4').tobytes()).hexdigest()[:16] == '1c5aeb268c887f92'


def test_signatures_do_not_depend_on_the_division_into_calls(monkeypatch):
    chance = random.Random(1)
    texts = [' '.join(random_text(chance, chance.randrange(40))) for _ in range(50)]
    together = signatures(texts, FIVE)
    assert np.array_equal(together, np.concatenate([signatures([text], FIVE) for text in texts]))
    monkeypatch.setattr(near, 'LETTERS_PER_BLOCK', 300)
    assert np.array_equal(together, signatures(texts, FIVE))
    assert signatures([], FIVE).shape == (0, HASHES)


@pytest.mark.parametrize(
    ('one', 'other'),
    [
        (ABSTRACT, ABSTRACT.upper().replace(' ', '\n - ').replace('.', '')),
        ('Naïve café, ﬁve µg of ß', 'naive cafe five μg of SS'),
        ('A_b (10.5 m²)', 'a B 10 5 m2'),
        ('Β-Catenin', '\tβ catenin '),
    ],
)
def test_case_punctuation_and_accents_do_not_count(one, other):
    assert np.array_equal(*signatures([one, other], FIVE))


@pytest.mark.parametrize(
    ('one', 'other'),
    [
        ('', '...'),
        ('***', '...'),
        ('one word', 'one'),
        ('one two', 'two one'),
        ('ab c', 'a bc'),
        ('ER+ PR- HER2-', 'ER- PR+ HER2+'),
        ('ER+, −5', 'ER–, 5'),
        ('2.5 mg', '25 mg'),
        ('18 5 mg/dl pp than', '17 6 mg/dl pp than'),  # the same sum of letters by place
    ],
)
def test_other_short_texts_are_other_texts(one, other):
    first, second = signatures([one, other], FIVE)
    assert not (first == second).any()


@given(
    st.lists(st.text('aAbé1\u0301 .-+_αΣςﬁ²漢\n', max_size=30), min_size=1, max_size=8),
    st.integers(1, 4),
)
def test_ngrams_are_those_of_a_plain_implementation(texts, words):
    hashes, bounds = ngram_hashes(texts, words)
    expected = [naive_ngrams(text, words) for text in texts]
    assert np.diff(bounds.astype(int)).tolist() == [len(ngrams) for ngrams in expected]
    together = [ngram for ngrams in expected for ngram in ngrams]
    # Equal n-grams have equal hashes, others have others.
    assert len({*zip(together, hashes.tolist())}) == len({*together}) == len({*hashes.tolist()})


@given(st.lists(st.text('aAé.,;5 -−\n\0', max_size=12).map(squeezed), max_size=6))
def test_what_is_equal_of_equal_texts(texts):
    """One text after the other, as the words say it."""
    expected = []
    for text in texts:
        plain = text.replace('\0', ' ').replace('\n', ' ').replace('é', 'e').replace('−', '-').lower()
        expected.append(re.sub('[.,;](?=[ ]|$)', '', plain))
    assert [found.decode() for found in comparable(texts)] == expected


SCRIPTS = {
    'Han': '患者男性高血压病史十年入院前三天出现胸痛伴出汗心电图提示急性心肌梗死给予阿司匹林治疗后好转出院',
    'kana': 'かんじゃはろくじゅうさいのだんせいできょうつうをうったえてきゅうしんしたしんでんずでは',
    'Thai': 'ผู้ป่วยชายอายุหกสิบปีมาด้วยอาการเจ็บหน้าอกร่วมกับเหงื่อออกคลื่นไฟฟ้าหัวใจผิดปกติ',
    'Hindi': 'साठ वर्षीय पुरुष रोगी को सीने में दर्द और पसीना आने की शिकायत के साथ भर्ती किया गया था',
}


@pytest.mark.parametrize('script', SCRIPTS)
def test_one_word_of_any_script_is_one_word(script):
    """Word by word the same n-grams as of Latin words in their place; each letter of Han, kana, Thai is a word."""
    text = SCRIPTS[script]
    words = text.split() if script == 'Hindi' else re.findall(f'.[{COMBINING_MARKS}]*', text)
    assert count_words(text) == len(words)
    hashes, bounds = ngram_hashes([text], 5)
    assert len(hashes) == bounds[1] == len(words) - 4
    other = (' ' if script == 'Hindi' else '').join([*words[:-1], words[0]])
    assert len({*hashes.tolist()} & {*ngram_hashes([other], 5)[0].tolist()}) == len(hashes) - 1


@pytest.mark.parametrize(
    ('text', 'words'),
    [
        ('', 0),
        ('IL-2 - and\nµ-opioid, naïve', 5),
        ('患者，男，45岁。', 5),
        ('IL-2は重要 (p < 0.05)', 7),
        ('。。。', 0 + 1),
        ('한국어 문장', 2),
        ('ཀ་ཁ་ག', 3),
    ],
)
def test_words_of_mixed_scripts(text, words):
    assert count_words(text) == words


@given(st.text('aé1- \n.µ≥д', max_size=40))
def test_words_of_scripts_with_blanks_are_between_blanks(text):
    assert count_words(squeezed(text)) == len(text.split())


@given(st.text('aé1- \n.µд患は，ก้', max_size=40))
def test_as_many_words_begin_in_a_text_as_it_has(text):
    text = squeezed(text)
    begins = word_begins(text)
    assert len(begins) == count_words(text)
    assert not any(text[place].isspace() for place in begins)


def test_ngrams_of_real_abstracts_do_not_collide(data):
    from bioptimus_jax.corpus.config import Corpus
    from bioptimus_jax.corpus.readers import read_inputs

    inputs = Corpus(inputs=(str(data / 'pubmed' / 'abstracts-00000-of-00004.jsonl.gz'),))
    texts = [document.text for document, _ in zip(read_inputs(inputs), range(1500))]
    hashes, bounds = ngram_hashes(texts, 5)
    expected = [ngram for text in texts for ngram in naive_ngrams(text, 5)]
    assert len(hashes) == len(expected) == bounds[-1]
    assert len({*hashes.tolist()}) == len({*expected})


@pytest.mark.parametrize('words', [8, 60, 250])
@pytest.mark.parametrize('jaccard', [0.5, 0.8, 0.95])
def test_equal_values_estimate_the_jaccard_similarity(jaccard, words):
    chance = random.Random(words)
    pairs = [pair_with_jaccard(chance, jaccard, words) for _ in range(300)]
    sets = [(set(a.split()), set(b.split())) for a, b in pairs]
    exact = np.array([len(a & b) / len(a | b) for a, b in sets])
    rows = signatures([text for pair in pairs for text in pair], Near(0.8, 1))
    errors = (rows[0::2] == rows[1::2]).mean(axis=1) - exact
    spread = np.sqrt((exact * (1 - exact)).mean() / HASHES)  # of independent hashes
    assert abs(errors.mean()) <= 4 * spread / np.sqrt(len(pairs))
    assert errors.std() <= 1.15 * spread


def test_one_word_in_200_changed_is_near_and_half_a_text_is_not(tmp_path):
    chance = random.Random(2)
    text, other = random_text(chance, 200), random_text(chance, 200)
    texts = [
        text,
        changed(chance, text, 1),  # 191 of 201 n-grams are common
        text[:100] + other[:100],
        other,
        ['short', 'text'],
        ['Short', 'text!'],
        ['short'],
        [],
        [''],
    ]
    rows = signatures([' '.join(words) for words in texts], FIVE)
    marked = found_in(tmp_path, [rows])
    assert marked.tolist() == [False, True, False, False, False, True, False, False, True]


@pytest.mark.parametrize('threshold', [0.6, 0.8, 0.9])
def test_banding_finds_what_all_pairs_find(tmp_path, mixture, threshold):
    similar = shares(mixture).max(axis=1)
    marked = found_in(tmp_path, [mixture], Near(threshold, 5))
    assert not marked[similar < threshold].any()
    assert 100 < (similar >= threshold).sum() < 500
    assert marked[similar >= threshold].mean() >= 0.97
    assert marked[similar >= threshold + 0.03].mean() >= 0.99


def test_the_result_does_not_depend_on_parts_or_memory(tmp_path, mixture, monkeypatch):
    expected = found_in(tmp_path, [mixture])
    none = mixture[:0]
    for cuts in ([1, 2, 300], [100, 101, 550, 599]):
        assert np.array_equal(found_in(tmp_path, [none, *np.split(mixture, cuts), none]), expected)
    for memory in (1000, 10_000):
        assert np.array_equal(found_in(tmp_path, [mixture], memory_bytes=memory), expected)
    monkeypatch.setattr(near, 'ROWS_PER_READ', 17)
    monkeypatch.setattr(near, 'HASHES_PER_READ', 13)
    assert np.array_equal(found_in(tmp_path, np.split(mixture, [50]), memory_bytes=10_000), expected)


def test_small_memory_reads_small_ranges(tmp_path, mixture, monkeypatch):
    sizes = []

    def watched(file, number, ranges):
        hashes, numbers = in_range(file, number, ranges)
        sizes.append(len(hashes))
        return hashes, numbers

    in_range = near._in_range
    monkeypatch.setattr(near, '_in_range', watched)
    found_in(tmp_path, [mixture], memory_bytes=100 * near.BYTES_PER_HASH)
    assert len(sizes) == 6 * 20
    assert sum(sizes) == 600 * 20
    assert max(sizes) < 200


def test_only_chosen_documents_count_and_the_first_stays(tmp_path):
    chance = random.Random(3)
    one, other = (random_text(chance, 100) for _ in range(2))
    rows = signatures([' '.join(words) for words in (one, other, one, one, other, other)], FIVE)
    parts = stored(tmp_path / 'parts', [rows[:3], rows[3:]])
    marked = near_duplicates(parts, [np.array([0, 1]), np.array([0, 2])], FIVE, tmp_path)
    assert marked.tolist() == [False, False, True, True]
    marked = near_duplicates(parts, [np.array([1]), np.array([0, 1])], FIVE, tmp_path)
    assert marked.tolist() == [False, False, True]
    marked = near_duplicates(parts, [np.array([], int), np.array([1, 2])], FIVE, tmp_path)
    assert marked.tolist() == [False, True]


def test_nothing_is_near_where_nothing_is_sought(tmp_path, mixture):
    assert not found_in(tmp_path, [mixture], Near(0, 5)).any()
    assert len(found_in(tmp_path, [])) == 0
    assert len(found_in(tmp_path, [mixture[:0]])) == 0


def test_copies_take_linear_time(tmp_path, monkeypatch):
    """The same holds where they agree in a band and are not near, so that no comparison is saved."""
    chance = np.random.default_rng(4)
    rows = chance.integers(0, 2**32, (2000, HASHES), np.uint32)
    rows[:, :12] = 7  # two bands of twenty
    read = []
    signatures_of = near._Documents.signatures
    monkeypatch.setattr(
        near._Documents, 'signatures', lambda self, n: read.append(len(n)) or signatures_of(self, n)
    )
    assert not found_in(tmp_path, [rows]).any()
    assert sum(read) <= 2000 + 2 * 2 * 2 * 2000
    read.clear()
    assert found_in(tmp_path, [np.repeat(rows[:1], 2000, axis=0)]).tolist() == [False] + [True] * 1999
    assert sum(read) <= 2000 + 2 * 2000


def test_a_document_is_compared_with_those_left_out_too(tmp_path):
    """The second is near the first, the third near the second alone: 100, 100 and 80 of 120 values are equal.

    In every band where the third agrees with the second it agrees with the first too.
    """
    rows = np.random.default_rng(6).integers(0, 2**31, (1, HASHES), np.uint32).repeat(3, axis=0)
    bands = rows.reshape(3, 20, 6)
    bands[1:, :10, :2] += 1
    bands[2, :10, 2:4] += 1
    assert found_in(tmp_path, [rows]).tolist() == [False, True, True]
    assert found_in(tmp_path, [rows[::2]]).tolist() == [False, False]


@pytest.mark.parametrize(
    ('threshold', 'rows'), [(1.0, 120), (0.9, 10), (0.8, 6), (0.7, 4), (0.5, 3), (0.01, 1)]
)
def test_bands_suit_the_threshold(threshold, rows):
    assert rows_per_band(threshold) == rows


def test_files_are_hidden_and_leave_with_the_run(tmp_path, mixture):
    (tmp_path / '.near-7.tmp').write_text('of a run that was killed')
    (tmp_path / 'kept').write_text('of somebody else')
    seen, done = set(), []

    def look():
        seen.update(path.name for path in tmp_path.iterdir())

    found_in(tmp_path, [mixture], check_stop=look, advance=done.append)
    assert all(name.startswith('.') for name in seen - {'kept', 'parts'})
    assert len(seen) == 22
    assert sum(done) == pytest.approx(len(mixture))
    assert {path.name for path in tmp_path.iterdir()} == {'kept', 'parts'}

    def stop():
        look()
        if len(done) > 25:
            raise Stopped('for the test')

    with pytest.raises(Stopped):
        found_in(tmp_path, [mixture], check_stop=stop, advance=done.append)
    assert {path.name for path in tmp_path.iterdir()} == {'kept', 'parts'}
