"""What a stage's folder says of itself: the claim of an attempt, the manifest of a finished stage, and whether the
files that it lists are still what was written.
"""

import contextlib
import dataclasses
import enum
import fnmatch
import importlib.metadata
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from bioptimus_jax.errors import ConfigError, InputError
from bioptimus_jax.records.manifests import Begun, Claim, FileEntry, Manifest
from bioptimus_jax.storage.files import Checksums, read_sealed, write_sealed

MANIFEST = 'manifest.json'
STARTED = '.started.json'
KEYS = frozenset('stage config inputs content counts files folder cells'.split())
"""Keys of which a record of a stage holds some."""
CHECKPOINTS = 'checkpoints/*'
NOT_CHECKSUMMED = ('README.md', '*/README.md', CHECKPOINTS)
"""Model cards decide nothing: people put their own in their place. Checkpoints have sums of their own, which whoever
restores them compares, and old ones may be deleted."""
PACKAGES = 'bioptimus-jax jax flax optax orbax-checkpoint transformers tokenizers torch numpy'.split()


@dataclasses.dataclass(frozen=True)
class Flaws:
    """Files of a manifest that are gone, and files that are not what it says."""

    missing: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()


class FolderOutcome(enum.Enum):
    """How a stage's folder is left when the stage is refused."""

    FINISHED = 'finished, as it was'
    PART = 'a part, which the next attempt goes on from'
    NOTHING = 'no folder'


@dataclasses.dataclass(frozen=True)
class StageState:
    """What a stage's folder holds: the `manifest` of a finished stage, else the `claim` of an attempt that was cut off.

    `changes`: how what is asked for differs. `missing`: files that the manifest lists. `refusal`: why the stage cannot
    go on from there.
    """

    manifest: Manifest | None = None
    claim: Claim | None = None
    changes: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    refusal: ConfigError | InputError | None = None

    @property
    def begun(self) -> Begun | None:
        """The manifest or the claim, if there is one."""
        return self.manifest or self.claim

    def is_unwanted(self, replace: bool, keep_matching: bool, empty: bool) -> bool:
        """Whether to remove what a stage has made, so that it is made again; `empty`: the attempt left no file."""
        if not self.begun:
            return False
        if replace:
            return bool(self.refusal or (not keep_matching and (self.manifest or self.changes)))
        return bool(self.refusal and not self.manifest and empty)

    def after_refusal(self, error: ConfigError | InputError, saved: bool, killed: bool) -> FolderOutcome:
        """How to leave the folder; `saved`: this attempt has saved something. `killed`: a worker was, by the system.

        A finished stage stays finished, unless its input was refused after something was saved.
        """
        if self.manifest and (isinstance(error, ConfigError) or not saved):
            return FolderOutcome.FINISHED
        return FolderOutcome.PART if self.claim or saved or killed else FolderOutcome.NOTHING


def read_manifest(folder: Path) -> Manifest | None:
    """The manifest of a stage's folder; None without one. Raises InputError for damage."""
    return _read(Manifest, folder, MANIFEST)


def outdated(stages: Mapping[str, Manifest], begun: Collection[str] = ()) -> dict[str, tuple[str, ...]]:
    """Stage -> the stages that were run again since it used their results, directly or through another stage.

    `begun`: stages that are running or were interrupted. What was made from their earlier results is outdated, too.
    """
    return {stage: anew for stage in stages if (anew := _made_again_since(stage, stages, begun))}


def _made_again_since(stage: str, stages: Mapping[str, Manifest], begun: Collection[str]) -> tuple[str, ...]:
    """The stages that were run again since `stage` used their results; a stage that it used is asked in turn."""
    anew: dict[str, None] = {}
    for read, content in stages[stage].inputs.items():
        if read in stages and content == stages[read].content:
            anew |= dict.fromkeys(_made_again_since(read, stages, begun))
        elif read in stages or read in begun:
            anew[read] = None
    return tuple(anew)


def read_claim(folder: Path) -> Claim | None:
    """The claim of an attempt at a stage that has not ended; None without one. Raises InputError for damage."""
    return _read(Claim, folder, STARTED)


RecordT = TypeVar('RecordT', Manifest, Claim)


def _read(kind: type[RecordT], folder: Path, name: str) -> RecordT | None:
    path = folder / name
    record = read_sealed(path, rerun_hint(folder))
    if record is None:
        return None
    # Well-formed JSON that is no record of ours is damage as well.
    if not record.keys() & KEYS:
        raise InputError(f'{path}: is damaged (no record of a stage); {rerun_hint(folder)}')
    return kind.read(record, str(path), rerun_hint(folder))


def place_of(folder: Path) -> Path:
    """Where the files of a stage's folder lie, finished or not: in it, or where a base run's stage was taken from."""
    manifest = read_manifest(folder)
    return Path(manifest.folder) if manifest and manifest.folder else folder


def finished_place(folder: Path) -> Path:
    """Where the files of a stage's folder lie. Raises InputError where the stage is not finished, or they are gone."""
    if read_manifest(folder) is None:
        raise InputError(
            f'{folder}: stage {folder.name!r} has not been done; run `bioptimus {folder.name}` first'
        )
    place = place_of(folder)
    if not place.is_dir():
        raise InputError(f'{place}: is gone, but {folder / MANIFEST} refers to it; restore it')
    return place


def rerun_hint(folder: Path) -> str:
    """The remedy for a file of a stage's folder, finished or not, without which it cannot go on."""
    return f'restore it, or remove {folder} and run `bioptimus {folder.name}` again'


def write_manifest(folder: Path, manifest: Manifest) -> None:
    """Write the manifest, which says that the stage is finished, and take back the claim."""
    # In this order: a kill in between leaves both, and then the manifest counts; the other way round neither would be
    # there.
    write_sealed(folder / MANIFEST, manifest.json())
    (folder / STARTED).unlink(missing_ok=True)


def claim_cells(folder: Path, cells: Mapping[str, str]) -> None:
    """Add cells to the claim of an attempt. A stage that ends, or starts again, removes the claim."""
    if claim := read_claim(folder):
        write_sealed(folder / STARTED, dataclasses.replace(claim, cells=cells).json())


def claim_seconds(folder: Path, seconds: float) -> None:
    """Keep in the claim of an attempt, if it has one still, what the stage has taken so far."""
    if claim := read_claim(folder):
        write_sealed(folder / STARTED, dataclasses.replace(claim, seconds=seconds).json())


def listed(folder: Path, checksums: Checksums) -> dict[str, FileEntry]:
    """Name -> size and checksum of every file of a stage, but hidden ones and the manifest."""
    return {
        str(p.relative_to(folder)): FileEntry(p.stat().st_size, checksums.sha256(p))
        for p in sorted(folder.rglob('*'))
        if p.is_file()
        and p != folder / MANIFEST
        and not any(part.startswith('.') for part in p.relative_to(folder).parts)
    }


def find_flaws(
    folder: Path,
    manifest: Manifest,
    checksums: Checksums | None,
    *,
    reads: Callable[[str], bool] = lambda name: True,
    advance: Callable[[float], None] = lambda megabytes: None,
) -> Flaws:
    """Compare those files of a manifest that somebody `reads` with what lies in `folder`, by content.

    Large files whose size and time are those of when they were last read are not read again. Without `checksums` sizes
    are compared alone.
    """
    missing, changed = [], []
    for name, entry in manifest.files.items():
        if not reads(name) or any(fnmatch.fnmatch(name, glob) for glob in NOT_CHECKSUMMED):
            continue
        path = folder / name
        if not path.is_file():
            missing.append(name)
        # Sizes come first, as they need no reading.
        elif path.stat().st_size != entry.bytes or (
            checksums and checksums.sha256(path, advance) != entry.sha256
        ):
            changed.append(name)
    return Flaws(tuple(missing), tuple(changed))


def require_as_taken(folder: Path, manifest: Manifest) -> None:
    """Raise InputError where the other run has trained again since a stage was taken from there.

    The files of other stages tell it themselves; checkpoints are compared with nothing of this run.
    """
    trained = manifest.folder and fnmatch.filter(manifest.files, CHECKPOINTS)
    if trained and (read_manifest(Path(str(manifest.folder))) or Manifest()).content != manifest.content:
        raise InputError(
            f'{manifest.folder}: is no longer what this run took from there; remove {folder}, and run '
            f'`bioptimus {folder.name}` again'
        )


def require_whole(folder: Path, flaws: Flaws) -> None:
    """Raise InputError, which names the first file and the remedy, unless there are no flaws."""
    if not flaws.missing and not flaws.changed:
        return
    # Changed files first: somebody has to decide about them, while missing ones are made again.
    name, is_there = (*flaws.changed, *flaws.missing)[0], bool(flaws.changed)
    what = f'is not what was written (its SHA-256 is not that of {MANIFEST})' if is_there else 'is missing'
    remedy = (
        f'restore it, or {"delete it and " * is_there}run `bioptimus {folder.name}` again, which rebuilds it'
    )
    more = len(flaws.changed) + len(flaws.missing) - 1
    raise InputError(f'{folder / name}: {what}; {remedy}{f" (and {more} more of its files)" * bool(more)}')


def differences(old: Begun, new: Claim, default: Callable[[str], Any] = lambda name: None) -> list[str]:
    """`key: old -> new` for every configuration key and input that is not the same.

    `default`: of a key. A key that one of them lacks is no difference where the other has its default: the program has
    learned the key since.
    """
    changes = []
    for part, before, after in (
        ('config', old.settings, new.settings),
        ('inputs', old.inputs, new.inputs),
    ):
        for name in sorted(before.keys() | after.keys()):
            # A run that was begun before the program learned a key goes on where the key is as by default.
            without = default(name) if part == 'config' else None
            known, asked = before.get(name, without), after.get(name, without)
            if known != asked:
                changes.append(f'{part}.{name}: {_short(known)} -> {_short(asked)}')
    return changes


def refused(
    changes: Sequence[str],
    old: Begun,
    new: Claim,
    changeable_keys: tuple[str, ...],
    open_ended_inputs: tuple[str, ...],
) -> list[str]:
    """The differences between old and new with which a stage cannot go on from what it has.

    `changeable_keys`, `open_ended_inputs`: see `run.Stage`.
    """

    def group_of(name: str) -> str:
        """The group of an input; each NAME of `corpora:NAME` is one where `corpora:` is open-ended."""
        group = name.partition(':')[0]
        return name if f'{group}:' in open_ended_inputs else group

    old_groups, new_groups = ({group_of(name) for name in of.inputs} for of in (old, new))
    added = _entries(new) - _entries(old)
    found = []
    for change in changes:
        part, _, name = change.partition(': ')[0].partition('.')
        # What only one side has came or went as a whole; what both have was changed under the work that is done.
        grown = (
            group_of(name) not in old_groups & new_groups
            if part == 'inputs'
            else name.rpartition('.')[0] in added
        )
        changeable = f'{part}.{group_of(name)}'.endswith(changeable_keys)
        if not (changeable or (grown and name.startswith(open_ended_inputs))):
            found.append(change)
    return found


def _entries(of: Begun) -> set[str]:
    """The parts of a configuration with keys: sections, and entries that the user has named, such as phase.0.1."""
    return {name.rpartition('.')[0] for name in of.settings}


def _short(value: Any) -> str:
    text = 'none' if value is None else str(value)
    return text if len(text) <= 24 else text[:12] + '…'


def versions(more: Sequence[str] = ()) -> dict[str, str]:
    """The installed versions of what decides a result, by package; of some `more` packages too."""
    found = {}
    for package in (*PACKAGES, *more):
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            found[package] = importlib.metadata.version(package)
    return found
