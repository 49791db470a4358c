"""Bars of long work for a person at a terminal or in a notebook."""

import contextlib
import sys
import warnings
from collections.abc import Iterable, Iterator
from typing import Any, Self, TypeVar

from bioptimus_jax.progress.console import PROGRESS, Console, Progress

T = TypeVar('T')
NOTEBOOK = 'ZMQInteractiveShell'
"""The shell that IPython has where a notebook is its terminal."""
PATIENCE = 1.0
"""Seconds that loops take before they have a bar."""


def shown(progress: bool | None) -> bool:
    """Whether there are to be bars: as `progress` says, or for None on a terminal and in a notebook.

    There are none by themselves where bars are off for everything of Hugging Face (HF_HUB_DISABLE_PROGRESS_BARS).
    """
    if progress is not None:
        return progress
    from huggingface_hub.utils import are_progress_bars_disabled

    return not are_progress_bars_disabled() and (sys.stderr.isatty() or in_notebook())


def in_notebook() -> bool:
    """Whether this process computes what a notebook shows."""
    ipython = sys.modules.get('IPython')
    shell = ipython.get_ipython() if ipython else None
    return type(shell).__name__ == NOTEBOOK


def counted(items: Iterable[T], label: str, total: int, show: bool) -> Iterator[T]:
    """The items, with a bar if they take long."""
    with _tqdm(desc=label, total=total, disable=not show, delay=PATIENCE) as bar:
        for item in items:
            yield item
            bar.update()


class Bar:
    """A bar for one piece of work after the other, and lines above it."""

    def __init__(self, show: bool):
        self.show, self.bar, self.of = show, _tqdm(disable=True), ('', 0.0)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.bar.close()

    def at(self, label: str, done: float, total: float, unit: str) -> None:
        """Show how much of a piece of work is done."""
        if (label, total) != self.of:
            self.bar.close()
            self.of, disable = (label, total), not self.show
            self.bar = _tqdm(
                desc=label,
                total=round(total),
                unit=f' {unit}',
                initial=round(done),
                leave=False,
                disable=disable,
            )
        self.bar.update(round(done) - self.bar.n)

    def line(self, line: str, quiet: bool) -> None:
        """A line that a program prints: progress goes to the bar, if there is one, and the rest to where print does."""
        found = PROGRESS.match(line)
        if found and self.show:
            done, total = (float(found[name].replace(',', '')) for name in ('done', 'total'))
            self.at(found['label'], done, total, found['unit'])
        elif not quiet:
            with self.bar.external_write_mode(file=sys.stdout) if self.show else contextlib.nullcontext():
                print(line, flush=True)


class Barred(Console):
    """A console that says nothing, and shows progress on a bar."""

    def __init__(self, bar: Bar):
        super().__init__(quiet=True)
        self.bar = bar

    def progress(self, label: str, total: float, unit: str) -> Progress:
        return _OnBar(self.bar, label, total, unit)


class _OnBar(Progress):
    def __init__(self, bar: Bar, label: str, total: float, unit: str):
        super().__init__(label, total, unit, quiet=True)
        self.bar = bar

    def update(self, amount: float, note: str = '') -> None:
        super().update(amount, note)
        self.bar.at(self.label, self.done, self.total, self.unit)


def _tqdm(**how: Any) -> Any:
    """A bar on stderr; in a notebook one of its own, where ipywidgets is installed."""
    from tqdm import TqdmWarning

    with warnings.catch_warnings():
        warnings.simplefilter(
            'ignore', TqdmWarning
        )  # of a notebook without ipywidgets, which gets one of letters
        from tqdm.auto import tqdm

        return tqdm(dynamic_ncols=True, **how)
