"""How the columns of one's own set of texts are read: text, label, or two texts, label; and what they must not be."""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

from bioptimus_jax.errors import InputError
from bioptimus_jax.progress.console import numbered
from bioptimus_jax.sets.quoting import count_quoted, is_open, unquoted
from bioptimus_jax.sets.sentences import text_of

ANSWERS = ('answer', 'class', 'gold', 'gold_label', 'label', 'labels', 'score')
"""What a header calls an answer."""
TEXTS = (
    *('abstract', 'content', 'context', 'document', 'id', 'index', 'input', 'passage', 'pmid', 'premise'),
    *('query', 'question', 'sentence', 'sentence1', 'sentence_1', 'text', 'text1', 'text_a', 'title'),
)
"""What it calls a text, or the column before one."""
SHORT = 40
"""Characters that the name of an example has at most."""
ENOUGH = 10
"""Lines of a file from which on what its columns hold is no accident."""
ColumnLine = tuple[str, int, list[str]]
"""A row: where it stands, as messages name it, its number in the split, and its columns."""


def width_of(rows: Sequence[ColumnLine]) -> int:
    """The number of columns, the last of which is the answer. Raises InputError for other than two or three, and where
    names of examples stand in place of texts."""
    if not rows:
        return 2
    where, _, first = rows[0]
    if len(first) not in (2, 3):
        raise InputError(
            f'{where}: expected text TAB answer or text TAB text TAB answer, '
            f'not {numbered(len(first), "column")}{across(first)}'
        )
    for at in range(len(first) - 1):
        cells = [columns[at].strip() for *_, columns in rows if len(columns) == len(first)]
        beside = [columns[1 - at].strip() for *_, columns in rows if len(columns) == len(first) == 3]
        if _are_names(cells, beside):
            raise InputError(
                f'{where}: column {at + 1} ({cells[0][:SHORT]}) holds names of examples and no texts, but columns '
                'before the answer are read as a text or a pair of texts; remove it'
            )
    return len(first)


def across(columns: Sequence[str]) -> str:
    """What to say of a line with too few columns where a text may go on in the next line."""
    if not is_open(columns):
        return ''
    return (
        '; a quoted text seems to go on in the next line: write each example in one line, without quotation '
        '(pandas: quoting=csv.QUOTE_NONE)'
    )


def refuse_header(rows: Sequence[ColumnLine]) -> None:
    """Raises InputError where the first line of a file is a header."""
    (where, _, first), said = rows[0], Counter(columns[-1].strip() for *_, columns in rows)
    *texts, answer = (cell.strip() for cell in first)
    if said[answer] > 1 or re.fullmatch(r'[-+\d.]+', answer):
        return
    names = all(len(text.split()) == 1 for text in texts)
    later = [columns[0] for *_, columns in rows[1:]]
    unlike = len(rows) >= ENOUGH and 2 * sum(len(text.split()) > 1 for text in later) > len(later)
    if answer.lower() in ANSWERS or (names and (unlike or not {*map(str.lower, texts)}.isdisjoint(TEXTS))):
        raise InputError(f'{where}: looks like a header; a set of your own has none, remove it')


def refuse_same_header(splits: Mapping[str, Sequence[ColumnLine]]) -> None:
    """Raises InputError where all splits begin with one line, whose answer no other line has."""
    firsts = [rows[0][2] for rows in splits.values()]
    answers = [[columns[-1].strip() for *_, columns in rows] for rows in splits.values()]
    names = all(len(text.split()) == 1 for text in firsts[0][:-1])
    if (
        all(first == firsts[0] for first in firsts)
        and all(given.count(given[0]) == 1 for given in answers)
        and (names or all(len(given) >= ENOUGH for given in answers))
    ):
        where = next(iter(splits.values()))[0][0]
        raise InputError(
            f'{where}: looks like a header, as all splits begin with it and no other line has its label '
            f'{answers[0][0]!r:.60}; a set of your own has none, remove it'
        )


def notes(files: Mapping[str, Path], rows: Sequence[ColumnLine], numbers: bool) -> list[str]:
    """How files were read, and what is odd about them; `rows`: those of train; `numbers`: answers are numbers."""
    answer, width = 'number' if numbers else 'label', len(rows[0][2])
    if width == 2:
        said = [f'column 1 is read as the text, column 2 as its {answer}']
    else:
        said = [f'columns 1 and 2 are read as a pair of texts, column 3 as its {answer}']
        for at in (0, 1):
            cells, beside = ([columns[place].strip() for *_, columns in rows] for place in (at, 1 - at))
            if _are_short(cells, beside):
                said.append(
                    f'column {at + 1} ({cells[0]}) has one word in every line: if it is the name of the example, '
                    'remove it'
                )
    answers = Counter(columns[-1].strip() for *_, columns in rows)
    first = rows[0][2][-1].strip()
    if not numbers and answers[first] == 1 and len(rows) >= ENOUGH:
        said.append(
            f'no other line of train than the first has the label {first!r:.60}: a header is to be removed'
        )
    return said + notes_on_quotes(files)


def notes_on_quotes(files: Mapping[str, Path]) -> list[str]:
    """How the quotation marks of files were read, where they have some."""
    return [note for split, file in files.items() for note in _quoted(split, file)]


def _quoted(split: str, file: Path) -> list[str]:
    text = text_of(file)
    if '"' not in text:
        return []
    lines = [line.rstrip('\r') for line in text.split('\n') if line.strip()]
    doubled = count_quoted(lines)
    if unquoted(lines):
        return [f'{split}: fields are quoted, and were read without the quotation marks around them']
    if doubled:
        return [
            f'{split}: {doubled:,} fields look quoted, but others have single quotation marks: all were left as they '
            'are'
        ]
    return []


def _are_short(cells: Sequence[str], beside: Sequence[str]) -> bool:
    """Whether one of two columns has a short word in every line, and the other mostly texts."""
    texts = sum(len(text.split()) > 1 for text in beside)
    return 2 * texts > len(beside) and all(len(x.split()) == 1 and len(x) <= SHORT for x in cells)


def _are_names(cells: Sequence[str], beside: Sequence[str]) -> bool:
    """Whether a column holds numbers, or words that are made alike and have numbers in them."""
    if not all(re.search(r'\d', cell) for cell in cells):
        return False
    if not any(letter.isalpha() for cell in cells for letter in cell):
        return True
    if 2 * len(set(cells)) < len(cells):  # some genes may stand before many texts
        return False
    made = {re.sub(r'\d+', '0', cell) for cell in cells}
    return _are_short(cells, beside) and 2 * len(made) <= len(cells)
