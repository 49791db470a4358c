#!/usr/bin/env bash
# bioconverters 4.1.1: the text of PubMed and PMC files comes without every bracket that holds signs alone, and in biomedicine
# the sign is often the whole point.
#   - `CD4(+)` and `CD4(-)` are both `CD4`, `ER(+)` and `ER(-)` tumours are both `ER`, and `Trp53(-/-)` and `Trp53(+/+)` mice
#     are both `Trp53`. MEDLINE wrote superscripts like that for many years, so titles and abstracts are full of them.
#   - `(+)-catechin` is `-catechin`. After a full stop the space goes as well: `mice. (-)-Epicatechin` is `mice.-Epicatechin`.
#   - `(***)`, `(++)` and `(+++)`, as in tables of scores, are gone.
# It is `clear_empty_brackets`, on by default, in pubmedxml2txt, pubmedxml2bioc, parse_pubmedxml and the three for PMC. The
# documentation describes it as tidying up what a removed citation or link leaves behind, and "no word characters" is its
# only hint; what it does is to remove any bracket without a letter or a digit, those of the authors included. With
# clear_empty_brackets=False all of it stays, and so do brackets that are left empty. Nothing is raised, and offsets fit the
# changed text.
#   - The same reader takes the month of "1998 Dec-1999 Jan" for January 1998, since it looks for months in the order of the year.
# Seen on 2026-11-29, in the newest version.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" --quiet install bioconverters==4.1.1 bioc==2.1
cd "$folder"
cat > try.py <<'PYTHON'
import io

from bioconverters import parse_pubmedxml, pmcxml2txt, pubmedxml2bioc, pubmedxml2txt

title = 'ER(+) and ER(-) tumours.'
abstract = (
    'CD4(+) cells rose and CD4(-) cells fell in Trp53(-/-) but not in Trp53(+/+) mice. '
    '(-)-Epicatechin and (+)-catechin acted alike (***), with Ca(2+).'
)
medline = f"""<PubmedArticleSet><PubmedArticle><MedlineCitation><PMID>1</PMID><Article>
<Journal><JournalIssue><PubDate><MedlineDate>1998 Dec-1999 Jan</MedlineDate></PubDate></JournalIssue><Title>J</Title></Journal>
<ArticleTitle>{title}</ArticleTitle><Abstract><AbstractText>{abstract}</AbstractText></Abstract>
</Article></MedlineCitation></PubmedArticle></PubmedArticleSet>"""
article = f"""<article><front><article-meta><title-group><article-title>{title}</article-title></title-group>
<abstract><p>{abstract}</p></abstract></article-meta></front><body><sec><p>{abstract}</p></sec></body></article>"""

[(meta, text)] = pubmedxml2txt(io.StringIO(medline))
print(text)
changed = (
    'CD4 cells rose and CD4 cells fell in Trp53 but not in Trp53 mice.'
    '-Epicatechin and-catechin acted alike, with Ca(2+).'
)
assert text == 'ER and ER tumours.\n\n' + changed, 'the text is another now'
[document] = pubmedxml2bioc(io.StringIO(medline))
assert [passage.text for passage in document.passages] == ['ER and ER tumours.', changed]
[(_, text)] = pmcxml2txt(io.StringIO(article))
assert text.count(changed) == 2 and text.startswith('ER and ER tumours')

[kept] = parse_pubmedxml(io.StringIO(medline), clear_empty_brackets=False)
print('with clear_empty_brackets=False:', kept.title, *kept.abstract)
assert kept.title == title and kept.abstract == [abstract]

print('1998 Dec-1999 Jan:', meta.pub_year, meta.pub_month)
assert (meta.pub_year, meta.pub_month) == (1998, 1), 'the month is another now'
PYTHON
env/bin/python try.py
echo 'As stated: signs in brackets are taken out of titles and text.'
