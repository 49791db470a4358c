"""A class for every word: measures against seqeval, the public set's counts, and the stage."""

import dataclasses
import random

import pytest
from toy_sets import DRUGS, OTHER, save_encoder

from bioptimus_jax.experiment import config
from bioptimus_jax.experiment.schema import Experiment
from bioptimus_jax.experiment.stages import STAGES
from bioptimus_jax.finetuning.task import DEFAULT, task_for
from bioptimus_jax.finetuning.tasks.word_classes import MICRO, TASK, macro
from bioptimus_jax.run.execute import execute
from bioptimus_jax.run.folder import Run
from bioptimus_jax.sets import words
from bioptimus_jax.sets.corpora import read_split, set_at
from bioptimus_jax.storage.files import read_json, read_jsonl

TYPES = ('PAR', 'INT', 'OUT')


def drawn(seed, sentences=40):
    draw = random.Random(seed)
    tags = ('O', *(f'{letter}-{kind}' for kind in TYPES for letter in 'BI'))
    return [[draw.choice(tags) for _ in range(1 + at % 9)] for at in range(sentences)]


def as_words(tags):
    """Every word a mention of its own: then the F1 of mentions is that of words."""
    return [[tag if tag == 'O' else f'B-{tag[2:]}' for tag in sentence] for sentence in tags]


@pytest.mark.parametrize('seed', range(5))
def test_measures_are_seqevals_when_every_word_is_a_mention(seed):
    from seqeval.metrics import f1_score

    gold, predicted = drawn(seed), drawn(seed + 50)
    theirs = {x: f1_score(as_words(gold), as_words(predicted), average=x) for x in ('macro', 'micro')}
    assert macro(TYPES).scores(gold, predicted)['f1'] == pytest.approx(theirs['macro'])
    assert MICRO.scores(gold, predicted)['f1'] == pytest.approx(theirs['micro'])


def test_a_mention_is_a_run_of_words_of_one_class():
    """Models are taught no beginnings, so the page shows none of them as an error."""
    gold, predicted = ('B-PAR', 'B-PAR', 'O', 'I-INT', 'I-PAR'), ('B-PAR', 'I-PAR', 'O', 'B-INT', 'B-PAR')
    assert MICRO.scores([gold], [predicted])['f1'] == 1
    assert (
        [*TASK.mentions(gold)] == [*TASK.mentions(predicted)] == [('PAR', 0, 1), ('INT', 3, 3), ('PAR', 4, 4)]
    )


def test_the_public_files_have_the_published_counts(data):
    """The files that are at hand are counted: the training split is not."""
    known = words.published('EBM-PICO')
    for split, at in {'devel': 1, 'test': 2}.items():
        sentences = read_split(data / 'blurb' / 'ebmnlp', split)
        assert sum(tag != 'O' for s in sentences for tag in s.tags) == known.words[at]
        assert len({s.document for s in sentences}) == known.documents[at]


@pytest.fixture
def pico(tmp_path):
    """Drugs are interventions, patients participants; documents of two sentences."""
    draw, classes = random.Random(0), {'patient': 'I-PAR', **dict.fromkeys(DRUGS, 'I-INT'), 'dose': 'I-OUT'}
    folder = tmp_path / 'sets' / 'ebmnlp'
    folder.mkdir(parents=True)
    for split, documents in {'train': 50, 'dev': 10, 'test': 15}.items():
        lines = []
        for number in range(documents):
            lines += [f'-DOCSTART- ({number})\tO', '']
            for _ in range(2):
                sentence = draw.choices((*OTHER, *DRUGS), k=6)
                lines += [*(f'{word}\t{classes.get(word, "O")}' for word in sentence), '']
        (folder / f'{split}.tsv').write_text('\n'.join(lines) + '\n')
    return folder


def test_the_stage_learns_and_scores_words_by_class(pico, tmp_path):
    assert task_for(set_at(pico)).types == TYPES
    e = Experiment.from_config(config.defaults())
    settings = dataclasses.replace(
        e.finetune,
        folder=str(pico.parent),
        models=(f'a={save_encoder(tmp_path / "bert")}',),
        settings=('standard', 'crf'),
        setting={'crf': {'head': 'crf'}},
        epochs=8,
        learning_rate=5e-3,
        max_pieces=32,
        overlap_pieces=4,
    )
    runtime = dataclasses.replace(e.runtime, workers=1)  # no process to begin for so little
    e = dataclasses.replace(e, stages=('finetune', 'report'), finetune=settings, runtime=runtime)
    run = Run(tmp_path / 'run', e, quiet=True)
    execute(run, STAGES['finetune'])
    folder = run.workdir / 'finetune'
    records = read_jsonl(folder / 'results.jsonl')
    assert [(r['task'], r['setting']) for r in records] == [
        ('word_classes', 'standard'),
        ('word_classes', 'crf'),
    ]
    for record in records:
        by_class = [record['test_by_type'][kind]['f1'] for kind in TYPES]
        assert record['test'][DEFAULT]['f1'] == pytest.approx(sum(by_class) / 3)
        assert record['test'][DEFAULT]['f1'] > 0.9
        assert record['gold_in_file'] == record['gold_scored'] > 0
    assert {(r['unit'], r['units']) for r in read_json(folder / 'statistics.json')} == {('documents', 15)}
    execute(run, STAGES['report'])
    assert 'macro F1 of words' in (run.workdir / 'report' / 'tables.md').read_text('utf-8')
