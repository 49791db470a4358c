"""GAD in BLURB's form, from BioBERT's ten folds: the first 4,261 rows of a fold's training file are train, the rest
devel.

BLURB has the first fold. The others are cut at the same row, which leaves 535 to 537 rows for devel.
"""

from bioptimus_jax.rebuild.originals import Builder, Example, Made, Originals
from bioptimus_jax.sets.texts import SETS

CUT = SETS.own['gad'].examples[0]
HEADER = ('index', 'sentence', 'label')


def make(originals: Originals, fold: int) -> Made:
    """The examples of a fold, 1 to 10. Raises InputError with file and line."""
    # Test files have a header and numbers of rows, training files neither.
    rows = [row for _, row in originals.rows(f'{fold}/train.tsv', HEADER[1:])]
    test = [row[1:] for _, row in originals.rows(f'{fold}/test.tsv', HEADER)][1:]
    splits = {'train': rows[:CUT], 'devel': rows[CUT:], 'test': test}
    return Made(
        {
            split: [Example((str(at), *row)) for at, row in enumerate(chosen)]
            for split, chosen in splits.items()
        }
    )


BUILDER = Builder(
    "1/train.tsv, 1/test.tsv to 10/test.tsv of GAD in BioBERT's REdata",
    make,
    (
        '8c57f5f28a843cd64bcd939c62842cf685552315e7a78069be7d1ceff47bb663',
        'ede2bebdf5fa6094a493801f447bb7827ab0e5511fa0c399234e9e77a96d7159',
        '68fe2b2bddefac2cd5d35b4bc8a13bceee95ee9a582a623632981e893cdb512e',
    ),
    header='\t'.join(HEADER),
    folds=10,
)
