"""EBM PICO in BLURB's form, from EBM-NLP 2.00: a line for each word, with one class.

Words and the labels of the three elements, 0 for none, are files of their own; a test document's labels are the gold
ones. Where elements overlap, the later of participants, interventions and outcomes counts. An element that has no file
for a document, or labels for fewer words than another one, is as BLURB's script takes it: not there, and cut to the
shortest. BLURB's lists say which documents are of train, dev and test, and in what order.
"""

from collections import Counter
from collections.abc import Iterator

from bioptimus_jax.errors import InputError
from bioptimus_jax.rebuild.originals import Builder, Example, Made, Originals

ELEMENTS = {'participants': 'I-PAR', 'interventions': 'I-INT', 'outcomes': 'I-OUT'}
NONE, OUTSIDE, STOP = '0', 'O', '.'
DOCUMENT = '-DOCSTART- ({})'
BLANK = Example(('',))
SEVERAL = 'words are of several elements; the later of participants, interventions, outcomes counts'
LACKING = 'documents have no labels of an element'
SHORTER = 'documents have labels for fewer words than they have; the rest is left out'


def make(originals: Originals, fold: int) -> Made:
    """The lines of every document, and the oddities of labels. Raises InputError naming file and word."""
    oddities: Counter[str] = Counter({SEVERAL: 0})
    splits = {}
    for split, documents in originals.lists('pmid'):
        splits[split] = [line for document in documents for line in _lines(originals, document, oddities)]
    return Made(splits, [f'{count:,} {what}' for what, count in sorted(oddities.items())])


def _lines(originals: Originals, document: str, oddities: Counter[str]) -> Iterator[Example]:
    _, text = originals.text(f'documents/{document}.tokens')
    words, given = text.split(), []
    for element, label in ELEMENTS.items():
        end = f'{document}.AGGREGATED.ann'
        names = [f'starting_spans/{element}/{part}/{end}' for part in ('train', 'test/gold')]
        if originals.has(*names):
            shown, labels = originals.text(*names)
            if wrong := [at for at, one in enumerate(labels.split()) if not one.isdecimal()]:
                raise InputError(f'{shown}: label {wrong[0] + 1} is not a number')
            given.append([OUTSIDE if one == NONE else label for one in labels.split()])
    if not given:
        raise InputError(f'{originals.folder}: has no labels of the document {document}')
    oddities[LACKING] += len(given) < len(ELEMENTS)
    oddities[SHORTER] += min(map(len, given)) < len(words)
    yield from (Example((DOCUMENT.format(document),)), BLANK)
    for word, *found in zip(words, *given, strict=False):
        inside = [label for label in found if label != OUTSIDE]
        oddities[SEVERAL] += len(inside) > 1
        yield Example((word, inside[-1] if inside else OUTSIDE))
        if word == STOP:
            yield BLANK


BUILDER = Builder(
    'ebm_nlp_2_00.tar.gz of github.com/bepnye/EBM-NLP, or its folder; {train,dev,test}_pmid.tsv of BLURB (or .txt)',
    make,
    (
        '34eeec3b62cd83bd075b77e2ca4b949ba345339d',
        '700c7bf7642fcfde8cfe52605e1ead8f8ffa5d4f6b09b5e96ef62744e604a8d4',
        '60f676f1664ad491a6378b1029c7dd1371c461912322fc6382cec8d6784dd508',
    ),
    document=r'-DOCSTART- \(.*',
)
