"""Mentions that are marked by character offsets: BRAT (.txt + .ann), shared tasks of BioNLP (.a1, .a2), PubTator."""

import itertools
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from bioptimus_jax.errors import InputError
from bioptimus_jax.sets.characters import Marked, Mention, reading
from bioptimus_jax.sets.folders import BRAT, MARKS, documents_of, form_of_folder
from bioptimus_jax.sets.sentences import GZIPPED, SplitReading, text_of
from bioptimus_jax.sets.tags import type_name

OFFSET = r'\d{1,18}'
"""A place in a text: none is longer, and of thousands of digits Python makes no number."""
BRAT_MENTION = re.compile(rf'T\S+\t(\S+) ({OFFSET} {OFFSET}(?:;{OFFSET} {OFFSET})*)\t(.*)')
PUBTATOR_TEXT = re.compile(r'(\S+?)\|([ta])\|(.*)')
OF_A2 = 'mentions of .a2, which in sets of events are the words that name events'


def read_brat(folder: Path) -> SplitReading:
    """All documents NAME.txt of a folder with NAME.ann, or NAME.a1 and perhaps NAME.a2, beside each.

    Raises InputError with file and line.
    """
    repairs: Counter[str] = Counter()
    return reading(folder, brat_documents(folder, repairs), repairs)


def brat_documents(folder: Path, repairs: Counter[str]) -> list[Marked]:
    """The documents of a folder as they are marked, by their names. Raises InputError."""
    found = documents_of(folder, MARKS.get(form_of_folder(folder), MARKS[BRAT]), repairs)
    return [_brat_document(name, text, marks, repairs) for name, (text, *marks) in found.items()]


def read_pubtator(path: Path) -> SplitReading:
    """Titles, abstracts and mentions of a PubTator file; relations are counted only. Raises InputError."""
    repairs: Counter[str] = Counter()
    return reading(path, pubtator_documents(path, repairs), repairs)


def is_pubtator(path: Path) -> bool:
    """Whether the first line of a file is that of a document of PubTator, whatever the file is called."""
    if path.name.endswith(GZIPPED):
        return PUBTATOR_TEXT.fullmatch(text_of(path).lstrip('\n').split('\n', 1)[0].rstrip('\r')) is not None
    with open(path, 'rb') as file:
        first = file.readline(2**20).decode('utf-8', 'ignore').removeprefix('\ufeff').rstrip('\r\n')
    return PUBTATOR_TEXT.fullmatch(first) is not None


def pubtator_documents(path: Path, repairs: Counter[str]) -> list[Marked]:
    """The documents of a PubTator file as they are marked, in its order. Raises InputError."""
    lines = text_of(path).removeprefix('\ufeff').split('\n')
    blocks = apart([line.rstrip('\r') for line in lines])
    return [_pubtator_document([(f'{path}:{n}', line) for n, line in block], repairs) for block in blocks]


def apart(lines: Iterable[str]) -> Iterator[list[tuple[int, str]]]:
    """The lines of each document of PubTator with their numbers: a blank line or the title of another one ends it."""
    block: list[tuple[int, str]] = []
    name = ''
    for number, line in enumerate(lines, 1):
        title = PUBTATOR_TEXT.fullmatch(line)
        other = title is not None and title[2] == 't' and title[1] != name
        if block and (other or not line.strip()):
            yield block
            block = []
        name = title[1] if title else name
        if line.strip():
            block.append((number, line))
    if block:
        yield block


def document_parts(block: Iterable[tuple[int, str]]) -> tuple[str, dict[str, str], int]:
    """The name of a document of PubTator, its parts (the title as t, the abstract as a), and the number of the first
    line that is neither one of them nor a mention of it, 0 for none."""
    name, parts = '', dict[str, str]()
    for number, line in block:
        match = PUBTATOR_TEXT.fullmatch(line)
        if match and (not name or match[1] == name) and match[2] not in parts:
            name, parts[match[2]] = match[1], match[3]
        elif match or line.split('\t')[0] != name:
            return name, parts, number
    return name, parts, 0


def _brat_document(name: str, text_file: Path, marks: Sequence[Path], repairs: Counter[str]) -> Marked:
    text = text_of(text_file)
    mentions: list[Mention] = []
    for file in marks:
        found = list(_brat_mentions(file, text, repairs))
        mentions += found
        repairs[OF_A2] += len(found) * (file.suffix == '.a2')
    return Marked(text, tuple(mentions), str(text_file), name)


def _brat_mentions(file: Path, text: str, repairs: Counter[str]) -> Iterator[Mention]:
    """The mentions of a file of annotations. Raises InputError with file and line."""
    for number, line in enumerate(text_of(file).removeprefix('\ufeff').split('\n'), 1):
        where, line = f'{file}:{number}', line.rstrip('\r')
        if not line.startswith('T'):
            if line and line[0] not in 'REAMNF*#':
                raise InputError(f'{where}: no BRAT annotation begins with {line[:20]!r}')
            repairs['annotations that are not mentions'] += bool(line)
            continue
        match = BRAT_MENTION.fullmatch(line)
        if not match:
            raise InputError(f'{where}: expected ID TAB type start end TAB text, found {line[:60]!r}')
        offsets = [(int(a), int(b)) for a, b in (part.split() for part in match[2].split(';'))]
        covered = ' '.join(text[a:b] for a, b in offsets)
        start, end = min(a for a, _ in offsets), max(b for _, b in offsets)
        # BRAT cuts at line breaks too; those are no gaps.
        gaps = sum(bool(text[a:b].strip()) for (_, a), (b, _) in itertools.pairwise(offsets))
        yield mention(where, text, match[1], start, end, match[3], covered, repairs, 1 + gaps)


def _pubtator_document(lines: list[tuple[str, str]], repairs: Counter[str]) -> Marked:
    """The document of these lines, each with its place."""
    name, parts, mentions = '', dict[str, str](), list[Mention]()
    for where, line in lines:
        if (match := PUBTATOR_TEXT.fullmatch(line)) and not mentions:
            if (parts and match[1] != name) or match[2] in parts:
                raise InputError(f'{where}: a blank line is missing before document {match[1]}')
            name, parts[match[2]] = match[1], match[3]
            continue
        columns = line.split('\t')
        if not parts or columns[0] != name:
            raise InputError(f'{where}: belongs to no document (ID|t|title, ID|a|abstract) above it')
        if len(columns) < 3 or not (columns[1].isdecimal() and columns[2].isdecimal()):
            repairs['annotations that are not mentions'] += 1
            continue
        if len(columns) < 5 or not columns[4].strip() or not are_offsets(*columns[1:3]):
            raise InputError(f'{where}: expected ID, start, end, text and type between tabs')
        text = title_and_abstract(parts)
        start, end, kind = int(columns[1]), int(columns[2]), type_name(columns[4])
        mentions.append(mention(where, text, kind, start, end, columns[3], text[start:end], repairs))
    return Marked(title_and_abstract(parts), tuple(mentions), lines[0][0], name)


def are_offsets(*given: str) -> bool:
    """Whether all of these are places in a text."""
    return all(re.fullmatch(OFFSET, one) for one in given)


def title_and_abstract(parts: Mapping[str, str]) -> str:
    """The text that offsets of PubTator refer to; `parts`: the title as t, the abstract as a."""
    # Offsets of PubTator count one character between the two, also where one of them is missing.
    return '\n'.join((parts.get('t', ''), parts.get('a', '')))


def mention(
    where: str,
    text: str,
    kind: str,
    start: int,
    end: int,
    expected: str,
    covered: str,
    repairs: Counter[str],
    pieces: int = 1,
) -> Mention:
    """A mention, trimmed of white space, whose letters and digits are those that the annotation quotes.

    NCBI-disease quotes blanks for the quotation marks of its text, and other sets quote `TNF-a` for `TNF-α`: the
    offsets decide, and it is counted.
    """
    exact = covered.split() == expected.split()
    same = exact or _letters(covered) == _letters(expected) != '' or _in_ascii(covered, expected)
    own = text[start:end].replace('\0', ' ')
    if end > len(text) or not own.strip() or not same:
        raise InputError(
            f'{where}: characters {start} to {end} of the text are {covered[:60]!r}, not {expected[:60]!r}; '
            'offsets count Unicode characters of the unchanged text'
        )
    repairs['annotations that quote other punctuation, blanks or letters than their text has'] += not exact
    return Mention(kind, start + len(own) - len(own.lstrip()), end - len(own) + len(own.rstrip()), pieces)


def _in_ascii(covered: str, expected: str) -> bool:
    """Whether a quotation is as long as the text and differs only in characters that are not ASCII in the text."""
    pairs = list(zip(covered, expected, strict=False))
    alike = sum(own == quoted for own, quoted in pairs)
    return (
        len(covered) == len(expected)
        and 2 * alike >= len(pairs)
        and all(own == quoted or (not own.isascii() and quoted.isascii()) for own, quoted in pairs)
    )


def _letters(text: str) -> str:
    return ''.join(filter(str.isalnum, text))
