"""The first config of one's own, and rows as the model sees them."""

import dataclasses
import io
import json
import re
import runpy
import shlex
import shutil
import sys
from pathlib import Path

import jax
import numpy as np
import pytest
from safetensors.numpy import load_file, save_file
from toy_commands import call
from toy_pretraining import copy_of, experiment
from toy_sets import save_set
from toy_start import WORDS, save_source, texts_of

from bioptimus_jax.cli import main as cli
from bioptimus_jax.cli.verbs import init
from bioptimus_jax.corpus.config import Content, Corpus
from bioptimus_jax.errors import InputError
from bioptimus_jax.experiment import config
from bioptimus_jax.experiment.schema import Experiment
from bioptimus_jax.hosts.devices import DEVICES, MFU
from bioptimus_jax.model.config import FAMILIES
from bioptimus_jax.model.families.bert import Bert
from bioptimus_jax.model.families.modernbert import ModernBert
from bioptimus_jax.pretrain import curriculum, mixture
from bioptimus_jax.pretrain.batches import Batches
from bioptimus_jax.pretrain.objective import make_objective
from bioptimus_jax.pretrain.plan import Assumptions, make_plan
from bioptimus_jax.pretrain.sharding import batch_sharding, make_mesh
from bioptimus_jax.pretrain.step import example_at
from bioptimus_jax.pretrain.throughput import forward_flops_per_token
from bioptimus_jax.run.folder import Run
from bioptimus_jax.start.hours import Costs, lengths_of_sets
from bioptimus_jax.start.machine import machine
from bioptimus_jax.start.recommend import SENTENCES, config_text, wide_rows
from bioptimus_jax.start.shown import HIDDEN, KEPT, NEW, RANDOM, first_rows
from bioptimus_jax.start.speeds import Speeds
from bioptimus_jax.start.texts import CHARACTERS, local_texts, look_into
from bioptimus_jax.storage.files import write_json
from bioptimus_jax.tokenizer.subwords import load


@pytest.fixture(scope='module')
def source(tmp_path_factory):
    return save_source(tmp_path_factory.mktemp('source'))


def asked(source, file, *more):
    return 'init', 'mine.py', f'--source={source}', f'--texts={file}', '--hours=1', '--device=a100-80', *more


def written(folder):
    return Experiment.from_config(config.load(str(folder / 'mine.py')), paths=False)


def test_the_words_of_texts_are_counted_or_estimated_by_the_sizes_of_files(tmp_path):
    few = look_into(Corpus(inputs=(str(texts_of(tmp_path)),)))
    assert (few.words, few.counted, len(few.sample)) == (9000, True, 300)
    # What a later record takes back or replaces does not count.
    record = (
        '<MedlineCitation><PMID>{}</PMID><Article><Abstract><AbstractText>{} words</AbstractText></Abstract>'
    )
    record += '</Article></MedlineCitation>'
    records = [record.format(*one) for one in ((1, 'Two'), (2, 'Of these no'), (1, 'Now three'))]
    records.append('<DeleteCitation><PMID>2</PMID></DeleteCitation>')
    (tmp_path / 'x.xml').write_text(f'<PubmedArticleSet>{"".join(records)}</PubmedArticleSet>', 'utf-8')
    few = look_into(Corpus(inputs=(str(tmp_path / 'x.xml'),), min_words=1))
    assert (few.words, few.counted, few.sample) == (3, True, ['Now three words'])
    # What the corpus leaves out by itself, or has several times, does not count as its own.
    for number, text in enumerate(
        ['One two', 'One two!', 'Eins zwei drei', 'It has more words than are asked for']
    ):
        with (tmp_path / 'judged.jsonl').open('a') as file:
            file.write(json.dumps({'id': number, 'abstract': text, 'n': 2.0 - number % 2}) + '\n')
    content = Content(where=('n>0',), weight='n')
    judged = Corpus(
        inputs=(str(tmp_path / 'judged.jsonl'),), min_words=2, max_document_words=4, content=content
    )
    few = look_into(dataclasses.replace(judged, heldout_fraction=0.0))
    assert (few.words, few.in_corpus, few.counted) == (15, 10, True)
    assert few.said() == '15 words (counted) in the texts at hand, 10 in the corpus of them'
    assert (len(few.records), few.sample) == (4, ['One two', 'Eins zwei drei'])
    with pytest.raises(
        InputError, match=r'of 4 documents that were looked at none stays \(3 condition, 1 too_long\)'
    ):
        look_into(dataclasses.replace(judged, min_words=1, content=Content(where=('words>20',))))
    # Files are often in the order of time, so the newest one is looked into as well.
    for number in range(9):
        (tmp_path / f'year{number}.jsonl').write_text(
            json.dumps({'id': number, 'abstract': f'Words of {number}', 'year': 2000 + number})
        )
    newest = Corpus(inputs=(str(tmp_path / 'year*.jsonl'),), min_words=1)
    few = look_into(dataclasses.replace(newest, content=Content(where=('year>=2008',))))
    assert (few.words, few.counted, few.sample) == (pytest.approx(27), False, ['Words of 8'])
    many = tmp_path / 'many'
    many.mkdir()
    documents = 2 * CHARACTERS // 300
    found = look_into(Corpus(inputs=(str(texts_of(many, documents, ending='.gz')),)))
    assert not found.counted
    assert len(found.sample) < documents
    assert found.words == pytest.approx(30 * documents, rel=0.1)
    assert found.documents == pytest.approx(documents, rel=0.1)


def test_init_writes_a_short_config_that_says_why(source, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert call(capsys, *asked(source, texts_of(tmp_path))) == (0, '')
    text = (tmp_path / 'mine.py').read_text()
    assert len(text.splitlines()) <= 25
    body = text.partition('def get_config')[2].splitlines()[1:-1]
    assert all('  # ' in line for line in body)
    made = written(tmp_path)
    assert made.source.path == str(source)
    assert made.corpus.heldout_fraction == 0.067  # about 20 of 300
    assert (made.vocab.kind, made.vocab.size) == ('train', 100)
    assert made.rows.max_document_pieces == 64  # of 128: the source has no more positions
    assert 'finetune' not in made.stages
    assert made.phase['words'].masking == 'words'
    assert made.pretrain.learning_rate == 2e-3
    # Given again, the command in the file writes the same file, once it may.
    [command] = [line for line in text.splitlines() if 'Written by' in line]
    assert '--hours=1' in command
    assert call(capsys, *asked(source, tmp_path / 'texts.jsonl'))[0] == 2
    assert call(capsys, *asked(source, tmp_path / 'texts.jsonl', '--replace')) == (0, '')
    assert (tmp_path / 'mine.py').read_text() == text
    assert SENTENCES not in text
    # Of a source that was made for vectors of sentences it says what adapting costs.
    (made_for_them := source / 'modules.json').write_text('[]')
    try:
        assert cli.main([*asked(source, tmp_path / 'texts.jsonl', '--replace')]) == 0
    finally:
        made_for_them.unlink()
    assert f'\n# {SENTENCES}\n' in capsys.readouterr().out
    assert f'\n    # {SENTENCES}\n' in (tmp_path / 'mine.py').read_text()
    assert written(tmp_path) == made


def test_the_length_follows_from_the_hours_the_device_and_the_texts(source, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    file = texts_of(tmp_path)
    arguments = [a for a in asked(source, file, '--devices=2') if not a.startswith('--hours')]
    assert call(capsys, *arguments, '--hours=1e-8') == (0, '')
    made = written(tmp_path)
    [phase] = make_plan(made, Assumptions(words=9000)).phases
    affordable = 1e-8 * 3600 * 0.8 * MFU * 2 * DEVICES['a100-80'].peak_flops / phase.flops_per_piece
    assert made.phase['words'].duration == pytest.approx(affordable, rel=0.06)
    assert made.phase['words'].duration_unit == 'tokens'
    # Of so few pieces the batch is small; of many hours the texts are the bound.
    assert made.pretrain.batch_rows == 8
    assert call(capsys, *arguments, '--hours=1000', '--replace') == (0, '')
    made = written(tmp_path)
    pieces = sum(len(e.ids) for e in load(source).encode(look_into(Corpus(inputs=(str(file),))).sample))
    assert made.phase['words'].duration < 34 * pieces
    assert 'passes: as many as the paper makes' in (tmp_path / 'mine.py').read_text()


@pytest.mark.parametrize(
    ('family', 'device', 'keys', 'width'),
    [
        ('bert', 'h100', (), 1024),
        ('bert', 'a100-80', (), 512),
        ('bert', 'h100', (('rows.row_pieces', '512'),), 512),
        ('modernbert', 'h100', (), 1024),  # its windows are masks, whose cost grows with the row
    ],
)
def test_rows_are_wider_than_documents_where_attention_skips_other_documents(family, device, keys, width):
    loaded, shape = (
        config.load(f'recommended:{family}'),
        FAMILIES.load(family)(30522, 768, 22, 12, 1152, 8192),
    )
    before = loaded.rows.row_pieces * loaded.pretrain.batch_rows
    lines = list(wide_rows(loaded, shape, machine(device), keys))
    assert loaded.rows.row_pieces == width
    assert loaded.rows.row_pieces * loaded.pretrain.batch_rows == before
    assert [line.line for line in lines] == ['config.rows.row_pieces = 1024'] * (
        family == 'bert' and width == 1024
    )


@pytest.mark.parametrize(
    ('hours', 'stages', 'lean'),
    [
        (50, ('finetune', 'analyze'), ()),
        (0.5, ('finetune', 'analyze'), ('evaluation.per_phase = 1', 'left out: words in context')),
        (
            0.1,
            ('analyze',),
            ("surgery.strategy = 'spelled'", 'left out: fine-tuning (', 'later by `bioptimus finetune`'),
        ),
    ],
)
def test_hours_are_of_all_stages_and_what_does_not_fit_is_named(
    hours, stages, lean, source, tmp_path, monkeypatch, capsys
):
    monkeypatch.chdir(tmp_path)
    speeds = Speeds(train=1e6, forward=1e6, torch=1e6, compiling=1.0, slowness=0.1, measured=True)
    monkeypatch.setattr('bioptimus_jax.start.recommend.speeds_of', lambda *_: speeds)
    monkeypatch.setattr('bioptimus_jax.start.machine.product_rate', lambda platform: (3e8, 'float32', 8))
    monkeypatch.setattr('bioptimus_jax.start.machine.copy_rate', lambda: 1e9)
    (tmp_path / 'sets').mkdir()
    save_set(tmp_path / 'sets' / 'drugs')
    more = f'--sets={tmp_path / "sets"}', '--device=cpu', f'--hours={hours}', '--config.finetune.epochs=5'
    more += ('--config.corpus.heldout_fraction=0.3',)
    assert call(capsys, *asked(source, texts_of(tmp_path)), *more) == (0, '')
    made, text = written(tmp_path), (tmp_path / 'mine.py').read_text()
    assert len(text.splitlines()) <= 30
    assert all(line in text for line in lean), text
    assert [name for name in ('finetune', 'analyze') if name in made.stages] == list(stages)
    costs = Costs(
        made, make_plan(made, Assumptions(words=9000)), speeds, 9000, 60, lengths_of_sets(made.finetune, 1.5)
    )
    seconds = costs.seconds()
    taken = sum(seconds.values()) / 3600
    assert made.runtime.train_hours == pytest.approx(max(hours - costs.later() / 3600, 0.1 * hours), rel=0.1)
    assert costs.later() == pytest.approx(
        sum(seconds[n] for n in made.stages[made.stages.index('pretrain') + 1 :])
    )
    bound_by_texts = made.phase['words'].duration > 30 * 9000 * (1 - made.corpus.heldout_fraction)
    assert taken <= 1.1 * hours, text
    assert bound_by_texts or taken > 0.8 * hours, text
    assert costs.steps() > 0.2 * hours * 3600 or bound_by_texts
    # Epochs, settings and seeds of one set count as those of all.
    changes = {'setting': {'long': {'epochs': 50}}, 'settings': ('standard', 'long')}
    longer = dataclasses.replace(made, finetune=dataclasses.replace(made.finetune, **changes))
    of_set = {'drugs': {'epochs': 55, 'settings': ('standard',)}}
    as_long = dataclasses.replace(longer, finetune=dataclasses.replace(longer.finetune, of_set=of_set))
    beside = [dataclasses.replace(costs, experiment=each).finetuning() for each in (made, longer, as_long)]
    assert beside[1] > beside[2] > 5 * beside[0]
    parts = costs.steps(), costs.evaluations(), costs.beside_steps()
    assert seconds['pretrain'] == pytest.approx(sum(parts))
    # Held-out documents are scored in rows of their own, 64 together, by two masks, and at the start and the end by one
    # more; how rows are packed and trained on does not matter.
    wide = dataclasses.replace(made, rows=dataclasses.replace(made.rows, row_pieces=1024))
    wide = dataclasses.replace(wide, evaluation=dataclasses.replace(made.evaluation, rows=256, per_phase=4))
    words = 88 * 228 / made.corpus.heldout_fraction
    of_wide = dataclasses.replace(costs, experiment=wide, words=words).evaluations() * speeds.forward
    length = made.rows.max_document_pieces
    each = forward_flops_per_token(costs.plan.architecture, length, made.evaluation.rate)
    assert of_wide == pytest.approx((5 * 2 + 2 * 1) * 2 * 64 * length * each)
    # A text of a set has as many words as it has between spaces; so has a sentence.
    for split, count in (('train', 3), ('dev', 2), ('test', 1)):
        rows = ''.join(f'{n}\tone or two words\tyes\n{n}b\tnone\tno\n' for n in range(count))
        (tmp_path / 'sets' / 'topics').mkdir(exist_ok=True)
        (tmp_path / 'sets' / 'topics' / f'{split}.tsv').write_text(f'index\tsentence\tlabel\n{rows}')
    alone = dataclasses.replace(
        made, finetune=dataclasses.replace(made.finetune, task='classes', datasets=('topics',))
    )
    assert [(of.train, of.devel, of.test) for of in lengths_of_sets(alone.finetune, 2.0)] == [(30, 20, 10)]
    # What is longer is cut.
    for most in (500, 120):
        cut = dataclasses.replace(alone, finetune=dataclasses.replace(alone.finetune, max_pieces=most))
        assert [of.train for of in lengths_of_sets(cut.finetune, 100.0)] == [3 * (min(400, most) + 100)]


@pytest.mark.parametrize(
    ('architecture', 'more', 'rate'),
    [
        (Bert, (), 5e-5),
        (ModernBert, (), 1.5e-4),
        (ModernBert, ('--config.pretrain.learning_rate=4e-4',), 4e-4),
    ],
)
def test_a_wide_source_learns_half_as_fast_as_base_models_of_its_family(
    architecture, more, rate, source, tmp_path, monkeypatch, capsys
):
    monkeypatch.chdir(tmp_path)
    wide = tmp_path / 'wide'
    shutil.copytree(source, wide, ignore=shutil.ignore_patterns('*.safetensors'))
    shape = architecture(len(load(source).tokens), 1024, 1, 16, 1024, 128)
    write_json(wide / 'config.json', {'model_type': shape.model_type, **shape.to_config()})
    assert call(capsys, *asked(wide, texts_of(tmp_path)), *more) == (0, '')
    assert written(tmp_path).pretrain.learning_rate == rate
    assert ('half of that of base models' in (tmp_path / 'mine.py').read_text()) == (not more)


def test_keys_are_taken_over_and_texts_read_by_them(source, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / 'own.jsonl').write_text(
        '{"number": "C-1", "body": "nephrotoxin and cardiopathy or nephrotoxin"}\n'
    )
    keys = (
        '--config.corpus.id_field=number',
        '--config.corpus.text_fields=body',
        '--config.runtime.workers=1',
    )
    assert call(capsys, *asked(source, tmp_path / 'own.jsonl'))[0] == 3  # without a title and an abstract
    assert call(capsys, *asked(source, tmp_path / 'own.jsonl'), *keys) == (0, '')
    made = written(tmp_path)
    assert (made.corpus.id_field, made.corpus.text_fields, made.runtime.workers) == ('number', ('body',), 1)
    assert made.pretrain.head_steps == 0
    bare = shutil.copytree(source, tmp_path / 'bare')
    kept = {n: t for n, t in load_file(bare / 'model.safetensors').items() if not n.startswith('cls.')}
    save_file(kept, bare / 'model.safetensors')
    assert call(capsys, *asked(bare, tmp_path / 'own.jsonl'), *keys, '--replace') == (0, '')
    make_plan(written(tmp_path), Assumptions(words=5))  # one step, which a head cannot share
    # What is asked for is what the other lines follow from: words that are taken, steps of the batch, vocabulary.
    said = ('--config.corpus.max_words=900', '--config.pretrain.batch_rows=32', '--config.vocab.kind=append')
    more = ('--config.vocab.size=200', '--config.stages=corpus,vocab,contexts,surgery,rows,pretrain,export')
    assert call(capsys, *asked(bare, texts_of(tmp_path)), *said, *more, '--replace') == (0, '')
    made, text = written(tmp_path), (tmp_path / 'mine.py').read_text()
    assert '  # append: as you asked' in text
    assert 'the source has no masked-LM head; these steps' in text
    assert (made.vocab.kind, made.surgery.strategy != 'copy') == ('append', True)
    assert made.phase['words'].duration < 34 * 10 * 900
    [planned] = make_plan(made, Assumptions(words=900)).phases  # refuses a head that has most of the steps
    [steps] = re.findall(r'  # (\d+) steps', text)
    assert int(steps) == pytest.approx(planned.steps, rel=0.02)
    assert made.pretrain.head_steps == max(round(int(steps) / 10), 1)
    assert 'config.stages = ' not in text
    # A phase may be as long as somebody wants it; the command in the file names files with spaces as they were given.
    (tmp_path / 'texts.jsonl').rename(tmp_path / "somebody's texts.jsonl")
    in_epochs = ('--config.phase.words.duration=3', '--config.phase.words.duration_unit=epochs')
    in_epochs += ('--config.vocab.kind=file', f'--config.vocab.file={bare}')
    named = '"somebody\'s texts.jsonl"'
    assert call(capsys, *asked(bare, named), *in_epochs, '--replace') == (0, '')
    made = written(tmp_path)
    # It is measured as it is, and not as one that is trained.
    assert '# replace: as you asked; a new one saves 0% of the pieces' in (tmp_path / 'mine.py').read_text()
    assert (made.phase['words'].duration, made.vocab.kind, made.vocab.file) == (3.0, 'file', str(bare))
    [command] = [line for line in (tmp_path / 'mine.py').read_text().splitlines() if 'Written by' in line]
    again = shlex.split(command.partition('`')[2].partition('`')[0])[1:]
    assert local_texts(*(each[8:] for each in again if each.startswith('--texts='))) == (
        "somebody's texts.jsonl",
    )
    # Steps are as many whatever the batch: it is not made smaller for more of them. A copy needs the old vocabulary.
    in_steps = ('--config.phase.words.duration=40', '--config.phase.words.duration_unit=steps')
    in_parts = ('--config.pretrain.micro_batches=3', '--config.surgery.strategy=copy')
    for keys, rows in ((in_steps, 16), (in_parts, 9)):
        assert call(capsys, *asked(bare, named), *keys, '--replace') == (0, '')
        made = written(tmp_path)
        assert made.pretrain.batch_rows == rows
    assert (made.vocab.kind, made.surgery.strategy) == ('source', 'copy')


@pytest.mark.parametrize(
    ('words', 'more', 'kind', 'why'),
    [
        (WORDS, ('--hours=1',), 'train', 'replace: a new one saves'),
        (WORDS, ('--hours=1e-9',), 'source', 'too few'),
        (list('abcdef'), ('--hours=1',), 'source', 'fewer than 5%'),
        (WORDS, ('--hours=1', '--vocabulary=append'), 'append', 'append: as you asked'),
        (list('abcdef'), ('--hours=1', '--vocabulary=replace'), 'train', 'replace: as you asked'),
    ],
)
def test_what_is_done_with_the_vocabulary_follows_from_the_texts(
    words, more, kind, why, source, tmp_path, monkeypatch, capsys
):
    monkeypatch.chdir(tmp_path)
    arguments = [a for a in asked(source, texts_of(tmp_path, words=words)) if not a.startswith('--hours')]
    assert call(capsys, *arguments, *more) == (0, '')
    made = written(tmp_path)
    assert made.vocab.kind == kind
    assert (made.surgery.strategy == 'copy') == (kind == 'source')
    assert why in (tmp_path / 'mine.py').read_text()


def test_a_run_by_the_written_config(source, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert call(capsys, *asked(source, texts_of(tmp_path))) == (0, '')
    # The tokenizer has letters alone, so none of its tokens can be spelled in others.
    short = (
        '--config.phase.words.duration=4',
        '--config.phase.words.duration_unit=steps',
        '--config.surgery.map=none',
    )
    stages = '--config.stages=corpus,vocab,contexts,surgery,rows,pretrain,export'
    small = ('--config.runtime.workers=1', '--config.corpus.near.threshold=0')
    assert call(capsys, 'run', '--config=mine.py', '--workdir=run', *short, stages, *small) == (0, '')
    assert (tmp_path / 'run/export/words/config.json').is_file()
    capsys.readouterr()
    assert call(capsys, 'show', '--config=mine.py', '--workdir=run', '--rows=2', *short, *small)[0] == 0


@pytest.mark.parametrize(
    ('changes', 'expected'),
    [
        (('--source=nowhere',), 'nowhere: no such folder here, and no whole copy in the cache'),
        (('--texts=*.nothing',), '*.nothing: no such file'),
        (('--texts=hf://datasets/a/b/*.parquet',), 'looking into texts needs local files'),
        (('--device=a1000',), '--device=a1000: no such device; known: cpu, t4, l4'),
        (('--vocabulary=new',), '--vocabulary=new: is not one of keep, append, replace'),
        (
            ('--vocabulary=keep', '--config.vocab.kind=append'),
            '--vocabulary=keep: contradicts --config.vocab.kind=append; leave one of them out',
        ),
        (
            ('--config.phase.words.duration=3',),
            '--config.phase.words.duration: give --config.phase.words.duration_unit, too; else nobody knows',
        ),
        (
            ('--config.phase.words.duration_unit=words',),
            'give --config.phase.words.duration, too; else nobody',
        ),
        (
            ('--device=a100-80', '--devices=8', '--config.pretrain.batch_rows=12'),
            '12 rows are not a multiple of the 8 devices that share them',
        ),
        (
            ('--config.pretrain.batch_rows=12', '--config.pretrain.micro_batches=5'),
            'config.pretrain.micro_batches: does not divide batch_rows=12',
        ),
        (('--sets=nowhere',), 'nowhere'),
        (('--hours=0',), "'0': must be a number above 0"),
        (
            ('--config.phases=0.1,0.2',),
            '--config.phases=0.1,0.2: init writes one phase, words; leave the key out',
        ),
        (('--config.phases=0.2',), '--config.phases=0.2: init writes one phase, words; leave the key out'),
        (("--texts='a",), 'close the quotation'),
    ],
)
def test_what_cannot_be_right_is_refused_and_nothing_is_written(
    changes, expected, source, tmp_path, monkeypatch, capsys
):
    monkeypatch.chdir(tmp_path)
    code, message = call(capsys, *asked(source, texts_of(tmp_path)), *changes)
    assert code in (2, 3)
    assert expected in message
    assert not (tmp_path / 'mine.py').exists()


def test_on_a_terminal_what_is_missing_is_asked_until_it_can_be_right(source, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    code, message = call(capsys, 'init', f'--source={source}')
    assert (code, message) == (
        2,
        'bioptimus: --texts is missing: Texts of the domain, files or globs with spaces between',
    )
    answers = f'nowhere.jsonl\n{texts_of(tmp_path)}\n\ncray\na100-80\n\nmany\n1\n'
    terminal = io.StringIO(answers)
    terminal.isatty = lambda: True
    monkeypatch.setattr(sys, 'stdin', terminal)
    assert call(capsys, 'init', 'mine.py', f'--source={source}')[0] == 0
    assert terminal.read() == ''
    assert runpy.run_path(str(tmp_path / 'mine.py'))['get_config']().source.path == str(source)


def test_shown_rows_are_those_that_the_first_step_reads(prepared):
    run = Run(prepared / 'run', experiment(prepared), quiet=True)
    rows, subwords = (
        mixture.open_rows(run.config, run.folder('rows'), run.manifest('vocab')),
        load(run.folder('vocab')),
    )
    shown = list(first_rows(run.config, rows, run.folder('vocab'), 3, 64))
    mesh, schedule = make_mesh(1), curriculum.make_schedule(run.config, mixture.counts_of(run.config, rows))
    [rows] = rows.values()
    objective = make_objective(run.config, Bert(300, 16, 2, 4, 32, 32), subwords, rows.pieces, mesh, print)
    batch = Batches(rows, 8, run.config.seed, batch_sharding(mesh)).at(0)
    table = curriculum.table(schedule, run.config)
    example = jax.jit(lambda batch: example_at(objective, batch, table, jax.numpy.int32(0)))(batch)
    masked = example.rows.masked
    assert len(shown) == 3
    for at, row in enumerate(shown):
        first = row.phases[run.config.phases[0]]
        inputs = [subwords.tokens[n] for n in np.asarray(masked.inputs_L[at])[: row.pieces]]
        assert [piece.text for piece in first] == inputs
        slots = {int(s) for s, w in zip(masked.slots_M[at], masked.weights_M[at], strict=True) if w}
        assert {i for i, piece in enumerate(first) if piece.marked} == slots
        plain = [piece.text for piece in row.plain]
        assert plain == [subwords.tokens[n] for n in np.asarray(batch['tokens'][at])[: row.pieces]]
        for pieces in row.phases.values():
            for piece, true in zip(pieces, plain, strict=True):
                hidden = piece.text == subwords.tokens[subwords.mask]
                assert hidden == (piece.marked == HIDDEN)
                assert piece.marked == RANDOM or hidden or piece.text == true
    kinds = {p.marked for row in shown for pieces in row.phases.values() for p in pieces}
    assert kinds == {'', HIDDEN, RANDOM, KEPT}
    masked_alone = {p.marked for row in shown for p in row.phases[run.config.phases[-1]]}
    assert masked_alone == {'', HIDDEN}


def test_show_marks_new_tokens_and_words(prepared, tmp_path, relisted, capsys):
    run = Run(copy_of(prepared, tmp_path), experiment(prepared), quiet=True)
    rows = mixture.open_rows(run.config, run.folder('rows'), run.manifest('vocab'))
    [row] = first_rows(run.config, rows, run.folder('vocab'), 1, 5)
    new = next(piece.text for piece in row.plain if not piece.text.startswith('['))
    (run.workdir / 'vocab/new_tokens.txt').write_text(f'{new}\n')
    relisted(run, 'vocab')
    [row] = first_rows(run.config, rows, run.folder('vocab'), 1, 5)
    assert {piece.text for piece in row.plain if piece.marked == NEW} == {new}
    # The texts are not read again, so their folder need not be known.
    tiny = (prepared / 'tiny.py').read_text()
    (tmp_path / 'unset.py').write_text(tiny.replace(str(prepared / 'corpus.jsonl'), '$UNSET/*.jsonl'))
    arguments = (
        'show',
        f'--config={tmp_path / "unset.py"}',
        f'--workdir={run.workdir}',
        '--rows=1',
        '--pieces=5',
    )
    capsys.readouterr()
    from bioptimus_jax.cli import main as cli

    assert cli.main(list(arguments)) == 0
    out = capsys.readouterr().out
    assert f'{{{new}}}' in out
    assert 'mlm: masked language modelling\nphases: 0.1 (tokens, 15%, 80-10-10), ' in out
    assert f'row {row.number}: {row.documents} documents, {row.pieces} pieces, the first 5 shown' in out
    assert all(f'  {name}' in out for name in ('pieces', *run.config.phases))
    assert cli.main([*arguments, '--rows=500']) == 0
    asked = capsys.readouterr()
    size = run.config.pretrain.batch_rows
    assert asked.out.count('\nrow ') == size
    assert f'the first step has {size} rows, and no others are shown' in asked.err
    code, message = call(capsys, 'show', f'--config={prepared / "tiny.py"}', f'--workdir={tmp_path / "none"}')
    assert (code, 'no such run folder' in message) == (3, True)
    assert not (tmp_path / 'none').exists()


def test_the_commands_for_a_config_with_a_blank_in_its_name_can_be_typed():
    *_, plan, run = (
        shlex.split(line) for line in init.written(Path('my own.py'), ' --device=h200').splitlines()
    )
    assert plan == ['bioptimus', 'plan', '--config=my own.py', '--device=h200']
    assert run == ['bioptimus', 'run', '--config=my own.py', '--workdir=runs/my own']
    assert "bioptimus run '--config=my own.py' --workdir" in config_text(
        'recommended', [], 'init', 'my own.py'
    )
