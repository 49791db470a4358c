"""Sentences from a text whose mentions are marked by characters: what a model learns, and what it is scored on.

Words and sentences come from the text alone (`cutting`). A mention that begins or ends within a word is learned as the
whole word, and one that goes on in the next sentence as its part in each. Answers are compared with the characters that
were marked (`sentences.Exact`).
"""

import bisect
import dataclasses
import itertools
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

from bioptimus_jax.errors import InputError
from bioptimus_jax.sets.cutting import CUTS, WordPlace, prose
from bioptimus_jax.sets.sentences import Exact, Sentence, SplitReading
from bioptimus_jax.sets.tags import Span, from_spans

DISCONTINUOUS = 'discontinuous mentions kept with what lies between'
WITHIN = 'mentions that begin or end within a word, learned as whole words and scored as characters'
CUT_OFF = 'mentions that go on in the next sentence, learned as a part in each and scored as a whole'
SHARED = 'mentions that share a word with another one, which are not learned'
SHOWN = 60
"""Letters of a mention that a message names."""


@dataclasses.dataclass(frozen=True)
class Mention:
    """Characters start..end of a document; `pieces` > 1 for one that is not all of them (BRAT's discontinuous)."""

    kind: str
    start: int
    end: int
    pieces: int = 1


@dataclasses.dataclass(frozen=True)
class Marked:
    """One document, or a part of one, with its mentions in the order of the file.

    `place`: its file, and the line where it begins; `name`: what its file or record calls it; `document`: the name of
    the document of which it is a part, '' where it is a whole one.
    """

    text: str
    mentions: tuple[Mention, ...]
    place: str = ''
    name: str = ''
    document: str = ''


def without_overlaps(mentions: Iterable[Mention]) -> list[Mention]:
    """The mentions that tags can hold, by position: only one of those that share a character is kept.

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


def reading(
    path: Path, documents: Sequence[Marked], repairs: Counter[str], cut: str = prose.__name__
) -> SplitReading:
    """Documents as sentences, numbered from 0, the parts of one alike; `cut`: a rule of `cutting.CUTS`.

    Raises InputError where there is no text.
    """
    sentences: list[Sentence] = []
    examples: dict[str, str] = {}
    counts: Counter[str] = Counter()
    left_out = 0
    numbers: dict[str | int, int] = {}
    for at, document in enumerate(documents):
        number = numbers.setdefault(document.document or at, len(numbers))
        kept = without_overlaps(document.mentions)
        left_out += len(document.mentions) - len(kept)
        counts[DISCONTINUOUS] += sum(m.pieces > 1 for m in kept)
        sentences += sentences_of(document, kept, number, cut, counts, examples)
    if not sentences:
        raise InputError(f'{path}: holds no text')
    named = {f'{what}{examples.get(what, "")}': count for what, count in counts.items() if count}
    marked = sum(len(document.mentions) for document in documents)
    return SplitReading(tuple(sentences), marked, {**+repairs, **named}, left_out, cut)


def sentences_of(
    document: Marked,
    mentions: Sequence[Mention],
    number: int,
    cut: str,
    counts: Counter[str],
    examples: dict[str, str],
) -> list[Sentence]:
    """The sentences of a document with these `mentions`, which are in order and do not overlap.

    `counts`, `examples`: how many mentions do not fit words and sentences, and the first of each kind in words.
    """
    text, places = document.text, CUTS[cut](document.text)
    words = [place for sentence in places for place in sentence]
    starts = [start for start, _ in words]
    firsts = [0]
    for sentence in places:
        firsts.append(firsts[-1] + len(sentence))
    # For each sentence the mentions that begin there, and what is learned of them; their ends count words of the
    # sentence.
    begun: list[list[Mention]] = [[] for _ in places]
    learned: list[list[Mention]] = [[] for _ in places]
    for one in mentions:
        first, behind = bisect.bisect(starts, one.start) - 1, bisect.bisect_left(starts, one.end)
        touched = range(bisect.bisect(firsts, first) - 1, bisect.bisect_left(firsts, behind))
        begun[touched[0]].append(one)
        widened = (words[first][0], words[behind - 1][1]) != (one.start, one.end)
        for what, found in ((WITHIN, widened), (CUT_OFF, len(touched) > 1)):
            counts[what] += found
            if found:
                shown = ' '.join(text[words[first][0] : words[behind - 1][1]].split())
                own = ' '.join(text[one.start : one.end].split())
                where = document.name or document.place
                examples.setdefault(what, f' (first: {own[:SHOWN]!r} in {shown[:SHOWN]!r}, {where})')
        for at in touched:
            low, high = firsts[at], firsts[at + 1]
            learned[at].append(
                dataclasses.replace(one, start=max(first, low) - low, end=min(behind, high) - low)
            )
    made = []
    for of_one, taught, marked in zip(places, learned, begun, strict=True):
        kept = without_overlaps(taught)
        counts[SHARED] += len(taught) - len(kept)
        tags = from_spans([(m.kind, m.start, m.end - 1) for m in kept], len(of_one))
        shown_words = tuple(text[start:end] for start, end in of_one)
        by_characters = _exact(text, of_one, marked)
        # Tags that say the same need no second place.
        same = (by_characters.words, by_characters.tags) == (shown_words, tags)
        exact = None if same else by_characters
        made.append(Sentence(shown_words, tags, number, marked=True, exact=exact, source=document.name))
    return made


def _exact(text: str, places: Sequence[WordPlace], mentions: Sequence[Mention]) -> Exact:
    """The words of a sentence, cut at the edges of the mentions that begin in it."""
    edges = sorted({edge for m in mentions for edge in (m.start, m.end)})
    parts: list[WordPlace] = []
    word_of: list[int] = []
    for number, (start, end) in enumerate(places):
        inner = edges[bisect.bisect(edges, start) : bisect.bisect_left(edges, end)]
        borders = [start, *inner, end]
        parts += itertools.pairwise(borders)
        word_of += [number] * (len(borders) - 1)
    end = places[-1][1]
    if mentions and mentions[-1].end > end:
        parts.append((end, mentions[-1].end))
        word_of.append(len(places))
    first, last = ({part[at]: number for number, part in enumerate(parts)} for at in (0, 1))
    spans: list[Span] = [(m.kind, first[m.start], last[m.end]) for m in mentions]
    words = tuple(' '.join(text[a:b].split()) for a, b in parts)
    return Exact(words, from_spans(spans, len(parts)), tuple(word_of))
