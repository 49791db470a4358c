"""Sentences of running text: a library's, and the borders that it does not see in this field."""

import re

import blingfire

# Ends of sentences that the library does not see in this field, four in ten of its errors (benchmarks/sentences.py):
# before names that begin with a small letter or a digit (p53, 5-HTP), after a capital (NF-kappa B), after units.
# What follows is no name if it is a unit (kg-1), no number if it is the place of a citation (63:3040, 1990).
UNSEEN_END = re.compile(
    r"""[ ](?:
    (?: (?<=[a-z]{4}[.][ ]) | (?<=[A-Za-z0-9%][)][.][ ]) )
    [ ]* (?= [\[(]? (?:
        (?! (?:[ghls]|kg|m[gl]?|min)-[0-9] | [dm]L\b ) [a-z]{1,5}-?[A-Z0-9]
        | [0-9] (?! [0-9]*[:;] | [0-9]{3}[.](?:[ ]|$) )
    ) )
    | (?<=[a-z]{3}[ ][A-Z][.][ ])
    (?<!\b(?:and|for|the)[ ][A-Z][.][ ]) (?<!\b(?:from|like|than|with)[ ][A-Z][.][ ])
    [ ]* (?= [A-Z][a-z] )
    | (?: (?<=[0-9][ ](?:cm|hr|kg|mg|ml|mm|mo|wk|yr)[.][ ]) | (?<=/(?:hr|kg|mg|ml)[.][ ]) | (?<=[ /]min[.][ ]) )
    [ ]* (?= (?!Hg)[A-Z][a-z] | [A-Z]+: )
    )""",
    re.VERBOSE,
)

# What stands before such a place if no sentence ends there: words that are shortened before numbers, names of journals
# (J. Physiol. 208) and of people (D. T. Brown. 1991, Henry S. Kaplan). Shorter words (no., vol., fig.) are not needed:
# after fewer than four small letters nothing is cut above, and the library leaves them whole.
ABBREVIATED = re.compile(
    r"""(?:
    (?<![A-Za-z]) (?i:
        appr(?:ox)? | assoc | atcc | calcd? | chaps? | concn?s? | diam | eqns | equiv | excl | expts? | figs | ident
        | incl | lett | para | prep | prev | refs | resp | sects? | sens | soln | subj | subsp | suppl? | susp | tabl
        | tabs | temps? | vers | vols
    )
    | [.][ ] [A-Z][a-z]+
    | (?<![A-Za-z0-9-]) (?! (?:Arm|Class|Grade|Groups?|Hepatitis|Phase|Stage|Type|Vitamin)[ ] ) [A-Z][a-z]+ [ ] [A-Z]
    ) [.]$""",
    re.VERBOSE,
)
LONGEST_ABBREVIATED = 40  # characters: what bounds the time for long lines


def split_sentences(text: str) -> list[str]:
    """The sentences of a document, each exactly as it stands there; a line break always ends one (titles)."""
    sentences: list[str] = []
    for line in text.replace('\0', ' ').split('\n'):
        if line.strip():
            sentences.extend(_split_line(line))
    return sentences


def _split_line(line: str) -> list[str]:
    found = _found_by_library(line)
    if '. ' not in line:
        return found
    return [part for s in found for part in (_cut(s) if '. ' in s else (s,))]


def _cut(sentence: str) -> list[str]:
    parts, start = [], 0
    for end in UNSEEN_END.finditer(sentence):
        stop = end.start()
        if not ABBREVIATED.search(sentence, max(start, stop - LONGEST_ABBREVIATED), stop):
            parts.append(sentence[start:stop])
            start = end.end()
    return [*parts, sentence[start:]]


def _found_by_library(line: str) -> list[str]:
    found = blingfire.text_to_sentences(line).split('\n')
    position = 0
    for sentence in found:
        position = line.find(sentence, position)
        if position < 0 or not sentence:
            # The library changed characters: cut the original by its offsets, slower.
            _, spans = blingfire.text_to_sentences_and_offsets(line)
            return [s for s in (line[a:b].strip() for a, b in spans) if s] or [line.strip()]
        position += len(sentence)
    return found
