"""Sets of texts: one text or two with labels or a number, and the records of those of BLURB.

The public files are those of BLURB's own scripts (Gu et al. 2021, section 4): entities of relations are written as
`@GENE$`, `@DRUG$` and so on. `labelled` reads them.
"""

import dataclasses
import re
from collections.abc import Iterable, Mapping

from bioptimus_jax.config.plugins import Table
from bioptimus_jax.sets.inputs import INPUTS

CLASSES, SIMILARITY = 'classes', 'similarity'
FOLD = '-fold'
"""The part of the name of a set with folds that stands before the number of one that is not the public set's."""
VARIANT = re.compile(f'({"|".join(filter(None, (one.ending for one in INPUTS.values())))}|{FOLD}[0-9]+)$')
WHOLE = re.compile(r'-?\d{1,9}')
DESCRIBED, FOUND = 'set.json', 'found in its files'
"""Sources of the record of one's own set: a file beside the others, or these, which say that texts have several labels.
"""


@dataclasses.dataclass(frozen=True)
class Text:
    """One text or two, with labels or one number; `document` counts from 0 (all 0 where there are none).

    `parts`: where its texts are sentences that are classified one by one, the labels of each. `line` of its file where
    it begins; `name`: what the file calls it, '' where it has no names.
    """

    words: tuple[str, ...]
    answers: tuple[str | float, ...]
    document: int = 0
    parts: tuple[tuple[str | float, ...], ...] = ()
    line: int = dataclasses.field(default=0, compare=False)
    name: str = dataclasses.field(default='', compare=False)


@dataclasses.dataclass(frozen=True)
class Texts:
    """The three splits of one set; `labels` in the order of its record, or sorted, none where answers are numbers.

    `notes`: how the files of one's own set were read, in words.
    """

    name: str
    train: tuple[Text, ...]
    devel: tuple[Text, ...]
    test: tuple[Text, ...]
    labels: tuple[str, ...]
    notes: tuple[str, ...] = dataclasses.field(default=(), compare=False)


@dataclasses.dataclass(frozen=True)
class Layout:
    """What the columns of a line hold, counted from 0: texts, answer, and the name of the example, if it has one.

    `header`: the first line is none. `document`: what of a name says which document an example is from. `question`:
    the first text is never cut. `joined`: lines of one document are one example, their labels united (HoC); `apart`:
    but each of them is read and classified alone. `keys`: a line is a record with names (JSON, CSV, a table), and these
    are its columns.
    """

    texts: tuple[int, ...]
    answer: int
    name: int | None = None
    header: bool = False
    document: str = ''
    question: bool = False
    joined: bool = False
    apart: bool = False
    keys: tuple[str, ...] = ()

    @property
    def columns(self) -> int:
        return 1 + max(self.answer, self.name or 0, *self.texts)


@dataclasses.dataclass(frozen=True)
class Published:
    """A public set: examples in train, devel, test as its files have them, where they come from, who may use them.

    `labels`: all that there are; F1 leaves `uncounted` ones out, as "no relation". `measures`: names of
    `finetuning.texts.measures`, the first decides. `several`: an example may have any number of labels. `spelled`: what
    an answer column says -> the label. An example count of 0 is not published; `positives`: examples with a label that
    F1 counts. `corpus`: of sets from one corpus their scores compare only where `source` is the same. `files`: names of
    files that others do not have, `{}` for the split. `held_out`: so many examples at the end of train's file are devel
    (too); `train`: the layout of that file, where it is another. `first`: of folds, the one that chooses settings for
    all of them. `unclear`: texts of train, devel, test that stand there with other labels too.
    """

    name: str
    task: str
    layout: Layout
    examples: tuple[int, int, int]
    measures: tuple[str, ...]
    source: str
    licence: str
    labels: tuple[str, ...] = ()
    uncounted: tuple[str, ...] = ()
    several: bool = False
    spelled: Mapping[str, str] = dataclasses.field(default_factory=dict)
    positives: tuple[int, int, int] = (0, 0, 0)
    corpus: str = ''
    files: str = ''
    held_out: int = 0
    train: Layout | None = None
    first: str = ''
    unclear: tuple[int, int, int] = (0, 0, 0)

    @property
    def own(self) -> bool:
        """Whether it is no public set."""
        return self.source in (DESCRIBED, FOUND)

    @property
    def counted(self) -> tuple[str, ...]:
        """Labels that F1 counts."""
        return tuple(label for label in self.labels if label not in self.uncounted)


F1 = ('micro_f1', 'macro_f1')
NAMED = Layout((1,), 2, name=0)
QUESTION = Layout((1, 2), 3, name=0, question=True)
HALLMARKS = (
    'activating invasion and metastasis',
    'avoiding immune destruction',
    'cellular energetics',
    'enabling replicative immortality',
    'evading growth suppressors',
    'genomic instability and mutation',
    'inducing angiogenesis',
    'resisting cell death',
    'sustaining proliferative signaling',
    'tumor promoting inflammation',
)
SPELLED = {f'{at}_1': name for at, name in enumerate(HALLMARKS)} | {
    f'{at}_0': '' for at in range(len(HALLMARKS))
}
RELATIONS = ('false', 'CPR:3', 'CPR:4', 'CPR:5', 'CPR:6', 'CPR:9')
INTERACTIONS = ('DDI-false', 'DDI-advise', 'DDI-effect', 'DDI-int', 'DDI-mechanism')
RECORDS = (
    Published(
        'chemprot',
        CLASSES,
        dataclasses.replace(NAMED, document=r'[^.]+'),
        (18035, 11268, 15745),
        F1,
        'BioCreative VI',
        'public domain mark; registration',
        RELATIONS,
        ('false',),
        corpus='ChemProt',
    ),
    Published(
        'ddi',
        CLASSES,
        dataclasses.replace(NAMED, document=r'[^.]+\.d\d+'),
        (25296, 2496, 5716),
        F1,
        'DDI Extraction 2013',
        'CC BY-NC 4.0',
        INTERACTIONS,
        ('DDI-false',),
        corpus='DDI',
        unclear=(18, 0, 1),
    ),
    Published(
        'gad',
        CLASSES,
        dataclasses.replace(NAMED, header=True),
        (4261, 535, 534),
        ('micro_f1', 'accuracy'),
        "fold 1 of BioBERT's ten",
        'CC BY 4.0',
        ('0', '1'),
        ('0',),
        corpus='GAD',
    ),
    Published(
        'hoc',
        CLASSES,
        Layout((1,), 0, name=2, header=True, document=r'[^_]+', joined=True),
        (1295, 186, 371),
        (*F1, 'example_f1'),
        'Hallmarks of Cancer',
        'GPL-3.0',
        HALLMARKS,
        several=True,
        spelled=SPELLED,
        corpus='HoC',
    ),
    Published(
        'pubmedqa',
        CLASSES,
        QUESTION,
        (450, 50, 500),
        ('accuracy', 'macro_f1'),
        'PubMedQA, PQA-L, fold 0',
        'MIT',
        ('yes', 'no', 'maybe'),
    ),
    Published(
        'bioasq',
        CLASSES,
        QUESTION,
        (670, 75, 140),
        ('accuracy', 'macro_f1'),
        'BioASQ 7b',
        'registration at BioASQ',
        ('yes', 'no'),
    ),
    Published(
        'biosses',
        SIMILARITY,
        Layout((1, 2), 3, name=0, header=True),
        (64, 16, 20),
        ('pearson', 'spearman'),
        'BIOSSES',
        'GPL-3.0',
    ),
)
SETS = Table('TEXT_SETS', {record.name: record for record in RECORDS})


def published(name: str) -> Published | None:
    """The record of BLURB that the name of a folder means, whatever its letters' case; under a name of its own where a
    set is written otherwise (chemprot-markers) or is another fold (gad-fold2)."""
    known = SETS.get(VARIANT.sub('', name.lower()))
    if not known or name.lower() == known.name:
        return known
    # Another fold has as many examples as the public one, but not as many in each split.
    examples = (0, 0, 0) if FOLD in name.lower() else known.examples
    return dataclasses.replace(known, name=name.lower(), examples=examples)


def in_order(labels: Iterable[str]) -> list[str]:
    """The different labels, by letters, or by their value where all are whole numbers."""
    different = sorted({*labels})
    return sorted(different, key=int) if all(map(WHOLE.fullmatch, different)) else different
