"""Bio-LM's sets (Lewis et al. 2020, section 2) that are not BLURB's, and SciBERT's ChemProt: entities, and texts.

Entities are in BioBERT's files, notes in those of their owners (i2b2.py). Texts are in the files of BLUE (Peng et al.
2019), folds in BioBERT's, MedNLI in its owner's. Several are other forms of a corpus that BLURB has too: other
examples, another split, other labels. So they have other names, and `published.clashes` says which do not compare.
"""

import dataclasses

from bioptimus_jax.sets import blurb, texts
from bioptimus_jax.sets.texts import CLASSES, F1, HALLMARKS, INTERACTIONS, RELATIONS, SPELLED, Layout

BIOBERT, N2C2 = "BioBERT's files", 'n2c2 agreement'
ENTITIES = (
    blurb.Published('bc4chemd', (29478, 29486, 25346), BIOBERT, 'unclear'),
    blurb.Published('linnaeus', (2119, 711, 1433), BIOBERT, 'CC BY 4.0'),
    blurb.Published('s800', (2557, 384, 767), BIOBERT, 'freely offered'),
    blurb.Published(
        'jnlpba-biobert', (32178, 8575, 6241), f'{BIOBERT}: protein, DNA, RNA', 'GENIA', corpus='JNLPBA'
    ),
    blurb.Published('i2b2-2010', (0, 0, 0), 'i2b2 2010: problems, tests, treatments', N2C2),
    blurb.Published('i2b2-2012', (0, 0, 0), 'i2b2 2012: events', N2C2),
    blurb.Published('i2b2-2014', (0, 0, 0), 'i2b2 2014: protected health information', N2C2),
)

BLUE = Layout((1,), 2, name=0, header=True)
TEXTS = (
    texts.Published(
        'hoc-blue',
        CLASSES,
        Layout((1,), 0, name=2, header=True, document=r'[^_]+', joined=True, apart=True),
        (1108, 157, 315),
        ('example_f1', *F1),
        "BLUE's split of documents with a label, by sentence",
        'GPL-3.0',
        HALLMARKS,
        several=True,
        spelled=SPELLED,
        corpus='HoC',
    ),
    texts.Published(
        'chemprot-blue',
        CLASSES,
        dataclasses.replace(BLUE, document=r'[^.]+'),
        (0, 0, 0),
        F1,
        "BLUE's pairs",
        'public domain mark; registration',
        RELATIONS,
        ('false',),
        positives=(4154, 2416, 3458),
        corpus='ChemProt',
    ),
    texts.Published(
        'chemprot-scibert',
        CLASSES,
        Layout((0,), 1, keys=('text', 'label')),
        (4169, 2427, 3469),
        F1,
        "SciBERT's related pairs, 13 classes",
        'public domain mark; registration',
        tuple(
            'ACTIVATOR AGONIST AGONIST-ACTIVATOR AGONIST-INHIBITOR ANTAGONIST DOWNREGULATOR '
            'INDIRECT-DOWNREGULATOR INDIRECT-UPREGULATOR INHIBITOR PRODUCT-OF SUBSTRATE SUBSTRATE_PRODUCT-OF '
            'UPREGULATOR'.split()
        ),
        corpus='ChemProt',
    ),
    texts.Published(
        'ddi-blue',
        CLASSES,
        dataclasses.replace(BLUE, document=r'[^.]+\.d\d+'),
        (0, 7244, 5761),
        F1,
        "BLUE's pairs; devel cut by sentence",
        'CC BY-NC 4.0',
        INTERACTIONS,
        ('DDI-false',),
        positives=(2937, 1004, 979),
        corpus='DDI',
    ),
    texts.Published(
        'i2b2-2010-re',
        CLASSES,
        dataclasses.replace(BLUE, document=r'[^.]+'),
        (21384, 0, 0),
        F1,
        "BLUE's pairs; Bio-LM moves the last 776 of train to devel",
        N2C2,
        ('PIP', 'TeCP', 'TeRP', 'TrAP', 'TrCP', 'TrIP', 'TrNAP', 'TrWP', 'false'),
        ('false',),
        positives=(0, 0, 6293),
        held_out=776,
    ),
    texts.Published(
        'mednli',
        CLASSES,
        Layout((1, 2), 3, name=0, keys=('pairID', 'sentence1', 'sentence2', 'gold_label')),
        (11232, 1395, 1422),
        ('accuracy', 'macro_f1'),
        'MedNLI',
        'PhysioNet, credentialed',
        ('entailment', 'neutral', 'contradiction'),
        files='mli_{}_v1.jsonl',
    ),
)

FOLDS = {
    'gad': (4261, {1: (4796, 534), 10: (4798, 532)}, (4797, 533), 'CC BY 4.0'),
    'euadr': (283, {1: (318, 37), 2: (318, 37), 3: (319, 36)}, (320, 35), 'not stated'),
}
"""BioBERT's ten folds: how many examples of train.tsv are train, of GAD as in BLURB, the others are devel; examples of
train.tsv and test.tsv in the folds that are not as the others; those of the others; licence."""
FOLDED = tuple(
    texts.Published(
        f'{name}-{fold}',
        CLASSES,
        BLUE,
        (kept, train - kept, test),
        ('micro_f1', 'accuracy'),
        "BioBERT's ten folds",
        licence,
        ('0', '1'),
        ('0',),
        corpus=name.upper(),
        held_out=train - kept,
        train=Layout((0,), 1),
        first=f'{name}-1',
    )
    for name, (kept, of_fold, others, licence) in FOLDS.items()
    for fold in range(1, 11)
    for train, test in [of_fold.get(fold, others)]
)
RECORDS: tuple[blurb.Published | texts.Published, ...] = (*ENTITIES, *TEXTS, *FOLDED)
SETS = {record.name: record for record in RECORDS}


def record_of(name: str) -> blurb.Published | texts.Published | None:
    """The record that the name of a folder means, as i2b2-2010 for I2B2_2010, s800 for S800-IOB."""
    return SETS.get(blurb.plain(name))
