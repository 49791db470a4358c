#!/usr/bin/env bash
# google-metrax 0.2.4: the perplexity of several batches depends on how rows were put into batches, as soon as these differ
# in tokens for each row. A batch counts by its rows, not by its tokens.
#   - `Perplexity.from_model_output(logits, labels, sample_weights)` is right for one batch: it divides by the sum of the
#     weights. `merge` then weighs that mean by the number of rows, so a row with one token counts as much as one with 512.
#   - With rows of one length to a batch, as buckets make them, 8 rows of 4 tokens and 8 of 60 give 14.8 where 5.6 is right,
#     below. The same 16 rows in one batch give 5.6. Cut to their length and without weights they give 14.8 as well.
#   - Rows of weight 0 that fill up the last batches pull it towards 1: a batch of nothing else counts as cross-entropy 0.
#     Three real batches with a perplexity of 20 and three of padding are reported as 4.5, the root of it.
#   - The masked places of a masked LM are such weights too, and their number differs from batch to batch.
# The documentation gives the formula over all tokens, with the sum of all weights below the line, and batch by batch is
# what merge is for. Without weights and with rows of one length nothing is wrong, and what comes out is a plausible number,
# which moves with the batch size, the order of rows and the number of hosts. `metrax.nnx.Perplexity`, which is updated in
# place, does the same. The remedy is `metrax.Average`, given the losses of the tokens and the weights, and the exponential
# of what it computes. Seen on 2026-11-29, in the newest version.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" --quiet install google-metrax==0.2.4 jax==0.10.2
cat > "$folder/try.py" <<'PYTHON'
import functools
from importlib import metadata

import jax
import jax.numpy as jnp
import metrax
import metrax.nnx

WORDS = 32
print('google-metrax', metadata.version('google-metrax'))


def row(length, likely, width=64):
    """Logits of a row in which each of the first tokens, which alone have weight, has a loss of log(likely)."""
    labels = jnp.arange(width) % WORDS
    chance = jnp.full((width, WORDS), (1 - 1 / likely) / (WORDS - 1))
    chance = jnp.where(jax.nn.one_hot(labels, WORDS) > 0, 1 / likely, chance)
    return jnp.log(chance), labels, (jnp.arange(width) < length).astype(jnp.float32)


def batch(rows):
    logits, labels, weights = (jnp.stack(column) for column in zip(*rows))
    return dict(predictions=logits, labels=labels, sample_weights=weights, from_logits=True)


def perplexity(batches):
    found = [metrax.Perplexity.from_model_output(**one) for one in batches]
    return float(functools.reduce(lambda a, b: a.merge(b), found).compute())


def in_place(batches):
    metric = metrax.nnx.Perplexity()
    for one in batches:
        metric.update(**one)
    return float(metric.compute())


def right(batches):
    """By the documented formula, with the means that metrax.Average keeps."""
    found = []
    for one in batches:
        losses = -jnp.take_along_axis(jax.nn.log_softmax(one['predictions']), one['labels'][..., None], axis=-1)[..., 0]
        found.append(metrax.Average.from_model_output(losses, sample_weights=one['sample_weights']))
    return float(jnp.exp(functools.reduce(lambda a, b: a.merge(b), found).compute()))


def near(a, b):
    return abs(a - b) < 1e-3 * b


short = [row(4, likely=45.0) for _ in range(8)]
long = [row(60, likely=4.9) for _ in range(8)]
for name, batches in (
    ('all rows in one batch', [batch(short + long)]),
    ('short and long ones in turn', [batch(short[:4] + long[:4]), batch(short[4:] + long[4:])]),
    ('a batch of each length', [batch(short), batch(long)]),
):
    print(f'{name:28s} metrax {perplexity(batches):6.3f}, in place {in_place(batches):6.3f}, right {right(batches):6.3f}')
    assert near(in_place(batches), perplexity(batches))
    assert near(right(batches), (45.0**4 * 4.9**60) ** (1 / 64))
    if name == 'a batch of each length':
        assert near(perplexity(batches), (45.0 * 4.9) ** 0.5), 'batches are weighed by their tokens now'
    else:
        assert near(perplexity(batches), right(batches))

cut = [
    dict(predictions=one['predictions'][:, :length], labels=one['labels'][:, :length], from_logits=True)
    for one, length in zip(batches, (4, 60))
]
print(f'{"cut, without weights":28s} metrax {perplexity(cut):6.3f}')
assert near(perplexity(cut), perplexity(batches))

real, padding = batch([row(64, likely=20.0)] * 8), batch([row(0, likely=20.0)] * 8)
batches = [real] * 3 + [padding] * 3
print(f'{"three of six are padding":28s} metrax {perplexity(batches):6.3f}, right {right(batches):6.3f}')
assert near(right(batches), 20.0) and near(perplexity([real] * 3), 20.0)
assert near(perplexity(batches), 20.0**0.5), 'a batch without weight has no effect now'
PYTHON
"$folder/env/bin/python" "$folder/try.py"
echo 'As stated: the perplexity of batches counts rows, not tokens.'
