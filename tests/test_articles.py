"""Articles of PMC: what is read, line by line, archives against the standard library's reader, bad ones by name."""

import datetime
import gzip
import io
import itertools
import random
import tarfile
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from toy_articles import DOCTYPE, article, packed

from bioptimus_jax.corpus import article_text, jats, readers, tarred
from bioptimus_jax.corpus.config import Corpus
from bioptimus_jax.corpus.records import Record
from bioptimus_jax.errors import BrokenFile, ConfigError, InputError

EVERY = ('title', 'abstract', 'paragraphs', 'captions')


def read(path: Path, **changes) -> list[Record]:
    return list(readers.read_file(path, 'prefix', Corpus(**changes)))


def lines_of(folder: Path, content: str, **changes) -> list[str]:
    (folder / 'x.nxml').write_text(content, 'utf-8')
    [record] = read(folder / 'x.nxml', **changes)
    assert not record.note
    return record.text.split('\n') if record.text else []


ARTICLE = DOCTYPE + article(
    '0012',
    title='Of <italic>mice</italic> &amp; men<xref ref-type="fn" rid="f1"><sup>*</sup></xref>',
    abstract='<abstract><title>Abstract</title><sec><title>Aim</title><p>To see &beta;.</p></sec>'
    '<sec><title>End</title><p>It was seen.</p></sec></abstract>'
    '<abstract abstract-type="graphical"><p><fig><caption><p>At a glance.</p></caption><graphic/></fig></p></abstract>'
    '<trans-abstract xml:lang="de"><p>Zu sehen.</p></trans-abstract>',
    body="""
    <sec sec-type="intro"><label>1</label><title>Intro</title>
      <p>First
         paragraph.</p>
      <sec><title>Deeper</title><p>Second one.
        <fig id="F1"><object-id>10.1/f</object-id><label>Figure 1</label>
          <caption><title>A plot.</title><p>(A) Of x.</p><p>(B) Of y.</p></caption>
          <graphic xlink:href="f"/></fig> It goes on.</p></sec>
      <boxed-text><caption><title>Box</title></caption><sec><title>In it</title><p>Boxed words.</p></sec></boxed-text>
      <table-wrap><label>Table 1</label><caption><p>Of numbers.</p></caption>
        <table><tbody><tr><td><p>In a cell.</p></td></tr></tbody></table>
        <table-wrap-foot><fn><p>A foot.</p></fn></table-wrap-foot></table-wrap>
      <disp-formula><mml:math><mml:mi>q</mml:mi></mml:math></disp-formula>
    </sec>
    <sec><title>Supplement</title><supplementary-material><caption><p>Click here.</p></caption>
      </supplementary-material></sec>""",
    after='<back><ack><p>We thank.</p></ack><ref-list><ref><mixed-citation>A ref</mixed-citation></ref></ref-list>'
    '<app-group><app><p>An appendix.</p></app></app-group></back><floats-group><fig-group><caption><p>Several.</p>'
    '</caption><fig><caption><p>One.</p></caption></fig></fig-group></floats-group>'
    '<sub-article><front-stub/><body><p>A letter.</p></body></sub-article><response><body><p>Its answer.</p></body>'
    '</response>',
)
# A line, the part that it belongs to, and whether it is the title of a section.
LINES = [
    ('Of mice & men', 'title', False),
    ('Abstract', 'abstract', True),
    ('Aim', 'abstract', True),
    ('To see β.', 'abstract', False),
    ('End', 'abstract', True),
    ('It was seen.', 'abstract', False),
    ('At a glance.', 'abstract captions', False),
    ('Intro', 'paragraphs', True),
    ('First paragraph.', 'paragraphs', False),
    ('Deeper', 'paragraphs', True),
    ('Second one. It goes on.', 'paragraphs', False),
    ('A plot. (A) Of x. (B) Of y.', 'captions', False),
    ('Box', 'paragraphs', True),
    ('In it', 'paragraphs', True),
    ('Boxed words.', 'paragraphs', False),
    ('Of numbers.', 'captions', False),
    ('Supplement', 'paragraphs', True),
    ('Several.', 'captions', False),
    ('One.', 'captions', False),
]


@pytest.mark.parametrize('titles', [False, True])
@pytest.mark.parametrize(
    'parts',
    [
        Corpus().article_parts,
        EVERY,
        ('paragraphs',),
        ('abstract',),
        ('title', 'captions'),
        ('captions', 'abstract'),
    ],
)
def test_an_article_line_by_line(tmp_path, parts, titles):
    wanted = [line for line, of, title in LINES if {*of.split()} <= {*parts} and (titles or not title)]
    assert lines_of(tmp_path, ARTICLE, article_parts=parts, section_labels=titles) == wanted


def test_a_title_alone_is_no_document(tmp_path):
    for content, parts in ((article(body=''), EVERY), (article(), ('title',)), (article(), ())):
        (tmp_path / 'x.nxml').write_text(content, 'utf-8')
        assert read(tmp_path / 'x.nxml', article_parts=parts) == [Record('PMC1', '', 1, 'no_text')]


def cited(*numbers: str, kind: str = 'bibr') -> str:
    return ','.join(f'<xref ref-type="{kind}" rid="r">{number}</xref>' for number in numbers)


FORMULA = '<mml:math><mml:mi>p</mml:mi> <mml:mo>=</mml:mo> <mml:mn>1</mml:mn></mml:math>'


@pytest.mark.parametrize(
    ('markup', 'lines'),
    [
        ('CO<sub>2</sub>, 10<sup>-<bold>5</bold></sup>, <italic>E.<sc> coli</sc></italic>', ['CO2, 10(-5), E. coli']),
        ('<styled-content>a</styled-content><named-content>b</named-content> <ext-link>c</ext-link>', ['ab c']),
        ('one<!-- no --> two<?page 3?> three<break/>four', ['one two three four']),
        (f'in men<sup>{cited("1", "2")}</sup>, and', ['in men, and']),
        (f'in men [{cited("1")}–{cited("5")}].', ['in men.']),
        (f'in men ({cited("1", "2")} and {cited("5")}), so', ['in men, so']),
        (f'in men <sup>{cited("1")}</sup>&#8211;<sup>{cited("3")}</sup> too', ['in men too']),
        (f'in men (as {cited("12")})', ['in men (as)']),
        (f'{cited("")}Of {cited("Poe, 1845")} and {cited("S1")}', ['Of Poe, 1845 and S1']),
        (f'in {cited("Fig. 2", kind="fig")}{cited("a", kind="fn")} and {cited("3", kind="sec")}', ['in Fig. 2 and 3']),
        ('a note<fn><p>Aside.</p></fn> here', ['a note here']),
        (
            f'at <inline-formula><alternatives><tex-math>\\usepackage</tex-math>{FORMULA}<inline-graphic/>'
            '</alternatives></inline-formula>, so',
            ['at p=1, so'],
        ),
        (f'by<disp-formula>{FORMULA}<label>(1)</label></disp-formula>where', ['by where']),
        (f'by <disp-formula>{FORMULA}</disp-formula> , where (<disp-formula/>) <disp-formula/>.', ['by, where.']),
        (
            'We did: <list><list-item><label>1.</label><p>this;</p></list-item><list-item><p>that'
            '<list><list-item><p>twice</p></list-item></list></p></list-item></list>.',
            ['We did:', 'this;', 'that', 'twice'],
        ),
        (
            'He said <disp-quote><p>No.</p><p>Yes.</p><attrib>He</attrib></disp-quote> and left',
            ['He said', 'No.', 'Yes.', 'and left'],
        ),
        ('a<table-wrap><table><tr><td>1</td></tr></table></table-wrap>b <preformat>code()</preformat>c', ['a b c']),
        ('<def-list><def-item><term>T</term><def><p>a term</p></def></def-item></def-list>', []),
        ('&hairsp;&Abreve;&NotEqualTilde; &#x3b1;<![CDATA[<d>]]>', ['Ă≂̸ α<d>']),
        ('<graphic/> ( ) .', []),
    ],
)  # fmt: skip
def test_what_is_read_within_a_paragraph(tmp_path, markup, lines):
    assert lines_of(tmp_path, DOCTYPE + article(body=f'<p>{markup}</p>'))[1:] == lines


def raised(*content: str) -> str:
    return f'<sup>{"".join(content)}</sup>'


UNTOLD = '<xref rid="{}">{}</xref>'


@pytest.mark.parametrize(
    ('markup', 'line'),
    [
        # Letters in a mark do not make it a word.
        (f'IL-6{raised(cited("7 and 8"))}', 'IL-6'),
        (f'3{raised(cited("4a", "5b"))} men', '3 men'),
        (f'in men{raised(cited("S1"))}, as [{cited("12a")}]', 'in men, as'),
        (f'men{cited("<sup>3a</sup>")} and {cited("Poe et al<sup>12</sup>")}, so', 'men and Poe et al, so'),
        (f'men ({cited("ref. 3")}), men (refs {cited("3", "4")}), so', 'men, men, so'),
        # Where the reference does not say what it leads to, that says it.
        (f'5{raised(UNTOLD.format("r3", "3"))} mg', '5 mg'),
        (f'5{raised(UNTOLD.format("x.3-y", "3"))} mg', '5 mg'),
        (f'men [{UNTOLD.format("known", "3")}] and{UNTOLD.format("note", "a")} on', 'men and on'),
        (f'men {UNTOLD.format("in", "3")} in box {UNTOLD.format("b1", "1")}<named-content id="b1"/>', 'men in box 1'),
        (f'Fig. {UNTOLD.format("F3", "3")} and 2{UNTOLD.format("tab2", "b")}', 'Fig. 3 and 2b'),
        # Nothing is left of a citation: other dashes, brackets, ends without a reference.
        (f'cells{raised(cited("1"), "‐", cited("3"))} here', 'cells here'),
        *((f'cells {cited("1")}{dash}{cited("3")} here', 'cells here') for dash in '‐‑‒–—―−'),
        (f'cells{raised(cited("1"), "–3")}, cells [{cited("1")}-3, 7], cells ({cited("1")}–3)', 'cells, cells, cells'),
        (f'cells [[{cited("1")}]] and ({cited("1")} &amp; {cited("2")}) die', 'cells die'),
        (f'men ({cited("1")}; n = 5)', 'men (n = 5)'),
        (f'men (n = 5; {cited("1", "2")})', 'men (n = 5)'),
        (f'men (n = 5, {cited("1")}, p = 1) and [{cited("1")}, p. 7]', 'men (n = 5, p = 1) and [p. 7]'),
        (f'men ({cited("1")}, {cited("2")} n = 5) [see {cited("7")}]', 'men (n = 5)'),
        (f'men, {cited("1")}, and women, {cited("2")}.', 'men, and women.'),
        # Nothing sticks together where a citation stood.
        (f'men{raised(cited("1"))}and {cited("2")}women (n{cited("2")}= 5)', 'men and women (n= 5)'),
        # A name and a year stay, in one reference or in two.
        (f'(Jones {cited("2011")}; Lee {cited("2012a")})', '(Jones 2011; Lee 2012a)'),
        (f'Jones et al. ({cited("2011", "1998")}; {cited("2012a,b")})', 'Jones et al. (2011,1998; 2012a,b)'),
        (f'({cited("Poe, 1845")}, {cited("b")}) Poe {cited("[1845]")}', '(Poe, 1845, b) Poe [1845]'),
        (f'men{raised(cited("2011"))} [{cited("1845", "17")}]', 'men'),
        (f'{cited("Poe et al. [12]")} and {cited("Lee (7)")}, {cited("Kim [2012]")}', 'Poe et al. and Lee, Kim [2012]'),
        # What separates citations may be raised by itself.
        *(
            (f'men{cited("<sup>1</sup>")}{raised(mark)}{cited("<sup>2</sup>")} and', 'men and')
            for mark in (',', ', ', '–', ' ', ';')
        ),
        (f'men{raised("[", cited("1"))}{raised(",")} {raised(cited("2"), "]")} and', 'men and'),
        *((f'men{raised(cited("1"))}{raised("–", end)}, so', 'men, so') for end in (cited('3'), '3')),
        *(
            (f'men [{cited("1")}{dash}{cited("3")}] die', 'men die')
            for dash in ('∼', '～', '、', '，', '\u200b,\u200b', ' e ')
        ),
        # Powers, charges and genotypes before a citation stay, and isotopes behind it.
        (f'10{raised("6,", cited("3"))} cells, 5 × 10{raised("−3 ", cited("3"))} M', '10(6) cells, 5 × 10(−3) M'),
        (f'kg/m{raised("2,", cited("3"))}, cm{raised("3", cited("3"))}, R{raised("2 ", cited("3"))}', 'kg/m2, cm3, R2'),
        (f'Cl{raised("−,", cited("3"))} and Na{raised("+")}{raised(",")}{raised(cited("3"))} in', 'Cl− and Na+ in'),
        *((f'p53{raised(sign, cited("3"))} mice', f'p53{sign[:3]} mice') for sign in ('-/-', '−/−,', '+/–, ')),
        (f'10{raised("6")}{raised(cited("3"))} cells{raised("1,", cited("3"))}', '10(6) cells'),
        (f'men{cited("1")}{raised(" 14")}C and men [{cited("1")}] {raised("13")}C', 'men 14C and men 13C'),
        # Brackets and stops within the reference are those of the sentence.
        (f'men [{cited("1]")} die of {cited("(1")}) age {cited("[1")}, {cited("2]")} too', 'men die of age too'),
        (f'men {cited("[3].")} Then {cited("4,")} men{raised(cited("3."))} So', 'men. Then, men. So'),
        # Words that only lead to a citation go with it; others stay, without what joined them to it.
        *(
            (f'men ({led}) die', 'men die')
            for led in (
                f'see ref. {cited("1")}', f'for a review see refs. {cited("1")} and {cited("2")}',
                f'reviewed in [{cited("1")}]', f'e.g., {cited("1")}', f'{cited("1")}; reviewed in {cited("2")}',
                f'{cited("1")} and references therein', f'References {cited("1")}, {cited("2")}', f'{cited("1")}, 2–5',
            )
        ),
        (f'men (see Fig. 2 and {cited("3")}) and (see {cited("3")}; n = 5)', 'men (see Fig. 2) and (n = 5)'),
        (f'men (see Table 1, and {cited("3")}), as in Fig. 2 and {cited("3")}.', 'men (see Table 1), as in Fig. 2.'),
        (f'(Poe {cited("2001")}; but see {cited("Lee 2003")})', '(Poe 2001; but see Lee 2003)'),
        # What stands beside a citation is not a part of it.
        (f'types 1,{raised(cited("3"))} 2{raised(cited("4"))} and 3 [{cited("5")}]: 4', 'types 1, 2 and 3: 4'),
        (f'HbA<sub>1c</sub>{raised(cited("3"))} and [<sup>3</sup>H]dT [{cited("3")}]', 'HbA1c and [3H]dT'),
        (f'[Ca{raised("2+")}] [{cited("3")}] of p53{raised("−/−")}{raised(cited("3"))} men', '[Ca2+] of p53−/− men'),
        (f'men ({cited("Poe 2001")}, {cited("2003")}; reviewed in Lee)', 'men (Poe 2001, 2003; reviewed in Lee)'),
        (f'the Pref {cited("3")} of {cited("3")} .05 mg', 'the Pref of .05 mg'),
    ],
)  # fmt: skip
def test_no_citation_sticks_to_a_word_and_no_name_or_year_is_lost(tmp_path, markup, line):
    known = '<ref id="known"><citation id="in"/></ref>'
    back = f'<back><fn-group><fn id="note"/></fn-group><ref-list>{known}</ref-list></back>'
    assert lines_of(tmp_path, article(title=markup, after=back))[0] == line
    assert lines_of(tmp_path, article(body=f'<p>{markup}</p>', after=back))[1:] == [line]


@pytest.mark.parametrize(
    ('body', 'lines'),
    [
        (
            '<fig><caption><title>Doses</title><list><list-item>dose 5</list-item><list-item>10 mg</list-item></list>'
            '</caption></fig>',
            ['Doses dose 5 10 mg'],
        ),
        ('<p>dose 5<list><list-item>10 mg</list-item></list>3</p>', ['dose 5', '10 mg', '3']),
        ('<speech><speaker>Dr A</speaker><p>No.</p></speech>and<p>Yes.</p>', ['Dr A', 'No.', 'and', 'Yes.']),
        ('<p><styled-content>dose 5<disp-quote>10 mg</disp-quote></styled-content>3</p>', ['dose 5', '10 mg', '3']),
        ('<p>dose 5<break/>10 mg<inline-graphic/>3<hr/>ml</p>', ['dose 5 10 mg 3 ml']),
        ('<sec>dose 5<sec>10 mg</sec></sec>3', ['dose 5', '10 mg', '3']),
        # One thing in several forms is read once; what has none that can be read leaves no hole before a stop.
        (
            '<p>at <inline-formula><alternatives><tex-math>x</tex-math>{0}{0}</alternatives></inline-formula> and '
            '<alternatives><inline-graphic/><textual-form>y &lt; 1</textual-form></alternatives>, at <inline-formula>'
            '<tex-math>z</tex-math>{0}</inline-formula> <inline-formula><tex-math>z</tex-math></inline-formula>.</p>'
            .format('<mml:math><mml:mi>p</mml:mi></mml:math>'),
            ['at p and y < 1, at p.'],
        ),
    ],
)  # fmt: skip
def test_no_block_touches_another_and_nothing_is_read_twice(tmp_path, body, lines):
    assert lines_of(tmp_path, article(body=body), article_parts=EVERY)[1:] == lines


SPANISH, ENGLISH = (
    '<abstract xml:lang="es"><p>Se ve.</p></abstract>',
    '<abstract xml:lang="en-GB"><p>Seen.</p></abstract>',
)
TOLD = '<abstract><p>It was seen in twelve old men.</p><p>It was so in all of their wives.</p></abstract>'
TEASER = (
    '<abstract abstract-type="teaser"><title>In short</title><p>It was seen in twelve old men.</p></abstract>'
)
NEWS = '<abstract abstract-type="teaser"><title>In short</title><p>What twelve old men were never told.</p></abstract>'
BOX = '<boxed-text><caption><title>A box</title></caption><p>Words in it.</p></boxed-text>'
CAPTIONS = (
    '<fig><caption xml:lang="pt"><p>Um.</p></caption><caption xml:lang="en"><p>One.</p></caption></fig>'
)


@pytest.mark.parametrize(
    ('made', 'lines'),
    [
        (dict(abstract=SPANISH + ENGLISH), ['Seen.']),
        (dict(abstract=SPANISH + ENGLISH, attributes=' xml:lang="es"'), ['Se ve.']),
        (dict(abstract=SPANISH + ENGLISH, attributes=' xml:lang="fr"'), ['Se ve.']),
        (dict(abstract=SPANISH), ['Se ve.']),
        (dict(abstract=TOLD + SPANISH), ['It was seen in twelve old men.', 'It was so in all of their wives.']),
        *(
            (dict(abstract=two), ['It was seen in twelve old men.', 'It was so in all of their wives.'])
            for two in (TOLD + TEASER, TEASER + TOLD, TOLD + TOLD)
        ),
        (dict(abstract=TOLD.replace('wives', 'sons') + NEWS), [
            'It was seen in twelve old men.',
            'It was so in all of their sons.',
            'In short',
            'What twelve old men were never told.',
        ]),
        *(
            (dict(after=f'<{group}>{BOX}{CAPTIONS}</{group}>'), ['A box', 'Words in it.', 'One.'])
            for group in ('floats-group', 'floats-wrap')
        ),
    ],
)  # fmt: skip
def test_every_text_of_an_article_is_read_once_and_in_its_language(tmp_path, made, lines):
    found = lines_of(tmp_path, article(body='', **made), article_parts=EVERY, section_labels=True)
    assert found == ['A title', *lines]


def test_a_subtitle_goes_on_with_the_title(tmp_path):
    for title, line in (('Of mice', 'Of mice: and men'), ('Of mice?', 'Of mice? and men')):
        written = article(title=f'{title}</article-title><subtitle>and men</subtitle><article-title>')
        assert lines_of(tmp_path, written)[0] == line


def test_what_goes_with_a_citation_is_counted_and_so_is_a_formula_that_cannot_be_read(tmp_path):
    tex = '<tex-math>x y</tex-math>'
    counts = {
        f'men (see refs. {cited("1")}, 5–7 and {cited("2")}) die': {'citations': 6},
        f'men [{cited("1")}] and <sup>{cited("2")}</sup> die': {'citations': 3},
        f'<inline-formula>{tex}</inline-formula> men': {'formulas': 2},
        f'<inline-formula><alternatives><inline-graphic/>{tex}</alternatives></inline-formula> men': {
            'formulas': 2
        },
        f'<inline-formula>{tex}{FORMULA}</inline-formula> men': {},
        f'<inline-formula><alternatives>{tex}{FORMULA}</alternatives></inline-formula> men': {},
    }
    for markup, not_read in counts.items():
        (tmp_path / 'x.nxml').write_text(article(body=f'<p>{markup}</p>'), 'utf-8')
        [record] = read(tmp_path / 'x.nxml')
        assert dict(record.not_read) == not_read, markup


def test_boxes_that_float_are_no_captions(tmp_path):
    floats = article(after=f'<floats-group>{BOX}{CAPTIONS}</floats-group>')
    assert lines_of(tmp_path, floats)[2:] == ['Words in it.']
    assert lines_of(tmp_path, floats, article_parts=('captions',)) == ['One.']


IDS = {
    'pmcid': '<article-id pub-id-type="pmid">9</article-id><article-id pub-id-type="pmcid">PMC0071</article-id>',
    'pmc': '<article-id pub-id-type="doi">10.1/X</article-id><article-id pub-id-type="pmc"> 72 </article-id>',
    'doi': '<article-id pub-id-type="pmid">9</article-id><article-id pub-id-type="doi">10.1/aBc</article-id>',
}


def test_ids_and_versions(tmp_path):
    """The last of several articles with one id counts, as updates come last; of made ids nothing is known."""
    names = {}
    for kind, ids in IDS.items():
        (tmp_path / f'{kind}.nxml').write_text(article(ids=ids), 'utf-8')
        [record] = read(tmp_path / f'{kind}.nxml')
        names[kind] = record.id, record.version
    assert names == {'pmcid': ('PMC71', 1), 'pmc': ('PMC72', 1), 'doi': ('10.1/abc', 1)}
    for name, body in (('a', 'text'), ('b', 'text'), ('c', 'other')):
        (tmp_path / f'{name}.nxml').write_text(article(ids='', body=f'<p>{body}</p>'), 'utf-8')
    a, b, c = (read(tmp_path / f'{name}.nxml')[0] for name in 'abc')
    assert a == b
    assert a.id != c.id
    assert (a.version, a.id.partition('-')[0]) == (0, 'text')


def doi(text: str) -> str:
    return f'<article-id pub-id-type="doi">{text}</article-id>'


NAMED = '<article-version-alternatives><article-version article-version-type="status">preprint</article-version>{}'
NAMED += '</article-version-alternatives>'
VERSIONS = {
    # What the article says of its version, and the name of its file -> id, version, and the part behind the point.
    ('10.1101/2020.01.30.927871', '', '2020.01.30.927871v10.full.nxml'): ('10.1101/2020.01.30.927871', 10, 0),
    ('10.1101/1', '<article-version>1.10</article-version>', '1v2.nxml'): ('10.1101/1', 1, 10),
    ('10.1101/1', NAMED.format('<article-version>3</article-version>'), 'x.nxml'): ('10.1101/1', 3, 0),
    ('10.1101/1', NAMED.format(''), 'factor-iv3.nxml'): ('10.1101/1', 1, 0),
    ('10.21203/rs.3.rs-1234/v10', '', 'x.nxml'): ('10.21203/rs.3.rs-1234', 10, 0),
    ('10.26434/chemrxiv-2021-ab-v2', '', 'x.nxml'): ('10.26434/chemrxiv-2021-ab', 2, 0),
    ('10.20944/preprints202001.0001.v3', '', 'x.nxml'): ('10.20944/preprints202001.0001', 3, 0),
    ('10.31219/osf.io/abcde_v2', '', 'x.nxml'): ('10.31219/osf.io/abcde', 2, 0),
    ('10.12688/f1000research.1234.2', '', 'x.nxml'): ('10.12688/f1000research.1234', 2, 0),
    ('10.12688/f1000research.1234', '', 'x.nxml'): ('10.12688/f1000research.1234', 1, 0),
    ('10.7554/eLife.94334.3', '', 'elife-94334-v1.nxml'): ('10.7554/elife.94334', 3, 0),
    ('10.7554/eLife.94334', '', 'elife-94334-v4.nxml'): ('10.7554/elife.94334', 4, 0),
    ('10.1000/j.vol.12', '', 'x.nxml'): ('10.1000/j.vol.12', 1, 0),
}


@pytest.mark.parametrize('said', VERSIONS)
def test_the_version_of_an_article_is_said_by_itself_or_its_doi_or_its_file(tmp_path, said):
    id, meta, name = said
    (tmp_path / name).write_text(article(ids=doi(id), meta=meta), 'utf-8')
    [record] = read(tmp_path / name)
    assert (record.id, record.version, record.revised) == VERSIONS[said]


def test_the_highest_version_of_an_article_stands_in_any_order(tmp_path):
    """Articles in files, in one archive, and numbered as PMC numbers its own."""
    texts = {n: article(ids=doi('10.1101/1'), body=f'<p>Text {n}.</p>') for n in (2, 10, 9)}
    for number, text in texts.items():
        (tmp_path / f'1v{number}.full.xml').write_text(text, 'utf-8')
    packed(tmp_path / 'all.tar', {f'1v{n}.xml': text for n, text in texts.items()})
    ids = '<article-id pub-id-type="pmcid">PMC5</article-id><article-id pub-id-type="pmcid-ver">PMC5.{}</article-id>'
    of_pmc = {n: article(ids=ids.format(n), body=f'<p>Text {n}.</p>') for n in (1, 10, 2)}
    packed(tmp_path / 'pmc.tar', {f'PMC5.{n}.xml': text for n, text in of_pmc.items()})
    for inputs in ('*.full.xml', 'all.tar', 'pmc.tar'):
        found = readers.read_inputs(Corpus(inputs=(str(tmp_path / inputs),)))
        assert [document.text for document in found] == ['A title\nText 10.']


KINDS_OF_ARTICLES = {
    ' article-type="research-article"': '',
    ' article-type="retraction"': 'retraction',
    ' article-type="partial-retraction"': 'retraction',
    ' article-type="expression-of-concern"': 'concern',
    ' article-type="correction"': 'correction',
}


def test_articles_that_were_retracted_and_notices_are_told_apart(tmp_path):
    entries = {f'{n}.xml': article(str(n), attributes=text) for n, text in enumerate(KINDS_OF_ARTICLES)}
    forward = '<related-article related-article-type="retraction-forward"/>'
    titles = (
        'RETRACTED ARTICLE: A title',
        '[Retracted] A title',
        'Retracted: A title',
        'Retracted papers: why',
    )
    entries['forward.xml'] = article('10', meta=forward)
    entries |= {f'{title}.xml': article(str(n), title=title) for n, title in enumerate(titles, 11)}
    kinds = [*KINDS_OF_ARTICLES.values(), 'retracted', 'retracted', 'retracted', 'retracted', '']
    path = packed(tmp_path / 'x.tar', entries)
    assert [(r.kind, r.reason) for r in read(path)] == [(kind, '') for kind in kinds]
    left = read(path, leave_out=('retracted', 'correction'))
    assert [r.reason for r in left] == [k if k in ('retracted', 'correction') else '' for k in kinds]
    assert not any(r.text for r in left if r.reason)


@pytest.mark.parametrize(
    ('dates', 'last_day'),
    [
        ('<pub-date pub-type="ppub"><year>2004</year></pub-date>', '2004-12-31'),
        ('<pub-date date-type="pub"><day>05</day><month>9</month><year>2004</year></pub-date>', '2004-09-05'),
        ('<pub-date><season>Jul-Sep</season><year>2004</year></pub-date>', '2004-09-30'),
        ('<pub-date iso-8601-date="2004-02-03"/>', '2004-02-03'),
        (
            '<pub-date><string-date><month>May</month> <year>2004</year></string-date></pub-date>',
            '2004-05-31',
        ),
        (
            '<pub-date pub-type="nihms-submitted"><year>2001</year></pub-date>'
            '<pub-date pub-type="pmc-release"><month>2</month><year>2005</year></pub-date>'
            '<pub-date pub-type="epub"><month>11</month><year>2004</year></pub-date>',
            '2004-11-30',
        ),
    ],
)
def test_the_last_day_that_publication_can_be_on_decides(tmp_path, dates, last_day):
    (tmp_path / 'x.nxml').write_text(article(meta=dates), 'utf-8')
    next_day = str(datetime.date.fromisoformat(last_day) + datetime.timedelta(1))
    before, after = (
        read(tmp_path / 'x.nxml', published_before=day)[0].reason for day in (last_day, next_day)
    )
    assert before in ('too_new', 'vague_date')
    assert after == ''
    (tmp_path / 'x.nxml').write_text(article(), 'utf-8')
    assert read(tmp_path / 'x.nxml', published_before=last_day) == [Record('PMC1', '', 1, 'undated')]


def test_namespaces_and_encodings(tmp_path):
    """An article as OAI-PMH gives it, in a namespace; files in other encodings than UTF-8."""
    plain = lines_of(tmp_path, ARTICLE, article_parts=EVERY)
    spaced = article(
        attributes=' xmlns="https://jats.nlm.nih.gov/ns/archiving/1.3/"', body=f'<p>née {FORMULA}</p>'
    )
    assert lines_of(tmp_path, spaced) == ['A title', 'née p=1']
    inner = '<front><article-meta/></front><body><p>née</p></body></article>'
    prefixed = '<j:article xmlns:j="urn:j">' + inner.replace('<', '<j:').replace('<j:/', '</j:')
    assert lines_of(tmp_path, prefixed) == ['née']
    for encoding in ('utf-16', 'utf-8-sig'):
        (tmp_path / 'x.nxml').write_bytes(ARTICLE.encode(encoding))
        assert read(tmp_path / 'x.nxml', article_parts=EVERY)[0].text.split('\n') == plain
    latin = '<?xml version="1.0" encoding="ISO-8859-1"?>' + article(title='née')
    (tmp_path / 'x.nxml').write_bytes(latin.encode('latin-1'))
    assert read(tmp_path / 'x.nxml')[0].text.split('\n')[0] == 'née'


def test_xml_is_told_by_its_content(tmp_path):
    pubmed = (
        '<PubmedArticleSet><MedlineCitation><PMID>7</PMID><Article><ArticleTitle>T.</ArticleTitle><Abstract>'
        '<AbstractText>Text.</AbstractText></Abstract></Article></MedlineCitation></PubmedArticleSet>'
    )
    bad = '<article><front/></article>'
    whole = f'<pmc-articleset>{article("1")}{bad}{article("2", title="B")}</pmc-articleset>'
    for name, content in (('a', pubmed), ('b', article('1')), ('c', whole), ('d', whole[:-40])):
        (tmp_path / f'{name}.xml.gz').write_bytes(gzip.compress(content.encode()))
    one = Record('PMC1', 'A title\nIt is a paragraph of an article.', 1)
    assert [r.id for r in read(tmp_path / 'a.xml.gz')] == ['7']
    assert read(tmp_path / 'b.xml.gz') == [one]
    first, wrong, last = read(tmp_path / 'c.xml.gz')
    assert (first, last.id, last.text[0]) == (one, 'PMC2', 'B')
    assert wrong.note == 'article 2 has no front/article-meta'
    with pytest.raises(BrokenFile, match=r'd\.xml\.gz: is cut off or not well-formed XML, after record 2'):
        read(tmp_path / 'd.xml.gz')
    for file in ('b', 'c'):
        told: list[int] = []
        path = tmp_path / f'{file}.xml.gz'
        list(readers.read_file(path, '', Corpus(), told.append))
        assert sum(told) == path.stat().st_size


BAD = {
    'is cut off or not well-formed XML (': article()[:-30],
    'is cut off or not well-formed XML (no element': '',
    'has no front/article-meta': '<article><title>DocBook</title></article>',
    'is not an article (it begins with <html>)': '<html><article/></html>',
    "has a PMC id that is not a number ('PMC7.1')": article('PMC7.1'),
    'declares entities of its own (f1)': f'<!DOCTYPE article [<!ENTITY f1 "lol">]>{article()}',
}


@pytest.mark.parametrize('what', BAD)
def test_a_bad_article_is_named_and_is_in_nobodys_way(tmp_path, what):
    path = packed(
        tmp_path / 'x.tar.gz', {'a/PMC1.xml': article('1'), 'a/b.nxml': BAD[what], 'a/PMC3.xml': article('3')}
    )
    first, bad, last = read(path)
    assert (first.id, last.id) == ('PMC1', 'PMC3')
    assert (bad.id, bad.text, bad.reason) == ('', '', 'bad_record')
    assert bad.note.startswith(f'a/b.nxml {what}')
    with pytest.raises(InputError) as caught:
        read(path, on_bad_record='fail')
    assert str(caught.value).startswith(f'{path}: {bad.note}; ')
    assert not isinstance(caught.value, BrokenFile)
    if BAD[what]:
        (tmp_path / 'x.nxml').write_text(BAD[what], 'utf-8')
        assert read(tmp_path / 'x.nxml') == [
            Record('', reason='bad_record', note=bad.note.replace('a/b.nxml', 'the article'))
        ]


def test_article_parts_are_known(tmp_path):
    from bioptimus_jax.experiment import config
    from bioptimus_jax.experiment.schema import Experiment

    settings_of_corpus = config.defaults()
    settings_of_corpus.corpus.article_parts = ('title', 'tables')
    with pytest.raises(
        ConfigError, match=r"corpus\.article_parts\[1\]: 'tables' is not one of title, abstract"
    ):
        Experiment.from_config(settings_of_corpus)


# ---- conservation: every word of a body is read once, or stands in something that is left out

INLINE = 'italic bold sup sub sc named-content styled-content ext-link email uri abbrev x chem-struct newer'.split()
BLOCKS = (
    'p sec title list list-item disp-quote boxed-text statement speech speaker caption sig address'.split()
)
LEFT_OUT = {
    'a table': ['table', 'array', 'table-wrap-foot'],
    'a formula': ['disp-formula', 'tex-math'],
    'code': ['preformat', 'code'],
    'a supplement': ['supplementary-material', 'media'],
    'a list of terms or references': ['def-list', 'ref-list'],
    'a note': ['fn', 'fn-group', 'attrib', 'permissions'],
    'a label': ['label', 'object-id', 'alt-text'],
}
FLOATS = ['fig', 'table-wrap']
REASON_OF = {
    **article_text.NAMES,
    '': 'citations',
    'fig': 'figures',
    'table-wrap': 'tables',
}
OF_FLOATS = {('fig', 'caption'), ('table-wrap', 'caption')}
NOT_READ = [name for names in LEFT_OUT.values() for name in names]
CITED = f'<sup>{cited("7a")}</sup>'


class Grown:
    """A random tree of elements: its XML, and its words (no two are equal) and citations with what each stands in."""

    def __init__(self, draw: random.Random):
        self.draw, self.words, self.cited = draw, {}, []

    def word(self, within: tuple[str, ...]) -> str:
        number, word = len(self.words), ''
        while number or not word:
            number, digit = divmod(number, 26)
            word = chr(ord('a') + digit) + word
        self.words[f'q{word}'] = within
        return f'q{word}'

    def tree(self, within: tuple[str, ...] = (), depth: int = 0) -> str:
        """Words and elements one after the other; only what stands within a line has white space around it."""
        xml = self.word(within)
        for _ in range(self.draw.randint(0, 3) if depth < 6 else 0):
            # What is left out may hold anything but figures, whose captions are read wherever they stand.
            floats = FLOATS if {*within}.isdisjoint(NOT_READ) else []
            name = self.draw.choice([*INLINE, *BLOCKS * 2, *floats, *NOT_READ])
            inner = self.tree((*within, name), depth + 1)
            if name in FLOATS:
                inner += f'<caption>{self.tree((*within, name, "caption"), depth + 1)}</caption>'
            gap = ' ' * (name in INLINE + NOT_READ)
            citation = self.draw.choice(['', CITED])
            self.cited += [within] * bool(citation)
            xml += f'{citation}{gap}<{name}>{inner}</{name}>{gap}{self.word(within)}'
        return xml


def not_read_in(within: tuple[str, ...]) -> str:
    """The outermost element that keeps a word from being read, behind the last caption of a figure or table; or ''."""
    captions = [at + 2 for at, pair in enumerate(itertools.pairwise(within)) if pair in OF_FLOATS]
    inner = within[max(captions, default=0) :]
    return next((name for name in inner if name in NOT_READ or name in FLOATS), '')


def test_every_word_of_a_body_is_read_once_or_left_out_for_a_reason(tmp_path):
    """Random trees of what articles are made of, in which no two blocks have white space between them.

    What is left out is in the table of docs/method/corpus.md, and counted; nothing else may be, and no two words may
    touch.
    """
    grown = [Grown(random.Random(seed)) for seed in range(150)]
    articles = [article(str(n), body=tree.tree()) for n, tree in enumerate(grown, 1)]
    (tmp_path / 'x.xml').write_text(f'<pmc-articleset>{"".join(articles)}</pmc-articleset>', 'utf-8')
    found = read(tmp_path / 'x.xml', article_parts=('paragraphs', 'captions'), section_labels=True)
    for record, tree in zip(found, grown, strict=True):
        places = {word: not_read_in(within) for word, within in tree.words.items()}
        assert sorted(record.text.split()) == sorted(word for word, place in places.items() if not place)
        not_read = Counter(REASON_OF[place] for place in places.values() if place)
        not_read.update(REASON_OF[not_read_in(within)] for within in tree.cited)
        assert record.not_read == not_read
        for line in record.text.split('\n'):  # a line is of one block, or a caption
            blocks = {tuple(name for name in tree.words[word] if name in BLOCKS) for word in line.split()}
            assert len(blocks) == 1 or any('caption' in within for within in blocks)
    assert sum(len(tree.words) for tree in grown) > 4000


# ---- archives


@settings(max_examples=40)
@given(
    st.randoms(use_true_random=False),
    st.sampled_from([tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT]),
)
def test_archives_are_read_as_the_standard_library_reads_them(
    tmp_path_factory, draw: random.Random, form: int
):
    """Archives of any format, with names and contents of many lengths, folders, links and other files in between."""
    path = tmp_path_factory.mktemp('tar') / draw.choice(['x.tar', 'x.tar.gz'])
    with tarfile.open(path, 'w:gz' if path.suffix == '.gz' else 'w', format=form) as made:
        for number in range(draw.randint(1, 8)):
            folder = 'é' * draw.choice([1, 40, 90 if form == tarfile.USTAR_FORMAT else 300])
            entry = tarfile.TarInfo(
                f'{folder[:70]}/{number}{draw.choice([".nxml", ".xml", ".jpg", ".xml.txt"])}'
            )
            if form != tarfile.USTAR_FORMAT:
                entry.name = f'{folder}/{number}{draw.choice([".nxml", ".xml", ".jpg"])}'
            entry.type = draw.choice(
                [tarfile.REGTYPE] * 4 + [tarfile.DIRTYPE, tarfile.SYMTYPE, tarfile.AREGTYPE]
            )
            entry.linkname = 'x' * draw.choice([1, 90])
            entry.mtime = draw.choice([0, 1.5])
            # Some programs give a link the size of what it leads to, but no content.
            entry.size = draw.choice([0, 1, 511, 512, 513, 2000]) if entry.isreg() or entry.issym() else 0
            made.addfile(entry, io.BytesIO(draw.randbytes(entry.size)) if entry.isreg() else None)
    wanted = []
    with tarfile.open(path) as opened:
        for entry in opened:
            content = opened.extractfile(entry) if entry.isreg() else None
            if content and entry.name.endswith(('.nxml', '.xml')):
                wanted.append((entry.name, content.read() if entry.size <= 600 else None))
    with readers.stored.opened(path) as source:
        found = list(tarred.files(path, source, ('.nxml', '.xml'), 600))
    assert [content for _, content in found] == [content for _, content in wanted]
    for (name, _), (other, _) in zip(found, wanted, strict=True):
        assert name == (
            other.rpartition('/')[2] if form == tarfile.USTAR_FORMAT and len(other.encode()) > 100 else other
        )


def test_an_archive_holds_articles_beside_other_files(tmp_path):
    entries = {'P/x.jpg': b'\xff' * 3000, 'P/1.nxml': article('1'), 'P/x.pdf': b'', 'P/2.xml': article('2')}
    for name in ('x.tar', 'y.tar.gz'):
        path, told = packed(tmp_path / name, entries), []
        assert [r.id for r in readers.read_file(path, '', Corpus(), told.append)] == ['PMC1', 'PMC2']
        assert sum(told) == path.stat().st_size


def archives(folder: Path) -> dict[str, tuple[bytes, str]]:
    whole = packed(folder / 'made.tar', {'1.nxml': article('1'), '2.nxml': article('2')}).read_bytes()
    zipped = gzip.compress(whole)
    unnamed = bytearray(whole)
    unnamed[0:6] = b'2.nxml'  # the header's sum is another now
    other = packed(folder / 'other.tar', {'a.jpg': 'x'}).read_bytes()
    endless = packed(folder / 'long.tar', {'a' * 2**21: 'x'}).read_bytes()
    return {
        'cut.tar': (whole[:1200], 'is a cut-off tar archive'),
        'end.tar': (whole[: len(whole.rstrip(bytes(1))) // 512 * 512 + 512], 'is a cut-off tar archive'),
        'cut.tar.gz': (zipped[:-30], 'is a cut-off or damaged gzip file'),
        'sum.tar': (bytes(unnamed), 'is not a tar archive, or is damaged at entry 1'),
        'text.tar': (b'no archive at all ' * 99, 'is not a tar archive, or is damaged at entry 1'),
        'none.tar.gz': (gzip.compress(other), r'holds no \.nxml or \.xml file; take it out'),
        'long.tar': (endless, 'has a name longer than 1 MiB'),
        'empty.tar': (b'', 'is empty'),
        'minus.tar': (whole[:124] + b'-0000000001\0' + whole[136:], 'damaged at entry 1'),
    }  # fmt: skip


def test_a_damaged_archive_is_one_line_with_file_and_remedy(tmp_path):
    for name, (content, message) in archives(tmp_path).items():
        (tmp_path / name).write_bytes(content)
        with pytest.raises(BrokenFile, match=f'{name}: .*{message}') as caught:
            read(tmp_path / name)
        assert '\n' not in str(caught.value)


def test_an_article_of_any_length_does_not_fill_the_memory(tmp_path, monkeypatch):
    monkeypatch.setattr(jats, 'LONGEST_RECORD', 2**20)
    long = article('1', body='<p>' + 'word ' * 2**18 + '</p>')
    path = packed(tmp_path / 'x.tar', {'1.nxml': long, '2.nxml': article('2')})
    bad, good = read(path)
    assert (bad.note, good.id) == ('1.nxml is longer than 1 MiB', 'PMC2')
    (tmp_path / 'x.nxml').write_text(long, 'utf-8')
    with pytest.raises(BrokenFile, match=r'x\.nxml: has a line or record longer than 1 MiB'):
        read(tmp_path / 'x.nxml')


def test_articles_nested_as_deep_as_the_parser_allows(tmp_path):
    for before, after, times in (
        ('<list>', '</list>', 240),
        ('<p><list><list-item>', '</list-item></list></p>', 80),
    ):
        content = article(body=before * times + '<p>deep words</p>' + after * times)
        assert lines_of(tmp_path, content) == ['A title', 'deep words']
    (tmp_path / 'x.nxml').write_text(article(body='<sec>' * 5000 + '<p>x</p>' + '</sec>' * 5000), 'utf-8')
    assert 'depth' in read(tmp_path / 'x.nxml')[0].note


# ---- random articles: XML and its lines, made side by side

WORDS = st.lists(
    st.sampled_from(['mice', 'α', 'a&b', '<5', 'née', 'p53', '10', 'men.']), min_size=1, max_size=4
)


def escaped(text: str) -> str:
    return text.replace('&', '&amp;').replace('<', '&lt;')


@st.composite
def sentences(draw) -> tuple[str, str]:
    """Words with markup around some of them, and what is to be read."""
    xml, text = [], []
    for word in draw(WORDS):
        kind = draw(st.sampled_from(['plain', 'marked', 'cited', 'graphic', 'split']))
        text.append(word)
        xml.append(
            {
                'plain': escaped(word),
                'marked': f'<italic><bold>{escaped(word)}</bold></italic>',
                'cited': f'{escaped(word)}<sup><xref ref-type="bibr" rid="b">3</xref></sup>',
                'graphic': f'{escaped(word)}<inline-graphic/>',
                'split': f'<sc>{escaped(word[:1])}</sc>{escaped(word[1:])}',
            }[kind]
        )
    return draw(st.sampled_from([' ', '\n   ', ' \t'])).join(xml), ' '.join(text)


@st.composite
def paragraphs(draw) -> tuple[str, list[tuple[str, str]]]:
    """A paragraph, perhaps with a list or a figure in it: XML, and its lines, each with the part that it belongs to."""
    xml, text = draw(sentences())
    kind = draw(st.sampled_from(['plain', 'list', 'figure', 'formula', 'table']))
    inner, said = draw(sentences())
    more, rest = draw(sentences())
    if kind == 'list':
        items = f'<list><list-item><label>1</label><p>{inner}</p></list-item></list>'
        return f'<p>{xml}{items}{more}</p>', [
            (text, 'paragraphs'),
            (said, 'paragraphs'),
            (rest, 'paragraphs'),
        ]
    if kind == 'figure':
        figure = f'<fig><label>F</label><caption><p>{inner}</p></caption></fig>'
        return f'<p>{xml} {figure} {more}</p>', [(f'{text} {rest}', 'paragraphs'), (said, 'captions')]
    if kind == 'formula':
        return f'<p>{xml} <disp-formula>{inner}</disp-formula> {more}</p>', [(f'{text} {rest}', 'paragraphs')]
    if kind == 'table':
        table = f'<caption><title>{more}</title></caption><table><tr><td>{inner}</td></tr></table>'
        return f'<p>{xml}</p><table-wrap>{table}</table-wrap>', [(text, 'paragraphs'), (rest, 'captions')]
    return f'<p>{xml}</p>', [(text, 'paragraphs')]


@st.composite
def sections(draw, depth: int = 0) -> tuple[str, list[tuple[str, str]]]:
    title, said = draw(sentences())
    xml, lines = [f'<title>{title}</title>'], [(said, 'titles')]
    for _ in range(draw(st.integers(0, 3))):
        part, more = draw(sections(depth + 1) if depth < 2 and draw(st.booleans()) else paragraphs())
        xml.append(part)
        lines += more
    return f'<sec>{"".join(xml)}</sec>', lines


@settings(max_examples=60)
@given(st.lists(sections(), max_size=3), st.booleans(), st.booleans())
def test_fuzz_every_line_of_an_article_is_read_in_its_order(tmp_path_factory, made, captions, titles):
    path = tmp_path_factory.mktemp('fuzz') / 'x.nxml'
    path.write_text(article(body='\n'.join(xml for xml, _ in made)), 'utf-8')
    kept = {'paragraphs', *['captions'] * captions, *['titles'] * titles}
    wanted = [line for _, lines in made for line, part in lines if part in kept]
    parts = ('paragraphs', 'captions') if captions else ('paragraphs',)
    [record] = read(path, article_parts=parts, section_labels=titles)
    assert record.text == '\n'.join(wanted)
    assert record.reason == ('' if wanted else 'no_text')
