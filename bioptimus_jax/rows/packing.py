"""Bin packing: which texts share a row."""

import bisect
from collections.abc import Sequence


def best_fit(lengths: Sequence[int], width: int) -> list[list[int]]:
    """Best-fit decreasing bin packing: the numbers of the parts in each row."""
    order = sorted(range(len(lengths)), key=lambda i: (-lengths[i], i))
    spaces: list[tuple[int, int]] = []  # (space left, row), sorted: the tightest row that fits comes first
    rows: list[list[int]] = []
    for part in order:
        # -1 comes before the number of every row: a row with exactly this space is found, too.
        at = bisect.bisect_left(spaces, (lengths[part], -1))
        if at == len(spaces):
            rows.append([part])
            space, row = width - lengths[part], len(rows) - 1
        else:
            space, row = spaces.pop(at)
            rows[row].append(part)
            space -= lengths[part]
        if space > 2:  # nothing shorter than a piece between special tokens exists
            bisect.insort(spaces, (space, row))
    return rows
