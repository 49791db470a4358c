"""Tables of the hub and of `datasets`: as a corpus, as sets of entities and of texts; and what is wrong with them."""

import json

import pytest
from toy_tables import TEXT, each, label, parquet, put, save_splits

from bioptimus_jax.corpus import readers
from bioptimus_jax.corpus.audit import searched_texts
from bioptimus_jax.corpus.config import Corpus
from bioptimus_jax.errors import InputError
from bioptimus_jax.finetuning.config import Finetune
from bioptimus_jax.finetuning.task import task_for
from bioptimus_jax.sets.corpora import chosen_sets, read_dataset, set_at, set_files
from bioptimus_jax.storage.files import read_json, write_json

TYPED = {'tokens': each(TEXT), 'ner_tags': each(label('O', 'B-Drug', 'I-Drug'))}
SENTIMENT = {'text': TEXT, 'label': label('bad', 'good')}


def numbered(count, first=0):
    return {'text': [f'Text {first + n} of\n\n the  corpus.' for n in range(count)]}


def documents(*inputs, **changes):
    settings = {'id_field': '', 'text_fields': ('text',), **changes}
    return list(readers.read_inputs(Corpus(inputs=tuple(map(str, inputs)), **settings)))


@pytest.mark.parametrize('shards', [1, 3])
def test_a_saved_folder_and_parquet_files_are_the_same_corpus(tmp_path, shards):
    """Ids are made of the texts where no column holds them."""
    saved = save_splits(tmp_path / 'saved', {'train': numbered(7), 'test': numbered(2, 7)}, shards=shards)
    put(tmp_path, {'part9.parquet': parquet(numbered(4)), 'part10.parquet': parquet(numbered(3, 4))})
    lines = [json.dumps({'text': text}) for text in numbered(7)['text']]
    (tmp_path / 'x.jsonl').write_text('\n'.join(lines), 'utf-8')
    found = {
        name: [(d.id, d.text) for d in documents(*inputs)]
        for name, inputs in {
            'saved': [saved / 'train'],
            'files': [saved / 'train' / '*.arrow'],
            'parquet': [tmp_path / '*.parquet'],
            'lines': [tmp_path / 'x.jsonl'],
        }.items()
    }
    assert [text for _, text in found['saved']] == [f'Text {n} of\nthe corpus.' for n in range(7)]
    assert len({number for number, _ in found['saved']}) == 7
    assert found['saved'] == found['files'] == found['parquet'] == found['lines']
    told = []
    for path in (saved / 'train').glob('*.arrow'):
        settings = Corpus(id_field='', text_fields=('text',))
        list(readers.read_file(path, path.stem, settings, told.append))
        assert sum(told) == path.stat().st_size
        told.clear()


def test_what_is_wrong_with_a_saved_folder_is_one_line(tmp_path):
    saved = save_splits(tmp_path / 'saved', {'train': numbered(4)}) / 'train'
    shard, state = saved / 'data-00000-of-00002.arrow', read_json(saved / 'state.json')
    whole = shard.read_bytes()

    def names(*files):
        write_json(saved / 'state.json', {**state, '_data_files': list(files)})

    for damage, folder, message, *asked in (
        (None, saved, r":1: has no 'id'; .*\(empty: ids are made from the texts\)", ('id_field', 'id')),
        (None, tmp_path / 'saved', r'holds splits of a data set; name one of them, as in .*saved/train'),
        *(
            (
                lambda cut=cut: shard.write_bytes(cut),
                saved,
                r'00002\.arrow: is not in Arrow format, or is cut off or damaged',
            )
            for cut in (whole[:-8], whole[:-100], whole[:300], b'no stream at all')
        ),
        (shard.unlink, saved, r'data-00000-of-00002\.arrow: is not a file of a table; save'),
        (
            lambda: names({'filename': '../../secret.arrow'}),
            saved,
            r"state\.json: names the file '\.\./\.\./secret\.arrow'",
        ),
        (lambda: names({}), saved, r'state\.json: is damaged \(no list of files\)'),
        (names, saved, r'train: is not a file of a table'),
    ):
        if damage:
            damage()
        with pytest.raises(InputError, match=message):
            documents(folder, **dict(asked))


def splits_of(columns):
    """Three splits of three rows each."""
    return {
        split: {name: values[3 * n : 3 * n + 3] for name, values in columns.items()}
        for n, split in enumerate(('train', 'validation', 'test'))
    }


WORDS = [['Zolmipan', 'dose', 'helps'], ['The', 'patient'], ['Tercivir', '.']] * 3
NUMBERS = [[1, 2, 0], [0, 0], [1, 0]] * 3
NAMED = [['O B-Drug I-Drug'.split()[tag] for tag in tags] for tags in NUMBERS]


def saved(folder, splits, features):
    save_splits(folder, splits, features)


def on_the_hub(folder, splits, features):
    files = {}
    for name, columns in splits.items():
        two = [{k: v[:2] for k, v in columns.items()}, {k: v[2:] for k, v in columns.items()}]
        files |= {
            f'data/{name}-{n:05}-of-00002.parquet': parquet(part, features) for n, part in enumerate(two)
        }
    put(folder, files)


def converted(folder, splits, features):
    put(folder, {f'{name}/0000.parquet': parquet(columns, features) for name, columns in splits.items()})


@pytest.mark.parametrize('form', [saved, on_the_hub, converted])
def test_entities_and_texts_in_every_form_are_those_of_plain_files(tmp_path, form):
    root = tmp_path / 'sets'
    form(root / 'drugs', splits_of({'id': list('abcdefghi'), 'tokens': WORDS, 'ner_tags': NUMBERS}), TYPED)
    texts = {'text': [f'Text  {n}' for n in range(9)], 'label': [0, 1, 0] * 3, 'idx': list(range(9))}
    form(root / 'opinions', splits_of(texts), SENTIMENT)
    plain = tmp_path / 'plain'
    for split, rows in splits_of({'words': WORDS, 'tags': NAMED, 'answers': [*'bgb'] * 3}).items():
        lines = ''.join(
            '\n'.join(map('\t'.join, zip(*row, strict=True))) + '\n\n'
            for row in zip(rows['words'], rows['tags'], strict=True)
        )
        put(plain, {f'drugs/{split}.tsv': lines.encode()})
        at = 3 * ('train', 'validation', 'test').index(split)
        given = [f'Text {at + n}\t{"bad" if a == "b" else "good"}\n' for n, a in enumerate(rows['answers'])]
        put(plain, {f'opinions/{split}.tsv': ''.join(given).encode()})
    for folder in (root, plain):
        assert [one.name for one in chosen_sets(Finetune(folder=str(folder)))] == ['drugs', 'opinions']
    where = {one.name: one for one in chosen_sets(Finetune(folder=str(root)))}
    found, wanted = read_dataset(where['drugs']), read_dataset(plain / 'drugs')
    assert found.form == 'table'
    assert (found.train, found.devel, found.test) == (wanted.train, wanted.devel, wanted.test)
    assert (found.labels, found.gold_in_file, found.types) == (wanted.labels, wanted.gold_in_file, ('Drug',))
    for name in where:
        assert {*searched_texts(where[name].folder, 'test')} == {*searched_texts(plain / name, 'test')}
    given = set_at(where['opinions'].folder, 'classes')
    assert task_for(given).read(given) == task_for(given).read(set_at(plain / 'opinions', 'classes'))
    listed = {str(file.relative_to(root)) for file in set_files(where['drugs'].folder)}
    every = {str(p.relative_to(root)) for p in (root / 'drugs').rglob('*') if p.is_file()}
    assert listed == {name for name in every if not name.endswith(('state.json', 'dict.json'))}


def test_pairs_numbers_and_names(tmp_path):
    """Two texts by any of their names; a similarity; labels that are words already."""
    pairs = {'sentence1': ['a b'] * 9, 'sentence2': ['c'] * 9, 'score': [0.5, 1.25, 4.0] * 3}
    on_the_hub(tmp_path / 'near', splits_of(pairs), None)
    near = set_at(tmp_path / 'near' / 'data', 'similarity')
    assert (
        [one.name for one in chosen_sets(Finetune(folder=str(tmp_path / 'near')))] == [near.name] == ['near']
    )
    read = task_for(near).read(near)
    assert [(t.words, t.answers) for t in read.train] == [(('a b', 'c'), (n,)) for n in (0.5, 1.25, 4.0)]
    spelled = {'premise': ['p'] * 9, 'hypothesis': ['h'] * 9, 'label': ['yes', 'no', 'yes'] * 3}
    saved(tmp_path / 'follows', splits_of(spelled), None)
    (follows,) = chosen_sets(Finetune(folder=str(tmp_path / 'follows'), task='classes'))
    assert task_for(follows).read(follows).labels == ('no', 'yes')
    # As SNLI names its answers, and as BigBio has texts and answers: each a list of one.
    renamed = {**spelled, 'premise': [['p']] * 9, 'gold_label': [['yes'], ['no'], ['yes']] * 3}
    del renamed['label']
    saved(tmp_path / 'lists', splits_of(renamed), None)
    lists = set_at(tmp_path / 'lists', 'classes')
    assert task_for(lists).read(lists).train == task_for(follows).read(follows).train
    tagged = {'id': ['1', '2', '3'] * 3, 'tokens': WORDS, 'labels': NAMED}
    saved(tmp_path / 'tagged', splits_of(tagged), None)
    assert [s.words for s in read_dataset(tmp_path / 'tagged').train] == [tuple(words) for words in WORDS[:3]]


WRONG = {
    'columns': (
        {'words_of': WORDS, 'ner_tags': NUMBERS},
        None,
        r'row 1: needs "tokens" with "ner_tags", or "text" with "entities"; it has ner_tags; name',
    ),
    'no names': (
        {'tokens': WORDS, 'ner_tags': NUMBERS},
        None,
        r"row 1: unknown tag '1'; it is a number, and the file does not say its name: write the tags",
    ),
    'another task': (
        {'hypothesis': ['b'] * 9, 'premise': ['a'] * 9, 'gold_label': ['x'] * 9},
        None,
        r'it has hypothesis, premise, gold_label; .*task \(of lint and score --task\) to classes',
    ),
    'another number': (
        {'tokens': WORDS, 'ner_tags': [[7, 0, 0], *NUMBERS[1:]]},
        TYPED,
        r'parquet: row 1: label 7 has no name; leave such rows out',
    ),
    'not told': (
        {'text': ['a', 'b', 'c'] * 3, 'label': [0, 1, -1] * 3},
        SENTIMENT,
        r'parquet: row 3: its label is not given; leave such rows out',
    ),
    'missing': (
        {'text': ['a', 'b', 'c'] * 3, 'label': ['x', 'y', None] * 3},
        None,
        r'parquet: row 3: its label is not given; leave such rows out',
    ),
    'lists': (
        {'text': ['a'] * 9, 'label': [[0], [1], [0], [0, 1], *[[1]] * 5]},
        SENTIMENT,
        r"row 1: has 2 answers, 'bad, good', but a text of this set has one; give several to texts of train too",
    ),
    'tokens for texts': (
        {'text': [['a', 'b']] * 9, 'label': [0, 1, 0] * 3},
        SENTIMENT,
        r"row 1: 'text' is no text: \['a', 'b'\]",
    ),
    'half a pair': (
        {'text': ['a', 'b', 'c'] * 3, 'text_b': ['d'] * 9, 'label': [0, 1, 0] * 3},
        SENTIMENT,
        r'''row 1: has 'text' and 'text_b', so one text would go unread; call two texts "sentence1" and "sentence2"''',
    ),
    'lengths': ({'tokens': WORDS, 'ner_tags': [[0]] * 9}, TYPED, r'row 1: 3 words, 1 tag'),
}


@pytest.mark.parametrize('flaw', WRONG)
def test_what_is_wrong_with_a_table_is_one_line(tmp_path, flaw):
    columns, features, message = WRONG[flaw]
    converted(tmp_path / 'x', splits_of(columns), features)
    given = set_at(tmp_path / 'x', 'classes' if 'text' in columns else Finetune.task)
    with pytest.raises(InputError, match=message) as raised:
        task_for(given).read(given)
    assert '\n' not in str(raised.value)


@pytest.mark.parametrize(
    ('task', 'columns', 'message'),
    [
        ('classes', {'text': ['a', 'b', ' '] * 3, 'label': ['x', 'y', 'x'] * 3}, 'a text is empty'),
        (
            'similarity',
            {'text': ['a', 'b', 'c'] * 3, 'score': [1.0, 2.0, 1e9] * 3},
            "'1000000000.0' is not a",
        ),
        (
            'classes',
            {'text': list('abc') * 3, 'label': [*'xyxxyz', *'xyx']},
            "has the label 'z', which train",
        ),
    ],
)
def test_a_flaw_in_a_later_file_of_a_table_is_named_with_that_file_and_its_row(
    tmp_path, task, columns, message
):
    on_the_hub(tmp_path / 'x', splits_of(columns), None)
    given = set_at(tmp_path / 'x' / 'data', task)
    with pytest.raises(InputError, match=rf'-00001-of-00002\.parquet: row 1: {message}'):
        task_for(given).read(given)


def test_parts_that_are_missing_and_names_of_public_sets(tmp_path):
    on_the_hub(tmp_path / 'drugs', splits_of({'tokens': WORDS, 'tags': NUMBERS}), None)
    (tmp_path / 'drugs' / 'data' / 'train-00001-of-00002.parquet').unlink()
    saved(tmp_path / 'gad', splits_of({'text': ['a'] * 9, 'label': [0, 1, 0] * 3}), SENTIMENT)
    gad = set_at(tmp_path / 'gad')
    for read, given, message in (
        (
            read_dataset,
            tmp_path / 'drugs' / 'data',
            r'data/train-00001-of-00002: of this part of the table 0 files are there, not one; fetch',
        ),
        (task_for(gad).read, gad, r'arrow: a public set is read from its own files; rename the folder'),
    ):
        with pytest.raises(InputError, match=message):
            read(given)
