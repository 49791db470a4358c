"""What the fine-tunings of a model on a set say together: mean and interval over seeds, failures, models to keep."""

import dataclasses
import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from bioptimus_jax.finetuning.cells import MODEL, Cell, place
from bioptimus_jax.finetuning.predictions import Seeds, counts_by_unit
from bioptimus_jax.finetuning.statistics import failures, summary
from bioptimus_jax.finetuning.task import Task, score_of, task_of
from bioptimus_jax.records.finetune import FineTuning
from bioptimus_jax.records.statistics import Ensemble, ModelStatistics, Together
from bioptimus_jax.records.surgery import TokenRow
from bioptimus_jax.scoring.resampling import bootstrap, percentile_interval, recorded
from bioptimus_jax.storage.files import remove_folder
from bioptimus_jax.surgery.account import TOKENS_FILE
from bioptimus_jax.tokenizer.subwords import load as load_subwords
from bioptimus_jax.vocab import frequency

Group = Sequence[tuple[Cell, FineTuning]]
"""The cells of one model, set and setting, in order of seeds, with their records."""


def grouped(cells: Iterable[Cell], records: Mapping[str, FineTuning]) -> list[Group]:
    """The finished cells by model, set and setting."""
    # Cells are in the order of models, sets and settings, so those of one place are neighbours.
    return [[(cell, records[cell.name]) for cell in group] for _, group in itertools.groupby(cells, place)]


def kept_cells(cells: Sequence[Cell], records: Mapping[str, FineTuning], keep: str) -> list[Cell]:
    """The finished cells with models that `config.finetune.keep` asks for.

    best: of the seeds of a model, set and setting the one with the highest score on devel, the first of equals.
    """
    done = [cell for cell in cells if cell.name in records]
    if keep != 'best':
        return [] if keep == 'none' else done
    return [max(group, key=lambda pair: score_of(pair[1], 'devel'))[0] for group in grouped(done, records)]


def discard_others(cells: Sequence[Cell], records: Mapping[str, FineTuning], keep: str) -> None:
    """Remove the models of finished cells but the best seed's, where only that one is kept."""
    if keep != 'best':
        return
    kept = {cell.name for cell in kept_cells(cells, records, keep)}
    for cell in cells:
        if cell.name in records and cell.name not in kept:
            remove_folder(cell.target / MODEL)


def result_line(name: str, record: FineTuning) -> str:
    """The scores of a finished cell on test, for the terminal."""
    task = task_of(record)
    first, *others = (f'{key} {100 * record.test[key][m.name]:.2f}' for key, m in task.metrics.items())
    beside = f' ({", ".join(others)})' if others else ''
    warning = [f'WARNING: on devel {record.sameness}'] if record.sameness else []
    nothing = ', '.join(f'{key} {100 * score:.2f}' for key, score in record.baselines.items())
    return '; '.join(
        [
            f'{name}: test {task.metric.label} {first.partition(" ")[2]}{beside}',
            *filter(None, [nothing]),
            *task.remarks(record),
            *warning,
        ]
    )


def statistics_of(group: Group, predictions: Seeds, dataset: Any) -> ModelStatistics:
    """`summary` of every metric on test and devel, the bootstrap interval on test, why seeds failed.

    Several seeds also have what they say together.
    """
    records = {cell.seed: record for cell, record in group}
    failed, task = failures(records), task_of(group[0][1])
    unit, counts_SxUxC = counts_by_unit(task.metric, predictions, task.unit)
    scores = {
        split: {
            name: summary(
                {seed: r.splits[split][name][metric.name] for seed, r in records.items()}, list(failed)
            )
            for name, metric in task.metrics.items()
        }
        for split in ('devel', 'test')
    }
    together = None
    if len(predictions) > 1:
        settings = group[0][0].settings
        folders = [cell.target for cell, _ in group]
        mean = task.mean(dataset, folders, task.labels(dataset, settings), settings)
        together = ensemble_of(task, predictions, mean)
    return ModelStatistics(
        **vars(place(group[0][0])),
        devel=scores['devel'],
        test=scores['test'],
        ensemble=together,
        interval=recorded(percentile_interval(bootstrap(task.metric, counts_SxUxC))),
        unit=unit,
        units=counts_SxUxC.shape[1],
        failures={str(seed): reason for seed, reason in failed.items()},
    )


def ensemble_of(task: Task, predictions: Seeds, mean: Sequence[Any] | None = None) -> Ensemble:
    """Every metric on test of what the seeds say together by `Task.vote`, and the interval.

    `mean`: the answers of `Task.mean`, measured alike.
    """

    def measured(answers: Sequence[Any]) -> Together:
        pairs = zip(predictions[0], answers, strict=True)
        together = [dataclasses.replace(one, predicted=tuple(answer)) for one, answer in pairs]
        _, counts_1xUxC = counts_by_unit(task.metric, [together], task.unit)
        return Together(
            test=task.scores([each.gold for each in together], [each.predicted for each in together]),
            interval=recorded(percentile_interval(bootstrap(task.metric, counts_1xUxC))),
        )

    voted = [task.vote([each.predicted for each in of_one]) for of_one in zip(*predictions, strict=True)]
    of_mean = None if mean is None else measured(mean)
    return Ensemble(seeds=len(predictions), **vars(measured(voted)), mean_logits=of_mean)


@dataclasses.dataclass(frozen=True)
class TokenStatistics:
    """What a run knows of its model's tokens: contexts of every new one, and counts of words; empty for other models.

    `words_of`: the words that were counted in a word of a file.
    """

    contexts_of: Mapping[str, int] | None = None
    counts: Mapping[str, int] = dataclasses.field(default_factory=dict)
    corpus_words: int = 0
    words_of: Callable[[str], Sequence[str]] = str.split

    def count_of(self, word: str) -> int:
        """How often the rarest of the tokenizer's words in a word of a file was counted; those counted once are not
        known."""
        return min((self.counts.get(part, 0) for part in self.words_of(word)), default=0)


def token_statistics(surgery: Path, vocab: Path, corpus_words: int) -> TokenStatistics:
    """What stages surgery and vocab, which counted `corpus_words`, say of the tokens of models. Raises InputError."""
    tokens = TokenRow.read_lines(surgery / TOKENS_FILE)
    contexts = {row.token: row.contexts for row in tokens if row.contexts is not None}
    counted, counts_W = frequency.read(vocab)
    counts, known = dict(zip(counted, counts_W.tolist(), strict=True)), load_subwords(vocab)
    # Where pieces hold the space before them, words were counted with it.
    words, space = known.kind.words(known.reader), ' ' * known.kind.carries_space
    return TokenStatistics(contexts or None, counts, corpus_words, lambda word: words(space + word))
