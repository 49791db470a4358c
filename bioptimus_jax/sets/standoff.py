"""Mentions that are marked by character offsets in a text beside them: BRAT (.txt + .ann) and PubTator.

From text to words: sentences of the project's splitter, joined again where a border would cut a mention; words end at
white space, at punctuation and at the borders of mentions, so that every mention is made of whole words.
"""

import bisect
import dataclasses
import itertools
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from bioptimus_jax.errors import InputError
from bioptimus_jax.sets.sentences import Reading, Sentence, text_of
from bioptimus_jax.sets.tags import from_spans
from bioptimus_jax.splitting import split_sentences

# Letters and digits with their accents and what is invisible among them; or any other single character.
WORD = re.compile('(?:[^\\W_]|[\u0300-\u036f\u00ad\u200b-\u200d\u2060\ufeff])+|[^\\w\\s]|_')
OFFSET = r'\d{1,18}'
"""A place in a text: none is longer, and of thousands of digits Python makes no number."""
BRAT_MENTION = re.compile(rf'T\S+\t(\S+) ({OFFSET} {OFFSET}(?:;{OFFSET} {OFFSET})*)\t(.*)')
PUBTATOR_TEXT = re.compile(r'(\S+?)\|([ta])\|(.*)')


@dataclasses.dataclass(frozen=True)
class Mention:
    """Characters start..end of a document; `pieces` > 1 for one that is not all of them (BRAT's discontinuous)."""

    kind: str
    start: int
    end: int
    pieces: int = 1


@dataclasses.dataclass(frozen=True)
class Cut:
    """What a word is, between the borders of mentions, and the sentences of a text, each as it stands there."""

    word: re.Pattern[str]
    sentences: Callable[[str], Sequence[str]]


PROSE = Cut(WORD, split_sentences)
LINES = Cut(re.compile(r'\S+'), lambda text: [line.strip() for line in text.split('\n') if line.strip()])
"""Notes: a line is a sentence, and words end at white space."""


@dataclasses.dataclass(frozen=True)
class Marked:
    """One document with its mentions in the order of the file; `place`: its file, and the line where it begins."""

    text: str
    mentions: tuple[Mention, ...]
    place: str = ''


def read_brat(folder: Path) -> Reading:
    """All documents NAME.txt of a folder with NAME.ann beside each. Raises InputError with file and line."""
    repairs: Counter[str] = Counter()
    return reading(folder, brat_documents(folder, repairs), repairs)


def brat_documents(folder: Path, repairs: Counter[str]) -> list[Marked]:
    """The same as they are marked, by their names."""
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
    """The same as they are marked, in the order of the file."""
    lines = enumerate(text_of(path).removeprefix('\ufeff').split('\n'), 1)
    placed = ((f'{path}:{number}', line.rstrip('\r')) for number, line in lines)
    blocks = itertools.groupby(placed, lambda place_and_line: bool(place_and_line[1].strip()))
    return [_pubtator_document(list(block), repairs) for filled, block in blocks if filled]


def without_overlaps(mentions: tuple[Mention, ...]) -> list[Mention]:
    """The mentions that tags can hold, by position: of those that share a character only one is kept.

    Contiguous before discontinuous, then the longest, then the one that begins first, then the order of the file.
    """
    kept: list[Mention] = []
    for one in sorted(mentions, key=lambda m: (m.pieces > 1, m.start - m.end, m.start)):
        # `kept` is in order and free of overlaps, so only the neighbours of this place can be in the way.
        at = bisect.bisect(kept, one.start, key=lambda m: m.start)
        free = (not at or kept[at - 1].end <= one.start) and (at == len(kept) or one.end <= kept[at].start)
        if free:
            kept.insert(at, one)
    return kept


def sentences_of(document: Marked, number: int, repairs: Counter[str], cut: Cut = PROSE) -> list[Sentence]:
    """Words and IOB2 tags of a document whose mentions do not overlap; every mention stays whole."""
    text, mentions = document.text, document.mentions
    edges = sorted({edge for m in mentions for edge in (m.start, m.end)})
    found = []
    for start, end in _sentence_spans(text, mentions, repairs, cut):
        words: list[str] = []
        # By edge: the first word behind it, the last one before it.
        first_word: dict[int, int] = {}
        last_word: dict[int, int] = {}
        inner = edges[bisect.bisect(edges, start) : bisect.bisect_left(edges, end)]
        for a, b in itertools.pairwise((start, *inner, end)):
            for match in cut.word.finditer(text, a, b):
                first_word.setdefault(a, len(words))
                last_word[b] = len(words)
                words.append(match.group())
        here = [m for m in mentions if start <= m.start < end]
        # Between the two edges of a mention lies no other edge: they do not overlap.
        spans = [(m.kind, first_word[m.start], last_word[m.end]) for m in here]
        if words:
            found.append(Sentence(tuple(words), from_spans(spans, len(words)), number))
    return found


def words_in(text: str, cut: Cut = PROSE) -> list[list[tuple[int, int]]]:
    """The words of every sentence of a text: first character and the one behind the last."""
    sentences = _sentence_spans(text, (), Counter(), cut)
    found = ([match.span() for match in cut.word.finditer(text, *span)] for span in sentences)
    return list(filter(None, found))


def reading(path: Path, documents: Sequence[Marked], repairs: Counter[str], cut: Cut = PROSE) -> Reading:
    """Documents as sentences, numbered from 0. Raises InputError where there is no text."""
    sentences: list[Sentence] = []
    marked = 0
    for number, document in enumerate(documents):
        kept = tuple(without_overlaps(document.mentions))
        left_out = Counter(document.mentions) - Counter(kept)
        repairs['nested, overlapping or repeated mentions left out'] += left_out.total()
        repairs['discontinuous mentions kept with what lies between'] += sum(m.pieces > 1 for m in kept)
        marked += len(kept)
        sentences += sentences_of(Marked(document.text, kept), number, repairs, cut)
    if not sentences:
        raise InputError(f'{path}: holds no text')
    return Reading(tuple(sentences), marked, +repairs)


def _sentence_spans(
    text: str, mentions: tuple[Mention, ...], repairs: Counter[str], cut: Cut
) -> Iterator[tuple[int, int]]:
    """Stretches that cover the whole text, each a sentence or several that a mention ties together."""
    # The splitter takes NUL for a blank, so its sentences would not be found in the text as it is.
    plain, starts, position = text.replace('\0', ' '), list[int](), 0
    for sentence in cut.sentences(text):
        starts.append(plain.index(sentence, position))
        position = starts[-1] + len(sentence)
    ends = [m.end for m in mentions]  # by position, as they do not overlap
    borders = []
    for start in starts[1:]:
        at = bisect.bisect(ends, start)
        if at < len(mentions) and mentions[at].start < start:
            repairs['sentences joined because a mention crosses their border'] += 1
        else:
            borders.append(start)
    yield from itertools.pairwise((0, *borders, len(text)))


def _brat_document(text_file: Path, marks_file: Path, repairs: Counter[str]) -> Marked:
    text = text_of(text_file)
    mentions = []
    for number, line in enumerate(text_of(marks_file).split('\n'), 1):
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
    return Marked(text, tuple(mentions), str(text_file))


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
        text = _title_and_abstract(parts)
        start, end, kind = int(columns[1]), int(columns[2]), '_'.join(columns[4].split())
        mentions.append(mention(where, text, kind, start, end, columns[3], text[start:end], repairs))
    return Marked(_title_and_abstract(parts), tuple(mentions), lines[0][0])


def are_offsets(*given: str) -> bool:
    """Whether all of these are places in a text."""
    return all(re.fullmatch(OFFSET, one) for one in given)


def _title_and_abstract(parts: Mapping[str, str]) -> str:
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

    NCBI-disease quotes blanks for the quotation marks of its text: the offsets decide, and it is counted.
    """
    exact = covered.split() == expected.split()
    same = exact or _letters(covered) == _letters(expected) != ''
    if end > len(text) or not text[start:end].strip() or not same:
        raise InputError(
            f'{where}: characters {start} to {end} of the text are {covered[:60]!r}, not {expected[:60]!r}; '
            'offsets count Unicode characters of the unchanged text'
        )
    repairs['annotations that quote other punctuation or blanks than their text has'] += not exact
    own = text[start:end]
    return Mention(kind, start + len(own) - len(own.lstrip()), end - len(own) + len(own.rstrip()), pieces)


def _letters(text: str) -> str:
    return ''.join(filter(str.isalnum, text))
