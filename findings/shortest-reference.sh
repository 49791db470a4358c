#!/usr/bin/env bash
# google-metrax 0.2.4: BLEU with several references measures brevity by the shortest reference, where the documentation
# and the definition of BLEU say the closest one. Texts that are too short are not marked down, and scores are too high.
#   - Two candidates of 12 and 7 words have two references each, of 8 and 15 and of 8 and 3 words. The closest ones have
#     23 words together, and metrax counts 11. It gives .858, and sacrebleu gives .695 for the same words.
#   - A third reference of 3 words, `no acute infection`, changes nothing in sacrebleu. metrax now counts 6 words.
#   - A candidate is the first 7 words of a reference of 12, and the other reference is `normal`. metrax gives 1.0 for
#     it, and .49 is right.
#   - With one reference to each text, or with references of one length, both libraries agree.
# Its page says that `reference_length` adds up the lengths of the references closest to each prediction, and so does
# the paper by Papineni and others. The code takes the minimum. Nothing is raised, and the number lies between 0 and 1.
# A short reference more can only raise the score. Reports and summaries with several references are hurt by it.
# Remedy: sacrebleu with `tokenize='none'`, which gives the same with one reference.
# Seen on 2026-11-30, in the newest version.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" --quiet install google-metrax==0.2.4 jax==0.10.2 sacrebleu==2.6.0
cat > "$folder/try.py" <<'PYTHON'
import math
from collections import Counter
from importlib.metadata import version

import metrax
import sacrebleu

print('google-metrax', version('google-metrax'), 'and sacrebleu', version('sacrebleu'))
CANDIDATES = ['there is no sign of an acute infection in the lungs today', 'the patient was given aspirin and sent']
REFERENCES = [
    [
        'no sign of acute infection in either lung',
        'there is no sign of an acute infection in either of the two lungs today',
        'no acute infection',
    ],
    ['the patient was given aspirin and sent home', 'aspirin was given'],
]


def by_metrax(candidates, references):
    """BLEU and the length of the references by metrax."""
    found = metrax.BLEU.from_model_output(candidates, references)
    return float(found.compute()), int(found.reference_length)


def by_sacrebleu(candidates, references):
    """The same by sacrebleu, on the same words. A text with fewer references gets its last one again."""
    most = max(map(len, references))
    streams = [[own[min(place, len(own) - 1)] for own in references] for place in range(most)]
    found = sacrebleu.corpus_bleu(candidates, streams, tokenize='none', smooth_method='none')
    return found.score / 100, found.ref_len


def by_hand(candidates, references, length):
    """BLEU of the definition, with the length of a reference chosen by `length`."""
    matched, possible, words, reference_words = [0] * 4, [0] * 4, 0, 0
    for candidate, own in zip(candidates, references):
        candidate, own = candidate.split(), [reference.split() for reference in own]
        words += len(candidate)
        reference_words += length(len(candidate), [len(reference) for reference in own])
        for order in range(1, 5):
            def grams(text):
                return Counter(zip(*(text[start:] for start in range(order))))
            most = Counter()
            for reference in own:
                most |= grams(reference)
            matched[order - 1] += (grams(candidate) & most).total()
            possible[order - 1] += grams(candidate).total()
    precision = math.exp(sum(math.log(part / whole) for part, whole in zip(matched, possible)) / 4)
    return precision * min(1, math.exp(1 - reference_words / words)), reference_words


def closest(words, lengths):
    """The length nearest to that of the candidate, and the shorter one in a tie."""
    return min(lengths, key=lambda length: (abs(length - words), length))


def shortest(words, lengths):
    """The smallest length."""
    return min(lengths)


SEEN = (0.490, 16, 0.490, 16), (0.858, 11, 0.695, 23), (0.858, 6, 0.695, 23)
for most, (seen, seen_words, right, right_words) in enumerate(SEEN, 1):
    references = [own[:most] for own in REFERENCES]
    found, other = by_metrax(CANDIDATES, references), by_sacrebleu(CANDIDATES, references)
    nearest, least = by_hand(CANDIDATES, references, closest), by_hand(CANDIDATES, references, shortest)
    print(f'up to {most}: metrax {found[0]:.3f} of {found[1]} words, sacrebleu {other[0]:.3f} of {other[1]} words')
    assert (round(found[0], 3), found[1]) == (seen, seen_words), 'another reference is taken now'
    assert (round(other[0], 3), other[1]) == (right, right_words)
    assert math.isclose(found[0], least[0], rel_tol=1e-5) and found[1] == least[1]
    assert math.isclose(other[0], nearest[0], rel_tol=1e-5) and other[1] == nearest[1]

whole = 'no acute fracture or dislocation of the left wrist is seen today'
half = ' '.join(whole.split()[:7])
found, other = by_metrax([half], [[whole, 'normal']]), by_sacrebleu([half], [[whole, 'normal']])
print(f'{half}: metrax {found[0]:.2f}, sacrebleu {other[0]:.2f}')
assert found == (1.0, 1) and round(other[0], 2) == 0.49 and other[1] == 12
PYTHON
"$folder/env/bin/python" "$folder/try.py"
echo 'As stated: brevity is measured by the shortest reference.'
