"""One fine-tuning from files to files, and many of them in worker processes."""

import concurrent.futures
import dataclasses
import multiprocessing
import os
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path
from typing import Any

from bioptimus_jax.errors import InputError, Stopped
from bioptimus_jax.files import atomic, read_json, write_json
from bioptimus_jax.ner import corpora
from bioptimus_jax.ner.finetune import finetune
from bioptimus_jax.ner.score import by_type, score
from bioptimus_jax.run import Run
from bioptimus_jax.schema import Ner

ATTEMPTS = (
    3  # a worker that the system killed is replaced, and its cell started again, this many times in all
)


@dataclasses.dataclass(frozen=True)
class Cell:
    """Everything that a worker needs for one fine-tuning. `print_of` is the digest of all that decides it."""

    model: str
    model_folder: Path
    dataset_folder: Path
    seed: int
    settings: Ner
    target: Path
    threads: int
    quiet: bool
    print_of: str

    @property
    def name(self) -> str:
        return f'{self.model}/{self.dataset_folder.name}/seed-{self.seed}'


def run_cell(cell: Cell, check: Callable[[], None] | None = None) -> dict[str, Any]:
    """One fine-tuning from files to files. Raises InputError where a gold mention would not be scored."""
    started = time.monotonic()
    dataset = corpora.read_dataset(cell.dataset_folder)

    def on_epoch(epoch: dict[str, float]) -> None:
        if not cell.quiet:
            shown = f'loss {epoch["loss"]:.4f}, devel F1 {100 * epoch["devel_f1"]:.2f}'
            print(f'ner: {cell.name} epoch {epoch["epoch"]}/{cell.settings.epochs}: {shown}', flush=True)

    if dataset.unseen_labels and not cell.quiet:
        print(
            f'ner: {cell.name}: tags that train.tsv does not have count as missed: {dataset.unseen_labels}',
            flush=True,
        )
    outcome = finetune(
        cell.model_folder,
        dataset,
        cell.settings,
        cell.seed,
        threads=cell.threads,
        on_epoch=on_epoch,
        check=check or _check_worker,
    )
    gold = [s.tags for s in dataset.test]
    test = score(gold, outcome.test)
    scored = int(test['default']['gold'])
    if scored != dataset.gold_in_file['test']:
        raise InputError(
            f'{cell.dataset_folder / "test.tsv"}: holds {dataset.gold_in_file["test"]} mentions, but '
            f'{scored} would be scored; check its tags and blank lines'
        )
    record = {
        'model': cell.model,
        'dataset': dataset.name,
        'seed': cell.seed,
        'devel': score([s.tags for s in dataset.devel], outcome.devel),
        'test': test,
        'test_by_type': by_type(gold, outcome.test),
        'gold_in_file': dataset.gold_in_file['test'],
        'gold_scored': scored,
        'sentences': {name: len(getattr(dataset, name)) for name in corpora.SPLITS},
        'unseen_labels': dataset.unseen_labels,
        'alignment': outcome.counts,
        'history': outcome.history,
        'best_epoch': outcome.best_epoch,
        'train_sentences_per_second': outcome.train_sentences_per_second,
        'predict_sentences_per_second': outcome.predict_sentences_per_second,
        'seconds': round(time.monotonic() - started, 1),
        'print': cell.print_of,
    }
    with atomic(cell.target / 'predictions.tsv') as file:
        for sentence, tags in zip(dataset.test, outcome.test, strict=True):
            file.writelines(
                '\t'.join(row) + '\n' for row in zip(sentence.words, sentence.tags, tags, strict=True)
            )
            file.write('\n')
    write_json(cell.target / 'scores.json', record)  # last: its presence says that the cell is finished
    return record


def finished_cell(cell: Cell) -> dict[str, Any] | None:
    """The record of a cell that was done before from the same model, data and settings, or None."""
    record = read_json(cell.target / 'scores.json')
    return (
        record
        if record and record['print'] == cell.print_of and (cell.target / 'predictions.tsv').exists()
        else None
    )


def run_cells(run: Run, cells: list[Cell], workers: int) -> Iterator[tuple[Cell, dict[str, Any]]]:
    """Cells as they finish. Each uses the same number of threads, so results do not depend on `workers`."""
    run.check_stop()
    if workers <= 1:
        for cell in cells:
            yield cell, run_cell(cell, run.check_stop)
        return
    for attempt in range(1, ATTEMPTS + 1):
        left = set(cells)
        try:
            for cell, record in _pool(run, cells, workers):
                left.discard(cell)
                yield cell, record
            return
        except BrokenProcessPool as error:
            run.check_stop()
            if attempt == ATTEMPTS:
                raise InputError(
                    f'ner: a worker process was killed {ATTEMPTS} times, perhaps for lack of memory; '
                    'try --config.runtime.workers=1'
                ) from error
            run.say(
                f'ner: a worker process was killed; starting its cell again ({attempt} of {ATTEMPTS - 1})'
            )
            cells = [cell for cell in cells if cell in left]


def _pool(run: Run, cells: list[Cell], workers: int) -> Iterator[tuple[Cell, dict[str, Any]]]:
    context = multiprocessing.get_context('spawn')
    stop = context.Event()
    pool = concurrent.futures.ProcessPoolExecutor(workers, context, _start_worker, (stop, os.getpid()))
    try:
        futures = {pool.submit(run_cell, cell): cell for cell in cells}
        pending = set(futures)
        while pending:
            done, pending = concurrent.futures.wait(pending, 0.5, concurrent.futures.FIRST_COMPLETED)
            run.check_stop()
            for future in done:
                yield futures[future], future.result()
    finally:
        stop.set()  # cells that are under way end at their next update
        pool.shutdown(cancel_futures=True)


_stop: Any = None  # of a worker process: set when its cell should end


def _start_worker(stop: Any, parent: int) -> None:
    global _stop
    _stop = stop

    def watch() -> None:  # a killed parent must not leave workers behind
        while os.getppid() == parent:
            time.sleep(1)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def _check_worker() -> None:
    if _stop is not None and _stop.is_set():
        raise Stopped
