"""Initialisations: how embedding rows of new tokens are made. One record each, and the table is all that names them.

V: source tokens, N: new tokens, M: anchors (tokens of the source in the sentences of the new ones, or tokens that a
donor knows too), D: hidden size, E: size of a donor's vectors.
This file does without jax, so that the schema can list the names. Sums are taken in float64.
"""

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from bioptimus_jax.config.plugins import NoSettings, Table
from bioptimus_jax.surgery import pursuit
from bioptimus_jax.surgery.rows import seeded, unit

RANDOM_ROWS_DEVIATION = 0.02
MEAN_RESIZING_VARIANCE = 1e-9  # resize_token_embeddings of transformers multiplies the covariance with it
BLOCK = 512
# Keys of the gradient fit, of all rows but those that are drawn as a control.
OF_FIT = ('fit_steps', 'fit_layer', 'fit_cross_entropy', 'fit_again', 'fit_only')

Spellings = Sequence[Sequence[int]]


@dataclasses.dataclass(frozen=True)
class Map:
    """How states become rows: fitted on which tokens of the source, and whether their spelling is read as well.

    `anchors` names a field of `Material`; empty: states stay as they are. `meaning` goes on with the name, for
    `--help`.
    """

    meaning: str
    anchors: str = ''
    spelling: bool = False


MAPS: Table[Map] = Table(
    'MAPS',
    {
        'none': Map('as they are'),
        'linear': Map('each as a piece of the same sentences', 'anchors'),
        'respelled': Map('each spelled in other pieces as if the source lacked it', 'respelled'),
        'spelled': Map(
            'the same, and beside each state the row that the characters of its token predict',
            'respelled',
            True,
        ),
    },
)
"""What `config.surgery.map` may be."""


@dataclasses.dataclass(frozen=True)
class Inputs:
    """What rows of new tokens are made from. What a record does not ask for is None.

    `table` [V, D] holds the source's input rows; `spellings` are source ids, empty where the source knows no piece.
    `isolated` [N, D]: the source's state of a token that is fed alone, mean over the layers read and over its pieces; 0
    where there is none. `sums` [N, D]: the sum of such states over the token's contexts, `contexts` [N]: their number.
    `anchor_states`, `anchor_rows` [M, D]: context means of tokens of the source, and their input rows.
    `spelled` [N, D]: rows that the characters of the tokens predict.
    `donor_vectors` [N, E]: a donor's vectors of the new tokens, NaN where it has none; `donor_anchors` [M, E] and
    `donor_rows` [M, D]: its vectors of tokens that the source has, and their input rows.
    `vocabulary` [V], `tokens` [N]: the tokens of the source and the new ones, as their tokenizers write them.
    `settings` is `config.surgery`. `advance` is called with numbers of tokens that were done, and may raise to stop.
    """

    table: np.ndarray
    spellings: Spellings
    contexts: np.ndarray
    settings: Any
    seed: int
    isolated: Any = None
    sums: Any = None
    anchor_states: Any = None
    anchor_rows: Any = None
    spelled: Any = None
    donor_vectors: Any = None
    donor_anchors: Any = None
    donor_rows: Any = None
    vocabulary: Sequence[str] = ()
    tokens: Sequence[str] = ()
    advance: Callable[[int], None] = lambda tokens: None

    @property
    def own(self) -> Any:
        """The settings that are the initialisation's alone, as its record declares them."""
        return self.settings.own_settings

    @property
    def known(self) -> np.ndarray:
        """Which tokens the source can spell: bool [N]."""
        return np.array([bool(len(pieces)) for pieces in self.spellings], bool)


def middle(layers: int) -> tuple[int, int]:
    """The two layers in the middle of so many; of a single one, the embeddings and it."""
    return ((layers + 1) // 2, (layers + 1) // 2 + 1) if layers > 1 else (0, 1)


@dataclasses.dataclass(frozen=True)
class Initialisation:
    """How new rows are made, what is read for them, and which settings decide something.

    `rows(inputs)` is float64 [N, D], NaN for a token that it has nothing for. Such a token gets its context-free
    value (`isolated` where that is read, else the mean input row of its pieces), or the mean row of the source where
    the source cannot spell it. Without `rows` the source's own vocabulary is kept.

    `meaning` goes on with "a new row is ...", for `--help`. `source`: whether the source's weights are taken at all.
    `isolated_states`, `contexts`, `anchors`, `spelling`: whether `Inputs` has these; anchors are found in the contexts.
    `donor`: whether vectors of a donor are read, a model or word vectors trained on the corpus (surgery/donor.py).
    `usual_layers`: which layers' states, by their number, where `config.surgery.layers` names none. `drawn`: rows by
    chance, which count as fresh and are not scaled. `own_keys`: keys of `config.surgery` that decide something here,
    beside those that follow from the rest. `probed`: the scales in which `bioptimus surgery --probe` compares it.
    `is_paper_method`: the paper's proposal, which all of its tables but Table 2 are about. `settings`: a frozen
    dataclass of keys (`config.fields.key`) that are its alone, `config.surgery.own.NAME.KEY`; `rows` finds them in
    `Inputs.own`.
    """

    meaning: str
    rows: Callable[[Inputs], np.ndarray] | None = None
    source: bool = True
    isolated_states: bool = False
    contexts: bool = False
    anchors: bool = False
    spelling: bool = False
    donor: bool = False
    usual_layers: Callable[[int], tuple[int, ...]] = middle
    drawn: bool = False
    own_keys: tuple[str, ...] = ()
    probed: tuple[str, ...] = ('literal', 'centred')
    is_paper_method: bool = False
    settings: type = NoSettings

    @property
    def states(self) -> bool:
        """Whether states of the source are read."""
        return self.isolated_states or self.contexts

    @property
    def scaled(self) -> bool:
        """Whether `config.surgery.scale` brings the rows to the source's."""
        return self.rows is not None and not self.drawn

    @property
    def keeps_vocabulary(self) -> bool:
        """Whether the source's vocabulary and rows stay as they are."""
        return self.source and self.rows is None

    @property
    def keys(self) -> tuple[str, ...]:
        """The keys of `config.surgery` that decide something here."""
        of_rows = ('scale', 'dealt', *OF_FIT) if self.scaled else ()
        of_states = ('layers', 'pooling') if self.states else ()
        of_contexts = ('contexts', 'max_contexts') if self.contexts else ()
        of_donor = ('donor',) if self.donor else ()
        return ('bias', 'batch_pieces', *of_rows, *of_states, *of_contexts, *of_donor, *self.own_keys)


def averaged_input(table_VxD: np.ndarray, spellings: Spellings) -> np.ndarray:
    """Mean of the input rows of each token's source pieces: float64 [N, D]; NaN where a spelling is empty."""
    rows_NxD = np.full((len(spellings), table_VxD.shape[1]), np.nan)
    for row_D, pieces in zip(rows_NxD, spellings, strict=True):
        if len(pieces):
            row_D[:] = table_VxD[np.asarray(pieces)].mean(axis=0, dtype=np.float64)
    return rows_NxD


def contextualized(given: Inputs) -> np.ndarray:
    """Mean over contexts: float64 [N, D]; NaN for tokens without a context.

    `sums` holds, per token, the sum over its contexts of the mean over the pieces that spell it there (equations 1
    and 2 of the paper, read without the context-free value among the contexts). With a shrinkage of k the
    context-free value counts as k contexts more: the mean has the weight n / (n + k).
    """
    # A token that cannot be fed alone has nothing to be shrunk to.
    shrinkage_N = np.where(given.known, given.settings.shrinkage, 0.0)
    weights_N = given.contexts + shrinkage_N
    shrunk_NxD = given.sums + shrinkage_N[:, None] * given.isolated
    means_NxD = shrunk_NxD / np.where(weights_N > 0, weights_N, 1)[:, None]
    return np.where((given.contexts > 0)[:, None], means_NxD, np.nan)


def random_rows(count: int, width: int, seed: int) -> np.ndarray:
    """Normal rows of mean 0 and standard deviation 0.02, the control: float64 [count, width]."""
    return seeded(seed, count, width).normal(0.0, RANDOM_ROWS_DEVIATION, (count, width))


def gaussian(table_VxD: np.ndarray, count: int, seed: int, variance: float = 1.0) -> np.ndarray:
    """Normal rows with the mean of the source's rows, and their covariance times `variance`: float64 [count, D].

    They are where the source's rows are and as long, but say nothing of their token.
    """
    mean_D = table_VxD.mean(axis=0, dtype=np.float64)
    centred_VxD = table_VxD.astype(np.float64) - mean_D
    values_D, vectors_DxD = np.linalg.eigh(centred_VxD.T @ centred_VxD / len(table_VxD))
    # The symmetric root is the one that does not depend on the signs of eigenvectors.
    root_DxD = (vectors_DxD * np.sqrt(np.maximum(values_D, 0))) @ vectors_DxD.T
    drawn_NxD = seeded(seed, count).standard_normal((count, len(mean_D)))
    return mean_D + np.sqrt(variance) * drawn_NxD @ root_DxD


def similarity(given: Inputs) -> np.ndarray:
    """Weighted sums of anchors' rows; the weights are the sparsemax of the cosines of context means: float64 [N, D].

    It is FOCUS with context means of the source in place of fastText vectors. They are centred by the mean of the
    anchors, because states of one layer have a large part in common: without it all cosines are near 1. NaN for tokens
    without a context; where one has a context there are anchors, the pieces that spell it there.
    """
    found_N = given.contexts > 0
    if not found_N.any():
        return np.full((len(found_N), given.table.shape[1]), np.nan)
    centre_D = given.anchor_states.mean(axis=0, dtype=np.float64)
    counts_N = np.where(found_N, given.contexts, np.nan)
    means_NxD = given.sums / counts_N[:, None] - centre_D
    return weighted(means_NxD, given.anchor_states - centre_D, given.anchor_rows, given.advance)


def focus(given: Inputs) -> np.ndarray:
    """Weighted sums of anchors' rows; the weights are the sparsemax of the cosines of a donor's vectors: [N, D].

    FOCUS (Dobler and de Melo, arXiv 2305.14481). NaN for tokens that the donor does not know.
    """
    return weighted(given.donor_vectors, given.donor_anchors, given.donor_rows, given.advance)


def weighted(
    vectors_NxE: np.ndarray,
    anchors_MxE: np.ndarray,
    rows_MxD: np.ndarray,
    advance: Callable[[int], None] = lambda tokens: None,
) -> np.ndarray:
    """Sums of the anchors' rows, weighted by the sparsemax of their cosines with each vector: float64 [N, D].

    NaN for a vector that has NaN in it. `advance` is called with the number of vectors after each block.
    """
    unit_MxE = unit(anchors_MxE)

    def similar(vectors_BxE: np.ndarray) -> np.ndarray:
        return sparsemax(unit(vectors_BxE) @ unit_MxE.T) @ rows_MxD

    return _of_known(vectors_NxE, rows_MxD.shape[1], BLOCK, similar, advance)


def _of_known(
    vectors_NxE: np.ndarray,
    width: int,
    block: int,
    make: Callable[[np.ndarray], np.ndarray],
    advance: Callable[[int], None],
) -> np.ndarray:
    """What `make` gives for the vectors, so many at a time: float64 [N, width]; NaN for a vector that has NaN in it."""
    made_NxD = np.full((len(vectors_NxE), width), np.nan)
    (found,) = np.nonzero(~np.isnan(vectors_NxE).any(axis=1))
    for start in range(0, len(found), block):
        part = found[start : start + block]
        made_NxD[part] = make(vectors_NxE[part])
        advance(len(part))
    return made_NxD


def omp(given: Inputs) -> np.ndarray:
    """Sums of anchors' rows, with the coefficients that give the donor's vector of the token: float64 [N, D].

    Orthogonal matching pursuit (Goddard and Fernandes Neto, arXiv 2506.06607) chooses `surgery.anchors` anchors for
    each token. NaN for tokens that the donor does not know.
    """

    def sums(vectors_BxE: np.ndarray) -> np.ndarray:
        chosen_BxK, weights_BxK = pursuit.pursue(vectors_BxE, given.donor_anchors, given.settings.anchors)
        return np.einsum('bk,bkd->bd', weights_BxK, given.donor_rows[chosen_BxK])

    return _of_known(given.donor_vectors, given.donor_rows.shape[1], pursuit.BLOCK, sums, given.advance)


def sparsemax(scores_BxM: np.ndarray) -> np.ndarray:
    """The point of the probability simplex that is nearest to each row of scores; most weights are 0 (Martins and
    Astudillo, 2016)."""
    descending_BxM = -np.sort(-scores_BxM, axis=1)
    sums_BxM = np.cumsum(descending_BxM, axis=1)
    numbers_M = np.arange(1, scores_BxM.shape[1] + 1)
    # The k best scores have weights where the k-th is above the threshold that the k of them would have.
    size_B = (1 + numbers_M * descending_BxM > sums_BxM).sum(axis=1)
    threshold_B = (np.take_along_axis(sums_BxM, size_B[:, None] - 1, axis=1)[:, 0] - 1) / size_B
    return np.maximum(scores_BxM - threshold_B[:, None], 0)


INITIALISATIONS: Table[Initialisation] = Table(
    'INITIALISATIONS',
    {
        'scratch': Initialisation('random, as every weight of the model is', source=False, probed=()),
        'copy': Initialisation("not there: the source's vocabulary and rows stay as they are", probed=()),
        'averaged_input': Initialisation(
            'the mean of the input rows of its source pieces',
            lambda given: averaged_input(given.table, given.spellings),
        ),
        'averaged_last': Initialisation(
            'the mean of the last-layer states of its source pieces, the token alone',
            lambda given: np.where(given.known[:, None], given.isolated, np.nan),
            isolated_states=True,
            usual_layers=lambda layers: (layers,),
        ),
        'contextualized': Initialisation(
            "the mean over contexts of such means, the paper's own (for its rows also set layers=-1, map=none, "
            'shrinkage=0, scale=literal)',
            contextualized,
            isolated_states=True,
            contexts=True,
            own_keys=('map', 'shrinkage'),
            is_paper_method=True,
        ),
        'random_rows': Initialisation(
            f'normal, deviation {RANDOM_ROWS_DEVIATION}',
            lambda given: random_rows(len(given.spellings), given.table.shape[1], given.seed),
            drawn=True,
            probed=('literal',),
        ),
        'gaussian': Initialisation(
            "normal, with mean and covariance of the source's rows",
            lambda given: gaussian(given.table, len(given.spellings), given.seed),
            drawn=True,
            probed=('literal',),
        ),
        'mean_resizing': Initialisation(
            'drawn around the mean row, as transformers does',
            lambda given: gaussian(given.table, len(given.spellings), given.seed, MEAN_RESIZING_VARIANCE),
            drawn=True,
            probed=('literal',),
        ),
        'similarity': Initialisation(
            'a weighted sum of rows of tokens with similar contexts, after FOCUS',
            similarity,
            contexts=True,
            anchors=True,
            probed=('literal',),
        ),
        'spelled': Initialisation(
            'predicted from its characters, as learned from the rows of the source',
            lambda given: np.where(given.known[:, None], given.spelled, np.nan),
            spelling=True,
        ),
        'focus': Initialisation(
            'a weighted sum of rows of tokens with similar vectors of surgery.donor, as FOCUS has it',
            focus,
            donor=True,
        ),
        'omp': Initialisation(
            'a sum of rows, with the coefficients that give its vector of surgery.donor (orthogonal matching pursuit)',
            omp,
            donor=True,
            own_keys=('anchors',),
        ),
    },
)
"""What `config.surgery.strategy` may be."""


def concerned(key: str, between: str = ', ') -> str:
    """The names of the initialisations that a key of `config.surgery` decides something in, joined."""
    return between.join(name for name, one in INITIALISATIONS.items() if key in one.keys)
