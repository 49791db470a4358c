"""The rows of several corpora in one run, by the weights of its phases.

Rows of other corpora are those of other runs, tokenised by the same vocabulary, so nothing is tokenised anew.
"""

from pathlib import Path

from bioptimus_jax.config.fields import default_of
from bioptimus_jax.errors import ConfigError
from bioptimus_jax.pretrain.config import HasTraining
from bioptimus_jax.pretrain.curriculum import RowCounts, Schedule
from bioptimus_jax.pretrain.order import Pattern
from bioptimus_jax.pretrain.shares import OWN, PATTERN, quotas
from bioptimus_jax.records.manifests import Manifest
from bioptimus_jax.rows.stored import Rows
from bioptimus_jax.run.manifests import place_of, read_manifest
from bioptimus_jax.tokenizer.subwords import READY


def open_rows(e: HasTraining, own: Path, vocab: Manifest | None) -> Rows:
    """A run's own rows, in the folder `own`, and behind them those of the corpora that its phases name.

    `vocab` and errors: as of `check`.
    """
    check(e, vocab)
    others = [Rows(place_of(_rows_of(e, name)), 'train') for name in names(e)]
    return Rows(own, 'train').concatenated(others)


def patterns_of(experiment: HasTraining, schedule: Schedule) -> list[Pattern]:
    """How the phases of a schedule mix those rows."""
    return [Pattern.of(s.start, list(_quotas(experiment, s.name).values())) for s in schedule]


def counts_of(experiment: HasTraining, rows: Rows) -> dict[str, RowCounts]:
    """Phase -> what its duration is measured against: the rows, tokens and words of one pattern, where it mixes."""
    found = {}
    for name in experiment.phases:
        shares = zip(_quotas(experiment, name).values(), rows.parts, strict=True)
        used = [(k, part.counts) for k, part in shares if k]
        if used[0][0] == PATTERN:  # of one corpus: its own counts, so that epochs are its own
            [(_, counts)] = used
            found[name] = RowCounts(counts.rows, counts.tokens, counts.words)
        else:
            tokens = sum(k * counts.tokens / counts.rows for k, counts in used)
            words = sum(k * counts.words / counts.rows for k, counts in used)
            found[name] = RowCounts(PATTERN, tokens, words)
    return found


def names(experiment: HasTraining) -> list[str]:
    """The other corpora that the phases take rows from."""
    used = {name for phase in experiment.trained_phases for name in quotas(phase.corpora)}
    return sorted(used - {OWN})


def contents(experiment: HasTraining) -> dict[str, str]:
    """Which rows those are, for the fingerprint of the stage."""
    records = {name: read_manifest(_rows_of(experiment, name)) for name in names(experiment)}
    return {f'corpora:{name}': record.content or '' if record else '' for name, record in records.items()}


def check(e: HasTraining, vocab: Manifest | None) -> None:
    """Raise ConfigError for a corpus without rows, or with rows of another width or of another vocabulary.

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
        for kept in ('rows.row_pieces', 'rows.layout'):
            theirs = manifest.settings.get(kept, default_of(type(e), kept))
            ours = getattr(rows, kept.rpartition('.')[2])
            if theirs != ours:
                raise ConfigError(
                    f'{key}: has rows with config.{kept}={theirs}, this run with {ours}; make both alike'
                )
        if own and own != tokenizer:
            raise ConfigError(
                f"{key}: {folder.parent} has another vocabulary than this run; give it this run's vocab folder with "
                'config.vocab.kind=file and config.vocab.file, and make its rows again'
            )


def _quotas(experiment: HasTraining, phase: str) -> dict[str, int]:
    """Rows of every corpus, the run's own first, in a pattern of the phase."""
    asked = quotas(experiment.phase[phase].corpora)
    return {name: asked.get(name, 0) for name in (OWN, *names(experiment))}


def _tokenizer(manifest: Manifest | None) -> str:
    """What identifies the tokenizer that a stage vocab has made; empty without one."""
    return manifest.files[READY].sha256 if manifest else ''


def _rows_of(experiment: HasTraining, name: str) -> Path:
    return Path(experiment.corpora[name].run) / 'rows'
