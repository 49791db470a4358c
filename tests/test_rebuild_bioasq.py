"""BioASQ from files in its owner's form: made of the public lines, as the originals need a registration."""

import json

import pytest

from bioptimus_jax import cli

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
