"""Bio-LM's sets: counts of those at hand, the owners' layouts by hand, folds, sentences that are classified apart."""

import gzip
import json
import shutil
import subprocess
from pathlib import Path

import pytest
from toy_sets import save_encoder

from bioptimus_jax.corpus.audit import audited_splits, searched_texts
from bioptimus_jax.corpus.config import Audit
from bioptimus_jax.errors import InputError
from bioptimus_jax.experiment import config
from bioptimus_jax.experiment.schema import Experiment
from bioptimus_jax.finetuning.config import Finetune
from bioptimus_jax.finetuning.loading import load_head
from bioptimus_jax.finetuning.look import look_through
from bioptimus_jax.finetuning.task import task_for
from bioptimus_jax.finetuning.training import finetune
from bioptimus_jax.sets import published, texts
from bioptimus_jax.sets.characters import CUT_OFF
from bioptimus_jax.sets.corpora import read_dataset, set_at, set_files, sets_in
from bioptimus_jax.sets.sentences import SPLITS
from bioptimus_jax.sets.tags import spans
from bioptimus_jax.vocab.agreement import load_for_words

AT_HAND = {'HOC-BLUE': '', 'JNLPBA-BIOBERT': '', 'LINNAEUS': 'biobert', 'S800': '', 'CHEMPROT-SCIBERT': ''}
"""Set -> the folder within its own."""


@pytest.fixture(scope='module')
def at_hand(data, tmp_path_factory):
    """The sets at hand as their authors have them, GAD's folds among them."""
    root = tmp_path_factory.mktemp('sets')
    for name, inner in AT_HAND.items():
        (root / name).mkdir()
        for file in (data / 'tasks' / name / inner).glob('*.gz'):
            target = root / name / file.stem.replace('.jsonl', '.txt')
            target.write_bytes(gzip.decompress(file.read_bytes()))
    folds = data / 'tasks' / 'GAD' / 'GAD-biobert-10fold.tar.gz'
    subprocess.run(['tar', '-xzf', folds, '-C', root], check=True)
    return root


def test_the_sets_at_hand_have_the_published_counts(at_hand):
    looked = look_through(at_hand, {})
    assert not looked.errors
    lines = [line for of_set in looked.lines for line in of_set]
    counts = [line for line in lines if ' in train / devel / test' in line or ' mentions (' in line]
    assert len(counts) == 2 + 10 + 3 * 3
    assert [line for line in counts if 'as published' not in line] == []


def test_the_first_fold_of_gad_is_blurbs_and_all_tests_are_the_whole_set(at_hand, data):
    folds = sets_in(at_hand, [f'GAD-{fold}' for fold in range(1, 11)])
    read = [task_for(fold).read(fold) for fold in folds]
    blurbs = set_at(data / 'blurb' / 'gad')
    ours, theirs = read[0], task_for(blurbs).read(blurbs)
    assert all(getattr(ours, split) == getattr(theirs, split) for split in SPLITS)
    assert sum(len(fold.test) for fold in read) == 5330


def test_which_sets_do_not_compare_is_said():
    assert published.clashes(['gad-1', 'GAD-2', 'HoC', 'bc2gm', 'linnaeus', 'own', 'jnlpba-typed']) == []
    said = published.clashes(
        ['chemprot', 'JNLPBA', 'HoC', 'chemprot-scibert', 'jnlpba_biobert', 'HOC-BLUE', 'gad']
    )
    assert [line.partition(':')[0] for line in said] == [
        'chemprot, chemprot-scibert',
        'JNLPBA, jnlpba_biobert',
        'HoC, HOC-BLUE',
    ]


@pytest.mark.parametrize(
    ('name', 'recipe'),
    [('biolm_tasks', (1e-5, 32, 20, 'entities')), ('biolm_tasks:classes', (2e-5, 16, 10, 'classes'))],
)
def test_the_recipe_is_that_of_the_paper_and_its_code(name, recipe, monkeypatch):
    monkeypatch.setenv('BIOPTIMUS_DATA', '/data')
    monkeypatch.setenv('BIOPTIMUS_SOURCE', '/source')
    chosen = Experiment.from_config(config.load(name)).finetune
    assert (chosen.learning_rate, chosen.batch_sentences, chosen.epochs, chosen.task) == recipe
    assert (chosen.warmup_fraction, chosen.weight_decay, chosen.max_pieces, len(chosen.seeds)) == (
        0,
        0,
        512,
        5,
    )


def test_all_eighteen_tasks_have_a_record():
    eleven = 'bc5-chem bc5-disease ncbi-disease bc2gm jnlpba-biobert bc4chemd linnaeus s800 '
    eleven += 'i2b2-2010 i2b2-2012 i2b2-2014'
    seven = 'hoc-blue chemprot-blue ddi-blue gad-10 euadr-1 i2b2-2010-re mednli'
    assert [published.mentions_of(name).name for name in eleven.upper().split()] == eleven.split()
    assert [published.texts_of(name.replace('-', '_')).name for name in seven.split()] == seven.split()
    assert {published.record_of(name).task for name in seven.split()} == {'classes'}


def write(path, content):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content, 'utf-8')
    return path


NOTE = 'Admission Date :\n the patient had a high fever ,\nand got 5 mg\nwarfarin daily'
CONCEPTS = 'c="a high fever" 2:4 2:6||t="problem"\nc="5 mg warfarin" 3:2 4:0||t="treatment"\n'
TAGGED = [
    ('Admission Date :', 'O O O'),
    ('the patient had a high fever ,', 'O O O B-problem I-problem I-problem O'),
    ('and got 5 mg', 'O O B-treatment I-treatment'),
    ('warfarin daily', 'B-treatment O'),
]


@pytest.fixture
def i2b2_2010(tmp_path):
    """Twelve notes of one hospital, ten of the other, one for the test."""
    folder = tmp_path / 'I2B2_2010'
    training = folder / 'concept_assertion_relation_training_data'
    for place, count in (('beth', 12), ('partners', 10)):
        for number in range(count):
            write(
                training / place / 'txt' / f'{place}-{number}.txt', NOTE.replace('daily', f'{place} {number}')
            )
            write(training / place / 'concept' / f'{place}-{number}.con', CONCEPTS)
    write(folder / 'test_data' / '0001.txt', NOTE)
    write(folder / 'reference_standard_for_test_data' / 'concepts' / '0001.con', CONCEPTS)
    return folder


def test_notes_of_2010_are_read_where_they_lie(i2b2_2010, monkeypatch):
    dataset = read_dataset(i2b2_2010)
    assert [(' '.join(s.words), ' '.join(s.tags)) for s in dataset.test] == TAGGED
    assert dataset.types == ('problem', 'treatment')
    cut_off = f"{CUT_OFF} (first: '5 mg warfarin' in '5 mg warfarin', 0001)"
    assert dataset.repairs['test'] == {cut_off: 1}
    assert dataset.test[2].gold == ('O', 'O', 'B-treatment', 'I-treatment', 'I-treatment')
    assert dataset.test[2].scored_words[-1] == 'warfarin'
    assert dataset.test[3].gold == ('O', 'O')
    notes = {
        split: {s.words[-2:] for s in getattr(dataset, split) if 'warfarin' in s.words} for split in SPLITS
    }
    assert {split: len(found) for split, found in notes.items()} == {'train': 20, 'devel': 2, 'test': 1}
    assert {place for place, _ in notes['devel']} == {'beth', 'partners'}
    assert not notes['train'] & notes['devel']
    assert len(set_files(i2b2_2010)) == 2 * 23
    assert dataset.gold_in_file['train'] == 40 == sum(len(spans(s.gold)) for s in dataset.train)
    monkeypatch.chdir(i2b2_2010)
    assert read_dataset(Path()) == dataset


@pytest.mark.parametrize(
    ('concept', 'message'),
    [
        (
            'c="high fever" 2:4 2:6||t="problem"',
            r"\.con:1: characters .* are 'a high fever', not 'high fever'",
        ),
        ('c="a fever" 9:4 9:6||t="problem"', r'\.con:1: expected c="\.\.\." LINE:TOKEN .* within 0001\.txt'),
        (
            'c="warfarin" 0:0 0:0||t="treatment"',
            r'\.con:1: expected c="\.\.\." LINE:TOKEN .* within 0001\.txt',
        ),
        ('c="a fever" 2:4||t="problem"', r'\.con:1: expected c="\.\.\."'),
        (f'c="a fever" 2:{"9" * 5000} 2:6||t="problem"', r'\.con:1: expected c="\.\.\."'),
        (None, r'I2B2_2010: has no folder .*partners/txt; unpack all'),
    ],
)
def test_a_wrong_concept_and_a_missing_folder_of_the_owner_are_named(i2b2_2010, concept, message):
    if concept is None:
        shutil.rmtree(i2b2_2010 / 'concept_assertion_relation_training_data' / 'partners')
    else:
        write(i2b2_2010 / 'reference_standard_for_test_data' / 'concepts' / '0001.con', concept + '\n')
    with pytest.raises(InputError, match=message) as error:
        read_dataset(i2b2_2010)
    assert '\n' not in str(error.value)


def xml(text, *tags):
    return (
        f'<?xml version="1.0"?>\n<root>\n<TEXT><![CDATA[{text}]]></TEXT>\n<TAGS>\n'
        + '\n'.join(tags)
        + '\n</TAGS></root>'
    )


def test_xml_notes_of_2012_and_2014_are_read_where_they_lie(tmp_path):
    text = '\nSeen by Dr. Smith on 3/4/99.\nB&W film showed fever'
    at = {
        word: f'start="{text.index(word)}" end="{text.index(word) + len(word)}"'
        for word in ('Smith', '3/4/99', 'fever')
    }
    event = f'<EVENT id="E0" {at["fever"]} text="fever" modality="FACTUAL" type="PROBLEM" />'
    tags = [
        event,
        f'<EVENT id="E1" {at["Smith"]} text="Smith" type="" />',
        f'<TIMEX3 id="T0" {at["3/4/99"]} text="3/4/99" type="DATE" />',
    ]
    folder = tmp_path / 'i2b2-2012'
    for number in range(10):
        write(folder / '2012-07-15.original-annotation.release' / f'{number}.xml', xml(text, *tags))
    write(
        folder / '2012-08-08.test-data.event-timex-groundtruth' / 'xml' / '11.xml',
        xml(text, event).replace('\n', '\r\n'),
    )
    dataset = read_dataset(folder)
    assert [len(getattr(dataset, split)) for split in SPLITS] == [18, 2, 2]
    assert dataset.train[1].words == ('B&W', 'film', 'showed', 'fever')
    assert [t for s in dataset.train[:2] for t in s.tags] == ['O'] * 11 + ['B-PROBLEM']
    assert dataset.test == dataset.train[:2]

    folder = tmp_path / 'i2b2-2014'
    phi = [
        f'<NAME id="P0" {at["Smith"]} text="Smith" TYPE="DOCTOR" comment="" />',
        f'<DATE id="P1" {at["3/4/99"]} text="03/04/99" TYPE="DATE" comment="" />',
    ]
    for number in range(20):
        place = f'training-PHI-Gold-Set{1 + number % 2}'
        write(folder / place / f'{100 + number // 4}-{number}.xml', xml(text, *phi))
    write(folder / 'testing-PHI-Gold-fixed' / '200-01.xml', xml(text, *phi))
    dataset = read_dataset(folder)
    # Five patients with notes in both folders: of each folder one patient is devel.
    assert [len(getattr(dataset, split)) // 2 for split in SPLITS] == [16, 4, 1]
    assert dataset.test[0].words == ('Seen', 'by', 'Dr', '.', 'Smith', 'on', '3/4/99', '.')
    assert dataset.test[0].tags == ('O', 'O', 'O', 'O', 'B-DOCTOR', 'O', 'B-DATE', 'O')
    assert dataset.repairs['test'] == {'mentions that quote other words than their text has': 1}
    for wrong, message in (
        (
            xml(text, '<DATE id="P1" start="2" text="x" TYPE="DATE" />'),
            r'200-01\.xml:7: expected start, end and text',
        ),
        (
            xml(text, f'<DATE id="P1" start="2" end="{"9" * 5000}" text="x" TYPE="DATE" />'),
            r'200-01\.xml:7: expected start, end and text',
        ),
        (
            xml(text, '<DATE id="P1" start="90" end="99" text="x" TYPE="DATE" />'),
            r'200-01\.xml:7: characters 90 to 99',
        ),
        ('<root></root>', r'200-01\.xml: has no <TEXT>'),
    ):
        write(folder / 'testing-PHI-Gold-fixed' / '200-01.xml', wrong)
        with pytest.raises(InputError, match=message):
            read_dataset(folder)


def pairs(count, first=0):
    names = ('entailment', 'neutral', 'contradiction')
    return ''.join(
        json.dumps(
            {
                'gold_label': names[n % 3],
                'pairID': str(n),
                'sentence1': f'He\tis {n}.',
                'sentence2': 'She is.',
            }
        )
        + '\n'
        for n in range(first, first + count)
    )


def test_mednli_is_read_under_its_owners_names(tmp_path):
    for at, split in enumerate(('train', 'dev', 'test')):
        write(tmp_path / 'MedNLI' / f'mli_{split}_v1.jsonl', pairs(4, 4 * at))
    chosen = set_at(tmp_path / 'MedNLI')
    dataset = task_for(chosen).read(chosen)
    assert dataset.devel[0] == texts.Text(('He is 4.', 'She is.'), ('neutral',))
    assert dataset.labels == ('entailment', 'neutral', 'contradiction')
    assert list(searched_texts(tmp_path / 'MedNLI', 'test')) == [
        part for n in range(8, 12) for part in (f'He is {n}.', 'She is.')
    ]


def test_the_end_of_train_is_devel_where_bio_lm_has_it_so(tmp_path):
    folder = tmp_path / 'i2b2-2010-re'

    def lines(name, count):
        rows = [
            f'{name}.c{n}.c0\ta @test$ for @problem$ {n}\t{"TeRP" if n % 2 else "false"}'
            for n in range(count)
        ]
        return '\n'.join(['index\tsentence\tlabel', *rows]) + '\n'

    for split, count in (('train', 780), ('dev', 3), ('test', 5)):
        write(folder / f'{split}.tsv', lines(split, count))
    chosen = set_at(folder)
    dataset = task_for(chosen).read(chosen)
    assert [len(getattr(dataset, split)) for split in SPLITS] == [4, 3 + 776, 5]
    assert dataset.devel[3].words == ('a @test$ for @problem$ 4',)
    write(folder / 'train.tsv', lines('train', 776))
    with pytest.raises(InputError, match=r'train\.tsv: has 776 examples, and the last 776 are devel'):
        task_for(chosen).read(chosen)


HOC = 'labels\tsentence\tindex\r\n'


@pytest.fixture
def hoc_blue(tmp_path):
    """A document has a hallmark where one of its two sentences has a drug."""
    folder = tmp_path / 'hoc-blue'
    for split, count in (('train', 80), ('dev', 12), ('test', 12)):
        lines = []
        for number in range(count):
            first, second = number % 2, number // 2 % 2
            lines.append(f'3_{first},4_0\tthe patient {"zolmipan" if first else "dose"}\t{number}_s0\r\n')
            lines.append(f'3_0,4_{second}\tdaily {"tercivir" if second else "dose"}\t{number}_s1\r\n')
        write(folder / f'{split}.tsv', HOC + ''.join(lines))
    return folder


def test_sentences_are_classified_apart_and_their_document_has_all_labels(hoc_blue, tmp_path):
    chosen = set_at(hoc_blue)
    task, encoder = task_for(chosen), save_encoder(tmp_path / 'bert')
    dataset = task.read(chosen)
    third, fourth = texts.HALLMARKS[3:5]
    assert dataset.test[3] == texts.Text(
        ('the patient zolmipan', 'daily tercivir'), (third, fourth), parts=((third,), (fourth,))
    )
    settings = Finetune(epochs=8, batch_sentences=8, learning_rate=5e-3, max_pieces=16, features='first')
    encoded = task.windows(load_for_words(encoder), dataset.test, settings).windows
    assert [(w.example, w.part) for w in encoded] == [(n, part) for n in range(12) for part in range(2)]
    _, head = load_head(task, encoder, task.labels(dataset, settings), settings, 0)
    learned = task.learned(dataset.test[3], settings)
    assert [task.target(w, learned, head).index(1.0) for w in encoded[6:8]] == [3, 4]
    found = [[-1.0] * 10 for _ in encoded]
    found[6][3] = found[7][4] = found[0][3] = 1.0
    assert task.decode(dataset.test, encoded, found, head, settings)[:4] == [
        (third,),
        (),
        (),
        (third, fourth),
    ]
    outcome = finetune(task, encoder, dataset, settings, 0)
    assert task.metric.title == 'example-based F1'
    assert task.metric.scores([x.answers for x in dataset.test], outcome.test)['f1'] > 0.9


def test_the_audit_reads_folds_and_ones_own_texts(tmp_path, monkeypatch):
    write(tmp_path / 'GAD' / '3' / 'train.tsv', ''.join(f'row {n} of @GENE$\t{n % 2}\n' for n in range(540)))
    write(tmp_path / 'GAD' / '3' / 'dev.tsv', '')
    write(tmp_path / 'GAD' / '3' / 'test.tsv', 'index\tsentence\tlabel\n0\tof @DISEASE$ in mice\t1\n')
    write(tmp_path / 'own' / 'test.tsv', 'a first text. Another one.\ta second text\tyes\n')
    write(tmp_path / 'short' / 'test.tsv', 'dose\tM\nthe mouse was ill\tM\nas was the cat\tI\n')
    write(tmp_path / 'ner' / 'test.tsv', '10\u00a0mg\tO\nof\tO\nword\tB-X\n\n')
    write(tmp_path / 'headed' / 'test.tsv', 'Token\tTag\na\tO\nword\tB-X\n\n')
    settings = Audit(folder=str(tmp_path), splits=('test',))
    folders = {name: folder for name, folder, _ in audited_splits(settings)}
    with pytest.raises(InputError, match=r"test\.tsv:1: unknown tag 'Tag'"):
        list(searched_texts(folders.pop('headed'), 'test'))
    found = {name: list(searched_texts(folder, 'test')) for name, folder in folders.items()}
    assert found == {
        'GAD-3': ['of ', 'in mice'],
        'own': ['a first text.', 'Another one.', 'a second text'],
        'short': ['dose', 'the mouse was ill', 'as was the cat'],
        'ner': ['10\u00a0mg of word'],
    }
    fold = tmp_path / 'GAD' / '3'
    assert list(searched_texts(fold, 'devel')) == [f'row {n} of ' for n in range(4, 540)]
    assert len(list(searched_texts(fold, 'train'))) == 4
    for here, path in (('.', 'GAD/3'), ('GAD', '3'), ('GAD/3', '.'), ('GAD/3', '../3')):
        monkeypatch.chdir(tmp_path / here)
        assert (set_at(Path(path)).name, len(list(searched_texts(Path(path), 'train')))) == ('GAD-3', 4), path
