#!/usr/bin/env bash
# simple-icd-10-cm 1.5.0: `is_ancestor` and `is_descendant` are False below a subcategory that is written without its
# dot, though both ways of writing a code are welcome by the README.
#   - E11.21 is a descendant of E11.2, and it is not one of E112, which is the same code: type 2 diabetes with
#     complications of the kidney. Categories, such as E11, have no dot and come out right.
#   - There are 194,304 pairs of a subcategory and one of its descendants. With the dot all of them are found, and
#     without it none.
#   - A list of opioid poisonings (T40.0 to T40.4 and T40.6) finds 156 codes with dots, and none without them. A list of
#     E112, J44, I50 and S720 finds 28 codes for the lung and the heart. It finds none of the 3 codes for the kidney in
#     diabetes, and none of the 576 for a broken hip.
# The reason: the ancestors of a code come back with dots, and the other code is looked for among them as it was
# written. By the README all functions take both formats, and get_ancestors, get_descendants and get_parent do.
# Nothing is raised, and False is what an unrelated code gives, too. MIMIC and most claims keep codes without dots, so a
# cohort or a label loses all patients of some conditions and keeps those of others. Remedy: add_dot(code) before the
# comparison.
# simple-icd-10 2.1.1 does the same, but the ICD-10 of the WHO has hardly any codes below a subcategory.
# Seen on 2026-11-30, in the newest version.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" --quiet install simple-icd-10-cm==1.5.0
"$folder/env/bin/python" - <<'PYTHON'
from importlib.metadata import version

import simple_icd_10_cm as cm

print('simple-icd-10-cm', version('simple-icd-10-cm'))


def plain(code):
    return code.replace('.', '')


EXAMPLES = (('E11.21', 'E11.2'), ('E11.21', 'E112'), ('E1121', 'E112'), ('E1121', 'E11.2'), ('E1121', 'E11'))
for code, ancestor in EXAMPLES:
    found = cm.is_descendant(code, ancestor)
    print(f'{code} below {ancestor}: {found}')
    assert found == cm.is_ancestor(ancestor, code)
    assert found == (ancestor != 'E112'), 'codes without a dot are understood now'
    assert plain(code).startswith(plain(ancestor)) and cm.is_valid_item(ancestor)
assert cm.get_description('E112') == cm.get_description('E11.2') and 'E11.21' in cm.get_descendants('E112')

pairs, dotted, undotted = 0, 0, 0
for code in filter(cm.is_subcategory, cm.get_all_codes()):
    for ancestor in filter(cm.is_subcategory, cm.get_ancestors(code)):
        assert code.startswith(ancestor) and code != ancestor
        pairs += 1
        dotted += cm.is_descendant(code, ancestor)
        undotted += cm.is_descendant(plain(code), plain(ancestor))
print(f'{pairs} pairs, found with dots {dotted}, without dots {undotted}')
assert (pairs, dotted, undotted) == (194304, 194304, 0)

codes = filter(cm.is_category_or_subcategory, cm.get_all_codes(with_dots=False))
leaves = list(filter(cm.is_leaf, codes))
for name, chosen, number, seen in (
    ('poisoning by opioids', ('T40.0', 'T40.1', 'T40.2', 'T40.3', 'T40.4', 'T40.6'), 156, 0),
    ('diabetes with kidney', ('E11.2',), 3, 0),
    ('COPD', ('J44',), 5, 5),
    ('heart failure', ('I50',), 23, 23),
    ('broken hip', ('S72.0',), 576, 0),
):
    right = [code for code in leaves if code.startswith(tuple(map(plain, chosen)))]
    dotted = [code for code in leaves if any(cm.is_descendant(code, ancestor) for ancestor in chosen)]
    found = [code for code in leaves if any(cm.is_descendant(code, plain(ancestor)) for ancestor in chosen)]
    print(f'{name}: {len(right)} codes, found with dots {len(dotted)}, without dots {len(found)}')
    assert right == dotted and (len(right), len(found)) == (number, seen)
PYTHON
echo 'As stated: without its dot a code has no descendants.'
