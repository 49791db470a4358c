"""Sets of texts: one text or two with labels or a number; those of BLURB by records, one's own in two or three columns.

A line is an example, its columns stand apart by tabs, and nothing is quoted. The public files are those of BLURB's own
scripts (Gu et al. 2021, section 4): entities of relations are written as `@GENE$`, `@DRUG$` and the like.
"""

import dataclasses
import math
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from bioptimus_jax.errors import InputError
from bioptimus_jax.sets.sentences import SPLITS, text_of

DUMMY = re.compile(r'@[A-Za-z-]+\$')
"""What stands for an entity."""
CLASSES, SIMILARITY = 'classes', 'similarity'
LARGEST_NUMBER = 1e6


@dataclasses.dataclass(frozen=True)
class Text:
    """One text or two, with labels or one number; `document` counts from 0 (all 0 where there are none)."""

    words: tuple[str, ...]
    answers: tuple[str | float, ...]
    document: int = 0


@dataclasses.dataclass(frozen=True)
class Texts:
    """The three splits of one set; `labels` in the order of its record, or sorted, none where answers are numbers."""

    name: str
    train: tuple[Text, ...]
    devel: tuple[Text, ...]
    test: tuple[Text, ...]
    labels: tuple[str, ...]


@dataclasses.dataclass(frozen=True)
class Layout:
    """What the columns of a line hold, counted from 0: texts, answer, and the name of the example, if it has one.

    `header`: the first line is none. `document`: what of a name says which document an example is from. `question`:
    the first text is never cut. `joined`: lines of one document are one example, their labels united (HoC).
    """

    texts: tuple[int, ...]
    answer: int
    name: int | None = None
    header: bool = False
    document: str = ''
    question: bool = False
    joined: bool = False

    @property
    def columns(self) -> int:
        return 1 + max(self.answer, self.name or 0, *self.texts)


@dataclasses.dataclass(frozen=True)
class Published:
    """A public set: examples in train, devel, test as its files have them, where they come from, who may use them.

    `labels`: all that there are; F1 leaves `uncounted` ones out, as "no relation". `measures`: names of
    `finetune.texts.measures`, the first decides. `several`: an example may have any number of labels. `spelled`: what
    an answer column says -> the label.
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

    @property
    def counted(self) -> tuple[str, ...]:
        """Labels that F1 counts."""
        return tuple(label for label in self.labels if label not in self.uncounted)


NAMED = Layout((1,), 2, name=0)
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
RECORDS = (
    Published(
        'chemprot',
        CLASSES,
        dataclasses.replace(NAMED, document=r'[^.]+'),
        (18035, 11268, 15745),
        ('micro_f1', 'macro_f1'),
        'BioCreative VI',
        'public domain mark; registration',
        ('false', 'CPR:3', 'CPR:4', 'CPR:5', 'CPR:6', 'CPR:9'),
        ('false',),
    ),
    Published(
        'ddi',
        CLASSES,
        dataclasses.replace(NAMED, document=r'[^.]+\.d\d+'),
        (25296, 2496, 5716),
        ('micro_f1', 'macro_f1'),
        'DDI Extraction 2013',
        'CC BY-NC 4.0',
        ('DDI-false', 'DDI-advise', 'DDI-effect', 'DDI-int', 'DDI-mechanism'),
        ('DDI-false',),
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
    ),
    Published(
        'hoc',
        CLASSES,
        Layout((1,), 0, name=2, header=True, document=r'[^_]+', joined=True),
        (1295, 186, 371),
        ('micro_f1', 'macro_f1', 'example_f1'),
        'Hallmarks of Cancer',
        'GPL-3.0',
        HALLMARKS,
        several=True,
        spelled={f'{at}_1': name for at, name in enumerate(HALLMARKS)}
        | {f'{at}_0': '' for at in range(len(HALLMARKS))},
    ),
    Published(
        'pubmedqa',
        CLASSES,
        Layout((1, 2), 3, name=0, question=True),
        (450, 50, 500),
        ('accuracy', 'macro_f1'),
        'PubMedQA, PQA-L, fold 0',
        'MIT',
        ('yes', 'no', 'maybe'),
    ),
    Published(
        'bioasq',
        CLASSES,
        Layout((1, 2), 3, name=0, question=True),
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
        ('pearson',),
        'BIOSSES',
        'GPL-3.0',
    ),
)
SETS = {record.name: record for record in RECORDS}


def published(name: str) -> Published | None:
    """The record that the name of a folder means, whatever its letters' case."""
    return SETS.get(name.lower())


def read_texts(name: str, files: Mapping[str, Path], numbers: bool) -> Texts:
    """A set from the file of each split; `numbers`: its answers are numbers. Raises InputError naming file and line."""
    known = published(name)
    read = {split: read_file(files[split], known, numbers) for split in SPLITS}
    labels: Sequence[str] = ()
    if not numbers:
        labels = known.labels if known else sorted({str(a) for x in read['train'] for a in x.answers})
        if len(labels) < 2:
            raise InputError(
                f'{files["train"]}: has one label, {", ".join(labels)}; there is nothing to learn'
            )
    for split in SPLITS:
        strange = {a for x in read[split] for a in x.answers} - set(labels) if labels else ()
        if strange:
            raise InputError(
                f'{files[split]}: has the label {sorted(map(str, strange))[0]!r}, which train does not have; known: '
                f'{", ".join(labels)}'
            )
    return Texts(name, **read, labels=tuple(labels))


def read_file(path: Path, known: Published | None, numbers: bool) -> tuple[Text, ...]:
    """The examples of one file: by the record of its set, or of text TAB answer, or two texts TAB answer.

    Raises InputError with file and line.
    """
    lines = [line for line in enumerate(text_of(path).lstrip('\ufeff').split('\n'), 1) if line[1].strip()]
    rows = [(number, line.rstrip('\r').split('\t')) for number, line in lines]
    layout = known.layout if known else _own_layout(path, rows)
    rows = rows[layout.header :]
    if not rows:
        raise InputError(f'{path}: holds no example')
    documents: dict[str, int] = {}
    examples = [_example(path, *row, layout, known, numbers, documents) for row in rows]
    return tuple(_joined(examples) if layout.joined else examples)


def searchable(text: str) -> list[str]:
    """The parts of a text that stand in a document as they are: what is between the names that were replaced."""
    return [part for part in DUMMY.split(text) if part.strip()]


def _own_layout(path: Path, rows: Sequence[tuple[int, list[str]]]) -> Layout:
    """Two or three columns, the last of which is the answer. Raises InputError."""
    width = len(rows[0][1]) if rows else 2
    if width not in (2, 3):
        raise InputError(
            f'{path}:{rows[0][0]}: expected text TAB answer or text TAB text TAB answer, not {width} columns'
        )
    return Layout(tuple(range(width - 1)), width - 1)


def _example(
    path: Path,
    number: int,
    columns: list[str],
    layout: Layout,
    known: Published | None,
    numbers: bool,
    documents: dict[str, int],
) -> Text:
    if len(columns) != layout.columns:
        raise InputError(f'{path}:{number}: has {len(columns)} columns, not {layout.columns}')
    texts, given = tuple(columns[at].strip() for at in layout.texts), columns[layout.answer].strip()
    if not all(texts):
        raise InputError(f'{path}:{number}: a text is empty')
    document = 0
    if layout.document and layout.name is not None:
        found = re.match(layout.document, columns[layout.name])
        if not found:
            raise InputError(f'{path}:{number}: {columns[layout.name]!r} names no document')
        document = documents.setdefault(found[0], len(documents))
    if not numbers:
        return Text(texts, _labels(path, number, given, known), document)
    try:
        value = float(given)
    except ValueError:
        value = math.nan
    if not abs(value) < LARGEST_NUMBER:
        raise InputError(f'{path}:{number}: {given!r} is no number')
    return Text(texts, (value,), document)


def _labels(path: Path, number: int, given: str, known: Published | None) -> tuple[str, ...]:
    if not known:
        if not given:
            raise InputError(f'{path}:{number}: has no label')
        return (given,)
    said = [known.spelled.get(part, part) for part in (given.split(',') if known.several else [given])]
    unknown = [label for label in said if label and label not in known.labels]
    if unknown or not (any(said) or known.several):
        wrong, known_labels = unknown[0] if unknown else given, ', '.join(known.labels)
        raise InputError(f'{path}:{number}: {wrong!r} is no label of {known.name}: {known_labels}')
    return tuple(label for label in known.labels if label in said)


def _joined(examples: Sequence[Text]) -> list[Text]:
    """One example for each document: its texts in the order of the file, every label that one of them has."""
    parts: dict[int, list[Text]] = {}
    for example in examples:
        parts.setdefault(example.document, []).append(example)
    return [
        Text(
            (' '.join(part.words[0] for part in of_one),),
            tuple(sorted({answer for part in of_one for answer in part.answers}, key=str)),
        )
        for of_one in parts.values()
    ]
