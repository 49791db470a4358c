"""What a stage is."""

import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import Any

from bioptimus_jax.records.counts import StageResult
from bioptimus_jax.run.folder import Run


@dataclasses.dataclass(frozen=True)
class Stage:
    """One verb: what it is for, the stages and config sections that it reads, and how it is built.

    `build(run, folder)` writes into `folder` and returns what goes into its manifest.
    `needs(experiment)` names the stages that it reads; those of `reads_if_done` it reads only once they are finished.
    `reads_files(experiment)` names files of theirs, as STAGE/FILE, that decide the result and that their content leaves
    out. `external(experiment)` gives what outside the run decides the result: a list of files, whose order counts, or
    `GROUP:NAME` -> a file, or a word about its group.
    `changeable_keys` are endings of keys that may change without starting anew: the stage goes on from what it has.
    `open_ended_inputs` are beginnings of names. Groups of inputs that begin so may come and go as a whole, and may not
    change while they are there; with `GROUP:` each name of the group may by itself. Entries of a section that begin so
    may be added.
    A stage that is made `always` reads whatever is there and is never up to date. `format` is raised when a stage
    would make something else of the same inputs and settings: what was made before is then refused.
    `check(run)` raises what `build` would find wrong in settings and other people's folders, from small files alone.
    `memory`: what to change where it is not enough. `needs_free_accelerator(experiment)`: whether it computes on
    accelerators without jax.
    `also_reads`: keys outside its sections that it looks at. `lines`: other names that its lines of metrics.jsonl have.
    """

    name: str
    summary: str
    reads: str
    writes: str
    sections: tuple[str, ...]
    needs: Callable[[Any], tuple[str, ...]]
    build: Callable[[Run[Any], Path], StageResult]
    external: Callable[[Any], list[Path] | dict[str, Path | str]] = lambda experiment: []
    changeable_keys: tuple[str, ...] = ()
    open_ended_inputs: tuple[str, ...] = ()
    reads_if_done: tuple[str, ...] = ()
    always: bool = False
    format: int = 1
    check: Callable[[Run[Any]], None] = lambda run: None
    memory: str = 'take a larger machine'
    needs_free_accelerator: Callable[[Any], bool] = lambda experiment: False
    also_reads: tuple[str, ...] = ()
    lines: tuple[str, ...] = ()
    reads_files: Callable[[Any], tuple[str, ...]] = lambda experiment: ()
