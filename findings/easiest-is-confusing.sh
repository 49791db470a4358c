#!/usr/bin/env bash
# py-readability-metrics 1.4.5: the easiest texts are labelled "very_confusing" and for college graduates, and question
# marks are hard words.
#   - A leaflet of 136 words of one syllable each, in sentences of seven or eight words, has a Flesch reading ease of
#     115 and is `very_confusing`, `college_graduate`, the labels of a score below 30. So is every text above 100.
#   - The grades of Dale and Chall have a gap: a score of 4.95 is for college graduates, one of 4.90 for grades 1 to 4
#     and one of 5.00 for grades 5 and 6.
#   - Question marks, quotation marks, brackets and "..." count as words. With 15 short questions and their answers the
#     score of Dale and Chall is 7.3 (grades 9 and 10). With full stops in place of the question marks it is 5.8 (grades
#     5 and 6), because each question mark is a word that is on no list of easy words.
# One would expect a higher reading ease to be easier, as it is by Flesch's definition (short words and sentences go
# above 100), and marks not to be words: of full stops and commas none is counted. The README offers the labels for
# interpretation. Nothing is raised, and it asks for 100 words only. Patient leaflets are written in this way, and are
# graded by such labels: the plainest fail, and questions make them worse.
# Remedy: take `score` and grade it by hand, and leave out marks other than full stops before.
# Seen on 2026-11-30, in the newest version.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" --quiet install py-readability-metrics==1.4.5 nltk==3.10.4
# An untrained model of sentences, which ends one at each full stop and question mark, as is right for these texts.
mkdir -p "$folder/data/tokenizers/punkt_tab/english"
for name in collocations.tab sent_starters.txt abbrev_types.txt ortho_context.tab; do
    touch "$folder/data/tokenizers/punkt_tab/english/$name"
done
cat > "$folder/try.py" <<'PYTHON'
import importlib.metadata
import re
import types

from readability import Readability
from readability.scorers.dale_chall import DaleChall
from readability.scorers.flesch import Flesch

print('py-readability-metrics', importlib.metadata.version('py-readability-metrics'))
LEAFLET = '''Take one pill each day. Do not skip a day. Drink a full glass when you take it. You may feel sick at first.
That will pass in a week. Do not drive if you feel faint. Call us if your face swells up. Call us if you have
a rash. Keep the pills in a cool dry place. Do not give them to a child. If you miss a day then take one the
next day. Do not take two at once. Do not stop the pills till we say so. Tell us if you have a bad heart or
lung or skin. Tell us if you are with child or plan to be. Bring the box with you each time you come. We will
test your blood once a month. Eat what you like.'''
QUESTIONS = '''Can I take it with food? Yes. Can I drive? No. Can I drink wine? No. Can I stop when I feel well? No.
What if I miss a day? Take one the next day. What if I take two? Call us. What if I feel sick? Call us. When do I come
back? In one month. Who can I ask? Ask your nurse. Where do I keep it? In a cool dry place. What do I do with
old pills? Bring them back to us. Is it safe for my child? No. Can I take it at night? Yes. Can I take it with
my heart pills? Ask us first. Do I need a blood test? Yes, once each month.'''

leaflet = Readability(LEAFLET)
words, sentences = len(re.findall(r'\w+', LEAFLET)), LEAFLET.count('.')
flesch = leaflet.flesch()
by_hand = 206.835 - 1.015 * words / sentences - 84.6
print(f'{words} words, {sentences} sentences, {flesch}, by hand {by_hand:.1f}')
assert leaflet.statistics()['avg_syllables_per_word'] == 1 and abs(flesch.score - by_hand) < 0.01 and by_hand > 114
assert (flesch.ease, flesch.grade_levels) == ('very_confusing', ['college_graduate']), 'easy is easy now'


def labels(kind, score):
    """The labels of a score, from a text whose figures give that score."""
    figures = dict(num_words=1000, num_syllables=1000, num_sentences=100, num_dale_chall_complex=0)
    if kind is Flesch:
        figures['num_sentences'] = 1.015 * 1000 / (206.835 - 84.6 - score)
    else:
        figures['num_sentences'] = 0.0496 * 1000 / score
    found = kind(types.SimpleNamespace(**figures)).score()
    assert abs(found.score - score) < 1e-9
    return found.grade_levels if kind is DaleChall else found.ease


for score in (20, 95, 99.9, 100.1, 120):
    print('reading ease', score, labels(Flesch, score))
    assert labels(Flesch, score) == ('very_easy' if 90 < score < 100 else 'very_confusing')
grades = {score: labels(DaleChall, score) for score in (4.899, 4.95, 5.001)}
print('Dale and Chall', grades)
assert list(grades.values()) == [['1', '2', '3', '4'], ['college_graduate'], ['5', '6']]

asked, told = Readability(QUESTIONS), Readability(QUESTIONS.replace('?', '.'))
for text in (asked, told):
    print(text.statistics()['num_words'], 'words,', text.dale_chall())
assert QUESTIONS.count('?') == 15 and len(re.findall(r'\w+', QUESTIONS)) == told.statistics()['num_words']
assert asked.statistics()['num_words'] == told.statistics()['num_words'] + 15, 'question marks are no words now'
assert asked.dale_chall().grade_levels == ['9', '10'] and told.dale_chall().grade_levels == ['5', '6']
marked = Readability(LEAFLET.replace('skip a day', 'skip "a" [day] ...')).statistics()['num_words'] - words
print('words that two quotation marks, two brackets and "..." add:', marked)
assert marked == 5
PYTHON
NLTK_DATA="$folder/data" "$folder/env/bin/python" "$folder/try.py"
echo 'As stated: the easiest texts are very confusing, and question marks are hard words.'
