"""BioASQ, EBM-NLP and Hallmarks of Cancer from files in their owners' form, made of the public lines.

BioASQ's originals need a registration, EBM-NLP's were not at hand as a whole. Those of Hallmarks of Cancer are read
from BIOPTIMUS_ORIGINALS/hoc, with BLURB's lists, where there is such a folder.
"""

import dataclasses
import hashlib
import itertools
import json
import os
import tarfile
from pathlib import Path

import pytest

from bioptimus_jax.cli import main as cli
from bioptimus_jax.finetuning.task import task_for
from bioptimus_jax.rebuild.builders import ebmnlp
from bioptimus_jax.rebuild.originals import Originals
from bioptimus_jax.rebuild.rebuild import written
from bioptimus_jax.sets import words
from bioptimus_jax.sets.corpora import set_at
from bioptimus_jax.sets.inputs import INPUTS
from bioptimus_jax.sets.texts import HALLMARKS

OTHER = {'id': 'x', 'type': 'list', 'body': 'Which?', 'snippets': [], 'exact_answer': [['a']]}


def question(line):
    """What a line was made of: two snippets, and a line feed where a blank is."""
    name, body, text, answer = line.split('\t')
    cut = text.find(' ', len(text) // 2)
    parts = [text[:cut], text[cut + 1 :].replace(' ', '\n', 1)] if cut > 0 else [text]
    return {
        'id': name,
        'type': 'yesno',
        'body': body,
        'snippets': [{'text': x} for x in parts],
        'exact_answer': answer,
    }


@pytest.fixture
def originals(data, tmp_path):
    """A folder of the owner, questions in another order than in the lists."""
    folder = tmp_path / 'BioASQ'
    folder.mkdir()
    read = {
        x: (data / 'blurb' / 'bioasq' / f'{x}.tsv').read_text('utf-8').rstrip('\n').split('\n')
        for x in ('train', 'dev', 'test')
    }
    for split, lines in read.items():
        (folder / f'{split}_id.tsv').write_text(','.join(line.split('\t')[0] for line in lines))
    files = {'trainining7b': sorted(read['train'] + read['dev'])}
    files |= {f'7B{at + 1}_golden': read['test'][at::5] for at in range(5)}
    for name, lines in files.items():
        found = {'questions': [OTHER, *map(question, lines)]}
        (folder / f'{name}.json').write_text(json.dumps(found))
    return folder


def test_the_public_files_come_out_of_the_owners_files(originals, data, tmp_path, capsys):
    command = ['rebuild', '--set=bioasq', f'--from={originals}', f'--to={tmp_path / "sets"}']
    assert cli.main(command) == 0
    assert (
        '670 / 75 / 140 examples in train / devel / test; the public files byte for byte'
        in capsys.readouterr().out
    )
    for name, wrong, message in (
        ('dev_id.tsv', 'ffff', 'dev_id.tsv: names ffff, which is not a yes/no question of trainining7b.json'),
        (
            '7B3_golden.json',
            '{"questions": [{}]}',
            "7B3_golden.json: is not a file of questions of BioASQ (KeyError('type'))",
        ),
        ('7B3_golden.json', '[', '7B3_golden.json: is not a file of questions of BioASQ (JSONDecodeError'),
    ):
        before = (originals / name).read_text()
        (originals / name).write_text(wrong)
        assert cli.main([*command[:-1], f'--to={tmp_path / "others"}']) == 3
        assert message in capsys.readouterr().err
        (originals / name).write_text(before)


@pytest.fixture
def hallmarks(data, tmp_path):
    """A folder of the owner: a file of sentences and one of labels for each abstract."""
    if given := os.environ.get('BIOPTIMUS_ORIGINALS'):
        return Path(given) / 'hoc'
    for kind in ('text', 'labels'):
        (tmp_path / 'HoC' / kind).mkdir(parents=True)
    for split in ('train', 'dev', 'test'):
        lines = (data / 'blurb' / 'hoc' / f'{split}.tsv').read_text('utf-8').rstrip('\n').split('\n')[1:]
        documents = itertools.groupby((x.split('\t') for x in lines), lambda row: row[2].split('_')[0])
        names = []
        for name, rows in documents:
            names.append(f'{name}.txt')
            kept = list(rows)
            given = [[x for x in row[0].split(',') if x.endswith('_1')] for row in kept]
            shown = [' AND'.join(f'{HALLMARKS[int(x[0])].capitalize()}--Below' for x in one) for one in given]
            (tmp_path / 'HoC' / 'text' / names[-1]).write_text(
                ''.join(f'{row[1]}\n' for row in kept), 'utf-8'
            )
            (tmp_path / 'HoC' / 'labels' / names[-1]).write_text(''.join(f'<{one or " "}' for one in shown))
        (tmp_path / 'HoC' / f'{split}_pmid.tsv').write_text(','.join(names))
    return tmp_path / 'HoC'


def test_hallmarks_of_cancer_byte_for_byte(hallmarks, tmp_path, capsys):
    assert cli.main(['rebuild', '--set=hoc', f'--from={hallmarks}', f'--to={tmp_path / "sets"}']) == 0
    first, second, *others = capsys.readouterr().out.splitlines()
    assert '1,295 / 186 / 371 examples in train / devel / test; the public files byte for byte' in first
    assert '12,119 / 1,798 / 3,547 sentences; 197 / 22 / 53 abstracts have no hallmark' in second
    if os.environ.get('BIOPTIMUS_ORIGINALS'):
        assert [line.split(': ')[1].split()[0] for line in others] == ['268', '11']


def save_pico(folder, split, documents):
    """Files of documents, `{name: {words, participants, interventions, outcomes}}`, and their list."""
    part = 'test/gold' if split == 'test' else 'train'
    for name, columns in documents.items():
        for element, given in columns.items():
            place = f'annotations/aggregated/starting_spans/{element}/{part}/{name}.AGGREGATED.ann'
            file = folder / 'ebm_nlp_2_00' / (f'documents/{name}.tokens' if element == 'words' else place)
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text('\n'.join(given), 'utf-8')
    (folder / f'{split}_pmid.txt').write_text('\n'.join(documents))


# The first word of the first is of two elements; the second has labels of one element, for two of its words.
PICO = {
    'train': {
        '1': {
            'words': ['Aspirin', 'helped', '.', '12', 'men'],
            'participants': '00011',
            'interventions': '10000',
            'outcomes': '11000',
        }
    },
    'dev': {'2': {'words': ['No', 'dose', '.'], 'interventions': '02'}},
    'test': {'3': {'words': ['.'], 'participants': '0', 'interventions': '4', 'outcomes': '0'}},
}
PICO_MADE = {
    'train': '-DOCSTART- (1)\n\nAspirin\tI-OUT\nhelped\tI-OUT\n.\tO\n\n12\tI-PAR\nmen\tI-PAR\n',
    'devel': '-DOCSTART- (2)\n\nNo\tO\ndose\tI-INT\n',
    'test': '-DOCSTART- (3)\n\n.\tI-INT\n\n',
}


def test_pico_of_a_few_words_and_what_is_refused(tmp_path, monkeypatch, capsys):
    for split, documents in PICO.items():
        save_pico(tmp_path / 'pico', split, documents)
    found = [hashlib.sha256(text.encode()).hexdigest() for text in PICO_MADE.values()]
    found[0] = '11279f9c11b501aec2b65e5be42746a6c120233a'  # of the train file, as `git hash-object` says it
    monkeypatch.setattr(ebmnlp, 'BUILDER', dataclasses.replace(ebmnlp.BUILDER, checksums=tuple(found)))
    record = dataclasses.replace(words.SETS['ebmnlp'], documents=(1, 1, 1), words=(4, 1, 1))
    monkeypatch.setitem(words.SETS, 'ebmnlp', record)
    command = ['rebuild', '--set=ebmnlp', f'--from={tmp_path / "pico"}']
    labels = tmp_path / 'pico/ebm_nlp_2_00/annotations/aggregated/starting_spans'
    (changed,) = labels.glob('outcomes/train/1.*')
    for content, message in (
        ('1\nx', '1.AGGREGATED.ann: label 2 is not a number'),
        ('0\n0\n0\n0\n0', 'other bytes in train (SHA '),
    ):
        before = changed.read_text()
        changed.write_text(content)
        assert cli.main([*command, f'--to={tmp_path / "sets"}']) == 3
        assert message in capsys.readouterr().err
        changed.write_text(before)
    with tarfile.open(tmp_path / 'pico' / 'ebm_nlp_2_00.tar.gz', 'w:gz') as archive:
        archive.add(tmp_path / 'pico' / 'ebm_nlp_2_00', 'ebm_nlp_2_00')
    (tmp_path / 'pico' / 'ebm_nlp_2_00').rename(tmp_path / 'elsewhere')
    assert cli.main([*command, f'--to={tmp_path / "sets"}']) == 0
    first, *notes = capsys.readouterr().out.splitlines()
    assert '1 / 1 / 1 examples in train / devel / test; the public files byte for byte' in first
    assert [note.split(': ')[1].split()[:2] for note in notes] == [
        ['1', 'documents'],
        ['1', 'documents'],
        ['1', 'words'],
    ]
    assert {p.stem: p.read_text() for p in (tmp_path / 'sets' / 'ebmnlp').iterdir()} == PICO_MADE
    chosen = set_at(tmp_path / 'sets' / 'ebmnlp')
    assert len(task_for(chosen).read(chosen).train) == 2
    (tmp_path / 'pico' / 'dev_pmid.txt').write_text('4')
    assert cli.main([*command, f'--to={tmp_path / "others"}']) == 3
    assert 'has no documents/4.tokens in it' in capsys.readouterr().err


def test_pico_s_test_set_byte_for_byte(data, tmp_path):
    """The public words and classes are compared; train's public file is known by what git calls it alone."""
    documents = {}
    for part in (data / 'blurb' / 'ebmnlp' / 'test.tsv').read_bytes().decode().split('-DOCSTART- (')[1:]:
        name, lines = part.split(')\n\n')
        rows = [line.split('\t') for line in lines.split('\n') if line]
        columns = {e: [str(int(x == label)) for _, x in rows] for e, label in ebmnlp.ELEMENTS.items()}
        documents[name] = {'words': [word for word, _ in rows], **columns}
    for split, of_split in {**PICO, 'test': documents}.items():
        save_pico(tmp_path, split, of_split)
    made = ebmnlp.make(Originals(tmp_path), 1)
    content = written(ebmnlp.BUILDER, made, 'test', INPUTS['dummies'])
    assert hashlib.sha256(content).hexdigest() == ebmnlp.BUILDER.checksums[2]
