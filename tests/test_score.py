"""`bioptimus score`: predictions in every form, items that are missing, double or differ, and the record."""

import itertools
import json
import random
import re
from pathlib import Path

import pytest
from toy_commands import document
from toy_sets import save_set

from bioptimus_jax.cli import main as cli
from bioptimus_jax.errors import InputError
from bioptimus_jax.finetuning.scoring import gold_at, score
from bioptimus_jax.sets.corpora import read_iob2
from bioptimus_jax.sets.tags import from_spans, spans
from bioptimus_jax.storage.files import read_json, write_json, write_jsonl, write_sealed

DRUG = 'Drug'


def wrong_tags(sentence, draw):
    """Some mentions are lost, some are a word too long."""
    found = [one for one in spans(sentence.tags) if draw.random() < 0.7]
    if draw.random() < 0.5 and 'O' in sentence.tags:
        at = sentence.tags.index('O')
        found.append((DRUG, at, at))
    return from_spans(found, len(sentence.words))


def characters(sentence, tags):
    """`[start, end, type]` in the words with single spaces between."""
    starts = [0, *itertools.accumulate(len(word) + 1 for word in sentence.words)]
    return [[starts[first], starts[last + 1] - 1, kind] for kind, first, last in spans(tags)]


def as_iobes(tags):
    made = ['O'] * len(tags)
    for kind, first, last in spans(tags):
        letters = 'S' if first == last else f'B{"I" * (last - first - 1)}E'
        made[first : last + 1] = [f'{letter}-{kind}' for letter in letters]
    return made


def tsv(folder, sentences, tags):
    rows = [zip(s.words, as_iobes(t), strict=True) for s, t in zip(sentences, tags, strict=True)]
    (folder / 'p.tsv').write_text('\n\n'.join('\n'.join(map('\t'.join, row)) for row in rows) + '\n')
    return folder / 'p.tsv'


def json_list(folder, sentences, tags):
    items = [{'words': s.words, 'predicted': as_iobes(t)} for s, t in zip(sentences, tags, strict=True)]
    (folder / 'p.json').write_text(json.dumps(items, indent=2))
    return folder / 'p.json'


def json_lines(folder, sentences, tags):
    """Two sentences an object, with a line break between them."""
    lines, pairs = [], list(zip(sentences, tags, strict=True))
    for (one, of_one), (two, of_two) in zip(pairs[::2], pairs[1::2], strict=True):
        text = ' '.join(one.words)
        later = [[len(text) + 1 + a, len(text) + 1 + b, kind] for a, b, kind in characters(two, of_two)]
        item = {'text': f'{text}\n{" ".join(two.words)}', 'entities': [*later, *characters(one, of_one)]}
        lines.append(json.dumps(item) + '\n')
    (folder / 'p.jsonl').write_text(''.join(lines))
    return folder / 'p.jsonl'


def brat(folder, sentences, tags):
    """All in one document."""
    (folder / 'brat').mkdir()
    text, marks = '', []
    for sentence, of_one in zip(sentences, tags, strict=True):
        own = ' '.join(sentence.words)
        for a, b, kind in characters(sentence, of_one):
            marks.append(f'T{len(marks)}\t{kind} {len(text) + a} {len(text) + b}\t{own[a:b]}\n')
        text += own + '\n'
    (folder / 'brat' / 'd.txt').write_text(text)
    (folder / 'brat' / 'd.ann').write_text(''.join(marks))
    return folder / 'brat'


def pubtator(folder, sentences, tags):
    lines = []
    for number, (sentence, of_one) in enumerate(zip(sentences, tags, strict=True)):
        text = ' '.join(sentence.words)
        lines += [f'{number}|t|{text}', f'{number}|a|']
        lines += [f'{number}\t{a}\t{b}\t{text[a:b]}\t{kind}' for a, b, kind in characters(sentence, of_one)]
        lines.append('')
    (folder / 'p.pubtator').write_text('\n'.join(lines))
    return folder / 'p.pubtator'


@pytest.mark.parametrize('form', [tsv, json_list, json_lines, brat, pubtator])
def test_the_same_entities_in_every_form_have_the_same_scores(form, tmp_path):
    from seqeval.metrics import f1_score

    folder, draw = save_set(tmp_path / 'drugs'), random.Random(0)
    sentences = read_iob2(folder / 'test.tsv')
    tags = [wrong_tags(sentence, draw) for sentence in sentences]
    scored = score(folder, form(tmp_path, sentences, tags), 'entities', {})
    assert [e.predicted for e in scored.examples] == tags
    theirs = f1_score([list(s.tags) for s in sentences], [list(t) for t in tags])
    assert 0.3 < theirs < 0.9
    assert f'  entity F1, default: {100 * theirs:.2f} [' in '\n'.join(scored.lines())
    assert not scored.notes
    # The test file alone, and beside the other splits, is the same gold standard.
    (tmp_path / 'alone').mkdir()
    alone = (folder / 'test.tsv').rename(tmp_path / 'alone' / 'test.tsv')
    assert score(alone, scored.predictions, 'entities', {}).examples == scored.examples


def test_what_has_no_score_is_left_out_of_the_interval(tmp_path):
    """100 sentences, three of them with one entity each, all right; and a test set without any entity."""
    (tmp_path / 'few').mkdir()
    gold = tmp_path / 'few' / 'test.tsv'
    for entities, said in ((3, '100.00 [100.00, 100.00]'), (0, '0.00 [no interval]')):
        gold.write_text('\n\n'.join(f'w\t{"B-Drug" if at < entities else "O"}' for at in range(100)) + '\n')
        scored = score(gold, gold, 'entities', {})
        assert f'  entity F1, default: {said}' in '\n'.join(scored.lines())


GOLD = 'a\tO\nzol-mi\tB-Drug\nb\tO\n\nc\tB-Drug\nd\tI-Drug\n\na\tO\nb\tO\n'


@pytest.fixture
def gold(tmp_path):
    (tmp_path / 'gold').mkdir()
    (tmp_path / 'gold' / 'test.tsv').write_text(GOLD)
    return tmp_path / 'gold' / 'test.tsv'


@pytest.mark.parametrize(
    ('entities', 'tags', 'note'),
    [
        (
            [[2, 5, DRUG]],
            ['O', 'B-Drug', 'O'],
            'predicted entities that begin or end within a word, widened to whole words: 1',
        ),
        ([[9, 14, DRUG]], ['O', 'O', 'O\tB-Drug'], 'predicted entities that go on in the next sentence'),
        (
            [[2, 8, DRUG], [4, 10, DRUG]],
            ['O', 'B-Drug\tB-Drug', 'O\tI-Drug'],
            'predicted entities that overlap others, which are wrong unless relaxed: 1',
        ),
        (
            [[2, 8, DRUG], [9, 10, 'Gene']],
            ['O', 'B-Drug', 'B-Gene'],
            'predicted entities of the type Gene, which the test set does not have, count as wrong: 1',
        ),
    ],
)
def test_characters_are_laid_on_words_and_what_does_not_fit_is_counted(entities, tags, note, gold, tmp_path):
    """The text is `a zol-mi b` and `c d`, in which the second sentence begins at 11."""
    file = tmp_path / 'p.json'
    file.write_text(json.dumps([{'text': 'a zol-mi b c d a b', 'entities': entities}]))
    scored = score(gold, file, 'entities', {})
    found = [tag for example in scored.examples for tag in example.predicted]
    assert found == [*tags, *['O'] * (7 - len(tags))]
    assert [one for one in scored.notes if one.startswith(note)]


def as_brat(folder, documents):
    """Documents by their names, each a text and [start, end, type] of its mentions."""
    folder.mkdir()
    for name, (text, mentions) in documents.items():
        (folder / f'{name}.txt').write_text(text, 'utf-8')
        lines = [
            f'T{n}\t{k} {a} {b}\t{" ".join(text[a:b].split())}\n' for n, (a, b, k) in enumerate(mentions)
        ]
        (folder / f'{name}.ann').write_text(''.join(lines), 'utf-8')
    return folder


def as_json(file, documents):
    items = [{'id': n, 'text': text, 'entities': marks} for n, (text, marks) in documents.items()]
    file.write_text(''.join(json.dumps(item) + '\n' for item in items))
    return file


def rates_of(gold, predicted, types=(), mode='default'):
    found = score(gold, predicted, 'entities', dict(types)).measures()[mode]
    return [round(100 * found[what], 2) for what in ('precision', 'recall', 'f1')]


METFORMIN = 'Metformin lowers blood glucose in type 2 diabetes .'
MARKED = [[0, 9, 'Chemical'], [17, 30, 'Test'], [34, 49, 'Disease']]
NESTED = [[17, 22, 'Test'], [23, 30, 'Test'], [34, 40, 'Disease'], [41, 49, 'Disease']]
ACROSS = 'He has cancer\nof the lung. It was seen.'


@pytest.mark.parametrize(
    ('text', 'marked', 'predicted', 'expected', 'relaxed'),
    [
        # Characters are compared with characters.
        ('肝细胞癌是疾病', [[0, 4, 'D']], [[1, 2, 'D']], [0, 0, 0], 100),
        ('the lung cancer', [[4, 15, 'D']], [[5, 13, 'D']], [0, 0, 0], 100),
        (
            'anti-tumor ERα p53mut',
            [[11, 13, 'G'], [15, 18, 'G']],
            [[11, 13, 'G'], [15, 21, 'G']],
            [50, 50, 50],
            100,
        ),
        # A mention across a line is right as a whole, and its parts are not.
        (ACROSS, [[7, 25, 'D']], [[7, 25, 'D']], [100, 100, 100], 100),
        (ACROSS, [[7, 25, 'D']], [[7, 13, 'D'], [21, 25, 'D']], [0, 0, 0], 66.67),
        (ACROSS, [[7, 25, 'D']], [[7, 26, 'D']], [0, 0, 0], 100),
        # All that is predicted counts, in whatever order.
        (
            METFORMIN,
            MARKED,
            [m for a, b, k in MARKED for m in ([a, b, 'X'], [a, b, k])],
            [50, 100, 66.67],
            66.67,
        ),
        (METFORMIN, MARKED, [*MARKED, *NESTED], [42.86, 100, 60], 60),
        (METFORMIN, MARKED, [*MARKED, [0, 30, 'Disease'], [34, 51, 'Disease']], [60, 100, 75], 75),
        (METFORMIN, MARKED, [*MARKED, *MARKED], [100, 100, 100], 100),
    ],
)
def test_entities_are_compared_as_characters_and_all_predicted_ones_count(
    text, marked, predicted, expected, relaxed, tmp_path
):
    gold = as_brat(tmp_path / 'gold', {'d': (text, marked)})
    draw = random.Random(0)
    for _ in range(4):
        file = as_json(tmp_path / 'p.jsonl', {'d': (text, predicted)})
        assert rates_of(gold, file) == expected
        assert rates_of(gold, file, mode='strict') == expected
        assert rates_of(gold, file, mode='relaxed')[2] == relaxed
        draw.shuffle(predicted)


def test_overlapping_predictions_are_kept_and_read_again(tmp_path):
    gold = as_brat(tmp_path / 'gold', {'d': (METFORMIN, MARKED)})
    file = as_json(tmp_path / 'p.jsonl', {'d': (METFORMIN, [*NESTED, *MARKED])})
    scored = score(gold, file, 'entities', {})
    cell = scored.keep(tmp_path / 'others', 'them', None)
    assert tuple(scored.gold.task.written(cell)) == scored.examples
    assert 'predicted entities that overlap others, which are wrong unless relaxed: 4' in scored.notes
    assert len((cell / 'predictions.ann').read_text().splitlines()) == 7
    again = score(gold, cell / 'predictions.tsv', 'entities', {})
    assert again.examples == scored.examples
    assert rates_of(gold, cell / 'predictions.tsv', {'Test': ''}) == [50, 66.67, 57.14]


def test_types_are_renamed_before_overlaps_are_decided_and_neighbours_stay_apart(tmp_path):
    gold = as_brat(tmp_path / 'gold', {'d': ('lung cancer drug', [[0, 11, 'Disease']])})
    theirs = [[0, 11, 'DISEASE'], [0, 16, 'CHEMICAL']]
    file = as_json(tmp_path / 'p.jsonl', {'d': ('lung cancer drug', theirs)})
    assert rates_of(gold, file, {'DISEASE': 'Disease', 'CHEMICAL': ''}) == [100, 100, 100]
    (tmp_path / 'test.tsv').write_text('a\tB-Gene\nb\tB-Gene\nc\tO\n')
    (tmp_path / 'p.tsv').write_text('a\tB-Gene\nb\tI-Protein\nc\tO\n')
    assert rates_of(tmp_path / 'test.tsv', tmp_path / 'p.tsv', {'Protein': 'Gene'}) == [100, 100, 100]


def test_stray_tags_stay_stray_unless_their_types_become_one(tmp_path):
    (tmp_path / 'test.tsv').write_text('a\tB-X\nb\tB-Y\nc\tO\n')
    (tmp_path / 'p.tsv').write_text('a\tB-X\nb\tI-Y\nc\tO\n')
    files = tmp_path / 'test.tsv', tmp_path / 'p.tsv'
    assert rates_of(*files) == [100, 100, 100]
    assert rates_of(*files, mode='strict') == [100, 50, 66.67]
    assert rates_of(*files, {'X': ''}, mode='strict') == [0, 0, 0]


def test_a_byte_order_mark_is_no_character_of_a_text(tmp_path):
    gold = as_brat(tmp_path / 'gold', {'d': ('\ufeffone drug', [[5, 9, DRUG]])})
    assert rates_of(gold, as_json(tmp_path / 'p.jsonl', {'d': ('one drug', [[4, 8, DRUG]])})) == [
        100,
        100,
        100,
    ]


def test_gold_mentions_that_are_left_out_or_not_strict_are_said(tmp_path):
    marked = [[0, 13, 'D'], [7, 13, 'D'], [14, 18, 'D']]
    gold = as_brat(tmp_path / 'gold', {'d': ('breast cancer pain', marked)})
    scored = score(
        gold, as_json(tmp_path / 'p.jsonl', {'d': ('breast cancer pain', marked[::2])}), 'entities', {}
    )
    assert scored.document()['gold'] == [
        'gold mentions in file 3, left out 1, scored 2 (those left out overlap or repeat others; recall over all in '
        'the file 66.67)'
    ]
    assert scored.document()['gold'][0] in '\n'.join(scored.lines())
    (tmp_path / 'test.tsv').write_text('a\tI-D\nb\tO\nc\tB-D\n')
    scored = score(tmp_path / 'test.tsv', tmp_path / 'test.tsv', 'entities', {})
    assert scored.document()['gold'] == [
        'gold mentions in file 2, left out 0, scored 2',
        'strict F1 is not defined for this set: 1 of 2 gold mentions begin with I- and are none in strict mode',
    ]


def test_documents_are_matched_by_name_or_else_taken_in_order(tmp_path):
    documents = {
        'note (1)': ('one drug', [[4, 8, DRUG]]),
        'b': ('two drugs', []),
        'a': ('three', [[0, 5, DRUG]]),
    }
    gold = as_brat(tmp_path / 'gold', documents)
    turned = dict(reversed(documents.items()))
    assert rates_of(gold, as_json(tmp_path / 'p.jsonl', turned)) == [100, 100, 100]
    unnamed = {str(n): documents[name] for n, name in enumerate(sorted(documents))}
    assert rates_of(gold, as_json(tmp_path / 'q.jsonl', unnamed)) == [100, 100, 100]
    # Sentences are named by their documents, and come back to one; of equal texts the name tells which is meant.
    again = [('a', documents['a']), ('b', documents['b']), ('a', documents['note (1)'])]
    alike = [('a', documents['b']), ('b', ('two drugs', [[4, 9, DRUG]])), ('c', documents['a'])]
    for number, (items, given) in enumerate(
        [(again, again), (alike, alike), (alike, [alike[1], alike[0], alike[2]])]
    ):
        folder = tmp_path / str(number)
        folder.mkdir()
        write = [line(id=name, text=text, entities=marks) for name, (text, marks) in items]
        for split in ('train', 'devel', 'test'):
            (folder / f'{split}.jsonl').write_text('\n'.join(write))
        (tmp_path / 'p.jsonl').write_text(
            '\n'.join(line(id=name, text=text, entities=marks) for name, (text, marks) in given)
        )
        assert rates_of(folder, tmp_path / 'p.jsonl') == [100, 100, 100]
    with pytest.raises(InputError, match='differs from sentence 1'):
        score(gold, as_json(tmp_path / 'r.jsonl', {'x': documents['b'], 'y': documents['a']}), 'entities', {})


def test_a_type_has_one_name_in_every_form(tmp_path):
    """Types with a blank, in tags and by characters, on either side, and in --types."""
    tags, marks = ['B-Drug', 'O', 'B-side effect'], [[0, 1, DRUG], [4, 5, 'side effect']]
    (tmp_path / 'p.jsonl').write_text(line(words=['a', 'b', 'c'], predicted=tags))
    as_json(tmp_path / 'q.jsonl', {'1': ('a b c', marks)})
    for name, answers in (
        ('tags', dict(tokens=['a', 'b', 'c'], ner_tags=tags)),
        ('marks', dict(entities=marks)),
    ):
        (tmp_path / name).mkdir()
        for split in ('train', 'devel', 'test'):
            (tmp_path / name / f'{split}.jsonl').write_text(line(text='a b c', **answers))
        for predicted in (tmp_path / 'p.jsonl', tmp_path / 'q.jsonl'):
            for types in ({}, {'side effect': 'side effect'}, {'side_effect': 'side effect'}):
                assert rates_of(tmp_path / name, predicted, types) == [100, 100, 100]
            assert rates_of(tmp_path / name, predicted, {'side effect': ''}) == [100, 50, 66.67]


def test_gold_is_no_prediction_where_a_record_has_none(tmp_path):
    """Predictions that stand beside gold: null says that there is none, and a record without the key is refused."""
    rows = [{'text': f'{name} gout', 'entities': [[2, 6, DRUG]], 'label': name} for name in 'abc']
    (tmp_path / 'gold').mkdir()
    for split in ('train', 'devel', 'test'):
        (tmp_path / 'gold' / f'{split}.jsonl').write_text('\n'.join(line(**row) for row in rows))
    right = {'predicted_entities': rows[0]['entities']}
    for last, rates in ((right, [100, 100, 100]), ({'predicted_entities': None}, [100, 66.67, 80])):
        given = [row | (last if row is rows[2] else right) for row in rows]
        (tmp_path / 'p.jsonl').write_text('\n'.join(line(**row) for row in given))
        assert rates_of(tmp_path / 'gold', tmp_path / 'p.jsonl') == rates
    labels = [{key: value for key, value in row.items() if key != 'entities'} for row in rows]
    for task, items, key in (('entities', rows, 'predicted_entities'), ('classes', labels, 'prediction')):
        first, second, beside = *items[:2], {key: right.get(key, 'a')}
        for given, said in (
            ([first | beside, second], f'p.jsonl:2: has no {key!r}, as the records before'),
            ([first, second | beside], f'p.jsonl:2: has {key!r}, and the records before'),
        ):
            (tmp_path / 'p.jsonl').write_text('\n'.join(line(**row) for row in given))
            with pytest.raises(InputError, match=re.escape(said)):
                score(tmp_path / 'gold', tmp_path / 'p.jsonl', task, {})


def test_tags_of_a_models_words_and_of_scored_words_are_both_taken(tmp_path):
    gold = as_brat(tmp_path / 'gold', {'d': ('antitumor drug', [[4, 9, 'D'], [10, 14, DRUG]])})
    for words, tags in (
        (['antitumor', 'drug'], ['B-D', 'B-Drug']),
        (['anti', 'tumor', 'drug'], ['B-D', 'I-D', 'B-Drug']),
    ):
        (tmp_path / 'p.json').write_text(json.dumps([{'words': words, 'predicted': tags}]))
        assert rates_of(gold, tmp_path / 'p.json') == [50, 50, 50]


def line(**values):
    return json.dumps(values)


WHOLE = [
    line(words=['a', 'zol-mi', 'b'], predicted=['O', 'B', 'O']),
    line(words=['c', 'd'], predicted=['B', 'I']),
    line(words=['a', 'b'], predicted=['O', 'O']),
]


@pytest.mark.parametrize(
    ('name', 'content', 'said'),
    [
        ('p.tsv', 'a\tO\nzol-mi\tO\nb\tO\n\na\tO\nb\tO\n', ':5: sentence 2 (GOLD:5) is missing before it'),
        ('p.tsv', GOLD.replace('\na\tO\nb', '\nc\tO\nd'), ':8: is sentence 2 (GOLD:5) again'),
        ('p.tsv', GOLD.replace('d\t', 'e\t'), ":5: 'e' differs from sentence 2 (GOLD:5), 'd'"),
        ('p.tsv', GOLD.replace('d\tI-Drug\n', ''), ':5: has 1 word, but sentence 2 (GOLD:5) has 2'),
        ('p.tsv', GOLD.rpartition('\n\n')[0] + '\n', ': ends before sentence 3 (GOLD:8); 3 sentences are to be'),
        ('p.tsv', GOLD + '\na\tO\n', ':11: is one sentence too many; 3 sentences are to be predicted'),
        ('p.jsonl', '\n'.join(WHOLE[:1] + WHOLE[2:]), ':2: sentence 2 (GOLD:5) is missing before it'),
        ('p.jsonl', '\n'.join(WHOLE), ': has entities of the types entity, but GOLD of Drug; give them the names of'),
        ('p.jsonl', line(words=['a'], predicted=['O', 'O']), ':1: has 1 word and 2 tags; each word needs one'),
        ('p.jsonl', line(words=['a'], predicted=['X-Drug']), ":1: unknown tag 'X-Drug'"),
        ('p.json', f'[\n{WHOLE[0]},\n{{"words": }}]', ':3: is not JSON (Expecting value)'),
        ('p.json', '[\n1]', ':2: is not an object'),
        ('p.json', '[' * 100_000, ':1: is not JSON (too deep)'),
        ('p.jsonl', line(words=['a'], answer='O'), ':1: needs "entities" with "text", or "predicted" tags with'),
        ('p.jsonl', line(text='a zol-mi', entities=[[0, 9, 'x']]), ":1: the entity [0, 9, 'x'] is not within"),
        ('p.jsonl', line(text='a', entities=[[0, True, 'x']]), ":1: the entity [0, True, 'x'] is not [start"),
        ('p.jsonl', line(text='a zolmi', entities=[]), ":1: 'azolmi' differs from sentence 1 (GOLD:1), 'azol-m'"),
        ('p.jsonl', line(text='a zol-mi b c', entities=[]), ': ends before the end of sentence 2 (GOLD:5)'),
        ('p.jsonl', line(text='a zol-mi b c d a b x', entities=[]), ':1: continues after the last sentence of GOLD'),
        ('p.jsonl', f'{line(text="a", entities=[])}\n{line(text="b", entites=[[0, 1, "x"]])}', ':2: needs "text" with'),
    ],
)  # fmt: skip
def test_what_cannot_be_scored_is_named_with_file_and_line(name, content, said, gold, tmp_path):
    (tmp_path / name).write_text(content)
    with pytest.raises(InputError) as error:
        score(gold, tmp_path / name, 'entities', {})
    assert str(error.value).replace(str(gold), 'GOLD').startswith(f'{tmp_path / name}{said}')
    assert '\n' not in str(error.value)


@pytest.fixture
def topics(tmp_path):
    lines = ['a dose\tdrug', 'a mouse\tother', 'a dose\tdrug', 'nothing\tother']
    (tmp_path / 'topics').mkdir()
    for split in ('train', 'devel', 'test'):
        (tmp_path / 'topics' / f'{split}.tsv').write_text('\n'.join(lines) + '\n')
    return tmp_path / 'topics'


IDS = ['q1', 'q2', 'q3', 'q4']
RIGHT = ['drug', 'other', 'drug', 'other']


@pytest.mark.parametrize(
    ('names', 'said'),
    [
        (('id', 'text', 'label'), {}),
        (('pmid', 'claim', 'verdict'), {'texts': ['claim'], 'answer': 'verdict', 'name': 'pmid'}),
    ],
)
def test_answers_to_texts_are_matched_by_their_names(names, said, tmp_path):
    """A service gives them back in any order; it is so by the names that set.json has given to the keys, too."""
    name, text, label = names
    (tmp_path / 'gold').mkdir()
    rows = [{name: i, text: f'It is {i}', label: a} for i, a in zip(IDS, RIGHT, strict=True)]
    for split in ('train', 'devel', 'test'):
        (tmp_path / 'gold' / f'{split}.jsonl').write_text('\n'.join(line(**row) for row in rows))
    if said:
        (tmp_path / 'gold' / 'set.json').write_text(json.dumps(said))
    alone = [line(**{name: row[name], 'answers': [row[label]]}) for row in rows]
    beside = [line(**{name: row[name], text: row[text], 'prediction': row[label]}) for row in rows]
    for given in (alone, alone[::-1], beside, beside[::-1]):
        (tmp_path / 'p.jsonl').write_text('\n'.join(given))
        scored = score(tmp_path / 'gold', tmp_path / 'p.jsonl', 'classes', {})
        assert scored.lines()[1].startswith('  accuracy: 100.00')
        assert not scored.notes
    # Names of something else, such as places in a batch, say nothing.
    numbered = [line(**{name: at, 'answers': [row[label]]}) for at, row in enumerate(rows)]
    (tmp_path / 'p.jsonl').write_text('\n'.join(numbered))
    [note] = score(tmp_path / 'gold', tmp_path / 'p.jsonl', 'classes', {}).notes
    assert note.startswith('the file repeats no text')
    # Of equal texts the names alone tell which is meant.
    (tmp_path / 'same').mkdir()
    same = [{**row, text: 'It is so' if at < 2 else row[text]} for at, row in enumerate(rows)]
    for split in ('train', 'devel', 'test'):
        (tmp_path / 'same' / f'{split}.jsonl').write_text('\n'.join(line(**row) for row in same))
    if said:
        (tmp_path / 'same' / 'set.json').write_text(json.dumps(said))
    (tmp_path / 'p.jsonl').write_text('\n'.join(line(**same[at]) for at in (1, 0, 2, 3)))
    assert (
        score(tmp_path / 'same', tmp_path / 'p.jsonl', 'classes', {}).measures()['default']['accuracy'] == 1
    )
    # Where the texts stand in their places, names do not move them.
    moved = [line(**{**row, name: IDS[::-1][at], 'prediction': row[label]}) for at, row in enumerate(rows)]
    (tmp_path / 'p.jsonl').write_text('\n'.join(moved))
    assert (
        score(tmp_path / 'gold', tmp_path / 'p.jsonl', 'classes', {}).lines()[1].startswith('  accuracy: 100')
    )
    answer_each = r"p\.jsonl:3: names '{}', but text 3 .* is 'q3'; answer each"
    for given, message in (
        # Gold answers beside what a model leaves out are no answers of its.
        ([line(**row, prediction=None) for row in rows], 'answer'),
        (alone[:3], r'p\.jsonl: ends before text 4'),
        (alone[:2] + alone[3:], answer_each.format('q4')),
        ([*alone[:2], alone[1], alone[3]], answer_each.format('q2')),
    ):
        (tmp_path / 'p.jsonl').write_text('\n'.join(given))
        with pytest.raises(InputError, match=message):
            score(tmp_path / 'gold', tmp_path / 'p.jsonl', 'classes', {})


def test_answers_to_texts_in_columns_and_json(topics, tmp_path):
    """Three of four are right; one that says nothing is wrong."""
    (tmp_path / 'p.tsv').write_text('a dose\tdrug\na mouse\tdrug\na dose\tdrug\nnothing\tother\n')
    given = ['drug', '', 'drug', 'other']
    (tmp_path / 'p.jsonl').write_text('\n'.join(line(answers=[a] if a else []) for a in given))
    for name, notes in (('p.tsv', 0), ('p.jsonl', 2)):
        scored = score(topics, tmp_path / name, 'classes', {})
        assert len(scored.notes) == notes
        assert scored.lines()[1].startswith('  accuracy: 75.00 [25.00, 100.00]')
        assert scored.lines()[2] == '  of accuracy, answers that read nothing: majority 50.00, prior 50.00'
    assert scored.notes[0] == '1 texts without an answer, which count as wrong'
    assert scored.notes[1].startswith('the file repeats no text')


@pytest.mark.parametrize(
    ('name', 'content', 'said'),
    [
        (
            'p.tsv',
            'a dose\tdrug\na mouse\tgene\n',
            ":2: 'gene' is not a label of the set; they are drug, other",
        ),
        ('p.tsv', 'a dose\tdrug\na house\tdrug\n', ":2: 'a house' differs from text 2 (GOLD:2), 'a mouse'"),
        ('p.jsonl', line(answers=['drug', 'other']), ':1: has 2 answers, but a text of this set has one'),
        ('p.jsonl', line(answers=[['drug']]), ':1: needs "answers" or "label"; it has answers'),
        ('p.jsonl', line(answers=[1]), ":1: '1' is not a label of the set; they are drug, other"),
    ],
)
def test_answers_that_cannot_be_scored_are_named(name, content, said, topics, tmp_path):
    (tmp_path / name).write_text(content)
    with pytest.raises(InputError) as error:
        score(topics, tmp_path / name, 'classes', {})
    message = str(error.value).replace(str(topics / 'test.tsv'), 'GOLD')
    assert message.startswith(f'{tmp_path / name}{said}')


def test_public_sets_have_all_their_measures(data, tmp_path):
    """Always saying 1 gives GAD 69.0, as published; Pearson's r of gold with itself, shifted and scaled, is 1."""
    gad, biosses = data / 'blurb' / 'gad', data / 'blurb' / 'biosses'
    (tmp_path / 'a.jsonl').write_text((line(answers=['1']) + '\n') * 534)
    said = score(gad / 'test.tsv', tmp_path / 'a.jsonl', 'entities', {}).lines()
    assert said[1].startswith('  micro F1: 68.96 [')
    assert said[2].startswith('  accuracy: 52.62 [')
    rows = [row.split('\t') for row in (biosses / 'test.tsv').read_text('utf-8').splitlines()[1:]]
    items = [line(words=row[1:3], answers=[2 * float(row[3]) + 1]) for row in rows]
    (tmp_path / 'b.jsonl').write_text('\n'.join(items))
    assert (
        score(biosses, tmp_path / 'b.jsonl', 'entities', {})
        .lines()[1]
        .startswith("  Pearson's r: 100.00 [100.00")
    )


def test_the_verb_keeps_a_record_and_refuses_a_wrong_command(tmp_path, capsys, monkeypatch):
    folder = save_set(tmp_path / 'drugs')
    sentences = read_iob2(folder / 'test.tsv')
    theirs = [tuple(tag.replace(DRUG, 'CHEMICAL') for tag in s.tags) for s in sentences]
    file, to = tsv(tmp_path, sentences, theirs), tmp_path / 'others'
    command = ['score', str(folder), str(file)]
    assert cli.main([*command, '--types=CHEMICAL=Drug', f'--to={to}', '--name=them']) == 0
    cell = to / 'them' / 'drugs' / 'standard' / 'seed-0'
    assert f'kept in {cell}' in capsys.readouterr().out
    assert cli.main([*command, '--types=CHEMICAL=Drug']) == 0
    lines = capsys.readouterr().out.splitlines()
    found = document(capsys, *command, '--types=CHEMICAL=Drug')
    assert (found['set'], found['sentences'], found['kept']) == ('drugs', len(sentences), None)
    for here, name in ((folder, 'drugs'), (brat(tmp_path, sentences, theirs), 'brat')):
        monkeypatch.chdir(here)
        assert gold_at(Path(), 'entities').chosen.name == name
    assert lines[0].startswith(f'drugs: {len(sentences)} sentences')
    assert f'over {found["drawn"]} {found["unit"]} drawn' in lines[0]
    for one, said in zip(found['measures'], lines[1:], strict=False):
        assert said.startswith(
            f'  {one["measure"]}: {one["score"]:.2f} [{one["low"]:.2f}, {one["high"]:.2f}]'
        )
    record = read_json(cell / 'scores.json')
    assert (record['test']['default']['f1'], record['outside'], record['seedless']) == (1.0, 'p.tsv', True)
    assert [s.tags for s in read_iob2(cell / 'predictions.tsv')] == [s.tags for s in sentences]
    for wrong, said in (
        (['--name=a'], '--to and --name go together'),
        ([f'--to={to}', '--name=../a'], "--name: '../a' cannot name a folder"),
        (['--types=b=', '--types=a'], "--types: 'a' must be THEIRS=OURS"),
        (['--types=b=', '--types==a'], "--types: '=a' must be THEIRS=OURS"),
    ):
        assert cli.main([*command, *wrong]) == 2
        assert said in capsys.readouterr().err
    # Predictions with seeds and without one are not kept beside each other; those of a set may be scored again.
    kept = [*command, f'--to={to}', '--name=them']
    for seed, said in (
        (['--seed=1'], f'--seed: 1, but {cell} holds predictions without one; remove it'),
        ([], ''),
        (['--seed=0'], ''),
        (['--seed=1'], ''),
        ([], f'--seed: is missing, but {cell} has one; give it'),
    ):
        assert cli.main([*kept, '--types=CHEMICAL=Drug', *seed]) == 2 * bool(said)
        assert said in capsys.readouterr().err
    trained = {
        'devel': record['test'],
        **{n: x for n, x in record.items() if n not in ('outside', 'seedless')},
    }
    write_sealed(cell / 'scores.json', trained)
    assert cli.main([*command, '--types=CHEMICAL=Drug', f'--to={to}', '--name=them']) == 2
    assert 'holds a fine-tuning; choose another folder' in capsys.readouterr().err
    assert cli.main(['score', str(tmp_path / 'no'), str(file)]) == 3
    assert 'no such file or folder; give a set or its test file' in capsys.readouterr().err


@pytest.mark.parametrize('form', ['tsv', 'jsonl'])
def test_a_test_file_alone_does_not_say_which_labels_there_are(form, tmp_path):
    """Three texts, of which one is answered with a label that the file does not have."""

    def scored(name, gold, given):
        texts = [f'This is text {n}.' for n in range(len(gold))]
        (tmp_path / name).mkdir()
        file = tmp_path / name / 'test.tsv'
        file.write_text(''.join(f'{text}\t{label}\n' for text, label in zip(texts, gold, strict=True)))
        predictions = tmp_path / name / f'p.{form}'
        pairs = zip(texts, given, strict=True)
        lines = [
            f'{text}\t{label}' if form == 'tsv' else json.dumps({'text': text, 'answers': [label]})
            for text, label in pairs
        ]
        predictions.write_text('\n'.join(lines) + '\n')
        return score(file, predictions, 'classes', {})

    found = scored('three', ['yes', 'no', 'yes'], ['yes', 'maybe', 'yes'])
    assert f'{found.document()["measures"][0]["score"]:.2f}' == '66.67'
    assert found.notes == ('answers with labels that no test item has count as wrong: maybe 1',)
    # Of one label only, all right and all wrong.
    same = scored('same', ['yes'] * 3, ['yes'] * 3).document()
    assert (same['measures'][0]['score'], same['measures'][0]['low'], same['notes']) == (100, 100, [])
    assert scored('none', ['yes'] * 3, ['no'] * 3).document()['measures'][0]['score'] == 0
    # A set with all splits does say it.
    for split in ('train', 'dev'):
        (tmp_path / 'three' / f'{split}.tsv').write_text('One is here.\tyes\nOther.\tno\n')
    with pytest.raises(InputError, match="'maybe' is not a label of the set; they are no, yes"):
        score(tmp_path / 'three', tmp_path / 'three' / f'p.{form}', 'classes', {})


@pytest.mark.parametrize(
    'said', [None, {'texts': ['text'], 'answer': 'labels', 'several': True, 'labels': ['x', 'y', 'z']}]
)
def test_a_test_file_alone_may_have_several_labels_a_text(said, tmp_path):
    gold, answers = (['x', 'y'], [], ['x']), (['x', 'y'], [], ['y'])
    files = {'test': ('labels', gold), 'p': ('answers', answers)}
    for name, (key, given) in files.items():
        write_jsonl(
            tmp_path / f'{name}.jsonl', [{'text': f'Text {n}.', key: one} for n, one in enumerate(given)]
        )
    if said:
        write_json(tmp_path / 'set.json', said)
    found = score(tmp_path / 'test.jsonl', tmp_path / 'p.jsonl', 'classes', {})
    assert [e.predicted for e in found.examples] == list(map(tuple, answers))
    assert [e.gold for e in found.examples] == list(map(tuple, gold))


def test_columns_of_the_gold_standard_by_flag_and_those_of_predictions_are_the_last(tmp_path, capsys):
    """The form of conlleval, gold before predicted, in which two columns read as tags."""
    rows = [('Zolmi', 'B-Drug', 'B-Drug'), ('helps', 'O', 'O'), ('zami', 'B-Drug', 'O'), ('too', 'O', 'O')]
    both = tmp_path / 'both.tsv'
    both.write_text(''.join('\t'.join(row) + '\n' for row in rows))
    found = document(capsys, 'score', str(both), str(both), '--tag_column=2')
    assert found['measures'][0]['recall'] == 50
    assert cli.main(['score', str(both), str(both)]) == 3
    assert 'both.tsv:1: columns 2 (B-Drug) and 3 (B-Drug) all read as tags' in capsys.readouterr().err
