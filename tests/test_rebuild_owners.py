"""BioASQ and Hallmarks of Cancer from files in their owners' form, made of the public lines.

BioASQ's originals need a registration. Those of Hallmarks of Cancer are read from BIOPTIMUS_ORIGINALS/hoc, with BLURB's
lists, where there is such a folder.
"""

import itertools
import json
import os
from pathlib import Path

import pytest

from bioptimus_jax import cli
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
        ('dev_id.tsv', 'ffff', 'dev_id.tsv: names ffff, which is no yes or no question of trainining7b.json'),
        (
            '7B3_golden.json',
            '{"questions": [{}]}',
            "7B3_golden.json: is no file of questions of BioASQ (KeyError('type'))",
        ),
        ('7B3_golden.json', '[', '7B3_golden.json: is no file of questions of BioASQ (JSONDecodeError'),
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
