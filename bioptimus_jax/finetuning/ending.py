"""The last lines of a fine-tuning: test scores of each set beside its baselines, and how to use a model."""

from collections.abc import Sequence

from bioptimus_jax.finetuning.chosen import command_for_use
from bioptimus_jax.finetuning.config import STANDARD
from bioptimus_jax.finetuning.summary import Group
from bioptimus_jax.finetuning.task import DEFAULT, task_of
from bioptimus_jax.records.statistics import ModelStatistics


def ending(groups: Sequence[Group], made: Sequence[ModelStatistics]) -> list[str]:
    """A table for each set: test score with its interval, score on devel and number of seeds, and baselines.

    Behind them a line for the kept model of each set that is for use.
    """
    lines, uses = [], []
    for dataset in dict.fromkeys(one.dataset for one in made):
        of_set = [(group, one) for group, one in zip(groups, made, strict=True) if one.dataset == dataset]
        task = task_of(of_set[0][1])
        rows = [[f'{dataset}, {task.metric.label}', 'test', '95 % interval', 'devel', 'seeds']]
        for _, one in of_set:
            name = one.model if one.setting == STANDARD else f'{one.model}, {one.setting}'
            span = f'{_percent(one.interval[0])} to {_percent(one.interval[1])}' if one.interval else ''
            test, devel = (_percent(split[DEFAULT].mean) for split in (one.test, one.devel))
            rows.append([name, test, span, devel if task.learns else '', str(one.test[DEFAULT].seeds)])
        for name, value in of_set[0][0][0][1].baselines.items():
            rows.append([name, _percent(value), '', '', ''])
        lines.append(_aligned(rows))
        if command := command_for_use((record, cell.target) for group, _ in of_set for cell, record in group):
            uses.append(f'{dataset}: {command}')
    return [*lines, *(f'finetune: use it for {use}' for use in uses)]


def _percent(score: float | None) -> str:
    return '' if score is None else f'{100 * score:.2f}'


def _aligned(rows: Sequence[Sequence[str]]) -> str:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    aligned = ([row[0].ljust(widths[0]), *map(str.rjust, row[1:], widths[1:])] for row in rows)
    return '\n'.join('  '.join(cells).rstrip() for cells in aligned)
