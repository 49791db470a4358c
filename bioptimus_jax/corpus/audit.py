"""Leak audit: which documents contain sentences of the benchmark sets, found by text and not by id.

Sentence and document are both reduced to case-folded letters and digits, so neither tokenisation nor
punctuation nor line breaks hide a match. A sentence is found if its letters stand in the document in one run.
"""

import dataclasses
import functools
import re
import unicodedata
from collections.abc import Iterator
from pathlib import Path

import ahocorasick_rs

from bioptimus_jax.corpus.readers import lines_of
from bioptimus_jax.errors import InputError
from bioptimus_jax.schema import Audit

OTHER_THAN_LETTERS = re.compile(r'[\W_]+')
ASCII_OTHER_THAN_LETTERS = bytes(i for i in range(128) if not chr(i).isalnum())
DOCUMENT_MARK = '-DOCSTART-'
BEGINNING = 24  # letters and digits


@dataclasses.dataclass(frozen=True, order=True)
class Sentence:
    """A benchmark sentence: its set, split, and its tokens joined by spaces."""

    dataset: str
    split: str
    text: str


def reduced(text: str) -> str:
    """The letters and digits of `text`, case folded, without accents and compatibility forms."""
    if text.isascii():  # a quarter of the time, the same result
        return text.lower().encode('ascii').translate(None, ASCII_OTHER_THAN_LETTERS).decode('ascii')
    text = unicodedata.normalize('NFKD', text)
    return OTHER_THAN_LETTERS.sub('', text.casefold())


def audit_files(settings: Audit) -> list[tuple[str, str, Path]]:
    """`(set, split, file)` for everything that the audit looks for; nothing without `audit.folder`.

    Raises InputError for a folder, set or split that is not there.
    """
    if not settings.folder:
        return []
    folder = Path(settings.folder).expanduser()
    if not folder.is_dir():
        raise InputError(f'{folder}: no such folder; correct --config.corpus.audit.folder, or leave it empty')
    known = sorted(p.name for p in folder.iterdir() if p.is_dir() and any(p.glob('*.tsv')))
    if not known:
        raise InputError(f'{folder}: has no NAME/SPLIT.tsv; correct --config.corpus.audit.folder')
    found = []
    for dataset in settings.datasets or known:
        if dataset not in known:
            raise InputError(
                f'{folder / dataset}: no such set; config.corpus.audit.datasets knows {", ".join(known)}'
            )
        for split in settings.splits:
            path = folder / dataset / f'{split}.tsv'
            if not path.is_file():
                raise InputError(f'{path}: no such file; add it, or correct --config.corpus.audit.splits')
            found.append((dataset, split, path))
    return found


def sentences_of(path: Path) -> Iterator[str]:
    """Sentences of a token TAB tag file, tokens joined by spaces. Raises InputError with file and line."""
    waiting: list[str] = []
    for number, line in lines_of(path):
        token, tab, _ = line.partition('\t')
        if not line.strip():
            if waiting:
                yield ' '.join(waiting)
            waiting = []
        elif not tab:
            raise InputError(f'{path}:{number}: is not `token TAB tag`; correct the line')
        elif token != DOCUMENT_MARK:
            waiting.append(token)
    if waiting:
        yield ' '.join(waiting)


class Auditor:
    """Finds benchmark sentences in reduced document texts.

    `searched` sentences are looked for; `too_short` had fewer than `audit.min_letters` letters and digits.
    """

    def __init__(self, settings: Audit):
        # BC5-chem and BC5-disease share their sentences: one pattern, several origins.
        self.origins: dict[str, set[Sentence]] = {}
        self.searched, self.too_short = 0, 0
        for dataset, split, path in audit_files(settings):
            for text in sentences_of(path):
                pattern = reduced(text)
                if len(pattern) < settings.min_letters:
                    self.too_short += 1
                    continue
                self.searched += 1
                self.origins.setdefault(pattern, set()).add(Sentence(dataset, split, text))
        # The automaton knows beginnings only, which takes a fifth of the memory; what follows is compared.
        self._patterns: dict[str, list[str]] = {}
        for pattern in self.origins:
            self._patterns.setdefault(pattern[:BEGINNING], []).append(pattern)
        self._beginnings = list(self._patterns)

    @functools.cached_property
    def _automaton(self) -> ahocorasick_rs.AhoCorasick:
        return ahocorasick_rs.AhoCorasick(self._beginnings)

    def sentences(self) -> Iterator[Sentence]:
        """Everything that is looked for."""
        return (sentence for sentences in self.origins.values() for sentence in sentences)

    def matches(self, reduced_text: str) -> list[Sentence]:
        """Every benchmark sentence in a text that `reduced` made, overlapping ones too, in sorted order."""
        if not self.origins:
            return []
        # A pattern that stands in the text twice is one match.
        found = set()
        for number, start, _ in self._automaton.find_matches_as_indexes(reduced_text, overlapping=True):
            for pattern in self._patterns[self._beginnings[number]]:
                if reduced_text.startswith(pattern, start):
                    found |= self.origins[pattern]
        return sorted(found)
