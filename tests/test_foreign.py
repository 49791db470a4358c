"""Files as other programs write them: read with the counts of a writer that knows what it wrote, alike by every verb.

The writers here are of the standard library. What is marked by characters is compared with the same documents as BRAT,
and words with tags with the same words as lines of columns: these readers have tests of their own.
"""

import csv
import gzip
import io
import json
import random
import re
from collections import Counter
from pathlib import Path
from xml.sax.saxutils import escape

import pytest
from toy_tables import TEXT as STRING
from toy_tables import each, label, parquet, put, save_splits

from bioptimus_jax.cli import main as cli
from bioptimus_jax.corpus.audit import searched_texts
from bioptimus_jax.errors import InputError
from bioptimus_jax.finetuning.config import Finetune
from bioptimus_jax.finetuning.look import look_through
from bioptimus_jax.finetuning.scoring import score
from bioptimus_jax.finetuning.task import task_for
from bioptimus_jax.inference.given import read_given
from bioptimus_jax.rebuild.originals import BUILDERS
from bioptimus_jax.sets.advice import REBUILT
from bioptimus_jax.sets.corpora import chosen_sets, read_dataset, read_iob2, set_at, split_files
from bioptimus_jax.sets.foreign.flat import NO_TYPE
from bioptimus_jax.sets.foreign.forms import FORMS, read_items
from bioptimus_jax.sets.foreign.items import PREDICTED_KEYS, TEXT_ENDINGS, Keys
from bioptimus_jax.sets.foreign.jsons import DIALECTS
from bioptimus_jax.sets.foreign.label_studio import NOT_ANNOTATED
from bioptimus_jax.sets.foreign.splits import UNSAID, split_of
from bioptimus_jax.sets.labelled import holds_texts, read_file
from bioptimus_jax.sets.sentences import SPLITS
from bioptimus_jax.sets.tags import spans
from bioptimus_jax.sets.texts import in_order
from bioptimus_jax.storage import tables

# A mention that ends within a word, one in another, one of two types, one over two sentences; letters that are several
# bytes, and one that is two units of UTF-16.
MARKED = {
    'd1': (
        'Aspirin helps naïve patients with 😀 gout. Gout hurts.',
        ['Drug:Aspirin', 'Disease:gout', 'Disease:Gout'],
    ),
    'd2': ('AntiERα drugs treat breast cancer.', ['Gene:ERα', 'Disease:breast cancer', 'Disease:cancer']),
    'd3': ('No β-blocker here. None at all.', ['Drug:β-blocker', 'Drug:here. None']),
    'd4': ('Nothing is marked.', []),
}


def marks(text, named):
    """Type, start and end of every mention, the first place of each."""
    pairs = [one.split(':', 1) for one in named]
    return [(kind, text.index(shown), text.index(shown) + len(shown)) for kind, shown in pairs]


DOCUMENTS = [(name, text, marks(text, named)) for name, (text, named) in MARKED.items()]
SENTENCES = [
    [('Aspirin', 'B-Drug'), ('helps', 'O'), ('β', 'O'), ('"', 'O'), ('cells', 'B-Cell'), (',', 'I-Cell')],
    [('#', 'O'), ('Gout', 'B-Disease')],
    [('None', 'O')],
]
TAGS = ('O', 'B-Drug', 'I-Drug', 'B-Cell', 'I-Cell', 'B-Disease', 'I-Disease')
TEXTS = [('Aspirin, "twice"', 'yes'), ('Gout\nhurts', 'no'), ('β 😀', 'yes')]
PAIRS = [('Is it?', 'It is.', 'yes'), ('Is it?', 'It is, not.', 'no'), ('α', 'β', 'no')]
SEVERAL = [('Aspirin', ['a', 'b, c']), ('Gout', []), ('β', ['b, c'])]


def lines(*objects):
    return ''.join(json.dumps(one, ensure_ascii=False) + '\n' for one in objects)


def table(*rows, mark=','):
    to = io.StringIO()
    csv.writer(to, delimiter=mark).writerows(rows)
    return to.getvalue()


def units(text, place, encoding):
    """How much of a text comes before a place, in bytes of UTF-8 or in units of UTF-16."""
    return len(text[:place].encode(encoding)) // (2 if encoding == 'utf-16-le' else 1)


def label_studio(encoding=''):
    tasks = []
    for number, (_, text, found) in enumerate(DOCUMENTS):
        result = [
            {
                'type': 'labels',
                'value': {
                    'start': units(text, a, encoding) if encoding else a,
                    'end': units(text, b, encoding) if encoding else b,
                    'text': text[a:b],
                    'labels': [kind],
                },
            }
            for kind, a, b in found
        ]
        relation = {'type': 'relation', 'from_id': '1', 'to_id': '2'}
        said = {'result': [*result, *[relation] * (number == 0)], 'was_cancelled': False}
        other = {'result': [], 'was_cancelled': number != 1}
        tasks.append({'id': number, 'data': {'text': text}, 'annotations': [said, other], 'predictions': []})
    tasks.append({'id': 9, 'data': {'text': 'Nobody.'}, 'annotations': []})
    return json.dumps(tasks, indent=1)


def least(found, text):
    return [{'start': a, 'end': b, 'text': text[a:b], 'labels': [kind]} for kind, a, b in found]


def bioc(encoding='', as_json=False):
    """A passage for the first sentence of each document, and one for the rest; annotations are in the first."""

    def size(text):
        return len(text.encode(encoding)) if encoding else len(text)

    documents = []
    for name, text, found in DOCUMENTS:
        at = text.find('. ') + 1
        passages = (
            [(0, text)] if not at or name == 'd3' else [(0, text[:at]), (size(text[:at]) + 1, text[at + 1 :])]
        )
        made = []
        for offset, part in passages:
            start = text.index(part)
            own = [(k, a, b) for k, a, b in found if start <= a < start + len(part)]
            made.append((offset, part, [(k, size(text[:a]), size(text[a:b]), text[a:b]) for k, a, b in own]))
        documents.append((name, made))
    if as_json:
        return json.dumps(
            {
                'PubTator3': [
                    {
                        'id': name,
                        'passages': [
                            {
                                'offset': offset,
                                'text': part,
                                'annotations': [
                                    {
                                        'infons': {'type': k},
                                        'text': q,
                                        'locations': [{'offset': a, 'length': n}],
                                    }
                                    for k, a, n, q in own
                                ],
                            }
                            for offset, part, own in made
                        ],
                        'relations': [{'id': 'R1'}],
                    }
                    for name, made in documents
                ]
            }
        )

    def annotation(number, k, a, n, q):
        # Every second one has an identifier.
        id = '<infon key="identifier">D1</infon>' * (number % 2)
        place = f'<location offset="{a}" length="{n}"/>'
        inside = f'<infon key="type">{k}</infon>{id}{place}<text>{escape(q)}</text>'
        return f'<annotation id="{number}">{inside}</annotation>'

    def passage(offset, part, own):
        inside = ''.join(annotation(number, *one) for number, one in enumerate(own))
        return f'<passage><offset>{offset}</offset><text>{escape(part)}</text>{inside}</passage>'

    inside = ''.join(
        f'<document><id>{name}</id>{"".join(passage(*one) for one in made)}</document>'
        for name, made in documents
    )
    return (
        f'<?xml version="1.0"?>\n<!DOCTYPE collection SYSTEM "BioC.dtd">\n<collection>{inside}</collection>'
    )


BY_CHARACTERS = {
    'text and entities, JSON lines': (
        '{}.jsonl',
        lines(*({'id': n, 'text': t, 'entities': [[a, b, k] for k, a, b in f]} for n, t, f in DOCUMENTS)),
    ),
    'text and spans, a list': (
        '{}.json',
        json.dumps(
            [
                {'id': n, 'text': t, 'spans': [dict(start=a, end=b, type=k) for k, a, b in f]}
                for n, t, f in DOCUMENTS
            ],
            indent=2,
        ),
    ),
    'bioptimus predict --as=json': (
        '{}.jsonl',
        lines(
            *(
                {
                    'id': n,
                    'text': t,
                    'entities': [[a, b, k] for k, a, b in f],
                    'probabilities': [0.9] * len(f),
                }
                for n, t, f in DOCUMENTS
            )
        ),
    ),
    'doccano, labels': (
        '{}.jsonl',
        lines(
            *(
                {'id': 1, 'text': t, 'label': [[a, b, k] for k, a, b in f], 'Comments': []}
                for _, t, f in DOCUMENTS
            )
        ),
    ),
    'doccano, relations': (
        '{}.jsonl',
        lines(
            *(
                {
                    'id': n,
                    'text': t,
                    'entities': [dict(id=1, label=k, start_offset=a, end_offset=b) for k, a, b in f],
                    'relations': [],
                }
                for n, t, f in DOCUMENTS
            )
        ),
    ),
    'Label Studio': ('{}.json', label_studio()),
    'Label Studio, units of UTF-16': ('{}.json', label_studio('utf-16-le')),
    'Label Studio, JSON-MIN': (
        '{}.json',
        json.dumps([{'id': n, 'text': t, 'label': least(f, t), 'annotator': 1} for n, t, f in DOCUMENTS]),
    ),
    'Label Studio, CSV': (
        '{}.csv',
        table(
            ['text', 'id', 'label'],
            *([t, n, json.dumps(least(f, t)) if f else '[]'] for n, t, f in DOCUMENTS),
        ),
    ),
    'Prodigy': (
        '{}.jsonl',
        lines(
            {'text': 'Rejected.', 'spans': [{'start': 0, 'end': 8, 'label': 'Drug'}], 'answer': 'reject'},
            *(
                {
                    'text': t,
                    '_task_hash': 1,
                    'tokens': [{'text': t.split()[0], 'start': 0, 'end': 1, 'id': 0}],
                    'spans': [dict(start=a, end=b, label=k, token_start=0, token_end=0) for k, a, b in f],
                    'answer': 'accept',
                }
                for _, t, f in DOCUMENTS
            ),
        ),
    ),
    'spaCy, pairs': (
        '{}.jsonl',
        lines(*([t, {'entities': [[a, b, k] for k, a, b in f]}] for _, t, f in DOCUMENTS)),
    ),
    'spaCy, Doc.to_json': (
        '{}.json',
        json.dumps(
            [
                {'text': t, 'ents': [dict(start=a, end=b, label=k) for k, a, b in f], 'tokens': [{'id': 0}]}
                for _, t, f in DOCUMENTS
            ]
        ),
    ),
    'BioC, XML': ('{}.xml', bioc()),
    'BioC, XML, bytes as bconv': ('{}.bioc.xml', bioc('utf-8')),
    'BioC, JSON': ('{}.json', bioc(as_json=True)),
    'BioC, JSON, bytes': ('{}.json', bioc('utf-8', as_json=True)),
    'Parquet with entities': (
        '{}.parquet',
        parquet(
            {
                'text': [t for _, t, _ in DOCUMENTS],
                'entities': [[dict(start=a, end=b, label=k) for k, a, b in f] for *_, f in DOCUMENTS],
            }
        ),
    ),
    'BigBio': (
        '{}.parquet',
        parquet(
            {
                'document_id': [n for n, *_ in DOCUMENTS],
                'passages': [
                    [{'text': [t[:7]], 'offsets': [[0, 7]]}, {'text': [t[8:]], 'offsets': [[8, len(t)]]}]
                    if t[7] == ' '
                    else [{'text': [t], 'offsets': [[0, len(t)]]}]
                    for _, t, _ in DOCUMENTS
                ],
                'entities': [
                    [{'type': k, 'text': [t[a:b]], 'offsets': [[a, b]], 'normalized': []} for k, a, b in f]
                    for _, t, f in DOCUMENTS
                ],
            }
        ),
    ),
    'JSON lines, compressed': (
        '{}.jsonl.gz',
        gzip.compress(
            lines(*({'text': t, 'entities': [[a, b, k] for k, a, b in f]} for _, t, f in DOCUMENTS)).encode()
        ),
    ),
}


def of_words(key='ner_tags', values=lambda tags: tags):
    return [{'tokens': [w for w, _ in s], key: values([t for _, t in s])} for s in SENTENCES]


def numbers(tags):
    return [TAGS.index(tag) for tag in tags]


CONLL = '\n\n'.join('\n'.join(map('\t'.join, s)) for s in SENTENCES) + '\n'
BY_WORDS = {
    'tokens and ner_tags': {'{}.jsonl': lines(*of_words())},
    'tokens and tags with numbers, label.json': {
        '{}.json': json.dumps({'data': of_words('tags', numbers)}),
        'label.json': json.dumps({tag: at for at, tag in enumerate(TAGS)}),
    },
    'tokens and ner_tags with numbers, dataset_info.json': {
        '{}.jsonl': lines(*of_words('ner_tags', numbers)),
        'dataset_info.json': json.dumps({'features': {'ner_tags': each(label(*TAGS))}}),
    },
    'a word a row, as in the set of Kaggle': {
        '{}.csv': table(
            ['Sentence #', 'Word', 'POS', 'Tag'],
            *(
                ['' if at else f'Sentence: {n}', word, 'NN', tag]
                for n, s in enumerate(SENTENCES)
                for at, (word, tag) in enumerate(s)
            ),
        )
    },
    'a word a row, blank lines': {
        '{}.csv': '\n'.join(
            ['token;tag', *(';'.join(w) for w in SENTENCES[0] if w[0] != '"'), '"""";O', '', '']
        )
        + '\n'.join(['#;O', 'Gout;B-Disease', '', 'None;O'])
    },
    'CoNLL, compressed': {'{}.tsv.gz': gzip.compress(CONLL.encode())},
    'CoNLL, a file for each document, also in folders within': {
        '{}/1.conll': '\n'.join(map('\t'.join, SENTENCES[0])),
        '{}/within/2.conll': '\n\n'.join('\n'.join(map('\t'.join, s)) for s in SENTENCES[1:]),
    },
}


def laid_out(root, files):
    """A set of three splits that hold the same."""
    for pattern, content in files.items():
        for split in SPLITS:
            whole = content if isinstance(content, bytes) else content.encode()
            put(root, {pattern.format(split): whole})
    return root


def brat(root):
    files = {}
    for name, text, found in DOCUMENTS:
        files[f'{{}}/{name}.txt'] = text
        files[f'{{}}/{name}.ann'] = ''.join(
            f'T{n}\t{k} {a} {b}\t{text[a:b]}\n' for n, (k, a, b) in enumerate(found)
        )
    return laid_out(root, files)


def shown(sentences):
    """Type and letters of every mention that is scored."""
    return Counter(
        (kind, ''.join(s.scored_words[first : last + 1]).replace(' ', ''))
        for s in sentences
        for kind, first, last in spans(s.gold)
    )


def said_in(folder):
    """What the audit of a corpus looks for, with full stops as in text."""
    return [text.replace(' .', '.') for text in searched_texts(folder, 'test')]


@pytest.mark.parametrize('form', BY_CHARACTERS)
def test_mentions_by_characters_are_those_that_were_written(tmp_path, form):
    pattern, content = BY_CHARACTERS[form]
    folder = laid_out(tmp_path / 'set', {pattern: content})
    read, wanted = read_dataset(folder), read_dataset(brat(tmp_path / 'brat'))
    written = sum(len(found) for *_, found in DOCUMENTS)
    assert written == 8
    assert dict(read.gold_in_file) == dict.fromkeys(SPLITS, written)
    assert dict(read.gold_left_out) == dict.fromkeys(SPLITS, 1)  # one of two that are nested
    alike = Counter((k, t[a:b].replace(' ', '')) for _, t, f in DOCUMENTS for k, a, b in f)
    assert shown(read.train) == alike - Counter([('Disease', 'cancer')])
    if 'BioC' not in form:  # whose passages end with a line
        assert [(s.words, s.tags, s.exact) for s in read.train] == [
            (s.words, s.tags, s.exact) for s in wanted.train
        ]
    # lint, score and predict read the same file.
    looked = look_through(folder, {})
    assert not looked.errors
    assert looked.sets['set'].lines[1].endswith(f' {written - 1} mentions')
    file = split_files(folder, 'test')[0]
    found = score(folder, file, 'entities', {}).measures()
    assert found['default']['f1'] == pytest.approx(2 * 7 / (7 + 8))  # the nested one is predicted, and wrong
    assert 'AntiERα drugs treat breast cancer.' in [s.replace('Anti ERα', 'AntiERα') for s in said_in(folder)]
    answered = [one.texts[0].replace('\n', ' ') for one in read_given([str(file)], [], False)]
    more = {'Nobody.', 'Rejected.'}.intersection(
        answered
    )  # that nobody has answered, or as they should not be
    assert len(more) == (form in ('Label Studio', 'Label Studio, units of UTF-16', 'Prodigy'))
    assert [text for text in answered if text not in more] == [text for _, text, _ in DOCUMENTS]


@pytest.mark.parametrize('form', BY_WORDS)
def test_words_with_tags_are_those_that_were_written(tmp_path, form):
    folder = laid_out(tmp_path / 'set', BY_WORDS[form])
    read = read_dataset(folder)
    if form == 'a word a row, blank lines':
        rows = [(w, t) for s in SENTENCES for w, t in s]
        assert Counter((w, t) for s in read.train for w, t in zip(s.words, s.tags, strict=True)) == Counter(
            rows
        )
    else:
        assert [(s.words, s.tags) for s in read.train] == [tuple(zip(*s, strict=True)) for s in SENTENCES]
    assert dict(read.gold_in_file) == dict.fromkeys(SPLITS, 3)
    assert len(read.train) == 3
    assert not look_through(folder, {}).errors
    file = folder / 'test' if (folder / 'test').is_dir() else split_files(folder, 'test')[0]
    assert score(folder, file, 'entities', {}).measures()['default']['f1'] == 1
    if '{}.csv' in BY_WORDS[form]:
        return
    texts = [text for one in read_given([str(file)], [], False) for text in one.texts[0].split('\n')]
    assert texts == [' '.join(word for word, _ in s) for s in SENTENCES]


BY_TEXTS = {
    'text and label': ('{}.jsonl', lines(*({'text': t, 'label': a} for t, a in TEXTS))),
    'label of one in a list, as doccano': ('{}.jsonl', lines(*({'text': t, 'label': [a]} for t, a in TEXTS))),
    'bioptimus predict --as=json': (
        '{}.jsonl',
        lines(*({'id': a, 'text': t, 'answers': [a], 'probabilities': {a: 0.9}} for t, a in TEXTS)),
    ),
    'CSV': ('{}.csv', table(['', 'text', 'label'], *([n, *row] for n, row in enumerate(TEXTS)))),
    'CSV with semicolons, compressed': (
        '{}.csv.gz',
        gzip.compress(table(['Label', 'Text'], *(row[::-1] for row in TEXTS), mark=';').encode('utf-8-sig')),
    ),
    'TSV with names': (
        '{}.tsv',
        'id\ttext\tlabel\n' + ''.join(f'{n}\t{" ".join(t.split())}\t{a}\n' for n, (t, a) in enumerate(TEXTS)),
    ),
    'Label Studio, choices': (
        '{}.json',
        json.dumps(
            [
                {
                    'data': {'text': t},
                    'annotations': [{'result': [{'type': 'choices', 'value': {'choices': [a]}}]}],
                }
                for t, a in TEXTS
            ]
        ),
    ),
    'Prodigy, options': (
        '{}.jsonl',
        lines(
            *(
                {'text': t, 'options': [], 'accept': [a], 'answer': 'accept', '_task_hash': 1}
                for t, a in TEXTS
            )
        ),
    ),
    'spaCy, cats': ('{}.jsonl', lines(*([t, {'cats': {a: 1.0, 'other': 0.0}}] for t, a in TEXTS))),
    'numbers with names': (
        '{}.jsonl',
        lines(*({'sentence': t, 'label': int(a == 'yes')} for t, a in TEXTS)),
        ('labels.txt', 'no\nyes\n'),
    ),
}


def texts_in(folder, task='classes'):
    chosen = set_at(folder, task)
    return task_for(chosen).read(chosen), chosen


@pytest.mark.parametrize('form', BY_TEXTS)
def test_texts_with_answers_are_those_that_were_written(tmp_path, form):
    pattern, content, *beside = BY_TEXTS[form]
    folder = laid_out(tmp_path / 'set', {pattern: content, **dict(beside)})
    dataset, _ = texts_in(folder)
    wanted = [((' '.join(t.split()),), (a,)) for t, a in TEXTS]
    assert [(t.words, t.answers) for t in dataset.train] == wanted
    assert dataset.labels == ('no', 'yes')
    assert not look_through(folder, {}, 'classes').errors
    file = split_files(folder, 'test')[0]
    assert score(folder, file, 'classes', {}).measures()['default']['accuracy'] == 1
    assert 'Aspirin, "twice"' in said_in(folder)
    assert [' '.join(one.texts[0].split()) for one in read_given([str(file)], [], True)] == [
        t for (t,), _ in wanted
    ]


@pytest.mark.parametrize('always', [True, False])
@pytest.mark.parametrize('columns', [['claim', 'verdict', 'id'], [2, 3, 1]])
def test_quoted_columns_that_set_json_describes(tmp_path, always, columns):
    """Pandas writes them so, always or where it must; a group in `document` says which part of a name is meant."""
    texts = {'s1@A': 'the "x" of it', 's2@B': 'a plain one', 's3@A': 'no, no'}
    rows = [
        ('id', 'claim', 'verdict'),
        *((name, text, 'yes no'.split()[name == 's2@B']) for name, text in texts.items()),
    ]
    file = io.StringIO()
    csv.writer(file, delimiter='\t', quoting=csv.QUOTE_ALL if always else csv.QUOTE_MINIMAL).writerows(rows)
    text, answer, name = columns
    said = {'texts': [text], 'answer': answer, 'name': name, 'header': True, 'document': r's\d+@(.*)'}
    folder = laid_out(tmp_path / 'set', {'{}.tsv': file.getvalue(), 'set.json': json.dumps(said)})
    dataset, _ = texts_in(folder)
    assert [t.words for t in dataset.train] == [(t,) for t in texts.values()]
    assert [t.document for t in dataset.train] == [0, 1, 0]
    assert dataset.labels == ('no', 'yes')
    assert (
        dataset.notes[0] == 'train: fields are quoted, and were read without the quotation marks around them'
    )


@pytest.mark.parametrize('ending', ['csv', 'tsv'])
def test_line_breaks_within_quotes_between_tabs(tmp_path, ending):
    rows = 'text\tlabel\n"A study.\nIt is ""long""."\tyes\n\nshort\tno\n'
    put(tmp_path, {f'x.{ending}': rows.encode()})
    assert [(i.texts, i.line) for i in read_items(tmp_path / f'x.{ending}').items] == [
        (('A study.\nIt is "long".',), 2),
        (('short',), 5),
    ]
    # A text that only begins with a mark does not swallow the lines behind it.
    put(tmp_path, {f'y.{ending}': b'text\tlabel\n"A" study\tyes\n"so\tno\nit is"\tno\n'})
    assert [i.texts for i in read_items(tmp_path / f'y.{ending}').items] == [
        ('"A" study',),
        ('"so',),
        ('it is"',),
    ]


def test_a_bracket_may_be_the_first_word_of_a_table(tmp_path):
    put(tmp_path, {'x.csv': b'sentence_id,token,tag\n0,[,O\n0,Gout,B-D\n0,],O\n'})
    [item] = read_items(tmp_path / 'x.csv').items
    assert (item.words, item.tags) == (('[', 'Gout', ']'), ('O', 'B-D', 'O'))


CHOICE = {'type': 'choices', 'value': {'choices': ['yes']}}


def test_label_studio_has_names_of_texts(tmp_path):
    task = {'id': 1, 'data': {'pmid': 'P7', 'claim': 'Gout.', 'text_b': 'Flu.'}}
    put(tmp_path, {'x.json': json.dumps([task | {'annotations': [{'result': [CHOICE]}]}]).encode()})
    [item] = read_items(tmp_path / 'x.json', Keys(('claim',), '', 'pmid')).items
    assert (item.name, item.texts, item.answers) == ('P7', ('Gout.',), ('yes',))
    put(tmp_path, {'z.json': b'[{"data": {"text": "Gout."}}, {"id": 2, "data": {"text": "Flu."}}]'})
    assert [one.texts for one in read_given([str(tmp_path / 'z.json')], [], False)] == [('Gout.',), ('Flu.',)]
    assert read_items(tmp_path / 'z.json').repairs == {NOT_ANNOTATED: 2}


def test_answers_of_label_studio_are_of_one_question_about_the_text(tmp_path):
    def task(number, **said):
        result = [
            {'type': 'choices', 'from_name': name, 'value': {'choices': [one]}} for name, one in said.items()
        ]
        place = {'start': 0, 'end': 4, 'text': 'Gout'}
        region = [
            {'type': 'labels', 'from_name': 'ner', 'id': 'r', 'value': place | {'labels': ['D']}},
            {'type': 'choices', 'from_name': 'sure', 'id': 'r', 'value': place | {'choices': ['no']}},
        ]
        return {
            'id': number,
            'data': {'text': f'Gout {number}'},
            'annotations': [{'result': region * (not said) + result}],
            'predictions': [{'result': result}],
        }

    both = [task(1, topic='x', tone='good'), task(2, topic='y', tone='bad')]
    several = r'needs "text" .*; it has .*tone, id, .*; name other keys in set\.json'
    another = r"that answer topic and not 'label', as set.json asks, left out: 1; .*: 1"
    least = [{'text': 'a', 'id': 1, 'sentiment': 'good'}]
    wrong = {'set.json': json.dumps({'texts': ['text'], 'answer': 'label'})}
    for number, (tasks, more, message) in enumerate(
        (
            (both, {}, several),
            ([task(1, topic='x'), task(2, tone='bad')], {}, several),
            ([task(1, topic='x'), task(2)], wrong, another),
            (least, {}, r'it has text, id, sentiment; name other keys in set\.json'),
        )
    ):
        folder = laid_out(tmp_path / str(number), {'{}.json': json.dumps(tasks), **more})
        with pytest.raises(InputError, match=message):
            texts_in(folder)
    said = {'texts': ['text'], 'answer': 'Topic'}
    files = {'{}.json': json.dumps([*both, task(3, tone='bad')]), 'set.json': json.dumps(said)}
    dataset, _ = texts_in(laid_out(tmp_path / 'said', files))
    assert [t.answers for t in dataset.train] == [('x',), ('y',)]
    file = put(tmp_path, {'p.json': json.dumps(both).encode()}) / 'p.json'
    assert score(tmp_path / 'said', file, 'classes', {}).measures()['default']['accuracy'] == 1
    put(tmp_path, {'r.json': json.dumps([task(1)]).encode()})
    [item] = read_items(tmp_path / 'r.json').items
    assert (len(item.mentions), item.answers) == (1, None)
    # A text without a region, of which a question is answered that those with regions answer, too.
    marked, plain = task(1), task(2, topic='x')
    marked['annotations'][0]['result'] += plain['annotations'][0]['result']
    put(tmp_path, {'m.json': json.dumps([marked, plain]).encode()})
    assert [s.tags for s in read_iob2(tmp_path / 'm.json')] == [('B-D', 'O'), ('O', 'O')]


def test_answers_that_are_no_labels_are_left_out(tmp_path):
    """A rejected label is none."""
    rows = [
        {'text': t, 'label': 'POS', 'answer': said}
        for t, said in (('a', 'accept'), ('b', 'reject'), ('c', 'ignore'))
    ]
    put(tmp_path, {'x.jsonl': lines(*rows).encode()})
    found = read_items(tmp_path / 'x.jsonl')
    assert [(item.texts, item.answers) for item in found.items] == [(('a',), ('POS',))]
    assert found.repairs == {'texts that were rejected or ignored in Prodigy, left out': 2}


def test_pairs_numbers_and_several_labels(tmp_path):
    for name, content in {
        'jsonl': lines(*(dict(zip(('premise', 'hypothesis', 'label'), row, strict=True)) for row in PAIRS)),
        'csv': table(['Sentence1', 'Sentence2', 'gold_label'], *PAIRS),
        'json': json.dumps([{'words': [a, b], 'answers': [c]} for a, b, c in PAIRS]),
    }.items():
        dataset, _ = texts_in(laid_out(tmp_path / name, {f'{{}}.{name}': content}))
        assert [(*t.words, *t.answers) for t in dataset.train] == PAIRS
    near = lines(*({'text1': a, 'text2': b, 'score': n / 2} for n, (a, b, _) in enumerate(PAIRS)))
    dataset, _ = texts_in(laid_out(tmp_path / 'near', {'{}.jsonl': near}), 'similarity')
    assert [t.answers for t in dataset.train] == [(0.0,), (0.5,), (1.0,)]
    # Several labels are seen in the lists; a comma in a label is a part of it.
    kinds = {
        'lists': {'{}.jsonl': lines(*({'text': t, 'labels': a} for t, a in SEVERAL))},
        'csv': {'{}.csv': table(['text', 'labels'], *([t, json.dumps(a)] for t, a in SEVERAL))},
        'hub': {
            '{}.parquet': parquet(
                {'text': [t for t, _ in SEVERAL], 'labels': [['a', 'b, c'], [], ['b, c']]},
            )
        },
        'numbered': {
            '{}.parquet': parquet(
                {'text': [t for t, _ in SEVERAL], 'labels': [[0, 1], [], [1]]},
                {'text': STRING, 'labels': each(label('a', 'b, c'))},
            )
        },
    }
    for name, files in kinds.items():
        folder = laid_out(tmp_path / name, files)
        dataset, chosen = texts_in(folder, 'entities')  # found in the files, whatever the task of other sets
        assert [t.answers for t in dataset.train] == [tuple(a) for _, a in SEVERAL]
        assert (chosen.task, dataset.labels) == ('classes', ('a', 'b, c'))
        assert re.match(r"read as (JSON|CSV|table): text from 'text', answer from 'labels'", dataset.notes[0])
        assert list(task_for(chosen).metrics) == ['default', 'macro_f1', 'example_f1']
        file = split_files(folder, 'test')[0]
        assert score(folder, file, 'entities', {}).measures()['default']['f1'] == 1
    said = {'texts': ['abstract'], 'answer': 'verdict', 'name': 'pmid', 'several': True}
    for end, content in {
        'csv': table(['pmid', 'abstract', 'verdict'], *([n, t, 'x,y'] for n, (t, _) in enumerate(TEXTS))),
        'jsonl': lines(
            *({'pmid': n, 'abstract': t, 'verdict': ['y', 'x']} for n, (t, _) in enumerate(TEXTS))
        ),
    }.items():
        files = {f'{{}}.{end}': content, 'set.json': json.dumps(said)}
        dataset, _ = texts_in(laid_out(tmp_path / f'described-{end}', files))
        assert [t.answers for t in dataset.train] == [('x', 'y')] * 3


def test_a_folder_that_datasets_saved_is_read_by_every_verb(tmp_path):
    columns = {
        'tokens': [[w for w, _ in s] for s in SENTENCES],
        'ner_tags': [numbers([t for _, t in s]) for s in SENTENCES],
    }
    types = {'tokens': each(STRING), 'ner_tags': each(label(*TAGS))}
    folder = save_splits(tmp_path / 'set', dict.fromkeys(('train', 'validation', 'test'), columns), types)
    assert [(s.words, s.tags) for s in read_dataset(folder).train] == [
        tuple(zip(*s, strict=True)) for s in SENTENCES
    ]
    assert score(folder, split_files(folder, 'test')[0], 'entities', {}).measures()['default']['f1'] == 1
    assert len(read_given([str(folder)], [], False)) == 9
    [one] = chosen_sets(Finetune(folder=str(tmp_path)))
    assert one.name == 'set'


def test_what_offsets_count_is_decided_by_the_text_that_stands_there_and_said(tmp_path):
    for content, ending, said in (
        (bioc('utf-8'), 'xml', 'offsets that count bytes of UTF-8, as the quoted texts show, read so'),
        (bioc(), 'xml', ''),
        (
            label_studio('utf-16-le'),
            'json',
            'offsets that count units of UTF-16, as the quoted texts show, read so',
        ),
        (label_studio(), 'json', ''),
    ):
        put(tmp_path, {f'x.{ending}': content.encode()})
        found = read_items(tmp_path / f'x.{ending}')
        assert [what for what in found.repairs if 'count' in what] == [said] * bool(said)
        assert found.repairs['annotations that are not mentions'] == 1 if ending == 'json' else True
    # Nothing is quoted: characters are meant, and where that may be wrong it is said.
    put(tmp_path, {'x.jsonl': lines({'text': '😀 gout', 'label': [[2, 6, 'D']]}).encode()})
    found = read_items(tmp_path / 'x.jsonl')
    assert 'without a quoted text: offsets are read as Unicode characters' in ''.join(found.repairs)


def test_parts_types_and_sentences_of_bioc(tmp_path):
    """A mention in two places, one without a type, a passage in sentences, and an annotation of it as a whole."""

    def annotation(places, quoted, kind):
        infons = f'<infon key="type">{kind}</infon>' * bool(kind)
        places = ''.join(f'<location offset="{a}" length="{n}"/>' for a, n in places)
        return f'<annotation>{infons}{places}<text>{quoted}</text></annotation>'

    content = (
        '<collection><document><id>1</id><passage><offset>5</offset><sentence><offset>5</offset><text>Gout and é.'
        '</text>'
        f'{annotation([(5, 4)], "Gout", "")}</sentence><sentence><offset>17</offset><text>Lung or breast cancer.</text>'
        f'</sentence>{annotation([(17, 4), (32, 6)], "Lung cancer", "D")}</passage>'
        '<relation><node refid="1" role="x"/></relation></document></collection>'
    )
    put(tmp_path, {'x.xml': content.encode()})
    found = read_items(tmp_path / 'x.xml')
    [item] = found.items
    assert item.texts == ('Gout and é.\nLung or breast cancer.',)
    assert [(m.kind, item.texts[0][m.start : m.end], m.pieces) for m in item.mentions] == [
        ('entity', 'Gout', 1),
        ('D', 'Lung or breast cancer', 2),
    ]
    assert found.repairs == {
        'annotations that are not mentions': 1,
        "annotations without a type, which are called 'entity'": 1,
    }


def test_annotations_of_a_document_of_bioc_are_in_its_passages(tmp_path):
    """The library `bioc` writes them so; one without a place is about the document."""
    passages = [{'offset': 0, 'text': 'Gout hurts.'}, {'offset': 13, 'text': 'Also flu.'}]
    marked = [('D', 'flu', 18), ('D', 'Gout', 0)]
    annotations = [
        {'infons': {'type': kind}, 'text': quoted, 'locations': [{'offset': at, 'length': len(quoted)}]}
        for kind, quoted, at in marked
    ]
    document = {'id': '1', 'passages': passages, 'annotations': [*annotations, {'infons': {'type': 'mesh'}}]}
    inside = ''.join(
        f'<passage><offset>{one["offset"]}</offset><text>{one["text"]}</text></passage>' for one in passages
    ) + ''.join(
        f'<annotation><infon key="type">{kind}</infon><location offset="{at}" length="{len(quoted)}"/>'
        f'<text>{quoted}</text></annotation>'
        for kind, quoted, at in marked
    )
    content = f'<collection><document>{inside}<annotation/></document></collection>'
    put(tmp_path, {'x.json': json.dumps(document).encode(), 'x.xml': content.encode()})
    for name in ('x.json', 'x.xml'):
        found = read_items(tmp_path / name)
        [item] = found.items
        assert [item.texts[0][m.start : m.end] for m in item.mentions] == ['Gout', 'flu']
        assert found.repairs == {'annotations that are not mentions': 1}


def test_a_passage_with_an_empty_text_has_the_texts_of_its_sentences(tmp_path):
    content = (
        '<collection><document><id>1</id><passage><offset>0</offset><text/><sentence><offset>0</offset>'
        '<text>Gout.</text></sentence></passage></document></collection>'
    )
    put(tmp_path, {'x.xml': content.encode()})
    [item] = read_items(tmp_path / 'x.xml').items
    assert item.texts == ('Gout.',)


def test_sentences_that_are_counted_anew_in_each_document_stay_apart(tmp_path):
    rows = [f'{document},0,{word},O' for document in ('a', 'b') for word in ('It', 'hurts')]
    put(tmp_path, {'x.csv': '\n'.join(['doc_id,sentence_id,token,tag', *rows]).encode()})
    assert [item.words for item in read_items(tmp_path / 'x.csv').items] == [('It', 'hurts')] * 2


def test_sentences_keep_the_documents_that_are_named_beside_them(tmp_path):
    """JSON, CSV and TFDS can name documents; "id" numbers sentences. One without a name goes on with the last."""
    named = ['7', '7', '', '9', '7']
    records = [{'id': str(at), 'pmid': n, 'tokens': ['It'], 'ner_tags': ['O']} for at, n in enumerate(named)]
    put(tmp_path, {'x.jsonl': lines(*records).encode()})
    rows = [f'{at},{n},It,O' for at, n in enumerate(named)]
    put(tmp_path, {'x.csv': '\n'.join(['sentence_id,document,token,tag', *rows]).encode()})
    for name in ('x.jsonl', 'x.csv'):
        read = split_of(tmp_path / name, read_items(tmp_path / name)).sentences
        assert [s.document for s in read] == [0, 0, 0, 1, 0]
        assert [s.source for s in read] == ['7', '7', '7', '9', '7']
    put(tmp_path, {'y.jsonl': lines(*({**r, 'pmid': None} for r in records)).encode()})
    assert {s.document for s in split_of(tmp_path / 'y', read_items(tmp_path / 'y.jsonl')).sentences} == {0}


def test_texts_keep_the_documents_that_are_named_beside_them(tmp_path):
    """Entities and labels of sentences, too; a text that names no document is one of its own."""
    named = ['7', '7', None, '9', None, '7']
    records = [{'id': f's{at}', 'pmid': n, 'text': f'It hurts {at}.'} for at, n in enumerate(named)]
    put(tmp_path, {'x.jsonl': lines(*({**r, 'entities': [[0, 2, 'P']]} for r in records)).encode()})
    read = split_of(tmp_path / 'x.jsonl', read_items(tmp_path / 'x.jsonl')).sentences
    assert [s.document for s in read] == [0, 0, 1, 2, 3, 0]
    assert [s.source for s in read] == [f's{at}' for at in range(6)]
    put(tmp_path, {'y.jsonl': lines(*({**r, 'label': 'yes'} for r in records)).encode()})
    assert [text.document for text in read_file(tmp_path / 'y.jsonl', None, False)] == [0, 0, 1, 2, 3, 0]
    put(tmp_path, {'z.jsonl': lines(*({**r, 'label': 'yes', 'pmid': None} for r in records)).encode()})
    assert {text.document for text in read_file(tmp_path / 'z.jsonl', None, False)} == {0}


def test_blanks_around_a_label_of_a_list_are_not_part_of_it(tmp_path):
    put(tmp_path, {'x.jsonl': lines({'text': 'Gout', 'labels': ['x ', 'y']}).encode()})
    [item] = read_items(tmp_path / 'x.jsonl').items
    assert item.answers == ('x', 'y')


@pytest.mark.parametrize('gold', ['entities', 'spans', 'label'])
@pytest.mark.parametrize('key', ['predicted', 'predicted_entities'])
@pytest.mark.parametrize('found', [[], [[0, 4, 'D']]])
def test_what_a_model_found_is_read_beside_gold_mentions(tmp_path, gold, found, key):
    record = {'text': 'Gout and flu', gold: [[9, 12, 'D']], key: found}
    put(tmp_path, {'x.jsonl': lines(record).encode()})
    [item] = read_items(tmp_path / 'x.jsonl', PREDICTED_KEYS).items
    assert [(m.start, m.end) for m in item.mentions] == [tuple(one[:2]) for one in found]
    [item] = read_items(tmp_path / 'x.jsonl').items
    assert [(m.start, m.end) for m in item.mentions] == [(9, 12)]
    put(tmp_path, {'y.jsonl': lines(record | {key: 'Gout'}).encode()})
    with pytest.raises(InputError, match=f"'{key}' holds no list of entities"):
        read_items(tmp_path / 'y.jsonl', PREDICTED_KEYS)


def test_predictions_of_label_studio_are_read_as_answers(tmp_path):
    def task(number, annotated, predicted):
        results = [
            [
                {'result': [{'type': 'labels', 'value': {'start': at, 'end': at + 3, 'labels': ['D']}}]}
                for at in places
            ]
            for places in (annotated, predicted)
        ]
        data = {'text': 'Flu and flu and flu'}
        return {'id': number, 'data': data, 'annotations': results[0], 'predictions': results[1]}

    put(tmp_path, {'x.json': json.dumps([task(1, [0], [8]), task(2, [8], [16])]).encode()})
    places = [
        [m.start for item in read_items(tmp_path / 'x.json', *keys).items for m in item.mentions]
        for keys in ((), (PREDICTED_KEYS,))
    ]
    assert places == [[0, 8], [8, 16]]
    put(tmp_path, {'z.json': json.dumps([task(1, [0], [8]), task(2, [8], [])]).encode()})
    [_, nothing] = read_items(tmp_path / 'z.json', PREDICTED_KEYS).items
    assert nothing.mentions == ()
    put(tmp_path, {'y.json': json.dumps([task(1, [0], []), task(2, [8], [8])]).encode()})
    with pytest.raises(
        InputError, match='is read by its predictions, but a task before it by its annotations'
    ):
        read_items(tmp_path / 'y.json', PREDICTED_KEYS)


def test_texts_without_a_mention_may_say_nothing(tmp_path):
    """An unmarked task of JSON-MIN has no key, nor has an accepted text of Prodigy; a cell of CSV is empty."""
    region = {'start': 0, 'end': 4, 'text': 'Gout', 'labels': ['D']}
    place = {'start': 0, 'end': 4, 'label': 'D'}
    prodigy = [{'text': 'None.', '_task_hash': 1, 'answer': 'accept'}]
    files = {
        'a.json': json.dumps([{'id': 1, 'text': 'None.'}, {'id': 2, 'text': 'Gout.', 'label': [region]}]),
        'b.jsonl': lines(*prodigy, {**prodigy[0], 'text': 'Gout.', 'spans': [place]}),
        'c.csv': table(['text', 'label'], ['None.', ''], ['Gout.', json.dumps([region])]),
        'd.csv': table(['text', 'entities'], ['None.', ''], ['Gout.', '[[0, 4, "D"]]']),
    }
    for name, content in files.items():
        put(tmp_path, {name: content.encode()})
        read = read_iob2(tmp_path / name)
        assert [(s.words, s.tags) for s in read] == [
            (('None', '.'), ('O',) * 2),
            (('Gout', '.'), ('B-D', 'O')),
        ]
        assert split_of(tmp_path / name, read_items(tmp_path / name)).repairs == {UNSAID: 1}
        assert not holds_texts(tmp_path / name)
    # Mentions that are written otherwise, or under another key, are not taken for none.
    marked = {'text': 'Gout.', 'entities': [[0, 4, 'D']]}
    printed = table(['text', 'entities'], ['None.', '[]'], ['Gout.', "[(0, 4, 'D')]"])
    refused = [('g.csv', printed, "g.csv:3: column 'entities' holds a list as Python prints it")]
    for key, said in (('entites', [[0, 4, 'D']]), ('entities', "[[0, 4, 'D']]"), ('label', [[0, 4]])):
        message = f"f.jsonl:2: .* it has text, {key}; '{key}' is not read as men"
        refused.append(('f.jsonl', lines(marked, {'text': 'Gout.', key: said}), message))
    for name, content, message in refused:
        put(tmp_path, {name: content.encode()})
        with pytest.raises(InputError, match=message):
            read_iob2(tmp_path / name)
    # Of a region that has lost its label nothing is known.
    empty = region | {'labels': []}
    put(tmp_path, {'e.json': json.dumps([{'text': 'Gout.', 'label': [region, empty]}]).encode()})
    found = read_items(tmp_path / 'e.json')
    assert ([len(item.mentions) for item in found.items], found.repairs) == ([1], {NO_TYPE: 1})


OTHERS = {
    'unsaid numbers': (
        'jsonl',
        lines(*of_words('ner_tags', numbers)),
        'jsonl:1: unknown tag .1.; it is a number',
    ),
    'pieces': (
        'jsonl',
        lines({'tokens': ['a'], 'ner_tags': [-100]}),
        'has -100 for a tag, as sets that are cut',
    ),
    'the second of a line': (
        'json',
        json.dumps([{'text': 'a', 'entities': []}, {'text': 'b', 'entities': [[0, 9, 'D']]}]),
        r'json:1, record 2: the entity \[0, 9',
    ),
    'half': ('jsonl', '{"text": "\\ud83d", "entities": []}', 'holds half of a character'),
    'another quotation': (
        'jsonl',
        lines({'text': 'gout', 'spans': [dict(start=0, end=4, label='D', text='Rats')]}),
        "characters 0 to 4 of the text are 'gout', not 'Rats'",
    ),
    'no offsets': (
        'jsonl',
        lines({'text': 'gout', 'entities': [{'text': 'gout', 'type': 'D'}]}),
        'is not .start, end',
    ),
    'without a text': (
        'jsonl',
        lines({'tokens': ['a'], 'entities': [[0, 1, 'D']]}),
        'has no "text", to which the',
    ),
    'one lacks them': (
        'jsonl',
        lines({'text': 'a', 'entities': [[0, 1, 'D']]}, {'text': 'b', 'label': 'x'}),
        r'jsonl:2: needs "text" with "entities", as the others have; it has text, label',
    ),
    'an address': (
        'json',
        json.dumps([{'data': {'text': 'https://x.org/a.txt'}, 'annotations': [{'result': []}]}]),
        'has the address of a text',
    ),
    'of which text': (
        'json',
        json.dumps([{'data': {'a': 'b c', 'd': 'e f'}, 'annotations': [{'result': []}]}]),
        'which of its data is the text is not known .a, d.; call it "text"',
    ),
    'of pictures': (
        'json',
        json.dumps(
            [{'data': {'text': 'b'}, 'annotations': [{'result': [{'type': 'rectanglelabels', 'value': {}}]}]}]
        ),
        "regions of the type 'rectanglelabels'; read are those of text",
    ),
    'nobody did': (
        'json',
        json.dumps([{'data': {'text': 'b'}, 'annotations': []}]),
        'holds no record; tasks of Label',
    ),
    'a list of Python': (
        'csv',
        table(['tokens', 'ner_tags'], ["['a', 'b']", "['O', 'O']"]),
        'as Python prints it',
    ),
    'no end': (
        'csv',
        table(['word', 'tag'], ['a', 'O'], ['b', 'O']),
        'no column "sentence_id" and no blank line',
    ),
    'no names': (
        'csv',
        table(['a', 'b'], ['c', 'd']),
        r'csv:1: names the columns a, b; its first line has to name',
    ),
    'an open quotation': (
        'csv',
        'text,label\n"a,b\n',
        'csv:2: is not comma-separated text .unexpected end of data.',
    ),
    'other XML': (
        'xml',
        '<article/>',
        r'is XML, but not BioC \(it begins with <article>\); .* read are text, CoNLL',
    ),
    'cut XML': ('xml', '<collection><document>', 'is cut off or not well-formed XML'),
    'no places': (
        'json',
        json.dumps({'passages': [{'offset': 0, 'text': 'a', 'annotations': [{'text': 'a'}]}]}),
        'an annotation has no locations with offset and length',
    ),
    'half a pair': (
        'json',
        json.dumps([{'data': {'text': 'Gout.', 'text_b': 'Flu.'}, 'annotations': [{'result': [CHOICE]}]}]),
        r"json:1: has 'text' and 'text_b', so one text would go unread",
    ),
    'beyond the text': (
        'jsonl',
        lines({'text': '😀 gout', 'label': [[3, 7, 'D']]}),
        r"jsonl:1: the entity \[3, 7, 'D'\] is not within its text of 6 char",
    ),
    'no ends of sentences': (
        'csv',
        'doc_id,word,tag\n1,a,O\n2,b,O\n2,c,O\n',
        'no blank line that says where sentences end',
    ),
    'cut gzip': ('jsonl.gz', gzip.compress(b'{}' * 99)[:-9], 'is cut off or damaged gzip'),
}


@pytest.mark.parametrize('flaw', OTHERS)
def test_what_is_wrong_with_a_foreign_file_is_one_line_for_every_verb(tmp_path, flaw):
    ending, content, message = OTHERS[flaw]
    folder = laid_out(tmp_path / 'set', {f'{{}}.{ending}': content})
    with pytest.raises(InputError, match=message) as raised:
        read_dataset(folder)
    assert '\n' not in str(raised.value)
    assert len(str(raised.value)) - len(str(folder)) < 300
    assert look_through(folder, {}).errors == [str(raised.value)]


@pytest.mark.parametrize('name', ['x.spacy', 'x.xlsx', 'x.pkl', 'x.yaml', 'x.zip', 'x.tsv.bz2', 'x.xmi'])
def test_every_refused_form_names_what_is_read(tmp_path, name):
    """Inputs of predict, gold standards and predictions of score."""
    put(tmp_path, {name: b'PK\x03\x04' if 'x.x' in name else b'x'})
    gold = laid_out(tmp_path / 'set', BY_WORDS['CoNLL, compressed'])
    for refused in (
        lambda: read_given([str(tmp_path / name)], [], False),
        lambda: score(tmp_path / name, split_files(gold, 'test')[0], 'entities', {}),
        lambda: score(gold, tmp_path / name, 'entities', {}),
    ):
        with pytest.raises(
            InputError, match=r'read are text, CoNLL, PubTator, BRAT, BioC, JSON, CSV, and tables'
        ):
            refused()


def test_no_line_is_longer_than_300_letters(tmp_path):
    """A wrong column of labels had ended in a line of 85,699."""
    names = [f'a label of some length, number {n}' for n in range(500)]
    rows = [f'text {n}\t{name}' for n, name in enumerate(names)]
    folder = laid_out(tmp_path / 'set', {'{}.tsv': '\n'.join(rows)})
    put(folder, {'test.tsv': b'A text.\tone of another column\n'})
    sets = {
        'tsv': lambda: texts_in(folder),
        'score': lambda: score(
            folder / 'train.tsv',
            put(tmp_path, {'p.jsonl': lines({'answers': ['z']}).encode()}) / 'p.jsonl',
            'classes',
            {},
        ),
    }
    wide = lines({**{name: 1 for name in names}, 'text': 'a'})
    for end, content in {'jsonl': wide, 'csv': table(names, names)}.items():
        other = laid_out(tmp_path / end, {f'{{}}.{end}': content})
        sets[end] = lambda other=other: texts_in(other)
        sets[f'words {end}'] = lambda other=other: read_dataset(other)
    said = {'texts': [1], 'answer': 2, 'labels': names}
    described = laid_out(tmp_path / 'said', {'{}.tsv': 'a\tb\n', 'set.json': json.dumps(said)})
    sets['described'] = lambda: texts_in(described)
    many = laid_out(tmp_path / 'types', {'{}.tsv': ''.join(f'a\tB-{n}{"x" * 20}\n\n' for n in range(500))})
    sets['types'] = lambda: score(
        many,
        laid_out(tmp_path / 'q', {'{}.tsv': ''.join(f'a\tB-{n}{"y" * 20}\n\n' for n in range(500))})
        / 'test.tsv',
        'entities',
        {},
    )
    same = laid_out(tmp_path / 'same', {'{}.tsv': '\n'.join(rows * 2)})
    looked = look_through(same, {}, 'classes')
    assert not looked.errors
    every = [line for of_one in looked.lines for line in of_one]
    assert max(map(len, every)) <= 300
    assert any(line.endswith('500 different labels; is this the column?') for line in every)
    for name, read in sets.items():
        with pytest.raises(InputError) as raised:
            read()
        line = str(raised.value).replace(str(tmp_path), '')
        assert len(line) <= 300, (name, line[:400])
        if name in ('tsv', 'described'):
            assert line.endswith('500 different labels; is this the column?')
            assert line.count('a label of some l...') == 5


def test_columns_that_hold_no_text_for_predict_are_to_be_renamed(tmp_path):
    """set.json says how a set is read, and nothing of what is answered."""
    (tmp_path / 'a.csv').write_text('abstract,verdict\nA dose.,yes\n')
    with pytest.raises(
        InputError, match=r'names the columns abstract, verdict; .* the texts: "text", or "sen'
    ) as error:
        read_given([str(tmp_path / 'a.csv')], [], True)
    assert 'set.json' not in str(error.value)


def test_originals_of_a_public_set_point_to_rebuild(tmp_path, data, capsys):
    assert {*REBUILT} == {*BUILDERS}
    folder = data / 'blurb' / 'pubmedqa'
    made = f'`bioptimus rebuild --set=pubmedqa --from={folder} --to=sets` makes the set'
    for arguments in (
        ['lint', f'--sets={folder}'],
        ['score', str(folder), str(folder / 'ori_pqal.json')],
    ):
        assert cli.main(arguments) == 3
        assert made in capsys.readouterr().err
    with pytest.raises(
        InputError, match=r'has no set pubmedqa; found: .*`bioptimus rebuild --set=pubmedqa --from='
    ):
        chosen_sets(Finetune(folder=str(data / 'blurb'), datasets=('pubmedqa',)))
    assert cli.main(['rebuild', '--set=pubmedqa', f'--from={folder}', f'--to={tmp_path}']) == 0


KEYS = (
    'text tokens words ner_tags label labels entities spans ents answers predicted passages documents offset offsets '
    'annotations locations length data result value choices type start end accept answer _task_hash cats relations'
).split()
SCRAPS = [
    'a b',
    'O',
    'B-X',
    '',
    None,
    1,
    0,
    -1,
    -100,
    2.5,
    True,
    'é😀',
    [0, 1, 'D'],
    [0, 1],
    'accept',
    'labels',
]


def test_any_json_is_read_or_is_an_error_of_one_line(tmp_path):
    drawn = random.Random(0)

    def value(depth=0):
        kind = drawn.random()
        if depth > 4 or kind < 0.35:
            return drawn.choice(SCRAPS)
        if kind < 0.6:
            return [value(depth + 1) for _ in range(drawn.randint(0, 3))]
        return {drawn.choice(KEYS): value(depth + 1) for _ in range(drawn.randint(0, 5))}

    file, refused = tmp_path / 'x.json', 0
    for _ in range(400):
        file.write_text(json.dumps([value() for _ in range(2)] if drawn.random() < 0.5 else value()))
        try:
            read_items(file)
            read_iob2(file)
        except InputError as error:
            refused += 1
            assert str(file) in str(error)  # noqa: PT017
            assert len(str(error)) - len(str(file)) < 300  # noqa: PT017
    assert 0 < refused < 400


def test_the_page_of_forms_names_each_of_them_and_folders_that_are_no_sets_are_said(tmp_path):
    page = (Path(__file__).resolve().parents[1] / 'docs' / 'howto' / 'forms.md').read_text('utf-8')
    named = [
        *FORMS,
        *(dialect.name for dialect in DIALECTS),
        *TEXT_ENDINGS,
        *tables.READERS,
        'doccano',
        'predict',
    ]
    assert [name for name in named if name not in page] == []
    files = {'a/train.tsv': CONLL.encode(), 'raw/x.pdf': b'%PDF', 'pubmedqa/ori_pqal.json': b'{}'}
    found, raw = look_through(put(tmp_path, files), {}).left_out
    assert raw == 'raw: left out, as it has no training split; it holds x.pdf'
    assert '; if these are its originals, `bioptimus rebuild --set=pubmedqa --from=' in found


def test_ones_and_zeros_and_nothing_are_no_names_of_labels(tmp_path):
    """Columns of yes and no, as a Trainer takes them, are refused; NaN is no answer; numbers are in their order."""
    for split in ('train', 'devel', 'test'):
        rows = [{'text': f'text {n}', 'labels': [1.0 * (n % 2), 0.0, 1.0]} for n in range(6)]
        put(tmp_path, {f'hot/{split}.jsonl': lines(*rows).encode()})
        rows = [{'text': f'text {n}', 'label': n} for n in (2, 10, 1, 11)]
        put(tmp_path, {f'numbers/{split}.jsonl': lines(*rows).encode()})
        put(tmp_path, {f'nothing/{split}.jsonl': lines({'text': 'a', 'label': float('nan')}, *rows).encode()})
    chosen = set_at(tmp_path / 'numbers', 'classes')
    assert list(task_for(chosen).read(chosen).labels) == ['1', '2', '10', '11']
    assert in_order(['2', '01', '1', '02']) == ['01', '1', '02', '2']
    assert in_order(['b', '10', '9']) == ['10', '9', 'b']
    nothing = set_at(tmp_path / 'nothing', 'classes')
    for read, of, message in (
        (
            set_at,
            (tmp_path / 'hot', 'classes'),
            'its labels are lists of 3 zeros and ones; give the names of the labels',
        ),
        (task_for(nothing).read, (nothing,), 'jsonl:1: its label is not given; leave such rows out'),
    ):
        with pytest.raises(InputError, match=message):
            read(*of)
