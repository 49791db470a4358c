"""What the values of a graph mean, by the class of transformers that was traced: to the gate, and in lines of Python.

Shapes: B texts, L pieces, K labels, V entries of the vocabulary.
"""

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np

SET_UP = """\
import numpy as np
import onnxruntime
from transformers import {imports}

folder = '.'  # the path of this folder
tokenizer = AutoTokenizer.from_pretrained(folder)
session = onnxruntime.InferenceSession(f'{{folder}}/model.onnx')
given = tokenizer({texts}, padding=True, truncation=True, return_tensors='np')
zeros = np.zeros_like(given['input_ids'])
inputs = {{one.name: given.get(one.name, zeros).astype(np.int64) for one in session.get_inputs()}}
[{output}] = session.run(None, inputs)
"""
PLAIN, LABELLED = 'AutoTokenizer', 'AutoConfig, AutoTokenizer'
TEXT = 'Torsade de pointes was induced by metoclopramide.'
NAMES = 'labels = AutoConfig.from_pretrained(folder).id2label\n'


def _largest(values: np.ndarray, config: Any) -> np.ndarray:
    return values.argmax(-1)


def _positive(values: np.ndarray, config: Any) -> np.ndarray:
    return values > 0


def _of_texts(values_BxK: np.ndarray, config: Any) -> np.ndarray | None:
    """The labels of every text; None where it gets a number."""
    if config.problem_type == 'regression' or values_BxK.shape[-1] == 1:
        return None
    return (_positive if config.problem_type == 'multi_label_classification' else _largest)(
        values_BxK, config
    )


@dataclasses.dataclass(frozen=True)
class Answering:
    """`per_piece`: whether the values are of pieces, not of texts. `answers`: what values, config -> that can be alike.

    `hides`: pieces of what it reads are hidden. `does`: what the model does, in words; `lines`: of Python behind
    SET_UP, which imports `imports`; `texts`: that it is tried on.
    """

    does: str
    lines: str
    answers: Callable[[np.ndarray, Any], np.ndarray | None] = _largest
    per_piece: bool = True
    hides: bool = False
    imports: str = PLAIN
    texts: str = repr([TEXT])

    def code(self, output: str) -> str:
        """Lines that run the graph, which gives `output`, in the folder that they are in."""
        return SET_UP.format(imports=self.imports, texts=self.texts, output=output) + self.lines


ANSWERING = {
    'AutoModelForMaskedLM': Answering(
        'fills in masked words',
        "at = given['input_ids'][0] == tokenizer.mask_token_id\n"
        'print(tokenizer.convert_ids_to_tokens(logits[0, at][0].argsort()[-5:][::-1].tolist()))\n',
        hides=True,
        texts="[f'Treatment with {tokenizer.mask_token} was effective.']",
    ),
    'AutoModelForPreTraining': Answering(
        'tells tokens that were put in from those that were there',
        'replaced = 1 / (1 + np.exp(-logits[0]))  # the probability that a token is not the original one\n'
        "print(list(zip(tokenizer.convert_ids_to_tokens(given['input_ids'][0]), replaced.tolist())))\n",
        _positive,
    ),
    'AutoModelForTokenClassification': Answering(
        'finds entities',
        NAMES + 'tags = [labels[number] for number in logits[0].argmax(-1).tolist()]  # of pieces\n'
        "print(list(zip(tokenizer.convert_ids_to_tokens(given['input_ids'][0]), tags)))\n",
        imports=LABELLED,
    ),
    'AutoModelForSequenceClassification': Answering(
        'gives texts labels, or a number',
        NAMES + 'print({labels[number]: value for number, value in enumerate(logits[0].tolist())})\n',
        _of_texts,
        per_piece=False,
        imports=LABELLED,
    ),
    'AutoModel': Answering(
        'gives vectors of texts, whose products are cosines',
        'print(vectors @ vectors.T)\n',
        lambda values, config: None,
        per_piece=False,
        texts="['a dose for mice', 'The drug was given to mice.']",
    ),
}
"""What graphs answer, by the class of transformers that was traced."""
