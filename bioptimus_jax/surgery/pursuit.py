"""Orthogonal matching pursuit: vectors as sums of a few others, chosen one by one (Pati and others, 1993).

B: vectors that are approximated, M: anchors to choose from, K: anchors chosen, E: size of a vector.
This file does without jax, as initialisations.py does.
"""

import numpy as np

BLOCK = 256
"""Vectors at a time: with 64 anchors of 768 numbers their bases are 100 MB."""
NOTHING = 1e-7
"""A residual, or the new part of an anchor, that is so much shorter than the whole is rounding."""


def pursue(vectors_BxE: np.ndarray, anchors_MxE: np.ndarray, most: int) -> tuple[np.ndarray, np.ndarray]:
    """For each vector the numbers of at most `most` anchors, and the weights of their sum: int64, float64 [B, K].

    Each step takes the anchor with the largest inner product with what is left of the vector, and fits the weights of
    all chosen ones by least squares. Anchors keep their lengths, as in the method's own program. A weight is 0
    where a vector needs fewer anchors. K is the smallest of `most`, M and E.
    """
    vectors_BxE = vectors_BxE.astype(np.float64)
    anchors_MxE = anchors_MxE.astype(np.float64)
    # Half the time, and a choice differs only between anchors whose products agree in seven digits.
    for_choice_ExM = np.ascontiguousarray(anchors_MxE.T, np.float32)
    count, (among, width) = len(vectors_BxE), anchors_MxE.shape
    steps, each_B = min(most, among, width), np.arange(count)
    lengths_B = np.linalg.norm(vectors_BxE, axis=1)
    left_BxE = vectors_BxE.copy()
    chosen_BxK = np.zeros((count, steps), np.int64)
    basis_BxKxE = np.zeros((count, steps, width))
    # anchor k = sum over j of triangle[j, k] * basis[j]; vector = sum over j of along[j] * basis[j], and what is left
    triangle_BxKxK = np.zeros((count, steps, steps))
    along_BxK = np.zeros((count, steps))
    for step in range(steps):
        products_BxM = np.abs(left_BxE.astype(np.float32) @ for_choice_ExM)
        # No anchor is taken twice: products are absolute, so -1 is below all others.
        products_BxM[each_B[:, None], chosen_BxK[:, :step]] = -1.0
        chosen_BxK[:, step] = products_BxM.argmax(axis=1)
        anchor_BxE = anchors_MxE[chosen_BxK[:, step]]
        basis_BxJxE, new_BxE, parts_BxJ = basis_BxKxE[:, :step], anchor_BxE, np.zeros((count, step))
        for _ in range(2):  # the second time removes what rounding has left
            part_BxJ = np.einsum('bje,be->bj', basis_BxJxE, new_BxE)
            new_BxE = new_BxE - np.einsum('bj,bje->be', part_BxJ, basis_BxJxE)
            parts_BxJ += part_BxJ
        length_B = np.linalg.norm(new_BxE, axis=1)
        brings_B = length_B > NOTHING * np.linalg.norm(anchor_BxE, axis=1)
        brings_B &= np.linalg.norm(left_BxE, axis=1) > NOTHING * lengths_B
        # An anchor that brings nothing has no direction of its own, and with a 1 on the diagonal its weight is 0.
        basis_BxKxE[:, step] = np.where(brings_B[:, None], new_BxE / np.maximum(length_B, 1e-300)[:, None], 0)
        triangle_BxKxK[:, :step, step] = np.where(brings_B[:, None], parts_BxJ, 0)
        triangle_BxKxK[:, step, step] = np.where(brings_B, length_B, 1)
        along_BxK[:, step] = np.einsum('be,be->b', basis_BxKxE[:, step], left_BxE)
        left_BxE -= along_BxK[:, step, None] * basis_BxKxE[:, step]
    weights_BxK = np.zeros((count, steps))
    # Back substitution: the triangle is solved from its last anchor to its first.
    for step in reversed(range(steps)):
        later_B = np.einsum('bj,bj->b', triangle_BxKxK[:, step], weights_BxK)
        weights_BxK[:, step] = (along_BxK[:, step] - later_B) / triangle_BxKxK[:, step, step]
    return chosen_BxK, weights_BxK
