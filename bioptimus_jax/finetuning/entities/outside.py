"""Entities that were predicted elsewhere, as tags of the words that a test set is scored on.

Tags of words are taken as they stand. Mentions by character offsets are laid on the test set, white space aside: on its
characters where its own mentions are marked by characters, otherwise on its words, and then one that begins or ends
within a word is widened to the whole word. Everything that is predicted is counted: a mention that overlaps others
stands in a further column (`tags.with_beside`), and is wrong.
"""

import bisect
import dataclasses
import itertools
import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence

from bioptimus_jax.errors import InputError
from bioptimus_jax.finetuning.entities.files import PREDICTIONS, read_predictions
from bioptimus_jax.finetuning.outside import Item, Submission, first_difference, from_difference, said_of
from bioptimus_jax.progress.console import numbered, shortened
from bioptimus_jax.sets import standoff
from bioptimus_jax.sets.characters import Marked
from bioptimus_jax.sets.corpora import BY_NAMES, form_of, read_iob2
from bioptimus_jax.sets.folders import MARKS
from bioptimus_jax.sets.foreign import splits
from bioptimus_jax.sets.foreign.flat import without_role
from bioptimus_jax.sets.foreign.items import PREDICTED_KEYS, Items
from bioptimus_jax.sets.sentences import Sentence
from bioptimus_jax.sets.tags import (
    NAMELESS,
    Span,
    beside,
    from_spans,
    is_tag,
    merged,
    recognise,
    renamed,
    spans,
    to_iob2,
    type_name,
    with_beside,
)

Tags = tuple[str, ...]
SOLID = re.compile(r'[^\s\0\ufeff]')
"""What texts are compared by: no white space, NUL or byte-order mark, which programs leave out or put in."""
WIDENED = 'predicted entities that begin or end within a word, widened to whole words'
CUT = 'predicted entities that go on in the next sentence of the test set, which are wrong unless relaxed'
OVERLAPPING = 'predicted entities that overlap others, which are wrong unless relaxed'
REPEATED = 'predicted entities that repeat others, counted once'


def read_tags(asked: Submission, one_type: bool) -> tuple[list[Tags], list[str]]:
    """IOB2 tags of the words that each sentence is scored on, and what is odd about them. Raises InputError.

    `one_type`: the set's types are read as one.
    """
    counts: Counter[str] = Counter()
    types = {type_name(theirs): type_name(ours) for theirs, ours in asked.types.items()}

    def name_of(kind: str) -> str:
        return types.get(type_name(kind), type_name(kind))

    form = form_of(asked.file)
    found_items = splits.items_at(asked.file, PREDICTED_KEYS) if form in BY_NAMES else None
    documents = _documents(asked, form, found_items, counts)
    if documents is not None:
        named = [_renamed(document, name_of, one_type) for document in documents]
        found = laid_on(asked, _in_order(asked, named), counts)
    else:
        found = [renamed(tags, name_of) for tags in _of_words(asked, found_items)]
        found = [merged(tags) for tags in found] if one_type else found
    notes = [f'{what}: {count:,}' for what, count in counts.items() if count]
    notes += said_of(found_items, 'entities' if documents is not None else 'tags') if found_items else []
    return found, notes + _strange_types(asked, found)


def _of_words(asked: Submission, found: Items | None) -> list[Tags]:
    """Tags that were predicted for words: those that a model reads, or those that the set is scored on."""
    items = _tagged(asked, found) if found else _in_columns(asked)
    exact = [i.words == s.scored_words for i, s in zip(items, asked.gold, strict=False)]
    exact += [False] * (len(items) - len(exact))
    # Items of either kind of words are compared with the words that a model reads.
    shown = [
        dataclasses.replace(item, words=asked.gold[at].words) if exact[at] else item
        for at, item in enumerate(items)
    ]
    answers = zip(asked.answers(shown), exact, asked.gold, strict=True)
    return [tags if is_exact else sentence.laid_out(tags) for tags, is_exact, sentence in answers]


def _in_columns(asked: Submission) -> list[Item]:
    """Tags in the last column of lines; of our own predictions also those in further columns."""
    try:
        return [Item(s.words, s.tags, s.line) for s in read_iob2(asked.file)]
    except InputError:
        # Only lines with mentions that overlap have further columns, so such a file is no table.
        if asked.file.name != PREDICTIONS:
            raise
        return [Item(s.words, s.predicted, 0) for s in read_predictions(asked.file)]


def _renamed(document: Marked, name_of: Callable[[str], str], one_type: bool) -> Marked:
    """The document with the set's names of types; mentions of a type that is called '' are left out."""
    named = (dataclasses.replace(m, kind=name_of(m.kind)) for m in document.mentions)
    kept = [dataclasses.replace(m, kind=NAMELESS) if one_type else m for m in named if m.kind]
    return dataclasses.replace(document, mentions=tuple(kept))


def _in_order(asked: Submission, documents: Sequence[Marked]) -> Sequence[Marked]:
    """Documents in the order of the test set, by their names where both sides name the same ones."""
    # As files that predict has written, names have no folders before them.
    wanted = [sentence.source.replace('/', '_') for sentence in asked.gold]
    places = {name: at for at, name in enumerate(dict.fromkeys(wanted))}
    filled = [document for document in documents if document.text.strip()]
    named = [document.name.replace('/', '_') for document in filled]
    if '' in places or {*named} != set(places) or _runs(named) == _runs(wanted):
        return documents
    return [
        document for _, document in sorted(zip(named, filled, strict=True), key=lambda pair: places[pair[0]])
    ]


def _runs(names: Iterable[str]) -> list[str]:
    """Names without those that repeat the one before: documents in their order may come back to a name."""
    return [name for name, _ in itertools.groupby(names)]


def _documents(
    asked: Submission, form: str, found: Items | None, counts: Counter[str]
) -> list[Marked] | None:
    """Documents with mentions by characters, None where words have tags."""
    if form in MARKS:
        return standoff.brat_documents(asked.file, counts)
    if form == 'PubTator':
        return standoff.pubtator_documents(asked.file, counts)
    if found is None or all(item.mentions is None for item in found.items):
        return None
    counts.update(found.repairs)
    return splits.documents(found.items, counts)


def _tagged(asked: Submission, found: Items) -> list[Item]:
    """Items of records with words and a tag for each, whatever their scheme."""
    items = []
    for one in found.items:
        if one.words is None or one.tags is None:
            raise without_role(one, '"entities" with "text", or "predicted" tags with "words"')
        wrong = next((tag for tag in one.tags if not is_tag(tag)), None)
        if wrong is not None:
            raise InputError(f'{one.place}: unknown tag {wrong!r:.60}; tags are O, B-TYPE, I-TYPE ...')
        if len(one.words) != len(one.tags):
            count = numbered(len(one.words), 'word')
            raise InputError(
                f'{one.place}: has {count} and {numbered(len(one.tags), "tag")}; each word needs one'
            )
        items.append(Item(one.words, one.tags, one.line))
    try:
        scheme = recognise(item.answers for item in items)
    except ValueError as error:
        raise InputError(f'{asked.file}: {error}') from error
    return [Item(item.words, to_iob2(item.answers, scheme), item.line) for item in items]


def laid_on(asked: Submission, documents: Sequence[Marked], counts: Counter[str]) -> list[Tags]:
    """Tags of the scored words for mentions of documents, the same text in the same order, white space aside.

    Raises InputError where the texts differ.
    """
    grid, begins = _Grid(asked.gold), 0
    found: list[list[_Laid]] = [[] for _ in asked.gold]
    for document in documents:
        places = [match.start() for match in SOLID.finditer(document.text)]
        own = ''.join(map(document.text.__getitem__, places))
        _check_text(asked, grid, document, own, begins)
        mentions = list(dict.fromkeys((m.kind, m.start, m.end) for m in document.mentions))
        counts[REPEATED] += len(document.mentions) - len(mentions)
        for kind, first, behind in mentions:
            # `text` has no white space, so a place in it counts the other characters before the offset.
            start, end = (begins + bisect.bisect_left(places, edge) for edge in (first, behind))
            at, laid = grid.laid(kind, start, end)
            found[at].append(laid)
            counts[WIDENED] += laid.widened
            counts[CUT] += laid.cut
        begins += len(own)
    if begins < len(grid.text):
        at = grid.sentence(begins)
        raise InputError(
            f'{asked.file}: ends before the end of {asked.place(at)}; predict the whole test set'
        )
    return [_tags_of(sentence, laid, counts) for sentence, laid in zip(asked.gold, found, strict=True)]


@dataclasses.dataclass(frozen=True)
class _Laid:
    """A predicted mention on the scored words of a sentence; unless `exact`, it equals no gold mention."""

    span: Span
    exact: bool
    widened: bool = False
    cut: bool = False


class _Grid:
    """The characters of a test set that are no white space, in one row, and where its words and sentences begin."""

    def __init__(self, gold: Sequence[Sentence]) -> None:
        self.gold = gold
        letters: list[str] = []
        self.firsts = [0]  # number of the first word of each sentence
        for sentence in gold:
            # What a mention has beyond its sentence stands in the next one.
            inside = sentence.scored_words[: -1 if _goes_on(sentence) else None]
            letters += (''.join(SOLID.findall(word)) for word in inside)
            self.firsts.append(len(letters))
        self.edges = [0, *itertools.accumulate(map(len, letters))]
        self.text = ''.join(letters)

    def sentence(self, place: int) -> int:
        """The number of the sentence with this character."""
        return bisect.bisect(self.firsts, bisect.bisect(self.edges, place) - 1) - 1

    def laid(self, kind: str, start: int, end: int) -> tuple[int, _Laid]:
        """The number of the sentence in which characters start..end begin, and the mention on its words."""
        first, behind = bisect.bisect(self.edges, start) - 1, bisect.bisect_left(self.edges, end)
        at = bisect.bisect(self.firsts, first) - 1
        sentence, begin, stop = self.gold[at], self.firsts[at], self.firsts[at + 1]
        fits = self.edges[first] == start
        if behind > stop:
            known = _goes_on(sentence)
            beyond = len(SOLID.findall(sentence.scored_words[-1])) if known else 0
            same = known and fits and end == self.edges[stop] + beyond
            return at, _Laid((kind, first - begin, stop - begin - (not same)), same, cut=not same)
        fits = fits and self.edges[behind] == end
        span = kind, first - begin, behind - begin - 1
        return at, _Laid(span, fits or not sentence.marked, widened=not (fits or sentence.marked))


def _goes_on(sentence: Sentence) -> bool:
    """Whether a mention of the sentence ends in a later one."""
    return bool(sentence.exact and sentence.exact.word_of[-1] == len(sentence.words))


def _tags_of(sentence: Sentence, laid: Sequence[_Laid], counts: Counter[str]) -> Tags:
    """Tags for the mentions of a sentence that do not overlap, the right ones first, and the others beside them."""
    gold = set(spans(sentence.gold))
    free = [True] * len(sentence.scored_words)
    kept, others = [], []
    # What is right never overlaps, as gold does not; of the rest the longest come first. So their order says nothing.
    for one in sorted(laid, key=lambda x: (not (x.exact and x.span in gold), x.span[1] - x.span[2], x.span)):
        _, first, last = one.span
        if one.exact and all(free[first : last + 1]):
            kept.append(one.span)
            free[first : last + 1] = [False] * (last + 1 - first)
        else:
            others.append(one.span)
            counts[OVERLAPPING] += one.exact
    return with_beside(from_spans(kept, len(free)), others)


def _check_text(asked: Submission, grid: _Grid, document: Marked, own: str, begins: int) -> None:
    wanted = grid.text[begins : begins + len(own)]
    if own == wanted:
        return
    at = first_difference(own, wanted)
    if begins + at == len(grid.text):
        raise InputError(f'{document.place}: continues after the last sentence of {asked.gold_file}')
    raise InputError(
        f'{document.place}: {from_difference(own, wanted)!r} differs from {asked.place(grid.sentence(begins + at))}, '
        f'{from_difference(wanted, own)!r}; give the text of the test set in its order'
    )


def _strange_types(asked: Submission, found: Sequence[Tags]) -> list[str]:
    """Notes on predicted types that gold does not have. Raises InputError where it has none of them."""
    ours, theirs = (
        Counter(kind for tags in side for kind, _, _ in (*spans(tags), *beside(tags)))
        for side in ([s.gold for s in asked.gold], found)
    )
    strange = sorted(set(theirs) - set(ours))
    if strange and ours and set(strange) == set(theirs):
        raise InputError(
            f'{asked.file}: has entities of the types {shortened(strange, 2, 20)}, but {asked.gold_file} of '
            f'{shortened(sorted(ours), 2, 20)}; give them the names of the test set, as '
            f'--types={strange[0]}={min(ours)}'
        )
    return [
        f'predicted entities of the type {kind}, which the test set does not have, count as wrong: {theirs[kind]:,}; '
        f'--types={kind}= leaves them out'
        for kind in strange
    ]
