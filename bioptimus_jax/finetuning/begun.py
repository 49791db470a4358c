"""Which cells are being trained, and how far: what a stop loses of them, since a cell is kept once it is finished."""

from collections.abc import Sequence
from pathlib import Path

from bioptimus_jax.storage.files import temporary

NAME = 'begun'
NAMED = 3
"""Cells that are named; of more only the number is said."""


def note_epochs(folder: Path, epochs: int) -> None:
    """Write down, for whoever stops, how many epochs of the cell in this folder are trained."""
    folder.mkdir(parents=True, exist_ok=True)
    if not epochs:
        forget(folder)  # of a worker that was killed
    # A name that a kill may leave: the stage removes such files at its end.
    temporary(folder / NAME).write_text(str(epochs), 'utf-8')


def forget(folder: Path) -> None:
    """Remove what is noted, as nothing of the cell can be lost any more."""
    for noted in folder.glob(f'.{NAME}.*.tmp'):
        noted.unlink(missing_ok=True)


def lost(cells: Sequence[tuple[str, Path, int]]) -> str:
    """`the cell a/gad/standard/seed-0, 3 of 8 epochs, is trained anew`; '' where none is being trained.

    `cells`: of those that are not finished, name, folder and number of epochs.
    """
    found = []
    for name, folder, epochs in cells:
        noted = [path.read_text('utf-8') for path in folder.glob(f'.{NAME}.*.tmp')]
        found += [
            f'{name}, {max(map(int, filter(str.isdecimal, noted)), default=0)} of {epochs} epochs'
        ] * bool(noted)
    if len(found) > NAMED:
        found[NAMED:] = [f'{len(found) - NAMED} more']
    if not found:
        return ''
    if len(found) == 1:
        return f'the cell {found[0]}, is trained anew'
    return f'the cells {"; ".join(found)} are trained anew'
