"""What the README says to do, done: its commands and its Python, on stand-ins for its models, texts and sets."""

import gzip
import json
import random
import re
import shlex
from pathlib import Path

from toy_sets import DRUGS, OTHER, save_encoder, save_set

from bioptimus_jax.cli import main as cli

README = Path(__file__).resolve().parents[1] / 'README.md'
MODEL = 'bert-base-uncased'  # a folder of that name goes before the hub
SHORT = {
    'finetune': ('--config.runtime.workers=1',),
    'run': (
        *('--config.phase.words.duration=4', '--config.phase.words.duration_unit=steps'),
        *('--config.pretrain.batch_rows=8', '--config.surgery.map=none', '--config.vocab.min_frequency=1'),
        *('--config.finetune.seeds=0', '--config.finetune.epochs=1', '--config.runtime.workers=1'),
        *('--config.corpus.near.threshold=0', '--config.corpus.heldout_fraction=0.1'),
        *('--config.model.dropout=0', '--config.model.attention_dropout=0'),
    ),
}
"""What is added to a command, for minutes are not to be spent on stand-ins."""


OVER_A_NETWORK = ('download', 'push')
"""Verbs with tests of their own: test_download.py, test_hub.py."""


def section(title):
    return README.read_text('utf-8').partition(f'\n## {title}\n')[2].partition('\n## ')[0]


def commands(title):
    """The words of every command in the blocks of a section."""
    blocks = re.findall(r'```text\n(.*?)\n```', section(title), re.S)
    lines = '\n'.join(blocks).replace('\\\n', ' ').splitlines()
    return [shlex.split(line, comments=True)[1:] for line in lines if line.startswith('bioptimus ')]


def prepare(folder):
    """The models, the texts and the sets that the README names."""
    draw = random.Random(0)
    (folder / MODEL).mkdir()
    save_encoder(folder / MODEL, layers=1)
    for place in ('ner', 'data/ner'):
        (folder / place).mkdir(parents=True)
        save_set(folder / place / 'ncbi-disease', (60, 10, 10))
    (folder / 'notes').mkdir()
    (folder / 'notes/1.txt').write_text('Torsade de pointes.')
    (folder / 'data/abstracts').mkdir()
    with gzip.open(folder / 'data/abstracts/1.jsonl.gz', 'wt') as file:
        for number in range(120):
            words = [draw.choice((*OTHER, *DRUGS, 'unlisted', 'wordings')) for _ in range(25)]
            file.write(
                json.dumps({'id': str(number), 'title': 'A title', 'abstract': ' '.join(words)}) + '\n'
            )


def test_the_commands_of_the_readme_do_what_it_says(tmp_path, monkeypatch, capsys):
    prepare(tmp_path)
    monkeypatch.chdir(tmp_path)
    done = []
    for words in (*commands('Tag your own text'), *commands('Adapt your own model')):
        if words[0] in OVER_A_NETWORK:
            continue
        words = [word.replace('=/', f'={tmp_path}/') for word in words]
        assert cli.main([*words, *SHORT.get(words[0], ())]) == 0, capsys.readouterr().err
        done.append((words[0], capsys.readouterr().out))
    verbs = ['lint', 'finetune', 'predict', 'predict', 'init', 'plan', 'run', 'status']
    assert [verb for verb, _ in done] == verbs
    said = dict(done)
    assert 'metoclopramide' in done[2][1]
    assert len((tmp_path / 'found.jsonl').read_text().splitlines()) == 1
    assert 'device-hours' in said['plan']
    model, page = re.findall(r'The model is `([^`]+)`, the page `([^`]+)`', section('Adapt your own model'))[
        0
    ]
    assert (tmp_path / model / 'config.json').is_file()
    assert (tmp_path / page).is_file()
    assert f'models: {model}' in said['run']


def test_the_python_of_the_readme_runs(tmp_path):
    import transformers

    folder = save_encoder(tmp_path)
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    assert len(tokenizer.tokenize('metoclopramide')) > 1
    names = {'tokenizer': tokenizer, 'model': transformers.AutoModelForMaskedLM.from_pretrained(folder)}
    [block] = re.findall(r'```python\n(.*?)\n```', README.read_text('utf-8'), re.S)
    exec(block, names)
    assert names['tokenizer'].tokenize('metoclopramide') == ['metoclopramide']
    assert names['model'].get_input_embeddings().num_embeddings == len(names['tokenizer'])
