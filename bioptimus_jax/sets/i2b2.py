"""Notes of i2b2 (n2c2) 2010, 2012 and 2014 in the folders that their owner gives, unpacked side by side into one.

2010: texts beside concepts, `c="a fever" 16:2 16:3||t="problem"`, lines from 1 and tokens between blanks from 0. 2012
and 2014: XML of a text and tags with offsets in it. A line is a sentence and words end at white space, as Bio-LM and
ClinicalBERT have it; the tags of 2012 and 2014 end anywhere, so there marks at the edges of words stand alone. There is
no devel: a tenth of the notes of each folder of train (of the patients, where several notes have one) is drawn, by one
seed from sorted names. Bio-LM draws them in the order of a set, so its own are lost.
"""

import dataclasses
import functools
import html
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np

from bioptimus_jax.errors import InputError
from bioptimus_jax.sets.characters import Marked, Mention, reading
from bioptimus_jax.sets.cutting import lines, notes
from bioptimus_jax.sets.sentences import SplitReading, text_of
from bioptimus_jax.sets.standoff import OFFSET, are_offsets, mention
from bioptimus_jax.sets.tags import type_name
from bioptimus_jax.storage.files import absolute

SEED = 1
DEVEL = 10
"""Patients of whom one is in devel."""
CONCEPT = re.compile(rf'c="(.*)" ({OFFSET}):({OFFSET}) ({OFFSET}):({OFFSET})\|\|t="([^"\s]+)"')
TEXT = re.compile(r'<TEXT><!\[CDATA\[(.*)\]\]></TEXT>', re.S)
TAG = re.compile(r'\s*<(\w+) (.*?)/?>(?:</\1>)?\s*')
ATTRIBUTE = re.compile(r'(\w+)="([^"]*)"')


@dataclasses.dataclass(frozen=True)
class Notes:
    """Where the owner's folders hold notes, in `train` and `test`: folder of texts -> folder of marks, '' for XML.

    `read`: text, file of marks and the count of repairs -> text and mentions. `patient`: what of a name says whose note
    it is. `cut`: the rule of `cutting.CUTS` for words and sentences.
    """

    train: Mapping[str, str]
    test: Mapping[str, str]
    read: Callable[[Path, Path, Counter[str]], tuple[str, list[Mention]]]
    patient: re.Pattern[str] = re.compile(r'.*')
    cut: str = notes.__name__


def read_notes(folder: Path, split: str) -> SplitReading:
    """One split of a folder whose name is in LAYOUTS. Raises InputError naming file and line."""
    repairs: Counter[str] = Counter()
    layout, found = LAYOUTS[_name(folder)], []
    for texts, marks in _files(folder, split):
        text, mentions = layout.read(texts, marks, repairs)
        found.append(Marked(text, tuple(mentions), str(texts), texts.stem))
    return reading(folder, found, repairs, layout.cut)


def note_files(folder: Path, split: str) -> list[Path]:
    """The files of a split; none where a folder is not one of these, or holds none of its owner's folders."""
    return list(dict.fromkeys(file for pair in _files(folder, split) for file in pair))


def _name(folder: Path) -> str:
    return absolute(folder).name.lower().replace('_', '-')


def _files(folder: Path, split: str) -> list[tuple[Path, Path]]:
    """Text and marks of every note of a split, the same file for XML, in order of names."""
    notes = LAYOUTS.get(_name(folder))
    if not notes:
        return []
    places = notes.test if split == 'test' else notes.train
    missing = [name for names in places.items() for name in names if not (folder / name).is_dir()]
    if not any((folder / name).is_dir() for name in places):
        return []
    if missing:
        raise InputError(f'{folder}: has no folder {missing[0]}; unpack all that n2c2 gives for {split}')
    found = []
    for texts, marks in places.items():
        files = sorted((folder / texts).glob('*.txt' if marks else '*.xml'))
        for file, is_devel in _drawn(files, notes.patient):
            if split == 'test' or is_devel == (split == 'devel'):
                found.append((file, folder / marks / f'{file.stem}.con' if marks else file))
    return found


def _drawn(files: Sequence[Path], patient: re.Pattern[str]) -> list[tuple[Path, bool]]:
    """The notes of a folder patient by patient, each with whether it is devel."""
    of_patient: dict[str, list[Path]] = defaultdict(list)
    for file in files:
        match = patient.match(file.stem)
        of_patient[match[0] if match else ''].append(file)
    drawn = np.random.default_rng(SEED).permutation(list(of_patient))[: max(1, len(of_patient) // DEVEL)]
    return [(file, name in drawn) for name, of_one in of_patient.items() for file in of_one]


def _concepts(file: Path, marks: Path, repairs: Counter[str]) -> tuple[str, list[Mention]]:
    """The text of a note of 2010, and its concepts."""
    text, tokens, start = text_of(file), list[list[tuple[int, int]]](), 0
    for line in text.split('\n'):
        # A blank at the beginning of a line counts as an empty token.
        first = [(start, start)] if line[:1] == ' ' else []
        tokens.append(first + [(start + m.start(), start + m.end()) for m in re.finditer(r'\S+', line)])
        start += len(line) + 1
    found = []
    for number, line in enumerate(text_of(marks).split('\n'), 1):
        where, match = f'{marks}:{number}', CONCEPT.fullmatch(line.strip())
        if not line.strip():
            continue
        try:
            quoted, *places, name = match.groups()  # type: ignore[union-attr]
            line_1, token_1, line_2, token_2 = map(int, places)
            if not line_1 or not line_2:  # lines count from 1; Python would take the last one
                raise IndexError
            begin, end = tokens[line_1 - 1][token_1][0], tokens[line_2 - 1][token_2][1]
        except (AttributeError, IndexError) as error:
            raise InputError(
                f'{where}: expected c="..." LINE:TOKEN LINE:TOKEN||t="TYPE" within {file.name}, found {line[:60]!r}'
            ) from error
        found.append(mention(where, text, name, begin, end, quoted.lower(), text[begin:end].lower(), repairs))
    return text, found


def _tags(
    attribute: str, counted: tuple[str, ...], file: Path, _: Path, repairs: Counter[str]
) -> tuple[str, list[Mention]]:
    """The text of an XML note, and what its tags mark: the `counted` ones, or all, that say their type (`attribute`).

    Tags are read line by line: files of 2012 hold `&` in them, which no XML parser takes.
    """
    content = text_of(file).replace('\r\n', '\n')  # offsets are those of a parser of XML
    match = TEXT.search(content)
    if not match:
        raise InputError(f'{file}: has no <TEXT><![CDATA[ ... ]]></TEXT>; is it a note of i2b2?')
    text, behind = match[1], content[match.end() :]
    found = []
    for number, line in enumerate(behind.split('\n'), content.count('\n', 0, match.end()) + 1):
        tag = TAG.fullmatch(line)
        given = {name: html.unescape(value) for name, value in ATTRIBUTE.findall(tag[2])} if tag else {}
        if not tag or not given.get(attribute, '').strip() or (counted and tag[1] not in counted):
            continue
        where = f'{file}:{number}'
        if not are_offsets(given.get('start', ''), given.get('end', '')) or 'text' not in given:
            raise InputError(
                f'{where}: expected start, end and text of {tag[1]}, found {line.strip()[:60]!r}'
            )
        start, end = int(given['start']), int(given['end'])
        covered = html.unescape(text[start:end])
        if covered.split() != given['text'].split() and covered.strip() and end <= len(text):
            # Offsets decide: some notes quote other words, and Bio-LM does not compare them in the test set.
            repairs['mentions that quote other words than their text has'] += 1
            given['text'] = covered
        kind = type_name(given[attribute])
        found.append(mention(where, text, kind, start, end, given['text'], covered, repairs))
    return text, found


TRAIN_2010 = 'concept_assertion_relation_training_data'
LAYOUTS = {
    'i2b2-2010': Notes(
        {f'{TRAIN_2010}/{place}/txt': f'{TRAIN_2010}/{place}/concept' for place in ('beth', 'partners')},
        {'test_data': 'reference_standard_for_test_data/concepts'},
        _concepts,
        cut=lines.__name__,
    ),
    'i2b2-2012': Notes(
        {'2012-07-15.original-annotation.release': ''},
        {'2012-08-08.test-data.event-timex-groundtruth/xml': ''},
        functools.partial(_tags, 'type', ('EVENT',)),
    ),
    'i2b2-2014': Notes(
        {'training-PHI-Gold-Set1': '', 'training-PHI-Gold-Set2': ''},
        {'testing-PHI-Gold-fixed': ''},
        functools.partial(_tags, 'TYPE', ()),
        re.compile(r'[^-]*'),
    ),
}
