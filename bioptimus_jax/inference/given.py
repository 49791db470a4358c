"""Texts to be answered: from the command line, plain files, and every form that sets are read in, without answers."""

import dataclasses
import sys
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from pathlib import Path

from bioptimus_jax.errors import InputError
from bioptimus_jax.inference.foreign import documents
from bioptimus_jax.progress.console import complain, numbered, shortened
from bioptimus_jax.sets.corpora import ENDINGS
from bioptimus_jax.sets.cutting import bare_text
from bioptimus_jax.sets.described import FILE
from bioptimus_jax.sets.folders import BESIDE_TEXTS
from bioptimus_jax.sets.foreign.forms import TABLE, form_of_name, form_of_text, read_items, read_source
from bioptimus_jax.sets.foreign.items import TEXTS_ALONE, Item, Source
from bioptimus_jax.sets.foreign.names import FILE as LABELS
from bioptimus_jax.sets.foreign.names import INFOS
from bioptimus_jax.sets.foreign.refused import READ, refuse_packed, refuse_unread
from bioptimus_jax.sets.sentences import GZIP_BEGINS, bytes_of, decoded, plain_name, unpacked
from bioptimus_jax.sets.tags import is_tag
from bioptimus_jax.storage import tables

READ_ENDINGS = (*(end for endings in ENDINGS.values() for end in endings), *tables.READERS)
"""Endings of the files that are read in a folder."""
BESIDE = (*BESIDE_TEXTS, '.md5')
NO_TEXTS = (*INFOS, FILE, tables.STATE, tables.SPLITS)
"""Files beside texts that are not answered: marks, names of labels, what `datasets` writes."""
STDIN = '-'


@dataclasses.dataclass(frozen=True)
class Given:
    """One text, or two that are read together. `name`: of its file, record or line; `place`: for messages.

    `called`: its name where it has another one here, since an earlier text is called so.
    """

    name: str
    texts: tuple[str, ...]
    place: str
    called: str = ''


def read_given(
    inputs: Sequence[str],
    texts: Sequence[str],
    by_line: bool,
    labels: Collection[str] = (),
    any_number: bool = False,
) -> list[Given]:
    """All texts in their order, their names as they are, but for a number where two are the same. Raises InputError
    that names file and line.

    `inputs`: files, folders with all that is in them, or - for standard input. `by_line`: a line of a plain file is one
    text, or two with a tab; otherwise the file is. Each document of PubTator and BioC is one text. `labels`: of the
    model, none of which is the second of two texts. `any_number`: "words" may be any number of texts. Texts that hold
    nothing are left out, and so are files of a folder that are no texts; both is said.
    """
    found = [
        Given(f'text-{n}', _apart(f'--text {n}', text, by_line), f'--text {n}')
        for n, text in enumerate(texts, 1)
    ]
    for name in inputs:
        path = Path(name)
        if name == STDIN:
            content = sys.stdin.buffer.read()
            content = unpacked('standard input', content) if content.startswith(GZIP_BEGINS) else content
            found += _read('stdin', 'standard input', content, by_line, any_number)
        elif path.is_dir():
            files = _files_in(path)
            if not files:
                raise InputError(f'{path}: holds no file that is read ({READ}); name files')
            for file in files:
                within = file.parent.relative_to(path).as_posix()
                prefix = '' if within == '.' else f'{within}/'
                found += [
                    dataclasses.replace(one, name=f'{prefix}{one.name}')
                    for one in _of_file(file, by_line, any_number)
                ]
        elif path.is_file():
            found += _of_file(path, by_line, any_number)
        else:
            raise InputError(f'{path}: no such file or folder; a text itself is given with --text')
    filled = [one for one in found if any(part.strip() for part in one.texts)]
    if found and not filled:
        raise InputError(f'{found[0].place}: holds no text')
    if len(filled) < len(found):
        first = next(one.place for one in found if not any(part.strip() for part in one.texts))
        complain(
            f'left out, as nothing is in them: {numbered(len(found) - len(filled), "text")}, the first is {first}'
        )
    found = filled
    if not found:
        raise InputError('nothing to read; give files, folders, - for standard input, or --text')
    pairs = [one for one in found if len(one.texts) == 2]
    if pairs and all(one.texts[1].strip() in labels for one in pairs):
        raise InputError(
            f'{pairs[0].place}: has the label {pairs[0].texts[1].strip()!r:.60} in place of a second text; give the '
            'texts alone'
        )
    return list(_named_apart(found))


def _files_in(folder: Path) -> list[Path]:
    """The files of a folder and of those in it that are read, by their names; others are said to be left out."""
    every = sorted(
        path
        for path in folder.rglob('*')
        if path.is_file() and not any(part.startswith('.') for part in path.relative_to(folder).parts[:-1])
    )
    files = [path for path in every if path.name.endswith(READ_ENDINGS) and not _is_beside(path)]
    # A table in several files is read from its first one.
    files = [path for path in files if not tables.is_table(path) or tables.shards(path)[0] == path]
    left = [
        path.name
        for path in every
        if not path.name.endswith((*READ_ENDINGS, *BESIDE)) and not path.name.startswith('.')
    ]
    if left and files:
        complain(f'{folder}: {numbered(len(left), "file")} left out, as they are no texts: {shortened(left)}')
    return files


def _is_beside(path: Path) -> bool:
    return path.name in NO_TEXTS or LABELS.fullmatch(path.name) is not None


def _of_file(file: Path, by_line: bool, any_number: bool) -> Iterator[Given]:
    stem = plain_name(file).rpartition('.')[0] or plain_name(file)
    if form_of_name(file) == TABLE:
        yield from _of_items(stem, read_items(file, TEXTS_ALONE).items, any_number)
        return
    refuse_unread(file)
    yield from _read(stem, str(file), bytes_of(file), by_line, any_number, file)


def _read(
    name: str, place: str, content: bytes, by_line: bool, any_number: bool, file: Path | None = None
) -> Iterator[Given]:
    """The texts of a file or of standard input, by what it is called and what it holds."""
    refuse_packed(place, content)
    text = decoded(place, content).removeprefix('\ufeff')
    form = (form_of_name(file) if file else '') or form_of_text(text)
    if form:
        source = Source(place, file, text)
        yield from _of_items(name, read_source(source, form, TEXTS_ALONE).items, any_number)
        return
    marked = documents(file, place, text)
    if marked is None:
        yield from _plain(name, place, text, by_line)
    else:
        yield from (Given(called, (document,), place) for called, document in marked)


def _of_items(name: str, items: Sequence[Item], any_number: bool) -> Iterator[Given]:
    """The texts of records, whose answers are not read. Raises InputError for one without a text."""
    for number, item in enumerate(items, 1):
        texts = item.texts
        if item.words and (not texts or _are_tagged(item)):
            texts = (bare_text(item.words),)
        blank = [not text.strip() for text in texts]
        if not texts or (len(texts) > 2 and not any_number) or (any(blank) and not all(blank)):
            raise InputError(f'{item.place}: has no "text", and no "words" of one text or two')
        yield Given(item.name or f'{name}-{number}', texts, item.place)


def _are_tagged(item: Item) -> bool:
    """Whether the words of a record are those of a sentence, with a tag for each."""
    tags = item.tags or ()
    return len(tags) == len(item.words or ()) and all(map(is_tag, tags))


def _plain(name: str, place: str, content: str, by_line: bool) -> Iterator[Given]:
    if not by_line:
        yield Given(name, (content,), place)
        return
    for number, line in enumerate(content.split('\n'), 1):
        if line.strip():
            where = f'{place}:{number}'
            yield Given(f'{name}-{number}', _apart(where, line.rstrip('\r'), True), where)


def _apart(place: str, text: str, by_line: bool) -> tuple[str, ...]:
    parts = tuple(text.split('\t')) if by_line else (text,)
    if len(parts) > 2:
        raise InputError(
            f'{place}: has {len(parts)} columns; one text is expected, or two with a tab between'
        )
    return parts


def _named_apart(given: Iterable[Given]) -> Iterator[Given]:
    """No two names are the same, so that answers can be told apart."""
    taken: Counter[str] = Counter()
    for one in given:
        # What no file can be written with: half of a character, in JSON or of a name that is not UTF-8.
        plain = one.name.encode('utf-8', 'replace').decode('utf-8')
        taken[plain] += 1
        name, number = plain, taken[plain]
        while name in taken and number > 1:
            name, number = f'{plain}-{number}', number + 1
        taken[name] += name != plain
        yield dataclasses.replace(one, name=name, called=plain if name != plain else '')
