"""Folders that are a split: texts with annotations beside them, or files of words with tags.

Folders within are read, too, and that is said. BRAT has NAME.ann beside NAME.txt. The shared tasks of BioNLP have
NAME.a1 (what is given) and NAME.a2 (what is asked for) in its place, in the same notation. Notes for readers and files
of macOS (._NAME) are no documents.
"""

import dataclasses
import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from bioptimus_jax.errors import InputError
from bioptimus_jax.progress.console import shortened
from bioptimus_jax.sets.columns import read_columns
from bioptimus_jax.sets.foreign.items import TEXT_ENDINGS
from bioptimus_jax.sets.roles import Columns
from bioptimus_jax.sets.sentences import Sentence, SplitReading, plain_name, plain_suffix
from bioptimus_jax.sets.tags import OUTSIDE

COLUMNS = ('.tsv', '.txt', '.conll', '.conllu', '.bio', '.iob', '.iob2')
"""Endings of files of words with tags."""
OF_WORDS = tuple(end for end in COLUMNS if end not in ('.tsv', '.txt'))
"""Endings of files that hold nothing but words with tags."""
BRAT, GIVEN, ASKED, WORDS = 'BRAT', 'BioNLP (.a1)', 'BioNLP (.a1 and .a2)', 'files of columns'
DOCUMENTS = 'files of records'
"""Folders of JSON, BioC and the like."""
MARKS = {BRAT: ('.ann',), GIVEN: ('.a1',), ASKED: ('.a1', '.a2')}
"""Form of a folder of texts with annotations -> the files beside each of its texts."""
BESIDE_TEXTS = tuple(sorted({ending for endings in MARKS.values() for ending in endings}))
"""Endings of files that mark places in the texts beside them."""
NOTES = re.compile(
    r'_*(read[ _-]*me|licen[cs]e|copying|copyright|change[ _-]*log|authors|citation|notice)([ _.-].*)?', re.I
)
HIDDEN = '._'
"""How macOS begins the names of files that it lays beside others."""
NO_DOCUMENTS = 'notes for readers and files of macOS left out'
WITHIN = 'documents in folders within, read too'
SHOWN = 4
"""Names of files that a message lists."""


def form_of_folder(folder: Path) -> str:
    """The form of a folder that is a split, by the files beside its texts."""
    files = [
        p for p in folder.rglob('*') if p.is_file() and not p.name.startswith(HIDDEN) and _is_shown(p, folder)
    ]
    endings = {path.suffix for path in files}
    if '.ann' in endings:
        return BRAT
    if '.a1' in endings:
        return ASKED if '.a2' in endings else GIVEN
    records = any(plain_suffix(path).lower() in TEXT_ENDINGS for path in files)
    return DOCUMENTS if records and not files_of_words(folder) else WORDS


def documents_of(folder: Path, marks: Sequence[str], repairs: Counter[str]) -> dict[str, list[Path]]:
    """Name -> the text of a document and the files with these endings beside it. Raises InputError where one lacks."""
    every: dict[str, dict[str, Path]] = {end: {} for end in ('.txt', *marks)}
    for path in (p for p in folder.rglob('*') if p.suffix in every and _is_shown(p, folder)):
        every[path.suffix][path.relative_to(folder).with_suffix('').as_posix()] = path
    # In the order of the texts' own names, of which models learn.
    names = sorted({name for named in every.values() for name in named}, key=lambda name: f'{name}.txt')
    found: dict[str, list[Path]] = {}
    for name in names:
        there = [named[name] for named in every.values() if name in named]
        lacks = [end for end, named in every.items() if name not in named]
        only_text = lacks == list(marks)
        own = Path(name).name
        if own.startswith(HIDDEN) or (only_text and _is_note(own)):
            repairs[NO_DOCUMENTS] += 1
        elif lacks:
            raise InputError(
                f'{there[0]}: has no {own}{lacks[0]} beside it; '
                + (
                    f'fetch it again, or add an empty {lacks[0]} if nothing is marked in this text'
                    if only_text and len(marks) == 1
                    else 'fetch it again, or remove the other files of this name'
                )
            )
        else:
            found[name] = there
            repairs[WITHIN] += '/' in name
    return found


def files_of_words(folder: Path) -> list[Path]:
    """The files of words with tags in a folder, by their names."""
    return [path for path in _in_columns(folder) if not _is_note(path.stem)]


def _in_columns(folder: Path) -> list[Path]:
    found = (path for path in folder.rglob('*') if path.is_file() and plain_suffix(path) in COLUMNS)
    return sorted(path for path in found if _is_shown(path, folder))


def _is_shown(path: Path, folder: Path) -> bool:
    """Whether a file is in no hidden folder."""
    return not any(part.startswith('.') for part in path.relative_to(folder).parts[:-1])


def _is_note(name: str) -> bool:
    """Whether a file of this name is one of macOS or a note for readers."""
    return name.startswith(HIDDEN) or NOTES.fullmatch(name) is not None


def read_files(folder: Path, asked: Columns) -> SplitReading:
    """The sentences of all files of words with tags in a folder, each a document.

    Raises InputError with file and line; where texts without annotations may be meant it says so.
    """
    files = files_of_words(folder)
    repairs = Counter({NO_DOCUMENTS: len(_in_columns(folder)) - len(files)})
    if not files:
        raise InputError(
            f'{folder}: {holding(folder)}; read are .txt with .ann beside them (BRAT), .txt with .a1, files of a word '
            f'and its tag a line ({", ".join(COLUMNS)}), and files of {", ".join(TEXT_ENDINGS)}'
        )
    sentences: list[Sentence] = []
    mentions, documents, said = 0, 0, dict[str, Path]()
    for file in files:
        try:
            reading = read_columns(file, asked)
        except InputError as error:
            raise (_texts_alone(folder, file, str(error)) if file.suffix == '.txt' else error) from error
        within = file.relative_to(folder).with_name(plain_name(file)).with_suffix('').as_posix()
        repairs[WITHIN] += '/' in within
        sentences += (
            dataclasses.replace(s, document=documents + s.document, line=0, source=within)
            for s in reading.sentences
        )
        documents, mentions = sentences[-1].document + 1, mentions + reading.mentions
        repairs += Counter(reading.repairs)
        said.setdefault(reading.columns, file)
    if len(said) > 1:
        raise InputError(
            f'{folder}: {" and ".join(file.name for file in said.values())} have other columns; the files of a split '
            'have the same ones'
        )
    tags = {tag for sentence in sentences for tag in sentence.tags}
    # One line of prose may end as a tag does, as with `vitamin B-12`.
    if all(file.suffix == '.txt' for file in files) and (OUTSIDE not in tags or not any(t[1:] for t in tags)):
        raise _texts_alone(folder, files[0], f'no tags of types beside {OUTSIDE} in its last column')
    return SplitReading(tuple(sentences), mentions, +repairs, columns=next(iter(said)))


def holding(folder: Path) -> str:
    """What is in a folder, in a few words: `holds a.json, b.json and 3 more`."""
    names = sorted(p.name + '/' * p.is_dir() for p in folder.iterdir() if not p.name.startswith('.'))
    more = f' and {len(names) - SHOWN:,} more' if len(names) > SHOWN else ''
    return f'holds {", ".join(names[:SHOWN])}{more}' if names else 'is empty'


def _texts_alone(folder: Path, file: Path, why: str) -> InputError:
    """What is wrong with a folder of .txt that are neither marked by files beside them nor words with tags."""
    beside = sorted({p.suffix for p in folder.iterdir() if p.is_file() and p.suffix not in ('', '.txt')})
    others = f', only {shortened(beside)}' if beside else ''
    line = why.removeprefix(f'{file}:').partition(';')[0]
    return InputError(
        f'{file}: neither a text of BRAT, since no text here has a .ann or .a1 beside it{others}, nor a word and its '
        f'tag a line ({line}); mark mentions in NAME.ann beside NAME.txt, or write words with tags as .tsv'
    )
