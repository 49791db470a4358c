"""DDI Extraction 2013 in BLURB's form, from its XML files: every pair that they list.

BLURB's lists say which files are of train, dev and test. A mention in several parts is all from its first character to
its last. Tabs and line ends of a sentence become spaces.
"""

import io
import re
from collections import Counter
from collections.abc import Iterator

from lxml import etree

from bioptimus_jax.corpus.markup import reason, root_of
from bioptimus_jax.corpus.records import BadRecord
from bioptimus_jax.errors import InputError
from bioptimus_jax.rebuild.originals import Builder, Example, Made, Originals, quoted
from bioptimus_jax.sets.inputs import NamedPlace
from bioptimus_jax.sets.sentences import SPLITS
from bioptimus_jax.sets.standoff import OFFSET
from bioptimus_jax.sets.texts import SETS
from bioptimus_jax.storage.parsing import PARSING

LISTS = dict(zip(SPLITS, ('train_files', 'dev_files', 'test_files'), strict=True))
OFFSETS = re.compile(rf'{OFFSET}-{OFFSET}(;{OFFSET}-{OFFSET})*')
SPACES = str.maketrans('\t\r\n', '   ')
NAME = 'DRUG'
LABELS = SETS.own['ddi'].labels
SLIPPED = 'mentions are one character off the text that they quote; the offsets count'
PARTED = 'mentions in several parts are taken with what is between'


def make(originals: Originals, fold: int) -> Made:
    """The examples, and the oddities of mentions. Raises InputError with file and line."""
    oddities: Counter[str] = Counter()
    splits = {}
    for split, name in LISTS.items():
        _, listed = originals.text(f'{name}.txt', f'{name}.tsv')
        files = [line.strip() for line in listed.split('\n') if line.strip()]
        splits[split] = [
            example
            for file in files
            for sentence in _sentences(*originals.text(file))
            for example in _pairs(*sentence, oddities)
        ]
    return Made(splits, [f'{count} {what}' for what, count in sorted(oddities.items())])


def _sentences(shown: str, text: str) -> Iterator[tuple[str, etree._Element]]:
    content = text.encode()
    try:
        root_of(io.BytesIO(content))
        for _, sentence in etree.iterparse(io.BytesIO(content), tag='sentence', **PARSING):
            yield shown, sentence
    except etree.XMLSyntaxError as error:
        raise InputError(f'{shown}: is cut off or not well-formed XML ({reason(error)})') from error
    except BadRecord as error:
        raise InputError(f'{shown}: {error}') from error


def _pairs(shown: str, sentence: etree._Element, oddities: Counter[str]) -> Iterator[Example]:
    text = sentence.get('text', '')
    mentions = {one.get('id'): _mention(shown, text, one, oddities) for one in sentence.iter('entity')}
    for pair in sentence.iter('pair'):
        where = f'{shown}:{pair.sourceline}'
        ends = [pair.get('e1'), pair.get('e2')]
        if missing := [str(end) for end in ends if end not in mentions]:
            raise InputError(f'{where}: {missing[0]!r} is not an entity of the sentence')
        said = pair.get('ddi')
        # One copy of the corpus has a pair that is true and of no type; it is false in the public set.
        label = f'DDI-{pair.get("type", "false") if said == "true" else "false"}'
        if said not in ('true', 'false') or label not in LABELS:
            raise InputError(
                f'{where}: ddi={said!r} type={pair.get("type")!r} is none of {", ".join(LABELS)}'
            )
        first, second = sorted((mentions[end] for end in ends), key=lambda one: (one.start, one.end))
        yield Example((pair.get('id', ''), text.translate(SPACES), label), (first, second))


def _mention(shown: str, text: str, entity: etree._Element, oddities: Counter[str]) -> NamedPlace:
    where, said = f'{shown}:{entity.sourceline}', entity.get('charOffset', '')
    if not OFFSETS.fullmatch(said):
        raise InputError(f'{where}: expected charOffset as 0-11 or 0-3;10-14, found {said[:60]!r}')
    quote = entity.get('text', '')
    # The offsets of DDI include the last character.
    parts = [(int(a), int(b) + 1) for a, b in (part.split('-') for part in said.split(';'))]
    start, end = parts[0][0], parts[-1][1]
    covered = quoted(where, text, start, end, quote)
    slip = next((by for by in (0, -1, 1) if _letters(text, parts, by) == ''.join(quote.split())), None)
    if slip is None:
        raise InputError(
            f'{where}: characters {said} of the sentence are {covered[:60]!r}, not {quote[:60]!r}'
        )
    oddities[SLIPPED] += slip != 0
    oddities[PARTED] += len(parts) > 1
    return NamedPlace(start, end, NAME)


def _letters(text: str, parts: list[tuple[int, int]], by: int) -> str:
    return ''.join(''.join(text[max(start + by, 0) : end + by] for start, end in parts).split())


BUILDER = Builder(
    '{train,test}_dataset/**.xml of DDIextraction_2013, and {train,dev,test}_files.tsv of BLURB (or .txt)',
    make,
    (
        '4d7ca5a7a991acccc31a39a3d637b779259c3ae40a12bebdf46cfeff7b15931b',
        'a6a78c7bc37e959ab0ca7650d55ce62b011a796f2d7e4442c0236a0c1bd27f37',
        'e0f34a1172c5bf0a0981343d847a858efc105871b4537fe30488e03cda242330',
    ),
    mentions=1,
)
