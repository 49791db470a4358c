"""Is a new vocabulary worth it? Numbers by hand, from the tokenizers themselves, and from pairs of models."""

import dataclasses
import json
import random

import numpy as np
import pytest
from toy_commands import call, document
from toy_sets import save_encoder
from toy_start import WORDS, save_source, texts_of

from bioptimus_jax.errors import InputError
from bioptimus_jax.finetuning.entities.files import write_predictions
from bioptimus_jax.finetuning.predictions import Predicted
from bioptimus_jax.lab.expected import Expected, Observed, expect, left_out, observe
from bioptimus_jax.scoring.score import score
from bioptimus_jax.scoring.student import half_interval
from bioptimus_jax.start.ways import APPEND, KEEP, REPLACE, SEEN, decide, ways, worth
from bioptimus_jax.storage.files import read_json, write_json
from bioptimus_jax.tokenizer.subwords import load

OTHER = ('eee', 'ttt', 'ccc')  # no vocabulary has more of them than letters


@pytest.fixture(scope='module')
def source(tmp_path_factory):
    return save_source(tmp_path_factory.mktemp('source'))


@pytest.fixture(scope='module')
def texts(tmp_path_factory):
    return texts_of(tmp_path_factory.mktemp('texts'))


@pytest.fixture(scope='module')
def found(source, texts):
    lines = texts.read_text().splitlines()
    documents = [json.loads(line)['abstract'] + ' q' * (at % 40) for at, line in enumerate(lines)]
    return documents, ways(load(source), documents, 100)


def save_set(folder, name, mentions):
    """Sentences of three words, of which the second is a mention; test has others, which nobody may look at."""
    for split, words in (('train', mentions), ('devel', mentions[:2]), ('test', ['zzz'])):
        lines = (f'the\tO\n{word}\tB-Drug\nof\tO\n\n' for word in words)
        (folder / name).mkdir(parents=True, exist_ok=True)
        (folder / name / f'{split}.tsv').write_text(''.join(lines))
    return folder


def save_marked(folder, name, word):
    """A text a split, with two mentions that end within words of it."""
    for split in ('train', 'devel', 'test'):
        (folder / name / split).mkdir(parents=True)
        (folder / name / split / 'a.txt').write_text(f'{word}x of {word}x .')
        marks = (f'T{n}\tDrug {at} {at + len(word)}\t{word}\n' for n, at in ((1, 0), (2, len(word) + 5)))
        (folder / name / split / 'a.ann').write_text(''.join(marks))


def asked(source, texts, *more):
    return 'advise', f'--source={source}', f'--texts={texts}', '--size=100', *more


def test_what_each_way_does_to_unseen_texts_is_what_its_tokenizer_does(found):
    documents, measured = found
    assert list(measured) == [KEEP, APPEND, REPLACE]
    kept, unseen = measured[KEEP], documents[1::2]
    assert kept.new == 0
    assert kept.pieces_per_word == pytest.approx(sum(len(d.replace(' ', '')) for d in unseen) / kept.words)
    for name in (APPEND, REPLACE):
        way = measured[name]
        pieces = [len(e.ids) for e in way.subwords.encode(unseen)]
        assert way.pieces_D.tolist() == pieces
        assert way.saved(kept) == pytest.approx(1 - sum(pieces) / kept.pieces_D.sum())
        low, high = way.saved_interval(kept)
        assert low < way.saved(kept) < high
        assert high - low < 0.02
    source = kept.subwords.tokens
    assert measured[APPEND].subwords.tokens[: len(source)] == source
    assert measured[APPEND].new == len(measured[APPEND].subwords.tokens) - len(source)
    assert measured[APPEND].new == measured[REPLACE].new


def test_a_new_vocabulary_is_worth_it_where_it_saves_pieces_and_its_tokens_are_seen(found):
    _, measured = found
    kept, way = measured[KEEP], measured[REPLACE]
    assert worth(way, kept, SEEN * way.new)[0]
    worth_it, why = worth(way, kept, SEEN * way.new - 1)
    assert not worth_it
    assert f'{way.new} new tokens would be seen {SEEN} times each: too few' in why
    assert worth(kept, kept, 1e9) == (False, 'a new one saves 0% of the pieces, fewer than 5%')
    # As measured with MiniLM: a new vocabulary that saves 16 % pays after 1.8 million words.
    like = dataclasses.replace(kept, new=100, pieces_D=np.array([840]))
    own = dataclasses.replace(kept, pieces_D=np.array([1000]), words=800)
    assert worth(like, own, 1.25 * 1_800_000) == (True, 'a new one saves 16% of the pieces')
    worth_it, why = worth(like, own, 1.25 * 600_000)
    assert not worth_it
    assert why.startswith(
        "a new one saves 16% of the pieces, but the source's own scored 2.18 F1 higher after 600,000"
    )
    assert why.endswith('these hours read 600,000')
    assert worth(dataclasses.replace(like, pieces_D=np.array([700])), own, 1.25 * 600_000)[0]


def test_of_two_new_vocabularies_the_one_that_reads_more_text_for_the_same_work(found):
    _, measured = found
    assert decide(measured, {KEEP: 1, APPEND: 1.2, REPLACE: 1.1}, 1e9)[0] == APPEND
    assert decide(measured, {KEEP: 1, APPEND: 1.1, REPLACE: 1.1}, 1e9)[0] == REPLACE
    assert decide(measured, {KEEP: 1, APPEND: 1.2, REPLACE: 1.1}, 10)[0] == KEEP
    # One that needs more pieces than the source's own does not hide the other, however small it is.
    needing_more = {**measured, REPLACE: dataclasses.replace(measured[KEEP], new=20)}
    chosen, why = decide(needing_more, {KEEP: 1, APPEND: 1.1, REPLACE: 1.2}, 1e9)
    assert chosen == APPEND
    assert why.startswith('a new one saves 8')
    assert decide(needing_more, {KEEP: 1, APPEND: 1.1, REPLACE: 1.2}, 10)[1].startswith('a new one saves 8')
    for asked in (KEEP, APPEND, REPLACE):
        chosen, why = decide(measured, {KEEP: 1, APPEND: 1.2, REPLACE: 1.1}, 10, asked)
        assert chosen == asked
        assert why.startswith('as you asked; a new one saves 8')


def test_advice_on_texts_and_sets(source, texts, tmp_path, capsys):
    sets = save_set(tmp_path / 'sets', 'drugs', [WORDS[0], WORDS[1], *OTHER[:2]])
    save_marked(sets, 'marked', WORDS[0])
    said = document(capsys, *asked(source, texts, f'--sets={sets}'))
    assert said['vocabulary'] == REPLACE
    assert f'train on at least {SEEN * 20:,} pieces' not in said['why']
    of_texts, of_sets = said['tables']
    rows = {row['vocabulary']: row for row in of_texts['rows']}
    assert rows[KEEP]['text per FLOP'] == 1
    # All three tables are padded to 128 rows, so the work goes with the pieces alone.
    for name in (APPEND, REPLACE):
        less = rows[KEEP]['pieces a word'] / rows[name]['pieces a word']
        assert rows[name]['text per FLOP'] == pytest.approx(less)
    assert 'unknown words' not in rows[KEEP]
    # Of words that are marked in part the part alone is a mention.
    of_marked = {row['vocabulary']: row for row in of_sets['rows'] if row['set'] == 'marked'}
    assert of_marked[KEEP]['mentions'] == 4
    assert of_marked[KEEP]['pieces a mention'] == len(WORDS[0])
    rows = {row['vocabulary']: row for row in of_sets['rows'] if row['set'] == 'drugs'}
    assert {row['examples'] for row in rows.values()} == {6}
    # Four of the six mentions of training and devel have words of the texts.
    assert rows[REPLACE]['respelled'] == pytest.approx(4 / 6)
    kept = (2 * len(WORDS[0]) + 2 * len(WORDS[1]) + 3 + 3) / 6
    assert rows[KEEP]['pieces a mention'] == pytest.approx(kept)
    assert rows[REPLACE]['pieces a mention'] < kept
    assert 'expected F1' not in rows[REPLACE]


@pytest.mark.parametrize('family', ['modernbert', 'electra'])
def test_sources_of_other_families_and_tokenizers(family, texts, tmp_path, capsys):
    said = document(capsys, *asked(save_encoder(tmp_path / family, family), texts, '--size=400'))
    rows = {row['vocabulary']: row for row in said['tables'][0]['rows']}
    assert said['vocabulary'] == REPLACE
    assert rows[APPEND]['new'] == rows[REPLACE]['new'] > 0
    assert rows[REPLACE]['pieces a word'] < 1.1 < rows[KEEP]['pieces a word']


@pytest.mark.parametrize(
    ('words', 'more', 'vocabulary', 'why'),
    [
        (WORDS, ('--pieces=1e9',), REPLACE, 'a new one saves'),
        (WORDS, ('--pieces=100',), KEEP, 'too few'),
        (WORDS, (), REPLACE, '18 for each new token, or keep the old one'),
        (list('abcdef'), ('--pieces=1e9',), KEEP, 'fewer than 5%'),
    ],
)
def test_the_advice_follows_from_texts_and_length(words, more, vocabulary, why, source, tmp_path, capsys):
    assert call(capsys, *asked(source, texts_of(tmp_path, words=words), *more)) == (0, '')
    said = document(capsys, *asked(source, tmp_path / 'texts.jsonl', *more))
    assert said['vocabulary'] == vocabulary
    assert why in said['why']


@pytest.mark.parametrize(
    ('changes', 'expected'),
    [
        (('--texts=*.nothing',), '*.nothing: no such file'),
        (('--sets=nowhere',), 'nowhere'),
        (('--size=0',), "'0': must be a whole number, at least 1"),
        (('--pair', 'nowhere', 'nowhere'), 'nowhere: no such folder'),
    ],
)
def test_what_cannot_be_right_is_refused(changes, expected, source, texts, capsys):
    code, message = call(capsys, *asked(source, texts, *changes))
    assert code in (2, 3)
    assert expected in message


def test_what_it_cannot_do_without_is_asked_for(capsys):
    code, message = call(capsys, 'advise', '--pair', 'a', 'b')
    assert (code, 'the following arguments are required: --source, --texts' in message) == (2, True)


def observed(name, share, gain, of_respelled, of_same):
    return Observed(name, share, gain, of_respelled, of_same)


def test_the_expected_gain_by_hand():
    three = [
        observed('a', 0.5, 3.0, 4.0, 1.0),
        observed('b', 0.25, 1.0, 2.0, 0.0),
        observed('c', 1.0, 6.0, 6.0, None),
    ]
    # Respelled mentions gain 4 on average, the others 0.5.
    errors = [0.5 * 4.0 + 0.5 * 0.0 - 3.0, 0.25 * 5.0 + 0.75 * 1.0 - 1.0, 1.0 * 3.0 - 6.0]
    assert [error for _, error in left_out(three)] == pytest.approx(errors)
    found = expect(0.5, three)
    assert found.gain == pytest.approx(2.25)
    assert found.half == pytest.approx(half_interval(float(np.sqrt(np.mean(np.square(errors)))), 2))
    assert expect(0.5, three[:2]) == Expected(0.5 * 3.0 + 0.5 * 0.5, None)
    assert left_out(three[:2]) == []


def test_the_interval_holds_one_more_set_as_often_as_it_says():
    """Sets drawn around common gains of both classes: 95 % of further ones are within the interval, or more."""
    rng = np.random.default_rng(0)

    def draw(name):
        share, more, less = rng.uniform(0.2, 0.6), rng.normal(4, 1), rng.normal(1, 1)
        return observed(name, share, share * more + (1 - share) * less, more, less)

    inside = 0
    for _ in range(400):
        *known, unknown = (draw(str(n)) for n in range(6))
        found = expect(unknown.share, known)
        inside += abs(found.gain - unknown.gain) <= found.half
    assert 0.92 < inside / 400 < 0.995


def pair(folder, sets, right):
    """RUN/finetune/0.1 of two runs: `right` is the share of mentions found, by model and by spelling."""
    made = []
    for name, more in (('kept', ()), ('new', WORDS)):
        run = folder / name
        save_source(run / 'made', more)
        (run / 'export').mkdir()
        (run / 'made/model').rename(run / 'export/0.1')
        for dataset, mentions in sets.items():
            generator = random.Random(f'{dataset}{name}')
            sentences = []
            for word in mentions:
                found = generator.random() < right[name][word in WORDS]
                tags = ('O', 'B-Drug', 'O')
                sentences.append(Predicted(('the', word, 'of'), tags, tags if found else ('O', 'O', 'O')))
            cell = run / 'finetune/0.1' / dataset / 'standard/seed-0'
            write_predictions(cell / 'predictions.tsv', sentences)
            test = score([s.gold for s in sentences], [s.predicted for s in sentences])
            record = {'model': '0.1', 'dataset': dataset, 'setting': 'standard', 'seed': 0, 'test': test}
            write_json(cell / 'scores.json', {**record, 'devel': test, 'history': [{'loss': 1.0}]})
        made.append(str(run / 'finetune/0.1'))
    return tuple(made)


def test_pairs_that_learned_a_class_for_every_word_say_nothing_of_mentions(tmp_path):
    """The test score of such a set is of words, and not the F1 of mentions."""
    found = {True: 0.5, False: 1.0}
    both = pair(tmp_path, {'a': [*WORDS]}, {'kept': found, 'new': found})
    for file in tmp_path.rglob('scores.json'):
        write_json(file, read_json(file) | {'task': 'word_classes'})
    with pytest.raises(InputError, match='have no set of entities in common'):
        observe([both])


def test_pairs_of_models_say_what_respelled_mentions_gain(source, texts, tmp_path, capsys):
    mentions = {name: [*WORDS] * n + [*OTHER] * 40 for n, name in enumerate(('a', 'b', 'c'), 3)}
    both = pair(tmp_path, mentions, {'kept': {True: 0.5, False: 1.0}, 'new': {True: 1.0, False: 1.0}})
    found = observe([both])
    assert [one.dataset for one in found] == ['a', 'b', 'c']
    for one in found:
        known = len(mentions[one.dataset]) - 120
        assert one.share == pytest.approx(known / (known + 120))
        assert one.same == 0
        # Half of them are found by one model, which is two thirds in F1, and all by the other.
        assert one.respelled == pytest.approx(100 - 200 / 3, abs=10)
        assert 0 < one.gain < one.respelled
    sets = save_set(tmp_path / 'sets', 'drugs', [WORDS[0], WORDS[1], *OTHER[:2]])
    said = document(capsys, *asked(source, texts, f'--sets={sets}', '--pair', *both))
    [_, of_sets, pairs] = said['tables']
    [row] = [row for row in of_sets['rows'] if row['vocabulary'] == REPLACE]
    assert row['expected F1'] == str(expect(4 / 6, found))
    assert [row['set'] for row in pairs['rows']] == ['a', 'b', 'c']
    assert all('expected from the others' in row for row in pairs['rows'])
    gains = [one.gain for one in found]
    mean, half = np.mean(gains), half_interval(np.std(gains, ddof=1) / 3**0.5, 2)
    low, high = mean - half, mean + half
    assert low > 0
    told = f'the pairs gained {mean:+.1f} [{low:+.1f}, {high:+.1f}] F1 with a new one, over 3 sets'
    assert said['why'].endswith(told)
    # The other way round the new vocabulary loses, and is advised against; both ways round nothing is known.
    said = document(capsys, *asked(source, texts, f'--sets={sets}', '--pair', *both[::-1]))
    assert said['vocabulary'] == KEEP
    told = f'{-mean:+.1f} [{-high:+.1f}, {-low:+.1f}] over 3 sets'
    assert said['why'].endswith(f'; but the pairs lost F1 with a new one, {told}')
    said = document(capsys, *asked(source, texts, '--pair', *both, '--pair', *both[::-1]))
    assert said['vocabulary'] == REPLACE
    told = '+0.0 [+0.0, +0.0] over 3 sets'
    assert said['why'].endswith(f'; the pairs do not tell it from the old one in F1: {told}')
