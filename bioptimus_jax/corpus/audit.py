"""Leak audit: which documents contain sentences of the benchmark sets, found by text and not by id.

Sentence and document are both reduced to case-folded letters and digits, so neither tokenisation nor
punctuation nor line breaks hide a match. A sentence is found if its letters stand in the document in one run.
"""

import functools
import re
import unicodedata
from collections.abc import Iterator
from pathlib import Path

import ahocorasick_rs

from bioptimus_jax.corpus.config import Audit
from bioptimus_jax.errors import InputError
from bioptimus_jax.records.corpus import AuditedSentence
from bioptimus_jax.sets import inputs, labelled, published
from bioptimus_jax.sets.corpora import (
    has_a_split,
    name_of,
    read_split,
    set_at,
    set_folders,
    sets_in,
    split_files,
    texts_file,
)
from bioptimus_jax.sets.sentences import split_called
from bioptimus_jax.text.splitting import split_sentences

OTHER_THAN_LETTERS = re.compile(r'[\W_]+')
ASCII_OTHER_THAN_LETTERS = bytes(i for i in range(128) if not chr(i).isalnum())
BEGINNING = 24  # letters and digits


def reduced(text: str) -> str:
    """The letters and digits of `text`, case folded, without accents and compatibility forms."""
    if text.isascii():  # a quarter of the time, the same result
        return text.lower().encode('ascii').translate(None, ASCII_OTHER_THAN_LETTERS).decode('ascii')
    # NFKD sets accents apart as marks, which are no \w: they go with the punctuation.
    text = unicodedata.normalize('NFKD', text)
    return OTHER_THAN_LETTERS.sub('', text.casefold())


def audited_splits(settings: Audit) -> list[tuple[str, Path, str]]:
    """`(set, folder, split)` for everything that the audit looks for; nothing without `audit.folder`.

    What can be scored can be searched: the sets are found and read as stage `finetune` does it. Raises InputError for a
    folder or set that is not there, and for a folder within that nothing can be read from, unless sets are named.
    """
    if not settings.folder:
        return []
    folder = Path(settings.folder).expanduser()
    if not folder.is_dir():
        raise InputError(f'{folder}: no such folder; correct --config.corpus.audit.folder, or leave it empty')
    sets = sets_in(folder, settings.datasets, has_a_split)
    folders = [p for p in sorted(folder.iterdir()) if p.is_dir() and not p.name.startswith('.')]
    read = {place for found in set_folders(folder, has_a_split) for place in (found, found.parent)}
    for inside in folders if not settings.datasets else ():
        if inside not in read and any(p.is_file() for p in inside.rglob('*')):
            raise InputError(
                f'{inside}: holds no split in a readable form, so it cannot be searched for; remove it, or name the '
                'sets in --config.corpus.audit.datasets'
            )
    return [(s.name, s.folder, split_called(split)) for s in sets for split in settings.splits]


def audit_files(settings: Audit) -> list[Path]:
    """The files that those splits are read from. Raises InputError."""
    files = [file for _, folder, split in audited_splits(settings) for file in split_files(folder, split)]
    return list(dict.fromkeys(files))


def searched_texts(folder: Path, split: str) -> Iterator[str]:
    """What the audit looks for: the sentences of a split. Names that replace entities (`@GENE$`) cut a sentence into
    parts. One's own set is one of texts where most of its lines are. Raises InputError."""
    name = name_of(folder)
    known = set_at(folder).texts
    if not known and (published.record_of(name) or not texts_file(folder, split)):
        yield from (' '.join(sentence.words) for sentence in read_split(folder, split))
        return
    numbers = bool(known and not known.labels)
    for example in labelled.read_split(split, lambda name: split_files(folder, name)[0], known, numbers):
        for part in (part for text in example.words for part in inputs.searchable(text)):
            yield from split_sentences(part)


class Auditor:
    """Finds benchmark sentences in reduced document texts.

    `searched` sentences are looked for; `too_short` had fewer than `audit.min_letters` letters and digits.
    """

    def __init__(self, settings: Audit):
        # BC5-chem and BC5-disease share their sentences: one pattern, several origins.
        self.origins: dict[str, set[AuditedSentence]] = {}
        self.searched, self.too_short = 0, 0
        for dataset, folder, split in audited_splits(settings):
            for text in searched_texts(folder, split):
                pattern = reduced(text)
                if len(pattern) < settings.min_letters:
                    self.too_short += 1
                    continue
                self.searched += 1
                self.origins.setdefault(pattern, set()).add(AuditedSentence(dataset, split, text))
        # The automaton knows beginnings only, which takes a fifth of the memory; what follows is compared.
        self._patterns: dict[str, list[str]] = {}
        for pattern in self.origins:
            self._patterns.setdefault(pattern[:BEGINNING], []).append(pattern)
        self._beginnings = list(self._patterns)

    @functools.cached_property
    def _automaton(self) -> ahocorasick_rs.AhoCorasick:
        return ahocorasick_rs.AhoCorasick(self._beginnings)

    def sentences(self) -> Iterator[AuditedSentence]:
        """Everything that is looked for."""
        return (sentence for sentences in self.origins.values() for sentence in sentences)

    def found_in(self, text: str) -> list[AuditedSentence]:
        """Every benchmark sentence in a text, in sorted order."""
        return self.matches(reduced(text)) if self.origins else []

    def matches(self, reduced_text: str) -> list[AuditedSentence]:
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
