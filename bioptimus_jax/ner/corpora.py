"""NER sets as IOB2 files: `token TAB tag`, a blank line between sentences, `-DOCSTART-` before a document."""

import dataclasses
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from bioptimus_jax.errors import ConfigError, InputError
from bioptimus_jax.schema import Ner

SPLITS = ('train', 'devel', 'test')
TAG = re.compile(r'O|[BI]-\S+')


@dataclasses.dataclass(frozen=True)
class Sentence:
    """Words with their IOB2 tags as they stand in the file; `document` counts -DOCSTART- lines from 0."""

    words: tuple[str, ...]
    tags: tuple[str, ...]
    document: int = 0


@dataclasses.dataclass(frozen=True)
class Dataset:
    """The three splits of one set, its labels, and what was counted while reading."""

    name: str
    train: tuple[Sentence, ...]
    devel: tuple[Sentence, ...]
    test: tuple[Sentence, ...]
    labels: tuple[str, ...]
    gold_in_file: dict[str, int]
    unseen_labels: dict[str, int]


def read_dataset(folder: Path) -> Dataset:
    """Read `folder`/{train,devel,test}.tsv.

    `labels` are O and B-, I- of every type in the training split. A type that only devel or test have cannot
    be learned, but its mentions stay in the gold standard: `unseen_labels` counts those tags, for a warning.
    Raises InputError naming file and line.
    """
    splits = {name: tuple(read_iob2(folder / f'{name}.tsv')) for name in SPLITS}
    types = sorted({tag[2:] for s in splits['train'] for tag in s.tags if tag != 'O'})
    if not types:
        raise InputError(f'{folder / "train.tsv"}: has no entity at all; there is nothing to learn')
    labels = ('O', *(f'{prefix}-{kind}' for kind in types for prefix in 'BI'))
    later = Counter(tag for name in ('devel', 'test') for s in splits[name] for tag in s.tags)
    unseen = {tag: count for tag, count in sorted(later.items()) if tag not in labels}
    gold = {name: count_mentions(folder / f'{name}.tsv') for name in SPLITS}
    return Dataset(folder.name, **splits, labels=labels, gold_in_file=gold, unseen_labels=unseen)


def read_iob2(path: Path) -> Iterator[Sentence]:
    """The sentences of one file; CRLF and a byte-order mark are tolerated, other oddities are not."""
    words: list[str] = []
    tags: list[str] = []
    document, found = -1, False
    for number, line in _lines(path):
        if line.strip(' \t') and not _starts_document(line):
            word, tag = _columns(path, number, line)
            words.append(word)
            tags.append(tag)
            continue
        if words:
            found = True
            yield Sentence(tuple(words), tuple(tags), max(document, 0))
            words, tags = [], []
        document += _starts_document(line)
    if words:
        yield Sentence(tuple(words), tuple(tags), max(document, 0))
    elif not found:
        raise InputError(f'{path}: holds no sentence; expected lines of token TAB tag')


def count_mentions(path: Path) -> int:
    """Mentions counted straight from the lines of the file, apart from any sentence, window or scorer.

    A mention begins at B-, and at an I- that continues nothing of its type (as conlleval reads it).
    """
    count, previous = 0, 'O'
    for _, line in _lines(path):
        tag = line.rpartition('\t')[2] if '\t' in line and not _starts_document(line) else 'O'
        if tag.startswith('B-') or (tag.startswith('I-') and previous[2:] != tag[2:]):
            count += 1
        previous = tag
    return count


def dataset_folders(settings: Ner) -> list[Path]:
    """The folders of the chosen sets, or of all of them. Errors name the key or the folder."""
    if not settings.folder:
        raise ConfigError('config.ner.folder: is empty; set it to a folder of NAME/{train,devel,test}.tsv')
    root = Path(settings.folder)
    if not root.is_dir():
        raise InputError(
            f'{root}: no such folder; config.ner.folder needs NAME/{{train,devel,test}}.tsv in it'
        )
    known = sorted(p.name for p in root.iterdir() if (p / 'train.tsv').is_file())
    wrong = [name for name in settings.datasets if name not in known]
    if wrong or not known:
        raise InputError(
            f'{root}: has no set {", ".join(wrong) or "at all"}; found: {", ".join(known) or "none"}'
        )
    return [root / name for name in settings.datasets or known]


def dataset_files(settings: Ner) -> list[Path]:
    """Every file that the chosen sets are read from."""
    return [folder / f'{name}.tsv' for folder in dataset_folders(settings) for name in SPLITS]


def _starts_document(line: str) -> bool:
    return line.startswith('-DOCSTART-')


def _lines(path: Path) -> Iterator[tuple[int, str]]:
    try:
        content = path.read_bytes()
    except FileNotFoundError as error:
        raise InputError(f'{path}: no such file; a set needs train.tsv, devel.tsv and test.tsv') from error
    # Split on line feeds only: str.splitlines would also cut at U+0085, U+2028 and others, found in tokens.
    for number, raw in enumerate(content.removeprefix(b'\xef\xbb\xbf').split(b'\n'), 1):
        try:
            yield number, raw.decode('utf-8').rstrip('\r')
        except UnicodeDecodeError as error:
            raise InputError(f'{path}:{number}: is not UTF-8 ({error.reason}); convert the file') from error


def _columns(path: Path, number: int, line: str) -> tuple[str, str]:
    columns = line.split('\t')
    if len(columns) != 2 or not columns[0]:
        raise InputError(
            f'{path}:{number}: expected token TAB tag, found {len(columns)} columns in {line[:60]!r}'
        )
    if not TAG.fullmatch(columns[1]):
        raise InputError(f'{path}:{number}: unknown tag {columns[1]!r}; IOB2 has O, B-TYPE and I-TYPE')
    return columns[0], columns[1]
