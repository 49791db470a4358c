"""Predicted entities as files: `token TAB gold TAB predicted`, and BRAT standoff for annotation tools.

Further columns of a line hold predicted mentions that overlap others (`tags.with_beside`).
"""

import itertools
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from bioptimus_jax.errors import InputError
from bioptimus_jax.finetuning.predictions import Predicted
from bioptimus_jax.progress.console import numbered
from bioptimus_jax.sets.columns import DOCUMENT
from bioptimus_jax.sets.tags import BESIDE, beside, spans, type_name
from bioptimus_jax.storage.files import atomic

PREDICTIONS = 'predictions.tsv'
COLUMNS = 'token TAB gold TAB predicted'
BEGINS = re.compile(f'{DOCUMENT}(?: ([0-9]{{1,9}}))?')
LINE_BREAKS = str.maketrans('\n\r\t', '   ')  # one character each, so that offsets stay


def write_predictions(path: Path, sentences: Sequence[Predicted]) -> None:
    """Write the TSV that `read_predictions` gives back: a blank line after each sentence and each -DOCSTART-.

    If sentences are out of the order of their documents, each -DOCSTART- has the number of its document after it.
    Raises InputError for a word that such a file cannot hold.
    """
    documents = any(s.document for s in sentences)
    in_order = all(one.document <= after.document for one, after in itertools.pairwise(sentences))
    started = -1
    with atomic(path) as file:
        for sentence in sentences:
            if documents and in_order:  # one line for each document, those without a sentence too
                file.write(f'{DOCUMENT}\n\n' * (sentence.document - started))
            elif sentence.document != started:
                file.write(f'{DOCUMENT} {sentence.document}\n\n' * documents)
            started = sentence.document
            for row in zip(sentence.words, sentence.gold, sentence.predicted, strict=True):
                if not row[0] or row[0] == DOCUMENT or any(c in row[0] for c in '\t\n'):
                    raise InputError(f'{path}: the word {row[0]!r} cannot be written as {COLUMNS}')
                file.write('\t'.join(row) + '\n')
            file.write('\n')


def read_predictions(path: Path) -> list[Predicted]:
    """The sentences of a file of `write_predictions`. Raises InputError that names file and line."""
    sentences: list[Predicted] = []
    rows: list[tuple[str, str, str]] = []
    document = -1
    for number, line in _lines(path):
        begins = BEGINS.fullmatch(line)
        if line and not begins:
            rows.append(_columns(path, number, line))
            continue
        if rows:
            words, gold, predicted = zip(*rows, strict=True)
            sentences.append(Predicted(words, gold, predicted, max(document, 0)))
            rows = []
        if begins:
            document = int(begins[1]) if begins[1] else document + 1
    if rows:
        raise InputError(
            f'{path}:{number}: ends within a sentence; the file was cut off, score the model again'
        )
    if not sentences:
        raise InputError(f'{path}: holds no sentence; expected lines of {COLUMNS}')
    return sentences


def write_standoff(folder: Path, sentences: Sequence[Predicted]) -> None:
    """Write predictions.txt, a sentence a line with single spaces between words, and predictions.ann for it (BRAT).

    A line of predictions.ann is `T1 TAB TYPE START END TAB text`: offsets count characters of predictions.txt.
    Line breaks and tabs within a word become spaces; white space in a type becomes `_`, as BRAT's types have none.
    """
    with atomic(folder / 'predictions.ann') as notes, atomic(folder / 'predictions.txt') as text:
        offset = number = 0
        for sentence in sentences:
            words = [word.translate(LINE_BREAKS) for word in sentence.words]
            line = ' '.join(words)
            starts = np.cumsum([offset, *(len(word) + 1 for word in words)])
            for kind, first, last in (*spans(sentence.predicted), *beside(sentence.predicted)):
                number += 1
                start, end = int(starts[first]), int(starts[last + 1]) - 1
                notes.write(brat_line(number, kind, start, end, line[start - offset : end - offset]))
            text.write(line + '\n')
            offset += len(line) + 1


def brat_line(number: int, kind: str, start: int, end: int, text: str) -> str:
    """BRAT's line of a mention: characters start..end, and their text. Neither it nor a type can hold line breaks."""
    return f'T{number}\t{type_name(kind)} {start} {end}\t{text.translate(LINE_BREAKS)}\n'


def _lines(path: Path) -> Iterator[tuple[int, str]]:
    try:
        content = path.read_bytes()
    except FileNotFoundError as error:
        raise InputError(f'{path}: no such file; score the model again') from error
    # Split on line feeds only: str.splitlines would also cut at U+0085, U+2028 and others, found in tokens.
    for number, raw in enumerate(content.split(b'\n'), 1):
        try:
            yield number, raw.decode('utf-8')
        except UnicodeDecodeError as error:
            raise InputError(
                f'{path}:{number}: is not UTF-8 ({error.reason}); score the model again'
            ) from error


def _columns(path: Path, number: int, line: str) -> tuple[str, str, str]:
    columns = line.split('\t')
    if len(columns) < 3 or not columns[0]:
        raise InputError(
            f'{path}:{number}: expected {COLUMNS}, found {numbered(len(columns), "column")} in {line[:60]!r}'
        )
    word, gold, *predicted = columns
    for tag in (gold, *predicted):
        if tag != 'O' and (tag[:2] not in ('B-', 'I-') or len(tag) == 2):
            raise InputError(f'{path}:{number}: unknown tag {tag!r}; IOB2 has O, B-TYPE and I-TYPE')
    return word, gold, BESIDE.join(predicted)
