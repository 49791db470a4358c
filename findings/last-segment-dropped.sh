#!/usr/bin/env bash
# lexicalrichness 0.5.1: `LexicalRichness.msttr(segment_window)` leaves out the last segment, also where it is a whole
# one. Of a text of 200 words it measures 100.
#   - 200 words, of which the first 100 are five words again and again, and the last 100 are all different. With the
#     default window of 100 the mean of the two type-token ratios is 0.525, and the package gives 0.05. With the same
#     halves in the other order it gives 1.0.
#   - One more word, and it gives 0.525. So a text and the same text with one word more differ by a factor of ten.
#   - Two groups of texts by one source, one cut to 200 words each and one to 250, should have the same mean, as both
#     are measured by two segments. They do, but the first one varies by half as many segments: its standard deviation
#     is 1.4 times as large.
#   - `discard=True`, the default, deletes the last segment without a look at its length. With discard=False all is
#     right for texts of whole segments.
# The docstring speaks of a remaining segment and gives 105 words as an example, of which the last 5 are left out. With
# 100 or 200 there is no rest. It hurts whoever cuts texts to one length before comparing them, as one does with these
# measures: for 200 words half of each text is not read, for 300 words a third. `lexical_diversity` and a count by hand
# have 0.525. Nothing is raised. Remedy: set `discard` to whether the number of words leaves a rest. Seen on 2026-11-30,
# in the newest version.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" --quiet install lexicalrichness==0.5.1 lexical-diversity==0.1.1 numpy==1.26.4 'setuptools<80'
cat > "$folder/try.py" <<'PYTHON'
import warnings
from importlib.metadata import version

import numpy as np

warnings.simplefilter('ignore')
from lexical_diversity import lex_div  # noqa: E402
from lexicalrichness import LexicalRichness  # noqa: E402

print('lexicalrichness', version('lexicalrichness'))


def measured(words, discard=True, window=100):
    """The measure by the package, of words as they are."""
    return LexicalRichness(words, preprocessor=None, tokenizer=None).msttr(window, discard=discard)


def by_hand(words, window=100):
    """The mean type-token ratio of all whole segments."""
    segments = [words[start:start + window] for start in range(0, len(words) - window + 1, window)]
    return sum(len(set(segment)) / window for segment in segments) / len(segments)


poor, rich = ['the', 'patient', 'has', 'no', 'pain'] * 20, [f'word{number}' for number in range(100)]
CASES = (
    ('poor, rich', poor + rich, 0.05, 0.525),
    ('rich, poor', rich + poor, 1.0, 0.525),
    ('poor, rich, and one word', poor + rich + ['today'], 0.525, 0.525),
    ('poor, rich, poor', poor + rich + poor, 0.525, 1.1 / 3),
)
for name, words, seen, right in CASES:
    found, hand, other = measured(words), by_hand(words), lex_div.msttr(words, window_length=100)
    print(f'{name}: {len(words)} words, {found:.3f}, by hand {hand:.3f}, by lexical_diversity {other:.3f}')
    assert abs(found - seen) < 1e-9, 'a whole segment counts now'
    assert abs(hand - right) < 1e-9 and abs(other - right) < 1e-9
    # The remedy.
    assert abs(measured(words, discard=len(words) % 100 > 0) - right) < 1e-9

draw = np.random.default_rng(1)
shares = 1 / np.arange(1, 2001)
shares /= shares.sum()
texts = [[f'word{number}' for number in draw.choice(2000, 250, p=shares)] for _ in range(1000)]
short, whole = ([measured(text[:words]) for text in texts] for words in (200, 250))
print(f'texts of 200 words: {np.mean(short):.3f} +- {np.std(short):.4f},'
      f' of 250: {np.mean(whole):.3f} +- {np.std(whole):.4f}')
assert abs(np.mean(short) - np.mean(whole)) < 0.005
assert 1.3 < np.std(short) / np.std(whole) < 1.5
assert np.allclose([by_hand(text[:200]) for text in texts], whole)
PYTHON
"$folder/env/bin/python" "$folder/try.py"
echo 'As stated: the last segment is left out, whole or not.'
