"""Rare and frequent words in every model of a run: their measures, with intervals, and their picture."""

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from bioptimus_jax.analysis import cloze, contexts, geometry
from bioptimus_jax.analysis.config import Analysis, HasAnalysis
from bioptimus_jax.corpus.documents import open_documents
from bioptimus_jax.model.architecture import Architecture
from bioptimus_jax.model.trees import Params, flatten
from bioptimus_jax.records.analysis import DrawnWords, Points, ShapeOfWords, WordClass
from bioptimus_jax.vocab import frequency

VECTOR_KINDS = ('embeddings', 'contextual')
SPLITS = ('heldout', 'train')
"""Held-out text where it holds every word often enough; else training text, for all words."""


def choose(
    e: HasAnalysis, vocab: Path, corpus: Path, spellers: Sequence[cloze.Speller]
) -> contexts.WordPairs:
    """The words of a run, the same for every model: one piece in its own vocabulary, the first of `spellers`."""
    if not e.analysis.geometry_words:
        return contexts.WordPairs((), (), (), (), 0, '')
    words, counts_W = frequency.read(vocab)
    own = spellers[0]
    if own.spaced and not own.subwords.kind.carries_space:
        words = [f' {word}' for word in words]
    classes = contexts.frequency_thirds(words, counts_W.tolist(), own)
    return contexts.choose(
        classes,
        {w: int(c) for w, c in zip(words, counts_W, strict=True) if w in classes},
        [(split, open_documents(corpus, split)) for split in SPLITS],
        spellers,
        wanted=e.analysis.geometry_words,
        per_word=e.analysis.geometry_contexts,
        most_documents=e.analysis.geometry_documents,
        max_pieces=min(e.rows.max_document_pieces, contexts.WINDOW),
        seed=e.evaluation.seed,
    )


def measure(
    name: str,
    chosen: contexts.WordPairs,
    speller: cloze.Speller,
    architecture: Architecture,
    params: Params,
    new: frozenset[str],
    e: HasAnalysis,
    on_rows: Callable[[int], None] = lambda rows: None,
) -> tuple[ShapeOfWords, DrawnWords | None]:
    """The measures of one model with their intervals, and some of the words in the plane, where they are drawn."""
    high_N = np.array(chosen.high, bool)
    if len(high_N) < 2 * geometry.LEAST_PER_CLASS:
        on_rows(len(chosen.passages))
        return ShapeOfWords(skipped=_reason(chosen, e.analysis)), None
    table_VxD = np.asarray(flatten(params)[architecture.table])
    vectors = {
        'embeddings': contexts.embedding_vectors(chosen.texts, speller, table_VxD),
        'contextual': contexts.context_vectors(chosen, speller, architecture, params, on_rows),
    }
    seed, drawn = e.evaluation.seed, e.analysis.geometry_points // 2 * 2
    known = [len(speller(word)) == 1 for word in chosen.texts]
    first = [speller.subwords.tokens[speller(word)[0]] for word in chosen.texts]
    new_N = np.array([one and token in new for one, token in zip(known, first, strict=True)])

    def of_class(of_class_N: np.ndarray) -> WordClass:
        median = np.median(np.array(chosen.counts)[of_class_N])
        return WordClass(float(median), float(np.mean(new_N[of_class_N])))

    words = ShapeOfWords(
        digest=chosen.digest(),
        count=len(high_N),
        split=chosen.split,
        contexts=chosen.per_word,
        one_piece=float(np.mean(known)),
        low=of_class(~high_N),
        high=of_class(high_N),
        embeddings=geometry.of_words(vectors['embeddings'], high_N, seed=seed),
        contextual=geometry.of_words(vectors['contextual'], high_N, seed=seed),
    )
    if drawn <= 3:
        return words, None
    points = {kind: geometry.project(vectors[kind][:drawn], seed=seed).round(2) for kind in VECTOR_KINDS}
    placed = {kind: tuple(map(tuple, p.tolist())) for kind, p in points.items()}
    return words, DrawnWords(model=name, **placed)


def points(models: Sequence[DrawnWords], chosen: contexts.WordPairs) -> Points:
    """The words drawn, whether they are frequent, and where t-SNE puts them in each model."""
    drawn = max((len(r.of(kind)) for r in models for kind in VECTOR_KINDS), default=0)
    words = tuple(word.strip() for word in chosen.texts[:drawn])
    return Points(words, tuple(map(bool, chosen.high[:drawn])), tuple(models))


def _reason(chosen: contexts.WordPairs, analysis: Analysis) -> str:
    if not analysis.geometry_words:
        return 'config.analysis.geometry_words is 0'
    return (
        f'only {len(chosen.texts)} words are rare or frequent and occur in {analysis.geometry_contexts} documents;'
        ' lower config.analysis.geometry_contexts'
    )
