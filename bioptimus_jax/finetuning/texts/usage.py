"""Lines for the card of a classifier: its answers by a pipeline of transformers."""

import json

from bioptimus_jax.finetuning.config import Finetune
from bioptimus_jax.finetuning.task import Usage

EXAMPLE = 'Torsade de pointes was induced by metoclopramide.'
PAIR = ('Is torsade de pointes induced by metoclopramide?', EXAMPLE)
CODE = """\
from transformers import pipeline

folder = '.'  # the path of this folder
model = pipeline('text-classification', folder, {options})
{set_up}[found] = model([{given}], truncation={truncation!r}, max_length={longest})
print({answer})"""
USAGES = {
    'one': ('top_k=1', "found[0]['label']", 'the label of {}'),
    'any': (
        "top_k=None, function_to_apply='sigmoid'",
        "[each['label'] for each in found if each['score'] > 0.5]",
        'the labels of {}, any number of them',
    ),
    'number': ("top_k=1, function_to_apply='none'", "found[0]['score']", 'the number of {}'),
}
"""Kind of answer -> options of the pipeline, the answer in what it gives, and its name in words."""


ONE_SEGMENT = (
    "model.tokenizer.model_input_names = ['input_ids', 'attention_mask']  # trained without segment ids\n"
)


def usage_of(kind: str, texts: int, settings: Finetune, question: bool) -> Usage:
    """The lines for a classifier of one text or two; `kind` of KINDS; `question`: the first text is not cut."""
    options, answer, named = USAGES[kind]
    given = repr(EXAMPLE) if texts == 1 else json.dumps(dict(zip(('text', 'text_pair'), PAIR, strict=True)))
    code = CODE.format(
        options=options,
        set_up=ONE_SEGMENT if texts == 2 and settings.segment_ids == 'one' else '',
        given=given,
        truncation='only_second' if question and texts == 2 else True,
        longest=settings.max_pieces,
        answer=answer,
    )
    what = named.format('a text' if texts == 1 else 'two texts')
    return Usage(f'With transformers alone, {what}', code, EXAMPLE, PAIR if texts == 2 else ())
