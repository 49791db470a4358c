"""The gradient fit of new rows alone: lessons by hand, the true row needs no fit, a wrong one gets nearer."""

import numpy as np
from toy_source import OLD, TABLE, WORD, built, ids, make_run, make_source
from toy_spelling import FOUND, NEW, SPELLING

from bioptimus_jax.surgery import distil

MASK = OLD.index('[MASK]')


def test_the_papers_example_in_both_spellings():
    made = make_source(OLD)
    sentences = [f'the {WORD} of drugs', 'the nstrics', 'of', 'the ββ of']
    # The last is one [UNK] of the source, which spells nothing.
    spans = {0: {0: [(4, 23)]}, 1: {1: [(5, 8)], 2: [(4, 11)]}, 3: {3: [(4, 6)]}}
    taught = distil.lessons(made, sentences, spans)
    pieces = [2, *ids('the'), *range(5, 11), *ids('of', 'drug', '##s'), 3]
    assert taught.source[0, : taught.source_length[0]].tolist() == pieces
    own = [2, *ids('the'), MASK, *ids('of', 'drug', '##s'), 3]
    assert taught.own[0, : taught.own_length[0]].tolist() == own
    assert taught.in_source[0, :7].tolist() == [0, 1, -1, 8, 9, 10, 11]
    assert (taught.in_source[0, 7:] == -1).all()
    assert taught.slot.tolist() == [2, 2]
    assert taught.target.tolist() == [
        0,
        2,
    ]  # the other begins inside the piece nst: no piece to put in its place


def test_long_contexts_are_cut_around_the_token():
    made = make_source(OLD, max_positions=8)
    sentence = 'the of x the of drugs of the of x the of'
    begin = sentence.index('drugs')
    taught = distil.lessons(made, [sentence], {0: {0: [(begin, begin + 5)]}})
    assert taught.source.tolist() == [[2, *ids('the', 'of', 'drug', '##s', 'of', 'the'), 3]]
    assert taught.own.tolist() == [[2, *ids('the', 'of'), MASK, *ids('of', 'the'), 3, 0]]


def test_a_true_row_stays_and_a_wrong_one_gets_nearer():
    made = make_source(OLD, layers=2)
    sentences = ['the drug of x', 'drug', 'the naive of the drug', 'x of drug the', 'na - drug of']
    spans = {n: {0: [(s.index('drug'), s.index('drug') + 4)]} for n, s in enumerate(sentences)}
    taught = distil.lessons(made, sentences, spans)
    true = made.table()[ids('drug')].astype(np.float64)
    two = np.concatenate([true, true * 0 + 9])  # the second has no context
    kept = distil.refine(made, two, taught, 20, 0)
    # Rounding alone has a gradient, which Adam takes for one: less than its first step comes of twenty.
    np.testing.assert_allclose(kept[0], true[0], atol=distil.RATE * np.abs(made.table()).mean())
    np.testing.assert_array_equal(kept[1], two[1])
    wrong = true + np.random.default_rng(0).normal(size=true.shape) * 0.2
    nearer = distil.refine(made, wrong, taught, 300, 0)
    assert np.linalg.norm(nearer - true) < 0.5 * np.linalg.norm(wrong - true)
    np.testing.assert_array_equal(kept, distil.refine(made, two, taught, 20, 0))
    np.testing.assert_array_equal(distil.refine(made, wrong, taught, 0, 0), wrong)


def test_the_stage_knows_it(tmp_path):
    rows = {}
    for steps in (0, 3):
        changes = {'surgery__scale': 'rescaled', 'surgery__fit_steps': steps}
        rows[steps], *_ = built(make_run(tmp_path / str(steps), make_source(SPELLING), NEW, FOUND, **changes))
    changed = np.abs(rows[3][TABLE] - rows[0][TABLE]).max(axis=1) > 0
    assert np.flatnonzero(changed).tolist() == [NEW.index(WORD), NEW.index('lymphoma')]
