"""What a variant of the probe costs: the seconds that its rows take, and its share of what several variants read."""

import time
from collections import defaultdict
from collections.abc import Sequence

import numpy as np

from bioptimus_jax.model.loaded import Loaded
from bioptimus_jax.surgery.config import Surgery
from bioptimus_jax.surgery.material import Material, Sums
from bioptimus_jax.surgery.reading import StateReading

ALONE, CONTEXTS, RESPELLED = 'tokens alone', 'contexts', 'respelled'
"""What `material.gather` calls its readings."""


class Costs:
    """Seconds of what was read for all variants together; `searched`: of finding the contexts in the corpus."""

    def __init__(self, searched: float):
        self.searched = searched
        self.seconds: dict[str, float] = defaultdict(float)
        self.times: dict[str, int] = defaultdict(int)

    def timed(self, sums: Sums) -> Sums:
        """The same sums; what they take is added to what is known of their label."""

        def measured(source: Loaded, read: StateReading, layers: Sequence[int], label: str) -> np.ndarray:
            kind, started = next(k for k in (RESPELLED, label) if label.startswith(k)), time.monotonic()
            found = sums(source, read, layers, label)
            self.seconds[kind] += time.monotonic() - started
            self.times[kind] += 1
            return found

        return measured

    def of(self, settings: Surgery, material: Material) -> float:
        """Seconds of what a variant reads, as if it were the only one: an estimate.

        The search takes as long for any variant. Encoding takes as long as there are contexts: a variant that reads
        half as many as the one that reads most counts half. Tokens are fed alone once for each pooling.
        """
        reads, total = settings.initialisation, 0.0
        if reads.isolated_states:
            total += self.seconds[ALONE] / max(self.times[ALONE], 1)
        if reads.contexts or settings.fit_steps:
            total += self.searched
        if reads.contexts:
            contexts = {key: int(found_N.sum()) for key, (_, found_N) in material.sums.items()}
            own = contexts[settings.pooling, settings.contexts, settings.max_contexts]
            total += self.seconds[CONTEXTS] * own / max(*contexts.values(), 1)
        if settings.fitted_map.anchors == RESPELLED:
            total += self.seconds[RESPELLED]
        if settings.reads_spelling and material.spelled is not None:
            # A map also wants the anchors predicted, each part of them by the others.
            total += sum(material.spelled.seconds[: 1 + settings.fitted_map.spelling])
        if reads.donor and material.donated is not None:
            total += material.donated.seconds
        return total
