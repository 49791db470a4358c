"""A semi-Markov conditional random field: mentions as spans of words (Sarawagi and Cohen, 2004).

A sentence is cut into mentions and single words outside of them. A mention's score is that of its first word, of all
its words, of its last word and of its length: what a tagger that scores word by word cannot say.

Shapes: B windows, T words of the longest window, K types of mentions, C tags, E = 1 + 3 K scores of a word.
"""

from collections.abc import Sequence

import torch

from bioptimus_jax.finetuning.entities.crf import ChainWords, expected_counts
from bioptimus_jax.sets.tags import OUTSIDE

LENGTHS = 16
"""Words of a mention that have a score of their own; longer ones share the last."""


class Segments(torch.nn.Module):
    """Scores of all ways to cut a sentence into mentions; in training and decoding each of them is counted.

    A word's scores: outside; then, type by type, as the first word of a mention, as one of its words, as the last one.
    Tags are in BIO; an I- that nothing begins begins a mention. A mention that a window cuts is one of the words shown.
    """

    def __init__(self, tags: Sequence[str]) -> None:
        super().__init__()
        types = list(dict.fromkeys(tag[2:] for tag in tags if tag != OUTSIDE))
        self.scores = 1 + 3 * len(types)
        self.lengths_NxK = torch.nn.Parameter(torch.zeros(LENGTHS, len(types)))
        of_tags = [-1 if tag == OUTSIDE else types.index(tag[2:]) for tag in tags]
        self.type_C: torch.Tensor
        self.begins_C: torch.Tensor
        self.register_buffer('type_C', torch.tensor(of_tags), persistent=False)
        self.register_buffer('begins_C', torch.tensor([tag[:1] == 'B' for tag in tags]), persistent=False)
        self.outside = list(tags).index(OUTSIDE)
        self.tags_Kx2 = [[tags.index(f'{letter}-{kind}') for letter in 'BI'] for kind in types]

    def log_likelihood(self, words: ChainWords, tags_BxT: torch.Tensor) -> torch.Tensor:
        """Log-likelihood of every window's mentions in nats, a tensor of B."""
        return self._score(words, tags_BxT) - self.log_partition(words)

    def log_partition(self, words: ChainWords) -> torch.Tensor:
        """The logarithm of the sum over all ways to cut of their exponentiated scores; a tensor of B."""
        outside_BxT, left_BxTxK, right_BxTxK = self._parts(words.emissions_BxTxC)
        # `alphas_B[i]` sums all ways to cut the first i words. I: the first word of a mention that ends at t.
        alphas_B = [torch.zeros_like(outside_BxT[:, 0])]
        for t in range(outside_BxT.shape[1]):
            mentions_BxIxK = torch.stack(alphas_B, 1)[..., None] + left_BxTxK[:, : t + 1] + self._lengths(t)
            ways_BxK = torch.logsumexp(mentions_BxIxK, 1) + right_BxTxK[:, t]
            ways_Bx1_K = torch.cat([(alphas_B[-1] + outside_BxT[:, t])[:, None], ways_BxK], 1)
            alphas_B.append(torch.where(words.mask_BxT[:, t], torch.logsumexp(ways_Bx1_K, 1), alphas_B[-1]))
        return alphas_B[-1]

    @torch.no_grad()
    def best_labels(self, words: ChainWords) -> torch.Tensor:
        """The tags of the best way to cut, by Viterbi's algorithm; [B, T], padding arbitrary."""
        outside_BxT, left_BxTxK, right_BxTxK = self._parts(words.emissions_BxTxC)
        best_B, chosen = [torch.zeros_like(outside_BxT[:, 0])], []
        for t in range(outside_BxT.shape[1]):
            mentions_BxIxK = torch.stack(best_B, 1)[..., None] + left_BxTxK[:, : t + 1] + self._lengths(t)
            # The first word i and the type k are one index, i K + k, which the way back takes apart.
            mention_B, at_B = (mentions_BxIxK + right_BxTxK[:, None, t]).flatten(1).max(1)
            alone_B = best_B[-1] + outside_BxT[:, t]
            best_B.append(torch.where(words.mask_BxT[:, t], torch.maximum(alone_B, mention_B), best_B[-1]))
            chosen.append(torch.where(mention_B > alone_B, at_B, -1))
        tags_BxT = torch.full_like(words.mask_BxT, self.outside, dtype=torch.int64)
        types = right_BxTxK.shape[2]
        for row, chosen_T in enumerate(torch.stack(chosen, 1).tolist()):
            # Traced from the end, since only the last word of a stretch knows where it began.
            end = int(words.mask_BxT[row].sum())
            while end:
                at, stop = chosen_T[end - 1], end
                end = stop - 1 if at < 0 else at // types
                if at >= 0:
                    begin, inside = self.tags_Kx2[at % types]
                    tags_BxT[row, end:stop] = inside
                    tags_BxT[row, end] = begin
        return tags_BxT

    def probabilities(self, words: ChainWords, tags_BxT: torch.Tensor) -> torch.Tensor:
        """How probable each of these tags is, whatever the others are; [B, T], padding arbitrary."""
        outside_BxTx1, rest_BxTx3K = expected_counts(self, words).split([1, self.scores - 1], -1)
        first_BxTxK, every_BxTxK, _ = rest_BxTx3K.chunk(3, -1)
        by_tag_BxTxC = torch.cat([outside_BxTx1, first_BxTxK, every_BxTxK - first_BxTxK], -1)
        # Outside, then the types' first words, then their other words.
        place_C = torch.where(self.begins_C, 1, 1 + first_BxTxK.shape[-1]) + self.type_C
        place_C = torch.where(self.type_C < 0, 0, place_C)
        return by_tag_BxTxC.gather(2, place_C[tags_BxT][..., None])[..., 0]

    def _parts(self, emissions_BxTxC: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Scores outside, and of mentions but for their length as a left and a right part that add up.

        The words of a mention are a difference of two sums from the sentence's first word on.
        """
        outside_BxT = emissions_BxTxC[..., 0]
        first_BxTxK, every_BxTxK, last_BxTxK = emissions_BxTxC[..., 1:].chunk(3, -1)
        to_BxTxK = every_BxTxK.cumsum(1)
        return outside_BxT, first_BxTxK - to_BxTxK + every_BxTxK, to_BxTxK + last_BxTxK

    def _lengths(self, t: int) -> torch.Tensor:
        """Scores [t + 1, K] of the lengths of mentions that end with word t, by their first word."""
        words = torch.arange(t, -1, -1, device=self.lengths_NxK.device)
        return self.lengths_NxK[words.clamp(max=LENGTHS - 1)]

    def _score(self, words: ChainWords, tags_BxT: torch.Tensor) -> torch.Tensor:
        outside_BxT, left_BxTxK, right_BxTxK = self._parts(words.emissions_BxTxC)
        within_BxT = torch.where(words.mask_BxT, self.type_C[tags_BxT], -1)
        before_BxT, after_BxT = (
            torch.nn.functional.pad(within_BxT, pad, value=-1)[:, cut]
            for pad, cut in (((1, 0), slice(0, -1)), ((0, 1), slice(1, None)))
        )
        marked_BxT = self.begins_C[tags_BxT]
        next_marked_BxT = torch.nn.functional.pad(marked_BxT, (0, 1))[:, 1:]
        inside_BxT = within_BxT >= 0
        first_BxT = inside_BxT & (marked_BxT | (before_BxT != within_BxT))
        last_BxT = inside_BxT & (next_marked_BxT | (after_BxT != within_BxT))
        kinds_BxTx1 = within_BxT.clamp(min=0)[..., None]
        left_BxT, right_BxT = (part.gather(2, kinds_BxTx1)[..., 0] for part in (left_BxTxK, right_BxTxK))
        place_T = torch.arange(tags_BxT.shape[1], device=tags_BxT.device)
        # Places only grow, so the running maximum is the place of the latest first word.
        begin_BxT = torch.where(first_BxT, place_T, 0).cummax(1).values
        lengths_BxT = (place_T - begin_BxT).clamp(max=LENGTHS - 1)
        of_length_BxT = self.lengths_NxK[lengths_BxT, within_BxT.clamp(min=0)]
        outside_BxT = outside_BxT * (words.mask_BxT & ~inside_BxT)
        return (outside_BxT + left_BxT * first_BxT + (right_BxT + of_length_BxT) * last_BxT).sum(1)
