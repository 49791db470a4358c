"""The section `corpus`."""

import dataclasses
from typing import Protocol

from bioptimus_jax.config.bounds import LARGEST_SEED
from bioptimus_jax.config.fields import common_key, key, section
from bioptimus_jax.hosts.config import Configuration

MOST_SHARDS = 10_000  # each is a file: 27 times those of the whole of PubMed
# The categories of MIMIC-III, where some end in a space.
NOTE_CATEGORIES = tuple(
    'Case Management, Consult, Discharge summary, ECG, Echo, General, Nursing, Nursing/other, Nutrition, Pharmacy, '
    'Physician, Radiology, Rehab Services, Respiratory, Social Work'.split(', ')
)


HELD_OUT = 20
"""Documents that are held out of few, on average."""
# Kinds of article that are no ordinary ones, and how readers are told of them.
SPECIAL_ARTICLES = {
    'retracted': 'retracted articles',
    'retraction': 'notices of a retraction',
    'concern': 'notices of a concern',
    'correction': 'notices of a correction',
}


@dataclasses.dataclass(frozen=True)
class Audit:
    """Benchmark texts, found by text and left out before anything else is made from the corpus."""

    folder: str = key('', 'folder of NER sets, in any form of finetune.folder; empty: no audit', path=True)
    datasets: tuple[str, ...] = key((), 'sets of that folder; empty: all of them')
    splits: tuple[str, ...] = key(('devel', 'test'), 'splits whose sentences are looked for')
    min_letters: int = key(40, 'sentences with fewer letters and digits are too common to tell', low=1)


@dataclasses.dataclass(frozen=True)
class Near:
    """Near duplicates, by MinHash: of two documents that share most of their word n-grams the first stays."""

    threshold: float = key(
        0.8, 'estimated Jaccard similarity that is too high; 0: none are left out', low=0, high=1
    )
    words: int = key(5, 'words of an n-gram', low=1)


@dataclasses.dataclass(frozen=True)
class Content:
    """Documents by what they say and what is known of them: left out, chosen first, read more often.

    A field is a key or column of the files, a score, `words` or `terms`; of PubMed and PMC also year, mesh, journal,
    type, keyword. A document without one that is named here is left out, and counted.
    """

    where: tuple[str, ...] = key(
        (), 'conditions, all of which must hold: year>=2015, mesh=Asthma, quality>0.5, type!=Editorial'
    )
    terms: str = key(
        '', 'file with a term a line; field terms: the share of words that stand in one', path=True
    )
    scores: tuple[str, ...] = key(
        (), 'files of JSON lines, {"id": ..., "NAME": number}: more fields of documents', path=True
    )
    prefer: str = key(
        '',
        'field by which max_words are chosen, the largest first, or -FIELD, the smallest first; empty: at random',
    )
    weight: str = key(
        '',
        'field that says how often a document is in the training split: 2.5 is twice, and once more for half',
    )


@dataclasses.dataclass(frozen=True)
class Corpus:
    """Documents: what is read, what is left out, what is held out."""

    inputs: tuple[str, ...] = common_key(
        (),
        'files or globs: .xml, .nxml, .tar, .nbib, .jsonl, .json, .txt, .tsv, .csv, .pubtator, .conll (or .gz), '
        '.parquet, .arrow; or hf://datasets/..., or the folder of a set of entities, for its train split; files of a '
        'pattern by the numbers in their names; updates of PubMed, PMC last',
        path=True,
    )
    text_fields: tuple[str, ...] = common_key(
        ('title', 'abstract'),
        '.jsonl, .json, .parquet, .arrow, tables with names: joined by line breaks, the first of several as one line',
    )
    id_field: str = key(
        'id', 'field with the document id, in the same files; empty: ids are made from the texts'
    )
    section_labels: bool = key(
        False,
        'PubMed: keep BACKGROUND, METHODS ... before their parts of an abstract; PMC: titles of sections',
    )
    script_brackets: str = key(
        'numbers',
        'PubMed, PMC: superscripts and subscripts in brackets: none (CO2, 10-3), those that would make another number '
        "(CO2, 10(-3)), as PubMed's abstracts have it, or all (CO(2), 10(-3))",
        one_of=('none', 'numbers', 'all'),
    )
    published_before: str = common_key(
        '',
        'PubMed, PMC: YYYY-MM-DD; what is not surely from before is left out: later, undated, or dated too vaguely '
        '(paper: 2023-01-01)',
    )
    leave_out: tuple[str, ...] = key(
        (),
        'PubMed, PMC: retracted articles, notices of a retraction, a concern, a correction; counted if kept, too',
        one_of=tuple(SPECIAL_ARTICLES),
    )
    article_parts: tuple[str, ...] = key(
        ('title', 'abstract', 'paragraphs'),
        'PMC: what is read of an article; the paragraphs are those of its body',
        one_of=('title', 'abstract', 'paragraphs', 'captions'),
    )
    note_categories: tuple[str, ...] = key(
        (),
        "MIMIC's NOTEEVENTS: notes of other categories are left out; empty: none are",
        one_of=NOTE_CATEGORIES,
    )
    on_bad_record: str = key(
        'skip',
        'an unreadable record, article or note is left out and listed in bad_records.jsonl, or ends the stage',
        one_of=('skip', 'fail'),
    )
    on_broken_file: str = key(
        'fail',
        'a file that is cut off or damaged ends the stage, or is listed and its good part read; unlike its .md5: none',
        one_of=('fail', 'skip'),
    )
    tsv_column: int = key(
        0,
        'column of .tsv and .csv files that holds the text, from 0; 0 where columns have names: by name or length',
        low=0,
    )
    words_per_document: int = key(
        200, '.txt, .tsv, .csv without names: paragraphs are joined up to this many words', low=1
    )
    encoding: str = key('utf-8', 'encoding of text files', one_of=('utf-8', 'latin-1'))
    min_words: int = common_key(
        5, 'shorter documents are left out; of scripts without blanks each letter is a word', low=1
    )
    max_document_words: int = key(0, 'longer documents are left out; 0: none are', low=0)
    languages: tuple[str, ...] = common_key(
        (), 'codes as en, de: documents in others are left out; empty: none'
    )
    near: Near = section(Near)
    max_words: int = common_key(
        0,
        'a choice of documents with this many words (paper: 1.8e9), at random or by content.prefer; 0: all',
        low=0,
    )
    choice_seed: int = key(0, 'seed of that choice', low=0, high=LARGEST_SEED)
    heldout_fraction: float = common_key(
        0.01, 'share of documents held out, by hash of the id', low=0, high=0.5
    )
    shards: int = key(
        0,
        'ArrayRecord shards of the training split; 0: four, or one for 100,000 documents',
        low=0,
        high=MOST_SHARDS,
    )
    audit: Audit = section(Audit)
    content: Content = section(Content)


HOLD_OUT_MORE = 'raise config.corpus.heldout_fraction, and repeat `bioptimus run` with --replace'
"""What to do where too little is held out."""


def enough_held_out(documents: float) -> float:
    """The share of so many documents to hold out: of few more than usual, for a loss that says something."""
    return min(max(HELD_OUT / max(documents, 1), Corpus.heldout_fraction), 0.5)


class HasCorpus(Configuration, Protocol):
    """What stage corpus reads of a configuration."""

    @property
    def corpus(self) -> Corpus: ...
