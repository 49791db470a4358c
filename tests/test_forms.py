"""Every form of file that docs/method/corpus.md says is read: a small file of each, and what of it becomes text."""

import csv
import gzip
import json
import re
from pathlib import Path
from xml.sax.saxutils import escape

import pyarrow
import pyarrow.parquet
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from toy_articles import article, note, noted

from bioptimus_jax.corpus import jsons, readers
from bioptimus_jax.corpus.config import Content, Corpus
from bioptimus_jax.corpus.records import Record
from bioptimus_jax.errors import BrokenFile, InputError
from bioptimus_jax.sets.roles import Columns
from bioptimus_jax.sets.tagged import tagged_columns

PAGE = Path(__file__).resolve().parents[1] / 'docs' / 'method' / 'corpus.md'
BIBR = '<xref ref-type="bibr" rid="r{0}">{0}</xref>'
ABSTRACT = '<abstract><p>It is short.</p></abstract>'


def jats(body: str, floats: str = '', **parts: str) -> str:
    return article(body=body, abstract=ABSTRACT, after=f'<back><ref-list/></back>{floats}', **parts)


def biocs() -> list[tuple[dict[str, str], str]]:
    return [
        ({'section_type': 'TITLE', 'type': 'front', 'article-id_pmc': '7', 'year': '2013'}, 'A title'),
        ({'section_type': 'ABSTRACT', 'type': 'abstract_title_1'}, 'Background'),
        ({'section_type': 'ABSTRACT', 'type': 'abstract'}, 'It is\nshort.'),
        ({'section_type': 'INTRO', 'type': 'title_1'}, 'Introduction'),
        ({'section_type': 'INTRO', 'type': 'paragraph'}, 'A paragraph.'),
        ({'section_type': 'FIG', 'type': 'fig_caption'}, 'A caption.'),
        ({'section_type': 'TABLE', 'type': 'table'}, '1\t2'),
        ({'section_type': 'REF', 'type': 'ref'}, 'A reference'),
        ({'section_type': 'COMP_INT', 'type': 'paragraph'}, 'No interests.'),
    ]


BIOC_XML = '<collection><source>PMC</source><document><id>7</id>{}</document></collection>'.format(
    ''.join(
        f'<passage>{"".join(f"<infon key={k!r}>{v}</infon>" for k, v in infons.items())}<text>{text}</text></passage>'
        for infons, text in biocs()
    )
)
BIOC_JSON = [{'documents': [{'id': '7', 'passages': [{'infons': i, 'text': t} for i, t in biocs()]}]}]
CORD19 = {
    'paper_id': 'PMC9',
    'metadata': {'title': 'A title'},
    'abstract': [{'text': 'It is short.', 'cite_spans': [], 'section': 'Abstract'}],
    'body_text': [
        {
            'text': 'In men [3] as in mice (Lee 2012).',
            'cite_spans': [{'start': 7, 'end': 10}, {'start': 22, 'end': 32}],
            'section': 'Introduction',
        }
    ],
    'ref_entries': {'FIG0': {'text': 'A caption.', 'type': 'figure'}},
    'bib_entries': {'BIB0': {'title': 'A reference'}},
}
NBIB = """
PMID- 12
OWN - NLM
DP  - 2023 Jan 5
TI  - [A title that goes on over
      two lines].
AB  - BACKGROUND: It is short - and it goes
      on. METHODS: None.
AD  - An address, Berlin.
FAU - Lee, A
TT  - Ein Titel
OAB - Publisher: Abstract available from the publisher.

PMID- 13
TI  - Only a title.
AU  - Lee A
"""
PUBMED = (
    '<PubmedArticleSet><PubmedArticle><MedlineCitation><PMID>1</PMID><Article><ArticleTitle>A title</ArticleTitle>'
    '<Abstract><AbstractText Label="METHODS">It is short.</AbstractText></Abstract><AuthorList/></Article>'
    '</MedlineCitation></PubmedArticle></PubmedArticleSet>'
)
PMC_TEXT = """
==== Front
PLoS BiolPLoS BiolA titleLee A1 1An address, Berlin

It is short.

==== Body
Introduction

A paragraph.
Another paragraph.
==== Refs
1 Lee A A reference
"""
SEARCH = (
    '<responseWrapper><version>6.9</version><hitCount>1</hitCount><resultList>'
    '<result><id>5</id><source>MED</source><pmid>5</pmid><title>A title.</title><abstractText>'
    '&lt;h4&gt;Background&lt;/h4&gt;Of p &amp;lt; 0.05 and H&lt;sub&gt;2&lt;/sub&gt;O.&lt;h4&gt;Methods&lt;/h4&gt;None.'
    '</abstractText></result><result><id>PPR6</id><title>Only a title</title></result></resultList></responseWrapper>'
)
OAI = (
    '<OAI-PMH xmlns="http://www.openarchives.org/OAI/2.0/"><ListRecords><record><header><identifier>oai:x:1'
    '</identifier></header><metadata>{}</metadata></record></ListRecords></OAI-PMH>'
)
METADATA = (
    'cord_uid,sha,source_x,title,doi,pmcid,pubmed_id,license,abstract,publish_time,authors,journal\n'
    'ug7v,d1,PMC,"A title, of one",10.1,PMC3,11,no-cc,"It is short, and\ngoes on.",2001-07-04,"Lee, A",J\n'
    '02tn,6b,PMC,,10.2,PMC4,11,no-cc,,2000-08-15,,J\n'
)
MIMIC = (
    'note_id,subject_id,hadm_id,note_type,note_seq,charttime,storetime,text\n'
    '10-DS-1,10,22,DS,21,2180-05-07,2180-05-09,"Name:  ___\n \nService: MEDICINE\nBP 120/80"\n'
)
CSV_SAID = 'a table; its text is {} ({}), its ids {}'
SHORT = 'A title\nIt is short.\n'
FORMS: dict[str, tuple[str, str | dict | list, list[tuple[str, str]]]] = {
    'PubMed, XML': ('a.xml', PUBMED, [('1', 'A title\nIt is short.')]),
    'PubMed, tagged text': (
        'a.nbib',
        NBIB,
        [
            (
                '12',
                'A title that goes on over two lines.\nBACKGROUND: It is short - and it goes on. METHODS: None.',
            ),
            ('13', 'no_abstract'),
        ],
    ),
    'PMC, sets of articles': (
        'a.xml',
        f'<pmc-articleset>{jats("<p>A paragraph.</p>")}{jats("<p>More.</p>", pmc="2")}</pmc-articleset>',
        [('PMC1', SHORT + 'A paragraph.'), ('PMC2', SHORT + 'More.')],
    ),
    'JATS as PLOS writes it': (
        'a.xml',
        jats(
            f'<sec sec-type="intro"><title>Introduction</title><p>In men [{BIBR.format(1)},{BIBR.format(2)}].</p></sec>'
            '<sec sec-type="supplementary-material"><title>S</title><supplementary-material><caption><p>No.</p>'
            '</caption></supplementary-material></sec>'
        ),
        [('PMC1', SHORT + 'In men.')],
    ),
    'JATS as Springer and BMC write it': (
        'a.nxml',
        jats(
            f'<sec id="Sec1"><title>T</title><p id="Par1">In men [{BIBR.format(1)}–{BIBR.format(3)}] of '
            '<inline-formula><alternatives><tex-math>\\begin{x}</tex-math><mml:math><mml:mi>p</mml:mi><mml:mo>=</mml:mo>'
            '<mml:mn>1</mml:mn></mml:math></alternatives></inline-formula>.</p></sec>'
        ),
        [('PMC1', SHORT + 'In men of p=1.')],
    ),
    'JATS as Elsevier writes it': (
        'a.xml',
        jats(
            '<sec><label>1</label><title>T</title><p>In men <xref rid="b1" ref-type="bibr">[1]</xref>, '
            '<xref rid="b2" ref-type="bibr">[2]</xref> (<xref rid="f1" ref-type="fig">Fig. 1</xref>).</p></sec>',
            '<floats-group><fig id="f1"><label>Fig. 1</label><caption><p>A caption.</p></caption></fig></floats-group>',
        ),
        [('PMC1', SHORT + 'In men (Fig. 1).')],
    ),
    'JATS as Wiley writes it': (
        'a.xml',
        jats(
            f'<sec><title>1 | T</title><p>In men.<sup>{BIBR.format(12)}</sup> <styled-content>More</styled-content>.'
            '</p><boxed-text><p>A box.</p></boxed-text></sec>'
        ),
        [('PMC1', SHORT + 'In men. More.\nA box.')],
    ),
    'JATS as MDPI and Frontiers write it': (
        'a.xml',
        jats(
            f'<sec><title>1. T</title><p>In men [{BIBR.format(1)}]:<list><list-item><p>one;</p></list-item>'
            '<list-item><p>two.</p></list-item></list></p><disp-formula>x</disp-formula>'
            '<table-wrap><caption><p>A caption.</p></caption><table><tr><td>1</td></tr></table></table-wrap></sec>'
        ),
        [('PMC1', SHORT + 'In men:\none;\ntwo.')],
    ),
    'Europe PMC, articles': (
        'a.xml',
        f'<articles>{jats("<p>A paragraph.</p>")}</articles>',
        [('PMC1', SHORT + 'A paragraph.')],
    ),
    'Europe PMC, results of a search': (
        'a.xml',
        SEARCH,
        [('5', 'A title.\nOf p < 0.05 and H2O.\nNone.'), ('PPR6', 'no_abstract')],
    ),
    'OAI-PMH, articles': (
        'a.xml',
        OAI.format(
            jats('<p>A paragraph.</p>', attributes=' xmlns="https://jats.nlm.nih.gov/ns/archiving/1.3/"')
        ),
        [('PMC1', SHORT + 'A paragraph.')],
    ),
    'bioRxiv and medRxiv': (
        'a.xml',
        jats(
            '<p>In men (<xref ref-type="bibr" rid="c1">Lee et al., 2012</xref>).</p>',
            ids='<article-id pub-id-type="doi">10.1101/2020.01.01.1</article-id>',
        ),
        [('10.1101/2020.01.01.1', SHORT + 'In men (Lee et al., 2012).')],
    ),
    'BioC-PMC, XML': ('a.xml', BIOC_XML, [('PMC7', SHORT + 'A paragraph.')]),
    'BioC-PMC, JSON': ('a.json', BIOC_JSON, [('PMC7', SHORT + 'A paragraph.')]),
    'PMC, plain text': (
        'PMC77.txt',
        PMC_TEXT,
        [('', 'form'), ('PMC77', 'Introduction\nA paragraph.\nAnother paragraph.')],
    ),
    'CORD-19, metadata.csv': (
        'metadata.csv',
        METADATA,
        [
            (CSV_SAID.format('title and abstract', 'by name', 'cord_uid'), 'form'),
            ('ug7v', 'A title, of one\nIt is short, and goes on.'),
            ('02tn', 'no_text'),
        ],
    ),
    'CORD-19, articles': ('PMC9.xml.json', CORD19, [('PMC9', SHORT + 'In men as in mice (Lee 2012).')]),
    'MIMIC-III, NOTEEVENTS.csv': ('a.csv', '', [('note-1', 'A note of some words.')]),
    'MIMIC-IV, discharge.csv and radiology.csv': (
        'discharge.csv',
        MIMIC,
        [
            (CSV_SAID.format('text', 'by name', 'note_id'), 'form'),
            ('10-DS-1', 'Name: ___\nService: MEDICINE BP 120/80'),
        ],
    ),
    'JSON, lines': (
        'a.jsonl',
        '{"id": 3, "title": "A title", "abstract": "It is short."}\n{"id": 4, "title": "Only a title"}\n[]\n',
        [('3', SHORT.strip()), ('4', 'Only a title'), ('', 'bad_record')],
    ),
    'JSON, an array': (
        'a.json',
        [{'id': 3, 'title': 'A title', 'abstract': 'It is short.'}, 7, {'id': 4, 'title': 'Only a title'}],
        [('3', SHORT.strip()), ('', 'bad_record'), ('4', 'Only a title')],
    ),
    '.csv and .tsv with names of columns': (
        'a.tsv',
        'nr\tbefund\tjahr\n1\tDer Patient war ohne Befund und ging.\t1999\n\n2\tx\n3\t \t2000\n',
        [
            (CSV_SAID.format('befund', 'the longest', 'are made from the texts'), 'form'),
            ('text-', 'Der Patient war ohne Befund und ging.'),
            ('', 'bad_record'),
            ('text-', 'no_text'),
        ],
    ),
    '.csv and .tsv without names': (
        'a.csv',
        '"A text, of some words.",1\n"And another one.",2\n',
        [('a-0', 'A text, of some words.\nAnd another one.')],
    ),
    'PubTator': (
        'a.PubTator',
        '12|t|A title of AF\n12|a|It is  short.\n12\t11\t13\tAF\tDisease\tD01\n12\tCID\tD1\tD2\n\n13|t|\n13|a|\n',
        [('12', 'A title of AF\nIt is short.'), ('13', 'no_text')],
    ),
    'words with tags in columns': (
        'a.tsv',
        'tokens\tner_tags\nHistory\tO\nof\tO\nAF\tB-DIS\n\nNone\tO\n',
        [('', 'form'), ('a-0', 'History of AF\nNone')],
    ),
    'plain text': ('a.txt', 'One\nparagraph.\n\nAnother.\n', [('a-0', 'One paragraph.\nAnother.')]),
}


OF_SPLITS = {'train': 'AF', 'devel': 'No', 'test': 'Never'}


def read(path: Path, **changes) -> list[Record]:
    return list(readers.read_file(path, path.name.partition('.')[0], Corpus(**changes)))


def shown(record: Record) -> tuple[str, str]:
    """Id, or for a line that is said its words, and text or reason."""
    id = 'text-' if record.id.startswith('text-') else record.id
    return (
        (record.note, 'form')
        if record.reason == 'form' and 'table' in record.note
        else (id, record.reason or record.text)
    )


@pytest.mark.parametrize('form', FORMS)
def test_of_every_form_that_becomes_text_which_should(tmp_path, form):
    name, content, wanted = FORMS[form]
    path, data = tmp_path / name, content if isinstance(content, str) else json.dumps(content)
    path.write_text(data, 'utf-8')
    if form.startswith('MIMIC-III'):
        noted(path, [note()])
    assert [shown(record) for record in read(path)] == wanted
    packed = tmp_path / 'packed' / f'{name}.gz'
    packed.parent.mkdir()
    packed.write_bytes(gzip.compress(path.read_bytes()))
    assert [shown(record) for record in read(packed)] == wanted


def test_the_page_names_every_form_that_is_read():
    rows = re.findall(
        r'^\| ([^|]+) \|', PAGE.read_text('utf-8').partition('## Every form')[2].partition('\n## ')[0], re.M
    )
    assert rows[0] == 'form'
    assert set(rows[1:]) == {*FORMS, '.parquet and .arrow'}


def test_a_line_of_pubtator_that_belongs_to_nothing_is_a_bad_record(tmp_path):
    (tmp_path / 'a.pubtator').write_text(
        '12|t|A title\n12|a|It is short\nand goes on.\n\n13|t|B\n14\t0\t1\tB\tX\t\n'
    )
    assert [(r.reason, r.note.partition(':')[0]) for r in read(tmp_path / 'a.pubtator')] == [
        ('bad_record', 'line 3'),
        ('bad_record', 'line 6'),
    ]


def test_two_columns_of_tags_are_no_matter_where_only_words_are_read(tmp_path):
    (tmp_path / 'a.conll').write_text('AF\tB-DIS\tO\nACE\tO\tB-CHEM\n\nnot\tO\tO\n')
    assert [r.text for r in read(tmp_path / 'a.conll') if not r.reason] == ['AF ACE\nnot']


def test_the_folder_of_a_set_stands_for_its_train_split(tmp_path):
    """Whatever its form; a folder of anything else is refused."""
    inputs = {}
    for name, files in {
        'columns': {f'{split}.tsv': f'{word}\tB-X\nof\tO\n1 000\tO\n' for split, word in OF_SPLITS.items()},
        'brat': {
            'train/1.txt': 'AF',
            'train/1.ann': 'T1\tDIS 0 2\tAF\n',
            'test/2.txt': 'Never',
            'test/2.ann': '',
        },
        'pubtator': {'train.PubTator': '1|t|AF\n1|a|\n', 'test.PubTator': '2|t|Never\n2|a|\n'},
        'others': {'a.txt': 'AF'},
        'texts': {f'{split}.tsv': f'{word} of 1 000\tX\n' * 5 for split, word in OF_SPLITS.items()},
        'uneven': {f'{split}.tsv': f'{word}\tO\n\nof\tO\n1 000\n' for split, word in OF_SPLITS.items()},
    }.items():
        for file, content in files.items():
            (tmp_path / name / file).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / name / file).write_text(content)
        inputs[name] = (str(tmp_path / name),)
    for name in ('columns', 'brat', 'pubtator'):
        [text] = [d.text for d in readers.read_inputs(Corpus(inputs=inputs[name]))]
        assert text == ('AF of 1 000' if name == 'columns' else 'AF')
    for name, message in (
        ('others', 'is a folder; name its files'),
        ('texts', 'is a folder; name its files'),
        ('uneven', r'train\.tsv: not every line is a word with its tag'),
    ):
        with pytest.raises(InputError, match=message):
            readers.input_files(Corpus(inputs=inputs[name]))


def test_no_word_of_a_real_set_is_lost(data):
    """The words are those of the lines with a tab, and no document is far from 200 of them."""
    folder = data / 'ner' / 'ncbi-disease'
    lines = (folder / 'train.tsv').read_text('utf-8').split('\n')
    texts = [d.text for d in readers.read_inputs(Corpus(inputs=(str(folder),)))]
    assert ' '.join(texts).split() == [line.partition('\t')[0] for line in lines if '\t' in line]
    assert min(len(text.split()) for text in texts[:-1]) >= 200
    assert max(len(text.split()) for text in texts) < 400


@pytest.mark.parametrize(
    ('lines', 'columns'),
    [
        ('AF\tB-DIS\nis\tO\n\nnot\tO', Columns(tag='2')),
        ('-DOCSTART- -X- O\n\nAF NN B-DIS\nis VB O\nnot RB O', Columns(tag='3')),
        ('token label\nAF B-DIS\nis O\nnot O', Columns(tag='label')),
        ('token label\nAF B-DIS\nis O', None),
        ('Aspirin B_CHEM\nis O\nAF B-DIS\n. O', None),  # a slip, and no name of a column
        ('AF\tB-DIS\n1 000\tO\nnot\tO', Columns(tag='2')),
        ('AF NN\tB-DIS\nis VB\tO\nnot RB\tO', Columns(tag='3')),
        ('AF\tB-DIS\tO\nACE\tO\tB-CHEM\nnot\tO\tO', Columns(tag='2')),
        ('AF B\nis O\nnot O', None),  # perhaps prose: single letters in a few lines
        ('AF B\n' + 'is O\n' * 9, Columns(tag='2')),
        ('AF B-DIS\nis O', None),
        ('AF B-DIS\nis O\nthis not O', None),
        ('Given was L-arginine\nto patients O', None),
        ('a text of words\tO\nanother text\tO\nand\tB-X', None),
    ],
)
def test_words_with_tags_are_told_from_prose(lines, columns):
    assert tagged_columns(lines.split('\n')) == columns


def test_settings_choose_what_is_read_of_bioc_and_of_cord_19(tmp_path):
    for name, content in (
        ('a.xml', BIOC_XML),
        ('a.json', json.dumps(BIOC_JSON)),
        ('b.json', json.dumps(CORD19)),
    ):
        (tmp_path / name).write_text(content, 'utf-8')
        [record] = read(tmp_path / name, article_parts=('abstract', 'captions'), section_labels=True)
        label = 'Abstract' if name == 'b.json' else 'Background'
        lines = [label, 'It is short.', *(() if name == 'b.json' else ('Introduction',)), 'A caption.']
        assert record.text.split('\n') == lines
        if name != 'b.json':
            assert [r.reason for r in read(tmp_path / name, published_before='2013-01-01')] == ['too_new']
            assert [r.reason for r in read(tmp_path / name, published_before='2014-01-01')] == ['']
    (tmp_path / 'a.nbib').write_text(NBIB, 'utf-8')
    assert read(tmp_path / 'a.nbib', published_before='2023-01-05')[0].reason == 'too_new'
    assert read(tmp_path / 'a.nbib', published_before='2023-01-06')[0].reason == ''


def test_the_same_text_under_another_ending(tmp_path):
    """Tagged text as PubMed names it when it is saved, and an array or articles in files of lines."""
    for name, form in (
        ('a.txt', 'PubMed, tagged text'),
        ('a.jsonl', 'JSON, an array'),
        ('b.jsonl', 'BioC-PMC, JSON'),
        ('a.json', 'JSON, lines'),
        ('b.txt', 'PubTator'),
        ('a.conll', 'words with tags in columns'),
    ):
        _, content, wanted = FORMS[form]
        (tmp_path / name).write_text(content if isinstance(content, str) else json.dumps(content), 'utf-8')
        assert [shown(record) for record in read(tmp_path / name)] == wanted
    (tmp_path / 'a.iob').write_text('-DOCSTART- O\n\nAF O\n. O\n\n-DOCSTART- O\n\nNo O\nAF B\n\nNo O\n')
    assert [r.text for r in read(tmp_path / 'a.iob') if not r.reason] == ['AF .', 'No AF\nNo']
    (tmp_path / 'c.json').write_text(json.dumps(CORD19, indent=2) + '\n' + json.dumps(CORD19), 'utf-8')
    assert len(read(tmp_path / 'c.json')) == 2


REFUSED = {
    'page.txt': ('<!DOCTYPE html><html>', r'page\.txt: is XML or HTML, .*name it \.xml'),
    'lines.txt': ('{"id": 1}\n', r'lines\.txt: is JSON, .*\.jsonl'),
    'refs.txt': ('TY  - JOUR\nTI  - A title\n', r'refs\.txt: is a list of references, .*\.nbib'),
    'list.txt': (
        '\n1. J Biol. 2020 Jan;1(1):1-2. doi: 10.1.\n\nA title.\n\nLee A(1).\n\nDOI: 10.1\nPMID: 12\n',
        r"list\.txt: is PubMed's list of abstracts, .*format PubMed \(\.nbib\)",
    ),
    'other.json': (
        '{"results": {"a": 1}}',
        r'other\.json:1: has no .id.|other\.json: is JSON of another form',
    ),
    'pretty.json': ('{\n "results": []}', r'pretty\.json: is JSON of another form; what is read are lines'),
    'names.csv': (
        'pmid,year\n12,1999\n13,2000\n',
        r'names\.csv:1: names its columns \(pmid, year\), but none .*texts',
    ),
    'dc.xml': (OAI.format('<dc/>'), r'dc\.xml: holds no <article>; ask for full texts'),
    'space.xml': ('<TEI xmlns="a}b//c"/>', r'space\.xml: is XML, but not .*<TEI>'),
    'tei.xml': ('<TEI><text/></TEI>', r'tei\.xml: is XML, but not .*<TEI>'),
    'more.json': (
        '[{"id": "x0", "title": "A"}, {"id": "x1", "title": "A"}] and more',
        'not JSON after record 2',
        BrokenFile,
    ),
    'cells.csv': (
        'Patients had pain, fever\nand others had none\n',
        r'cells\.csv:2: has 1 cell, the lines before it 2; quote texts',
        BrokenFile,
    ),
    'return.csv': (
        'a text with\rreturn inside,b\nc,d\n',
        r'return\.csv:\d: is not comma-separated text',
        BrokenFile,
    ),
}


@pytest.mark.parametrize('name', REFUSED)
def test_other_forms_are_refused_with_what_to_do(tmp_path, name):
    content, message, *error = REFUSED[name]
    (tmp_path / name).write_text(content, 'utf-8')
    with pytest.raises(error[0] if error else InputError, match=message) as caught:
        read(tmp_path / name)
    assert '\n' not in str(caught.value)


def test_a_column_that_is_asked_for_is_the_text(tmp_path):
    (tmp_path / 'a.csv').write_text(METADATA, 'utf-8')
    said, *records = read(tmp_path / 'a.csv', tsv_column=4, id_field='sha')
    assert said.note == 'a table; its text is doi (by config.corpus.tsv_column), its ids sha'
    assert [(r.id, r.text) for r in records] == [('d1', '10.1'), ('6b', '10.2')]
    assert read(tmp_path / 'a.csv', text_fields=('Journal', 'abstract'))[1].text.startswith('J\nIt is')
    for wrong, message in ((dict(id_field='nr'), "no column 'nr'"), (dict(tsv_column=12), 'has 12 column')):
        with pytest.raises(InputError, match=message):
            read(tmp_path / 'a.csv', **wrong)


def test_numbers_are_no_text_where_another_column_has_some(tmp_path):
    (tmp_path / 'a.tsv').write_text('3\tSome text of a first row.\n4\tAnd that of another row.\n', 'utf-8')
    said, record = read(tmp_path / 'a.tsv')
    assert said.note == 'a table; its text is column 1 (the longest, from 0)'
    assert record == Record('a-0', 'Some text of a first row.\nAnd that of another row.')


def test_a_broken_table_is_read_up_to_the_damage(tmp_path):
    (tmp_path / 'a.csv').write_text(METADATA + '"x"y,\n', 'utf-8')
    found: list[Record] = []
    with pytest.raises(BrokenFile, match=r'a\.csv:5: is not comma-separated text'):
        found.extend(readers.read_file(tmp_path / 'a.csv', 'a', Corpus()))
    assert [r.id for r in found] == ['', 'ug7v', '02tn']


def test_lines_of_tagged_text_that_are_none_stand_in_nobodys_way(tmp_path):
    (tmp_path / 'a.nbib').write_text(
        NBIB.replace('OWN - NLM', 'no tag here') + '\nPMID- x\nAB  - It.\n', 'utf-8'
    )
    bad, good, other = read(tmp_path / 'a.nbib')
    assert bad.note == "line 2: the record has a line that is neither tagged nor continued ('no tag here')"
    assert good.reason == 'no_abstract'
    assert other.note == "line 18: the record has a PMID that is not a number ('x')"


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=6,
)


@settings(max_examples=60)
@given(st.lists(VALUES, max_size=6), st.sampled_from([None, 1]), st.integers(0, 40), st.integers(1, 9))
def test_fuzz_values_of_an_array_are_those_of_the_whole(tmp_path_factory, values, indent, cut, size):
    path = tmp_path_factory.mktemp('fuzz') / 'x.json'
    whole = json.dumps(values, indent=indent, ensure_ascii=False)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(jsons, 'CHARACTERS_PER_READ', size)
        path.write_text(whole, 'utf-8')
        assert [value for _, value in jsons._values(path, 'utf-8', lambda stored: None)] == values
        path.write_text(whole[: max(len(whole) - 1 - cut, 1)], 'utf-8')
        found = []
        with pytest.raises(BrokenFile, match=r'x\.json: is cut off'):
            found.extend(jsons._values(path, 'utf-8', lambda stored: None))
        # The last may be what is wrong, or the beginning of a number.
        assert [value for _, value in found[:-1]] == values[: max(len(found) - 1, 0)]


def test_articles_one_after_the_other_and_a_broken_one_among_them(tmp_path):
    """Answers of efetch from PMC as they are saved: sets, or articles alone."""
    three = [jats(f'<p>Paragraph {n}.</p>', pmc=str(n)) for n in (1, 2, 3)]
    wanted = ['PMC1', 'PMC2', 'PMC3']
    for name, whole in (
        ('a.xml', [f'<pmc-articleset>{one}</pmc-articleset>' for one in three]),
        ('a.nxml', three),
    ):
        path = tmp_path / name
        path.write_text('<?xml version="1.0"?>\n' + '\n<?xml version="1.0"?>\n'.join(whole), 'utf-8')
        assert [record.id for record in read(path, on_bad_record='fail')] == wanted
        path.write_text(path.read_text('utf-8').replace('Paragraph 2.', 'Paragraph <b>2.'), 'utf-8')
        for settings_of_corpus in (Corpus(), Corpus(on_broken_file='skip')):
            found: list[Record] = []
            with pytest.raises(BrokenFile, match='after record 1 '):
                found.extend(readers.read_file(path, 'a', settings_of_corpus))
        assert [record.id for record in found] == ['PMC1', '', 'PMC3']
        assert found[1].note.startswith('article 2 is cut off or not well-formed XML')


def test_arrays_one_after_the_other_are_read_to_the_end(tmp_path):
    """`cat a.json b.json` makes such files, of records and of answers in BioC."""
    records = [[{'id': f'{part}{n}', 'title': 'A', 'abstract': 'b'} for n in range(2)] for part in 'xyz']
    (tmp_path / 'a.json').write_text('\n'.join(json.dumps(one, indent=1) for one in records))
    assert [record.id for record in read(tmp_path / 'a.json')] == ['x0', 'x1', 'y0', 'y1', 'z0', 'z1']
    answers = [[{'documents': [BIOC_JSON[0]['documents'][0] | {'id': str(n)}]}] for n in range(3)]
    (tmp_path / 'b.json').write_text(''.join(map(json.dumps, answers)))
    assert len([record for record in read(tmp_path / 'b.json') if record.text]) == 3


def test_an_old_reference_does_not_make_an_article_old(tmp_path):
    passages = [
        {'infons': {**infons, 'year': {'front': '2024', 'ref': '1995'}.get(infons['type'])}, 'text': text}
        for infons, text in biocs()
    ]
    (tmp_path / 'a.json').write_text(json.dumps([{'documents': [{'id': '7', 'passages': passages}]}]))
    for day, reason in (('2023-01-01', 'too_new'), ('2025-01-01', '')):
        assert [record.reason for record in read(tmp_path / 'a.json', published_before=day)] == [reason]


def test_texts_without_a_date_are_undated_or_said_to_be(tmp_path):
    """Where a cut-off is set, what says no date is left out; of tables and lines it is said that they have none."""
    (tmp_path / 'a.txt').write_text(PMC_TEXT)
    (tmp_path / 'b.json').write_text(json.dumps(CORD19))
    (tmp_path / 'c.pubtator').write_text('7|t|A title\n7|a|It is short.\n')
    (tmp_path / 'd.jsonl').write_text('{"id": "1", "title": "A", "abstract": "b"}\n')
    (tmp_path / 'e.csv').write_text('id,text\n1,It is short.\n')
    (tmp_path / 'f.txt').write_text('It is short.\n')
    (tmp_path / 'g.tsv').write_text('It is short, as it goes.\n')
    (tmp_path / 'h.conll').write_text('It\tO\nhurts\tO\n')
    for path in sorted(tmp_path.iterdir()):
        assert any(record.text for record in read(path)), path
        found = read(path, published_before='2000-01-01')
        if path.name < 'd':
            assert {record.reason for record in found} <= {'undated', 'form'}, path
        else:
            assert any(record.note.startswith('config.corpus.published_before') for record in found), path


def test_a_title_is_not_all_of_a_text(tmp_path):
    """JSON, Parquet and CSV alike: the text beside a title is read, and it is said; null is an abstract, too."""
    rows = [{'id': str(n), 'title': f'Title {n}', 'text': f'Some text {n}.'} for n in range(3)]
    (tmp_path / 'a.jsonl').write_text(''.join(json.dumps(row) + '\n' for row in rows))
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist(rows), tmp_path / 'b.parquet')
    (tmp_path / 'c.csv').write_text(
        'id,title,text\n' + ''.join(','.join(row.values()) + '\n' for row in rows)
    )
    for path in sorted(tmp_path.iterdir()):
        said, *found = read(path)
        assert said.reason == 'form', path
        assert 'its text is title and text' in said.note, path
        assert [record.text for record in found] == [f'Title {n}\nSome text {n}.' for n in range(3)], path
    for path in (tmp_path / 'a.jsonl', tmp_path / 'b.parquet'):
        assert [record.text for record in read(path, text_fields=('title',))] == [
            f'Title {n}' for n in range(3)
        ]
    (tmp_path / 'd.jsonl').write_text(json.dumps(rows[0] | {'abstract': None}) + '\n')
    assert [record.text for record in read(tmp_path / 'd.jsonl')] == ['Title 0']
    # Of several fields the first is one line, so that first_line finds the pair; half a pair has no second line.
    pairs = [('It hurts.\n\nWhat helps?', 'Rest.\n\nAnd tea.'), ('', 'Rest.\n\nAnd tea.')]
    asked = [dict(zip(('id', 'question', 'answer'), (str(n), *pair))) for n, pair in enumerate(pairs)]
    (tmp_path / 'e.jsonl').write_text(''.join(json.dumps(row) + '\n' for row in asked))
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist(asked), tmp_path / 'e.parquet')
    (tmp_path / 'e.csv').write_text(
        'id,question,answer\n0,"{}","{}"\n1,{},"{}"\n'.format(*pairs[0], *pairs[1])
    )
    for path in sorted(tmp_path.glob('e.*')):
        found = [record.text for record in read(path, text_fields=('question', 'answer')) if record.text]
        assert found == ['It hurts. What helps?\nRest.\nAnd tea.', 'Rest. And tea.'], path
    alone = [record.text for record in read(tmp_path / 'e.jsonl', text_fields=('answer',))]
    assert alone == ['Rest.\nAnd tea.'] * 2
    # A text that lacks its title is whole.
    untitled = [dict(zip(('id', 'title', 'abstract'), ('1', '', pairs[0][1])))]
    (tmp_path / 'f.jsonl').write_text(json.dumps(untitled[0]) + '\n')
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist(untitled), tmp_path / 'f.parquet')
    (tmp_path / 'f.csv').write_text('id,Title,Abstract\n1,,"{}"\n'.format(untitled[0]['abstract']))
    for path in sorted(tmp_path.glob('f.*')):
        assert [record.text for record in read(path) if record.text] == ['Rest.\nAnd tea.'], path
    # Neither ids nor what is said of a text are text, and null is an empty one.
    for row in ({'article': 'Journal Article', 'text': None}, {'document': 'D-12'}):
        (tmp_path / 'd.jsonl').write_text(json.dumps({'id': '1', 'title': 'T'} | row) + '\n')
        assert [record.text for record in read(tmp_path / 'd.jsonl') if record.reason != 'form'] == ['T']
    (tmp_path / 'd.jsonl').write_text(json.dumps({'text': '1', 'title': 'T'}) + '\n')
    assert [record.text for record in read(tmp_path / 'd.jsonl', id_field='text')] == ['T']


def test_signs_for_less_are_not_markup(tmp_path):
    """Europe PMC leaves `<` as it is in abstracts with markup."""
    for written, read_as in (
        ('Infants <or=32 weeks, <b>n</b> (p<0.05), P<O.001 and </= 80.', None),
        ('<h4>Aim</h4>Of x<y <i>in vivo</i>.<br/><p class="a">More</p>', 'Of x<y in vivo. More'),
        ('CO<inf>2</inf> <span data-x="1">and</span> <!-- no --><italic>O</italic>', 'CO2 and O'),
    ):
        text = SEARCH.replace('&lt;h4&gt;Background', f'{escape(written)}&lt;h4&gt;Background')
        (tmp_path / 'a.xml').write_text(text)
        found = read(tmp_path / 'a.xml', section_labels=False)[0].text.split('\n')[1]
        assert ' '.join(found.split()) == (read_as or re.sub('</?b>', '', written))


def test_tagged_text_says_what_xml_says(tmp_path):
    """Kinds of article, by types and bonds; headings without stars and qualifiers; a journal by two names."""
    lines = ['PT  - Retracted Publication', 'RIN - Heart. 2001', 'ROF - Heart. 1999', 'PT  - Review']
    for n, line in enumerate(lines):
        (tmp_path / f'{n}.nbib').write_text(f'PMID- {n}\nTI  - T.\nAB  - Some text.\n{line}\n')
    found = [read(tmp_path / f'{n}.nbib', leave_out=('retracted', 'retraction'))[0] for n in range(4)]
    assert [record.reason for record in found] == ['retracted', 'retracted', 'retraction', '']
    answer = '<pubTypeList><pubType>retracted publication</pubType></pubTypeList></result>'
    (tmp_path / 'a.xml').write_text(SEARCH.replace('</result>', answer, 1))
    assert read(tmp_path / 'a.xml')[0].kind == 'retracted'
    assert read(tmp_path / 'a.xml', leave_out=('retracted',))[0].reason == 'retracted'
    told = 'MH  - *Asthma/drug therapy\nMH  - Lung/*pathology\nOT  - *Wheeze/cough\nJT  - The Lancet\nTA  - Lancet\n'
    (tmp_path / 'b.nbib').write_text(f'PMID- 1\nTI  - T.\nAB  - Some text.\n{told}')
    asked = Content(where=('mesh=asthma', 'journal=Lancet', 'keyword=x'))
    assert read(tmp_path / 'b.nbib', content=asked)[0].fields == {
        'mesh': ('Asthma', 'Lung'),
        'keyword': ('Wheeze/cough',),
        'journal': ('The Lancet', 'Lancet'),
    }


def test_marks_between_cells_are_those_that_cut_all_rows_alike(tmp_path):
    """Names that nobody knows, and commas in the texts; without names, rows of unequal lengths are no table."""
    rows = [f'{n};Patient {n} met pijn in de nier, koorts, en hoest{", moe" * n}.' for n in range(5)]
    for head in ('nummer;bericht\n', ''):
        (tmp_path / 'a.csv').write_text(head + '\n'.join(rows))
        said, *found = read(tmp_path / 'a.csv')
        assert said.note == "its cells end at ';'"
        texts = '\n'.join(record.text for record in found)
        assert [line for line in texts.split('\n') if line] == [row[2:] for row in rows]
    prose = 'Pain; fever\nCough; none\nRash; itch'  # in running text a blank follows the mark
    (tmp_path / 'c.csv').write_text(prose)
    assert [record.text for record in read(tmp_path / 'c.csv')] == [prose]
    (tmp_path / 'd.tsv').write_text('Some words of a text\tx\nOther words of a text\n')
    assert [record.text for record in read(tmp_path / 'd.tsv')] == [
        'Some words of a text\nOther words of a text'
    ]


def test_tables_with_tabs_may_be_quoted(tmp_path):
    """The module csv and pandas write them so; other files keep their marks of quotation."""
    rows = [
        ['id', 'title', 'text'],
        ['1', 'A "gold" standard', 'Two\nlines.'],
        ['2', 'Plain', '"Quoted" text'],
    ]
    with open(tmp_path / 'a.tsv', 'w', newline='') as file:
        csv.writer(file, delimiter='\t').writerows(rows)
    assert [record.text for record in read(tmp_path / 'a.tsv')[1:]] == [
        'A "gold" standard\nTwo lines.',
        'Plain\n"Quoted" text',
    ]
    (tmp_path / 'b.tsv').write_text('id\ttext\n1\t"Quoted" text and "more"\n2\t"Open text\n')
    assert [record.text for record in read(tmp_path / 'b.tsv')[1:]] == [
        '"Quoted" text and "more"',
        '"Open text',
    ]


def test_long_lines_without_an_empty_one_are_said(tmp_path):
    (tmp_path / 'a.txt').write_text(f'{"word " * 50}\n' * 12)
    assert [record.reason for record in read(tmp_path / 'a.txt')] == ['form', '']
    (tmp_path / 'a.txt').write_text(f'{"word " * 10}\n' * 60)
    assert [record.reason for record in read(tmp_path / 'a.txt')] == ['']


def test_the_newer_of_two_citations_stands_in_every_form_that_counts_versions(tmp_path):
    for name, old, new in (
        ('nbib', 'PMID- 1\nTI  - Old.\nAB  - Old text.\n', 'PMID- 1\nTI  - New.\nAB  - New text.\n'),
        ('json', CORD19, CORD19 | {'metadata': {'title': 'New.'}}),
        ('jsonl', CORD19, CORD19 | {'metadata': {'title': 'New.'}}),
    ):
        for file, value in (('a', old), ('b', new)):
            (tmp_path / f'{file}.{name}').write_text(value if isinstance(value, str) else json.dumps(value))
        found = list(readers.read_inputs(Corpus(inputs=(str(tmp_path / f'*.{name}'),))))
        assert [document.text.split('\n')[0] for document in found] == ['New.'], name
