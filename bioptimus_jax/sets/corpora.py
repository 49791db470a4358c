"""NER sets: three splits in any form and tag scheme that the readers know, as sentences with IOB2 tags.

Scoring and the audit of a corpus read them here, and so see the same texts.

A set is a folder with train, devel (or dev, valid, validation) and test, all in one of these forms: NAME.tsv, .txt,
.conll, .conllu, .bio, .iob or .iob2 (columns.py); NAME.pubtator or NAME.PubTator.txt (standoff.py); folders NAME of
BRAT's .txt and .ann, of BioNLP's .txt, .a1 and .a2, or of files of columns (folders.py); a TFDS folder with these
splits (prepared.py); or JSON, CSV, BioC and tables (foreign/). Text files may be compressed with gzip. Notes of i2b2
are in the folders of their owner (i2b2.py), and folds are numbered folders of one that is not a set itself, as gad/1
for gad-1. Types stay apart, but for sets that BLURB gives one type (blurb.py) and where a name says otherwise:
NAME-typed, NAME-merged. Sets for retrieval have another layout (beir.py).
"""

import dataclasses
import itertools
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TypeVar

from bioptimus_jax.config.fields import meant
from bioptimus_jax.errors import ConfigError, InputError
from bioptimus_jax.progress.console import numbered, shortened
from bioptimus_jax.records.sets import SetDescription
from bioptimus_jax.sets import beir, blurb, described, labelled, published, texts
from bioptimus_jax.sets.advice import no_set_in, no_split, rebuilt
from bioptimus_jax.sets.columns import first_lines, read_columns
from bioptimus_jax.sets.config import ENTITIES, ChoosesSets
from bioptimus_jax.sets.cutting import cut_of_columns, prose
from bioptimus_jax.sets.folders import (
    COLUMNS,
    DOCUMENTS,
    MARKS,
    WORDS,
    documents_of,
    files_of_words,
    form_of_folder,
    read_files,
)
from bioptimus_jax.sets.foreign import splits as foreign
from bioptimus_jax.sets.foreign import tabular
from bioptimus_jax.sets.foreign.forms import CSV, JSON, TABLE, XML, form_at
from bioptimus_jax.sets.foreign.forms import FORMS as FOREIGN
from bioptimus_jax.sets.i2b2 import note_files, read_notes
from bioptimus_jax.sets.prepared import prepared_files, read_prepared
from bioptimus_jax.sets.roles import FOUND, LAST, Columns, remedy
from bioptimus_jax.sets.sentences import GZIPPED, NAMES, SPLITS, Sentence, SplitReading
from bioptimus_jax.sets.standoff import is_pubtator, read_brat, read_pubtator
from bioptimus_jax.sets.tags import (
    OUTSIDE,
    Scheme,
    count_broken,
    labels_of,
    merged,
    recognise,
    spans,
    to_iob2,
)
from bioptimus_jax.storage import tables
from bioptimus_jax.storage.files import absolute


@dataclasses.dataclass(frozen=True)
class Form:
    """How a split in this form is read, and from which files, from its place and its name; `endings` of its place.

    Files of columns and of records are read by the columns that were asked for.
    """

    read: Callable[[Path, str, Columns], SplitReading]
    files: Callable[[Path, str], list[Path]] = lambda file, split: [file]
    endings: tuple[str, ...] = ()


def _marked(form: str) -> Form:
    """A form of folders of texts with annotations beside them."""

    def files(folder: Path, split: str) -> list[Path]:
        return sorted(itertools.chain(*documents_of(folder, MARKS[form], Counter()).values()))

    return Form(lambda folder, *_: read_brat(folder), files)


PUBTATOR = ('.pubtator', '.PubTator', '.PubTator.txt', '.pubtator.txt')
NOTES = 'i2b2'
FORMS = {
    'columns': Form(lambda file, _, asked: read_columns(file, asked), endings=COLUMNS),
    'PubTator': Form(lambda file, *_: read_pubtator(file), endings=PUBTATOR),
    **{form: _marked(form) for form in MARKS},
    WORDS: Form(lambda folder, _, asked: read_files(folder, asked), lambda folder, _: files_of_words(folder)),
    **{
        form: Form(
            lambda path, _, asked: foreign.read_split(path, asked),
            lambda path, _: foreign.files_of(path),
            FOREIGN[form].endings if form in FOREIGN else (),
        )
        for form in (JSON, XML, CSV, DOCUMENTS)
    },
    TABLE: Form(
        lambda first, _, asked: foreign.read_split(first, asked), lambda first, _: tabular.files_of(first)
    ),
    NOTES: Form(lambda folder, split, _: read_notes(folder, split), note_files),
    'TFDS': Form(lambda folder, split, _: read_prepared(folder, split), prepared_files),
    beir.FORM: Form(lambda folder, *_: _of_documents(folder), lambda folder, _: beir.files(folder)),
}
RECORDS = (JSON, XML, CSV, TABLE)
"""Forms whose records say what they hold by their keys."""
BY_NAMES = (*RECORDS, DOCUMENTS)
"""The same, and folders of such files."""
OF_TEXTS = ('columns', JSON, CSV, TABLE)
"""Forms that texts with answers may be in."""
BIOC = {XML: ('.bioc.xml', '.BioC.xml', '.BioC.XML'), JSON: ('.bioc.json', '.BioC.json', '.BioC.JSON')}
"""How BioC's files also end."""
ENDINGS = {
    form: tuple(
        itertools.chain(*((end, f'{end}{GZIPPED}') for end in (*FORMS[form].endings, *BIOC.get(form, ()))))
    )
    for form in FORMS
}
"""Form -> endings of a file that is a split in it."""
Chooser = TypeVar('Chooser', bound=ChoosesSets)
MARKED = (*MARKS, 'PubTator', NOTES)
"""Forms of texts with mentions by characters."""
SHOWN_SETS = 12
"""Names of sets that a message lists."""
MERGED = 'merged into one'


@dataclasses.dataclass(frozen=True)
class NamedSet:
    """A set under the name of its scores: where its files are, and what is learned from it.

    `reading`: MERGED where all of its types are read as one. `columns`: those of its files that are read. `described`:
    how its set.json, or the form of its records, describes it.
    """

    name: str
    folder: Path
    reading: str = ''
    task: str = ENTITIES
    columns: Columns = FOUND
    described: SetDescription | None = None

    @property
    def recorded_task(self) -> str | None:
        """What records say of its task: nothing of the first one there was."""
        return None if self.task == ENTITIES else self.task

    @property
    def texts(self) -> texts.Published | None:
        """The record of a set of texts, a public one or one that is described beside its files."""
        return known_texts(self.name, self.described)


@dataclasses.dataclass(frozen=True)
class Dataset:
    """The three splits of one set in IOB2, the labels of its training split, and what was counted while reading.

    `gold_in_file`: mentions of each split, counted apart from its sentences; `gold_left_out` of them overlap or repeat
    others and are in no sentence. `unseen_labels`: tags that only devel or test have. `form` and `scheme`: how the
    files are written. `repairs`: of each split, see sentences.Reading. `merged_types`: types of the training split that
    were merged into one. `columns`: in words, which of several are word and tag. `cut`: the rule of `cutting.CUTS`
    that gives these words and sentences from text.
    """

    name: str
    train: tuple[Sentence, ...]
    devel: tuple[Sentence, ...]
    test: tuple[Sentence, ...]
    labels: tuple[str, ...]
    gold_in_file: dict[str, int]
    unseen_labels: dict[str, int]
    form: str = 'columns'
    scheme: str = 'IOB2'
    repairs: Mapping[str, Mapping[str, int]] = dataclasses.field(default_factory=dict)
    merged_types: tuple[str, ...] = ()
    gold_left_out: Mapping[str, int] = dataclasses.field(default_factory=dict)
    cut: str = prose.__name__
    columns: str = ''

    @property
    def types(self) -> tuple[str, ...]:
        """The entity types of the training split."""
        return tuple(dict.fromkeys(label[2:] for label in self.labels if label != OUTSIDE))


def set_at(folder: Path, task: str = ENTITIES, columns: Columns = FOUND) -> NamedSet:
    """The set in a folder under the folder's name, read and learned as its record says; others by `task`.

    `columns`: those of its files that are read, where it is one of entities or of words.
    """
    name = name_of(folder)
    known = published.record_of(name)
    if beir.is_one(folder):
        return NamedSet(name, folder, task=beir.RETRIEVAL)
    if known and described.file_in(folder):
        raise InputError(
            f'{folder / described.FILE}: {name} is a public set, which is read as its authors have it; rename the '
            'folder'
        )

    def file_of(split: str) -> Path:
        # A test file may be scored alone; then it says what train would.
        return split_source(folder, split if is_dataset(folder) else 'test')[1]

    if not known and (said := described.described(folder, file_of)):
        return NamedSet(name, folder, '', said.task, columns, said)
    merged_types = MERGED * getattr(known, 'merged', False)
    return NamedSet(name, folder, merged_types, known.task if known else task, columns)


def known_texts(name: str, said: SetDescription | None) -> texts.Published | None:
    """The record of a set of texts: of its description, where records hold one, else the public one of that name."""
    return described.published(name, said) if said else published.texts_of(name)


def name_of(folder: Path) -> str:
    """What the set in a folder is called: as the folder, a fold also as the one around it (gad-1); data/ with tables as
    the one around it. Whatever path leads there, `.` too."""
    folder = absolute(folder)
    if folder.name == tabular.DATA and any(folder.glob('*.parquet')):
        return folder.parent.name
    fold = f'{folder.parent.name}-{folder.name}'
    return fold if folder.name.isdecimal() and published.record_of(fold) else folder.name


def set_folders(root: Path, is_one: Callable[[Path], bool] | None = None) -> Iterator[Path]:
    """The folders in one that are a set, or a fold of one; `is_one`: whether a folder is, by default `is_dataset`."""
    is_one = is_one or is_dataset
    for folder in sorted(p for p in root.iterdir() if p.is_dir()):
        if is_one(folder):
            yield folder
            continue
        folds = [p for p in folder.iterdir() if name_of(p) != p.name and p.is_dir() and is_one(p)]
        yield from sorted(folds, key=lambda fold: (len(fold.name), fold.name))


def read_dataset(given: NamedSet | Path) -> Dataset:
    """Read a set, a folder as `set_at` names it.

    `labels` are O and B-, I- of every type in the training split. A type that only devel or test have cannot
    be learned from it, but its mentions stay in the gold standard: `unseen_labels` counts those tags, for a warning.
    Raises InputError naming file and line.
    """
    chosen = given if isinstance(given, NamedSet) else set_at(given)
    form, sources = _sources(chosen.folder)
    read = {name: _read(form, sources[name], name, chosen.columns) for name in SPLITS}
    for split, reading in read.items():
        if reading.columns != read['train'].columns:
            raise InputError(
                f'{sources[split]}: {_said(reading)}, but in {sources["train"]}: {_said(read["train"])}; '
                f'the splits of a set have the same columns, or {remedy("tag_column")}'
            )
    scheme = _scheme(read.values(), sources.values(), chosen.folder, chosen.columns)
    splits = {name: _in_iob2(reading, scheme) for name, reading in read.items()}
    types = types_of(splits['train'])
    if not types:
        raise InputError(f'{sources["train"]}: has no entity at all; there is nothing to learn')
    if chosen.reading:
        splits = {name: _merged(sentences) for name, sentences in splits.items()}
    labels = labels_of(types_of(splits['train']), 'bio')
    later = Counter(tag for name in ('devel', 'test') for s in splits[name] for tag in s.gold)
    return Dataset(
        chosen.name,
        **splits,
        labels=labels,
        gold_in_file={name: reading.mentions for name, reading in read.items()},
        unseen_labels={tag: count for tag, count in sorted(later.items()) if tag not in labels},
        form=read['train'].form or form,
        scheme=str(scheme),
        repairs={name: _repairs(reading, scheme) for name, reading in read.items()},
        merged_types=types if chosen.reading else (),
        gold_left_out={name: reading.left_out for name, reading in read.items()},
        cut=read['train'].cut or cut_of_columns(s.words for s in splits['train']),
        columns=read['train'].columns,
    )


def _read(form: str, source: Path, split: str, columns: Columns) -> SplitReading:
    """A split in its form. Raises InputError, for what looks like texts with answers with the remedy."""
    try:
        return FORMS[form].read(source, split, columns)
    except InputError as error:
        if form not in OF_TEXTS or not labelled.holds_prose(source):
            raise
        what = str(error).partition('; if the line is a header')[0]
        raise InputError(
            f'{what}; for texts with labels, as these may be, set config.finetune.task (of lint and score --task) to '
            f'{texts.CLASSES}, with numbers to {texts.SIMILARITY}'
        ) from error


def _of_documents(folder: Path) -> SplitReading:
    raise InputError(
        f'{folder}: is a set for retrieval ({beir.CORPUS}), which has no entities; leave it out here'
    )


def _said(reading: SplitReading) -> str:
    return reading.columns or 'of 2 columns, 1 is the word and 2 the tag'


def types_of(sentences: Iterable[Sentence]) -> tuple[str, ...]:
    """The entity types of sentences, sorted."""
    return tuple(sorted({tag[2:] for s in sentences for tag in s.gold if tag != OUTSIDE}))


def read_test(chosen: NamedSet, source: Path) -> Dataset:
    """A set of which there is only a test file, or such a folder. Raises InputError naming file and line."""
    form = form_of(source)
    reading = _read(form, source, 'test', chosen.columns)
    scheme = _scheme([reading], [source], source, chosen.columns)
    test = _in_iob2(reading, scheme)
    test = _merged(test) if chosen.reading else test
    return Dataset(
        chosen.name,
        (),
        (),
        test,
        labels_of(types_of(test), 'bio'),
        gold_in_file={'test': reading.mentions},
        unseen_labels={},
        form=reading.form or form,
        scheme=str(scheme),
        gold_left_out={'test': reading.left_out},
        columns=reading.columns,
    )


def require_all_mentions(folder: Path, dataset: Dataset) -> None:
    """Nothing, where every mention that the files mark is among those that are read. Raises InputError naming one."""
    for split in SPLITS:
        marked, left_out = dataset.gold_in_file[split], dataset.gold_left_out.get(split, 0)
        read = sum(len(spans(s.gold)) for s in getattr(dataset, split))
        if marked != read + left_out:
            raise InputError(
                f'{split_source(folder, split)[1]}: marks {numbered(marked, "mention")}, but {read + left_out} are '
                'read from it; check its tags and blank lines'
            )


def read_split(given: NamedSet | Path, split: str) -> tuple[Sentence, ...]:
    """One split of a set, in IOB2 with the types of its files; the others may be missing. Raises InputError."""
    chosen = given if isinstance(given, NamedSet) else set_at(given)
    form, source = split_source(chosen.folder, split)
    reading = FORMS[form].read(source, split, chosen.columns)
    return _in_iob2(reading, _scheme([reading], [source], chosen.folder, chosen.columns))


def read_iob2(path: Path) -> tuple[Sentence, ...]:
    """The sentences of one file or BRAT folder, in IOB2 whatever its scheme; the last column holds the tags, as in
    predictions. Raises InputError naming file and line.
    """
    read = FORMS[form_of(path)].read(path, '', LAST)
    return _in_iob2(read, _scheme([read], [path], path, LAST))


def form_of(path: Path) -> str:
    """The form of a file or folder by its name or by what it holds: columns, unless it is another."""
    if path.is_dir():
        return form_of_folder(path)
    if path.name.endswith(ENDINGS['PubTator']):
        return 'PubTator'
    return form_at(path) or ('PubTator' if is_pubtator(path) else 'columns')


def is_dataset(folder: Path) -> bool:
    """Whether a training split lies here."""
    return any(_candidates(folder, 'train'))


def has_a_split(folder: Path) -> bool:
    """Whether any split lies here."""
    return any(_candidates(folder, split) for split in SPLITS)


def sets_in(
    root: Path, names: Sequence[str], is_one: Callable[[Path], bool] = is_dataset, task: str = ENTITIES
) -> list[NamedSet]:
    """The sets of these names, or all of them, among the folders that are one; or the one whose tables are in `root`.

    Raises InputError.
    """
    folders = list(set_folders(root, is_one)) or [root] * bool(tabular.candidates(root, 'train'))
    known = {name_of(folder): folder for folder in folders}
    forms = {
        f'{name}-{form}': (folder, reading)
        for name, folder in known.items()
        for form, reading in ((blurb.TYPED, ''), (blurb.ONE_TYPE, MERGED))
    }
    every = [*known, *forms]
    if not known and is_one(root):
        raise InputError(f'{root}: is a set itself, not a folder of sets; give the folder around it')
    if not known:
        raise no_set_in(root)
    if wrong := [name for name in names if name not in every]:
        raise InputError(
            f'{root}: has no set {shortened(wrong)}; found: {shortened(known, SHOWN_SETS)}'
            f'{meant(wrong[0], every) or rebuilt(root / wrong[0])}'
        )

    # What is wrong with the description of a set matters to those alone who want that set.
    def found(name: str) -> NamedSet:
        if name in known:
            return set_at(known[name], task)
        folder, reading = forms[name]
        return dataclasses.replace(set_at(folder, task), name=name, reading=reading)

    return [found(name) for name in names or known]


def chosen_sets(settings: ChoosesSets) -> list[NamedSet]:
    """The chosen sets, or all of them. Errors name the key or the folder."""
    if not settings.folder:
        raise ConfigError(
            'config.finetune.folder: is empty; set it to a folder of NAME/{train,devel,test}.tsv'
        )
    root = Path(settings.folder)
    if not root.is_dir():
        what = 'is a file' if root.exists() else 'no such folder'
        raise InputError(f'{root}: {what}; config.finetune.folder needs NAME/{{train,devel,test}}.tsv in it')
    return [
        dataclasses.replace(one, columns=_columns_of(settings_on(settings, one.name)))
        for one in sets_in(root, settings.datasets, task=settings.task)
    ]


def _columns_of(settings: ChoosesSets) -> Columns:
    return Columns(settings.word_column, settings.tag_column)


def settings_on(settings: Chooser, dataset: str) -> Chooser:
    """config.finetune as it is for a set: `of_set` knows it by its folder, as a public set, or as a form of one."""
    known = published.record_of(dataset)
    public = known.name if known else dataset
    names = (dataset, public, texts.VARIANT.sub('', public))
    return settings.on(next((name for name in names if name in settings.of_set), ''))


def check_names_of_sets(settings: ChoosesSets) -> None:
    """Raise ConfigError where `of_set` names what is neither a chosen nor a public set."""
    chosen = [one.name for one in chosen_sets(settings)]
    for name in settings.of_set:
        if name not in chosen and not published.record_of(name):
            raise ConfigError(
                f'config.finetune.of_set.{name}: no such set in config.finetune.folder; found: '
                f'{shortened(chosen, SHOWN_SETS)}{meant(name, chosen)}'
            )


def entity_sets(settings: ChoosesSets) -> list[NamedSet]:
    """The chosen sets whose entities are to be found."""
    return [chosen for chosen in chosen_sets(settings) if chosen.task == ENTITIES]


def split_files(folder: Path, split: str) -> list[Path]:
    """The files that one split of a set is read from. Raises InputError where it is missing."""
    form, source = split_source(folder, split)
    return FORMS[form].files(source, split)


def rule_of_words(folder: Path) -> str:
    """What decides the words of a set beside its files: '' where these hold words. Raises InputError."""
    form, source = split_source(folder, 'train')
    marked = form in MARKED or (form in BY_NAMES and foreign.by_characters(foreign.items_at(source).items))
    return 'from text alone' if marked else ''


def columns_file(folder: Path, split: str) -> Path | None:
    """The file of lines and columns that a split is read from; None for other forms. Raises InputError."""
    form, source = split_source(folder, split)
    return source if form == 'columns' else None


def file_of_texts(folder: Path, split: str) -> Path:
    """The file, or the first one, that a split of texts is read from. Raises InputError for forms of words alone."""
    form, source = split_source(folder, split)
    if form not in OF_TEXTS:
        raise InputError(
            f'{source}: is read as {form}, which has no texts with answers; write text TAB answer as {split}.tsv, or '
            '"text" and "label" as .csv, .jsonl or .parquet'
        )
    return source


def texts_file(folder: Path, split: str) -> Path | None:
    """The file of a split that holds texts with answers, and not words with tags. Raises InputError."""
    form, source = split_source(folder, split)
    return source if form in OF_TEXTS and labelled.holds_texts(source) else None


def set_files(folder: Path) -> list[Path]:
    """Every file that a set is read from."""
    found = [file for split in SPLITS for file in split_files(folder, split)]
    found += filter(None, [described.file_in(folder)])
    return list(dict.fromkeys(found))  # splits of a TFDS folder share its metadata


def _candidates(folder: Path, split: str) -> list[tuple[str, Path]]:
    """Everything in a folder that may be a split of a set, with its form."""
    if beir.is_one(folder):
        return [(beir.FORM, folder)]
    found: dict[Path, str] = {}
    known = published.texts_of(name_of(folder))
    # What has a record, or is described, is read as that says.
    said = published.record_of(name_of(folder)) or described.file_in(folder)
    for form in ('columns', 'PubTator', JSON, XML, CSV):
        for path in (folder / f'{name}{end}' for name in NAMES[split] for end in ENDINGS[form]):
            if path.is_file():
                found.setdefault(path, form if said or form != 'columns' else form_of(path))
    if known and known.files:
        own = (folder / known.files.format(name) for name in NAMES[split])
        found |= {path: JSON for path in own if path.is_file()}
    shown = tabular.candidates(folder, split)
    folders = [folder / name for name in NAMES[split]]
    # A folder of tables is none of texts.
    found |= {p: form_of(p) for p in folders if p.is_dir() and not (shown and shown[0].is_relative_to(p))}
    found |= dict.fromkeys(shown, TABLE)
    if note_files(folder, split):
        found[folder] = NOTES
    prepared = [p for p in (folder, *sorted(folder.glob('*.*.*'))) if (p / tables.INFO).is_file()]
    # `datasets` writes a file with this name too, but never without its STATE or beside files of records.
    if not any(form in RECORDS for form in found.values()):
        found |= {p: 'TFDS' for p in prepared if not (p / tables.STATE).is_file()}
    return [(form, path) for path, form in found.items()]


def split_source(folder: Path, split: str) -> tuple[str, Path]:
    """The form of a split and where it lies. Raises InputError for a missing or a second one."""
    candidates = _candidates(folder, split)
    if not candidates:
        known = published.texts_of(name_of(folder))
        if known and known.held_out and split == 'devel':
            return split_source(folder, 'train')
        raise no_split(folder, split)
    if len(candidates) > 1:
        names = ' and '.join(path.name for _, path in candidates)
        raise InputError(f'{folder}: {split} is there twice ({names}); leave one')
    return candidates[0]


def _sources(folder: Path) -> tuple[str, dict[str, Path]]:
    """The form of a set and where each split lies. Raises InputError."""
    found = {split: split_source(folder, split) for split in SPLITS}
    forms = sorted({form for form, _ in found.values()})
    if len(forms) > 1:
        raise InputError(f'{folder}: its splits are in different forms ({", ".join(forms)})')
    return forms[0], {split: path for split, (_, path) in found.items()}


def _scheme(readings: Iterable[SplitReading], sources: Iterable[Path], place: Path, asked: Columns) -> Scheme:
    try:
        return recognise(s.tags for reading in readings for s in reading.sentences)
    except ValueError as error:
        within = itertools.chain(*([s] if s.is_file() else files_of_words(s) for s in sources))
        files = [file for file in within if form_of(file) == 'columns']
        where = ', '.join(f'{tag} at {line}' for tag, line in sorted(first_lines(files, asked).items()))
        raise InputError(f'{place}: {error}; first {where or "in its records"}') from error


def _in_iob2(reading: SplitReading, scheme: Scheme) -> tuple[Sentence, ...]:
    return tuple(dataclasses.replace(s, tags=to_iob2(s.tags, scheme)) for s in reading.sentences)


def _merged(sentences: Iterable[Sentence]) -> tuple[Sentence, ...]:
    return tuple(s.retagged(merged) for s in sentences)


def _repairs(reading: SplitReading, scheme: Scheme) -> dict[str, int]:
    what = 'orphan I- tags' if scheme.name == 'IOB2' else f'tags that contradict {scheme.name}'
    count = sum(count_broken(s.tags, scheme) for s in reading.sentences)
    return {**reading.repairs, **({what: count} if count else {})}
