#!/usr/bin/env bash
# crowd-kit 1.4.2: `NoisyBradleyTerry().fit(comparisons)` gives annotators skills that have nearly nothing to do with
# their answers. The skill of the last one by name is the random number that it began with.
#   - Eight summaries, compared in pairs by six annotators, 56 times each. Whether the last one answers well, always
#     takes the left one, answers at random or says the opposite of what is right: `skills_` gives .727 each time. With
#     random_state=1 it is .690 each time. By the likelihood it is .99 for the good one and below .2 for the others.
#   - Four good annotators, one who takes the left one and one who answers at random, in 30 draws: of the 8 pairs of a
#     good and a bad one the good one has the higher skill in 54 %, as by a coin. By the likelihood in 100 %.
#   - The annotator who takes the left one in 95 % of cases has a bias (the share that he takes the left) of .70 on
#     average. By the likelihood it is .96.
#   - The same answers in another order of rows: the skill of a good annotator goes from .99 to .34.
# The reason: the class gives the optimiser a slope that is not the slope of its likelihood. For skills and biases the
# terms of all answers are not added up, the last row of an annotator alone is kept. They also stand one place too far
# to the left. So the last annotator has none, and that of the last item is written over.
# One would expect the parameters with the highest likelihood, as the docstring says: skills are the reliability of
# workers. Nothing is raised. In some draws numpy warns of an overflow. The ranks of items suffer little, so it looks as
# if it worked. Whoever pays or drops annotators by their skill does so by lot. Remedy: maximise the likelihood by hand,
# as in this script.
# Seen on 2026-11-30, in the newest version.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" --quiet install numpy==2.4.6 pandas==3.1.1 scipy==1.17.1 scikit-learn==1.9.1 attrs==26.1.0 \
    nltk==3.10.4 tqdm==4.70.1
"$folder/env/bin/pip" --quiet install --no-deps crowd-kit==1.4.2
"$folder/env/bin/python" -W ignore - <<'PYTHON'
from importlib.metadata import version

import numpy as np
import pandas as pd
from crowdkit.aggregation import NoisyBradleyTerry
from scipy.optimize import minimize
from scipy.special import expit
from scipy.stats import kendalltau

print('crowd-kit', version('crowd-kit'), 'pandas', pd.__version__)


def answers(seed, kinds):
    """Each annotator compares all pairs of eight items, on either side; rows in random order."""
    draw = np.random.default_rng(seed)
    truth = np.linspace(2, -2, 8)
    names = draw.permutation(list('ABCDEFGH'))
    rows = []
    for worker, kind in enumerate(kinds):
        for left in range(8):
            for right in range(8):
                if left != right:
                    clear = 2 * (truth[left] - truth[right])
                    chance = {'good': expit(clear), 'left': 0.95, 'random': 0.5, 'opposite': expit(-clear)}[kind]
                    winner = left if draw.random() < chance else right
                    rows.append((f'annotator {worker}', names[left], names[right], names[winner]))
    data = pd.DataFrame(rows, columns=['worker', 'left', 'right', 'label'])
    return data.sample(frac=1, random_state=seed), pd.Series(truth, index=names).sort_index()


def likeliest(data):
    """Scores, skills and biases of the highest likelihood, with a slope that is checked below."""
    items, workers = sorted({*data.left, *data.right}), sorted({*data.worker})
    left, right = (data[side].map(items.index).to_numpy() for side in ('left', 'right'))
    who = data.worker.map(workers.index).to_numpy()
    sign = np.where(data.label == data.left, 1, -1)
    first, second = len(items), len(items) + len(workers)

    def loss(x):
        fair, habit = expit(sign * (x[left] - x[right])), expit(sign * x[first + who])
        skill = expit(x[second + who])
        chance = skill * fair + (1 - skill) * habit
        slope = 0.02 * x
        by_item = sign * skill * fair * (1 - fair) / chance
        np.add.at(slope, left, -by_item)
        np.add.at(slope, right, by_item)
        np.add.at(slope, first + who, -sign * (1 - skill) * habit * (1 - habit) / chance)
        np.add.at(slope, second + who, -(fair - habit) * skill * (1 - skill) / chance)
        return -np.log(chance).sum() + 0.01 * (x**2).sum(), slope

    start = np.random.default_rng(0).random(second + len(workers))
    steps = 1e-6 * np.eye(len(start))
    numeric = [(loss(start + step)[0] - loss(start - step)[0]) / 2e-6 for step in steps]
    assert np.allclose(numeric, loss(start)[1], atol=1e-3)
    found = minimize(loss, start, jac=True, method='L-BFGS-B', options={'maxiter': 2000}).x
    return found[:first], expit(found[second:]), expit(found[first:second])


for kind in ('good', 'left', 'random', 'opposite'):
    data, _ = answers(0, ['good'] * 5 + [kind])
    seen = [NoisyBradleyTerry(random_state=state).fit(data).skills_['annotator 5'] for state in (0, 1)]
    right = likeliest(data)[1][5]
    print(f'the last annotator is {kind}: skill {seen[0]:.3f} and {seen[1]:.3f}, by the likelihood {right:.2f}')
    assert np.allclose(seen, [0.727, 0.690], atol=0.001), 'the last skill depends on the answers now'
    assert right > 0.95 if kind == 'good' else right < 0.2

kinds = ['good', 'left', 'good', 'good', 'random', 'good']
good = np.array([kind == 'good' for kind in kinds])
rows = []
for seed in range(30):
    data, truth = answers(seed, kinds)
    model, by_hand = NoisyBradleyTerry().fit(data), likeliest(data)
    for scores, skills, biases in ((model.scores_, model.skills_.to_numpy(), model.biases_.to_numpy()), by_hand):
        wins = (skills[good][:, None] > skills[~good]).mean()
        rows.append((wins, biases[1], kendalltau(scores, truth)[0]))
seen, right = np.array(rows)[::2].mean(0), np.array(rows)[1::2].mean(0)
for name, values in (('NoisyBradleyTerry', seen), ('by the likelihood', right)):
    print('{}: the good one has the higher skill in {:.2f}, bias of who takes the left {:.2f}, '
          'tau of the items {:.2f}'.format(name, *values))
assert 0.45 < seen[0] < 0.65 and right[0] > 0.99
assert np.isclose(seen[1], 0.70, atol=0.03) and np.isclose(right[1], 0.96, atol=0.01)
assert seen[2] > 0.85 and right[2] > 0.9

data, _ = answers(0, kinds)
both = pd.DataFrame({
    'as it came': NoisyBradleyTerry().fit(data).skills_,
    'other order': NoisyBradleyTerry().fit(data.sample(frac=1, random_state=99)).skills_,
})
orders = [likeliest(table)[1] for table in (data, data.sample(frac=1, random_state=99))]
print(both.round(2))
assert np.allclose(*orders, atol=0.01)
assert np.allclose(both.loc['annotator 0'], [0.99, 0.34], atol=0.02)
PYTHON
echo 'As stated: skills do not depend on the answers.'
