"""ChemProt in BLURB's form, from the tables of BioCreative VI: every chemical with every gene of a sentence.

Sentences are those of NLTK's Punkt for English, of the whole line `title TAB abstract`; one with the tab in it is cut
there. Chemicals and genes are in the order of the table of entities. A pair has the last label that the table of
relations gives it; of the groups of relations, those that BLURB does not count are `false`.
"""

import re
from collections.abc import Iterator
from typing import Any

from bioptimus_jax.errors import ConfigError, InputError
from bioptimus_jax.rebuild.originals import Builder, Example, Made, Originals, quoted
from bioptimus_jax.sets.inputs import NamedPlace
from bioptimus_jax.sets.sentences import SPLITS
from bioptimus_jax.sets.standoff import are_offsets
from bioptimus_jax.sets.texts import SETS

FILES = dict(zip(SPLITS, ('training_{}', 'development_{}', 'test_{}_gs'), strict=True))
ENTITIES = ('document', 'entity', 'type', 'start', 'end', 'text')
RELATIONS = ('document', 'group', 'counted', 'relation', 'Arg1:entity', 'Arg2:entity')
CHEMICAL, GENE = 'CHEMICAL', 'GENE'
KINDS = {'CHEMICAL': CHEMICAL, 'GENE': GENE, 'GENE-Y': GENE, 'GENE-N': GENE}
GROUP = re.compile(r'CPR:\d+')
NONE, *COUNTED = SETS.own['chemprot'].labels

Pair = tuple[str, str, str]  # document, chemical, gene


def make(originals: Originals, fold: int) -> Made:
    """The examples, and how many relations are not among them. Raises InputError with file and line."""
    punkt = _punkt()
    splits, several, lost = {}, [], []
    for split, name in FILES.items():
        texts = _texts(originals, f'chemprot_{name.format("abstracts")}.tsv')
        mentions = _mentions(originals, f'chemprot_{name.format("entities")}.tsv', texts)
        labels = _labels(originals, f'chemprot_{name.format("relations")}.tsv', mentions)
        splits[split] = [x for document in texts for x in _pairs(punkt, document, texts, mentions, labels)]
        several.append(sum(len(set(COUNTED).intersection(of_one)) > 1 for of_one in labels.values()))
        positive = sum(of_one[-1] in COUNTED for of_one in labels.values())
        lost.append(positive - sum(example.columns[2] != NONE for example in splits[split]))
    return Made(
        splits,
        (
            f'{" / ".join(map(str, several))} pairs have several of the labels; the last one is kept',
            f'{" / ".join(map(str, lost))} related pairs are not in one sentence and are left out',
        ),
    )


def _punkt() -> Any:
    try:
        import punkt  # late: nobody else needs it
    except ImportError as error:
        raise ConfigError(
            "--set=chemprot: NLTK's sentence splitter is not installed; pip install 'bioptimus-jax[sets]'"
        ) from error
    return punkt.tokenizer_for('english')


def _texts(originals: Originals, name: str) -> dict[str, str]:
    """Title, tab, abstract and line feed of every document."""
    return {
        row[0]: f'{row[1]}\t{row[2]}\n' for _, row in originals.rows(name, ('document', 'title', 'abstract'))
    }


def _mentions(originals: Originals, name: str, texts: dict[str, str]) -> dict[str, dict[str, NamedPlace]]:
    """The entities of every document by their names, in the order of the file."""
    found: dict[str, dict[str, NamedPlace]] = {document: {} for document in texts}
    for where, (document, entity, kind, start, end, text) in originals.rows(name, ENTITIES):
        if document not in texts:
            raise InputError(f'{where}: the document {document!r} has no abstract')
        if kind not in KINDS or not are_offsets(start, end):
            wrong = f'{kind!r}, {start[:20]!r}, {end[:20]!r}'
            raise InputError(
                f'{where}: expected one of {", ".join(KINDS)}, a start and an end, found {wrong}'
            )
        covered = quoted(where, texts[document], int(start), int(end), text)
        if covered != text:
            raise InputError(
                f'{where}: characters {start} to {end} of title, tab and abstract are {covered[:60]!r}, not '
                f'{text[:60]!r}'
            )
        found[document][entity] = NamedPlace(int(start), int(end), KINDS[kind])
    return found


def _labels(
    originals: Originals, name: str, mentions: dict[str, dict[str, NamedPlace]]
) -> dict[Pair, list[str]]:
    """The labels of every pair that has any, in the order of the file."""
    found: dict[Pair, list[str]] = {}
    for where, (document, group, _, _, *arguments) in originals.rows(name, RELATIONS):
        if not GROUP.fullmatch(group):
            raise InputError(f'{where}: expected a group as CPR:3, found {group!r}')
        chemical, gene = (argument.partition(':')[2] for argument in arguments)
        known = mentions.get(document, {})
        for entity, kind in ((chemical, CHEMICAL), (gene, GENE)):
            if entity not in known or known[entity].name != kind:
                raise InputError(f'{where}: {entity!r} is not a {kind} of the document {document!r}')
        found.setdefault((document, chemical, gene), []).append(group if group in COUNTED else NONE)
    return found


def _pairs(
    punkt: Any,
    document: str,
    texts: dict[str, str],
    mentions: dict[str, dict[str, NamedPlace]],
    labels: dict[Pair, list[str]],
) -> Iterator[Example]:
    """An example for each chemical and gene of a sentence; where both begin together, the gene is the first."""
    text, of_document = texts[document], mentions[document]
    for start, end in _sentences(punkt, text):
        inside = [
            (entity, NamedPlace(one.start - start, one.end - start, one.name))
            for entity, one in of_document.items()
            if start <= one.start and one.end <= end
        ]
        for chemical in (x for x in inside if x[1].name == CHEMICAL):
            for gene in (x for x in inside if x[1].name == GENE):
                given = labels.get((document, chemical[0], gene[0]), [NONE])
                first, second = sorted((gene, chemical), key=lambda x: x[1].start)
                name = f'{document}.{first[0]}.{second[0]}'
                yield Example((name, text[start:end], given[-1]), (first[1], second[1]))


def _sentences(punkt: Any, text: str) -> Iterator[tuple[int, int]]:
    for start, end in punkt.span_tokenize(text):
        tab = text.find('\t', start, end)
        if tab >= 0:
            yield start, tab
            start = tab + 1
        yield start, end


BUILDER = Builder(
    'chemprot_{training,development}_{abstracts,entities,relations}.tsv, chemprot_test_{...}_gs.tsv',
    make,
    (
        'f588157d03dfe0972f5ac199b2e170ea342a793baf0b702ddecb7625cd3d26f5',
        '79d7c9954790292585ee6356a12c31b8bd5868923c7138b88b1705da10f4d04d',
        '6d56372be34d5131f43d07964acdd1dd91091b01a36f55c192a3366904a82c79',
    ),
    mentions=1,
)
