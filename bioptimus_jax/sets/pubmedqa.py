"""PubMedQA's labelled questions in its official split, fold 0, as lines of id, question, contexts, answer.

    python -m bioptimus_jax.sets.pubmedqa ori_pqal.json sets/pubmedqa

The split is drawn as the authors' `split_dataset.py` draws it (Jin et al. 2019; seed 0): half of every answer's
questions are the test set, the other half has ten folds, of which BLURB takes the first as devel. The conclusion of the
abstract (LONG_ANSWER) tells the answer, so it is left out.
"""

import json
import math
import random
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from bioptimus_jax.errors import InputError
from bioptimus_jax.files import atomic

ANSWERS = ('yes', 'no', 'maybe')
FOLDS = 10


def split(answers: Mapping[str, str]) -> dict[str, list[str]]:
    """Ids of the questions of each split, from their answers in the order of the file."""
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


def build(file: Path, folder: Path) -> dict[str, int]:
    """Write FOLDER/{train,devel,test}.tsv; how many questions each has. Raises InputError naming file and question."""
    try:
        questions: Mapping[str, Any] = json.loads(file.read_text('utf-8'))
        lines = {name: _line(name, question) for name, question in questions.items()}
        answers = {name: str(question['final_decision']) for name, question in questions.items()}
    except (OSError, ValueError, AttributeError, TypeError, KeyError) as error:
        raise InputError(
            f'{file}: is not ori_pqal.json of github.com/pubmedqa/pubmedqa ({error!r})'
        ) from error
    wrong = [f'{name}: {answer!r}' for name, answer in answers.items() if answer not in ANSWERS]
    if wrong or not answers:
        raise InputError(f'{file}: {wrong[0] if wrong else "no question"} is none of {", ".join(ANSWERS)}')
    folder.mkdir(parents=True, exist_ok=True)
    counts = {}
    for name, chosen in split(answers).items():
        with atomic(folder / f'{name}.tsv') as out:
            out.writelines(lines[one] for one in chosen)
        counts[name] = len(chosen)
    return counts


def _line(name: str, question: Mapping[str, Any]) -> str:
    texts = (question['QUESTION'], ' '.join(question['CONTEXTS']), question['final_decision'])
    return '\t'.join([name, *(' '.join(text.split()) for text in texts)]) + '\n'


def main(arguments: Sequence[str]) -> int:
    """The command at the top of this file."""
    if len(arguments) != 2:
        print('usage: python -m bioptimus_jax.sets.pubmedqa ori_pqal.json FOLDER', file=sys.stderr)
        return 2
    try:
        counts = build(Path(arguments[0]), Path(arguments[1]))
    except InputError as error:
        print(error, file=sys.stderr)
        return 3
    print(f'{arguments[1]}: {", ".join(f"{name} {count:,}" for name, count in counts.items())} questions')
    return 0


if __name__ == '__main__':
    sys.exit(main(sys.argv[1:]))
