"""The checksums of an exported folder, by the names of its files."""

from collections.abc import Iterable, Mapping
from pathlib import Path

from bioptimus_jax.storage.files import atomic, sha256

SUMS = 'sha256sums'


def write_sums(folder: Path, deeper: Iterable[str] = ()) -> None:
    """Write the checksums of the files of a folder, last; `deeper`: paths of those in folders below it."""
    sums = {p.name: sha256(p) for p in sorted(folder.iterdir()) if p.is_file()}
    sums |= {path: sha256(folder / path) for path in deeper}
    with atomic(folder / SUMS) as file:
        file.write(as_lines(sums))


def as_lines(sums: Mapping[str, str]) -> str:
    """Checksums by the paths of files, in the form of sha256sum."""
    return ''.join(f'{value}  {name}\n' for name, value in sums.items())


def read_sums(folder: Path) -> dict[str, str]:
    """Path of a file -> its checksum."""
    lines = (folder / SUMS).read_text('utf-8', 'replace').splitlines()
    return {name: value for value, _, name in (line.partition('  ') for line in lines)}
