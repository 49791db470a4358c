"""Texts to be answered: from the command line, plain files, PubTator, JSON, folders."""

import dataclasses
import sys
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from pathlib import Path

from bioptimus_jax.errors import InputError
from bioptimus_jax.finetune.outside import JSON, json_objects, words_of
from bioptimus_jax.inference.foreign import documents, refuse_packed
from bioptimus_jax.sets.corpora import PUBTATOR
from bioptimus_jax.sets.sentences import bytes_of, decoded

READ = ('.txt', *JSON, *PUBTATOR)
"""Endings of the files that are read in a folder."""
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

    `inputs`: files, folders, or - for standard input. JSON has objects with "text", or "words" of two texts, and
    perhaps "id". `by_line`: a line of a plain file is one text, or two with a tab; otherwise the file is. Each document
    of PubTator is one text, title and abstract. `labels`: of the model, none of which is the second of two texts.
    `any_number`: "words" may be any number of texts.
    """
    found = [
        Given(f'text-{n}', _apart(f'--text {n}', text, by_line), f'--text {n}')
        for n, text in enumerate(texts, 1)
    ]
    for name in inputs:
        path = Path(name)
        if name == STDIN:
            found += _read('stdin', 'standard input', sys.stdin.buffer.read(), by_line)
        elif path.is_dir():
            files = [file for file in sorted(path.iterdir()) if file.name.endswith(READ) and file.is_file()]
            if not files:
                raise InputError(f'{path}: holds no .txt, {", ".join(JSON)} or {PUBTATOR[0]}; name files')
            found += [one for file in files for one in _of_file(file, by_line, any_number)]
        elif path.is_file():
            found += _of_file(path, by_line, any_number)
        else:
            raise InputError(f'{path}: no such file or folder; a text itself is given with --text')
    if found and not any(part.strip() for one in found for part in one.texts):
        raise InputError(f'{found[0].place}: holds no text')
    if not found:
        raise InputError('nothing to read; give files, folders, - for standard input, or --text')
    pairs = [one for one in found if len(one.texts) == 2]
    if pairs and all(one.texts[1].strip() in labels for one in pairs):
        raise InputError(
            f'{pairs[0].place}: has the label {pairs[0].texts[1].strip()!r} in place of a second text; give the texts '
            'alone'
        )
    return list(_named_apart(found))


def _of_file(file: Path, by_line: bool, any_number: bool) -> Iterator[Given]:
    if file.suffix not in JSON:
        yield from _read(file.stem, str(file), bytes_of(file), by_line, file.name)
        return
    for number, (line, entry) in enumerate(json_objects(file), 1):
        texts = words_of(file, line, entry)
        if not texts or (len(texts) > 2 and not any_number) or not all(text.strip() for text in texts):
            raise InputError(f'{file}:{line}: has no "text", and no "words" of one text or two')
        name = entry.get('id')
        yield Given(f'{file.stem}-{number}' if name in (None, '') else str(name), texts, f'{file}:{line}')


def _read(name: str, place: str, content: bytes, by_line: bool, file: str = '') -> Iterator[Given]:
    """The texts of a file that is not JSON, by what it is called and what it holds."""
    refuse_packed(place, content)
    text = decoded(place, content).removeprefix('\ufeff')
    marked = documents(file, place, text)
    if marked is None:
        yield from _plain(name, place, text, by_line)
    else:
        yield from (Given(called, (document,), place) for called, document in marked)


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
