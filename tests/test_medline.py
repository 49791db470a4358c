"""PubMed XML and Parquet: every good record comes back exactly, everything else with a reason, whatever the bytes."""

import contextlib
import datetime
import fractions
import gzip
import hashlib
import json
import random
import re
import subprocess
import sys
import xml.etree.ElementTree
from pathlib import Path

import pyarrow
import pyarrow.parquet
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lxml import etree
from toy_articles import article, note, noted, packed

from bioptimus_jax.corpus import dates, markup, readers
from bioptimus_jax.corpus.config import Corpus
from bioptimus_jax.corpus.readers import Record
from bioptimus_jax.errors import BrokenFile, ConfigError, InputError

DATED = '<Journal><JournalIssue><PubDate><Year>1999</Year></PubDate></JournalIssue></Journal>'


def citation(
    pmid: str = '1',
    title: str = 'A title.',
    abstract: str = '<AbstractText>Some text.</AbstractText>',
    version: str = ' Version="1"',
    dates: str = DATED,
    after: str = '',
) -> str:
    article = f'{dates}<ArticleTitle>{title}</ArticleTitle><Abstract>{abstract}</Abstract>'
    return (
        f'<MedlineCitation><PMID{version}>{pmid}</PMID><Article>{article}</Article>{after}</MedlineCitation>'
    )


def wrapped(inner: str, after: str = '') -> str:
    return f'<PubmedArticle>{inner}<PubmedData>{after}</PubmedData></PubmedArticle>'


def write(path: Path, *entries: str, root: str = 'PubmedArticleSet', doctype: str = '') -> Path:
    data = f'<?xml version="1.0" encoding="utf-8"?>\n{doctype}<{root}>{"".join(entries)}</{root}>\n'.encode()
    path.write_bytes(gzip.compress(data, 1) if path.suffix == '.gz' else data)
    return path


def read(path: Path, **changes) -> list[Record]:
    return list(readers.read_file(path, 'prefix', Corpus(**changes)))


def text_of(folder: Path, **parts) -> str:
    [record] = read(write(folder / 'x.xml', wrapped(citation(**parts))))
    assert not record.reason
    return record.text


MATH = '<mml:math xmlns:mml="http://www.w3.org/1998/Math/MathML">{}</mml:math>'


@pytest.mark.parametrize(
    ('markup', 'text'),
    [
        (
            'in <i>E. coli</i>, CO<sub>2</sub> and <b>10<sup>-<u>5</u></sup></b> M',
            'in E. coli, CO2 and 10(-5) M',
        ),
        ('a &lt; b &amp;&#160;c &#x3b1;&beta;<![CDATA[<d>]]>', 'a < b & c αβ<d>'),
        ('one<!-- a comment --> two<?page 3?> three', 'one two three'),
        ('\n      printed\n\n\n      prettily\t\n   ', 'printed prettily'),
        (
            'of <DispFormula>'
            + MATH.format('\n <mml:mi>p</mml:mi>\n <mml:mo>=</mml:mo>\n')
            + '</DispFormula>and',
            'of p= and',
        ),
        (
            'at '
            + MATH.format(
                '\n  <mml:mrow>\n <mml:mi>P</mml:mi>\n\t<mml:mo>\n &lt; </mml:mo> <mml:mn>0.05</mml:mn>'
                '<mml:mtext> in all</mml:mtext></mml:mrow>\n<mml:annotation>\\LaTeX</mml:annotation>\n'
            )
            + ', so',
            'at P<0.05 in all, so',
        ),
        (MATH.format('<mml:mfrac><mml:mi>a</mml:mi><mml:mi>b</mml:mi></mml:mfrac>') + '.', 'a/b.'),
        (
            MATH.format(
                '<mml:mi>f</mml:mi><mml:mfenced><mml:mi>x</mml:mi><mml:mi>y</mml:mi></mml:mfenced><mml:mo>≥</mml:mo>'
                '<mml:msqrt><mml:mn>2</mml:mn></mml:msqrt><mml:mspace/><mml:mi>m</mml:mi>'
            ),
            'f(x,y)≥√2 m',
        ),
        (
            MATH.format(
                '<mml:mmultiscripts><mml:mi>He</mml:mi><mml:mn>2</mml:mn><mml:none/>'
                '<mml:mprescripts/><mml:none/><mml:mn>3</mml:mn></mml:mmultiscripts>'
            ),
            '3He2',
        ),
        (MATH.replace(':mml', '').replace('mml:', '').format('<mi>x</mi> <mo>=</mo> <mn>1</mn>'), 'x=1'),
    ],
)
def test_markup_is_kept_as_text_in_titles_and_abstracts(tmp_path, markup, text):
    doctype = '<!DOCTYPE PubmedArticleSet PUBLIC "-//NLM//DTD" "https://example.org/none.dtd">\n'
    entry = wrapped(citation(title=f'T {markup}', abstract=f'<AbstractText>A {markup}</AbstractText>'))
    [record] = read(write(tmp_path / 'x.xml', entry, doctype=doctype))
    assert record == Record('1', f'T {text}\nA {text}', 1)


def mathml(content: str) -> str:
    """Presentation MathML in short: `[frac [n 3] [n 4]]` is <mfrac><mn>3</mn><mn>4</mn></mfrac>."""
    opened: list[str] = []

    def tag(found: re.Match[str]) -> str:
        if found[0] == ']':
            return f'</mml:m{opened.pop()}>'
        opened.append(found[1])
        return f'<mml:m{found[1]}{found[2] or ""}>'

    return MATH.format(re.sub(r'\[(\w+)((?: \w+="[^"]*")*) ?|\]', tag, content))


FORMULAS = [
    # Numbers that would become others, and sums that would lose their brackets.
    ('[n 2][frac [n 3][n 4]]', '2 3/4'),
    ('[frac [row [i a][o -][i b]][row [i c][o +][i d]]]', '(a-b)/(c+d)'),
    ('[root [n 27][n 3]]', '³√27'),
    ('[root [row [i x][o +][n 1]][i k]]', '(k)√(x+1)'),
    ('[phantom [n 1]][n 2]', '2'),
    ('[frac [n 1][row [n 2][i a]]]', '1/(2a)'),
    ('[frac [frac [i a][i b]][i c]]', '(a/b)/c'),
    ('[frac [row [n 2][i a]][i b]][i x]', '2a/b x'),
    ('[frac [i a][i b]][fenced [row [i c][o +][i d]]]', 'a/b (c+d)'),
    ('[frac [row [o (][i a][o +][i b][o )]][row [o (][i c][o )][o +][o (][i d][o )]]]', '(a+b)/((c)+(d))'),
    ('[frac linethickness="0" [i n][i k]]', 'n k'),
    ('[sqrt [i x][o +][n 1]]', '√(x+1)'),
    ('[sqrt [n 2]][i x]', '√2x'),
    ('[n 2][o \u2062][n 3][o \u2062][i x]', '2 3x'),
    ('[i sin][o \u2061][i x][o +][i f][o \u2061][fenced [i x]]', 'sin x+f(x)'),
    ('[i a][o \u2063][i b]', 'ab'),
    # Superscripts, subscripts and limits.
    ('[sup [n 10][row [o −][n 3]]]', '10(−3)'),
    ('[sup [n 10][n 6]]', '10(6)'),
    ('[sup [i x][n 2]][o +][sub [i x][n 1]]', 'x2+x1'),
    ('[sup [i e][row [o -][i x]]]', 'e(-x)'),
    ('[sup [n 2][i n]]', '2(n)'),
    ('[sup [fenced [row [i a][o +][i b]]][n 2]]', '(a+b)(2)'),
    ('[sub [i x][row [i i][o +][n 1]]]', 'x(i+1)'),
    ('[subsup [i x][i i][n 2]]', 'xi2'),
    ('[underover [o ∑][row [i i][o =][n 1]][i n]][i x]', '∑(i=1..n)x'),
    ('[subsup [o ∫][n 0][n 1]][i x]', '∫(0..1)x'),
    ('[under [i lim][row [i x][o →][n 0]]][i y]', 'lim(x→0)y'),
    ('[over [i x][o ¯]]', 'x¯'),
    # What else there is.
    ('[fenced open="[" separators=";," [i a][i b][i c]]', '[a;b,c)'),
    ('[fenced open="|" close="|" separators="" [n 5][i x][o +][i max][i y]]', '|5x+max y|'),
    ('[action selection="2" [i a][i b]]', 'b'),
    ('[table [tr [td [i a]][td [i b]]][labeledtr [td [n 7]][td [i c]]]]', 'a b c'),
    ('[text number of cells][o /][text a-b]', 'number of cells/a-b'),
    ('[frac [text number of cells][i V]]', '(number of cells)/V'),
    # Divisions by fractions and differentials; lines of any thickness but none; powers of fractions, roots and bars.
    ('[i a][o /][frac [i b][i c]]', 'a/(b/c)'),
    ('[i a][o ÷][frac [i b][i c]]', 'a÷(b/c)'),
    ('[frac [i a][i b]][o /][i c]', 'a/b/c'),
    ('[frac [row [i d][i N]][row [i d][i t]]]', 'dN/dt'),
    ('[frac [row [sup [o ∂][n 2]][i f]][row [o ∂][sup [sub [i x][i i]][n 2]]]]', '∂2f/∂xi2'),
    ('[frac [i a][row [i b][space ]]][i x]', 'a/b x'),
    ('[frac linethickness="0.5pt" [i a][i b]]', 'a/b'),
    ('[frac linethickness="0pt" [i n][i k]]', 'n k'),
    ('[sup [frac [n 1][n 2]][n 2]]', '(1/2)(2)'),
    ('[sup [sqrt [i x]][n 2]][o −][sqrt [sup [i x][n 2]]]', '(√x)(2)−√x2'),
    ('[o |][i x][sup [o |][n 2]]', '|x|(2)'),
    ('[sup [fenced open="|" close="|" [i x]][n 2]]', '|x|(2)'),
    ('[root [i x][row ]]', '√x'),
    ('[i f][fenced ]', 'f()'),
    # What is raised: powers within powers, charges, degrees, ordinals, accents that are no powers, isotopes.
    ('[sup [i e][sup [i x][n 2]]]', 'e(x2)'),
    ('[sup [i x][sub [i n][i i]]]', 'x(ni)'),
    ('[sub [i x][sub [i i][n 1]]][o +][sub [i d][sup [i z][n 2]]]', 'xi1+dz2'),
    ('[subsup [i x][n 1][i n]]', 'x1(n)'),
    ('[sup [i Ca][row [n 2][o +]]]', 'Ca2+'),
    ('[subsup [i SO][n 4][row [n 2][o −]]]', 'SO4(2−)'),
    ('[sup [i x][row [o −][n 1]]]', 'x(−1)'),
    ('[sup [i p53][row [o −][o /][o −]]][o +][sup [i f][row [o ′][o ′]]]', 'p53−/−+f′′'),
    ('[sup [n 37][o ∘]][i C]', '37°C'),
    ('[sup [n 2][text nd]]', '2nd'),
    ('[sup [over [i p][o ^]][n 2]]', 'pˆ2'),
    ('[over [row [i a][o +][i b]][o ¯]]', '(a+b)¯'),
    ('[sup [row ][n 14]][i C]', '14C'),
    ('[multiscripts [i Ca][none ][row [n 2][o +]][prescripts ][none ][n 45]]', '45Ca2+'),
    ('[n 5][multiscripts [i C][prescripts ][none ][n 14]]', '5(14)C'),
    ('[multiscripts [i Tc][prescripts ][none ][row [n 99][i m]]]', '99mTc'),
    # Limits: infinity is one, and what is above and below an arrow is no range.
    ('[underover [o ∑][row [i i][o =][n 1]][i ∞]][i x]', '∑(i=1..∞)x'),
    ('[subsup [o ∫][row [o −][i ∞]][i ∞]][i f]', '∫(−∞..∞)f'),
    ('[i A][underover [o ⇌][sub [i k][n 2]][sub [i k][n 1]]][i B]', 'A⇌(k2, k1)B'),
    # Functions and words.
    ('[sup [i sin][n 2]][i x]', 'sin2 x'),
    ('[sub [i log][n 2]][o \u2061][i x]', 'log2 x'),
    ('[sub [i log][n 10]][fenced [i N]]', 'log10(N)'),
    ('[sub [i max][i i]][sub [i x][i i]]', 'max(i)xi'),
    ('[under [row [i arg][space ][i max]][i θ]][i L]', 'arg max(θ)L'),
    ('[n 5][o mod][n 3]', '5 mod 3'),
    ('[text number of][i x]', 'number of x'),
    ('[text p-value][i x]', 'p-value x'),
    ('[sub [i Na][n 2]][sub [i SO][n 4]]', 'Na2SO4'),
]  # fmt: skip


@pytest.mark.parametrize(('formula', 'text'), FORMULAS)
def test_a_formula_says_what_it_says_in_print(tmp_path, formula, text):
    written = mathml(formula)
    assert text_of(tmp_path, title=f'At {written}, so') == f'At {text}, so\nSome text.'


def printed(draw: random.Random, depth: int = 0) -> tuple[str, fractions.Fraction, str]:
    """A random formula: in MathML as it is printed, with its value, and `+`, `*` or a number."""
    if depth > 3 or draw.random() < 0.2:
        number = draw.randint(2, 9)
        return f'[n {number}]', fractions.Fraction(number), ''
    (one, a, _), (two, b, sign) = printed(draw, depth + 1), printed(draw, depth + 1)
    kind = draw.choice('+-*//')
    if kind == '/':
        return f'[frac [row {one}][row {two}]]', a / b if b else a, '' if b else 'undefined'
    # Fractions need no brackets in print; sums within products do, and what is subtracted.
    left, right = (f'[o (]{of}[o )]' for of in (one, two))
    if kind == '*':
        return f'{left}[o ·]{right}', a * b, '*'
    return f'{one}[o {kind}]{right if sign == "+" else two}', a + b if kind == '+' else a - b, '+'


def test_the_text_of_a_formula_has_its_value():
    """Brackets are where precedence asks for them: as arithmetic, the text of random formulas is what they are."""
    found = 0
    for seed in range(300):
        formula, value, _ = printed(random.Random(seed))
        text = markup.plain_text(etree.fromstring(f'<a>{mathml(formula)}</a>'), 'numbers')
        with contextlib.suppress(ZeroDivisionError):
            exact = re.sub(r'\d+', r'fractions.Fraction(\g<0>)', text.replace('·', '*'))
            assert eval(exact, {'fractions': fractions}) == value, text
            found += '/' in text
    assert found > 100


def test_what_is_behind_and_around_a_formula_is_read_once(tmp_path):
    semantics = MATH.format(
        '<mml:semantics><mml:mi>x</mml:mi><mml:annotation>x</mml:annotation></mml:semantics>'
    )
    assert text_of(tmp_path, title=f'At {semantics}.') == 'At x.\nSome text.'
    bare = '<math><mfrac><mi>x</mi><mi>y</mi></mfrac></math>'
    assert text_of(tmp_path, title=f'At {bare}.') == 'At x/y.\nSome text.'
    block = MATH.format('<mml:mi>x</mml:mi>').replace('<mml:math', '<mml:math display="block"')
    assert text_of(tmp_path, title=f'At{block}so') == 'At x so\nSome text.'


# What is marked up, and how it reads without brackets, with those that keep numbers apart, and with all.
BRACKETS = [
    ('10<sup>-3</sup> M', '10-3 M', '10(-3) M', '10(-3) M'),
    ('10<sup>6</sup>–10<sup>7</sup>', '106–107', '10(6)–10(7)', '10(6)–10(7)'),
    ('CO<sub>2</sub>, Ca<sup>2+</sup>', 'CO2, Ca2+', 'CO2, Ca2+', 'CO(2), Ca(2+)'),
    ('CD4<sup>+</sup>, p53<sup>−/−</sup>', 'CD4+, p53−/−', 'CD4+, p53−/−', 'CD4(+), p53−/−'),
    ('SO<sub>4</sub><sup>2-</sup>', 'SO42-', 'SO4(2-)', 'SO(4)(2-)'),
    ('5 mg L<sup>-1</sup>', '5 mg L-1', '5 mg L-1', '5 mg L(-1)'),
    ('(1 g)<sup>-1</sup>, Fe(OH)<sub>2</sub>', '(1 g)-1, Fe(OH)2', '(1 g)(-1), Fe(OH)2', '(1 g)(-1), Fe(OH)(2)'),
    ('mc<sup>2</sup>155, <sup>14</sup>C', 'mc2155, 14C', 'mc(2)155, 14C', 'mc(2)155, (14)C'),
    ('10<sup><i>-<b>5</b></i></sup>, the 2<sup>nd</sup>', '10-5, the 2nd', '10(-5), the 2nd', '10(-5), the 2(nd)'),
    ('2<sup>1</sup>/<sub>2</sub> h', '21/2 h', '2 1/2 h', '2 1/2 h'),
    ('10<sup>.5</sup> x<sub>1<sup>2</sup></sub>', '10.5 x12', '10(.5) x1(2)', '10(.5) x(1(2))'),
    ('10<sup> </sup>5 <sup/>6', '10 5 6', '10 5 6', '10 5 6'),
]  # fmt: skip


@pytest.mark.parametrize(('markup', 'none', 'numbers', 'every'), BRACKETS)
def test_superscripts_that_would_make_another_number_stand_in_brackets(
    tmp_path, markup, none, numbers, every
):
    """PubMed and articles do as `corpus.script_brackets` says; by default as most of PubMed's abstracts have it."""
    pubmed = write(tmp_path / 'x.xml', wrapped(citation(title=markup)))
    (tmp_path / 'x.nxml').write_text(article(title=markup), 'utf-8')
    assert Corpus().script_brackets == 'numbers'
    for brackets, text in (('none', none), ('numbers', numbers), ('all', every)):
        for path in (pubmed, tmp_path / 'x.nxml'):
            [record] = read(path, script_brackets=brackets)
            assert record.text.split('\n')[0] == text


@pytest.mark.parametrize(
    ('title', 'text'),
    [
        ('[A study of mice].', 'A study of mice.'),
        ('[A study of mice]', 'A study of mice'),
        ('[Of mice?]', 'Of mice?'),
        ('[Of <i>mice</i>.].', 'Of mice.'),
        ('[[14C]Glucose in mice].', '[14C]Glucose in mice.'),
        ('[14C]Glucose [in mice].', '[14C]Glucose [in mice].'),
        ('[Mice]. II. Rats.', '[Mice]. II. Rats.'),
        ('[Unclosed.', '[Unclosed.'),
        ('[Not Available].', ''),
        ('[In process citation]', ''),
        ('Not available.', ''),
        ('[].', ''),
        ('', ''),
        ("[Of mice (author's transl)].", 'Of mice.'),
        ('[Of mice (author’s transl.)]', 'Of mice'),
        ("[Of mice] (author's transl).", 'Of mice.'),
        ('[Of mice (authors transl)].', 'Of mice.'),
        ("[Of mice (Clinovir) (AUTHOR'S TRANSL].", 'Of mice (Clinovir).'),
        ("[Of mice (in vivo)((author' transl)].", 'Of mice (in vivo).'),
        ("[Of mice [author's transl]].", 'Of mice.'),
        ("[Of mice--[author's transl)].", 'Of mice.'),
        ('Of translation (of authors).', 'Of translation (of authors).'),
        ("[Of mice (in German) (authors' transl)].", 'Of mice (in German).'),
        ("[Is it of mice? (author's transl)].", 'Is it of mice?'),
        ('Of mice [proceedings].', 'Of mice.'),
        ('Of mice [letter]', 'Of mice'),
        ('[Of mice] [proceedings].', 'Of mice.'),
        ('Of a letter [to mice].', 'Of a letter [to mice].'),
        ("[The author's transl of mice].", "The author's transl of mice."),
        ('Of 5 [corrected] mice.', 'Of 5 mice.'),
    ],
)
def test_brackets_of_translated_titles_and_titles_that_are_none(tmp_path, title, text):
    expected = f'{text}\nSome text.' if text else 'Some text.'
    assert text_of(tmp_path, title=title) == expected


def test_parts_of_an_abstract_with_and_without_labels(tmp_path):
    parts = (
        '<AbstractText Label="AIM" NlmCategory="OBJECTIVE">To see.</AbstractText>\n'
        '<AbstractText Label="LEVEL OF EVIDENCE: 4"/>\n'
        '<AbstractText Label="UNLABELLED">It  was\nseen.</AbstractText>'
        '<AbstractText>Once.(ABSTRACT TRUNCATED AT 250 WORDS)</AbstractText>'
        '<CopyrightInformation>Copyright 1999.</CopyrightInformation>'
    )
    other = '<OtherAbstract Language="spa"><AbstractText>Ver.</AbstractText></OtherAbstract>'
    path = write(tmp_path / 'x.xml.gz', wrapped(citation(abstract=parts, after=other)))
    assert read(path)[0].text == 'A title.\nTo see.\nIt was seen.\nOnce.'
    assert read(path, section_labels=True)[0].text == 'A title.\nAIM: To see.\nIt was seen.\nOnce.'


@pytest.mark.parametrize(
    'mark',
    ['(ABSTRACT TRUNCATED)', '(ABSTRACT TRUNCATED AT 400 WORDS)', '( Abstract truncated at 250 words )'],
)
def test_marks_of_truncation_are_removed(tmp_path, mark):
    assert text_of(tmp_path, abstract=f'<AbstractText>Half a.{mark}</AbstractText>') == 'A title.\nHalf a.'
    only = write(tmp_path / 'y.xml', citation(abstract=f'<AbstractText>{mark}</AbstractText>'))
    assert read(only) == [Record('1', version=1, reason='no_abstract')]


def test_records_of_every_kind_in_the_order_of_the_file(tmp_path):
    book = (
        '<BookDocument><PMID>7</PMID><Book><BookTitle>A book</BookTitle></Book>{}'
        '<Abstract><AbstractText>Of it.</AbstractText></Abstract></BookDocument>'
    )
    other = '<OtherAbstract><AbstractText>Andere.</AbstractText></OtherAbstract>'
    entries = [
        wrapped(citation('0012', version='')),
        wrapped(citation('12', version=' Version="3"')),
        '<DeleteCitation><PMID Version="2">5</PMID><PMID>6</PMID></DeleteCitation>',
        wrapped(citation('13', abstract='', after=other)),
        f'<PubmedBookArticle>{book.format("")}<PubmedBookData/></PubmedBookArticle>',
        f'<PubmedBookArticle>{book.format("<ArticleTitle>A chapter</ArticleTitle>")}</PubmedBookArticle>',
    ]
    assert read(write(tmp_path / 'x.xml', *entries)) == [
        Record('12', 'A title.\nSome text.', 1),
        Record('12', 'A title.\nSome text.', 3),
        Record('5', version=2, reason='deletion'),
        Record('6', version=0, reason='deletion'),
        Record('13', version=1, reason='no_abstract'),
        Record('7', 'A book\nOf it.', 1),
        Record('7', 'A chapter\nOf it.', 1),
    ]
    bare = write(tmp_path / 'y.xml', citation('1'), citation('2'), root='MedlineCitationSet')
    assert [r.id for r in read(bare)] == ['1', '2']
    deleted = '<DeleteDocument><PMID>7</PMID></DeleteDocument>'
    books = read(write(tmp_path / 'z.xml', book.format(''), deleted, root='BookDocumentSet'))
    assert books == [Record('7', 'A book\nOf it.', 1), Record('7', reason='deletion')]
    assert read(write(tmp_path / 'none.xml')) == []


ISSUE = '<Journal><JournalIssue><PubDate>{}</PubDate></JournalIssue></Journal>'


@pytest.mark.parametrize(
    ('date', 'first', 'last'),
    [
        ('<Year>2022</Year><Month>Dec</Month><Day>31</Day>', '2022-12-31', '2022-12-31'),
        ('<Year>2022</Year><Month>09</Month><Day>5</Day>', '2022-09-05', '2022-09-05'),
        ('<Year>2022</Year><Month>February</Month>', '2022-02-01', '2022-02-28'),
        ('<Year>2022</Year>', '2022-01-01', '2022-12-31'),
        ('<Year>2022</Year><Season>Fall</Season>', '2022-09-01', '2022-12-31'),
        ('<Year>2022</Year><Season>Winter</Season>', '2022-01-01', '2022-12-31'),
        ('<Year>2022</Year><Season>Jul-Aug</Season>', '2022-07-01', '2022-08-31'),
        ('<Year>2022</Year><Month>13</Month><Day>77</Day>', '2022-01-01', '2022-12-31'),
        ('<Year>2022</Year><Month>Feb</Month><Day>31</Day>', '2022-02-01', '2022-02-28'),
        ('<Year>2022</Year><Day>31</Day>', '2022-01-01', '2022-12-31'),
        ('<MedlineDate>Dec 2022</MedlineDate>', '2022-12-01', '2022-12-31'),
        ('<MedlineDate>15 Dec 2022</MedlineDate>', '2022-12-15', '2022-12-15'),
        ('<MedlineDate>December 5, 2022</MedlineDate>', '2022-12-05', '2022-12-05'),
        ('<MedlineDate>Dec 2022-Jan 2023</MedlineDate>', '2022-12-01', '2023-01-31'),
        ('<MedlineDate>1998 Dec-1999 Jan</MedlineDate>', '1998-12-01', '1999-01-31'),
        ('<MedlineDate>2000 Dec 28-2001 Jan 3</MedlineDate>', '2000-12-28', '2001-01-03'),
        ('<MedlineDate>1999 Mar 12-18</MedlineDate>', '1999-03-12', '1999-03-18'),
        ('<MedlineDate>2019 Sep/Oct</MedlineDate>', '2019-09-01', '2019-10-31'),
        ('<MedlineDate>1999 Spring</MedlineDate>', '1999-03-01', '1999-06-30'),
        ('<MedlineDate>Winter 2000</MedlineDate>', '2000-01-01', '2000-12-31'),
        ('<MedlineDate>1999 3rd Quarter</MedlineDate>', '1999-07-01', '1999-09-30'),
        ('<MedlineDate>2000-2001</MedlineDate>', '2000-01-01', '2001-12-31'),
        ('<MedlineDate>1984-85</MedlineDate>', '1984-01-01', '1985-12-31'),
        ('<MedlineDate>1999-00</MedlineDate>', '1999-01-01', '2000-12-31'),
        ('<MedlineDate>1976-1977 Summer</MedlineDate>', '1976-01-01', '1977-09-30'),
    ],
)
def test_a_date_counts_only_where_all_that_it_can_mean_is_before_the_cut_off(tmp_path, date, first, last):
    path = write(tmp_path / 'x.xml', citation(dates=ISSUE.format(date)))
    next_day = str(datetime.date.fromisoformat(last) + datetime.timedelta(1))
    assert read(path, published_before=first) == [Record('1', version=1, reason='too_new')]
    assert [r.reason for r in read(path, published_before=next_day)] == ['']
    assert [r.reason for r in read(path)] == ['']
    if first < last:
        assert read(path, published_before=last) == [Record('1', version=1, reason='vague_date')]


@given(st.dates(datetime.date(1000, 1, 1), datetime.date(2999, 12, 31)), st.integers(0, 400))
def test_dates_written_in_any_order_mean_the_same(day, further):
    """Day, month or year first, in words or numbers, alone or as the beginning of a span."""
    end = min(day + datetime.timedelta(further), datetime.date(2999, 12, 31))
    of_day, of_end = ((d.year, d.month, d.day) for d in (day, end))
    for form in ('%Y %b %d', '%Y %B %d', '%d %b %Y', '%b %d, %Y', '%Y-%m-%d', '%Y/%m/%d'):
        said = [f'{d:%Y}'.zfill(4) for d in (day, end)]
        one, other = (d.strftime(form.replace('%Y', y)) for d, y in zip((day, end), said, strict=True))
        assert dates.span_in(one) == (of_day, of_day)
        assert dates.span_in(f'{one} - {other}') == (of_day, of_end)
    assert dates.span_in(day.strftime(f'%b {said[0]}'))[0] == (day.year, day.month, 1)


def test_the_earliest_date_decides_and_history_stands_in_for_none(tmp_path):
    late, early = '<Year>2023</Year><Month>Feb</Month>', '<Year>2022</Year><Month>12</Month>'
    electronic = f'<ArticleDate>{early}</ArticleDate>'
    history = (
        f'<History><PubMedPubDate>{late}</PubMedPubDate><PubMedPubDate>{early}</PubMedPubDate></History>'
    )
    handed_in = (
        f'<History><PubMedPubDate PubStatus="received">{early}</PubMedPubDate>'
        f'<PubMedPubDate PubStatus="entrez">{late}</PubMedPubDate></History>'
    )
    year = ISSUE.format('<Year>2022</Year>')
    in_june = '<ArticleDate><Year>2022</Year><Month>06</Month><Day>01</Day></ArticleDate>'
    broken = ISSUE.format('<Year>soon</Year>')
    book = (
        '<BookDocument><PMID>6</PMID><Book>{}</Book>{}'
        '<Abstract><AbstractText>It.</AbstractText></Abstract></BookDocument>'
    )
    entries = [
        wrapped(citation('1', dates=ISSUE.format(late) + electronic)),
        wrapped(citation('2', dates=ISSUE.format(late)), after=history),
        wrapped(citation('3', dates=broken), after=history),
        wrapped(citation('4', dates=broken)),
        citation('5', dates=''),
        book.format(f'<PubDate>{late}</PubDate>', f'<ContributionDate>{early}</ContributionDate>'),
        book.format(f'<PubDate>{late}</PubDate>', ''),
        wrapped(citation('7', dates=broken), after=handed_in),
        wrapped(citation('8', dates=year + in_june)),
    ]
    path = write(tmp_path / 'x.xml', *entries)
    # A manuscript that was received is not published; and a day within a year is better than the year.
    assert [r.reason for r in read(path, published_before='2022-06-01')][-1] == 'vague_date'
    assert [r.reason for r in read(path, published_before='2022-06-02')][-1] == ''
    reasons = ['', 'too_new', '', 'undated', 'undated', '', 'too_new', 'too_new', '']
    assert [r.reason for r in read(path, published_before='2023-01-01')] == reasons
    assert not any(r.reason for r in read(path))


def revised(year: int) -> str:
    return f'<DateRevised><Year>{year}</Year><Month>03</Month><Day>09</Day></DateRevised>'


def texts_of(*inputs: Path | str) -> list[str]:
    found = readers.read_inputs(Corpus(inputs=tuple(map(str, inputs))))
    return [document.text.split('\n')[0] for document in found]


def test_files_come_by_the_numbers_in_their_names_and_revisions_by_their_dates(tmp_path):
    """A new version in batch_10 replaces the one in batch_2, and batch_11 deletes what is in batch_3."""
    (tmp_path / '9').mkdir()
    (tmp_path / '10').mkdir()
    write(tmp_path / 'batch_2.xml', citation('1', 'Of 2021', after=revised(2021)), citation('2', 'Old'))
    write(tmp_path / 'batch_3.xml', citation('3', 'Deleted later'), citation('4', 'Stays'))
    write(tmp_path / 'batch_10.xml', citation('1', 'Of 2024', after=revised(2024)), citation('2', 'New'))
    deletion = '<DeleteCitation><PMID>3</PMID></DeleteCitation>'
    write(tmp_path / 'batch_11.xml', deletion)
    names = [path.name for path in readers.input_files(Corpus(inputs=(str(tmp_path / '*.xml'),)))]
    assert names == ['batch_2.xml', 'batch_3.xml', 'batch_10.xml', 'batch_11.xml']
    assert texts_of(tmp_path / '*.xml') == ['Stays', 'Of 2024', 'New']
    # In another order the dates decide where there are some; a deletion takes back only what came before.
    order = [tmp_path / f'batch_{number}.xml' for number in (11, 10, 2, 3)]
    assert texts_of(*order) == ['Of 2024', 'Old', 'Deleted later', 'Stays']
    # Numbers in the names of folders count, too. In a draw the last one stands.
    for folder, title in (('9', 'Before'), ('10', 'Behind')):
        write(tmp_path / folder / 'x.xml', citation('1', title, after=revised(2024)))
    assert texts_of(tmp_path / '*' / 'x.xml') == ['Behind']
    # A higher version stands whatever its date.
    write(tmp_path / 'v.xml', citation('1', 'Two', ' Version="2"', after=revised(2020)), citation('1', 'One'))
    assert texts_of(tmp_path / 'v.xml') == ['One']
    entries = [
        citation('1', 'Two', version=' Version="2"', after=revised(2020)),
        citation('1', after=revised(2024)),
    ]
    write(tmp_path / 'v.xml', *entries)
    assert texts_of(tmp_path / 'v.xml') == ['Two']


TYPES = '<PublicationTypeList><PublicationType>Journal Article</PublicationType>{}</PublicationTypeList>'
TYPE = TYPES.format('<PublicationType UI="x">{}</PublicationType>')
BOND = '<CommentsCorrectionsList><CommentsCorrections RefType="{}"/></CommentsCorrectionsList>'


@pytest.mark.parametrize(
    ('said', 'kind'),
    [
        (TYPES.format(''), ''),
        (TYPE.format('Retracted Publication'), 'retracted'),
        (TYPE.format('Retraction of Publication'), 'retraction'),
        (TYPE.format('Retraction Notice'), 'retraction'),
        (TYPE.format('Expression of Concern'), 'concern'),
        (TYPE.format('Published Erratum'), 'correction'),
        (TYPE.format('Corrected and Republished Article'), ''),
        (BOND.format('RetractionIn'), 'retracted'),
        (BOND.format('RetractedandRepublishedIn'), 'retracted'),
        (BOND.format('RetractedandRepublishedFrom'), ''),
        (BOND.format('RetractionOf'), 'retraction'),
        (BOND.format('ExpressionOfConcernFor'), 'concern'),
        (BOND.format('ExpressionOfConcernIn'), ''),
        (BOND.format('ErratumFor'), 'correction'),
        (BOND.format('ErratumIn'), ''),
        (TYPE.format('Retraction of Publication') + BOND.format('RetractionIn'), 'retracted'),
    ],
)
def test_records_that_were_retracted_and_notices_are_told_apart(tmp_path, said, kind):
    types, bonds = (
        (said[: said.find('<CommentsC')], said[said.find('<CommentsC') :])
        if 'RefType' in said
        else (said, '')
    )
    path = write(tmp_path / 'x.xml', citation(dates=DATED + types, after=bonds))
    [record] = read(path)
    assert (record.kind, record.reason, record.text) == (kind, '', 'A title.\nSome text.')
    left_out = read(path, leave_out=('retracted', 'retraction', 'concern', 'correction'))[0]
    assert (left_out.reason, left_out.text) == ((kind, '') if kind else ('', record.text))
    assert read(path, leave_out=('concern',))[0].reason == ('concern' if kind == 'concern' else '')


@pytest.mark.parametrize('value', ['2023', '2023-1-1', '2023-02-30', '01.01.2023', '2023-01-01 '])
def test_a_wrong_cut_off_date_names_its_key(tmp_path, value):
    path = write(tmp_path / 'x.xml', citation())
    for call in (readers.input_files, lambda corpus: list(readers.read_file(path, '', corpus))):
        with pytest.raises(ConfigError, match=r'config\.corpus\.published_before: .*YYYY-MM-DD'):
            call(Corpus(inputs=(str(path),), published_before=value))


BAD_RECORDS = {
    '<PubmedArticle>wrong format</PubmedArticle>': ('', 'record 2 has no citation'),
    wrapped('<MedlineCitation><Article/></MedlineCitation>'): ('', 'record 2 has no PMID'),
    wrapped(citation('')): ('', 'record 2 has no PMID'),
    wrapped(citation('PMC12')): ('', "record 2 has a PMID that is not a number ('PMC12')"),
    wrapped(citation('٣')): ('', "record 2 has a PMID that is not a number ('٣')"),
    wrapped(citation('9', version=' Version="a"')): ('', "record 2 has a Version that is not a number ('a')"),
    wrapped('<MedlineCitation><PMID>9</PMID></MedlineCitation>'): ('9', 'PMID 9 has no Article'),
    '<BookDocument><PMID>9</PMID></BookDocument>': ('9', 'PMID 9 has no Book'),
    '<DeleteCitation><PMID>x</PMID></DeleteCitation>': (
        '',
        "record 2, a deletion, has a PMID that is not a number ('x')",
    ),
}


@pytest.mark.parametrize('entry', BAD_RECORDS)
def test_a_bad_record_is_named_and_stands_in_nobodys_way(tmp_path, entry):
    path = write(tmp_path / 'x.xml', wrapped(citation('1')), entry, wrapped(citation('3')))
    first, bad, last = read(path)
    assert (first.id, last.id) == ('1', '3')
    assert (bad.reason, (bad.id, bad.note), bad.text) == ('bad_record', BAD_RECORDS[entry], '')
    with pytest.raises(InputError) as caught:
        read(path, on_bad_record='fail')
    assert str(caught.value).startswith(f'{path}: {bad.note}; ')
    assert not isinstance(caught.value, BrokenFile)


def test_md5_is_checked_where_it_lies_beside_the_file(tmp_path):
    path = write(tmp_path / 'pubmed24n0001.xml.gz', citation())
    beside = tmp_path / 'pubmed24n0001.xml.gz.md5'
    right = hashlib.md5(path.read_bytes()).hexdigest()
    wrong = right[::-1]
    differs = rf'{path.name}: its MD5 is {right}, but .*{wrong}; fetch'
    forms = ('MD5({name})= {sum}\n', '{sum}  {name}\n', '{sum}')
    for form in forms:
        beside.write_text(form.format(name=path.name, sum=right.upper()), 'ascii')
        assert len(read(path)) == 1
    for said, message in (
        *((form.format(name=path.name, sum=wrong), differs) for form in forms),
        ('<html>Not found</html>', r'\.md5: holds no MD5'),
    ):
        beside.write_text(said, 'ascii')
        with pytest.raises(BrokenFile, match=message):
            read(path)


GOOD = b'<PubmedArticleSet>' + citation('1').encode() * 300 + b'</PubmedArticleSet>'
BROKEN = {
    'cut.xml.gz': (gzip.compress(GOOD)[:-20], r'cut\.xml\.gz: is a cut-off .* of [\d,]+ bytes read\); fetch'),
    'zeros.xml.gz': (gzip.compress(GOOD)[:200] + bytes(99), r'zeros\.xml\.gz: is a cut-off or damaged gzip'),
    'not.xml.gz': (GOOD, r'not\.xml\.gz: .*gzip'),
    'cut.xml': (GOOD[:-100], r'cut\.xml: is cut off or not well-formed XML, after record 299 .*line 1'),
    'tags.xml': (b'<PubmedArticleSet><a></b></PubmedArticleSet>', r'tags\.xml: .*after record 0 .*mismatch'),
    'bytes.xml': (GOOD.replace(b'Some', b'\xff', 1), r'bytes\.xml: .*not well-formed'),
    'two.xml': (GOOD + b'and more' + GOOD, r'two\.xml: .*not well-formed XML, after record 300'),
    'open.xml': (GOOD.removesuffix(b'</PubmedArticleSet>'), r'open\.xml: .*after record 300'),
    'again.xml': (GOOD + GOOD[:-100], r'again\.xml: .*after record 300'),
    'empty.xml': (b'', r'empty\.xml: is empty'),
    'page.xml': (b'<html><PubmedArticle/></html>', r"page\.xml: is XML, but not PubMed's .*<html>"),
    'text.parquet': (b'PAR1 and no more', r'text\.parquet: is not in Parquet format'),
}


@pytest.mark.parametrize('name', BROKEN)
def test_a_broken_file_is_one_line_with_file_place_and_remedy(tmp_path, name):
    content, message = BROKEN[name]
    (tmp_path / name).write_bytes(content)
    with pytest.raises(BrokenFile, match=message) as caught:
        read(tmp_path / name)
    assert '\n' not in str(caught.value)


ANSWER = (
    '<?xml version="1.0" ?>\n<!DOCTYPE PubmedArticleSet SYSTEM "x.dtd">\n'
    '<PubmedArticleSet>{}</PubmedArticleSet>\n'
)


def test_several_answers_of_a_server_in_one_file(tmp_path):
    """Answers as `efetch ... >> all.xml` leaves them; a declaration is in each."""
    answers = [wrapped(citation(f'{i}1', 'A &alpha; title')) + citation(f'{i}2') for i in range(1, 5)]
    data = ''.join(map(ANSWER.format, answers)).encode()
    (tmp_path / 'x.xml').write_bytes(data)
    (tmp_path / 'x.xml.gz').write_bytes(gzip.compress(data))
    wanted = [f'{i}{j}' for i in range(1, 5) for j in (1, 2)]
    for name in ('x.xml', 'x.xml.gz'):
        told: list[int] = []
        found = list(readers.read_file(tmp_path / name, 'x', Corpus(on_bad_record='fail'), told.append))
        assert [r.id for r in found] == wanted
        assert {r.text for r in found[::2]} == {'A α title\nSome text.'}
        assert sum(told) == (tmp_path / name).stat().st_size


@pytest.mark.parametrize(
    'damage', ['<PMID>61</PMID', '<ArticleTitle>A <b>title</ArticleTitle>', '&unknown', '\x02', None]
)
def test_a_broken_record_takes_no_good_one_with_it(tmp_path, damage):
    records = [wrapped(citation(str(i))) for i in range(1, 121)]
    records[60] = records[60][:-20] if damage is None else records[60].replace('A title', damage)
    path = write(tmp_path / 'x.xml', *records)
    for settings_of_corpus in (Corpus(), Corpus(on_broken_file='skip')):
        found: list[Record] = []
        with pytest.raises(BrokenFile, match='after record 60 '):
            found.extend(readers.read_file(path, 'x', settings_of_corpus))
    assert [r.id for r in found if not r.reason] == [str(i) for i in range(1, 121) if i != 61]
    [bad] = [r for r in found if r.reason]
    assert bad.note.startswith('record 61 is cut off or not well-formed XML')


def test_nothing_outside_is_read_and_no_entity_explodes(tmp_path):
    secret = tmp_path / 'secret.txt'
    secret.write_text('the secret', 'utf-8')
    doctype = '<!DOCTYPE PubmedArticleSet SYSTEM "none.dtd" [{}]>'
    path = write(tmp_path / 'x.xml', citation(title='T &s; &alpha;'), doctype=doctype.format(''))
    assert read(path)[0].text == 'T &s; α\nSome text.'
    bomb = '<!ENTITY b0 "boom">' + ''.join(f'<!ENTITY b{i + 1} "{f"&b{i};" * 10}">' for i in range(12))
    of_its_own, elsewhere = r'declares entities of its own \({}\)', f'SYSTEM "{secret.as_uri()}"'
    for parts, declared, message in (
        (dict(title='T &s;'), '<!ENTITY s "mine">', of_its_own.format('s')),
        (dict(title='T &s;'), f'<!ENTITY s {elsewhere}>', of_its_own.format('s')),
        (dict(title='T &s;'), f'<!ENTITY % s {elsewhere}>', of_its_own.format('s')),
        (dict(title='T &b12;'), bomb, of_its_own.format('b0, b1, b2')),
        (
            dict(abstract='<AbstractText Label="&b12;">A</AbstractText>'),
            bomb,
            of_its_own.format('b0, b1, b2'),
        ),
        (dict(title='<i>' * 5000 + 'x' + '</i>' * 5000), '', 'depth'),
    ):
        with pytest.raises(BrokenFile, match=message):
            read(write(path, citation(**parts), doctype=doctype.format(declared)))


def test_advance_adds_up_to_the_stored_bytes(tmp_path):
    entries = [wrapped(citation(str(i))) for i in range(1000)]
    paths = [write(tmp_path / name, *entries) for name in ('a.xml', 'b.xml.gz')]
    table(tmp_path / 'c.parquet', [{'id': str(i), 'title': 'text'} for i in range(2000)])
    for path in [*paths, tmp_path / 'c.parquet']:
        told: list[int] = []
        list(readers.read_file(path, '', Corpus(), told.append))
        assert sum(told) == path.stat().st_size
        assert len(told) > 3
        assert min(told) >= 0


def test_memory_does_not_grow_with_the_file(tmp_path):
    entry = wrapped(citation(after='<MeshHeadingList>' + '<D UI="1">Mice</D>' * 200 + '</MeshHeadingList>'))
    path = write(tmp_path / 'x.xml', *[entry + '\n  '] * 5000)
    assert path.stat().st_size > 18_000_000
    code = (
        'import pathlib, re, sys\n'
        'from bioptimus_jax.corpus import readers\n'
        'from bioptimus_jax.experiment.schema import Corpus\n'
        'for n, record in enumerate(readers.read_file(pathlib.Path(sys.argv[1]), "", Corpus())):\n'
        '    if n in (500, 4999):\n'
        '        print(re.search(r"VmHWM:\\s+(\\d+)", pathlib.Path("/proc/self/status").read_text())[1])\n'
    )
    shown = subprocess.run([sys.executable, '-c', code, path], capture_output=True, text=True, check=True)
    early, late = (int(kilobytes) / 1000 for kilobytes in shown.stdout.split())
    assert late - early < 10
    assert late < 300


def table(path: Path, rows: list[dict], **types) -> Path:
    columns = pyarrow.Table.from_pylist(rows)
    for name, kind in types.items():
        columns = columns.set_column(columns.schema.get_field_index(name), name, columns[name].cast(kind))
    pyarrow.parquet.write_table(columns, path, row_group_size=700)
    return path


def test_parquet_gives_what_jsonl_gives(tmp_path):
    rows = [
        {'id': f'{i}', 'title': f' Title\t{i}', 'abstract': None if i % 3 else f'One.\n\nTwo  {i}', 'year': i}
        for i in range(1500)
    ]
    rows.append({'id': None, 'title': 'no id', 'abstract': '', 'year': 0})
    lines = tmp_path / 'x.jsonl'
    lines.write_text(''.join(json.dumps(row) + '\n' for row in rows), 'utf-8')
    expected = read(lines)
    assert expected[3].text == 'Title 3\nOne.\nTwo 3'
    assert read(table(tmp_path / 'x.parquet', rows)) == expected
    kinds = dict(title=pyarrow.large_string(), abstract=pyarrow.dictionary(pyarrow.int32(), pyarrow.string()))
    assert read(table(tmp_path / 'y.parquet', rows, id=pyarrow.int64(), **kinds)) == expected
    assert [p.name for p in readers.input_files(Corpus(inputs=(str(tmp_path / '*'),)))] == [
        'x.jsonl',
        'x.parquet',
        'y.parquet',
    ]


def test_parquet_columns_must_be_there_and_hold_text(tmp_path):
    path = table(tmp_path / 'x.parquet', [{'id': 1.5, 'title': 'text', 'abstract': b'bytes', 'name': 'n'}])
    packed = tmp_path / 'x.parquet.gz'
    packed.write_bytes(gzip.compress(path.read_bytes()))
    for changes, message in (
        (dict(inputs=(str(packed),)), 'unknown kind of file'),
        (dict(id_field='name'), r"column 'abstract' holds binary, not text; .*text_fields"),
        (dict(text_fields=('title',)), r"column 'id' holds double, not text; .*id_field"),
        (dict(text_fields=('title',), id_field='pmid'), r"x\.parquet:1: has no 'pmid'"),
        (dict(text_fields=('body',), id_field='name'), r'x\.parquet:1: has none of the text fields \(body\)'),
    ):
        with pytest.raises(InputError, match=message) as caught:
            list(readers.read_inputs(Corpus(**{'inputs': (str(path),), **changes})))
        assert not isinstance(caught.value, BrokenFile)


# What XML can hold and a reader keeps: no controls but tabs and line ends, no surrogates, no non-characters.
CHARACTERS = st.characters(
    exclude_categories=('Cs', 'Cc'), exclude_characters='\ufffe\uffff', include_characters='\t\n'
)
TEXTS = st.text(CHARACTERS, max_size=12)
MARKUP = st.recursive(
    st.tuples(st.just(''), TEXTS, st.sampled_from(['entities', 'numbers', 'cdata'])),
    lambda inner: st.tuples(st.sampled_from(['i', 'b', 'u', 'sub', 'sup']), st.lists(inner, max_size=3)),
    max_leaves=5,
)


def serialised(node: tuple) -> tuple[str, str]:
    """XML of a piece of marked-up text, and the text."""
    tag, content, *how = node
    if tag:
        parts = [serialised(child) for child in content]
        return f'<{tag}>{"".join(xml for xml, _ in parts)}</{tag}>', ''.join(text for _, text in parts)
    if how == ['numbers']:
        return ''.join(f'&#{ord(c)};' for c in content), content
    if how == ['cdata'] and ']]>' not in content:
        return f'<![CDATA[{content}]]>', content
    return content.replace('&', '&amp;').replace('<', '&lt;').replace('>', '&gt;'), content


@st.composite
def good_entries(draw) -> tuple[str, list[Record]]:
    pmid, version = draw(st.integers(1, 10**8)), draw(st.integers(1, 9))
    if draw(st.integers(0, 5)) == 0:
        return f'<DeleteCitation><PMID Version="{version}">{pmid}</PMID></DeleteCitation>', [
            Record(str(pmid), version=version, reason='deletion')
        ]
    title_xml, title = serialised(draw(MARKUP))
    parts = [(draw(TEXTS), *serialised(draw(MARKUP))) for _ in range(draw(st.integers(0, 3)))]
    # Begun with a letter: what brackets and empty parts do has tests of its own.
    abstract = ''.join(
        f'<AbstractText Label="L{serialised(("", label, "numbers"))[0]}">A{xml}</AbstractText>'
        for label, xml, _ in parts
    )
    lines = [f'T{title}', *(f'L{label} : A{text}' for label, _, text in parts)]
    text = '\n'.join(' '.join(line.split()).replace(' : A', ': A', 1) for line in lines)
    entry = citation(str(pmid), f'T{title_xml}', abstract, f' Version="{version}"')
    record = Record(str(pmid), text, version) if parts else Record(str(pmid), '', version, 'no_abstract')
    return wrapped(entry), [record]


BAD_ENTRIES = st.sampled_from(list(BAD_RECORDS)).map(lambda entry: (entry, []))
NOISE = st.sampled_from(['', '\n  ', '<!-- <PubmedArticle> -->', '<Unknown><PMID>5</PMID></Unknown>'])


@settings(max_examples=100)
@given(st.lists(st.tuples(NOISE, st.one_of(good_entries(), BAD_ENTRIES)), max_size=8), st.booleans())
def test_fuzz_every_good_record_comes_back_exactly(tmp_path_factory, entries, packed):
    path = tmp_path_factory.mktemp('fuzz') / ('x.xml.gz' if packed else 'x.xml')
    write(path, *(noise + xml for noise, (xml, _) in entries))
    found = read(path, section_labels=True, script_brackets='none')
    assert [r for r in found if r.reason != 'bad_record'] == [r for _, (_, good) in entries for r in good]
    assert len(found) == len(entries)


NAMES = 'x.xml x.xml.gz x.jsonl x.jsonl.gz x.parquet x.tar x.tar.gz x.csv'.split()


@pytest.fixture(scope='module')
def valid(tmp_path_factory) -> dict[str, tuple[bytes, list[Record]]]:
    """Valid files and their records."""
    folder = tmp_path_factory.mktemp('valid')
    rows = [{'id': str(i), 'title': f'Some text {i}'} for i in range(40)]
    entries = [wrapped(citation(str(i), title=f'Títle {i}')) for i in range(40)]
    lines = ''.join(json.dumps(row) + '\n' for row in rows).encode()
    write(folder / 'x.xml', *entries)
    write(folder / 'x.xml.gz', *entries)
    (folder / 'x.jsonl').write_bytes(lines)
    (folder / 'x.jsonl.gz').write_bytes(gzip.compress(lines))
    table(folder / 'x.parquet', rows)
    articles = {f'{i}.nxml': article(str(i), f'<p>Some téxt {i}</p>') for i in range(4)}
    packed(folder / 'x.tar', articles)
    packed(folder / 'x.tar.gz', articles)
    noted(folder / 'x.csv', [note(i, f'Some text {i}') for i in range(40)])
    return {path.name: (path.read_bytes(), read(path)) for path in folder.iterdir()}


def survivors(path: Path) -> list[Record]:
    """What is read before the end or the damage; anything but InputError is a crash."""
    found, message = [], ''
    try:
        for record in readers.read_file(path, '', Corpus()):
            found.append(record)
    except InputError as error:
        message = str(error)
    assert '\n' not in message
    return found


@settings(max_examples=200)
@given(
    st.sampled_from(NAMES),
    st.floats(0, 1, exclude_max=True),
)
def test_fuzz_a_cut_file_gives_its_good_records_or_says_so(tmp_path_factory, valid, name, share):
    whole, records = valid[name]
    path = tmp_path_factory.mktemp('cut') / name
    path.write_bytes(whole[: int(share * len(whole))])
    if name == 'x.csv' and b'\n' not in path.read_bytes():
        return  # a cut line does not name the columns of notes
    found = survivors(path)
    # A table that is cut behind a comma ends with an empty text.
    good = [record for record in found if record.reason not in ('bad_record', 'no_text')]
    assert good == records[: len(good)]
    if name == 'x.xml':
        assert len(good) == path.read_bytes().count(b'</PubmedArticle>')
    if name == 'x.jsonl':
        assert len(good) in (path.read_bytes().count(b'}'), path.read_bytes().count(b'\n'))
    elif name == 'x.csv':
        assert len(good) in (lines := path.read_bytes().count(b'\n') - 1, lines + 1)
    elif name == 'x.tar' and b'3.nxml' in path.read_bytes():
        assert len(good) in (3, 4)  # behind the last file there is nothing but zeros
    elif share < 0.99:  # only lines may be cut where a record ends
        with pytest.raises(BrokenFile):
            read(path)


@settings(max_examples=250)
@given(
    st.sampled_from(NAMES),
    st.integers(0),
    st.binary(max_size=12),
    st.integers(0, 12),
)
def test_fuzz_damaged_bytes_never_crash(tmp_path_factory, valid, name, place, junk, removed):
    whole, _ = valid[name]
    place %= len(whole)
    path = tmp_path_factory.mktemp('damage') / name
    path.write_bytes(whole[:place] + junk + whole[place + removed :])
    survivors(path)


@settings(max_examples=100)
@given(st.sampled_from([Path(name).suffixes for name in NAMES]).map(''.join), st.binary(max_size=200))
def test_fuzz_random_bytes_never_crash(tmp_path_factory, suffix, content):
    path = tmp_path_factory.mktemp('random') / f'x{suffix}'
    path.write_bytes(content)
    found = survivors(path)
    assert suffix == '.csv' or all(record.reason == 'bad_record' for record in found)  # any line is a table


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=4,
)
WRONG = st.one_of(
    JSON.filter(lambda value: not isinstance(value, dict)).map(json.dumps),
    st.text(st.characters(codec='utf-8', exclude_characters='\r\n'), min_size=1, max_size=20).map(
        lambda t: '{' + t
    ),
    JSON.filter(lambda value: value is not None and not isinstance(value, str)).map(
        lambda value: json.dumps({'id': '1', 'title': value})
    ),
    st.booleans().map(lambda value: json.dumps({'id': value, 'title': 'x'})),
)


@settings(max_examples=60)
@given(st.lists(st.one_of(WRONG, st.text(min_size=1, max_size=20)), max_size=10), st.randoms())
def test_fuzz_bad_lines_stand_in_nobodys_way(tmp_path_factory, wrong, randoms):
    path = tmp_path_factory.mktemp('lines') / 'x.jsonl'
    good = [json.dumps({'id': f'good {i}', 'title': f'text {i}'}) for i in range(5)]
    lines: list[tuple[str, bool]] = [(line, True) for line in good]
    for line in wrong:
        lines.insert(randoms.randint(0, len(lines)), (_unlike_good(line), False))
    path.write_text(''.join(line + '\n' for line, _ in lines), 'utf-8')
    found = read(path)
    assert [(r.id, r.text) for r in found if not r.reason] == [(f'good {i}', f'text {i}') for i in range(5)]
    bad = [f'line {n}: ' for n, (_, fine) in enumerate(lines, 1) if not fine]
    notes = [r.note for r in found if r.reason == 'bad_record']
    assert len(notes) == len(bad)
    assert all(note.startswith(start) for note, start in zip(notes, bad, strict=True))


def _unlike_good(line: str) -> str:
    """Text that is no JSON object by itself becomes a line that is none either."""
    try:
        if not isinstance(json.loads(line), dict) or '"id"' in line:
            return line
    except ValueError:
        pass
    return '{' + line.replace('\n', ' ').replace('\r', ' ').encode('utf-8', 'replace').decode()


FORMULAS = '(formulas)'


def oracle(path: Path) -> list[tuple[str, str]]:
    """`(PMID, letters of title and abstract)` of every citation, from the standard library's parser."""
    whole = gzip.decompress(path.read_bytes()) if path.suffix == '.gz' else path.read_bytes()
    found = []
    for entry in xml.etree.ElementTree.fromstring(whole).iter():
        if entry.tag not in ('MedlineCitation', 'BookDocument'):
            continue
        book = entry.find('Book')
        article = entry if book is not None else entry.find('Article')
        if article is None:
            continue
        titles = [article.find('ArticleTitle'), article.find('Book/BookTitle')]
        parts = [part for part in titles if part is not None][:1] + article.findall('Abstract/AbstractText')
        text = ''.join(''.join(part.itertext()) for part in parts).replace("(author's transl)", '')
        formulas = any('MathML' in child.tag for part in parts for child in part.iter())
        found.append((entry.findtext('PMID', ''), FORMULAS if formulas else letters(text)))
    return found


def letters(text: str) -> str:
    return ''.join(c for c in text if c.isalnum())


def test_every_real_file_parses(data):
    """The texts of all well-formed files are those of another parser; the malformed one is a broken file."""
    files = sorted(p for p in (data / 'pubmed-xml').rglob('*') if p.name.endswith(('.xml', '.xml.gz')))
    records = compared = 0
    for path in files:
        try:
            expected = oracle(path)
        except xml.etree.ElementTree.ParseError:
            with pytest.raises(BrokenFile):
                read(path)
            continue
        found = [r for r in read(path) if r.reason not in ('deletion', 'bad_record')]
        assert [r.id for r in found] == [pmid for pmid, _ in expected], path
        records += len(found)
        for record, (_, text) in zip(found, expected, strict=True):
            if not record.reason and text != FORMULAS:
                compared += 1
                assert letters(record.text) == text, (path, record.id)
    assert len(files) > 100
    assert records > 450
    assert compared > 400
