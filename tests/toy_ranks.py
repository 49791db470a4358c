"""A process of several that train together: python toy_ranks.py MODEL OUT WORKERS, with RANK and the like set.

It writes the labels of each batch that the Trainer gets: of training with evaluation between the steps, and of the same
training resumed.
"""

import json
import sys
from pathlib import Path

import torch
import transformers

import bioptimus_jax as bx

WORDS = ('zolmipan', 'tercivir', 'the', 'patient', 'got', 'daily', 'dose')


def labels_of(folder, out, workers, resumed):
    """'train' and 'evaluation' -> the labels of each batch, in order."""
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    alike = [tokenizer(' '.join(WORDS * 4))] * 16
    seen = {'train': [], 'evaluation': []}

    class Watched(transformers.Trainer):
        def compute_loss(self, model, inputs, *given, **named):
            seen['train' if model.training else 'evaluation'].append(inputs['labels'].tolist())
            return super().compute_loss(model, inputs, *given, **named)

    arguments = transformers.TrainingArguments(
        str(out),
        num_train_epochs=2,
        per_device_train_batch_size=2,
        per_device_eval_batch_size=4,
        gradient_accumulation_steps=2,
        eval_strategy='steps',
        eval_steps=2,
        save_steps=1,
        dataloader_num_workers=workers,
        report_to=[],
        use_cpu=True,
        disable_tqdm=True,
    )
    trainer = Watched(
        transformers.AutoModelForMaskedLM.from_pretrained(folder),
        arguments,
        train_dataset=alike,
        eval_dataset=[tokenizer(' '.join(WORDS[n:] * 4)) for n in range(4)],
        data_collator=bx.Collator(tokenizer, '0.2', seed=4),
    )
    trainer.train(resume_from_checkpoint=str(out / 'checkpoint-1') if resumed else None)
    return seen


if __name__ == '__main__':
    torch.set_num_threads(1)
    model, place = Path(sys.argv[1]), Path(sys.argv[2])
    found = [labels_of(model, place / 'run', int(sys.argv[3]), resumed) for resumed in (False, True)]
    (place / f'{torch.distributed.get_rank()}-{sys.argv[3]}.json').write_text(json.dumps(found), 'utf-8')
