#!/usr/bin/env bash
# negspacy 1.1.0 (with spaCy 3.8.18): "Pneumonia was ruled out and asthma was confirmed." negates asthma as well.
# Phrases that negate what stands before them negate what stands behind them, too.
#   - The clinical list has `was ruled out`, `were ruled out`, `was not` and `were not` for findings before them, and
#     `ruled out` and `not`, which are parts of these, for findings behind them. Of phrases that overlap all count, not
#     the longest alone. So in `Pneumothorax was not seen and the effusion is large.` the effusion is negated.
#   - `free` is in the list for what stands before it: `Ascites with free fluid in the pelvis.` negates ascites, and
#     `Hepatitis C, free T4 normal.` hepatitis C.
#   - A word that ends the reach of a negation does not do so right behind a false negation: `No rash but fever
#     persists.` does not negate fever, `No rash and no change but fever persists.` does. Whatever begins at the token
#     behind `no change`, `not only` and so on is taken for a part of it.
#   - The usual order, `No evidence of pneumonia, but asthma ...`, comes out right, as does the example of the README.
# The README says that following_negations are "negation phrases that follow an entity", and that the package is "based
# on the NegEx algorithm", whose own program looks for long phrases first and for short ones in what is left. No error
# comes: a finding that a patient has is one that he has not. Remedy: take `ruled out` (and its forms with a person) and
# `free` out of the list with `termset.remove_patterns`, and look at what else is negated in sentences with `was not`.
# Seen on 2026-11-29, in the newest versions.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" --quiet install negspacy==1.1.0 spacy==3.8.18
"$folder/env/bin/python" - <<'PYTHON'
from importlib.metadata import version

import negspacy.negation  # adds the component to spaCy
import spacy
from negspacy.termsets import termset
from spacy.matcher import PhraseMatcher
from spacy.util import filter_spans

print('negspacy', version('negspacy'), 'spaCy', version('spacy'))
assert negspacy.negation.Negex
FINDINGS = 'pneumonia asthma pneumothorax effusion rash fever ascites metastases cirrhosis'.split() + ['hepatitis c']


def pipeline(**config):
    nlp = spacy.blank('en')
    nlp.add_pipe('sentencizer')
    ruler = nlp.add_pipe('entity_ruler', config={'phrase_matcher_attr': 'LOWER'})
    ruler.add_patterns([{'label': 'FINDING', 'pattern': finding} for finding in FINDINGS])
    nlp.add_pipe('negex', config=config)
    return nlp


nlp = pipeline()
lists = termset('en_clinical').get_patterns()


def longest(text):
    """NegEx by the same lists, with the longest of phrases that overlap: what is negated in one sentence."""
    doc = nlp(text)
    matcher = PhraseMatcher(nlp.vocab, attr='LOWER')
    for kind, phrases in lists.items():
        matcher.add(kind, list(nlp.tokenizer.pipe(phrases)))
    phrases = filter_spans(matcher(doc, as_spans=True))
    ends = [0, *(span.start for span in phrases if span.label_ == 'termination'), len(doc)]
    negated = []
    for finding in doc.ents:
        part = max(end for end in ends if end <= finding.start), min(end for end in ends if end > finding.start)
        near = [span for span in phrases if part[0] <= span.start < part[1]]
        if any(
            (span.label_ == 'preceding_negations' and span.start < finding.start)
            or (span.label_ == 'following_negations' and span.start >= finding.end)
            for span in near
        ):
            negated.append(finding.text)
    return negated


def negated(text, nlp=nlp):
    return [finding.text for finding in nlp(text).ents if finding._.negex]


CASES = (
    ('Pneumonia was ruled out and asthma was confirmed.', ['Pneumonia', 'asthma'], ['Pneumonia']),
    ('Pneumothorax was not seen and the effusion is large.', ['Pneumothorax', 'effusion'], ['Pneumothorax']),
    ('Metastases were not found, the cirrhosis has progressed.', ['Metastases', 'cirrhosis'], ['Metastases']),
    ('No rash and no change but fever persists.', ['rash', 'fever'], ['rash']),
)
for text, seen, right in CASES:
    found, should = negated(text), longest(text)
    print(f'{text} {found}, by the longest phrases {should}')
    assert found == seen, 'it negates other findings now'
    assert should == right

for text, seen in (
    ('Ascites with free fluid in the pelvis.', ['Ascites']),
    ('Hepatitis C, free T4 normal.', ['Hepatitis C']),
    ('No rash but fever persists.', ['rash']),
    ('No evidence of pneumonia, but asthma was confirmed.', ['pneumonia']),
):
    print(text, negated(text))
    assert negated(text) == seen

smaller = termset('en_clinical')
smaller.remove_patterns({'preceding_negations': ['ruled out'], 'following_negations': ['free']})
without = pipeline(neg_termset=smaller.get_patterns())
assert negated('Pneumonia was ruled out and asthma was confirmed.', without) == ['Pneumonia']
assert negated('Ascites with free fluid in the pelvis.', without) == []
print('right without `ruled out` before and `free` behind')
PYTHON
echo 'As stated: what was ruled out takes the next finding along.'
