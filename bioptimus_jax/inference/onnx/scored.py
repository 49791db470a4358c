"""The test score of a fine-tuned model as ONNX, beside that of the model itself, on the test of its fine-tuning."""

import dataclasses
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from bioptimus_jax.finetuning.config import Finetune
from bioptimus_jax.finetuning.finished import SCORES, read_cell
from bioptimus_jax.finetuning.predictions import Predicted, counts_by_unit
from bioptimus_jax.finetuning.recommended import BATCH
from bioptimus_jax.finetuning.task import Task, task_of
from bioptimus_jax.finetuning.training import predict
from bioptimus_jax.inference.onnx.gate import OnnxGateError
from bioptimus_jax.records.finetune import FineTuning
from bioptimus_jax.records.onnx import OnnxScore
from bioptimus_jax.scoring.resampling import bootstrap, percentile_interval
from bioptimus_jax.vocab.agreement import load_for_words

OF_WINDOWS = ('max_pieces', 'overlap_pieces', 'scheme', 'label_pieces', 'segment_ids')
"""Keys of config.finetune that say how a kept model reads and what its labels mean."""


@dataclasses.dataclass(frozen=True)
class Tested:
    """What a kept model was tested on: the items as they are asked again, in the words of its record."""

    task: Task
    dataset: str
    settings: Finetune
    items: Sequence[Any]


def as_tested(folder: Path, say: Callable[[str], None] = print) -> Tested | None:
    """The test items of a kept model, from the predictions beside it; None for a model without a fine-tuning's record.

    None, too, where the record does not tell what the model has read, which is said: the score would be another one.
    Raises InputError for damage.
    """
    if not (folder.parent / SCORES).is_file():
        return None
    record = read_cell(folder.parent / SCORES)
    if not isinstance(record, FineTuning) or record.settings is None:
        return None
    task = task_of(record)
    items = task.asked_again(task.written(folder.parent), record)
    if items is None:
        say(
            f'{folder.parent / SCORES}: does not tell which words the model has read (word_of), so both are not scored '
            'on its test; fine-tune it again in a new run for that'
        )
    if not items:
        return None
    known = record.settings.values
    settings = Finetune(**{name: known[name] for name in OF_WINDOWS if name in known}, batch_sentences=BATCH)
    return Tested(task, record.dataset, settings, items)


def scores(tested: Tested, folder: Path, model: Any, onnx: Any, labels: Sequence[str]) -> OnnxScore:
    """The scores of both, and the interval of the model's. Raises OnnxGateError where the file's is outside of it."""
    task, settings = tested.task, tested.settings
    windows = task.windows(load_for_words(folder), tested.items, settings).windows
    sides = []
    for pretrained in (model, onnx):
        head = task.head(pretrained, labels, settings, 'float32')
        sides.append(task.predicted(tested.items, predict(task, head, tested.items, windows, settings)))
    of_model, of_onnx = (_score(task, side) for side in sides)
    unit, counts_1xUxC = counts_by_unit(task.metric, sides[:1], task.unit)
    low, high = percentile_interval(bootstrap(task.metric, counts_1xUxC))
    found = OnnxScore(
        dataset=tested.dataset,
        metric=task.metric.title,
        items=len(tested.items),
        pytorch=of_model,
        onnx=of_onnx,
        low=low,
        high=high,
        drawn=unit,
    )
    # Of answers that are all alike there may be no interval: then the score must be the same.
    if not (low <= of_onnx <= high or of_onnx == of_model):
        raise OnnxGateError(
            f'{folder}: as ONNX its {found.metric} on the test of {found.dataset} is {100 * of_onnx:.2f}, outside of '
            f'the interval of its own {100 * of_model:.2f} [{100 * low:.2f}, {100 * high:.2f}]; take '
            '--precision=float32'
        )
    return found


def _score(task: Task, side: Sequence[Predicted]) -> float:
    return float(task.metric.scores([e.gold for e in side], [e.predicted for e in side])[task.metric.name])
