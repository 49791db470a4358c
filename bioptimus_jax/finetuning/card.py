"""The model card of a fine-tuned model that is kept, README.md: what it learned, how well, how it is loaded."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from huggingface_hub import ModelCardData

from bioptimus_jax.export.card import card_facts, scored
from bioptimus_jax.finetuning.config import Finetune
from bioptimus_jax.finetuning.kept import read_reads
from bioptimus_jax.finetuning.task import DEFAULT, Task, Usage, score_of
from bioptimus_jax.progress.console import plural
from bioptimus_jax.records.finetune import FineTuning
from bioptimus_jax.records.kept import ENCODER, read_head
from bioptimus_jax.records.statistics import ModelStatistics
from bioptimus_jax.sets import published
from bioptimus_jax.storage.files import atomic

NAME = 'README.md'
PIPELINES = {
    'AutoModelForTokenClassification': 'token-classification',
    'AutoModelForSequenceClassification': 'text-classification',
}
"""Pipelines of transformers, by the class that loads a model."""
CARD = """---
{data}
---

# {model} on {dataset}

{title}: `{model}`, fine-tuned on the set `{dataset}` ({train:,} {units}, setting `{setting}`, seed {seed}: {settings}).
{epoch} Labels, as in `config.json`: {labels}.

| measure | devel | test |
|---|--:|--:|
{scores}
{said}
Percent, of this one model: other seeds give other scores, and scores on other text may be lower. The licences of the
set ({of_set}) and of the model that it began from ({of_base}) hold for this one, too.
{code}"""
AS_IT_IS_CARD = """---
{data}
---

# {model}, scored on {dataset}

{title}: `{model}` as it is, as nothing was learned, scored on the test of the set `{dataset}` ({test:,} {units}).
Of a text at most {max_pieces} pieces are read, special ones included.

| measure | test |
|---|--:|
{scores}
{said}
Percent; scores on other text may be lower. The licences of the set ({of_set}) and of the model ({of_base}) hold.
{code}"""
CODE = """
`bioptimus predict . --text={command}`, or `bx.predict('.', [{python}])` in Python, reads a text as this model was
trained to (`reading.json`). {means}:

```python
{code}
```
"""
OWN_CODE = """
transformers has no class for it, so its pipelines refuse this folder: {why}.
`bioptimus predict . --text={command}` answers, and in Python:

```python
import bioptimus_jax as bx

folder = '.'  # the path of this folder
[found] = bx.predict(folder, [{example}])
print(found)
```
"""
ALONE = """
{means}:

```python
{code}
```
"""
OWN_HEAD = 'its head ({head}) is in `head.safetensors`, and the encoder alone, which `AutoModel` loads, in `{encoder}`'
SEEDS = 'it is {number} models that {answer}, one in each folder'
TOGETHER_CARD = """---
{data}
---

# {model} on {dataset}, {number} seeds together

{title}: `{model}`, fine-tuned on the set `{dataset}` ({train:,} {units}, setting `{setting}`, seeds {seeds}:
{settings}), {number} models that {answer}.

| measure | together, test | one model, mean, test |
|---|--:|--:|
{scores}
{said}
Percent; scores on other text may be lower. The licences of the set ({of_set}) and of the model that it began from
({of_base}) hold for this one, too.
{code}"""
EPOCHS = {
    False: 'The epoch ({}) was chosen on devel.',
    True: 'It is the last epoch ({}), and devel was trained on, too: the scores on it say nothing.',
}
"""Which epoch it is, by whether devel is learned."""
SHOWN = ('epochs', 'batch_sentences', 'learning_rate', 'max_pieces')


def write_card(
    folder: Path, base: Path, task: Task, dataset: Any, settings: Finetune, record: FineTuning
) -> None:
    """Leave the card in the folder of a kept model; `base`: what it began from, `record`: of its fine-tuning."""
    write = _of_learned if task.learns else _as_it_is
    with atomic(folder / NAME) as file:
        file.write(write(folder, base, task, dataset, settings, record))


def _of_learned(
    folder: Path, base: Path, task: Task, dataset: Any, settings: Finetune, record: FineTuning
) -> str:
    """The card of a model that was fine-tuned."""
    labels, usage = task.labels(dataset, settings), task.usage(dataset, settings)
    pipeline, head = PIPELINES.get(task.hf_class, ''), read_head(folder)
    code = CODE.format(means=usage.means, code=usage.code, **read_reads(folder).shown) if usage else ''
    if head and usage:
        code = _own_code(folder, OWN_HEAD.format(head=head.described, encoder=ENCODER), usage)
    rows = []
    for key, named in _measures(task).items():
        devel, test = (100 * scores[key][task.metrics[key].name] for scores in (record.devel, record.test))
        rows.append(f'| {named} | {devel:.2f} | {test:.2f} |')
    known, name = card_facts(base), record.dataset
    data = ModelCardData(
        model_name=f'{record.model} on {name}',
        library_name='bioptimus-jax' if head else 'transformers',
        pipeline_tag=pipeline or None,
        tags=['bioptimus-jax'],
        widget=[{'text': usage.example}] if pipeline and usage and not head else None,
        eval_results=[scored(task, name, 100 * score_of(record, 'test'), 1)],
        **known.json(),
    )
    remarks = [
        *task.remarks(record),
        *([f'on devel {record.sameness}: do not use it'] if record.sameness else []),
    ]
    return CARD.format(
        data=data.to_yaml(),
        of_set=_licence_of_set(name),
        of_base=known.license or 'not on record',
        title=task.title,
        units=plural(task.unit),
        train=record.train_sentences,
        labels=', '.join(f'`{label}`' for label in labels),
        settings=_shown(settings),
        scores='\n'.join(rows),
        said=_paragraphs(remarks),
        epoch=EPOCHS[settings.learn_devel].format(record.best_epoch),
        code=code,
        **{name: getattr(record, name) for name in ('model', 'dataset', 'setting', 'seed')},
    )


def _as_it_is(
    folder: Path, base: Path, task: Task, dataset: Any, settings: Finetune, record: FineTuning
) -> str:
    """The card of a model that has learned nothing: what was read, and the scores on test."""
    known, usage = card_facts(base), task.usage(dataset, settings)
    score = scored(task, record.dataset, 100 * score_of(record, 'test'), 1)
    score.metric_name = task.metric.title
    data = ModelCardData(
        model_name=f'{record.model} on {record.dataset}',
        library_name='transformers',
        tags=['bioptimus-jax'],
        eval_results=[score],
        **known.json(),
    )
    rows = [
        f'| {named} | {100 * record.test[key][task.metrics[key].name]:.2f} |'
        for key, named in _measures(task).items()
    ]
    return AS_IT_IS_CARD.format(
        data=data.to_yaml(),
        model=record.model,
        dataset=record.dataset,
        title=task.title,
        test=len(dataset.test),
        units=plural(task.unit),
        max_pieces=settings.max_pieces,
        scores='\n'.join(rows),
        said=_paragraphs(task.remarks(record)),
        of_set=_licence_of_set(record.dataset),
        of_base=known.license or 'not on record',
        code=ALONE.format(means=usage.means, code=usage.code) if usage else '',
    )


def write_card_together(
    folder: Path,
    base: Path,
    task: Task,
    dataset: Any,
    settings: Finetune,
    records: Sequence[FineTuning],
    statistics: ModelStatistics,
) -> None:
    """Leave the card in the folder of several seeds; `records`: of their fine-tunings, `statistics`: of them all."""
    assert statistics.ensemble  # there are several
    test = statistics.ensemble.kept(task.averages)
    rows = []
    for key, named in _measures(task).items():
        together, alone = test.test[key][task.metrics[key].name], statistics.test[key].mean or 0.0
        rows.append(f'| {named} | {100 * together:.2f} | {100 * alone:.2f} |')
    first, known, usage = records[0], card_facts(base), task.usage(dataset, settings)
    score = scored(task, first.dataset, 100 * test.test[DEFAULT][task.metric.name], 1)
    score.metric_name = f'{task.metric.title}, {len(records)} seeds together'
    data = ModelCardData(
        model_name=f'{first.model} on {first.dataset}, {len(records)} seeds',
        library_name='bioptimus-jax',
        pipeline_tag=PIPELINES.get(task.hf_class),
        tags=['bioptimus-jax'],
        eval_results=[score],
        **known.json(),
    )
    failed = [f'Seed {seed} failed: {reason}' for seed, reason in statistics.failures.items()]
    why = SEEDS.format(number=len(records), answer=task.together)
    text = TOGETHER_CARD.format(
        data=data.to_yaml(),
        number=len(records),
        seeds=', '.join(str(record.seed) for record in records),
        title=task.title,
        train=first.train_sentences,
        units=plural(task.unit),
        settings=_shown(settings),
        answer=task.together,
        scores='\n'.join(rows),
        said=''.join(f'\n{line}.\n' for line in failed),
        of_set=_licence_of_set(first.dataset),
        of_base=known.license or 'not on record',
        code=_own_code(folder, why, usage) if usage else '',
        **{name: getattr(first, name) for name in ('model', 'dataset', 'setting')},
    )
    with atomic(folder / NAME) as file:
        file.write(text)


def _measures(task: Task) -> dict[str, str]:
    """What the metrics of a task are called, by their keys: by these, too, where several have one title."""
    titles = [metric.title for metric in task.metrics.values()]
    return {
        key: metric.title if key == DEFAULT or titles.count(metric.title) == 1 else f'{metric.title}, {key}'
        for key, metric in task.metrics.items()
    }


def _paragraphs(remarks: Sequence[str]) -> str:
    return ''.join(f'\n{line[:1].upper()}{line[1:]}.\n' for line in remarks)


def _own_code(folder: Path, why: str, usage: Usage) -> str:
    """What the card of a model says that transformers does not load, which is `why`."""
    return OWN_CODE.format(why=why, example=repr(usage.pair or usage.example), **read_reads(folder).shown)


def _licence_of_set(name: str) -> str:
    return getattr(published.record_of(name), 'licence', '') or 'not on record'


def _shown(settings: Finetune) -> str:
    return ', '.join(f'{name} {getattr(settings, name)}' for name in SHOWN)
