#!/usr/bin/env bash
# spacy-span-analyzer 0.3.0 (spaCy 3.8.18): length and distinctiveness of spans are measured without the first span of
# each label, and the end of a span is looked for one token too far to the right.
#   - A label with one span has length NaN and distinctiveness 0, which means that its words are
#     as frequent as in the text as a whole. Below `warfarin` has 3.50 by the formula. `frequency` counts it.
#   - Two spans of the label Disease, of 4 tokens and of 1: the length is 1.0, and with the documents in reverse order
#     it is 4.0. The geometric mean is 2.0. So results depend on the order of documents.
#   - For boundaries the token before a span is right. Behind the span the package takes the second token and not the
#     first. In `asthma ( severe )` it takes `severe`, and where one token is left it takes none. Five drugs that are
#     always followed by `mg` have 1.00 for the boundary where it should be 1.80, so an easy label looks hard.
#   - The reasons: a label that is met for the first time gets an empty list, and the span goes into it only in the
#     other case. The end of a span in spaCy is the first token behind it already, and one is added.
# By the README these are the measures of a paper on how hard a task of spans is, and by the docstrings they are about
# all spans of a type and about where they start and end. Nothing is raised beyond a warning on NaN. The mean that the
# command prints weighs labels by their frequency, and becomes NaN by one rare label. It hurts whoever describes a
# corpus with many rare labels, as biomedical ones are, or chooses a model by these numbers. Remedy: `spacy debug data
# --verbose` has the same measures. Seen on 2026-11-30, in the newest version.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" --quiet install spacy-span-analyzer==0.3.0 spacy==3.8.18 textacy==0.13.0
cat > "$folder/try.py" <<'PYTHON'
import math
import warnings
from collections import Counter
from importlib.metadata import version

warnings.simplefilter('ignore')
import spacy  # noqa: E402
from scipy import stats  # noqa: E402
from spacy_span_analyzer import SpanAnalyzer  # noqa: E402
from spacy_span_analyzer.analyzer import weighted_average  # noqa: E402

print('spacy-span-analyzer', version('spacy-span-analyzer'), 'spacy', version('spacy'))
nlp = spacy.blank('en')


def document(text, *mentions):
    """A document with spans, given as names and labels."""
    doc = nlp(text)
    doc.spans['sc'] = [doc.char_span(text.index(name), text.index(name) + len(name), label) for name, label in mentions]
    assert all(span is not None for span in doc.spans['sc'])
    return doc


def divergence(tokens, docs):
    """Kullback and Leibler's divergence of tokens from all tokens."""
    some, all_of_them = (Counter(str(token).lower() for token in group)
                         for group in (tokens, (token for doc in docs for token in doc)))
    return stats.entropy([some[word] for word in all_of_them], list(all_of_them.values()))


def by_hand(docs, label):
    """Length, distinctiveness of the spans, and of the tokens beside them."""
    spans = [span for doc in docs for span in doc.spans['sc'] if span.label_ == label]
    beside = [span.doc[place] for span in spans for place in (span.start - 1, span.end) if 0 <= place < len(span.doc)]
    inside = [token for span in spans for token in span]
    return stats.gmean([len(span) for span in spans]), divergence(inside, docs), divergence(beside, docs)


def by_the_package(docs, label):
    """The same by the package."""
    found = SpanAnalyzer(docs)
    return tuple(float(values['sc'][label])
                 for values in (found.length, found.span_distinctiveness, found.boundary_distinctiveness))


def shown(numbers):
    return ', '.join(f'{number:.2f}' for number in numbers)


notes = [
    document('The patient had chronic obstructive pulmonary disease and was given warfarin for two weeks .',
             ('chronic obstructive pulmonary disease', 'Disease'), ('warfarin', 'Drug')),
    document('Her sister had asthma ( severe ) and no fever at all in the last two weeks .', ('asthma', 'Disease')),
]
for label in ('Disease', 'Drug'):
    found, right = by_the_package(notes, label), by_hand(notes, label)
    print(f'{label}: length, span, boundary {shown(found)}, right {shown(right)}')
length, inside, beside = by_the_package(notes, 'Drug')
assert math.isnan(length) and inside == beside == 0, 'a single span is measured now'
right = by_hand(notes, 'Drug')
assert right[0] == 1.0 and round(right[1], 2) == 3.5
assert SpanAnalyzer(notes).frequency['sc'] == {'Disease': 2, 'Drug': 1}
assert math.isnan(weighted_average(SpanAnalyzer(notes).length, SpanAnalyzer(notes).frequency)['sc'])

lengths = [round(by_the_package(docs, 'Disease')[0], 6) for docs in (notes, notes[::-1])]
print('length of Disease by order of the documents:', lengths, 'right', by_hand(notes, 'Disease')[0])
assert lengths == [1.0, 4.0], 'the first span counts now'
assert round(by_hand(notes, 'Disease')[0], 6) == round(by_hand(notes[::-1], 'Disease')[0], 6) == 2.0
around = SpanAnalyzer(notes)._get_all_boundaries_in_key('sc')['Disease']
print('tokens around asthma:', {side: [str(token) for token in tokens] for side, tokens in around.items()})
assert [[str(token) for token in around[side]] for side in ('start', 'end')] == [['had'], ['severe']]
assert str(notes[1].spans['sc'][0].doc[notes[1].spans['sc'][0].end]) == '('

# All drugs have the same neighbours, so it is not the first span that makes the difference here.
drugs = 'warfarin', 'warfarin', 'aspirin', 'digoxin', 'metformin'
doses = [document(f'We gave the patient {drug} mg the day the patient came to us and the day we saw the patient .',
                  (drug, 'Drug')) for drug in drugs]
seen, right = by_the_package(doses, 'Drug'), by_hand(doses, 'Drug')
print(f'drugs before mg: {shown(seen)}, right {shown(right)}')
assert round(seen[2], 2) == 1.0, 'the token behind a span is right now'
assert round(right[2], 2) == 1.8
PYTHON
"$folder/env/bin/python" "$folder/try.py"
echo 'As stated: the first span of each label is not measured, and ends are one token off.'
