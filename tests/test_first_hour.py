"""The first hour of a new user: first_hour.sh in an empty folder, with a small model, few texts and one set."""

import gzip
import json
import random
import re
import subprocess
from pathlib import Path

from toy_programs import environment
from toy_sets import DRUGS, OTHER, save_encoder, save_set

SCRIPT = Path(__file__).with_name('first_hour.sh')
KEYS = (
    *('config.finetune.epochs=2', 'config.finetune.learning_rate=5e-3'),
    *('config.corpus.near.threshold=0', 'config.corpus.heldout_fraction=0.1', 'config.runtime.workers=1'),
    *('config.evaluation.rows=8', 'config.surgery.map=none', 'config.runtime.log_every_steps=1'),
)


def test_every_step_of_the_first_hour_works_at_the_first_try(programs, tmp_path):
    draw, own = random.Random(0), tmp_path / 'own'
    for folder in (own / 'model', own / 'sets', tmp_path / 'here'):
        folder.mkdir(parents=True)
    save_encoder(own / 'model')
    save_set(own / 'sets' / 'drugs', (60, 10, 10))
    with gzip.open(own / 'abstracts.jsonl.gz', 'wt') as file:
        for number in range(1500):
            words = [draw.choice((*OTHER, *DRUGS)) for _ in range(25)]
            file.write(json.dumps({'id': str(number), 'title': '', 'abstract': ' '.join(words)}) + '\n')
    done = subprocess.run(
        ['sh', str(SCRIPT), *KEYS],
        cwd=tmp_path / 'here',
        env={
            **environment(),
            'PATH': f'{programs}:{environment()["PATH"]}',
            **{'SOURCE': str(own / 'model'), 'SETS': str(own / 'sets'), 'HOURS': '0.002'},
            'TEXTS': str(own / 'abstracts.jsonl.gz'),
        },
        capture_output=True,
        text=True,
        timeout=300,
    )
    said = done.stdout
    assert done.returncode == 0, said[-3000:] + done.stderr[-3000:]
    assert re.findall(r'== \d+ s: (\w+)', said)[-1] == 'done'
    assert 'pretrain: resuming after step' in said
    assert 'models: mine/export/words' in said
    assert len(re.findall(r'^\S+ [01]\.\d+$', said, re.M)) == 3  # what stands for [MASK]
