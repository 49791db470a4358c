"""Lewis et al. (2020), Pretrained language models for biomedical and clinical tasks: Bio-LM.

Not here: Table 5 (the best results of others), and of Table 7 the single tasks of models that Table 2 does not have.
"""

import statistics
from collections.abc import Iterable, Mapping

from bioptimus_jax.lab.printed import Numbers, Printed, Scored, of, read, turned

FOLDS = (
    "median over nine of BioBERT's folds; another, here the first, chooses the settings. Epochs are chosen on the end"
    " of a fold's train, in the paper on its test set"
)


def _folds(name: str) -> Scored:
    """The folds that choose no settings."""
    nine = tuple(f'{name}-{fold}' for fold in range(2, 11))
    return Scored((nine,), otherwise=FOLDS, within=statistics.median)


COLUMNS = {
    'BC5-chem': of('bc5-chem'),
    'BC5-disease': of('bc5-disease'),
    'JNLPBA': of('jnlpba-biobert'),
    'NCBI-disease': of('ncbi-disease'),
    'BC4CHEMD': of('bc4chemd'),
    'BC2GM': of('bc2gm'),
    'LINNAEUS': of('linnaeus'),
    'Species-800': of('s800'),
    'I2B2-2010': of('i2b2-2010'),
    'I2B2-2012': of('i2b2-2012'),
    'I2B2-2014': of('i2b2-2014'),
    'HoC': of('hoc-blue', otherwise='called macro F1, computed as example-based F1, as here'),
    'ChemProt': of('chemprot-blue', otherwise='called macro F1, computed as micro F1, as here'),
    'GAD': _folds('gad'),
    'EU-ADR': _folds('euadr'),
    'DDI': of('ddi-blue'),
    'I2B2-2010 relations': of('i2b2-2010-re'),
    'MedNLI': of('mednli'),
}
CLINICAL = ('I2B2-2010', 'I2B2-2012', 'I2B2-2014', 'I2B2-2010 relations', 'MedNLI')
LABELLING = tuple(COLUMNS)[:11]


def _mean(titles: Iterable[str]) -> Scored:
    """The mean of tasks."""
    columns = [COLUMNS[title] for title in titles]
    folds = any(column.otherwise == FOLDS for column in columns)
    otherwise = 'GAD and EU-ADR as in Table 2' * folds
    return Scored([c.groups[0] for c in columns], otherwise=otherwise, within=statistics.median)


MEANS = {
    'clinical': _mean(CLINICAL),
    'PubMed': _mean(title for title in COLUMNS if title not in CLINICAL),
    'labelling': _mean(LABELLING),
    'classification': _mean(title for title in COLUMNS if title not in LABELLING),
    'all': _mean(COLUMNS),
}
MODELS = (
    'RoBERTa-base SciBERT BioBERT ClinicalBERT BioMed-RoBERTa Bio-LM-base RoBERTa-large Bio-LM-large'.split()
)
NOTE = (
    'Lewis et al. (2020): median of five runs. The interval here is that of the mean. Sets whose forms clash with'
    " BLURB's have other names here: jnlpba-biobert, hoc-blue, chemprot-blue, ddi-blue, gad-1 to gad-10."
)
T2 = """
BC5-chem: 87.3 91.9 91.9 90.6 90.3 92.9 90.8 93.7
BC5-disease: 77.6 83.6 83.3 81.3 80.6 83.8 82.3 85.2
JNLPBA: 79.5 80.3 80.4 79.3 80.2 80.6 80.1 81.0
NCBI-disease: 84.7 86.9 87.6 86.1 86.1 87.7 87.1 89.0
BC4CHEMD: 88.6 91.8 92.2 90.3 89.7 92.7 90.6 93.7
BC2GM: 82.7 85.7 85.6 83.9 84.2 87.0 85.3 88.0
LINNAEUS: 79.8 84.1 86.2 84.8 84.2 85.3 87.8 88.4
Species-800: 75.8 77.8 79.2 77.4 77.3 79.6 78.3 81.1
I2B2-2010: 83.5 86.3 86.0 86.3 85.0 88.1 87.3 89.7
I2B2-2012: 74.9 77.6 77.6 78.0 76.4 79.5 78.3 80.8
I2B2-2014: 95.6 95.2 94.7 94.6 95.2 95.5 95.8 96.3
HoC: 86.0 84.7 86.6 86.2 86.7 86.5 85.2 86.6
ChemProt: 69.6 69.7 73.9 68.5 75.7 75.4 71.7 76.2
GAD: 79.4 78.7 81.2 79.2 81.6 82.2 73.4 81.1
EU-ADR: 85.0 85.5 85.0 85.1 85.0 85.0 85.0 85.0
DDI: 79.0 79.1 79.9 77.3 80.7 81.0 80.5 82.1
I2B2-2010 relations: 72.4 69.8 74.4 74.0 75.0 75.0 75.2 78.6
MedNLI: 81.4 79.7 82.5 81.8 85.1 87.1 83.3 88.5
all: 81.3 82.7 83.8 82.5 83.3 84.7 83.2 85.8
"""
T3 = """
RoBERTa-base: 81.6 81.1 82.7 79.0 81.3
base, +PM: 83.5 84.1 85.7 81.1 83.9
base, +PM, own vocabulary: 83.4 84.4 86.5 80.4 84.1
base, +PM and MIMIC: 85.0 84.0 85.9 81.6 84.2
Bio-LM-base (+PM and MIMIC, own vocabulary): 85.1 84.6 86.6 81.8 84.7
RoBERTa-large: 84.0 82.9 85.8 79.2 83.2
large, +PM and MIMIC: 85.7 85.1 87.3 82.1 85.3
Bio-LM-large (+PM and MIMIC, own vocabulary): 86.8 85.5 87.9 82.6 85.8
"""
T6 = """
Bio-LM-base: 85.1 84.6 86.6 81.8 84.7
Bio-LM-base, 50 k steps longer: 85.0 84.7 86.6 81.8 84.8
distilled: 85.1 84.8 86.8 81.9 84.9
distilled, aligned: 85.2 84.9 86.9 81.9 85.0
Bio-LM-large: 86.8 85.5 87.9 82.6 85.8
"""


def _all_models() -> Numbers:
    """The models of Table 7: of Table 2 all but Bio-LM-base, and those that Table 3 alone has."""
    found = {name: row for name, row in turned(read(MODELS, T2)).items() if name != 'Bio-LM-base'}
    for label, means in read(MEANS, T3).items():
        name = label.split(' (')[0]
        if name != 'Bio-LM-base':
            found[name] = {**found.get(name, {}), **means}
    return found


def _table(title: str, columns: Mapping[str, Scored], rows: Numbers, note: str) -> Printed:
    return Printed(f'Bio-LM, {title}', columns, rows, f'{note} {NOTE}', average=statistics.median, decimals=1)


TABLES = {
    'biolm-2': _table(
        'Table 2: models',
        {**COLUMNS, 'all': MEANS['all']},
        turned(read(MODELS, T2)),
        'EU-ADR at 85.0 everywhere is what the answer 1 for every text gets.',
    ),
    'biolm-3': _table(
        'Table 3: corpora and vocabularies',
        MEANS,
        read(MEANS, T3),
        f'PM: PubMed abstracts and PMC. Groups of tasks (Table 4) as they give these means: clinical is'
        f' {", ".join(CLINICAL)}, labelling is {", ".join(LABELLING)}.',
    ),
    'biolm-6': _table('Table 6: distillation', MEANS, read(MEANS, T6), 'Means over the tasks of a group.'),
    'biolm-7': _table(
        'Table 7: all models',
        {**COLUMNS, **MEANS},
        _all_models(),
        'The header of the printed table is shifted: columns are named by their numbers. Those of the models of Table'
        ' 2 are from there, means from Table 3; for the others only the means are available, for the distilled ones'
        ' nothing.',
    ),
}
