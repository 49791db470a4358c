"""Gu et al. (2021), Domain-specific language model pretraining for biomedical NLP: BLURB and PubMedBERT.

Two versions: the early one on arXiv, which most people quote, and the final one (ACM HEALTH), which renumbers Tables 8
to 12 and has other numbers of JNLPBA and GAD. Not here: Table 8 of the final version, input lengths.
"""

from typing import Any

from bioptimus_jax.lab.printed import BLURB, EARLY, Printed, one_of, read, turned

BOTH = {**BLURB, **EARLY}
OUT_OF = 'Gu et al. (2021): mean of five runs; of ten for BIOSSES, BioASQ and PubMedQA.'
FINAL = f'{OUT_OF} Final version; columns named early are those of the early one on arXiv where it differs.'
MODELS = (
    'BERT uncased | BERT cased | RoBERTa | BioBERT | SciBERT uncased | SciBERT cased | ClinicalBERT | BlueBERT'
    ' | PubMedBERT'
)
OTHERS = (
    "general vocabulary, pieces | general vocabulary, words | PubMed's vocabulary, pieces | with PMC"
    " | with PMC, 100 k steps | with adversarial training | from BERT, PubMed's vocabulary | half of the time"
)
NUMBERS = """
BC5-chem: 89.25 89.99 89.43 92.85 92.49 92.51 90.80 91.19 93.33 93.20 93.31 92.96 93.36 93.34 93.17 93.41 93.05
BC5-disease: 81.44 79.92 80.65 84.70 84.54 84.70 83.04 83.69 85.62 85.00 85.28 84.72 85.62 85.76 85.48 85.43 85.02
NCBI-disease: 85.67 85.87 86.62 89.13 88.10 88.25 86.32 88.04 87.82 88.39 88.53 87.26 88.34 88.04 87.99 87.60 87.77
BC2GM: 80.90 81.23 80.90 83.82 83.36 83.36 81.71 81.87 84.52 83.65 83.93 83.19 84.39 84.37 84.07 84.03 84.11
JNLPBA early: 78.63 78.52 78.81 79.35 79.45 79.56 78.59 78.68 80.06 79.90 79.76 79.49 79.63 79.85 79.83 - -
JNLPBA: 77.69 77.51 77.86 78.55 78.68 78.51 78.07 77.71 79.10 78.83 78.77 78.63 78.90 79.16 79.18 79.01 78.98
EBM PICO: 72.34 71.70 73.02 73.18 73.12 73.06 72.06 72.54 73.38 73.30 73.52 73.44 73.64 73.72 72.92 73.80 73.74
ChemProt: 71.86 71.54 72.98 76.14 75.24 75.00 72.04 71.46 77.24 75.04 76.70 75.72 76.96 76.80 77.04 77.05 76.69
DDI: 80.04 79.34 79.52 80.88 81.06 81.22 78.20 77.78 82.36 81.30 82.60 80.84 83.56 82.06 83.62 81.96 81.21
GAD early: 77.72 77.28 77.72 80.94 80.90 79.66 78.40 77.24 82.34 79.48 80.30 79.34 82.24 81.58 81.48 - -
GAD: 80.41 79.61 80.63 82.36 82.38 81.34 80.48 79.15 83.96 83.02 82.42 81.74 84.08 82.90 83.54 82.47 82.80
BIOSSES: 82.68 81.40 81.25 89.52 86.25 87.15 91.23 85.38 92.30 91.36 91.79 92.45 90.39 92.31 94.11 89.93 92.12
HoC: 80.20 80.12 79.66 81.54 80.66 81.16 80.74 80.48 82.32 81.76 81.74 80.38 82.16 82.62 82.20 83.14 82.13
PubMedQA: 51.62 49.96 52.84 60.24 57.38 51.40 49.08 48.44 55.84 52.20 55.92 54.76 61.02 60.02 53.30 54.84 55.28
BioASQ: 70.36 74.44 75.20 84.14 78.86 74.22 68.50 68.71 87.56 73.69 76.41 78.51 83.43 87.20 82.71 79.00 79.43
BLURB early: 75.99 75.76 76.33 80.29 78.80 78.08 77.19 76.19 81.10 79.00 79.87 79.51 80.93 81.45 80.68 - -
BLURB: 76.11 75.86 76.46 80.34 78.86 78.14 77.29 76.27 81.16 79.16 79.96 79.62 81.01 81.50 80.77 80.03 80.23
"""
ROWS = turned(read(f'{MODELS} | {OTHERS}'.split(' | '), NUMBERS))
ROWS["from BERT, BERT's vocabulary"] = ROWS['BioBERT']
FIRST = {'features': one_of('family', 'first')}
MENTIONS = {'features': one_of('mentions')}
HEADS = """
PubMedBERT / linear: 93.33 85.62 80.06 77.24 82.36 82.34
PubMedBERT / BiLSTM: 93.12 85.64 80.06 75.40 81.70 81.80
"""
SCHEMES = """
PubMedBERT / BIO: 93.33 85.62 80.06
PubMedBERT / BIOUL: 93.37 85.59 79.98
PubMedBERT / IO: 93.11 85.63 80.01
"""
RELATIONS = """
PubMedBERT / dummies, [CLS]: 77.24 82.36
PubMedBERT / dummies, mentions: 77.22 82.08
PubMedBERT / original text, [CLS]: 50.52 37.00
PubMedBERT / original text, mentions: 75.48 79.42
PubMedBERT / markers, [CLS]: 77.72 82.22
PubMedBERT / markers, mentions: 77.22 82.42
PubMedBERT / markers, entity start: 77.58 82.18
"""


HEAD_WAYS = {'linear': {'head': one_of('linear')}, 'BiLSTM': {'head': one_of('bilstm')}}
SCHEME_WAYS = {name: {'scheme': one_of(name.lower())} for name in ('BIO', 'BIOUL', 'IO')}
RELATION_WAYS = {
    'dummies, [CLS]': FIRST,
    'dummies, mentions': MENTIONS,
    'original text, [CLS]': FIRST,
    'markers, [CLS]': FIRST,
    'markers, mentions': MENTIONS,
    'markers, entity start': {'features': one_of('starts')},
}
MARKED = {way: '-markers' for way in RELATION_WAYS if way.startswith('markers')}
ENDINGS = {'original text, [CLS]': '-original', **MARKED}
TAGGED = ('BC5-chem', 'BC5-disease', 'JNLPBA early')
BY_CORPUS = 'PubMedBERT | with PMC | with PMC, 100 k steps'
BY_VOCABULARY = (
    "general vocabulary, pieces | general vocabulary, words | PubMed's vocabulary, pieces | PubMedBERT"
)
CONTINUED = "from BERT, BERT's vocabulary | from BERT, PubMed's vocabulary | half of the time | PubMedBERT"
NOTES = {
    'Table 7': "General vocabulary: from BERT's weights, else from random ones. PubMedBERT: its own vocabulary, words.",
    'Table 8 (final version: 10)': 'PubMedBERT: abstracts alone.',
    'Table 9 (final version)': 'The last two from scratch.',
    'Table 12 (final version: 14)': 'The public files have dummies, as @GENE$; sets in other forms are'
    ' chemprot-original, ddi-markers and so on.',
}


def _models(number: str, title: str, rows: str, columns: Any = BOTH) -> Printed:
    """Models on all sets."""
    numbers = {name: ROWS[name] for name in rows.split(' | ')}
    note = f'{NOTES.get(number, "")} {FINAL}'.strip()
    return Printed(f'PubMedBERT, {number}: {title}', columns, numbers, note)


def _ways(number: str, title: str, sets: tuple[str, ...], text: str, ways: dict, **more: Any) -> Printed:
    """One model in several ways; numbers of the early version."""
    early = 'Early version (arXiv), the only one with available numbers.'
    note = f'{NOTES.get(number, "")} {OUT_OF} {early}'.strip()
    columns = {name: BOTH[name] for name in sets}
    return Printed(f'PubMedBERT, {number}: {title}', columns, read(sets, text), note, ways, **more)


TABLES = {
    'pubmedbert-6': _models('Table 6', 'models', MODELS),
    'pubmedbert-7': _models('Table 7', 'vocabulary and masking', BY_VOCABULARY),
    'pubmedbert-8': _models('Table 8 (final version: 10)', 'corpora', BY_CORPUS),
    'pubmedbert-9': _models(
        'Table 9 (final version: 11)', 'adversarial training', 'PubMedBERT | with adversarial training'
    ),
    'pubmedbert-9-final': _models('Table 9 (final version)', 'from scratch and continued', CONTINUED, BLURB),
    'pubmedbert-10': _ways(
        'Table 10 (final version: 12)', 'heads', (*TAGGED, 'ChemProt', 'DDI', 'GAD early'), HEADS, HEAD_WAYS
    ),
    'pubmedbert-11': _ways('Table 11 (final version: 13)', 'tags', TAGGED, SCHEMES, SCHEME_WAYS),
    'pubmedbert-12': _ways(
        *('Table 12 (final version: 14)', 'relations', ('ChemProt', 'DDI'), RELATIONS, RELATION_WAYS),
        endings=ENDINGS,
    ),
}
