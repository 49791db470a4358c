"""The model card of a fine-tuned model that is kept, README.md: what it learned, how well, how it is loaded."""

from pathlib import Path
from typing import Any

from huggingface_hub import ModelCardData

from bioptimus_jax.export.card import card_facts, scored
from bioptimus_jax.finetuning.config import Finetune
from bioptimus_jax.finetuning.task import DEFAULT, Task, score_of
from bioptimus_jax.progress.console import plural
from bioptimus_jax.records.finetune import FineTuning
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
CODE = """
`bioptimus predict . --text='...'`, or `bx.predict('.', ['...'])` in Python, reads a text as this model was trained to
(`reading.json`). {means}:

```python
{code}
```
"""
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
    labels, usage = task.labels(dataset, settings), task.usage(dataset, settings)
    pipeline = PIPELINES.get(task.hf_class, '')
    rows = []
    for key, metric in task.metrics.items():
        devel, test = (100 * scores[key][metric.name] for scores in (record.devel, record.test))
        rows.append(f'| {metric.title}{"" if key == DEFAULT else f", {key}"} | {devel:.2f} | {test:.2f} |')
    known, name = card_facts(base), record.dataset
    data = ModelCardData(
        model_name=f'{record.model} on {name}',
        library_name='transformers',
        pipeline_tag=pipeline or None,
        tags=['bioptimus-jax'],
        datasets=[name],
        widget=[{'text': usage.example}] if pipeline and usage else None,
        eval_results=[scored(task, name, 100 * score_of(record, 'test'), 1)],
        **known,
    )
    remarks = [
        *task.remarks(record),
        *([f'on devel {record.sameness}: do not use it'] if record.sameness else []),
    ]
    text = CARD.format(
        data=data.to_yaml(),
        of_set=getattr(published.record_of(name), 'licence', '') or 'not on record',
        of_base=known.get('license', 'not on record'),
        title=task.title,
        units=plural(task.unit),
        train=record.train_sentences,
        labels=', '.join(f'`{label}`' for label in labels),
        settings=', '.join(f'{name} {getattr(settings, name)}' for name in SHOWN),
        scores='\n'.join(rows),
        said=''.join(f'\n{line[:1].upper()}{line[1:]}.\n' for line in remarks),
        epoch=EPOCHS[settings.learn_devel].format(record.best_epoch),
        code=CODE.format(means=usage.means, code=usage.code) if usage else '',
        **{name: getattr(record, name) for name in ('model', 'dataset', 'setting', 'seed')},
    )
    with atomic(folder / NAME) as file:
        file.write(text)
