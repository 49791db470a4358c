#!/usr/bin/env bash
# epmc-xml 0.1.13: of the full text of an article some sections come twice, and others are lost.
#   - A section with parts and no text of its own, as methods often are, has all its text in one run ("MethodsPatientsWe
#     asked twenty patients.ExclusionPregnant women ..."), and then its parts once more.
#   - A section with text of its own has its parts, but not the parts of these: of "Results", "Harms" and "Deaths" the
#     deaths are missing. Lists are missing as well.
#   - Of two sections with the same title, as in a series of cases, the last one alone is there. A text that has no
#     sections, such as a letter, is empty.
# So words are counted twice or not at all: of the 27 words of the paragraphs here 11 come once. The README promises "a
# python object representation of the article". Nothing is raised. The parser is called here with an article of the form
# of PubMed Central, as `article(pmcid)` does with what it fetches. Seen on 2026-12-01, in the newest version.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" --quiet install epmc-xml==0.1.13 requests==2.34.2 backoff==2.2.1 ratelimit==2.2.1
"$folder/env/bin/python" - <<'PYTHON'
from importlib.metadata import version
from xml.etree import ElementTree

from epmc_xml.fetch import get_body

print('epmc-xml', version('epmc-xml'))
BODY = """
<sec><title>Methods</title>
  <sec><title>Patients</title><p>We asked twenty patients.</p>
    <sec><title>Exclusion</title><p>Pregnant women were excluded.</p></sec></sec>
  <sec><title>Drugs</title><p>Aspirin was given.</p></sec></sec>
<sec><title>Results</title><p>Nineteen lived.</p>
  <sec><title>Harms</title><p>One bled.</p><list><list-item><p>She was ninety.</p></list-item></list>
    <sec><title>Deaths</title><p>The woman died.</p></sec></sec></sec>
<sec><title>Case report</title><p>First, a man.</p></sec>
<sec><title>Case report</title><p>Second, a boy.</p></sec>"""


def read(body):
    """Sections that the package reads, and how often each paragraph of the body is in them."""
    body = ''.join(line.strip() for line in body.splitlines())
    article = ElementTree.fromstring(f'<article><front/><body>{body}</body></article>')
    sections, _ = get_body(article)
    text = '\n'.join(sections.values())
    return sections, {''.join(each.itertext()): text.count(''.join(each.itertext())) for each in article.iter('p')}


sections, counts = read(BODY)
for each in (sections, counts):
    for name, value in each.items():
        print(f'{name}: {value!r}')
assert counts == {
    'We asked twenty patients.': 2, 'Pregnant women were excluded.': 1, 'Aspirin was given.': 2, 'Nineteen lived.': 1,
    'One bled.': 1, 'She was ninety.': 0, 'The woman died.': 0, 'First, a man.': 0, 'Second, a boy.': 1,
}, 'each paragraph is there once now'
assert list(sections) == ['methods', 'results', 'case report']
assert sections['methods'].startswith('Methods\nMethodsPatientsWe asked twenty patients.ExclusionPregnant women were')
words = sum(len(text.split()) for text in counts)
once = sum(len(text.split()) for text, count in counts.items() if count == 1)
print(f'{once} of {words} words come once')
assert (once, words) == (11, 27)

letter, counts = read('<p>We read with interest that aspirin was given.</p>')
print('a letter:', letter, counts)
assert letter == {} and list(counts.values()) == [0]
PYTHON
echo 'As stated: methods come twice.'
