"""Lines for the card of a classifier: its answers by a pipeline of transformers."""

import json

from bioptimus_jax.finetune.task import Usage
from bioptimus_jax.schema import Finetune

EXAMPLE = 'Torsade de pointes was induced by metoclopramide.'
PAIR = ('Is torsade de pointes induced by metoclopramide?', EXAMPLE)
CODE = """\
from transformers import pipeline

model = pipeline('text-classification', '.', {options})  # the path of this folder
[found] = model([{given}], truncation=True, max_length={longest})
print({answer})"""
KINDS = {
    'one': ('top_k=1', "found[0]['label']", 'the label of {}'),
    'any': (
        "top_k=None, function_to_apply='sigmoid'",
        "[each['label'] for each in found if each['score'] > 0.5]",
        'the labels of {}, any number of them',
    ),
    'number': ("top_k=1, function_to_apply='none'", "found[0]['score']", 'the number of {}'),
}
"""By what is answered: options of the pipeline, the answer in what it gives, and its name in words."""


def usage_of(kind: str, texts: int, settings: Finetune) -> Usage:
    """The lines for a classifier of one text or two; `kind` of KINDS."""
    options, answer, named = KINDS[kind]
    given = repr(EXAMPLE) if texts == 1 else json.dumps(dict(zip(('text', 'text_pair'), PAIR, strict=True)))
    code = CODE.format(options=options, given=given, longest=settings.max_pieces, answer=answer)
    what = named.format('a text' if texts == 1 else 'two texts')
    return Usage(f'With transformers alone, {what}', code, EXAMPLE)
