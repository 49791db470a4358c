"""MLM bias of new tokens, by the rule of `surgery.bias`; shared tokens keep the source's.

V: source tokens, W: the run's vocabulary, N: its new tokens.
"""

from pathlib import Path

import numpy as np

from bioptimus_jax.surgery.initialisations import Spellings
from bioptimus_jax.tokenizer.subwords import Subwords
from bioptimus_jax.vocab import frequency

BATCH = 10_000


def mean_bias(bias_V: np.ndarray, spellings: Spellings) -> np.ndarray:
    """Mean MLM bias of each token's pieces; of the whole source where the spelling is empty: float64 [N]."""
    overall = bias_V.mean(dtype=np.float64)
    return np.array([bias_V[np.asarray(p)].mean(dtype=np.float64) if len(p) else overall for p in spellings])


def log_count_bias(
    bias_V: np.ndarray, shared_W: np.ndarray, counts_W: np.ndarray, new_W: np.ndarray
) -> tuple[np.ndarray, float, float]:
    """a log(count) + c for the new tokens, with a and c of least squares over shared tokens that occur.

    Returns float64 [N], a and c. A token that was not counted has the value of count 1; a is 0 where fewer than
    two shared tokens, or a single count, leave nothing to fit.
    """
    log_W = np.log(np.maximum(counts_W, 1).astype(np.float64))
    fitted_W = np.flatnonzero((shared_W >= 0) & (counts_W > 0))
    known = bias_V[shared_W[fitted_W]].astype(np.float64)
    centred = log_W[fitted_W] - (log_W[fitted_W].mean() if len(fitted_W) else 0.0)
    spread = float((centred**2).sum())
    a = float((centred * known).sum()) / spread if spread else 0.0
    level = known if len(known) else bias_V.astype(np.float64)
    c = float(level.mean()) - a * (float(log_W[fitted_W].mean()) if len(fitted_W) else 0.0)
    return a * log_W[new_W] + c, a, c


def token_counts(vocab_folder: Path, subwords: Subwords) -> np.ndarray:
    """How often each token occurs in the words that stage vocab counted: int64 [W].

    Words that occur once are not among them. Raises InputError where the word counts cannot be read.
    """
    words, count_of = frequency.read(vocab_folder)
    counts_W = np.zeros(len(subwords.tokens), np.int64)
    for start in range(0, len(words), BATCH):
        encoded = subwords.reader.encode_batch_fast(words[start : start + BATCH], add_special_tokens=False)
        for encoding, count in zip(encoded, count_of[start : start + BATCH], strict=True):
            # Not `counts_W[ids] += count`, which counts a token once where a word has it twice.
            np.add.at(counts_W, encoding.ids, count)
    return counts_W
