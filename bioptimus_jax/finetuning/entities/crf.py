"""A linear-chain conditional random field over the words of a window (Lafferty et al., 2001), for tags.

No library for it is alive (the newest for PyTorch are of 2019 to 2021), and it is short.

Shapes: B windows, T words of the longest window, C labels.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch

from bioptimus_jax.sets.tags import OUTSIDE

FORBIDDEN = float('-inf')


def may_follow(before: str, tag: str, scheme: str) -> bool:
    """Whether a scheme that models learn allows these tags side by side; O stands for both ends of a sentence."""
    goes_on = before[1:] == tag[1:] and tag[0] in 'IL'
    if scheme == 'bio':
        return tag[0] != 'I' or (before != OUTSIDE and goes_on)
    if scheme == 'bioul':
        # What B- or I- leaves open must go on: neither O nor the end may follow.
        return goes_on if before[0] in 'BI' else tag[0] not in 'IL'
    return True  # io


class ChainWords(NamedTuple):
    """The words that chains run over.

    `mask_BxT`: true for a chain's words, which come first in their row. `opens_B`, `closes_B`: whether the sentence
    begins, ends with the chain.
    """

    emissions_BxTxC: torch.Tensor
    mask_BxT: torch.Tensor
    opens_B: torch.Tensor
    closes_B: torch.Tensor


def expected_counts(chain: Any, words: ChainWords) -> torch.Tensor:
    """How often every score of a word is expected to count: the gradient of `chain.log_partition`, [B, T, C]."""
    with torch.enable_grad():
        scores_BxTxC = words.emissions_BxTxC.detach().requires_grad_()
        total = chain.log_partition(words._replace(emissions_BxTxC=scores_BxTxC)).sum()
        return torch.autograd.grad(total, scores_BxTxC)[0]


class Chain(torch.nn.Module):
    """Scores of label sequences: emissions of the words, transitions between neighbours, both ends.

    A chain runs over one piece per word (its first), so that neither later pieces nor special tokens are part
    of it. Every score starts at zero, where the loss is the cross-entropy of the words one by one. What
    contradicts the tag scheme is forbidden in decoding only: a gold standard may contradict it too (an orphan
    I-), and must keep a finite loss. The scores of both ends, and what the scheme says of them, hold where a
    sentence begins or ends, not where a window cuts it.
    """

    def __init__(self, labels: Sequence[str], scheme: str) -> None:
        super().__init__()
        self.scores = size = len(labels)
        self.transitions_CxC = torch.nn.Parameter(torch.zeros(size, size))
        self.begin_C = torch.nn.Parameter(torch.zeros(size))
        self.end_C = torch.nn.Parameter(torch.zeros(size))
        self.forbidden_CxC: torch.Tensor
        self.forbidden_begin_C: torch.Tensor
        self.forbidden_end_C: torch.Tensor
        for name, allowed in {
            'forbidden_CxC': [[may_follow(a, b, scheme) for b in labels] for a in labels],
            'forbidden_begin_C': [may_follow(OUTSIDE, label, scheme) for label in labels],
            'forbidden_end_C': [may_follow(label, OUTSIDE, scheme) for label in labels],
        }.items():
            penalty = torch.where(torch.tensor(allowed), 0.0, FORBIDDEN)
            self.register_buffer(name, penalty, persistent=False)

    def log_likelihood(self, words: ChainWords, labels_BxT: torch.Tensor) -> torch.Tensor:
        """Log-likelihood of every chain's labels in nats, a tensor of B, by the forward algorithm in log space."""
        return self._path_score(words, labels_BxT) - self.log_partition(words)

    def log_partition(self, words: ChainWords) -> torch.Tensor:
        """The logarithm of the sum over all label sequences of their exponentiated scores; a tensor of B."""
        emissions_BxTxC, mask_BxT, opens_B, closes_B = words
        alpha_BxC = emissions_BxTxC[:, 0] + opens_B[:, None] * self.begin_C
        for t in range(1, emissions_BxTxC.shape[1]):
            longer_BxC = torch.logsumexp(alpha_BxC[:, :, None] + self.transitions_CxC, 1)
            # A chain that has ended keeps its sums through the padding.
            alpha_BxC = torch.where(mask_BxT[:, t, None], longer_BxC + emissions_BxTxC[:, t], alpha_BxC)
        return torch.logsumexp(alpha_BxC + closes_B[:, None] * self.end_C, -1)

    def probabilities(self, words: ChainWords, labels_BxT: torch.Tensor) -> torch.Tensor:
        """How probable each of these labels is, whatever the others are; [B, T], padding arbitrary."""
        return expected_counts(self, words).gather(2, labels_BxT[..., None])[..., 0]

    def _path_score(self, words: ChainWords, labels_BxT: torch.Tensor) -> torch.Tensor:
        emissions_BxTxC, mask_BxT, opens_B, closes_B = words
        emitted_BxT = emissions_BxTxC.gather(2, labels_BxT[:, :, None])[:, :, 0]
        passed_BxT = self.transitions_CxC[labels_BxT[:, :-1], labels_BxT[:, 1:]]
        last_B = labels_BxT.gather(1, mask_BxT.sum(1, keepdim=True) - 1)[:, 0]
        inner_B = (emitted_BxT * mask_BxT).sum(1) + (passed_BxT * mask_BxT[:, 1:]).sum(1)
        ends_B = opens_B * self.begin_C[labels_BxT[:, 0]] + closes_B * self.end_C[last_B]
        return inner_B + ends_B

    @torch.no_grad()
    def best_labels(self, words: ChainWords) -> torch.Tensor:
        """The best label sequence that the scheme allows, by Viterbi's algorithm; [B, T], padding arbitrary."""
        emissions_BxTxC, mask_BxT, opens_B, closes_B = words
        step_CxC = self.transitions_CxC + self.forbidden_CxC
        # `where`, since in a product a false flag times -inf would be NaN.
        begin_BxC = torch.where(opens_B[:, None], self.begin_C + self.forbidden_begin_C, 0.0)
        end_BxC = torch.where(closes_B[:, None], self.end_C + self.forbidden_end_C, 0.0)
        best_BxC = emissions_BxTxC[:, 0] + begin_BxC
        # In the padding every label points to itself, so that the way back meets the last word unchanged.
        stay_BxC = torch.arange(len(self.begin_C), device=best_BxC.device).expand_as(best_BxC)
        pointers = []
        for t in range(1, emissions_BxTxC.shape[1]):
            longer_BxC, from_BxC = (best_BxC[:, :, None] + step_CxC).max(1)
            here_Bx1 = mask_BxT[:, t, None]
            best_BxC = torch.where(here_Bx1, longer_BxC + emissions_BxTxC[:, t], best_BxC)
            pointers.append(torch.where(here_Bx1, from_BxC, stay_BxC))
        path = [(best_BxC + end_BxC).argmax(-1, keepdim=True)]
        for from_BxC in reversed(pointers):
            path.append(from_BxC.gather(1, path[-1]))
        return torch.cat(path[::-1], 1)
