#!/usr/bin/env bash
# medkit-lib 0.17.0 (clinical text): `filter_overlapping_entities(entities)` drops entities that overlap with none. What
# ends where a longer entity, or one of its own length, begins is lost.
#   - `50mg` with a dose `50` and a unit `mg`: the unit alone is kept. Of `500mg` both are, and of `50 mg`, too.
#   - Of the whole doses from 1 to 1000 that are written without a space before the unit, 99 in mg lose their number,
#     999 in mcg, and all in units.
#   - `CD8+` with the protein `CD8` and the sign `+` keeps both, `T790M` with the places `T`, `790` and `M` loses the T.
# By the docstring overlaps are removed, and of those that overlap the longest one is preferred. The reason: the end of
# a span is the place behind its last letter, and this place is looked for among the letters of longer entities.
# Nothing is raised. The function is for training data, and a model learns from it that a dose before a unit is none, if
# it is small. Remedy: keep the longest first and drop only where start < end of the other one and end > its start.
# Seen on 2026-11-30, in the newest version.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" --quiet install medkit-lib==0.17.0
"$folder/env/bin/python" -W ignore - <<'PYTHON'
from importlib.metadata import version

from medkit.core.text import Entity, Span
from medkit.text.postprocessing import filter_overlapping_entities

print('medkit-lib', version('medkit-lib'))


def parts(text, *names):
    """Entities for parts of a text, one behind the other."""
    found, start = [], 0
    for label, part in names:
        start = text.index(part, start)
        found.append(Entity(label=label, spans=[Span(start, start + len(part))], text=part))
        start += len(part)
    return found


def overlap(first, second):
    a, b = first.spans[0], second.spans[0]
    return a.start < b.end and b.start < a.end


def kept(entities):
    return [entity.text for entity in filter_overlapping_entities(entities)]


def by_hand(entities):
    """The longest of those that overlap."""
    chosen = []
    for entity in sorted(entities, key=lambda entity: -len(entity.text)):
        if not any(overlap(entity, other) for other in chosen):
            chosen.append(entity)
    return [entity.text for entity in sorted(chosen, key=lambda entity: entity.spans[0].start)]


for text, names, seen, right in (
    ('50mg', (('dose', '50'), ('unit', 'mg')), ['mg'], ['50', 'mg']),
    ('500mg', (('dose', '500'), ('unit', 'mg')), ['500', 'mg'], ['500', 'mg']),
    ('50 mg', (('dose', '50'), ('unit', 'mg')), ['50', 'mg'], ['50', 'mg']),
    ('CD8+', (('protein', 'CD8'), ('sign', '+')), ['CD8', '+'], ['CD8', '+']),
    ('T790M', (('old', 'T'), ('place', '790'), ('new', 'M')), ['790', 'M'], ['T', '790', 'M']),
):
    entities = parts(text, *names)
    found, hand = kept(entities), by_hand(entities)
    print(f'{text}: {found}, by hand {hand}')
    assert not any(overlap(*pair) for pair in zip(entities, entities[1:]))
    assert found == seen, 'other entities are dropped now'
    assert hand == right
chain = [Entity(label='x', spans=[Span(0, 4)], text='lung'), Entity(label='y', spans=[Span(0, 11)], text='lung cancer')]
assert kept(chain) == by_hand(chain) == ['lung cancer']

for unit, seen in (('mg', 99), ('mcg', 999), ('units', 1000)):
    doses = [str(number) for number in range(1, 1001)]
    lost = sum(dose not in kept(parts(dose + unit, ('dose', dose), ('unit', unit))) for dose in doses)
    print(f'1{unit} to 1000{unit}: {lost} without their number')
    assert lost == seen
PYTHON
echo 'As stated: what ends where a longer entity begins is lost.'
