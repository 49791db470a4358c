"""Texts to be answered: from the command line, plain files, JSON, folders."""

import dataclasses
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from bioptimus_jax.errors import InputError
from bioptimus_jax.finetune.outside import JSON, json_objects, words_of
from bioptimus_jax.sets.sentences import decoded, text_of

READ = ('.txt', *JSON)
"""Endings of the files that are read in a folder."""
STDIN = '-'


@dataclasses.dataclass(frozen=True)
class Given:
    """One text, or two that are read together. `name`: of its file, record or line; `place`: for messages."""

    name: str
    texts: tuple[str, ...]
    place: str


def read_given(inputs: Sequence[str], texts: Sequence[str], by_line: bool) -> list[Given]:
    """All texts, their names made different. Raises InputError that names file and line.

    `inputs`: files, folders, or - for standard input. JSON has objects with "text", or "words" of two texts, and
    perhaps "id". `by_line`: a line of a plain file is one text, or two with a tab; otherwise the file is.
    """
    found = [Given(f'text-{n}', _apart(text, by_line), f'--text {n}') for n, text in enumerate(texts, 1)]
    for name in inputs:
        path = Path(name)
        if name == STDIN:
            content = decoded('standard input', sys.stdin.buffer.read())
            found += _plain('stdin', 'standard input', content, by_line)
        elif path.is_dir():
            files = [file for file in sorted(path.iterdir()) if file.suffix in READ and file.is_file()]
            if not files:
                raise InputError(f'{path}: holds no {", ".join(READ)}; name files')
            found += [one for file in files for one in _of_file(file, by_line)]
        elif path.is_file():
            found += _of_file(path, by_line)
        else:
            raise InputError(f'{path}: no such file or folder; a text itself is given with --text')
    if not found:
        raise InputError('nothing to read; give files, folders, - for standard input, or --text')
    return list(_named_apart(found))


def _of_file(file: Path, by_line: bool) -> Iterator[Given]:
    if file.suffix not in JSON:
        yield from _plain(file.stem, str(file), text_of(file).removeprefix('\ufeff'), by_line)
        return
    for number, (line, entry) in enumerate(json_objects(file), 1):
        texts = words_of(file, line, entry)
        if not texts or len(texts) > 2 or not all(text.strip() for text in texts):
            raise InputError(f'{file}:{line}: has no "text", and no "words" of one text or two')
        yield Given(str(entry.get('id', f'{file.stem}-{number}')), texts, f'{file}:{line}')


def _plain(name: str, place: str, content: str, by_line: bool) -> Iterator[Given]:
    if not content.strip():
        raise InputError(f'{place}: holds no text')
    if not by_line:
        yield Given(name, (content,), place)
        return
    for number, line in enumerate(content.split('\n'), 1):
        if line.strip():
            yield Given(f'{name}-{number}', _apart(line.rstrip('\r'), True), f'{place}:{number}')


def _apart(text: str, by_line: bool) -> tuple[str, ...]:
    return tuple(text.split('\t', 1)) if by_line else (text,)


def _named_apart(given: Iterable[Given]) -> Iterator[Given]:
    """Names can be those of files, and no two are the same."""
    taken: Counter[str] = Counter()
    for one in given:
        plain = ''.join(c if c.isalnum() or c in '-_.' else '_' for c in one.name).lstrip('.') or 'text'
        taken[plain] += 1
        name = plain if taken[plain] == 1 else f'{plain}-{taken[plain]}'
        taken[name] += name != plain  # a later text may have this very name
        yield dataclasses.replace(one, name=name)
