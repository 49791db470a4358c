"""Mentions that are marked by character offsets in a text beside them: BRAT (.txt + .ann) and PubTator."""

import itertools
import re
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

from bioptimus_jax.errors import InputError
from bioptimus_jax.sets.characters import Marked, Mention, reading
from bioptimus_jax.sets.sentences import Reading, text_of

OFFSET = r'\d{1,18}'
"""A place in a text: none is longer, and of thousands of digits Python makes no number."""
BRAT_MENTION = re.compile(rf'T\S+\t(\S+) ({OFFSET} {OFFSET}(?:;{OFFSET} {OFFSET})*)\t(.*)')
PUBTATOR_TEXT = re.compile(r'(\S+?)\|([ta])\|(.*)')


def read_brat(folder: Path) -> Reading:
    """All documents NAME.txt of a folder with NAME.ann beside each. Raises InputError with file and line."""
    repairs: Counter[str] = Counter()
    return reading(folder, brat_documents(folder, repairs), repairs)


def brat_documents(folder: Path, repairs: Counter[str]) -> list[Marked]:
    """The documents of a folder as they are marked, by their names. Raises InputError."""
    texts, marks = ({p.stem: p for p in sorted(folder.glob(f'*{end}'))} for end in ('.txt', '.ann'))
    for name in sorted(texts.keys() ^ marks.keys()):
        there, ending = (texts[name], 'ann') if name in texts else (marks[name], 'txt')
        raise InputError(
            f'{there}: has no {name}.{ending} beside it; an empty .ann says that nothing is marked'
        )
    return [_brat_document(texts[name], marks[name], repairs) for name in texts]


def read_pubtator(path: Path) -> Reading:
    """Titles, abstracts and mentions of a PubTator file; relations are counted only. Raises InputError."""
    repairs: Counter[str] = Counter()
    return reading(path, pubtator_documents(path, repairs), repairs)


def pubtator_documents(path: Path, repairs: Counter[str]) -> list[Marked]:
    """The documents of a PubTator file as they are marked, in its order. Raises InputError."""
    lines = enumerate(text_of(path).removeprefix('\ufeff').split('\n'), 1)
    placed = ((f'{path}:{number}', line.rstrip('\r')) for number, line in lines)
    blocks = itertools.groupby(placed, lambda place_and_line: bool(place_and_line[1].strip()))
    return [_pubtator_document(list(block), repairs) for filled, block in blocks if filled]


def _brat_document(text_file: Path, marks_file: Path, repairs: Counter[str]) -> Marked:
    text = text_of(text_file)
    mentions = []
    for number, line in enumerate(text_of(marks_file).removeprefix('\ufeff').split('\n'), 1):
        line = line.rstrip('\r')
        if not line.startswith('T'):
            if line and line[0] not in 'REAMNF*#':
                raise InputError(f'{marks_file}:{number}: no BRAT annotation begins with {line[:20]!r}')
            repairs['annotations that are not mentions'] += bool(line)
            continue
        match = BRAT_MENTION.fullmatch(line)
        if not match:
            raise InputError(
                f'{marks_file}:{number}: expected ID TAB type start end TAB text, found {line[:60]!r}'
            )
        offsets = [(int(a), int(b)) for a, b in (part.split() for part in match[2].split(';'))]
        covered = ' '.join(text[a:b] for a, b in offsets)
        start, end = min(a for a, _ in offsets), max(b for _, b in offsets)
        # BRAT cuts at line breaks too; those are no gaps.
        gaps = sum(bool(text[a:b].strip()) for (_, a), (b, _) in itertools.pairwise(offsets))
        where = f'{marks_file}:{number}'
        mentions.append(mention(where, text, match[1], start, end, match[3], covered, repairs, 1 + gaps))
    return Marked(text, tuple(mentions), str(text_file), text_file.stem)


def _pubtator_document(lines: list[tuple[str, str]], repairs: Counter[str]) -> Marked:
    """The document of lines without a blank one among them, each with its place."""
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
        start, end, kind = int(columns[1]), int(columns[2]), '_'.join(columns[4].split())
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
