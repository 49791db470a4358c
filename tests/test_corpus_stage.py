"""The corpus stage as a whole: many files, any number of workers, cut-off work, and what takes all files to tell."""

import gzip
import hashlib
import importlib.metadata
import json
import os
import random
import signal
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from toy_articles import article, note, noted, packed
from toy_programs import environment

from bioptimus_jax.corpus import build, newest, resolve, sift
from bioptimus_jax.corpus.audit import Auditor
from bioptimus_jax.corpus.config import Audit, Corpus
from bioptimus_jax.corpus.documents import open_documents
from bioptimus_jax.corpus.newest import Identities
from bioptimus_jax.corpus.records import Record
from bioptimus_jax.corpus.sift import CODE
from bioptimus_jax.errors import ConfigError, InputError, Stopped
from bioptimus_jax.experiment.config import defaults, override
from bioptimus_jax.experiment.schema import Experiment
from bioptimus_jax.experiment.stages import STAGES
from bioptimus_jax.hosts import workers
from bioptimus_jax.progress.console import Console
from bioptimus_jax.records.counts import CorpusCounts
from bioptimus_jax.records.manifests import Manifest
from bioptimus_jax.run.execute import execute
from bioptimus_jax.run.folder import Run
from bioptimus_jax.storage.files import read_jsonl
from bioptimus_jax.storage.hashing import hash64
from bioptimus_jax.tokenizer.kinds.wordpiece import SPECIAL_TOKENS


def experiment(inputs: list[str], **changes: object) -> Experiment:
    config = defaults()
    config.corpus.inputs = tuple(inputs)
    for key, value in changes.items():
        override(config, key.replace('__', '.'), str(value))
    return Experiment.from_config(config)


def made(workdir: Path, inputs: list[str], **changes: object) -> tuple[Run, Manifest]:
    run = Run(workdir, experiment(inputs, **{'runtime__workers': 1, **changes}), quiet=True)
    return run, execute(run, STAGES['corpus'])


@pytest.fixture
def files(tmp_path: Path) -> list[str]:
    """Five files of 60 documents of random words, some of them in two files."""
    draw = random.Random(0)
    words = [f'word{n}' for n in range(500)]
    texts = [' '.join(draw.choices(words, k=draw.randint(8, 40))) for _ in range(292)]
    paths = []
    for number in range(5):
        rows = [
            {'id': f'{number}-{i}', 'title': text}
            for i, text in enumerate(texts[58 * number : 58 * number + 60])
        ]
        path = tmp_path / f'file{number}.jsonl'
        path.write_text(''.join(json.dumps(row) + '\n' for row in rows), 'utf-8')
        paths.append(str(path))
    return paths


def shard_bytes(run: Run) -> dict[str, str]:
    folder = run.folder('corpus') / 'documents'
    return {
        path.name: hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.glob('*array_record*'))
    }


def test_workers_and_the_cluster_write_the_same_bytes(tmp_path, files, cluster, monkeypatch):
    """Documents, vocabulary, contexts and rows, by one process, by two, and by the workers of a dask cluster.

    Paths are relative here, and the cluster's workers have another working directory.
    """
    monkeypatch.chdir(tmp_path)
    sentence = json.loads(Path(files[0]).read_text('utf-8').splitlines()[7])['title'].split()
    (tmp_path / 'ner' / 'words').mkdir(parents=True)
    for split in ('devel', 'test'):
        text = ''.join(f'{word}\tO\n' for word in sentence)
        (tmp_path / 'ner' / 'words' / f'{split}.tsv').write_text(text, 'utf-8')
    source = tmp_path / 'source'  # whose vocabulary alone is read: it spells everything in characters
    source.mkdir()
    characters = [*'adorw0123456789', *(f'##{c}' for c in 'adorw0123456789')]
    (source / 'vocab.txt').write_text('\n'.join([*SPECIAL_TOKENS, *characters]) + '\n', 'utf-8')
    (source / 'config.json').write_text('{"model_type": "bert"}', 'utf-8')
    draw = random.Random(1)
    texts = [words(draw, 20) for _ in range(40)]
    files += [
        str(
            packed(
                tmp_path / 'oa.tar.gz',
                {f'{i}.nxml': article(str(i), f'<p>{t}</p>') for i, t in enumerate(texts[:20])},
            )
        ),
        str(noted(tmp_path / 'NOTEEVENTS.csv', [note(i, text) for i, text in enumerate(texts[20:])])),
    ]
    results: dict[tuple[str, str], Any] = {}
    for name, runtime in {
        'one': {'runtime__workers': 1},
        'two': {'runtime__workers': 2},
        'cluster': {'runtime__cluster': cluster},
    }.items():
        changes = {'vocab__size': 300, 'corpus__heldout_fraction': 0.1, 'rows__row_pieces': 64, **runtime}
        names = [os.path.relpath(file) for file in files]
        e = experiment(
            names, **changes, rows__max_document_pieces=64, source__path='source', corpus__audit__folder='ner'
        )
        run = Run(name, e, quiet=True)
        for stage in ('corpus', 'vocab', 'contexts', 'rows'):
            execute(run, STAGES[stage])
            results[name, stage] = run.manifest(stage).content
        assert run.manifest('contexts').counts['occurrences'] > 50
        results[name, 'shards'] = shard_bytes(run)
        assert run.manifest('corpus').counts['left_out']['benchmark'] == 1
        assert run.manifest('corpus').counts['read'] == 340
    for (_, kind), found in results.items():
        assert found == results['one', kind], kind


def test_a_cluster_that_is_not_there_has_threads_or_another_release_is_refused(
    tmp_path, files, cluster, monkeypatch
):
    distributed = pytest.importorskip('distributed')
    real = importlib.metadata.version
    soon = (workers, 'SECONDS_TO_CONNECT', 1)
    newer = (importlib.metadata, 'version', lambda name: real(name) + '.dev1' * (name == 'rensa'))
    with distributed.LocalCluster(
        n_workers=1, threads_per_worker=2, processes=False, dashboard_address=':0'
    ) as wide:
        for address, message, *patches in (
            ('127.0.0.1:9', r'runtime\.cluster: no dask scheduler at .*HOST:PORT', soon),
            (wide.scheduler_address, '--nthreads=1'),
            (cluster, r'worker .* has rensa .*this process .*dev1; install the same', newer),
        ):
            with monkeypatch.context() as patched:
                for patch in patches:
                    patched.setattr(*patch)
                with pytest.raises(ConfigError, match=message):
                    made(tmp_path / 'run', files, runtime__cluster=address)


def test_the_first_of_two_texts_stays_in_the_order_of_files(tmp_path, files):
    run, manifest = made(tmp_path / 'run', files, corpus__heldout_fraction=0)
    assert manifest.counts['left_out'] == {'duplicate_text': 8}  # two of each file but the last
    ids = [document.id for document in open_documents(run.folder('corpus'), 'train')]
    assert ids == [f'{f}-{i}' for f in range(5) for i in range(60) if not (f and i < 2)]


def test_work_that_was_cut_off_goes_on_by_file(tmp_path, files, monkeypatch):
    whole, wanted = made(tmp_path / 'whole', files)
    checksum = Path(f'{files[3]}.md5')
    checksum.write_text('0' * 32)
    with pytest.raises(InputError, match=r'1 of 5 input files are broken: .*file3\.jsonl:.*file=skip'):
        made(tmp_path / 'run', files)
    assert not list((tmp_path / 'run' / 'corpus').glob('[!.]*'))
    checksum.unlink()
    table = sorted((tmp_path / 'run' / '.corpus.scratch').glob('*.parquet'))[0]
    table.write_bytes(b'')  # as a power failure may leave it
    read = []
    real = sift.read_file
    monkeypatch.setattr(sift, 'read_file', lambda path, *rest: read.append(path.name) or real(path, *rest))
    run, manifest = made(tmp_path / 'run', files)
    assert 'file3.jsonl' in read
    assert len(read) == 2
    assert manifest.content == wanted.content
    assert shard_bytes(run) == shard_bytes(whole)
    assert not (tmp_path / 'run' / '.corpus.scratch').exists()


def test_broken_files_are_left_out_on_request_and_listed(tmp_path, files):
    checksum = Path(f'{files[1]}.md5')
    checksum.write_text('0' * 32)
    run, manifest = made(tmp_path / 'run', files, corpus__on_broken_file='skip')
    assert (manifest.counts['files'], manifest.counts['broken_files']) == (5, 1)
    assert [entry['file'] for entry in read_jsonl(run.folder('corpus') / 'broken_files.jsonl')] == [
        'file1.jsonl'
    ]
    ids = {document.id.split('-')[0] for document in open_documents(run.folder('corpus'), 'train')}
    assert ids == {'0', '2', '3', '4'}
    checksum.unlink()
    with pytest.raises(ConfigError, match=r'file1\.jsonl\.md5'):
        made(tmp_path / 'run', files, corpus__on_broken_file='skip')  # not: up to date


def test_of_a_broken_file_the_good_part_is_read_and_the_rest_is_counted(tmp_path, monkeypatch):
    """Sixty good records, one that is damaged, and 59 more; and lines of a file whose end is missing."""
    citations = [
        f'<MedlineCitation><PMID>{i}</PMID><Article><Abstract><AbstractText>Word {i} and so on and on.'
        '</AbstractText></Abstract></Article></MedlineCitation>'
        for i in range(1, 121)
    ]
    citations[60] = citations[60].replace('</Article>', '')
    xml, lines = tmp_path / 'x.xml', tmp_path / 'y.txt.gz'
    xml.write_text(f'<MedlineCitationSet>{"".join(citations)}</MedlineCitationSet>', 'utf-8')
    texts = ''.join(f'Line {i} of some {hash64(str(i))} text.\n\n' for i in range(4000)).encode()
    lines.write_bytes(gzip.compress(texts)[:-9])
    files = [str(xml), str(lines)]
    said = []
    monkeypatch.setattr(Console, 'say', lambda console, message: said.append(message))
    changes = dict(corpus__near__threshold=0, corpus__on_broken_file='skip', runtime__workers=1)
    run, manifest = made(tmp_path / 'run', files, **changes)
    counts = manifest.counts
    assert (counts['files'], counts['broken_files'], counts['read_in_part']) == (2, 2, 2)
    assert counts['left_out'] == {'bad_record': 1}
    ids = [d.id for split in ('train', 'heldout') for d in open_documents(run.folder('corpus'), split)]
    assert {int(id) for id in ids if id.isdigit()} == {*range(1, 121)} - {61}
    assert counts['read'] == len(ids) + 1 > 200
    listed = read_jsonl(run.folder('corpus') / 'broken_files.jsonl')
    assert [entry['file'] for entry in listed] == ['x.xml', 'y.txt.gz']
    [summary] = [message for message in said if 'documents read' in message]
    assert summary.endswith('left out: 1 bad_record, what is damaged in 2 of 2 files')
    assert [m.partition(': ')[2].partition(':')[0] for m in said if 'x.xml' in m] == ['read in part']
    # What was read of a broken file is no whole file, whoever has read it.
    monkeypatch.setattr('bioptimus_jax.corpus.build.resolve', stop)
    with pytest.raises(Stopped):
        made(tmp_path / 'again', files, **changes)
    with pytest.raises(InputError, match=r'2 of 2 input files are broken: .*x\.xml: .*y\.txt'):
        made(tmp_path / 'again', files, **{**changes, 'corpus__on_broken_file': 'fail'})


def stop(*_: Any) -> None:
    raise Stopped


def test_a_kill_at_any_moment_changes_nothing(programs, tmp_path, files):
    """SIGKILL while files are read, resolved and written; the same command then gives the same bytes."""
    whole, wanted = made(tmp_path / 'whole', files)
    program = (
        'import sys, os, signal; from bioptimus_jax.corpus import build, documents\n'
        'from test_corpus_stage import made\n'
        'step, left = sys.argv[1], int(sys.argv[2])\n'
        'place = build\n'
        'if step == "os.replace": place, step = documents.os, "replace"\n'
        'real = getattr(place, step)\n'
        'def dying(*a):\n'
        '    global left\n'
        '    left -= 1\n'
        '    if left < 0: os.kill(os.getpid(), signal.SIGKILL)\n'
        '    return real(*a)\n'
        'if place is build: setattr(build, step, dying)\n'
        'else: build.write_metadata = lambda *a: (setattr(place, step, dying), documents.write_metadata(*a))\n'
        'from pathlib import Path\n'
        'made(Path(sys.argv[3]), sys.argv[4:])\n'
    )
    paths = os.pathsep.join(map(str, [Path(__file__).parents[1], Path(__file__).parent]))
    for step, calls in (
        ('sift', 2),
        ('resolve', 0),
        ('_write_shard', 3),
        ('write_metadata', 0),
        ('os.replace', 0),
    ):
        killed = subprocess.run(
            [programs / 'python', '-c', program, step, str(calls), str(tmp_path / 'run'), *files],
            env=environment(PYTHONPATH=paths),
            capture_output=True,
        )
        assert killed.returncode == -signal.SIGKILL, killed.stderr.decode()[-500:]
        assert not (tmp_path / 'run' / 'corpus' / 'manifest.json').exists()
    run, manifest = made(tmp_path / 'run', files)
    assert manifest.content == wanted.content
    assert shard_bytes(run) == shard_bytes(whole)


def test_near_duplicates_are_left_out_across_files(tmp_path, files):
    rows = [json.loads(line) for line in Path(files[2]).read_text('utf-8').splitlines()]
    copies = [
        {'id': f'copy-{i}', 'title': f'{row["title"]} {row["title"]} indeed'} for i, row in enumerate(rows)
    ]
    doubled = [{'id': f'double-{i}', 'title': f'{row["title"]} {row["title"]}'} for i, row in enumerate(rows)]
    first = tmp_path / 'a.jsonl'
    first.write_text('{"id": "short", "title": "two words"}\n', 'utf-8')  # a part without signatures
    for name, entries in (('b.jsonl', doubled), ('c.jsonl', copies)):
        (tmp_path / name).write_text(''.join(json.dumps(entry) + '\n' for entry in entries), 'utf-8')
    run, manifest = made(
        tmp_path / 'run', [str(tmp_path / f'{n}.jsonl') for n in 'abc'], corpus__heldout_fraction=0
    )
    left_out = manifest.counts['left_out']
    assert left_out['too_short'] == 1
    assert left_out['near_duplicate'] >= 50  # the rest are so short that one word is more than a fifth
    ids = [document.id for document in open_documents(run.folder('corpus'), 'train')]
    assert ids[:60] == [f'double-{i}' for i in range(60)]
    _, everything = made(
        tmp_path / 'all',
        [str(tmp_path / f'{n}.jsonl') for n in 'abc'],
        corpus__heldout_fraction=0,
        corpus__near__threshold=0,
    )
    assert everything.counts['left_out'] == {'too_short': 1}


@pytest.mark.timeout(60)
@pytest.mark.parametrize('workers', [1, 2])
def test_what_workers_cannot_prepare_is_said_by_the_parent(tmp_path, files, workers):
    (tmp_path / 'ner' / 'chem').mkdir(parents=True)
    for split in ('devel', 'test'):
        (tmp_path / 'ner' / 'chem' / f'{split}.tsv').write_text('no tab here\n', 'utf-8')
    with pytest.raises(InputError, match=r"devel\.tsv:1: unknown tag 'here'"):
        made(tmp_path / 'run', files, runtime__workers=workers, corpus__audit__folder=tmp_path / 'ner')


def test_pubmed_files_come_in_their_order(tmp_path):
    record = (
        '<PubmedArticle><MedlineCitation><PMID Version="{version}">{pmid}</PMID><Article>'
        '<ArticleTitle>{title}</ArticleTitle>'
        '<Abstract><AbstractText>It has an abstract of some words.</AbstractText></Abstract>'
        '<PublicationTypeList><PublicationType>{kind}</PublicationType></PublicationTypeList>'
        '</Article></MedlineCitation></PubmedArticle>'
    )
    for name, title, version in (('0001', 'Old', 1), ('1220', 'New', 1), ('1221', 'Newest', 99_999)):
        kind = 'Retracted Publication' if title == 'Newest' else 'Journal Article'
        text = record.format(title=title, version=version, kind=kind, pmid=7)
        text = f'<PubmedArticleSet>{text}</PubmedArticleSet>'
        (tmp_path / f'pubmed26n{name}.xml').write_text(text, 'utf-8')
    for last, title in (('1220', 'New'), ('1221', 'Newest')):
        inputs = [str(tmp_path / f'pubmed26n{name}.xml') for name in ('0001', '1220', last)]
        run, manifest = made(tmp_path / last, inputs, corpus__heldout_fraction=0)
        assert manifest.counts['left_out'] == {'superseded': len(set(inputs)) - 1}
        documents = list(open_documents(run.folder('corpus'), 'train'))
        assert [(d.id, d.text.split('\n')[0]) for d in documents] == [('7', title)]
        # A retracted article is kept, counted, and said, unless it is to be left out.
        retracted = title == 'Newest'
        assert manifest.counts['kinds'] == ({'retracted': 1} if retracted else {})
        assert (
            'of the documents 1 retracted articles' in build._summary(CorpusCounts.of(manifest))
        ) == retracted
    other = record.format(title='Another', version=1, kind='', pmid=8).replace('some words', 'other words')
    (tmp_path / 'other.xml').write_text(f'<PubmedArticleSet>{other}</PubmedArticleSet>', 'utf-8')
    without = dict(corpus__heldout_fraction=0, corpus__leave_out='retracted')
    _, manifest = made(tmp_path / 'without', [*inputs, str(tmp_path / 'other.xml')], **without)
    assert manifest.counts['left_out'] == {'superseded': 2, 'retracted': 1}
    assert (manifest.counts['train'], manifest.counts['kinds']) == (1, {})
    with pytest.raises(ConfigError, match=r'pubmed26n0001\.xml comes after .*1220\.xml.*baseline first'):
        made(tmp_path / 'wrong', inputs[1::-1])


def words(draw: random.Random, count: int) -> str:
    return ' '.join(f'word{draw.randint(0, 999)}' for _ in range(count))


def test_a_corpus_of_abstracts_articles_and_notes(tmp_path):
    """All through one audit, one search for duplicates, one count; by any number of workers, cut off or not."""
    draw = random.Random(0)
    leak = words(draw, 12)
    (tmp_path / 'ner' / 'set').mkdir(parents=True)
    for split in ('devel', 'test'):
        sentence = ''.join(f'{word}\tO\n' for word in leak.split())
        (tmp_path / 'ner' / 'set' / f'{split}.tsv').write_text(sentence, 'utf-8')
    texts = [words(draw, 40) for _ in range(60)]
    entries = {f'P/PMC{n}.xml': article(str(n), f'<p>{text}</p>') for n, text in enumerate(texts[:30])}
    entries['P/PMC99.xml'] = article('99', f'<sec><p>Words before.</p><p>{leak}</p></sec>')
    entries['P/bad.nxml'] = '<article>'
    entries['P/x.pdf'] = b'%PDF' + bytes(2000)
    packed(tmp_path / 'oa.baseline.tar.gz', entries)
    # An update replaces an article; another is nearly one of the notes.
    figure = '<fig><caption><p>Seen here.</p></caption></fig><table-wrap><table>1 2 3</table></table-wrap>'
    updated = article('3', f'<p>New words. {texts[59]}</p>{figure}')
    packed(tmp_path / 'oa.incr.tar.gz', {'PMC3.nxml': updated})
    rows = [note(n, text, 'Physician ') for n, text in enumerate(texts[30:58])]
    rows += [note(90, f'{texts[5]} indeed', 'Physician '), note(91, leak, 'Physician'), note(92, 'x', 'ECG')]
    noted(tmp_path / 'NOTEEVENTS.csv', [*rows, note(93, words(draw, 9), 'Physician', '1'), note('')])
    abstract = f'<Abstract><AbstractText>{texts[0]} at once</AbstractText></Abstract>'
    citation = (
        f'<MedlineCitation><PMID>3</PMID><Article><ArticleTitle/>{abstract}</Article></MedlineCitation>'
    )
    (tmp_path / 'pubmed.xml').write_text(f'<PubmedArticleSet>{citation}</PubmedArticleSet>', 'utf-8')
    inputs = [
        str(tmp_path / name)
        for name in ('pubmed.xml', 'oa.baseline.tar.gz', 'oa.incr.tar.gz', 'NOTEEVENTS.csv')
    ]
    changes = dict(
        corpus__audit__folder=tmp_path / 'ner',
        corpus__note_categories='Physician',
        corpus__article_parts='paragraphs',
        corpus__heldout_fraction=0.2,
    )
    run, manifest = made(tmp_path / 'one', inputs, **changes)
    counts = manifest.counts
    assert counts['left_out'] == {
        'bad_record': 2,
        'benchmark': 2,
        'superseded': 1,
        'near_duplicate': 2,  # PMC0 of the abstract, note 90 of PMC5
        'erroneous': 1,
        'category': 1,
    }
    assert counts['words_not_read'] == {'captions': 2, 'tables': 3}
    assert build._summary(CorpusCounts.read(counts, 'counts')).endswith(
        '; words not read: 2 of captions, 3 of tables'
    )
    ids = {d.id: d for split in ('train', 'heldout') for d in open_documents(run.folder('corpus'), split)}
    wanted = {'3', *(f'PMC{n}' for n in range(1, 30)), *(f'note-{n}' for n in range(28))}
    assert ids.keys() == wanted
    assert (ids['PMC3'].text[:10], ids['PMC3'].source) == ('New words.', 'oa.incr.tar.gz')
    assert ids['note-0'].source == 'NOTEEVENTS.csv'
    assert 3 < counts['heldout'] < 25
    bad = read_jsonl(run.folder('corpus') / 'bad_records.jsonl')
    assert [(row['file'], row['note'].split(' is ')[0].split(' has ')[0]) for row in bad] == [
        ('oa.baseline.tar.gz', 'P/bad.nxml'),
        ('NOTEEVENTS.csv', 'line 34:'),
    ]
    found = read_jsonl(run.folder('corpus') / 'audit.jsonl')
    assert [row['document'] for row in found] == ['PMC99', 'note-91']
    two, again = made(tmp_path / 'two', inputs, runtime__workers=2, **changes)
    assert again.content == manifest.content
    assert shard_bytes(two) == shard_bytes(run)


def test_scripts_without_blanks_are_counted_cut_and_compared_as_others(tmp_path):
    """60 abstracts in Chinese, one of which comes again with another letter, and 300 paragraphs in a file of text."""
    draw = random.Random(0)
    letters = [chr(code) for code in range(0x4E00, 0x5200)]

    def sentences(length: int) -> str:
        return '，'.join(''.join(draw.choices(letters, k=length // 4)) for _ in range(4)) + '。'

    abstracts = [sentences(100) for _ in range(60)]
    abstracts.append(abstracts[7][:50] + '癌' + abstracts[7][51:])
    rows = [{'id': str(i), 'title': text} for i, text in enumerate(abstracts)]
    (tmp_path / 'a.jsonl').write_text(''.join(json.dumps(row) + '\n' for row in rows), 'utf-8')
    (tmp_path / 'b.txt').write_text('\n\n'.join(sentences(120) for _ in range(300)), 'utf-8')
    inputs = [str(tmp_path / name) for name in ('a.jsonl', 'b.txt')]
    _, manifest = made(tmp_path / 'run', inputs, corpus__heldout_fraction=0)
    counts = manifest.counts
    assert counts['left_out'] == {'near_duplicate': 1}
    assert (counts['read'], counts['train']) == (61 + 150, 60 + 150)
    assert counts['words']['train'] == 60 * 100 + 300 * 120
    _, chosen = made(tmp_path / 'some', inputs, corpus__heldout_fraction=0, corpus__max_words=6000)
    assert 6000 <= chosen.counts['words']['train'] < 6240


@pytest.mark.parametrize('threshold', [0.0, 0.8])
def test_signs_and_decimal_points_make_another_text(tmp_path, threshold):
    texts = [
        'ER+, PR-, HER2-, as in the first of two cases',
        'ER-, PR+, HER2+, as in the first of two cases',
        'she was given 2.5 mg of it a day',
        'she was given 25 mg of it a day',
        'She was given 25 mg\n\nof it a day.',
        'the naïve cells, of the first kind; were few',
        'The naive cells of the first kind, were few!',
        'p53 − and “p53” in 10³ cells of ours',
        'p53 - and "p53" in 10³ cells of ours',
        'p53 - and "p53" in 103 cells of ours',
    ]
    path = tmp_path / 'x.jsonl'
    path.write_text(''.join(json.dumps({'id': t, 'title': t}) + '\n' for t in texts), 'utf-8')
    run, manifest = made(
        tmp_path / 'run', [str(path)], corpus__heldout_fraction=0, corpus__near__threshold=threshold
    )
    kept = [document.text for document in open_documents(run.folder('corpus'), 'train')]
    assert manifest.counts['left_out'].pop('duplicate_text') == 3
    assert [text for text in texts[:4] if text not in kept] == []
    assert kept == [texts[i] for i in (0, 1, 2, 3, 5, 7, 9)][: 7 if not threshold else 6]


def test_tables_say_in_one_line_how_they_are_read(tmp_path, monkeypatch):
    for name, text in (('a', 'The note of one day.'), ('b', 'Another note, of\nanother day.')):
        (tmp_path / f'{name}.csv').write_text(f'note_id,subject_id,text\n{name},7,"{text}"\n', 'utf-8')
    (tmp_path / 'c.csv').write_text('PMID;Abstract\n7;"Text; of some, and other words"\n', 'utf-8')
    said = []
    monkeypatch.setattr(Console, 'say', lambda console, message: said.append(message))
    _, manifest = made(tmp_path / 'run', [str(tmp_path / '*.csv')], corpus__heldout_fraction=0)
    assert (manifest.counts['read'], manifest.counts['train']) == (3, 3)
    assert [message for message in said if 'a table' in message] == [
        'corpus: a.csv and 1 more: a table; its text is text (by name), its ids note_id',
        'corpus: c.csv: a table; its text is Abstract (by name), its ids PMID',
    ]


def test_long_documents_are_not_gathered(monkeypatch):
    monkeypatch.setattr(sift, 'BATCH_CHARACTERS', 100)
    judge = sift.Judge(Corpus(), Auditor(Audit()))
    records = [Record(str(i), 'word ' * n) for i, n in enumerate((1, 2, 30, 1, 1, 25, 1))]
    assert [len(rows) for rows in sift._batches(iter(records), judge)] == [3, 3, 1]


def test_scratch_that_a_kill_left_is_cleared(tmp_path, files):
    run, _ = made(tmp_path / 'run', files)
    run.scratch('corpus').mkdir()
    made(tmp_path / 'run', files)
    assert not run.scratch('corpus').exists()


def test_a_random_choice_of_words(tmp_path, files):
    _, everything = made(tmp_path / 'all', files, corpus__heldout_fraction=0)
    total = everything.counts['words']['train']
    chosen = {}
    for seed in (0, 1):
        run, manifest = made(
            tmp_path / f'seed{seed}',
            files,
            corpus__heldout_fraction=0,
            corpus__max_words=total // 3,
            corpus__choice_seed=seed,
        )
        assert total // 3 <= manifest.counts['words']['train'] < total // 3 + 40
        chosen[seed] = {document.id for document in open_documents(run.folder('corpus'), 'train')}
    enough = Run(tmp_path / 'seed0', run.config).manifest('corpus').counts['words']['train']
    run, _ = made(tmp_path / 'exact', files, corpus__heldout_fraction=0, corpus__max_words=enough)
    assert chosen[0] == {document.id for document in open_documents(run.folder('corpus'), 'train')}
    run, _ = made(tmp_path / 'larger', files, corpus__heldout_fraction=0, corpus__max_words=total // 2)
    assert chosen[0] < {document.id for document in open_documents(run.folder('corpus'), 'train')}
    assert (
        0.2 < len(chosen[0] & chosen[1]) / len(chosen[0]) < 0.5
    )  # a third, if they have nothing to do with another


def test_length_and_language(tmp_path):
    german = 'Die Behandlung der Patienten mit diesem Arzneimittel führte zu einer deutlichen Besserung ihrer Leiden.'
    english = 'Treatment of the patients with this drug led to a clear improvement of the complaints they had before.'
    rows = [
        {'id': 'de', 'title': german},
        {'id': 'en', 'title': english},
        {'id': 'long', 'title': f'{english} ' * 9},
    ]
    (tmp_path / 'x.jsonl').write_text(''.join(json.dumps(row) + '\n' for row in rows), 'utf-8')
    run, manifest = made(
        tmp_path / 'run',
        [str(tmp_path / 'x.jsonl')],
        corpus__languages='en,fr',
        corpus__max_document_words=100,
        corpus__heldout_fraction=0,
    )
    assert manifest.counts['left_out'] == {'too_long': 1, 'language': 1}
    assert [d.id for d in open_documents(run.folder('corpus'), 'train')] == ['en']


RECORDS = st.lists(
    st.tuples(
        st.integers(0, 3),  # id
        st.integers(0, 3),  # version; 0 of a deletion: all versions
        st.sampled_from((0, 0, 20230101, 20240101, 20250101)),  # revised
        st.booleans(),  # a deletion
        st.sampled_from(('', '', 'no_abstract', 'bad_record')),
    ),
    max_size=20,
)


@given(RECORDS)
def test_newest_versions_by_the_book(records):
    """Against a reading of the rules that goes through the records one by one."""
    there: dict[int, list[tuple[tuple[int, int, int], int]]] = {}
    wanted = ['deletion' if deletion else reason for *_, deletion, reason in records]
    for number, (key, version, revised, deletion, reason) in enumerate(records):
        before = there.setdefault(key, [])
        if deletion:
            for rank, old in list(before):
                if version in (0, rank[0]):
                    wanted[old] = 'deleted'
                    before.remove((rank, old))
        elif version and reason != 'bad_record':
            dated = [r[2] for r in records[:number] if r[:2] == (key, version) and r[4] != 'bad_record']
            before.append(((version, revised or max(dated, default=0), number), number))
    for of_key in there.values():
        for _, number in sorted(of_key)[:-1]:
            wanted[number] = 'superseded'
    made = [Record(str(key), '', version, reason, revised=on) for key, version, on, _, reason in records]
    for number, record in enumerate(made):
        if records[number][3]:
            made[number] = record._replace(reason='deletion')
    reasons = np.array([CODE[record.reason] for record in made], np.uint8)
    identities = Identities.of(made)
    resolve._keep_newest(reasons, identities)
    assert [sift.REASONS[code] for code in reasons] == wanted
    # Who reads inputs without a corpus has the same, however the records lie in files.
    stand = np.concatenate(newest.standing([Identities.of(made[:7]), Identities.of(made[7:])]))
    assert stand.tolist() == [reason not in ('deletion', 'deleted', 'superseded') for reason in wanted]


@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), max_size=25))
def test_duplicates_one_after_the_other(records):
    keys, texts, wanted = set(), set(), []
    for key, text in records:
        reason = 'duplicate_text' if text in texts else 'duplicate_id' if key in keys else ''
        if not reason:
            keys.add(key)
            texts.add(text)
        wanted.append(reason)
    reasons = np.zeros(len(records), np.uint8)
    resolve._drop_duplicates(reasons, *(np.array([r[i] for r in records], np.uint64) for i in (0, 1)))
    assert [sift.REASONS[code] for code in reasons] == wanted
