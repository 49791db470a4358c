"""PubMedQA's labelled questions in its official split, fold 0, as lines of id, question, contexts, answer.

The split is drawn as the authors' `split_dataset.py` draws it (Jin et al. 2019; seed 0): half of every answer's
questions are the test set, the other half has ten folds, of which BLURB takes the first as devel. The conclusion of the
abstract (LONG_ANSWER) tells the answer, so it is left out.
"""

import json
import math
import random
from collections.abc import Mapping

from bioptimus_jax.errors import InputError
from bioptimus_jax.rebuild.originals import Builder, Example, Made, Originals
from bioptimus_jax.sets.texts import SETS
from bioptimus_jax.storage.files import JsonObject

FILE = 'ori_pqal.json'
ANSWERS = SETS.own['pubmedqa'].labels
FOLDS = 10


def split(answers: Mapping[str, str]) -> dict[str, list[str]]:
    """Ids of the questions of each split, from their answers in the order of the file."""
    # One generator for all draws: in another order the same draws give another split.
    generator = random.Random(0)
    rest, test = _parts(answers, 2, generator)
    folds = _parts({name: answers[name] for name in rest}, FOLDS, generator)
    return {'train': [name for fold in folds[1:] for name in fold], 'devel': folds[0], 'test': test}


def _parts(answers: Mapping[str, str], count: int, generator: random.Random) -> list[list[str]]:
    """Parts with as many of each answer; where rounding up leaves the last one short, it gets one of every other."""
    by_answer = []
    for answer in ANSWERS:
        names = [name for name, given in answers.items() if given == answer]
        generator.shuffle(names)
        size = math.ceil(len(names) / count)
        by_answer.append(
            [names[at * size : (at + 1) * size] for at in range(count - 1)] + [names[(count - 1) * size :]]
        )
    parts = [[name for of_answer in by_answer for name in of_answer[at]] for at in range(count)]
    if len(parts[-1]) != len(parts[0]):
        for part in parts[:-1]:
            moved = generator.choice(part)
            part.remove(moved)
            parts[-1].append(moved)
    return parts


def make(originals: Originals, fold: int) -> Made:
    """The questions. Raises InputError naming file and question."""
    shown, text = originals.text(FILE)
    try:
        questions: JsonObject = json.loads(text)
        lines = {name: _line(name, question) for name, question in questions.items()}
    except (ValueError, AttributeError, TypeError, KeyError, RecursionError) as error:
        raise InputError(f'{shown}: is not {FILE} of github.com/pubmedqa/pubmedqa ({error!r})') from error
    answers = {name: line.columns[-1] for name, line in lines.items()}
    wrong = [f'{name}: {answer!r}' for name, answer in answers.items() if answer not in ANSWERS]
    if wrong or not answers:
        raise InputError(f'{shown}: {wrong[0] if wrong else "no question"} is none of {", ".join(ANSWERS)}')
    return Made({part: [lines[name] for name in chosen] for part, chosen in split(answers).items()})


def _line(name: str, question: JsonObject) -> Example:
    texts = (question['QUESTION'], ' '.join(question['CONTEXTS']), question['final_decision'])
    return Example((name, *(' '.join(text.split()) for text in texts)))


BUILDER = Builder(f'{FILE} of github.com/pubmedqa/pubmedqa', make)
