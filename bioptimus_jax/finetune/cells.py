"""One fine-tuning from files to files, and many of them in worker processes."""

import collections
import contextlib
import dataclasses
import functools
import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from bioptimus_jax.errors import InputError, printable
from bioptimus_jax.files import read_sealed, sha256, write_sealed
from bioptimus_jax.finetune.predictions import Predicted, write_predictions, write_standoff
from bioptimus_jax.finetune.score import by_type, check_with_seqeval, score
from bioptimus_jax.finetune.training import finetune
from bioptimus_jax.run import Run
from bioptimus_jax.schema import Finetune
from bioptimus_jax.sets import corpora
from bioptimus_jax.sets.corpora import NamedSet
from bioptimus_jax.workers import WorkerKilled, cores, open_workers

ATTEMPTS = 3
MODEL = 'model'  # in a cell's folder
PREDICTIONS = ('predictions.tsv', 'predictions.ann', 'predictions.txt')


@dataclasses.dataclass(frozen=True)
class Cell:
    """Everything that a worker needs for one fine-tuning. `print_of` is the digest of all that decides it.

    `keep`: whether its model is written beside the scores; `again`: whether it is not finished without one.
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
    print_of: str
    keep: bool = False
    again: bool = False

    @property
    def name(self) -> str:
        return f'{self.model}/{self.dataset.name}/{self.setting}/seed-{self.seed}'


def run_cell(cell: Cell, check: Callable[[], None] = lambda: None) -> dict[str, Any]:
    """One fine-tuning from files to files, or what it gave before.

    Raises InputError where a gold mention would not be scored.
    """
    if kept := finished_cell(cell):
        return kept
    started = time.monotonic()
    dataset = corpora.read_dataset(cell.dataset)
    corpora.require_all_mentions(cell.dataset.folder, dataset)

    def on_epoch(epoch: dict[str, float]) -> None:
        if not cell.quiet:
            shown = f'loss {epoch["loss"]:.4f}, devel F1 {100 * epoch["devel_f1"]:.2f}'
            line = f'finetune: {cell.name} epoch {epoch["epoch"]}/{cell.settings.epochs}: {shown}'
            print(printable(line), flush=True)

    if dataset.unseen_labels and not cell.quiet:
        unseen = f'tags that the training split does not have count as missed: {dataset.unseen_labels}'
        print(printable(f'finetune: {cell.name}: {unseen}'), flush=True)
    outcome = finetune(
        cell.model_folder,
        dataset,
        cell.settings,
        cell.seed,
        threads=cell.threads,
        on_epoch=on_epoch,
        check=check,
        save=cell.target / MODEL if cell.keep else None,
    )
    gold = [s.tags for s in dataset.test]
    test = score(gold, outcome.test)
    check_with_seqeval(gold, outcome.test, test['default'])
    record = {
        'model': cell.model,
        'dataset': dataset.name,
        'setting': cell.setting,
        'seed': cell.seed,
        'devel': score([s.tags for s in dataset.devel], outcome.devel),
        'test': test,
        'test_untyped': score(gold, outcome.test, typed=False),
        'test_by_type': by_type(gold, outcome.test),
        'gold_in_file': dataset.gold_in_file['test'],
        'gold_scored': int(test['default']['gold']),
        'merged_types': dataset.merged_types,
        'sentences': {name: len(getattr(dataset, name)) for name in corpora.SPLITS},
        'unseen_labels': dataset.unseen_labels,
        'alignment': outcome.counts,
        'train_sentences': outcome.train_sentences,
        'updates': outcome.updates,
        'trained_parameters': outcome.trained_parameters,
        'first_loss': outcome.first_loss,
        'chance_loss': outcome.chance_loss,
        'history': outcome.history,
        'best_epoch': outcome.best_epoch,
        'train_sentences_per_second': outcome.train_sentences_per_second,
        'predict_sentences_per_second': outcome.predict_sentences_per_second,
        'seconds': round(time.monotonic() - started, 1),
        'print': cell.print_of,
    }
    if not cell.keep:  # one of other settings may lie there
        shutil.rmtree(cell.target / MODEL, ignore_errors=True)
    pairs = zip(dataset.test, outcome.test, strict=True)
    sentences = [Predicted(s.words, s.tags, tuple(tags), s.document) for s, tags in pairs]
    write_predictions(cell.target / 'predictions.tsv', sentences)
    write_standoff(cell.target, sentences)
    record['files'] = {name: sha256(cell.target / name) for name in PREDICTIONS}
    write_sealed(cell.target / 'scores.json', record)  # last: its presence says that the cell is finished
    return record


def finished_cell(cell: Cell) -> dict[str, Any] | None:
    """The record of a cell that was done before from the same model, data and settings and is whole, or None."""
    record = None
    with contextlib.suppress(InputError):  # damaged: it is made again
        record = read_sealed(cell.target / 'scores.json')
    if (
        not record
        or record.get('print') != cell.print_of
        or (cell.again and not (cell.target / MODEL).is_dir())
    ):
        return None
    files = {name: cell.target / name for name in PREDICTIONS}
    sums = record.get('files')  # older cells have none
    if not all(p.is_file() and (not sums or sums.get(n) == sha256(p)) for n, p in files.items()):
        return None
    return {**record, 'dataset': cell.dataset.name}  # the folder of a set may have been given another name


def run_cells(run: Run, cells: Sequence[Cell]) -> Iterator[tuple[Cell, dict[str, Any]]]:
    """Cells in their order. Each uses the same number of threads, so results do not depend on how many run at once.

    A worker that the system killed is replaced and its cell begun again, ATTEMPTS times in all. Raises WorkerKilled.
    """
    runtime = run.config.runtime
    most = min(len(cells), max(1, (runtime.workers or len(cores())) // runtime.torch_threads))
    waiting = collections.deque(cells)
    for attempt in range(1, ATTEMPTS + 1):
        try:
            with open_workers(dataclasses.replace(runtime, workers=most, cluster=''), most) as workers:
                # Alone in this process a cell looks for itself whether to stop; workers are left by closing their pool.
                task = run_cell if workers.number else functools.partial(run_cell, check=run.check_stop)
                for record in workers.map(task, [(cell,) for cell in waiting], run.check_stop):
                    yield waiting.popleft(), record
            return
        except WorkerKilled:
            if attempt == ATTEMPTS:
                raise
            run.say(
                f'finetune: a worker process was killed; starting its cell again ({attempt} of {ATTEMPTS - 1})'
            )
