"""Sentences of running text: a library's, and the borders that it does not see in this field."""

import re

import blingfire

# Ends of sentences that the library does not see in this field, four in ten of its errors (benchmarks/sentences.py):
# before names that begin with a small letter or a digit (p53, 5-HTP), after a capital (NF-kappa B), after units.
UNSEEN_END = re.compile(
    r"""[ ](?:
    (?: (?<=[a-z]{4}[.][ ]) (?<!approx[.][ ]) (?<!subsp[.][ ]) (?<!figs[.][ ]) | (?<=[A-Za-z0-9][)][.][ ]) )
    [ ]* (?= [\[(]? (?: [a-z]{1,5}-?[A-Z0-9] | [0-9](?![0-9]*[:;]) ) )
    | (?<=[a-z]{3}[ ][A-Z][.][ ])
    (?<!\b(?:and|for|the)[ ][A-Z][.][ ]) (?<!\b(?:from|like|than|with)[ ][A-Z][.][ ])
    [ ]* (?= [A-Z][a-z] )
    | (?: (?<=[0-9][ ](?:hr|kg|mg|ml|mo|wk)[.][ ]) | (?<=/(?:hr|kg|mg|ml)[.][ ]) | (?<=[ /]min[.][ ]) )
    [ ]* (?= [A-Z][a-z] | [A-Z]+: )
    )""",
    re.VERBOSE,
)


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
    return [part for s in found for part in (UNSEEN_END.split(s) if '. ' in s else (s,))]


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
