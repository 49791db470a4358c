"""The rows of several corpora in one run, by the weights of its phases.

Rows of other corpora are those of other runs, tokenised by the same vocabulary, so nothing is tokenised anew.
"""

import contextlib
import dataclasses
import itertools
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from bioptimus_jax.config.fields import default_of
from bioptimus_jax.errors import ConfigError, InputError
from bioptimus_jax.model.architecture import Architecture
from bioptimus_jax.pretrain.config import HasTraining
from bioptimus_jax.pretrain.curriculum import Schedule, stretches
from bioptimus_jax.pretrain.order import Pattern
from bioptimus_jax.pretrain.shape import phase_shapes
from bioptimus_jax.pretrain.shares import OWN, PATTERN, quotas
from bioptimus_jax.records.counts import RowCountsOfSplits, SplitRows
from bioptimus_jax.records.curriculum import RowCounts
from bioptimus_jax.records.manifests import Manifest
from bioptimus_jax.rows.config import RowShape
from bioptimus_jax.rows.stored import Rows
from bioptimus_jax.run.manifests import place_of, read_manifest
from bioptimus_jax.surgery.graft import check_rows
from bioptimus_jax.tokenizer.subwords import READY

KEPT = ('rows.row_pieces', 'rows.layout', 'rows.words')
"""Keys that all corpora of a run must have alike."""
CONTENT = 'corpora:{}'
"""The name of a corpus among the inputs of stage pretrain."""


def open_rows(e: HasTraining, own: Path, vocab: Manifest | None) -> dict[RowShape, Rows]:
    """A run's own rows, in the folder `own`, and behind them those of the corpora that its phases name; by shape.

    `vocab` and errors: as of `check`.
    """
    check(e, vocab)
    others = [
        (place_of(_rows_of(e, name)), read_manifest(_rows_of(e, name)) or Manifest()) for name in names(e)
    ]
    return {
        shape: Rows(own, shape.split(e.rows)).concatenated(
            [Rows(place, _split_in(manifest, e, shape)) for place, manifest in others]
        )
        for shape in e.row_shapes
    }


def others_in(e: HasTraining, rows: Mapping[RowShape, Rows]) -> dict[str, Rows]:
    """The rows of the other corpora in what `open_rows` gives, by name, in the run's own shape."""
    return dict(zip(names(e), rows[RowShape.of(e.rows)].parts[1:], strict=True))


def patterns_of(experiment: HasTraining, schedule: Schedule, shape: RowShape) -> list[Pattern]:
    """How the phases of a schedule mix the rows of that shape, and when they read them."""
    return [
        Pattern.of(s.start, list(_quotas(experiment, s.phase).values()), s.stop, s.shape.batch_rows)
        for s in stretches(schedule, experiment)
        if s.shape.rows == shape
    ]


def counts_of(
    experiment: HasTraining, rows: Mapping[RowShape, Rows]
) -> dict[tuple[str, RowShape], RowCounts]:
    """What the duration of a phase is measured against: the rows, tokens and words of one pattern, where it mixes."""
    counted = {shape: [_as_counts(part.counts) for part in of.parts] for shape, of in rows.items()}
    return _of_phases(experiment, counted)


def planned_counts(
    experiment: HasTraining, own: Mapping[RowShape, RowCounts]
) -> dict[tuple[str, RowShape], RowCounts]:
    """`counts_of` before the run's `own` rows are there; those of other corpora are on record, or else taken to be like
    its own.

    Raises ConfigError where a phase lasts epochs of another corpus that has no rows yet.
    """
    others = {name: read_manifest(_rows_of(experiment, name)) or Manifest() for name in names(experiment)}
    counted = {}
    for shape, of_own in own.items():
        found = {name: _counts_in(manifest, experiment, shape) for name, manifest in others.items()}
        counted[shape] = [of_own, *(counts or of_own for counts in found.values())]
        for phase in experiment.phases:
            missing = [n for n, k in _quotas(experiment, phase).items() if k and not found.get(n, of_own)]
            if missing and experiment.phase[phase].duration_unit == 'epochs':
                raise ConfigError(
                    f'config.corpora.{missing[0]}.run: {experiment.corpora[missing[0]].run} has no rows of such a '
                    f'shape, and phase {phase} lasts epochs of them; make them first, or correct the folder'
                )
    return _of_phases(experiment, counted)


def _of_phases(
    experiment: HasTraining, counted: Mapping[RowShape, Sequence[RowCounts]]
) -> dict[tuple[str, RowShape], RowCounts]:
    """What phases are measured against, from the counts of all corpora by shape, the run's own first."""
    found = {}
    for (name, phase), (shape, of_corpora) in itertools.product(experiment.phase.items(), counted.items()):
        if name not in experiment.phases or shape not in {s.rows for s in phase_shapes(experiment, phase)}:
            continue
        used = [(k, of) for k, of in zip(_quotas(experiment, name).values(), of_corpora, strict=True) if k]
        if used[0][0] == PATTERN:  # of one corpus: its own counts, so that epochs are its own
            [(_, found[name, shape])] = used
        else:
            tokens = sum(k * counts.tokens / counts.rows for k, counts in used)
            words = sum(k * counts.words / counts.rows for k, counts in used)
            found[name, shape] = RowCounts(PATTERN, tokens, words)
    return found


def _counts_in(rows: Manifest, e: HasTraining, shape: RowShape) -> RowCounts | None:
    """The counts of another run's rows in that shape; None where there are none."""
    counts, split = RowCountsOfSplits.of(rows), _split_in(rows, e, shape)
    if not counts or not split:
        return None
    return _as_counts(counts.train if split == 'train' else (counts.more or {})[split])


def _as_counts(rows: SplitRows) -> RowCounts:
    return RowCounts(rows.rows, rows.tokens, rows.words)


def names(experiment: HasTraining) -> list[str]:
    """The other corpora that the phases take rows from."""
    return list(shares(experiment, experiment.phases))[1:]


def contents(experiment: HasTraining) -> dict[str, str]:
    """Which rows those are, for the fingerprint of the stage."""
    return {CONTENT.format(name): _content_of(experiment, name) for name in names(experiment)}


def documents(experiment: HasTraining, trained: Manifest) -> dict[str, Manifest]:
    """The record of the documents of every other corpus; an empty one where it is damaged, or the rows are others now.

    `trained`: the manifest of stage pretrain, an empty one where it is not finished.
    """
    found = dict.fromkeys(names(experiment), Manifest())
    for name in found:
        with contextlib.suppress(InputError):
            now = _content_of(experiment, name)
            if trained.inputs.get(CONTENT.format(name), now) == now:
                found[name] = read_manifest(_rows_of(experiment, name).parent / 'corpus') or Manifest()
    return found


def shares(experiment: HasTraining, phases: Iterable[str]) -> dict[str, dict[str, float]]:
    """The shares of the corpora in the rows of those phases, by corpus and phase: the run's own first, then others."""
    of_phases = {phase: quotas(experiment.phase[phase].corpora) for phase in phases}
    used = {name for rows in of_phases.values() for name in rows} - {OWN}
    return {
        name: {phase: rows.get(name, 0) / PATTERN for phase, rows in of_phases.items()}
        for name in (OWN, *sorted(used))
    }


def check(e: HasTraining, vocab: Manifest | None) -> None:
    """Raise ConfigError for a corpus without rows, or with rows of another width, layout, rule of words or vocabulary.

    `vocab`: the manifest of the run's own stage, where that is finished.
    """
    own, rows = _tokenizer(vocab), e.rows
    for name in names(e):
        folder, key = _rows_of(e, name), f'config.corpora.{name}.run'
        manifest, tokenizer = read_manifest(folder), _tokenizer(read_manifest(folder.parent / 'vocab'))
        if not manifest or not tokenizer:
            raise ConfigError(
                f'{key}: {folder.parent} has no finished stage rows; make it with --config.stages=corpus,vocab,rows '
                "and this run's vocabulary (config.vocab.kind=file), or correct the folder"
            )
        missing = [shape for shape in e.row_shapes if not _split_in(manifest, e, shape)]
        theirs = {kept: manifest.settings.get(kept, default_of(type(e), kept)) for kept in KEPT}
        width = missing[0].row_pieces if missing else theirs[KEPT[0]]
        for kept, ours in zip(KEPT, (width, rows.layout, rows.words), strict=True):
            if theirs[kept] != ours:
                raise ConfigError(
                    f'{key}: has rows with config.{kept}={theirs[kept]}, this run with {ours}; make both alike'
                )
        if missing:
            raise ConfigError(
                f'{key}: has no rows of {missing[0].row_pieces} pieces with documents of at most '
                f'{missing[0].max_document_pieces}; give a phase there the same row_pieces and max_document_pieces'
            )
        if own and own != tokenizer:
            raise ConfigError(
                f"{key}: {folder.parent} has another vocabulary than this run; give it this run's vocab folder with "
                'config.vocab.kind=file and config.vocab.file, and make its rows again'
            )


def check_lengths(e: HasTraining, architecture: Architecture) -> None:
    """Raise ConfigError where documents, the run's own or those of a corpus, may be longer than the model's positions,
    and what else `check_rows` does."""
    check_rows(e.rows, architecture)
    for name in names(e):
        manifest = read_manifest(_rows_of(e, name)) or Manifest()
        longest = max(
            (
                _shape_of(manifest, e) if _split_in(manifest, e, shape) == 'train' else shape
            ).max_document_pieces
            for shape in e.row_shapes
        )
        theirs = dataclasses.replace(e.rows, max_document_pieces=longest)
        check_rows(theirs, architecture, f'config.corpora.{name}.run: its config.rows')


def _content_of(experiment: HasTraining, name: str) -> str:
    """What identifies the rows of a corpus; empty where they are not finished."""
    rows = read_manifest(_rows_of(experiment, name))
    return (rows and rows.content) or ''


def _quotas(experiment: HasTraining, phase: str) -> dict[str, int]:
    """Rows of every corpus, the run's own first, in a pattern of the phase."""
    asked = quotas(experiment.phase[phase].corpora)
    return {name: asked.get(name, 0) for name in (OWN, *names(experiment))}


def _split_in(rows: Manifest, e: HasTraining, shape: RowShape) -> str:
    """The training split of another run that goes with this shape; empty without one."""
    theirs = _shape_of(rows, e)
    # Of a run's own rows the width alone has to be the same: how long documents are is each run's affair.
    if shape in (theirs, RowShape.of(e.rows)) and shape.row_pieces == theirs.row_pieces:
        return 'train'
    return shape.split_apart if shape.split_apart in (rows.counts or {}).get('more', {}) else ''


def _shape_of(rows: Manifest, e: HasTraining) -> RowShape:
    """The shape of another run's own rows."""
    return RowShape(
        *(rows.settings.get(key, default_of(type(e), key)) for key in (KEPT[0], 'rows.max_document_pieces'))
    )


def _tokenizer(manifest: Manifest | None) -> str:
    """What identifies the tokenizer that a stage vocab has made; empty without one."""
    return manifest.files[READY].sha256 if manifest else ''


def _rows_of(experiment: HasTraining, name: str) -> Path:
    return Path(experiment.corpora[name].run) / 'rows'
