"""Corpus: readers name what is wrong, the store returns what was written, the audit finds leaks by text."""

import gzip
import itertools
import json
import pickle
import re
import shutil
import unicodedata
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from toy_prepared import prepare

from bioptimus_jax.corpus import audit, build, documents, readers
from bioptimus_jax.corpus.config import Audit, Corpus
from bioptimus_jax.corpus.documents import Document, open_documents, write_documents
from bioptimus_jax.corpus.records import Record
from bioptimus_jax.errors import ConfigError, InputError, Stopped
from bioptimus_jax.experiment import config
from bioptimus_jax.experiment.schema import Experiment
from bioptimus_jax.finetuning.config import Finetune
from bioptimus_jax.records.corpus import AuditedSentence
from bioptimus_jax.run.execute import execute
from bioptimus_jax.run.folder import Run
from bioptimus_jax.run.stage import Stage
from bioptimus_jax.sets.corpora import chosen_sets
from bioptimus_jax.storage.files import read_json, read_jsonl

LEAK = 'Torsade de pointes ventricular tachycardia during low dose intermittent dobutamine treatment .'
TWELVE_WORDS = 'this document has twelve words so that no filter leaves it out'


def records(path: Path, rows: Sequence[dict[str, Any]]) -> str:
    path.write_text(''.join(json.dumps(row) + '\n' for row in rows), 'utf-8')
    return str(path)


def read(*inputs: str | Path, **changes) -> list[Document]:
    return list(readers.read_inputs(Corpus(inputs=tuple(map(str, inputs)), **changes)))


def read_strictly(path: Path, **changes) -> list[Record]:
    settings = Corpus(inputs=(str(path),), on_bad_record='fail', **changes)
    return [
        record for file in readers.input_files(settings) for record in readers.read_file(file, 'x', settings)
    ]


def numbered(count: int) -> list[Document]:
    return [Document(f'id-{i}', f'téxt {i}\nsecond line', 'made') for i in range(count)]


def corpus_run(workdir: Path, inputs: str, quiet: bool = True, **changes) -> tuple[Run, dict]:
    """A finished corpus stage and its manifest, through the run folder's own machinery."""
    settings_of_corpus = config.defaults()
    settings_of_corpus.corpus.inputs = (inputs,)
    settings_of_corpus.corpus.near.threshold = 0.0  # texts that differ by a number are different here
    for key, value in changes.items():
        config.override(settings_of_corpus, f'corpus.{key.replace("__", ".")}', str(value))
    run = Run(workdir, Experiment.from_config(settings_of_corpus), quiet=quiet)
    stage = Stage('corpus', '', '', '', ('corpus',), lambda e: (), build.build, build.external_inputs)
    return run, execute(run, stage)


@pytest.fixture
def ner_sets(tmp_path: Path) -> Path:
    """Two sets that share a sentence, as BC5-chem and BC5-disease do, and a sentence too short to tell."""
    for name in ('chem', 'disease'):
        folder = tmp_path / 'ner' / name
        folder.mkdir(parents=True)
        tokens = '\n'.join(f'{token}\tO' for token in LEAK.split())
        (folder / 'test.tsv').write_text(f'-DOCSTART-\tO\n\n{tokens}\n\nNo\tO\neffect\tO\n', 'utf-8')
        (folder / 'devel.tsv').write_text('Short\tO\n', 'utf-8')
    return tmp_path / 'ner'


def test_jsonl_joins_fields_and_tolerates_empty_ones(tmp_path):
    rows: list[dict[str, Any]] = [
        {'id': 7, 'title': ' A\ttitle ', 'abstract': 'One\nline.\n\nA  paragraph.'},
        {'id': 'b', 'title': None, 'abstract': 'Only text'},
        {'id': 'c', 'title': 'Only title'},
    ]
    found = read(records(tmp_path / 'x.jsonl', rows))
    assert [(d.id, d.text, d.source) for d in found] == [
        ('7', 'A title\nOne line.\nA paragraph.', 'x.jsonl'),
        ('b', 'Only text', 'x.jsonl'),
        ('c', 'Only title', 'x.jsonl'),
    ]


def test_empty_ids_are_made_from_the_text(tmp_path):
    rows = [{'id': name, 'title': text} for name, text in (('', 'one'), (None, 'two'), ('', 'one'))]
    one, two, again = (d.id for d in read(records(tmp_path / 'x.jsonl', rows)))
    assert one == again != two
    assert read(records(tmp_path / 'y.jsonl', rows[2:]))[0].id == one


def test_paragraphs_are_joined_to_documents(tmp_path):
    text = '\ufeffone two\r\nthree\r\n\r\n \t \r\nfour five\r\n\r\nsix seven eight nine\n\nten'
    (tmp_path / 'book.txt.gz').write_bytes(gzip.compress(text.encode()))
    found = read(tmp_path / 'book.txt.gz', words_per_document=4)
    assert [(d.id, d.text) for d in found] == [
        ('book-0', 'one two three\nfour five'),
        ('book-1', 'six seven eight nine'),
        ('book-2', 'ten'),
    ]


def test_a_csv_column_with_quoted_commas_and_line_breaks(tmp_path):
    long = 'word ' * 30_000 + 'end'
    (tmp_path / 'x.csv').write_text(f'"3","Fears, in ""T N""","two\nlines"\n\n4,b,"{long}"\n', 'utf-8')
    found = [read(tmp_path / 'x.csv', tsv_column=column, words_per_document=1) for column in (1, 2)]
    assert [[d.text for d in documents] for documents in found] == [
        ['Fears, in "T N"', 'b'],
        ['two lines', long],
    ]


def test_tsv_column_and_ids_of_files_with_one_name(tmp_path):
    for folder in ('a', 'b'):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / 'x.tsv').write_text(f'no\t"{folder} b\n\nno\tc\tno\n', 'utf-8')
    found = read(tmp_path / '*' / 'x.tsv', tsv_column=1, words_per_document=2)
    assert [(d.id, d.text) for d in found] == [
        ('x-0', '"a b'),
        ('x-1', 'c'),
        ('x~2-0', '"b b'),
        ('x~2-1', 'c'),
    ]


def test_patterns_expand_sorted_and_once(tmp_path):
    for name in ('b.txt', 'a.txt', 'c.tsv'):
        (tmp_path / name).write_text('words', 'utf-8')
    found = readers.input_files(Corpus(inputs=(str(tmp_path / 'c.tsv'), str(tmp_path / '*'))))
    assert [p.name for p in found] == ['c.tsv', 'a.txt', 'b.txt']


def test_advance_adds_up_to_the_stored_bytes(tmp_path):
    (tmp_path / 'a.txt').write_text('words\n' * 2000, 'utf-8')
    (tmp_path / 'b.txt.gz').write_bytes(gzip.compress(b'words\n' * 2000))
    told: list[int] = []
    for path in tmp_path.iterdir():
        list(readers.read_file(path, path.stem, Corpus(), told.append))
    assert sum(told) == sum(p.stat().st_size for p in tmp_path.iterdir())


GOOD = b'{"id": "1", "title": "a title"}\n'
BAD_FILES = {
    'cut.jsonl.gz': (gzip.compress(GOOD * 5000)[:-20], r'cut\.jsonl\.gz: .*cut-off'),
    'not.jsonl.gz': (GOOD, r'not\.jsonl\.gz: .*gzip'),
    'bytes.jsonl': (GOOD + b'\xff\n', r'bytes\.jsonl:2: is not UTF-8 \(byte 0xff'),
    'bytes.txt': (b'fine\n\nna\xefve\n', r'bytes\.txt:3: is not UTF-8'),
    'json.jsonl': (GOOD + b'\n{"id": 1,}\n', r'json\.jsonl:3: is not JSON .*; correct .*on_bad_record=skip'),
    'deep.jsonl': (b'[' * 100_000 + b'\n', r'deep\.jsonl:1: is not JSON'),
    'list.jsonl': (GOOD + b'["1"]\n', r'list\.jsonl:2: is JSON, but not an object'),
    'id.jsonl': (GOOD + b'{"title": "x"}\n', r"id\.jsonl:2: has no 'id'.*id_field"),
    'idtype.jsonl': (b'{"id": true, "title": "x"}\n', r"idtype\.jsonl:1: 'id' is neither"),
    'fields.jsonl': (
        b'{"id": "1", "body": "x"}\n',
        r'fields\.jsonl:1: has none of the text fields \(title, abstract\)',
    ),
    'type.jsonl': (b'{"id": "1", "title": 5}\n', r"type\.jsonl:1: 'title' is not a string"),
    'quotes.csv': (b'1,"a"\n2,"b" c"\n', r'quotes\.csv:2: is not comma-separated'),
    'open.csv': (b'1,"a\n' + b'2,b\n' * 40_000, r'open\.csv:40001: is not comma-separated .*quotation marks'),
    'column.tsv': (b'a\tb\nc\n', r'column\.tsv:2: has 1 column.*tsv_column'),
    'zero.txt': (b'', r'zero\.txt: is empty'),
    'unknown.html': (b'<a/>', r'unknown\.html: unknown kind.*\.jsonl\[\.gz\]'),
}


@pytest.mark.parametrize('name', BAD_FILES)
def test_bad_files_give_one_line_that_names_them(tmp_path, name):
    content, message = BAD_FILES[name]
    (tmp_path / name).write_bytes(content)
    with pytest.raises(InputError, match=message) as caught:
        read_strictly(tmp_path / name, tsv_column=1)
    assert '\n' not in str(caught.value)


def test_inputs_that_are_not_there(tmp_path):
    for inputs, error, message in (
        ([tmp_path / 'none' / '*.txt'], InputError, r'none/\*\.txt: no such file'),
        ([tmp_path], InputError, 'is a folder'),
        ([], ConfigError, r'config\.corpus\.inputs'),
    ):
        with pytest.raises(error, match=message):
            read(*inputs)


def test_latin_1_on_request(tmp_path):
    (tmp_path / 'x.txt').write_bytes(b'na\xefve')
    assert read(tmp_path / 'x.txt', encoding='latin-1')[0].text == 'naïve'


@settings(max_examples=60)
@given(st.lists(st.text(st.characters(codec=None), max_size=30), min_size=1, max_size=5))
def test_any_json_text_is_read_and_can_be_stored(tmp_path_factory, texts):
    path = tmp_path_factory.mktemp('fuzz') / 'x.jsonl'
    found = read(records(path, [{'id': str(i), 'title': text} for i, text in enumerate(texts)]))
    assert [d.id for d in found] == [str(i) for i in range(len(texts))]
    assert [documents.decoded(documents.encoded(d)) for d in found] == found
    for document, text in zip(found, texts, strict=True):
        assert document.text.split() == re.sub('[\ud800-\udfff]', '\ufffd', text).split()


@pytest.mark.parametrize('shards', [1, 3])
@pytest.mark.parametrize('count', [0, 1, 2, 7, 1100])
def test_documents_come_back_in_order(tmp_path, count, shards):
    written = numbered(count)
    assert write_documents(tmp_path, 'train', written, shards) == count
    source = open_documents(tmp_path, 'train')
    assert len(source) == count
    assert list(source) == written
    for start, stop in ((0, count), (1, 3), (2, 7), (count - 1, count + 9), (5, 5), (515, 1025)):
        assert source.read(start, stop) == written[max(start, 0) : stop]
    assert [source[i] for i in range(-count, min(count, 9))] == [
        written[i] for i in range(-count, min(count, 9))
    ]
    with pytest.raises(IndexError):
        source[count]
    assert pickle.loads(pickle.dumps(source)).read(0, 5) == written[:5]


def test_tfds_reads_the_folder_without_tensorflow(tmp_path):
    import sys

    import tensorflow_datasets as tfds

    write_documents(tmp_path, 'train', numbered(10), 3)
    write_documents(tmp_path, 'heldout', numbered(0), 1)
    builder = tfds.builder_from_directory(str(tmp_path / 'documents'))
    source = builder.as_data_source('train')
    found = {Document(*(record[n].decode() for n in ('id', 'text', 'source'))) for record in source}
    assert found == set(numbered(10))
    assert builder.info.splits['heldout'].num_examples == 0
    assert 'tensorflow' not in sys.modules


def test_damaged_shards_are_found(tmp_path):
    write_documents(tmp_path, 'train', numbered(2000), 2)
    shard = documents.shard_path(tmp_path, 'train', 1, 2)
    whole = shard.read_bytes()
    middle = len(whole) // 3
    changed = bytes(b ^ 0x55 for b in whole[middle : middle + 64])
    for left, read_split, split, message in (
        (whole[: len(whole) // 2], open_documents, 'train', f'{shard.name}: .*corpus --replace'),
        (
            whole[:middle] + changed + whole[middle + 64 :],
            lambda *of: list(open_documents(*of)),
            'train',
            f'{shard.name}: .*corpus --replace',
        ),
        (None, open_documents, 'train', f'{shard.name}: is missing'),
        (None, open_documents, 'test', "no split 'test'"),
    ):
        shard.unlink(missing_ok=True)
        if left is not None:
            shard.write_bytes(left)
        with pytest.raises(InputError, match=message):
            read_split(tmp_path, split)


def test_a_writer_that_fails_leaves_nothing(tmp_path):
    def failing():
        yield from numbered(5)
        raise OSError('the disk is full')

    with pytest.raises(OSError, match='the disk is full'):
        documents.write_shard(documents.shard_path(tmp_path, 'train', 0, 2), failing())
    assert not list((tmp_path / 'documents').iterdir())


def test_document_key_is_pinned():
    assert documents.document_key('10036953') == 736567574590666250
    assert len({documents.document_key(str(i)) for i in range(10_000)}) == 10_000


@given(st.text(max_size=60))
def test_reduction_keeps_letters_and_digits_only(text):
    fast = audit.reduced(text)
    folded = unicodedata.normalize('NFKD', text).casefold()
    assert fast == ''.join(c for c in folded if c.isalnum())


def test_audit_finds_sentences_whatever_the_tokenisation(ner_sets):
    auditor = audit.Auditor(Audit(folder=str(ner_sets)))
    assert (auditor.searched, auditor.too_short) == (2, 4)
    letters = len(audit.reduced(LEAK))
    for least, searched in ((letters, 2), (letters + 1, 0)):
        assert audit.Auditor(Audit(folder=str(ner_sets), min_letters=least)).searched == searched
    hidden = (
        LEAK.upper().replace('POINTES', 'Pointes:').replace('LOW DOSE', 'low-\ndose').replace('DOBU', 'dobú')
    )
    hidden = f'Before. {hidden[:-2]}; after'
    expected = [AuditedSentence(name, 'test', LEAK) for name in ('chem', 'disease')]
    assert auditor.matches(audit.reduced(hidden)) == expected
    assert auditor.matches(audit.reduced(hidden.replace('low', 'high'))) == []
    assert auditor.matches(audit.reduced(hidden * 2)) == expected


def test_audit_names_what_is_wrong(ner_sets):
    folder = str(ner_sets)
    broken, unread = (shutil.copytree(folder, f'{folder}-{name}') for name in ('broken', 'unread'))
    for place in (broken, unread):
        Path(place, 'chem', 'test.tsv').write_text('A\tO\nB O\n', 'utf-8')
    Path(unread, 'other').mkdir()
    Path(unread, 'other', 'test.pdf').write_text('<a/>', 'utf-8')
    for settings_of_audit, message in (
        (Audit(folder=folder + '/none'), 'no such folder'),
        (
            Audit(folder=folder + '/chem'),
            'chem: is a set itself, not a folder of sets; give the folder around it',
        ),
        (Audit(folder=folder, datasets=('gene',)), 'has no set gene; found: chem, disease'),
        (Audit(folder=folder, splits=('train',)), 'chem/train: no such file'),
        (Audit(folder=folder, splits=('tset',)), "'tset' is not a split; known: train, devel, dev"),
        (Audit(folder=broken), r'test\.tsv:2: expected token TAB tag'),
        (Audit(folder=unread), r'other: holds no split in a readable form'),
    ):
        with pytest.raises(InputError, match=message):
            audit.Auditor(settings_of_audit)
    assert audit.Auditor(Audit(folder=unread, datasets=('disease',))).searched == 1


def write_leaks(root: Path) -> dict[str, str]:
    """A set in each form that can be scored, each split with a sentence of its own: file -> sentence."""
    import tensorflow_datasets as tfds

    drugs = (a + b for a in 'bdfgkl' for b in ('amine', 'oxin', 'ulol', 'azole'))
    texts: dict[str, str] = {}

    def words(name: str) -> list[str]:
        texts[name] = f'The patients of this trial were treated with {next(drugs)} and recovered within days.'
        return [*texts[name][:-1].split(), '.']

    def write(name: str, text: str) -> None:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text, 'utf-8')

    for ending, devel in (('.tsv', 'dev'), ('.conll', 'valid'), ('.bio', 'devel'), ('.txt', 'validation')):
        for split in ('train', devel, 'test'):
            name, between = f'{ending[1:]}/{split}{ending}', ' ' if ending == '.conll' else '\t'
            write(name, ''.join(f'{w}{between}{"B-Drug" if "tr" in w else "O"}\n' for w in words(name)))
    for split in ('train', 'devel', 'test'):
        words(name := f'brat/{split}/1.txt')
        write(name, texts[name])
        write(name.replace('.txt', '.ann'), 'T1\tDrug 0 3\tThe\n')
        words(name := f'pubtator/{split}.PubTator.txt')
        write(name, f'1|t|A title.\n1|a|{texts[name]}\n1\t0\t1\tA\tDrug\tD1\n\n')
    rows = {
        split: [{'tokens': (found := words(f'made/{split}')), 'ner_tags': ['B-X', *'O' * (len(found) - 1)]}]
        for split in ('train', 'validation', 'test')
    }
    prepare(root, rows, tfds.features.Text())
    return texts


def test_the_audit_searches_for_whatever_can_be_scored(tmp_path):
    """A mixed folder of sets: the document of a devel or test sentence in any form is left out, of train it stays."""
    texts = write_leaks(tmp_path / 'ner')
    sets = {s.name for s in chosen_sets(Finetune(folder=str(tmp_path / 'ner')))}
    assert sets == {name.split('/')[0] for name in texts}
    assert len(sets) == 7
    rows = [
        {'id': name, 'title': f'Report {n}', 'abstract': f'{text} So.'}
        for n, (name, text) in enumerate(texts.items())
    ]
    path = records(tmp_path / 'x.jsonl', rows)
    run, manifest = corpus_run(tmp_path / 'run', path, audit__folder=tmp_path / 'ner', heldout_fraction=0)
    kept = {d.id for d in open_documents(run.folder('corpus'), 'train')}
    assert kept == {name for name in texts if 'train' in name}
    assert manifest.counts['left_out'] == {'benchmark': 14}
    found = read_jsonl(run.folder('corpus') / 'audit.jsonl')
    origins = {(s['dataset'], s['split']) for r in found for s in r['sentences']}
    assert origins == {(name, split) for name in sets for split in ('devel', 'test')}
    inputs = {name.partition(':')[2] for name in manifest.inputs}
    assert {
        'dev.tsv',
        'valid.conll',
        'validation.txt',
        '1.ann',
        'test.PubTator.txt',
        'dataset_info.json',
    } <= inputs


def test_stage_leaves_out_for_every_reason(tmp_path, ner_sets, capsys):
    rows = [
        {'id': 'kept', 'title': TWELVE_WORDS},
        {'id': 'same letters', 'title': TWELVE_WORDS.upper() + '.'},
        {'id': 'kept', 'title': 'another text under an id that was there before'},
        {'id': 'short', 'title': 'too few words'},
        {'id': 'leak', 'title': 'A case.', 'abstract': LEAK.replace(' .', '.') + ' More.'},
        {'id': '', 'title': 'a document without an id of its own'},
    ]
    path = records(tmp_path / 'x.jsonl', rows)
    changes = dict(audit__folder=ner_sets, heldout_fraction=0, shards=2)
    run, manifest = corpus_run(tmp_path / 'run', path, **changes)
    counts = manifest.counts
    assert counts['left_out'] == {'too_short': 1, 'duplicate_text': 1, 'duplicate_id': 1, 'benchmark': 1}
    assert (counts['read'], counts['train'], counts['heldout'], counts['ids_made']) == (6, 2, 0, 1)
    assert counts['words'] == {'train': 20, 'heldout': 0}
    ids = [d.id for d in open_documents(run.folder('corpus'), 'train')]
    assert ids[0] == 'kept'
    assert ids[1].startswith('text-')
    assert list(open_documents(run.folder('corpus'), 'heldout')) == []
    sentences = [{'dataset': name, 'split': 'test', 'text': LEAK} for name in ('chem', 'disease')]
    found = read_jsonl(run.folder('corpus') / 'audit.jsonl')
    assert found == [{'document': 'leak', 'source': 'x.jsonl', 'sentences': sentences}]
    # What pre-training will lack is said by the stage that leaves it out.
    corpus_run(tmp_path / 'none', path, quiet=False, heldout_fraction=1e-9)
    assert (
        'WARNING: pre-training cannot be evaluated, as none of 3 documents is held out'
        in capsys.readouterr().out
    )


def test_stage_is_decided_by_content_only(tmp_path):
    rows = [{'id': str(i), 'title': f'{TWELVE_WORDS} number {i}'} for i in range(400)]
    path = records(tmp_path / 'x.jsonl', rows)
    packed = tmp_path / 'x.jsonl.gz'
    packed.write_bytes(gzip.compress(Path(path).read_bytes()))
    run, one = corpus_run(tmp_path / 'one', path, heldout_fraction=0.2)
    _, two = corpus_run(tmp_path / 'two', str(packed), heldout_fraction=0.2, shards=3)
    _, other = corpus_run(tmp_path / 'other', path, heldout_fraction=0.1)
    assert one.content == two.content != other.content
    assert 50 < one.counts['heldout'] < 110  # 80 expected, standard deviation 8
    split = {
        name: [d.id for d in open_documents(run.folder('corpus'), name)] for name in ('train', 'heldout')
    }
    assert sorted(split['train'] + split['heldout'], key=int) == [str(i) for i in range(400)]
    assert split['heldout'] == sorted(split['heldout'], key=int)
    # A document stays on its side when others come or go.
    _, half = corpus_run(tmp_path / 'half', records(tmp_path / 'y.jsonl', rows[::2]), heldout_fraction=0.2)
    assert half.counts['heldout'] == sum(int(i) % 2 == 0 for i in split['heldout'])


def test_manifest_and_shards_must_agree(tmp_path):
    rows = [{'id': str(i), 'title': f'{TWELVE_WORDS} number {i}'} for i in range(20)]
    run, _ = corpus_run(tmp_path / 'run', records(tmp_path / 'x.jsonl', rows))
    write_documents(run.folder('corpus'), 'train', numbered(3), 4)
    with pytest.raises(InputError, match='train: 3 documents, but the manifest says 2'):
        open_documents(run.folder('corpus'), 'train')


def test_nothing_left_is_an_error(tmp_path):
    for name, content, message in (
        ('blank', '\n\n', r'blank\.txt: hold no documents'),
        ('short', 'two words', r'is left for training \(1 too_short, 0 held out\)'),
    ):
        (tmp_path / f'{name}.txt').write_text(content, 'utf-8')
        with pytest.raises(InputError, match=message):
            corpus_run(tmp_path / name, str(tmp_path / f'{name}.txt'))
    left = [p.name for p in (tmp_path / 'short' / 'corpus').rglob('*') if p.is_file()]
    assert not left


def test_stopping_leaves_nothing_half_written_and_starts_again(tmp_path, monkeypatch):
    path = records(tmp_path / 'x.jsonl', [{'id': '1', 'title': TWELVE_WORDS}])

    def stop(*_: Any) -> None:
        raise Stopped

    with monkeypatch.context() as patch:
        patch.setattr(build, 'resolve', stop)
        with pytest.raises(Stopped):
            corpus_run(tmp_path / 'run', path, heldout_fraction=0)
    assert read_json(tmp_path / 'run' / 'corpus' / 'manifest.json') is None
    (tmp_path / 'run' / 'corpus' / 'documents').mkdir()
    (tmp_path / 'run' / 'corpus' / 'documents' / '.killed.a-host-7.tmp').write_text('left by a kill', 'utf-8')
    (tmp_path / 'run' / 'corpus' / '.audit.jsonl.a-host-1.tmp').write_text('left by a kill', 'utf-8')
    run, manifest = corpus_run(tmp_path / 'run', path, heldout_fraction=0)
    assert manifest.counts['train'] == 1
    assert not [p for p in run.folder('corpus').rglob('.*')]


def test_recall_on_real_benchmark_texts(data):
    """Labelled abstracts of a sample are found by text, with all splits given: .99 of them or more."""
    path = data / 'pubmed' / 'abstracts-00000-of-00004.jsonl.gz'
    sets = ('bc5-chem', 'bc5-disease', 'ncbi-disease', 'jnlpba')
    auditor = audit.Auditor(Audit(str(data / 'ner'), sets, ('train', 'devel', 'test')))
    labelled = found = unlabelled = 0
    with gzip.open(path, 'rt', encoding='utf-8') as file:
        for record in map(json.loads, itertools.islice(file, 0, None, 3)):
            hit = bool(auditor.matches(audit.reduced(f'{record["title"]}\n{record["abstract"]}')))
            known = record.get('benchmark') in ('bc5cdr', 'ncbi-disease', 'jnlpba')
            labelled, found, unlabelled = (
                labelled + known,
                found + (known and hit),
                unlabelled + (hit and not known),
            )
    assert labelled > 300
    assert found / labelled >= 0.99
    assert unlabelled < 20
