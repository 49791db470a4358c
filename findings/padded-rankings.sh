#!/usr/bin/env bash
# rax 0.4.0: items that `where` leaves out, as padding is, change three losses for ranking.
#   - Approximate metrics with `topn`: padding takes the first ranks. With one padded item NDCG@2 by approx_ranks is 0
#     and so is its gradient; with approx_cutoff as well, as approx_t12n does it, it falls from .265 to .166 with one
#     and to .089 with five. Without topn, or with exact ranks, padding changes nothing.
#   - `dcg_lambdaweight` and `dcg2_lambdaweight` multiply the weights of the formula by the width of the list, padding
#     included: 4 items padded to 16 have 4 times the loss. Batches padded to different widths weigh as their widths.
#   - `listmle_loss` with `segments`: a segment whose first items are left out, at least as many as are in it, has
#     loss 0.
# The documentation says of `where`: "Items for which this is False will be ignored when computing the loss", and its
# formulas have no width. Nothing is raised. With one width for all batches the second is a constant, and without
# padding there is none of the three. The other losses, and all exact metrics, are the same with padding. Remedy: no
# `topn` for approximate metrics; lambda weights divided by the width; what `where` leaves out behind the rest.
# (approx_t12n itself needs jax before 0.7, and gives the same numbers there.) Seen on 2026-11-29, in the newest
# version.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" --quiet install rax==0.4.0 jax==0.10.2 numpy==2.4.6
cat > "$folder/try.py" <<'PYTHON'
import functools
from importlib.metadata import version

import jax
import jax.numpy as jnp
import numpy as np
import rax

print('rax', version('rax'), 'with jax', jax.__version__)
SCORES, LABELS = np.float32([3.0, 2.0, 1.0, 0.5]), np.float32([0.0, 1.0, 2.0, 0.0])


def padded(count, scores=SCORES, labels=LABELS, front=False):
    """The list with so many items that `where` leaves out, which have the highest score and label."""
    random = np.random.default_rng(count)
    columns = [scores, 9 + random.random(count)], [labels, np.full(count, 2)], [np.ones(len(scores)), np.zeros(count)]
    scores, labels, where = (np.concatenate(column[::-1] if front else column) for column in columns)
    return scores.astype(np.float32), labels.astype(np.float32), where.astype(bool)


def value_and_slope(function, count, **options):
    scores, labels, where = padded(count)
    both = jax.jit(jax.value_and_grad(functools.partial(function, labels=labels, where=where, **options)))
    value, slope = both(scores)
    return round(float(value), 4), round(float(jnp.abs(slope).max()), 4)


def near(a, b):
    return abs(a - b) < 1e-4


ranks, cutoff = rax.utils.approx_ranks, rax.utils.approx_cutoff
by_ranks = functools.partial(rax.ndcg_metric, rank_fn=ranks)
by_both = functools.partial(rax.ndcg_metric, rank_fn=ranks, cutoff_fn=cutoff)
for name, function in (('approx_ranks', by_ranks), ('and approx_cutoff', by_both), ('exact', rax.ndcg_metric)):
    found = [value_and_slope(function, count, topn=2) for count in (0, 1, 5)]
    print(f'NDCG@2, {name}: value and largest slope with 0, 1 and 5 padded items: {found}')
    if name == 'exact':
        assert found[0] == found[1] == found[2]
    elif name == 'approx_ranks':
        assert found[0][0] > 0.1 and found[1] == found[2] == (0.0, 0.0), 'padding has no rank now'
    else:
        assert found[0][0] > 1.5 * found[1][0] > 2 * found[2][0], 'padding has no rank now'
whole = [value_and_slope(by_both, count) for count in (0, 5)]
print('without topn, with 0 and 5:', whole)
assert whole[0] == whole[1]

for weight in (rax.dcg_lambdaweight, rax.dcg2_lambdaweight, rax.labeldiff_lambdaweight):
    loss = functools.partial(rax.pairwise_logistic_loss, lambdaweight_fn=weight)
    found = [value_and_slope(loss, count)[0] for count in (0, 4, 12)]
    print(f'{weight.__name__}: loss of 4 items, padded to 4, 8 and 16: {found}')
    times = [value / found[0] for value in found]
    assert np.allclose(times, [1, 1, 1] if weight is rax.labeldiff_lambdaweight else [1, 2, 4], rtol=1e-3), times

gains, discounts = 2**LABELS - 1, 1 / np.log2(np.arange(4) + 2)  # the scores descend
by_formula = np.abs(gains[:, None] - gains) * np.abs(discounts[:, None] - discounts)
times = np.array(jax.jit(rax.dcg_lambdaweight)(SCORES, LABELS)).reshape(4, 4) / np.where(by_formula == 0, 1, by_formula)
print('dcg_lambdaweight by the formula of its documentation:\n', times)
assert np.allclose(times[by_formula > 0], 4)

few, marks = np.float32([0.1, -0.4, 0.7]), np.float32([2.0, 0.0, 1.0])
for front in (False, True):
    found = []
    for count in (0, 2, 3, 8):
        scores, labels, where = padded(count, few, marks, front)
        segments = np.zeros(len(scores), np.int32)
        loss = jax.jit(rax.listmle_loss)
        found.append(round(float(loss(scores, labels, where=where, segments=segments)), 4))
        alone = float(loss(scores, labels, where=where))
        assert near(alone, found[0])
    print(f'listmle of a segment of 3 with 0, 2, 3 and 8 padded items {"before" if front else "behind"} it: {found}')
    assert found == ([found[0]] * 2 + [0.0] * 2 if front else [found[0]] * 4), found

plain = (rax.softmax_loss, rax.pairwise_logistic_loss, rax.pairwise_hinge_loss, rax.pointwise_sigmoid_loss)
metrics = (rax.ndcg_metric, rax.mrr_metric, rax.ap_metric, rax.precision_metric, rax.recall_metric, rax.opa_metric)
for function in plain + metrics:
    scores, labels, where = padded(5, front=True)
    value = jax.jit(function)
    assert near(float(value(scores, labels, where=where)), float(value(SCORES, LABELS))), function
print('plain losses and exact metrics: the same with padding')
PYTHON
"$folder/env/bin/python" "$folder/try.py"
echo 'As stated: padding counts.'
