#!/usr/bin/env bash
# distrax 0.1.9 (jax 0.10.2): `HMM.forward_backward(observations)` takes any probability below 1e-15 for 1e-15, and one
# below 1e-45 for 0. One typing error erases the states of a whole course, and the likelihood rises for it.
#   - Heart rates of 12 hours, two states. With 720 in place of 74 at one hour, the posterior probabilities of both
#     states are 0 at every hour, so argmax gives the first state everywhere. By hand the other hours keep their states.
#   - The log-likelihood is -43.9 without the error and -12.1 with it. By hand it falls to -1336.6.
#   - No error is needed, if several laboratory values are given for each hour. With 8 of them a posterior is .15 where
#     it is .00. With 20 of them all are 0, and the log-likelihood is -207 in place of -993. By hand no hour is in
#     doubt.
#   - A model whose means are wrong by six standard deviations is likelier than the one that made the data: -104 against
#     -208 with 4 values, and 0 against -396 with 8. By hand it is -1026 and -2105.
# The reason: densities are multiplied as they are, not as logarithms. After each step the products are scaled, but
# before that they are raised to 1e-15, and where all are 0 they are divided by 1, whose logarithm is 0. Eight values
# whose standard deviations are between 3 and 60 have a density of about 1e-14 where they are most likely.
# The documentation calls the results the marginal probabilities of the states and the log-likelihood, and says nothing
# of a limit. Nothing is raised. It hurts who looks for states in vital signs or laboratory values, or who compares
# models by their likelihood. Remedy: `viterbi` adds logarithms and finds the right states here. For probabilities, add
# logarithms by hand. Values divided by their standard deviations help as long as none is far away.
# Seen on 2026-11-30, in the newest version.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" --quiet install distrax==0.1.9 jax==0.10.2 jaxlib==0.10.2 \
  tfp-nightly==0.26.0.dev20261027 numpy==2.4.6 scipy==1.17.1
"$folder/env/bin/python" - <<'PYTHON'
import warnings
from importlib.metadata import version

import distrax
import jax.numpy as jnp
import numpy as np
from scipy.special import logsumexp
from scipy.stats import norm

print('distrax', version('distrax'), 'jax', version('jax'))
START, MOVE = np.array([0.8, 0.2]), np.array([[0.9, 0.1], [0.1, 0.9]])


def by_hand(observed, mean, deviation):
    """Posterior probabilities and log-likelihood, with logarithms."""
    density = norm.logpdf(observed[:, None, :], mean, deviation).sum(-1)
    forward, backward = [np.log(START) + density[0]], [np.zeros(2)]
    for row in density[1:]:
        forward.append(row + logsumexp(forward[-1][:, None] + np.log(MOVE), axis=0))
    for row in density[:0:-1]:
        backward.append(logsumexp(np.log(MOVE) + row + backward[-1], axis=1))
    joint = np.array(forward) + np.array(backward[::-1])
    return np.exp(joint - logsumexp(joint, axis=1, keepdims=True)), float(logsumexp(forward[-1]))


def by_all_paths(observed, mean, deviation):
    """The same by all paths, which is slow and has no recursion that could be wrong."""
    density = norm.logpdf(observed[:, None, :], mean, deviation).sum(-1)
    hours = len(observed)
    paths = (np.arange(2 ** hours)[:, None] >> np.arange(hours)) & 1
    joint = np.log(START)[paths[:, 0]] + density[np.arange(hours), paths].sum(1)
    joint += np.log(MOVE)[paths[:, :-1], paths[:, 1:]].sum(1)
    total = logsumexp(joint)
    second = np.exp(joint - total) @ paths
    return np.stack([1 - second, second], axis=1), float(total)


def by_distrax(observed, mean, deviation):
    model = distrax.HMM(
        distrax.Categorical(probs=jnp.array(START)),
        distrax.Categorical(probs=jnp.array(MOVE)),
        distrax.MultivariateNormalDiag(jnp.array(mean), jnp.array(deviation)),
    )
    with warnings.catch_warnings():
        warnings.simplefilter('error')
        _, _, posterior, likelihood = model.forward_backward(jnp.array(observed))
    return np.array(posterior), float(likelihood), model


def show(name, observed, mean, deviation):
    posterior, likelihood, model = by_distrax(observed, mean, deviation)
    right, total = by_hand(observed, mean, deviation)
    again, same = by_all_paths(observed, mean, deviation)
    assert np.allclose(right, again, atol=1e-6) and np.isclose(total, same)
    print(f'{name}: log-likelihood {likelihood:.1f}, by hand {total:.1f}')
    print('    second state        ', ' '.join(f'{value:.2f}' for value in posterior[:, 1]))
    print('    second state by hand', ' '.join(f'{value:.2f}' for value in right[:, 1]))
    return posterior, likelihood, right, total, model


rates = np.array([70, 66, 75, 71, 74, 104, 118, 112, 99, 121, 73, 68.0])[:, None]
mean, deviation = np.array([[72.0], [110.0]]), np.array([[6.0], [12.0]])
posterior, likelihood, right, total, _ = show('heart rates', rates, mean, deviation)
assert np.allclose(posterior, right, atol=1e-4) and np.isclose(likelihood, total, atol=1e-3)
usual = likelihood

wrong = rates.copy()
wrong[4] = 720
posterior, likelihood, right, total, _ = show('720 in place of 74', wrong, mean, deviation)

assert (posterior == 0).all(), 'posterior probabilities are left now'
assert abs(likelihood - -12.1) < 0.1 and abs(total - -1336.6) < 0.1
others = np.arange(len(rates)) != 4
assert likelihood > usual > total and np.allclose(right[others], by_hand(rates, mean, deviation)[0][others], atol=0.01)

first = [140, 80, 250, 30, 10, 100, 75, 125, 38, 88, 60, 300, 150, 24, 100, 200, 40, 90, 20, 500]
second = [136, 180, 150, 80, 120, 150, 100, 100, 30, 110, 90, 500, 250, 20, 80, 150, 35, 95, 40, 700]
spread = [3, 20, 60, 15, 8, 20, 12, 15, 4, 6, 15, 60, 40, 3, 10, 40, 5, 8, 6, 100]
states = np.array([0] * 5 + [1] * 5 + [0] * 2)
seen = {4: (-207.6, -103.6), 8: (-395.8, 0), 20: (-207.2, 0)}
by_count = {4: (-207.6, -1026.1), 8: (-399.6, -2105.1), 20: (-993.2, -5406.8)}
posteriors = {}
for count in seen:
    mean = np.array([first[:count], second[:count]], dtype=float)
    deviation = np.array([spread[:count]]) * [[1.0], [1.5]]
    observed = np.random.default_rng(1).normal(mean[states], deviation[states])
    posterior, likelihood, right, total, model = show(f'{count} values an hour', observed, mean, deviation)
    wrong = mean + 6 * deviation
    wrong_likelihood = by_distrax(observed, wrong, deviation)[1]
    wrong_total = by_hand(observed, wrong, deviation)[1]
    print(f'    with wrong means: log-likelihood {wrong_likelihood:.1f}, by hand {wrong_total:.1f}')
    assert np.allclose((likelihood, wrong_likelihood), seen[count], atol=0.1), 'another likelihood is found now'
    assert np.allclose((total, wrong_total), by_count[count], atol=0.1)
    assert np.allclose(right[:, 1], states, atol=0.001)
    with warnings.catch_warnings():
        warnings.simplefilter('ignore')  # viterbi asks for integers of 64 bits and gets 32
        assert (np.array(model.viterbi(jnp.array(observed))) == states).all(), 'the remedy does not hold'
    posteriors[count] = posterior
assert np.allclose(posteriors[4][:, 1], states, atol=0.001)
assert np.isclose(posteriors[8][-1, 1], 0.15, atol=0.005) and (posteriors[20] == 0).all()
PYTHON
echo 'As stated: what is too improbable becomes nothing, and nothing costs nothing.'
