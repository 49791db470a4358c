#!/usr/bin/env bash
# metapub 0.7.5: whether the `abstract` of a PubMedArticle holds `<` or `&lt;` depends on an italic letter, and parts of it
# may be missing.
#   - "p &lt; 0.05" in PubMed's XML is `p < 0.05` in an abstract without markup. With one italic letter anywhere in that
#     part all its signs stay as XML writes them: `p &lt; 0.05`, `AT&amp;T`. And p itself is what journals set in italics.
#     Titles have it too.
#   - Of the markup i, b, sup and em are taken away, sub and u are left in: `CO<sub>2</sub>` beside `10 cm2`.
#   - These two are in some 2,570 of 20,788 records of a file of PubMed's daily updates of 2021: one in eight.
#   - Parts are kept by their label, so of two that have the same one the last is left: of METHODS, RESULTS, METHODS,
#     RESULTS (a paper with two experiments) half of the text is gone. Of several paragraphs without a label the last is
#     left. That is rare, 8 records of the same file, and nothing tells.
#   - A paragraph without a label beside others gets one: "None: Trial registration ...", which is then a word of the text.
# One would expect the text of the record, as an element's itertext() gives it, and each part of it once. Nothing is raised,
# and the usual tests, an italic name or `<` alone, come out right. A vocabulary or word counts made of such text hold `lt`,
# `gt`, `amp` and `sub` as words. Remedy: article.xml holds the record as it came; join the itertext() of its AbstractText
# elements.
# Seen on 2026-11-29, in the newest version.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" --quiet install metapub==0.7.5
cd "$folder"
cat > try.py <<'PYTHON'
import logging
from importlib.metadata import version

logging.disable(logging.CRITICAL)
from lxml import etree
from metapub import PubMedArticle

print('metapub', version('metapub'))


def article(*parts, title='A title.'):
    """An article whose abstract has these parts, each a label (or None) and the XML of its text."""
    texts = ''.join(
        f'<AbstractText Label="{label}">{text}</AbstractText>' if label else f'<AbstractText>{text}</AbstractText>'
        for label, text in parts
    )
    return PubMedArticle(
        '<PubmedArticleSet><PubmedArticle><MedlineCitation><PMID Version="1">1</PMID><Article><Journal>'
        '<JournalIssue><PubDate><Year>2026</Year></PubDate></JournalIssue><Title>Journal</Title></Journal>'
        f'<ArticleTitle>{title}</ArticleTitle><Abstract>{texts}</Abstract></Article></MedlineCitation>'
        '</PubmedArticle></PubmedArticleSet>'
    )


def shown(*parts):
    found = article(*parts).abstract
    print(repr(found))
    return found


print('two experiments:')
twice = (
    ('METHODS', 'Mice were fed.'),
    ('RESULTS', 'They grew.'),
    ('METHODS', 'Rats were fasted.'),
    ('RESULTS', 'They did not.'),
)
found = shown(*twice)
assert found == 'METHODS: Rats were fasted.\nRESULTS: They did not.', 'all parts are kept now'

print('paragraphs without a label:')
assert shown((None, 'First paragraph.'), (None, 'Second paragraph.')) == 'None: Second paragraph.'
labelled = shown(('RESULTS', 'They grew.'), (None, 'Trial registration: 1.'), (None, 'Funding: 2.'))
assert labelled == 'RESULTS: They grew.\nNone: Funding: 2.'

print('signs, without and with one italic letter:')
assert shown((None, 'It fell (p &lt; 0.05) at AT&amp;T.')) == 'It fell (p < 0.05) at AT&T.'
assert shown((None, 'It fell (<i>p</i> &lt; 0.05) at AT&amp;T.')) == 'It fell (p &lt; 0.05) at AT&amp;T.'
assert article((None, 'x'), title='Ages &lt; 5').title == 'Ages < 5'
assert article((None, 'x'), title='<i>E. coli</i> at ages &lt; 5').title == 'E. coli at ages &lt; 5'

print('markup:')
marked = shown((None, '<i>a</i> <b>b</b> <em>c</em> 10 cm<sup>2</sup> CO<sub>2</sub> <u>d</u>'))
assert marked == 'a b c 10 cm2 CO<sub>2</sub> <u>d</u>'

print('from the record itself:')
record = article(*twice, (None, 'It fell (<i>p</i> &lt; 0.05) in CO<sub>2</sub>.')).xml
root = etree.fromstring(record) if isinstance(record, (str, bytes)) else record
whole = ' '.join(''.join(part.itertext()) for part in root.iter('AbstractText'))
print(repr(whole))
assert whole == ' '.join(text for _, text in twice) + ' It fell (p < 0.05) in CO2.'
PYTHON
env/bin/python try.py
echo 'As stated: signs are written by whether there is markup, and parts with one label are one part.'
