"""Lines for the card of a tagger: the tags of words by transformers alone, whose pipeline labels pieces."""

from bioptimus_jax.finetuning.task import Usage
from bioptimus_jax.sets.cutting import CHARACTER, COMPOUND, WORD, characters, notes, prose

PATTERNS = {prose.__name__: WORD, notes.__name__: COMPOUND, characters.__name__: CHARACTER}
"""Rules whose words a pattern finds in a sentence; the others end words at white space where a text is cut before."""
EXAMPLE = 'Torsade de pointes was induced by metoclopramide .'
CODE = """\
{imports}
import torch
from transformers import AutoModelForTokenClassification, AutoTokenizer

folder = '.'  # the path of this folder
tokenizer = AutoTokenizer.from_pretrained(folder)
model = AutoModelForTokenClassification.from_pretrained(folder)
words = {words}
given = tokenizer(words, is_split_into_words=True, return_tensors='pt')
with torch.no_grad():
    labels = model(**given).logits[0].argmax(-1)
numbers = given.word_ids()
tags = [model.config.id2label[labels[numbers.index(n)].item()] if n in numbers else 'O' for n in range(len(words))]
print(list(zip(words, tags)))"""


def usage_of(cut: str) -> Usage:
    """The lines for a tagger that was trained on words of this rule of `cutting.CUTS`: the tag of each word.

    The label of a word is that of its first piece, as in training: `pipeline` gives each piece its own.
    """
    pattern = PATTERNS.get(cut)
    found = f're.findall({pattern.pattern!a}, {EXAMPLE!r})' if pattern else f'{EXAMPLE!r}.split()'
    code = CODE.format(imports='import re\n' if pattern else '', words=found).lstrip()
    return Usage(
        'With transformers alone, the tags of the words of one sentence that fits a window', code, EXAMPLE
    )
