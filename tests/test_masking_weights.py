"""Masking decides which units: weights by token or word, from a file, words never masked; a rate by row."""

import dataclasses

import jax
import numpy as np
import pytest

from bioptimus_jax.errors import InputError
from bioptimus_jax.pretrain import units
from bioptimus_jax.pretrain.config import Phase, Pretrain
from bioptimus_jax.pretrain.masking import Masker, MaskingParams, row_keys, seed_key
from bioptimus_jax.pretrain.unit_weights import TokenWeights, WordWeights
from bioptimus_jax.pretrain.units import Strategy
from bioptimus_jax.tokenizer.kinds.wordpiece import SPECIAL_TOKENS, make

WORDS = ['the', 'of', 'dose', 'nal', 'thera', 'breast', 'cancer', 'lung', 'virus', 'cell']
TAILS = ['##ox', '##one', '##py', '##ra']
SUBWORDS = make([*SPECIAL_TOKENS, *WORDS, *TAILS], True)
ID = {token: number for number, token in enumerate(SUBWORDS.tokens)}
TEXTS = [
    'the',
    'of',
    'dose',
    'nal ##ox ##one',
    'thera ##py',
    'the ##ra ##py',
    'breast',
    'cancer',
    'lung',
    'virus',
]
ROWS, LENGTH, LONGEST = 300, 100, 6


def whole_words(words_L, draws_L):
    return words_L


def joined(words_L, draws_L):
    return words_L & (draws_L >= 0.5)


def rows_of_words():
    """Rows of the TEXTS at random between [CLS] and [SEP], and of every piece the number of its word's text or -1."""
    rng, spelled = np.random.default_rng(0), [[ID[piece] for piece in text.split()] for text in TEXTS]
    tokens, texts = np.zeros((ROWS, LENGTH), np.int32), np.full((ROWS, LENGTH), -1)
    for row in range(ROWS):
        at, end = 1, LENGTH - 1 - int(rng.integers(0, 20))
        tokens[row, 0] = ID['[CLS]']
        while at + len(pieces := spelled[n := int(rng.integers(len(TEXTS)))]) <= end:
            tokens[row, at : at + len(pieces)], texts[row, at : at + len(pieces)] = pieces, n
            at += len(pieces)
        tokens[row, at] = ID['[SEP]']
    return tokens, texts


row_tokens, text_of = rows_of_words()
maskable = text_of >= 0


def taken_by(monkeypatch, strategy, rate=0.15, seed=0, beside='tokens', phase='own'):
    """True where a piece is masked, and the rate of every row, in a run that also has another phase."""
    monkeypatch.setitem(units.MASKINGS, 'own', strategy)
    phases = {'own': Phase('own', rate), 'beside': Phase(beside, rate)}
    masker = Masker.of(SUBWORDS, Pretrain(max_word_pieces=LONGEST), phases.values(), LENGTH)
    starts, keys = SUBWORDS.begins_V[row_tokens], row_keys(seed_key(seed), 0, ROWS)
    setting = MaskingParams.of(phases[phase], LONGEST)
    masked = jax.jit(masker.mask)(row_tokens, starts, maskable, setting, keys)
    weights, slots = np.asarray(masked.weights_M) > 0, np.asarray(masked.slots_M)
    taken = np.zeros(row_tokens.shape, bool)
    taken[np.nonzero(weights)[0], slots[weights]] = True
    assert taken.sum() == weights.sum()
    assert (taken[np.asarray(masked.inputs_L) != row_tokens]).all(), 'what is corrupted is predicted'
    return taken, np.asarray(masker.row_rates(setting, keys))


def share_by_text(taken):
    return {text: taken[text_of == n].mean() for n, text in enumerate(TEXTS)}


def test_stop_words_are_never_masked_and_the_rate_is_that_of_all_pieces(monkeypatch):
    strategy = Strategy(whole_words, words=1, weights=WordWeights({'the': 0, 'of': 0}))
    taken, _ = taken_by(monkeypatch, strategy)
    shares = share_by_text(taken)
    assert shares['the'] == shares['of'] == 0
    assert shares['the ##ra ##py'] > 0.15, 'a word that begins as a stop word does is another word'
    assert taken[maskable].mean() == pytest.approx(0.15, rel=0.02)
    others = [share for text, share in shares.items() if share]
    assert min(others) > 0.8 * max(others), 'all others alike'


def test_no_span_crosses_a_word_that_is_never_masked(monkeypatch):
    strategy = Strategy(joined, words=10, weights=WordWeights({'the': 0, 'of': 0}))
    taken, _ = taken_by(monkeypatch, strategy, 0.2)
    shares = share_by_text(taken)
    assert shares['the'] == shares['of'] == 0
    assert taken[maskable].mean() == pytest.approx(0.2, rel=0.03)
    word_of = SUBWORDS.begins_V[row_tokens].cumsum(axis=1)
    torn = (taken[:, 1:] != taken[:, :-1]) & (word_of[:, 1:] == word_of[:, :-1]) & maskable[:, 1:]
    assert not torn.any(), 'whole words'


def test_weights_by_token_come_from_a_file(monkeypatch, tmp_path):
    file = tmp_path / 'weights.tsv'
    file.write_text('dose\t4\n##one\t0\nlung\t0\nabsent\t9\n\n')
    strategy = Strategy(whole_words, pieces=1, weights=TokenWeights(file=file))
    strategy = dataclasses.replace(strategy, unit_starts=lambda words_L, draws_L: words_L | True)
    taken, _ = taken_by(monkeypatch, strategy, 0.1)
    assert taken[maskable].mean() == pytest.approx(0.1, rel=0.02)
    shares = {
        token: taken[row_tokens == ID[token]].mean() for token in ('dose', '##one', 'lung', 'virus', 'nal')
    }
    assert shares['##one'] == shares['lung'] == 0
    assert shares['virus'] == pytest.approx(shares['nal'], rel=0.15)
    # Waiting times are exponential: 1 - taken is to the power of the weight.
    assert np.log1p(-shares['dose']) / np.log1p(-shares['virus']) == pytest.approx(4, rel=0.15)


@pytest.mark.parametrize('long_ones', [20, 0.05])
def test_the_rate_is_the_one_asked_for_whatever_the_weights(monkeypatch, long_ones):
    weights = WordWeights({'naloxone': long_ones, 'therapy': long_ones})
    taken, _ = taken_by(monkeypatch, Strategy(whole_words, words=1, weights=weights), 0.15)
    shares = share_by_text(taken)
    assert (shares['nal ##ox ##one'] > 3 * shares['dose']) == (long_ones > 1)
    assert taken[maskable].mean() == pytest.approx(0.15, rel=0.03)


def test_entities_of_several_words_come_first(monkeypatch):
    strategy = Strategy(whole_words, words=1, weights=WordWeights({'breast cancer': 1e6, 'of': 0}))
    taken, _ = taken_by(monkeypatch, strategy, 0.15)
    breast = (row_tokens[:, :-1] == ID['breast']) & (row_tokens[:, 1:] == ID['cancer'])
    rows, at = np.nonzero(breast)
    both = taken[rows, at] & taken[rows, at + 1]
    alone = (row_tokens[:, :-1] == ID['breast']) & ~breast
    assert both.mean() > 0.95
    assert taken[:, :-1][alone].mean() < 0.25
    assert taken[maskable].mean() == pytest.approx(0.15, rel=0.03)


def test_a_strategy_that_weighs_leaves_the_masks_of_others_as_they_are(monkeypatch):
    weighs = Strategy(whole_words, words=1, weights=WordWeights({'the': 0}), rate=lambda rate, draw: draw)
    alone, _ = taken_by(monkeypatch, Strategy(whole_words, words=1), beside='words', phase='beside')
    for phase in ('tokens', 'words'):
        beside, _ = taken_by(monkeypatch, weighs, beside=phase, phase='beside')
        assert (beside == alone).all() == (phase == 'words')
    even = Strategy(whole_words, words=1, weights=WordWeights({'dose': 1}))
    assert (taken_by(monkeypatch, even)[0] == alone).all(), 'equal weights are no weights'


def test_each_row_has_a_rate_of_its_own_and_slots_for_it(monkeypatch):
    strategy = Strategy(whole_words, words=1, rate=lambda rate, draw: draw)
    phase = Phase('own', 0.15)
    taken, rates = taken_by(monkeypatch, strategy)
    realised = taken.sum(axis=1) / maskable.sum(axis=1)
    assert 0 <= rates.min() < 0.05
    assert 0.95 < rates.max() < 1
    np.testing.assert_allclose(realised, rates, atol=0.08)
    assert realised.mean() == pytest.approx(rates.mean(), rel=0.02)
    assert units.row_rates('own', phase.rates) == pytest.approx((0.5, 1.0), abs=1e-3)
    assert Masker.of(SUBWORDS, Pretrain(), [phase], LENGTH).slots == LENGTH


WRONG = {
    None: 'cannot be read',
    'dose\tmuch': r"line 1 has the weight 'much'; after the tab write 0",
    'dose\t1\nlung\t-1': r"line 2 has the weight '-1'",
    'lung\tnan': 'line 1',
}


def test_weights_that_are_malformed_or_missing_or_of_no_token_are_refused(monkeypatch, tmp_path):
    file = tmp_path / 'weights.tsv'
    monkeypatch.setitem(units.MASKINGS, 'own', Strategy(whole_words, words=1, weights=WordWeights(file=file)))

    def read(lines):
        file.unlink(missing_ok=True) if lines is None else file.write_text(lines)
        units.weight_files(['own'])

    absent = r'none of its 1 tokens \(absent \.\.\.\) is in the vocabulary'
    for act, given, error, message in (
        *((read, lines, InputError, message) for lines, message in WRONG.items()),
        (TokenWeights({'absent': 0}).of, SUBWORDS, InputError, absent),
        (TokenWeights({'dose': -1}).of, SUBWORDS, ValueError, 'weight -1'),
    ):
        with pytest.raises(error, match=message):
            act(given)


def test_words_are_weighed_alike_in_numpy_and_on_a_device():
    weigh = WordWeights({'the': 0, 'breast cancer': 5, 'naloxone': 3, 'nothing like this': 2, 'zzz': 1}).of(
        SUBWORDS
    )
    words = SUBWORDS.begins_V[row_tokens]
    own = np.stack([weigh(tokens_L, words_L, np) for tokens_L, words_L in zip(row_tokens, words)])
    on_device = jax.jit(jax.vmap(lambda tokens_L, words_L: weigh(tokens_L, words_L, jax.numpy)))
    np.testing.assert_array_equal(own, on_device(row_tokens, words))
    assert set(own[text_of == TEXTS.index('the')]) == {0}
    assert set(own[text_of == TEXTS.index('the ##ra ##py')]) == {1}
    assert set(own[text_of == TEXTS.index('nal ##ox ##one')]) == {3}
    assert set(own[text_of == TEXTS.index('cancer')]) == {1, 5}
