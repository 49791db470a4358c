"""One fine-tuning from files to files, and many of them in worker processes."""

import collections
import contextlib
import dataclasses
import functools
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from bioptimus_jax.errors import InputError, Stopped, printable
from bioptimus_jax.finetuning import recommended
from bioptimus_jax.finetuning.begun import forget, lost, note_epochs
from bioptimus_jax.finetuning.card import write_card
from bioptimus_jax.finetuning.config import JAX, NOT_OF_A_SETTING, TOGETHER, Finetune
from bioptimus_jax.finetuning.finished import SCORES
from bioptimus_jax.finetuning.kept import Reads
from bioptimus_jax.finetuning.subset import as_learned
from bioptimus_jax.finetuning.task import Task, task_for
from bioptimus_jax.finetuning.training import finetune
from bioptimus_jax.hosts.cards import ATTEMPTS, Job, OnCards
from bioptimus_jax.hosts.config import Runtime
from bioptimus_jax.hosts.workers import Cluster, WorkerKilled, Workers, abandoned, cores, open_workers
from bioptimus_jax.progress.console import Within, numbered
from bioptimus_jax.records.finetune import CellSettings, FineTuning, ModelOnSet, Scores, StoppedCell, Trained
from bioptimus_jax.records.record import plain
from bioptimus_jax.sets.corpora import NamedSet
from bioptimus_jax.sets.sentences import SPLITS
from bioptimus_jax.storage.files import digest, read_sealed, remove_folder, sha256, write_sealed

MEMORY_NEUTRAL_KEYS = frozenset(
    """
    seeds settings epochs learning_rate head_learning_rate warmup_fraction weight_decay bias_correction layer_decay
    layer_decay_rule reinit_layers train_seed
    """.split()
).union(NOT_OF_A_SETTING)
"""Keys that a cell takes the same memory with, whatever they say."""
LESS = 'lower config.finetune.batch_sentences or config.finetune.max_pieces'
ONE_PROCESS = (
    'finetune: cells are trained one after the other, with all devices of jax for each, as one process alone can hold '
    'a TPU; config.runtime.workers={} is not used'
)
MODEL = 'model'  # in a cell's folder


@dataclasses.dataclass(frozen=True)
class Cell:
    """Everything that a worker needs for one fine-tuning. `fingerprint` is the digest of all that decides it.

    `by_rule`: keys of its settings that the rule of the defaults has decided. `keep`: whether its model is written
    beside the scores; `again`: whether it is not finished without one. `until`: it stops after so many of its epochs,
    and test is not read.
    """

    model: str
    model_folder: Path
    dataset: NamedSet
    setting: str
    settings: Finetune
    seed: int
    target: Path
    threads: int
    quiet: bool
    fingerprint: str
    by_rule: tuple[str, ...] = ()
    keep: bool = False
    again: bool = False
    until: int = 0

    @property
    def name(self) -> str:
        return f'{self.model}/{self.dataset.name}/{self.setting}/seed-{self.seed}'


def run_cell(cell: Cell, dataset: Any, check: Callable[[], None] = lambda: None) -> Trained:
    """One fine-tuning on a set that was read before, from files to files, or what it gave before. Raises InputError."""
    from bioptimus_jax.finetuning.cards import release, tell_peak

    if kept := finished_rung(cell) if cell.until else finished_cell(cell):
        return kept
    started = time.monotonic()
    note_epochs(cell.target, 0)
    task = task_for(cell.dataset)
    applied: list[Scores | None] = []

    def keep(tokenizer: Any, head: Any) -> None:
        _keep_model(cell, task, tokenizer, head, task.reads(dataset, cell.settings))
        applied.append(task.applied(dataset, tokenizer, head, cell.settings))

    def on_epoch(epoch: dict[str, float]) -> None:
        note_epochs(cell.target, int(epoch['epoch']))
        if not cell.quiet:
            score = f'devel {task.metric.label} {100 * epoch[f"devel_{task.metric.name}"]:.2f}'
            shown = f'epoch {epoch["epoch"]}/{cell.settings.epochs}: loss {epoch["loss"]:.4f}, {score}'
            print(printable(f'finetune: {cell.name} {shown}'), flush=True)
        tell_peak()

    progress = Within(f'finetune: {cell.name}', 0, 'updates', cell.quiet)

    def on_update(done: int, total: int) -> None:
        progress.total = total * cell.until // cell.settings.epochs if cell.until else total
        progress.update(done - progress.done)

    def warn(message: str) -> None:
        print(printable(f'finetune: {cell.name}: WARNING: {message}'), flush=True)

    try:
        outcome = finetune(
            task,
            cell.model_folder,
            dataset,
            cell.settings,
            cell.seed,
            threads=cell.threads,
            on_epoch=on_epoch,
            check=check,
            warn=warn,
            save=keep if cell.keep and not cell.until else None,
            until=cell.until,
            on_update=on_update,
        )
        tell_peak()
    finally:
        # Whatever happens: the next cell of this process begins with another model.
        release(cell.settings.encoder)
    if cell.until:
        stopped = StoppedCell(
            **vars(place(cell)), seed=cell.seed, history=outcome.history, print=cell.fingerprint
        )
        write_sealed(cell.target / _stopped(cell), stopped.json())
        forget(cell.target)
        return stopped
    devel = as_learned(task, dataset, cell.settings).devel
    detail = task.detail(dataset, outcome.test)
    record = FineTuning(
        **vars(place(cell)),
        seed=cell.seed,
        learned_devel=cell.settings.learn_devel or None,
        devel=task.scores([task.answers(e) for e in devel], outcome.devel),
        devel_alike=task.alike(dataset, devel),
        test=task.scores([task.answers(e) for e in dataset.test], outcome.test),
        **dataclasses.replace(detail, applied=next(iter(applied), None)).details,
        sentences={name: len(getattr(dataset, name)) for name in SPLITS},
        **{name: value for name, value in vars(outcome).items() if name not in ('devel', 'test', 'found')},
        word_of=task.word_of(dataset.test),
        seconds=round(time.monotonic() - started, 1),
        settings=_settings(cell),
        print=cell.fingerprint,
    )
    if cell.keep:
        if record.sameness:
            reads = task.reads(dataset, cell.settings)
            dataclasses.replace(reads, remark=record.sameness).write(cell.target / MODEL)
        write_card(cell.target / MODEL, cell.model_folder, task, dataset, cell.settings, record)
    else:  # one of other settings may be there
        remove_folder(cell.target / MODEL)
    task.write(cell.target, task.predicted(dataset.test, outcome.test))
    task.keep(cell.target, outcome.found)
    record = dataclasses.replace(record, files={name: sha256(cell.target / name) for name in task.files})
    together = cell.target.parent / TOGETHER
    if (together / cell.target.name).is_dir():
        # It holds the model from before, and a stop must not leave it beside cells that are all finished.
        remove_folder(together)
    write_sealed(cell.target / SCORES, record.json())  # last: its presence says that the cell is finished
    forget(cell.target)
    return record


def _settings(cell: Cell) -> CellSettings:
    """What the record says that the cell was trained with."""
    return CellSettings(
        values=plain(cell.settings.deciding()),
        width=recommended.width_of(cell.model_folder),
        by_rule=cell.by_rule,
        rule=recommended.VERSION if cell.by_rule else None,
    )


def _keep_model(cell: Cell, task: Task, tokenizer: Any, head: Any, reads: Reads) -> None:
    from bioptimus_jax.finetuning.stored import save_model

    # Scores from before are of another training: beside this model a kill would leave a cell that looks finished.
    (cell.target / SCORES).unlink(missing_ok=True)
    save_model(task, tokenizer, head, reads, cell.target / MODEL)


def place(cell: Cell) -> ModelOnSet:
    """What the seeds of a model, set and setting have in common."""
    chosen = cell.dataset
    return ModelOnSet(
        model=cell.model,
        dataset=chosen.name,
        task=chosen.recorded_task,
        set=chosen.described,
        setting=cell.setting,
    )


def finished_cell(cell: Cell) -> FineTuning | None:
    """The record of a cell that was done before from the same model, data and settings and is whole, or None."""
    file = cell.target / SCORES
    with contextlib.suppress(InputError, FileNotFoundError):  # damaged: it is made again
        record = FineTuning.read(read_sealed(file), str(file))
        lacks_model = cell.again and not (cell.target / MODEL).is_dir()
        files = {name: sha256(cell.target / name) for name in task_for(cell.dataset).files}
        if record.print == cell.fingerprint and record.files == files and not lacks_model:
            # The folder of a set may have been given another name.
            return dataclasses.replace(record, dataset=cell.dataset.name)
    return None


def _stopped(cell: Cell) -> str:
    return f'stopped-{cell.until}.json'


def finished_rung(cell: Cell) -> StoppedCell | None:
    """What a cell said when it stopped at its rung, or would have said if it was trained to the end before.

    The file of the rung decides: on a GPU another training can end up elsewhere, and a decision must not change.
    """
    for file in (cell.target / _stopped(cell), cell.target / SCORES):
        with contextlib.suppress(InputError):  # damaged: trained again
            record = StoppedCell.read(read_sealed(file), str(file))
            if record.print == cell.fingerprint:
                return dataclasses.replace(record, history=record.history[: cell.until])
    return None


def run_cells(
    runtime: Runtime,
    cells: Sequence[Cell],
    datasets: Mapping[NamedSet, Any],
    say: Callable[[str], None],
    check: Callable[[], None],
) -> Iterator[tuple[Cell, Trained]]:
    """Cells in their order, on sets that were read before: on a cluster, on the GPUs of this machine, or on its CPU.

    Each uses the same number of threads, so results do not depend on how many run at once.

    A worker that the system killed is replaced and its cell begun again, ATTEMPTS times in all. Raises WorkerKilled,
    and Stopped that says which cells are not kept.
    """
    left = {cell.name: cell for cell in cells}
    for cell in cells:
        forget(cell.target)
    try:
        for cell, record in _every(runtime, cells, datasets, say, check):
            del left[cell.name]
            yield cell, record
    except Stopped as stop:
        known = ((cell.name, cell.target, cell.until or cell.settings.epochs) for cell in left.values())
        raise Stopped(lost(list(known)) or str(stop)) from None
    finally:
        for cell in left.values():
            forget(cell.target)


def _every(
    runtime: Runtime,
    cells: Sequence[Cell],
    datasets: Mapping[NamedSet, Any],
    say: Callable[[str], None],
    check: Callable[[], None],
) -> Iterator[tuple[Cell, Trained]]:
    """The cells in their order, as `run_cells` gives them."""
    from bioptimus_jax.finetuning.cards import cards

    if not cells:
        return
    if any(cell.settings.encoder == JAX for cell in cells):
        if min(runtime.workers, len(cells)) > 1:
            say(ONE_PROCESS.format(runtime.workers))
        yield from ((cell, run_cell(cell, datasets[cell.dataset], check)) for cell in cells)
        return
    most = max(1, (runtime.workers or len(cores())) // runtime.torch_threads)
    if found := () if runtime.cluster else cards():
        # A GPU needs a process of its own, even where the cores are too few for the threads of all.
        most = most if runtime.workers else max(most, len(found))
        # Cells of one kind take the same memory, which is measured once and then planned with.
        jobs = [Job(f'finetune: {c.name}', memory_kind(c), (c, datasets[c.dataset])) for c in cells]
        for number, record in OnCards(run_cell, jobs, found, most, LESS, say).results(check):
            yield cells[number], record
        return
    if hint := idle(len(cells), runtime):
        say(hint)
    waiting = collections.deque(cells)
    for attempt in range(1, ATTEMPTS + 1):
        try:
            with _opened(runtime, waiting, min(len(cells), most), datasets) as workers:
                # From a copy: cells leave `waiting` with their results while tasks are still drawn.
                tasks: Iterable[tuple] = ((cell, datasets[cell.dataset]) for cell in list(waiting))
                # Alone in this process a cell looks for itself whether to stop; workers are left by closing their pool.
                work: Any = run_cell if workers.number else functools.partial(run_cell, check=check)
                if runtime.cluster:
                    # It has the sets. Cells differ in length, so nobody waits for the first of them.
                    tasks, work = [(_absolute(cell),) for cell in waiting], _run_there
                for record in workers.map(work, tasks, check, len(waiting) if runtime.cluster else 0):
                    yield waiting.popleft(), record
            return
        except WorkerKilled:
            if attempt == ATTEMPTS:
                raise
            say(
                f'finetune: a worker process was killed; starting its cell again ({attempt} of {ATTEMPTS - 1})'
            )


def idle(cells: int, runtime: Runtime) -> str:
    """What to say where half of the cores or more would have nothing to do; '' where the user has chosen workers."""
    used, here = cells * runtime.torch_threads, len(cores())
    if runtime.cluster or runtime.workers or 2 * used > here:
        return ''
    return (
        f'finetune: uses {used} of {numbered(here, "core")}; config.runtime.torch_threads={here // cells} would use '
        'more (it changes the last digits of results)'
    )


def _opened(runtime: Runtime, cells: Iterable[Cell], most: int, datasets: Mapping[NamedSet, Any]) -> Workers:
    from bioptimus_jax.finetuning.cards import PACKAGES

    if runtime.cluster:
        wanted = {cell.dataset: datasets[cell.dataset] for cell in cells}
        return Cluster(runtime.cluster, _receive, (wanted,), PACKAGES)
    return open_workers(dataclasses.replace(runtime, workers=most), most)


_received: dict[NamedSet, Any] = {}  # in a worker of a cluster


def _receive(datasets: Mapping[NamedSet, Any]) -> None:
    _received.clear()
    _received.update(datasets)


def _run_there(cell: Cell) -> Trained:
    def check() -> None:
        if abandoned():
            raise Stopped

    return run_cell(cell, _received[cell.dataset], check)


def _absolute(cell: Cell) -> Cell:
    """The cell with paths that hold in a worker, which may have another working directory."""
    return dataclasses.replace(cell, model_folder=cell.model_folder.absolute(), target=cell.target.absolute())


def memory_kind(cell: Cell) -> Any:
    """What decides how much memory a cell takes: the same for two that take the same."""
    deciding = {k: v for k, v in dataclasses.asdict(cell.settings).items() if k not in MEMORY_NEUTRAL_KEYS}
    return cell.model_folder, cell.dataset, digest(deciding)
