"""Answers for people and programs: coloured text, TSV, JSON lines, HTML, BRAT."""

import contextlib
import dataclasses
import gzip
import html
import io
import json
import sys
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import IO, Any

from bioptimus_jax.errors import InputError, printable
from bioptimus_jax.finetuning.entities.files import LINE_BREAKS, brat_line
from bioptimus_jax.inference.answer import Answer, AnswerSpan
from bioptimus_jax.inference.given import Given
from bioptimus_jax.progress.console import coloured
from bioptimus_jax.storage.files import JsonObject, atomic

COLOURS = (36, 35, 32, 33, 34, 31)
"""Colours of a terminal for types of entities in the order in which they come."""
HUES = (200, 320, 120, 40, 260, 0)
"""The same on a page."""
SHOWN = 5
"""Labels of a text that are shown beside the first."""
LONGEST = 200
"""Bytes of a file's name, without its ending."""


@dataclasses.dataclass(frozen=True)
class Form:
    """How answers are written: what comes before all of them, for each, and behind all.

    `printable`: whether control characters of a text are escaped, wherever it is written.
    """

    one: Callable[[Answer, 'Types'], str]
    before: str = ''
    after: str = ''
    printable: bool = False


class Types:
    """Types of entities, numbered as they come; `coloured` where what is written is a terminal."""

    def __init__(self, coloured: bool) -> None:
        self.coloured, self._numbers = coloured, dict[str, int]()

    def number(self, kind: str) -> int:
        return self._numbers.setdefault(kind, len(self._numbers))

    def marked(self, kind: str, text: str) -> str:
        """The text in its kind's colour, or in brackets."""
        if not self.coloured:
            return f'[{text}]'
        return f'\x1b[{COLOURS[self.number(kind) % len(COLOURS)]};1m{text}\x1b[0m'


def write(answers: Iterable[Answer], form: str, to: Path | None) -> None:
    """Write answers in a form of FORMS, or as BRAT, as they come, into a file or to the terminal."""
    if form == BRAT:
        assert to is not None
        for answer in answers:
            _write_brat(answer, to)
    elif to is None:
        terminal = sys.stdout.isatty()
        # A form that escapes by itself has put colours in, which must not be escaped.
        safe = printable if terminal and not FORMS[form].printable else str
        _write_all(
            answers, FORMS[form], Types(coloured()), lambda text: print(safe(text), end='', flush=True)
        )
    else:
        with _opened(to) as file:
            _write_all(answers, FORMS[form], Types(False), file.write)


@contextlib.contextmanager
def _opened(to: Path) -> Iterator[IO[str]]:
    """A file for text, compressed where it is called .gz, which is there under its name only when it is complete."""
    with atomic(to, 'wb') as raw:
        packed = gzip.GzipFile('', 'wb', fileobj=raw, mtime=0) if to.suffix == '.gz' else raw
        with io.TextIOWrapper(packed, 'utf-8', newline='\n') as file:
            yield file


def _write_all(answers: Iterable[Answer], form: Form, types: Types, put: Callable[[str], Any]) -> None:
    put(form.before)
    for answer in answers:
        put(form.one(answer, types))
    put(form.after)


def file_name(name: str) -> str:
    """A name without what no name of a file can hold, and no longer than one can be."""
    held = ''.join('_' if c == '/' or unicodedata.category(c) in ('Cc', 'Cs') else c for c in name)
    return held.encode('utf-8')[:LONGEST].decode('utf-8', 'ignore') or 'text'


def require_file_names(given: Iterable[Given]) -> None:
    """Raises InputError where two texts would be written into one file of BRAT."""
    first: dict[str, Given] = {}
    for one in given:
        other = first.setdefault(file_name(one.name), one)
        if other is not one:
            raise InputError(
                f'{one.place}: {one.name[:60]!r} and {other.name[:60]!r} ({other.place}) would both be written as '
                f'{file_name(one.name)[:60]}.txt; give one another name, or choose another form'
            )


def _write_brat(answer: Answer, to: Path) -> None:
    """NAME.txt and NAME.ann."""
    [text] = answer.given.texts
    name = file_name(answer.given.name)
    with atomic(to / f'{name}.txt') as file:
        file.write(text)
    with atomic(to / f'{name}.ann') as file:
        for at, one in enumerate(answer.found, 1):
            file.write(brat_line(at, one.kind, one.start, one.end, text[one.start : one.end]))


def _stretches(answer: Answer) -> Iterator[tuple[str, AnswerSpan | None]]:
    """The text in pieces: what was found, and what is between."""
    text, at = '\t'.join(answer.given.texts), 0
    for one in answer.found:
        yield text[at : one.start], None
        yield text[one.start : one.end], one
        at = one.end
    yield text[at:], None


def _spoken(answer: Answer) -> list[str]:
    """What is said of all of the text, then the other labels: `relation 0.98` and `none 0.02`, or a number."""
    if not answer.labels:
        return [f'{number:.4g}' for number in answer.said]
    shown = [(name in answer.said, f'{name} {sure:.2f}') for name, sure in answer.labels]
    chosen, others = ([one for said, one in shown if said == wanted] for wanted in (True, False))
    return [', '.join(chosen) or 'none', *filter(None, [', '.join(others[:SHOWN])])]


def _text(answer: Answer, types: Types) -> str:
    parts = []
    for stretch, one in _stretches(answer):
        parts.append(printable(stretch))
        if one is not None:
            said = ' '.join(f'{word} {sure:.2f}' for word, sure in one.others) or one.kind
            parts[-1] = types.marked(one.kind, f'{parts[-1]} ({printable(said)})')
    spoken = ''.join(f'  {printable(line)}\n' for line in _spoken(answer)[:1])
    return f'{printable(answer.given.name)}: {"".join(parts).strip()}\n{spoken}'


def _tsv(answer: Answer, types: Types) -> str:
    text, name, sure = '\t'.join(answer.given.texts), answer.given.name, dict(answer.labels)
    rows: list[tuple[Any, ...]] = [
        (name, one.start, one.end, kind, f'{probability:.4f}', text[one.start : one.end])
        for one in answer.found
        for kind, probability in one.others or ((one.kind, one.probability),)
    ]
    # A text that no label holds for has a row, too, with an empty answer.
    for said in answer.said or ('',) * bool(answer.labels):
        of_label = (
            (said, f'{sure[said]:.4f}' if said else '') if isinstance(said, str) else (f'{said:.6g}', '')
        )
        rows.append((name, 0, len(text), *of_label, text))
    return ''.join('\t'.join(str(cell).translate(LINE_BREAKS) for cell in row) + '\n' for row in rows)


def answer_record(answer: Answer) -> JsonObject:
    """An answer as a JSON value: id, text or words, and entities, answers or masks with their probabilities."""
    texts = answer.given.texts
    record: JsonObject = {'id': answer.given.name}
    record |= {'text': texts[0]} if len(texts) == 1 else {'words': list(texts)}
    if answer.said or answer.labels:
        record['answers'] = list(answer.said)
        record |= {'probabilities': dict(answer.labels)} if answer.labels else {}
    elif any(one.others for one in answer.found):
        record['masks'] = [
            {'start': o.start, 'end': o.end, 'words': [*map(list, o.others)]} for o in answer.found
        ]
    else:
        record['entities'] = [[one.start, one.end, one.kind] for one in answer.found]
        record['probabilities'] = [round(one.probability, 4) for one in answer.found]
    return record


def _json(answer: Answer, types: Types) -> str:
    return json.dumps(answer_record(answer), ensure_ascii=False) + '\n'


def _html(answer: Answer, types: Types) -> str:
    parts = []
    for stretch, one in _stretches(answer):
        shown = html.escape(stretch).replace('\n', '<br>')
        if one:
            said = (
                ', '.join(f'{word} {sure:.2f}' for word, sure in one.others)
                or f'{one.kind} {one.probability:.2f}'
            )
            hue = HUES[types.number(one.kind) % len(HUES)]
            kind = f'<small>{html.escape(one.kind)}</small>'
            shown = f'<mark style="--hue:{hue}" title="{html.escape(said)}">{shown} {kind}</mark>'
        parts.append(shown)
    said = ''.join(f'<p class="said">{html.escape(line)}</p>' for line in _spoken(answer) if line)
    return (
        f'<article><h2>{html.escape(answer.given.name)}</h2><p>{"".join(parts).strip()}</p>{said}</article>\n'
    )


PAGE = """<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>Answers</title><style>
:root { color-scheme: light dark; --light: 88%; --text: 15%; }
@media (prefers-color-scheme: dark) { :root { --light: 25%; --text: 92%; } }
body { font: 16px/1.7 system-ui, sans-serif; max-width: 46rem; margin: 2rem auto; padding: 0 1rem; }
h2 { font-size: 0.85rem; opacity: 0.65; margin: 1.5rem 0 0; }
p { margin: 0.25rem 0; overflow-wrap: anywhere; }
mark { background: hsl(var(--hue) 70% var(--light)); color: hsl(0 0% var(--text)); }
mark { border-radius: 0.3em; padding: 0.1em 0.3em; }
small { font-size: 0.7em; font-weight: 600; opacity: 0.8; }
.said { font-size: 0.9rem; opacity: 0.85; }
</style></head><body>
"""
BRAT = 'brat'
FORMS: Mapping[str, Form] = {
    'text': Form(_text, printable=True),
    'tsv': Form(_tsv, 'id\tstart\tend\tanswer\tprobability\ttext\n'),
    'json': Form(_json),
    'html': Form(_html, PAGE, '</body></html>\n'),
}
