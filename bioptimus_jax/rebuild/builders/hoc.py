"""Hallmarks of Cancer in BLURB's form: a line for each sentence of its abstracts, with ten labels.

`text/ID.txt` has a sentence on each line. `labels/ID.txt` is one line that has `<` and the labels of the sentence once
for each: none, or some with AND between. A label names a hallmark, then what is below it, as
`Resisting cell death--Apoptosis`. BLURB counts the hallmark alone, and takes NULL for none. Its lists say which
abstracts are of train, dev and test, and in what order.
"""

from collections import Counter
from collections.abc import Iterator

from bioptimus_jax.errors import InputError
from bioptimus_jax.progress.console import numbered
from bioptimus_jax.rebuild.originals import Builder, Example, Made, Originals
from bioptimus_jax.sets.texts import HALLMARKS

NULL = 'null'
TWICE = 'sentences have one hallmark by several labels; it counts once'
EMPTY = "sentences have the label NULL, which is BLURB's none"


def make(originals: Originals, fold: int) -> Made:
    """The sentences, and the oddities of labels. Raises InputError naming file and sentence."""
    oddities: Counter[str] = Counter()
    splits, without = {}, []
    for split, listed in originals.lists('pmid'):
        documents = [part.removesuffix('.txt') for part in listed]
        made = [list(_sentences(originals, document, oddities)) for document in documents]
        splits[split] = [sentence for document in made for sentence in document]
        without.append(sum(all('_1' not in x.columns[0] for x in document) for document in made))
    counts = ' / '.join(f'{len(sentences):,}' for sentences in splits.values())
    return Made(
        splits,
        (
            f'{counts} sentences; {" / ".join(map(str, without))} abstracts have no hallmark',
            *(f'{count} {what}' for what, count in sorted(oddities.items())),
        ),
    )


def _sentences(originals: Originals, document: str, oddities: Counter[str]) -> Iterator[Example]:
    shown, text = originals.text(f'text/{document}.txt')
    lines = text.removesuffix('\n').split('\n')
    place, labels = originals.text(f'labels/{document}.txt')
    before, *of_sentences = labels.split('<')
    if before.strip() or len(of_sentences) != len(lines):
        raise InputError(
            f'{place}: has labels of {numbered(len(of_sentences), "sentence")}, but {shown} '
            f'{numbered(len(lines), "line")}'
        )
    for at, (line, given) in enumerate(zip(lines, of_sentences, strict=True)):
        where = f'{place}: sentence {at + 1}'
        found = [part.split('--')[0].strip().lower() for part in given.split('AND')]
        named = [name for name in found if name not in ('', NULL)]
        if wrong := [name for name in named if name not in HALLMARKS]:
            raise InputError(f'{where}: {wrong[0][:60]!r} is none of {", ".join(HALLMARKS)}')
        if not line.strip() or '\t' in line:
            raise InputError(f'{shown}:{at + 1}: expected a sentence without a tab')
        oddities[TWICE] += len(set(named)) < len(named)
        oddities[EMPTY] += NULL in found
        shares = ','.join(f'{number}_{int(name in named)}' for number, name in enumerate(HALLMARKS))
        yield Example((shares, line.strip(), f'{document}_s{at}'))


BUILDER = Builder(
    'text/*.txt and labels/*.txt of github.com/sb895/Hallmarks-of-Cancer; {train,dev,test}_pmid.tsv of BLURB (or .txt)',
    make,
    (
        '48352fe9828a63254c9302d5c9a13abe0167a5016dd1143e7f7e47c0348c9a81',
        'c0bae75eab5940db8afd3ac620d391661c826fa1428e38d258c9e730f4358b99',
        '2e9ffe24c756b126efa2d351a9572ebb671a3473658bc0766d02ec80b9129d48',
    ),
    header='labels\tsentence\tindex',
    document=r'[^_]+',
)
