"""Rare and frequent words in every model of a run: their measures, with intervals, and their picture."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from bioptimus_jax.analysis import cloze, contexts, geometry
from bioptimus_jax.analysis.config import Analysis, HasAnalysis
from bioptimus_jax.corpus.documents import open_documents
from bioptimus_jax.model.architecture import Architecture
from bioptimus_jax.model.trees import flatten
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
    chosen: contexts.WordPairs,
    speller: cloze.Speller,
    architecture: Architecture,
    params: dict[str, Any],
    new: frozenset[str],
    e: HasAnalysis,
    on_rows: Callable[[int], None] = lambda rows: None,
) -> dict[str, Any]:
    """`words`, the measures of one model with their intervals, and `points`, some of the words in the plane."""
    high_N = np.array(chosen.high, bool)
    if len(high_N) < 2 * geometry.LEAST_PER_CLASS:
        on_rows(len(chosen.passages))
        return {'words': {'skipped': _reason(chosen, e.analysis)}, 'points': {}}
    table_VxD = np.asarray(flatten(params)[architecture.table])
    vectors = {
        'embeddings': contexts.embedding_vectors(chosen.texts, speller, table_VxD),
        'contextual': contexts.context_vectors(chosen, speller, architecture, params, on_rows),
    }
    seed, drawn = e.evaluation.seed, e.analysis.geometry_points // 2 * 2
    known = [len(speller(word)) == 1 for word in chosen.texts]
    first = [speller.subwords.tokens[speller(word)[0]] for word in chosen.texts]
    new_N = np.array([one and token in new for one, token in zip(known, first, strict=True)])
    words = {
        'digest': chosen.digest(),
        'count': len(high_N),
        'split': chosen.split,
        'contexts': chosen.per_word,
        'one_piece': float(np.mean(known)),
        **{
            name: {
                'median_count': float(np.median(np.array(chosen.counts)[of_class])),
                'new': float(np.mean(new_N[of_class])),
            }
            for name, of_class in (('low', ~high_N), ('high', high_N))
        },
        **{kind: geometry.of_words(vectors[kind], high_N, seed=seed) for kind in VECTOR_KINDS},
    }
    points = {kind: geometry.project(vectors[kind][:drawn], seed=seed) for kind in VECTOR_KINDS if drawn > 3}
    return {'words': words, 'points': {kind: p.round(2).tolist() for kind, p in points.items()}}


def points(models: Sequence[dict[str, Any]], chosen: contexts.WordPairs) -> dict[str, Any]:
    """points.json: the words drawn, whether they are frequent, and where t-SNE puts them in each model."""
    drawn = max((len(p) for r in models for p in r['points'].values()), default=0)
    return {
        'words': [word.strip() for word in chosen.texts[:drawn]],
        'high': list(chosen.high[:drawn]),
        'models': [{'model': r['model'], **r['points']} for r in models if r['points']],
    }


def _reason(chosen: contexts.WordPairs, analysis: Analysis) -> str:
    if not analysis.geometry_words:
        return 'config.analysis.geometry_words is 0'
    return (
        f'only {len(chosen.texts)} words are rare or frequent and occur in {analysis.geometry_contexts} documents;'
        ' lower config.analysis.geometry_contexts'
    )
