#!/usr/bin/env bash
# pymed 0.8.9 (articles of PubMed): `pubmed_id` and `doi` of an article are those of the article and of all its
# references, in one text. Titles and abstracts end at the first italic letter, and methods are found in nobody.
#   - Of an article with two references, `pubmed_id` is "30049270\n29474932\n10888883", and `doi` three lines, too. So
#     two articles do not match by their number, if one of them is written with its references.
#   - "Loss of <i>BRCA1</i> in ovarian cancer" becomes "Loss of", and "p &lt; 10<sup>-8</sup> for all" "p < 10".
#   - `methods` and `conclusions` are None for an abstract with the labels METHODS and CONCLUSIONS, which are those that
#     PubMed uses most. They look for METHOD and CONCLUSION. `results` is found.
#   - pymed-iplweb 0.8.11, which goes on with pymed, takes the identifiers of the article alone. The other two are there.
# The reasons: the path `.//ArticleId` finds those of references, too; and of an element only what stands before its
# first child is read. Nothing is raised.
# Remedy: read `article.xml`, which is the element. Seen on 2026-12-01, in the newest versions.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" --quiet install requests==2.34.2
cat > "$folder/article.py" <<'PYTHON'
import sys
from xml.etree import ElementTree

from pymed.article import PubMedArticle

IDENTIFIERS = '<ArticleId IdType="pubmed">{}</ArticleId><ArticleId IdType="doi">10.1/{}</ArticleId>'
REFERENCE = '<Reference><Citation>Lancet. 2018</Citation><ArticleIdList>' + IDENTIFIERS + '</ArticleIdList></Reference>'
RECORD = """<PubmedArticle><MedlineCitation><PMID>30049270</PMID><Article>
<Journal><Title>Journal of Ovaries</Title></Journal>
<ArticleTitle>Loss of <i>BRCA1</i> in ovarian cancer</ArticleTitle>
<Abstract><AbstractText Label="METHODS">We looked at 20 patients.</AbstractText>
<AbstractText Label="RESULTS">p &lt; 10<sup>-8</sup> for all.</AbstractText>
<AbstractText Label="CONCLUSIONS">It is lost.</AbstractText></Abstract>
</Article></MedlineCitation><PubmedData>
<History><PubMedPubDate PubStatus="pubmed"><Year>2018</Year></PubMedPubDate></History>
<ArticleIdList>""" + IDENTIFIERS.format(30049270, 30049270) + '</ArticleIdList><ReferenceList>' + ''.join(
    REFERENCE.format(number, number) for number in (29474932, 10888883)
) + '</ReferenceList></PubmedData></PubmedArticle>'
article = PubMedArticle(xml_element=ElementTree.fromstring(RECORD))
NAMES = ('pubmed_id', 'doi', 'title', 'abstract', 'methods', 'results', 'conclusions')
print({name: getattr(article, name) for name in NAMES})
if sys.argv[1] == 'pymed':
    assert article.pubmed_id == '30049270\n29474932\n10888883', 'references lend nothing now'
    assert article.doi == '10.1/30049270\n10.1/29474932\n10.1/10888883'
else:
    assert article.pubmed_id == 30049270 and article.doi == '10.1/30049270'
assert article.title == 'Loss of ', 'titles are whole now'
assert article.results == 'p < 10' and article.abstract == 'We looked at 20 patients.\np < 10\nIt is lost.'
assert article.methods is None and article.conclusions is None, 'METHODS and CONCLUSIONS are found now'
PYTHON
for package in pymed==0.8.9 pymed-iplweb==0.8.11; do
    "$folder/env/bin/pip" --quiet install --no-deps --target "$folder/$package" "$package"
    echo "$package"
    PYTHONPATH="$folder/$package" "$folder/env/bin/python" -W ignore "$folder/article.py" "${package%%=*}"
done
echo 'As stated: references lend their identifiers, and titles end at italics.'
