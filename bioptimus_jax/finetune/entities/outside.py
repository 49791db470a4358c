"""Entities that were predicted elsewhere, as tags of the words of a test set.

Tags of words are taken as they stand. Mentions by character offsets are laid on the words of the test set, white space
aside: one that begins or ends within a word is widened to the whole word, which is counted, since the sets are scored
on words.
"""

import bisect
import itertools
from collections import Counter
from collections.abc import Sequence

from bioptimus_jax.errors import InputError
from bioptimus_jax.finetune.outside import (
    ANSWERS,
    Asked,
    Item,
    first_difference,
    from_difference,
    listed,
    words_of,
)
from bioptimus_jax.sets import standoff
from bioptimus_jax.sets.corpora import form_of, read_iob2
from bioptimus_jax.sets.sentences import Sentence
from bioptimus_jax.sets.standoff import Marked, Mention
from bioptimus_jax.sets.tags import Span, from_spans, is_tag, merged, recognise, renamed, spans, to_iob2

Tags = tuple[str, ...]
WIDENED = 'predicted entities that begin or end within a word, widened to whole words'
CUT = 'predicted entities cut at the end of a sentence'
OVERLAPPING = 'predicted entities left out, since they overlap others'


def read_tags(asked: Asked, one_type: bool) -> tuple[list[Tags], list[str]]:
    """IOB2 tags for every sentence of the test set, and what is odd about them, in words. Raises InputError.

    `one_type`: the set's types are read as one.
    """
    counts: Counter[str] = Counter()
    documents = _documents(asked, counts)
    if documents is not None:
        found = _laid_on(asked, documents, counts)
    elif asked.in_json:
        found = asked.answers(_tagged(asked))
    else:
        found = asked.answers([Item(s.words, s.tags, s.line) for s in read_iob2(asked.file)])
    notes = [f'{count:,} {what}' for what, count in counts.items() if count]
    found = [renamed(tags, lambda kind: asked.types.get(kind, kind)) for tags in found]
    if one_type:
        found = [merged(tags) for tags in found]
    return found, notes + _strange_types(asked, found)


def _documents(asked: Asked, counts: Counter[str]) -> list[Marked] | None:
    """Documents with mentions by characters, None where words have tags."""
    if asked.file.is_dir() or not asked.in_json:
        read = {'BRAT': standoff.brat_documents, 'PubTator': standoff.pubtator_documents}.get(
            form_of(asked.file)
        )
        return read(asked.file, counts) if read else None
    objects = list(asked.objects('entities', *ANSWERS))
    if not any('entities' in entry for _, entry in objects):
        return None
    documents = []
    for line, entry in objects:
        where, text = f'{asked.file}:{line}', entry.get('text')
        if not isinstance(text, str):
            raise InputError(f'{where}: has no "text", to which the offsets of its entities refer')
        mentions = []
        for one in listed(asked.file, line, entry, 'entities') or ():
            if not (isinstance(one, list) and [type(part) for part in one] == [int, int, str]):
                raise InputError(f'{where}: the entity {one!r} is not [start, end, type]')
            start, end, kind = one
            if not 0 <= start < end <= len(text) or not text[start:end].strip() or not kind.strip():
                raise InputError(
                    f'{where}: the entity {one!r} is not within its text of {len(text):,} characters'
                )
            mentions.append(Mention('_'.join(kind.split()), start, end))
        documents.append(Marked(text, tuple(mentions), where))
    return documents


def _tagged(asked: Asked) -> list[Item]:
    """Of objects with words and a tag for each, whatever their scheme."""
    items = []
    for line, entry in asked.objects(*ANSWERS):
        words, tags = words_of(asked.file, line, entry), listed(asked.file, line, entry, *ANSWERS) or []
        wrong = next((tag for tag in tags if not (isinstance(tag, str) and is_tag(tag))), None)
        if wrong is not None:
            raise InputError(f'{asked.file}:{line}: unknown tag {wrong!r}; tags are O, B-TYPE, I-TYPE ...')
        if words is None or len(words) != len(tags):
            count = 'no' if words is None else len(words)
            raise InputError(
                f'{asked.file}:{line}: has {count} words and {len(tags)} tags; each word needs one'
            )
        items.append(Item(words, tuple(tags), line))
    try:
        scheme = recognise(item.answers for item in items)
    except ValueError as error:
        raise InputError(f'{asked.file}: {error}') from error
    return [Item(item.words, to_iob2(item.answers, scheme), item.line) for item in items]


def _laid_on(asked: Asked, documents: Sequence[Marked], counts: Counter[str]) -> list[Tags]:
    """Tags of the test set's words for mentions of documents, the same text in the same order, white space aside."""
    gold: Sequence[Sentence] = asked.gold
    letters = [''.join(word.split()) for sentence in gold for word in sentence.words]
    edges = [0, *itertools.accumulate(map(len, letters))]  # of words, in characters that are no white space
    firsts = [0, *itertools.accumulate(len(sentence.words) for sentence in gold)]
    whole, begins = ''.join(letters), 0
    mentions: list[Mention] = []
    for document in documents:
        places = [at for at, character in enumerate(document.text) if not character.isspace()]
        own = ''.join(document.text.split())
        wanted = whole[begins : begins + len(own)]
        if own != wanted:
            at = first_difference(own, wanted)
            if begins + at == len(whole):
                raise InputError(f'{document.place}: continues after the last sentence of {asked.gold_file}')
            # From the character to its word, from the word to its sentence.
            sentence = bisect.bisect(firsts, bisect.bisect(edges, begins + at) - 1) - 1
            raise InputError(
                f'{document.place}: {from_difference(own, wanted)!r} differs from {asked.place(sentence)}, '
                f'{from_difference(wanted, own)!r}; give the text of the test set in its order'
            )
        for one in document.mentions:
            # `whole` has no white space, so a place in it counts the other characters before the offset.
            start, end = (begins + bisect.bisect_left(places, edge) for edge in (one.start, one.end))
            first, behind = bisect.bisect(edges, start) - 1, bisect.bisect_left(edges, end)
            counts[WIDENED] += (edges[first], edges[behind]) != (start, end)
            # From here on start and end count words.
            mentions.append(Mention(one.kind, first, behind, one.pieces))
        begins += len(own)
    if begins < len(whole):
        at = bisect.bisect(firsts, bisect.bisect(edges, begins) - 1) - 1
        raise InputError(
            f'{asked.file}: ends before the end of {asked.place(at)}; predict the whole test set'
        )
    kept = standoff.without_overlaps(tuple(mentions))
    counts[OVERLAPPING] += len(mentions) - len(kept)
    parts: list[list[Span]] = [[] for _ in gold]
    for one in kept:
        touched = range(bisect.bisect(firsts, one.start) - 1, bisect.bisect_left(firsts, one.end))
        counts[CUT] += len(touched) > 1
        for at in touched:
            start, end = max(one.start, firsts[at]), min(one.end, firsts[at + 1])
            parts[at].append((one.kind, start - firsts[at], end - firsts[at] - 1))
    return [from_spans(own, len(sentence.words)) for own, sentence in zip(parts, gold, strict=True)]


def _strange_types(asked: Asked, found: Sequence[Tags]) -> list[str]:
    """Of predicted types that gold does not have. Raises InputError where it has none of them."""
    ours, theirs = (
        Counter(kind for tags in side for kind, _, _ in spans(tags))
        for side in ([s.tags for s in asked.gold], found)
    )
    strange = sorted(set(theirs) - set(ours))
    if strange and ours and set(strange) == set(theirs):
        raise InputError(
            f'{asked.file}: has entities of the types {", ".join(strange)}, but {asked.gold_file} of '
            f'{", ".join(sorted(ours))}; give them the names of the test set, as --types={strange[0]}={min(ours)}'
        )
    return [
        f'{theirs[kind]:,} predicted entities of the type {kind}, which the test set does not have: they count as '
        f'wrong; --types={kind}= leaves them out'
        for kind in strange
    ]
